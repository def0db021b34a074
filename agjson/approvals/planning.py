"""Which calls of a batch run now, which wait for a person, and which wait with them (loop contract, rows 41-44)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agjson.approvals.records import CallRequest, StandingRule

__all__ = ["Plan", "plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What becomes of the calls of one answer of a model; each is in one list, in the order in which it was made.

    Attributes:
        run: they run now: none of the batch needs a person.
        ask: each needs an ask.
        held: they need none, and run with the decision on those that do.
        hosted: the provider runs them; they are nothing to do with here.
        rules: the standing rule by which a gated call needs no ask, by call id.
    """

    run: tuple[CallRequest, ...]
    ask: tuple[CallRequest, ...]
    held: tuple[CallRequest, ...]
    hosted: tuple[CallRequest, ...]
    rules: dict[str, StandingRule]


def plan(
    calls: Iterable[CallRequest],
    is_gated: Callable[[CallRequest], bool],
    rule_of: Callable[[CallRequest], StandingRule | None] = lambda call: None,
) -> Plan:
    """Sort the calls of a batch.

    Args:
        calls: the calls, in the order in which the model made them.
        is_gated: whether a call needs approval by its nature.
        rule_of: the standing rule that covers a gated call (`standing_rule`); None: there is none.
    """
    ask: list[CallRequest] = []
    free: list[CallRequest] = []
    hosted: list[CallRequest] = []
    rules: dict[str, StandingRule] = {}
    for call in calls:
        gated = is_gated(call)
        rule = rule_of(call) if gated else None
        if rule is not None:
            rules[call.call_id] = rule
        if gated and rule is None:
            ask.append(call)
        elif call.hosted:
            hosted.append(call)
        else:
            free.append(call)
    return Plan(
        run=() if ask else tuple(free),
        ask=tuple(ask),
        held=tuple(free) if ask else (),
        hosted=tuple(hosted),
        rules=rules,
    )
