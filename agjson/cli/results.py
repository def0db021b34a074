"""Stored conversations as input: a folded result, or what ``agjson fold`` prints, or messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agjson.cli.files import open_input, read_all
from agjson.cli.streams import Streams, Unusable
from agjson.errors import DecodeError
from agjson.types import AgMessage, AgReduceResult
from agjson.wire import decode_message, decode_result
from agjson.wire._json import members, utf8

__all__ = ["read_messages", "read_result"]


def read_result(file: Path, streams: Streams) -> AgReduceResult:
    """Read a folded conversation, bare or as ``{"result":…,"needsResync":…}``.

    Raises:
        OSError: the file cannot be opened.
        Unusable: it holds no folded conversation.
    """
    name, items = read_all(file, streams)
    if len(items) != 1:
        raise Unusable(f"{name}: expected one folded conversation, got {len(items)} values")
    try:
        found = members(utf8(items[0].data), "$")
        if "result" in found and bytes(found.get("needsResync", b"")) == b"true":
            streams.note(f"{name}: the fold was parked, so what it missed is missing here too")
        return _result(items[0].data)
    except DecodeError as error:
        raise Unusable(f"{name}:{items[0].line}: {error}") from None


def read_messages(file: Path | None, streams: Streams) -> Sequence[AgMessage]:
    """Read messages: one or more of them, or a folded conversation, whose messages are taken.

    Raises:
        OSError: the file cannot be opened.
        Unusable: a value is neither.
    """
    messages: list[AgMessage] = []
    with open_input(file, streams) as source:
        for item in source.items():
            try:
                if members(utf8(item.data), "$").keys() & {"result", "messages"}:
                    messages += _result(item.data).messages
                else:
                    messages.append(decode_message(item.data, lenient=True))
            except DecodeError as error:
                raise source.unusable(error, item.line) from None
    return messages


def _result(data: bytes) -> AgReduceResult:
    """Read a folded conversation; the paths of errors go from the whole value."""
    found = members(utf8(data), "$")
    if "result" not in found:
        return decode_result(data, lenient=True)
    try:
        return decode_result(bytes(found["result"]), lenient=True)
    except DecodeError as error:
        raise DecodeError(error.message, f"$.result{error.path[1:]}") from None
