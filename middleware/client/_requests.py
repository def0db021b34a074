"""Single requests as plans: sent, redirected, tried again, and read for what the server says is wrong."""

from __future__ import annotations

from typing import Any, Final

import httpx
import msgspec

from agjson.errors import DecodeError
from agjson.fold import reduce
from agjson.middleware.client._effects import Answer, Fetch, Head, LinkError, Open, Plan, Read, Request, Sleep
from agjson.middleware.client._following import ThreadSnapshot
from agjson.middleware.client._settings import Routes, Settings, retry_after, same_server
from agjson.middleware.client.errors import ClientError, ConnectionLostError, RequestError, StreamError
from agjson.types import AgCapabilities, AgentCapabilities, MessagesSnapshot, StateSnapshot
from agjson.wire import decode_ask, ingest_event

__all__ = ["JSON", "PASSING", "REFUSED_FOR_NOW", "Requests", "check_stream", "is_missing_route"]

JSON: Final = {"accept": "application/json"}
_KEEP_METHOD = frozenset((307, 308))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MAX_REDIRECTS = 5
# The server, or what stands before it, has not taken up the request.
REFUSED_FOR_NOW: Final = frozenset((408, 425, 429))
PASSING: Final = REFUSED_FOR_NOW | {502, 503, 504}
_MAX_ERROR_BYTES = 65536
_WORDS = 500


class _Error(msgspec.Struct):
    code: str = ""
    message: str = ""
    path: str | None = None
    retriable: bool = False


class _Pending(msgspec.Struct):
    calls: list[Any] = []
    asks: list[msgspec.Raw] = []


class _SnapshotBody(msgspec.Struct, rename="camel"):
    events: list[msgspec.Raw]
    turn_id: str | None = None
    last_event_id: str | None = None
    pending: _Pending = msgspec.field(default_factory=_Pending)


class Requests:
    """The requests of one call to a client; they share its attempts.

    Args:
        settings: how the client behaves.
        routes: where the requests go.
    """

    def __init__(self, settings: Settings, routes: Routes) -> None:
        self.settings = settings
        self.routes = routes
        self.attempts = 0
        self.asked = 0.0
        # Whether any request of the call has reached a server, or may have.
        self.reached = False

    def wait(self, cause: Exception) -> Plan[None]:
        """Wait before the next attempt.

        Raises:
            ClientError: the attempts are used up, or the server asks for a longer wait than allowed.
        """
        self.attempts += 1
        refusal = cause if isinstance(cause, RequestError) else None
        asked = (refusal.retry_after or 0.0) if refusal is not None else 0.0
        if self.attempts > self.settings.max_retries or asked > self.settings.max_wait:
            if refusal is not None:
                raise refusal
            code = "retries_used_up" if self.reached else "unreachable"
            times = f"tried {self.attempts} times: " if self.attempts > 1 else ""
            raise ConnectionLostError(f"{times}{cause}", code=code, retriable=True) from cause
        yield Sleep(self.settings.pause(self.attempts, max(asked, self.asked)))

    def open(self, request: Request) -> Plan[Head]:
        """Send a request whose answer is a stream, and follow redirects.

        Raises:
            LinkError: the connection failed.
            RequestError: a redirect that is not followed.
        """
        for _ in range(_MAX_REDIRECTS + 1):
            head: Head = yield from self._reach(Open(request))
            target = _redirect(request, head)
            if target is None:
                return head
            request = target
        raise _circle()

    def fetch(self, request: Request) -> Plan[Answer]:
        """Send a request that may be sent again and read its answer, as often as passing failures allow.

        Raises:
            ClientError: as `wait`, or a redirect that is not followed.
        """
        while True:
            try:
                answer = yield from self._fetch_once(request)
            except LinkError as error:
                yield from self.wait(error)
                continue
            if answer.head.status not in PASSING:
                return answer
            yield from self.wait(_body_error(answer))

    def _fetch_once(self, request: Request) -> Plan[Answer]:
        for _ in range(_MAX_REDIRECTS + 1):
            answer: Answer = yield from self._reach(Fetch(request, self.settings.max_bytes))
            target = _redirect(request, answer.head)
            if target is None:
                return answer
            request = target
        raise _circle()

    def _reach(self, effect: Open | Fetch) -> Plan[Any]:
        try:
            outcome = yield effect
        except LinkError as error:
            self.reached = self.reached or not error.unsent
            raise
        self.reached = True
        return outcome

    def refusal(self, head: Head) -> Plan[RequestError]:
        """Read the open answer as an error."""
        body = b""
        complete = False
        while len(body) < _MAX_ERROR_BYTES:
            try:
                chunk: bytes = yield Read()
            except LinkError:
                break
            if not chunk:
                complete = True
                break
            body += chunk
        return _body_error(Answer(head, body, complete))

    def snapshot(self, thread_id: str) -> Plan[ThreadSnapshot | None]:
        """The thread as the server has it; None: the server has no such thread.

        Raises:
            RequestError: the server says no, or has no such route (`is_missing_route`).
            ClientError: it cannot be reached, or its answer is no snapshot.
        """
        answer = yield from self.fetch(Request("GET", self.routes.thread(thread_id), JSON))
        if answer.head.status != 200:
            error = _body_error(answer)
            if error.status == 404 and error.code == "unknown_thread":
                return None
            raise error
        return _snapshot(thread_id, answer)

    def stop(self, thread_id: str, turn_id: str) -> Plan[bool]:
        """Ask for a turn to be stopped; whether it was running.

        Raises:
            ClientError: the server knows no such turn, says no, or cannot be reached.
        """
        answer = yield from self.fetch(Request("POST", self.routes.stop(thread_id, turn_id), JSON))
        if answer.head.status == 409:
            return False
        if not 200 <= answer.head.status < 300:
            raise _body_error(answer)
        return True

    def capabilities(self) -> Plan[AgCapabilities]:
        """What the agent can do.

        Raises:
            ClientError: the server says no, cannot be reached, or its answer is no description of an agent.
        """
        answer = yield from self.fetch(Request("GET", self.routes.capabilities, JSON))
        if answer.head.status != 200:
            raise _body_error(answer)
        body = _whole(answer)
        try:
            body = bytes(msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get("capabilities", body))
            # Read as the event that tells the same, so that what this revision does not know is kept.
            event = ingest_event(b'{"type":"agent.capabilities","seq":0,"capabilities":%b}' % body)
        except (DecodeError, msgspec.DecodeError, ValueError, RecursionError) as error:
            raise StreamError(str(error), code="malformed_answer", status=answer.head.status) from None
        assert isinstance(event, AgentCapabilities)
        return event.capabilities


