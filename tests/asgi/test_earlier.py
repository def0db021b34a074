"""A running turn whose beginning is kept no more: its snapshot and the events after it are the whole (INV-FOLD)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st

from agjson.agents import Invocation, MemoryThreadStore
from agjson.fold import Reducer
from agjson.middleware.asgi import AgentApp
from agjson.middleware.asgi.earlier import Earlier
from agjson.middleware.asgi.relay import Framer, Relay
from agjson.middleware.client import AgentClient
from agjson.testing import StreamOptions, streams
from agjson.types import AgReduceResult, AgStreamEvent, MessageEnd, MessageRemove, MessageStart
from agjson.wire import from_dict, to_dict
from tests.support.asgi_client import Exchange, request, run
from tests.support.properties import by_axis, examples
from tests.support.scripted import Native, ScriptAgent, deltas, said, start, text
from tests.support.served import Gates

EMPTY = AgReduceResult(messages=[], artifacts=[], memory=[], turns=[])


def fold_of(result: AgReduceResult, events: list[AgStreamEvent]) -> Any:
    """The fold; None: it parks."""
    reducer = Reducer(result)
    for event in events:
        reducer.push(event)
    return None if reducer.needs_resync else to_dict(by_axis(reducer.result()))


def open_messages(events: list[AgStreamEvent]) -> int:
    opened = set[str]()
    for event in events:
        if isinstance(event, MessageStart):
            opened.add(event.id)
        elif isinstance(event, MessageEnd) or (isinstance(event, MessageRemove) and event.id != "*"):
            opened.discard(event.id)
    return len(opened)


@given(
    events=streams(StreamOptions(max_invokes=1, min_events=20, truncated=False, without=("message.remove",))),
    kept=st.integers(200, 5000),
    asked=st.sets(st.integers(0, 60)),
)
@examples(150)
def test_a_snapshot_and_what_follows_it_are_the_whole(events: list[AgStreamEvent], kept: int, asked: set[int]) -> None:
    whole = fold_of(EMPTY, events)
    assert whole is not None
    earlier = Earlier(EMPTY)
    relay = Relay("t", max_bytes=kept, on_drop=earlier.take)
    framer = Framer("t")
    for at, event in enumerate(events):
        relay.publish(framer.frames([event]))
        assert earlier.has_begun == (relay.base > 0)
        if not earlier.has_begun or at not in asked:
            continue
        result, last = earlier.snapshot(relay)
        assert relay.base - 1 <= last <= at
        after = fold_of(result, events[last + 1 :])
        # The latest moment without an open message that is still followed by what is kept.
        moments = [place for place in range(relay.base - 1, at + 1) if not open_messages(events[: place + 1])]
        if moments:
            note("exact")
            assert last == moments[-1]
            assert after == whole
        else:
            note("inside a message")
            assert last == at
            assert after in (None, whole)


def chapters(gates: Gates) -> Any:
    """A turn of messages of forty deltas, each of which waits for its gate, and the last one halfway too."""

    def script(invocation: Invocation) -> Iterator[Any]:
        for number in range(4):
            yield gates[str(number)].wait()
            natives: list[Native] = text(" ".join(["word"] * 40), id=f"x{number}")
            if number == 3:
                yield from natives[:20]
                yield gates["half"].wait()
                natives = natives[20:]
            yield from natives

    return script


async def read_to_the_middle(exchange: Exchange) -> list[AgStreamEvent]:
    """Up to the middle of the last message."""
    seen: list[AgStreamEvent] = []
    while len(deltas(seen)) < 3 * 40 + 18:
        more = await exchange.events(1)
        assert more
        seen += more
    return seen


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_reader_comes_in_between_two_messages_of_a_long_turn(gates: Gates, is_first: bool) -> None:
    store = MemoryThreadStore()
    agent = ScriptAgent(lambda i: text("before") if i.turn_id == "t0" else chapters(gates)(i), store=store)
    app = AgentApp(agent, replay_bytes=9_000)
    if not is_first:
        assert (await run(app, start(turn="t0")))[-1].type == "turn.done"
    async with Exchange(app, "POST", "/", start(said("go", "u1"))) as exchange:
        for number in range(3):
            gates[str(number)].set()
        gates["3"].set()
        whole = await read_to_the_middle(exchange)
        status, body = await request(app, "GET", "/threads/th")
        assert (status, body["turnId"]) == (200, "t")
        last = int(body["lastEventId"].removeprefix("t:"))
        # After the third message, whose end is kept.
        assert (whole[last].type, whole[last + 1].type) == ("message.end", "message.start")
        reducer = Reducer()
        for event in body["events"]:
            reducer.push(from_dict(event, as_="event"))
        assert (await request(app, "GET", "/threads/th/events?turnId=t"))[0] == 410
        async with Exchange(app, "GET", "/threads/th/events", headers={"Last-Event-ID": body["lastEventId"]}) as reader:
            gates["half"].set()
            rest = await reader.events()
        whole += await exchange.events()
    assert rest == whole[last + 1 :]
    for event in rest:
        reducer.push(event)
    thread = await store.load("th")
    assert thread is not None and not reducer.needs_resync
    assert to_dict(reducer.result()) == to_dict(thread.result)


@pytest.mark.parametrize("replay_bytes", [9_000, 1_500], ids=["between two messages", "inside one"])
async def test_the_client_attaches_to_such_a_turn(gates: Gates, replay_bytes: int) -> None:
    store = MemoryThreadStore()
    app = AgentApp(ScriptAgent(chapters(gates), store=store), replay_bytes=replay_bytes)
    transport = httpx.ASGITransport(app)
    async with Exchange(app, "POST", "/", start()) as exchange:
        for name in "0123":
            gates[name].set()
        await read_to_the_middle(exchange)
        async with AgentClient("http://agent", http=httpx.AsyncClient(transport=transport)) as client:
            # httpx hands on what an ASGI app answers when it has ended.
            asyncio.get_running_loop().call_later(0.1, gates["half"].set)
            turn = client.attach("th")
            events = [event async for event in turn]
        await exchange.events()
    thread = await store.load("th")
    assert thread is not None
    assert turn.over and turn.outcome is not None and turn.outcome.type == "success"
    assert events[0].type == "messages.snapshot"
    assert to_dict(turn.result) == to_dict(thread.result)
