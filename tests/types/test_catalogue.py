"""What holds for every wire type: names, tags, docstrings, tables, immutability."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import agjson.types as t


def public_classes() -> Iterator[type[Any]]:
    for name in t.__all__:
        value = getattr(t, name)
        if inspect.isclass(value) and value.__module__.startswith("agjson."):
            yield value


STRUCTS = [cls for cls in public_classes() if issubclass(cls, t.AgStruct)]
BARE_NOUNS = {"error": "ErrorEvent", "source": "SourceEvent", "handoff": "HandoffEvent"}


def pascal(wire: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[.-]", wire))


def test_all_is_complete_and_sorted_without_repeats() -> None:
    public = {name for name, value in vars(t).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public - {"annotations"} == set(t.__all__)
    assert len(t.__all__) == len(set(t.__all__))


def test_event_and_block_classes_are_named_after_their_type() -> None:
    assert {type_: arm.__name__ for type_, arm in t.EVENT_TYPES.items()} == {
        type_: BARE_NOUNS.get(type_, pascal(type_)) for type_ in t.EVENT_TYPES
    }
    assert [arm.__name__ for arm in t.BLOCK_TYPES.values()] == [f"{pascal(type_)}Block" for type_ in t.BLOCK_TYPES]


def test_tables_hold_the_arms_of_the_unions() -> None:
    assert set(t.EVENT_TYPES.values()) == set(typing.get_args(t.AgEvent))
    assert set(t.BLOCK_TYPES.values()) == set(typing.get_args(t.AgBlock))


@pytest.mark.parametrize("cls", list(public_classes()), ids=lambda cls: cls.__name__)
def test_docstring_names_its_section(cls: type[Any]) -> None:
    if cls in (t.AgStruct, t.FieldError):
        assert "spec §" in (cls.__doc__ or "")
        return
    assert re.search(r"\(spec §\d|§\d", (cls.__doc__ or "").splitlines()[0])


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__name__)
def test_docstring_explains_every_field(cls: type[t.AgStruct]) -> None:
    doc = inspect.getdoc(cls) or ""
    section = doc.partition("Attributes:\n")[2].partition("\n\n")[0]
    explained = set(re.findall(r"^    (\w+): ", section, re.MULTILINE))
    own = set(cls.__struct_fields__)
    if cls in t.EVENT_TYPES.values():
        own -= {"seq", "id", "turn_id", "message_id", "parent_id", "meta"} - explained
    if cls in typing.get_args(t.AgCitation) and cls is not t.CharCitation:
        assert "common fields are those of `CharCitation`" in " ".join(doc.split())
        own -= set(t.CharCitation.__struct_fields__) - explained
    assert explained == own


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__name__)
def test_the_tag_can_be_read_from_class_and_instance(cls: type[t.AgStruct]) -> None:
    config = cls.__struct_config__
    if config.tag is not None:
        assert vars(cls)[str(config.tag_field)] == config.tag
    assert config.frozen


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__name__)
def test_annotations_resolve(cls: type[t.AgStruct]) -> None:
    assert set(cls.__struct_fields__) <= set(typing.get_type_hints(cls))


@pytest.mark.parametrize("cls", list(t.EVENT_TYPES.values()), ids=lambda cls: cls.type)
def test_every_event_has_the_whole_envelope(cls: Any) -> None:
    assert {"seq", "id", "turn_id", "message_id", "parent_id", "meta"} <= set(cls.__struct_fields__)


VALUES = [
    t.TextDelta(seq=3, id="b", delta="x"),
    t.ArtifactEnd(seq=0, artifact_id="a"),
    t.StartInput(thread_id="th", turn_id="t", messages=[]),
    t.OpenAiCallTool(surface_id="s", name="n", args={"a": [1]}, call_id="c"),
    t.ExtEvent.embed("ext.acme.tick", {"n": 1}, seq=4, turn_id="t"),
    t.UnknownEvent("future.start", 7, b'{"type":"future.start","seq":7}'),
    t.UnknownBlock("hologram", b'{"type":"hologram"}'),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_immutable_and_copy(value: Any) -> None:
    name = "raw" if isinstance(value, (t.UnknownEvent, t.UnknownBlock)) else "turn_id"
    if not hasattr(value, name):
        name = "id"
    with pytest.raises(AttributeError, match="immutable"):
        setattr(value, name, "other")
    with pytest.raises(AttributeError):
        delattr(value, name)
    with pytest.raises(AttributeError):
        value.not_a_field = 1
    assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    assert repr(value).startswith(f"{type(value).__name__}(")


def test_unknown_values_compare_and_hash_by_their_fields() -> None:
    assert t.UnknownBlock("a", b"{}") == t.UnknownBlock("a", b"{}")
    assert t.UnknownBlock("a", b"{}") != t.UnknownBlock("a", b"{ }")
    assert t.UnknownEvent("a", 0, b"{}") != t.UnknownBlock("a", b"{}")
    assert len({t.UnknownEvent("a", 0, b"{}"), t.UnknownEvent("a", 0, b"{}")}) == 1
    assert len({t.UnknownBlock("a", b"{}"), t.UnknownBlock("a", b"{}")}) == 1


def test_tables_cannot_be_changed() -> None:
    for table in (t.EVENT_TYPES, t.BLOCK_TYPES, t.SURFACE_ARMS, t.SOURCE_PAYLOAD_ARMS, t.PROFILE_EVENTS):
        with pytest.raises(TypeError):
            typing.cast(Any, table)["x"] = None


def test_positional_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        typing.cast(Any, t.TextDelta)(0, "b", "x")


def test_every_arm_survives_its_own_encoding() -> None:
    decoder = msgspec.json.Decoder(t.AgEvent)
    event = t.TurnDone(seq=1, turn_id="t", outcome=t.SuccessOutcome(result=None), finish_reason="stop")
    assert decoder.decode(msgspec.json.encode(event)) == event
