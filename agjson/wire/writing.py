"""Writing the wire: compact JSON, absent fields omitted, unknown fields verbatim, never NaN, never half a character."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeGuard

import msgspec

from agjson.errors import EncodeError
from agjson.types import ExtEvent, ReasoningDelta, TextDelta, UnknownBlock, UnknownEvent


def encode(value: object) -> bytes:
    """Write an event, block, message, input, result, any record, or plain data holding them, as compact JSON.

    Unknown fields that were read go out byte for byte (spec §0.2); integers of any size are exact; a lone surrogate is
    written as its JSON escape.

    Args:
        value: what to write.

    Returns:
        UTF-8 bytes without a newline.

    Raises:
        EncodeError: NaN or infinity, an object that has no JSON form, or nesting over the limit.
    """
    try:
        text = _ENCODE(value)
    except UnicodeEncodeError:
        text = _encode_surrogates(value)
    except RecursionError:
        raise EncodeError("nested too deep") from None
    except (TypeError, msgspec.MsgspecError) as error:
        raise EncodeError(str(error)) from None
    # msgspec writes null for NaN and infinities. The search for it would cost a delta, which is most of any stream, as
    # much as its encoding: a delta without metadata holds no number beside its ordinal.
    if type(value) in _DELTAS and value.meta is value.provider_metadata is None:  # type: ignore[attr-defined]
        return text
    if text.find(b"null") >= 0:
        _refuse_non_finite(value)
    return text


def to_dict(value: object) -> Any:
    """The value as plain Python data, as the wire has it: camelCase keys, absent fields absent.

    Args:
        value: as for `encode`; a list of events gives a list.

    Raises:
        EncodeError: as `encode`.
    """
    text = encode(value)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # a lone surrogate
        return json.loads(text)


def _hook(value: object) -> Any:
    if isinstance(value, ExtEvent):
        return value.as_members()
    if isinstance(value, (UnknownEvent, UnknownBlock)):
        return msgspec.Raw(value.raw)
    if _is_mapping(value):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


_DELTAS = frozenset((TextDelta, ReasoningDelta))
_ENCODE = msgspec.json.Encoder(enc_hook=_hook).encode


def _encode_surrogates(value: object) -> bytes:
    try:
        return "".join(_pieces(msgspec.to_builtins(value, enc_hook=_hook, builtin_types=(msgspec.Raw,)))).encode()
    except RecursionError:
        raise EncodeError("nested too deep") from None


def _pieces(value: Any) -> Iterator[str]:
    """JSON text of plain data; a string that UTF-8 cannot hold is written in ASCII with escapes."""
    if isinstance(value, msgspec.Raw):
        yield str(memoryview(value), "utf-8")
    elif isinstance(value, str):
        yield json.dumps(value, ensure_ascii=not _is_utf8(value))
    elif _is_mapping(value):
        separator = "{"
        for key, item in value.items():
            yield f"{separator}{json.dumps(str(key), ensure_ascii=not _is_utf8(str(key)))}:"
            yield from _pieces(item)
            separator = ","
        yield "}" if separator == "," else "{}"
    elif _is_sequence(value):
        separator = "["
        for item in value:
            yield separator
            yield from _pieces(item)
            separator = ","
        yield "]" if separator == "," else "[]"
    else:
        yield msgspec.json.encode(value).decode()


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, (list, tuple, set, frozenset))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_non_finite(value: object, path: str = "$") -> None:
    for place, item in _floats(value, path):
        if not math.isfinite(item):
            raise EncodeError(f"{item} has no JSON form", place)


def _floats(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, msgspec.Struct):
        for name, wire_name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            yield from _floats(getattr(value, name), f"{path}.{wire_name}")
    elif isinstance(value, ExtEvent):
        yield from _floats(value.as_members(), path)
    elif _is_mapping(value):
        for key, item in value.items():
            yield from _floats(item, f"{path}.{key}")
    elif _is_sequence(value):
        for index, item in enumerate(value):
            yield from _floats(item, f"{path}[{index}]")
