"""The emitter: the engine that every adapter calls to write a well-formed stream (spec §5.0, §8.0, §12).

An adapter says what happened in its framework; the emitter makes events of it that any conformant fold takes without
parking, whatever the order of the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Unpack

import msgspec
from msgspec.structs import replace

from agjson._emit.calls import NATIVE_CALL_ID, SYNTHESIZED
from agjson._emit.settings import EmitterSettings, OnExcess, refuse_unknown
from agjson._emit.side import EmitterSide
from agjson.errors import AgJSONError, DecodeError
from agjson.types import (
    EVENT_TYPES,
    AgEvent,
    AgProfile,
    AgStreamEvent,
    ExtEvent,
    JsonValue,
    profile_needs,
    profiles_above,
)
from agjson.wire import extra_fields
from agjson.wire._json import plain

__all__ = ["NATIVE_CALL_ID", "SYNTHESIZED", "Emitter", "EmitterSettings", "OnExcess", "ProfileError"]


class ProfileError(AgJSONError):
    """An event needs more than the profile that the stream keeps to, and the emitter was told to refuse (spec §9).

    Attributes:
        event: the event that was not emitted; its ordinal is not used up.
        path: the JSON path of what needs more.
        profile: the profile that it needs.
    """

    def __init__(self, event: AgStreamEvent, path: str, profile: AgProfile) -> None:
        super().__init__(f"{event.type}: {path} needs profile {profile}")
        self.event = event
        self.path = path
        self.profile = profile


class Emitter(EmitterSide):
    """Writes the events of one invoke (spec §8.0). One emitter serves one invoke and one thread of execution.

    Contract: every method appends to a buffer that `drain` empties. A method that opens something returns its id as
    emitted, which may differ from the native id; later calls take either. Arguments mirror the event's fields.

    What the emitter does by itself:

    * stamps ``seq`` from 0 (INV-SEQ) and fills in ``turnId`` and ``messageId`` on every path, `emit` included
      (INV-OWNER);
    * opens a turn before its first event and a message before its first block; continues a block or message that takes
      nothing more under ``<id>#2`` (INV-TURN, INV-MSG);
    * derives ids that contain the turn's, and renames a native id that this invoke or the thread has already
      (INV-BLOCK);
    * slices cumulative texts (``*_cumulative``) and never cuts an emoji in two (INV-DELTA);
    * closes each turn once and what is open in it before; restores the parent of a nested turn that closes.

    What it cannot place is never dropped: it becomes a non-terminal `error` whose ``_meta["agjson/refused"]`` is the
    whole event without its ordinal. Codes: ``turn_closed``, ``message_sealed``, ``block_ended``, ``unknown_block``,
    ``unknown_message``, ``unknown_turn``, ``nested_turn``, ``unknown_tool_call``, ``tool_args_closed``,
    ``result_sealed``, ``patch_failed``. Errors that report without carrying an event: ``cumulative_shrunk``,
    ``cumulative_mismatch``, ``malformed_tool_call``, ``paused_without_ask``.

    Args:
        turn_id: the turn of this invoke; the caller sees to it that the thread does not have it yet.
        thread_id: the conversation.
        **settings: what else is known of the invoke and its thread; `EmitterSettings` explains each.

    Raises:
        TypeError: a keyword is no setting.
        ValueError: the profile is none of the three.
        ValidationError: the turn, thread, trigger or `parent_turn_id` is of the wrong type. Any later method may
            raise it for a member of the wrong type at any depth, which ``path`` names.
        ProfileError: `parent_turn_id` in a stream that refuses what is above CORE, or later an event above the profile.

    Any method may further raise an `EncodeError` for a value without a JSON form. Whatever a method raises, what came
    before in the same call stays emitted, and the stream stays valid.
    """

    def __init__(self, turn_id: str, thread_id: str, **settings: Unpack[EmitterSettings]) -> None:
        refuse_unknown(settings)
        profile = settings.get("profile")
        above = frozenset[AgProfile]() if profile is None else profiles_above(profile)
        gate = _gate(above) if above and settings.get("on_excess") == "refuse" else None
        super().__init__(turn_id, thread_id, settings, gate)

    def emit(self, event: AgStreamEvent) -> None:
        """Emit any event: as the method for its type would, with the event's fields as arguments (INV-OWNER).

        Types without a method of their own (``prompt.blocked``, ``guardrail.result``, ``agent.capabilities``,
        ``host.context``, ``display.required``, ``ui.*``) get their owner filled in. Fields that no spec revision
        declares move to ``_meta["agjson/extra"]``.

        Args:
            event: the event; its ``seq`` is ignored (write 0).

        Raises:
            TypeError: it is no event.
        """
        if isinstance(event, ExtEvent):
            turn = self._owner_beside(event.turn_id, event.message_id)
            put = ExtEvent(
                event.type, self._seq, event.payload, event.id, turn.id, event.message_id, event.parent_id, event.meta
            )
            self._put(put)
            return
        declared = EVENT_TYPES.get(getattr(event, "type", ""))
        if declared is None or not isinstance(event, declared):
            raise TypeError(f"{type(event).__name__} is no event")
        method = _METHODS.get(event.type)
        if method is None:
            self._emit_plain(event)
            return
        fields: dict[str, Any] = {}
        for name, absent in _fields(type(event)):
            value = getattr(event, name)
            if value is not absent:
                fields[name] = value
        extra = extra_fields(event)
        if extra:
            fields["meta"] = _with_extra(event, extra)
        getattr(self, method)(**fields)

    def _emit_plain(self, event: AgEvent) -> None:
        turn = self._owner_beside(event.turn_id, event.message_id)
        changes: dict[str, Any] = {"turn_id": turn.id}
        message = self._messages.get(event.message_id or "")
        if message is not None:
            changes["message_id"] = message.id
        call_id: str | None = getattr(event, "tool_call_id", None)
        if call_id is not None:
            changes["tool_call_id"] = self._call_ref(call_id)
            if changes["tool_call_id"] is None:
                changes["meta"] = {**(event.meta or {}), "agjson/toolCallId": call_id}
        self._put(replace(event, seq=self._seq, **changes))


def _with_extra(event: AgEvent, extra: Mapping[str, msgspec.Raw]) -> dict[str, JsonValue]:
    return {**(event.meta or {}), "agjson/extra": {name: _value_or_text(raw) for name, raw in extra.items()}}


def _value_or_text(raw: msgspec.Raw) -> JsonValue:
    """The value of a field that was kept as text; the text itself where no value can hold it, such as ``1e400``."""
    try:
        value: JsonValue = plain(raw, "$")
    except DecodeError:
        return str(memoryview(raw), "utf-8")
    return value


def _gate(above: frozenset[AgProfile]) -> Callable[[AgStreamEvent], None]:
    def refuse(event: AgStreamEvent) -> None:
        for needed, path in profile_needs(event):
            if needed in above:
                raise ProfileError(event, path, needed)

    return refuse


# What the emitter knows better than an event that is handed to it.
_DERIVED = frozenset(("seq", "thread_id", "preliminary", "last_chunk"))
_OF_BLOCK = frozenset(("turn_id", "message_id"))
_DERIVED_OF: dict[str, frozenset[str]] = {
    "subagent.done": frozenset(("parent_turn_id",)),
    "text.end": _OF_BLOCK,
    "reasoning.end": _OF_BLOCK,
    "reasoning.opaque": _OF_BLOCK,
    "reasoning.opaque.delta": _OF_BLOCK | {"parent_id", "meta"},
    "tool.args.delta": frozenset(("message_id",)),
    "tool.args.assembled": frozenset(("message_id",)),
}


@lru_cache(maxsize=1024)
def _fields(cls: type[msgspec.Struct]) -> list[tuple[str, object]]:
    """The fields that are arguments of the method for an event class, each with the value that means absent."""
    type = str(cls.__struct_config__.tag)
    known_better = _DERIVED | _DERIVED_OF.get(type, frozenset())
    return [
        (field.name, field.default)
        for field in msgspec.structs.fields(EVENT_TYPES.get(type, cls))
        if field.name not in known_better
    ]


_METHODS: dict[str, str] = {
    type: type.replace(".", "_")
    for type in (
        "turn.start",
        "turn.done",
        "turn.error",
        "turn.abort",
        "error",
        "message.start",
        "message.end",
        "message.remove",
        "message.metadata",
        "step.start",
        "step.done",
        "subagent.start",
        "subagent.done",
        "messages.snapshot",
        "text.start",
        "text.delta",
        "text.end",
        "reasoning.start",
        "reasoning.delta",
        "reasoning.end",
        "reasoning.opaque",
        "reasoning.opaque.delta",
        "tool.start",
        "tool.args.delta",
        "tool.args.assembled",
        "tool.done",
        "content.block",
        "source",
        "artifact.start",
        "artifact.delta",
        "artifact.end",
        "handoff",
        "hitl.ask",
        "state.snapshot",
        "state.delta",
        "memory.write",
    )
}
