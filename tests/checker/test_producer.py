"""The producer's posture: known types, declared fields, profiles, texts that can be read (spec §0.2, §0.3, §9, §12)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agjson.checker import RULES, Checker, check
from agjson.types import ExtEvent, TextBlock, TextDelta, TurnStart
from tests.support.streams import CALL, CLOSE, OPEN, broken, ev, raw, typed, violations

NOTE = ev("error", message="x")


# Types and fields


def test_an_unknown_event_type_is_reported_and_its_ordinal_counts() -> None:
    [violation] = violations(NOTE, ev("future.thing.done", x=1), NOTE)
    assert (violation.line, violation.seq, violation.rule) == (2, 1, "UNKNOWN-TYPE")
    assert violation.message == "event type `future.thing.done` is none of this revision"


def test_an_unknown_block_kind_is_reported_with_its_place_and_the_event_counts() -> None:
    future = {"type": "hologram", "data": 1}
    result = ev("tool.done", toolCallId="c1", turnId="t1", content=[{"type": "text", "text": "a"}, future])
    found = violations(*OPEN, *CALL, result, *CLOSE)
    assert [(v.line, v.rule, v.message) for v in found] == [
        (6, "UNKNOWN-TYPE", "$.content[1].type is no block kind of this revision")
    ]


@pytest.mark.parametrize(
    ("event", "path"),
    [
        ({**NOTE, "mood": 1}, "$.mood"),
        (ev("turn.start", turnId="t1", threadId="th", trigger={"kind": "user", "mood": 1}), "$.trigger.mood"),
        (
            ev("messages.snapshot", messages=[{"id": "m", "role": "user", "content": [], "mood": 1}]),
            "$.messages[0].mood",
        ),
        (
            ev(
                "messages.snapshot",
                messages=[{"id": "m", "role": "user", "content": [{"type": "text", "text": "a", "mood": 1}]}],
            ),
            "$.messages[0].content[0].mood",
        ),
        (
            ev("step.done", id="s", usage={"byModel": {"m1": {"inputTokens": 1, "mood": 1}}}),
            "$.usage.byModel.m1.mood",
        ),
    ],
)
def test_an_undeclared_field_is_reported_with_its_path(event: dict[str, Any], path: str) -> None:
    found = [v for v in violations(event, known_ids={"s"}) if v.rule == "UNDECLARED-FIELD"]
    assert [(v.line, v.message) for v in found] == [(1, f"{path} is no field of this revision")]


def test_an_event_with_undeclared_fields_is_checked_like_any_other() -> None:
    assert broken({**OPEN[0], "mood": 1}, CLOSE[1]) == [(1, "UNDECLARED-FIELD")]
    assert broken(OPEN[0], {**CLOSE[1], "mood": 1}, CLOSE[1]) == [(2, "UNDECLARED-FIELD"), (3, "INV-TURN")]


def test_opaque_values_are_not_looked_into() -> None:
    opaque = {"anything": {"type": "hologram", "mood": 1}}
    stream = (
        OPEN[0],
        ev("state.snapshot", snapshot=opaque, _meta=opaque),
        ev("ui.surface.start", surfaceId="u", catalogId="c", components=opaque, dataModel=[opaque]),
        {**CLOSE[1], "outcome": {"type": "success", "result": opaque}},
        ev("ext.acme.note", **opaque),
    )
    assert broken(*stream) == []


# Extensions


@pytest.mark.parametrize("type_", ["ext.acme.note", "ext.langgraph.checkpoint", "ext.acme.deep.down.Key_1"])
def test_a_vendor_extension_breaks_nothing(type_: str) -> None:
    assert broken(ev(type_, value=1)) == []


@pytest.mark.parametrize("type_", ["ext.ACME.note", "ext.a_b.note"])
def test_an_extension_is_named_in_lower_case(type_: str) -> None:
    assert broken(ev(type_, value=1), NOTE) == [(1, "EXT")]


@pytest.mark.parametrize("type_", ["ext.acme", "ext..note", "ext.acme."])
def test_an_extension_has_a_vendor_and_a_key(type_: str) -> None:
    assert [(v.line, v.rule) for v in check([ExtEvent(type_, 0)])] == [(1, "EXT")]


# Profiles


def stream_of(profile: str) -> tuple[dict[str, Any], ...]:
    text = (ev("text.start", id="x", turnId="t1"), ev("text.delta", id="x", delta="a"), ev("text.end", id="x"))
    extra = {
        "CORE": (),
        "EXTENDED": (ev("step.start", id="s"),),
        "ADVANCED": (ev("host.context", theme="dark"),),
    }[profile]
    return (*OPEN, *text, *CALL, *extra, *CLOSE)


@pytest.mark.parametrize("needed", ["CORE", "EXTENDED", "ADVANCED"])
@pytest.mark.parametrize("profile", ["CORE", "EXTENDED", "ADVANCED"])
def test_a_stream_keeps_to_its_profile(profile: Any, needed: str) -> None:
    order = ["CORE", "EXTENDED", "ADVANCED"]
    expected = [(9, "PROFILE")] if order.index(needed) > order.index(profile) else []
    assert broken(*stream_of(needed), profile=profile) == expected


def test_a_profile_names_what_needs_more() -> None:
    result = ev("tool.done", toolCallId="c1", turnId="t1", content=[], uiData=None)
    [violation] = violations(*OPEN, *CALL, result, *CLOSE, profile="CORE")
    assert (violation.line, violation.rule) == (6, "PROFILE")
    assert violation.message == "$.uiData needs the profile ADVANCED, not CORE"


def test_an_unknown_event_type_is_not_judged_by_a_profile() -> None:
    assert broken(ev("future.thing.done"), profile="CORE") == [(1, "UNKNOWN-TYPE")]


def test_an_extension_is_allowed_in_any_profile() -> None:
    assert broken(ev("ext.acme.note", value=1), profile="CORE") == []


def test_a_profile_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="profile 'BASIC' is none of CORE, EXTENDED, ADVANCED"):
        Checker("BASIC")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Texts


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        (b"{", "MALFORMED", "truncated"),
        (b"[]", "MALFORMED", "array"),
        (b'{"type":"text.delta","id":"x","seq":1}', "MALFORMED", "delta"),
        (b'{"type":"text.delta","id":7,"delta":"a","seq":1}', "MALFORMED", "$.id"),
        (b'{"type":"message.remove","id":"*","seq":1}', "MALFORMED", "turnId"),
        (b'{"type":"memory.write","scope":"user","value":1,"patch":[],"seq":1}', "MALFORMED", "patch"),
        (
            b'{"type":"turn.done","turnId":"t1","outcome":{"type":"success"},"finishReason":"eos","seq":1}',
            "MALFORMED",
            "",
        ),
        (b'{"type":"source","sourceId":"s","source":{"type":"tape"},"turnId":"t1","seq":1}', "UNKNOWN-TYPE", "tape"),
        (b'{"type":"error","message":"\xff","seq":1}', "MALFORMED", ""),
    ],
)
def test_a_text_that_cannot_be_read_is_reported_with_its_path(text: bytes, rule: str, words: str) -> None:
    rest = [b'{"type":"turn.error","turnId":"t1","message":"x","seq":2}']
    done = b'"finishReason"' in text
    found = list(check([*raw(OPEN[0]), text, *(() if done else rest)]))
    assert [(v.line, v.rule) for v in found] == [(2, rule)]
    assert words.lower() in found[0].message.lower()


def test_a_message_is_cut_where_a_hostile_producer_made_it_long() -> None:
    [violation, *_] = violations(ev("turn.error", turnId="t" * 100_000, message="x"))
    assert violation.rule == "INV-TURN"
    assert len(violation.message) == 500


def test_a_malformed_event_uses_its_ordinal_where_that_can_be_read() -> None:
    bad = '{"type":"text.delta","id":"x","seq":%d}'
    assert [(v.line, v.seq, v.rule) for v in check([bad % 0, bad % 1])] == [(1, 0, "MALFORMED"), (2, 1, "MALFORMED")]
    assert [(v.line, v.seq, v.rule) for v in check([bad % 3, *raw({**NOTE, "seq": 4})])] == [
        (1, 3, "INV-SEQ"),
        (1, 3, "MALFORMED"),
    ]
    assert [(v.line, v.seq, v.rule) for v in check(["nonsense", *raw({**NOTE, "seq": 1})])] == [(1, None, "MALFORMED")]


def test_an_ordinal_that_producers_may_not_write_is_malformed() -> None:
    texts = [json.dumps({"type": "error", "message": "x", "seq": seq}) for seq in (0, 1.5, 2)]
    assert {(v.line, v.rule) for v in check(texts)} == {(2, "MALFORMED"), (2, "INV-SEQ")}


def test_events_and_texts_may_be_mixed() -> None:
    events = typed(*OPEN, *CLOSE)
    texts = raw(*OPEN, *CLOSE)
    assert list(check([events[0], texts[1], texts[2].decode(), events[3]])) == []


@pytest.mark.parametrize("item", [7, None, {}, TextBlock(text="a")])
def test_an_item_that_is_neither_is_refused(item: Any) -> None:
    with pytest.raises(TypeError, match="expected an event or its JSON text"):
        Checker().push(item)


# The rules


def test_check_is_lazy() -> None:
    def endless() -> Any:
        yield TurnStart(seq=0, turn_id="t1", thread_id="th")
        yield TextDelta(seq=1, id="x", delta="a")
        raise AssertionError("read too far")

    assert next(check(endless())).rule == "INV-BLOCK"


def test_checker_and_check_agree() -> None:
    stream = typed(*OPEN, *CALL, CLOSE[1])
    checker = Checker()
    found = [violation for event in stream for violation in checker.push(event)]
    assert found + checker.finish() == list(check(stream))
    assert checker.finish() == []


def test_every_rule_says_what_it_means_and_where_the_specification_says_so() -> None:
    assert list(RULES)[:6] == ["INV-TURN", "INV-MSG", "INV-BLOCK", "INV-SEQ", "INV-OWNER", "INV-FLUSH"]
    for meaning in RULES.values():
        assert "§" in meaning
        assert "\n" not in meaning


def test_a_violation_is_a_wire_record() -> None:
    [violation] = violations(CLOSE[1])
    assert json.loads(json.dumps({"line": violation.line, "seq": violation.seq, "rule": violation.rule})) == {
        "line": 1,
        "seq": 0,
        "rule": "INV-TURN",
    }
    with pytest.raises(AttributeError):
        violation.line = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
