"""Images, sound, documents and files as content that every chat model of LangChain reads (spec §2 `AgSource`)."""

from __future__ import annotations

import base64
import mimetypes
from typing import Any

from agjson.adapters.anthropic._out_media import is_surface
from agjson.adapters.langgraph._out_carried import carried_fields
from agjson.adapters.langgraph._out_repairs import Provider, Repairs
from agjson.types import (
    AgSource,
    AudioBlock,
    Base64Source,
    DocumentBlock,
    FileBlock,
    FileSource,
    ImageBlock,
    ResourceBlock,
    UrlSource,
)

__all__ = ["as_text", "is_base64", "media", "resource"]

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def media(
    block: ImageBlock | AudioBlock | FileBlock | DocumentBlock,
    provider: Provider | None,
    path: str,
    repairs: Repairs,
) -> dict[str, Any] | None:
    """A standard content block of LangChain; None where it was left out.

    Args:
        block: the block.
        provider: whose chat model reads it; None: not known.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: the chat model takes no such content.
    """
    source = _inline(block.source)
    media_type = source.media_type or None
    if media_type is None and isinstance(source, UrlSource):
        media_type = mimetypes.guess_type(source.url.partition("?")[0])[0]
    if isinstance(source, Base64Source) and not is_base64(source.data):
        repairs.unsupported(path, "the content is no base64")
        return None
    kind = _kind(block, media_type)
    text = _text(source) if kind == "file" and provider in ("openai-responses", "openai-chat") else None
    if text is not None:
        return as_text(text, path, repairs)
    refused = _refused(kind, source, media_type, provider)
    if refused is not None:
        repairs.unsupported(path, refused)
        return None
    fields = carried_fields(block.provider_metadata)
    shown = fields.pop("image_url", None)
    if isinstance(shown, dict) and kind == "image" and not isinstance(source, FileSource):
        return {**fields, "type": "image_url", "image_url": {**shown, "url": _address(source)}}
    native: dict[str, Any] = {**fields, "type": kind, **_sourced(source)}
    if source.media_type:
        native["mime_type"] = source.media_type
    name = block.filename if isinstance(block, FileBlock) else None
    if isinstance(block, DocumentBlock):
        name = block.title
        if name:
            native.setdefault("title", name)
    if kind == "file" and name:
        native["filename"] = name
    elif kind == "file" and provider in ("openai-responses", "openai-chat") and isinstance(source, Base64Source):
        native.setdefault("filename", "document" + (mimetypes.guess_extension(media_type or "") or ""))
    return native


def resource(block: ResourceBlock, provider: Provider | None, path: str, repairs: Repairs) -> dict[str, Any] | None:
    """An MCP resource: its text or its bytes. A surface (``ui://``) is for people and goes to no model.

    Args:
        block: the block.
        provider: whose chat model reads it; None: not known.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: the chat model takes no such content.
    """
    held = block.resource
    if is_surface(block):
        repairs.note("block_dropped", path, "a surface is not sent to a model")
        return None
    if held.text is not None:
        return as_text(held.text, path, repairs)
    media_type = held.mime_type or mimetypes.guess_type(held.uri)[0]
    if held.blob is None or media_type is None:
        repairs.unsupported(path, "a resource must hold text, or bytes of a known media type")
        return None
    source = Base64Source(media_type=media_type, data=held.blob)
    return media(FileBlock(source=source, filename=held.uri), provider, path, repairs)


def as_text(text: str, path: str, repairs: Repairs) -> dict[str, Any] | None:
    """What the chat model has no block for, as text; None where there is none.

    Args:
        text: the text.
        path: the JSON path of what it is of.
        repairs: where they are noted.
    """
    if not text.strip():
        repairs.note("text_dropped", path, "the block says nothing")
        return None
    repairs.note("as_text", path, "the chat model has no such block; it goes as text")
    return {"type": "text", "text": text}


def _kind(block: ImageBlock | AudioBlock | FileBlock | DocumentBlock, media_type: str | None) -> str:
    if isinstance(block, (ImageBlock, AudioBlock)):
        return block.type
    kind = (media_type or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


def _sourced(source: AgSource) -> dict[str, Any]:
    if isinstance(source, Base64Source):
        return {"base64": source.data}
    return {"url": source.url} if isinstance(source, UrlSource) else {"file_id": source.file_id}


def _address(source: Base64Source | UrlSource) -> str:
    return source.url if isinstance(source, UrlSource) else f"data:{source.media_type};base64,{source.data}"


def _refused(kind: str, source: AgSource, media_type: str | None, provider: Provider | None) -> str | None:
    """Why the chat model takes no such content; None: it does."""
    place = f"a source {source.type}" + (f" of {media_type}" if media_type else "")
    if isinstance(source, UrlSource) and not source.url.startswith(("https://", "http://", "gs://")):
        return "the address of content must be a web address"
    if isinstance(source, FileSource) and not source.file_id:
        return "the id of the file is empty"
    if isinstance(source, Base64Source) and media_type is None:
        return "the content must name its media type"
    if provider in ("openai-responses", "openai-chat"):
        if kind == "video" or (kind == "audio" and provider == "openai-responses"):
            return f"the API takes no {kind}"
        if kind == "audio" and not isinstance(source, Base64Source):
            return f"the API takes sound in base64 alone, got {place}"
        if kind == "image" and isinstance(source, FileSource):
            return f"the chat model takes no uploaded image, got {place}"
        if kind == "file" and isinstance(source, UrlSource) and provider == "openai-chat":
            return f"the API takes no address of a file, got {place}"
    if provider == "bedrock":
        if kind == "audio":
            return "the API takes no sound"
        if not isinstance(source, Base64Source):
            return f"the API takes content in base64 alone, got {place}"
    if provider == "anthropic" and kind == "image" and media_type not in (None, *_IMAGES):
        return f"an image must be JPEG, PNG, GIF or WebP, got {place}"
    return None


def _inline(source: AgSource) -> AgSource:
    """A ``data:`` address as the bytes that it holds."""
    if not isinstance(source, UrlSource) or not source.url.startswith("data:"):
        return source
    head, comma, data = source.url[len("data:") :].partition(",")
    media_type, mark, rest = head.partition(";base64")
    if not comma or not mark or rest:
        return source
    return Base64Source(media_type=media_type.partition(";")[0] or source.media_type or "text/plain", data=data)


def _text(source: AgSource) -> str | None:
    """The text of a text file in base64."""
    if not isinstance(source, Base64Source) or not (source.media_type or "").startswith("text/"):
        return None
    try:
        return base64.b64decode(source.data).decode()
    except ValueError:
        return None


def is_base64(data: str) -> bool:
    """Whether a text is base64 of something.

    Args:
        data: the text.
    """
    try:
        return bool(base64.b64decode(data, validate=True))
    except ValueError:
        return False
