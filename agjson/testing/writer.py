"""Writes the events of a valid stream: ordinals, owners, ids, and the closing of whatever is open (spec §4, §5.0)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import msgspec

from agjson.testing.model import Block, Call, Message, Model, Turn
from agjson.testing.source import Source
from agjson.testing.values import ValueBuilder
from agjson.types import (
    BLOCK_TYPES,
    UNSET,
    AbortedOutcome,
    AgOutcome,
    AgPausedAsk,
    AgProfile,
    AgStreamEvent,
    AgToolOutcome,
    AgTurnRecord,
    ErrorOutcome,
    MessageEnd,
    PausedOutcome,
    ReasoningEnd,
    ReasoningOpaque,
    RejectedOutcome,
    StepDone,
    SubagentDone,
    SuccessOutcome,
    TextEnd,
    ToolArgsAssembled,
    ToolDone,
    ToolResultBlock,
    TurnAbort,
    TurnDone,
    TurnError,
)

__all__ = ["StreamOptions", "StreamWriter"]

T = TypeVar("T", bound=msgspec.Struct)

LEVELS: Final[Mapping[str, int]] = {"CORE": 0, "EXTENDED": 1, "ADVANCED": 2}

# What the profiles below ADVANCED leave out of events and records that they have (spec §9).
_EXTENDED_FIELDS = frozenset({"usage", "safety", "citations"})
_OPAQUE = ("structured_content", "ui_data", "side_data")
_ADVANCED_FIELDS = frozenset(_OPAQUE)
_CORE_RESULT_FIELDS = frozenset({"outcome", "candidate_index", "more", "meta", "annotations"})
# Fields that tie an event to others: the stream decides on them, never chance.
_STRUCTURAL = frozenset(
    {
        *("id", "turn_id", "message_id", "parent_id", "parent_turn_id", "candidate_index", "part_index", "step_id"),
        *("tool_call_id", "surface_id", "role", "more", "preliminary", "transient", "profile", "outcome"),
        "reference_turn_ids",
    }
)
# What a result gives beside its content, all of it restated by every later result of the same call.
_RESTATED = (
    "outcome",
    "structured_content",
    "ui_data",
    "side_data",
    "error_text",
    "error_code",
    "provider_metadata",
    "tool_metadata",
    "dynamic",
    "is_error",
    "skip_summarization",
    "meta",
)
_RECORD_FIELDS = (
    frozenset({"trigger"}),
    frozenset({"finish_reason", "usage", "safety", "handoffs", "sources", "trigger", "guardrails"}),
)
_DRAFT2_FIELDS = frozenset({"grant_modes", "grant_mode_id", "notice_source"})
# Blocks with an identity of their own are announced by the stream and never made up inside other values.
_PLAIN_BLOCKS = tuple(kind for kind in BLOCK_TYPES if kind not in ("tool-call", "tool-result"))
_CORE_PLAIN_BLOCKS = ("text", "image")
_CORE_REASONS = ("stop", "tool_call", "token_limit", "other", "unknown")
_REASONS = (
    "stop",
    "tool_call",
    "token_limit",
    "context_window_exceeded",
    "pause_turn",
    "refusal",
    "safety_blocked",
    "malformed_tool_call",
    "unexpected_tool_call",
    "rejected",
    "other",
    "unknown",
)
_OWNED_BY_MESSAGE = (TurnDone, ToolDone)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What kind of streams to generate.

    Attributes:
        min_events: how many events there are at least, before open things are closed, if `without` leaves enough to do.
        max_events: how many there are at most, before open things are closed.
        profile: nothing above this profile occurs (spec §9).
        max_invokes: how many invokes follow each other, each with its own ordinals from 0 (INV-SEQ).
        truncated: whether invokes may break off and be closed by INV-FLUSH.
        resyncable: whether turns are short and one after the other, so that many places have no turn open.
        draft2: whether fields and the role of draft.2 occur.
        explicit_owners: whether every event with a turn names it.
        without: wire types that do not occur.
        id_prefix: what every id begins with, so that ids of two streams never meet.
        thread_id: the thread of the stream.
        surrogates: whether texts may hold lone surrogates.
    """

    min_events: int = 0
    max_events: int = 50
    profile: AgProfile = "ADVANCED"
    max_invokes: int = 3
    truncated: bool = True
    resyncable: bool = False
    draft2: bool = True
    explicit_owners: bool = False
    without: Collection[str] = ()
    id_prefix: str = ""
    thread_id: str = "thread"
    surrogates: bool = False


