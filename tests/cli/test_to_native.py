"""``agjson to-native``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import echo_adapter
from tests.support.cli import agjson, file, lines

INPUT = {
    "protocol": "agjson",
    "version": "1.0.0",
    "threadId": "th1",
    "turnId": "t1",
    "kind": "start",
    "messages": [],
}


def message(id: str, *texts: str) -> dict[str, Any]:
    return {"id": id, "role": "user", "content": [{"type": "text", "text": text} for text in texts]}


MESSAGES = [message("m1", "one"), message("m2", "two")]
RESULT = {"messages": MESSAGES, "artifacts": [], "memory": [], "turns": []}


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agjson.adapters.echo", echo_adapter)


def test_an_input_becomes_the_native_call_and_what_is_not_supported_is_named() -> None:
    done = agjson("to-native", "echo", stdin=json.dumps(INPUT, indent=1))
    assert done.values == [{"model": "echo", "messages": ["start"], "unsupported": ["run.temperature"]}]
    assert (done.status, done.err) == (0, "Not supported: run.temperature\n")


@pytest.mark.parametrize(
    "history",
    [
        lines(MESSAGES),
        json.dumps(MESSAGES),
        json.dumps(RESULT, indent=1),
        json.dumps({"result": RESULT, "needsResync": False}),
    ],
    ids=["lines", "array", "result", "fold"],
)
def test_a_history_goes_along_in_every_form(history: str, tmp_path: Path) -> None:
    path = file(tmp_path, history)
    done = agjson("to-native", "echo", "--history", path, stdin=json.dumps(INPUT))
    assert done.values[0]["messages"] == ["one", "two", "start"]
    alone = agjson("to-native", "echo", "--messages", path)
    assert alone.values == [["one", "two"]]
    assert alone.err == "Mended: message m1 was fine\nMended: message m2 was fine\n"


EVENTS = [
    {"type": "turn.start", "seq": 0, "turnId": "t1", "threadId": "th1"},
    {"type": "messages.snapshot", "seq": 1, **RESULT},
    {"type": "turn.done", "seq": 2, "turnId": "t1", "outcome": {"type": "success"}, "result": RESULT},
]
NATIVE = {"role": "user", "content": [{"type": "text", "text": "one"}]}
WRONG = {
    "events": (EVENTS, "an event"),
    "a snapshot alone": (EVENTS[1], "an event"),
    "a terminal alone": (EVENTS[2], "an event"),
    "a native message": ([NATIVE], "a native message"),
    "a native answer": ({**NATIVE, "id": "msg_1", "type": "message", "model": "x"}, "a native message"),
    "a native request": ({"model": "x", "messages": [NATIVE]}, "a native request"),
}


@pytest.mark.parametrize(
    ("value", "kind"),
    [*WRONG.values(), (MESSAGES, "a message"), (RESULT, "a folded conversation")],
    ids=[*WRONG, "messages", "a result"],
)
def test_another_kind_of_file_in_place_of_an_input_is_told(value: Any, kind: str, tmp_path: Path) -> None:
    path = file(tmp_path, json.dumps(value))
    done = agjson("to-native", "echo", path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"{path}:1: expected an input, got {kind}: ")


@pytest.mark.parametrize(("value", "kind"), [*WRONG.values(), (INPUT, "an input")], ids=[*WRONG, "an input"])
def test_another_kind_of_file_in_place_of_a_history_is_told(value: Any, kind: str, tmp_path: Path) -> None:
    path = file(tmp_path, json.dumps(value))
    for args in (("--messages", path), ("--history", path)):
        done = agjson("to-native", "echo", *args, stdin=json.dumps(INPUT))
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"{path}:1: expected messages or a folded conversation, got {kind}: ")


@pytest.mark.parametrize("empty", ["", "\n", "[]", json.dumps({**RESULT, "messages": []})])
def test_a_history_without_a_message_is_none(empty: str, tmp_path: Path) -> None:
    path = file(tmp_path, empty)
    done = agjson("to-native", "echo", "--messages", path)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"{path}: expected messages or a folded conversation, got no message at all\n"
    # Beside an input it is the history of a conversation that begins.
    assert agjson("to-native", "echo", "--history", path, stdin=json.dumps(INPUT)).values[0]["messages"] == ["start"]


def test_a_history_of_which_nothing_is_left_is_not_an_empty_one() -> None:
    notice = message("m1", "for the person alone") | {"role": "notice"}
    thought = {"id": "m2", "role": "assistant", "content": [{"type": "reasoning", "text": "unsigned"}]}
    done = agjson("to-native", "anthropic", "--messages", stdin=lines([notice, thought]))
    assert (done.status, done.out) == (2, "")
    mended, reason = done.err.splitlines()
    assert mended.startswith("Mended: $[1].content[0]: ")
    assert reason == "Nothing of the history can go to the model: no message is left"


def test_the_history_of_a_parked_fold_is_told_to_be_one(tmp_path: Path) -> None:
    path = file(tmp_path, json.dumps({"result": RESULT, "needsResync": True}))
    done = agjson("to-native", "echo", "--history", path, stdin=json.dumps(INPUT))
    assert (done.status, done.values[0]["messages"]) == (0, ["one", "two", "start"])
    assert done.err.startswith(f"{path}: the fold was parked, so what it missed is missing here too\n")


def test_an_input_that_is_none_names_the_place(tmp_path: Path) -> None:
    path = file(tmp_path, json.dumps(INPUT | {"version": "2.0.0"}))
    done = agjson("to-native", "echo", path)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"{path}:1: version: major version 2 is not supported, expected 1 - at `$.version`\n"
    two = agjson("to-native", "echo", stdin=lines([INPUT, INPUT]))
    assert (two.status, two.err) == (2, "<stdin>: expected one input, got 2 values\n")


def test_a_history_that_is_none_names_the_place(tmp_path: Path) -> None:
    path = file(tmp_path, lines([MESSAGES[0], MESSAGES[1] | {"role": "boss"}]))
    done = agjson("to-native", "echo", "--messages", path)
    assert done.status == 2
    assert done.err.startswith(f"{path}:2: ")
    assert done.err.endswith("`$.role`\n")


def test_a_history_that_is_refused_has_status_2_and_says_why() -> None:
    done = agjson("to-native", "echo", "--messages", stdin=lines([message("m1")]))
    assert (done.status, done.out, done.err) == (2, "", "agjson: a message is empty - at `$[0].content`\n")


@pytest.mark.parametrize(("args", "lacks"), [((), "to_native"), (("--messages",), "messages_to_native")])
def test_an_adapter_without_the_function_is_an_unusable_call(
    args: tuple[str, ...], lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(echo_adapter, "ADAPTER", replace(echo_adapter.ADAPTER, **{lacks: None}))
    done = agjson("to-native", "echo", *args, stdin=json.dumps(INPUT))
    assert (done.status, done.out, done.err) == (2, "", f"The adapter echo has no {lacks}\n")


def test_messages_and_history_exclude_each_other(tmp_path: Path) -> None:
    done = agjson("to-native", "echo", "--messages", "--history", file(tmp_path, "[]"), stdin="[]")
    assert done.status == 2
    assert "--history" in done.err
