"""Unknown fields: kept byte for byte on an instance of a subclass made for just those names (spec §0.2).

A Struct cannot hold a field that it does not declare, so an object with unknown fields becomes an instance of a
subclass which declares them as raw JSON. The subclass encodes them verbatim and is still an instance of its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from agjson.types import AgStruct

_S = TypeVar("_S", bound=AgStruct)

# A hostile producer can send any number of names; the least recently used subclass is forgotten.
_CACHED_CLASSES = 512


def with_extra_fields(cls: type[_S], known: Mapping[str, Any], extra: Mapping[str, msgspec.Raw]) -> _S:
    """An instance of ``cls`` that also carries ``extra`` (wire name to raw JSON); ``known`` goes by Python name."""
    subclass: Any = _subclass(cls, tuple(extra))
    values = {f"extra_{index}": raw for index, raw in enumerate(extra.values())}
    made: _S = subclass(**known, **values)
    return made


def extra_fields(value: object) -> dict[str, msgspec.Raw]:
    """The fields of a decoded object that this revision of the format does not declare, as raw JSON by wire name.

    Args:
        value: an event, block, message or other wire object; anything else has no extra fields.

    Returns:
        Wire name to raw JSON, in the order read; empty for an object of declared fields only.
    """
    names: tuple[str, ...] = getattr(type(value), "__agjson_extra__", ())
    return {name: getattr(value, f"extra_{index}") for index, name in enumerate(names)}


def declared_class(value: object) -> type[Any]:
    """The class of this library that ``value`` is an instance of, whatever unknown fields it carries."""
    cls = type(value)
    return cls.__base__ if "__agjson_extra__" in cls.__dict__ and cls.__base__ is not None else cls


@lru_cache(maxsize=_CACHED_CLASSES)
def _subclass(cls: type[_S], names: tuple[str, ...]) -> type[_S]:
    fields = {f"extra_{index}": msgspec.field(name=name) for index, name in enumerate(names)}
    namespace: dict[str, Any] = {
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        "__annotations__": dict.fromkeys(fields, msgspec.Raw),
        "__agjson_extra__": names,
        "__reduce__": _reduce,
        **fields,
    }
    config = cls.__struct_config__
    # The metaclass itself, because some classes have one of their own, which `msgspec.defstruct` does not derive from.
    make = cast("Any", type(cls))
    subclass: type[_S] = make(
        cls.__name__, (cls,), namespace, tag_field=config.tag_field, tag=config.tag, frozen=True, kw_only=True
    )
    return subclass


def _reduce(self: Any) -> tuple[Any, ...]:
    """Copying and pickling name the declared class: the subclass cannot be imported."""
    cls = declared_class(self)
    known = {name: getattr(self, name) for name in cls.__struct_fields__}
    extra = {name: bytes(raw) for name, raw in extra_fields(self).items()}
    return _restore, (cls, known, extra)


def _restore(cls: type[Any], known: dict[str, Any], extra: dict[str, bytes]) -> Any:
    return with_extra_fields(cls, known, {name: msgspec.Raw(raw) for name, raw in extra.items()})
