"""A thread as rows: what changed of it, how it is written, how it is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import is_
from typing import Any, cast

import msgspec

from agjson.agents.thread import Thread
from agjson.errors import DecodeError
from agjson.known_ids import KnownIds
from agjson.stores.errors import DamagedStoreError
from agjson.stores.thread_json import ID_KINDS, decode_settings, decode_thread, encode_settings, encode_thread
from agjson.types import (
    UNSET,
    AgArtifact,
    AgMemoryRecord,
    AgMessage,
    AgReduceResult,
    AgTurnRecord,
)
from agjson.wire import encode
from agjson.wire._json import members, plain
from agjson.wire._reader import reader

__all__ = [
    "ThreadChange",
    "apply",
    "as_datetime",
    "as_id",
    "as_microseconds",
    "as_sql",
    "begun_owner",
    "begun_thread",
    "change_between",
    "encode_begun",
    "read_thread",
]

_PARTS = {"messages": AgMessage, "artifacts": AgArtifact, "memory": AgMemoryRecord, "turns": AgTurnRecord}
# The kind of the rows that keep `Thread.nested`, beside those of `KnownIds`.
_NESTED = "nested"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_sql(id: str) -> str | bytes:
    """An id as it is stored: as text, or as bytes where it holds half a surrogate pair, which UTF-8 cannot."""
    try:
        id.encode()
    except UnicodeEncodeError:
        return id.encode("utf-8", "surrogatepass")
    return id


def as_id(stored: str | bytes) -> str:
    """The id that `as_sql` made a stored value of."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")


