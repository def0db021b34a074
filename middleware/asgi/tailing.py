"""Turns that another process runs, or that are over: read from the log of a store that several processes share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from agjson.agents import LoggedTurn, SharedThreadStore
from agjson.approvals import with_tokens
from agjson.middleware.asgi.relay import Framer, Relay
from agjson.types import UnknownEvent
from agjson.wire import encode, ingest_event

__all__ = ["Tail", "Tokens", "TurnLog"]

Tokens: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""Gives the tokens of the asks that can be answered now, by ask id."""

_LOG = logging.getLogger("agjson")


class _Numbered(msgspec.Struct):
    seq: int


_NUMBER = msgspec.json.Decoder(_Numbered)
_ASK_ID = b'"askId"'


class TurnLog:
    """The logged events of one turn, as server-sent events.

    Args:
        store: the store.
        thread_id: the thread.
        turn_id: its turn.
        tokens: gives the tokens of asks, of which the log has none; None: they have none.
    """

    def __init__(self, store: SharedThreadStore, thread_id: str, turn_id: str, tokens: Tokens | None = None) -> None:
        self._store = store
        self._thread_id = thread_id
        self._turn_id = turn_id
        self._tokens = tokens
        self._framer = Framer(turn_id)

    async def latest(self) -> LoggedTurn | None:
        """The turn as its log is now; None: the thread has a later one."""
        latest = await self._store.latest_turn(self._thread_id)
        return latest if latest is not None and latest.turn_id == self._turn_id else None

    async def frames(self, at: int, limit: int = 500) -> list[bytes]:
        """Events from a position on, one frame each; the first is the one at the position.

        Args:
            at: the ordinal of the first one.
            limit: how many at most.

        Raises:
            LookupError: it is not the thread's latest turn any more, or a part of its log is missing.
        """
        found = await self._store.read_log(self._thread_id, self._turn_id, after=at - 1, limit=limit)
        # Most events are none that could hold an ask.
        has_asks = self._tokens is not None and any(_ASK_ID in event for event in found)
        tokens = await self._tokens() if self._tokens is not None and has_asks else {}
        frames: list[bytes] = []
        for event in found:
            seq = _NUMBER.decode(event).seq
            if seq != at + len(frames):
                raise LookupError(f"event {at + len(frames)} of turn {self._turn_id!r} is not in the log")
            frames.append(self._framer.frame(seq, _shown(event, tokens)))
        return frames


def _shown(event: bytes, tokens: Mapping[str, str]) -> bytes:
    """An event as its reader gets it."""
    if not tokens or _ASK_ID not in event:
        return event
    decoded = ingest_event(event)
    # Of a later release than this, in a log that several processes write.
    return event if isinstance(decoded, UnknownEvent) else encode(with_tokens(decoded, tokens))


class Tail:
    """Follows a turn that another process runs, for all readers here at once.

    Args:
        log: the log of the turn.
        relay: where its events go; it begins after what is logged already.
        interval: how many seconds apart the log is asked.
    """

    def __init__(self, log: TurnLog, relay: Relay, interval: float) -> None:
        self.relay = relay
        self.readers = 0
        self._log = log
        self._interval = interval
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.create_task(self._follow())

    def stop(self) -> None:
        """Follow no longer; readers end where they have read what is there."""
        if self._task is not None:
            self._task.cancel()
        self.relay.end()

    async def _follow(self) -> None:
        try:
            while True:
                # In this order: a log that was whole before it was read has been read whole.
                latest = await self._log.latest()
                frames = await self._log.frames(self.relay.next)
                self.relay.publish(frames)
                if not frames:
                    if latest is None or latest.ended:
                        return
                    await asyncio.sleep(self._interval)
        except LookupError:
            return
        except Exception as error:
            _LOG.warning("the log of turn %r cannot be read: %s", self.relay.turn_id, type(error).__name__)
        finally:
            self.relay.end()
