"""A client of a server in another process: streams read an event at a time, and folds of what came."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from agjson.fold import Reducer
from agjson.types import StartInput
from agjson.wire import encode, from_dict, ingest_event, to_dict
from agjson.wire.sse import SSEReader
from tests.support.http_server import Server
from tests.support.scripted import said

HEADERS = {"content-type": "application/json"}


def start(words: str, turn: str = "t", thread: str = "th") -> StartInput:
    return StartInput(thread_id=thread, turn_id=turn, messages=[said(words, f"u-{turn}")])


class Stream:
    """The events of a response, read one at a time."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._reader = SSEReader()
        self._chunks = response.iter_raw()
        self._unread: list[Any] = []
        self.last_id = ""

    def read(self, count: int | None = None) -> list[Any]:
        """So many events, or all that come."""
        events: list[Any] = []
        while count is None or len(events) < count:
            if not self._unread:
                chunk = next(self._chunks, None)
                if chunk is None:
                    break
                self._unread += self._reader.feed(chunk)
                continue
            message = self._unread.pop(0)
            self.last_id = message.last_event_id
            events.append(ingest_event(message.data))
        return events


@contextmanager
def streaming(server: Server, method: str, path: str, body: Any = None, **options: Any) -> Iterator[Stream]:
    content = None if body is None else encode(body)
    headers = {**(HEADERS if body is not None else {}), **options.pop("headers", {})}
    with (
        httpx.Client(base_url=server.url, timeout=60) as client,
        client.stream(method, path, content=content, headers=headers, **options) as response,
    ):
        if response.status_code != 200:
            response.read()
        assert response.status_code == 200, response.text
        yield Stream(response)


def folded(*streams: Sequence[Any]) -> Any:
    reducer = Reducer()
    for stream in streams:
        assert [event.seq for event in stream] == list(range(len(stream)))
        for event in stream:
            reducer.push(event)
    assert not reducer.needs_resync, reducer.resync_reason
    return to_dict(reducer.result())


def stored(server: Server, thread: str = "th") -> Any:
    reducer = Reducer()
    for event in httpx.get(f"{server.url}/threads/{thread}", timeout=30).json()["events"]:
        reducer.push(from_dict(event, as_="event"))
    return to_dict(reducer.result())


def post(server: Server, ag_input: Any, **headers: str) -> list[Any]:
    """One run, read to its end."""
    with streaming(server, "POST", "/", ag_input, headers=headers) as stream:
        return stream.read()


def refusal(server: Server, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    """The status of an answer without a stream, and the code where it is a refusal."""
    content = None if body is None else encode(body)
    answer = httpx.request(method, f"{server.url}{path}", content=content, headers={**HEADERS, **headers}, timeout=60)
    told = json.loads(answer.content or b"{}")
    return answer.status_code, told.get("error", {}).get("code", "")


class Connection:
    """A connection of which every byte is in the test's hands.

    Args:
        port: the server's.
        buffer: how many bytes the system takes in while nobody reads; None: as it likes.
    """

    def __init__(self, port: int, buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        """Send a request and read nothing."""
        content = b"" if body is None else encode(body)
        given = {"host": "test", **HEADERS, "content-length": str(len(content)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content)

    def answer(self) -> http.client.HTTPResponse:
        """The head of the answer."""
        response = http.client.HTTPResponse(self.socket)
        response.begin()
        return response

    def events(self) -> list[Any]:
        """The events of the answer, to its end."""
        response = self.answer()
        assert response.status == 200
        return [ingest_event(message.data) for message in SSEReader().feed(response.read())]

    def close(self, *, by_reset: bool = False) -> None:
        """Close it, orderly or as a machine that is gone."""
        if by_reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()
