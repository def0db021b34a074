"""Rows of the loop contract, "Mixed batches and approval middleware", as far as a history shows them."""

from __future__ import annotations

from agjson.transcript import Transcript, prepare, settle
from tests.transcript.writing import ask, assistant, call, paused, result, user, view, yes

HISTORY = [user("u1", turn_id="t1"), assistant("a", call("safe"), call("gated"), turn_id="t1")]
TURNS = [paused("t1", ask("k", "gated"))]


def test_row_41_a_safe_call_is_hidden_with_the_gated_call_of_its_batch() -> None:
    ran = settle(HISTORY, [result("safe")], turns=TURNS)
    assert view(prepare(ran.messages, turns=TURNS).messages) == ["user: u1?"]
    whole = settle(ran.messages, [result("gated")], [yes("k")], turns=TURNS)
    assert view(prepare(whole.messages, turns=TURNS).messages)[1:] == [
        "assistant: safe() gated()",
        "tool: safe=done",
        "tool: gated=done",
    ]


def test_row_43_an_unrelated_turn_sees_no_call_of_the_batch_and_settles_none() -> None:
    history = [*HISTORY, user("u2", turn_id="t2"), assistant("b", "Sure.", turn_id="t2")]
    prepared = prepare(history, turns=TURNS, waiting=["safe"])
    assert view(prepared.messages) == ["user: u1?", "user: u2?", "assistant: Sure."]
    assert [(each.code, each.path) for each in prepared.changes] == [("pending", "$[1]")]
    assert [each.key for each in Transcript(history, turns=TURNS, waiting=["safe"]).pending] == ["safe", "gated"]


def test_row_44_of_several_abandoned_batches_only_the_answered_one_shows() -> None:
    history = [
        assistant("a1", call("c1"), turn_id="t1"),
        user("u2", turn_id="t2"),
        assistant("a2", call("c2"), turn_id="t2"),
        user("u3", turn_id="t3"),
    ]
    turns = [paused("t1", ask("k1", "c1")), paused("t2", ask("k2", "c2"))]
    assert view(prepare(history, turns=turns).messages) == ["user: u2?", "user: u3?"]
    settled = settle(history, [result("c2")], [yes("k2")], turns=turns)
    assert view(prepare(settled.messages, turns=turns).messages) == [
        "user: u2?",
        "assistant: c2()",
        "tool: c2=done",
        "user: u3?",
    ]


def test_row_41_a_framework_that_takes_the_decision_gets_the_safe_calls_with_it() -> None:
    handed = prepare(HISTORY, turns=TURNS, answers=[yes("k")])
    assert view(handed.messages) == ["user: u1?", "assistant: safe() gated()"]
    assert [each.ask_id for each in handed.answers] == ["k"]
    assert prepare(HISTORY, turns=TURNS, answers=[yes("k")], waiting=["safe"]).answers == ()


def test_answers_of_a_batch_that_still_waits_are_held_back_for_frameworks_that_take_them() -> None:
    history = [assistant("a", call("c1"), call("c2"), turn_id="t1")]
    turns = [paused("t1", ask("k1", "c1"), ask("k2", "c2"))]
    part = prepare(history, turns=turns, answers=[yes("k1")])
    assert (part.messages, part.answers) == ([], ())
    assert [each.ask_id for each in part.asks] == ["k2"]
    whole = prepare(history, turns=turns, recorded=[yes("k1")], answers=[yes("k2")])
    assert view(whole.messages) == ["assistant: c1() c2()"]
    assert [each.ask_id for each in whole.answers] == ["k1", "k2"]
    assert (whole.asks, whole.pairs) == ((), ())
