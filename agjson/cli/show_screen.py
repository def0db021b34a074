"""The sheet that ``agjson show`` writes on: whole lines, text that goes on where it stopped, styles on a terminal."""

from __future__ import annotations

import sys
from typing import Literal, TypeAlias

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from agjson.cli.streams import Streams

__all__ = ["Screen", "StyleName"]

StyleName: TypeAlias = Literal["plain", "heading", "speaker", "faint", "tool", "good", "bad", "warning"]
"""What a piece of text is; how that looks is this module's matter."""

_STYLES: dict[StyleName, Style] = {
    "plain": Style.null(),
    "heading": Style(bold=True, color="blue"),
    "speaker": Style(bold=True),
    "faint": Style(dim=True),
    "tool": Style(color="cyan"),
    "good": Style(color="green"),
    "bad": Style(color="red"),
    "warning": Style(bold=True, color="yellow"),
}


class Screen:
    """Writes lines and running text. All text given to it must be safe to show already.

    Args:
        streams: where to write.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        console = Console(file=sys.stdout)
        self._styled = console.is_terminal and not console.no_color and not console.is_dumb_terminal
        self._at_start = True

    def line(self, text: str, *, prefix: str = "", style: StyleName = "plain") -> None:
        """Write whole lines, after the end of a line that is still being written.

        Args:
            text: one or more lines.
            prefix: what stands before each.
            style: what the text is.
        """
        self.end_line()
        self.text(text, prefix=prefix, style=style)
        self._streams.write("\n")
        self._at_start = True

    def text(self, text: str, *, prefix: str = "", style: StyleName = "plain") -> None:
        """Write on from where the last text stopped.

        Args:
            text: any piece; a newline in it begins a line.
            prefix: what stands before each line that begins.
            style: what the text is.
        """
        first = True
        for part in text.split("\n"):
            if not first:
                self._streams.write(f"{prefix.rstrip()}\n" if self._at_start else "\n")
                self._at_start = True
            first = False
            if part:
                if self._at_start:
                    self._streams.write(prefix)
                    self._at_start = False
                self._streams.write(self._dressed(part, style))

    def end_line(self) -> None:
        """End the line that is being written, if there is one."""
        if not self._at_start:
            self._streams.write("\n")
            self._at_start = True

    def _dressed(self, text: str, style: StyleName) -> str:
        if not self._styled or style == "plain":
            return text
        return _STYLES[style].render(text, color_system=ColorSystem.STANDARD)
