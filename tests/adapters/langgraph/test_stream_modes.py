"""Each stream mode of LangGraph alone, and where what it says goes (spec §12)."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer

from tests.support.langgraph_graphs import agent, call, graph_of, normalize, of_type, run
from tests.support.langgraph_recordings import SAID


def work(state: Any) -> dict[str, Any]:
    get_stream_writer()({"progress": 1})
    return {"note": "done", "log": [{"step": "work"}]}


def told(mode: str, *types: str, **settings: Any) -> list[dict[str, Any]]:
    """What goes out of one turn of a graph of one node, told in one mode."""
    events = normalize(run(graph_of(work), {"messages": [SAID]}, stream_mode=[mode]), **settings)
    return of_type(events, *types)


STATES = ("state.snapshot", "state.delta")


def test_values_are_the_state() -> None:
    first, second = told("values", *STATES)

    assert first == {"type": "state.snapshot", "turnId": "turn-1", "snapshot": {"log": []}}
    assert second["snapshot"] == {"note": "done", "log": [{"step": "work"}]}


def test_updates_are_changes_by_node() -> None:
    (only,) = told("updates", *STATES)

    assert only == {
        "type": "state.delta",
        "turnId": "turn-1",
        "patch": {"work": {"note": "done", "log": [{"step": "work"}]}},
    }


def test_messages_are_text_and_calls() -> None:
    reply = AIMessage("On it.", id="ai-1", tool_calls=[call("look", "call-1", at="sky")])
    events = normalize(run(agent([reply]), stream_mode=["messages"]))

    assert [event["delta"] for event in of_type(events, "text.delta")] == ["On", " it."]
    assert [event["toolCallId"] for event in of_type(events, "tool.start")] == ["call-1"]
    assert [event["input"] for event in of_type(events, "tool.args.assembled")] == [{"at": "sky"}]


def test_what_nodes_write_is_an_extension() -> None:
    (only,) = told("custom", "ext.langgraph.custom")

    assert only == {"type": "ext.langgraph.custom", "turnId": "turn-1", "progress": 1}


def test_checkpoints_tasks_and_debug_are_extensions() -> None:
    everything = ["checkpoints", "tasks", "debug"]
    checkpoints = told("checkpoints", "ext.langgraph.checkpoint", tell=everything)
    start, end = told("tasks", "ext.langgraph.task", tell=everything)
    debug = told("debug", "ext.langgraph.debug", tell=everything)

    assert [each["next"] for each in checkpoints] == [["__start__"], ["work"], []]
    assert (start["name"], end["result"]) == ("work", {"note": "done", "log": [{"step": "work"}]})
    assert [(each["payload"].get("name"), each["step"]) for each in debug] == [
        (None, -1),
        (None, 0),
        ("work", 1),
        ("work", 1),
        (None, 1),
    ]
    assert "values" not in str(checkpoints)
