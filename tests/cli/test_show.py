"""``agjson show``: what a person reads."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from agjson.types import BLOCK_TYPES, EVENT_TYPES
from tests.support.cli import agjson, ev, file, lines, stream, wire
from tests.support.every_event import BLOCKS, every_event

OPEN = (
    ev("turn.start", turnId="t1", threadId="th1"),
    ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th1", model="model-x"),
)
CLOSE = (
    ev("message.end", id="m1"),
    ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="stop"),
)
HEAD = "── turn t1 · thread th1\nassistant · model-x\n"
FOOT = "── turn t1 done · stop\n"


def text(id: str, *deltas: str, **end: Any) -> list[dict[str, Any]]:
    return [
        ev("text.start", id=id, turnId="t1"),
        *(ev("text.delta", id=id, delta=delta) for delta in deltas),
        ev("text.end", id=id, **end),
    ]


def shown(*events: dict[str, Any]) -> str:
    """What stands between the heads and the foot of a turn with these events in its message."""
    done = agjson("show", stdin=stream(*OPEN, *events, *CLOSE))
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(HEAD)
    assert done.out.endswith(FOOT)
    return done.out[len(HEAD) : -len(FOOT)]


def inside(text: str) -> str:
    """A text as it stands in a turn that nothing encloses."""
    return indent(dedent(text), "  ")


def test_text_runs_on_and_its_lines_are_indented() -> None:
    assert shown(*text("b1", "Hel", "lo\n\nwor", "", "ld")) == "  Hello\n\n  world\n"


def test_two_texts_stand_on_lines_of_their_own() -> None:
    assert shown(*text("b1", "one"), *text("b2", "two")) == "  one\n  two\n"


def test_reasoning_is_marked_and_its_signature_told_by_length() -> None:
    events = (
        ev("reasoning.start", id="r1"),
        ev("reasoning.delta", id="r1", delta="First.\nSec"),
        ev("reasoning.delta", id="r1", delta="ond."),
        ev("reasoning.opaque", id="r1", kind="signature", value="x" * 1234),
        ev("reasoning.end", id="r1"),
    )
    assert shown(*events) == "  ~ First.\n  ~ Second.\n  ~ (signature, 1,234 characters)\n"


def test_parts_of_a_summary_begin_lines() -> None:
    parts = [
        each
        for part in (0, 1)
        for each in (
            ev("reasoning.start", id="r1", partIndex=part),
            ev("reasoning.delta", id="r1", partIndex=part, delta=f"part {part}"),
        )
    ]
    assert shown(*parts, ev("reasoning.end", id="r1")) == "  ~ part 0\n  ~ part 1\n"


def test_a_tool_call_with_arguments_and_result() -> None:
    call = (
        ev("tool.start", toolCallId="c1", name="weather", title="Weather", requiresApproval=True),
        ev("tool.args.delta", toolCallId="c1", delta='{"city":'),
        ev("tool.args.assembled", toolCallId="c1", input={"city": "Oslo"}),
    )
    result = ev("tool.done", toolCallId="c1", content=[{"type": "text", "text": "4 °C"}])
    assert shown(*call, result) == '  → weather "Weather" (needs approval) {"city":"Oslo"}\n  ← weather: 4 °C\n'


def test_parallel_calls_repeat_the_name_with_the_arguments() -> None:
    events = (
        ev("tool.start", toolCallId="c1", name="one"),
        ev("tool.start", toolCallId="c2", name="two"),
        ev("tool.args.assembled", toolCallId="c1", input=1),
        ev("tool.args.assembled", toolCallId="c2", input=2),
    )
    assert shown(*events) == "  → one\n  → two\n  → one 1\n  → two 2\n"


def test_a_result_of_several_lines_and_channels_is_indented() -> None:
    result = ev(
        "tool.done",
        toolCallId="c9",
        content=[{"type": "text", "text": "a\n\nb\n"}],
        outcome="error",
        errorText="no luck",
        errorCode="E7",
        structuredContent={"n": 1},
        uiData=[1],
        sideData=None,
        more=True,
    )
    assert shown(result) == inside("""\
          ← c9 error (E7) (partial):
            no luck
            a

            b
            {"n":1}
            [for the surface] [1]
            [for the app] null
        """)


def test_long_values_are_cut_unless_full() -> None:
    event = ev("tool.args.assembled", toolCallId="c1", input="x" * 5000)
    assert shown(event).endswith(f'"{"x" * 1999}… (3002 more characters)\n')
    whole = agjson("show", "--full", stdin=stream(*OPEN, event, *CLOSE)).out
    assert "x" * 5000 in whole


def test_citations_and_sources() -> None:
    cited = {"kind": "url", "citedText": "the words", "title": "A page", "url": "https://a.example/p"}
    source = ev("source", sourceId="s1", source={"url": "https://b.example/", "title": "B"})
    assert shown(*text("b1", "so"), source, *text("b2", "then", citations=[cited])) == inside("""\
          so
          source s1: B, https://b.example/
          then
          cites "the words" from A page https://a.example/p
        """)


def test_an_ask_shows_what_its_answer_needs_and_no_secret() -> None:
    ask = ev(
        "hitl.ask",
        askId="a1",
        kind="choice",
        message="Delete it?",
        choices=[{"id": "y", "label": "Yes"}, {"id": "n", "label": "No"}],
        toolCallId="c1",
        reason="it is old",
        token="tok-123",
        requestState="state-123",
        expiresAt="2026-12-01T00:00:00Z",
    )
    assert shown(ask) == inside("""\
          ? choice a1: Delete it?
            for the call c1
            reason: it is old
            y) Yes
            n) No
            until 2026-12-01T00:00:00Z
        """)


def test_a_pause_names_its_asks_and_shows_those_that_were_not() -> None:
    known = {"askId": "a1", "kind": "approval", "message": "One?"}
    new = {"askId": "a2", "kind": "approval", "message": "Two?"}
    done = ev("turn.done", turnId="t1", outcome={"type": "paused", "asks": [known, new]}, finishReason="paused")
    out = agjson("show", stdin=stream(*OPEN, ev("hitl.ask", **known), done)).out
    assert out[len(HEAD) :] == ("  ? approval a1: One?\n  ? approval a2: Two?\n── turn t1 paused, waits for a1, a2\n")


@pytest.mark.parametrize(
    ("last", "line"),
    [
        (
            ev(
                "turn.done", turnId="t1", outcome={"type": "error", "message": "bad", "code": "E"}, finishReason="other"
            ),
            "── turn t1 failed: bad (E) · other",
        ),
        (
            ev("turn.done", turnId="t1", outcome={"type": "rejected", "reason": "no"}, finishReason="refusal"),
            "── turn t1 rejected: no · refusal",
        ),
        (
            ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="brand_new"),
            "── turn t1 done · brand_new",
        ),
        (
            ev(
                "turn.done",
                turnId="t1",
                outcome={"type": "success", "result": [1]},
                finishReason="stop",
                usage={
                    "inputTokens": 1200,
                    "outputTokens": 3,
                    "cacheReadTokens": 0,
                    "costUsd": 0.5,
                    "cumulative": True,
                },
            ),
            "  result: [1]\n── turn t1 done · stop · 1,200 in, 3 out, $0.5, running totals",
        ),
        (
            ev("turn.error", turnId="t1", message="overloaded", code="529", retriable=True),
            "── turn t1 failed: overloaded (529) · may be tried again",
        ),
        (ev("turn.abort", turnId="t1", reason="stream-truncated"), "── turn t1 aborted: stream-truncated"),
    ],
)
def test_every_end_of_a_turn(last: dict[str, Any], line: str) -> None:
    assert agjson("show", stdin=stream(OPEN[0], last)).out == f"── turn t1 · thread th1\n{line}\n"


def test_nested_and_interleaved_turns_switch_with_a_heading() -> None:
    out = agjson(
        "show",
        stdin=stream(
            *OPEN,
            ev("text.start", id="b1", turnId="t1"),
            ev("text.delta", id="b1", delta="outer one", turnId="t1"),
            ev("subagent.start", turnId="s1", parentTurnId="t1", agentName="finder"),
            ev("message.start", id="m2", role="assistant", turnId="s1", threadId="th1"),
            ev("text.start", id="b2", turnId="s1"),
            ev("text.delta", id="b2", delta="inner one", turnId="s1"),
            ev("text.delta", id="b1", delta=", outer two", turnId="t1"),
            ev("text.delta", id="b2", delta=", inner two", turnId="s1"),
            ev("text.end", id="b2", turnId="s1"),
            ev("message.end", id="m2", turnId="s1", usage={"outputTokens": 5}),
            ev("subagent.done", turnId="s1", parentTurnId="t1"),
            ev("text.end", id="b1", turnId="t1"),
            *CLOSE,
        ),
    ).out
    assert out == dedent("""\
        ── turn t1 · thread th1
        assistant · model-x
          outer one
        │ ── subagent finder (s1)
        │ assistant
        │   inner one
        ── turn t1, continued · assistant · model-x
          , outer two
        │ ── subagent finder (s1), continued · assistant
        │   , inner two
        │   (5 out)
        │ ── subagent finder (s1) ended
        ── turn t1 done · stop
        """)


def test_candidates_of_one_turn_are_told_apart() -> None:
    out = agjson(
        "show",
        stdin=stream(
            OPEN[0],
            ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th1"),
            ev("message.start", id="m2", role="assistant", turnId="t1", threadId="th1", candidateIndex=1),
            ev("text.start", id="b1", turnId="t1"),
            ev("text.start", id="b2", turnId="t1", candidateIndex=1),
            ev("text.delta", id="b1", delta="first"),
            ev("text.delta", id="b2", delta="second"),
        ),
    ).out
    assert out.splitlines()[1:7] == [
        "assistant",
        "assistant · candidate 1",
        "assistant, continued",
        "  first",
        "assistant · candidate 1, continued",
        "  second",
    ]


def test_state_and_memory_are_told_in_short() -> None:
    events = (
        ev("state.snapshot", snapshot={"a": 1}),
        ev("state.delta", patch=[{"op": "replace", "path": "/a", "value": 2}] * 7),
        ev("state.delta", patch={"node": {"a": 3}}),
        ev("memory.write", scope="user", key="name", value="Ada", reason="she said so"),
        ev("memory.write", scope="thread", patch=[{"op": "remove", "path": "/x"}]),
    )
    assert shown(*events) == inside("""\
          [state] {"a":1}
          [state] replace /a, replace /a, replace /a, replace /a, replace /a, … (2 more)
          [state] {"node":{"a":3}}
          [memory] user name: "Ada" (she said so)
          [memory] thread: remove /x
        """)


def test_metadata_is_told_by_names_and_short_values() -> None:
    event = ev("message.metadata", metadata={"stop": "end_turn", "usage": {"in": 1}, "n": 2, "apiKey": "k" * 9})
    assert shown(event) == ('  [metadata] stop: "end_turn", usage, n: 2, apiKey: "(9 characters, not shown)"\n')


def test_artifacts_run_on_like_text() -> None:
    events = (
        ev("artifact.start", artifactId="a1", turnId="t1", threadId="th1", name="report"),
        ev("artifact.delta", artifactId="a1", part={"type": "text", "text": "one\ntw"}, append=False),
        ev("artifact.delta", artifactId="a1", part={"type": "text", "text": "o"}, append=True),
        ev("artifact.delta", artifactId="a1", part={"type": "text", "text": "new part"}, append=False),
        ev("artifact.end", artifactId="a1", lastChunk=True),
    )
    assert shown(*events) == inside("""\
          [artifact report (a1)]
          | one
          | two
          | new part
          [artifact report (a1) is complete]
        """)


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (
            {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": "aGVsbG8gd29ybGQh"}},
            "[image: image/png, 12 bytes]",
        ),
        ({"type": "audio", "source": {"type": "url", "url": "https://a.example/x"}}, "[audio: https://a.example/x]"),
        (
            {"type": "file", "filename": "a.pdf", "source": {"type": "file", "fileId": "f1"}},
            "[file: a.pdf, file f1]",
        ),
        (
            {"type": "resource", "resource": {"uri": "ui://w", "mimeType": "text/html", "text": "<b>x</b>"}},
            "[resource: text/html, ui://w, 8 characters]",
        ),
        ({"type": "provider-raw", "vendor": "acme", "raw": {"a": 1}}, "[acme part, 7 bytes]"),
        ({"type": "hologram", "x": 1}, "[unknown block hologram, 28 bytes]"),
        ({"type": "data", "name": "status", "id": "d", "data": {"n": 1}}, '[data status d: {"n":1}]'),
        ({"type": "text", "text": "whole"}, "whole"),
    ],
)
def test_whole_blocks_in_a_line(block: dict[str, Any], line: str) -> None:
    assert shown(ev("content.block", block=block)) == f"  {line}\n"


def test_extensions_and_unknown_events_in_a_line() -> None:
    events = wire([*OPEN, ev("ext.acme.progress", percent=50), ev("later.thing.update", x=1)])
    out = agjson("show", stdin=lines(events)).out
    assert '  [ext.acme.progress] {"percent":50}\n' in out
    assert f"  [unknown event later.thing.update, {len(json.dumps(events[-1]))} bytes]\n" in out


def test_a_gap_is_a_notice_and_not_repeated(tmp_path: Path) -> None:
    events = wire([*OPEN, *text("b1", "one", "two"), *CLOSE])
    del events[3:5]
    done = agjson("show", file(tmp_path, lines(events)))
    assert done.out.count("!! ") == 1
    assert "!! Events 3 to 4 are missing: what follows may be incomplete until the next snapshot\n" in done.out
    assert done.status == 0


def test_a_malformed_event_is_a_notice_and_its_ordinal_is_not_missing(tmp_path: Path) -> None:
    events = wire([*OPEN, *text("b1", "one", "two"), *CLOSE])
    events[3]["delta"] = 5
    path = file(tmp_path, lines(events))
    done = agjson("show", path)
    assert done.out[len(HEAD) :] == f"!! {path}:4: Expected `str`, got `int` - at `$.delta`\n  two\n{FOOT}"
    assert (done.status, done.err) == (1, "")


def test_a_run_of_unreadable_lines_is_one_notice_and_a_count() -> None:
    garbage = "garbage\n" * 500
    done = agjson("show", stdin=stream(*OPEN) + garbage + stream(*CLOSE))
    assert [line for line in done.out.splitlines() if line.startswith("!! ")] == [
        "!! <stdin>:3: JSON is malformed: invalid character (byte 0)",
        "!! 499 more after it could not be read",
    ]
    assert done.status == 1


def test_nothing_but_garbage_is_an_unusable_file() -> None:
    done = agjson("show", stdin="garbage\n")
    assert (done.status, done.err) == (2, "<stdin>: nothing in it is an event\n")


def test_a_delta_without_its_block_is_shown_with_a_notice() -> None:
    done = agjson("show", stdin=stream(*OPEN, ev("text.delta", id="b9", delta="lost"), *CLOSE))
    assert done.out[len(HEAD) :] == f"!! A delta for a block that was not opened: b9\n  lost\n{FOOT}"


def test_a_turn_that_nothing_opened_gets_a_heading() -> None:
    done = agjson("show", stdin=stream(ev("error", message="early", turnId="t7")))
    assert done.out == (
        "── turn t7 · not opened in this stream\n  ! early\n!! The stream ends and turn t7 is still open\n"
    )


def test_a_snapshot_shows_the_messages_that_were_not_shown() -> None:
    known = {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "Hello"}]}
    new = {"id": "m0", "role": "user", "content": [{"type": "text", "text": "Hi"}]}
    out = agjson(
        "show", stdin=stream(*OPEN, *text("b1", "Hello"), *CLOSE, ev("messages.snapshot", messages=[new, known]))
    ).out
    assert out.endswith(f"{FOOT}── snapshot · 2 messages, 1 of them not shown before\nuser\n  Hi\n")


def test_a_removed_message_is_told() -> None:
    assert shown(ev("message.remove", id="m0", turnId="t1")) == "  [message m0 is removed]\n"


def test_a_split_character_is_joined_and_a_lone_half_replaced() -> None:
    assert shown(*text("b1", "a\ud83d", "\ude00b")) == "  a😀b\n"
    assert shown(*text("b1", "a\ud83d")) == "  a\ufffd\n"


def test_every_event_type_and_block_kind_is_shown_without_a_crash() -> None:
    events = every_event()
    assert {event["type"] for event in events} >= EVENT_TYPES.keys()
    assert {block["type"] for block in BLOCKS} == BLOCK_TYPES.keys()
    done = agjson("show", stdin=lines(events))
    assert (done.status, done.err) == (0, "")
    for word in ("Good day", "I wonder", "weather", "Which one?", "Chapter one", "overloaded", "manners", "Bob", "Ada"):
        assert word in done.out
