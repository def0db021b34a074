"""One run of a graph as a plan of steps: what is read before it runs, and what it is run with (spec §3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agjson.adapters.langgraph._checks import Refusal, check_fork, check_resume, check_start, matched
from agjson.adapters.langgraph._graph import Graph, Plan, ReadState, ReadWrites, RunGraph, Say
from agjson.adapters.langgraph._handles import STATIC, interrupt_of
from agjson.adapters.langgraph._stored_state import (
    Dangling,
    dangling_calls,
    head_of,
    known_messages,
    levels_of,
    member,
    messages_in,
    open_calls,
    taken_answers,
    task_of,
    waiting_in,
)
from agjson.adapters.langgraph.inbound import PreparedRun, native_history
from agjson.agents import Invocation
from agjson.normalizer import HostEnd, HostError
from agjson.transcript.settling import free_id
from agjson.types import AbortedOutcome, AgPausedAsk, ToolResultBlock

__all__ = ["resume_steps", "steps", "told_refusals"]

_NOT_RUN = "This call was not run: the user went on without it."
_UNKNOWN = "This call was cut off. It is not known whether it has run, or what it returned."


def steps(graph: Graph, invocation: Invocation, *, discards: bool) -> Plan:
    """The plan of one run.

    Args:
        graph: the graph.
        invocation: the run, with its `PreparedRun`.
        discards: the host lets starts give pauses up.
    """
    call: PreparedRun = invocation.native
    if not graph.has_memory:
        yield RunGraph(input=call.graph_input(), config=call.config, context=call.context)
    elif call.resumption is None:
        yield from told_refusals(_start(call, invocation, discards))
    else:
        yield from told_refusals(resume_steps(call))


def told_refusals(plan: Plan) -> Plan:
    """The same plan, but a refusal ends the turn, and is not raised.

    Args:
        plan: a plan that may raise `Refusal`.
    """
    try:
        yield from plan
    except Refusal as refusal:
        yield Say(HostError(str(refusal), code=refusal.code, retriable=False))


# A start, and results of client tools


def _start(call: PreparedRun, invocation: Invocation, discards: bool) -> Plan:
    state = yield ReadState(call.config)
    thread = invocation.thread
    if head_of(state) is None and "checkpoint_id" in call.config["configurable"]:
        raise Refusal("unknown_checkpoint", "the graph's checkpointer does not have this checkpoint any more")
    own_turns = thread.ids.turns | {turn.turn_id for turn in thread.result.turns}
    asked = {interrupt_of(ask) for ask in thread.pending.asks}
    check_start(state, asked=asked, own_turns=own_turns, discards=discards)
    text = _NOT_RUN if not state.tasks or _waits_for(state, thread.pending.asks) else _UNKNOWN
    if state.tasks:
        # The latest state shows what tasks of the step have returned; a new input drops it with the step.
        state = yield ReadState(_at(call, state))
    sent = _unsent(call, state)
    brought = {member(message, "tool_call_id") for message in sent}
    closed: list[Any] = []
    left = [dangling for dangling in dangling_calls(state, call.input_key) if dangling.id not in brought]
    if left:
        told, known = _answered_calls(invocation), known_messages(state, call.input_key)
        for dangling in left:
            message = _closing_of(dangling, text, known)
            closed.append(message)
            if dangling.id not in told:
                yield Say({"type": "messages", "ns": (), "data": (message, {"langgraph_node": "__start__"})})
    yield RunGraph(input=call.graph_input([*closed, *sent]), config=call.config, context=call.context)


def _unsent(call: PreparedRun, state: Any) -> list[Any]:
    """The messages that the graph does not have: the input's own, and what users said that never reached it.

    A message of the history that is missing although a later one is there was taken away by the graph.
    """
    if head_of(state) is None:
        return native_history(call.history, call.said)
    known = known_messages(state, call.input_key)
    at = [index for index, message in enumerate(call.history) if message.id in known]
    missed = [message for message in call.history[at[-1] + 1 :] if message.role in ("user", "system")] if at else []
    own = [message for message in call.messages if member(message, "id") not in known]
    results, others = _wanted_results(own, state, call.input_key)
    return [*results, *native_history(missed), *others]


def _wanted_results(messages: Sequence[Any], state: Any, key: str) -> tuple[list[Any], list[Any]]:
    """The results for which the graph has an open call, which come first, and the messages that are no results.

    A result that only the thread lacks, because the process had ended before it could note it, the graph has already.
    """
    waiting = open_calls([*messages_in(state, key), *(each for each in messages if member(each, "type") != "tool")])
    results = [each for each in messages if member(each, "type") == "tool"]
    wanted = [each for each in results if member(each, "tool_call_id") in waiting]
    others = [each for each in messages if member(each, "type") != "tool"]
    return wanted, others


def _waits_for(state: Any, asks: Sequence[AgPausedAsk]) -> bool:
    """Whether the graph waits for answers that it was never given.

    Where it waits for others, or for none, its process may have ended before it could note what it did.
    """
    waiting = waiting_in(state).keys()
    if waiting:
        return waiting <= {interrupt_of(ask) for ask in asks}
    return any(ask.ask_id == f"{STATIC}{head_of(state)}" for ask in asks)


def _answered_calls(invocation: Invocation) -> set[str]:
    """The calls that the thread has a result of, by its own ids and by the graph's."""
    answered = {
        block.tool_call_id
        for message in invocation.thread.result.messages
        for block in message.content
        if isinstance(block, ToolResultBlock) and block.outcome != "input_required"
    }
    native = invocation.thread.settings().get("call_ids") or {}
    return answered - native.keys() | {id for id, known_as in native.items() if known_as in answered}


