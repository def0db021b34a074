"""The table of the function-calling contract is whole, says what the contract says, and names tests that run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.function_calling.page import problems
from tests.function_calling.table import LAST, Entry, Kind, Section, faults, load_adapters, load_sections, node_ids
from tests.support.corpus import ROOT, require_corpus
from tests.support.tree import packages_on_disk

FILE = "tests/transcript/test_x.py"
SHOWN = {"T": [f"{FILE}::test_a"]}


def table(**changes: Any) -> list[Section]:
    """A table without a fault; ``changes`` are those of row 1."""
    made: list[Section] = []
    for kind, last in LAST.items():
        name, opens = ("", "x") if kind == "rule" else ("x", "")
        entries = [
            Entry(number=n, name=name, opens=opens, what="x", parts=["T"], tests=SHOWN) for n in range(1, last + 1)
        ]
        if kind == "row":
            entries[0] = msgspec.structs.replace(entries[0], **changes)
        made.append(Section(title="x", kind=kind, entries=entries))
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with tests of every kind."""
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text(
        "import pytest\n"
        "def test_a(): pass\n"
        "def test_b(): pass\n"
        "@pytest.mark.skip\n"
        "def test_marked(): pass\n"
        "@pytest.mark.xfail(reason='x')\n"
        "def test_failing(): pass\n"
        "def test_gives_up():\n"
        "    pytest.skip('x')\n"
        "def test_row_2_is_named(): pass\n"
    )
    (path.parent / "test_whole.py").write_text(
        "import pytest\npytestmark = pytest.mark.skip(reason='x')\ndef test_a(): pass\n"
    )
    return tmp_path


NAMED = f"row 2: {FILE}::test_row_2_is_named is named after it and not listed"


def found(root: Path, adapters: Mapping[str, str] | None = None, **changes: Any) -> list[str]:
    """The faults of a table with changes, without the one that every table here has."""
    all_of_them = faults(table(**changes), adapters or {}, root)
    assert NAMED in all_of_them
    return [fault for fault in all_of_them if fault != NAMED]


def test_the_table_has_no_fault_and_uses_every_function_and_error() -> None:
    assert problems() == []


def test_every_listed_test_is_collected_and_runs(tmp_path: Path) -> None:
    listed = {test for section in load_sections() for entry in section.entries for test in node_ids(entry)}
    files = sorted({test.partition("::")[0] for test in listed})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "tests.function_calling.collecting", *files]
    out = tmp_path / "collected.json"
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "AGJSON_COLLECTED": str(out)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    collected: dict[str, bool] = json.loads(out.read_text(encoding="utf-8"))
    assert sorted(listed - {test for test, runs in collected.items() if runs}) == []


def test_every_adapter_is_in_the_table() -> None:
    there = {name.split(".")[2] for name in packages_on_disk() if name.startswith("agjson.adapters.")}
    assert "anthropic" in there
    assert there - set(load_adapters()) == set(), "name it in tests/function_calling/adapters.toml"


# What the contract says


def specification() -> str:
    return (require_corpus() / "spec" / "function-calling-loop.md").read_text(encoding="utf-8")


def entries(kind: Kind) -> list[tuple[str, Entry]]:
    return [(section.title, entry) for section in load_sections() if section.kind == kind for entry in section.entries]


def matrix(text: str) -> list[tuple[str, str]]:
    """The section and the scenario of each row of the matrix, in order."""
    part = text.partition("\nScenario-to-test matrix\n")[2].partition("\nRequired coverage gaps\n")[0]
    rows: list[tuple[str, str]] = []
    section = ""
    for block in part.strip().split("\n\n"):
        head, *lines = block.splitlines()
        if lines:
            assert head == "Scenario Required invariant Primary regression test"
            rows += [(section, line) for line in lines]
        else:
            section = head
    return rows


@pytest.mark.corpus
def test_every_row_of_the_matrix_is_in_the_table() -> None:
    ours = [(title, entry.name) for title, entry in entries("row") if entry.number != 53]
    theirs = matrix(specification())
    assert len(theirs) == len(ours) == 83
    for (section, line), (title, name) in zip(theirs, ours, strict=True):
        assert section == title, line
        assert re.match(re.escape(name) + r"\s", line), (name, line)


@pytest.mark.corpus
def test_every_rule_of_the_contract_is_in_the_table() -> None:
    part = specification().partition("\nNormative contract\n")[2].partition("\nScenario-to-test matrix\n")[0]
    theirs: list[tuple[str, str]] = []
    section = ""
    for line in filter(None, map(str.strip, part.splitlines())):
        if line.startswith("•"):
            theirs.append((section, line.lstrip("• ")))
        else:
            section = line
    ours = [(title, entry.opens) for title, entry in entries("rule")]
    assert len(theirs) == len(ours) == 27
    for (section, line), (title, opens) in zip(theirs, ours, strict=True):
        assert section == title, line
        assert line.startswith(opens), (opens, line)
        assert len(opens) > 12


