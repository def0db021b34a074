"""A server on this machine that speaks the protocol of AgJSON over HTTP, and misbehaves as a script says."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from agjson.fold import reduce, snapshot
from agjson.wire import from_dict, to_dict
from agjson.wire.sse import event_id, parse_event_id
from tests.support.listener import Listener

Wire = dict[str, Any]
End = Literal["whole", "cut", "reset", "eof"]
"""How an answer ends: as it should, before its last chunk, by a reset, or by a close where no length tells the end."""

STREAM = {"content-type": "text/event-stream"}


@dataclass
class Request:
    """A request that came in.

    Attributes:
        method: its method.
        target: path and query, as sent.
        headers: its headers, names in lower case.
        raw: its body.
    """

    method: str
    target: str
    headers: dict[str, str]
    raw: bytes

    @property
    def path(self) -> str:
        """The path, still escaped."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """The query, unescaped."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def body(self) -> Wire:
        """The body as JSON."""
        data: Wire = json.loads(self.raw)
        return data

    @property
    def last_event_id(self) -> str | None:
        """The place from which the client wants events."""
        return self.headers.get("last-event-id") or self.query.get("lastEventId")

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


@dataclass
class Answer:
    """What is sent for a request.

    Attributes:
        body: bytes in the order of sending; a number is seconds to wait, an `Event` is waited for.
        status: the HTTP status.
        headers: the headers.
        end: how it ends.
        unread: close without an answer.
    """

    body: Sequence[bytes | float | threading.Event] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(STREAM))
    end: End = "whole"
    unread: bool = False


DROP = Answer(unread=True)
"""The connection is closed without a byte."""


