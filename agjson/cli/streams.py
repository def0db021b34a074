"""The standard streams of one command: results on stdout, everything said about them on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, cast

import typer

from agjson.cli.terminal import shown_word
from agjson.errors import AgJSONError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["BROKEN_PIPE", "FAULT", "FINDINGS", "INTERRUPTED", "UNUSABLE", "Streams", "Unusable", "command"]

FINDINGS = 1
"""The exit status when the input was read and something in it is wrong."""

UNUSABLE = 2
"""The exit status when a call or a file cannot be used."""

FAULT = 70
"""The exit status when agjson itself is at fault (EX_SOFTWARE)."""

INTERRUPTED = 130
"""The exit status after Ctrl-C, as of any program that SIGINT ends."""

BROKEN_PIPE = 141
"""The exit status when the reader of the output has gone, as of any program that SIGPIPE ends."""

# Reading less takes no noticeable time.
_PROGRESS_FROM_BYTES = 8 * 1024 * 1024

_P = ParamSpec("_P")


class Unusable(Exception):
    """A call or a file that cannot be used; the message is for stderr as it is."""


class Streams:
    """Where a command writes.

    Results are bytes on stdout; they are flushed before the command waits for input, so that a reader sees them at
    once. Notes and the progress bar go to stderr. The bar is drawn for large files on a terminal only, and vanishes
    before anything else is written to that terminal.
    """

    def __init__(self) -> None:
        if cast("object", sys.stdout) is None:
            raise Unusable("Standard output is closed")
        self._out = sys.stdout.buffer
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    @property
    def on_terminal(self) -> bool:
        """Whether a person reads the notes."""
        return sys.stderr.isatty()

    def line(self, data: bytes) -> None:
        """Write one line of results, given without its newline."""
        if self._bar is not None and sys.stdout.isatty():
            self.end_progress()
        self._out.write(data)
        self._out.write(b"\n")

    def write(self, text: str) -> None:
        """Write text that is safe to show; what the encoding of stdout lacks becomes an escape."""
        if self._bar is not None and sys.stdout.isatty():
            self.end_progress()
        self._out.write(text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace"))

    def flush(self) -> None:
        """Hand over everything written so far."""
        self._out.flush()

    def note(self, message: str) -> None:
        """Say something about the work on stderr, on a line of its own."""
        self.end_progress()
        self.flush()
        print(shown_word(message), file=sys.stderr, flush=True)

    def start_progress(self, name: str, total: int) -> None:
        """Draw a bar for an input of `total` bytes, where that is of use."""
        if total < _PROGRESS_FROM_BYTES or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(shown_word(name), total=total)
        self._bar.start()

    def advance(self, count: int) -> None:
        """Tell the bar that `count` more bytes were read."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, count)

    def end_progress(self) -> None:
        """Remove the bar for good."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()


def command(function: Callable[_P, int]) -> Callable[_P, None]:
    """Make a command of a function that returns its exit status: errors become messages and statuses."""

    @wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            status = _status(lambda: function(*args, **kwargs))
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            status = BROKEN_PIPE
        raise typer.Exit(status)

    return run


def _status(function: Callable[[], int]) -> int:
    try:
        return function()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Unusable as error:
        message = str(error)
    except AgJSONError as error:
        message = f"agjson: {error}"
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        message = f"{name}{error.strerror or error}"
    sys.stdout.flush()
    print(shown_word(message), file=sys.stderr, flush=True)
    return UNUSABLE


def _drop_output() -> None:
    """Let the flush at exit go nowhere, or Python would report the broken pipe a second time."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
