"""The thread store on disk, against bare `sqlite3` with the same rows, settings and file system.

Time is wall time here: a stream waits for its events to be noted, in whatever thread that is done.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from agjson import AgMessage, AgReduceResult, AgTurnRecord, TextBlock, TextDelta, encode
from agjson.agents import Thread, ThreadLease
from agjson.known_ids import KnownIds
from agjson.stores import SQLiteThreadStore
from benchmarks.measure import Effort, Row, each
from benchmarks.streams import WORDS

GROUP = "stores"
STREAMS = 100
ROUNDS = 5
SAVES = 10


def rows(effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_rows(effort, Path(folder)))


async def _rows(effort: Effort, folder: Path) -> list[Row]:
    count = max(STREAMS, effort.events // 5)
    events = [
        TextDelta(seq=seq, id="b1", delta=WORDS[seq % len(WORDS)], turn_id="turn-1", message_id="m1")
        for seq in range(count)
    ]
    bare = _bare(folder / "bare.db")
    async with SQLiteThreadStore(folder / "store.db") as store:
        one = await _begun(store, "one")
        many = [await _begun(store, f"many-{number}") for number in range(STREAMS)]

        async def append(lease: ThreadLease, length: int) -> None:
            for event in events[:length]:
                await lease.append([event])

        async def append_to_all() -> None:
            await asyncio.gather(*(append(lease, count // STREAMS) for lease in many))

        async def empty() -> None:
            await store.write(lambda connection: connection.execute("DELETE FROM log").rowcount)
            bare.execute("DELETE FROM log")

        times = await _fastest(
            {"one": lambda: append(one, count), "many": append_to_all, "bare": _committing(bare, events)}, empty
        )
        floor = f"a commit by sqlite3 ({each(times['bare'], count)})"
        made = [
            Row(GROUP, name, times[key] / times["bare"], None, each(times[key], count), floor)
            for key, name in (("one", "append, one stream"), ("many", f"append, {STREAMS} streams at once"))
        ]
        return made + await _large(store, bare, effort.events)


async def _large(store: SQLiteThreadStore, bare: sqlite3.Connection, messages: int) -> list[Row]:
    """A long thread: saving it after a turn of two messages, and loading it."""
    lease = await _begun(store, "long")
    thread = _thread(messages)
    await lease.save(thread, [])
    texts = [encode(message) for message in thread.messages]
    bare.executemany("INSERT INTO parts (json) VALUES (?)", [(text,) for text in texts])

    due = [thread]

    async def grow() -> None:
        # From the thread that was saved last, which is the last one here or the only one.
        while len(due) <= SAVES:
            due.append(_grown(due[-1]))

    async def save() -> None:
        for grown in due[1:]:
            await lease.save(grown, [])
        del due[:-1]

    async def bare_save() -> None:
        # What changes: two messages, a turn, the ids of three things, the row of the thread and that of its run.
        for _ in range(SAVES):
            bare.execute("BEGIN IMMEDIATE")
            for text in (*texts[:3], b"1", b"2", b"3", b"{}", b"{}"):
                bare.execute("INSERT INTO parts (json) VALUES (?)", (text,))
            bare.execute("COMMIT")

    async def load() -> None:
        await store.load("long")

    async def bare_load() -> None:
        bare.execute("SELECT json FROM parts").fetchall()

    works = {"save": save, "bare save": bare_save, "load": load, "bare load": bare_load}
    times = await _fastest(works, grow)
    return [
        Row(
            GROUP,
            f"{verb}, a thread of {messages:,} messages{rest}",
            times[verb] / times[f"bare {verb}"],
            None,
            f"{times[verb] / times_done * 1e3:.2f} ms",
            f"{floor} ({times[f'bare {verb}'] / times_done * 1e3:.2f} ms)",
        )
        for verb, times_done, rest, floor in (
            ("save", SAVES, " that grew by two", "a commit of eight rows by sqlite3"),
            ("load", 1, "", "reading their rows by sqlite3"),
        )
    ]


async def _fastest(
    works: Mapping[str, Callable[[], Awaitable[None]]], between: Callable[[], Awaitable[None]]
) -> dict[str, float]:
    """As `measure.fastest`, in wall time."""
    times = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, work in works.items():
            await between()
            gc.collect()
            gc.freeze()
            start = time.perf_counter()
            await work()
            times[name] = min(times[name], time.perf_counter() - start)
            gc.unfreeze()
    return times


async def _begun(store: SQLiteThreadStore, thread_id: str) -> ThreadLease:
    lease = await store.acquire(thread_id)
    await lease.begin("turn-1", Thread(thread_id=thread_id))
    return lease


def _bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(
        "CREATE TABLE log (thread INTEGER, last_seq INTEGER, events BLOB, PRIMARY KEY (thread, last_seq))"
    )
    connection.execute("CREATE TABLE parts (place INTEGER PRIMARY KEY, json BLOB)")
    return connection


def _committing(connection: sqlite3.Connection, events: list[TextDelta]) -> Callable[[], Awaitable[None]]:
    async def commit() -> None:
        for event in events:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO log VALUES (1, ?, ?)", (event.seq, encode(event)))
            connection.execute("COMMIT")

    return commit


def _message(number: int) -> AgMessage:
    content = [TextBlock(text="".join(WORDS) * 4)]
    return AgMessage(id=f"m{number}", role="assistant", content=content, turn_id=f"t{number // 2}", thread_id="long")


def _thread(messages: int) -> Thread:
    result = AgReduceResult(
        messages=[_message(number) for number in range(messages)],
        artifacts=[],
        memory=[],
        turns=[AgTurnRecord(turn_id=f"t{number}", thread_id="long") for number in range(messages // 2)],
    )
    return Thread.of_result("long", result)


def _grown(thread: Thread) -> Thread:
    """The thread after a turn of two messages, which shares the rest with it."""
    before = thread.result
    number = len(before.messages)
    result = AgReduceResult(
        messages=[*before.messages, _message(number), _message(number + 1)],
        artifacts=before.artifacts,
        memory=before.memory,
        turns=[*before.turns, AgTurnRecord(turn_id=f"t{number // 2}", thread_id="long")],
    )
    new = KnownIds(turns={f"t{number // 2}"}, messages={f"m{number}", f"m{number + 1}"})
    return Thread(thread_id="long", result=result, ids=thread.ids | new, revision=thread.revision + 1)
