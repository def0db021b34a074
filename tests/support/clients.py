"""Both kinds of clients behind one call, so that a test says once what holds for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from agjson.errors import AgJSONError
from agjson.middleware.client import AgentClient, SyncAgentClient, SyncTurn, Turn
from agjson.wire import to_dict

Kind = Literal["async", "sync"]
KINDS: tuple[Kind, ...] = ("async", "sync")

TURN = [
    {"type": "turn.start", "seq": 0, "turnId": "t1", "threadId": "th"},
    {"type": "message.start", "seq": 1, "id": "m1", "role": "assistant", "turnId": "t1", "threadId": "th"},
    {"type": "text.start", "seq": 2, "id": "b", "turnId": "t1"},
    {"type": "text.delta", "seq": 3, "id": "b", "delta": "Grüße, "},
    {"type": "text.delta", "seq": 4, "id": "b", "delta": "world"},
    {"type": "text.end", "seq": 5, "id": "b"},
    {"type": "message.end", "seq": 6, "id": "m1"},
    {"type": "turn.done", "seq": 7, "turnId": "t1", "outcome": {"type": "success"}, "finishReason": "stop"},
]
"""A turn ``t1`` of thread ``th``, as wire objects."""


@dataclass
class Followed:
    """What a client delivered.

    Attributes:
        events: the events as wire objects.
        turn: the turn.
        error: what ended the iteration; None: it ended by itself.
    """

    events: list[Any]
    turn: Turn | SyncTurn
    error: AgJSONError | None

    @property
    def seqs(self) -> list[int]:
        """The ordinals of the events."""
        return [event["seq"] for event in self.events]

    @property
    def types(self) -> list[str]:
        """The types of the events."""
        return [event["type"] for event in self.events]

    @property
    def code(self) -> str:
        """The code of the error."""
        return getattr(self.error, "code", "")


def hello(client: Any) -> Any:
    """Start the turn of `TURN`."""
    return client.start("Hello", thread_id="th", turn_id="t1", message_id="u1")


def attach(place: str | None = None) -> Callable[[Any], Any]:
    """Attach to the thread of `TURN`."""
    return lambda client: client.attach("th", place)


async def follow(kind: Kind, url: str, call: Callable[[Any], Any] = hello, **settings: Any) -> Followed:
    """Follow one turn to its end with a client of its own.

    Args:
        kind: which kind of client.
        url: the server.
        call: what to ask the client for.
        **settings: of the client; waits are short unless they say otherwise.
    """
    settings = {"backoff": 0.001, **settings}
    if kind == "sync":
        return await asyncio.to_thread(_follow_sync, url, call, settings)
    async with httpx.AsyncClient(verify=False) as http, AgentClient(url, http=http, **settings) as client:
        turn = call(client)
        events: list[Any] = []
        error = None
        try:
            async for event in turn:
                events.append(to_dict(event))
        except AgJSONError as raised:
            error = raised
        return Followed(events, turn, error)


def _follow_sync(url: str, call: Callable[[Any], Any], settings: dict[str, Any]) -> Followed:
    with httpx.Client(verify=False) as http, SyncAgentClient(url, http=http, **settings) as client:
        turn = call(client)
        events: list[Any] = []
        error = None
        try:
            for event in turn:
                events.append(to_dict(event))
        except AgJSONError as raised:
            error = raised
        return Followed(events, turn, error)
