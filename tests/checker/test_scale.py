"""The memory of a check grows with the number of ids, not with deltas or text."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

from agjson.checker import Checker, check
from agjson.types import (
    MessageEnd,
    MessageStart,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    SuccessOutcome,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolStart,
    TurnDone,
    TurnStart,
)


def long_stream(deltas: int, size: int) -> Iterator[Any]:
    """A turn with a text, a reasoning block and a call, each of many deltas, made as they are read."""
    yield TurnStart(seq=0, turn_id="t1", thread_id="th")
    yield MessageStart(seq=1, id="m1", role="assistant", turn_id="t1", thread_id="th")
    yield TextStart(seq=2, id="x", turn_id="t1")
    yield ReasoningStart(seq=3, id="r", turn_id="t1")
    yield ToolStart(seq=4, tool_call_id="c", name="n", turn_id="t1")
    text = "a" * size
    seq = 5
    for _ in range(deltas // 4):
        yield TextDelta(seq=seq, id="x", delta=text, turn_id="t1")
        yield ReasoningDelta(seq=seq + 1, id="r", delta=text)
        yield ReasoningOpaqueDelta(seq=seq + 2, id="r", delta=text)
        yield ToolArgsDelta(seq=seq + 3, tool_call_id="c", delta=text)
        seq += 4
    yield ReasoningOpaque(seq=seq, id="r", kind="signature", value="")
    yield ToolArgsAssembled(seq=seq + 1, tool_call_id="c", input={})
    yield TextEnd(seq=seq + 2, id="x")
    yield MessageEnd(seq=seq + 3, id="m1")
    yield TurnDone(seq=seq + 4, turn_id="t1", outcome=SuccessOutcome(), finish_reason="stop")


def peak_bytes(deltas: int, size: int) -> int:
    tracemalloc.start()
    try:
        assert list(check(long_stream(deltas, size))) == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_deltas_or_text() -> None:
    peak_bytes(100, 1)  # tables that are made once
    few = peak_bytes(2_000, 10)
    many = peak_bytes(20_000, 10)
    long = peak_bytes(2_000, 10_000)
    assert many < few + 4_000
    assert long < few + 4_000 + 2 * 10_000  # the text of the stream itself


def faulty_stream(events: int) -> Iterator[Any]:
    """The same faults over and over."""
    yield TurnStart(seq=0, turn_id="t1", thread_id="th")
    for seq in range(1, events):
        yield TextDelta(seq=seq, id="x", delta="a")


def test_one_fault_is_reported_once_however_often_it_is_repeated() -> None:
    assert [violation.rule for violation in check(faulty_stream(1_000))] == ["INV-BLOCK", "INV-TURN"]


def test_undeclared_fields_of_ever_new_names_are_not_remembered() -> None:
    checker = Checker()
    repeats = 3_000
    tracemalloc.start()
    try:
        levels: list[int] = []
        for seq in range(repeats):
            found = checker.push(f'{{"type":"error","message":"x","seq":{seq},"field{seq}":1}}')
            assert [violation.rule for violation in found] == ["UNDECLARED-FIELD"]
            if seq in (repeats // 2, repeats - 1):
                gc.collect()
                levels.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert levels[1] - levels[0] < 200_000
