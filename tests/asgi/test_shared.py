"""Two servers on one store: a turn that one of them runs is read, found and stopped by way of the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agjson.agents import ThreadStore
from agjson.middleware.asgi import AgentApp
from tests.support.asgi_client import Exchange, request, run
from tests.support.scripted import ScriptAgent, said, start, text, types
from tests.support.served import Gates, assert_same_as_stored, numbered, opened, stepwise, waiting

EVENTS = "/threads/th/events"
fast_app = partial(AgentApp, poll=0.01)


@pytest.fixture
async def two_stores(tmp_path: Path) -> AsyncIterator[tuple[ThreadStore, ThreadStore]]:
    async with opened("sqlite", tmp_path) as one, opened("sqlite", tmp_path) as other:
        yield one, other


async def test_a_turn_of_another_server_is_read_from_any_event(
    two_stores: tuple[ThreadStore, ThreadStore], gates: Gates
) -> None:
    one, other = two_stores
    natives = text("one two three")
    here = fast_app(ScriptAgent(lambda _: stepwise(gates, natives), store=one))
    there = fast_app(ScriptAgent(lambda _: (), store=other))

    async def attach(last: int | None) -> list[tuple[int, str]]:
        headers = {} if last is None else {"Last-Event-ID": f"t:{last}"}
        async with Exchange(there, "GET", f"{EVENTS}?turnId=t", headers=headers) as exchange:
            assert exchange.status == 200, await exchange.read()
            return numbered(await exchange.events())

    readers = []
    async with Exchange(here, "POST", "/", start()) as exchange:
        whole = await exchange.events(5)
        readers.append(asyncio.create_task(attach(None)))
        for index in range(len(natives)):
            readers.append(asyncio.create_task(attach(len(whole) - 1)))
            await asyncio.sleep(0.005)
            gates[str(index)].set()
            whole += await exchange.events(1)
        whole += await exchange.events()
    streams = [await reader for reader in readers]
    assert streams[0] == numbered(whole)
    for stream in streams[1:]:
        assert stream == numbered(whole)[len(whole) - len(stream) :]
    await assert_same_as_stored(there, other, "th", whole)
    assert await attach(4) == numbered(whole)[5:]
    status, body = await request(there, "GET", EVENTS, headers={"Last-Event-ID": f"t:{len(whole) - 1}"})
    assert (status, body) == (204, None)


async def test_a_thread_of_another_server_is_found_running(two_stores: tuple[ThreadStore, ThreadStore]) -> None:
    one, other = two_stores
    gate = asyncio.Event()
    here = fast_app(ScriptAgent(waiting("one", "two", gate), store=one))
    agent = ScriptAgent(lambda _: text("x"), store=other)
    there = fast_app(agent)
    async with Exchange(here, "POST", "/", start()) as exchange:
        await exchange.events(8)
        status, body = await request(there, "GET", "/threads/th")
        assert (status, body["turnId"], body["lastEventId"]) == (200, "t", None)
        for given in (start(), start(said("x", "u2"), turn="t2")):
            status, body = await request(there, "POST", "/", given)
            assert (status, body["error"]["code"], body["error"]["turnId"]) == (409, "thread_busy", "t")
        assert agent.seen == []
        gate.set()
        await exchange.read()
    assert types(await run(there, start(said("x", "u2"), turn="t2")))[-1] == "turn.done"


async def test_a_stop_by_way_of_another_server_reaches_every_reader(
    two_stores: tuple[ThreadStore, ThreadStore],
) -> None:
    one, other = two_stores
    here = fast_app(ScriptAgent(waiting("one", "two", asyncio.Event()), store=one))
    there = fast_app(ScriptAgent(lambda _: (), store=other))
    async with Exchange(here, "POST", "/", start()) as first, Exchange(there, "GET", EVENTS) as second:
        seen = await first.events(8)
        assert (await request(there, "POST", "/threads/th/turns/none/stop"))[0] == 404
        assert (await request(there, "POST", "/threads/th/turns/t/stop"))[0] == 202
        seen += await first.events()
        assert numbered(await second.events()) == numbered(seen)
    assert seen[-1].type == "turn.abort"
    await assert_same_as_stored(there, other, "th", seen)
    status, body = await request(there, "POST", "/threads/th/turns/t/stop")
    assert (status, body["error"]["code"]) == (409, "turn_ended")


async def test_readers_of_a_turn_elsewhere_share_one_poll(two_stores: tuple[ThreadStore, ThreadStore]) -> None:
    one, other = two_stores
    gate = asyncio.Event()
    here = AgentApp(ScriptAgent(waiting("one", "two", gate), store=one), poll=0.05)
    there = AgentApp(ScriptAgent(lambda _: (), store=other), poll=0.05)
    asked = 0
    latest_turn = other.latest_turn  # type: ignore[attr-defined]

    async def counting(thread_id: str) -> Any:
        nonlocal asked
        asked += 1
        return await latest_turn(thread_id)

    async with Exchange(here, "POST", "/", start()) as exchange:
        await exchange.events(8)
        readers = [Exchange(there, "GET", EVENTS) for _ in range(50)]
        for reader in readers:
            await reader.__aenter__()
            await reader.events(8)
        other.latest_turn = counting  # type: ignore[attr-defined]
        await asyncio.sleep(0.5)
        assert 3 <= asked <= 20
        gate.set()
        bodies = {json.dumps(numbered(await reader.events())) for reader in readers}
        assert len(bodies) == 1
        for reader in readers:
            await reader.leave()
        await exchange.read()
    asked = 0
    await asyncio.sleep(0.2)
    assert asked == 0


async def test_a_reader_elsewhere_may_attach_at_the_very_moment_when_the_turn_ends(
    two_stores: tuple[ThreadStore, ThreadStore],
) -> None:
    one, other = two_stores
    there = AgentApp(ScriptAgent(lambda _: (), store=other), poll=0.001)
    for patience in range(20):
        gate, thread = asyncio.Event(), f"th-{patience}"
        here = fast_app(ScriptAgent(waiting("one", "two", gate), store=one))
        async with Exchange(here, "POST", "/", start(thread=thread)) as exchange:
            seen = numbered(await exchange.events(8))
            gate.set()
            await asyncio.sleep(patience * 0.0005)
            async with Exchange(there, "GET", f"/threads/{thread}/events", headers={"Last-Event-ID": "t:7"}) as late:
                assert late.status == 200
                rest = numbered(await late.events())
            seen += numbered(await exchange.events())
        assert rest == seen[8:]


async def test_a_reader_elsewhere_whose_turn_is_followed_by_another_must_resync(
    two_stores: tuple[ThreadStore, ThreadStore],
) -> None:
    one, other = two_stores
    here = fast_app(ScriptAgent(lambda _: text("x"), store=one))
    there = fast_app(ScriptAgent(lambda _: (), store=other))
    await run(here, start())
    await run(here, start(said("x", "u2"), turn="t2"))
    status, body = await request(there, "GET", EVENTS, headers={"Last-Event-ID": "t:3"})
    assert (status, body["error"]["code"]) == (410, "resync_required")
    status, body = await request(there, "GET", EVENTS, headers={"Last-Event-ID": "t2:99"})
    assert (status, body["error"]["code"]) == (410, "resync_required")


async def test_a_reader_here_hears_of_a_later_turn_elsewhere(two_stores: tuple[ThreadStore, ThreadStore]) -> None:
    one, other = two_stores
    here = fast_app(ScriptAgent(lambda _: text("x"), store=one))
    there = fast_app(ScriptAgent(lambda _: text("x"), store=other))
    first = await run(here, start())
    last = {"Last-Event-ID": f"t:{first[-1].seq}"}
    assert (await request(here, "GET", EVENTS, headers=last))[0] == 204
    second = await run(there, start(said("x", "u2"), turn="t2"))
    status, body = await request(here, "GET", EVENTS, headers=last)
    assert (status, body["error"]["code"]) == (410, "resync_required")
    status, body = await request(here, "GET", "/threads/th")
    assert (status, body["lastEventId"]) == (200, f"t2:{second[-1].seq}")
