"""Shapes of opaque JSON values (spec §0.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = ["is_array", "is_object", "same_value"]


def is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether a value is a JSON object."""
    return isinstance(value, Mapping)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a value is a JSON array."""
    return isinstance(value, list)


def same_value(a: Any, b: Any) -> bool:
    """Equality of JSON values: numbers by value, a boolean never equal to a number (spec §5.0 INV-FOLD, RFC 6902)."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if is_object(a) and is_object(b):
        return len(a) == len(b) and all(key in b and same_value(value, b[key]) for key, value in a.items())
    if is_array(a) and is_array(b):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