@dataclass(slots=True)
class StreamWriter:
    """The stream so far and what is known of it.

    Args:
        source: where the choices come from.
        options: what kind of stream is wanted.
    """

    source: Source
    options: StreamOptions
    model: Model = field(default_factory=Model)
    events: list[AgStreamEvent] = field(default_factory=list[AgStreamEvent])
    seq: int = 0
    invokes: int = 1
    level: int = field(init=False)
    values: ValueBuilder = field(init=False)
    _ids: dict[str, int] = field(default_factory=dict["str", int])
    _id_style: str = field(init=False)

    def __post_init__(self) -> None:
        self.level = LEVELS[self.options.profile]
        self.values = ValueBuilder(
            self.source,
            richness=25,
            keep=self._kept,
            block_kinds=_PLAIN_BLOCKS if self.level else _CORE_PLAIN_BLOCKS,
            source_ids=self.model.sources,
        )
        self._id_style = self.source.choice(["", "", "", ":1", " é%", "\u2028\n"])

    def _kept(self, cls: type, name: str) -> bool:
        if name in _STRUCTURAL:
            return False
        if name in _DRAFT2_FIELDS:
            return self.options.draft2
        if self.level == 0 and cls in (ToolDone, ToolResultBlock):
            return name in _CORE_RESULT_FIELDS
        if self.level < 2 and cls is AgTurnRecord:
            return name in _RECORD_FIELDS[self.level]
        if self.level == 0 and name in _EXTENDED_FIELDS:
            return False
        return self.level == 2 or name not in _ADVANCED_FIELDS

    def new_id(self, kind: str) -> str:
        """An id that this stream has not used."""
        count = self._ids[kind] = self._ids.get(kind, -1) + 1
        return f"{self.options.id_prefix}{kind}{count}{self._id_style}"

    # Emission

    def emit(self, cls: type[T], turn: Turn | None = None, message: Message | None = None, /, **given: Any) -> T:
        """Append an event with the next ordinal.

        Args:
            cls: the class of the event.
            turn: the owning turn; its id is left out at times where the stream has only this turn open.
            message: the open message that the event attaches to; named at times instead of the turn.
            **given: the fields that matter, by Python name.

        Returns:
            The event.
        """
        if turn is not None and "turn_id" not in given:
            given.update(self._owner(cls, turn, message))
        event = self.values.build(cls, seq=self.seq, **given)
        self.append(cast("AgStreamEvent", event))
        return event

    def append(self, event: AgStreamEvent) -> None:
        """Append an event that has been made elsewhere with the ordinal `seq`."""
        self.events.append(event)
        self.seq += 1

    def _owner(self, cls: type, turn: Turn, message: Message | None) -> dict[str, str]:
        if self.options.explicit_owners:
            return {"turn_id": turn.id}
        alone = self.model.open_turns == [turn]
        if message is not None and cls not in _OWNED_BY_MESSAGE and self.source.chance(20):
            return {"message_id": message.id}
        if alone and self.source.chance(40):
            return {}
        return {"turn_id": turn.id}

    # Closing

    def end_block(self, block: Block) -> None:
        """End an open block; collected signature fragments are sealed before or right after."""
        turn = block.message.turn
        if block.kind == "text":
            self.emit(TextEnd, turn, block.message, id=block.id)
        else:
            unsealed = bool(block.signature) and not block.sealed
            # A provider may hand over the whole only when the block has ended.
            late = unsealed and self.source.chance(30)
            if unsealed and not late:
                self.seal_signature(block)
            self.emit(ReasoningEnd, turn, block.message, id=block.id)
            if late:
                self.seal_signature(block)
        self.model.blocks.remove(block)
        block.message.blocks.remove(block)

    def seal_signature(self, block: Block) -> None:
        """Seal a reasoning block's opaque value: the collected fragments, or a value of its own."""
        given: dict[str, Any] = {"value": block.signature} if block.signature else {}
        self.emit(ReasoningOpaque, block.message.turn, block.message, id=block.id, **given)
        block.sealed = True

    def assemble(self, call: Call) -> None:
        """Emit the mandatory assembled arguments of a call."""
        assert call.message is not None
        self.emit(ToolArgsAssembled, call.message.turn, call.message, tool_call_id=call.id, input=call.input)
        call.assembled = True

    def emit_result(self, call: Call, message: Message, *, more: bool, outcome: AgToolOutcome | None = None) -> None:
        """Emit a result of a call into a message; after a partial one, every field that it gave is restated.

        Args:
            call: the call that is answered.
            message: the message where the result lands.
            more: whether the result is partial.
            outcome: how the call ended; a partial result that explained an error keeps it.
        """
        given = dict(call.given)
        for name in _OPAQUE:
            if name in given:
                given[name] = self.source.json()
        if "error_text" not in given and (outcome is not None or "outcome" not in given):
            given["outcome"] = outcome
        if message.candidate or self.source.chance(10):
            given["candidate_index"] = message.candidate
        event = self.emit(
            ToolDone,
            message.turn,
            tool_call_id=call.id,
            message_id=call.adopted_id,
            content=self.values.blocks(),
            more=True if more else self.source.choice([None, False]),
            preliminary=True if more and self.source.chance(20) else None,
            **given,
        )
        if more:
            for name in _RESTATED:
                value = getattr(event, name)
                # An opaque field may hold null, and is then given.
                if value is not UNSET and (value is not None or name in _OPAQUE):
                    call.given[name] = value
            call.partial = message
        else:
            call.partial = None
            call.answered = True

    def finish_result(self, call: Call) -> None:
        """Emit the final result of a call whose result is partial."""
        assert call.partial is not None
        self.emit_result(call, call.partial, more=False, outcome=self.source.choice(["ok", "error", "denied"]))

    def end_message(self, message: Message) -> None:
        """Bring everything inside a message to its end and seal the message."""
        self.complete(message)
        self.seal(message)

    def complete(self, message: Message) -> None:
        """Bring everything inside a message to its end."""
        for block in list(message.blocks):
            self.end_block(block)
        for call in self.model.calls:
            if call.message is message and not call.assembled:
                self.assemble(call)
            if call.partial is message:
                self.finish_result(call)

    def seal(self, message: Message) -> None:
        """Seal a message as it is; its open blocks stay open for ever."""
        self.emit(MessageEnd, message.turn, id=message.id)
        message.sealed = True
        self.model.open_messages.remove(message)
        self._cut_off(message)

    def _cut_off(self, message: Message) -> None:
        model = self.model
        model.blocks = [block for block in model.blocks if block.message is not message]
        model.calls = [call for call in model.calls if call.assembled or call.message is not message]

    def close_turn(self, turn: Turn) -> None:
        """Bring a turn to a regular end, its nested turns and messages first."""
        for child in reversed(self.model.children(turn)):
            self.close_turn(child)
        for message in [message for message in self.model.open_messages if message.turn is turn]:
            self.end_message(message)
        for message in turn.messages:
            if not message.sealed:
                self.complete(message)
        for step in turn.steps:
            self.emit(StepDone, turn, id=step)
        kind = self.source.integer(0, 9)
        if kind == 8:
            self._terminal(turn, TurnError)
        elif kind == 9:
            self._terminal(turn, TurnAbort)
        else:
            self._done(turn)
        if turn.parent_id is not None:
            self.emit(SubagentDone, turn_id=turn.id, parent_turn_id=turn.parent_id)

    def _done(self, turn: Turn) -> None:
        outcome: AgOutcome
        reason = self.source.choice(_REASONS if self.level else _CORE_REASONS)
        if turn.asks:
            outcome = self.values.build(PausedOutcome, asks=list(turn.asks))
            reason = "paused"
        else:
            kind = self.source.integer(0, 7)
            if kind == 6:
                outcome = self.values.build(ErrorOutcome)
            elif kind == 7:
                outcome = self.values.build(RejectedOutcome)
            else:
                outcome = self.values.build(SuccessOutcome)
        given: dict[str, Any] = {"message_id": None}
        owned = [message.id for message in self.model.messages.values() if message.turn is turn]
        if owned and self.source.chance(20):
            given = {"message_id": self.source.choice(owned), "message_metadata": self.source.json()}
        else:
            given["message_metadata"] = UNSET
        self.emit(TurnDone, turn_id=turn.id, outcome=outcome, finish_reason=reason, **given)
        self._closed(turn, outcome)

    def _terminal(self, turn: Turn, cls: type[TurnError | TurnAbort], **given: Any) -> None:
        event = self.emit(cls, turn, **given)
        if isinstance(event, TurnError):
            self._closed(turn, ErrorOutcome(message=event.message))
        else:
            self._closed(turn, AbortedOutcome())

    def _closed(self, turn: Turn, outcome: AgOutcome) -> None:
        for message in turn.messages:
            self._cut_off(message)
        turn.open = False
        turn.outcome = outcome
        turn.messages = []
        turn.pointers = {}
        turn.asks = []
        turn.steps = []
        self.model.open_turns.remove(turn)
        for call in self.model.calls:
            if call.partial is not None and call.partial.turn is turn:
                call.partial = None
                call.answered = True

    def flush(self) -> None:
        """End a stream that broke off as INV-FLUSH demands: seals in order, then aborts, the innermost first."""
        for message in list(self.model.open_messages):
            self.seal(message)
        for turn in reversed(self.model.open_turns):
            if self.source.chance(80):
                self._terminal(turn, TurnAbort, reason="stream-truncated")
            else:
                self._terminal(turn, TurnError)

    def close_all(self) -> None:
        """End the invoke regularly."""
        while self.model.open_turns:
            self.close_turn(self.model.open_turns[-1])

    def new_invoke(self) -> None:
        """Begin the next invoke: ordinals start at 0 again."""
        self.seq = 0
        self.invokes += 1

    def paused_ask(self, **given: Any) -> AgPausedAsk:
        """An ask with a new id."""
        return self.values.build(AgPausedAsk, ask_id=self.new_id("ask"), **given)
