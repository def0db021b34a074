"""Invokes of one thread, and many of them at once (spec §8.0 lifetime, INV-SEQ, INV-BLOCK)."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agjson.checker import check
from agjson.emitter import Emitter
from agjson.fold import Reducer
from agjson.types import AgStreamEvent, TextBlock, ToolCallBlock
from agjson.wire import encode


def invoke(turn_id: str, **thread: Any) -> list[AgStreamEvent]:
    """A framework that numbers nothing anew: every invoke has the same native ids."""
    emitter = Emitter(turn_id, "thread", **thread)
    emitter.message_start("scripted-message", model="m")
    emitter.reasoning_start("0")
    emitter.reasoning_delta("0", "think")
    emitter.text("answer", id="1")
    emitter.tool_start("call_0", "f")
    emitter.tool_args_delta("call_0", '{"n": 1}')
    emitter.tool_args_assembled("call_0")
    emitter.message_end("scripted-message")
    emitter.tool_done("call_0", [TextBlock(text="r")], outcome="ok", message_id="tool-message")
    emitter.hitl_ask("approval", ask_id="interrupt", tool_call_id="call_0")
    emitter.turn_paused()
    emitter.flush()
    return emitter.drain()


def ids_of(events: list[AgStreamEvent]) -> set[str]:
    names = ("turn_id", "id", "message_id", "tool_call_id", "ask_id")
    return {value for event in events for name in names if (value := getattr(event, name, None)) is not None}


def test_five_invokes_with_the_same_native_ids_fold_without_parking() -> None:
    reducer = Reducer()
    known: set[str] = set()
    for number in range(5):
        events = invoke(f"t{number}", known_ids=frozenset(known))
        assert list(check(events, known_ids=known)) == []
        for event in events:
            reducer.push(event)
        known |= ids_of(events)
    result = reducer.result()

    assert not reducer.needs_resync
    assert [m.id for m in result.messages if m.role == "assistant"] == [
        "scripted-message",
        *(f"scripted-message#{n}" for n in range(2, 6)),
    ]
    calls = [b.tool_call_id for m in result.messages for b in m.content if isinstance(b, ToolCallBlock)]
    assert calls == ["call_0", "call_0#2", "call_0#3", "call_0#4", "call_0#5"]
    asks = [ask.ask_id for turn in result.turns for ask in turn.asks or ()]
    assert asks == ["interrupt", "interrupt#2", "interrupt#3", "interrupt#4", "interrupt#5"]


def test_the_known_ids_are_only_read() -> None:
    known = frozenset({"call_0"})

    invoke("t", known_ids=known)

    assert known == {"call_0"}


def test_emitters_of_different_invokes_do_not_meet() -> None:
    alone = [encode(event) for event in invoke("t")]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda _: [encode(event) for event in invoke("t")], range(64)))

    assert together == [alone] * 64


def test_memory_does_not_grow_with_deltas() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.reasoning_start("r")
    emitter.text_delta("b", "x")
    emitter.drain()

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20_000):
            emitter.text_delta("b", f"word {number} ")
            emitter.reasoning_delta("r", f"thought {number} ")
            emitter.drain()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < 10_000
