"""Violations of ordinals, turns, messages, owners, flushes and types (spec §0.2, §5.0, §9, §12)."""

from __future__ import annotations

from typing import Any

import msgspec

from agjson.testing.mutation import GHOST, pick, planted
from agjson.testing.source import Source
from agjson.testing.tracing import Edit, Item, Span, Trace, with_seq
from agjson.types import (
    AgStreamEvent,
    ContentBlock,
    ExtEvent,
    GuardrailResult,
    HandoffEvent,
    MessageEnd,
    MessageMetadata,
    MessagesSnapshot,
    MessageStart,
    SourceEvent,
    StateSnapshot,
    StepStart,
    TextDelta,
    TextStart,
    ToolArgsDelta,
    ToolStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
    UnknownBlock,
    UnknownEvent,
)
from agjson.wire import decode_event, encode

__all__: list[str] = []

_TERMINALS = (TurnDone, TurnError, TurnAbort)
_TRUNCATED = "stream-truncated"


def _replaced(event: AgStreamEvent, **changes: Any) -> Any:
    assert not isinstance(event, ExtEvent)
    return msgspec.structs.replace(event, **changes)


def _snapshots(trace: Trace, start: int) -> bool:
    return any(isinstance(event, MessagesSnapshot) for event in trace.events[start:])


def _open_places(trace: Trace) -> list[int]:
    """The places where some turn is open, so that something can be said in it."""
    return [index for index, turns in enumerate(trace.open_before) if turns and index > 0]


# Ordinals


@planted("seq-gap", "INV-SEQ")
def seq_gap(source: Source, trace: Trace) -> list[Item] | None:
    """One ordinal is left out; the rest of its invoke counts on."""
    events = trace.events
    index = pick(source, [index for index, event in enumerate(events) if event.seq > 0])
    return None if index is None else _shifted(trace, index, 1)


@planted("seq-repeat", "INV-SEQ")
def seq_repeat(source: Source, trace: Trace) -> list[Item] | None:
    """An event has the ordinal of the one before it; the rest of its invoke counts on."""
    index = pick(source, [index for index, event in enumerate(trace.events) if event.seq > 1])
    return None if index is None else _shifted(trace, index, -1)


@planted("seq-not-from-zero", "INV-SEQ")
def seq_not_from_zero(source: Source, trace: Trace) -> list[Item] | None:
    """The first invoke counts from a number above 0."""
    return _shifted(trace, 0, source.integer(1, 3)) if trace.events else None


def _shifted(trace: Trace, index: int, by: int) -> list[Item]:
    items: list[Item] = list(trace.events)
    for place in range(index, len(items)):
        event = trace.events[place]
        if place > index and event.seq == 0:
            break
        items[place] = with_seq(event, event.seq + by)
    return items


# Turns


def _closed_roots(trace: Trace) -> list[Span]:
    return [span for span in trace.turns.values() if span.kind == "turn.start" and span.end is not None]


@planted("drop-terminal", "INV-TURN")
def drop_terminal(source: Source, trace: Trace) -> list[Item] | None:
    """A top-level turn is never closed."""
    ends = [span.end for span in _closed_roots(trace) if span.end is not None and not _snapshots(trace, span.end)]
    index = pick(source, ends)
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.remove(index)
    return edit.items()


@planted("duplicate-terminal", "INV-TURN")
def duplicate_terminal(source: Source, trace: Trace) -> list[Item] | None:
    """A turn is closed twice."""
    index = pick(source, [span.end for span in trace.turns.values() if span.end is not None])
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.insert(index + 1, _named(trace, index))
    return edit.items()


def _named(trace: Trace, index: int) -> Any:
    event = trace.events[index]
    return _replaced(event, turn_id=trace.turn_of(event, index))


@planted("reopen-turn", "INV-TURN")
def reopen_turn(source: Source, trace: Trace) -> list[Item] | None:
    """A closed turn is opened again."""
    span = source.choice(_closed_roots(trace)) if _closed_roots(trace) else None
    if span is None or span.end is None:
        return None
    edit = Edit(trace.events)
    edit.insert(span.end + 1, trace.events[span.start])
    return edit.items()


