"""Wherever the connection is cut, the caller gets every event once and in order, and the same fold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from agjson import reduce
from agjson.middleware.client import AgentClient, SyncAgentClient
from agjson.wire import from_dict, to_dict
from tests.support.clients import TURN, hello
from tests.support.sse_server import Answer, Request, SSEServer, TurnScript

EVENTS = [from_dict(event, "event") for event in TURN]
RESULT = reduce(EVENTS).result
LENGTH = len(TurnScript(TURN).stream(0))


class Cuts:
    """Serves a fresh `TurnScript` for every byte at which the first answer is cut."""

    def __init__(self, change: Callable[[bytes], bytes] = bytes, **options: object) -> None:
        self.options = options
        self.change = change
        self.script = TurnScript(TURN)

    def at(self, cut: int) -> None:
        self.script = TurnScript(TURN, **self.options)  # type: ignore[arg-type]
        stream = self.change(self.script.stream(0))
        self.script.posts.append(Answer([stream[:cut]], end=self.script.end))
        self.script.began = True
        self.length = len(stream)

    def __call__(self, request: Request) -> Answer:
        answer = self.script(request)
        if request.path.endswith("/events"):
            answer.body = [self.change(part) if isinstance(part, bytes) else part for part in answer.body]
        return answer


async def follow_all(cuts: Cuts, places: range) -> None:
    with SSEServer(cuts) as server:
        async with httpx.AsyncClient(verify=False) as http, AgentClient(server.url, http=http, backoff=0) as client:
            for cut in places:
                cuts.at(cut)
                client.forget("th")
                turn = hello(client)
                assert [event async for event in turn] == EVENTS, cut
                assert turn.result == RESULT, cut
                assert turn.terminal == EVENTS[-1]
                assert turn.resyncs == ()
                assert not turn.needs_resync


def follow_all_sync(cuts: Cuts, places: range) -> None:
    with (
        SSEServer(cuts) as server,
        httpx.Client(verify=False) as http,
        SyncAgentClient(server.url, http=http, backoff=0) as client,
    ):
        for cut in places:
            cuts.at(cut)
            client.forget("th")
            turn = hello(client)
            assert list(turn) == EVENTS, cut
            assert turn.result == RESULT, cut
            assert turn.resyncs == ()


async def test_cut_at_every_byte() -> None:
    await follow_all(Cuts(), range(LENGTH + 1))


async def test_cut_at_every_byte_sync() -> None:
    await asyncio.to_thread(follow_all_sync, Cuts(), range(LENGTH + 1))


@pytest.mark.parametrize("end", ["eof", "reset"])
async def test_a_stream_that_ends_like_a_whole_one_or_by_a_reset(end: str) -> None:
    await follow_all(Cuts(end=end), range(0, LENGTH, 7))


async def test_a_source_that_gives_no_ids_is_read_again_from_the_start() -> None:
    await follow_all(Cuts(ids=False), range(0, len(TurnScript(TURN, ids=False).stream(0)) + 1, 3))


def windows(stream: bytes) -> bytes:
    return b"\xef\xbb\xbf: hello\r\nretry: 0\r\n\r\n" + stream.replace(b"\n", b"\r\n").replace(b"{", b"{ ")


async def test_crlf_a_byte_order_mark_comments_and_retry() -> None:
    cuts = Cuts(windows)
    cuts.at(0)
    await follow_all(cuts, range(0, cuts.length, 5))


async def test_cut_again_and_again() -> None:
    """Each connection brings a few bytes more than one event."""
    script = TurnScript(TURN, posts=[130], reads=[130] * 20)
    with SSEServer(script) as server:
        async with AgentClient(server.url, backoff=0, max_retries=1) as client:
            turn = hello(client)
            assert [to_dict(event) for event in [event async for event in turn]] == TURN
            assert turn.result == RESULT
    assert turn.reconnects == 6
    places = [request.last_event_id for request in server.requests[1:]]
    assert places == sorted(places, key=lambda place: int((place or "t1:-1").partition(":")[2]))
