"""The page on writing an adapter names the rules that there are."""

from __future__ import annotations

import re

from agjson.testing.contract import RULES
from tests.support.corpus import ROOT

PAGE = ROOT / "docs" / "adapters" / "writing-one.md"
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \| (.*) \|$")


def test_the_page_lists_every_rule_as_it_describes_itself() -> None:
    listed = PAGE.read_text(encoding="utf-8").partition("<!-- rules: begin -->")[2].partition("<!-- rules: end -->")[0]

    assert [match.groups() for match in map(ROW.match, listed.splitlines()) if match] == [
        (rule.name, rule.description, rule.section) for rule in RULES
    ]
