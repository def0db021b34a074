"""A run's view of the thread store: what the store has taken goes on to the readers, in the same numbering.

The driver tells its lease everything, the end of a cancelled run included. So the lease is where a stream is published:
a reader sees nothing that the store has not taken, and all that it has.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol

from agjson.agents import Thread, ThreadLease, ThreadStore
from agjson.middleware.asgi.coalescing import Coalescer
from agjson.middleware.asgi.relay import Framer
from agjson.types import AgStreamEvent

__all__ = ["Publisher", "PublishingLease", "PublishingStore"]

_LONGEST_QUEUE = 2000
_LONGEST_WRITE = 500
# Events that come faster than this, in seconds, are written together as long as each turn of the loop brings more: most
# of what a write costs does not depend on its length.
_BURST = 0.001


class Publisher(Protocol):
    """What a lease tells its run.

    Attributes:
        owner: who a thread belongs to that begins with this run.
    """

    owner: str | None

    def admit(self, thread: Thread | None, lease: PublishingLease) -> None:
        """The right to run the thread is taken. May raise: then the run is refused."""

    def begin(self, turn_id: str, thread: Thread) -> None:
        """The turn begins; nothing can refuse it any more."""

    def publish(self, frames: Sequence[bytes]) -> None:
        """The next events of the turn."""

    def stored(self) -> None:
        """The thread is saved; the events that come now are its last ones."""


class PublishingStore(ThreadStore):
    """The store of one run.

    Args:
        inner: the store that keeps the threads.
        publisher: what is told of the run.
        window: over how many seconds deltas are joined; 0: not at all.
    """

    suspends = True

    def __init__(self, inner: ThreadStore, publisher: Publisher, window: float) -> None:
        self._inner = inner
        self._publisher = publisher
        self._window = window

    async def load(self, thread_id: str) -> Thread | None:
        """The thread as it was saved last."""
        return await self._inner.load(thread_id)

    async def acquire(self, thread_id: str) -> ThreadLease:
        """Take the sole right to run a thread, if its run may have it.

        Raises:
            InputError: the thread is busy, or not for this run.
        """
        inner = await self._inner.acquire(thread_id)
        lease = PublishingLease(inner, self._publisher, self._window)
        try:
            self._publisher.admit(inner.thread, lease)
        except BaseException:
            await inner.release()
            raise
        return lease


class PublishingLease(ThreadLease):
    """Hands everything to the inner lease, and then to the run.

    Events wait for the store in a queue, all that have come meanwhile together: a store that takes a moment for each
    write slows the agent down only when the queue is full. Where it fails, the next call hears of it; what waits stays
    there, and goes with the next write.

    Args:
        inner: the lease of the store.
        publisher: what is told of the run.
        window: over how many seconds deltas are joined.

    Attributes:
        taken: the ordinal of the next event of the driver that was not handed to it yet.
    """

    def __init__(self, inner: ThreadLease, publisher: Publisher, window: float) -> None:
        self.thread = inner.thread
        self.database = inner.database
        self._inner = inner
        self._publisher = publisher
        self._coalescer = Coalescer(window)
        self._joins = window > 0
        # Nothing is to be waited for, so events need no queue.
        self._is_direct = not self._joins and not inner.logs
        self._framer: Framer | None = None
        # Events that the store has not taken yet, and what the readers will get of each.
        self._queue: list[tuple[AgStreamEvent, bytes]] = []
        self._writer: asyncio.Task[None] | None = None
        self._wrote_at = 0.0
        self._error: Exception | None = None
        self._late: asyncio.TimerHandle | None = None
        self.taken = 0

    async def begin(self, turn_id: str, thread: Thread, *, also: Callable[[Any], object] | None = None) -> None:
        """Note that a turn begins, and whose thread it is from now on."""
        self._framer = Framer(turn_id)
        thread = self._owned(thread)
        await (self._inner.begin(turn_id, thread) if also is None else self._inner.begin(turn_id, thread, also=also))
        self._publisher.begin(turn_id, thread)

    def show(self, tokens: Mapping[str, str]) -> None:
        """Give the readers the tokens of asks; the store gets none."""
        if self._framer is not None:
            self._framer.show(tokens)

    async def append(self, events: Sequence[AgStreamEvent]) -> None:
        """Log events and publish them."""
        if self._is_direct and not self._queue and self._framer is not None:
            self._publisher.publish(self._framer.frames(events))
            self.taken += len(events)
            return
        error, self._error = self._error, None
        if error is not None:
            raise error
        self._queue += self._framed(events, flush=False)
        self.taken += len(events)
        if self._joins:
            self._set_timer()
        if not self._inner.logs:
            self._publish_queue()
            return
        writer = self._start_writer()
        if len(self._queue) > _LONGEST_QUEUE and writer is not None:
            # Whoever is cancelled here leaves the writer alone: the events are taken.
            await asyncio.wait((writer,))

    async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
        """Save the thread, and publish the last events."""
        self._cancel_timer()
        if self._writer is not None:
            await asyncio.wait((self._writer,))
        before = self._coalescer.save()
        last = self._framed(events, flush=True)
        try:
            await self._inner.save(self._owned(thread), [event for event, _ in (*self._queue, *last)])
        except Exception:
            self._coalescer.restore(before)
            raise
        self._queue += last
        self.taken += len(events)
        self._publisher.stored()
        self._publish_queue()

    async def release(self) -> None:
        """Give up the right."""
        self._cancel_timer()
        if self._writer is not None:
            await asyncio.wait((self._writer,))
        await self._inner.release()

    def waiting(self) -> list[AgStreamEvent]:
        """What the store has not taken yet."""
        return [event for event, _ in self._queue]

    def publish_untaken(self, event: AgStreamEvent) -> None:
        """Publish an event that was delivered although the store has not taken it: its end could not be stored.

        Args:
            event: the next event that the driver has delivered; not one that was taken.
        """
        self._queue += self._framed((event,), flush=False)
        self.taken = event.seq + 1

    def publish_rest(self) -> None:
        """Publish what the store has never taken; the run is over."""
        self._cancel_timer()
        if self._framer is not None:
            self._queue += self._framed((), flush=True)
            self._publish_queue()

    def _framed(self, events: Sequence[AgStreamEvent], *, flush: bool) -> list[tuple[AgStreamEvent, bytes]]:
        """What is to be written now; where it cannot be encoded, nothing has happened."""
        assert self._framer is not None
        if not self._joins:
            return list(zip(events, self._framer.frames(events), strict=True))
        before = self._coalescer.save()
        now = monotonic()
        joined = self._coalescer.push(events, now)
        if flush:
            joined += self._coalescer.flush(now)
        try:
            return list(zip(joined, self._framer.frames(joined), strict=True))
        except Exception:
            self._coalescer.restore(before)
            raise

    def _start_writer(self) -> asyncio.Task[None] | None:
        if self._queue and (self._writer is None or self._writer.done()):
            self._writer = asyncio.create_task(self._write())
        return self._writer

    async def _write(self) -> None:
        while self._queue:
            await self._gather()
            batch = self._queue[:_LONGEST_WRITE]
            try:
                await self._inner.append([event for event, _ in batch])
            except Exception as error:
                self._error = error
                return
            del self._queue[: len(batch)]
            self._publisher.publish([frame for _, frame in batch])
            self._wrote_at = monotonic()

    async def _gather(self) -> None:
        come = 0
        while come < len(self._queue) < _LONGEST_WRITE and monotonic() - self._wrote_at < _BURST:
            come = len(self._queue)
            await asyncio.sleep(0)

    def _publish_queue(self) -> None:
        queue, self._queue = self._queue, []
        self._publisher.publish([frame for _, frame in queue])

    # What is held for a while

    def _set_timer(self) -> None:
        due = self._coalescer.due
        if due is not None and self._late is None:
            self._late = asyncio.get_running_loop().call_later(due - monotonic(), self._send_late)

    def _cancel_timer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _send_late(self) -> None:
        self._late = None
        due = self._coalescer.due
        if due is not None and due <= monotonic():
            self._queue += self._framed((), flush=True)
            if self._inner.logs:
                self._start_writer()
            else:
                self._publish_queue()
        self._set_timer()

    def _owned(self, thread: Thread) -> Thread:
        owner = self._publisher.owner
        return thread if thread.owner == owner else dataclasses.replace(thread, owner=owner)
