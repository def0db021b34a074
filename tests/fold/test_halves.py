"""Characters cut in two between deltas (spec §5 text.delta): whole again in the fold, and never half in a result."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.fold import Reducer
from agjson.types import (
    AgOpaque,
    ArtifactDelta,
    ArtifactStart,
    MessageEnd,
    MessageStart,
    ReasoningBlock,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    TurnAbort,
    TurnStart,
)

GRIN = "\U0001f600"
HIGH, LOW = "\ud83d", "\ude00"


def opened(*events: Any) -> Reducer:
    reducer = Reducer()
    reducer.push(TurnStart(seq=0, turn_id="t", thread_id="th"))
    reducer.push(MessageStart(seq=0, id="m", role="assistant", turn_id="t", thread_id="th"))
    reducer.push(TextStart(seq=0, id="x"))
    reducer.push(ReasoningStart(seq=0, id="r"))
    for event in events:
        reducer.push(event)
    return reducer


def text(delta: str) -> TextDelta:
    return TextDelta(seq=0, id="x", delta=delta)


def thought(delta: str, part_index: int | None = None) -> ReasoningDelta:
    return ReasoningDelta(seq=0, id="r", delta=delta, part_index=part_index)


def read(reducer: Reducer, index: int = 0) -> str | None:
    block = reducer.result().messages[0].content[index]
    assert isinstance(block, TextBlock | ReasoningBlock)
    return block.text


@pytest.mark.parametrize("look", [False, True], ids=["at the end", "after each"])
@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([HIGH, LOW], GRIN),
        (["a" + HIGH, LOW + "b"], f"a{GRIN}b"),
        ([HIGH, "", LOW], GRIN),
        ([GRIN, HIGH, LOW, GRIN], GRIN * 3),
        ([HIGH, "b"], "\ufffdb"),
        ([HIGH, HIGH, LOW], "\ufffd" + GRIN),
        ([LOW], "\ufffd"),
        (["a", LOW + HIGH], "a\ufffd"),
        (["é" + HIGH + "é"], "é\ufffdé"),
        ([HIGH], ""),
        (["a" + HIGH], "a"),
    ],
)
def test_text(deltas: list[str], expected: str, look: bool) -> None:
    for reducer, index in ((opened(), 0), (opened(), 1)):
        for delta in deltas:
            reducer.push(text(delta) if index == 0 else thought(delta))
            if look:
                (read(reducer, index) or "").encode()  # no half shows
        assert read(reducer, index) == expected


@pytest.mark.parametrize(
    "last",
    [
        TextEnd(seq=0, id="x"),
        MessageEnd(seq=0, id="m"),
        TurnAbort(seq=0, turn_id="t"),
    ],
    ids=lambda event: event.type,
)
@pytest.mark.parametrize("look", [False, True], ids=["unseen", "seen"])
def test_a_half_at_the_end_of_its_block_is_replaced(last: Any, look: bool) -> None:
    reducer = opened(text("a" + HIGH))
    if look:
        assert read(reducer) == "a"
    reducer.push(last)
    assert read(reducer) == "a\ufffd"


def test_halves_meet_within_a_part_and_not_across_parts() -> None:
    assert read(opened(thought(HIGH, 0), thought(HIGH, 1), thought(LOW, 0)), 1) == GRIN
    assert read(opened(thought(HIGH, 0), thought(LOW, 1)), 1) == "\ufffd"


def test_a_signature_in_fragments_is_joined_and_not_replaced() -> None:
    reducer = opened(*(ReasoningOpaqueDelta(seq=0, id="r", delta=delta) for delta in ("a" + HIGH, LOW, HIGH)))
    reducer.push(ReasoningOpaque(seq=0, id="r", kind="signature", value=""))
    block = reducer.result().messages[0].content[1]
    assert isinstance(block, ReasoningBlock)
    assert block.opaque == AgOpaque(kind="signature", value="a" + GRIN + HIGH)


def test_texts_joined_in_an_artifact_meet() -> None:
    reducer = opened(ArtifactStart(seq=0, artifact_id="A", turn_id="t", thread_id="th"))
    for delta in ("a" + HIGH, LOW + "b"):
        reducer.push(ArtifactDelta(seq=0, artifact_id="A", part=TextBlock(text=delta), append=True))
        reducer.result()
    assert reducer.result().artifacts[0].parts == [TextBlock(text=f"a{GRIN}b")]
