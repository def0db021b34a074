"""What the checker remembers of a stream: turns, messages, blocks and calls by id, nothing of their text.

Memory grows with the number of distinct ids alone. A breach is reported once, where it happens: what it concerns is
then treated as mended, so that one fault does not drown the rest of the stream.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeVar

from agjson.checker.rules import Violation

__all__ = ["Block", "Call", "Digest", "Entry", "Message", "Tracker", "Turn", "newest"]

_T = TypeVar("_T")

_LONGEST_MESSAGE = 500


def newest(table: dict[str, _T]) -> _T | None:
    """The value that was put in last; None of an empty table.

    It is taken out and put back, since looking at one end of a dict costs a step for each key removed there.
    """
    if not table:
        return None
    key, value = table.popitem()
    table[key] = value
    return value


class Entry(Protocol):
    """The part of every event that leads to its owner (spec §4)."""

    @property
    def turn_id(self) -> str | None:
        """The owning turn, where it is named."""
        ...

    @property
    def message_id(self) -> str | None:
        """The message, where one is named."""
        ...


class Turn:
    """A turn of the stream."""

    __slots__ = (
        "asks",
        "closed",
        "done",
        "id",
        "line",
        "nested",
        "opened",
        "parent_id",
        "pointers",
        "seq",
        "started",
        "thread_id",
        "unassembled",
        "unsigned",
    )

    def __init__(self, id: str, line: int, seq: int | float | None, *, opened: bool) -> None:
        self.id = id
        self.line = line
        self.seq = seq
        # This stream opened it and owes its close; false for one known from a snapshot, or used without being opened.
        self.opened = opened
        self.nested = False
        # Its `subagent.done` has come.
        self.done = False
        self.thread_id: str | None = None
        self.parent_id: str | None = None
        # What closed it: an event type, or "snapshot".
        self.closed: str | None = None
        # The message that new blocks go to, by candidate (spec §5 message partitioning).
        self.pointers: dict[int | float, Message] = {}
        # Its messages that are not sealed, by candidate, in order of their starts.
        self.started: dict[int | float, dict[str, Message]] = {}
        # The asks opened in it, and whether a pause must name each.
        self.asks: dict[str, bool] = {}
        # Calls without their arguments, and reasoning blocks whose signature has come in fragments only.
        self.unassembled: dict[str, Call] = {}
        self.unsigned: dict[str, Block] = {}

    def enter(self, message: Message) -> None:
        """Take a message that is not sealed."""
        self.started.setdefault(message.candidate, {})[message.id] = message

    def drop(self, message: Message) -> None:
        """Forget a message that is sealed or removed."""
        started = self.started.get(message.candidate)
        if started is not None:
            started.pop(message.id, None)

    def clear(self) -> None:
        """Forget every message and block: they take nothing more."""
        self.pointers = {}
        self.started = {}
        self.unassembled = {}
        self.unsigned = {}


class Message:
    """A message of the stream; `open` while it takes blocks: not sealed, not restored, its turn not closed."""

    __slots__ = (
        "blocks",
        "calls",
        "candidate",
        "dangling",
        "filled",
        "id",
        "line",
        "open",
        "order",
        "owed",
        "partials",
        "restored",
        "sealed",
        "seq",
        "turn",
        "turn_id",
    )

    def __init__(self, id: str, turn: Turn | None, candidate: int | float = 0, line: int = 0) -> None:
        self.id = id
        self.turn = turn
        self.turn_id = turn.id if turn is not None else None
        self.candidate = candidate
        self.line = line
        self.seq: int | float | None = None
        self.order = 0
        self.open = True
        self.sealed = False
        # True for one that a snapshot brought; results may still land in it.
        self.restored = False
        # True for one with blocks that a snapshot brought, or that a result has been added to since.
        self.filled = False
        # True while a `message.start` waits for its `message.end`.
        self.owed = False
        # How many blocks have been started and not ended.
        self.dangling = 0
        self.blocks: list[str] = []
        self.calls: list[str] = []
        # The calls whose results here are still partial; made when needed.
        self.partials: set[str] | None = None

    @property
    def shut(self) -> bool:
        """Nothing may be added or changed: it is sealed, or its turn is closed (spec §5.0 INV-MSG)."""
        return self.sealed or (self.turn is not None and self.turn.closed is not None)


class Block:
    """A streamed text or reasoning block; its `message` becomes `Tracker.nowhere` once a fault has been reported."""

    __slots__ = ("ended", "ends", "fragments", "home", "message", "parts", "starts", "turn_id")

    def __init__(self, message: Message) -> None:
        self.home = self.message = message
        self.turn_id = message.turn.id if message.turn is not None else None
        self.ended = False
        # A reasoning block of several parts may start and end once for each.
        self.starts = 1
        self.ends = 0
        self.parts: set[int | float] | None = None
        # Digest of the signature fragments so far (spec §8 item 9), one of constant size.
        self.fragments: Digest | None = None


class Digest(Protocol):
    """The part of a `hashlib` object that is used."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""
        ...

    def digest(self) -> bytes:
        """The digest of all bytes so far."""
        ...


