"""Neutral blocks as native content blocks, calls and results aside (spec §2, §8.0 item 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from agjson.adapters.anthropic._api import MODELLED_TYPES, whole_number
from agjson.adapters.anthropic._carry import CITATIONS, COMPACTION, NATIVE_BLOCK, STRING, VENDOR
from agjson.adapters.anthropic._out_media import carried_fields, document, file, image, is_surface, resource
from agjson.adapters.anthropic._repair import Repairs
from agjson.types import (
    AgBlock,
    AgCitation,
    BlockCitation,
    CharCitation,
    CodeBlock,
    CodeResultBlock,
    CompactionBlock,
    DataBlock,
    FileBlock,
    FileSource,
    JsonValue,
    PageCitation,
    ProviderRawBlock,
    ReasoningBlock,
    ResourceBlock,
    ResourceLinkBlock,
    SearchResultBlock,
    TextBlock,
    UrlCitation,
)
from agjson.wire import encode

__all__ = ["assistant_block", "is_foreign", "is_string", "json_text", "plain_text", "system_block", "user_block"]

Native: TypeAlias = dict[str, Any]
_Writer: TypeAlias = Callable[[Any, str, Repairs], Native | None]

_WEB = "web_search_result_location"


def user_block(block: AgBlock, path: str, repairs: Repairs) -> Native | None:
    """A block of a user message or of a tool result; None where it was left out.

    Args:
        block: the block, no result of a tool.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: a user message cannot hold it.
    """
    writer = _USER.get(block.type)
    if writer is None:
        repairs.unsupported(path, f"a block of type {block.type} has no place in what a user or a tool says")
        return None
    return writer(block, path, repairs)


def assistant_block(block: AgBlock, path: str, repairs: Repairs) -> Native | None:
    """A block of an assistant message; None where it was left out.

    Args:
        block: the block, no call and no result of a tool.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: an assistant message cannot hold it.
    """
    writer = _ASSISTANT.get(block.type)
    if writer is None:
        repairs.unsupported(path, f"a block of type {block.type} has no place in what the assistant says")
        return None
    return writer(block, path, repairs)


def system_block(block: AgBlock, path: str, repairs: Repairs) -> Native | None:
    """A block of a system message or prompt, which holds text alone; None where it was left out.

    Args:
        block: the block.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: a system message cannot hold it.
    """
    if isinstance(block, TextBlock):
        return _text(block, path, repairs)
    if isinstance(block, ProviderRawBlock):
        return _raw(block, path, repairs)
    repairs.unsupported(path, f"a block of type {block.type} has no place in a system message")
    return None


def is_string(block: AgBlock) -> bool:
    """Whether a text stood alone as a plain string where it came from.

    Args:
        block: the block.
    """
    metadata = block.provider_metadata if isinstance(block, TextBlock) else None
    return metadata is not None and metadata.get(STRING) is True


def plain_text(text: str) -> Native:
    """A native text block.

    Args:
        text: a text with something in it.
    """
    return {"type": "text", "text": text}


def is_foreign(*providers: str | None) -> bool:
    """Whether a value was made by another provider; one that nobody signed counts as ours.

    Args:
        *providers: the names of the provider that stand beside the value, absent ones as None.
    """
    return any(provider is not None and provider != VENDOR for provider in providers)


def _text(block: TextBlock, path: str, repairs: Repairs) -> Native | None:
    if not block.text.strip():
        repairs.note("text_dropped", path, "a text must hold more than white space")
        return None
    native = {**carried_fields(block.provider_metadata), **plain_text(block.text)}
    citations = _citations(block, path, repairs)
    if citations:
        native["citations"] = citations
    return native


def _citations(block: TextBlock, path: str, repairs: Repairs) -> list[Native]:
    carried = block.provider_metadata.get(CITATIONS) if block.provider_metadata else None
    if isinstance(carried, list):
        natives = [dict(native) if isinstance(native, dict) and _is_block(native) else None for native in carried]
    else:
        natives = [_citation(citation) for citation in block.citations or ()]
    kept: list[Native] = []
    for index, native in enumerate(natives):
        place = f"{path}.citations[{index}]"
        if native is None:
            repairs.note("citation_dropped", place, "the citation has no native form")
        elif native["type"] != _WEB and not repairs.options.document_citations:
            repairs.note("citation_dropped", place, "the citation points into documents of the history as it was")
        else:
            # The response names the file even where there is none; the request knows the field by no null.
            if native.get("file_id", "") is None:
                del native["file_id"]
            kept.append(native)
    return kept


def _citation(citation: AgCitation) -> Native | None:
    """A citation that did not bring its native form along."""
    if isinstance(citation, UrlCitation):
        if not citation.encrypted_index:
            return None
        return {
            "type": _WEB,
            "url": citation.url,
            "title": citation.title,
            "cited_text": citation.cited_text,
            "encrypted_index": citation.encrypted_index,
        }
    native: Native = {"cited_text": citation.cited_text}
    if isinstance(citation, BlockCitation) and citation.source is not None:
        native["source"], native["title"] = citation.source, citation.title
        fields = {"search_result_index": citation.document_index} | _block_range(citation)
        return _with_indexes("search_result_location", native, fields)
    native["document_title"] = citation.title
    if isinstance(citation, CharCitation) and citation.unit in (None, "char") and citation.bounds != "[start,end]":
        span = {"start_char_index": citation.start_char_index, "end_char_index": citation.end_char_index}
        return _with_indexes("char_location", native, {"document_index": citation.document_index} | span)
    if isinstance(citation, PageCitation):
        span = {"start_page_number": citation.start_page, "end_page_number": citation.end_page}
        return _with_indexes("page_location", native, {"document_index": citation.document_index} | span)
    if isinstance(citation, BlockCitation):
        fields = {"document_index": citation.document_index} | _block_range(citation)
        return _with_indexes("content_block_location", native, fields)
    return None


def _block_range(citation: BlockCitation) -> dict[str, int | float]:
    return {"start_block_index": citation.start_block_index, "end_block_index": citation.end_block_index}


def _with_indexes(kind: str, native: Native, indexes: Mapping[str, int | float]) -> Native | None:
    whole = {name: whole_number(value) for name, value in indexes.items() if value >= 0}
    if len(whole) < len(indexes) or None in whole.values():
        return None
    return {"type": kind, **native, **whole}


def _reasoning(block: ReasoningBlock, path: str, repairs: Repairs) -> Native | None:
    opaque = block.opaque
    if is_foreign(block.provider, None if opaque is None else opaque.provider):
        repairs.note("reasoning_dropped", path, "another provider's reasoning means nothing to this one")
    elif opaque is None or not opaque.value:
        repairs.note("reasoning_dropped", path, "reasoning without a signature is refused by the provider")
    elif opaque.kind == "signature":
        thought = {"type": "thinking", "thinking": block.text or "", "signature": opaque.value}
        return {**carried_fields(block.provider_metadata), **thought}
    elif opaque.kind == "redacted":
        return {**carried_fields(block.provider_metadata), "type": "redacted_thinking", "data": opaque.value}
    else:
        repairs.note("reasoning_dropped", path, f"the provider takes no reasoning of kind {opaque.kind}")
    return None


def _compaction(block: CompactionBlock, path: str, repairs: Repairs) -> Native | None:
    opaque = block.opaque
    carried = block.meta.get(COMPACTION) if block.meta else None
    if is_foreign(block.provider, None if opaque is None else opaque.provider):
        repairs.note("block_dropped", path, "another provider's compaction means nothing to this one")
        return None
    if isinstance(carried, dict):
        native = {name: value for name, value in carried.items() if value is not None}
    else:
        native = {"content": block.text} if block.text else {}
        if opaque is not None and opaque.value:
            native["signature" if opaque.kind == "signature" else "encrypted_content"] = opaque.value
    # An empty text is refused; null stands for a compaction that failed and is ignored.
    return {**native, "type": "compaction", "content": native.get("content") or None}


def _search_result(block: SearchResultBlock, path: str, repairs: Repairs) -> Native | None:
    carried = block.meta.get(NATIVE_BLOCK) if block.meta else None
    if isinstance(carried, dict) and carried.get("type") == "search_result":
        return dict(carried)
    if block.opaque is not None:
        repairs.note("opaque_dropped", path, "a search result is sealed for the call that it belongs to")
    return _as_text("\n".join(filter(None, (block.title, block.url))), path, repairs)


def _resource_link(block: ResourceLinkBlock, path: str, repairs: Repairs) -> Native | None:
    return _as_text(block.uri, path, repairs)


def _code(block: CodeBlock, path: str, repairs: Repairs) -> Native | None:
    return _as_text(f"```{block.language.lower()}\n{block.code}\n```", path, repairs)


def _code_result(block: CodeResultBlock, path: str, repairs: Repairs) -> Native | None:
    return _as_text(block.output or block.outcome, path, repairs)


def _data(block: DataBlock, path: str, repairs: Repairs) -> Native | None:
    if block.transient:
        repairs.note("block_dropped", path, "transient data is shown and not kept")
        return None
    return _as_text(json_text(block.data), path, repairs)


def _as_text(text: str, path: str, repairs: Repairs) -> Native | None:
    if not text.strip():
        repairs.note("text_dropped", path, "the block says nothing")
        return None
    repairs.note("as_text", path, "the provider has no such block; it goes as text")
    return plain_text(text)


def json_text(value: JsonValue) -> str:
    """A JSON value as the text that a model reads.

    Args:
        value: the value.

    Raises:
        EncodeError: it is none.
    """
    return encode(value).decode()


def _raw(block: ProviderRawBlock, path: str, repairs: Repairs) -> Native | None:
    if block.vendor != VENDOR:
        repairs.note("block_dropped", path, "another provider's native block means nothing to this one")
        return None
    kind = block.raw.get("type") if isinstance(block.raw, dict) else None
    if not isinstance(kind, str) or not kind or kind in MODELLED_TYPES or kind.endswith("_tool_result"):
        repairs.note("block_dropped", path, "what it carries is no well-formed native block")
        return None
    return dict(cast(Native, block.raw))


def _is_block(native: Mapping[str, Any]) -> bool:
    return isinstance(native.get("type"), str) and bool(native["type"])


def _upload(block: FileBlock, path: str, repairs: Repairs) -> Native | None:
    if isinstance(block.source, FileSource):
        native = file(block, path, repairs)
        if native is not None and native["type"] == "container_upload":
            return native
    repairs.unsupported(path, "a file has no place in what the assistant says, unless it lies in the container")
    return None


def _surface(block: ResourceBlock, path: str, repairs: Repairs) -> Native | None:
    if is_surface(block):
        repairs.note("block_dropped", path, "a surface is not sent to a model")
    else:
        repairs.unsupported(path, "a resource has no place in what the assistant says")
    return None


def _not_said(block: SearchResultBlock | DataBlock, path: str, repairs: Repairs) -> None:
    """What was shown beside the assistant's words, and is none of them."""
    repairs.note("block_dropped", path, f"a block of type {block.type} is no part of what the assistant said")


_USER: dict[str, _Writer] = {
    "text": _text,
    "image": image,
    "document": document,
    "file": file,
    "resource": resource,
    "resource-link": _resource_link,
    "code": _code,
    "code-result": _code_result,
    "search-result": _search_result,
    "data": _data,
    "provider-raw": _raw,
}

_ASSISTANT: dict[str, _Writer] = {
    "text": _text,
    "reasoning": _reasoning,
    "compaction": _compaction,
    "file": _upload,
    "resource": _surface,
    "code": _code,
    "code-result": _code_result,
    "search-result": cast(_Writer, _not_said),
    "data": cast(_Writer, _not_said),
    "provider-raw": _raw,
}
