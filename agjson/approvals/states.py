"""The states of an ask, and the only ways from one to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from agjson.approvals.errors import TransitionError

__all__ = ["ANSWERED", "FINAL", "TRANSITIONS", "AskState", "check_transition"]

AskState: TypeAlias = Literal[
    "open",
    "resolved",
    "declined",
    "cancelled",
    "met",
    "claimed",
    "done",
    "unknown",
    "expired",
    "given_up",
]
"""Where an ask stands; ``docs/approvals.md`` draws it.

``open`` waits; ``resolved``, ``declined`` and ``cancelled`` have their answer; ``met`` was answered by the words of the
next start; ``claimed``: what it allows may be running; ``done``: what came of it is known; ``unknown``: it was claimed,
and whoever claimed it is gone; ``expired`` and ``given_up`` never had an effect.
"""

ANSWERED: frozenset[AskState] = frozenset(("resolved", "declined", "cancelled", "met"))
"""The states of an ask that has its answer, and whose batch nobody has claimed."""

TRANSITIONS: Mapping[AskState, frozenset[AskState]] = {
    "open": frozenset(("resolved", "declined", "cancelled", "met", "expired", "given_up")),
    # At once done: the consent of a `url` ask, which lets nothing run.
    "resolved": frozenset(("claimed", "done", "given_up")),
    "declined": frozenset(("done", "given_up")),
    "cancelled": frozenset(("done", "given_up")),
    "met": frozenset(("claimed", "given_up")),
    "claimed": frozenset(("done", "unknown")),
    "done": frozenset(),
    "unknown": frozenset(),
    "expired": frozenset(),
    "given_up": frozenset(),
}
"""The states that each state may be followed by."""

FINAL: frozenset[AskState] = frozenset(state for state, following in TRANSITIONS.items() if not following)
"""The states that nothing follows."""


def check_transition(ask_id: str, before: AskState, after: AskState) -> None:
    """Go on only where an ask may change its state in this way.

    Args:
        ask_id: the ask, for the message.
        before: its state.
        after: the state that is wanted.

    Raises:
        TransitionError: it may not.
    """
    if after not in TRANSITIONS[before]:
        raise TransitionError(f"ask {ask_id!r} is {before} and cannot become {after}")
