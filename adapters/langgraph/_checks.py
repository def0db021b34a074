"""What a graph's stored state says against going on: read before the graph runs (spec §3.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agjson.adapters.langgraph._asks import ordinal_of
from agjson.adapters.langgraph._config import TURN_ID
from agjson.adapters.langgraph._resume import CHECKPOINT_ID, ResumePlan, is_static
from agjson.types import AgPausedAsk

__all__ = [
    "Dangling",
    "Refusal",
    "check_resume",
    "check_start",
    "dangling_calls",
    "head_of",
    "known_messages",
    "levels_of",
    "matched",
]


# LangGraph's channel for answers, and the task that answers without an interrupt id are noted for.
_RESUME = "__resume__"
_ANY_TASK = "00000000-0000-0000-0000-000000000000"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dangling:
    """A call in the graph's messages that has no result.

    Attributes:
        id: the call's id.
        name: its tool.
        result: what it returned, where the step ended before the graph could note it; None: not known.
    """

    id: str
    name: str
    result: Any = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A native interrupt that waits.

    Attributes:
        task: the task of the root graph that it belongs to.
        value: what the graph asked.
    """

    task: Any
    value: Any


def head_of(state: Any) -> str | None:
    """The id of the checkpoint that a state was read from; None: the checkpointer has no such thread.

    Args:
        state: what ``get_state`` returned.
    """
    if state.created_at is None and state.metadata is None:
        return None
    id = (state.config.get("configurable") or {}).get("checkpoint_id")
    return id if isinstance(id, str) else None


def waiting_in(state: Any) -> dict[str, Waiting]:
    """The interrupts of a state by id; those of subgraphs are among those of their tasks.

    Args:
        state: the state.
    """
    waiting: dict[str, Waiting] = {}
    for task in state.tasks:
        for interrupt in task.interrupts:
            waiting[interrupt.id] = Waiting(task, interrupt.value)
    return waiting


def task_of(state: Any, interrupt_id: str) -> str:
    """The id of the task that waits for an answer.

    Args:
        state: the state.
        interrupt_id: the interrupt; it is among those that wait.
    """
    return str(waiting_in(state)[interrupt_id].task.id)


def levels_of(state: Any) -> list[Any]:
    """A state and those of the graphs inside it that have paused, as ``get_state(subgraphs=True)`` nests them.

    Args:
        state: the state of the root graph.
    """
    found = [state]
    for task in state.tasks:
        if hasattr(task.state, "tasks"):
            found += levels_of(task.state)
    return found


def taken_answers(state: Any, writes: Sequence[Any]) -> set[str]:
    """The interrupts of one graph to which an answer has been taken, by what its checkpoint has noted.

    A graph keeps an answer that a task could not use, and goes on with it whatever comes later.

    Args:
        state: the state of the graph.
        writes: the pending writes of its checkpoint: task, channel and value of each.
    """
    answers: dict[str, int] = {}
    for task_id, channel, value in writes:
        if channel == _RESUME:
            answers[task_id] = len(value) if isinstance(value, list) else 1
    ns = state.config["configurable"].get("checkpoint_ns") or ""
    taken: set[str] = set()
    for task in state.tasks:
        for interrupt in task.interrupts:
            place = ordinal_of(interrupt.id, f"{ns}|{task.name}:{task.id}" if ns else f"{task.name}:{task.id}")
            if task.error or _ANY_TASK in answers or (place is not None and answers.get(task.id, 0) > place):
                taken.add(interrupt.id)
    return taken


def check_resume(state: Any, plan: ResumePlan, asks: Sequence[AgPausedAsk], taken: Collection[str]) -> bool:
    """Check that the graph waits for every answer of a batch.

    Args:
        state: the latest state of the graph's thread.
        plan: the answers.
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
    missing = [id for id in plan.values if id not in waiting]
    if missing:
        raise Refusal("no_pending_ask", f"the graph does not wait for an answer to {', '.join(missing)}")
    if not any(id in taken for id in plan.values):
        return False
    # A review of a batch fails over its decisions before anything runs; what else has run, nothing tells. A graph
    # inside would begin anew.
    unsafe = [id for id in plan.values if id in taken and not _is_review_at_root(id, waiting[id])]
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


# Messages of the state


def messages_in(state: Any, key: str) -> list[Any]:
    """The messages of a state, as the graph keeps them.

    Args:
        state: the state.
        key: the state key that holds them.
    """
    values = state.values
    found = values.get(key) if isinstance(values, Mapping) else getattr(values, key, None)
    return list(found) if isinstance(found, (list, tuple)) else []


def member(message: Any, name: str) -> Any:
    """A member of a message, be it an object or plain data.

    Args:
        message: the message.
        name: the member.
    """
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def known_messages(state: Any, key: str) -> set[str]:
    """The ids of the messages that a graph has.

    Args:
        state: its state.
        key: the state key that holds them.
    """
    return {id for message in messages_in(state, key) if isinstance(id := member(message, "id"), str)}


def dangling_calls(state: Any, key: str) -> list[Dangling]:
    """The calls of the last answer that have no result; providers refuse a history that goes on without one.

    Args:
        state: the state of the graph.
        key: the state key that holds its messages.
    """
    messages = messages_in(state, key)
    last = next((at for at in reversed(range(len(messages))) if member(messages[at], "type") != "tool"), None)
    if last is None:
        return []
    results = _unnoted_results(state, key)
    return [Dangling(id=id, name=name, result=results.get(id)) for id, name in open_calls(messages[last:]).items()]


def open_calls(messages: Sequence[Any]) -> dict[str, str]:
    """The calls that have no result in some messages, by id, with the names of their tools.

    Args:
        messages: the messages, in order.
    """
    found: dict[str, str] = {}
    for message in messages:
        if member(message, "type") == "tool":
            found.pop(str(member(message, "tool_call_id")), None)
        for call in member(message, "tool_calls") or ():
            if call.get("id"):
                found[call["id"]] = str(call.get("name") or "")
    return found


def _unnoted_results(state: Any, key: str) -> dict[str, Any]:
    """Results of tasks that ended in a step that did not: the graph drops them with the step."""
    found: dict[str, Any] = {}
    for task in state.tasks:
        result = task.result
        messages = result.get(key) if isinstance(result, Mapping) else None
        for message in messages if isinstance(messages, (list, tuple)) else ():
            if member(message, "type") == "tool":
                found[str(member(message, "tool_call_id"))] = message
    return found