def json_answer(body: object, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON; underscores in the names of headers become hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer([json.dumps(body).encode()], status, {"content-type": "application/json", **named})


def error(status: int, code: str, message: str = "no", headers: dict[str, str] | None = None, **more: Any) -> Answer:
    """An error in the form of the protocol."""
    answer = json_answer({"error": {"code": code, "message": message, **more}}, status)
    answer.headers.update(headers or {})
    return answer


def html(status: int) -> Answer:
    """An error page of something that stands before the server."""
    return Answer([b"<html><script>alert('secret')</script></html>"], status, {"content-type": "text/html"})


def frame(event: Wire, turn_id: str | None) -> bytes:
    """One event as a server writes it; without a turn it gets no id."""
    head = b"" if turn_id is None else f"id: {event_id(turn_id, event['seq'])}\n".encode()
    return head + b"data: " + json.dumps(event).encode() + b"\n\n"


class SSEServer(Listener):
    """Answers every request as a function says, each on a connection of its own.

    Args:
        script: the function.
    """

    def __init__(self, script: Callable[[Request], Answer]) -> None:
        self._script = script
        self.requests: list[Request] = []
        self.gone = threading.Event()
        self._lock = threading.Lock()

    @property
    def log(self) -> list[str]:
        """The requests so far, as ``METHOD target``."""
        return [str(request) for request in self.requests]

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = _read(connection)
                if request is None:
                    return
                with self._lock:
                    self.requests.append(request)
                    answer = self._script(request)
                if not answer.unread:
                    _write(connection, answer, request)
            except OSError:
                self.gone.set()


def _read(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return Request(method, target, headers, body)


def _write(connection: socket.socket, answer: Answer, request: Request) -> None:
    chunked = answer.end != "eof" and answer.status != 204
    headers = {**answer.headers, "connection": "close"}
    if chunked:
        headers["transfer-encoding"] = "chunked"
    lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    connection.sendall("\r\n".join(lines).encode("latin-1"))
    for piece in answer.body:
        if isinstance(piece, threading.Event):
            _wait(connection, piece)
        elif isinstance(piece, (int, float)):
            threading.Event().wait(piece)
        elif piece:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
    if answer.end == "whole" and chunked:
        connection.sendall(b"0\r\n\r\n")
    elif answer.end == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _wait(connection: socket.socket, event: threading.Event) -> None:
    """Wait for an event, or for the client to go away."""
    connection.settimeout(0.02)
    for _ in range(1500):
        if event.is_set():
            break
        try:
            if not connection.recv(1):
                raise ConnectionResetError
        except TimeoutError:
            continue
    connection.settimeout(None)


class TurnScript:
    """A server that has one thread with one recorded turn, and keeps to the protocol but for what is said otherwise.

    Args:
        events: the turn's events, as wire objects.
        posts: answers to the first posts, in place of the proper ones; a number is the byte at which the stream is cut.
        reads: likewise for the first reads of events.
        ids: events have ids.
        kept_from: the ordinal of the first event that is still served.
        runs: the turn counts as running when its thread is read.
        upto: the ordinal up to which a snapshot goes; None: to the turn's end.
        routes: the server has threads.
        before: events of earlier turns of the thread.
    """

    def __init__(
        self,
        events: Sequence[Wire],
        *,
        posts: Iterable[Answer | int | None] = (),
        reads: Iterable[Answer | int | None] = (),
        ids: bool = True,
        kept_from: int = 0,
        runs: bool = True,
        upto: int | None = None,
        routes: bool = True,
        before: Sequence[Wire] = (),
        end: End = "cut",
    ) -> None:
        self.events = list(events)
        self.turn_id: str = events[0]["turnId"]
        self.thread_id: str = events[0]["threadId"]
        self.posts = list(posts)
        self.reads = list(reads)
        self.ids = ids
        self.kept_from = kept_from
        self.runs = runs
        self.upto = upto
        self.routes = routes
        self.before = list(before)
        self.end: End = end
        self.began = False

    def __call__(self, request: Request) -> Answer:
        if request.method == "POST" and request.path.endswith("/stop"):
            return Answer([], 202, {}) if self.routes else html(404)
        if request.method == "POST":
            return self._faulty(self.posts, 0)
        if not self.routes:
            return html(404)
        if request.path.endswith("/events"):
            return self._read(request)
        if unquote(request.path).endswith(f"/threads/{self.thread_id}"):
            return self.snapshot() if self.began or self.before else error(404, "unknown_thread")
        return json_answer({"detail": "Not Found"}, 404)

    def stream(self, first: int) -> bytes:
        """The bytes of the stream from an ordinal on."""
        turn_id = self.turn_id if self.ids else None
        return b"".join(frame(event, turn_id) for event in self.events if event["seq"] >= first)

    def snapshot(self) -> Answer:
        """The thread, as it is read."""
        last = self.events[-1]["seq"] if self.upto is None else self.upto
        mine = [event for event in self.events if event["seq"] <= last] if self.began else []
        events = [from_dict(event, "event", lenient=True) for event in [*self.before, *mine]]
        running = self.runs and self.began
        body = {
            "threadId": self.thread_id,
            "turnId": self.turn_id if running else None,
            "lastEventId": event_id(self.turn_id, last) if running and last >= 0 else None,
            "events": [to_dict(event) for event in snapshot(reduce(events).result)],
            "pending": {"calls": [], "asks": []},
        }
        return json_answer(body)

    def _faulty(self, script: list[Answer | int | None], first: int) -> Answer:
        fault = script.pop(0) if script else None
        if isinstance(fault, Answer):
            return fault
        self.began = True
        stream = self.stream(first)
        if fault is None:
            return Answer([stream])
        return Answer([stream[:fault]], end=self.end)

    def _read(self, request: Request) -> Answer:
        place = request.last_event_id
        first = 0 if place is None else parse_event_id(place)[1] + 1
        if first < self.kept_from:
            return error(410, "resync_required")
        if not self.reads and first > self.events[-1]["seq"]:
            return Answer([], 204, {})
        return self._faulty(self.reads, first)
