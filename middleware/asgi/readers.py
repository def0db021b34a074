"""One reader of one turn: from where it is to the end of the stream, in chunks for the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from agjson.middleware.asgi.relay import Relay
from agjson.middleware.asgi.tailing import TurnLog
from agjson.wire.sse import encode_sse, sse_comment

__all__ = ["Reader"]

_CHUNK = 64 * 1024
_COMMENT = sse_comment()
# Events that come faster than this, in seconds, go out together as long as each turn of the loop brings more: what a
# chunk costs is mostly the server's work on it.
_BURST = 0.001


class Reader:
    """A position in the stream of a turn.

    What the relay does not have any more comes from the log, where there is one; without, the stream breaks off, and
    the client hears that it must resync when it re-attaches.

    Args:
        relay: the events that are here.
        at: the ordinal of the first event wanted.
        log: the events that are stored; None: there is no log.
        on_close: called once when the reader has gone.
    """

    def __init__(
        self, relay: Relay, at: int, log: TurnLog | None = None, on_close: Callable[[], None] | None = None
    ) -> None:
        self._relay = relay
        self._at = at
        self._log = log
        self._on_close = on_close

    async def chunks(self, keep_alive: float, retry: float | None = None) -> AsyncGenerator[bytes, None]:
        """The rest of the stream. The first chunk comes at once, if only to say that there is a stream.

        Args:
            keep_alive: after how many silent seconds a comment is sent.
            retry: after how many seconds a client whose stream has broken off is to come back; None: it is not told.
        """
        relay = self._relay
        silence = _Silence(keep_alive)
        is_first = True
        # By itself it dispatches nothing.
        head = b"" if retry is None else encode_sse(None, retry=round(retry * 1000))
        try:
            while True:
                if self._at >= relay.next:
                    if relay.ended:
                        return
                    if is_first or not await silence.wait(relay):
                        silence.broken()
                        yield head or _COMMENT
                        is_first, head = False, b""
                    continue
                if self._at < relay.base:
                    piece = await self._from_log()
                    if not piece:
                        return
                else:
                    if silence.lasts_less_than(_BURST):
                        await self._gather(silence)
                        if self._at < relay.base:
                            continue
                    piece, self._at = relay.take(self._at, _CHUNK)
                silence.broken()
                yield head + piece if head else piece
                is_first, head = False, b""
        finally:
            silence.close()

    def close(self) -> None:
        """The reader has gone. A second call does nothing."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    async def _gather(self, silence: _Silence) -> None:
        relay, come = self._relay, self._at
        # Not so much that the relay drops what is waited for.
        enough = relay.published + min(_CHUNK, relay.max_bytes // 8)
        while come < relay.next and relay.published < enough and not relay.ended and silence.lasts_less_than(_BURST):
            come = relay.next
            await asyncio.sleep(0)

    async def _from_log(self) -> bytes:
        if self._log is None:
            return b""
        try:
            frames = await self._log.frames(self._at)
        except LookupError:
            return b""
        # The relay may have begun meanwhile where these end, or before.
        self._at += len(frames)
        return b"".join(frames)


class _Silence:
    """Waits for news, and tells when there were none for long: by one timer, which most events do not touch.

    Args:
        seconds: how long.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._news: asyncio.Future[bool] | None = None

    def broken(self) -> None:
        """Something was said."""
        self._since = self._loop.time()

    def lasts_less_than(self, seconds: float) -> bool:
        """Whether something was said only just now."""
        return self._loop.time() - self._since < seconds

    async def wait(self, relay: Relay) -> bool:
        """Wait for news; false: it was silent for too long."""
        if self._timer is None:
            self._set_timer()
        news = self._news = relay.news()
        heard = False
        try:
            heard = await news
        finally:
            if not heard:
                relay.forget(news)
        return heard

    def close(self) -> None:
        """Nobody waits any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        self._timer = self._loop.call_at(self._since + self._seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._loop.time() < self._since + self._seconds:
            self._set_timer()
        elif self._news is not None and not self._news.done():
            self._news.set_result(False)
