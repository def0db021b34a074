"""A thread belongs to who started it; to anybody else it is not there (spec §13)."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from agjson.agents import MemoryThreadStore, SharedThreadStore, Thread, ThreadStore, UnknownThreadError
from agjson.errors import ValidationError
from agjson.middleware.asgi import AgentApp, Forbidden, Refusal, Unauthorized
from agjson.stores import SQLiteThreadStore
from agjson.types import AgInput, StartInput
from tests.support.asgi_client import Exchange, request, run
from tests.support.scripted import ScriptAgent, calls, results, said, start, text, types
from tests.support.served import numbered, opened, waiting


def by_header(request: Request, ag_input: AgInput | None) -> str | None:
    user = request.headers.get("x-user")
    if user is None:
        raise Unauthorized()
    return user or None


ALICE: dict[str, Any] = {"headers": {"x-user": "alice"}}
BOB: dict[str, Any] = {"headers": {"x-user": "bob"}}
NOBODY: dict[str, Any] = {"headers": {"x-user": ""}}

ROUTES = [
    ("GET", "/threads/{}", None),
    ("GET", "/threads/{}/events", None),
    ("GET", "/threads/{}/events?lastEventId=t:0", None),
    ("GET", "/threads/{}/events?turnId=t", None),
    ("POST", "/threads/{}/turns/t/stop", None),
    ("POST", "/", results("c1", thread="{}")),
]


@pytest.mark.parametrize("state", ["running", "ended"])
@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
@pytest.mark.parametrize("who", [BOB, NOBODY], ids=["another", "nobody"])
async def test_a_thread_of_somebody_else_is_not_there(
    store: ThreadStore, state: str, method: str, path: str, body: Any, who: dict[str, Any]
) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate), store=store), authorize=by_header)
    if state == "ended":
        gate.set()

    async def answer(thread_id: str) -> Any:
        given = None if body is None else results("c1", thread=thread_id)
        status, told = await request(app, method, path.format(thread_id), given, **who)
        return status, {**told["error"], "message": told["error"]["message"].replace(repr(thread_id), "{}")}

    async with Exchange(app, "POST", "/", start(), ALICE["headers"]) as exchange:
        await exchange.events(8 if state == "running" else None)
        foreign, absent = await answer("th"), await answer("no")
        gate.set()
        await exchange.read()
    assert foreign == absent
    assert foreign[0] == 404
    assert foreign[1] == {"code": "unknown_thread", "message": "there is no thread {}", "path": "$.threadId"}


@pytest.mark.parametrize("state", ["running", "ended"])
async def test_a_start_on_a_thread_of_somebody_else_says_no_more(store: ThreadStore, state: str) -> None:
    gate = asyncio.Event()
    agent = ScriptAgent(waiting("one", "two", gate), store=store)
    app = AgentApp(agent, authorize=by_header)
    if state == "ended":
        gate.set()
    async with Exchange(app, "POST", "/", start(), ALICE["headers"]) as exchange:
        await exchange.events(8 if state == "running" else None)
        for given in (start(), start(said("x", "u2"), turn="t2")):
            status, body = await request(app, "POST", "/", given, **BOB)
            assert (status, body["error"]) == (
                404,
                {"code": "unknown_thread", "message": "there is no thread 'th'", "path": "$.threadId"},
            )
        gate.set()
        await exchange.read()
    assert len(agent.seen) == 1


async def test_the_owner_goes_on_and_is_stored_with_the_thread(store: ThreadStore) -> None:
    agent = ScriptAgent(lambda i: calls("c1") if i.turn_id == "t" else text("x"), store=store)
    app = AgentApp(agent, authorize=by_header)
    await run(app, start(), **ALICE)
    thread = await store.load("th")
    assert thread is not None and thread.owner == "alice"
    assert types(await run(AgentApp(agent, authorize=by_header), results("c1"), **ALICE))[-1] == "turn.done"
    after = await store.load("th")
    assert after is not None and after.owner == "alice"


async def test_a_thread_of_nobody_is_not_somebodys(store: ThreadStore) -> None:
    agent = ScriptAgent(lambda _: text("x"), store=store)
    await run(AgentApp(agent), start())
    status, body = await request(AgentApp(agent, authorize=by_header), "GET", "/threads/th", **ALICE)
    assert (status, body["error"]["code"]) == (404, "unknown_thread")
    assert (await request(AgentApp(agent, authorize=by_header), "GET", "/threads/th", **NOBODY))[0] == 200


async def test_a_first_turn_of_somebody_else_is_not_seen_from_another_server(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened("sqlite", tmp_path) as store, opened("sqlite", tmp_path) as other_store:
        here = AgentApp(ScriptAgent(waiting("one", "two", gate), store=store), authorize=by_header)
        there = AgentApp(ScriptAgent(lambda _: text("x"), store=other_store), authorize=by_header)
        async with Exchange(here, "POST", "/", start(), ALICE["headers"]) as exchange:
            await exchange.events(8)
            for path in ("/threads/th", "/threads/th/events", "/threads/th/events?lastEventId=t:0"):
                assert (await request(there, "GET", path, **BOB))[0] == 404
                assert (await request(there, "GET", path, **NOBODY))[0] == 404
            assert (await request(there, "POST", "/threads/th/turns/t/stop", **BOB))[0] == 404
            status, body = await request(there, "POST", "/", start(), **BOB)
            assert status in (404, 409)
            assert "turnId" not in body["error"]
            gate.set()
            assert (await exchange.events())[-1].type == "turn.done"


async def test_a_first_turn_is_its_owners_on_every_server(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened("sqlite", tmp_path) as store, opened("sqlite", tmp_path) as other_store:
        here = AgentApp(ScriptAgent(waiting("one", "two", gate), store=store), authorize=by_header, poll=0.01)
        there = AgentApp(ScriptAgent(lambda _: text("x"), store=other_store), authorize=by_header, poll=0.01)
        async with Exchange(here, "POST", "/", start(), ALICE["headers"]) as exchange:
            whole = await exchange.events(8)
            status, body = await request(there, "GET", "/threads/th", **ALICE)
            assert (status, body["turnId"], body["lastEventId"]) == (200, "t", None)
            status, body = await request(there, "POST", "/", start(said("more", "u2"), turn="t2"), **ALICE)
            assert (status, body["error"]["code"], body["error"]["turnId"]) == (409, "thread_busy", "t")
            # In the words of a thread that is not there.
            for path, method, given in (
                ("/", "POST", start(said("more", "u2"), turn="t2")),
                ("/", "POST", results("c1")),
                ("/threads/th/turns/t/stop", "POST", None),
            ):
                for who in (BOB, NOBODY):
                    status, body = await request(there, method, path, given, **who)
                    assert (status, body["error"]["message"]) == (404, "there is no thread 'th'")
            async with Exchange(there, "GET", "/threads/th/events", headers=ALICE["headers"]) as second:
                assert await second.events(8) == whole
                assert (await request(there, "POST", "/threads/th/turns/t/stop", **ALICE))[0] == 202
                whole += await exchange.events()
                assert numbered(await second.events()) == numbered(whole[8:])
        assert whole[-1].type == "turn.abort"


async def test_a_thread_that_was_forgotten_is_anybodys_again() -> None:
    store = MemoryThreadStore()
    app = AgentApp(ScriptAgent(lambda _: text("x"), store=store), authorize=by_header)
    await run(app, start(), **ALICE)
    store.forget("th")
    for who in (ALICE, BOB):
        for path in ("/threads/th", "/threads/th/events?lastEventId=t:0", "/threads/th/events?turnId=t"):
            assert (await request(app, "GET", path, **who))[0] == 404
    assert types(await run(app, start(), **BOB))[-1] == "turn.done"
    assert (await request(app, "GET", "/threads/th", **ALICE))[0] == 404


async def test_what_is_kept_of_a_deleted_thread_is_not_for_the_next_one_of_its_id(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store, opened("sqlite", tmp_path) as other_store:
        here = AgentApp(ScriptAgent(lambda _: text("of alice"), store=store), authorize=by_header)
        there = AgentApp(ScriptAgent(lambda _: text("of bob"), store=other_store), authorize=by_header)
        await run(here, start(), **ALICE)
        assert isinstance(store, SQLiteThreadStore)
        assert await store.delete("th")
        told = await run(there, start(), **BOB)
        async with Exchange(here, "GET", "/threads/th/events?turnId=t", headers=BOB["headers"]) as exchange:
            assert await exchange.events() == told
        assert (await request(here, "GET", "/threads/th/events?turnId=t", **ALICE))[0] == 404


async def test_authorize_sees_the_input_of_a_post_and_none_elsewhere() -> None:
    seen: list[tuple[str, Any]] = []

    async def authorize(request: Request, ag_input: AgInput | None) -> str:
        seen.append((request.url.path, ag_input))
        return "alice"

    app = AgentApp(ScriptAgent(lambda _: text("x")), authorize=authorize)
    await run(app, start())
    for method, path in [
        ("GET", "/threads/th"),
        ("GET", "/threads/th/events"),
        ("POST", "/threads/th/turns/t/stop"),
        ("GET", "/capabilities"),
    ]:
        await request(app, method, path)
    assert isinstance(seen[0][1], StartInput)
    assert [path for path, _ in seen[1:]] == [
        "/threads/th",
        "/threads/th/events",
        "/threads/th/turns/t/stop",
        "/capabilities",
    ]
    assert {given for _, given in seen[1:]} == {None}


@pytest.mark.parametrize(
    ("refuse", "status", "code"),
    [
        (Unauthorized("who are you?"), 401, "unauthorized"),
        (Forbidden(), 403, "forbidden"),
        (PermissionError("the password of root is x"), 403, "forbidden"),
        (HTTPException(429, "slow down"), 429, "too_many_requests"),
        (RuntimeError("the password of root is x"), 500, "internal_error"),
        # Of this library, but not about the input.
        (ValidationError("the password of root is x", "$.session"), 500, "internal_error"),
        (UnknownThreadError("the password of root is x", "$.threadId"), 500, "internal_error"),
        # What has no JSON form.
        (Refusal(409, "password", "x", password=object()), 500, "internal_error"),
    ],
)
async def test_authorize_refuses_by_an_exception(refuse: Exception, status: int, code: str) -> None:
    def authorize(request: Request, ag_input: AgInput | None) -> str:
        raise refuse

    agent = ScriptAgent(lambda _: text("x"))
    for method, path, body in [("POST", "/", start()), ("GET", "/threads/th", None), ("GET", "/capabilities", None)]:
        async with Exchange(AgentApp(agent, authorize=authorize), method, path, body) as exchange:
            told = await exchange.json()
        assert (exchange.status, told["error"]["code"]) == (status, code)
        assert "password" not in str(told)
        assert ("www-authenticate" in exchange.headers) == (status == 401)
    assert agent.seen == []


async def test_authorize_may_answer_by_itself() -> None:
    def authorize(request: Request, ag_input: AgInput | None) -> PlainTextResponse:
        return PlainTextResponse("log in there", 302, {"Location": "/login"})

    app = AgentApp(ScriptAgent(lambda _: text("x")), authorize=authorize)
    async with Exchange(app, "POST", "/", start()) as exchange:
        assert (exchange.status, exchange.headers["location"]) == (302, "/login")
        assert await exchange.read() == b"log in there"


async def test_what_authorize_returns_by_mistake_lets_nobody_in() -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")), authorize=lambda *_: True)  # type: ignore[arg-type,return-value]
    status, body = await request(app, "POST", "/", start())
    assert (status, body["error"]["code"]) == (500, "internal_error")


async def test_a_thread_that_was_made_by_the_host_is_its_owners() -> None:
    store = MemoryThreadStore()
    store.put(Thread(thread_id="th", owner="alice"))
    app = AgentApp(ScriptAgent(lambda _: text("x")), store=store, authorize=by_header)
    assert (await request(app, "POST", "/", start(), **BOB))[0] == 404
    assert types(await run(app, start(), **ALICE))[-1] == "turn.done"


async def test_a_first_turn_whose_server_died_is_still_its_owners(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        app = AgentApp(ScriptAgent(waiting("one", "two", asyncio.Event()), store=store), authorize=by_header)
        async with Exchange(app, "POST", "/", start(), ALICE["headers"]) as exchange:
            await exchange.events(8)
            # Leases that are out when a store is closed are lost runs.
            assert isinstance(store, SharedThreadStore)
            await store.aclose()
            async with opened("sqlite", tmp_path) as next_store:
                after = AgentApp(ScriptAgent(lambda _: text("x"), store=next_store), authorize=by_header)
                status, body = await request(after, "GET", "/threads/th", **ALICE)
                assert (status, body["turnId"]) == (200, None)
                assert (await request(after, "GET", "/threads/th", **BOB))[0] == 404
                async with Exchange(
                    after, "GET", "/threads/th/events?lastEventId=t:7", headers=ALICE["headers"]
                ) as rest:
                    assert [event.type for event in await rest.events()][-1] == "turn.abort"
            await app.aclose()


async def test_an_owner_may_be_a_member_of_an_enumeration_or_a_kind_of_text(store: ThreadStore) -> None:
    class Name(str):
        pass

    class User(StrEnum):
        ALICE = "alice"

    def app(owner: str) -> AgentApp:
        return AgentApp(ScriptAgent(lambda _: text("x"), store=store), authorize=lambda *_: owner)

    assert types(await run(app(Name("alice")), start()))[-1] == "turn.done"
    thread = await store.load("th")
    assert thread is not None and type(thread.owner) is str and thread.owner == "alice"
    for owner in ("alice", User.ALICE):
        assert (await request(app(owner), "GET", "/threads/th"))[0] == 200
