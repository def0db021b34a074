"""What is left of a run that never came to its end: its process died, or its thread could not be saved (spec §5.0)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_fields

from msgspec import Struct
from msgspec.structs import replace

from agjson.agents.notes import Notes, Terminal, note
from agjson.agents.thread import Thread
from agjson.emitter import Emitter
from agjson.fold import Reducer
from agjson.types import AgReduceResult, AgStreamEvent, TurnAbort, TurnStart

__all__ = ["INTERRUPTED", "Recovered", "recover"]

INTERRUPTED = "interrupted"
"""The reason of the `turn.abort` that ends a lost run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A thread after a lost run.

    Attributes:
        thread: the thread, with the events of the run that count and with its end.
        noted: how many of the noted events count, from the first on; a log drops the others. Readers that had more
            must resync.
        events: what closes the turn, for readers that had those that count: they go on from the ordinal of the last.
            Empty: the terminal was noted.
    """

    thread: Thread
    noted: int
    events: list[AgStreamEvent]


def recover(thread: Thread, turn_id: str, events: Iterable[AgStreamEvent], *, reason: str = INTERRUPTED) -> Recovered:
    """Close a turn that nobody runs any more (spec §5.0 INV-FLUSH).

    Events that no emitter would write (a gap, a stream that does not fold) are the fault of a store or an adapter. A
    thread is not lost for it: what comes before a gap counts, and of a stream that does not fold only that there was a
    turn.

    Args:
        thread: what `ThreadLease.begin` was told.
        turn_id: the turn.
        events: what of it was noted, in order and without a gap from the first; perhaps nothing.
        reason: why, for `turn.abort`.
    """
    noted = _without_gap(events)
    folded = (
        (count, closing, result)
        for count, closing in _ends(thread, turn_id, noted, reason)
        if (result := _folded(thread, [*noted[:count], *closing])) is not None
    )
    count, closing, result = next(folded, (0, list[AgStreamEvent](), thread.result))
    notes = Notes(turn_id)
    notes.use("turns", turn_id)
    # Also what does not count has been seen by readers: its ids must not come again.
    for event in (*noted, *closing):
        note(notes, event)
    return Recovered(
        thread=replace_fields(
            thread,
            result=result,
            ids=thread.ids | notes.ids,
            nested=thread.nested | notes.nested,
            revision=thread.revision + 1,
        ),
        noted=count,
        events=closing,
    )


def _folded(thread: Thread, events: list[AgStreamEvent]) -> AgReduceResult | None:
    """What a thread folds to with these events; None: they do not fold."""
    reducer = Reducer(thread.result)
    for event in events:
        reducer.push(event)
    return None if reducer.needs_resync else reducer.result()


def _without_gap(events: Iterable[AgStreamEvent]) -> list[AgStreamEvent]:
    noted: list[AgStreamEvent] = []
    for event in events:
        if event.seq != len(noted):
            break
        noted.append(event)
    return noted


def _ends(
    thread: Thread, turn_id: str, noted: list[AgStreamEvent], reason: str
) -> Iterator[tuple[int, list[AgStreamEvent]]]:
    """Ways to end the turn, the best one first: how many of the noted events count, and what follows them."""
    if any(isinstance(event, Terminal) and event.turn_id == turn_id for event in noted):
        yield len(noted), []
    else:
        yield len(noted), _closing(thread, turn_id, noted, reason)
        yield len(noted), [TurnAbort(seq=len(noted), turn_id=turn_id, reason=reason)]
    start = TurnStart(seq=0, thread_id=thread.thread_id, turn_id=turn_id)
    yield 0, [start, TurnAbort(seq=1, turn_id=turn_id, reason=reason)]


def _closing(thread: Thread, turn_id: str, noted: list[AgStreamEvent], reason: str) -> list[AgStreamEvent]:
    """The events that an emitter would write next; it knows what is open once it has written the others again."""
    out = Emitter(turn_id, thread.thread_id, **thread.settings())
    for event in noted:
        out.emit(event)
    out.drain()
    if not noted:
        out.turn_start(turn_id)
    out.turn_abort(reason, turn_id=turn_id)
    out.flush()
    # An emitter may write more or fewer events than it is given.
    return [replace(event, seq=seq) for seq, event in enumerate(out.drain(), len(noted)) if isinstance(event, Struct)]
