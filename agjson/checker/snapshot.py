"""Snapshots: what a check knows afterwards is what the snapshot holds (spec §5 `messages.snapshot`)."""

from __future__ import annotations

from collections.abc import Iterable

from agjson.checker.asks import remember_ask
from agjson.checker.state import Call, Message, Tracker, Turn
from agjson.checker.tools import given_fields
from agjson.types import (
    UNSET,
    AgArtifact,
    AgMemoryRecord,
    AgMessage,
    AgReduceResult,
    AgTurnRecord,
    MessagesSnapshot,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["messages_snapshot", "restore"]


def messages_snapshot(tracker: Tracker, event: MessagesSnapshot) -> None:
    """Start again from a snapshot; containers that it leaves out are kept."""
    if event.turns is not None:
        _restore_turns(tracker, event.turns)
    _restore_messages(tracker, event.messages)
    if event.artifacts is not None:
        _restore_artifacts(tracker, event.artifacts)
    if event.memory is not None:
        _restore_memory(tracker, event.memory)


def restore(tracker: Tracker, result: AgReduceResult) -> None:
    """Start from the fold of what came before the stream."""
    _restore_turns(tracker, result.turns)
    _restore_messages(tracker, result.messages)
    _restore_artifacts(tracker, result.artifacts)
    _restore_memory(tracker, result.memory)
    for record in result.memory:
        tracker.memory.setdefault(record.scope, set()).add(record.key or "")
    tracker.has_state = result.state is not UNSET


def _restore_turns(tracker: Tracker, records: Iterable[AgTurnRecord]) -> None:
    before = tracker.turns
    tracker.turns = {}
    parents: dict[str, str] = {}
    for record in records:
        turn_id = record.turn_id
        if turn_id in tracker.turns:
            tracker.report("INV-TURN", f"a snapshot holds turn `{turn_id}` twice")
            continue
        turn = before.get(turn_id)
        if turn is None:
            turn = Turn(turn_id, tracker.line, tracker.seq, opened=False)
            turn.nested = record.parent_turn_id is not None
        if turn.closed is None and record.outcome is not None:
            turn.closed = "a snapshot"
        tracker.turns[turn_id] = turn
        if record.parent_turn_id is not None:
            parents[turn_id] = record.parent_turn_id
        for ask in record.asks or ():
            remember_ask(tracker, ask)
        for source in record.sources or ():
            tracker.sources.add(source.source_id)
            tracker.cited.pop(source.source_id, None)
    tracker.open_turns = _running(tracker.turns, parents)
    tracker.owed_turns = {
        turn_id: turn
        for turn_id, turn in tracker.owed_turns.items()
        if turn.closed is None and tracker.turns.get(turn_id) is turn
    }


def _running(turns: dict[str, Turn], parents: dict[str, str]) -> dict[str, Turn]:
    """Close the nested turns that have ended, since `subagent.done` leaves no trace in a record.

    A nested turn runs if its parent is known to run, wherever the two records stand. Below a label that no turn bears
    it may run for as long as another turn does: it stays open, and takes what names it alone.

    Args:
        turns: all turns by id, those with an outcome closed.
        parents: the parent of each nested turn, or the label in place of one.

    Returns:
        The turns that run.
    """
    nested: dict[str, list[Turn]] = {}
    waiting: list[Turn] = []
    for turn in turns.values():
        if turn.closed is None and turn.id in parents:
            nested.setdefault(parents[turn.id], []).append(turn)
        elif turn.closed is None:
            waiting.append(turn)
    running: set[str] = set()
    while waiting:
        turn = waiting.pop()
        running.add(turn.id)
        waiting += nested.pop(turn.id, ())
    if running:
        for label in [label for label in nested if label not in turns]:
            waiting += nested.pop(label)
        while waiting:
            waiting += nested.pop(waiting.pop().id, ())
    for ended in nested.values():
        for turn in ended:
            turn.closed = "a snapshot"
    # In the order of their openers, which a snapshot need not keep.
    return {turn.id: turn for turn in sorted(turns.values(), key=lambda turn: turn.line) if turn.id in running}


def _restore_messages(tracker: Tracker, messages: Iterable[AgMessage]) -> None:
    before = tracker.messages
    tracker.messages = {}
    tracker.by_turn = {}
    tracker.texts = {}
    tracker.reasonings = {}
    tracker.calls = {}
    tracker.partials = {}
    for turn in tracker.busy_turns.values():
        turn.clear()
    tracker.busy_turns = {}
    for stored in messages:
        if stored.id in tracker.messages:
            tracker.report("INV-MSG", f"a snapshot holds message `{stored.id}` twice")
            continue
        tracker.enter_message(_restored(tracker, stored, before.get(stored.id)))
    for message_id in [name for name in tracker.unsealed if name not in tracker.messages]:
        del tracker.unsealed[message_id]


def _restored(tracker: Tracker, stored: AgMessage, before: Message | None) -> Message:
    turn = tracker.turns.get(stored.turn_id) if stored.turn_id is not None else None
    message = Message(stored.id, turn, stored.candidate_index or 0, tracker.line)
    message.turn_id = stored.turn_id
    message.restored = True
    message.filled = bool(stored.content)
    message.open = False
    if before is not None:
        message.line, message.seq, message.order = before.line, before.seq, before.order
        message.sealed, message.owed = before.sealed, before.owed
    if stored.id in tracker.unsealed:
        tracker.unsealed[stored.id] = message
    for block in stored.content:
        if isinstance(block, ToolCallBlock):
            call_id = block.tool_call_id
            if call_id in tracker.calls:
                tracker.report("INV-BLOCK", f"a snapshot holds call `{call_id}` twice")
            tracker.calls[call_id] = Call(message, whole=True)
            tracker.announced_calls.add(call_id)
            message.calls.append(call_id)
        elif isinstance(block, ToolResultBlock):
            tracker.announced_calls.add(block.tool_call_id)
            if block.preliminary:
                tracker.keep_partial(block.tool_call_id, message, given_fields(block))
    return message


def _restore_artifacts(tracker: Tracker, artifacts: Iterable[AgArtifact]) -> None:
    tracker.artifacts = {artifact.artifact_id: True for artifact in artifacts}


def _restore_memory(tracker: Tracker, records: Iterable[AgMemoryRecord]) -> None:
    tracker.memory["thread"] = {record.key or "" for record in records if record.scope == "thread"}
