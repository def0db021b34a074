"""Every adapter keeps the contract: each rule on each row of the registry (spec §5.0, §8.0, §10)."""

from __future__ import annotations

from importlib.resources import files

import pytest

from agjson.testing.contract import RULES, NotApplicable, Rule
from tests.contract.subjects.registry import ROWS
from tests.support.corpus import require_corpus
from tests.support.tree import packages_on_disk

ROWS_BY_NAME = {row.name: row for row in ROWS}


def rows() -> list[object]:
    return [pytest.param(row.name, id=row.name, marks=[pytest.mark.corpus] if row.corpus else []) for row in ROWS]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", rows())
def test_contract(name: str, rule: Rule) -> None:
    row = ROWS_BY_NAME[name]
    if row.corpus:
        require_corpus()
    if rule.name in row.lacks:
        with pytest.raises(NotApplicable):
            rule(row.subject())
        return
    try:
        rule(row.subject())
    except NotApplicable as lack:
        # Not a skipped test: what a row leaves untested is written down in the registry.
        pytest.fail(str(lack))


@pytest.mark.parametrize("name", [each for each in packages_on_disk() if each.startswith("agjson.adapters.")])
def test_every_adapter_has_a_row(name: str) -> None:
    adapter = name.rpartition(".")[2]
    assert files(name).joinpath("surface.json").is_file()
    assert any(row.subject().adapter.name.replace("-", "_") == adapter for row in ROWS if not row.corpus)
