"""Results: kept ones never change, unchanged parts are shared, and the cost follows what changed (spec §5 INV-FOLD)."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agjson.fold import Reducer, reduce
from agjson.types import (
    AgMessage,
    AgReduceResult,
    AgTurnRecord,
    ContentBlock,
    DataBlock,
    MemoryWrite,
    MessageMetadata,
    MessageStart,
    ReasoningDelta,
    ReasoningStart,
    SourceEvent,
    StateDelta,
    StateSnapshot,
    TextBlock,
    TextDelta,
    TextStart,
    TurnDone,
    TurnStart,
    UrlSource,
)
from agjson.wire import encode
from tests.support.folding import DONE, MESSAGE, TEXT, TURN, calls_made, events, folded, push


def long_thread(length: int) -> AgReduceResult:
    messages = [AgMessage(id=f"h{index}", role="user", content=[TextBlock(text="q")]) for index in range(length)]
    turns = [AgTurnRecord(turn_id=f"old{index}", thread_id="th") for index in range(length)]
    return AgReduceResult(messages=messages, artifacts=[], memory=[], turns=turns)


def answering(initial: AgReduceResult | None = None) -> Reducer:
    reducer = Reducer(initial)
    reducer.push(TurnStart(seq=0, turn_id="t", thread_id="th"))
    reducer.push(MessageStart(seq=1, id="m", role="assistant", turn_id="t", thread_id="th"))
    reducer.push(TextStart(seq=2, id="x", turn_id="t"))
    reducer.push(ReasoningStart(seq=3, id="r", turn_id="t"))
    return reducer


def test_an_unchanged_fold_returns_the_same_object() -> None:
    reducer = folded(TURN, MESSAGE, TEXT)
    kept = reducer.result()
    assert reducer.result() is kept
    push(reducer, {"type": "step.start", "id": "s"}, {"type": "error", "message": "m"})
    assert reducer.result() is kept


def test_what_did_not_change_is_shared() -> None:
    reducer = answering(long_thread(20))
    before = reducer.result()
    reducer.push(TextDelta(seq=4, id="x", delta="a"))
    after = reducer.result()
    assert after.turns is before.turns
    assert after.artifacts is before.artifacts
    assert after.memory is before.memory
    assert [a is b for a, b in zip(after.messages, before.messages, strict=True)] == [True] * 20 + [False]
    assert after.messages[20].content[1] is before.messages[20].content[1]


def test_the_messages_of_the_initial_result_come_back_as_they_are() -> None:
    initial = long_thread(3)
    result = Reducer(initial).result()
    assert result == initial
    assert all(a is b for a, b in zip(result.messages, initial.messages, strict=True))


def test_payloads_of_events_and_of_the_initial_result_are_never_changed() -> None:
    state: dict[str, Any] = {"n": {"a": [1]}, "l": [{"x": 1}]}
    bag: dict[str, Any] = {"k": {"x": 1}}
    value: dict[str, Any] = {"v": [1, 2]}
    initial = AgReduceResult(
        messages=[AgMessage(id="h", role="user", content=[TextBlock(text="q")], metadata=bag, message_metadata=bag)],
        artifacts=[],
        memory=[],
        turns=[AgTurnRecord(turn_id="t", thread_id="th", sources=[], source_ids=[])],
        state=state,
    )
    stream: list[Any] = [
        StateDelta(seq=0, patch={"n": {"b": 2}}),
        StateDelta(seq=1, patch=[{"op": "add", "path": "/n/a/-", "value": state}]),
        StateDelta(seq=2, patch=[{"op": "replace", "path": "/n/a/1/l/0/x", "value": 9}]),
        StateSnapshot(seq=3, snapshot=state),
        StateDelta(seq=4, patch=[{"op": "copy", "from": "/l", "path": "/m"}, {"op": "remove", "path": "/m/0"}]),
        MemoryWrite(seq=5, scope="user", value=value),
        MemoryWrite(seq=6, scope="user", patch=[{"op": "remove", "path": "/v/0"}]),
        MessageMetadata(seq=7, message_id="h", metadata={"k": {"y": 2}}),
        SourceEvent(seq=8, turn_id="t", source_id="s", source=UrlSource(url="u")),
        TurnDone(
            seq=9,
            turn_id="t",
            outcome=folded_outcome(),
            finish_reason="stop",
            message_id="h",
            message_metadata={"k": 5},
        ),
    ]
    before = copy.deepcopy((initial, stream))
    reducer = Reducer(initial)
    for event in stream:
        reducer.push(event)
        reducer.result()
    assert not reducer.needs_resync
    assert (initial, stream) == before
    assert reducer.result().state == {"n": {"a": [1]}, "l": [{"x": 1}], "m": []}


def folded_outcome() -> Any:
    event = events(DONE)[0]
    assert isinstance(event, TurnDone)
    return event.outcome


def test_a_patched_state_shares_what_the_patch_does_not_touch() -> None:
    reducer = Reducer()
    state: dict[str, Any] = {"big": {"rows": [1, 2, 3]}, "n": {"k": {"v": 1}, "l": {"w": 1}}}
    reducer.push(StateSnapshot(seq=0, snapshot=state))
    reducer.push(StateDelta(seq=1, patch=[{"op": "replace", "path": "/n/k/v", "value": 2}]))
    patched: Any = reducer.result().state
    assert patched == {"big": {"rows": [1, 2, 3]}, "n": {"k": {"v": 2}, "l": {"w": 1}}}
    assert patched["big"] is state["big"]
    assert patched["n"]["l"] is state["n"]["l"]
    assert state["n"]["k"] == {"v": 1}


def test_deltas_are_joined_once() -> None:
    def stream(length: int) -> list[Any]:
        start = events(TURN, MESSAGE, TEXT)
        return [*start, *(TextDelta(seq=3 + index, id="x", delta="abc") for index in range(length))]

    def cost(length: int) -> Counter[str]:
        made = stream(length)
        return calls_made(lambda: reduce(made))

    few, many = cost(100), cost(1_000)
    assert few["join"] == many["join"] == 1
    # The event is taken, its block is looked up, its text is appended; nothing else is called for a delta.
    assert many - few == {"push": 900, "get": 900, "append": 900}


@pytest.mark.parametrize(
    "event",
    [
        lambda seq: TextDelta(seq=seq, id="x", delta="ab"),
        lambda seq: ReasoningDelta(seq=seq, id="r", delta="ab"),
        lambda seq: ContentBlock(seq=seq, turn_id="t", block=DataBlock(name="n", id="d", data=seq)),
        lambda seq: SourceEvent(seq=seq, turn_id="t", source_id="s", source=UrlSource(url="u")),
        lambda seq: MemoryWrite(seq=seq, scope="user", key="k", value=seq),
        lambda seq: StateDelta(seq=seq, patch={"n": {"k": seq}}),
        lambda seq: TurnStart(seq=seq, turn_id="t", thread_id=f"th{seq}"),
    ],
    ids=["text", "reasoning", "block", "source", "memory", "state", "turn"],
)
def test_an_event_and_its_result_cost_the_same_in_a_long_thread(event: Callable[[int], Any]) -> None:
    costs: list[int] = []
    for length in (10, 1_000):
        reducer = answering(long_thread(length))
        reducer.push(event(4))
        reducer.result()

        def run(reducer: Reducer = reducer) -> None:
            reducer.push(event(5))
            reducer.result()

        costs.append(calls_made(run).total())
    assert costs[0] == costs[1]


def test_a_kept_result_survives_everything_that_follows() -> None:
    reducer = answering()
    kept: list[tuple[AgReduceResult, bytes]] = []
    members: list[dict[str, Any]] = [
        {"type": "text.delta", "id": "x", "delta": "a"},
        {"type": "text.delta", "id": "x", "delta": "b", "providerMetadata": {"k": 1}},
        {"type": "reasoning.delta", "id": "r", "delta": "c"},
        {"type": "reasoning.opaque", "id": "r", "kind": "signature", "value": "v"},
        {"type": "tool.start", "toolCallId": "c", "name": "n", "turnId": "t"},
        {"type": "tool.args.assembled", "toolCallId": "c", "input": {"a": 1}},
        {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "more": True},
        {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "outcome": "ok"},
        {"type": "content.block", "turnId": "t", "block": {"type": "data", "name": "n", "id": "d", "data": 1}},
        {"type": "content.block", "turnId": "t", "block": {"type": "data", "name": "n", "id": "d", "data": 2}},
        {"type": "text.end", "id": "x", "providerMetadata": {"l": 1}},
        {"type": "source", "turnId": "t", "sourceId": "s", "source": {"url": "u"}},
        {"type": "source", "turnId": "t", "sourceId": "s2", "source": {"url": "u"}},
        {"type": "prompt.blocked", "turnId": "t", "reason": "other", "safety": [{"category": "a"}]},
        {"type": "prompt.blocked", "turnId": "t", "reason": "other", "safety": [{"category": "b"}]},
        {"type": "artifact.start", "artifactId": "A", "turnId": "t", "threadId": "th"},
        *(
            {"type": "artifact.delta", "artifactId": "A", "part": {"type": "text", "text": "p"}, "append": True}
            for _ in range(3)
        ),
        {"type": "memory.write", "scope": "user", "value": {"a": [1]}},
        {"type": "memory.write", "scope": "user", "patch": [{"op": "add", "path": "/a/-", "value": 2}]},
        {"type": "state.delta", "patch": {"n": {"a": [1]}}},
        {"type": "state.delta", "patch": [{"op": "add", "path": "/n/a/0", "value": 0}]},
        {"type": "message.metadata", "messageId": "m", "metadata": {"k": 1}},
        {"type": "message.metadata", "messageId": "m", "metadata": {"k": 2}},
        {"type": "message.end", "id": "m", "usage": {"totalTokens": 1}},
        DONE,
        {"type": "message.remove", "id": "m"},
        {"type": "messages.snapshot", "messages": [], "turns": [], "artifacts": [], "memory": []},
        {"type": "state.snapshot", "snapshot": None},
    ]
    for member in members:
        push(reducer, member)
        result = reducer.result()
        assert not reducer.needs_resync
        kept.append((result, encode(result)))
    assert [encode(result) for result, _ in kept] == [text for _, text in kept]
    assert len({text for _, text in kept}) == len(members)
