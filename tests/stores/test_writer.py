"""The one thread that writes: groups, what of a group fails, callers that go away."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agjson.agents import Thread, ThreadBusyError
from agjson.stores import (
    LeaseLostError,
    SQLiteThreadStore,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreLockedError,
)
from agjson.types import AgStreamEvent, TextDelta, TurnStart
from agjson.wire import decode_event
from tests.support.scripted import types


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteThreadStore]:
    async with SQLiteThreadStore(tmp_path / "threads.db", busy_timeout=0.2) as opened:
        yield opened


def delta(seq: int, text: str = "x") -> list[AgStreamEvent]:
    return [TextDelta(seq=seq, id="x", delta=text, turn_id="t", message_id="m")]


class Gate:
    """Work that holds the writer until it is opened, so that what is asked meanwhile makes one group."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self, connection: sqlite3.Connection) -> None:
        self.reached.set()
        assert self.open.wait(10)


async def held(store: SQLiteThreadStore) -> tuple[Gate, asyncio.Task[None]]:
    """A writer that is held."""
    gate = Gate()
    task = asyncio.create_task(store.write(gate))
    await asyncio.to_thread(gate.reached.wait)
    return gate, task


async def group(store: SQLiteThreadStore, *works: Any) -> list[Any]:
    """What becomes of calls that are committed together."""
    gate, first = await held(store)
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.sleep(0.01)
    gate.open.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


async def begun(store: SQLiteThreadStore, thread_id: str) -> Any:
    lease = await store.acquire(thread_id)
    await lease.begin("t", Thread(thread_id=thread_id))
    return lease


async def commits(store: SQLiteThreadStore, work: Callable[[], Any]) -> int:
    """How many transactions something takes."""
    seen: list[str] = []

    def trace(on: bool) -> Any:
        return store.write(lambda connection: connection.set_trace_callback(seen.append if on else None))

    await trace(True)
    await work()
    await trace(False)
    return sum(statement.startswith("BEGIN") for statement in seen) - 1


async def test_what_waits_together_is_committed_together(store: SQLiteThreadStore) -> None:
    leases = [await begun(store, str(number)) for number in range(20)]

    async def work() -> None:
        assert await group(store, *(lease.append(delta(0)) for lease in leases)) == [None] * 20

    # The one that holds the writer, and the group.
    assert await commits(store, work) == 2
    for number in range(20):
        assert len(await store.read_log(str(number), "t")) == 1


