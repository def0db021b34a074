"""Parking and what ends it (spec §5.0 INV-SEQ, INV-OWNER, trust boundary)."""

from __future__ import annotations

import io
from typing import Any

import pytest

from agjson.errors import DecodeError
from agjson.fold import Reducer, reduce
from agjson.types import ExtEvent, MessageRemove, TurnStart, UnknownEvent
from agjson.wire import ingest_event
from tests.support.folding import CALL, DONE, MESSAGE, TEXT, TURN, blocks, events, folded, messages, push, view

DELTA = {"type": "text.delta", "id": "x", "delta": "a"}


def test_a_fresh_reducer_waits_for_nothing() -> None:
    reducer = Reducer()
    assert not reducer.needs_resync
    assert reducer.resync_reason is None
    assert view(reducer.result()) == {"messages": [], "artifacts": [], "memory": [], "turns": []}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([{**TURN, "seq": 4}, {**MESSAGE, "seq": 6}], "message.start at seq 6: events are missing"),
        ([TURN, MESSAGE, DELTA], "text.delta at seq 2: no start has opened block 'x' (INV-OWNER)"),
        ([TURN, MESSAGE, TEXT, TEXT], "text.start at seq 3: there is already a block 'x' (INV-BLOCK)"),
        ([TURN, MESSAGE, CALL, CALL], "tool.start at seq 3: there is already a tool call 'c' (INV-BLOCK)"),
        ([TURN, TEXT], "text.start at seq 1: no message is open in turn 't' (INV-OWNER)"),
        ([TURN, MESSAGE, DONE, TEXT], "text.start at seq 3: turn 't' is closed (INV-MSG)"),
        ([DONE], "turn.done at seq 0: no event has opened turn 't' (INV-OWNER)"),
        ([TURN, {**DONE, "turnId": "y" * 500}], "y...' (INV-OWNER)"),
    ],
)
def test_the_reason_is_told(members: list[dict[str, Any]], reason: str) -> None:
    told = folded(*members).resync_reason
    assert told is not None
    assert reason in told
    assert len(told) < 200


def test_the_first_reason_stays_until_a_snapshot() -> None:
    reducer = folded(TURN, TEXT)
    reason = reducer.resync_reason
    push(reducer, DELTA, {**DONE, "seq": 90})
    assert reducer.resync_reason == reason
    push(reducer, {"type": "state.snapshot", "snapshot": 1})
    assert reducer.resync_reason is None
    assert not reducer.needs_resync


def test_a_parked_fold_keeps_its_result_object() -> None:
    reducer = folded(TURN, MESSAGE, TEXT, DELTA)
    kept = reducer.result()
    push(reducer, {**DELTA, "seq": 9}, MESSAGE, {**TURN, "turnId": "u"}, {"type": "message.remove", "id": "m"})
    assert reducer.needs_resync
    assert reducer.result() is kept


def test_while_parked_the_ordinals_do_not_matter_and_the_snapshot_sets_them() -> None:
    reducer = folded(TURN, {**MESSAGE, "seq": 5}, {**TURN, "turnId": "u", "seq": 6})
    for event in events({"type": "messages.snapshot", "messages": [], "seq": 40}, {**TURN, "turnId": "v", "seq": 41}):
        reducer.push(event)
    assert not reducer.needs_resync
    assert [turn["turnId"] for turn in view(reducer.result())["turns"]] == ["t", "v"]
    for event in events({**TURN, "turnId": "w", "seq": 43}):
        reducer.push(event)
    assert reducer.needs_resync


def test_a_state_snapshot_ends_a_park_that_is_not_about_state() -> None:
    reducer = folded(TURN, MESSAGE, TEXT, DELTA, {"type": "text.end", "id": "ghost"})
    assert reducer.needs_resync
    push(reducer, {"type": "state.snapshot", "snapshot": None}, DELTA)
    assert not reducer.needs_resync
    assert blocks(reducer) == [{"type": "text", "text": "aa"}]


