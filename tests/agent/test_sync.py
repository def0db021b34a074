"""The synchronous twin, and many runs at once on one agent."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agjson.agents import Invocation, MemoryThreadStore, Thread, ThreadLease
from agjson.types import AbortedOutcome, AgStreamEvent
from agjson.wire import to_dict
from tests.support.scripted import (
    ScriptAgent,
    Session,
    calls,
    deltas,
    results,
    said,
    start,
    terminal,
    text,
    types,
    until,
)


@pytest.mark.parametrize("blocking", [False, True])
def test_both_ways_give_the_same_events_for_both_kinds_of_frameworks(blocking: bool) -> None:
    def script(run: Invocation) -> Any:
        return [*text("one two"), *calls("c")] if run.input.kind == "start" else [*text("three"), RuntimeError("x")]

    streams = []
    for sync in (False, True):
        session = Session(ScriptAgent(script, blocking=blocking))
        for ag_input in (start(), results("c")):
            if sync:
                session.run_sync(ag_input)
            else:
                asyncio.run(session.run(ag_input))
        session.verify()
        streams.append([[to_dict(event) for event in stream] for stream in session.streams])
    assert streams[0] == streams[1]


@pytest.mark.parametrize("blocking", [False, True])
def test_a_loop_that_breaks_off(blocking: bool) -> None:
    agent = ScriptAgent(lambda run: text("one two three"), blocking=blocking)
    for event in agent.run_sync(start()):
        if event.type == "text.delta":
            break
    assert (agent.opened, agent.closed) == (1, 1)
    assert Session(agent).thread().result.turns[-1].outcome == AbortedOutcome(reason="client-closed")
    assert terminal(Session(agent).run_sync(start(said("x", "u2"))))["type"] == "turn.done"


def test_an_asynchronous_framework_is_read_by_one_task_with_its_own_scopes() -> None:
    tasks: set[Any] = set()
    seen = contextvars.ContextVar("seen", default=0)

    class Scoped(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            # A scope that is entered on one task and left on another raises.
            async with asyncio.timeout(10):
                for native in text("one two three"):
                    tasks.add(asyncio.current_task())
                    seen.set(seen.get() + 1)
                    yield native
            assert seen.get() == 7

    session = Session(Scoped(lambda run: []))
    assert terminal(session.run_sync(start()))["type"] == "turn.done"
    assert (len(tasks), seen.get()) == (1, 0)
    session.verify()


def test_the_context_of_the_caller_is_there() -> None:
    name = contextvars.ContextVar("name", default="nobody")

    def script(run: Invocation) -> Iterator[Any]:
        yield from text(name.get())

    name.set("caller")
    for blocking in (False, True):
        for sync in (False, True):
            session = Session(ScriptAgent(script, blocking=blocking))
            events = session.run_sync(start()) if sync else asyncio.run(session.run(start()))
            assert deltas(events) == ["caller"]


async def test_inside_a_running_loop_only_blocking_frameworks_can_be_run() -> None:
    session = Session(ScriptAgent(lambda run: text("a"), blocking=True))
    assert terminal(session.run_sync(start()))["type"] == "turn.done"
    agent = ScriptAgent(lambda run: text("a"))
    with pytest.raises(RuntimeError, match="use `async for"):
        next(agent.run_sync(start()))
    assert await agent.store.load("th") is None
    assert types([event async for event in agent.run(start())])[-1] == "turn.done"


def test_a_framework_that_swallows_its_end_does_not_hold_the_caller() -> None:
    class Stuck(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            try:
                for native in text("one two"):
                    yield native
            finally:
                await asyncio.sleep(60)

    agent = Stuck(lambda run: [], close_timeout=0.05)
    for event in agent.run_sync(start()):
        if event.type == "text.delta":
            break
    assert Session(agent).thread().result.turns[-1].outcome == AbortedOutcome(reason="client-closed")


def test_tasks_that_a_framework_leaves_behind_are_ended() -> None:
    ended = threading.Event()

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    class Leaving(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            self.task = asyncio.create_task(background())
            await asyncio.sleep(0)
            for native in text("one"):
                yield native

    Session(Leaving(lambda run: [])).run_sync(start())
    assert ended.is_set()


class _Waiting(MemoryThreadStore):
    """A store that really waits, as one on a disk does."""

    suspends = True

    async def acquire(self, thread_id: str) -> ThreadLease:
        await asyncio.sleep(0.001)
        lease = await super().acquire(thread_id)

        class Lease(ThreadLease):
            thread = lease.thread

            async def begin(self, turn_id: str, thread: Thread, *, also: Any = None) -> None:
                await lease.begin(turn_id, thread)

            async def append(self, events: Any) -> None:
                await asyncio.sleep(0)

            async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
                await asyncio.sleep(0.001)
                await lease.save(thread, events)

            async def release(self) -> None:
                await lease.release()

        return Lease()


def test_a_store_that_waits_can_be_used_from_a_thread() -> None:
    for blocking in (False, True):
        session = Session(ScriptAgent(lambda run: text("one two"), blocking=blocking, store=_Waiting()))
        session.run_sync(start())
        session.run_sync(start(said("x", "u2")))
        session.verify()


class _Turn:
    def __await__(self) -> Generator[None, None, None]:
        yield


def test_a_store_that_breaks_its_promise_is_told() -> None:
    class Lying(MemoryThreadStore):
        async def acquire(self, thread_id: str) -> ThreadLease:
            await _Turn()
            return await super().acquire(thread_id)

    with pytest.raises(RuntimeError, match="suspends = False"):
        next(ScriptAgent(lambda run: [], blocking=True, store=Lying()).run_sync(start()))


async def test_a_store_that_waits_cannot_be_used_inside_a_running_loop() -> None:
    agent = ScriptAgent(lambda run: text("a"), blocking=True, store=_Waiting())
    with pytest.raises(RuntimeError, match="use `async for"):
        next(agent.run_sync(start()))


def test_without_asyncio_a_run_needs_none() -> None:
    class Plain(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            for native in text("one two"):
                yield native

    agent = Plain(lambda run: [])

    def step(coroutine: Any) -> Any:
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("it waits")

    events = agent.run(start())
    got = [step(anext(events)) for _ in range(8)]
    assert types(got)[-1] == "text.delta"
    step(events.aclose())
    assert Session(agent).thread().result.turns[-1].outcome == AbortedOutcome(reason="client-closed")


def _talk(agent: ScriptAgent, number: int) -> Session:
    session = Session(agent, f"th{number}")
    for turn in range(2):
        ag_input = start(said(f"{number} {turn}", f"u{turn}"), thread=session.thread_id)
        if number % 2:
            session.run_sync(ag_input)
        else:
            asyncio.run(session.run(ag_input))
        session.run_sync(results("c" if not turn else "c#2", thread=session.thread_id))
    return session


@pytest.mark.parametrize("blocking", [False, True])
def test_one_agent_serves_a_hundred_threads_at_once(blocking: bool) -> None:
    together = threading.Barrier(100, timeout=60)

    def script(run: Invocation) -> Any:
        if run.input.kind == "tool-result":
            return text(f"answer {run.thread.thread_id}")
        if not run.thread.revision:
            together.wait()
        return [*text(f"asked {run.thread.thread_id}"), *calls("c")]

    agent = ScriptAgent(script, blocking=blocking)
    with ThreadPoolExecutor(100) as pool:
        sessions = list(pool.map(lambda number: _talk(agent, number), range(100)))
    for session in sessions:
        session.verify()
        said_in = [delta for stream in session.streams for delta in deltas(stream)]
        assert said_in == ["asked", session.thread_id, "answer", session.thread_id] * 2
    assert len(agent.store) == 100  # type: ignore[arg-type]


async def test_one_agent_serves_a_hundred_tasks_at_once() -> None:
    agent = ScriptAgent(lambda run: text(f"for {run.thread.thread_id}"))
    sessions = [Session(agent, f"th{number}") for number in range(100)]
    await asyncio.gather(*(session.run(start(thread=session.thread_id)) for session in sessions))
    for session in sessions:
        session.verify()
        assert deltas(session.streams[0]) == ["for", session.thread_id]


def test_of_many_runs_of_one_thread_at_once_one_gets_it() -> None:
    begun, go = threading.Barrier(20, timeout=30), threading.Event()

    def script(run: Invocation) -> Iterator[Any]:
        go.wait(30)
        yield from text("mine")

    agent = ScriptAgent(script, blocking=True)

    def run(number: int) -> str:
        stream = agent.run_sync(start(said("x", f"u{number}")))
        begun.wait()
        try:
            first: AgStreamEvent = next(stream)
        except Exception as error:
            return type(error).__name__
        finally:
            if number == 0:
                threading.Timer(0.1, go.set).start()
        return [first, *stream][-1].type

    with ThreadPoolExecutor(20) as pool:
        ends = sorted(pool.map(run, range(20)))
    assert ends == ["ThreadBusyError"] * 19 + ["turn.done"]


async def test_a_blocking_framework_does_not_stop_the_loop() -> None:
    go = threading.Event()

    def script(run: Invocation) -> Iterator[Any]:
        yield from text("one")
        go.wait(30)
        yield {"do": "turn_done"}

    session = Session(ScriptAgent(script, blocking=True))
    task = asyncio.create_task(session.run(start()))
    await until(lambda: session.has("text.end"))
    go.set()
    assert terminal(await task)["type"] == "turn.done"
    session.verify()


async def test_a_blocking_framework_is_told_to_stop() -> None:
    stopped = threading.Event()

    def script(run: Invocation) -> Iterator[Any]:
        try:
            while True:
                yield {"do": "text_delta", "id": "x", "delta": "on and on "}
        finally:
            stopped.set()

    agent = ScriptAgent(script, blocking=True)
    async for event in (events := agent.run(start())):
        if event.type == "text.delta":
            break
    await events.aclose()
    assert stopped.is_set()
    assert Session(agent).thread().result.turns[-1].outcome == AbortedOutcome(reason="client-closed")
