"""Shapes of opaque JSON values (spec §0.1). Nothing here recurses, so no value is too deep for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

__all__ = ["Extent", "extent", "is_array", "is_object", "same_value"]

_SCALARS = frozenset({int, float, bool, type(None)})


def is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether a value is a JSON object."""
    return isinstance(value, Mapping)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a value is a JSON array."""
    return isinstance(value, list)


def same_value(a: Any, b: Any) -> bool:
    """Equality of JSON values: numbers by value, a boolean never equal to a number (spec §5.0 INV-FOLD, RFC 6902).

    The cost is bounded by the smaller value as it would be written out, also where the other one shares its parts.
    """
    waiting: list[tuple[Any, Any]] = [(a, b)]
    while waiting:
        a, b = waiting.pop()
        if isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif is_object(a) and is_object(b):
            if len(a) != len(b):
                return False
            for key, value in a.items():
                if key not in b:
                    return False
                waiting.append((value, b[key]))
        elif is_array(a) and is_array(b):
            if len(a) != len(b):
                return False
            waiting.extend(zip(a, b, strict=True))
        elif is_object(a) or is_array(a) or a != b:
            return False
    return True


class Extent(NamedTuple):
    """How much a JSON value comes to when it is written out.

    Attributes:
        size: its values and the characters of its strings and keys; what stands in two places counts twice.
        depth: how many containers nest inside one another; 0 for a scalar.
    """

    size: int
    depth: int


def extent(value: Any, limit: int) -> Extent:
    """The extent of a value, in the time of reading each of its containers once, however often it stands there.

    Args:
        value: any JSON value.
        limit: both numbers stop just above this one; a value that holds itself has both there.
    """
    over = limit + 1
    if not (is_object(value) or is_array(value)):
        return Extent(min(_scalar_size(value), over), 0)
    known: dict[int, Extent] = {}
    entered: set[int] = set()
    waiting: list[Any] = [value]
    while waiting:
        container = waiting[-1]
        if id(container) in known:
            waiting.pop()
            continue
        size, depth, before = 1, 0, len(waiting)
        if is_object(container):
            size += sum(map(len, container))
        for child in container.values() if is_object(container) else container:
            if type(child) in _SCALARS:
                size += 1
            elif is_object(child) or is_array(child):
                found = known.get(id(child))
                if found is None:
                    waiting.append(child)
                else:
                    size += found.size
                    depth = max(depth, found.depth)
            else:
                size += _scalar_size(child)
        if len(waiting) == before:
            known[id(container)] = Extent(min(size, over), min(depth + 1, over))
        elif id(container) in entered:
            return Extent(over, over)
        entered.add(id(container))
    return known[id(value)]


def _scalar_size(value: Any) -> int:
    return 1 + len(value) if isinstance(value, str) else 1
