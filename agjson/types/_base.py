"""What every wire type stands on: the Struct base, optional fields, opaque values.

Rules that hold for every class of this package (spec §0.1, §0.4, §2):

* an optional field with a known type is absent (``None`` in Python) or of its type; ``null`` on the wire is refused;
* an optional field of an opaque type may hold ``null``, so there absent is ``UNSET`` and None is the value ``null``;
* Python names are snake_case, wire names camelCase; ``_meta`` is ``meta`` in Python;
* a list is read-only to type checkers (`ListOf`) and a plain list at run time; lists of strings are ``list[str]``,
  because a ``str`` would pass for a sequence of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NewType, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from agjson.errors import AgJSONError

__all__ = [
    "UNSET",
    "AgMeta",
    "AgProviderMeta",
    "AgStruct",
    "FieldError",
    "FixedStruct",
    "JsonValue",
    "ListOf",
    "Number",
    "Opt",
    "UnsetType",
    "wire_default",
]

_T = TypeVar("_T")

if TYPE_CHECKING:
    # A checker sees ``T | None``: absent is None.
    Opt: TypeAlias = _T | None
    # A checker sees a read-only, covariant sequence.
    ListOf: TypeAlias = Sequence[_T]
    JsonValue: TypeAlias = Mapping[str, "JsonValue"] | Sequence["JsonValue"] | str | int | float | bool | None
else:

    class Opt:
        """``Opt[T]``: absent (None) or a ``T``, never ``null`` (spec §2): msgspec sees plain ``T``."""

        def __class_getitem__(cls, item: Any) -> Any:
            return item

    ListOf = list
    # Any JSON value (spec §0.1), opaque pass-through.
    JsonValue = Any

Number: TypeAlias = int | float
"""The spec's ``number``: an integer or a fraction, never a boolean."""

AgMeta: TypeAlias = dict[str, JsonValue]
"""Host-only side metadata, MCP ``_meta`` (spec §2): keys flat or namespaced, values opaque."""

AgProviderMeta = NewType("AgProviderMeta", dict[str, JsonValue])
"""Replay-load-bearing provider metadata (spec §2, §12): keys echo verbatim. Nominally apart from `AgMeta`."""


class FieldError(AgJSONError, ValueError):
    """A rule between fields is broken (spec §2-§7, §12); raised by construction and, through msgspec, by decoding.

    Attributes:
        field: the wire name of the field that the rule concerns (``"patch"``, ``"parentTurnId"``).
        message: what is wrong, without the field's name.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class AgStruct(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """The base of every wire type: frozen, keyword-only, camelCase on the wire, absent fields omitted (spec §0.4).

    Unknown fields are refused by the fast decoder only to be kept by the careful reader (`agjson.wire`).
    """


if TYPE_CHECKING:

    def wire_default(value: _T) -> _T:
        """Give a field a default for Python callers while the wire requires it: always written, refused if missing."""
        ...

    class FixedStruct(AgStruct, frozen=True, kw_only=True):
        """An `AgStruct` whose `wire_default` fields are filled in for Python callers, yet required on the wire."""

else:

    class _WireDefault:
        __slots__ = ("value",)

        def __init__(self, value):
            self.value = value

    wire_default = _WireDefault

    class _FixedMeta(msgspec.StructMeta):
        # msgspec knows such a field as required, so it always writes it and refuses an object without it; only a call
        # from Python, which decoding never makes, is handed the value.
        def __new__(mcls, name, bases, namespace, **config):
            if "__slots__" in namespace:
                raise TypeError(
                    "a FixedStruct has no msgspec.defstruct subclass: call type(cls)(name, (cls,), members)"
                )
            defaults = {}
            for base in bases:
                defaults.update(getattr(base, "__wire_defaults__", {}))
            for key, value in list(namespace.items()):
                if isinstance(value, _WireDefault):
                    defaults[key] = namespace.pop(key).value
            namespace["__wire_defaults__"] = defaults
            return super().__new__(mcls, name, bases, namespace, **config)

        def __call__(cls, *args, **fields):
            return super().__call__(*args, **{**cls.__wire_defaults__, **fields})

    class FixedStruct(AgStruct, frozen=True, kw_only=True, metaclass=_FixedMeta):
        """An `AgStruct` whose `wire_default` fields are filled in for Python callers, yet required on the wire.

        Derive subclasses by a class statement or by calling ``type(cls)(...)``; `msgspec.defstruct` cannot.
        """
