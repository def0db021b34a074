"""Rows of the loop contract, "Approval pause and resume" and the approved ones of "Errors"."""

from __future__ import annotations

import copy

import pytest

from agjson.transcript import Transcript, controls, prepare, refusal, settle
from agjson.types import AgMessage, AgToolResult, AgTurnRecord, TextBlock
from agjson.wire import decode_message, decode_result, encode
from tests.transcript.writing import (
    ask,
    assistant,
    call,
    no,
    paused,
    reasoning,
    result,
    shown,
    tool,
    user,
    view,
    waits,
    yes,
)

HISTORY = [
    user("u", "Mail Ann.", turn_id="t1"),
    assistant("a", reasoning("ask first"), call("c"), turn_id="t1"),
]
TURNS = [paused("t1", ask("k", "c"))]


def test_row_12_the_pause_shows_the_call_and_its_ask_and_nothing_has_run() -> None:
    found = Transcript(HISTORY, turns=TURNS)
    assert [each.key for each in found.pending] == ["c"]
    assert found.problems == []
    open_now = controls(HISTORY, TURNS)
    assert [each.ask_id for each in open_now.asks] == ["k"]
    assert open_now.calls["k"].call is HISTORY[1].content[1]
    assert not open_now.calls["k"].completed


def test_row_13_an_approved_call_gets_its_result_and_the_inputs_stay_as_they_were() -> None:
    before = copy.deepcopy((HISTORY, TURNS))
    allowed = settle(HISTORY, answers=[yes("k")], turns=TURNS)
    assert [(each.call.key, each.answers[0].ask_id) for each in allowed.allowed] == [("c", "k")]
    assert allowed.added == ()
    done = settle(HISTORY, [result("c", "sent")], [yes("k")], turns=TURNS, turn_id="t2")
    assert done.allowed == ()
    assert [(each.id, each.role, each.turn_id) for each in done.added] == [("c:result", "tool", "t2")]
    assert view(prepare([*done.messages, assistant("b", "Sent.")], turns=TURNS).messages) == [
        "user: Mail Ann.",
        "assistant: ~ask first c()",
        "tool: c=sent",
        "assistant: Sent.",
    ]
    assert before == (HISTORY, TURNS)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (no("k"), "The call was denied."),
        (no("k", "Not Ann."), "The call was denied. Not Ann."),
        (no("k", "  "), "The call was denied."),
    ],
)
def test_row_14_a_rejected_call_gets_one_result_that_says_so_and_never_runs(answer: object, words: str) -> None:
    before = copy.deepcopy((HISTORY, TURNS))
    done = settle(HISTORY, answers=[answer], turns=TURNS)  # type: ignore[list-item]
    assert done.allowed == ()
    (added,) = done.added
    (block,) = added.content
    assert (added.id, added.role, shown(block)) == ("c:result", "tool", "c=denied")
    assert block.outcome == "denied" and block.is_error is None  # type: ignore[union-attr]
    assert block.content == [TextBlock(text=words)]  # type: ignore[union-attr]
    assert refusal("c", answer) == block  # type: ignore[arg-type]
    assert before == (HISTORY, TURNS)


def test_row_14_a_cancelled_ask_is_told_apart_from_a_declined_one() -> None:
    cancelled = no("k").__class__(ask_id="k", status="cancelled")
    (added,) = settle(HISTORY, answers=[cancelled], turns=TURNS).added
    assert added.content[0].content == [TextBlock(text="The request was dismissed.")]  # type: ignore[union-attr]


def test_row_17_a_mixed_batch_gets_one_result_for_each_call() -> None:
    history = [assistant("a", call("c1"), call("c2"), call("c3"), turn_id="t1")]
    turns = [paused("t1", ask("k1", "c1"), ask("k2", "c2"))]
    settled = settle(history, [result("c3", "safe"), result("c1", "allowed")], [no("k2", "no"), yes("k1")], turns=turns)
    assert view(settled.added) == ["tool: c1=allowed", "tool: c2=denied", "tool: c3=safe"]
    assert view(prepare(settled.messages, turns=turns).messages)[1:] == view(settled.added)
    assert settled.unmatched == ()


def test_row_18_a_stored_and_reloaded_pause_resumes_with_its_call_in_front() -> None:
    messages: list[AgMessage] = [decode_message(encode(message)) for message in HISTORY]
    body = b'{"messages":[],"artifacts":[],"memory":[],"turns":' + encode(TURNS) + b"}"
    turns: list[AgTurnRecord] = list(decode_result(body).turns)
    settled = settle(messages, [result("c", "sent")], [yes("k")], turns=turns)
    assert view(prepare(settled.messages, turns=turns).messages)[1:] == ["assistant: ~ask first c()", "tool: c=sent"]


