"""The normalizer of the Messages API: raw events, helper events and whole messages in, AgJSON events out (spec §8)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar, Unpack

from agjson.adapters.anthropic._carry import VENDOR
from agjson.adapters.anthropic._credit import take_credit
from agjson.adapters.anthropic._in_blocks import block_from_native, string_block
from agjson.adapters.anthropic._message_reader import MessageReader
from agjson.adapters.anthropic._stop import error_of, finish_reason, is_retriable, safety_of
from agjson.emitter import EmitterSettings
from agjson.failures import Failure, describe_failure, trace_of
from agjson.jsonable import jsonable
from agjson.normalizer import HostAbort, HostEnd, HostError, Normalizer
from agjson.types import AgBlock, AgStreamEvent, AgUsage, ProviderRawBlock, ToolResultBlock

__all__ = ["AnthropicNormalizer", "AnthropicSettings"]

_LOG = logging.getLogger("agjson")

Native = dict[str, Any]

# What the helper streams (``messages.stream``) say again after a raw delta: the delta's type, and the field of both.
_DERIVED = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "signature": ("signature_delta", "signature"),
    "citation": ("citations_delta", "citation"),
    "input_json": ("input_json_delta", "partial_json"),
    "compaction": ("compaction_delta", "content"),
}


class AnthropicSettings(EmitterSettings, total=False):
    """The keyword arguments of `AnthropicNormalizer` that a wrapper of a stream hands on."""

    on_fallback_credit: Callable[[str], object] | None
    """As for `AnthropicNormalizer`."""


class AnthropicNormalizer(Normalizer):
    """Normalizes one invoke of the Messages API, plain or beta (spec §8.0).

    It takes, as objects of the provider's client or as plain data: raw stream events; the events of
    ``messages.stream``, which repeat every raw delta in a second form that is left out; whole messages; error bodies;
    and user messages with ``tool_result`` blocks, which become `tool.done`. What it does not know goes out whole in
    ``ext.anthropic.frame``, and unknown content blocks are stored as ``provider-raw``.

    Args:
        turn_id: the turn of this invoke.
        thread_id: the conversation.
        multi: the invoke makes several requests, as a tool loop does: the turn stays open until a `HostEnd`. Otherwise
            the end of the first message closes it.
        on_fallback_credit: gets the ``fallback_credit_token`` of a refusal, which the host may put on a further
            request. It works like a bearer token, so it is in no event. What the function raises is logged.
        **settings: as for `Normalizer`.
    """

    vendor: ClassVar[str] = "anthropic"
    ends_itself: ClassVar[bool] = True

    def __init__(
        self,
        turn_id: str,
        thread_id: str,
        *,
        multi: bool = False,
        on_fallback_credit: Callable[[str], object] | None = None,
        **settings: Unpack[EmitterSettings],
    ) -> None:
        super().__init__(turn_id, thread_id, **settings)
        self._multi = multi
        self._on_fallback_credit = on_fallback_credit
        self._reader = MessageReader(self.out, self.turn_id)
        self._hot = self._reader.hot
        # The last delta, which a helper event repeats.
        self._last: Native = {}

    @property
    def stop_reason(self) -> str | None:
        """The native stop reason of the message that ended last; None while a message is open or has named none."""
        reason = self._reader.stop_reason
        return reason if self._reader.complete and isinstance(reason, str) else None

    def push(self, native: object) -> list[AgStreamEvent]:
        """Take one native event, or a sentinel of the driver; as `Normalizer.push`.

        Args:
            native: an event, message or error of the Messages API as an object or plain data, or a sentinel.

        Returns:
            The events that it makes, perhaps none.
        """
        try:
            done = not self._flushed and (self._hot_data(native) if type(native) is dict else self._hot_object(native))
        except Exception as error:
            self._failed(native, error)
            done = True
        return self.out.drain() if done else super().push(self._without_credit(native))

    def _without_credit(self, native: object) -> object:
        """A native event that may be carried whole: the token that is the host's alone goes to the host."""
        try:
            native, token = take_credit(native)
            if token is not None and self._on_fallback_credit is not None:
                self._on_fallback_credit(token)
        except Exception as error:
            # The words of the exception may quote the token.
            _LOG.warning("the fallback credit of a refusal could not be handed over: %s", trace_of(error))
        return native

    # The short way for deltas

    def _hot_data(self, native: Native) -> bool:
        """Take a plain delta of a kind that comes often; False if it needs the long way: then nothing has happened."""
        if len(native) != 3:
            return False
        # Each lookup counts here: a subscript takes half the time of a `get`.
        try:
            if native["type"] != "content_block_delta":
                return False
            delta, index = native["delta"], native["index"]
            if type(delta) is not dict or len(delta) != 2 or type(index) is not int:
                return False
            block = self._hot[index]
            if delta["type"] != block.HOT or type(value := delta[block.FIELD]) is not str:
                return False
        except KeyError:
            return False
        self._last = delta
        return block.feed(value)

    def _hot_object(self, native: Any) -> bool:
        """The same for an object; also leaves out what a helper stream says twice, which may be long."""
        try:
            fields = native.__dict__
            kind = fields["type"]
            if kind != "content_block_delta":
                derived = _DERIVED.get(kind)
                return derived is not None and self._repeats(derived, fields.get(derived[1]))
            inner, index = fields["delta"], fields["index"]
            delta = inner.__dict__
            if type(index) is not int:
                return False
            block = self._hot[index]
            if delta["type"] != block.HOT or type(value := delta[block.FIELD]) is not str:
                return False
            # Where pydantic keeps the fields that a model does not know.
            if native.__pydantic_extra__ or inner.__pydantic_extra__:
                return False
            if len(delta) > 2 and delta.get("estimated_tokens") is not None:
                return False
        except (AttributeError, KeyError, TypeError):  # not an object of the client, or one of another kind
            return False
        self._last = delta
        return block.feed(value)

    def _repeats(self, derived: tuple[str, str], value: object) -> bool:
        """Whether a helper event says what the raw delta before it has said."""
        kind, field = derived
        if self._last.get("type") != kind:
            return False
        last = self._last.get(field)
        return value == last or (isinstance(last, dict) and jsonable(value) == last)

    # The long way

    def _on(self, native: Any) -> None:
        if not isinstance(native, dict):
            self.unparsed(native, "an event is an object")
            return
        kind, reader = native.get("type"), self._reader
        if kind in (None, "message") and native.get("role") == "user" and "content" in native:
            self._on_user(native)
        elif not self.out.is_open():
            if kind != "ping":
                reader.carry(native, "unexpected_event", "an event after the end of the turn")
        elif kind == "error":
            self._on_native_error(native)
        elif kind is None and native.get("role") == "assistant" and "content" in native:
            reader.take({**native, "type": "message"})
        elif reader.take(native):
            if kind == "content_block_delta" and isinstance(delta := native.get("delta"), dict):
                self._last = delta
        elif not isinstance(kind, str):
            self.unparsed(native, "an event has a type")
        elif kind not in _DERIVED or not self._repeats(_DERIVED[kind], native.get(_DERIVED[kind][1])):
            reader.carry(native)
        if reader.complete and not self._multi and self.out.is_open():
            self._close()

    def _on_user(self, native: Native) -> None:
        """A message of the user inside the loop: results of tools, and perhaps words beside them."""
        others: list[AgBlock] = []
        content = native["content"]
        for each in content if isinstance(content, list) else [content]:
            block = _read(each)
            if isinstance(block, ToolResultBlock) and each["type"] == "tool_result":
                self._on_tool_result(block)
            else:
                others.append(block)
        if not others:
            return
        if not self.out.is_open():
            self._reader.carry(native, "unexpected_event", "a message after the end of the turn")
            return
        id = native.get("id")
        id = self.out.message_start(id if isinstance(id, str) and id else None, role="user", turn_id=self.turn_id)
        for block in others:
            self.out.block(block, turn_id=self.turn_id, message_id=id)
        self.out.message_end(id, turn_id=self.turn_id)

    def _on_tool_result(self, result: ToolResultBlock) -> None:
        self.out.tool_done(
            result.tool_call_id,
            result.content,
            outcome=result.outcome,
            is_error=result.is_error,
            provider_metadata=result.provider_metadata,
            message_id=f"{self.out.call_id(result.tool_call_id)}:result",
            turn_id=self.turn_id,
        )

    # Ends

    def _close(self, end: HostEnd | None = None) -> None:
        reader = self._reader
        self.out.turn_done(
            outcome=None if end is None else end.outcome,
            finish_reason=(None if end is None else end.finish_reason) or finish_reason(reader.stop_reason),
            usage=(None if end is None else end.usage) or reader.usage,
            safety=safety_of(reader.stop_reason, reader.stop_details),
            turn_id=self.turn_id,
        )

    def _on_end(self, end: HostEnd) -> None:
        """Close a loop whose last message is whole. What was cut off stays open, and `flush` aborts it."""
        if not self.out.is_open():
            return
        if not self._reader.complete:
            # Even an answer without a single event is a turn that was cut off.
            self.out.turn_start()
            self._reader.settle()
        elif end.outcome is None and end.finish_reason is None and self.out.pending_asks():
            self.out.turn_paused(usage=end.usage or self._reader.usage, turn_id=self.turn_id)
        else:
            self._close(end)

    def _on_native_error(self, native: Native) -> None:
        """An error inside the stream, or the body of a failed request."""
        kind, message = error_of(native)
        self._reader.settle()
        self._reader.carry(native)
        super()._on_error(HostError(message or kind or "the provider reports an error", kind, is_retriable(kind)))

    def _on_error(self, error: HostError) -> None:
        if self.out.is_open():
            self._reader.settle()
        body = jsonable(getattr(error.error, "body", None))
        if isinstance(body, dict):
            self._reader.carry({"type": "error", **body})
        super()._on_error(error)

    def _on_abort(self, abort: HostAbort) -> None:
        if self.out.is_open():
            self._reader.settle()
        super()._on_abort(abort)

    def _describe(self, error: BaseException) -> Failure:
        """What the provider's client says of a failed request; one inside a stream has HTTP status 200."""
        told = describe_failure(error)
        kind, message = error_of(getattr(error, "body", None))
        retriable = is_retriable(kind, getattr(error, "status_code", None))
        return Failure(message or told.message, kind or told.code, told.retriable if retriable is None else retriable)

    def _usage_so_far(self) -> AgUsage | None:
        return self._reader.usage


def _read(native: Any) -> AgBlock:
    """A block of a user message, which may be a plain string."""
    if isinstance(native, str):
        return string_block(native)
    if isinstance(native, dict) and isinstance(native.get("type"), str):
        return block_from_native(native)
    return ProviderRawBlock(vendor=VENDOR, raw=native)
