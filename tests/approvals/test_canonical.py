"""The canonical text of a JSON value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson import EncodeError
from agjson.approvals import canonical

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.0, "1"),
        (1, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (4.50, "4.5"),
        (2e-3, "0.002"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (333333333.33333329, "333333333.3333333"),
        (9007199254740991.0, "9007199254740991"),
        (1e15, "1000000000000000"),
        (123456.75, "123456.75"),
        (1e20, "100000000000000000000"),
        (5e-324, "5e-324"),
        (9007199254740993, "9007199254740993"),
        (10**30, "1" + "0" * 30),
        ('\u20ac$\u000f\nA\'B"\\\\"/', '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'),
        ("\x7f\u2028", '"\x7f\u2028"'),
        ({"b": [], "a": {}}, '{"a":{},"b":[]}'),
        ((1, "x"), '[1,"x"]'),
    ],
)
def test_its_form_is_that_of_rfc_8785(value: Any, text: str) -> None:
    assert canonical(value) == text.encode()


def test_keys_are_sorted_by_their_utf_16_units() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
    assert list(json.loads(canonical(dict.fromkeys(keys, 0)))) == [
        "\r",
        "1",
        "\x80",
        "\u00f6",
        "\u20ac",
        "\U0001f600",
        "\ufb33",
    ]


def test_large_numbers_never_become_one() -> None:
    assert canonical(2**53 + 1) != canonical(2**53)
    assert canonical(float(2**53)) == canonical(2**53)
    # ECMAScript writes this float as 61669566869697180.
    assert canonical(61669566869697184.0) == b"61669566869697184"
    assert canonical(1e30) == b"1000000000000000019884624838656"


def test_half_a_character_is_kept_as_its_escape() -> None:
    assert canonical({"\ud800": "a\udfff"}) == b'{"\\ud800":"a\\udfff"}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: "x"}, {"x": object()}, b"x", {"x": {2}}])
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises(EncodeError):
        canonical(value)


def test_nesting_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EncodeError):
        canonical(deep)


@given(VALUES)
def test_it_is_json_of_the_same_value_and_one_text_for_it(value: Any) -> None:
    text = canonical(value)
    read = json.loads(text)
    assert read == value
    assert canonical(read) == text


@given(st.dictionaries(st.text(), VALUES, min_size=2, max_size=4))
def test_the_order_of_keys_makes_no_difference(value: dict[str, Any]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e19, 1e19).map(round)


@given(NUMBERS, NUMBERS)
def test_equal_numbers_have_one_text_and_others_have_not(one: float, other: float) -> None:
    assert (canonical(one) == canonical(other)) == (one == other)


@given(st.floats(-1e19, 1e19))
def test_a_float_and_the_whole_number_that_it_is_have_one_text(value: float) -> None:
    assert (canonical(value) == canonical(round(value))) == (value == round(value))
