"""Generated patches: they apply, and three independent ways agree on what they lead to (RFC 6902)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from agjson.fold.patch import apply_patch
from agjson.testing import HypothesisSource, applicable_patch, json_values
from agjson.types import JsonValue
from tests.support.properties import examples

_LEAVES: st.SearchStrategy[Any] = st.integers(0, 2)
# Small and deep: operations on arrays inside arrays move what others of them point at.
_NESTED: st.SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, min_size=1, max_size=4) | st.dictionaries(st.sampled_from("a~/"), inner, min_size=1),
    max_leaves=8,
)


@examples(400)
@given(json_values(max_depth=3) | _NESTED, st.data())
def test_an_applicable_patch_leads_where_it_says(document: JsonValue, data: st.DataObject) -> None:
    before = repr(document)
    patch, expected = applicable_patch(HypothesisSource(data.draw), document, max_size=5)
    assert repr(document) == before
    assert apply_patch(document, patch) == expected
    assert repr(document) == before
    other = cast("Callable[[Any, Any], Any]", jsonpatch.apply_patch)
    assert other(document, patch) == expected
