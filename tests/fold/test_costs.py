"""What events cost and what the fold keeps: each event pays for what it touches, and what is gone is freed."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from agjson.fold import Reducer
from agjson.wire import decode_result
from tests.support.folding import DONE, MESSAGE, TEXT, TURN, Event, events, folded, messages, push

Stream = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def started(count: int, **members: Any) -> list[dict[str, Any]]:
    return [TURN, *({**MESSAGE, "id": f"m{number}", **members} for number in range(count))]


def turns(count: int) -> list[dict[str, Any]]:
    return [{**TURN, "turnId": f"t{number}"} for number in range(count)]


def removals(count: int) -> list[dict[str, Any]]:
    return [{"type": "message.remove", "id": f"m{number}"} for number in reversed(range(count))]


def removing_all_of_an_unknown_turn(count: int) -> Stream:
    return started(count), [{"type": "message.remove", "id": "*", "turnId": "none"}] * count


def removing_all_of_one_turn_after_another(count: int) -> Stream:
    first = [{**MESSAGE, "id": f"m{number}", "turnId": f"t{number}"} for number in range(count)]
    return [*turns(count), *first], [{"type": "message.remove", "id": "*", "turnId": f"t{i}"} for i in range(count)]


def removing_the_newest(count: int) -> Stream:
    return started(count), removals(count)


def removing_the_newest_candidate(count: int) -> Stream:
    first = [{**MESSAGE, "id": f"m{number}", "candidateIndex": number} for number in range(count)]
    return [TURN, *first], removals(count)


def nested_turns_below_labels(count: int) -> Stream:
    return [], [{"type": "subagent.start", "turnId": f"n{i}", "parentTurnId": f"label{i}"} for i in range(count)]


def top_level_turns_that_become_nested(count: int) -> Stream:
    nested: list[dict[str, Any]] = []
    for number in range(count):
        nested.append({"type": "subagent.start", "turnId": f"t{number}", "parentTurnId": "label"})
        nested.append({"type": "subagent.start", "turnId": f"n{number}", "parentTurnId": "label"})
    return turns(count), nested


def snapshots_of_messages_alone(count: int) -> Stream:
    return turns(count), [{"type": "messages.snapshot", "messages": []}] * count


def snapshots_with_memory(count: int) -> Stream:
    wide = [{"type": "memory.write", "scope": "user", "key": f"k{number}", "value": 0} for number in range(count)]
    return wide, [{"type": "messages.snapshot", "messages": [], "memory": []}] * count


def events_of_the_sole_open_turn(count: int) -> Stream:
    closed = [{**DONE, "turnId": f"t{number}"} for number in range(count - 1)]
    return [*turns(count), *closed], [{"type": "source", "sourceId": "s", "source": {"url": "u"}}] * count


def steps(run: Callable[[], object]) -> int:
    """How many instructions of Python are executed: the same number on every machine, and none of C."""
    count = 0

    def trace(frame: Any, kind: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += kind == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "stream",
    [
        removing_all_of_an_unknown_turn,
        removing_all_of_one_turn_after_another,
        removing_the_newest,
        removing_the_newest_candidate,
        nested_turns_below_labels,
        top_level_turns_that_become_nested,
        snapshots_of_messages_alone,
        snapshots_with_memory,
        events_of_the_sole_open_turn,
    ],
)
def test_an_event_costs_the_same_behind_more_of_its_kind(stream: Callable[[int], Stream]) -> None:
    def each(count: int) -> float:
        before, measured = stream(count)
        reducer = folded(*before)
        taken = events(*measured, start=len(before))

        def run() -> None:
            for event in taken:
                reducer.push(event)

        cost = steps(run) / len(taken)
        assert not reducer.needs_resync
        return cost

    assert each(400) < 1.1 * each(100)


ROUNDS, SIZE = 200, 10_000


def grown_by(run: Callable[[], object]) -> int:
    """How many bytes are held after a run that were not before."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def replaced(number: int, *, seal: bool, adopt: bool) -> list[Event]:
    """A message with content of its own, and the removal of the one before it."""
    id = f"m{number}"
    text = f"{number:05}" * (SIZE // 5)
    if adopt:
        content = [{"type": "text", "text": text}]
        done = {"type": "tool.done", "toolCallId": id, "turnId": "t", "messageId": id, "content": content}
        members: list[dict[str, Any]] = [done]
    else:
        members = [{**MESSAGE, "id": id}, {**TEXT, "id": id}, {"type": "text.delta", "id": id, "delta": text}]
    if seal:
        members.append({"type": "message.end", "id": id})
    members.append({"type": "message.remove", "id": f"m{number - 1}"})
    return events(*members)


@pytest.mark.parametrize("adopt", [False, True])
@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize("look", [False, True])
def test_removed_messages_are_freed(adopt: bool, seal: bool, look: bool) -> None:
    reducer = folded(TURN)

    def run() -> None:
        for number in range(ROUNDS):
            for event in replaced(number, seal=seal, adopt=adopt):
                reducer.push(event)
            if look:
                reducer.result()

    assert grown_by(run) < 0.05 * ROUNDS * SIZE
    assert [message["id"] for message in messages(reducer)] == [f"m{ROUNDS - 1}"]


def test_a_message_begun_afresh_frees_what_it_held() -> None:
    reducer = folded(TURN)

    def run() -> None:
        for number in range(ROUNDS):
            text = {"type": "text.delta", "id": "x", "delta": f"{number:05}" * (SIZE // 5)}
            for event in events(MESSAGE, TEXT, text):
                reducer.push(event)

    assert grown_by(run) < 0.05 * ROUNDS * SIZE


def test_a_snapshot_frees_the_stored_conversation() -> None:
    stored = [
        {"id": f"m{n}", "role": "user", "content": [{"type": "text", "text": f"{n:010}" * 1_000}]} for n in range(100)
    ]
    text = json.dumps({"messages": stored, "artifacts": [], "memory": [], "turns": []})
    reducers: list[Reducer] = []

    def run() -> None:
        reducers.append(Reducer(decode_result(text)))
        push(reducers[0], {"type": "messages.snapshot", "messages": []})

    assert grown_by(run) < 0.05 * len(text)
    assert messages(reducers[0]) == []


def test_the_pointer_goes_back_past_sealed_and_removed_messages() -> None:
    """The messages that it may go back to are the same whichever way the others have left."""
    ended = {"type": "message.end", "id": "m3"}
    reducer = folded(*started(5), ended, *({"type": "message.remove", "id": id} for id in ("m1", "m4")), TEXT)
    assert [(message["id"], len(message["content"])) for message in messages(reducer)] == [
        ("m0", 0),
        ("m2", 1),
        ("m3", 0),
    ]
    push(reducer, {"type": "message.remove", "id": "m2"}, {**TEXT, "id": "y"})
    assert [(message["id"], len(message["content"])) for message in messages(reducer)] == [("m0", 1), ("m3", 0)]
