"""Text and reasoning rows that the vectors leave open (spec §5 text.*, reasoning.*, INV-BLOCK)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.folding import DONE, MESSAGE, REASONING, TEXT, TURN, blocks, folded, push

END = {"type": "message.end", "id": "m"}


def text(delta: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text.delta", "id": "x", "delta": delta, **fields}


def thought(delta: str, **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.delta", "id": "r", "delta": delta, **fields}


def test_metadata_of_every_text_event_merges_by_key() -> None:
    reducer = folded(
        TURN,
        MESSAGE,
        {**TEXT, "providerMetadata": {"a": 1, "b": {"x": 1}}},
        text("1", providerMetadata={"b": {"y": 1}, "c": 1}),
        text("2", providerMetadata={"c": 2}),
        text("3"),
        {"type": "text.end", "id": "x", "providerMetadata": {"d": 1}},
    )
    expected = {"a": 1, "b": {"y": 1}, "c": 2, "d": 1}
    assert blocks(reducer) == [{"type": "text", "text": "123", "providerMetadata": expected}]


def test_a_delta_after_the_end_of_its_block_parks() -> None:
    reducer = folded(TURN, MESSAGE, TEXT, text("a"), {"type": "text.end", "id": "x"}, text("late"))
    assert reducer.needs_resync
    assert blocks(reducer) == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize("shut", [[END], [DONE], [END, DONE]], ids=["sealed", "closed", "both"])
def test_an_end_that_comes_late_still_brings_its_citations(shut: list[dict[str, Any]]) -> None:
    citation = {"kind": "url", "citedText": "a", "url": "https://a.example"}
    end = {"type": "text.end", "id": "x", "citations": [citation], "providerMetadata": {"k": 1}}
    reducer = folded(TURN, MESSAGE, TEXT, text("a"), *shut, end)
    assert blocks(reducer) == [{"type": "text", "text": "a", "citations": [citation], "providerMetadata": {"k": 1}}]
    assert not reducer.needs_resync


def test_an_id_is_taken_for_both_kinds_of_streamed_block() -> None:
    assert folded(TURN, MESSAGE, TEXT, {**REASONING, "id": "x"}).needs_resync
    assert folded(TURN, MESSAGE, TEXT, {**REASONING, "id": "x", "partIndex": 1}).needs_resync
    assert folded(TURN, MESSAGE, REASONING, {**TEXT, "id": "r"}).needs_resync


@pytest.mark.parametrize(
    "stray",
    [
        {"type": "text.delta", "id": "r", "delta": "no"},
        {"type": "text.end", "id": "r"},
        {"type": "reasoning.delta", "id": "x", "delta": "no"},
        {"type": "reasoning.end", "id": "x"},
        {"type": "reasoning.opaque", "id": "x", "kind": "signature", "value": "v"},
        {"type": "reasoning.opaque.delta", "id": "x", "delta": "v"},
        {"type": "reasoning.delta", "id": "ghost", "delta": "no"},
        {"type": "reasoning.end", "id": "ghost"},
        {"type": "reasoning.opaque.delta", "id": "ghost", "delta": "v"},
    ],
    ids=lambda event: f"{event['type']} {event['id']}",
)
def test_an_event_for_a_block_of_another_kind_or_none_parks(stray: dict[str, Any]) -> None:
    reducer = folded(TURN, MESSAGE, TEXT, REASONING, stray)
    assert reducer.needs_resync
    assert blocks(reducer) == [{"type": "text", "text": ""}, {"type": "reasoning", "text": ""}]


def test_a_part_opens_once() -> None:
    part = {**REASONING, "partIndex": 1}
    assert not folded(TURN, MESSAGE, REASONING, part).needs_resync
    assert folded(TURN, MESSAGE, REASONING, part, part).needs_resync
    assert folded(TURN, MESSAGE, part, REASONING).needs_resync


def test_a_delta_without_a_part_extends_the_end_of_the_text() -> None:
    reducer = folded(
        TURN,
        MESSAGE,
        REASONING,
        thought("a"),
        {**REASONING, "partIndex": 1},
        thought("b"),
        thought("A", partIndex=0),
        thought("c"),
    )
    assert blocks(reducer) == [{"type": "reasoning", "text": "aAbc"}]


def test_parts_stand_in_order_of_their_index_not_of_their_arrival() -> None:
    reducer = folded(TURN, MESSAGE, REASONING, *(thought(str(part), partIndex=part) for part in (10, 2, 0, 1)))
    assert blocks(reducer) == [{"type": "reasoning", "text": "01210"}]


def test_a_new_part_reopens_an_ended_block_and_merges_its_fields() -> None:
    first = {**REASONING, "partIndex": 0, "itemId": "rs_1", "providerMetadata": {"a": 1, "b": 1}, "_meta": {"m": 1}}
    second = {**REASONING, "partIndex": 1, "itemId": "rs_2", "providerMetadata": {"b": 2}, "_meta": {"n": 1}}
    end = {"type": "reasoning.end", "id": "r"}
    reducer = folded(TURN, MESSAGE, first, thought("A"), end, second, thought("B"), end, thought("late"))
    assert reducer.needs_resync
    assert blocks(reducer) == [
        {
            "type": "reasoning",
            "text": "AB",
            "itemId": "rs_2",
            "providerMetadata": {"a": 1, "b": 2},
            "_meta": {"m": 1, "n": 1},
        }
    ]


def test_a_new_part_in_a_sealed_message_parks() -> None:
    assert folded(TURN, MESSAGE, REASONING, END, {**REASONING, "partIndex": 1}).needs_resync


def test_the_opaque_value_of_the_seal_wins_over_its_fragments() -> None:
    seal = {"type": "reasoning.opaque", "id": "r", "kind": "signature", "value": "whole"}
    reducer = folded(TURN, MESSAGE, REASONING, {"type": "reasoning.opaque.delta", "id": "r", "delta": "part"}, seal)
    assert blocks(reducer)[0]["opaque"] == {"kind": "signature", "value": "whole"}


def test_fragments_are_used_once() -> None:
    fragment = {"type": "reasoning.opaque.delta", "id": "r", "delta": "one"}
    seal = {"type": "reasoning.opaque", "id": "r", "kind": "signature", "value": ""}
    reducer = folded(TURN, MESSAGE, REASONING, fragment, seal, {**fragment, "delta": "two"}, seal)
    assert blocks(reducer)[0]["opaque"] == {"kind": "signature", "value": "two"}


def test_a_later_seal_replaces_all_of_the_earlier_one() -> None:
    first = {"type": "reasoning.opaque", "id": "r", "kind": "signature", "value": "a", "provider": "p", "itemId": "i"}
    second = {"type": "reasoning.opaque", "id": "r", "kind": "redacted", "value": "b"}
    block = blocks(folded(TURN, MESSAGE, REASONING, first, second))[0]
    assert block == {"type": "reasoning", "text": "", "opaque": {"kind": "redacted", "value": "b"}, "itemId": "i"}


@pytest.mark.parametrize("shut", [END, DONE, {"type": "reasoning.end", "id": "r"}], ids=["sealed", "closed", "ended"])
def test_a_signature_that_comes_late_is_not_lost(shut: dict[str, Any]) -> None:
    seal = {"type": "reasoning.opaque", "id": "r", "kind": "signature", "value": "v"}
    reducer = folded(TURN, MESSAGE, REASONING, thought("a"), shut, seal)
    assert blocks(reducer)[0] == {"type": "reasoning", "text": "a", "opaque": {"kind": "signature", "value": "v"}}
    assert not reducer.needs_resync


@pytest.mark.parametrize("shut", [END, DONE], ids=["sealed", "closed"])
def test_a_fragment_for_a_finished_message_parks(shut: dict[str, Any]) -> None:
    reducer = folded(TURN, MESSAGE, REASONING, shut, {"type": "reasoning.opaque.delta", "id": "r", "delta": "v"})
    assert reducer.needs_resync


def test_metadata_of_reasoning_deltas_merges_and_survives_the_end() -> None:
    reducer = folded(TURN, MESSAGE, REASONING, thought("a"), thought("b", providerMetadata={"k": 1}))
    push(reducer, {"type": "reasoning.end", "id": "r", "providerMetadata": {"l": 2}, "provider": "p"})
    assert blocks(reducer) == [
        {"type": "reasoning", "text": "ab", "provider": "p", "providerMetadata": {"k": 1, "l": 2}}
    ]


def test_an_empty_delta_changes_nothing() -> None:
    reducer = folded(TURN, MESSAGE, TEXT, text(""), REASONING, thought(""))
    assert blocks(reducer) == [{"type": "text", "text": ""}, {"type": "reasoning", "text": ""}]
