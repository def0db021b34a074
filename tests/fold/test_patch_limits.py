"""What a JSON Patch may build: how deep, how much, and that nothing but the document and the patch decides about it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from agjson.fold.patch import MAX_DEPTH, MAX_SIZE, PatchError, apply_patch
from agjson.wire import encode
from tests.support.folding import calls_made, folded, push, same_json, view


def deep(levels: int, core: Any = 0) -> Any:
    value: Any = core
    for _ in range(levels):
        value = [value]
    return value


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def taking(op: str, source: str, target: str) -> dict[str, Any]:
    return {"op": op, "from": source, "path": target}


def test_a_move_changes_no_earlier_result_and_not_the_snapshot() -> None:
    state: list[Any] = [1, {}, {}]
    reducer = folded({"type": "state.snapshot", "snapshot": state})
    first = reducer.result()
    push(reducer, {"type": "state.delta", "patch": [taking("move", "/0", "/1/x")]})
    assert view(reducer.result())["state"] == [{}, {"x": 1}]
    assert first.state == [1, {}, {}]


# How much


DOUBLING = taking("copy", "/a", "/a/-")


def test_copies_that_double_a_state_end_at_the_limit() -> None:
    # The array comes to 2 ** n values; the document and its key are two more.
    assert 2**21 + 2 < MAX_SIZE < 2**22
    grown = apply_patch({"a": []}, [DOUBLING] * 21)
    assert len(grown["a"]) == 21
    with pytest.raises(PatchError, match="the patch builds more than 4,000,000 values and characters"):
        apply_patch({"a": []}, [DOUBLING] * 22)
    with pytest.raises(PatchError, match="copies more than 4,000,000 values"):
        apply_patch({"a": []}, [DOUBLING] * 10_000)


def test_a_bomb_parks_and_a_bomb_in_many_events_does_too() -> None:
    reducer = folded({"type": "state.snapshot", "snapshot": {"a": []}})
    push(reducer, {"type": "state.delta", "patch": [DOUBLING] * 30})
    assert "builds more than" in (reducer.resync_reason or "")
    assert view(reducer.result())["state"] == {"a": []}
    push(
        reducer, {"type": "state.snapshot", "snapshot": {"a": []}}, *[{"type": "state.delta", "patch": [DOUBLING]}] * 21
    )
    assert not reducer.needs_resync
    push(reducer, {"type": "state.delta", "patch": [DOUBLING]})
    assert reducer.needs_resync


def test_a_bomb_in_a_memory_record_parks() -> None:
    reducer = folded({"type": "memory.write", "scope": "thread", "value": {"a": []}})
    push(reducer, {"type": "memory.write", "scope": "thread", "patch": [DOUBLING] * 100})
    assert "builds more than" in (reducer.resync_reason or "")


def test_copied_strings_count_by_their_characters() -> None:
    document = {"s": "x" * 1_000_000}
    copies = [taking("copy", "/s", f"/s{number}") for number in range(3)]
    assert len(apply_patch(document, copies[:2])) == 3
    with pytest.raises(PatchError, match="builds more"):
        apply_patch(document, copies)


def test_what_is_gone_at_the_end_does_not_count() -> None:
    assert apply_patch({"a": []}, [DOUBLING] * 60 + [{"op": "remove", "path": "/a"}]) == {}


def test_a_large_state_may_still_be_patched_without_copies() -> None:
    state = {"s": "x" * (MAX_SIZE + 1), "n": 1}
    assert apply_patch(state, [add("/n", 2), taking("move", "/n", "/m")])["m"] == 2
    with pytest.raises(PatchError, match="builds more"):
        apply_patch(state, [taking("copy", "/s", "/t")])


def test_editing_what_was_copied_is_limited_too() -> None:
    state = {"w": dict.fromkeys(map(str, range(1_000)), 0)}
    edit = [taking("copy", "/w", "/v"), add("/w/0", 1)]
    assert apply_patch(state, edit * 100)["v"]["0"] == 1
    with pytest.raises(PatchError, match="copies more than 4,000,000 values"):
        apply_patch(state, edit * 5_000)


def test_a_copied_value_is_shared_until_one_of_its_places_changes() -> None:
    state: dict[str, Any] = {"a": {"deep": [1, 2, 3]}}
    patched = apply_patch(state, [taking("copy", "/a", "/b")])
    assert patched["a"] is patched["b"] is state["a"]
    changed = apply_patch(patched, [add("/b/deep/-", 4)])
    assert changed == {"a": {"deep": [1, 2, 3]}, "b": {"deep": [1, 2, 3, 4]}}
    assert state == {"a": {"deep": [1, 2, 3]}}


def test_nothing_is_copied_all_the_way_down() -> None:
    wide = {"w": [[number] for number in range(1_000)]}
    patch = [add("/x", wide), taking("copy", "/x", "/y"), taking("move", "/y", "/z"), add("/z/w/0/-", 5)]
    assert calls_made(lambda: apply_patch({}, patch))["deepcopy"] <= 10  # the package copies a null for each


# How deep


@pytest.mark.parametrize(
    ("document", "fits", "over"),
    [
        pytest.param(None, [add("", deep(MAX_DEPTH))], [add("", deep(MAX_DEPTH + 1))], id="whole document"),
        pytest.param({}, [add("/d", deep(MAX_DEPTH - 1))], [add("/d", deep(MAX_DEPTH))], id="add"),
        pytest.param(
            [0],
            [{"op": "replace", "path": "/0", "value": deep(MAX_DEPTH - 1)}],
            [{"op": "replace", "path": "/0", "value": deep(MAX_DEPTH)}],
            id="replace",
        ),
        pytest.param(
            {"a": deep(200), "b": deep(54, {}), "c": deep(55, {})},
            [taking("move", "/a", "/b" + "/0" * 54 + "/x")],
            [taking("move", "/a", "/c" + "/0" * 55 + "/x")],
            id="move",
        ),
        pytest.param(
            {"a": deep(200), "b": deep(54, {}), "c": deep(55, {})},
            [taking("copy", "/a", "/b" + "/0" * 54 + "/x")],
            [taking("copy", "/a", "/c" + "/0" * 55 + "/x")],
            id="copy",
        ),
    ],
)
def test_the_limit_of_depth(document: Any, fits: list[Any], over: list[Any]) -> None:
    apply_patch(document, fits)
    with pytest.raises(PatchError, match=f"more than {MAX_DEPTH} containers"):
        apply_patch(document, over)


def test_patches_that_deepen_a_state_step_by_step_park_before_it_cannot_be_written() -> None:
    reducer = folded({"type": "state.snapshot", "snapshot": 0})
    for step in range(4):
        path = "/0" * (100 * step)
        push(reducer, {"type": "state.delta", "patch": [{"op": "replace", "path": path, "value": deep(100)}]})
        encode(reducer.result())
    assert "more than 256 containers" in (reducer.resync_reason or "")
    assert same_json(view(reducer.result())["state"], deep(200))


def test_a_state_that_came_deeper_may_be_patched_where_it_is_not() -> None:
    state = {"d": deep(400), "n": 1}
    assert apply_patch(state, [add("/n", 2), {"op": "test", "path": "/d", "value": deep(400)}])["n"] == 2


def test_a_value_that_holds_itself_is_too_deep() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for patch in ([add("/a", loop)], [taking("copy", "/l", "/a")]):
        with pytest.raises(PatchError, match="containers"):
            apply_patch({"l": loop}, patch)


def beneath(frames: int, run: Callable[[], object]) -> object:
    return run() if frames == 0 else beneath(frames - 1, run)


@pytest.mark.parametrize(
    ("patch", "parks"),
    [
        pytest.param([{"op": "test", "path": "/d", "value": deep(240)}], False, id="test"),
        pytest.param([{"op": "test", "path": "/d", "value": deep(240, 1)}], True, id="failing test"),
        pytest.param([add("/e", deep(240))], False, id="add"),
        pytest.param([add("/e", deep(260))], True, id="add, too deep"),
        pytest.param([taking("copy", "/d", "/e")], False, id="copy"),
        pytest.param([taking("move", "/d", "/e")], False, id="move"),
        pytest.param([taking("copy", "/d", "/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k")], True, id="copy, too deep"),
    ],
)
def test_whether_a_patch_parks_does_not_depend_on_the_stack(patch: list[Any], parks: bool) -> None:
    keys: Any = {}
    for _ in range(16):
        keys = {"k": keys}
    state = {"d": deep(240), "k": keys["k"]}
    here = 0
    frame: Any = sys._getframe()
    while frame is not None:
        here, frame = here + 1, frame.f_back
    outcomes: list[bool] = []

    def run() -> None:
        try:
            apply_patch(state, patch)
            outcomes.append(False)
        except PatchError:
            outcomes.append(True)

    for frames in (0, sys.getrecursionlimit() - here - 80):
        beneath(frames, run)
    assert outcomes == [parks, parks]
