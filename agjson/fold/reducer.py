"""The reducer: events in, the conversation out (spec §5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from agjson.fold._blocks import BLOCK_HANDLERS
from agjson.fold._messages import MESSAGE_HANDLERS
from agjson.fold._resync import SNAPSHOT_HANDLERS
from agjson.fold._side import SIDE_HANDLERS
from agjson.fold._state import Fold, FoldViolation, Handlers, Park
from agjson.fold._tools import TOOL_HANDLERS
from agjson.fold._turns import TURN_HANDLERS
from agjson.types import (
    EVENT_TYPES,
    AgReduceResult,
    AgStreamEvent,
    ExtEvent,
    ReasoningDelta,
    TextDelta,
    UnknownEvent,
)

__all__ = ["Reducer", "Reduction", "reduce"]


def _live_only(fold: Fold, event: Any) -> None:
    """Folds to nothing; its ordinal counts all the same (INV-SEQ)."""


_HANDLERS: Handlers = {
    **dict.fromkeys([*EVENT_TYPES.values(), ExtEvent, UnknownEvent], _live_only),
    **BLOCK_HANDLERS,
    **TOOL_HANDLERS,
    **MESSAGE_HANDLERS,
    **TURN_HANDLERS,
    **SIDE_HANDLERS,
    **SNAPSHOT_HANDLERS,
}

_UNPARKING = tuple(SNAPSHOT_HANDLERS)


class Reducer:
    """Folds a stream of events into the conversation, one event at a time (spec §5).

    The fold is deterministic: the same events give the same result, whether they are read live or from history
    (INV-FOLD). An event costs the same however long the conversation is, and `result` costs what changed since the last
    call, plus the text of the blocks that are open.

    Where the specification calls for a `reduce()`-error, on a gap in the ordinals or on an event whose owner is not
    there, the reducer *parks*: it keeps its result and ignores every event until a snapshot comes (INV-SEQ). `push`
    never raises for an event.

    Args:
        initial: a stored conversation to go on from. Turns with an outcome are closed, the ids in it are taken, and the
            next event may have any ordinal.
        tolerant: mend what streams of other producers often do wrong instead of parking, and report it in `violations`.
            This is outside the specification: a repeated block id opens a new block, which later events of that id go
            to; a repeated `toolCallId` is named ``<id>#2``; an event of a turn that nothing opened opens it.

    Raises:
        TypeError: `initial` is no `AgReduceResult`; the message says how to make one of it.
    """

    __slots__ = ("_fold", "_limit", "_parked", "_texts", "_thoughts")

    def __init__(self, initial: AgReduceResult | None = None, *, tolerant: bool = False) -> None:
        _refuse_no_result(initial)
        self._fold = Fold(initial, tolerant=tolerant)
        # The two tables that `push` looks into itself; the fold never puts others in their place.
        self._texts = self._fold.texts
        self._thoughts = self._fold.thoughts
        # The highest ordinal that is no gap; below all of them while parked, so that one comparison tells both.
        self._limit: float = math.inf
        self._parked: str | None = None

    def push(self, event: AgStreamEvent | UnknownEvent) -> None:
        """Fold one event.

        Args:
            event: any event that `decode_event` or `ingest_event` returns, one of an unknown type included: its ordinal
                counts, or the next event would look like a gap. An event that failed to decode is not pushed, and its
                gap parks the fold (spec §5 trust boundary).

        Raises:
            TypeError: the value is no event.
        """
        kind = type(event)
        item: Any = event  # a checker cannot tell the class from `kind`
        try:
            seq = event.seq
        except AttributeError:
            raise TypeError(f"expected an event, got {_described(event, _EVENT)}") from None
        if seq > self._limit and not self._may_pass(event):
            return
        self._limit = seq + 1
        # Deltas are nearly all events of a stream, so the two common kinds are folded right here.
        if kind is TextDelta:
            append = self._texts.get(item.id)
            if append is not None and item.provider_metadata is None:
                append(item.delta)
                return
        elif kind is ReasoningDelta:
            stream = self._thoughts.get(item.id)
            if stream is not None and item.part_index is None and item.provider_metadata is None:
                stream.tail.append(item.delta)
                return
        handle = _HANDLERS.get(kind) or _inherited(kind)
        try:
            handle(self._fold, event)
        except Park as reason:
            self._park(event, str(reason))

    def result(self) -> AgReduceResult:
        """The conversation so far. Treat it as read-only: later results share what did not change.

        A trailing half of a split character in an open block is held back until the block's next delta, and replaced by
        U+FFFD when the block ends without it.
        """
        return self._fold.result()

    @property
    def needs_resync(self) -> bool:
        """Tell whether the fold is parked: it waits for a `messages.snapshot` or a `state.snapshot` (INV-SEQ)."""
        return self._parked is not None

    @property
    def resync_reason(self) -> str | None:
        """Why the fold is parked, in words for a log; None while it is not. Names ids and keys, never values."""
        return self._parked

    @property
    def violations(self) -> tuple[FoldViolation, ...]:
        """What a tolerant fold has mended so far; empty in a strict one, which parks."""
        return tuple(self._fold.violations)

    def _may_pass(self, event: Any) -> bool:
        """Tell whether an event that is past a gap, or comes while parked, is one that un-parks; else park."""
        if isinstance(event, _UNPARKING):
            self._parked = None
            return True
        if self._parked is None:
            self._park(event, f"events are missing: the ordinal before was {self._limit - 1} (INV-SEQ)")
        return False

    def _park(self, event: Any, reason: str) -> None:
        self._parked = f"{event.type} at seq {event.seq}: {reason}"
        self._limit = -math.inf


def _inherited(kind: type[Any]) -> Callable[[Fold, Any], None]:
    """The handler of a class that a decoder made for unknown fields: that of the class which it extends."""
    for base in kind.__mro__:
        handle = _HANDLERS.get(base)
        if handle is not None:
            return handle
    raise TypeError(f"expected an event, got {kind.__name__}")


# What makes what is expected of the forms in which people have it.
_EVENT = {"text": "agjson.ingest_event reads it", "mapping": 'agjson.from_dict(value, as_="event") reads it'}
_STORED = {
    "text": "agjson.decode_result reads it",
    "mapping": 'agjson.from_dict(value, as_="result") reads it',
    "reduction": "take its .result",
}
_TEXTS = (str, bytes, bytearray, memoryview)


def _described(value: object, advice: Mapping[str, str]) -> str:
    """The class of a value that is not what was expected, and how to make that of it."""
    name = type(value).__name__
    kind = "text" if isinstance(value, _TEXTS) else "mapping" if isinstance(value, Mapping) else name.lower()
    return f"{name}: {advice[kind]}" if kind in advice else name


def _refuse_no_result(initial: object) -> None:
    """Tell those who hand in a stored conversation in another form how to read it."""
    if initial is not None and not isinstance(initial, AgReduceResult):
        raise TypeError(f"initial is an AgReduceResult, got {_described(initial, _STORED)}")


def _refuse_no_series(events: object) -> None:
    """Tell those who hand in text, a file or one event how to make a series of events of it."""
    if hasattr(events, "seq"):
        raise TypeError(f"events are an iterable of events, got {type(events).__name__}: put it into a list")
    if isinstance(events, _TEXTS) or hasattr(events, "read"):
        what = "text" if isinstance(events, _TEXTS) else "a file"
        raise TypeError(
            f"events are an iterable of events, got {what}: of JSON lines, map(agjson.ingest_event, lines) makes one"
        )


class Reduction(NamedTuple):
    """What a whole stream folds to (spec §5.0, the batch surface).

    Attributes:
        result: the conversation.
        needs_resync: the fold is parked and the result is not up to date.
    """

    result: AgReduceResult
    needs_resync: bool


def reduce(
    events: Iterable[AgStreamEvent | UnknownEvent], *, initial: AgReduceResult | None = None, tolerant: bool = False
) -> Reduction:
    """Fold a whole stream (spec §5).

    Args:
        events: the events in order.
        initial: a stored conversation to go on from, as for `Reducer`.
        tolerant: as for `Reducer`.

    Returns:
        The conversation, and whether the fold is parked.

    Raises:
        TypeError: `events` holds something else, or is text, a file or one event; the message says how to make events
            of it.
    """
    _refuse_no_series(events)
    reducer = Reducer(initial, tolerant=tolerant)
    push = reducer.push
    for event in events:
        push(event)
    return Reduction(reducer.result(), reducer.needs_resync)
