"""Every member of every type that an input can hold, and what it takes for a client to be allowed to send it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from agjson import types as t

__all__ = ["CLASSES", "MEMBERS", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What is asked of a member that is there.

    Attributes:
        needs: the member of `Trust` that must allow it, with a name in it after a colon; None: nothing must.
        then: what is looked at next: nothing, the value itself, the keys of a bag, the role.
    """

    needs: str | None = None
    then: Literal["nothing", "inside", "bag", "role"] = "nothing"


_PLAIN = Rule()
_INSIDE = Rule(then="inside")
_BAG = Rule(then="bag")
_OPAQUE = Rule("opaque")
_PROVIDER = Rule("provider_metadata")


def _rules(
    plain: str = "", inside: str = "", bag: str = "", opaque: str = "", provider: str = "", **others: Rule
) -> dict[str, Rule]:
    rules = dict(others)
    for names, rule in ((plain, _PLAIN), (inside, _INSIDE), (bag, _BAG), (opaque, _OPAQUE), (provider, _PROVIDER)):
        rules.update(dict.fromkeys(names.split(), rule))
    return rules


def _named(cls: type[msgspec.Struct], setting: str, inside: str) -> dict[str, Rule]:
    """Each member under its own wire name in a setting; those named in ``inside`` are looked into."""
    return {
        name: Rule(f"{setting}:{wire_name}", "inside" if name in inside.split() else "nothing")
        for name, wire_name in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
        if name in _DECIDED[cls]
    }


# Members that are allowed one by one. They are spelt out: a new one is not allowed by being there.
_DECIDED: Mapping[type, frozenset[str]] = {
    t.AgRunConfig: frozenset(
        (
            *("model", "system", "tools", "tool_choice", "response_format", "reasoning", "max_tokens", "temperature"),
            *("top_p", "stop_sequences", "context"),
        )
    ),
    t.AgMessage: frozenset(
        (
            *("id", "role", "content", "turn_id", "thread_id", "candidate_index", "reference_turn_ids"),
            *("message_metadata", "extensions", "metadata", "agent_id", "agent_name", "agent_role", "model", "usage"),
            "notice_source",
        )
    ),
}

_ENVELOPE = {
    **_rules(plain="protocol version thread_id turn_id", inside="capabilities", bag="metadata"),
    "parent_turn_id": Rule("parent_turn"),
    "state": Rule("state"),
}
_BLOCK = _rules(inside="annotations", bag="meta")
_SURFACE = _rules(plain="surface surface_id tool_call_id turn_id thread_id", bag="meta")
_OPENAI = {**_SURFACE, **_rules(plain="method tool_response_metadata")}
_CITATION = _rules(plain="cited_text source title confidence confidence_scores index_frame", opaque="encrypted_index")

