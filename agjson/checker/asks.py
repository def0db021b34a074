"""Asks: ids of their own, and a paused turn that names what it waits for (spec §4, §7)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agjson.checker.state import Tracker, Turn
from agjson.errors import EncodeError
from agjson.types import UNSET, AgPausedAsk, HitlAsk, PausedOutcome, TurnDone
from agjson.wire import encode

__all__ = ["check_pause", "hitl_ask", "remember_ask"]

_FIELDS = tuple(field for field in msgspec.structs.fields(AgPausedAsk) if field.name != "ask_id")


def hitl_ask(tracker: Tracker, event: HitlAsk) -> None:
    """An ask is opened under an id of its own, in a turn that still runs."""
    if event.tool_call_id is not None:
        tracker.need_call(event.tool_call_id, f"ask `{event.ask_id}`")
    turn = tracker.turn_of(event)
    if turn is None:
        return
    if turn.closed is not None:
        tracker.report("HITL", f"ask `{event.ask_id}` comes after {turn.closed} has closed turn `{turn.id}`")
        return
    if event.ask_id in turn.asks:
        tracker.report("HITL", f"ask `{event.ask_id}` is opened a second time in turn `{turn.id}`")
        return
    fingerprints = _fingerprints(event)
    before = tracker.asks.get(event.ask_id)
    # A turn that pauses again may repeat an ask that is still unanswered, but not use its id for another question.
    if before is not None and any(before.get(name) != fingerprints.get(name) for name in ("kind", "toolCallId")):
        tracker.report("HITL", f"the id of ask `{event.ask_id}` is used for another ask")
    turn.asks[event.ask_id] = event.continuation != "turn"
    tracker.asks[event.ask_id] = fingerprints


def remember_ask(tracker: Tracker, ask: AgPausedAsk) -> None:
    """Take an ask from a snapshot."""
    tracker.asks.setdefault(ask.ask_id, _fingerprints(ask))


def check_pause(tracker: Tracker, turn: Turn, event: TurnDone) -> None:
    """A pause is told by outcome and finish reason alike, and its asks are those that the turn has opened."""
    outcome = event.outcome
    if not isinstance(outcome, PausedOutcome):
        if event.finish_reason == "paused":
            tracker.report("HITL", f"finishReason `paused` with an outcome of type `{outcome.type}`")
        return
    if event.finish_reason != "paused":
        tracker.report("HITL", f"a paused outcome with finishReason `{event.finish_reason}`")
    _check_asks(tracker, turn, outcome.asks)


def _check_asks(tracker: Tracker, turn: Turn, asks: Sequence[AgPausedAsk]) -> None:
    if not asks and not any(turn.asks.values()):
        tracker.report("HITL", f"turn `{turn.id}` pauses without an ask")
    named: set[str] = set()
    for ask in asks:
        if ask.ask_id in named:
            tracker.report("HITL", f"turn `{turn.id}` pauses on ask `{ask.ask_id}` twice")
            continue
        named.add(ask.ask_id)
        opened = tracker.asks.get(ask.ask_id)
        if opened is not None:
            _compare(tracker, ask, opened)
        elif ask.ask_id not in tracker.known_ids:
            tracker.report("HITL", f"turn `{turn.id}` pauses on ask `{ask.ask_id}`, which no hitl.ask has opened")
    for ask_id, binding in turn.asks.items():
        if binding and ask_id not in named:
            tracker.report("HITL", f"turn `{turn.id}` pauses without naming its ask `{ask_id}`")


def _compare(tracker: Tracker, ask: AgPausedAsk, opened: dict[str, int]) -> None:
    for name, fingerprint in _fingerprints(ask).items():
        if opened.get(name, fingerprint) != fingerprint:
            tracker.report("HITL", f"ask `{ask.ask_id}` pauses with another `{name}` than its hitl.ask")


def _fingerprints(ask: HitlAsk | AgPausedAsk) -> dict[str, int]:
    """A number for each field that is present, by wire name: contents would let memory grow with them."""
    found: dict[str, int] = {}
    for field in _FIELDS:
        value = getattr(ask, field.name)
        if value is not None and value is not UNSET:
            found[field.encode_name] = _fingerprint(value)
    return found


def _fingerprint(value: object) -> int:
    """The same for values that are equal as JSON, keys in any order; what has no JSON form is taken to be equal."""
    try:
        return hash(msgspec.json.encode(value, order="sorted"))
    except (UnicodeEncodeError, RecursionError):
        pass
    try:
        return hash(encode(value))
    except EncodeError:
        return 0
