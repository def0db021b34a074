"""What an item holds beyond this revision: undeclared fields and unknown block kinds, at every depth (spec §0.2)."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any, Literal, cast

import msgspec

from agjson.types import UNSET, AgStruct, UnknownBlock
from agjson.wire import declared_class, extra_fields

__all__ = ["beyond_declared", "holds_structs"]

_PLAIN = frozenset((str, int, float, bool, bytes, type(None), dict, list, object, msgspec.UnsetType))


def beyond_declared(value: object) -> Iterator[tuple[str, str]]:
    """Find what a producer may not write.

    Args:
        value: an event or another wire object.

    Yields:
        The name of the broken rule and the JSON path of the field or block.
    """
    waiting: list[tuple[object, str]] = [(value, "$")]
    while waiting:
        item, path = waiting.pop()
        if isinstance(item, AgStruct):
            for name in extra_fields(item):
                yield "UNDECLARED-FIELD", f"{path}.{name}"
            for name, wire_name in reversed(_branches(declared_class(item))):
                child = getattr(item, name)
                if child is not None and child is not UNSET:
                    waiting.append((child, f"{path}.{wire_name}"))
        elif isinstance(item, list):
            elements = cast("list[object]", item)
            waiting.extend((elements[index], f"{path}[{index}]") for index in reversed(range(len(elements))))
        elif isinstance(item, dict):
            members = cast("dict[str, object]", item)
            waiting.extend((child, f"{path}.{key}") for key, child in reversed(members.items()))
        elif isinstance(item, UnknownBlock):
            yield "UNKNOWN-TYPE", f"{path}.type"


def holds_structs(cls: type[AgStruct]) -> bool:
    """Tell whether objects of a class can have other wire objects inside."""
    return bool(_branches(cls))


def _branches(cls: type[AgStruct]) -> tuple[tuple[str, str], ...]:
    """The fields of a class that can hold wire objects, by Python and by wire name; opaque values are none."""
    found = _BRANCHES.get(cls)
    if found is None:
        fields = msgspec.structs.fields(cls)
        found = _BRANCHES[cls] = tuple((field.name, field.encode_name) for field in fields if _can_hold(field.type))
    return found


_BRANCHES: dict[type[AgStruct], tuple[tuple[str, str], ...]] = {}


def _can_hold(tp: Any) -> bool:
    if tp is Any or tp in _PLAIN or typing.get_origin(tp) is Literal:
        return False
    args = typing.get_args(tp)
    if not args:
        return isinstance(tp, type)
    if typing.get_origin(tp) is typing.Annotated:
        return _can_hold(args[0])
    return any(_can_hold(arg) for arg in args)
