"""The contract suite finds what it says it finds: for each rule a broken adapter, caught by the rule of that name."""

from __future__ import annotations

import dataclasses
import unittest
from typing import Any

import pytest

from agjson.adapter import Adapter
from agjson.normalizer import Normalizer
from agjson.testing.contract import RULES, NotApplicable, Rule, Sample, Subject, rule_named
from agjson.types import AgStreamEvent
from tests.support.broken_adapters import (
    BROKEN as BROKEN_ADAPTERS,
)
from tests.support.broken_adapters import (
    LANES,
    PAGE,
    SUBJECT,
    Normal,
    Notes,
    Strict,
    TakesApart,
    normalizing,
    with_samples_of_its_own,
)
from tests.support.broken_approvals import BROKEN_APPROVALS

BROKEN = [*BROKEN_ADAPTERS, *BROKEN_APPROVALS]


@pytest.mark.parametrize(("name", "subject", "words"), BROKEN, ids=[f"{each[0]}-{n}" for n, each in enumerate(BROKEN)])
def test_a_broken_adapter_is_caught_by_the_rule_named_for_it(name: str, subject: Subject, words: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s)^murmur: {name}: .*{words}"):
        rule_named(name)(subject)


def test_every_rule_is_shown_to_find_something() -> None:
    assert {name for name, _, _ in BROKEN} == {rule.name for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_adapter_that_they_are_made_from_is_not_caught(rule: Rule) -> None:
    if rule.name == "interleaving":
        rule(normalizing(Notes, LANES))
    else:
        rule(SUBJECT)


# What a subject leaves out


BARE = Subject(
    adapter=Adapter(name="murmur", normalizer=Normal, recorded=PAGE.recorded),
    samples=[Sample(name="words", natives=[{"event": "say", "words": "Hello"}])],
    has_ended=lambda natives: False,
    excused=SUBJECT.excused,
)

LACKS = {
    "native-error": "no sample ends as turn.error with a `code`",
    "unknown-types": "the subject has no `unknown` natives",
    "chunks": "the subject has no `rechunk`",
    "stream-equals-whole": "no sample has a `whole` form",
    "interleaving": "the subject has no `lanes`: its natives cannot interleave",
    "opaque-stored": "the subject has no `opaque`",
    "replay-opaque": "the subject has no `opaque`",
    "replay-stable": "the subject has no `messages_from_native`",
    "result-channels": "the adapter has neither messages_to_native nor to_native",
    "run-config": "the adapter has no to_native",
    "not-for-the-model": "the adapter has neither messages_to_native nor to_native",
    **{rule.name: "the subject has no `agents`" for rule in RULES if rule.name.startswith("agent-")},
    **{rule.name: "the subject has no `gating`" for rule in RULES if rule.name.startswith("approval-")},
}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_that_lacks_something_says_what(rule: Rule) -> None:
    if rule.name in LACKS:
        with pytest.raises(NotApplicable) as told:
            rule(BARE)
        assert str(told.value) == f"murmur: {rule.name}: {LACKS[rule.name]}"
    else:
        rule(BARE)


@pytest.mark.parametrize(
    ("rule", "changes", "lack"),
    [
        ("opaque-stored", {"opaque": lambda native: []}, "no sample holds an opaque value"),
        ("replay-opaque", {"opaque": lambda native: []}, "no sample holds an opaque value"),
        ("interleaving", {"lanes": lambda natives: [None] * len(natives)}, "no sample has two lanes side by side"),
        ("agent-results", {"samples": SUBJECT.samples[:1]}, "no sample ends with a call of a client tool"),
        ("agent-invokes", {"samples": SUBJECT.samples[2:]}, "no sample ends as turn.done without waiting"),
    ],
)
def test_a_rule_without_anything_to_try_does_not_pass(rule: str, changes: dict[str, Any], lack: str) -> None:
    with pytest.raises(NotApplicable, match=lack):
        rule_named(rule)(dataclasses.replace(SUBJECT, **changes))


def test_what_a_subject_raises_itself_is_a_fault_that_names_its_rule() -> None:
    broken = dataclasses.replace(SUBJECT, rechunk=lambda natives, size: natives[size]["no such"])

    with pytest.raises(AssertionError, match=r"^murmur: chunks: KeyError: 'no such'$") as raised:
        rule_named("chunks")(broken)
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_end_that_fails_on_strange_natives_is_named_with_the_sample_and_the_native() -> None:
    broken = dataclasses.replace(
        SUBJECT, has_ended=lambda natives: any(native.get("event") == "failed" for native in natives)
    )
    words = r"sample '\w+', NoneType None at \d+: has_ended \(it gets natives of any type\): AttributeError: 'NoneType'"
    with pytest.raises(AssertionError, match=rf"^murmur: hostile-values: {words}"):
        rule_named("hostile-values")(broken)


@pytest.mark.parametrize("rule", ["host-end", "host-error", "host-abort", "truncation", "dropped"])
def test_a_stream_with_an_end_of_its_own_needs_no_hook_for_a_run_without_events(rule: str) -> None:
    class EndsItself(Normalizer):
        ends_itself = True

        def _on(self, native: Any) -> None:
            if native == "end":
                self.out.turn_done()
            else:
                self.out.text(native)

    rule_named(rule)(
        Subject(
            adapter=Adapter(name="plain", normalizer=EndsItself, recorded=PAGE.recorded),
            samples=[Sample(name="words", natives=["one", "two", "end"])],
            has_ended=lambda natives: "end" in natives,
        )
    )


def test_a_rule_that_does_not_apply_is_a_skipped_test() -> None:
    assert issubclass(NotApplicable, unittest.SkipTest)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"samples": []}, "at least one sample"),
        ({"samples": [*SUBJECT.samples, *SUBJECT.samples]}, "not unique: .*'call', 'call'"),
        ({"samples": [Sample(name="nothing", natives=[])]}, "at least one native event"),
        ({"has_ended": lambda natives: True}, "no events at all are an end"),
    ],
)
def test_a_subject_that_every_rule_would_pass_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(SUBJECT, **changes)


