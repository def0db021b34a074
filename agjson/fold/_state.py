"""What the fold knows between events, and the questions that every event asks of it: which turn, which message."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from agjson.fold._entities import Artifact, Memory, Message, Turn
from agjson.fold._names import Names
from agjson.fold._shelf import Shelf
from agjson.fold._streams import CallStream, ReasoningStream, TextStream
from agjson.types import (
    UNSET,
    AgArtifact,
    AgBlock,
    AgEvent,
    AgMemoryRecord,
    AgMessage,
    AgReduceResult,
    AgTurnRecord,
    DataBlock,
    JsonValue,
    ToolCallBlock,
    ToolResultBlock,
    UnsetType,
)

__all__ = ["Fold", "FoldViolation", "Handlers", "Park", "quoted"]


# The blocks that carry ids: a long history has many others.
_INDEXED = (ToolCallBlock, ToolResultBlock, DataBlock)


class FoldViolation(NamedTuple):
    """A rule that an event broke and a tolerant fold mended.

    Attributes:
        seq: the event's ordinal.
        type: the event's wire type.
        rule: the name of the invariant, such as ``INV-BLOCK`` (spec §5.0).
        message: what was wrong and what the fold did.
    """

    seq: int
    type: str
    rule: str
    message: str


class Park(Exception):
    """An event that the fold cannot take: it keeps its result and waits for a snapshot (spec §5.0 `reduce()`-error).

    A handler raises it before it changes anything.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{message} ({rule})")


def quoted(id: str) -> str:
    """An id for a log line, cut where a hostile producer made it long."""
    return repr(id if len(id) <= 80 else id[:77] + "...")


