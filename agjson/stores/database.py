"""The connections of one process to a store's file: one that writes, and some that read."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from agjson.agents.closing import running_loop
from agjson.stores.errors import StoreClosedError, StoreFileError
from agjson.stores.schema import connect, migrate
from agjson.stores.writer import Work, Writer, typed_error

__all__ = ["Database"]

T = TypeVar("T")

_READERS = 4


class Database:
    """An open file. It is opened by the first thing that is asked of it.

    Args:
        path: the file.
        busy_timeout: how many seconds to wait for somebody else who writes.
        synchronous: ``normal`` or ``full``.
        beat: asked every `interval` seconds for what is to be written then; None: nothing.
        interval: seconds.
        last: the same, before the file is closed.

    Attributes:
        pid: the process that may use it: a connection does not outlive a fork.
    """

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout: float,
        synchronous: str,
        beat: Callable[[], Work[object] | None],
        interval: float,
        last: Callable[[], Work[object] | None],
    ) -> None:
        self.pid = os.getpid()
        self._path = path
        self._busy_timeout = busy_timeout
        self._synchronous = synchronous
        self._local = threading.local()
        self._lock = threading.Lock()
        self._closed = False
        self._connections: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="agjson-store-reader")
        self._identity: tuple[int, int] | None = None
        self.writer = Writer(path, self._open_writer, check=self._check_file, beat=beat, interval=interval, last=last)

    @property
    def is_usable(self) -> bool:
        """False where the file could not be opened, or after a fork: another one is to be made."""
        return self.writer.failure is None and self.pid == os.getpid()

    async def read(self, work: Work[T]) -> T:
        """Run something that reads, in a transaction of its own: all it sees is of one moment.

        Where no event loop runs on the calling thread, the thread waits.

        Args:
            work: what to do.

        Raises:
            StoreError: the file cannot be read, or is closed.
        """
        if not self.writer.is_open:
            await self.writer.write(_nothing)
        loop = running_loop()
        try:
            if loop is None:
                return self._pool.submit(self._read, work).result()
            return await loop.run_in_executor(self._pool, self._read, work)
        except RuntimeError:
            if self._closed:
                raise StoreClosedError(f"{self._path}: the store is closed") from None
            raise

    def close(self) -> None:
        """Do what is queued, and close all connections; returns when that is done. Does nothing after a fork."""
        if self.pid != os.getpid():
            # SQLite forbids to touch a connection on the other side of a fork.
            return
        self._closed = True
        self.writer.close()
        self._pool.shutdown()
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def _read(self, work: Work[T]) -> T:
        try:
            connection = self._reader()
            with _snapshot(connection):
                return work(connection)
        except sqlite3.Error as error:
            typed = typed_error(error, self._path)
            raise typed from typed.__cause__

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
            with self._lock:
                self._connections.append(connection)
        return connection

    def _open_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        try:
            migrate(connection)
            self._identity = self._file()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_file(self) -> None:
        """See that the path still names the open file: what is written to another one is lost when it is closed.

        Raises:
            StoreFileError: the file was deleted, moved or replaced.
        """
        if self._file() != self._identity:
            raise StoreFileError(f"{self._path}: the file was deleted, moved or replaced while it was open")

    def _file(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, busy_timeout=self._busy_timeout, synchronous=self._synchronous)


def _nothing(connection: sqlite3.Connection) -> None:
    """Waiting for it is waiting until the file is open."""


@contextlib.contextmanager
def _snapshot(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
