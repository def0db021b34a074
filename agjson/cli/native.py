"""``agjson to-native``: an input or a history as what the provider or framework takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from agjson.cli.adapters import AdapterArgument, find_adapter
from agjson.cli.files import read_all
from agjson.cli.results import read_messages
from agjson.cli.streams import Streams, Unusable, command
from agjson.cli.terminal import shown_word
from agjson.errors import DecodeError
from agjson.jsonable import jsonable
from agjson.wire import decode_input, encode

__all__ = ["to_native"]


@command
def to_native(
    adapter: AdapterArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="One AgInput, or with --messages the messages or a folded conversation; - or nothing is standard "
            "input.",
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The conversation so far: messages, or what agjson fold prints."),
    ] = None,
    messages: Annotated[bool, typer.Option("--messages", help="Convert a history alone, without a call.")] = False,
) -> int:
    """Print the native call of an input as JSON.

    Nothing is sent. What cannot be honoured and what was mended is named on stderr.
    """
    streams = Streams()
    found = find_adapter(adapter)
    if messages:
        if history is not None:
            raise Unusable("--history goes with an input; with --messages the history is FILE")
        convert = _offered(found.messages_to_native, found.name, "messages_to_native")
        native = convert(read_messages(file, streams))
    else:
        convert = _offered(found.to_native, found.name, "to_native")
        name, items = read_all(file, streams)
        if len(items) != 1:
            raise Unusable(f"{name}: expected one input, got {len(items)} values")
        try:
            ag_input = decode_input(items[0].data)
        except DecodeError as error:
            raise Unusable(f"{name}:{items[0].line}: {error}") from None
        native = convert(ag_input, history=() if history is None else read_messages(history, streams))
    streams.line(encode(jsonable(native)))
    _report(streams, "Not supported", getattr(native, "unsupported", None))
    _report(streams, "Mended", getattr(native, "repairs", None))
    return 0


def _offered(function: Callable[..., Any] | None, adapter: str, name: str) -> Callable[..., Any]:
    if function is None:
        raise Unusable(f"The adapter {adapter} has no {name}")
    return function


def _report(streams: Streams, what: str, found: Iterable[object] | None) -> None:
    for each in found or ():
        streams.note(f"{what}: {shown_word(str(each))}")
