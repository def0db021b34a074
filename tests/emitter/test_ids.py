"""Ids: derived ones, renamed ones, and the native ids that stay usable (spec §5.0 INV-BLOCK, §1.2)."""

from __future__ import annotations

from agjson.emitter import NATIVE_CALL_ID, Emitter
from agjson.types import SourceEvent, ToolCallBlock, UrlSource
from tests.emitter.stream import finished, folded, message, wire


def test_derived_ids_contain_the_turn_and_avoid_the_thread() -> None:
    emitter = Emitter("t", "thread", known_ids={"t:text:0", "t:tool:0", "t:tool:1", "t:message:0"})

    assert emitter.message_start() == "t:message:1"
    assert emitter.text_start() == "t:text:1"
    assert emitter.reasoning_start() == "t:reasoning:0"
    assert emitter.tool_start(None, "f") == "t:tool:2"
    assert emitter.step_start() == "t:step:0"
    assert emitter.artifact_start() == "t:artifact:0"
    assert emitter.source(UrlSource(url="https://example.org")) == "t:source:0"
    assert emitter.subagent_start() == "t:turn:0"
    assert emitter.text_start() == "t:turn:0:text:0"


def test_a_derived_id_avoids_a_native_one_that_looks_like_it() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("t:text:0")
    emitter.step_start("t:text:1")

    assert emitter.text_start() == "t:text:2"


def test_a_native_block_id_that_repeats_is_renamed_and_leads_to_the_latest() -> None:
    emitter = Emitter("t", "thread")
    assert emitter.text_start("0") == "0"
    emitter.text_delta("0", "first")
    emitter.text_end("0")
    assert emitter.text_start("0") == "0#2"
    emitter.text_delta("0", "second")
    emitter.text_end("0")
    assert emitter.text_start("0") == "0#3"
    emitter.text_delta("0", "third")
    events = finished(emitter)

    assert [block.text for block in folded(events).messages[0].content] == ["first", "second", "third"]  # type: ignore[union-attr]


def test_text_reasoning_and_calls_share_one_space_of_ids_but_each_finds_its_own() -> None:
    emitter = Emitter("t", "thread")
    assert emitter.text_start("x") == "x"
    assert emitter.reasoning_start("x") == "x#2"
    assert emitter.tool_start("x", "f") == "x#3"
    emitter.reasoning_delta("x", "thought")
    emitter.text_delta("x", "said")
    emitter.tool_args_delta("x", '{"a":1}')
    emitter.message_end()
    events = finished(emitter)

    text, reasoning, call = message(events, "t:message:0").content
    assert (text.text, reasoning.text, call.input) == ("said", "thought", {"a": 1})  # type: ignore[union-attr]


def test_a_message_may_have_the_id_of_a_block() -> None:
    emitter = Emitter("t", "thread")

    assert emitter.message_start("msg_1") == "msg_1"
    assert emitter.text_start("msg_1") == "msg_1"

    finished(emitter)


def test_ids_of_the_thread_are_not_opened_again() -> None:
    known = frozenset({"msg_1", "b", "call_1", "ask_1", "s"})
    emitter = Emitter("t", "thread", known_ids=known)

    assert emitter.message_start("msg_1") == "msg_1#2"
    assert emitter.text_start("b") == "b#2"
    assert emitter.tool_start("call_1", "f") == "call_1#2"
    assert emitter.hitl_ask("approval", ask_id="ask_1") == "ask_1#2"
    assert emitter.subagent_start("s") == "s#2"

    finished(emitter, known_ids=known)


def test_a_renamed_call_keeps_its_native_id_for_the_provider() -> None:
    emitter = Emitter("t", "thread", known_ids={"call_1"})
    emitter.tool_start("call_1", "f", provider_metadata={"vendor": "v"})  # type: ignore[arg-type]
    emitter.tool_args_delta("call_1", "{}")
    emitter.tool_args_assembled("call_1")
    emitter.tool_done("call_1", outcome="ok")
    events = finished(emitter, known_ids={"call_1"})

    assert emitter.call_id("call_1") == "call_1#2"
    call = folded(events).messages[0].content[0]
    assert isinstance(call, ToolCallBlock)
    assert call.tool_call_id == "call_1#2"
    assert call.provider_metadata == {"vendor": "v", NATIVE_CALL_ID: "call_1"}
    assert [event["toolCallId"] for event in wire(events) if "toolCallId" in event] == ["call_1#2"] * 4


def test_a_call_that_keeps_its_id_needs_no_note_of_it() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("call_1", "f", {})

    assert wire(emitter.drain())[2] == {
        "type": "tool.start",
        "toolCallId": "call_1",
        "name": "f",
        "turnId": "t",
        "messageId": "t:message:0",
    }


def test_the_emitted_id_works_as_well_as_the_native_one() -> None:
    emitter = Emitter("t", "thread", known_ids={"b", "m", "c"})
    message_id = emitter.message_start("m")
    block_id = emitter.text_start("b", message_id="m")
    emitter.text_delta(block_id, "by emitted id, ")
    emitter.text_delta("b", "by native id")
    call_id = emitter.tool_start("c", "f", message_id=message_id)
    emitter.tool_args_assembled(call_id, {"a": 1})
    emitter.message_end("m")
    events = finished(emitter, known_ids={"b", "m", "c"})

    text, call = message(events, "m#2").content
    assert (text.text, call.input) == ("by emitted id, by native id", {"a": 1})  # type: ignore[union-attr]


def test_a_native_id_that_equals_a_renamed_one_is_still_told_apart() -> None:
    emitter = Emitter("t", "thread")
    assert emitter.text_start("a") == "a"
    assert emitter.text_start("a") == "a#2"
    assert emitter.text_start("a#2") == "a#2#2"
    emitter.text_delta("a", "second")
    emitter.text_delta("a#2", "third")
    events = finished(emitter)

    assert [block.text for block in folded(events).messages[0].content] == ["", "second", "third"]  # type: ignore[union-attr]


def test_a_renamed_message_says_what_the_framework_called_it() -> None:
    emitter = Emitter("t", "thread", known_ids={"m"})
    emitter.message_start("m", meta={"k": 1})

    assert wire(emitter.drain())[1]["_meta"] == {"k": 1, "agjson/nativeMessageId": "m"}


def test_a_thousand_repeats_of_one_id_are_named_in_order() -> None:
    emitter = Emitter("t", "thread")

    names = [emitter.text_start("0") for _ in range(1000)]

    assert names[:3] == ["0", "0#2", "0#3"]
    assert names[-1] == "0#1000"


def test_a_source_keeps_its_id_because_citations_name_it() -> None:
    emitter = Emitter("t", "thread", known_ids={"s1"})
    emitter.emit(SourceEvent(seq=0, source_id="s1", source=UrlSource(url="https://example.org")))

    assert wire(emitter.drain())[1]["sourceId"] == "s1"