# Rules


def test_rules_have_names_of_their_own_and_say_what_has_to_hold() -> None:
    names = [rule.name for rule in RULES]

    assert len(set(names)) == len(names)
    assert [str(rule) for rule in RULES] == names
    assert [name for name in names if rule_named(name).name != name] == []
    assert all(rule.description.endswith(".") and "§" in rule.section for rule in RULES)
    with pytest.raises(KeyError):
        rule_named("no such rule")


def test_an_adapter_that_spoils_its_natives_is_caught_after_the_fact() -> None:
    spoiled = normalizing(TakesApart, with_samples_of_its_own())
    rule_named("wire")(spoiled)

    with pytest.raises(AssertionError, match=r"native 4 was .* and is now {'event': 'say'}"):
        rule_named("natives-untouched")(dataclasses.replace(spoiled, adapter=SUBJECT.adapter))


@pytest.mark.parametrize("rule", ["truncation", "dropped", "host-error", "marks", "wrong-members", "shuffled"])
def test_a_long_recording_costs_no_more_than_its_budget(rule: str) -> None:
    """Every place of 2,000 events would be 4,000,000 of them."""
    pushed = 0

    class Counting(Normal):
        def push(self, native: object) -> list[AgStreamEvent]:
            nonlocal pushed
            pushed += 1
            events: list[AgStreamEvent] = super().push(native)
            return events

    natives = [{"event": "say", "words": f"word {number} "} for number in range(2_000)]
    subject = dataclasses.replace(normalizing(Counting), samples=[Sample(name="long", natives=natives)], budget=40_000)
    rule_named(rule)(subject)

    assert 10_000 < pushed < 160_000


def test_the_places_of_a_long_recording_are_those_where_something_changes() -> None:
    """A fault that shows at one place among 600 is found."""

    class Fragile(Strict):
        def rely(self, native: dict[str, Any]) -> None:
            if native.get("event") == "seal" and not self.count % 2:
                raise LookupError("an even number before the seal")

    words = [{"event": "say", "words": "word "}] * 301
    natives = [*words, {"event": "seal", "value": "c2VhbA=="}, *words]
    subject = dataclasses.replace(normalizing(Fragile), samples=[Sample(name="long", natives=natives)], budget=10_000)

    with pytest.raises(AssertionError, match=r"native 30[01] swapped: push raised LookupError"):
        rule_named("swapped")(subject)
