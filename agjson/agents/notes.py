"""What the events of a run mean for its thread beside what they fold to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agjson.agents.thread import ids_of
from agjson.types import (
    AgReduceResult,
    ArtifactStart,
    ContentBlock,
    DataBlock,
    HitlAsk,
    MessagesSnapshot,
    MessageStart,
    ReasoningStart,
    SourceEvent,
    StepStart,
    SubagentStart,
    TextStart,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    ToolStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
)

__all__ = ["NOTED", "Notes", "Terminal"]

Terminal: TypeAlias = TurnDone | TurnError | TurnAbort
"""The event that closes a turn."""


class Notes:
    """Notes of one run.

    Args:
        turn_id: the turn of the run.

    Attributes:
        turn_id: the turn of the run.
        ids: every id that the run has used.
        nested: the turns that ran inside it.
        calls: the calls that have no result yet, with the names of their tools; those that the provider runs are left
            out.
        terminal: what has closed the turn.
    """

    __slots__ = ("calls", "ids", "nested", "terminal", "turn_id")

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.ids: set[str] = set()
        self.nested: set[str] = set()
        self.calls: dict[str, str] = {}
        self.terminal: Terminal | None = None


def _named(attribute: str) -> Callable[[Notes, Any], None]:
    def note(notes: Notes, event: Any) -> None:
        notes.ids.add(getattr(event, attribute))

    return note


def _subagent(notes: Notes, event: SubagentStart) -> None:
    notes.ids.add(event.turn_id)
    if event.turn_id != notes.turn_id:
        notes.nested.add(event.turn_id)


def _terminal(notes: Notes, event: Terminal) -> None:
    if event.turn_id == notes.turn_id:
        notes.terminal = event


def _tool_start(notes: Notes, event: ToolStart) -> None:
    notes.ids.add(event.tool_call_id)
    if not event.provider_executed:
        notes.calls[event.tool_call_id] = event.name


def _tool_done(notes: Notes, event: ToolDone) -> None:
    if event.message_id is not None:
        notes.ids.add(event.message_id)
    if not event.more and event.outcome != "input_required":
        notes.calls.pop(event.tool_call_id, None)


def _block(notes: Notes, event: ContentBlock) -> None:
    block = event.block
    if isinstance(block, ToolCallBlock):
        notes.ids.add(block.tool_call_id)
        if not block.provider_executed:
            notes.calls[block.tool_call_id] = block.name
    elif isinstance(block, ToolResultBlock):
        if block.outcome != "input_required":
            notes.calls.pop(block.tool_call_id, None)
    elif isinstance(block, DataBlock) and block.id is not None:
        notes.ids.add(block.id)


def _snapshot(notes: Notes, event: MessagesSnapshot) -> None:
    fold = AgReduceResult(messages=event.messages, turns=event.turns or [], artifacts=event.artifacts or [], memory=[])
    notes.ids |= ids_of(fold)


NOTED: Mapping[type, Callable[[Notes, Any], None]] = {
    TurnStart: _named("turn_id"),
    SubagentStart: _subagent,
    MessageStart: _named("id"),
    StepStart: _named("id"),
    TextStart: _named("id"),
    ReasoningStart: _named("id"),
    ArtifactStart: _named("artifact_id"),
    SourceEvent: _named("source_id"),
    HitlAsk: _named("ask_id"),
    ToolStart: _tool_start,
    ToolDone: _tool_done,
    ContentBlock: _block,
    MessagesSnapshot: _snapshot,
    TurnDone: _terminal,
    TurnError: _terminal,
    TurnAbort: _terminal,
}
"""What notes an event, by its class; an event of another class says nothing beside what it folds to."""