MEMBERS: Mapping[type, Mapping[str, Rule]] = {
    # Inputs
    t.StartInput: {**_ENVELOPE, **_rules(inside="messages run")},
    t.ResumeInput: {**_ENVELOPE, **_rules(inside="answers ui_actions")},
    t.ToolResultInput: {**_ENVELOPE, **_rules(inside="results")},
    t.AgMessage: {
        **_named(t.AgMessage, "message_members", inside="content usage"),
        "role": Rule("message_members:role", "role"),
        "metadata": Rule("message_members:metadata", "bag"),
    },
    t.AgUsage: _rules(
        plain="input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens tool_use_input_tokens "
        "total_tokens cost_usd cumulative by_model server_tool_requests"
    ),
    # What an answer echoes is held against its ask before anything happens (spec §13.1).
    t.AgHitlAnswer: _rules(plain="ask_id status reply reason ordinal token request_state grant_mode_id"),
    t.AgToolResult: _rules(
        plain="tool_call_id outcome structured_content ui_data side_data error_text error_code dynamic is_error "
        "will_continue scheduling",
        inside="content annotations",
        bag="meta",
        opaque="pending_input",
        provider="provider_metadata tool_metadata",
    ),
    # How to run
    t.AgRunConfig: {
        **_named(t.AgRunConfig, "run", inside="system tools tool_choice response_format reasoning context"),
        "push_notification": Rule("push_policy", "inside"),
    },
    t.AgToolDef: _rules(
        plain="name description input_schema strict provider_executed ui_visibility", inside="source", bag="meta"
    ),
    t.McpToolSource: _rules(plain="server_name"),
    t.FunctionToolSource: {},
    t.FrontendToolSource: {},
    t.NamedToolChoice: _rules(plain="type name"),
    t.AgResponseFormat: _rules(plain="type name schema strict"),
    t.AgReasoningConfig: _rules(plain="mode effort budget_tokens"),
    t.AgPushNotification: _rules(plain="url token", inside="auth"),
    t.AgPushAuth: _rules(plain="scheme credentials"),
    # What the client can do
    t.AgClientCapabilities: {
        **_rules(inside="hitl streaming ui_resources state"),
        "frontend_tools": Rule("frontend_tools", "inside"),
    },
    t.AgFrontendTool: _rules(plain="name description input_schema"),
    t.AgHitlCapabilities: _rules(plain="ask approve_with_edits form auth grant_modes"),
    t.AgStreamingCapabilities: _rules(plain="partial_messages"),
    t.AgUiResourceCapabilities: _rules(plain="catalogs html_resources"),
    t.AgStateCapabilities: _rules(plain="json_patch"),
    # Blocks; each kind must be allowed itself
    t.TextBlock: {
        **_BLOCK,
        **_rules(plain="text", provider="provider_metadata"),
        "citations": Rule("citations", "inside"),
    },
    t.ImageBlock: {**_BLOCK, **_rules(inside="source", provider="provider_metadata")},
    t.AudioBlock: {**_BLOCK, **_rules(inside="source", provider="provider_metadata")},
    t.FileBlock: {**_BLOCK, **_rules(plain="filename", inside="source", provider="provider_metadata")},
    t.DocumentBlock: {**_BLOCK, **_rules(plain="title", inside="source", provider="provider_metadata")},
    t.ResourceBlock: {**_BLOCK, **_rules(inside="resource")},
    t.ResourceLinkBlock: {**_BLOCK, "uri": Rule("sources:url"), "mime_type": _PLAIN},
    t.CodeBlock: {**_BLOCK, **_rules(plain="language code")},
    t.CodeResultBlock: {**_BLOCK, **_rules(plain="outcome output")},
    t.ReasoningBlock: {
        **_BLOCK,
        **_rules(plain="text provider", opaque="item_id", provider="provider_metadata provider_details"),
        "opaque": Rule("opaque", "inside"),
    },
    t.CompactionBlock: {**_BLOCK, **_rules(plain="text provider"), "opaque": Rule("opaque", "inside")},
    t.SearchResultBlock: {**_BLOCK, **_rules(plain="url title page_age"), "opaque": Rule("opaque", "inside")},
    t.ToolCallBlock: {
        **_BLOCK,
        **_rules(
            plain="tool_call_id name input server_name provider_executed provider title provider_call_index "
            "ui_visibility",
            opaque="signature item_id",
            provider="provider_metadata tool_metadata",
        ),
    },
    t.ToolResultBlock: {
        **_BLOCK,
        **_rules(
            plain="tool_call_id outcome structured_content ui_data side_data error_text error_code dynamic preliminary "
            "is_error",
            inside="content",
            opaque="pending_input",
            provider="provider_metadata tool_metadata",
        ),
    },
    t.DataBlock: {**_BLOCK, **_rules(plain="name id data transient")},
    t.ProviderRawBlock: {**_BLOCK, "vendor": _PLAIN, "raw": _OPAQUE},
    # Parts of blocks
    t.Base64Source: _rules(plain="media_type data"),
    t.UrlSource: _rules(plain="url media_type"),
    t.FileSource: _rules(plain="file_id media_type"),
    t.AgOpaque: _rules(plain="kind value provider"),
    t.AgAnnotations: _rules(plain="audience priority last_modified"),
    t.AgEmbeddedResource: _rules(plain="uri mime_type text blob", bag="meta"),
    t.AgPendingInput: _rules(plain="request_state input_keys"),
    t.CharCitation: {**_CITATION, **_rules(plain="document_index start_char_index end_char_index unit bounds")},
    t.PageCitation: {**_CITATION, **_rules(plain="document_index start_page end_page")},
    t.BlockCitation: {**_CITATION, **_rules(plain="document_index start_block_index end_block_index")},
    t.UrlCitation: {**_CITATION, **_rules(plain="url start_index end_index unit bounds")},
    t.OffsetCitation: {**_CITATION, **_rules(plain="start_index end_index source_ids part_index unit bounds")},
    # Surfaces; each kind must be allowed itself
    t.AgA2uiSurfaceAction: {
        **_SURFACE,
        **_rules(plain="a2ui_message name source_component_id timestamp context want_response action_id"),
    },
    t.AgA2uiFunctionResponse: {**_SURFACE, **_rules(plain="a2ui_message function_call_id call value")},
    t.AgA2uiError: {**_SURFACE, **_rules(plain="a2ui_message function_call_id code message path")},
    t.McpUpdateModelContext: {**_SURFACE, **_rules(plain="method", inside="params")},
    t.McpMessage: {**_SURFACE, **_rules(plain="method", inside="params")},
    t.McpRequestDisplayMode: {**_SURFACE, **_rules(plain="method", inside="params")},
    t.McpOpenLink: {**_SURFACE, **_rules(plain="method", inside="params")},
    t.McpModelContextParams: _rules(plain="structured_content", inside="content"),
    t.McpMessageParams: _rules(plain="role", inside="content"),
    t.McpTextContent: _rules(plain="type text"),
    t.McpDisplayModeParams: _rules(plain="mode"),
    t.McpOpenLinkParams: _rules(plain="url"),
    t.OpenAiSetWidgetState: {**_OPENAI, **_rules(plain="widget_state")},
    t.OpenAiCallTool: {**_OPENAI, **_rules(plain="name args call_id")},
    t.OpenAiSendFollowUpMessage: {**_OPENAI, **_rules(plain="prompt scroll_to_bottom")},
    t.OpenAiRequestDisplayMode: {**_OPENAI, **_rules(plain="mode request_id")},
}
"""The rule of each member, by the Python name, for each class. A member that is missing here is refused."""

CLASSES: Mapping[type, str] = {
    **{cls: f"blocks:{name}" for name, cls in t.BLOCK_TYPES.items()},
    t.Base64Source: "sources:base64",
    t.UrlSource: "sources:url",
    t.FileSource: "sources:file",
    **{cls: f"surfaces:{surface}" for (surface, _), cls in t.SURFACE_ARMS.items()},
}
"""What the host must allow for a value of a class to be there at all."""
