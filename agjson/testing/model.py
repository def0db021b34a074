"""What a stream under construction has announced so far: turns, messages, blocks, calls, side channels.

The model knows only what decides which events are legal next; contents that no later event depends on are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agjson.types import UNSET, AgOutcome, AgPausedAsk, JsonValue

__all__ = ["Block", "Call", "Message", "Model", "Turn"]


@dataclass(slots=True, eq=False)
class Turn:
    """A turn: `parent` is None for a top-level turn and for a nested one whose parent id is only a label."""

    id: str
    parent: Turn | None = None
    parent_id: str | None = None
    open: bool = True
    outcome: AgOutcome | None = None
    # Messages present in the fold that this turn may still write to, oldest first.
    messages: list[Message] = field(default_factory=list["Message"])
    # The message that new blocks of a candidate go to; it may be sealed, and then takes none.
    pointers: dict[int, Message | None] = field(default_factory=dict["int", "Message | None"])
    asks: list[AgPausedAsk] = field(default_factory=list[AgPausedAsk])
    steps: list[str] = field(default_factory=list[str])

    def revert(self, candidate: int) -> None:
        """Move the pointer back to the newest message that is still unsealed, or to none (spec §5 `message.remove`)."""
        for message in reversed(self.messages):
            if message.candidate == candidate and not message.sealed:
                self.pointers[candidate] = message
                return
        self.pointers[candidate] = None


@dataclass(slots=True, eq=False)
class Message:
    """A message; an adopted one was opened by a tool result and is never sealed."""

    id: str
    turn: Turn
    role: str
    candidate: int = 0
    sealed: bool = False
    adopted: bool = False
    removed: bool = False
    blocks: list[Block] = field(default_factory=list["Block"])
    calls: list[Call] = field(default_factory=list["Call"])
    data_ids: list[str] = field(default_factory=list[str])


@dataclass(slots=True, eq=False)
class Block:
    """An open text or reasoning block; `parts` are the summary parts in use, None when the block has none."""

    id: str
    kind: str
    message: Message
    parts: list[int] | None = None
    signature: str = ""
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """A tool call: `rest` is what is left of its arguments as JSON text, `given` the fields of its partial result."""

    id: str
    message: Message | None
    input: JsonValue = None
    rest: list[str] = field(default_factory=list[str])
    assembled: bool = True
    answered: bool = False
    pending: bool = False
    partial: Message | None = None
    adopted_id: str | None = None
    given: dict[str, Any] = field(default_factory=dict["str", Any])


MemoryKey: TypeAlias = tuple[str, str | None]


@dataclass(slots=True, eq=False)
class Model:
    """Everything that is known of the stream so far."""

    turns: dict[str, Turn] = field(default_factory=dict["str", Turn])
    open_turns: list[Turn] = field(default_factory=list[Turn])
    # Opening order of the messages that wait for their end; INV-FLUSH ends them in this order.
    open_messages: list[Message] = field(default_factory=list[Message])
    messages: dict[str, Message] = field(default_factory=dict["str", Message])
    blocks: list[Block] = field(default_factory=list[Block])
    calls: list[Call] = field(default_factory=list[Call])
    artifacts: list[str] = field(default_factory=list[str])
    memory: dict[MemoryKey, JsonValue] = field(default_factory=dict["MemoryKey", JsonValue])
    state: Any = UNSET
    surfaces: list[str] = field(default_factory=list[str])
    ui_calls: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    sources: list[str] = field(default_factory=list[str])
    capabilities_sent: bool = False
    snapshots: int = 0

    def writable(self) -> list[Message]:
        """The messages that new blocks may go to."""
        return [
            message
            for turn in self.open_turns
            for message in turn.pointers.values()
            if message is not None and not message.sealed
        ]

    def children(self, turn: Turn) -> list[Turn]:
        """The open nested turns of a turn."""
        return [other for other in self.open_turns if other.parent is turn]

    def depth(self, turn: Turn) -> int:
        """How deep a turn is nested: 0 for a top-level turn."""
        depth = 0
        while turn.parent is not None:
            turn = turn.parent
            depth += 1
        return depth

    def forget_message(self, message: Message) -> None:
        """Drop a removed message with its open blocks and its calls."""
        message.removed = True
        self.messages.pop(message.id, None)
        if message in self.open_messages:
            self.open_messages.remove(message)
        self.blocks = [block for block in self.blocks if block.message is not message]
        self.calls = [call for call in self.calls if call.message is not message and call.partial is not message]
        turn = message.turn
        if message in turn.messages:
            turn.messages.remove(message)
        if turn.pointers.get(message.candidate) is message:
            turn.revert(message.candidate)
