"""A small adapter for tests of tools that take any: its native events are ``say``, ``boom`` and ``stop``.

* ``{"say": text, "id": id}`` is a message with one text; without an id one is derived.
* ``{"boom": message}`` fails the turn.
* ``{"stop": reason}`` is the terminal of the stream, which ends itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agjson.adapter import Adapter, native_events
from agjson.errors import DecodeError, ReplayError
from agjson.normalizer import HostError, Normalizer
from agjson.testing.cassettes import Exchange
from agjson.types import AgInput, AgMessage
from agjson.wire import to_dict

MODEL_PATH = "/v1/echo"


class EchoNormalizer(Normalizer):
    """Three native events."""

    ends_itself: ClassVar[bool] = True

    def _on(self, native: Any) -> None:
        if "say" in native:
            message = self.out.message_start(native.get("id"))
            block = self.out.text_start()
            self.out.text_delta(block, native["say"])
            self.out.text_end(block)
            self.out.message_end(message)
        elif "boom" in native:
            self.out.turn_error(native["boom"], turn_id=self.turn_id)
        elif "stop" in native:
            self.out.turn_done(finish_reason=native["stop"], turn_id=self.turn_id)
        else:
            self.unparsed(native, "an unknown event")


@dataclass
class Call:
    """What `to_native` gives."""

    model: str
    messages: list[Any]
    unsupported: list[str] = field(default_factory=list)


class History(list[Any]):
    """What `messages_to_native` gives."""

    repairs: tuple[str, ...] = ()


def recorded(exchange: Exchange) -> Iterable[Any] | None:
    """The native events of an exchange with the echo service."""
    if not exchange.uri.partition("?")[0].endswith(MODEL_PATH):
        return None
    return list(_recorded(exchange))


def _recorded(exchange: Exchange) -> Iterator[Any]:
    if exchange.status >= 400:
        yield HostError(f"HTTP {exchange.status}", code=str(exchange.status))
        return
    try:
        yield from native_events(exchange.body)
    except DecodeError as error:
        yield HostError(error)


def to_native(ag_input: AgInput, *, history: Sequence[AgMessage] = ()) -> Call:
    """The last words of the history and the kind of the input."""
    return Call("echo", [*messages_to_native(history), ag_input.kind], ["run.temperature"])


def messages_to_native(messages: Sequence[AgMessage]) -> History:
    """The text of every message; a message without content is refused."""
    if any(not message.content for message in messages):
        raise ReplayError("a message is empty", "$[0].content")
    native = History(to_dict(message.content)[0]["text"] for message in messages)
    native.repairs = tuple(f"message {message.id} was fine" for message in messages)
    return native


ADAPTER = Adapter(
    name="echo",
    normalizer=EchoNormalizer,
    recorded=recorded,
    to_native=to_native,
    messages_to_native=messages_to_native,
)
"""The record under which tools find it."""
