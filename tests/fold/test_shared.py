"""A fold shares what it goes on from, and changes none of it (spec §5.0 INV-FOLD)."""

from __future__ import annotations

from agjson.fold import Reducer
from agjson.types import (
    AgMessage,
    AgReduceResult,
    AgTurnRecord,
    DataBlock,
    MessageMetadata,
    SuccessOutcome,
    TextBlock,
    ToolArgsAssembled,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    TurnDone,
)
from agjson.wire import encode


def stored(*contents: list[object]) -> AgReduceResult:
    """A conversation whose turn is still open."""
    messages = [
        AgMessage(id=f"m{number}", role="assistant", content=content, turn_id="t")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        for number, content in enumerate(contents)
    ]
    return AgReduceResult(messages=messages, artifacts=[], memory=[], turns=[AgTurnRecord(turn_id="t", thread_id="th")])


def test_changes_of_stored_messages_leave_the_stored_ones_alone() -> None:
    initial = stored(
        [ToolCallBlock(tool_call_id="c", name="f", input={})],
        [ToolResultBlock(tool_call_id="d", content=[], preliminary=True)],
        [TextBlock(text="said")],
        [DataBlock(name="n", id="x", data=1)],
    )
    before = encode(initial)
    reducer = Reducer(initial)
    reducer.push(ToolArgsAssembled(seq=0, tool_call_id="c", input={"a": 1}, turn_id="t"))
    reducer.push(ToolDone(seq=1, tool_call_id="d", content=[TextBlock(text="r")], turn_id="t"))
    reducer.push(MessageMetadata(seq=2, metadata={"k": 1}, message_id="m2", turn_id="t"))
    reducer.push(ToolDone(seq=3, tool_call_id="c", content=[], message_id="m3", turn_id="t"))
    reducer.push(TurnDone(seq=4, turn_id="t", outcome=SuccessOutcome(), finish_reason="stop"))
    result = reducer.result()

    assert reducer.resync_reason is None
    assert encode(initial) == before
    call, partial, said, data = result.messages
    assert call.content == [ToolCallBlock(tool_call_id="c", name="f", input={"a": 1})]
    assert partial.content == [ToolResultBlock(tool_call_id="d", content=[TextBlock(text="r")])]
    assert (said.metadata, said.content) == ({"k": 1}, [TextBlock(text="said")])
    assert [block.type for block in data.content] == ["data", "tool-result"]


def test_what_nothing_has_changed_is_the_same_object() -> None:
    initial = stored([TextBlock(text="a")], [TextBlock(text="b")])
    reducer = Reducer(initial)
    reducer.push(MessageMetadata(seq=0, metadata={"k": 1}, message_id="m1", turn_id="t"))
    result = reducer.result()

    assert result.messages[0] is initial.messages[0]
    assert result.messages is not initial.messages
    assert result.turns[0] is initial.turns[0]
    assert initial.messages[1].metadata is None


def test_stored_messages_of_one_id_stay_and_the_first_one_is_meant() -> None:
    initial = stored([TextBlock(text="a")], [TextBlock(text="b")])
    twice = AgReduceResult(
        messages=[*initial.messages, AgMessage(id="m0", role="user", content=[])],
        artifacts=[],
        memory=[],
        turns=[*initial.turns, AgTurnRecord(turn_id="t", thread_id="other", outcome=SuccessOutcome())],
    )
    reducer = Reducer(twice)
    reducer.push(MessageMetadata(seq=0, metadata={"k": 1}, message_id="m0"))
    result = reducer.result()

    assert [(each.id, each.role, each.metadata) for each in result.messages] == [
        ("m0", "assistant", {"k": 1}),
        ("m1", "assistant", None),
        ("m0", "user", None),
    ]
    assert [turn.thread_id for turn in result.turns] == ["th", "other"]
