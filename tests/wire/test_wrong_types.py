"""Every field of every class refuses every JSON type but its own, and names its place (spec §5 trust boundary)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import agjson.types
from agjson import (
    AgStruct,
    DocumentSource,
    UnknownEvent,
    UnknownTypeError,
    ValidationError,
    decode_answer,
    decode_ask,
    decode_block,
    decode_event,
    decode_input,
    decode_message,
    decode_result,
    encode,
    from_dict,
    ingest_event,
)
from tests.support.instances import SITES, WRONG, faults, fields, full, minimal, required

STRICT: dict[str, Callable[[bytes], Any]] = {
    "event": decode_event,
    "block": decode_block,
    "input": decode_input,
    "message": decode_message,
    "result": decode_result,
    "ask": decode_ask,
    "answer": decode_answer,
}

CLASSES = [pytest.param(cls, id=cls.__name__) for cls in SITES]


def readers(kind: Any) -> list[Callable[[bytes], Any]]:
    """The strict and the lenient way to read a document."""
    lenient = ingest_event if kind == "event" else lambda text: from_dict(json.loads(text), kind, lenient=True)
    return [STRICT[kind], lenient]


def verdict(read: Callable[[bytes], Any], document: Any) -> str | None:
    """The path of the error that reading a document raises, or None."""
    try:
        read(json.dumps(document).encode())
    except ValidationError as error:
        return error.path
    return None


def test_every_class_of_the_format_is_tried() -> None:
    public = [getattr(agjson.types, name) for name in agjson.types.__all__]
    declared = {cls for cls in public if isinstance(cls, type) and issubclass(cls, AgStruct) and cls is not AgStruct}
    # Bases: nothing on the wire is of these classes themselves.
    bases = {cls for cls in declared if any(issubclass(other, cls) and other is not cls for other in declared)}
    assert set(SITES) == declared - bases


@pytest.mark.parametrize("cls", CLASSES)
def test_the_smallest_and_the_fullest_object_are_read(cls: type[AgStruct]) -> None:
    site = SITES[cls]
    for made in (minimal(cls), full(cls)):
        for read in readers(site.kind):
            assert json.loads(encode(read(json.dumps(site.document(made)).encode()))) == site.document(made)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_field_of_a_wrong_type_is_refused_at_its_place(cls: type[AgStruct]) -> None:
    site = SITES[cls]
    strict, lenient = readers(site.kind)
    wrong: list[str] = []
    tried = 0
    for name, tp in fields(cls).items():
        for path, value in faults(tp):
            document = site.document({**minimal(cls), name: value})
            expected = f"{site.path}.{name}{path}"
            tried += 1
            for read in (strict, lenient):
                if read is lenient and may_pass(name, value):
                    continue
                found = verdict(read, document)
                if found != expected:
                    wrong.append(f"{name}={value!r}: expected an error at {expected}, got {found}")
    assert wrong == []
    assert tried >= 5 * len(required(cls)) - 2


def may_pass(name: str, value: Any) -> bool:
    """What lenient reading carries: any number as ``seq``, unknown types, kinds and finish reasons."""
    if name == "seq":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return name in ("type", "finishReason") and isinstance(value, str)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_missing_field_is_named(cls: type[AgStruct]) -> None:
    site = SITES[cls]
    for name in required(cls):
        if cls is DocumentSource and name == "type":
            continue  # the source of a source event is a bare URL then
        document = site.document({key: value for key, value in minimal(cls).items() if key != name})
        for read in readers(site.kind):
            with pytest.raises(ValidationError, match=f"`{name}`") as caught:
                read(json.dumps(document).encode())
            assert caught.value.path == site.path


@pytest.mark.parametrize("kind", STRICT)
@pytest.mark.parametrize("json_type", [name for name in WRONG if name != "object"])
def test_a_document_is_an_object(kind: str, json_type: str) -> None:
    for read in readers(kind):
        assert verdict(read, WRONG[json_type]) == "$"


@pytest.mark.parametrize("value", [value for value in WRONG.values() if not isinstance(value, str)])
def test_an_event_type_that_is_no_string_is_malformed_for_both(value: Any) -> None:
    for read in (decode_event, ingest_event):
        assert verdict(read, {"type": value, "seq": 0}) == "$.type"


@pytest.mark.parametrize("name", ["id", "turnId", "messageId", "parentId"])
@pytest.mark.parametrize("json_type", [name for name in WRONG if name != "string"])
def test_the_envelope_of_an_extension_is_checked(name: str, json_type: str) -> None:
    for read in (decode_event, ingest_event):
        assert verdict(read, {"type": "ext.acme.tick", "seq": 0, name: WRONG[json_type]}) == f"$.{name}"


@pytest.mark.parametrize("type_", ["ext.acme.tick", "new.start"])
@pytest.mark.parametrize("json_type", [name for name in WRONG if name not in ("integer", "fraction")])
def test_the_ordinal_of_a_loose_event_is_a_number(type_: str, json_type: str) -> None:
    for read in (decode_event, ingest_event):
        assert verdict(read, {"type": type_, "seq": WRONG[json_type]}) == "$.seq"


def test_lenient_reading_carries_what_the_strict_one_refuses() -> None:
    with pytest.raises(UnknownTypeError):
        decode_event(b'{"type":"zzz","seq":0}')
    assert isinstance(ingest_event(b'{"type":"zzz","seq":0}'), UnknownEvent)
    assert (
        msgspec.json.decode(encode(ingest_event(b'{"type":"text.delta","seq":1.5,"id":"b","delta":""}')))["seq"] == 1.5
    )
