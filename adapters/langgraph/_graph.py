"""What a compiled graph can do, and running it, blocking or asynchronous, by one plan of steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agjson.adapters.langgraph._config import fields_of

__all__ = ["Durability", "Graph", "Plan", "ReadState", "ReadWrites", "RunGraph", "Say", "run_async", "run_blocking"]


# The modes that tell of pauses. Without them a graph that waits looks like one that has ended.
_OF_PAUSES = ("updates", "checkpoints")


@dataclass(frozen=True, slots=True)
class ReadState:
    """A step of a plan: read the state of a thread; the plan gets the ``StateSnapshot``.

    Attributes:
        config: which thread, perhaps which checkpoint.
        subgraphs: with the states of paused graphs inside it.
    """

    config: Mapping[str, Any]
    subgraphs: bool = False


@dataclass(frozen=True, slots=True)
class ReadWrites:
    """A step of a plan: read what the tasks of a checkpoint have noted; the plan gets task, channel and value of each.

    Attributes:
        config: the thread and the checkpoint.
    """

    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    """A step of a plan: hand something to the normalizer.

    Attributes:
        native: a native event, or a sentinel of the host.
    """

    native: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGraph:
    """A step of a plan: run the graph to its end or next pause.

    Attributes:
        input: the input, or a ``Command``; None: go on.
        config: the config of the run.
        context: the context of the run.
        keep: says what of the run's parts is handed on; None: all. It may return another part, or None to leave it out.
    """

    input: Any
    config: Mapping[str, Any]
    context: Any = None
    keep: Callable[[Any], Any] | None = field(default=None)


Durability: TypeAlias = Literal["sync", "async", "exit"]
"""When a graph writes its checkpoints: before the next step, beside it, or when it ends."""

Step: TypeAlias = ReadState | ReadWrites | Say | RunGraph

Plan: TypeAlias = Generator[Step, Any, None]
"""Steps one after another; each gets what the step before has found."""


class Graph:
    """A compiled graph, and what can be told of it without running it.

    Args:
        graph: the graph, as ``StateGraph.compile`` or ``create_agent`` returns it.
        modes: the stream modes to ask for. Pauses are told whatever they are.
        blocking: run it with ``stream`` rather than ``astream``; None: where its checkpointer is for blocking use
            alone.
        durability: when checkpoints are written; None: not said.

    Attributes:
        native: the graph.
        modes: the stream modes.
        is_blocking: it is run with ``stream``.
        has_memory: it has a checkpointer.

    Raises:
        TypeError: no compiled graph.
    """

    def __init__(
        self, graph: Any, modes: Sequence[str], *, blocking: bool | None = None, durability: Durability | None = None
    ) -> None:
        if isinstance(graph, type) or not all(hasattr(graph, name) for name in ("stream", "astream", "get_state")):
            hint = ": compile it first" if hasattr(graph, "compile") else ""
            raise TypeError(f"graph must be a compiled graph, not {_name_of(graph)}{hint}")
        self.native = graph
        self.modes = tuple(modes)
        self._durability = durability
        saver = getattr(graph, "checkpointer", None)
        self.has_memory = saver is not None and not isinstance(saver, bool)
        self.is_blocking = self.has_memory and _blocks_only(saver) if blocking is None else blocking

    def context_fields(self) -> frozenset[str]:
        """The fields of the graph's context; empty where it has none or does not say."""
        return fields_of(getattr(self.native, "context_schema", None))

    def input_keys(self) -> frozenset[str] | None:
        """The state keys that the graph takes as input; None where it does not say.

        The keys that a node or middleware keeps for itself are not among them.
        """
        builder = getattr(self.native, "builder", None)
        schemas, schema = getattr(builder, "schemas", None), getattr(builder, "input_schema", None)
        if isinstance(schemas, Mapping) and schema in schemas:
            return frozenset(map(str, schemas[schema]))
        return None

    def tools(self) -> frozenset[str]:
        """The names of the tools that nodes of the graph run, as far as they are LangChain's own tool nodes."""
        names: set[str] = set()
        for node in (getattr(self.native, "nodes", None) or {}).values():
            found = getattr(getattr(node, "bound", None), "tools_by_name", None)
            if isinstance(found, Mapping):
                names.update(map(str, found))
        return frozenset(names)

    def kept(self, step: RunGraph, part: Any) -> Any:
        """What of a part of a run is handed on: of modes that nobody has asked for only what tells of a pause.

        Args:
            step: the run.
            part: the part.

        Returns:
            The part, or another one; None: it is left out.
        """
        if "updates" not in self.modes and isinstance(part, Mapping) and part.get("type") == "updates":
            data = part.get("data")
            if not isinstance(data, Mapping) or "__interrupt__" not in data:
                return None
            part = {**part, "data": {"__interrupt__": data["__interrupt__"]}}
        return part if step.keep is None else step.keep(part)

    def settings(self, step: RunGraph) -> dict[str, Any]:
        """The arguments of ``stream`` and ``astream`` for a run.

        Args:
            step: the run.
        """
        arguments: dict[str, Any] = {
            "input": step.input,
            "config": dict(step.config),
            "stream_mode": [*self.modes, *(mode for mode in _OF_PAUSES if mode not in self.modes)],
            "subgraphs": True,
            "version": "v2",
        }
        if step.context is not None:
            arguments["context"] = step.context
        if self._durability is not None and self.has_memory:
            arguments["durability"] = self._durability
        return arguments


