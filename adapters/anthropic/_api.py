"""Names and limits of the Messages API that a history must keep to."""

from __future__ import annotations

import re
from typing import Any

__all__ = [
    "BETA_TYPES",
    "CALL_ID",
    "IMAGE_TYPES",
    "MODELLED_TYPES",
    "REASONING_TYPES",
    "TOOL_NAME",
    "is_beta",
    "is_server_call_id",
    "whole_number",
]

CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
"""What the API takes as the id of a tool call."""

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""What the API takes as the name of a tool."""

IMAGE_TYPES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
"""Media types of images that may be sent inline."""

REASONING_TYPES = frozenset(("thinking", "redacted_thinking"))
"""Native types of reasoning."""

BETA_TYPES = frozenset(
    (
        "advisor_tool_result",
        "compaction",
        "fallback",
        "mcp_tool_listing",
        "mcp_tool_result",
        "mcp_tool_use",
        "tool_addition",
        "tool_removal",
    )
)
"""Native block types that ``client.beta.messages`` alone knows."""

MODELLED_TYPES = frozenset(
    (
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "server_tool_use",
        "mcp_tool_use",
        "container_upload",
    )
)
"""Native block types that always have a neutral form if they are well formed."""

_SERVER_CALL = re.compile(r"srvtoolu_[a-zA-Z0-9_-]+")
_MCP_CALL = re.compile(r"mcptoolu_[a-zA-Z0-9_-]+")


def is_server_call_id(id: str, *, mcp: bool) -> bool:
    """Whether an id is one that the provider gave to a call which it runs itself.

    Args:
        id: the native id.
        mcp: the call goes to an MCP server.
    """
    return (_MCP_CALL if mcp else _SERVER_CALL).fullmatch(id) is not None


def whole_number(value: float) -> int | None:
    """A number without a fraction as an integer; None for any other.

    Args:
        value: the number.
    """
    return int(value) if isinstance(value, int) or value.is_integer() else None


def is_beta(message: dict[str, Any]) -> bool:
    """Whether a native message holds something that ``client.beta.messages`` alone knows.

    Args:
        message: a native message.
    """
    if message["role"] == "system" and message.keys() - {"role", "content"}:
        return True
    content = message.get("content", "")
    for block in () if isinstance(content, str) else content:
        if block["type"] in BETA_TYPES or (block["type"] == "server_tool_use" and block.get("name") == "advisor"):
            return True
    return False
