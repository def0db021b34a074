"""One endpoint for any agent: post an input, read the stream, attach to it again, stop it (spec §3, §4, §13)."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from agjson._arguments import check_kind, check_word
from agjson.agents import Agent, OnPaused, Thread, ThreadStore
from agjson.agents.thread import calls_of
from agjson.approvals import Ledger, tokens_of, with_tokens
from agjson.errors import DecodeError, EncodeError
from agjson.fold import snapshot
from agjson.middleware.asgi.errors import Refusal, error_response, new_error_id, refusal_of, refusal_of_host
from agjson.middleware.asgi.readers import Reader
from agjson.middleware.asgi.redaction import Redactor, secrets_of
from agjson.middleware.asgi.routes import METHODS, Route, find_route
from agjson.middleware.asgi.runs import OnDisconnect, Runs
from agjson.middleware.asgi.shutdown import on_signals
from agjson.middleware.asgi.sse import EventStream
from agjson.middleware.asgi.trust import Trust
from agjson.types import AgCapabilities, AgInput, AgPausedAsk, AgPushNotification, StartInput
from agjson.wire import decode_input, encode
from agjson.wire.sse import parse_event_id

__all__ = ["AgentApp", "Authorize"]

_LOG = logging.getLogger("agjson")
_T = TypeVar("_T")

# A thread and a turn, percent-encoded, fit into the longest line of a request that common servers take (8 KiB).
_MAX_ID_BYTES = 1024
# Over a day nobody waits; and it must be a number that readers take.
_LONGEST_RETRY = 86400
# Read in a few milliseconds, whatever is in it.
_SMALL_BODY = 16 * 1024

Authorize: TypeAlias = Callable[[Request, AgInput | None], str | Response | Awaitable[str | Response | None] | None]
"""Says whose a request is: a name, or None for nobody in particular. A `Response` refuses it, and so does an exception:
`Unauthorized`, `Forbidden`, any `Refusal`, Starlette's ``HTTPException``, ``PermissionError``. The input is None where
the request brings none."""


class _Answered(Exception):  # the host has answered by itself
    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class AgentApp(Starlette):
    """Serves an agent over HTTP: a Starlette application, for a server of its own or mounted in another application.

    | request | answer |
    | --- | --- |
    | ``POST /`` | the input as JSON in, the turn as server-sent events out |
    | ``GET /threads/{id}`` | the thread as it stands: the events of a snapshot, what runs, what it waits for |
    | ``GET /threads/{id}/events`` | the rest of the running turn, after ``Last-Event-ID`` |
    | ``POST /threads/{id}/turns/{turnId}/stop`` | cuts the turn off |
    | ``GET /capabilities`` | what the agent can do |

    A run is a task of its own: it goes on when its client has gone, unless `on_disconnect` says otherwise. One object
    belongs to one event loop.

    Args:
        agent: the agent; shared with whoever else uses it.
        store: where threads are kept; None: where the agent keeps them. The host closes it.
        approvals: the ledger that keeps asks and takes answers; None: that of the agent. Its store should last as long
            as that of the threads.
        authorize: says whose a request is; None: everybody is the same. A thread belongs to who started it, and nobody
            else learns that it is there.
        trust: what clients may send beside a user's words and media.
        on_disconnect: what becomes of a run when its last reader has gone.
        on_paused: what a start may do to a thread that waits for answers; None: as the agent says.
        max_body_bytes: the longest request body.
        max_runs: how many runs may be open at once.
        max_runs_per_owner: how many of them for one owner; None: as many as in all.
        max_readers: how many streams may be open at once.
        keep_alive: after how many silent seconds a stream sends a comment.
        retry: after how many seconds a client whose stream has broken off is to come back, as each stream tells it
            (``retry:``): browsers wait for three to five unless they are told. None: streams do not tell.
        coalesce: over how many seconds text deltas are joined; 0: not at all. The first one is never held back.
        replay_bytes: how many bytes of a running turn's stream are kept for readers that are late, and how many of all
            ended turns together. A `SharedThreadStore` has the rest.
        poll: how many seconds apart a shared store is asked for what other processes do.
        shutdown_timeout: how many seconds the end of all runs may take when the server ends.
        debug: clients get exceptions as they are.

    Raises:
        ValueError: a limit that is not positive, a word that a setting does not know.
        TypeError: an argument of another kind than its name says.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        store: ThreadStore | None = None,
        approvals: Ledger | None = None,
        authorize: Authorize | None = None,
        trust: Trust | None = None,
        on_disconnect: OnDisconnect = "continue",
        on_paused: OnPaused | None = None,
        max_body_bytes: int = 8 * 1024 * 1024,
        max_runs: int = 256,
        max_runs_per_owner: int | None = None,
        max_readers: int = 4096,
        keep_alive: float = 15.0,
        retry: float | None = 1.0,
        coalesce: float = 0.0,
        replay_bytes: int = 16 * 1024 * 1024,
        poll: float = 0.25,
        shutdown_timeout: float = 10.0,
        debug: bool = False,
    ) -> None:
        for name, value in (
            ("max_body_bytes", max_body_bytes),
            ("max_runs", max_runs),
            ("max_readers", max_readers),
            ("keep_alive", keep_alive),
            ("replay_bytes", replay_bytes),
            ("poll", poll),
        ):
            if value <= 0:
                raise ValueError(f"{name} must be positive")
        if coalesce < 0 or (max_runs_per_owner is not None and max_runs_per_owner < 1):
            raise ValueError("coalesce must not be negative, max_runs_per_owner at least 1")
        if retry is not None and not 0 <= retry <= _LONGEST_RETRY:
            raise ValueError(f"retry must be 0 to {_LONGEST_RETRY} seconds, or None")
        check_kind("agent", agent, Agent, hint="LangGraphAgent(graph), AnthropicAgent(client, ...)")
        check_kind("store", store, ThreadStore, "load", "acquire", optional=True)
        check_kind("approvals", approvals, Ledger, optional=True)
        check_kind("trust", trust, Trust, optional=True)
        if authorize is not None and not callable(authorize):
            raise TypeError(f"authorize must be a function, not {type(authorize).__name__}")
        check_word("on_disconnect", on_disconnect, OnDisconnect)
        check_word("on_paused", on_paused, OnPaused, optional=True)
        # Starlette's own debug mode would answer with a traceback.
        super().__init__()
        self.router = Router(default=self._serve, redirect_slashes=False, lifespan=_lifespan)
        self._agent = agent
        self._authorize = authorize
        self._trust = Trust() if trust is None else trust
        self._max_body_bytes = max_body_bytes
        self._keep_alive = keep_alive
        self._retry = retry
        self._shutdown_timeout = shutdown_timeout
        self._debug = debug
        self._runs = Runs(
            agent,
            agent.store if store is None else store,
            approvals=approvals,
            on_paused=on_paused,
            on_disconnect=on_disconnect,
            max_runs=max_runs,
            max_runs_per_owner=max_runs_per_owner,
            max_readers=max_readers,
            replay_bytes=replay_bytes,
            window=coalesce,
            poll=poll,
            debug=debug,
        )

    # The life of the server

    @asynccontextmanager
    async def running(self, host: object = None) -> AsyncIterator[None]:
        """The time in which the app serves; at its end, and at the signals that end the server, every run is stopped.

        The lifespan of the app is this. A host that mounts the app enters it in its own lifespan, since servers run
        that of the outermost application alone; ``lifespan=app.running`` where it has none. Without it the app serves
        all the same, and the server's end cuts runs off as a crash does.

        Args:
            host: the application whose lifespan this is, which hands itself over; not looked at.
        """
        self._runs.closing = False
        loop = asyncio.get_running_loop()
        ending: list[asyncio.Task[None]] = []

        def end() -> None:
            if not ending:
                ending.append(loop.create_task(self.aclose()))

        def hear() -> None:
            loop.call_soon_threadsafe(end)

        with on_signals(hear):
            try:
                yield
            finally:
                await self.aclose()

    async def aclose(self) -> None:
        """Stop every run, store its `turn.abort` and deliver it; refuse new ones. A second call waits as the first."""
        await self._runs.aclose(self._shutdown_timeout)

    # Requests

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        except _Answered as answered:
            response = answered.response
        except Exception as error:
            response = self._refused(error)
        if request.method == "HEAD" and not isinstance(response, EventStream):
            response.body = b""
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        route = find_route(request.scope)
        if route is None:
            raise Refusal(404, "not_found", "there is nothing at this path")
        allowed = METHODS[route.name]
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": ", ".join(allowed)})
        if request.method not in allowed:
            raise Refusal(
                405, "method_not_allowed", f"only {', '.join(allowed)} go here", headers={"Allow": ", ".join(allowed)}
            )
        if route.name == "root":
            return await self._post(request)
        if route.name == "stop" and _is_of_another_origin(request):
            # Without a body and a media type of its own, a page may send it anywhere unasked.
            _check_content(request)
        owner = await self._owner(request, None)
        if route.name == "capabilities":
            return _json(self._agent.capabilities or AgCapabilities())
        if route.name == "thread":
            return await self._get_thread(route.thread_id, owner)
        if route.name == "events":
            return await self._get_events(request, route, owner)
        await self._runs.stop(route.thread_id, route.turn_id, owner)
        return _json({"threadId": route.thread_id, "turnId": route.turn_id}, 202)

    def _refused(self, error: Exception) -> Response:
        """The answer where something was raised; what is not meant for the client does not reach it."""
        try:
            return error_response(error if isinstance(error, Refusal) else self._fault(error))
        except EncodeError as unreadable:  # of what the host has put into it
            return error_response(self._fault(unreadable))

    def _fault(self, error: Exception, secrets: Iterable[str] = ()) -> Refusal:
        """An exception that is nobody's message to the client: told by a name, under which the log has it."""
        error_id = new_error_id()
        _LOG.error("error %s\n%s", error_id, Redactor(secrets).failure(error))
        told = f"{type(error).__name__}: {error}" if self._debug else "the server failed"
        return Refusal(500, "internal_error", f"{told} (error {error_id})", errorId=error_id)

    async def _owner(self, request: Request, ag_input: AgInput | None) -> str | None:
        if self._authorize is None:
            return None
        owner = await _asked(self._authorize, request, ag_input)
        if isinstance(owner, Response):
            raise _Answered(owner)
        if owner is not None and not isinstance(owner, str):
            raise TypeError(f"authorize returned {type(owner).__name__}, not a name, None or a Response")
        # A member of an enumeration and the like is stored, and compared, as the name that it is.
        return owner if owner is None else str.__str__(owner)

    # Runs

    async def _post(self, request: Request) -> Response:
        _check_content(request)
        body = await self._body(request)
        try:
            ag_input = await _off_the_loop(body, decode_input, body)
        except DecodeError as error:
            raise refusal_of(error) or error from None
        _check_ids(ag_input)
        owner = await self._owner(request, ag_input)
        digest = hashlib.sha256(body).digest()
        thread = await self._runs.thread(ag_input.thread_id, owner)
        denial = await _off_the_loop(body, self._trust.first_denial, ag_input, thread)
        if denial is not None:
            raise Refusal(422, "not_allowed", denial.message, path=denial.path)
        await self._check_push(request, ag_input)
        repetition = self._runs.repetition(ag_input, owner, digest)
        if repetition is not None:
            raise repetition
        with self._runs.slot():
            try:
                run = await self._runs.start(ag_input, owner, digest)
            except Exception as error:
                raise refusal_of(error) or self._fault(error, secrets_of(ag_input, thread)) from None
            return self._stream(self._runs.read_run(run))

    async def _body(self, request: Request) -> bytes:
        limit = self._max_body_bytes
        length = request.headers.get("content-length", "")
        body = bytearray()
        if not (length.isdecimal() and int(length[:20]) > limit):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    break
            else:
                return bytes(body)
        raise Refusal(413, "too_large", f"the body is longer than {limit} bytes", headers={"Connection": "close"})

    async def _check_push(self, request: Request, ag_input: AgInput) -> None:
        if isinstance(ag_input, StartInput) and ag_input.run is not None:
            config = ag_input.run.push_notification
            if config is not None and not await self._may_push(config, request):
                raise Refusal(
                    422, "not_allowed", "this address may not be called back", path="$.run.pushNotification.url"
                )

    async def _may_push(self, config: AgPushNotification, request: Request) -> bool:
        policy = self._trust.push_policy
        return policy is not None and bool(await _asked(policy, config, request))

    def _stream(self, reader: Reader) -> Response:
        return EventStream(reader.chunks(self._keep_alive, self._retry), reader.close)

    # Threads

    async def _get_thread(self, thread_id: str, owner: str | None) -> Response:
        standing = await self._runs.standing(thread_id, owner)
        thread = standing.thread or Thread(thread_id=thread_id)
        asks = await self._runs.open_asks(thread)
        events = snapshot(thread.result)
        if standing.turn_id is not None and standing.last_event_id is not None:
            # Numbered so that the event after them is no gap (INV-SEQ).
            last = parse_event_id(standing.last_event_id)[1]
            events = snapshot(thread.result, seq=max(last + 1 - len(events), 0))
        if any(ask.token is not None for ask in asks):
            tokens = tokens_of(asks)
            events = [with_tokens(event, tokens) for event in events]
        return _json(
            {
                "threadId": thread_id,
                "turnId": standing.turn_id,
                "lastEventId": standing.last_event_id,
                "events": events,
                "pending": _pending(thread, asks),
            }
        )

    async def _get_events(self, request: Request, route: Route, owner: str | None) -> Response:
        turn_id, after = _position(request)
        with self._runs.slot():
            reader = await self._runs.read(route.thread_id, owner, turn_id, after)
            if reader is None:
                return Response(status_code=204, headers={"Cache-Control": "no-store"})
            return self._stream(reader)


