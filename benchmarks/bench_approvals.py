"""Claiming an answered ask, against a bare commit of `sqlite3` with the same settings on the same file system.

Time is wall time, as in `bench_stores`: whoever claims waits until it is committed. A claim that must outlive a power
failure needs ``synchronous="full"``, so that is the row with an aim.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from agjson import AgHitlAnswer, AgPausedAsk
from agjson.approvals import Ask, CallRequest, Keys, Ledger, Policy
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from benchmarks.measure import Effort, Row, each

GROUP = "approvals"
CLAIMS = 60
ROUNDS = 5
AIM = 2.0

Synchronous = Literal["normal", "full"]


def rows(effort: Effort) -> Iterator[Row]:
    for synchronous in ("full", "normal"):
        with tempfile.TemporaryDirectory() as folder:
            yield asyncio.run(_row(Path(folder), synchronous))


async def _row(folder: Path, synchronous: Synchronous) -> Row:
    bare = _bare(folder / "bare.db", synchronous)
    best = {"claim": float("inf"), "bare": float("inf")}
    async with SQLiteThreadStore(folder / "store.db", synchronous=synchronous) as threads:
        ledger = Ledger(SQLiteLedgerStore(threads), Policy(keys=Keys({"k": b"k" * 32})))
        for number in range(ROUNDS):
            turns = [f"{number}-{index}" for index in range(CLAIMS)]
            for turn in turns:
                await _answered(ledger, turn)
            gc.collect()
            gc.freeze()
            start = time.perf_counter()
            for turn in turns:
                await ledger.claim(turn, turn, claimed_by="next")
            best["claim"] = min(best["claim"], time.perf_counter() - start)
            start = time.perf_counter()
            for turn in turns:
                bare.execute("BEGIN IMMEDIATE")
                bare.execute("INSERT INTO claims VALUES (?, ?)", (turn, b"claimed"))
                bare.execute("COMMIT")
            best["bare"] = min(best["bare"], time.perf_counter() - start)
            gc.unfreeze()
    bare.close()
    return Row(
        GROUP,
        f"claim an ask, synchronous {synchronous}",
        best["claim"] / best["bare"],
        AIM if synchronous == "full" else None,
        each(best["claim"], CLAIMS),
        f"a commit by sqlite3 ({each(best['bare'], CLAIMS)})",
    )


async def _answered(ledger: Ledger, turn: str) -> None:
    call = CallRequest(call_id="c", name="send_mail", arguments={"to": "ann", "subject": "words", "body": "x" * 200})
    ask = AgPausedAsk(ask_id=f"{turn}:c", kind="approval", tool_call_id="c", message="Send it?")
    (issued,) = await ledger.issue(thread_id=turn, turn_id=turn, asks=[Ask(ask=ask, call=call)])
    await ledger.answer(turn, [AgHitlAnswer(ask_id=issued.ask_id, status="resolved", token=issued.token)])


def _bare(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE claims (turn TEXT PRIMARY KEY, state BLOB)")
    return connection
