"""Tool results of the emitter (spec §2.1, §2.2, §5 tool.done, §8 item 15)."""

from __future__ import annotations

from typing import Any, Unpack

from msgspec.structs import replace

from agjson._emit.base import Gate
from agjson._emit.calls import EmitterCalls
from agjson._emit.reasoning import without_empty_opaque
from agjson._emit.settings import EmitterSettings
from agjson._emit.state import Call, Message, OfMessage, Turn
from agjson.types import (
    UNSET,
    AgBlock,
    AgMeta,
    AgPendingInput,
    AgProviderMeta,
    AgToolOutcome,
    JsonValue,
    ListOf,
    Number,
    ToolDone,
    UnsetType,
)

__all__ = ["KEPT", "EmitterResults", "agreeing"]

KEPT = (
    "outcome",
    "structured_content",
    "ui_data",
    "side_data",
    "error_code",
    "provider_metadata",
    "tool_metadata",
    "dynamic",
)
"""What a later result of the same call keeps from a partial one unless it says otherwise (spec §2.2)."""


class EmitterResults(EmitterCalls):
    """Tool results."""

    def __init__(self, turn_id: str, thread_id: str, settings: EmitterSettings, gate: Gate | None) -> None:
        super().__init__(turn_id, thread_id, settings, gate)
        # What the partial results of a call have said, and the message that holds them.
        self._partials: dict[str, tuple[dict[str, Any], Message]] = {}

    def tool_done(
        self,
        tool_call_id: str,
        content: ListOf[AgBlock] = (),
        *,
        name: str | None = None,
        outcome: AgToolOutcome | None = None,
        structured_content: JsonValue | UnsetType = UNSET,
        ui_data: JsonValue | UnsetType = UNSET,
        side_data: JsonValue | UnsetType = UNSET,
        error_text: str | None = None,
        error_code: str | None = None,
        provider_metadata: AgProviderMeta | None = None,
        tool_metadata: AgMeta | None = None,
        dynamic: bool | None = None,
        pending_input: AgPendingInput | None = None,
        is_error: bool | None = None,
        skip_summarization: bool | None = None,
        more: bool | None = None,
        candidate_index: Number | None = None,
        message_id: str | None = None,
        turn_id: str | None = None,
        in_place: bool = False,
        as_emitted: bool = False,
        **envelope: Unpack[OfMessage],
    ) -> str | None:
        """Land the result of a tool call (spec §5 tool.done, §2.1, §2.2, §8 item 15).

        Where it lands: in the message that `message_id` names, which it adopts; else in the open message, if that holds
        the call (a server tool) or is of role ``tool``, and the result is not partial; else in a message of its own,
        ``<toolCallId>:result``. With `in_place` it lands like any block, in the open message. A call never heard of, in
        this invoke or the thread, is announced first.

        After a partial result the next one replaces it in its place and restates what it leaves out. Flags that
        contradict the outcome move to ``_meta`` under ``agjson/<field>``; without an outcome they decide it.

        Args:
            tool_call_id: the call, by native or emitted id, of this invoke or of an earlier one.
            content: what the model reads.
            name: the tool's name, for a call never heard of.
            outcome: how the call ended.
            structured_content: the structured form that the model also gets.
            ui_data: for the surface alone.
            side_data: for the app alone.
            error_text: the error in words.
            error_code: a server tool's error code.
            provider_metadata: values that go back to the provider.
            tool_metadata: a bag of the tool's own.
            dynamic: the tool was not known beforehand.
            pending_input: what an ``input_required`` result waits for.
            is_error: MCP's flag.
            skip_summarization: the model need not comment on it.
            more: the result is partial.
            candidate_index: which candidate; absent is 0.
            message_id: the id that the result's own message takes: ``<id>#2`` where a message has it already that is no
                open tool message of the turn. With `in_place` as for `text_start`.
            turn_id: the turn; absent: that of the call while it is open, else the current one.
            in_place: the result is part of what the model says, as that of a tool which the provider runs: it lands in
                the open message also where the call is in an earlier one (spec §5 message partitioning: a `tool.done`
                without ``messageId`` attaches to the open message). A message is started where none is open.
            as_emitted: the id of the call is an emitted one, as clients know it, so that another call which bears it as
                its native id is not meant.
            **envelope: ``id``, ``parent_id``, ``meta``.

        Returns:
            The id of the message where the result landed; None if it was refused because its turn is closed.

        Raises:
            TypeError: `content` is a string.
        """
        if isinstance(content, str):  # a string is iterable too, and its characters are no blocks
            raise TypeError("content is a list of blocks: [TextBlock(text=...)]")
        call = self._call(tool_call_id, as_emitted=as_emitted)
        if turn_id is None and call is not None and call.message.turn.closed is None:
            turn = call.message.turn
        else:
            turn = self._owner(turn_id)
        fields: dict[str, Any] = {
            "outcome": outcome,
            "structured_content": structured_content,
            "ui_data": ui_data,
            "side_data": side_data,
            "error_text": error_text,
            "error_code": error_code,
            "provider_metadata": provider_metadata,
            "tool_metadata": tool_metadata,
            "dynamic": dynamic,
            "pending_input": pending_input,
            "is_error": is_error,
            "meta": envelope.pop("meta", None),
        }
        event = ToolDone(
            seq=self._seq,
            tool_call_id=tool_call_id,
            content=[without_empty_opaque(block) for block in content],
            skip_summarization=skip_summarization,
            more=more or None,
            candidate_index=candidate_index,
            message_id=message_id,
            turn_id=turn.id,
            **envelope,
            **agreeing(fields, partial=bool(more)),
        )
        if turn.closed is not None:
            self._refuse_closed(event, turn)
            return None
        id = self._call_ref(tool_call_id, as_emitted=as_emitted)
        if id is None:
            call = self._announce(tool_call_id, name, turn, message_id if in_place else None)
            id = call.id
        if call is not None and not call.assembled and not call.message.removed:
            self._assemble(call)
        partial: dict[str, Any] = {}
        held_by: Message | None = None
        if id in self._partials and not self._partials[id][1].removed:
            partial, held_by = self._partials[id]
        if held_by is None and in_place:
            landing, is_new = self._home(turn, message_id, candidate_index), False
            event = replace(event, candidate_index=landing.candidate or candidate_index)
        elif held_by is None:
            landing, is_new = self._landing(event, call, turn, id)
        elif held_by.turn.closed is not None or not (held_by.open or held_by.adopted):
            self._refuse(
                event, held_by.turn, "result_sealed", f"the partial result of call {id} can no longer be replaced"
            )
            return None
        else:
            landing, is_new = held_by, False
        if partial:
            fields = {**{name: getattr(event, name) for name in fields}, **partial, **_kept(event)}
            event = replace(event, **agreeing(fields, partial=bool(more)))
        in_open_message = landing.open and held_by is None and (in_place or message_id is None)
        if not in_open_message and message_id is not None and landing.id != message_id:
            event = replace(event, meta={**(event.meta or {}), "agjson/nativeMessageId": message_id})
        self._put(
            replace(
                event,
                seq=self._seq,
                tool_call_id=id,
                message_id=None if in_open_message else landing.id,
                turn_id=landing.turn.id,
            )
        )
        if is_new:
            self._messages[landing.native or landing.id] = self._messages[landing.id] = landing
            self._used.add(landing.id)
            turn.messages.append(landing)
        if more:
            self._partials[id] = (_kept(event), landing)
        else:
            self._partials.pop(id, None)
        return landing.id

    def _landing(self, event: ToolDone, call: Call | None, turn: Turn, id: str) -> tuple[Message, bool]:
        """The message that a first result goes to, and whether it is a new one."""
        named = event.message_id
        if not named:
            pointer = turn.pointers.get(event.candidate_index or 0)
            own = call is not None and pointer is call.message
            if pointer is not None and not event.more and (own or pointer.role == "tool"):
                return pointer, False
            named = f"{id}:result"
        else:
            message = self._messages.get(named)
            if message is not None and message.turn is turn and message.takes_results:
                return message, False
        return Message(self._renamed(named, self._messages), turn, None, native=named), True


