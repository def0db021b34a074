"""Vendor extensions: their names, and payloads that never lose a byte (spec §0.3, §0.4, §12)."""

from __future__ import annotations

from typing import Any

import pytest

import agjson.types as t
from agjson.types import ExtEvent


@pytest.mark.parametrize(
    "type_",
    [
        "ext.acme.tick",
        "ext.langgraph.task.detail",
        "ext.com.acme-corp.frame",
        "ext.a1.2b",
        "ext.acme.anyThing_goes",
    ],
)
def test_good_names(type_: str) -> None:
    t.check_ext_type(type_)
    assert t.is_ext_type(type_)
    assert t.is_ext_type(type_, lenient=True)


@pytest.mark.parametrize("type_", ["ext", "ext.", "ext.acme", "ext..key", "ext.acme.", "ext.acme..key", "x-acme.tick"])
def test_names_that_no_one_accepts(type_: str) -> None:
    assert not t.is_ext_type(type_)
    assert not t.is_ext_type(type_, lenient=True)
    with pytest.raises(t.FieldError, match=r"^type: expected `ext\.<vendor>\.<key>`"):
        t.check_ext_type(type_)


@pytest.mark.parametrize("type_", ["ext.Acme.Tick", "ext.acme_corp.tick", "ext.-acme.tick", "ext.a--b.tick"])
def test_names_that_only_a_consumer_accepts(type_: str) -> None:
    assert not t.is_ext_type(type_)
    assert t.is_ext_type(type_, lenient=True)
    with pytest.raises(t.FieldError, match=r"^type: the segments of"):
        t.check_ext_type(type_)
    assert ExtEvent(type_, 0).type == type_


def test_vendor_and_key() -> None:
    event = ExtEvent("ext.langgraph.task.detail", 0)
    assert (event.vendor, event.key) == ("langgraph", "task.detail")


@pytest.mark.parametrize(
    ("payload", "members"),
    [
        ({"n": 1, "deep": {"a": [None]}}, {"n": 1, "deep": {"a": [None]}}),
        ({}, {}),
        ([1, 2], {"value": [1, 2]}),
        ("text", {"value": "text"}),
        (3.5, {"value": 3.5}),
        (True, {"value": True}),
        (None, {"value": None}),
        ({"value": 1}, {"value": 1}),
        ({"shadowed": {"a": 1}, "n": 2}, {"shadowed": {"a": 1}, "n": 2}),
        ({"seq": "mine", "n": 2}, {"n": 2, "shadowed": {"seq": "mine"}}),
        ({"type": "t"}, {"shadowed": {"type": "t"}}),
        ({"id": 1}, {"shadowed": {"id": 1}}),
        ({"turnId": None}, {"shadowed": {"turnId": None}}),
        ({"messageId": []}, {"shadowed": {"messageId": []}}),
        ({"parentId": {}}, {"shadowed": {"parentId": {}}}),
        ({"_meta": "m"}, {"shadowed": {"_meta": "m"}}),
        ({"id": 1, "shadowed": "own"}, {"shadowed": {"id": 1, "shadowed": "own"}}),
        (
            {"id": 1, "_meta": 2, "shadowed": {"shadowed": 3}, "value": 4},
            {"value": 4, "shadowed": {"id": 1, "_meta": 2, "shadowed": {"shadowed": 3}}},
        ),
    ],
)
def test_payload_embedding(payload: Any, members: dict[str, Any]) -> None:
    event = ExtEvent.embed("ext.acme.tick", payload, seq=5)
    assert event.payload == members
    assert event.as_members() == {"type": "ext.acme.tick", "seq": 5, **members}


def test_embedding_leaves_the_callers_payload_alone() -> None:
    payload = {"id": 1, "n": 2}
    ExtEvent.embed("ext.acme.tick", payload, seq=0)
    assert payload == {"id": 1, "n": 2}


def test_envelope_of_an_extension() -> None:
    event = ExtEvent.embed(
        "ext.acme.tick", {"n": 1}, seq=5, id="e", turn_id="t", message_id="m", parent_id="p", meta={"k": 1}
    )
    assert list(event.as_members().items()) == [
        ("type", "ext.acme.tick"),
        ("seq", 5),
        ("id", "e"),
        ("turnId", "t"),
        ("messageId", "m"),
        ("parentId", "p"),
        ("_meta", {"k": 1}),
        ("n", 1),
    ]
    assert ExtEvent("ext.acme.tick", 5).turn_id is None


def test_embedding_checks_the_name() -> None:
    with pytest.raises(t.FieldError, match=r"^type: "):
        ExtEvent.embed("ext.Acme.Tick", {}, seq=0)


def test_the_constructor_refuses_what_could_not_be_written() -> None:
    with pytest.raises(t.FieldError, match=r"^turnId: belongs to the envelope"):
        ExtEvent("ext.acme.tick", 0, {"turnId": "x"})
    with pytest.raises(t.FieldError, match=r"^type: expected"):
        ExtEvent("acme.tick", 0)


def test_extensions_compare_by_their_members_and_have_no_hash() -> None:
    assert ExtEvent("ext.a.b", 0, {"n": 1}) == ExtEvent("ext.a.b", 0, {"n": 1})
    assert ExtEvent("ext.a.b", 0, {"n": 1}) != ExtEvent("ext.a.b", 0, {"n": 2})
    assert ExtEvent("ext.a.b", 0) != ExtEvent("ext.a.b", 1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(ExtEvent("ext.a.b", 0))


@pytest.mark.parametrize(
    ("type_", "event"),
    [("text.delta", True), ("error", True), ("handoff", True), ("ext.a.b", True), ("text", False), ("data", False)],
)
def test_the_form_of_a_type_tells_events_from_blocks(type_: str, event: bool) -> None:
    assert t.is_event_type(type_) is event
