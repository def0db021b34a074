"""Requests against the parameter types of the provider's own SDK."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache
from types import GenericAlias
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.warnings import TypedDictExtraConfigWarning


def fits(kind: Any, value: dict[str, Any]) -> None:
    """Check a value against a type of the SDK: every member must be known, and every list is looked into.

    Args:
        kind: a TypedDict, or a union of such.
        value: the value.

    Raises:
        pydantic.ValidationError: it does not fit.
    """
    _look_into(_adapter(kind).validate_python([value]))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    listed: Any = GenericAlias(list, (kind,))
    with warnings.catch_warnings():
        # One type of the SDK says itself that it takes more.
        warnings.simplefilter("ignore", TypedDictExtraConfigWarning)
        return TypeAdapter(listed, config=ConfigDict(extra="forbid"))


def _look_into(value: Any) -> None:
    # The validation of an iterable happens while it is read.
    if isinstance(value, dict):
        for held in value.values():
            _look_into(held)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for held in value:
            _look_into(held)
