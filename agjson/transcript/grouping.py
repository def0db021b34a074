"""What of a history belongs together (loop contract, "Reasoning-bound calls", row "Compaction pair integrity").

A model reasons and calls tools in a round: messages of the assistant that nobody interrupts. Calls made in parallel and
the reasoning before and among them are one group, and the results of these calls belong to it wherever they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agjson.transcript.occurrence import Occurrence, Scan, scan
from agjson.types import AgMessage

__all__ = ["Group", "GroupKind", "Rounds", "groups", "groups_of", "rounds_of"]

GroupKind: TypeAlias = Literal["system", "user", "assistant", "tools", "summary", "notice"]
"""What a group is: ``tools`` has calls or results, ``summary`` a provider's compaction block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Messages that are kept or dropped whole.

    Attributes:
        kind: what it is.
        places: the positions of its messages in the history, from 0, ascending; not always adjacent.
        messages: the messages.
        occurrences: the calls made in it.
        waits: a call in it has no result yet, and its result will need the call.
    """

    kind: GroupKind
    places: tuple[int, ...]
    messages: tuple[AgMessage, ...]
    occurrences: tuple[Occurrence, ...] = ()
    waits: bool = False


@dataclass(slots=True)
class Rounds:
    """How messages hang together.

    Attributes:
        segment: for each message, the first one of the stretch of calls and reasoning that it is part of.
        end: for each message of a round, the last message of the round; of any other, itself.
        group: for each message, the first message of its group.
    """

    segment: list[int]
    end: list[int]
    group: list[int]


def groups(messages: Sequence[AgMessage]) -> list[Group]:
    """The groups of a history, in the order of their first messages (row "Compaction pair integrity").

    Args:
        messages: the history; it is only read.
    """
    found = scan(messages)
    return groups_of(messages, found, rounds_of(messages, found))


def groups_of(messages: Sequence[AgMessage], found: Scan, rounds: Rounds) -> list[Group]:
    """The groups of a history that has been looked at already.

    Args:
        messages: the history.
        found: what `scan` has found in it.
        rounds: what `rounds_of` has found in it.
    """
    places: dict[int, list[int]] = {}
    for index, first in enumerate(rounds.group):
        places.setdefault(first, []).append(index)
    made: dict[int, list[Occurrence]] = {}
    for occurrence in found.occurrences:
        made.setdefault(rounds.group[occurrence.place.message], []).append(occurrence)
    whole: list[Group] = []
    for first, members in places.items():
        calls = tuple(made.get(first, ()))
        whole.append(
            Group(
                kind=_kind(messages, members, found),
                places=tuple(members),
                messages=tuple([messages[index] for index in members]),
                occurrences=calls,
                waits=any(not (call.completed or call.hosted or call.ambiguous) for call in calls),
            )
        )
    return whole


def _kind(messages: Sequence[AgMessage], members: Sequence[int], found: Scan) -> GroupKind:
    shapes = [found.shapes[index] for index in members]
    if any(shape.summary for shape in shapes):
        return "summary"
    if any(shape.calls or shape.results for shape in shapes):
        return "tools"
    role = messages[members[0]].role
    return "tools" if role == "tool" else role


def rounds_of(messages: Sequence[AgMessage], found: Scan) -> Rounds:
    """The rounds and groups of a history, each message looked at once.

    Args:
        messages: the history.
        found: what `scan` has found in it.
    """
    segments = _Sets(len(messages))
    end = list(range(len(messages)))
    _join_rounds(messages, found, segments, end)
    segment = segments.firsts()
    for occurrence in found.occurrences:
        at = occurrence.place.message
        if occurrence.result_place is not None:
            segments.join(at, occurrence.result_place.message)
        for place in (*occurrence.placeholders, *occurrence.partials):
            segments.join(at, place.message)
    for overlap in found.overlaps:
        for place in overlap:
            segments.join(overlap[0].message, place.message)
    return Rounds(segment=segment, end=end, group=segments.firsts())


def _join_rounds(messages: Sequence[AgMessage], found: Scan, segments: _Sets, end: list[int]) -> None:
    run: list[int] = []
    owner: tuple[str | None, object] | None = None
    for index, message in enumerate(messages):
        if message.role == "notice" or (message.role == "tool" and found.shapes[index].only_placeholders):
            continue  # no model sees it, so it stands between nothing
        speaker = (message.turn_id, message.candidate_index or 0) if message.role == "assistant" else None
        if speaker is None or speaker != owner:
            _join_run(run, found, segments, end)
            run = []
        owner = speaker
        if speaker is not None:
            run.append(index)
    _join_run(run, found, segments, end)


def _join_run(run: Sequence[int], found: Scan, segments: _Sets, end: list[int]) -> None:
    if len(run) < 2:
        return
    shapes = found.shapes
    callers = [at for at, index in enumerate(run) if shapes[index].calls]
    for at in range(callers[0], callers[-1]) if callers else ():
        segments.join(run[at], run[at + 1])
    for at, index in enumerate(run):
        end[index] = run[-1]
        if shapes[index].only_reasoning:
            if at + 1 < len(run):
                segments.join(index, run[at + 1])
            elif callers:
                # Reasoning alongside: nothing follows that it could belong to.
                segments.join(run[callers[-1]], index)


class _Sets:
    """Sets of positions, each named by its lowest."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def join(self, a: int, b: int) -> None:
        a, b = self._first(a), self._first(b)
        if a != b:
            self._above[max(a, b)] = min(a, b)

    def firsts(self) -> list[int]:
        return [above if above == index else self._first(index) for index, above in enumerate(self._above)]

    def _first(self, index: int) -> int:
        above = self._above
        while above[index] != index:
            above[index] = above[above[index]]
            index = above[index]
        return index
