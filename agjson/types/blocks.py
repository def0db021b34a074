"""The sixteen content blocks, one union in both directions: input, output, tool results (spec §2 `AgBlock`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias, get_args

import msgspec

from ._base import UNSET, AgMeta, AgProviderMeta, AgStruct, JsonValue, ListOf, Number, Opt, UnsetType
from .citations import AgCitation
from .media import AgAnnotations, AgEmbeddedResource, AgOpaque, AgPendingInput, AgSource

__all__ = [
    "BLOCK_TYPES",
    "AgBlock",
    "AgCodeOutcome",
    "AgToolOutcome",
    "AgUiVisibility",
    "AudioBlock",
    "CodeBlock",
    "CodeResultBlock",
    "CompactionBlock",
    "DataBlock",
    "DocumentBlock",
    "FileBlock",
    "ImageBlock",
    "ProviderRawBlock",
    "ReasoningBlock",
    "ResourceBlock",
    "ResourceLinkBlock",
    "SearchResultBlock",
    "TextBlock",
    "ToolCallBlock",
    "ToolResultBlock",
]

AgToolOutcome: TypeAlias = Literal["ok", "error", "denied", "input_required"]
"""How a tool call ended (spec §2 `tool-result`): ``denied`` is an outcome of its own, not an error."""

AgCodeOutcome: TypeAlias = Literal["ok", "failed", "deadline_exceeded"]
"""How executed code ended (spec §2 `code-result`)."""

AgUiVisibility: TypeAlias = Literal["model", "app"]
"""Who may call a tool (spec §2, MCP Apps access control): the model, or only an app surface."""


class _Block(AgStruct, frozen=True, kw_only=True, tag_field="type"):
    annotations: Opt[AgAnnotations] = None
    meta: Opt[AgMeta] = msgspec.field(name="_meta", default=None)


class TextBlock(_Block, frozen=True, kw_only=True, tag="text"):
    """Plain text (spec §2).

    Attributes:
        text: the text.
        citations: which sources support it.
        provider_metadata: values that go back to the provider.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["text"]] = "text"
    text: str
    citations: Opt[ListOf[AgCitation]] = None
    provider_metadata: Opt[AgProviderMeta] = None


class ImageBlock(_Block, frozen=True, kw_only=True, tag="image"):
    """An image (spec §2).

    Attributes:
        source: where its bytes are.
        provider_metadata: values that go back to the provider.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["image"]] = "image"
    source: AgSource
    provider_metadata: Opt[AgProviderMeta] = None


class AudioBlock(_Block, frozen=True, kw_only=True, tag="audio"):
    """Sound (spec §2).

    Attributes:
        source: where its bytes are.
        provider_metadata: values that go back to the provider.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["audio"]] = "audio"
    source: AgSource
    provider_metadata: Opt[AgProviderMeta] = None


class FileBlock(_Block, frozen=True, kw_only=True, tag="file"):
    """A file of any kind; video is a file with a ``video/*`` media type (spec §2).

    Attributes:
        source: where its bytes are.
        filename: its name.
        provider_metadata: values that go back to the provider.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["file"]] = "file"
    source: AgSource
    filename: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None


class DocumentBlock(_Block, frozen=True, kw_only=True, tag="document"):
    """A document that the model reads (spec §2).

    Attributes:
        source: where its bytes are.
        title: its title.
        provider_metadata: values that go back to the provider.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["document"]] = "document"
    source: AgSource
    title: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None


class ResourceBlock(_Block, frozen=True, kw_only=True, tag="resource"):
    """An MCP resource carried inline; MCP Apps surfaces ride here (spec §2, §6 pattern 1a).

    Attributes:
        resource: the resource.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["resource"]] = "resource"
    resource: AgEmbeddedResource


class ResourceLinkBlock(_Block, frozen=True, kw_only=True, tag="resource-link"):
    """An MCP resource by its address alone (spec §2).

    Attributes:
        uri: the resource's address.
        mime_type: its media type.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["resource-link"]] = "resource-link"
    uri: str
    mime_type: Opt[str] = None


class CodeBlock(_Block, frozen=True, kw_only=True, tag="code"):
    """Code that the provider runs (spec §2).

    Attributes:
        language: a free string; Gemini knows ``PYTHON`` alone.
        code: the source text.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["code"]] = "code"
    language: str
    code: str


class CodeResultBlock(_Block, frozen=True, kw_only=True, tag="code-result"):
    """What executed code printed (spec §2).

    Attributes:
        outcome: how it ended.
        output: standard output and error as one text.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["code-result"]] = "code-result"
    outcome: AgCodeOutcome
    output: str