def as_microseconds(moment: datetime) -> int:
    """A moment as it is stored: microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def as_datetime(stored: int) -> datetime:
    """The moment that `as_microseconds` made a stored value of."""
    return _EPOCH + timedelta(microseconds=stored)


# What changed


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadChange:
    """What makes the rows of one thread from those of an earlier one, encoded.

    Attributes:
        settings: `encode_settings` of the new thread.
        owner: its owner.
        revision: its revision.
        has_state: its shared state is another one than before.
        state: the shared state, if so; None: it was never set.
        parts: rows of the fold to be written: part, place, JSON.
        lengths: how many rows are left of a part that became shorter.
        new_ids: rows of ids that were not there: kind, id.
        old_ids: rows of ids that are there no more.
    """

    settings: bytes
    owner: str | bytes | None
    revision: int
    state: bytes | None
    has_state: bool
    parts: Sequence[tuple[str, int, bytes]]
    lengths: Sequence[tuple[str, int]]
    new_ids: Sequence[tuple[str, str | bytes]]
    old_ids: Sequence[tuple[str, str | bytes]]


def change_between(old: Thread | None, new: Thread) -> ThreadChange:
    """What has to be written. What two threads share is told by identity, as threads are never changed in place.

    Args:
        old: the thread as it is stored; None: it is not.
        new: the thread as it is to be stored.

    Raises:
        EncodeError: a value in it has no JSON form.
    """
    before = old or Thread(thread_id=new.thread_id)
    parts: list[tuple[str, int, bytes]] = []
    lengths: list[tuple[str, int]] = []
    for part in _PARTS:
        was: Sequence[object] = getattr(before.result, part)
        now: Sequence[object] = getattr(new.result, part)
        if now is was:
            continue
        # A quick look first, as most runs only add.
        if not all(map(is_, was, now)):
            pairs = enumerate(zip(was, now, strict=False))
            parts += [(part, place, encode(later)) for place, (earlier, later) in pairs if later is not earlier]
        parts += [(part, place, encode(now[place])) for place in range(len(was), len(now))]
        if len(now) < len(was):
            lengths.append((part, len(now)))
    new_ids: list[tuple[str, str | bytes]] = []
    old_ids: list[tuple[str, str | bytes]] = []
    for kind in (*ID_KINDS, _NESTED):
        had, have = _ids(before, kind), _ids(new, kind)
        if have is had:
            continue
        added = have - had
        new_ids += [(kind, as_sql(id)) for id in added]
        if len(have) < len(had) + len(added):
            old_ids += [(kind, as_sql(id)) for id in had - have]
    state = new.result.state
    has_state = state is not before.result.state
    return ThreadChange(
        settings=encode_settings(new),
        owner=None if new.owner is None else as_sql(new.owner),
        revision=new.revision,
        state=encode(state) if has_state and state is not UNSET else None,
        has_state=has_state,
        parts=parts,
        lengths=lengths,
        new_ids=new_ids,
        old_ids=old_ids,
    )


def _ids(thread: Thread, kind: str) -> Set[str]:
    ids: Set[str] = thread.nested if kind == _NESTED else getattr(thread.ids, kind)
    return ids


def apply(connection: sqlite3.Connection, key: int, change: ThreadChange) -> None:
    """Write what changed of a thread.

    Args:
        connection: inside a transaction.
        key: its row in ``threads``.
        change: what changed.
    """
    connection.execute(
        "UPDATE threads SET settings = ?, owner = ?, revision = ?, saved_at = ? WHERE key = ?",
        (change.settings, change.owner, change.revision, as_microseconds(datetime.now(UTC)), key),
    )
    if change.has_state:
        connection.execute("UPDATE threads SET state = ? WHERE key = ?", (change.state, key))
    for part, length in change.lengths:
        connection.execute("DELETE FROM parts WHERE thread = ? AND part = ? AND place >= ?", (key, part, length))
    connection.executemany(
        "INSERT INTO parts (thread, part, place, json) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (thread, part, place) DO UPDATE SET json = excluded.json",
        [(key, *row) for row in change.parts],
    )
    connection.executemany(
        "DELETE FROM ids WHERE thread = ? AND kind = ? AND id = ?", [(key, *row) for row in change.old_ids]
    )
    connection.executemany(
        "INSERT INTO ids (thread, kind, id) VALUES (?, ?, ?)", [(key, *row) for row in change.new_ids]
    )


# Reading a thread


def _row_reader(tp: Any) -> Callable[[bytes], Any]:
    made: list[Callable[[bytes], Any]] = []
    careful = reader(tp)

    def read(row: bytes) -> Any:
        if not made:
            made.append(msgspec.json.Decoder(tp, dec_hook=_leave_to_reader).decode)
        try:
            return made[0](row)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return careful(row, "$", True)

    return read


def _leave_to_reader(tp: type, value: object) -> Any:
    raise ValueError(f"{tp.__name__} needs the careful reader")


_READERS = {part: _row_reader(tp) for part, tp in _PARTS.items()}


def read_thread(connection: sqlite3.Connection, thread_id: str) -> Thread | None:
    """The thread as it was saved last; None: it never was.

    Args:
        connection: inside a transaction, so that all rows are of one moment.
        thread_id: which one.

    Raises:
        DamagedStoreError: what is stored is no thread.
    """
    row = connection.execute(
        "SELECT key, settings, state FROM threads WHERE thread_id = ?", (as_sql(thread_id),)
    ).fetchone()
    if row is None or row[1] is None:
        return None
    key, settings, state = row
    try:
        fields = decode_settings(settings)
        parts = {part: _part(connection, key, part) for part in _PARTS}
        result = AgReduceResult(**parts, state=UNSET if state is None else plain(state, "$.state"))
    except (DecodeError, TypeError) as error:
        raise DamagedStoreError(_unreadable(thread_id, error)) from None
    ids: dict[str, set[str]] = {kind: set() for kind in (*ID_KINDS, _NESTED)}
    for kind, id in connection.execute("SELECT kind, id FROM ids WHERE thread = ?", (key,)):
        if kind not in ids:
            raise DamagedStoreError(f"thread {thread_id!r} cannot be read: an id of no known kind")
        ids[kind].add(as_id(id))
    return Thread(
        thread_id=thread_id,
        result=result,
        nested=ids.pop(_NESTED),
        ids=KnownIds(**ids),
        pending=fields.pending,
        started_by=fields.started_by,
        run=fields.run,
        capabilities=fields.capabilities,
        revision=fields.revision,
        owner=fields.owner,
    )


def _part(connection: sqlite3.Connection, key: int, part: str) -> list[Any]:
    read = _READERS[part]
    rows = connection.execute("SELECT json FROM parts WHERE thread = ? AND part = ? ORDER BY place", (key, part))
    return [read(json) for (json,) in rows]


def _unreadable(thread_id: str, error: Exception) -> str:
    """In words, without a value that is stored."""
    place = f" at {error.path}" if isinstance(error, DecodeError) else ""
    return f"thread {thread_id!r} cannot be read: {type(error).__name__}{place}"


# What a run that began is told


def encode_begun(stored: Thread | None, thread: Thread) -> bytes:
    """What a thread is if its run is lost: its settings, and its history too where that is not the stored one.

    Args:
        stored: the thread as it is stored; None: it is not.
        thread: the thread if the run is lost.

    Raises:
        EncodeError: a value in it has no JSON form.
    """
    before = stored or Thread(thread_id=thread.thread_id)
    history = (thread.result, thread.ids, thread.nested)
    is_stored = history == (before.result, before.ids, before.nested)
    return encode_settings(thread) if is_stored else encode_thread(thread)


def begun_owner(thread_id: str, begun: bytes) -> str | None:
    """Who the thread belongs to that `encode_begun` was given.

    Args:
        thread_id: its id.
        begun: what `encode_begun` made.

    Raises:
        DamagedStoreError: it is not that.
    """
    try:
        # The rest, which may be a long history, is not read: readers of a running turn ask often.
        owner = members(begun, "$").get("owner")
        return None if owner is None else cast("str", reader(str)(owner, "$.owner", True))
    except DecodeError as error:
        raise DamagedStoreError(_unreadable(thread_id, error)) from None


def begun_thread(stored: Thread | None, thread_id: str, begun: bytes) -> Thread:
    """The thread that `encode_begun` was given.

    Args:
        stored: the thread as it is stored; None: it is not.
        thread_id: its id.
        begun: what `encode_begun` made.

    Raises:
        DamagedStoreError: it is not that.
    """
    before = stored or Thread(thread_id=thread_id)
    try:
        if begun.startswith(b'{"threadId":'):
            return decode_thread(begun)
        fields = decode_settings(begun)
    except DecodeError as error:
        raise DamagedStoreError(_unreadable(thread_id, error)) from None
    return Thread(
        thread_id=thread_id,
        result=before.result,
        ids=before.ids,
        nested=before.nested,
        pending=fields.pending,
        started_by=fields.started_by,
        run=fields.run,
        capabilities=fields.capabilities,
        revision=fields.revision,
        owner=fields.owner,
    )
