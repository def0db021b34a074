"""What an exception says about itself: message, code, whether to try again."""

from __future__ import annotations

import asyncio
import concurrent.futures
import enum
from typing import Any

import pytest

from agjson.failures import Failure, describe_failure, is_cancellation, trace_of


def made(
    name: str, message: str = "m", bases: tuple[type[Exception], ...] = (Exception,), **attributes: Any
) -> Exception:
    return type(name, bases, attributes)(message)


class Code(enum.Enum):
    UNAVAILABLE = 14


@pytest.mark.parametrize(
    "error, expected",
    [
        (ValueError("bad value"), Failure("bad value", "ValueError", None)),
        (ValueError(), Failure("ValueError", "ValueError", None)),
        (ValueError("  \n"), Failure("ValueError", "ValueError", None)),
        (TimeoutError("slow"), Failure("slow", "TimeoutError", True)),
        (ConnectionResetError("gone"), Failure("gone", "ConnectionResetError", True)),
        (made("APIStatusError", type="overloaded_error", status_code=200), Failure("m", "overloaded_error", True)),
        (
            made("BadRequestError", type="invalid_request_error", status_code=400),
            Failure("m", "invalid_request_error", False),
        ),
        (made("RateLimitError", code="rate_limit_exceeded", type=None), Failure("m", "rate_limit_exceeded", True)),
        (made("Odd", type=str, code=7), Failure("m", "Odd", None)),
        (made("Rpc", code=Code.UNAVAILABLE), Failure("m", "UNAVAILABLE", True)),
        (made("HTTPError", status=503), Failure("m", "HTTPError", True)),
        (made("HTTPError", status=429), Failure("m", "HTTPError", True)),
        (made("HTTPError", code=404), Failure("m", "HTTPError", False)),
        (made("Known", retryable=False, status_code=503), Failure("m", "Known", False)),
        (made("Known", retriable=True, status_code=400), Failure("m", "Known", True)),
        (made("APIConnectionError"), Failure("m", "APIConnectionError", True)),
        (made("Mine", bases=(made("ReadTimeout").__class__,)), Failure("m", "Mine", True)),
        (
            ExceptionGroup("group", [ExceptionGroup("inner", [TimeoutError("slow")])]),
            Failure("slow", "TimeoutError", True),
        ),
        (
            ExceptionGroup("two failed", [ValueError("a"), KeyError("b")]),
            Failure("two failed (2 sub-exceptions)", "ExceptionGroup", None),
        ),
    ],
)
def test_an_exception_is_read(error: BaseException, expected: Failure) -> None:
    assert describe_failure(error) == expected


def test_the_type_of_a_cause_is_named_and_its_words_are_not() -> None:
    error = made("APIConnectionError")
    error.__cause__ = ValueError("Illegal header value b'secret'")
    assert describe_failure(error) == Failure("m (from ValueError)", "APIConnectionError", True)
    # What was only being handled at the time is no cause.
    error.__cause__, error.__context__ = None, ValueError("secret")
    assert describe_failure(error).message == "m"


def test_an_exception_that_cannot_be_read_is_named() -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError

    assert describe_failure(Unreadable()) == Failure("Unreadable", "Unreadable", None)


@pytest.mark.parametrize(
    "error, expected",
    [
        (asyncio.CancelledError(), True),
        (concurrent.futures.CancelledError(), True),
        (GeneratorExit(), True),
        (made("Cancelled"), True),
        (made("RunCancelled"), False),
        (ValueError(), False),
    ],
)
def test_a_cancellation_is_known(error: BaseException, expected: bool) -> None:
    assert is_cancellation(error) is expected


def test_a_trace_tells_types_and_places_and_no_words() -> None:
    def choke() -> None:
        raise ValueError("secret-1")

    def fail() -> None:
        try:
            choke()
        except ValueError as cause:
            raise RuntimeError("secret-2") from cause

    with pytest.raises(RuntimeError) as raised:
        fail()
    raised.value.add_note("secret-3")
    lines = trace_of(raised.value).split("\n")
    test = "test_a_trace_tells_types_and_places_and_no_words"
    assert [line.partition('"')[0] + line.rpartition(",")[2] for line in lines] == [
        "RuntimeErrorRuntimeError",
        f"  File  in {test}",
        "  File  in fail",
        "from ValueErrorfrom ValueError",
        "  File  in fail",
        "  File  in choke",
    ]
    assert "secret" not in "".join(lines)


def test_a_trace_of_exceptions_that_cause_each_other_ends() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert trace_of(first).split("\n") == ["ValueError", *["from KeyError", "from ValueError"] * 3, "from KeyError"]
