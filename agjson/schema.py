"""JSON Schema 2020-12 of every union, record, arm and enum of the format (spec §2-§4, §7, §12).

The schemas are read off the types themselves, so they cannot drift from them. They state the producer posture (spec
§0.2) as far as a schema can: unknown fields are allowed everywhere, unknown types are not, and the rules between fields
that JSON Schema can express are expressed. What it cannot express (an answer against its ask, ``parentTurnId`` apart
from ``turnId``) is left to `agjson.wire`.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeAlias, TypeGuard

import msgspec

import agjson.types
from agjson.errors import AgJSONError
from agjson.types import (
    ENVELOPE_FIELDS,
    SOURCE_PAYLOAD_ARMS,
    SURFACE_ARMS,
    AgProviderMeta,
    AgStruct,
    BareUrlSource,
    ExtEvent,
    SourcePayload,
    SurfaceInteraction,
    TurnAbort,
)

__all__ = ["definitions", "json_schema", "schema_name", "schema_names"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/"

_NUMERIC = "(?:0|[1-9][0-9]*)"
_PRERELEASE = f"(?:{_NUMERIC}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = (
    rf"^1\.{_NUMERIC}\.{_NUMERIC}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$"
)
_EXT_TYPE = r"^ext(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)+\.[^.]+$"

_Schema: TypeAlias = dict[str, Any]

# What the types cannot say: constraints of one field, by class and wire name.
_FIELD_RULES: Mapping[tuple[str, str], _Schema] = {
    ("StartInput", "version"): {"pattern": _VERSION},
    ("ResumeInput", "version"): {"pattern": _VERSION},
    ("ToolResultInput", "version"): {"pattern": _VERSION},
    ("ArtifactEnd", "lastChunk"): {"const": True},
}

# Rules between the fields of one object.
_OBJECT_RULES: Mapping[str, _Schema] = {
    "MemoryWrite": {"oneOf": [{"required": ["value"]}, {"required": ["patch"]}]},
    "MessageRemove": {
        "if": {"properties": {"id": {"const": "*"}}},
        "then": {"required": ["turnId"]},
    },
    "AgA2uiSurfaceAction": {
        "if": {"properties": {"wantResponse": {"const": True}}, "required": ["wantResponse"]},
        "then": {"required": ["actionId"]},
    },
    "AgA2uiError": {
        "oneOf": [{"required": ["surfaceId"]}, {"required": ["functionCallId"]}],
        "if": {"properties": {"code": {"const": "VALIDATION_FAILED"}}},
        "then": {"required": ["path"]},
    },
    "AgHitlAnswer": {
        "dependentSchemas": {"grantModeId": {"properties": {"status": {"const": "resolved"}}}},
    },
    # With a `type` the object is one of the other arms of AgSourcePayload.
    "BareUrlSource": {"not": {"required": ["type"]}},
}


def json_schema(name: str) -> _Schema:
    """The JSON Schema of one type of the format, complete in itself.

    Args:
        name: the name of a union (``"AgEvent"``), a record (``"AgMessage"``), an arm (``"TextDelta"``) or an enum
            (``"AgRole"``); `schema_names` lists them.

    Returns:
        A JSON Schema 2020-12 document, the caller's own copy; every type that it refers to stands under ``$defs``.
        ``AgEvent`` includes the ``ext.<vendor>.<key>`` arm, as the spec's union does.

    Raises:
        AgJSONError: there is no such type; the message lists names that are near.
        TypeError: `name` is no string; for a type of the format the message has its name.
    """
    _check_name(name)
    root = _definitions()[name]
    document = {"$schema": _DIALECT, **root}
    needed = _closure(_references(root))
    if needed:
        document["$defs"] = {each: _definitions()[each] for each in sorted(needed)}
    return copy.deepcopy(document)


def definitions(names: Iterable[str]) -> dict[str, _Schema]:
    """The schemas of some types and of everything that they refer to, for a document that names them its own way.

    Args:
        names: names as `json_schema` takes them.

    Returns:
        Schema by name, each with references ``#/$defs/<name>`` to the others; the caller's own copy.

    Raises:
        AgJSONError: there is no such type.
        TypeError: a name is no string, or `names` is one.
    """
    if isinstance(names, str):
        raise TypeError(f"names are an iterable of names, got one: definitions([{names!r}])")
    wanted = list(names)
    for name in wanted:
        _check_name(name)
    return copy.deepcopy({name: _definitions()[name] for name in sorted(_closure(wanted))})


def schema_names() -> list[str]:
    """Every name that `json_schema` knows, sorted."""
    return sorted(_definitions())


def schema_name(tp: Any) -> str | None:
    """The name under which `json_schema` knows a type.

    Args:
        tp: a class, union or enum of `agjson.types`.

    Returns:
        The name, or None for anything else.
    """
    return _public().get(tp)


def _check_name(name: object) -> None:
    """Let the name of a type pass.

    Raises:
        AgJSONError: no type has it.
        TypeError: it is no string.
    """
    if not isinstance(name, str):
        known = _name_of(name)
        got = f"got {type(name).__name__}" if known is None else f"that of this type by {known!r}"
        raise TypeError(f"a schema is named by a string, {got}")
    if name not in _definitions():
        raise AgJSONError(_unknown(name))


def _name_of(value: object) -> str | None:
    try:
        return schema_name(value)
    except TypeError:  # unhashable
        return None


def _unknown(name: str) -> str:
    names = schema_names()
    lowered = {each.lower(): each for each in names}
    near = [lowered[each] for each in difflib.get_close_matches(name.lower(), lowered, n=5, cutoff=0.6)]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"no schema is named {name!r}: {hint}agjson.schema.schema_names() lists all {len(names)} names"


@cache
def _public() -> dict[Any, str]:
    """The public types by themselves: what a field of that type refers to by name."""
    found: dict[Any, str] = {SourcePayload: "AgSourcePayload", SurfaceInteraction: "AgSurfaceInteraction"}
    for name in sorted(agjson.types.__all__):
        value: Any = getattr(agjson.types, name)
        is_class = isinstance(value, type) and issubclass(value, AgStruct) and value.__module__ != AgStruct.__module__
        is_alias = name.startswith("Ag") and (_is_union(value) or typing.get_origin(value) is Literal)
        if is_class or value is ExtEvent or is_alias:
            found.setdefault(value, name)
    return found


@cache
def _definitions() -> dict[str, _Schema]:
    """The schema of every public type by name, with references between them."""
    return {name: _definition(value) for value, name in _public().items()}


def _definition(value: Any) -> _Schema:
    name = _public()[value]
    if value is ExtEvent:
        return _ext_event()
    if value is SourcePayload:
        return {"title": name, **_union((*SOURCE_PAYLOAD_ARMS.values(), BareUrlSource))}
    if value is SurfaceInteraction:
        return {"title": name, **_union(tuple(SURFACE_ARMS.values()))}
    if isinstance(value, type):
        return _object(value)
    if typing.get_origin(value) is Literal:
        return {"title": name, **_literal(typing.get_args(value))}
    arms = typing.get_args(value)
    return {"title": name, **_union((*arms, ExtEvent) if name == "AgEvent" else arms)}


def _reference(value: Any) -> _Schema:
    return {"$ref": _REF + _public()[value]}


def _object(cls: type[AgStruct]) -> _Schema:
    texts = _field_texts(cls)
    properties: dict[str, _Schema] = {}
    required: list[str] = []
    for wire_name, value in _discriminants(cls).items():
        properties[wire_name] = {"const": value}
        required.append(wire_name)
    for field in msgspec.structs.fields(cls):
        schema = _type(field.type) | _FIELD_RULES.get((cls.__name__, field.encode_name), {})
        if field.name in texts:
            schema["description"] = texts[field.name]
        properties[field.encode_name] = schema
        if field.required:
            required.append(field.encode_name)
    document: _Schema = {"title": _public()[cls], "description": _summary(cls), "type": "object"}
    document["properties"] = properties
    if required:
        document["required"] = required
    return document | _OBJECT_RULES.get(cls.__name__, {})


def _discriminants(cls: type[AgStruct]) -> dict[str, Any]:
    """The members that tell an arm from its siblings: the tag."""
    config = cls.__struct_config__
    return {} if config.tag_field is None else {config.tag_field: config.tag}


def _ext_event() -> _Schema:
    """`ExtEvent` is no Struct: the envelope of any event, a type of its own form, and whatever else rides in it."""
    envelope = _object(TurnAbort)["properties"]
    properties = {name: envelope[name] for name in ENVELOPE_FIELDS}
    properties["type"] = {"type": "string", "pattern": _EXT_TYPE, "description": _field_texts(ExtEvent)["type"]}
    document: _Schema = {"title": "ExtEvent", "description": _summary(ExtEvent), "type": "object"}
    return document | {"properties": properties, "required": ["seq", "type"]}


def _type(tp: Any) -> _Schema:
    """The schema of a field's type."""
    if tp is Any:
        return {}
    if tp in _public():
        return _reference(tp)
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin is typing.Annotated:
        schema = _type(args[0])
        for meta in args[1:]:
            schema |= _constraints(meta)
        return schema
    if origin is Literal:
        return _literal(args)
    if _is_union(tp):
        return _union(args)
    if origin is list:
        return {"type": "array", "items": _type(args[0])}
    if origin is dict or tp is AgProviderMeta:
        items = _type(args[1]) if args else {}
        return {"type": "object", "additionalProperties": items} if items else {"type": "object"}
    return {"type": _SIMPLE[tp]}


