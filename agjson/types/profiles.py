"""Which profile an event needs: CORE, EXTENDED or ADVANCED (spec §9).

The specification lists event types, block kinds and some members. This is how it is read where it leaves room:

* a member that no profile lists (``providerMetadata``, ``candidateIndex``, ``errorText``) is allowed in any;
* the ``finishReason`` superset is every reason outside `CORE_FINISH_REASONS`: a model that talks and calls tools can
  always end with one of those, two of which say no more than that it ended;
* ``structuredContent`` is ADVANCED, as the CORE paragraph says, though the ADVANCED paragraph names two channels only;
* a paused outcome belongs to the ``hitl.*`` family, and a snapshot needs what the events behind it would have needed;
* an empty list carries nothing and needs nothing; ``ext.*`` needs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ._base import UNSET
from .blocks import AgBlock, TextBlock, ToolResultBlock
from .capabilities import AgProfile
from .events import AgStreamEvent
from .events_content import ContentBlock, TextEnd, ToolDone
from .events_turn import GuardrailResult, MessageEnd, MessagesSnapshot, PromptBlocked, StepDone, TurnDone, TurnError
from .records import AgMessage, AgOutcome, AgTurnRecord, PausedOutcome

__all__ = [
    "CORE_FINISH_REASONS",
    "PROFILES",
    "PROFILE_BLOCKS",
    "PROFILE_EVENTS",
    "profile_needs",
    "profiles_above",
    "required_profile",
]

PROFILES: tuple[AgProfile, ...] = ("CORE", "EXTENDED", "ADVANCED")
"""The profiles, each of which includes the ones before it (spec §9)."""

PROFILE_EVENTS: Mapping[AgProfile, frozenset[str]] = MappingProxyType(
    {
        "CORE": frozenset(
            {
                *("turn.start", "turn.done", "turn.error", "turn.abort", "error"),
                *("message.start", "message.end", "message.remove", "messages.snapshot"),
                *("text.start", "text.delta", "text.end", "content.block"),
                *("tool.start", "tool.args.delta", "tool.args.assembled", "tool.done"),
            }
        ),
        "EXTENDED": frozenset(
            {
                *("reasoning.start", "reasoning.delta", "reasoning.end", "reasoning.opaque", "reasoning.opaque.delta"),
                *("step.start", "step.done", "subagent.start", "subagent.done", "source", "handoff", "hitl.ask"),
                *("memory.write", "guardrail.result"),
            }
        ),
        "ADVANCED": frozenset(
            {
                *("state.snapshot", "state.delta", "artifact.start", "artifact.delta", "artifact.end"),
                *("ui.call", "ui.result", "ui.action-result", "ui.widget.result", "ui.display-mode"),
                *("ui.surface.start", "ui.surface.update", "ui.surface.end", "ui.data-model"),
                *("agent.capabilities", "host.context", "display.required", "message.metadata", "prompt.blocked"),
            }
        ),
    }
)
"""The event types that each profile adds (spec §9)."""

PROFILE_BLOCKS: Mapping[AgProfile, frozenset[str]] = MappingProxyType(
    {
        "CORE": frozenset({"text", "image", "tool-call", "tool-result"}),
        "EXTENDED": frozenset(
            {
                *("reasoning", "compaction", "search-result", "code", "code-result", "document", "file", "audio"),
                *("data", "provider-raw", "resource", "resource-link"),
            }
        ),
        "ADVANCED": frozenset(),
    }
)
"""The block kinds that each profile adds (spec §9)."""

CORE_FINISH_REASONS = frozenset({"stop", "token_limit", "tool_call", "other", "unknown"})
"""The finish reasons that CORE has; the others are the superset of EXTENDED (spec §9)."""

_EVENT_PROFILE: dict[str, AgProfile] = {type: profile for profile, types in PROFILE_EVENTS.items() for type in types}
_BLOCK_PROFILE: dict[str, AgProfile] = {type: profile for profile, types in PROFILE_BLOCKS.items() for type in types}


def profiles_above(profile: AgProfile) -> frozenset[AgProfile]:
    """The profiles that need more than one that a stream keeps to (spec §9).

    Args:
        profile: the profile of the stream.

    Raises:
        ValueError: it is none of the three.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile {profile!r} is none of {', '.join(PROFILES)}")
    return frozenset(PROFILES[PROFILES.index(profile) + 1 :])


