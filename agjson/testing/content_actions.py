"""Legal next steps of a stream that concern turns, messages and their blocks (spec §4, §5)."""

from __future__ import annotations

import json
from typing import Any

from agjson.testing.model import Block, Call, Message, Turn
from agjson.testing.writer import StreamWriter
from agjson.types import (
    BLOCK_TYPES,
    AgBlock,
    AgToolOutcome,
    ContentBlock,
    DataBlock,
    MessageMetadata,
    MessageRemove,
    MessageStart,
    ReasoningDelta,
    ReasoningOpaqueDelta,
    ReasoningStart,
    StepDone,
    StepStart,
    SubagentStart,
    TextDelta,
    TextStart,
    ToolArgsDelta,
    ToolCallBlock,
    ToolResultBlock,
    ToolStart,
    TurnStart,
)

__all__: list[str] = []

_MAX_TURNS = 3
_MAX_DEPTH = 2


# Turns and steps


def can_open_turn(writer: StreamWriter) -> bool:
    """A top-level turn may be opened at any time; few are open at once, and one alone in a resyncable stream."""
    roots = [turn for turn in writer.model.open_turns if turn.parent is None]
    return len(roots) < (1 if writer.options.resyncable else _MAX_TURNS)


def open_turn(writer: StreamWriter) -> None:
    """Open a top-level turn."""
    turn = Turn(writer.new_id("turn"))
    writer.emit(TurnStart, turn_id=turn.id, thread_id=writer.options.thread_id)
    _opened(writer, turn)


def can_open_subagent(writer: StreamWriter) -> bool:
    """A turn that is not nested too deep may open a nested one."""
    return any(writer.model.depth(turn) < _MAX_DEPTH for turn in writer.model.open_turns)


def open_subagent(writer: StreamWriter) -> None:
    """Open a nested turn; its parent is named by id, or by the label of the call that spawned it (spec §8 item 16)."""
    source, model = writer.source, writer.model
    parent = source.choice([turn for turn in model.open_turns if model.depth(turn) < _MAX_DEPTH])
    turn = Turn(writer.new_id("turn"), parent, parent.id)
    spawners = [call.id for call in model.calls if call.message is not None and call.message.turn is parent]
    if spawners and source.chance(30):
        turn.parent_id = f"turn_{source.choice(spawners)}"
    writer.emit(SubagentStart, turn_id=turn.id, parent_turn_id=turn.parent_id)
    _opened(writer, turn)


def _opened(writer: StreamWriter, turn: Turn) -> None:
    writer.model.turns[turn.id] = turn
    writer.model.open_turns.append(turn)


def has_open_turn(writer: StreamWriter) -> bool:
    """Some turn is open."""
    return bool(writer.model.open_turns)


def close_turn(writer: StreamWriter) -> None:
    """End a turn regularly, with everything inside it."""
    writer.close_turn(writer.source.choice(writer.model.open_turns))


def step(writer: StreamWriter) -> None:
    """Start a step, or end one that was started."""
    turn = writer.source.choice(writer.model.open_turns)
    if turn.steps and writer.source.chance(60):
        writer.emit(StepDone, turn, id=turn.steps.pop())
    else:
        turn.steps.append(writer.new_id("step"))
        writer.emit(StepStart, turn, id=turn.steps[-1])


# Messages


def open_message(writer: StreamWriter) -> None:
    """Open a message, at times for a second candidate, or over an older one that is still unsealed."""
    source, model = writer.source, writer.model
    turn = source.choice(model.open_turns)
    candidate = source.choice([0, 0, 0, 0, 1, 2])
    pointer = turn.pointers.get(candidate)
    if pointer is not None and not pointer.sealed and not pointer.adopted and source.chance(80):
        writer.end_message(pointer)
    roles = ["assistant", "assistant", "assistant", "user", "tool", "system"]
    if writer.options.draft2 and writer.level:
        roles.append("notice")
    message = Message(writer.new_id("message"), turn, source.choice(roles), candidate)
    given: dict[str, Any] = {"candidate_index": candidate} if candidate or source.chance(10) else {}
    if turn.steps and source.chance(50):
        given["step_id"] = source.choice(turn.steps)
    writer.emit(
        MessageStart, turn_id=turn.id, id=message.id, role=message.role, thread_id=writer.options.thread_id, **given
    )
    turn.messages.append(message)
    turn.pointers[candidate] = message
    model.messages[message.id] = message
    model.open_messages.append(message)


