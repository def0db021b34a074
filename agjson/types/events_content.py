"""Events that carry content: text, reasoning, tools, blocks, sources, artifacts (spec §4).

Every class also has the envelope of `EventBase`: ``seq``, ``id``, ``turn_id``, ``message_id``, ``parent_id``, ``meta``;
their docstrings explain the fields of their own, and an envelope field where it has a special reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from ._base import (
    UNSET,
    AgMeta,
    AgProviderMeta,
    FieldError,
    FixedStruct,
    JsonValue,
    ListOf,
    Number,
    Opt,
    UnsetType,
    wire_default,
)
from .blocks import AgBlock, AgToolOutcome, AgUiVisibility
from .citations import AgCitation
from .event_base import EventWithId, EventWithIds, EventWithTurn
from .media import AgOpaqueKind, AgPendingInput, AgSourcePayload

__all__ = [
    "AgReasoningMode",
    "ArtifactDelta",
    "ArtifactEnd",
    "ArtifactStart",
    "ContentBlock",
    "DisplayRequired",
    "MessageMetadata",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningOpaque",
    "ReasoningOpaqueDelta",
    "ReasoningStart",
    "SourceEvent",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ToolArgsAssembled",
    "ToolArgsDelta",
    "ToolDone",
    "ToolStart",
]

AgReasoningMode: TypeAlias = Literal["summarized", "full"]
"""Whether the visible reasoning is a summary or the whole (spec §4 `reasoning.start`)."""


class TextStart(EventWithTurn, frozen=True, kw_only=True, tag="text.start"):
    """A text block opens (spec §4).

    Attributes:
        id: the block's own id, unique in the conversation (INV-BLOCK).
        role: always ``assistant`` where present.
        index: the provider's position of the block, from 0.
        previous_part_kind: the kind of the part before (Pydantic AI).
        provider_metadata: values that go back to the provider.
        candidate_index: which candidate it belongs to; absent is 0.
    """

    type: ClassVar[Literal["text.start"]] = "text.start"
    id: str
    role: Opt[Literal["assistant"]] = None
    index: Opt[Number] = None
    previous_part_kind: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None
    candidate_index: Opt[Number] = None


class TextDelta(EventWithTurn, frozen=True, kw_only=True, tag="text.delta"):
    """More text (spec §4, INV-DELTA).

    Attributes:
        id: the block.
        delta: the increment; never cut inside a surrogate pair.
        provider_metadata: values that go back to the provider.
    """

    type: ClassVar[Literal["text.delta"]] = "text.delta"
    id: str
    delta: str
    provider_metadata: Opt[AgProviderMeta] = None


class TextEnd(EventWithTurn, frozen=True, kw_only=True, tag="text.end"):
    """A text block is sealed (spec §4).

    Attributes:
        id: the block.
        provider_metadata: values that go back to the provider.
        citations: which sources support the text.
    """

    type: ClassVar[Literal["text.end"]] = "text.end"
    id: str
    provider_metadata: Opt[AgProviderMeta] = None
    citations: Opt[ListOf[AgCitation]] = None


class ReasoningStart(EventWithTurn, frozen=True, kw_only=True, tag="reasoning.start"):
    """A reasoning block opens, or a new part of its summary (spec §4).

    Attributes:
        id: the block's own id, unique in the conversation (INV-BLOCK).
        mode: summary or whole.
        part_index: opens this part of the summary (OpenAI ``summary_index``), from 0.
        previous_part_kind: the kind of the part before (Pydantic AI).
        provider_metadata: values that go back to the provider.
        item_id: the OpenAI Responses reasoning item (``rs_...``).
        candidate_index: which candidate it belongs to; absent is 0.
    """

    type: ClassVar[Literal["reasoning.start"]] = "reasoning.start"
    id: str
    mode: Opt[AgReasoningMode] = None
    part_index: Opt[Number] = None
    previous_part_kind: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None
    item_id: Opt[str] = None
    candidate_index: Opt[Number] = None


class ReasoningDelta(EventWithTurn, frozen=True, kw_only=True, tag="reasoning.delta"):
    """More visible reasoning (spec §4, INV-DELTA).

    Attributes:
        id: the block.
        delta: the increment.
        part_index: the part of the summary that it extends.
        provider_metadata: values that go back to the provider.
    """

    type: ClassVar[Literal["reasoning.delta"]] = "reasoning.delta"
    id: str
    delta: str
    part_index: Opt[Number] = None
    provider_metadata: Opt[AgProviderMeta] = None


class ReasoningEnd(EventWithTurn, frozen=True, kw_only=True, tag="reasoning.end"):
    """A reasoning block is sealed (spec §4).

    Attributes:
        id: the block.
        provider: who produced it.
        provider_metadata: values that go back to the provider.
    """

    type: ClassVar[Literal["reasoning.end"]] = "reasoning.end"
    id: str
    provider: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None


class ReasoningOpaque(EventWithTurn, frozen=True, kw_only=True, tag="reasoning.opaque"):
    """The opaque part of a reasoning block; replaces an earlier one (spec §4, §13.2).

    Attributes:
        id: the block.
        kind: what the blob is.
        value: the blob, byte for byte; never an empty signature.
        provider: the provider that issued it.
        item_id: the OpenAI Responses reasoning item (``rs_...``).
    """

    type: ClassVar[Literal["reasoning.opaque"]] = "reasoning.opaque"
    id: str
    kind: AgOpaqueKind
    value: str
    provider: Opt[str] = None
    item_id: Opt[str] = None


class ReasoningOpaqueDelta(EventWithTurn, frozen=True, kw_only=True, tag="reasoning.opaque.delta"):
    """A fragment of a signature, sealed by the next `reasoning.opaque` (spec §4).

    Attributes:
        id: the block.
        delta: the increment.
    """

    type: ClassVar[Literal["reasoning.opaque.delta"]] = "reasoning.opaque.delta"
    id: str
    delta: str


class ToolStart(EventWithIds, frozen=True, kw_only=True, tag="tool.start"):
    """A tool call opens (spec §4).

    Attributes:
        tool_call_id: the call's own id, unique in the conversation (INV-BLOCK).
        name: the tool's name.
        index: the provider's position of the block, from 0.
        dynamic: the tool was not known beforehand (Vercel).
        server_name: the MCP server that offers the tool.
        provider_executed: the provider runs it; the client must not.
        requires_approval: it will not run before a person agrees.
        title: a title for people.
        tool_metadata: a bag of the tool's own (Vercel).
        ui_visibility: who may call the tool.
        item_id: the OpenAI Responses item (``fc_...``).
        provider_metadata: values that go back to the provider.
        candidate_index: which candidate it belongs to; absent is 0.
        long_running: the result comes much later.
    """

    type: ClassVar[Literal["tool.start"]] = "tool.start"
    tool_call_id: str
    name: str
    index: Opt[Number] = None
    dynamic: Opt[bool] = None
    server_name: Opt[str] = None
    provider_executed: Opt[bool] = None
    requires_approval: Opt[bool] = None
    title: Opt[str] = None
    tool_metadata: Opt[AgMeta] = None
    ui_visibility: Opt[ListOf[AgUiVisibility]] = None
    item_id: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None
    candidate_index: Opt[Number] = None
    long_running: Opt[bool] = None


class ToolArgsDelta(EventWithIds, frozen=True, kw_only=True, tag="tool.args.delta"):
    """More of a call's arguments, as raw text of a JSON value still incomplete (spec §4).

    Attributes:
        tool_call_id: the call.
        delta: the increment.
    """

    type: ClassVar[Literal["tool.args.delta"]] = "tool.args.delta"
    tool_call_id: str
    delta: str


class ToolArgsAssembled(EventWithIds, frozen=True, kw_only=True, tag="tool.args.assembled"):
    """A call's arguments as one value; mandatory and authoritative (spec §4).

    Attributes:
        tool_call_id: the call.
        input: the arguments, opaque.
        signature: Gemini's thought signature, echoed byte-identical.
        title: a title for people.
        tool_metadata: a bag of the tool's own (Vercel).
        provider_metadata: values that go back to the provider.
    """

    type: ClassVar[Literal["tool.args.assembled"]] = "tool.args.assembled"
    tool_call_id: str
    input: JsonValue
    signature: Opt[str] = None
    title: Opt[str] = None
    tool_metadata: Opt[AgMeta] = None
    provider_metadata: Opt[AgProviderMeta] = None


class ToolDone(EventWithIds, frozen=True, kw_only=True, tag="tool.done"):
    """The result of a tool call (spec §4, §2.1, §2.2).

    Attributes:
        tool_call_id: the call that it answers.
        message_id: the id that the result's own message takes.
        content: what the model reads.
        outcome: how the call ended.
        structured_content: the structured form that the model also gets.
        ui_data: for the surface alone, hidden from the model.
        side_data: for the app alone, neither model nor surface.
        error_text: the error in words.
        error_code: a server tool's error code.
        provider_metadata: values that go back to the provider.
        tool_metadata: a bag of the tool's own (Vercel).
        dynamic: the tool was not known beforehand (Vercel).
        pending_input: what an ``input_required`` result waits for.
        is_error: MCP's flag, derived from `outcome`.
        skip_summarization: the model need not comment on it (ADK).
        more: the result is partial; another one replaces it.
        preliminary: the same, as the block will say it.
        candidate_index: which candidate it belongs to; absent is 0.
    """

    type: ClassVar[Literal["tool.done"]] = "tool.done"
    tool_call_id: str
    content: ListOf[AgBlock]
    outcome: Opt[AgToolOutcome] = None
    structured_content: JsonValue | UnsetType = UNSET
    ui_data: JsonValue | UnsetType = UNSET
    side_data: JsonValue | UnsetType = UNSET
    error_text: Opt[str] = None
    error_code: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None
    tool_metadata: Opt[AgMeta] = None
    dynamic: Opt[bool] = None
    pending_input: Opt[AgPendingInput] = None
    is_error: Opt[bool] = None
    skip_summarization: Opt[bool] = None
    more: Opt[bool] = None
    preliminary: Opt[bool] = None
    candidate_index: Opt[Number] = None


class ContentBlock(EventWithIds, frozen=True, kw_only=True, tag="content.block"):
    """A whole block at once (spec §4, §0.3).

    Attributes:
        block: the block.
        transient: shown now, never stored.
        candidate_index: which candidate it belongs to; absent is 0.
    """

    type: ClassVar[Literal["content.block"]] = "content.block"
    block: AgBlock
    transient: Opt[bool] = None
    candidate_index: Opt[Number] = None


class MessageMetadata(EventWithIds, frozen=True, kw_only=True, tag="message.metadata"):
    """Metadata to merge into a message (spec §4, §5).

    Attributes:
        message_id: the message; absent: the open one.
        metadata: the keys to merge.
    """

    type: ClassVar[Literal["message.metadata"]] = "message.metadata"
    metadata: AgMeta


class SourceEvent(EventWithIds, frozen=True, kw_only=True, tag="source"):
    """A grounding source (spec §4, §0.3).

    Attributes:
        source_id: the source's own id, which citations name.
        source: the source.
        chunk_index: its place among the grounding chunks, from 0.
        provider_metadata: values that go back to the provider.
    """

    type: ClassVar[Literal["source"]] = "source"
    source_id: str
    source: AgSourcePayload
    chunk_index: Opt[Number] = None
    provider_metadata: Opt[AgProviderMeta] = None


class ArtifactStart(EventWithId, frozen=True, kw_only=True, tag="artifact.start"):
    """An A2A artifact opens, beside the messages (spec §4, §5).

    Attributes:
        artifact_id: the artifact's own id.
        turn_id: the turn that makes it.
        thread_id: the conversation.
        name: its name.
        description: what it is.
        extensions: URIs of active A2A extensions.
    """

    type: ClassVar[Literal["artifact.start"]] = "artifact.start"
    artifact_id: str
    turn_id: str
    thread_id: str
    name: Opt[str] = None
    description: Opt[str] = None
    extensions: Opt[list[str]] = None


class ArtifactDelta(EventWithIds, frozen=True, kw_only=True, tag="artifact.delta"):
    """More of an artifact (spec §4, §5).

    Attributes:
        artifact_id: the artifact.
        part: the block to add.
        append: true joins it to the last part, false begins a new part.
    """

    type: ClassVar[Literal["artifact.delta"]] = "artifact.delta"
    artifact_id: str
    part: AgBlock
    append: bool


class ArtifactEnd(EventWithIds, FixedStruct, frozen=True, kw_only=True, tag="artifact.end"):
    """An artifact is sealed (spec §4, §5).

    Attributes:
        artifact_id: the artifact.
        last_chunk: always true, and always written.

    Raises:
        FieldError: ``lastChunk`` is false.
    """

    type: ClassVar[Literal["artifact.end"]] = "artifact.end"
    artifact_id: str
    if TYPE_CHECKING:
        last_chunk: Literal[True] = wire_default(True)
    else:
        # msgspec knows no literal booleans.
        last_chunk: bool = wire_default(True)

    def __post_init__(self) -> None:
        """Check that ``lastChunk`` is true."""
        if not self.last_chunk:
            raise FieldError("lastChunk", "must be true")


class DisplayRequired(EventWithIds, frozen=True, kw_only=True, tag="display.required"):
    """HTML that the provider's terms oblige the client to show (spec §4, §13.3).

    Attributes:
        provider: whose terms.
        html: the fragment; untrusted.
    """

    type: ClassVar[Literal["display.required"]] = "display.required"
    provider: str
    html: str
