"""matrix.toml names tests that exist, and leaves out nothing that a transcript can show."""

from __future__ import annotations

import ast
import re
import tomllib

from tests.support.corpus import ROOT

FOLDER = ROOT / "tests" / "transcript"
MATRIX = tomllib.loads((FOLDER / "matrix.toml").read_text(encoding="utf-8"))

# The rows and rules that hold for a neutral library over messages, with those of approvals.
NEUTRAL_ROWS = {
    *(1, 3, 5, 6, 7, 8, 9, 12, 13, 14, 17, 18, 19, 21, 24),
    *range(25, 45),
    *(49, 50, 51, 53, 54, 55, 56, 57, 61, 63, 65, 66, 67, 70, 71, 73, 74, 75, 76, 79, 84),
}
NEUTRAL_RULES = {*range(1, 7), *range(8, 12), 13, 14, 15, 16, 17, *range(19, 28)}


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
        **{f"rule {n}": MATRIX["rules"][n] for n in MATRIX["rules"]},
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


def test_every_row_and_rule_of_a_neutral_library_has_tests_or_a_place_where_they_will_be() -> None:
    left = MATRIX["left"]["approvals"]
    assert {int(n) for n in MATRIX["rows"]} | set(left["rows"]) == NEUTRAL_ROWS
    assert {int(n) for n in MATRIX["rules"]} | set(left["rules"]) == NEUTRAL_RULES
    assert not {int(n) for n in MATRIX["rows"]} & set(left["rows"])
    assert not {int(n) for n in MATRIX["rules"]} & set(left["rules"])
