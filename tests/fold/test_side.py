"""Artifacts, memory and state where the vectors leave them open (spec §5 artifact.*, memory.write, state.*)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.folding import DONE, TURN, folded, push, view

ARTIFACT = {"type": "artifact.start", "artifactId": "A", "turnId": "t", "threadId": "th"}


def part(text: str, *, append: bool, **fields: Any) -> dict[str, Any]:
    return {
        "type": "artifact.delta",
        "artifactId": "A",
        "part": {"type": "text", "text": text, **fields},
        "append": append,
    }


def parts(*members: dict[str, Any]) -> list[Any]:
    found = view(folded(*members).result())["artifacts"][0]["parts"]
    assert isinstance(found, list)
    return found


def memory(**fields: Any) -> dict[str, Any]:
    return {"type": "memory.write", **fields}


def test_joining_keeps_what_the_first_text_carries() -> None:
    first = part("a", append=False, annotations={"priority": 1}, _meta={"k": 1})
    assert parts(TURN, ARTIFACT, first, part("b", append=True, _meta={"k": 2})) == [
        {"type": "text", "text": "ab", "annotations": {"priority": 1}, "_meta": {"k": 1}}
    ]


def test_appending_to_nothing_begins_a_part() -> None:
    assert parts(TURN, ARTIFACT, part("a", append=True)) == [{"type": "text", "text": "a"}]


def test_an_artifact_may_go_on_after_its_end_and_after_its_turn() -> None:
    # A task's artifact may be updated after its last chunk; its seal leaves no trace in a stored one.
    end = {"type": "artifact.end", "artifactId": "A", "lastChunk": True}
    assert parts(TURN, ARTIFACT, part("a", append=False), end, DONE, part("b", append=True)) == [
        {"type": "text", "text": "ab"}
    ]


def test_an_end_of_an_unknown_artifact_parks() -> None:
    assert folded(TURN, {"type": "artifact.end", "artifactId": "ghost", "lastChunk": True}).needs_resync


def test_an_artifact_begun_afresh_keeps_its_place() -> None:
    other = {**ARTIFACT, "artifactId": "B"}
    reducer = folded(TURN, ARTIFACT, other)
    reducer.result()
    push(reducer, {**ARTIFACT, "name": "again"})
    assert [entry["artifactId"] for entry in view(reducer.result())["artifacts"]] == ["A", "B"]


def test_an_artifact_needs_no_open_turn() -> None:
    assert not folded(ARTIFACT, part("a", append=False)).needs_resync


def test_an_empty_key_is_the_absent_one() -> None:
    records = view(folded(memory(scope="user", value=1), memory(scope="user", key="", value=2)).result())["memory"]
    assert records == [{"scope": "user", "key": "", "value": 2}]


def test_scopes_have_records_of_their_own() -> None:
    members = [memory(scope=scope, key="k", value=scope) for scope in ("agent", "user", "skill", "thread")]
    assert len(view(folded(*members).result())["memory"]) == 4


def test_a_patched_record_keeps_its_place_and_takes_the_turn() -> None:
    patch = memory(scope="user", key="a", patch=[{"op": "replace", "path": "", "value": [1]}], turnId="t")
    reducer = folded(TURN, memory(scope="user", key="a", value=1), memory(scope="user", key="b", value=2), patch)
    assert view(reducer.result())["memory"] == [
        {"scope": "user", "key": "a", "value": [1], "turnId": "t"},
        {"scope": "user", "key": "b", "value": 2},
    ]


HOSTILE_PATCHES: list[Any] = [
    None,
    5,
    "add",
    {"op": "add"},
    [1],
    [None],
    [[]],
    [{}],
    [{"op": []}],
    [{"op": "add"}],
    [{"op": "add", "path": 1, "value": 1}],
    [{"op": "add", "path": "/a"}],
    [{"op": "move", "path": "/a"}],
    [{"op": "copy", "from": ["x"], "path": "/a"}],
    [{"op": "add", "path": "/l/" + "9" * 5000, "value": 1}],
    [{"op": "add", "path": "/l/-1", "value": 1}],
    [{"op": "add", "path": "/n/" + "x/" * 1000, "value": 1}],
    [{"op": "add", "path": "/s/0", "value": 1}],
    [{"op": "test", "path": "/s/0", "value": "t"}],
]


@pytest.mark.parametrize("patch", HOSTILE_PATCHES, ids=lambda patch: repr(patch)[:40])
def test_a_hostile_patch_parks_and_changes_nothing(patch: Any) -> None:
    value = {"a": 1, "l": [1], "n": {}, "s": "text"}
    reducer = folded(memory(scope="user", value=value), memory(scope="user", patch=patch))
    assert reducer.needs_resync
    assert view(reducer.result())["memory"] == [{"scope": "user", "value": value}]
    if isinstance(patch, list):
        reducer = folded({"type": "state.snapshot", "snapshot": value}, {"type": "state.delta", "patch": patch})
        assert reducer.needs_resync
        assert view(reducer.result())["state"] == value


@pytest.mark.parametrize("state", [None, False, 0, "", [], {}])
def test_any_value_is_a_state(state: Any) -> None:
    assert view(folded({"type": "state.snapshot", "snapshot": state}).result())["state"] == state


def test_an_empty_patch_of_no_state_parks_and_an_empty_update_makes_one() -> None:
    assert folded({"type": "state.delta", "patch": []}).needs_resync
    assert view(folded({"type": "state.delta", "patch": {}}).result())["state"] == {}


def test_an_update_merges_two_levels_and_no_deeper() -> None:
    reducer = folded(
        {"type": "state.snapshot", "snapshot": {"n": {"k": {"deep": 1}, "l": 1}, "other": [1]}},
        {"type": "state.delta", "patch": {"n": {"k": {"new": 2}}, "other": {"a": 1}}},
    )
    assert view(reducer.result())["state"] == {"n": {"k": {"new": 2}, "l": 1}, "other": {"a": 1}}
