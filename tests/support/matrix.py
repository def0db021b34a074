"""The tables that say which tests show a row or rule of the function-calling contract: ``matrix.toml`` in a folder."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import Any

from tests.support.corpus import ROOT

__all__ = ["Matrix"]


class Matrix:
    """The table of one folder of tests.

    Args:
        folder: its name below ``tests``.

    Attributes:
        table: what ``matrix.toml`` holds.
    """

    def __init__(self, folder: str) -> None:
        self._folder = ROOT / "tests" / folder
        self.table: dict[str, Any] = tomllib.loads((self._folder / "matrix.toml").read_text(encoding="utf-8"))

    def known_tests(self) -> dict[str, str]:
        """Every test of the folder: its node id and its name."""
        found: dict[str, str] = {}
        for path in sorted(self._folder.glob("test_*.py")):
            for node in ast.parse(path.read_bytes()).body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    found[f"{path.relative_to(ROOT).as_posix()}::{node.name}"] = node.name
        return found

    def listed(self) -> dict[str, list[str]]:
        """The node ids that are listed, by ``row 1``, ``rule 1`` and so on."""
        return {
            **{f"row {n}": ids for n, ids in self.table["rows"].items()},
            **{f"rule {n}": ids for n, ids in self.table["rules"].items()},
        }

    def verify_listed(self) -> None:
        """Every listed test exists, and is listed once for its row."""
        known = self.known_tests()
        for name, ids in self.listed().items():
            assert ids, name
            assert len(ids) == len(set(ids)), name
            assert [id for id in ids if id not in known] == [], name

    def verify_named(self) -> None:
        """Every test that is named after a row or rule is listed there."""
        for id, name in self.known_tests().items():
            for kind, number in re.findall(r"(row|rule)_(\d+)", name):
                assert id in self.listed()[f"{kind} {number}"], id
