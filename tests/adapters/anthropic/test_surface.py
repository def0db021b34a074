"""``surface.json`` lists what the installed client knows, all of it and nothing else, each with what becomes of it."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, get_args, get_origin

import anthropic
import pytest
from anthropic import types as plain_types
from anthropic.lib import streaming
from anthropic.types import beta as beta_types
from anthropic.types.beta_error_object import BetaErrorObject
from anthropic.types.shared.error_object import ErrorObject
from anthropic.types.shared.error_type import ErrorType
from pydantic import BaseModel

from agjson.adapters.anthropic._citations import CITATION_TYPES
from agjson.adapters.anthropic._fields import BLOCKS, DELTAS, EVENTS, MESSAGE, MESSAGE_DELTA
from agjson.adapters.anthropic._server_tools import RESULT_CONTENT_TYPES
from agjson.adapters.anthropic._stop import ERROR_TYPES, STOP_REASONS
from tests.support.anthropic_wire import START, STOP, Native, block, end, normalize, plain, text

SURFACE: dict[str, Any] = json.loads(files("agjson.adapters.anthropic").joinpath("surface.json").read_text("utf-8"))
EVENT_UNIONS = (plain_types.RawMessageStreamEvent, beta_types.BetaRawMessageStreamEvent)
# Two names of one model.
RENAMED = {"CitationsSearchResultLocation": "CitationSearchResultLocation"}


def leaves(annotation: Any) -> Iterator[Any]:
    """The classes and literals that an annotation is made of."""
    origin = get_origin(annotation)
    if origin is None or origin is typing.Literal:
        yield annotation
    else:
        for part in get_args(annotation)[:1] if origin is typing.Annotated else get_args(annotation):
            yield from leaves(part)


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    for leaf in leaves(annotation):
        if isinstance(leaf, type) and issubclass(leaf, BaseModel):
            yield leaf


def literals(annotation: Any) -> set[str]:
    return {value for leaf in leaves(annotation) if get_origin(leaf) is typing.Literal for value in get_args(leaf)}


def name_of(model: type[BaseModel]) -> str:
    """One name for the plain and the beta model."""
    name = model.__name__.removeprefix("Beta")
    return RENAMED.get(name, name)


def reached() -> dict[str, tuple[set[str], set[str]]]:
    """Every model of an event that is taken apart: its type, if it has one, and its fields.

    What the surface says is carried whole is not entered: nothing inside it can be lost.
    """
    found: dict[str, tuple[set[str], set[str]]] = {}
    waiting = [model for union in EVENT_UNIONS for model in models(union)]
    seen: set[type[BaseModel]] = set()
    while waiting:
        model = waiting.pop()
        if model in seen:
            continue
        seen.add(model)
        types, fields = found.setdefault(name_of(model), (set(), set()))
        for field, info in model.model_fields.items():
            name = info.alias or field
            fields.add(name)
            if name == "type":
                types |= literals(info.annotation)
            listed = SURFACE["models"].get(name_of(model), {}).get("fields", {}).get(name, "")
            if not listed.startswith("whole in"):
                waiting += models(info.annotation)
    return found


def dispositions() -> Iterator[tuple[str, str]]:
    for group in ("events", "helper_events", "stop_reasons", "error_types", "exceptions", "wire_only_fields"):
        for name, said in SURFACE[group].items():
            yield f"{group}.{name}", said
    for name, model in SURFACE["models"].items():
        for field, said in model["fields"].items():
            yield f"{name}.{field}", said


def test_the_surface_is_that_of_the_installed_client() -> None:
    found = reached()

    assert set(SURFACE["models"]) == set(found)
    for name, (types, fields) in found.items():
        listed = SURFACE["models"][name]
        assert set(listed["fields"]) == fields, name
        assert {listed["type"]} if "type" in listed else types == set(), name
        assert "type" not in listed or listed["type"] in types, name


def test_every_event_is_listed() -> None:
    types = {
        literal
        for union in EVENT_UNIONS
        for model in models(union)
        for literal in literals(model.model_fields["type"].annotation)
    }

    # These two never leave the client: it swallows the one and raises the other.
    assert set(SURFACE["events"]) == types | {"ping", "error"} == set(EVENTS)


def test_every_helper_event_is_listed() -> None:
    unions = (streaming.ParsedMessageStreamEvent, streaming.ParsedBetaMessageStreamEvent)
    helpers = {
        literal
        for union in unions
        for model in models(union)
        if not model.__name__.removeprefix("Beta").startswith("Raw")
        for literal in literals(model.model_fields["type"].annotation)
    }

    assert set(SURFACE["helper_events"]) == helpers


def test_every_stop_reason_is_listed_and_mapped() -> None:
    reasons = {*get_args(plain_types.StopReason), *get_args(beta_types.BetaStopReason)}

    assert set(SURFACE["stop_reasons"]) == reasons == set(STOP_REASONS)
    for reason, finish in STOP_REASONS.items():
        assert SURFACE["stop_reasons"][reason] == f"to turn.done.finishReason {finish}"


def test_every_error_type_is_listed_and_mapped() -> None:
    bodies = {
        literal
        for union in (ErrorObject, BetaErrorObject)
        for model in models(union)
        for literal in literals(model.model_fields["type"].annotation)
    }

    assert set(SURFACE["error_types"]) == {*get_args(ErrorType)} | bodies == set(ERROR_TYPES)
    for kind, retriable in ERROR_TYPES.items():
        assert SURFACE["error_types"][kind] == f"to turn.error.code; retriable {str(retriable).lower()}"


def test_every_exception_is_listed() -> None:
    assert set(SURFACE["exceptions"]) == {name for name in dir(anthropic) if name.endswith("Error")}


def test_the_version_is_the_installed_one() -> None:
    assert SURFACE["sdk"] == {"anthropic": anthropic.__version__}


def test_every_entry_says_what_becomes_of_it() -> None:
    assert not [where for where, said in dispositions() if not said.startswith(("to ", "whole in ", "dropped: "))]
    assert not [where for where, said in dispositions() if len(said.split()) < 2]


def listed_fields(*unions: Any) -> dict[str, set[str]]:
    """What the surface lists for the members of these unions, by their type."""
    found: dict[str, set[str]] = {}
    for union in unions:
        for model in models(union):
            (kind,) = literals(model.model_fields["type"].annotation)
            found[kind] = set(SURFACE["models"][name_of(model)]["fields"])
    return found


def test_the_normalizer_knows_the_fields_that_are_listed() -> None:
    events = listed_fields(*EVENT_UNIONS)
    blocks = listed_fields(plain_types.ContentBlock, beta_types.BetaContentBlock)
    deltas = listed_fields(plain_types.RawContentBlockDelta, beta_types.BetaRawContentBlockDelta)
    # What the helper streams add.
    events["content_block_stop"].add("content_block")
    events["message_stop"].add("message")
    blocks["text"].add("parsed_output")

    assert set(SURFACE["models"]["Message"]["fields"]) == MESSAGE
    assert set(SURFACE["models"]["Delta"]["fields"]) == MESSAGE_DELTA
    assert deltas == DELTAS
    assert {kind: blocks[kind] for kind in BLOCKS} == BLOCKS
    assert events == {kind: EVENTS[kind] for kind in events}


def test_every_citation_and_every_readable_result_is_listed() -> None:
    types = {model["type"] for model in SURFACE["models"].values() if "type" in model}

    assert {kind for kind in types if kind.endswith("_location")} == CITATION_TYPES
    assert types >= RESULT_CONTENT_TYPES
    errors = {kind for kind in types if kind.endswith("_error")}
    sealed = {"advisor_redacted_result"}
    results = {kind for kind in types if kind.endswith("_result") and not kind.endswith("_tool_result")}
    assert results - RESULT_CONTENT_TYPES == sealed
    assert len(errors) == 7


# What an entry says is true: a value of its own in each field is found where the entry says.


def sample(model: type[BaseModel], depth: int = 0) -> Native:
    """A native object with a value of its own in every field."""
    found: Native = {}
    for field, info in model.model_fields.items():
        name = info.alias or field
        found[name] = _value(info.annotation, f"{name_of(model)}-{name}", depth)
    return found


def _value(annotation: Any, mark: str, depth: int) -> Any:
    parts = [leaf for leaf in leaves(annotation) if leaf is not type(None)]
    texts = literals(annotation)
    if get_origin(annotation) is dict or any(get_origin(part) is dict for part in get_args(annotation)):
        return {"mark": mark}
    inner = list(models(annotation))
    many = "List" in str(annotation) or "list[" in str(annotation)
    if inner and depth < 6:
        value: Any = sample(inner[0], depth + 1)
    elif texts and str not in parts:
        value = sorted(texts)[0]
    elif int in parts:
        value = 7
    elif bool in parts:
        value = True
    else:
        value = mark
    return [value] if many else value


def blocks_of() -> list[type[BaseModel]]:
    return [*models(plain_types.ContentBlock), *models(beta_types.BetaContentBlock)]


@pytest.mark.parametrize("model", blocks_of(), ids=lambda model: model.__name__)
def test_every_string_of_every_block_is_found(model: type[BaseModel]) -> None:
    native = sample(model)
    events = normalize([START, *text("x"), *block(native, index=1), *end()])

    said = json.dumps(plain(events))
    assert not [event for event in plain(events) if event["type"] == "error" and event["code"] == "normalizer_error"]
    for mark in marks(native):
        assert json.dumps(mark) in said, mark


def marks(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name != "type":
                yield from marks(each)
    elif isinstance(value, list):
        for each in value:
            yield from marks(each)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("model", [plain_types.Message, beta_types.BetaMessage], ids=lambda model: model.__name__)
def test_every_string_of_a_message_is_found(model: type[BaseModel]) -> None:
    native = {**sample(model), "content": [], "role": "assistant"}
    # What the surface says is dropped.
    token = (native.get("stop_details") or {}).pop("fallback_credit_token", None)
    assert (token is not None) == (model is beta_types.BetaMessage)
    for natives in ([native], [{"type": "message_start", "message": native}, STOP]):
        said = json.dumps(plain(normalize(natives)))
        for mark in marks(native):
            assert json.dumps(mark) in said, mark
