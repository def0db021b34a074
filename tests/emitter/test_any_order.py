"""Whatever an adapter calls, in whatever order, the stream is well formed and folds."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agjson.agents import Thread
from agjson.agents.notes import Notes, note
from agjson.checker import check
from agjson.emitter import Emitter, ProfileError
from agjson.fold import Reducer, reduce
from agjson.wire import decode_event, encode
from tests.emitter.any_calls import Call, call


def play(calls: list[Call], turn_id: str = "t", **thread: Any) -> list[Any]:
    emitter = Emitter(turn_id, "thread", **thread)
    events: list[Any] = []
    for name, positional, named in calls:
        getattr(emitter, name)(*positional, **named)
        events += emitter.drain()
    emitter.flush()
    return events + emitter.drain()


def ids_in(events: list[Any]) -> frozenset[str]:
    names = ("turn_id", "id", "message_id", "tool_call_id", "ask_id", "artifact_id")
    return frozenset(value for event in events for name in names if (value := getattr(event, name, None)) is not None)


@settings(max_examples=300, deadline=None)
@given(st.lists(call, max_size=30))
def test_any_calls_give_a_stream_that_check_passes_and_that_folds(calls: list[Call]) -> None:
    events = play(calls)

    assert [event.seq for event in events] == list(range(len(events)))
    assert list(check(events)) == []
    assert reduce(events).needs_resync is False


@settings(max_examples=100, deadline=None)
@given(st.lists(call, max_size=20))
def test_the_stream_reads_back_from_the_wire_and_folds_to_the_same(calls: list[Call]) -> None:
    events = play(calls)

    decoded = [decode_event(encode(event)) for event in events]

    assert encode(reduce(decoded).result) == encode(reduce(events).result)


@settings(max_examples=100, deadline=None)
@given(st.lists(call, max_size=15), st.lists(call, max_size=15))
def test_a_second_invoke_opens_no_id_that_the_first_one_has(first: list[Call], second: list[Call]) -> None:
    before = play(first)
    known = ids_in(before) - {"t2"}
    result = reduce(before).result
    unanswered = [ask.ask_id for turn in result.turns for ask in turn.asks or ()]

    after = play(second, "t2", known_ids=known, state=result.state, memory=result.memory, open_asks=unanswered)

    assert list(check(after, known_ids=known)) == []


@settings(max_examples=300, deadline=None)
@given(st.lists(call, max_size=15), st.lists(call, max_size=15))
def test_a_second_invoke_that_knows_the_kinds_folds_onto_the_first(first: list[Call], second: list[Call]) -> None:
    before, notes = play(first), Notes("t")
    for event in before:
        note(notes, event)
    reducer = Reducer(reduce(before).result)
    thread = Thread(thread_id="thread", result=reducer.result(), ids=notes.ids)

    for event in play(second, "t2", **thread.settings()):
        reducer.push(event)
        assert reducer.resync_reason is None


@settings(max_examples=100, deadline=None)
@given(st.lists(call, max_size=20), st.sampled_from(["CORE", "EXTENDED"]))
def test_a_stream_that_refuses_keeps_its_profile_and_stays_well_formed(calls: list[Call], profile: Any) -> None:
    emitter = Emitter("t", "thread", profile=profile, on_excess="refuse")
    refused = 0
    for name, positional, named in calls:
        try:
            getattr(emitter, name)(*positional, **named)
        except ProfileError:
            refused += 1
    emitter.flush()
    events = emitter.drain()

    assert list(check(events, profile=profile)) == []
    assert reduce(events).needs_resync is False
    assert refused or list(check(play(calls), profile=profile)) == []
