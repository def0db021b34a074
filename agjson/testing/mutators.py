"""Planting violations: each mutation breaks one rule of a valid stream, at a place chosen by a `Source`.

For those who write a checker, an adapter or a client: whatever claims to find faults should find these.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agjson.testing import content_mutations, lifecycle_mutations
from agjson.testing.mutation import MUTATIONS, Mutation

__all__ = ["Mutation", "mutations"]

# Imported for the mutations that they register.
_REGISTERED = (lifecycle_mutations, content_mutations)


def mutations() -> Mapping[str, Mutation]:
    """Every mutation by its name; together they cover every rule that a stream alone can show."""
    return MappingProxyType(MUTATIONS)
