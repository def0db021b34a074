"""Where threads are kept between runs, and how two runs of one thread are kept apart (spec §1.2, §3)."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from agjson.agents.errors import ThreadBusyError
from agjson.agents.recovery import recover
from agjson.agents.thread import Thread
from agjson.types import AgStreamEvent

__all__ = ["MemoryThreadStore", "ThreadLease", "ThreadStore"]


class ThreadLease(ABC):
    """The sole right to run a thread, from `ThreadStore.acquire` to `release`.

    The driver calls, in this order: `begin` when nothing can refuse the input any more, `append` for every batch of
    events before it delivers them, `save` once at the end of the run, before it delivers the terminal, and `release`
    once, whatever happened. Where an input is refused, `release` alone is called.

    A run that began and was never saved is lost: the process died, or `save` raised. The framework may have acted by
    then, so the pause that the run went on from must not be answered a second time: what the next `acquire` gives is
    `recover` of what `begin` and `append` were told, not the thread from before.

    A method that raises has had no effect; one that is cancelled while it waits has had all of it.

    Class attributes:
        logs: `append` does something; false spares the calls.

    Attributes:
        thread: the thread as it was when the lease was taken; None: there is none yet.
        database: what keeps the thread, where others may add to its transactions; None: they cannot.
    """

    logs: ClassVar[bool] = True

    thread: Thread | None
    database: object = None

    @abstractmethod
    async def begin(self, turn_id: str, thread: Thread, *, also: Callable[[Any], object] | None = None) -> None:
        """Note that a turn begins.

        Args:
            turn_id: the turn.
            thread: what the thread is if the run is lost: as before, but without the pause that the run goes on from.
            also: something to be done in the same transaction, both or none; only whoever knows `database` gives it.
        """

    @abstractmethod
    async def append(self, events: Sequence[AgStreamEvent]) -> None:
        """Note events of the running turn, for readers that join later and for what a crash would lose.

        Args:
            events: the next ones in order; each exactly once, by this call or by `save`.
        """

    def show(self, tokens: Mapping[str, str]) -> None:  # noqa: B027  # most stores keep asks without their tokens
        """Learn the tokens of asks that are in the events that follow, for those who get these events from the lease.

        What is stored has no tokens (spec §13.1); the default does nothing.

        Args:
            tokens: by ask id, all that count now.
        """

    @abstractmethod
    async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
        """Replace the thread by what it is after the run, and note the last events, both or none of it.

        Also called for runs that failed or were cut off.

        Args:
            thread: the new thread, of the same id.
            events: the last events of the turn, the terminal among them.
        """

    @abstractmethod
    async def release(self) -> None:
        """Give up the right; a second call does nothing. Must not raise."""


class ThreadStore(ABC):
    """Keeps threads. One store may serve any number of agents, threads of execution and event loops.

    Class attributes:
        suspends: its methods wait for something. False promises that each of them, and of its leases, runs through
            without suspending, so that `Agent.run_sync` needs no event loop for it.
    """

    suspends: ClassVar[bool] = True

    @abstractmethod
    async def load(self, thread_id: str) -> Thread | None:
        """The thread as it was saved last, also while it runs; None if there is none.

        Args:
            thread_id: which one.
        """

    @abstractmethod
    async def acquire(self, thread_id: str) -> ThreadLease:
        """Take the sole right to run a thread, one that does not exist yet included.

        Args:
            thread_id: which one.

        Raises:
            ThreadBusyError: another run has it.
        """


class MemoryThreadStore(ThreadStore):
    """Keeps threads in this process.

    Args:
        max_threads: how many threads are kept; over that, those are forgotten that were saved longest ago and do not
            run. A forgotten thread is unknown, its pauses included. None: no limit.

    Raises:
        ValueError: a limit under 1.
    """

    suspends = False

    def __init__(self, max_threads: int | None = None) -> None:
        if max_threads is not None and max_threads < 1:
            raise ValueError("max_threads must be at least 1")
        self._max = max_threads
        self._lock = threading.Lock()
        # The one saved longest ago comes first.
        self._threads: dict[str, Thread] = {}
        self._running: set[str] = set()

    async def load(self, thread_id: str) -> Thread | None:
        """The thread as it was saved last; None if there is none or it was forgotten."""
        return self._threads.get(thread_id)

    async def acquire(self, thread_id: str) -> ThreadLease:
        """Take the sole right to run a thread in this process.

        Raises:
            ThreadBusyError: another run has it.
        """
        with self._lock:
            if thread_id in self._running:
                raise ThreadBusyError(f"thread {thread_id!r} is running", "$.threadId")
            self._running.add(thread_id)
            return _MemoryLease(self, thread_id, self._threads.get(thread_id))

    def put(self, thread: Thread) -> None:
        """Keep a thread, as one that was made elsewhere.

        Args:
            thread: the thread; it replaces what was there.
        """
        with self._lock:
            self._threads.pop(thread.thread_id, None)
            self._threads[thread.thread_id] = thread
            if self._max is not None and len(self._threads) > self._max:
                idle = [id for id in self._threads if id not in self._running]
                for id in idle[: len(self._threads) - self._max]:
                    del self._threads[id]

    def forget(self, thread_id: str) -> None:
        """Remove a thread; one that is not there is no error.

        Args:
            thread_id: which one.
        """
        with self._lock:
            self._threads.pop(thread_id, None)

    def __len__(self) -> int:
        """How many threads are kept."""
        return len(self._threads)

    def free(self, thread_id: str) -> None:
        """Let a thread be run again; `ThreadLease.release` calls it."""
        with self._lock:
            self._running.discard(thread_id)


class _MemoryLease(ThreadLease):
    logs = False

    def __init__(self, store: MemoryThreadStore, thread_id: str, thread: Thread | None) -> None:
        self._store = store
        self._thread_id: str | None = thread_id
        self._begun: tuple[str, Thread] | None = None
        self.thread = thread

    async def begin(self, turn_id: str, thread: Thread, *, also: Callable[[Any], object] | None = None) -> None:
        self._begun = (turn_id, thread)

    async def append(self, events: Sequence[AgStreamEvent]) -> None:
        """Nothing to do: a process that dies takes its threads with it."""

    async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
        self._begun = None
        self._store.put(thread)

    async def release(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            turn_id, thread = begun
            self._store.put(recover(thread, turn_id, ()).thread)
        thread_id, self._thread_id = self._thread_id, None
        if thread_id is not None:
            self._store.free(thread_id)