def _first_named(trace: Trace, span: Span) -> int | None:
    """The first event after the opening of a turn that names the turn."""
    for index in range(span.start + 1, (span.end or 0) + 1):
        event = trace.events[index]
        if isinstance(event, MessagesSnapshot):
            return None
        if isinstance(event, (*_TERMINALS, MessageStart, GuardrailResult, HandoffEvent)) and event.turn_id == span.id:
            return index
    return None


@planted("drop-turn-start", "INV-TURN")
def drop_turn_start(source: Source, trace: Trace) -> list[Item] | None:
    """A turn is used that nothing has opened."""
    starts = [span.start for span in _closed_roots(trace) if _first_named(trace, span) is not None]
    index = pick(source, starts)
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.remove(index)
    return edit.items()


@planted("content-before-turn-start", "INV-TURN")
def content_before_turn_start(source: Source, trace: Trace) -> list[Item] | None:
    """A turn is used before it is opened."""
    places = {span.start: _first_named(trace, span) for span in _closed_roots(trace)}
    start = pick(source, [start for start, first in places.items() if first is not None])
    if start is None:
        return None
    first = places[start]
    assert first is not None
    edit = Edit(trace.events)
    edit.insert(first + 1, trace.events[start])
    edit.remove(start)
    return edit.items()


@planted("unknown-turn", "INV-TURN")
def unknown_turn(source: Source, trace: Trace) -> list[Item] | None:
    """A message is opened in a turn that does not exist."""
    index = pick(source, _open_places(trace))
    if index is None:
        return None
    edit = Edit(trace.events)
    start = MessageStart(seq=0, id=f"{GHOST}:m", role="assistant", turn_id=GHOST, thread_id=_thread(trace))
    edit.insert(index, start, MessageEnd(seq=0, id=f"{GHOST}:m", turn_id=GHOST))
    return edit.items()


def _thread(trace: Trace) -> str:
    return next((event.thread_id for event in trace.events if isinstance(event, TurnStart)), "thread")


# Messages


def _ended_messages(trace: Trace) -> list[Span]:
    return [span for span in trace.messages.values() if span.kind == "message.start" and span.end is not None]


@planted("drop-message-end", "INV-MSG")
def drop_message_end(source: Source, trace: Trace) -> list[Item] | None:
    """A message is never ended."""
    ends = [span.end for span in _ended_messages(trace) if span.end is not None and not trace.disturbed(span.end)]
    index = pick(source, ends)
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.remove(index)
    return edit.items()


@planted("duplicate-message-end", "INV-MSG")
def duplicate_message_end(source: Source, trace: Trace) -> list[Item] | None:
    """A message is ended twice."""
    index = pick(source, [span.end for span in _ended_messages(trace) if span.end is not None])
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.insert(index + 1, trace.events[index])
    return edit.items()


@planted("duplicate-message-start", "INV-MSG")
def duplicate_message_start(source: Source, trace: Trace) -> list[Item] | None:
    """A message is started twice."""
    index = pick(source, trace.indexes(MessageStart))
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.insert(index + 1, trace.events[index])
    return edit.items()


@planted("drop-message-start", "INV-MSG")
def drop_message_start(source: Source, trace: Trace) -> list[Item] | None:
    """A message is ended that nothing has started."""
    spans = _ended_messages(trace)
    # An adopted result may have made a message of the same id; then it would be there after all.
    starts = [span.start for span in spans if not any(span.id == _adopted(event) for event in trace.events)]
    index = pick(source, starts)
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.remove(index)
    return edit.items()


def _adopted(event: AgStreamEvent) -> str | None:
    return event.message_id if event.type == "tool.done" else None


def _deltas(trace: Trace) -> list[tuple[int, Span]]:
    """The fragments of a text or of arguments, each with the message that it goes to."""
    found: list[tuple[int, Span]] = []
    for index, event in enumerate(trace.events):
        span = None
        if isinstance(event, TextDelta):
            span = trace.blocks.get(event.id)
        elif isinstance(event, ToolArgsDelta):
            span = trace.calls.get(event.tool_call_id)
        message = trace.messages.get(span.owner) if span is not None else None
        if message is not None:
            found.append((index, message))
    return found


@planted("delta-after-seal", "INV-MSG")
def delta_after_seal(source: Source, trace: Trace) -> list[Item] | None:
    """A message is ended before the last fragment of something inside it."""
    places = [(index, message) for index, message in _deltas(trace) if message.end is not None]
    if not places:
        return None
    index, message = source.choice(places)
    assert message.end is not None
    edit = Edit(trace.events)
    edit.insert(index, trace.events[message.end])
    edit.remove(message.end)
    return edit.items()


