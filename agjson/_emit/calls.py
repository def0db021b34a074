"""Tool calls of the emitter (spec §5 tool.start, tool.args.*, §8 items 1, 2 and 10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn, Unpack, cast

from msgspec.structs import replace

from agjson._emit.base import Gate
from agjson._emit.reasoning import EmitterReasoning
from agjson._emit.settings import EmitterSettings
from agjson._emit.state import Call, Message, OfBlock, OfMessage, Turn
from agjson._halves import join_halves, whole_characters
from agjson._members import check_members, require_text
from agjson.types import (
    UNSET,
    AgMeta,
    AgProviderMeta,
    AgUiVisibility,
    JsonValue,
    ListOf,
    Number,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolStart,
    UnsetType,
)

__all__ = ["NATIVE_CALL_ID", "SYNTHESIZED", "EmitterCalls"]

NATIVE_CALL_ID = "agjson/nativeToolCallId"
"""The `providerMetadata` key that keeps the native id of a call that had to be renamed; it never reaches a provider."""

SYNTHESIZED = "agjson/synthesized"
"""The `tool_metadata` key that marks a call which nobody made: it announces a result whose call is out of sight."""


class EmitterCalls(EmitterReasoning):
    """Tool calls."""

    def __init__(self, turn_id: str, thread_id: str, settings: EmitterSettings, gate: Gate | None) -> None:
        super().__init__(turn_id, thread_id, settings, gate)
        self._earlier_calls: Mapping[str, str] = settings.get("call_ids") or {}
        self._calls: dict[str, Call] = {}

    def call_id(self, tool_call_id: str) -> str:
        """The id under which a tool call is emitted.

        Args:
            tool_call_id: the native id (or the emitted one) of a call of this invoke or of an earlier one.
        """
        return self._call_ref(tool_call_id) or tool_call_id

    def has_call(self, tool_call_id: str) -> bool:
        """Tell whether this invoke has announced a tool call, for frameworks that tell of one more than once.

        Args:
            tool_call_id: the call, by native or emitted id.
        """
        return tool_call_id in self._calls

    def _call_ref(self, native: str, *, as_emitted: bool = False) -> str | None:
        call = self._call(native, as_emitted=as_emitted)
        if call is not None:
            return call.id
        id = native if as_emitted else self._earlier_calls.get(native, native)
        known = id != native or id in self._known.calls or id in self._restored_calls
        return id if known else None

    def _call(self, native: str, *, as_emitted: bool) -> Call | None:
        """A call of this invoke; by its emitted id alone if the id is one."""
        call = self._calls.get(native)
        return None if as_emitted and call is not None and call.id != native else call

    # Calls

    def tool_start(
        self,
        tool_call_id: str | None,
        name: str,
        *,
        index: Number | None = None,
        dynamic: bool | None = None,
        server_name: str | None = None,
        provider_executed: bool | None = None,
        requires_approval: bool | None = None,
        title: str | None = None,
        tool_metadata: AgMeta | None = None,
        ui_visibility: ListOf[AgUiVisibility] | None = None,
        item_id: str | None = None,
        provider_metadata: AgProviderMeta | None = None,
        candidate_index: Number | None = None,
        long_running: bool | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        **envelope: Unpack[OfMessage],
    ) -> str:
        """Open a tool call; a message is started where none is open to take it (spec §5 tool.start).

        Args:
            tool_call_id: the native id; None: one is derived.
            name: the tool's name.
            index: the provider's position of the block, from 0.
            dynamic: the tool was not known beforehand.
            server_name: the MCP server that offers the tool.
            provider_executed: the provider runs it; the client must not.
            requires_approval: it will not run before a person agrees.
            title: a title for people.
            tool_metadata: a bag of the tool's own.
            ui_visibility: who may call the tool.
            item_id: the OpenAI Responses item.
            provider_metadata: values that go back to the provider.
            candidate_index: which candidate; absent is 0.
            long_running: the result comes much later.
            turn_id: as for `text_start`.
            message_id: as for `text_start`.
            **envelope: ``id``, ``parent_id``, ``meta``.

        Returns:
            The call's id as emitted: ``<id>#2`` where this invoke or the thread has it already; then `NATIVE_CALL_ID`
            in its ``providerMetadata`` keeps the native id. That stays usable in later calls and leads to this call.
        """
        turn = self._owner(turn_id, message_id)
        start = ToolStart(
            seq=self._seq,
            tool_call_id=tool_call_id or "",
            name=name,
            index=index,
            dynamic=dynamic,
            server_name=server_name,
            provider_executed=provider_executed,
            requires_approval=requires_approval,
            title=title,
            tool_metadata=tool_metadata,
            ui_visibility=ui_visibility,
            item_id=item_id,
            provider_metadata=provider_metadata,
            candidate_index=candidate_index,
            long_running=long_running,
            turn_id=turn.id,
            message_id=message_id,
            **envelope,
        )
        if turn.closed is not None:
            self._refuse_closed(start, turn)
            return tool_call_id or ""
        return self._start_call(start, turn, tool_call_id).id

    def _start_call(self, start: ToolStart, turn: Turn, native: str | None) -> Call:
        message = self._home(turn, start.message_id, start.candidate_index)
        id, provider_metadata = self._call_name(native, turn, start.provider_metadata)
        self._put(
            replace(
                start,
                seq=self._seq,
                tool_call_id=id,
                provider_metadata=provider_metadata,
                message_id=message.id,
                candidate_index=message.candidate or start.candidate_index,
            )
        )
        call = Call(id, message)
        self._enter_call(call, native)
        return call

    def _call_name(
        self, native: str | None, turn: Turn, provider_metadata: AgProviderMeta | None
    ) -> tuple[str, AgProviderMeta | None]:
        if not native:
            return self._derived(turn, "tool"), provider_metadata
        id = self._renamed(native, self._block_ids)
        if id != native:
            provider_metadata = cast("AgProviderMeta", {**(provider_metadata or {}), NATIVE_CALL_ID: native})
        return id, provider_metadata

    def _enter_call(self, call: Call, native: str | None) -> None:
        self._calls[call.id] = call
        if native:
            self._calls[native] = call
        self._block_ids.add(call.id)
        self._used.add(call.id)
        call.message.blocks.append(call)

    def _announce(self, native: str, name: str | None, turn: Turn, message_id: str | None = None) -> Call:
        """Open a call that the framework has only mentioned, so that what follows has something to refer to."""
        metadata: AgMeta = {SYNTHESIZED: True}
        start = ToolStart(
            seq=self._seq,
            tool_call_id=native,
            name=name or "unknown",
            tool_metadata=metadata,
            turn_id=turn.id,
            message_id=message_id,
        )
        return self._start_call(start, turn, native)

    def _call_for_args(self, event: ToolArgsDelta | ToolArgsAssembled) -> Call | None:
        """The call that takes arguments, announced if it was never heard of; None if it can take none: then refused."""
        native = event.tool_call_id
        call = self._calls.get(native)
        if call is None and self._call_ref(native) is None:
            turn = self._owner(event.turn_id)
            if turn.closed is None:
                return self._announce(native, None, turn)
        if call is None:
            self._refuse(
                event, self._owner(event.turn_id), "unknown_tool_call", f"no open call {native} takes arguments"
            )
            return None
        if (
            call.message.removed
            or self._flushed
            or (isinstance(event, ToolArgsDelta) and (call.assembled or not call.live))
        ):
            self._refuse(event, call.message.turn, "tool_args_closed", f"call {call.id} takes no more arguments")
            return None
        return call

    def tool_args_delta(
        self,
        tool_call_id: str,
        delta: str,
        *,
        turn_id: str | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        meta: AgMeta | None = None,
    ) -> None:
        """Add to a call's arguments, as raw text of the JSON value (spec §5 tool.args.delta).

        The text is kept until `tool_args_assembled`. An empty delta emits nothing. A call never heard of is announced
        under the name ``unknown``; one that is complete, sealed or of an earlier invoke takes nothing: the delta is
        refused visibly.

        Args:
            tool_call_id: the call, by native or emitted id.
            delta: the increment.
            turn_id: the turn of a call never heard of; absent: the current one.
            id: an id of the event's own.
            parent_id: the entity that encloses it.
            meta: host-only metadata.
        """
        call = self._calls.get(tool_call_id)
        if (
            call is not None
            and call.fast
            and delta.__class__ is str
            and delta
            and (delta.isascii() or whole_characters(delta))
            and meta is None
            and id is None
            and parent_id is None
        ):
            call.args.append(delta)
            self._out.append(
                ToolArgsDelta(
                    seq=self._seq,
                    tool_call_id=call.id,
                    delta=delta,
                    turn_id=call.turn_id,
                    message_id=call.message_id,
                )
            )
            self._seq += 1
            return
        require_text(delta, "tool.args.delta")
        if not delta:
            return
        event = ToolArgsDelta(
            seq=self._seq,
            tool_call_id=tool_call_id,
            delta=delta,
            turn_id=turn_id,
            id=id,
            parent_id=parent_id,
            meta=meta,
        )
        if call is None or not call.fast:
            call = self._call_for_args(event)
            if call is None:
                return
        call.args.append(delta)
        delta = self._care(call, delta, None)
        if not delta:
            return
        self._put(
            replace(
                event,
                seq=self._seq,
                tool_call_id=call.id,
                delta=delta,
                turn_id=call.turn_id,
                message_id=call.message_id,
            )
        )

    def tool_args_cumulative(self, tool_call_id: str, text: str) -> None:
        """Add to a call's arguments from a stream that repeats the whole text so far; as `text_cumulative`.

        A contradiction cannot be taken back on the wire: it is reported, and what is assembled is the later text.

        Args:
            tool_call_id: the call, by native or emitted id.
            text: the whole text of the arguments so far.
        """
        require_text(text, "tool.args.delta")
        call = self._calls.get(tool_call_id)
        if call is not None and call.assembled:
            if text != "".join(call.args):
                self.tool_args_delta(tool_call_id, text)
            return
        increment, anew = self._increment(call, text)
        if anew and call is not None:
            call.args = [text]
            call.prior = {0: text}
        elif increment:
            if call is None and self._call_ref(tool_call_id) is None and (turn := self._owner(None)).closed is None:
                self._announce(tool_call_id, None, turn).prior = {}
            self.tool_args_delta(tool_call_id, increment)

    def tool_args_assembled(
        self,
        tool_call_id: str,
        input: JsonValue | UnsetType = UNSET,
        *,
        signature: str | None = None,
        title: str | None = None,
        tool_metadata: AgMeta | None = None,
        provider_metadata: AgProviderMeta | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[OfMessage],
    ) -> JsonValue:
        """Complete a call's arguments (spec §5 tool.args.assembled, §8 item 1). Every call needs this once.

        Sealing the message, `turn_done` and `tool_done` do it for a call that still lacks it.

        Args:
            tool_call_id: the call, by native or emitted id.
            input: the arguments; absent: the deltas joined and read as JSON, ``{}`` if there were none. Text that is no
                JSON becomes ``{"INVALID_JSON": text}`` and a non-terminal `error` (``malformed_tool_call``).
            signature: Gemini's thought signature; an empty one is left out.
            title: a title for people.
            tool_metadata: a bag of the tool's own.
            provider_metadata: values that go back to the provider.
            turn_id: the turn of a call never heard of; absent: the current one.
            **envelope: ``id``, ``parent_id``, ``meta``.

        Returns:
            The arguments as emitted.
        """
        call = self._calls.get(tool_call_id)
        fault = None
        if input is UNSET:
            input, fault = _read_args("" if call is None else "".join(call.args))
        event = ToolArgsAssembled(
            seq=self._seq,
            tool_call_id=tool_call_id,
            input=input,
            signature=signature or None,
            title=title,
            tool_metadata=tool_metadata,
            provider_metadata=provider_metadata,
            turn_id=turn_id,
            **envelope,
        )
        call = self._call_for_args(event)
        if call is not None:
            self._assemble(call, event, fault)
        return event.input

    def _assemble(self, call: Call, event: ToolArgsAssembled | None = None, fault: str | None = None) -> None:
        """Complete the arguments of a call, from its deltas unless an event has them."""
        if event is None:
            input, fault = _read_args("".join(call.args))
            event = ToolArgsAssembled(seq=self._seq, tool_call_id=call.id, input=input)
        if call.held:
            self._release(call)
        self._put(replace(event, seq=self._seq, tool_call_id=call.id, turn_id=call.turn_id, message_id=call.message_id))
        call.assembled = True
        call.fast = False
        if call.prior is None:
            call.args.clear()
        if fault is not None:
            self._report(
                call.message.turn, "malformed_tool_call", f"the arguments of call {call.id} are no JSON: {fault}"
            )

    def tool_call(
        self,
        tool_call_id: str | None,
        name: str,
        input: JsonValue,
        *,
        index: Number | None = None,
        dynamic: bool | None = None,
        server_name: str | None = None,
        provider_executed: bool | None = None,
        requires_approval: bool | None = None,
        title: str | None = None,
        signature: str | None = None,
        tool_metadata: AgMeta | None = None,
        ui_visibility: ListOf[AgUiVisibility] | None = None,
        item_id: str | None = None,
        provider_metadata: AgProviderMeta | None = None,
        candidate_index: Number | None = None,
        long_running: bool | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        **own: Unpack[OfBlock],
    ) -> str:
        """Emit a whole tool call: `tool_start`, then `tool_args_assembled` (spec §5.0 INV-DELTA).

        Args:
            tool_call_id: as for `tool_start`.
            name: the tool's name.
            input: the arguments.
            index: as for `tool_start`.
            dynamic: as for `tool_start`.
            server_name: as for `tool_start`.
            provider_executed: as for `tool_start`.
            requires_approval: as for `tool_start`.
            title: a title for people.
            signature: as for `tool_args_assembled`.
            tool_metadata: a bag of the tool's own.
            ui_visibility: who may call the tool.
            item_id: the OpenAI Responses item.
            provider_metadata: values that go back to the provider.
            candidate_index: which candidate; absent is 0.
            long_running: the result comes much later.
            turn_id: as for `text_start`.
            message_id: as for `text_start`.
            **own: ``parent_id``, ``meta``; they ride on the start.

        Returns:
            The call's id as emitted.
        """
        turn = self._owner(turn_id, message_id)
        start = ToolStart(
            seq=self._seq,
            tool_call_id=tool_call_id or "",
            name=name,
            index=index,
            dynamic=dynamic,
            server_name=server_name,
            provider_executed=provider_executed,
            requires_approval=requires_approval,
            title=title,
            tool_metadata=tool_metadata,
            ui_visibility=ui_visibility,
            item_id=item_id,
            provider_metadata=provider_metadata,
            candidate_index=candidate_index,
            long_running=long_running,
            turn_id=turn.id,
            message_id=message_id,
            **own,
        )
        assembled = ToolArgsAssembled(
            seq=self._seq, tool_call_id=tool_call_id or "", input=input, signature=signature or None
        )
        check_members(assembled)
        if turn.closed is not None:
            self._refuse_closed(start, turn)
            self._refuse_closed(assembled, turn)
            return tool_call_id or ""
        call = self._start_call(start, turn, tool_call_id)
        self._assemble(call, assembled)
        return call.id

    def _before_seal(self, message: Message) -> None:
        super()._before_seal(message)
        for block in message.blocks:
            if isinstance(block, Call) and block.live and not block.assembled:
                self._assemble(block)


def _read_args(text: str) -> tuple[JsonValue, str | None]:
    """The value that the text of arguments stands for; a text that is no JSON is kept, with what is wrong."""
    if not text.strip():
        return {}, None
    if not whole_characters(text):
        text = "".join(join_halves(text))
    try:
        return json.loads(text, parse_constant=_refuse_constant), None
    except (ValueError, RecursionError) as error:
        return {"INVALID_JSON": text}, str(error) or type(error).__name__


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
