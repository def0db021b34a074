"""Artifacts, memory, state, steps: what lies beside the messages (spec §5)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.types import AgReduceResult
from agjson.wire import from_dict
from tests.support.streams import CALL, CLOSE, OPEN, broken, ev, violations

START = ev("artifact.start", artifactId="a", turnId="t1", threadId="th")
PART = ev("artifact.delta", artifactId="a", part={"type": "text", "text": "x"}, append=False)
END = ev("artifact.end", artifactId="a", lastChunk=True)
DONE = CLOSE[1]


def turn(*events: dict[str, Any], **options: Any) -> list[tuple[int, str]]:
    """What a turn with these events breaks; the first of them is line 2."""
    return broken(OPEN[0], *events, DONE, **options)


# Artifacts


def test_an_artifact_is_started_filled_and_ended() -> None:
    assert turn(START, PART, PART, END) == []
    assert turn(START, PART) == []


def test_an_artifact_may_begin_afresh() -> None:
    assert turn(START, PART, END, START, PART, END) == []


@pytest.mark.parametrize("event", [PART, END], ids=lambda event: event["type"])
def test_a_part_needs_an_artifact(event: dict[str, Any]) -> None:
    assert turn(event, event) == ([(2, "INV-OWNER")] if event is PART else [(2, "INV-OWNER"), (3, "ARTIFACT")])
    assert turn(event, known_ids={"a"}) == []


@pytest.mark.parametrize("event", [PART, END], ids=lambda event: event["type"])
def test_an_ended_artifact_takes_nothing(event: dict[str, Any]) -> None:
    assert turn(START, END, event) == [(4, "ARTIFACT")]


def test_an_artifact_of_a_snapshot_may_be_extended() -> None:
    artifact = {"artifactId": "a", "turnId": "t0", "threadId": "th", "parts": []}
    assert broken(ev("messages.snapshot", messages=[], artifacts=[artifact]), PART, END) == []
    assert turn(START, ev("messages.snapshot", messages=[]), PART) == []
    assert turn(START, ev("messages.snapshot", messages=[], artifacts=[]), PART) == [(4, "INV-OWNER")]


# State and memory

PATCH = [{"op": "add", "path": "/a", "value": 1}]


def test_a_patch_needs_a_state() -> None:
    assert broken(ev("state.snapshot", snapshot={}), ev("state.delta", patch=PATCH)) == []
    assert broken(ev("state.delta", patch={"node": {"k": 1}}), ev("state.delta", patch=PATCH)) == []
    [violation] = violations(ev("state.delta", patch=PATCH), ev("state.delta", patch=PATCH))
    assert (violation.line, violation.rule) == (1, "PATCH")
    assert broken(ev("state.delta", patch=PATCH), known_ids=()) == []


def test_an_update_or_a_scalar_needs_no_state() -> None:
    assert broken(ev("state.delta", patch={"node": {"k": 1}})) == []
    assert broken(ev("state.delta", patch=7)) == []


@pytest.mark.parametrize("scope", ["thread", "agent", "user", "skill"])
def test_a_memory_patch_needs_a_value(scope: str) -> None:
    write = ev("memory.write", scope=scope, key="k", value={})
    patch = ev("memory.write", scope=scope, key="k", patch=PATCH)
    assert broken(write, patch) == []
    assert broken(patch, patch) == [(1, "PATCH")]
    assert broken(write, {**patch, "key": "other"}) == [(2, "PATCH")]
    assert broken(patch, known_ids={"k"}) == []


def test_the_default_record_has_no_key_or_an_empty_one() -> None:
    write = ev("memory.write", scope="thread", value={})
    assert broken(write, ev("memory.write", scope="thread", key="", patch=PATCH)) == []


def test_a_snapshot_replaces_the_memory_of_the_thread_alone() -> None:
    writes = (ev("memory.write", scope="thread", value={}), ev("memory.write", scope="user", value={}))
    patches = (ev("memory.write", scope="thread", patch=PATCH), ev("memory.write", scope="user", patch=PATCH))
    assert broken(*writes, ev("messages.snapshot", messages=[]), *patches) == []
    assert broken(*writes, ev("messages.snapshot", messages=[], memory=[]), *patches) == [(4, "PATCH")]
    record = {"scope": "thread", "value": {}}
    assert broken(ev("messages.snapshot", messages=[], memory=[record]), patches[0]) == []


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        (1, "is no object"),
        ({"path": "/a"}, "has the unknown op None"),
        ({"op": "increment", "path": "/a"}, "has the unknown op 'increment'"),
        ({"op": "add", "path": "/a"}, "lacks `value`"),
        ({"op": "move", "path": "/a"}, "lacks `from`"),
        ({"op": "remove"}, "has a `path` that is no JSON Pointer"),
        ({"op": "remove", "path": "a"}, "has a `path` that is no JSON Pointer"),
        ({"op": "copy", "from": "a", "path": "/b"}, "has a `from` that is no JSON Pointer"),
        ({"op": "remove", "path": ""}, "removes the whole document"),
        ({"op": "move", "from": "/a", "path": "/a/b"}, "moves a value into itself"),
    ],
)
def test_the_operations_of_a_patch_are_well_formed(operation: Any, fault: str) -> None:
    seeded = ev("state.snapshot", snapshot={})
    good = {"op": "add", "path": "", "value": None}
    [violation] = violations(seeded, ev("state.delta", patch=[good, operation]))
    assert (violation.line, violation.rule) == (2, "PATCH")
    assert violation.message == f"operation 1 of state.delta {fault}"


def test_the_patch_of_a_memory_record_is_an_array() -> None:
    assert broken(ev("memory.write", scope="user", value={}), ev("memory.write", scope="user", patch={})) == [
        (2, "PATCH")
    ]


# Steps and surfaces


def test_a_step_is_started_before_it_is_done() -> None:
    assert turn(ev("step.start", id="s"), ev("step.done", id="s")) == []
    assert turn(ev("step.done", id="s"), ev("step.done", id="s")) == [(2, "ANNOUNCE")]


def test_a_surface_names_a_call_that_was_announced() -> None:
    surface = ev("ui.surface.start", surfaceId="u", catalogId="c", toolCallId="c1")
    assert broken(*OPEN, *CALL, surface, *CLOSE) == []
    assert broken(surface, surface) == [(1, "ANNOUNCE")]
    assert broken(surface, known_ids={"c1"}) == []


# Going on from a fold


def test_a_check_may_go_on_from_a_fold() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "name": "n", "input": {}}
    initial = from_dict(
        {
            "messages": [{"id": "m0", "role": "assistant", "turnId": "t0", "content": [call]}],
            "artifacts": [{"artifactId": "a", "turnId": "t0", "threadId": "th", "parts": []}],
            "memory": [{"scope": "user", "key": "k", "value": {}}],
            "turns": [{"turnId": "t0", "threadId": "th", "outcome": {"type": "success"}, "finishReason": "tool_call"}],
            "state": {},
        },
        "result",
    )
    assert isinstance(initial, AgReduceResult)
    stream = (
        OPEN[0],
        ev("tool.done", toolCallId="c1", content=[], messageId="c1:result", turnId="t1"),
        PART,
        ev("memory.write", scope="user", key="k", patch=PATCH),
        ev("state.delta", patch=PATCH),
        DONE,
    )
    assert broken(*stream, initial=initial) == []
    assert broken(*stream) == [(2, "ANNOUNCE"), (3, "INV-OWNER"), (4, "PATCH"), (5, "PATCH")]
    broken_past = from_dict(
        {
            "messages": [{"id": "m", "role": "user", "content": []}] * 2,
            "artifacts": [],
            "memory": [],
            "turns": [],
        },
        "result",
    )
    assert broken(OPEN[0], DONE, initial=broken_past) == []
    again = ev("message.start", id="m1", role="assistant", turnId="t0", threadId="th")
    assert broken(again, initial=initial) == [(1, "INV-MSG")]
