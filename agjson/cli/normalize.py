"""``agjson normalize``: what a provider or framework sent, as AgEvents (spec §8.0)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from agjson.adapter import Adapter
from agjson.cli.adapters import AdapterArgument, find_adapter
from agjson.cli.files import Input, open_input
from agjson.cli.streams import Streams, Unusable, command
from agjson.errors import DecodeError
from agjson.wire import encode

if TYPE_CHECKING:
    from agjson.normalizer import Normalizer
    from agjson.testing.cassettes import Exchange
    from agjson.types import AgStreamEvent

__all__ = ["normalize"]


@command
def normalize(
    adapter: AdapterArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Native events as JSON lines, an array or server-sent events, or a VCR cassette; - or nothing is "
            "standard input.",
            show_default=False,
        ),
    ] = None,
    thread: Annotated[str, typer.Option(metavar="ID", help="The threadId of the events.")] = "thread-1",
    turn: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The turnId, turn-1 if not given; of a cassette the first part of it, before -1, -2, ...",
            show_default=False,
        ),
    ] = None,
    truncated: Annotated[
        bool, typer.Option("--truncated", help="The input is cut off: its end is not the end of the run.")
    ] = False,
) -> int:
    """Turn native events into AgEvents, one a line.

    The native events are those of a provider or framework, as its adapter knows them.

    Each model request of a VCR cassette becomes a turn of its own.
    """
    streams = Streams()
    found = find_adapter(adapter)
    with open_input(file, streams) as source:
        if _is_cassette(source):
            _normalize_cassette(found, source, streams, thread=thread, turn=turn or "turn", truncated=truncated)
        else:
            normalizer = found.normalizer(turn_id=turn or "turn-1", thread_id=thread)
            for event in _events(normalizer, source.native_events(), truncated=truncated):
                streams.line(encode(event))
    return 0


def _events(normalizer: Normalizer, natives: Iterable[Any], *, truncated: bool) -> Iterator[AgStreamEvent]:
    """The events of one invoke, each as soon as it is there."""
    from agjson.normalizer import HostEnd

    for native in natives:
        yield from normalizer.push(native)
    if not truncated:
        yield from normalizer.push(HostEnd())
    yield from normalizer.flush()


class _Recording:
    """The turns of a recording as those of one thread: each knows what the driver would have told it of the others."""

    def __init__(self, adapter: Adapter, streams: Streams, thread_id: str) -> None:
        from agjson.agents import Thread

        self._adapter = adapter
        self._streams = streams
        self._thread = Thread(thread_id=thread_id)

    def normalize(self, natives: Iterable[Any], turn: str, *, truncated: bool) -> None:
        """Write the events of the next turn."""
        from agjson.agents.notes import Notes, note
        from agjson.agents.thread import Pending
        from agjson.fold import Reducer

        thread = self._thread
        normalizer = self._adapter.normalizer(turn_id=turn, thread_id=thread.thread_id, **thread.settings())
        notes, reducer = Notes(turn), Reducer(thread.result)
        for event in _events(normalizer, natives, truncated=truncated):
            self._streams.line(encode(event))
            reducer.push(event)
            note(notes, event)
        self._thread = replace(
            thread,
            result=reducer.result(),
            ids=thread.ids | notes.ids,
            nested=thread.nested | notes.nested,
            pending=Pending(asks=notes.asks),
        )


def _normalize_cassette(
    adapter: Adapter, source: Input, streams: Streams, *, thread: str, turn: str, truncated: bool
) -> None:
    from agjson.testing.cassettes import parse_cassette

    try:
        exchanges = parse_cassette(b"".join(source.chunks()))
    except DecodeError as error:
        raise Unusable(f"{source.name}: {error}") from None
    recording = _Recording(adapter, streams, thread)
    turns = 0
    for exchange in exchanges:
        natives = adapter.recorded(exchange)
        if natives is None:
            streams.note(f"{source.name}: no model request of {adapter.name}: {_request(exchange)}")
            continue
        turns += 1
        recording.normalize(natives, f"{turn}-{turns}", truncated=truncated)
    if not turns:
        streams.note(f"{source.name}: no model request of {adapter.name} is in it")


def _is_cassette(source: Input) -> bool:
    from agjson.testing.cassettes import is_cassette

    return is_cassette(source.peek().decode("utf-8", errors="replace"))


def _request(exchange: Exchange) -> str:
    """The request in short; queries may hold keys."""
    parts = urlsplit(exchange.uri)
    return f"{exchange.method} {parts.scheme}://{parts.hostname}{parts.path}" if exchange.uri else exchange.method
