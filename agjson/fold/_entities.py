"""The things under construction: messages, turns, artifacts, memory records."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from agjson._halves import pair_halves
from agjson.fold._streams import CallStream, ReasoningStream, TextStream
from agjson.types import AgArtifact, AgBlock, AgMemoryRecord, AgMessage, AgTurnRecord, TextBlock

__all__ = ["Artifact", "Memory", "Message", "Partition", "Turn"]


class Message:
    """A message under construction.

    Attributes:
        base: the message; its content is out of date while `stale`.
        content: its blocks in order, which `add` and `put` change; the text of open blocks may lag behind. A message
            that nothing has changed shares those of `base`.
        opened: a start or an adoption made it here, so blocks may be added; false for one that a snapshot brought.
        sealed: its end has come.
        live: its blocks that still take deltas or arguments; like the next three made at the first use, for a long
            history has many messages and few of these.
        named: the blocks that were streamed into it, as the holders of their ids.
        calls: its tool calls, likewise.
        data: where each data block with an id stands.
        frozen: the message as it was last frozen; None when it changed since.
    """

    __slots__ = (
        "_own",
        "base",
        "calls",
        "content",
        "data",
        "frozen",
        "live",
        "named",
        "opened",
        "place",
        "sealed",
        "stale",
    )

    def __init__(self, base: AgMessage, *, opened: bool) -> None:
        self.base = base
        self.content: Sequence[AgBlock] = base.content
        self._own: list[AgBlock] | None = None
        self.opened = opened
        self.sealed = False
        self.live: dict[TextStream | ReasoningStream | CallStream, None] | None = None
        self.named: list[TextStream | ReasoningStream] | None = None
        self.calls: list[CallStream] | None = None
        self.data: dict[str, int] | None = None
        self.place = -1
        self.stale = False
        self.frozen: AgMessage | None = base

    def freeze(self) -> AgMessage:
        """The message as it is now."""
        if self.frozen is None:
            self.frozen = self.base if self._own is None else replace(self.base, content=self._own.copy())
        return self.frozen

    def add(self, block: AgBlock) -> int:
        """Append a block; returns where it stands."""
        content = self._owned()
        content.append(block)
        return len(content) - 1

    def put(self, index: int, block: AgBlock) -> None:
        """Put a block in the place of another."""
        self._owned()[index] = block

    def _owned(self) -> list[AgBlock]:
        if self._own is None:
            self.content = self._own = list(self.content)
        return self._own

    def begin(self, stream: TextStream | ReasoningStream | CallStream) -> None:
        """Note a block that takes deltas or arguments."""
        if self.live is None:
            self.live = {}
        self.live[stream] = None

    def name_block(self, stream: TextStream | ReasoningStream) -> None:
        """Note a block that is streamed into the message, whose id is free again without it."""
        if self.named is None:
            self.named = []
        self.named.append(stream)

    def name_call(self, call: CallStream) -> None:
        """Note a tool call in the message, whose `toolCallId` is free again without it."""
        if self.calls is None:
            self.calls = []
        self.calls.append(call)


class Partition:
    """The messages of one turn and candidate, for the open-message pointer (spec §5 message partitioning).

    Attributes:
        open: the most recently started message, sealed or not; None after a removal that left none.
        started: the messages that are there and not sealed, in order of their start or adoption: what a removal may go
            back to. An ordered dict, since the ends of a plain one are slow to find after removals.
    """

    __slots__ = ("open", "started")

    def __init__(self) -> None:
        self.open: Message | None = None
        self.started: OrderedDict[Message, None] = OrderedDict()

    def remove(self, message: Message) -> None:
        """A message is gone; a pointer that was on it goes back to the newest one that is not sealed, or to none."""
        self.started.pop(message, None)
        if self.open is message:
            self.open = next(reversed(self.started), None)


# What a turn begins with, never filled: a long history has many turns to which nothing comes any more.
_NOTHING: dict[Any, Any] = {}


class Turn:
    """A turn under construction.

    Attributes:
        turn_id: the turn's own id.
        record: its record; None for a turn that messages name and no event opened.
        closed: a terminal event has come; no block is added any more (INV-MSG).
        partitions: its messages by candidate.
        live: its messages that are not sealed.
    """

    __slots__ = ("_frozen", "_lists", "closed", "live", "partitions", "place", "record", "stale", "turn_id")

    def __init__(self, turn_id: str, record: AgTurnRecord | None) -> None:
        self.turn_id = turn_id
        self.record = record
        self.closed = record is not None and record.outcome is not None
        self.partitions: dict[int | float, Partition] = _NOTHING
        self.live: dict[Message, None] = _NOTHING
        self.place = -1
        self.stale = False
        self._lists: dict[str, list[Any]] = _NOTHING
        self._frozen: AgTurnRecord | None = record

    def outdate(self) -> None:
        """Forget the frozen form."""
        self._frozen = None

    def update(self, **fields: Any) -> None:
        """Set fields of the record, which must be there."""
        assert self.record is not None
        if self._lists:
            for name in fields:
                self._lists.pop(name, None)
        self.record = replace(self.record, **fields)
        self._frozen = None

    def extend(self, name: str, items: Iterable[Any]) -> None:
        """Add to a list of the record, which must be there."""
        grown = self._lists.get(name)
        if grown is None:
            if self._lists is _NOTHING:
                self._lists = {}
            grown = self._lists[name] = list(getattr(self.record, name) or ())
        grown.extend(items)
        self._frozen = None

    def freeze(self) -> AgTurnRecord:
        """The record as it is now."""
        if self._frozen is None:
            assert self.record is not None
            self._frozen = replace(self.record, **{name: items.copy() for name, items in self._lists.items()})
        return self._frozen

    def take_in(self, message: Message, *, opens: bool) -> None:
        """Note a message that is started or adopted here while the turn is open.

        Args:
            message: the message.
            opens: new blocks go to it; else a removal may yet lead to it.
        """
        if self.live is _NOTHING:
            self.partitions, self.live = {}, {}
        key = message.base.candidate_index or 0
        partition = self.partitions.get(key)
        if partition is None:
            partition = self.partitions[key] = Partition()
        partition.started[message] = None
        if opens:
            partition.open = message
        self.live[message] = None

    def seal(self, message: Message) -> None:
        """Note the end of one of its messages: the pointer stays on it, but never comes back to it."""
        self.live.pop(message, None)
        partition = self.partitions.get(message.base.candidate_index or 0)
        if partition is not None:
            partition.started.pop(message, None)

    def let_go(self, message: Message) -> None:
        """Forget one of its messages."""
        self.live.pop(message, None)
        key = message.base.candidate_index or 0
        partition = self.partitions.get(key)
        if partition is not None:
            partition.remove(message)
            if partition.open is None and not partition.started:
                del self.partitions[key]

    def open_message(self) -> Message | None:
        """The message of candidate 0 that still takes blocks."""
        partition = self.partitions.get(0)
        message = partition.open if partition is not None and not self.closed else None
        return message if message is not None and not message.sealed else None


class Artifact:
    """An artifact under construction.

    Attributes:
        base: the artifact; its parts are out of date while `stale`.
        parts: its parts in order; the text of the last one may lag behind.
        tail: texts to be joined to the last part.
    """

    __slots__ = ("_frozen", "base", "parts", "place", "stale", "tail")

    def __init__(self, base: AgArtifact) -> None:
        self.base = base
        self.parts: list[AgBlock] = list(base.parts)
        self.tail: list[str] = []
        self.place = -1
        self.stale = False
        self._frozen: AgArtifact | None = base

    def outdate(self) -> None:
        """Forget the frozen form."""
        self._frozen = None

    def settle(self) -> None:
        """Join the waiting texts to the last part, which is a text."""
        if self.tail:
            last = self.parts[-1]
            assert isinstance(last, TextBlock)
            self.parts[-1] = replace(last, text=pair_halves("".join([last.text, *self.tail])))
            self.tail.clear()

    def freeze(self) -> AgArtifact:
        """The artifact as it is now."""
        if self._frozen is None:
            self.settle()
            self._frozen = replace(self.base, parts=self.parts.copy())
        return self._frozen


class Memory:
    """A memory record.

    Attributes:
        record: the record.
    """

    __slots__ = ("place", "record", "stale")

    def __init__(self, record: AgMemoryRecord) -> None:
        self.record = record
        self.place = -1
        self.stale = False

    def freeze(self) -> AgMemoryRecord:
        """The record as it is now."""
        return self.record
