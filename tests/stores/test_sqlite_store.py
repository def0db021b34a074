"""Threads in a SQLite file, as one process uses it."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from agjson.agents import LoggedTurn, Pending, Thread, ThreadBusyError
from agjson.errors import EncodeError
from agjson.fold import Reducer, reduce
from agjson.known_ids import KnownIds
from agjson.stores import DamagedStoreError, SQLiteThreadStore, StoreClosedError, encode_thread
from agjson.types import AbortedOutcome, AgMessage, AgPausedAsk, AgReduceResult, AgStreamEvent, AgTurnRecord, TextBlock
from agjson.wire import decode_event, decode_result, encode
from tests.stores.test_thread_json import OPAQUE, threads
from tests.support.properties import examples
from tests.support.scripted import ScriptAgent, calls, results, start, text, types
from tests.support.streams import ev, typed

OPENED: list[AgStreamEvent] = typed(
    ev("turn.start", turnId="t", threadId="th"),
    ev("message.start", id="m", role="assistant", turnId="t", threadId="th"),
    ev("text.start", id="x", turnId="t", messageId="m"),
    ev("text.delta", id="x", turnId="t", messageId="m", delta="Hello"),
)
ENDED: list[AgStreamEvent] = typed(
    ev("message.end", seq=4, id="m", turnId="t"),
    ev("turn.done", turnId="t", outcome={"type": "success"}, finishReason="stop"),
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteThreadStore]:
    async with SQLiteThreadStore(tmp_path / "threads.db") as opened:
        yield opened


def again(store: SQLiteThreadStore, **settings: Any) -> SQLiteThreadStore:
    """Another store object on the same file."""
    return SQLiteThreadStore(store.path, **settings)


def of_messages(count: int, thread_id: str = "th") -> Thread:
    """A thread of a turn for every two messages."""
    messages = [
        AgMessage(
            id=f"m{number}", role="user", content=[TextBlock(text=f"message {number}")], turn_id=f"t{number // 2}"
        )
        for number in range(count)
    ]
    turns = [AgTurnRecord(turn_id=f"t{number}", thread_id=thread_id) for number in range(count // 2)]
    return Thread.of_result(thread_id, AgReduceResult(messages=messages, artifacts=[], memory=[], turns=turns))


def same(loaded: Thread | None, thread: Thread) -> bool:
    """Equal, and equal byte for byte: 1 is not 1.0."""
    return loaded == thread and loaded is not None and encode_thread(loaded) == encode_thread(thread)


# Threads


async def test_a_thread_is_kept_beyond_the_store_object(store: SQLiteThreadStore) -> None:
    assert await store.load("th") is None
    lease = await store.acquire("th")
    assert lease.thread is None
    await lease.begin("t", Thread(thread_id="th"))
    assert await store.load("th") is None
    thread = Thread(thread_id="th", result=reduce([*OPENED, *ENDED]).result, revision=1, owner="ann")
    await lease.append(OPENED)
    await lease.save(thread, ENDED)
    assert await store.load("th") == thread
    await lease.release()
    await store.aclose()
    async with again(store) as later:
        assert await later.load("th") == thread
        lease = await later.acquire("th")
        assert lease.thread == thread
        await lease.release()
        assert await later.load("th") == thread


@given(threads(), threads())
@examples(25)
def test_anything_of_a_thread_comes_back_and_replaces_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, first: Thread, second: Thread
) -> None:
    second = replace(second, thread_id=first.thread_id)

    async def run() -> None:
        async with SQLiteThreadStore(tmp_path_factory.mktemp("any") / "threads.db") as store:
            await store.put(first)
            assert same(await store.load(first.thread_id), first)
            lease = await store.acquire(first.thread_id)
            await lease.begin("t", first)
            await lease.save(second, [])
            await lease.release()
            assert same(await store.load(first.thread_id), second)
            await store.put(first)
            assert await store.load(first.thread_id) == first

    asyncio.run(run())


async def test_what_a_lenient_reader_let_pass_is_kept(store: SQLiteThreadStore) -> None:
    thread = Thread(thread_id="th", result=decode_result(OPAQUE, lenient=True))
    await store.put(thread)
    assert same(await store.load("th"), thread)


async def test_a_thread_has_one_lease_at_a_time(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("a")
    with pytest.raises(ThreadBusyError, match="'a'"):
        await store.acquire("a")
    async with again(store) as other:
        with pytest.raises(ThreadBusyError):
            await other.acquire("a")
        await (await other.acquire("b")).release()
    await lease.release()
    second = await store.acquire("a")
    # A lease that was given up long ago frees nothing.
    await lease.release()
    with pytest.raises(ThreadBusyError):
        await store.acquire("a")
    await second.release()
    assert await store.load("a") is None and await store.threads() == []


async def test_a_refused_input_leaves_the_thread_as_it_was(store: SQLiteThreadStore) -> None:
    thread = Thread(thread_id="th", pending=Pending(asks=(AgPausedAsk(ask_id="a", kind="text"),)), revision=4)
    await store.put(thread)
    await (await store.acquire("th")).release()
    assert await store.load("th") == thread


async def test_a_run_that_is_released_without_a_save_is_ended(store: SQLiteThreadStore) -> None:
    paused = Thread(thread_id="th", pending=Pending(asks=(AgPausedAsk(ask_id="a", kind="text"),)), revision=4)
    await store.put(paused)
    lease = await store.acquire("th")
    await lease.begin("t", replace(paused, pending=Pending(), started_by="t", owner="ann"))
    await lease.append(OPENED)
    assert await store.load("th") == paused
    await lease.release()
    thread = await store.load("th")
    assert thread is not None
    assert (thread.pending, thread.started_by, thread.owner, thread.revision) == (Pending(), "t", "ann", 5)
    assert thread.result.turns[0].outcome == AbortedOutcome(reason="interrupted")
    log = [decode_event(line) for line in await store.read_log("th", "t")]
    assert types(log) == [*types(OPENED), "message.end", "turn.abort"]
    assert reduce(log).result == thread.result
    assert await store.latest_turn("th") == LoggedTurn(turn_id="t", last_seq=5, ended=True, owner="ann")


async def test_a_lost_run_may_have_begun_with_another_history(store: SQLiteThreadStore) -> None:
    await store.put(Thread(thread_id="th"))
    lease = await store.acquire("th")
    other = of_messages(4)
    await lease.begin("t", other)
    await lease.release()
    thread = await store.load("th")
    assert thread is not None and thread.messages == other.messages
    assert [turn.turn_id for turn in thread.result.turns] == ["t0", "t1", "t"]


async def test_what_is_done_with_the_beginning_of_a_turn_is_done_with_it_or_not_at_all(
    store: SQLiteThreadStore,
) -> None:
    def claim(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE claims (ask TEXT UNIQUE)")
        connection.execute("INSERT INTO claims VALUES ('a')")

    def refuse(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO claims VALUES ('b')")
        raise LookupError("it was claimed before")

    lease = await store.acquire("th")
    await lease.begin("t", Thread(thread_id="th"), also=claim)
    assert await store.latest_turn("th") == LoggedTurn(turn_id="t", last_seq=-1, ended=False)
    await lease.save(Thread(thread_id="th"), [])
    with pytest.raises(LookupError, match="claimed before"):
        await lease.begin("t2", Thread(thread_id="th"), also=refuse)
    assert await store.latest_turn("th") == LoggedTurn(turn_id="t", last_seq=-1, ended=True)
    claims = await store.write(lambda connection: connection.execute("SELECT ask FROM claims").fetchall())
    assert claims == [("a",)]
    await lease.release()


async def test_a_dropped_lease_is_a_lost_run(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("th")
    await lease.begin("t", Thread(thread_id="th"))
    del lease
    gc.collect()
    await (await store.acquire("th")).release()
    thread = await store.load("th")
    assert thread is not None and thread.result.turns[0].outcome == AbortedOutcome(reason="interrupted")


async def test_closing_the_store_loses_its_runs_at_once(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("th")
    await lease.begin("t", Thread(thread_id="th"))
    await store.aclose()
    await store.aclose()
    await lease.release()
    with pytest.raises(StoreClosedError):
        await lease.append(OPENED)
    with pytest.raises(StoreClosedError):
        await store.load("th")
    async with again(store) as later:
        thread = await later.load("th")
        assert thread is not None and thread.result.turns[0].outcome == AbortedOutcome(reason="interrupted")


async def test_a_value_without_a_json_form_changes_nothing(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("th")
    await lease.begin("t", Thread(thread_id="th"))
    result = AgReduceResult(messages=[], artifacts=[], memory=[], turns=[], state=float("nan"))
    with pytest.raises(EncodeError):
        await lease.save(Thread(thread_id="th", result=result), ENDED)
    assert await store.read_log("th", "t") == []
    await lease.save(Thread(thread_id="th", revision=1), [])
    await lease.release()
    assert await store.load("th") == Thread(thread_id="th", revision=1)


async def test_a_run_rewrites_only_what_it_changed(store: SQLiteThreadStore) -> None:
    await store.put(of_messages(10_000))
    written: list[int] = []
    agent = ScriptAgent(lambda invocation: text("two words"), store=store)

    async def total() -> int:
        return await store.write(lambda connection: connection.total_changes)

    before = await total()
    events = [event async for event in agent.run(start(turn="new"))]
    written.append(await total() - before)
    thread = await store.load("th")
    assert thread is not None and len(thread.messages) == 10_002
    assert thread.result == after(of_messages(10_000).result, events)
    # Two messages, a turn, four ids; the log of a batch each; the rows of the thread and of its run, a few times each.
    assert written[0] <= 7 + len(events) + 12
    assert len(await store.read_log("th", "new")) == len(events)


def after(before: AgReduceResult, events: list[AgStreamEvent]) -> AgReduceResult:
    """What a fold is after some events."""
    reducer = Reducer(before)
    for event in events:
        reducer.push(event)
    return reducer.result()


async def test_what_is_equal_and_yet_another_value_is_written(store: SQLiteThreadStore) -> None:
    def thread(value: Any) -> Thread:
        message = AgMessage(id="m", role="user", content=[], metadata={"x": value})
        return Thread(thread_id="th", result=AgReduceResult(messages=[message], artifacts=[], memory=[], turns=[]))

    await store.put(thread(1))
    for value in (1.0, True):
        lease = await store.acquire("th")
        await lease.begin("t", lease.thread or thread(0))
        await lease.save(thread(value), [])
        await lease.release()
        assert same(await store.load("th"), thread(value))


async def test_a_save_that_was_cancelled_counts(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("th")
    await lease.begin("t", Thread(thread_id="th"))
    waiting = asyncio.create_task(lease.save(of_messages(6), []))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await lease.save(of_messages(2), [])
    await lease.release()
    assert await store.load("th") == of_messages(2)


async def test_threads_are_listed_by_the_time_of_their_save(store: SQLiteThreadStore) -> None:
    for number in range(7):
        await store.put(Thread(thread_id=f"th{number}", revision=number, owner=["ann", "bob", None][number % 3]))
    lease = await store.acquire("th3")
    await store.acquire("unsaved")
    assert [entry.thread_id for entry in await store.threads()] == [f"th{number}" for number in range(6, -1, -1)]
    assert [entry.thread_id for entry in await store.threads(owner="ann")] == ["th6", "th3", "th0"]
    assert [entry.thread_id for entry in await store.threads(owner=None)] == ["th5", "th2"]
    first = await store.threads(limit=4)
    assert [(entry.thread_id, entry.is_running) for entry in first[-2:]] == [("th4", False), ("th3", True)]
    assert (first[0].revision, first[0].owner) == (6, "ann")
    rest = await store.threads(limit=4, before=first[-1])
    assert [entry.thread_id for entry in rest] == ["th2", "th1", "th0"]
    assert await store.threads(owner="carl") == []
    await lease.release()


async def test_a_thread_is_deleted_with_all_that_is_kept_of_it(store: SQLiteThreadStore) -> None:
    agent = ScriptAgent(lambda invocation: text("Hello"), store=store)
    _ = [event async for event in agent.run(start())]
    lease = await store.acquire("th")
    for refused in (store.delete("th"), store.put(Thread(thread_id="th"))):
        with pytest.raises(ThreadBusyError):
            await refused
    assert await store.delete_older_than(timedelta()) == 0
    await lease.release()
    assert await store.delete("th") is True
    assert await store.delete("th") is False
    assert (await store.load("th"), await store.latest_turn("th")) == (None, None)
    with pytest.raises(LookupError):
        await store.read_log("th", "t")

    def rows(connection: sqlite3.Connection) -> list[int]:
        tables = ("threads", "parts", "ids", "log", "runs")
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]

    assert await store.write(rows) == [0, 0, 0, 0, 0]


async def test_old_threads_are_deleted(store: SQLiteThreadStore) -> None:
    for number in range(250):
        await store.put(Thread(thread_id=str(number)))
    assert await store.delete_older_than(timedelta(hours=1)) == 0
    lease = await store.acquire("7")
    assert await store.delete_older_than(timedelta()) == 249
    await lease.release()
    assert [entry.thread_id for entry in await store.threads()] == ["7"]


async def test_ids_that_are_no_text_name_threads_too(store: SQLiteThreadStore) -> None:
    odd = ["", "half \ud83d", "nul \0", "nul \0 more", "ünï", "a'b\"c", "7"]
    for number, id in enumerate(odd):
        turn = f"turn {id}"
        lease = await store.acquire(id)
        await lease.begin(turn, Thread(thread_id=id))
        await lease.save(Thread(thread_id=id, revision=number, owner=id, ids=KnownIds(calls={id})), [])
        await lease.release()
        assert await store.latest_turn(id) == LoggedTurn(turn_id=turn, last_seq=-1, ended=True, owner=id)
    for number, id in enumerate(odd):
        thread = await store.load(id)
        assert thread is not None
        assert (thread.thread_id, thread.revision, thread.owner, thread.ids.calls) == (id, number, id, {id})
        assert [entry.thread_id for entry in await store.threads(owner=id)] == [id]


async def test_a_lost_run_does_not_keep_a_thread_for_ever(store: SQLiteThreadStore) -> None:
    other = again(store)
    await other.put(Thread(thread_id="th"))
    leases = [await other.acquire("th"), await other.acquire("unsaved")]
    await leases[0].begin("t", Thread(thread_id="th"))
    await other.aclose()
    # Its run is ended first, which saves it.
    assert await store.delete_older_than(timedelta(hours=1)) == 0
    assert [entry.is_running for entry in await store.threads()] == [False]
    assert await store.delete_older_than(timedelta()) == 1


async def test_a_lost_run_of_a_damaged_thread_is_in_nobodys_way(store: SQLiteThreadStore) -> None:
    other = again(store)
    await other.put(Thread(thread_id="th"))
    await other.put(Thread(thread_id="whole"))
    lease = await other.acquire("th")
    await lease.begin("t", Thread(thread_id="th"))
    await other.write(lambda connection: connection.execute("UPDATE runs SET begun = x'6e6f'").rowcount)
    await other.aclose()
    for damaged in (store.load, store.acquire, store.latest_turn):
        with pytest.raises(DamagedStoreError, match="'th'"):
            await damaged("th")
    assert await store.delete_older_than(timedelta()) == 2


# The log


async def test_the_log_of_the_latest_turn_is_read_while_it_runs_and_after_it(store: SQLiteThreadStore) -> None:
    other = again(store)
    assert await store.latest_turn("th") is None
    lease = await store.acquire("th")
    assert await store.latest_turn("th") is None
    await lease.begin("t", Thread(thread_id="th"))
    assert await other.latest_turn("th") == LoggedTurn(turn_id="t", last_seq=-1, ended=False)
    assert await other.read_log("th", "t") == []
    await lease.append(OPENED[:1])
    await lease.append([])
    await lease.append(OPENED[1:])
    assert await other.latest_turn("th") == LoggedTurn(turn_id="t", last_seq=3, ended=False)
    lines = [encode(event) for event in OPENED]
    assert [await other.read_log("th", "t", after=after) for after in range(-1, 5)] == [
        lines, lines[1:], lines[2:], lines[3:], [], []
    ]  # fmt: skip
    assert [await other.read_log("th", "t", limit=limit) for limit in (1, 2, 4)] == [lines[:1], lines[:2], lines]
    assert await other.read_log("th", "t", after=1, limit=1) == lines[2:3]
    await lease.save(Thread(thread_id="th", result=reduce([*OPENED, *ENDED]).result), ENDED)
    await lease.release()
    assert await other.latest_turn("th") == LoggedTurn(turn_id="t", last_seq=5, ended=True)
    assert await other.read_log("th", "t", after=3) == [encode(event) for event in ENDED]
    lease = await store.acquire("th")
    # The right alone is no turn.
    assert await other.read_log("th", "t", after=3) == [encode(event) for event in ENDED]
    await lease.begin("t2", Thread(thread_id="th"))
    with pytest.raises(LookupError, match="'t'"):
        await other.read_log("th", "t")
    assert await other.latest_turn("th") == LoggedTurn(turn_id="t2", last_seq=-1, ended=False)
    await lease.release()
    await other.aclose()


@pytest.mark.parametrize("owner", ["ann", "", "half \ud83d", 'a"b\\c', None])
@pytest.mark.parametrize("history", [Thread(thread_id="th"), of_messages(4)], ids=["as stored", "another"])
async def test_a_running_turn_belongs_to_whom_its_beginning_was_told(
    store: SQLiteThreadStore, owner: str | None, history: Thread
) -> None:
    other = again(store)
    lease = await store.acquire("th")
    assert await other.latest_turn("th") is None
    await lease.begin("t", replace(history, owner=owner))
    assert await other.load("th") is None
    assert await other.latest_turn("th") == LoggedTurn(turn_id="t", last_seq=-1, ended=False, owner=owner)
    # Also when the run is lost.
    await lease.release()
    latest = await other.latest_turn("th")
    assert latest is not None and (latest.ended, latest.owner) == (True, owner)
    await other.aclose()


async def test_events_with_a_gap_between_them_keep_their_ordinals(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("th")
    await lease.begin("t", Thread(thread_id="th"))
    await lease.append([OPENED[0], *OPENED[2:]])
    assert await store.read_log("th", "t", after=0) == [encode(event) for event in OPENED[2:]]
    await lease.release()
    log = [decode_event(line) for line in await store.read_log("th", "t")]
    assert types(log) == ["turn.start", "turn.abort"]


async def test_what_follows_a_damage_of_the_log_does_not_count(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("th")
    await lease.begin("t", Thread(thread_id="th"))
    for event in OPENED:
        await lease.append([event])
    await store.write(
        lambda connection: connection.execute("UPDATE log SET events = x'7b' WHERE last_seq = 2").rowcount
    )
    await lease.release()
    log = [decode_event(line) for line in await store.read_log("th", "t")]
    assert types(log) == ["turn.start", "message.start", "message.end", "turn.abort"]
    thread = await store.load("th")
    assert thread is not None and thread.result == reduce(log).result


async def test_nothing_is_noted_outside_of_a_turn(store: SQLiteThreadStore) -> None:
    lease = await store.acquire("th")
    with pytest.raises(RuntimeError, match="between begin and save"):
        await lease.append(OPENED)
    await lease.begin("t", Thread(thread_id="th"))
    await lease.save(Thread(thread_id="th"), [])
    with pytest.raises(RuntimeError, match="between begin and save"):
        await lease.append(OPENED)
    await lease.release()


# Stopping


async def test_a_stop_reaches_the_store_object_that_runs_the_turn(store: SQLiteThreadStore) -> None:
    other = again(store)
    lease = await store.acquire("th")
    assert await other.request_stop("th", "t") is False
    await lease.begin("t", Thread(thread_id="th"))
    assert await store.stop_requests() == []
    assert await other.request_stop("th", "t2") is False
    assert await other.request_stop("th", "t") is True
    assert await other.request_stop("th", "t") is True
    assert (await store.stop_requests(), await other.stop_requests()) == ([("th", "t")], [])
    mine = await other.acquire("mine")
    assert await other.stop_requests() == []
    await mine.release()
    await lease.save(Thread(thread_id="th"), [])
    assert await store.stop_requests() == []
    assert await other.request_stop("th", "t") is False
    await lease.begin("t2", Thread(thread_id="th"))
    assert await store.stop_requests() == []
    await lease.release()
    await other.aclose()


# Agents


async def test_an_agent_goes_on_with_a_thread_that_another_process_might_have_run(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    events: list[AgStreamEvent] = []
    async with SQLiteThreadStore(path) as store:
        agent = ScriptAgent(lambda invocation: calls("c"), client_tools={"look_up"}, store=store)
        events += [event async for event in agent.run(start())]
    async with SQLiteThreadStore(path) as store:
        agent = ScriptAgent(lambda invocation: text("Done it"), store=store)
        events += [event async for event in agent.run(results("c"))]
        thread = await store.load("th")
        assert thread is not None and thread.result == reduce(events).result
        log = await store.read_log("th", "r")
        assert log == [encode(event) for event in events if event.seq >= 0][-len(log) :]


def test_an_agent_runs_without_an_event_loop(tmp_path: Path) -> None:
    store = SQLiteThreadStore(tmp_path / "threads.db")
    agent = ScriptAgent(lambda invocation: text("Hello"), store=store)
    events = list(agent.run_sync(start()))
    events += list(agent.run_sync(start(turn="t2")))
    thread = asyncio.run(store.load("th"))
    assert thread is not None and thread.result == reduce(events).result
    asyncio.run(store.aclose())


def without_a_loop(coroutine: Any) -> Any:
    """Run a coroutine that suspends for no loop of asyncio."""
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return ended.value.value


def test_where_no_loop_runs_a_call_waits_in_its_thread(tmp_path: Path) -> None:
    store = SQLiteThreadStore(tmp_path / "threads.db")
    without_a_loop(store.put(of_messages(2)))
    assert without_a_loop(store.load("th")) == of_messages(2)
    without_a_loop(store.acquire("th"))
    without_a_loop(store.aclose())
    coroutine = store.load("th")
    with pytest.raises(StoreClosedError):
        coroutine.send(None)


def test_many_loops_and_threads_use_one_store(tmp_path: Path) -> None:
    store = SQLiteThreadStore(tmp_path / "threads.db")
    agent = ScriptAgent(lambda invocation: text("Hello you"), store=store)
    failures: list[BaseException] = []

    async def run(name: str) -> None:
        async def one(number: int) -> None:
            for turn in range(3):
                _ = [event async for event in agent.run(start(turn=f"t{turn}", thread=f"{name}-{number}"))]

        await asyncio.gather(*(one(number) for number in range(5)))

    def in_thread(name: str) -> None:
        try:
            if name.endswith("0"):
                for turn in range(3):
                    list(agent.run_sync(start(turn=f"t{turn}", thread=name)))
            else:
                asyncio.run(run(name))
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=in_thread, args=(f"w{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []

    async def verify() -> None:
        entries = await store.threads()
        assert len(entries) == 16 and {entry.revision for entry in entries} == {3}
        for entry in entries:
            thread = await store.load(entry.thread_id)
            assert thread is not None and len(thread.result.turns) == 3
        await store.aclose()

    asyncio.run(verify())


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for path in ("", ":memory:"):
        with pytest.raises(ValueError, match="path"):
            SQLiteThreadStore(path)
    wrong: list[dict[str, Any]] = [{"lease_timeout": 0}, {"busy_timeout": -1}, {"synchronous": "off"}]
    for settings in wrong:
        with pytest.raises(ValueError, match=next(iter(settings))):
            SQLiteThreadStore(tmp_path / "x.db", **settings)
    assert list(tmp_path.iterdir()) == []