class Fold:
    """The state that the handlers work on.

    Attributes:
        tolerant: mend what other producers do wrong, and report it.
        violations: what was mended.
        messages: every message by id.
        turns: every turn by id, also those that messages name and no event opened.
        records: the turns that have a record.
        running: the turns with a record that are not closed.
        artifacts: every artifact by id.
        memory: every memory record by scope and key.
        state: the shared state.
        streams: every text and reasoning block by id, ended ones too.
        texts: the open text blocks that changed since the last result; the id leads to where deltas go.
        thoughts: the open reasoning blocks that changed since the last result.
        calls: every tool call by its `toolCallId`, and by the id that its producer gave it.
        results: where each result stands that a partial `tool.done` has left open.
        repeats: how often a `toolCallId` was used again, for a tolerant fold to number the calls.
    """

    __slots__ = (
        "_base",
        "_by_turn",
        "_first_top",
        "_pointing",
        "_result",
        "_thread_memory",
        "_tops",
        "artifacts",
        "calls",
        "memory",
        "messages",
        "records",
        "repeats",
        "results",
        "running",
        "state",
        "streams",
        "texts",
        "thoughts",
        "tolerant",
        "turns",
        "violations",
    )

    def __init__(self, initial: AgReduceResult | None, *, tolerant: bool) -> None:
        self.tolerant = tolerant
        self.violations: list[FoldViolation] = []
        self.messages: Shelf[Message, AgMessage] = Shelf(Message.freeze)
        self.turns: dict[str, Turn] = {}
        self.records: Shelf[Turn, AgTurnRecord] = Shelf(Turn.freeze)
        self.running: OrderedDict[str, Turn] = OrderedDict()
        self.artifacts: Shelf[Artifact, AgArtifact] = Shelf(Artifact.freeze)
        self.memory: Shelf[Memory, AgMemoryRecord] = Shelf(Memory.freeze)
        self.state: JsonValue | UnsetType = UNSET
        self.streams: Names[TextStream | ReasoningStream] = Names()
        self.texts: dict[str, Callable[[str], None]] = {}
        self.thoughts: dict[str, ReasoningStream] = {}
        self.calls: Names[CallStream] = Names()
        self.results: dict[str, tuple[Message, int]] = {}
        self.repeats: dict[str, int] = {}
        # The messages of each turn: made by the first event that asks for them, and kept up from then on.
        self._by_turn: dict[str, dict[Message, None]] | None = None
        # The turns that messages were started in since the last snapshot; a closed one has left.
        self._pointing: dict[Turn, None] = {}
        # What was once a top-level turn, in order, and where in it the first one is that still is.
        self._tops: list[Turn] = []
        self._first_top = 0
        self._thread_memory: dict[object, Memory] = {}
        empty = AgReduceResult(messages=[], artifacts=[], memory=[], turns=[])
        self._base = empty
        self._result: AgReduceResult | None = None
        if initial is not None:
            # The unknown fields stay; the containers go, or a snapshot could not free them.
            self._base = replace(initial, messages=[], artifacts=[], memory=[], turns=[], state=UNSET)
            self.seed_turns(initial.turns)
            self.seed_messages(initial.messages)
            self.seed_artifacts(initial.artifacts)
            for record in initial.memory:
                self.seed_memory(record)
            self.state = initial.state

    def result(self) -> AgReduceResult:
        """The folded conversation; the same object again when nothing changed."""
        for id in self.texts:
            self._settle(self.streams[id])
        self.texts.clear()
        for stream in self.thoughts.values():
            self._settle(stream)
        self.thoughts.clear()
        messages = self.messages.freeze()
        turns = self.records.freeze()
        artifacts = self.artifacts.freeze()
        memory = self.memory.freeze()
        last = self._result
        if (
            last is None
            or last.messages is not messages
            or last.turns is not turns
            or last.artifacts is not artifacts
            or last.memory is not memory
            or last.state is not self.state
        ):
            self._result = last = replace(
                self._base, messages=messages, turns=turns, artifacts=artifacts, memory=memory, state=self.state
            )
        return last

    def touch(self, message: Message) -> None:
        """Note that a message changed; spelt out, because nearly every event that is no delta comes here."""
        message.frozen = None
        if not message.stale:
            message.stale = True
            self.messages.changed[message] = None

    def touch_turn(self, turn: Turn) -> None:
        """Note that a turn's record changed."""
        self.records.touch(turn)

    def _settle(self, stream: TextStream | ReasoningStream) -> None:
        stream.settle()
        self.touch(stream.message)

    # Owners

    def turn(self, event: AgEvent, *, adopts: bool = False) -> Turn:
        """The turn that owns an event: the one it names, that of the message it names, or the sole open one.

        Args:
            event: the event.
            adopts: its `messageId` is not an owner, but the id that a new message will have.

        Raises:
            Park: no turn, or several, could be meant (INV-OWNER).
        """
        turn_id = event.turn_id
        if turn_id is None and event.message_id is not None and not adopts:
            turn_id = self.message(event.message_id).base.turn_id
        if turn_id is None:
            if len(self.running) == 1:
                return next(iter(self.running.values()))
            count = len(self.running) or "no"
            raise Park("INV-OWNER", f"it names no turn, and {count} turns are open")
        turn = self.turns.get(turn_id)
        if turn is None:
            raise Park("INV-OWNER", f"no event has opened turn {quoted(turn_id)}")
        return turn

    def recorded(self, event: AgEvent, *, adopts: bool = False) -> Turn:
        """The turn that owns an event, for an event that needs the turn's record.

        Args:
            event: the event.
            adopts: as for `turn`.

        Raises:
            Park: no turn, or several, could be meant, or no event has opened it.
        """
        turn_id = event.turn_id
        if self.tolerant and turn_id is not None:
            turn = self.turns.get(turn_id)
            return self.open_turn(event, turn_id) if turn is None or turn.record is None else turn
        turn = self.turn(event, adopts=adopts)
        if turn.record is None:
            raise Park("INV-OWNER", f"no event has opened turn {quoted(turn.turn_id)}")
        return turn

    def open_turn(self, event: AgEvent, turn_id: str) -> Turn:
        """Open a turn that an event takes for granted, as a tolerant fold does."""
        thread_id = getattr(event, "thread_id", None) or self.root_thread() or turn_id
        self.report(event, "INV-TURN", f"turn {quoted(turn_id)} was never opened; opened it")
        return self.add_turn(AgTurnRecord(turn_id=turn_id, thread_id=thread_id))

    def add_turn(self, record: AgTurnRecord) -> Turn:
        """Enter a record that no turn has yet."""
        turn = self.turns.get(record.turn_id)
        if turn is None:
            turn = self.turns[record.turn_id] = Turn(record.turn_id, record)
        else:
            turn.record = record
            turn.outdate()
        self.records.put(record.turn_id, turn)
        self.running[record.turn_id] = turn
        if record.parent_turn_id is None:
            self._tops.append(turn)
        return turn

    def root_thread(self) -> str | None:
        """The thread of the fold: that of its first top-level turn (spec §8.16), else that of its first turn."""
        # A turn may become nested, but none becomes a top-level one, so the search goes on from where it ended.
        for place in range(self._first_top, len(self._tops)):
            record = self._tops[place].record
            if record is not None and record.parent_turn_id is None:
                self._first_top = place
                return record.thread_id
        self._first_top = len(self._tops)
        first = next(iter(self.records.items.values()), None)
        return first.record.thread_id if first is not None and first.record is not None else None

    def message(self, message_id: str) -> Message:
        """The message with this id.

        Raises:
            Park: there is none.
        """
        message = self.messages.items.get(message_id)
        if message is None:
            raise Park("INV-OWNER", f"there is no message {quoted(message_id)}")
        return message

    def target(self, event: AgEvent, candidate: int | float | None) -> Message:
        """The message that a new block goes to (spec §4 base, §5 message partitioning).

        That is the message which the event names, else the most recently started one of its turn and candidate.

        Raises:
            Park: there is none, or it takes no more blocks (INV-MSG).
        """
        turn = self.turn(event)
        if event.message_id is None:
            partition = turn.partitions.get(candidate or 0)
            message = partition.open if partition else None
        else:
            message = self.message(event.message_id)
            if message.base.turn_id != turn.turn_id:
                raise Park("INV-OWNER", f"message {quoted(event.message_id)} is not of turn {quoted(turn.turn_id)}")
            if not message.opened:
                message = None
        if turn.closed:
            raise Park("INV-MSG", f"turn {quoted(turn.turn_id)} is closed")
        if message is None:
            raise Park("INV-OWNER", f"no message is open in turn {quoted(turn.turn_id)}")
        if message.sealed:
            raise Park("INV-MSG", f"message {quoted(message.base.id)} is sealed")
        return message

    def owner(self, message: Message) -> Turn | None:
        """The turn of a message; None for a stored one whose turn is not known."""
        return self.turns.get(message.base.turn_id) if message.base.turn_id is not None else None

    def is_shut(self, message: Message) -> bool:
        """Tell whether a message takes no more blocks: it is sealed, or its turn is closed (INV-MSG)."""
        turn = self.owner(message)
        return message.sealed or (turn is not None and turn.closed)

    def report(self, event: AgEvent, rule: str, message: str) -> None:
        """Note what a tolerant fold mended."""
        self.violations.append(FoldViolation(event.seq, event.type, rule, message))

    # Blocks

    def add_block(self, message: Message, block: AgBlock) -> int:
        """Append a block; returns where it stands."""
        index = message.add(block)
        self.touch(message)
        return index

    def add_call(self, call: CallStream, *, behind: bool = False) -> None:
        """Note a tool call under its ids.

        Args:
            call: the call.
            behind: events that name a taken id go on meaning the call that has it.
        """
        self.calls.give(call.id, call, behind=behind)
        if call.alias != call.id:
            self.calls.give(call.alias, call)
        call.message.name_call(call)

    def index_block(self, message: Message, index: int, block: AgBlock) -> None:
        """Note the ids that a whole block carries, so that later events find it."""
        if isinstance(block, ToolCallBlock):
            self.add_call(CallStream(block.tool_call_id, message, index, open=False), behind=True)
        elif isinstance(block, ToolResultBlock):
            if block.preliminary:
                self.results[block.tool_call_id] = (message, index)
        elif isinstance(block, DataBlock) and block.id is not None:
            if message.data is None:
                message.data = {}
            message.data.setdefault(block.id, index)

    def end_stream(self, stream: TextStream | ReasoningStream) -> None:
        """No more deltas for this block."""
        if stream.open:
            stream.open = False
            stream.settle(final=True)
            self.touch(stream.message)
            if stream.message.live is not None:
                stream.message.live.pop(stream, None)
        if self.streams.get(stream.id) is stream:
            self.texts.pop(stream.id, None)
            self.thoughts.pop(stream.id, None)

    def end_blocks(self, message: Message) -> None:
        """No more deltas or arguments for any block of a message."""
        live, message.live = message.live, None
        for stream in live or ():
            if isinstance(stream, CallStream):
                stream.open = False
            else:
                self.end_stream(stream)

    def detach(self, message: Message) -> None:
        """Forget a message that is removed or begun afresh: its ids are free, and the pointer leaves it.

        The pointer goes back to the newest message of the partition that is still there and not sealed.
        """
        turn_id = message.base.turn_id
        if self._by_turn is not None and turn_id is not None:
            siblings = self._by_turn[turn_id]
            del siblings[message]
            if not siblings:
                del self._by_turn[turn_id]
        turn = self.owner(message)
        if turn is not None:
            turn.let_go(message)
        for stream in message.named or ():
            if self.streams.get(stream.id) is stream:
                self.texts.pop(stream.id, None)
                self.thoughts.pop(stream.id, None)
            self.streams.take(stream.id, stream)
        for call in message.calls or ():
            self.calls.take(call.id, call)
            if call.alias != call.id:
                self.calls.take(call.alias, call)
        # The blocks lead back to the message: without these it is freed at once.
        message.live = message.named = message.calls = None
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                partial = self.results.get(block.tool_call_id)
                if partial is not None and partial[0] is message:
                    del self.results[block.tool_call_id]

    def close(self, turn: Turn) -> None:
        """Shut a turn: no message of it takes blocks or deltas any more (INV-MSG)."""
        turn.closed = True
        self.running.pop(turn.turn_id, None)
        for message in turn.live:
            self.end_blocks(message)
        turn.live.clear()
        turn.partitions.clear()
        self._pointing.pop(turn, None)

    # Messages

    def add_message(self, turn: Turn, message: Message, *, opens: bool) -> None:
        """Enter a message that an event starts or makes.

        Args:
            turn: its turn.
            message: the message; one that has its id is replaced.
            opens: new blocks of its turn and candidate go to it.
        """
        self.messages.put(message.base.id, message)
        if self._by_turn is not None:
            self._by_turn.setdefault(turn.turn_id, {})[message] = None
        if not turn.closed:
            turn.take_in(message, opens=opens)
            self._pointing[turn] = None

    def messages_of(self, turn_id: str | None) -> list[Message]:
        """The messages of exactly this turn."""
        if self._by_turn is None:
            self._by_turn = {}
            for message in self.messages.items.values():
                if message.base.turn_id is not None:
                    self._by_turn.setdefault(message.base.turn_id, {})[message] = None
        return list(self._by_turn.get(turn_id, ())) if turn_id is not None else []

    # Containers

    def clear_transients(self) -> None:
        """Forget every open block and message pointer (spec §5 messages.snapshot)."""
        self.streams.clear()
        self.texts.clear()
        self.thoughts.clear()
        self.calls.clear()
        self.results.clear()
        for turn in self._pointing:
            turn.partitions.clear()
            turn.live.clear()
            if turn.record is None:
                del self.turns[turn.turn_id]
        self._pointing.clear()

    def seed_messages(self, messages: Iterable[AgMessage]) -> None:
        """Take over stored messages; blocks are added to none of them before a new start or an adoption."""
        self.messages = Shelf(Message.freeze)
        self._by_turn = None
        stored = list(messages)
        items = [Message(base, opened=False) for base in stored]
        self.messages.fill([base.id for base in stored], items, stored)
        for message in items:
            for index, block in enumerate(message.content):
                if isinstance(block, _INDEXED):
                    self.index_block(message, index, block)

    def seed_turns(self, records: Iterable[AgTurnRecord]) -> None:
        """Take over stored records.

        A turn with an outcome is closed, and one that was closed here stays closed. A nested turn may have neither and
        have ended all the same, since `subagent.done` leaves no trace in a record. So it is running if its parent is a
        record that is running, wherever the two stand. Below a label that no record has, it is not counted among the
        running turns, and takes what names it for as long as a top-level turn is running.
        """
        closed = {id for id, turn in self.turns.items() if turn.closed}
        self.turns.clear()
        self.running.clear()
        self.records = Shelf(Turn.freeze)
        self._tops.clear()
        self._first_top = 0
        stored = list(records)
        items = [Turn(record.turn_id, record) for record in stored]
        self.records.fill([record.turn_id for record in stored], items, stored)
        running: list[Turn] = []
        nested: dict[str, list[Turn]] = {}
        for record, turn in zip(stored, items, strict=True):
            turn.closed = turn.closed or record.turn_id in closed
            if record.parent_turn_id is None:
                self._tops.append(turn)
            if self.turns.setdefault(record.turn_id, turn) is not turn or turn.closed:
                continue
            if record.parent_turn_id is None:
                running.append(turn)
            else:
                turn.closed = True
                nested.setdefault(record.parent_turn_id, []).append(turn)
        while running:
            turn = running.pop()
            turn.closed = False
            self.running[turn.turn_id] = turn
            running.extend(nested.pop(turn.turn_id, ()))
        if self.running:
            unsure = [turn for label, turns in nested.items() if label not in self.turns for turn in turns]
            while unsure:
                turn = unsure.pop()
                turn.closed = False
                unsure.extend(nested.pop(turn.turn_id, ()))

    def seed_artifacts(self, artifacts: Iterable[AgArtifact]) -> None:
        """Take over stored artifacts."""
        self.artifacts = Shelf(Artifact.freeze)
        for base in artifacts:
            self.artifacts.seed(base.artifact_id, Artifact(base))

    def put_memory(self, record: AgMemoryRecord) -> None:
        """Enter a memory record, in the place of the one that has its scope and key."""
        place = (record.scope, record.key or "")
        memory = Memory(record)
        self.memory.put(place, memory)
        if record.scope == "thread":
            self._thread_memory[place] = memory

    def seed_memory(self, record: AgMemoryRecord) -> None:
        """Take over a stored memory record."""
        place = (record.scope, record.key or "")
        memory = Memory(record)
        if record.scope == "thread":
            self._thread_memory[memory if place in self.memory.items else place] = memory
        self.memory.seed(place, memory)

    def clear_thread_memory(self) -> None:
        """Forget the records of the thread; those of wider scope stay."""
        for place, memory in self._thread_memory.items():
            self.memory.drop(place, memory)
        self._thread_memory.clear()


Handlers: TypeAlias = dict[type[Any], Callable[[Fold, Any], None]]
"""What each event class does to the fold. A handler changes nothing if it raises `Park`."""
