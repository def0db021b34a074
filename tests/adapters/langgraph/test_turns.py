"""Named agents inside a graph are nested turns; plain subgraphs are none (spec §5 subagent.*)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agjson.adapters.langgraph._scope import Scope
from agjson.adapters.langgraph._turns import Turns, task_id_of
from agjson.emitter import Emitter
from agjson.types import AgStreamEvent
from tests.support.langgraph_graphs import Messages, agent, call, deserialised, normalize, of_type, run

TURN_EVENTS = ("turn.start", "turn.done", "turn.error", "turn.abort", "subagent.start", "subagent.done")


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sun in {city}"


def researcher(*replies: Any, tools: Sequence[Any] = ()) -> Any:
    """A tool that runs an agent of its own."""
    inner = agent(list(replies), tools, name="researcher")

    @tool
    def research(topic: str) -> str:
        """Looks something up."""
        return str(inner.invoke({"messages": [{"role": "user", "content": topic}]})["messages"][-1].content)

    return research


def lifecycle(events: Sequence[AgStreamEvent]) -> list[tuple[str, str]]:
    return [(event["type"], event["turnId"]) for event in of_type(events, *TURN_EVENTS)]


def ns_of(parts: Sequence[Any]) -> list[tuple[str, ...]]:
    found = {tuple(part["ns"]): None for part in parts if not isinstance(part, Exception) and part["ns"]}
    return list(found)


def test_an_agent_in_a_tool_has_a_turn_inside_the_call() -> None:
    wanted = AIMessage("", tool_calls=[call("research", "c1", topic="x")])
    parts = run(agent([wanted, AIMessage("all done")], [researcher(AIMessage("found"))], name="root"))
    (ns,) = ns_of(parts)
    nested = f"turn-1/{ns[0]}"
    for stream in (parts, deserialised(parts)):
        events = normalize(stream)

        assert lifecycle(events) == [
            ("turn.start", "turn-1"),
            ("subagent.start", nested),
            ("turn.done", nested),
            ("subagent.done", nested),
            ("turn.done", "turn-1"),
        ]
        (start,) = of_type(events, "subagent.start")
        assert (start["parentTurnId"], start["agentName"]) == ("turn-1", "researcher")
        assert start["_meta"] == {"langgraph/ns": list(ns), "langgraph/toolCallId": "c1"}
        # The turn ends before the step of the tool that ran it.
        order = [(event["type"], event.get("turnId")) for event in of_type(events, "step.done", "turn.done")]
        assert order.index(("turn.done", nested)) < max(
            i for i, each in enumerate(order) if each == ("step.done", "turn-1")
        )


def test_agents_that_run_at_once_have_turns_apart() -> None:
    wanted = AIMessage("", tool_calls=[call("research", "c1", topic="x"), call("research", "c2", topic="y")])
    tools = [researcher(AIMessage("found one"), AIMessage("found two"))]
    parts = run(agent([wanted, AIMessage("all done")], tools, name="root"))
    events = normalize(parts)

    nested = [f"turn-1/{ns[0]}" for ns in ns_of(parts)]
    assert len(nested) == 2
    for turn in nested:
        assert [kind for kind, each in lifecycle(events) if each == turn] == [
            "subagent.start",
            "turn.done",
            "subagent.done",
        ]
    assert {start["_meta"]["langgraph/toolCallId"] for start in of_type(events, "subagent.start")} == {"c1", "c2"}


def test_agents_that_one_task_runs_one_after_another_have_turns_beside_each_other() -> None:
    first = agent([AIMessage("one", id="a1"), AIMessage("three", id="a2")], name="alpha")
    second = agent([AIMessage("two", id="b1")], name="beta")

    @tool
    def research(topic: str) -> str:
        """Looks something up, thrice."""
        given: Any = {"messages": [{"role": "user", "content": topic}]}
        return " ".join(each.invoke(given)["messages"][-1].text for each in (first, second, first))

    wanted = AIMessage("", tool_calls=[call("research", "c1", topic="x")])
    parts = run(agent([wanted, AIMessage("all done")], [research], name="root"))
    (ns,) = {each[:1] for each in ns_of(parts)}
    turns = [f"turn-1/{ns[0]}", f"turn-1/{ns[0]}/1", f"turn-1/{ns[0]}/2"]
    for stream in (parts, deserialised(parts)):
        events = normalize(stream)

        assert [
            (start["turnId"], start["parentTurnId"], start["agentName"], start["_meta"]["langgraph/toolCallId"])
            for start in of_type(events, "subagent.start")
        ] == [(turn, "turn-1", name, "c1") for turn, name in zip(turns, ("alpha", "beta", "alpha"), strict=True)]
        assert [
            (start["id"], start["turnId"]) for start in of_type(events, "message.start") if start["turnId"] in turns
        ] == list(zip(("a1", "b1", "a2"), turns, strict=True))
        assert sorted(done["turnId"] for done in of_type(events, "subagent.done")) == turns


def graph_with(node: Any, name: str = "inner") -> Any:
    builder = StateGraph(Messages)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(checkpointer=InMemorySaver())


def test_an_agent_that_is_a_node_has_a_turn() -> None:
    parts = run(graph_with(agent([AIMessage("hello")], name="greeter")))
    (start,) = of_type(normalize(parts), "subagent.start")

    assert start["agentName"] == "greeter"
    assert start["turnId"] == f"turn-1/{ns_of(parts)[0][0]}"


@pytest.mark.parametrize("name", [None, "greeter"])
def test_a_graph_without_a_name_of_its_own_has_no_turn(name: str | None) -> None:
    nested = agent([AIMessage("hello")]) if name is None else agent([AIMessage("hello")], name=name)
    events = normalize(run(graph_with(nested)), nested_turns=name is None)

    assert lifecycle(events) == [("turn.start", "turn-1"), ("turn.done", "turn-1")]


def test_a_plain_graph_around_an_agent_leads_to_the_agent_s_turn() -> None:
    parts = run(graph_with(graph_with(agent([AIMessage("hello")], name="greeter"), "deep")))
    ns = max(ns_of(parts), key=len)
    (start,) = of_type(normalize(parts), "subagent.start")

    assert len(ns) == 2
    assert (start["turnId"], start["parentTurnId"]) == (f"turn-1/{'/'.join(ns)}", "turn-1")


def test_an_agent_inside_an_agent_is_nested_twice() -> None:
    inner = researcher(AIMessage("deep"))
    middle = agent(
        [AIMessage("", tool_calls=[call("research", "i1", topic="z")]), AIMessage("mid")], [inner], name="middle"
    )
    parts = run(graph_with(middle))
    events = normalize(parts)
    outer, deep = sorted(ns_of(parts), key=len)

    starts = of_type(events, "subagent.start")
    assert [(start["agentName"], start["parentTurnId"]) for start in starts] == [
        ("middle", "turn-1"),
        ("researcher", f"turn-1/{outer[0]}"),
    ]
    assert lifecycle(events)[3:] == [
        ("turn.done", f"turn-1/{'/'.join(deep)}"),
        ("subagent.done", f"turn-1/{'/'.join(deep)}"),
        ("turn.done", f"turn-1/{outer[0]}"),
        ("subagent.done", f"turn-1/{outer[0]}"),
        ("turn.done", "turn-1"),
    ]


def test_a_nested_agent_that_asks_pauses_inside_the_pause() -> None:
    @tool
    def confirm(city: str) -> str:
        """Asks."""
        return str(interrupt(f"Really {city}?"))

    wanted = AIMessage("", tool_calls=[call("confirm", "i1", city="Rome")])
    parts = run(graph_with(agent([wanted], [confirm], name="asker")))
    events = normalize(parts)

    nested = f"turn-1/{ns_of(parts)[0][0]}"
    assert lifecycle(events) == [
        ("turn.start", "turn-1"),
        ("subagent.start", nested),
        ("turn.done", nested),
        ("subagent.done", nested),
        ("turn.done", "turn-1"),
    ]
    (ask,) = of_type(events, "hitl.ask")
    assert (ask["turnId"], ask["toolCallId"]) == (nested, "i1")
    inner, outer = of_type(events, "turn.done")
    assert inner["outcome"]["type"] == outer["outcome"]["type"] == "paused"
    assert [each["askId"] for each in inner["outcome"]["asks"] + outer["outcome"]["asks"]] == [ask["askId"]] * 2


def test_a_nested_agent_that_fails_ends_with_the_error() -> None:
    parts = run(graph_with(agent([ValueError("no model")], name="broken")))
    events = normalize(parts)

    assert [kind for kind, _ in lifecycle(events)] == [
        "turn.start",
        "subagent.start",
        "turn.error",
        "subagent.done",
        "turn.error",
    ]
    assert [event["message"] for event in of_type(events, "turn.error")] == ["no model", "no model"]
    assert of_type(events, "error") == []


def test_a_nested_agent_that_fails_while_the_graph_goes_on() -> None:
    inner = agent([ValueError("no model")], name="broken")

    def tries(state: Any) -> dict[str, Any]:
        try:
            inner.invoke({"messages": []})
        except ValueError:
            return {"messages": [AIMessage("never mind")]}
        return {}

    events = normalize(run(graph_with(tries, "tries")))

    # It ends with the task that ran it, which has not failed.
    assert [kind for kind, _ in lifecycle(events)] == [
        "turn.start",
        "subagent.start",
        "turn.done",
        "subagent.done",
        "turn.done",
    ]
    (error,) = of_type(events, "error")
    assert error["message"] == "no model"
    assert of_type(events, "turn.done")[-1]["outcome"] == {"type": "success"}


def test_without_the_mode_that_tells_of_tasks_the_turn_ends_with_the_stream() -> None:
    parts = run(graph_with(agent([AIMessage("hello")], name="greeter")), stream_mode=["messages", "values"])
    events = normalize(parts)

    assert [kind for kind, _ in lifecycle(events)] == [
        "turn.start",
        "subagent.start",
        "turn.done",
        "subagent.done",
        "turn.done",
    ]


class Sum(TypedDict, total=False):
    """A state of the root that a subgraph has under the same names."""

    total: Annotated[int, operator.add]
    secret: str


def test_the_state_of_a_graph_inside_never_becomes_the_state() -> None:
    inner = StateGraph(Sum)
    inner.add_node("count", lambda state: {"total": 5, "secret": "inner"})
    inner.add_edge(START, "count")
    compiled = inner.compile()
    builder = StateGraph(Sum)
    builder.add_node("before", lambda state: {"total": 1, "secret": "outer"})
    builder.add_node("sub", lambda state: {"total": compiled.invoke({"total": 0})["total"]})
    builder.add_edge(START, "before")
    builder.add_edge("before", "sub")
    parts = run(builder.compile(checkpointer=InMemorySaver()), {"total": 0})
    events = normalize(parts)

    assert [event["snapshot"] for event in of_type(events, "state.snapshot")] == [
        {"total": 0},
        {"total": 1, "secret": "outer"},
        {"total": 6, "secret": "outer"},
    ]
    frames = of_type(events, "ext.langgraph.frame")
    (ns,) = ns_of(parts)
    assert {tuple(frame["ns"]) for frame in frames} == {ns}
    assert {"kind": "values", "frame": {"total": 5, "secret": "inner"}}.items() <= frames[-1].items()
    assert of_type(normalize(parts, tell=()), "ext.langgraph.frame") == []


def test_scopes_of_one_invoke() -> None:
    out = Emitter("T", "th")
    turns = Turns(out)

    assert turns.scope(()) == Scope((), "T", None)
    # Nothing has told yet whose graph it is.
    assert turns.scope(("a:1",)) == Scope(("a:1",), "T", None)
    assert turns.scope((), {"lc_agent_name": "root"}).agent_name == "root"
    assert turns.scope(("a:1",), {"lc_agent_name": "root"}) == Scope(("a:1",), "T", "root")
    assert turns.scope(("b:2",), {"lc_agent_name": "other"}) == Scope(("b:2",), "T/b:2", "other")
    assert turns.scope(("b:2", "c:3"), {}) == Scope(("b:2", "c:3"), "T/b:2", "other")
    assert [turns.owns(ns) for ns in ((), ("a:1",), ("b:2",), ("b:2", "c:3"))] == [True, False, True, False]
    assert (task_id_of(("a:1", "b:2")), task_id_of(())) == ("2", "")
    # A further graph of the same task stands beside the first.
    assert turns.scope(("b:2", "1"), {"lc_agent_name": "third"}) == Scope(("b:2", "1"), "T/b:2/1", "third")
    assert turns.scope(("b:2", "1", "c:3"), {}) == Scope(("b:2", "1", "c:3"), "T/b:2/1", "third")
    assert task_id_of(("b:2", "1")) == "2"


def test_a_turn_id_of_the_thread_is_not_taken_again() -> None:
    out = Emitter("T", "th", known_ids=["T/a:1"])

    assert Turns(out).scope(("a:1",), {"lc_agent_name": "x"}).turn_id == "T/a:1#2"