_SIMPLE: Mapping[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", types.NoneType: "null"}


def _union(args: tuple[Any, ...]) -> _Schema:
    args = tuple(arg for arg in args if arg is not msgspec.UnsetType)
    if Any in args:
        return {}
    if set(args) >= {int, float}:
        args = tuple(arg for arg in args if arg is not int)
    if len(args) == 1:
        return _type(args[0])
    exclusive = all(isinstance(arg, type) and issubclass(arg, (AgStruct, ExtEvent)) for arg in args)
    return {"oneOf" if exclusive else "anyOf": [_type(arg) for arg in args]}


def _literal(values: tuple[Any, ...]) -> _Schema:
    if len(values) == 1:
        return {"const": values[0]}
    return {"type": "string", "enum": list(values)}


def _constraints(meta: Any) -> _Schema:
    """The bounds of a `msgspec.Meta` that the format uses."""
    names = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "pattern": "pattern"}
    found = {schema_name: getattr(meta, name, None) for name, schema_name in names.items()}
    return {schema_name: value for schema_name, value in found.items() if value is not None}


def _is_union(tp: Any) -> bool:
    return typing.get_origin(tp) in (typing.Union, types.UnionType)


def _summary(cls: type) -> str:
    """The first paragraph of the class's docstring as one line."""
    return _plain(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0])


def _field_texts(cls: type) -> dict[str, str]:
    """What the ``Attributes`` section of the class, and of the classes it builds on, says of each field."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        text = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        if elsewhere := re.search(r"common fields are those of `(\w+)`", text):
            found |= _field_texts(getattr(agjson.types, elsewhere[1]))
        section = text.partition("Attributes:\n")[2].partition("\n\n")[0]
        for name, words in re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", section, re.MULTILINE):
            found[name] = _plain(words)
    return found


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _closure(names: Iterable[str]) -> set[str]:
    """The names and all that their definitions refer to, directly or through others."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(_definitions()[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if _is_list(schema):
        for item in schema:
            yield from _references(item)
    elif _is_object(schema):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix(_REF)
            else:
                yield from _references(value)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_object(value: Any) -> TypeGuard[_Schema]:
    return isinstance(value, dict)
