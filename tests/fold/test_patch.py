"""JSON Patch: the table of RFC 6902, and agreement with the `jsonpatch` package on a copy of the whole document."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agjson.fold.patch import PatchError, apply_patch
from tests.support.folding import same_json

DOCUMENT: Any = {"a": {"x": 1}, "l": [1, [2], 3], "n~/k": 0, "": {"": 5}, "t": True, "s": "text", "z": None}


def op(op: str, path: str, **members: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **members}


def move(source: str, target: str) -> dict[str, Any]:
    return {"op": "move", "from": source, "path": target}


def copying(source: str, target: str) -> dict[str, Any]:
    return {"op": "copy", "from": source, "path": target}


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": 1}, [], {"a": 1}),
        ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
        ({"a": 1}, [op("add", "/a", value=2)], {"a": 2}),
        ({"a": 1}, [op("add", "", value=[1])], [1]),
        (5, [op("add", "", value=None)], None),
        (5, [op("replace", "", value={})], {}),
        ([1, 2], [op("add", "/0", value=0)], [0, 1, 2]),
        ([1, 2], [op("add", "/2", value=3)], [1, 2, 3]),
        ([1, 2], [op("add", "/-", value=3)], [1, 2, 3]),
        ({"-": 1}, [op("replace", "/-", value=2)], {"-": 2}),
        ({"01": 1}, [op("replace", "/01", value=2)], {"01": 2}),
        ([1, 2], [op("remove", "/0")], [2]),
        ({"a": 1}, [op("remove", "/a")], {}),
        ({"": 1}, [op("remove", "/")], {}),
        ({"": {"": 1}}, [op("replace", "//", value=2)], {"": {"": 2}}),
        ({"a/b": 1, "m~n": 2}, [op("remove", "/a~1b"), op("remove", "/m~0n")], {}),
        ({"~1": 1}, [op("remove", "/~01")], {}),
        ([1, 2, 3], [move("/0", "/2")], [2, 3, 1]),
        ([[1], [2]], [move("/0", "/0/0")], "error"),
        ([1, [2]], [move("/0", "/0/0")], "error"),
        ([1, {}, {}], [move("/0", "/1/x")], [{}, {"x": 1}]),
        ([[1], 2, [3]], [move("/1", "/0/-")], [[1, 2], [3]]),
        ([0, [1], [2], [3]], [move("/0", "/1/0"), move("/0", "/1/-")], [[0, 2], [3, [1]]]),
        (True, [move("", "")], True),
        ([1], [move("", "")], [1]),
        (None, [move("/a", "/a")], "error"),
        ({"a": []}, [copying("/a", "/a/-")] * 3, {"a": [[], [[]], [[], [[]]]]}),
        (
            {"a": {"b": [1]}},
            [op("add", "/a/b/-", value=2), copying("/a", "/c"), op("add", "/c/b/-", value=3), op("remove", "/a/b/0")],
            {"a": {"b": [2]}, "c": {"b": [1, 2, 3]}},
        ),
        (
            {"a": {"b": [1]}},
            [op("add", "/a/b/-", value=2), copying("/a/b", "/d"), copying("/a", "/c"), op("remove", "/a/b/0")],
            {"a": {"b": [2]}, "c": {"b": [1, 2]}, "d": [1, 2]},
        ),
        ({"a": {"b": 1}}, [move("/a/b", "/c")], {"a": {}, "c": 1}),
        ({"a": {"b": 1}}, [move("/a", "")], {"b": 1}),
        ({"a": 1}, [move("/a", "/a")], {"a": 1}),
        ({"a": 1, "ab": {}}, [move("/a", "/ab/c")], {"ab": {"c": 1}}),
        ([1, 2], [copying("/0", "/-")], [1, 2, 1]),
        ({"a": {}}, [copying("", "/a/whole")], {"a": {"whole": {"a": {}}}}),
        ({"a": [1]}, [copying("/a", "/b"), op("add", "/b/-", value=2)], {"a": [1], "b": [1, 2]}),
        ({"a": [1]}, [op("add", "/a/-", value=2), copying("/a", "/b"), op("remove", "/a/0")], {"a": [2], "b": [1, 2]}),
        ({"a": 1}, [op("add", "/b", value=2), copying("", "/c"), op("remove", "/b")], {"a": 1, "c": {"a": 1, "b": 2}}),
        ({"a": [[1]]}, [move("/a/0", "/b"), op("add", "/b/-", value=2)], {"a": [], "b": [1, 2]}),
        ({"a": 1}, [op("test", "/a", value=1.0)], {"a": 1}),
        ({"a": None}, [op("test", "/a", value=None)], {"a": None}),
        ({"a": [1, {"b": 2}]}, [op("test", "/a", value=[1.0, {"b": 2}])], {"a": [1, {"b": 2}]}),
        ({"a": 2**80}, [op("test", "/a", value=2**80)], {"a": 2**80}),
        ({"a": 1}, [{**op("add", "/b", value=2), "note": "ignored"}], {"a": 1, "b": 2}),
    ],
)
def test_outcomes(document: Any, patch: list[Any], expected: Any) -> None:
    before = copy.deepcopy((document, patch))
    if expected == "error":
        with pytest.raises(PatchError):
            apply_patch(document, patch)
    else:
        assert same_json(apply_patch(document, patch), expected)
    assert same_json([document, patch], list(before))


@pytest.mark.parametrize(
    "operation",
    [
        op("add", "a", value=1),
        op("add", "#/a", value=1),
        op("add", "/a~2", value=1),
        op("add", "/a~", value=1),
        op("add", "/missing/b", value=1),
        op("add", "/l/4", value=1),
        op("add", "/l/01", value=1),
        op("add", "/l/-1", value=1),
        op("add", "/l/+1", value=1),
        op("add", "/l/1e0", value=1),
        op("add", "/l/ 1", value=1),
        op("add", "/l/\u0661", value=1),
        op("add", "/l/", value=1),
        op("add", "/l/-/x", value=1),
        op("add", "/t/x", value=1),
        op("add", "/s/0", value=1),
        op("add", "/z/0", value=1),
        op("add", "/a"),
        op("add", ""),
        op("replace", ""),
        op("test", ""),
        op("replace", "/missing", value=1),
        op("replace", "/l/3", value=1),
        op("replace", "/l/-", value=1),
        op("replace", "/a/toString", value=1),
        op("replace", "/a"),
        op("remove", ""),
        op("remove", "/missing"),
        op("remove", "/l/3"),
        op("remove", "/l/-"),
        op("remove", "/s/0"),
        move("", "/a"),
        move("/a", "/a/b"),
        move("/missing", "/b"),
        move("/missing", "/missing"),
        move("/l/-", "/b"),
        copying("/missing", "/b"),
        copying("/s/0", "/b"),
        copying("/l/-", "/b"),
        {"op": "move", "path": "/a"},
        {"op": "copy", "path": "/a", "from": 1},
        op("test", "/t", value=1),
        op("test", "/a/x", value=True),
        op("test", "/a/x", value="1"),
        op("test", "/missing", value=None),
        op("test", "/s/0", value="t"),
        op("test", "/l", value=[1, [2]]),
        op("test", "/l", value=[1, [True], 3]),
        op("test", "/a", value={"x": 1, "y": 2}),
        op("test", "/a"),
        op("merge", "/a", value=1),
        op("ADD", "/a", value=1),
        {"path": "/a", "value": 1},
        {"op": "add", "value": 1},
    ],
    ids=str,
)
def test_failures_change_nothing(operation: dict[str, Any]) -> None:
    document = copy.deepcopy(DOCUMENT)
    with pytest.raises(PatchError, match="operation 1 of the patch: "):
        apply_patch(document, [op("add", "/new", value=1), operation])
    assert same_json(document, DOCUMENT)


@pytest.mark.parametrize("patch", [None, 5, "[]", {}, (op("remove", "/a"),)])
def test_a_patch_is_a_list(patch: Any) -> None:
    with pytest.raises(PatchError, match="list of operations"):
        apply_patch(DOCUMENT, patch)


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def test_only_the_containers_on_the_way_are_copied() -> None:
    document: Any = {"a": {"b": {"c": 1}, "kept": {}}, "kept": [1]}
    patched = apply_patch(document, [op("replace", "/a/b/c", value=2), op("add", "/a/b/d", value=3)])
    assert patched == {"a": {"b": {"c": 2, "d": 3}, "kept": {}}, "kept": [1]}
    assert patched["kept"] is document["kept"]
    assert patched["a"]["kept"] is document["a"]["kept"]


def test_a_value_of_the_patch_is_never_written_to() -> None:
    value: list[int] = []
    patched = apply_patch({}, [op("add", "/a", value=value), op("add", "/b", value=value), op("add", "/a/-", value=1)])
    assert patched == {"a": [1], "b": []}
    assert value == []


KEYS = st.sampled_from(["a", "b", "0", "1", "-", "~", "/", ""])
SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, 2, "a", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
# Lists long enough that an item which goes away shifts containers that an operation reaches into.
DOCUMENTS = VALUES | st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, min_size=3, max_size=5) | st.dictionaries(KEYS, inner, min_size=1, max_size=3),
    max_leaves=20,
)


def pointer(tokens: list[str]) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def places(value: Any, above: tuple[str, ...] = ()) -> list[str]:
    """Where there is something in a document, and beside it where something may be added."""
    found = [pointer([*above])]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*above, key))
        found.append(pointer([*above, "new"]))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*above, str(index)))
        found.append(pointer([*above, "-"]))
    return found


def operations(document: Any) -> st.SearchStrategy[dict[str, Any]]:
    pointers = st.sampled_from(places(document)) | st.lists(KEYS, max_size=3).map(pointer)
    return st.one_of(
        st.builds(lambda o, p, v: op(o, p, value=v), st.sampled_from(["add", "replace", "test"]), pointers, VALUES),
        st.builds(lambda p: op("remove", p), pointers),
        st.builds(
            lambda o, f, p: {"op": o, "from": f, "path": p}, st.sampled_from(["move", "copy"]), pointers, pointers
        ),
    )


def theirs(document: Any, patch: list[Any]) -> Any:
    """What the package makes of copies, in which nothing is shared; the exception type where it refuses."""
    try:
        return jsonpatch.apply_patch(copy.deepcopy(document), copy.deepcopy(patch))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        return PatchError


@settings(max_examples=150, deadline=None)
@given(data=st.data(), document=DOCUMENTS)
def test_agreement_with_jsonpatch_and_nothing_else_changes(data: st.DataObject, document: Any) -> None:
    states = [document]
    patches: list[list[Any]] = []
    kept = [copy.deepcopy(document)]
    for _ in range(3):
        patch = data.draw(st.lists(operations(states[-1]), max_size=4))
        patches.append(patch)
        before = copy.deepcopy(patches)
        expected = theirs(kept[-1], patch)
        if expected is PatchError:
            with pytest.raises(PatchError):
                apply_patch(states[-1], patch)
        else:
            states.append(apply_patch(states[-1], patch))
            kept.append(expected)
        # The new state is right, and neither an earlier one nor any patch has changed.
        assert same_json(states, kept)
        assert same_json(patches, before)
