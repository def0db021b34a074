"""Rules between fields, refused at construction and at decoding alike (spec §2-§4, §6, §7, §12)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import agjson.types as t
from agjson.errors import AgJSONError


def action(**fields: Any) -> t.AgA2uiSurfaceAction:
    return t.AgA2uiSurfaceAction(
        surface_id="s",
        name="submit",
        source_component_id="b1",
        timestamp="2026-01-01T00:00:00Z",
        context={"a": None},
        **fields,
    )


def start(**fields: Any) -> t.StartInput:
    return t.StartInput(**{"thread_id": "th", "turn_id": "t", "messages": [], **fields})


BROKEN: list[tuple[str, Callable[[], Any], str, str]] = [
    ("memory both", lambda: t.MemoryWrite(seq=0, scope="user", value=1, patch=[]), "patch", "exclude each other"),
    ("memory null", lambda: t.MemoryWrite(seq=0, scope="user", value=None, patch=[]), "patch", "exclude each other"),
    ("memory neither", lambda: t.MemoryWrite(seq=0, scope="user", key="k"), "value", "one of value and patch"),
    ("remove all", lambda: t.MessageRemove(seq=0, id="*"), "turnId", 'required when id is "*"'),
    (
        "own parent start",
        lambda: t.SubagentStart(seq=0, turn_id="t", parent_turn_id="t"),
        "parentTurnId",
        "cannot be its own parent",
    ),
    (
        "own parent done",
        lambda: t.SubagentDone(seq=0, turn_id="t", parent_turn_id="t"),
        "parentTurnId",
        "cannot be its own parent",
    ),
    (
        "own parent record",
        lambda: t.AgTurnRecord(turn_id="t", thread_id="th", parent_turn_id="t"),
        "parentTurnId",
        "cannot be its own parent",
    ),
    ("own parent input", lambda: start(parent_turn_id="t"), "parentTurnId", "cannot be its own parent"),
    ("last chunk", lambda: t.ArtifactEnd(seq=0, artifact_id="a", last_chunk=False), "lastChunk", "must be true"),  # pyright: ignore[reportArgumentType]
    ("action id", lambda: action(want_response=True), "actionId", "required when wantResponse is true"),
    (
        "error both",
        lambda: t.AgA2uiError(surface_id="s", function_call_id="f", code="E", message="m"),
        "functionCallId",
        "exclude each other",
    ),
    ("error neither", lambda: t.AgA2uiError(code="E", message="m"), "surfaceId", "is required"),
    (
        "error path",
        lambda: t.AgA2uiError(surface_id="s", code="VALIDATION_FAILED", message="m"),
        "path",
        "required when code is VALIDATION_FAILED",
    ),
    (
        "grant declined",
        lambda: t.AgHitlAnswer(ask_id="a", status="declined", grant_mode_id="once"),
        "grantModeId",
        "not allowed when status is declined",
    ),
    (
        "grant cancelled",
        lambda: t.AgHitlAnswer(ask_id="a", status="cancelled", grant_mode_id="once"),
        "grantModeId",
        "not allowed when status is cancelled",
    ),
    ("major", lambda: start(version="2.0.0"), "version", "major version 2 is not supported"),
]


@pytest.mark.parametrize(("build", "field", "words"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_construction_refuses_and_names_the_wire_field(build: Callable[[], Any], field: str, words: str) -> None:
    with pytest.raises(t.FieldError, match=f"^{field}: .*{words}") as caught:
        build()
    assert isinstance(caught.value, AgJSONError)
    assert caught.value.field == field
    assert str(caught.value) == f"{field}: {caught.value.message}"


HELD: list[Any] = [
    t.MemoryWrite(seq=0, scope="user", value=None),
    t.MemoryWrite(seq=0, scope="user", patch=None),
    t.MessageRemove(seq=0, id="*", turn_id="t"),
    t.MessageRemove(seq=0, id="m"),
    t.SubagentStart(seq=0, turn_id="t2", parent_turn_id="t"),
    start(parent_turn_id="p"),
    t.ArtifactEnd(seq=0, artifact_id="a"),
    action(want_response=True, action_id="x"),
    action(want_response=False),
    t.AgA2uiError(function_call_id="f", code="VALIDATION_FAILED", message="m", path="/a"),
    t.AgHitlAnswer(ask_id="a", status="resolved", grant_mode_id="once"),
    t.AgHitlAnswer(ask_id="a", status="declined"),
]


@pytest.mark.parametrize("value", HELD, ids=lambda value: type(value).__name__)
def test_what_keeps_the_rules_round_trips(value: Any) -> None:
    assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


@pytest.mark.parametrize(
    ("cls", "wire", "words"),
    [
        (t.AgEvent, {"type": "memory.write", "seq": 0, "scope": "user", "value": None, "patch": []}, "exclude"),
        (t.AgEvent, {"type": "message.remove", "seq": 0, "id": "*"}, "turnId"),
        (t.AgEvent, {"type": "artifact.end", "seq": 0, "artifactId": "a", "lastChunk": False}, "must be true"),
        (t.AgEvent, {"type": "subagent.start", "seq": 0, "turnId": "t", "parentTurnId": "t"}, "own parent"),
        (t.AgHitlAnswer, {"askId": "a", "status": "declined", "grantModeId": "m"}, "grantModeId"),
    ],
)
def test_decoding_refuses_the_same(cls: Any, wire: dict[str, Any], words: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=words) as caught:
        msgspec.json.decode(json.dumps(wire), type=cls)
    assert isinstance(caught.value.__cause__, t.FieldError)


@pytest.mark.parametrize(
    "version",
    ["1.0.0", "1.0.0-draft.1", "1.9.3", "1.0.0+build.5", "1.0.0-rc.1+a.b", "1.0.0--", "1.0.0-0a", "1.10.20-x-y.z"],
)
def test_versions_of_major_one(version: str) -> None:
    t.check_version(version)
    assert start(version=version).version == version


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("1", "not a semantic version"),
        ("1.0", "not a semantic version"),
        ("v1.0.0", "not a semantic version"),
        ("1.banana", "not a semantic version"),
        ("01.0.0", "not a semantic version"),
        ("1.0.00", "not a semantic version"),
        ("1.0.0-01", "not a semantic version"),
        ("1.0.0-", "not a semantic version"),
        ("1.0.0-a..b", "not a semantic version"),
        ("1.0.0+", "not a semantic version"),
        (" 1.0.0", "not a semantic version"),
        ("1.0.0\n", "not a semantic version"),
        ("", "not a semantic version"),
        ("0.9.0", "major version 0"),
        ("10.0.0", "major version 10"),
        ("2.0.0-draft.1", "major version 2"),
    ],
)
def test_other_versions_are_refused(version: str, words: str) -> None:
    with pytest.raises(t.FieldError, match=words):
        t.check_version(version)
    with pytest.raises(t.FieldError, match=r"^version: "):
        start(version=version)


@pytest.mark.parametrize("seq", [-1, 1.5, True, "0", None])
def test_seq_is_an_ordinal(seq: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.seq"):
        msgspec.json.decode(json.dumps({"type": "turn.abort", "seq": seq}), type=t.AgEvent)


@pytest.mark.parametrize("number", [1, 1.5, 0, -2])
def test_a_number_is_an_integer_or_a_fraction(number: float) -> None:
    usage = msgspec.json.decode(json.dumps({"inputTokens": number}), type=t.AgUsage)
    assert usage.input_tokens == number
    assert type(usage.input_tokens) is type(number)


def test_a_number_is_no_boolean() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"inputTokens":true}', type=t.AgUsage)
