"""The conformance page is up to date, complete, and names only tests that exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.conformance.page import DUTIES, PAGE, Row, current, faults, load_rows, names_in, render
from tests.support.corpus import ROOT

ALL = [duty for _, section in DUTIES for duty in section]


def passing(**fields: object) -> list[Row]:
    """Rows for every duty that have no fault; ``fields`` replace those of the first."""
    rows = [Row(id=duty, what="x", status="not yet", reason="later") for duty in ALL]
    return [msgspec.structs.replace(rows[0], **fields), *rows[1:]]


def test_the_committed_page_is_what_the_rows_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == current(), "run make conformance"


def test_the_rows_have_no_fault() -> None:
    assert faults(load_rows()) == []


def test_the_duties_are_those_of_the_specification() -> None:
    assert len(ALL) == 8 + 10 + 23 + 20 + 2 + 2 + 6
    assert ALL[:3] == ["INV-FOLD", "INV-TURN", "INV-MSG"]
    assert ALL[-1] == "13.6"


def test_a_missing_a_repeated_and_an_unknown_duty_are_faults() -> None:
    rows = passing()
    assert faults(rows) == []
    assert faults(rows[1:]) == ["INV-FOLD: no row"]
    assert faults([*rows, rows[0]]) == ["INV-FOLD: 2 rows"]
    assert faults([*rows, Row(id="8.24", what="x", status="not yet", reason="r")]) == ["8.24: no such duty"]


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"status": "pass"}, "passes without a test"),
        ({"reason": ""}, "not yet without a reason"),
        ({"status": "not applicable", "reason": ""}, "not applicable without a reason"),
        ({"status": "not applicable", "tests": ["tests/t.py::test_a"]}, "does not apply, yet has tests"),
        ({"tests": ["tests/t.py::test_z"]}, "tests/t.py::test_z does not exist"),
        ({"tests": ["tests/no.py::test_a"]}, "tests/no.py::test_a does not exist"),
        ({"tests": ["tests/t.py::test_b"]}, "tests/t.py::test_b is skipped or expected to fail"),
        ({"tests": ["tests/t.py::TestC::test_e"]}, "tests/t.py::TestC::test_e is skipped or expected to fail"),
    ],
)
def test_a_row_without_proof_is_a_fault(tmp_path: Path, fields: dict[str, object], fault: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "t.py").write_text(
        "import pytest\n"
        "def test_a(): pass\n"
        "@pytest.mark.skip\n"
        "def test_b(): pass\n"
        "class TestC:\n"
        "    async def test_d(self): pass\n"
        "    @pytest.mark.xfail(reason='x')\n"
        "    def test_e(self): pass\n"
        "TestMachine = Machine.TestCase\n"
    )
    good = ["tests/t.py::test_a", "tests/t.py::TestC::test_d", "tests/t.py::TestMachine"]
    assert faults(passing(status="pass", tests=good), tmp_path) == []
    assert faults(passing(**fields), tmp_path) == [f"INV-FOLD: {fault}"]


def test_tests_that_are_only_defined_inside_a_function_are_none(tmp_path: Path) -> None:
    path = tmp_path / "t.py"
    path.write_text("def helper():\n    def test_a(): pass\n")
    assert names_in(path) == {}


def test_a_row_shows_its_status_its_reason_and_its_tests() -> None:
    text = render(passing(status="pass", what="a | b", reason="as\nread", tests=["tests/t.py::TestC::test_d"]))
    assert "| INV-FOLD | a \\| b | pass | as read<br>[`TestC::test_d`](../tests/t.py) |" in text
    assert "**1** pass, **70** not yet, **0** not applicable." in text


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.conformance", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_tells_that_the_page_is_up_to_date() -> None:
    done = run("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_refuses_other_arguments() -> None:
    done = run("--verify")
    assert (done.returncode, done.stderr) == (2, "usage: python -m tests.conformance [--check]\n")
