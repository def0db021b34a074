"""What a recorded HTTP exchange with the Messages API holds (spec §8.0)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agjson.adapter import native_events
from agjson.errors import DecodeError
from agjson.normalizer import HostError

if TYPE_CHECKING:
    from agjson.testing.cassettes import Exchange

__all__ = ["recorded"]

_PATH = "/v1/messages"
# How a response tells itself where the recording has no address.
_MARKS = (b'"type":"message', b'"type":"error"')
_OTHERS = (b'"object":"response"', b'"object":"chat.completion')


def recorded(exchange: Exchange) -> Iterable[Any] | None:
    """The native events of a recorded exchange, as `Adapter.recorded` wants them.

    Args:
        exchange: the exchange.

    Returns:
        None if it is no request for a message.
    """
    if exchange.method != "POST" or not _is_message_request(exchange):
        return None
    if exchange.status >= 400:
        return [_failure(exchange)]
    return _events(exchange.body)


def _is_message_request(exchange: Exchange) -> bool:
    if exchange.uri:
        return urlsplit(exchange.uri).path.rstrip("/").endswith(_PATH)
    body = exchange.body[:4096].replace(b": ", b":")
    return any(mark in body for mark in _MARKS) and not any(other in body for other in _OTHERS)


def _events(body: bytes) -> Iterator[Any]:
    count = 0
    try:
        for event in native_events(body):
            count += 1
            yield event
    except DecodeError as error:
        yield HostError(error, "malformed_response", None)
        return
    if not count:
        yield HostError("the response has no content", "empty_response", None)


def _failure(exchange: Exchange) -> Any:
    """The error body as the provider sent it, or what can be said where there is none."""
    try:
        (body,) = native_events(exchange.body)
        if isinstance(body, dict) and body.get("type") == "error":
            return body
    except (DecodeError, ValueError):
        pass
    retriable = exchange.status in (408, 409, 429) or exchange.status >= 500
    return HostError(f"the request failed with status {exchange.status}", f"http_{exchange.status}", retriable)
