"""Shared records and the folded conversation: usage, asks, outcomes, messages, turns (spec §2, §3.2, §4, §7)."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from ._base import UNSET, AgMeta, AgProviderMeta, AgStruct, JsonValue, ListOf, Number, Opt, UnsetType
from .blocks import AgBlock
from .capabilities import AgAuthConfig, AgCapabilities
from .media import AgSourcePayload
from .names import check_parent

__all__ = [
    "AbortedOutcome",
    "AgArtifact",
    "AgAskKind",
    "AgBlockedReason",
    "AgChoice",
    "AgDisplayMode",
    "AgDisplayRequired",
    "AgFinishReason",
    "AgGrantMode",
    "AgGuardrail",
    "AgGuardrailAction",
    "AgGuardrailTarget",
    "AgHandoff",
    "AgHandoffKind",
    "AgMemoryRecord",
    "AgMemoryScope",
    "AgMessage",
    "AgNoticeSource",
    "AgOutcome",
    "AgPausedAsk",
    "AgPromptBlocked",
    "AgReduceResult",
    "AgResumeBinding",
    "AgRole",
    "AgSafety",
    "AgSourceRecord",
    "AgTrigger",
    "AgTriggerKind",
    "AgTurnRecord",
    "AgUiError",
    "AgUsage",
    "ErrorOutcome",
    "PausedOutcome",
    "RejectedOutcome",
    "SuccessOutcome",
]

AgRole: TypeAlias = Literal["user", "assistant", "tool", "system", "notice"]
"""Who speaks (spec §3); ``notice`` is for people, stored, never sent to a model (draft.2)."""

AgNoticeSource: TypeAlias = Literal["host", "adapter", "framework"]
"""Who wrote a message of role ``notice`` (draft.2)."""

AgFinishReason: TypeAlias = Literal[
    "stop",
    "token_limit",
    "context_window_exceeded",
    "tool_call",
    "paused",
    "pause_turn",
    "refusal",
    "safety_blocked",
    "malformed_tool_call",
    "unexpected_tool_call",
    "rejected",
    "other",
    "unknown",
]
"""Why the model stopped (spec §4): ``paused`` waits for a person, ``pause_turn`` is a provider's checkpoint."""

AgAskKind: TypeAlias = Literal["approval", "form", "text", "choice", "auth", "url"]
"""What an ask wants (spec §7)."""

AgResumeBinding: TypeAlias = Literal["id", "positional"]
"""How LangGraph is resumed: a map by id, or a list in order (spec §3.1, §7)."""

AgMemoryScope: TypeAlias = Literal["agent", "user", "skill", "thread"]
"""Whom a memory record belongs to (spec §2): only ``thread`` records are bound to the thread."""

AgTriggerKind: TypeAlias = Literal["user", "resume", "schedule", "webhook", "email", "agent", "cron", "unknown"]
"""What set a turn off (spec §4)."""

AgBlockedReason: TypeAlias = Literal["safety", "blocklist", "prohibited", "other"]
"""Why a provider refused the prompt (spec §4)."""

AgGuardrailTarget: TypeAlias = Literal["input", "output", "tool"]
"""What a guardrail looked at (spec §4)."""

AgGuardrailAction: TypeAlias = Literal["block", "retry", "rewrite", "override", "terminate"]
"""What a guardrail did (spec §4)."""

AgHandoffKind: TypeAlias = Literal["transfer", "escalate"]
"""What kind of handoff it is (spec §4)."""

AgDisplayMode: TypeAlias = Literal["inline", "pip", "fullscreen"]
"""How a surface is shown (spec §4); there is no modal."""


class AgUsage(AgStruct, frozen=True, kw_only=True):
    """Tokens and cost as the provider reported them, verbatim (spec §4, INV-DELTA).

    Attributes:
        input_tokens: tokens read.
        output_tokens: tokens written.
        cache_read_tokens: tokens read from a cache.
        cache_write_tokens: tokens written to a cache.
        reasoning_tokens: tokens of reasoning.
        tool_use_input_tokens: tokens that tool use added to the input.
        total_tokens: the provider's own total.
        cost_usd: the cost in US dollars where the provider reports one; never computed.
        cumulative: true: running totals; false or absent: of this step alone.
        by_model: the same per model, by its name.
        server_tool_requests: how many requests server-side tools made.
    """

    input_tokens: Opt[Number] = None
    output_tokens: Opt[Number] = None
    cache_read_tokens: Opt[Number] = None
    cache_write_tokens: Opt[Number] = None
    reasoning_tokens: Opt[Number] = None
    tool_use_input_tokens: Opt[Number] = None
    total_tokens: Opt[Number] = None
    cost_usd: Opt[Number] = None
    cumulative: Opt[bool] = None
    by_model: Opt[dict[str, AgUsage]] = None
    server_tool_requests: Opt[Number] = None


