"""The examples of a Markdown page: found, run, and held to the output that the page shows.

* Every ``python`` block runs; the blocks of one page share their names, and may await.
* In a ``console`` block every line ``$ …`` whose command is or pipes into ``agjson`` or ``python`` runs, from the
  repository root; the lines below it are its output, where a line ``...`` stands for any lines. Where no output is
  shown it must exit with 0.
* A comment ``<!-- example: not run: reason -->`` before a block keeps it from running.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.corpus import ROOT

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+)(?P<language>[\w-]*).*$")
_NOT_RUN = re.compile(r"^\s*<!-- example: not run: \S.*-->\s*$")
_OURS = re.compile(r"(?:^|\|)\s*(?:agjson|python)\b")
_PROMPT = "$ "
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line of its fence (from 1), and whether it runs."""

    language: str
    text: str
    line: int
    runs: bool


@dataclass(frozen=True)
class Command:
    """One command of a console block and the output that the page shows below it (empty: none is shown)."""

    command: str
    shown: str


def blocks(markdown: str) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    lines = markdown.splitlines()
    at = 0
    marked = False
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            # Blank lines may stand between the comment and its block.
            marked = bool(_NOT_RUN.match(lines[at])) or (marked and not lines[at].strip())
            at += 1
            continue
        start = at
        at += 1
        while at < len(lines) and lines[at].strip() != fence["fence"]:
            at += 1
        text = textwrap.dedent("\n".join(lines[start + 1 : at]))
        yield Block(fence["language"], text, start + 1, runs=not marked)
        marked = False
        at += 1


def commands(console: str) -> list[Command]:
    """The commands of a console block, each with the output shown; lines that end in a backslash are joined."""
    found: list[tuple[str, list[str]]] = []
    continued = False
    for line in console.splitlines():
        if continued:
            command, shown = found[-1]
            found[-1] = (f"{command}\n{line}", shown)
        elif line.startswith(_PROMPT):
            found.append((line.removeprefix(_PROMPT), []))
        elif found:
            found[-1][1].append(line)
        continued = line.endswith("\\") and (continued or line.startswith(_PROMPT))
    return [Command(command, "\n".join(shown).strip("\n")) for command, shown in found]


def run_page(markdown: str, name: str) -> int:
    """Run every example of a page.

    Args:
        markdown: the text of the page.
        name: what errors call it.

    Returns:
        How many blocks and commands ran.

    Raises:
        AssertionError: a command's output differs from the one shown, or it failed.
    """
    ran = 0
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(markdown):
        where = f"{name}:{block.line}"
        if not block.runs:
            continue
        if block.language == "python":
            _run_python(block.text, where, namespace)
            ran += 1
        elif block.language == "console":
            for command in commands(block.text):
                if _OURS.search(command.command):
                    _run_command(command, where)
                    ran += 1
    return ran


def _run_python(text: str, where: str, namespace: dict[str, Any]) -> None:
    code = compile(text, where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, namespace)
    if inspect.iscoroutine(result):
        asyncio.run(result)


def _run_command(command: Command, where: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        command.command,
        shell=True,
        cwd=ROOT,
        env=os.environ | {"PATH": path, "COLUMNS": "120", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_SECONDS,
    )
    if command.shown:
        assert matches(command.shown, done.stdout), f"{where}: $ {command.command}\nprinted:\n{done.stdout}"
    else:
        assert done.returncode == 0, f"{where}: $ {command.command}\nexit {done.returncode}:\n{done.stdout}"


def matches(shown: str, printed: str) -> bool:
    """Whether an output is the one shown; trailing blanks do not count, and a shown line ``...`` is any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in shown.splitlines()
    )
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None
