"""The app inside other apps: at any path, with their middleware, with and without their lifespan."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Router
from starlette.testclient import TestClient

from agjson.middleware.asgi import AgentApp
from agjson.wire import encode
from agjson.wire.sse import read_sse
from tests.support.asgi_client import JSON, Exchange, request, run
from tests.support.scripted import ScriptAgent, start, text, types
from tests.support.served import waiting


def starlette_with(app: AgentApp, path: str) -> Any:
    return Starlette(routes=[Mount(path, app)])


def fastapi_with(app: AgentApp, path: str) -> Any:
    host = FastAPI()

    @host.get("/hello")
    def hello() -> str:  # pyright: ignore[reportUnusedFunction]
        return "hello"

    host.mount(path, app)
    return host


def nested_with(app: AgentApp, path: str) -> Any:
    return Starlette(routes=[Mount("/outer", Starlette(routes=[Mount(path, app)]))])


HOSTS: list[tuple[Callable[[AgentApp, str], Any], str]] = [
    (starlette_with, ""),
    (fastapi_with, ""),
    (nested_with, "/outer"),
]


@pytest.mark.parametrize(("host_with", "prefix"), HOSTS)
@pytest.mark.parametrize("path", ["/agent", "/api/v1/agent", ""])
async def test_it_serves_wherever_it_is_mounted(host_with: Any, prefix: str, path: str) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate)))
    host, at = host_with(app, path), prefix + path
    thread = "a%2Fb"
    async with Exchange(host, "POST", f"{at}/", start(thread="a/b")) as exchange:
        assert exchange.status == 200
        assert types(await exchange.events(8))[0] == "turn.start"
        status, body = await request(host, "GET", f"{at}/threads/{thread}")
        assert (status, body["threadId"], body["turnId"]) == (200, "a/b", "t")
        assert (await request(host, "POST", f"{at}/threads/{thread}/turns/t/stop"))[0] == 202
        assert (await exchange.events())[-1].type == "turn.abort"
    assert (await request(host, "GET", f"{at}/threads/{thread}/events/"))[0] == 204
    assert (await request(host, "GET", f"{at}/capabilities"))[0] == 200
    assert (await request(host, "GET", f"{at}/nothing"))[0] == 404


@pytest.mark.parametrize("host_with", [starlette_with, fastapi_with])
def test_a_client_that_leaves_the_slash_out_is_sent_there(host_with: Any) -> None:
    """The host's router answers the path of a mount without its slash, by a redirect that keeps method and body."""
    host = host_with(AgentApp(ScriptAgent(lambda _: text("x"))), "/agent")
    client = TestClient(host)
    answer = client.post("/agent", content=encode(start()), headers=JSON, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "http://testserver/agent/")
    answer = client.post("/agent", content=encode(start()), headers=JSON)
    assert answer.status_code == 200
    assert b"turn.done" in answer.content


@pytest.mark.parametrize("root_path", ["/proxied", "/proxied/"])
@pytest.mark.parametrize("path_has_it", [True, False])
async def test_it_serves_behind_a_root_path(root_path: str, path_has_it: bool) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")))
    prefix = "/proxied" if path_has_it else ""
    assert types(await run(app, start(), f"{prefix}/", root_path=root_path))[-1] == "turn.done"
    assert (await request(app, "GET", f"{prefix}/threads/th", root_path=root_path))[0] == 200


async def test_gzip_leaves_the_stream_alone() -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two " * 1000, gate)))
    host = Starlette(routes=[Mount("/agent", app)], middleware=[Middleware(GZipMiddleware, minimum_size=1)])
    accept = {"accept-encoding": "gzip"}
    async with Exchange(host, "POST", "/agent/", start(), accept) as exchange:
        assert "content-encoding" not in exchange.headers
        assert len(await exchange.events(8)) == 8  # before the run goes on
        gate.set()
        assert (await exchange.events())[-1].type == "turn.done"
    async with Exchange(host, "GET", "/agent/threads/th", headers=accept) as exchange:
        assert exchange.headers["content-encoding"] == "gzip"
        assert b"messages.snapshot" in gzip.decompress(await exchange.read())


async def test_middleware_that_reads_responses_lets_the_stream_through() -> None:
    async def add_header(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-seen"] = "yes"
        return response

    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one", "two", gate)))
    app.add_middleware(BaseHTTPMiddleware, dispatch=add_header)
    async with Exchange(app, "POST", "/", start()) as exchange:
        assert exchange.headers["x-seen"] == "yes"
        await exchange.events(8)
        gate.set()
        assert (await exchange.events())[-1].type == "turn.done"


async def test_cors_is_the_hosts() -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")))
    app.add_middleware(CORSMiddleware, allow_origins=["https://app.example"], allow_methods=["*"], allow_headers=["*"])
    asking = {"origin": "https://app.example", "access-control-request-method": "POST"}
    async with Exchange(app, "OPTIONS", "/", headers=asking) as exchange:
        assert exchange.headers["access-control-allow-origin"] == "https://app.example"
    async with Exchange(app, "POST", "/", start(), {"origin": "https://app.example"}) as exchange:
        assert exchange.headers["access-control-allow-origin"] == "https://app.example"
        await exchange.read()


def test_its_own_lifespan_ends_its_runs() -> None:
    agent = ScriptAgent(lambda _: text("x"))
    app = AgentApp(agent)
    with TestClient(app) as client:
        answer = client.post("/", content=encode(start()), headers=JSON)
        assert [message.last_event_id for message in read_sse([answer.content])][-1] == "t:10"
    with TestClient(app) as client:
        assert client.get("/threads/th").status_code == 200


def test_a_host_enters_the_lifespan_of_the_app_in_its_own() -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")))

    @asynccontextmanager
    async def lifespan(host: FastAPI) -> AsyncIterator[None]:
        async with app.running():
            yield

    host = FastAPI(lifespan=lifespan)
    host.mount("/agent", app)
    with TestClient(host) as client:
        assert client.post("/agent/", content=encode(start()), headers=JSON).status_code == 200
    # The host has ended.
    late = TestClient(host).post("/agent/", content=encode(start(turn="t2")), headers=JSON)
    assert (late.status_code, late.json()["error"]["code"]) == (503, "shutting_down")


@pytest.mark.parametrize("kind", [FastAPI, Starlette])
def test_its_lifespan_can_be_that_of_the_host(kind: Any) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")))
    host = kind(lifespan=app.running)
    host.mount("/agent", app)
    with TestClient(host) as client:
        assert client.post("/agent/", content=encode(start()), headers=JSON).status_code == 200
    late = TestClient(host).post("/agent/", content=encode(start(turn="t2")), headers=JSON)
    assert (late.status_code, late.json()["error"]["code"]) == (503, "shutting_down")


def test_it_needs_no_lifespan() -> None:
    client = TestClient(Router(routes=[Mount("/agent", AgentApp(ScriptAgent(lambda _: text("x"))))]))
    assert b"turn.done" in client.post("/agent/", content=encode(start()), headers=JSON).content
