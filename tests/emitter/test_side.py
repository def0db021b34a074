"""Steps, sources, artifacts, state, memory, snapshots and extensions of the emitter (spec §5, §12)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.emitter import Emitter
from agjson.types import (
    AgArtifact,
    AgMemoryRecord,
    AgMessage,
    AgTurnRecord,
    AgUsage,
    FieldError,
    SuccessOutcome,
    TextBlock,
    ToolCallBlock,
)
from tests.emitter.stream import errors, finished, folded, types, wire


def test_steps_nest_and_a_step_never_begun_is_begun() -> None:
    emitter = Emitter("t", "thread")
    outer = emitter.step_start(step_name="plan")
    assert emitter.step_start("n") == "n"
    assert emitter.step_start("n") == "n#2"
    emitter.step_done("n", usage=AgUsage(output_tokens=1))
    emitter.step_done("other", step_name="x")
    emitter.step_done()
    emitter.step_done()
    events = finished(emitter)

    assert [event["id"] for event in wire(events) if event["type"] == "step.done"] == ["n#2", "other", "n", outer]
    assert [event["id"] for event in wire(events) if event["type"] == "step.start"] == [outer, "n", "n#2", "other"]


# Artifacts


def test_an_artifact_is_begun_afresh_only_when_the_framework_says_so() -> None:
    emitter = Emitter("t", "thread")
    emitter.artifact_delta("a", TextBlock(text="one"))
    emitter.artifact_delta("a", TextBlock(text=" two"), append=True)
    emitter.artifact_end("a")
    emitter.artifact_end("a")
    assert emitter.artifact_delta("a", TextBlock(text="three")) == "a#2"
    emitter.artifact_delta("a", TextBlock(text=" four"), append=True)
    events = finished(emitter)
    afresh = Emitter("t", "thread")
    afresh.artifact_start("a", name="first")
    afresh.artifact_delta("a", TextBlock(text="one"))
    afresh.artifact_start("a", name="second")

    assert [(a.artifact_id, [part.text for part in a.parts]) for a in folded(events).artifacts] == [  # type: ignore[union-attr]
        ("a", ["one two"]),
        ("a#2", ["three four"]),
    ]
    assert types(events).count("artifact.end") == 1
    assert folded(finished(afresh)).artifacts == [
        AgArtifact(artifact_id="a", turn_id="t", thread_id="thread", name="second", parts=[])
    ]


def test_an_artifact_of_the_thread_takes_parts() -> None:
    emitter = Emitter("t", "thread", known_ids={"a"})
    emitter.artifact_delta("a", TextBlock(text="more"))
    emitter.artifact_end("a")

    assert "artifact.start" not in types(finished(emitter, known_ids={"a"}))


# State and memory


def test_state_is_replaced_merged_and_patched() -> None:
    emitter = Emitter("t", "thread")
    emitter.state_snapshot({"node": {"a": 1}})
    emitter.state_delta({"node": {"b": 2}, "other": 3})
    emitter.state_delta([{"op": "replace", "path": "/other", "value": 4}])
    events = finished(emitter)

    assert folded(events).state == {"node": {"a": 1, "b": 2}, "other": 4}
    assert errors(events) == []


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "remove", "path": "/missing"}],
        [{"op": "test", "path": "/a", "value": True}],
        [{"op": "frobnicate", "path": "/a"}],
        [{"op": "add", "path": "a", "value": 1}],
        ["no operation"],
    ],
)
def test_a_patch_that_would_park_the_fold_is_refused_whole(patch: list[Any]) -> None:
    emitter = Emitter("t", "thread")
    emitter.state_snapshot({"a": 1})
    emitter.state_delta(patch)
    emitter.memory_write("thread", value={"a": 1})
    emitter.memory_write("thread", patch=patch)
    events = finished(emitter)

    assert folded(events).state == {"a": 1}
    assert folded(events).memory[0].value == {"a": 1}
    assert [error["code"] for error in errors(events)] == ["patch_failed", "patch_failed"]
    assert all(error["_meta"]["agjson/refused"]["patch"] == patch for error in errors(events))


def test_a_patch_without_a_value_to_change_is_refused() -> None:
    patch = [{"op": "add", "path": "/a", "value": 1}]
    emitter = Emitter("t", "thread")
    emitter.state_delta(patch)
    emitter.memory_write("user", key="k", patch=patch)
    emitter.memory_write("user", key="k", patch="no patch")
    events = finished(emitter)

    assert [error["code"] for error in errors(events)] == ["patch_failed"] * 3


def test_a_patch_finds_what_the_thread_has() -> None:
    patch = [{"op": "add", "path": "/b", "value": 2}]
    emitter = Emitter("t", "thread", state={"a": 1}, memory=[AgMemoryRecord(scope="user", key="k", value={"a": 1})])
    emitter.state_delta(patch)
    emitter.memory_write("user", key="k", patch=patch, reason="why", durable=True)
    emitter.memory_write("user", key="k", patch=[{"op": "test", "path": "/b", "value": 2}])
    emitter.flush()

    assert types(emitter.drain()) == ["turn.start", "state.delta", "memory.write", "memory.write", "turn.abort"]


def test_value_and_patch_exclude_each_other() -> None:
    emitter = Emitter("t", "thread")

    with pytest.raises(FieldError):
        emitter.memory_write("user", value=1, patch=[])
    with pytest.raises(FieldError):
        emitter.memory_write("user")

    finished(emitter)


# Extensions


def test_an_extension_carries_any_payload() -> None:
    emitter = Emitter("t", "thread")
    emitter.ext("ext.agjson.note", {"kind": "k", "type": "native", "id": 7, "shadowed": "own"}, id="e")
    emitter.ext("ext.agjson.note", [1, 2])
    emitter.ext("ext.agjson.note", {"shadowed": "alone"}, meta={"m": 1})

    assert wire(emitter.drain())[1:] == [
        {
            "type": "ext.agjson.note",
            "id": "e",
            "turnId": "t",
            "kind": "k",
            "shadowed": {"type": "native", "id": 7, "shadowed": "own"},
        },
        {"type": "ext.agjson.note", "turnId": "t", "value": [1, 2]},
        {"type": "ext.agjson.note", "turnId": "t", "shadowed": "alone", "_meta": {"m": 1}},
    ]


def test_an_extension_needs_a_proper_name_and_a_bad_one_uses_no_ordinal() -> None:
    emitter = Emitter("t", "thread")
    emitter.turn_start()

    with pytest.raises(FieldError):
        emitter.ext("ext.agjson", 1)

    emitter.text("goes on")
    finished(emitter)


# Snapshots


def test_a_snapshot_replaces_messages_and_new_content_opens_a_new_one() -> None:
    stored = AgMessage(
        id="m0", role="assistant", content=[ToolCallBlock(tool_call_id="c", name="f", input={})], turn_id="earlier"
    )
    emitter = Emitter("t", "thread")
    emitter.text("gone", id="b")
    emitter.messages_snapshot([stored], turns=[AgTurnRecord(turn_id="earlier", thread_id="thread")])
    emitter.text_delta("b", "new")
    assert emitter.tool_start("c", "g") == "c#2"
    assert emitter.message_start("m0") == "m0#2"
    assert emitter.subagent_start("earlier") == "earlier#2"
    events = finished(emitter)

    assert [message.id for message in folded(events).messages] == ["m0", "t:message:0#2", "m0#2"]
    assert [turn.turn_id for turn in folded(events).turns] == ["earlier", "t", "earlier#2"]


def test_a_call_that_a_snapshot_brought_can_be_answered() -> None:
    stored = AgMessage(id="m0", role="assistant", content=[ToolCallBlock(tool_call_id="c", name="f", input={})])
    emitter = Emitter("t", "thread")
    emitter.messages_snapshot([stored])

    assert emitter.tool_done("c", [TextBlock(text="r")]) == "c:result"
    emitter.tool_args_delta("c", "{}")

    events = finished(emitter)
    assert "tool.start" not in types(events)
    assert [error["code"] for error in errors(events)] == ["unknown_tool_call"]


def test_a_snapshot_keeps_the_turns_of_the_invoke_open() -> None:
    closed = AgTurnRecord(turn_id="t", thread_id="thread", outcome=SuccessOutcome(), finish_reason="stop")
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    emitter.messages_snapshot([], turns=[closed], artifacts=[], memory=[AgMemoryRecord(scope="thread", value={"a": 1})])
    emitter.text("in the subagent")
    emitter.memory_write("thread", patch=[{"op": "remove", "path": "/a"}])
    emitter.turn_done()
    emitter.turn_done()
    events = finished(emitter)

    assert {turn.turn_id: turn.outcome for turn in folded(events).turns} == {
        "t": SuccessOutcome(),
        "s": SuccessOutcome(),
    }
    assert folded(events).memory[0].value == {}
