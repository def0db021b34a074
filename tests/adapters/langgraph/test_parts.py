"""Every shape in which LangGraph hands out its stream is read as the same part."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessageChunk

from agjson.adapters.langgraph._parts import SERVER, Part, read_part

CHUNK = AIMessageChunk(content="x", id="m")
META = {"langgraph_node": "model"}


class ServerPart(NamedTuple):
    """As the client for LangGraph servers hands out an event."""

    event: str
    data: Any
    id: str | None = None


@pytest.mark.parametrize(
    ("native", "part"),
    [
        ({"type": "updates", "ns": (), "data": {"a": 1}}, Part("updates", (), {"a": 1})),
        ({"type": "updates", "ns": ["sub:1"], "data": None}, Part("updates", ("sub:1",), None)),
        ({"type": "values", "ns": (), "data": {}, "interrupts": ("i",)}, Part("values", (), {}, ("i",))),
        ((("sub:1",), "tasks", {"id": "t"}), Part("tasks", ("sub:1",), {"id": "t"})),
        (
            [[], "messages", [{"type": "ai", "content": ""}, {}]],
            Part("messages", (), [{"type": "ai", "content": ""}, {}]),
        ),
        (("custom", 5), Part("custom", (), 5)),
        ((CHUNK, META), Part("messages", (), (CHUNK, META))),
        ((("sub:1",), (CHUNK, META)), Part("messages", ("sub:1",), (CHUNK, META))),
        ({"__interrupt__": ()}, Part("updates", (), {"__interrupt__": ()})),
        (
            {
                "type": "event",
                "method": "values",
                "seq": 3,
                "params": {"namespace": ["sub:1"], "timestamp": 1, "data": {"a": 1}, "interrupts": ("i",)},
            },
            Part("values", ("sub:1",), {"a": 1}, ("i",)),
        ),
        (ServerPart("updates|sub:1|in:2", {"n": {}}), Part("updates", ("sub:1", "in:2"), {"n": {}})),
        ({"event": "messages-tuple", "data": [{}, {}]}, Part("messages", (), [{}, {}])),
        (
            {"event": "metadata", "data": {"run_id": "r"}},
            Part(SERVER, (), {"event": "metadata", "data": {"run_id": "r"}}),
        ),
    ],
)
def test_a_shape_that_names_its_mode(native: Any, part: Part) -> None:
    assert read_part(native) == part


@pytest.mark.parametrize(
    ("native", "mode", "part"),
    [
        ({"messages": []}, "values", Part("values", (), {"messages": []})),
        ((("sub:1",), {"node": {}}), "updates", Part("updates", ("sub:1",), {"node": {}})),
        ("tick", "custom", Part("custom", (), "tick")),
        (["a", "b", "c"], "custom", Part("custom", (), ["a", "b", "c"])),
    ],
)
def test_a_shape_of_one_mode_that_is_told_beforehand(native: Any, mode: str, part: Part) -> None:
    assert read_part(native, mode) == part


@pytest.mark.parametrize(
    "native",
    [
        None,
        5,
        "updates",
        {},
        {"type": "updates"},
        {"type": "nothing", "data": 1},
        {"type": "updates", "ns": 5, "data": 1},
        {"type": "event", "method": "lifecycle", "params": {"namespace": [], "data": []}},
        {"type": "event", "method": "values", "params": None},
        {"event": "messages/partial", "data": []},
        (),
        ((), "nothing", {}),
        ((1,), "updates", {}),
        ({"a": 1},),
    ],
)
def test_anything_else_is_no_part(native: Any) -> None:
    assert read_part(native) is None
