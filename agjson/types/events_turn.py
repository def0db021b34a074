"""Events of the lifecycle: turns, messages, steps, subagents, resync, negotiation (spec §4).

Every class also has the envelope of `EventBase`: ``seq``, ``id``, ``turn_id``, ``message_id``, ``parent_id``, ``meta``;
their docstrings explain the fields of their own, and an envelope field where it has a special reading.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from ._base import UNSET, FieldError, JsonValue, ListOf, Number, Opt, UnsetType
from .capabilities import AgCapabilities
from .event_base import EventBase, EventWithId, EventWithIds, EventWithTurn
from .names import check_parent
from .records import (
    AgArtifact,
    AgBlockedReason,
    AgFinishReason,
    AgGuardrailAction,
    AgGuardrailTarget,
    AgHandoffKind,
    AgMemoryRecord,
    AgMessage,
    AgNoticeSource,
    AgOutcome,
    AgRole,
    AgSafety,
    AgTrigger,
    AgTurnRecord,
    AgUsage,
)

__all__ = [
    "AgentCapabilities",
    "ErrorEvent",
    "GuardrailResult",
    "HandoffEvent",
    "HostContext",
    "MessageEnd",
    "MessageRemove",
    "MessageStart",
    "MessagesSnapshot",
    "PromptBlocked",
    "StepDone",
    "StepStart",
    "SubagentDone",
    "SubagentStart",
    "TurnAbort",
    "TurnDone",
    "TurnError",
    "TurnStart",
]


class TurnStart(EventWithId, frozen=True, kw_only=True, tag="turn.start"):
    """A top-level turn opens (spec §4, INV-TURN).

    Attributes:
        thread_id: the conversation.
        turn_id: the turn's own id.
        trigger: what set it off.
    """

    type: ClassVar[Literal["turn.start"]] = "turn.start"
    thread_id: str
    turn_id: str
    trigger: Opt[AgTrigger] = None


class TurnDone(EventWithId, frozen=True, kw_only=True, tag="turn.done"):
    """A turn ends by itself, or pauses for people (spec §4, §7).

    Attributes:
        turn_id: the turn.
        outcome: how it ended.
        finish_reason: why the model stopped.
        usage: its tokens, verbatim.
        safety: safety ratings.
        message_id: the message that `message_metadata` goes to; absent: the open one.
        message_metadata: the app's bag for that message, opaque.
        task_state: a verbatim A2A task state.
    """

    type: ClassVar[Literal["turn.done"]] = "turn.done"
    turn_id: str
    outcome: AgOutcome
    finish_reason: AgFinishReason
    usage: Opt[AgUsage] = None
    safety: Opt[ListOf[AgSafety]] = None
    message_metadata: JsonValue | UnsetType = UNSET
    task_state: Opt[str] = None


class TurnError(EventWithIds, frozen=True, kw_only=True, tag="turn.error"):
    """A turn fails; terminal (spec §4).

    Attributes:
        message: the error in words.
        code: the error's code.
        retriable: whether trying again may help.
        usage: what the turn had cost by then, verbatim.
    """

    type: ClassVar[Literal["turn.error"]] = "turn.error"
    message: str
    code: Opt[str] = None
    retriable: Opt[bool] = None
    usage: Opt[AgUsage] = None


class TurnAbort(EventWithIds, frozen=True, kw_only=True, tag="turn.abort"):
    """A turn is cut off; terminal (spec §4, INV-FLUSH).

    Attributes:
        reason: why, such as ``stream-truncated``.
    """

    type: ClassVar[Literal["turn.abort"]] = "turn.abort"
    reason: Opt[str] = None


class ErrorEvent(EventWithIds, frozen=True, kw_only=True, tag="error"):
    """Something went wrong, but the turn goes on; live only (spec §4, §0.3).

    Attributes:
        message: the error in words.
        code: the error's code.
        retriable: whether trying again may help.
    """

    type: ClassVar[Literal["error"]] = "error"
    message: str
    code: Opt[str] = None
    retriable: Opt[bool] = None


class MessageStart(EventBase, frozen=True, kw_only=True, tag="message.start"):
    """A message opens; blocks of its turn and candidate go to it until the next one (spec §4, §5 partitioning).

    Attributes:
        id: the message's own id.
        role: who speaks.
        turn_id: the turn that owns it.
        thread_id: the conversation.
        step_id: the step that it belongs to, for live clients.
        extensions: URIs of active A2A extensions.
        candidate_index: which of several candidates it is; absent is 0.
        agent_id: the agent that speaks.
        agent_name: its name for people.
        agent_role: its part in the pipeline.
        model: the model that writes it.
        notice_source: who wrote a ``notice`` (draft.2).
    """

    type: ClassVar[Literal["message.start"]] = "message.start"
    id: str
    role: AgRole
    turn_id: str
    thread_id: str
    step_id: Opt[str] = None
    extensions: Opt[list[str]] = None
    candidate_index: Opt[Number] = None
    agent_id: Opt[str] = None
    agent_name: Opt[str] = None
    agent_role: Opt[str] = None
    model: Opt[str] = None
    notice_source: Opt[AgNoticeSource] = None


class MessageEnd(EventWithTurn, frozen=True, kw_only=True, tag="message.end"):
    """A message is sealed (spec §4, INV-MSG).

    Attributes:
        id: the message.
        usage: its tokens, verbatim.
    """

    type: ClassVar[Literal["message.end"]] = "message.end"
    id: str
    usage: Opt[AgUsage] = None


class MessageRemove(EventWithTurn, frozen=True, kw_only=True, tag="message.remove"):
    """A message, or every message of a turn, is deleted (spec §4, §5).

    Attributes:
        id: the message, or ``"*"`` for all of the turn.
        turn_id: the turn; required beside ``"*"``.

    Raises:
        FieldError: ``"*"`` without a turn.
    """

    type: ClassVar[Literal["message.remove"]] = "message.remove"
    id: str

    def __post_init__(self) -> None:
        """Check the rule between ``id`` and ``turnId``."""
        if self.id == "*" and self.turn_id is None:
            raise FieldError("turnId", 'required when id is "*"')


class StepStart(EventWithTurn, frozen=True, kw_only=True, tag="step.start"):
    """One iteration of the agent's loop begins; live only (spec §4, §5).

    Attributes:
        id: the step's own id.
        step_name: its name.
    """

    type: ClassVar[Literal["step.start"]] = "step.start"
    id: str
    step_name: Opt[str] = None


class StepDone(EventWithTurn, frozen=True, kw_only=True, tag="step.done"):
    """One iteration of the agent's loop ends; live only (spec §4, §5).

    Attributes:
        id: the step.
        step_name: its name.
        usage: its tokens, verbatim.
    """

    type: ClassVar[Literal["step.done"]] = "step.done"
    id: str
    step_name: Opt[str] = None
    usage: Opt[AgUsage] = None


class PromptBlocked(EventWithIds, frozen=True, kw_only=True, tag="prompt.blocked"):
    """The provider refused the prompt (spec §4, §5).

    Attributes:
        reason: why.
        safety: the ratings.
    """

    type: ClassVar[Literal["prompt.blocked"]] = "prompt.blocked"
    reason: AgBlockedReason
    safety: Opt[ListOf[AgSafety]] = None


class AgentCapabilities(EventWithIds, frozen=True, kw_only=True, tag="agent.capabilities"):
    """The agent tells what it can do, on the first turn (spec §4, §6).

    Attributes:
        capabilities: what it can do.
    """

    type: ClassVar[Literal["agent.capabilities"]] = "agent.capabilities"
    capabilities: AgCapabilities


class MessagesSnapshot(EventWithIds, frozen=True, kw_only=True, tag="messages.snapshot"):
    """The whole conversation, to join or to mend a gap; replaces each part that it carries (spec §4, §5).

    Attributes:
        messages: every message in order.
        turns: every turn record; absent leaves them as they are.
        artifacts: every artifact; absent leaves them as they are.
        memory: the thread's memory records; those of other scopes stay.
    """

    type: ClassVar[Literal["messages.snapshot"]] = "messages.snapshot"
    messages: ListOf[AgMessage]
    turns: Opt[ListOf[AgTurnRecord]] = None
    artifacts: Opt[ListOf[AgArtifact]] = None
    memory: Opt[ListOf[AgMemoryRecord]] = None


class HostContext(EventWithIds, frozen=True, kw_only=True, tag="host.context"):
    """What the host tells a surface about itself; live only (spec §4, §6).

    Attributes:
        theme: colours and fonts, opaque.
        capabilities: what the host can render, opaque; not the agent's capabilities.
        container: the size of the surface's frame, opaque.
    """

    type: ClassVar[Literal["host.context"]] = "host.context"
    theme: JsonValue | UnsetType = UNSET
    capabilities: JsonValue | UnsetType = UNSET
    container: JsonValue | UnsetType = UNSET


class _NestedTurn(EventWithId, frozen=True, kw_only=True):
    turn_id: str
    parent_turn_id: str

    def __post_init__(self) -> None:
        check_parent(self.turn_id, self.parent_turn_id)


class SubagentStart(_NestedTurn, frozen=True, kw_only=True, tag="subagent.start"):
    """A nested turn opens (spec §4, §1.1).

    Attributes:
        turn_id: the nested turn's own id.
        parent_turn_id: the enclosing turn.
        agent_id: the agent that runs it.
        agent_name: its name for people.

    Raises:
        FieldError: a turn is named as its own parent (spec §0.5).
    """

    type: ClassVar[Literal["subagent.start"]] = "subagent.start"
    agent_id: Opt[str] = None
    agent_name: Opt[str] = None


class SubagentDone(_NestedTurn, frozen=True, kw_only=True, tag="subagent.done"):
    """A nested turn is closed (spec §4).

    Attributes:
        turn_id: the nested turn.
        parent_turn_id: the enclosing turn.

    Raises:
        FieldError: a turn is named as its own parent (spec §0.5).
    """

    type: ClassVar[Literal["subagent.done"]] = "subagent.done"


class HandoffEvent(EventWithIds, frozen=True, kw_only=True, tag="handoff"):
    """One agent hands over to another (spec §4, §0.3).

    Attributes:
        kind: what kind of handoff.
        from_agent_id: who hands over.
        to_agent_id: who takes over.
        to_agent_name: that agent's name for people.
    """

    type: ClassVar[Literal["handoff"]] = "handoff"
    kind: Opt[AgHandoffKind] = None
    from_agent_id: Opt[str] = None
    to_agent_id: Opt[str] = None
    to_agent_name: Opt[str] = None


class GuardrailResult(EventWithIds, frozen=True, kw_only=True, tag="guardrail.result"):
    """The verdict of a guardrail (spec §4, §5).

    Attributes:
        target: what it looked at.
        passed: whether it let it pass.
        action: what it did otherwise.
        reason: why.
        guardrail_name: which guardrail.
        safety: the ratings behind the verdict.
    """

    type: ClassVar[Literal["guardrail.result"]] = "guardrail.result"
    target: AgGuardrailTarget
    passed: bool
    action: Opt[AgGuardrailAction] = None
    reason: Opt[str] = None
    guardrail_name: Opt[str] = None
    safety: Opt[ListOf[AgSafety]] = None
