"""Events of interaction and state: asks, surfaces, shared state, memory (spec §4, §6, §7).

Every class also has the envelope of `EventBase`: ``seq``, ``id``, ``turn_id``, ``message_id``, ``parent_id``, ``meta``;
their docstrings explain the fields of their own.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from ._base import UNSET, AgMeta, FieldError, JsonValue, ListOf, Number, Opt, UnsetType
from .capabilities import AgAuthConfig
from .event_base import EventWithIds
from .records import (
    AgAskKind,
    AgChoice,
    AgDisplayMode,
    AgGrantMode,
    AgMemoryScope,
    AgResumeBinding,
    AgUiError,
)

__all__ = [
    "AgCallableFrom",
    "AgContinuation",
    "HitlAsk",
    "MemoryWrite",
    "StateDelta",
    "StateSnapshot",
    "UiActionResult",
    "UiCall",
    "UiDataModel",
    "UiDisplayMode",
    "UiResult",
    "UiSurfaceEnd",
    "UiSurfaceStart",
    "UiSurfaceUpdate",
    "UiWidgetResult",
]

AgContinuation: TypeAlias = Literal["resume", "turn"]
"""How the source runtime takes an answer: within the run, or as a next turn; advisory (spec §7)."""

AgCallableFrom: TypeAlias = Literal["clientOnly", "remoteOnly", "clientOrRemote"]
"""Where an A2UI function may be called from (spec §4 `ui.call`)."""


class HitlAsk(EventWithIds, frozen=True, kw_only=True, tag="hitl.ask"):
    """The agent asks a person; live only, the pause is the outcome of `turn.done` (spec §4, §7).

    Attributes:
        ask_id: the ask's own id, unique in its thread for ever.
        kind: what it wants.
        message: what the user reads.
        schema: a JSON Schema, for ``form``.
        choices: the options, for ``choice``.
        auth_config: how to authenticate, for ``auth``.
        url: where to send the user, for ``url``.
        tool_call_id: the call that it gates.
        continuation: how the source runtime takes the answer; advisory.
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

    type: ClassVar[Literal["hitl.ask"]] = "hitl.ask"
    ask_id: str
    kind: AgAskKind
    message: Opt[str] = None
    schema: JsonValue | UnsetType = UNSET
    choices: Opt[ListOf[AgChoice]] = None
    auth_config: Opt[AgAuthConfig] = None
    url: Opt[str] = None
    tool_call_id: Opt[str] = None
    continuation: Opt[AgContinuation] = None
    reason: Opt[str] = None
    metadata: Opt[AgMeta] = None
    request_state: Opt[str] = None
    input_key: Opt[str] = None
    resume_binding: Opt[AgResumeBinding] = None
    ordinal: Opt[Number] = None
    token: Opt[str] = None
    expires_at: Opt[str] = None
    grant_modes: Opt[ListOf[AgGrantMode]] = None


class UiCall(EventWithIds, frozen=True, kw_only=True, tag="ui.call"):
    """The agent calls a function of a surface (spec §4, §6 pattern 5).

    Attributes:
        surface_id: the surface.
        call_id: the call's own id, which the reply names.
        method: the function's name.
        args: its arguments, opaque.
        want_response: whether a reply is wanted.
        callable_from: where the function may be called from.
    """

    type: ClassVar[Literal["ui.call"]] = "ui.call"
    surface_id: str
    call_id: str
    method: str
    args: JsonValue | UnsetType = UNSET
    want_response: Opt[bool] = None
    callable_from: Opt[AgCallableFrom] = None


class UiResult(EventWithIds, frozen=True, kw_only=True, tag="ui.result"):
    """The reply to `ui.call`, echoed to the renderer (spec §4, §6 pattern 5).

    Attributes:
        surface_id: the surface.
        call_id: the call that it answers.
        method: the function's name, copied from the call.
        value: what it returned, opaque.
        error: why it failed.
    """

    type: ClassVar[Literal["ui.result"]] = "ui.result"
    surface_id: str
    call_id: str
    method: Opt[str] = None
    value: JsonValue | UnsetType = UNSET
    error: Opt[AgUiError] = None


class UiActionResult(EventWithIds, frozen=True, kw_only=True, tag="ui.action-result"):
    """The agent's reply to an A2UI action of the client (spec §4, §6 pattern 5).

    Attributes:
        surface_id: the surface.
        action_id: the action that it answers.
        value: the reply, opaque.
        error: why it failed.
    """

    type: ClassVar[Literal["ui.action-result"]] = "ui.action-result"
    surface_id: str
    action_id: str
    value: JsonValue | UnsetType = UNSET
    error: Opt[AgUiError] = None


class UiWidgetResult(EventWithIds, frozen=True, kw_only=True, tag="ui.widget.result"):
    """The reply to a widget's ``callTool`` (spec §4, §6, OpenAI Apps SDK).

    Attributes:
        surface_id: the surface.
        call_id: the call that it answers.
        result: what the widget gets.
    """

    type: ClassVar[Literal["ui.widget.result"]] = "ui.widget.result"
    surface_id: str
    call_id: str
    result: str


