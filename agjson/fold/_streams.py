"""Blocks that arrive in pieces: text, reasoning, tool calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from agjson.fold._text import TextBuffer
from agjson.types import ReasoningBlock, TextBlock

if TYPE_CHECKING:
    from agjson.fold._entities import Message

__all__ = ["CallStream", "ReasoningStream", "TextStream"]


class TextStream(TextBuffer):
    """A text block between its start and its end, and after that the holder of its id.

    The block stands in its message from the start; its text lags behind until `settle`.

    Attributes:
        id: the block's id, unique in the fold (INV-BLOCK).
        message: the message that holds the block.
        index: where the block stands in the message.
        open: deltas may still come.
    """

    __slots__ = ("id", "index", "message", "open")

    def __init__(self, id: str, message: Message, index: int) -> None:
        super().__init__()
        self.id = id
        self.message = message
        self.index = index
        self.open = True

    @property
    def block(self) -> TextBlock:
        """The frozen block as it stands in the message."""
        return cast("TextBlock", self.message.content[self.index])

    @block.setter
    def block(self, block: TextBlock) -> None:
        self.message.put(self.index, block)

    def settle(self, *, final: bool = False) -> None:
        """Bring the block's text up to date; at the end a lone half of a character is replaced."""
        self.block = replace(self.block, text=self.text(final=final))


class ReasoningStream(TextBuffer):
    """A reasoning block between its start and its end, and after that the holder of its id.

    It is the buffer of part 0; further parts of a summary have buffers of their own.

    Attributes:
        id: the block's id, unique in the fold (INV-BLOCK).
        message: the message that holds the block.
        index: where the block stands in the message.
        open: text deltas may still come.
        tail: the pending deltas of the last part; a delta without `partIndex` goes there, the end of the whole text.
        signature: fragments of the opaque value, until it is sealed.
    """

    __slots__ = ("_last", "_named", "_parts", "id", "index", "message", "open", "signature", "tail")

    def __init__(self, id: str, message: Message, index: int, part_index: int | float | None) -> None:
        super().__init__()
        self.id = id
        self.message = message
        self.index = index
        self.open = True
        self.tail = self.pending
        self.signature: list[str] | None = None
        self._last: int | float = 0
        self._parts: dict[int | float, TextBuffer] | None = None
        self._named: set[int | float] | None = None
        if part_index is not None:
            self.open_part(part_index)

    @property
    def block(self) -> ReasoningBlock:
        """The frozen block as it stands in the message."""
        return cast("ReasoningBlock", self.message.content[self.index])

    @block.setter
    def block(self, block: ReasoningBlock) -> None:
        self.message.put(self.index, block)

    def names(self, part_index: int | float) -> bool:
        """Tell whether a start has named this part."""
        return self._named is not None and part_index in self._named

    def open_part(self, part_index: int | float) -> None:
        """Open a part that no start has named."""
        if self._named is None:
            self._named = set()
        self._named.add(part_index)
        self.part(part_index)
        self.open = True

    def part(self, part_index: int | float) -> list[str]:
        """The pending deltas of a summary part, which is made where it is new."""
        if part_index == 0:
            return self.pending
        if self._parts is None:
            self._parts = {0: self}
        part = self._parts.get(part_index)
        if part is None:
            self._parts[part_index] = part = TextBuffer()
            if part_index > self._last:
                self._last = part_index
                self.tail = part.pending
        return part.pending

    def settle(self, *, final: bool = False) -> None:
        """Bring the block's text up to date: its parts in order; at the end lone halves of characters are replaced."""
        if self._parts is None:
            text = self.text(final=final)
        else:
            text = "".join([part.text(final=final) for _, part in sorted(self._parts.items(), key=_part_index)])
        self.block = replace(self.block, text=text)


def _part_index(part: tuple[int | float, TextBuffer]) -> int | float:
    return part[0]


class CallStream:
    """A tool call that a start, or a whole block, has announced.

    Attributes:
        id: the `toolCallId` on its block.
        message: the message that holds the block.
        index: where the block stands in the message.
        open: arguments may still come; the fragments themselves fold to nothing.
        alias: the id that events name it by; another than `id` where a tolerant fold has numbered it.
    """

    __slots__ = ("alias", "id", "index", "message", "open")

    def __init__(self, id: str, message: Message, index: int, *, open: bool, alias: str | None = None) -> None:
        self.id = id
        self.alias = alias or id
        self.message = message
        self.index = index
        self.open = open
