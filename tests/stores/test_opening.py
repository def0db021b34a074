"""Opening a file: what is no store is refused and stays as it is; an older schema is brought up to date, or left."""

from __future__ import annotations

import os
import sqlite3
import threading
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agjson.agents import Thread
from agjson.errors import AgJSONError
from agjson.stores import DamagedStoreError, NewerSchemaError, SQLiteThreadStore, StoreError, StoreFileError
from agjson.stores.schema import APPLICATION_ID, MIGRATIONS, connect, migrate
from agjson.types import AgMessage, AgReduceResult, TextBlock


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()


def text(path: Path) -> None:
    path.write_text("SQLite? No, a text that is a good deal longer than the first sixteen bytes.")


def half_a_database(path: Path) -> None:
    other_database(path)
    path.write_bytes(path.read_bytes()[:3000])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "is a folder"),
        (text, "not a database"),
        (other_database, "something else"),
        (half_a_database, "threads.db"),
    ],
)
async def test_what_is_no_store_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "threads.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    store = SQLiteThreadStore(path)
    for _ in range(2):
        with pytest.raises(StoreError, match=words):
            await store.load("th")
    with pytest.raises(AgJSONError):
        async with store:
            pass
    await store.aclose()
    assert before is None or path.read_bytes() == before


async def test_a_folder_that_is_not_there_is_named_and_may_come_later(tmp_path: Path) -> None:
    store = SQLiteThreadStore(tmp_path / "later" / "threads.db")
    with pytest.raises(StoreFileError, match="later"):
        await store.load("th")
    (tmp_path / "later").mkdir()
    assert await store.load("th") is None
    await store.aclose()


@pytest.mark.skipif(os.geteuid() == 0, reason="no folder is closed to root")
async def test_a_folder_or_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreFileError, match="not writable"):
            await SQLiteThreadStore(path).load("th")
    finally:
        tmp_path.chmod(0o700)


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    path.touch()
    async with SQLiteThreadStore(path, synchronous="full") as store:
        await store.put(Thread(thread_id="th"))
    with closing(sqlite3.connect(path)) as connection:
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        assert found == [APPLICATION_ID, len(MIGRATIONS)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_file_of_a_later_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    async with SQLiteThreadStore(path) as store:
        await store.put(Thread(thread_id="th"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
        connection.execute("CREATE TABLE later (x)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(NewerSchemaError) as caught:
        await SQLiteThreadStore(path).load("th")
    assert (caught.value.found, caught.value.known) == (len(MIGRATIONS) + 1, len(MIGRATIONS))
    assert path.read_bytes() == before


def open_at(path: Path) -> sqlite3.Connection:
    return connect(path, busy_timeout=5, synchronous="normal")


def test_a_migration_that_fails_half_way_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def add(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE ledger (thread INTEGER REFERENCES threads (key) ON DELETE CASCADE)")
        connection.execute("ALTER TABLE threads ADD COLUMN more TEXT")

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        connection.execute("CREATE TABLE threads (x)")

    def schema(connection: sqlite3.Connection) -> tuple[object, ...]:
        version = connection.execute("PRAGMA user_version").fetchone()
        return version, connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()

    with closing(open_at(tmp_path / "threads.db")) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [*MIGRATIONS, fail])
        assert schema(connection) == ((0,), [])
        migrate(connection)
        connection.execute("INSERT INTO threads (thread_id) VALUES ('th')")
        first = schema(connection)
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [*MIGRATIONS, add, fail])
        assert schema(connection) == first
        migrate(connection, [*MIGRATIONS, add])
        assert connection.execute("SELECT thread_id, more FROM threads").fetchall() == [("th", None)]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
        with pytest.raises(NewerSchemaError):
            migrate(connection)


def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    """Each migration is done by one of them."""
    done: list[int] = []
    failures: list[Exception] = []

    def count(connection: sqlite3.Connection) -> None:
        done.append(1)

    def work() -> None:
        try:
            with closing(open_at(tmp_path / "threads.db")) as connection:
                migrate(connection, [*MIGRATIONS, count])
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (done, failures) == ([1], [])


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "statement",
    [
        f"""UPDATE threads SET settings = '{{"pending":"{SECRET}"}}'""",
        f"UPDATE threads SET state = '{SECRET}'",
        "UPDATE threads SET settings = 7",
        f"""UPDATE parts SET json = '{{"id":"m","role":"{SECRET}","content":[]}}'""",
        f"""UPDATE parts SET json = '{{"id":"m","role":"user","content":[{{"type":"text","text":["{SECRET}"]}}]}}'""",
        f"UPDATE parts SET json = x'ff' || '{SECRET}'",
        f"INSERT INTO ids (thread, kind, id) SELECT key, '{SECRET}', 'x' FROM threads",
    ],
)
async def test_a_damaged_thread_is_told_without_its_values(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "threads.db"
    message = AgMessage(id="m", role="user", content=[TextBlock(text="hi")])
    result = AgReduceResult(messages=[message], artifacts=[], memory=[], turns=[])
    async with SQLiteThreadStore(path) as store:
        await store.put(Thread(thread_id="th", result=result))
        await store.write(lambda connection: connection.execute(statement).rowcount)
        for damaged in (lambda: store.load("th"), lambda: store.acquire("th")):
            with pytest.raises(DamagedStoreError, match="cannot be read") as caught:
                await damaged()
            assert SECRET not in "".join(traceback.format_exception(caught.value))
        # It is not in the way: its right was given back.
        assert await store.delete("th") is True


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_is_gone_while_it_is_open_takes_nothing_more(tmp_path: Path, is_replaced: bool) -> None:
    path = tmp_path / "threads.db"
    async with SQLiteThreadStore(path) as store:
        await store.put(Thread(thread_id="before"))
        for each in tmp_path.iterdir():
            each.unlink()
        if is_replaced:
            async with SQLiteThreadStore(path) as other:
                await other.put(Thread(thread_id="other"))
        # What it would take now would be lost with it.
        with pytest.raises(StoreFileError, match="deleted, moved or replaced"):
            await store.put(Thread(thread_id="lost"))
        # Who asks next has the file that is there.
        await store.put(Thread(thread_id="after"))
        assert await store.load("before") is None
    async with SQLiteThreadStore(path) as store:
        names = sorted(thread.thread_id for thread in await store.threads())
    assert names == ["after", *(["other"] if is_replaced else [])]
