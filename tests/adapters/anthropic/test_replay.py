"""Recordings played back to the real client, without a network: its objects make the events that the wire makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from agjson.adapters.anthropic import ADAPTER, AnthropicNormalizer
from agjson.middleware.anthropic import wrap, wrap_message_stream
from agjson.normalizer import HostEnd
from agjson.testing.cassettes import Exchange, read_cassette, replay
from agjson.types import AgStreamEvent
from tests.support.anthropic_wire import (
    AUTHORED,
    ids_of,
    normalize,
    plain,
    read_recordings,
    recording_files,
    sound,
    strings,
    view,
)
from tests.support.corpus import corpus_path, require_corpus

# The recordings that the first slice of the adapter was built on.
FIRST = (
    "mirascope--call-with-thinking-anthropic-beta-async-stream",
    "pydantic-ai--thinking-part-stream",
    "langchain--agent-loop-streaming",
    "llm--tools",
    "pydantic-ai--anthropic-tool-with-thinking",
)


CLIENT: dict[str, Any] = {"api_key": "dummy", "max_retries": 0}


def cassettes() -> list[Any]:
    """Every recording of HTTP traffic as a parameter."""
    params = [
        pytest.param(path, id=path.stem, marks=() if path.parent == AUTHORED else (pytest.mark.corpus,))
        for path in recording_files()
        if path.suffix == ".yaml"
    ]
    return (
        params if corpus_path() is not None else [*params, pytest.param(None, id="no-corpus", marks=pytest.mark.corpus)]
    )


def requests_of(path: Path) -> list[Exchange]:
    """The recorded requests for a message, in order."""
    return [exchange for exchange in read_cassette(path) if ADAPTER.recorded(exchange) is not None]


# The least that the client asks for: which answer comes is decided by the order.
REQUEST: dict[str, Any] = {"model": "claude-test", "max_tokens": 1024, "messages": [{"role": "user", "content": "x"}]}


def messages_of(client: Any, beta: bool) -> Any:
    return client.beta.messages if beta else client.messages


def expected(path: Path, number: int, known: frozenset[str]) -> list[AgStreamEvent]:
    return normalize(read_recordings(path)[number].natives, known_ids=known)


def known_before(path: Path, number: int) -> frozenset[str]:
    """The ids that the answers before this one have used."""
    known: set[str] = set()
    for earlier, recording in enumerate(read_recordings(path)[:number]):
        known |= ids_of(normalize(recording.natives), f"t0-{earlier}")
    return frozenset(known)


def answers(path: Path) -> Iterator[tuple[int, Exchange, frozenset[str]]]:
    """The answers that the client reads as a message or a stream of the Messages API."""
    for number, exchange in enumerate(requests_of(path)):
        yield number, exchange, known_before(path, number)


def same(events: list[AgStreamEvent], path: Path, number: int, known: frozenset[str]) -> None:
    """The client's objects say what the wire says."""
    assert plain(events) == plain(expected(path, number, known))
    sound(events, known)


@pytest.mark.parametrize("path", cassettes())
@pytest.mark.parametrize("beta", [False, True], ids=["plain", "beta"])
def test_the_client_makes_the_same_events_as_the_wire(path: Path, beta: bool) -> None:
    with replay(path), anthropic.Anthropic(**CLIENT) as client:
        for number, exchange, known in answers(path):
            if exchange.streamed:
                stream = messages_of(client, beta).create(**REQUEST, stream=True)
                same(list(wrap(stream, turn_id="t1", thread_id="th", known_ids=known)), path, number, known)
            else:
                try:
                    native: Any = messages_of(client, beta).create(**REQUEST)
                except anthropic.APIStatusError as error:
                    assert exchange.status == error.status_code
                    continue
                same(normalize([native], known_ids=known), path, number, known)


