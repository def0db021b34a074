"""Messages and whole blocks (spec §5 message.*, content.block, INV-MSG, message partitioning)."""

from __future__ import annotations

from msgspec.structs import replace

from agjson.fold._entities import Message, Turn
from agjson.fold._state import Fold, Handlers, Park, quoted
from agjson.types import (
    AgMessage,
    ContentBlock,
    DataBlock,
    MessageEnd,
    MessageMetadata,
    MessageRemove,
    MessageStart,
)

__all__ = ["MESSAGE_HANDLERS"]


def _message_start(fold: Fold, event: MessageStart) -> None:
    old = fold.messages.items.get(event.id)
    if old is not None and fold.is_shut(old):
        raise Park("INV-MSG", f"message {quoted(event.id)} is already there and takes no more blocks")
    turn = fold.turns.get(event.turn_id)
    if turn is None:
        if fold.tolerant:
            turn = fold.open_turn(event, event.turn_id)
        else:
            # As after a snapshot that carried messages alone: the message names its own turn and thread.
            turn = fold.turns[event.turn_id] = Turn(event.turn_id, None)
    base = AgMessage(
        id=event.id,
        role=event.role,
        content=[],
        turn_id=event.turn_id,
        thread_id=event.thread_id,
        candidate_index=event.candidate_index,
        extensions=event.extensions,
        agent_id=event.agent_id,
        agent_name=event.agent_name,
        agent_role=event.agent_role,
        model=event.model,
        notice_source=event.notice_source,
    )
    if old is not None:
        fold.detach(old)
    fold.add_message(turn, Message(base, opened=True), opens=True)


def _message_end(fold: Fold, event: MessageEnd) -> None:
    message = fold.message(event.id)
    fold.end_blocks(message)
    message.sealed = True
    turn = fold.owner(message)
    if turn is not None:
        turn.seal(message)
    if event.usage is not None:
        message.base = replace(message.base, usage=event.usage)
        fold.touch(message)


def _message_remove(fold: Fold, event: MessageRemove) -> None:
    if event.id == "*":
        doomed = fold.messages_of(event.turn_id)
    else:
        found = fold.messages.items.get(event.id)
        doomed = [found] if found is not None else []
    for message in doomed:
        fold.detach(message)
        fold.messages.drop(message.base.id, message)


def _message_metadata(fold: Fold, event: MessageMetadata) -> None:
    if event.message_id is not None:
        message = fold.message(event.message_id)
    else:
        turn = fold.turn(event)
        open_message = turn.open_message()
        if open_message is None:
            raise Park("INV-OWNER", f"no message is open in turn {quoted(turn.turn_id)}")
        message = open_message
    message.base = replace(message.base, metadata={**(message.base.metadata or {}), **event.metadata})
    fold.touch(message)


def _content_block(fold: Fold, event: ContentBlock) -> None:
    block = event.block
    if event.transient:
        return
    if isinstance(block, DataBlock):
        if block.transient:
            return
        message = fold.target(event, event.candidate_index)
        place = message.data.get(block.id) if message.data is not None and block.id is not None else None
        if place is not None:
            message.put(place, block)
            fold.touch(message)
            return
    else:
        message = fold.target(event, event.candidate_index)
    fold.index_block(message, fold.add_block(message, block), block)


MESSAGE_HANDLERS: Handlers = {
    MessageStart: _message_start,
    MessageEnd: _message_end,
    MessageRemove: _message_remove,
    MessageMetadata: _message_metadata,
    ContentBlock: _content_block,
}
"""What the events of messages and whole blocks do to the fold."""