def test_a_malformed_event_never_reaches_the_fold_and_leaves_its_gap() -> None:
    reducer = folded(TURN, MESSAGE)
    before = reducer.result()
    with pytest.raises(DecodeError):
        reducer.push(ingest_event('{"type": "text.start", "seq": 2, "id": 5}'))
    assert reducer.result() is before
    assert not reducer.needs_resync
    for event in events(TEXT, start=3):
        reducer.push(event)
    assert reducer.needs_resync


@pytest.mark.parametrize(
    "event",
    [UnknownEvent("telemetry.update", 1, b"{}"), ExtEvent.embed("ext.acme.note", {"k": 1}, seq=1)],
    ids=lambda event: event.type,
)
def test_an_event_that_folds_to_nothing_uses_its_ordinal(event: Any) -> None:
    reducer = Reducer()
    reducer.push(TurnStart(seq=0, turn_id="t", thread_id="th"))
    reducer.push(event)
    reducer.push(TurnStart(seq=2, turn_id="u", thread_id="th"))
    assert not reducer.needs_resync


@pytest.mark.parametrize("value", [None, 5, {"type": "turn.start", "seq": 0}, b"{}", object()])
def test_what_is_no_event_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="expected an event"):
        Reducer().push(value)


def test_a_value_that_only_looks_like_an_event_is_refused() -> None:
    class Lookalike:
        seq = 0
        type = "turn.start"

    with pytest.raises(TypeError, match="expected an event, got Lookalike"):
        Reducer().push(Lookalike())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (b"{}", "got bytes: agjson.ingest_event reads it"),
        ("{}", "got str: agjson.ingest_event reads it"),
        ({"type": "turn.start", "seq": 0}, 'got dict: agjson.from_dict(value, as_="event") reads it'),
        (7, "got int"),
    ],
)
def test_an_event_in_another_form_is_told_what_reads_it(value: Any, advice: str) -> None:
    for fold in (Reducer().push, lambda given: reduce([given])):
        with pytest.raises(TypeError) as error:
            fold(value)
        assert str(error.value) == f"expected an event, {advice}"


LINES = '{"type":"turn.start","seq":0,"turnId":"t","threadId":"th"}\n'


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (LINES, "text"),
        (LINES.encode(), "text"),
        (bytearray(LINES.encode()), "text"),
        (io.StringIO(LINES), "a file"),
        (io.BytesIO(LINES.encode()), "a file"),
    ],
)
def test_text_and_files_in_place_of_events_are_told_what_reads_them(value: Any, got: str) -> None:
    with pytest.raises(TypeError) as error:
        reduce(value)
    assert str(error.value) == (
        f"events are an iterable of events, got {got}: of JSON lines, map(agjson.ingest_event, lines) makes one"
    )
    if got == "a file":
        assert reduce(map(ingest_event, value)).result.turns[0].turn_id == "t"


