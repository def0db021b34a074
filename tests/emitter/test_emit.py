"""The generic path, and the profile of a stream (spec §5.0 INV-OWNER, §9)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings

from agjson.emitter import Emitter, ProfileError
from agjson.fold import reduce
from agjson.testing.strategies import streams
from agjson.testing.writer import StreamOptions
from agjson.types import (
    AgCapabilities,
    AgentCapabilities,
    AgStreamEvent,
    AgUsage,
    DisplayRequired,
    ErrorEvent,
    ExtEvent,
    ReasoningDelta,
    StateSnapshot,
    SuccessOutcome,
    TextBlock,
    TextDelta,
    TextStart,
    ToolArgsAssembled,
    ToolStart,
    TurnDone,
    UiSurfaceStart,
)
from agjson.wire import encode, ingest_event
from tests.emitter.stream import errors, finished, sound, types, wire


def relayed(stream: list[AgStreamEvent]) -> list[AgStreamEvent]:
    emitter = Emitter("unused", "thread")
    for event in stream:
        emitter.emit(event)
    emitter.flush()
    return emitter.drain()


@settings(max_examples=100, deadline=None)
@given(streams(StreamOptions(max_invokes=1)))
def test_any_valid_stream_passes_through_as_a_valid_stream(stream: list[AgStreamEvent]) -> None:
    sound(relayed(stream))


# What the emitter decides by itself: where a result without a message lands, whose asks a pause names, ids that were
# freed, the turn of a memory record.
WITHOUT = ("messages.snapshot", "message.remove", "memory.write", "tool.done", "hitl.ask")


@settings(max_examples=100, deadline=None)
@given(streams(StreamOptions(max_invokes=1, truncated=False, explicit_owners=True, without=WITHOUT)))
def test_a_stream_that_needs_no_mending_folds_to_the_same(stream: list[AgStreamEvent]) -> None:
    assert encode(reduce(relayed(stream)).result) == encode(reduce(stream).result)


def test_ordinal_and_thread_of_an_event_are_the_emitters() -> None:
    emitter = Emitter("t", "thread")
    emitter.emit(TextStart(seq=40, id="b"))
    emitter.emit(TextDelta(seq=2, id="b", delta="Hi", turn_id="ignored-here"))
    emitter.emit(TurnDone(seq=9, turn_id="t", outcome=SuccessOutcome(), finish_reason="stop"))
    events = finished(emitter)

    assert types(events)[:4] == ["turn.start", "message.start", "text.start", "text.delta"]
    assert types(events)[4:] == ["text.end", "message.end", "turn.done"]
    assert {event.turn_id for event in events} == {"t"}


def test_null_is_a_value_where_the_format_says_so() -> None:
    emitter = Emitter("t", "thread")
    emitter.emit(StateSnapshot(seq=0, snapshot=None))
    emitter.emit(ToolStart(seq=0, tool_call_id="c", name="f"))
    emitter.emit(ToolArgsAssembled(seq=0, tool_call_id="c", input=None))
    events = wire(finished(emitter))

    assert (events[1]["snapshot"], events[4]["input"]) == (None, None)


def test_fields_of_a_later_revision_ride_in_meta() -> None:
    event = ingest_event(b'{"type":"text.start","seq":0,"id":"b","_meta":{"k":1},"shimmer":{"n":12345678901234567890}}')
    emitter = Emitter("t", "thread")
    emitter.emit(cast("Any", event))

    assert wire(emitter.drain())[2]["_meta"] == {"k": 1, "agjson/extra": {"shimmer": {"n": 12345678901234567890}}}


def test_an_extension_keeps_its_members() -> None:
    emitter = Emitter("t", "thread")
    emitter.emit(ExtEvent("ext.agjson.x", 9, {"shadowed": {"id": 1}, "a": 2}, id="e"))

    assert wire(emitter.drain())[1] == {
        "type": "ext.agjson.x",
        "id": "e",
        "turnId": "t",
        "shadowed": {"id": 1},
        "a": 2,
    }


def test_a_surface_names_its_call_by_the_emitted_id() -> None:
    emitter = Emitter("t", "thread", known_ids={"c"})
    emitter.tool_call("c", "draw", {})
    emitter.emit(UiSurfaceStart(seq=0, surface_id="s", catalog_id="k", tool_call_id="c"))
    emitter.emit(UiSurfaceStart(seq=0, surface_id="s2", catalog_id="k", tool_call_id="ghost"))
    events = wire(finished(emitter, known_ids={"c"}))

    assert [event.get("toolCallId") for event in events if event["type"] == "ui.surface.start"] == ["c#2", None]
    assert events[5]["_meta"] == {"agjson/toolCallId": "ghost"}


@pytest.mark.parametrize("value", [5, "text.delta", None, TextBlock(text="a block"), object()])
def test_what_is_no_event_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        Emitter("t", "thread").emit(value)


# Profiles


def test_a_stream_that_refuses_raises_for_what_is_above_its_profile() -> None:
    emitter = Emitter("t", "thread", profile="CORE", on_excess="refuse")
    emitter.text("fine", id="b")

    with pytest.raises(ProfileError) as reasoning:
        emitter.reasoning("hm")
    with pytest.raises(ProfileError) as channel:
        emitter.tool_done("c", ui_data={})
    with pytest.raises(ProfileError) as usage:
        emitter.turn_done(usage=AgUsage(output_tokens=1))

    assert (reasoning.value.path, reasoning.value.profile) == ("$.type", "EXTENDED")
    assert (channel.value.path, channel.value.profile) == ("$.uiData", "ADVANCED")
    assert (usage.value.path, usage.value.event.type) == ("$.usage", "turn.done")
    emitter.turn_done()
    finished(emitter)


def test_by_default_everything_passes() -> None:
    emitter = Emitter("t", "thread", profile="CORE")
    emitter.emit(ReasoningDelta(seq=0, id="r", delta="hm"))
    emitter.emit(DisplayRequired(seq=0, provider="p", html="<p>"))
    emitter.emit(AgentCapabilities(seq=0, capabilities=AgCapabilities(profile="CORE")))

    assert errors(finished(emitter)) == []


def test_a_core_stream_cannot_be_nested() -> None:
    with pytest.raises(ProfileError):
        Emitter("t", "thread", profile="CORE", on_excess="refuse", parent_turn_id="p")


def test_an_unknown_profile_is_no_profile() -> None:
    with pytest.raises(ValueError, match="BASIC"):
        Emitter("t", "thread", profile=cast("Any", "BASIC"))


def test_unknown_fields_of_any_text_are_kept() -> None:
    emitter = Emitter("t", "thread")
    event = ingest_event('{"type":"error","seq":0,"message":"m","half":"\\ud83d","far":1e400,"one":[1]}')
    assert isinstance(event, ErrorEvent)
    emitter.emit(event)
    [written] = [each for each in finished(emitter) if each.type == "error"]
    assert written.meta == {"agjson/extra": {"half": "\ud83d", "far": "1e400", "one": [1]}}
