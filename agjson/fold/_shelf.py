"""Ordered containers whose frozen form is rebuilt only where it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

__all__ = ["Shelf", "ShelfItem"]


class ShelfItem(Protocol):
    """A thing under construction that can be frozen into a value of the result.

    Attributes:
        place: its position in the last frozen list, -1 while it has none.
        stale: it changed since it was last frozen.
    """

    place: int
    stale: bool


I = TypeVar("I", bound=ShelfItem)  # noqa: E741
T = TypeVar("T")


class Shelf(Generic[I, T]):
    """Items in order by key, and the list of their frozen values.

    A frozen list is never changed once handed out: a change copies the list of references and replaces the values that
    are stale, so results that a caller kept stay as they were.

    Args:
        freeze: the value of an item as it is now; the same object again for an item that did not change.

    Attributes:
        items: the items by key, in order; changed through the methods alone.
        changed: the stale ones, in order; `touch` adds to it.
    """

    __slots__ = ("_freeze", "_frozen", "_moved", "changed", "items")

    def __init__(self, freeze: Callable[[I], T]) -> None:
        self.items: dict[object, I] = {}
        self._freeze = freeze
        self._frozen: list[T] = []
        self.changed: dict[I, None] = {}
        self._moved = False

    def put(self, key: object, item: I) -> None:
        """Add an item at the end, or put it in the place of the one that has this key."""
        old = self.items.get(key)
        if old is not None:
            self.changed.pop(old, None)
        self.items[key] = item
        item.stale = False
        self.touch(item)
        if old is None:
            item.place = -1
        elif old.place >= 0:
            item.place = old.place
        else:
            self._moved = True

    def seed(self, key: object, item: I) -> None:
        """Add an item at the end even if its key is taken; then only the first one can be looked up."""
        self.put(item if key in self.items else key, item)

    def fill(self, keys: Sequence[object], items: Sequence[I], frozen: list[T]) -> None:
        """Put stored items on an empty shelf, as `seed` does one by one, with their values at hand.

        Args:
            keys: the key of each item; of those that have the same one only the first can be looked up.
            items: the items, none of which has changed.
            frozen: their values; the list becomes the shelf's own.
        """
        by_key: dict[object, I] = dict(zip(keys, items, strict=True))
        if len(by_key) != len(items):
            by_key = {}
            for key, item in zip(keys, items, strict=True):
                by_key[item if key in by_key else key] = item
        for place, item in enumerate(items):
            item.place = place
        self.items = by_key
        self._frozen = frozen

    def drop(self, key: object, item: I) -> None:
        """Remove an item; the others keep their order."""
        del self.items[key if self.items.get(key) is item else item]
        self.changed.pop(item, None)
        self._moved = True

    def touch(self, item: I) -> None:
        """Note that an item changed."""
        if not item.stale:
            item.stale = True
            self.changed[item] = None

    def freeze(self) -> list[T]:
        """The frozen values in order; the same list again when nothing changed."""
        if self._moved:
            frozen: list[T] = []
            for place, item in enumerate(self.items.values()):
                item.place = place
                item.stale = False
                frozen.append(self._freeze(item))
        elif self.changed:
            frozen = self._frozen.copy()
            for item in self.changed:
                item.stale = False
                if item.place < 0:
                    item.place = len(frozen)
                    frozen.append(self._freeze(item))
                else:
                    frozen[item.place] = self._freeze(item)
        else:
            return self._frozen
        self.changed.clear()
        self._moved = False
        self._frozen = frozen
        return frozen
