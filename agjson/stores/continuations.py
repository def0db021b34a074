"""What frameworks need to continue, in the file of the threads (spec §3.1, §13.2)."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from agjson.agents.continuations import Continuations
from agjson.agents.errors import UnknownContinuationError
from agjson.approvals.canonical import canonical
from agjson.approvals.errors import UnsealableError
from agjson.approvals.policy import now
from agjson.errors import EncodeError
from agjson.stores.ledger import thread_key
from agjson.stores.sqlite import SQLiteThreadStore
from agjson.stores.tables import as_microseconds, as_sql
from agjson.wire import encode
from agjson.wire._json import plain

if TYPE_CHECKING:
    from agjson.approvals.sealing import Sealer

__all__ = ["SQLiteContinuations"]


class SQLiteContinuations(Continuations):
    """Keeps continuations in the file of a `SQLiteThreadStore`, so that another process may continue.

    They must be plain data. Each is there until it is taken, its thread is deleted, or its time is over; its name is
    kept as a hash, so that who reads the file can use none.

    Args:
        threads: the thread store.
        sealer: encrypts the values; None: they are kept in plain, and the file is to be protected.
        lasts: how long one is kept; None: until it is taken.
        clock: gives the present moment, with its offset from UTC.
    """

    suspends = True

    def __init__(
        self,
        threads: SQLiteThreadStore,
        *,
        sealer: Sealer | None = None,
        lasts: timedelta | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._threads = threads
        self._sealer = sealer
        self._lasts = lasts
        self._clock = clock

    async def put(self, thread_id: str, request_state: str, value: Any) -> None:
        """Keep a continuation; the arguments are those of `Continuations.put`.

        Raises:
            UnsealableError: the value is no plain data.
            StoreError: the file cannot be written.
        """
        try:
            text = encode(value)
        except EncodeError as error:
            raise UnsealableError(f"a continuation must be plain data: {error}") from None
        name = _name(request_state)
        kept = text
        if self._sealer is not None:
            kept = self._sealer.seal_at_rest(text, about=_about(thread_id, request_state))
        put_at = as_microseconds(self._clock())
        oldest = self._oldest()
        sealed = int(self._sealer is not None)

        def work(connection: sqlite3.Connection) -> None:
            if oldest is not None:
                connection.execute("DELETE FROM continuations WHERE put_at < ?", (oldest,))
            connection.execute(
                "INSERT INTO continuations (thread, name, put_at, value) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (thread, name) DO UPDATE SET put_at = excluded.put_at, value = excluded.value",
                (thread_key(connection, thread_id), name, put_at, bytes((sealed,)) + kept),
            )

        await self._threads.write(work)

    async def take(self, thread_id: str, request_state: str) -> Any:
        """Get a continuation and forget it; of two that ask at once, in whatever processes, one gets it.

        Raises:
            UnknownContinuationError: nothing is kept under this name for this thread, or it cannot be read any more.
            StoreError: the file cannot be written.
        """
        name, oldest = _name(request_state), self._oldest()

        def work(connection: sqlite3.Connection) -> bytes | None:
            row = connection.execute(
                "SELECT rowid, put_at, value FROM continuations"
                " WHERE thread = (SELECT key FROM threads WHERE thread_id = ?) AND name = ?",
                (as_sql(thread_id), name),
            ).fetchone()
            if row is None:
                return None
            connection.execute("DELETE FROM continuations WHERE rowid = ?", (row[0],))
            return None if oldest is not None and row[1] < oldest else row[2]

        kept = await self._threads.write(work)
        if kept is None:
            raise UnknownContinuationError(f"what thread {thread_id!r} needs to continue is not kept any more")
        text = kept[1:]
        if kept[0]:
            if self._sealer is None:
                raise UnknownContinuationError(f"what thread {thread_id!r} needs to continue is sealed")
            text = self._sealer.unseal_at_rest(text, about=_about(thread_id, request_state))
        return plain(text, "$")

    def _oldest(self) -> int | None:
        return None if self._lasts is None else as_microseconds(self._clock() - self._lasts)


def _name(request_state: str) -> bytes:
    return hashlib.sha256(request_state.encode("utf-8", "surrogatepass")).digest()


def _about(thread_id: str, request_state: str) -> bytes:
    return canonical(["kept continuation", thread_id, request_state])
