"""What is left of a run that never came to its end: its process died, or its thread could not be saved (spec §5.0)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agjson.agents.notes import Notes, note
from agjson.agents.thread import Thread
from agjson.emitter import Emitter
from agjson.fold import Reducer
from agjson.types import AgStreamEvent, TurnAbort, TurnStart

__all__ = ["INTERRUPTED", "Recovered", "recover"]

INTERRUPTED = "interrupted"
"""The reason of the `turn.abort` that ends a lost run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A thread after a lost run.

    Attributes:
        thread: the thread, with the events of the run that were noted and with its end.
        events: what closes the turn, for readers that had all noted events: they go on from the ordinal of the last.
            Empty: the terminal was noted.
    """

    thread: Thread
    events: list[AgStreamEvent]


def recover(thread: Thread, turn_id: str, events: Iterable[AgStreamEvent], *, reason: str = INTERRUPTED) -> Recovered:
    """Close a turn that nobody runs any more.

    Args:
        thread: what `ThreadLease.begin` was told.
        turn_id: the turn.
        events: what of it was noted, in order and without a gap from the first; perhaps nothing.
        reason: why, for `turn.abort`.

    Events that no emitter would write (a gap, a stream that does not fold) are the fault of a store or an adapter. A
    thread is not lost for it: what comes before a gap counts, and of a stream that does not fold only that there was a
    turn.
    """
    noted = _without_gap(events)
    notes, reducer = Notes(turn_id), Reducer(thread.result)
    for event in noted:
        reducer.push(event)
        note(notes, event)
    closing: list[AgStreamEvent] = []
    if notes.terminal is None:
        closing = _closing(thread, turn_id, noted, reason)
        for event in closing:
            reducer.push(event)
            note(notes, event)
    if reducer.needs_resync:
        reducer = Reducer(thread.result)
        reducer.push(TurnStart(seq=0, thread_id=thread.thread_id, turn_id=turn_id))
        reducer.push(TurnAbort(seq=1, turn_id=turn_id, reason=reason))
    return Recovered(
        thread=replace(
            thread,
            result=reducer.result(),
            ids=thread.ids | notes.ids,
            nested=thread.nested | notes.nested,
            revision=thread.revision + 1,
        ),
        events=closing,
    )


def _without_gap(events: Iterable[AgStreamEvent]) -> list[AgStreamEvent]:
    noted: list[AgStreamEvent] = []
    for event in events:
        if event.seq != len(noted):
            break
        noted.append(event)
    return noted


def _closing(thread: Thread, turn_id: str, noted: list[AgStreamEvent], reason: str) -> list[AgStreamEvent]:
    """The events that an emitter would write next; it knows what is open once it has written the others again."""
    out = Emitter(
        turn_id,
        thread.thread_id,
        known_ids=thread.ids,
        open_asks=frozenset(ask.ask_id for ask in thread.pending.open_asks),
        state=thread.result.state,
        memory=thread.result.memory,
    )
    for event in noted:
        out.emit(event)
    if out.drain() != noted:
        return [TurnAbort(seq=len(noted), turn_id=turn_id, reason=reason)]
    if not noted:
        out.turn_start(turn_id)
    out.turn_abort(reason, turn_id=turn_id)
    out.flush()
    return out.drain()