def required_profile(event: AgStreamEvent) -> AgProfile:
    """The least profile that covers an event and everything in it (spec §9).

    Args:
        event: an event; a vendor extension needs only CORE.
    """
    needed = {profile for profile, _ in profile_needs(event)}
    return "ADVANCED" if "ADVANCED" in needed else "EXTENDED" if "EXTENDED" in needed else "CORE"


def profile_needs(event: AgStreamEvent) -> Iterator[tuple[AgProfile, str]]:
    """Everything in an event that needs more than CORE (spec §9).

    Args:
        event: an event.

    Yields:
        The profile, EXTENDED or ADVANCED, and the JSON path of what needs it (``"$.type"``, ``"$.usage"``).
    """
    profile = _EVENT_PROFILE.get(event.type, "CORE")
    if profile != "CORE":
        yield profile, "$.type"
    if isinstance(event, (TurnDone, TurnError, MessageEnd, StepDone)) and event.usage is not None:
        yield "EXTENDED", "$.usage"
    if isinstance(event, (TurnDone, PromptBlocked, GuardrailResult)) and event.safety:
        yield "EXTENDED", "$.safety"
    if isinstance(event, TurnDone):
        yield from _ending(event.outcome, event.finish_reason, "$")
    elif isinstance(event, TextEnd):
        if event.citations:
            yield "EXTENDED", "$.citations"
    elif isinstance(event, ContentBlock):
        yield from _block(event.block, "$.block")
    elif isinstance(event, ToolDone):
        yield from _tool_result(event, "$")
    elif isinstance(event, MessagesSnapshot):
        yield from _snapshot(event)


def _ending(outcome: AgOutcome | None, finish_reason: str | None, path: str) -> Iterator[tuple[AgProfile, str]]:
    if isinstance(outcome, PausedOutcome):
        yield "EXTENDED", f"{path}.outcome"
    if finish_reason is not None and finish_reason not in CORE_FINISH_REASONS:
        yield "EXTENDED", f"{path}.finishReason"


def _block(block: AgBlock, path: str) -> Iterator[tuple[AgProfile, str]]:
    profile = _BLOCK_PROFILE.get(block.type, "CORE")
    if profile != "CORE":
        yield profile, f"{path}.type"
    elif isinstance(block, TextBlock):
        if block.citations:
            yield "EXTENDED", f"{path}.citations"
    elif isinstance(block, ToolResultBlock):
        yield from _tool_result(block, path)


def _tool_result(result: ToolResultBlock | ToolDone, path: str) -> Iterator[tuple[AgProfile, str]]:
    if result.structured_content is not UNSET:
        yield "ADVANCED", f"{path}.structuredContent"
    if result.ui_data is not UNSET:
        yield "ADVANCED", f"{path}.uiData"
    if result.side_data is not UNSET:
        yield "ADVANCED", f"{path}.sideData"
    for index, block in enumerate(result.content):
        yield from _block(block, f"{path}.content[{index}]")


def _snapshot(event: MessagesSnapshot) -> Iterator[tuple[AgProfile, str]]:
    for index, message in enumerate(event.messages):
        yield from _message(message, f"$.messages[{index}]")
    for index, turn in enumerate(event.turns or ()):
        yield from _turn(turn, f"$.turns[{index}]")
    if event.artifacts:
        yield "ADVANCED", "$.artifacts"
    if event.memory:
        yield "EXTENDED", "$.memory"


def _message(message: AgMessage, path: str) -> Iterator[tuple[AgProfile, str]]:
    if message.usage is not None:
        yield "EXTENDED", f"{path}.usage"
    for index, block in enumerate(message.content):
        yield from _block(block, f"{path}.content[{index}]")


def _turn(turn: AgTurnRecord, path: str) -> Iterator[tuple[AgProfile, str]]:
    yield from _ending(turn.outcome, turn.finish_reason, path)
    for name, value in (
        ("parentTurnId", turn.parent_turn_id),
        ("usage", turn.usage),
        ("safety", turn.safety),
        ("handoffs", turn.handoffs),
        ("sources", turn.sources),
        ("sourceIds", turn.source_ids),
        ("asks", turn.asks),
        ("guardrails", turn.guardrails),
    ):
        if value:
            yield "EXTENDED", f"{path}.{name}"
    for name, record in (
        ("promptBlocked", turn.prompt_blocked),
        ("displayRequired", turn.display_required),
        ("capabilities", turn.capabilities),
    ):
        if record:
            yield "ADVANCED", f"{path}.{name}"
