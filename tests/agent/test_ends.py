"""How runs end when they do not end well: one terminal, the stream of the framework closed, all of it stored."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from agjson.agents import Invocation, MemoryThreadStore, NormalizerSettings, Thread, ThreadLease
from agjson.types import AbortedOutcome, AgStreamEvent, ErrorOutcome
from agjson.wire import to_dict
from tests.support.scripted import (
    ScriptAgent,
    ScriptNormalizer,
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

PARTIAL = text("one two three")[:4]


def outcome(session: Session) -> Any:
    """How the last turn ended, as it is stored."""
    return session.thread().result.turns[-1].outcome


def forever() -> Iterator[Any]:
    """The beginning of an answer, and then nothing for a long time."""
    yield from PARTIAL
    yield asyncio.sleep(60)


async def test_a_framework_that_raises() -> None:
    class Overloaded(Exception):
        status_code = 529

    session = Session(ScriptAgent(lambda run: [*PARTIAL, Overloaded("try later")]))
    end = terminal(await session.run(start()))
    assert (end["type"], end["code"], end["message"], end["retriable"]) == (
        "turn.error",
        "Overloaded",
        "try later",
        True,
    )
    assert isinstance(outcome(session), ErrorOutcome)
    assert [message.id for message in session.thread().result.messages] == ["u", "m-x"]
    session.verify()


async def test_a_framework_that_raises_before_its_first_event() -> None:
    agent = ScriptAgent(lambda run: [RuntimeError("no connection")])
    session = Session(agent)
    assert terminal(await session.run(start()))["type"] == "turn.error"
    assert (agent.opened, agent.closed) == (1, 1)
    session.verify()


@pytest.mark.parametrize("blocking", [False, True])
def test_a_call_that_raises_at_once(blocking: bool) -> None:
    class Failing(ScriptAgent):
        def _invoke(self, invocation: Invocation) -> Any:
            raise OSError("refused")

    session = Session(Failing(lambda run: []))
    end = terminal(session.run_sync(start()) if blocking else asyncio.run(session.run(start())))
    assert (end["type"], end["code"], end["message"]) == ("turn.error", "OSError", "refused")
    session.verify()


async def test_a_framework_that_raises_after_its_terminal() -> None:
    session = Session(ScriptAgent(lambda run: [*text("a"), {"do": "turn_done"}, RuntimeError("cleanup")]))
    events = await session.run(start())
    assert types(events)[-2:] == ["turn.done", "error"]
    assert session.thread().result.turns[-1].finish_reason == "stop"
    session.verify()


@pytest.mark.parametrize("ends_itself", [False, True])
async def test_a_stream_that_just_ends(ends_itself: bool) -> None:
    class Normalizer(ScriptNormalizer):
        pass

    class Ending(ScriptAgent):
        def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> ScriptNormalizer:
            return Normalizer(**settings)

    Normalizer.ends_itself = ends_itself
    session = Session(Ending(lambda run: PARTIAL))
    end = terminal(await session.run(start()))
    if ends_itself:
        assert (end["type"], end["reason"]) == ("turn.abort", "stream-truncated")
    else:
        assert (end["type"], end["finishReason"]) == ("turn.done", "stop")
    session.verify()


async def test_a_native_that_the_normalizer_cannot_read() -> None:
    session = Session(ScriptAgent(lambda run: [{"do": "no_such_method"}, *text("a")]))
    events = await session.run(start())
    assert "ext.agjson.unparsed" in types(events)
    assert terminal(events)["type"] == "turn.done"
    session.verify()


async def test_a_cancelled_reader() -> None:
    agent = ScriptAgent(lambda run: forever())
    session = Session(agent)
    task = asyncio.create_task(session.run(start()))
    await until(lambda: session.has("text.delta"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (agent.opened, agent.closed) == (1, 1)
    assert outcome(session) == AbortedOutcome(reason="cancelled")
    assert to_dict(session.thread().result.messages[-1].content[0])["text"] == "onetwo"
    await (await agent.store.acquire("th")).release()


async def test_a_reader_that_waits_only_so_long() -> None:
    agent = ScriptAgent(lambda run: forever())
    stream = agent.run(start())
    seen: list[AgStreamEvent] = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            async for event in stream:
                seen.append(event)
    assert "text.delta" in types(seen)
    assert outcome(Session(agent)) == AbortedOutcome(reason="cancelled")


async def test_a_reader_that_closes_early() -> None:
    agent = ScriptAgent(lambda run: text("one two three"))
    session = Session(agent)
    async with aclosing(agent.run(start())) as events:
        async for event in events:
            if event.type == "text.delta":
                break
    assert (agent.opened, agent.closed) == (1, 1)
    assert outcome(session) == AbortedOutcome(reason="client-closed")
    assert terminal(await session.run(start(said("again", "u2"))))["type"] == "turn.done"
    assert [turn.turn_id for turn in session.thread().result.turns] == ["t", "t:2"]


async def test_a_reader_that_only_breaks_off() -> None:
    agent = ScriptAgent(lambda run: text("one two three"))
    async for event in agent.run(start()):
        if event.type == "text.delta":
            break
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)
    assert (agent.opened, agent.closed) == (1, 1)
    assert outcome(Session(agent)) == AbortedOutcome(reason="client-closed")


async def test_a_reader_that_closes_before_the_framework_is_called() -> None:
    agent = ScriptAgent(lambda run: text("one"))
    events = agent.run(start())
    await anext(events)
    await events.aclose()
    assert agent.opened == 0
    assert outcome(Session(agent)) == AbortedOutcome(reason="client-closed")


async def test_a_reader_that_never_begins_changes_nothing() -> None:
    agent = ScriptAgent(lambda run: text("one"))
    await agent.run(start()).aclose()
    assert await agent.store.load("th") is None
    await (await agent.store.acquire("th")).release()


async def test_a_reader_that_stops_at_the_terminal() -> None:
    agent = ScriptAgent(lambda run: calls("c"))
    async for event in agent.run(start()):
        if event.type == "turn.done":
            # The thread is stored and free already.
            assert Session(agent).thread().pending.open_calls == ["c"]
            await (await agent.store.acquire("th")).release()
            break
    gc.collect()
    await asyncio.sleep(0)
    assert Session(agent).thread().pending.open_calls == ["c"]


async def test_a_cancellation_that_the_framework_swallows() -> None:
    class Swallowing(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            for native in PARTIAL:
                yield native
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if self.script:
                    raise RuntimeError("stopped") from None

    for script in (lambda run: [1], None):
        agent = Swallowing(script)  # type: ignore[arg-type]
        task = asyncio.create_task(Session(agent).run(start()))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert outcome(Session(agent)) == AbortedOutcome(reason="cancelled")


async def test_a_framework_that_swallows_every_cancellation_and_goes_on_for_ever() -> None:
    class Endless(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            for native in PARTIAL:
                yield native
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)
                yield PARTIAL[-1]

    agent = Endless(lambda run: [])
    task = asyncio.create_task(Session(agent).run(start()))
    await asyncio.sleep(0.05)
    task.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert outcome(Session(agent)) == AbortedOutcome(reason="cancelled")


async def test_a_framework_whose_own_task_was_cancelled() -> None:
    session = Session(ScriptAgent(lambda run: [*PARTIAL, asyncio.CancelledError()]))
    end = terminal(await session.run(start()))
    assert (end["type"], end["reason"]) == ("turn.abort", "cancelled")
    session.verify()


async def test_a_server_says_why_it_cancelled_a_run() -> None:
    waiting = asyncio.Event()

    def script(run: Invocation) -> Iterator[Any]:
        yield from text("a b")[:3]
        waiting.set()
        yield asyncio.sleep(60)

    agent = ScriptAgent(script)
    session = Session(agent)

    async def read() -> None:
        async for _ in agent.run_within(start(), why_cancelled=lambda: "shutdown"):
            pass

    task = asyncio.create_task(read())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcome(session) == AbortedOutcome(reason="shutdown")


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_process(raised: type[BaseException]) -> None:
    agent = ScriptAgent(lambda run: [*PARTIAL, raised()], blocking=True)
    with pytest.raises(raised):
        list(agent.run_sync(start()))
    assert outcome(Session(agent)) == AbortedOutcome(reason="cancelled")
    assert agent.closed == 1


async def test_a_stream_that_does_not_close_in_time(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            try:
                for native in PARTIAL:
                    yield native
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(60)

    agent = Stuck(lambda run: [], close_timeout=0.05)
    events = agent.run(start())
    async for event in events:
        if event.type == "text.delta":
            break
    with caplog.at_level(logging.WARNING, "agjson"):
        await asyncio.wait_for(events.aclose(), 5)
    assert "did not close within 0.05 s" in caplog.text
    assert outcome(Session(agent)) == AbortedOutcome(reason="client-closed")
    await (await agent.store.acquire("th")).release()


async def test_a_stream_that_fails_to_close(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            try:
                for native in text("one two"):
                    yield native
            except GeneratorExit:
                raise ValueError("not now") from None

    agent = Broken(lambda run: [])
    async with aclosing(agent.run(start())) as events:
        async for event in events:
            if event.type == "text.delta":
                break
    assert "failed to close: ValueError" in caplog.text
    # Exceptions may quote what must not be logged (spec §13.2).
    assert "not now" not in caplog.text
    assert outcome(Session(agent)) == AbortedOutcome(reason="client-closed")


def test_a_blocking_stream_that_fails_to_close(caplog: pytest.LogCaptureFixture) -> None:
    def script(run: Invocation) -> Iterator[Any]:
        try:
            yield from text("one two")
        except GeneratorExit:
            raise ValueError("not now") from None

    class Broken(ScriptAgent):
        def _blocking(self, invocation: Invocation) -> Iterator[Any]:
            return iter(script(invocation))

    agent = Broken(lambda run: [], blocking=True)
    for event in agent.run_sync(start()):
        if event.type == "text.delta":
            break
    assert "failed to close: ValueError" in caplog.text
    # Exceptions may quote what must not be logged (spec §13.2).
    assert "not now" not in caplog.text
    assert outcome(Session(agent)) == AbortedOutcome(reason="client-closed")


class _Failing(MemoryThreadStore):
    """A store that cannot write: the thread at the end, or once the events of a type."""

    def __init__(self, *, logs: bool = False, refused: str = "text.delta") -> None:
        super().__init__()
        self.logs = logs
        self.refused = refused
        self.released = 0

    async def acquire(self, thread_id: str) -> ThreadLease:
        lease = await super().acquire(thread_id)
        store = self

        class Lease(ThreadLease):
            thread = lease.thread

            async def begin(self, turn_id: str, thread: Thread, *, also: Any = None) -> None:
                await lease.begin(turn_id, thread)

            async def append(self, events: Sequence[AgStreamEvent]) -> None:
                if any(event.type == store.refused for event in events):
                    store.refused = ""
                    raise OSError("disk full")

            async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
                if not store.logs:
                    raise OSError("disk full")
                await lease.save(thread, events)

            async def release(self) -> None:
                store.released += 1
                await lease.release()

        Lease.logs = self.logs
        return Lease()


@pytest.mark.parametrize("sync", [False, True])
def test_a_thread_that_cannot_be_saved(sync: bool, caplog: pytest.LogCaptureFixture) -> None:
    store = _Failing()
    session = Session(ScriptAgent(lambda run: [*text("a"), {"do": "message_start", "id": "m"}], store=store))
    events = session.run_sync(start()) if sync else asyncio.run(session.run(start()))
    end = terminal(events)
    assert (end["type"], end["code"], end["message"]) == ("turn.error", "store_failed", "OSError: disk full")
    assert types(events)[-2] == "message.end"
    assert [event.seq for event in events] == list(range(len(events)))
    assert store.released == 1
    assert session.thread().result.turns[-1].outcome == AbortedOutcome(reason="interrupted")
    assert "turn 't' could not be stored: OSError" in caplog.text
    assert "disk full" not in caplog.text


@pytest.mark.parametrize("sync", [False, True])
def test_a_log_that_cannot_be_written_while_the_turn_runs(sync: bool) -> None:
    store = _Failing(logs=True)
    agent = ScriptAgent(lambda run: text("a b"), store=store)
    session = Session(agent)
    events = session.run_sync(start()) if sync else asyncio.run(session.run(start()))
    assert (terminal(events)["type"], terminal(events)["message"]) == ("turn.error", "disk full")
    assert deltas(events) == ["a"]
    assert (agent.closed, store.released) == (1, 1)
    session.verify()


@pytest.mark.parametrize("sync", [False, True])
def test_a_log_that_cannot_be_written_at_the_beginning(sync: bool) -> None:
    store = _Failing(logs=True, refused="")
    session = Session(ScriptAgent(lambda run: calls("c1", "c2"), store=store))
    session.run_sync(start())
    for store.refused, ag_input in (("tool.done", results("c1")), ("turn.start", start(said("x", "u2")))):
        events = session.run_sync(ag_input) if sync else asyncio.run(session.run(ag_input))
        assert (types(events)[0], types(events)[1:].count("turn.start")) == ("turn.start", 0)
        terminal(events)
    session.verify()


async def test_events_are_logged_before_they_are_delivered_and_the_thread_is_saved_before_the_terminal() -> None:
    order: list[str] = []

    class Logging(MemoryThreadStore):
        async def acquire(self, thread_id: str) -> ThreadLease:
            lease = await super().acquire(thread_id)

            class Lease(ThreadLease):
                thread = lease.thread

                async def begin(self, turn_id: str, thread: Thread, *, also: Any = None) -> None:
                    await lease.begin(turn_id, thread)

                async def append(self, events: Sequence[AgStreamEvent]) -> None:
                    order.extend(f"log {event.seq}" for event in events)

                async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
                    order.append(f"save {[event.seq for event in events]}")
                    await lease.save(thread, events)

                async def release(self) -> None:
                    order.append("release")
                    await lease.release()

            return Lease()

    agent = ScriptAgent(lambda run: [], store=Logging(), capabilities=None)
    async for event in agent.run(start()):
        order.append(f"get {event.seq}")
    assert order == [
        *("log 0", "log 1", "log 2", "log 3"),
        *("get 0", "get 1", "get 2", "get 3"),
        *("save [4]", "release", "get 4"),
    ]
