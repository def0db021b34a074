"""Stopping a turn for real: `turn.abort` is stored and reaches every reader, also when the server ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agjson.agents import Invocation, MemoryThreadStore, ThreadStore
from agjson.middleware.asgi import AgentApp
from agjson.types import AgStreamEvent
from agjson.wire import to_dict
from tests.support.asgi_client import Exchange, request, run, thread_path
from tests.support.scripted import ScriptAgent, said, start, text, types
from tests.support.served import Gates, assert_same_as_stored, numbered, stepwise, waiting

STOP = "/threads/th/turns/t/stop"


async def test_a_stop_reaches_every_reader_and_is_stored(store: ThreadStore) -> None:
    waits = waiting("one", "two", asyncio.Event())
    agent = ScriptAgent(lambda invocation: waits(invocation) if invocation.turn_id == "t" else text("on"), store=store)
    app = AgentApp(agent)
    async with Exchange(app, "POST", "/", start()) as first, Exchange(app, "GET", "/threads/th/events") as second:
        seen = await first.events(8)
        assert await request(app, "POST", STOP) == (202, {"threadId": "th", "turnId": "t"})
        seen += await first.events()
        assert numbered(await second.events()) == numbered(seen)
        assert first.completed and second.completed
    assert to_dict(seen[-1]) == {"type": "turn.abort", "seq": len(seen) - 1, "turnId": "t", "reason": "stopped"}
    assert types(seen)[-2:] == ["message.end", "turn.abort"]
    assert (agent.opened, agent.closed) == (1, 1)
    await assert_same_as_stored(app, store, "th", seen)
    status, body = await request(app, "POST", STOP)
    assert (status, body["error"]["code"]) == (409, "turn_ended")
    assert types(await run(app, start(said("go on", "u2"), turn="t2")))[0] == "turn.start"


async def test_a_stop_at_every_event_leaves_live_equal_to_history(store: ThreadStore) -> None:
    natives = text("one two three")
    for at in range(len(natives) + 1):
        gates, thread = Gates(), f"th-{at}"
        app = AgentApp(ScriptAgent(lambda _, gates=gates: stepwise(gates, natives), store=store))
        async with Exchange(app, "POST", "/", start(thread=thread)) as exchange:
            for index in range(at):
                gates[str(index)].set()
            seen = await exchange.events(5 + min(at, 6))
            status, _ = await request(app, "POST", thread_path(thread, "turns", "t", "stop"))
            seen += await exchange.events()
        assert (status, seen[-1].type) in {(202, "turn.abort"), (409, "turn.done"), (202, "turn.done")}
        if at < len(natives):
            assert seen[-1].type == "turn.abort"
        await assert_same_as_stored(app, store, thread, seen)


async def test_a_framework_that_swallows_the_cancellation_is_stopped_all_the_same(store: ThreadStore) -> None:
    class Stubborn(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            for native in text("one two")[:3]:
                yield native
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                yield {"do": "text_delta", "id": "x", "delta": "never mind"}

    app = AgentApp(Stubborn(lambda _: ()), store=store)
    async with Exchange(app, "POST", "/", start()) as exchange:
        seen = await exchange.events(8)
        assert (await request(app, "POST", STOP))[0] == 202
        seen += await exchange.events()
    assert seen[-1].type == "turn.abort"
    await assert_same_as_stored(app, store, "th", seen)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/threads/none/turns/t/stop", 404, "unknown_thread"),
        ("/threads/th/turns/none/stop", 404, "unknown_turn"),
        ("/threads/th/turns/t/stop", 409, "turn_ended"),
    ],
)
async def test_what_does_not_run_cannot_be_stopped(store: ThreadStore, path: str, status: int, code: str) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x"), store=store))
    await run(app, start())
    answered, body = await request(app, "POST", path)
    assert (answered, body["error"]["code"]) == (status, code)


async def test_the_end_of_the_server_ends_every_run_and_tells_its_readers(store: ThreadStore) -> None:
    agent = ScriptAgent(waiting("one", "two", asyncio.Event()), store=store)
    app = AgentApp(agent)
    async with app.running():
        exchanges = [Exchange(app, "POST", "/", start(thread=f"th-{index}")) for index in range(3)]
        for exchange in exchanges:
            await exchange.__aenter__()
        seen = [await exchange.events(8) for exchange in exchanges]
        ending = asyncio.create_task(app.aclose())
        for exchange, events in zip(exchanges, seen, strict=True):
            events += await exchange.events()
        await ending
        status, body = await request(app, "POST", "/", start(thread="late"))
        assert (status, body["error"]["code"]) == (503, "shutting_down")
    for index, (exchange, events) in enumerate(zip(exchanges, seen, strict=True)):
        await exchange.leave()
        assert events[-1].type == "turn.abort"
        await assert_same_as_stored(app, store, f"th-{index}", events)
    # The same app may be started again.
    async with app.running():
        assert (await request(app, "GET", "/threads/th-0"))[0] == 200


async def test_a_run_that_is_cut_off_before_its_first_event_tells_what_is_stored(store: ThreadStore) -> None:
    stopped: list[AgStreamEvent] = []

    class Late(MemoryThreadStore):
        """Its `begin` takes a while."""

        suspends = True

        async def acquire(self, thread_id: str) -> Any:
            lease = await super().acquire(thread_id)
            begin = lease.begin

            async def slow(*arguments: Any) -> None:
                await begin(*arguments)
                begun.set()
                await asyncio.sleep(0.01)

            lease.begin = slow  # type: ignore[method-assign]
            return lease

    begun = asyncio.Event()
    late = Late()
    app = AgentApp(ScriptAgent(lambda _: text("x")), store=late)
    posting = asyncio.create_task(_read(app, stopped))
    await begun.wait()
    await app.aclose()
    await posting
    assert types(stopped) == ["turn.start", "turn.abort"]
    thread = await late.load("th")
    assert thread is not None and [turn.turn_id for turn in thread.result.turns] == ["t"]


async def _read(app: Any, into: list[Any]) -> None:
    async with Exchange(app, "POST", "/", start()) as exchange:
        assert exchange.status == 200, await exchange.read()
        into += await exchange.events()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 202),
        ({"sec-fetch-site": "same-origin", "origin": "https://agents.example"}, 202),
        ({"origin": "http://agents.example", "host": "agents.example"}, 202),
        ({"sec-fetch-site": "cross-site", "origin": "https://evil.example", "content-type": "text/plain"}, 415),
        ({"sec-fetch-site": "same-site"}, 415),
        ({"origin": "https://evil.example", "host": "agents.example"}, 415),
        ({"origin": "null", "host": "agents.example"}, 415),
        # This a browser sends only where the host has allowed it (CORS).
        ({"sec-fetch-site": "cross-site", "content-type": "application/json"}, 202),
    ],
)
async def test_a_page_of_another_origin_stops_nothing_unasked(headers: dict[str, str], status: int) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate)))
    async with Exchange(app, "POST", "/", start()) as exchange:
        await exchange.events(8)
        answered, body = await request(app, "POST", STOP, headers=headers)
        gate.set()
        end = (await exchange.events())[-1].type
    assert (answered, end) == (status, "turn.abort" if status == 202 else "turn.done")
    assert status == 202 or body["error"]["code"] == "unsupported_media_type"
