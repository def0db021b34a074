"""The one thread that writes to a store's file: everything that waits is committed together (group commit)."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from agjson.agents.closing import running_loop
from agjson.failures import trace_of
from agjson.stores.errors import (
    DamagedStoreError,
    StoreClosedError,
    StoreError,
    StoreFileError,
    StoreFullError,
    StoreLockedError,
)

__all__ = ["Work", "Writer", "typed_error"]

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Something to do with a connection inside a transaction, which it must not end.

It may be done again where the transaction fails, so it must have no effect on anything else.
"""

_LOG = logging.getLogger("agjson")
_FILE_CODES = frozenset(
    (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY)
)


def typed_error(error: BaseException, where: object) -> BaseException:
    """The error of this library for one of SQLite's; any other is returned as it is.

    Args:
        error: what was raised.
        where: the file.
    """
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        # Python's own, whose words hold what it could not read.
        if isinstance(error, sqlite3.OperationalError):
            return DamagedStoreError(f"{where} holds what cannot be read")
        return StoreError(f"{where}: {type(error).__name__}")
    code &= 0xFF
    kind: type[StoreError] = StoreError
    if code in _FILE_CODES:
        kind = StoreFileError
    elif code == sqlite3.SQLITE_FULL:
        kind = StoreFullError
    elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        kind = StoreLockedError
    elif code == sqlite3.SQLITE_CORRUPT:
        kind = DamagedStoreError
    made = kind(f"{where}: {error}")
    made.__cause__ = error
    return made


class _Job:
    """Something to be written, and who waits for it."""

    __slots__ = ("done", "error", "future", "loop", "result", "single", "work")

    def __init__(self, work: Work[Any], *, single: bool) -> None:
        self.work = work
        self.single = single
        self.result: Any = None
        self.error: BaseException | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[Any] | None = None
        self.done: threading.Event | None = None