def has_open_message(writer: StreamWriter) -> bool:
    """Some message waits for its end."""
    return bool(writer.model.open_messages)


def end_message(writer: StreamWriter) -> None:
    """End a message, with everything inside it."""
    writer.end_message(writer.source.choice(writer.model.open_messages))


def has_message(writer: StreamWriter) -> bool:
    """Some message is in the fold, and some turn is open."""
    return bool(writer.model.messages and writer.model.open_turns)


def remove_message(writer: StreamWriter) -> None:
    """Remove a message, or all of a turn (spec §5 `message.remove`)."""
    source, model = writer.source, writer.model
    if source.chance(20):
        turn = source.choice(list(model.turns.values()))
        writer.emit(MessageRemove, id="*", turn_id=turn.id)
        for message in [message for message in model.messages.values() if message.turn is turn]:
            model.forget_message(message)
        # With every message of the turn gone there is nothing to go back to.
        turn.pointers = {}
        return
    message = source.choice(list(model.messages.values()))
    writer.emit(MessageRemove, id=message.id, turn_id=message.turn.id)
    model.forget_message(message)


def message_metadata(writer: StreamWriter) -> None:
    """Give a message metadata: one that is named, or the open one of the turn."""
    source, model = writer.source, writer.model
    turn = source.choice(model.open_turns)
    pointer = turn.pointers.get(0)
    if pointer is not None and not pointer.sealed and source.chance(40):
        writer.emit(MessageMetadata, turn)
        return
    message = source.choice(list(model.messages.values()))
    writer.emit(MessageMetadata, message_id=message.id, turn_id=message.turn.id)


# Text and reasoning


def can_write(writer: StreamWriter) -> bool:
    """Some message takes new blocks."""
    return bool(writer.model.writable())


def _place(writer: StreamWriter) -> tuple[Message, dict[str, Any]]:
    message = writer.source.choice(writer.model.writable())
    explicit = message.candidate != 0 or writer.source.chance(10)
    return message, {"candidate_index": message.candidate} if explicit else {}


def start_text(writer: StreamWriter) -> None:
    """Start a text block."""
    message, given = _place(writer)
    block = Block(writer.new_id("text"), "text", message)
    if message.role == "assistant" and writer.source.chance(20):
        given["role"] = "assistant"
    writer.emit(TextStart, message.turn, message, id=block.id, **given)
    _started(writer, block)


def start_reasoning(writer: StreamWriter) -> None:
    """Start a reasoning block, at times one of numbered parts."""
    message, given = _place(writer)
    block = Block(writer.new_id("reasoning"), "reasoning", message)
    if writer.source.chance(30):
        block.parts = [0]
        given["part_index"] = 0
    writer.emit(ReasoningStart, message.turn, message, id=block.id, **given)
    _started(writer, block)


def _started(writer: StreamWriter, block: Block) -> None:
    block.message.blocks.append(block)
    writer.model.blocks.append(block)


def has_block(writer: StreamWriter) -> bool:
    """Some text or reasoning block is open."""
    return bool(writer.model.blocks)


def advance_block(writer: StreamWriter) -> None:
    """Add to an open block, in one of the ways that its kind has."""
    source = writer.source
    block = source.choice(writer.model.blocks)
    turn, message = block.message.turn, block.message
    if block.kind == "text":
        writer.emit(TextDelta, turn, message, id=block.id, delta=source.text())
        return
    way = source.integer(0, 9)
    if way in (4, 5) and block.parts is not None:
        block.parts.append(len(block.parts))
        writer.emit(ReasoningStart, turn, message, id=block.id, part_index=block.parts[-1])
    elif way in (6, 7) and not block.sealed:
        fragment = source.text(1, 6)
        writer.emit(ReasoningOpaqueDelta, turn, message, id=block.id, delta=fragment)
        block.signature += fragment
    elif way in (8, 9) and not block.sealed:
        writer.seal_signature(block)
    else:
        part = {} if block.parts is None else {"part_index": source.choice(block.parts)}
        writer.emit(ReasoningDelta, turn, message, id=block.id, delta=source.text(), **part)


def end_block(writer: StreamWriter) -> None:
    """End an open text or reasoning block."""
    writer.end_block(writer.source.choice(writer.model.blocks))


# Tools


