"""Results right behind the round that made the calls, in the order of the calls (loop contract, "Parallel calls")."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from agjson.transcript.occurrence import Place
from agjson.transcript.settling import free_id
from agjson.types import AgBlock, AgMessage, ToolResultBlock

__all__ = ["Arrangement", "Insertion"]


class Insertion(NamedTuple):
    """A result that belongs behind a round.

    Attributes:
        key: the key of its call.
        block: the result.
        place: where it stands; None: nowhere yet.
    """

    key: str
    block: ToolResultBlock
    place: Place | None


class Arrangement:
    """Puts what is left of a history in order.

    Args:
        messages: the history.
        gone: the messages that are left out, by position.
        dropped: the blocks that are left out, by message.

    Attributes:
        moved: where the results stood that had to move.
    """

    def __init__(
        self,
        messages: Sequence[AgMessage],
        gone: Collection[int],
        dropped: Mapping[int, Collection[int]],
    ) -> None:
        self._messages = messages
        self._gone = gone
        self._dropped = dropped
        self._behind: dict[int, list[Insertion]] = {}
        self.moved: list[Place] = []

    def put(self, end: int, insertion: Insertion) -> None:
        """Say that a result belongs behind a round; to be called in the order of the calls.

        Args:
            end: the position of the last message of the round.
            insertion: the result.
        """
        self._behind.setdefault(end, []).append(insertion)

    def messages(self, owned: int) -> list[AgMessage]:
        """The messages behind a position, in order.

        Args:
            owned: the position of the last message that is not asked for; -1: all are.
        """
        out_of_place = {end: row for end, row in self._behind.items() if not self._in_place(end, row)}
        moving = {each.place for row in out_of_place.values() for each in row if each.place is not None}
        by_message: dict[int, set[int]] = {}
        for place in moving:
            by_message.setdefault(place.message, set()).add(place.block)
        self.moved = sorted(moving)
        used = {message.id for message in self._messages} if out_of_place else set[str]()
        out: list[AgMessage] = []
        for index, message in enumerate(self._messages):
            if index > owned and index not in self._gone:
                left = self._left(index, by_message.get(index, ()))
                if left is not None:
                    out.append(left)
            for each in out_of_place.get(index, ()):
                if each.place is None or each.place.message > owned:
                    out.append(self._alone(each, message, used))
        return out

    def _in_place(self, end: int, row: Sequence[Insertion]) -> bool:
        """Whether the results stand right behind their round, in order, before anything else."""
        standing = self._standing(end)
        return all(each.place is not None and next(standing, None) == each.place for each in row)

    def _standing(self, end: int) -> Iterator[Place]:
        """The places of the results behind a round, up to the first block that is none."""
        for index in range(end + 1, len(self._messages)):
            message = self._messages[index]
            if index in self._gone:
                continue
            if message.role not in ("tool", "user") or not message.content:
                return
            dropped = self._dropped.get(index, ())
            for at, block in enumerate(message.content):
                if at in dropped:
                    continue
                if not isinstance(block, ToolResultBlock):
                    return
                yield Place(index, at, message.id)

    def _left(self, index: int, moving: Collection[int]) -> AgMessage | None:
        """What is left of a message: itself where nothing is taken away, nothing where all is."""
        message = self._messages[index]
        dropped = self._dropped.get(index, ())
        if not dropped and not moving:
            return message
        content: list[AgBlock] = [
            block for at, block in enumerate(message.content) if at not in dropped and at not in moving
        ]
        return replace(message, content=content) if content else None

    def _alone(self, each: Insertion, end: AgMessage, used: set[str]) -> AgMessage:
        """A result as a message: its own one, if it has one to itself."""
        if each.place is not None:
            own = self._messages[each.place.message]
            if len(own.content) == 1 and own.role in ("tool", "user"):
                return own
        id = free_id(f"{each.key}:result", used)
        return AgMessage(id=id, role="tool", content=[each.block], turn_id=end.turn_id, thread_id=end.thread_id)