def test_one_event_is_not_a_series_of_events() -> None:
    with pytest.raises(TypeError, match="got TurnStart: put it into a list"):
        reduce(TurnStart(seq=0, turn_id="t", thread_id="th"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_an_empty_stream_reduces_to_an_empty_result() -> None:
    result, needs_resync = reduce([])
    assert view(result) == {"messages": [], "artifacts": [], "memory": [], "turns": []}
    assert needs_resync is False


def test_reduce_takes_any_iterable_once() -> None:
    stream = (event for event in events(TURN, MESSAGE, TEXT, DELTA))
    reduction = reduce(stream)
    assert reduction.result.messages[0].id == "m"
    assert not reduction.needs_resync


def test_removing_all_needs_its_turn() -> None:
    with pytest.raises(ValueError, match="turnId"):
        MessageRemove(seq=0, id="*")


def test_a_snapshot_forgets_open_blocks_pointers_and_ids_of_texts() -> None:
    reducer = folded(TURN, MESSAGE, TEXT, DELTA)
    stored = messages(reducer)
    push(reducer, {"type": "messages.snapshot", "messages": stored})
    assert messages(reducer) == stored
    push(reducer, DELTA)
    assert reducer.needs_resync
    push(reducer, {"type": "messages.snapshot", "messages": stored}, {**MESSAGE, "id": "m2"}, TEXT, DELTA)
    assert blocks(reducer, 1) == [{"type": "text", "text": "a"}]


def test_a_removal_never_goes_back_to_a_message_of_the_snapshot() -> None:
    stored = {"id": "old", "role": "assistant", "content": [], "turnId": "t"}
    reducer = folded(TURN, {"type": "messages.snapshot", "messages": [stored]}, MESSAGE)
    push(reducer, {"type": "message.remove", "id": "m"}, TEXT)
    assert reducer.needs_resync
    assert messages(reducer) == [stored]


def test_call_ids_of_a_snapshot_are_taken() -> None:
    call = {"type": "tool-call", "toolCallId": "c", "name": "n", "input": {}}
    stored = {"id": "old", "role": "assistant", "content": [call], "turnId": "t"}
    reducer = folded(TURN, {"type": "messages.snapshot", "messages": [stored]}, MESSAGE, CALL)
    assert reducer.needs_resync
    push(reducer, {"type": "messages.snapshot", "messages": [stored]}, {"type": "message.remove", "id": "old"})
    push(reducer, MESSAGE, CALL)
    assert not reducer.needs_resync


def test_a_partial_result_of_a_snapshot_is_replaced_by_its_final() -> None:
    partial = {"type": "tool-result", "toolCallId": "c", "content": [], "preliminary": True}
    stored = {"id": "R", "role": "tool", "content": [partial], "turnId": "t"}
    reducer = folded(TURN, {"type": "messages.snapshot", "messages": [stored]})
    push(reducer, {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "outcome": "ok"})
    assert blocks(reducer) == [{"type": "tool-result", "toolCallId": "c", "content": [], "outcome": "ok"}]


def test_a_turn_that_was_closed_stays_closed_whatever_a_snapshot_says() -> None:
    child = {"type": "subagent.start", "turnId": "s", "parentTurnId": "t"}
    done = {"type": "subagent.done", "turnId": "s", "parentTurnId": "t"}
    reducer = folded(TURN, child, done)
    turns = view(reducer.result())["turns"]
    push(reducer, {"type": "messages.snapshot", "messages": [], "turns": turns}, MESSAGE, {**TEXT, "turnId": "t"})
    push(reducer, {"type": "text.start", "id": "y"})
    assert not reducer.needs_resync
    push(reducer, {**MESSAGE, "id": "sm", "turnId": "s"}, {"type": "text.start", "id": "z", "turnId": "s"})
    assert reducer.needs_resync


def test_a_snapshot_is_taken_as_it_is_even_with_repeated_ids() -> None:
    stored = [{"id": "m", "role": "user", "content": [{"type": "text", "text": text}]} for text in "ab"]
    reducer = folded({"type": "messages.snapshot", "messages": stored})
    assert messages(reducer) == stored
    push(reducer, {"type": "message.metadata", "messageId": "m", "metadata": {"k": 1}})
    assert messages(reducer) == [{**stored[0], "metadata": {"k": 1}}, stored[1]]
    push(reducer, {"type": "message.remove", "id": "m"})
    assert messages(reducer) == [stored[1]]


def test_removing_all_takes_messages_with_repeated_ids() -> None:
    stored = [{"id": "m", "role": "user", "content": [], "turnId": "t"} for _ in range(3)]
    reducer = folded(
        {"type": "messages.snapshot", "messages": stored}, {"type": "message.remove", "id": "*", "turnId": "t"}
    )
    assert messages(reducer) == []
