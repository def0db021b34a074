"""The answer to an ask, with what the ask wants echoed (spec §3, §7)."""

from __future__ import annotations

from typing import cast

from agjson._arguments import check_word
from agjson.types import UNSET, AgAnswerStatus, AgHitlAnswer, AgPausedAsk, HitlAsk, JsonValue, UnsetType
from agjson.wire.reading import match_answer

__all__ = ["answer_to"]


def answer_to(
    ask: AgPausedAsk | HitlAsk,
    status: AgAnswerStatus = "resolved",
    *,
    reply: JsonValue | UnsetType = UNSET,
    reason: str | None = None,
    grant_mode_id: str | None = None,
) -> AgHitlAnswer:
    """Answer an ask; its ``token``, ``requestState`` and ``ordinal`` are echoed as they came.

    Args:
        ask: what the agent asked: an entry of a paused outcome, such as `open_asks` of a client's turn, or the event.
        status: what the user did.
        reply: the reply in the form that the ask's kind wants.
        reason: why, in words that reach the model.
        grant_mode_id: the chosen grant mode; needed to resolve an ask that declares some.

    Raises:
        TypeError: something else than an ask.
        ValueError: another status.
        ValidationError: a grant mode that is missing, undeclared, or given for an ask without modes.
        FieldError: a grant mode for an answer that is not ``resolved``.
    """
    given = cast("object", ask)
    if not isinstance(given, (AgPausedAsk, HitlAsk)):
        raise TypeError(f"ask must be an ask as it came, in the outcome or as the event, not {type(given).__name__}")
    check_word("status", status, AgAnswerStatus)
    answer = AgHitlAnswer(
        ask_id=ask.ask_id,
        status=status,
        reply=reply,
        reason=reason,
        ordinal=ask.ordinal,
        token=ask.token,
        request_state=ask.request_state,
        grant_mode_id=grant_mode_id,
    )
    match_answer(answer, ask)
    return answer
