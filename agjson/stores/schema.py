"""The tables of a store's file, and how an older file becomes one of this release."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from agjson.stores.errors import NewerSchemaError, StoreFileError

__all__ = ["APPLICATION_ID", "MIGRATIONS", "Migration", "connect", "migrate"]

APPLICATION_ID = 0x41674A53
"""What marks a SQLite file as a store (``PRAGMA application_id``): the letters AgJS."""

Migration: TypeAlias = Callable[[sqlite3.Connection], None]
"""Brings a file from one version of the schema to the next; runs inside a transaction, and must not end it."""

# Ids are TEXT; one that UTF-8 cannot hold (half a surrogate pair) is a BLOB in its place. JSON is kept as BLOB, moments
# as microseconds since 1970. Everything of a thread goes with its row in `threads`.
_VERSION_1 = (
    # A row without `settings` is a place held for a thread whose first run goes on.
    """CREATE TABLE threads (
        key INTEGER PRIMARY KEY,
        thread_id TEXT NOT NULL UNIQUE,
        owner TEXT,
        revision INTEGER NOT NULL DEFAULT 0,
        saved_at INTEGER,
        settings BLOB,
        state BLOB,
        turn_id TEXT
    )""",
    "CREATE INDEX threads_by_time ON threads (saved_at, thread_id)",
    "CREATE INDEX threads_by_owner ON threads (owner, saved_at, thread_id)",
    # The parts of the fold, in order: part is messages, turns, artifacts or memory.
    """CREATE TABLE parts (
        thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
        part TEXT NOT NULL,
        place INTEGER NOT NULL,
        json BLOB NOT NULL,
        PRIMARY KEY (thread, part, place)
    )""",
    """CREATE TABLE ids (
        thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        PRIMARY KEY (thread, kind, id)
    ) WITHOUT ROWID""",
    # The events of the latest turn, a row for each batch, a line for each event.
    """CREATE TABLE log (
        thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
        last_seq INTEGER NOT NULL,
        events BLOB NOT NULL,
        PRIMARY KEY (thread, last_seq)
    )""",
    # Who has the right to run a thread, and until when (seconds of the machine's monotonic clock) if nothing more is
    # heard. `turn_id` and `begun` are set from the beginning of a turn to its save.
    """CREATE TABLE runs (
        thread INTEGER PRIMARY KEY REFERENCES threads (key) ON DELETE CASCADE,
        token TEXT NOT NULL UNIQUE,
        store TEXT NOT NULL,
        process TEXT NOT NULL,
        expires REAL NOT NULL,
        lease_timeout REAL NOT NULL,
        turn_id TEXT,
        begun BLOB,
        stop INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX runs_to_stop ON runs (store) WHERE stop",
)


# Asks and what is decided about them (`agjson.approvals`).
_VERSION_2 = (
    # The asks of one turn. What is claimed, and how that ended, is in the JSON.
    """CREATE TABLE ask_batches (
        key INTEGER PRIMARY KEY,
        thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
        turn_id TEXT NOT NULL,
        state TEXT NOT NULL,
        json BLOB NOT NULL,
        UNIQUE (thread, turn_id)
    )""",
    "CREATE INDEX ask_batches_open ON ask_batches (thread) WHERE state IN ('open', 'claimed')",
    # `issued` never changes; `course` is what came after it.
    """CREATE TABLE asks (
        thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
        ask_id TEXT NOT NULL,
        batch INTEGER NOT NULL REFERENCES ask_batches (key) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        state TEXT NOT NULL,
        token_hash BLOB,
        issued BLOB NOT NULL,
        course BLOB,
        PRIMARY KEY (thread, ask_id)
    )""",
    "CREATE INDEX asks_by_batch ON asks (batch, place)",
    "CREATE INDEX asks_by_token ON asks (token_hash) WHERE token_hash IS NOT NULL",
    """CREATE TABLE standing_rules (
        key INTEGER PRIMARY KEY,
        rule_id TEXT NOT NULL UNIQUE,
        owner TEXT,
        thread INTEGER REFERENCES threads (key) ON DELETE CASCADE,
        json BLOB NOT NULL
    )""",
    "CREATE INDEX standing_rules_by_owner ON standing_rules (owner)",
    "CREATE INDEX standing_rules_by_thread ON standing_rules (thread)",
    # What frameworks need to continue; a row goes when it is taken.
    """CREATE TABLE continuations (
        thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
        name BLOB NOT NULL,
        put_at INTEGER NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (thread, name)
    )""",
    # What counts once: digests of sealed continuations that were used.
    """CREATE TABLE spent (
        thread INTEGER NOT NULL REFERENCES threads (key) ON DELETE CASCADE,
        digest BLOB NOT NULL,
        PRIMARY KEY (thread, digest)
    ) WITHOUT ROWID""",
)


def _version_1(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_1:
        connection.execute(statement)


def _version_2(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_2:
        connection.execute(statement)


MIGRATIONS: tuple[Migration, ...] = (_version_1, _version_2)
"""What makes each version of the schema from the one before, in order; ``PRAGMA user_version`` counts those done."""


def connect(path: Path, *, busy_timeout: float, synchronous: str) -> sqlite3.Connection:
    """Open a store's file, made where there is none, without looking at its schema.

    Args:
        path: the file.
        busy_timeout: how many seconds to wait for somebody else who writes.
        synchronous: ``normal`` or ``full``.

    Returns:
        A connection that any thread may use, one at a time; transactions are begun by hand.

    Raises:
        StoreFileError: no file can be there, or the database that is there is one of something else.
        sqlite3.Error: it cannot be used now.
    """
    if path.is_dir():
        raise StoreFileError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise StoreFileError(f"{path.parent} is no folder: make it first")
    # SQLite keeps two files beside it while it is open.
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise StoreFileError(f"{path} is not writable, or its folder is not")
    # Whether it is a database is for SQLite to say: to open and close the file by hand would drop this process's locks.
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
    try:
        _refuse_other_database(connection, path)
        _enter_wal(connection, busy_timeout)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_other_database(connection: sqlite3.Connection, path: Path) -> None:
    """Before anything is written: somebody else's database must stay as it is."""
    # In one transaction, as somebody may be making a store of it right now.
    connection.execute("BEGIN")
    try:
        if _application(connection) != APPLICATION_ID and (_version(connection) or _has_tables(connection)):
            raise StoreFileError(f"{path} is a database of something else")
    finally:
        connection.execute("ROLLBACK")


def _enter_wal(connection: sqlite3.Connection, busy_timeout: float) -> None:
    """Set the journal mode. SQLite does not wait for others here, so it is tried again."""
    end = time.monotonic() + busy_timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            if mode != "wal":
                raise StoreFileError(f"the file system cannot hold a write-ahead log: the journal mode is {mode}")
            return


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring a file to the latest version of the schema, in one transaction; where that fails it is as before.

    Args:
        connection: a connection to the file, outside of a transaction.
        migrations: what makes each version.

    Raises:
        NewerSchemaError: the file is of a later release.
    """
    if _version(connection) == len(migrations) and _application(connection) == APPLICATION_ID:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if _application(connection) != APPLICATION_ID:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        if version > len(migrations):
            raise NewerSchemaError(
                f"a later release has written the file: its schema has version {version}, this one reads "
                f"{len(migrations)}",
                version,
                len(migrations),
            )
        for migration in migrations[version:]:
            migration(connection)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _application(connection: sqlite3.Connection) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return int(application)
