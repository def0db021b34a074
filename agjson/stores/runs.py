"""Who runs a thread: the right to it, what a run notes, and the end of a run that nobody runs any more."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from agjson.agents.errors import ThreadBusyError
from agjson.agents.recovery import recover
from agjson.agents.thread import Thread
from agjson.stores.errors import DamagedStoreError, LeaseLostError
from agjson.stores.log import Batch, batches, read_events, read_lines, write_batches
from agjson.stores.processes import has_ended
from agjson.stores.tables import (
    ThreadChange,
    apply,
    as_id,
    as_sql,
    begun_thread,
    change_between,
    read_thread,
)

__all__ = [
    "Holder",
    "acquire",
    "append",
    "begin",
    "end_lost_run",
    "end_lost_runs",
    "give_up",
    "is_lost",
    "refuse_busy",
    "release",
    "report",
    "save",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds rights to run threads.

    Attributes:
        store: names the store object.
        process: names its process (`this_process`).
        lease_timeout: after how many seconds without a report its rights lapse.
    """

    store: str
    process: str
    lease_timeout: float


# Each function runs inside a transaction of its caller.


def acquire(connection: sqlite3.Connection, thread_id: str, token: str, holder: Holder, mine: Collection[str]) -> None:
    """Take the right to run a thread; a lost run of it is ended first.

    Args:
        connection: the connection.
        thread_id: which thread.
        token: names the right from now on.
        holder: who takes it.
        mine: the rights that the caller holds.

    Raises:
        ThreadBusyError: somebody else has it.
    """
    refuse_busy(connection, thread_id, mine)
    end_lost_run(connection, thread_id, mine)
    connection.execute(
        "INSERT INTO threads (thread_id) VALUES (?) ON CONFLICT (thread_id) DO NOTHING", (as_sql(thread_id),)
    )
    connection.execute(
        "INSERT INTO runs (thread, token, store, process, expires, lease_timeout)"
        " SELECT key, ?, ?, ?, ?, ? FROM threads WHERE thread_id = ?",
        (
            token,
            holder.store,
            holder.process,
            time.monotonic() + holder.lease_timeout,
            holder.lease_timeout,
            as_sql(thread_id),
        ),
    )


def begin(connection: sqlite3.Connection, token: str, turn_id: str, begun: bytes) -> None:
    """Note that a turn begins; the log of the one before is dropped.

    Args:
        connection: the connection.
        token: the right to run the thread.
        turn_id: the turn.
        begun: of `encode_begun`.

    Raises:
        LeaseLostError: the right has lapsed.
    """
    key, _ = _held(connection, token)
    connection.execute("DELETE FROM log WHERE thread = ?", (key,))
    connection.execute("UPDATE threads SET turn_id = ? WHERE key = ?", (as_sql(turn_id), key))
    connection.execute(
        "UPDATE runs SET turn_id = ?, begun = ?, stop = 0 WHERE token = ?", (as_sql(turn_id), begun, token)
    )


def append(connection: sqlite3.Connection, token: str, batch: Batch) -> None:
    """Note events of the running turn, by one statement.

    Args:
        connection: the connection.
        token: the right to run the thread.
        batch: the events.

    Raises:
        LeaseLostError: the right has lapsed.
        RuntimeError: no turn runs.
    """
    done = connection.execute(
        "INSERT INTO log (thread, last_seq, events)"
        " SELECT thread, ?, ? FROM runs WHERE token = ? AND turn_id IS NOT NULL",
        (*batch, token),
    )
    if done.rowcount == 0:
        _held(connection, token)
        raise RuntimeError("append is called between begin and save")


def save(connection: sqlite3.Connection, token: str, change: ThreadChange, rows: Sequence[Batch]) -> None:
    """Replace the thread by what it is after the run, and note the last events; the turn has ended.

    Args:
        connection: the connection.
        token: the right to run the thread.
        change: what changed of the thread.
        rows: the events.

    Raises:
        LeaseLostError: the right has lapsed.
    """
    key, turn_id = _held(connection, token)
    if turn_id is not None:
        write_batches(connection, key, rows)
    apply(connection, key, change)
    connection.execute("UPDATE runs SET turn_id = NULL, begun = NULL WHERE token = ?", (token,))


def release(connection: sqlite3.Connection, token: str) -> None:
    """Give up a right; a turn that was not saved is ended. Nothing happens where the right has lapsed.

    Args:
        connection: the connection.
        token: the right to run the thread.
    """
    run = _run(connection, "token = ?", token)
    if run is not None:
        _end(connection, run)


def report(connection: sqlite3.Connection, tokens: Iterable[str], holder: Holder) -> None:
    """Say that the holder of rights is still there.

    Args:
        connection: the connection.
        tokens: the rights.
        holder: who holds them.
    """
    expires = time.monotonic() + holder.lease_timeout
    connection.executemany("UPDATE runs SET expires = ? WHERE token = ?", [(expires, token) for token in tokens])


