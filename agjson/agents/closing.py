"""How a run ends: native streams are closed within a limit of time, and what must be stored is stored to its end."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from agjson.failures import trace_of

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "cancellation_counter",
    "close_stream",
    "close_stream_sync",
    "pending_cancellations",
    "running_loop",
    "settled",
]

_LOG = logging.getLogger("agjson")


async def close_stream(stream: Any, timeout: float) -> None:
    """Close an asynchronous iterator. What goes wrong is logged: the run has ended, and its end must not be lost.

    Args:
        stream: the iterator; one without ``aclose`` needs no close.
        timeout: how many seconds it may take; then it is cancelled. Counted under asyncio alone.
    """
    aclose = getattr(stream, "aclose", None)
    if aclose is None:
        return
    try:
        if running_loop() is not None:
            import asyncio

            async with asyncio.timeout(timeout):
                await aclose()
        else:
            await aclose()
    except TimeoutError:
        _LOG.warning("a native stream did not close within %s s", timeout)
    except Exception as error:
        _LOG.warning("a native stream failed to close: %s", trace_of(error))


def close_stream_sync(stream: Any) -> None:
    """Close an iterator; as `close_stream`, without a limit, as a thread cannot be cancelled.

    Args:
        stream: the iterator; one without ``close`` needs none.
    """
    close = getattr(stream, "close", None)
    if close is None:
        return
    try:
        close()
    except Exception as error:
        _LOG.warning("a native stream failed to close: %s", trace_of(error))


async def settled(waiting: Coroutine[Any, Any, None]) -> None:
    """Wait for something that must come to its end even where the waiting task is cancelled, also again and again.

    Args:
        waiting: what is to be done; under asyncio it runs as a task of its own.

    Raises:
        CancelledError: the waiting task was cancelled; raised when it is done.
    """
    if running_loop() is None:
        await waiting
        return
    import asyncio

    task = asyncio.ensure_future(waiting)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            _LOG.warning("failed while the run was cancelled: %s", trace_of(failure))
        raise cancelled
    await task


def pending_cancellations() -> int:
    """How often the current task was cancelled without having ended: a framework may have swallowed it. 0 elsewhere."""
    if running_loop() is None:
        return 0
    import asyncio

    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def cancellation_counter() -> Callable[[], int]:
    """What counts as `pending_cancellations` does, for one who asks after every event of a stream on this loop."""
    loop = running_loop()
    if loop is None:
        return lambda: 0
    import asyncio

    # Finding the loop is most of what `pending_cancellations` costs.
    current_task = asyncio.current_task

    def count() -> int:
        task = current_task(loop)
        return 0 if task is None else task.cancelling()

    return count


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of asyncio that the calling thread runs, if any; loads nothing where none can be."""
    loaded: Any = sys.modules.get("asyncio")
    if loaded is None:
        return None
    try:
        loop: asyncio.AbstractEventLoop = loaded.get_running_loop()
    except RuntimeError:
        return None
    return loop
