"""Readers see what the store has taken, nothing else and nothing twice, however slow or faulty the store is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agjson.agents import MemoryThreadStore, Thread, ThreadLease
from agjson.middleware.asgi import AgentApp
from agjson.types import AgStreamEvent
from tests.support.asgi_client import Exchange, request, run
from tests.support.scripted import ScriptAgent, start, text, types
from tests.support.served import assert_same_as_stored, numbered


class Slow(MemoryThreadStore):
    """A store whose log takes its time and may fail.

    Attributes:
        batches: what each write has brought.
        taken: what it has.
        open: it writes only while this is set.
    """

    suspends = True

    def __init__(self, fails_at: set[int] | None = None, save_fails: bool = False) -> None:
        super().__init__()
        self.fails_at = fails_at or set()
        self.save_fails = save_fails
        self.batches: list[list[AgStreamEvent]] = []
        self.taken: list[AgStreamEvent] = []
        self.open = asyncio.Event()
        self.open.set()
        self.writing = 0

    async def acquire(self, thread_id: str) -> ThreadLease:
        return _SlowLease(self, await super().acquire(thread_id))

    async def write(self, events: Sequence[AgStreamEvent]) -> None:
        self.writing += 1
        assert self.writing == 1, "two writes of one lease at once"
        try:
            await self.open.wait()
            await asyncio.sleep(0.001)
            self.batches.append(list(events))
            if len(self.batches) in self.fails_at:
                raise OSError("not now")
            self.taken += events
        finally:
            self.writing -= 1


class _SlowLease(ThreadLease):
    def __init__(self, store: Slow, inner: ThreadLease) -> None:
        self.thread = inner.thread
        self._store = store
        self._inner = inner

    async def begin(self, turn_id: str, thread: Thread, *, also: Callable[[Any], object] | None = None) -> None:
        await self._inner.begin(turn_id, thread)

    async def append(self, events: Sequence[AgStreamEvent]) -> None:
        await self._store.write(events)

    async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
        if self._store.save_fails:
            raise OSError("never")
        await self._store.write(events)
        await self._inner.save(thread, events)

    async def release(self) -> None:
        await self._inner.release()


async def test_a_slow_store_gets_few_and_large_writes() -> None:
    store = Slow()
    words = " ".join(["word"] * 3000)
    app = AgentApp(ScriptAgent(lambda _: text(words)), store=store)
    events = await run(app, start())
    assert store.taken == events
    assert len(events) == 3000 + 10
    assert len(store.batches) < 300
    await assert_same_as_stored(app, store, "th", events)


async def test_nothing_is_seen_that_the_store_has_not_taken() -> None:
    store = Slow()
    agent = ScriptAgent(lambda _: text("one two three"))
    app = AgentApp(agent, store=store)
    store.open.clear()
    async with Exchange(app, "POST", "/", start()) as exchange:
        chunks = exchange.chunks()
        assert await anext(chunks) == b"retry: 1000\n\n"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(chunks)
        store.open.set()
        events = await exchange.events()
    assert types(events)[-1] == "turn.done"
    assert store.taken == events


@pytest.mark.parametrize("fails_at", [{1}, {2}, {3}])
async def test_a_write_that_fails_ends_the_turn_and_loses_nothing(fails_at: set[int]) -> None:
    store = Slow(fails_at)
    # Longer than what is written at once, so that writes go on while the agent does.
    app = AgentApp(ScriptAgent(lambda _: text(" ".join(["word"] * 6000))), store=store)
    events = await run(app, start())
    assert [event.seq for event in events] == list(range(len(events)))
    assert store.taken == events
    await assert_same_as_stored(app, store, "th", events)


async def test_a_thread_that_cannot_be_saved_is_told_to_every_reader() -> None:
    store = Slow(save_fails=True)
    app = AgentApp(ScriptAgent(lambda _: text("one two")), store=store)
    async with Exchange(app, "POST", "/", start()) as first:
        seen = await first.events(5)
        async with Exchange(app, "GET", "/threads/th/events?turnId=t") as second:
            rest = await second.events()
        seen += await first.events()
    assert numbered(rest) == numbered(seen)
    assert (seen[-1].type, getattr(seen[-1], "code", None)) == ("turn.error", "store_failed")
    # The log has the end, as far as the store still works.
    assert store.taken == seen


async def test_an_end_that_cannot_even_be_logged_is_told_all_the_same() -> None:
    store = Slow(fails_at=set(range(2, 100)), save_fails=True)
    app = AgentApp(ScriptAgent(lambda _: text("one two")), store=store)
    events = await run(app, start())
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.type for event in events if event.type.startswith("turn.")] == ["turn.start", "turn.error"]
    assert store.taken == events[: len(store.taken)]


@pytest.mark.parametrize("window", [0, 0.001, 30])
async def test_a_stop_while_the_store_writes_loses_nothing(window: float) -> None:
    for patience in range(12):
        store = Slow()
        app = AgentApp(ScriptAgent(lambda _: text(" ".join(["word"] * 200))), store=store, coalesce=window)
        async with Exchange(app, "POST", "/", start()) as exchange:
            seen: list[Any] = await exchange.events(1)
            await asyncio.sleep(patience * 0.0005)
            await request(app, "POST", "/threads/th/turns/t/stop")
            seen += await exchange.events()
        assert seen[-1].type in ("turn.abort", "turn.done")
        assert store.taken == seen
        await assert_same_as_stored(app, store, "th", seen)
