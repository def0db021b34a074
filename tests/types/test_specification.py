"""Every class has exactly the fields that the specification declares, with their types, required where they are."""

from __future__ import annotations

import re
import typing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agjson.types as t
from tests.support.corpus import require_corpus
from tests.support.spec_shapes import Fields, Spec, class_fields, read_spec

pytestmark = pytest.mark.corpus

BASE: Fields = {
    "seq": (False, "number"),
    "id": (True, "string"),
    "turnId": (True, "string"),
    "messageId": (True, "string"),
    "parentId": (True, "string"),
    "_meta": (True, ("map", "unknown")),
}

GRANT_MODE: Fields = {
    "id": (False, "string"),
    "label": (True, "string"),
    "description": (True, "string"),
}
# What draft.2 adds to the draft.1 text.
DRAFT_2: dict[str, Fields] = {
    "AgMessage": {"noticeSource": (True, frozenset({("lit", "host"), ("lit", "adapter"), ("lit", "framework")}))},
    "AgPausedAsk": {"grantModes": (True, ("list", ("object", GRANT_MODE)))},
    "AgHitlAnswer": {"grantModeId": (True, "string")},
    "message.start": {"noticeSource": (True, frozenset({("lit", "host"), ("lit", "adapter"), ("lit", "framework")}))},
    "hitl.ask": {"grantModes": (True, ("list", ("object", GRANT_MODE)))},
}

RECORDS = [
    "AgAnnotations", "AgArtifact", "AgAuthConfig", "AgCapabilities", "AgChoice", "AgEmbeddedResource", "AgHitlAnswer",
    "AgMemoryRecord", "AgMessage", "AgOpaque", "AgPausedAsk", "AgReasoningConfig", "AgReduceResult", "AgRunConfig",
    "AgSafety", "AgToolDef", "AgTrigger", "AgTurnRecord", "AgUsage",
]  # fmt: skip


@cache
def specification() -> Spec:
    path = require_corpus() / "spec" / "agjson-v1.md"
    spec = read_spec(path)
    roles = spec.types["AgRole"]
    spec.types["AgRole"] = ("union", [*roles[1], ("lit", "notice")])
    return spec


def spec_text() -> str:
    return Path(require_corpus() / "spec" / "agjson-v1.md").read_text()


def arms_by(name: str, *discriminants: str) -> dict[str, Fields]:
    """The arms of a declared union by the values of their discriminants."""
    found: dict[str, Fields] = {}
    for fields in specification().variants(name):
        key = "/".join(fields[d][1][1] for d in discriminants if d in fields)
        found[key] = fields
    return found


def test_the_event_table_is_that_of_the_specification() -> None:
    arms = arms_by("AgEvent", "type")
    assert arms.pop("ext.${string}.${string}") == {"type": (False, ("lit", "ext.${string}.${string}"))}
    assert list(t.EVENT_TYPES) == list(arms)
    assert len(t.EVENT_TYPES) == 50


def test_the_block_table_is_that_of_the_specification() -> None:
    assert list(t.BLOCK_TYPES) == list(arms_by("AgBlock", "type"))
    assert len(t.BLOCK_TYPES) == 16


@pytest.mark.parametrize("type_", t.EVENT_TYPES)
def test_event_fields(type_: str) -> None:
    expected = {**BASE, **arms_by("AgEvent", "type")[type_], **DRAFT_2.get(type_, {})}
    assert class_fields(t.EVENT_TYPES[type_], specification()) == expected


@pytest.mark.parametrize("type_", t.BLOCK_TYPES)
def test_block_fields(type_: str) -> None:
    assert class_fields(t.BLOCK_TYPES[type_], specification()) == arms_by("AgBlock", "type")[type_]


@pytest.mark.parametrize("name", RECORDS)
def test_record_fields(name: str) -> None:
    (expected,) = specification().variants(name)
    assert class_fields(getattr(t, name), specification()) == {**expected, **DRAFT_2.get(name, {})}


def test_client_capabilities() -> None:
    (expected,) = specification().variants("AgClientCapabilities")
    expected["hitl"][1][1]["grantModes"] = (True, "boolean")
    assert class_fields(t.AgClientCapabilities, specification()) == expected


@pytest.mark.parametrize(
    ("name", "union", "discriminant"),
    [
        ("AgSource", t.AgSource, "type"),
        ("AgCitation", t.AgCitation, "kind"),
        ("AgOutcome", t.AgOutcome, "type"),
        ("AgInput", t.AgInput, "kind"),
    ],
)
def test_union_arms(name: str, union: Any, discriminant: str) -> None:
    found = {arm.__struct_config__.tag: class_fields(arm, specification()) for arm in typing.get_args(union)}
    assert found == arms_by(name, discriminant)


def test_source_payload_arms() -> None:
    expected = specification().variants("AgSourcePayload")
    classes = [*t.SOURCE_PAYLOAD_ARMS.values(), t.BareUrlSource]
    assert sorted(map(repr, expected)) == sorted(repr(class_fields(arm, specification())) for arm in classes)


@pytest.mark.parametrize("key", t.SURFACE_ARMS, ids="/".join)
def test_surface_arms(key: tuple[str, str]) -> None:
    arms = arms_by("AgSurfaceInteraction", "surface", "a2uiMessage", "method")
    assert set(arms) == {"/".join(pair) for pair in t.SURFACE_ARMS}
    assert class_fields(t.SURFACE_ARMS[key], specification()) == arms["/".join(key)]


def test_finish_reasons_and_roles() -> None:
    for name in ("AgFinishReason", "AgRole"):
        literals = {value for _, value in specification().types[name][1]}
        assert set(typing.get_args(getattr(t, name))) == literals


def test_final_segments_are_those_of_the_rule() -> None:
    sentence = re.search(r"drawn from the closed set: `([^`]+)`(.*?)`remove` \(message deletion\)", spec_text())
    assert sentence is not None
    tail = re.findall(r"`([a-z-]+)` \(", sentence[2])
    assert {*sentence[1].split(" | "), *tail} == t.FINAL_SEGMENTS


def test_every_event_type_ends_in_a_final_segment() -> None:
    assert {type_.rsplit(".", 1)[-1] for type_ in t.EVENT_TYPES if "." in type_} <= t.FINAL_SEGMENTS
    assert {type_ for type_ in t.EVENT_TYPES if "." not in type_} == t.BARE_EVENT_TYPES
    assert not [type_ for type_ in t.BLOCK_TYPES if "." in type_]


def test_the_version_is_the_one_of_the_text() -> None:
    assert f"Spec version: `{t.SPEC_VERSION}`" in spec_text()


def test_reserved_vendors() -> None:
    sentence = re.search(r"Reserved segments[^:]*: ([^.]*)\.", spec_text())
    assert sentence is not None
    assert set(re.findall(r"`([a-z]+)`", sentence[1])) == t.RESERVED_VENDORS


def test_a_missing_field_would_be_seen() -> None:
    class Short(msgspec.Struct, tag_field="type", tag="text", rename="camel"):
        text: str

    assert class_fields(Short, specification()) != arms_by("AgBlock", "type")["text"]
