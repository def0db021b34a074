"""Ids that are used once in a history."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Unique"]


class Unique:
    """Gives out ids, each once, in constant time however often the same one is wanted.

    Args:
        mark: what stands between an id and the number that makes it another one.
        reserved: ids that somebody will want for their own.
    """

    def __init__(self, mark: str = "#", reserved: Iterable[str] = ()) -> None:
        self._mark = mark
        self._reserved = frozenset(reserved)
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def __contains__(self, id: object) -> bool:
        """Whether an id has been given out."""
        return id in self._taken

    def take(self, wanted: str, *, own: bool = True) -> str:
        """An id that has not been given out: the one that is wanted, or that with a number.

        Args:
            wanted: the id.
            own: it may be one of the reserved ones.
        """
        id, count = wanted, self._next.get(wanted, 2)
        while id in self._taken or (id in self._reserved and not (own and id == wanted)):
            id, count = f"{wanted}{self._mark}{count}", count + 1
        self._next[wanted] = count
        self._taken.add(id)
        return id
