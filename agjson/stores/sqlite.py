"""Threads in a SQLite file: one file for any number of agents, threads of execution, event loops and processes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar

from agjson.agents.closing import running_loop
from agjson.agents.errors import ThreadBusyError
from agjson.agents.shared import LoggedTurn, SharedThreadStore
from agjson.agents.thread import Thread
from agjson.stores import runs
from agjson.stores.database import Database
from agjson.stores.errors import StoreClosedError, StoreError
from agjson.stores.lease import Held, SQLiteThreadLease
from agjson.stores.log import read_lines
from agjson.stores.tables import (
    apply,
    as_datetime,
    as_id,
    as_microseconds,
    as_sql,
    begun_owner,
    change_between,
    read_thread,
)
from agjson.types import UNSET, UnsetType

__all__ = ["SQLiteThreadStore", "StoredThread"]

T = TypeVar("T")

# Threads that `delete_older_than` deletes in one transaction, so that others get their turn.
_DELETED_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredThread:
    """An entry of the list of threads.

    Attributes:
        thread_id: its id.
        owner: who it belongs to.
        revision: how many runs it has had.
        saved_at: when it was saved last.
        is_running: somebody has the right to run it.
    """

    thread_id: str
    owner: str | None
    revision: int
    saved_at: datetime
    is_running: bool


class SQLiteThreadStore(SharedThreadStore):
    """Keeps threads in a SQLite file (spec §1.2, §3; what is kept unencrypted is the host's to protect, §13.2).

    The file is opened by the first call, or by ``async with``, and made where there is none. Several processes of one
    machine may use it at once; it must not lie on a network drive. Where no asyncio event loop runs on the calling
    thread, a call waits in the thread.

    What a call says it has done has been committed, and outlives the process. A thread whose run is lost is recovered
    (`recover`) by whoever loads, acquires or reads it next: as soon as the process has ended, where the system can tell
    that, or else when the right to run it has lapsed.

    Args:
        path: the file; its folder must exist. SQLite keeps two more beside it, ``-wal`` and ``-shm``.
        lease_timeout: after how many seconds without a sign of life a run counts as lost. A sign is given at a quarter
            of it.
        synchronous: ``normal``: what is committed outlives the process; ``full``: also a power failure, at the cost of
            waiting for the disk at every commit.
        busy_timeout: how many seconds to wait for another process that writes.

    Raises:
        ValueError: a setting that makes no sense.

    Every method raises `StoreError`: `StoreFileError` where there is no store at the path, `StoreLockedError`,
    `StoreFullError`, `DamagedStoreError`, `StoreClosedError`.
    """

    suspends = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        lease_timeout: float = 30.0,
        synchronous: Literal["normal", "full"] = "normal",
        busy_timeout: float = 10.0,
    ) -> None:
        if os.fspath(path) in ("", ":memory:"):
            raise ValueError("path must name a file; MemoryThreadStore keeps threads in memory")
        if lease_timeout <= 0 or busy_timeout < 0:
            raise ValueError("lease_timeout must be over 0, busy_timeout at least 0")
        if synchronous not in ("normal", "full"):
            raise ValueError("synchronous must be 'normal' or 'full'")
        self._path = Path(path).absolute()
        self._synchronous = synchronous
        self._busy_timeout = busy_timeout
        self._lease_timeout = lease_timeout
        # Reentrant: garbage collection may drop a lease at any moment, in this thread too.
        self._lock = threading.RLock()
        self._closed = False
        self._held = Held(lease_timeout)
        self._opened: Database | None = None
        self._finalizer: weakref.finalize[[], SQLiteThreadStore] | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    async def __aenter__(self) -> SQLiteThreadStore:
        """Open the file now, so that what is wrong with it comes out now.

        Raises:
            StoreError: it cannot be opened.
        """
        await self.write(lambda connection: None)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Do what was asked before, and close the file. Leases that are still out are lost runs."""
        with self._lock:
            self._closed = True
            database = self._opened
        if database is None:
            return
        if running_loop() is None:
            database.close()
        else:
            await asyncio.to_thread(database.close)

    # Threads

    async def load(self, thread_id: str) -> Thread | None:
        """The thread as it was saved last, also while it runs; None if there is none."""
        return await self._read_settled(thread_id, lambda connection: read_thread(connection, thread_id))

    async def acquire(self, thread_id: str) -> SQLiteThreadLease:
        """Take the sole right to run a thread, among all processes.

        Raises:
            ThreadBusyError: another run has it.
        """
        database = self._database()
        # Only now, as a fork changes it.
        held, token = self._held, uuid.uuid4().hex
        holder = held.holder
        held.tokens.add(token)
        try:
            await database.writer.write(
                lambda connection: runs.acquire(connection, thread_id, token, holder, held.tokens)
            )
            thread = await database.read(lambda connection: read_thread(connection, thread_id))
        except BaseException as error:
            held.tokens.discard(token)
            if not isinstance(error, ThreadBusyError):
                # It may be taken, or be going to be where the caller was cancelled, and nobody is left to release it.
                self.post(lambda connection: runs.release(connection, token))
            raise
        return SQLiteThreadLease(self, held, token, thread)

    async def put(self, thread: Thread) -> None:
        """Keep a thread that was made elsewhere; it replaces what was there, the log of its latest turn included.

        Args:
            thread: the thread.

        Raises:
            ThreadBusyError: it is running.
        """
        change, mine = change_between(None, thread), self._held.tokens

        def work(connection: sqlite3.Connection) -> None:
            runs.refuse_busy(connection, thread.thread_id, mine)
            connection.execute("DELETE FROM threads WHERE thread_id = ?", (as_sql(thread.thread_id),))
            added = connection.execute("INSERT INTO threads (thread_id) VALUES (?)", (as_sql(thread.thread_id),))
            apply(connection, added.lastrowid or 0, change)

        await self.write(work)

    async def delete(self, thread_id: str) -> bool:
        """Remove a thread and its log.

        Args:
            thread_id: which one.

        Returns:
            Whether there was one.

        Raises:
            ThreadBusyError: it is running.
        """
        mine = self._held.tokens

        def work(connection: sqlite3.Connection) -> bool:
            runs.refuse_busy(connection, thread_id, mine)
            done = connection.execute("DELETE FROM threads WHERE thread_id = ?", (as_sql(thread_id),))
            return done.rowcount > 0

        return await self.write(work)

    async def delete_older_than(self, age: timedelta) -> int:
        """Remove the threads that were saved longer ago than that and do not run.

        Args:
            age: how long ago.

        Returns:
            How many were removed.
        """
        before = as_microseconds(datetime.now(UTC) - age)

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM threads WHERE key IN (SELECT key FROM threads WHERE saved_at < ?"
                " AND NOT EXISTS (SELECT 1 FROM runs WHERE thread = key) LIMIT ?)",
                (before, _DELETED_AT_ONCE),
            ).rowcount

        # Of those that run nothing is deleted, so it must be true that they do.
        mine = self._held.tokens
        await self.write(lambda connection: runs.end_lost_runs(connection, mine))
        count = 0
        while deleted := await self.write(work):
            count += deleted
        return count

    async def threads(
        self, *, owner: str | UnsetType | None = UNSET, limit: int = 100, before: StoredThread | None = None
    ) -> list[StoredThread]:
        """The threads, the one saved last first.

        Args:
            owner: only those that belong to it; None: to nobody. Not given: all.
            limit: how many at most.
            before: an entry of an earlier list; only those that come after it.
        """
        conditions, values = ["settings IS NOT NULL"], list[str | bytes | int]()
        if owner is None:
            conditions.append("owner IS NULL")
        elif isinstance(owner, str):
            conditions.append("owner = ?")
            values.append(as_sql(owner))
        if before is not None:
            conditions.append("(saved_at, thread_id) < (?, ?)")
            values += [as_microseconds(before.saved_at), as_sql(before.thread_id)]
        query = (
            "SELECT thread_id, owner, revision, saved_at, EXISTS (SELECT 1 FROM runs WHERE thread = key) FROM threads"
            f" WHERE {' AND '.join(conditions)} ORDER BY saved_at DESC, thread_id DESC LIMIT ?"
        )

        def work(connection: sqlite3.Connection) -> list[StoredThread]:
            return [
                StoredThread(
                    thread_id=as_id(thread_id),
                    owner=None if owner is None else as_id(owner),
                    revision=revision,
                    saved_at=as_datetime(saved_at),
                    is_running=bool(is_running),
                )
                for thread_id, owner, revision, saved_at, is_running in connection.execute(query, (*values, limit))
            ]

        return await self._database().read(work)

    # Turns

    async def latest_turn(self, thread_id: str) -> LoggedTurn | None:
        """The turn that runs, or else the one that ran last; None: the thread has had none, or does not exist."""

        def work(connection: sqlite3.Connection) -> LoggedTurn | None:
            row = connection.execute(
                "SELECT threads.turn_id, coalesce((SELECT max(last_seq) FROM log WHERE thread = key), -1),"
                " runs.turn_id IS NULL, runs.begun, threads.owner"
                " FROM threads LEFT JOIN runs ON thread = key WHERE thread_id = ?",
                (as_sql(thread_id),),
            ).fetchone()
            if row is None or row[0] is None:
                return None
            turn_id, last_seq, ended, begun, owner = row
            return LoggedTurn(
                turn_id=as_id(turn_id),
                last_seq=last_seq,
                ended=bool(ended),
                owner=begun_owner(thread_id, begun) if not ended else None if owner is None else as_id(owner),
            )

        return await self._read_settled(thread_id, work)

    async def read_log(self, thread_id: str, turn_id: str, *, after: int = -1, limit: int = 1000) -> Sequence[bytes]:
        """Events of the latest turn of a thread, encoded, in order.

        Raises:
            LookupError: it is not the thread's latest turn.
        """

        def work(connection: sqlite3.Connection) -> list[bytes]:
            row = connection.execute(
                "SELECT key FROM threads WHERE thread_id = ? AND turn_id = ?", (as_sql(thread_id), as_sql(turn_id))
            ).fetchone()
            if row is None:
                raise LookupError(f"turn {turn_id!r} is not the latest one of thread {thread_id!r}")
            return read_lines(connection, row[0], after=after, limit=limit)

        return await self._read_settled(thread_id, work)

    async def request_stop(self, thread_id: str, turn_id: str) -> bool:
        """Ask whoever runs a turn to stop it; returns whether it was running."""
        mine = self._held.tokens

        def work(connection: sqlite3.Connection) -> bool:
            runs.end_lost_run(connection, thread_id, mine)
            done = connection.execute(
                "UPDATE runs SET stop = 1 WHERE turn_id = ? AND thread = (SELECT key FROM threads WHERE thread_id = ?)",
                (as_sql(turn_id), as_sql(thread_id)),
            )
            return done.rowcount > 0

        return await self.write(work)

    async def stop_requests(self) -> Sequence[tuple[str, str]]:
        """The runs of this store object that somebody has asked to stop, as pairs of thread and turn."""
        held = self._held
        if not held.tokens:
            return []

        def work(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            rows = connection.execute(
                "SELECT thread_id, runs.turn_id FROM runs JOIN threads ON key = thread"
                " WHERE store = ? AND stop AND runs.turn_id IS NOT NULL",
                (held.store,),
            )
            return [(as_id(thread_id), as_id(turn_id)) for thread_id, turn_id in rows]

        return await self._database().read(work)

    # For what else is kept in the file

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run something that reads, beside whoever writes; it sees all that was committed before, at one moment.

        Args:
            work: what to do with the connection, which refuses to write.

        Raises:
            StoreError: it cannot be done.
            Exception: whatever `work` raises.
        """
        return await self._database().read(work)

    async def write(self, work: Callable[[sqlite3.Connection], T], *, single: bool = False) -> T:
        """Run something in a transaction of the store; returns when it is committed.

        Args:
            work: what to do with the connection. It must not end the transaction, and may be called again where the
                transaction fails.
            single: it is one statement, which spares a savepoint.

        Raises:
            StoreError: it cannot be done.
            Exception: whatever `work` raises; nothing of it is stored then.
        """
        return await self._database().writer.write(work, single=single)

    def post(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Have something written that nobody waits for; what goes wrong is logged.

        Args:
            work: as for `write`.
        """
        try:
            database = self._database()
        except StoreError:
            return
        database.writer.post(work)

    async def _read_settled(self, thread_id: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read of a thread when it is what it is: a run of it that is lost is ended first."""
        database, mine = self._database(), self._held.tokens
        while True:
            found = await database.read(
                lambda connection: None if runs.is_lost(connection, thread_id, mine) else (work(connection),)
            )
            if found is not None:
                return found[0]
            await database.writer.write(lambda connection: runs.end_lost_run(connection, thread_id, mine))

    def _database(self) -> Database:
        database = self._opened
        if database is not None and not self._closed and database.is_usable:
            return database
        with self._lock:
            if self._closed:
                raise StoreClosedError(f"{self._path}: the store is closed")
            if self._opened is not None and self._opened.is_usable:
                return self._opened
            if self._opened is not None and self._opened.pid != os.getpid():
                # A child of a fork: what the parent has given out, and its connections, are the parent's.
                _OF_PARENTS.append(self._opened)
                self._held = Held(self._lease_timeout)
            elif self._opened is not None:
                # It has failed. Apart, as somebody may still be reading.
                threading.Thread(target=self._opened.close, name="agjson-store-closer").start()
            if self._finalizer is not None:
                self._finalizer.detach()
            held = self._held
            self._opened = Database(
                self._path,
                busy_timeout=self._busy_timeout,
                synchronous=self._synchronous,
                beat=held.report,
                interval=self._lease_timeout / 4,
                last=held.give_up,
            )
            self._finalizer = weakref.finalize(self, self._opened.close)
            return self._opened


# Kept, as garbage collection would close their connections, which SQLite forbids on the other side of a fork.
_OF_PARENTS: list[Database] = []
