"""One run of a graph whose thread is known from the graph's own state alone (spec §3.1)."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from agjson.adapters.langgraph._graph import Graph, Plan, RunGraph, run_async, run_blocking
from agjson.adapters.langgraph._resume import denied_calls, resumption_of
from agjson.adapters.langgraph._steps import resume_steps, told_refusals
from agjson.adapters.langgraph._stored_state import levels_of, member, messages_in
from agjson.adapters.langgraph.inbound import GraphWays, prepare_run, to_native
from agjson.adapters.langgraph.normalizer import LangGraphNormalizer
from agjson.agents import ThreadPausedError
from agjson.agents.intake import read_input
from agjson.errors import ReplayError
from agjson.jsonable import jsonable
from agjson.known_ids import KnownIds
from agjson.normalizer import HostEnd
from agjson.types import (
    UNSET,
    AgHitlAnswer,
    AgInput,
    AgPausedAsk,
    AgTrigger,
    JsonValue,
    PausedOutcome,
    ResumeInput,
    StartInput,
    ToolResultInput,
    TurnDone,
    UnsetType,
)

__all__ = ["GraphCall", "asks_in"]


class GraphCall:
    """One run: what goes in, and what the graph's thread says about it.

    Args:
        graph: the compiled graph.
        given: an `AgInput`, also as plain data, or the graph's own input.
        config: the ``RunnableConfig``.
        context: the context of the run.
        modes: the stream modes.
        messages_key: the state key that holds the messages.
        turn_id: the turn; None: that of the input, else a random one.

    Attributes:
        turn_id: the turn.
        thread_id: the conversation.
        unsupported: members of the input without effect, by their JSON paths; known once the run is made.
        repairs: what had to be mended in its messages.

    Raises:
        TypeError: no compiled graph.
        DecodeError: plain data that calls itself an input of AgJSON, and is none.
    """

    def __init__(
        self,
        graph: Any,
        given: Any,
        *,
        config: Mapping[str, Any] | None,
        context: Any,
        modes: Sequence[str],
        messages_key: str,
        turn_id: str | None,
    ) -> None:
        self._graph = Graph(graph, modes)
        self._given = given
        self._input = read_input(given) if _is_input(given) else None
        self._context = context
        self._key = messages_key
        named = ((config or {}).get("configurable") or {}).get("thread_id")
        spoken_of = None if self._input is None else self._input.thread_id
        self.turn_id = turn_id or (f"turn_{uuid.uuid4().hex}" if self._input is None else self._input.turn_id)
        self.thread_id = str(named or spoken_of or f"thread_{uuid.uuid4().hex}")
        self._config: dict[str, Any] = dict(config or {})
        self._has_thread = named is not None or spoken_of is not None
        if self._input is not None:
            self._config["configurable"] = {**(self._config.get("configurable") or {}), "thread_id": self.thread_id}
        self._asks: tuple[AgPausedAsk, ...] = ()
        self.unsupported: tuple[str, ...] = ()
        self.repairs: tuple[Any, ...] = ()

    # Before the run

    def read_state(self) -> Any:
        """The state of the thread, with those of paused graphs inside; None where the graph keeps none."""
        if not self._graph.has_memory or not self._has_thread:
            return None
        return self._graph.native.get_state(self._config, subgraphs=True)

    async def read_state_async(self) -> Any:
        """The same on the event loop."""
        if not self._graph.has_memory or not self._has_thread:
            return None
        return await self._graph.native.aget_state(self._config, subgraphs=True)

    def known(self, state: Any) -> dict[str, Any]:
        """What the normalizer is to know of the thread.

        Args:
            state: the state of the thread.
        """
        ids = _known_ids(state, self._key)
        asked = {ask.ask_id for ask in self._asks}
        begins = self._input is None or isinstance(self._input, StartInput)
        return {
            "known_ids": KnownIds(messages=ids.messages, calls=ids.calls, asks=asked),
            "open_asks": asked,
            "denied": denied_calls(self._asks, _answers_in(self._input)),
            "resumable": self._graph.has_memory,
            "trigger": AgTrigger(kind="user" if begins else "resume"),
        }

    # The run

    def run(self, state: Any) -> Iterator[Any]:
        """Run the graph on the calling thread.

        Args:
            state: the state of the thread.

        Returns:
            What the normalizer takes.

        Raises:
            ReplayError: the answers do not fit what the graph waits for.
            ThreadPausedError: the input starts something while the graph waits.
        """
        return run_blocking(self._graph, self._plan(state))

    def run_async(self, state: Any) -> AsyncIterator[Any]:
        """The same on the event loop.

        Args:
            state: as for `run`.
        """
        return run_async(self._graph, self._plan(state))

    def _plan(self, state: Any) -> Plan:
        if self._input is None:
            return _one_step(self._given, self._config, self._context)
        self._asks = asks = asks_in(state, self.thread_id, self._key)
        answers = _answers_in(self._input)
        if answers and not self._graph.has_memory:
            raise ReplayError(
                "the graph has no checkpointer, so that it cannot go on from its pause: compile it with one",
                "$.answers",
            )
        if asks and not answers and not isinstance(self._input, ToolResultInput):
            ids = [ask.ask_id for ask in asks]
            raise ThreadPausedError(f"the graph waits for answers to {', '.join(ids)}", "$", ids)
        ways = GraphWays(
            input_key=self._key,
            input_keys=self._graph.input_keys(),
            config=self._config,
            context=self._context,
            context_fields=self._graph.context_fields(),
        )
        shared = _shared_state(state, self._key)
        # It checks all of the input, also where the run is then made step by step.
        call = to_native(
            self._input,
            asks=asks,
            input_key=ways.input_key,
            input_keys=ways.input_keys,
            shared_state=shared,
            config=ways.config,
            context=ways.context,
            context_fields=ways.context_fields,
        )
        self.unsupported = (*call.unsupported, *_without_effect(self._input))
        self.repairs = tuple(call.repairs)
        if not answers:
            return _one_step(call.graph_input(), call.config, call.context)
        prepared = prepare_run(
            self._input,
            ways,
            history=(),
            said=(),
            run=None,
            capabilities=self._input.capabilities,
            resumption=resumption_of(asks, answers),
            asks=asks,
            issued=asks,
            shared_state=shared,
            whole=False,
            turn_id=self.turn_id,
        )
        return told_refusals(resume_steps(prepared))


def asks_in(state: Any, thread_id: str, messages_key: str = "messages") -> tuple[AgPausedAsk, ...]:
    """What a graph waits for, as the asks that its run has told.

    LangGraph does not tell the state of a graph that a tool runs: asks from there do not name their call.

    Args:
        state: the state of its thread, read with ``subgraphs=True``; None: there is none.
        thread_id: the conversation.
        messages_key: the state key that holds the messages.
    """
    if state is None or not state.next:
        return ()
    reader = LangGraphNormalizer(
        "asks", thread_id, messages_key=messages_key, nested_turns=False, known_ids=_known_ids(state, messages_key)
    )
    for level in levels_of(state):
        where = level.config["configurable"].get("checkpoint_ns") or ""
        ns = tuple(where.split("|")) if where else ()
        reader.push({"type": "values", "ns": ns, "data": level.values})
        for task in level.tasks:
            told = {"id": task.id, "name": task.name}
            reader.push({"type": "tasks", "ns": ns, "data": {**told, "input": level.values, "triggers": ()}})
            if task.interrupts:
                ended = {**told, "error": None, "result": {}, "interrupts": list(task.interrupts)}
                reader.push({"type": "tasks", "ns": ns, "data": ended})
    for event in [*reader.push(HostEnd(detail=state)), *reader.flush()]:
        if isinstance(event, TurnDone) and isinstance(event.outcome, PausedOutcome):
            return tuple(event.outcome.asks)
    return ()


def _known_ids(state: Any, key: str) -> KnownIds:
    messages, calls = set[str](), set[str]()
    for level in [] if state is None else levels_of(state):
        for message in messages_in(level, key):
            if isinstance(id := member(message, "id"), str):
                messages.add(id)
            calls |= {call["id"] for call in member(message, "tool_calls") or () if call.get("id")}
    return KnownIds(messages=messages, calls=calls)


_KINDS = ("start", "resume", "tool-result")


def _is_input(given: Any) -> bool:
    if isinstance(given, (StartInput, ResumeInput, ToolResultInput)):
        return True
    if not isinstance(given, Mapping):
        return False
    return given.get("protocol") == "agjson" or (given.get("kind") in _KINDS and "threadId" in given)


def _answers_in(ag_input: AgInput | None) -> Sequence[AgHitlAnswer]:
    return (ag_input.answers or ()) if isinstance(ag_input, ResumeInput) else ()


def _shared_state(state: Any, key: str) -> JsonValue | UnsetType:
    """The state as it was streamed: what an input repeats of it changes nothing."""
    values = None if state is None else state.values
    if not isinstance(values, Mapping):
        return UNSET
    return jsonable({name: value for name, value in values.items() if name != key})


def _without_effect(ag_input: AgInput) -> list[str]:
    results = ag_input.results if isinstance(ag_input, ToolResultInput) else ()
    return [
        f"results[{index}].{wire}"
        for index, result in enumerate(results)
        for wire, is_set in (("willContinue", result.will_continue), ("scheduling", result.scheduling is not None))
        if is_set
    ]


def _one_step(given: Any, config: Mapping[str, Any], context: Any) -> Plan:
    yield RunGraph(input=given, config=config, context=context)
