"""Native content blocks as neutral blocks, so that `messages_to_native` gives the same blocks back (spec §2, §8.0)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias, cast

from agjson.adapters.anthropic._carry import (
    CALLER,
    CITATIONS,
    COMPACTION,
    FIELDS,
    NATIVE_BLOCK,
    STRING,
    TOOLSET,
    VENDOR,
)
from agjson.adapters.anthropic._citations import read_citations
from agjson.adapters.anthropic._out_media import document, file, image
from agjson.adapters.anthropic._repair import Repairs, ReplayOptions
from agjson.adapters.anthropic._server_tools import is_server_result, server_result
from agjson.types import (
    AgBlock,
    AgOpaque,
    AgProviderMeta,
    AgSource,
    Base64Source,
    CompactionBlock,
    DocumentBlock,
    FileBlock,
    FileSource,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    SearchResultBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)

__all__ = ["block_from_native", "string_block"]

Native: TypeAlias = dict[str, Any]


def block_from_native(native: Native) -> AgBlock:
    """The neutral form of a block; `ProviderRawBlock` for one that has none.

    Args:
        native: a native block as plain data, of a request or a response, with a ``type``.
    """
    if is_server_result(native):
        return ToolResultBlock(tool_call_id=native["tool_use_id"], **server_result(native))
    reader = _READERS.get(native["type"])
    block = None if reader is None else reader(native)
    return ProviderRawBlock(vendor=VENDOR, raw=native) if block is None else block


def string_block(text: str) -> TextBlock:
    """A text that is the whole content of a message or result, as a plain string.

    Args:
        text: the string.
    """
    return TextBlock(text=text, provider_metadata=_bag({STRING: True}))


def _bag(values: Mapping[str, Any]) -> AgProviderMeta | None:
    return cast(AgProviderMeta, dict(values)) if values else None


def _rest(native: Native, said: Collection[str], **bag: Any) -> AgProviderMeta | None:
    """A bag with the fields that the neutral form does not say."""
    fields = {name: value for name, value in native.items() if name != "type" and name not in said}
    return _bag({**bag, FIELDS: fields} if fields else bag)


def _text(native: Native) -> AgBlock | None:
    text, citations = native.get("text"), native.get("citations")
    if not isinstance(text, str):
        return None
    if not isinstance(citations, list) or not citations:
        return TextBlock(text=text, provider_metadata=_rest(native, ("text",)))
    bag = _rest(native, ("text", "citations"), **{CITATIONS: citations})
    return TextBlock(text=text, citations=read_citations(citations) or None, provider_metadata=bag)


def _thinking(native: Native) -> AgBlock | None:
    text, signature = native.get("thinking"), native.get("signature")
    if not isinstance(text, str):
        return None
    sealed = isinstance(signature, str) and bool(signature)
    opaque = AgOpaque(kind="signature", value=cast(str, signature), provider=VENDOR) if sealed else None
    bag = _rest(native, ("thinking", "signature"))
    return ReasoningBlock(text=text, opaque=opaque, provider=VENDOR, provider_metadata=bag)


def _redacted(native: Native) -> AgBlock | None:
    data = native.get("data")
    if not isinstance(data, str) or not data:
        return None
    opaque = AgOpaque(kind="redacted", value=data, provider=VENDOR)
    return ReasoningBlock(text="", opaque=opaque, provider=VENDOR, provider_metadata=_rest(native, ("data",)))


def _call(native: Native) -> AgBlock | None:
    id, name = native.get("id"), native.get("name")
    if not isinstance(id, str) or not isinstance(name, str) or "input" not in native:
        return None
    mcp = native["type"] == "mcp_tool_use"
    said = ["id", "name", "input"]
    bag: dict[str, Any] = {}
    server = native.get("server_name") if mcp else None
    if mcp:
        if not isinstance(server, str):
            return None
        said.append("server_name")
    else:
        for key, kind in ((CALLER, dict), (TOOLSET, str)):
            if isinstance(native.get(key), kind):
                bag[key] = native[key]
                said.append(key)
    return ToolCallBlock(
        tool_call_id=id,
        name=name,
        input=native["input"],
        server_name=server,
        provider_executed=None if native["type"] == "tool_use" else True,
        provider_metadata=_rest(native, said, **bag),
    )


def _result(native: Native) -> AgBlock | None:
    """The result of a client's tool."""
    id, content, failed = native.get("tool_use_id"), native.get("content"), native.get("is_error")
    if not isinstance(id, str):
        return None
    said = ["tool_use_id"]
    blocks: list[AgBlock] = []
    if isinstance(content, str) and content.strip():
        blocks = [string_block(content)]
    elif isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content):
        blocks = [block_from_native(part) for part in content]
    elif content is not None and content != [] and not isinstance(content, str):
        return None
    if blocks:
        said.append("content")
    if isinstance(failed, bool):
        said.append("is_error")
    return ToolResultBlock(
        tool_call_id=id,
        content=blocks,
        outcome="error" if failed is True else "ok",
        is_error=failed if isinstance(failed, bool) else None,
        provider_metadata=_rest(native, said),
    )


