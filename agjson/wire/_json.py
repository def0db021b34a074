"""Splitting JSON text into its members and elements without losing a byte of them.

msgspec does the work where it can. It refuses a text with a lone surrogate escape (half an emoji, which producers in
the field do send), and then the standard library's decoder finds where each value begins and ends.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

import msgspec

from agjson.errors import DecodeError, ValidationError

Text: TypeAlias = bytes | bytearray | memoryview | msgspec.Raw
"""A JSON text, or a part of one, in UTF-8."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_SPACE = re.compile(r"[ \t\n\r]*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
TOO_DEEP = "nested too deep"
_SHOWN = 100
_LF, _CR = b"\n\r"


def utf8(data: str | bytes | bytearray | memoryview) -> bytes:
    """The text as bytes that are known to be UTF-8; raises `DecodeError` when they are not."""
    try:
        if isinstance(data, str):
            return data.encode()
        text = bytes(data)
        str(text, "utf-8")
        return text
    except UnicodeEncodeError as error:
        raise DecodeError(f"half a surrogate pair, not escaped (character {error.start})") from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"invalid UTF-8 (byte {error.start})") from None


def members(raw: Text, path: str) -> dict[str, msgspec.Raw]:
    """The members of an object, each with its own text; of a repeated key the last one wins."""
    try:
        return _MEMBERS.decode(raw)
    except msgspec.ValidationError:
        raise ValidationError(f"Expected `object`, got `{kind(raw)}`", path) from None
    except RecursionError:
        raise DecodeError(TOO_DEEP, path) from None
    except msgspec.DecodeError as error:
        return {key: msgspec.Raw(value) for key, value in _split(raw, "{", path, error)}


def elements(raw: Text, path: str) -> list[msgspec.Raw]:
    """The elements of an array, each with its own text."""
    try:
        return _ELEMENTS.decode(raw)
    except msgspec.ValidationError:
        raise ValidationError(f"Expected `array`, got `{kind(raw)}`", path) from None
    except RecursionError:
        raise DecodeError(TOO_DEEP, path) from None
    except msgspec.DecodeError as error:
        return [msgspec.Raw(value) for _, value in _split(raw, "[", path, error)]


def one_line(raw: Text) -> bytes:
    """The text of a value as it is kept: without space around it, and every line break in it a space.

    In valid JSON a line break is always space between tokens. One value on one line is what JSON Lines need.
    """
    text = bytes(raw).strip(b" \t\r\n")
    if _LF in text or _CR in text:
        text = text.replace(b"\n", b" ").replace(b"\r", b" ")
    return text


def joined(found: Mapping[str, Text]) -> bytes:
    """The members as text, without the braces; a key that UTF-8 cannot hold is escaped."""
    return b",".join(b"%b:%b" % (_key(key), bytes(raw)) for key, raw in found.items())


def _key(key: str) -> bytes:
    try:
        return msgspec.json.encode(key)
    except UnicodeEncodeError:
        return json.dumps(key).encode()


def plain(raw: Text, path: str) -> Any:
    """Any JSON value as Python data, lone surrogates kept; refuses NaN, infinities and numbers beyond a float."""
    try:
        return msgspec.json.decode(raw)
    except RecursionError:
        raise DecodeError(TOO_DEEP, path) from None
    except msgspec.ValidationError as error:  # a number out of range
        raise ValidationError(*located(error, raw, path)) from None
    except msgspec.DecodeError as error:
        return _standard(raw, path, error)


def kind(raw: Text) -> str:
    """The JSON name of the value's type, for messages."""
    first = bytes(memoryview(raw)[:64]).lstrip()[:1]
    names = {b"{": "object", b"[": "array", b'"': "str", b"t": "bool", b"f": "bool", b"n": "null"}
    return names.get(first, "number")


def shown(value: object) -> str:
    """A value in words for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def located(error: Exception, raw: Text, path: str) -> tuple[str, str]:
    """A msgspec error about ``raw`` as its message and its place, where ``path`` is that of ``raw``."""
    message, separator, place = str(error).rpartition(" - at `$")
    if not separator:
        return str(error), path
    if "[...]" in place:
        return message, _place_of_number(raw, path)
    return message, path + place.removesuffix("`")


def _place_of_number(raw: Text, path: str) -> str:
    """Where in a value the number is that Python cannot hold; msgspec leaves the keys out of its paths."""
    while True:
        shape = kind(raw)
        children: list[tuple[str, msgspec.Raw]] = []
        if shape == "object":
            children = [(f"{path}.{key}", child) for key, child in members(raw, path).items()]
        elif shape == "array":
            children = [(f"{path}[{index}]", child) for index, child in enumerate(elements(raw, path))]
        for step, child in children:
            try:
                msgspec.json.decode(child)
            except msgspec.ValidationError:
                path, raw = step, child
                break
        else:
            return path


def _standard(raw: Text, path: str, cause: msgspec.DecodeError) -> Any:
    text = str(raw, "utf-8")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise DecodeError(TOO_DEEP, path) from None
    except json.JSONDecodeError as error:
        # Where half a character stands, msgspec may have meant that, and not what is wrong.
        place = f" (character {error.pos})" if error.doc else ""
        words = f"JSON is malformed: {error.msg}{place}" if _HALF.search(text) else str(cause)
        raise DecodeError(words, path) from None
    except ValueError as error:  # a number out of range, or of too many digits
        raise ValidationError(str(error), path) from None


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is no number", "", 0)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("Number out of range")
    return number


# Numbers stay text: what becomes of one is for the reader of its field to say.
_SCAN = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=str, parse_float=str)


def _split(raw: Text, opening: str, path: str, cause: msgspec.DecodeError) -> list[tuple[str, bytes]]:
    """The (key, text) pairs of an object, or the texts of an array with empty keys, by the standard scanner."""
    text = str(raw, "utf-8")
    closing = {"{": "}", "[": "]"}[opening]
    pairs: list[tuple[str, bytes]] = []
    try:
        at = _skip(text, 0)
        if text[at] != opening:
            _standard(raw, path, cause)  # malformed, or of another type
            raise ValidationError(f"Expected `{'object' if opening == '{' else 'array'}`, got `{kind(raw)}`", path)
        at = _skip(text, at + 1)
        if text[at] == closing:
            _end(text, at + 1)
            return pairs
        while True:
            key = ""
            if opening == "{":
                if text[at] != '"':
                    raise ValueError
                key, end = _SCAN.raw_decode(text, at)
                at = _skip(text, end)
                if text[at] != ":":
                    raise ValueError
                at = _skip(text, at + 1)
            _, end = _SCAN.raw_decode(text, at)
            pairs.append((key, text[at:end].encode()))
            at = _skip(text, end)
            if text[at] == closing:
                _end(text, at + 1)
                return pairs
            if text[at] != ",":
                raise ValueError
            at = _skip(text, at + 1)
    except RecursionError:
        raise DecodeError(TOO_DEEP, path) from None
    except DecodeError:
        raise
    except (ValueError, IndexError):
        _standard(raw, path, cause)  # finds the words
        raise DecodeError(str(cause), path) from None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _end(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise ValueError
