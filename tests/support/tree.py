"""The files of the project, as version control sees them."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.corpus import ROOT


@cache
def project_files() -> tuple[Path, ...]:
    """Every file and link that is tracked, or new and not ignored, as paths relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (Path(name) for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in paths if (ROOT / path).is_symlink() or (ROOT / path).is_file())


def python_files() -> list[Path]:
    """The Python files among `project_files`."""
    return [path for path in project_files() if path.suffix == ".py"]


@cache
def pyproject() -> dict[str, Any]:
    """The parsed ``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages_on_disk() -> list[str]:
    """The import name of every package folder, sorted; adapters/ and middleware/ under their names inside agjson."""
    homes: dict[str, str] = pyproject()["tool"]["setuptools"]["package-dir"]
    found: list[str] = []
    for path in python_files():
        if path.name != "__init__.py":
            continue
        for name, home in homes.items():
            if path.parts[0] == home:
                found.append(".".join([name, *path.parent.parts[1:]]))
    return sorted(found)
