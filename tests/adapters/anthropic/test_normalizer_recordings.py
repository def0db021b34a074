"""Every recorded answer: sound, the same as its non-streamed reading, and nothing of it lost (spec §10)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from agjson.adapters.anthropic.messages import messages_from_native
from agjson.types import AgStreamEvent
from agjson.wire import encode, to_dict
from tests.support.anthropic_wire import (
    Recording,
    fold_recording,
    normalize,
    plain,
    recording_params,
    sound,
    strings,
    view,
    whole_messages,
)
from tests.support.corpus import require_corpus

# Native members that must go back byte for byte.
OPAQUE = ("signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout")
# What an answer of the API may be beside whole: the authored files that break off or bring an error.
BROKEN = ("authored--truncated-0", "authored--error-in-stream-0", "authored--error-of-request-0")
# The arguments of the call are no JSON, or the blocks are not known: no reading without streaming to compare with.
UNREADABLE = (*BROKEN, "authored--arguments-cut-0", "authored--not-yet-known-0")


def leaves(value: Any, name: str) -> Iterator[str]:
    """Every string member of this name, at any depth."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == name and isinstance(each, str) and each:
                yield each
            else:
                yield from leaves(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, name)


@pytest.mark.parametrize("recording", recording_params())
def test_every_answer_is_a_sound_turn(recording: Recording) -> None:
    events, known = fold_recording(recording)
    result = view(sound(events, known))

    expected = {"authored--truncated-0": "turn.abort"}.get(recording.name)
    if recording.name in BROKEN and expected is None:
        expected = "turn.error"
    assert events[-1].type == (expected or "turn.done")
    assert [message["role"] for message in result["messages"]] == ["assistant"] * len(result["messages"])


@pytest.mark.parametrize("recording", recording_params(streamed=True, without=UNREADABLE))
def test_a_stream_folds_to_the_answer_that_does_not_stream(recording: Recording) -> None:
    events, known = fold_recording(recording)

    whole = normalize(whole_messages(recording), multi=True, known_ids=known)
    assert view(sound(events, known)) == view(sound(whole, known))


@pytest.mark.parametrize("recording", recording_params(without=UNREADABLE))
def test_the_fold_is_what_a_stored_history_reads_as(recording: Recording) -> None:
    events, known = fold_recording(recording)

    stored = json.loads(json.dumps([to_dict(each) for each in messages_from_native(whole_messages(recording))]))
    found = view(sound(events, known))["messages"]
    assert [each["content"] for each in found] == [each["content"] for each in stored]


@pytest.mark.parametrize("recording", recording_params(without=BROKEN))
def test_opaque_values_are_stored_byte_for_byte(recording: Recording) -> None:
    events, known = fold_recording(recording)
    stored = set(strings(view(sound(events, known))))

    for name in OPAQUE:
        for native in recording.natives:
            assert set(leaves(native, name)) <= stored


@pytest.mark.corpus
def test_the_recordings_hold_opaque_values_of_every_kind() -> None:
    require_corpus()
    recordings = [param.values[0] for param in recording_params()]

    for name in OPAQUE:
        assert any(leaf for each in recordings for native in each.natives for leaf in leaves(native, name)), name


@pytest.mark.parametrize("recording", recording_params())
def test_no_string_of_an_answer_is_lost(recording: Recording) -> None:
    events, _ = fold_recording(recording)
    said = plain(events)
    found = {text for event in said for text in strings(event)}
    everything = "\n".join(found)

    for native in recording.natives:
        for text in spoken(native):
            assert text in found or text in everything, f"{native['type']}: {text[:80]!r} is lost"


# The types are what events and blocks are made of; the token is the host's alone, as the surface says.
UNSPOKEN = frozenset(("type", "fallback_credit_token"))


def spoken(native: Any) -> Iterator[str]:
    """The strings of a native value that have to be in the events."""
    if isinstance(native, str):
        yield native
    elif isinstance(native, dict):
        for name, value in native.items():
            if name not in UNSPOKEN:
                yield from spoken(value)
    elif isinstance(native, list):
        for value in native:
            yield from spoken(value)


# Streams that are cut, shuffled or repeated


def steps(length: int, most: int) -> list[int]:
    """Every place of a short stream; of a long one the ends and a sample."""
    if length <= most:
        return list(range(length))
    return sorted({*range(12), *range(length - 12, length), *random.Random(length).sample(range(length), most // 2)})


def shortened(recording: Recording) -> list[Any]:
    """The stream; of a long one the runs of deltas are cut short, so that the rest is tried at every place."""
    natives: list[Any] = []
    run = 0
    for native in recording.natives:
        run = run + 1 if native["type"] == "content_block_delta" else 0
        if run <= 6 or len(recording.natives) < 130:
            natives.append(native)
    return natives


@pytest.mark.parametrize("recording", recording_params(streamed=True))
def test_every_truncation_is_sound(recording: Recording) -> None:
    natives = shortened(recording)
    _, known = fold_recording(recording)

    for length in steps(len(natives) + 1, 140):
        events = normalize(natives[:length], multi=True, known_ids=known)
        sound(events, known)
        assert events[-1].type == terminal_of(natives[:length])


def terminal_of(natives: list[Any]) -> str:
    if any(native["type"] == "error" for native in natives):
        return "turn.error"
    ends = [native["type"] for native in natives if native["type"] in ("message_start", "message_stop")]
    return "turn.done" if ends and ends[-1] == "message_stop" else "turn.abort"


@pytest.mark.parametrize("recording", recording_params(streamed=True))
def test_every_disorder_is_sound(recording: Recording) -> None:
    natives = shortened(recording)
    _, known = fold_recording(recording)

    for at in steps(len(natives), 60):
        before, after = natives[:at], natives[at + 1 :]
        swapped = [*before, *natives[at : at + 2][::-1], *natives[at + 2 :]]
        for disorder in (swapped, [*before, natives[at], natives[at], *after], [*before, *after]):
            for multi in (True, False):
                sound(normalize(disorder, multi=multi, known_ids=known), known)


# Chunkings


def chopped(natives: tuple[Any, ...], size: int) -> list[Any]:
    """The stream with every text delta cut into pieces, or with size 0 joined with the next of its kind."""
    found: list[Any] = []
    for native in natives:
        kind = native.get("delta", {}).get("type") if native["type"] == "content_block_delta" else None
        name = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}.get(kind or "")
        if name is None:
            found.append(native)
        elif size:
            value = native["delta"][name]
            pieces = [value[at : at + size] for at in range(0, len(value), size)] or [""]
            found += [{**native, "delta": {**native["delta"], name: piece}} for piece in pieces]
        elif found and found[-1].get("delta", {}).get("type") == kind and found[-1].get("index") == native["index"]:
            joined = found[-1]["delta"][name] + native["delta"][name]
            found[-1] = {**native, "delta": {**native["delta"], name: joined}}
        else:
            found.append(native)
    return found


@pytest.mark.parametrize("recording", recording_params(streamed=True))
def test_chunks_do_not_matter(recording: Recording) -> None:
    events, known = fold_recording(recording)
    expected = view(sound(events, known))

    for size in (0, 3):
        found = normalize(chopped(recording.natives, size), multi=True, known_ids=known)
        assert view(sound(found, known)) == expected


def test_events_of_a_recording_survive_the_wire() -> None:
    for param in recording_params():
        if param.values[0] is not None:
            events: list[AgStreamEvent] = normalize(param.values[0].natives, multi=True)
            assert all(json.loads(encode(event))["type"] == event.type for event in events)
