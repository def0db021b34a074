"""What a message says, in a form that is small to keep and quick to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agjson.adapters.langgraph._carry import INVALID
from agjson.types import AgBlock, ToolCallBlock
from agjson.wire import encode

__all__ = ["Print", "print_of"]


class Print:
    """What a message says.

    Args:
        said: how often each thing is said. The order does not count: a stored message has its calls last.
        malformed: calls whose arguments are no JSON object, by id and name.
    """

    __slots__ = ("_calls", "_malformed", "_said")

    def __init__(self, said: Counter[int], calls: dict[tuple[str, str], int], malformed: set[tuple[str, str]]) -> None:
        self._said = said
        self._calls = calls
        self._malformed = malformed

    def is_of(self, other: Print) -> bool:
        """Tell whether another message says the same.

        LangChain repairs arguments that were cut off, so where one of the two has kept the raw text, the arguments of
        this call do not count.

        Args:
            other: what the other one says.
        """
        loose = self._malformed | other._malformed
        if not loose:
            return self._said == other._said
        return self._without(loose) == other._without(loose)

    def _without(self, calls: set[tuple[str, str]]) -> tuple[Counter[int], list[tuple[str, str]]]:
        said = self._said.copy()
        there = sorted(call for call in calls if call in self._calls)
        said.subtract(self._calls[call] for call in there)
        return +said, there


def print_of(blocks: Iterable[AgBlock]) -> Print:
    """What blocks say.

    Args:
        blocks: the blocks of one message.
    """
    said: Counter[int] = Counter()
    calls: dict[tuple[str, str], int] = {}
    malformed: set[tuple[str, str]] = set()
    for block in blocks:
        number = hash(encode(block))
        said[number] += 1
        if isinstance(block, ToolCallBlock):
            call = (block.tool_call_id, block.name)
            calls[call] = number
            if INVALID in (block.provider_metadata or ()):
                malformed.add(call)
    return Print(said, calls, malformed)
