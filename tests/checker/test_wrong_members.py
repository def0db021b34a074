"""Typed events with members of the wrong type, which only Python can make: a violation each, never an exception."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from agjson.checker import check
from agjson.types import AgStruct, ContentBlock, ErrorEvent, FieldError, SuccessOutcome, TextBlock, TurnDone, TurnStart
from agjson.wire import from_dict
from tests.support.every_event import every_event

NONE: Any = None
LIST: Any = ["x"]
TYPED: list[Any] = [event for each in every_event() if isinstance(event := from_dict(each, lenient=True), AgStruct)]


def found(*events: Any) -> list[tuple[int, str, str]]:
    return [(each.line, each.rule, each.message) for each in check(events)]


def test_a_member_that_a_rule_looks_up() -> None:
    start = TurnStart(seq=0, turn_id="t", thread_id="th")
    done = TurnDone(seq=1, turn_id="t", outcome=SuccessOutcome(), finish_reason=LIST)

    violation = found(start, done)[0]

    assert violation == (2, "MALFORMED", "turn.done: Expected `str`, got `array` - at `$.finishReason`")


def test_a_member_that_no_rule_looks_at() -> None:
    start = TurnStart(seq=0, turn_id="t", thread_id="th")
    error = ErrorEvent(seq=1, message=NONE, turn_id="t")
    block = ContentBlock(seq=2, block=TextBlock(text=LIST), transient=True, turn_id="t")
    done = TurnDone(seq=3, turn_id="t", outcome=SuccessOutcome(), finish_reason="stop")

    assert found(start, error, block, done) == [
        (2, "MALFORMED", "error: Expected `str`, got `null` - at `$.message`"),
        (3, "MALFORMED", "content.block: Expected `str`, got `array` - at `$.block.text`"),
    ]


@pytest.mark.parametrize("seq", [None, "1", [1], {}])
def test_an_ordinal_that_is_no_number(seq: Any) -> None:
    start = TurnStart(seq=0, turn_id="t", thread_id="th")
    assert found(start, ErrorEvent(seq=seq, message="m", turn_id="t"))[0][:2] == (2, "MALFORMED")


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_whatever_is_in_whatever_member_check_does_not_raise(data: st.DataObject) -> None:
    events: list[Any] = []
    for seq in range(data.draw(st.integers(1, 6))):
        event = data.draw(st.sampled_from(TYPED))
        name = data.draw(st.sampled_from(event.__struct_fields__))
        wrong = data.draw(
            st.sampled_from([None, 5, True, b"x", "x", [], ["x"], {}, {"a": 1}, object(), TextBlock(text=NONE)])
        )
        try:
            events.append(structs.replace(event, **{"seq": seq, name: wrong}))
        except (FieldError, TypeError):
            continue  # a rule between members, which construction checks

    list(check(events))
