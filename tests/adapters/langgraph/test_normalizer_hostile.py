"""Whatever LangGraph hands out, in whatever order and cut wherever: the stream keeps every rule (spec §8.0)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, AIMessageChunk, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from agjson.adapters.langgraph.normalizer import LangGraphNormalizer
from agjson.checker import check
from agjson.fold import Reducer
from agjson.normalizer import HostEnd, HostError
from agjson.types import AgStreamEvent
from tests.support.langgraph_graphs import (
    MODES,
    Messages,
    agent,
    call,
    deserialised,
    fold,
    graph_of,
    of_type,
    plain,
    protocol_events,
    run,
)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sun in {city}"


@tool
def broken(city: str) -> str:
    """Fails."""
    raise ValueError("the tool is broken")


def a_answers(state: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("one", id="m1"), AIMessage("two", id="m2")]}


def b_edits(state: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("changed", id="m1")]}


def b_empties(state: Any) -> dict[str, Any]:
    return {"messages": [RemoveMessage("__remove_all__"), SystemMessage("summary", id="s"), AIMessage("two", id="m2")]}


def c_result(state: Any) -> dict[str, Any]:
    wanted = AIMessage("", tool_calls=[call("f", "c1", x=1)], id="w")
    return {"messages": [wanted, ToolMessage("ok", tool_call_id="c1", artifact={"raw": 1}, id="r")]}


# Every cut


@cache
def whole_streams() -> dict[str, list[Any]]:
    wanted = AIMessage("let me see", tool_calls=[call("weather", "c1", city="Rome"), call("broken", "c2", city="x")])
    one_call = wanted.model_copy(update={"tool_calls": wanted.tool_calls[:1]})
    gate: Any = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
    inner = agent([AIMessage("deep")], name="inner")
    nested = StateGraph(Messages).add_node("inner", inner).add_edge(START, "inner").add_edge("inner", END).compile()
    return {
        "agent": run(agent([one_call, AIMessage("so")], [weather])),
        "tool error": run(agent([wanted], [weather, broken])),
        "pause": run(agent([wanted], [weather, broken], middleware=[gate])),
        "nodes": run(graph_of(a_answers, b_empties, c_result)),
        "nested": run_nested(nested),
        "protocol": protocol_events(agent([one_call, AIMessage("so")], [weather])),
    }


def run_nested(nested: Any) -> list[Any]:
    return list(nested.stream({"messages": []}, stream_mode=list(MODES[:5]), subgraphs=True, version="v2"))


@pytest.mark.parametrize("name", sorted(whole_streams()))
@pytest.mark.parametrize("form", ["objects", "data"])
def test_a_stream_that_is_cut_anywhere_keeps_every_rule(name: str, form: str) -> None:
    parts = whole_streams()[name]
    stream = parts if form == "objects" else deserialised(parts)
    for cut in range(len(stream) + 1):
        normalizer = LangGraphNormalizer("turn-1", "thread-1")
        events: list[AgStreamEvent] = []
        for part in stream[:cut]:
            events += normalizer.push(HostError(part) if isinstance(part, Exception) else part)
        events += normalizer.flush()
        assert list(check(events)) == [], cut
        assert not fold_needs_resync(events), cut
        if cut:
            ends = [
                event["type"]
                for event in of_type(events, "turn.done", "turn.error", "turn.abort")
                if event["turnId"] == "turn-1"
            ]
            assert ends == (
                ["turn.error"] if cut == len(stream) and isinstance(parts[-1], Exception) else ["turn.abort"]
            )
        assert normalizer.flush() == []


def fold_needs_resync(events: Sequence[AgStreamEvent]) -> bool:
    reducer = Reducer()
    for event in events:
        reducer.push(event)
    return reducer.needs_resync


# Whatever comes


JUNK: list[Any] = [
    None,
    0,
    "x",
    b"x",
    [],
    {},
    object(),
    {"type": "messages", "ns": (), "data": None},
    {"type": "messages", "ns": (), "data": ({}, {})},
    {"type": "messages", "ns": (), "data": (AIMessageChunk(content=""), None)},
    {"type": "messages", "ns": (1, 2), "data": (AIMessageChunk(content="x"), {})},
    {"type": "messages", "ns": (), "data": ({"type": "ai", "content": {"deep": [object()]}}, {"langgraph_node": 5})},
    {"type": "messages", "ns": (), "data": ({"type": "remove", "id": "__remove_all__"}, {})},
    {"type": "messages", "ns": (), "data": ({"type": "tool", "content": "r", "tool_call_id": None, "id": None}, {})},
    {"type": "updates", "ns": (), "data": 5},
    {"type": "updates", "ns": (), "data": {"n": [1, {"messages": [5, None, {"type": "ai"}]}]}},
    {"type": "updates", "ns": (), "data": {"__interrupt__": 5}},
    {
        "type": "updates",
        "ns": (),
        "data": {"__interrupt__": [{"value": {"action_requests": [5], "review_configs": [None]}}]},
    },
    {"type": "values", "ns": (), "data": None},
    {"type": "values", "ns": (), "data": {"messages": 5, "x": float("nan")}},
    {"type": "values", "ns": (), "data": {"messages": [{"id": "a"}, "text"]}, "interrupts": [None]},
    {"type": "tasks", "ns": (), "data": {"id": 5}},
    {"type": "tasks", "ns": (), "data": {"id": "t", "error": object(), "interrupts": "xy", "result": 5}},
    {"type": "checkpoints", "ns": (), "data": {"config": 5, "next": 5, "metadata": None}},
    {"type": "debug", "ns": (), "data": {"type": "task", "payload": {"id": "q"}}},
    {"type": "debug", "ns": (), "data": None},
    {"type": "tools", "ns": (), "data": {"event": "tool-error", "tool_call_id": "c9", "message": object()}},
    {"type": "tools", "ns": (), "data": {"event": "else", "tool_call_id": "c9"}},
    {"event": "error", "data": None},
]


@pytest.mark.parametrize("native", JUNK, ids=range(len(JUNK)))
def test_nothing_that_is_pushed_raises_and_nothing_is_swallowed(native: Any) -> None:
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    events = [*normalizer.push(native), *normalizer.push(HostEnd()), *normalizer.flush()]

    assert list(check(events)) == []
    assert not of_type(events, "error") or of_type(events, "ext.langgraph.unparsed", "error")


def test_all_of_it_in_one_stream() -> None:
    # But for what says something: a token of a run that never ends, a conversation, the end.
    junk = [*JUNK[:10], *JUNK[11:17], *JUNK[21:-1]]
    parts = [*junk, *run(graph_of(a_answers, b_edits)), *junk]
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    events = [event for part in parts for event in normalizer.push(part)]
    events += normalizer.push(HostEnd()) + normalizer.flush()

    assert list(check(events)) == []
    assert {"m1", "m2"} <= {message.id for message in fold(events).messages}


@pytest.mark.parametrize("seed", range(60))
def test_a_stream_in_disorder_keeps_every_rule(seed: int) -> None:
    chance, streams = random.Random(seed), whole_streams()
    parts = list(streams[chance.choice(sorted(streams))])
    if chance.random() < 0.5:
        parts = deserialised(parts)
    for _ in range(chance.randint(1, 8)):
        what = chance.choice(["drop", "twice", "move", "other", "junk"])
        here, there = chance.randrange(len(parts)), chance.randrange(len(parts))
        if what == "drop" and len(parts) > 1:
            parts.pop(here)
        elif what == "twice":
            parts.insert(there, parts[here])
        elif what == "move":
            parts.insert(there, parts.pop(here))
        elif what == "other":
            parts.insert(here, chance.choice(streams[chance.choice(sorted(streams))]))
        else:
            parts.insert(here, chance.choice(JUNK))
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    events: list[AgStreamEvent] = []
    for part in parts:
        events += normalizer.push(HostError(part) if isinstance(part, Exception) else part)
    events += normalizer.push(HostEnd()) + normalizer.flush()

    assert list(check(events)) == []
    assert not fold_needs_resync(events)
    (end,) = [
        event for event in of_type(events, "turn.done", "turn.error", "turn.abort") if event["turnId"] == "turn-1"
    ]
    if of_type(events, "hitl.ask"):
        assert end["type"] != "turn.done" or end["outcome"]["type"] == "paused"


def test_what_comes_after_the_end_is_visible() -> None:
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    normalizer.push(HostEnd())
    (event,) = plain(normalizer.push({"type": "custom", "ns": (), "data": {"late": 1}}))
    normalizer.flush()
    (late,) = plain(normalizer.push({"type": "custom", "ns": (), "data": 1}))

    assert event["type"] == "ext.langgraph.unparsed"
    assert (late["type"], late["code"]) == ("error", "stream_ended")


def test_what_can_be_told_is_named() -> None:
    with pytest.raises(ValueError, match="tell: nothing, tools is none of checkpoints, custom, debug, frames, tasks"):
        LangGraphNormalizer("turn-1", "thread-1", tell=["tools", "nothing", "custom"])
