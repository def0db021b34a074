"""The chat in the terminal: what its user sees and types, against servers in processes of their own."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.corpus import ROOT
from tests.support.dialog import Dialog
from tests.support.http_server import Server
from tests.support.sse_server import SSEServer, error

CHAT = str(ROOT / "examples" / "chat.py")


def chat(url: str, *arguments: str) -> Dialog:
    return Dialog([sys.executable, CHAT, url, *arguments], {"PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("tests.support.asking:make_app") as started:
        yield started


@pytest.fixture
def talk(server: Server) -> Iterator[Dialog]:
    with chat(server.url) as dialog:
        dialog.until("> ")
        yield dialog


def test_it_says_how_it_is_used() -> None:
    with Dialog([sys.executable, CHAT, "--help"]) as dialog:
        status, printed = dialog.wait()
    assert status == 0
    assert "/stop while the agent answers" in printed
    assert "--thread ID" in printed


def test_what_is_typed_is_answered(talk: Dialog) -> None:
    talk.type("Grüße")
    assert talk.until("> ") == "heardGrüße\n> "
    talk.type("/stop")
    assert talk.until("> ") == "! nothing runs\n> "
    status, printed = talk.end()
    assert status == 0
    [line] = printed.strip().splitlines()
    words = shlex.split(line.removeprefix("To come back: "))
    python = os.path.relpath(sys.executable)
    assert words[:2] == [sys.executable if python.startswith(os.pardir) else python, CHAT]
    assert words[2].startswith("http://127.0.0.1:")
    assert (words[3], words[4][:5], len(words)) == ("--thread", "chat-", 5)


def answers(printed: str) -> Any:
    line = next(line for line in printed.splitlines() if line.startswith("[{"))
    return json.loads(line)


def test_an_approval_is_given_and_its_token_and_state_are_echoed(talk: Dialog) -> None:
    talk.type("approve")
    assert "? Delete\\x1b[1A it? [yes, or no and why]: " in talk.until("why]: ")
    talk.type("perhaps")
    talk.until("why]: ")
    talk.type("YES")
    [answer] = answers(talk.until("> "))
    assert answer == {"askId": "ask-approve", "status": "resolved", "token": "tok", "requestState": "stäte"}


def test_an_approval_is_refused_with_a_reason(talk: Dialog) -> None:
    talk.type("approve")
    talk.until("why]: ")
    talk.type("no not today")
    [answer] = answers(talk.until("> ").replace("nottoday", "not today"))
    assert (answer["status"], answer["reason"]) == ("declined", "not today")


@pytest.mark.parametrize(
    ("kind", "shown", "wrong", "typed", "answer"),
    [
        (
            "grant",
            "  once: once\n  all: all\n? Run it? [one of these, or no and why]: ",
            "yes",
            "all",
            {"grantModeId": "all"},
        ),
        ("choose", "  a: Ham\n  b: Egg\n", "Ham", "b", {"reply": "b"}),
        ("tell", "? Who are you? ", "", "Ada", {"reply": "Ada"}),
        ("fill", '  schema: {"type":"object"}\n', "{", '{"street":"A"}', {"reply": {"street": "A"}}),
        ("open", "  a link that is not shown\n", "maybe", "yes", {}),
    ],
)
def test_an_ask_is_answered_in_its_kind(
    talk: Dialog, kind: str, shown: str, wrong: str, typed: str, answer: dict[str, Any]
) -> None:
    talk.type(kind)
    assert shown in talk.until("why]: ")
    talk.type(wrong)
    talk.until("why]: ")
    talk.type(typed)
    assert answers(talk.until("> ")) == [{"askId": f"ask-{kind}", "status": "resolved", **answer}]


def test_calls_of_client_tools_get_their_results(talk: Dialog) -> None:
    talk.type("tools")
    assert '→ look_up {"of":"Oslo"}\n' in talk.until('? the result of look_up {"of":"Oslo"}: ')
    talk.type("rain")
    talk.until('? the result of look_up {"of":"Rome"}: ')
    talk.type("sun")
    assert "← rain\n← sun\nrainsun\n" in talk.until("> ")


def test_a_turn_is_stopped(talk: Dialog) -> None:
    talk.type("hang")
    talk.until("wellnow")
    talk.type("/stop")
    assert talk.until("> ") == "\n! cut off: stopped\n> "
    talk.type("on")
    assert talk.until("> ") == "heardon\n> "


def test_a_failure_is_told_and_the_talk_goes_on(talk: Dialog) -> None:
    talk.type("fail")
    assert talk.until("> ").startswith("! ")
    talk.type("on")
    assert talk.until("> ") == "heardon\n> "


def test_no_text_commands_the_terminal(talk: Dialog) -> None:
    talk.type("dirty")
    printed = talk.until("> ")
    assert printed == "clear\\x1b[2Jtitle\\x1b]0;gone\\x07back\\rover\\u202edone\n> "


def test_who_leaves_comes_back_to_what_runs_and_what_waits(server: Server) -> None:
    with chat(server.url, "--thread", "left") as dialog:
        assert "unknown_thread" in dialog.until("> ")
        dialog.type("approve")
        dialog.until("why]: ")
        status, printed = dialog.interrupt()
        assert status == 0
        assert printed.endswith(" --thread left\n")
    with chat(server.url, "--thread", "left") as dialog:
        assert "> approve\n" in dialog.until("why]: ")
        dialog.type("yes")
        [answer] = answers(dialog.until("\n> "))
        assert answer["token"] == "tok"
        dialog.type("hang")
        dialog.until("wellnow")
        assert dialog.interrupt()[0] == 0
    assert server.wait_for("left", running=True)["turnId"] is not None
    with chat(server.url, "--thread", "left") as dialog:
        dialog.until("wellnow")
        dialog.type("/stop")
        dialog.until("! cut off: stopped\n> ")


def test_a_server_that_is_not_there_is_told() -> None:
    with Server("tests.support.asking:make_app") as gone:
        pass
    with chat(gone.url) as dialog:
        dialog.until("> ")
        dialog.type("hello")
        assert "unreachable" in dialog.until("\n> ")
        status, printed = dialog.end()
    assert status == 0
    assert "To come back" not in printed  # there is nothing to come back to


def test_who_is_not_let_in_is_not_told_to_come_back() -> None:
    with SSEServer(lambda _: error(401, "unauthorized", "who are you?")) as server:
        for arguments in ((), ("--thread", "theirs")):
            with chat(server.url, "--header", "Authorization: Bearer no", *arguments) as dialog:
                dialog.until("> ")
                dialog.type("hello")
                assert "who are you? (unauthorized, status 401)" in dialog.until("\n> ")
                status, printed = dialog.end()
            assert status == 0
            assert "To come back" not in printed


def test_a_header_that_is_none_is_told_at_once() -> None:
    with chat("http://127.0.0.1:1", "--header", "two words: x") as dialog:
        status, printed = dialog.wait()
    assert (status, printed) == (1, "chat.py: 'two words' is no name of a header\n")


def test_a_server_that_is_killed_and_started_again_is_waited_for(tmp_path: Path) -> None:
    example = [sys.executable, str(ROOT / "examples" / "anthropic_server.py"), "--store", str(tmp_path / "threads.db")]
    environment = {"ANTHROPIC_API_KEY": None}
    with Dialog([*example, "--port", "0"], environment) as first:
        first.until("Uvicorn running on ")
        url = first.until(" (").removesuffix(" (")
        with chat(url) as dialog:
            dialog.until("> ")
            dialog.type("What are 50 dollars in euros?")
            assert '→ get_rate {"pair":"USD/EUR"}\n← 0.92\n' in dialog.until("50 dollars ")
            first.process.kill()
            dialog.until("! the server has gone; waiting for it (Ctrl-C leaves)\n")
            with Dialog([*example, "--port", url.rpartition(":")[2]], environment) as second:
                dialog.until("! cut off: interrupted\n> ")
                dialog.type("Again, please")
                dialog.until("change any money.\n> ")
                assert dialog.end()[0] == 0
                assert second.interrupt()[0] in (0, -2, 130)
