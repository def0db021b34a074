"""``agjson normalize``: what a provider or framework sent, as AgEvents (spec §8.0)."""

from __future__ import annotations

from collections.abc import Iterable
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
    from agjson.testing.cassettes import Exchange

__all__ = ["normalize"]

# By event type, the field that names something for the rest of the thread.
_ID_FIELDS = {
    "turn.start": "turn_id",
    "subagent.start": "turn_id",
    "message.start": "id",
    "step.start": "id",
    "text.start": "id",
    "reasoning.start": "id",
    "tool.start": "tool_call_id",
    "tool.done": "message_id",
    "artifact.start": "artifact_id",
    "source": "source_id",
    "hitl.ask": "ask_id",
}


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
            run = _Invoke(found, streams, thread, known_ids=set())
            run.normalize(source.native_events(), turn or "turn-1", truncated=truncated)
    return 0


class _Invoke:
    """One thread whose events are written; `known_ids` grows with it (spec §8.0, design of `known_ids`)."""

    def __init__(self, adapter: Adapter, streams: Streams, thread: str, known_ids: set[str]) -> None:
        self._adapter = adapter
        self._streams = streams
        self._thread = thread
        self._known_ids = known_ids

    def normalize(self, natives: Iterable[Any], turn: str, *, truncated: bool) -> None:
        """Write the events of one invoke, each as soon as it is there."""
        from agjson.normalizer import HostEnd

        normalizer = self._adapter.normalizer(
            turn_id=turn, thread_id=self._thread, known_ids=frozenset(self._known_ids)
        )
        for native in natives:
            self._write(normalizer.push(native))
        if not truncated:
            self._write(normalizer.push(HostEnd()))
        self._write(normalizer.flush())

    def _write(self, events: Iterable[Any]) -> None:
        for event in events:
            self._streams.line(encode(event))
            field = _ID_FIELDS.get(event.type)
            if field is not None and (name := getattr(event, field)) is not None:
                self._known_ids.add(name)


def _normalize_cassette(
    adapter: Adapter, source: Input, streams: Streams, *, thread: str, turn: str, truncated: bool
) -> None:
    from agjson.testing.cassettes import parse_cassette

    try:
        exchanges = parse_cassette(b"".join(source.chunks()))
    except DecodeError as error:
        raise Unusable(f"{source.name}: {error}") from None
    run = _Invoke(adapter, streams, thread, known_ids=set())
    turns = 0
    for exchange in exchanges:
        natives = adapter.recorded(exchange)
        if natives is None:
            streams.note(f"{source.name}: no model request of {adapter.name}: {_request(exchange)}")
            continue
        turns += 1
        run.normalize(natives, f"{turn}-{turns}", truncated=truncated)
    if not turns:
        streams.note(f"{source.name}: no model request of {adapter.name} is in it")


def _is_cassette(source: Input) -> bool:
    from agjson.testing.cassettes import is_cassette

    return is_cassette(source.peek().decode("utf-8", errors="replace"))


def _request(exchange: Exchange) -> str:
    """The request in short; queries may hold keys."""
    parts = urlsplit(exchange.uri)
    return f"{exchange.method} {parts.scheme}://{parts.hostname}{parts.path}" if exchange.uri else exchange.method
