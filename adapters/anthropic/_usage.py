"""Tokens: Anthropic's running totals of one message, kept verbatim (spec §4 `AgUsage`, §8 item 4)."""

from __future__ import annotations

from typing import Any

import msgspec

from agjson.types import AgUsage, Number

__all__ = ["add_usage", "merge_usage", "read_usage"]

_COUNTS = (
    ("input_tokens", "input_tokens"),
    ("output_tokens", "output_tokens"),
    ("cache_read_tokens", "cache_read_input_tokens"),
    ("cache_write_tokens", "cache_creation_input_tokens"),
)


def merge_usage(totals: dict[str, Any], update: dict[str, Any]) -> None:
    """Write a later report over an earlier one of the same message: null means that the earlier value holds.

    Args:
        totals: the native usage so far; changed in place.
        update: the native usage of ``message_start`` or ``message_delta``.
    """
    for name, value in update.items():
        if value is not None or name not in totals:
            totals[name] = value


def read_usage(native: dict[str, Any]) -> AgUsage | None:
    """The usage of one message; None where nothing in it is a count.

    `AgUsage.input_tokens` leaves out what came from or went to the cache, as the provider counts it, and no total is
    computed. Iterations that name a model appear under it in `AgUsage.by_model`.

    Args:
        native: the merged native usage.
    """
    counts: dict[str, Any] = _counts(native)
    details = native.get("output_tokens_details")
    if isinstance(details, dict) and (thinking := _number(details.get("thinking_tokens"))) is not None:
        counts["reasoning_tokens"] = thinking
    server = native.get("server_tool_use")
    if isinstance(server, dict):
        requests = [number for value in server.values() if (number := _number(value)) is not None]
        if requests:
            counts["server_tool_requests"] = sum(requests)
    by_model = _by_model(native.get("iterations"))
    if by_model:
        counts["by_model"] = by_model
    return AgUsage(cumulative=True, **counts) if counts else None


def add_usage(one: AgUsage | None, other: AgUsage | None) -> AgUsage | None:
    """The usage of two messages together: what a turn of several requests has cost.

    A sum is not flagged ``cumulative``: the flag says that the figures are the provider's own running totals, verbatim,
    and the provider counts each request by itself (spec §4 `AgUsage`, §5.0 INV-DELTA).

    Args:
        one: the usage of one message, or None.
        other: the usage of another, or None.
    """
    if one is None or other is None:
        return one or other
    sums: dict[str, Any] = {}
    for name in AgUsage.__struct_fields__:
        left, right = getattr(one, name), getattr(other, name)
        if name == "by_model" and left and right:
            sums[name] = {
                model: add_usage(left.get(model), right.get(model)) for model in dict.fromkeys((*left, *right))
            }
        elif name == "cumulative":
            sums[name] = None
        elif left is None or right is None:
            sums[name] = right if left is None else left
        else:
            sums[name] = left + right
    return msgspec.structs.replace(one, **sums)


def _by_model(iterations: object) -> dict[str, AgUsage]:
    found: dict[str, AgUsage] = {}
    for iteration in iterations if isinstance(iterations, list) else ():
        model = iteration.get("model") if isinstance(iteration, dict) else None
        if isinstance(model, str) and (counts := _counts(iteration)):
            usage = add_usage(found.get(model), AgUsage(cumulative=True, **counts))
            assert usage is not None
            found[model] = usage
    return found


def _counts(native: dict[str, Any]) -> dict[str, Any]:
    return {name: number for name, key in _COUNTS if (number := _number(native.get(key))) is not None}


def _number(value: object) -> Number | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
