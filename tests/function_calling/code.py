"""The code that the contract is about: what of it has changed since the page was made, and what no listed test uses."""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.corpus import ROOT

__all__ = ["MODULES", "PACKAGES", "digest", "digests", "public_names", "unused"]

PACKAGES = ("agjson/transcript", "agjson/approvals")
"""The packages of the library, of which the listed tests must use every function and every error."""

MODULES = (
    "agjson/stores/ledger.py",
    "agjson/stores/continuations.py",
    "agjson/agents/asking.py",
    "agjson/agents/deciding.py",
)
"""What carries them to disk, and what agents do with them."""


def digests(root: Path = ROOT) -> dict[str, str]:
    """The digest of each module, by its path."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    paths += [root / module for module in MODULES]
    return {path.relative_to(root).as_posix(): digest(path.read_text(encoding="utf-8")) for path in paths}


def digest(source: str) -> str:
    """Twelve hexadecimal digits that change with the code, and not with comments, docstrings and empty lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[row - 1] = ""
    kept = "\n".join(line.rstrip() for line in lines if line.strip())
    return hashlib.sha256(kept.encode()).hexdigest()[:12]


def public_names(package: str, root: Path = ROOT) -> list[str]:
    """What a package exports that does something or is raised: functions and errors, not records."""
    for node in ast.parse((root / package / "__init__.py").read_bytes()).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return [name for name in ast.literal_eval(node.value) if name.islower() or name.endswith("Error")]
    raise LookupError(f"{package} has no __all__")


def unused(files: Iterable[str], root: Path = ROOT) -> Mapping[str, list[str]]:
    """The functions and errors of each package that no file uses, nor a helper below ``tests`` that it imports.

    Args:
        files: test files, as paths below ``root``.
        root: the root of the repository.
    """
    seen: set[Path] = set()
    unread = [root / file for file in files]
    used: set[str] = set()
    while unread:
        path = unread.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
                unread.append(root / (re.sub(r"\.", "/", node.module or "") + ".py"))
            elif isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
    return {package: [name for name in public_names(package, root) if name not in used] for package in PACKAGES}
