"""Whatever the types can hold, their schemas accept."""

from __future__ import annotations

from functools import cache
from typing import Any

import hypothesis
import jsonschema
import pytest
from hypothesis import strategies as st

import agjson.types
from agjson.schema import json_schema, schema_names
from agjson.testing import strategies
from agjson.types import AgStruct
from agjson.wire import to_dict

UNIONS = {
    "AgEvent": strategies.events(),
    "AgBlock": strategies.blocks(),
    "AgInput": strategies.inputs(),
    "AgMessage": strategies.messages(),
    "AgReduceResult": strategies.results(),
    "AgPausedAsk": strategies.asks(),
    "AgHitlAnswer": strategies.answers(),
}
CLASSES = [
    name
    for name in schema_names()
    if isinstance(getattr(agjson.types, name), type) and issubclass(getattr(agjson.types, name), AgStruct)
]


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(name))


def complaints(name: str, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(to_dict(value))]


@pytest.mark.parametrize("name", UNIONS)
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=100, deadline=None)
def test_values_of_the_unions_are_valid(name: str, data: st.DataObject) -> None:
    assert complaints(name, data.draw(UNIONS[name])) == []


@pytest.mark.parametrize("name", CLASSES)
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=10, deadline=None)
def test_values_of_every_class_are_valid(name: str, data: st.DataObject) -> None:
    assert complaints(name, data.draw(strategies.values_of(getattr(agjson.types, name)))) == []