class AgSafety(AgStruct, frozen=True, kw_only=True):
    """One safety rating (spec §4).

    Attributes:
        category: what was rated, in the provider's words.
        score: a number, in the provider's scale.
        probability: a word such as ``HIGH``.
        blocked: whether it blocked the content.
    """

    category: str
    score: Opt[Number] = None
    probability: Opt[str] = None
    blocked: Opt[bool] = None


class AgTrigger(AgStruct, frozen=True, kw_only=True):
    """What set a turn off (spec §4).

    Attributes:
        kind: the kind of cause.
        ref: an opaque correlation id, cron expression or webhook path.
    """

    kind: AgTriggerKind
    ref: Opt[str] = None


class AgUiError(AgStruct, frozen=True, kw_only=True):
    """Why a surface call failed (spec §4 `ui.result`, `ui.action-result`).

    Attributes:
        code: the error's code, ``VALIDATION_FAILED`` among others.
        message: the error in words.
        path: a JSON Pointer to the failed binding.
    """

    code: str
    message: str
    path: Opt[str] = None


class AgChoice(AgStruct, frozen=True, kw_only=True):
    """One option of an ask of kind ``choice`` (spec §4, §7).

    Attributes:
        id: what the answer names.
        label: what the user reads.
        value: what the choice stands for, opaque.
    """

    id: str
    label: str
    value: JsonValue | UnsetType = UNSET


class AgGrantMode(AgStruct, frozen=True, kw_only=True):
    """A scope in which an approval may be granted, such as "once" or "for this session" (spec §7, draft.2).

    Attributes:
        id: what the answer's ``grantModeId`` names.
        label: what the user reads.
        description: more words for the user.
    """

    id: str
    label: Opt[str] = None
    description: Opt[str] = None


class AgPausedAsk(AgStruct, frozen=True, kw_only=True):
    """An ask that a turn is parked on, as its outcome and record keep it (spec §4, §7).

    Attributes:
        ask_id: the ask's own id.
        kind: what it wants.
        message: what the user reads.
        tool_call_id: the call that it gates.
        schema: a JSON Schema, for ``form``.
        choices: the options, for ``choice``.
        auth_config: how to authenticate, for ``auth``.
        url: where to send the user, for ``url``.
        reason: why, in words that also reach the model.
        metadata: a free bag; holds LangGraph's interrupt value.
        request_state: the server's opaque continuation, echoed byte-identical.
        input_key: the one MCP request key that this ask resolves.
        resume_binding: how LangGraph is resumed.
        ordinal: the position among asks of one node, from 0.
        token: the server's proof against forged answers.
        expires_at: an ISO 8601 moment after which no answer counts.
        grant_modes: the scopes to choose from (draft.2).
    """

    ask_id: str
    kind: AgAskKind
    message: Opt[str] = None
    tool_call_id: Opt[str] = None
    schema: JsonValue | UnsetType = UNSET
    choices: Opt[ListOf[AgChoice]] = None
    auth_config: Opt[AgAuthConfig] = None
    url: Opt[str] = None
    reason: Opt[str] = None
    metadata: Opt[AgMeta] = None
    request_state: Opt[str] = None
    input_key: Opt[str] = None
    resume_binding: Opt[AgResumeBinding] = None
    ordinal: Opt[Number] = None
    token: Opt[str] = None
    expires_at: Opt[str] = None
    grant_modes: Opt[ListOf[AgGrantMode]] = None


class SuccessOutcome(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="success"):
    """The turn ended well (spec §4 `AgOutcome`).

    Attributes:
        result: what it returned, opaque.
    """

    type: ClassVar[Literal["success"]] = "success"
    result: JsonValue | UnsetType = UNSET


