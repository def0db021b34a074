"""The time of a check grows with the stream, not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeAlias

import pytest

from agjson.checker import Checker
from agjson.types import (
    AgPausedAsk,
    ErrorEvent,
    HitlAsk,
    MemoryWrite,
    MessageRemove,
    MessagesSnapshot,
    MessageStart,
    PausedOutcome,
    PromptBlocked,
    ReasoningStart,
    ToolDone,
    TurnAbort,
    TurnDone,
    TurnStart,
)

Stream: TypeAlias = Iterator[Any]
_STREAMS: dict[str, Callable[[int], Stream]] = {}


def stream(make: Callable[[int], Stream]) -> Callable[[int], Stream]:
    _STREAMS[make.__name__] = make
    return make


def turn(seq: int, turn_id: str = "t0") -> TurnStart:
    return TurnStart(seq=seq, turn_id=turn_id, thread_id="th")


def message(seq: int, name: str, candidate: int | None = None) -> MessageStart:
    return MessageStart(seq=seq, id=name, role="assistant", turn_id="t0", thread_id="th", candidate_index=candidate)


@stream
def removals_of_all_of_an_unknown_turn(size: int) -> Stream:
    seq = count()
    yield turn(next(seq))
    yield from (message(next(seq), f"m{number}") for number in range(size))
    yield from (MessageRemove(seq=next(seq), id="*", turn_id=f"g{number}") for number in range(size))


@stream
def snapshots_of_messages_alone(size: int) -> Stream:
    seq = count()
    yield from (turn(next(seq), f"t{number}") for number in range(size))
    yield from (MessagesSnapshot(seq=next(seq), messages=[]) for _ in range(size))


@stream
def snapshots_beside_much_memory(size: int) -> Stream:
    seq = count()
    yield from (MemoryWrite(seq=next(seq), scope="user", key=f"k{number}", value=1) for number in range(size))
    yield from (MessagesSnapshot(seq=next(seq), messages=[], memory=[]) for _ in range(size))


@stream
def removals_beside_partial_results(size: int) -> Stream:
    seq = count()
    yield turn(next(seq))
    yield message(next(seq), "m")
    for number in range(size):
        yield ToolDone(seq=next(seq), tool_call_id=f"c{number}", content=[], more=True, turn_id="t0")
    for _ in range(size):
        yield message(next(seq), "x")
        yield MessageRemove(seq=next(seq), id="x")


@stream
def parts_of_reasoning(size: int) -> Stream:
    seq = count()
    yield turn(next(seq))
    yield message(next(seq), "m")
    for number in range(size):
        yield ReasoningStart(seq=next(seq), id="r", part_index=number, turn_id="t0")


@stream
def candidates_removed_newest_first(size: int) -> Stream:
    seq = count()
    yield turn(next(seq))
    yield from (message(next(seq), f"m{number}", number) for number in range(size))
    yield from (MessageRemove(seq=next(seq), id=f"m{number}") for number in reversed(range(size)))


@stream
def messages_removed_newest_first(size: int) -> Stream:
    seq = count()
    yield turn(next(seq))
    yield from (message(next(seq), f"m{number}") for number in range(size))
    yield from (MessageRemove(seq=next(seq), id=f"m{number}") for number in reversed(range(size)))


@stream
def invokes_that_leave_turns_open(size: int) -> Stream:
    for number in range(size):
        yield turn(0, f"t{number}")
        yield ErrorEvent(seq=1, message="x")


@stream
def a_flush_of_many_turns(size: int) -> Stream:
    seq = count()
    yield from (turn(next(seq), f"t{number}") for number in range(size))
    for number in reversed(range(size)):
        yield TurnAbort(seq=next(seq), turn_id=f"t{number}", reason="stream-truncated")


@stream
def records_of_the_last_open_turn(size: int) -> Stream:
    seq = count()
    yield from (turn(next(seq), f"t{number}") for number in range(size))
    yield from (TurnAbort(seq=next(seq), turn_id=f"t{number}") for number in range(size - 1))
    yield from (PromptBlocked(seq=next(seq), reason="safety") for _ in range(size))


@stream
def pauses_of_a_turn_that_opens_again(size: int) -> Stream:
    seq = count()
    yield turn(next(seq))
    for number in range(size):
        yield HitlAsk(seq=next(seq), ask_id=f"a{number}", kind="text", turn_id="t0", continuation="turn")
    outcome = PausedOutcome(asks=[AgPausedAsk(ask_id="a0", kind="text")])
    for _ in range(size):
        yield TurnDone(seq=next(seq), turn_id="t0", finish_reason="paused", outcome=outcome)
        yield turn(next(seq))


def seconds(events: list[Any]) -> float:
    checker = Checker()
    start = time.process_time()
    for event in events:
        checker.push(event)
    checker.finish()
    return time.process_time() - start


@pytest.mark.parametrize("name", _STREAMS)
def test_a_stream_of_four_times_the_length_takes_about_four_times_as_long(name: str) -> None:
    short, long = (list(_STREAMS[name](size)) for size in (2_000, 8_000))
    # Sixteen times as long where each event looks at all that came before.
    assert min(seconds(long) for _ in range(3)) < 9 * min(seconds(short) for _ in range(5))
