"""INV-BLOCK and signatures: ids of blocks are unique, deltas and ends name open blocks (spec §5.0, §5, §8 item 9)."""

from __future__ import annotations

import pytest

from tests.support.streams import CLOSE, OPEN, broken, ev, violations

TEXT = ev("text.start", id="x", turnId="t1")
TEXT_DELTA = ev("text.delta", id="x", delta="a")
TEXT_END = ev("text.end", id="x")
REASONING = ev("reasoning.start", id="r", turnId="t1")
REASONING_DELTA = ev("reasoning.delta", id="r", delta="a")
REASONING_END = ev("reasoning.end", id="r")
OPAQUE = ev("reasoning.opaque", id="r", kind="signature", value="sig")


def message(*events: dict[str, object], **options: object) -> list[tuple[int, str]]:
    """What a message with these events breaks; the first of them is line 3."""
    return broken(*OPEN, *events, *CLOSE, **options)


def kind(event: dict[str, object]) -> str:
    return str(event["type"])


def test_interleaved_blocks_break_nothing() -> None:
    assert message(TEXT, REASONING, TEXT_DELTA, REASONING_DELTA, TEXT_END, OPAQUE, REASONING_END) == []


@pytest.mark.parametrize("again", [TEXT, {**REASONING, "id": "x"}], ids=kind)
def test_a_block_id_is_used_once(again: dict[str, object]) -> None:
    later = ev("reasoning.delta", id="x", delta="b") if again is not TEXT else TEXT_DELTA
    assert message(TEXT, TEXT_DELTA, TEXT_END, again, later) == [(6, "INV-BLOCK")]


def test_a_block_id_is_used_once_in_all_messages() -> None:
    second = ev("message.start", id="m2", role="assistant", turnId="t1", threadId="th")
    stream = (*OPEN, TEXT, TEXT_END, CLOSE[0], second, TEXT, TEXT_END, ev("message.end", id="m2"), CLOSE[1])
    assert broken(*stream) == [(7, "INV-BLOCK")]


def test_a_block_and_a_call_may_share_an_id() -> None:
    call = ev("tool.start", toolCallId="x", name="n", turnId="t1")
    assert message(TEXT, TEXT_END, call, ev("tool.args.assembled", toolCallId="x", input={})) == []


def test_a_removed_message_and_a_snapshot_free_its_ids() -> None:
    second = ev("message.start", id="m2", role="assistant", turnId="t1", threadId="th")
    end = ev("message.end", id="m2")
    assert broken(*OPEN, TEXT, ev("message.remove", id="m1"), second, TEXT, TEXT_END, end, CLOSE[1]) == []
    assert broken(*OPEN, TEXT, ev("messages.snapshot", messages=[]), second, TEXT, TEXT_END, end, CLOSE[1]) == []


@pytest.mark.parametrize(
    "event", [TEXT_DELTA, TEXT_END, REASONING_DELTA, REASONING_END, OPAQUE, {**OPAQUE, "type": "x"}], ids=kind
)
def test_a_delta_or_an_end_needs_a_block(event: dict[str, object]) -> None:
    if event["type"] == "x":
        event = ev("reasoning.opaque.delta", id="r", delta="s")
    [violation] = violations(*OPEN, event, event, *CLOSE)
    assert (violation.line, violation.rule) == (3, "INV-BLOCK")


def test_a_block_of_the_other_kind_is_none() -> None:
    assert message(TEXT, {**REASONING_DELTA, "id": "x"}, TEXT_END) == [(4, "INV-BLOCK")]
    assert message(REASONING, {**TEXT_END, "id": "r"}) == [(4, "INV-BLOCK")]


@pytest.mark.parametrize(
    ("start", "delta", "end"), [(TEXT, TEXT_DELTA, TEXT_END), (REASONING, REASONING_DELTA, REASONING_END)]
)
def test_an_ended_block_takes_neither_a_delta_nor_another_end(
    start: dict[str, object], delta: dict[str, object], end: dict[str, object]
) -> None:
    assert message(start, end, delta, delta) == [(5, "INV-BLOCK")]
    assert message(start, end, end) == [(5, "INV-BLOCK")]


def test_a_block_may_stay_open_when_its_message_ends() -> None:
    assert message(TEXT, TEXT_DELTA) == []


def test_an_end_may_follow_the_end_of_its_message() -> None:
    assert broken(*OPEN, TEXT, CLOSE[0], TEXT_END, CLOSE[1]) == []


# Parts


def test_a_new_part_index_opens_a_part_of_the_same_block() -> None:
    first, second = {**REASONING, "partIndex": 0}, {**REASONING, "partIndex": 1}
    assert message(first, REASONING_DELTA, second, REASONING_DELTA, REASONING_END) == []
    assert message(first, REASONING_DELTA, REASONING_END, second, REASONING_DELTA, REASONING_END) == []


@pytest.mark.parametrize("again", [{**REASONING, "partIndex": 0}, REASONING])
def test_a_known_part_index_or_none_is_the_same_block_again(again: dict[str, object]) -> None:
    assert message({**REASONING, "partIndex": 0}, REASONING_END, again) == [(5, "INV-BLOCK")]