def _kept(event: ToolDone) -> dict[str, Any]:
    return {name: value for name in KEPT if (value := getattr(event, name)) is not None and value is not UNSET}


def agreeing(fields: dict[str, Any], *, partial: bool) -> dict[str, Any]:
    """Fields of a result that say the same (spec §2, §2.2): flags against the outcome move into ``meta``.

    A partial result carries none of the flags, as its final result could not take them back.

    Args:
        fields: the fields of the result; flags that move are set to None in it.
        partial: the result is not the last of its call.

    Returns:
        The fields to use, ``outcome`` and ``meta`` among them.
    """
    outcome = fields["outcome"]
    if outcome is None:
        if fields["error_text"] is not None or fields["is_error"]:
            outcome = "error"
        elif fields["pending_input"] is not None:
            outcome = "input_required"
    aside: dict[str, Any] = {}
    if fields["error_text"] is not None and (outcome != "error" or partial):
        aside["agjson/errorText"] = fields["error_text"]
        fields["error_text"] = None
    if fields["is_error"] is not None and (partial or fields["is_error"] != (outcome == "error")):
        aside["agjson/isError"] = fields["is_error"]
        fields["is_error"] = None
    if fields["pending_input"] is not None and (outcome != "input_required" or partial):
        aside["agjson/pendingInput"] = fields["pending_input"]
        fields["pending_input"] = None
    meta: AgMeta | None = fields["meta"]
    return {**fields, "outcome": outcome, "meta": {**(meta or {}), **aside} if aside else meta}
