"""The ``agjson`` command in tests: in this process, and as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from agjson.cli.app import make_app
from tests.support.corpus import ROOT

ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("FORCE_COLOR", "NO_COLOR", "TERM", "TTY_COMPATIBLE", "COLUMNS", "LINES", "PYTHONUNBUFFERED")
}
"""The environment of processes that tests start: nothing in it asks for colours or a width."""


@dataclass(frozen=True)
class Done:
    """What a call printed and how it ended."""

    status: int
    out: str
    err: str

    @property
    def values(self) -> list[Any]:
        """The lines of the output, parsed."""
        assert self.out == "" or self.out.endswith("\n")
        return [json.loads(line) for line in self.out.split("\n")[:-1]]


def agjson(*args: str | Path, stdin: str | bytes = b"") -> Done:
    """Run a command in this process; an exception that it does not handle comes through."""
    result = CliRunner().invoke(make_app(rich_help=False), [str(arg) for arg in args], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def command(*args: str | Path) -> list[str]:
    """The words that start the command as a process, with this interpreter."""
    return [sys.executable, "-c", "import sys; from agjson.cli import main; sys.exit(main())", *map(str, args)]


def process(*args: str | Path, stdin: str | bytes = b"", **env: str) -> Done:
    """Run the command as a process, with pipes for its streams."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        command(*args), input=data, cwd=ROOT, env=ENVIRONMENT | env, capture_output=True, timeout=60, check=False
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def lines(values: Iterable[Any]) -> str:
    """JSON lines."""
    return "".join(f"{json.dumps(value)}\n" for value in values)


def ev(type: str, /, **fields: Any) -> dict[str, Any]:
    """One event as a plain object, without its ordinal unless that is given."""
    return {"type": type, **fields}


def wire(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with their ordinals; one that names its own is counted on from."""
    found: list[dict[str, Any]] = []
    for event in events:
        due = found[-1]["seq"] + 1 if found else 0
        found.append({"type": event["type"], "seq": due, **event})
    return found


def stream(*events: dict[str, Any]) -> str:
    """A stream of events as JSON lines; the ordinals are counted."""
    return lines(wire(events))


def file(folder: Path, text: str | bytes, name: str = "stream.jsonl") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
