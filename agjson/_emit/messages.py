"""Messages of the emitter (spec §5 message.*, message partitioning, INV-MSG)."""

from __future__ import annotations

from typing import Unpack

from msgspec.structs import replace

from agjson._emit.base import EmitterBase
from agjson._emit.state import Message, OfMessage, OwnId, Turn
from agjson._members import check_members
from agjson.types import (
    AgMeta,
    AgNoticeSource,
    AgRole,
    AgUsage,
    MessageEnd,
    MessageMetadata,
    MessageRemove,
    MessageStart,
    Number,
)

__all__ = ["EmitterMessages"]


class EmitterMessages(EmitterBase):
    """Messages."""

    def open_message(self, turn_id: str | None = None, *, candidate_index: Number = 0) -> str | None:
        """The id of the message that a new block would go to, or None if it would open one.

        Args:
            turn_id: the turn; absent: the current one.
            candidate_index: which candidate.
        """
        turn = self._current if turn_id is None else self._turns.get(turn_id)
        message = None if turn is None else turn.pointers.get(candidate_index)
        return None if message is None else message.id

    def has_message(self, id: str) -> bool:
        """Tell whether this invoke has a message, open, sealed or made by a result, that was not removed.

        Args:
            id: the message, by native or emitted id.
        """
        message = self._messages.get(id)
        return message is not None and not message.removed

    def message_start(
        self,
        id: str | None = None,
        *,
        role: AgRole = "assistant",
        turn_id: str | None = None,
        step_id: str | None = None,
        extensions: list[str] | None = None,
        candidate_index: Number | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
        agent_role: str | None = None,
        model: str | None = None,
        notice_source: AgNoticeSource | None = None,
        **own: Unpack[OwnId],
    ) -> str:
        """Open a message; new blocks of its turn and candidate go to it from now on (spec §4, §5 partitioning).

        An earlier message of the turn that is still open stays open for deltas of its blocks.

        Args:
            id: the native id; absent: one is derived.
            role: who speaks.
            turn_id: the turn; absent: the current one.
            step_id: the step that it belongs to.
            extensions: URIs of active A2A extensions.
            candidate_index: which candidate; absent is 0.
            agent_id: the agent that speaks.
            agent_name: its name for people.
            agent_role: its part in the pipeline.
            model: the model that writes it.
            notice_source: who wrote a ``notice``.
            **own: ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The message's id as emitted: ``<id>#2`` where a message has it already. The native id stays usable in later
            calls and leads to this message.
        """
        turn = self._owner(turn_id)
        start = MessageStart(
            seq=self._seq,
            id=id or "",
            role=role,
            turn_id=turn.id,
            thread_id=self._thread_id,
            step_id=step_id,
            extensions=extensions,
            candidate_index=candidate_index,
            agent_id=agent_id,
            agent_name=agent_name,
            agent_role=agent_role,
            model=model,
            notice_source=notice_source,
            **own,
        )
        if turn.closed is not None:
            self._refuse_closed(start, turn)
            return id or ""
        return self._start(turn, start, id).id

    def _start(self, turn: Turn, start: MessageStart, native: str | None) -> Message:
        id = self._renamed(native, self._messages) if native else self._derived(turn, "message")
        start = replace(start, seq=self._seq, id=id, turn_id=turn.id)
        if native and id != native:
            start = replace(start, meta={**(start.meta or {}), "agjson/nativeMessageId": native})
        message = Message(id, turn, start, native=native)
        self._put(start)
        self._messages[id] = self._open_messages[id] = turn.pointers[message.candidate] = message
        if native:
            self._messages[native] = message
        self._used.add(id)
        turn.messages.append(message)
        return message

    def _home(self, turn: Turn, message_id: str | None, candidate: Number | None) -> Message:
        """The message that a new block of an open turn goes to; one is started where none is there to take it.

        A block goes to the message started last in its turn and candidate, and to no other (spec §5 partitioning). One
        that names an older or a sealed message therefore goes to a new message, its continuation.
        """
        named = self._messages.get(message_id) if message_id else None
        pointer = turn.pointers.get(named.candidate if named is not None and candidate is None else candidate or 0)
        if pointer is not None and (not message_id or pointer is named):
            return pointer
        if named is not None and named.start is not None:
            index = named.start.candidate_index if candidate is None else candidate
            return self._start(turn, replace(named.start, candidate_index=index), message_id)
        start = MessageStart(
            seq=self._seq,
            id="",
            role="assistant" if named is None else named.role,
            turn_id=turn.id,
            thread_id=self._thread_id,
            candidate_index=candidate,
        )
        return self._start(turn, start, message_id)

    def message_end(
        self,
        id: str | None = None,
        *,
        usage: AgUsage | None = None,
        turn_id: str | None = None,
        **own: Unpack[OwnId],
    ) -> None:
        """Seal a message: it takes no more blocks and deltas (spec §4, INV-MSG).

        Before it, its open text and reasoning blocks end, and calls that lack their assembled arguments get them.

        For a message that is sealed already, or not there, nothing is emitted, unless the call carries usage or
        metadata: then these are refused visibly.

        Args:
            id: the message, by native or emitted id; absent: that which new blocks of candidate 0 go to.
            usage: its tokens, verbatim.
            turn_id: the turn, for the message without id; absent: the current one.
            **own: ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._turns.get(turn_id, self._current) if turn_id else self._current
        message = turn.pointers.get(0) if id is None else self._messages.get(id)
        if message is not None and message.open:
            check_members(MessageEnd(seq=self._seq, id=message.id, usage=usage, **own))
            self._before_seal(message)
            self._seal(message, usage, **own)
        elif usage is not None or own.get("meta") is not None:
            owner = self._ready(turn) if message is None else message.turn
            event = MessageEnd(seq=self._seq, id=id or "", usage=usage, **own)
            self._refuse(event, owner, "message_sealed", f"message.end for message {id}, which is not open")

    def message_remove(self, id: str, *, turn_id: str | None = None, **own: Unpack[OwnId]) -> None:
        """Delete a message and its blocks, or with ``"*"`` every message of a turn (spec §4, §5 message.remove).

        An open message ends first. A later block opens a new message, and a later delta a new block.

        Args:
            id: the message, by native or emitted id, or ``"*"``; an id never heard of is passed on.
            turn_id: the turn, for ``"*"``; absent: the current one. One of the thread is passed on.
            **own: ``message_id``, ``parent_id``, ``meta``.
        """
        if id == "*":
            foreign = bool(turn_id) and turn_id not in self._turns
            name = turn_id if foreign else self._owner(turn_id).id
            gone = [message for owner, message in self._restored_messages if owner == name]
            if not foreign:
                gone += self._owner(turn_id).messages
            emitted = id
            if foreign:
                # Which of the thread's messages these are is not known here.
                self._known_messages = frozenset[str]()
        else:
            message = self._messages.get(id)
            name = self._owner(turn_id).id if message is None else message.turn.id
            if message is None and id in self._known_messages:
                self._known_messages = self._known_messages - {id}
            gone = [] if message is None else [message]
            emitted = id if message is None else message.id
        for each in gone:
            if each.open:
                self._seal(each)
        self._put(MessageRemove(seq=self._seq, id=emitted, turn_id=name, **own))
        for each in gone:
            each.removed = True
            self._forget(each)

    def message_metadata(
        self,
        metadata: AgMeta,
        *,
        message_id: str | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[OfMessage],
    ) -> None:
        """Merge metadata into a message, open or sealed (spec §4, §5 message.metadata).

        Args:
            metadata: the keys to merge.
            message_id: the message, by native or emitted id, or one of the thread; absent: the open message of the
                turn's first candidate, else the turn's last message. With none of these it is refused visibly.
            turn_id: the turn; absent: that of the message, else the current one.
            **envelope: ``id``, ``parent_id``, ``meta``.
        """
        turn = self._owner_beside(turn_id, message_id)
        target = self._metadata_target(turn, message_id)
        event = MessageMetadata(seq=self._seq, metadata=metadata, message_id=target, turn_id=turn.id, **envelope)
        if target is None:
            self._refuse(
                event, turn, "unknown_message", f"message.metadata for message {message_id}, which is not there"
            )
        else:
            self._put(event)

    def _metadata_target(self, turn: Turn, message_id: str | None) -> str | None:
        """The emitted id of a message that takes metadata."""
        if message_id is not None:
            message = self._messages.get(message_id)
            if message is None:
                return message_id if message_id in self._known_messages else None
            return None if message.removed or message.turn is not turn else message.id
        message = turn.pointers.get(0)
        if message is None:
            left = [message for message in turn.messages if not message.removed]
            message = left[-1] if left else None
        return None if message is None else message.id
