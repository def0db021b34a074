"""What a check takes from a stored conversation agrees with what a fold does (spec §5, §8 item 16)."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from agjson.checker import check
from agjson.fold import Reducer, reduce, snapshot
from agjson.types import AgReduceResult
from agjson.wire import from_dict
from tests.support.streams import CLOSE, OPEN, broken, ev, typed

Wire = dict[str, Any]

END, DONE = CLOSE
TEXT = (ev("text.start", id="x", turnId="t1"), ev("text.delta", id="x", delta="a"), ev("text.end", id="x"))
NEXT = ev("turn.start", turnId="t2", threadId="th")
AGAIN = ev("message.start", id="m1", role="assistant", turnId="t2", threadId="th")
AGAIN_IN_T1 = {**AGAIN, "turnId": "t1"}
ENDS = (ev("message.end", id="m1"), {**DONE, "turnId": "t2"})


def folded(*events: Wire) -> AgReduceResult:
    done = reduce(typed(*events))
    assert not done.needs_resync
    return done.result


def parks(initial: AgReduceResult, *events: Wire) -> bool:
    reducer = Reducer(initial)
    for event in typed(*events):
        reducer.push(event)
    return reducer.needs_resync


def found_after(initial: AgReduceResult, *events: Wire) -> list[tuple[int, str]]:
    """What is found; the same must be found after a snapshot in place of `initial`, one line later."""
    found = broken(*events, initial=initial)
    [restored] = snapshot(initial)
    after = check([restored, *typed(ev("host.context"), *events)[1:]])
    assert [(v.line - 1, v.rule) for v in after] == found
    return found


# Messages


@pytest.mark.parametrize("past", [(*OPEN, *CLOSE), (*OPEN, *TEXT, *CLOSE), (*OPEN, DONE)])
def test_a_stored_message_of_a_closed_turn_is_not_started_again(past: tuple[Wire, ...]) -> None:
    initial = folded(*past)
    assert parks(initial, NEXT, AGAIN)
    assert found_after(initial, NEXT, AGAIN, *ENDS) == [(2, "INV-MSG")]


def test_a_stored_message_whose_turn_is_opened_and_closed_later_is_not_started_again() -> None:
    messages_only = AgReduceResult(messages=folded(*OPEN).messages, artifacts=[], memory=[], turns=[])
    stream = (OPEN[0], DONE, NEXT, AGAIN)
    assert parks(messages_only, *stream)
    assert broken(*stream, *ENDS, initial=messages_only) == [(4, "INV-MSG")]


def test_a_stored_message_of_an_open_turn_may_be_started_again_while_it_is_empty() -> None:
    initial = folded(*OPEN)
    assert found_after(initial, AGAIN_IN_T1, *TEXT, *CLOSE) == []


def test_starting_a_stored_message_again_loses_its_content() -> None:
    initial = folded(*OPEN, *TEXT)
    assert found_after(initial, AGAIN_IN_T1, *CLOSE) == [(1, "INV-MSG")]


def test_starting_a_stored_message_again_loses_a_result_that_landed_in_it() -> None:
    second = {**AGAIN_IN_T1, "id": "m2"}
    call = (ev("tool.start", toolCallId="c", name="n"), ev("tool.args.assembled", toolCallId="c", input={}))
    initial = folded(*OPEN, second, *call)
    landed = ev("tool.done", toolCallId="c", content=[], messageId="m1", turnId="t1")
    assert found_after(initial, AGAIN_IN_T1, *CLOSE) == []
    assert found_after(initial, landed, AGAIN_IN_T1, *CLOSE) == [(2, "INV-MSG")]


# Turns


def record(turn_id: str, parent: str | None = None, /, **fields: Any) -> Wire:
    found: Wire = {"turnId": turn_id, "threadId": "th", **fields}
    return found if parent is None else {**found, "parentTurnId": parent}


def stored(*records: Wire) -> AgReduceResult:
    result = from_dict({"messages": [], "artifacts": [], "memory": [], "turns": list(records)}, "result")
    assert isinstance(result, AgReduceResult)
    return result


def running(*records: Wire) -> set[str]:
    """The turns that still take a message and a block, for a check and a fold alike."""
    initial = stored(*records)
    found: set[str] = set()
    for turn in records:
        name = turn["turnId"]
        start = ev("message.start", id="m", role="assistant", turnId=name, threadId="th")
        block = ev("content.block", block={"type": "text", "text": "a"}, turnId=name)
        lines = broken(start, block, ev("message.end", id="m"), initial=initial)
        assert parks(initial, start, block) == (lines != [])
        if not lines:
            found.add(name)
    return found


def test_a_nested_turn_that_subagent_done_closed_stays_closed() -> None:
    nested = ev("subagent.start", turnId="s1", parentTurnId="turn_c1")
    initial = folded(OPEN[0], nested, ev("subagent.done", turnId="s1", parentTurnId="turn_c1"), DONE)
    late = ev("message.start", id="m9", role="assistant", turnId="s1", threadId="th")
    assert found_after(initial, late) == [(1, "INV-MSG")]
    # Nothing else is open either.
    assert found_after(initial, NEXT, ev("prompt.blocked", reason="other"), ENDS[1]) == []


def test_a_nested_turn_runs_only_below_a_turn_that_runs() -> None:
    assert running(record("t"), record("s", "t")) == {"t", "s"}
    assert running(record("t", outcome={"type": "success"}), record("s", "t")) == set()
    assert running(record("s", "turn_c1")) == set()
    assert running(record("a", "b"), record("b", "a"), record("t")) == {"t"}


def test_a_turn_below_a_label_takes_only_what_names_it() -> None:
    initial = stored(record("s", "turn_c1"), record("ss", "s"), record("t"))
    assert running(record("s", "turn_c1"), record("ss", "s"), record("t")) == {"s", "ss", "t"}
    assert not parks(initial, ev("prompt.blocked", reason="other"))
    assert broken(ev("prompt.blocked", reason="other"), initial=initial) == []


def test_a_turn_below_a_label_that_a_snapshot_keeps_owes_its_close() -> None:
    nested = ev("subagent.start", turnId="s1", parentTurnId="turn_c1")
    kept = ev("messages.snapshot", messages=[], turns=[record("t1"), record("s1", "turn_c1")])
    assert broken(OPEN[0], nested, kept, DONE) == [(2, "INV-TURN")]
    assert broken(OPEN[0], nested, kept, ev("turn.abort", turnId="s1"), DONE) == []


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_order_of_records_does_not_matter(order: tuple[int, ...]) -> None:
    open_ones = [record("t"), record("s", "t"), record("ss", "s"), record("o", "label")]
    closed_ones = [record("t", outcome={"type": "aborted"}), *open_ones[1:]]
    ended_within = [open_ones[0], record("s", "t", outcome={"type": "aborted"}), *open_ones[2:]]
    assert running(*(open_ones[place] for place in order)) == {"t", "s", "ss", "o"}
    assert running(*(closed_ones[place] for place in order)) == set()
    assert running(*(ended_within[place] for place in order)) == {"t", "o"}
