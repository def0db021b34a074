"""Runs that began and were never saved: what is left of the thread, and of what the framework needs to continue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agjson.agents import (
    Invocation,
    MemoryContinuations,
    MemoryThreadStore,
    Thread,
    ThreadLease,
    UnknownAskError,
    UnknownContinuationError,
)
from agjson.types import AbortedOutcome, AgHitlAnswer, AgStreamEvent, ResumeInput
from tests.support.scripted import ScriptAgent, Session, said, start, terminal, text, until


class _Store(MemoryThreadStore):
    """A store that really waits, and whose next `begin` or `save` fails on request."""

    suspends = True

    def __init__(self) -> None:
        super().__init__()
        self.failing = ""
        self.calls: list[str] = []
        self.blocking = ""
        self.blocked = False
        self.let_go = asyncio.Event()

    async def acquire(self, thread_id: str) -> ThreadLease:
        await self._waited("acquire")
        inner = await super().acquire(thread_id)
        store = self

        class Lease(ThreadLease):
            thread = inner.thread

            async def begin(self, turn_id: str, thread: Thread, *, also: Any = None) -> None:
                await store._waited("begin")
                await inner.begin(turn_id, thread)

            async def append(self, events: Sequence[AgStreamEvent]) -> None:
                await store._waited("append")

            async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
                await store._waited("save")
                await inner.save(thread, events)

            async def release(self) -> None:
                await store._waited("release")
                await inner.release()

        return Lease()

    async def _waited(self, name: str) -> None:
        await asyncio.sleep(0.001)
        if name == self.blocking:
            self.blocking, self.blocked = "", True
            await self.let_go.wait()
        if name == self.failing:
            self.failing = ""
            raise OSError("disk full")
        self.calls.append(name)


class _Pausing(ScriptAgent):
    """Asks, keeping a value; with an answer it goes on."""

    def __init__(self, value: Any = "state", **settings: Any) -> None:
        super().__init__(self._script, **settings)
        self.value = value
        self.continued: list[Any] = []

    def _script(self, run: Invocation) -> list[Any]:
        if run.answers:
            self.continued.append(run.continuation)
            return text("done")
        ask = {"do": "hitl_ask", "ask_id": f"ask-{run.turn_id}", "kind": "text", "request_state": run.keep(self.value)}
        return [ask, {"do": "turn_paused"}]


def _answer(session: Session, turn: str = "r") -> ResumeInput:
    (ask,) = session.thread().pending.open_asks
    answer = AgHitlAnswer(ask_id=ask.ask_id, status="resolved", reply="yes", request_state=ask.request_state)
    return ResumeInput(thread_id="th", turn_id=turn, answers=[answer])


def _session(store: MemoryThreadStore, value: Any = "state") -> tuple[_Pausing, Session]:
    agent = _Pausing(value, store=store, continuations=MemoryContinuations())
    return agent, Session(agent)


async def test_a_resume_that_cannot_be_saved_is_not_run_again_and_the_thread_goes_on() -> None:
    store = _Store()
    agent, session = _session(store)
    await session.run(start())
    answer = _answer(session)
    store.failing = "save"
    end = terminal(await session.run(answer))
    assert (end["type"], end["code"]) == ("turn.error", "store_failed")
    thread = session.thread()
    assert thread.pending.asks == ()
    assert thread.result.turns[-1].outcome == AbortedOutcome(reason="interrupted")
    with pytest.raises(UnknownAskError):
        await session.run(answer)
    assert agent.continued == ["state"]
    assert terminal(await session.run(start(said("go on", "u2"), turn="t2")))["outcome"]["type"] == "paused"


@pytest.mark.parametrize("value", ["state", None])
async def test_a_run_that_cannot_begin_leaves_the_pause_as_it_was(value: Any) -> None:
    store = _Store()
    agent, session = _session(store, value)
    await session.run(start())
    before = session.thread()
    store.failing = "begin"
    with pytest.raises(OSError, match="disk full"):
        await session.run(_answer(session))
    assert session.thread() is before
    assert terminal(await session.run(_answer(session)))["outcome"] == {"type": "success"}
    assert agent.continued == [value]


async def test_a_pause_that_cannot_be_saved_leaves_no_continuation_behind() -> None:
    store = _Store()
    agent, session = _session(store)
    store.failing = "save"
    assert terminal(await session.run(start()))["type"] == "turn.error"
    assert isinstance(agent.continuations, MemoryContinuations)
    assert len(agent.continuations) == 0


async def test_a_pause_whose_continuation_cannot_be_kept_does_not_claim_that_it_can_go_on() -> None:
    class Full(MemoryContinuations):
        async def put(self, thread_id: str, request_state: str, value: Any) -> None:
            raise OSError("no room")

    agent = _Pausing(store=_Store(), continuations=Full())
    session = Session(agent)
    end = terminal(await session.run(start()))
    assert (end["type"], end["code"], end["message"]) == ("turn.error", "store_failed", "OSError: no room")
    assert session.thread().pending.asks == ()


async def test_a_continuation_that_is_gone_refuses_the_answer_before_anything_is_noted() -> None:
    store = _Store()
    agent, session = _session(store)
    await session.run(start())
    agent.continuations = MemoryContinuations()
    store.calls.clear()
    before = session.thread()
    with pytest.raises(UnknownContinuationError):
        await session.run(_answer(session))
    assert store.calls == ["acquire", "release"]
    assert session.thread() is before


async def test_a_partial_answer_that_cannot_be_saved_is_still_waited_for() -> None:
    def script(run: Invocation) -> list[Any]:
        if run.answers:
            return text("done")
        asks = [{"do": "hitl_ask", "ask_id": id, "kind": "text"} for id in ("a", "b")]
        return [*asks, {"do": "turn_paused"}]

    store = _Store()
    session = Session(ScriptAgent(script, store=store))
    await session.run(start())

    def answers(*ids: str) -> ResumeInput:
        given = [AgHitlAnswer(ask_id=id, status="resolved", reply="yes") for id in ids]
        return ResumeInput(thread_id="th", turn_id="r", answers=given)

    store.failing = "save"
    assert terminal(await session.run(answers("a")))["type"] == "turn.error"
    assert [ask.ask_id for ask in session.thread().pending.open_asks] == ["a", "b"]
    end = terminal(await session.run(answers("a")))
    assert [ask["askId"] for ask in end["outcome"]["asks"]] == ["b"]
    assert terminal(await session.run(answers("b")))["outcome"] == {"type": "success"}


@pytest.mark.parametrize("at", ["acquire", "begin", "append", "save", "release"])
async def test_a_cancellation_while_the_store_works_loses_neither_the_thread_nor_the_right_to_run_it(at: str) -> None:
    store = _Store()
    store.blocking = at
    _, session = _session(store)
    task = asyncio.create_task(session.run(start()))
    await until(lambda: store.blocked)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.005)
    store.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    thread = await store.load("th")
    outcomes = [] if thread is None else [turn.outcome and turn.outcome.type for turn in thread.result.turns]
    assert (
        outcomes
        == {
            "acquire": [],
            # The turn had begun, so it is not nothing that is left.
            "begin": ["aborted"],
            "append": ["aborted"],
            "save": ["paused"],
            "release": ["paused"],
        }[at]
    )
    await (await store.acquire("th")).release()


async def test_a_cancel_scope_that_cancels_again_and_again_does_not_keep_the_thread_from_being_saved() -> None:
    store = _Store()

    def script(run: Invocation) -> list[Any]:
        return [*text("a b")[:3], asyncio.sleep(60)]

    session = Session(ScriptAgent(script, store=store))
    with anyio.CancelScope() as scope:
        async for event in session.agent.run(start()):
            if event.type == "text.delta":
                scope.cancel()
    assert scope.cancelled_caught
    thread = session.thread()
    assert thread.result.turns[-1].outcome == AbortedOutcome(reason="cancelled")
    await (await store.acquire("th")).release()


@pytest.mark.parametrize("sync", [False, True])
def test_a_right_that_cannot_be_given_up_takes_no_end_from_the_reader(
    sync: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = _Store()
    _, session = _session(store)
    store.failing = "release"
    events = session.run_sync(start()) if sync else asyncio.run(session.run(start()))
    assert terminal(events)["outcome"]["type"] == "paused"
    assert "is not released: OSError" in caplog.text
    session.verify()
