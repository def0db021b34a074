"""Tokens and finish reasons of messages, as each provider's chat model tells them (spec §4 `AgUsage`, §8 item 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from agjson.adapters.anthropic._stop import STOP_REASONS
from agjson.types import AgFinishReason, AgUsage, Number

__all__ = ["finish_reason", "merge_usage", "read_usage", "sum_usage"]

Native: TypeAlias = dict[str, Any]


def merge_usage(total: Native | None, report: Mapping[str, Any]) -> Native:
    """Add one report to those before it: the reports of the chunks of a message add up, details too.

    Args:
        total: the sum so far; it is not changed.
        report: ``usage_metadata`` of a further chunk.
    """
    merged: Native = dict(total or {})
    for name, value in report.items():
        there = merged.get(name)
        if isinstance(value, dict):
            merged[name] = merge_usage(there if isinstance(there, dict) else None, value)
        elif (number := _number(value)) is not None:
            merged[name] = (_number(there) or 0) + number
        elif there is None:
            merged[name] = value
    return merged


def read_usage(native: Mapping[str, Any] | None) -> AgUsage | None:
    """The usage of one message; None where nothing in it is a count.

    The counts are LangChain's: its input tokens hold those of the cache too.

    Args:
        native: ``usage_metadata`` of the message.
    """
    if not isinstance(native, Mapping):
        return None
    read, written = _details(native, "input_token_details"), _details(native, "output_token_details")
    cached = _number(read.get("cache_creation"))
    # Anthropic's chat model tells what it wrote to the cache by how long it stays there, and then no sum.
    kept = [number for name, value in read.items() if name.startswith("ephemeral_") and (number := _number(value))]
    counts: dict[str, Any] = {
        "input_tokens": _number(native.get("input_tokens")),
        "output_tokens": _number(native.get("output_tokens")),
        "total_tokens": _number(native.get("total_tokens")),
        "cache_read_tokens": _number(read.get("cache_read")),
        "cache_write_tokens": sum(kept) if kept and not cached else cached,
        "reasoning_tokens": _number(written.get("reasoning")),
    }
    told = {name: count for name, count in counts.items() if count is not None}
    return AgUsage(**told) if told else None


def sum_usage(one: AgUsage | None, other: AgUsage | None) -> AgUsage | None:
    """The usage of two messages together.

    Args:
        one: that of one, or None.
        other: that of another, or None.
    """
    if one is None or other is None:
        return one or other
    sums: dict[str, Any] = {}
    for name in _COUNTS:
        left, right = getattr(one, name), getattr(other, name)
        if left is not None or right is not None:
            sums[name] = (left or 0) + (right or 0)
    return AgUsage(**sums)


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "total_tokens",
)


def _details(native: Mapping[str, Any], name: str) -> Native:
    details = native.get(name)
    return details if isinstance(details, dict) else {}


def _number(value: object) -> Number | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


_REASONS: Mapping[str, AgFinishReason] = {
    **STOP_REASONS,
    # Chat completions, and what speaks like it.
    "stop": "stop",
    "length": "token_limit",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "safety_blocked",
    # Gemini, in lower case.
    "safety": "safety_blocked",
    "recitation": "safety_blocked",
    "blocklist": "safety_blocked",
    "prohibited_content": "safety_blocked",
    "spii": "safety_blocked",
    "image_safety": "safety_blocked",
    "image_prohibited_content": "safety_blocked",
    "malformed_function_call": "malformed_tool_call",
    "unexpected_tool_call": "unexpected_tool_call",
    "language": "other",
    "other": "other",
    # Bedrock.
    "guardrail_intervened": "safety_blocked",
    "content_filtered": "safety_blocked",
    # Responses: why an answer is incomplete.
    "max_output_tokens": "token_limit",
}

_RESPONSE_STATUS: Mapping[str, AgFinishReason] = {"completed": "stop", "failed": "other", "cancelled": "other"}


def finish_reason(
    response_metadata: Mapping[str, Any] | None, *, calls: bool = False, malformed: bool = False
) -> AgFinishReason | None:
    """Why a message ended; None where it does not tell.

    Args:
        response_metadata: ``response_metadata`` of the message.
        calls: the message holds calls of the host's tools: a model of some providers then says that it just stopped.
        malformed: the arguments of one of them are no JSON object.
    """
    told = _told(response_metadata) if isinstance(response_metadata, Mapping) else None
    if malformed and told in (None, "stop", "tool_call", "unknown"):
        return "malformed_tool_call"
    if calls and told in (None, "stop"):
        return "tool_call"
    return told


def _told(metadata: Mapping[str, Any]) -> AgFinishReason | None:
    for name in ("stop_reason", "finish_reason", "stopReason"):
        reason = metadata.get(name)
        if isinstance(reason, str) and reason:
            return _REASONS.get(reason, _REASONS.get(reason.rpartition(".")[2].lower(), "unknown"))
    status, details = metadata.get("status"), metadata.get("incomplete_details")
    if status == "incomplete":
        reason = details.get("reason") if isinstance(details, dict) else None
        return _REASONS.get(reason, "unknown") if isinstance(reason, str) else "unknown"
    return _RESPONSE_STATUS.get(status) if isinstance(status, str) else None
