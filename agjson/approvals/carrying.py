"""Tokens in and out of events: clients get them, what is stored has none (spec §13.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar, cast

from msgspec.structs import replace

from agjson.types import (
    AgOutcome,
    AgPausedAsk,
    AgStreamEvent,
    AgTurnRecord,
    HitlAsk,
    MessagesSnapshot,
    PausedOutcome,
    TurnDone,
)

__all__ = ["tokens_of", "with_tokens", "without_tokens"]

_Ask = TypeVar("_Ask", AgPausedAsk, HitlAsk)
_TokenOf: TypeAlias = Callable[[str, str | None], str | None]
_E = TypeVar("_E", bound=AgStreamEvent)


def tokens_of(asks: Iterable[AgPausedAsk]) -> dict[str, str]:
    """The tokens of asks, by ask id; `Ledger.progress` gives the asks.

    Args:
        asks: the asks.
    """
    return {ask.ask_id: ask.token for ask in asks if ask.token is not None}


def without_tokens(event: _E) -> _E:
    """An event as it is stored and logged: asks in it have no token. The same object where there is none.

    Args:
        event: the event.
    """
    return _changed(event, lambda ask_id, token: None)


def with_tokens(event: _E, tokens: Mapping[str, str]) -> _E:
    """An event as its client gets it: asks in it that can be answered have their tokens.

    Args:
        event: the event.
        tokens: of `tokens_of`.
    """
    return _changed(event, lambda ask_id, token: tokens.get(ask_id, token))


def _changed(event: _E, token_of: _TokenOf) -> _E:
    made: AgStreamEvent = event
    if isinstance(event, HitlAsk):
        made = _ask(event, token_of)
    elif isinstance(event, TurnDone):
        outcome = _outcome(event.outcome, token_of)
        made = event if outcome is event.outcome else replace(event, outcome=outcome)
    elif isinstance(event, MessagesSnapshot) and event.turns is not None:
        turns = [_turn(turn, token_of) for turn in event.turns]
        if any(new is not old for new, old in zip(turns, event.turns, strict=True)):
            made = replace(event, turns=turns)
    return cast("_E", made)


def _ask(ask: _Ask, token_of: _TokenOf) -> _Ask:
    token = token_of(ask.ask_id, ask.token)
    return ask if token == ask.token else replace(ask, token=token)


def _outcome(outcome: AgOutcome, token_of: _TokenOf) -> AgOutcome:
    if not isinstance(outcome, PausedOutcome):
        return outcome
    asks = [_ask(ask, token_of) for ask in outcome.asks]
    same = all(new is old for new, old in zip(asks, outcome.asks, strict=True))
    return outcome if same else replace(outcome, asks=asks)


def _turn(turn: AgTurnRecord, token_of: _TokenOf) -> AgTurnRecord:
    outcome = None if turn.outcome is None else _outcome(turn.outcome, token_of)
    asks = None if turn.asks is None else [_ask(ask, token_of) for ask in turn.asks]
    same = asks is None or all(new is old for new, old in zip(asks, turn.asks or (), strict=True))
    if same and outcome is turn.outcome:
        return turn
    return replace(turn, outcome=outcome, asks=asks)
