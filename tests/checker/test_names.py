"""INV-OWNER and INV-TURN: the turn and the message that an event names exist and belong together (spec §5.0, §4)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.checker import check
from tests.support.streams import CALL, CLOSE, OPEN, broken, ev, typed

Wire = dict[str, Any]

# A turn t1 with a message, a block of each kind, a call, a partial result, a step and an artifact; beside it t2.
BASE = (
    *OPEN,
    ev("text.start", id="x", turnId="t1"),
    ev("reasoning.start", id="r", turnId="t1", partIndex=0),
    *CALL,
    ev("tool.done", toolCallId="c1", content=[], more=True, turnId="t1"),
    ev("artifact.start", artifactId="a", turnId="t1", threadId="th"),
    ev("step.start", id="s", turnId="t1"),
    ev("state.snapshot", snapshot={}),
    ev("turn.start", turnId="t2", threadId="th"),
)
AT = len(BASE) + 1

TEXT = {"type": "text", "text": "a"}
OF_NO_BLOCK = [
    ev("message.remove", id="no"),
    ev("artifact.delta", artifactId="a", part=TEXT, append=False),
    ev("artifact.end", artifactId="a", lastChunk=True),
    ev("state.snapshot", snapshot=1),
    ev("state.delta", patch={}),
    ev("memory.write", scope="user", value=1),
    ev("error", message="x"),
    ev("step.start", id="s2"),
    ev("step.done", id="s"),
    ev("host.context", theme="dark"),
    ev("ui.call", surfaceId="u", callId="k", method="m"),
    ev("ui.result", surfaceId="u", callId="k", value=1),
    ev("ui.surface.start", surfaceId="u", catalogId="c"),
    ev("ui.surface.update", surfaceId="u", components=[]),
    ev("ui.surface.end", surfaceId="u"),
    ev("ui.data-model", surfaceId="u", value=1),
    ev("ext.acme.note", value=1),
    ev("messages.snapshot", messages=[]),
    ev("content.block", block={"type": "data", "name": "n", "data": 1}, transient=True),
    ev("source", sourceId="s", source={"url": "https://a.example"}),
]
OF_A_BLOCK = [
    ev("text.delta", id="x", delta="a"),
    ev("text.end", id="x"),
    ev("reasoning.start", id="r", partIndex=1),
    ev("reasoning.delta", id="r", delta="a"),
    ev("reasoning.end", id="r"),
    ev("reasoning.opaque", id="r", kind="signature", value="s"),
    ev("reasoning.opaque.delta", id="r", delta="s"),
    ev("tool.args.delta", toolCallId="c1", delta="a"),
    ev("tool.args.assembled", toolCallId="c1", input={}),
    ev("tool.done", toolCallId="c1", content=[]),
    ev("message.end", id="m1"),
    ev("message.remove", id="m1"),
    ev("message.metadata", messageId="m1", metadata={}),
    ev("text.start", id="y", messageId="m1"),
    ev("content.block", block=TEXT, messageId="m1"),
    ev("error", message="x", messageId="m1"),
]


def kind(event: Wire) -> str:
    return str(event["type"])


def found_at_once(event: Wire, *after: Wire, **options: Any) -> list[tuple[int, str]]:
    """What is found up to the last event that is given; what stays open is not looked at."""
    last = AT + len(after)
    return [(v.line, v.rule) for v in check(typed(*BASE, event, *after), **options) if AT <= v.line <= last]


@pytest.mark.parametrize("event", OF_NO_BLOCK, ids=kind)
def test_a_turn_that_is_named_has_been_opened(event: Wire) -> None:
    ghost = {**event, "turnId": "ghost"}
    assert found_at_once(ghost) == [(AT, "INV-TURN")]
    for turn in ("t1", "t2"):
        assert found_at_once({**event, "turnId": turn}) == []
    assert found_at_once(ghost, known_ids={"ghost"}) == []


@pytest.mark.parametrize("event", OF_NO_BLOCK, ids=kind)
def test_a_turn_that_is_named_may_have_closed(event: Wire) -> None:
    close = ev("turn.abort", turnId="t2")
    assert found_at_once(close, {**event, "turnId": "t2"}) == []


@pytest.mark.parametrize("event", OF_A_BLOCK, ids=kind)
def test_what_an_event_is_about_belongs_to_the_turn_that_it_names(event: Wire) -> None:
    assert found_at_once({**event, "turnId": "t2"}) == [(AT, "INV-OWNER")]
    [(line, rule)] = found_at_once({**event, "turnId": "ghost"})
    assert line == AT
    assert rule in ("INV-OWNER", "INV-TURN")
    for fields in ({}, {"turnId": "t1"}):
        assert found_at_once({**event, **fields}) == []


def test_a_turn_that_does_not_exist_is_reported_once_and_is_not_taken_to_be_open() -> None:
    ghost = ev("error", message="x", turnId="ghost")
    assert broken(*OPEN, ghost, ghost, ev("text.start", id="x"), *CLOSE) == [(3, "INV-TURN")]


def test_a_turn_that_is_named_too_early_may_still_be_opened() -> None:
    early = ev("host.context", theme="dark", turnId="t1")
    assert broken(early, *OPEN, *CLOSE) == [(1, "INV-TURN")]


def test_fragments_that_name_another_turn_are_reported_once() -> None:
    wrong = ev("reasoning.opaque.delta", id="r", delta="s", turnId="t2")
    sealed = ev("reasoning.opaque", id="r", kind="signature", value="sss")
    assert found_at_once(wrong, wrong, wrong, sealed) == [(AT, "INV-OWNER")]


def test_a_removal_of_all_may_name_a_turn_that_does_not_exist() -> None:
    assert found_at_once(ev("message.remove", id="*", turnId="ghost")) == []


def test_an_event_that_names_a_message_alone_needs_that_message() -> None:
    assert found_at_once(ev("error", message="x", messageId="no")) == [(AT, "INV-OWNER")]
    assert found_at_once(ev("error", message="x", messageId="no"), known_ids={"no"}) == []


def test_a_snapshot_may_name_a_turn_that_it_brings() -> None:
    message = {"id": "m", "role": "user", "content": [], "turnId": "t0"}
    record = {"turnId": "t0", "threadId": "th"}
    late = ev("error", message="x", turnId="t0")
    assert broken(ev("messages.snapshot", turnId="t0", messages=[], turns=[record]), late) == []
    assert broken(ev("messages.snapshot", turnId="t0", messages=[message]), late) == []


def test_undeclared_fields_do_not_hide_the_turn() -> None:
    assert found_at_once(ev("error", message="x", turnId="ghost", other=1)) == [
        (AT, "UNDECLARED-FIELD"),
        (AT, "INV-TURN"),
    ]
