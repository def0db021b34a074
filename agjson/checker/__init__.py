"""The checker: what a stream of events breaks of the rules that a stream alone can show (spec §5.0).

`check` reads a stream to its end, `Checker` takes one item at a time, `RULES` names every rule. INV-FOLD and INV-DELTA
are not among them: the first compares two folds, the second needs the framework's own stream.
"""

from agjson.checker.checker import Checker, Item, check
from agjson.checker.rules import RULES, Violation

__all__ = ["RULES", "Checker", "Item", "Violation", "check"]
