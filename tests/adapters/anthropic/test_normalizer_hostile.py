"""Natives that no provider should send: whatever comes in, a sound turn comes out (spec §8.0 graceful degradation)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.jsonable import jsonable
from agjson.normalizer import HostEnd, HostError
from tests.support.anthropic_wire import (
    AUTHORED,
    SAID_AGAIN,
    START,
    Native,
    block,
    end,
    message,
    normalize,
    plain,
    read_recordings,
    sound,
)
from tests.support.properties import examples

Path = tuple[str | int, ...]

WRONG: list[Any] = [None, 7, -1.5, True, "", "text", [], ["x"], {}, {"type": "text"}, float("nan"), 10**30, "\ud83d"]


def everything() -> list[Any]:
    """One stream with every kind of event, block, delta and result that the authored files have."""
    natives: list[Any] = [START]
    index = 0
    for path in sorted(AUTHORED.glob("*.yaml")):
        for recording in read_recordings(path):
            for native in recording.natives:
                if native["type"].startswith("content_block_"):
                    natives.append({**native, "index": native["index"] + index})
            index += 10
    hit = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e", "page_age": None}
    cited = {
        "type": "char_location",
        "cited_text": "c",
        "document_index": 0,
        "start_char_index": 0,
        "end_char_index": 1,
    }
    for native in (
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_x", "content": [hit]},
        {"type": "redacted_thinking", "data": "Em"},
        {"type": "text", "text": "a", "citations": [cited]},
    ):
        natives += block(native, index=index)
        index += 1
    usage = {
        "output_tokens": 4,
        "server_tool_use": {"web_search_requests": 1},
        "iterations": [{"model": "m", "input_tokens": 1}],
    }
    closing, stop = end("end_turn", stop_details={"category": "bio"}, container={"id": "c"})
    changes = [{"type": "thinking_dropped", "path": "p", "reason": "r"}]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_x", "content": [{"type": "text", "text": "r"}], "is_error": False}
    ]
    return [
        *natives,
        {**closing, "usage": usage, "input_transformations": changes},
        stop,
        {"role": "user", "content": results},
        message({"type": "text", "text": "whole"}, id="msg_2"),
    ]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every member and element."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inside:
        yield (*path, name)
        yield from paths(each, (*path, name))


def changed(natives: list[Any], path: Path, value: Any) -> list[Any]:
    """The natives with one value in place of another."""
    first = path[0]
    assert isinstance(first, int)
    if len(path) == 1:
        return [*natives[:first], value, *natives[first + 1 :]]
    native = copy.deepcopy(natives[first])
    place = native
    for name in path[1:-1]:
        place = place[name]
    place[path[-1]] = value
    return [*natives[:first], native, *natives[first + 1 :]]


def window(natives: list[Any], at: int) -> tuple[list[Any], int]:
    """A stream in which the native at this place is surrounded by what it belongs to, and its new place."""
    native = natives[at]
    index = native.get("index")
    if index is None:
        near = [each for each in natives if "index" not in each]
        return near, near.index(native)
    near = [START, *(each for each in natives if each.get("index") in (index, index - 1)), *end()]
    return near, near.index(native)


EVERYTHING = everything()


def test_the_stream_of_everything_is_sound() -> None:
    sound(normalize(EVERYTHING, multi=True))


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_wrong_value_in_any_field_leaves_a_sound_turn(wrong: Any) -> None:
    for at in range(len(EVERYTHING)):
        natives, place = window(EVERYTHING, at)
        for path in [(place,), *((place, *path) for path in paths(natives[place]))]:
            sound(normalize(changed(natives, path, wrong), multi=True))


@pytest.mark.parametrize("multi", [True, False])
def test_a_missing_field_leaves_a_sound_turn(multi: bool) -> None:
    for at in range(len(EVERYTHING)):
        natives, place = window(EVERYTHING, at)
        for path in paths(natives[place]):
            native = copy.deepcopy(natives[place])
            holder = native
            for name in path[:-1]:
                holder = holder[name]
            if isinstance(holder, dict):
                del holder[path[-1]]
                sound(normalize([*natives[:place], native, *natives[place + 1 :]], multi=multi))


def test_a_wrong_string_is_not_lost() -> None:
    """Where a field takes no string, the string is carried all the same."""
    lost = set()
    for at in range(len(EVERYTHING)):
        natives, place = window(EVERYTHING, at)
        native = natives[place]
        for path in paths(native):
            events = normalize(changed(natives, (place, *path), "marker-of-this-test"), multi=True)
            if path[-1] != "type" and "marker-of-this-test" not in str(plain(events)):
                lost.add((native.get("content_block", native)["type"], path[-1]))
    assert lost == SAID_AGAIN


def test_deep_and_odd_objects_do_not_raise() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    cycle: Native = {"type": "content_block_start", "index": 0}
    cycle["content_block"] = cycle
    for native in (
        deep,
        {"type": "text_delta", "deep": deep},
        cycle,
        object(),
        b"bytes",
        {1: 2},
        START | {"message": deep},
    ):
        sound(normalize([native, START, *block({"type": "text", "text": "x"}), *end()]))


# Any sequence of natives that look like natives

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.text(max_size=3), st.sampled_from(["toolu_1", "msg_1"])
)
KINDS = sorted(
    {native["type"] for native in EVERYTHING if "type" in native} | {"error", "text", "signature", "new_event"}
)
BLOCKS = [native["content_block"] for native in EVERYTHING if "content_block" in native]
DELTAS = [native["delta"] for native in EVERYTHING if "delta" in native]
EVENTS = st.one_of(
    st.sampled_from(EVERYTHING),
    st.fixed_dictionaries(
        {"type": st.just("content_block_start"), "index": st.integers(0, 3), "content_block": st.sampled_from(BLOCKS)}
    ),
    st.fixed_dictionaries(
        {"type": st.just("content_block_delta"), "index": st.integers(0, 3), "delta": st.sampled_from(DELTAS)}
    ),
    st.fixed_dictionaries({"type": st.just("content_block_stop"), "index": st.integers(0, 3)}),
    st.builds(
        lambda id: {"type": "message_start", "message": {**START["message"], "id": id}},
        st.sampled_from(["msg_1", "msg_2", "", None]),
    ),
    st.sampled_from([*end(), {"type": "error", "error": {"type": "api_error"}}, message(), HostEnd(), HostError("no")]),
    st.fixed_dictionaries(
        {"type": st.sampled_from(KINDS)},
        optional={name: SCALARS for name in ("index", "delta", "message", "content_block", "error")},
    ),
    SCALARS,
)


@examples(300)
@given(st.lists(EVENTS, max_size=30), st.booleans())
def test_any_sequence_leaves_a_sound_turn(natives: list[Any], multi: bool) -> None:
    sound(normalize(natives, multi=multi))


@examples(100)
@given(st.lists(EVENTS, max_size=30))
def test_the_natives_are_not_changed(natives: list[Any]) -> None:
    before = copy.deepcopy([jsonable(native) for native in natives])
    normalize(natives, multi=True)

    assert [jsonable(native) for native in natives] == before