def test_row_19_a_decision_on_a_call_that_the_provider_runs_passes_by() -> None:
    history = [assistant("a", call("c", provider_executed=True), call("d"), turn_id="t1")]
    turns = [paused("t1", ask("k1", "c"), ask("k2", "d"))]
    settled = settle(history, [result("d", "ran")], [yes("k1"), yes("k2")], turns=turns)
    assert view(settled.added) == ["tool: d=ran"]
    assert [each.call.key for each in settled.allowed] == ["c"]
    declined = settle(history, [result("d")], [no("k1"), yes("k2")], turns=turns)
    assert view(declined.added) == ["tool: d=done"]
    sent = prepare(declined.messages, turns=turns, answers=[no("k1")])
    assert [(each.ask_id, each.status) for each in sent.answers] == [("k1", "declined")]
    assert view(sent.messages) == ["assistant: c() d()", "tool: d=done"]


def test_row_21_finished_siblings_are_results_and_new_asks_are_no_results() -> None:
    history = [assistant("a", call("c1"), call("c2"), turn_id="t1")]
    first = paused("t1", ask("k1", "c1"), ask("k2", "c2"))
    settled = settle(history, [result("c1", "ran"), waits("c2")], [yes("k1"), yes("k2")], turns=[first], turn_id="t2")
    assert [(each.role, each.id) for each in settled.added] == [("tool", "c1:result"), ("tool", "c2:pending")]
    turns = [first, paused("t2", ask("k3", "c2", kind="text"))]
    found = Transcript(settled.messages, turns=turns)
    assert [each.key for each in found.pending] == ["c2"]
    assert [each.ask_id for each in found.controls.asks] == ["k3"]
    assert found.problems == []
    after = settle(settled.messages, [result("c2", "now")], [yes("k3", reply="blue")], turns=turns)
    assert view(prepare(after.messages, turns=turns).messages) == [
        "assistant: c1() c2()",
        "tool: c1=ran",
        "tool: c2=now",
    ]


def test_row_24_on_resume_reasoning_stands_before_the_call_and_its_result() -> None:
    history = [
        user("u"),
        assistant("r", reasoning("why"), turn_id="t1"),
        assistant("a", call("c"), turn_id="t1"),
        tool(waits("c"), turn_id="t1"),
    ]
    turns = [paused("t1", ask("k", "c"))]
    for answer, outcome in ((yes("k"), "done"), (no("k"), "denied")):
        given = [result("c")] if outcome == "done" else []
        settled = settle(history, given, [answer], turns=turns)
        assert view(prepare(settled.messages, turns=turns).messages) == [
            "user: u?",
            "assistant: ~why",
            "assistant: c()",
            f"tool: c={outcome}",
        ]


def test_row_54_a_rejection_is_an_ordinary_result() -> None:
    settled = settle(HISTORY, answers=[no("k")], turns=TURNS)
    assert settled.unmatched == ()
    assert Transcript(settled.messages, turns=TURNS).problems == []
    assert prepare(settled.messages, turns=TURNS).pairs[0][1].outcome == "denied"


def test_row_54_a_host_may_reject_a_call_that_nobody_was_asked_about() -> None:
    rejected = result("c", "Not on Sundays.", outcome="denied")
    settled = settle(HISTORY, [rejected])
    assert [each.content for each in settled.added] == [[rejected]]
    assert settled.unmatched == ()


@pytest.mark.parametrize(
    ("row", "given"),
    [
        (55, AgToolResult(tool_call_id="c", content=[TextBlock(text="boom")], outcome="error", error_text="boom")),
        (56, AgToolResult(tool_call_id="c", content=[], outcome="error", error_text="bad arguments")),
        (57, AgToolResult(tool_call_id="c", content=[TextBlock(text="sent")], structured_content={"id": 7})),
    ],
)
def test_row_55_row_56_row_57_an_approved_call_gets_one_result_whatever_came_of_it(
    row: int, given: AgToolResult
) -> None:
    settled = settle(HISTORY, [given, given], [yes("k")], turns=TURNS)
    ((_, got),) = prepare(settled.messages, turns=TURNS).pairs
    assert (got.content, got.outcome, got.error_text) == (given.content, given.outcome, given.error_text)
    assert got.structured_content == given.structured_content
    assert [(each.code, each.index) for each in settled.unmatched] == [("settled_call", 1)]
