"""The client for asynchronous code: it carries out plans with an `httpx.AsyncClient`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Any, TypeVar, Unpack, cast

import anyio
import httpx

from agjson.middleware.client._base import OWN_LIMITS, ClientBase, TurnBase, check_http, head_of, link_error, timeouts
from agjson.middleware.client._bodies import ACCEPT_ENCODING, apieces
from agjson.middleware.client._effects import EFFECTS, Answer, Fetch, LinkError, Open, Plan, Read, Request, Sleep
from agjson.middleware.client._following import Following, ThreadSnapshot
from agjson.middleware.client._settings import Settings, SettingsArgs
from agjson.middleware.client.errors import RequestError
from agjson.types import AgCapabilities, AgStreamEvent, UnknownEvent

__all__ = ["AgentClient", "Turn"]

_T = TypeVar("_T")


class Turn(TurnBase, AsyncIterator[AgStreamEvent | UnknownEvent]):
    """The events of one turn, iterated once.

    Leaving early (``break`` and ``aclose``, or cancellation) closes the connection; the turn goes on at the server
    until `stop`. To close for certain, use it as a context manager: ``async with client.start("Hi") as turn``.
    """

    def __init__(self, client: AgentClient, following: Following, plan: Plan[None]) -> None:
        super().__init__(following)
        self._client = client
        self._events = _Carrier(client).events(plan)

    def __aiter__(self) -> Turn:
        return self

    async def __anext__(self) -> AgStreamEvent | UnknownEvent:
        try:
            return await anext(self._events)
        except StopAsyncIteration:
            self._check_end()
            raise

    async def aclose(self) -> None:
        """Close the connection. The turn goes on at the server."""
        self._closed = True
        await self._events.aclose()

    async def __aenter__(self) -> Turn:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def stop(self) -> bool:
        """Stop the turn at the server; its `turn.abort` still comes to whoever reads the events.

        Returns:
            Whether it was running.

        Raises:
            ClientError: the server does not know the turn, does not stop turns, or cannot be reached.
            ValueError: the turn's id is not known yet.
        """
        if self.turn_id is None:
            raise ValueError("the id of the turn is not known before its first event")
        return await self._client.stop(self.thread_id, self.turn_id)


class AgentClient(ClientBase[Turn]):
    """A client of an AgJSON source over HTTP.

    It works with any source that answers an `AgInput` by server-sent AgJSON events. Of one that also serves its threads
    (`agjson.middleware.asgi`) it takes up streams that broke, and mends its fold by the thread's snapshot.

    Args:
        base_url: where inputs are posted to; threads are read below it.
        http: the HTTP client to use; it stays open. None: one of this client's own, closed with it.
        auth: as `httpx` takes it, for every request; None: that of `http`.
        **settings: headers, time limits, retries, sizes: the attributes of `Settings`, by name.

    Raises:
        TypeError: an HTTP client for the other kind of code.
        ValueError: an address, a header or a limit that is none.
    """

    def __init__(
        self,
        base_url: str,
        *,
        http: httpx.AsyncClient | None = None,
        auth: httpx.Auth | tuple[str, str] | None = None,
        **settings: Unpack[SettingsArgs],
    ) -> None:
        check_http(http, httpx.AsyncClient, httpx.Client)
        super().__init__(base_url, relative=http is not None, settings=Settings(**settings))
        self._owns_http = http is None
        self._http = http or httpx.AsyncClient(limits=OWN_LIMITS)
        self._auth = httpx.USE_CLIENT_DEFAULT if auth is None else auth

    async def __aenter__(self) -> AgentClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every turn that is still open, and the HTTP client if it is this client's own. Turns go on running."""
        for turn in list(self._turns):
            try:
                await turn.aclose()
            except RuntimeError:
                continue  # another task is waiting for its next event, and closes it when it is done
        if self._owns_http:
            await self._http.aclose()

    async def snapshot(self, thread_id: str) -> ThreadSnapshot:
        """Read a thread as the server has it; the client's fold of the thread goes on from there.

        Args:
            thread_id: which thread.

        Raises:
            ClientError: the server does not know it, says no, or cannot be reached.
        """
        return await _Carrier(self).value(self._snapshot_plan(thread_id))

    async def stop(self, thread_id: str, turn_id: str) -> bool:
        """Stop a turn at the server.

        Args:
            thread_id: its thread.
            turn_id: the turn.

        Returns:
            Whether it was running.

        Raises:
            ClientError: the server does not know it, says no, or cannot be reached.
        """
        return await _Carrier(self).value(self._stop_plan(thread_id, turn_id))

    async def capabilities(self) -> AgCapabilities:
        """Ask what the agent can do.

        Raises:
            ClientError: the server does not say, or cannot be reached.
        """
        return await _Carrier(self).value(self._capabilities_plan())

    def _new_turn(self, following: Following, plan: Plan[None]) -> Turn:
        return Turn(self, following, plan)


class _Carrier:
    """Carries out one plan."""

    def __init__(self, client: AgentClient) -> None:
        self._http = client._http
        self._auth = client._auth
        self._settings = client._settings
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def events(self, plan: Plan[None]) -> AsyncGenerator[AgStreamEvent | UnknownEvent, None]:
        outcome: Any = None
        failure: LinkError | None = None
        try:
            while True:
                try:
                    item = plan.send(outcome) if failure is None else plan.throw(failure)
                except StopIteration:
                    return
                outcome = failure = None
                if type(item) not in EFFECTS:
                    yield cast("AgStreamEvent | UnknownEvent", item)
                    continue
                try:
                    outcome = await self._do(item)
                except LinkError as error:
                    failure = error
        finally:
            plan.close()
            await self._shut()

    async def value(self, plan: Plan[_T]) -> _T:
        outcome: Any = None
        failure: LinkError | None = None
        while True:
            try:
                item = plan.send(outcome) if failure is None else plan.throw(failure)
            except StopIteration as stop:
                value: _T = stop.value
                return value
            outcome = failure = None
            try:
                outcome = await self._do(item)
            except LinkError as error:
                failure = error

    async def _do(self, effect: Any) -> Any:
        try:
            match effect:
                case Read():
                    return await self._read()
                case Open():
                    await self._shut()
                    self._response = await self._send(effect.request)
                    self._chunks = apieces(self._response)
                    return head_of(self._response)
                case Fetch():
                    return await self._fetch(effect.request, effect.limit)
                case Sleep():
                    await anyio.sleep(effect.seconds)
                case _:
                    await self._shut()
        except httpx.UnsupportedProtocol:
            raise
        except httpx.InvalidURL as error:
            raise RequestError("no address can be made for the request", code="invalid_address") from error
        except httpx.RequestError as error:
            raise link_error(error, self._settings) from error
        return None

    async def _read(self) -> bytes:
        return b"" if self._chunks is None else await anext(self._chunks, b"")

    async def _fetch(self, request: Request, limit: int) -> Answer:
        response = await self._send(request)
        body = bytearray()
        try:
            async for chunk in apieces(response):
                body += chunk
                if len(body) > limit:
                    return Answer(head_of(response), bytes(body[:limit]), False)
        finally:
            await response.aclose()
        return Answer(head_of(response), bytes(body), True)

    async def _send(self, request: Request) -> httpx.Response:
        built = self._http.build_request(
            request.method,
            request.url,
            headers={**self._settings.headers, **request.headers, **ACCEPT_ENCODING},
            content=request.body,
            timeout=timeouts(self._settings),
        )
        return await self._http.send(built, auth=self._auth, stream=True, follow_redirects=False)

    async def _shut(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()
