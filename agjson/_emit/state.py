"""What the emitter knows of the turns, messages and blocks of its invoke."""

from __future__ import annotations

from typing import TypedDict

from agjson.types import AgMeta, AgOpaqueKind, AgPausedAsk, AgRole, AgTrigger, MessageStart, Number

__all__ = ["Block", "Call", "Envelope", "Message", "OfBlock", "OfMessage", "OwnId", "Turn"]


class OfBlock(TypedDict, total=False):
    """Envelope members of an event that has an id of its own and goes to a message (spec §4).

    Attributes:
        parent_id: the entity that encloses it.
        meta: host-only metadata.
    """

    parent_id: str | None
    meta: AgMeta | None


class OwnId(OfBlock, total=False):
    """Envelope members of an event that has an id of its own (spec §4).

    Attributes:
        message_id: the message that it concerns.
    """

    message_id: str | None


class OfMessage(OfBlock, total=False):
    """Envelope members of an event that goes to a message (spec §4).

    Attributes:
        id: an id of the event's own.
    """

    id: str | None


class Envelope(OfMessage, OwnId, total=False):
    """Envelope members of any other event (spec §4)."""


class Turn:
    """A turn of this invoke."""

    __slots__ = (
        "asks",
        "closed",
        "id",
        "messages",
        "native",
        "nested",
        "opened",
        "parent",
        "parent_id",
        "pointers",
        "steps",
        "trigger",
    )

    def __init__(
        self,
        id: str,
        *,
        native: str | None = None,
        parent: Turn | None = None,
        parent_id: str | None = None,
        nested: bool = False,
    ) -> None:
        self.id = id
        # The framework's name for it.
        self.native = native or id
        # Which turn becomes current when this one closes; `parent_id` is what the wire says, perhaps a mere label.
        self.parent = parent
        self.parent_id = parent_id
        self.nested = nested
        self.trigger: AgTrigger | None = None
        self.opened = False
        # The type of the event that closed it.
        self.closed: str | None = None
        # The message that new blocks go to, by candidate (spec §5 message partitioning).
        self.pointers: dict[Number, Message] = {}
        self.messages: list[Message] = []
        self.asks: dict[str, AgPausedAsk] = {}
        self.steps: list[str] = []

    def is_within(self, other: Turn) -> bool:
        """Tell whether this turn is nested in another at any depth."""
        turn = self.parent
        while turn is not None:
            if turn is other:
                return True
            turn = turn.parent
        return False


class Message:
    """A message of this invoke, started or made by adoption."""

    __slots__ = ("adopted", "blocks", "id", "native", "open", "removed", "start", "turn")

    def __init__(self, id: str, turn: Turn, start: MessageStart | None, *, native: str | None = None) -> None:
        self.id = id
        # The framework's name for it, if it had one.
        self.native = native
        self.turn = turn
        # The event that opened it; None for one that a tool result made (spec §5 tool.done adoption).
        self.start = start
        self.adopted = start is None
        self.open = start is not None
        self.removed = False
        self.blocks: list[Block] = []

    @property
    def candidate(self) -> Number:
        """Which candidate it belongs to."""
        return 0 if self.start is None else self.start.candidate_index or 0

    @property
    def role(self) -> AgRole:
        """Who speaks in it."""
        return "tool" if self.start is None else self.start.role

    @property
    def takes_results(self) -> bool:
        """Tell whether a tool result may adopt it: a tool message that is there and not sealed."""
        return self.role == "tool" and not self.removed and (self.adopted or self.open)


class Block:
    """A streamed text or reasoning block, or a tool call."""

    __slots__ = (
        "ended",
        "fast",
        "fed",
        "held",
        "held_part",
        "id",
        "is_text",
        "live",
        "message",
        "message_id",
        "opaque",
        "parts",
        "prior",
        "signature",
        "turn_id",
    )

    def __init__(self, id: str, message: Message, *, is_text: bool = False) -> None:
        self.id = id
        self.is_text = is_text
        self.message = message
        # Copied here because every delta writes them.
        self.message_id = message.id
        self.turn_id = message.turn.id
        self.ended = False
        # Neither ended, nor in a sealed or removed message.
        self.live = True
        # Live, and the next delta needs no care: it has had one, holds no half character, and is not cumulative.
        self.fast = False
        self.fed = False
        # The first half of a split character, and the part that it belongs to.
        self.held = ""
        self.held_part: Number | None = None
        # The text so far of a cumulative stream, by part; None while only increments have come.
        self.prior: dict[Number, str] | None = None
        self.parts: set[Number] = set()
        # Fragments of an opaque value, and what it will be when it is sealed.
        self.signature: list[str] = []
        self.opaque: tuple[AgOpaqueKind, str | None] = ("signature", None)

    def seal(self) -> None:
        """Take nothing more."""
        self.live = self.fast = False
        self.held = ""


class Call(Block):
    """A tool call of this invoke."""

    __slots__ = ("args", "assembled")

    def __init__(self, id: str, message: Message) -> None:
        super().__init__(id, message)
        # The text of the arguments so far, until they are assembled.
        self.args: list[str] = []
        self.assembled = False
