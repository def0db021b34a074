"""What people have allowed runs once, and nothing before: answers, batches, crashes, restarts (spec §7, §13.1)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agjson.agents import Agent, ThreadStore
from agjson.approvals import OUTCOME_UNKNOWN, LedgerStore, SpentAskError, WrongReplyError
from agjson.errors import AgJSONError
from agjson.testing.contract._stage import THREAD, Call, Stage, look, send, stages
from agjson.testing.contract._values import as_json, plain_result
from agjson.testing.contract.rule import rule
from agjson.testing.contract.subject import Subject
from agjson.types import AgHitlAnswer, AgInput, AgStreamEvent, TurnDone
from agjson.wire import answer_to

__all__: list[str] = []

_SPEC = "§7, §13.1"
_AT_ONCE = 6


class _Died(BaseException):
    """Ends a process in the middle of a tool."""


@rule("approval-once", _SPEC)
def once(subject: Subject) -> None:
    """A gated call waits for a yes, runs once with the arguments that were asked about, and the model gets its result.

    The ask names its call, and its token is with the client alone.
    """
    for stage in stages(subject, [send("ann")]):
        (ask,) = stage.ask()
        call = stage.calls()["ann"]
        stage.expect(ask.tool_call_id == call.tool_call_id, f"the ask names call {ask.tool_call_id!r}")
        stage.expect(ask.kind == "approval", f"the ask is of kind {ask.kind}")
        stored = as_json(plain_result(stage.thread().result)) + repr(stage.thread().pending) + repr(stage.records())
        stage.expect(str(ask.token) not in stored, "the token of the ask is stored")
        stage.expect_end(stage.resume(answer_to(ask)), "a yes")
        stage.expect_ran(send("ann"), after="a yes")
        results = [(result.outcome, as_json(result.content)) for result in stage.results(call.tool_call_id)]
        one = len(results) == 1 and results[0][0] == "ok" and "has run for ann" in results[0][1]
        stage.expect(one, f"the results of the call are {results}")
        stage.expect("has run for ann" in as_json(stage.scene.requests[-1]), "the model does not get the result")
        stage.expect([record.state for record in stage.records()] == ["done"], "the ledger does not know how it ended")


@rule("approval-twice-paused", _SPEC)
def twice_paused(subject: Subject) -> None:
    """A run that goes on from a yes pauses again for the next gated call, and runs nothing of the first one again."""
    for stage in stages(subject, [send("ann")], [look("oslo"), send("bob")] if _batches(subject) else [send("bob")]):
        (ann,) = stage.ask()
        (bob,) = stage.asks(stage.resume(answer_to(ann)))
        stage.expect_ran(send("ann"), after="the first yes")
        stage.expect_end(stage.resume(answer_to(bob)), "the second yes")
        more = [look("oslo")] if _batches(subject) else []
        stage.expect_ran(send("ann"), send("bob"), *more, after="both")


def _batches(subject: Subject) -> bool:
    return subject.gating is not None and subject.gating.batches


@rule("approval-no", _SPEC)
def no(subject: Subject) -> None:
    """What is declined, cancelled or answered with false does not run, and the model learns that it did not."""
    replies: dict[str, dict[str, Any]] = {
        "declined": {"status": "declined", "reason": "contract-reason"},
        "cancelled": {"status": "cancelled"},
        "answered with false": {"status": "resolved", "reply": False},
    }
    for how, reply in replies.items():
        for stage in stages(subject, [send("ann")]):
            (ask,) = stage.ask()
            stage.expect_end(stage.resume(answer_to(ask, **reply)), f"a call was {how}")
            stage.expect_ran(after=f"a call was {how}")
            stage.expect_refused("ann", f"a call was {how}")
            if "reason" in reply:
                stage.expect(reply["reason"] in as_json(stage.scene.requests[-1]), "the model does not get the reason")


@rule("approval-partial", _SPEC)
def partial_batch(subject: Subject) -> None:
    """Until each ask of a turn has its answer nothing runs and the model is not called; the others are asked again."""
    for stage in stages(subject, [send("ann"), look("oslo"), send("bob")]):
        ann, bob = stage.ask()
        before = len(stage.scene.requests)
        (again,) = stage.asks(stage.resume(answer_to(ann)))
        stage.expect_ran(after="one of two answers")
        stage.expect(len(stage.scene.requests) == before, "after one of two answers the model is called")
        stage.expect((again.ask_id, again.token) == (bob.ask_id, bob.token), "the other ask comes back as another one")
        stage.expect_end(stage.resume(answer_to(again, "declined")), "both answers")
        stage.expect_ran(send("ann"), look("oslo"), after="a yes, a no, and a safe call between them")


@rule("approval-siblings", _SPEC)
def siblings(subject: Subject) -> None:
    """Safe calls beside a gated one wait for its decision and run once with it, in the order of the model."""
    for status in ("resolved", "declined", "cancelled"):
        for stage in stages(subject, [look("oslo"), send("ann"), look("rome")]):
            (ask,) = stage.ask()
            stage.expect_ran(after="the ask")
            order: list[str] = []
            stage.scene.before = order.append
            stage.expect_end(stage.resume(answer_to(ask, status)), f"an answer {status}")
            allowed = [send("ann")] if status == "resolved" else []
            stage.expect_ran(look("oslo"), look("rome"), *allowed, after=f"an answer {status}")
            wanted = [tool for tool, _ in (look("oslo"), *allowed, look("rome"))]
            stage.expect(order == wanted, f"the calls run in the order {order}, not {wanted}")


@rule("approval-claimed-first", _SPEC)
def claimed_first(subject: Subject) -> None:
    """When a tool runs, the right to run it has been taken already: whoever comes after a crash finds it used."""
    calls = [send("ann"), look("oslo")] if _batches(subject) else [send("ann")]
    for stage in stages(subject, calls):
        (ask,) = stage.ask()
        states: list[str] = []
        stage.scene.before = lambda tool, stage=stage, states=states: states.append(_state_now(stage, tool))
        stage.resume(answer_to(ask))
        stage.expect(
            states[:1] == [f"{send('')[0]} claimed"] and len(states) == len(calls),
            f"while the tools run the ask is {states}",
        )


def _state_now(stage: Stage, tool: str) -> str:
    """The state of the ask, read while a run goes on: the ledger is in memory, so that nothing waits."""
    try:
        stage.scene.approvals.records(THREAD).send(None)
    except StopIteration as end:
        return f"{tool} {end.value[0].state}"
    raise AssertionError("the ledger in memory waits for something")


@rule("approval-at-once", _SPEC)
def at_once(subject: Subject) -> None:
    """Of answers that come at once, to one agent or to two on the same stores, one counts; the others are refused."""
    ways: list[tuple[str, Callable[[list[Agent], list[AgInput]], list[str]]]] = [
        ("on threads", _on_threads),
        ("on one loop", _on_one_loop),
    ]
    for way, run in ways:
        for stage in stages(subject, [send("ann")], ways=["run_sync"]):
            (ask,) = stage.ask()
            stage.cut = True
            agents = [stage.agent, stage.new_agent()]
            inputs: list[AgInput] = [stage.a_resume(answer_to(ask)) for _ in range(_AT_ONCE)]
            ends = run([agents[number % 2] for number in range(_AT_ONCE)], inputs)
            stage.expect_ran(send("ann"), after=f"{_AT_ONCE} answers at once, {way}")
            stage.expect(sorted(ends) == ["ended", *["refused"] * (_AT_ONCE - 1)], f"{way} the answers end as {ends}")
            stage.check_transcript()
            stage.refuse("a replayed answer", stage.a_resume(answer_to(ask)), SpentAskError)


def _on_threads(agents: list[Agent], inputs: list[AgInput]) -> list[str]:
    def one(agent: Agent, ag_input: AgInput) -> str:
        try:
            return _end_of(list(agent.run_sync(ag_input)))
        except AgJSONError:
            return "refused"

    with ThreadPoolExecutor(len(inputs)) as pool:
        return list(pool.map(one, agents, inputs))


def _on_one_loop(agents: list[Agent], inputs: list[AgInput]) -> list[str]:
    async def one(agent: Agent, ag_input: AgInput) -> str:
        try:
            return _end_of([event async for event in agent.run(ag_input)])
        except AgJSONError:
            return "refused"

    async def together() -> list[str]:
        return await asyncio.gather(*map(one, agents, inputs))

    return asyncio.run(together())


def _end_of(events: list[AgStreamEvent]) -> str:
    return "ended" if events and isinstance(events[-1], TurnDone) else f"{events[-1:]}"


@rule("approval-crash", _SPEC)
def crash(subject: Subject) -> None:
    """A run that ends in the middle of a tool, before or after its effect, is never made up for by a second run.

    The tool fails, its task is cancelled, or its process dies. Where the process dies, so that nobody knows how the
    call ended, the next turn says so with the code ``outcome_unknown``.
    """
    for way, (error, fail) in _CRASHES.items():
        if error is _Died and subject.gating is not None and not subject.gating.deaths:
            continue
        for place in ("before", "after"):
            for stage in stages(subject, [send("ann")]):
                (ask,) = stage.ask()
                told = f"{way} {place} the effect"
                setattr(stage.scene, place, fail)
                stage.crash(stage.a_resume(answer_to(ask)), error)
                setattr(stage.scene, place, None)
                ran = list(stage.scene.ran.elements())
                if way != "a cancelled task":
                    stage.expect_ran(*([send("ann")] if place == "after" else []), after=told)
                _goes_on_without(stage, answer_to(ask), ran, told, unknown=error is _Died)


def _fails(tool: str) -> None:
    raise RuntimeError("the tool of the contract suite fails")


def _is_cancelled(tool: str) -> None:
    raise asyncio.CancelledError


def _dies(tool: str) -> None:
    raise _Died


def _cancels(tool: str) -> None:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is None:
        raise asyncio.CancelledError
    task.cancel()


_CRASHES: dict[str, tuple[type[BaseException], Callable[[str], None]]] = {
    "a failure": (RuntimeError, _fails),
    "a cancellation": (asyncio.CancelledError, _is_cancelled),
    "a cancelled task": (asyncio.CancelledError, _cancels),
    "death": (_Died, _dies),
}


def _goes_on_without(stage: Stage, answer: AgHitlAnswer, ran: list[Call], told: str, *, unknown: bool) -> None:
    """After a crash a replay is refused, the next turn is sound, and the call has one result and ran no second time."""
    stage.expect(ran in ([], [send("ann")]), f"{told}: the tools have run {ran}")
    stage.refuse(f"a replayed answer after {told}", stage.a_resume(answer), SpentAskError)
    stage.expect_end(stage.start("And?"), f"a start after {told}")
    stage.expect_ran(*ran, after=f"{told}, and a start")
    results = [(result.outcome, result.error_code) for result in stage.results(stage.calls()["ann"].tool_call_id)]
    stage.expect(len(results) == 1, f"after {told}, and a start, the call has the results {results}")
    good = results == [("error", OUTCOME_UNKNOWN)] if unknown else ran or results[0][0] != "ok"
    stage.expect(good, f"after {told}, and a start, the call has the result {results[0]}")
    stage.refuse(f"a replayed answer long after {told}", stage.a_resume(answer), SpentAskError)


@rule("approval-cut-off", "§7, §8 item 17, §13.1")
def cut_off(subject: Subject) -> None:
    """A reader that stops after any event of the run that a yes has set off makes nothing run twice or be forgotten."""
    for length in range(1, 30):
        reached = False
        for stage in stages(subject, [send("ann")]):
            (ask,) = stage.ask()
            seen = stage.cut_short(stage.a_resume(answer_to(ask)), length)
            reached |= seen == length
            ran = list(stage.scene.ran.elements())
            known = any(record.state == "done" for record in stage.records())
            _goes_on_without(stage, answer_to(ask), ran, f"a stop after {seen} events", unknown=not known)
        if not reached:
            return


@rule("approval-restart", _SPEC)
def restart(subject: Subject) -> None:
    """An ask outlives its process: another agent on the same file takes the answer, once."""
    with tempfile.TemporaryDirectory() as folder:
        opened = _Opened(folder)
        calls = [send("ann"), look("oslo")] if _batches(subject) else [send("ann")]
        for stage in stages(subject, calls, stores=opened):
            try:
                (ask,) = stage.ask()
                opened.close()
                stage.restart()
                forged = stage.a_resume(answer_to(ask, reply="yes"))
                stage.refuse("a wrong answer after a restart", forged, WrongReplyError)
                stage.expect_end(stage.resume(answer_to(ask)), "a yes after a restart")
                stage.expect_ran(*calls, after="a yes after a restart")
                opened.close()
                stage.restart()
                stage.refuse("a replayed answer after a restart", stage.a_resume(answer_to(ask)), SpentAskError)
                stage.expect_end(stage.start("And?"), "a start after a restart")
                stage.expect_ran(*calls, after="a start after a restart")
                stage.check()
                stage.cut = True
            finally:
                opened.next()


class _Opened:
    """Stores on a file, which is opened anew by each call and is another one after `next`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._number = 0
        self._threads: Any = None

    def __call__(self) -> tuple[ThreadStore, LedgerStore]:
        from agjson.stores import SQLiteThreadStore
        from agjson.stores.ledger import SQLiteLedgerStore

        self._threads = SQLiteThreadStore(Path(self._folder) / f"{self._number}.db")
        return self._threads, SQLiteLedgerStore(self._threads)

    def close(self) -> None:
        """Close the file, as the end of a process does."""
        if self._threads is not None:
            asyncio.run(self._threads.aclose())
            self._threads = None

    def next(self) -> None:
        """Close the file, and go on with another one."""
        self.close()
        self._number += 1
