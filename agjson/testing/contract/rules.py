"""Every rule of the adapter contract, in the order in which a fault is best understood."""

from __future__ import annotations

from agjson.testing.contract import (
    approved,
    attacks,
    census,
    disorder,
    driven,
    identity,
    inbound,
    lifecycle,
    replay,
    sameness,
)
from agjson.testing.contract.rule import Rule

__all__ = ["RULES", "rule_named"]

_MODULES = (lifecycle, disorder, sameness, identity, census, replay, inbound, driven, approved, attacks)

RULES: tuple[Rule, ...] = tuple(each for module in _MODULES for each in vars(module).values() if isinstance(each, Rule))
"""Every rule of the adapter contract."""


def rule_named(name: str) -> Rule:
    """The rule of a name.

    Args:
        name: the name.

    Raises:
        KeyError: no rule has it.
    """
    for each in RULES:
        if each.name == name:
            return each
    raise KeyError(name)
