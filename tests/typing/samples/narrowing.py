# pyright: strict
"""What a checker knows of a value, before and after looking at its discriminant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_type

from agjson.types import (
    UNSET,
    AgBlock,
    AgEvent,
    AgInput,
    AgMessage,
    AgMeta,
    AgProviderMeta,
    AgStreamEvent,
    AgSurfaceInteraction,
    AgUsage,
    ArtifactEnd,
    BlockCitation,
    ExtEvent,
    MessageStart,
    NamedToolChoice,
    OpenAiCallTool,
    StartInput,
    TextBlock,
    TextDelta,
    ToolDone,
    TurnAbort,
    TurnDone,
    UnknownEvent,
    UnsetType,
)


def by_type(event: AgEvent) -> None:
    if event.type == "text.delta":
        assert_type(event, TextDelta)
        assert_type(event.delta, str)
    elif event.type == "tool.done":
        assert_type(event, ToolDone)
        assert_type(event.content, Sequence[AgBlock])


def by_class(event: AgStreamEvent | UnknownEvent) -> None:
    if isinstance(event, ExtEvent):
        assert_type(event.vendor, str)
    elif isinstance(event, UnknownEvent):
        assert_type(event.raw, bytes)
    else:
        assert_type(event.turn_id, str | None)
        assert_type(event.seq, int)
        assert_type(event.meta, AgMeta | None)


def required_and_optional_ids(start: MessageStart, delta: TextDelta, done: TurnDone, abort: TurnAbort) -> None:
    assert_type((start.id, start.turn_id), tuple[str, str])
    assert_type((delta.id, delta.turn_id), tuple[str, str | None])
    assert_type((done.id, done.turn_id), tuple[str | None, str])
    assert_type((abort.id, abort.turn_id), tuple[str | None, str | None])


def nested_blocks(block: AgBlock) -> str:
    if block.type == "tool-result":
        return "".join(nested_blocks(inner) for inner in block.content)
    return block.text if block.type == "text" else ""


def absent_or_null(done: ToolDone) -> str:
    if done.ui_data is UNSET:
        assert_type(done.ui_data, Literal[UnsetType.UNSET])
        return "absent"
    return "null" if done.ui_data is None else "there"


def surfaces(value: AgInput) -> None:
    if value.kind == "resume":
        for interaction in value.ui_actions or ():
            assert_surface(interaction)


def assert_surface(interaction: AgSurfaceInteraction) -> None:
    if interaction.surface == "openai-app" and interaction.method == "callTool":
        assert_type(interaction, OpenAiCallTool)


def construction() -> None:
    texts: list[TextBlock] = [TextBlock(text="x", provider_metadata=AgProviderMeta({"id": "1"}))]
    message = AgMessage(id="m", role="user", content=texts)
    value = StartInput(thread_id="th", turn_id="t", messages=[message])
    assert_type(value.protocol, Literal["agjson"])
    assert_type(value.version, str)
    assert_type(NamedToolChoice(name="n").type, Literal["tool"])
    assert_type(ArtifactEnd(seq=0, artifact_id="a").last_chunk, Literal[True])
    assert_type(TextDelta.type, Literal["text.delta"])
    assert_type(AgUsage(input_tokens=1.5).input_tokens, int | float | None)
    ExtEvent.embed("ext.acme.tick", {"deep": [1, {"a": None}]}, seq=0)


def citation(found: BlockCitation) -> None:
    assert_type(found.confidence, int | float | Sequence[int | float] | None)