def first(streamed: bool) -> list[Any]:
    """Answers of the first recordings: file, number of the answer, and the same among the streams of the file."""
    params: list[Any] = []
    corpus = corpus_path()
    for stem in FIRST if corpus is not None else ():
        assert corpus is not None
        path = corpus / "cassettes" / "anthropic" / f"{stem}.yaml"
        if all(exchange.streamed == streamed for exchange in requests_of(path)):
            params.append(pytest.param(path, id=stem, marks=pytest.mark.corpus))
    return params or [pytest.param(None, id="no-corpus", marks=pytest.mark.corpus)]


def test_the_first_recordings_are_four_streams_and_one_that_is_none() -> None:
    if corpus_path() is not None:
        assert (len(first(streamed=True)), len(first(streamed=False))) == (4, 1)


@pytest.mark.parametrize("beta", [False, True], ids=["plain", "beta"])
@pytest.mark.parametrize("path", first(streamed=True))
async def test_the_asynchronous_client_makes_the_same_events(path: Path, beta: bool) -> None:
    with replay(path):
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            for number, _, known in answers(path):
                pending = messages_of(client, beta).create(**REQUEST, stream=True)
                events = [event async for event in wrap(pending, turn_id="t1", thread_id="th", known_ids=known)]
                same(events, path, number, known)


@pytest.mark.parametrize("beta", [False, True], ids=["plain", "beta"])
@pytest.mark.parametrize("path", first(streamed=True))
async def test_the_helper_streams_make_the_same_events(path: Path, beta: bool) -> None:
    settings: Any = {"turn_id": "t1", "thread_id": "th"}
    with replay(path), anthropic.Anthropic(**CLIENT) as client:
        for number, _, known in answers(path):
            with messages_of(client, beta).stream(**REQUEST) as stream:
                same(list(wrap_message_stream(stream, known_ids=known, **settings)), path, number, known)
                assert stream.get_final_message().id == read_recordings(path)[number].natives[0]["message"]["id"]
    with replay(path):
        async with anthropic.AsyncAnthropic(**CLIENT) as async_client:
            for number, _, known in answers(path):
                async with messages_of(async_client, beta).stream(**REQUEST) as async_stream:
                    wrapped = wrap_message_stream(async_stream, known_ids=known, **settings)
                    same([event async for event in wrapped], path, number, known)
                    final = await async_stream.get_final_message()
                    assert final.stop_reason is not None


@pytest.mark.parametrize("path", first(streamed=False))
async def test_the_asynchronous_client_makes_the_same_messages(path: Path) -> None:
    with replay(path):
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            for number, _, known in answers(path):
                native = await client.messages.create(**REQUEST)
                same(normalize([native], known_ids=known), path, number, known)


@pytest.mark.corpus
def test_what_the_next_request_echoes_is_in_the_fold() -> None:
    """Signatures and ids of the answers are those that the recorded client sent back in its next request."""
    corpus = require_corpus()
    echoed = 0
    for stem in FIRST:
        path = corpus / "cassettes" / "anthropic" / f"{stem}.yaml"
        recordings = read_recordings(path)
        for number, exchange in enumerate(requests_of(path)):
            sent = json.loads(exchange.request)["messages"]
            stored = {
                text
                for earlier in range(number)
                for text in strings(view(sound(normalize(recordings[earlier].natives))))
            }
            for message in sent:
                for part in message["content"] if isinstance(message["content"], list) else ():
                    for name in ("signature", "id"):
                        if message["role"] == "assistant" and part.get(name):
                            assert part[name] in stored
                            echoed += 1
    assert echoed >= 5


def test_an_object_of_the_client_may_be_pushed_by_hand() -> None:
    path = AUTHORED / "authored--fallback.yaml"
    with replay(path), anthropic.Anthropic(**CLIENT) as client:
        normalizer = AnthropicNormalizer("t1", "th")
        events: list[AgStreamEvent] = []
        for native in client.beta.messages.create(**REQUEST, stream=True):
            events += normalizer.push(native)
        events += normalizer.push(HostEnd()) + normalizer.flush()

    assert plain(events) == plain(expected(path, 0, frozenset()))
