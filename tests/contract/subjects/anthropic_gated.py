"""The agent on the Messages API with tools that need a person, on the provider's real clients without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from anthropic import Anthropic, AsyncAnthropic, DefaultHttpxClient
from anthropic.lib.tools import beta_async_tool, beta_tool

from agjson.adapters.anthropic import AnthropicAgent
from agjson.testing.contract import GatedReply, GatedScene, Gating
from tests.support.anthropic_rules import broken_rules
from tests.support.anthropic_wire import START, Native, block, end, text

# The client's own: versions of it go by another package of the same shape.
httpx: Any = import_module(DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])

__all__ = ["GATING", "asynchronous", "blocking", "faults"]


def natives(reply: GatedReply) -> Iterator[Native]:
    """A reply of the model as the API streams it."""
    yield START
    yield from text(reply.words)
    for index, call in enumerate(reply.calls, 1):
        part = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        yield from block(
            {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}},
            part,
            index=index,
        )
    yield from end("tool_use" if reply.calls else "end_turn")


def _transport(scene: GatedScene) -> Any:
    def answer(request: Any) -> Any:
        reply = scene.reply(json.loads(request.content))
        body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in natives(reply))
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body.encode())

    return httpx.MockTransport(answer)


def blocking(scene: GatedScene) -> AnthropicAgent:
    """The agent on ``Anthropic``."""

    def tool(name: str) -> Any:
        def run(to: str) -> str:
            """Do something."""
            return scene.run_tool(name, {"to": to})

        return beta_tool(run, name=name)

    http = httpx.Client(transport=_transport(scene))
    client = Anthropic(api_key="key", base_url="http://model.test", max_retries=0, http_client=http)
    return _agent(client, scene, [tool(name) for name in scene.tools])


def asynchronous(scene: GatedScene) -> AnthropicAgent:
    """The agent on ``AsyncAnthropic``."""

    def tool(name: str) -> Any:
        async def run(to: str) -> str:
            """Do something."""
            return scene.run_tool(name, {"to": to})

        return beta_async_tool(run, name=name)

    http = httpx.AsyncClient(transport=_transport(scene))
    client = AsyncAnthropic(api_key="key", base_url="http://model.test", max_retries=0, http_client=http)
    return _agent(client, scene, [tool(name) for name in scene.tools])


def _agent(client: Any, scene: GatedScene, tools: list[Any]) -> AnthropicAgent:
    return AnthropicAgent(client, model="claude-contract", tools=tools, gated=scene.gated, **scene.settings)


def faults(request: Any) -> list[str]:
    """What the API would refuse in a request."""
    return broken_rules(request["messages"])


GATING = Gating(agents={"blocking": blocking, "asynchronous": asynchronous}, request_faults=faults)
"""How the adapter lets people approve tools."""
