"""The vectors of ``reduce/``: folded whole, and one by one with the result read after each (spec §5, INV-FOLD)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agjson.fold import Reducer, reduce
from agjson.wire import encode, ingest_event
from tests.support.corpus import require_corpus, vectors
from tests.support.folding import same_json, view


def stream(vector: Any) -> list[Any]:
    return [ingest_event(json.dumps(event)) for event in vector["events"]]


@pytest.mark.parametrize("vector", vectors("reduce"))
def test_whole(vector: Any) -> None:
    require_corpus()
    result, needs_resync = reduce(stream(vector))
    assert same_json(view(result), vector["expect"]["result"])
    assert needs_resync is vector["expect"]["needsResync"]


@pytest.mark.parametrize("vector", vectors("reduce"))
def test_one_by_one(vector: Any) -> None:
    require_corpus()
    reducer = Reducer()
    kept = []
    for event in stream(vector):
        reducer.push(event)
        result = reducer.result()
        kept.append((result, encode(result)))
    assert same_json(view(reducer.result()), vector["expect"]["result"])
    assert reducer.needs_resync is vector["expect"]["needsResync"]
    assert (reducer.resync_reason is None) is not reducer.needs_resync
    # What a caller kept is as it was.
    assert [encode(result) for result, _ in kept] == [text for _, text in kept]


UNPARKED = [param for param in vectors("reduce") if not (param.values[0] and param.values[0]["expect"]["needsResync"])]


@pytest.mark.parametrize("vector", UNPARKED)
def test_a_tolerant_fold_agrees_wherever_it_has_nothing_to_mend(vector: Any) -> None:
    require_corpus()
    reducer = Reducer(tolerant=True)
    for event in stream(vector):
        reducer.push(event)
    assert not reducer.needs_resync
    # The one stream to mend has a message in a turn that nothing opened.
    assert bool(reducer.violations) is (vector["name"] == "message/unopened-turn-tolerated")
    if not reducer.violations:
        assert same_json(view(reducer.result()), vector["expect"]["result"])
