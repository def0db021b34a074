"""An answer that is made from its ask."""

from __future__ import annotations

from typing import Any

import pytest

import agjson
from agjson import AgHitlAnswer, HitlAsk, ValidationError, answer_to, to_dict
from agjson.types import AgGrantMode, AgPausedAsk, FieldError

ASK: dict[str, Any] = {"ask_id": "a1", "kind": "text", "ordinal": 2, "token": "proof", "request_state": "s" * 9}
MODES = [AgGrantMode(id="once"), AgGrantMode(id="session")]


@pytest.mark.parametrize("ask", [AgPausedAsk(**ASK), HitlAsk(seq=4, **ASK)])
def test_what_the_ask_wants_back_is_echoed(ask: AgPausedAsk | HitlAsk) -> None:
    assert to_dict(answer_to(ask, reply={"city": None})) == {
        "askId": "a1",
        "status": "resolved",
        "reply": {"city": None},
        "ordinal": 2,
        "token": "proof",
        "requestState": "sssssssss",
    }
    assert answer_to(ask, reply=None).reply is None


def test_what_the_ask_does_not_have_is_not_sent() -> None:
    ask = AgPausedAsk(ask_id="a1", kind="approval")
    assert answer_to(ask) == AgHitlAnswer(ask_id="a1", status="resolved")
    assert to_dict(answer_to(ask, "declined", reason="too dear")) == {
        "askId": "a1",
        "status": "declined",
        "reason": "too dear",
    }


def test_a_grant_mode_is_one_of_the_ask() -> None:
    ask = AgPausedAsk(ask_id="a1", kind="approval", grant_modes=MODES)
    assert answer_to(ask, grant_mode_id="session").grant_mode_id == "session"
    assert answer_to(ask, "declined").grant_mode_id is None
    for wrong in (None, "always"):
        with pytest.raises(ValidationError) as raised:
            answer_to(ask, grant_mode_id=wrong)
        assert raised.value.path == "$.grantModeId"
    with pytest.raises(FieldError, match="not allowed when status is declined"):
        answer_to(ask, "declined", grant_mode_id="once")
    with pytest.raises(ValidationError):
        answer_to(AgPausedAsk(ask_id="a1", kind="approval"), grant_mode_id="once")


def test_it_is_at_hand_in_the_package() -> None:
    assert agjson.answer_to is answer_to
    assert "answer_to" in agjson.__all__
