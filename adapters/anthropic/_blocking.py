"""Streams of a blocking client, which another thread can cut off."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Generator, Iterator
from typing import Any

__all__ = ["BlockingStream"]


class BlockingStream(Iterator[Any]):
    """The native events of blocking requests.

    Args:
        events: makes the events; it gets the stream, and sets `response` to each response that it reads.

    Attributes:
        response: the response that is being read.
    """

    def __init__(self, events: Callable[[BlockingStream], Generator[Any]]) -> None:
        self.response: Any = None
        self._events = events(self)

    def __next__(self) -> Any:
        return next(self._events)

    def close(self) -> None:
        """Stop; for the thread that reads."""
        self._events.close()

    def interrupt(self) -> None:
        """End a read that waits for the provider; for another thread.

        To close the socket would not do: the thread that waits keeps it open.
        """
        with contextlib.suppress(AttributeError, KeyError, OSError):
            stream = self.response.extensions["network_stream"]
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