def run_blocking(graph: Graph, plan: Plan) -> Iterator[Any]:
    """Run a plan on the calling thread; yields what the normalizer takes.

    Args:
        graph: the graph.
        plan: the steps.
    """
    found: Any = None
    try:
        while True:
            try:
                step = plan.send(found)
            except StopIteration:
                return
            found = None
            if isinstance(step, Say):
                yield step.native
            elif isinstance(step, ReadState):
                found = graph.native.get_state(dict(step.config), subgraphs=step.subgraphs)
            elif isinstance(step, ReadWrites):
                found = _writes_of(graph.native.checkpointer.get_tuple(_addressed(step.config)))
            else:
                parts = graph.native.stream(**graph.settings(step))
                try:
                    for part in parts:
                        kept = graph.kept(step, part)
                        if kept is not None:
                            yield kept
                finally:
                    parts.close()
    finally:
        plan.close()


async def run_async(graph: Graph, plan: Plan) -> AsyncIterator[Any]:
    """Run a plan on the running event loop; yields what the normalizer takes.

    Args:
        graph: the graph.
        plan: the steps.
    """
    found: Any = None
    try:
        while True:
            try:
                step = plan.send(found)
            except StopIteration:
                return
            found = None
            if isinstance(step, Say):
                yield step.native
            elif isinstance(step, ReadState):
                found = await graph.native.aget_state(dict(step.config), subgraphs=step.subgraphs)
            elif isinstance(step, ReadWrites):
                found = _writes_of(await graph.native.checkpointer.aget_tuple(_addressed(step.config)))
            else:
                parts = graph.native.astream(**graph.settings(step))
                try:
                    async for part in parts:
                        kept = graph.kept(step, part)
                        if kept is not None:
                            yield kept
                finally:
                    await parts.aclose()
    finally:
        plan.close()


def _addressed(config: Mapping[str, Any]) -> Any:
    """The config of a checkpoint with what addresses it alone."""
    where = config["configurable"]
    return {"configurable": {name: where[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}}


def _writes_of(found: Any) -> list[Any]:
    return [] if found is None else list(found.pending_writes or ())


def _blocks_only(saver: Any) -> bool:
    """Whether a checkpointer has no asynchronous methods that work.

    It inherits the base class's, which raise, or it has one that does nothing but raise ``NotImplementedError``.
    """
    method = getattr(type(saver), "aget_tuple", None)
    code = getattr(method, "__code__", None)
    return code is not None and "NotImplementedError" in code.co_names


def _name_of(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"the {type(value).__name__}"
