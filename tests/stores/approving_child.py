"""An agent with a ledger that is killed in the middle of a run; the tests of this folder start it.

A line of the input is a task, as JSON: the file of the threads, the file of the tool's effects, before which statement
to die, and the input. It runs in a child of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from typing import Any

from agjson.agents import Agent
from agjson.approvals import Ledger
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import AgInput, AgStreamEvent
from agjson.wire import from_dict
from tests.support.gated import Gated, gated_agent, ledger_on, written


def agent_on(store: SQLiteThreadStore, log: str, **settings: Any) -> tuple[Agent, Ledger]:
    """The agent, and its ledger on the file of the threads."""
    ledger = ledger_on(SQLiteLedgerStore(store))
    return gated_agent(Gated(written(log)), store=store, approvals=ledger, **settings), ledger


async def drained(agent: Agent, ag_input: AgInput | dict[str, Any]) -> list[AgStreamEvent]:
    """One run, to its end."""
    return [event async for event in agent.run(ag_input)]


async def crash(path: str, log: str, statement: int, ag_input: dict[str, Any]) -> None:
    """Run an input, and die before a given statement."""
    store = SQLiteThreadStore(path)
    left = statement

    def count(sql: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def trace(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(count)

    await store.write(trace)
    agent, _ = agent_on(store, log)
    await drained(agent, from_dict(ag_input, as_="input"))
    os.write(1, b'["finished"]\n')


def main() -> None:
    os.write(1, b'["ready"]\n')
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            asyncio.run(crash(*json.loads(line)))
            os._exit(0)
        os.waitpid(child, 0)
        os.write(1, b'["ended"]\n')


if __name__ == "__main__":
    main()