def _image(native: Native) -> AgBlock | None:
    source = _source(native.get("source"))
    if source is None:
        return None
    block = ImageBlock(source=source, provider_metadata=_rest(native, ("source",)))
    return block if _same(image, block, native) else None


def _document(native: Native) -> AgBlock | None:
    held, title = native.get("source"), native.get("title")
    titled = isinstance(title, str) and bool(title)
    said = ("source", "title") if titled else ("source",)
    source = _source(held)
    if source is not None:
        block = DocumentBlock(source=source, title=title if titled else None, provider_metadata=_rest(native, said))
        return block if _same(document, block, native) else None
    text = _chunks(held)
    if text is None:
        return None
    return DocumentBlock(
        source=_text_source(text), title=title if titled else None, provider_metadata=_bag({NATIVE_BLOCK: native})
    )


def _chunks(source: object) -> str | None:
    """The text of a document that comes in chunks, which citations count."""
    if not isinstance(source, dict) or source.get("type") != "content":
        return None
    content = source.get("content")
    if isinstance(content, str):
        return content or None
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None


def _source(native: object) -> AgSource | None:
    """The source, if the neutral form says all of it."""
    match native:
        case {"type": "base64", "media_type": str(media_type), "data": str(data), **rest} if not rest:
            return Base64Source(media_type=media_type, data=data)
        case {"type": "text", "media_type": "text/plain", "data": str(data), **rest} if not rest:
            return _text_source(data)
        case {"type": "url", "url": str(url), **rest} if not rest:
            return UrlSource(url=url)
        case {"type": "file", "file_id": str(file_id), **rest} if not rest:
            return FileSource(file_id=file_id)
        case _:
            return None


def _text_source(text: str) -> Base64Source:
    return Base64Source(media_type="text/plain", data=base64.b64encode(text.encode("utf-8", "replace")).decode())


def _search_result(native: Native) -> AgBlock | None:
    """A search result that a request offers for citation: its text rides in the native block alone."""
    source, title = native.get("source"), native.get("title")
    return SearchResultBlock(
        url=source if isinstance(source, str) and "://" in source else None,
        title=title if isinstance(title, str) else None,
        meta={NATIVE_BLOCK: native},
    )


def _upload(native: Native) -> AgBlock | None:
    file_id = native.get("file_id")
    if not isinstance(file_id, str):
        return None
    block = FileBlock(source=FileSource(file_id=file_id), provider_metadata=_rest(native, ("file_id",)))
    return block if _same(file, block, native) else None


def _compaction(native: Native) -> AgBlock | None:
    text = native.get("content")
    opaque: AgOpaque | None = None
    for name, kind in (("encrypted_content", "ciphertext"), ("signature", "signature")):
        value = native.get(name)
        if opaque is None and isinstance(value, str) and value:
            opaque = AgOpaque(kind=cast(Any, kind), value=value, provider=VENDOR)
    return CompactionBlock(
        text=text if isinstance(text, str) else None, opaque=opaque, provider=VENDOR, meta={COMPACTION: native}
    )


def _same(write: Callable[[Any, str, Repairs], Native | None], block: AgBlock, native: Native) -> bool:
    """Whether the neutral form gives the native one back."""
    return write(block, "$", Repairs(ReplayOptions(unsupported="drop"))) == native


_READERS: dict[str, Callable[[Native], AgBlock | None]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
    "tool_result": _result,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "container_upload": _upload,
    "compaction": _compaction,
}
