"""One message while its chunks come: what each becomes at once, and what they add up to (spec §5, §8 items 1, 9).

Chunks are added up by LangChain's own rules, and each block is read at its end by the functions that read stored
messages. So a stream and its stored message say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from agjson.adapters.langgraph._calls import CALL_TYPES
from agjson.adapters.langgraph._carry import INVALID, SIGNATURES
from agjson.adapters.langgraph._content import (
    Reading,
    beside_content,
    read_blocks,
    read_content,
    reasoning_beside,
    rest_of_kwargs,
)
from agjson.adapters.langgraph._live_calls import SERVER_CALLS, LiveCall, LiveCalls
from agjson.adapters.langgraph._merge import continues, merge_block, merge_into
from agjson.emitter import Emitter
from agjson.types import AgBlock, JsonValue, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock

__all__ = ["MessageWriter"]

Native: TypeAlias = dict[str, Any]

# Kinds of block that stream, each with the member that grows.
_GROWS = {"text": "text", "thinking": "thinking", "reasoning": "reasoning"}
_CALLS = CALL_TYPES | SERVER_CALLS
# Parts of the content that are but a fragment of arguments where they name no call.
_ARGUMENT_TYPES = ("input_json_delta", "function_call")


class _Slot:
    """A part of the content that may still grow.

    Attributes:
        native: what its fragments add up to, but for the text that grows; None for a plain text.
        grows: the member of the native block that the text belongs to.
        texts: the fragments of that text.
        id: the emitted id of its block, once that has started.
        call: the call that it tells.
        closed: its block has ended.
    """

    __slots__ = ("call", "closed", "grows", "id", "index", "is_reasoning", "kind", "native", "parts", "source", "texts")

    def __init__(self, native: Native | None, grows: str = "") -> None:
        self.native = native
        self.grows = grows
        # Of the native block, for the short way.
        self.kind: object = None
        self.index: object = None
        self.is_reasoning = False
        self.texts: list[str] = []
        # The fragments of a summary, by part.
        self.parts: dict[int, list[str]] = {}
        self.id: str | None = None
        self.call: LiveCall | None = None
        self.closed = False
        # Where it stands if not in the content.
        self.source = ""


class MessageWriter:
    """Writes one message of the stream.

    Args:
        out: what writes the events.
        turn_id: the turn.
        message_id: the emitted id of the message, which is open.
        meta: where the message comes from; text and reasoning keep it in the fold (spec §5 ``text.start``).

    Attributes:
        blocks: what has been told, block by block, as a stored message would say it.
        malformed: the ids of calls whose arguments are no JSON object.
        has_calls: there are calls of the host's tools.
    """

    def __init__(
        self, out: Emitter, turn_id: str, message_id: str, meta: Mapping[str, JsonValue] | None = None
    ) -> None:
        self._out = out
        self._meta = dict(meta) if meta else None
        self._turn = turn_id
        self._message = message_id
        self._slots: list[_Slot] = []
        self._open: _Slot | None = None
        self._kwargs: Native = {}
        self._reading = Reading({})
        self._calls = LiveCalls(out, turn_id, message_id, self._reading, tell=self._tell, told=self._note_call)
        self._ordinal = 0
        self.blocks: list[AgBlock] = []
        self.malformed: set[str] = set()
        self.has_calls = False

    # The short way

    def feed_hot(self, content: Any) -> bool:
        """Take the content of a chunk that says nothing else, if it only goes on with the open text.

        Args:
            content: the content of the chunk.

        Returns:
            False if it needs the long way; then nothing has happened.
        """
        slot = self._open
        if slot is None or slot.id is None:
            return False
        if content.__class__ is str:
            if slot.native is not None or slot.source or not content:
                return False
            slot.texts.append(content)
            self._out.text_delta(slot.id, content)
            return True
        if slot.native is None or content.__class__ is not list or len(content) != 1:
            return False
        part = content[0]
        try:
            if len(part) != 3 or part["index"] != slot.index or part["type"] != slot.kind:
                return False
            text = part[slot.grows]
        except (KeyError, TypeError):
            return False
        if text.__class__ is not str or not text:
            return False
        slot.texts.append(text)
        if slot.is_reasoning:
            self._out.reasoning_delta(slot.id, text)
        else:
            self._out.text_delta(slot.id, text)
        return True

    def feed_hot_reasoning(self, kwargs: Any) -> bool:
        """Take what stands beside the content of a chunk that says nothing else, if it only goes on with reasoning.

        Args:
            kwargs: ``additional_kwargs`` of the chunk.

        Returns:
            False if it needs the long way; then nothing has happened.
        """
        slot = self._open
        if slot is None or slot.id is None or slot.source != "reasoning_content":
            return False
        text = kwargs.get("reasoning_content") if kwargs.__class__ is dict and len(kwargs) == 1 else None
        if text.__class__ is not str or not text:
            return False
        slot.texts.append(text)
        self._out.reasoning_delta(slot.id, text)
        return True

    def feed_hot_arguments(self, fragments: Any, content: Any) -> bool:
        """Take fragments of calls of a chunk that says nothing else, if they only go on with the arguments of a call.

        Args:
            fragments: ``tool_call_chunks`` of the chunk.
            content: the content of the chunk.

        Returns:
            False if it needs the long way; then nothing has happened.
        """
        if content:
            # The same fragment may stand in the content as well.
            if content.__class__ is not list or len(content) != 1 or (part := content[0]).__class__ is not dict:
                return False
            if len(part) != 3 or part.get("type") not in _ARGUMENT_TYPES or "id" in part:
                return False
        return self._calls.feed_hot(fragments)

    # The long way

    def feed(self, chunk: Mapping[str, Any]) -> None:
        """Take a chunk.

        Args:
            chunk: an ``AIMessageChunk`` as plain data.
        """
        fragments = chunk.get("tool_call_chunks")
        fragments = fragments if isinstance(fragments, list) else []
        self._calls.settle(fragments)
        self._note_provider(chunk.get("response_metadata"))
        kwargs = chunk.get("additional_kwargs")
        if isinstance(kwargs, dict) and kwargs:
            self._feed_kwargs(kwargs)
        content = chunk.get("content")
        if isinstance(content, str):
            self._feed_text(content)
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, str):
                    self._feed_text(part)
                elif part is not None:
                    self._feed_part(part, bool(fragments))
        elif content is not None:
            self._feed_part(content, bool(fragments))
        for fragment in fragments:
            if isinstance(fragment, dict):
                self._calls.feed(fragment)
        if not fragments:
            self._calls.feed_listed(chunk)

    def whole(self, message: Mapping[str, Any]) -> None:
        """Tell a message that comes whole.

        Args:
            message: the message as plain data, of any role but ``tool``.
        """
        for block in read_blocks(message):
            self._tell(block)
        self._kwargs = rest_of_kwargs(message.get("additional_kwargs"))

    def close(self) -> None:
        """End the blocks that are still open. To be called once, before the message ends."""
        self._close_open()
        self._calls.end_all()
        after = beside_content({"refusal": self._kwargs.get("refusal")}, self._reading)[1]
        for block in after:
            self._tell(block)

    def has_call(self, id: str) -> bool:
        """Tell whether the message has told of a call.

        Args:
            id: the call's native id.
        """
        return self._calls.has(id)

    def _note_provider(self, metadata: object) -> None:
        if self._reading.provider is None and isinstance(metadata, dict) and metadata.get("model_provider"):
            self._reading.provider = Reading({"response_metadata": metadata}).provider

    def _next_id(self, kind: str) -> str:
        self._ordinal += 1
        return f"{self._message}:{kind}:{self._ordinal - 1}"

    def _tell(self, block: AgBlock) -> None:
        """Tell a whole block."""
        if not isinstance(block, ToolCallBlock):
            self.blocks.append(block)
        if isinstance(block, ToolResultBlock):
            self._out.tool_done(
                block.tool_call_id,
                block.content,
                outcome=block.outcome,
                error_text=block.error_text,
                error_code=block.error_code,
                is_error=block.is_error,
                provider_metadata=block.provider_metadata,
                turn_id=self._turn,
                message_id=self._message,
                in_place=True,
            )
            return
        kind = {TextBlock: "text", ReasoningBlock: "reasoning"}.get(type(block))
        attributed = block
        if self._meta is not None and isinstance(block, (TextBlock, ReasoningBlock)):
            attributed = replace(block, meta={**self._meta, **(block.meta or {})})
        self._out.block(
            attributed, id=None if kind is None else self._next_id(kind), turn_id=self._turn, message_id=self._message
        )
        if isinstance(block, ToolCallBlock):
            self._note_call(block)

    def _note_call(self, block: ToolCallBlock) -> None:
        self.blocks.append(block)
        self.has_calls = self.has_calls or not block.provider_executed
        if INVALID in (block.provider_metadata or ()):
            self.malformed.add(block.tool_call_id)
            self._out.error(
                f"the arguments of call {block.tool_call_id} are no JSON object",
                code="malformed_tool_call",
                turn_id=self._turn,
            )

    # Text and reasoning

    def _feed_text(self, text: str) -> None:
        if not text:
            return
        slot = self._slots[-1] if self._slots else None
        if slot is None or slot.native is not None or slot.closed:
            slot = self._add(_Slot(None, "text"))
        self._grow(slot, text)

    def _add(self, slot: _Slot) -> _Slot:
        self._close_open()
        if not slot.source:
            self._slots.append(slot)
        self._open = slot
        return slot

    def _grow(self, slot: _Slot, text: str) -> None:
        slot.texts.append(text)
        if slot.is_reasoning:
            if slot.id is None:
                self._start_reasoning(slot)
            assert slot.id is not None
            self._out.reasoning_delta(slot.id, text)
            return
        if slot.id is None:
            slot.id = self._out.text_start(
                self._next_id("text"), turn_id=self._turn, message_id=self._message, meta=self._meta
            )
        self._out.text_delta(slot.id, text)

    def _start_reasoning(self, slot: _Slot) -> None:
        item_id = None if slot.native is None else slot.native.get("id")
        slot.id = self._out.reasoning_start(
            self._next_id("reasoning"),
            item_id=item_id if isinstance(item_id, str) and item_id else None,
            turn_id=self._turn,
            message_id=self._message,
            meta=self._meta,
        )

    def _feed_part(self, part: Any, has_fragments: bool) -> None:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            self._add(_Slot({"type": "", "value": part}))
            return
        value = part.get("value") if part["type"] == "non_standard" else None
        if isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] in CALL_TYPES:
            part = {**value, "index": part.get("index")}
        kind: str = part["type"]
        slot = self._slot_of(part)
        if kind == "input_json_delta":
            self._feed_json(slot, part, has_fragments)
        elif slot is not None and not slot.closed:
            self._merge(slot, part)
        elif kind in _CALLS:
            # Before its start: what was open before it ends first.
            slot = self._add(_Slot({key: value for key, value in part.items() if key in ("type", "id", "index")}))
            slot.call = self._calls.open(part)
        else:
            self._open_part(kind, part)

    def _slot_of(self, part: Native) -> _Slot | None:
        """The slot that a fragment continues, by LangChain's rule."""
        if "index" not in part:
            return None
        for slot in self._slots:
            if slot.native is not None and continues(slot.native, part):
                return slot
        return None

    def _open_part(self, kind: str, part: Native) -> None:
        grows = _GROWS.get(kind, "")
        slot = self._add(_Slot({}, grows))
        slot.kind, slot.index = kind, part.get("index")
        slot.is_reasoning = kind in ("thinking", "reasoning", "reasoning_content")
        self._merge(slot, part)
        if slot.is_reasoning and slot.id is None and isinstance(read_content(part, self._reading)[0], ReasoningBlock):
            # Before it says anything, and perhaps it never will: readers see that the model thinks.
            self._start_reasoning(slot)

    def _merge(self, slot: _Slot, part: Native) -> None:
        native = slot.native
        assert native is not None
        if slot.call is not None:
            self._calls.merge(slot.call, part)
            return
        text = part.get(slot.grows) if slot.grows else None
        if isinstance(text, str):
            rest = {name: value for name, value in part.items() if name != slot.grows}
        else:
            text, rest = None, part
        summary = part.get("summary") if slot.is_reasoning else None
        if isinstance(summary, list) and slot.id is not None and self._is_more_summary(slot, part, summary):
            return
        inner = part.get("reasoning_content") if slot.is_reasoning else None
        slot.native = merge_block(native, rest)
        if text:
            self._grow(slot, text)
        if isinstance(summary, list):
            self._grow_summary(slot, summary)
        if isinstance(inner, dict) and isinstance(inner.get("text"), str) and inner["text"]:
            self._grow(slot, inner["text"])

    def _is_more_summary(self, slot: _Slot, part: Native, summary: list[Any]) -> bool:
        """Take a fragment that says nothing but more text of one summary part; most are so."""
        each = summary[0] if len(summary) == 1 and len(part) == 3 else None
        if not isinstance(each, dict) or len(each) != 3 or slot.id is None:
            return False
        text, index = each.get("text"), each.get("index")
        if not isinstance(text, str) or type(index) is not int or each.get("type") != "summary_text":
            return False
        slot.parts.setdefault(index, []).append(text)
        self._out.reasoning_delta(slot.id, text, part_index=index)
        return True

    def _grow_summary(self, slot: _Slot, summary: list[Any]) -> None:
        """Parts of the summary of a reasoning item."""
        for place, each in enumerate(summary):
            text = each.get("text") if isinstance(each, dict) else None
            if isinstance(text, str) and text:
                if slot.id is None:
                    self._start_reasoning(slot)
                assert slot.id is not None
                index = each.get("index")
                self._out.reasoning_delta(slot.id, text, part_index=index if type(index) is int else place)

    def _close_open(self) -> None:
        slot, self._open = self._open, None
        if slot is None or slot.closed:
            return
        slot.closed = True
        if slot.call is not None:
            if slot.call.server:
                self._calls.end(slot.call)
            return
        for place, block in enumerate(self._read(slot)):
            if place == 0 and slot.id is not None and self._end(slot.id, block):
                self.blocks.append(block)
            else:
                self._tell(block)

    def _read(self, slot: _Slot) -> list[AgBlock]:
        text = "".join(slot.texts)
        for index, texts in slot.parts.items():
            more = {"summary": [{"index": index, "type": "summary_text", "text": "".join(texts)}]}
            slot.native = merge_block(slot.native or {}, more)
        if slot.source == "reasoning_content":
            return [reasoning_beside(text, self._reading)]
        if slot.native is None:
            return read_content(text, self._reading)
        if slot.source:
            return beside_content({slot.source: slot.native}, self._reading)[0]
        if slot.native.get("type") == "":
            return read_content(slot.native.get("value"), self._reading)
        # Bedrock's text is inside, and is merged there.
        grown = slot.grows and slot.texts
        return read_content({**slot.native, slot.grows: text} if grown else slot.native, self._reading)

    def _end(self, id: str, block: AgBlock) -> bool:
        """End a block that has streamed with what its stored form says beside the text; False if it is another."""
        if isinstance(block, TextBlock):
            self._out.text_end(id, citations=block.citations, provider_metadata=block.provider_metadata)
            return True
        if isinstance(block, ReasoningBlock):
            opaque = block.opaque
            if opaque is not None:
                self._out.reasoning_opaque(
                    id, opaque.value, kind=opaque.kind, provider=opaque.provider, item_id=block.item_id
                )
            self._out.reasoning_end(id, provider=block.provider, provider_metadata=block.provider_metadata)
            return True
        self._out.text_end(id)
        self._out.reasoning_end(id)
        return False

    def _feed_kwargs(self, kwargs: Native) -> None:
        """What stands beside the content: reasoning there comes before all else."""
        text, item = kwargs.get("reasoning_content"), kwargs.get("reasoning")
        self._kwargs = merge_into(
            self._kwargs,
            {name: value for name, value in kwargs.items() if name not in ("reasoning_content", "reasoning")},
        )
        self._calls.signatures = self._kwargs.get(SIGNATURES)
        if isinstance(text, str):
            if text:
                slot = self._open
                if slot is None or slot.source != "reasoning_content":
                    slot = _Slot(None, "text")
                    slot.source, slot.is_reasoning = "reasoning_content", True
                    self._add(slot)
                self._grow(slot, text)
        elif text is not None:
            self._kwargs = merge_into(self._kwargs, {"reasoning_content": text})
        if isinstance(item, dict):
            slot = self._open
            if slot is None or slot.source != "reasoning":
                slot = _Slot({})
                slot.source, slot.is_reasoning = "reasoning", True
                self._add(slot)
            slot.native = merge_into(slot.native or {}, item)
            if slot.id is None:
                self._start_reasoning(slot)
            summary = item.get("summary")
            self._grow_summary(slot, summary if isinstance(summary, list) else [])
        elif item is not None:
            self._kwargs = merge_into(self._kwargs, {"reasoning": item})

    @property
    def kwargs(self) -> Native:
        """What the ``additional_kwargs`` of the chunks add up to, but for what streams."""
        return self._kwargs

    def _feed_json(self, slot: _Slot | None, part: Native, has_fragments: bool) -> None:
        """A fragment of arguments in the content; it counts where nothing beside the content says the same."""
        text = part.get("partial_json")
        call = None if slot is None else slot.call
        if call is None or slot is None or (slot.closed and call.server):
            if not has_fragments:
                self._add(_Slot(dict(part)))
            return
        if isinstance(text, str) and (call.server or not has_fragments):
            self._calls.grow(call, text)
