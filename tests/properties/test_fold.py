"""The fold over generated streams: INV-FOLD, INV-DELTA, INV-SEQ and the snapshots (spec §5.0, §5, §10.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_event

from agjson.fold import Reducer, reduce, snapshot
from agjson.testing import (
    Gap,
    Mutation,
    StreamOptions,
    broken_streams,
    gaps,
    quiet_points,
    renumber,
    results,
    streams,
    unknown_events,
    with_seq,
)
from agjson.types import (
    AgProfile,
    AgReduceResult,
    AgStreamEvent,
    ReasoningDelta,
    ReasoningOpaqueDelta,
    TextDelta,
    ToolArgsDelta,
    UnknownEvent,
)
from agjson.wire import encode
from tests.support.properties import by_axis, examples, folded

_Fragment = TextDelta | ReasoningDelta | ToolArgsDelta | ReasoningOpaqueDelta

# What two streams of one thread would see of each other.
_SHARED = ("state.snapshot", "state.delta", "memory.write", "messages.snapshot")


@pytest.mark.parametrize("profile", ["CORE", "EXTENDED", "ADVANCED"])
@examples(120)
@given(data=st.data())
def test_no_valid_stream_parks(profile: AgProfile, data: st.DataObject) -> None:
    events = data.draw(streams(StreamOptions(profile=profile)))
    reduction = reduce(events)
    assert not reduction.needs_resync
    assert reduction.result == folded(events)


@examples(120)
@given(streams())
def test_the_live_fold_is_the_batch_fold_after_every_event(events: list[AgStreamEvent]) -> None:
    live = Reducer()
    for count, event in enumerate(events, 1):
        live.push(event)
        assert live.result() == reduce(events[:count]).result


@examples(120)
@given(streams())
def test_earlier_results_never_change(events: list[AgStreamEvent]) -> None:
    live = Reducer()
    seen: list[tuple[AgReduceResult, bytes]] = []
    for event in events:
        live.push(event)
        result = live.result()
        seen.append((result, encode(result)))
    assert all(encode(result) == text for result, text in seen)


@examples(120)
@given(streams())
def test_a_result_read_twice_is_the_same(events: list[AgStreamEvent]) -> None:
    watched, unwatched = Reducer(), Reducer()
    for event in events:
        watched.push(event)
        assert watched.result() == watched.result()
        unwatched.push(event)
    assert watched.result() == unwatched.result()


@examples(150)
@given(results())
def test_a_stored_result_is_its_own_fold(result: AgReduceResult) -> None:
    assert Reducer(initial=result).result() == result


@examples(150)
@given(results())
def test_snapshots_bring_a_result_to_another_fold(result: AgReduceResult) -> None:
    thread = [record for record in result.memory if record.scope == "thread"]
    assert folded(snapshot(result)) == replace_event(result, memory=thread)
    # On top of what the other fold had, cross-thread memory stays and everything else is replaced.
    assert folded(snapshot(result), initial=result) == by_axis(result)


@examples(120)
@given(streams(StreamOptions(resyncable=True)), st.data())
def test_a_fold_goes_on_from_a_stored_result(events: list[AgStreamEvent], data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(quiet_points(events)))
    stored = folded(events[:place])
    assert folded(events[place:], initial=stored) == folded(events)


@examples(150)
@given(gaps())
def test_a_healed_gap_is_no_gap(gap: Gap) -> None:
    assert by_axis(folded(gap.healed())) == by_axis(folded(gap.events))


@examples(120)
@given(gaps())
def test_a_gap_parks_at_the_event_that_reveals_it(gap: Gap) -> None:
    if not gap.before or not gap.after or gap.after[0].seq <= gap.before[-1].seq + 1:
        return
    blind = Reducer(initial=None)
    for event in gap.before:
        blind.push(event)
    before = blind.result()
    for event in gap.after:
        # A snapshot is folded at once, and heals the gap.
        if event.type in ("messages.snapshot", "state.snapshot"):
            return
        blind.push(event)
        assert blind.needs_resync
        assert blind.result() == before


@examples(120)
@given(streams(), st.data())
def test_a_snapshot_of_itself_changes_no_result(events: list[AgStreamEvent], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(events)))
    reducer = Reducer()
    for event in events[:count]:
        reducer.push(event)
    before = reducer.result()
    for event in snapshot(before, seq=events[count - 1].seq + 1 if count else 0):
        reducer.push(event)
    assert not reducer.needs_resync
    assert reducer.result() == by_axis(before)


@examples(120)
@given(streams(StreamOptions(max_events=30)), st.data())
def test_no_delta_is_applied_twice_over_a_snapshot(events: list[AgStreamEvent], data: st.DataObject) -> None:
    deltas = [index for index, event in enumerate(events) if isinstance(event, _Fragment)]
    if not deltas:
        return
    index = data.draw(st.sampled_from(deltas))
    reducer = Reducer()
    for event in events[:index]:
        reducer.push(event)
    before = by_axis(reducer.result())
    for event in snapshot(before, seq=events[index].seq):
        reducer.push(event)
    # The block was open before the snapshot, and no start has opened it since.
    reducer.push(with_seq(events[index], events[index].seq + 2))
    assert reducer.needs_resync
    assert reducer.result() == before


_LOUD = [
    "duplicate-block-id",
    "duplicate-tool-call-id",
    "delta-to-unknown-block",
    "delta-after-block-end",
    "delta-after-seal",
    "delta-after-close",
    "drop-message-start",
    "unknown-message",
    "metadata-for-unknown-message",
    "owner-left-out",
    "undeclared-artifact",
    "drop-artifact-start",
    "patch-of-absent-state",
    "patch-of-absent-memory",
    "malformed-patch",
]


@examples(150)
@given(broken_streams(_LOUD))
def test_what_has_no_place_parks_and_folds_nothing(broken: tuple[Mutation, list[Any]]) -> None:
    _, items = broken
    reducer = Reducer()
    for item in items:
        before = reducer.result()
        reducer.push(item)
        if reducer.needs_resync:
            assert reducer.result() == before
            return
    raise AssertionError("no event parked the fold")


@examples(120)
@given(streams(), st.lists(st.tuples(st.integers(0, 10_000), unknown_events()), max_size=4))
def test_unknown_events_change_nothing(events: list[AgStreamEvent], unknown: list[tuple[int, UnknownEvent]]) -> None:
    mixed: list[AgStreamEvent | UnknownEvent] = list(events)
    for place, event in unknown:
        mixed.insert(1 + place % len(mixed) if mixed else 0, event)
    assert folded(_numbered(mixed)) == folded(events)


def _numbered(events: Sequence[AgStreamEvent | UnknownEvent]) -> list[AgStreamEvent | UnknownEvent]:
    """The events with ordinals without a gap; each invoke of the stream keeps its own count."""
    numbered: list[AgStreamEvent | UnknownEvent] = []
    seq = 0
    for event in events:
        if event.seq == 0 and not isinstance(event, UnknownEvent):
            seq = 0
        numbered.append(with_seq(event, seq))
        seq += 1
    return numbered


_ALONE = StreamOptions(max_invokes=1, max_events=25, explicit_owners=True, without=_SHARED)


@examples(120)
@given(
    streams(replace(_ALONE, id_prefix="a-")),
    streams(replace(_ALONE, id_prefix="b-")),
    st.randoms(use_true_random=False),
)
def test_interleaving_two_streams_changes_neither(
    first: list[AgStreamEvent], second: list[AgStreamEvent], random: Random
) -> None:
    queues = [list(reversed(first)), list(reversed(second))]
    mixed: list[AgStreamEvent] = []
    while any(queues):
        mixed.append(random.choice([queue for queue in queues if queue]).pop())
    together = folded(renumber(mixed))
    for events, prefix in ((first, "a-"), (second, "b-")):
        alone = folded(events)
        assert [message for message in together.messages if message.id.startswith(prefix)] == alone.messages
        assert [turn for turn in together.turns if turn.turn_id.startswith(prefix)] == alone.turns
        assert [found for found in together.artifacts if found.artifact_id.startswith(prefix)] == alone.artifacts


@examples(150)
@given(streams(), st.data())
def test_where_deltas_are_cut_changes_nothing(events: list[AgStreamEvent], data: st.DataObject) -> None:
    cut: list[AgStreamEvent] = []
    for event in events:
        if isinstance(event, _Fragment) and len(event.delta) > 1:
            units = event.delta.encode("utf-16-le", "surrogatepass")
            places = data.draw(st.lists(st.integers(0, len(units) // 2), max_size=3)) if len(cut) < 60 else []
            bounds = [0, *sorted(place * 2 for place in places), len(units)]
            for number, (start, end) in enumerate(pairwise(bounds)):
                piece = units[start:end].decode("utf-16-le", "surrogatepass")
                cut.append(replace_event(event, delta=piece) if number == 0 else _bare(event, piece))
        else:
            cut.append(event)
    assert folded(_numbered(cut)) == folded(events)


def _bare(event: _Fragment, delta: str) -> AgStreamEvent:
    """A later piece: what the delta said beside its text has been said with the first one. It begins no invoke."""
    if isinstance(event, TextDelta | ReasoningDelta):
        return replace_event(event, delta=delta, provider_metadata=None, meta=None, seq=max(event.seq, 1))
    return replace_event(event, delta=delta, meta=None, seq=max(event.seq, 1))


@examples(120)
@given(streams())
def test_deltas_that_follow_each_other_may_be_joined(events: list[AgStreamEvent]) -> None:
    joined: list[AgStreamEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        if (
            isinstance(event, TextDelta)
            and isinstance(last, TextDelta)
            and (last.id, last.seq < event.seq, event.provider_metadata) == (event.id, True, None)
        ):
            joined[-1] = replace_event(last, delta=last.delta + event.delta)
        else:
            joined.append(event)
    assert folded(_numbered(joined)) == folded(events)
