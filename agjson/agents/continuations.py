"""What a framework needs to continue a paused run, kept on the server's side (spec §3.1, §13.2)."""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from agjson.agents.errors import UnknownContinuationError

__all__ = ["Continuations", "MemoryContinuations"]


class Continuations(ABC):
    """Keeps what a framework needs to continue (a run state, a live session) under an opaque `requestState`.

    A continuation is used once: replaying a run state could run a tool a second time. Clients see the `requestState` at
    most, and nothing that it names.

    Class attributes:
        suspends: as for `ThreadStore`.
    """

    suspends: ClassVar[bool] = True

    def mint(self) -> str:
        """A new `requestState`: 192 random bits, without meaning."""
        return secrets.token_urlsafe(24)

    @abstractmethod
    async def put(self, thread_id: str, request_state: str, value: Any) -> None:
        """Keep a continuation.

        Args:
            thread_id: the thread that it belongs to.
            request_state: what `mint` gave.
            value: the continuation, as the adapter knows it.
        """

    @abstractmethod
    async def take(self, thread_id: str, request_state: str) -> Any:
        """Get a continuation and forget it.

        Args:
            thread_id: the thread that asks.
            request_state: its name.

        Raises:
            UnknownContinuationError: nothing is kept under this name for this thread.
        """


class MemoryContinuations(Continuations):
    """Keeps continuations in this process, live objects included.

    Args:
        max_items: how many are kept; over that the oldest are forgotten. None: no limit.

    Raises:
        ValueError: a limit under 1.
    """

    suspends = False

    def __init__(self, max_items: int | None = None) -> None:
        if max_items is not None and max_items < 1:
            raise ValueError("max_items must be at least 1")
        self._max = max_items
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], Any] = {}

    async def put(self, thread_id: str, request_state: str, value: Any) -> None:
        """Keep a continuation; the arguments are those of `Continuations.put`."""
        with self._lock:
            self._kept[thread_id, request_state] = value
            while self._max is not None and len(self._kept) > self._max:
                del self._kept[next(iter(self._kept))]

    async def take(self, thread_id: str, request_state: str) -> Any:
        """Get a continuation and forget it.

        Raises:
            UnknownContinuationError: nothing is kept under this name for this thread.
        """
        with self._lock:
            try:
                return self._kept.pop((thread_id, request_state))
            except KeyError:
                pass
        raise UnknownContinuationError(f"what thread {thread_id!r} needs to continue is not kept any more")

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._kept)
