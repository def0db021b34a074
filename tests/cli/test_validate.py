"""``agjson validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import agjson, file, lines
from tests.support.corpus import vectors

DELTA = {"type": "text.delta", "seq": 0, "id": "b", "delta": "x"}
GOOD = {
    "event": DELTA,
    "block": {"type": "text", "text": "x"},
    "message": {"id": "m", "role": "user", "content": []},
    "input": {
        "protocol": "agjson",
        "version": "1.0.0",
        "threadId": "t",
        "turnId": "u",
        "kind": "start",
        "messages": [],
    },
    "answer": {"askId": "a", "status": "declined"},
    "result": {"messages": [], "artifacts": [], "memory": [], "turns": []},
}


def test_one_line_for_each_value_with_nulls_where_it_is_valid() -> None:
    values = [DELTA, DELTA | {"delta": 5}]
    done = agjson("validate", "--as", "event", stdin=lines(values))
    assert done.out == (
        '{"line":1,"valid":true,"error":null,"path":null}\n'
        '{"line":2,"valid":false,"error":"Expected `str`, got `int`","path":"$.delta"}\n'
    )
    assert (done.status, done.err) == (1, "")


@pytest.mark.parametrize("kind", GOOD)
def test_each_kind_takes_its_own_and_no_other(kind: str) -> None:
    for other, value in GOOD.items():
        done = agjson("validate", "--as", kind, stdin=lines([value]))
        assert (done.status, done.values[0]["valid"]) == ((0, True) if other == kind else (1, False)), other


def test_events_are_the_default() -> None:
    assert agjson("validate", stdin=lines([DELTA])).status == 0


def test_no_other_kind_is_taken() -> None:
    done = agjson("validate", "--as", "turn", stdin="")
    assert done.status == 2
    assert "turn" in done.err


def test_an_unparsable_line_is_invalid_and_the_others_are_still_read() -> None:
    done = agjson("validate", stdin=f"{json.dumps(DELTA)}\n{{oops\n\n{json.dumps(DELTA)}\n")
    assert [(value["line"], value["valid"], value["path"]) for value in done.values] == [
        (1, True, None),
        (2, False, "$"),
        (4, True, None),
    ]
    assert done.status == 1


def test_an_unknown_event_type_is_invalid_and_an_unknown_field_is_not() -> None:
    done = agjson("validate", stdin=lines([DELTA | {"type": "text.later.delta"}, DELTA | {"later": 1}]))
    assert [value["valid"] for value in done.values] == [False, True]
    assert done.values[0]["path"] == "$.type"


def test_an_array_counts_the_lines_where_its_values_begin(tmp_path: Path) -> None:
    done = agjson("validate", file(tmp_path, f"[\n{json.dumps(DELTA)},\n\n{json.dumps(DELTA)}]"))
    assert [value["line"] for value in done.values] == [2, 4]


def test_a_cut_array_is_an_unusable_file_after_its_whole_values(tmp_path: Path) -> None:
    path = file(tmp_path, f"[{json.dumps(DELTA)},\n" + '{"type":')
    done = agjson("validate", path)
    assert [value["valid"] for value in done.values] == [True]
    assert (done.status, done.err) == (2, f"{path}:2: the input ends inside the value that starts here\n")


ANSWER = {"askId": "a", "status": "resolved", "token": "k"}
ASK = {"askId": "a", "kind": "approval", "token": "k"}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (ANSWER, None),
        ({"answer": ANSWER}, None),
        ({"ask": ASK, "answer": ANSWER}, None),
        ({"answer": ANSWER | {"status": "maybe"}}, "$.answer.status"),
        ({"ask": ASK | {"kind": "order"}, "answer": ANSWER}, "$.ask.kind"),
        ({"ask": ASK, "answer": ANSWER | {"token": "other"}}, "$.answer.token"),
        ({"ask": ASK}, "$"),
    ],
)
def test_an_answer_stands_alone_or_with_its_ask(value: Any, path: str | None) -> None:
    [verdict] = agjson("validate", "--as", "answer", stdin=lines([value])).values
    assert (verdict["valid"], verdict["path"]) == (path is None, path)


def test_a_message_that_quotes_half_a_character_is_printed() -> None:
    done = agjson("validate", stdin='{"type":"\\ud83d.start","seq":0}\n')
    assert done.status == 1
    assert "\\ud83d.start" in done.values[0]["error"]


def test_what_a_terminal_may_not_draw_is_printed_as_json_escapes() -> None:
    hidden = "x\u3164\u115f\U000e0100y"
    done = agjson("validate", stdin=lines([{"type": hidden, "seq": 0}]))
    assert r"x\u3164\u115f\udb40\udd00y" in done.out
    assert done.out.isascii()
    assert hidden in done.values[0]["error"]


@pytest.mark.parametrize("vector", vectors("validate"))
def test_the_vectors_get_their_verdict_on_the_command_line(vector: dict[str, Any]) -> None:
    # In an array, because a lone `[]` is an input without values.
    [verdict] = agjson("validate", "--as", vector["kind"], stdin=json.dumps([vector["value"]])).values
    assert verdict["valid"] == vector["valid"], vector["why"]
    assert (verdict["error"] is None) == (verdict["path"] is None) == vector["valid"]