class UiDisplayMode(EventWithIds, frozen=True, kw_only=True, tag="ui.display-mode"):
    """How a surface is to be shown, or is (spec §4, §6).

    Attributes:
        mode: the mode that was asked for.
        granted: the mode that holds; authoritative.
        surface_id: the surface.
        tool_call_id: the call that made it.
    """

    type: ClassVar[Literal["ui.display-mode"]] = "ui.display-mode"
    mode: AgDisplayMode
    granted: Opt[AgDisplayMode] = None
    surface_id: Opt[str] = None
    tool_call_id: Opt[str] = None


class UiSurfaceStart(EventWithIds, frozen=True, kw_only=True, tag="ui.surface.start"):
    """An A2UI surface is created (spec §4, §6 pattern 1b).

    Attributes:
        surface_id: the surface's own id.
        catalog_id: the component catalog, by reference.
        surface_properties: A2UI's properties, opaque.
        send_data_model: the client sends its data model along.
        components: A2UI's component list, opaque.
        data_model: A2UI's data model, opaque.
        tool_call_id: the call that made it.
    """

    type: ClassVar[Literal["ui.surface.start"]] = "ui.surface.start"
    surface_id: str
    catalog_id: str
    surface_properties: JsonValue | UnsetType = UNSET
    send_data_model: Opt[bool] = None
    components: JsonValue | UnsetType = UNSET
    data_model: JsonValue | UnsetType = UNSET
    tool_call_id: Opt[str] = None


class UiSurfaceUpdate(EventWithIds, frozen=True, kw_only=True, tag="ui.surface.update"):
    """Components of an A2UI surface change (spec §4, §6 pattern 1b).

    Attributes:
        surface_id: the surface.
        components: A2UI's component list, verbatim.
    """

    type: ClassVar[Literal["ui.surface.update"]] = "ui.surface.update"
    surface_id: str
    components: JsonValue


class UiSurfaceEnd(EventWithIds, frozen=True, kw_only=True, tag="ui.surface.end"):
    """An A2UI surface is deleted (spec §4, §6 pattern 1b).

    Attributes:
        surface_id: the surface.
    """

    type: ClassVar[Literal["ui.surface.end"]] = "ui.surface.end"
    surface_id: str


class UiDataModel(EventWithIds, frozen=True, kw_only=True, tag="ui.data-model"):
    """The data model of an A2UI surface changes (spec §4, §6 pattern 5).

    Attributes:
        surface_id: the surface.
        path: a JSON Pointer; absent is ``"/"``.
        value: what to put there, opaque; `UNSET` deletes.
    """

    type: ClassVar[Literal["ui.data-model"]] = "ui.data-model"
    surface_id: str
    path: Opt[str] = None
    value: JsonValue | UnsetType = UNSET


class StateSnapshot(EventWithIds, frozen=True, kw_only=True, tag="state.snapshot"):
    """The whole shared state; replaces it (spec §4, LangGraph ``values``).

    Attributes:
        snapshot: the state, opaque.
    """

    type: ClassVar[Literal["state.snapshot"]] = "state.snapshot"
    snapshot: JsonValue


class StateDelta(EventWithIds, frozen=True, kw_only=True, tag="state.delta"):
    """A change of the shared state (spec §4, §5).

    Attributes:
        patch: a list is an RFC 6902 JSON Patch, an object is LangGraph's ``{node: {key: value}}``.
    """

    type: ClassVar[Literal["state.delta"]] = "state.delta"
    patch: JsonValue


class MemoryWrite(EventWithIds, frozen=True, kw_only=True, tag="memory.write"):
    """A memory record is set or patched, beside the messages (spec §4, §5).

    Attributes:
        scope: whom it belongs to.
        key: which record; absent is the scope's default one.
        value: what to remember, opaque; excludes `patch`.
        patch: an RFC 6902 JSON Patch of the record's value, opaque; excludes `value`.
        reason: why.
        durable: it outlives the thread.

    Raises:
        FieldError: not exactly one of ``value`` and ``patch``; a ``null`` value counts as one.
    """

    type: ClassVar[Literal["memory.write"]] = "memory.write"
    scope: AgMemoryScope
    key: Opt[str] = None
    value: JsonValue | UnsetType = UNSET
    patch: JsonValue | UnsetType = UNSET
    reason: Opt[str] = None
    durable: Opt[bool] = None

    def __post_init__(self) -> None:
        """Check that exactly one of ``value`` and ``patch`` is there."""
        if (self.value is UNSET) is (self.patch is UNSET):
            if self.value is UNSET:
                raise FieldError("value", "one of value and patch is required")
            raise FieldError("patch", "value and patch exclude each other")
