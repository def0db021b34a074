"""How many calls of tools a conversation may still make, over all pauses (loop contract, row 48)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CallBudget"]


@dataclass(frozen=True, slots=True)
class CallBudget:
    """A limit of calls that going on after a pause does not reset.

    A batch is spent whole, and counts also where it paused again or failed: only the next batch is refused, so a batch
    of several calls may end over the limit.

    Attributes:
        limit: how many calls are allowed.
        used: how many were made.

    Raises:
        ValueError: a number below 0.
    """

    limit: int
    used: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.limit < 0 or self.used < 0:
            raise ValueError("limit and used must be at least 0")

    @property
    def left(self) -> int:
        """How many calls are left, at least 0."""
        return max(0, self.limit - self.used)

    @property
    def is_spent(self) -> bool:
        """Whether no further batch may begin."""
        return self.used >= self.limit

    def spend(self, calls: int = 1) -> CallBudget:
        """The budget after a batch.

        Args:
            calls: how many calls it had.

        Raises:
            ValueError: a number below 0.
        """
        if calls < 0:
            raise ValueError("calls must be at least 0")
        return CallBudget(self.limit, self.used + calls)
