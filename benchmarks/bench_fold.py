"""The fold, against msgspec alone decoding the same events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from agjson import AgEvent, Checker, Reducer, decode_event, encode
from benchmarks.measure import Effort, Row, drain, each, fastest
from benchmarks.streams import agent, long_message

FLOOR = "msgspec decoding the union"


def rows(effort: Effort) -> Iterator[Row]:
    events = agent(effort.events)
    lines = [encode(event) for event in events]
    bare = msgspec.json.Decoder(AgEvent).decode

    def fold() -> None:
        drain(map(Reducer().push, events))

    def fold_lines() -> None:
        push = Reducer().push
        for line in lines:
            push(decode_event(line))

    def check() -> None:
        feed = Checker().push
        for event in events:
            drain(feed(event))

    times = fastest(
        {"bare": lambda: drain(map(bare, lines)), "fold": fold, "lines": fold_lines, "check": check}, effort.rounds
    )
    count = len(events)
    floor = f"{FLOOR} ({each(times['bare'], count)})"

    def row(group: str, key: str, name: str, aim: float | None) -> Row:
        return Row(group, name, times[key] / times["bare"], aim, each(times[key], count), floor)

    yield row("fold", "fold", "Reducer.push", 1.4)
    yield row("fold", "lines", "line to folded state (decode_event, push)", 3.0)
    yield from _results(effort)
    yield from _linear(effort)
    yield row("checker", "check", "Checker.push", None)


def _results(effort: Effort) -> Iterator[Row]:
    """`result()` after every event, in a short conversation and behind a long one."""
    events = agent(min(effort.events, 2_000))[:-1]
    before = agent(effort.events)[:-1]
    stored = _folded(before).result()
    # Other ids than the long conversation has already.
    after: list[Any] = [
        decode_event(encode(event).replace(b"turn-", b"late-").replace(b"_01", b"_02")) for event in events
    ]

    def pushed(stream: Sequence[AgEvent], initial: bool, ask: bool) -> Callable[[], None]:
        def run() -> None:
            reducer = Reducer(stored if initial else None)
            push, result = reducer.push, reducer.result
            for event in stream:
                push(event)
                if ask:
                    result()
            assert not reducer.needs_resync, reducer.resync_reason

        return run

    times = fastest(
        {
            "push": pushed(events, False, False),
            "push, result": pushed(events, False, True),
            "late push": pushed(after, True, False),
            "late push, result": pushed(after, True, True),
        },
        min(effort.rounds, 12),
    )
    count = len(events)
    short = times["push, result"] - times["push"]
    late = times["late push, result"] - times["late push"]
    yield Row(
        "fold",
        "result() after every event",
        short / times["push"],
        None,
        each(short, count),
        f"the push of the event ({each(times['push'], count)})",
    )
    yield Row(
        "fold",
        f"result() behind {len(stored.messages):,} messages",
        late / short,
        None,
        each(late, count),
        f"the same in a short conversation ({each(short, count)})",
    )


def _folded(events: Sequence[AgEvent]) -> Reducer:
    reducer = Reducer()
    drain(map(reducer.push, events))
    assert not reducer.needs_resync, reducer.resync_reason
    return reducer


def _linear(effort: Effort) -> Iterator[Row]:
    """A delta costs the same however long its message is, the result at the end included."""
    long, short = long_message(effort.long), long_message(effort.long // 10)
    times = fastest(
        {"long": lambda: _folded(long).result(), "short": lambda: drain(_folded(short).result() for _ in range(10))},
        min(effort.rounds, 10),
    )
    size = 14 * effort.long
    yield Row(
        "fold",
        f"{effort.long:,} deltas into one message of {size / 1e6:.1f} MB, per delta",
        times["long"] / times["short"],
        1.3,
        each(times["long"], effort.long),
        f"{effort.long // 10:,} deltas ({each(times['short'], effort.long)})",
    )
