"""What an adapter package offers under one name, so that tools can use any adapter without knowing it.

Each package ``agjson.adapters.<name>`` exports one `Adapter` record as ``ADAPTER``. The ``agjson`` command finds it by
the name of the package (dashes become underscores).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agjson.errors import DecodeError
from agjson.wire._json import plain, utf8
from agjson.wire.lines import iter_json

if TYPE_CHECKING:
    from agjson.normalizer import Normalizer
    from agjson.testing.cassettes import Exchange

__all__ = ["Adapter", "native_events"]

# OpenAI and hosts that speak its protocol end a stream with it; it is not JSON.
_END_OF_STREAM = b"[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One adapter, for tools that are told its name (spec §8.0).

    Attributes:
        name: the name on the command line: ``anthropic``, ``claude-agent-sdk``.
        normalizer: the normalizer class. It is called with the keywords ``turn_id``, ``thread_id`` and those of
            `agjson.emitter.EmitterSettings` (what the thread has so far), once for each invoke, and takes native events
            as plain JSON data.
        recorded: tells what a recorded HTTP exchange holds. It returns None if the request is no model request of this
            provider, else the native events of its response in order, as the normalizer takes them: each event of a
            stream, or one whole message. Of a failed request (status 400 and above) it returns what the normalizer
            turns into ``turn.error``: the error body that the provider sent, or a `HostError`. It appends no
            `HostEnd`. It raises nothing for any exchange; a body that it cannot read becomes a `HostError`.
        to_native: ``to_native(ag_input, history=messages)``, the native call for an input (None: not available).
        messages_to_native: ``messages_to_native(messages)``, the native history (None: not available).
    """

    name: str
    normalizer: Callable[..., Normalizer]
    recorded: Callable[[Exchange], Iterable[Any] | None]
    to_native: Callable[..., Any] | None = None
    messages_to_native: Callable[..., Any] | None = None


def native_events(body: bytes | Iterable[bytes], *, max_bytes: int | None = None) -> Iterator[Any]:
    """The native events of a response body or file, as plain JSON data, each as soon as it is complete.

    Args:
        body: server-sent events, JSON Lines, one JSON array of events, or one whole JSON object; recognised by its
            beginning. A ``[DONE]`` in place of an event is left out.
        max_bytes: as for `iter_json`.

    Raises:
        DecodeError: an event is no JSON, or longer than allowed; the message names the line. Every event before was
            yielded.
    """
    for item in iter_json(body, max_bytes=max_bytes):
        if item.data == _END_OF_STREAM:
            continue
        try:
            yield plain(utf8(item.data), "$")
        except DecodeError as error:
            raise DecodeError(f"line {item.line}: {error.message}", error.path) from None
