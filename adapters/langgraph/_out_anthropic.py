"""What Claude said, and is to read, as ChatAnthropic keeps it: native content blocks (spec §10 items 3, 13).

The tables are those of the Anthropic adapter: LangChain stores the blocks of the Messages API as they are.
"""

from __future__ import annotations

from agjson.adapters.anthropic._out_blocks import assistant_block
from agjson.adapters.anthropic._out_blocks import user_block as native_user_block
from agjson.adapters.anthropic._out_tools import client_call, is_server_call, server_call, server_result
from agjson.adapters.langgraph._carry import VENDOR
from agjson.adapters.langgraph._out_answer import Answer
from agjson.adapters.langgraph._out_blocks import Native
from agjson.adapters.langgraph._out_carried import carried_fields, whole_block
from agjson.adapters.langgraph._out_repairs import Repairs
from agjson.types import AgBlock, AudioBlock, ProviderRawBlock, ToolCallBlock, ToolResultBlock

__all__ = ["anthropic_user_block", "write_anthropic"]

_KEPT = ("cache_control", "citations", "context", "title")


def write_anthropic(block: AgBlock, path: str, answer: Answer, repairs: Repairs) -> None:
    """Add a block to an answer for ChatAnthropic.

    Args:
        block: a block that the assistant said.
        path: its JSON path.
        answer: the answer.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    notes = repairs.anthropic()
    if isinstance(block, ToolCallBlock):
        id = answer.call_id
        if is_server_call(block):
            answer.hosted[block.tool_call_id] = (block, id)
            answer.content.append(server_call(block, id, path, notes))
        elif block.provider_executed:
            repairs.note("server_call_dropped", path, "another provider ran this call, with tools of its own")
        elif answer.add_call(block, id, answer.call_name) is not None:
            answer.content.append({**client_call(block, id, path, notes), "name": answer.call_name})
        else:
            answer.content.append({"type": "tool_use", "id": id, "name": answer.call_name, "input": {}})
    elif isinstance(block, ToolResultBlock):
        call = answer.hosted.get(block.tool_call_id)
        native = None if call is None else _standard_result(block, call[1]) or server_result(block, *call)
        if native is not None:
            answer.content.append(native)
        elif call is not None:
            answer.content = [part for part in answer.content if part.get("id") != call[1]]
            repairs.note("server_call_dropped", path, "the provider's form of its result is gone")
    else:
        native = assistant_block(block, path, notes)
        if native is not None:
            answer.content.append(_with_fields(block, native))
    repairs.take(notes)


def anthropic_user_block(block: AgBlock, path: str, repairs: Repairs) -> Native | None:
    """A block of a user message, a system message or a tool result for ChatAnthropic; None where it was left out.

    Args:
        block: the block.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    if isinstance(block, AudioBlock):
        repairs.unsupported(path, "the API takes no sound")
        return None
    if isinstance(block, ProviderRawBlock) and block.vendor == VENDOR:
        repairs.note("block_dropped", path, "the provider has no such block")
        return None
    notes = repairs.anthropic()
    native = native_user_block(block, path, notes)
    repairs.take(notes)
    return None if native is None else _with_fields(block, native)


def _standard_result(block: ToolResultBlock, id: str) -> Native | None:
    """The result of a server tool that LangChain kept in a form of its own, as the provider sent it."""
    whole = whole_block(block)
    extras = whole.get("extras") if whole is not None else None
    kind = extras.get("block_type") if isinstance(extras, dict) else None
    if whole is None or not isinstance(kind, str):
        return None
    return {"type": kind, "tool_use_id": id, "content": whole.get("output")}


def _with_fields(block: AgBlock, native: Native) -> Native:
    """With what LangChain kept beside a standard block, where the API has a field for it."""
    fields = carried_fields(getattr(block, "provider_metadata", None))
    extras = fields.get("extras")
    held = {**(extras if isinstance(extras, dict) else {}), **fields}
    kept = {name: held[name] for name in _KEPT if held.get(name) is not None and name not in native}
    return {**native, **kept}
