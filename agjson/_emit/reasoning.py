"""Reasoning of the emitter (spec §5 reasoning.*, §8 item 9)."""

from __future__ import annotations

from typing import Unpack

from msgspec.structs import replace

from agjson._emit.state import Block, Call, Message, OfBlock, Turn
from agjson._emit.text import EmitterText
from agjson._members import check_members, require_text
from agjson.types import (
    AgBlock,
    AgMeta,
    AgOpaque,
    AgOpaqueKind,
    AgProviderMeta,
    AgReasoningMode,
    CompactionBlock,
    ContentBlock,
    Number,
    ReasoningBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    SearchResultBlock,
    ToolCallBlock,
)

__all__ = ["EmitterReasoning", "without_empty_opaque"]


class EmitterReasoning(EmitterText):
    """Reasoning blocks."""

    def reasoning_start(
        self,
        id: str | None = None,
        *,
        mode: AgReasoningMode | None = None,
        part_index: Number | None = None,
        previous_part_kind: str | None = None,
        provider_metadata: AgProviderMeta | None = None,
        item_id: str | None = None,
        candidate_index: Number | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        **own: Unpack[OfBlock],
    ) -> str:
        """Open a reasoning block, or a new summary part of an open one (spec §5 reasoning.start).

        Args:
            id: the native id; absent: one is derived.
            mode: summary or whole.
            part_index: the summary part, from 0. A part that a block of this id does not have yet is opened in that
                block as long as its message is open.
            previous_part_kind: the kind of the part before.
            provider_metadata: values that go back to the provider.
            item_id: the OpenAI Responses reasoning item.
            candidate_index: which candidate; absent is 0.
            turn_id: as for `text_start`.
            message_id: as for `text_start`.
            **own: ``parent_id``, ``meta``.

        Returns:
            The block's id as emitted, as `text_start` gives it.
        """
        block = None if id is None or part_index is None else self._reasonings.get(id)
        turn = self._owner(turn_id, message_id) if block is None else block.message.turn
        start = ReasoningStart(
            seq=self._seq,
            id=id or "",
            mode=mode,
            part_index=part_index,
            turn_id=turn.id,
            message_id=message_id,
            previous_part_kind=previous_part_kind,
            provider_metadata=provider_metadata,
            item_id=item_id,
            candidate_index=candidate_index,
            **own,
        )
        block = self._start_reasoning(start, block, turn, id)
        return id or "" if block is None else block.id

    def _start_reasoning(
        self, start: ReasoningStart, block: Block | None, turn: Turn, native: str | None
    ) -> Block | None:
        """Open a part in the block if it can take the part, else a block."""
        part = start.part_index
        if block is not None and block.message.open and part not in block.parts:
            index = block.message.candidate or None
            self._put(replace(start, seq=self._seq, id=block.id, message_id=block.message_id, candidate_index=index))
            block.live = True
            block.ended = False
        else:
            block = self._start_block(self._reasonings, "reasoning", turn, start, native)
        if block is not None and part is not None:
            block.parts.add(part)
        return block

    def reasoning_delta(
        self,
        id: str,
        delta: str,
        *,
        part_index: Number | None = None,
        provider_metadata: AgProviderMeta | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        parent_id: str | None = None,
        meta: AgMeta | None = None,
    ) -> None:
        """Add to a reasoning block (spec §5 reasoning.delta); what `text_delta` says holds here too.

        Args:
            id: the block, by native or emitted id.
            delta: the increment.
            part_index: the summary part; one not started yet is started.
            provider_metadata: values that go back to the provider.
            turn_id: the turn of a block never started.
            message_id: the message of a block never started.
            parent_id: the entity that encloses it.
            meta: host-only metadata.
        """
        block = self._reasonings.get(id)
        if (
            block is not None
            and block.fast
            and delta.__class__ is str
            and delta
            and delta.isascii()
            and part_index is None
            and provider_metadata is None
            and meta is None
            and parent_id is None
        ):
            self._out.append(
                ReasoningDelta(
                    seq=self._seq, id=block.id, delta=delta, turn_id=block.turn_id, message_id=block.message_id
                )
            )
            self._seq += 1
            return
        require_text(delta, "reasoning.delta")
        if not delta and provider_metadata is None and meta is None:
            return
        block = self._open_reasoning(id, part_index, turn_id, message_id)
        if block is None:
            event = ReasoningDelta(
                seq=self._seq, id=id, delta=delta, part_index=part_index, provider_metadata=provider_metadata, meta=meta
            )
            self._refuse_closed(event, self._turn_of(self._reasonings.get(id), turn_id, message_id))
            return
        if not block.fast or not delta.isascii():
            delta = self._care(block, delta, part_index)
            if not delta and provider_metadata is None and meta is None:
                return
        self._put(
            ReasoningDelta(
                seq=self._seq,
                id=block.id,
                delta=delta,
                turn_id=block.turn_id,
                message_id=block.message_id,
                part_index=part_index,
                provider_metadata=provider_metadata,
                parent_id=parent_id,
                meta=meta,
            )
        )

    def _open_reasoning(
        self, id: str, part_index: Number | None, turn_id: str | None, message_id: str | None
    ) -> Block | None:
        """The block with the part open in it, a new one where it takes nothing more; None if its turn is closed."""
        block = self._reasonings.get(id)
        if block is not None and block.live and (part_index is None or part_index in block.parts):
            return block
        turn = self._turn_of(block, turn_id, message_id)
        if turn.closed is not None:
            return None
        start = ReasoningStart(seq=self._seq, id=id, part_index=part_index, turn_id=turn.id, message_id=message_id)
        if block is not None:
            start = replace(start, message_id=block.message_id)
        fresh = self._start_reasoning(start, None if part_index is None else block, turn, id)
        assert fresh is not None
        if block is not None and fresh is not block and block.prior is not None:
            fresh.prior = dict(block.prior)
        return fresh

    def reasoning_cumulative(self, id: str, text: str, *, part_index: Number | None = None) -> None:
        """Add to a reasoning block of a stream that repeats the whole text so far; as `text_cumulative`.

        Args:
            id: the block, by native or emitted id.
            text: the whole text so far, of the part if one is named.
            part_index: the summary part.
        """
        require_text(text, "reasoning.delta")
        block = self._reasonings.get(id)
        increment, anew = self._increment(block, text, part_index)
        if not increment:
            return
        turn = self._turn_of(block)
        if (block is None or anew) and turn.closed is None:
            self.reasoning_end(id)
            start = ReasoningStart(seq=self._seq, id=id, part_index=part_index)
            fresh = self._continued(self._reasonings, "reasoning", start, block, turn)
            fresh.prior = {}
            fresh.parts.update(() if part_index is None else (part_index,))
        self.reasoning_delta(id, increment, part_index=part_index)

    def reasoning_opaque_delta(
        self, id: str, delta: str, *, kind: AgOpaqueKind = "signature", provider: str | None = None
    ) -> None:
        """Take a fragment of an opaque value (spec §5 reasoning.opaque.delta, §8 item 9).

        Fragments are kept until `reasoning_opaque` or `reasoning_end` seals the value, and go out just before it: what
        is sealed may differ from their concatenation, and the two may not differ on the wire. Fragments of a block that
        is cut off are dropped, because half a signature is worse than none.

        Args:
            id: the block, by native or emitted id; one never started is started.
            delta: the increment.
            kind: what the value is, for an end that seals it.
            provider: the provider that issued it, for an end that seals it.
        """
        # It goes out later, where a wrong one would keep the block from being sealed.
        check_members(ReasoningOpaque(seq=self._seq, id=id, kind=kind, value=delta, provider=provider))
        block = self._reasonings.get(id)
        if block is None:
            turn = self._owner(None)
            if turn.closed is not None:
                event = ReasoningOpaqueDelta(seq=self._seq, id=id, delta=delta)
                self._refuse_closed(event, turn)
                return
            block = self._continued(self._reasonings, "reasoning", ReasoningStart(seq=self._seq, id=id), None, turn)
        block.signature.append(delta)
        block.opaque = (kind, provider)

    def reasoning_opaque(
        self,
        id: str,
        value: str | None = None,
        *,
        kind: AgOpaqueKind | None = None,
        provider: str | None = None,
        item_id: str | None = None,
        **own: Unpack[OfBlock],
    ) -> None:
        """Set the opaque value of a reasoning block, which may have ended (spec §5 reasoning.opaque, §13.2).

        An empty value is never emitted.

        Args:
            id: the block, by native or emitted id; one never started is started.
            value: the value, byte for byte; absent: the fragments of `reasoning_opaque_delta` joined.
            kind: what it is; absent: as the fragments said, else ``signature``.
            provider: the provider that issued it; absent: as the fragments said.
            item_id: the OpenAI Responses reasoning item.
            **own: ``parent_id``, ``meta``.
        """
        block = self._reasonings.get(id)
        told = ("signature", None) if block is None else block.opaque
        value = value or ("" if block is None else "".join(block.signature))
        if not value:
            return
        event = ReasoningOpaque(
            seq=self._seq,
            id=id,
            kind=kind or told[0],
            value=value,
            provider=provider or told[1],
            item_id=item_id,
            **own,
        )
        turn = self._turn_of(block)
        if block is None and turn.closed is None:
            block = self._continued(self._reasonings, "reasoning", ReasoningStart(seq=self._seq, id=id), None, turn)
        if block is None or block.message.removed or self._flushed:
            self._refuse(event, turn, "unknown_block", f"reasoning.opaque for block {id}, which is not there")
        else:
            self._seal_opaque(block, event)

    def _seal_opaque(self, block: Block, event: ReasoningOpaque) -> None:
        check_members(event)  # before the fragments, which need it after them
        turn_id, message_id = block.turn_id, block.message_id
        if event.value == "".join(block.signature) and block.message.open:
            for delta in block.signature:
                self._put(
                    ReasoningOpaqueDelta(
                        seq=self._seq, id=block.id, delta=delta, turn_id=turn_id, message_id=message_id
                    )
                )
        block.signature.clear()
        self._put(replace(event, seq=self._seq, id=block.id, turn_id=turn_id, message_id=message_id))

    def reasoning_end(
        self,
        id: str,
        *,
        provider: str | None = None,
        provider_metadata: AgProviderMeta | None = None,
        **own: Unpack[OfBlock],
    ) -> None:
        """Seal a reasoning block, and the opaque value whose fragments are still kept (spec §5 reasoning.end).

        A block that has ended already, or was never started, emits nothing, unless the call carries metadata or a
        provider: then these are refused visibly.

        Args:
            id: the block, by native or emitted id.
            provider: who produced it.
            provider_metadata: values that go back to the provider.
            **own: ``parent_id``, ``meta``.
        """
        block = self._reasonings.get(id)
        event = ReasoningEnd(seq=self._seq, id=id, provider=provider, provider_metadata=provider_metadata, **own)
        self._end_reasoning(block, event, says_more=provider is not None or provider_metadata is not None)

    def _end_reasoning(self, block: Block | None, event: ReasoningEnd, *, says_more: bool) -> None:
        if block is not None and block.live and any(block.signature):
            kind, provider = block.opaque
            value = "".join(block.signature)
            self._seal_opaque(
                block, ReasoningOpaque(seq=self._seq, id=block.id, kind=kind, value=value, provider=provider)
            )
        self._end_block(block, event, says_more=says_more)

    def _before_seal(self, message: Message) -> None:
        super()._before_seal(message)
        for block in message.blocks:
            if block.live and not block.is_text and not isinstance(block, Call):
                self._end_reasoning(block, ReasoningEnd(seq=self._seq, id=block.id), says_more=False)

    def reasoning(
        self,
        text: str | None = None,
        *,
        id: str | None = None,
        opaque: AgOpaque | None = None,
        mode: AgReasoningMode | None = None,
        provider: str | None = None,
        item_id: str | None = None,
        provider_metadata: AgProviderMeta | None = None,
        candidate_index: Number | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        **own: Unpack[OfBlock],
    ) -> str:
        """Emit a whole reasoning block as start, delta, opaque value and end (spec §5.0 INV-DELTA).

        Args:
            text: the visible text.
            id: the native id; absent: one is derived.
            opaque: the signature, ciphertext or redacted blob.
            mode: summary or whole.
            provider: who produced it.
            item_id: the OpenAI Responses reasoning item.
            provider_metadata: values that go back to the provider.
            candidate_index: which candidate; absent is 0.
            turn_id: as for `text_start`.
            message_id: as for `text_start`.
            **own: ``parent_id``, ``meta``; they ride on the start.

        Returns:
            The block's id as emitted.
        """
        whole = ReasoningBlock(text=text, opaque=opaque, provider=provider)
        check_members(ContentBlock(seq=self._seq, block=whole))
        turn = self._owner(turn_id, message_id)
        start = ReasoningStart(
            seq=self._seq,
            id=id or "",
            mode=mode,
            turn_id=turn.id,
            message_id=message_id,
            item_id=item_id,
            provider_metadata=provider_metadata,
            candidate_index=candidate_index,
            **own,
        )
        block = self._start_block(self._reasonings, "reasoning", turn, start, id)
        if block is None:
            self._refuse_closed(ContentBlock(seq=self._seq, block=whole), turn)
            return id or ""
        self.reasoning_delta(block.id, text or "")
        if opaque is not None:
            self.reasoning_opaque(block.id, opaque.value, kind=opaque.kind, provider=opaque.provider)
        self.reasoning_end(block.id, provider=provider)
        return block.id


def without_empty_opaque(block: AgBlock) -> AgBlock:
    """The block as a provider would take it back: an empty signature is none (spec §13.2)."""
    if isinstance(block, (ReasoningBlock, CompactionBlock, SearchResultBlock)):
        return replace(block, opaque=None) if block.opaque is not None and not block.opaque.value else block
    if isinstance(block, ToolCallBlock) and block.signature == "":
        return replace(block, signature=None)
    return block
