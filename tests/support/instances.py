"""Wire objects made from the declared types alone: valid ones, and every way in which a field can have a wrong type.

`SITES` says for each class where in a document it can stand, so that a test can put any object of it there.
"""

from __future__ import annotations

import typing
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal

import msgspec

import agjson.types as t

Wire = Any
"""A JSON value as plain Python data."""

WRONG: dict[str, Wire] = {
    "null": None,
    "boolean": False,
    "integer": 7,
    "fraction": 1.5,
    "string": "\0 wrong",
    "array": [],
    "object": {},
}
"""A value of each JSON type; none of them is a word of an enum."""

ROOTS: dict[str, tuple[type[t.AgStruct], ...]] = {
    "block": tuple(t.BLOCK_TYPES.values()),
    "event": tuple(t.EVENT_TYPES.values()),
    "input": (t.StartInput, t.ResumeInput, t.ToolResultInput),
    "message": (t.AgMessage,),
    "result": (t.AgReduceResult,),
    "ask": (t.AgPausedAsk,),
    "answer": (t.AgHitlAnswer,),
}
"""The classes that a document can be, by what `agjson.from_dict` calls them."""

# What a rule between fields demands beside the required fields, and what it forbids beside them.
_DEMANDED: dict[type, dict[str, Wire]] = {t.MemoryWrite: {"value": 1}, t.AgA2uiError: {"surfaceId": "surfaceId"}}
_EXCLUDED = {(t.MemoryWrite, "patch"), (t.AgA2uiError, "functionCallId")}


@dataclass(frozen=True)
class Site:
    """Where objects of a class can stand.

    Attributes:
        kind: what the document is, as in `ROOTS`.
        path: the JSON path of the object in the document.
        document: the document around an object.
    """

    kind: str
    path: str
    document: Callable[[Wire], Wire]


@cache
def fields(cls: type[t.AgStruct]) -> dict[str, Any]:
    """The declared type of each field of a class by wire name, its discriminant among them."""
    found: dict[str, Any] = {}
    config = cls.__struct_config__
    if config.tag is not None:
        found[str(config.tag_field)] = Literal[config.tag]  # type: ignore[valid-type]
    found.update({info.encode_name: info.type for info in msgspec.structs.fields(cls)})
    return found


@cache
def required(cls: type[t.AgStruct]) -> list[str]:
    """The wire names of the fields that an object of the class must have."""
    optional = {info.encode_name for info in msgspec.structs.fields(cls) if not info.required}
    return [name for name in fields(cls) if name not in optional]


def minimal(cls: type[t.AgStruct]) -> dict[str, Wire]:
    """The smallest valid object of a class."""
    members = {name: sample(fields(cls)[name], name) for name in required(cls)}
    return {**members, **_DEMANDED.get(cls, {})}


def full(cls: type[t.AgStruct], note: str = "") -> dict[str, Wire]:
    """An object with every field; what stands in it is minimal.

    Args:
        cls: its class.
        note: a text to put at the end of every string of its own.
    """
    names = [name for name in fields(cls) if (cls, name) not in _EXCLUDED]
    return {name: sample(fields(cls)[name], name, note) for name in names}


def sample(tp: Any, name: str, note: str = "") -> Wire:
    """A valid value of a field: a string is the field's name, so that no two ids are equal."""
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if tp is str:
        return t.SPEC_VERSION if name == "version" else name + note
    if tp in (int, float):
        return 1
    if tp is bool:
        return True
    if tp is Any:
        return {"opaque": [None, f"{name}{note}"]}
    if isinstance(tp, typing.NewType):
        return sample(tp.__supertype__, name, note)
    if origin is Literal:
        return arguments[0]
    if origin is typing.Annotated:
        return sample(arguments[0], name, note)
    if origin is list:
        return [sample(arguments[0], name, note)]
    if origin is dict:
        return {f"key{note}": sample(arguments[1], name, note)}
    if origin in (typing.Union, UnionType):
        return sample(arguments[0], name, note)
    return minimal(next(_arms(tp)))


