"""Every error that agjson raises: one root, each with the place that it concerns."""

from __future__ import annotations

from typing import Any


class AgJSONError(Exception):
    """The root of all errors of this library."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by the constructor, whose arguments are more than the message: errors cross process borders whole.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[AgJSONError], args: tuple[Any, ...], attributes: dict[str, Any]) -> AgJSONError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(attributes)
    return error


class DecodeError(AgJSONError, ValueError):
    """A text cannot be read: malformed JSON, invalid UTF-8, a number out of range, nesting over the limit.

    Attributes:
        message: what is wrong, without the place.
        path: the JSON path of the offending value, ``"$"`` for the whole text.
    """

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message if path == "$" else f"{message} - at `{path}`")
        self.message = message
        self.path = path


class ValidationError(DecodeError):
    """The text is JSON, but a value does not fit the format; ``path`` names the field (spec §5 trust boundary)."""


class UnknownTypeError(ValidationError):
    """An event or block of a type that this revision does not define (spec §0.2: producers must not emit it).

    Attributes:
        type: the unknown discriminant as it was read.
    """

    def __init__(self, message: str, path: str, type: str) -> None:
        super().__init__(message, path)
        self.type = type


class EncodeError(AgJSONError, ValueError):
    """A value cannot be written as JSON: NaN, infinity, an object without a JSON form, nesting over the limit.

    Attributes:
        message: what is wrong, without the place.
        path: the JSON path of the offending value, ``"$"`` for the whole.
    """

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message if path == "$" else f"{message} - at `{path}`")
        self.message = message
        self.path = path


class ReplayError(AgJSONError):
    """A history cannot be sent back to a provider as it is; raised before any request is made.

    Attributes:
        message: what is wrong and what to do about it.
        path: the JSON path inside the message list, ``"$"`` for the whole.
    """

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message if path == "$" else f"{message} - at `{path}`")
        self.message = message
        self.path = path


class MissingExtraError(AgJSONError, ImportError):
    """A part of agjson needs a package that is not installed; the message names the command that installs it.

    Attributes:
        extra: the extra of the ``agjson`` distribution that brings the package.
    """

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'agjson[{extra}]'")
        self.extra = extra
