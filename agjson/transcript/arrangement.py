"""Results right behind the round that made the calls, in the order of the calls (loop contract, "Parallel calls")."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from agjson.transcript.occurrence import Occurrence, Place
from agjson.transcript.settling import free_id
from agjson.types import AgMessage, ToolResultBlock

__all__ = ["Arrangement", "Insertion", "Origin"]


class Insertion(NamedTuple):
    """A result that belongs behind a round.

    Attributes:
        call: its call.
        block: the result.
        place: where it stands; None: nowhere yet.
    """

    call: Occurrence
    block: ToolResultBlock
    place: Place | None


class Origin(NamedTuple):
    """Where the blocks of a message stood in the history.

    Attributes:
        message: the position of their message, from 0.
        blocks: the position of each block inside that message, from 0. A result that was added has the place of its
            call.
    """

    message: int
    blocks: Sequence[int]

    def path(self, index: int) -> str:
        """The JSON path of a block inside the history.

        Args:
            index: the position of the block inside the message as it is now, from 0.
        """
        return f"$[{self.message}].content[{self.blocks[index]}]"


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

    def messages(self, owned: int) -> tuple[list[AgMessage], list[Origin]]:
        """The messages behind a position, in order, and where each of them comes from.

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
        origins: list[Origin] = []
        for index, message in enumerate(self._messages):
            if index > owned and index not in self._gone:
                blocks = self._left(index, by_message.get(index, ()))
                if blocks or not message.content:
                    whole = len(blocks) == len(message.content)
                    out.append(message if whole else replace(message, content=[message.content[at] for at in blocks]))
                    origins.append(Origin(index, blocks))
            for each in out_of_place.get(index, ()):
                if each.place is None or each.place.message > owned:
                    out.append(self._alone(each, message, used))
                    place = each.place or each.call.place
                    origins.append(Origin(place.message, (place.block,)))
        return out, origins

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

    def _left(self, index: int, moving: Collection[int]) -> Sequence[int]:
        """The positions of the blocks that are left of a message."""
        blocks = range(len(self._messages[index].content))
        dropped = self._dropped.get(index, ())
        return [at for at in blocks if at not in dropped and at not in moving] if dropped or moving else blocks

    def _alone(self, each: Insertion, end: AgMessage, used: set[str]) -> AgMessage:
        """A result as a message: its own one, if it has one to itself."""
        if each.place is not None:
            own = self._messages[each.place.message]
            if len(own.content) == 1 and own.role in ("tool", "user"):
                return own
        id = free_id(f"{each.call.key}:result", used)
        return AgMessage(id=id, role="tool", content=[each.block], turn_id=end.turn_id, thread_id=end.thread_id)
