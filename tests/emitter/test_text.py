"""Text and reasoning: increments, cumulative streams, split characters, what comes too late (spec §5, INV-DELTA)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.emitter import Emitter
from agjson.types import AgAnnotations, AgOpaque, DataBlock, ReasoningBlock, TextBlock, UrlCitation
from tests.emitter.stream import errors, finished, folded, sound, types, wire


def texts(events: list[Any]) -> list[str]:
    return [block.text for message in folded(events).messages for block in message.content]  # type: ignore[union-attr]


def deltas(events: list[Any]) -> list[str]:
    return [event.delta for event in events if event.type.endswith(".delta")]


def test_a_whole_text_is_start_delta_and_end_with_its_citations() -> None:
    citation = UrlCitation(cited_text="c", url="https://example.org")
    emitter = Emitter("t", "thread")

    emitter.text("whole", id="b", citations=[citation], meta={"node": "n"})
    events = finished(emitter)

    assert types(events)[2:5] == ["text.start", "text.delta", "text.end"]
    assert folded(events).messages[0].content == [TextBlock(text="whole", citations=[citation], meta={"node": "n"})]


def test_an_empty_delta_emits_nothing_but_metadata_does() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.text_delta("b", "")
    emitter.text_delta("b", "", provider_metadata={"k": 1})  # type: ignore[arg-type]
    emitter.text_delta("unknown", "")
    events = finished(emitter)

    assert types(events).count("text.delta") == 1
    assert types(events).count("text.start") == 1


def test_a_delta_for_a_block_never_started_starts_it_where_it_is_told_to() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m", model="x")
    emitter.subagent_start("s")
    emitter.text_delta("b", "Hi", turn_id="t", message_id="m")
    emitter.reasoning_delta("r", "hm")
    events = finished(emitter)

    assert [(m.id, m.turn_id) for m in folded(events).messages] == [("m", "t"), ("s:message:0", "s")]
    assert texts(events) == ["Hi", "hm"]


def test_a_delta_after_the_end_of_its_block_opens_another_in_the_same_message() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("before", id="b")
    emitter.text_delta("b", "after")
    emitter.text_delta("b", "wards")
    events = finished(emitter)

    assert texts(events) == ["before", "afterwards"]
    assert len(folded(events).messages) == 1


def test_a_delta_after_the_seal_of_its_message_opens_another_message() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m", agent_id="a")
    emitter.text_start("b")
    emitter.text_delta("b", "before")
    emitter.message_end()
    emitter.text_delta("b", "after")
    events = finished(emitter)

    assert [(m.id, m.agent_id) for m in folded(events).messages] == [("m", "a"), ("m#2", "a")]
    assert texts(events) == ["before", "after"]


def test_a_delta_after_the_end_of_its_turn_is_carried_whole_in_an_error() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.text_delta("b", "in time")
    emitter.turn_done()
    emitter.text_delta("b", "too late", meta={"k": 1})
    emitter.text("too late as a whole", id="w")
    events = finished(emitter)

    assert texts(events) == ["in time"]
    assert [error["code"] for error in errors(events)] == ["turn_closed"] * 3
    assert [error["_meta"]["agjson/refused"] for error in errors(events)] == [
        {"type": "text.delta", "id": "b", "delta": "too late", "_meta": {"k": 1}},
        {"type": "text.start", "turnId": "t", "id": "w"},
        {"type": "text.delta", "id": "w", "delta": "too late as a whole"},
    ]


def test_late_citations_are_refused_visibly_and_an_idle_end_is_not() -> None:
    citation = UrlCitation(cited_text="c", url="https://example.org")
    emitter = Emitter("t", "thread")
    emitter.text("cited", id="b")
    emitter.text_end("b")
    emitter.text_end("never")
    emitter.text_end("b", citations=[citation])
    events = finished(emitter)

    assert types(events).count("text.end") == 1
    (error,) = errors(events)
    assert error["code"] == "block_ended"
    assert error["_meta"]["agjson/refused"]["citations"] == [
        {"kind": "url", "citedText": "c", "url": "https://example.org"}
    ]


def test_citations_of_a_block_that_the_seal_cut_off_still_land() -> None:
    citation = UrlCitation(cited_text="c", url="https://example.org")
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.text_delta("b", "cited")
    emitter.turn_error("broken")
    emitter.text_end("b", citations=[citation])
    events = finished(emitter)

    assert folded(events).messages[0].content == [TextBlock(text="cited", citations=[citation])]


def test_ending_a_message_ends_its_blocks_but_a_flush_does_not() -> None:
    ended = Emitter("t", "thread")
    ended.text_start("b")
    ended.reasoning_start("r")
    ended.message_end()
    flushed = Emitter("t", "thread")
    flushed.text_start("b")
    flushed.reasoning_start("r")

    assert types(finished(ended))[4:] == ["text.end", "reasoning.end", "message.end", "turn.abort"]
    assert types(finished(flushed))[4:] == ["message.end", "turn.abort"]


# Cumulative streams


def test_a_cumulative_text_is_cut_into_increments() -> None:
    emitter = Emitter("t", "thread")
    for text in ("", "Hel", "Hel", "Hello", "Hello, world"):
        emitter.text_cumulative("b", text)
    emitter.text_end("b")
    emitter.text_cumulative("b", "Hello, world")
    events = finished(emitter)

    assert deltas(events) == ["Hel", "lo", ", world"]
    assert errors(events) == []


def test_a_cumulative_text_goes_on_after_the_end_with_what_is_new() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_cumulative("b", "Hello")
    emitter.text_end("b")
    emitter.text_cumulative("b", "Hello, world")
    emitter.text_cumulative("b", "Hello, world!")
    events = finished(emitter)

    assert texts(events) == ["Hello", ", world!"]
    assert errors(events) == []


def test_increments_in_between_count_as_text_so_far() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_cumulative("b", "Hel")
    emitter.text_delta("b", "lo")
    emitter.text_cumulative("b", "Hello!")
    events = finished(emitter)

    assert deltas(events) == ["Hel", "lo", "!"]


def test_a_text_that_lost_its_end_keeps_the_longer_one_and_says_so() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_cumulative("b", "Hello, world")
    emitter.text_cumulative("b", "Hello")
    emitter.text_cumulative("b", "Hello, world!")
    events = finished(emitter)

    assert texts(events) == ["Hello, world!"]
    assert [error["code"] for error in errors(events)] == ["cumulative_shrunk"]


def test_a_text_that_contradicts_follows_whole_in_a_new_block_and_says_so() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_cumulative("b", "Hello")
    emitter.text_cumulative("b", "Good day")
    emitter.text_cumulative("b", "Good day, world")
    events = finished(emitter)

    assert texts(events) == ["Hello", "Good day, world"]
    assert [error["code"] for error in errors(events)] == ["cumulative_mismatch"]


def test_a_whole_text_after_mere_increments_cannot_be_compared() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.text_delta("b", "Hello")
    emitter.text_cumulative("b", "Hello, world")
    events = finished(emitter)

    assert texts(events) == ["Hello", "Hello, world"]
    assert [error["code"] for error in errors(events)] == ["cumulative_mismatch"]


def test_cumulative_reasoning_is_kept_by_part() -> None:
    emitter = Emitter("t", "thread")
    emitter.reasoning_cumulative("r", "On", part_index=0)
    emitter.reasoning_cumulative("r", "Two", part_index=1)
    emitter.reasoning_cumulative("r", "One. ", part_index=0)
    emitter.reasoning_cumulative("r", "Two.", part_index=1)
    events = finished(emitter)

    assert texts(events) == ["One. Two."]
    assert errors(events) == []


def test_cumulative_reasoning_that_contradicts_starts_again() -> None:
    emitter = Emitter("t", "thread")
    emitter.reasoning_cumulative("r", "First", part_index=0)
    emitter.reasoning_cumulative("r", "Second", part_index=0)
    emitter.reasoning_cumulative("r", "Second thought", part_index=0)
    events = finished(emitter)

    assert texts(events) == ["First", "Second thought"]


def test_a_cumulative_text_for_a_closed_turn_is_carried_in_an_error() -> None:
    emitter = Emitter("t", "thread")
    emitter.turn_done()
    emitter.text_cumulative("b", "late")
    emitter.reasoning_cumulative("r", "late too")
    events = finished(emitter)

    assert [error["_meta"]["agjson/refused"]["delta"] for error in errors(events)] == ["late", "late too"]


@given(st.lists(st.text(max_size=4), min_size=1, max_size=8))
def test_a_growing_text_arrives_as_it_is(pieces: list[str]) -> None:
    emitter = Emitter("t", "thread")
    for end in range(len(pieces) + 1):
        emitter.text_cumulative("b", "".join(pieces[:end]))
    events = finished(emitter)

    assert "".join(deltas(events)) == "".join(pieces)
    assert errors(events) == []


# Split characters


@pytest.mark.parametrize("start, delta", [("text_start", "text_delta"), ("reasoning_start", "reasoning_delta")])
def test_the_first_half_of_a_character_waits_for_the_second(start: str, delta: str) -> None:
    emitter = Emitter("t", "thread")
    getattr(emitter, start)("b")
    for piece in ("a\ud83d", "\ude00b", "\ud83d", "\ude01"):
        getattr(emitter, delta)("b", piece)
    events = finished(emitter)

    assert deltas(events) == ["a", "\U0001f600b", "\U0001f601"]


def test_a_half_that_stays_alone_is_replaced_at_the_end_of_its_block() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.text_delta("b", "a\ud83d")
    emitter.text_end("b")
    emitter.text_start("c")
    emitter.text_delta("c", "\ud83d")
    emitter.text_delta("c", "x")
    emitter.reasoning_start("r")
    emitter.reasoning_delta("r", "\ud83d", part_index=0)
    emitter.reasoning_delta("r", "y", part_index=1)
    events = finished(emitter)

    assert deltas(events) == ["a", "\ufffd", "\ufffdx", "\ufffd", "y"]


def test_a_half_is_dropped_at_the_flush_which_adds_no_content() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.text_delta("b", "a\ud83d")
    events = finished(emitter)

    assert deltas(events) == ["a"]


def test_a_half_is_replaced_when_its_message_is_sealed() -> None:
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    emitter.text_delta("b", "a\ud83d")
    emitter.turn_error("cut off")
    events = finished(emitter)

    assert texts(events) == ["a\ufffd"]


@given(st.lists(st.sampled_from(["a", "é", "漢", "\U0001f600", "\U0001f469\u200d\U0001f680"]), max_size=6), st.data())
def test_a_text_cut_anywhere_between_utf_16_units_arrives_whole(characters: list[str], data: st.DataObject) -> None:
    text = "".join(characters)
    units = text.encode("utf-16-le")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(units) // 2))))
    bounds = [0, *cuts, len(units) // 2]
    emitter = Emitter("t", "thread")
    emitter.text_start("b")
    for begin, end in pairwise(bounds):
        emitter.text_delta("b", units[2 * begin : 2 * end].decode("utf-16-le", "surrogatepass"))
    events = finished(emitter)

    assert "".join(deltas(events)) == text
    for delta in deltas(events):
        delta.encode()


# Reasoning


def test_summary_parts_go_into_one_block() -> None:
    emitter = Emitter("t", "thread")
    assert emitter.reasoning_start("rs_1", part_index=0, mode="summarized", item_id="rs_1") == "rs_1"
    emitter.reasoning_delta("rs_1", "One. ", part_index=0)
    assert emitter.reasoning_start("rs_1", part_index=1) == "rs_1"
    emitter.reasoning_delta("rs_1", "Two. ", part_index=1)
    emitter.reasoning_delta("rs_1", "Three.", part_index=2)
    emitter.reasoning_end("rs_1")
    assert emitter.reasoning_start("rs_1", part_index=0) == "rs_1#2"
    events = finished(emitter)

    assert folded(events).messages[0].content[0] == ReasoningBlock(text="One. Two. Three.", item_id="rs_1")


def test_a_signature_is_set_once_and_never_empty() -> None:
    emitter = Emitter("t", "thread")
    emitter.reasoning_start("r")
    emitter.reasoning_opaque("r", "")
    emitter.reasoning_opaque("r")
    emitter.reasoning_opaque("r", "SIG==", provider="anthropic")
    emitter.reasoning_end("r")
    events = finished(emitter)

    assert types(events).count("reasoning.opaque") == 1
    assert folded(events).messages[0].content == [
        ReasoningBlock(text="", opaque=AgOpaque(kind="signature", value="SIG==", provider="anthropic"))
    ]


def test_fragments_go_out_when_the_value_that_seals_them_agrees() -> None:
    emitter = Emitter("t", "thread")
    emitter.reasoning_start("r")
    emitter.reasoning_opaque_delta("r", "AB", provider="p")
    emitter.reasoning_opaque_delta("r", "CD", provider="p")
    emitter.reasoning_opaque("r", "ABCD")
    events = finished(emitter)

    assert wire(events)[3:6] == [
        {"type": "reasoning.opaque.delta", "id": "r", "delta": "AB", "turnId": "t", "messageId": "t:message:0"},
        {"type": "reasoning.opaque.delta", "id": "r", "delta": "CD", "turnId": "t", "messageId": "t:message:0"},
        {
            "type": "reasoning.opaque",
            "id": "r",
            "kind": "signature",
            "value": "ABCD",
            "provider": "p",
            "turnId": "t",
            "messageId": "t:message:0",
        },
    ]


def test_a_value_that_differs_from_its_fragments_wins_and_they_stay_back() -> None:
    emitter = Emitter("t", "thread")
    emitter.reasoning_start("r")
    emitter.reasoning_opaque_delta("r", "sigA")
    emitter.reasoning_opaque_delta("r", "sigB")
    emitter.reasoning_opaque("r", "sigB")
    events = finished(emitter)

    assert "reasoning.opaque.delta" not in types(events)
    assert folded(events).messages[0].content[0].opaque == AgOpaque(kind="signature", value="sigB")  # type: ignore[union-attr]


def test_the_end_of_a_block_seals_its_fragments_and_a_cut_drops_them() -> None:
    ended = Emitter("t", "thread")
    ended.reasoning_opaque_delta("r", "blob", kind="ciphertext")
    ended.reasoning_end("r")
    cut = Emitter("t", "thread")
    cut.reasoning_opaque_delta("r", "half a sig")

    assert folded(finished(ended)).messages[0].content[0].opaque == AgOpaque(kind="ciphertext", value="blob")  # type: ignore[union-attr]
    assert folded(finished(cut)).messages[0].content[0].opaque is None  # type: ignore[union-attr]


def test_a_signature_that_comes_after_the_seal_still_lands() -> None:
    emitter = Emitter("t", "thread")
    emitter.reasoning("thought", id="r")
    emitter.turn_done()
    emitter.reasoning_opaque("r", "late")
    events = finished(emitter)

    assert folded(events).messages[0].content[0].opaque == AgOpaque(kind="signature", value="late")  # type: ignore[union-attr]


def test_a_signature_for_a_removed_block_is_carried_in_an_error() -> None:
    emitter = Emitter("t", "thread")
    emitter.reasoning("thought", id="r")
    emitter.message_remove(emitter.open_message() or "")
    emitter.reasoning_opaque("r", "SIG")
    events = finished(emitter)

    (error,) = errors(events)
    assert error["_meta"]["agjson/refused"] == {
        "type": "reasoning.opaque",
        "id": "r",
        "kind": "signature",
        "value": "SIG",
    }


def test_a_whole_reasoning_block_has_all_its_parts() -> None:
    block = ReasoningBlock(
        text="hm",
        opaque=AgOpaque(kind="redacted", value="blob", provider="anthropic"),
        provider="anthropic",
        item_id="rs_1",
        provider_metadata={"k": 1},  # type: ignore[arg-type]
        meta={"m": 1},
    )
    emitter = Emitter("t", "thread")

    emitter.block(block)
    events = finished(emitter)

    assert types(events)[2:6] == ["reasoning.start", "reasoning.delta", "reasoning.opaque", "reasoning.end"]
    assert folded(events).messages[0].content == [block]


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(text="noted", annotations=AgAnnotations(audience=["user"])),
        ReasoningBlock(text="hm", provider_details={"p": 1}),
        DataBlock(name="status", id="d", data={"percent": 10}),
    ],
)
def test_a_block_that_events_cannot_say_is_delivered_whole(block: Any) -> None:
    emitter = Emitter("t", "thread")

    emitter.block(block)
    events = finished(emitter)

    assert types(events)[2] == "content.block"
    assert folded(events).messages[0].content == [block]


def test_a_data_block_is_replaced_by_its_id_and_a_transient_one_opens_no_message() -> None:
    emitter = Emitter("t", "thread")
    emitter.content_block(DataBlock(name="status", data=0), transient=True)
    emitter.content_block(DataBlock(name="status", id="d", data=1))
    emitter.content_block(DataBlock(name="status", id="d", data=2))
    events = finished(emitter)

    assert types(events)[:5] == ["turn.start", "content.block", "message.start", "content.block", "content.block"]
    assert folded(events).messages[0].content == [DataBlock(name="status", id="d", data=2)]


def test_an_empty_opaque_value_of_a_whole_block_is_left_out() -> None:
    emitter = Emitter("t", "thread")

    emitter.content_block(ReasoningBlock(text="hm", opaque=AgOpaque(kind="signature", value="")))

    assert folded(sound(finished(emitter))).messages[0].content == [ReasoningBlock(text="hm")]
