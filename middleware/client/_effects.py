"""What a protocol asks of whoever does its input and output.

A *plan* is a generator. It yields one of these effects, or an event for the caller, and is sent the outcome; a
`LinkError` is thrown into it. It neither waits nor opens anything, so that one plan serves both kinds of clients.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from agjson.types import AgStreamEvent, UnknownEvent

__all__ = [
    "EFFECTS",
    "Answer",
    "Effect",
    "Fetch",
    "Head",
    "LinkError",
    "Open",
    "Plan",
    "Read",
    "Request",
    "Shut",
    "Sleep",
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    Attributes:
        method: the method.
        url: the address, absolute or relative to the caller's HTTP client.
        headers: the headers that the protocol needs; the caller's own are added.
        body: the body; None: there is none.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of an answer.

    Attributes:
        status: the HTTP status.
        headers: the headers, names in lower case.
        url: the address that answered.
    """

    status: int
    headers: Mapping[str, str]
    url: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer.

    Attributes:
        head: its beginning.
        body: its body, at most as long as was asked for.
        complete: nothing was cut off the body.
    """

    head: Head
    body: bytes
    complete: bool


class LinkError(Exception):
    """The connection failed.

    Attributes:
        unsent: the server has certainly not received the request.
    """

    def __init__(self, message: str, *, unsent: bool) -> None:
        super().__init__(message)
        self.unsent = unsent


@dataclass(frozen=True, slots=True)
class Open:
    """Send a request and keep its answer open, in place of the one before. Sends back a `Head`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    """Read the next bytes of the open answer. Sends back bytes; none at its end."""


@dataclass(frozen=True, slots=True)
class Shut:
    """Close the open answer, if there is one."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send a request and read its answer whole, beside the one that is open. Sends back an `Answer`."""

    request: Request
    limit: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for some seconds."""

    seconds: float


EFFECTS: Final = frozenset((Open, Read, Shut, Fetch, Sleep))
"""The classes of effects: whatever else a plan yields is an event."""

Effect: TypeAlias = Open | Read | Shut | Fetch | Sleep
Plan: TypeAlias = Generator[Effect | AgStreamEvent | UnknownEvent, Any, _T]
