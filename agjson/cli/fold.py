"""``agjson fold``: a stream to the conversation that it tells (spec §5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from agjson.cli.files import FileArgument, open_input
from agjson.cli.results import read_result
from agjson.cli.streams import Streams, command
from agjson.errors import DecodeError
from agjson.fold import Reducer
from agjson.wire import encode, ingest_event

__all__ = ["fold"]

_SHOWN_VIOLATIONS = 20


@command
def fold(
    file: FileArgument = None,
    initial: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A folded conversation to go on from, as this command prints it."),
    ] = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Leave malformed events out and say how many; their gap stays.")
    ] = False,
    tolerant: Annotated[
        bool, typer.Option("--tolerant", help="Mend what other producers often do wrong, and say what was mended.")
    ] = False,
    pretty: Annotated[bool, typer.Option("--pretty", help="Indent the result.")] = False,
) -> int:
    """Fold a stream of events into the conversation.

    Prints one line: {"result": ..., "needsResync": ...}.
    """
    streams = Streams()
    reducer = Reducer(None if initial is None else read_result(initial, streams), tolerant=tolerant)
    push = reducer.push
    skipped = 0
    first = ""
    with open_input(file, streams) as source:
        for item in source.items():
            try:
                event = ingest_event(item.data)
            except DecodeError as error:
                fault = source.unusable(error, item.line)
                if not skip_invalid:
                    raise fault from None
                skipped += 1
                first = first or str(fault)
                continue
            push(event)
    parked = b"true" if reducer.needs_resync else b"false"
    text = b'{"result":' + encode(reducer.result()) + b',"needsResync":' + parked + b"}"
    streams.line(msgspec.json.format(text, indent=2) if pretty else text)
    if skipped:
        streams.note(f"Malformed events left out: {skipped}, the first at {first}")
    if reducer.resync_reason is not None:
        streams.note(f"The fold is parked: {reducer.resync_reason}")
    for violation in reducer.violations[:_SHOWN_VIOLATIONS]:
        streams.note(f"Mended at seq {violation.seq} ({violation.rule}): {violation.message}")
    if len(reducer.violations) > _SHOWN_VIOLATIONS:
        streams.note(f"Mended in all: {len(reducer.violations)}")
    return 0
