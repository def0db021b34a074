"""What a recorded HTTP exchange with a LangGraph server holds (spec §8.0)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agjson.errors import DecodeError
from agjson.normalizer import HostError
from agjson.wire._json import plain, utf8
from agjson.wire.sse import read_sse

if TYPE_CHECKING:
    from agjson.testing.cassettes import Exchange

__all__ = ["recorded"]

# A run that is started, or joined, and streamed: with a thread or without one.
_PATH = re.compile(r"(/threads/[^/]+)?/runs(/[^/]+)?/stream")


def recorded(exchange: Exchange) -> Iterable[Any] | None:
    """The native events of a recorded exchange, as `Adapter.recorded` wants them.

    Args:
        exchange: the exchange.

    Returns:
        None if it is no stream of a run; requests to model providers are none.
    """
    if not _PATH.search(urlsplit(exchange.uri).path):
        return None
    if exchange.status >= 400:
        retriable = exchange.status in (408, 409, 429) or exchange.status >= 500
        return [HostError(f"the request failed with status {exchange.status}", f"http_{exchange.status}", retriable)]
    return _events(exchange.body)


def _events(body: bytes) -> Iterator[Any]:
    count = 0
    try:
        for message in read_sse([body]):
            if not message.data:
                continue
            count += 1
            yield {"event": message.event, "data": plain(utf8(message.data), "$")}
    except DecodeError as error:
        yield HostError(error, "malformed_response", None)
        return
    if not count:
        yield HostError("the response has no content", "empty_response", None)
