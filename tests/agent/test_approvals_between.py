"""What may come between an agent and its ledger: somebody who acts on the asks meanwhile, strays, cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from agjson.agents import Invocation, MemoryThreadStore, ThreadLease
from agjson.approvals import (
    GivenUpAskError,
    Grant,
    Keys,
    Ledger,
    LedgerError,
    MemoryLedgerStore,
    Policy,
    SpentAskError,
    without_tokens,
)
from agjson.types import (
    AgChoice,
    AgGrantMode,
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    HitlAsk,
    PausedOutcome,
    ResumeInput,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    TurnDone,
)
from agjson.wire import answer_to
from tests.approvals.desk import Clock
from tests.support.scripted import ScriptAgent, Session, calls, said, start, terminal, text, types


class Between(MemoryLedgerStore):
    """Does something just before a turn begins."""

    def __init__(self) -> None:
        super().__init__()
        self.then: Callable[[], Awaitable[object]] | None = None

    async def begin(self, lease: Any, turn_id: Any, thread: Any, work: Any) -> Any:
        then, self.then = self.then, None
        if then is not None:
            await then()
        return await super().begin(lease, turn_id, thread, work)


def ledger(store: MemoryLedgerStore | None = None, **fields: Any) -> Ledger:
    policy = Policy(**{"keys": Keys({"k": b"k" * 32}), **fields})
    return Ledger(MemoryLedgerStore() if store is None else store, policy)


def asked(events: list[Any]) -> list[AgPausedAsk]:
    end = events[-1]
    assert isinstance(end, TurnDone) and isinstance(end.outcome, PausedOutcome), types(events)
    return list(end.outcome.asks)


def resume(*answers: AgHitlAnswer, turn: str = "r") -> ResumeInput:
    return ResumeInput(thread_id="th", turn_id=turn, answers=list(answers))


class Mailer:
    """Asks for one call, and runs what is decided; it makes of the arguments what it likes."""

    def __init__(self, **ask: Any) -> None:
        self.ask = ask
        self.ran: list[str] = []

    def __call__(self, run: Invocation) -> Iterable[Any]:
        if not run.decisions:
            yield from calls("c1")[:-1]
            yield {"do": "message_end"}
            yield {"do": "hitl_ask", "kind": "approval", "ask_id": "a1", "tool_call_id": "c1", **self.ask}
            yield {"do": "turn_paused"}
            return
        for call in [each.call for each in run.decisions if each.runs and each.response is None]:
            assert call is not None and isinstance(call.arguments, dict)
            self.ran.append(call.call_id)
            call.arguments["of"] = "somebody else"
            yield {"do": "tool_done", "tool_call_id": call.call_id, "message_id": f"{call.call_id}:result"}
        yield from text("done", id=run.turn_id)


def inputs(client: Session) -> list[Any]:
    """The arguments of the calls of a thread."""
    blocks = [block for message in client.thread().messages for block in message.content]
    return [block.input for block in blocks if isinstance(block, ToolCallBlock)]


def session(script: Any, approvals: Ledger, **settings: Any) -> Session:
    return Session(ScriptAgent(script, client_tools=set(), approvals=approvals, **settings))


@pytest.mark.parametrize("who", ["gives it up", "claims it"])
async def test_nothing_runs_where_somebody_acts_on_the_asks_before_the_turn_begins(who: str) -> None:
    mailer, store = Mailer(), Between()
    approvals = ledger(store)
    client = session(mailer, approvals)
    (ask,) = asked(await client.run(start()))
    # It is answered past the agent, and taken up by a resume that brings nothing.
    await approvals.answer("th", [answer_to(ask)])
    if who == "gives it up":
        store.then = lambda: approvals.give_up("th")
    else:
        store.then = lambda: approvals.claim("th", "t", claimed_by="somebody")
    with pytest.raises(LedgerError, match="meanwhile"):
        await client.run(resume())
    assert mailer.ran == []
    assert [each.ask_id for each in client.thread().pending.asks] == ["a1"]


async def test_nothing_is_told_of_an_expiry_that_the_clock_takes_back() -> None:
    mailer, store, clock = Mailer(), Between(), Clock()
    approvals = ledger(store, clock=clock, lasts=timedelta(seconds=10))
    client = session(mailer, approvals)
    asked(await client.run(start()))
    clock.now += timedelta(seconds=20)

    async def back() -> None:
        clock.now -= timedelta(seconds=20)

    store.then = back
    with pytest.raises(LedgerError, match="meanwhile"):
        await client.run(resume())
    (record,) = await approvals.records("th")
    assert record.state == "open"


async def test_an_ask_that_the_host_gave_up_pauses_its_thread_no_more() -> None:
    mailer = Mailer()
    approvals = ledger()
    client = session(mailer, approvals)
    (ask,) = asked(await client.run(start()))
    await approvals.give_up("th")
    with pytest.raises(GivenUpAskError):
        await client.run(resume(answer_to(ask)))
    client.streams.pop()
    (again,) = asked(await client.run(start(said("again", "u2"), turn="t2")))
    assert (again.ask_id, mailer.ran) == ("a1#2", [])


async def test_a_claim_whose_turn_could_not_begin_pauses_its_thread_no_more() -> None:
    class Failing(MemoryThreadStore):
        broken = False

        async def acquire(self, thread_id: str) -> ThreadLease:
            lease = await super().acquire(thread_id)
            if self.broken:
                self.broken = False

                async def begin(*args: Any, **options: Any) -> None:
                    raise OSError("the disk is full")

                lease.begin = begin  # type: ignore[method-assign]
            return lease

    mailer, threads = Mailer(), Failing()
    client = session(mailer, ledger(), store=threads)
    (ask,) = asked(await client.run(start()))
    threads.broken = True
    with pytest.raises(OSError, match="disk"):
        await client.run(resume(answer_to(ask)))
    client.streams.pop()
    with pytest.raises(SpentAskError):
        await client.run(resume(answer_to(ask), turn="r2"))
    client.streams.pop()
    events = await client.run(start(said("what now?", "u2"), turn="t2"))
    (done,) = [event for event in events if isinstance(event, ToolDone)]
    assert (done.tool_call_id, done.error_code) == ("c1", "outcome_unknown")
    assert mailer.ran == []


async def test_an_ask_that_a_turn_does_not_pause_for_holds_up_none_that_it_does() -> None:
    ran: list[str] = []

    def script(run: Invocation) -> Iterable[Any]:
        if run.decisions:
            for each in run.decisions:
                assert each.call is not None and each.runs
                ran.append(each.call.call_id)
                yield {"do": "tool_done", "tool_call_id": each.call.call_id, "message_id": "m-r"}
            yield from text("done", id=run.turn_id)
            return
        yield from calls("c1", "c2")[:-1]
        yield {"do": "message_end"}
        yield {"do": "subagent_start", "turn_id": "inner"}
        yield {
            "do": "hitl_ask",
            "kind": "approval",
            "ask_id": "stray",
            "tool_call_id": "c2",
            "turn_id": "inner",
        }
        yield {"do": "turn_done", "turn_id": "inner"}
        yield {"do": "hitl_ask", "kind": "approval", "ask_id": "a1", "tool_call_id": "c1"}
        yield {"do": "turn_paused"}

    approvals = ledger()
    client = session(script, approvals)
    events = await client.run(start())
    (ask,) = asked(events)
    (stray,) = [event for event in events if isinstance(event, HitlAsk) and event.ask_id == "stray"]
    with pytest.raises(GivenUpAskError):
        await client.run(resume(AgHitlAnswer(ask_id="stray", status="resolved", token=stray.token)))
    await client.run(resume(answer_to(ask)))
    assert ran == ["c1"]
    assert {record.ask_id: record.state for record in await approvals.records("th")} == {
        "stray": "given_up",
        "a1": "done",
    }


@pytest.mark.parametrize("last", [{"more": True}, {"outcome": "input_required"}], ids=["partial", "asks for more"])
async def test_a_call_that_was_lost_after_a_part_of_its_result_is_told_as_unknown_once(last: dict[str, Any]) -> None:
    def script(run: Invocation) -> Iterable[Any]:
        if run.decisions:
            yield {"do": "tool_done", "tool_call_id": "c1", "message_id": "c1:result", **last}
            yield RuntimeError("the process ends here")
        elif run.turn_id == "t":
            yield from Mailer()(run)
        else:
            yield from text("well", id=run.turn_id)

    client = session(script, ledger())
    (ask,) = asked(await client.run(start()))
    assert terminal(await client.run(resume(answer_to(ask))))["type"] == "turn.error"
    told: list[Any] = []
    for turn in ("t2", "t3"):
        events = await client.run(start(said("and now?", f"u-{turn}"), turn=turn))
        told.append([(event.tool_call_id, event.error_code) for event in events if isinstance(event, ToolDone)])
    assert told == [[("c1", "outcome_unknown")], []]
    client.streams = [[without_tokens(event) for event in stream] for stream in client.streams]
    client.verify()


async def test_results_that_come_in_a_snapshot_are_known() -> None:
    def script(run: Invocation) -> Iterable[Any]:
        if not run.decisions:
            yield from Mailer()(run)
            return
        result = ToolResultBlock(tool_call_id="c1", content=[], outcome="error")
        message = AgMessage(id="m-result", role="tool", content=[result], turn_id=run.turn_id)
        yield {"do": "messages_snapshot", "messages": [*run.thread.messages, message]}

    approvals = ledger()
    client = session(script, approvals)
    (ask,) = asked(await client.run(start()))
    await client.run(resume(answer_to(ask)))
    (record,) = await approvals.records("th")
    assert (record.state, record.outcome) == ("done", "error")


# What a tool makes of its arguments, and what a person says in its place


async def test_a_tool_that_changes_its_arguments_changes_nothing_else() -> None:
    modes = [AgGrantMode(id="always")]
    approvals = ledger(grants={"always": Grant(arguments="exact")})
    client = session(Mailer(grant_modes=modes), approvals)
    (ask,) = asked(await client.run(start()))
    await client.run(resume(answer_to(ask, grant_mode_id="always")))
    (rule,), (record,) = await approvals.rules(thread_id="th"), await approvals.records("th")
    assert rule.arguments == {"of": "c1"}
    assert record.call is not None and record.call.arguments == {"of": "c1"}
    inputs = [
        block.input for message in client.thread().messages for block in message.content if block.type == "tool-call"
    ]
    assert inputs == [{"of": "c1"}]


@pytest.mark.parametrize("kept", [True, False], ids=["ledger", "no ledger"])
async def test_a_tool_that_changes_its_arguments_does_not_change_the_thread(kept: bool) -> None:
    mailer = Mailer()
    client = Session(ScriptAgent(mailer, client_tools=set(), approvals=ledger() if kept else None))
    (ask,) = asked(await client.run(start()))
    await client.run(resume(answer_to(ask)))
    inputs = [
        block.input for message in client.thread().messages for block in message.content if block.type == "tool-call"
    ]
    assert (mailer.ran, inputs) == (["c1"], [{"of": "c1"}])


async def test_who_answers_in_the_place_of_a_tool_allows_it_nothing_for_later() -> None:
    approvals = ledger(grants={"always": Grant(arguments="any")})
    mailer = Mailer(
        grant_modes=[AgGrantMode(id="always")],
        choices=[AgChoice(id="approve", label="Approve"), AgChoice(id="respond", label="Respond")],
    )
    client = session(mailer, approvals)
    (ask,) = asked(await client.run(start()))
    await client.run(resume(answer_to(ask, reply={"response": "by hand"}, grant_mode_id="always")))
    assert await approvals.rules(thread_id="th") == []


@pytest.mark.parametrize(("asked_for", "sent"), [(1, 1.0), (2**60, float(2**60)), (0, -0.0)])
async def test_equal_numbers_are_no_edit_and_the_framework_gets_those_of_the_call(asked_for: int, sent: float) -> None:
    def script(run: Invocation) -> Iterable[Any]:
        if run.answers:
            yield from text("done", id=run.turn_id)
            return
        yield {"do": "tool_call", "tool_call_id": "c1", "name": "pay", "input": {"sum": asked_for}}
        yield {"do": "hitl_ask", "kind": "approval", "ask_id": "a1", "tool_call_id": "c1"}
        yield {"do": "turn_paused"}

    client = session(script, ledger())
    (ask,) = asked(await client.run(start()))
    await client.run(resume(answer_to(ask, reply={"arguments": {"sum": sent}})))
    (answer,) = client.agent.seen[-1].answers  # type: ignore[attr-defined]
    assert repr(answer.reply) == repr({"arguments": {"sum": asked_for}})


# Cancellations


class Slow(MemoryLedgerStore):
    """Says when a transaction is done, and takes its time to come back."""

    suspends = True

    def __init__(self) -> None:
        super().__init__()
        self.on_done: Callable[[], object] | None = None

    async def transact(self, work: Any) -> Any:
        done = await super().transact(work)
        if self.on_done is not None:
            self.on_done()
        await asyncio.sleep(0.01)
        return done


class Logged(MemoryThreadStore):
    """Keeps the numbers of the events that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[int] = []

    async def acquire(self, thread_id: str) -> ThreadLease:
        lease = await super().acquire(thread_id)
        save = lease.save

        async def append(events: Any) -> None:
            self.noted += [event.seq for event in events]

        async def saved(thread: Any, events: Any) -> None:
            await append(events)
            await save(thread, events)

        lease.logs = True  # type: ignore[misc]
        lease.append = append  # type: ignore[method-assign]
        lease.save = saved  # type: ignore[method-assign]
        return lease


