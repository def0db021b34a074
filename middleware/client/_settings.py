"""How a client behaves: its limits, its waiting, and where its requests go."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias, TypedDict
from urllib.parse import quote, urlencode

import httpx

from agjson.wire.sse import DEFAULT_MAX_BYTES

__all__ = ["OnMalformed", "Routes", "Settings", "SettingsArgs", "retry_after", "same_server"]

_HEADER_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"([!-~]+([ \t]+[!-~]+)*)?")
_PORTS = {"http": 80, "https": 443}

OnMalformed: TypeAlias = Literal["raise", "skip"]
"""What to do with a malformed event of a known type: end with an error, or leave it out and tell."""


class SettingsArgs(TypedDict, total=False):
    """The settings as keyword arguments of a client; see `Settings`."""

    headers: Mapping[str, str]
    connect_timeout: float | None
    idle_timeout: float | None
    max_retries: int
    backoff: float
    max_backoff: float
    max_wait: float
    max_bytes: int
    on_malformed: OnMalformed
    resend: bool
    max_threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a client behaves.

    Attributes:
        headers: sent with every request.
        connect_timeout: seconds for a connection; None: no limit.
        idle_timeout: seconds without a byte after which a connection counts as broken; keep-alive comments are bytes.
            None: no limit.
        max_retries: how many attempts to go on may fail in a row, without an event in between.
        backoff: the bound in seconds of the first wait, which is chosen at random below it; the bound doubles with each
            attempt up to `max_backoff`. What the server asks for (``retry:``, ``Retry-After``) comes on top.
        max_backoff: see `backoff`.
        max_wait: the most seconds that a server may ask to wait; a longer ``Retry-After`` is an error right away.
        max_bytes: the longest event, and the longest other answer.
        on_malformed: what to do with a malformed event of a known type: ``"raise"`` ends with an error, ``"skip"``
            leaves it out, tells it in `TurnBase.skipped` and mends the fold by a snapshot (spec §0.2, §5).
        resend: send an input again whose connection broke before any event, once the server has said twice that it has
            no such turn. False: that is an error (``fate_unknown``).
        max_threads: how many threads to remember the fold of; the one used longest ago is forgotten first.

    Raises:
        ValueError: a limit that is none, or a header that HTTP does not allow.
    """

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    connect_timeout: float | None = 10.0
    idle_timeout: float | None = 60.0
    max_retries: int = 5
    backoff: float = 0.5
    max_backoff: float = 20.0
    max_wait: float = 60.0
    max_bytes: int = DEFAULT_MAX_BYTES
    on_malformed: OnMalformed = "raise"
    resend: bool = True
    max_threads: int = 64

    def __post_init__(self) -> None:
        for name in ("max_retries", "backoff", "max_backoff", "max_wait", "max_threads"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if self.max_bytes < 1:
            raise ValueError("max_bytes must be at least 1")
        if self.on_malformed not in ("raise", "skip"):
            raise ValueError(f"on_malformed is 'raise' or 'skip', not {self.on_malformed!r}")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a header")
            if not _HEADER_VALUE.fullmatch(value):
                # Without the value, which may be a credential.
                raise ValueError(f"the header {name} has a line break, a space at an end, or a character beyond ASCII")

    def pause(self, attempt: int, asked: float) -> float:
        """How long to wait before an attempt: full jitter under a bound that doubles, but what the server asked for.

        Args:
            attempt: how many attempts failed since the last progress, from 1.
            asked: the least that the server asked for, in seconds.
        """
        bound = min(self.max_backoff, self.backoff * 2.0 ** min(attempt - 1, 30))
        return min(asked, self.max_wait) + random.uniform(0.0, bound)


class Routes:
    """The addresses of one server.

    Args:
        base_url: where inputs are posted to; the other routes lie below it, and its query goes along.
    """

    def __init__(self, base_url: str) -> None:
        address, question, query = base_url.partition("#")[0].partition("?")
        self.run = f"{address}{question}{query}"
        self._below = address.rstrip("/")
        self._query = query

    def thread(self, thread_id: str) -> str:
        """Where a thread is read."""
        return self._to(f"/threads/{_segment(thread_id)}")

    def events(self, thread_id: str, **query: str) -> str:
        """Where the rest of a turn is read.

        Args:
            thread_id: the thread.
            **query: ``lastEventId``, the place, where a header cannot hold it; ``turnId``, the turn to read from its
                first event.
        """
        escaped = urlencode(query, quote_via=quote, safe="", encoding="utf-8", errors="surrogatepass")
        return self._to(f"/threads/{_segment(thread_id)}/events", escaped)

    def stop(self, thread_id: str, turn_id: str) -> str:
        """Where a turn is stopped."""
        return self._to(f"/threads/{_segment(thread_id)}/turns/{_segment(turn_id)}/stop")

    @property
    def capabilities(self) -> str:
        """Where the agent's capabilities are read."""
        return self._to("/capabilities")

    def _to(self, path: str, query: str = "") -> str:
        queries = "&".join(part for part in (self._query, query) if part)
        return f"{self._below}{path}?{queries}" if queries else f"{self._below}{path}"


def _segment(text: str) -> str:
    # A segment of dots alone would be taken for a step in the tree of paths.
    escaped = quote(text.encode("utf-8", "surrogatepass"), safe="")
    return escaped.replace(".", "%2E") if escaped in (".", "..") else escaped


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait, as a number or as a date; None: it does not say, or not legibly."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - time.time())


def same_server(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether what one address was sent may be sent to another: the same origin, or its encrypted twin.

    Args:
        one: the address that answered.
        other: where it points to.
    """
    a, b = ((url.scheme, url.host, url.port or _PORTS.get(url.scheme)) for url in (one, other))
    return a == b or (a == ("http", one.host, 80) and b == ("https", one.host, 443))
