"""The schemas as documents: well formed, complete, open, and saying what the types say."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import jsonschema
import pytest

import agjson.types
from agjson.errors import AgJSONError
from agjson.schema import definitions, json_schema, schema_name, schema_names
from agjson.types import AgEvent, AgRole, AgStruct, ExtEvent, FieldError, StartInput, TextDelta
from agjson.types.names import check_ext_type, check_version

DIALECT = "https://json-schema.org/draft/2020-12/schema"
OUTSIDE_THE_FORMAT = {"AgStruct", "FixedStruct", "UnknownEvent", "UnknownBlock"}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a schema, the schema itself first."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from parts(item)


def accepts(name: str, value: Any) -> bool:
    return jsonschema.Draft202012Validator(json_schema(name)).is_valid(value)


def event(type: str, **members: object) -> dict[str, object]:
    return {"type": type, "seq": 0, **members}


def start(**members: object) -> dict[str, object]:
    envelope = {"protocol": "agjson", "version": "1.0.0-draft.1", "threadId": "th", "turnId": "t"}
    return {"kind": "start", **envelope, "messages": [], **members}


@pytest.mark.parametrize("name", schema_names())
def test_every_schema_is_valid_2020_12(name: str) -> None:
    schema = json_schema(name)
    assert schema["$schema"] == DIALECT
    assert schema["title"] == name
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", schema_names())
def test_every_reference_resolves_inside_the_document(name: str) -> None:
    schema = json_schema(name)
    targets = {part["$ref"] for part in parts(schema) if "$ref" in part}
    assert {f"#/$defs/{each}" for each in schema.get("$defs", {})} == targets


@pytest.mark.parametrize("name", schema_names())
def test_no_object_is_closed_and_no_default_is_stated(name: str) -> None:
    for part in parts(json_schema(name)):
        assert "unevaluatedProperties" not in part
        assert part.get("additionalProperties") is not False
        assert "default" not in part


@pytest.mark.parametrize("name", schema_names())
def test_no_typed_field_is_nullable(name: str) -> None:
    for part in parts(json_schema(name)):
        assert part.get("type") != "null"
        assert "const" not in part or part["const"] is not None


def test_every_public_class_union_and_enum_has_a_schema() -> None:
    public = set(agjson.types.__all__)
    structs = {name for name in public if inspect.isclass(getattr(agjson.types, name))}
    records = {name for name in structs if issubclass(getattr(agjson.types, name), AgStruct)} - OUTSIDE_THE_FORMAT
    unions = {
        "AgEvent",
        "AgStreamEvent",
        "AgBlock",
        "AgInput",
        "AgSource",
        "AgSourcePayload",
        "AgCitation",
        "AgOutcome",
    }
    surfaces = {"AgSurfaceInteraction", "AgMcpAppViewMessage", "AgOpenAiWidgetAction"}
    enums = {"AgRole", "AgFinishReason", "AgAskKind", "AgToolOutcome", "AgMemoryScope", "AgProfile"}
    assert records | unions | surfaces | enums | {"ExtEvent"} <= set(schema_names())
    named = {name for name in public if name.startswith("Ag")} - {"AgStruct", "AgMeta", "AgProviderMeta"}
    assert named <= set(schema_names())
    assert len(records) > 120
    assert set(schema_names()).isdisjoint(OUTSIDE_THE_FORMAT)


def test_every_class_and_every_field_is_described() -> None:
    silent: list[str] = []
    for name, schema in definitions(schema_names()).items():
        if "properties" not in schema:
            continue
        if not schema.get("description"):
            silent.append(name)
        silent += [f"{name}.{field}" for field, part in schema["properties"].items() if not said(part)]
    assert silent == []


def said(part: dict[str, Any]) -> bool:
    """A field is described in words, or is a discriminant, whose one value says all."""
    return "const" in part or bool(part.get("description"))


def test_the_schema_of_a_small_event_in_full() -> None:
    schema = json_schema("TextDelta")
    assert "$defs" not in schema
    assert schema["type"] == "object"
    assert sorted(schema["required"]) == ["delta", "id", "seq", "type"]
    shapes = {key: {k: v for k, v in part.items() if k != "description"} for key, part in schema["properties"].items()}
    assert shapes == {
        "type": {"const": "text.delta"},
        "seq": {"type": "integer", "minimum": 0},
        "id": {"type": "string"},
        "turnId": {"type": "string"},
        "messageId": {"type": "string"},
        "parentId": {"type": "string"},
        "_meta": {"type": "object"},
        "delta": {"type": "string"},
        "providerMetadata": {"type": "object"},
    }


def test_texts_come_from_the_docstrings() -> None:
    schema = json_schema("ReasoningBlock")
    assert schema["description"].startswith("The model's reasoning: visible text, an opaque part, or both (spec §2).")
    assert schema["properties"]["itemId"]["description"] == "the OpenAI Responses reasoning item (`rs_...`)."
    assert schema["properties"]["_meta"]["description"] == "host-only metadata."


def test_opaque_fields_take_anything() -> None:
    properties = json_schema("ToolCallBlock")["properties"]
    assert {key: value for key, value in properties["input"].items() if key != "description"} == {}
    for value in (None, 1, "x", [], {"a": None}):
        assert accepts("AgBlock", {"type": "tool-call", "toolCallId": "c", "name": "n", "input": value})


def test_enums_are_named_and_referred_to() -> None:
    assert json_schema("AgRole")["enum"] == ["user", "assistant", "tool", "system", "notice"]
    assert json_schema("AgMessage")["properties"]["role"]["$ref"] == "#/$defs/AgRole"


def test_unions_list_their_arms_exclusively() -> None:
    arms = [part["$ref"].rpartition("/")[2] for part in json_schema("AgEvent")["oneOf"]]
    assert arms == [*(arm.__name__ for arm in get_args(AgEvent)), "ExtEvent"]
    assert len(arms) == 51
    types = [json_schema(arm)["properties"]["type"].get("const") for arm in arms[:-1]]
    assert len(set(types)) == 50


def test_recursive_types_refer_to_themselves() -> None:
    schema = json_schema("AgUsage")
    assert schema["properties"]["byModel"]["additionalProperties"] == {"$ref": "#/$defs/AgUsage"}
    assert accepts("AgUsage", {"byModel": {"a": {"byModel": {"b": {"totalTokens": 1.5}}}}})
    assert not accepts("AgUsage", {"byModel": {"a": {"byModel": {"b": {"totalTokens": "1"}}}}})


def test_a_schema_is_the_callers_own_copy() -> None:
    json_schema("AgMessage")["properties"].clear()
    json_schema("AgMessage")["$defs"]["AgUsage"].clear()
    assert "role" in json_schema("AgMessage")["properties"]
    assert json_schema("AgMessage")["$defs"]["AgUsage"] != {}


def test_definitions_bring_what_they_refer_to() -> None:
    found = definitions(["AgHitlAnswer", "ImageBlock"])
    assert list(found) == [
        "AgAnnotations",
        "AgAnswerStatus",
        "AgHitlAnswer",
        "AgSource",
        "Base64Source",
        "FileSource",
        "ImageBlock",
        "UrlSource",
    ]


def test_names_of_types() -> None:
    assert schema_name(TextDelta) == "TextDelta"
    assert schema_name(AgEvent) == "AgEvent"
    assert schema_name(ExtEvent) == "ExtEvent"
    assert schema_name(TextDelta | StartInput) is None
    assert schema_name(int) is None
    assert schema_names() == sorted(schema_names())


def test_an_unknown_name_is_refused_with_its_neighbours() -> None:
    with pytest.raises(AgJSONError, match=r"'textdelta'.*did you mean .*TextDelta.*schema_names\(\)"):
        json_schema("textdelta")
    with pytest.raises(AgJSONError, match=r"'AgMesage'.*AgMessage"):
        definitions(["AgMesage"])
    with pytest.raises(AgJSONError) as raised:
        json_schema("???")
    assert "did you mean" not in str(raised.value)


VERSIONS = [
    "1.0.0", "1.0.0-draft.1", "1.9.3", "1.0.0+build.5", "1.2.3-a.0.-1+x-y", "1.0.0-0", "1.0.0-01a", "1.10.200",
    "1", "1.0", "v1.0.0", "1.banana", "0.9.0", "2.0.0", "10.0.0", "1.0.0-", "1.0.0-01", "1.01.0", "1.0.0-a..b",
    "1.0.0+", "", " 1.0.0", "1.0.0.0",
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_pattern_agrees_with_the_rule_of_the_types(version: str) -> None:
    assert accepts("AgInput", start(version=version)) == holds(check_version, version)


EXT_TYPES = [
    "ext.acme.tick", "ext.acme.Tick", "ext.acme.a b", "ext.a-b.c-d.E_f", "ext.langgraph.task.detail", "ext.a1.x",
    "ext.acme", "ext", "ext..key", "ext.acme.", "ext.acme..key", "ext.Acme.tick", "ext.-a.key", "ext.a-.key",
    "ext.a--b.key", "ext.a_b.key", "x-acme.tick", "extra.acme.tick", "EXT.acme.tick",
]  # fmt: skip


@pytest.mark.parametrize("type", EXT_TYPES)
def test_the_ext_pattern_agrees_with_the_rule_of_the_types(type: str) -> None:
    assert accepts("AgEvent", event(type)) == holds(check_ext_type, type)
    assert accepts("ExtEvent", event(type)) == holds(check_ext_type, type)


def holds(rule: Any, value: str) -> bool:
    try:
        rule(value)
    except FieldError:
        return False
    return True


def test_ext_events_keep_the_envelope() -> None:
    assert accepts("AgEvent", event("ext.acme.tick", value=[1], shadowed={"seq": 1}, _meta={}))
    assert not accepts("AgEvent", event("ext.acme.tick", turnId=7))
    assert not accepts("AgEvent", {"type": "ext.acme.tick"})


SURFACE = {"surface": "a2ui", "surfaceId": "s"}
ACTION = {**SURFACE, "a2uiMessage": "action", "name": "n", "sourceComponentId": "c", "timestamp": "t", "context": {}}
A2UI_ERROR = {"surface": "a2ui", "a2uiMessage": "error", "code": "E", "message": "m"}

RULES: list[tuple[str, Mapping[str, object], bool]] = [
    ("AgEvent", event("memory.write", scope="user", value=None), True),
    ("AgEvent", event("memory.write", scope="user", patch=[]), True),
    ("AgEvent", event("memory.write", scope="user"), False),
    ("AgEvent", event("memory.write", scope="user", value=None, patch=None), False),
    ("AgEvent", event("message.remove", id="*"), False),
    ("AgEvent", event("message.remove", id="*", turnId="t"), True),
    ("AgEvent", event("message.remove", id="m"), True),
    ("AgEvent", event("artifact.end", artifactId="a", lastChunk=True), True),
    ("AgEvent", event("artifact.end", artifactId="a", lastChunk=1), False),
    ("AgHitlAnswer", {"askId": "a", "status": "resolved", "grantModeId": "once"}, True),
    ("AgHitlAnswer", {"askId": "a", "status": "cancelled", "grantModeId": "once"}, False),
    ("AgSurfaceInteraction", ACTION, True),
    ("AgSurfaceInteraction", {**ACTION, "wantResponse": False}, True),
    ("AgSurfaceInteraction", {**ACTION, "wantResponse": True}, False),
    ("AgSurfaceInteraction", {**ACTION, "wantResponse": True, "actionId": "x"}, True),
    ("AgSurfaceInteraction", {**ACTION, "surface": "mcp-app"}, False),
    ("AgSurfaceInteraction", {**A2UI_ERROR, "surfaceId": "s"}, True),
    ("AgSurfaceInteraction", {**A2UI_ERROR, "functionCallId": "f"}, True),
    ("AgSurfaceInteraction", A2UI_ERROR, False),
    ("AgSurfaceInteraction", {**A2UI_ERROR, "surfaceId": "s", "functionCallId": "f"}, False),
    ("AgSurfaceInteraction", {**A2UI_ERROR, "surfaceId": "s", "code": "VALIDATION_FAILED"}, False),
    ("AgSurfaceInteraction", {**A2UI_ERROR, "surfaceId": "s", "code": "VALIDATION_FAILED", "path": "/a"}, True),
    ("AgSourcePayload", {"url": "u"}, True),
    ("AgSourcePayload", {"type": "document"}, True),
    ("AgSourcePayload", {"type": "url", "url": "u", "title": "unknown here, and allowed"}, True),
    ("AgSourcePayload", {"type": "gcs", "url": "u"}, False),
    ("AgSourcePayload", {"title": "t"}, False),
]


@pytest.mark.parametrize(("name", "value", "valid"), RULES)
def test_rules_between_fields(name: str, value: Mapping[str, object], valid: bool) -> None:
    assert accepts(name, value) is valid


def test_discriminants_are_required_on_each_arm() -> None:
    assert accepts("StartInput", start())
    assert not accepts("StartInput", {**start(), "kind": "resume"})
    without_kind = start()
    del without_kind["kind"]
    assert not accepts("StartInput", without_kind)
    assert not accepts("ToolDone", event("tool.start", toolCallId="c", content=[]))


@pytest.mark.parametrize(("value", "name"), [(TextDelta, "TextDelta"), (AgEvent, "AgEvent"), (AgRole, "AgRole")])
def test_a_type_in_place_of_its_name_is_told_its_name(value: Any, name: str) -> None:
    for call in (json_schema, lambda given: definitions([given])):
        with pytest.raises(TypeError) as error:
            call(value)
        assert str(error.value) == f"a schema is named by a string, that of this type by {name!r}"
    assert json_schema(name)["title"] == name


@pytest.mark.parametrize("value", [5, None, ["AgEvent"], {}, int])
def test_what_is_neither_name_nor_type_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="a schema is named by a string, got "):
        json_schema(value)


def test_one_name_is_not_a_series_of_names() -> None:
    with pytest.raises(TypeError, match=r"definitions\(\['AgEvent'\]\)"):
        definitions("AgEvent")
