"""Any Python object as plain JSON data, without ever raising: the door through which native events come in.

What JSON can say passes unchanged (a value that is plain already is returned as the same object). What it cannot say
becomes a marker, an object whose first key tells what stood there, so that nothing is dropped or guessed at silently:

* ``{"agjson/bytes": "<base64>"}``: bytes, bytearray, memoryview;
* ``{"agjson/number": "NaN"}``, ``"Infinity"``, ``"-Infinity"``: a number that is not finite;
* ``{"agjson/cycle": "<type>"}``: an object inside itself;
* ``{"agjson/depth": "<type>"}``: nesting below ``max_depth``;
* ``{"agjson/error": "<type>", "message": "..."}``: an exception;
* ``{"agjson/repr": "<type>", "text": "..."}``: anything else by its ``repr``, cut at 2,000 characters.

Models with ``model_dump`` (pydantic) or ``to_dict``, dataclasses, attrs classes, msgspec Structs, named tuples,
mappings, sequences, sets (sorted where they can be), enums (their value), dates and times (ISO 8601), decimals, UUIDs
and paths (strings) and arrays with ``tolist`` are taken apart.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import math
import os
import types
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, cast

import msgspec

from agjson.types import JsonValue

__all__ = ["MAX_DEPTH", "jsonable"]

MAX_DEPTH = 200
"""How deep a value may nest; what lies below becomes a marker."""

_REPR_LIMIT = 2_000
# Deep enough for nearly every event, shallow enough that an object inside itself twice over is no trap.
_GLANCE = 10
_PLAIN = frozenset((str, int, bool, type(None)))
_TEXTUAL = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)
_OPEN = object()


def jsonable(value: object, *, max_depth: int = MAX_DEPTH) -> JsonValue:
    """The value as plain JSON data: dicts with string keys, lists, strings, finite numbers, booleans, None.

    Never raises an `Exception`, whatever the object does in its methods. A key that is no string is written as JSON
    would write it (``1``, ``true``) or else by ``str``; keys that become equal stay apart by a ``#2``.

    Args:
        value: any object; it is not changed, and parts that are plain already are shared with the result.
        max_depth: how many containers may nest inside one another, at most 200.
    """
    try:
        if _is_plain(value, min(max_depth, _GLANCE)):
            return cast("JsonValue", value)
        return cast("JsonValue", _Projection(min(max_depth, MAX_DEPTH)).of(value, 0))
    except Exception:
        return _by_repr(value)


def _is_plain(value: Any, depth: int) -> bool:
    """Tell whether a value is plain JSON data already; False also where it nests too deep for a glance."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is dict:
        if depth == 0:
            return False
        for key, item in value.items():
            if type(key) is not str or (type(item) not in _PLAIN and not _is_plain(item, depth - 1)):
                return False
        return True
    if kind is list:
        if depth == 0:
            return False
        return all(type(item) in _PLAIN or _is_plain(item, depth - 1) for item in value)
    return kind in _PLAIN or (kind is float and math.isfinite(value))


