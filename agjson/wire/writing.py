"""Writing the wire: compact JSON, absent fields omitted, unknown fields verbatim, never NaN, never half a character."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeGuard

import msgspec
import msgspec.msgpack

from agjson.errors import DecodeError, EncodeError
from agjson.types import ExtEvent, ReasoningDelta, TextDelta, ToolArgsDelta, UnknownBlock, UnknownEvent
from agjson.wire._extras import NAMELESS_KEY
from agjson.wire._json import plain


def encode(value: object) -> bytes:
    """Write an event, block, message, input, result, any record, or plain data holding them, as compact JSON.

    Unknown fields that were read go out byte for byte (spec §0.2); integers of any size are exact; a lone surrogate is
    written as its JSON escape. What JSON has no form for and msgspec has: bytes as base64, dates and times in ISO 8601,
    sets and tuples as arrays, decimals and UUIDs as strings, dataclasses as objects, enums by their value.

    Args:
        value: what to write.

    Returns:
        UTF-8 bytes without a newline.

    Raises:
        EncodeError: NaN or infinity, an object that has no JSON form, an integer of more digits than Python writes
            (4300), nesting over the limit, or data that holds itself; ``path`` names the value, but for the last two.
    """
    try:
        text = _ENCODE(value)
    except UnicodeEncodeError:
        text = _encode_surrogates(value)
    except RecursionError:
        raise EncodeError(_TOO_DEEP) from None
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise EncodeError(str(error), _place_of_failure(value)) from None
    # msgspec writes null for NaN and infinities. The search for it would cost a delta, which is most of any stream, as
    # much as its encoding; a delta without metadata holds no number that may be a fraction.
    if type(value) is TextDelta:
        if value.meta is None and value.provider_metadata is None:
            return text
    elif type(value) is ReasoningDelta:
        if value.meta is None and value.provider_metadata is None and value.part_index is None:
            return text
    elif type(value) is ToolArgsDelta and value.meta is None:
        return text
    if text.rfind(b"null") < 0:  # more than twice as fast as `find`
        return text
    if _may_be_non_finite(value):
        _refuse_non_finite(value)
    return text.replace(NAMELESS_KEY, b"")


def to_dict(value: object) -> Any:
    """The value as plain Python data, as the wire has it: camelCase keys, absent fields absent.

    Args:
        value: as for `encode`; a list of events gives a list.

    Raises:
        EncodeError: as `encode`; or an unknown field, which is kept unread, holds a number that Python cannot.
    """
    text = encode(value)
    try:
        return plain(text, "$")
    except DecodeError as error:
        raise EncodeError(error.message, error.path) from None


def _hook(value: object) -> Any:
    if isinstance(value, ExtEvent):
        return value.as_members()
    if isinstance(value, (UnknownEvent, UnknownBlock)):
        return msgspec.Raw(value.raw)
    if _is_mapping(value):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


_TOO_DEEP = "nested too deep, or holds itself"
_ENCODE = msgspec.json.Encoder(enc_hook=_hook).encode


def _encode_surrogates(value: object) -> bytes:
    try:
        pieces = _pieces(msgspec.to_builtins(value, enc_hook=_hook, builtin_types=(msgspec.Raw,)))
        # Only half a character is no UTF-8, and in a JSON text the replacement is its escape.
        return "".join(pieces).encode("utf-8", "backslashreplace")
    except RecursionError:
        raise EncodeError(_TOO_DEEP) from None
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise EncodeError(str(error), _place_of_failure(value)) from None


class _Piece(str):
    """A part of a JSON text, apart from the strings in the data."""

    __slots__ = ()


def _pieces(value: Any) -> Iterator[str]:
    """The JSON text of plain data, without recursion: what could be read can be written, however deep it is."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Piece):
            yield item
        elif isinstance(item, str):
            yield json.dumps(item, ensure_ascii=False)
        elif isinstance(item, msgspec.Raw):
            yield str(memoryview(item), "utf-8")
        elif _is_mapping(item):
            yield "{"
            waiting.append(_Piece("}"))
            for place, (key, child) in reversed(list(enumerate(item.items()))):
                name = json.dumps(str(key), ensure_ascii=False)
                waiting += (child, _Piece(f",{name}:" if place else f"{name}:"))
        elif _is_sequence(item):
            yield "["
            waiting.append(_Piece("]"))
            for place, child in reversed(list(enumerate(item))):
                waiting += (child, _Piece("," if place else ""))
        else:
            yield msgspec.json.encode(item).decode()


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, (list, tuple, set, frozenset))


# What is written as it is. Every other object stands for something else (a dataclass, an enum), perhaps for a float.
_WRITTEN = frozenset((str, int, bool, type(None), bytes, msgspec.Raw, msgspec.UnsetType, UnknownEvent, UnknownBlock))


# MessagePack writes a float as this byte and its own eight, whose exponent has all bits set in NaN and infinities.
_FLOAT = 0xCB
_NON_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]").search
_PACK = msgspec.msgpack.Encoder(enc_hook=_hook).encode


def _may_be_non_finite(value: object) -> bool:
    """Whether a closer look is due: null is common, and that look takes fifty times as long as the encoding."""
    try:
        packed = _PACK(value)
        return _FLOAT in packed and _NON_FINITE(packed) is not None
    except (TypeError, ValueError, OverflowError, RecursionError):  # lone surrogates, an integer over 64 bits
        return True


def _refuse_non_finite(value: object, above: str = "$") -> None:
    for path, item in _leaves(value, above):
        if isinstance(item, float):
            if not math.isfinite(item):
                raise EncodeError(f"{item} has no JSON form", path)
        elif type(item) not in _WRITTEN:
            _refuse_non_finite(msgspec.to_builtins(item, enc_hook=_hook), path)


def _place_of_failure(value: object) -> str:
    """The path of the value that cannot be written."""
    for path, item in _leaves(value, "$"):
        if type(item) not in _WRITTEN or type(item) is int:
            try:
                _ENCODE(item)
            except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
                return path
    return "$"  # a key


def _leaves(value: object, path: str) -> Iterator[tuple[str, Any]]:
    """Every value that holds no others, with its path: without recursion, and once through data that holds itself."""
    waiting: list[tuple[str, Any]] = [(path, value)]
    seen: set[int] = set()
    while waiting:
        path, item = waiting.pop()
        children = _children(item)
        if children is None:
            yield path, item
        elif id(item) not in seen:
            seen.add(id(item))
            waiting.extend((path + step, child) for step, child in reversed(children))


def _children(value: Any) -> list[tuple[str, Any]] | None:
    """What a container holds, with the step of the path that leads to it; None for anything else."""
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        return [(f".{wire_name}", getattr(value, name)) for name, wire_name in names]
    if isinstance(value, ExtEvent):
        value = value.as_members()
    if _is_mapping(value):
        return [(f".{key}", item) for key, item in value.items()]
    if _is_sequence(value):
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    return None
