"""Tool calls and results: ids, order, flags that agree, what partial results leave (spec §2, §2.2, §4, §5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.streams import CALL, CLOSE, OPEN, broken, ev, violations

START, ARGS, ASSEMBLED = CALL
RESULT = ev("tool.done", toolCallId="c1", content=[], turnId="t1")
DONE = CLOSE[1]


def message(*events: dict[str, Any], **options: Any) -> list[tuple[int, str]]:
    """What a message with these events breaks; the first of them is line 3."""
    return broken(*OPEN, *events, *CLOSE, **options)


def result(**fields: Any) -> dict[str, Any]:
    return {**RESULT, **fields}


def test_a_call_and_its_result_break_nothing() -> None:
    assert message(*CALL, RESULT) == []
    assert message(*CALL, result(outcome="error", errorText="no", isError=True)) == []


def test_parallel_calls_may_interleave() -> None:
    second = [{**event, "toolCallId": "c2"} for event in CALL]
    assert (
        message(START, second[0], second[1], ARGS, second[2], ASSEMBLED, {**RESULT, "toolCallId": "c2"}, RESULT) == []
    )


# Ids


def test_a_call_id_is_used_once() -> None:
    assert message(*CALL, START) == [(6, "INV-BLOCK")]
    whole = ev("content.block", block={"type": "tool-call", "toolCallId": "c1", "name": "n", "input": {}}, turnId="t1")
    assert message(*CALL, whole) == [(6, "INV-BLOCK")]
    assert message(whole, START) == [(4, "INV-BLOCK")]
    assert message(*CALL, known_ids={"c1"}) == [(3, "INV-BLOCK")]


def test_a_call_that_a_snapshot_holds_is_taken() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "name": "n", "input": {}}
    stored = [{"id": "m0", "role": "assistant", "content": [call]}]
    assert broken(OPEN[0], ev("messages.snapshot", messages=stored), OPEN[1], START, ASSEMBLED, *CLOSE) == [
        (4, "INV-BLOCK")
    ]
    twice = [{"id": "m0", "role": "assistant", "content": [call, call]}]
    assert broken(ev("messages.snapshot", messages=twice)) == [(1, "INV-BLOCK")]


@pytest.mark.parametrize("event", [ARGS, ASSEMBLED], ids=lambda event: event["type"])
def test_arguments_need_a_call(event: dict[str, Any]) -> None:
    assert message(event, event) == [(3, "INV-BLOCK")]


def test_a_call_that_came_whole_takes_no_fragments() -> None:
    whole = ev("content.block", block={"type": "tool-call", "toolCallId": "c1", "name": "n", "input": {}}, turnId="t1")
    assert message(whole, ARGS, ARGS) == [(4, "INV-BLOCK")]


def test_a_result_needs_a_call_that_was_announced() -> None:
    [violation] = violations(*OPEN, RESULT, RESULT, *CLOSE)
    assert (violation.line, violation.rule) == (3, "ANNOUNCE")
    assert violation.message == "tool.done names tool call `c1`, which has not been announced"
    assert message(RESULT, known_ids={"c1"}) == []
    block = ev("content.block", block={"type": "tool-result", "toolCallId": "c1", "content": []}, turnId="t1")
    assert message(block) == [(3, "ANNOUNCE")]


def test_a_result_may_follow_the_removal_of_its_call() -> None:
    second = ev("message.start", id="m2", role="assistant", turnId="t1", threadId="th")
    stream = (*OPEN, *CALL, ev("message.remove", id="m1"), second, RESULT, ev("message.end", id="m2"), DONE)
    assert broken(*stream) == []


# Assembled arguments


def test_arguments_are_assembled_before_the_result() -> None:
    assert message(START, ARGS, RESULT) == [(5, "ASSEMBLED")]
    assert message(START, RESULT, ASSEMBLED) == [(4, "ASSEMBLED")]


def test_arguments_are_assembled_before_the_turn_ends_well() -> None:
    assert message(START, ARGS) == [(6, "ASSEMBLED")]
    paused = {
        **DONE,
        "outcome": {"type": "paused", "asks": [{"askId": "a", "kind": "approval"}]},
        "finishReason": "paused",
    }
    ask = ev("hitl.ask", askId="a", kind="approval", toolCallId="c1", turnId="t1")
    assert broken(*OPEN, START, ask, CLOSE[0], paused) == [(6, "ASSEMBLED")]


@pytest.mark.parametrize(
    "terminal",
    [
        ev("turn.abort", turnId="t1"),
        ev("turn.error", turnId="t1", message="x"),
        {**DONE, "outcome": {"type": "error", "message": "x"}, "finishReason": "other"},
        {**DONE, "finishReason": "token_limit"},
        {**DONE, "finishReason": "malformed_tool_call"},
    ],
)
def test_an_interrupted_turn_may_leave_arguments_cut_off(terminal: dict[str, Any]) -> None:
    assert broken(*OPEN, START, ARGS, CLOSE[0], terminal) == []


# Flags


@pytest.mark.parametrize(
    "fields",
    [
        {"errorText": "no"},
        {"errorText": "no", "outcome": "ok"},
        {"errorText": "no", "outcome": "denied"},
        {"isError": True, "outcome": "ok"},
        {"isError": True, "outcome": "denied"},
        {"isError": False, "outcome": "error"},
        {"pendingInput": {}, "outcome": "ok"},
        {"pendingInput": {}},
        {"preliminary": True},
        {"preliminary": True, "more": False},
        {"preliminary": False, "more": True},
    ],
)
def test_flags_of_a_result_agree(fields: dict[str, Any]) -> None:
    assert message(*CALL, result(**fields)) == [(6, "RESULT")]


@pytest.mark.parametrize(
    "fields",
    [
        {"errorText": "no", "outcome": "error", "isError": True},
        {"outcome": "error", "errorCode": "e"},
        {"isError": True},
        {"isError": False, "outcome": "denied"},
        {"pendingInput": {"inputKeys": ["k"]}, "outcome": "input_required"},
        {"preliminary": True, "more": True},
        {"preliminary": False},
    ],
)
def test_flags_that_agree_break_nothing(fields: dict[str, Any]) -> None:
    assert message(*CALL, result(**fields)) == []


def test_flags_of_a_whole_result_agree() -> None:
    block = {"type": "tool-result", "toolCallId": "c1", "content": [], "errorText": "no", "outcome": "ok"}
    assert message(*CALL, ev("content.block", block=block, turnId="t1")) == [(6, "RESULT")]


# Partial results

CHANNELS = {
    "outcome": "ok",
    "structuredContent": None,
    "uiData": {"a": 1},
    "sideData": 0,
    "errorCode": "e",
    "providerMetadata": {"k": 1},
    "toolMetadata": {"k": 1},
    "dynamic": True,
    "isError": False,
}


def test_a_final_result_restates_what_partial_ones_gave() -> None:
    assert message(*CALL, result(more=True, **CHANNELS), result(**CHANNELS)) == []


@pytest.mark.parametrize("field", CHANNELS)
def test_a_field_that_the_final_result_omits_is_left_over(field: str) -> None:
    rest = {name: value for name, value in CHANNELS.items() if name != field}
    [violation] = violations(*OPEN, *CALL, result(more=True, **CHANNELS), result(**rest), *CLOSE)
    assert (violation.line, violation.rule) == (7, "PARTIAL-LEFTOVER")
    assert violation.message == f"the final result of call `c1` omits {field}"


def test_only_the_final_result_must_restate_and_it_restates_all_partial_ones() -> None:
    partials = (result(more=True, uiData=1), result(more=True, sideData=2))
    assert message(*CALL, *partials, result(uiData=1, sideData=2)) == []
    assert message(*CALL, *partials, result(sideData=2)) == [(8, "PARTIAL-LEFTOVER")]


def test_a_result_after_the_final_one_has_nothing_to_restate() -> None:
    assert message(*CALL, result(more=True, uiData=1), result(uiData=1), result()) == []


def test_a_partial_result_takes_no_change_once_its_message_is_sealed_or_its_turn_closed() -> None:
    partial = result(more=True)
    assert broken(*OPEN, *CALL, partial, CLOSE[0], RESULT, DONE) == [(8, "INV-MSG")]
    assert broken(*OPEN, *CALL, partial, *CLOSE, RESULT) == [(9, "INV-MSG")]


def test_a_result_of_another_turn_does_not_continue_a_partial_one() -> None:
    later = (
        ev("turn.start", turnId="t2", threadId="th"),
        result(turnId="t2", messageId="c1:result"),
        {**DONE, "turnId": "t2"},
    )
    assert broken(*OPEN, *CALL, result(more=True, uiData=1), *CLOSE, *later) == []


def test_a_partial_result_that_a_snapshot_holds_is_continued() -> None:
    partial = {"type": "tool-result", "toolCallId": "c1", "content": [], "preliminary": True, "uiData": 1}
    stored = ev(
        "messages.snapshot",
        messages=[{"id": "r", "role": "tool", "turnId": "t1", "content": [partial]}],
        turns=[{"turnId": "t1", "threadId": "th"}],
    )
    assert broken(stored, result(uiData=2)) == []
    assert broken(stored, result()) == [(2, "PARTIAL-LEFTOVER")]
