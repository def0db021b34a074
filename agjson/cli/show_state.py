"""What ``agjson show`` remembers of a stream: who speaks, what is open; of bounded size for a stream of any length."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from agjson._halves import pair_halves
from agjson.cli.terminal import shown_word

__all__ = ["Block", "Message", "Recent", "Turn"]

_T = TypeVar("_T")
_KEPT = 4096
# Deeper turns are not indented further.
_MAX_DEPTH = 8


class Recent(Generic[_T]):
    """The latest few thousand values by key; what has not been used for longest is forgotten."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._items: OrderedDict[str, _T] = OrderedDict()

    def get(self, key: str) -> _T | None:
        """The value of a key, or None."""
        item = self._items.get(key)
        if item is not None:
            self._items.move_to_end(key)
        return item

    def put(self, key: str, value: _T) -> None:
        """Keep a value."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._kept:
            self._items.popitem(last=False)

    def drop(self, key: str) -> None:
        """Forget a key."""
        self._items.pop(key, None)

    def __contains__(self, key: str) -> bool:
        return key in self._items


class Turn:
    """A turn that the stream has named.

    Attributes:
        id: its id.
        label: its name and id, safe to print.
        depth: how many turns enclose it.
        open: it has not ended.
        pointers: the message that new blocks go to, by candidate.
    """

    __slots__ = ("depth", "id", "label", "open", "pointers")

    def __init__(self, id: str, *, name: str | None = None, depth: int = 0) -> None:
        self.id = id
        self.label = f"{shown_word(name)} ({shown_word(id)})" if name else shown_word(id)
        self.depth = depth
        self.open = True
        self.pointers: dict[float, Message] = {}

    @property
    def title(self) -> str:
        """What lines call it, safe to print."""
        return f"{'subagent' if self.depth else 'turn'} {self.label}"

    @property
    def prefix(self) -> str:
        """What stands before its headings."""
        return "│ " * min(self.depth, _MAX_DEPTH)

    @property
    def inside(self) -> str:
        """What stands before everything in it."""
        return f"{self.prefix}  "


class Message:
    """A message that the stream has opened.

    Attributes:
        id: its id.
        turn: the turn that it belongs to.
        title: who speaks, safe to print.
    """

    __slots__ = ("id", "title", "turn")

    def __init__(self, id: str, turn: Turn, title: str) -> None:
        self.id = id
        self.turn = turn
        self.title = title


class Block:
    """A text, reasoning or artifact block that is open.

    Attributes:
        turn: the turn that it belongs to.
        message: the message that it belongs to, where that is known.
        mark: what stands before each of its lines, inside its turn.
        held: half a character that ended the last delta.
        written: something of it has been shown.
    """

    __slots__ = ("held", "mark", "message", "turn", "written")

    def __init__(self, turn: Turn, message: Message | None, mark: str) -> None:
        self.turn = turn
        self.message = message
        self.mark = mark
        self.held = ""
        self.written = False

    def joined(self, delta: str) -> str:
        """The delta with the half before it, and without a half at its end, which waits for the next one."""
        text = pair_halves(self.held + delta)
        self.held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.held = text[-1]
            text = text[:-1]
        return text
