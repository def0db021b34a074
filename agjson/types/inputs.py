"""What a client sends to an agent: start, resume, tool results (spec §3 `AgInput`)."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from ._base import (
    UNSET,
    AgMeta,
    AgProviderMeta,
    AgStruct,
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
from .capabilities import AgClientCapabilities
from .media import AgAnnotations, AgPendingInput
from .names import SPEC_VERSION, check_parent, check_version
from .records import AgMessage
from .surfaces import AgSurfaceInteraction

__all__ = [
    "AgAnswerStatus",
    "AgHitlAnswer",
    "AgInput",
    "AgPushAuth",
    "AgPushNotification",
    "AgReasoningConfig",
    "AgReasoningEffort",
    "AgResponseFormat",
    "AgRunConfig",
    "AgScheduling",
    "AgToolChoice",
    "AgToolDef",
    "AgToolResult",
    "AgToolSource",
    "FrontendToolSource",
    "FunctionToolSource",
    "McpToolSource",
    "NamedToolChoice",
    "ResumeInput",
    "StartInput",
    "ToolResultInput",
]

AgReasoningEffort: TypeAlias = Literal["minimal", "low", "medium", "high"]
"""How hard the model should think (spec §3)."""

AgAnswerStatus: TypeAlias = Literal["resolved", "declined", "cancelled"]
"""What the user did with an ask: MCP's accept, decline, cancel (spec §3, §7)."""

AgScheduling: TypeAlias = Literal["when_idle", "preempt", "silent"]
"""When the model should take up a late result (spec §3, §11 item 3)."""


class AgReasoningConfig(AgStruct, frozen=True, kw_only=True):
    """How much the model should reason (spec §3).

    Attributes:
        mode: on or off.
        effort: OpenAI's word for how hard.
        budget_tokens: Anthropic's and Gemini's limit in tokens.
    """

    mode: Literal["enabled", "disabled"]
    effort: Opt[AgReasoningEffort] = None
    budget_tokens: Opt[Number] = None


class McpToolSource(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="mcp"):
    """The tool belongs to an MCP server (spec §3 `AgToolDef.source`).

    Attributes:
        server_name: which server.
    """

    type: ClassVar[Literal["mcp"]] = "mcp"
    server_name: str


class FunctionToolSource(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="function"):
    """The tool is a function of the agent's host (spec §3 `AgToolDef.source`)."""

    type: ClassVar[Literal["function"]] = "function"


class FrontendToolSource(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="frontend"):
    """The tool is run by the client (spec §3 `AgToolDef.source`)."""

    type: ClassVar[Literal["frontend"]] = "frontend"


AgToolSource: TypeAlias = McpToolSource | FunctionToolSource | FrontendToolSource
"""Who runs a tool (spec §3): narrows on ``type``."""


class AgToolDef(AgStruct, frozen=True, kw_only=True):
    """A tool on offer (spec §3).

    Attributes:
        name: the tool's name.
        description: what the model reads about it.
        input_schema: the JSON Schema of its arguments.
        strict: the provider enforces the schema.
        provider_executed: the provider runs it; the client must not.
        ui_visibility: who may call it; without ``model`` it never reaches a model.
        source: who runs it.
        meta: host-only metadata.
    """

    name: str
    description: Opt[str] = None
    input_schema: JsonValue
    strict: Opt[bool] = None
    provider_executed: Opt[bool] = None
    ui_visibility: Opt[ListOf[AgUiVisibility]] = None
    source: Opt[AgToolSource] = None
    meta: Opt[AgMeta] = msgspec.field(name="_meta", default=None)


class NamedToolChoice(FixedStruct, frozen=True, kw_only=True):
    """The model must call this tool (spec §3 `AgRunConfig.toolChoice`).

    Attributes:
        type: ``"tool"``, filled in.
        name: the tool's name.
    """

    type: Literal["tool"] = wire_default("tool")
    name: str


AgToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedToolChoice
"""Whether the model may, must or must not call a tool (spec §3)."""


class AgResponseFormat(FixedStruct, frozen=True, kw_only=True):
    """The model must answer in JSON of a schema (spec §3 `AgRunConfig.responseFormat`).

    Attributes:
        type: ``"json_schema"``, filled in.
        name: a name of the schema.
        schema: the JSON Schema.
        strict: the provider enforces it.
    """

    type: Literal["json_schema"] = wire_default("json_schema")
    name: Opt[str] = None
    schema: JsonValue
    strict: Opt[bool] = None


class AgPushAuth(AgStruct, frozen=True, kw_only=True):
    """How to authenticate a push notification (spec §3, §13.5).

    Attributes:
        scheme: the HTTP scheme, such as ``Bearer``.
        credentials: what goes with it; secret.
    """

    scheme: str
    credentials: Opt[str] = None


class AgPushNotification(AgStruct, frozen=True, kw_only=True):
    """Where to call back (spec §3 `AgRunConfig.pushNotification`, §13.5).

    Attributes:
        url: the address; untrusted.
        token: a value that the receiver checks; secret.
        auth: how to authenticate.
    """

    url: str
    token: Opt[str] = None
    auth: Opt[AgPushAuth] = None


