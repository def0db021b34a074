"""Stored conversations as input: a folded result, or what ``agjson fold`` prints, or messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agjson.cli.files import open_input, read_all
from agjson.cli.kinds import kind_of
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
        _note_parked(items[0].data, name, streams)
        return _result(items[0].data)
    except DecodeError as error:
        raise Unusable(f"{name}:{items[0].line}: {error}") from None


_EXPECTED = "expected messages or a folded conversation"
# What to do with a value of another kind.
_ADVICE = {
    "an event": "agjson fold makes a conversation of events",
    "an input": "its messages go along when it is FILE, without --messages",
    "a native message": "it is what agjson to-native prints, not what it reads",
    "a native request": "it is what agjson to-native prints, not what it reads",
}


def read_messages(file: Path | None, streams: Streams, *, may_be_empty: bool = False) -> Sequence[AgMessage]:
    """Read messages: one or more of them, or a folded conversation, whose messages are taken.

    Args:
        file: the file; None: stdin.
        streams: where notes go.
        may_be_empty: a conversation without a message is one.

    Raises:
        OSError: the file cannot be opened.
        Unusable: a value is neither, or there is no message and there must be one.
    """
    messages: list[AgMessage] = []
    with open_input(file, streams) as source:
        for item in source.items():
            kind = kind_of(item.data)
            if kind in _ADVICE:
                raise Unusable(f"{source.place(item.line)}: {_EXPECTED}, got {kind}: {_ADVICE[kind]}")
            try:
                if members(utf8(item.data), "$").keys() & {"result", "messages"}:
                    _note_parked(item.data, source.name, streams)
                    messages += _result(item.data).messages
                else:
                    messages.append(decode_message(item.data, lenient=True))
            except DecodeError as error:
                raise source.unusable(error, item.line) from None
        if not messages and not may_be_empty:
            raise Unusable(f"{source.name}: {_EXPECTED}, got no message at all")
    return messages


def _note_parked(data: bytes, name: str, streams: Streams) -> None:
    """Say on stderr that a folded conversation is one of a parked fold."""
    found = members(utf8(data), "$")
    if "result" in found and bytes(found.get("needsResync", b"")) == b"true":
        streams.note(f"{name}: the fold was parked, so what it missed is missing here too")


def _result(data: bytes) -> AgReduceResult:
    """Read a folded conversation; the paths of errors go from the whole value."""
    found = members(utf8(data), "$")
    if "result" not in found:
        return decode_result(data, lenient=True)
    try:
        return decode_result(bytes(found["result"]), lenient=True)
    except DecodeError as error:
        raise DecodeError(error.message, f"$.result{error.path[1:]}") from None
