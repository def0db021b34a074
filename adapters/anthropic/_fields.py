"""Which fields of the native vocabulary are known; a field that is not is carried visibly (spec §8.0).

The table holds what the normalizer takes apart. What it carries whole (results of server tools, citations, usage,
containers and the like) needs no table.
"""

from __future__ import annotations

from typing import Any

__all__ = ["BLOCKS", "DELTAS", "EVENTS", "MESSAGE", "MESSAGE_DELTA", "unknown_fields"]

EVENTS: dict[str, frozenset[str]] = {
    "message_start": frozenset(("type", "message")),
    "content_block_start": frozenset(("type", "index", "content_block")),
    "content_block_delta": frozenset(("type", "index", "delta")),
    # The helper streams put the finished block and message into their ends.
    "content_block_stop": frozenset(("type", "index", "content_block")),
    "message_delta": frozenset(("type", "delta", "usage", "context_management", "input_transformations")),
    "message_stop": frozenset(("type", "message")),
    "ping": frozenset(("type",)),
    "error": frozenset(("type", "error", "request_id")),
}
"""The fields of each event, by its type."""

MESSAGE = frozenset(
    (
        "id",
        "type",
        "role",
        "content",
        "model",
        "stop_reason",
        "stop_sequence",
        "stop_details",
        "usage",
        "container",
        "diagnostics",
        "context_management",
        "input_transformations",
    )
)
"""The fields of a message."""

MESSAGE_DELTA = frozenset(("stop_reason", "stop_sequence", "stop_details", "container"))
"""The fields of the delta in ``message_delta``."""

BLOCKS: dict[str, frozenset[str]] = {
    # ``parsed_output`` is what a helper stream reads out of the text.
    "text": frozenset(("type", "text", "citations", "parsed_output")),
    "thinking": frozenset(("type", "thinking", "signature")),
    "redacted_thinking": frozenset(("type", "data")),
    "tool_use": frozenset(("type", "id", "name", "input", "caller", "toolset_name")),
    "server_tool_use": frozenset(("type", "id", "name", "input", "caller")),
    "mcp_tool_use": frozenset(("type", "id", "name", "input", "server_name")),
    "container_upload": frozenset(("type", "file_id")),
}
"""The fields of each content block that is taken apart, by its type."""

DELTAS: dict[str, frozenset[str]] = {
    "text_delta": frozenset(("type", "text")),
    "thinking_delta": frozenset(("type", "thinking", "estimated_tokens")),
    "signature_delta": frozenset(("type", "signature")),
    "input_json_delta": frozenset(("type", "partial_json")),
    "citations_delta": frozenset(("type", "citation")),
    "compaction_delta": frozenset(("type", "content", "encrypted_content")),
}
"""The fields of each delta, by its type."""


def unknown_fields(native: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The members that are not known and say something.

    Args:
        native: a native object.
        known: the names that are known in it.
    """
    if known.issuperset(native):
        return {}
    return {name: value for name, value in native.items() if name not in known and value is not None}
