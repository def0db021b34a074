"""The event union: fifty arms that narrow on ``type`` (spec §4 `AgEvent`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias, get_args

from .events_content import (
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    ContentBlock,
    DisplayRequired,
    MessageMetadata,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    SourceEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolDone,
    ToolStart,
)
from .events_interaction import (
    HitlAsk,
    MemoryWrite,
    StateDelta,
    StateSnapshot,
    UiActionResult,
    UiCall,
    UiDataModel,
    UiDisplayMode,
    UiResult,
    UiSurfaceEnd,
    UiSurfaceStart,
    UiSurfaceUpdate,
    UiWidgetResult,
)
from .events_turn import (
    AgentCapabilities,
    ErrorEvent,
    GuardrailResult,
    HandoffEvent,
    HostContext,
    MessageEnd,
    MessageRemove,
    MessagesSnapshot,
    MessageStart,
    PromptBlocked,
    StepDone,
    StepStart,
    SubagentDone,
    SubagentStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
)
from .loose import ExtEvent

__all__ = ["EVENT_TYPES", "AgEvent", "AgStreamEvent"]

AgEvent: TypeAlias = (
    TurnStart
    | TurnDone
    | TurnError
    | TurnAbort
    | ErrorEvent
    | MessageStart
    | MessageEnd
    | MessageRemove
    | StepStart
    | StepDone
    | PromptBlocked
    | AgentCapabilities
    | MessagesSnapshot
    | HostContext
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ReasoningOpaque
    | ReasoningOpaqueDelta
    | ToolStart
    | ToolArgsDelta
    | ToolArgsAssembled
    | ToolDone
    | ContentBlock
    | MessageMetadata
    | SourceEvent
    | ArtifactStart
    | ArtifactDelta
    | ArtifactEnd
    | DisplayRequired
    | SubagentStart
    | SubagentDone
    | HandoffEvent
    | HitlAsk
    | UiCall
    | UiResult
    | UiActionResult
    | UiWidgetResult
    | UiDisplayMode
    | UiSurfaceStart
    | UiSurfaceUpdate
    | UiSurfaceEnd
    | UiDataModel
    | StateSnapshot
    | StateDelta
    | MemoryWrite
    | GuardrailResult
)
"""An event of this revision, vendor extensions aside (spec §4): narrows on ``type`` and is exhaustive."""

AgStreamEvent: TypeAlias = AgEvent | ExtEvent
"""What a producer may emit: an event of this revision or a vendor extension (spec §4, §12)."""

EVENT_TYPES: Mapping[str, type[AgEvent]] = MappingProxyType({arm.type: arm for arm in get_args(AgEvent)})
"""Every event class by its wire ``type``, in the order of the specification."""
