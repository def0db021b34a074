"""Why a message ended, and what kind of failure an error is (spec §4 `AgFinishReason`, §8 item 17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agjson.types import AgFinishReason, AgSafety

__all__ = ["ERROR_TYPES", "STOP_REASONS", "error_of", "finish_reason", "goes_on", "is_retriable", "safety_of"]

STOP_REASONS: Mapping[str, AgFinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "token_limit",
    "tool_use": "tool_call",
    "pause_turn": "pause_turn",
    # The provider hands the turn back after it has compacted; the next request goes on, as after a pause.
    "compaction": "pause_turn",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window_exceeded",
}
"""Native stop reasons, plain and beta."""


def goes_on(stop_reason: object) -> bool:
    """Tell whether a turn that stopped so is continued by asking again with what there is."""
    return isinstance(stop_reason, str) and STOP_REASONS.get(stop_reason) == "pause_turn"


ERROR_TYPES: Mapping[str, bool] = {
    "invalid_request_error": False,
    "authentication_error": False,
    "billing_error": False,
    "permission_error": False,
    "not_found_error": False,
    "rate_limit_error": True,
    "timeout_error": True,
    "api_error": True,
    "overloaded_error": True,
    "conflict_error": False,
    "memory_precondition_failed_error": False,
    "memory_path_conflict_error": False,
}
"""Native error types, and whether trying again may help."""


def finish_reason(stop_reason: object) -> AgFinishReason:
    """The finish reason of a native stop reason; ``unknown`` for one that is absent or not known.

    Args:
        stop_reason: ``stop_reason`` of the message.
    """
    return STOP_REASONS.get(stop_reason, "unknown") if isinstance(stop_reason, str) else "unknown"


def safety_of(stop_reason: object, stop_details: object) -> list[AgSafety] | None:
    """The safety rating that a refusal stands for; None without a refusal.

    Args:
        stop_reason: ``stop_reason`` of the message.
        stop_details: ``stop_details`` of the message.
    """
    if stop_reason != "refusal":
        return None
    category = stop_details.get("category") if isinstance(stop_details, dict) else None
    return [AgSafety(category=category if isinstance(category, str) and category else "refusal", blocked=True)]


def is_retriable(error_type: str | None, status: object = None) -> bool | None:
    """Whether trying again may help; None where neither the type nor the status tells.

    The type decides where it is known: an error inside a stream comes with status 200.

    Args:
        error_type: the native error type.
        status: the HTTP status, if there is one.
    """
    known = ERROR_TYPES.get(error_type or "")
    if known is not None:
        return known
    if isinstance(status, int) and status >= 400:
        return status in (408, 409, 429) or status >= 500
    return None


def error_of(body: object) -> tuple[str | None, str | None]:
    """The type and the message of an error body ``{"type": "error", "error": {"type", "message", …}}``.

    Args:
        body: the body as plain data; anything else yields nothing.
    """
    error: Any = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None, None
    kind, message = error.get("type"), error.get("message")
    return kind if isinstance(kind, str) else None, message if isinstance(message, str) else None
