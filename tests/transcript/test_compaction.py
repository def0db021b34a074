"""Histories made shorter."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agjson.transcript import (
    Composed,
    DropToolCalls,
    DropToolResults,
    Group,
    SlidingWindow,
    TokenBudget,
    compact,
    prepare,
    validate,
)
from agjson.types import AgMessage, CompactionBlock
from tests.transcript.writing import assistant, call, ids, message, reasoning, result, tool, user, view, waits


def round_of(n: int) -> list[AgMessage]:
    return [
        user(f"u{n}"),
        assistant(f"a{n}", reasoning(), call(f"c{n}")),
        tool(result(f"c{n}", f"r{n}")),
        assistant(f"w{n}", f"words {n}"),
    ]


def rounds(count: int) -> list[AgMessage]:
    return [each for n in range(1, count + 1) for each in round_of(n)]


def count(messages: Sequence[AgMessage]) -> int:
    """Ten tokens a message."""
    return 10 * len(messages)


def test_a_window_begins_with_the_user() -> None:
    history = [message("system", "s", "Be kind."), *rounds(3)]
    assert ids(compact(history, SlidingWindow(3))) == ["s", *ids(round_of(3))]
    assert ids(compact(history, SlidingWindow(4))) == ["s", *ids(round_of(3))]
    assert ids(compact(history, SlidingWindow(6))) == ["s", *ids(round_of(2)), *ids(round_of(3))]
    assert ids(compact(history, SlidingWindow(99))) == ids(history)


def test_a_window_without_words_of_the_user_keeps_the_last_ones() -> None:
    history = [user("u")]
    for n in range(5):
        history += [assistant(f"a{n}", call(f"c{n}")), tool(result(f"c{n}"))]
    assert ids(compact(history, SlidingWindow(2))) == ["u", "a3", "c3:result", "a4", "c4:result"]


def test_what_always_stays() -> None:
    history = [
        message("system", "s1", "Be kind."),
        assistant("old", CompactionBlock(text="older")),
        assistant("summary", CompactionBlock(text="so far"), turn_id="t"),
        user("u1"),
        assistant("a1", call("open")),
        tool(waits("open")),
        message("system", "s2", "Be brief."),
        *rounds(2),
    ]
    kept = ids(compact(history, SlidingWindow(0)))
    assert kept == ["s1", "summary", "a1", "open:pending", "s2", "u2", "w2"]


def test_a_window_has_no_negative_size() -> None:
    with pytest.raises(ValueError, match="negative"):
        SlidingWindow(-1)


def test_old_results_lose_their_content_and_stay_results() -> None:
    history = [
        user("u"),
        assistant("a1", call("c1"), call("s1", provider_executed=True), result("s1", "sealed")),
        tool(result("c1", "long", structured_content={"rows": 9}, outcome="ok")),
        *rounds(1)[1:],
        assistant("a9", call("c9"), turn_id="t"),
        tool(result("c9", "newest")),
    ]
    short = compact(history, DropToolResults(keep=1, words="(gone)"))
    assert view(short) == [
        "user: u?",
        "assistant: c1() s1() s1=sealed",
        "tool: c1=(gone)",
        "assistant: ~thinking c1()",
        "tool: c1=(gone)",
        "assistant: words 1",
        "assistant: c9()",
        "tool: c9=newest",
    ]
    emptied = short[2].content[0]
    assert (emptied.outcome, ids(short)) == ("ok", ids(history))  # type: ignore[union-attr]
    assert b"rows" not in repr(emptied).encode()
    assert short[1] is history[1] and short[-1] is history[-1]
    assert validate(short) == validate(history) == []


def test_old_calls_go_with_their_reasoning_and_results() -> None:
    history = rounds(3)
    assert ids(compact(history, DropToolCalls(keep=1))) == ["u1", "w1", "u2", "w2", *ids(round_of(3))]
    waiting = [user("u"), assistant("a", call("c")), *rounds(1)]
    assert ids(compact(waiting, DropToolCalls(keep=0))) == ["u", "a", "u1", "w1"]


def test_a_budget_leaves_out_the_oldest_groups() -> None:
    history = rounds(3)
    assert compact(history, TokenBudget(120, count)) == history
    assert ids(compact(history, TokenBudget(119, count))) == ids(history[4:])
    assert ids(compact(history, TokenBudget(40, count))) == ids(history[8:])
    assert ids(compact(history, TokenBudget(39, count))) == ["u3", "w3"]
    assert ids(compact(history, TokenBudget(0, count))) == ["u3", "w3"]


def test_a_budget_tries_other_ways_first_and_only_as_long_as_it_must() -> None:
    tried: list[str] = []

    def way(name: str, keep: int) -> object:
        def strategy(groups: Sequence[Group]) -> Sequence[Group]:
            tried.append(name)
            return DropToolCalls(keep)(groups)

        return strategy

    history = rounds(3)
    first = [way("one", 2), way("two", 0), way("three", 0)]
    short = compact(history, TokenBudget(70, count, first))  # type: ignore[arg-type]
    assert tried == ["one", "two"]
    assert ids(short) == ["u1", "w1", "u2", "w2", "u3", "w3"]
    tried.clear()
    assert compact(history, TokenBudget(500, count, first)) == history  # type: ignore[arg-type]
    assert tried == []


def test_a_budget_counts_each_group_once() -> None:
    asked: list[list[str]] = []

    def counted(messages: Sequence[AgMessage]) -> int:
        asked.append(ids(messages))
        return count(messages)

    compact(rounds(2), TokenBudget(40, counted, [DropToolCalls(keep=2)]))
    assert asked == [["u1"], ["a1", "c1:result"], ["w1"], ["u2"], ["a2", "c2:result"], ["w2"]]


def test_strategies_one_after_the_other() -> None:
    history = rounds(4)
    both = Composed([SlidingWindow(7), DropToolResults(keep=1, words="(gone)")])
    assert view(compact(history, both)) == [
        "user: u3?",
        "assistant: ~thinking c3()",
        "tool: c3=(gone)",
        "assistant: words 3",
        "user: u4?",
        "assistant: ~thinking c4()",
        "tool: c4=r4",
        "assistant: words 4",
    ]
    assert compact(history, Composed([])) == history


def test_a_shorter_history_can_be_prepared() -> None:
    history = [*rounds(2), assistant("a", call("c"), turn_id="t"), user("u3"), tool(result("c"))]
    short = compact(history, SlidingWindow(2))
    assert ids(short) == ["u3"]
    assert ids(prepare(compact(history, SlidingWindow(3))).messages) == ["u3"]
    assert ids(prepare(compact(history, SlidingWindow(6))).messages) == [*ids(round_of(2)), "a", "c:result", "u3"]


def test_no_history() -> None:
    for strategy in (SlidingWindow(3), DropToolResults(), DropToolCalls(), TokenBudget(0, count), Composed([])):
        assert compact([], strategy) == []
