"""A client of an ASGI app without a socket: responses stream, and the client decides when to read and when to leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from agjson.types import AgStreamEvent
from agjson.wire import decode_event, encode
from agjson.wire.sse import SSEMessage, SSEReader

JSON = {"content-type": "application/json"}


class Exchange:
    """One request and its response. Leaving the ``async with`` is leaving the connection.

    Args:
        app: the ASGI app.
        method: the HTTP method.
        path: the path as a client writes it, percent-encoded, with the query.
        body: the request body; anything but bytes is sent as JSON. A list of bytes is sent in pieces.
        headers: further headers.
        root_path: where a server says that the app is mounted.
        patient: how many chunks the client takes before it stops reading; None: all.
    """

    def __init__(
        self,
        app: Any,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        root_path: str = "",
        patient: int | None = None,
    ) -> None:
        given = dict(headers or {})
        if body is None:
            pieces = [b""]
        elif isinstance(body, bytes):
            pieces = [body]
        elif isinstance(body, list) and body and all(isinstance(piece, bytes) for piece in body):
            pieces = list(body)
        else:
            pieces = [encode(body)]
            given = JSON | given
        raw, _, query = path.partition("?")
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": root_path,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
        }
        self._app = app
        self._requests = [
            {"type": "http.request", "body": piece, "more_body": index < len(pieces) - 1}
            for index, piece in enumerate(pieces)
        ]
        self._gone = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._started = asyncio.Event()
        self._gate = asyncio.Semaphore(patient) if patient is not None else None
        self._task: asyncio.Task[None] | None = None
        self._reader = SSEReader()
        self._unread: list[SSEMessage] = []
        self.status = 0
        self.headers: dict[str, str] = {}
        self.completed = False

    async def __aenter__(self) -> Exchange:
        self._task = asyncio.create_task(self._run())
        async with asyncio.timeout(30):
            await self._started.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Close the connection and wait until the app has noticed."""
        self._gone.set()
        if self._task is not None:
            async with asyncio.timeout(30):
                await self._task

    def more_patience(self, chunks: int) -> None:
        """Take more chunks."""
        assert self._gate is not None
        for _ in range(chunks):
            self._gate.release()

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        finally:
            self._started.set()
            self._chunks.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        if self._requests:
            return self._requests.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
            self._started.set()
            return
        if self._gate is not None:
            await self._gate.acquire()
        if self._gone.is_set():
            return
        if message.get("body"):
            self._chunks.put_nowait(message["body"])
        if not message.get("more_body"):
            self.completed = True

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks of the body, each as it was sent."""
        while True:
            async with asyncio.timeout(30):
                chunk = await self._chunks.get()
            if chunk is None:
                return
            yield chunk

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def json(self) -> Any:
        """The body as plain data."""
        assert self.headers["content-type"] == "application/json", self.headers
        return json.loads(await self.read())

    async def messages(self) -> AsyncIterator[SSEMessage]:
        """The server-sent events, each as soon as it is there."""
        while True:
            while self._unread:
                yield self._unread.pop(0)
            async with asyncio.timeout(30):
                chunk = await self._chunks.get()
            if chunk is None:
                self._chunks.put_nowait(None)
                return
            self._unread += self._reader.feed(chunk)

    async def events(self, count: int | None = None) -> list[AgStreamEvent]:
        """The events to the end, or so many of them."""
        events: list[AgStreamEvent] = []
        async with asyncio.timeout(60):  # a stream that says nothing but that it is there goes on for ever
            async for message in self.messages():
                events.append(decode_event(message.data))
                if len(events) == count:
                    break
        return events


async def request(app: Any, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
    """A request: the status, and the JSON body; None where there is none, the text where it is something else."""
    async with Exchange(app, method, path, body, **options) as exchange:
        answer = await exchange.read()
        is_json = exchange.headers.get("content-type") == "application/json"
        return exchange.status, json.loads(answer) if is_json and answer else answer.decode() or None


async def run(app: Any, ag_input: Any, path: str = "/", **options: Any) -> list[AgStreamEvent]:
    """One run, read to its end."""
    async with Exchange(app, "POST", path, ag_input, **options) as exchange:
        assert exchange.status == 200, (exchange.status, await exchange.read())
        return await exchange.events()


def thread_path(thread_id: str, *rest: str) -> str:
    """The path of a thread, or of something of it."""
    return "/".join(["/threads", *(quote(part, safe="") for part in (thread_id, *rest))])
