"""What a surface sends back: A2UI, MCP Apps and OpenAI Apps messages, each with its own names (spec §3, §6).

Two discriminants tell the arms apart: ``surface``, then ``a2uiMessage`` or ``method``. No msgspec union can hold that,
so the decoder meets `SurfaceInteraction` as the type of the field and its hook picks the arm from `SURFACE_ARMS`.
Callers never pass a discriminant: each is filled in, always written, and required on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from ._base import UNSET, AgMeta, AgStruct, FieldError, FixedStruct, JsonValue, ListOf, Opt, UnsetType, wire_default
from .blocks import AgBlock
from .records import AgDisplayMode

__all__ = [
    "SURFACE_ARMS",
    "SURFACE_DISCRIMINANTS",
    "AgA2uiError",
    "AgA2uiFunctionResponse",
    "AgA2uiSurfaceAction",
    "AgMcpAppViewMessage",
    "AgOpenAiWidgetAction",
    "AgSurfaceInteraction",
    "McpDisplayModeParams",
    "McpMessage",
    "McpMessageParams",
    "McpModelContextParams",
    "McpOpenLink",
    "McpOpenLinkParams",
    "McpRequestDisplayMode",
    "McpTextContent",
    "McpUpdateModelContext",
    "OpenAiCallTool",
    "OpenAiRequestDisplayMode",
    "OpenAiSendFollowUpMessage",
    "OpenAiSetWidgetState",
    "SurfaceInteraction",
]


class SurfaceInteraction:
    """What every arm of `AgSurfaceInteraction` is an instance of (spec §3); never instantiated itself."""

    __slots__ = ()


class _Envelope(FixedStruct, frozen=True, kw_only=True):
    tool_call_id: Opt[str] = None
    turn_id: Opt[str] = None
    thread_id: Opt[str] = None
    meta: Opt[AgMeta] = msgspec.field(name="_meta", default=None)


class AgA2uiSurfaceAction(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A user's action on an A2UI surface (spec §3, A2UI v1.0 ``action``).

    Attributes:
        surface: ``"a2ui"``.
        a2ui_message: ``"action"``.
        surface_id: the surface.
        name: the action's name.
        source_component_id: the component that it came from.
        timestamp: when, ISO 8601.
        context: the resolved data bindings.
        want_response: whether a `ui.action-result` is wanted.
        action_id: the action's own id, which the reply names; required with `want_response`.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.

    Raises:
        FieldError: a response is wanted without an ``actionId``.
    """

    surface: Literal["a2ui"] = wire_default("a2ui")
    a2ui_message: Literal["action"] = wire_default("action")
    surface_id: str
    name: str
    source_component_id: str
    timestamp: str
    context: dict[str, JsonValue]
    want_response: Opt[bool] = None
    action_id: Opt[str] = None

    def __post_init__(self) -> None:
        """Check that a wanted response can be addressed."""
        if self.want_response and self.action_id is None:
            raise FieldError("actionId", "required when wantResponse is true")


