"""What a client says that it cannot take, kept from it without loss (spec §3 `AgClientCapabilities`, §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from msgspec.structs import replace

from agjson.types import (
    UNSET,
    AgAskKind,
    AgClientCapabilities,
    AgMemoryRecord,
    AgStreamEvent,
    ErrorEvent,
    ExtEvent,
    HitlAsk,
    JsonValue,
    MemoryWrite,
    MessageEnd,
    MessageMetadata,
    MessageRemove,
    MessagesSnapshot,
    PausedOutcome,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaqueDelta,
    StateDelta,
    StateSnapshot,
    TextDelta,
    TextEnd,
    ToolArgsDelta,
    TurnDone,
    TurnError,
    UnsetType,
)
from agjson.wire import to_dict

__all__ = ["ClientLimits"]

_Delta: TypeAlias = TextDelta | ReasoningDelta

_ALL_ASKS: frozenset[AgAskKind] = frozenset(("approval", "form", "text", "choice", "auth", "url"))


class ClientLimits:
    """Rewrites the events of one invoke for a client that cannot take all of them.

    * No partial messages: the deltas of a block come as one, just before its end; fragments of arguments and of opaque
      values are left out, since the whole value follows.
    * No JSON Patch: a `state.delta` becomes a `state.snapshot`, a patch of a memory record its new value.
    * Asks that it cannot answer become an `error` (``unsupported_ask``), and a turn that pauses on one ends as
      `turn.error` of that code. What a `turn.error` has no member for goes beside it: ``messageMetadata`` into the
      metadata of its message, as ``agjson/messageMetadata``; ratings, task state and result into
      ``_meta["agjson/refused"]``.

    What is left folds to the same messages. Ordinals are counted anew.

    Args:
        capabilities: what the client said; None: nothing.
        state: the shared state of the thread.
        memory: the memory records of the thread.
    """

    _CODE: ClassVar[str] = "unsupported_ask"

    def __init__(
        self,
        capabilities: AgClientCapabilities | None,
        *,
        state: JsonValue | UnsetType = UNSET,
        memory: Sequence[AgMemoryRecord] = (),
    ) -> None:
        streaming = None if capabilities is None else capabilities.streaming
        state_record = None if capabilities is None else capabilities.state
        self._whole = streaming is not None and streaming.partial_messages is False
        self._no_patch = state_record is not None and state_record.json_patch is False
        self._refused = _refused_asks(capabilities)
        self._state = state
        self._memory: dict[tuple[str, str], JsonValue] = {
            (record.scope, record.key or ""): record.value for record in memory
        }
        # The deltas of each open block: those that say the same but for the text are one, with the texts beside it.
        self._deltas: dict[str, list[tuple[_Delta, list[str]]]] = {}
        self._seq = 0
        self._out: list[AgStreamEvent] = []
        self._handlers: dict[type, Callable[[Any], None]] = {}
        if self._whole:
            self._handlers |= {
                TextDelta: self._delta,
                ReasoningDelta: self._delta,
                TextEnd: self._block_end,
                ReasoningEnd: self._block_end,
                MessageEnd: self._message_end,
                MessageRemove: self._message_remove,
                ToolArgsDelta: self._left_out,
                ReasoningOpaqueDelta: self._left_out,
            }
        if self._no_patch:
            self._handlers |= {
                StateSnapshot: self._state_snapshot,
                StateDelta: self._state_delta,
                MemoryWrite: self._memory_write,
                MessagesSnapshot: self._messages_snapshot,
            }
        if self._refused:
            self._handlers |= {HitlAsk: self._ask, TurnDone: self._turn_done}

    @property
    def is_needed(self) -> bool:
        """Whether the client has any limit at all."""
        return bool(self._handlers)

    def apply(self, events: Sequence[AgStreamEvent]) -> list[AgStreamEvent]:
        """The events as the client can take them.

        Args:
            events: the next ones, in order.
        """
        handlers = self._handlers
        for event in events:
            handle = handlers.get(type(event))
            if handle is None:
                self._put(event)
            else:
                handle(event)
        out, self._out = self._out, []
        return out

    def _put(self, event: AgStreamEvent) -> None:
        self._out.append(_with_seq(event, self._seq))
        self._seq += 1

    # Whole blocks

    def _left_out(self, event: AgStreamEvent) -> None:
        pass

    def _delta(self, event: _Delta) -> None:
        parts = self._deltas.setdefault(event.id, [])
        if parts and _continues(parts[-1][0], event):
            parts[-1][1].append(event.delta)
        else:
            parts.append((event, [event.delta]))

    def _block_end(self, event: TextEnd | ReasoningEnd) -> None:
        self._release(event.id)
        self._put(event)

    def _message_end(self, event: MessageEnd) -> None:
        self._release_of(event.id)
        self._put(event)

    def _message_remove(self, event: MessageRemove) -> None:
        self._release_of(None if event.id == "*" else event.id)
        self._put(event)

    def _release(self, block_id: str) -> None:
        for delta, texts in self._deltas.pop(block_id, ()):
            self._put(replace(delta, delta="".join(texts)))

    def _release_of(self, message_id: str | None) -> None:
        """Let go what is held for the blocks of a message, or of all messages."""
        for block_id, parts in list(self._deltas.items()):
            if message_id is None or parts[0][0].message_id == message_id:
                self._release(block_id)

    # Values in place of patches

    def _state_snapshot(self, event: StateSnapshot) -> None:
        self._state = event.snapshot
        self._put(event)

    def _state_delta(self, event: StateDelta) -> None:
        patch = event.patch
        if isinstance(patch, list):
            self._state = _patched(self._state, patch)
        elif isinstance(patch, Mapping):
            self._state = _merged(self._state, patch)
        self._put(
            StateSnapshot(
                seq=0,
                snapshot=None if self._state is UNSET else self._state,
                id=event.id,
                turn_id=event.turn_id,
                message_id=event.message_id,
                parent_id=event.parent_id,
                meta=event.meta,
            )
        )

    def _memory_write(self, event: MemoryWrite) -> None:
        place = (event.scope, event.key or "")
        if event.value is UNSET:
            value = _patched(self._memory.get(place, UNSET), event.patch)
            event = replace(event, value=value, patch=UNSET)
        assert event.value is not UNSET
        self._memory[place] = event.value
        self._put(event)

    def _messages_snapshot(self, event: MessagesSnapshot) -> None:
        for record in event.memory or ():
            if record.scope == "thread":
                self._memory[record.scope, record.key or ""] = record.value
        self._put(event)

    # Asks that nobody can answer

    def _ask(self, event: HitlAsk) -> None:
        if event.kind not in self._refused:
            self._put(event)
            return
        self._put(
            ErrorEvent(
                seq=0,
                message=f"the client cannot answer ask {event.ask_id} of kind {event.kind}",
                code=self._CODE,
                turn_id=event.turn_id,
            )
        )

    def _turn_done(self, event: TurnDone) -> None:
        outcome = event.outcome
        if not isinstance(outcome, PausedOutcome):
            self._put(event)
            return
        refused = sorted({ask.kind for ask in outcome.asks} & self._refused)
        if not refused:
            self._put(event)
            return
        if event.message_metadata is not UNSET:
            self._put(
                MessageMetadata(
                    seq=0,
                    metadata={"agjson/messageMetadata": event.message_metadata},
                    message_id=event.message_id,
                    turn_id=event.turn_id,
                )
            )
        beside = _without_place(event, outcome)
        self._put(
            TurnError(
                seq=0,
                message=f"the turn waits for an answer that the client cannot give ({', '.join(refused)})",
                code=self._CODE,
                retriable=False,
                usage=event.usage,
                turn_id=event.turn_id,
                id=event.id,
                parent_id=event.parent_id,
                meta={**(event.meta or {}), "agjson/refused": beside} if beside else event.meta,
            )
        )


def _refused_asks(capabilities: AgClientCapabilities | None) -> frozenset[AgAskKind]:
    """The kinds of asks that a client says it cannot answer; what it does not mention it can."""
    hitl = None if capabilities is None else capabilities.hitl
    if hitl is None:
        return frozenset()
    if hitl.ask is False:
        return _ALL_ASKS
    kinds: list[AgAskKind] = []
    if hitl.form is False:
        kinds.append("form")
    if hitl.auth is False:
        kinds.append("auth")
    return frozenset(kinds)


def _without_place(event: TurnDone, outcome: PausedOutcome) -> dict[str, JsonValue]:
    """What a pause says that a `turn.error` has no member for, by wire names."""
    beside: dict[str, JsonValue] = {}
    if event.safety:
        beside["safety"] = [to_dict(rating) for rating in event.safety]
    if event.task_state is not None:
        beside["taskState"] = event.task_state
    if outcome.result is not UNSET:
        beside["result"] = outcome.result
    return beside


def _with_seq(event: AgStreamEvent, seq: int) -> AgStreamEvent:
    if event.seq == seq:
        return event
    if isinstance(event, ExtEvent):
        return ExtEvent(
            event.type, seq, event.payload, event.id, event.turn_id, event.message_id, event.parent_id, event.meta
        )
    return replace(event, seq=seq)


def _continues(last: _Delta, event: _Delta) -> bool:
    """Whether two deltas of a block say the same but for their text."""
    return (
        last.provider_metadata is None
        and event.provider_metadata is None
        and last.meta is None
        and event.meta is None
        and last.parent_id == event.parent_id
        and getattr(last, "part_index", None) == getattr(event, "part_index", None)
    )


def _patched(value: JsonValue | UnsetType, patch: Any) -> JsonValue:
    """The emitter lets no patch out that fails, so this one does not."""
    from agjson.fold.patch import apply_patch

    patched: JsonValue = apply_patch(None if value is UNSET else value, patch)
    return patched


def _merged(state: JsonValue | UnsetType, update: Mapping[str, JsonValue]) -> JsonValue:
    merged: dict[str, JsonValue] = dict(state) if isinstance(state, Mapping) else {}
    for node, values in update.items():
        old = merged.get(node)
        merged[node] = {**old, **values} if isinstance(old, Mapping) and isinstance(values, Mapping) else values
    return merged