class _Projection:
    """One call of `jsonable`: what has been seen, so that a cycle ends and shared objects are walked once."""

    __slots__ = ("_kept", "_limit", "_seen")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: dict[int, Any] = {}
        # An intermediate object must outlive the walk, or its id could come back for another object.
        self._kept: list[Any] = []

    def of(self, value: Any, depth: int) -> Any:
        kind = _type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else _non_finite(value)
        key = id(value)
        seen = self._seen.get(key)
        if seen is not None:
            return {"agjson/cycle": _name(kind)} if seen is _OPEN else seen
        if depth >= self._limit and not issubclass(kind, (str, int, float, bytes)):
            return {"agjson/depth": _name(kind)}
        self._seen[key] = _OPEN
        result: Any
        try:
            if kind is dict:
                result = self._dict(value, depth + 1)
            elif kind is list:
                result = self._list(value, depth + 1)
            else:
                result = self._taken_apart(value, kind, depth + 1)
        except Exception:
            result = _by_repr(value)
        self._seen[key] = result
        return result

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        for key, item in value.items():
            if type(key) is not str or (type(item) not in _PLAIN and self.of(item, depth) is not item):
                return self._copied(value, depth)
        return value

    def _copied(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        for key, item in list(value.items()):
            name = unique = key if type(key) is str else self._key(key)
            count = 1
            while unique in copy:
                count += 1
                unique = f"{name}#{count}"
            copy[unique] = item if type(item) in _PLAIN else self.of(item, depth)
        return copy

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        for item in value:
            if type(item) not in _PLAIN and self.of(item, depth) is not item:
                return [self.of(item, depth) for item in value]
        return value

    def _key(self, key: Any) -> str:
        try:
            if isinstance(key, enum.Enum):
                key = key.value
            if key is None:
                return "null"
            if isinstance(key, bool):
                return "true" if key else "false"
            return str.__str__(key) if isinstance(key, str) else str.__str__(str(key))
        except Exception:
            return _name(_type(key))

    def _taken_apart(self, value: Any, kind: type[Any], depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return int.__index__(value)
        if isinstance(value, float):
            return self.of(float.__float__(value), depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {"agjson/bytes": base64.b64encode(cast("bytes", value)).decode("ascii")}
        if isinstance(value, type):
            return _by_repr(value)
        if isinstance(value, msgspec.Struct):
            return self._of_struct(value, depth)
        if isinstance(value, _TEXTUAL):
            return msgspec.to_builtins(value)
        if isinstance(value, os.PathLike):
            return self.of(os.fspath(cast("os.PathLike[str]", value)), depth)
        if isinstance(value, BaseException):
            return {"agjson/error": _name(kind), "message": _text(value, str)}
        parts = self._parts(value, kind)
        if parts is None:
            return _by_repr(value)
        self._kept.append(parts)
        return self._copied(parts, depth) if _type(parts) is dict else self.of(parts, depth)

    def _parts(self, value: Any, kind: type[Any]) -> Any:
        """What an object consists of as a dict or list, or None if it cannot be taken apart."""
        if isinstance(value, tuple):
            as_dict = getattr(kind, "_asdict", None)
            return _listed(value) if as_dict is None else dict(as_dict(value))
        if isinstance(value, Mapping):
            return _entries(value)
        if isinstance(value, Set):
            return _sorted(_listed(value))
        if isinstance(value, Sequence) and not isinstance(value, range):
            return _listed(value)
        if callable(getattr(value, "model_dump", None)):
            return _of_model(value)
        if dataclasses.is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if hasattr(kind, "__attrs_attrs__"):
            return {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
        if isinstance(value, types.SimpleNamespace):
            return dict(vars(value))
        for name in ("to_dict", "tolist"):
            method: Callable[[], Any] | None = getattr(value, name, None)
            if callable(method):
                return method()
        return None

    def _of_struct(self, value: msgspec.Struct, depth: int) -> Any:
        try:
            plain = msgspec.to_builtins(value, str_keys=True, enc_hook=lambda part: self.of(part, depth))
        except Exception:
            plain = {
                wire: part
                for name, wire in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
                if (part := getattr(value, name)) is not msgspec.UNSET
            }
        self._kept.append(plain)
        return self.of(plain, depth)


def _type(value: object) -> type[Any]:
    return type(value)


def _listed(value: Any) -> list[Any]:
    return list(value)


def _entries(value: Any) -> dict[Any, Any]:
    return dict(value)


def _of_model(value: Any) -> Any:
    """A pydantic model's fields by their wire names; the models of some SDKs omit what was never sent."""
    attempts: list[Callable[[], Any]] = [
        lambda: value.model_dump(mode="json", by_alias=True, warnings=False),
        lambda: value.model_dump(by_alias=True, warnings=False),
        lambda: _declared_fields(value),
    ]
    if callable(getattr(value, "to_dict", None)):
        attempts.insert(0, lambda: value.to_dict(mode="json", warnings=False))
    if _has_non_finite(value, _GLANCE):
        # As JSON, pydantic would write null for it.
        del attempts[:-2]
    for attempt in attempts:
        try:
            return attempt()
        except Exception:
            continue
    return None


def _has_non_finite(value: Any, depth: int) -> bool:
    """Tell whether a model holds NaN or an infinity, not too deep inside."""
    kind = _type(value)
    if kind is float:
        return not math.isfinite(value)
    if kind in _PLAIN or depth == 0:
        return False
    if kind in (list, tuple):
        return any(_has_non_finite(item, depth - 1) for item in value)
    if kind is dict:
        return any(_has_non_finite(item, depth - 1) for item in value.values())
    if hasattr(kind, "model_fields"):
        extra: Any = getattr(value, "__pydantic_extra__", None)
        return _has_non_finite(vars(value), depth - 1) or _has_non_finite(extra, depth - 1)
    return False


def _declared_fields(value: Any) -> dict[str, Any]:
    names: Mapping[str, Any] = getattr(_type(value), "model_fields")  # noqa: B009  # known to pydantic's classes alone
    return {name: getattr(value, name) for name in names}


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=lambda item: (_name(_type(item)), _text(item, repr)))


def _non_finite(value: float) -> dict[str, str]:
    return {"agjson/number": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}


def _by_repr(value: Any) -> dict[str, Any]:
    return {"agjson/repr": _name(_type(value)), "text": _text(value, repr)}


def _text(value: Any, write: Callable[[Any], str]) -> str:
    try:
        text = str.__str__(write(value))
    except Exception as error:
        return f"<no text: {type(error).__name__}>"
    return text if len(text) <= _REPR_LIMIT else text[:_REPR_LIMIT] + "…"


def _name(kind: type[Any]) -> str:
    try:
        return f"{kind.__module__}.{kind.__qualname__}"
    except Exception:
        return "object"
