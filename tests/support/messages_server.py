"""A server on this machine that speaks the Messages API from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Native = dict[str, Any]


@dataclass
class Answer:
    """What the server sends for one request.

    Attributes:
        events: server-sent events; a `threading.Event` among them is waited for.
        status: the HTTP status.
        body: a body in place of events.
        raw: bytes in place of events, as recorded.
        cut: how it ends: ``""`` as it should, ``"eof"`` as if it were whole, ``"reset"`` in the middle of a chunk.
    """

    events: Iterable[Native | threading.Event] = ()
    status: int = 200
    body: Native | None = None
    raw: bytes | None = None
    cut: str = ""


def failure(status: int, kind: str, message: str) -> Answer:
    """A failed request, as the provider tells it."""
    return Answer(status=status, body={"type": "error", "error": {"type": kind, "message": message}})


@dataclass
class Request:
    """A request that came in.

    Attributes:
        path: its path.
        headers: its headers, names in lower case.
        raw: its body.
    """

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Native:
        """Its body as data."""
        data: Native = json.loads(self.raw)
        return data


@dataclass
class MessagesServer:
    """Answers requests in order, or as a function says.

    Args:
        answers: the answers; a function is called with each request.
    """

    answers: Iterable[Answer] | Callable[[Request], Answer]
    requests: list[Request] = field(default_factory=list[Request])
    gone: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> MessagesServer:
        script = self.answers
        queue = None if callable(script) else iter(script)
        lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.path, headers, raw)
                with lock:
                    owner.requests.append(request)
                    answer = script(request) if callable(script) else next(queue) if queue is not None else None
                assert answer is not None
                # No connection is left over for another event loop.
                self.close_connection = True
                try:
                    self.answer(answer)
                except OSError:
                    owner.gone.set()

            def answer(self, answer: Answer) -> None:
                if answer.body is not None:
                    body = json.dumps(answer.body).encode()
                    self.send_response(answer.status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(body)))
                    self.send_header("request-id", "req_1")
                    self.send_header("connection", "close")
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_response(answer.status)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                if answer.cut != "eof":
                    self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                if answer.raw is not None:
                    self.chunk(answer.raw, answer.cut)
                for event in answer.events:
                    if isinstance(event, threading.Event):
                        event.wait(30)
                    else:
                        self.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode(), answer.cut)
                if answer.cut == "reset":
                    self.wfile.write(b"ffff\r\nevent: ")
                elif not answer.cut:
                    self.wfile.write(b"0\r\n\r\n")

            def chunk(self, data: bytes, cut: str) -> None:
                self.wfile.write(data if cut == "eof" else b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"
