"""What a block brought along of its native form (spec §12 ``providerMetadata``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agjson.adapters.langgraph._carry import BLOCK, FIELDS
from agjson.types import AgBlock, ToolCallBlock

__all__ = ["carried_fields", "hosted_call", "is_host_item", "whole_block"]

# Tools that OpenAI describes and the host runs. LangChain lists none of their calls among those of tools.
_HOST_ITEMS = ("computer_call", "apply_patch_call", "shell_call", "local_shell_call")


def carried_fields(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Native fields that a block brought along and that its neutral form does not say.

    Args:
        metadata: the block's ``providerMetadata``.
    """
    fields = metadata.get(FIELDS) if metadata else None
    return {name: value for name, value in fields.items() if name != "type"} if isinstance(fields, dict) else {}


def whole_block(block: AgBlock) -> dict[str, Any] | None:
    """The native block that a block brought along whole.

    Args:
        block: the block.
    """
    for bag in (getattr(block, "provider_metadata", None), block.meta):
        native = bag.get(BLOCK) if bag else None
        if isinstance(native, dict) and isinstance(native.get("type"), str):
            return dict(cast("dict[str, Any]", native))
    return None


def hosted_call(block: ToolCallBlock) -> dict[str, Any] | None:
    """A call that the provider ran, as it came or in LangChain's own form; None where too little is known of it.

    Args:
        block: the call.
    """
    whole = whole_block(block)
    if whole is not None or not block.name or not isinstance(block.input, dict):
        return whole
    fields = carried_fields(block.provider_metadata)
    if block.signature:
        extras = fields.get("extras")
        fields["extras"] = {**(extras if isinstance(extras, dict) else {}), "signature": block.signature}
    return {**fields, "type": "server_tool_call", "id": block.tool_call_id, "name": block.name, "args": block.input}


def is_host_item(block: ToolCallBlock) -> bool:
    """Whether a call is an item of a tool that OpenAI describes and the host runs, such as the computer.

    Args:
        block: the call.
    """
    native = whole_block(block)
    return native is not None and native["type"] in _HOST_ITEMS