class ErrorOutcome(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """The turn failed (spec §4 `AgOutcome`).

    Attributes:
        message: the error in words.
        code: the error's code.
    """

    type: ClassVar[Literal["error"]] = "error"
    message: str
    code: Opt[str] = None


class RejectedOutcome(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="rejected"):
    """The agent refused the task as a whole (spec §4 `AgOutcome`, §7 A2A ``rejected``).

    Attributes:
        reason: why.
    """

    type: ClassVar[Literal["rejected"]] = "rejected"
    reason: Opt[str] = None


class AbortedOutcome(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="aborted"):
    """The turn was cut off; what the fold of `turn.abort` records (spec §4 `AgOutcome`, §5).

    Attributes:
        reason: why.
    """

    type: ClassVar[Literal["aborted"]] = "aborted"
    reason: Opt[str] = None


class PausedOutcome(AgStruct, frozen=True, kw_only=True, tag_field="type", tag="paused"):
    """The turn waits for people (spec §4 `AgOutcome`, §7).

    Attributes:
        asks: what it waits for.
        result: a partial value from before the pause, opaque.
    """

    type: ClassVar[Literal["paused"]] = "paused"
    asks: ListOf[AgPausedAsk]
    result: JsonValue | UnsetType = UNSET


AgOutcome: TypeAlias = SuccessOutcome | ErrorOutcome | RejectedOutcome | AbortedOutcome | PausedOutcome
"""How a turn ended (spec §4): narrows on ``type``."""


class AgMessage(AgStruct, frozen=True, kw_only=True):
    """A message of the conversation, the same in both directions (spec §3.2).

    Attributes:
        id: the message's own id.
        role: who speaks.
        content: its blocks in order.
        turn_id: the turn that owns it.
        thread_id: the conversation.
        candidate_index: which of several candidates it is; absent is 0.
        reference_turn_ids: input only: turns that it refers to.
        message_metadata: the app's bag, opaque (Vercel usage, ``a2uiClientDataModel``).
        extensions: URIs of active A2A extensions.
        metadata: host metadata.
        agent_id: the agent that spoke.
        agent_name: its name for people.
        agent_role: its part in the pipeline.
        model: the model that wrote it.
        usage: its tokens, verbatim from `message.end`.
        notice_source: who wrote a ``notice`` (draft.2).
    """

    id: str
    role: AgRole
    content: ListOf[AgBlock]
    turn_id: Opt[str] = None
    thread_id: Opt[str] = None
    candidate_index: Opt[Number] = None
    reference_turn_ids: Opt[list[str]] = None
    message_metadata: JsonValue | UnsetType = UNSET
    extensions: Opt[list[str]] = None
    metadata: Opt[AgMeta] = None
    agent_id: Opt[str] = None
    agent_name: Opt[str] = None
    agent_role: Opt[str] = None
    model: Opt[str] = None
    usage: Opt[AgUsage] = None
    notice_source: Opt[AgNoticeSource] = None


class AgArtifact(AgStruct, frozen=True, kw_only=True):
    """A streamed A2A artifact, beside the messages (spec §2, §5).

    Attributes:
        artifact_id: the artifact's own id.
        turn_id: the turn that made it.
        thread_id: the conversation.
        name: its name.
        description: what it is.
        parts: its blocks in order.
        extensions: URIs of active A2A extensions.
        meta: host-only metadata.
    """

    artifact_id: str
    turn_id: str
    thread_id: str
    name: Opt[str] = None
    description: Opt[str] = None
    parts: ListOf[AgBlock]
    extensions: Opt[list[str]] = None
    meta: Opt[AgMeta] = msgspec.field(name="_meta", default=None)


class AgMemoryRecord(AgStruct, frozen=True, kw_only=True):
    """A folded memory write, one per scope and key (spec §2, §5).

    Attributes:
        scope: whom it belongs to.
        key: which record; absent is the scope's default one.
        value: what is remembered, opaque.
        reason: why it was written.
        durable: it outlives the thread.
        turn_id: the turn that wrote it.
        thread_id: the conversation.
    """

    scope: AgMemoryScope
    key: Opt[str] = None
    value: JsonValue
    reason: Opt[str] = None
    durable: Opt[bool] = None
    turn_id: Opt[str] = None
    thread_id: Opt[str] = None


class AgHandoff(AgStruct, frozen=True, kw_only=True):
    """One agent handing over to another (spec §2 `AgTurnRecord.handoffs`).

    Attributes:
        kind: what kind of handoff.
        from_agent_id: who hands over.
        to_agent_id: who takes over.
        to_agent_name: that agent's name for people.
    """

    kind: Opt[AgHandoffKind] = None
    from_agent_id: Opt[str] = None
    to_agent_id: Opt[str] = None
    to_agent_name: Opt[str] = None


class AgSourceRecord(AgStruct, frozen=True, kw_only=True):
    """A grounding source of a turn (spec §2 `AgTurnRecord.sources`).

    Attributes:
        source_id: the source's own id, which citations name.
        source: the source.
        chunk_index: its place among the grounding chunks, from 0.
        provider_metadata: values that go back to the provider.
    """

    source_id: str
    source: AgSourcePayload
    chunk_index: Opt[Number] = None
    provider_metadata: Opt[AgProviderMeta] = None


class AgPromptBlocked(AgStruct, frozen=True, kw_only=True):
    """That and why a provider refused the prompt (spec §2 `AgTurnRecord.promptBlocked`).

    Attributes:
        reason: why.
        safety: the ratings.
    """

    reason: AgBlockedReason
    safety: Opt[ListOf[AgSafety]] = None


class AgDisplayRequired(AgStruct, frozen=True, kw_only=True):
    """HTML that the provider's terms oblige the client to show (spec §2 `AgTurnRecord.displayRequired`, §13.3).

    Attributes:
        provider: whose terms.
        html: the fragment; untrusted.
    """

    provider: str
    html: str


class AgGuardrail(AgStruct, frozen=True, kw_only=True):
    """The verdict of one guardrail (spec §2 `AgTurnRecord.guardrails`).

    Attributes:
        target: what it looked at.
        passed: whether it let it pass.
        action: what it did otherwise.
        reason: why.
        guardrail_name: which guardrail.
        safety: the ratings behind the verdict.
    """

    target: AgGuardrailTarget
    passed: bool
    action: Opt[AgGuardrailAction] = None
    reason: Opt[str] = None
    guardrail_name: Opt[str] = None
    safety: Opt[ListOf[AgSafety]] = None


class AgTurnRecord(AgStruct, frozen=True, kw_only=True):
    """What the fold keeps of a turn beside its messages (spec §2, §5).

    Attributes:
        turn_id: the turn's own id.
        parent_turn_id: the enclosing turn; present on subagents alone.
        thread_id: the conversation.
        outcome: how it ended; absent while it runs.
        finish_reason: why the model stopped.
        usage: its tokens, verbatim.
        safety: safety ratings.
        handoffs: handoffs in order.
        source_ids: the ids of `sources`.
        sources: grounding sources in order.
        prompt_blocked: that the prompt was refused.
        asks: what a paused turn waits for.
        task_state: a verbatim A2A task state.
        display_required: what must be shown.
        trigger: what set it off.
        guardrails: guardrail verdicts in order.
        capabilities: what the agent can do.
    """

    turn_id: str
    parent_turn_id: Opt[str] = None
    thread_id: str
    outcome: Opt[AgOutcome] = None
    finish_reason: Opt[AgFinishReason] = None
    usage: Opt[AgUsage] = None
    safety: Opt[ListOf[AgSafety]] = None
    handoffs: Opt[ListOf[AgHandoff]] = None
    source_ids: Opt[list[str]] = None
    sources: Opt[ListOf[AgSourceRecord]] = None
    prompt_blocked: Opt[AgPromptBlocked] = None
    asks: Opt[ListOf[AgPausedAsk]] = None
    task_state: Opt[str] = None
    display_required: Opt[ListOf[AgDisplayRequired]] = None
    trigger: Opt[AgTrigger] = None
    guardrails: Opt[ListOf[AgGuardrail]] = None
    capabilities: Opt[AgCapabilities] = None

    def __post_init__(self) -> None:
        check_parent(self.turn_id, self.parent_turn_id)


class AgReduceResult(AgStruct, frozen=True, kw_only=True):
    """The folded conversation (spec §2, §5).

    Attributes:
        messages: the messages in order.
        artifacts: the artifacts in order of their first start.
        memory: the memory records.
        turns: the turn records in order of their opening.
        state: the shared state; `UNSET` when none was ever set, None when it is ``null``.
    """

    messages: ListOf[AgMessage]
    artifacts: ListOf[AgArtifact]
    memory: ListOf[AgMemoryRecord]
    turns: ListOf[AgTurnRecord]
    state: JsonValue | UnsetType = UNSET
