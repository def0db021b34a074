"""Native events that a framework delivers by calls, as an iterator with a bounded buffer."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agjson.agents.closing import running_loop
from agjson.errors import AgJSONError

if TYPE_CHECKING:
    import asyncio

__all__ = ["CallbackSource", "SourceClosed"]

T = TypeVar("T")


class SourceClosed(AgJSONError):
    """Nobody reads the events any more: the framework should stop. Raised in the framework's own calls."""


class CallbackSource(Generic[T]):
    """Runs a framework that hands out its events by calls, and yields them.

    ``run`` gets the source and calls `send` (from coroutines, on any loop) or `put` (from any thread) for each event;
    both wait while the buffer is full. What it returns is then in `result`; what it raises, the iteration raises after
    the last event. It begins with the first read, in a copy of the reader's context: as a task of the reader's loop,
    and then the source is read with ``async for``, or in a thread of its own, and then with ``async for`` or ``for``.

    Reading stops for good with `aclose` or `close`: the task is cancelled; a thread is told by `SourceClosed` at its
    next call, as a thread cannot be stopped otherwise.

    Args:
        run: runs the framework to its end; called with the source, it returns an awaitable.
        in_thread: ``run`` blocks instead, and needs a thread.
        interrupt: called by `close` while a thread is running, to end what it waits for.
        limit: how many events may wait to be read.

    Raises:
        ValueError: a limit under 1.
    """

    def __init__(
        self,
        run: Callable[[CallbackSource[T]], Any],
        *,
        in_thread: bool = False,
        interrupt: Callable[[], None] | None = None,
        limit: int = 64,
    ) -> None:
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self._run = run
        self._in_thread = in_thread
        self._interrupt = interrupt
        self._limit = limit
        self._lock = threading.Lock()
        self._items: deque[T] = deque()
        # Each wakes one that waits; it may be called from any thread, and more than once.
        self._reader: Callable[[], None] | None = None
        self._writers: deque[Callable[[], None]] = deque()
        self._on_end: Callable[[], None] | None = None
        self._began = False
        self._done = False
        self._closed = False
        self._error: BaseException | None = None
        self._result: Any = None
        self._task: asyncio.Task[None] | None = None

    @property
    def result(self) -> Any:
        """What ``run`` returned; None before that."""
        return self._result

    # The framework's side

    async def send(self, item: T) -> None:
        """Hand out an event; waits while the buffer is full.

        Args:
            item: the event.

        Raises:
            SourceClosed: nobody reads any more.
        """
        while not self._offer(item):
            wake, woken = _async_waiter()
            if self._wait_for_room(wake):
                try:
                    await woken
                except BaseException:
                    self._pass_on(wake)
                    raise

    def put(self, item: T) -> None:
        """Hand out an event from a thread; waits while the buffer is full.

        On a thread that runs an event loop it does not wait, since that would stop the loop, and perhaps the reader
        with it: the buffer grows over its limit.

        Args:
            item: the event.

        Raises:
            SourceClosed: nobody reads any more.
        """
        while not self._offer(item):
            if running_loop() is not None:
                self._offer(item, force=True)
                return
            woken = threading.Event()
            wake = woken.set
            if self._wait_for_room(wake):
                try:
                    woken.wait()
                except BaseException:
                    self._pass_on(wake)
                    raise

    def _offer(self, item: T, *, force: bool = False) -> bool:
        with self._lock:
            if self._closed:
                raise SourceClosed("the events are not read any more")
            if len(self._items) >= self._limit and not force:
                return False
            self._items.append(item)
            self._wake_reader()
            return True

    def _wait_for_room(self, wake: Callable[[], None]) -> bool:
        """Queue up for room; False if there is some by now."""
        with self._lock:
            if self._closed or len(self._items) < self._limit:
                return False
            self._writers.append(wake)
            return True

    def _pass_on(self, wake: Callable[[], None]) -> None:
        """Leave the queue for room; who was let in already lets the next one in."""
        with self._lock:
            if wake in self._writers:
                self._writers.remove(wake)
            elif self._writers:
                self._writers.popleft()()

    def _end(self, error: BaseException | None) -> None:
        with self._lock:
            self._done = True
            self._error = error
            self._wake_reader()
            if self._on_end is not None:
                self._on_end()

    def _wake_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader()

    # The reader's side

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        self._begin()
        item, ready = self._take(None)
        while not ready:
            wake, woken = _async_waiter()
            item, ready = self._take(wake)
            if not ready:
                await woken
                item, ready = self._take(None)
        return item

    def __iter__(self) -> Iterator[T]:
        if not self._in_thread:
            raise TypeError("the source runs on an event loop: read it with `async for`")
        return self

    def __next__(self) -> T:
        self._begin()
        item, ready = self._take(None, StopIteration)
        while not ready:
            woken = threading.Event()
            item, ready = self._take(woken.set, StopIteration)
            if not ready:
                woken.wait()
                item, ready = self._take(None, StopIteration)
        return item

    def _take(self, wake: Callable[[], None] | None, stop: type[Exception] = StopAsyncIteration) -> tuple[T, bool]:
        """The next event and true, or anything and false: then `wake` is called when there may be one."""
        with self._lock:
            if self._items and not self._closed:
                item = self._items.popleft()
                if self._writers:
                    self._writers.popleft()()
                return item, True
            if self._closed:
                raise stop
            if self._done:
                error, self._error = self._error, None
                self._closed = True
                raise stop if error is None else error
            self._reader = wake
            none: Any = None
            return none, False

    def _begin(self) -> None:
        if self._began or self._closed:
            return
        self._began = True
        if self._in_thread:
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(self._as_thread,), name="agjson-source", daemon=True)
            thread.start()
        else:
            import asyncio

            self._task = asyncio.get_running_loop().create_task(self._as_task())

    async def _as_task(self) -> None:
        try:
            running = self._run(self)
            if not isinstance(running, Awaitable):
                raise TypeError("run returned no awaitable: a function that blocks needs in_thread=True")
            self._result = await running
        except BaseException as error:
            self._end(error)
            if not isinstance(error, Exception):
                raise
        else:
            self._end(None)

    def _as_thread(self) -> None:
        try:
            self._result = self._run(self)
        except SourceClosed:
            self._end(None)
        except BaseException as error:
            self._end(error)
        else:
            self._end(None)

    def close(self) -> None:
        """Read no more. A task is cancelled and ends soon after; a thread ends at its next call."""
        with self._lock:
            self._closed = True
            self._items.clear()
            self._wake_reader()
            while self._writers:
                self._writers.popleft()()
        if self._interrupt is not None and self._began and not self._done:
            self._interrupt()
        if self._task is not None and not self._task.done():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def aclose(self) -> None:
        """Read no more, and wait until the framework has ended."""
        self.close()
        wake, woken = _async_waiter()
        with self._lock:
            if not self._began or self._done:
                return
            self._on_end = wake
        await woken


def _async_waiter() -> tuple[Callable[[], None], asyncio.Future[None]]:
    """What wakes a coroutine from any thread, and what the coroutine awaits."""
    import asyncio

    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not woken.done():
            woken.set_result(None)

    def wake() -> None:
        if running_loop() is loop:
            settle()
            return
        # A closed loop has nobody left who waits on it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    return wake, woken
