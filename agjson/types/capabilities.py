"""What client and agent can do, told in band on the first turn (spec §3, §6, §11 item 5)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ._base import AgStruct, JsonValue, ListOf, Opt

__all__ = [
    "AgAuthConfig",
    "AgCapabilities",
    "AgClientCapabilities",
    "AgFrontendTool",
    "AgHitlCapabilities",
    "AgProfile",
    "AgStateCapabilities",
    "AgStreamingCapabilities",
    "AgUiResourceCapabilities",
]

AgProfile: TypeAlias = Literal["CORE", "EXTENDED", "ADVANCED"]
"""How much of the format a party speaks (spec §9)."""


class AgAuthConfig(AgStruct, frozen=True, kw_only=True):
    """How to authenticate: for an ask of kind ``auth``, and in the agent's capabilities (spec §4, §7).

    Attributes:
        scheme: the scheme, such as ``oauth2``.
        scopes: the scopes to ask for.
        authorization_url: where the user consents.
        token_url: where a code becomes a token.
        client_id: the OAuth client.
        audience: whom the token is for.
    """

    scheme: str
    scopes: Opt[list[str]] = None
    authorization_url: Opt[str] = None
    token_url: Opt[str] = None
    client_id: Opt[str] = None
    audience: Opt[str] = None


class AgFrontendTool(AgStruct, frozen=True, kw_only=True):
    """A tool that the client runs itself (spec §3 `AgClientCapabilities.frontendTools`).

    Attributes:
        name: the tool's name.
        description: what the model reads about it.
        input_schema: the JSON Schema of its arguments.
    """

    name: str
    description: Opt[str] = None
    input_schema: JsonValue


class AgHitlCapabilities(AgStruct, frozen=True, kw_only=True):
    """Which asks the client can answer (spec §3 `AgClientCapabilities.hitl`).

    Attributes:
        ask: asks at all.
        approve_with_edits: approvals with edited arguments.
        form: forms.
        auth: authentication.
        grant_modes: a choice among grant modes (draft.2).
    """

    ask: Opt[bool] = None
    approve_with_edits: Opt[bool] = None
    form: Opt[bool] = None
    auth: Opt[bool] = None
    grant_modes: Opt[bool] = None


class AgStreamingCapabilities(AgStruct, frozen=True, kw_only=True):
    """How a party streams (spec §3, in both capability records).

    Attributes:
        partial_messages: messages arrive in pieces.
    """

    partial_messages: Opt[bool] = None


class AgUiResourceCapabilities(AgStruct, frozen=True, kw_only=True):
    """What the client can render (spec §3 `AgClientCapabilities.uiResources`).

    Attributes:
        catalogs: ids of A2UI catalogs.
        html_resources: MCP Apps HTML.
    """

    catalogs: Opt[list[str]] = None
    html_resources: Opt[bool] = None


class AgStateCapabilities(AgStruct, frozen=True, kw_only=True):
    """How the client follows shared state (spec §3 `AgClientCapabilities.state`).

    Attributes:
        json_patch: it applies JSON Patch deltas.
    """

    json_patch: Opt[bool] = None


class AgClientCapabilities(AgStruct, frozen=True, kw_only=True):
    """What the client can do, in the input envelope (spec §3).

    Attributes:
        frontend_tools: tools that it runs itself.
        hitl: asks that it answers.
        streaming: how it takes a stream.
        ui_resources: what it renders.
        state: how it follows shared state.
    """

    frontend_tools: Opt[ListOf[AgFrontendTool]] = None
    hitl: Opt[AgHitlCapabilities] = None
    streaming: Opt[AgStreamingCapabilities] = None
    ui_resources: Opt[AgUiResourceCapabilities] = None
    state: Opt[AgStateCapabilities] = None


class AgCapabilities(AgStruct, frozen=True, kw_only=True):
    """What the agent can do, in `agent.capabilities` (spec §3, §6).

    Attributes:
        streaming: how it streams.
        push_notifications: it can call back.
        security_schemes: how clients authenticate.
        extensions: URIs of active A2A extensions.
        ui_catalogs: ids of A2UI catalogs that it draws with.
        profile: how much of the format it speaks.
    """

    streaming: Opt[AgStreamingCapabilities] = None
    push_notifications: Opt[bool] = None
    security_schemes: Opt[ListOf[AgAuthConfig]] = None
    extensions: Opt[list[str]] = None
    ui_catalogs: Opt[list[str]] = None
    profile: Opt[AgProfile] = None
