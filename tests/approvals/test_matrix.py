"""matrix.toml names tests that exist, and has what transcripts leave to the ledger."""

from __future__ import annotations

import ast
import re
import tomllib

from tests.support.corpus import ROOT

FOLDER = ROOT / "tests" / "approvals"
MATRIX = tomllib.loads((FOLDER / "matrix.toml").read_text(encoding="utf-8"))
# The rows and rules that a transcript cannot show and a neutral library can.
OF_THE_LEDGER = {"row 42", "row 49", "row 50", "row 51", "rule 13"}


def known_tests() -> dict[str, str]:
    """Every test of the folder: its node id and its name."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[f"{path.relative_to(ROOT).as_posix()}::{node.name}"] = node.name
    return found


def listed() -> dict[str, list[str]]:
    return {
        **{f"row {n}": ids for n, ids in MATRIX["rows"].items()},
        **{f"rule {n}": ids for n, ids in MATRIX["rules"].items()},
    }


def test_every_listed_test_exists_and_is_listed_once_for_its_row() -> None:
    known = known_tests()
    for name, ids in listed().items():
        assert ids, name
        assert len(ids) == len(set(ids)), name
        assert [id for id in ids if id not in known] == [], name


def test_every_test_that_is_named_after_a_row_or_rule_is_listed_there() -> None:
    for id, name in known_tests().items():
        for kind, number in re.findall(r"(row|rule)_(\d+)", name):
            assert id in listed()[f"{kind} {number}"], id


def test_what_only_the_ledger_can_show_is_there() -> None:
    assert set(listed()) >= OF_THE_LEDGER
