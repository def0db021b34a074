"""Images, sounds and files in the forms that LangChain messages have them in, as blocks (spec §2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from agjson.adapters.langgraph._carry import FIELDS
from agjson.types import (
    AgBlock,
    AgProviderMeta,
    AgSource,
    AudioBlock,
    Base64Source,
    FileBlock,
    FileSource,
    ImageBlock,
    UrlSource,
)

__all__ = ["MEDIA_TYPES", "read_media", "source_of_url"]

Native: TypeAlias = Mapping[str, Any]

MEDIA_TYPES = frozenset(("image", "image_url", "audio", "input_audio", "video", "file", "media", "text-plain"))
"""Native block types that hold bytes or say where they are."""

# What a kind of media is where nothing says more.
_DEFAULTS = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/octet-stream",
    "text-plain": "text/plain",
}


def source_of_url(url: str) -> AgSource:
    """The source behind an address; the bytes themselves where it is a ``data:`` address in base64.

    Args:
        url: the address.
    """
    if url.startswith("data:"):
        head, comma, data = url[5:].partition(",")
        media_type, semicolon, coding = head.rpartition(";")
        if comma and semicolon and coding == "base64" and media_type and ";" not in media_type:
            return Base64Source(media_type=media_type, data=data)
    return UrlSource(url=url)


def read_media(part: Native) -> AgBlock | None:
    """The block of a native media block; None where it is not of a form that is known.

    Args:
        part: a native block whose type is one of `MEDIA_TYPES`.
    """
    kind = str(part["type"])
    said: tuple[str, ...] = ()
    if kind == "image_url":
        kind, said = "image", ("image_url",)
        inner = part.get("image_url")
        source = _of_image_url(inner)
        more = {name: value for name, value in inner.items() if name != "url"} if isinstance(inner, dict) else {}
        if more:
            part, said = {**part, "image_url": more}, ()
    elif kind == "input_audio":
        kind = "audio"
        inner = part.get("input_audio")
        data, form = (inner.get("data"), inner.get("format")) if isinstance(inner, dict) else (None, None)
        source = None
        if isinstance(data, str) and data and isinstance(form, str) and form:
            source = Base64Source(media_type=f"audio/{form}", data=data)
        said = ("input_audio",)
    else:
        source, said = _of_members(part, kind)
    if source is None:
        return None
    return _block(kind, source, part, said)


def _block(kind: str, source: AgSource, part: Native, said: tuple[str, ...]) -> AgBlock:
    media_type = source.media_type or ""
    if kind == "media":
        kind = media_type.partition("/")[0]
    name = part.get("filename")
    filename = name if isinstance(name, str) and name else None
    rest = {
        name: value
        for name, value in part.items()
        if name not in ("type", "index") and name not in said and value is not None and value != {}
    }
    bag = AgProviderMeta({FIELDS: rest}) if rest else None
    if kind == "image":
        return ImageBlock(source=source, provider_metadata=bag)
    if kind == "audio":
        return AudioBlock(source=source, provider_metadata=bag)
    return FileBlock(source=source, filename=filename, provider_metadata=bag)


def _of_image_url(value: object) -> AgSource | None:
    url = value.get("url") if isinstance(value, dict) else value
    return source_of_url(url) if isinstance(url, str) and url else None


def _of_members(part: Native, kind: str) -> tuple[AgSource | None, tuple[str, ...]]:
    """The source of LangChain's own form and its older ones, and the members that say it."""
    media_type = part.get("mime_type")
    told = media_type if isinstance(media_type, str) and media_type else None
    known = told or _DEFAULTS.get(kind, "application/octet-stream")
    for name in ("base64", "data"):
        if isinstance(data := part.get(name), str) and data and part.get("source_type") in (None, "base64"):
            return Base64Source(media_type=known, data=data), (name, "mime_type", "source_type")
    for name in ("url", "file_uri"):
        if isinstance(url := part.get(name), str) and url:
            return UrlSource(url=url, media_type=told), (name, "mime_type", "source_type")
    for name in ("file_id", "id"):
        wanted = name == "file_id" or part.get("source_type") == "id"
        if wanted and isinstance(id := part.get(name), str) and id:
            return FileSource(file_id=id, media_type=told), (name, "mime_type", "source_type")
    return None, ()
