"""An agent behind `AgentApp` over loopback, against a bare Starlette stream of the same chunks under the same server.

Time is what the server's process used, all its threads: its client, on another core, does not count.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

from agjson import AgMessage, StartInput, TextBlock, encode
from benchmarks.measure import Effort, Row
from benchmarks.streams import WORDS

GROUP = "http"
ROUNDS = 7
OPEN = 1_000
ROOT = Path(__file__).resolve().parents[1]

# Each app: the store, and over how many seconds deltas are joined.
APPS = {"memory": ("memory", 0.0), "sqlite": ("sqlite", 0.0), "joined": ("memory", 0.05)}
# Seconds between the words of a stream whose events go out one by one.
PACE = 0.002
AIM = 1.3


def rows(effort: Effort) -> Iterator[Row]:
    fast, slow = effort.events, effort.events // 40
    works = {
        "bare": ("/bare", fast, 0.0),
        "by hand": ("/by-hand", fast, 0.0),
        "memory": ("/agent/memory", fast, 0.0),
        "sqlite": ("/agent/sqlite", fast, 0.0),
        "joined": ("/agent/joined", fast, 0.0),
        "bare, slow": ("/bare", slow, PACE),
        "by hand, slow": ("/by-hand", slow, PACE),
        "memory, slow": ("/agent/memory", slow, PACE),
        "sqlite, slow": ("/agent/sqlite", slow, PACE),
    }
    times = dict.fromkeys(works, float("inf"))
    with tempfile.TemporaryDirectory() as folder, _Server(folder) as server:
        server.record(fast)
        for _ in range(min(ROUNDS, effort.rounds)):
            for name, (path, events, pace) in works.items():
                times[name] = min(times[name], server.stream(path, events, pace) / events)

    def row(what: str, work: str, floor: str, words: str, aim: float | None = None) -> Row:
        cost = f"{times[work] * 1e6:.2f} us"
        return Row(GROUP, what, times[work] / times[floor], aim, cost, f"{words} ({times[floor] * 1e6:.2f} us)")

    bare, by_hand = "Starlette sending the same events, ready-made", "Starlette sending the events of the same agent"
    yield row("events as fast as they come, in memory", "memory", "bare", bare, AIM)
    yield row("events as fast as they come, in SQLite", "sqlite", "bare", bare, AIM)
    yield row("the same agent, in memory", "memory", "by hand", by_hand)
    yield row("an event each 2 ms, in memory", "memory, slow", "bare, slow", bare)
    yield row("an event each 2 ms, in SQLite", "sqlite, slow", "bare, slow", bare)
    yield row("the same agent each 2 ms, in memory", "memory, slow", "by hand, slow", by_hand)
    yield row("deltas of 50 ms joined, for each that came", "joined", "memory", "the same without joining")
    yield from _open_streams(effort)


def _open_streams(effort: Effort) -> Iterator[Row]:
    count = min(OPEN, effort.events // 4)
    sizes: dict[str, float] = {}
    for kind in ("bare", "run", "reader"):
        with tempfile.TemporaryDirectory() as folder, _Server(folder) as server:
            sizes[kind] = server.open(kind, count)
    for kind, name in (("run", f"{count:,} open runs, each read by one"), ("reader", f"{count:,} readers of one run")):
        yield Row(
            GROUP,
            f"{name}, memory of each",
            sizes[kind] / sizes["bare"],
            None,
            f"{sizes[kind] / 1e3:.1f} kB",
            f"an open stream of Starlette ({sizes['bare'] / 1e3:.1f} kB)",
        )


class _Server:
    """uvicorn in a process of its own, and what is measured there.

    Args:
        folder: where it keeps its store.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._turns = 0

    def __enter__(self) -> _Server:
        with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
            self._port: int = listener.getsockname()[1]
            number = listener.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.bench_http", str(number), self._folder], cwd=ROOT, pass_fds=[number]
            )
        self._told("used")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def record(self, events: int) -> None:
        """Stream once, and keep the events for the floor."""
        self._read("/record/memory", events, 0.0)

    def stream(self, path: str, events: int, pace: float) -> float:
        """The processor time in seconds of one stream of deltas."""
        before = self._told("used")
        self._read(path, events, pace)
        return self._told("used") - before

    def open(self, kind: str, count: int) -> float:
        """The bytes that an open stream takes, of many of a kind."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < count + 100:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 100, hard), hard))
        streams = [self._opened(kind) for _ in range(20)]
        before = self._told("memory")
        streams += [self._opened(kind) for _ in range(count)]
        size = (self._told("memory") - before) / count
        for stream in streams:
            stream.close()
        return size

    def _opened(self, kind: str) -> socket.socket:
        """A stream that has begun, and says nothing more."""
        self._turns += 1
        connection = socket.create_connection(("127.0.0.1", self._port))
        if kind == "reader" and self._turns > 1:
            connection.sendall(b"GET /agent/memory/threads/thread-1/events HTTP/1.1\r\nHost: a\r\n\r\n")
        else:
            path, body = ("/hang", b"") if kind == "bare" else ("/agent/memory/", _start(self._turns, 0, 0.0))
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            connection.sendall(b"%b\r\n\r\n%b" % (head.encode(), body))
        heard = b""
        while b"text.delta" not in heard:
            heard += connection.recv(65536)
        return connection

    def _read(self, path: str, events: int, pace: float) -> None:
        self._turns += 1
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=300)
        connection.request("POST", f"{path}/", _start(self._turns, events, pace), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        last = b""
        while chunk := answer.read1(1 << 20):
            last = last[-1000:] + chunk
        assert b"turn.done" in last
        connection.close()

    def _told(self, what: str) -> float:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request("GET", f"/{what}")
        told: float = json.loads(connection.getresponse().read())
        connection.close()
        return told


def _start(number: int, events: int, pace: float) -> bytes:
    """A start on a thread of its own. The agent says so many deltas; none: it begins and then waits for ever."""
    said = AgMessage(id=f"said-{number}", role="user", content=[TextBlock(text=f"{events} {pace}")])
    return encode(StartInput(thread_id=f"thread-{number}", turn_id=f"turn-{number}", messages=[said]))


def _told(message: AgMessage) -> tuple[int, float]:
    block: Any = message.content[0]
    events, pace = block.text.split()
    return int(events), float(pace)


# The server


def _app(folder: str) -> Any:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, StreamingResponse

    from agjson.agents import Agent, Invocation, NormalizerSettings
    from agjson.middleware.asgi import AgentApp
    from agjson.normalizer import Normalizer
    from agjson.stores import SQLiteThreadStore
    from agjson.wire import decode_input
    from agjson.wire.sse import encode_sse_event

    class WordsNormalizer(Normalizer):
        def _on(self, native: object) -> None:
            self.out.text_delta("words", str(native))

    class WordsAgent(Agent):
        """Says as many words as it is told, each in a turn of the loop of its own, as a provider's client would."""

        def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> Normalizer:
            return WordsNormalizer(**settings)

        async def _invoke(self, invocation: Invocation) -> AsyncIterator[str]:
            events, pace = _told(invocation.messages[-1])
            for index in range(events or 1):
                await asyncio.sleep(pace)
                yield WORDS[index % len(WORDS)]
            if not events:
                await asyncio.sleep(3600)

    apps = {
        name: AgentApp(
            WordsAgent(),
            store=SQLiteThreadStore(Path(folder) / "threads.db") if store == "sqlite" else None,
            coalesce=window,
            max_runs=10_000,
        )
        for name, (store, window) in APPS.items()
    }
    agent = WordsAgent()
    recorded: list[bytes] = []

    async def bare(body: bytes) -> AsyncIterator[bytes]:
        events, pace = _told(cast(StartInput, decode_input(body)).messages[0])
        *first, last = recorded
        for event in (*first[:events], last):
            await asyncio.sleep(pace)
            yield event

    async def by_hand(body: bytes) -> AsyncIterator[bytes]:
        async for event in agent.run(decode_input(body)):
            yield encode_sse_event(event)

    async def hanging(_: bytes) -> AsyncIterator[bytes]:
        yield b'data: {"type":"text.delta"}\n\n'
        await asyncio.sleep(3600)

    by_starlette = {"bare": bare, "by-hand": by_hand, "hang": hanging}
    figures = {"used": time.process_time, "memory": _resident}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        _, what, *rest = scope["path"].split("/")
        if what in ("agent", "record"):
            chunks: list[bytes] = []
            sending = send if what == "agent" else _recording(send, chunks)
            await apps[rest[0]]({**scope, "root_path": f"/{what}/{rest[0]}"}, receive, sending)
            recorded.extend(event + b"\n\n" for event in b"".join(chunks).split(b"\n\n")[:-1])
            return
        response: Any
        if what in by_starlette:
            body = await Request(scope, receive).body()
            response = StreamingResponse(by_starlette[what](body), media_type="text/event-stream")
        else:
            response = JSONResponse(figures[what]())
        await response(scope, receive, send)

    return app


def _recording(send: Any, chunks: list[bytes]) -> Any:
    async def record(message: Any) -> None:
        if message.get("body"):
            chunks.append(message["body"])
        await send(message)

    return record


def _resident() -> int:
    import gc

    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _serve(number: int, folder: str) -> None:
    import uvicorn

    config = uvicorn.Config(_app(folder), log_level="warning", lifespan="off", ws="none")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=number)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
