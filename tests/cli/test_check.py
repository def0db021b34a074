"""``agjson check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import agjson, ev, file, lines, stream, wire

GOOD = [
    ev("turn.start", turnId="t1", threadId="th1"),
    ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th1"),
    ev("text.start", id="b1", turnId="t1", messageId="m1"),
    ev("text.delta", id="b1", delta="Hello", turnId="t1", messageId="m1"),
    ev("text.end", id="b1", turnId="t1", messageId="m1"),
    ev("message.end", id="m1", turnId="t1"),
    ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="stop"),
]


def test_a_valid_stream_prints_nothing() -> None:
    done = agjson("check", stdin=stream(*GOOD))
    assert (done.status, done.out, done.err) == (0, "", "")


def test_nothing_breaks_nothing() -> None:
    assert agjson("check", stdin="").status == 0


def test_a_violation_is_a_line_with_exactly_four_members() -> None:
    events = wire(GOOD)
    events[3]["id"] = "b9"
    done = agjson("check", stdin=lines(events))
    assert done.status == 1
    assert [list(value) for value in done.values] == [["line", "seq", "rule", "message"]]
    assert (done.values[0]["line"], done.values[0]["seq"], done.values[0]["rule"]) == (4, 3, "INV-BLOCK")
    assert "b9" in done.values[0]["message"]


def test_the_line_is_that_of_the_file(tmp_path: Path) -> None:
    events = wire(GOOD)
    events[3]["id"] = "b9"
    blank = "\n\n".join(json.dumps(event) for event in events)
    sse = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    array = "[" + ",\n".join(json.dumps(event) for event in events) + "]"
    for text, line in ((blank, 7), ("\n\n\n" + blank, 10), (sse, 7), (array, 4)):
        assert [value["line"] for value in agjson("check", file(tmp_path, text)).values] == [line]


def test_a_fault_that_shows_at_the_end_names_the_line_that_opened(tmp_path: Path) -> None:
    uneven = "\n".join(["", json.dumps(wire(GOOD)[0]), "", "", json.dumps(wire(GOOD)[1]), ""])
    done = agjson("check", file(tmp_path, uneven))
    assert {(value["rule"], value["line"]) for value in done.values} >= {("INV-TURN", 2), ("INV-MSG", 5)}


def test_a_malformed_event_and_an_unparsable_line_are_violations() -> None:
    events = wire(GOOD)
    events[3]["delta"] = None
    broken = lines(events[:4]) + "{oops\n"
    done = agjson("check", stdin=broken)
    assert [(value["line"], value["seq"]) for value in done.values if value["rule"] == "MALFORMED"] == [
        (4, 3),
        (5, None),
    ]


@pytest.mark.parametrize(("profile", "status"), [("CORE", 1), ("EXTENDED", 1), ("ADVANCED", 0), ("advanced", 0)])
def test_a_profile_reports_what_is_above_it(profile: str, status: int) -> None:
    events = [*GOOD[:6], ev("state.snapshot", snapshot={}, turnId="t1"), GOOD[6]]
    done = agjson("check", "--profile", profile, stdin=stream(*events))
    assert done.status == status
    assert [value["rule"] for value in done.values] == ["PROFILE"] * status


def test_another_profile_is_an_unusable_call() -> None:
    assert agjson("check", "--profile", "BASIC", stdin="").status == 2


def test_initial_makes_the_stream_a_continuation(tmp_path: Path) -> None:
    before = stream(*GOOD[:6], ev("state.snapshot", snapshot={"a": 1}, turnId="t1"), GOOD[6])
    initial = file(tmp_path, agjson("fold", stdin=before).out, "initial.json")
    after = stream(
        ev("turn.start", turnId="t2", threadId="th1"),
        ev("state.delta", patch=[{"op": "remove", "path": "/a"}], turnId="t2"),
        ev("turn.done", turnId="t2", outcome={"type": "success"}, finishReason="stop"),
    )
    assert [value["rule"] for value in agjson("check", stdin=after).values] == ["PATCH"]
    assert agjson("check", "--initial", initial, stdin=after).status == 0


def test_a_message_that_quotes_half_a_character_is_printed() -> None:
    done = agjson("check", stdin='{"type":"\\ud83d.start","seq":0}\n')
    assert "\\ud83d.start" in done.values[0]["message"]


def test_what_a_terminal_may_not_draw_is_printed_as_json_escapes() -> None:
    hidden = "x\x9b31m\x7f\u202e\u2066\u2028\u200b\u3164\U000e0041"
    done = agjson("check", stdin=stream(ev("text.delta", id=hidden, delta="a")))
    [first, *_] = done.out.splitlines()
    assert r"x\u009b31m\u007f\u202e\u2066\u2028\u200b\u3164\udb40\udc41" in first
    assert done.out.isascii()
    assert hidden in done.values[0]["message"]


def test_what_a_terminal_draws_is_printed_as_it_is() -> None:
    drawn = "ünï 日本語 👩\u200d👧 \u0645\u06cc\u200c\u062e\u0648 \u2764\ufe0f"
    assert drawn in agjson("check", stdin=stream(ev("text.delta", id=drawn, delta="a"))).out
