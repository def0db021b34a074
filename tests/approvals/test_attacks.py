"""Each attack on an approval, with the side effects counted by the tool; none may change anything that is kept."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from agjson.approvals import (
    AlreadyClaimedError,
    AnsweredAskError,
    AnswerError,
    AskConflictError,
    BatchOpenError,
    Claim,
    ClaimLostError,
    EditRefusedError,
    ExpiredAskError,
    GivenUpAskError,
    GrantModeError,
    KeyRetiredError,
    Keys,
    OtherOwnerError,
    OtherThreadError,
    OtherTurnError,
    RequestStateError,
    SpentAskError,
    TokenError,
    UnissuedAskError,
    WordsRefusedError,
    WrongReplyError,
)
from agjson.types import AgGrantMode, AgHitlAnswer, AgPausedAsk
from tests.approvals.desk import EDITS, NEW, OLD, Desk, call, dismiss, gate, no, question, run, yes

MakeDesk = Callable[..., Desk]


def refused(desk: Desk, error: type[AnswerError], *answers: AgHitlAnswer, **to: Any) -> AnswerError:
    """Send answers that must be refused, and must have no effect."""
    before, ran = desk.everything("th", "other"), list(desk.ran)
    with pytest.raises(error) as caught:
        desk.resume(*answers, **to)
    assert type(caught.value) is error
    assert desk.everything("th", "other") == before
    assert desk.ran == ran
    return caught.value


def place(error: AnswerError) -> tuple[str, str, str, str]:
    return (error.code, error.field, error.ask_id, error.path)


def test_an_honest_answer_runs_the_call_once(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    desk.resume(yes(ask))
    assert desk.ran == [("send_mail", {"to": "ann"})]
    assert desk.states() == {"ask-c1": "done"}


def test_a_forged_ask_is_answered_for_nothing(desk: Desk) -> None:
    desk.ask(gate(call()))
    forged = AgHitlAnswer(ask_id="forged", status="resolved", token="agt1.k1.AAAA")
    error = refused(desk, UnissuedAskError, forged)
    assert place(error) == ("unknown_ask", "askId", "forged", "$.answers[0].askId")
    assert desk.ran == []


@pytest.mark.parametrize("token", ["", "agt1.k1.AAAA", "agt1.k2.AAAA", "x" * 10_000, "\ud800", "agt1.k1."])
def test_a_forged_token_is_refused(desk: Desk, token: str) -> None:
    (ask,) = desk.ask(gate(call()))
    error = refused(desk, TokenError, yes(ask, token=token))
    assert place(error) == ("wrong_token", "token", "ask-c1", "$.answers[0].token")
    assert token[:4] not in str(error) or not token


def test_an_answer_without_the_token_is_refused(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    refused(desk, TokenError, yes(ask, token=None))


def test_the_token_of_another_ask_of_the_turn_is_refused(desk: Desk) -> None:
    first, second = desk.ask(gate(call("c1")), gate(call("c2")))
    refused(desk, TokenError, yes(first, token=second.token))


def test_a_token_for_an_ask_that_has_none_is_refused(desk: Desk) -> None:
    (ask,) = desk.ask(question("q"))
    assert ask.token is None
    refused(desk, TokenError, yes(ask, reply="words", token="agt1.k1.AAAA"))


def test_an_answer_of_another_thread_is_refused(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    desk.ask(gate(call()), thread="other")
    error = refused(desk, OtherThreadError, yes(ask), thread="other")
    assert place(error) == ("other_thread", "token", "ask-c1", "$.answers[0].token")
    (elsewhere,) = desk.ask(gate(call(), "only-there"), thread="third")
    refused(desk, OtherThreadError, yes(elsewhere))
    # Without a token nobody can tell, and it counts as unknown.
    refused(desk, UnissuedAskError, yes(elsewhere, token=None))


def test_a_token_of_a_thread_of_somebody_else_tells_nothing_about_it(desk: Desk) -> None:
    (theirs,) = desk.ask(gate(call(), "theirs"), thread="other", owner="bob")
    desk.ask(gate(call()))
    refused(desk, UnissuedAskError, yes(theirs))
    refused(desk, TokenError, yes(theirs, ask_id="ask-c1"))


def test_an_answer_of_another_turn_is_refused(desk: Desk) -> None:
    (old,) = desk.ask(gate(call()), turn="t1")
    (new,) = desk.ask(gate(call("c2")), turn="t2")
    error = refused(desk, OtherTurnError, yes(new, token=old.token))
    assert place(error) == ("other_turn", "token", "ask-c2", "$.answers[0].token")


@pytest.mark.parametrize("who", ["bob", None])
def test_an_answer_of_another_principal_is_refused(desk: Desk, who: str | None) -> None:
    (ask,) = desk.ask(gate(call()))
    error = refused(desk, OtherOwnerError, yes(ask), owner=who)
    assert place(error) == ("other_owner", "askId", "ask-c1", "$.answers[0].askId")


def test_an_ask_of_nobody_is_not_for_anybody(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()), owner=None)
    refused(desk, OtherOwnerError, yes(ask), owner="bob")
    desk.resume(yes(ask), owner=None)
    assert len(desk.ran) == 1


def test_a_replayed_answer_is_refused(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    desk.resume(yes(ask))
    error = refused(desk, SpentAskError, yes(ask))
    assert place(error) == ("spent_ask", "askId", "ask-c1", "$.answers[0].askId")
    assert len(desk.ran) == 1


def test_a_replayed_request_of_several_answers_is_refused_whole(desk: Desk) -> None:
    asks = desk.ask(gate(call("c1")), gate(call("c2")))
    request = [yes(asks[0]), no(asks[1])]
    desk.resume(*request)
    refused(desk, SpentAskError, *request)
    assert desk.ran == [("send_mail", {"to": "ann"})]


def test_a_replayed_answer_does_not_ride_on_a_new_one(desk: Desk) -> None:
    (old,) = desk.ask(gate(call()), turn="t1")
    desk.resume(yes(old))
    (new,) = desk.ask(gate(call("c2")), turn="t2")
    error = refused(desk, SpentAskError, yes(new), yes(old))
    assert error.path == "$.answers[1].askId"
    assert len(desk.ran) == 1
    desk.resume(yes(new))
    assert len(desk.ran) == 2


def test_an_expired_ask_takes_no_answer(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(), expires_at="2026-03-01T12:00:10Z"))
    desk.clock.forward(seconds=10)
    error = refused(desk, ExpiredAskError, yes(ask))
    assert place(error) == ("expired_ask", "askId", "ask-c1", "$.answers[0].askId")
    assert desk.ran == []


def test_an_answer_in_the_last_moment_counts(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(), expires_at="2026-03-01T13:00:10+01:00"))
    desk.clock.forward(seconds=9.999)
    desk.resume(yes(ask))
    assert len(desk.ran) == 1


def test_a_moved_expiry_is_no_longer_the_ask(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(), expires_at="2026-03-01T12:00:10Z"))
    desk.clock.forward(hours=1)
    # The client's copy of the ask says otherwise, and nobody asks it.
    refused(desk, ExpiredAskError, yes(replace(ask, expires_at="2036-03-01T12:00:00Z")))


def test_a_stale_answer_to_a_given_up_ask_is_refused(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    assert [record.state for record in run(desk.ledger.give_up("th"))] == ["given_up"]
    error = refused(desk, GivenUpAskError, yes(ask))
    assert place(error) == ("given_up_ask", "askId", "ask-c1", "$.answers[0].askId")
    with pytest.raises(AlreadyClaimedError):
        desk.go_on("th", "t1")
    assert desk.ran == []


def test_an_approval_that_was_stored_and_then_given_up_runs_nothing(desk: Desk) -> None:
    first, _ = desk.ask(gate(call("c1")), gate(call("c2")))
    desk.resume(yes(first))
    run(desk.ledger.give_up("th"))
    with pytest.raises(AlreadyClaimedError):
        desk.go_on("th", "t1")
    assert (desk.ran, desk.states()) == ([], {"ask-c1": "given_up", "ask-c2": "given_up"})


@pytest.mark.parametrize("first", [no, dismiss])
def test_declined_then_approved_stays_declined(desk: Desk, first: Callable[..., AgHitlAnswer]) -> None:
    one, two = desk.ask(gate(call("c1")), gate(call("c2")))
    desk.resume(first(one))
    error = refused(desk, AnsweredAskError, yes(one))
    assert place(error) == ("answered_ask", "askId", "ask-c1", "$.answers[0].askId")
    desk.resume(yes(two))
    refused(desk, SpentAskError, yes(one))
    assert [request.call_id for request in desk.claims[0].calls] == ["c2"]
    assert len(desk.ran) == 1


def test_both_answers_in_one_request_are_refused_whole(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    error = refused(desk, AnsweredAskError, no(ask), yes(ask))
    assert error.path == "$.answers[1].askId"
    assert desk.states() == {"ask-c1": "open"}


def test_approved_twice_at_once_runs_once(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    outcomes: list[str] = []

    def attempt(_: int) -> None:
        try:
            desk.resume(yes(ask))
        except (AnsweredAskError, SpentAskError, AlreadyClaimedError) as error:
            outcomes.append(type(error).__name__)
        else:
            outcomes.append("ran")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempt, range(16)))
    assert outcomes.count("ran") == 1
    assert desk.ran == [("send_mail", {"to": "ann"})]


def test_claimed_twice_at_once_runs_once(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    run(desk.ledger.answer("th", [yes(ask)], owner="ann"))
    outcomes: list[str] = []

    def attempt(number: int) -> None:
        try:
            desk.go_on("th", "t1", by=f"run-{number}")
        except AlreadyClaimedError:
            outcomes.append("too late")
        else:
            outcomes.append("ran")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempt, range(16)))
    assert sorted(outcomes) == ["ran", *["too late"] * 15]
    assert len(desk.ran) == 1


def test_edited_arguments_are_refused_where_the_tool_allows_none(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    error = refused(desk, EditRefusedError, yes(ask, reply={"arguments": {"to": "eve"}}))
    assert place(error) == ("edit_refused", "reply", "ask-c1", "$.answers[0].reply")
    assert desk.ran == []


def test_edited_arguments_are_refused_where_they_do_not_fit(make_desk: MakeDesk) -> None:
    desk = make_desk(editable={"send_mail": EDITS})
    (ask,) = desk.ask(gate(call()))
    for arguments in ({"to": "ann", "cc": "eve"}, {}, {"to": 1}, "eve", None, {"to": "e" * 21}):
        error = refused(desk, EditRefusedError, yes(ask, reply={"arguments": arguments}))
        assert "eve" not in str(error)
    assert desk.ran == []


def test_edited_arguments_of_a_hosted_call_are_refused(make_desk: MakeDesk) -> None:
    desk = make_desk(editable={"send_mail": True})
    (ask,) = desk.ask(gate(call(hosted=True, server="mail")))
    error = refused(desk, EditRefusedError, yes(ask, reply={"arguments": {"to": "eve"}}))
    assert error.message == "the provider runs the call, and takes no edits"
    assert desk.ran == []


def test_a_change_of_the_rules_opens_no_edits_for_asks_that_are_out(make_desk: MakeDesk) -> None:
    strict = make_desk()
    (ask,) = strict.ask(gate(call()))
    lax = make_desk(editable={"send_mail": True})
    refused(lax, EditRefusedError, yes(ask, reply={"arguments": {"to": "eve"}}))


@pytest.mark.parametrize(
    "reply",
    ["yes", "true", 1, [], [True], {"approved": True}, {"arguments": {"to": "ann"}, "more": 1}, {"name": "rm"}, {}],
)
def test_a_reply_of_the_wrong_kind_approves_nothing(desk: Desk, reply: Any) -> None:
    (ask,) = desk.ask(gate(call()))
    error = refused(desk, WrongReplyError, yes(ask, reply=reply))
    assert place(error) == ("wrong_reply", "reply", "ask-c1", "$.answers[0].reply")
    assert desk.ran == []


def test_a_changed_request_state_is_refused(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(), request_state="agé"))
    for state in (None, "", "age", "age\u0301"):
        error = refused(desk, RequestStateError, yes(ask, request_state=state))
        assert place(error)[:2] == ("wrong_request_state", "requestState")
    desk.resume(yes(ask))
    assert len(desk.ran) == 1


def test_a_request_state_for_an_ask_without_one_is_refused(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    refused(desk, RequestStateError, yes(ask, request_state="x"))


def test_a_grant_mode_that_was_not_offered_is_refused(desk: Desk) -> None:
    (plain,) = desk.ask(gate(call()))
    error = refused(desk, GrantModeError, yes(plain, grant_mode_id="always"))
    assert place(error)[:2] == ("wrong_grant_mode", "grantModeId")
    (ask,) = desk.ask(gate(call("c2"), grant_modes=[AgGrantMode(id="once")]), turn="t2")
    refused(desk, GrantModeError, yes(ask, grant_mode_id="always"))
    refused(desk, GrantModeError, yes(ask))
    assert desk.ran == []


def test_words_do_not_approve(desk: Desk) -> None:
    asks = [
        gate(call()),
        question("a", "auth"),
        question("u", "url", url="https://example.org"),
        question("g", grant_modes=[AgGrantMode(id="once")]),
        gate(call("c9"), "gated-text", kind="text"),
    ]
    desk.ask(*asks)
    before = desk.everything()
    for id in ("ask-c1", "a", "u", "g", "gated-text"):
        with pytest.raises(WordsRefusedError) as caught:
            run(desk.ledger.meet("th", [id], "yes", turn_id="t2", owner="ann"))
        assert caught.value.path == "$.metadata['agjson/askId'].askId"
    assert desk.everything() == before
    assert desk.ran == []


def test_an_ask_cannot_be_opened_anew(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    desk.resume(no(ask))
    with pytest.raises(AskConflictError):
        desk.ask(gate(call()), turn="t2")
    with pytest.raises(AskConflictError):
        desk.ask(gate(call("c2")), turn="t1")
    refused(desk, SpentAskError, yes(ask))
    assert desk.ran == []


def test_an_open_ask_is_not_replaced_by_another_of_its_id(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(arguments={"to": "ann"})))
    for turn in ("t1", "t2"):
        with pytest.raises(AskConflictError):
            desk.ask(gate(call("c2", arguments={"to": "eve"}), "ask-c1"), turn=turn)
    desk.resume(yes(ask))
    assert desk.ran == [("send_mail", {"to": "ann"})]


def test_a_batch_is_not_claimed_before_its_last_answer(desk: Desk) -> None:
    first, _ = desk.ask(gate(call("c1")), gate(call("c2")))
    desk.resume(yes(first))
    with pytest.raises(BatchOpenError) as caught:
        desk.go_on("th", "t1")
    assert caught.value.ask_ids == ("ask-c2",)
    assert desk.ran == []


def test_an_ask_whose_key_was_taken_out_takes_no_answer(make_desk: MakeDesk) -> None:
    (ask,) = make_desk(keys=Keys({"k1": OLD})).ask(gate(call()))
    later = make_desk(keys=Keys({"k2": NEW}))
    error = refused(later, KeyRetiredError, yes(ask))
    assert place(error)[:2] == ("retired_key", "token")


def test_a_token_of_an_old_key_under_the_name_of_a_new_one_is_refused(make_desk: MakeDesk) -> None:
    (ask,) = make_desk(keys=Keys({"k1": OLD, "k2": NEW})).ask(gate(call()))
    assert ask.token is not None and ask.token.startswith("agt1.k2.")
    desk = make_desk(keys=Keys({"k1": OLD, "k2": NEW}))
    refused(desk, TokenError, yes(ask, token=ask.token.replace(".k2.", ".k1.")))


def test_a_call_is_no_ask(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    refused(desk, UnissuedAskError, yes(ask, ask_id="c1"))
    assert desk.ran == []


def test_a_result_without_a_claim_settles_nothing(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    run(desk.ledger.answer("th", [yes(ask)], owner="ann"))
    forged = Claim(
        claim_id="", thread_id="th", turn_id="t1", claimed_by="eve", decisions=(), held=(), withheld=(), budget=None
    )
    for work in (desk.ledger.record(forged, "c1", "ok"), desk.ledger.close(forged)):
        with pytest.raises(ClaimLostError):
            run(work)
    real = run(desk.ledger.claim("th", "t1", claimed_by="t2"))
    for work in (desk.ledger.record(forged, "c1", "ok"), desk.ledger.close(forged)):
        with pytest.raises(ClaimLostError):
            run(work)
    assert desk.states() == {"ask-c1": "claimed"}
    run(desk.ledger.record(real, "c1", "ok"))


def test_what_the_client_says_about_the_ask_is_not_what_runs(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(arguments={"to": "ann"})))
    # Other members of an answer are no part of a decision.
    lie: AgPausedAsk = replace(ask, tool_call_id="c9", metadata={"arguments": {"to": "eve"}})
    desk.resume(yes(lie, reason="arguments: eve", ordinal=None))
    assert desk.ran == [("send_mail", {"to": "ann"})]
