"""Turns and messages: opening, closing, sealing, removing, and the order of a flush (spec §5.0, §5, §8.16, §8.17)."""

from __future__ import annotations

from agjson.checker.asks import check_pause
from agjson.checker.state import Message, Tracker, Turn, newest
from agjson.types import (
    UNSET,
    MessageEnd,
    MessageMetadata,
    MessageRemove,
    MessageStart,
    SubagentDone,
    SubagentStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
)

__all__ = [
    "end_of_invoke",
    "message_end",
    "message_metadata",
    "message_remove",
    "message_start",
    "subagent_done",
    "subagent_start",
    "turn_abort",
    "turn_done",
    "turn_error",
    "turn_start",
]

# The reason that INV-FLUSH prescribes: a `turn.abort` that gives it was written by a flush.
_TRUNCATED = "stream-truncated"

# A model that stopped for one of these reasons has finished what it wrote; for any other, arguments may be cut off.
_COMPLETE = frozenset(("stop", "tool_call", "paused"))


def turn_start(tracker: Tracker, event: TurnStart) -> None:
    """Open a turn; a second opener may add to the first, not contradict it (spec §5.0 INV-TURN)."""
    tracker.end_flush(tracker.line)
    turn = _open(tracker, event.turn_id, "turn.start")
    if turn.thread_id is not None and turn.thread_id != event.thread_id:
        tracker.report("INV-TURN", f"turn `{turn.id}` is opened in thread `{turn.thread_id}` and `{event.thread_id}`")
    turn.thread_id = event.thread_id


def subagent_start(tracker: Tracker, event: SubagentStart) -> None:
    """Open a nested turn; its parent may be a label that no turn bears (spec §8 item 16)."""
    turn = _open(tracker, event.turn_id, "subagent.start")
    if turn.parent_id is not None and turn.parent_id != event.parent_turn_id:
        tracker.report("INV-TURN", f"turn `{turn.id}` is nested in `{turn.parent_id}` and in `{event.parent_turn_id}`")
    turn.nested = True
    turn.parent_id = event.parent_turn_id


def _open(tracker: Tracker, turn_id: str, by: str) -> Turn:
    turn = tracker.turns.get(turn_id)
    if turn is None:
        return tracker.open_turn(turn_id)
    if turn.closed is not None:
        tracker.report("INV-TURN", f"{by} opens turn `{turn_id}` again, which {turn.closed} has closed")
        turn.closed = None
        turn.opened = False
        tracker.open_turns[turn_id] = turn
    elif not turn.opened:
        # A snapshot or an earlier invoke knew it, or it was used before it was opened, which has been reported.
        turn.opened = True
        turn.line, turn.seq = tracker.line, tracker.seq
        tracker.open_turns[turn_id] = tracker.owed_turns[turn_id] = turn
    return turn


def turn_done(tracker: Tracker, event: TurnDone) -> None:
    """Close a turn; `messageId` names where `messageMetadata` goes, else the open message does (spec §5)."""
    turn = tracker.known_turn(event.turn_id)
    if not _may_close(tracker, turn, "turn.done"):
        return
    target = event.message_id
    if target is not None:
        if target not in tracker.messages and target not in tracker.known_ids:
            tracker.report("INV-OWNER", f"turn.done names message `{target}`, which does not exist")
    elif event.message_metadata is not UNSET and _open_message(turn) is None:
        tracker.report("INV-OWNER", f"turn.done has messageMetadata, but turn `{turn.id}` has no open message")
    if event.outcome.type in ("success", "paused") and event.finish_reason in _COMPLETE:
        for call_id in turn.unassembled:
            tracker.report("ASSEMBLED", f"turn `{turn.id}` ends well without tool.args.assembled for call `{call_id}`")
        for block_id in turn.unsigned:
            tracker.report("OPAQUE", f"turn `{turn.id}` ends well without reasoning.opaque for block `{block_id}`")
    check_pause(tracker, turn, event)
    tracker.close_turn(turn, "turn.done")


def turn_error(tracker: Tracker, event: TurnError) -> None:
    """Close a turn by an error; a flush may do so too."""
    tracker.end_flush(tracker.line)
    turn = tracker.turn_of(event)
    if turn is not None and _may_close(tracker, turn, "turn.error"):
        tracker.close_turn(turn, "turn.error")


def turn_abort(tracker: Tracker, event: TurnAbort) -> None:
    """Close a turn by an abort; one with the reason of a flush tells that all before it belongs to it."""
    turn = tracker.turn_of(event)
    if turn is None or not _may_close(tracker, turn, "turn.abort"):
        return
    if event.reason == _TRUNCATED:
        first = not tracker.in_flush
        tracker.end_flush(tracker.line)
        if first:
            _check_order_of_ends(tracker)
        tracker.flush_line = tracker.line
        latest = newest(tracker.open_turns)
        # By the lines of their openers: a snapshot lists the turns in an order of its own.
        if latest is not None and latest.opened and turn.opened and latest.line > turn.line:
            tracker.suspect_here(f"turn `{turn.id}` is aborted before the later turn `{latest.id}`")
    tracker.close_turn(turn, "turn.abort")


def _may_close(tracker: Tracker, turn: Turn, by: str) -> bool:
    if turn.closed is None:
        return True
    tracker.report("INV-TURN", f"{by} closes turn `{turn.id}`, which {turn.closed} has closed already")
    return False