async def test_a_failure_is_that_of_the_call_that_caused_it(store: SQLiteThreadStore) -> None:
    first, second = await begun(store, "a"), await begun(store, "b")
    await first.append(delta(0))

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM log")
        raise LookupError("half way")

    def ends(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM threads")
        connection.execute("ROLLBACK")

    found = await group(
        store,
        first.append(delta(0, "again")),
        second.append(delta(0)),
        store.acquire("a"),
        store.write(half),
        first.append(delta(1)),
        store.write(lambda connection: connection.execute("SELECT 7").fetchone()),
    )
    kinds = [type(item) if isinstance(item, Exception) else item for item in found]
    assert kinds[1:] == [None, ThreadBusyError, LookupError, None, (7,)]
    assert "UNIQUE" in str(found[0]) and "again" not in str(found[0])
    found = await group(store, store.write(lambda connection: next(iter(()))), store.write(lambda connection: 1))
    assert (type(found[0]), found[1]) == (RuntimeError, 1)
    found = await group(store, first.append(delta(2)), store.write(ends), second.append(delta(1)))
    assert (found[0], found[2]) == (None, None) and "transaction" in str(found[1])
    assert len(await store.read_log("a", "t")) == 3
    assert len(await store.read_log("b", "t")) == 2


async def test_a_connection_that_breaks_is_replaced(store: SQLiteThreadStore, caplog: pytest.LogCaptureFixture) -> None:
    lease = await begun(store, "a")
    await lease.append(delta(0))
    broken = await group(store, store.write(lambda connection: connection.close()), lease.append(delta(1)))
    assert [isinstance(error, StoreError) for error in broken] == [True, True]
    # What is asked before the writer has ended fails like the rest.
    async with asyncio.timeout(10):
        while isinstance((await asyncio.gather(lease.append(delta(1)), return_exceptions=True))[0], StoreError):
            await asyncio.sleep(0.01)
    assert "the store has failed: ProgrammingError" in caplog.text
    assert not any(record.exc_info for record in caplog.records)
    assert len(await store.read_log("a", "t")) == 2


async def test_a_cancelled_caller_leaves_what_it_asked_for(store: SQLiteThreadStore) -> None:
    lease = await begun(store, "a")
    gate, first = await held(store)
    waiting = asyncio.create_task(lease.append([*delta(0), *delta(1)]))
    await asyncio.sleep(0.01)
    waiting.cancel()
    after = asyncio.create_task(lease.append(delta(2)))
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await store.read_log("a", "t") == []
    gate.open.set()
    await asyncio.gather(first, after)
    assert len(await store.read_log("a", "t")) == 3


async def test_a_lease_that_nobody_gets_is_given_back(store: SQLiteThreadStore) -> None:
    gate, first = await held(store)
    waiting = asyncio.create_task(store.acquire("a"))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.open.set()
    await first
    await (await store.acquire("a")).release()


async def test_closing_does_first_what_was_asked_before(store: SQLiteThreadStore) -> None:
    gate, first = await held(store)
    puts = [asyncio.create_task(store.put(Thread(thread_id=str(number)))) for number in range(5)]
    await asyncio.sleep(0.01)
    closing_ = asyncio.create_task(store.aclose())
    await asyncio.sleep(0.01)
    with pytest.raises(StoreClosedError):
        await store.put(Thread(thread_id="late"))
    gate.open.set()
    await asyncio.gather(first, closing_, *puts)
    async with SQLiteThreadStore(store.path) as later:
        assert len(await later.threads()) == 5


async def test_a_writer_that_waits_too_long_for_another_says_so(store: SQLiteThreadStore) -> None:
    lease = await begun(store, "a")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = await asyncio.gather(*(lease.append(delta(seq)) for seq in range(3)), return_exceptions=True)
        assert [type(error) for error in found] == [StoreLockedError] * 3
        # Readers are in nobody's way.
        assert await store.read_log("a", "t") == []
        other.execute("ROLLBACK")
    await lease.append(delta(0))
    assert len(await store.read_log("a", "t")) == 1


async def test_a_full_disk_fails_what_does_not_fit(store: SQLiteThreadStore) -> None:
    first, second = await begun(store, "a"), await begun(store, "b")

    def limit(connection: sqlite3.Connection, spare: int) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + spare}")

    await store.write(lambda connection: limit(connection, 20))
    found = await group(store, first.append(delta(0, "x" * 1_000_000)), second.append(delta(0)))
    assert [type(item) for item in found] == [StoreFullError, type(None)]
    with pytest.raises(StoreFullError):
        await first.save(Thread(thread_id="a"), delta(0, "x" * 1_000_000))
    assert await store.read_log("a", "t") == []
    await store.write(lambda connection: limit(connection, 10_000))
    await first.save(Thread(thread_id="a", revision=1), delta(0, "x" * 1_000_000))
    await first.release()
    assert await store.load("a") == Thread(thread_id="a", revision=1)
    assert len(await store.read_log("b", "t")) == 1


async def test_what_fails_without_a_waiter_is_logged(
    store: SQLiteThreadStore, caplog: pytest.LogCaptureFixture
) -> None:
    lease = await begun(store, "a")
    await lease.append(delta(0))
    gate, first = await held(store)
    waiting = asyncio.create_task(lease.append(delta(0, "s3cr3t")))
    await asyncio.sleep(0.01)
    waiting.cancel()
    gate.open.set()
    with caplog.at_level(logging.WARNING, "agjson"):
        await first
        await store.write(lambda connection: None)
    assert "nobody waits" in caplog.text and "s3cr3t" not in caplog.text


