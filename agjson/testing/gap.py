"""Streams with a gap: what a client missed, and the snapshots that bring it up to date (spec §5, §10 item 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agjson.fold import reduce, snapshot
from agjson.testing.source import Source
from agjson.testing.tracing import quiet_points
from agjson.types import AgStreamEvent, MemoryWrite

__all__ = ["Gap", "draw_gap"]


@dataclass(frozen=True, slots=True)
class Gap:
    """A stream of which a client does not see a part.

    Attributes:
        events: the whole stream.
        start: the index of the first event that is missed.
        stop: the index after the last one; no turn and no message is open there.
    """

    events: Sequence[AgStreamEvent]
    start: int
    stop: int

    @property
    def before(self) -> list[AgStreamEvent]:
        """What the client saw."""
        return list(self.events[: self.start])

    @property
    def missed(self) -> list[AgStreamEvent]:
        """What it did not see."""
        return list(self.events[self.start : self.stop])

    @property
    def after(self) -> list[AgStreamEvent]:
        """What it sees from the gap on."""
        return list(self.events[self.stop :])

    def healed(self) -> list[AgStreamEvent]:
        """What the client sees when the host answers the gap by the snapshots of its own fold.

        The fold of this equals the fold of `events`, but for one thing that the specification wants so: memory records
        of agent, user and skill scope come before those of thread scope from then on.
        """
        resume = self.events[self.stop].seq if self.stop < len(self.events) else 0
        result = reduce(self.events[: self.stop]).result
        # The next event must not be past the ordinal that follows the snapshots, or it would be another gap.
        first = max(resume - len(snapshot(result)), 0)
        return [*self.before, *snapshot(result, seq=first), *self.after]


def draw_gap(source: Source, events: Sequence[AgStreamEvent]) -> Gap:
    """A gap of a stream that a snapshot can heal without a trace.

    It ends where no turn and no message is open, and no agent, user or skill memory is written inside it: those records
    are none of a thread's business, so no snapshot replaces them (spec §2 `AgMemoryRecord`).

    Args:
        source: where the choices come from.
        events: a valid stream.
    """
    stop = source.choice(list(reversed(quiet_points(events))))
    lowest = stop
    while lowest > 0 and not _is_durable(events[lowest - 1]):
        lowest -= 1
    return Gap(tuple(events), source.integer(lowest, stop), stop)


def _is_durable(event: AgStreamEvent) -> bool:
    return isinstance(event, MemoryWrite) and event.scope != "thread"
