"""What tests of the agent on the Messages API share: clients of both kinds, ways to run, and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic

from agjson.types import AgStreamEvent
from tests.support.anthropic_wire import START, block, end, text
from tests.support.messages_server import Answer, MessagesServer, Native
from tests.support.scripted import Session

HELLO = Answer([START, *text("Hel", "lo"), *end()])
WEATHER = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}

Way = Callable[[Session, Any], list[AgStreamEvent]]


def client(server: MessagesServer, kind: Any = Anthropic) -> Any:
    return kind(api_key="key", base_url=server.url, max_retries=0, timeout=20)


def call(id: str, name: str = "weather", *parts: str, index: int = 0) -> list[Native]:
    pieces = [{"type": "input_json_delta", "partial_json": part} for part in parts or ('{"city": ', '"Bonn"}')]
    return block({"type": "tool_use", "id": id, "name": name, "input": {}}, *pieces, index=index)


def calls(*ids: str, name: str = "weather") -> Answer:
    events = [event for index, id in enumerate(ids) for event in call(id, name, index=index)]
    return Answer([START, *events, *end("tool_use")])


def _in_a_loop(session: Session, ag_input: Any) -> list[AgStreamEvent]:
    return asyncio.run(session.run(ag_input))


def _without_a_loop(session: Session, ag_input: Any) -> list[AgStreamEvent]:
    return session.run_sync(ag_input)


ways = pytest.mark.parametrize(
    ("kind", "way"),
    [
        (Anthropic, _without_a_loop),
        (Anthropic, _in_a_loop),
        (AsyncAnthropic, _in_a_loop),
        (AsyncAnthropic, _without_a_loop),
    ],
    ids=["blocking", "blocking in a loop", "asynchronous", "asynchronous without a loop"],
)


class Tools:
    """Tools of both kinds that count how often they run."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int]] = []

    def of(self, kind: Any) -> Any:
        from anthropic.lib.tools import ToolError, beta_async_tool, beta_tool

        def work(a: int, b: int) -> str:
            self.ran.append((a, b))
            if b == 0:
                raise ToolError("b must not be 0")
            return str(a // b)

        if kind is AsyncAnthropic:

            async def divide(a: int, b: int) -> str:
                """Divide."""
                return work(a, b)

            return beta_async_tool(divide)

        def divide_(a: int, b: int) -> str:
            """Divide."""
            return work(a, b)

        return beta_tool(divide_, name="divide")