def test_each_part_may_have_an_end_and_no_more() -> None:
    first, second = {**REASONING, "partIndex": 0}, {**REASONING, "partIndex": 1}
    assert message(first, second, REASONING_END, REASONING_END) == []
    assert message(first, second, REASONING_END, REASONING_END, REASONING_END) == [(7, "INV-BLOCK")]
    assert message(first, second, REASONING_END, REASONING_DELTA) == [(6, "INV-BLOCK")]


# Signatures


def fragment(delta: str) -> dict[str, object]:
    return ev("reasoning.opaque.delta", id="r", delta=delta)


def test_a_signature_may_come_after_the_end_of_its_block() -> None:
    assert message(REASONING, REASONING_END, fragment("si"), fragment("g"), OPAQUE) == []


def test_a_signature_without_fragments_is_not_empty() -> None:
    assert message(REASONING, {**OPAQUE, "value": ""}) == [(4, "OPAQUE")]


def test_fragments_may_be_sealed_by_an_empty_value() -> None:
    assert message(REASONING, fragment("sig"), {**OPAQUE, "value": ""}) == []


def test_a_signature_equals_its_fragments() -> None:
    assert message(REASONING, fragment("si"), fragment("G"), OPAQUE) == [(6, "OPAQUE")]


def test_fragments_are_sealed_before_the_turn_ends_well() -> None:
    assert message(REASONING, fragment("sig")) == [(6, "OPAQUE")]
    cut = (*OPEN, REASONING, fragment("sig"), CLOSE[0], {**CLOSE[1], "finishReason": "token_limit"})
    assert broken(*cut) == []


def test_fragments_of_two_blocks_stay_apart() -> None:
    other = {**REASONING, "id": "q"}
    sealed = {**OPAQUE, "id": "q", "value": "b"}
    stream = (REASONING, other, fragment("sig"), {**fragment("b"), "id": "q"}, OPAQUE, sealed)
    assert message(*stream) == []


@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "opaque": {"kind": "signature", "value": ""}},
        {"type": "compaction", "opaque": {"kind": "ciphertext", "value": ""}},
        {"type": "search-result", "opaque": {"kind": "ciphertext", "value": ""}},
        {"type": "tool-call", "toolCallId": "c", "name": "n", "input": {}, "signature": ""},
    ],
    ids=kind,
)
def test_a_whole_block_has_no_empty_signature(block: dict[str, object]) -> None:
    assert message(ev("content.block", block=block, turnId="t1")) == [(3, "OPAQUE")]


def test_an_assembled_call_has_no_empty_signature() -> None:
    call = ev("tool.start", toolCallId="c", name="n", turnId="t1")
    assert message(call, ev("tool.args.assembled", toolCallId="c", input={}, signature="")) == [(4, "OPAQUE")]


# Whole blocks


def test_a_data_block_replaces_the_one_of_its_id() -> None:
    block = ev("content.block", block={"type": "data", "name": "n", "id": "d", "data": 1}, turnId="t1")
    assert message(block, block) == []


def test_a_transient_block_needs_no_message() -> None:
    block = {"type": "data", "name": "n", "data": 1}
    assert broken(OPEN[0], ev("content.block", block=block, transient=True), CLOSE[1]) == []
    assert broken(OPEN[0], ev("content.block", block={**block, "transient": True}), CLOSE[1]) == []


# Citations


def cited(*source_ids: str) -> dict[str, object]:
    citation = {
        "kind": "offset",
        "citedText": "a",
        "startIndex": 0,
        "endIndex": 1,
        "unit": "byte",
        "bounds": "[start,end)",
    }
    return {**citation, "sourceIds": list(source_ids)}


SOURCE = ev("source", sourceId="s1", source={"url": "https://a.example"}, turnId="t1")


def test_a_cited_source_comes_before_or_after_the_citation() -> None:
    assert message(SOURCE, TEXT, {**TEXT_END, "citations": [cited("s1")]}) == []
    assert message(TEXT, {**TEXT_END, "citations": [cited("s1")]}, SOURCE) == []
    assert broken(*OPEN, TEXT, {**TEXT_END, "citations": [cited("s1")]}, *CLOSE, SOURCE) == []


def test_a_cited_source_that_never_comes_is_reported_at_the_first_citation() -> None:
    block = {"type": "text", "text": "a", "citations": [cited("s1", "s2")]}
    whole = ev("content.block", block=block, turnId="t1")
    assert message(SOURCE, TEXT, {**TEXT_END, "citations": [cited("s2")]}, whole) == [(5, "ANNOUNCE")]
    assert message(whole, known_ids={"s1"}) == [(3, "ANNOUNCE")]
    assert message(whole, known_ids={"s1", "s2"}) == []


def test_an_id_of_the_thread_is_taken() -> None:
    assert message(TEXT, TEXT_END, known_ids={"x"}) == [(3, "INV-BLOCK")]
    assert message(REASONING, REASONING_END, known_ids={"x"}) == []
