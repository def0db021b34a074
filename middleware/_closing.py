"""How a native stream that somebody stops to read is closed, whatever kind of stream it is."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["close_native", "close_native_async"]


def close_native(native: Any) -> None:
    """Close a stream on the calling thread.

    Args:
        native: the stream; one without ``close`` needs none.
    """
    closing = getattr(native, "close", None)
    if closing is not None:
        closing()


async def close_native_async(native: Any) -> None:
    """Close an asynchronous stream, or a request that was never made.

    Args:
        native: the stream, or the coroutine of one; without ``aclose`` and ``close`` it needs none.
    """
    closing = getattr(native, "aclose", None) or getattr(native, "close", None)
    if closing is not None:
        closed = closing()
        if inspect.isawaitable(closed):  # not that of a coroutine
            await closed