class ReasoningBlock(_Block, frozen=True, kw_only=True, tag="reasoning"):
    """The model's reasoning: visible text, an opaque part, or both (spec §2). Replayed to the provider verbatim.

    Attributes:
        text: the visible text or summary.
        opaque: a signature, ciphertext or redacted blob, echoed byte-identical.
        provider: who produced it.
        provider_metadata: values that go back to the provider.
        provider_details: a flat provider-keyed dict, echoed verbatim; a convenience alias of `provider_metadata`.
        item_id: the OpenAI Responses reasoning item (``rs_...``).
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    text: Opt[str] = None
    opaque: Opt[AgOpaque] = None
    provider: Opt[str] = None
    provider_metadata: Opt[AgProviderMeta] = None
    provider_details: JsonValue | UnsetType = UNSET
    item_id: Opt[str] = None


class CompactionBlock(_Block, frozen=True, kw_only=True, tag="compaction"):
    """A provider's summary of earlier turns, sent again to the same provider on later ones (spec §2).

    Attributes:
        text: the visible summary.
        opaque: the provider's blob, echoed byte-identical.
        provider: who produced it.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["compaction"]] = "compaction"
    text: Opt[str] = None
    opaque: Opt[AgOpaque] = None
    provider: Opt[str] = None


class SearchResultBlock(_Block, frozen=True, kw_only=True, tag="search-result"):
    """One result of a provider's search (spec §2).

    Attributes:
        url: the page's address.
        title: its title.
        opaque: the provider's blob for this result, echoed byte-identical.
        page_age: the age of the page as the provider words it.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["search-result"]] = "search-result"
    url: Opt[str] = None
    title: Opt[str] = None
    opaque: Opt[AgOpaque] = None
    page_age: Opt[str] = None


class ToolCallBlock(_Block, frozen=True, kw_only=True, tag="tool-call"):
    """A call of a tool (spec §2).

    Attributes:
        tool_call_id: the call's own id, which its result names.
        name: the tool's name.
        input: the arguments as one JSON value.
        server_name: the MCP server that offers the tool.
        provider_executed: the provider ran it; the client must not.
        signature: Gemini's thought signature, echoed byte-identical.
        provider: who produced the call.
        title: a title for people.
        tool_metadata: a bag of the tool's own (Vercel).
        item_id: the OpenAI Responses item (``fc_...``), apart from `tool_call_id`.
        provider_call_index: the position among parallel calls without ids (Gemini).
        ui_visibility: who may call the tool.
        provider_metadata: values that go back to the provider.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["tool-call"]] = "tool-call"
    tool_call_id: str
    name: str
    input: JsonValue
    server_name: Opt[str] = None
    provider_executed: Opt[bool] = None
    signature: Opt[str] = None
    provider: Opt[str] = None
    title: Opt[str] = None
    tool_metadata: Opt[AgMeta] = None
    item_id: Opt[str] = None
    provider_call_index: Opt[Number] = None
    ui_visibility: Opt[ListOf[AgUiVisibility]] = None
    provider_metadata: Opt[AgProviderMeta] = None


class ToolResultBlock(_Block, frozen=True, kw_only=True, tag="tool-result"):
    """The result of a tool call over four channels with one consumer each (spec §2, §2.1, §2.2).

    Attributes:
        tool_call_id: the call that it answers.
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
        preliminary: the result is partial and will be replaced.
        is_error: MCP's flag, derived from `outcome`.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["tool-result"]] = "tool-result"
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
    preliminary: Opt[bool] = None
    is_error: Opt[bool] = None


class DataBlock(_Block, frozen=True, kw_only=True, tag="data"):
    """A typed payload addressed by name, replaced in place by its id (spec §2, §5, §12).

    Attributes:
        name: which payload this is.
        id: the id under which a later block replaces this one; the only block kind that has one.
        data: the payload.
        transient: never stored.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["data"]] = "data"
    name: str
    id: Opt[str] = None
    data: JsonValue
    transient: Opt[bool] = None


class ProviderRawBlock(_Block, frozen=True, kw_only=True, tag="provider-raw"):
    """A native part that no other kind can hold: the lossless last resort (spec §2, §12).

    Attributes:
        vendor: whose part it is.
        raw: the part as it was.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

    type: ClassVar[Literal["provider-raw"]] = "provider-raw"
    vendor: str
    raw: JsonValue


AgBlock: TypeAlias = (
    TextBlock
    | ImageBlock
    | AudioBlock
    | FileBlock
    | DocumentBlock
    | ResourceBlock
    | ResourceLinkBlock
    | CodeBlock
    | CodeResultBlock
    | ReasoningBlock
    | CompactionBlock
    | SearchResultBlock
    | ToolCallBlock
    | ToolResultBlock
    | DataBlock
    | ProviderRawBlock
)
"""A content block (spec §2): narrows on ``type``."""

BLOCK_TYPES: Mapping[str, type[AgBlock]] = MappingProxyType({arm.type: arm for arm in get_args(AgBlock)})
"""Every block class by its wire ``type``, in the order of the specification."""
