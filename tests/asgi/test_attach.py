"""Attaching to a turn again, from any event, at any moment: nothing is lost, nothing comes twice (spec §4, INV-SEQ)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agjson.agents import MemoryThreadStore, ThreadStore
from agjson.middleware.asgi import AgentApp
from agjson.types import AbortedOutcome, TurnStart
from agjson.wire.sse import SSEReader
from tests.support.asgi_client import Exchange, request, run, thread_path
from tests.support.scripted import ScriptAgent, results, said, start, text, until
from tests.support.served import Gates, assert_same_as_stored, numbered, opened, stepwise, waiting

EVENTS = "/threads/th/events"


async def attach(app: Any, last: str | None = None, path: str = EVENTS) -> list[tuple[int, str]]:
    headers = {} if last is None else {"Last-Event-ID": last}
    async with Exchange(app, "GET", path, headers=headers) as exchange:
        if exchange.status == 204:
            assert await exchange.read() == b""
            return []
        assert exchange.status == 200, await exchange.read()
        return numbered(await exchange.events())


async def test_a_reader_goes_on_from_any_event_of_a_running_turn(store: ThreadStore, gates: Gates) -> None:
    natives = text("one two three")
    app = AgentApp(ScriptAgent(lambda _: stepwise(gates, natives), store=store))
    readers: list[asyncio.Task[list[tuple[int, str]]]] = []
    async with Exchange(app, "POST", "/", start()) as exchange:
        whole = await exchange.events(5)  # what the input says
        readers.append(asyncio.create_task(attach(app, path=f"{EVENTS}?turnId=t")))
        for index in range(len(natives)):
            for last in range(len(whole)):
                readers.append(asyncio.create_task(attach(app, f"t:{last}")))
            await asyncio.sleep(0)
            gates[str(index)].set()
            whole += await exchange.events(1)
        whole += await exchange.events()
    streams = [await reader for reader in readers]
    assert streams[0] == numbered(whole)
    for stream in streams[1:]:
        assert stream == numbered(whole)[len(whole) - len(stream) :]
        assert stream[-1][1] == "turn.done"
    await assert_same_as_stored(app, store, "th", whole)


async def test_a_turn_that_has_ended_is_served_from_any_event_while_it_is_kept(store: ThreadStore) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("one two"), store=store))
    whole = numbered(await run(app, start()))
    for last in range(len(whole) - 1):
        assert await attach(app, f"t:{last}") == whole[last + 1 :]
    assert await attach(app, f"t:{len(whole) - 1}") == []
    assert await attach(app) == []
    assert await attach(app, path=f"{EVENTS}?turnId=t") == whole
    assert await attach(app, path=f"{EVENTS}?lastEventId=t:3") == whole[4:]
    # The header knows better than the address that the reader was made with.
    assert await attach(app, "t:5", path=f"{EVENTS}?lastEventId=t:3") == whole[6:]


async def test_the_place_where_a_snapshot_ends_is_where_the_stream_goes_on(store: ThreadStore) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate), store=store))
    async with Exchange(app, "POST", "/", start()) as exchange:
        await exchange.events(5)
        status, body = await request(app, "GET", "/threads/th")
        assert (status, body["threadId"], body["turnId"], body["lastEventId"]) == (200, "th", "t", None)
        assert body["events"][0]["messages"] == []
        # Also if the turn ends before this arrives.
        reader = asyncio.create_task(attach(app, path=f"{EVENTS}?turnId={body['turnId']}"))
        await asyncio.sleep(0)
        gate.set()
        await exchange.read()
    whole = await reader
    assert whole[0] == (0, "turn.start")
    status, body = await request(app, "GET", "/threads/th")
    assert (body["turnId"], body["lastEventId"]) == (None, f"t:{len(whole) - 1}")
    assert await attach(app, body["lastEventId"]) == []


@pytest.mark.parametrize("last", ["t:99", "t:14", "other:3", "t2:0"])
async def test_what_is_not_served_must_be_resynced(store: ThreadStore, last: str) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("one two"), store=store))
    await run(app, start())
    status, body = await request(app, "GET", EVENTS, headers={"Last-Event-ID": last})
    assert (status, body["error"]["code"]) == (410, "resync_required")


async def test_a_turn_is_served_until_the_next_one_begins(store: ThreadStore) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(lambda i: text("a") if i.turn_id == "t" else waiting("b", "c", gate)(i), store=store))
    await run(app, start())
    async with Exchange(app, "POST", "/", start(said("more", "u2"), turn="t2")) as exchange:
        status, body = await request(app, "GET", EVENTS, headers={"Last-Event-ID": "t:3"})
        assert (status, body["error"]["code"]) == (410, "resync_required")
        gate.set()
        await exchange.read()


@pytest.mark.parametrize("last", ["t", "t:x", "t:-1", "t:01", ":", "%zz:1"])
async def test_an_id_that_is_none_is_refused(last: str) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")))
    await run(app, start())
    status, body = await request(app, "GET", EVENTS, headers={"Last-Event-ID": last})
    assert (status, body["error"]["code"]) == (400, "invalid_event_id")


async def test_a_reader_may_attach_at_the_very_moment_when_the_turn_ends(tmp_path: Path) -> None:
    """In every interleaving of the end of the run with the request: the rest, or nothing; never a gap or an error."""
    for kind in ("memory", "sqlite"):
        folder = tmp_path / kind
        folder.mkdir()
        async with opened(kind, folder) as store:
            for patience in range(25):
                thread = f"th-{patience}"
                gate = asyncio.Event()
                app = AgentApp(ScriptAgent(waiting("one", "two", gate), store=store))
                async with Exchange(app, "POST", "/", start(thread=thread)) as exchange:
                    seen = numbered(await exchange.events(8))
                    gate.set()
                    for _ in range(patience):
                        await asyncio.sleep(0)
                    rest = await attach(app, "t:7", thread_path(thread, "events"))
                    seen += numbered(await exchange.events())
                assert rest == seen[8:]
                assert seen[-1][1] == "turn.done"


async def test_a_reader_that_leaves_does_not_disturb_the_run(store: ThreadStore, gates: Gates) -> None:
    natives = text("one two three")
    for leave_after in range(1, 12):
        gates = Gates()
        thread = f"th-{leave_after}"
        app = AgentApp(ScriptAgent(lambda _, gates=gates: stepwise(gates, natives), store=store))
        async with Exchange(app, "POST", "/", start(thread=thread)) as exchange:
            for index in range(leave_after - 5):
                gates[str(index)].set()
            await exchange.events(leave_after)
        for index in range(len(natives)):
            gates[str(index)].set()
        path = thread_path(thread, "events")
        rest = await attach(app, f"t:{leave_after - 1}", path)
        assert rest[0][0] == leave_after
        assert rest[-1][1] == "turn.done"


async def test_on_disconnect_cancel_stops_the_run_when_its_last_reader_has_gone(store: ThreadStore) -> None:
    gate = asyncio.Event()
    agent = ScriptAgent(waiting("one", "two", gate), store=store)
    app = AgentApp(agent, on_disconnect="cancel")
    async with Exchange(app, "POST", "/", start()) as first:
        await first.events(5)
        async with Exchange(app, "GET", EVENTS) as second:
            await second.events(5)
            await first.leave()
            assert agent.closed == 0
    await until(lambda: agent.closed == 1)

    async def ended() -> bool:
        return (await request(app, "GET", "/threads/th"))[1]["turnId"] is None

    while not await ended():
        await asyncio.sleep(0.002)
    thread = await store.load("th")
    assert thread is not None
    outcome = thread.result.turns[0].outcome
    assert outcome == AbortedOutcome(reason="client-closed")


async def test_a_stream_that_was_kept_no_longer_breaks_off_and_asks_for_a_resync() -> None:
    gate = asyncio.Event()
    words = " ".join(["word"] * 500)
    app = AgentApp(ScriptAgent(waiting("one", words, gate), store=MemoryThreadStore()), replay_bytes=2_000)
    async with Exchange(app, "POST", "/", start(), patient=1) as exchange:
        first = await exchange.events(1)
        gate.set()
        while (await request(app, "GET", "/threads/th"))[1]["turnId"] is not None:
            await asyncio.sleep(0.001)
        exchange.more_patience(1000)
        seen = first + await exchange.events()
    assert [event.seq for event in seen] == list(range(len(seen)))
    assert seen[-1].type != "turn.done"
    status, body = await request(app, "GET", EVENTS, headers={"Last-Event-ID": f"t:{len(seen) - 1}"})
    assert (status, body["error"]["code"]) == (410, "resync_required")
    # The last events are kept.
    assert (await attach(app, "t:505"))[-1][1] == "turn.done"


async def test_a_store_with_a_log_serves_what_the_server_does_not_keep(tmp_path: Path) -> None:
    gate = asyncio.Event()
    words = " ".join(["word"] * 500)
    async with opened("sqlite", tmp_path) as store:
        app = AgentApp(ScriptAgent(waiting("one", words, gate), store=store), replay_bytes=2_000)
        async with Exchange(app, "POST", "/", start(), patient=2) as exchange:
            seen = await exchange.events(1)
            gate.set()
            while (await request(app, "GET", "/threads/th"))[1]["turnId"] is not None:
                await asyncio.sleep(0.001)
            exchange.more_patience(1000)
            seen += await exchange.events()
        await assert_same_as_stored(app, store, "th", seen)
        assert await attach(app, "t:0") == numbered(seen)[1:]


async def test_the_first_bytes_come_at_once_and_silence_is_filled() -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate)), keep_alive=0.02)
    async with Exchange(app, "POST", "/", start()) as exchange:
        seen = len(await exchange.events(8))
        async with Exchange(app, "GET", EVENTS, headers={"Last-Event-ID": f"t:{seen - 1}"}) as reader:
            chunks = reader.chunks()
            assert [await anext(chunks) for _ in range(3)] == [b"retry: 1000\n\n", b":\n\n", b":\n\n"]
            gate.set()
            assert b"text.delta" in await anext(chunks)


@pytest.mark.parametrize(("retry", "told"), [(0.25, 250), (0.0, 0), (None, None)])
async def test_a_stream_tells_its_clients_when_to_come_back(retry: float | None, told: int | None) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")), retry=retry)
    for method, path, body in (("POST", "/", start()), ("GET", f"{EVENTS}?turnId=t", None)):
        async with Exchange(app, method, path, body) as exchange:
            stream = await exchange.read()
        reader = SSEReader()
        assert [message.last_event_id for message in reader.feed(stream)][::10] == ["t:0", "t:10"]
        assert reader.retry == told
        assert stream.count(b"retry:") == (told is not None)


async def test_head_answers_without_a_stream(store: ThreadStore) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate), store=store))
    async with Exchange(app, "POST", "/", start()) as exchange:
        await exchange.events(1)
        async with Exchange(app, "HEAD", EVENTS) as head:
            assert (head.status, await head.read()) == (200, b"")
            assert head.headers["content-type"].startswith("text/event-stream")
        async with Exchange(app, "HEAD", "/threads/th") as head:
            assert (head.status, await head.read()) == (200, b"")
            assert int(head.headers["content-length"]) > 0
        gate.set()
        events = await exchange.events()
    assert not any(isinstance(event, TurnStart) for event in events)


async def test_an_input_that_is_refused_takes_nothing_from_those_who_read(store: ThreadStore) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("one two"), store=store))
    whole = numbered(await run(app, start()))
    assert (await request(app, "POST", "/", results("none")))[0] == 409
    assert await attach(app, "t:3") == whole[4:]
    status, body = await request(app, "GET", "/threads/th")
    assert (status, body["lastEventId"]) == (200, f"t:{len(whole) - 1}")
