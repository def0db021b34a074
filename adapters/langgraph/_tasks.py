"""Tasks of a graph: steps on the wire, and what other parts must know of them (spec §5 step.*, §12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agjson.adapters.langgraph._scope import Namespace
from agjson.failures import describe_failure
from agjson.jsonable import jsonable
from agjson.types import JsonValue

__all__ = ["Failed", "Task", "Tasks", "error_text", "told_checkpoint", "told_task"]


@dataclass(slots=True)
class Task:
    """A run of a node.

    Attributes:
        id: its id, which the namespaces of graphs inside it end in.
        name: the node.
        ns: the namespace of the graph that it is a task of.
        input: what the node was given, as LangGraph told it.
        index: its place in the order in which tasks began, from 1.
        done: it has ended.
    """

    id: str
    name: str
    ns: Namespace
    input: Any = None
    index: int = 0
    done: bool = False

    @property
    def path(self) -> str:
        """Its place among all graphs, which LangGraph makes the ids of its interrupts from."""
        return "|".join((*self.ns, f"{self.name}:{self.id}"))


@dataclass(slots=True)
class Failed:
    """A task that raised, until it is known whether the graph has failed with it.

    Attributes:
        error: what it raised: the exception, or what a server told of it.
        message: that in words.
        turn_id: the turn in which it happened.
        name: the node.
    """

    error: Any
    message: str
    turn_id: str
    name: str


class Tasks:
    """What is known of the tasks of one invoke."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        # How many tasks of a node have not run, as what they return is known from before: LangGraph tells no end of
        # them, and their update names the node alone.
        self._cached: dict[tuple[Namespace, str], int] = {}
        # The tool calls that run in each graph, as the mode `tools` tells.
        self._calls: dict[Namespace, set[str]] = {}
        # Tools that raised, by the native id of their call: what they raised, and its turn.
        self.raised: dict[str, tuple[str, str]] = {}

    def start(self, ns: Namespace, data: dict[str, Any]) -> Task:
        """A task begins.

        Args:
            ns: the namespace of its graph.
            data: what the mode ``tasks`` says of it.
        """
        task = Task(str(data.get("id", "")), str(data.get("name", "")), ns, data.get("input"), len(self._tasks) + 1)
        self._tasks[task.id] = task
        return task

    def end(self, ns: Namespace, data: dict[str, Any]) -> Task:
        """A task ends, begun or not."""
        task = self._tasks.get(str(data.get("id", ""))) or self.start(ns, data)
        task.done = True
        return task

    def index(self, task: Task | None) -> int:
        """The place of a task in the order in which they began; 0 for one that is not known."""
        return 0 if task is None else task.index

    def running(self, ns: Namespace) -> Iterator[Task]:
        """The tasks of a graph that have not ended."""
        return (task for task in self._tasks.values() if task.ns == ns and not task.done)

    def take_cached(self, ns: Namespace, update: Any) -> list[Task]:
        """Note an update that tells that a task has not run, as what it returns is known from before.

        Args:
            ns: the namespace of the graph.
            update: what the mode ``updates`` says.

        Returns:
            The tasks that have ended with it, as far as it is known which they are.
        """
        mark = update.get("__metadata__") if isinstance(update, dict) else None
        if not isinstance(mark, dict) or not mark.get("cached"):
            return []
        ended: list[Task] = []
        for name in update:
            if isinstance(name, str) and not name.startswith("__"):
                self._cached[ns, name] = self._cached.get((ns, name), 0) + 1
                ended += self.without_end(ns, name)
        return ended

    def without_end(self, ns: Namespace, name: str) -> list[Task]:
        """The tasks of a node that have ended though nothing tells it: once all its others have.

        Args:
            ns: the namespace of the graph.
            name: the node.
        """
        count = self._cached.get((ns, name))
        if count is None:
            return []
        left = [task for task in self.running(ns) if task.name == name]
        if len(left) > count:
            return []
        del self._cached[ns, name]
        for task in left:
            task.done = True
        return left

    # Tool calls

    def tool_started(self, ns: Namespace, call_id: str) -> None:
        """A tool runs."""
        self._calls.setdefault(ns, set()).add(call_id)

    def tool_ended(self, ns: Namespace, call_id: str) -> None:
        """A tool ended, in whatever way."""
        self._calls.get(ns, set[str]()).discard(call_id)

    def call_of(self, task: Task | None) -> str | None:
        """The native id of the tool call that a task runs; None where it runs none, or perhaps several."""
        if task is None:
            return None
        called = _call_in(task.input)
        if called is not None:
            return called
        running = self._calls.get(task.ns, set[str]())
        others = [each for each in self.running(task.ns) if each is not task]
        return next(iter(running)) if len(running) == 1 and not others else None

    def spawned_by(self, ns: Namespace, task_id: str) -> str | None:
        """The native id of the tool call in which a graph runs, by the task that runs it."""
        return self.call_of(self._tasks.get(task_id))


def _call_in(given: Any) -> str | None:
    """The tool call that a task was sent for: ``create_agent`` sends each call to a task of its own."""
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if isinstance(given, dict) and given.get("__type") == "tool_call_with_context":
        given = given.get("tool_call")
    if isinstance(given, dict) and given.get("type") == "tool_call" and isinstance(given.get("id"), str):
        call_id: str = given["id"]
        return call_id
    return None


def error_text(error: Any) -> str:
    """What a task raised, in words."""
    if isinstance(error, BaseException):
        return describe_failure(error).message
    if isinstance(error, dict):
        error = error.get("message") or error
    return error if isinstance(error, str) else str(jsonable(error))


def told_task(ns: Namespace, data: Mapping[str, Any]) -> dict[str, JsonValue]:
    """A task for ``ext.langgraph.task``: whole, with exceptions in words (spec §12).

    Args:
        ns: the namespace of its graph.
        data: what the mode ``tasks`` says of it.
    """
    error = data.get("error")
    return {**_told(ns, data), **({} if error is None else {"error": error_text(error)})}


def told_checkpoint(ns: Namespace, data: Mapping[str, Any]) -> dict[str, JsonValue]:
    """A checkpoint for ``ext.langgraph.checkpoint``: where it is and what comes next, not the state in it (spec §12).

    Args:
        ns: the namespace of its graph.
        data: what the mode ``checkpoints`` says of it.
    """
    told = _told(ns, {name: value for name, value in data.items() if name not in _OF_STATE})
    for name in ("config", "parent_config"):
        config = data.get(name)
        where = config.get("configurable") if isinstance(config, Mapping) else None
        if isinstance(where, Mapping):
            # What else a configuration holds is the host's own.
            place = {key: where[key] for key in _PLACE if key in where}
            told[name] = jsonable({"configurable": place})
    return told


_OF_STATE = frozenset(("values", "tasks", "config", "parent_config"))
_PLACE = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


def _told(ns: Namespace, data: Mapping[str, Any]) -> dict[str, JsonValue]:
    plain = jsonable(data)
    told: dict[str, JsonValue] = {"ns": list(ns), **(plain if isinstance(plain, dict) else {})}
    metadata = told.get("metadata")
    if isinstance(metadata, dict):
        # What the driver has put there is for itself.
        told["metadata"] = {name: value for name, value in metadata.items() if not name.startswith("agjson/")}
    return told