def give_up(connection: sqlite3.Connection, tokens: Iterable[str]) -> None:
    """Let rights lapse at once.

    Args:
        connection: the connection.
        tokens: the rights.
    """
    connection.executemany("UPDATE runs SET expires = 0 WHERE token = ?", [(token,) for token in tokens])


def is_lost(connection: sqlite3.Connection, thread_id: str, mine: Collection[str]) -> bool:
    """Whether somebody had the right to run a thread who is not there any more.

    Args:
        connection: the connection.
        thread_id: which thread.
        mine: the rights that the caller holds.
    """
    run = _run(connection, "threads.thread_id = ?", as_sql(thread_id))
    return run is not None and run.has_lapsed(mine)


def refuse_busy(connection: sqlite3.Connection, thread_id: str, mine: Collection[str]) -> None:
    """Go on only where nobody has the right to run a thread, or has it who is not there any more.

    Args:
        connection: the connection.
        thread_id: which thread.
        mine: the rights that the caller holds.

    Raises:
        ThreadBusyError: somebody has it.
    """
    run = _run(connection, "threads.thread_id = ?", as_sql(thread_id))
    if run is not None and not run.has_lapsed(mine):
        raise ThreadBusyError(f"thread {thread_id!r} is running", "$.threadId")


def end_lost_run(connection: sqlite3.Connection, thread_id: str, mine: Collection[str]) -> None:
    """End the run of a thread whose holder is not there any more; nothing happens where there is none.

    Args:
        connection: the connection.
        thread_id: which thread.
        mine: the rights that the caller holds.
    """
    run = _run(connection, "threads.thread_id = ?", as_sql(thread_id))
    if run is not None and run.has_lapsed(mine):
        _end(connection, run)


def end_lost_runs(connection: sqlite3.Connection, mine: Collection[str]) -> None:
    """End the lost runs of all threads, also of those that cannot be read: these are left as they are.

    Args:
        connection: the connection.
        mine: the rights that the caller holds.
    """
    rows = connection.execute("SELECT key, thread_id FROM threads JOIN runs ON thread = key").fetchall()
    for key, thread_id in rows:
        try:
            end_lost_run(connection, as_id(thread_id), mine)
        except DamagedStoreError:
            connection.execute("DELETE FROM runs WHERE thread = ?", (key,))


@dataclass(frozen=True, slots=True)
class _Run:
    key: int
    thread_id: str
    token: str
    process: str
    expires: float
    lease_timeout: float
    turn_id: str | None
    begun: bytes | None

    def has_lapsed(self, mine: Collection[str]) -> bool:
        if self.token in mine:
            # It was late, as its process was stopped or very busy, but it is there.
            return False
        left = self.expires - time.monotonic()
        # More than the whole time (and what rounding adds) is left of a right from before the machine was started anew.
        return not 0 <= left <= self.lease_timeout + 1 or has_ended(self.process)


def _run(connection: sqlite3.Connection, condition: str, value: str | bytes) -> _Run | None:
    row = connection.execute(
        "SELECT runs.thread, threads.thread_id, token, process, expires, lease_timeout, runs.turn_id, begun"
        f" FROM runs JOIN threads ON threads.key = runs.thread WHERE {condition}",
        (value,),
    ).fetchone()
    if row is None:
        return None
    key, thread_id, token, process, expires, lease_timeout, turn_id, begun = row
    turn = None if turn_id is None else as_id(turn_id)
    return _Run(key, as_id(thread_id), token, process, expires, lease_timeout, turn, begun)


def _held(connection: sqlite3.Connection, token: str) -> tuple[int, str | None]:
    """The thread that a right is for, and the turn that runs."""
    row = connection.execute("SELECT thread, turn_id FROM runs WHERE token = ?", (token,)).fetchone()
    if row is None:
        raise LeaseLostError("the right to run the thread has lapsed: the run was ended as interrupted")
    key, turn_id = row
    return key, None if turn_id is None else as_id(turn_id)


def _end(connection: sqlite3.Connection, run: _Run) -> None:
    if run.turn_id is not None and run.begun is not None:
        _recover(connection, run, run.turn_id, run.begun)
    connection.execute("DELETE FROM runs WHERE thread = ?", (run.key,))
    connection.execute("DELETE FROM threads WHERE key = ? AND settings IS NULL", (run.key,))


def _recover(connection: sqlite3.Connection, run: _Run, turn_id: str, begun: bytes) -> None:
    stored: Thread | None = read_thread(connection, run.thread_id)
    lines = read_lines(connection, run.key)
    recovered = recover(begun_thread(stored, run.thread_id, begun), turn_id, read_events(lines))
    if recovered.noted < len(lines):
        connection.execute("DELETE FROM log WHERE thread = ?", (run.key,))
        if recovered.noted:
            write_batches(connection, run.key, [(recovered.noted - 1, b"\n".join(lines[: recovered.noted]))])
    write_batches(connection, run.key, batches(recovered.events))
    apply(connection, run.key, change_between(stored, recovered.thread))
