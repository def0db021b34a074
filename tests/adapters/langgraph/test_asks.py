"""What a graph waits for becomes asks: with the id, the binding and the handles that its resume needs (spec §7)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agjson.adapters.langgraph._asks import ordinal_of
from agjson.normalizer import HostEnd, HostError
from agjson.types import AgStreamEvent
from tests.support.langgraph_graphs import (
    Messages,
    agent,
    call,
    config,
    deserialised,
    graph_of,
    normalize,
    of_type,
    run,
    sqlite_saver,
)


class Log(TypedDict, total=False):
    """A state that parallel nodes write to."""

    log: Annotated[list[Any], operator.add]


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sun in {city}"


@tool
def confirm(city: str) -> str:
    """Asks about a city."""
    return str(interrupt({"question": f"Really {city}?"}))


def twice(state: Any) -> dict[str, Any]:
    return {"log": [interrupt("first"), interrupt({"question": "second?"})]}


def asks_of(events: Sequence[AgStreamEvent]) -> list[dict[str, Any]]:
    """The asks of a paused turn; they are those that its terminal names, in the same order."""
    asks = of_type(events, "hitl.ask")
    (done,) = of_type(events, "turn.done")[-1:]
    assert done["turnId"] == "turn-1"
    assert done["outcome"]["type"] == done["finishReason"] == "paused"
    assert [ask["askId"] for ask in done["outcome"]["asks"]] == [ask["askId"] for ask in asks]
    return asks


def parallel(*names: str, ask: Any = None) -> Any:
    """A graph whose nodes run at once, and each of which asks."""
    builder = StateGraph(Log)
    for name in names:

        def node(state: Any, name: str = name) -> dict[str, Any]:
            return {"log": [interrupt(ask or f"{name}?")]}

        builder.add_node(name, node)
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    return builder.compile(checkpointer=InMemorySaver())


def test_a_single_question_has_the_native_id_and_no_binding() -> None:
    graph = graph_of(twice)
    parts = run(graph)
    state = graph.get_state(config())
    for stream in (parts, deserialised(parts)):
        (ask,) = asks_of(normalize(stream))

        assert ask == {
            "type": "hitl.ask",
            "askId": state.interrupts[0].id,
            "kind": "text",
            "message": "first",
            "reason": "first",
            "continuation": "resume",
            "turnId": "turn-1",
            "metadata": {
                "langgraph/value": "first",
                "langgraph/interruptId": state.interrupts[0].id,
                "langgraph/taskId": state.tasks[0].id,
                "langgraph/threadId": "t1",
                "langgraph/checkpointId": state.config["configurable"]["checkpoint_id"],
                "langgraph/checkpointNs": "",
            },
        }


def test_a_second_question_of_the_same_node_is_positional() -> None:
    graph = graph_of(twice)
    run(graph)
    (first,) = graph.get_state(config()).interrupts
    parts = run(graph, {first.id: "yes"})
    for stream in (parts, deserialised(parts)):
        (ask,) = asks_of(normalize(stream))

        assert ask["askId"] == graph.get_state(config()).interrupts[0].id != first.id
        assert (ask["resumeBinding"], ask["ordinal"]) == ("positional", 1)
        assert ask["message"] == "second?"
        assert "reason" not in ask


def test_questions_of_parallel_nodes_are_bound_by_id_in_the_order_of_the_nodes() -> None:
    graph = parallel("a", "b", "c")
    parts = run(graph)
    asks = asks_of(normalize(parts))

    assert [ask["message"] for ask in asks] == ["a?", "b?", "c?"]
    assert {ask["askId"] for ask in asks} == {each.id for each in graph.get_state(config()).interrupts}
    assert all(ask["resumeBinding"] == "id" and "ordinal" not in ask for ask in asks)
    # Each comes three times in the native stream.
    assert sum(part["type"] == "values" and len(part["interrupts"]) for part in parts) >= 3


def test_equal_questions_of_parallel_nodes_stay_apart() -> None:
    asks = asks_of(normalize(run(parallel("a", "b", ask="Go?"))))

    assert [ask["message"] for ask in asks] == ["Go?", "Go?"]
    assert len({ask["askId"] for ask in asks}) == 2


@pytest.mark.parametrize("modes", [["updates"], ["values"], ["tasks"], ["debug"], ["values", "updates"]])
def test_a_question_is_seen_in_each_mode_alone(modes: list[str]) -> None:
    (ask,) = asks_of(normalize(run(graph_of(twice), stream_mode=modes)))

    assert (ask["kind"], ask["message"]) == ("text", "first")


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("subgraphs", [True, False])
def test_a_question_is_seen_in_each_shape(version: str, subgraphs: bool) -> None:
    (ask,) = asks_of(normalize(run(graph_of(twice), version=version, subgraphs=subgraphs)))

    assert ask["message"] == "first"


def test_a_question_inside_a_subgraph_is_told_once_and_says_where_it_arose() -> None:
    inner = StateGraph(Messages).add_node("twice", twice).add_edge(START, "twice").compile()
    builder = StateGraph(Messages)
    builder.add_node("sub", inner)
    builder.add_edge(START, "sub")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    parts = run(graph)
    (ask,) = asks_of(normalize(parts))

    tasks = {part["data"]["name"]: part["data"]["id"] for part in parts if part["type"] == "tasks"}
    state = graph.get_state(config())
    assert ask["askId"] == state.interrupts[0].id
    assert ask["metadata"]["langgraph/ns"] == [f"sub:{tasks['sub']}"]
    assert ask["metadata"]["langgraph/taskId"] == tasks["twice"]
    assert ask["metadata"]["langgraph/checkpointId"] == state.config["configurable"]["checkpoint_id"]

    (again,) = asks_of(normalize(run(graph, {ask["askId"]: "yes"})))
    assert (again["resumeBinding"], again["ordinal"], again["message"]) == ("positional", 1, "second?")


def test_questions_of_tools_name_their_calls() -> None:
    wanted = AIMessage("", tool_calls=[call("confirm", "c1", city="Rome"), call("confirm", "c2", city="Oslo")])
    asks = asks_of(normalize(run(agent([wanted], [confirm]))))

    assert [(ask["toolCallId"], ask["message"]) for ask in asks] == [("c1", "Really Rome?"), ("c2", "Really Oslo?")]
    assert all(ask["resumeBinding"] == "id" for ask in asks)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"question": "Which?", "options": ["a", "b"]}, {"kind": "choice", "message": "Which?"}),
        ({"choices": [{"id": "a", "label": "A", "value": 1}]}, {"kind": "choice"}),
        ({"choices": ["a", "a"]}, {"kind": "form"}),
        ({"schema": {"type": "object"}, "title": "T"}, {"kind": "form", "schema": {"type": "object"}, "message": "T"}),
        ({"deep": [{"x": None}]}, {"kind": "form"}),
        ([1, 2], {"kind": "form"}),
        (0, {"kind": "text"}),
        ("", {"kind": "text", "message": "", "reason": ""}),
    ],
)
def test_any_value_is_kept_and_told_as_what_it_looks_like(value: Any, told: dict[str, Any]) -> None:
    def ask(state: Any) -> dict[str, Any]:
        return {"log": [interrupt(value)]}

    (found,) = asks_of(normalize(run(graph_of(ask))))

    assert found["metadata"]["langgraph/value"] == value
    assert {name: found.get(name) for name in ("kind", "message", "reason", "schema") if name in found} == told


def test_the_choices_of_a_question() -> None:
    def ask(state: Any) -> dict[str, Any]:
        return {"log": [interrupt({"choices": [{"id": "a", "label": "A", "value": 1}, {"id": "b"}]})]}

    (found,) = asks_of(normalize(run(graph_of(ask))))

    assert found["choices"] == [{"id": "a", "label": "A", "value": 1}, {"id": "b", "label": "b"}]


def test_a_schema_of_the_answer_makes_a_form() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}

    def ask(state: Any) -> dict[str, Any]:
        return {"log": [interrupt("Size?", response_schema=schema)]}

    (found,) = asks_of(normalize(run(graph_of(ask))))

    assert (found["kind"], found["message"], found["schema"]) == ("form", "Size?", schema)


# The middleware that asks about tool calls


def gated(mode: str, *, saver: Any = None, **review: Any) -> Any:
    wanted = AIMessage(
        "",
        tool_calls=[
            call("weather", "c1", city="Rome"),
            call("confirm", "c0", city="Bonn"),
            call("weather", "c2", city="Oslo"),
        ],
    )
    middleware: Any = HumanInTheLoopMiddleware(interrupt_on={"weather": review or True}, interrupt_mode=mode)  # pyright: ignore
    return agent([wanted, AIMessage("done")], [weather, confirm], saver=saver, middleware=[middleware])


def test_a_review_of_several_calls_is_an_ask_for_each_action() -> None:
    graph = gated("batched", allowed_decisions=["approve", "reject"], description="Look twice.")
    parts = run(graph)
    (pending,) = graph.get_state(config()).interrupts
    for stream in (parts, deserialised(parts)):
        asks = asks_of(normalize(stream))

        assert [ask["askId"] for ask in asks] == [f"{pending.id}#0", f"{pending.id}#1"]
        assert [ask["toolCallId"] for ask in asks] == ["c1", "c2"]
        for index, ask in enumerate(asks):
            assert (ask["kind"], ask["message"]) == ("approval", "Look twice.")
            assert (ask["resumeBinding"], ask["ordinal"]) == ("positional", index)
            assert ask["choices"] == [{"id": "approve", "label": "Approve"}, {"id": "reject", "label": "Reject"}]
            assert ask["metadata"]["langgraph/interruptId"] == pending.id
            assert ask["metadata"]["langgraph/value"] == pending.value


def test_a_review_by_call_is_an_ask_each_under_its_native_id() -> None:
    graph = gated("per_call", allowed_decisions=["approve", "edit", "reject"])
    asks = [ask for ask in asks_of(normalize(run(graph))) if ask["kind"] == "approval"]

    ids = {each.value["tool_call_id"]: each.id for each in graph.get_state(config()).interrupts if "type" in each.value}
    assert {ask["toolCallId"]: ask["askId"] for ask in asks} == ids
    assert set(ids) == {"c1", "c2"}
    for ask in asks:
        assert [choice["id"] for choice in ask["choices"]] == ["approve", "edit", "reject"]
        assert ask["resumeBinding"] == "id"
        assert "$defs" in ask["metadata"]["langgraph/responseSchema"]


def test_a_review_names_its_calls_also_without_the_mode_that_tells_of_tasks() -> None:
    asks = asks_of(normalize(run(gated("batched"), stream_mode=["messages", "values"])))

    assert [ask["toolCallId"] for ask in asks] == ["c1", "c2"]


def test_a_review_of_a_later_process_names_the_calls_of_the_earlier_one(tmp_path: Path) -> None:
    first = gated("per_call", saver=sqlite_saver(tmp_path / "threads.db"))
    ids = [ask["askId"] for ask in asks_of(normalize(run(first)))]
    assert len(ids) == 3

    # Another process: the graph and its model are made anew; two of the questions are still open.
    second = gated("per_call", saver=sqlite_saver(tmp_path / "threads.db"))
    parts = run(second, {ids[0]: {"type": "approve"}})
    asks = asks_of(normalize(parts, turn_id="turn-1", known_ids=["c0", "c1", "c2"], open_asks=ids[1:]))
    assert sorted(ask["askId"] for ask in asks) == sorted(ids[1:])
    assert {ask["toolCallId"] for ask in asks} == {"c0", "c2"}


def test_a_call_that_nothing_has_told_is_not_named() -> None:
    asks = asks_of(normalize(run(gated("batched"), stream_mode=["updates", "tasks"], interrupt_before=None)))
    assert all("toolCallId" in ask for ask in asks)

    parts = [part for part in run(gated("batched")) if part["type"] == "tasks" and part["data"].get("interrupts")]
    asks = asks_of(normalize(parts))
    assert [ask.get("toolCallId") for ask in asks] == [None, None]
    assert not of_type(normalize(parts), "error")


# Static breakpoints


def one(state: Any) -> dict[str, Any]:
    return {"note": "one"}


def two(state: Any) -> dict[str, Any]:
    return {"note": "two"}


@pytest.mark.parametrize("where", [{"interrupt_before": ["two"]}, {"interrupt_after": ["one"]}])
def test_a_static_breakpoint_is_one_ask(where: dict[str, Any]) -> None:
    graph = graph_of(one, two, **where)
    (ask,) = asks_of(normalize(run(graph)))

    checkpoint = graph.get_state(config()).config["configurable"]["checkpoint_id"]
    assert ask["askId"] == f"static:{checkpoint}"
    assert (ask["kind"], ask["message"]) == ("approval", "Paused before two. Continue?")
    assert ask["metadata"]["langgraph/next"] == ["two"]


def test_a_static_breakpoint_after_the_last_node_is_the_end() -> None:
    events = normalize(run(graph_of(one, two, interrupt_after=["two"])))

    assert of_type(events, "hitl.ask") == []
    assert of_type(events, "turn.done")[0]["outcome"] == {"type": "success"}


def test_a_static_breakpoint_of_which_nothing_more_is_known_is_a_pause() -> None:
    (ask,) = asks_of(normalize(run(graph_of(one, two, interrupt_before=["two"]), stream_mode=["updates"])))

    assert (ask["askId"], ask["message"]) == ("static:turn-1", "Paused. Continue?")


@pytest.mark.parametrize("form", ["state", "mapping"])
def test_the_driver_s_knowledge_of_the_state_tells_of_a_pause_that_the_stream_does_not_show(form: str) -> None:
    graph = graph_of(one, two, interrupt_before=["two"])
    parts = run(graph, stream_mode=["messages"])
    state = graph.get_state(config())
    detail: Any = state if form == "state" else {"next": ["two"], "checkpoint": state.config["configurable"]}
    (ask,) = asks_of(normalize(parts, end=HostEnd(detail=detail)))

    assert ask["askId"] == f"static:{state.config['configurable']['checkpoint_id']}"


def test_the_driver_s_knowledge_tells_of_interrupts_too() -> None:
    graph = graph_of(twice)
    parts = run(graph, stream_mode=["messages"])
    (ask,) = asks_of(normalize(parts, end=HostEnd(detail=graph.get_state(config()))))

    assert ask["message"] == "first"


# Ends that are no pause


def test_a_failure_beside_a_question_is_the_end_and_the_question_is_told() -> None:
    def fails(state: Any) -> dict[str, Any]:
        raise ValueError("no")

    builder = StateGraph(Log)
    builder.add_node("asks", lambda state: {"log": [interrupt("q")]})
    builder.add_node("fails", fails)
    builder.add_edge(START, "asks")
    builder.add_edge(START, "fails")
    events = normalize(run(builder.compile(checkpointer=InMemorySaver())))

    assert [event["type"] for event in of_type(events, "turn.done", "turn.error")] == ["turn.error"]
    assert len(of_type(events, "hitl.ask")) <= 1


def test_an_interrupt_that_is_raised_is_a_pause() -> None:
    class GraphInterrupt(Exception):
        """As LangGraph names it."""

    events = normalize([GraphInterrupt(({"id": "i1", "value": "q"},))])

    (ask,) = asks_of(events)
    assert (ask["askId"], ask["message"]) == ("i1", "q")


def test_a_question_that_cannot_be_answered_says_so() -> None:
    (ask,) = asks_of(normalize(run(graph_of(twice)), resumable=False))

    assert ask["metadata"]["langgraph/resumable"] is False


def test_questions_are_told_also_when_the_stream_is_cut_off() -> None:
    from agjson.adapters.langgraph.normalizer import LangGraphNormalizer

    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    for part in run(graph_of(twice)):
        normalizer.push(part)
    events = normalizer.flush()

    assert [event["type"] for event in of_type(events, "hitl.ask", "turn.abort", "turn.done")] == [
        "hitl.ask",
        "turn.abort",
    ]
    assert normalizer.push(HostError("late")) != []


def test_the_ordinal_of_an_interrupt() -> None:
    graph = graph_of(twice)
    parts = run(graph)
    (task,) = {part["data"]["id"] for part in parts if part["type"] == "tasks"}
    (first,) = graph.get_state(config()).interrupts
    run(graph, {first.id: "yes"})
    (second,) = graph.get_state(config()).interrupts

    assert ordinal_of(first.id, f"twice:{task}") == 0
    assert ordinal_of(second.id, f"twice:{task}") == 1
    assert ordinal_of(second.id, "twice:another") is None
