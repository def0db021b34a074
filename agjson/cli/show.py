"""``agjson show``: a stream for human eyes, as it comes."""

from __future__ import annotations

from typing import Annotated

import typer

from agjson.cli.files import FileArgument, Input, open_input
from agjson.cli.show_events import Viewer
from agjson.cli.show_screen import Screen
from agjson.cli.streams import FINDINGS, Streams, Unusable, command
from agjson.errors import DecodeError
from agjson.wire import ingest_event

__all__ = ["show"]


@command
def show(
    file: FileArgument = None,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long values.")] = False,
) -> int:
    """Show a stream of events as a conversation, live.

    Control characters of what models and tools wrote are shown as escapes, and opaque values by their length alone.
    """
    streams = Streams()
    viewer = Viewer(Screen(streams), full=full)
    with open_input(file, streams) as source:
        try:
            shown, unread = _show(source, viewer)
        finally:
            viewer.finish()
    if unread and not shown:
        raise Unusable(f"{source.name}: nothing in it is an event")
    return FINDINGS if unread else 0


def _show(source: Input, viewer: Viewer) -> tuple[int, int]:
    """Show every event; returns how many there were, and how many values were none."""
    shown = unread = 0
    in_a_row = 0
    try:
        for item in source.items():
            try:
                event = ingest_event(item.data)
            except DecodeError as error:
                unread += 1
                in_a_row += 1
                if in_a_row == 1:
                    viewer.notice(str(source.unusable(error, item.line)))
                    viewer.skip()
                continue
            if in_a_row > 1:
                viewer.notice(f"{in_a_row - 1} more after it could not be read")
            in_a_row = 0
            viewer.push(event)
            shown += 1
    except Unusable as error:
        viewer.notice(str(error))
        raise
    if in_a_row > 1:
        viewer.notice(f"{in_a_row - 1} more after it could not be read")
    return shown, unread
