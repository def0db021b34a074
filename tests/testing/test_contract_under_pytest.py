"""The contract suite as an author of an adapter runs it: one parametrised test in a file of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FILE = """
import pytest

from agjson.adapter import Adapter
from agjson.normalizer import Normalizer
from agjson.testing.contract import RULES, Sample, Subject


class WordNormalizer(Normalizer):
    def _on(self, native):
        if native.keys() == {"word"} and isinstance(native["word"], str):
            self.out.text_delta(f"{self.turn_id}:words", native["word"])
        else:
            self.unparsed(native, "no word")

    def _on_abort(self, abort):
        self.out.turn_done(turn_id=self.turn_id)


SUBJECT = Subject(
    adapter=Adapter(name="words", normalizer=WordNormalizer, recorded=lambda exchange: None),
    samples=[Sample(name="morning", natives=[{"word": "Good "}, {"word": "morning"}])],
    has_ended=lambda natives: False,
)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_contract(rule):
    rule(SUBJECT)
"""


def test_each_rule_is_a_test_that_passes_fails_or_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "test_words.py").write_text(FILE, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rsf",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "test_words.py",
    ]
    env = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED test_words.py::test_contract[host-abort] - AssertionError: words: host-abort" in done.stdout
    assert re.search(r"SKIPPED \[1\] .*: words: chunks: the subject has no `rechunk`", done.stdout)
    assert re.search(r"^1 failed, \d\d passed, \d\d skipped", done.stdout, re.MULTILINE)
