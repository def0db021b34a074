"""The log of a thread's latest turn: its events as rows, a row for each batch that was noted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TypeAlias

from agjson.errors import DecodeError
from agjson.types import AgStreamEvent, UnknownEvent
from agjson.wire import encode, ingest_event

__all__ = ["Batch", "batches", "read_events", "read_lines", "write_batches"]

Batch: TypeAlias = tuple[int, bytes]
"""Consecutive events: the ordinal of the last one, and their JSON, a line each without the last line end."""


def batches(events: Iterable[AgStreamEvent]) -> list[Batch]:
    """Events as rows of the log: one row, or one more after each gap.

    Args:
        events: in order.

    Raises:
        EncodeError: a value in one has no JSON form.
    """
    made: list[Batch] = []
    lines: list[bytes] = []
    last = -1
    for event in events:
        if lines and event.seq != last + 1:
            made.append((last, b"\n".join(lines)))
            lines = []
        lines.append(encode(event))
        last = event.seq
    if lines:
        made.append((last, b"\n".join(lines)))
    return made


def write_batches(connection: sqlite3.Connection, key: int, rows: Iterable[Batch]) -> None:
    """Add rows to the log of a thread's latest turn.

    Args:
        connection: inside a transaction.
        key: its row in ``threads``.
        rows: of `batches`.
    """
    for last, lines in rows:
        connection.execute("INSERT INTO log (thread, last_seq, events) VALUES (?, ?, ?)", (key, last, lines))


def read_lines(connection: sqlite3.Connection, key: int, *, after: int = -1, limit: int | None = None) -> list[bytes]:
    """Events of the log, each as its JSON.

    Args:
        connection: the connection.
        key: the thread's row in ``threads``.
        after: only those of a greater ordinal.
        limit: how many at most; None: all.
    """
    found: list[bytes] = []
    rows = connection.execute(
        "SELECT last_seq, events FROM log WHERE thread = ? AND last_seq > ? ORDER BY last_seq", (key, after)
    )
    for last, events in rows:
        lines: list[bytes] = events.split(b"\n")
        first = last - len(lines) + 1
        found += lines[max(0, after + 1 - first) :]
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


def read_events(lines: Iterable[bytes]) -> list[AgStreamEvent]:
    """The events of lines of the log, up to the first that is none: what follows a damage is as if it had a gap.

    Args:
        lines: of `read_lines`.
    """
    events: list[AgStreamEvent] = []
    for line in lines:
        try:
            event = ingest_event(line)
        except DecodeError:
            break
        if isinstance(event, UnknownEvent):
            break
        events.append(event)
    return events
