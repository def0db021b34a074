"""Reads a valid stream and tells where things begin and end in it; edits it without breaking its ordinals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from agjson.types import (
    AgStreamEvent,
    ContentBlock,
    ExtEvent,
    MessageEnd,
    MessageRemove,
    MessagesSnapshot,
    MessageStart,
    ReasoningEnd,
    ReasoningStart,
    SubagentStart,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolDone,
    ToolStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
    UnknownEvent,
)

__all__ = ["Edit", "Item", "Span", "Trace", "quiet_points", "renumber", "with_seq"]

T = TypeVar("T", bound="AgStreamEvent | UnknownEvent | bytes")

Item: TypeAlias = AgStreamEvent | UnknownEvent | bytes
"""One item of a stream that a checker reads: an event, or the JSON text of one that no class can hold."""


@dataclass(slots=True, eq=False)
class Span:
    """Where an entity begins and ends in a stream, by index; `owner` is the id of what it is part of.

    Attributes:
        id: the entity's own id.
        start: the index of the event that opens it.
        end: the index of the event that ends it, None if none does.
        owner: the turn of a message, the message of a block or call.
        kind: the wire type of the opener.
        gone: the index of the event that removes it, None if none does.
        results: of a call, the indexes of its results.
    """

    id: str
    start: int
    kind: str
    owner: str = ""
    end: int | None = None
    gone: int | None = None
    results: list[int] = field(default_factory=list[int])


class Trace:
    """The turns, messages, blocks and calls of a valid stream, and which turns are open at each place.

    Args:
        events: a valid stream; owners are named, or left to the only open turn.
    """

    def __init__(self, events: Sequence[AgStreamEvent]) -> None:
        self.events = events
        self.turns: dict[str, Span] = {}
        self.messages: dict[str, Span] = {}
        self.blocks: dict[str, Span] = {}
        self.calls: dict[str, Span] = {}
        # Per index, the turns that are open before the event.
        self.open_before: list[tuple[str, ...]] = []
        self._open: dict[str, Span] = {}
        # Per turn and candidate: where new blocks go, and all messages in their order.
        self._pointers: dict[tuple[str, int | float], Span | None] = {}
        self._partitions: dict[tuple[str, int | float], list[Span]] = {}
        for index, event in enumerate(events):
            self.open_before.append(tuple(self._open))
            self._read(index, event)
        self.open_before.append(tuple(self._open))

    def turn_of(self, event: AgStreamEvent, index: int) -> str | None:
        """The id of the turn that owns an event, None if it leads to none."""
        if event.turn_id is not None:
            return event.turn_id
        if event.message_id is not None and event.message_id in self.messages:
            return self.messages[event.message_id].owner
        open_turns = self.open_before[index]
        return open_turns[0] if len(open_turns) == 1 else None

    def indexes(self, *classes: type[Any]) -> list[int]:
        """The indexes of the events of some classes."""
        return [index for index, event in enumerate(self.events) if isinstance(event, classes)]

    def disturbed(self, start: int, stop: int | None = None) -> bool:
        """Whether a removal or a messages snapshot lies between two indexes, both included."""
        stop = len(self.events) if stop is None else stop + 1
        return any(isinstance(event, MessageRemove | MessagesSnapshot) for event in self.events[start:stop])

    def in_order(self, first: str | None, second: str | None) -> bool:
        """Whether of two messages the first was started before the second."""
        spans = self.messages.get(first or ""), self.messages.get(second or "")
        return spans[0] is not None and spans[1] is not None and spans[0].start < spans[1].start

    def _read(self, index: int, event: AgStreamEvent) -> None:
        if isinstance(event, TurnStart | SubagentStart):
            span = Span(event.turn_id, index, event.type)
            self._open[event.turn_id] = self.turns[event.turn_id] = span
        elif isinstance(event, TurnDone | TurnError | TurnAbort):
            closed = self._open.pop(self.turn_of(event, index) or "", None)
            if closed is not None:
                closed.end = index
        elif isinstance(event, MessageStart):
            span = self.messages[event.id] = Span(event.id, index, event.type, event.turn_id)
            partition = (event.turn_id, event.candidate_index or 0)
            self._pointers[partition] = span
            self._partitions.setdefault(partition, []).append(span)
        elif isinstance(event, MessageEnd):
            if event.id in self.messages:
                self.messages[event.id].end = index
        elif isinstance(event, MessageRemove | MessagesSnapshot):
            self._remove(index, event)
        elif isinstance(event, TextStart | ReasoningStart):
            if event.id not in self.blocks:
                self.blocks[event.id] = Span(event.id, index, event.type, self._place(index, event))
        elif isinstance(event, TextEnd | ReasoningEnd):
            if event.id in self.blocks:
                self.blocks[event.id].end = index
        elif isinstance(event, ToolStart):
            self.calls[event.tool_call_id] = Span(event.tool_call_id, index, event.type, self._place(index, event))
        elif isinstance(event, ToolArgsAssembled):
            if event.tool_call_id in self.calls:
                self.calls[event.tool_call_id].end = index
        elif isinstance(event, ToolDone):
            self._result(index, event)

    def _result(self, index: int, event: ToolDone) -> None:
        if event.tool_call_id in self.calls:
            self.calls[event.tool_call_id].results.append(index)
        if event.message_id is not None and event.message_id not in self.messages:
            turn_id = self.turn_of(event, index) or ""
            span = self.messages[event.message_id] = Span(event.message_id, index, event.type, turn_id)
            # An adopted message takes new blocks only when the pointer goes back to it.
            self._partitions.setdefault((turn_id, event.candidate_index or 0), []).append(span)

    def _remove(self, index: int, event: MessageRemove | MessagesSnapshot) -> None:
        for span in self.messages.values():
            everything = isinstance(event, MessagesSnapshot) or (event.id == "*" and span.owner == event.turn_id)
            if span.gone is None and (everything or event.id == span.id):
                span.gone = index
        for partition, pointer in self._pointers.items():
            if pointer is not None and pointer.gone == index:
                there = [span for span in self._partitions[partition] if span.gone is None and span.end is None]
                self._pointers[partition] = there[-1] if there else None

    def _place(self, index: int, event: TextStart | ReasoningStart | ToolStart | ContentBlock) -> str:
        turn_id = self.turn_of(event, index) or ""
        span = self._pointers.get((turn_id, event.candidate_index or 0))
        return span.id if span is not None else ""


def quiet_points(events: Sequence[AgStreamEvent]) -> list[int]:
    """The places of a stream where no turn and no message is open: before the event with this index, or at the end.

    There a client that missed events can be brought up to date by `agjson.fold.snapshot`, to go on as if it had missed
    none.

    Args:
        events: a valid stream.

    Returns:
        Indexes from 0 to ``len(events)``, ascending.
    """
    trace = Trace(events)
    ends = {span.start: _last(span, len(events)) for span in trace.messages.values() if span.kind == "message.start"}
    quiet: list[int] = []
    busy_until = -1
    for index, open_turns in enumerate(trace.open_before):
        if not open_turns and index > busy_until:
            quiet.append(index)
        busy_until = max(busy_until, ends.get(index, -1))
    return quiet


def _last(span: Span, default: int) -> int:
    if span.end is not None:
        return span.end
    return span.gone if span.gone is not None else default


def with_seq(item: T, seq: int) -> T:
    """The same item with another ordinal.

    Args:
        item: an event, one of an unknown type, or the JSON text of one.
        seq: the ordinal, from 0.
    """
    changed: Any = item
    if isinstance(changed, ExtEvent):
        members = (changed.id, changed.turn_id, changed.message_id, changed.parent_id, changed.meta)
        return cast("T", ExtEvent(changed.type, seq, changed.payload, *members))
    if isinstance(changed, UnknownEvent):
        return cast("T", UnknownEvent(changed.type, seq, _raw_with_seq(changed.raw, seq)))
    if isinstance(changed, bytes):
        return cast("T", _raw_with_seq(changed, seq))
    return cast("T", msgspec.structs.replace(changed, seq=seq))


def _raw_with_seq(raw: bytes, seq: int) -> bytes:
    members: dict[str, msgspec.Raw] = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**members, "seq": seq})


def renumber(events: Iterable[T]) -> list[T]:
    """The events as one invoke, with ordinals from 0 without a gap (INV-SEQ).

    Args:
        events: events, events of unknown types, or JSON texts of events.
    """
    return [with_seq(event, seq) for seq, event in enumerate(events)]


class Edit:
    """Inserts, removes, moves and replaces items by their index in the original stream, then numbers them anew.

    Args:
        events: the stream, of one invoke or several.
    """

    def __init__(self, events: Sequence[AgStreamEvent]) -> None:
        self._items: list[list[Item]] = [[event] for event in events]
        self._starts = {index for index, event in enumerate(events) if event.seq == 0}

    def insert(self, index: int, *items: Item) -> None:
        """Put items before the one at ``index``, in the invoke of the item before."""
        if index == 0:
            self._items[0][:0] = items
        else:
            self._items[index - 1].extend(items)

    def remove(self, index: int) -> None:
        """Take the item at ``index`` away."""
        del self._items[index][0]

    def replace(self, index: int, item: Item) -> None:
        """Put another item in the place of the one at ``index``."""
        self._items[index][0] = item

    def items(self) -> list[Item]:
        """The edited stream; each invoke counts from 0."""
        numbered: list[Item] = []
        seq = 0
        for index, items in enumerate(self._items):
            if index in self._starts:
                seq = 0
            for item in items:
                numbered.append(with_seq(item, seq))
                seq += 1
        return numbered
