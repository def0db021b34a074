"""matrix.toml names tests that exist, and leaves out nothing that a transcript can show."""

from __future__ import annotations

from tests.support.matrix import Matrix

MATRIX = Matrix("transcript")

# The rows and rules that hold for a neutral library over messages, with those of approvals.
NEUTRAL_ROWS = {
    *(1, 3, 5, 6, 7, 8, 9, 12, 13, 14, 17, 18, 19, 21, 24),
    *range(25, 45),
    *(49, 50, 51, 53, 54, 55, 56, 57, 61, 63, 65, 66, 67, 70, 71, 73, 74, 75, 76, 79, 84),
}
NEUTRAL_RULES = {*range(1, 7), *range(8, 12), 13, 14, 15, 16, 17, *range(19, 28)}


def test_every_listed_test_exists_and_is_listed_once_for_its_row() -> None:
    MATRIX.verify_listed()


def test_every_test_that_is_named_after_a_row_or_rule_is_listed_there() -> None:
    MATRIX.verify_named()


def test_every_row_and_rule_of_a_neutral_library_has_tests_or_a_place_where_they_will_be() -> None:
    left = MATRIX.table["left"]["approvals"]
    assert {int(n) for n in MATRIX.table["rows"]} | set(left["rows"]) == NEUTRAL_ROWS
    assert {int(n) for n in MATRIX.table["rules"]} | set(left["rules"]) == NEUTRAL_RULES
    assert not {int(n) for n in MATRIX.table["rows"]} & set(left["rows"])
    assert not {int(n) for n in MATRIX.table["rules"]} & set(left["rules"])