def is_missing_route(error: RequestError) -> bool:
    """Whether a server that says this has no such route at all."""
    return error.status in (404, 405, 501) and error.code != "unknown_thread"


def _body_error(answer: Answer) -> RequestError:
    """What a server says is wrong, in the form of the protocol or in any other."""
    head = answer.head
    error = _Error()
    details: dict[str, Any] = {}
    if _media_type(head) in ("application/json", "application/problem+json"):
        error, details = _read_error(answer.body)
    length = f"{len(answer.body)} bytes" if answer.complete else f"more than {len(answer.body)} bytes"
    message = error.message or f"the server answered with {_media_type(head) or 'no media type'}, {length}"
    return RequestError(
        message,
        code=error.code or f"http_{head.status}",
        status=head.status,
        path=error.path,
        retriable=error.retriable or head.status in PASSING or error.code == "thread_busy",
        retry_after=retry_after(head.headers),
        details=details,
    )


def _read_error(body: bytes) -> tuple[_Error, dict[str, Any]]:
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _Error(), {}
    inner = data.get("error") if isinstance(data, dict) else None
    if not isinstance(inner, dict):
        # As other frameworks say it.
        words = data.get("detail") or data.get("message") or inner if isinstance(data, dict) else None
        return _Error(message=_words(words)), {}
    members: dict[str, Any] = dict(inner)
    path = members.pop("path", None)
    error = _Error(
        code=_words(members.pop("code", None)),
        message=_words(members.pop("message", None)),
        path=_words(path) or None,
        retriable=members.pop("retriable", None) is True,
    )
    return error, members


def _words(value: object) -> str:
    """A server's text, safe in a log: on one line, and not too long."""
    if not isinstance(value, str):
        return ""
    text = "".join(character if character.isprintable() else " " for character in value[: _WORDS + 1])
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}…"


def _media_type(head: Head) -> str:
    value = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    return _words(value)


def check_stream(head: Head) -> None:
    """Check that an answer is a stream of server-sent events; one without a media type may be.

    Raises:
        StreamError: it is not.
    """
    kind = _media_type(head)
    if kind not in ("", "text/event-stream"):
        raise StreamError(f"expected text/event-stream, got {kind}", code="not_a_stream", status=head.status)


def _whole(answer: Answer) -> bytes:
    if not answer.complete:
        message = f"the answer is longer than {len(answer.body)} bytes"
        raise StreamError(message, code="too_large", status=answer.head.status)
    return answer.body


def _snapshot(thread_id: str, answer: Answer) -> ThreadSnapshot:
    body = _whole(answer)
    try:
        data = msgspec.json.decode(body, type=_SnapshotBody)
        events = [ingest_event(bytes(event)) for event in data.events]
        asks = [decode_ask(bytes(ask)) for ask in data.pending.asks]
    except DecodeError as error:
        raise StreamError(error.message, code="malformed_answer", path=error.path) from error
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise _no_snapshot(answer) from None
    snapshots = [event for event in events if isinstance(event, (MessagesSnapshot, StateSnapshot))]
    if not snapshots:
        raise _no_snapshot(answer)
    return ThreadSnapshot(
        thread_id=thread_id,
        turn_id=data.turn_id,
        last_event_id=data.last_event_id,
        events=snapshots,
        result=reduce(snapshots).result,
        calls=data.pending.calls,
        asks=asks,
    )


def _no_snapshot(answer: Answer) -> StreamError:
    kind = _media_type(answer.head) or "no media type"
    message = f"the answer is no snapshot of a thread: {kind}, {len(answer.body)} bytes"
    return StreamError(message, code="malformed_answer", status=answer.head.status)


def _redirect(request: Request, head: Head) -> Request | None:
    location = head.headers.get("location")
    if head.status not in _REDIRECTS or not location:
        return None
    # Another server must not be sent what this one was; and only these two keep the method of a POST.
    base = httpx.URL(head.url)
    try:
        # Read as the HTTP client reads it, so that what is checked is what is asked.
        target = base.join(location) if location.isascii() and location.isprintable() else None
    except (httpx.InvalidURL, ValueError):
        target = None
    if target is not None and same_server(base, target) and (request.method == "GET" or head.status in _KEEP_METHOD):
        # Credentials in the address are the caller's to choose.
        target = target.copy_with(userinfo=base.userinfo)
        return Request(request.method, str(target), request.headers, request.body)
    # Without user and query, which may hold a credential.
    address = "an address that is none"
    if target is not None:
        address = str(target.copy_with(userinfo=b"", query=None, fragment=None))
    message = f"the server redirects a {request.method} to {_words(address)}, which is not followed"
    raise RequestError(message, code="redirected", status=head.status)


def _circle() -> ClientError:
    return RequestError(f"more than {_MAX_REDIRECTS} redirects", code="redirected")
