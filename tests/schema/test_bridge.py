"""Pydantic handles the wire types through `Bridge`: in fields and adapters, both ways, with schema and error places."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Annotated, Any

import jsonschema
import pytest
from pydantic import BaseModel, Field, TypeAdapter
from pydantic import ValidationError as PydanticError
from pydantic_core import PydanticSerializationError

from agjson.bridge import Bridge
from agjson.errors import AgJSONError, EncodeError, MissingExtraError
from agjson.types import (
    AgBlock,
    AgEvent,
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    AgUsage,
    ExtEvent,
    ResumeInput,
    StartInput,
    TextBlock,
    TextDelta,
    ToolResultBlock,
)
from agjson.wire import extra_fields
from tests.support.corpus import ROOT

DELTA = {"type": "text.delta", "seq": 3, "id": "b", "delta": "hi"}
MESSAGE = {"id": "m", "role": "user", "content": [{"type": "text", "text": "hi"}]}
START = {
    "kind": "start",
    "protocol": "agjson",
    "version": "1.0.0-draft.1",
    "threadId": "th",
    "turnId": "t",
    "messages": [MESSAGE],
}
RESULT: dict[str, Any] = {"messages": [MESSAGE], "artifacts": [], "memory": [], "turns": []}
ANSWER = {"askId": "a", "status": "resolved", "reply": None}
ASK = {"askId": "a", "kind": "approval"}


class Envelope(BaseModel):
    """What an application might keep."""

    title: str
    message: Annotated[AgMessage, Bridge(AgMessage)]
    events: list[Annotated[AgStreamEvent, Bridge(AgStreamEvent)]] = Field(default_factory=list)
    answer: Annotated[AgHitlAnswer, Bridge(AgHitlAnswer)] | None = None


def adapter(tp: Any) -> TypeAdapter[Any]:
    annotated: Any = Annotated[tp, Bridge(tp)]  # pyright: ignore[reportInvalidTypeForm]  # known at run time alone
    return TypeAdapter(annotated)


WHOLE: list[tuple[Any, dict[str, Any]]] = [
    (AgInput, START),
    (AgEvent, DELTA),
    (AgStreamEvent, {"type": "ext.acme.tick", "seq": 0, "n": 1}),
    (AgBlock, {"type": "data", "name": "n", "data": None}),
    (AgMessage, MESSAGE),
    (AgReduceResult, RESULT),
    (AgHitlAnswer, ANSWER),
    (AgPausedAsk, ASK),
    (StartInput, START),
    (StartInput | ResumeInput, START),
    (TextDelta, DELTA),
    (ExtEvent, {"type": "ext.acme.tick", "seq": 0, "value": [1]}),
]
IDS = [repr(Bridge(tp)) for tp, _ in WHOLE]


@pytest.mark.parametrize(("tp", "data"), WHOLE, ids=IDS)
def test_data_text_and_instances_are_read_and_written(tp: Any, data: dict[str, Any]) -> None:
    known = adapter(tp)
    value = known.validate_python(data)
    assert known.validate_json(json.dumps(data)) == value
    assert known.validate_json(json.dumps(data).encode()) == value
    assert known.validate_python(value) is value
    assert known.dump_python(value) == data
    assert json.loads(known.dump_json(value)) == data


@pytest.mark.parametrize(("tp", "data"), WHOLE, ids=IDS)
def test_the_schema_is_valid_complete_and_takes_the_data(tp: Any, data: dict[str, Any]) -> None:
    for mode in ("validation", "serialization"):
        schema = adapter(tp).json_schema(mode=mode)  # pyright: ignore[reportArgumentType]
        validator = jsonschema.Draft202012Validator(schema)
        validator.check_schema(schema)
        assert validator.is_valid(data)
        assert not validator.is_valid({})


def test_fields_of_a_model_round_trip() -> None:
    data = {"title": "x", "message": MESSAGE, "events": [DELTA, {"type": "ext.acme.tick", "seq": 4}], "answer": ANSWER}
    model = Envelope.model_validate(data)
    assert model.message == AgMessage(id="m", role="user", content=[TextBlock(text="hi")])
    assert isinstance(model.events[1], ExtEvent)
    assert model.model_dump() == data
    assert json.loads(model.model_dump_json()) == data
    assert Envelope.model_validate_json(model.model_dump_json()) == model


def test_instances_inside_plain_data_are_taken() -> None:
    known = adapter(AgMessage).validate_python(
        {**MESSAGE, "content": [TextBlock(text="a"), {"type": "text", "text": "b"}]}
    )
    assert [block.text for block in known.content] == ["a", "b"]


def test_unknown_fields_are_kept_at_every_depth() -> None:
    data = {**MESSAGE, "later": 12345678901234567890123, "content": [{"type": "text", "text": "hi", "later": [None]}]}
    for value in (adapter(AgMessage).validate_python(data), adapter(AgMessage).validate_json(json.dumps(data))):
        assert bytes(extra_fields(value)["later"]) == b"12345678901234567890123"
        assert adapter(AgMessage).dump_python(value) == data


def errors(tp: Any, data: Any) -> list[tuple[str, tuple[int | str, ...], Any]]:
    with pytest.raises(PydanticError) as raised:
        adapter(tp).validate_python(data)
    return [(error["type"], error["loc"], error["input"]) for error in raised.value.errors()]


def test_an_error_names_its_place_and_the_value_there() -> None:
    data = {**START, "messages": [MESSAGE, {**MESSAGE, "content": [{"type": "text", "text": 5}]}]}
    assert errors(AgInput, data) == [("agjson_invalid", ("messages", 1, "content", 0, "text"), 5)]


def test_an_unknown_kind_has_a_type_of_its_own() -> None:
    data = {**MESSAGE, "content": [{"type": "hologram"}]}
    assert errors(AgMessage, data) == [("agjson_unknown_type", ("content", 0, "type"), "hologram")]


def test_a_missing_field_is_reported_at_its_object() -> None:
    assert errors(AgMessage, {"id": "m", "role": "user"}) == [("agjson_invalid", (), "{'id': 'm', 'role': 'user'}")]


def test_rules_between_fields_hold() -> None:
    data = {"type": "message.remove", "seq": 0, "id": "*"}
    assert errors(AgEvent, data) == [("agjson_invalid", ("turnId",), "{'id': '*', 'seq': 0, 'type': 'message.remove'}")]


def test_keys_with_dots_in_them_are_one_step() -> None:
    usage = {"byModel": {"gpt-5.5": {"byModel": {"a[0].b": {"totalTokens": "1"}}}}}
    place = ("usage", "byModel", "gpt-5.5", "byModel", "a[0].b", "totalTokens")
    assert errors(AgMessage, {**MESSAGE, "usage": usage}) == [("agjson_invalid", place, "1")]


def test_the_place_inside_a_model_includes_the_field() -> None:
    with pytest.raises(PydanticError) as raised:
        Envelope.model_validate({"title": "x", "message": MESSAGE, "events": [DELTA, {**DELTA, "seq": -1}]})
    assert [error["loc"] for error in raised.value.errors()] == [("events", 1, "seq")]


@pytest.mark.parametrize("value", ["\ud83d", float("nan"), [[[[[[[[[1]]]]]]]]], {"\ud83d": "x" * 10**6}])
def test_an_error_can_always_be_written_as_json(value: object) -> None:
    ((_, _, shown),) = errors(AgMessage, {**MESSAGE, "role": value})
    assert len(json.dumps(shown, ensure_ascii=False, allow_nan=False).encode()) < 200


def test_an_error_below_a_key_with_half_a_character_can_be_written_as_json() -> None:
    usage = {"byModel": {"\ud83d": {"totalTokens": "1"}}}
    ((_, place, _),) = errors(AgMessage, {**MESSAGE, "usage": usage})
    assert place == ("usage", "byModel", "\\ud83d", "totalTokens")


def test_a_message_with_braces_is_shown_as_it_is() -> None:
    with pytest.raises(PydanticError, match=r"\{type\}"):
        adapter(AgEvent).validate_python({"type": "{type}", "seq": 0})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_has_no_json_form_is_refused_on_the_way_in(value: object) -> None:
    assert [kind for kind, _, _ in errors(AgHitlAnswer, {**ANSWER, "reply": value})] == ["agjson_invalid"]


def test_what_has_no_json_form_is_refused_on_the_way_out() -> None:
    answer = AgHitlAnswer(ask_id="a", status="resolved", reply=float("nan"))
    with pytest.raises((EncodeError, PydanticSerializationError)):
        adapter(AgHitlAnswer).dump_json(answer)


@pytest.mark.parametrize("text", [json.dumps(START), json.dumps(START).encode(), bytearray(b"{}")])
def test_text_is_no_value(text: object) -> None:
    assert [(kind, place) for kind, place, _ in errors(AgInput, text)] == [("agjson_invalid", ())]


@pytest.mark.parametrize("value", [None, 1, [], [START]])
def test_other_values_are_refused(value: object) -> None:
    assert [kind for kind, _, _ in errors(AgInput, value)] == ["agjson_invalid"]


def test_the_arms_of_the_annotation_alone_are_taken() -> None:
    resume = {**START, "kind": "resume"}
    assert isinstance(adapter(ResumeInput).validate_python(resume), ResumeInput)
    with pytest.raises(PydanticError, match="Expected StartInput, got ResumeInput"):
        adapter(StartInput).validate_python(resume)
    with pytest.raises(PydanticError, match="Expected AgEvent, got ExtEvent"):
        adapter(AgEvent).validate_python({"type": "ext.acme.tick", "seq": 0})
    assert "ExtEvent" not in adapter(AgEvent).json_schema()["$defs"]
    assert "ExtEvent" in adapter(AgStreamEvent).json_schema()["$defs"]


@pytest.mark.parametrize("tp", [AgUsage, int, StartInput | TextBlock, AgMessage | None])
def test_types_that_the_wire_does_not_read_as_a_whole_are_refused(tp: Any) -> None:
    with pytest.raises(AgJSONError, match=r"Bridge cannot read .*AgInput"):
        Bridge(tp)


def test_every_type_is_a_component_of_its_own_name() -> None:
    schema = Envelope.model_json_schema()
    assert schema["properties"]["message"]["$ref"] == "#/$defs/AgMessage"
    assert schema["properties"]["events"]["items"]["$ref"] == "#/$defs/AgStreamEvent"
    blocks = {part["$ref"] for part in schema["$defs"]["AgBlock"]["oneOf"]}
    assert "#/$defs/ToolResultBlock" in blocks
    assert schema["$defs"]["ToolResultBlock"]["properties"]["content"]["items"] == {"$ref": "#/$defs/AgBlock"}


def test_a_class_of_the_application_with_the_same_name_is_kept_apart() -> None:
    ours = type("TextBlock", (BaseModel,), {"__annotations__": {"words": str}})

    class Page(BaseModel):
        """Both."""

        own: ours  # type: ignore[valid-type]
        block: Annotated[ToolResultBlock, Bridge(ToolResultBlock)]

    schema = Page.model_json_schema()
    validator = jsonschema.Draft202012Validator(schema)
    result = {"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": "hi"}]}
    assert validator.is_valid({"own": {"words": "w"}, "block": result})
    assert not validator.is_valid(
        {"own": {"words": "w"}, "block": {**result, "content": [{"type": "text", "words": "w"}]}}
    )


def test_the_module_imports_without_pydantic_and_says_what_is_missing() -> None:
    program = """
import sys
sys.modules["pydantic"] = sys.modules["pydantic_core"] = None
from agjson.bridge import Bridge
from agjson.types import AgInput
try:
    Bridge(AgInput)
except ImportError as error:
    print(type(error).__name__, error.extra, error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "MissingExtraError serve pydantic is not installed: pip install 'agjson[serve]'\n"
    assert issubclass(MissingExtraError, ImportError)