def _closing_of(dangling: Dangling, text: str, known: set[str]) -> Any:
    """The result of a call that has none, under an id that the graph does not have: it would replace that message."""
    from langchain_core.messages import ToolMessage

    if dangling.result is not None:
        return dangling.result
    # Models number their calls anew in each answer, so an earlier call may have been closed under the same id.
    id = free_id(f"{dangling.id}:result", known)
    return ToolMessage(content=text, tool_call_id=dangling.id, name=dangling.name, id=id, status="error")


# A resume


def resume_steps(call: PreparedRun) -> Plan:
    """The plan of a run that answers what a graph waits for, as its latest state says.

    Args:
        call: the run, with its answers.

    Raises:
        Refusal: the graph does not wait for these answers (any more).
    """
    resumption = call.resumption
    assert resumption is not None
    state = yield ReadState(call.config, subgraphs=True)
    taken: set[str] = set()
    if head_of(state) is not None and resumption.values:
        for level in levels_of(state):
            writes = yield ReadWrites(level.config)
            taken |= taken_answers(level, writes)
    is_taken = check_resume(state, resumption, call.asks, taken)
    if resumption.goes_past is False:
        yield Say(HostEnd(outcome=AbortedOutcome(reason="declined")))
        return
    values: dict[str, Any] = resumption.values
    later = {id: list(answers) for id, answers in resumption.later.items()}
    if is_taken:
        # A kept answer cannot be taken back: the step is asked again on a branch of its own.
        check_fork(state)
        yield RunGraph(input=None, config=_at(call, state), context=call.context, keep=_nothing)
        again = yield ReadState(call.config)
        ids = matched(state, again, values)
        values = {ids[id]: value for id, value in values.items()}
        later = {ids[id]: answers for id, answers in later.items()}
        state = again
    results, _ = _wanted_results(call.messages, state, call.input_key)
    input = call.graph_input(messages=results, values=values)
    if not later:
        yield RunGraph(input=input, config=call.config, context=call.context)
        return
    yield from _one_by_one(call, state, input, later)


def _one_by_one(call: PreparedRun, state: Any, input: Any, later: dict[str, list[Any]]) -> Plan:
    """Feed tasks that ask again and again: each answer when its question comes, which then pauses nothing."""
    tasks = {task_of(state, id): answers for id, answers in later.items()}
    while True:
        held = _Held()
        yield RunGraph(input=input, config=call.config, context=call.context, keep=held.take)
        state = yield ReadState(call.config)
        due = {id: tasks[found.task.id] for id, found in waiting_in(state).items() if tasks.get(found.task.id)}
        if not due:
            for part in held.parts:
                yield Say(part)
            return
        for part in held.others(due):
            yield Say(part)
        input = call.graph_input(messages=(), values={id: answers.pop(0) for id, answers in due.items()})


class _Held:
    """The parts of a run that tell of interrupts, until it is known which of them nobody has to answer any more."""

    def __init__(self) -> None:
        self.parts: list[Mapping[str, Any]] = []

    def take(self, part: Any) -> Any:
        """Hold a part if it tells of interrupts; else hand it on."""
        if not isinstance(part, Mapping) or not _interrupts_of(part):
            return part
        self.parts.append(part)
        return None

    def others(self, due: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The parts that tell of other interrupts than these."""
        return [part for part in self.parts if not _interrupts_of(part) <= due.keys()]


def _interrupts_of(part: Mapping[str, Any]) -> set[str]:
    data = part.get("data")
    found: Any = part.get("interrupts")
    if not found and isinstance(data, Mapping):
        found = data.get("__interrupt__") or data.get("interrupts")
    if not isinstance(found, (list, tuple)):
        return set()
    return {str(member(each, "id")) for each in found}


def _at(call: PreparedRun, state: Any) -> dict[str, Any]:
    """The config of a run that begins at the checkpoint of a state."""
    where = state.config["configurable"]
    handles = {"checkpoint_ns": where.get("checkpoint_ns", ""), "checkpoint_id": where["checkpoint_id"]}
    return {**call.config, "configurable": {**call.config["configurable"], **handles}}


def _nothing(part: Any) -> None:
    """Keeps nothing of a run that only asks again."""
