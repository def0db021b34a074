"""What each event passes before it goes out: its members are what the format says, so that anyone can read it (§5)."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec

from agjson.errors import UnknownTypeError, ValidationError
from agjson.types import (
    AgInput,
    AgProviderMeta,
    AgStreamEvent,
    AgStruct,
    ExtEvent,
    ReasoningDelta,
    ReasoningOpaqueDelta,
    TextDelta,
    ToolArgsDelta,
    UnknownBlock,
    UnknownEvent,
    is_ext_type,
)
from agjson.wire import declared_class, decode_event, decode_input, encode, from_dict, ingest_event

__all__ = ["check_input", "check_members", "require_text"]


def require_text(value: object, type: str, member: str = "delta") -> None:
    """Refuse what is no text, before anything is kept of it.

    Args:
        value: what should be a text.
        type: the event type that it is for.
        member: the wire name of the member that it is for.

    Raises:
        ValidationError: it is none.
    """
    if not isinstance(value, str):
        raise ValidationError(f"{type}: Expected `str`, got `{value.__class__.__name__}`", f"$.{member}")


def check_members(event: AgStreamEvent) -> None:
    """Refuse an event that nobody could read back: msgspec checks members when it decodes, not when Python constructs.

    Args:
        event: the event as it would go out.

    Raises:
        ValidationError: a member, at any depth, is not of its type; ``path`` names it.
        EncodeError: a value has no JSON form.
    """
    if _is_plain_delta(event):
        return
    if isinstance(event, ExtEvent):
        _check_ext(event)
        return
    text = encode(event)
    try:
        try:
            read: AgStreamEvent | UnknownEvent = decode_event(text)
        except UnknownTypeError:
            # A stored message may hold blocks of a later revision; the comparison finds any other stranger.
            read = ingest_event(text)
        # Encoding makes texts of bytes, and objects of dicts and dataclasses alike.
        if read != event:
            _compare(event, read, "$")
    except UnknownTypeError:
        raise
    except ValidationError as error:
        raise ValidationError(f"{event.type}: {error.message}", error.path) from None


def check_input(ag_input: AgInput) -> None:
    """Refuse an input that nobody could read back; what `check_members` says of events holds for it.

    Args:
        ag_input: the input. Messages in it may hold blocks of a later revision.

    Raises:
        ValidationError: a member, at any depth, is not of its type; ``path`` names it.
        EncodeError: a value has no JSON form.
    """
    try:
        read = decode_input(encode(ag_input))
    except UnknownTypeError:
        read = from_dict(ag_input, as_="input", lenient=True)
    if read != ag_input:
        _compare(ag_input, read, "$")


def _is_plain_delta(event: AgStreamEvent) -> bool:
    """Whether it is a delta of text alone, for which a full check would take longer than all the rest."""
    cls = event.__class__
    if cls is TextDelta or cls is ReasoningDelta:
        delta = cast("TextDelta", event)
        return (
            delta.delta.__class__ is str
            and delta.provider_metadata is None
            and delta.meta is None
            and delta.parent_id is None
            and (cls is TextDelta or cast("ReasoningDelta", event).part_index.__class__ in _PARTS)
        )
    if cls is ToolArgsDelta:
        args = cast("ToolArgsDelta", event)
        return args.delta.__class__ is str and args.meta is None and args.id is None and args.parent_id is None
    if cls is ReasoningOpaqueDelta:
        opaque = cast("ReasoningOpaqueDelta", event)
        return opaque.delta.__class__ is str and opaque.meta is None and opaque.parent_id is None
    return False


_PARTS = frozenset((int, type(None)))


def _check_ext(event: ExtEvent) -> None:
    if not is_ext_type(event.type):
        raise ValidationError(
            f"Invalid ext type {event.type!r}: ext.<vendor>.<key>, lower case, no empty segment", "$.type"
        )
    members: tuple[tuple[str, object], ...] = (
        ("id", event.id),
        ("turnId", event.turn_id),
        ("messageId", event.message_id),
        ("parentId", event.parent_id),
    )
    for name, value in members:
        if value is not None:
            require_text(value, event.type, name)
    meta = cast("object", event.meta)
    if meta is not None and not isinstance(meta, dict):
        raise ValidationError(f"{event.type}: Expected `object`, got `{meta.__class__.__name__}`", "$._meta")
    encode(event)


def _compare(value: object, read: object, path: str) -> None:
    """Compare an object with what its text reads as, but for opaque members, which take any JSON form.

    Raises:
        ValidationError: something is not what it reads as, such as bytes or a dict in the place of a block.
    """
    if isinstance(read, AgStruct):
        cls: type[AgStruct] = declared_class(read)
        if not isinstance(value, cls):
            raise _wrong(cls.__name__, value, path)
        for name, wire_name, opaque in _members(cls):
            child = getattr(value, name)
            other = getattr(read, name)
            if child is other:
                continue
            if opaque:
                _compare_shape(child, other, f"{path}.{wire_name}")
            else:
                _compare(child, other, f"{path}.{wire_name}")
    elif isinstance(read, list):
        _compare_shape(value, cast("object", read), path)
        items, there = cast("list[object]", value), cast("list[object]", read)
        for index, (child, other) in enumerate(zip(items, there, strict=True)):
            _compare(child, other, f"{path}[{index}]")
    elif isinstance(read, dict):
        _compare_shape(value, cast("object", read), path)
        found = cast("Mapping[str, object]", value)
        for key, other in cast("dict[str, object]", read).items():
            if key not in found:
                raise _wrong("str", next(iter(found)), f"{path}.{key}")
            _compare(found[key], other, f"{path}.{key}")
    elif isinstance(read, UnknownBlock):
        if not isinstance(value, UnknownBlock):
            raise UnknownTypeError(f"Unknown block type {read.type!r}", f"{path}.type", read.type)
    elif value != read or isinstance(value, bool) is not isinstance(read, bool):
        raise _wrong(read.__class__.__name__, value, path)


_ARRAYS: tuple[type, ...] = (list, tuple)


def _compare_shape(value: object, read: object, path: str) -> None:
    """Refuse what is written as an array or object without being one in Python, such as a set."""
    if isinstance(read, list) and not isinstance(value, _ARRAYS):
        raise _wrong("array", value, path)
    if isinstance(read, dict) and not isinstance(value, Mapping):
        raise _wrong("object", value, path)


def _wrong(expected: str, value: object, path: str) -> ValidationError:
    return ValidationError(f"Expected `{expected}`, got `{value.__class__.__name__}`", path)


@cache
def _members(cls: type[AgStruct]) -> tuple[tuple[str, str, bool], ...]:
    """The members by their names in Python and on the wire, each with whether it is opaque."""
    return tuple((each.name, each.encode_name, _is_opaque(each.type)) for each in msgspec.structs.fields(cls))


def _is_opaque(tp: Any) -> bool:
    return tp in (Any, AgProviderMeta) or any(
        _is_opaque(arg) for arg in typing.get_args(tp) if not isinstance(arg, str)
    )
