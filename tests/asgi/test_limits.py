"""How much a client may ask for, and what paths and methods there are: every answer is JSON and says why."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agjson.agents import Agent, MemoryThreadStore, Thread
from agjson.middleware.asgi import AgentApp, Denial, Refusal, Trust
from agjson.stores import SQLiteThreadStore
from agjson.types import AgInput
from agjson.wire import encode, to_dict
from tests.support.asgi_client import JSON, Exchange, request, run, thread_path
from tests.support.scripted import ScriptAgent, said, start, text, types
from tests.support.served import waiting

EVENTS = "/threads/th/events"


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_over_the_limit_is_refused_before_it_is_read(declared: bool) -> None:
    taken = 0
    agent = ScriptAgent(lambda _: text("x"))
    app = AgentApp(agent, max_body_bytes=1000)
    pieces = [b"x" * 100 for _ in range(100)]
    headers = JSON | ({"content-length": "10000"} if declared else {})
    exchange = Exchange(app, "POST", "/", pieces, headers)
    receive = exchange._receive  # pyright: ignore[reportPrivateUsage]

    async def counting() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return await receive()

    exchange._receive = counting  # type: ignore[method-assign]
    async with exchange:
        body = await exchange.json()
    assert (exchange.status, body["error"]["code"]) == (413, "too_large")
    assert taken == (0 if declared else 11)


async def test_a_body_of_just_the_limit_is_taken() -> None:
    body = encode(start())
    agent = ScriptAgent(lambda _: text("x"))
    for limit, status in ((len(body), 200), (len(body) - 1, 413)):
        async with Exchange(AgentApp(agent, max_body_bytes=limit), "POST", "/", body, JSON) as exchange:
            assert exchange.status == status
            await exchange.read()


async def test_a_client_that_leaves_while_it_sends_leaves_nothing_behind() -> None:
    agent = ScriptAgent(lambda _: text("x"))
    app = AgentApp(agent)
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError("nobody is there")

    scope = {"type": "http", "method": "POST", "path": "/", "raw_path": b"/", "query_string": b"", "headers": []}
    scope["headers"] = [(b"content-type", b"application/json")]
    await app(scope, receive, send)
    assert agent.seen == []


async def test_open_runs_are_limited_in_all_and_for_each_owner() -> None:
    gate = asyncio.Event()

    def who(request: Any, ag_input: Any) -> str:
        return request.headers["x-user"]

    agent = ScriptAgent(waiting("one", "two", gate))
    app = AgentApp(agent, authorize=who, max_runs=3, max_runs_per_owner=2)
    open_runs: list[Exchange] = []
    for user, thread, status in [("a", "1", 200), ("a", "2", 200), ("a", "3", 429), ("b", "4", 200), ("c", "5", 429)]:
        exchange = Exchange(app, "POST", "/", start(thread=thread), {"x-user": user})
        await exchange.__aenter__()
        assert exchange.status == status, (user, thread)
        if status == 429:
            assert exchange.headers["retry-after"] == "1"
            assert (await exchange.json())["error"]["code"] == "too_many_runs"
            await exchange.leave()
        else:
            open_runs.append(exchange)
    gate.set()
    for exchange in open_runs:
        assert (await exchange.events())[-1].type == "turn.done"
        await exchange.leave()
    assert types(await run(app, start(thread="5"), headers={"x-user": "c"}))[-1] == "turn.done"


async def test_open_streams_are_limited_and_given_back() -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate)), max_readers=2)
    async with Exchange(app, "POST", "/", start()) as first:
        await first.events(1)
        async with Exchange(app, "GET", EVENTS) as second:
            assert second.status == 200
            status, body = await request(app, "GET", EVENTS)
            assert (status, body["error"]["code"]) == (429, "too_many_readers")
            status, body = await request(app, "POST", "/", start(thread="other"))
            assert (status, body["error"]["code"]) == (429, "too_many_readers")
        async with Exchange(app, "GET", EVENTS) as third:
            assert third.status == 200
            gate.set()
            assert (await third.events())[-1].type == "turn.done"
    assert (await request(app, "GET", "/threads/other"))[0] == 404


async def test_streams_that_are_opened_at_once_do_not_slip_past_the_limit(tmp_path: Path) -> None:
    async with SQLiteThreadStore(tmp_path / "threads.sqlite") as store:
        gate = asyncio.Event()
        app = AgentApp(ScriptAgent(waiting("one", "two", gate), store=store), max_readers=3)
        async with Exchange(app, "POST", "/", start()) as first, AsyncExitStack() as stack:
            await first.events(1)
            others = [Exchange(app, "GET", EVENTS) for _ in range(20)]
            await asyncio.gather(*(stack.enter_async_context(other) for other in others))
            assert sorted(other.status or 0 for other in others) == [200] * 2 + [429] * 18
            gate.set()


async def test_what_is_kept_of_ended_turns_is_limited() -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x" * 1000)), store=MemoryThreadStore(), replay_bytes=5_000)
    for index in range(10):
        await run(app, start(thread=f"th-{index}"))
    served = [
        (await request(app, "GET", thread_path(f"th-{index}", "events"), headers={"Last-Event-ID": "t:3"}))[0]
        for index in range(10)
    ]
    assert served[0] == 410
    assert served[-1] == 200
    assert sorted(served, reverse=True) == served
    assert served.count(200) < 5


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "allow"),
    [
        ("GET", "/", 405, "method_not_allowed", "POST, OPTIONS"),
        ("PUT", "/threads/th", 405, "method_not_allowed", "GET, HEAD, OPTIONS"),
        ("POST", "/threads/th/events", 405, "method_not_allowed", "GET, HEAD, OPTIONS"),
        ("GET", "/threads/th/turns/t/stop", 405, "method_not_allowed", "POST, OPTIONS"),
        ("DELETE", "/capabilities", 405, "method_not_allowed", "GET, HEAD, OPTIONS"),
        ("GET", "/nothing", 404, "not_found", None),
        ("GET", "/threads", 404, "not_found", None),
        ("GET", "/threads/", 404, "not_found", None),
        ("GET", "/threads/th/turns", 404, "not_found", None),
        ("GET", "/threads/%ff", 404, "not_found", None),
    ],
)
async def test_what_there_is_not(method: str, path: str, status: int, code: str, allow: str | None) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")))
    async with Exchange(app, method, path) as exchange:
        body = await exchange.json()
    assert (exchange.status, body["error"]["code"]) == (status, code)
    assert exchange.headers.get("allow") == allow


@pytest.mark.parametrize(
    "path", ["/", "/threads/th", "/threads/th/events", "/threads/th/turns/t/stop", "/capabilities"]
)
async def test_options_says_what_goes(path: str) -> None:
    async with Exchange(AgentApp(ScriptAgent(lambda _: ())), "OPTIONS", path) as exchange:
        assert (exchange.status, await exchange.read()) == (204, b"")
    assert "OPTIONS" in exchange.headers["allow"]


@pytest.mark.parametrize(
    "thread_id",
    ["a/b", "a b", "?x=1#y", "..", "é\n\0", "100%", "a%2Fb", "events", "\ud800", "threads/x/events", "/", "😀"],
)
async def test_ids_may_hold_any_character(thread_id: str) -> None:
    store = MemoryThreadStore()
    store.put(Thread(thread_id=thread_id))
    app = AgentApp(ScriptAgent(lambda _: text("x"), store=store))

    def path(*rest: str) -> str:
        parts = [quote(part.encode("utf-8", "surrogatepass"), safe="") for part in (thread_id, *rest)]
        return "/".join(["/threads", *parts])

    status, body = await request(app, "GET", path())
    assert (status, body["threadId"]) == (200, thread_id)
    await run(app, start(thread=thread_id, turn=thread_id))
    status, body = await request(app, "POST", path("turns", thread_id, "stop"))
    assert (status, body["error"]["code"]) == (409, "turn_ended")
    async with Exchange(app, "GET", path("events") + "/" + "?lastEventId=" + "x:1") as exchange:
        assert exchange.status == 410


async def test_a_fault_of_the_server_is_told_by_its_name_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryThreadStore):
        async def load(self, thread_id: str) -> Thread | None:
            raise RuntimeError("disk /dev/secret is full")

    for debug in (False, True):
        app = AgentApp(ScriptAgent(lambda _: text("x")), store=Broken(), debug=debug)
        status, body = await request(app, "GET", "/threads/th")
        assert (status, body["error"]["code"]) == (500, "internal_error")
        assert ("/dev/secret" in body["error"]["message"]) is debug
        assert body["error"]["errorId"] in caplog.text
    assert "disk /dev/secret is full" in caplog.text
    assert "Traceback" in caplog.text


async def test_capabilities_are_what_the_agent_says(caplog: pytest.LogCaptureFixture) -> None:
    agent: Agent = ScriptAgent(lambda _: ())
    assert await request(AgentApp(agent), "GET", "/capabilities") == (200, {"streaming": {"partialMessages": True}})
    silent = ScriptAgent(lambda _: (), capabilities=None)
    assert await request(AgentApp(silent), "GET", "/capabilities") == (200, {})


async def test_a_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await AgentApp(ScriptAgent(lambda _: ()))({"type": "websocket", "path": "/", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_body_bytes": 0},
        {"max_runs": 0},
        {"keep_alive": 0},
        {"coalesce": -1},
        {"max_runs_per_owner": 0},
        {"poll": 0},
    ],
    ids=str,
)
def test_limits_are_positive(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        AgentApp(ScriptAgent(lambda _: ()), **settings)


async def test_200_slow_readers_share_what_they_read() -> None:
    """The frames of a turn are held once, whoever reads them and however slowly."""
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", " ".join(["word"] * 2000), gate)))
    readers: list[Exchange] = []
    async with Exchange(app, "POST", "/", start()) as exchange:
        await exchange.events(8)
        for _ in range(200):
            reader = Exchange(app, "GET", EVENTS, patient=0)
            await reader.__aenter__()
            readers.append(reader)
        gate.set()
        whole = await exchange.read()
        assert b"turn.done" in whole
        for reader in readers:
            reader.more_patience(100)
        bodies = {await reader.read() for reader in readers}
    for reader in readers:
        await reader.leave()
    assert len(bodies) == 1
    assert bodies.pop().count(b"data: ") == 2000 + 8 + 3


def test_every_error_has_the_same_shape() -> None:
    refusal = Refusal(409, "thread_busy", "busy", path="$.threadId", turnId="t")
    assert json.loads(encode(refusal.body())) == {
        "error": {"code": "thread_busy", "message": "busy", "path": "$.threadId", "turnId": "t"}
    }


async def test_a_second_turn_of_the_thread_waits_for_the_first(caplog: pytest.LogCaptureFixture) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate)))
    async with Exchange(app, "POST", "/", start()) as exchange:
        await exchange.events(1)
        gate.set()
        await exchange.read()
        # The terminal has been delivered: the next input may follow at once.
        assert types(await run(app, start(said("x", "u2"), turn="t2")))[-1] == "turn.done"


@pytest.mark.parametrize("member", ["threadId", "turnId"])
@pytest.mark.parametrize(
    ("character", "count", "status"),
    [("x", 0, 400), ("x", 1024, 200), ("x", 1025, 400), ("é", 512, 200), ("é", 513, 400)],
)
async def test_ids_that_every_event_repeats_are_short(member: str, character: str, count: int, status: int) -> None:
    agent = ScriptAgent(lambda _: text("x"))
    app = AgentApp(agent)
    answered, body = await request(app, "POST", "/", {**to_dict(start()), member: character * count})
    assert answered == status
    if status == 400:
        error = {
            "code": "invalid_input",
            "message": f"`{member}` must have 1 to 1024 bytes in UTF-8",
            "path": f"$.{member}",
        }
        assert body == {"error": error}
        assert agent.seen == []


async def test_a_long_body_is_looked_into_beside_the_event_loop() -> None:
    looked: list[threading.Thread] = []

    class Watching(Trust):
        def first_denial(self, ag_input: AgInput, thread: Thread | None = None) -> Denial | None:
            looked.append(threading.current_thread())
            return super().first_denial(ag_input, thread)

    app = AgentApp(ScriptAgent(lambda _: text("x")), trust=Watching())
    await run(app, start(said("short", "u1")))
    await run(app, start(said("long " * 10_000, "u2"), turn="t2"))
    assert [thread is threading.current_thread() for thread in looked] == [True, False]
