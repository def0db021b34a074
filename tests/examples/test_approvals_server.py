"""The server that waits for an approval is stopped meanwhile, and the next one goes on; the chat is its user."""

from __future__ import annotations

import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agjson.middleware.client import RequestError, SyncAgentClient
from agjson.wire import answer_to
from tests.examples.test_chat import chat
from tests.support.dialog import Dialog

EXAMPLE = ["-m", "examples.approvals_server"]
ASKED = '  get_rate {"pair":"USD/EUR"}\n? Run get_rate? [yes, or no and why]: '
RAN = "get_rate runs: USD/EUR"


@contextmanager
def serving(store: Path, port: str = "0") -> Iterator[tuple[Dialog, str]]:
    """The example, and its address."""
    command = [sys.executable, *EXAMPLE, "--port", port, "--store", str(store)]
    with Dialog(command, {"ANTHROPIC_API_KEY": None}) as server:
        server.until("Uvicorn running on ")
        yield server, server.until(" (").removesuffix(" (")


def test_it_is_stopped_while_it_waits_and_goes_on_when_it_is_answered(tmp_path: Path) -> None:
    store = tmp_path / "threads.db"
    with serving(store) as (first, url), chat(url) as dialog:
        dialog.until("> ")
        dialog.type("What are 50 dollars in euros?")
        assert '→ get_rate {"pair":"USD/EUR"}\n' in dialog.until(ASKED)
        status, printed = first.interrupt()
        assert status in (0, -2, 130) and RAN not in printed
        with serving(store, url.rpartition(":")[2]) as (second, _):
            dialog.type("yes")
            assert dialog.until("change any money.\n> ").startswith("← 0.92\n")
            assert dialog.end()[0] == 0
            assert second.interrupt()[1].count(RAN) == 1


def test_an_answer_that_finds_no_server_is_sent_to_the_next_one(tmp_path: Path) -> None:
    store = tmp_path / "threads.db"
    with serving(store) as (first, url), chat(url) as dialog:
        dialog.until("> ")
        dialog.type("What are 50 dollars in euros?")
        dialog.until(ASKED)
        first.process.kill()
        first.wait()
        dialog.type("yes")
        dialog.until("! the server has gone; waiting for it (Ctrl-C leaves)\n")
        with serving(store, url.rpartition(":")[2]) as (second, _):
            dialog.until("change any money.\n> ")
            assert second.interrupt()[1].count(RAN) == 1


def test_who_leaves_the_ask_comes_back_to_it_and_may_say_no(tmp_path: Path) -> None:
    with serving(tmp_path / "threads.db") as (server, url):
        with chat(url, "--thread", "left") as dialog:
            dialog.until("> ")
            dialog.type("What are 50 dollars in euros?")
            dialog.until(ASKED)
            status, printed = dialog.interrupt()
            assert (status, shlex.split(printed)[-2:]) == (0, ["--thread", "left"])
        with chat(url, "--thread", "left") as dialog:
            assert "> What are 50 dollars in euros?\n" in dialog.until(ASKED)
            dialog.type("no not now")
            assert "← denied: " in dialog.until("change any money.\n> ")
        assert RAN not in server.interrupt()[1]


def test_an_answer_counts_once_over_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "threads.db"
    with serving(store) as (first, url), SyncAgentClient(url) as client:
        for _ in (turn := client.start("What are 50 dollars in euros?", thread_id="th")):
            pass
        (ask,) = turn.open_asks
        assert ask.token is not None
        first.interrupt()
    assert stat.S_IMODE((tmp_path / "threads.db.key").stat().st_mode) == 0o600
    with serving(store) as (second, url), SyncAgentClient(url) as client:
        assert client.snapshot("th").asks == [ask]
        for _ in (turn := client.resume("th", [answer_to(ask)])):
            pass
        assert turn.outcome is not None and turn.outcome.type == "success"
        with pytest.raises(RequestError) as refused:
            list(client.resume("th", [answer_to(ask)]))
        assert (refused.value.code, refused.value.status) == ("spent_ask", 409)
        assert second.interrupt()[1].count(RAN) == 1


def test_it_says_how_it_is_used() -> None:
    with Dialog([sys.executable, *EXAMPLE, "--help"]) as server:
        status, printed = server.wait()
    assert status == 0
    assert "--store FILE" in printed
