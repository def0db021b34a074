"""Snapshots: what a parked fold waits for, and how to make them (spec §5 *.snapshot, INV-SEQ)."""

from __future__ import annotations

from agjson.fold._state import Fold, Handlers
from agjson.types import UNSET, AgReduceResult, MessagesSnapshot, StateSnapshot

__all__ = ["SNAPSHOT_HANDLERS", "snapshot"]


def snapshot(
    result: AgReduceResult, *, seq: int = 0, turn_id: str | None = None
) -> list[MessagesSnapshot | StateSnapshot]:
    """The events that bring another fold to this result and un-park it (spec §5, INV-SEQ).

    The `messages.snapshot` carries every container in full. Memory records of agent, user and skill scope ride along,
    but a fold that receives them keeps its own (spec §5): a client that needs them starts from
    ``Reducer(initial=result)``.

    Args:
        result: the fold to send.
        seq: the ordinal of the first event; the second one has the next.
        turn_id: the turn that the events name, for streams where every event names one.

    Returns:
        A `messages.snapshot`, and a `state.snapshot` if a state was ever set.
    """
    events: list[MessagesSnapshot | StateSnapshot] = [
        MessagesSnapshot(
            seq=seq,
            turn_id=turn_id,
            messages=result.messages,
            turns=result.turns,
            artifacts=result.artifacts,
            memory=result.memory,
        )
    ]
    if result.state is not UNSET:
        events.append(StateSnapshot(seq=seq + 1, turn_id=turn_id, snapshot=result.state))
    return events


def _messages_snapshot(fold: Fold, event: MessagesSnapshot) -> None:
    fold.clear_transients()
    if event.turns is not None:
        fold.seed_turns(event.turns)
    fold.seed_messages(event.messages)
    if event.artifacts is not None:
        fold.seed_artifacts(event.artifacts)
    if event.memory is not None:
        fold.clear_thread_memory()
        for record in event.memory:
            if record.scope == "thread":
                fold.seed_memory(record)


def _state_snapshot(fold: Fold, event: StateSnapshot) -> None:
    fold.state = event.snapshot


SNAPSHOT_HANDLERS: Handlers = {MessagesSnapshot: _messages_snapshot, StateSnapshot: _state_snapshot}
"""The only events that a parked fold takes."""
