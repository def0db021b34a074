"""Images, documents and files as the Messages API takes them (spec §2 `AgSource`, §10 item 5)."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Mapping
from typing import Any

from agjson.adapters.anthropic._api import IMAGE_TYPES
from agjson.adapters.anthropic._carry import FIELDS, NATIVE_BLOCK
from agjson.adapters.anthropic._repair import Repairs
from agjson.types import (
    AgSource,
    Base64Source,
    DocumentBlock,
    FileBlock,
    FileSource,
    ImageBlock,
    ResourceBlock,
    UrlSource,
)

__all__ = ["carried_fields", "document", "file", "image", "is_surface", "resource"]

_PDF = "application/pdf"
_APP_SURFACE = "profile=mcp-app"


def carried_fields(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Native fields that a block brought along and that its neutral form does not say.

    Args:
        metadata: the block's ``providerMetadata``.
    """
    fields = metadata.get(FIELDS) if metadata else None
    return dict(fields) if isinstance(fields, dict) else {}


def image(block: ImageBlock, path: str, repairs: Repairs) -> dict[str, Any] | None:
    """An image; None where it was left out.

    Args:
        block: the block.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: the API does not take such an image.
    """
    source = _inline(block.source)
    native = _image_source(source)
    if native is None:
        repairs.unsupported(
            path, f"an image must be JPEG, PNG, GIF or WebP in base64, or a web address: {_told(source)}"
        )
        return None
    return {**carried_fields(block.provider_metadata), "type": "image", "source": native}


def document(block: DocumentBlock, path: str, repairs: Repairs) -> dict[str, Any] | None:
    """A document; None where it was left out.

    Args:
        block: the block.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: the API does not take such a document.
    """
    whole = _whole(block.provider_metadata, "document")
    if whole is not None:
        return whole
    source = _inline(block.source)
    native = _document_source(source)
    if native is None:
        repairs.unsupported(path, f"a document must be PDF or text, or the web address of a PDF: {_told(source)}")
        return None
    if native["type"] == "text" and not native["data"].strip():
        repairs.note("text_dropped", path, "the document is empty")
        return None
    titled = {"title": block.title} if block.title else {}
    return {**carried_fields(block.provider_metadata), **titled, "type": "document", "source": native}


def file(block: FileBlock, path: str, repairs: Repairs) -> dict[str, Any] | None:
    """A file as image or document by its media type, else as an upload to the container; None where it was left out.

    Args:
        block: the block.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: the API does not take such a file.
    """
    whole = _whole(block.provider_metadata, "container_upload")
    if whole is not None:
        return whole
    source = _inline(block.source)
    media_type = source.media_type
    if media_type is None and isinstance(source, UrlSource):
        media_type = mimetypes.guess_type(source.url.partition("?")[0])[0]
    if media_type is not None and media_type.startswith("image/"):
        native = _image_source(source)
        if native is not None:
            return {**carried_fields(block.provider_metadata), "type": "image", "source": native}
    elif isinstance(source, FileSource) and not _is_document(media_type):
        return {**carried_fields(block.provider_metadata), "type": "container_upload", "file_id": source.file_id}
    elif _is_document(media_type):
        neutral = DocumentBlock(source=source, title=block.filename, provider_metadata=block.provider_metadata)
        return document(neutral, path, repairs)
    repairs.unsupported(path, f"a file must be an image, PDF or text, or one of the Files API: {_told(source)}")
    return None


def resource(block: ResourceBlock, path: str, repairs: Repairs) -> dict[str, Any] | None:
    """An MCP resource: its text or its bytes. A surface (``ui://``) is for people and goes to no model.

    Args:
        block: the block.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: its bytes are of a kind that the API does not take.
    """
    held = block.resource
    if is_surface(block):
        repairs.note("block_dropped", path, "a surface is not sent to a model")
        return None
    if held.text is not None:
        data = base64.b64encode(held.text.encode("utf-8", "replace")).decode()
        source = Base64Source(media_type="text/plain", data=data)
        return document(DocumentBlock(source=source, title=held.uri), path, repairs)
    media_type = held.mime_type or mimetypes.guess_type(held.uri)[0]
    if held.blob is None or media_type is None:
        repairs.unsupported(path, "a resource must hold text, or bytes of a known media type")
        return None
    return file(FileBlock(source=Base64Source(media_type=media_type, data=held.blob)), path, repairs)


def is_surface(block: ResourceBlock) -> bool:
    """Whether a resource is a surface that a host draws (spec §6 pattern 1a).

    Args:
        block: the block.
    """
    return block.resource.uri.startswith("ui://") or _APP_SURFACE in (block.resource.mime_type or "")


def _whole(metadata: Mapping[str, Any] | None, kind: str) -> dict[str, Any] | None:
    """The native block that a block brought along whole, if it is of this kind."""
    native = metadata.get(NATIVE_BLOCK) if metadata else None
    return dict(native) if isinstance(native, dict) and native.get("type") == kind else None


def _inline(source: AgSource) -> AgSource:
    """A ``data:`` address as the bytes that it holds."""
    if not isinstance(source, UrlSource) or not source.url.startswith("data:"):
        return source
    head, comma, data = source.url[len("data:") :].partition(",")
    media_type, base64_mark, rest = head.partition(";base64")
    if not comma or not base64_mark or rest:
        return source
    return Base64Source(media_type=media_type.partition(";")[0] or source.media_type or "text/plain", data=data)


def _image_source(source: AgSource) -> dict[str, Any] | None:
    if isinstance(source, FileSource):
        return _file_source(source)
    if isinstance(source, UrlSource):
        return _web_source(source)
    if source.media_type not in IMAGE_TYPES or _decoded(source.data) is None:
        return None
    return {"type": "base64", "media_type": source.media_type, "data": source.data}


def _document_source(source: AgSource) -> dict[str, Any] | None:
    if isinstance(source, FileSource):
        return _file_source(source)
    if isinstance(source, UrlSource):
        return _web_source(source) if source.media_type in (None, _PDF) else None
    decoded = _decoded(source.data)
    if decoded is None or not _is_document(source.media_type):
        return None
    if source.media_type == _PDF:
        return {"type": "base64", "media_type": _PDF, "data": source.data}
    try:
        return {"type": "text", "media_type": "text/plain", "data": decoded.decode()}
    except UnicodeDecodeError:
        return None


def _is_document(media_type: str | None) -> bool:
    return media_type is not None and (media_type == _PDF or media_type.startswith("text/"))


def _file_source(source: FileSource) -> dict[str, Any] | None:
    return {"type": "file", "file_id": source.file_id} if source.file_id else None


def _web_source(source: UrlSource) -> dict[str, Any] | None:
    return {"type": "url", "url": source.url} if source.url.startswith(("https://", "http://")) else None


def _decoded(data: str) -> bytes | None:
    """The bytes of a base64 text; None where it is none, or empty."""
    try:
        return base64.b64decode(data, validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _told(source: AgSource) -> str:
    """A source in words that name no content."""
    return f"got source {source.type}" + (f" of {source.media_type}" if source.media_type else "")
