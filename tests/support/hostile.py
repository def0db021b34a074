"""Damaged JSON texts, and the error that reading one must raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agjson import DecodeError, decode_event, ingest_event

Read = Callable[[Any], Any]

READERS: list[Read] = [decode_event, ingest_event]
"""The strict and the lenient way to read an event."""

both = pytest.mark.parametrize("read", READERS)
"""Runs a test with each of the two."""

HALF = "\\ud83d"
OTHER_HALF = "\\ude00"
WHOLE = "\U0001f600"


def delta(extra: str = "", *, text: str = "x") -> str:
    """A text delta as JSON text, with more members at its end."""
    return f'{{"type":"text.delta","seq":0,"id":"b","delta":"{text}"{extra}}}'


def assembled(value: str) -> str:
    """An event whose opaque ``input`` is this JSON text."""
    return f'{{"type":"tool.args.assembled","seq":0,"toolCallId":"c","input":{value}}}'


def refused(read: Read, text: Any) -> DecodeError:
    """The error that reading raises; it must be one of ours."""
    with pytest.raises(DecodeError) as caught:
        read(text)
    return caught.value


def block(text: str) -> str:
    """An event with this block."""
    return f'{{"type":"content.block","seq":0,"block":{text}}}'
