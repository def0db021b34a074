"""Going on from a stored conversation, and mending another fold with snapshots (spec §5 INV-FOLD, *.snapshot)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agjson.fold import Reducer, reduce, snapshot
from agjson.types import UNSET, AgReduceResult, MessagesSnapshot, StateSnapshot
from agjson.wire import decode_event, decode_result, encode
from tests.support.folding import CALL, DONE, MESSAGE, TEXT, TURN, blocks, events, folded, messages, push, turn, view


def invoke(number: int) -> list[dict[str, Any]]:
    """One turn with something of everything, closed at its end, whose ids are its own."""
    t, m, c = f"t{number}", f"m{number}", f"c{number}"
    child = {"turnId": f"s{number}", "parentTurnId": t}
    return [
        {"type": "turn.start", "turnId": t, "threadId": "th", "trigger": {"kind": "user"}},
        {"type": "message.start", "id": m, "role": "assistant", "turnId": t, "threadId": "th"},
        {"type": "text.start", "id": f"x{number}", "turnId": t},
        {"type": "text.delta", "id": f"x{number}", "delta": f"text {number}"},
        {"type": "text.end", "id": f"x{number}"},
        {"type": "tool.start", "toolCallId": c, "name": "n", "turnId": t},
        {"type": "tool.args.assembled", "toolCallId": c, "input": {"number": number}},
        {"type": "message.end", "id": m, "usage": {"outputTokens": number}},
        {"type": "subagent.start", **child},
        {"type": "message.start", "id": f"sm{number}", "role": "assistant", "turnId": f"s{number}", "threadId": "th"},
        {"type": "message.end", "id": f"sm{number}"},
        {"type": "subagent.done", **child},
        # With the child closed, events may leave out the turn again.
        {"type": "tool.done", "toolCallId": c, "content": [], "messageId": f"{c}:result"},
        {"type": "source", "sourceId": f"s{number}", "source": {"url": "u"}},
        {"type": "artifact.start", "artifactId": f"A{number % 2}", "turnId": t, "threadId": "th"},
        {
            "type": "artifact.delta",
            "artifactId": f"A{number % 2}",
            "part": {"type": "text", "text": "p"},
            "append": False,
        },
        {"type": "memory.write", "scope": "thread", "key": "k", "value": {"n": [number]}},
        {"type": "memory.write", "scope": "thread", "key": "k", "patch": [{"op": "add", "path": "/n/-", "value": 0}]},
        {"type": "memory.write", "scope": "user", "value": number},
        {"type": "state.delta", "patch": {"node": {f"k{number}": number}}},
        {"type": "message.metadata", "messageId": "m0", "metadata": {f"seen{number}": True}},
        {"type": "turn.done", "turnId": t, "outcome": {"type": "success"}, "finishReason": "stop"},
    ]


INVOKES = [events(*invoke(number)) for number in range(4)]


@pytest.mark.parametrize("stored", range(1, 4))
def test_going_on_from_a_stored_result_equals_folding_everything(stored: int) -> None:
    whole = reduce([event for stream in INVOKES for event in stream])
    first = reduce([event for stream in INVOKES[:stored] for event in stream]).result
    rest = [event for stream in INVOKES[stored:] for event in stream]
    assert not whole.needs_resync
    assert reduce(rest, initial=first) == whole
    # And the same through storage.
    assert encode(reduce(rest, initial=decode_result(encode(first))).result) == encode(whole.result)


@pytest.mark.parametrize("stored", range(1, 4))
def test_snapshots_bring_a_late_client_to_the_same_result(stored: int) -> None:
    whole = reduce([event for stream in INVOKES for event in stream])
    first = reduce([event for stream in INVOKES[:stored] for event in stream]).result
    late = Reducer()
    # The user's record lies outside the thread, so a client must have seen it once.
    push(late, {"type": "memory.write", "scope": "user", "value": stored - 1})
    late.push(events({"type": "turn.done", "turnId": "?", "outcome": {"type": "success"}, "finishReason": "stop"})[0])
    assert late.needs_resync
    for event in snapshot(first, seq=7, turn_id="any"):
        late.push(decode_event(encode(event)))
    assert not late.needs_resync
    for stream in INVOKES[stored:]:
        for event in stream:
            late.push(event)
    memory = {encode(record) for record in late.result().memory}
    assert memory == {encode(record) for record in whole.result.memory}
    assert view(late.result()) | {"memory": []} == view(whole.result) | {"memory": []}


def test_the_ids_of_a_stored_conversation_are_taken() -> None:
    stored = folded(TURN, MESSAGE, TEXT, CALL).result()
    reducer = Reducer(stored)
    push(reducer, {**MESSAGE, "id": "m2"}, TEXT)
    assert not reducer.needs_resync  # the ids of texts are not stored
    push(reducer, CALL)
    assert reducer.needs_resync


def test_the_first_ordinal_after_a_stored_conversation_is_free() -> None:
    reducer = Reducer(folded(TURN, MESSAGE).result())
    for event in events({**MESSAGE, "id": "m2", "seq": 17}, {**TEXT, "seq": 18}):
        reducer.push(event)
    assert not reducer.needs_resync
    assert blocks(reducer, 1) == [{"type": "text", "text": ""}]


def test_a_stored_turn_with_an_outcome_is_closed_and_one_without_is_open() -> None:
    reducer = Reducer(folded(TURN, MESSAGE, DONE, {**TURN, "turnId": "u"}).result())
    push(reducer, {"type": "message.start", "id": "m2", "role": "assistant", "turnId": "u", "threadId": "th"})
    push(reducer, {"type": "text.start", "id": "x"})
    assert not reducer.needs_resync
    push(reducer, {**MESSAGE, "id": "m3"}, {"type": "text.start", "id": "y", "turnId": "t"})
    assert "turn 't' is closed" in (reducer.resync_reason or "")


def test_a_stored_nested_turn_has_ended_with_its_parent() -> None:
    child = {"type": "subagent.start", "turnId": "s", "parentTurnId": "t"}
    grandchild = {"type": "subagent.start", "turnId": "s2", "parentTurnId": "s"}
    stored = folded(TURN, child, grandchild, DONE).result()
    reducer = Reducer(stored)
    push(reducer, {**TURN, "turnId": "u"}, {"type": "source", "sourceId": "x", "source": {"url": "u"}})
    assert turn(reducer, 3)["sourceIds"] == ["x"]


NESTED = {"turnId": "n1", "parentTurnId": "turn_call1"}
ORDINARY = [
    {**TURN, "turnId": "u"},
    {"type": "source", "sourceId": "x", "source": {"url": "u"}},
    {**DONE, "turnId": "u"},
]


def received(result: AgReduceResult) -> Reducer:
    """A late client that a snapshot has brought to a result."""
    reducer = Reducer()
    for event in snapshot(result):
        reducer.push(event)
    return reducer


@pytest.mark.parametrize("resume", [Reducer, received])
def test_a_nested_turn_below_a_label_has_ended_with_the_turns_above(
    resume: Callable[[AgReduceResult], Reducer],
) -> None:
    first = [TURN, {"type": "subagent.start", **NESTED}, {"type": "subagent.done", **NESTED}, DONE]
    reducer = resume(folded(*first).result())
    push(reducer, *ORDINARY)
    assert not reducer.needs_resync
    assert view(reducer.result()) == view(folded(*first, *ORDINARY).result())
    push(reducer, {**MESSAGE, "turnId": "n1"}, {**TEXT, "turnId": "n1"})
    assert "turn 'n1' is closed" in (reducer.resync_reason or "")


@pytest.mark.parametrize("resume", [Reducer, received])
def test_a_nested_turn_below_a_label_is_not_counted_but_takes_what_names_it(
    resume: Callable[[AgReduceResult], Reducer],
) -> None:
    grandchild = {"type": "subagent.start", "turnId": "n2", "parentTurnId": "n1"}
    reducer = resume(folded(TURN, {"type": "subagent.start", **NESTED}, grandchild).result())
    push(reducer, {"type": "source", "sourceId": "x", "source": {"url": "u"}})
    assert turn(reducer, 0)["sourceIds"] == ["x"]
    for id in ("n1", "n2"):
        push(reducer, {**MESSAGE, "id": id, "turnId": id}, {**TEXT, "id": id, "turnId": id})
    assert not reducer.needs_resync


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("running", [False, True])
def test_the_order_of_stored_turns_does_not_matter(order: tuple[int, ...], running: bool) -> None:
    records: list[dict[str, Any]] = [
        {"turnId": "t", "threadId": "th"} | ({} if running else {"outcome": {"type": "success"}}),
        {"turnId": "s", "threadId": "th", "parentTurnId": "t"},
        {"turnId": "s2", "threadId": "th", "parentTurnId": "s"},
    ]
    stored = {"messages": [], "artifacts": [], "memory": [], "turns": [records[place] for place in order]}
    reducer = Reducer(decode_result(json.dumps(stored)))
    push(reducer, {**TURN, "turnId": "u"}, {"type": "source", "sourceId": "x", "source": {"url": "u"}})
    # All three are running or none is; the one that the event might mean is then not to be told.
    assert reducer.needs_resync is running
    assert ("4 turns are open" in (reducer.resync_reason or "")) is running


def test_stored_turns_that_are_nested_in_each_other_are_closed() -> None:
    turns = [{"turnId": a, "threadId": "th", "parentTurnId": b} for a, b in ("ab", "ba")]
    reducer = Reducer(decode_result(json.dumps({"messages": [], "artifacts": [], "memory": [], "turns": turns})))
    push(reducer, *ORDINARY)
    assert not reducer.needs_resync
    push(reducer, {**TURN, "turnId": "v"}, {**MESSAGE, "turnId": "a"}, {**TEXT, "turnId": "a"})
    assert "turn 'a' is closed" in (reducer.resync_reason or "")


def test_a_stored_message_may_be_begun_afresh_while_its_turn_is_open() -> None:
    reducer = Reducer(folded(TURN, MESSAGE, TEXT).result())
    push(reducer, MESSAGE, {**TEXT, "id": "y"}, {"type": "text.delta", "id": "y", "delta": "new"})
    assert blocks(reducer) == [{"type": "text", "text": "new"}]


def test_a_stored_partial_result_is_replaced_by_its_final() -> None:
    partial = {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "more": True, "messageId": "R"}
    reducer = Reducer(folded(TURN, MESSAGE, CALL, partial).result())
    push(reducer, {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "outcome": "ok"})
    assert blocks(reducer, 1) == [{"type": "tool-result", "toolCallId": "c", "content": [], "outcome": "ok"}]


def test_a_result_joins_a_stored_message_of_an_open_turn() -> None:
    done = {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "messageId": "R"}
    reducer = Reducer(folded(TURN, MESSAGE, CALL, done).result())
    push(reducer, {**done, "toolCallId": "c2"})
    assert [block["toolCallId"] for block in blocks(reducer, 1)] == ["c", "c2"]


def test_a_block_cannot_go_to_a_stored_message() -> None:
    reducer = Reducer(folded(TURN, MESSAGE).result())
    push(reducer, {**TEXT, "messageId": "m"})
    assert reducer.needs_resync
    assert messages(reducer)[0]["content"] == []


def test_memory_and_state_go_on() -> None:
    first = folded({"type": "memory.write", "scope": "user", "value": [1]}, {"type": "state.snapshot", "snapshot": [1]})
    patch = [{"op": "add", "path": "/-", "value": 2}]
    reducer = Reducer(first.result())
    push(reducer, {"type": "memory.write", "scope": "user", "patch": patch}, {"type": "state.delta", "patch": patch})
    assert view(reducer.result()) == {
        "messages": [],
        "artifacts": [],
        "turns": [],
        "memory": [{"scope": "user", "value": [1, 2]}],
        "state": [1, 2],
    }


def test_snapshot_makes_the_pair_with_consecutive_ordinals() -> None:
    result = folded(TURN, MESSAGE, {"type": "state.snapshot", "snapshot": None}).result()
    first, second = snapshot(result, seq=5, turn_id="t")
    assert isinstance(first, MessagesSnapshot)
    assert isinstance(second, StateSnapshot)
    assert (first.seq, second.seq, first.turn_id, second.turn_id) == (5, 6, "t", "t")
    assert (first.messages, first.turns, first.artifacts, first.memory) == (result.messages, result.turns, [], [])
    assert second.snapshot is None


def test_snapshot_makes_no_state_where_none_was_ever_set() -> None:
    (only,) = snapshot(folded(TURN).result())
    assert (only.type, only.seq, only.turn_id) == ("messages.snapshot", 0, None)


def test_a_stored_result_without_state_has_none() -> None:
    empty = AgReduceResult(messages=[], artifacts=[], memory=[], turns=[])
    assert Reducer(empty).result().state is UNSET


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (b"{}", "got bytes: agjson.decode_result reads it"),
        ("{}", "got str: agjson.decode_result reads it"),
        ({"messages": []}, 'got dict: agjson.from_dict(value, as_="result") reads it'),
        (reduce([]), "got Reduction: take its .result"),
        ([], "got list"),
    ],
)
def test_a_stored_conversation_in_another_form_is_told_what_reads_it(value: Any, advice: str) -> None:
    for begin in (Reducer, lambda initial: reduce([], initial=initial)):
        with pytest.raises(TypeError) as error:
            begin(initial=value)
        assert str(error.value) == f"initial is an AgReduceResult, {advice}"
