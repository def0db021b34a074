"""What the events of a run mean for its thread beside what they fold to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from agjson.agents.thread import is_final
from agjson.known_ids import KnownIds
from agjson.types import (
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    AgToolOutcome,
    ArtifactStart,
    ContentBlock,
    DataBlock,
    HitlAsk,
    MessagesSnapshot,
    MessageStart,
    PausedOutcome,
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

__all__ = ["NOTED", "Notes", "Terminal", "note"]

Terminal: TypeAlias = TurnDone | TurnError | TurnAbort
"""The event that closes a turn."""

_KINDS = tuple(field.name for field in fields(KnownIds))


class Notes:
    """Notes of one run.

    Args:
        turn_id: the turn of the run.

    Attributes:
        turn_id: the turn of the run.
        nested: the turns that ran inside it.
        calls: the calls that have no result yet, with the names of their tools; those that the provider runs are left
            out.
        outcomes: how the calls have ended whose result came in this run.
        asked: what was asked, in order.
        terminal: what has closed the turn.
    """

    __slots__ = ("_ids", "asked", "calls", "nested", "outcomes", "terminal", "turn_id")

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self._ids: dict[str, set[str]] = {kind: set() for kind in _KINDS}
        self.nested: set[str] = set()
        self.calls: dict[str, str] = {}
        self.outcomes: dict[str, AgToolOutcome] = {}
        self.asked: dict[str, HitlAsk] = {}
        self.terminal: Terminal | None = None

    @property
    def ids(self) -> KnownIds:
        """Every id that the run has used so far."""
        return KnownIds(**self._ids)

    @property
    def asks(self) -> tuple[AgPausedAsk, ...]:
        """The asks that the turn has paused on."""
        outcome = self.terminal.outcome if isinstance(self.terminal, TurnDone) else None
        return tuple(outcome.asks) if isinstance(outcome, PausedOutcome) else ()

    def use(self, kind: str, id: str) -> None:
        """Note an id.

        Args:
            kind: what bears it: a field of `KnownIds`.
            id: the id.
        """
        self._ids[kind].add(id)

    def use_all(self, ids: KnownIds) -> None:
        """Note many ids.

        Args:
            ids: the ids.
        """
        for kind, used in self._ids.items():
            used |= getattr(ids, kind)


def _bears(kind: str, attribute: str) -> Callable[[Notes, Any], None]:
    def note(notes: Notes, event: Any) -> None:
        notes.use(kind, getattr(event, attribute))

    return note


def _subagent(notes: Notes, event: SubagentStart) -> None:
    notes.use("turns", event.turn_id)
    if event.turn_id != notes.turn_id:
        notes.nested.add(event.turn_id)


def _terminal(notes: Notes, event: Terminal) -> None:
    if event.turn_id == notes.turn_id:
        notes.terminal = event


def _tool_start(notes: Notes, event: ToolStart) -> None:
    notes.use("calls", event.tool_call_id)
    if not event.provider_executed:
        notes.calls[event.tool_call_id] = event.name


def _tool_done(notes: Notes, event: ToolDone) -> None:
    if event.message_id is not None:
        notes.use("messages", event.message_id)
    if not event.more and event.outcome != "input_required":
        _ended(notes, event)


def _block(notes: Notes, event: ContentBlock) -> None:
    block = event.block
    if isinstance(block, ToolCallBlock):
        notes.use("calls", block.tool_call_id)
        if not block.provider_executed:
            notes.calls[block.tool_call_id] = block.name
    elif isinstance(block, ToolResultBlock):
        _result(notes, block)
    elif isinstance(block, DataBlock) and block.id is not None:
        notes.use("blocks", block.id)


def _result(notes: Notes, block: ToolResultBlock) -> None:
    if is_final(block):
        _ended(notes, block)


def _ended(notes: Notes, result: ToolDone | ToolResultBlock) -> None:
    notes.calls.pop(result.tool_call_id, None)
    notes.outcomes[result.tool_call_id] = result.outcome or ("error" if result.is_error else "ok")


def _ask(notes: Notes, event: HitlAsk) -> None:
    notes.use("asks", event.ask_id)
    notes.asked[event.ask_id] = event


def _snapshot(notes: Notes, event: MessagesSnapshot) -> None:
    fold = AgReduceResult(messages=event.messages, turns=event.turns or [], artifacts=event.artifacts or [], memory=[])
    notes.use_all(KnownIds.of(fold))
    for message in event.messages:
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                _result(notes, block)


NOTED: Mapping[type, Callable[[Notes, Any], None]] = {
    TurnStart: _bears("turns", "turn_id"),
    SubagentStart: _subagent,
    MessageStart: _bears("messages", "id"),
    StepStart: _bears("steps", "id"),
    TextStart: _bears("blocks", "id"),
    ReasoningStart: _bears("blocks", "id"),
    ArtifactStart: _bears("artifacts", "artifact_id"),
    SourceEvent: _bears("sources", "source_id"),
    HitlAsk: _ask,
    ToolStart: _tool_start,
    ToolDone: _tool_done,
    ContentBlock: _block,
    MessagesSnapshot: _snapshot,
    TurnDone: _terminal,
    TurnError: _terminal,
    TurnAbort: _terminal,
}
"""What notes an event, by its class; an event of another class says nothing beside what it folds to."""


def note(notes: Notes, event: AgStreamEvent) -> None:
    """Note an event of any class.

    Args:
        notes: what is known so far.
        event: the next event.
    """
    handle = NOTED.get(event.__class__)
    if handle is not None:
        handle(notes, event)
