"""Unknown fields: kept byte for byte on an instance of a subclass made for them (spec §0.2).

A Struct cannot hold a field that it does not declare, so an object with unknown fields becomes an instance of a
subclass which declares one more, raw JSON under the name of the first of them. The others ride inside it: msgspec
copies raw JSON as it is, so ``1,"b":2`` under the name ``a`` is written as ``"a":1,"b":2``. One field, whatever the
number of unknown ones, because making a class takes time quadratic in its fields.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from agjson.types import AgStruct
from agjson.wire._json import joined, members, one_line

_S = TypeVar("_S", bound=AgStruct)

# A hostile producer can send any number of names, of any length; the least recently used subclass is forgotten.
_CACHED_CLASSES = 512
_LONGEST_NAME = 64

# The name of the field where no unknown field has a name that msgspec can write: `encode` takes it out again. Nobody
# can guess it, so no text holds it by design, and as `null` is part of it `encode` meets it where it looks for that.
_NAMELESS = f"null-{os.urandom(8).hex()}"
NAMELESS_KEY = f'"{_NAMELESS}":'.encode()


def with_extra_fields(cls: type[_S], known: Mapping[str, Any], extra: Mapping[str, msgspec.Raw]) -> _S:
    """An instance of ``cls`` that also carries ``extra`` (wire name to raw JSON); ``known`` goes by Python name."""
    name = next((name for name in extra if _is_plain(name)), _NAMELESS)
    packed = len(extra) > 1 or name is _NAMELESS
    if packed:
        rest = joined({other: raw for other, raw in extra.items() if other != name})
        text = rest if name is _NAMELESS else b"%b,%b" % (extra[name], rest)
    else:
        text = bytes(extra[name])
    subclass: Any = _subclass(cls, name, packed)
    made: _S = subclass(**known, extra_fields_=msgspec.Raw(one_line(text)))
    return made


def extra_fields(value: object) -> dict[str, msgspec.Raw]:
    """The fields of a decoded object that this revision of the format does not declare, as raw JSON by wire name.

    Args:
        value: an event, block, message or other wire object; anything else has no extra fields.

    Returns:
        Wire name to raw JSON; empty for an object of declared fields only.
    """
    name: str | None = getattr(type(value), "__agjson_extra__", None)
    if name is None:
        return {}
    raw: msgspec.Raw = getattr(value, "extra_fields_")  # noqa: B009  # no declared class has it
    if not getattr(type(value), "__agjson_packed__"):  # noqa: B009
        return {name: raw}
    return members(b"{%b}" % (raw if name == _NAMELESS else joined({name: raw})), "$")


def declared_class(value: object) -> type[Any]:
    """The class of this library that ``value`` is an instance of, whatever unknown fields it carries."""
    cls = type(value)
    return cls.__base__ if "__agjson_extra__" in cls.__dict__ and cls.__base__ is not None else cls


def _is_plain(name: str) -> bool:
    """Whether msgspec can write the name as it is: no quote, no backslash, no control character, no half character."""
    return len(name) <= _LONGEST_NAME and name.isprintable() and '"' not in name and "\\" not in name


@lru_cache(maxsize=_CACHED_CLASSES)
def _subclass(cls: type[_S], name: str, packed: bool) -> type[_S]:
    namespace: dict[str, Any] = {
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        "__annotations__": {"extra_fields_": msgspec.Raw},
        "__agjson_extra__": name,
        "__agjson_packed__": packed,
        "__reduce__": _reduce,
        "__eq__": _equal,
        "__hash__": _hash,
        "extra_fields_": msgspec.field(name=name),
    }
    config = cls.__struct_config__
    # The metaclass itself, because some classes have one of their own, which `msgspec.defstruct` does not derive from.
    make = cast("Any", type(cls))
    subclass: type[_S] = make(
        cls.__name__, (cls,), namespace, tag_field=config.tag_field, tag=config.tag, frozen=True, kw_only=True
    )
    return subclass


def _parts(value: Any) -> tuple[type[Any], dict[str, Any], dict[str, bytes]]:
    cls = declared_class(value)
    known = {name: getattr(value, name) for name in cls.__struct_fields__}
    return cls, known, {name: bytes(raw) for name, raw in extra_fields(value).items()}


def _equal(self: Any, other: object) -> Any:
    """Equal fields, known and unknown: the subclass itself may have been forgotten and made again in between."""
    if declared_class(self) is not declared_class(other):
        return NotImplemented
    return _parts(self) == _parts(other)


def _hash(self: Any) -> int:
    cls, known, extra = _parts(self)
    return hash((cls, *known.values(), *sorted(extra.items())))


def _reduce(self: Any) -> tuple[Any, ...]:
    """Copying and pickling name the declared class: the subclass cannot be imported."""
    return _restore, _parts(self)


def _restore(cls: type[Any], known: dict[str, Any], extra: dict[str, bytes]) -> Any:
    return with_extra_fields(cls, known, {name: msgspec.Raw(raw) for name, raw in extra.items()})
