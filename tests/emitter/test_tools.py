"""Tool calls and results: arguments, where results land, flags that agree (spec §2.1, §2.2, §5 tool.*, §8)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agjson.emitter import NATIVE_CALL_ID, Emitter
from agjson.known_ids import KnownIds
from agjson.types import (
    AgAnnotations,
    AgPendingInput,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from tests.emitter.stream import errors, finished, folded, message, types, wire

RESULT = [TextBlock(text="20 degrees")]


def results(events: list[Any]) -> list[tuple[str, ToolResultBlock]]:
    return [
        (message.id, block)
        for message in folded(events).messages
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]


# Arguments


def test_fragments_are_joined_and_read() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "get_weather", index=1)
    for delta in ("", '{"ci', 'ty": "Oslo"', ', "days": 12345678901234567890}'):
        emitter.tool_args_delta("c", delta)

    assert emitter.tool_args_assembled("c") == {"city": "Oslo", "days": 12345678901234567890}

    events = finished(emitter)
    assert types(events).count("tool.args.delta") == 3
    assert folded(events).messages[0].content == [
        ToolCallBlock(tool_call_id="c", name="get_weather", input={"city": "Oslo", "days": 12345678901234567890})
    ]


def test_a_character_split_between_fragments_is_whole_in_the_arguments() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "f")
    for delta in ('{"a": "\ud83d', '\ude00"', "}"):
        emitter.tool_args_delta("c", delta)

    assert emitter.tool_args_assembled("c") == {"a": "\U0001f600"}
    assert [event["delta"] for event in wire(finished(emitter)) if event["type"] == "tool.args.delta"] == [
        '{"a": "',
        '\U0001f600"',
        "}",
    ]


def test_it_can_be_asked_which_calls_have_been_announced() -> None:
    emitter = Emitter("t", "thread", known_ids={"old", "c"})
    emitter.tool_call("c", "f", {})

    assert [emitter.has_call(id) for id in ("c", "c#2", "old")] == [True, True, False]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "now")

    assert emitter.tool_args_assembled("c") == {}


@pytest.mark.parametrize("text", ['{"a": 1', "NaN", '{"a": Infinity}', "not json", '{"a": 1} 2', "[" * 100_000])
def test_arguments_that_are_no_json_are_kept_and_reported(text: str) -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "f")
    emitter.tool_args_delta("c", text)

    assert emitter.tool_args_assembled("c") == {"INVALID_JSON": text}

    events = finished(emitter)
    assert types(events)[-4:-2] == ["tool.args.assembled", "error"]
    assert [error["code"] for error in errors(events)] == ["malformed_tool_call"]


def test_given_arguments_stand_above_the_fragments() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "f")
    emitter.tool_args_delta("c", "{")
    emitter.tool_args_assembled("c", {"a": None}, signature="sig", title="T")
    events = finished(emitter)

    call = folded(events).messages[0].content[0]
    assert isinstance(call, ToolCallBlock)
    assert (call.input, call.signature, call.title) == ({"a": None}, "sig", "T")
    assert errors(events) == []


def test_an_empty_signature_is_left_out() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {}, signature="")

    assert "signature" not in wire(finished(emitter))[3]


def test_arguments_may_come_cumulatively() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "f")
    for text in ('{"a"', '{"a": 1', '{"a": 1}', '{"a": 1}'):
        emitter.tool_args_cumulative("c", text)
    emitter.tool_args_assembled("c")
    emitter.tool_args_cumulative("c", '{"a": 1}')
    events = finished(emitter)

    assert [event["delta"] for event in wire(events) if event["type"] == "tool.args.delta"] == ['{"a"', ": 1", "}"]
    assert folded(events).messages[0].content[0].input == {"a": 1}  # type: ignore[union-attr]
    assert errors(events) == []


def test_cumulative_arguments_that_contradict_count_as_they_are_last() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "f")
    emitter.tool_args_cumulative("c", '{"a": 1}')
    emitter.tool_args_cumulative("c", '{"b"')
    emitter.tool_args_cumulative("c", '{"b": 2}')
    assert emitter.tool_args_assembled("c") == {"b": 2}

    assert [error["code"] for error in errors(finished(emitter))] == ["cumulative_mismatch"]


def test_arguments_that_come_too_late_are_refused_visibly() -> None:
    emitter = Emitter("t", "thread", known_ids={"old"})
    emitter.tool_call("c", "f", {})
    emitter.tool_args_delta("c", "{}")
    emitter.tool_start("d", "f")
    emitter.message_end()
    emitter.tool_args_delta("d", "{}")
    emitter.tool_args_delta("old", "{}")
    events = finished(emitter, known_ids={"old"})

    assert [error["code"] for error in errors(events)] == ["tool_args_closed", "tool_args_closed", "unknown_tool_call"]
    assert all(error["_meta"]["agjson/refused"]["delta"] == "{}" for error in errors(events))


def test_arguments_of_a_call_never_heard_of_announce_it() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_args_delta("c", '{"a": ')
    emitter.tool_args_delta("c", "1}")
    emitter.message_end()
    events = finished(emitter)

    assert folded(events).messages[0].content == [
        ToolCallBlock(tool_call_id="c", name="unknown", input={"a": 1}, tool_metadata={"agjson/synthesized": True})
    ]


@pytest.mark.parametrize("close", ["message_end", "turn_done", "tool_done"])
def test_a_call_gets_its_arguments_before_what_needs_them(close: str) -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "f")
    emitter.tool_args_delta("c", '{"a": 1}')

    getattr(emitter, close)(*(["c"] if close == "tool_done" else []))
    events = finished(emitter)

    assert types(events)[4] == "tool.args.assembled"
    assert folded(events).messages[0].content[0].input == {"a": 1}  # type: ignore[union-attr]


def test_a_call_that_an_error_cuts_off_gets_none() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_start("c", "f")
    emitter.tool_args_delta("c", '{"a": ')
    emitter.turn_error("broken")

    assert "tool.args.assembled" not in types(finished(emitter))


# Results


def test_the_result_of_a_server_tool_stays_in_the_message_of_its_call() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m")
    emitter.tool_call("c", "web_search", {"q": "x"}, provider_executed=True)

    assert emitter.tool_done("c", RESULT, outcome="ok") == "m"

    events = finished(emitter)
    assert "messageId" not in next(event for event in wire(events) if event["type"] == "tool.done")
    assert [block.type for block in message(events, "m").content] == ["tool-call", "tool-result"]


def test_the_result_of_a_client_tool_gets_a_message_of_its_own() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m")
    emitter.tool_call("c", "f", {})
    emitter.message_end("m")
    emitter.message_start("next")

    assert emitter.tool_done("c", RESULT, outcome="ok") == "c:result"
    emitter.text("goes on")

    events = finished(emitter)
    assert [(m.id, m.role, len(m.content)) for m in folded(events).messages] == [
        ("m", "assistant", 1),
        ("next", "assistant", 1),
        ("c:result", "tool", 1),
    ]


def test_a_result_adopts_the_native_id_of_its_message() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.tool_call("d", "f", {})
    emitter.message_end()

    assert emitter.tool_done("c", RESULT, message_id="tm_1") == "tm_1"
    assert emitter.tool_done("d", RESULT, message_id="tm_1") == "tm_1"

    events = finished(emitter)
    assert [id for id, _ in results(events)] == ["tm_1", "tm_1"]


def test_a_result_goes_into_an_open_tool_message() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.message_end()
    emitter.message_start("t:denials", role="tool")

    assert emitter.tool_done("c", RESULT, outcome="denied") == "t:denials"
    assert emitter.tool_done("c", RESULT, outcome="denied", message_id="t:denials") == "t:denials"

    finished(emitter)


def test_a_result_in_place_lands_in_the_open_message_whatever_that_holds() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m1")
    emitter.tool_call("c", "search", {}, provider_executed=True)
    emitter.message_end()
    emitter.message_start("m2")
    emitter.text("and so", id="b")

    assert emitter.tool_done("c", RESULT, outcome="ok", message_id="m2", in_place=True) == "m2"

    emitter.text("it is", id="e")
    events = finished(emitter)
    assert [event for event in wire(events) if event["type"] == "tool.done"] == [
        {
            "type": "tool.done",
            "toolCallId": "c",
            "content": [{"type": "text", "text": "20 degrees"}],
            "outcome": "ok",
            "turnId": "t",
        }
    ]
    assert [block.type for block in message(events, "m2").content] == ["text", "tool-result", "text"]


def test_a_result_in_place_opens_a_message_where_none_is_open() -> None:
    emitter = Emitter("t", "thread", known_ids=KnownIds(calls={"c"}, messages={"m"}))
    emitter.message_start("m1")
    emitter.message_end()

    assert emitter.tool_done("c", RESULT, in_place=True) == "t:message:0"
    assert emitter.tool_done("c2", RESULT, in_place=True, message_id="m1") == "m1#2"
    assert emitter.tool_done("c", RESULT, in_place=True, candidate_index=1) == "t:message:1"

    events = finished(emitter, known_ids={"c", "m"})
    assert [
        (each.id, each.role, [block.type for block in each.content], each.candidate_index)
        for each in folded(events).messages
    ] == [
        ("m1", "assistant", [], None),
        ("t:message:0", "assistant", ["tool-result"], None),
        ("m1#2", "assistant", ["tool-call", "tool-result"], None),
        ("t:message:1", "assistant", ["tool-result"], 1),
    ]


def test_a_partial_result_in_place_is_replaced_in_its_place() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m1")
    emitter.tool_call("c", "search", {})
    emitter.message_end()
    emitter.message_start("m2")
    emitter.tool_done("c", structured_content={"n": 1}, more=True, in_place=True)
    emitter.text("meanwhile", id="b")

    assert emitter.tool_done("c", RESULT, outcome="ok", in_place=True) == "m2"

    events = finished(emitter)
    result, text = message(events, "m2").content
    assert (result.outcome, result.structured_content, result.preliminary) == ("ok", {"n": 1}, None)  # type: ignore[union-attr]
    assert text.type == "text"


def test_a_taken_message_id_is_not_adopted() -> None:
    emitter = Emitter("t", "thread", known_ids={"tm_0"})
    emitter.message_start("m")
    emitter.tool_call("c", "f", {})

    assert emitter.tool_done("c", RESULT, message_id="m") == "m#2"
    assert emitter.tool_done("c", RESULT, message_id="tm_0") == "tm_0#2"

    events = finished(emitter, known_ids={"tm_0"})
    assert [block.meta for _, block in results(events)] == [
        {"agjson/nativeMessageId": "m"},
        {"agjson/nativeMessageId": "tm_0"},
    ]


def test_a_message_may_take_the_id_of_its_call() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})

    assert emitter.tool_done("c", RESULT, message_id="c") == "c"
    assert emitter.message_start("c") == "c#2"

    finished(emitter)


def test_a_placeholder_and_the_real_result_have_messages_of_their_own() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.message_end()
    emitter.tool_done("c", RESULT, outcome="input_required", message_id="c:pending")
    emitter.tool_done("c", RESULT, outcome="ok")
    emitter.tool_done("c", RESULT, outcome="ok")
    events = finished(emitter)

    assert [id for id, _ in results(events)] == ["c:pending", "c:result", "c:result#2"]


def test_the_result_of_an_earlier_invokes_call_names_it_and_adopts() -> None:
    emitter = Emitter("t2", "thread", known_ids={"c", "c#2"}, call_ids={"c": "c#2"})

    assert emitter.tool_done("c", RESULT, outcome="ok") == "c#2:result"

    events = finished(emitter, known_ids={"c", "c#2"})
    assert "tool.start" not in types(events)
    assert [block.tool_call_id for _, block in results(events)] == ["c#2"]


def test_a_result_of_a_call_never_heard_of_announces_it() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_done("c", RESULT, name="get_weather", outcome="ok")
    events = finished(emitter)

    assert [block.type for block in folded(events).messages[0].content] == ["tool-call", "tool-result"]
    assert folded(events).messages[0].content[0].name == "get_weather"  # type: ignore[union-attr]


def test_a_result_goes_to_the_turn_of_its_call() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("outer", "task", {})
    emitter.subagent_start("s")
    emitter.tool_call("inner", "f", {})
    emitter.tool_done("outer", RESULT)
    emitter.tool_done("inner", RESULT)
    emitter.subagent_done("s")
    emitter.tool_done("inner", RESULT)
    events = finished(emitter)

    turns = {message.id: message.turn_id for message in folded(events).messages}
    assert [(turns[id], block.tool_call_id) for id, block in results(events)] == [
        ("t", "outer"),
        ("s", "inner"),
        ("t", "inner"),
    ]


def test_a_result_after_the_end_is_carried_in_an_error() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.turn_done()

    assert emitter.tool_done("c", RESULT, outcome="ok", structured_content={"t": 20}) is None

    (error,) = errors(finished(emitter))
    assert error["_meta"]["agjson/refused"] == {
        "type": "tool.done",
        "turnId": "t",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "20 degrees"}],
        "outcome": "ok",
        "structuredContent": {"t": 20},
    }


# Partial results


def test_a_final_result_restates_what_the_partial_one_said() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.tool_done("c", [TextBlock(text="1/2")], more=True, ui_data={"bar": 50}, tool_metadata={"k": 1})
    emitter.tool_done("c", [TextBlock(text="2/2")], outcome="ok", ui_data={"bar": 100})
    events = finished(emitter)

    done = [event for event in wire(events) if event["type"] == "tool.done"]
    assert done[1] == {
        "type": "tool.done",
        "toolCallId": "c",
        "turnId": "t",
        "messageId": "c:result",
        "content": [{"type": "text", "text": "2/2"}],
        "outcome": "ok",
        "uiData": {"bar": 100},
        "toolMetadata": {"k": 1},
    }
    assert results(events) == [
        (
            "c:result",
            ToolResultBlock(
                tool_call_id="c",
                content=[TextBlock(text="2/2")],
                outcome="ok",
                ui_data={"bar": 100},
                tool_metadata={"k": 1},
            ),
        )
    ]


def test_a_final_result_lands_where_the_partial_one_stands() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.tool_done("c", RESULT, more=True, message_id="tm")
    emitter.message_end()

    assert emitter.tool_done("c", RESULT) == "tm"

    assert [(id, block.preliminary) for id, block in results(finished(emitter))] == [("tm", None)]


def test_a_partial_result_whose_turn_has_closed_is_not_replaced() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    emitter.tool_call("c", "f", {})
    emitter.tool_done("c", [TextBlock(text="1/2")], more=True)
    emitter.turn_abort("cancelled", turn_id="s")

    assert emitter.tool_done("c", [TextBlock(text="2/2")]) is None

    (error,) = errors(finished(emitter))
    assert error["code"] == "result_sealed"
    assert error["_meta"]["agjson/refused"]["content"] == [{"type": "text", "text": "2/2"}]


# Flags


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"error_text": "bad"}, {"outcome": "error", "errorText": "bad"}),
        ({"is_error": True}, {"outcome": "error", "isError": True}),
        ({"is_error": False, "outcome": "ok"}, {"outcome": "ok", "isError": False}),
        (
            {"pending_input": AgPendingInput(input_keys=["k"])},
            {"outcome": "input_required", "pendingInput": {"inputKeys": ["k"]}},
        ),
        ({"outcome": "denied", "error_text": "no"}, {"outcome": "denied", "_meta": {"agjson/errorText": "no"}}),
        ({"outcome": "denied", "is_error": True}, {"outcome": "denied", "_meta": {"agjson/isError": True}}),
        (
            {"outcome": "ok", "pending_input": AgPendingInput(input_keys=["k"]), "meta": {"m": 1}},
            {"outcome": "ok", "_meta": {"m": 1, "agjson/pendingInput": {"inputKeys": ["k"]}}},
        ),
        (
            {"outcome": "error", "error_text": "bad", "more": True},
            {"outcome": "error", "more": True, "messageId": "c:result", "_meta": {"agjson/errorText": "bad"}},
        ),
    ],
)
def test_flags_agree_with_the_outcome(given: dict[str, Any], expected: dict[str, Any]) -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.tool_done("c", **given)
    events = finished(emitter)

    done = next(event for event in wire(events) if event["type"] == "tool.done")
    assert done == {"type": "tool.done", "turnId": "t", "toolCallId": "c", "content": [], **expected}


# Whole blocks


def test_a_whole_call_is_streamed_where_events_can_say_all_of_it() -> None:
    plain = ToolCallBlock(tool_call_id="c", name="f", input={"a": 1}, title="T", server_name="s", item_id="fc_1")
    rich = ToolCallBlock(tool_call_id="d", name="f", input=[], provider="google", provider_call_index=0)
    emitter = Emitter("t", "thread")
    emitter.block(plain)
    emitter.block(rich)
    emitter.tool_done("d", RESULT)
    events = finished(emitter)

    assert types(events)[2:6] == ["tool.start", "tool.args.assembled", "content.block", "tool.done"]
    assert folded(events).messages[0].content[:2] == [plain, rich]


def test_a_whole_call_with_a_taken_id_is_renamed() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    emitter.content_block(
        ToolCallBlock(tool_call_id="c", name="g", input={}, annotations=AgAnnotations(priority=1), signature="")
    )
    emitter.content_block(ToolResultBlock(tool_call_id="c", content=RESULT, outcome="ok", preliminary=True))
    events = finished(emitter)

    assert folded(events).messages[0].content[1:] == [
        ToolCallBlock(
            tool_call_id="c#2",
            name="g",
            input={},
            annotations=AgAnnotations(priority=1),
            provider_metadata={NATIVE_CALL_ID: "c"},  # type: ignore[arg-type]
        ),
        ToolResultBlock(tool_call_id="c#2", content=RESULT, outcome="ok"),
    ]


def test_a_whole_result_of_a_call_never_heard_of_announces_it() -> None:
    emitter = Emitter("t", "thread")
    emitter.block(ToolResultBlock(tool_call_id="c", content=RESULT, is_error=True))
    events = finished(emitter)

    call, result = folded(events).messages[0].content
    assert (call.name, result.outcome) == ("unknown", "error")  # type: ignore[union-attr]


def test_a_call_for_a_closed_turn_is_carried_whole() -> None:
    emitter = Emitter("t", "thread")
    emitter.turn_done()
    emitter.tool_call("c", "f", {"a": 1})

    assert [error["_meta"]["agjson/refused"] for error in errors(finished(emitter))] == [
        {"type": "tool.start", "turnId": "t", "toolCallId": "c", "name": "f"},
        {"type": "tool.args.assembled", "toolCallId": "c", "input": {"a": 1}},
    ]


def test_a_string_is_no_content() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "f", {})
    with pytest.raises(TypeError, match="list of blocks"):
        emitter.tool_done("c", cast("Any", "done"))


def test_an_emitted_id_is_told_from_the_same_native_id() -> None:
    known = KnownIds(calls={"c", "c#2"})
    emitter = Emitter("t", "thread", known_ids=known, call_ids={"c": "c#2"})
    emitter.tool_done("c", RESULT)
    emitter.tool_done("c", RESULT, as_emitted=True)
    emitter.hitl_ask("approval", tool_call_id="c")
    emitter.hitl_ask("approval", tool_call_id="c", as_emitted=True)
    emitter.turn_paused()
    named = [event["toolCallId"] for event in wire(finished(emitter, known_ids=known)) if "toolCallId" in event]
    assert named == ["c#2", "c", "c#2", "c"]
