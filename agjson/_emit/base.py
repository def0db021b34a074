"""The ground of the emitter: buffer, ids, owners, how turns open and close (spec §1, §5.0)."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeAlias, Unpack

from msgspec import structs

from agjson._emit.settings import EmitterSettings
from agjson._emit.state import Block, Envelope, Message, OwnId, Turn
from agjson._members import check_members, require_text
from agjson.jsonable import jsonable
from agjson.known_ids import KnownIds
from agjson.types import (
    AgEvent,
    AgStreamEvent,
    AgTrigger,
    AgUsage,
    ErrorEvent,
    MessageEnd,
    SubagentDone,
    SubagentStart,
    TurnAbort,
    TurnStart,
)

__all__ = ["TRUNCATED", "EmitterBase", "Gate"]

TRUNCATED = "stream-truncated"
"""The reason of the aborts that a flush writes (spec §5.0 INV-FLUSH)."""

Gate: TypeAlias = Callable[[AgStreamEvent], None]
"""What each event passes before it is emitted; it raises for one that may not go out."""


class EmitterBase:
    """The buffer, ids, owners, and how turns open and close."""

    def __init__(self, turn_id: str, thread_id: str, settings: EmitterSettings, gate: Gate | None) -> None:
        parent_turn_id = settings.get("parent_turn_id")
        trigger = settings.get("trigger")
        # With a wrong one the turn could never be opened, and nothing be said at all.
        check_members(TurnStart(seq=0, turn_id=turn_id, thread_id=thread_id, trigger=trigger))
        if parent_turn_id is not None:
            require_text(parent_turn_id, "subagent.start", "parentTurnId")
        self._root = Turn(turn_id, parent_id=parent_turn_id)
        self._thread_id = thread_id
        self._root.trigger = trigger
        self._known = KnownIds.of_any_kind(settings.get("known_ids", ()))
        # Those of the known messages that are still there: a snapshot replaces them.
        self._known_messages = self._known.messages
        self._gate = gate
        if gate is not None and parent_turn_id is not None:
            gate(SubagentStart(seq=0, turn_id=turn_id, parent_turn_id=parent_turn_id))
        self._seq: int = 0
        self._out: list[AgStreamEvent] = []
        self._flushed = False
        self._current = self._root
        # By native and by emitted id; a native id leads to the latest entity that bears it.
        self._turns: dict[str, Turn] = {turn_id: self._root}
        self._messages: dict[str, Message] = {}
        # In the order in which they were opened, which a flush needs.
        self._opened: list[Turn] = []
        self._open_turns: dict[str, Turn] = {}
        self._open_messages: dict[str, Message] = {}
        self._holding: dict[Block, None] = {}
        # Every id emitted, and those of blocks and tool calls, which are unique among themselves.
        self._used: set[str] = {turn_id}
        self._block_ids: set[str] = set()
        # Ids that a snapshot brought: of the thread, like the known ones; and its messages by turn id.
        self._restored_turns: set[str] = set()
        self._restored_calls: set[str] = set()
        self._restored_messages: list[tuple[str | None, Message]] = []
        self._ordinals: dict[str, int] = {}

    # The buffer

    def drain(self) -> list[AgStreamEvent]:
        """Take the events emitted since the last call, in order; the buffer is empty afterwards."""
        out = self._out
        self._out = []
        return out

    def _put(self, event: AgStreamEvent) -> None:
        check_members(event)
        if self._gate is not None:
            self._gate(event)
        self._seq += 1
        self._out.append(event)

    def error(
        self,
        message: str,
        *,
        code: str | None = None,
        retriable: bool | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Emit a non-terminal ``error``: something went wrong, and the turn goes on (spec §4).

        Args:
            message: the error in words.
            code: the error's code.
            retriable: whether trying again may help.
            turn_id: the turn that it concerns; absent: that of the message, else the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        self._put(
            ErrorEvent(seq=self._seq, message=message, code=code, retriable=retriable, turn_id=turn.id, **envelope)
        )

    def _report(self, turn: Turn, code: str, message: str) -> None:
        self._put(ErrorEvent(seq=self._seq, message=message, code=code, turn_id=turn.id))

    def _refuse(self, event: AgStreamEvent, turn: Turn, code: str, why: str) -> None:
        """Carry an event that the stream can no longer take inside a visible `error`, whole but for its ordinal."""
        refused = jsonable(event)
        if isinstance(refused, dict):
            refused.pop("seq", None)
        self._put(ErrorEvent(seq=self._seq, message=why, code=code, turn_id=turn.id, meta={"agjson/refused": refused}))

    def _refuse_closed(self, event: AgStreamEvent, turn: Turn) -> None:
        self._refuse(event, turn, "turn_closed", f"{event.type} comes after {turn.closed} has closed turn {turn.id}")

    # Ids

    def _is_foreign(self, id: str) -> bool:
        """Tell whether something of the thread bears an id that this invoke did not emit."""
        return id in self._known or id in self._restored_turns or id in self._restored_calls

    def _derived(self, turn: Turn, kind: str) -> str:
        """An id for something that the framework left without one (spec §5.0 INV-BLOCK)."""
        stem = f"{turn.id}:{kind}:"
        ordinal = self._ordinals.get(stem, 0)
        while (id := f"{stem}{ordinal}") in self._used or self._is_foreign(id):
            ordinal += 1
        self._ordinals[stem] = ordinal + 1
        return id

    def _renamed(self, native: str, used: Container[str]) -> str:
        """The native id if it is free among its kind and in the thread, else ``<id>#2``, ``#3`` and so on."""
        if native not in used and not self._is_foreign(native):
            return native
        count = self._ordinals.get(native, 2)
        while (id := f"{native}#{count}") in used or self._is_foreign(id):
            count += 1
        self._ordinals[native] = count + 1
        return id

    # Owners

    def _owner(self, turn_id: str | None, message_id: str | None = None) -> Turn:
        """The turn that an event belongs to, opened if nothing has opened it yet (spec §5.0 INV-OWNER, INV-TURN)."""
        if turn_id:
            turn = self._turns.get(turn_id)
            if turn is None:
                # After the end nothing opens any more.
                turn = self._root if self._root.closed or self._flushed else self._nested(turn_id, None)
        elif message_id and message_id in self._messages:
            turn = self._messages[message_id].turn
        else:
            turn = self._current
        return self._ready(turn)

    def _owner_beside(self, turn_id: str | None, message_id: str | None) -> Turn:
        """The turn of an event that names a message without going into it: that of the message, whatever is said."""
        return self._owner(None if message_id and message_id in self._messages else turn_id, message_id)

    def _ready(self, turn: Turn) -> Turn:
        if not turn.opened:
            self._open(turn)
        return turn

    def _open(
        self, turn: Turn, agent_id: str | None = None, agent_name: str | None = None, **envelope: Unpack[Envelope]
    ) -> None:
        if turn.parent is not None and not turn.parent.opened:
            self._open(turn.parent)
        if not turn.nested:
            start = TurnStart(
                seq=self._seq, turn_id=turn.id, thread_id=self._thread_id, trigger=turn.trigger, **envelope
            )
            self._put(start)
        if turn.parent_id is not None:
            nested = SubagentStart(
                seq=self._seq,
                turn_id=turn.id,
                parent_turn_id=turn.parent_id,
                agent_id=agent_id,
                agent_name=agent_name,
            )
            self._put(structs.replace(nested, **envelope) if turn.nested else nested)
        turn.opened = True
        self._turns[turn.id] = turn
        if turn.native != self._root.id:
            self._turns[turn.native] = turn
        self._used.add(turn.id)
        self._opened.append(turn)
        self._open_turns[turn.id] = turn
        self._current = turn
        if self._flushed:
            self._close_one(turn, self._abort_of(turn, TRUNCATED))

    def _nested(self, native: str | None, parent_id: str | None) -> Turn:
        """A nested turn that is not opened yet."""
        named = None if parent_id is None else self._turns.get(parent_id)
        if named is not None:
            parent_id = named.id
        parent = self._current if named is None else named
        if parent.closed is not None:
            parent = self._root
        id = self._renamed(native, self._turns) if native else self._derived(parent, "turn")
        label = parent.id if parent_id in (None, id) else parent_id
        return Turn(id, native=native, parent=parent, parent_id=label, nested=True)

    # Turns

    @property
    def turn_id(self) -> str:
        """The turn of this invoke."""
        return self._root.id

    @property
    def thread_id(self) -> str:
        """The conversation."""
        return self._thread_id

    def is_open(self, turn_id: str | None = None) -> bool:
        """Tell whether a turn can still take content: no terminal has closed it, opened or not.

        Args:
            turn_id: the turn; absent: that of the invoke. A turn never heard of is as open as the invoke's.
        """
        turn = self._root if turn_id is None else self._turns.get(turn_id, self._root)
        return turn.closed is None and not self._flushed

    def turn_start(
        self, turn_id: str | None = None, *, trigger: AgTrigger | None = None, **envelope: Unpack[Envelope]
    ) -> str:
        """Open a top-level turn: normally that of the invoke, which any other event opens as well (spec §4, INV-TURN).

        For a turn that is open already the event is repeated only if it adds something.

        Args:
            turn_id: the turn; absent: that of the invoke.
            trigger: what set it off; absent: what the constructor was given.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The turn's id as emitted: ``<id>#2`` where a closed turn or the thread has it already.
        """
        turn = self._turns.get(turn_id) if turn_id else self._root
        if turn is None or (turn.closed is not None and turn is not self._root):
            if turn_id and self._root.closed is None and not self._flushed:
                turn = Turn(self._renamed(turn_id, self._turns), native=turn_id)
            else:
                turn = self._ready(self._root)
        if not turn.opened and not turn.nested:
            if trigger is not None:
                check_members(TurnStart(seq=self._seq, turn_id=turn.id, thread_id=self._thread_id, trigger=trigger))
            turn.trigger = trigger or turn.trigger
            self._open(turn, **envelope)
        elif trigger is not None or envelope or turn.closed is not None:
            event = TurnStart(seq=self._seq, turn_id=turn.id, thread_id=self._thread_id, trigger=trigger, **envelope)
            if turn.closed is not None:
                self._refuse_closed(event, turn)
            elif turn.nested:
                self._refuse(event, turn, "nested_turn", f"turn {turn.id} is nested: subagent.start opens it")
            else:
                self._put(event)
        return turn.id

    def _close(self, turn: Turn, make: Callable[[int], AgEvent]) -> None:
        """Close a turn; turns nested in it that are still open are aborted first, the innermost first."""
        for child in reversed(list(self._open_turns.values())):
            if child.is_within(turn):
                self._close_one(child, self._abort_of(child, "parent-closed"))
        self._close_one(turn, make)

    def _abort_of(self, turn: Turn, reason: str) -> Callable[[int], AgEvent]:
        return lambda seq: TurnAbort(seq=seq, turn_id=turn.id, reason=reason)

    def _close_one(self, turn: Turn, make: Callable[[int], AgEvent]) -> None:
        for message in list(self._open_messages.values()):
            if message.turn is turn:
                self._seal(message)
        event = make(self._seq)
        self._put(event)
        turn.closed = event.type
        self._open_turns.pop(turn.id, None)
        if self._current is turn:
            parent = turn.parent
            while parent is not None and parent.closed is not None:
                parent = parent.parent
            self._current = parent or next(reversed(self._open_turns.values()), self._root)
        if turn.parent_id is not None and not self._flushed:
            self._put(SubagentDone(seq=self._seq, turn_id=turn.id, parent_turn_id=turn.parent_id))

    def flush(self) -> None:
        """End the stream (spec §5.0 INV-FLUSH): each open message ends, each open turn is aborted as truncated.

        Messages end in the order in which they were started, turns are aborted the innermost first. Nothing else is
        emitted: open blocks stay without an end, and a held half character is dropped. A second call does nothing. What
        comes later is refused visibly.
        """
        if self._flushed:
            return
        self._flushed = True
        self._holding.clear()
        for message in list(self._open_messages.values()):
            self._seal(message)
        for turn in reversed(list(self._open_turns.values())):
            self._close_one(turn, self._abort_of(turn, TRUNCATED))

    # Sealing

    def _before_seal(self, message: Message) -> None:
        """What must come before a message is sealed in the ordinary course of things."""

    def _seal(self, message: Message, usage: AgUsage | None = None, **own: Unpack[OwnId]) -> None:
        for block in [block for block in self._holding if block.message is message]:
            self._release(block)
        turn = message.turn
        self._put(MessageEnd(seq=self._seq, id=message.id, usage=usage, turn_id=turn.id, **own))
        self._forget(message)

    def _release(self, block: Block) -> None:
        """Emit the half character that a block holds as U+FFFD: its other half never came."""
        raise NotImplementedError

    def _forget(self, message: Message) -> None:
        """Let nothing more go to a message."""
        message.open = False
        self._open_messages.pop(message.id, None)
        for block in message.blocks:
            block.seal()
        pointers = message.turn.pointers
        if pointers.get(message.candidate) is message:
            del pointers[message.candidate]