class AgRunConfig(AgStruct, frozen=True, kw_only=True):
    """How to run a turn (spec §3).

    Attributes:
        model: the model's name.
        system: the system prompt, as text or blocks.
        tools: tools on offer.
        tool_choice: whether a tool must be called.
        response_format: the form of the answer.
        reasoning: how much to reason.
        max_tokens: the limit of the answer in tokens.
        temperature: the sampling temperature, in the provider's range.
        top_p: the nucleus sampling mass, 0 to 1.
        stop_sequences: texts that end the answer.
        context: blocks that the model gets beside the messages.
        push_notification: where to call back.
    """

    model: Opt[str] = None
    system: Opt[str | ListOf[AgBlock]] = None
    tools: Opt[ListOf[AgToolDef]] = None
    tool_choice: Opt[AgToolChoice] = None
    response_format: Opt[AgResponseFormat] = None
    reasoning: Opt[AgReasoningConfig] = None
    max_tokens: Opt[Number] = None
    temperature: Opt[Number] = None
    top_p: Opt[Number] = None
    stop_sequences: Opt[list[str]] = None
    context: Opt[ListOf[AgBlock]] = None
    push_notification: Opt[AgPushNotification] = None


class AgHitlAnswer(AgStruct, frozen=True, kw_only=True):
    """A person's answer to an ask (spec §3, §7).

    Attributes:
        ask_id: the ask that it answers.
        status: what the user did.
        reply: the reply in the form that the ask's kind wants, opaque.
        reason: why, in words that reach the model.
        ordinal: the position among asks of one node, from 0.
        token: the ask's token, echoed.
        request_state: the ask's continuation, echoed byte-identical.
        grant_mode_id: the chosen grant mode (draft.2).

    Raises:
        FieldError: a ``grantModeId`` on an answer that is not resolved.
    """

    ask_id: str
    status: AgAnswerStatus
    reply: JsonValue | UnsetType = UNSET
    reason: Opt[str] = None
    ordinal: Opt[Number] = None
    token: Opt[str] = None
    request_state: Opt[str] = None
    grant_mode_id: Opt[str] = None

    def __post_init__(self) -> None:
        """Check that only a resolved answer grants anything."""
        if self.grant_mode_id is not None and self.status != "resolved":
            raise FieldError("grantModeId", f"not allowed when status is {self.status}")


class AgToolResult(AgStruct, frozen=True, kw_only=True):
    """The result of a tool that the client ran (spec §3 `tool-result`, §2.1, §2.2).

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
        is_error: MCP's flag, derived from `outcome`.
        will_continue: more results of this call follow.
        scheduling: when the model should take it up.
        annotations: MCP audience, priority and age.
        meta: host-only metadata.
    """

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
    will_continue: Opt[bool] = None
    scheduling: Opt[AgScheduling] = None
    annotations: Opt[AgAnnotations] = None
    meta: Opt[AgMeta] = msgspec.field(name="_meta", default=None)


class _Input(FixedStruct, frozen=True, kw_only=True, tag_field="kind"):
    protocol: Literal["agjson"] = wire_default("agjson")
    version: str = wire_default(SPEC_VERSION)
    thread_id: str
    turn_id: str
    parent_turn_id: Opt[str] = None
    capabilities: Opt[AgClientCapabilities] = None
    state: JsonValue | UnsetType = UNSET
    metadata: Opt[AgMeta] = None

    def __post_init__(self) -> None:
        check_version(self.version)
        check_parent(self.turn_id, self.parent_turn_id)


class StartInput(_Input, frozen=True, kw_only=True, tag="start"):
    """A user speaks: new messages and how to run the turn (spec §3).

    Attributes:
        protocol: ``"agjson"``, filled in.
        version: a semver of major 1, filled in with this revision.
        thread_id: the conversation.
        turn_id: the turn to open.
        parent_turn_id: the enclosing turn, for a subagent.
        capabilities: what the client can do.
        state: shared state, opaque.
        metadata: host metadata, LangGraph handles among it.
        messages: the new messages.
        run: how to run the turn.

    Raises:
        FieldError: another major version, or a turn that is its own parent.
    """

    kind: ClassVar[Literal["start"]] = "start"
    messages: ListOf[AgMessage]
    run: Opt[AgRunConfig] = None


class ResumeInput(_Input, frozen=True, kw_only=True, tag="resume"):
    """People and surfaces answer a paused turn (spec §3, §3.1).

    Attributes:
        protocol: ``"agjson"``, filled in.
        version: a semver of major 1, filled in with this revision.
        thread_id: the conversation.
        turn_id: the turn to open.
        parent_turn_id: the enclosing turn, for a subagent.
        capabilities: what the client can do.
        state: shared state, opaque.
        metadata: host metadata, LangGraph handles among it.
        answers: answers to asks.
        ui_actions: messages from surfaces.

    Raises:
        FieldError: another major version, or a turn that is its own parent.
    """

    kind: ClassVar[Literal["resume"]] = "resume"
    answers: Opt[ListOf[AgHitlAnswer]] = None
    ui_actions: Opt[ListOf[AgSurfaceInteraction]] = None


class ToolResultInput(_Input, frozen=True, kw_only=True, tag="tool-result"):
    """Results of tools that the client ran (spec §3).

    Attributes:
        protocol: ``"agjson"``, filled in.
        version: a semver of major 1, filled in with this revision.
        thread_id: the conversation.
        turn_id: the turn to open.
        parent_turn_id: the enclosing turn, for a subagent.
        capabilities: what the client can do.
        state: shared state, opaque.
        metadata: host metadata, LangGraph handles among it.
        results: the results.

    Raises:
        FieldError: another major version, or a turn that is its own parent.
    """

    kind: ClassVar[Literal["tool-result"]] = "tool-result"
    results: ListOf[AgToolResult]


AgInput: TypeAlias = StartInput | ResumeInput | ToolResultInput
"""What a client sends (spec §3): narrows on ``kind``."""
