"""Both kinds of clients against the real server, over sockets, with connections that are cut."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from agjson import AgMessage, AgToolResult, MemoryThreadStore, StartInput, TextBlock, reduce
from agjson.agents import Invocation, ThreadStore
from agjson.middleware.asgi import AgentApp
from agjson.middleware.client import AgentClient, RequestError, SyncAgentClient
from agjson.stores import SQLiteThreadStore
from agjson.wire import from_dict
from tests.support.clients import KINDS, Kind, follow, hello
from tests.support.cutting_proxy import CuttingProxy
from tests.support.scripted import ScriptAgent, calls, text


class Served:
    """A server of its own, in a thread of its own.

    Attributes:
        port: where it listens.
        agent: the agent that it serves.
        gate: what scripts wait for.
    """

    def __init__(self, store: ThreadStore, **options: Any) -> None:
        self.gate = threading.Event()
        self.agent = ScriptAgent(self._script, store=store)
        self.app = AgentApp(self.agent, keep_alive=0.1, poll=0.01, retry=None, **options)
        self.port = 0

    def _script(self, invocation: Invocation) -> list[Any]:
        results: list[Any] = list(invocation.results)
        if results:
            return text(f"found {len(results)}", id=f"x{len(results)}")
        said: Any = invocation.messages[-1].content[0]
        match said.text:
            case "tools":
                return calls("Oslo", "Rome")
            case "wait":
                natives = text("before after")
                return [*natives[:3], self._wait(), *natives[3:]]
            case _:
                return text("Grüße an die ganze Welt")

    async def _wait(self) -> None:
        while not self.gate.is_set():
            await asyncio.sleep(0.005)


@contextmanager
def serving(store: ThreadStore, **options: Any) -> Iterator[Served]:
    served = Served(store, **options)
    listener = socket.create_server(("127.0.0.1", 0))
    served.port = listener.getsockname()[1]
    config = uvicorn.Config(served.app, ws="none", log_level="error", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.gate.set()
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture(params=["memory", "sqlite"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    store: Any = MemoryThreadStore() if request.param == "memory" else SQLiteThreadStore(tmp_path / "threads.sqlite")
    with serving(store) as server:
        yield server
    if request.param == "sqlite":
        asyncio.run(store.aclose())


def result(call: str) -> AgToolResult:
    """What the client found out."""
    return AgToolResult(tool_call_id=call, content=[TextBlock(text="sun")])


async def stored(url: str, thread_id: str = "th") -> Any:
    """The thread as the server has it."""
    async with AgentClient(url) as client:
        return (await client.snapshot(thread_id)).result


@pytest.mark.parametrize("kind", KINDS)
async def test_a_conversation(kind: Kind, served: Served) -> None:
    with CuttingProxy(served.port) as proxy:
        first = await follow(kind, proxy.url, lambda client: client.start("tools", thread_id="th"))
        assert first.error is None
        assert [call.tool_call_id for call in first.turn.open_calls] == ["Oslo", "Rome"]
        second = await follow(kind, proxy.url, lambda client: client.tool_result("th", [result("Rome")]))
        # One result is still missing; this client has not followed the first turn, so it reads the thread.
        resting = await follow(kind, proxy.url, lambda client: client.attach("th"))
        assert [call.tool_call_id for call in resting.turn.open_calls] == ["Oslo"]
        third = await follow(kind, proxy.url, lambda client: client.tool_result("th", [result("Oslo")]))
        assert [followed.error for followed in (second, resting, third)] == [None, None, None]
        assert "found2" in "".join(event.get("delta", "") for event in third.events)
        events = [from_dict(event, "event") for event in [*first.events, *second.events, *third.events]]
        assert reduce(events).result == await stored(proxy.url)


@pytest.mark.parametrize("kind", KINDS)
async def test_wherever_the_answer_is_cut_the_turn_runs_once_and_comes_whole(kind: Kind, served: Served) -> None:
    with CuttingProxy(served.port) as proxy:
        for cut in range(0, 2600, 97):
            thread_id = f"th{cut}"
            proxy.cuts.append(cut)
            followed = await follow(kind, proxy.url, lambda client, id=thread_id: client.start("Hi", thread_id=id))
            assert followed.error is None, cut
            assert followed.seqs == list(range(len(followed.events))), cut
            assert followed.types[0] == "turn.start"
            assert followed.types[-1] == "turn.done"
            assert followed.turn.resyncs == ()
            assert followed.turn.result == await stored(proxy.url, thread_id)
        assert len(served.agent.seen) == 27


@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_that_is_cut_again_and_again(kind: Kind, served: Served) -> None:
    with CuttingProxy(served.port, [500] * 60) as proxy:
        followed = await follow(kind, proxy.url, lambda client: client.start("Hi", thread_id="th"), max_retries=3)
        assert followed.error is None
        assert followed.seqs == list(range(len(followed.events)))
        assert followed.turn.reconnects > 3
        proxy.cuts.clear()
        assert followed.turn.result == await stored(proxy.url)


@pytest.mark.parametrize("kind", KINDS)
async def test_two_clients_follow_one_turn(kind: Kind, served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}"
    async with AgentClient(url) as client:
        turn = client.start("wait", thread_id="th", turn_id="t1")
        first = [await anext(turn)]
        threading.Timer(0.3, served.gate.set).start()
        other = await follow(kind, url, lambda client: client.attach("th"))
        first += [event async for event in turn]
    assert other.error is None
    assert other.turn.result == turn.result == await stored(url)
    # The thread that it began from comes first.
    whole = [from_dict(event, "event") for event in other.events if event["type"] != "messages.snapshot"]
    assert whole == first


@pytest.mark.parametrize("kind", KINDS)
async def test_an_input_that_is_sent_twice_is_followed_twice_and_run_once(kind: Kind, served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}"
    one, two = await follow(kind, url), await follow(kind, url)
    assert one.events == two.events
    assert len(served.agent.seen) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_a_turn_that_is_stopped_comes_to_its_end(kind: Kind, served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}"
    async with AgentClient(url) as client:
        turn = client.start("wait", thread_id="th", turn_id="t1")
        while (await anext(turn)).type != "text.delta":
            continue
        assert await turn.stop() is True
        rest = [event async for event in turn]
        assert rest[-1].type == "turn.abort"
        assert turn.outcome is not None
        assert turn.outcome.type == "aborted"
        assert await turn.stop() is False
        with pytest.raises(RequestError) as raised:
            await client.stop("th", "never")
        assert raised.value.status == 404
    after = await follow(kind, url, lambda client: client.attach("th"))
    assert after.turn.result == turn.result


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_keeps_little_tells_a_late_reader_by_the_snapshot(kind: Kind) -> None:
    with serving(MemoryThreadStore(), replay_bytes=1) as served:
        url = f"http://127.0.0.1:{served.port}"
        followed = await follow(kind, url)
        late = await follow(kind, url, lambda client: client.attach("th", "t1:2"))
    assert late.error is None
    assert late.types == ["messages.snapshot"]
    assert len(late.turn.resyncs) == 1
    assert late.turn.over
    assert late.turn.result == followed.turn.result


async def test_what_the_agent_can_do(served: Served) -> None:
    async with AgentClient(f"http://127.0.0.1:{served.port}") as client:
        assert await client.capabilities() is not None
        turn = hello(client)
        assert await anext(turn)
        await turn.aclose()


def said(client: Any, words: str, message_id: str | None = None) -> Any:
    """The same turn, whatever the words."""
    return client.start(words, thread_id="th", turn_id="t1", message_id=message_id)


async def test_a_turn_that_the_client_has_followed_to_its_end_is_not_followed_for_another_input(served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}"
    async with AgentClient(url) as client:
        first = said(client, "One")
        events = [event async for event in first]
        known = client.known("th")
        for again in (said(client, "Two"), said(client, "One"), said(client, "One", first.result.messages[0].id)):
            with pytest.raises(RequestError, match=r"'t1' is used already.*choose a new one") as raised:
                await anext(again)
            assert (raised.value.code, raised.value.details) == ("turn_id_used", {"turnId": "t1"})
            assert again.outcome is None
        assert client.known("th") == known == reduce(events).result
        # The id is free in another thread, and the thread goes on.
        assert [event.type async for event in client.start("Two", thread_id="other", turn_id="t1")][-1] == "turn.done"
        assert [event.type async for event in client.start("Two", thread_id="th")][-1] == "turn.done"
    assert len(served.agent.seen) == 3


def test_so_it_is_in_plain_code(served: Served) -> None:
    with SyncAgentClient(f"http://127.0.0.1:{served.port}") as client:
        assert list(said(client, "One"))[-1].type == "turn.done"
        with pytest.raises(RequestError) as raised:
            next(said(client, "Two"))
    assert raised.value.code == "turn_id_used"
    assert len(served.agent.seen) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("running", [True, False], ids=["running", "ended"])
@pytest.mark.parametrize(("words", "id"), [("Two", None), ("Two", "u1"), ("wait", None)])
async def test_the_turn_of_another_client_is_told_by_what_its_user_says(
    kind: Kind, served: Served, running: bool, words: str, id: str | None
) -> None:
    url = f"http://127.0.0.1:{served.port}"
    async with AgentClient(url) as theirs:
        first = said(theirs, "wait", "u1")
        assert (await anext(first)).type == "turn.start"
        if not running:
            served.gate.set()
            assert [event.type async for event in first][-1] == "turn.done"
        ours = await follow(kind, url, lambda client: said(client, words, id))
        # While it runs it is another input of a busy thread, and the server says so.
        assert getattr(ours.error, "code", None) == ("thread_busy" if running else "turn_id_used")
        assert "text.delta" not in ours.types
        assert "message.end" not in ours.types
        served.gate.set()
    assert len(served.agent.seen) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_input_from_elsewhere_is_attached_to(kind: Kind, served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}"
    first = await follow(kind, url, lambda client: said(client, "One", "u1"))
    again = await follow(kind, url, lambda client: said(client, "One", "u1"))
    assert (first.error, again.error) == (None, None)
    assert again.events == first.events
    assert len(served.agent.seen) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_a_start_that_repeats_the_conversation_is_attached_to(kind: Kind, served: Served) -> None:
    """What the thread has already is not said again, so of this start the turn has the last message alone."""
    url = f"http://127.0.0.1:{served.port}"
    one, two = (AgMessage(id=id, role="user", content=[TextBlock(text=id)]) for id in ("u1", "u2"))
    whole = StartInput(thread_id="th", turn_id="t2", messages=[one, two])
    await follow(kind, url, lambda client: said(client, "u1", "u1"))
    first = await follow(kind, url, lambda client: client.run(whole))
    again = await follow(kind, url, lambda client: client.run(whole))
    assert (first.error, again.error) == (None, None)
    assert again.events == first.events
    assert next(event["id"] for event in again.events if event["type"] == "message.start") == "u2"
    assert len(served.agent.seen) == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_start_without_messages_does_not_get_the_turn_of_one_with_a_message(kind: Kind, served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}"
    empty = StartInput(thread_id="th", turn_id="t1", messages=[])
    await follow(kind, url, lambda client: said(client, "One", "u1"))
    assert (await follow(kind, url, lambda client: client.run(empty))).code == "turn_id_used"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_turn_whose_events_are_gone_is_told_by_its_snapshot(kind: Kind, tmp_path: Path) -> None:
    with serving(MemoryThreadStore()) as served:
        url = f"http://127.0.0.1:{served.port}"
        await follow(kind, url, lambda client: said(client, "One", "u1"))
        await follow(kind, url, lambda client: client.start("Next", thread_id="th", turn_id="t2"))
        same = await follow(kind, url, lambda client: said(client, "One", "u1"))
        other = await follow(kind, url, lambda client: said(client, "Two"))
    assert (same.error, same.types) == (None, ["messages.snapshot"])
    assert (other.code, other.types) == ("turn_id_used", [])
