"""Tool calls and their results (spec §5 tool.*, §2.2)."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from agjson.fold._blocks import merge_keys
from agjson.fold._entities import Message
from agjson.fold._state import Fold, Handlers, Park, quoted
from agjson.fold._streams import CallStream
from agjson.types import (
    UNSET,
    AgMessage,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    ToolStart,
)

__all__ = ["TOOL_HANDLERS"]

_OPTIONAL = (
    "outcome",
    "error_text",
    "error_code",
    "provider_metadata",
    "tool_metadata",
    "dynamic",
    "pending_input",
    "is_error",
    "meta",
)
_OPAQUE = ("structured_content", "ui_data", "side_data")


def _tool_start(fold: Fold, event: ToolStart) -> None:
    message = fold.target(event, event.candidate_index)
    call_id = event.tool_call_id
    if call_id in fold.calls:
        if not fold.tolerant:
            raise Park("INV-BLOCK", f"there is already a tool call {quoted(call_id)}")
        call_id = _free_id(fold, call_id)
        fold.report(event, "INV-BLOCK", f"tool call {quoted(event.tool_call_id)} was there already; named {call_id!r}")
    block = ToolCallBlock(
        tool_call_id=call_id,
        name=event.name,
        input={},
        server_name=event.server_name,
        provider_executed=event.provider_executed,
        title=event.title,
        tool_metadata=event.tool_metadata,
        item_id=event.item_id,
        ui_visibility=event.ui_visibility,
        provider_metadata=event.provider_metadata,
    )
    call = CallStream(call_id, message, fold.add_block(message, block), open=True, alias=event.tool_call_id)
    fold.add_call(call)
    message.begin(call)


def _free_id(fold: Fold, call_id: str) -> str:
    count = fold.repeats.get(call_id, 1) + 1
    while f"{call_id}#{count}" in fold.calls:
        count += 1
    fold.repeats[call_id] = count
    return f"{call_id}#{count}"


def _tool_args_delta(fold: Fold, event: ToolArgsDelta) -> None:
    """Fragments never become input, so they are only checked for a call that takes them."""
    call = fold.calls.get(event.tool_call_id)
    if call is None or not call.open:
        raise _refused(event.tool_call_id, call)


def _tool_args_assembled(fold: Fold, event: ToolArgsAssembled) -> None:
    call = fold.calls.get(event.tool_call_id)
    if call is None:
        raise _refused(event.tool_call_id, call)
    block = cast(ToolCallBlock, call.message.content[call.index])
    changes: dict[str, Any] = {"input": event.input}
    if event.signature is not None:
        changes["signature"] = event.signature
    if event.title is not None:
        changes["title"] = event.title
    if event.tool_metadata is not None:
        changes["tool_metadata"] = {**(block.tool_metadata or {}), **event.tool_metadata}
    if event.provider_metadata is not None:
        changes["provider_metadata"] = merge_keys(block.provider_metadata, event.provider_metadata)
    call.message.put(call.index, replace(block, **changes))
    fold.touch(call.message)


def _refused(call_id: str, call: CallStream | None) -> Park:
    if call is None:
        return Park("INV-OWNER", f"there is no tool call {quoted(call_id)}")
    return Park("INV-MSG", f"the message of tool call {quoted(call_id)} takes no more arguments")


def _tool_done(fold: Fold, event: ToolDone) -> None:
    call = fold.calls.get(event.tool_call_id)
    call_id = call.id if call is not None else event.tool_call_id
    partial = fold.results.get(call_id)
    if partial is not None and not _in_another_turn(fold, event, partial[0]):
        _replace_result(fold, event, call_id, *partial)
        return
    message = fold.target(event, event.candidate_index) if event.message_id is None else _adopt(fold, event)
    block = ToolResultBlock(
        tool_call_id=call_id,
        content=event.content,
        outcome=event.outcome,
        structured_content=event.structured_content,
        ui_data=event.ui_data,
        side_data=event.side_data,
        error_text=event.error_text,
        error_code=event.error_code,
        provider_metadata=event.provider_metadata,
        tool_metadata=event.tool_metadata,
        dynamic=event.dynamic,
        pending_input=event.pending_input,
        preliminary=True if event.more else None,
        is_error=event.is_error,
        meta=event.meta,
    )
    index = fold.add_block(message, block)
    if event.more:
        fold.results[call_id] = (message, index)


def _in_another_turn(fold: Fold, event: ToolDone, holder: Message) -> bool:
    """A result in a new turn does not continue one that its closed turn has left partial."""
    turn = fold.owner(holder)
    return turn is not None and turn.closed and event.turn_id is not None and event.turn_id != turn.turn_id


def _replace_result(fold: Fold, event: ToolDone, call_id: str, message: Message, index: int) -> None:
    if fold.is_shut(message):
        raise Park("INV-MSG", f"the message of the result for {quoted(call_id)} takes no more changes")
    # What the event omits keeps the partial's value.
    block = cast(ToolResultBlock, message.content[index])
    message.put(index, replace(block, **_given(event)))
    fold.touch(message)
    if not event.more:
        del fold.results[call_id]


def _given(event: ToolDone) -> dict[str, Any]:
    """The fields of the result block that the event sets; null counts in the opaque ones."""
    given: dict[str, Any] = {"content": event.content, "preliminary": True if event.more else None}
    for name in _OPTIONAL:
        value = getattr(event, name)
        if value is not None:
            given[name] = value
    for name in _OPAQUE:
        value = getattr(event, name)
        if value is not UNSET:
            given[name] = value
    return given


def _adopt(fold: Fold, event: ToolDone) -> Message:
    """The message that takes `tool.done.messageId` as its id: a new one of role ``tool``, or the one that has it."""
    assert event.message_id is not None
    found = fold.messages.items.get(event.message_id)
    if found is not None:
        if fold.is_shut(found):
            raise Park("INV-MSG", f"message {quoted(event.message_id)} takes no more blocks")
        if event.turn_id is not None and found.base.turn_id is not None and event.turn_id != found.base.turn_id:
            raise Park("INV-OWNER", f"message {quoted(event.message_id)} is not of turn {quoted(event.turn_id)}")
        return found
    turn = fold.recorded(event, adopts=True)
    if turn.closed:
        raise Park("INV-MSG", f"turn {quoted(turn.turn_id)} is closed")
    assert turn.record is not None
    base = AgMessage(
        id=event.message_id,
        role="tool",
        content=[],
        turn_id=turn.turn_id,
        thread_id=turn.record.thread_id,
        candidate_index=event.candidate_index,
    )
    message = Message(base, opened=True)
    fold.add_message(turn, message, opens=False)
    return message


TOOL_HANDLERS: Handlers = {
    ToolStart: _tool_start,
    ToolArgsDelta: _tool_args_delta,
    ToolArgsAssembled: _tool_args_assembled,
    ToolDone: _tool_done,
}
"""What the events of tool calls and results do to the fold."""
