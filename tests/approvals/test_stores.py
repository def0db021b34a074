"""What the file of a thread store keeps of asks."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agjson.agents import Thread
from agjson.approvals import CallBudget, Keys, Sealer
from agjson.stores import DamagedStoreError, SQLiteThreadStore, encode_thread
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.stores.schema import APPLICATION_ID, MIGRATIONS, connect, migrate
from agjson.stores.tables import apply, change_between
from tests.approvals.desk import EDITS, NEW, OLD, Desk, call, gate, no, question, run, yes


def sealer(secret: bytes = OLD) -> Sealer:
    return Sealer(Keys({"rest": secret}))


def filled(path: Path, seal: Sealer | None = None) -> Any:
    """A file with an ask in every state that matters; returns all that the ledger knows of it."""
    threads = SQLiteThreadStore(path)
    desk = Desk(SQLiteLedgerStore(threads, sealer=seal), editable={"send_mail": EDITS})
    secret = call(arguments={"to": "secret-person"})
    asks = desk.ask(gate(secret, request_state="secret-state"), gate(call("c2")), held=[call("s", "secret-tool")])
    run(desk.ledger.answer("th", [yes(asks[0], reply={"arguments": {"to": "secret-too"}}), no(asks[1])], owner="ann"))
    claim = run(desk.ledger.claim("th", "t1", claimed_by="t2"))
    run(desk.ledger.record(claim, "s", "error"))
    desk.ask(question("q", reason="secret-reason"), turn="t2", one_at_a_time=True, budget=CallBudget(3, 1))
    run(desk.ledger.allow(tool="secret-rule", owner="ann", arguments={"x": 1.5}))
    known = everything(desk)
    run(threads.aclose())
    return known


def everything(desk: Desk) -> Any:
    batches = [run(desk.ledger.batch("th", turn)) for turn in ("t1", "t2")]
    return desk.everything(), batches, run(desk.ledger.rules(owner="ann"))


def opened(path: Path, seal: Sealer | None = None) -> tuple[SQLiteThreadStore, Desk]:
    threads = SQLiteThreadStore(path)
    return threads, Desk(SQLiteLedgerStore(threads, sealer=seal), editable={"send_mail": EDITS})


def held(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_all_of_it_comes_back(tmp_path: Path, sealed: bool) -> None:
    path = tmp_path / "threads.db"
    seal = sealer() if sealed else None
    known = filled(path, seal)
    threads, desk = opened(path, seal)
    assert everything(desk) == known
    run(threads.aclose())
    assert (b"secret-" in held(path)) is not sealed


def test_what_was_kept_in_plain_can_be_read_with_a_sealer(tmp_path: Path) -> None:
    known = filled(tmp_path / "threads.db")
    threads, desk = opened(tmp_path / "threads.db", sealer())
    assert everything(desk) == known
    run(threads.aclose())


@pytest.mark.parametrize("seal", [None, sealer(NEW)], ids=["no key", "another key"])
def test_what_is_sealed_is_damaged_for_others(tmp_path: Path, seal: Sealer | None) -> None:
    filled(tmp_path / "threads.db", sealer())
    threads, desk = opened(tmp_path / "threads.db", seal)
    for work in (desk.ledger.records("th"), desk.ledger.batch("th", "t1"), desk.ledger.rules(owner="ann")):
        with pytest.raises(DamagedStoreError) as caught:
            run(work)
        assert "secret" not in str(caught.value)
    run(threads.aclose())


@pytest.mark.parametrize(
    ("table", "column"), [("asks", "issued"), ("asks", "course"), ("ask_batches", "json"), ("standing_rules", "json")]
)
@pytest.mark.parametrize("text", [b"", b"{", b"{}", b"[]", b'{"ask":1,"answer":2,"held":3}', b"\xff"])
def test_what_cannot_be_read_is_a_typed_error(tmp_path: Path, table: str, column: str, text: bytes) -> None:
    path = tmp_path / "threads.db"
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE {table} SET {column} = ?", (text,))
    connection.commit()
    connection.close()
    threads, desk = opened(path)
    works = {"asks": lambda: desk.ledger.records("th"), "ask_batches": lambda: desk.ledger.batch("th", "t1")}
    work = works.get(table, lambda: desk.ledger.rules(owner="ann"))
    if (column, text) in (("course", b"{}"), ("json", b"{}")) and table != "standing_rules":
        # Nothing has come of it, which is a possible state.
        run(work())
    else:
        with pytest.raises(DamagedStoreError):
            run(work())
    run(threads.aclose())


def test_a_file_of_the_release_before_gets_the_tables_and_keeps_its_threads(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    connection = connect(path, busy_timeout=1, synchronous="normal")
    migrate(connection, MIGRATIONS[:1])
    thread = Thread(thread_id="th", revision=7, owner="ann")
    key = connection.execute("INSERT INTO threads (thread_id) VALUES ('th')").lastrowid or 0
    apply(connection, key, change_between(None, thread))
    connection.close()
    threads, desk = opened(path)
    loaded = run(threads.load("th"))
    assert loaded is not None and encode_thread(loaded) == encode_thread(thread)
    (ask,) = desk.ask(gate(call()))
    desk.resume(yes(ask))
    assert len(desk.ran) == 1
    run(threads.aclose())
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    connection.close()


def test_half_characters_in_ids_and_words_are_kept(desk: Desk) -> None:
    half = "x\ud83d"
    request = call(half, arguments={half: half}, server=half)
    (ask,) = desk.ask(
        gate(request, half, message=half, request_state=half), thread=half, turn=half, owner=half, held=[call("s")]
    )
    desk.resume(yes(ask, reason=half), thread=half, owner=half)
    assert desk.ran == [("send_mail", {half: half}), ("send_mail", {"to": "ann"})]
    assert desk.states(half) == {half: "done"}


def test_values_are_kept_as_they_are(desk: Desk) -> None:
    arguments = {"one": 1, "float": 1.0, "big": 2**70, "none": None, "list": [True, [], {}], "": "ü\u2028"}
    (ask,) = desk.ask(gate(call(arguments=arguments)))
    desk.resume(yes(ask))
    ((_, ran),) = desk.ran
    assert ran == arguments
    assert [type(ran[name]) for name in ("one", "float")] == [int, float]


def test_threads_do_not_see_each_other(desk: Desk) -> None:
    for thread in ("th", "other"):
        desk.ask(gate(call()), question("q"), thread=thread, held=[call("s")])
    run(desk.ledger.give_up("other"))
    assert desk.states("th") == {"ask-c1": "open", "q": "open"}
    assert desk.states("other") == {"ask-c1": "given_up", "q": "given_up"}
    assert desk.states("third") == {}
    assert run(desk.ledger.give_up("third")) == []


def test_asks_that_are_found_by_the_ledger_are_found_by_an_index(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    filled(path)
    threads, _ = opened(path)
    plans: list[str] = []

    def explain(connection: sqlite3.Connection) -> None:
        traced: list[str] = []
        connection.set_trace_callback(traced.append)
        SQLiteLedgerStore(threads).within(
            lambda book: [book.asks("th", "t1"), book.ask("th", "q"), book.batch("th", "t1"), book.batches("th")]
        )(connection)
        connection.set_trace_callback(None)
        for statement in traced:
            plans.extend(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))

    run(threads.write(explain))
    run(threads.aclose())
    assert plans and all(plan.startswith(("SEARCH", "USE TEMP B-TREE")) for plan in plans), plans
    # None of them goes through all asks of the thread.
    assert not any(plan.startswith("SEARCH asks") and plan.endswith("(thread=?)") for plan in plans), plans
