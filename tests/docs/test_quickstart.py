"""The five lines of the quickstart and of README.md are five, and they work."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from agjson.middleware.client import AgentClient
from examples.anthropic_server import RECORDING, recorded_client
from tests.support.corpus import ROOT
from tests.support.examples import blocks


def diff_of(page: str) -> list[str]:
    [diff] = [block for block in blocks((ROOT / page).read_text(encoding="utf-8")) if block.language == "diff"]
    return diff.text.splitlines()


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
async def test_the_diff_adds_five_lines_and_serves(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    diff = diff_of(page)
    assert len([line for line in diff if line.startswith("+")]) == 5
    before = "\n".join(line[1:] for line in diff if not line.startswith("+"))
    exec(compile(before, f"{page}, before", "exec"), {})
    names: dict[str, Any] = {}
    # The code makes its own client, so the class is where the recording can come in.
    monkeypatch.setattr("anthropic.AsyncAnthropic", lambda: recorded_client(RECORDING, 0))
    exec(compile("\n".join(line[1:] for line in diff if not line.startswith("-")), page, "exec"), names)
    app = names["app"]
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app))
    async with app.router.lifespan_context(app), http, AgentClient("http://agent/agent", http=http) as client:
        turn = client.start("What are 50 dollars in euros?")
        events: list[Any] = [event async for event in turn]
    # Without the tool on the server, the call is the client's to run.
    assert (events[-1].type, events[-1].finish_reason) == ("turn.done", "tool_call")
    assert [(call.name, call.input) for call in turn.open_calls] == [("get_rate", {"pair": "USD/EUR"})]


def test_both_pages_show_the_same_lines() -> None:
    assert diff_of("README.md") == diff_of("docs/quickstart.md")
