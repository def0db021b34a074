"""The example server runs without a key, on a recording, as many conversations at once as one likes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from agjson import AgMessage
from agjson.middleware.client import AgentClient, SyncAgentClient
from examples.anthropic_server import make_app
from tests.support.corpus import ROOT
from tests.support.dialog import Dialog

EXAMPLE = str(ROOT / "examples" / "anthropic_server.py")
SAID = (
    "50 dollars are 46 euros 💶: a dollar buys 0.92 euros. The other way around, 50 euros would be a little over "
    "54 dollars. Rates move all day, so ask again before you change any money."
)


def text_of(message: AgMessage) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


@pytest.fixture(autouse=True)
def without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


async def test_turns_of_one_thread_and_of_several_at_once() -> None:
    app = make_app(seconds_per_event=0)
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app))

    async def converse(client: AgentClient, thread_id: str) -> list[AgMessage]:
        for words in ("What are 50 dollars in euros?", "And now?"):
            turn = client.start(words, thread_id=thread_id)
            async for event in turn:
                assert event.type not in ("error", "turn.error"), event
        return list(turn.result.messages)

    async with http, AgentClient("http://agent", http=http) as client:
        threads = await asyncio.gather(*(converse(client, f"th{number}") for number in range(3)))
    for messages in threads:
        assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"] * 2
        results: Any = [messages[2].content[0], messages[6].content[0]]
        assert [result.content[0].text for result in results] == ["0.92", "0.92"]
        assert [text_of(messages[at]) for at in (3, 7)] == [SAID, SAID]


async def test_the_page_and_its_reader_are_served() -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make_app()), base_url="http://agent") as client:
        page, reader = await client.get("/"), await client.get("/read_stream.mjs")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert './read_stream.mjs"' in page.text
        assert (reader.status_code, reader.headers["content-type"].partition(";")[0]) == (200, "text/javascript")
        assert (await client.get("/capabilities")).status_code == 200


def test_a_thread_outlives_the_server(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLE, "--port", "0", "--store", str(tmp_path / "threads.db")]
    said: list[list[str]] = []
    for words in ("What are 50 dollars in euros?", "And now?"):
        with Dialog(command) as server:
            server.until("Uvicorn running on ")
            with SyncAgentClient(server.until(" (").removesuffix(" (")) as client:
                for _ in (turn := client.start(words, thread_id="th")):
                    pass
                assert turn.outcome is not None
                assert turn.outcome.type == "success"
                said.append([text_of(message) for message in client.snapshot("th").result.messages])
            server.interrupt()
    assert said[0] == ["What are 50 dollars in euros?", "", "", SAID]
    assert said[1] == [*said[0], "And now?", "", "", SAID]


def test_it_says_how_it_is_used() -> None:
    with Dialog([sys.executable, EXAMPLE, "--help"]) as server:
        status, printed = server.wait()
    assert status == 0
    assert "--store FILE" in printed