@pytest.mark.parametrize("transaction", [1, 2])
async def test_a_run_that_is_cancelled_while_the_ledger_learns_of_something_is_aborted(transaction: int) -> None:
    """First the ask, then the outcome of its call: both are known, and the log has no gap."""
    store, threads, mailer = Slow(), Logged(), Mailer()
    approvals = ledger(store)
    client = session(mailer, approvals, store=threads)
    ag_input: Any = start()
    if transaction == 2:
        (ask,) = asked(await client.run(ag_input))
        ag_input = resume(answer_to(ask))
    threads.noted.clear()
    task = asyncio.ensure_future(client.run(ag_input))
    wanted = "open" if transaction == 1 else "done"

    def cancel() -> None:
        records: Any = store._book.asks("th")  # pyright: ignore[reportPrivateUsage]
        if any(record.state == wanted for record in records):
            store.on_done = None
            task.cancel()

    store.on_done = cancel
    with pytest.raises(asyncio.CancelledError):
        await task
    turn = client.thread().result.turns[-1]
    assert turn.outcome is not None and turn.outcome.type == "aborted"
    assert threads.noted == list(range(len(threads.noted)))
    (record,) = await approvals.records("th")
    assert (record.state, record.outcome) == (wanted, None if transaction == 1 else "ok")
    assert terminal(await client.run(start(said("again", "u2"), turn="t2")))["type"] == "turn.done"