def faults(tp: Any) -> Iterator[tuple[str, Wire]]:
    """Values that a field may not have, each with the path, below the field's own, that the error must name."""
    accepted = _json_types(tp)
    for json_type, value in WRONG.items():
        if json_type not in accepted or (json_type == "string" and _is_enum(tp)):
            yield "", value
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if origin is list:
        yield from ((f"[1]{path}", [sample(arguments[0], "x"), value]) for path, value in faults(arguments[0]))
    elif origin is dict and arguments[1] is not Any:
        yield from ((f".key{path}", {"key": value}) for path, value in faults(arguments[1]))
    elif origin in (typing.Union, UnionType):
        for part in arguments:
            if typing.get_origin(part) is list:
                yield from ((path, value) for path, value in faults(part) if path)


def _json_types(tp: Any) -> frozenset[str]:
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if tp is str or origin is Literal:
        return frozenset({"string"})
    if tp is int:
        return frozenset({"integer"})
    if tp is float:
        return frozenset({"integer", "fraction"})
    if tp is bool:
        return frozenset({"boolean"})
    if tp is Any:
        return frozenset(WRONG)
    if tp is msgspec.UnsetType:
        return frozenset()
    if isinstance(tp, typing.NewType):
        return _json_types(tp.__supertype__)
    if origin is typing.Annotated:
        return _json_types(arguments[0])
    if origin is list:
        return frozenset({"array"})
    if origin in (typing.Union, UnionType):
        return frozenset[str]().union(*map(_json_types, arguments))
    return frozenset({"object"})


def _is_enum(tp: Any) -> bool:
    if typing.get_origin(tp) in (typing.Union, UnionType):
        return any(_is_enum(part) for part in typing.get_args(tp))
    return typing.get_origin(tp) is Literal


def _arms(tp: Any) -> Iterator[type[t.AgStruct]]:
    """The classes that an object in a field can be of."""
    if tp is t.SourcePayload:
        yield from (t.BareUrlSource, *t.SOURCE_PAYLOAD_ARMS.values())
    elif tp is t.SurfaceInteraction:
        yield from t.SURFACE_ARMS.values()
    elif isinstance(tp, type) and issubclass(tp, t.AgStruct):
        yield tp


def _inside(tp: Any) -> Iterator[tuple[type[t.AgStruct], str, Callable[[Wire], Wire]]]:
    """The classes in a field, each with the path to it below the field's own, and the field's value around it."""
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if origin is list:
        for cls, path, around in _inside(arguments[0]):
            yield cls, f"[0]{path}", lambda value, around=around: [around(value)]
    elif origin is dict:
        for cls, path, around in _inside(arguments[1]):
            yield cls, f".key{path}", lambda value, around=around: {"key": around(value)}
    elif origin in (typing.Union, UnionType):
        for part in arguments:
            yield from _inside(part)
    else:
        for cls in _arms(tp):
            yield cls, "", lambda value: value


def _sites() -> dict[type[t.AgStruct], Site]:
    found: dict[type[t.AgStruct], Site] = {}
    waiting: deque[tuple[type[t.AgStruct], Site]] = deque()
    for kind, classes in ROOTS.items():
        waiting.extend((cls, Site(kind, "$", lambda value: value)) for cls in classes)
    while waiting:
        cls, site = waiting.popleft()
        if cls in found:
            continue
        found[cls] = site
        for name, tp in fields(cls).items():
            for inner, path, around in _inside(tp):
                waiting.append((inner, _site_below(cls, site, name, path, around)))
    return found


def _site_below(cls: type[t.AgStruct], site: Site, name: str, path: str, around: Callable[[Wire], Wire]) -> Site:
    def document(value: Wire) -> Wire:
        return site.document({**minimal(cls), name: around(value)})

    return Site(site.kind, f"{site.path}.{name}{path}", document)


SITES: dict[type[t.AgStruct], Site] = _sites()
"""For every class of the format a place where its objects can stand, as near to the root as there is one."""
