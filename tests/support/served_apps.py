"""Apps for servers in processes of their own: an agent that does what the user tells it.

The user's words are one of: ``say N SECONDS`` (N words, so many seconds apart), ``big N SIZE`` (N words of a size at
once), ``hang`` (two words, and then nothing for ever), ``fail`` (two words and an exception).
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
from tests.support.scripted import ScriptAgent


def commanded(invocation: Invocation) -> Iterator[Any]:
    """The script that the user's words tell."""
    block: Any = invocation.messages[-1].content[0]
    command, *numbers = block.text.split()
    yield {"do": "message_start", "id": "m"}
    yield {"do": "text_start", "id": "b"}
    if command == "say":
        for index in range(int(numbers[0])):
            yield asyncio.sleep(float(numbers[1]))
            yield {"do": "text_delta", "id": "b", "delta": f"w{index} "}
    elif command == "big":
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


def plain(path: str | None = None, lease_timeout: float = 30.0, **settings: Any) -> AgentApp:
    """The app itself, on a store in memory or in a file."""
    store = None if path is None else SQLiteThreadStore(path, lease_timeout=lease_timeout)
    return AgentApp(ScriptAgent(commanded), store=store, **settings)


def in_fastapi(**settings: Any) -> FastAPI:
    """The app at the root of a FastAPI application that compresses what it can."""
    app = plain(**settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with app.running():
            yield

    host = FastAPI(lifespan=lifespan)
    host.add_middleware(GZipMiddleware, minimum_size=1)
    host.mount("", app)
    return host
