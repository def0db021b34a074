"""What code inside a graph says of guardrails and calls, as plain data and without the frameworks."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.adapters.langgraph import messages_from_native
from agjson.adapters.langgraph.facts import RAN_WITH, denied, ran_with, read_verdict, write_verdict
from agjson.types import AgGuardrail, AgSafety, ToolResultBlock
from agjson.wire import to_dict
from tests.support.langgraph_graphs import normalize, of_type

VERDICT = AgGuardrail(
    target="output",
    passed=False,
    action="rewrite",
    reason="rude",
    guardrail_name="tone",
    safety=[AgSafety(category="insult", score=0.5)],
)


def result(metadata: dict[str, Any], status: str = "success") -> ToolResultBlock:
    """How the history reads a result with this ``response_metadata``."""
    call = {"id": "c1", "name": "send", "args": {"to": "ann"}}
    native = [
        {"type": "ai", "id": "a1", "content": "", "tool_calls": [call]},
        {
            "type": "tool",
            "id": "r1",
            "content": "no",
            "tool_call_id": "c1",
            "status": status,
            "response_metadata": metadata,
        },
    ]
    [block] = messages_from_native(native)[1].content
    assert isinstance(block, ToolResultBlock)
    return block


def test_a_verdict_is_read_as_it_was_written() -> None:
    event = read_verdict(write_verdict(VERDICT), "t1")
    assert event is not None
    assert to_dict(event) == {"type": "guardrail.result", "seq": 0, "turnId": "t1", **to_dict(VERDICT)}


def test_a_verdict_in_a_deserialised_stream_is_an_event() -> None:
    part = {"type": "custom", "ns": [], "data": write_verdict(VERDICT)}
    assert of_type(normalize([part]), "guardrail.result", "ext.langgraph.custom") == [
        {"type": "guardrail.result", "turnId": "turn-1", **to_dict(VERDICT)}
    ]


def test_a_verdict_names_no_turn_but_that_of_its_graph() -> None:
    event = read_verdict({**write_verdict(VERDICT), "turnId": "of-another", "seq": 99}, "t1")
    assert event is not None
    assert (event.turn_id, event.seq) == ("t1", 0)


@pytest.mark.parametrize("given", [None, "x", [], {}, {"__agjson__": 1}, {**write_verdict(VERDICT), "__agjson__": "1"}])
def test_what_is_no_verdict_is_none(given: Any) -> None:
    assert read_verdict(given, "t1") is None


def test_a_denied_call_is_denied_in_a_history() -> None:
    assert result(denied(), "error").outcome == "denied"
    assert result({}, "error").outcome == "error"


def test_what_ran_stands_beside_what_is_known_already() -> None:
    said = {"model": "x", "agjson/result": {"uiData": 1, "toolMetadata": {"own": 2}}}
    block = result(ran_with(said, "send", {"to": "bob"}))
    assert block.tool_metadata == {"own": 2, RAN_WITH: {"name": "send", "arguments": {"to": "bob"}}}
    assert block.ui_data == 1
    assert said == {"model": "x", "agjson/result": {"uiData": 1, "toolMetadata": {"own": 2}}}
