"""One text for one JSON value, so that equal values can be compared and authenticated as bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any, cast

from agjson.errors import EncodeError

__all__ = ["canonical"]

# Up to here a float holds every whole number.
_EXACT = 2**53


def canonical(value: object) -> bytes:
    """The canonical JSON text of plain data, by the rules of RFC 8785 but for two of them.

    Keys are sorted by their UTF-16 code units, numbers are written as ECMAScript writes them (``1.0`` is ``1``), there
    is no space. Whole numbers beyond 2**53 are written digit by digit, so that two of them never become one; RFC 8785
    would round them. So texts are equal where numbers are equal. Half a surrogate pair is written as its escape; RFC
    8785 refuses it.

    Args:
        value: dicts with string keys, lists or tuples, strings, numbers, booleans, None.

    Raises:
        EncodeError: anything else, NaN or infinity, or nesting over the limit.
    """
    parts: list[str] = []
    try:
        _write(value, parts)
        return "".join(parts).encode()
    except RecursionError:
        raise EncodeError("nested too deep") from None


def _write(value: object, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(_string(value))
    elif value is None or value is True or value is False:
        out.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, int):
        out.append(_integer(value))
    elif isinstance(value, float):
        out.append(_number(value))
    elif isinstance(value, (list, tuple)):
        out.append("[")
        for index, each in enumerate(cast("list[object]", value)):
            if index:
                out.append(",")
            _write(each, out)
        out.append("]")
    elif isinstance(value, Mapping):
        _write_object(cast("Mapping[Any, object]", value), out)
    else:
        raise EncodeError(f"{type(value).__name__} has no JSON form")


def _write_object(value: Mapping[Any, object], out: list[str]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise EncodeError(f"a key of an object must be a string, not {type(key).__name__}")
    out.append("{")
    # In ASCII the order of the characters is that of the units.
    order = None if all(map(str.isascii, value)) else _units
    for index, key in enumerate(sorted(value, key=order)):
        if index:
            out.append(",")
        out += (_string(key), ":")
        _write(value[key], out)
    out.append("}")


def _units(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _string(value: str) -> str:
    text = encode_basestring(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def _integer(value: int) -> str:
    try:
        return str(value)
    except ValueError as error:  # more digits than Python writes
        raise EncodeError(str(error)) from None


def _number(value: float) -> str:
    """As ECMAScript's Number::toString."""
    if not math.isfinite(value):
        raise EncodeError(f"{value} has no JSON form")
    if value == 0 or abs(value) >= _EXACT:
        return str(int(value))
    if value < 0:
        return "-" + _number(-value)
    mantissa, _, power = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = len(whole) + int(power or 0) if whole != "0" else int(power or 0) - (len(fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point:
        return digits + "0" * (point - count)
    if point > 0:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    return (digits if count == 1 else f"{digits[0]}.{digits[1:]}") + f"e{point - 1}"
