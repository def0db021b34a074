"""Failures, broken streams, and what is not known yet: each is visible, and each turn ends once (spec §8.0, §8.17)."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import pytest

from agjson.adapters.anthropic import AnthropicNormalizer
from agjson.normalizer import HostAbort, HostEnd, HostError
from agjson.types import AgStreamEvent, ErrorOutcome
from tests.support.anthropic_wire import (
    START,
    STOP,
    Native,
    block,
    content,
    end,
    message,
    normalize,
    plain,
    sound,
    text,
    view,
)

FRAME = "ext.anthropic.frame"


def of_type(events: list[AgStreamEvent], type: str) -> list[Native]:
    return [event for event in plain(events) if event["type"] == type]


def codes(events: list[AgStreamEvent]) -> list[str]:
    return [event["code"] for event in of_type(events, "error")]


def pushed(*natives: Any, multi: bool = False) -> list[AgStreamEvent]:
    """The events of an invoke whose sentinels are among the natives."""
    return normalize(natives, host_end=False, multi=multi)


# Errors of the provider


@pytest.mark.parametrize(
    ("kind", "retriable"),
    [
        ("overloaded_error", True),
        ("rate_limit_error", True),
        ("api_error", True),
        ("timeout_error", True),
        ("invalid_request_error", False),
        ("authentication_error", False),
        ("not_found_error", False),
    ],
)
def test_an_error_in_the_stream_ends_the_turn(kind: str, retriable: bool) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "Sorry"}, "request_id": "req_1"}
    events = pushed(START, *text("Half")[:-1], body, HostEnd())

    (failed,) = of_type(events, "turn.error")
    assert failed == {
        "type": "turn.error",
        "message": "Sorry",
        "code": kind,
        "retriable": retriable,
        "usage": {"inputTokens": 10, "outputTokens": 1, "cumulative": True},
    }
    assert of_type(events, FRAME) == [{"type": FRAME, "kind": "error", "frame": body}]
    result = view(sound(events))
    assert result["messages"][0]["content"] == [{"type": "text", "text": "Half"}]
    assert result["messages"][0]["metadata"]["anthropic/usage"] == {"input_tokens": 10, "output_tokens": 1}


def test_an_error_of_an_unknown_kind_says_nothing_of_trying_again() -> None:
    (failed,) = of_type(pushed({"type": "error", "error": {"type": "cosmic_error", "message": "?"}}), "turn.error")

    assert failed == {"type": "turn.error", "message": "?", "code": "cosmic_error"}


@pytest.mark.parametrize(
    "body", [{"type": "error"}, {"type": "error", "error": "boom"}, {"type": "error", "error": {}}]
)
def test_a_malformed_error_is_an_error(body: Native) -> None:
    events = pushed(body)

    (failed,) = of_type(events, "turn.error")
    assert failed["message"]
    sound(events)


def status_error(status: int, body: object) -> anthropic.APIStatusError:
    request = httpx2.Request("POST", "https://api.anthropic.com/v1/messages")
    response = httpx2.Response(status, request=request, headers={"request-id": "req_1"})
    return anthropic.Anthropic(api_key="x")._make_status_error(str(body), body=body, response=response)


@pytest.mark.parametrize(
    ("status", "kind", "retriable"),
    [
        (200, "overloaded_error", True),
        (529, "overloaded_error", True),
        (400, "invalid_request_error", False),
        (429, "rate_limit_error", True),
        (500, "strange_error", True),
        (418, "strange_error", False),
    ],
)
def test_an_exception_of_the_client_is_told_by_its_type(status: int, kind: str, retriable: bool) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "Sorry", "details": {"error_code": "c"}}}
    events = pushed(START, HostError(status_error(status, body)))

    (failed,) = of_type(events, "turn.error")
    assert (failed["message"], failed["code"], failed["retriable"]) == ("Sorry", kind, retriable)
    assert of_type(events, FRAME)[0]["frame"] == body
    sound(events)


def test_a_broken_connection_may_be_tried_again() -> None:
    request = httpx2.Request("POST", "https://api.anthropic.com/v1/messages")
    events = pushed(START, HostError(anthropic.APIConnectionError(request=request)))

    (failed,) = of_type(events, "turn.error")
    assert (failed["code"], failed["retriable"]) == ("APIConnectionError", True)


def test_any_other_exception_is_named_by_its_class() -> None:
    (failed,) = of_type(pushed(START, HostError(KeyError("tool"))), "turn.error")

    assert (failed["message"], failed["code"]) == ("'tool'", "KeyError")


def test_a_stop_from_outside_is_an_abort() -> None:
    events = pushed(START, *text("Half")[:-1], HostAbort("client-closed"))

    assert of_type(events, "turn.abort") == [{"type": "turn.abort", "reason": "client-closed"}]
    sound(events)


# One end


@pytest.mark.parametrize("late", [HostEnd(), HostAbort(), STOP, {"type": "ping"}, START, message()])
def test_nothing_ends_a_turn_twice(late: Any) -> None:
    events = pushed(START, *text("x"), *end(), late, late)

    assert view(sound(events))["turns"][0]["outcome"] == {"type": "success"}


def test_a_late_exception_does_not_take_the_answer_back() -> None:
    events = pushed(START, *text("x"), *end(), HostError(ValueError("late")))

    assert codes(events) == ["ValueError"]
    assert view(sound(events))["turns"][0]["outcome"] == {"type": "success"}


# Streams that break off


@pytest.mark.parametrize("sentinels", [[], [HostEnd()]], ids=["silent", "HostEnd"])
@pytest.mark.parametrize("length", range(8))
def test_a_stream_without_its_last_event_was_cut_off(length: int, sentinels: list[Any]) -> None:
    natives = [START, *text("x"), *block({"type": "tool_use", "id": "c", "name": "n", "input": {}}, index=1), *end()][
        :length
    ]
    events = pushed(*natives, *sentinels)

    if not natives and not sentinels:
        assert events == []
        return
    assert of_type(events, "turn.abort") == [{"type": "turn.abort", "reason": "stream-truncated"}]
    assert not of_type(events, "error")
    sound(events)


def test_a_call_that_was_cut_off_has_no_arguments() -> None:
    deltas = [{"type": "input_json_delta", "partial_json": '{"city": "Os'}]
    natives = [START, *block({"type": "tool_use", "id": "c", "name": "n", "input": {}}, *deltas)[:-1]]
    events = pushed(*natives, HostEnd())

    assert not of_type(events, "tool.args.assembled")
    assert content(events)[0]["input"] == {}


def test_a_snapshot_of_a_broken_stream_is_not_an_answer() -> None:
    events = normalize([message({"type": "text", "text": "Half"}, stop_reason=None)])

    assert of_type(events, "turn.abort")
    assert content(events) == [{"type": "text", "text": "Half"}]


def test_a_message_that_another_one_interrupts_is_reported() -> None:
    other = {"type": "message_start", "message": {**START["message"], "id": "msg_2"}}
    events = pushed(START, *text("Half")[:-1], other, *text("Whole."), *end(), HostEnd(), multi=True)

    assert codes(events) == ["message_truncated"]
    first, second = view(sound(events))["messages"]
    assert (first["content"][0]["text"], second["content"][0]["text"]) == ("Half", "Whole.")


# Streams out of order


def test_a_delta_without_a_start_opens_its_block() -> None:
    events = pushed(
        START, {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "Hi"}}, *end()
    )

    assert content(events) == [{"type": "text", "text": "Hi"}]
    assert not codes(events)


def test_a_delta_of_another_kind_opens_a_block_of_that_kind() -> None:
    one, delta, stop = text("A")
    thinking = {**delta, "delta": {"type": "thinking_delta", "thinking": "B"}}
    events = pushed(START, one, delta, thinking, delta, stop, *end())

    found = content(events)
    assert [each["text"] for each in found] == ["A", "B", "A"]
    assert [each["type"] for each in found] == ["text", "reasoning", "text"]


@pytest.mark.parametrize(
    "native",
    [
        STOP,
        {"type": "message_start"},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_stop", "index": 7},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "message_delta", "delta": {}, "usage": {}},
    ],
)
def test_what_has_no_place_is_carried_whole_and_reported(native: Native) -> None:
    events = pushed(native, START, *text("x"), *end())

    assert of_type(events, FRAME) == [{"type": FRAME, "kind": native["type"], "frame": native}]
    assert codes(events) == ["unexpected_event"]
    assert content(events) == [{"type": "text", "text": "x"}]


def test_the_same_event_twice_is_reported_and_counts_once() -> None:
    start_block, delta, stop_block = text("x")
    call = block({"type": "tool_use", "id": "c", "name": "n", "input": {}}, index=1)
    events = pushed(START, START, start_block, start_block, delta, stop_block, stop_block, call[0], *call, *end())

    assert codes(events) == ["duplicate_event", "duplicate_event", "unexpected_event", "duplicate_event"]
    assert [each["type"] for each in content(events)] == ["text", "tool-call"]


# What is not known yet


def test_an_unknown_event_is_carried_whole() -> None:
    native = {"type": "moon_event", "phase": {"name": "new"}}
    events = pushed(START, native, *text("x"), *end())

    assert of_type(events, FRAME) == [{"type": FRAME, "kind": "moon_event", "frame": native}]
    assert not codes(events)


def test_an_unknown_block_is_shown_at_once_and_stored_whole() -> None:
    native, delta = {"type": "hologram", "data": [1, None]}, {"type": "hologram_delta", "voxels": "AA"}
    natives = [START, *block(native, delta), *end()]
    events = pushed(*natives)

    assert of_type(events, FRAME) == [
        {"type": FRAME, "kind": "hologram", "frame": native},
        {"type": FRAME, "kind": "hologram_delta", "frame": delta},
    ]
    assert content(events) == [
        {"type": "provider-raw", "vendor": "anthropic", "raw": native, "_meta": {"anthropic/deltas": [delta]}}
    ]
    assert of_type(pushed(*natives[:2]), FRAME)


def test_an_unknown_block_without_deltas_is_stored_as_it_came() -> None:
    native = {"type": "hologram", "data": [1, None]}

    assert content(pushed(message(native))) == [{"type": "provider-raw", "vendor": "anthropic", "raw": native}]


def test_an_unknown_delta_of_a_known_block_is_carried_whole() -> None:
    delta = {"type": "emphasis_delta", "emphasis": "strong"}
    events = pushed(START, *block({"type": "text", "text": "x"}, delta), *end())

    assert of_type(events, FRAME)[0]["frame"] == {"type": "content_block_delta", "index": 0, "delta": delta}
    assert codes(events) == ["unexpected_event"]
    assert content(events) == [{"type": "text", "text": "x"}]


def test_unknown_fields_are_carried() -> None:
    start = {"type": "message_start", "message": {**START["message"], "mood": "calm"}, "trace": "t-1"}
    natives = [
        start,
        *block({"type": "text", "text": "x", "language": "en"}, {"type": "text_delta", "text": "y", "volume": 2}),
        *end("end_turn", stop_moon="waxing"),
    ]
    events = pushed(*natives)

    assert [(event["kind"], event["frame"]) for event in of_type(events, FRAME)] == [
        ("message.fields", {"mood": "calm"}),
        ("message_start.fields", {"trace": "t-1"}),
        ("text.fields", {"language": "en"}),
        ("text_delta.fields", {"volume": 2}),
        ("message_delta.delta.fields", {"stop_moon": "waxing"}),
    ]
    assert content(events) == [{"type": "text", "text": "xy"}]


@pytest.mark.parametrize("native", [None, 5, "text", [], {}, {"type": 7}, {"type": None, "x": "kept"}])
def test_what_is_no_event_is_carried_whole(native: Any) -> None:
    events = pushed(START, native, *text("x"), *end())

    (carried,) = of_type(events, "ext.anthropic.unparsed")
    assert carried["raw"] == native
    assert content(events) == [{"type": "text", "text": "x"}]


def test_an_object_that_cannot_be_read_is_carried_as_what_it_is() -> None:
    class Broken:
        @property
        def type(self) -> str:
            raise RuntimeError("no type")

    events = pushed(START, Broken(), *text("x"), *end())

    assert "Broken" in json.dumps(plain(events))
    assert content(events) == [{"type": "text", "text": "x"}]


def test_an_object_that_cannot_even_be_looked_at_is_carried_as_what_it_is() -> None:
    class Sealed:
        __slots__ = ()

        @property
        def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
            raise RuntimeError("sealed")

    events = pushed(START, Sealed(), *text("x"), *end())

    assert "Sealed" in json.dumps(of_type(events, "ext.anthropic.unparsed"))
    assert codes(events) == ["normalizer_error"]
    assert content(events) == [{"type": "text", "text": "x"}]


# Helper events, which say everything twice


def test_helper_events_are_left_out_where_they_repeat() -> None:
    start_block, delta, stop_block = text("Hi")
    helper = {"type": "text", "text": "Hi", "snapshot": "Hi"}
    stops = [{**stop_block, "content_block": {"type": "text", "text": "Hi"}}]
    delta_end, _ = end()
    events = pushed(START, start_block, delta, helper, *stops, delta_end, {**STOP, "message": message()})

    assert content(events) == [{"type": "text", "text": "Hi"}]
    assert not of_type(events, FRAME)


@pytest.mark.parametrize("kind", ["text", "thinking", "signature", "citation", "input_json", "compaction"])
def test_a_helper_event_that_repeats_nothing_is_not_lost(kind: str) -> None:
    native = {"type": kind, "text": "only here"}
    events = pushed(START, native, *text("x"), *end())

    assert of_type(events, FRAME) == [{"type": FRAME, "kind": kind, "frame": native}]


# Settings


def test_the_stop_reason_can_be_asked_for_between_messages() -> None:
    normalizer = AnthropicNormalizer("t", "th", multi=True)
    seen = []
    for native in [START, *text("x"), *end("tool_use")]:
        normalizer.push(native)
        seen.append(normalizer.stop_reason)

    assert seen == [None] * 5 + ["tool_use"]


def test_a_loop_with_an_ask_of_the_host_pauses() -> None:
    normalizer = AnthropicNormalizer("t1", "th", multi=True)
    events = [event for native in [START, *text("x"), *end()] for event in normalizer.push(native)]
    normalizer.out.hitl_ask("approval", message="Go on?")
    events += normalizer.push(HostEnd()) + normalizer.flush()

    (turn,) = view(sound(events))["turns"]
    assert turn["outcome"]["type"] == "paused"
    assert turn["usage"] == {"inputTokens": 10, "outputTokens": 5, "cumulative": True}


def test_the_host_may_say_how_a_loop_has_ended() -> None:
    end_of_loop = HostEnd(outcome=ErrorOutcome(message="too many steps", code="max_iterations"), finish_reason="other")
    events = pushed(START, *text("x"), *end("tool_use"), end_of_loop, multi=True)

    (turn,) = view(sound(events))["turns"]
    assert turn["outcome"] == {"type": "error", "message": "too many steps", "code": "max_iterations"}
    assert turn["finishReason"] == "other"


def test_what_comes_after_the_flush_is_refused_visibly() -> None:
    normalizer = AnthropicNormalizer("t", "th")
    normalizer.flush()

    assert codes(normalizer.push(text("x")[1])) == ["stream_ended"]
