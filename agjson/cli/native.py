"""``agjson to-native``: an input or a history as what the provider or framework takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from agjson.cli.adapters import AdapterArgument, find_adapter
from agjson.cli.files import read_all
from agjson.cli.kinds import kind_of
from agjson.cli.results import read_messages
from agjson.cli.streams import Streams, Unusable, command
from agjson.cli.terminal import shown_word
from agjson.errors import DecodeError
from agjson.jsonable import jsonable
from agjson.types import AgInput
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
        if native == []:
            _report(streams, "Mended", getattr(native, "repairs", None))
            raise Unusable("Nothing of the history can go to the model: no message is left")
    else:
        convert = _offered(found.to_native, found.name, "to_native")
        ag_input = _read_input(file, streams)
        native = convert(
            ag_input, history=() if history is None else read_messages(history, streams, may_be_empty=True)
        )
    streams.line(encode(jsonable(native)))
    _report(streams, "Not supported", getattr(native, "unsupported", None))
    _report(streams, "Mended", getattr(native, "repairs", None))
    return 0


# What to do with a value of another kind.
_ADVICE = {
    "an event": "an input is what a client sends: a start, a resume or a tool-result",
    "a message": "for a history without an input there is --messages",
    "a folded conversation": "for a history without an input there is --messages, and beside an input --history",
    "a native message": "it is what agjson to-native prints, not what it reads",
    "a native request": "it is what agjson to-native prints, not what it reads",
}


def _read_input(file: Path | None, streams: Streams) -> AgInput:
    """Read the one input of a file.

    Raises:
        OSError: the file cannot be opened.
        Unusable: it holds something else.
    """
    name, items = read_all(file, streams)
    kind = kind_of(items[0].data) if items else ""
    if kind in _ADVICE:
        raise Unusable(f"{name}:{items[0].line}: expected an input, got {kind}: {_ADVICE[kind]}")
    if len(items) != 1:
        raise Unusable(f"{name}: expected one input, got {len(items)} values")
    try:
        return decode_input(items[0].data)
    except DecodeError as error:
        raise Unusable(f"{name}:{items[0].line}: {error}") from None


def _offered(function: Callable[..., Any] | None, adapter: str, name: str) -> Callable[..., Any]:
    if function is None:
        raise Unusable(f"The adapter {adapter} has no {name}")
    return function


def _report(streams: Streams, what: str, found: Iterable[object] | None) -> None:
    for each in found or ():
        streams.note(f"{what}: {shown_word(str(each))}")
