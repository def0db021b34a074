"""Whole blocks of the emitter, of every kind (spec §5 content.block, §5.0 INV-DELTA)."""

from __future__ import annotations

from typing import Unpack

from msgspec.structs import replace

from agjson._emit.reasoning import without_empty_opaque
from agjson._emit.results import KEPT, EmitterResults, agreeing
from agjson._emit.state import Call, Message, OfMessage, Turn
from agjson.types import (
    UNSET,
    AgBlock,
    ContentBlock,
    DataBlock,
    Number,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["EmitterBlocks"]


class EmitterBlocks(EmitterResults):
    """Blocks delivered whole, at once or in the way that suits them."""

    def content_block(
        self,
        block: AgBlock,
        *,
        transient: bool | None = None,
        candidate_index: Number | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        as_emitted: bool = False,
        **envelope: Unpack[OfMessage],
    ) -> None:
        """Emit a whole block at once (spec §5 content.block). For text, reasoning and tools prefer `Emitter.block`.

        A tool call in it gets an id of its own, as `Emitter.tool_start` gives it.

        Args:
            block: the block.
            transient: shown now, never stored; such a block opens no message.
            candidate_index: which candidate; absent is 0.
            turn_id: as for `text_start`.
            message_id: as for `text_start`.
            as_emitted: a result in it names a call of an earlier invoke by its emitted id, as for `tool_done`.
            **envelope: ``id``, ``parent_id``, ``meta``.
        """
        turn = self._owner(turn_id, message_id)
        event = ContentBlock(
            seq=self._seq,
            block=without_empty_opaque(block),
            transient=transient,
            candidate_index=candidate_index,
            turn_id=turn.id,
            message_id=message_id,
            **envelope,
        )
        if turn.closed is not None:
            self._refuse_closed(event, turn)
        elif transient or (isinstance(block, DataBlock) and block.transient):
            named = self._messages.get(message_id or "")
            event = replace(event, message_id=None if named is None else named.id)
            self._put_block(event, turn, None, as_emitted=as_emitted)
        else:
            message = self._home(turn, message_id, candidate_index)
            index = message.candidate or candidate_index
            event = replace(event, message_id=message.id, candidate_index=index)
            self._put_block(event, turn, message, as_emitted=as_emitted)

    def _put_block(self, event: ContentBlock, turn: Turn, message: Message | None, *, as_emitted: bool) -> None:
        """Emit a block that goes to a message, or nowhere when it is transient."""
        block = event.block
        call = None
        if isinstance(block, ToolCallBlock) and message is not None:
            native = block.tool_call_id
            id, metadata = self._call_name(native, turn, block.provider_metadata)
            event = replace(event, block=replace(block, tool_call_id=id, provider_metadata=metadata))
            call = Call(id, message)
        elif isinstance(block, ToolResultBlock):
            event = replace(event, block=self._result_block(block, turn, event.message_id, as_emitted=as_emitted))
        self._put(replace(event, seq=self._seq))
        if call is not None and isinstance(block, ToolCallBlock):
            call.assembled = True
            self._enter_call(call, block.tool_call_id)

    def _result_block(
        self, block: ToolResultBlock, turn: Turn, message_id: str | None, *, as_emitted: bool
    ) -> ToolResultBlock:
        # A call that came with this invoke is meant first, whatever it is named by: it may have been renamed just now.
        call = self._calls.get(block.tool_call_id)
        id = self._call_ref(block.tool_call_id, as_emitted=as_emitted) if call is None else call.id
        if id is None:
            call = self._announce(block.tool_call_id, None, turn, message_id)
            id = call.id
        if call is not None and not call.assembled and not call.message.removed:
            self._assemble(call)
        names = (*KEPT, "error_text", "pending_input", "is_error", "meta")
        fields = agreeing({name: getattr(block, name) for name in names}, partial=False)
        return replace(block, tool_call_id=id, preliminary=None, **fields)

    def block(
        self,
        block: AgBlock,
        *,
        id: str | None = None,
        candidate_index: Number | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
    ) -> None:
        """Emit a whole block in the way that suits it (spec §5.0 INV-DELTA): streamed where events can say all of it.

        Text and reasoning go out as start, delta and end, a tool call as start and assembled arguments. What these
        events cannot carry (annotations, ``providerDetails``, a call's ``provider``), and every other kind, is one
        `content_block`.

        Args:
            block: the block.
            id: a native id for a text or reasoning block; absent: one is derived.
            candidate_index: which candidate; absent is 0.
            turn_id: as for `text_start`.
            message_id: as for `text_start`.
        """
        if isinstance(block, TextBlock) and block.annotations is None:
            self.text(
                block.text,
                id=id,
                citations=block.citations,
                provider_metadata=block.provider_metadata,
                meta=block.meta,
                candidate_index=candidate_index,
                turn_id=turn_id,
                message_id=message_id,
            )
        elif isinstance(block, ReasoningBlock) and block.annotations is None and block.provider_details is UNSET:
            self.reasoning(
                block.text,
                id=id,
                opaque=block.opaque,
                provider=block.provider,
                item_id=block.item_id,
                provider_metadata=block.provider_metadata,
                meta=block.meta,
                candidate_index=candidate_index,
                turn_id=turn_id,
                message_id=message_id,
            )
        elif isinstance(block, ToolCallBlock) and _is_streamable(block):
            self.tool_call(
                block.tool_call_id,
                block.name,
                block.input,
                server_name=block.server_name,
                provider_executed=block.provider_executed,
                title=block.title,
                signature=block.signature,
                tool_metadata=block.tool_metadata,
                ui_visibility=block.ui_visibility,
                item_id=block.item_id,
                provider_metadata=block.provider_metadata,
                candidate_index=candidate_index,
                turn_id=turn_id,
                message_id=message_id,
            )
        else:
            self.content_block(block, candidate_index=candidate_index, turn_id=turn_id, message_id=message_id)


def _is_streamable(block: ToolCallBlock) -> bool:
    return (
        block.annotations is None
        and block.meta is None
        and block.provider is None
        and block.provider_call_index is None
    )
