"""Errors cross process borders whole."""

from __future__ import annotations

import pickle

import pytest

from agjson import (
    AgJSONError,
    EncodeError,
    MissingExtraError,
    ReplayError,
    ThreadPausedError,
    UnknownTypeError,
    ValidationError,
    decode_event,
)


def unknown() -> Exception:
    with pytest.raises(UnknownTypeError) as caught:
        decode_event('{"seq":0,"type":"text.chunk"}')
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        unknown(),
        ValidationError("m", "$.a"),
        EncodeError("m", "$[0]"),
        ReplayError("m"),
        MissingExtraError("cli", "typer"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_pickling_keeps_message_and_attributes(error: AgJSONError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_every_error_of_the_library_has_the_one_root() -> None:
    assert issubclass(ThreadPausedError, AgJSONError)
