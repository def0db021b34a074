"""``agjson validate``: each value against one type of the format (spec §2-§4, §7)."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, TypeVar

import msgspec
import typer

from agjson.cli.files import FileArgument, open_input
from agjson.cli.streams import FINDINGS, Streams, command
from agjson.cli.terminal import harmless_json
from agjson.errors import DecodeError
from agjson.wire import (
    decode_answer,
    decode_ask,
    decode_block,
    decode_event,
    decode_input,
    decode_message,
    decode_result,
    match_answer,
)
from agjson.wire._json import members, utf8

__all__ = ["validate"]

_T = TypeVar("_T")


class _Kind(StrEnum):
    EVENT = "event"
    BLOCK = "block"
    MESSAGE = "message"
    INPUT = "input"
    ANSWER = "answer"
    RESULT = "result"


class _Verdict(msgspec.Struct, frozen=True, gc=False):
    line: int
    valid: bool
    error: str | None = None
    path: str | None = None


@command
def validate(
    file: FileArgument = None,
    kind: Annotated[
        _Kind, typer.Option("--as", help="What each value must be. An answer may stand with its ask.")
    ] = _Kind.EVENT,
) -> int:
    """Check each value against the format.

    The check is strict: what a producer must write.

    Prints one line for each value: {"line": ..., "valid": ..., "error": ..., "path": ...}.
    """
    streams = Streams()
    decode = _DECODERS[kind]
    write = msgspec.json.Encoder().encode
    status = 0
    with open_input(file, streams) as source:
        for item in source.items():
            try:
                decode(item.data)
            except DecodeError as error:
                status = FINDINGS
                verdict = _Verdict(item.line, False, _utf8(error.message), _utf8(error.path))
                streams.line(harmless_json(write(verdict)))
            else:
                streams.line(write(_Verdict(item.line, True)))
    return status


def _answer(data: bytes) -> object:
    """An answer by itself, or ``{"answer"}`` or ``{"ask","answer"}``: then the two must agree."""
    found = members(utf8(data), "$")
    if "answer" not in found or "askId" in found:
        return decode_answer(data)
    answer = _within("answer", lambda: decode_answer(bytes(found["answer"])))
    if "ask" in found:
        ask = _within("ask", lambda: decode_ask(bytes(found["ask"])))
        _within("answer", lambda: match_answer(answer, ask))
    return answer


def _within(name: str, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except DecodeError as error:
        raise DecodeError(error.message, f"$.{name}{error.path[1:]}") from None


def _utf8(text: str) -> str:
    """The text with halves of surrogate pairs as escapes: a message may quote what was read."""
    return text.encode("utf-8", errors="backslashreplace").decode()


_DECODERS: dict[_Kind, Callable[[bytes], object]] = {
    _Kind.EVENT: decode_event,
    _Kind.BLOCK: decode_block,
    _Kind.MESSAGE: decode_message,
    _Kind.INPUT: decode_input,
    _Kind.ANSWER: _answer,
    _Kind.RESULT: decode_result,
}
