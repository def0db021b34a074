"""The agent of LangChain waits for an approval over a restart of its server; the chat is its user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agjson.middleware.client import RequestError, SyncAgentClient
from agjson.wire import answer_to
from tests.examples.test_chat import chat
from tests.support.dialog import Dialog

EXAMPLE = ["-m", "examples.langgraph_server"]
CALL = '→ send_mail {"to":"ann","text":"See you at noon."}\n'
ASKED = "? Send this mail? [yes, or no and why]: "
RAN = "send_mail runs: ann: See you at noon."


@contextmanager
def serving(store: Path, port: str = "0") -> Iterator[tuple[Dialog, str]]:
    """The example, and its address."""
    with Dialog([sys.executable, *EXAMPLE, "--port", port, "--store", str(store)]) as server:
        server.until("Uvicorn running on ")
        yield server, server.until(" (").removesuffix(" (")


def test_it_is_stopped_while_it_waits_and_goes_on_when_it_is_answered(tmp_path: Path) -> None:
    store = tmp_path / "threads.db"
    with serving(store) as (first, url), chat(url) as dialog:
        dialog.until("> ")
        dialog.type("Write to Ann.")
        said = dialog.until(ASKED)
        assert "I write to Ann.\n" in said and CALL in said
        status, printed = first.interrupt()
        assert status in (0, -2, 130) and RAN not in printed
        with serving(store, url.rpartition(":")[2]) as (second, _):
            dialog.type("yes")
            assert dialog.until("\n> ") == "← Sent to ann.\nThe mail: Sent to ann.\n> "
            assert dialog.end()[0] == 0
            assert second.interrupt()[1].count(RAN) == 1


def test_who_says_no_is_heard_and_the_talk_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path / "threads.db") as (server, url), chat(url) as dialog:
        dialog.until("> ")
        dialog.type("Write to Ann.")
        dialog.until(ASKED)
        dialog.type("no not now")
        said = dialog.until("\n> ")
        assert said.startswith("← denied: ") and "not now" in said
        dialog.type("Then later.")
        assert CALL in dialog.until(ASKED)
        dialog.type("yes")
        assert "← Sent to ann.\n" in dialog.until("\n> ")
        assert server.interrupt()[1].count(RAN) == 1


def test_an_answer_counts_once_over_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "threads.db"
    with serving(store) as (first, url), SyncAgentClient(url) as client:
        for _ in (turn := client.start("Write to Ann.", thread_id="th")):
            pass
        (ask,) = turn.open_asks
        assert ask.token is not None
        assert [choice.id for choice in ask.choices or ()] == ["approve", "reject"]
        first.interrupt()
    with serving(store) as (second, url), SyncAgentClient(url) as client:
        assert client.snapshot("th").asks == [ask]
        for _ in (turn := client.resume("th", [answer_to(ask)])):
            pass
        assert turn.outcome is not None and turn.outcome.type == "success"
        roles = [message.role for message in client.snapshot("th").result.messages]
        assert roles == ["user", "assistant", "tool", "assistant"]
        with pytest.raises(RequestError) as refused:
            list(client.resume("th", [answer_to(ask)]))
        assert (refused.value.code, refused.value.status) == ("spent_ask", 409)
        assert second.interrupt()[1].count(RAN) == 1


def test_it_says_how_it_is_used() -> None:
    with Dialog([sys.executable, *EXAMPLE, "--help"]) as server:
        status, printed = server.wait()
    assert status == 0
    assert "--store FILE" in printed