@pytest.mark.corpus
def test_every_gap_in_its_coverage_is_in_the_table() -> None:
    part = specification().partition("\nRequired coverage gaps\n")[2].partition("\nDo not mark these rows")[0]
    lines = [line for line in part.splitlines() if "#" in line]
    assert [line.partition(" #")[0] for line in lines] == [entry.name for _, entry in entries("gap")]


# What is a fault


def test_a_table_without_a_fault(root: Path) -> None:
    assert found(root) == []
    named = {"T": [f"{FILE}::test_row_2_is_named"]}
    whole = table()
    whole[0].entries[1] = msgspec.structs.replace(whole[0].entries[1], tests=named)
    assert faults(whole, {}, root) == []


def test_a_number_that_is_missing_twice_or_unknown(root: Path) -> None:
    short = table()
    del short[0].entries[52]
    assert "row 53: missing" in faults(short, {}, root)
    for number in (1, 85):
        wrong = table()
        wrong[0].entries.append(msgspec.structs.replace(wrong[0].entries[0], number=number))
        (fault,) = (each for each in faults(wrong, {}, root) if each != NAMED)
        assert fault.startswith("rows: not in their order, twice, or unknown: [1, 2,")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tests": {}}, "no test of the library shows it"),
        ({"tests": {"T": []}}, "no test of the library shows it"),
        ({"later": {"T": "someday"}}, "the library brings it now, not later"),
        ({"what": ""}, "lacks its words"),
        ({"name": "", "opens": "x"}, "lacks its words"),
        ({"parts": []}, "parts [] are not some of T, A, L, F in this order"),
        ({"parts": ["L", "T"]}, "parts ['L', 'T'] are not some of T, A, L, F in this order"),
        ({"later": {"L": "the loop"}}, "'L' has no part in it"),
        ({"tests": {**SHOWN, "driver": [f"{FILE}::test_b"]}}, "'driver' has no part in it"),
        ({"tests": {"T": [f"{FILE}::test_a"] * 2}}, f"T: {FILE}::test_a is listed twice"),
        ({"tests": {"T": [f"{FILE}::test_gone"]}}, f"{FILE}::test_gone does not exist"),
        ({"tests": {"T": ["tests/gone.py::test_a"]}}, "tests/gone.py::test_a does not exist"),
        ({"tests": {"T": [f"{FILE}::test_marked"]}}, f"{FILE}::test_marked is skipped or expected to fail"),
        ({"tests": {"T": [f"{FILE}::test_failing"]}}, f"{FILE}::test_failing is skipped or expected to fail"),
        ({"tests": {"T": [f"{FILE}::test_gives_up"]}}, f"{FILE}::test_gives_up is skipped or expected to fail"),
        (
            {"tests": {"T": ["tests/transcript/test_whole.py::test_a"]}},
            "tests/transcript/test_whole.py::test_a is skipped or expected to fail",
        ),
    ],
)
def test_a_row_without_proof_is_a_fault(root: Path, changes: dict[str, Any], fault: str) -> None:
    assert f"row 1: {fault}" in found(root, **changes)


@pytest.mark.parametrize(
    ("adapters", "changes", "fault"),
    [
        ({"x": ""}, {}, ["row 1: nothing is said of x"]),
        ({"x": "its tests"}, {}, []),
        ({"x": ""}, {"later": {"x": "more"}}, []),
        ({"x": ""}, {"apart": {"x": "never"}}, []),
        ({"x": ""}, {"apart": {"x": ""}}, ["row 1: x has no reason"]),
        (
            {"x": ""},
            {"apart": {"x": "never"}, "later": {"x": "more"}},
            ["row 1: it does not bind x, and something is said of it"],
        ),
        ({}, {"later": {"y": "more"}}, ["row 1: 'y' has no part in it"]),
    ],
)
def test_each_adapter_has_to_be_spoken_of(
    root: Path, adapters: dict[str, str], changes: dict[str, Any], fault: list[str]
) -> None:
    assert found(root, adapters, parts=["T", "A"], **changes) == fault


def test_a_wrong_member_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    path = tmp_path / "rows" / "x.toml"
    path.write_text('title = "x"\n[[row]]\nnumber = 1\nwhat = "x"\nparts = ["T"]\n')
    assert [section.title for section in load_sections(tmp_path)] == ["x"]
    path.write_text('title = "x"\n[[row]]\nnumber = 1\nwhat = "x"\nparts = ["X"]\n')
    with pytest.raises(msgspec.ValidationError, match="parts"):
        load_sections(tmp_path)
    path.write_text('title = "x"\n[[row]]\nnumber = 1\nwhat = "x"\nparts = ["T"]\nstatus = "pass"\n')
    with pytest.raises(msgspec.ValidationError, match="status"):
        load_sections(tmp_path)
