"""What the adapter finds in recorded HTTP traffic (`Adapter.recorded`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agjson.adapters.anthropic import ADAPTER
from agjson.normalizer import HostError
from agjson.testing.cassettes import Exchange, read_cassette
from tests.support.anthropic_wire import AUTHORED, Native, end, message, normalize, sound
from tests.support.corpus import require_corpus

URI = "https://api.anthropic.com/v1/messages"


def exchange(body: Any, *, uri: str = URI, status: int = 200, method: str = "POST") -> Exchange:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(method=method, uri=uri, request=b"{}", status=status, headers={}, body=text)


def natives(found: Exchange) -> list[Any]:
    recorded = ADAPTER.recorded(found)
    assert recorded is not None
    return list(recorded)


@pytest.mark.parametrize("uri", [URI, f"{URI}?beta=true", "https://gateway.example/anthropic/v1/messages", ""])
def test_a_message_is_found(uri: str) -> None:
    assert natives(exchange(message(), uri=uri)) == [message()]


def test_a_stream_is_found_event_by_event() -> None:
    events = end()
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    assert natives(exchange(body.encode())) == events


@pytest.mark.parametrize(
    "other",
    [
        exchange(message(), uri="https://api.anthropic.com/v1/messages/count_tokens"),
        exchange(message(), uri="https://api.anthropic.com/v1/files"),
        exchange(message(), method="GET"),
        exchange({"object": "response", "output": [{"type": "message"}]}, uri=""),
        exchange({"candidates": []}, uri="https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"),
        exchange(b"", uri=""),
    ],
)
def test_any_other_request_is_none(other: Exchange) -> None:
    assert ADAPTER.recorded(other) is None


def test_a_failed_request_is_the_error_that_the_provider_sent() -> None:
    body: Native = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    assert natives(exchange(body, status=529)) == [body]


@pytest.mark.parametrize(("status", "retriable"), [(502, True), (429, True), (404, False)])
@pytest.mark.parametrize("body", [b"<html>", b"", b"[1, 2]", b'{"detail": "no"}'])
def test_a_failed_request_without_an_error_body_is_still_an_error(body: bytes, status: int, retriable: bool) -> None:
    (error,) = natives(exchange(body, status=status))

    assert isinstance(error, HostError)
    assert (error.code, error.retriable) == (f"http_{status}", retriable)


@pytest.mark.parametrize(("body", "code"), [(b"", "empty_response"), (b"{not json", "malformed_response")])
def test_a_body_that_cannot_be_read_is_an_error(body: bytes, code: str) -> None:
    (error,) = natives(exchange(body))
    events = normalize([error])

    assert isinstance(error, HostError)
    assert error.code == code
    assert events[-1].type == "turn.error"
    sound(events)


def test_two_requests_of_one_file_are_two_answers() -> None:
    found = [ADAPTER.recorded(each) for each in read_cassette(AUTHORED / "authored--computer-use.yaml")]

    assert len(found) == 2
    assert None not in found


@pytest.mark.corpus
def test_requests_to_other_providers_are_left_out() -> None:
    path = require_corpus() / "cassettes" / "anthropic" / "pydantic-ai--thinking-part-from-other-model.yaml"
    found = [ADAPTER.recorded(each) is not None for each in read_cassette(path)]

    assert sorted(found) == [False, True]
