"""Continuations in the file of the threads."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agjson.agents import Continuations, Thread, UnknownContinuationError
from agjson.approvals import Keys, Sealer, UnsealableError
from agjson.stores import SQLiteThreadStore
from agjson.stores.continuations import SQLiteContinuations
from tests.approvals.desk import NEW, OLD, Clock, run

VALUE = {"run": ["state", 1, 2.5, None], "text": "halló\ud800", "big": 2**80}


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[SQLiteThreadStore]:
    store = SQLiteThreadStore(tmp_path / "threads.db")
    yield store
    run(store.aclose())


@pytest.fixture(params=["plain", "sealed"])
def kept(request: pytest.FixtureRequest, threads: SQLiteThreadStore) -> SQLiteContinuations:
    sealer = Sealer(Keys({"k1": OLD})) if request.param == "sealed" else None
    return SQLiteContinuations(threads, sealer=sealer)


def test_it_is_taken_once_by_its_thread(kept: SQLiteContinuations) -> None:
    assert isinstance(kept, Continuations)
    name = kept.mint()
    run(kept.put("th", name, VALUE))
    with pytest.raises(UnknownContinuationError):
        run(kept.take("other", name))
    with pytest.raises(UnknownContinuationError):
        run(kept.take("th", kept.mint()))
    assert run(kept.take("th", name)) == VALUE
    with pytest.raises(UnknownContinuationError):
        run(kept.take("th", name))


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"x": 1}], ids=str)
def test_every_plain_value_comes_back(kept: SQLiteContinuations, value: Any) -> None:
    run(kept.put("th", "name", value))
    assert run(kept.take("th", "name")) == value


def test_a_later_one_of_its_name_replaces_it(kept: SQLiteContinuations) -> None:
    run(kept.put("th", "name", 1))
    run(kept.put("th", "name", 2))
    assert run(kept.take("th", "name")) == 2


def test_it_outlives_the_process(kept: SQLiteContinuations, threads: SQLiteThreadStore) -> None:
    run(kept.put("th", "name", VALUE))
    run(threads.aclose())

    async def again() -> Any:
        async with SQLiteThreadStore(threads.path) as store:
            return await SQLiteContinuations(store, sealer=Sealer(Keys({"k1": OLD}))).take("th", "name")

    assert run(again()) == VALUE


def test_of_many_that_take_it_at_once_one_gets_it(kept: SQLiteContinuations) -> None:
    async def work() -> list[Any]:
        await kept.put("th", "name", VALUE)
        return await asyncio.gather(*(kept.take("th", "name") for _ in range(20)), return_exceptions=True)

    found = run(work())
    assert [each for each in found if not isinstance(each, UnknownContinuationError)] == [VALUE]


@pytest.mark.parametrize("value", [object(), float("inf"), {"x": {1: object()}}], ids=["object", "inf", "inside"])
def test_a_live_object_is_refused(kept: SQLiteContinuations, value: Any) -> None:
    with pytest.raises(UnsealableError):
        run(kept.put("th", "name", value))
    with pytest.raises(UnknownContinuationError):
        run(kept.take("th", "name"))


def test_it_is_forgotten_when_its_time_is_over(threads: SQLiteThreadStore) -> None:
    clock = Clock()
    kept = SQLiteContinuations(threads, lasts=timedelta(hours=1), clock=clock)
    run(kept.put("th", "old", 1))
    run(kept.put("th", "never asked for", 1))
    clock.forward(hours=1, seconds=1)
    with pytest.raises(UnknownContinuationError):
        run(kept.take("th", "old"))
    run(kept.put("th", "new", 2))

    def count(connection: sqlite3.Connection) -> int:
        return connection.execute("SELECT count(*) FROM continuations").fetchone()[0]

    assert run(threads.write(count)) == 1
    assert run(kept.take("th", "new")) == 2


def test_it_goes_with_its_thread(kept: SQLiteContinuations, threads: SQLiteThreadStore) -> None:
    run(threads.put(Thread(thread_id="th")))
    run(kept.put("th", "name", VALUE))
    run(threads.delete("th"))
    with pytest.raises(UnknownContinuationError):
        run(kept.take("th", "name"))


def test_who_reads_the_file_can_use_none(threads: SQLiteThreadStore) -> None:
    kept = SQLiteContinuations(threads, sealer=Sealer(Keys({"k1": OLD})))
    name = kept.mint()
    run(kept.put("th", name, {"secret": "state"}))
    run(threads.aclose())
    held = b"".join(path.read_bytes() for path in threads.path.parent.iterdir())
    assert name.encode() not in held
    assert b"secret" not in held


def test_one_that_cannot_be_read_any_more_is_unknown(threads: SQLiteThreadStore) -> None:
    first = SQLiteContinuations(threads, sealer=Sealer(Keys({"k1": OLD})))
    for other in (None, Sealer(Keys({"k2": NEW}))):
        run(first.put("th", "name", VALUE))
        with pytest.raises(UnknownContinuationError):
            run(SQLiteContinuations(threads, sealer=other).take("th", "name"))


def test_one_that_was_moved_to_another_thread_is_unknown(threads: SQLiteThreadStore) -> None:
    kept = SQLiteContinuations(threads, sealer=Sealer(Keys({"k1": OLD})))
    run(kept.put("th", "name", VALUE))
    run(kept.put("other", "else", VALUE))

    def swap(connection: sqlite3.Connection) -> None:
        connection.execute(
            "DELETE FROM continuations WHERE thread = (SELECT key FROM threads WHERE thread_id = 'other')"
        )
        connection.execute("UPDATE continuations SET thread = (SELECT key FROM threads WHERE thread_id = 'other')")

    run(threads.write(swap))
    with pytest.raises(UnknownContinuationError):
        run(kept.take("other", "name"))