@planted("delta-after-close", "INV-MSG")
def delta_after_close(source: Source, trace: Trace) -> list[Item] | None:
    """A turn is closed before a fragment of something inside it."""
    ends = {span.id: span.end for span in trace.turns.values()}
    places = [(index, end) for index, message in _deltas(trace) if (end := ends.get(message.owner)) is not None]
    if not places:
        return None
    index, end = source.choice(places)
    edit = Edit(trace.events)
    edit.insert(index, _named(trace, end))
    edit.remove(end)
    return edit.items()


# Owners


@planted("unknown-message", "INV-OWNER")
def unknown_message(source: Source, trace: Trace) -> list[Item] | None:
    """A closing turn gives metadata to a message that does not exist."""
    index = pick(source, trace.indexes(TurnDone))
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.replace(index, _replaced(trace.events[index], message_id=GHOST, message_metadata={"k": 1}))
    return edit.items()


@planted("metadata-for-unknown-message", "INV-OWNER")
def metadata_for_unknown_message(source: Source, trace: Trace) -> list[Item] | None:
    """`message.metadata` names a message that does not exist."""
    index = pick(source, _open_places(trace))
    if index is None:
        return None
    edit = Edit(trace.events)
    turn_id = trace.open_before[index][0]
    edit.insert(index, MessageMetadata(seq=0, turn_id=turn_id, message_id=GHOST, metadata={"k": 1}))
    return edit.items()


@planted("owner-left-out", "INV-OWNER")
def owner_left_out(source: Source, trace: Trace) -> list[Item] | None:
    """An event names no turn while several are open."""
    routed = (TextStart, ToolStart, ContentBlock, SourceEvent, HandoffEvent, GuardrailResult)
    places = [
        index
        for index in trace.indexes(*routed)
        if len(trace.open_before[index]) > 1 and trace.events[index].turn_id is not None
        if not getattr(trace.events[index], "transient", None)
    ]
    places = [index for index in places if not _is_transient_data(trace.events[index])]
    index = pick(source, places)
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.replace(index, _replaced(trace.events[index], turn_id=None, message_id=None))
    return edit.items()


def _is_transient_data(event: AgStreamEvent) -> bool:
    return isinstance(event, ContentBlock) and bool(getattr(event.block, "transient", None))


@planted("wrong-turn", "INV-OWNER")
def wrong_turn(source: Source, trace: Trace) -> list[Item] | None:
    """A fragment names another turn than the one that its block is in."""
    places = [(index, message) for index, message in _deltas(trace) if len(trace.open_before[index]) > 1]
    if not places:
        return None
    index, message = source.choice(places)
    others = [turn_id for turn_id in trace.open_before[index] if turn_id != message.owner]
    edit = Edit(trace.events)
    edit.replace(index, _replaced(trace.events[index], turn_id=source.choice(others), message_id=None))
    return edit.items()


# Flushes


def _is_flush(event: AgStreamEvent) -> bool:
    return isinstance(event, TurnAbort) and event.reason == _TRUNCATED


def _flush_aborts(trace: Trace) -> list[int]:
    """The first of two aborts of a flush that follow each other."""
    flushed = [index for index, event in enumerate(trace.events) if _is_flush(event)]
    return [index for index in flushed if index + 1 in flushed and len(trace.open_before[index]) > 1]


@planted("flush-outer-turn-first", "INV-FLUSH")
def flush_outer_turn_first(source: Source, trace: Trace) -> list[Item] | None:
    """A flush aborts a turn before one that was opened later."""
    index = pick(source, _flush_aborts(trace))
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.replace(index, _named(trace, index + 1))
    edit.replace(index + 1, _named(trace, index))
    return edit.items()


@planted("flush-later-message-first", "INV-FLUSH")
def flush_later_message_first(source: Source, trace: Trace) -> list[Item] | None:
    """A flush ends a message before one that was started earlier."""
    dangling = {span.owner for span in trace.blocks.values() if span.end is None}
    places: list[int] = []
    for abort in trace.indexes(TurnAbort):
        place = abort - 1 if _is_flush(trace.events[abort]) else 0
        while place > 0 and isinstance(trace.events[place], MessageEnd):
            before, after = trace.events[place - 1].id, trace.events[place].id
            # Only an end that leaves a block open is surely of the flush, and not of the framework.
            if isinstance(trace.events[place - 1], MessageEnd) and after in dangling and trace.in_order(before, after):
                places.append(place - 1)
            place -= 1
    index = pick(source, places)
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.replace(index, trace.events[index + 1])
    edit.replace(index + 1, trace.events[index])
    return edit.items()


