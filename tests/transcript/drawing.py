"""Random histories: rounds of calls, results, placeholders, reused ids, embedded results, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from agjson.types import (
    AgAnswerStatus,
    AgBlock,
    AgHitlAnswer,
    AgMessage,
    AgTurnRecord,
    CompactionBlock,
    TextBlock,
    ToolResultBlock,
)
from tests.transcript.writing import ask, assistant, call, message, paused, reasoning, result, tool, user, waits

IDS = ("c1", "c2", "c3", "search")


@dataclass
class Drawn:
    """A history with the records and answers that go with it."""

    messages: list[AgMessage] = field(default_factory=list[AgMessage])
    turns: list[AgTurnRecord] = field(default_factory=list[AgTurnRecord])
    answers: list[AgHitlAnswer] = field(default_factory=list[AgHitlAnswer])
    waiting: list[str] = field(default_factory=list[str])


@dataclass
class Rounds:
    """A sound history, and the id of the message of the result of each call, in the order of the calls."""

    messages: list[AgMessage] = field(default_factory=list[AgMessage])
    results: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])


def _any_block(draw: st.DrawFn, turn: int, called: list[str], spoken: bool) -> AgBlock:
    kind = draw(st.integers(0, 9))
    if kind < 3 and (spoken or draw(st.integers(0, 15)) == 0):
        # An app names its calls itself.
        app = draw(st.integers(0, 15)) == 0
        id = "app" if app else draw(st.sampled_from(IDS))
        called.append(id)
        return call(
            id,
            signature="s" if draw(st.integers(0, 9)) == 0 else None,
            provider_executed=True if draw(st.integers(0, 5)) == 0 else None,
            ui_visibility=["app"] if app else None,
            tool_metadata={"agjson/synthesized": True} if draw(st.integers(0, 15)) == 0 else None,
        )
    if kind == 3:
        return _any_result(draw, called)
    if kind < 6:
        return reasoning(opaque=None) if draw(st.booleans()) else reasoning()
    return CompactionBlock(text="so far") if kind == 6 and draw(st.booleans()) else TextBlock(text=f"words {turn}")


def _any_result(draw: st.DrawFn, called: list[str]) -> ToolResultBlock:
    # Mostly of a call that has been made, each once.
    likely = bool(called) and draw(st.integers(0, 7)) > 0
    id = called[draw(st.integers(0, len(called) - 1))] if likely else draw(st.sampled_from(IDS))
    if likely and draw(st.integers(0, 5)):
        called.remove(id)
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return waits(id)
    named = draw(st.sampled_from([None, {"agjson/occurrence": "m1"}, {"agjson/occurrence": "m2#2"}, {"x": 1}]))
    return result(id, draw(st.sampled_from(["one", "two"])), preliminary=True if kind == 1 else None, meta=named)


@st.composite
def any_history(draw: st.DrawFn, *, plain: bool = False) -> Drawn:
    """Any history at all; a plain one has no nested turns and no second candidates."""
    drawn = Drawn()
    roles = ["user", "assistant", "assistant", "tool", "tool", "notice", "system"]
    turn = 1
    called: list[str] = []
    for index in range(draw(st.integers(0, 12))):
        turn += draw(st.integers(0, 3)) == 0
        role = draw(st.sampled_from(roles))
        count = draw(st.integers(0, 4)) if role in ("assistant", "user") else 1
        blocks = [_any_block(draw, turn, called, role == "assistant") for _ in range(count)]
        if role == "tool":
            blocks = [_any_result(draw, called) for _ in range(draw(st.integers(1, 2)))]
        if role in ("notice", "system"):
            blocks = [TextBlock(text="said")]
        candidate = 1 if not plain and role == "assistant" and draw(st.integers(0, 9)) == 0 else None
        drawn.messages.append(
            message(role, f"m{index}", *blocks, turn_id=f"t{turn}", candidate_index=candidate)  # type: ignore[arg-type]
        )
    for at in range(1, turn + 1):
        parent = "t1" if at > 1 and not plain and draw(st.integers(0, 5)) == 0 else None
        asked = draw(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([*IDS, None])), max_size=2))
        asks = [ask(f"k{number}", id, kind="text" if id is None else "approval") for number, id in asked]
        drawn.turns.append(paused(f"t{at}", *asks, parent_turn_id=parent))
    statuses: st.SearchStrategy[AgAnswerStatus] = st.sampled_from(["resolved", "resolved", "declined", "cancelled"])
    for number in draw(st.lists(st.integers(1, 6), max_size=4)):
        drawn.answers.append(AgHitlAnswer(ask_id=f"k{number}", status=draw(statuses)))
    drawn.waiting = draw(st.lists(st.sampled_from(IDS), max_size=2))
    return drawn


@st.composite
def sound_rounds(draw: st.DrawFn) -> Rounds:
    """Rounds whose pairs are known: ids come again after their results alone, which stand anywhere behind the calls."""
    made = Rounds()
    late: list[tuple[int, ToolResultBlock, str]] = []
    names = 0
    for at in range(draw(st.integers(1, 6))):
        turn = f"t{at}"
        made.messages.append(user(f"u{at}", turn_id=turn))
        taken = {block.tool_call_id for _, block, _ in late}
        free = [id for id in IDS if id not in taken]
        called = draw(st.lists(st.sampled_from(free), max_size=3, unique=True)) if free else []
        blocks: list[AgBlock] = [reasoning(f"why {at}")] if draw(st.booleans()) else []
        for id in called:
            blocks.append(call(id))
            names += 1
            text = f"r{names}"
            made.results.append((id, None))
            if draw(st.integers(0, 5)) == 0:  # inside the message of its call
                blocks.append(result(id, text))
                made.results[-1] = (id, f"a{at}")
            else:
                late.append((len(made.results) - 1, result(id, text), text))
        if blocks:
            made.messages.append(assistant(f"a{at}", *blocks, turn_id=turn))
        for id in called:
            if draw(st.integers(0, 3)) == 0 and any(block.tool_call_id == id for _, block, _ in late):
                made.messages.append(tool(waits(id), f"p{at}{id}", turn_id=turn))
        for each in draw(st.permutations(late)):
            if draw(st.integers(0, 3)):
                number, block, name = each
                made.messages.append(tool(block, name, turn_id=turn))
                made.results[number] = (block.tool_call_id, name)
                late.remove(each)
    for number, block, name in late:
        made.messages.append(tool(block, name))
        made.results[number] = (block.tool_call_id, name)
    return made
