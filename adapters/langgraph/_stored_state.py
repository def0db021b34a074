"""What a graph's stored state says, as ``get_state`` returns it: what waits, what was said, which calls are open.

Nothing here judges it: `_checks` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agjson.adapters.langgraph._asks import ordinal_of

__all__ = [
    "Dangling",
    "Waiting",
    "dangling_calls",
    "head_of",
    "known_messages",
    "levels_of",
    "member",
    "messages_in",
    "open_calls",
    "taken_answers",
    "task_of",
    "waiting_in",
]

# LangGraph's channel for answers, and the task that answers without an interrupt id are noted for.
_RESUME = "__resume__"
_ANY_TASK = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A native interrupt that waits.

    Attributes:
        task: the task of the root graph that it belongs to.
        value: what the graph asked.
    """

    task: Any
    value: Any


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
