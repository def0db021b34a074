"""The five lines of the page on LangGraph are five, and they work."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from agjson.middleware.client import AgentClient
from agjson.wire import answer_to
from examples.langgraph_server import ScriptedModel
from tests.support.corpus import ROOT
from tests.support.examples import blocks

PAGE = "docs/adapters/langgraph.md"


def diff_of(page: str) -> list[str]:
    [diff] = [block for block in blocks((ROOT / page).read_text(encoding="utf-8")) if block.language == "diff"]
    return diff.text.splitlines()


async def test_the_diff_adds_five_lines_and_an_approval_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    # The code names its model, so the place that makes it is where the script can come in.
    monkeypatch.setattr("langchain.agents.factory.init_chat_model", lambda *_, **__: ScriptedModel())
    diff = diff_of(PAGE)
    assert len([line for line in diff if line.startswith("+")]) == 5
    before = "\n".join(line[1:] for line in diff if not line.startswith("+"))
    exec(compile(before, f"{PAGE}, before", "exec"), {})
    names: dict[str, Any] = {}
    exec(compile("\n".join(line[1:] for line in diff if not line.startswith("-")), PAGE, "exec"), names)
    app = names["app"]
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app))
    async with app.router.lifespan_context(app), http, AgentClient("http://agent/agent", http=http) as client:
        async for _ in (turn := client.start("Write to Ann.", thread_id="th")):
            pass
        (ask,) = turn.open_asks
        assert (ask.kind, ask.tool_call_id) == ("approval", "call-1")
        events: list[Any] = [event async for event in client.resume("th", [answer_to(ask)])]
    assert [event.outcome for event in events if event.type == "tool.done"] == ["ok"]
    assert (events[-1].type, events[-1].outcome.type) == ("turn.done", "success")
