"""Tool messages are the results of calls: content, artifact, status and id each in its place."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.adapters.langgraph._results import result_fields
from agjson.types import Base64Source, ImageBlock, ProviderRawBlock, TextBlock
from tests.support.langgraph_messages import Stream, chunk, last, part, tool


def call(id: str = "c1", name: str = "look") -> dict[str, Any]:
    """A chunk with a whole call."""
    return chunk(tool_call_chunks=[part(name, '{"q": 1}', id, 0)])


def test_a_text_is_the_content() -> None:
    assert result_fields(tool("42", "c1")) == {"content": [TextBlock(text="42")], "outcome": "ok"}


def test_blocks_are_read_like_any_other_content() -> None:
    image = {"type": "image", "base64": "QUJD", "mime_type": "image/gif"}

    fields = result_fields(tool(["see", image, {"type": "odd", "x": 1}], "c1"))

    assert fields["content"] == [
        TextBlock(text="see"),
        ImageBlock(source=Base64Source(media_type="image/gif", data="QUJD")),
        ProviderRawBlock(vendor="langgraph", raw={"type": "odd", "x": 1}),
    ]


def test_an_artifact_is_for_the_app_alone() -> None:
    assert result_fields(tool("", "c1", artifact={"rows": [1, 2]}))["side_data"] == {"rows": [1, 2]}
    assert "side_data" not in result_fields(tool("", "c1"))
    assert result_fields(tool("", "c1", artifact=0))["side_data"] == 0


def test_a_failed_call_says_why() -> None:
    fields = result_fields(tool("no such city", "c1", status="error"))

    assert (fields["outcome"], fields["error_text"]) == ("error", "no such city")
    assert fields["content"] == [TextBlock(text="no such city")]


def test_a_call_that_was_not_allowed_has_not_failed() -> None:
    by_us = result_fields(tool("not today", "c1", status="error"), {"c1": "not today"})
    mark = {"lc_source": "hitl_interrupt_decision", "lc_data": {"decision": "reject"}}
    by_langchain = result_fields(tool("not today", "c1", status="error", additional_kwargs=mark))
    answered = {"lc_source": "hitl_interrupt_decision", "lc_data": {"decision": "respond"}}

    assert by_us["outcome"] == by_langchain["outcome"] == "denied"
    assert "error_text" not in by_us
    assert result_fields(tool("so", "c1", additional_kwargs=answered))["outcome"] == "ok"


def test_what_the_way_back_has_kept_is_there_again() -> None:
    kept = {"uiData": {"card": 1}, "outcome": "input_required", "errorCode": 5, "added": 1}

    fields = result_fields(tool(["seen", "written for the model"], "c1", response_metadata={"agjson/result": kept}))

    assert fields == {"content": [TextBlock(text="seen")], "outcome": "input_required", "ui_data": {"card": 1}}


def test_only_a_failed_call_has_an_error_text() -> None:
    kept = {"errorText": "out of date", "outcome": "denied"}

    fields = result_fields(tool("no", "c1", status="error", response_metadata={"agjson/result": kept}))

    assert fields == {"content": [TextBlock(text="no")], "outcome": "denied"}


def test_a_result_takes_the_id_of_its_message() -> None:
    stream = Stream()
    stream.take(call(), last())

    (done,) = stream.take(tool("42", "c1", "tm-7"))

    assert done == {
        "type": "tool.done",
        "toolCallId": "c1",
        "messageId": "tm-7",
        "content": [{"type": "text", "text": "42"}],
        "outcome": "ok",
    }
    messages = stream.end()
    assert [(message["id"], message["role"]) for message in messages] == [("lc_run--1", "assistant"), ("tm-7", "tool")]


def test_what_a_tool_message_says_beside_its_result_is_kept() -> None:
    stream = Stream()
    stream.take(call(), last(), tool("42", "c1", name="look", response_metadata={"agjson/result": {}, "r": 1}))
    stream.take(call("c2"), last(), tool("43", "c2", "tm2", name="other"), key=2)

    metadata = {message["id"]: message.get("metadata") for message in stream.end() if message["role"] == "tool"}
    assert metadata == {"tm1": {"langgraph/responseMetadata": {"r": 1}}, "tm2": {"langgraph/name": "other"}}


def test_a_result_is_told_once_though_it_comes_three_times() -> None:
    stream = Stream()
    stream.take(call(), last())
    result = tool("42", "c1")

    assert len(stream.commit(result)) == 1
    assert stream.take(result) == []
    assert stream.commit(result, node=None) == []
    assert not stream.runs.take_resync()


def test_a_result_without_an_id_lands_beside_its_call() -> None:
    stream = Stream()
    stream.take(call(), last(), tool("42", "c1", None))

    assert [message["id"] for message in stream.end()] == ["lc_run--1", "c1:result"]


def test_a_result_of_a_call_that_nobody_has_seen_announces_it() -> None:
    stream = Stream()

    events = stream.take(tool("42", "c9", name="look"))

    assert [event["type"] for event in events][-2:] == ["tool.args.assembled", "tool.done"]
    assert next(event for event in events if event["type"] == "tool.start")["name"] == "look"
    stream.end()


@pytest.mark.parametrize("id", [None, "", 7, ["c1"]])
def test_a_tool_message_that_names_no_call_is_refused(id: Any) -> None:
    stream = Stream()

    with pytest.raises(ValueError, match="names no call"):
        stream.take(tool("42", id))
    assert stream.end() == []


def test_a_half_of_a_character_breaks_nothing() -> None:
    stream = Stream()
    stream.take(call(), last(), tool("\ud83d", "c1", artifact={"\ud83d": "\ud83d"}))

    assert stream.take(tool("\ud83d", "c1", artifact={"\ud83d": "\ud83d"})) == []
    assert not stream.runs.take_resync()


def test_a_changed_result_is_put_aside() -> None:
    stream = Stream()
    stream.take(call(), last(), tool("42", "c1"))

    assert stream.commit(tool("43", "c1")) == []
    assert stream.runs.take_resync()
