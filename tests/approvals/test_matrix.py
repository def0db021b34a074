"""matrix.toml names tests that exist, and has what transcripts leave to the ledger."""

from __future__ import annotations

from tests.support.matrix import Matrix

MATRIX = Matrix("approvals")
# The rows and rules that a transcript cannot show and a neutral library can.
OF_THE_LEDGER = {"row 42", "row 49", "row 50", "row 51", "rule 13"}


def test_every_listed_test_exists_and_is_listed_once_for_its_row() -> None:
    MATRIX.verify_listed()


def test_every_test_that_is_named_after_a_row_or_rule_is_listed_there() -> None:
    MATRIX.verify_named()


def test_what_only_the_ledger_can_show_is_there() -> None:
    assert set(MATRIX.listed()) >= OF_THE_LEDGER
