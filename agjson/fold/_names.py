"""Ids, and the things that events mean by them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

__all__ = ["Names"]

H = TypeVar("H")


class Names(dict[str, H]):
    """What each id stands for: the newest thing that was given it, and an older one again once the newest is gone.

    Ids are unique in a healthy stream. A tolerant fold takes repeated ones, and a whole block or a stored conversation
    may repeat a `toolCallId`.
    """

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        super().__init__()
        # Of the repeated ids alone. Ordered dicts, since the ends of a plain one are slow to find after removals.
        self._holders: dict[str, OrderedDict[H, None]] = {}

    def give(self, id: str, holder: H, *, behind: bool = False) -> None:
        """Give a thing an id.

        Args:
            id: the id.
            holder: the thing.
            behind: where the id is taken, it goes on standing for what it stands for.
        """
        old = self.setdefault(id, holder)
        if old is holder:
            return
        holders = self._holders.get(id)
        if holders is None:
            holders = self._holders[id] = OrderedDict({old: None})
        holders[holder] = None
        if behind:
            holders.move_to_end(holder, last=False)
        else:
            self[id] = holder

    def take(self, id: str, holder: H) -> None:
        """Take an id from a thing that is gone; nothing happens where it does not have it."""
        holders = self._holders.get(id)
        if holders is None:
            if self.get(id) is holder:
                del self[id]
            return
        holders.pop(holder, None)
        self[id] = next(reversed(holders))
        if len(holders) == 1:
            del self._holders[id]

    def clear(self) -> None:
        """Forget every id."""
        super().clear()
        self._holders.clear()
