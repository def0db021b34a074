"""What a graph's stored state says against going on: read before the graph runs (spec §3.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agjson.adapters.langgraph._asks import ordinal_of
from agjson.adapters.langgraph._config import TURN_ID
from agjson.adapters.langgraph._handles import CHECKPOINT_ID, is_static
from agjson.adapters.langgraph._resume import Resumption
from agjson.adapters.langgraph._stored_state import Waiting, head_of, waiting_in
from agjson.types import AgPausedAsk

__all__ = ["Refusal", "check_fork", "check_resume", "check_start", "matched"]


class Refusal(Exception):
    """The graph is not run; becomes `turn.error`.

    Attributes:
        code: ``unknown_thread``, ``unknown_checkpoint``, ``no_pending_ask``, ``stale_checkpoint``,
            ``answer_already_taken``, ``ask_changed`` or ``thread_moved``.

    Args:
        code: the code of the error.
        message: what is wrong.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_resume(state: Any, resumption: Resumption, asks: Sequence[AgPausedAsk], taken: Collection[str]) -> bool:
    """Check that the graph waits for every answer of a batch.

    Args:
        state: the latest state of the graph's thread.
        resumption: the answers.
        asks: the asks of the batch.
        taken: the interrupts to which the graph has taken an answer of somebody else.

    Returns:
        Whether the graph has to be asked again on a fork, because such an answer stands in the way.

    Raises:
        Refusal: the graph does not wait for these answers, or it may have acted on another one.
    """
    head = head_of(state)
    if head is None:
        raise Refusal("unknown_thread", "the graph's checkpointer does not have the thread that was paused")
    issued = _issued_checkpoint(asks)
    if issued is not None and issued != head:
        raise Refusal("stale_checkpoint", f"the graph has moved on from checkpoint {issued} to {head}")
    if not state.next:
        raise Refusal("no_pending_ask", "the graph waits for nothing")
    waiting = waiting_in(state)
    missing = [id for id in resumption.values if id not in waiting]
    if missing:
        raise Refusal("no_pending_ask", f"the graph does not wait for an answer to {', '.join(missing)}")
    if not any(id in taken for id in resumption.values):
        return False
    # A review of a batch fails over its decisions before anything runs; what else has run, nothing tells. A graph
    # inside would begin anew.
    unsafe = [id for id in resumption.values if id in taken and not _is_review_at_root(id, waiting[id])]
    if unsafe:
        raise Refusal("answer_already_taken", f"the graph has taken another answer to {', '.join(unsafe)}")
    return True


def _is_review_at_root(id: str, found: Waiting) -> bool:
    value = found.value
    if not isinstance(value, Mapping) or "action_requests" not in value or "review_configs" not in value:
        return False
    return ordinal_of(id, f"{found.task.name}:{found.task.id}") is not None


def check_fork(state: Any) -> None:
    """Check that a step may be asked again from its beginning: nothing of it has run to its end.

    Args:
        state: the state of the step.

    Raises:
        Refusal: a task of the step has ended, and would run a second time.
    """
    ended = [
        task.name for task in state.tasks if not task.interrupts and task.error is None and task.result is not None
    ]
    if ended:
        raise Refusal(
            "answer_already_taken",
            f"the graph has taken another answer, and cannot be asked again: {', '.join(ended)} would run twice",
        )


def matched(before: Any, after: Any, ids: Collection[str]) -> dict[str, str]:
    """The interrupts of a step that was asked again, by the ids that they had.

    Args:
        before: the state as it was.
        after: the state of the fork.
        ids: the interrupts that are answered.

    Returns:
        For each of them the new id.

    Raises:
        Refusal: the graph does not ask the same again.
    """
    new: dict[str, str] = {}
    old, again = waiting_in(before), waiting_in(after)
    for id in ids:
        asked = old[id]
        same = [
            other
            for other, found in again.items()
            if other not in new.values() and found.task.name == asked.task.name and found.value == asked.value
        ]
        if not same:
            raise Refusal("ask_changed", f"asked again, the graph asks something else than {id}")
        new[id] = same[0]
    return new


def check_start(state: Any, *, asked: Collection[str], own_turns: Collection[str], discards: bool) -> None:
    """Check that a start leaves nothing behind that is not this thread's to leave.

    Args:
        state: the latest state of the graph's thread.
        asked: the interrupts that this thread waits for and this start gives up.
        own_turns: the turns of this thread.
        discards: the host lets starts give pauses up.

    Raises:
        Refusal: the graph waits for an answer that somebody else has to give.
    """
    waiting = waiting_in(state)
    if not waiting:
        return
    turn = (state.metadata or {}).get(TURN_ID)
    if waiting.keys() <= set(asked) or turn in own_turns or (discards and turn is not None):
        return
    raise Refusal(
        "thread_moved",
        f"the graph waits for an answer that this thread has not asked for ({', '.join(waiting)})",
    )


def _issued_checkpoint(asks: Sequence[AgPausedAsk]) -> str | None:
    for ask in asks:
        named = (ask.metadata or {}).get(CHECKPOINT_ID)
        if isinstance(named, str) and named:
            return named
        if is_static(ask):
            return ask.ask_id.partition(":")[2]
    return None
