"""What other processes do with a ledger in the tests of this folder; each says on its standard output what it has done.

A line of the input starts a task: its name and its arguments, as JSON. ``crash`` runs in a child of its own, as it is
to be killed. The tool is a line added to a file, so that its runs are counted whatever happens to the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys

from agjson.approvals import AlreadyClaimedError, AnswerError, Claim, Keys, Ledger, Policy
from agjson.approvals.tokens import make_token
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from tests.approvals.desk import OLD, yes


def say(*what: object) -> None:
    """One line, whole, whatever happens next."""
    os.write(1, (json.dumps(what) + "\n").encode())


def die_if(condition: bool) -> None:
    if condition:
        os.kill(os.getpid(), signal.SIGKILL)


def tool(log: str, thread_id: str) -> None:
    """The side effect."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{thread_id}\n".encode())
    os.close(file)


def ledger(threads: SQLiteThreadStore) -> Ledger:
    return Ledger(SQLiteLedgerStore(threads), Policy(keys=Keys({"k1": OLD})))


async def answered(ledger: Ledger, thread_id: str) -> None:
    """Say yes to all that is open."""
    asks = (await ledger.progress(thread_id)).waiting
    if asks:
        await ledger.answer(thread_id, [yes(ask) for ask in asks])


async def ran(ledger: Ledger, log: str, claim: Claim, step: str = "") -> None:
    """Run what a claim allows."""
    for call in claim.calls:
        die_if(step == "before the tool")
        tool(log, claim.thread_id)
        die_if(step == "after the tool")
        await ledger.record(claim, call.call_id, "ok")
        die_if(step == "after the outcome")
    await ledger.close(claim)


async def crash(path: str, log: str, statement: int, step: str) -> None:
    """Answer, claim, run, record; and die before a given statement, or at a step."""
    threads = SQLiteThreadStore(path)
    mine = ledger(threads)
    left = statement

    def count(sql: str) -> None:
        nonlocal left
        left -= 1
        die_if(left == 0)

    def trace(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(count)

    await threads.write(trace)
    await answered(mine, "th")
    die_if(step == "before the claim")
    claim = await mine.claim("th", "t1", claimed_by="t2")
    die_if(step == "after the claim")
    await ran(mine, log, claim, step)
    say("finished")


async def race(path: str, log: str, count: int, together: bool) -> None:
    """Claim what others want too, thread by thread."""
    won: list[int] = []
    async with SQLiteThreadStore(path) as threads:
        mine = ledger(threads)
        for number in range(count):
            thread_id = f"th{number}"
            try:
                if together:
                    (record,) = await mine.records(thread_id)
                    token = make_token(record, mine.policy.keys)
                    await mine.answer(thread_id, [yes(record.ask, token=token)])
                claim = await mine.claim(thread_id, "t1", claimed_by=f"by-{os.getpid()}")
            except (AlreadyClaimedError, AnswerError):
                continue
            await ran(mine, log, claim)
            won.append(number)
    say("won", won)


def main() -> None:
    say("ready")
    while line := sys.stdin.readline():
        name, *arguments = json.loads(line)
        if name == "race":
            asyncio.run(race(*arguments))
            continue
        child = os.fork()
        if child == 0:
            asyncio.run(crash(*arguments))
            os._exit(0)
        os.waitpid(child, 0)
        say("ended")


if __name__ == "__main__":
    main()
