"""Input of a command: a file or stdin, read in pieces as they come, cut into JSON values with their lines."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import typer

from agjson.adapter import native_events
from agjson.cli.streams import Streams, Unusable
from agjson.errors import DecodeError
from agjson.wire.lines import Item, iter_json

__all__ = ["FileArgument", "Input", "open_input", "read_all"]

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="JSON lines, a JSON array, or server-sent events; - or nothing is standard input.",
        show_default=False,
    ),
]
"""The FILE of most commands."""

_CHUNK = 64 * 1024
# Far more than any event or conversation; what goes on without an end must not take all memory.
_LONGEST_VALUE = 256 * 1024 * 1024
# Enough to tell any kind of file by its beginning.
_PEEKED = 64
_LINE = re.compile(r"line (\d+): (.*)", re.DOTALL)


class _Readable(Protocol):
    # read1 returns what a pipe holds by now, where read would wait for a full buffer.
    def read1(self, size: int, /) -> bytes: ...


class Input:
    """An open input.

    Attributes:
        name: what messages call it.
    """

    def __init__(self, file: _Readable, name: str, streams: Streams) -> None:
        self._file = file
        self._streams = streams
        self._ahead = b""
        self.name = name

    def peek(self) -> bytes:
        """The beginning of the input: a line, or more than a few bytes. It is read again by what comes after."""
        while len(self._ahead) < _PEEKED and b"\n" not in self._ahead.lstrip():
            chunk = self._read()
            if not chunk:
                break
            self._ahead += chunk
        return self._ahead

    def chunks(self) -> Iterator[bytes]:
        """The bytes as they come; results written so far are handed over before each wait for more."""
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            yield ahead
        while chunk := self._read():
            yield chunk

    def items(self) -> Iterator[Item]:
        """Every JSON value of the input with its line.

        Raises:
            Unusable: the input ends inside an array, a value or an event, or one is longer than 256 MiB.
        """
        try:
            yield from iter_json(self.chunks(), max_bytes=_LONGEST_VALUE)
        except DecodeError as error:
            raise self.unusable(error) from None

    def native_events(self) -> Iterator[Any]:
        """Every native event of the input as plain data, as `agjson.adapter.native_events`.

        Raises:
            Unusable: an event cannot be read; those before it were yielded.
        """
        try:
            yield from native_events(self.chunks(), max_bytes=_LONGEST_VALUE)
        except DecodeError as error:
            raise self.unusable(error) from None

    def place(self, line: int) -> str:
        """A line of the input as messages name it."""
        return f"{self.name}:{line}"

    def unusable(self, error: DecodeError, line: int | None = None) -> Unusable:
        """The error that names the place of `error`: ``file:line: message - at `$.path```."""
        message = str(error)
        if line is None:
            found = _LINE.match(message)
            if found is None:
                return Unusable(f"{self.name}: {message}")
            line, message = int(found[1]), found[2]
        return Unusable(f"{self.place(line)}: {message}")

    def _read(self) -> bytes:
        self._streams.flush()
        chunk = self._file.read1(_CHUNK)
        self._streams.advance(len(chunk))
        return chunk


@contextmanager
def open_input(file: Path | None, streams: Streams) -> Generator[Input]:
    """Open FILE, or stdin for ``-`` and None, for the time of a block.

    Raises:
        OSError: the file cannot be opened.
        Unusable: stdin is closed.
    """
    if file is None or str(file) == "-":
        if cast("object", sys.stdin) is None:
            raise Unusable("<stdin>: closed")
        if sys.stdin.isatty():
            streams.note("Reading from the terminal; Ctrl-D ends the input.")
        yield Input(cast("_Readable", sys.stdin.buffer), "<stdin>", streams)
        return
    with file.open("rb") as opened:
        status = os.fstat(opened.fileno())
        regular = stat.S_ISREG(status.st_mode)
        if regular:
            streams.start_progress(file.name, status.st_size)
        try:
            yield Input(opened, str(file), streams)
        finally:
            streams.end_progress()


def read_all(file: Path | None, streams: Streams) -> tuple[str, list[Item]]:
    """Read a whole input of few values.

    Returns:
        What messages call it, and its values.

    Raises:
        OSError: the file cannot be opened.
        Unusable: it ends inside a value.
    """
    with open_input(file, streams) as source:
        return source.name, list(source.items())
