"""The generators by themselves: options are kept, seeds reproduce, everything of the format occurs."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import agjson.testing
from agjson.testing import (
    HypothesisSource,
    RandomSource,
    StreamOptions,
    blocks,
    broken_streams,
    events,
    gaps,
    generate_stream,
    json_values,
    mutations,
    quiet_points,
    random_stream,
    renumber,
    streams,
    values_of,
    with_seq,
)
from agjson.types import (
    BLOCK_TYPES,
    EVENT_TYPES,
    PROFILES,
    AgProfile,
    AgStreamEvent,
    ContentBlock,
    ExtEvent,
    StateDelta,
    TextBlock,
    TextDelta,
    ToolDone,
    UnknownEvent,
    required_profile,
)
from agjson.wire import encode
from tests.support.properties import examples


def _types(stream: list[AgStreamEvent]) -> set[str]:
    return {"ext" if isinstance(event, ExtEvent) else event.type for event in stream}


def test_every_name_can_be_imported_from_the_package() -> None:
    for name in agjson.testing.__all__:
        assert getattr(agjson.testing, name).__module__.startswith("agjson.testing")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = agjson.testing.nothing  # pyright: ignore


def test_streams_need_no_hypothesis() -> None:
    script = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from agjson.testing import RandomSource, mutations, random_stream\n"
        "events = random_stream(1)\n"
        "assert events and mutations()['seq-gap'].plant(RandomSource(1), events)\n"
        "from agjson.errors import MissingExtraError\n"
        "try:\n"
        "    from agjson.testing import streams\n"
        "except MissingExtraError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "hypothesis is not installed: pip install 'agjson[testing]'\n"


def test_importing_the_package_loads_neither_hypothesis_nor_the_generators() -> None:
    script = "import sys, agjson.testing; print('hypothesis' in sys.modules, 'agjson.testing.generator' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_a_seed_reproduces_its_stream() -> None:
    first, second, other = (b"\n".join(encode(event) for event in random_stream(seed)) for seed in (7, 7, 8))
    assert first == second
    assert first != other


def test_every_event_type_and_every_block_kind_occurs() -> None:
    seen: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seed in range(1000):
        stream = random_stream(seed)
        seen.update(_types(stream))
        kinds.update(event.block.type for event in stream if isinstance(event, ContentBlock))
    assert set(seen) == {*EVENT_TYPES, "ext"}
    assert set(kinds) == set(BLOCK_TYPES)


@pytest.mark.parametrize("profile", PROFILES)
@examples(30)
@given(data=st.data())
def test_nothing_is_above_the_profile(profile: AgProfile, data: st.DataObject) -> None:
    allowed = PROFILES[: PROFILES.index(profile) + 1]
    assert {required_profile(event) for event in data.draw(streams(StreamOptions(profile=profile)))} <= set(allowed)


@examples(30)
@given(streams(StreamOptions(min_events=20, max_events=25, without=["tool.start", "message.remove", "ext"])))
def test_sizes_and_exclusions_are_kept(stream: list[AgStreamEvent]) -> None:
    # What is open at the end is closed on top of the maximum.
    assert 20 <= len(stream) <= 90
    assert not _types(stream) & {"tool.start", "message.remove", "ext"}


@examples(30)
@given(streams(StreamOptions(max_invokes=1, id_prefix="p-", thread_id="mine", explicit_owners=True)))
def test_ids_threads_owners_and_invokes_are_as_asked(stream: list[AgStreamEvent]) -> None:
    assert [event.seq for event in stream] == list(range(len(stream)))
    assert all(event.turn_id is None or event.turn_id.startswith("p-") for event in stream)
    assert {thread for event in stream if (thread := getattr(event, "thread_id", None)) is not None} <= {"mine"}
    snapshots = ("messages.snapshot", "ext")
    assert all(event.turn_id is not None for event in stream if not event.type.startswith(snapshots))


@examples(30)
@given(streams(StreamOptions(truncated=False)))
def test_without_truncation_no_turn_is_flushed(stream: list[AgStreamEvent]) -> None:
    assert all(getattr(event, "reason", None) != "stream-truncated" for event in stream)


def test_a_failing_stream_shrinks_to_what_matters() -> None:
    def has_patch(stream: list[AgStreamEvent]) -> bool:
        return any(isinstance(event, StateDelta) and isinstance(event.patch, list) for event in stream)

    short = find(
        streams(StreamOptions(max_events=10)),
        has_patch,
        settings=settings(database=None, max_examples=2000),
        random=Random(0),
    )
    # turn.start, state.snapshot, state.delta, turn.done, and little else. How little depends on the constants that
    # Hypothesis has found in whatever modules are loaded.
    assert len(short) <= 10


def test_generate_stream_takes_any_source() -> None:
    @settings(database=None, max_examples=5, derandomize=True)
    @given(st.data())
    def draws(data: st.DataObject) -> None:
        assert renumber(generate_stream(HypothesisSource(data.draw), StreamOptions(max_invokes=1))) is not None

    draws()
    assert generate_stream(RandomSource(3)) == random_stream(3)


@examples(30)
@given(streams(StreamOptions(resyncable=True, min_events=15, max_invokes=1)))
def test_quiet_points_begin_and_end_the_stream_and_lie_between_turns(stream: list[AgStreamEvent]) -> None:
    points = quiet_points(stream)
    assert points[0] == 0
    assert points[-1] == len(stream)
    opened = closed = 0
    for index, event in enumerate(stream):
        assert index not in points or opened == closed
        opened += event.type in ("turn.start", "subagent.start")
        closed += event.type in ("turn.done", "turn.error", "turn.abort")


@examples(30)
@given(gaps())
def test_a_gap_is_a_part_of_its_stream(gap: agjson.testing.Gap) -> None:
    assert [*gap.before, *gap.missed, *gap.after] == list(gap.events)
    assert gap.stop in quiet_points(gap.events)


@examples(30)
@given(broken_streams(["duplicate-message-end", "drop-message-end"]))
def test_broken_streams_keep_to_the_mutations_asked_for(broken: tuple[agjson.testing.Mutation, list[object]]) -> None:
    mutation, items = broken
    assert mutation.name in ("duplicate-message-end", "drop-message-end")
    assert mutation.rule == "INV-MSG"
    assert items


def test_every_mutation_says_what_it_plants() -> None:
    assert len(mutations()) > 50
    for name, mutation in mutations().items():
        assert mutation.name == name
        assert mutation.description.endswith(".")
    assert mutations()["drop-terminal"].description == "A top-level turn is never closed."


def test_a_mutation_without_a_place_plants_nothing() -> None:
    assert mutations()["partial-leftover"].plant(RandomSource(0), []) is None
    assert mutations()["drop-terminal"].plant(RandomSource(0), []) is None


def test_ordinals_can_be_changed_in_every_kind_of_item() -> None:
    delta = TextDelta(seq=4, id="x", delta="d")
    ext = ExtEvent("ext.acme.frame", 4, {"k": 1}, turn_id="t")
    unknown = UnknownEvent("turn.resumed.start", 4, b'{"type":"turn.resumed.start","seq":4,"k":1.0}')
    assert with_seq(delta, 9) == TextDelta(seq=9, id="x", delta="d")
    assert with_seq(ext, 9) == ExtEvent("ext.acme.frame", 9, {"k": 1}, turn_id="t")
    assert with_seq(unknown, 9).raw == b'{"type":"turn.resumed.start","seq":9,"k":1.0}'
    assert with_seq(b'{"seq":4,"type":"x"}', 9) == b'{"seq":9,"type":"x"}'
    assert [event.seq for event in renumber([delta, delta])] == [0, 1]


def test_strategies_keep_to_what_is_asked_for() -> None:
    @settings(database=None, max_examples=30, derandomize=True)
    @given(events(types=["text.delta"]), blocks(kinds=["text"]), values_of(ToolDone))
    def holds(event: AgStreamEvent, block: object, done: ToolDone) -> None:
        assert isinstance(event, TextDelta)
        assert isinstance(block, TextBlock)
        assert done.error_text is None or done.outcome == "error"

    holds()


def test_big_integers_nulls_and_all_planes_occur_and_lone_surrogates_only_when_asked_for() -> None:
    def found(strategy: st.SearchStrategy[object], condition: Callable[[object], bool]) -> object:
        return find(strategy, condition, settings=settings(database=None, max_examples=5000), random=Random(0))

    assert found(json_values(), lambda value: isinstance(value, int) and abs(value) > 2**64) is not None
    assert found(json_values(), lambda value: value is None) is None
    assert _astral(found(json_values(), _astral))
    assert _lone(found(json_values(surrogates=True), _lone))

    @settings(database=None, max_examples=200, derandomize=True)
    @given(json_values())
    def none_lone(value: object) -> None:
        assert not _lone(value)

    none_lone()


def _characters(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from key
            yield from _characters(item)
    elif isinstance(value, list):
        for item in value:
            yield from _characters(item)


def _astral(value: object) -> bool:
    return any(character > "\uffff" for character in _characters(value))


def _lone(value: object) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in _characters(value))
