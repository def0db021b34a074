"""The state of a tool that waits, from the server that made it to the resume that brings it back (spec §7, §10.18)."""

from __future__ import annotations

import json

import pytest

from agjson import answer_to, reduce
from agjson.approvals import Ask, RequestStateError
from agjson.emitter import Emitter
from agjson.types import (
    AgHitlAnswer,
    AgPausedAsk,
    AgPendingInput,
    AgReduceResult,
    PausedOutcome,
    ResumeInput,
    ToolResultBlock,
)
from agjson.wire import decode_event, decode_input, encode, from_dict, to_dict
from tests.approvals.desk import Desk, call, run

# What a reader would mend that looks into it, or writes it again in its own way.
STATES = [
    "eyJhIjoxfQ==",
    '{ "b": 1.0,  "a": "\\u00e9" }',
    "e\u0301\u00e9\u2028 \t\r\n\u0000\u200d\U0001f512",
    " ",
    "s" * 70_000,
]
NAMES = ["base64", "json", "letters", "blank", "long"]


def waiting(state: str) -> AgReduceResult:
    """The fold of a call that waits for two inputs, as a client has it of the wire."""
    out = Emitter("t1", "th")
    out.message_start("m", role="assistant")
    out.tool_call("c1", "book", {"city": "Oslo"}, server_name="travel")
    out.message_end("m")
    pending = AgPendingInput(request_state=state, input_keys=["dates", "consent"])
    out.tool_done("c1", outcome="input_required", pending_input=pending, message_id="c1:pending")
    for key, kind in (("dates", "form"), ("consent", "approval")):
        out.hitl_ask(kind, ask_id=f"c1:{key}", tool_call_id="c1", request_state=state, input_key=key)  # type: ignore[arg-type]
    out.turn_paused()
    out.flush()
    folded = reduce([decode_event(encode(event)) for event in out.drain()])
    assert not folded.needs_resync
    return folded.result


def asks_of(result: AgReduceResult) -> list[AgPausedAsk]:
    outcome = result.turns[0].outcome
    assert isinstance(outcome, PausedOutcome)
    return list(outcome.asks)


def sent(answers: list[AgHitlAnswer]) -> bytes:
    """The request that a client makes of answers."""
    return encode(ResumeInput(thread_id="th", turn_id="t2", answers=answers))


@pytest.mark.parametrize("state", STATES, ids=NAMES)
def test_it_comes_back_as_it_was_and_reaches_what_is_resumed(desk: Desk, state: str) -> None:
    result = waiting(state)
    (block,) = result.messages[1].content
    assert isinstance(block, ToolResultBlock)
    assert block.pending_input == AgPendingInput(request_state=state, input_keys=["dates", "consent"])
    found = asks_of(result)
    assert [(ask.input_key, ask.request_state) for ask in found] == [("dates", state), ("consent", state)]

    request = call("c1", "book", {"city": "Oslo"}, server="travel")
    issued = desk.ask(*(Ask(ask=ask, call=request) for ask in found))
    body = sent([answer_to(issued[0], reply={"from": "May"}), answer_to(issued[1])])
    assert [each["requestState"].encode() for each in json.loads(body)["answers"]] == [state.encode()] * 2
    resume = decode_input(body)
    assert isinstance(resume, ResumeInput)
    assert (resume.kind, resume.turn_id) == ("resume", "t2")
    desk.resume(*(resume.answers or ()))
    decisions = desk.claims[0].decisions
    assert [(each.ask.input_key, each.answer and each.answer.request_state) for each in decisions] == [
        ("dates", state),
        ("consent", state),
    ]
    assert desk.ran == [("book", {"city": "Oslo"})]


@pytest.mark.parametrize("state", STATES, ids=NAMES)
def test_a_changed_one_is_refused_and_the_ask_stays_open(desk: Desk, state: str) -> None:
    request = call("c1", "book", {"city": "Oslo"}, server="travel")
    issued = desk.ask(*(Ask(ask=ask, call=request) for ask in asks_of(waiting(state))))
    honest = answer_to(issued[1])
    before = desk.everything()
    for changed in (state + " ", state[:-1], state.upper() + "x", None):
        wire = {**to_dict(honest), "requestState": changed}
        answer = from_dict({name: value for name, value in wire.items() if value is not None}, "answer")
        with pytest.raises(RequestStateError) as refused:
            desk.resume(answer)
        assert refused.value.path == "$.answers[0].requestState"
        assert state not in str(refused.value) or state == " "
    assert desk.everything() == before
    desk.resume(answer_to(issued[0], reply={}), honest)
    assert len(desk.ran) == 1


def test_what_is_stored_and_loaded_is_the_same(desk: Desk) -> None:
    for number, state in enumerate(STATES):
        request = call("c1", "book")
        desk.ask(*(Ask(ask=ask, call=request) for ask in asks_of(waiting(state))), thread=f"th{number}")
        records = run(desk.ledger.records(f"th{number}"))
        assert [record.ask.request_state for record in records] == [state, state]