def test_a_loop_that_is_gone_hurts_nobody(tmp_path: Path) -> None:
    store = SQLiteThreadStore(tmp_path / "threads.db")
    gate = Gate()

    async def leave() -> None:
        task = asyncio.create_task(store.write(gate))
        await asyncio.to_thread(gate.reached.wait)
        task.cancel()
        left = asyncio.create_task(store.put(Thread(thread_id="a")))
        await asyncio.sleep(0.01)
        assert not left.done()

    asyncio.run(leave())
    gate.open.set()
    assert asyncio.run(store.load("a")) in (None, Thread(thread_id="a"))
    asyncio.run(store.write(lambda connection: None))
    assert asyncio.run(store.load("a")) == Thread(thread_id="a")
    asyncio.run(store.aclose())


async def test_a_store_that_is_dropped_ends_its_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = SQLiteThreadStore(tmp_path / "threads.db")
    await store.put(Thread(thread_id="a"))
    assert await store.load("a") == Thread(thread_id="a")
    workers = set(threading.enumerate()) - before
    assert len(workers) == 2
    del store
    gc.collect()
    for worker in workers:
        worker.join(5)
    assert not any(worker.is_alive() for worker in workers)


async def test_a_lapsed_right_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    async with SQLiteThreadStore(path) as store, SQLiteThreadStore(path) as other:
        lease = await begun(store, "a")
        await lease.append([TurnStart(seq=0, turn_id="t", thread_id="a")])
        await store.write(lambda connection: connection.execute("UPDATE runs SET expires = 0").rowcount)
        # Its own store object knows better.
        assert await store.load("a") is None
        with pytest.raises(ThreadBusyError):
            await store.acquire("a")
        thread = await other.load("a")
        assert thread is not None and thread.revision == 1
        log = [decode_event(line) for line in await other.read_log("a", "t")]
        assert types(log) == ["turn.start", "turn.abort"]
        for late in (
            lease.append(delta(1)),
            lease.append([*delta(1), *delta(5)]),
            lease.save(Thread(thread_id="a", revision=9), delta(1)),
            lease.begin("t2", Thread(thread_id="a")),
        ):
            with pytest.raises(LeaseLostError):
                await late
        newer = await begun(other, "a")
        await lease.release()
        with pytest.raises(ThreadBusyError):
            await store.acquire("a")
        await newer.release()


async def test_a_run_that_reports_does_not_lapse(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    async with SQLiteThreadStore(path, lease_timeout=1.0) as store, SQLiteThreadStore(path) as other:
        lease = await begun(store, "a")
        # Without a report it would have lapsed twice.
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            with pytest.raises(ThreadBusyError):
                await other.acquire("a")
            await asyncio.sleep(0.1)
        await lease.append(delta(0))
        await lease.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_store_goes_on_in_a_child_of_a_fork(tmp_path: Path) -> None:
    store = SQLiteThreadStore(tmp_path / "threads.db", lease_timeout=1.0)
    asyncio.run(store.put(Thread(thread_id="parent")))
    lease = asyncio.run(store.acquire("held"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # Its copy of the lease is nothing.
            del lease
            gc.collect()
            lapsing = asyncio.run(store.acquire("child"))
            loaded = asyncio.run(store.load("parent"))
            try:
                asyncio.run(store.acquire("held"))
            except ThreadBusyError:
                code = 0 if loaded is not None else 2
            # It reports, as any other.
            time.sleep(1.5)
            asyncio.run(lapsing.begin("t", Thread(thread_id="child")))
            asyncio.run(lapsing.save(Thread(thread_id="child"), []))
            asyncio.run(lapsing.release())
            asyncio.run(asyncio.run(store.acquire("child")).release())
            asyncio.run(store.aclose())
        except BaseException:
            code = 3
        finally:
            os._exit(code)
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        time.sleep(0.05)
        # Nobody takes the thread of the child away while it reports.
        asyncio.run(store.load("child"))
    assert ended == (child, 0)
    assert asyncio.run(store.load("child")) == Thread(thread_id="child")
    asyncio.run(lease.release())
    asyncio.run(store.aclose())
