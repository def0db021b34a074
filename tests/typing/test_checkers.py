"""pyright and mypy narrow the unions, prove that nothing is left over, and find mistakes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.corpus import ROOT

pytestmark = pytest.mark.typing

SAMPLES = Path("tests/typing/samples")
RIGHT = ["exhaustive.py", "narrowing.py"]
MISTAKES = "mistakes.py"

Found = dict[str, set[int]]
"""Sample to the lines that a checker complains about."""


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def samples() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / SAMPLES).glob("*.py"))


@cache
def pyright() -> Found:
    found: Found = {Path(name).name: set() for name in samples()}
    # The project's own settings leave the samples out, since their mistakes are on purpose: copies get their own.
    settings = {
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "venvPath": str(Path(sys.prefix).parent),
        "venv": Path(sys.prefix).name,
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in samples():
            shutil.copy(ROOT / name, folder)
        project = Path(folder, "pyrightconfig.json")
        project.write_text(json.dumps(settings))
        report = json.loads(run("pyright", "--outputjson", "--project", str(project)))
    assert report["summary"]["filesAnalyzed"] == len(found)
    for problem in report["generalDiagnostics"]:
        assert problem["severity"] == "error", problem
        found[Path(problem["file"]).name].add(problem["range"]["start"]["line"] + 1)
    return found


@cache
def mypy() -> Found:
    found: Found = {Path(name).name: set() for name in samples()}
    # Errors of the package itself are not this test's concern.
    report = run("mypy", "--strict", "--follow-imports=silent", "--no-error-summary", *samples())
    for line in report.splitlines():
        problem = re.match(r"(.+\.py):(\d+): error: ", line)
        if problem is not None:
            found[Path(problem[1]).name].add(int(problem[2]))
    return found


@pytest.mark.parametrize("checker", [pyright, mypy], ids=["pyright", "mypy"])
@pytest.mark.parametrize("sample", RIGHT)
def test_nothing_is_found_in_right_code(checker: Callable[[], Found], sample: str) -> None:
    assert checker()[sample] == set()


@pytest.mark.parametrize("checker", [pyright, mypy], ids=["pyright", "mypy"])
def test_every_mistake_is_found_and_nothing_else(checker: Callable[[], Found]) -> None:
    lines = (ROOT / SAMPLES / MISTAKES).read_text().splitlines()
    expected = {number for number, line in enumerate(lines, start=1) if "# mistake: " in line}
    assert len(expected) == 18
    assert checker()[MISTAKES] == expected


def test_every_sample_is_asserted() -> None:
    assert {Path(name).name for name in samples()} == {*RIGHT, MISTAKES}
