# pyright: strict
"""Every union is exhausted by its arms: leave one out and the checkers say so."""

from __future__ import annotations

from typing import assert_never

from agjson.types import (
    AgA2uiError,
    AgA2uiFunctionResponse,
    AgA2uiSurfaceAction,
    AgBlock,
    AgCitation,
    AgentCapabilities,
    AgEvent,
    AgInput,
    AgOutcome,
    AgSource,
    AgSourcePayload,
    AgSurfaceInteraction,
    AgToolSource,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    AudioBlock,
    BareUrlSource,
    Base64Source,
    CodeBlock,
    CodeResultBlock,
    CompactionBlock,
    ContentBlock,
    DataBlock,
    DisplayRequired,
    DocumentBlock,
    DocumentSource,
    ErrorEvent,
    FileBlock,
    FileSource,
    GuardrailResult,
    HandoffEvent,
    HitlAsk,
    HostContext,
    ImageBlock,
    McpMessage,
    McpOpenLink,
    McpRequestDisplayMode,
    McpUpdateModelContext,
    MemoryWrite,
    MessageEnd,
    MessageMetadata,
    MessageRemove,
    MessagesSnapshot,
    MessageStart,
    OpenAiCallTool,
    OpenAiRequestDisplayMode,
    OpenAiSendFollowUpMessage,
    OpenAiSetWidgetState,
    PromptBlocked,
    ProviderRawBlock,
    ReasoningBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    ResourceBlock,
    ResourceLinkBlock,
    SearchResultBlock,
    SourceEvent,
    StateDelta,
    StateSnapshot,
    StepDone,
    StepStart,
    SubagentDone,
    SubagentStart,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    ToolStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
    UiActionResult,
    UiCall,
    UiDataModel,
    UiDisplayMode,
    UiResult,
    UiSurfaceEnd,
    UiSurfaceStart,
    UiSurfaceUpdate,
    UiWidgetResult,
    UrlSource,
)


def events_by_class(event: AgEvent) -> None:
    match event:
        case (
            TurnStart()
            | TurnDone()
            | TurnError()
            | TurnAbort()
            | ErrorEvent()
            | MessageStart()
            | MessageEnd()
            | MessageRemove()
            | StepStart()
            | StepDone()
            | PromptBlocked()
            | AgentCapabilities()
            | MessagesSnapshot()
            | HostContext()
            | TextStart()
            | TextDelta()
            | TextEnd()
            | ReasoningStart()
            | ReasoningDelta()
            | ReasoningEnd()
            | ReasoningOpaque()
            | ReasoningOpaqueDelta()
            | ToolStart()
            | ToolArgsDelta()
            | ToolArgsAssembled()
            | ToolDone()
            | ContentBlock()
            | MessageMetadata()
            | SourceEvent()
            | ArtifactStart()
            | ArtifactDelta()
            | ArtifactEnd()
            | DisplayRequired()
            | SubagentStart()
            | SubagentDone()
            | HandoffEvent()
            | HitlAsk()
            | UiCall()
            | UiResult()
            | UiActionResult()
            | UiWidgetResult()
            | UiDisplayMode()
            | UiSurfaceStart()
            | UiSurfaceUpdate()
            | UiSurfaceEnd()
            | UiDataModel()
            | StateSnapshot()
            | StateDelta()
            | MemoryWrite()
            | GuardrailResult()
        ):
            pass
        case _:
            assert_never(event)


def events_by_type(event: AgEvent) -> None:
    match event.type:
        case "turn.start":
            pass
        case "turn.done":
            pass
        case "turn.error":
            pass
        case "turn.abort":
            pass
        case "error":
            pass
        case "message.start":
            pass
        case "message.end":
            pass
        case "message.remove":
            pass
        case "step.start":
            pass
        case "step.done":
            pass
        case "prompt.blocked":
            pass
        case "agent.capabilities":
            pass
        case "messages.snapshot":
            pass
        case "host.context":
            pass
        case "text.start":
            pass
        case "text.delta":
            pass
        case "text.end":
            pass
        case "reasoning.start":
            pass
        case "reasoning.delta":
            pass
        case "reasoning.end":
            pass
        case "reasoning.opaque":
            pass
        case "reasoning.opaque.delta":
            pass
        case "tool.start":
            pass
        case "tool.args.delta":
            pass
        case "tool.args.assembled":
            pass
        case "tool.done":
            pass
        case "content.block":
            pass
        case "message.metadata":
            pass
        case "source":
            pass
        case "artifact.start":
            pass
        case "artifact.delta":
            pass
        case "artifact.end":
            pass
        case "display.required":
            pass
        case "subagent.start":
            pass
        case "subagent.done":
            pass
        case "handoff":
            pass
        case "hitl.ask":
            pass
        case "ui.call":
            pass
        case "ui.result":
            pass
        case "ui.action-result":
            pass
        case "ui.widget.result":
            pass
        case "ui.display-mode":
            pass
        case "ui.surface.start":
            pass
        case "ui.surface.update":
            pass
        case "ui.surface.end":
            pass
        case "ui.data-model":
            pass
        case "state.snapshot":
            pass
        case "state.delta":
            pass
        case "memory.write":
            pass
        case "guardrail.result":
            pass
        case _:
            assert_never(event.type)


