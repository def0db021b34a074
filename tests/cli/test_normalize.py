"""``agjson normalize``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from agjson.adapter import Adapter, native_events
from agjson.checker import check
from agjson.errors import DecodeError
from tests.support import echo_adapter
from tests.support.cli import Done, agjson, file, lines

SAID = [{"say": "Hello", "id": "m1"}, {"stop": "stop"}]


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agjson.adapters.echo", echo_adapter)
    monkeypatch.setitem(sys.modules, "agjson.adapters.echo_two", echo_adapter)
    monkeypatch.setitem(sys.modules, "agjson.adapters.bare", ModuleType("agjson.adapters.bare"))


def types(done: Done) -> list[str]:
    return [event["type"] for event in done.values]


def ends(done: Done) -> list[Any]:
    """Turn and end of each terminal."""
    return [
        (event["turnId"], event.get("finishReason") or event.get("reason") or event.get("message"))
        for event in done.values
        if event["type"] in ("turn.done", "turn.error", "turn.abort")
    ]


def assert_conformant(done: Done) -> None:
    assert [str(violation) for violation in check(done.out.encode().splitlines())] == []


@pytest.mark.parametrize("form", ["lines", "array", "sse", "sse with done"])
def test_native_events_become_a_stream_a_line_each(form: str, tmp_path: Path) -> None:
    sse = "".join(f"event: x\ndata: {json.dumps(native)}\n\n" for native in SAID)
    text = {
        "lines": lines(SAID),
        "array": json.dumps(SAID),
        "sse": sse,
        "sse with done": f"{sse}data: [DONE]\n\n",
    }[form]
    done = agjson("normalize", "echo", file(tmp_path, text))
    assert (done.status, done.err) == (0, "")
    assert types(done) == [
        "turn.start",
        "message.start",
        "text.start",
        "text.delta",
        "text.end",
        "message.end",
        "turn.done",
    ]
    assert done.values[3]["delta"] == "Hello"
    assert (done.values[0]["turnId"], done.values[0]["threadId"]) == ("turn-1", "thread-1")
    assert_conformant(done)


def test_the_names_of_thread_and_turn_can_be_given() -> None:
    done = agjson("normalize", "echo", "--thread", "th9", "--turn", "t9", stdin=lines(SAID))
    assert (done.values[0]["turnId"], done.values[0]["threadId"]) == ("t9", "th9")


def test_a_stream_without_its_terminal_is_truncated_at_the_end_of_the_file() -> None:
    done = agjson("normalize", "echo", stdin=lines(SAID[:1]))
    assert ends(done) == [("turn-1", "stream-truncated")]
    assert_conformant(done)


class Endless(echo_adapter.EchoNormalizer):
    """A framework whose stream has no terminal."""

    ends_itself = False


def test_the_end_of_the_file_is_the_end_of_the_run_unless_it_is_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = Adapter(name="echo", normalizer=Endless, recorded=echo_adapter.recorded)
    monkeypatch.setattr(echo_adapter, "ADAPTER", adapter)
    assert ends(agjson("normalize", "echo", stdin=lines(SAID[:1]))) == [("turn-1", "stop")]
    cut = agjson("normalize", "echo", "--truncated", stdin=lines(SAID[:1]))
    assert ends(cut) == [("turn-1", "stream-truncated")]


def test_an_event_that_is_no_json_ends_it_with_its_place(tmp_path: Path) -> None:
    path = file(tmp_path, lines(SAID[:1]) + "{oops\n")
    done = agjson("normalize", "echo", path)
    assert done.status == 2
    assert done.err.startswith(f"{path}:2: ")
    assert types(done)[-1] == "message.end"


def test_an_unknown_event_is_carried_whole() -> None:
    done = agjson("normalize", "echo", stdin=lines([{"later": [1]}, *SAID]))
    [carried] = [event for event in done.values if event["type"] == "ext.agjson.unparsed"]
    assert carried["raw"] == {"later": [1]}


def exchange(path: str, body: Any, *, status: int = 200, method: str = "POST") -> dict[str, Any]:
    """One interaction of a cassette as VCR.py writes it."""
    text = body if isinstance(body, str) else "".join(f"data: {json.dumps(native)}\n\n" for native in body)
    return {
        "request": {"method": method, "uri": f"https://echo.example{path}", "body": "{}", "headers": {}},
        "response": {"status": {"code": status, "message": ""}, "headers": {}, "body": {"string": text}},
    }


CASSETTE: dict[str, Any] = {
    "version": 1,
    "interactions": [
        exchange("/v1/echo", SAID),
        exchange("/v1/files?key=secret", "{}", method="GET"),
        exchange("/v1/echo", "<html>", status=502),
        exchange("/v1/echo", [{"say": "again", "id": "m1"}]),
        exchange("/v1/echo", [{"say": "single", "id": "m3"}, {"stop": "token_limit"}]),
    ],
}


@pytest.mark.parametrize("form", ["yaml", "json", "stdin"])
def test_each_model_request_of_a_cassette_is_a_turn(form: str, tmp_path: Path) -> None:
    text = json.dumps(CASSETTE) if form == "json" else yaml.safe_dump(CASSETTE)
    if form == "stdin":
        done = agjson("normalize", "echo", stdin=text)
    else:
        done = agjson("normalize", "echo", file(tmp_path, text, "recording.yaml"))
    assert done.status == 0
    assert ends(done) == [
        ("turn-1", "stop"),
        ("turn-2", "HTTP 502"),
        ("turn-3", "stream-truncated"),
        ("turn-4", "token_limit"),
    ]
    assert_conformant(done)


def test_other_requests_are_named_without_their_queries(tmp_path: Path) -> None:
    path = file(tmp_path, yaml.safe_dump(CASSETTE), "recording.yaml")
    done = agjson("normalize", "echo", path)
    assert done.err == f"{path}: no model request of echo: GET https://echo.example/v1/files\n"


def test_a_later_turn_of_a_cassette_does_not_use_ids_of_an_earlier_one(tmp_path: Path) -> None:
    done = agjson("normalize", "echo", file(tmp_path, yaml.safe_dump(CASSETTE)))
    ids = [event["id"] for event in done.values if event["type"] == "message.start"]
    assert len(ids) == 3
    assert len(set(ids)) == 3
    folded = agjson("fold", stdin=done.out)
    assert folded.values[0]["needsResync"] is False
    assert [turn["turnId"] for turn in folded.values[0]["result"]["turns"]] == ["turn-1", "turn-2", "turn-3", "turn-4"]


class Remembering(echo_adapter.EchoNormalizer):
    """A framework that goes on from what earlier turns have said, by its own ids."""

    def _on(self, native: Any) -> None:
        for name, arguments in native.items():
            getattr(self.out, name)(**arguments)


def test_a_later_turn_of_a_cassette_goes_on_from_the_earlier_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    adapter = Adapter(name="echo", normalizer=Remembering, recorded=echo_adapter.recorded)
    monkeypatch.setattr(echo_adapter, "ADAPTER", adapter)
    call = {"tool_call_id": "c", "name": "f", "input": {}}
    requests = [
        [
            {"tool_call": call},
            {"state_snapshot": {"snapshot": {"n": 1}}},
            {"memory_write": {"scope": "thread", "key": "k", "value": [1]}},
            {"artifact_start": {"artifact_id": "c"}},
            {"turn_done": {"finish_reason": "tool_call"}},
        ],
        [
            {"tool_call": call},
            {"hitl_ask": {"kind": "approval", "ask_id": "q", "tool_call_id": "c"}},
            {"turn_paused": {}},
        ],
        [
            {"hitl_ask": {"kind": "approval", "ask_id": "q", "tool_call_id": "c"}},
            {"tool_done": {"tool_call_id": "c", "outcome": "ok"}},
            {"state_delta": {"patch": [{"op": "replace", "path": "/n", "value": 2}]}},
            {"memory_write": {"scope": "thread", "key": "k", "patch": [{"op": "add", "path": "/-", "value": 2}]}},
            {"turn_done": {}},
        ],
    ]
    cassette = {"version": 1, "interactions": [exchange("/v1/echo", natives) for natives in requests]}
    done = agjson("normalize", "echo", file(tmp_path, yaml.safe_dump(cassette)))

    assert (done.status, done.err, "error" in types(done)) == (0, "", False)
    last = [event for event in done.values if event.get("turnId") == "turn-3"]
    # The second call of the id "c" was renamed, and the ask is still unanswered.
    assert [event["toolCallId"] for event in last if "toolCallId" in event] == ["c#2", "c#2"]
    assert [event["askId"] for event in done.values if event["type"] == "hitl.ask"] == ["q", "q"]
    (folded,) = agjson("fold", stdin=done.out).values
    assert folded["needsResync"] is False
    assert folded["result"]["state"] == {"n": 2}
    assert [record["value"] for record in folded["result"]["memory"]] == [[1, 2]]
    assert_conformant(done)


def test_the_turns_of_a_cassette_can_be_named(tmp_path: Path) -> None:
    done = agjson("normalize", "echo", "--turn", "t", file(tmp_path, yaml.safe_dump(CASSETTE)))
    assert [turn for turn, _ in ends(done)] == ["t-1", "t-2", "t-3", "t-4"]


def test_a_cassette_without_model_requests_says_so(tmp_path: Path) -> None:
    path = file(tmp_path, yaml.safe_dump({"version": 1, "interactions": CASSETTE["interactions"][1:2]}))
    done = agjson("normalize", "echo", path)
    assert (done.status, done.out) == (0, "")
    assert done.err.splitlines()[-1] == f"{path}: no model request of echo is in it"


@pytest.mark.parametrize(
    "text", ["interactions:\n- request: {}\n", "version: 1\ninteractions: [\n", "version: 1\n\xff"]
)
def test_a_broken_cassette_is_an_unusable_file(text: str, tmp_path: Path) -> None:
    path = file(tmp_path, text.encode("latin-1"))
    done = agjson("normalize", "echo", path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"{path}: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("anthropik", "No adapter is named 'anthropik': did you mean anthropic?\n"),
        ("../x", "No adapter is named '../x': there are: "),
        ("os.path", "No adapter is named 'os.path': there are: "),
        ("bare", "agjson.adapters.bare has no ADAPTER: the command cannot use it\n"),
    ],
)
def test_an_adapter_that_is_not_there_is_an_unusable_call(name: str, words: str) -> None:
    done = agjson("normalize", name, stdin="")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(words)


def test_an_adapter_whose_package_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "needy"
    package.mkdir()
    (package / "__init__.py").write_text("import not_a_package_of_anyone\n")
    monkeypatch.setattr(sys.modules["agjson.adapters"], "__path__", [str(tmp_path)])
    done = agjson("normalize", "needy", stdin="")
    assert (done.status, done.err) == (
        2,
        "The adapter needy needs not_a_package_of_anyone: pip install 'agjson[needy]'\n",
    )


def test_dashes_and_underscores_are_one() -> None:
    assert agjson("normalize", "echo-two", stdin=lines(SAID)).status == 0
    assert agjson("normalize", "echo_two", stdin=lines(SAID)).status == 0


def test_native_events_are_read_from_bodies_of_every_form() -> None:
    half = b'{"text":"\\ud83d"}'
    assert list(native_events(b'data: {"a":1}\n\ndata: [DONE]\n\n')) == [{"a": 1}]
    assert list(native_events(b'[{"a":1},{"b":2}]')) == [{"a": 1}, {"b": 2}]
    assert list(native_events(b'{\n "a": 1\n}\n')) == [{"a": 1}]
    assert list(native_events(half)) == [{"text": "\ud83d"}]
    events = native_events(b'{"a":1}\n{oops\n')
    assert next(events) == {"a": 1}
    with pytest.raises(DecodeError, match=r"^line 2: "):
        next(events)
