"""``agjson check``: what a stream breaks of the rules that a stream can show (spec §5.0)."""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from agjson.checker import Checker, Violation
from agjson.cli.files import FileArgument, open_input
from agjson.cli.results import read_result
from agjson.cli.streams import FINDINGS, Streams, command
from agjson.cli.terminal import harmless_json

__all__ = ["check"]


class _Profile(StrEnum):
    CORE = "CORE"
    EXTENDED = "EXTENDED"
    ADVANCED = "ADVANCED"


class _Lines:
    """The line of each value, held as runs of even spacing: a regular input of any length is one run."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._runs: list[tuple[int, int]] = []  # the line of the first value of a run, and the spacing
        self._count = 0
        self._last = 0

    def append(self, line: int) -> None:
        self._count += 1
        if self._runs:
            first, start = self._firsts[-1], self._runs[-1]
            if self._count == first + 1:  # the second value of a run sets its spacing
                self._runs[-1] = (start[0], line - start[0])
            elif line - self._last != start[1]:
                self._begin(line)
        else:
            self._begin(line)
        self._last = line

    def __getitem__(self, number: int) -> int:
        if not self._runs:
            return number
        at = bisect_right(self._firsts, number) - 1
        line, spacing = self._runs[at]
        return line + (number - self._firsts[at]) * spacing

    def _begin(self, line: int) -> None:
        self._firsts.append(self._count)
        self._runs.append((line, 0))


@command
def check(
    file: FileArgument = None,
    profile: Annotated[
        _Profile | None, typer.Option(case_sensitive=False, help="Report what is above this profile.")
    ] = None,
    initial: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The folded conversation before this stream, as agjson fold prints it."),
    ] = None,
) -> int:
    """Check a stream against the rules of the format.

    Prints one line for each violation: {"line": ..., "seq": ..., "rule": ..., "message": ...}.
    """
    streams = Streams()
    checker = Checker(
        None if profile is None else profile.value,
        initial=None if initial is None else read_result(initial, streams),
    )
    lines = _Lines()
    write = msgspec.json.Encoder().encode
    found = events = 0

    def report(violations: list[Violation]) -> None:
        nonlocal found
        for violation in violations:
            found += 1
            message = violation.message.encode("utf-8", errors="backslashreplace").decode()
            violation = msgspec.structs.replace(violation, line=lines[violation.line], message=message)
            streams.line(harmless_json(write(violation)))

    with open_input(file, streams) as source:
        for item in source.items():
            events += 1
            lines.append(item.line)
            violations = checker.push(item.data)
            if violations:
                report(violations)
        report(checker.finish())
    if streams.on_terminal:
        streams.note(f"{events} events, {found} violations" if found else f"{events} events, nothing broken")
    return FINDINGS if found else 0
