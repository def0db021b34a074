"""What a mutation is, and how the modules that plant violations register theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agjson.testing.source import Source
from agjson.testing.tracing import Item, Trace
from agjson.types import AgProfile, AgStreamEvent

__all__ = ["GHOST", "MUTATIONS", "Mutation", "Plant", "pick", "planted"]

Plant: TypeAlias = Callable[[Source, Trace], "list[Item] | None"]

GHOST = "ghost"
"""An id that no stream of this package announces."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A way to break a valid stream.

    Attributes:
        name: the mutation's own name.
        rule: the rule of `agjson.checker.RULES` that the mutated stream breaks; it may break others as a consequence.
        description: what is planted, in one sentence.
        profile: the profile to check against, for a breach of it; else None.
    """

    name: str
    rule: str
    description: str
    profile: AgProfile | None
    _plant: Plant = field(repr=False)

    def plant(self, source: Source, events: Sequence[AgStreamEvent]) -> list[Item] | None:
        """Plant one violation.

        Args:
            source: where the choice of the place comes from.
            events: a valid stream, which stays as it is; within the profile if the mutation has one.

        Returns:
            A mutated copy; None if the stream has no place for this mutation.
        """
        return self._plant(source, Trace(events))


MUTATIONS: dict[str, Mutation] = {}
"""Every registered mutation by name."""


def planted(name: str, rule: str, profile: AgProfile | None = None) -> Callable[[Plant], Plant]:
    """Register a function as a mutation; its docstring is the description."""

    def register(plant: Plant) -> Plant:
        description = " ".join((plant.__doc__ or "").split())
        MUTATIONS[name] = Mutation(name, rule, description, profile, plant)
        return plant

    return register


def pick(source: Source, places: list[int]) -> int | None:
    """One of the places, None if there is none."""
    return source.choice(places) if places else None
