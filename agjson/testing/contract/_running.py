"""Natives run through a normalizer, and what has to hold of any stream that comes out, whatever went in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agjson._members import check_members
from agjson.checker import check
from agjson.errors import AgJSONError
from agjson.fold import Reducer
from agjson.normalizer import HostEnd, Normalizer
from agjson.testing.contract._values import is_object, plain_events, plain_result, shorten
from agjson.testing.contract.rule import expect, placed
from agjson.testing.contract.subject import Sample, Subject
from agjson.types import AgReduceResult, AgStreamEvent, ReasoningStart
from agjson.wire import decode_event, encode

__all__ = [
    "END",
    "THREAD",
    "TURN",
    "Ran",
    "new_normalizer",
    "opened_ids",
    "places",
    "run",
    "run_sample",
    "run_sound",
    "sound",
]

TURN = "contract-turn-1"
"""The turn of a run."""

THREAD = "contract-thread"
"""The thread of a run."""

END = HostEnd()
"""What a driver pushes when the framework's stream has ended."""

_TERMINALS = frozenset(("turn.done", "turn.error", "turn.abort"))
# How many violations a message quotes.
_QUOTED = 3


@dataclass(frozen=True)
class Ran:
    """A run that was found sound.

    Attributes:
        events: its events.
        result: their fold.
        terminal: the terminal of the invoke's turn.
    """

    events: list[AgStreamEvent]
    result: AgReduceResult
    terminal: AgStreamEvent

    @cached_property
    def wire(self) -> list[dict[str, Any]]:
        """The events as they are on the wire."""
        return plain_events(self.events)

    @cached_property
    def fold(self) -> dict[str, Any]:
        """The fold as plain JSON."""
        return plain_result(self.result)


def new_normalizer(subject: Subject, known_ids: Iterable[str] = (), turn_id: str = TURN) -> Normalizer:
    """A normalizer for one invoke."""
    return subject.adapter.normalizer(turn_id=turn_id, thread_id=THREAD, known_ids=frozenset(known_ids))


def run(
    subject: Subject, natives: Iterable[Any], where: str, *, known_ids: Iterable[str] = (), turn_id: str = TURN
) -> list[AgStreamEvent]:
    """The events of natives, sentinels among them, and the flush.

    Raises:
        AssertionError: the normalizer raises.
    """
    normalizer = new_normalizer(subject, known_ids, turn_id)
    events: list[AgStreamEvent] = []
    native: Any = None
    try:
        for native in natives:
            events += normalizer.push(native)
    except Exception as error:
        message = f"{where}: push raised {type(error).__name__}: {error} for {shorten(native)}"
        raise AssertionError(message) from error
    try:
        events += normalizer.flush()
    except Exception as error:
        raise AssertionError(f"{where}: flush raised {type(error).__name__}: {error}") from error
    return events


def sound(
    events: Sequence[AgStreamEvent], where: str, *, known_ids: Iterable[str] = (), turn_id: str = TURN
) -> tuple[AgReduceResult, AgStreamEvent]:
    """Check a stream: each event can be read back, the checker finds nothing, it folds, and its turn ends once.

    Returns:
        The fold and the terminal.

    Raises:
        AssertionError: something does not hold.
    """
    with placed(where):
        return _sound(events, where, frozenset(known_ids), turn_id)


def _sound(
    events: Sequence[AgStreamEvent], where: str, known: frozenset[str], turn_id: str
) -> tuple[AgReduceResult, AgStreamEvent]:
    expect(events, f"{where}: no events at all")
    for event in events:
        _readable(event, where)
    expect(events[0].type == "turn.start", f"{where}: the first event is {events[0].type}, not turn.start")
    ends = [event for event in events if event.type in _TERMINALS and event.turn_id == turn_id]
    expect(len(ends) == 1, f"{where}: {len(ends)} terminals of the turn: {[event.type for event in ends]}")
    found = list(check(events, known_ids=known) if known else check(events))
    if found:
        told = "; ".join(f"event {each.line} {each.rule}: {each.message}" for each in found[:_QUOTED])
        raise AssertionError(f"{where}: check finds {len(found)} violations: {told}")
    reducer = Reducer()
    for event in events:
        reducer.push(event)
        if reducer.needs_resync:
            raise AssertionError(f"{where}: the fold parks at {shorten(event)}: {reducer.resync_reason}")
    return reducer.result(), ends[0]


