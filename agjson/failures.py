"""What an exception says about itself in the terms of `turn.error`: message, code, whether to try again (spec §4)."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Failure", "OnFailure", "describe_failure", "is_cancellation", "trace_of"]

_RETRIABLE_STATUS = frozenset((408, 409, 425, 429))
_RETRIABLE_CODES = frozenset(
    (
        "api_error",
        "internal_error",
        "internal_server_error",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "service_unavailable",
        "timeout_error",
        "unavailable",
    )
)
_RETRIABLE_NAME = re.compile(
    "Timeout|Connection|Connect|RemoteProtocol|Overloaded|RateLimit|TooManyRequests|Unavailable|InternalServer"
)


class Failure(NamedTuple):
    """What `turn.error` and `error` say about an exception.

    Attributes:
        message: the error in words, never empty.
        code: the provider's code, else the exception's class name.
        retriable: whether trying again may help; None where nothing tells.
    """

    message: str
    code: str
    retriable: bool | None


OnFailure: TypeAlias = Callable[[BaseException, Failure], Failure]
"""Decides what the stream says of an exception, given what the exception says about itself. It must not raise."""


def describe_failure(error: BaseException) -> Failure:
    """Read an exception; never raises, whatever the exception's attributes do.

    The code is its ``type`` or ``code`` if that is a string, else the class name. Whether to try again is told by, in
    this order: a boolean ``retriable`` or ``retryable``; the code; an HTTP status in ``status_code``, ``status`` or
    ``code`` (408, 409, 425, 429 and from 500 on yes, other 4xx no); being a timeout or a broken connection, by class or
    by name. A group with one exception in it is read as that one. The message names the type of the exception that it
    was raised from, as in ``Connection error. (from ConnectError)``.

    Args:
        error: the exception.
    """
    error = _sole(error)
    code = _code_of(error)
    return Failure(_message_of(error), code or type(error).__name__, _retriable(error, code))


def _sole(error: BaseException) -> BaseException:
    inside = _attribute(error, "exceptions") if issubclass(type(error), BaseExceptionGroup) else None
    if inside is None or len(inside) != 1:
        return error
    only: BaseException = inside[0]
    return _sole(only)


def is_cancellation(error: BaseException) -> bool:
    """Tell whether an exception means that the run was cancelled or closed, not that it failed.

    Args:
        error: the exception; ``CancelledError`` of asyncio and other libraries is known by its name.
    """
    return issubclass(type(error), GeneratorExit) or any(cls.__name__ in _CANCELLED for cls in type(error).__mro__)


_CANCELLED = frozenset(("CancelledError", "Cancelled"))
_LONGEST_CHAIN = 8
_MOST_FRAMES = 30


def trace_of(error: BaseException) -> str:
    """Where an exception and what caused it come from, for a log: types and places, and none of their words.

    Exceptions quote what they choke on, and that may be an opaque value or a credential (spec §13.2).

    Args:
        error: the exception.
    """
    lines: list[str] = []
    each: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if each is None:
            break
        lines.append(f"{'from ' if lines else ''}{type(each).__name__}")
        trace, frames = each.__traceback__, list[str]()
        while trace is not None:
            code = trace.tb_frame.f_code
            frames.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}')
            trace = trace.tb_next
        lines += frames[-_MOST_FRAMES:]
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return "\n".join(lines)


def _message_of(error: BaseException) -> str:
    try:
        message = str(error).strip()
    except Exception:
        message = ""
    cause = _attribute(error, "__cause__")
    # Its name alone: its words may quote a header, and that may be a credential (spec §13.2).
    behind = f" (from {type(cause).__name__})" if isinstance(cause, BaseException) else ""
    return f"{message or type(error).__name__}{behind}"


def _attribute(error: Any, name: str) -> Any:
    try:
        return getattr(error, name, None)
    except Exception:
        return None


def _code_of(error: BaseException) -> str | None:
    for name in ("type", "code"):
        value = _attribute(error, name)
        if isinstance(value, enum.Enum):
            value = value.value if isinstance(value.value, str) else value.name
        if isinstance(value, str) and value:
            return str.__str__(value)
    return None


def _retriable(error: BaseException, code: str | None) -> bool | None:
    for name in ("retriable", "retryable"):
        value = _attribute(error, name)
        if isinstance(value, bool):
            return value
    if code is not None and code.lower() in _RETRIABLE_CODES:
        return True
    for name in ("status_code", "status", "code"):
        status = _attribute(error, name)
        if isinstance(status, int) and 400 <= status < 600:
            return status >= 500 or status in _RETRIABLE_STATUS
    if issubclass(type(error), (TimeoutError, ConnectionError)):
        return True
    return True if any(_RETRIABLE_NAME.search(cls.__name__) for cls in type(error).__mro__) else None
