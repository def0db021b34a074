"""An agent on the Messages API behind one endpoint: `make serve`, then open http://127.0.0.1:8000, or `make chat`.

With ANTHROPIC_API_KEY it asks the provider. Without a key the provider's own client is answered from a recording, so
that nothing reaches the network: whatever is asked, it converts 50 dollars.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import uvicorn
from anthropic import AsyncAnthropic, beta_async_tool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Mount, Route

from agjson.adapters.anthropic import AnthropicAgent
from agjson.middleware.asgi import AgentApp
from agjson.stores import SQLiteThreadStore
from agjson.testing.cassettes import read_cassette

EXAMPLES = Path(__file__).resolve().parent
RECORDING = EXAMPLES / "recording.yaml"

# A recording answers at once; an event a moment makes it look as it did when it was made.
SECONDS_PER_EVENT = 0.1


@beta_async_tool
async def get_rate(pair: str) -> str:
    """Get the exchange rate of a pair of currencies, such as USD/EUR."""
    return {"USD/EUR": "0.92", "EUR/USD": "1.09"}.get(pair, "unknown")


def make_app(store: str | None = None, seconds_per_event: float = SECONDS_PER_EVENT) -> Starlette:
    """The agent at `POST /`, and a page for browsers at `GET /`.

    `store` is the file of the threads; None: in memory.
    """
    client = AsyncAnthropic() if os.environ.get("ANTHROPIC_API_KEY") else recorded_client(RECORDING, seconds_per_event)
    agent = AnthropicAgent(client, model="claude-sonnet-5-5", tools=[get_rate])
    app = AgentApp(agent, store=SQLiteThreadStore(store) if store else None)
    files = [Route("/", _file("page.html")), Route("/read_stream.mjs", _file("read_stream.mjs"))]
    return Starlette(routes=[*files, Mount("/", app)], lifespan=app.running)


def recorded_client(recording: Path, seconds_per_event: float) -> AsyncAnthropic:
    """The provider's client, answered from a recording: the first answer to words, the next ones to tool results."""
    answers = [(exchange.headers, exchange.body) for exchange in read_cassette(recording)]

    async def events(body: bytes) -> AsyncIterator[bytes]:
        for event in body.split(b"\n\n"):
            yield event + b"\n\n"
            await asyncio.sleep(seconds_per_event)

    def answer(request: httpx2.Request) -> httpx2.Response:
        messages = json.loads(request.content)["messages"]
        given = 0
        while given < len(answers) - 1 and _holds_results(messages[-1 - 2 * given]):
            given += 1
        headers, body = answers[given]
        return httpx2.Response(200, headers=headers, content=events(body))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return AsyncAnthropic(api_key="not-needed", max_retries=0, http_client=http)


def _holds_results(message: dict[str, object]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == "tool_result" for block in content)


def _file(name: str) -> Callable[[Request], FileResponse]:
    return lambda _: FileResponse(EXAMPLES / name)


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument("--port", default=8000, type=int, help="the port (default: %(default)s)")
    parser.add_argument("--store", metavar="FILE", help="keep the threads in this SQLite file, not in memory")
    arguments = parser.parse_args()
    uvicorn.run(make_app(arguments.store), host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
