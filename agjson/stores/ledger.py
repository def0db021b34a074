"""Asks and what is decided about them, in the file of the threads (spec §13.1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from agjson._arguments import check_kind
from agjson.agents.errors import UnknownContinuationError
from agjson.approvals.book import Book, LedgerStore
from agjson.approvals.canonical import canonical
from agjson.approvals.errors import LedgerError
from agjson.approvals.record_json import (
    decode_batch,
    decode_record,
    decode_rule,
    encode_batch,
    encode_course,
    encode_issued,
    encode_rule,
)
from agjson.approvals.records import AskRecord, BatchRecord, StandingRule
from agjson.errors import DecodeError
from agjson.stores.errors import DamagedStoreError
from agjson.stores.processes import has_ended, this_process
from agjson.stores.sqlite import SQLiteThreadStore
from agjson.stores.tables import as_id, as_sql
from agjson.stores.writer import Work

if TYPE_CHECKING:
    from agjson.agents.store import ThreadLease
    from agjson.agents.thread import Thread
    from agjson.approvals.sealing import Sealer

__all__ = ["SQLiteLedgerStore", "thread_key"]

T = TypeVar("T")

_ASK = (
    "SELECT threads.thread_id, ask_batches.turn_id, asks.place, asks.state, asks.token_hash, asks.issued, asks.course,"
    " asks.ask_id FROM threads JOIN ask_batches ON ask_batches.thread = threads.key"
    " JOIN asks ON asks.batch = ask_batches.key AND asks.thread = threads.key"
)
_BATCH = (
    "SELECT threads.thread_id, ask_batches.turn_id, ask_batches.state, ask_batches.json"
    " FROM ask_batches JOIN threads ON threads.key = ask_batches.thread"
)


class SQLiteLedgerStore(LedgerStore):
    """Keeps the ledger in the file of a `SQLiteThreadStore`; any number of processes may use it at once.

    A thread's records go with the thread. What a method has returned for is committed; to outlive a power failure too,
    the thread store needs ``synchronous="full"``: a claim that is lost with the power would let a call run twice.

    Args:
        threads: the thread store.
        sealer: encrypts asks, answers and calls in the file (spec §13.2); None: they are kept in plain. Tokens are kept
            as hashes alone either way. What was written in plain can be read with a sealer too, not the reverse.
    """

    suspends = True

    def __init__(self, threads: SQLiteThreadStore, *, sealer: Sealer | None = None) -> None:
        check_kind("threads", threads, SQLiteThreadStore, hint="SQLiteLedgerStore(SQLiteThreadStore(path))")
        self._threads = threads
        self._sealer = sealer

    async def transact(self, work: Callable[[Book], T]) -> T:
        """Run something on the records, in a transaction of its own; as `LedgerStore.transact`.

        Raises:
            StoreError: the file cannot be written.
        """
        return await self._threads.write(self.within(work))

    async def read(self, work: Callable[[Book], T]) -> T:
        """Look at the records, beside whoever writes; as `LedgerStore.read`.

        Raises:
            StoreError: the file cannot be read, or `work` writes.
        """
        return await self._threads.read(self.within(work))

    def within(self, work: Callable[[Book], T]) -> Work[T]:
        """The same for a transaction that is somebody else's, as that in which a turn begins (`ThreadLease.begin`).

        Args:
            work: what to do.
        """
        return lambda connection: work(_SQLiteBook(connection, self._sealer))

    async def begin(self, lease: ThreadLease, turn_id: str, thread: Thread, work: Callable[[Book], T]) -> T:
        """Run something on the records and begin a turn, in one transaction where the file is that of the thread."""
        if lease.database is not self._threads:
            return await super().begin(lease, turn_id, thread, work)
        done: list[T] = []
        within = self.within(work)
        await lease.begin(turn_id, thread, also=lambda connection: done.append(within(connection)))
        return done[-1]

    def holder(self) -> str:
        """A name of the calling process."""
        return this_process()

    def has_ended(self, holder: str) -> bool:
        """Whether a process has surely ended.

        Args:
            holder: its name.
        """
        return has_ended(holder)


class _SQLiteBook(Book):
    def __init__(self, connection: sqlite3.Connection, sealer: Sealer | None) -> None:
        self._connection = connection
        self._sealer = sealer

    # Asks

    def ask(self, thread_id: str, ask_id: str) -> AskRecord | None:
        rows = self._connection.execute(
            f"{_ASK} WHERE threads.thread_id = ? AND asks.ask_id = ?", (as_sql(thread_id), as_sql(ask_id))
        )
        return next(iter(self._asks(rows)), None)

    def asks(self, thread_id: str, turn_id: str | None = None) -> list[AskRecord]:
        condition, values = "threads.thread_id = ?", [as_sql(thread_id)]
        if turn_id is not None:
            condition += " AND ask_batches.turn_id = ?"
            values.append(as_sql(turn_id))
        rows = self._connection.execute(f"{_ASK} WHERE {condition} ORDER BY asks.batch, asks.place", values)
        return self._asks(rows)

    def ask_of_token(self, token_hash: bytes) -> AskRecord | None:
        rows = self._connection.execute(f"{_ASK} WHERE asks.token_hash = ?", (token_hash,))
        return next(iter(self._asks(rows)), None)

    def add_ask(self, record: AskRecord) -> None:
        key = self._key(record.thread_id)
        self._connection.execute(
            "INSERT INTO asks (thread, ask_id, batch, place, state, token_hash, issued, course)"
            " SELECT ?, ?, key, ?, ?, ?, ?, ? FROM ask_batches WHERE thread = ? AND turn_id = ?",
            (
                key,
                as_sql(record.ask_id),
                record.place,
                record.state,
                record.token_hash,
                self._sealed(encode_issued(record), "issued", record.thread_id, record.ask_id),
                self._course(record),
                key,
                as_sql(record.turn_id),
            ),
        )

    def _write_ask(self, before: AskRecord, after: AskRecord) -> None:
        done = self._connection.execute(
            "UPDATE asks SET state = ?, course = ? WHERE thread = (SELECT key FROM threads WHERE thread_id = ?)"
            " AND ask_id = ? AND state = ?",
            (after.state, self._course(after), as_sql(before.thread_id), as_sql(before.ask_id), before.state),
        )
        if done.rowcount != 1:
            raise LedgerError(f"ask {before.ask_id!r} was changed meanwhile")

    def _course(self, record: AskRecord) -> bytes | None:
        text = encode_course(record)
        return None if text is None else self._sealed(text, "course", record.thread_id, record.ask_id)

    def _asks(self, rows: Iterable[tuple[Any, ...]]) -> list[AskRecord]:
        return [self._read_ask(*row) for row in rows]

    def _read_ask(
        self,
        thread: str | bytes,
        turn: str | bytes,
        place: int,
        state: Any,
        token_hash: bytes | None,
        issued: bytes,
        course: bytes | None,
        ask: str | bytes,
    ) -> AskRecord:
        thread_id, ask_id = as_id(thread), as_id(ask)
        try:
            return decode_record(
                self._unsealed(issued, "issued", thread_id, ask_id),
                None if course is None else self._unsealed(course, "course", thread_id, ask_id),
                thread_id=thread_id,
                turn_id=as_id(turn),
                place=place,
                state=state,
                token_hash=token_hash,
            )
        except (DecodeError, KeyError, TypeError, ValueError):
            raise DamagedStoreError(f"ask {ask_id!r} of thread {thread_id!r} cannot be read") from None

    # Batches

    def batch(self, thread_id: str, turn_id: str) -> BatchRecord | None:
        rows = self._connection.execute(
            f"{_BATCH} WHERE threads.thread_id = ? AND ask_batches.turn_id = ?", (as_sql(thread_id), as_sql(turn_id))
        )
        return next((self._read_batch(*row) for row in rows), None)

    def batches(self, thread_id: str | None = None) -> list[BatchRecord]:
        condition, values = "ask_batches.state IN ('open', 'claimed')", list[str | bytes]()
        if thread_id is not None:
            condition += " AND threads.thread_id = ?"
            values.append(as_sql(thread_id))
        rows = self._connection.execute(f"{_BATCH} WHERE {condition} ORDER BY ask_batches.key", values).fetchall()
        return [self._read_batch(*row) for row in rows]

    def put_batch(self, batch: BatchRecord) -> None:
        self._connection.execute(
            "INSERT INTO ask_batches (thread, turn_id, state, json) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (thread, turn_id) DO UPDATE SET state = excluded.state, json = excluded.json",
            (
                self._key(batch.thread_id),
                as_sql(batch.turn_id),
                batch.state,
                self._sealed(encode_batch(batch), "batch", batch.thread_id, batch.turn_id),
            ),
        )

    def _read_batch(self, thread: str | bytes, turn: str | bytes, state: Any, json: bytes) -> BatchRecord:
        thread_id, turn_id = as_id(thread), as_id(turn)
        try:
            text = self._unsealed(json, "batch", thread_id, turn_id)
            return decode_batch(text, thread_id=thread_id, turn_id=turn_id, state=state)
        except (DecodeError, KeyError, TypeError, ValueError):
            raise DamagedStoreError(f"the asks of turn {turn_id!r} of thread {thread_id!r} cannot be read") from None

    # Standing rules, and what counts once

    def rules(self, owner: str | None) -> list[StandingRule]:
        rows = self._connection.execute(
            "SELECT rule_id, threads.thread_id, json FROM standing_rules LEFT JOIN threads ON threads.key = thread"
            " WHERE standing_rules.owner IS ? ORDER BY standing_rules.key",
            (None if owner is None else as_sql(owner),),
        ).fetchall()
        return [self._read_rule(*row, owner=owner) for row in rows]

    def add_rule(self, rule: StandingRule) -> None:
        self._connection.execute(
            "INSERT INTO standing_rules (rule_id, owner, thread, json) VALUES (?, ?, ?, ?)",
            (
                rule.rule_id,
                None if rule.owner is None else as_sql(rule.owner),
                None if rule.thread_id is None else self._key(rule.thread_id),
                self._sealed(encode_rule(rule), "rule", rule.rule_id),
            ),
        )

    def drop_rule(self, rule_id: str) -> None:
        self._connection.execute("DELETE FROM standing_rules WHERE rule_id = ?", (rule_id,))

    def _read_rule(self, rule_id: str, thread: str | bytes | None, json: bytes, *, owner: str | None) -> StandingRule:
        try:
            text = self._unsealed(json, "rule", rule_id)
            return decode_rule(text, rule_id=rule_id, owner=owner, thread_id=None if thread is None else as_id(thread))
        except (DecodeError, KeyError, TypeError, ValueError):
            raise DamagedStoreError(f"standing rule {rule_id!r} cannot be read") from None

    def spend(self, thread_id: str, digest: bytes) -> bool:
        done = self._connection.execute(
            "INSERT INTO spent (thread, digest) VALUES (?, ?) ON CONFLICT DO NOTHING", (self._key(thread_id), digest)
        )
        return done.rowcount > 0

    # Both

    def _key(self, thread_id: str) -> int:
        """The thread's row; one is made where the thread was never saved, as it is for a first run."""
        return thread_key(self._connection, thread_id)

    def _sealed(self, text: bytes, *about: str) -> bytes:
        return text if self._sealer is None else self._sealer.seal_at_rest(text, about=canonical(about))

    def _unsealed(self, kept: bytes, *about: str) -> bytes:
        # JSON objects begin with a brace, which no name of a key does.
        if kept.startswith(b"{"):
            return kept
        if self._sealer is None:
            raise ValueError("it is sealed")
        try:
            return self._sealer.unseal_at_rest(kept, about=canonical(about))
        except UnknownContinuationError as error:
            raise ValueError(str(error)) from None


def thread_key(connection: sqlite3.Connection, thread_id: str) -> int:
    """The row of a thread in ``threads``, made where there is none: a place held for a thread that is not saved yet.

    Args:
        connection: inside a transaction.
        thread_id: the thread.
    """
    id = as_sql(thread_id)
    row: tuple[int] | None = connection.execute("SELECT key FROM threads WHERE thread_id = ?", (id,)).fetchone()
    if row is not None:
        return row[0]
    return connection.execute("INSERT INTO threads (thread_id) VALUES (?)", (id,)).lastrowid or 0
