"""The credit token of a refusal is the host's alone: it is in no event, and the host gets it (spec §13)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage, BetaRawMessageDeltaEvent

from agjson.adapters.anthropic import ADAPTER, AnthropicNormalizer, messages_from_native
from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.agents import Invocation
from agjson.middleware.anthropic import wrap
from agjson.testing.cassettes import read_cassette
from agjson.types import AgStreamEvent
from agjson.wire import encode
from tests.support.anthropic_agents import Way, client, ways
from tests.support.anthropic_wire import AUTHORED, START, STOP, Native, end, message, normalize, sound, text, view
from tests.support.messages_server import Answer, MessagesServer
from tests.support.scripted import Session, said, start, terminal

TOKEN = "fct_secret"
DETAILS = {
    "type": "refusal",
    "category": "cyber",
    "explanation": "no",
    "fallback_credit_token": TOKEN,
    "fallback_has_prefill_claim": False,
    "recommended_model": "claude-other",
}
SHOWN = {name: value for name, value in DETAILS.items() if name != "fallback_credit_token"}
REFUSED = end("refusal", stop_details=DETAILS)
WHOLE = message(stop_reason="refusal", stop_details=DETAILS)

WAYS: dict[str, list[Any]] = {
    "streamed": [START, *REFUSED],
    "whole": [WHOLE],
    "at the start": [{"type": "message_start", "message": {**START["message"], "stop_details": DETAILS}}, STOP],
    "again at the stop": [START, REFUSED[0], {**STOP, "message": WHOLE}],
    "a stop for no message": [{**STOP, "message": WHOLE}],
    "outside a message": [REFUSED[0], START, *text("x"), *end()],
    "a whole message twice": [WHOLE, WHOLE],
    "after the end": [START, *text("x"), *end(), *REFUSED],
    "of a malformed message": [START, {**REFUSED[0], "usage": 5, "unknown": 1}, STOP],
    "without a role": [{name: value for name, value in WHOLE.items() if name != "type"}],
    "an object": [START, BetaRawMessageDeltaEvent.model_validate(REFUSED[0] | {"context_management": None}), STOP],
    "a whole object": [BetaMessage.model_validate({**WHOLE, "container": None, "context_management": None})],
}


def written(events: list[AgStreamEvent]) -> str:
    return b"".join(encode(event) for event in events).decode()


@pytest.mark.parametrize("natives", WAYS.values(), ids=WAYS.keys())
def test_the_token_is_in_no_event_and_the_host_gets_it(natives: list[Any]) -> None:
    got: list[str] = []
    events = normalize(natives, on_fallback_credit=got.append)

    assert TOKEN not in written(events)
    assert "fallback_credit_token" not in written(events)
    assert set(got) == {TOKEN}
    assert TOKEN not in written(normalize(natives))


def test_the_other_details_are_kept_whole() -> None:
    result = view(sound(normalize(WAYS["streamed"])))

    assert result["messages"][0]["metadata"]["anthropic/stopDetails"] == SHOWN
    assert result["turns"][0]["safety"] == [{"category": "cyber", "blocked": True}]


def test_what_was_handed_in_is_not_changed() -> None:
    normalize(WAYS["streamed"])

    assert REFUSED[0]["delta"]["stop_details"] == DETAILS


def test_an_event_after_the_flush_is_refused_without_the_token() -> None:
    normalizer = AnthropicNormalizer("t", "th")
    normalizer.flush()

    assert TOKEN not in written(normalizer.push(REFUSED[0]))


def test_an_event_that_cannot_be_looked_into_is_carried_without_the_token() -> None:
    class Unruly(dict[str, Any]):
        def get(self, *args: Any) -> Any:
            raise RuntimeError("not now")

    events = normalize([START, Unruly(end("refusal", stop_details=DETAILS)[0])])

    assert "refusal" in written(events)
    assert TOKEN not in written(events)


@pytest.mark.parametrize("token", [None, "", 5])
def test_what_is_no_token_is_not_handed_over(token: Any) -> None:
    got: list[str] = []
    normalize(
        [START, *end("refusal", stop_details={**DETAILS, "fallback_credit_token": token})],
        on_fallback_credit=got.append,
    )

    assert got == []


def test_a_host_that_fails_to_take_it_does_not_break_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    def full(token: str) -> None:
        raise OSError(f"no room for {token}")

    with caplog.at_level(logging.WARNING, "agjson"):
        events = normalize(WAYS["streamed"], on_fallback_credit=full)

    assert events == normalize(WAYS["streamed"])
    (record,) = caplog.records
    assert record.getMessage().startswith("the fallback credit of a refusal could not be handed over: OSError\n")
    assert TOKEN not in caplog.text


def test_a_wrapped_stream_hands_it_to_its_owner() -> None:
    got: list[str] = []
    events = list(wrap(WAYS["streamed"], on_fallback_credit=got.append))

    assert (got, TOKEN in written(events)) == ([TOKEN], False)


def test_a_native_history_is_read_without_it() -> None:
    (answer,) = messages_from_native([WHOLE])

    assert (answer.metadata or {})["anthropic/stopDetails"] == SHOWN


def test_an_authored_refusal() -> None:
    (exchange,) = read_cassette(AUTHORED / "authored--refusal-with-credit.yaml")
    got: list[str] = []
    natives: list[Native] = list(ADAPTER.recorded(exchange) or ())
    events = normalize(natives, on_fallback_credit=got.append)

    (token,) = got
    assert token.startswith("fct_authored_")
    assert token not in written(events)


@ways
def test_the_agent_hands_it_over_with_the_run_and_stores_none(kind: Any, way: Way) -> None:
    got: list[tuple[str, str]] = []

    def take(invocation: Invocation, token: str) -> None:
        got.append((invocation.turn_id, token))

    with MessagesServer([Answer([START, *REFUSED])]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="m", on_fallback_credit=take))
        events = way(session, start(said("hi")))

    assert terminal(events)["finishReason"] == "refusal"
    assert got == [("t", TOKEN)]
    assert TOKEN not in written(events)
    assert TOKEN not in repr(session.thread())
    session.verify()