@asynccontextmanager
async def _lifespan(app: Any) -> AsyncIterator[None]:
    async with app.running(app):
        yield


async def _asked(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the host says, now or later."""
    try:
        answer = function(*arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except (HTTPException, PermissionError) as error:
        raise refusal_of_host(error) from None


def _pending(thread: Thread, asks: list[AgPausedAsk]) -> dict[str, Any]:
    """What a thread waits for; a call by its id, and once more with what its tool has to know."""
    ids = thread.pending.open_calls
    blocks = calls_of(thread.result.messages) if ids else {}
    calls = [
        {"toolCallId": id, "name": blocks[id].name, "input": blocks[id].input} if id in blocks else {"toolCallId": id}
        for id in ids
    ]
    return {"calls": ids, "toolCalls": calls, "asks": asks}


def _json(value: object, status: int = 200) -> Response:
    return Response(encode(value), status, {"Cache-Control": "no-store"}, "application/json")


def _check_content(request: Request) -> None:
    """Refuse what is not JSON in UTF-8. A page of another origin cannot send it without being allowed to (CORS)."""
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    if re.fullmatch(r"application/(?:[^/]+\+)?json", media_type.strip().lower()) is None:
        raise Refusal(415, "unsupported_media_type", "the body must be application/json")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            raise Refusal(415, "unsupported_media_type", "the body must be in UTF-8")
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
        raise Refusal(415, "unsupported_media_type", "the body must not be compressed")


def _is_of_another_origin(request: Request) -> bool:
    """Whether a page sends this from another origin, as browsers tell it; other clients do not say."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host")


def _check_ids(ag_input: AgInput) -> None:
    """Refuse ids that no path and no header could name later; each event's id repeats that of its turn."""
    for name, id in (("threadId", ag_input.thread_id), ("turnId", ag_input.turn_id)):
        if not id or len(id) > _MAX_ID_BYTES or len(id.encode("utf-8", "surrogatepass")) > _MAX_ID_BYTES:
            raise Refusal(
                400, "invalid_input", f"`{name}` must have 1 to {_MAX_ID_BYTES} bytes in UTF-8", path=f"$.{name}"
            )


async def _off_the_loop(body: bytes, function: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function that takes the longer, the longer the body; other requests must not wait for it."""
    if len(body) <= _SMALL_BODY:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def _position(request: Request) -> tuple[str | None, int]:
    """Where a reader wants to go on: a turn and the last event that it has of it."""
    # The header last: a browser that has got on since it was told the query sends both.
    text = request.headers.get("last-event-id") or request.query_params.get("lastEventId")
    if text:
        try:
            return parse_event_id(text)
        except DecodeError as error:
            raise Refusal(400, "invalid_event_id", error.message) from None
    return request.query_params.get("turnId"), -1
