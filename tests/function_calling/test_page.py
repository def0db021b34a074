"""The page of the function-calling contract is up to date, and goes stale when the code changes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.function_calling.code import PACKAGES, digest, digests, public_names, unused
from tests.function_calling.page import PAGE, changed, current, render
from tests.function_calling.table import Entry, Section
from tests.support.corpus import ROOT

SOURCE = '''
"""A module."""


# Why.
def half(number: int) -> int:
    """Half of it."""
    return number // 2  # whole
'''


def test_the_committed_page_is_what_table_and_code_make() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert changed(text, digests()) == [], "look at the rows that it concerns; run python -m tests.function_calling"
    assert text == current(), "run python -m tests.function_calling"


def test_the_page_is_of_every_module_of_the_library() -> None:
    named = set(digests())
    for package in PACKAGES:
        assert {path.relative_to(ROOT).as_posix() for path in (ROOT / package).glob("*.py")} <= named
    assert "agjson/stores/ledger.py" in named
    assert len(named) > 20


def test_a_digest_is_of_the_code_and_not_of_the_words_about_it() -> None:
    was = digest(SOURCE)
    assert re.fullmatch("[0-9a-f]{12}", was)
    for same in (
        SOURCE.replace("A module.", "A module\nof two lines."),
        SOURCE.replace("# Why.\n", ""),
        SOURCE.replace("Half of it.", "What is left of it."),
        SOURCE.replace("  # whole", ""),
        SOURCE.replace("\n\n\n", "\n"),
    ):
        assert same != SOURCE
        assert digest(same) == was
    for other in (
        SOURCE.replace("// 2", "// 3"),
        SOURCE.replace("half", "part"),
        SOURCE.replace("number: int", "number: float"),
        SOURCE.replace("    return", "    number += 1\n    return"),
        SOURCE.replace("number // 2", 'len("# whole")'),
    ):
        assert digest(other) != was
    assert digest('x = "# a"\n') != digest('x = "# b"\n')


def test_what_has_changed_is_named() -> None:
    now = digests()
    text = render([], {}, now)
    assert changed(text, now) == []
    first, second, *_ = now
    later = {**now, first: "0" * 12, "agjson/approvals/added.py": "1" * 12}
    del later[second]
    assert changed(text, later) == sorted([first, second, "agjson/approvals/added.py"])
    assert changed("", now) == sorted(now)


def test_a_name_that_no_listed_test_uses_is_found(tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "__init__.py").write_text('__all__ = ["A", "LostError", "done", "made", "missed"]\n')
    (tmp_path / "tests" / "support").mkdir(parents=True)
    (tmp_path / "tests" / "support" / "helper.py").write_text("import agjson\nagjson.done()\n")
    (tmp_path / "tests" / "test_x.py").write_text("from tests.support.helper import x\nmade()\n")
    assert public_names(PACKAGES[0], tmp_path) == ["LostError", "done", "made", "missed"]
    assert unused(["tests/test_x.py"], tmp_path) == {package: ["LostError", "missed"] for package in PACKAGES}


def test_each_part_has_its_line_and_says_what_is_to_come() -> None:
    entry = Entry(
        number=7,
        name="A | row",
        what="It holds.",
        parts=["T", "A", "L", "F"],
        tests={
            "T": ["tests/t.py::test_a", "tests/t.py::test_b"],
            "driver": ["tests/d.py::test_d"],
            "x": ["tests/x.py::Y::test_x"],
        },
        later={"x": "the gates", "other": "an adapter of Y"},
        apart={"y": "It has none."},
    )
    text = render([Section(title="Calls", kind="row", entries=[entry])], {"x": "", "y": "", "z": "its tests"}, {})
    lines = [line for line in text.splitlines() if line.startswith("| row 7") or line.startswith("|  |  |")]
    assert lines == [
        "| row 7 | **A \\| row**<br>It holds. | T | pass | [`test_a`](../tests/t.py)<br>[`test_b`](../tests/t.py) |",
        "|  |  | A, every adapter | pass | [`test_d`](../tests/d.py) |",
        "|  |  | A, x | in part | To come: the gates.<br>[`Y::test_x`](../tests/x.py) |",
        "|  |  | A, y | not bound | It has none. |",
        "|  |  | A, a later adapter | not yet | To come: an adapter of Y. |",
        "|  |  | L | not yet | To come: the loop. |",
        "|  |  | F | not yet | To come: an adapter of Agent Framework. |",
    ]
    for line in (
        "| T | 1 |  |  |  |",
        "| A, x |  | 1 |  |  |",
        "| A, y |  |  |  | 1 |",
        "| A, z |  |  | 1 |  |",
        "Rows that say nothing of `z` wait for its tests.",
    ):
        assert line in text.splitlines()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.function_calling", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_tells_that_the_page_is_up_to_date() -> None:
    done = run("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_refuses_other_arguments() -> None:
    done = run("--verify")
    assert (done.returncode, done.stderr) == (2, "usage: python -m tests.function_calling [--check]\n")