def _readable(event: AgStreamEvent, where: str) -> None:
    """Make sure that an event can be read back from its text: one with a member of the wrong type cannot.

    Raises:
        AssertionError: it cannot; the message names the member.
    """
    try:
        check_members(event)
        decode_event(encode(event))
    except AgJSONError as error:
        raise AssertionError(f"{where}: nobody can read {shorten(event)}: {error}") from error


def run_sound(
    subject: Subject,
    sample: Sample,
    natives: Sequence[Any],
    where: str,
    *,
    ended: bool = True,
) -> Ran:
    """Run natives, check the stream, and that no success is told where the framework has not ended.

    Args:
        subject: the adapter.
        sample: where the natives come from.
        natives: what is pushed.
        where: what a failure calls this.
        ended: the host pushes a `HostEnd` at the end.

    Raises:
        AssertionError: something does not hold.
    """
    where = f"sample {sample.name!r}, {where}"
    pushed = [*natives, END] if ended else natives
    events = run(subject, pushed, where, known_ids=sample.known_ids)
    result, terminal = sound(events, where, known_ids=sample.known_ids)
    if terminal.type == "turn.done":
        by_host = ended and not new_normalizer(subject).ends_itself
        with placed(f"{where}: has_ended (it gets natives of any type)"):
            by_itself = subject.has_ended(natives)
        expect(
            by_host or by_itself,
            f"{where}: the turn ends as a success, but the framework has not ended (expected turn.abort or turn.error)",
        )
    return Ran(events, result, terminal)


def run_sample(subject: Subject, sample: Sample) -> Ran:
    """Run a sample as it is."""
    return run_sound(subject, sample, sample.natives, "as it is")


def opened_ids(events: Iterable[AgStreamEvent]) -> Iterator[str]:
    """Every id that events open, of turns, messages, blocks, calls, steps, asks and artifacts, in order.

    The message of a result counts where the result is what opens it.
    """
    opening = {
        "turn.start": "turn_id",
        "subagent.start": "turn_id",
        "message.start": "id",
        "text.start": "id",
        "reasoning.start": "id",
        "tool.start": "tool_call_id",
        "step.start": "id",
        "tool.done": "message_id",
        "hitl.ask": "ask_id",
        "artifact.start": "artifact_id",
    }
    reasoning: set[str] = set()
    messages: set[str] = set()
    for event in events:
        name = opening.get(event.type)
        id = getattr(event, name, None) if name is not None else None
        if not isinstance(id, str):
            continue
        if isinstance(event, ReasoningStart):
            if event.part_index is not None and id in reasoning:
                continue  # a further part of a block that is open
            reasoning.add(id)
        elif name == "message_id" and id in messages:
            continue
        if event.type in ("message.start", "tool.done"):
            messages.add(id)
        yield id


def places(natives: Sequence[Any], budget: int) -> list[int]:
    """Indexes from 0 to the length, all of them if the budget allows to push that many streams, else a sample.

    The sample is the same each time: the ends, the places where the kind of native changes, and an even spread.

    Args:
        natives: the stream.
        budget: how many natives may be pushed in all.
    """
    length = len(natives)
    most = max(8, budget // (length + 1))
    if length + 1 <= most:
        return list(range(length + 1))
    turns = [index for index in range(1, length) if _kind(natives[index]) != _kind(natives[index - 1])]
    chosen = {0, 1, length - 1, length, *_spread(turns, most // 2)}
    return sorted({*chosen, *_spread(range(length + 1), max(most - len(chosen), 2))})


def _spread(values: Sequence[int], most: int) -> list[int]:
    if len(values) <= most:
        return list(values)
    return [values[index * len(values) // most] for index in range(most)]


def _kind(native: object) -> Any:
    """What tells natives apart at first sight: the names of their members, and what calls itself a type."""
    if not is_object(native):
        return type(native)
    return sorted(map(str, native)), str(native.get("type")), str(native.get("event"))
