"""Generated streams on the wire: every way there and back leads to the same fold (spec §0.2, §5.0 INV-FOLD)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agjson.testing import StreamOptions, streams
from agjson.types import AgStreamEvent
from agjson.wire import decode_event, decode_result, encode, ingest_event
from agjson.wire.lines import iter_json
from agjson.wire.sse import encode_sse_event, parse_event_id, read_sse
from tests.support.properties import examples, folded


@examples(120)
@given(streams(StreamOptions(surrogates=True)))
def test_a_stream_is_read_back_and_folds_the_same(events: list[AgStreamEvent]) -> None:
    texts = [encode(event) for event in events]
    assert [decode_event(text) for text in texts] == events
    assert folded(ingest_event(text) for text in texts) == folded(events)


@examples(120)
@given(streams())
def test_a_fold_is_read_back(events: list[AgStreamEvent]) -> None:
    result = folded(events)
    assert decode_result(encode(result)) == result


@examples(120)
@given(streams(), st.data())
def test_a_stream_survives_server_sent_events_cut_anywhere(events: list[AgStreamEvent], data: st.DataObject) -> None:
    body = b"".join(encode_sse_event(event, turn_id=event.turn_id) for event in events)
    read = list(read_sse(_cut(body, data)))
    assert [decode_event(message.data) for message in read] == events
    for event, message in zip(events, read, strict=True):
        if event.turn_id is not None:
            assert parse_event_id(message.last_event_id) == (event.turn_id, event.seq)


@examples(120)
@given(streams(), st.data())
def test_a_stream_survives_lines_and_arrays_cut_anywhere(events: list[AgStreamEvent], data: st.DataObject) -> None:
    texts = [encode(event) for event in events]
    lines = b"".join(text + b"\n" for text in texts)
    array = b"[" + b",\n".join(texts) + b"]"
    for body in (lines, array):
        assert [decode_event(item.data) for item in iter_json(_cut(body, data))] == events


def _cut(body: bytes, data: st.DataObject) -> list[bytes]:
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    return [body[start:end] for start, end in pairwise([0, *sorted(places), len(body)])]
