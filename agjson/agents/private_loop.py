"""An event loop of a run's own, for callers without one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from agjson.agents.closing import close_stream, running_loop

if TYPE_CHECKING:
    import asyncio

__all__ = ["PrivateLoop", "run_through"]

T = TypeVar("T")

_LOG = logging.getLogger("agjson")


def run_through(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that promises to wait for nothing, without an event loop.

    Args:
        coroutine: the coroutine.

    Raises:
        RuntimeError: it does wait.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a store that says `suspends = False` has suspended")


class PrivateLoop:
    """Runs coroutines and reads asynchronous iterators on the calling thread; the loop is made when first needed.

    An iterator is read by one task from its beginning to its close, as cancel scopes and time-outs inside it require.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def _made(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            import asyncio

            if running_loop() is not None:
                raise RuntimeError("run_sync cannot wait inside a running event loop: use `async for ... in run(...)`")
            self._loop = asyncio.new_event_loop()
        return self._loop

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end.

        Args:
            coroutine: the coroutine.

        Raises:
            RuntimeError: the calling thread is running an event loop.
        """
        try:
            loop = self._made()
        except RuntimeError:
            coroutine.close()
            raise
        return loop.run_until_complete(coroutine)

    def iterate(self, stream: AsyncIterator[T], *, close_timeout: float) -> Iterator[T]:
        """Read an asynchronous iterator.

        Args:
            stream: the iterator; it is closed with the one that is returned.
            close_timeout: how many seconds its close may take.

        Raises:
            RuntimeError: the calling thread is running an event loop.
        """
        return _Reader(self._made(), stream, close_timeout).items()

    def close(self, timeout: float) -> None:
        """Close the loop; tasks that others left on it are cancelled.

        Args:
            timeout: how many seconds they may take to end.
        """
        loop, self._loop = self._loop, None
        if loop is None:
            return
        import asyncio

        async def settle() -> None:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            if left:
                _, stuck = await asyncio.wait(left, timeout=timeout)
                if stuck:
                    _LOG.warning("%d tasks did not end within %s s of their cancellation", len(stuck), timeout)
            await loop.shutdown_asyncgens()

        try:
            loop.run_until_complete(settle())
        finally:
            loop.close()


class _Reader:
    """The task that reads an iterator, one item each time it is asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stream: AsyncIterator[Any], close_timeout: float) -> None:
        self._loop = loop
        self._stream = stream
        self._close_timeout = close_timeout
        self._asked: asyncio.Future[None] = loop.create_future()
        self._given: asyncio.Future[tuple[bool, Any]] = loop.create_future()

    def items(self) -> Generator[Any, None, None]:
        loop = self._loop
        task = loop.create_task(self._read())
        try:
            while True:
                self._asked.set_result(None)
                there, item = loop.run_until_complete(self._given)
                if not there:
                    return
                self._given = loop.create_future()
                yield item
        finally:
            self._end(task)

    async def _read(self) -> None:
        try:
            await self._asked
            async for item in self._stream:
                self._asked = self._loop.create_future()
                self._given.set_result((True, item))
                await self._asked
        except Exception as error:
            self._given.set_exception(error)
        else:
            self._given.set_result((False, None))
        finally:
            await close_stream(self._stream, self._close_timeout)
            if not self._given.done():
                self._given.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        import asyncio

        task.cancel()
        self._loop.run_until_complete(asyncio.wait({task}, timeout=self._close_timeout + 1))
        if not task.done():
            _LOG.warning("a native stream did not end within %s s of its cancellation", self._close_timeout + 1)
        elif not task.cancelled():
            task.exception()
