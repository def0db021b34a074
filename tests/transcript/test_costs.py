"""What is done to a history grows with its length and no faster: counted by the reads of its messages and blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agjson.transcript import (
    DropToolResults,
    SlidingWindow,
    TokenBudget,
    compact,
    controls,
    groups,
    occurrences,
    prepare,
    settle,
    validate,
)
from agjson.types import AgBlock, AgMessage, AgTurnRecord
from tests.transcript.writing import ask, assistant, call, paused, reasoning, result, user, waits, yes


class Counted(list[Any]):
    """A list that counts how often an item of it is read."""

    reads = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            Counted.reads += 1
            yield item

    def __getitem__(self, at: Any) -> Any:
        Counted.reads += 1
        return super().__getitem__(at)


def counted(role: Any, id: str, *blocks: AgBlock, **fields: Any) -> AgMessage:
    return AgMessage(id=id, role=role, content=Counted(blocks), **fields)


def ordinary(count: int) -> tuple[list[AgMessage], list[AgTurnRecord]]:
    """Rounds of two calls, one with an ask and a placeholder, with the same ids in each."""
    messages = Counted()
    turns = []
    for at in range(count // 6):
        turn = f"t{at}"
        messages += [
            counted("user", f"u{at}", *user("u").content, turn_id=turn),
            counted("assistant", f"a{at}", reasoning(), call("c"), call(f"d{at}"), turn_id=turn),
            counted("tool", f"p{at}", waits("c"), turn_id=turn),
            counted("tool", f"rd{at}", result(f"d{at}"), turn_id=turn),
            counted("tool", f"rc{at}", result("c"), turn_id=turn),
            counted("assistant", f"w{at}", *assistant("w", "words").content, turn_id=turn),
        ]
        turns.append(paused(turn, ask(f"k{at}", "c")))
    return messages, turns


def one_id(count: int) -> tuple[list[AgMessage], list[AgTurnRecord]]:
    """One id, called again and again before any result."""
    messages = Counted(counted("assistant", f"a{at}", call("c"), turn_id=f"t{at}") for at in range(count // 2))
    messages += [counted("tool", f"r{at}", result("c")) for at in range(count // 2)]
    return messages, [paused(f"t{at}", ask(f"k{at}", "c")) for at in range(count // 2)]


def one_round(count: int) -> tuple[list[AgMessage], list[AgTurnRecord]]:
    """One round of many calls, answered in the reverse order far behind it."""
    messages = Counted([counted("assistant", "a", *(call(f"c{at}") for at in range(count)))])
    messages.append(counted("user", "u", *user("u").content))
    messages += [counted("tool", f"r{at}", result(f"c{at}")) for at in reversed(range(count))]
    return messages, []


WORKS: dict[str, Callable[[list[AgMessage], list[AgTurnRecord]], object]] = {
    "occurrences": lambda messages, turns: occurrences(messages),
    "groups": lambda messages, turns: groups(messages),
    "validate": lambda messages, turns: validate(messages, turns=turns),
    "controls": lambda messages, turns: controls(messages, turns, [yes("k1")]),
    "settle": lambda messages, turns: settle(messages, [result("c"), result("c1")], [yes("k1")], turns=turns),
    "prepare": lambda messages, turns: prepare(messages, turns=turns, replayable=lambda block: True),
    "delta": lambda messages, turns: prepare(messages, mode="delta", owned_through=messages[len(messages) // 2].id),
    "window": lambda messages, turns: compact(messages, SlidingWindow(20)),
    "results": lambda messages, turns: compact(messages, DropToolResults(20)),
    "budget": lambda messages, turns: compact(messages, TokenBudget(100, len)),
}


def reads(work: str, make: Callable[[int], tuple[list[AgMessage], list[AgTurnRecord]]], count: int) -> int:
    messages, turns = make(count)
    Counted.reads = 0
    WORKS[work](messages, turns)
    return Counted.reads


@pytest.mark.parametrize("make", [ordinary, one_id, one_round])
@pytest.mark.parametrize("work", WORKS)
def test_twice_the_history_is_twice_the_work(work: str, make: Any) -> None:
    small, large = reads(work, make, 600), reads(work, make, 1200)
    assert small > 0
    assert large <= 2.1 * small
    # Each block and message is looked at a few times, whatever else there is.
    assert large <= 20 * 2 * 1200


def test_the_count_sees_work_that_grows_faster() -> None:
    messages, _ = ordinary(60)
    Counted.reads = 0
    for _ in messages:
        occurrences(messages)
    assert Counted.reads > 60 * 60


def test_an_unanswered_round_of_many_calls_is_left_out_at_the_same_cost() -> None:
    def left_out(count: int) -> int:
        message = counted("assistant", "a", reasoning(), *(call(f"c{at}") for at in range(count)))
        Counted.reads = 0
        assert prepare([user("u"), message], unanswered="leave_out").messages == [user("u")]
        return Counted.reads

    assert left_out(1200) <= 2.05 * left_out(600)


def test_results_at_once_for_many_open_calls_of_one_id() -> None:
    messages, _ = one_id(2000)
    settled = settle(list(messages[:1000]), [result("c", str(at)) for at in range(1000)])
    assert len(settled.added) == 1000
    assert [each.result_place.message for each in occurrences(settled.messages) if each.result_place] == list(
        range(1000, 2000)
    )
