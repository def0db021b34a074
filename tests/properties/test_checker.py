"""The checker over generated streams: silent on valid ones, never on a planted violation (spec §5.0, §9)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.checker import RULES, check
from agjson.fold import reduce
from agjson.testing import (
    HypothesisSource,
    RandomSource,
    StreamOptions,
    mutations,
    quiet_points,
    random_stream,
    streams,
)
from agjson.types import AgProfile, AgStreamEvent
from agjson.wire import encode
from tests.support.properties import examples


@pytest.mark.parametrize("profile", ["CORE", "EXTENDED", "ADVANCED"])
@examples(120)
@given(data=st.data())
def test_a_valid_stream_breaks_no_rule(profile: AgProfile, data: st.DataObject) -> None:
    events = data.draw(streams(StreamOptions(profile=profile)))
    assert list(check(events, profile=profile)) == []


@examples(60)
@given(streams())
def test_a_valid_stream_breaks_no_rule_as_text(events: list[AgStreamEvent]) -> None:
    assert list(check([encode(event) for event in events])) == []


@examples(60)
@given(streams(StreamOptions(resyncable=True)), st.data())
def test_the_rest_of_a_valid_stream_breaks_no_rule(events: list[AgStreamEvent], data: st.DataObject) -> None:
    starts = [place for place in quiet_points(events) if place == len(events) or events[place].seq == 0]
    place = data.draw(st.sampled_from(starts))
    assert list(check(events[place:], initial=reduce(events[:place]).result)) == []


@examples(60)
@given(streams(), st.data())
def test_every_planted_violation_is_found(events: list[AgStreamEvent], data: st.DataObject) -> None:
    source = HypothesisSource(data.draw)
    for mutation in mutations().values():
        if mutation.profile is None:
            broken = mutation.plant(source, events)
            if broken is not None:
                assert mutation.rule in {violation.rule for violation in check(broken)}, mutation.name


@pytest.mark.parametrize("profile", ["CORE", "EXTENDED"])
@examples(30)
@given(data=st.data())
def test_every_breach_of_a_profile_is_found(profile: AgProfile, data: st.DataObject) -> None:
    events = data.draw(streams(StreamOptions(profile=profile)))
    for mutation in mutations().values():
        if mutation.profile == profile:
            broken = mutation.plant(HypothesisSource(data.draw), events)
            if broken is not None:
                assert "PROFILE" in {violation.rule for violation in check(broken, profile=profile)}


def test_every_rule_is_planted_and_every_mutation_finds_its_place() -> None:
    assert {mutation.rule for mutation in mutations().values()} == set(RULES)
    placed: Counter[str] = Counter()
    for seed in range(250):
        for mutation in mutations().values():
            if placed[mutation.name] < 3:
                events = random_stream(seed, StreamOptions(profile=mutation.profile or "ADVANCED", min_events=25))
                broken = mutation.plant(RandomSource(seed), events)
                if broken is not None:
                    placed[mutation.name] += 1
                    found = {violation.rule for violation in check(broken, profile=mutation.profile)}
                    assert mutation.rule in found, (mutation.name, seed)
    assert {name for name in mutations() if placed[name] < 3} == set()


def test_a_mutation_leaves_its_stream_as_it_was() -> None:
    for seed, mutation in enumerate(mutations().values()):
        events = random_stream(seed)
        before = [encode(event) for event in events]
        mutation.plant(RandomSource(seed), events)
        assert [encode(event) for event in events] == before
