"""``agjson fold``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import agjson, ev, file, lines, stream, wire
from tests.support.corpus import vectors

HELLO = [
    ev("turn.start", turnId="t1", threadId="th1"),
    ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th1"),
    ev("text.start", id="b1", turnId="t1"),
    ev("text.delta", id="b1", delta="Hello"),
    ev("text.end", id="b1"),
    ev("message.end", id="m1"),
    ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="stop"),
]
FOLDED = {
    "result": {
        "messages": [
            {
                "id": "m1",
                "role": "assistant",
                "content": [{"type": "text", "text": "Hello"}],
                "turnId": "t1",
                "threadId": "th1",
            }
        ],
        "artifacts": [],
        "memory": [],
        "turns": [{"turnId": "t1", "threadId": "th1", "outcome": {"type": "success"}, "finishReason": "stop"}],
    },
    "needsResync": False,
}


def test_it_prints_one_line_with_the_result_and_the_resync_flag() -> None:
    done = agjson("fold", stdin=stream(*HELLO))
    assert (done.status, done.err, done.values) == (0, "", [FOLDED])


@pytest.mark.parametrize("form", ["array", "pretty array", "sse", "values"])
def test_every_form_of_input_is_recognised(form: str, tmp_path: Path) -> None:
    events = wire(HELLO)
    text = {
        "array": json.dumps(events),
        "pretty array": json.dumps(events, indent=2),
        "sse": "".join(f"event: message\ndata: {json.dumps(event)}\n\n" for event in events),
        "values": "".join(json.dumps(event, indent=1) for event in events),
    }[form]
    assert agjson("fold", file(tmp_path, text)).values == [FOLDED]


@pytest.mark.parametrize("name", [(), ("-",)])
def test_no_file_and_a_dash_are_standard_input(name: tuple[str, ...]) -> None:
    assert agjson("fold", *name, stdin=stream(*HELLO)).values == [FOLDED]


def test_nothing_folds_to_an_empty_conversation() -> None:
    done = agjson("fold")
    assert done.values == [
        {"result": {"messages": [], "artifacts": [], "memory": [], "turns": []}, "needsResync": False}
    ]


def test_a_parked_fold_is_a_result_with_status_0_and_says_why(tmp_path: Path) -> None:
    events = wire(HELLO)
    del events[3]
    done = agjson("fold", file(tmp_path, lines(events)))
    assert (done.status, done.values[0]["needsResync"]) == (0, True)
    assert done.err.startswith("The fold is parked: text.end at seq 4: ")


def test_an_event_of_an_unknown_type_leaves_no_gap() -> None:
    events = wire(HELLO)
    events[3] = {"type": "text.later.update", "seq": 3}
    done = agjson("fold", stdin=lines(events))
    assert done.values[0]["needsResync"] is False
    assert done.values[0]["result"]["messages"][0]["content"] == [{"type": "text", "text": ""}]


def test_a_malformed_event_ends_it_with_its_file_line_and_path(tmp_path: Path) -> None:
    events = wire(HELLO)
    events[3]["delta"] = 5
    path = file(tmp_path, "\n\n" + lines(events))
    done = agjson("fold", path)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"{path}:6: Expected `str`, got `int` - at `$.delta`\n"


def test_skip_invalid_leaves_the_gap_and_counts(tmp_path: Path) -> None:
    events = wire(HELLO)
    events[3]["delta"] = 5
    path = file(tmp_path, lines(events) + "{not json\n")
    done = agjson("fold", "--skip-invalid", path)
    assert (done.status, done.values[0]["needsResync"]) == (0, True)
    assert done.err.splitlines()[0] == (
        f"Malformed events left out: 2, the first at {path}:4: Expected `str`, got `int` - at `$.delta`"
    )


def test_initial_takes_a_result_as_it_is_and_as_this_command_prints_it(tmp_path: Path) -> None:
    second = stream(
        ev("turn.start", turnId="t2", threadId="th1"),
        ev("turn.done", turnId="t2", outcome={"type": "success"}, finishReason="stop"),
    )
    printed = file(tmp_path, agjson("fold", stdin=stream(*HELLO)).out, "printed.json")
    bare = file(tmp_path, json.dumps(FOLDED["result"], indent=2), "bare.json")
    for initial in (printed, bare):
        done = agjson("fold", "--initial", initial, stdin=second)
        assert [turn["turnId"] for turn in done.values[0]["result"]["turns"]] == ["t1", "t2"]
        assert done.values[0]["result"]["messages"] == FOLDED["result"]["messages"]  # type: ignore[index]


def test_an_initial_that_was_parked_is_taken_with_a_note(tmp_path: Path) -> None:
    initial = file(tmp_path, json.dumps(FOLDED | {"needsResync": True}), "initial.json")
    done = agjson("fold", "--initial", initial)
    assert (done.status, done.values) == (0, [FOLDED])
    assert done.err == f"{initial}: the fold was parked, so what it missed is missing here too\n"


def test_an_initial_that_is_no_result_names_the_place(tmp_path: Path) -> None:
    initial = file(tmp_path, '{"result":{"messages":[{"id":1}],"artifacts":[],"memory":[],"turns":[]}}', "initial.json")
    done = agjson("fold", "--initial", initial)
    assert (done.status, done.err) == (
        2,
        f"{initial}:1: Expected `str`, got `int` - at `$.result.messages[0].id`\n",
    )
    two = file(tmp_path, "{}\n{}\n", "two.json")
    assert agjson("fold", "--initial", two).err == f"{two}: expected one folded conversation, got 2 values\n"


def test_tolerant_mends_and_says_what() -> None:
    events = [*HELLO[:5], ev("text.start", id="b1", turnId="t1"), ev("text.delta", id="b1", delta="again")]
    assert agjson("fold", stdin=stream(*events)).values[0]["needsResync"] is True
    done = agjson("fold", "--tolerant", stdin=stream(*events))
    content = done.values[0]["result"]["messages"][0]["content"]
    assert [block["text"] for block in content] == ["Hello", "again"]
    assert done.values[0]["needsResync"] is False
    assert done.err.startswith("Mended at seq 5 (INV-BLOCK): ")


def test_pretty_prints_the_same_value_over_several_lines() -> None:
    done = agjson("fold", "--pretty", stdin=stream(*HELLO))
    assert json.loads(done.out) == FOLDED
    assert len(done.out.splitlines()) > 10


def test_half_a_character_is_printed_as_its_escape() -> None:
    half = '{"type":"state.snapshot","seq":0,"snapshot":"\\ud83d"}\n'
    assert agjson("fold", stdin=half).out == (
        '{"result":{"messages":[],"artifacts":[],"memory":[],"turns":[],"state":"\\ud83d"},"needsResync":false}\n'
    )


@pytest.mark.parametrize("vector", vectors("reduce"))
def test_the_vectors_fold_on_the_command_line(vector: dict[str, object]) -> None:
    done = agjson("fold", stdin=lines(vector["events"]))  # type: ignore[arg-type]
    assert done.values == [vector["expect"]]
