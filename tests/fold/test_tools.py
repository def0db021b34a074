"""Tool rows that the vectors leave open (spec §5 tool.*, §2.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.folding import CALL, DONE, MESSAGE, TURN, blocks, folded, messages, push

END = {"type": "message.end", "id": "m"}
ASSEMBLED = {"type": "tool.args.assembled", "toolCallId": "c", "input": {"a": 1}}


def result(text: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "tool.done",
        "toolCallId": "c",
        "turnId": "t",
        "content": [{"type": "text", "text": text}],
        **fields,
    }


def test_assembled_merges_bags_by_key_and_sets_the_rest() -> None:
    start = {**CALL, "title": "T", "toolMetadata": {"a": 1, "b": 1}, "providerMetadata": {"p": 1}}
    assembled = {**ASSEMBLED, "signature": "s", "toolMetadata": {"b": 2}, "providerMetadata": {"q": 1}}
    reducer = folded(TURN, MESSAGE, start, assembled, {**ASSEMBLED, "input": [2], "title": "U"})
    assert blocks(reducer) == [
        {
            "type": "tool-call",
            "toolCallId": "c",
            "name": "n",
            "input": [2],
            "title": "U",
            "signature": "s",
            "toolMetadata": {"a": 1, "b": 2},
            "providerMetadata": {"p": 1, "q": 1},
        }
    ]


def test_envelope_metadata_of_the_call_does_not_land() -> None:
    assert "_meta" not in blocks(folded(TURN, MESSAGE, {**CALL, "_meta": {"k": 1}}))[0]


@pytest.mark.parametrize("shut", [END, DONE], ids=["sealed", "closed"])
def test_arguments_that_are_assembled_late_still_land(shut: dict[str, Any]) -> None:
    reducer = folded(TURN, MESSAGE, CALL, shut, ASSEMBLED)
    assert blocks(reducer)[0]["input"] == {"a": 1}


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([{"type": "tool.args.delta", "toolCallId": "ghost", "delta": "{"}], id="unknown"),
        pytest.param([CALL, DONE, {"type": "tool.args.delta", "toolCallId": "c", "delta": "{"}], id="turn closed"),
        pytest.param([CALL, {"type": "message.remove", "id": "m"}, ASSEMBLED], id="removed"),
    ],
)
def test_arguments_without_their_call_park(members: list[dict[str, Any]]) -> None:
    assert folded(TURN, MESSAGE, *members).needs_resync


def test_a_call_that_comes_whole_takes_its_id() -> None:
    whole = {"type": "tool-call", "toolCallId": "c", "name": "n", "input": 1}
    reducer = folded(TURN, MESSAGE, {"type": "content.block", "block": whole}, CALL)
    assert reducer.needs_resync
    assert blocks(reducer) == [whole]


def test_a_partial_result_may_be_replaced_many_times() -> None:
    reducer = folded(TURN, MESSAGE, CALL, *(result(text, more=True) for text in "abc"))
    assert blocks(reducer)[1] == {
        "type": "tool-result",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "c"}],
        "preliminary": True,
    }
    push(reducer, result("final"), result("next"))
    assert [block["content"][0]["text"] for block in blocks(reducer)[1:]] == ["final", "next"]
    assert not any("preliminary" in block for block in blocks(reducer))


def test_the_preliminary_flag_of_an_event_is_not_read() -> None:
    assert "preliminary" not in blocks(folded(TURN, MESSAGE, CALL, result("r", preliminary=True)))[1]


def test_a_null_in_the_final_replaces_the_partial_value() -> None:
    partial = result("p", more=True, structuredContent={"a": 1}, uiData=1, errorText="e", outcome="error")
    block = blocks(folded(TURN, MESSAGE, CALL, partial, result("f", structuredContent=None, outcome="ok")))[1]
    assert block == {
        "type": "tool-result",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "f"}],
        "structuredContent": None,
        "uiData": 1,
        "errorText": "e",
        "outcome": "ok",
    }


def test_every_field_of_a_result_lands() -> None:
    fields = {
        "outcome": "input_required",
        "structuredContent": {"s": 1},
        "uiData": [1],
        "sideData": "x",
        "errorText": "e",
        "errorCode": "c",
        "providerMetadata": {"p": 1},
        "toolMetadata": {"t": 1},
        "dynamic": False,
        "pendingInput": {"requestState": "r", "inputKeys": ["k"]},
        "isError": False,
        "_meta": {"m": 1},
    }
    reducer = folded(TURN, MESSAGE, CALL, result("r", **fields, skipSummarization=True))
    assert blocks(reducer)[1] == {
        "type": "tool-result",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "r"}],
        **fields,
    }


def test_a_final_stays_where_its_partial_stands() -> None:
    reducer = folded(TURN, MESSAGE, CALL, result("p", more=True), result("f", messageId="R"))
    assert [message["id"] for message in messages(reducer)] == ["m"]
    reducer = folded(TURN, MESSAGE, CALL, result("p", more=True, messageId="R"), result("f"))
    assert blocks(reducer, 1) == [
        {"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": "f"}]}
    ]


def test_a_final_for_a_sealed_message_parks() -> None:
    reducer = folded(TURN, MESSAGE, CALL, result("p", more=True), END, result("f"))
    assert reducer.needs_resync
    assert blocks(reducer)[1]["content"][0]["text"] == "p"


def test_a_result_in_a_new_turn_leaves_the_partial_of_a_closed_one() -> None:
    again = result("f", turnId="u", messageId="c:result")
    reducer = folded(TURN, MESSAGE, CALL, result("p", more=True), DONE, {**TURN, "turnId": "u"}, again)
    assert not reducer.needs_resync
    assert blocks(reducer)[1]["preliminary"] is True
    assert messages(reducer)[1]["turnId"] == "u"
    assert blocks(reducer, 1)[0]["content"][0]["text"] == "f"


def test_an_adopted_message_takes_turn_thread_and_candidate_from_its_turn() -> None:
    reducer = folded({**TURN, "threadId": "deep"}, MESSAGE, CALL, result("r", messageId="R", candidateIndex=0))
    adopted = messages(reducer)[1]
    assert {key: adopted[key] for key in adopted if key != "content"} == {
        "id": "R",
        "role": "tool",
        "turnId": "t",
        "threadId": "deep",
        "candidateIndex": 0,
    }


def test_an_adoption_may_leave_out_the_sole_open_turn() -> None:
    adopted = {**result("r", messageId="R")}
    del adopted["turnId"]
    assert messages(folded(TURN, MESSAGE, CALL, adopted))[1]["turnId"] == "t"
    assert folded(TURN, MESSAGE, CALL, {**TURN, "turnId": "u"}, adopted).needs_resync


def test_an_adoption_does_not_take_the_pointer() -> None:
    reducer = folded(TURN, MESSAGE, CALL, result("r", messageId="R"), {"type": "text.start", "id": "x"})
    assert [len(message["content"]) for message in messages(reducer)] == [2, 1]


def test_an_adoption_into_the_message_of_another_turn_parks() -> None:
    reducer = folded(TURN, MESSAGE, CALL, {**TURN, "turnId": "u"}, result("r", turnId="u", messageId="m"))
    assert reducer.needs_resync


def test_an_adoption_in_a_closed_turn_parks() -> None:
    reducer = folded(TURN, MESSAGE, CALL, DONE, result("r", messageId="R"))
    assert reducer.needs_resync
    assert len(messages(reducer)) == 1


def test_an_id_that_two_whole_calls_have_is_free_when_both_are_removed() -> None:
    whole = {"type": "content.block", "turnId": "t", "block": {"type": "tool-call", "toolCallId": "c", "name": "n"}}
    whole["block"]["input"] = 0
    members = [TURN, MESSAGE, whole, {**MESSAGE, "id": "m2"}, whole, {**MESSAGE, "id": "m3"}]
    gone = [{"type": "message.remove", "id": "m"}, {"type": "message.remove", "id": "m2"}]
    assembled = {"type": "tool.args.assembled", "toolCallId": "c", "input": 1}
    assert [blocks(folded(*members, assembled), place)[0]["input"] for place in (0, 1)] == [1, 0]
    assert blocks(folded(*members, gone[0], assembled))[0]["input"] == 1
    assert folded(*members, gone[0], CALL).needs_resync
    assert blocks(folded(*members, *gone, CALL))[0]["toolCallId"] == "c"
