"""Approvals load nothing heavy before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.corpus import ROOT


def loaded_by(*modules: str) -> set[str]:
    program = f"import sys, json, {', '.join(modules)}; print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", ["agjson", "agjson.approvals"])
def test_what_needs_a_package_loads_it_when_it_is_used(module: str) -> None:
    assert loaded_by(module) & {"cryptography", "jsonschema", "referencing", "sqlite3"} == set()


def test_the_format_alone_loads_no_ledger() -> None:
    program = "import sys, agjson; print('agjson.approvals' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