def _check_order_of_ends(tracker: Tracker) -> None:
    """Check the message ends directly before a flush's first abort.

    The first of them may still come from the framework, in any order. One that leaves a block open comes from the
    flush, and so does every one after it: from there on they follow the order of the starts.
    """
    if tracker.ending_line != tracker.line - 1:
        return
    flushed = False
    highest = -1
    for line, seq, message in tracker.ending:
        flushed = flushed or message.dangling > 0
        if not flushed:
            continue
        if message.order < highest:
            tracker.suspect(line, seq, f"message `{message.id}` ends after one that was started later")
        highest = max(highest, message.order)


def subagent_done(tracker: Tracker, event: SubagentDone) -> None:
    """Close a nested turn, if its own terminal has not (spec §5 `subagent.done`)."""
    turn = tracker.known_turn(event.turn_id)
    if tracker.in_flush:
        tracker.suspect_here(f"subagent.done for turn `{turn.id}` after the flush has begun to abort turns")
    if turn.done:
        tracker.report("INV-TURN", f"subagent.done closes turn `{turn.id}` a second time")
    elif turn.opened and not turn.nested:
        tracker.report("INV-TURN", f"subagent.done closes turn `{turn.id}`, which no subagent.start has opened")
    elif turn.parent_id is not None and turn.parent_id != event.parent_turn_id:
        tracker.report("INV-TURN", f"turn `{turn.id}` is nested in `{turn.parent_id}`, not in `{event.parent_turn_id}`")
    turn.done = True
    if turn.closed is None:
        tracker.close_turn(turn, "subagent.done")


def message_start(tracker: Tracker, event: MessageStart) -> None:
    """Open a message (spec §5 message partitioning)."""
    turn = tracker.known_turn(event.turn_id)
    before = tracker.messages.get(event.id)
    if before is not None:
        if not before.restored or before.shut:
            tracker.report("INV-MSG", f"message `{event.id}` is started a second time")
        elif before.filled:
            tracker.report("INV-MSG", f"message `{event.id}` is started anew, which loses its content")
        tracker.remove_message(before)
    elif event.id in tracker.known_ids:
        tracker.report("INV-MSG", f"message `{event.id}` is in the thread already")
    if turn.closed is not None:
        tracker.report("INV-MSG", f"message `{event.id}` is started in turn `{turn.id}`, closed by {turn.closed}")
    elif turn.thread_id is not None and turn.thread_id != event.thread_id:
        tracker.report(
            "INV-OWNER", f"message `{event.id}` is in thread `{event.thread_id}`, its turn in `{turn.thread_id}`"
        )
    message = tracker.open_message(event.id, turn, event.candidate_index or 0)
    message.owed = turn.closed is None
    tracker.unsealed[event.id] = message


def message_end(tracker: Tracker, event: MessageEnd) -> None:
    """Seal a message."""
    message = tracker.messages.get(event.id)
    if message is None:
        tracker.report("INV-MSG", f"message.end names message `{event.id}`, which is not there")
        return
    if message.sealed:
        tracker.report("INV-MSG", f"message `{event.id}` is ended a second time")
        return
    tracker.is_of(event, message.turn_id, f"message `{event.id}`")
    if tracker.in_flush:
        tracker.suspect_here(f"message `{event.id}` ends after the flush has begun to abort turns")
    message.sealed = True
    message.open = message.owed = False
    tracker.unsealed.pop(event.id, None)
    if message.turn is not None:
        message.turn.drop(message)
    if tracker.ending_line != tracker.line - 1:
        tracker.ending = []
    tracker.ending.append((tracker.line, tracker.seq, message))
    tracker.ending_line = tracker.line


def message_remove(tracker: Tracker, event: MessageRemove) -> None:
    """Delete a message, or all of a turn; an unknown id is no fault (spec §5, §8 item 19)."""
    if event.id != "*":
        message = tracker.messages.get(event.id)
        right = message is None or tracker.is_of(event, message.turn_id, f"message `{event.id}`")
        tracker.check_named(event, quiet=not right)
        if message is not None:
            tracker.remove_message(message)
        return
    of_turn = tracker.by_turn.get(event.turn_id, {}) if event.turn_id is not None else {}
    for message in list(of_turn.values()):
        tracker.remove_message(message)


def message_metadata(tracker: Tracker, event: MessageMetadata) -> None:
    """Metadata goes to a message that exists; without a name, to the open one (spec §5)."""
    name = event.message_id
    if name is not None:
        if name not in tracker.messages and name not in tracker.known_ids:
            tracker.report("INV-OWNER", f"message.metadata names message `{name}`, which does not exist")
        return
    turn = tracker.turn_of(event)
    if turn is not None and _open_message(turn) is None:
        tracker.report("INV-OWNER", f"message.metadata names no message, and turn `{turn.id}` has no open one")


def _open_message(turn: Turn) -> Message | None:
    message = turn.pointers.get(0)
    return message if message is not None and message.open else None


def end_of_invoke(tracker: Tracker, line: int) -> None:
    """Report what an invoke leaves open, each at its opener (spec §5.0 INV-TURN, INV-MSG), and its flush.

    Args:
        tracker: the state.
        line: the line of the item after it.
    """
    tracker.end_flush(line)
    for message in tracker.unsealed.values():
        if message.owed:
            tracker.report_at(message.line, message.seq, "INV-MSG", f"message `{message.id}` is never ended")
        message.owed = False
    tracker.unsealed.clear()
    for turn in tracker.owed_turns.values():
        tracker.report_at(turn.line, turn.seq, "INV-TURN", f"turn `{turn.id}` is never closed")
        turn.opened = False
    tracker.owed_turns.clear()
    tracker.ending = []
