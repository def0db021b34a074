"""Text and reasoning that arrive in pieces (spec §5 text.*, reasoning.*, INV-BLOCK, INV-DELTA)."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from agjson._halves import pair_halves
from agjson.fold._entities import Message
from agjson.fold._state import Fold, Handlers, Park, quoted
from agjson.fold._streams import ReasoningStream, TextStream
from agjson.types import (
    AgOpaque,
    AgProviderMeta,
    ReasoningBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
)

__all__ = ["BLOCK_HANDLERS", "merge_keys"]


def merge_keys(old: AgProviderMeta | None, new: AgProviderMeta) -> AgProviderMeta:
    """The metadata with the keys of a later event put over it; neither bag is changed (REPLACE-by-key, spec §5)."""
    return cast(AgProviderMeta, {**old, **new}) if old else new


def _text_start(fold: Fold, event: TextStart) -> None:
    message = _room_for(fold, event)
    block = TextBlock(text="", provider_metadata=event.provider_metadata, meta=event.meta)
    stream = TextStream(event.id, message, fold.add_block(message, block))
    _enter(fold, stream)


def _text_delta(fold: Fold, event: TextDelta) -> None:
    """The first delta after a result, or one with metadata; the others never reach this (`Reducer.push`)."""
    stream = fold.streams.get(event.id)
    if not isinstance(stream, TextStream) or not stream.open:
        raise _refused(event.id, stream, "text")
    append = fold.texts[event.id] = stream.pending.append
    append(event.delta)
    if event.provider_metadata is not None:
        block = stream.block
        stream.block = replace(block, provider_metadata=merge_keys(block.provider_metadata, event.provider_metadata))


def _text_end(fold: Fold, event: TextEnd) -> None:
    stream = fold.streams.get(event.id)
    if not isinstance(stream, TextStream):
        raise _refused(event.id, stream, "text")
    fold.end_stream(stream)
    changes: dict[str, Any] = {}
    if event.provider_metadata is not None:
        changes["provider_metadata"] = merge_keys(stream.block.provider_metadata, event.provider_metadata)
    if event.citations is not None:
        changes["citations"] = event.citations
    if changes:
        stream.block = replace(stream.block, **changes)
        fold.touch(stream.message)


def _reasoning_start(fold: Fold, event: ReasoningStart) -> None:
    old = fold.streams.get(event.id)
    if isinstance(old, ReasoningStream) and event.part_index is not None and not old.names(event.part_index):
        _open_part(fold, old, event, event.part_index)
        return
    message = _room_for(fold, event)
    block = ReasoningBlock(text="", provider_metadata=event.provider_metadata, item_id=event.item_id, meta=event.meta)
    stream = ReasoningStream(event.id, message, fold.add_block(message, block), event.part_index)
    _enter(fold, stream)


def _open_part(fold: Fold, stream: ReasoningStream, event: ReasoningStart, part_index: int | float) -> None:
    """A start with a known id and a new `partIndex` opens a part of the same block."""
    if fold.is_shut(stream.message):
        raise Park("INV-MSG", f"the message of block {quoted(event.id)} takes no more blocks")
    stream.open_part(part_index)
    stream.message.begin(stream)
    block = stream.block
    changes: dict[str, Any] = {}
    if event.item_id is not None:
        changes["item_id"] = event.item_id
    if event.provider_metadata is not None:
        changes["provider_metadata"] = merge_keys(block.provider_metadata, event.provider_metadata)
    if event.meta is not None:
        changes["meta"] = {**(block.meta or {}), **event.meta}
    if changes:
        stream.block = replace(block, **changes)
        fold.touch(stream.message)


def _reasoning_delta(fold: Fold, event: ReasoningDelta) -> None:
    stream = fold.streams.get(event.id)
    if not isinstance(stream, ReasoningStream) or not stream.open:
        raise _refused(event.id, stream, "reasoning")
    pending = stream.tail if event.part_index is None else stream.part(event.part_index)
    pending.append(event.delta)
    fold.thoughts[event.id] = stream
    if event.provider_metadata is not None:
        block = stream.block
        stream.block = replace(block, provider_metadata=merge_keys(block.provider_metadata, event.provider_metadata))


def _reasoning_end(fold: Fold, event: ReasoningEnd) -> None:
    stream = _reasoning(fold, event.id)
    fold.end_stream(stream)
    changes: dict[str, Any] = {}
    if event.provider is not None:
        changes["provider"] = event.provider
    if event.provider_metadata is not None:
        changes["provider_metadata"] = merge_keys(stream.block.provider_metadata, event.provider_metadata)
    if changes:
        stream.block = replace(stream.block, **changes)
        fold.touch(stream.message)


def _reasoning_opaque(fold: Fold, event: ReasoningOpaque) -> None:
    stream = _reasoning(fold, event.id)
    value = event.value or pair_halves("".join(stream.signature or ()))
    stream.signature = None
    opaque = AgOpaque(kind=event.kind, value=value, provider=event.provider)
    if event.item_id is not None:
        stream.block = replace(stream.block, opaque=opaque, item_id=event.item_id)
    else:
        stream.block = replace(stream.block, opaque=opaque)
    fold.touch(stream.message)


def _reasoning_opaque_delta(fold: Fold, event: ReasoningOpaqueDelta) -> None:
    stream = _reasoning(fold, event.id)
    if fold.is_shut(stream.message):
        raise Park("INV-MSG", f"the message of block {quoted(event.id)} takes no more deltas")
    if stream.signature is None:
        stream.signature = []
    stream.signature.append(event.delta)


def _reasoning(fold: Fold, id: str) -> ReasoningStream:
    stream = fold.streams.get(id)
    if not isinstance(stream, ReasoningStream):
        raise _refused(id, stream, "reasoning")
    return stream


def _room_for(fold: Fold, event: TextStart | ReasoningStart) -> Message:
    """The message for a new block, once it is sure that the block's id is free."""
    message = fold.target(event, event.candidate_index)
    old = fold.streams.get(event.id)
    if old is not None:
        if not fold.tolerant:
            raise Park("INV-BLOCK", f"there is already a block {quoted(event.id)}")
        fold.report(event, "INV-BLOCK", f"block {quoted(event.id)} was there already; opened another one")
        fold.end_stream(old)
    return message


def _enter(fold: Fold, stream: TextStream | ReasoningStream) -> None:
    fold.streams.give(stream.id, stream)
    stream.message.name_block(stream)
    stream.message.begin(stream)


def _refused(id: str, stream: TextStream | ReasoningStream | None, kind: str) -> Park:
    if stream is None:
        return Park("INV-OWNER", f"no start has opened block {quoted(id)}")
    if stream.open or isinstance(stream, TextStream) != (kind == "text"):
        return Park("INV-OWNER", f"block {quoted(id)} is no {kind} block")
    return Park("INV-MSG", f"block {quoted(id)} has ended")


BLOCK_HANDLERS: Handlers = {
    TextStart: _text_start,
    TextDelta: _text_delta,
    TextEnd: _text_end,
    ReasoningStart: _reasoning_start,
    ReasoningDelta: _reasoning_delta,
    ReasoningEnd: _reasoning_end,
    ReasoningOpaque: _reasoning_opaque,
    ReasoningOpaqueDelta: _reasoning_opaque_delta,
}
"""What the events of text and reasoning blocks do to the fold."""