def start_tool(writer: StreamWriter) -> None:
    """Start a tool call; its arguments come in fragments of their JSON text, or whole."""
    source = writer.source
    message, given = _place(writer)
    input = source.json_object() if source.chance(80) else source.json()
    rest: list[str] = []
    if source.chance(70):
        text = json.dumps(input, ensure_ascii=source.chance(50))
        cuts = sorted(source.integer(0, len(text)) for _ in range(source.integer(0, 3)))
        rest = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    call = Call(writer.new_id("call"), message, input, rest, assembled=False)
    writer.emit(ToolStart, message.turn, message, tool_call_id=call.id, **given)
    message.calls.append(call)
    writer.model.calls.append(call)


def has_unassembled(writer: StreamWriter) -> bool:
    """Some call still lacks its arguments."""
    return any(not call.assembled for call in writer.model.calls)


def advance_tool(writer: StreamWriter) -> None:
    """Emit the next fragment of a call's arguments, and the arguments themselves when there is none left."""
    call = writer.source.choice([call for call in writer.model.calls if not call.assembled])
    message = call.message
    assert message is not None
    if call.rest:
        writer.emit(ToolArgsDelta, message.turn, message, tool_call_id=call.id, delta=call.rest.pop(0))
    else:
        writer.assemble(call)


def _answerable(writer: StreamWriter) -> list[Call]:
    return [call for call in writer.model.calls if call.assembled and not call.answered]


def can_answer(writer: StreamWriter) -> bool:
    """Some call with arguments has no final result, and some turn is open."""
    return bool(writer.model.open_turns and _answerable(writer))


def tool_result(writer: StreamWriter) -> None:
    """Answer a call: in the open message, in a message of its own, in parts, or for now (spec §5 `tool.done`)."""
    source, model = writer.source, writer.model
    call = source.choice(_answerable(writer))
    outcomes: list[AgToolOutcome | None] = [None, "ok", "ok", "error", "denied"]
    outcome = source.choice(outcomes)
    if call.partial is not None:
        writer.emit_result(call, call.partial, more=source.chance(40), outcome=outcome)
        return
    turn = source.choice(model.open_turns)
    if call.message is not None and call.message.turn.open:
        turn = call.message.turn
    writable = [message for message in turn.pointers.values() if message is not None and not message.sealed]
    # A result for a call of an earlier turn lands by adoption alone.
    if writable and call.message is not None and call.message.turn is turn and source.chance(50):
        call.adopted_id = None
        writer.emit_result(call, source.choice(writable), more=source.chance(30), outcome=outcome)
        return
    if not call.pending and writer.level and source.chance(15):
        # A placeholder of a paused call; the real result adopts a message of its own later.
        call.pending = True
        call.adopted_id = f"{call.id}:pending"
        writer.emit_result(call, _adopted(writer, call, turn), more=False, outcome="input_required")
        call.answered = False
        return
    call.adopted_id = f"{call.id}:result"
    writer.emit_result(call, _adopted(writer, call, turn), more=source.chance(30), outcome=outcome)


def _adopted(writer: StreamWriter, call: Call, turn: Turn) -> Message:
    assert call.adopted_id is not None
    same_turn = call.message is not None and call.message.turn is turn
    candidate = call.message.candidate if same_turn and call.message is not None else 0
    message = Message(call.adopted_id, turn, "tool", candidate, adopted=True)
    turn.messages.append(message)
    writer.model.messages[message.id] = message
    return message


# Whole blocks


def content_block(writer: StreamWriter) -> None:
    """Emit a whole block of any kind; a data block at times replaces an earlier one with its id."""
    source = writer.source
    message, given = _place(writer)
    transient = True if source.chance(10) else None
    block: AgBlock
    kind = source.integer(0, 9)
    if kind == 7:
        call = Call(writer.new_id("call"), message)
        block = writer.values.build(ToolCallBlock, tool_call_id=call.id)
        transient = None
        message.calls.append(call)
        writer.model.calls.append(call)
    elif kind == 8 and any(call.partial is None for call in _answerable(writer)):
        call = source.choice([call for call in _answerable(writer) if call.partial is None])
        block = writer.values.build(
            ToolResultBlock, tool_call_id=call.id, outcome=source.choice([None, "ok", "error", "denied"])
        )
        transient = None
        call.answered = True
    elif kind >= 6 and writer.level:
        if not message.data_ids or source.chance(40):
            message.data_ids.append(writer.new_id("data"))
        block = writer.values.build(DataBlock, id=source.choice(message.data_ids), transient=transient)
    else:
        block = writer.values.build(BLOCK_TYPES[source.choice(writer.values.block_kinds)])
    writer.emit(ContentBlock, message.turn, message, block=block, transient=transient, **given)
