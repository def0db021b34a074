"""Several processes on one file, and what is left of one that was killed or stopped at any moment."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agjson.agents import LoggedTurn, Pending, Thread, ThreadBusyError
from agjson.checker import check
from agjson.fold import Reducer
from agjson.stores import SQLiteThreadStore
from agjson.stores.processes import has_ended, this_process
from agjson.types import AbortedOutcome, AgReduceResult, SuccessOutcome
from agjson.wire import decode_event
from tests.stores import child
from tests.support.child_process import ChildProcess
from tests.support.scripted import types

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed by signals")


@pytest.fixture
def process() -> Iterator[ChildProcess]:
    started = ChildProcess("tests.stores.child")
    yield started
    started.close()


@pytest.fixture
def second() -> Iterator[ChildProcess]:
    started = ChildProcess("tests.stores.child")
    yield started
    started.close()


def crashed(process: ChildProcess, path: Path, statement: int, kill_after: float | None = None) -> list[list[Any]]:
    """What a process said that it had done before it was killed."""
    process.tell("crash", str(path), statement)
    said: list[list[Any]] = []
    pid = 0
    while (line := process.heard()) != ["ended"]:
        if line[0] == "pid":
            pid = line[1]
        else:
            said.append(line)
        if kill_after is not None and line == ["released", "t0"]:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
    return said


async def verify(path: Path, said: list[list[Any]]) -> str:
    """Nothing that was said is lost, and the thread can be used; returns how its last turn has ended."""
    async with SQLiteThreadStore(path) as store:
        thread = await store.load("th")
        assert thread is not None
        latest = await store.latest_turn("th")
        assert latest is not None and latest.ended
        events = [decode_event(line) for line in await store.read_log("th", latest.turn_id)]
        assert latest.last_seq == len(events) - 1

        saved = [turn for step, turn, *_ in said if step == "saved"]
        begun = [turn for step, turn, *_ in said if step == "begun"]
        number = int(latest.turn_id.removeprefix("t"))
        assert number in (len(begun) - 1, len(begun)), "what began is the latest turn"
        noted = child.turn(latest.turn_id)
        for step, turn, *rest in said:
            if step == "appended" and turn == latest.turn_id:
                assert events[rest[0]] == noted[rest[0]]

        turns = {turn.turn_id: turn.outcome for turn in thread.result.turns}
        assert list(turns) == [f"t{place}" for place in range(number + 1)]
        assert all(turns[turn] == SuccessOutcome() for turn in saved)
        assert all(turns[f"t{place}"] == SuccessOutcome() for place in range(number))
        assert thread.revision == number + 1

        # The log and the thread agree, to the end.
        before = Reducer()
        for place in range(number):
            for event in child.turn(f"t{place}"):
                before.push(event)
        initial: AgReduceResult = before.result()
        assert not list(check(events, initial=initial) if number else check(events))
        for event in events:
            before.push(event)
        assert not before.needs_resync and before.result() == thread.result

        outcome = turns[latest.turn_id]
        if outcome == SuccessOutcome():
            assert [ask.ask_id for ask in thread.pending.asks] == [f"ask-{latest.turn_id}"]
        else:
            assert outcome == AbortedOutcome(reason="interrupted")
            assert thread.pending == Pending()
        lease = await store.acquire("th")
        assert lease.thread == thread
        await lease.release()
        return "saved" if outcome == SuccessOutcome() else "lost"


def test_a_process_that_is_killed_before_any_statement_loses_nothing_that_it_said(
    process: ChildProcess, tmp_path: Path
) -> None:
    ends: list[str] = []
    for statement in range(1, 200):
        path = tmp_path / f"{statement}.db"
        said = crashed(process, path, statement)
        ends.append(asyncio.run(verify(path, said)))
        if ["released", "t1"] in said:
            break
    # Before the run began, while it went on, after it was saved.
    order = [end for place, end in enumerate(ends) if place == 0 or end != ends[place - 1]]
    assert order == ["saved", "lost", "saved"] and len(ends) > 25


def test_a_process_that_is_killed_at_any_time_loses_nothing_that_it_said(process: ChildProcess, tmp_path: Path) -> None:
    chance = random.Random(4)
    runs = 0
    for number in range(25):
        path = tmp_path / f"{number}.db"
        said = crashed(process, path, 0, kill_after=chance.uniform(0, 0.03))
        asyncio.run(verify(path, said))
        runs += len([step for step, *_ in said if step == "saved"])
    assert runs > 25


def test_two_processes_lose_no_update(process: ChildProcess, second: ChildProcess, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    process.tell("contend", str(path), "a", 200, 5)
    second.tell("contend", str(path), "b", 200, 5)
    said = [process.heard(), second.heard()]
    assert [line[:2] for line in said] == [["done", "a"], ["done", "b"]]

    async def threads() -> list[Thread]:
        async with SQLiteThreadStore(path) as store:
            found = [await store.load(entry.thread_id) for entry in await store.threads()]
            return [thread for thread in found if thread is not None]

    found = asyncio.run(threads())
    assert len(found) == 5
    for thread in found:
        turns = [turn.turn_id for turn in thread.result.turns]
        assert thread.revision == len(turns) == len(thread.messages)
        assert [message.id for message in thread.messages] == [f"m-{turn}" for turn in turns]
        assert thread.ids.turns == set(turns)
        for name in ("a", "b"):
            numbers = [int(turn[2:]) for turn in turns if turn.startswith(name)]
            assert numbers == sorted(numbers)
    everything = [turn.turn_id for thread in found for turn in thread.result.turns]
    assert sorted(everything) == sorted(f"{name}-{number}" for name in ("a", "b") for number in range(200))


async def test_one_process_has_a_thread_until_it_dies(process: ChildProcess, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    async with SQLiteThreadStore(path) as store:
        before = child.after(Thread(thread_id="th"), "t0")
        await store.put(before)
        process.tell("hold", str(path), 30)
        assert process.heard()[0] == "holding"
        with pytest.raises(ThreadBusyError):
            await store.acquire("th")
        assert await store.load("th") == before
        assert await store.latest_turn("th") == LoggedTurn(turn_id="held", last_seq=3, ended=False)
        assert len(await store.read_log("th", "held")) == 4
        process.close()
        # The time of its right has not passed, but it is known to be gone.
        lease = await store.acquire("th")
        thread = lease.thread
        assert thread is not None and thread.result.turns[-1].outcome == AbortedOutcome(reason="interrupted")
        assert thread.pending == Pending()
        await lease.release()


async def test_a_stop_is_heard_in_another_process(process: ChildProcess, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    process.tell("hold", str(path), 30)
    assert process.heard()[0] == "holding"
    async with SQLiteThreadStore(path) as store:
        assert await store.request_stop("th", "held") is True
        process.tell("go on")
        assert process.heard() == ["stops", [["th", "held"]]]
        assert [process.heard()[0] for _ in range(4)] == ["written", "written", "written", "end"]
        assert await store.request_stop("th", "held") is False


async def test_a_process_that_wakes_up_after_its_run_was_ended_writes_nothing(
    process: ChildProcess, tmp_path: Path
) -> None:
    path = tmp_path / "threads.db"
    process.tell("hold", str(path), 0.4)
    assert process.heard()[0] == "holding"
    process.send(signal.SIGSTOP)
    async with SQLiteThreadStore(path) as store:
        with pytest.raises(ThreadBusyError):
            await store.acquire("th")
        async with asyncio.timeout(10):
            while (await store.latest_turn("th")) == LoggedTurn(turn_id="held", last_seq=3, ended=False):
                await asyncio.sleep(0.05)
        thread = await store.load("th")
        assert thread is not None and thread.result.turns[-1].outcome == AbortedOutcome(reason="interrupted")
        log = await store.read_log("th", "held")
        assert types([decode_event(line) for line in log])[-2:] == ["message.end", "turn.abort"]
        process.send(signal.SIGCONT)
        process.tell("go on")
        assert process.heard() == ["stops", []]
        assert [process.heard() for _ in range(3)] == [["refused", "LeaseLostError"]] * 3
        assert process.heard() == ["end"]
        assert await store.load("th") == thread and await store.read_log("th", "held") == log


def test_a_process_is_told_from_a_later_one_of_its_id(process: ChildProcess) -> None:
    me = this_process()
    assert not has_ended(me)
    boot, namespace, pid, begun = me.split("/")
    assert has_ended(f"{boot}/{namespace}/{pid}/{int(begun) - 1}")
    assert has_ended(f"another boot/{namespace}/{pid}/{begun}")
    # Another container, another system: nobody can tell.
    for unknown in (f"{boot}/7/{pid}/{begun}", "", "x"):
        assert not has_ended(unknown)
    other = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert not has_ended(f"{boot}/{namespace}/{process.pid}/{other}")
    process.send(signal.SIGKILL)
    # Also while nobody has taken notice of its end.
    deadline = time.monotonic() + 10
    while not has_ended(f"{boot}/{namespace}/{process.pid}/{other}"):
        assert time.monotonic() < deadline
    process.close()
    assert has_ended(f"{boot}/{namespace}/{process.pid}/{other}")