class AgA2uiFunctionResponse(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """The surface's reply to a `ui.call` (spec §3, A2UI v1.0 ``functionResponse``).

    Attributes:
        surface: ``"a2ui"``.
        a2ui_message: ``"function-response"``.
        surface_id: the surface; AgJSON's own, stripped on the way back to A2UI.
        function_call_id: the call that it answers.
        call: the function's name.
        value: what it returned, opaque.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["a2ui"] = wire_default("a2ui")
    a2ui_message: Literal["function-response"] = wire_default("function-response")
    surface_id: str
    function_call_id: str
    call: str
    value: JsonValue


class AgA2uiError(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """An error of a surface or of one function call (spec §3, A2UI v1.0 ``error``).

    Attributes:
        surface: ``"a2ui"``.
        a2ui_message: ``"error"``.
        surface_id: the surface that failed; excludes `function_call_id`.
        function_call_id: the call that failed; excludes `surface_id`.
        code: the error's code.
        message: the error in words.
        path: a JSON Pointer to the failed binding; required with ``VALIDATION_FAILED``.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.

    Raises:
        FieldError: not exactly one of ``surfaceId`` and ``functionCallId``, or a missing ``path``.
    """

    surface: Literal["a2ui"] = wire_default("a2ui")
    a2ui_message: Literal["error"] = wire_default("error")
    surface_id: Opt[str] = None
    function_call_id: Opt[str] = None
    code: str
    message: str
    path: Opt[str] = None

    def __post_init__(self) -> None:
        """Check what the error is about, and that a failed validation says where."""
        if (self.surface_id is None) is (self.function_call_id is None):
            if self.surface_id is None:
                raise FieldError("surfaceId", "one of surfaceId and functionCallId is required")
            raise FieldError("functionCallId", "surfaceId and functionCallId exclude each other")
        if self.code == "VALIDATION_FAILED" and self.path is None:
            raise FieldError("path", "required when code is VALIDATION_FAILED")


class McpModelContextParams(AgStruct, frozen=True, kw_only=True):
    """The params of ``ui/update-model-context`` (spec §3).

    Attributes:
        content: blocks for the model.
        structured_content: a structured form, opaque.
    """

    content: Opt[ListOf[AgBlock]] = None
    structured_content: JsonValue | UnsetType = UNSET


class McpTextContent(FixedStruct, frozen=True, kw_only=True):
    """The one text of a ``ui/message`` (spec §3).

    Attributes:
        type: ``"text"``.
        text: the words.
    """

    type: Literal["text"] = wire_default("text")
    text: str


class McpMessageParams(FixedStruct, frozen=True, kw_only=True):
    """The params of ``ui/message`` (spec §3).

    Attributes:
        role: ``"user"``.
        content: one text, not a list.
    """

    role: Literal["user"] = wire_default("user")
    content: McpTextContent


class McpDisplayModeParams(AgStruct, frozen=True, kw_only=True):
    """The params of ``ui/request-display-mode`` (spec §3).

    Attributes:
        mode: the wanted mode.
    """

    mode: AgDisplayMode


class McpOpenLinkParams(AgStruct, frozen=True, kw_only=True):
    """The params of ``ui/open-link`` (spec §3, §13.4).

    Attributes:
        url: the link; untrusted.
    """

    url: str


class McpUpdateModelContext(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A view updates what the model will know on the next user turn; the last one wins (spec §3, §6, MCP Apps).

    Attributes:
        surface: ``"mcp-app"``.
        method: ``"ui/update-model-context"``.
        surface_id: the surface.
        params: the new context.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["mcp-app"] = wire_default("mcp-app")
    method: Literal["ui/update-model-context"] = wire_default("ui/update-model-context")
    surface_id: str
    params: McpModelContextParams


class McpMessage(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A view speaks for the user (spec §3, §6, MCP Apps).

    Attributes:
        surface: ``"mcp-app"``.
        method: ``"ui/message"``.
        surface_id: the surface.
        params: the message.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["mcp-app"] = wire_default("mcp-app")
    method: Literal["ui/message"] = wire_default("ui/message")
    surface_id: str
    params: McpMessageParams


class McpRequestDisplayMode(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A view wants to be shown in another way; answered by `ui.display-mode` (spec §3, §6, MCP Apps).

    Attributes:
        surface: ``"mcp-app"``.
        method: ``"ui/request-display-mode"``.
        surface_id: the surface.
        params: the wanted mode.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["mcp-app"] = wire_default("mcp-app")
    method: Literal["ui/request-display-mode"] = wire_default("ui/request-display-mode")
    surface_id: str
    params: McpDisplayModeParams


class McpOpenLink(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A view wants a link opened (spec §3, MCP Apps).

    Attributes:
        surface: ``"mcp-app"``.
        method: ``"ui/open-link"``.
        surface_id: the surface.
        params: the link.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["mcp-app"] = wire_default("mcp-app")
    method: Literal["ui/open-link"] = wire_default("ui/open-link")
    surface_id: str
    params: McpOpenLinkParams


class OpenAiSetWidgetState(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A widget stores its state (spec §3, §6, OpenAI Apps SDK).

    Attributes:
        surface: ``"openai-app"``.
        method: ``"setWidgetState"``.
        surface_id: the surface.
        widget_state: the state, opaque.
        tool_response_metadata: an echo of ``window.openai.toolResponseMetadata``, opaque.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["openai-app"] = wire_default("openai-app")
    method: Literal["setWidgetState"] = wire_default("setWidgetState")
    surface_id: str
    widget_state: JsonValue
    tool_response_metadata: JsonValue | UnsetType = UNSET


class OpenAiCallTool(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A widget calls a tool; answered by `ui.widget.result`, and no tool call of the model's (spec §3, §6).

    Attributes:
        surface: ``"openai-app"``.
        method: ``"callTool"``.
        surface_id: the surface.
        name: the tool's name.
        args: its arguments, opaque.
        call_id: the call's own id, which the reply names.
        tool_response_metadata: an echo of ``window.openai.toolResponseMetadata``, opaque.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["openai-app"] = wire_default("openai-app")
    method: Literal["callTool"] = wire_default("callTool")
    surface_id: str
    name: str
    args: JsonValue
    call_id: str
    tool_response_metadata: JsonValue | UnsetType = UNSET


class OpenAiSendFollowUpMessage(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A widget speaks for the user (spec §3, §6, OpenAI Apps SDK).

    Attributes:
        surface: ``"openai-app"``.
        method: ``"sendFollowUpMessage"``.
        surface_id: the surface.
        prompt: the words.
        scroll_to_bottom: whether the client scrolls down.
        tool_response_metadata: an echo of ``window.openai.toolResponseMetadata``, opaque.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["openai-app"] = wire_default("openai-app")
    method: Literal["sendFollowUpMessage"] = wire_default("sendFollowUpMessage")
    surface_id: str
    prompt: str
    scroll_to_bottom: Opt[bool] = None
    tool_response_metadata: JsonValue | UnsetType = UNSET


class OpenAiRequestDisplayMode(_Envelope, SurfaceInteraction, frozen=True, kw_only=True):
    """A widget wants to be shown in another way; answered by `ui.display-mode` (spec §3, §6, OpenAI Apps SDK).

    Attributes:
        surface: ``"openai-app"``.
        method: ``"requestDisplayMode"``.
        surface_id: the surface.
        mode: the wanted mode.
        request_id: the request's own id.
        tool_response_metadata: an echo of ``window.openai.toolResponseMetadata``, opaque.
        tool_call_id: the call that made the surface.
        turn_id: the owning turn.
        thread_id: the conversation.
        meta: host-only metadata.
    """

    surface: Literal["openai-app"] = wire_default("openai-app")
    method: Literal["requestDisplayMode"] = wire_default("requestDisplayMode")
    surface_id: str
    mode: AgDisplayMode
    request_id: str
    tool_response_metadata: JsonValue | UnsetType = UNSET


AgMcpAppViewMessage: TypeAlias = McpUpdateModelContext | McpMessage | McpRequestDisplayMode | McpOpenLink
"""What an MCP Apps view sends to its host (spec §3): narrows on ``method``."""

AgOpenAiWidgetAction: TypeAlias = (
    OpenAiSetWidgetState | OpenAiCallTool | OpenAiSendFollowUpMessage | OpenAiRequestDisplayMode
)
"""What an OpenAI Apps widget sends to its server (spec §3): narrows on ``method``."""

if TYPE_CHECKING:
    AgSurfaceInteraction: TypeAlias = (
        AgA2uiSurfaceAction | AgA2uiFunctionResponse | AgA2uiError | AgMcpAppViewMessage | AgOpenAiWidgetAction
    )
else:
    # A message from a surface (spec §3); at run time the class that all its arms are instances of.
    AgSurfaceInteraction = SurfaceInteraction

SURFACE_DISCRIMINANTS: Mapping[str, str] = MappingProxyType(
    {"a2ui": "a2uiMessage", "mcp-app": "method", "openai-app": "method"}
)
"""The wire name of the second discriminant, by ``surface`` (spec §3)."""

SURFACE_ARMS: Mapping[tuple[str, str], type[AgSurfaceInteraction]] = MappingProxyType(
    {
        ("a2ui", "action"): AgA2uiSurfaceAction,
        ("a2ui", "function-response"): AgA2uiFunctionResponse,
        ("a2ui", "error"): AgA2uiError,
        ("mcp-app", "ui/update-model-context"): McpUpdateModelContext,
        ("mcp-app", "ui/message"): McpMessage,
        ("mcp-app", "ui/request-display-mode"): McpRequestDisplayMode,
        ("mcp-app", "ui/open-link"): McpOpenLink,
        ("openai-app", "setWidgetState"): OpenAiSetWidgetState,
        ("openai-app", "callTool"): OpenAiCallTool,
        ("openai-app", "sendFollowUpMessage"): OpenAiSendFollowUpMessage,
        ("openai-app", "requestDisplayMode"): OpenAiRequestDisplayMode,
    }
)
"""The class of each surface interaction by ``surface`` and its second discriminant (spec §3)."""
