"""What stands beside the unions: vendor extensions, and events and blocks of unknown types (spec §0.2, §12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NoReturn, dataclass_transform

from ._base import AgMeta, FieldError, JsonValue, Opt
from .names import ENVELOPE_FIELDS, check_ext_type

__all__ = ["ExtEvent", "UnknownBlock", "UnknownEvent"]


@dataclass_transform(frozen_default=True)
class _Frozen:
    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"immutable type: '{type(self).__name__}'")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"immutable type: '{type(self).__name__}'")

    def _values(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self.__match_args__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Frozen) or type(self) is not type(other):
            return NotImplemented
        return all(a == b for a, b in zip(self._values(), other._values(), strict=True))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self.__match_args__, self._values(), strict=True))
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), tuple(self._values()))


class ExtEvent(_Frozen):
    """A vendor extension, ``ext.<vendor>.<key>``; live only, allowed in any profile (spec §12, §9).

    The constructor takes the members as they ride on the wire and leaves the name unchecked, because a consumer accepts
    more than a producer may emit. Producers use `embed`.

    Attributes:
        type: the wire type.
        seq: the ordinal within one invoke, from 0 without gaps (INV-SEQ).
        id: an id of the event's own.
        turn_id: the owning turn.
        message_id: the open message that it attaches to.
        parent_id: the entity that encloses it.
        meta: host-only metadata.
        payload: every other wire member, ``value`` and ``shadowed`` included as they ride.
    """

    __slots__ = ("id", "message_id", "meta", "parent_id", "payload", "seq", "turn_id", "type")
    __match_args__ = ("type", "seq", "payload", "id", "turn_id", "message_id", "parent_id", "meta")

    type: str
    seq: int
    payload: Mapping[str, JsonValue]
    id: Opt[str]
    turn_id: Opt[str]
    message_id: Opt[str]
    parent_id: Opt[str]
    meta: Opt[AgMeta]

    def __init__(
        self,
        type: str,
        seq: int,
        payload: Mapping[str, JsonValue] | None = None,
        id: str | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        parent_id: str | None = None,
        meta: AgMeta | None = None,
    ) -> None:
        """Hold the members as given.

        Args:
            type: the wire type, which begins with ``ext.``.
            seq: the ordinal.
            payload: the members beside the envelope.
            id: an id of the event's own.
            turn_id: the owning turn.
            message_id: the open message that it attaches to.
            parent_id: the entity that encloses it.
            meta: host-only metadata.

        Raises:
            FieldError: the type lacks the prefix, or the payload names a member of the envelope.
        """
        if not type.startswith("ext."):
            raise FieldError("type", f"expected `ext.<vendor>.<key>`, got `{type}`")
        payload = dict(payload) if payload else {}
        for name in ENVELOPE_FIELDS:
            if name in payload:
                raise FieldError(name, "belongs to the envelope; ExtEvent.embed moves it under `shadowed`")
        put = object.__setattr__
        put(self, "type", type)
        put(self, "seq", seq)
        put(self, "payload", payload)
        put(self, "id", id)
        put(self, "turn_id", turn_id)
        put(self, "message_id", message_id)
        put(self, "parent_id", parent_id)
        put(self, "meta", meta)

    @classmethod
    def embed(
        cls,
        type: str,
        payload: JsonValue,
        *,
        seq: int,
        id: str | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        parent_id: str | None = None,
        meta: AgMeta | None = None,
    ) -> ExtEvent:
        """Make the event of any payload without losing a byte of it (spec §12 payload embedding).

        An object is spread into the event; anything else rides under ``value``. Keys that the envelope owns move under
        ``shadowed``, and then the payload's own ``shadowed`` moves there too.

        Args:
            type: the wire type, in a vendor namespace that the caller owns.
            payload: any JSON value.
            seq: the ordinal.
            id: an id of the event's own.
            turn_id: the owning turn.
            message_id: the open message that it attaches to.
            parent_id: the entity that encloses it.
            meta: host-only metadata.

        Raises:
            FieldError: the name breaks the rule of `check_ext_type`.
        """
        check_ext_type(type)
        members: dict[str, JsonValue] = dict(payload) if isinstance(payload, Mapping) else {"value": payload}
        shadowed: dict[str, JsonValue] = {name: members.pop(name) for name in ENVELOPE_FIELDS if name in members}
        if shadowed:
            if "shadowed" in members:
                shadowed["shadowed"] = members["shadowed"]
            members["shadowed"] = shadowed
        return cls(type, seq, members, id, turn_id, message_id, parent_id, meta)

    def as_members(self) -> dict[str, JsonValue]:
        """The event as a plain object with its wire names: the envelope, absent members left out, then the payload."""
        members: dict[str, JsonValue] = {"type": self.type, "seq": self.seq}
        for name, value in (
            ("id", self.id),
            ("turnId", self.turn_id),
            ("messageId", self.message_id),
            ("parentId", self.parent_id),
            ("_meta", self.meta),
        ):
            if value is not None:
                members[name] = value
        members.update(self.payload)
        return members

    @property
    def vendor(self) -> str:
        """The segment after ``ext``: whose namespace it is (spec §12)."""
        return self.type.split(".", 2)[1]

    @property
    def key(self) -> str:
        """Everything after the vendor segment, dots included; empty when there is none."""
        return self.type.partition(".")[2].partition(".")[2]


class UnknownEvent(_Frozen):
    """An event of a type that this revision does not define, as lenient reading returns it (spec §0.2).

    It re-encodes verbatim, and the fold takes it for its ordinal.

    Attributes:
        type: the wire type.
        seq: the ordinal.
        raw: the event's JSON text in UTF-8.
    """

    __slots__ = ("raw", "seq", "type")
    __match_args__ = ("type", "seq", "raw")

    type: str
    seq: int
    raw: bytes

    def __init__(self, type: str, seq: int, raw: bytes) -> None:
        """Hold the text as given."""
        put = object.__setattr__
        put(self, "type", type)
        put(self, "seq", seq)
        put(self, "raw", raw)

    def __hash__(self) -> int:
        return hash((self.type, self.seq, self.raw))


class UnknownBlock(_Frozen):
    """A block of a kind that this revision does not define, as lenient reading keeps it in its place (spec §0.2).

    Attributes:
        type: the wire type.
        raw: the block's JSON text in UTF-8, re-encoded verbatim.
    """

    __slots__ = ("raw", "type")
    __match_args__ = ("type", "raw")

    type: str
    raw: bytes

    def __init__(self, type: str, raw: bytes) -> None:
        """Hold the text as given."""
        put = object.__setattr__
        put(self, "type", type)
        put(self, "raw", raw)

    def __hash__(self) -> int:
        return hash((self.type, self.raw))
