"""What no version of LangGraph has said yet is told beside the rest, wherever it stands (spec §0.2, §8.0)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.adapters.langgraph import LangGraphNormalizer, messages_from_native, messages_to_native
from agjson.types import ToolCallBlock
from tests.support.langgraph_graphs import normalize, of_type
from tests.support.langgraph_messages import META, ai, chunk, last, tool

NEW: Any = {"newMember": {"words": "of a later version"}}
INTERRUPT = {"value": "Go on?", "id": "a" * 32}
TASK = {"id": "t1", "name": "model", "input": {}, "triggers": []}


def part(mode: str, data: Any, **more: Any) -> dict[str, Any]:
    return {"type": mode, "ns": (), "data": data, **more}


@pytest.mark.parametrize(
    ("native", "kind"),
    [
        (part("messages", (chunk("Hi"), META), **NEW), "messages.members"),
        (part("values", {"note": "x"}, interrupts=(), **NEW), "values.members"),
        (part("custom", "x", **NEW), "custom.members"),
        (part("tasks", {**TASK, **NEW}), "tasks.members"),
        (part("checkpoints", {"config": {}, "next": [], **NEW}), "checkpoints.members"),
        (part("tools", {"event": "tool-started", "tool_call_id": "c1", **NEW}), "tools.members"),
        (
            {"type": "event", "method": "custom", "seq": 1, "params": {"namespace": [], "data": "x", **NEW}},
            "custom.members",
        ),
    ],
)
def test_a_new_member_of_a_part_or_of_its_data(native: Any, kind: str) -> None:
    (told,) = of_type(normalize([native]), "ext.langgraph.frame")

    assert told == {"type": "ext.langgraph.frame", "turnId": "turn-1", "kind": kind, "ns": [], "frame": NEW}


@pytest.mark.parametrize(
    "native",
    [
        part("messages", (chunk("Hi"), META)),
        part("values", {"note": "x"}, interrupts=()),
        part("tasks", TASK),
        part("tools", {"event": "tool-started", "tool_call_id": "c1", "tool_name": "look", "input": {}}),
    ],
)
def test_members_that_are_known_make_no_frame(native: Any) -> None:
    assert of_type(normalize([native]), "ext.langgraph.frame") == []


def test_a_new_member_of_an_interrupt_is_kept_with_its_ask() -> None:
    (ask,) = of_type(normalize([part("updates", {"__interrupt__": [{**INTERRUPT, **NEW}]})]), "hitl.ask")

    assert ask["metadata"]["langgraph/interrupt"] == NEW


def test_an_interrupt_of_an_older_version_keeps_nothing_beside() -> None:
    old = {"value": "Go on?", "resumable": True, "ns": ["ask:1"], "when": "during"}
    (ask,) = of_type(normalize([part("updates", {"__interrupt__": [old]})]), "hitl.ask")

    assert "langgraph/interrupt" not in ask["metadata"]


@pytest.mark.parametrize(
    "natives",
    [
        [part("messages", (chunk("Hi", **NEW), META)), part("messages", (last(), META))],
        [part("messages", (chunk("Hi"), META)), part("messages", (chunk(" you", **NEW), META))],
        [part("updates", {"model": {"messages": [ai("Hi", **NEW)]}})],
    ],
)
def test_a_new_member_of_a_message_is_kept_in_its_metadata(natives: list[Any]) -> None:
    (told,) = of_type(normalize(natives), "message.metadata")

    assert told["metadata"]["langgraph/fields"] == NEW


def test_a_new_member_of_a_result_is_kept_in_the_metadata_of_its_message() -> None:
    (told,) = of_type(normalize([part("messages", (tool("Blue", "c1", **NEW), META))]), "message.metadata")

    assert (told["messageId"], told["metadata"]) == ("tm1", {"langgraph/fields": NEW})


def test_metadata_that_only_the_state_has_are_told_when_it_comes() -> None:
    stored = ai("Hi", "lc_run--1", response_metadata={"model": "m", "stop": "end", "reviewed": "yes"})
    stream = [
        part("messages", (chunk("Hi", response_metadata={"model": "m", "stop": "end"}), META)),
        part("messages", (last(), META)),
        part("updates", {"model": {"messages": [stored]}}),
    ]
    first, second = (each["metadata"] for each in of_type(normalize(stream), "message.metadata"))

    assert first == {"langgraph/responseMetadata": {"model": "m", "stop": "end"}}
    assert second == {"langgraph/responseMetadata": {"model": "m", "stop": "end", "reviewed": "yes"}}


def test_a_new_member_of_a_checkpoint_in_debug_goes_with_it() -> None:
    payload = {"config": {}, "values": {"secret": 1}, "tasks": [], "next": [], **NEW}
    native = part("debug", {"type": "checkpoint", "step": 1, "payload": payload})
    (told,) = of_type(normalize([native]), "ext.langgraph.debug")

    assert told["payload"] == {"ns": [], "next": [], **NEW}


def test_the_signature_of_a_call_that_the_provider_runs_goes_back_where_it_stood() -> None:
    said = {
        "type": "server_tool_call",
        "id": "s1",
        "name": "google_search_web",
        "args": {"queries": ["x"]},
        "extras": {"signature": "c2ln"},
    }
    (message,) = messages_from_native([ai([said], response_metadata={"model_provider": "google_genai"})])
    (block,) = message.content
    assert isinstance(block, ToolCallBlock)
    (native,) = messages_to_native([message], plain=True)

    assert (block.provider_executed, block.signature) == (True, "c2ln")
    assert native["content"] == [said]


def test_a_member_that_is_new_takes_nothing_from_the_short_way() -> None:
    parts = [part("messages", (chunk(text), META)) for text in ("a", "b", "c")]
    parts[1]["newMember"] = 1
    normalizer = LangGraphNormalizer("t", "th")
    events = [event for each in parts for event in normalizer.push(each)]

    assert [each["delta"] for each in of_type(events, "text.delta")] == ["a", "b", "c"]
