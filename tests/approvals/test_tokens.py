"""Tokens: what they bind, how their keys rotate, what is kept of them."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agjson.approvals import Ask, CallRequest, KeyRetiredError, Keys, TamperedAskError, needs_token
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import AgChoice, AgGrantMode, AgPausedAsk
from tests.approvals.desk import NEW, OLD, Clock, Desk, call, gate, question, run, yes

BASE: dict[str, Any] = {"ask_id": "a", "kind": "approval", "message": "Send?", "tool_call_id": "c1"}


def token(
    ask: dict[str, Any] | None = None, request: CallRequest | None = None, keys: Keys | None = None, **issued: Any
) -> str:
    """The token of one ask in a store of its own."""
    from agjson.approvals import MemoryLedgerStore

    fields = {**BASE, **(ask or {})}
    request = request or call()
    desk = Desk(
        MemoryLedgerStore(), issued.pop("clock", None), keys=keys or Keys({"k1": OLD}), **issued.pop("policy", {})
    )
    (made,) = desk.ask(Ask(ask=AgPausedAsk(**fields), call=request), **issued)
    assert made.token is not None
    return made.token


def later() -> Clock:
    clock = Clock()
    clock.forward(microseconds=1)
    return clock


@pytest.mark.parametrize(
    "changed",
    [
        {"thread": "other"},
        {"turn": "t2"},
        {"owner": "bob"},
        {"owner": None},
        {"clock": later()},
        {"policy": {"lasts": timedelta(hours=1)}},
        {"policy": {"editable": {"send_mail": True}}},
        {"request": call(arguments={"to": "eve"})},
        {"request": call(arguments={"to": "ann", "x": None})},
        {"request": call(name="send_post")},
        {"request": call(server="mail")},
        {"request": call(hosted=True)},
        {"request": call(index=1)},
        {"request": call("c2"), "ask": {"tool_call_id": "c2"}},
        {"ask": {"ask_id": "b"}},
        {"ask": {"kind": "text"}},
        {"ask": {"message": "Send it?"}},
        {"ask": {"reason": "why"}},
        {"ask": {"expires_at": "2026-03-01T12:01:00Z"}},
        {"ask": {"request_state": "s"}},
        {"ask": {"schema": {"type": "object"}}},
        {"ask": {"choices": [AgChoice(id="x", label="X")]}},
        {"ask": {"grant_modes": [AgGrantMode(id="once")]}},
        {"ask": {"url": "https://example.org"}},
        {"ask": {"metadata": {"x": 1}}},
        {"ask": {"input_key": "k"}},
        {"keys": Keys({"k1": NEW})},
        {"keys": Keys({"k2": OLD})},
    ],
)
def test_a_token_binds_everything_that_was_asked(changed: dict[str, Any]) -> None:
    assert token() == token()
    assert token(**changed) != token()


def test_the_order_of_arguments_is_nothing_that_was_asked() -> None:
    assert token(request=call(arguments={"a": 1, "b": 2.0})) == token(request=call(arguments={"b": 2, "a": 1.0}))


def test_a_token_names_its_key_and_is_an_hmac_of_it() -> None:
    made = token()
    assert made.startswith("agt1.k1.")
    assert len(made) == len("agt1.k1.") + 43
    derived = hmac.digest(OLD, b"agjson approval token v1", hashlib.sha256)
    assert Keys({"k1": OLD}).derived("k1", "approval token") == derived


def test_asks_that_let_nothing_run_have_a_token_only_where_the_host_wants_it(make_desk: Callable[..., Desk]) -> None:
    gated, every = make_desk(), make_desk(tokens="all")
    assert [ask.token for ask in gated.ask(question("a"), question("b", "form"))] == [None, None]
    assert all(ask.token for ask in every.ask(question("c"), question("d", "form"), turn="t2"))


def test_kinds_that_consent_always_have_a_token(desk: Desk) -> None:
    asks = desk.ask(
        question("a", "approval"),
        question("b", "auth"),
        question("c", "url", url="https://example.org"),
        question("d", grant_modes=[AgGrantMode(id="once")]),
    )
    assert all(ask.token for ask in asks)


@pytest.mark.parametrize(
    ("ask", "needs"),
    [
        (AgPausedAsk(ask_id="a", kind="approval"), True),
        (AgPausedAsk(ask_id="a", kind="auth"), True),
        (AgPausedAsk(ask_id="a", kind="url", url="https://example.org"), True),
        (AgPausedAsk(ask_id="a", kind="text", tool_call_id="c1"), True),
        (AgPausedAsk(ask_id="a", kind="choice", grant_modes=[AgGrantMode(id="once")]), True),
        (AgPausedAsk(ask_id="a", kind="choice", grant_modes=[]), False),
        (AgPausedAsk(ask_id="a", kind="text"), False),
        (AgPausedAsk(ask_id="a", kind="form", request_state="s"), False),
    ],
)
def test_an_ask_that_lets_something_happen_needs_a_token(ask: AgPausedAsk, needs: bool) -> None:
    assert needs_token(ask) is needs


def test_a_token_is_made_again_and_never_kept(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    (record,) = run(desk.ledger.records("th"))
    assert record.ask.token is None
    assert record.token_hash == hashlib.sha256((ask.token or "").encode()).digest()
    assert run(desk.ledger.progress("th", owner="ann")).waiting == (ask,)
    run(desk.ledger.answer("th", [yes(ask)], owner="ann"))
    (record,) = run(desk.ledger.records("th"))
    assert record.answer is not None
    assert record.answer.token is None


def test_no_token_and_no_secret_is_in_the_file(tmp_path: Path) -> None:
    async def work() -> str:
        async with SQLiteThreadStore(tmp_path / "threads.db") as threads:
            desk = Desk(SQLiteLedgerStore(threads))
            (ask,) = await desk.ledger.issue(thread_id="th", turn_id="t1", asks=[gate(call())])
            await desk.ledger.answer("th", [yes(ask)])
            await desk.ledger.claim("th", "t1", claimed_by="t2")
            return ask.token or ""

    made = run(work())
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"send_mail" in kept
    assert made.rpartition(".")[2].encode() not in kept
    assert OLD not in kept


def test_an_old_key_counts_while_it_is_there(make_desk: Callable[..., Desk]) -> None:
    (ask,) = make_desk(keys=Keys({"k1": OLD})).ask(gate(call()))
    rotated = make_desk(keys=Keys({"k1": OLD, "k2": NEW}))
    (new,) = rotated.ask(gate(call("c2")), turn="t2")
    assert new.token is not None and new.token.startswith("agt1.k2.")
    rotated.resume(yes(ask))
    rotated.resume(yes(new))
    assert len(rotated.ran) == 2


def test_a_key_that_is_taken_out_ends_also_what_is_answered(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(keys=Keys({"k1": OLD}))
    (ask,) = desk.ask(gate(call()))
    run(desk.ledger.answer("th", [yes(ask)], owner="ann"))
    later = make_desk(keys=Keys({"k2": NEW}))
    with pytest.raises(KeyRetiredError):
        later.go_on("th", "t1")
    assert later.ran == []
    # It is shown without a token until it is given up.
    desk.ask(gate(call("c2")), turn="t2")
    assert [each.token for each in run(later.ledger.progress("th", owner="ann")).waiting] == [None]


@pytest.mark.parametrize(
    "secrets",
    [{}, {"k": b"x" * 31}, {"": OLD}, {"a.b": OLD}, {"k" * 65: OLD}, {"ä": OLD}],
    ids=["none", "short", "no name", "dot", "long name", "letter"],
)
def test_keys_that_cannot_be_are_refused(secrets: dict[str, bytes]) -> None:
    with pytest.raises(ValueError):
        Keys(secrets)


def test_the_current_key_is_the_last_one_or_the_named_one() -> None:
    assert Keys({"a": OLD, "b": NEW}).current == "b"
    assert Keys({"a": OLD, "b": NEW}, current="a").current == "a"
    with pytest.raises(ValueError):
        Keys({"a": OLD}, current="b")


def test_keys_show_no_secret() -> None:
    shown = repr(Keys({"a": OLD, "b": NEW}))
    assert shown == "Keys(a, b; current b)"
    assert Keys.random().derived("random", "x") != Keys.random().derived("random", "x")


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [("issued", '"to":"ann"', '"to":"eve"'), ("issued", '"owner":"ann"', '"owner":"eve"'), ("issued", "k1", "k2")],
)
def test_what_was_changed_in_the_file_runs_nothing(tmp_path: Path, column: str, old: str, new: str) -> None:
    path = tmp_path / "threads.db"
    owner = "eve" if "owner" in new else "ann"

    async def first() -> AgPausedAsk:
        async with SQLiteThreadStore(path) as threads:
            desk = Desk(SQLiteLedgerStore(threads))
            return (await desk.ledger.issue(thread_id="th", turn_id="t1", asks=[gate(call())], owner="ann"))[0]

    async def second(ask: AgPausedAsk) -> None:
        async with SQLiteThreadStore(path) as threads:
            desk = Desk(SQLiteLedgerStore(threads), keys=Keys({"k2": OLD, "k1": OLD}))
            await desk.ledger.answer("th", [yes(ask)], owner=owner)

    ask = run(first())
    with sqlite3.connect(path) as connection:
        done = connection.execute(
            f"UPDATE asks SET {column} = CAST(replace(CAST({column} AS TEXT), ?, ?) AS BLOB)", (old, new)
        )
        assert done.rowcount == 1
    connection.close()
    with pytest.raises(TamperedAskError):
        run(second(ask))


def test_an_ask_whose_token_was_taken_away_in_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"

    async def work(take_away: bool) -> None:
        async with SQLiteThreadStore(path) as threads:
            desk = Desk(SQLiteLedgerStore(threads))
            if not take_away:
                await desk.ledger.issue(thread_id="th", turn_id="t1", asks=[gate(call())])
                return
            await desk.ledger.answer("th", [yes(gate(call()).ask)])

    run(work(False))
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE asks SET token_hash = NULL,"
            " issued = CAST(replace(CAST(issued AS TEXT), ',\"keyId\":\"k1\"', '') AS BLOB)"
        )
    connection.close()
    with pytest.raises(TamperedAskError):
        run(work(True))
