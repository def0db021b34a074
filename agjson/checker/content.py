"""Text, reasoning and whole blocks: ids, order, signatures, citations (spec §2, §5, §5.0 INV-BLOCK, §8 item 9)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from agjson.checker.state import Block, Digest, Tracker
from agjson.checker.tools import add_call, call_is_taken, check_result
from agjson.types import (
    AgBlock,
    AgCitation,
    CompactionBlock,
    ContentBlock,
    DataBlock,
    OffsetCitation,
    ReasoningBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    SearchResultBlock,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = [
    "check_block",
    "content_block",
    "reasoning_delta",
    "reasoning_end",
    "reasoning_opaque",
    "reasoning_opaque_delta",
    "reasoning_start",
    "text_delta",
    "text_end",
    "text_start",
]


def text_start(tracker: Tracker, event: TextStart) -> None:
    """Start a text block under an id that is free."""
    _start_block(tracker, tracker.texts, event)


def text_delta(tracker: Tracker, event: TextDelta) -> None:
    """Add to a text block that is open."""
    block = tracker.texts.get(event.id)
    if block is None or block.ended or not block.message.open or event.turn_id not in (None, block.turn_id):
        _check_delta(tracker, tracker.texts, event, "text")


def text_end(tracker: Tracker, event: TextEnd) -> None:
    """End a text block; its citations name sources that come before or after (spec §5 citation attachment key)."""
    _end_block(tracker, tracker.texts, event, "text")
    if event.citations is not None:
        _cite(tracker, event.citations)


def reasoning_start(tracker: Tracker, event: ReasoningStart) -> None:
    """Start a reasoning block, or another part of one (spec §5 `reasoning.start`)."""
    part = event.part_index
    block = tracker.reasonings.get(event.id)
    if block is None or block.message is tracker.nowhere or part is None or part in (block.parts or ()):
        block = _start_block(tracker, tracker.reasonings, event)
    elif not block.message.open:
        tracker.report("INV-MSG", f"a part for block `{event.id}` of a sealed message or closed turn")
        block.message = tracker.nowhere
    else:
        _check_turn_of_block(tracker, event, block)
        if block.ended:
            block.home.dangling += 1
        block.starts += 1
        block.ended = False
    if part is not None:
        if block.parts is None:
            block.parts = set()
        block.parts.add(part)


def reasoning_delta(tracker: Tracker, event: ReasoningDelta) -> None:
    """Add to a reasoning block that is open."""
    block = tracker.reasonings.get(event.id)
    if block is None or block.ended or not block.message.open or event.turn_id not in (None, block.turn_id):
        _check_delta(tracker, tracker.reasonings, event, "reasoning")


def reasoning_end(tracker: Tracker, event: ReasoningEnd) -> None:
    """End a reasoning block, or one part of it."""
    _end_block(tracker, tracker.reasonings, event, "reasoning")


def reasoning_opaque(tracker: Tracker, event: ReasoningOpaque) -> None:
    """Seal the opaque value of a reasoning block, which may have ended (spec §5 `reasoning.opaque`, §8 item 9)."""
    block = tracker.reasonings.get(event.id)
    if block is None:
        _unknown_block(tracker, tracker.reasonings, event.id, "reasoning.opaque", "reasoning")
        return
    _check_turn_of_block(tracker, event, block)
    if block.message is tracker.nowhere:
        pass
    elif block.fragments is None:
        if not event.value:
            tracker.report("OPAQUE", f"reasoning block `{event.id}` gets an empty {event.kind}")
    elif event.value and _digest(event.value).digest() != block.fragments.digest():
        tracker.report("OPAQUE", f"the {event.kind} of reasoning block `{event.id}` differs from its fragments")
    block.fragments = None
    if block.home.turn is not None:
        block.home.turn.unsigned.pop(event.id, None)


def reasoning_opaque_delta(tracker: Tracker, event: ReasoningOpaqueDelta) -> None:
    """Add a fragment to the signature of a reasoning block, which may have ended."""
    block = tracker.reasonings.get(event.id)
    if block is None:
        _unknown_block(tracker, tracker.reasonings, event.id, "reasoning.opaque.delta", "reasoning")
        return
    if not block.message.open:
        tracker.report("INV-MSG", f"reasoning.opaque.delta for block `{event.id}` of a sealed message or closed turn")
        block.message = tracker.nowhere
    _check_turn_of_block(tracker, event, block)
    if block.message is tracker.nowhere:
        return
    if block.fragments is None:
        block.fragments = hashlib.sha256()
        if block.home.turn is not None:
            block.home.turn.unsigned[event.id] = block
    block.fragments.update(event.delta.encode("utf-8", "surrogatepass"))


def _digest(text: str) -> Digest:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass"))


def _start_block(tracker: Tracker, table: dict[str, Block], event: TextStart | ReasoningStart) -> Block:
    taken = any(
        block is not None and block.message is not tracker.nowhere
        for block in (tracker.texts.get(event.id), tracker.reasonings.get(event.id))
    )
    if taken or event.id in tracker.known_ids:
        tracker.report("INV-BLOCK", f"{event.type} names block `{event.id}`, an id that is taken")
        message = tracker.nowhere
    else:
        message = tracker.target(event, event.candidate_index)
    block = table[event.id] = Block(message)
    if message is not tracker.nowhere:
        message.blocks.append(event.id)
        message.dangling += 1
    return block


def _check_delta(tracker: Tracker, table: dict[str, Block], event: TextDelta | ReasoningDelta, kind: str) -> None:
    """Tell why a delta is not plainly right, if it is not."""
    block = table.get(event.id)
    if block is None:
        _unknown_block(tracker, table, event.id, event.type, kind)
        return
    message = block.message
    if message is tracker.nowhere:
        return
    if block.ended:
        tracker.report("INV-BLOCK", f"{event.type} for block `{event.id}`, which has ended")
    elif not message.open:
        tracker.report("INV-MSG", f"{event.type} for block `{event.id}` of a sealed message or closed turn")
    elif event.turn_id is not None and message.turn is not None and message.turn.id != event.turn_id:
        tracker.report("INV-OWNER", f"{event.type} names turn `{event.turn_id}`, its block is in `{message.turn.id}`")
    else:
        return
    block.message = tracker.nowhere


def _end_block(tracker: Tracker, table: dict[str, Block], event: TextEnd | ReasoningEnd, kind: str) -> None:
    block = table.get(event.id)
    if block is None:
        _unknown_block(tracker, table, event.id, event.type, kind)
        return
    if block.message is tracker.nowhere:
        return
    _check_turn_of_block(tracker, event, block)
    if block.ends >= block.starts:
        tracker.report("INV-BLOCK", f"{event.type} ends block `{event.id}` a second time")
    elif tracker.in_flush and not block.message.open:
        tracker.suspect_here(f"{event.type} for block `{event.id}` after the flush has begun to abort turns")
    block.ends += 1
    if not block.ended:
        block.ended = True
        block.home.dangling -= 1


def _check_turn_of_block(
    tracker: Tracker,
    event: TextEnd | ReasoningStart | ReasoningEnd | ReasoningOpaque | ReasoningOpaqueDelta,
    block: Block,
) -> None:
    """Report an event that names another turn than that of its block, once for each block."""
    if block.message is not tracker.nowhere and not tracker.is_of(event, block.turn_id, f"block `{event.id}`"):
        block.message = tracker.nowhere


def _unknown_block(tracker: Tracker, table: dict[str, Block], block_id: str, type: str, kind: str) -> None:
    tracker.report("INV-BLOCK", f"{type} names {kind} block `{block_id}`, which has not been started")
    table[block_id] = Block(tracker.nowhere)


def content_block(tracker: Tracker, event: ContentBlock) -> None:
    """Deliver a whole block; a transient one goes nowhere (spec §5 `content.block`)."""
    block = event.block
    check_block(tracker, block)
    if event.transient or (isinstance(block, DataBlock) and block.transient):
        return
    message = tracker.target(event, event.candidate_index)
    if isinstance(block, ToolCallBlock):
        if call_is_taken(tracker, block.tool_call_id):
            tracker.report("INV-BLOCK", f"content.block holds call `{block.tool_call_id}`, an id that is taken")
        else:
            add_call(tracker, block.tool_call_id, message, whole=True)


def check_block(tracker: Tracker, block: AgBlock) -> None:
    """What a whole block shows by itself, wherever it is carried."""
    if isinstance(block, TextBlock):
        if block.citations is not None:
            _cite(tracker, block.citations)
    elif isinstance(block, ReasoningBlock | CompactionBlock | SearchResultBlock):
        if block.opaque is not None and not block.opaque.value:
            tracker.report("OPAQUE", f"a {block.type} block has an empty {block.opaque.kind}")
    elif isinstance(block, ToolCallBlock):
        if block.signature == "":
            tracker.report("OPAQUE", f"call `{block.tool_call_id}` has an empty signature")
    elif isinstance(block, ToolResultBlock):
        tracker.need_call(block.tool_call_id, "a tool-result block")
        check_result(tracker, block)


def _cite(tracker: Tracker, citations: Iterable[AgCitation]) -> None:
    for citation in citations:
        if isinstance(citation, OffsetCitation):
            for source_id in citation.source_ids:
                if source_id not in tracker.sources:
                    tracker.cited.setdefault(source_id, (tracker.line, tracker.seq))
