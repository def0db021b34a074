"""What each kind of ask takes as its reply, and what becomes of it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agjson.approvals import (
    Ask,
    AskRefusedError,
    EditRefusedError,
    OrdinalError,
    Progress,
    QueuedAskError,
    SpentAskError,
    WrongReplyError,
)
from agjson.types import UNSET, AgChoice, AgGrantMode, AgPausedAsk
from tests.approvals.desk import EDITS, Desk, call, dismiss, gate, no, question, run, yes

FORM = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}
CHOICES = [AgChoice(id="s", label="Small", value=1), AgChoice(id="l", label="Large")]


def claimed(desk: Desk, *answers: Any) -> Any:
    desk.resume(*answers)
    return desk.claims[-1]


@pytest.mark.parametrize("reply", [UNSET, None, True])
def test_an_approval_is_given_by_its_status(desk: Desk, reply: Any) -> None:
    (ask,) = desk.ask(gate(call()))
    (decision,) = claimed(desk, yes(ask, reply=reply)).decisions
    assert (decision.verdict, decision.runs, decision.edited) == ("resolved", True, False)
    assert decision.call == call()


def test_false_declines_whatever_the_status_says(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    (decision,) = claimed(desk, yes(ask, reply=False)).decisions
    assert (decision.verdict, decision.runs) == ("declined", False)
    assert desk.ran == []


@pytest.mark.parametrize("reply", [True, {"arguments": {"to": "eve"}}, "yes", 7])
def test_the_reply_of_a_refusal_means_nothing(desk: Desk, reply: Any) -> None:
    first, second = desk.ask(gate(call("c1")), gate(call("c2")))
    claim = claimed(desk, no(first, reply=reply), dismiss(second, reply=reply))
    assert [decision.verdict for decision in claim.decisions] == ["declined", "cancelled"]
    assert (claim.calls, desk.ran) == ([], [])


def test_declined_and_cancelled_stay_different(desk: Desk) -> None:
    first, second = desk.ask(gate(call("c1")), gate(call("c2")))
    run(desk.ledger.answer("th", [no(first, reason="too late"), dismiss(second)], owner="ann"))
    assert desk.states() == {"ask-c1": "declined", "ask-c2": "cancelled"}
    claim = desk.go_on("th", "t1")
    assert [decision.verdict for decision in claim.decisions] == ["declined", "cancelled"]
    assert claim.decisions[0].answer is not None
    assert claim.decisions[0].answer.reason == "too late"
    assert [record.outcome for record in run(desk.ledger.records("th"))] == ["denied", "denied"]
    assert [record.answer and record.answer.status for record in run(desk.ledger.records("th"))] == [
        "declined",
        "cancelled",
    ]


def test_edits_that_are_allowed_run_and_are_recorded(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(editable={"send_mail": EDITS})
    (ask,) = desk.ask(gate(call(arguments={"to": "ann"})))
    (decision,) = claimed(desk, yes(ask, reply={"arguments": {"to": "bob"}})).decisions
    assert decision.edited
    assert desk.ran == [("send_mail", {"to": "bob"})]
    (record,) = run(desk.ledger.records("th"))
    assert record.call is not None
    assert (record.call.arguments, record.arguments) == ({"to": "ann"}, {"to": "bob"})


def test_edits_that_change_nothing_are_none(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(arguments={"n": 1, "to": "ann"})))
    (decision,) = claimed(desk, yes(ask, reply={"arguments": {"to": "ann", "n": 1.0}})).decisions
    assert not decision.edited
    assert desk.ran == [("send_mail", {"n": 1, "to": "ann"})]


def test_a_call_that_two_asks_gate_takes_no_edits(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(editable={"send_mail": True})
    request = call()
    asks = desk.ask(gate(request, "one"), gate(request, "two"))
    with pytest.raises(EditRefusedError):
        desk.resume(yes(asks[0], reply={"arguments": {"to": "eve"}}))
    desk.resume(*map(yes, asks))
    assert desk.ran == [("send_mail", {"to": "ann"})]


def test_edits_of_one_call_leave_the_others_as_they_are(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(editable={"send_mail": EDITS})
    first, second = desk.ask(gate(call("c1")), gate(call("c2", arguments={"to": "eve"}, index=1)))
    claim = claimed(desk, yes(first, reply={"arguments": {"to": "bob"}}), yes(second))
    assert [(each.edited, each.call and each.call.arguments) for each in claim.decisions] == [
        (True, {"to": "bob"}),
        (False, {"to": "eve"}),
    ]
    assert desk.ran == [("send_mail", {"to": "bob"}), ("send_mail", {"to": "eve"})]


RESPOND = [AgChoice(id="respond", label="Answer in its place")]


def test_what_is_answered_in_the_place_of_a_tool_keeps_it_from_running(desk: Desk) -> None:
    asks = desk.ask(gate(call("c1"), choices=RESPOND), gate(call("c2", index=1)), held=[call("s", "look", index=2)])
    claim = claimed(desk, yes(asks[0], reply={"response": "sent by hand"}), yes(asks[1]))
    assert [each.response for each in claim.decisions] == ["sent by hand", None]
    assert [request.call_id for request in claim.calls] == ["c2", "s"]
    assert desk.ran == [("send_mail", {"to": "ann"}), ("look", {"to": "ann"})]
    with pytest.raises(SpentAskError):
        desk.resume(yes(asks[0]))


@pytest.mark.parametrize("reply", [{"response": "x", "arguments": {"to": "ann"}}, {"response": 1}, {"response": None}])
def test_only_words_are_answered_in_the_place_of_a_tool(desk: Desk, reply: Any) -> None:
    (ask,) = desk.ask(gate(call(), choices=RESPOND))
    with pytest.raises(WrongReplyError):
        desk.resume(yes(ask, reply=reply))
    assert (desk.ran, desk.states()) == ([], {"ask-c1": "open"})


@pytest.mark.parametrize("choices", [None, [AgChoice(id="other", label="Other")]])
def test_nobody_answers_in_the_place_of_a_tool_where_the_ask_does_not_offer_it(desk: Desk, choices: Any) -> None:
    (ask,) = desk.ask(gate(call(), choices=choices))
    with pytest.raises(WrongReplyError):
        desk.resume(yes(ask, reply={"response": "sent by hand"}))
    assert (desk.ran, desk.states()) == ([], {"ask-c1": "open"})


def test_a_call_that_two_asks_gate_does_not_run_where_one_is_answered_in_its_place(desk: Desk) -> None:
    request = call()
    asks = desk.ask(gate(request, "one", choices=RESPOND), gate(request, "two"))
    claim = claimed(desk, yes(asks[0], reply={"response": "sent by hand"}), yes(asks[1]))
    assert (claim.calls, desk.ran) == ([], [])


def test_a_call_that_two_asks_gate_needs_both(desk: Desk) -> None:
    request = call()
    asks = desk.ask(gate(request, "one"), gate(request, "two"))
    claim = claimed(desk, yes(asks[0]), no(asks[1]))
    assert [decision.runs for decision in claim.decisions] == [False, False]
    assert (claim.calls, desk.ran) == ([], [])
    assert desk.states() == {"one": "done", "two": "done"}


def test_a_form_takes_data_of_its_schema(desk: Desk) -> None:
    (ask,) = desk.ask(question("f", "form", schema=FORM))
    for reply in ({}, {"age": -1}, {"age": "secret-7"}, None, UNSET, []):
        with pytest.raises(WrongReplyError) as caught:
            desk.resume(yes(ask, reply=reply))
        assert "secret" not in str(caught.value)
    claim = claimed(desk, yes(ask, reply={"age": 7}))
    assert claim.decisions[0].answer.reply == {"age": 7}
    assert claim.decisions[0].runs


def test_a_form_says_where_its_data_is_wrong(desk: Desk) -> None:
    schema = {"type": "object", "properties": {"tags": {"items": {"type": "string"}}}}
    (ask,) = desk.ask(question("f", "form", schema=schema))
    with pytest.raises(WrongReplyError) as caught:
        desk.resume(yes(ask, reply={"tags": ["a", 1]}))
    assert caught.value.message == "the form.tags[1]: it breaks the rule 'type' of the schema"
    assert caught.value.path == "$.answers[0].reply"


def test_a_form_without_a_schema_takes_any_data(desk: Desk) -> None:
    (ask,) = desk.ask(question("f", "form"))
    with pytest.raises(WrongReplyError):
        desk.resume(yes(ask))
    assert claimed(desk, yes(ask, reply=None)).decisions[0].answer.reply is None


def test_a_schema_fetches_nothing(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        where = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        (ask,) = desk.ask(question("f", "form", schema={"$ref": where}))
        with pytest.raises(WrongReplyError) as caught:
            desk.resume(yes(ask, reply={}))
        with pytest.raises(TimeoutError):
            server.accept()
    assert "not fetched" in str(caught.value)


def test_a_text_takes_a_string(desk: Desk) -> None:
    (ask,) = desk.ask(question("q"))
    for reply in (UNSET, None, 1, True, ["x"]):
        with pytest.raises(WrongReplyError):
            desk.resume(yes(ask, reply=reply))
    assert claimed(desk, yes(ask, reply="")).decisions[0].answer.reply == ""


@pytest.mark.parametrize("reply", ["m", "Small", 1, ["s"], None, UNSET, {"id": "s"}])
def test_a_choice_takes_the_id_of_an_option(desk: Desk, reply: Any) -> None:
    (ask,) = desk.ask(question("c", "choice", choices=CHOICES))
    with pytest.raises(WrongReplyError):
        desk.resume(yes(ask, reply=reply))
    assert claimed(desk, yes(ask, reply="s")).decisions[0].answer.reply == "s"


def test_an_authorization_takes_what_the_framework_wants(desk: Desk) -> None:
    (ask,) = desk.ask(question("a", "auth"))
    decision = claimed(desk, yes(ask, reply={"code": "xyz"})).decisions[0]
    assert decision.answer.reply == {"code": "xyz"}
    assert decision.runs


@pytest.mark.parametrize("reply", ["secret", {"key": "x"}, False, 1])
def test_data_does_not_pass_through_a_consent(desk: Desk, reply: Any) -> None:
    (ask,) = desk.ask(question("u", "url", url="https://example.org"))
    with pytest.raises(WrongReplyError):
        desk.resume(yes(ask, reply=reply))


def test_a_consent_to_open_a_url_runs_nothing(desk: Desk) -> None:
    request, safe = call("c1"), call("c2", "look")
    (ask,) = desk.ask(gate(request, "u", kind="url", url="https://example.org"), held=[safe])
    claim = claimed(desk, yes(ask))
    assert (claim.decisions[0].verdict, claim.decisions[0].runs) == ("resolved", False)
    assert (claim.calls, claim.held, claim.withheld) == ([], (), (safe,))
    assert desk.ran == []
    assert desk.states() == {"u": "done"}
    assert [record.outcome for record in run(desk.ledger.records("th"))] == [None]


def test_a_consent_about_no_call_runs_nothing_either(desk: Desk) -> None:
    (ask,) = desk.ask(question("u", "url", url="https://example.org", request_state="s"))
    (decision,) = claimed(desk, yes(ask)).decisions
    assert (decision.verdict, decision.runs, decision.answer.request_state) == ("resolved", False, "s")
    assert desk.states() == {"u": "done"}


def test_a_question_that_is_not_answered_lets_nothing_run(desk: Desk) -> None:
    asks = desk.ask(question("a"), question("b"), question("c", expires_at="2026-03-01T12:01:00Z"))
    desk.clock.forward(minutes=1)
    claim = claimed(desk, no(asks[0]), dismiss(asks[1]))
    assert [(each.verdict, each.runs) for each in claim.decisions] == [
        ("declined", False),
        ("cancelled", False),
        ("expired", False),
    ]
    assert desk.states() == {"a": "done", "b": "done", "c": "expired"}
    assert [record.outcome for record in run(desk.ledger.records("th"))] == [None, None, None]


def test_the_ordinal_is_that_of_the_ask_where_it_is_given(desk: Desk) -> None:
    (ask,) = desk.ask(question("q", ordinal=1, resume_binding="positional"))
    with pytest.raises(OrdinalError) as caught:
        desk.resume(yes(ask, reply="x", ordinal=0))
    assert caught.value.path == "$.answers[0].ordinal"
    desk.resume(yes(ask, reply="x", ordinal=1))


def test_a_grant_mode_is_chosen_only_by_a_yes(desk: Desk) -> None:
    modes = [AgGrantMode(id="once"), AgGrantMode(id="always")]
    asks = desk.ask(*(gate(call(id), grant_modes=modes) for id in ("c1", "c2", "c3")))
    desk.resume(yes(asks[0], grant_mode_id="always"), no(asks[1]), dismiss(asks[2]))
    chosen = [decision.answer and decision.answer.grant_mode_id for decision in desk.claims[0].decisions]
    assert chosen == ["always", None, None]


# Partial answers


def test_partial_answers_are_stored_and_the_rest_is_asked_again(desk: Desk) -> None:
    first, second = desk.ask(gate(call("c1")), gate(call("c2")))
    assert desk.resume(yes(first)) == Progress(waiting=(second,), ready=())
    assert (desk.ran, desk.states()) == ([], {"ask-c1": "resolved", "ask-c2": "open"})
    assert desk.resume(no(second)) == Progress(waiting=(), ready=("t1",))
    assert desk.ran == [("send_mail", {"to": "ann"})]


def test_answers_of_two_batches_may_come_together(desk: Desk) -> None:
    (one,) = desk.ask(gate(call("c1")), turn="t1")
    (two,) = desk.ask(gate(call("c2")), turn="t2")
    assert desk.resume(yes(two), yes(one)).ready == ("t1", "t2")
    assert [claim.turn_id for claim in desk.claims] == ["t1", "t2"]


def test_a_batch_that_is_ready_stays_ready_after_a_restart(desk: Desk, make_desk: Callable[..., Desk]) -> None:
    (ask,) = desk.ask(gate(call()))
    run(desk.ledger.answer("th", [yes(ask)], owner="ann"))
    again = make_desk()
    assert run(again.ledger.progress("th", owner="ann")).ready == ("t1",)
    assert run(again.ledger.progress("th", owner="bob")) == Progress(waiting=(), ready=())
    again.go_on("th", "t1")
    assert len(again.ran) == 1


def test_an_expired_ask_is_decided_and_runs_nothing(desk: Desk) -> None:
    first, _ = desk.ask(gate(call("c1")), gate(call("c2"), expires_at="2026-03-01T12:01:00Z"))
    desk.resume(yes(first))
    desk.clock.forward(minutes=1)
    assert run(desk.ledger.progress("th", owner="ann")).ready == ("t1",)
    claim = desk.go_on("th", "t1")
    assert [decision.verdict for decision in claim.decisions] == ["resolved", "expired"]
    assert [request.call_id for request in claim.calls] == ["c1"]
    assert desk.states() == {"ask-c1": "done", "ask-c2": "expired"}


def test_an_answer_in_time_counts_when_the_rest_comes_later(desk: Desk) -> None:
    first, second = desk.ask(gate(call("c1"), expires_at="2026-03-01T12:01:00Z"), gate(call("c2")))
    desk.resume(yes(first))
    desk.clock.forward(hours=1)
    desk.resume(no(second))
    assert len(desk.ran) == 1


def test_asks_expire_by_themselves_and_it_can_be_noted(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(lasts=timedelta(minutes=5))
    own, general = desk.ask(gate(call("c1"), expires_at="2026-03-01T13:00:00Z"), gate(call("c2")))
    assert (own.expires_at, general.expires_at) == ("2026-03-01T13:00:00Z", "2026-03-01T12:05:00+00:00")
    desk.clock.forward(minutes=5)
    assert run(desk.ledger.progress("th", owner="ann")).waiting == (own,)
    assert [record.ask_id for record in run(desk.ledger.expire("th"))] == ["ask-c2"]
    assert desk.states() == {"ask-c1": "open", "ask-c2": "expired"}
    assert run(desk.ledger.expire("th")) == []


# One at a time


def test_a_queue_shows_one_ask_at_a_time(desk: Desk) -> None:
    (first,) = desk.ask(gate(call("c1")), gate(call("c2")), gate(call("c3")), one_at_a_time=True)
    assert first.ask_id == "ask-c1"
    (second,) = desk.resume(no(first)).waiting
    assert second.ask_id == "ask-c2"
    (third,) = desk.resume(yes(second)).waiting
    assert desk.ran == []
    desk.resume(yes(third))
    assert [request.call_id for request in desk.claims[0].calls] == ["c2", "c3"]


def test_an_ask_that_was_not_shown_takes_no_answer(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk()
    (first,) = desk.ask(question("a"), question("b"), one_at_a_time=True)
    hidden = AgPausedAsk(ask_id="b", kind="text")
    for answers in ([yes(hidden, reply="x")], [yes(first, reply="x"), yes(hidden, reply="x")]):
        with pytest.raises(QueuedAskError) as caught:
            desk.resume(*answers)
        assert caught.value.code == "queued_ask"
    assert desk.states() == {"a": "open", "b": "open"}


# Words


def test_words_of_a_start_meet_an_ask_and_it_is_recorded(desk: Desk) -> None:
    text, _ = desk.ask(question("q", request_state="s"), gate(call()))
    progress = run(desk.ledger.meet("th", ["q"], "the blue one", turn_id="t2", owner="ann"))
    assert [ask.ask_id for ask in progress.waiting] == ["ask-c1"]
    record = run(desk.ledger.records("th"))[0]
    assert (record.state, record.met_by, text.token) == ("met", "t2", None)
    assert record.answer is not None
    assert (record.answer.reply, record.answer.request_state) == ("the blue one", "s")
    desk.resume(yes(progress.waiting[0]))
    assert [decision.verdict for decision in desk.claims[0].decisions] == ["met", "resolved"]
    assert desk.claims[0].decisions[0].runs
    assert desk.states() == {"q": "done", "ask-c1": "done"}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (question("q"), ""),
        (question("q", "choice", choices=CHOICES), "Small"),
        (question("q", "form", schema=FORM), "seven"),
    ],
    ids=["silence", "no option", "no form"],
)
def test_words_that_do_not_fit_the_ask_are_refused(desk: Desk, ask: Ask, words: str) -> None:
    desk.ask(ask)
    with pytest.raises(WrongReplyError):
        run(desk.ledger.meet("th", ["q"], words, turn_id="t2", owner="ann"))
    assert desk.states() == {"q": "open"}


def test_the_id_of_an_option_in_words_is_the_choice(desk: Desk) -> None:
    desk.ask(question("q", "choice", choices=CHOICES))
    run(desk.ledger.meet("th", ["q"], "l", turn_id="t2", owner="ann"))
    assert desk.states() == {"q": "met"}


# Asks that could never be answered


@pytest.mark.parametrize(
    "ask",
    [
        question("q", token="mine"),
        question("q", "approval", tool_call_id="c1"),
        Ask(ask=AgPausedAsk(ask_id="q", kind="approval"), call=call()),
        Ask(ask=AgPausedAsk(ask_id="q", kind="approval", tool_call_id="c2"), call=call()),
        question("q", "choice"),
        question("q", "choice", choices=[]),
        question("q", "choice", choices=[CHOICES[0], CHOICES[0]]),
        question("q", "url"),
        question("q", "form", schema={"type": "nonsense"}),
        question("q", "form", schema="object"),
        question("q", expires_at="tomorrow"),
        question("q", expires_at="2026-03-01T12:00:00"),
        question("q", grant_modes=[AgGrantMode(id="once"), AgGrantMode(id="once")]),
    ],
    ids=lambda ask: str(ask.ask),
)
def test_an_ask_that_could_never_be_answered_is_refused(desk: Desk, ask: Ask) -> None:
    with pytest.raises(AskRefusedError):
        desk.ask(question("before"), ask)
    assert desk.states() == {}


def test_nothing_to_ask_is_no_batch(desk: Desk) -> None:
    with pytest.raises(AskRefusedError):
        desk.ask(held=[call()])
    assert run(desk.ledger.batch("th", "t1")) is None


def test_a_call_is_not_held_back_twice_and_not_beside_its_ask(desk: Desk) -> None:
    for held in ([call("c2"), call("c2")], [call("c1")]):
        with pytest.raises(AskRefusedError):
            desk.ask(gate(call("c1")), held=held)


def test_a_broken_schema_of_edits_comes_out_when_the_ask_is_issued(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(editable={"send_mail": {"type": "nonsense"}})
    with pytest.raises(AskRefusedError):
        desk.ask(gate(call()))