class Call:
    """A tool call; its `message` becomes `Tracker.nowhere` once a fault has been reported."""

    __slots__ = ("assembled", "home", "message", "whole")

    def __init__(self, message: Message, *, whole: bool) -> None:
        self.home = self.message = message
        # It came as one block, its arguments with it.
        self.whole = whole
        self.assembled = whole


class Tracker:
    """The state of one check, and the place where breaches are reported."""

    def __init__(self, known_ids: Collection[str] | None) -> None:
        self.found: list[Violation] = []
        self.line = 0
        self.seq: int | float | None = None
        self.last = -1
        self.continued = known_ids is not None
        self.known_ids: Collection[str] = known_ids if known_ids is not None else frozenset()
        self.turns: dict[str, Turn] = {}
        self.open_turns: dict[str, Turn] = {}
        # The turns that this invoke has opened and must close.
        self.owed_turns: dict[str, Turn] = {}
        # The turns that have messages or blocks which a snapshot would make them forget.
        self.busy_turns: dict[str, Turn] = {}
        self.messages: dict[str, Message] = {}
        self.by_turn: dict[str, dict[str, Message]] = {}
        self.unsealed: dict[str, Message] = {}
        self.opened_messages = 0
        self.texts: dict[str, Block] = {}
        self.reasonings: dict[str, Block] = {}
        self.calls: dict[str, Call] = {}
        self.announced_calls: set[str] = set()
        # Results that are still partial: where each landed, and the optional fields that it was given.
        self.partials: dict[str, tuple[Message, frozenset[str]]] = {}
        self.artifacts: dict[str, bool] = {}
        # The keys that have a value, by scope.
        self.memory: dict[str, set[str]] = {}
        self.has_state = False
        # Ask id to a fingerprint of each field.
        self.asks: dict[str, dict[str, int]] = {}
        self.steps: set[str] = set()
        self.sources: set[str] = set()
        self.cited: dict[str, tuple[int, int | float | None]] = {}
        # The line of the latest item that may belong to a flush, and what is out of order if it does.
        self.flush_line = -1
        self.suspects: list[Violation] = []
        # The latest message ends without another item between them, and the line of the last.
        self.ending: list[tuple[int, int | float | None, Message]] = []
        self.ending_line = 0
        # Takes what a reported fault leaves without a home.
        self.nowhere = Message("", None)

    def report(self, rule: str, message: str) -> None:
        """Report a breach at the current item."""
        self.report_at(self.line, self.seq, rule, message)

    def report_at(self, line: int, seq: int | float | None, rule: str, message: str) -> None:
        """Report a breach at an earlier item."""
        self.found.append(_violation(line, seq, rule, message))

    # Flushes: only what follows tells whether an abort came from one, so faults wait for the next abort or the end.

    @property
    def in_flush(self) -> bool:
        """Nothing stands between this item and the latest one of a flush."""
        return self.flush_line == self.line - 1

    def suspect(self, line: int, seq: int | float | None, message: str) -> None:
        """Note what breaks INV-FLUSH if a flush is what this is."""
        self.suspects.append(_violation(line, seq, "INV-FLUSH", message))

    def suspect_here(self, message: str) -> None:
        """Note that this item breaks INV-FLUSH if it belongs to a flush."""
        self.suspect(self.line, self.seq, message)
        self.flush_line = self.line

    def end_flush(self, line: int) -> None:
        """Report what a flush got wrong, if one ended directly before the item of this line."""
        if self.flush_line == line - 1:
            self.found.extend(self.suspects)
        self.suspects = []

    # Turns

    def open_turn(self, turn_id: str) -> Turn:
        """Record that this item opens a turn."""
        turn = self.new_turn(turn_id, opened=True)
        self.open_turns[turn_id] = self.owed_turns[turn_id] = turn
        return turn

    def new_turn(self, turn_id: str, *, opened: bool) -> Turn:
        """Record a turn; stored messages may have named it before."""
        turn = self.turns[turn_id] = Turn(turn_id, self.line, self.seq, opened=opened)
        for message in self.by_turn.get(turn_id, {}).values():
            message.turn = turn
        return turn

    def close_turn(self, turn: Turn, by: str) -> None:
        """Record that a turn is closed: its messages take nothing more."""
        turn.closed = by
        for started in turn.started.values():
            for message in started.values():
                message.open = False
        turn.clear()
        turn.asks = {}
        self.open_turns.pop(turn.id, None)
        self.owed_turns.pop(turn.id, None)
        self.busy_turns.pop(turn.id, None)

    def known_turn(self, turn_id: str) -> Turn:
        """The turn of this id; one that nothing has opened is reported (spec §5.0 INV-TURN)."""
        turn = self.turns.get(turn_id)
        if turn is None:
            turn = self.new_turn(turn_id, opened=False)
            if turn_id not in self.known_ids:
                self.report("INV-TURN", f"turn `{turn_id}` has not been opened")
                self.open_turns[turn_id] = turn
        return turn

    def check_named(self, event: Entry, *, quiet: bool) -> None:
        """Check the turn and message that any event names: they exist and belong together (spec §5.0 INV-OWNER, §4).

        Args:
            event: the event, whose own rule has been applied.
            quiet: that rule has reported something, so that more about the same fault would be noise.
        """
        turn_id = event.turn_id
        name = event.message_id
        message = self.messages.get(name) if name is not None else None
        if turn_id is None:
            if name is not None and message is None and name not in self.known_ids and not quiet:
                self.report("INV-OWNER", f"the event names message `{name}`, which does not exist")
        elif turn_id not in self.turns and turn_id not in self.known_ids and turn_id not in self.by_turn:
            # It is not taken to be open: an event that any turn could own would then find two.
            self.new_turn(turn_id, opened=False)
            if not quiet:
                self.report("INV-TURN", f"turn `{turn_id}` has not been opened")
        elif message is not None and not quiet:
            self.is_of(event, message.turn_id, f"message `{message.id}`")

    def is_of(self, event: Entry, turn_id: str | None, what: str) -> bool:
        """Tell whether an event names no other turn than that of what it is about; another one is reported."""
        if event.turn_id is None or turn_id is None or event.turn_id == turn_id:
            return True
        self.report("INV-OWNER", f"the event names turn `{event.turn_id}`, {what} is in `{turn_id}`")
        return False

    def turn_of(self, event: Entry) -> Turn | None:
        """The turn that owns an event: the one it names, else that of the message it names, else the only one open.

        An event that leads nowhere is reported (spec §5.0 INV-OWNER, §4 per-turn routing), and None returned.
        """
        if event.turn_id is not None:
            return self.known_turn(event.turn_id)
        if event.message_id is not None:
            message = self.messages.get(event.message_id)
            if message is not None:
                if message.turn_id is not None:
                    return self.known_turn(message.turn_id)
            elif event.message_id not in self.known_ids:
                self.report("INV-OWNER", f"the event names message `{event.message_id}`, which does not exist")
                return None
        return self.sole_turn()

    def sole_turn(self) -> Turn | None:
        """The only turn that is open; none or several are reported."""
        if len(self.open_turns) == 1:
            return newest(self.open_turns)
        count = f"{len(self.open_turns)} turns are" if self.open_turns else "no turn is"
        self.report("INV-OWNER", f"the event names no turn, and {count} open")
        return None

    # Messages

    def open_message(self, message_id: str, turn: Turn, candidate: int | float) -> Message:
        """Record that this item opens a message, to which the blocks of its partition now go."""
        message = Message(message_id, turn, candidate, self.line)
        message.seq = self.seq
        message.order = self.opened_messages
        self.opened_messages += 1
        self.enter_message(message)
        turn.pointers[candidate] = message
        return message

    def enter_message(self, message: Message) -> None:
        """Record a message that exists from here on."""
        self.messages[message.id] = message
        if message.turn_id is not None:
            self.by_turn.setdefault(message.turn_id, {})[message.id] = message
        if message.turn is not None and not message.restored:
            message.turn.enter(message)
            self.busy_turns[message.turn.id] = message.turn

    def keep_partial(self, call_id: str, message: Message, given: frozenset[str]) -> None:
        """Record that a result is still partial, and what it was given so far."""
        self.partials[call_id] = (message, given)
        if message is not self.nowhere:
            if message.partials is None:
                message.partials = set()
            message.partials.add(call_id)

    def drop_partial(self, call_id: str) -> None:
        """Record that a result is whole."""
        message, _ = self.partials.pop(call_id)
        if message.partials is not None:
            message.partials.discard(call_id)

    def remove_message(self, message: Message) -> None:
        """Forget a message and free the ids of its blocks; the pointer goes back if it stood there (spec §5)."""
        self.messages.pop(message.id, None)
        self.unsealed.pop(message.id, None)
        if message.turn_id is not None and message.turn_id in self.by_turn:
            of_turn = self.by_turn[message.turn_id]
            of_turn.pop(message.id, None)
            if not of_turn:
                del self.by_turn[message.turn_id]
        self.free_ids(message)
        message.open = False
        turn = message.turn
        if turn is None:
            return
        turn.drop(message)
        if turn.pointers.get(message.candidate) is message:
            other = newest(turn.started.get(message.candidate, {}))
            if other is not None:
                turn.pointers[message.candidate] = other
            else:
                del turn.pointers[message.candidate]
                turn.started.pop(message.candidate, None)

    def free_ids(self, message: Message) -> None:
        """Let the ids of a message's blocks and calls be used again (spec §5 `message.remove`)."""
        for block_id in message.blocks:
            for table in (self.texts, self.reasonings):
                block = table.get(block_id)
                if block is not None and block.home is message:
                    del table[block_id]
                    if message.turn is not None:
                        message.turn.unsigned.pop(block_id, None)
        for call_id in message.calls:
            call = self.calls.get(call_id)
            if call is not None and call.home is message:
                del self.calls[call_id]
                if message.turn is not None:
                    message.turn.unassembled.pop(call_id, None)
        for call_id in message.partials or ():
            partial = self.partials.get(call_id)
            if partial is not None and partial[0] is message:
                del self.partials[call_id]

    def target(self, event: Entry, candidate: int | float | None) -> Message:
        """The message that a new block goes to (spec §5 message partitioning); a closed or missing one is reported."""
        before = len(self.found)
        turn = self.turn_of(event)
        if turn is None:
            return self.nowhere
        if event.message_id is not None:
            # No message is of a turn that has just been reported: it would be the same fault.
            return self._named(turn, event.message_id) if len(self.found) == before else self.nowhere
        partition = candidate or 0
        message = turn.pointers.get(partition)
        if turn.closed is not None:
            # A message that was started after the close has been reported itself.
            if message is None:
                self.report("INV-MSG", f"a block for turn `{turn.id}`, which {turn.closed} has closed")
            return self.nowhere
        if message is None:
            self.report("INV-MSG", f"a block for turn `{turn.id}`, which has no open message")
            message = turn.pointers[partition] = Message("", turn, partition, self.line)
            self.busy_turns[turn.id] = turn
        elif not message.open:
            self.report("INV-MSG", f"a block for message `{message.id}`, which is sealed")
            return self.nowhere
        return message

    def _named(self, turn: Turn, name: str) -> Message:
        message = self.messages.get(name)
        if message is None:
            if name not in self.known_ids:
                self.report("INV-OWNER", f"the event names message `{name}`, which does not exist")
        elif message.turn_id != turn.id:
            self.report("INV-OWNER", f"message `{name}` is not of turn `{turn.id}`")
        elif not message.open:
            self.report("INV-MSG", f"a block for message `{name}`, which takes none")
        else:
            return message
        return self.nowhere

    # Ids from outside

    def is_known_call(self, call_id: str) -> bool:
        """Tell whether a tool call has been announced in this stream or in the thread before it."""
        return call_id in self.announced_calls or call_id in self.known_ids

    def need_call(self, call_id: str, what: str) -> None:
        """Report a tool call that is named before it is announced."""
        if not self.is_known_call(call_id):
            self.report("ANNOUNCE", f"{what} names tool call `{call_id}`, which has not been announced")
            self.announced_calls.add(call_id)


def _violation(line: int, seq: int | float | None, rule: str, message: str) -> Violation:
    """The record of a breach; its message is cut where a hostile producer made an id long."""
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[: _LONGEST_MESSAGE - 3]}..."
    return Violation(line=line, seq=seq, rule=rule, message=message)
