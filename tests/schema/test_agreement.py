"""The schemas and the readers give one verdict on every vector, but for rules that no schema can say."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import pytest

from agjson.errors import ValidationError
from agjson.schema import json_schema
from agjson.types import EVENT_TYPES
from agjson.wire import from_dict
from agjson.wire.reading import Kind
from tests.support.corpus import require_corpus, vectors

ROOTS = {"event": "AgEvent", "input": "AgInput", "block": "AgBlock"}

UNSAYABLE = {
    "answer/paired-id-mismatch": "compares the answer with its ask",
    "answer/paired-request-state-changed": "compares the answer with its ask",
    "answer/paired-request-state-normalized": "compares the answer with its ask",
    "ruling/answer-paired-grant-mode-undeclared": "compares the answer with its ask",
    "ruling/answer-paired-token-mismatch": "compares the answer with its ask",
}
"""Invalid vectors that pass the schema, each with the reason."""


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(name))


def verdict(vector: dict[str, Any]) -> bool:
    if vector["kind"] == "answer":
        pair = vector["value"]
        ask_is_valid = "ask" not in pair or validator("AgPausedAsk").is_valid(pair["ask"])
        return ask_is_valid and validator("AgHitlAnswer").is_valid(pair["answer"])
    return validator(ROOTS[vector["kind"]]).is_valid(vector["value"])


@pytest.mark.parametrize("vector", vectors("validate"))
def test_the_schema_agrees_with_the_vector(vector: dict[str, Any]) -> None:
    if vector["name"] in UNSAYABLE:
        assert not vector["valid"] and verdict(vector), f"{vector['name']} needs no place in the list"
    else:
        assert verdict(vector) == vector["valid"], vector["why"]


@pytest.mark.corpus
def test_the_list_of_what_no_schema_can_say_is_not_stale() -> None:
    names = {path.stem.replace("--", "/", 1) for path in (require_corpus() / "vectors" / "validate").glob("*.json")}
    assert set(UNSAYABLE) <= names


LEFT_TO_THE_READER: list[tuple[Kind, dict[str, Any]]] = [
    ("event", {"type": "subagent.start", "seq": 0, "turnId": "t", "parentTurnId": "t"}),
    ("event", {"type": "subagent.done", "seq": 0, "turnId": "t", "parentTurnId": "t"}),
    (
        "input",
        {
            "kind": "resume",
            "protocol": "agjson",
            "version": "1.0.0",
            "threadId": "th",
            "turnId": "t",
            "parentTurnId": "t",
        },
    ),
]
"""That two ids differ is the one rule inside an object that no schema can say."""


@pytest.mark.parametrize(("kind", "value"), LEFT_TO_THE_READER)
def test_a_turn_that_is_its_own_parent_is_left_to_the_reader(kind: Kind, value: dict[str, Any]) -> None:
    assert validator(ROOTS[kind]).is_valid(value)
    with pytest.raises(ValidationError) as raised:
        from_dict(value, kind)
    assert raised.value.path == "$.parentTurnId"
    from_dict({**value, "parentTurnId": "other"}, kind)


@pytest.mark.parametrize("vector", vectors("reduce"))
def test_folded_results_and_their_events_are_valid(vector: dict[str, Any]) -> None:
    errors = [error.message for error in validator("AgReduceResult").iter_errors(vector["expect"]["result"])]
    assert errors == []
    invalid = [each["type"] for each in vector["events"] if not validator("AgEvent").is_valid(each)]
    assert invalid == [each["type"] for each in vector["events"] if unknown(each["type"])]


def unknown(type: str) -> bool:
    return type not in EVENT_TYPES and not type.startswith("ext.")
