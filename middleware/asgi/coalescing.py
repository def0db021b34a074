"""Fewer, longer deltas: what comes in many pieces within a moment goes out in one (spec §4, INV-SEQ, INV-DELTA)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from agjson.types import AgStreamEvent, ExtEvent, ReasoningDelta, ReasoningOpaqueDelta, TextDelta, ToolArgsDelta

__all__ = ["Coalescer"]

_Delta: TypeAlias = TextDelta | ReasoningDelta | ReasoningOpaqueDelta | ToolArgsDelta
_DELTAS = frozenset((TextDelta, ReasoningDelta, ReasoningOpaqueDelta, ToolArgsDelta))
_Key: TypeAlias = tuple[Any, ...]


class _State(NamedTuple):
    held: _Delta | None
    pieces: list[str]
    length: int
    key: _Key | None
    sent_at: float
    seq: int


class Coalescer:
    """Joins consecutive deltas of one block and renumbers what follows, without a gap.

    A delta goes out at once if the last one of its run of deltas went out at least `window` seconds ago, the first one
    of a run always. Others are held, at most until then: `due` says when. Every other event goes out at once, after
    what is held: nothing is delayed but deltas, and nothing is overtaken. The fold of what comes out is the fold of
    what went in.

    Args:
        window: how many seconds; 0 passes everything on as it is.
    """

    def __init__(self, window: float) -> None:
        self._window = window
        # The delta that is held, and the texts of it and of those that were joined to it.
        self._held: _Delta | None = None
        self._pieces: list[str] = []
        # The run of deltas that the last event belongs to, and when the last one of it went out.
        self._key: _Key | None = None
        self._sent_at = 0.0
        self._seq = 0

    @property
    def due(self) -> float | None:
        """When what is held has to go out, on the clock of `push`; None: nothing is held."""
        return None if self._held is None else self._sent_at + self._window

    def push(self, events: Iterable[AgStreamEvent], now: float) -> list[AgStreamEvent]:
        """Take events in order.

        Args:
            events: the events.
            now: the time in seconds.

        Returns:
            What goes out now.
        """
        if not self._window:
            return list(events)
        out: list[AgStreamEvent] = []
        for event in events:
            key = _key_of(event)
            if key is None or key != self._key:
                out += self.flush(now)
                out.append(_numbered(event, self._seq))
                self._seq += 1
                self._key = key
                self._sent_at = now
                continue
            delta = cast("_Delta", event)
            if self._held is None:
                self._held = delta
            self._pieces.append(delta.delta)
            if now >= self._sent_at + self._window:
                out += self.flush(now)
        return out

    def flush(self, now: float) -> list[AgStreamEvent]:
        """What is held, to go out now.

        Args:
            now: the time in seconds.
        """
        held, pieces = self._held, self._pieces
        if held is None:
            return []
        self._held, self._pieces = None, []
        self._sent_at = now
        self._seq += 1
        return [replace(held, delta="".join(pieces), seq=self._seq - 1)]

    def save(self) -> object:
        """Where it is, for `restore`: what came out could not be delivered, and nothing has happened."""
        return _State(self._held, self._pieces, len(self._pieces), self._key, self._sent_at, self._seq)

    def restore(self, state: object) -> None:
        """Go back.

        Args:
            state: what `save` returned.
        """
        assert isinstance(state, _State)
        self._held, self._pieces, length, self._key, self._sent_at, self._seq = state
        del self._pieces[length:]


def _key_of(event: AgStreamEvent) -> _Key | None:
    """What two deltas must have in common to be one; None: the event is joined with none."""
    cls = type(event)  # not of a subclass: that one has members that this revision does not know
    if cls not in _DELTAS or event.meta is not None:
        return None
    part: Any = None
    if isinstance(event, ToolArgsDelta):
        part = event.tool_call_id
    elif isinstance(event, (TextDelta, ReasoningDelta)):
        if event.provider_metadata is not None:
            return None
        part = getattr(event, "part_index", None)
    return (cls, event.id, part, event.turn_id, event.message_id, event.parent_id)


def _numbered(event: AgStreamEvent, seq: int) -> AgStreamEvent:
    if event.seq == seq:
        return event
    if isinstance(event, ExtEvent):
        return ExtEvent(
            event.type,
            seq,
            event.payload,
            id=event.id,
            turn_id=event.turn_id,
            message_id=event.message_id,
            parent_id=event.parent_id,
            meta=event.meta,
        )
    return replace(event, seq=seq)
