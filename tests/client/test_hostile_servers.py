"""A server that means harm: it costs bounded memory and time, ends in a typed error, and learns no credential."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from typing import Any

import httpx
import pytest

from agjson.middleware.client import ConnectionLostError, RequestError, StreamError, SyncAgentClient
from agjson.middleware.client._bodies import Unpacker
from tests.support.clients import KINDS, TURN, Kind, attach, follow, hello
from tests.support.sse_server import STREAM, Answer, Request, SSEServer, TurnScript, error, json_answer

by_kind = pytest.mark.parametrize("kind", KINDS)
SECRET = "s3cr3t"


def packed(data: bytes, encoding: str) -> bytes:
    packer = zlib.compressobj(9, wbits={"gzip": 31, "x-gzip": 31, "deflate": 15, "raw": -15}[encoding])
    return packer.compress(data) + packer.flush()


# Bodies


@by_kind
@pytest.mark.parametrize("status", [200, 500])
async def test_a_short_answer_that_unpacks_to_a_long_one_does_not_fill_the_memory(kind: Kind, status: int) -> None:
    bomb = packed(b": " + bytes(300_000_000), "gzip")
    assert len(bomb) < 300_000
    tracemalloc.start()
    with SSEServer(lambda _: Answer([bomb], status, {**STREAM, "content-encoding": "gzip"})) as server:
        followed = await follow(kind, server.url, max_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert followed.code == ("too_large" if status == 200 else "http_500")
    assert peak < 20_000_000


@by_kind
@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "identity, gzip"])
async def test_an_answer_packed_in_another_way_is_not_unpacked(kind: Kind, encoding: str) -> None:
    body = gzip.compress(gzip.compress(TurnScript(TURN).stream(0)))
    with SSEServer(lambda _: Answer([body], 200, {**STREAM, "content-encoding": encoding})) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, StreamError)
    assert (followed.code, followed.error.status) == ("unsupported_encoding", 200)
    assert followed.events == []
    # It was not asked for either.
    assert {request.headers["accept-encoding"] for request in server.requests} == {"gzip, deflate"}


@by_kind
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "raw"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_packed_streams_are_read_however_they_are_cut(kind: Kind, encoding: str, size: int) -> None:
    body = packed(TurnScript(TURN).stream(0), encoding)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    named = "deflate" if encoding == "raw" else encoding
    with SSEServer(lambda _: Answer(pieces, 200, {**STREAM, "content-encoding": named})) as server:
        followed = await follow(kind, server.url)
    assert (followed.error, followed.events) == (None, TURN)


def test_what_a_body_unpacks_to_comes_in_pieces_and_whole() -> None:
    data = b"".join(b"%d," % number for number in range(200_000)) + bytes(1_000_000)
    two = packed(data, "gzip") + packed(b"the second member", "gzip")
    pieces = list(Unpacker("gzip", 200).feed(two))
    assert b"".join(pieces) == data + b"the second member"
    assert max(map(len, pieces)) == 64 * 1024
    assert b"".join(Unpacker("deflate", 200).feed(packed(data, "deflate") + b"what follows")) == data
    assert list(Unpacker("", 200).feed(b"")) == []


def test_an_answer_that_a_transport_has_read_is_read_all_the_same() -> None:
    stream = TurnScript(TURN).stream(0)
    answer = httpx.Response(200, content=gzip.compress(stream), headers={**STREAM, "content-encoding": "gzip"})
    with httpx.Client(transport=httpx.MockTransport(lambda _: answer)) as http:
        assert len(list(hello(SyncAgentClient("http://agent", http=http)))) == len(TURN)


# Redirects


def redirected(base: str, location: str, **headers: str) -> tuple[list[httpx.Request], Any]:
    """The requests of a client whose first one is redirected, and how it ended."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if len(requests) == 1:
            return httpx.Response(307, headers={"location": location})
        return httpx.Response(200, content=TurnScript(TURN).stream(0), headers=STREAM)

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        client = SyncAgentClient(base, http=http, headers=headers, max_retries=0)
        try:
            ended: Any = len(list(hello(client)))
        except (RequestError, ConnectionLostError) as raised:
            ended = raised
    return requests, ended


@pytest.mark.parametrize(
    ("base", "location"),
    [
        ("http://agent.example/", "https://agent.example:8443/"),
        ("http://agent.example:8000/", "https://agent.example/"),
        ("http://agent.example:8000/", "http://agent.example:8001/"),
        ("https://agent.example/", "http://agent.example/"),
        ("https://agent.example/", "https://agent.example.evil.example/"),
        ("https://agent.example/", "//evil.example/"),
        ("https://agent.example/", "https://agent.example@evil.example/"),
        ("https://agent.example/", "https://agent.example\\@evil.example/"),
        ("https://agent.example/", "https://agent.example:99999999/"),
        ("https://agent.example/", "https://[::1/"),
    ],
)
def test_credentials_go_to_no_other_origin(base: str, location: str) -> None:
    requests, ended = redirected(base, location, authorization=f"Bearer {SECRET}")
    assert len(requests) == 1
    assert isinstance(ended, (RequestError, ConnectionLostError))
    assert SECRET not in str(ended)


