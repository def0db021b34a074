"""Single values: what is written is read back, by every reader, for every class (spec §0.2, §2-§4)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.testing import (
    answers,
    asks,
    blocks,
    events,
    inputs,
    json_values,
    messages,
    results,
    unknown_events,
    values_of,
)
from agjson.types import (
    BLOCK_TYPES,
    EVENT_TYPES,
    SURFACE_ARMS,
    AgBlock,
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    JsonValue,
    ResumeInput,
    StateSnapshot,
    UnknownEvent,
)
from agjson.wire import (
    decode_answer,
    decode_ask,
    decode_block,
    decode_event,
    decode_input,
    decode_message,
    decode_result,
    encode,
    from_dict,
    ingest_event,
    to_dict,
)
from tests.support.properties import examples


@pytest.mark.parametrize("type", [*EVENT_TYPES, "ext"])
@examples(12)
@given(data=st.data())
def test_an_event_of_every_type_is_read_back(type: str, data: st.DataObject) -> None:
    event = data.draw(events(types=[type]))
    text = encode(event)
    assert decode_event(text) == event
    assert ingest_event(text.decode()) == event
    assert from_dict(to_dict(event), "event") == event
    assert json.loads(text) == to_dict(event)


@pytest.mark.parametrize("kind", BLOCK_TYPES)
@examples(12)
@given(data=st.data())
def test_a_block_of_every_kind_is_read_back(kind: str, data: st.DataObject) -> None:
    block: AgBlock = data.draw(blocks(kinds=[kind]))
    assert decode_block(encode(block)) == block
    assert from_dict(to_dict(block), "block") == block


@pytest.mark.parametrize("arm", SURFACE_ARMS)
@examples(8)
@given(data=st.data())
def test_a_surface_interaction_of_every_arm_is_read_back(arm: tuple[str, str], data: st.DataObject) -> None:
    action = data.draw(values_of(SURFACE_ARMS[arm]))
    envelope = ResumeInput(thread_id="th", turn_id="t", ui_actions=[action])
    assert decode_input(encode(envelope)) == envelope


@examples(100)
@given(inputs())
def test_an_input_is_read_back(value: AgInput) -> None:
    assert decode_input(encode(value)) == value
    assert from_dict(to_dict(value), "input") == value


@examples(100)
@given(messages())
def test_a_message_is_read_back(value: AgMessage) -> None:
    assert decode_message(encode(value)) == value
    assert from_dict(to_dict(value), "message") == value


@examples(100)
@given(results())
def test_a_result_is_read_back(value: AgReduceResult) -> None:
    assert decode_result(encode(value)) == value
    assert from_dict(to_dict(value), "result") == value


@examples(60)
@given(answers(), asks())
def test_an_answer_and_an_ask_are_read_back(answer: AgHitlAnswer, ask: AgPausedAsk) -> None:
    assert decode_answer(encode(answer)) == answer
    assert decode_ask(encode(ask)) == ask


@examples(100)
@given(events(surrogates=True))
def test_lone_surrogates_survive_escaped(event: AgStreamEvent) -> None:
    text = encode(event)
    assert decode_event(text) == event
    assert text.decode("utf-8", "strict") == text.decode()


@examples(100)
@given(json_values(max_depth=4))
def test_an_opaque_value_is_read_back_exactly(value: JsonValue) -> None:
    event = decode_event(encode(StateSnapshot(seq=0, snapshot=value)))
    assert isinstance(event, StateSnapshot)
    # Equality alone would take 1 for 1.0 and true.
    assert json.dumps(event.snapshot) == json.dumps(value)


@examples(60)
@given(unknown_events())
def test_an_unknown_event_is_written_verbatim(event: UnknownEvent) -> None:
    assert encode(event) == event.raw
    assert ingest_event(event.raw) == event
