"""HITL: asks have ids of their own, and a paused turn names exactly the asks that it waits for (spec §4, §7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.streams import CALL, CLOSE, OPEN, broken, ev, violations

ASK = ev("hitl.ask", askId="a", kind="approval", turnId="t1", message="May I?", requestState="s", token="t")


def entry(**fields: Any) -> dict[str, Any]:
    return {"askId": "a", "kind": "approval", **fields}


def paused(*asks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    outcome = {"type": "paused", "asks": list(asks)}
    return ev("turn.done", turnId="t1", outcome=outcome, finishReason="paused") | fields


def turn(*events: dict[str, Any], **options: Any) -> list[tuple[int, str]]:
    """What these events break in a turn; the first of them is line 2."""
    return broken(OPEN[0], *events, **options)


def test_a_pause_names_the_asks_of_its_turn() -> None:
    assert turn(ASK, paused(entry(message="May I?", requestState="s", token="t"))) == []
    assert turn(ASK, {**ASK, "askId": "b"}, paused(entry(askId="b"), entry())) == []


def test_an_ask_that_no_pause_names_breaks_nothing() -> None:
    assert turn(ASK, CLOSE[1]) == []


@pytest.mark.parametrize("field", ["message", "requestState", "token"])
def test_a_pause_repeats_an_ask_as_it_was(field: str) -> None:
    [violation] = violations(OPEN[0], ASK, paused(entry(**{field: "other"})))
    assert (violation.line, violation.rule) == (3, "HITL")
    assert violation.message == f"ask `a` pauses with another `{field}` than its hitl.ask"


def test_every_field_of_an_ask_is_compared() -> None:
    fields: dict[str, Any] = {
        "schema": {"type": "object"},
        "choices": [{"id": "y", "label": "Yes"}],
        "authConfig": {"scheme": "oauth2"},
        "url": "https://a.example",
        "reason": "why",
        "metadata": {"k": 1},
        "inputKey": "k",
        "resumeBinding": "id",
        "ordinal": 1,
        "expiresAt": "2026-01-01T00:00:00Z",
        "grantModes": [{"id": "once"}],
    }
    other: dict[str, Any] = {
        "schema": {"type": "array"},
        "choices": [],
        "authConfig": {"scheme": "apiKey"},
        "url": "https://b.example",
        "reason": "because",
        "metadata": {"k": 2},
        "inputKey": "l",
        "resumeBinding": "positional",
        "ordinal": 2,
        "expiresAt": "2027-01-01T00:00:00Z",
        "grantModes": [],
    }
    assert turn({**ASK, **fields}, paused(entry(**fields))) == []
    assert turn({**ASK, **fields}, paused(entry(**other))) == [(3, "HITL")] * len(fields)
    assert turn(ASK, paused(entry(kind="text"))) == [(3, "HITL")]


def test_the_order_of_keys_is_no_difference() -> None:
    asked = {
        **ASK,
        "metadata": {"a": 1, "b": {"c": 1, "d": 2}},
        "choices": [{"id": "y", "label": "Yes", "value": {"a": 1, "b": 2}}],
    }
    again = entry(
        metadata={"b": {"d": 2, "c": 1}, "a": 1}, choices=[{"value": {"b": 2, "a": 1}, "label": "Yes", "id": "y"}]
    )
    assert turn(asked, paused(again)) == []


def test_half_a_character_is_compared_too() -> None:
    assert turn({**ASK, "message": "\ud83d"}, paused(entry(message="\ud83d"))) == []
    assert turn({**ASK, "message": "\ud83d"}, paused(entry(message="\ud83e"))) == [(3, "HITL")]


@pytest.mark.parametrize(
    "asks",
    [[], [entry(askId="b")], [entry(), entry()]],
    ids=["omitted", "another", "twice"],
)
def test_a_pause_names_each_ask_once(asks: list[dict[str, Any]]) -> None:
    rules = {rule for _, rule in turn(ASK, paused(*asks))}
    assert rules == {"HITL"}


def test_a_pause_waits_for_something() -> None:
    assert turn(paused()) == [(2, "HITL")]


def test_an_ask_for_the_next_turn_need_not_be_named() -> None:
    later = {**ASK, "askId": "b", "continuation": "turn"}
    assert turn(ASK, later, paused(entry())) == []


def test_an_ask_that_nothing_opened_is_known_from_before_or_a_fault() -> None:
    assert turn(paused(entry())) == [(2, "HITL")]
    assert turn(paused(entry()), known_ids={"a"}) == []


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ({"type": "success"}, "paused"),
        ({"type": "error", "message": "x"}, "paused"),
        ({"type": "paused", "asks": [{"askId": "a", "kind": "approval"}]}, "tool_call"),
        ({"type": "paused", "asks": [{"askId": "a", "kind": "approval"}]}, "pause_turn"),
    ],
)
def test_outcome_and_finish_reason_tell_of_a_pause_together(outcome: dict[str, Any], reason: str) -> None:
    done = ev("turn.done", turnId="t1", outcome=outcome, finishReason=reason)
    assert turn(ASK, done) == [(3, "HITL")]


def test_an_ask_id_is_used_once_in_a_turn() -> None:
    assert turn(ASK, ASK, paused(entry())) == [(3, "HITL")]


def test_an_unanswered_ask_may_be_repeated_when_the_next_turn_pauses_again() -> None:
    second = (ev("turn.start", turnId="t2", threadId="th"), {**ASK, "turnId": "t2"})
    assert turn(ASK, paused(entry()), *second, paused(entry(), turnId="t2")) == []
    assert turn(ASK, paused(entry()), second[0], paused(entry(), turnId="t2")) == []


def test_an_ask_id_is_not_used_for_another_question() -> None:
    second = (ev("turn.start", turnId="t2", threadId="th"), {**ASK, "turnId": "t2", "kind": "text"})
    assert turn(ASK, paused(entry()), *second, paused(entry(kind="text"), turnId="t2")) == [(5, "HITL")]


def test_an_ask_comes_before_its_turn_is_closed() -> None:
    assert turn(CLOSE[1], ASK) == [(3, "HITL")]


def test_an_ask_names_a_call_that_was_announced() -> None:
    about = {**ASK, "toolCallId": "c1"}
    close = (CLOSE[0], paused(entry(toolCallId="c1")))
    assert broken(*OPEN, *CALL, about, *close) == []
    assert broken(*OPEN, about, *close) == [(3, "ANNOUNCE")]
    assert broken(*OPEN, about, *close, known_ids={"c1"}) == []


def test_asks_of_a_snapshot_are_known() -> None:
    record = {"turnId": "t0", "threadId": "th", "outcome": {"type": "paused", "asks": []}, "asks": [entry(token="t")]}
    stored = ev("messages.snapshot", messages=[], turns=[record])
    assert broken(stored, OPEN[0], paused(entry(token="t"))) == []
    assert broken(stored, OPEN[0], paused(entry(token="u"))) == [(3, "HITL")]
