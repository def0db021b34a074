"""A claim and the turn that goes on from it are one step; a call runs once at most, whatever is killed where."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agjson.agents import Agent, Pending, Thread
from agjson.approvals import GivenUpAskError, Ledger, SpentAskError
from agjson.checker import check
from agjson.stores import LeaseLostError, SQLiteThreadStore, StoreError
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import AgPausedAsk, ResumeInput, ToolResultBlock
from agjson.wire import answer_to, decode_event, to_dict
from tests.stores.approving_child import agent_on, drained
from tests.support.child_process import ChildProcess
from tests.support.scripted import said, start

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed by signals")


@pytest.fixture
def process() -> Iterator[ChildProcess]:
    started = ChildProcess("tests.stores.approving_child")
    yield started
    started.close()


def crashed(process: ChildProcess, path: Path, log: Path, statement: int, ag_input: Any) -> bool:
    """Run an input until a statement; whether it was killed."""
    process.tell(str(path), str(log), statement, to_dict(ag_input))
    finished = process.heard() == ["finished"]
    if finished:
        assert process.heard() == ["ended"]
    return not finished


def mails(log: Path) -> int:
    return log.read_text().splitlines().count("sent ann") if log.exists() else 0


def yes(ask: AgPausedAsk, turn: str) -> ResumeInput:
    return ResumeInput(thread_id="th", turn_id=turn, answers=[answer_to(ask)])


async def results(agent: Agent, words: str, turn: str) -> list[dict[str, Any]]:
    """The results that a start brings to light."""
    events = await drained(agent, start(said(words, f"u-{turn}"), turn=turn))
    return [to_dict(event) for event in events if event.type == "tool.done"]


async def asks(ledger: Ledger) -> list[AgPausedAsk]:
    return list((await ledger.progress("th")).waiting)


async def verify_log(store: SQLiteThreadStore) -> None:
    """What is logged of the latest turn is a stream of its own rules."""
    latest = await store.latest_turn("th")
    assert latest is not None and latest.ended
    events = [decode_event(line) for line in await store.read_log("th", latest.turn_id)]
    assert events[-1].type in ("turn.done", "turn.abort") and [event.seq for event in events] == list(
        range(len(events))
    )
    if latest.turn_id == "t":
        assert not list(check(events))


@needs_fork
def test_a_resume_that_is_killed_before_any_statement_runs_its_call_once_at_most(
    process: ChildProcess, tmp_path: Path
) -> None:
    waiting = tmp_path / "waiting.db"

    async def ask() -> AgPausedAsk:
        async with SQLiteThreadStore(waiting) as store:
            agent, ledger = agent_on(store, str(tmp_path / "nothing"))
            await drained(agent, start(said("mail ann", "u"), turn="t"))
            (ask,) = await asks(ledger)
            return ask

    ask_ = asyncio.run(ask())

    async def verify(path: Path, log: Path) -> str:
        async with SQLiteThreadStore(path) as store:
            agent, ledger = agent_on(store, str(log))
            thread = await store.load("th")
            assert thread is not None
            (record,) = await ledger.records("th")
            # Both or none: the thread goes on just where the ask is claimed.
            assert (record.state == "open") == bool(thread.pending.asks)
            await verify_log(store)
            if record.state == "open":
                assert mails(log) == 0 and await asks(ledger) == [ask_]
                await drained(agent, yes(ask_, "r2"))
                assert mails(log) == 1
                return "open"
            with pytest.raises(SpentAskError):
                await drained(agent, yes(ask_, "r2"))
            told = await results(agent, "and?", "t2")
            (after,) = await ledger.records("th")
            if after.state == "done":
                # What came of it is known to the ledger before anybody sees it.
                assert mails(log) == 1 and after.outcome == "ok"
                thread = await store.load("th")
                assert thread is not None
                blocks = [block for message in thread.result.messages for block in message.content]
                (block,) = [block for block in blocks if isinstance(block, ToolResultBlock)]
                if block.outcome == "ok":
                    assert told == []
                    return "done"
                # It died before anybody could see it.
                assert [(each["toolCallId"], each["errorCode"]) for each in told] == [("t.1", "outcome_unknown")]
                assert "This call ran" in told[0]["errorText"]
                return "done, unseen"
            assert after.state == "unknown"
            assert [(each["toolCallId"], each["errorCode"]) for each in told] == [("t.1", "outcome_unknown")]
            assert await results(agent, "and now?", "t3") == []
            return f"unknown, ran {mails(log)}"

    ends: list[str] = []
    killed, statement = True, 0
    while killed:
        statement += 1
        path, log = tmp_path / f"{statement}.db", tmp_path / f"{statement}.log"
        shutil.copyfile(waiting, path)
        killed = crashed(process, path, log, statement, yes(ask_, "r"))
        ends.append(asyncio.run(verify(path, log)))
        assert mails(log) <= 1
    order = [end for place, end in enumerate(ends) if place == 0 or end != ends[place - 1]]
    # Each at some statement, in this order.
    assert order == ["open", "unknown, ran 0", "unknown, ran 1", "done, unseen", "done"]
    assert len(ends) > 25


@needs_fork
def test_an_ask_of_a_turn_that_is_killed_can_be_answered_or_is_given_up(process: ChildProcess, tmp_path: Path) -> None:
    async def verify(path: Path, log: Path) -> str:
        async with SQLiteThreadStore(path) as store:
            agent, ledger = agent_on(store, str(log))
            thread = await store.load("th")
            records = await ledger.records("th")
            if thread is not None and thread.pending.asks:
                (ask,) = await asks(ledger)
                await drained(agent, yes(ask, "r"))
                assert mails(log) == 1
                return "asked"
            # Whoever has seen it on its way gets no further than that.
            for ask in await asks(ledger):
                with pytest.raises(GivenUpAskError):
                    await drained(agent, yes(ask, "r"))
            assert await results(agent, "hello", "t2") == []
            assert [record.state for record in await ledger.records("th")] == ["given_up"] * len(records)
            assert mails(log) == 0
            return f"lost, {len(records)} issued"

    ends: list[str] = []
    killed, statement = True, 0
    while killed:
        statement += 1
        path, log = tmp_path / f"{statement}.db", tmp_path / f"{statement}.log"
        killed = crashed(process, path, log, statement, start(said("mail ann", "u"), turn="t"))
        ends.append(asyncio.run(verify(path, log)))
    order = [end for place, end in enumerate(ends) if place == 0 or end != ends[place - 1]]
    assert order == ["lost, 0 issued", "lost, 1 issued", "asked"]


async def test_a_claim_that_cannot_begin_its_turn_is_none(tmp_path: Path) -> None:
    async with SQLiteThreadStore(tmp_path / "threads.db") as store:
        agent, ledger = agent_on(store, str(tmp_path / "log"))
        await drained(agent, start(said("mail ann", "u"), turn="t"))
        (ask,) = await asks(ledger)
        asks_store = ledger.store
        assert isinstance(asks_store, SQLiteLedgerStore)
        lease = await store.acquire("th")
        # As if this process had been stopped for so long that somebody else has ended its run.
        await store.write(lambda connection: connection.execute("DELETE FROM runs"))

        def work(book: Any) -> None:
            from agjson.approvals import answering, claiming

            answering.answer(book, ledger.policy, "th", [answer_to(ask)])
            claiming.claim(book, ledger.policy, "th", "t", claimed_by="r")

        assert lease.thread is not None
        with pytest.raises(LeaseLostError):
            await asks_store.begin(lease, "r", lease.thread, work)
        assert [record.state for record in await ledger.records("th")] == ["open"]
        assert await asks(ledger) == [ask]
        await lease.release()
        await drained(agent, yes(ask, "r"))
        assert mails(tmp_path / "log") == 1


async def test_a_turn_whose_claim_fails_does_not_begin(tmp_path: Path) -> None:
    async with SQLiteThreadStore(tmp_path / "threads.db") as store:
        agent, ledger = agent_on(store, str(tmp_path / "log"))
        await drained(agent, start(said("mail ann", "u"), turn="t"))
        lease = await store.acquire("th")
        thread = lease.thread
        assert thread is not None and thread.pending.asks

        def work(book: Any) -> None:
            raise KeyError("no")

        with pytest.raises(KeyError):
            await ledger.store.begin(lease, "r", Thread(thread_id="th", pending=Pending()), work)
        latest = await store.latest_turn("th")
        assert latest is not None and (latest.turn_id, latest.ended) == ("t", True)
        await lease.release()
        assert await store.load("th") == thread


async def test_on_a_file_of_its_own_a_claim_comes_before_its_turn(tmp_path: Path) -> None:
    """Nothing can join two files; then a claim whose turn does not begin is lost, and its call does not run."""
    async with SQLiteThreadStore(tmp_path / "threads.db") as store, SQLiteThreadStore(tmp_path / "asks.db") as other:
        apart = SQLiteLedgerStore(other)
        lease = await store.acquire("th")
        await store.write(lambda connection: connection.execute("DELETE FROM runs"))
        with pytest.raises(LeaseLostError):
            await apart.begin(lease, "r", Thread(thread_id="th"), lambda book: book.spend("th", b"x" * 32))
        assert not await apart.transact(lambda book: book.spend("th", b"x" * 32))


async def test_reading_the_ledger_does_not_wait_for_who_writes(tmp_path: Path) -> None:
    async with SQLiteThreadStore(tmp_path / "threads.db") as store:
        agent, ledger = agent_on(store, str(tmp_path / "log"))
        await drained(agent, start(said("mail ann", "u"), turn="t"))
        go_on = threading.Event()
        writing = asyncio.ensure_future(store.write(lambda connection: go_on.wait(30)))
        try:
            async with asyncio.timeout(10):
                (ask,) = await asks(ledger)
                assert ask.token is not None
                (record,) = await ledger.records("th")
                batch = await ledger.batch("th", "t")
                assert record.state == "open" and batch is not None and await ledger.rules() == []
            assert not writing.done()
        finally:
            go_on.set()
            await writing
        await ledger.give_up("th")
        assert await asks(ledger) == []


async def test_who_reads_cannot_write(tmp_path: Path) -> None:
    async with SQLiteThreadStore(tmp_path / "threads.db") as store:
        with pytest.raises(StoreError):
            await store.read(lambda connection: connection.execute("INSERT INTO threads (thread_id) VALUES ('th')"))
        with pytest.raises(StoreError):
            await SQLiteLedgerStore(store).read(lambda book: book.spend("th", b"x" * 32))
        count = "SELECT count(*) FROM threads"
        assert await store.read(lambda connection: connection.execute(count).fetchone()) == (0,)
