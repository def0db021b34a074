"""Tasks become steps, and what a task knows of its tool call and its failure is found again."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy, Send, interrupt

from agjson.adapters.langgraph._tasks import Tasks, error_text, told_checkpoint, told_task
from tests.support.langgraph_graphs import Messages, config, deserialised, graph_of, normalize, of_type, run


def branches() -> Any:
    """A graph that runs a node three times at once; each asks, but the one that is given 0."""

    def work(state: Any) -> dict[str, Any]:
        return {"log": [state["place"] and interrupt(f"{state['place']}?")]}

    builder = StateGraph(Messages)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _: [Send("work", {"place": place}) for place in range(3)], ["work"])
    return builder.compile(checkpointer=InMemorySaver())


CALL = {"name": "f", "args": {}, "id": "c1", "type": "tool_call"}


@pytest.mark.parametrize(
    "given",
    [[CALL], CALL, {"__type": "tool_call_with_context", "tool_call": CALL, "state": {}}],
)
def test_the_call_that_a_task_was_sent_for(given: Any) -> None:
    tasks = Tasks()
    task = tasks.start((), {"id": "t1", "name": "tools", "input": given})

    assert tasks.call_of(task) == "c1"
    assert tasks.spawned_by((), "t1") == "c1"


def test_a_task_with_the_whole_state_runs_the_only_call_that_runs() -> None:
    tasks = Tasks()
    task = tasks.start((), {"id": "t1", "name": "tools", "input": {"messages": []}})
    assert tasks.call_of(task) is None

    tasks.tool_started((), "c1")
    assert tasks.call_of(task) == "c1"
    tasks.tool_started((), "c2")
    assert tasks.call_of(task) is None
    tasks.tool_ended((), "c1")
    assert tasks.call_of(task) == "c2"

    tasks.start((), {"id": "t2", "name": "other"})
    assert tasks.call_of(task) is None
    assert tasks.call_of(None) is None


def test_a_node_is_a_step() -> None:
    def plan(state: Any) -> dict[str, Any]:
        return {"note": "planned"}

    def act(state: Any) -> dict[str, Any]:
        return {"note": "done"}

    parts = run(graph_of(plan, act))
    ids = [part["data"]["id"] for part in parts if part["type"] == "tasks" and "result" in part["data"]]
    for stream in (parts, deserialised(parts)):
        steps = of_type(normalize(stream), "step.start", "step.done")
        assert steps == [
            {"type": kind, "id": id, "stepName": name, "turnId": "turn-1"}
            for id, name in zip(ids, ("plan", "act"), strict=True)
            for kind in ("step.start", "step.done")
        ]


def test_a_task_whose_result_is_known_already_is_a_step_that_ends() -> None:
    def plan(state: Any) -> dict[str, Any]:
        return {"note": "planned"}

    builder = StateGraph(Messages)
    builder.add_node("plan", plan, cache_policy=CachePolicy(key_func=lambda _: "same"))
    builder.add_edge(START, "plan")
    graph = builder.compile(checkpointer=InMemorySaver(), cache=InMemoryCache())
    run(graph)
    parts = run(graph, thread="t2")
    assert not any(part["type"] == "tasks" and "result" in part["data"] for part in parts)
    for stream in (parts, deserialised(parts)):
        steps = of_type(normalize(stream), "step.start", "step.done")
        assert [(step["type"], step["stepName"]) for step in steps] == [("step.start", "plan"), ("step.done", "plan")]


def test_a_branch_that_has_ended_before_the_pause_is_a_step_that_ends() -> None:
    graph = branches()
    first, second = (ask["askId"] for ask in of_type(normalize(run(graph)), "hitl.ask"))
    for answers in ({first: "a"}, {second: "b"}):
        parts = run(graph, answers)
        for stream in (parts, deserialised(parts)):
            steps = of_type(normalize(stream), "step.start", "step.done")
            started = [step["id"] for step in steps if step["type"] == "step.start"]
            done = [step["id"] for step in steps if step["type"] == "step.done"]
            assert (len(set(started)), sorted(done)) == (3, sorted(started))
    assert graph.get_state(config()).values["log"] == [0, "a", "b"]


def test_a_task_is_told_whole_when_asked_for() -> None:
    def plan(state: Any) -> dict[str, Any]:
        return {"note": "planned"}

    events = of_type(normalize(run(graph_of(plan)), tell={"tasks"}), "ext.langgraph.task")

    begun, ended = events
    assert begun["name"] == ended["name"] == "plan"
    assert begun["shadowed"]["id"] == ended["shadowed"]["id"]
    assert begun["triggers"] == ["branch:to:plan"]
    assert ended["result"] == {"note": "planned"}
    assert ended["ns"] == []


def test_an_error_is_told_in_words_and_the_driver_s_metadata_not_at_all() -> None:
    told = told_task(
        ("sub:1",),
        {"id": "t", "name": "n", "error": ValueError("no"), "metadata": {"agjson/turnId": "x", "k": 1}},
    )

    assert told == {"ns": ["sub:1"], "id": "t", "name": "n", "error": "no", "metadata": {"k": 1}}
    assert error_text({"message": "bad", "type": "X"}) == "bad"
    assert error_text("plain") == "plain"
    assert error_text(RuntimeError()) == "RuntimeError"


def test_a_checkpoint_is_told_without_state_and_without_the_host_s_configuration() -> None:
    where = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}
    told = told_checkpoint(
        (),
        {
            "config": {"configurable": {**where, "api_key": "secret"}, "callbacks": ["x"]},
            "parent_config": None,
            "values": {"messages": ["long"]},
            "metadata": {"step": 1, "agjson/turnId": "x"},
            "next": ["model"],
            "tasks": [{"id": "t"}],
        },
    )

    assert told == {"ns": [], "config": {"configurable": where}, "metadata": {"step": 1}, "next": ["model"]}


def test_a_task_that_fails_with_the_graph_is_told_once_as_the_end() -> None:
    def boom(state: Any) -> dict[str, Any]:
        raise ValueError("no")

    events = of_type(normalize(run(graph_of(boom))), "error", "turn.error", "turn.done")

    assert events == [{"type": "turn.error", "turnId": "turn-1", "message": "no", "code": "ValueError"}]


def test_a_task_that_fails_while_the_graph_goes_on_is_an_error_that_ends_nothing() -> None:
    task = {"id": "t1", "name": "flaky"}
    parts = [
        {"type": "tasks", "ns": (), "data": {**task, "input": {}, "triggers": ()}},
        {"type": "tasks", "ns": (), "data": {**task, "error": ValueError("no"), "result": {}, "interrupts": []}},
        {"type": "values", "ns": (), "data": {"note": "handled"}, "interrupts": ()},
    ]
    for stream in (parts, deserialised(parts)):
        events = of_type(normalize(stream), "error", "turn.error", "turn.done")

        assert [event["type"] for event in events] == ["error", "turn.done"]
        assert events[0]["message"] == "no"
        assert events[0]["_meta"] == {"langgraph/node": "flaky"}
        assert events[1]["outcome"] == {"type": "success"}
