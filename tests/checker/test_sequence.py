"""INV-SEQ and INV-FLUSH: ordinals without gaps, and the order in which a truncated stream ends (spec §5.0)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.checker import check
from agjson.types import ErrorEvent
from tests.support.streams import CLOSE, OPEN, broken, ev, violations

NOTE = ev("error", message="x")
DONE = ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="stop")


def ordinals(*seqs: int) -> list[tuple[int, str]]:
    return broken(*(ev("error", message="x", seq=seq) for seq in seqs))


# Ordinals


@pytest.mark.parametrize("seqs", [(0, 1, 2), (0, 1, 0, 1, 2), (0, 0, 0), ()])
def test_each_invoke_counts_from_0(seqs: tuple[int, ...]) -> None:
    assert ordinals(*seqs) == []


@pytest.mark.parametrize(
    ("seqs", "line"),
    [
        ((1, 2), 1),
        ((0, 2, 3), 2),
        ((0, 1, 5, 6), 3),
        ((0, 1, 1, 2), 3),
        ((0, 1, 2, 1, 2), 4),
        ((0, 1, 0, 2), 4),
    ],
)
def test_an_ordinal_out_of_order_is_reported_once(seqs: tuple[int, ...], line: int) -> None:
    assert ordinals(*seqs) == [(line, "INV-SEQ")]


def test_a_gap_names_what_is_missing() -> None:
    [violation] = violations(ev("error", message="x"), ev("error", message="x", seq=5))
    assert (violation.seq, violation.message) == (5, "seq 5 comes after 0: 1 to 4 missing")


def test_a_second_0_repeats_the_first_while_its_turn_is_open() -> None:
    assert broken(OPEN[0], {**NOTE, "seq": 0}, DONE) == [(2, "INV-SEQ")]
    assert broken({**NOTE, "seq": 0}, {**OPEN[0], "seq": 0}, DONE) == []


def test_a_snapshot_does_not_hide_a_gap() -> None:
    assert broken(NOTE, ev("messages.snapshot", messages=[], seq=4)) == [(2, "INV-SEQ")]


@pytest.mark.parametrize("seq", [-1, 0.5, float("inf"), float("nan")])
def test_an_ordinal_is_a_whole_number(seq: Any) -> None:
    events = [ErrorEvent(seq=0, message="x"), ErrorEvent(seq=seq, message="x"), ErrorEvent(seq=2, message="x")]
    assert [(violation.line, violation.rule) for violation in check(events)] == [(2, "INV-SEQ")]


def test_a_new_invoke_ends_the_messages_and_turns_of_the_one_before() -> None:
    again = ev("turn.start", seq=0, turnId="t2", threadId="th")
    assert broken(*OPEN, again, {**DONE, "turnId": "t2"}) == [(2, "INV-MSG"), (1, "INV-TURN")]


# Flushes

TEXT = ev("text.start", id="x", turnId="t1")
NESTED = (
    ev("subagent.start", turnId="s1", parentTurnId="t1"),
    ev("message.start", id="sm", role="assistant", turnId="s1", threadId="th"),
)
NESTED_TEXT = ev("text.start", id="y", turnId="s1")
BEGUN = (*OPEN, TEXT, *NESTED, NESTED_TEXT)  # lines 1 to 6
END, NESTED_END = ev("message.end", id="m1"), ev("message.end", id="sm")
ABORT = ev("turn.abort", turnId="t1", reason="stream-truncated")
NESTED_ABORT = ev("turn.abort", turnId="s1", reason="stream-truncated")
NESTED_DONE = ev("subagent.done", turnId="s1", parentTurnId="t1")


def test_a_flush_ends_messages_in_order_and_turns_innermost_first() -> None:
    assert broken(*BEGUN, END, NESTED_END, NESTED_ABORT, ABORT) == []


def test_a_flush_aborts_the_innermost_turn_first() -> None:
    assert broken(*BEGUN, END, NESTED_END, ABORT, NESTED_ABORT) == [(9, "INV-FLUSH")]


def test_a_flush_ends_messages_in_the_order_of_their_starts() -> None:
    assert broken(*BEGUN, NESTED_END, END, NESTED_ABORT, ABORT) == [(8, "INV-FLUSH")]


def test_the_last_message_that_the_framework_ended_is_not_part_of_the_flush() -> None:
    ended = (ev("text.end", id="y"), NESTED_END)
    assert broken(*BEGUN, *ended, END, NESTED_ABORT, ABORT) == []


@pytest.mark.parametrize("tail", [(ABORT, END), (NESTED_ABORT, END, ABORT)])
def test_a_flush_ends_messages_before_it_aborts_turns(tail: tuple[dict[str, Any], ...]) -> None:
    start = BEGUN if len(tail) == 3 else (*OPEN, TEXT)
    ended = (NESTED_END,) if len(tail) == 3 else ()
    line = len(start) + len(ended) + 2
    assert broken(*start, *ended, *tail) == [(line, "INV-FLUSH")]


@pytest.mark.parametrize("closing", [NESTED_DONE, ev("text.end", id="y")], ids=lambda event: event["type"])
def test_a_flush_closes_nothing_else(closing: dict[str, Any]) -> None:
    assert broken(*BEGUN, END, NESTED_END, NESTED_ABORT, closing, ABORT) == [(10, "INV-FLUSH")]


def test_a_flush_may_be_followed_by_the_next_invoke_under_the_same_count() -> None:
    following = (ev("turn.start", turnId="t2", threadId="th"), {**DONE, "turnId": "t2"})
    assert broken(*OPEN, END, ABORT, *following) == []
    assert broken(*OPEN, TEXT, ABORT, END, *following) == [(5, "INV-FLUSH")]


def test_a_nested_turn_that_is_cut_off_in_a_stream_that_goes_on_is_no_flush() -> None:
    goes_on = (NESTED_ABORT, NESTED_DONE, ev("text.delta", id="x", delta="a"), ev("text.end", id="x"), *CLOSE)
    assert broken(*BEGUN, NESTED_END, *goes_on) == []


def test_an_abort_with_another_reason_is_no_flush() -> None:
    aborts = ({**ABORT, "reason": "user"}, {**NESTED_ABORT, "reason": "user"})
    assert broken(*BEGUN, NESTED_END, END, *aborts) == []


@pytest.mark.parametrize("parent", ["t1", "label"])
def test_a_snapshot_in_between_does_not_change_which_turn_is_the_innermost(parent: str) -> None:
    records = [
        {"turnId": "n1", "threadId": "th", "parentTurnId": parent},
        {"turnId": "t1", "threadId": "th"},
    ]
    for turns in (records, records[::-1]):
        events = (
            ev("turn.start", turnId="t1", threadId="th"),
            ev("subagent.start", turnId="n1", parentTurnId=parent),
            ev("messages.snapshot", messages=[], turns=turns),
        )
        aborts = [ev("turn.abort", turnId=turn_id, reason="stream-truncated") for turn_id in ("n1", "t1")]
        assert broken(*events, *aborts) == []
        assert broken(*events, *aborts[::-1]) == ([(4, "INV-FLUSH")] if parent == "t1" else [])
