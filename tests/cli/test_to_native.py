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
