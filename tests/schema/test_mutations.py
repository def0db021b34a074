"""Wherever a valid vector is damaged, the schema and the reader still give one verdict."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest

from agjson.errors import DecodeError
from agjson.schema import json_schema
from agjson.types import EVENT_TYPES
from agjson.wire import from_dict
from tests.support.corpus import vectors

ROOTS = {"event": "AgEvent", "input": "AgInput", "block": "AgBlock", "answer": "AgHitlAnswer"}
REPLACEMENTS: tuple[Any, ...] = (None, True, -1, 1.5, "zzz", [1], {})
VALID = [param for param in vectors("validate") if param.values[0] is None or param.values[0]["valid"]]  # type: ignore[index]

Place = tuple[str | int, ...]


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(name))


def by_schema(kind: str, value: Any) -> bool:
    # The whole union of events takes fifty times as long, and test_agreement covers it.
    arm = EVENT_TYPES.get(value["type"]) if kind == "event" and has_string_type(value) else None
    return validator(ROOTS[kind] if arm is None else arm.__name__).is_valid(value)


def has_string_type(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def by_reader(kind: Any, value: Any) -> bool:
    try:
        from_dict(value, kind)
    except DecodeError:
        return False
    return True


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*place, key))


def damaged(value: Any) -> Iterator[Any]:
    """The value with each part in turn replaced by something else, or taken out."""
    for place in places(value):
        if not place:
            yield from REPLACEMENTS
            continue
        for replacement in REPLACEMENTS:
            copied, parent = inside(value, place)
            parent[place[-1]] = replacement
            yield copied
        copied, parent = inside(value, place)
        del parent[place[-1]]
        yield copied


def inside(value: Any, place: Place) -> tuple[Any, Any]:
    copied = copy.deepcopy(value)
    parent = copied
    for step in place[:-1]:
        parent = parent[step]
    return copied, parent


@pytest.mark.parametrize("vector", VALID)
def test_a_damaged_vector_gets_one_verdict(vector: dict[str, Any]) -> None:
    kind = vector["kind"]
    value = vector["value"]["answer"] if kind == "answer" else vector["value"]
    verdicts: set[bool] = set()
    for each in damaged(value):
        verdict = by_schema(kind, each)
        assert verdict == by_reader(kind, each), json.dumps(each)
        verdicts.add(verdict)
    assert False in verdicts
