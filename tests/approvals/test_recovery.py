"""Claims that nobody sees to their end, and asks of runs that were lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from agjson.agents import Pending, Thread
from agjson.approvals import (
    OUTCOME_UNKNOWN,
    AlreadyClaimedError,
    Book,
    Claim,
    ClaimLostError,
    GivenUpAskError,
    LedgerError,
    LedgerStore,
    Lost,
    Recovered,
    SpentAskError,
    UnknownBatchError,
    answering,
    claiming,
    issuing,
    standing,
    unknown_result,
)
from agjson.approvals.tokens import make_token
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import AgPausedAsk
from tests.approvals.desk import EDITS, Desk, call, gate, question, run, yes

MakeDesk = Callable[..., Desk]


def claimed(desk: Desk) -> Claim:
    """A claim on a batch of a gated call, a question and a safe call."""
    asks = desk.ask(gate(call("g", index=1)), question("q"), held=[call("s", "look")])
    run(desk.ledger.answer("th", [yes(asks[0]), yes(asks[1], reply="x")], owner="ann"))
    return run(desk.ledger.claim("th", "t1", claimed_by="t2"))


def test_a_lost_claim_is_visible_and_never_runs_again(desk: Desk, make_desk: MakeDesk) -> None:
    claim = claimed(desk)
    run(desk.ledger.record(claim, "s", "ok"))
    again = make_desk()
    found = run(again.ledger.recover("th", holding=True))
    assert found == Recovered(
        lost=(Lost(thread_id="th", turn_id="t1", claimed_by="t2", calls=(call("g", index=1),), asks=("ask-g", "q")),)
    )
    assert again.states() == {"ask-g": "unknown", "q": "unknown"}
    with pytest.raises(AlreadyClaimedError):
        again.go_on("th", "t1")
    with pytest.raises(SpentAskError):
        again.resume(yes(gate(call("g", index=1)).ask, token=run(token_of(desk))))
    assert again.ran == []
    assert run(again.ledger.recover("th", holding=True)) == Recovered()


async def token_of(desk: Desk) -> str:
    return make_token((await desk.ledger.records("th"))[0], desk.ledger.policy.keys)


def test_a_safe_call_of_a_lost_claim_is_unknown_too(desk: Desk) -> None:
    claim = claimed(desk)
    run(desk.ledger.record(claim, "g", "ok"))
    (lost,) = run(desk.ledger.recover("th", holding=True)).lost
    assert [request.call_id for request in lost.calls] == ["s"]
    assert desk.states() == {"ask-g": "done", "q": "unknown"}


def test_the_edits_that_may_have_run_are_those_that_are_told(make_desk: MakeDesk) -> None:
    desk = make_desk(editable={"send_mail": EDITS})
    (ask,) = desk.ask(gate(call()))
    run(desk.ledger.answer("th", [yes(ask, reply={"arguments": {"to": "bob"}})], owner="ann"))
    run(desk.ledger.claim("th", "t1", claimed_by="t2"))
    (lost,) = run(desk.ledger.recover("th", holding=True)).lost
    assert lost.calls == (call(arguments={"to": "bob"}),)


def test_whoever_lost_a_claim_can_say_nothing_more_about_it(desk: Desk) -> None:
    claim = claimed(desk)
    run(desk.ledger.recover("th", holding=True))
    for work in (desk.ledger.record(claim, "g", "ok"), desk.ledger.close(claim)):
        with pytest.raises(ClaimLostError):
            run(work)
    assert desk.states() == {"ask-g": "unknown", "q": "unknown"}


def test_a_claim_of_a_process_that_lives_is_left_alone(desk: Desk) -> None:
    claim = claimed(desk)
    assert run(desk.ledger.recover()) == Recovered()
    assert run(desk.ledger.recover("th")) == Recovered()
    assert desk.states() == {"ask-g": "claimed", "q": "claimed"}
    run(desk.ledger.record(claim, "g", "ok"))
    run(desk.ledger.record(claim, "s", "error"))
    assert run(desk.ledger.close(claim)) == []
    batch = run(desk.ledger.batch("th", "t1"))
    assert batch is not None
    assert (batch.state, batch.outcomes, batch.claimed_by) == ("done", {"s": "error"}, "t2")


def test_an_outcome_is_kept_once(desk: Desk) -> None:
    claim = claimed(desk)
    for id in ("g", "s"):
        run(desk.ledger.record(claim, id, "ok"))
        with pytest.raises(LedgerError):
            run(desk.ledger.record(claim, id, "error"))
    with pytest.raises(LedgerError):
        run(desk.ledger.record(claim, "other", "ok"))
    run(desk.ledger.close(claim))
    with pytest.raises(ClaimLostError):
        run(desk.ledger.close(claim))
    assert run(desk.ledger.records("th"))[0].outcome == "ok"


def test_only_a_turn_that_asked_can_be_claimed(desk: Desk) -> None:
    desk.ask(question("q"))
    with pytest.raises(UnknownBatchError):
        desk.go_on("th", "t2")
    with pytest.raises(UnknownBatchError):
        desk.go_on("other", "t1")


def test_asks_of_a_run_that_was_never_saved_are_given_up(desk: Desk) -> None:
    (kept,) = desk.ask(question("kept"), turn="t1")
    (orphan,) = desk.ask(gate(call()), turn="t2")
    found = run(desk.ledger.recover("th", holding=True, pending=["kept"]))
    assert found.given_up == ("ask-c1",)
    with pytest.raises(GivenUpAskError):
        desk.resume(yes(orphan))
    desk.resume(yes(kept, reply="x"))
    assert desk.ran == []


def test_what_is_about_one_thread_needs_the_thread(desk: Desk) -> None:
    with pytest.raises(ValueError):
        run(desk.ledger.recover(holding=True))
    with pytest.raises(ValueError):
        run(desk.ledger.recover(pending=[]))


def test_an_unknown_outcome_is_a_result_that_says_so() -> None:
    result = unknown_result(call("g"))
    assert (result.tool_call_id, result.outcome, result.error_code) == ("g", "error", OUTCOME_UNKNOWN)
    assert result.error_text is not None and result.error_text.startswith("It is not known whether this call ran")


def test_calls_that_ran_to_their_end_are_told_from_those_of_which_nobody_knows(desk: Desk) -> None:
    asks = desk.ask(
        gate(call("g", index=1)), gate(call("d")), question("q"), held=[call("s", "look"), call("u", "look")]
    )
    yes_g, no_d, said = yes(asks[0]), yes(asks[1], status="declined"), yes(asks[2], reply="x")
    run(desk.ledger.answer("th", [yes_g, no_d, said], owner="ann"))
    claim = run(desk.ledger.claim("th", "t1", claimed_by="t2"))

    def calls() -> tuple[list[str], list[str]]:
        ended = run(desk.ledger.store.read(lambda book: claiming.ended_calls(book, "th")))
        unknown = run(desk.ledger.store.read(lambda book: claiming.unknown_calls(book, "th")))
        return [each.call_id for each in ended], [each.call_id for each in unknown]

    assert calls() == ([], [])
    run(desk.ledger.record(claim, "s", "error"))
    run(desk.ledger.record(claim, "g", "ok"))
    assert calls() == (["g", "s"], [])
    run(desk.ledger.recover("th", holding=True))
    assert calls() == (["g", "s"], ["u"])
    result = claiming.lost_result(call("g"))
    assert (result.tool_call_id, result.outcome, result.error_code) == ("g", "error", OUTCOME_UNKNOWN)
    assert result.error_text is not None and result.error_text.startswith("This call ran")


class Stop(Exception):
    pass


def test_an_error_inside_a_transaction_leaves_nothing(store: LedgerStore, desk: Desk) -> None:
    ask, _ = desk.ask(gate(call()), question("q"))
    run(desk.ledger.allow(tool="t", owner="ann"))
    before, policy = desk.everything(), desk.ledger.policy

    def work(book: Book) -> None:
        issuing.issue(book, policy, thread_id="th", turn_id="t9", asks=[question("new")])
        answering.answer(book, policy, "th", [yes(ask)], owner="ann")
        standing.allow(book, policy, tool="t2", owner="ann")
        for rule in book.rules("ann"):
            book.drop_rule(rule.rule_id)
        assert book.spend("th", b"x")
        assert not book.spend("th", b"x")
        raise Stop

    for _ in range(2):
        with pytest.raises(Stop):
            run(store.transact(work))
    assert desk.everything() == before
    assert [rule.tool for rule in run(desk.ledger.rules(owner="ann"))] == ["t"]


# In the transaction in which a turn begins


async def began(path: Path, dies: bool) -> tuple[Thread | None, dict[str, str], Recovered]:
    """A turn begins and claims; what is there afterwards."""
    ask = AgPausedAsk(ask_id="ask-c1", kind="approval", tool_call_id="c1")
    async with SQLiteThreadStore(path) as threads:
        store = SQLiteLedgerStore(threads)
        ledger = Desk(store).ledger
        await threads.put(Thread(thread_id="th", pending=Pending(asks=(ask,)), revision=1))
        (issued,) = await ledger.issue(thread_id="th", turn_id="t1", asks=[gate(call())])
        await ledger.answer("th", [yes(issued)])
        lease = await threads.acquire("th")
        claims: list[Claim] = []

        def work(book: Book) -> None:
            claims[:] = [claiming.claim(book, ledger.policy, "th", "t1", claimed_by="t2")]
            if dies:
                raise RuntimeError("the disk is on fire")

        with contextlib.suppress(RuntimeError):
            await lease.begin("t2", Thread(thread_id="th", revision=1), also=store.within(work))
        await lease.release()
        thread = await threads.load("th")
        found = await ledger.recover("th", holding=True)
        return thread, {record.ask_id: record.state for record in await ledger.records("th")}, found


def test_a_claim_and_the_beginning_of_its_turn_are_one(tmp_path: Path) -> None:
    thread, states, found = run(began(tmp_path / "threads.db", dies=False))
    # The run was never saved: the pause is spent, and what was claimed is unknown.
    assert thread is not None and thread.pending == Pending()
    assert states == {"ask-c1": "unknown"}
    assert [lost.turn_id for lost in found.lost] == ["t1"]


def test_where_the_turn_cannot_begin_nothing_is_claimed(tmp_path: Path) -> None:
    thread, states, found = run(began(tmp_path / "threads.db", dies=True))
    assert thread is not None and [ask.ask_id for ask in thread.pending.asks] == ["ask-c1"]
    assert (states, found) == ({"ask-c1": "resolved"}, Recovered())


def test_the_records_of_a_thread_go_with_it(tmp_path: Path) -> None:
    async def work() -> tuple[bool, int, int]:
        async with SQLiteThreadStore(tmp_path / "threads.db") as threads:
            ledger = Desk(SQLiteLedgerStore(threads)).ledger
            await threads.put(Thread(thread_id="th"))
            await ledger.issue(thread_id="th", turn_id="t1", asks=[gate(call())], owner="ann")
            await ledger.allow(tool="x", owner="ann", thread_id="th")
            await ledger.allow(tool="x", owner="ann")
            deleted = await threads.delete("th")
            return deleted, len(await ledger.records("th")), len(await ledger.rules(owner="ann"))

    assert run(work()) == (True, 0, 1)