def blocks_by_class(block: AgBlock) -> None:
    match block:
        case (
            TextBlock()
            | ImageBlock()
            | AudioBlock()
            | FileBlock()
            | DocumentBlock()
            | ResourceBlock()
            | ResourceLinkBlock()
            | CodeBlock()
            | CodeResultBlock()
            | ReasoningBlock()
            | CompactionBlock()
            | SearchResultBlock()
            | ToolCallBlock()
            | ToolResultBlock()
            | DataBlock()
            | ProviderRawBlock()
        ):
            pass
        case _:
            assert_never(block)


def blocks_by_type(block: AgBlock) -> None:
    match block.type:
        case "text":
            pass
        case "image":
            pass
        case "audio":
            pass
        case "file":
            pass
        case "document":
            pass
        case "resource":
            pass
        case "resource-link":
            pass
        case "code":
            pass
        case "code-result":
            pass
        case "reasoning":
            pass
        case "compaction":
            pass
        case "search-result":
            pass
        case "tool-call":
            pass
        case "tool-result":
            pass
        case "data":
            pass
        case "provider-raw":
            pass
        case _:
            assert_never(block.type)


def inputs(value: AgInput) -> int:
    if value.kind == "start":
        return len(value.messages)
    if value.kind == "resume":
        return len(value.answers or ()) + len(value.ui_actions or ())
    if value.kind == "tool-result":
        return len(value.results)
    assert_never(value)


def outcomes(outcome: AgOutcome) -> object:
    if outcome.type == "success":
        return outcome.result
    if outcome.type == "error":
        return outcome.message
    if outcome.type == "rejected":
        return outcome.reason
    if outcome.type == "aborted":
        return outcome.reason
    if outcome.type == "paused":
        return outcome.asks
    assert_never(outcome)


def citations(citation: AgCitation) -> object:
    if citation.kind == "char":
        return citation.start_char_index
    if citation.kind == "page":
        return citation.start_page
    if citation.kind == "block":
        return citation.start_block_index
    if citation.kind == "url":
        return citation.url
    if citation.kind == "offset":
        return citation.source_ids
    assert_never(citation)


def sources(source: AgSource) -> str:
    if source.type == "base64":
        return source.data
    if source.type == "url":
        return source.url
    if source.type == "file":
        return source.file_id
    assert_never(source)


def source_payloads(source: AgSourcePayload) -> object:
    match source:
        case Base64Source():
            return source.data
        case UrlSource():
            return source.url
        case FileSource():
            return source.file_id
        case BareUrlSource():
            return source.title
        case DocumentSource():
            return source.filename
        case _:
            assert_never(source)


def surface_interactions(interaction: AgSurfaceInteraction) -> object:
    match interaction:
        case AgA2uiSurfaceAction():
            return interaction.context
        case AgA2uiFunctionResponse():
            return interaction.value
        case AgA2uiError():
            return interaction.code
        case McpUpdateModelContext():
            return interaction.params.content
        case McpMessage():
            return interaction.params.content.text
        case McpRequestDisplayMode():
            return interaction.params.mode
        case McpOpenLink():
            return interaction.params.url
        case OpenAiSetWidgetState():
            return interaction.widget_state
        case OpenAiCallTool():
            return interaction.call_id
        case OpenAiSendFollowUpMessage():
            return interaction.prompt
        case OpenAiRequestDisplayMode():
            return interaction.request_id
        case _:
            assert_never(interaction)


def surfaces_by_discriminant(interaction: AgSurfaceInteraction) -> object:
    if interaction.surface == "a2ui":
        if interaction.a2ui_message == "action":
            return interaction.source_component_id
        if interaction.a2ui_message == "function-response":
            return interaction.call
        return interaction.path
    if interaction.surface == "mcp-app":
        if interaction.method == "ui/open-link":
            return interaction.params.url
        return interaction.params
    if interaction.method == "callTool":
        return interaction.args
    return interaction.tool_response_metadata


def tool_sources(source: AgToolSource) -> str:
    if source.type == "mcp":
        return source.server_name
    if source.type == "function":
        return ""
    if source.type == "frontend":
        return ""
    assert_never(source)
