"""docs/transcript.md names every code."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from agjson.transcript.preparing import ChangeCode
from agjson.transcript.problems import ProblemCode
from agjson.transcript.settling import UnmatchedCode
from tests.support.corpus import ROOT


def tables() -> list[set[str]]:
    """What stands in code in the first column of each table of codes."""
    text = (ROOT / "docs" / "transcript.md").read_text(encoding="utf-8")
    found: list[set[str]] = []
    for table in re.findall(r"^\| code \|.*\n\| --- .*\n((?:\|.*\n)+)", text, flags=re.MULTILINE):
        found.append({code for row in table.splitlines() for code in re.findall(r"`(\w+)`", row.split("|")[1])})
    return found


def codes(alias: object) -> set[str]:
    """The strings of a union of literals."""
    return {str(code) for arm in get_args(alias) for code in (get_args(arm) or [arm])}


@pytest.mark.parametrize(("place", "alias"), list(enumerate([ChangeCode, ProblemCode, UnmatchedCode])))
def test_each_table_of_codes_has_every_code(place: int, alias: object) -> None:
    assert tables()[place] == codes(alias)
