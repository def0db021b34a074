"""What tests of the server have in common: an agent that waits where it is told to, and stores of both kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agjson.agents import Invocation, MemoryThreadStore, SharedThreadStore, ThreadStore
from agjson.fold import Reducer
from agjson.stores import SQLiteThreadStore
from agjson.types import AgStreamEvent
from agjson.wire import encode, from_dict, to_dict
from tests.support.asgi_client import request, thread_path
from tests.support.scripted import Native, text

STORES = ("memory", "sqlite")


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[ThreadStore]:
    """A store of a kind, in a folder."""
    if kind == "memory":
        yield MemoryThreadStore()
        return
    store = SQLiteThreadStore(folder / "threads.sqlite")
    try:
        yield store
    finally:
        await store.aclose()


class Gates:
    """Places where a script waits, by name, until the test opens them."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    def __getitem__(self, name: str) -> asyncio.Event:
        return self._events.setdefault(name, asyncio.Event())


def stepwise(gates: Gates, natives: Iterable[Native]) -> Iterator[Any]:
    """Natives of which each waits for its gate, ``0`` and so on."""
    for index, native in enumerate(natives):
        yield _wait(gates[str(index)])
        yield native


async def _wait(gate: asyncio.Event) -> None:
    await gate.wait()


def waiting(before: str, after: str, gate: asyncio.Event) -> Callable[[Invocation], Iterator[Any]]:
    """A script: words, a gate, more words of the same block."""

    def script(invocation: Invocation) -> Iterator[Any]:
        natives = text(f"{before} {after}")
        at = 2 + len(before.split(" "))
        yield from natives[:at]
        yield _wait(gate)
        yield from natives[at:]

    return script


def numbered(events: Iterable[AgStreamEvent]) -> list[tuple[int, str]]:
    """Ordinals and types."""
    return [(event.seq, event.type) for event in events]


async def assert_same_as_stored(app: Any, store: ThreadStore, thread_id: str, *streams: Iterable[Any]) -> None:
    """What a reader of these streams has folded is what is stored, in the log, and in the snapshot (INV-FOLD)."""
    reducer = Reducer()
    last: list[Any] = []
    for stream in streams:
        last = list(stream)
        assert [event.seq for event in last] == list(range(len(last)))
        for event in last:
            reducer.push(event)
    assert not reducer.needs_resync, reducer.resync_reason
    thread = await store.load(thread_id)
    assert thread is not None
    assert to_dict(reducer.result()) == to_dict(thread.result)
    if isinstance(store, SharedThreadStore):
        logged = await store.latest_turn(thread_id)
        assert logged is not None and logged.ended
        assert list(await store.read_log(thread_id, logged.turn_id)) == [encode(event) for event in last]
    status, body = await request(app, "GET", thread_path(thread_id))
    assert status == 200
    healed = Reducer()
    for event in body["events"]:
        healed.push(from_dict(event, as_="event"))
    assert to_dict(healed.result()) == to_dict(thread.result)