# Types and fields


@planted("unknown-event-type", "UNKNOWN-TYPE")
def unknown_event_type(source: Source, trace: Trace) -> list[Item] | None:
    """An event of a type that this revision does not define."""
    edit = Edit(trace.events)
    if not trace.events:
        return None
    raw = b'{"type":"turn.resumed.start","seq":0}'
    edit.insert(source.integer(1, len(trace.events)), UnknownEvent("turn.resumed.start", 0, raw))
    return edit.items()


@planted("unknown-block-kind", "UNKNOWN-TYPE")
def unknown_block_kind(source: Source, trace: Trace) -> list[Item] | None:
    """A block of a kind that this revision does not define."""
    index = pick(source, [index for index in trace.indexes(ContentBlock) if not _has_identity(trace.events[index])])
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.replace(index, _replaced(trace.events[index], block=UnknownBlock("hologram", b'{"type":"hologram"}')))
    return edit.items()


def _has_identity(event: AgStreamEvent) -> bool:
    return isinstance(event, ContentBlock) and event.block.type in ("tool-call", "tool-result", "data")


@planted("undeclared-field", "UNDECLARED-FIELD")
def undeclared_field(source: Source, trace: Trace) -> list[Item] | None:
    """An event with a field that the specification does not declare."""
    index = pick(source, [index for index, event in enumerate(trace.events) if not isinstance(event, ExtEvent)])
    if index is None:
        return None
    edit = Edit(trace.events)
    raw: dict[str, msgspec.Raw] = msgspec.json.decode(encode(trace.events[index]), type=dict[str, msgspec.Raw])
    edit.replace(index, decode_event(msgspec.json.encode({**raw, "vendorField": 1})))
    return edit.items()


@planted("undeclared-field-in-block", "UNDECLARED-FIELD")
def undeclared_field_in_block(source: Source, trace: Trace) -> list[Item] | None:
    """A block with a field that the specification does not declare."""
    index = pick(source, trace.indexes(ContentBlock))
    if index is None:
        return None
    raw: dict[str, Any] = msgspec.json.decode(encode(trace.events[index]))
    raw["block"]["vendorField"] = None
    edit = Edit(trace.events)
    edit.replace(index, decode_event(msgspec.json.encode(raw)))
    return edit.items()


@planted("malformed-event", "MALFORMED")
def malformed_event(source: Source, trace: Trace) -> list[Item] | None:
    """An event of a known type that lacks a field."""
    if not trace.events:
        return None
    edit = Edit(trace.events)
    edit.insert(source.integer(1, len(trace.events)), b'{"type":"text.delta","seq":0,"id":"x"}')
    return edit.items()


@planted("ext-name", "EXT")
def ext_name(source: Source, trace: Trace) -> list[Item] | None:
    """A vendor extension whose name breaks the form."""
    index = pick(source, _open_places(trace))
    if index is None:
        return None
    edit = Edit(trace.events)
    name = source.choice(["ext.Acme.frame", "ext..frame", "ext.acme", "ext.acme."])
    edit.insert(index, ExtEvent(name, 0, {"k": 1}, turn_id=trace.open_before[index][0]))
    return edit.items()


@planted("above-core", "PROFILE", "CORE")
def above_core(source: Source, trace: Trace) -> list[Item] | None:
    """An EXTENDED event in a CORE stream."""
    index = pick(source, _open_places(trace))
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.insert(index, StepStart(seq=0, id=GHOST, turn_id=trace.open_before[index][0]))
    return edit.items()


@planted("above-extended", "PROFILE", "EXTENDED")
def above_extended(source: Source, trace: Trace) -> list[Item] | None:
    """An ADVANCED event in an EXTENDED stream."""
    index = pick(source, _open_places(trace))
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.insert(index, StateSnapshot(seq=0, snapshot={}, turn_id=trace.open_before[index][0]))
    return edit.items()
