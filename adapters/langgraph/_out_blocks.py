"""Blocks as content that every chat model of LangChain reads: what users and tools say, and plain words (spec §2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from agjson.adapters.anthropic._out_media import is_surface
from agjson.adapters.langgraph._carry import BLOCK, VENDOR
from agjson.adapters.langgraph._out_carried import carried_fields
from agjson.adapters.langgraph._out_media import as_text, media, resource
from agjson.adapters.langgraph._out_repairs import Provider, Repairs
from agjson.types import (
    AgBlock,
    CodeBlock,
    CodeResultBlock,
    DataBlock,
    JsonValue,
    ProviderRawBlock,
    ResourceBlock,
    ResourceLinkBlock,
    SearchResultBlock,
    TextBlock,
)
from agjson.wire import encode

__all__ = ["Native", "json_text", "spoken", "user_block"]

Native: TypeAlias = dict[str, Any]
_Writer: TypeAlias = Callable[[Any, "Provider | None", str, Repairs], "Native | None"]

_CACHING = ("anthropic", "bedrock", None)


def user_block(block: AgBlock, provider: Provider | None, path: str, repairs: Repairs) -> Native | None:
    """A block of a user message, a system message or a tool result; None where it was left out.

    Args:
        block: the block, no call and no result of a tool.
        provider: whose chat model reads it; None: not known.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    writer = _USER.get(block.type)
    if writer is None:
        repairs.unsupported(path, f"a block of type {block.type} has no place in what a user or a tool says")
        return None
    return writer(block, provider, path, repairs)


def _plain_text(block: TextBlock, path: str, repairs: Repairs) -> Native | None:
    """A text in words alone; None where it is empty."""
    if not block.text.strip():
        repairs.note("text_dropped", path, "a text must hold more than white space")
        return None
    return {"type": "text", "text": block.text}


def spoken(block: AgBlock, path: str, repairs: Repairs) -> Native | None:
    """A block that the assistant said, in words that any model reads; None where it was left out.

    Args:
        block: the block; no call, no result, no reasoning.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: words cannot say it.
    """
    if isinstance(block, TextBlock):
        return _plain_text(block, path, repairs)
    if isinstance(block, CodeBlock):
        return as_text(f"```{block.language.lower()}\n{block.code}\n```", path, repairs)
    if isinstance(block, CodeResultBlock):
        return as_text(block.output or block.outcome, path, repairs)
    if isinstance(block, ResourceLinkBlock):
        return as_text(block.uri, path, repairs)
    if isinstance(block, (SearchResultBlock, DataBlock)):
        repairs.note("block_dropped", path, f"a block of type {block.type} is no part of what the assistant said")
    elif isinstance(block, ResourceBlock) and is_surface(block):
        repairs.note("block_dropped", path, "a surface is not sent to a model")
    elif isinstance(block, ProviderRawBlock) or block.type == "compaction":
        repairs.note("block_dropped", path, "what one provider made means nothing to another")
    else:
        repairs.unsupported(path, f"a block of type {block.type} has no place in what the assistant says")
    return None


def json_text(value: JsonValue) -> str:
    """A JSON value as the text that a model reads.

    Args:
        value: the value.

    Raises:
        EncodeError: it is none.
    """
    return encode(value).decode()


def _text(block: TextBlock, provider: Provider | None, path: str, repairs: Repairs) -> Native | None:
    native = _plain_text(block, path, repairs)
    if native is None:
        return None
    fields = carried_fields(block.provider_metadata)
    if provider not in _CACHING and fields.pop("cache_control", None) is not None:
        repairs.note("fields_dropped", path, "another provider's mark for its cache means nothing to this one")
    return {**fields, **native}


def _media(block: Any, provider: Provider | None, path: str, repairs: Repairs) -> Native | None:
    whole = block.provider_metadata.get(BLOCK) if block.provider_metadata else None
    if provider is None and isinstance(whole, dict) and isinstance(whole.get("type"), str):
        return dict(cast(Native, whole))
    return media(block, provider, path, repairs)


def _words(block: AgBlock, provider: Provider | None, path: str, repairs: Repairs) -> Native | None:
    return spoken(block, path, repairs)


def _search_result(block: SearchResultBlock, provider: Provider | None, path: str, repairs: Repairs) -> Native | None:
    if block.opaque is not None:
        repairs.note("opaque_dropped", path, "a search result is sealed for the call that it belongs to")
    return as_text("\n".join(filter(None, (block.title, block.url))), path, repairs)


def _data(block: DataBlock, provider: Provider | None, path: str, repairs: Repairs) -> Native | None:
    if block.transient:
        repairs.note("block_dropped", path, "transient data is shown and not kept")
        return None
    return as_text(json_text(block.data), path, repairs)


def _raw(block: ProviderRawBlock, provider: Provider | None, path: str, repairs: Repairs) -> Native | None:
    native = block.raw if isinstance(block.raw, dict) and isinstance(block.raw.get("type"), str) else None
    own = provider is None if block.vendor == VENDOR else provider is None or provider.startswith(block.vendor)
    if native is None or not own:
        reason = "what it carries is no native block" if own else "another provider's native block means nothing here"
        repairs.note("block_dropped", path, reason)
        return None
    return dict(native)


_USER: dict[str, _Writer] = {
    "text": _text,
    "image": _media,
    "audio": _media,
    "document": _media,
    "file": _media,
    "resource": resource,
    "resource-link": _words,
    "code": _words,
    "code-result": _words,
    "search-result": _search_result,
    "data": _data,
    "provider-raw": _raw,
}
