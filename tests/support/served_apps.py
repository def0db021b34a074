"""Apps for servers in processes of their own: an agent that does what the user tells it.

The user's words are one of: ``say N SECONDS`` (N words, so many seconds apart), ``big N SIZE`` (N words of a size at
once), ``wait SECONDS N SIZE`` (the same after so many seconds), ``flood`` (8 kB each millisecond, for ever),
``hang`` (two words, and then nothing for ever), ``fail`` (two words and an exception), ``tool`` (a call for the client;
its result is repeated), ``ask`` (a question; its answer is repeated).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from agjson.agents import Invocation
from agjson.middleware.asgi import AgentApp
from agjson.stores import SQLiteThreadStore
from agjson.wire import to_dict
from tests.support.scripted import ScriptAgent, calls, text


def commanded(invocation: Invocation) -> Iterator[Any]:
    """The script that the user's words tell."""
    if invocation.results or invocation.answers:
        yield from text(" ".join(_given(invocation)), id="given")
        return
    block: Any = invocation.messages[-1].content[0]
    command, *numbers = block.text.split()
    yield {"do": "message_start", "id": "m"}
    yield {"do": "text_start", "id": "b"}
    if command == "say":
        for index in range(int(numbers[0])):
            yield asyncio.sleep(float(numbers[1]))
            yield {"do": "text_delta", "id": "b", "delta": f"w{index} "}
    elif command in ("tool", "ask"):
        yield {"do": "text_end", "id": "b"}
        yield {"do": "message_end"}
        if command == "tool":
            yield from calls("c1")
        else:
            yield {"do": "hitl_ask", "ask_id": "a1", "kind": "text", "message": "Who?"}
            yield {"do": "turn_paused"}
        return
    elif command == "flood":
        while True:
            yield asyncio.sleep(0.001)
            yield {"do": "text_delta", "id": "b", "delta": "x" * 8000}
    elif command in ("big", "wait"):
        if command == "wait":
            yield asyncio.sleep(float(numbers.pop(0)))
        for _ in range(int(numbers[0])):
            yield {"do": "text_delta", "id": "b", "delta": "x" * int(numbers[1])}
    else:
        yield {"do": "text_delta", "id": "b", "delta": "w0 "}
        yield {"do": "text_delta", "id": "b", "delta": "w1 "}
        if command == "hang":
            yield asyncio.sleep(3600)
        raise RuntimeError("told to fail")
    yield {"do": "text_end", "id": "b"}
    yield {"do": "message_end"}


def _given(invocation: Invocation) -> Iterator[str]:
    for result in invocation.results:
        block: Any = result.content[0]
        yield block.text
    for answer in invocation.answers:
        yield str(to_dict(answer)["reply"])


def plain(path: str | None = None, lease_timeout: float = 30.0, **settings: Any) -> AgentApp:
    """The app itself, on a store in memory or in a file."""
    store = None if path is None else SQLiteThreadStore(path, lease_timeout=lease_timeout)
    return AgentApp(ScriptAgent(commanded), store=store, **settings)


def owned(**settings: Any) -> AgentApp:
    """The same for several people: the header ``x-user`` says who asks."""
    return plain(authorize=lambda request, _: request.headers.get("x-user"), **settings)


def in_fastapi(at: str = "", **settings: Any) -> FastAPI:
    """The app at a path of a FastAPI application that compresses what it can."""
    app = plain(**settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with app.running():
            yield

    host = FastAPI(lifespan=lifespan)
    host.add_middleware(GZipMiddleware, minimum_size=1)
    host.mount(at, app)
    return host
