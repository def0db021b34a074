"""Text of the emitter, and what it shares with reasoning and arguments (spec §5 text.*, INV-BLOCK, INV-DELTA)."""

from __future__ import annotations

from typing import Literal, Unpack

from msgspec.structs import replace

from agjson._emit.base import Gate
from agjson._emit.messages import EmitterMessages
from agjson._emit.settings import EmitterSettings
from agjson._emit.state import Block, Call, Message, OfBlock, Turn
from agjson._halves import join_halves, whole_characters
from agjson._members import require_text
from agjson.types import (
    AgCitation,
    AgMeta,
    AgProviderMeta,
    ListOf,
    Number,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsDelta,
)

__all__ = ["EmitterText"]


class EmitterText(EmitterMessages):
    """Text blocks."""

    def __init__(self, turn_id: str, thread_id: str, settings: EmitterSettings, gate: Gate | None) -> None:
        super().__init__(turn_id, thread_id, settings, gate)
        self._texts: dict[str, Block] = {}
        self._reasonings: dict[str, Block] = {}

    # What text, reasoning and arguments share

    def _start_block(
        self, table: dict[str, Block], kind: str, turn: Turn, start: TextStart | ReasoningStart, native: str | None
    ) -> Block | None:
        """Open a block under a free id; None if its turn is closed."""
        if turn.closed is not None:
            self._refuse_closed(start, turn)
            return None
        message = self._home(turn, start.message_id, start.candidate_index)
        id = self._renamed(native, self._block_ids) if native else self._derived(turn, kind)
        index = message.candidate or start.candidate_index
        self._put(replace(start, seq=self._seq, id=id, message_id=message.id, candidate_index=index))
        block = Block(id, message, is_text=kind == "text")
        table[id] = block
        if native:
            table[native] = block
        self._block_ids.add(id)
        self._used.add(id)
        message.blocks.append(block)
        return block

    def _care(self, block: Block, delta: str, part: Number | None) -> str:
        """The part of a delta that may go out now; notes what the next delta of the block needs."""
        if block.prior is not None:
            block.prior[part or 0] = block.prior.get(part or 0, "") + delta
        if block.held and block.held_part != part:
            self._release(block)
        if block.held or not (delta.isascii() or whole_characters(delta)):
            self._holding.pop(block, None)
            delta, block.held = join_halves(block.held + delta)
            if block.held:
                block.held_part = part
                self._holding[block] = None
        block.fed = True
        block.fast = block.live and not block.held and block.prior is None
        return delta

    def _release(self, block: Block) -> None:
        block.held = ""
        self._holding.pop(block, None)
        turn_id, message_id, lost = block.turn_id, block.message_id, "\ufffd"
        if isinstance(block, Call):
            self._put(
                ToolArgsDelta(seq=self._seq, tool_call_id=block.id, delta=lost, turn_id=turn_id, message_id=message_id)
            )
        elif block.is_text:
            self._put(TextDelta(seq=self._seq, id=block.id, delta=lost, turn_id=turn_id, message_id=message_id))
        else:
            self._put(
                ReasoningDelta(
                    seq=self._seq,
                    id=block.id,
                    delta=lost,
                    turn_id=turn_id,
                    message_id=message_id,
                    part_index=block.held_part,
                )
            )

    def _increment(self, block: Block | None, text: str, part: Number | None = None) -> tuple[str, bool]:
        """De-cumulate: what the text adds to what came before, and whether it contradicts that (spec §5.0 INV-DELTA).

        A contradiction is reported as an `error`, and the increment is then the whole text.
        """
        if block is None:
            return text, False
        if block.prior is None and not block.fed:
            block.prior = {}
        prior = None if block.prior is None else block.prior.get(part or 0, "")
        if prior is not None and text.startswith(prior):
            return text[len(prior) :], False
        if prior is not None and prior.startswith(text):
            lengths = f"from {len(prior)} to {len(text)} characters"
            self._report(
                block.message.turn,
                "cumulative_shrunk",
                f"the text of {block.id} shrank {lengths}; the longer one stays",
            )
            return "", False
        self._report(
            block.message.turn,
            "cumulative_mismatch",
            f"the text of {block.id} does not continue what came before; it follows whole",
        )
        return text, True

    def _end_block(self, block: Block | None, event: TextEnd | ReasoningEnd, *, says_more: bool) -> None:
        if block is not None and not block.ended and not block.message.removed and not self._flushed:
            if block.held:
                self._release(block)
            turn_id, message_id = block.turn_id, block.message_id
            self._put(replace(event, seq=self._seq, id=block.id, turn_id=turn_id, message_id=message_id))
            block.ended = True
            block.seal()
        elif says_more or event.meta is not None:
            turn = self._owner(None) if block is None else block.message.turn
            self._refuse(event, turn, "block_ended", f"{event.type} for block {event.id}, which is not open")

    def _before_seal(self, message: Message) -> None:
        for block in message.blocks:
            if block.is_text and block.live:
                self._end_block(block, TextEnd(seq=self._seq, id=block.id), says_more=False)

    def _turn_of(self, block: Block | None, turn_id: str | None = None, message_id: str | None = None) -> Turn:
        return self._owner(turn_id, message_id) if block is None else block.message.turn

    # Text

    def text_start(
        self,
        id: str | None = None,
        *,
        role: Literal["assistant"] | None = None,
        index: Number | None = None,
        previous_part_kind: str | None = None,
        provider_metadata: AgProviderMeta | None = None,
        candidate_index: Number | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        **own: Unpack[OfBlock],
    ) -> str:
        """Open a text block; a message is started where none is open to take it (spec §5 text.start).

        Args:
            id: the native id; absent: one is derived.
            role: ``assistant`` or absent.
            index: the provider's position of the block, from 0.
            previous_part_kind: the kind of the part before.
            provider_metadata: values that go back to the provider.
            candidate_index: which candidate; absent is 0.
            turn_id: the turn; absent: that of the message, else the current one.
            message_id: the message, by native or emitted id; absent: the open one. A message that can take no block any
                more, or was never started, makes a new message.
            **own: ``parent_id``, ``meta``.

        Returns:
            The block's id as emitted: ``<id>#2`` where a block has it already. The native id stays usable in later
            calls and leads to this block.
        """
        turn = self._owner(turn_id, message_id)
        start = TextStart(
            seq=self._seq,
            id=id or "",
            role=role,
            turn_id=turn.id,
            message_id=message_id,
            index=index,
            previous_part_kind=previous_part_kind,
            provider_metadata=provider_metadata,
            candidate_index=candidate_index,
            **own,
        )
        block = self._start_block(self._texts, "text", turn, start, id)
        return id or "" if block is None else block.id

    def text_delta(
        self,
        id: str,
        delta: str,
        *,
        provider_metadata: AgProviderMeta | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        parent_id: str | None = None,
        meta: AgMeta | None = None,
    ) -> None:
        """Add to a text block (spec §5 text.delta).

        An empty delta without metadata emits nothing. A first half of a split character waits for the next delta. A
        block never started is started; one that takes nothing more is continued in a new block ``<id>#2``.

        Args:
            id: the block, by native or emitted id.
            delta: the increment.
            provider_metadata: values that go back to the provider.
            turn_id: the turn of a block never started, as for `text_start`.
            message_id: the message of a block never started, as for `text_start`.
            parent_id: the entity that encloses it.
            meta: host-only metadata.
        """
        block = self._texts.get(id)
        if (
            block is not None
            and block.fast
            and delta.__class__ is str
            and delta
            and (delta.isascii() or whole_characters(delta))
            and provider_metadata is None
            and meta is None
            and parent_id is None
        ):
            self._out.append(
                TextDelta(seq=self._seq, id=block.id, delta=delta, turn_id=block.turn_id, message_id=block.message_id)
            )
            self._seq += 1
            return
        require_text(delta, "text.delta")
        if not delta and provider_metadata is None and meta is None:
            return
        block = self._open_text(id, block, turn_id, message_id)
        if block is None:
            stray = self._texts.get(id)
            event = TextDelta(
                seq=self._seq, id=id, delta=delta, provider_metadata=provider_metadata, parent_id=parent_id, meta=meta
            )
            self._refuse_closed(event, self._turn_of(stray, turn_id, message_id))
            return
        delta = self._care(block, delta, None)
        if delta or provider_metadata is not None or meta is not None:
            self._put(
                TextDelta(
                    seq=self._seq,
                    id=block.id,
                    delta=delta,
                    turn_id=block.turn_id,
                    message_id=block.message_id,
                    provider_metadata=provider_metadata,
                    parent_id=parent_id,
                    meta=meta,
                )
            )

    def _open_text(self, id: str, block: Block | None, turn_id: str | None, message_id: str | None) -> Block | None:
        """The block if it is live, else a new one under the same native id; None if its turn is closed."""
        if block is not None and block.live:
            return block
        turn = self._turn_of(block, turn_id, message_id)
        if turn.closed is not None:
            return None
        start = TextStart(seq=self._seq, id=id, message_id=message_id)
        fresh = self._continued(self._texts, "text", start, block, turn)
        if block is not None and block.prior is not None:
            fresh.prior = dict(block.prior)
        return fresh

    def _continued(
        self, table: dict[str, Block], kind: str, start: TextStart | ReasoningStart, block: Block | None, turn: Turn
    ) -> Block:
        """A new block under the native id of the start, in the message of an earlier one or its continuation."""
        message_id = start.message_id if block is None else block.message_id
        fresh = self._start_block(table, kind, turn, replace(start, turn_id=turn.id, message_id=message_id), start.id)
        assert fresh is not None
        return fresh

    def text_cumulative(self, id: str, text: str, *, provider_metadata: AgProviderMeta | None = None) -> None:
        """Add to a text block of a stream that repeats the whole text so far each time (spec §5.0 INV-DELTA).

        The increment over the text before is emitted; nothing for the same text, also after the block has ended. A text
        that only lost its end keeps the longer one and emits an `error` (``cumulative_shrunk``). One that differs
        earlier ends the block, and an `error` (``cumulative_mismatch``) and a new block ``<id>#2`` with the whole text
        follow. So does the first whole text after `text_delta`, which remembers nothing.

        Args:
            id: the block, by native or emitted id.
            text: the whole text so far.
            provider_metadata: values that go back to the provider, with the increment.
        """
        require_text(text, "text.delta")
        block = self._texts.get(id)
        increment, anew = self._increment(block, text)
        if not increment and provider_metadata is None:
            return
        turn = self._turn_of(block)
        if (block is None or anew) and turn.closed is None:
            self.text_end(id)
            self._continued(self._texts, "text", TextStart(seq=self._seq, id=id), block, turn).prior = {}
        self.text_delta(id, increment, provider_metadata=provider_metadata)

    def text_end(
        self,
        id: str,
        *,
        provider_metadata: AgProviderMeta | None = None,
        citations: ListOf[AgCitation] | None = None,
        **own: Unpack[OfBlock],
    ) -> None:
        """Seal a text block, with the citations of its text (spec §5 text.end).

        A block that has ended already, or was never started, emits nothing, unless the call carries metadata or
        citations: then these are refused visibly.

        Args:
            id: the block, by native or emitted id.
            provider_metadata: values that go back to the provider.
            citations: which sources support the text.
            **own: ``parent_id``, ``meta``.
        """
        block = self._texts.get(id)
        event = TextEnd(seq=self._seq, id=id, provider_metadata=provider_metadata, citations=citations, **own)
        self._end_block(block, event, says_more=provider_metadata is not None or citations is not None)

    def text(
        self,
        text: str,
        *,
        id: str | None = None,
        citations: ListOf[AgCitation] | None = None,
        provider_metadata: AgProviderMeta | None = None,
        candidate_index: Number | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        **own: Unpack[OfBlock],
    ) -> str:
        """Emit a whole text as start, delta and end (spec §5.0 INV-DELTA).

        Args:
            text: the text.
            id: the native id; absent: one is derived.
            citations: which sources support it.
            provider_metadata: values that go back to the provider.
            candidate_index: which candidate; absent is 0.
            turn_id: as for `text_start`.
            message_id: as for `text_start`.
            **own: ``parent_id``, ``meta``; they ride on the start.

        Returns:
            The block's id as emitted.
        """
        require_text(text, "text.delta")
        turn = self._owner(turn_id, message_id)
        start = TextStart(
            seq=self._seq,
            id=id or "",
            turn_id=turn.id,
            message_id=message_id,
            provider_metadata=provider_metadata,
            candidate_index=candidate_index,
            **own,
        )
        block = self._start_block(self._texts, "text", turn, start, id)
        if block is None:
            self._refuse_closed(TextDelta(seq=self._seq, id=id or "", delta=text), turn)
            return id or ""
        self.text_delta(block.id, text)
        self.text_end(block.id, citations=citations)
        return block.id