class Writer:
    """Runs what it is given in transactions, in the order in which it was given.

    What waits while a transaction runs makes up the next one. A failure is that of the work that caused it: the rest of
    its group is committed without it. A caller goes on when its work is committed; one that is cancelled while it waits
    leaves its work where it is.

    Args:
        path: the file, for messages.
        open: opens the connection; called in the thread. What it raises fails everything that is asked of the writer.
        check: called before each transaction; raises where the file is not the store any more.
        beat: asked every `interval` seconds for what is to be done then, in a transaction of its own; None: nothing.
        interval: seconds.
        last: the same, before the connection is closed.
    """

    def __init__(
        self,
        path: object,
        open: Callable[[], sqlite3.Connection],
        *,
        check: Callable[[], None],
        beat: Callable[[], Work[object] | None],
        interval: float,
        last: Callable[[], Work[object] | None],
    ) -> None:
        self._path = path
        self._open = open
        self._check = check
        self._beat = beat
        self._interval = interval
        self._last = last
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        # Reentrant: garbage collection may call `post` at any moment, in this thread too.
        self._lock = threading.RLock()
        self._closed = False
        # Why the file could not be opened, or used any further.
        self.failure: BaseException | None = None
        self.is_open = False
        self._thread = threading.Thread(target=self._run, name="agjson-store-writer", daemon=True)
        self._thread.start()

    # What others call

    async def write(self, work: Work[T], *, single: bool = False) -> T:
        """Run something in a transaction; returns when it is committed.

        Where no event loop runs on the calling thread, the thread waits.

        Args:
            work: what to do.
            single: it is one statement, which has no effect where it fails.

        Raises:
            StoreError: it cannot be done, or the writer is closed.
            Exception: whatever `work` raises; nothing of it is stored then.
        """
        job = _Job(work, single=single)
        loop = running_loop()
        if loop is None:
            job.done = threading.Event()
            self._put(job)
            job.done.wait()
            if job.error is not None:
                raise job.error
            result: T = job.result
            return result
        job.loop, job.future = loop, loop.create_future()
        self._put(job)
        result = await job.future
        return result

    def post(self, work: Work[object]) -> None:
        """Have something done that nobody waits for; nothing happens where the writer is closed.

        Args:
            work: what to do.
        """
        try:
            self._put(_Job(work, single=False))
        except StoreError as error:
            _LOG.debug("not written: %s", error)

    def close(self) -> None:
        """Do what is queued, close the connection, and end the thread; returns when that is done."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _put(self, job: _Job) -> None:
        with self._lock:
            if self.failure is not None:
                raise self.failure
            if self._closed:
                raise StoreClosedError(f"{self._path}: the store is closed")
            self._queue.put(job)

    # The thread

    def _run(self) -> None:
        try:
            connection = self._open()
        except Exception as error:
            self._refuse(typed_error(error, self._path))
            return
        self.is_open = True
        try:
            self._serve(connection)
            self._regularly(connection, self._last)
        except BaseException as error:
            _LOG.error("%s: the store has failed: %s", self._path, trace_of(error))
            self._refuse(typed_error(error, self._path))
        finally:
            connection.close()

    def _refuse(self, error: BaseException) -> None:
        """It cannot go on: so it is with all that was asked. Whoever asks next tries a new writer."""
        with self._lock:
            self.failure = error
            jobs: list[_Job] = []
            while not self._queue.empty():
                job = self._queue.get()
                if job is not None:
                    job.error = error
                    jobs.append(job)
        _tell(jobs)

    def _serve(self, connection: sqlite3.Connection) -> None:
        due = time.monotonic() + self._interval
        while True:
            group: list[_Job] = []
            ends = False
            try:
                job = self._queue.get(timeout=max(0.0, due - time.monotonic()))
                while job is not None:
                    group.append(job)
                    job = self._queue.get_nowait()
                ends = True
            except queue.Empty:
                pass
            if group:
                self._settle(connection, group)
            if ends:
                return
            if time.monotonic() >= due:
                self._regularly(connection, self._beat)
                due = time.monotonic() + self._interval

    def _regularly(self, connection: sqlite3.Connection, what: Callable[[], Work[object] | None]) -> None:
        work = what()
        if work is not None:
            self._settle(connection, [_Job(work, single=False)])

    def _settle(self, connection: sqlite3.Connection, group: list[_Job]) -> None:
        """Do a group, and tell those who wait, whatever happens."""
        try:
            self._check()
            self._commit(connection, group)
        except BaseException as error:
            failure = typed_error(error, self._path)
            with self._lock:
                # Before anybody hears of it, so that whoever asks again has a new writer.
                self.failure = failure
            for job in group:
                job.error = failure
            raise
        finally:
            _tell(group)

    def _commit(self, connection: sqlite3.Connection, group: list[_Job]) -> None:
        """Run a group in one transaction; where that fails as a whole, each member in one of its own."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            for job in group:
                job.error = typed_error(error, self._path)
            return
        alone = len(group) == 1
        try:
            for job in group:
                if alone or job.single:
                    self._do(connection, job)
                else:
                    self._do_apart(connection, job)
                if not connection.in_transaction:
                    # SQLite does so where the disk is full or the file damaged.
                    raise StoreError(f"{self._path}: the transaction was rolled back")
            connection.execute("ROLLBACK" if alone and group[0].error is not None else "COMMIT")
        except (sqlite3.Error, StoreError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if alone:
                group[0].error = group[0].error or typed_error(error, self._path)
                return
            for job in group:
                job.error = None
                self._commit(connection, [job])

    def _do(self, connection: sqlite3.Connection, job: _Job) -> None:
        try:
            job.result = job.work(connection)
        except StopIteration:
            # No future takes it.
            job.error = RuntimeError("what was to be written raised StopIteration")
        except BaseException as error:
            job.error = typed_error(error, self._path)

    def _do_apart(self, connection: sqlite3.Connection, job: _Job) -> None:
        connection.execute("SAVEPOINT job")
        self._do(connection, job)
        if connection.in_transaction:
            if job.error is not None:
                connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")


def _tell(jobs: list[_Job]) -> None:
    """Wake those who wait; every event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        if job.done is not None:
            job.done.set()
        elif job.loop is not None:
            by_loop.setdefault(job.loop, []).append(job)
        else:
            _resolve([job])
    for loop, told in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, told)
        except RuntimeError:  # the loop is closed
            _resolve(told)


def _resolve(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future is not None and not job.future.done() and not job.future.get_loop().is_closed():
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        elif job.error is not None:
            _LOG.warning("nobody waits any more for what failed: %s", _words(job.error))


def _words(error: BaseException) -> str:
    """In words, without a value that was to be stored."""
    return str(error) if isinstance(error, StoreError) else type(error).__name__
