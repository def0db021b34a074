"""Several processes and one ask: one of them runs it, and what a killed one leaves behind never runs twice."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agjson.approvals import AlreadyClaimedError, AskState, Recovered
from agjson.stores import SQLiteThreadStore
from tests.approvals import child
from tests.approvals.desk import call, gate, run

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed by signals")

STEPS = ["before the claim", "after the claim", "before the tool", "after the tool", "after the outcome", "never"]


class Process:
    """Another process; it reads tasks and says what it does."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.approvals.child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.heard() == ["ready"]

    def tell(self, *task: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()

    def heard(self) -> list[Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else []

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    started = Process()
    yield started
    started.close()


@pytest.fixture(scope="module")
def second() -> Iterator[Process]:
    started = Process()
    yield started
    started.close()


def runs(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def asked(path: Path, *threads_ids: str, answered: bool = False) -> None:
    async def work() -> None:
        async with SQLiteThreadStore(path) as threads:
            ledger = child.ledger(threads)
            for id in threads_ids:
                await ledger.issue(thread_id=id, turn_id="t1", asks=[gate(call())])
                if answered:
                    await child.answered(ledger, id)

    run(work())


def after_crash(path: Path, log: Path) -> tuple[AskState, Recovered, AskState]:
    """What the next process finds, and what is there when it has gone on as far as it may."""

    async def work() -> tuple[AskState, Recovered, AskState]:
        async with SQLiteThreadStore(path) as threads:
            ledger = child.ledger(threads)
            found = (await ledger.records("th"))[0].state
            # Nobody says that it holds the thread: that the process has ended is seen by itself.
            recovered = await ledger.recover()
            await child.answered(ledger, "th")
            with contextlib.suppress(AlreadyClaimedError):
                await child.ran(ledger, str(log), await ledger.claim("th", "t1", claimed_by="t3"))
            return found, recovered, (await ledger.records("th"))[0].state

    return run(work())


def crashed(process: Process, path: Path, log: Path, statement: int, step: str) -> bool:
    """Let a process die; returns whether it came to its end before."""
    process.tell("crash", str(path), str(log), statement, step)
    heard = process.heard()
    if heard == ["finished"]:
        assert process.heard() == ["ended"]
        return True
    assert heard == ["ended"]
    return False


def check(found: AskState, recovered: Recovered, final: AskState, before: int, total: int) -> None:
    if found in ("open", "resolved"):
        # Nothing was claimed, so nothing has run: the approval still counts, once.
        assert (before, total, final, recovered) == (0, 1, "done", Recovered())
    elif found == "claimed":
        assert (total, final) == (before, "unknown")
        assert [(lost.claimed_by, lost.calls) for lost in recovered.lost] == [("t2", (call(),))]
    else:
        assert (found, final, before, total, recovered.lost) == ("done", "done", 1, 1, ())


@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_is_killed_at_a_step_leaves_at_most_one_run(tmp_path: Path, process: Process, step: str) -> None:
    path, log = tmp_path / "threads.db", tmp_path / "log"
    asked(path, "th")
    assert crashed(process, path, log, 0, step) == (step == "never")
    before = len(runs(log))
    found, recovered, final = after_crash(path, log)
    expected = {"before the claim": "resolved", "after the outcome": "done", "never": "done"}.get(step, "claimed")
    assert found == expected
    assert before == (1 if step in ("after the tool", "after the outcome", "never") else 0)
    check(found, recovered, final, before, len(runs(log)))


def test_a_process_that_is_killed_before_any_statement_leaves_at_most_one_run(tmp_path: Path, process: Process) -> None:
    seen: Counter[str] = Counter()
    for statement in range(1, 200):
        path, log = tmp_path / f"{statement}.db", tmp_path / f"{statement}.log"
        asked(path, "th")
        if crashed(process, path, log, statement, "never"):
            break
        before = len(runs(log))
        found, recovered, final = after_crash(path, log)
        check(found, recovered, final, before, len(runs(log)))
        seen[found] += 1
    else:
        raise AssertionError("it never came to its end")
    assert set(seen) == {"open", "resolved", "claimed", "done"}


@pytest.mark.parametrize("together", [False, True], ids=["claim", "answer and claim"])
def test_two_processes_that_want_one_ask(tmp_path: Path, process: Process, second: Process, together: bool) -> None:
    path, log, count = tmp_path / "threads.db", tmp_path / "log", 60
    ids = [f"th{number}" for number in range(count)]
    asked(path, *ids, answered=not together)
    for each in (process, second):
        each.tell("race", str(path), str(log), count, together)
    won = [each.heard()[1] for each in (process, second)]
    assert sorted(won[0] + won[1]) == list(range(count))
    assert sorted(runs(log)) == sorted(ids)
