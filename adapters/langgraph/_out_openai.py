"""What an OpenAI model said, as ChatOpenAI keeps it: items of the Responses API, or words and calls (§10 item 4)."""

from __future__ import annotations

import json
from typing import cast

from agjson.adapters.langgraph._carry import PARTS, VENDOR
from agjson.adapters.langgraph._out_answer import Answer
from agjson.adapters.langgraph._out_blocks import Native, spoken
from agjson.adapters.langgraph._out_carried import carried_fields, hosted_call, is_host_item, whole_block
from agjson.adapters.langgraph._out_repairs import Repairs
from agjson.types import (
    AgBlock,
    CompactionBlock,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["reasoning_item", "write_any", "write_chat", "write_responses"]

_OPENAI = "openai"


def write_responses(block: AgBlock, path: str, answer: Answer, repairs: Repairs) -> None:
    """Add a block to an answer for ChatOpenAI with the Responses API.

    Args:
        block: a block that the assistant said.
        path: its JSON path.
        answer: the answer.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    if isinstance(block, ReasoningBlock):
        native = _reasoning(block, path, repairs)
    elif isinstance(block, ToolCallBlock):
        native = _call(block, path, answer, repairs)
    elif isinstance(block, ToolResultBlock):
        # The item of a call that the provider ran holds its result too; in LangChain's own form it stands apart.
        native = whole_block(block) if answer.own else None
    elif isinstance(block, CompactionBlock):
        native = _compaction(block, path, repairs)
    elif isinstance(block, ImageBlock):
        native = _generated(block, path, answer, repairs)
    elif isinstance(block, ProviderRawBlock) and block.vendor == _OPENAI:
        native = _raw(block, path, repairs)
    else:
        native = _said(block, path, answer, repairs)
    if native is not None:
        answer.content.append(native)


def write_chat(block: AgBlock, path: str, answer: Answer, repairs: Repairs) -> None:
    """Add a block to an answer for ChatOpenAI with the Chat Completions API.

    Args:
        block: a block that the assistant said.
        path: its JSON path.
        answer: the answer.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    if isinstance(block, ReasoningBlock):
        repairs.note("reasoning_dropped", path, "the chat model sends no reasoning back")
    elif isinstance(block, ToolCallBlock):
        if block.provider_executed:
            repairs.note("server_call_dropped", path, "a provider ran this call, with tools of its own")
            return
        if block.signature is not None:
            repairs.note("opaque_dropped", path, "another provider's signature of the call means nothing to this one")
        answer.add_call(block, answer.call_id, answer.call_name)
    elif not isinstance(block, ToolResultBlock):
        native = _refusal(block) if answer.own else None
        if native is None:
            native = spoken(block, path, repairs)
        if native is not None:
            answer.content.append(native)


def write_any(block: AgBlock, path: str, answer: Answer, repairs: Repairs) -> None:
    """Add a block to an answer for a chat model that is not known, in words and calls.

    Args:
        block: a block that the assistant said.
        path: its JSON path.
        answer: the answer.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    if isinstance(block, ProviderRawBlock) and block.vendor == VENDOR and isinstance(block.raw, dict):
        answer.content.append(dict(block.raw))
        return
    before = len(answer.content)
    write_chat(block, path, answer, repairs)
    if isinstance(block, TextBlock) and len(answer.content) > before:
        answer.content[-1] = {**carried_fields(block.provider_metadata), **answer.content[-1]}


def _said(block: AgBlock, path: str, answer: Answer, repairs: Repairs) -> Native | None:
    if not answer.own:
        return spoken(block, path, repairs)
    refusal = _refusal(block)
    if refusal is not None:
        return refusal
    fields = _flat(carried_fields(block.provider_metadata)) if isinstance(block, TextBlock) else {}
    if isinstance(block, TextBlock) and not block.text and fields.get("id"):
        # The item is known to the provider, and what follows it may depend on it.
        return {"type": "text", "text": "", **fields}
    native = spoken(block, path, repairs)
    return None if native is None else {**native, **fields}


def _refusal(block: AgBlock) -> Native | None:
    native = whole_block(block)
    return {"type": "refusal", "refusal": native["refusal"]} if native and native.get("type") == "refusal" else None


def _flat(fields: Native) -> Native:
    """Native fields, those that LangChain's own form keeps apart among them."""
    extras = fields.pop("extras", None)
    return {**(extras if isinstance(extras, dict) else {}), **fields}


def _reasoning(block: ReasoningBlock, path: str, repairs: Repairs) -> Native | None:
    opaque = block.opaque
    providers = {block.provider, None if opaque is None else opaque.provider} - {None, _OPENAI}
    if providers:
        repairs.note("reasoning_dropped", path, "another provider's reasoning means nothing to this one")
        return None
    if not block.item_id and (opaque is None or not opaque.value):
        repairs.note("reasoning_dropped", path, "reasoning without an item or its encrypted form is refused")
        return None
    return reasoning_item(block)


def reasoning_item(block: ReasoningBlock) -> Native:
    """An item of reasoning of the Responses API.

    Args:
        block: reasoning that such a model made.
    """
    opaque = block.opaque
    native: Native = {**_flat(carried_fields(block.provider_metadata)), "type": "reasoning", "summary": _summary(block)}
    if block.item_id:
        native["id"] = block.item_id
    if opaque is not None and opaque.value:
        native["encrypted_content"] = opaque.value
    return native


def _summary(block: ReasoningBlock) -> list[Native]:
    text = block.text or ""
    lengths = block.provider_metadata.get(PARTS) if block.provider_metadata else None
    parts = [text] if text else []
    if isinstance(lengths, list) and all(isinstance(length, int) and length >= 0 for length in lengths):
        sizes = cast("list[int]", lengths)
        if sum(sizes) == len(text):
            parts, at = [], 0
            for size in sizes:
                parts.append(text[at : at + size])
                at += size
    return [{"type": "summary_text", "text": part} for part in parts]


def _call(block: ToolCallBlock, path: str, answer: Answer, repairs: Repairs) -> Native | None:
    whole = whole_block(block)
    if block.provider_executed:
        native = hosted_call(block) if answer.own else None
        if native is None:
            repairs.note("server_call_dropped", path, "another provider ran this call, with tools of its own")
        return native
    if block.signature is not None:
        repairs.note("opaque_dropped", path, "another provider's signature of the call means nothing to this one")
    id = answer.call_id
    if answer.own and is_host_item(block):
        # LangChain lists no such call among those of tools, and would send it twice.
        return whole
    args = answer.add_call(block, id, answer.call_name)
    if not answer.own:
        return None
    if whole is not None:
        return {**whole, "call_id": id}
    # As the API writes it itself, so that a cached prompt is the same again.
    text = block.input if args is None else json.dumps(args, ensure_ascii=False, separators=(",", ":"))
    item: Native = {"type": "function_call", "name": answer.call_name, "arguments": text, "call_id": id}
    if block.item_id:
        item["id"] = block.item_id
    return {**_flat(carried_fields(block.provider_metadata)), **item}


def _compaction(block: CompactionBlock, path: str, repairs: Repairs) -> Native | None:
    opaque = block.opaque
    providers = {block.provider, None if opaque is None else opaque.provider} - {None, _OPENAI}
    whole = whole_block(block)
    if not providers and whole is not None and whole["type"] == "compaction":
        return whole
    if providers or opaque is None or not opaque.value:
        repairs.note("block_dropped", path, "another provider's compaction means nothing to this one")
        return None
    return {"type": "compaction", "encrypted_content": opaque.value}


def _generated(block: ImageBlock, path: str, answer: Answer, repairs: Repairs) -> Native | None:
    whole = whole_block(block)
    if whole is None or not answer.own:
        repairs.unsupported(path, "an image has no place in what the assistant says")
        return None
    if block.source.type == "base64":
        whole.setdefault("result", block.source.data)
    return whole


def _raw(block: ProviderRawBlock, path: str, repairs: Repairs) -> Native | None:
    if isinstance(block.raw, dict) and isinstance(block.raw.get("type"), str):
        return dict(block.raw)
    repairs.note("block_dropped", path, "what it carries is no native block")
    return None
