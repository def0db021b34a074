"""What the readers of one turn read: its events, encoded once, kept for those that are late (spec §4, INV-SEQ)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from agjson.approvals import with_tokens
from agjson.types import AgStreamEvent
from agjson.wire import encode
from agjson.wire.sse import event_id

__all__ = ["Framer", "Relay", "event_of"]


class Framer:
    """Writes the events of one turn as server-sent events, each with the id under which a reader re-attaches.

    Args:
        turn_id: the turn.
    """

    def __init__(self, turn_id: str) -> None:
        # All ids of a turn differ in their number alone.
        self._head = b"id: " + event_id(turn_id, 0)[:-1].encode()
        self._tokens: Mapping[str, str] = {}

    def show(self, tokens: Mapping[str, str]) -> None:
        """Write the asks of events with their tokens from now on.

        Args:
            tokens: by ask id.
        """
        self._tokens = dict(tokens)

    def frame(self, seq: int, event: bytes) -> bytes:
        """One event.

        Args:
            seq: its ordinal.
            event: its JSON, on one line.
        """
        return b"%b%d\ndata: %b\n\n" % (self._head, seq, event)

    def frames(self, events: Sequence[AgStreamEvent]) -> list[bytes]:
        """Several events.

        Args:
            events: the events.

        Raises:
            EncodeError: one cannot be written as JSON.
        """
        head = self._head
        if self._tokens:
            events = [with_tokens(event, self._tokens) for event in events]
        return [b"%b%d\ndata: %b\n\n" % (head, event.seq, encode(event)) for event in events]


def event_of(frame: bytes) -> bytes:
    """The JSON of the event of a frame.

    Args:
        frame: of a `Framer`.
    """
    return frame[frame.index(b"\n") + 7 : -2]  # after the id: "\ndata: "


class Relay:
    """The events of one turn as server-sent events, in order. A reader is a position in it: slow ones cost nothing.

    It belongs to one event loop.

    Args:
        turn_id: the turn.
        max_bytes: how much is kept; over that, the oldest frames go, and readers that are not past them have lost the
            thread.
        first: the ordinal of the first event that will come.
        on_drop: called with the frames that go, and the ordinal of the first of them.

    Attributes:
        turn_id: the turn.
        base: the ordinal of the first event that is kept.
        size: how many bytes are kept.
        published: how many bytes have come in all.
        max_bytes: how many bytes are kept at most.
        ended: nothing will come any more.
    """

    def __init__(
        self,
        turn_id: str,
        *,
        max_bytes: int,
        first: int = 0,
        on_drop: Callable[[Sequence[bytes], int], None] | None = None,
    ) -> None:
        self.turn_id = turn_id
        self.base = first
        self.size = 0
        self.ended = False
        self.published = 0
        self.max_bytes = max_bytes
        self._on_drop = on_drop
        self._frames: list[bytes] = []
        self._waiting: set[asyncio.Future[bool]] = set()

    @property
    def next(self) -> int:
        """The ordinal of the next event that will come."""
        return self.base + len(self._frames)

    def publish(self, frames: Sequence[bytes]) -> None:
        """Add frames and wake the readers.

        Args:
            frames: the next ones, one for each event.
        """
        if not frames:
            return
        self._frames += frames
        come = len(frames[0]) if len(frames) == 1 else sum(map(len, frames))
        self.size += come
        self.published += come
        if self.size > self.max_bytes:
            self._drop_oldest()
        if self._waiting:
            self._wake()

    def end(self) -> None:
        """Nothing comes any more; readers end where they have read everything. A second call does nothing."""
        self.ended = True
        self._wake()

    def take(self, at: int, max_bytes: int) -> tuple[bytes, int]:
        """Frames as one piece, and the position after them.

        Args:
            at: the ordinal of the first event wanted; not under `base`.
            max_bytes: how much at most; one frame may be longer.

        Returns:
            ``(b"", at)`` where there is nothing yet.
        """
        start = at - self.base
        frames = self._frames
        if start >= len(frames):
            return b"", at
        end, size = start + 1, len(frames[start])
        while end < len(frames) and size + len(frames[end]) <= max_bytes:
            size += len(frames[end])
            end += 1
        piece = frames[start] if end == start + 1 else b"".join(frames[start:end])
        return piece, self.base + end

    def frames(self, at: int) -> list[bytes]:
        """The frames from a position on.

        Args:
            at: the ordinal of the first event wanted; not under `base`.
        """
        return self._frames[at - self.base :]

    def events(self) -> list[bytes]:
        """The JSON of every event that is kept."""
        return [event_of(frame) for frame in self._frames]

    def news(self) -> asyncio.Future[bool]:
        """Becomes true when something comes, or the end; to be given back by `forget`."""
        news: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.add(news)
        return news

    def forget(self, news: asyncio.Future[bool]) -> None:
        """Nobody waits for news any more.

        Args:
            news: of `news`.
        """
        self._waiting.discard(news)

    def _wake(self) -> None:
        for news in self._waiting:
            if not news.done():
                news.set_result(True)
        self._waiting.clear()

    def _drop_oldest(self) -> None:
        # More than needed, so that not every event moves the whole list; not much, as what goes may have to be folded.
        target = self.max_bytes - self.max_bytes // 64
        gone = 0
        while self.size > target and gone < len(self._frames) - 1:
            self.size -= len(self._frames[gone])
            gone += 1
        if not gone:
            # The one frame that is there is longer than all that is to be kept.
            return
        if self._on_drop is not None:
            self._on_drop(self._frames[:gone], self.base)
        del self._frames[:gone]
        self.base += gone
