"""Histories: what it costs to prepare one for a model, against one deep copy of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from agjson.transcript import SlidingWindow, compact, occurrences, prepare, settle
from agjson.types import (
    AgMessage,
    AgOpaque,
    AgPausedAsk,
    AgTurnRecord,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from benchmarks.measure import Effort, Row, each, fastest

PER_TURN = 5


def history(count: int) -> tuple[list[AgMessage], list[AgTurnRecord]]:
    """Turns of five messages: a question, two calls with reasoning, a placeholder and two results, an answer.

    The ids of the calls come again in each turn, every other turn has an ask, and its results stand in the reverse
    order.
    """
    messages: list[AgMessage] = []
    turns: list[AgTurnRecord] = []
    for at in range(count // PER_TURN):
        turn = f"turn-{at}"
        asked = at % 2 == 0
        results = [_result("call-1", turn, asked), _result("call-2", turn, asked)]
        calls = [ToolCallBlock(tool_call_id=f"call-{n}", name="search", input={"query": "words"}) for n in (1, 2)]
        sealed = AgOpaque(kind="signature", value="c2lnbmVk")
        messages += [
            AgMessage(id=f"u-{at}", role="user", content=[TextBlock(text="And then?")], turn_id=turn),
            AgMessage(
                id=f"a-{at}",
                role="assistant",
                content=[ReasoningBlock(text="It is not known.", opaque=sealed), *calls],
                turn_id=turn,
            ),
            *(reversed(results) if asked else results),
            AgMessage(id=f"w-{at}", role="assistant", content=[TextBlock(text="So it was.")], turn_id=turn),
        ]
        asks = [AgPausedAsk(ask_id=f"ask-{at}", kind="approval", tool_call_id="call-1")] if asked else None
        turns.append(AgTurnRecord(turn_id=turn, thread_id="thread-1", asks=asks))
    return messages, turns


def _result(id: str, turn: str, asked: bool) -> AgMessage:
    waits = [ToolResultBlock(tool_call_id=id, content=[], outcome="input_required")] if asked else []
    found = ToolResultBlock(tool_call_id=id, content=[TextBlock(text="found")])
    return AgMessage(id=f"{turn}:{id}", role="tool", content=[*waits, found], turn_id=turn)


def rows(effort: Effort) -> Iterator[Row]:
    messages, turns = history(effort.events)
    few, few_turns = history(effort.events // 10)
    count = len(messages)
    open_call = ToolCallBlock(tool_call_id="open", name="search", input={})
    waiting = [*messages, AgMessage(id="a", role="assistant", content=[open_call])]
    result = ToolResultBlock(tool_call_id="open", content=[])

    def parts(given: Sequence[AgMessage], records: Sequence[AgTurnRecord], times: int) -> None:
        for _ in range(times):
            prepare(given, turns=records)

    times = fastest(
        {
            "copy": lambda: copy.deepcopy(messages),
            "prepare": lambda: parts(messages, turns, 1),
            "few": lambda: parts(few, few_turns, 10),
            "occurrences": lambda: occurrences(messages),
            "settle": lambda: settle(waiting, [result], turns=turns),
            "compact": lambda: compact(messages, SlidingWindow(100)),
        },
        min(effort.rounds, 12),
    )
    floor = f"a deep copy of it ({each(times['copy'], count)})"

    def row(key: str, name: str, aim: float | None) -> Row:
        return Row("transcript", name, times[key] / times["copy"], aim, each(times[key], count), floor)

    yield row("prepare", f"prepare, {count:,} messages, per message", 1.0)
    yield row("settle", f"settle one result behind {count:,} messages", 1.0)
    yield row("compact", f"compact {count:,} messages to a window", 1.0)
    yield row("occurrences", f"occurrences of {count:,} messages", None)
    yield Row(
        "transcript",
        f"prepare {count:,} messages, per message",
        times["prepare"] / times["few"],
        2.0,  # ten times the objects fit the caches of the processor less well
        each(times["prepare"], count),
        f"{len(few):,} messages ({each(times['few'], count)})",
    )
