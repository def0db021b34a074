"""INV-TURN: each turn is opened before anything else of it and closed by exactly one terminal (spec §5.0)."""

from __future__ import annotations

import pytest

from tests.support.streams import CLOSE, OPEN, broken, ev, violations

DONE = ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="stop")
ERROR = ev("turn.error", turnId="t1", message="x")
ABORT = ev("turn.abort", turnId="t1", reason="stop")
NESTED = ev("subagent.start", turnId="s1", parentTurnId="t1")
NESTED_DONE = ev("subagent.done", turnId="s1", parentTurnId="t1")


@pytest.mark.parametrize("terminal", [DONE, ERROR, ABORT], ids=lambda event: event["type"])
def test_each_terminal_closes_a_turn(terminal: dict[str, object]) -> None:
    assert broken(OPEN[0], terminal) == []


@pytest.mark.parametrize("second", [DONE, ERROR, ABORT], ids=lambda event: event["type"])
@pytest.mark.parametrize("first", [DONE, ERROR, ABORT], ids=lambda event: event["type"])
def test_a_second_terminal_is_one_too_many(first: dict[str, object], second: dict[str, object]) -> None:
    assert broken(OPEN[0], first, second) == [(3, "INV-TURN")]


def test_a_success_after_an_abort_names_what_closed_the_turn() -> None:
    [violation] = violations(*OPEN, CLOSE[0], ABORT, DONE)
    assert (violation.line, violation.seq, violation.rule) == (5, 4, "INV-TURN")
    assert violation.message == "turn.done closes turn `t1`, which turn.abort has closed already"


def test_a_turn_that_stays_open_is_reported_at_its_opener() -> None:
    other = ev("turn.start", turnId="t2", threadId="th")
    [violation] = violations(OPEN[0], other, DONE)
    assert (violation.line, violation.seq, violation.rule) == (2, 1, "INV-TURN")
    assert violation.message == "turn `t2` is never closed"


def test_a_turn_that_a_new_invoke_finds_open_is_reported_once() -> None:
    again = ev("turn.start", seq=0, turnId="t2", threadId="th")
    assert broken(OPEN[0], ev("error", message="x"), again, {**DONE, "turnId": "t2"}) == [(1, "INV-TURN")]


@pytest.mark.parametrize(
    "first",
    [
        ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th"),
        ev("source", sourceId="s", source={"url": "https://a.example"}, turnId="t1"),
        ev("handoff", toAgentId="b", turnId="t1"),
        ev("guardrail.result", target="input", passed=True, turnId="t1"),
        ev("prompt.blocked", reason="safety", turnId="t1"),
        ev("display.required", provider="p", html="<p>", turnId="t1"),
        ev("agent.capabilities", capabilities={}, turnId="t1"),
        ev("artifact.start", artifactId="a", turnId="t1", threadId="th"),
        ev("tool.done", toolCallId="c", content=[], messageId="r", turnId="t1"),
        ev("hitl.ask", askId="a", kind="text", turnId="t1"),
        DONE,
        ERROR,
        ABORT,
    ],
    ids=lambda event: event["type"],
)
def test_nothing_of_a_turn_comes_before_its_opener(first: dict[str, object]) -> None:
    assert (1, "INV-TURN") in broken(first)


def test_a_missing_opener_is_reported_once() -> None:
    assert broken(*OPEN[1:], ev("text.start", id="x", turnId="t1"), ev("text.end", id="x"), *CLOSE) == [(1, "INV-TURN")]


def test_an_opener_that_comes_late_does_not_add_to_the_report() -> None:
    assert broken(OPEN[1], OPEN[0], *CLOSE) == [(1, "INV-TURN")]


def test_a_repeated_opener_is_idempotent() -> None:
    assert broken(OPEN[0], {**OPEN[0], "trigger": {"kind": "cron"}}, *OPEN[1:], *CLOSE) == []


def test_a_repeated_opener_may_not_name_another_thread() -> None:
    assert broken(OPEN[0], {**OPEN[0], "threadId": "other"}, DONE) == [(2, "INV-TURN")]


def test_a_closed_turn_is_not_opened_again() -> None:
    assert broken(OPEN[0], DONE, OPEN[0], DONE) == [(3, "INV-TURN")]


def test_two_turns_may_run_side_by_side() -> None:
    second = ev("turn.start", turnId="t2", threadId="th")
    assert broken(OPEN[0], second, DONE, {**DONE, "turnId": "t2"}) == []


def test_a_terminal_without_turn_id_closes_the_only_open_turn() -> None:
    assert broken(OPEN[0], ev("turn.error", message="x")) == []


# Nested turns


def test_a_nested_turn_ends_with_its_terminal_and_then_subagent_done() -> None:
    assert broken(OPEN[0], NESTED, {**DONE, "turnId": "s1"}, NESTED_DONE, DONE) == []


def test_subagent_done_alone_closes_a_nested_turn() -> None:
    assert broken(OPEN[0], NESTED, NESTED_DONE, DONE) == []


def test_a_terminal_alone_closes_a_nested_turn() -> None:
    assert broken(OPEN[0], NESTED, {**ABORT, "turnId": "s1"}, DONE) == []


def test_a_terminal_after_subagent_done_is_one_too_many() -> None:
    assert broken(OPEN[0], NESTED, NESTED_DONE, {**DONE, "turnId": "s1"}, DONE) == [(4, "INV-TURN")]


def test_subagent_done_comes_once() -> None:
    assert broken(OPEN[0], NESTED, NESTED_DONE, NESTED_DONE, DONE) == [(4, "INV-TURN")]


def test_subagent_done_needs_a_turn() -> None:
    assert broken(OPEN[0], NESTED_DONE, DONE) == [(2, "INV-TURN")]


def test_subagent_done_does_not_close_a_turn_that_is_not_nested() -> None:
    assert broken(OPEN[0], ev("turn.start", turnId="s1", threadId="th"), NESTED_DONE, DONE) == [(3, "INV-TURN")]


@pytest.mark.parametrize("label", ["turn_c1", "t0"])
def test_a_parent_may_be_a_label_that_no_turn_bears(label: str) -> None:
    nested = ev("subagent.start", turnId="s1", parentTurnId=label)
    assert broken(OPEN[0], nested, {**NESTED_DONE, "parentTurnId": label}, DONE) == []


def test_the_parent_stays_the_same() -> None:
    assert broken(OPEN[0], NESTED, {**NESTED_DONE, "parentTurnId": "t9"}, DONE) == [(3, "INV-TURN")]
    assert broken(OPEN[0], NESTED, {**NESTED, "parentTurnId": "t9"}, {**DONE, "turnId": "s1"}, DONE) == [
        (3, "INV-TURN")
    ]


def test_content_may_come_before_the_notice_that_a_turn_is_nested() -> None:
    early = ev("turn.start", turnId="s1", threadId="th")
    assert broken(OPEN[0], early, NESTED, NESTED_DONE, DONE) == []


def test_a_nested_turn_that_stays_open_is_reported() -> None:
    assert broken(OPEN[0], NESTED, DONE) == [(2, "INV-TURN")]
