"""Rows of the loop contract, "Normal function invocation" and "Errors, control flow, and limits"."""

from __future__ import annotations

import pytest

from agjson.transcript import Transcript, TranscriptError, prepare, settle, validate
from agjson.types import AgToolResult, TextBlock
from tests.transcript.writing import ask, assistant, call, pairs, paused, reasoning, result, tool, user, view


def test_row_1_call_result_and_words_come_in_this_order() -> None:
    history = [user("u"), assistant("a1", call("c")), assistant("a2", "It is done."), tool(result("c"))]
    out_of_order = prepare([history[0], history[1], user("v"), history[3], history[2]])
    assert view(out_of_order.messages) == [
        "user: u?",
        "assistant: c()",
        "tool: c=done",
        "user: v?",
        "assistant: It is done.",
    ]
    in_order = [history[0], history[1], history[3], history[2]]
    assert prepare(in_order).messages == in_order


def test_row_3_every_round_keeps_its_own_pair() -> None:
    history = [user("u")]
    for n in (1, 2, 3):
        history += [assistant(f"a{n}", call("c")), tool(result("c", f"r{n}"), f"r{n}")]
    history.append(assistant("end", "Done"))
    prepared = prepare(history)
    assert prepared.messages == history
    assert [got for _, got in pairs(prepared)] == ["c=r1", "c=r2", "c=r3"]


def test_row_5_reasoning_call_result_and_words_all_stay() -> None:
    history = [user("u"), assistant("a1", reasoning(), call("c")), tool(result("c")), assistant("a2", "Done")]
    assert view(prepare(history).messages) == [
        "user: u?",
        "assistant: ~thinking c()",
        "tool: c=done",
        "assistant: Done",
    ]


def test_row_6_calls_over_several_messages_of_one_answer_get_one_result_each() -> None:
    history = [
        user("u"),
        assistant("a1", call("c1")),
        assistant("a2", "and"),
        assistant("a3", call("c2")),
    ]
    settled = settle(history, [result("c2", "two"), result("c1", "one")])
    assert settled.unmatched == ()
    assert view(prepare(settled.messages).messages) == [
        "user: u?",
        "assistant: c1()",
        "assistant: and",
        "assistant: c2()",
        "tool: c1=one",
        "tool: c2=two",
    ]


def test_row_7_parallel_calls_get_their_own_results_in_the_order_of_the_calls() -> None:
    history = [
        assistant("a", call("c1"), call("c2"), call("c3")),
        tool(result("c3", "3")),
        tool(result("c1", "1")),
        tool(result("c2", "2")),
    ]
    prepared = prepare(history)
    assert view(prepared.messages)[1:] == ["tool: c1=1", "tool: c2=2", "tool: c3=3"]
    assert [(change.code, change.path) for change in prepared.changes] == [
        ("result_moved", "$[1].content[0]"),
        ("result_moved", "$[2].content[0]"),
        ("result_moved", "$[3].content[0]"),
    ]


def test_row_8_a_call_for_information_is_visible_and_takes_no_result() -> None:
    history = [user("u"), assistant("a", call("s", provider_executed=True), "Found it.")]
    assert prepare(history).messages == history
    settled = settle(history, [result("s")])
    assert settled.added == ()
    assert [(each.code, each.index, each.id) for each in settled.unmatched] == [("hosted_call", 0, "s")]


def test_row_9_a_declared_tool_waits_for_its_client_and_is_no_orphan() -> None:
    history = [user("u1"), assistant("a", reasoning(), call("c"))]
    assert validate(history, waiting=["c"]) == []
    assert [each.key for each in Transcript(history, waiting=["c"]).pending] == ["c"]
    assert view(prepare([*history, user("u2")], waiting=["c"]).messages) == ["user: u1?", "user: u2?"]
    landed = settle(history, [AgToolResult(tool_call_id="c", content=[TextBlock(text="from the client")])])
    assert view(prepare(landed.messages).messages) == [
        "user: u1?",
        "assistant: ~thinking c()",
        "tool: c=from the client",
    ]


def test_row_61_no_call_stays_without_a_result() -> None:
    history = [user("u"), assistant("a", reasoning(), call("c"))]
    with pytest.raises(TranscriptError) as refused:
        prepare(history)
    assert (refused.value.code, refused.value.path) == ("unanswered_call", "$[1].content[1]")
    assert view(prepare(history, unanswered="answer").messages) == [
        "user: u?",
        "assistant: ~thinking c()",
        "tool: c=The call was interrupted: it has no result.",
    ]
    assert view(prepare(history, unanswered="leave_out").messages) == ["user: u?"]


def test_row_63_behind_a_limit_only_calls_that_nothing_came_of_are_left_out() -> None:
    history = [
        user("u"),
        assistant(
            "a",
            "The limit is reached.",
            call("s", provider_executed=True),
            result("s", "found"),
            reasoning("first"),
            call("hosted", provider_executed=True),
            reasoning("then"),
            call("c"),
        ),
    ]
    prepared = prepare(history, unanswered="leave_out")
    assert view(prepared.messages) == ["user: u?", "assistant: The limit is reached. s() s=found ~first hosted()"]
    assert [(change.code, change.path) for change in prepared.changes] == [
        ("unanswered", "$[1].content[5]"),
        ("unanswered", "$[1].content[6]"),
    ]


def test_row_63_what_only_carries_words_about_a_message_stays() -> None:
    history = [user("u"), assistant("a", call("c"), "Words", metadata={"traceparent": "00-1"}, model="m")]
    (_, left) = prepare(history, unanswered="leave_out").messages
    assert (left.id, left.metadata, left.model) == ("a", {"traceparent": "00-1"}, "m")
    assert view([left]) == ["assistant: Words"]


def test_row_63_a_hosted_ask_stays_behind_a_limit() -> None:
    history = [user("u"), assistant("a", call("h", provider_executed=True), call("c"), "Words", turn_id="t1")]
    prepared = prepare(history, turns=[paused("t1", ask("k", "h"))], unanswered="leave_out")
    assert view(prepared.messages) == ["user: u?", "assistant: h() Words"]
    assert [each.ask_id for each in prepared.asks] == ["k"]
