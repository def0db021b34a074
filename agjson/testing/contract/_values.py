"""JSON values taken apart: paths, strings, equal parts, ids by the order of their coming."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from agjson.jsonable import jsonable
from agjson.testing.contract.subject import Path
from agjson.types import AgReduceResult, AgStreamEvent
from agjson.wire import encode, to_dict

__all__ = [
    "as_json",
    "at",
    "changed",
    "count_equal",
    "difference",
    "is_list",
    "is_object",
    "leaves",
    "paths",
    "plain_events",
    "plain_result",
    "same",
    "shorten",
    "strings",
    "with_ids_by_order",
    "without",
]


def as_json(value: object) -> str:
    """A value as JSON text with sorted names, to be compared or searched in."""
    return json.dumps(jsonable(value), sort_keys=True, ensure_ascii=False)


def plain_events(events: Iterable[AgStreamEvent]) -> list[dict[str, Any]]:
    """Events as they are on the wire."""
    return [json.loads(encode(event)) for event in events]


def plain_result(result: AgReduceResult) -> dict[str, Any]:
    """A fold as plain JSON with nothing shared."""
    found: dict[str, Any] = json.loads(json.dumps(to_dict(result)))
    return found


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def _inside(value: object) -> Iterable[tuple[str | int, Any]]:
    """The members or elements of a JSON value."""
    if is_object(value):
        return value.items()
    return enumerate(value) if is_list(value) else ()


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value inside a JSON value that is no container, with its path."""
    if is_object(value) or is_list(value):
        for name, each in _inside(value):
            yield from leaves(each, (*path, name))
    else:
        yield path, value


def strings(value: object) -> Iterator[str]:
    """Every string in a JSON value but for the names of members."""
    return (leaf for _, leaf in leaves(value) if isinstance(leaf, str))


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    """The path of every member and element inside a JSON value."""
    for name, each in _inside(value):
        yield (*path, name)
        yield from paths(each, (*path, name))


def at(value: Any, path: Path) -> Any:
    """What stands at a path."""
    for name in path:
        value = value[name]
    return value


def changed(value: Any, path: Path, new: Any) -> Any:
    """A copy of a JSON value with another value at a path."""
    if not path:
        return new
    made = copy.deepcopy(value)
    at(made, path[:-1])[path[-1]] = new
    return made


def without(value: Any, path: Path) -> Any:
    """A copy of a JSON value without the member or element at a path."""
    made = copy.deepcopy(value)
    del at(made, path[:-1])[path[-1]]
    return made


def same(a: object, b: object) -> bool:
    """Whether two JSON values are equal: numbers by value, ``true`` apart from ``1``."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if is_object(a) and is_object(b):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if is_list(a) and is_list(b):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def difference(found: object, expected: object, path: str = "") -> str:
    """The first place where two JSON values differ, and what is there."""
    if is_object(found) and is_object(expected):
        for name in sorted(found.keys() | expected.keys()):
            if name not in found or name not in expected:
                return f"{path}.{name}: only one has it: {shorten(found.get(name, expected.get(name)))}"
            if not same(found[name], expected[name]):
                return difference(found[name], expected[name], f"{path}.{name}")
    if is_list(found) and is_list(expected):
        for index, (one, other) in enumerate(zip(found, expected, strict=False)):
            if not same(one, other):
                return difference(one, other, f"{path}[{index}]")
        return f"{path}: {len(found)} and {len(expected)} elements"
    return f"{path}: {shorten(found)} and {shorten(expected)}"


def count_equal(value: object, wanted: object) -> int:
    """How many parts of a JSON value, itself included, equal another one."""
    return int(same(value, wanted)) + sum(count_equal(each, wanted) for _, each in _inside(value))


def with_ids_by_order(result: Mapping[str, Any]) -> Any:
    """A fold whose messages, calls and turns are named by their order, so that folds with other ids can be compared."""
    names: dict[str, str] = {}
    for turn in result["turns"]:
        names.setdefault(turn["turnId"], f"turn {len(names)}")
    for message in result["messages"]:
        names.setdefault(message["id"], f"message {len(names)}")
        for block in message["content"]:
            if "toolCallId" in block:
                names.setdefault(block["toolCallId"], f"call {len(names)}")
    return _renamed(result, names)


def _renamed(value: object, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if is_object(value):
        return {name: _renamed(each, names) for name, each in value.items()}
    return [_renamed(each, names) for each in value] if is_list(value) else value


def shorten(value: object, most: int = 300) -> str:
    """A value for the message of a failure."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__} without repr"
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
