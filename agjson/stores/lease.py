"""The right to run a thread that is kept in a SQLite file."""

from __future__ import annotations

import logging
import os
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agjson.agents.store import ThreadLease
from agjson.agents.thread import Thread
from agjson.stores import runs
from agjson.stores.log import batches
from agjson.stores.processes import this_process
from agjson.stores.tables import change_between, encode_begun
from agjson.stores.writer import Work
from agjson.types import AgStreamEvent

if TYPE_CHECKING:
    from agjson.stores.sqlite import SQLiteThreadStore

__all__ = ["Held", "SQLiteThreadLease"]

_LOG = logging.getLogger("agjson")


class Held:
    """The rights that one store object has given out; knows nothing of the store itself, which may be dropped.

    Args:
        lease_timeout: after how many seconds without a report they lapse.

    Attributes:
        tokens: the rights.
        store: names the store object.
        pid: the process that holds them; after a fork its child does not.
    """

    def __init__(self, lease_timeout: float) -> None:
        self.tokens: set[str] = set()
        self.lease_timeout = lease_timeout
        self.store = uuid.uuid4().hex
        self.pid = os.getpid()

    @property
    def holder(self) -> runs.Holder:
        """Who holds them."""
        return runs.Holder(store=self.store, process=this_process(), lease_timeout=self.lease_timeout)

    def report(self) -> Work[object] | None:
        """What says that the holder is there; None where there is nothing to say."""
        tokens, holder = tuple(self.tokens), self.holder
        return (lambda connection: runs.report(connection, tokens, holder)) if tokens else None

    def give_up(self) -> Work[object] | None:
        """What lets all of them lapse; None where there are none."""
        tokens = tuple(self.tokens)
        return (lambda connection: runs.give_up(connection, tokens)) if tokens else None


class SQLiteThreadLease(ThreadLease):
    """The right to run a thread of a `SQLiteThreadStore`, which makes it.

    Every method raises `LeaseLostError` once the right has lapsed and somebody has ended the run.

    Args:
        store: the store.
        held: the rights of the store object; the lease takes itself out of them when it ends.
        token: the right.
        thread: the thread as it is stored; None: it is not.
    """

    logs = True

    def __init__(self, store: SQLiteThreadStore, held: Held, token: str, thread: Thread | None) -> None:
        self._store = store
        self._held = held
        self._token = token
        self._stored = thread
        self.thread = thread
        self.database = store

    async def begin(self, turn_id: str, thread: Thread, *, also: Callable[[Any], object] | None = None) -> None:
        """Note that a turn begins.

        Args:
            turn_id: the turn.
            thread: what the thread is if the run is lost.
            also: something to be done with the connection in the same transaction: both are, or none.
        """
        begun, token = encode_begun(self._stored, thread), self._token

        def work(connection: sqlite3.Connection) -> None:
            runs.begin(connection, token, turn_id, begun)
            if also is not None:
                also(connection)

        await self._store.write(work)

    async def append(self, events: Sequence[AgStreamEvent]) -> None:
        """Note events of the running turn.

        Raises:
            RuntimeError: none runs.
        """
        rows, token = batches(events), self._token
        if len(rows) == 1:
            row = rows[0]
            await self._store.write(lambda connection: runs.append(connection, token, row), single=True)
        elif rows:

            def work(connection: sqlite3.Connection) -> None:
                for row in rows:
                    runs.append(connection, token, row)

            await self._store.write(work)

    async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
        """Replace the thread by what it is after the run, and note the last events; writes what has changed."""
        change, rows, token = change_between(self._stored, thread), batches(events), self._token
        before, self._stored = self._stored, thread
        try:
            await self._store.write(lambda connection: runs.save(connection, token, change, rows))
        except Exception:
            self._stored = before
            raise

    async def release(self) -> None:
        """Give up the right; a run that was not saved is ended. A second call does nothing."""
        if not self._give_back():
            return
        token = self._token
        try:
            await self._store.write(lambda connection: runs.release(connection, token))
        except Exception as error:
            # It lapses by itself, as nothing is reported of it any more.
            _LOG.warning("the right to run a thread is not released: %s", type(error).__name__)

    def _give_back(self) -> bool:
        if self._token not in self._held.tokens or self._held.pid != os.getpid():
            return False
        self._held.tokens.discard(self._token)
        return True

    def __del__(self) -> None:
        # A run that was dropped and not closed is lost.
        if self._give_back():
            token = self._token
            self._store.post(lambda connection: runs.release(connection, token))
