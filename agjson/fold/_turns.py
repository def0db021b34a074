"""Turns: opening, closing, and the records that land on them (spec §5 turn.*, subagent.*, INV-TURN)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agjson.fold._entities import Message, Turn
from agjson.fold._json import is_object
from agjson.fold._state import Fold, Handlers, Park, quoted
from agjson.types import (
    UNSET,
    AbortedOutcome,
    AgDisplayRequired,
    AgentCapabilities,
    AgGuardrail,
    AgHandoff,
    AgPromptBlocked,
    AgSourceRecord,
    AgTurnRecord,
    DisplayRequired,
    ErrorOutcome,
    GuardrailResult,
    HandoffEvent,
    JsonValue,
    PausedOutcome,
    PromptBlocked,
    SourceEvent,
    SubagentDone,
    SubagentStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
)

__all__ = ["TURN_HANDLERS"]


def _turn_start(fold: Fold, event: TurnStart) -> None:
    turn = fold.turns.get(event.turn_id)
    if turn is None or turn.record is None:
        fold.add_turn(AgTurnRecord(turn_id=event.turn_id, thread_id=event.thread_id, trigger=event.trigger))
        return
    turn.update(thread_id=event.thread_id)
    if event.trigger is not None:
        turn.update(trigger=event.trigger)
    fold.touch_turn(turn)


def _subagent_start(fold: Fold, event: SubagentStart) -> None:
    turn = fold.turns.get(event.turn_id)
    if turn is not None and turn.record is not None:
        turn.update(parent_turn_id=event.parent_turn_id)
        fold.touch_turn(turn)
        return
    parent = fold.turns.get(event.parent_turn_id)
    if parent is not None and parent.record is not None:
        thread_id = parent.record.thread_id
    else:
        # The parent may be a label that no event opens (spec §8.16).
        thread_id = fold.root_thread() or event.parent_turn_id
    record = AgTurnRecord(turn_id=event.turn_id, parent_turn_id=event.parent_turn_id, thread_id=thread_id)
    fold.add_turn(record)


def _subagent_done(fold: Fold, event: SubagentDone) -> None:
    fold.close(fold.recorded(event))


def _turn_done(fold: Fold, event: TurnDone) -> None:
    message: Message | None = None
    if event.message_metadata is not UNSET:
        message = _metadata_target(fold, event)
    turn = fold.recorded(event)
    changes: dict[str, Any] = {"outcome": event.outcome, "finish_reason": event.finish_reason}
    if event.usage is not None:
        changes["usage"] = event.usage
    if event.safety is not None:
        changes["safety"] = event.safety
    if event.task_state is not None:
        changes["task_state"] = event.task_state
    if isinstance(event.outcome, PausedOutcome):
        changes["asks"] = event.outcome.asks
    _close(fold, turn, changes)
    if message is not None and event.message_metadata is not UNSET:
        merged = _merge_opaque(message.base.message_metadata, event.message_metadata)
        message.base = replace(message.base, message_metadata=merged)
        fold.touch(message)


def _metadata_target(fold: Fold, event: TurnDone) -> Message:
    if event.message_id is not None:
        return fold.message(event.message_id)
    turn = fold.turns.get(event.turn_id)
    message = turn.open_message() if turn is not None else None
    if message is None:
        raise Park("INV-OWNER", f"messageMetadata has no open message in turn {quoted(event.turn_id)}")
    return message


def _merge_opaque(old: JsonValue | Any, new: JsonValue) -> JsonValue:
    """Objects merge by key, anything else replaces (spec §5 turn.done ``messageMetadata``)."""
    if is_object(old) and is_object(new):
        return {**old, **new}
    return new


def _turn_error(fold: Fold, event: TurnError) -> None:
    changes: dict[str, Any] = {"outcome": ErrorOutcome(message=event.message, code=event.code)}
    if event.usage is not None:
        changes["usage"] = event.usage
    _close(fold, fold.recorded(event), changes)


def _turn_abort(fold: Fold, event: TurnAbort) -> None:
    _close(fold, fold.recorded(event), {"outcome": AbortedOutcome(reason=event.reason)})


def _close(fold: Fold, turn: Turn, changes: dict[str, Any]) -> None:
    turn.update(**changes)
    fold.touch_turn(turn)
    fold.close(turn)


def _prompt_blocked(fold: Fold, event: PromptBlocked) -> None:
    turn = fold.recorded(event)
    turn.update(prompt_blocked=AgPromptBlocked(reason=event.reason, safety=event.safety))
    if event.safety is not None:
        turn.extend("safety", event.safety)
    fold.touch_turn(turn)


def _agent_capabilities(fold: Fold, event: AgentCapabilities) -> None:
    turn = fold.recorded(event)
    turn.update(capabilities=event.capabilities)
    fold.touch_turn(turn)


def _guardrail_result(fold: Fold, event: GuardrailResult) -> None:
    verdict = AgGuardrail(
        target=event.target,
        passed=event.passed,
        action=event.action,
        reason=event.reason,
        guardrail_name=event.guardrail_name,
        safety=event.safety,
    )
    _append(fold, fold.recorded(event), "guardrails", verdict)


def _source(fold: Fold, event: SourceEvent) -> None:
    record = AgSourceRecord(
        source_id=event.source_id,
        source=event.source,
        chunk_index=event.chunk_index,
        provider_metadata=event.provider_metadata,
    )
    turn = fold.recorded(event)
    turn.extend("source_ids", (event.source_id,))
    _append(fold, turn, "sources", record)


def _handoff(fold: Fold, event: HandoffEvent) -> None:
    edge = AgHandoff(
        kind=event.kind,
        from_agent_id=event.from_agent_id,
        to_agent_id=event.to_agent_id,
        to_agent_name=event.to_agent_name,
    )
    _append(fold, fold.recorded(event), "handoffs", edge)


def _display_required(fold: Fold, event: DisplayRequired) -> None:
    shown = AgDisplayRequired(provider=event.provider, html=event.html)
    _append(fold, fold.recorded(event), "display_required", shown)


def _append(fold: Fold, turn: Turn, name: str, item: Any) -> None:
    turn.extend(name, (item,))
    fold.touch_turn(turn)


TURN_HANDLERS: Handlers = {
    TurnStart: _turn_start,
    TurnDone: _turn_done,
    TurnError: _turn_error,
    TurnAbort: _turn_abort,
    SubagentStart: _subagent_start,
    SubagentDone: _subagent_done,
    PromptBlocked: _prompt_blocked,
    AgentCapabilities: _agent_capabilities,
    GuardrailResult: _guardrail_result,
    SourceEvent: _source,
    HandoffEvent: _handoff,
    DisplayRequired: _display_required,
}
"""What the events of turns and their records do to the fold."""