@pytest.mark.parametrize(
    ("base", "location", "reached"),
    [
        ("http://agent.example/", "https://agent.example/run", "https://agent.example/run"),
        ("http://agent.example/", "https://agent.example:443/run", "https://agent.example/run"),
        ("http://agent.example:80/", "http://AGENT.example/run", "http://agent.example/run"),
        ("https://agent.example/a/", "../b", "https://agent.example/b"),
    ],
)
def test_a_redirect_to_the_same_server_keeps_them(base: str, location: str, reached: str) -> None:
    requests, ended = redirected(base, location, authorization=f"Bearer {SECRET}")
    assert ended == len(TURN)
    assert str(requests[1].url) == reached
    assert requests[1].headers["authorization"] == f"Bearer {SECRET}"


def test_a_password_in_the_address_stays_with_the_server_and_out_of_messages() -> None:
    requests, ended = redirected(f"https://user:{SECRET}@agent.example/", "https://mallory:x@agent.example/run")
    assert ended == len(TURN)
    assert requests[1].headers["authorization"] == requests[0].headers["authorization"]
    for location in ("https://evil.example/?code=1", f"https://{SECRET}:{SECRET}@evil.example/"):
        _, ended = redirected(f"https://user:{SECRET}@agent.example/", location)
        assert "https://evil.example/, which is not followed" in str(ended)
        assert SECRET not in str(ended) and "code=1" not in str(ended)


# Events and answers


@by_kind
@pytest.mark.parametrize("large", [False, True])
async def test_malformed_events_are_skipped_up_to_a_limit(kind: Kind, large: bool) -> None:
    bad = {"type": "text.delta", "seq": 3, "delta": "x" * 30_000 if large else "x"}
    body = b"data: " + json.dumps(TURN[0]).encode() + b"\n\n" + (b"data: " + json.dumps(bad).encode() + b"\n\n") * 2000
    with SSEServer(lambda _: Answer([body])) as server:
        followed = await follow(kind, server.url, on_malformed="skip", max_bytes=1_000_000)
    assert isinstance(followed.error, StreamError)
    assert (followed.code, followed.error.message) == ("malformed_event", "too many events are malformed")
    assert len(followed.turn.skipped) == (33 if large else 1000)


SNAPSHOT = {"type": "messages.snapshot", "seq": 0, "messages": []}


@by_kind
@pytest.mark.parametrize(
    "body",
    [
        {"threadId": "th", "events": []},
        {"threadId": "th", "events": [TURN[0], TURN[-1]]},
        {"threadId": "th", "events": [{**SNAPSHOT, "messages": [{"id": "m"}]}]},
        {"threadId": "th", "turnId": 7, "events": [SNAPSHOT]},
        {"threadId": "th", "events": [SNAPSHOT], "pending": {"asks": [{}]}},
        [],
        "x",
    ],
    ids=repr,
)
async def test_a_snapshot_that_is_none_is_an_error(kind: Kind, body: Any) -> None:
    with SSEServer(lambda _: json_answer(body)) as server:
        followed = await follow(kind, server.url, attach())
    assert isinstance(followed.error, StreamError)
    assert followed.code == "malformed_answer"
    assert len(server.log) == 1


@by_kind
@pytest.mark.parametrize("status", [409, 410, 204])
async def test_a_server_that_sends_back_and_forth_is_left(kind: Kind, status: int) -> None:
    """The input exists, its events do not, the thread has the turn, and so on without end."""

    def script(request: Request) -> Answer:
        if request.method == "POST":
            return error(409, "turn_exists", turnId="t1")
        if request.path.endswith("/events"):
            return Answer([], 204, {}) if status == 204 else error(status, "resync_required")
        return json_answer({"threadId": "th", "turnId": "t1", "lastEventId": None, "events": [SNAPSHOT]})

    with SSEServer(script) as server:
        followed = await follow(kind, server.url, max_retries=3)
    assert isinstance(followed.error, (RequestError, ConnectionLostError))
    assert followed.code == ("turn_exists" if status == 204 else "resync_required")
    assert len(server.log) <= 10


@by_kind
async def test_ids_that_no_address_can_hold_are_typed_errors(kind: Kind) -> None:
    begun = b"data: " + json.dumps({**TURN[0], "turnId": "\ud800"}).encode() + b"\n\n"
    with SSEServer(lambda request: Answer([begun]) if request.method == "POST" else error(403, "forbidden")) as server:
        followed = await follow(kind, server.url)
    assert followed.code == "forbidden"
    assert server.log[1] == "GET /threads/th/events?turnId=%ED%A0%80"
    followed = await follow(kind, "http://127.0.0.1:1", lambda client: client.attach("x" * 100_000))
    assert isinstance(followed.error, RequestError)
    assert followed.code == "invalid_address"
