"""How turns end, pause and nest in the emitter, and the snapshot that starts a fold again (spec §5.0, §7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from msgspec.structs import replace

from agjson._emit.base import TRUNCATED, Gate
from agjson._emit.blocks import EmitterBlocks
from agjson._emit.settings import EmitterSettings
from agjson._emit.state import Envelope, Message, OfMessage, Turn
from agjson._members import check_members
from agjson.types import (
    UNSET,
    AgArtifact,
    AgAskKind,
    AgAuthConfig,
    AgChoice,
    AgContinuation,
    AgEvent,
    AgFinishReason,
    AgGrantMode,
    AgMemoryRecord,
    AgMessage,
    AgMeta,
    AgOutcome,
    AgPausedAsk,
    AgResumeBinding,
    AgSafety,
    AgTurnRecord,
    AgUsage,
    HitlAsk,
    JsonValue,
    ListOf,
    MessagesSnapshot,
    Number,
    PausedOutcome,
    SubagentDone,
    SubagentStart,
    SuccessOutcome,
    ToolCallBlock,
    TurnAbort,
    TurnDone,
    TurnError,
    UnsetType,
)

__all__ = ["EmitterTurns"]


class EmitterTurns(EmitterBlocks):
    """Terminals, asks, nested turns, snapshots."""

    def __init__(self, turn_id: str, thread_id: str, settings: EmitterSettings, gate: Gate | None) -> None:
        super().__init__(turn_id, thread_id, settings, gate)
        self._open_asks = settings.get("open_asks", ())
        self._asks: dict[str, AgPausedAsk] = {}

    # Terminals

    def turn_done(
        self,
        *,
        outcome: AgOutcome | None = None,
        finish_reason: AgFinishReason = "stop",
        usage: AgUsage | None = None,
        safety: ListOf[AgSafety] | None = None,
        message_id: str | None = None,
        message_metadata: JsonValue | UnsetType = UNSET,
        task_state: str | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[OfMessage],
    ) -> None:
        """Close a turn that ended by itself (spec §5 turn.done). For a pause use `turn_paused`.

        Before it, open messages of the turn end as by `message_end`, and turns nested in it that are still open are
        aborted (``parent-closed``). After the close of a nested turn its `subagent.done`
        follows. A turn that is closed already takes no second terminal: it becomes a visible non-terminal `error`.

        Args:
            outcome: how it ended; absent: success.
            finish_reason: why the model stopped.
            usage: its tokens, verbatim.
            safety: safety ratings.
            message_id: the message that `message_metadata` goes to, by native or emitted id; absent: the open one, else
                the turn's last.
            message_metadata: the app's bag for that message.
            task_state: a verbatim A2A task state.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``parent_id``, ``meta``.
        """
        turn = self._owner(turn_id)
        event = TurnDone(
            seq=self._seq,
            turn_id=turn.id,
            outcome=outcome or SuccessOutcome(),
            finish_reason=finish_reason,
            usage=usage,
            safety=safety,
            message_id=message_id,
            message_metadata=message_metadata,
            task_state=task_state,
            **envelope,
        )
        self._finish(turn, event)

    def _finish(self, turn: Turn, event: TurnDone) -> None:
        if turn.closed is not None:
            self._refuse_second(event, turn)
            return
        check_members(event)  # before anything is closed for it
        outcome = event.outcome
        if isinstance(outcome, PausedOutcome):
            event = self._pausing(turn, event, outcome)
        elif event.finish_reason == "paused":
            result = outcome.result if isinstance(outcome, SuccessOutcome) else UNSET
            event = self._pausing(turn, event, PausedOutcome(asks=[], result=result))
        else:
            turn.asks.clear()
        for message in list(self._open_messages.values()):
            if message.turn is turn:
                self._before_seal(message)
        event = self._with_target(turn, event)
        self._close(turn, lambda seq: replace(event, seq=seq))

    def _refuse_second(self, event: TurnDone | TurnError | TurnAbort, turn: Turn) -> None:
        self._refuse(event, turn, "turn_closed", f"a second end of turn {turn.id}, which {turn.closed} has closed")

    def _with_target(self, turn: Turn, event: TurnDone) -> TurnDone:
        """The event with the message that takes its metadata; without one the metadata is refused apart."""
        if event.message_id is None and event.message_metadata is UNSET:
            return event
        target = self._metadata_target(turn, event.message_id)
        if target is not None:
            return replace(event, message_id=target)
        self._refuse(event, turn, "unknown_message", f"turn.done names message {event.message_id}, which is not there")
        return replace(event, message_id=None, message_metadata=UNSET)

    def turn_paused(
        self,
        asks: ListOf[AgPausedAsk] | None = None,
        *,
        result: JsonValue | UnsetType = UNSET,
        usage: AgUsage | None = None,
        safety: ListOf[AgSafety] | None = None,
        message_id: str | None = None,
        message_metadata: JsonValue | UnsetType = UNSET,
        task_state: str | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[OfMessage],
    ) -> None:
        """Close a turn that waits for people: `turn.done` with a paused outcome (spec §7).

        Asks that the turn or a turn nested in it has opened are always among those that it waits for. A nested turn
        that is still open pauses with it if it has asks, else it is aborted. A pause without any ask is no pause: the
        turn ends with finish reason ``other``, after an `error` (``paused_without_ask``).

        Args:
            asks: further asks that it waits for, such as those of an earlier turn which are still unanswered; one that
                no `hitl_ask` has opened, here or in the thread, is opened first.
            result: a partial value from before the pause.
            usage: its tokens, verbatim.
            safety: safety ratings.
            message_id: as for `turn_done`.
            message_metadata: as for `turn_done`.
            task_state: a verbatim A2A task state.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``parent_id``, ``meta``.
        """
        turn = self._owner(turn_id)
        event = TurnDone(
            seq=self._seq,
            turn_id=turn.id,
            outcome=PausedOutcome(asks=list(asks or ()), result=result),
            finish_reason="paused",
            usage=usage,
            safety=safety,
            message_id=message_id,
            message_metadata=message_metadata,
            task_state=task_state,
            **envelope,
        )
        self._finish(turn, event)

    def _pausing(self, turn: Turn, event: TurnDone, outcome: PausedOutcome) -> TurnDone:
        named: dict[str, AgPausedAsk] = {}
        for ask in outcome.asks:
            id = self._open_ask(turn, ask)
            named[id] = self._asks.get(id, ask)
        for child in [turn, *self._turns_within(turn)]:
            named.update(child.asks)
        for child in reversed(list(self._open_turns.values())):
            if child.is_within(turn) and (asks := self._asks_within(child)):
                self._pause_nested(child, asks)
        if not named:
            self._report(turn, "paused_without_ask", f"turn {turn.id} pauses without an ask")
            return replace(event, outcome=SuccessOutcome(result=outcome.result), finish_reason="other")
        return replace(
            event, outcome=PausedOutcome(asks=list(named.values()), result=outcome.result), finish_reason="paused"
        )

    def _pause_nested(self, turn: Turn, asks: list[AgPausedAsk]) -> None:
        for message in list(self._open_messages.values()):
            if message.turn is turn:
                self._before_seal(message)
        outcome = PausedOutcome(asks=asks)
        self._close(turn, lambda seq: TurnDone(seq=seq, turn_id=turn.id, outcome=outcome, finish_reason="paused"))

    def _turns_within(self, turn: Turn) -> list[Turn]:
        return [child for child in self._opened if child.is_within(turn)]

    def _asks_within(self, turn: Turn) -> list[AgPausedAsk]:
        return [ask for child in [turn, *self._turns_within(turn)] for ask in child.asks.values()]

    def turn_error(
        self,
        message: str,
        *,
        code: str | None = None,
        retriable: bool | None = None,
        usage: AgUsage | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Close a turn that failed (spec §5 turn.error); what closes with it is said at `turn_done`.

        Args:
            message: the error in words.
            code: the error's code.
            retriable: whether trying again may help.
            usage: what the turn had cost by then, verbatim.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner(turn_id)
        event = TurnError(
            seq=self._seq,
            message=message,
            code=code,
            retriable=retriable,
            usage=usage,
            turn_id=turn.id,
            **envelope,
        )
        self._terminate(turn, event, lambda seq: replace(event, seq=seq))

    def turn_abort(
        self,
        reason: str | None = None,
        *,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Close a turn that was cut off (spec §5 turn.abort, §8 item 17); what closes with it is said at `turn_done`.

        Args:
            reason: why. ``stream-truncated`` tells readers that a flush has begun, so it is left to `flush` and becomes
                ``truncated`` here.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner(turn_id)
        reason = "truncated" if reason == TRUNCATED else reason
        event = TurnAbort(seq=self._seq, reason=reason, turn_id=turn.id, **envelope)
        self._terminate(turn, event, lambda seq: replace(event, seq=seq))

    def _terminate(self, turn: Turn, event: TurnError | TurnAbort, make: Callable[[int], AgEvent]) -> None:
        if turn.closed is not None:
            self._refuse_second(event, turn)
        else:
            check_members(event)
            turn.asks.clear()
            self._close(turn, make)

    # Nested turns

    def subagent_start(
        self,
        turn_id: str | None = None,
        *,
        parent_turn_id: str | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> str:
        """Open a nested turn; it is the current one until it closes (spec §5 subagent.start, §8 item 16).

        Opening an open nested turn again emits only what it adds.

        Args:
            turn_id: the native id; absent: one is derived.
            parent_turn_id: the enclosing turn; absent: the current one. An id never heard of is a mere label.
            agent_id: the agent that runs it.
            agent_name: its name for people.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The turn's id as emitted: ``<id>#2`` where a closed turn or the thread has it already. The native id stays
            usable in later calls and leads to this turn.
        """
        known = self._turns.get(turn_id) if turn_id else None
        if known is not None and known.nested and known.opened and known.closed is None:
            if agent_id is not None or agent_name is not None or envelope:
                self._put(
                    SubagentStart(
                        seq=self._seq,
                        turn_id=known.id,
                        parent_turn_id=known.parent_id or "",
                        agent_id=agent_id,
                        agent_name=agent_name,
                        **envelope,
                    )
                )
            return known.id
        if self._root.closed is not None or self._flushed:
            self._owner(None)
            label = "" if parent_turn_id is None or parent_turn_id == turn_id else parent_turn_id
            event = SubagentStart(
                seq=self._seq,
                turn_id=turn_id or f"{self._root.id}:turn",
                parent_turn_id=label,
                agent_id=agent_id,
                agent_name=agent_name,
                **envelope,
            )
            self._refuse_closed(event, self._root)
            return turn_id or self._root.id
        turn = self._nested(turn_id, parent_turn_id)
        self._open(turn, agent_id, agent_name, **envelope)
        return turn.id

    def subagent_done(
        self,
        turn_id: str | None = None,
        *,
        outcome: AgOutcome | None = None,
        finish_reason: AgFinishReason = "stop",
        usage: AgUsage | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Close a nested turn whose framework says no more than that it ended; as `turn_done`, then `subagent.done`.

        For a turn that is closed already nothing is emitted: the close has emitted `subagent.done` as well. With asks
        of its own and no outcome the turn is paused.

        Args:
            turn_id: the nested turn, by native or emitted id; absent: the current one.
            outcome: how it ended; absent: success.
            finish_reason: why the model stopped.
            usage: its tokens, verbatim.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``, for the `turn.done`.
        """
        turn = self._turns.get(turn_id) if turn_id else self._current
        if turn is None or not turn.nested:
            owner = self._owner(None)
            done = SubagentDone(seq=self._seq, turn_id=turn_id or "", parent_turn_id=f"{turn_id}:parent", **envelope)
            self._refuse(done, owner, "unknown_turn", f"subagent.done for {turn_id}, which is no nested turn")
        elif turn.closed is None:
            if outcome is None and (asks := self._asks_within(turn)):
                outcome, finish_reason = PausedOutcome(asks=asks), "paused"
            event = TurnDone(
                seq=self._seq,
                turn_id=turn.id,
                outcome=outcome or SuccessOutcome(),
                finish_reason=finish_reason,
                usage=usage,
                **envelope,
            )
            self._finish(turn, event)

    # Asks

    def hitl_ask(
        self,
        kind: AgAskKind,
        *,
        ask_id: str | None = None,
        tool_call_id: str | None = None,
        message: str | None = None,
        schema: JsonValue | UnsetType = UNSET,
        choices: ListOf[AgChoice] | None = None,
        auth_config: AgAuthConfig | None = None,
        url: str | None = None,
        continuation: AgContinuation | None = None,
        reason: str | None = None,
        metadata: AgMeta | None = None,
        request_state: str | None = None,
        input_key: str | None = None,
        resume_binding: AgResumeBinding | None = None,
        ordinal: Number | None = None,
        token: str | None = None,
        expires_at: str | None = None,
        grant_modes: ListOf[AgGrantMode] | None = None,
        turn_id: str | None = None,
        as_emitted: bool = False,
        **envelope: Unpack[Envelope],
    ) -> str:
        """Ask a person (spec §7). The turn pauses on it when `turn_paused` closes the turn.

        Args:
            kind: what the ask wants.
            ask_id: the native id where the framework has one; absent: ``<turnId>:<toolCallId>``, or derived. An id that
                was used before is never opened again (``<id>#2``), unless the emitter was told that it is still
                unanswered.
            tool_call_id: the call that it gates, by native or emitted id; one never heard of moves to
                ``metadata["agjson/toolCallId"]`` and is reported as an `error`.
            message: what the user reads.
            schema: a JSON Schema, for ``form``.
            choices: the options, for ``choice``.
            auth_config: how to authenticate, for ``auth``.
            url: where to send the user, for ``url``.
            continuation: how the source runtime takes the answer.
            reason: why, in words that also reach the model.
            metadata: a free bag.
            request_state: the server's opaque continuation.
            input_key: the one MCP request key that this ask resolves.
            resume_binding: how LangGraph is resumed.
            ordinal: the position among asks of one node, from 0.
            token: the server's proof against forged answers.
            expires_at: an ISO 8601 moment after which no answer counts.
            grant_modes: the scopes to choose from.
            turn_id: the turn; absent: that of the call while it is open, else the current one.
            as_emitted: the id of the call is an emitted one, as for `tool_done`.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The ask's id as emitted.
        """
        call = None if tool_call_id is None else self._call(tool_call_id, as_emitted=as_emitted)
        if turn_id is None and call is not None and call.message.turn.closed is None:
            turn = call.message.turn
        else:
            turn = self._owner(turn_id)
        call_id = None if tool_call_id is None else self._call_ref(tool_call_id, as_emitted=as_emitted)
        if tool_call_id is not None and call_id is None:
            metadata = {**(metadata or {}), "agjson/toolCallId": tool_call_id}
            self._report(turn, "unknown_tool_call", f"an ask names tool call {tool_call_id}, which is not there")
        native = ask_id or (f"{turn.id}:{call_id}" if call_id is not None else None)
        event = HitlAsk(
            seq=self._seq,
            ask_id=native or "",
            kind=kind,
            message=message,
            schema=schema,
            choices=choices,
            auth_config=auth_config,
            url=url,
            tool_call_id=call_id,
            continuation=continuation,
            reason=reason,
            metadata=metadata,
            request_state=request_state,
            input_key=input_key,
            resume_binding=resume_binding,
            ordinal=ordinal,
            token=token,
            expires_at=expires_at,
            grant_modes=grant_modes,
            turn_id=turn.id,
            **envelope,
        )
        return self._ask(turn, event)

    def _ask(self, turn: Turn, event: HitlAsk) -> str:
        """Emit an ask under an id of its own."""
        native = event.ask_id
        if turn.closed is not None:
            self._refuse_closed(event, turn)
            return native
        if not native:
            id = self._derived(turn, "ask")
        elif native in self._open_asks and native not in self._asks:
            id = native
        else:
            id = self._renamed(native, self._asks)
        event = replace(event, seq=self._seq, ask_id=id)
        self._put(event)
        self._used.add(id)
        turn.asks[id] = self._asks[id] = AgPausedAsk(
            **{name: getattr(event, name) for name in AgPausedAsk.__struct_fields__}
        )
        return id

    def has_ask(self, ask_id: str) -> bool:
        """Tell whether this invoke has opened an ask under this id, for frameworks that announce one more than once.

        Args:
            ask_id: the native id of the ask.
        """
        return ask_id in self._asks

    def pending_asks(self, turn_id: str | None = None) -> list[AgPausedAsk]:
        """The asks that a turn, and turns nested in it, have opened, in order.

        Args:
            turn_id: the turn; absent: that of the invoke.
        """
        turn = self._root if turn_id is None else self._turns.get(turn_id)
        return [] if turn is None else self._asks_within(turn)

    def _open_ask(self, turn: Turn, ask: AgPausedAsk) -> str:
        """The id of an ask that a pause names, opened if nothing has opened it."""
        if ask.ask_id in self._asks or ask.ask_id in self._open_asks:
            return ask.ask_id
        fields: dict[str, Any] = {name: getattr(ask, name) for name in ask.__struct_fields__}
        if ask.tool_call_id is not None:
            fields["tool_call_id"] = self._call_ref(ask.tool_call_id)
            if fields["tool_call_id"] is None:
                fields["metadata"] = {**(ask.metadata or {}), "agjson/toolCallId": ask.tool_call_id}
        return self._ask(turn, HitlAsk(seq=self._seq, turn_id=turn.id, **fields))

    # Snapshots

    def messages_snapshot(
        self,
        messages: ListOf[AgMessage],
        *,
        turns: ListOf[AgTurnRecord] | None = None,
        artifacts: ListOf[AgArtifact] | None = None,
        memory: ListOf[AgMemoryRecord] | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Replace the conversation, as a framework does that begins with its history (spec §5, §8 item 11).

        Open messages end first, and new content opens new ones. If the snapshot replaces the turn records, those of
        open turns of this invoke are added where it lacks them, and stay open.

        Args:
            messages: every message in order.
            turns: every turn record; absent leaves them as they are.
            artifacts: every artifact; absent leaves them as they are.
            memory: the thread's memory records.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner(turn_id)
        if any(record.turn_id == self._root.id for record in turns or ()):
            self._ready(self._root)
        for message in list(self._open_messages.values()):
            self._before_seal(message)
            self._seal(message)
        if turns is not None:
            turns = self._with_own_turns(turns)
        self._put(
            MessagesSnapshot(
                seq=self._seq,
                messages=messages,
                turns=turns,
                artifacts=artifacts,
                memory=memory,
                turn_id=turn.id,
                **envelope,
            )
        )
        for own in self._opened:
            for message in own.messages:
                message.removed = True
        for _, message in self._restored_messages:
            message.removed = True
        self._restored_messages.clear()
        self._partials.clear()
        self._known_messages = frozenset[str]()
        self._restored_turns.update(record.turn_id for record in turns or () if record.turn_id not in self._turns)
        for stored in messages:
            self._remember(stored, turn)
        self._after_snapshot(artifacts, memory)

    def _with_own_turns(self, turns: ListOf[AgTurnRecord]) -> list[AgTurnRecord]:
        """The records, and after them those of this invoke in their order; its open turns stay open.

        An open turn names no parent but one that is open too: a reader takes a nested turn to have ended with its
        parent.
        """
        given = {record.turn_id: record for record in turns}
        for turn in self._opened:
            record = given.pop(turn.id, None) or AgTurnRecord(turn_id=turn.id, thread_id=self._thread_id)
            if turn.closed is None:
                parent = turn.parent
                parent_id = parent.id if parent is not None and parent.closed is None else None
                record = replace(record, outcome=None, finish_reason=None, parent_turn_id=parent_id)
            given[turn.id] = record
        return list(given.values())

    def _remember(self, stored: AgMessage, turn: Turn) -> None:
        """Know the ids of a message that a snapshot brought, so that it can be named but not added to."""
        message = Message(stored.id, self._turns.get(stored.turn_id or "", turn), None)
        message.adopted = False
        self._messages[stored.id] = message
        self._restored_messages.append((stored.turn_id, message))
        for block in stored.content:
            if isinstance(block, ToolCallBlock):
                self._restored_calls.add(block.tool_call_id)

    def _after_snapshot(self, artifacts: ListOf[AgArtifact] | None, memory: ListOf[AgMemoryRecord] | None) -> None:
        """Let the side-channels know what a snapshot has replaced."""
