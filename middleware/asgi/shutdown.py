"""The end of the server: open streams must end before it, and servers wait for them before they tell the app."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["on_signals"]


@contextmanager
def on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Hear of the signals that end a server as well as the server does, and before it.

    A server that is told to end waits until its responses are complete, and only then ends the lifespan of its app. A
    stream is complete when its run is; so the app has to know earlier. The handlers that are there are called after.

    Args:
        stop: called in the handler of ``SIGTERM`` and ``SIGINT``; must be quick and safe there.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler

    def handle(number: int, frame: FrameType | None) -> None:
        stop()
        before[number](number, frame)

    for each in before:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each, handler in before.items():
            if signal.getsignal(each) is handle:
                signal.signal(each, handler)
