"""The response that streams a turn as server-sent events, and notices when its client has gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

__all__ = ["SSE_HEADERS", "EventStream"]

_LOG = logging.getLogger("agjson")

SSE_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    # Tells nginx, and what imitates it, not to collect the stream.
    "X-Accel-Buffering": "no",
}
"""The headers of a stream. It has no ``Content-Length``: under HTTP/1.1 the server sends it in chunks."""


class EventStream(Response):
    """Sends chunks as they come, until they end or the client has gone.

    Args:
        chunks: the chunks; closed in any case.
        on_close: called once the stream is over, however.
    """

    def __init__(self, chunks: AsyncGenerator[bytes, None], on_close: Callable[[], None]) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(SSE_HEADERS)
        self._chunks = chunks
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        sending = asyncio.ensure_future(self._send(send, is_head=scope["method"] == "HEAD"))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._on_close()
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
        failure = None if sending.cancelled() else sending.exception()
        # An OSError is how servers say that the client has gone.
        if failure is not None and not isinstance(failure, OSError):
            raise failure

    async def _send(self, send: Send, *, is_head: bool) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            if not is_head:
                await self._send_chunks(send)
        finally:
            await self._chunks.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_chunks(self, send: Send) -> None:
        following = self._chunks.__anext__
        while True:
            try:
                chunk = await following()
            except StopAsyncIteration:
                return
            except Exception as error:
                # The response has begun: it ends without a terminal, and the client re-attaches or resyncs.
                _LOG.error("a stream broke off: %s", type(error).__name__)
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
