"""What a JSON value seems to be, by its members: for a file of one kind where another is expected."""

from __future__ import annotations

from collections.abc import Mapping

from agjson.errors import DecodeError
from agjson.wire._json import members, utf8

__all__ = ["kind_of"]


def kind_of(data: bytes) -> str:
    """What a value is, in words that follow "got".

    Args:
        data: a JSON value.

    Returns:
        ``an event``, ``an input``, ``a message``, ``a folded conversation``, ``a native message``,
        ``a native request``, or ``something else``.
    """
    try:
        found = members(utf8(data), "$")
    except DecodeError:
        return "something else"
    return _kind(found)


def _kind(found: Mapping[str, object]) -> str:
    names = found.keys()
    if {"type", "seq"} <= names:
        return "an event"
    if "kind" in names and names & {"threadId", "turnId", "protocol"}:
        return "an input"
    if {"role", "content"} <= names:
        # An answer of a provider has an id as well.
        return "a native message" if "id" not in names or {"type", "model"} <= names else "a message"
    if "needsResync" in names or ("messages" in names and names & {"turns", "artifacts", "memory"}):
        return "a folded conversation"
    if {"model", "messages"} <= names:
        return "a native request"
    return "something else"
