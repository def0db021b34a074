"""Tool messages as results of calls (spec §2.1, §2.2, §5 tool.done)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from agjson.adapters.langgraph._carry import FIELDS, RESULT
from agjson.adapters.langgraph._content import Reading, read_content
from agjson.types import AgBlock, AgProviderMeta, TextBlock

__all__ = ["result_fields"]

Native: TypeAlias = dict[str, Any]

# What a result keeps in a tool message that this adapter has made: wire name, field, type.
_KEPT: tuple[tuple[str, str, type], ...] = (
    ("uiData", "ui_data", object),
    ("structuredContent", "structured_content", object),
    ("sideData", "side_data", object),
    ("errorText", "error_text", str),
    ("errorCode", "error_code", str),
    ("toolMetadata", "tool_metadata", dict),
    ("dynamic", "dynamic", bool),
    ("isError", "is_error", bool),
)
_OUTCOMES = ("ok", "error", "denied", "input_required")


def result_fields(message: Mapping[str, Any], denied: Mapping[str, str] | None = None) -> Native:
    """The fields of a result: keyword arguments for `Emitter.tool_done` and `ToolResultBlock`.

    The artifact is the side data. The words of a failed call are its content and its error text alike.

    Args:
        message: a tool message as plain data, in the shape of its pydantic dump.
        denied: the calls that a person did not allow, by id; LangChain tells these as failed.
    """
    reading = Reading(message)
    blocks: list[AgBlock] = []
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        blocks += read_content(part, reading)
    kept = _kept(message)
    if added := kept.pop("added", None):
        blocks = blocks[: len(blocks) - added]
    fields: Native = {"content": blocks, "outcome": "ok"}
    if message.get("artifact") is not None:
        fields["side_data"] = message["artifact"]
    if message.get("status") == "error":
        is_denied = any(id == message.get("tool_call_id") for id in denied or ()) or _was_rejected(
            message.get("additional_kwargs")
        )
        fields["outcome"] = "denied" if is_denied else "error"
        words = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        if words and not is_denied:
            fields["error_text"] = words
    fields.update(kept)
    if fields["outcome"] != "error":
        fields.pop("error_text", None)
    rest = message.get("additional_kwargs")
    if isinstance(rest, dict) and rest:
        fields["provider_metadata"] = AgProviderMeta({FIELDS: rest})
    return fields


def _was_rejected(kwargs: object) -> bool:
    """Whether LangChain says that a person has rejected the call: it marks what it writes in the tool's place."""
    if not isinstance(kwargs, dict) or kwargs.get("lc_source") != "hitl_interrupt_decision":
        return False
    data = kwargs.get("lc_data")
    return isinstance(data, dict) and data.get("decision") == "reject"


def _kept(message: Mapping[str, Any]) -> Native:
    """The fields for which LangChain has no place, as the way back has kept them."""
    said = message.get("response_metadata")
    kept = said.get(RESULT) if isinstance(said, dict) else None
    if not isinstance(kept, dict):
        return {}
    fields = {
        field: kept[wire]
        for wire, field, kind in _KEPT
        if wire in kept and (kind is object or isinstance(kept[wire], kind))
    }
    if kept.get("outcome") in _OUTCOMES:
        fields["outcome"] = kept["outcome"]
    added = kept.get("added")
    if type(added) is int and added > 0:
        fields["added"] = added
    return fields
