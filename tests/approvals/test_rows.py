"""Rows of the function-calling-loop matrix and rules of its contract that the ledger alone can show."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from agjson.approvals import (
    AlreadyClaimedError,
    AskConflictError,
    CallBudget,
    CallRequest,
    EditRefusedError,
    Keys,
    LedgerError,
    LedgerStore,
    SealedContinuations,
    Sealer,
    SpentAskError,
    SpentContinuationError,
    plan,
)
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.wire import encode
from tests.approvals.desk import OLD, Desk, call, gate, no, question, run, yes

MakeDesk = Callable[..., Desk]


def is_gated(request: CallRequest) -> bool:
    return request.name == "send_mail"


def batch() -> tuple[CallRequest, CallRequest, CallRequest]:
    """A safe call, a gated one, and a safe one, in this order."""
    return (
        call("s1", "look", {"at": 1}, index=0),
        call("g", "send_mail", index=1),
        call("s2", "look", {"at": 2}, index=2),
    )


# Approval pause and resume


def test_row_12_the_pause_shows_the_call_beside_its_ask_and_nothing_has_run(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(), message="Send it?"))
    assert (ask.tool_call_id, ask.kind, ask.message) == ("c1", "approval", "Send it?")
    assert desk.ran == []
    assert desk.states() == {"ask-c1": "open"}


def test_row_13_rule_13_an_approved_call_runs_exactly_once_and_the_inputs_stay_as_they_were(desk: Desk) -> None:
    request = gate(call(arguments={"to": "ann", "list": [1, {"a": None}]}))
    given = copy.deepcopy(request)
    (ask,) = desk.ask(request)
    answer = yes(ask)
    before = encode([ask, answer])
    desk.resume(answer)
    assert desk.ran == [("send_mail", {"to": "ann", "list": [1, {"a": None}]})]
    assert encode([ask, answer]) == before
    assert request == given


def test_row_14_row_40_row_54_rule_14_a_rejected_call_runs_never_and_its_denial_names_the_call(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call("call-7"), "approval-of-7"))
    desk.resume(no(ask, reason="no mail today"))
    (decision,) = desk.claims[0].decisions
    assert decision.call is not None
    assert (decision.ask.ask_id, decision.call.call_id) == ("approval-of-7", "call-7")
    assert (decision.verdict, decision.runs) == ("declined", False)
    assert desk.ran == []
    (record,) = run(desk.ledger.records("th"))
    assert (record.state, record.outcome) == ("done", "denied")


def test_row_17_a_mixed_batch_has_one_decision_for_each_call(desk: Desk) -> None:
    asks = desk.ask(*(gate(call(id, arguments={"to": id}, index=at)) for at, id in enumerate(("a", "b", "c"))))
    desk.resume(yes(asks[2]), no(asks[1]), yes(asks[0]))
    verdicts = {each.call.call_id: each.verdict for each in desk.claims[0].decisions if each.call}
    assert verdicts == {"a": "resolved", "b": "declined", "c": "resolved"}
    assert desk.ran == [("send_mail", {"to": "a"}), ("send_mail", {"to": "c"})]


def test_row_18_row_42_a_stored_and_reloaded_pause_resumes_whole(tmp_path: object) -> None:
    path = f"{tmp_path}/threads.db"
    first, second = batch()[0], batch()[1]

    def opened() -> tuple[SQLiteThreadStore, Desk]:
        threads = SQLiteThreadStore(path)
        return threads, Desk(SQLiteLedgerStore(threads))

    threads, desk = opened()
    issued = desk.ask(gate(second), held=[first], budget=CallBudget(5, 1))
    run(threads.aclose())

    threads, desk = opened()
    waiting = run(desk.ledger.progress("th", owner="ann")).waiting
    assert list(waiting) == issued
    desk.resume(yes(waiting[0]))
    assert desk.ran == [("look", {"at": 1}), ("send_mail", {"to": "ann"})]
    assert desk.claims[0].budget == CallBudget(5, 3)
    run(threads.aclose())

    threads, desk = opened()
    with pytest.raises(SpentAskError):
        desk.resume(yes(issued[0]))
    assert (desk.ran, desk.states()) == ([], {"ask-g": "done"})
    run(threads.aclose())


def test_row_19_a_decision_on_a_hosted_call_passes_by_and_nothing_runs_here(desk: Desk) -> None:
    hosted = call("h", "search", hosted=True, server="web")
    local = call("l", index=1)
    asks = desk.ask(gate(hosted), gate(local))
    desk.resume(*map(yes, asks))
    claim = desk.claims[0]
    assert [decision.runs for decision in claim.decisions] == [True, True]
    assert [request.call_id for request in claim.calls] == ["l"]
    # The provider's result never came, and nobody says otherwise.
    assert desk.states() == {"ask-h": "unknown", "ask-l": "done"}


# Approval correlation and replay


def test_row_27_row_39_an_ask_that_comes_again_is_no_second_one(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    for turn in ("t1", "t2"):
        with pytest.raises(AskConflictError):
            desk.ask(gate(call()), turn=turn)
    desk.resume(yes(ask))
    assert len(desk.ran) == 1


def test_row_29_rounds_with_one_call_id_approved_then_rejected_stay_apart(desk: Desk) -> None:
    (first,) = desk.ask(gate(call("c"), "t1:c", message="1"), turn="t1")
    desk.resume(yes(first))
    (second,) = desk.ask(gate(call("c"), "t2:c", message="2"), turn="t2")
    desk.resume(no(second))
    assert [each.outcome for each in run(desk.ledger.records("th"))] == ["ok", "denied"]
    assert len(desk.ran) == 1


def test_row_31_a_further_question_uses_up_the_answer_before_it_and_no_later_one(desk: Desk) -> None:
    (first,) = desk.ask(gate(call("c"), "t1:c"), turn="t1")
    (later,) = desk.ask(gate(call("c"), "t2:c"), turn="t2")
    run(desk.ledger.answer("th", [yes(first)], owner="ann"))
    claim = run(desk.ledger.claim("th", "t1", claimed_by="t3"))
    run(desk.ledger.record(claim, "c", "input_required"))
    desk.ask(question("more"), turn="t3")
    assert run(desk.ledger.close(claim)) == []
    assert desk.states() == {"t1:c": "done", "t2:c": "open", "more": "open"}
    desk.resume(yes(later))
    assert len(desk.ran) == 1


def test_row_37_rule_4_rule_27_a_completed_call_is_inert_on_every_later_turn(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()))
    desk.resume(yes(ask))
    for turn in ("t2", "t3"):
        (other,) = desk.ask(question(f"q-{turn}"), turn=turn)
        with pytest.raises(SpentAskError):
            desk.resume(yes(ask), yes(other, reply="thanks"))
        desk.resume(yes(other, reply="thanks"))
    assert len(desk.ran) == 1


def test_row_38_an_unanswered_batch_survives_other_turns_and_is_answered_once(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()), turn="t1")
    (other,) = desk.ask(question("q"), turn="t2")
    desk.resume(yes(other, reply="hello"))
    assert desk.ran == []
    desk.resume(yes(ask))
    with pytest.raises(SpentAskError):
        desk.resume(yes(ask))
    assert len(desk.ran) == 1


def test_gap_1_an_approval_runs_nothing_again_where_a_service_goes_on(desk: Desk, store: LedgerStore) -> None:
    # The service keeps the history under an id, which the client brings back with its answer, now and later again.
    kept = SealedContinuations(Sealer(Keys({"k1": OLD})), store)
    state = kept.seal({"previous_response_id": "resp_1"}, thread_id="th", ask_id="ask-c1")
    (ask,) = desk.ask(gate(call(), request_state=state))
    assert run(kept.take(state, thread_id="th", ask_id="ask-c1")) == {"previous_response_id": "resp_1"}
    desk.resume(yes(ask))
    assert len(desk.ran) == 1
    for turn in ("t2", "t3"):
        (other,) = desk.ask(question(f"q-{turn}"), turn=turn)
        with pytest.raises(SpentAskError):
            desk.resume(yes(ask))
        with pytest.raises(SpentContinuationError):
            run(kept.take(state, thread_id="th", ask_id="ask-c1"))
        with pytest.raises(AlreadyClaimedError):
            desk.go_on("th", "t1")
        assert desk.resume(yes(other, reply="thanks")).ready == (turn,)
    assert len(desk.ran) == 1
    assert run(desk.ledger.progress("th", owner="ann")).waiting == ()


# Mixed batches


def test_row_41_safe_calls_wait_for_the_gated_call_of_their_batch(desk: Desk) -> None:
    planned = run(desk.ledger.plan(batch(), is_gated, thread_id="th", owner="ann"))
    s1, g, s2 = batch()
    assert (planned.run, planned.ask, planned.held) == ((), (g,), (s1, s2))
    (ask,) = desk.ask(*map(gate, planned.ask), held=planned.held)
    assert desk.ran == []
    desk.resume(yes(ask))
    assert desk.ran == [("look", {"at": 1}), ("send_mail", {"to": "ann"}), ("look", {"at": 2})]


def test_row_41_safe_calls_run_also_where_the_gated_one_is_declined(desk: Desk) -> None:
    s1, g, s2 = batch()
    (ask,) = desk.ask(gate(g), held=[s1, s2])
    desk.resume(no(ask))
    assert desk.ran == [("look", {"at": 1}), ("look", {"at": 2})]


def test_a_batch_that_needs_nobody_runs_at_once() -> None:
    s1, _, s2 = batch()
    hosted = call("h", "search", hosted=True)
    planned = plan([s1, hosted, s2], is_gated)
    assert (planned.run, planned.ask, planned.held, planned.hosted) == ((s1, s2), (), (), (hosted,))


def test_row_43_row_46_an_unrelated_turn_releases_nothing_and_loses_nothing(desk: Desk) -> None:
    s1, g, _ = batch()
    (ask,) = desk.ask(gate(g), held=[s1], turn="t1")
    (other,) = desk.ask(question("q"), turn="t2")
    desk.resume(yes(other, reply="x"))
    assert desk.ran == []
    kept = run(desk.ledger.batch("th", "t1"))
    assert kept is not None and kept.held == (s1,)
    desk.resume(yes(ask))
    assert [name for name, _ in desk.ran] == ["look", "send_mail"]


def test_row_44_of_several_abandoned_batches_only_the_answered_one_is_released(desk: Desk) -> None:
    asks = {
        turn: desk.ask(gate(call(f"g-{turn}", arguments=turn)), held=[call(f"s-{turn}", "look", turn)], turn=turn)
        for turn in ("t1", "t2", "t3")
    }
    desk.resume(yes(asks["t2"][0]))
    assert desk.ran == [("send_mail", "t2"), ("look", "t2")]
    assert desk.states() == {"ask-g-t1": "open", "ask-g-t2": "done", "ask-g-t3": "open"}


def test_row_45_a_queue_asks_one_at_a_time_and_runs_nothing_early(desk: Desk) -> None:
    shown = desk.ask(*(gate(call(id, index=at)) for at, id in enumerate("abc")), one_at_a_time=True)
    seen: list[str] = []
    while shown:
        assert len(shown) == 1
        seen.append(shown[0].ask_id)
        assert desk.ran == []
        shown = list(desk.resume(yes(shown[0])).waiting)
    assert seen == ["ask-a", "ask-b", "ask-c"]
    assert len(desk.ran) == 3


def test_row_48_the_budget_is_shared_by_all_batches_and_counts_what_paused_again(desk: Desk) -> None:
    budget = CallBudget(limit=3)
    (ask,) = desk.ask(gate(call("g1")), held=[call("s1", "look", index=1)], budget=budget, turn="t1")
    run(desk.ledger.answer("th", [yes(ask)], owner="ann"))
    claim = run(desk.ledger.claim("th", "t1", claimed_by="t2"))
    run(desk.ledger.record(claim, "g1", "input_required"))
    assert claim.budget == CallBudget(limit=3, used=2)
    assert claim.budget is not None and (claim.budget.left, claim.budget.is_spent) == (1, False)
    # Going on does not reset it; a batch may overshoot, and the next one is refused.
    asks = desk.ask(gate(call("g2")), gate(call("g3")), budget=claim.budget, turn="t2")
    desk.resume(*map(yes, asks))
    after = desk.claims[-1].budget
    assert after == CallBudget(limit=3, used=4)
    assert after is not None and (after.left, after.is_spent) == (0, True)


def test_a_budget_is_spent_when_nothing_is_left() -> None:
    assert [CallBudget(2, used).is_spent for used in (1, 2, 3)] == [False, True, True]
    assert [CallBudget(2, used).left for used in (1, 2, 3)] == [1, 0, 0]


def test_a_denied_call_costs_nothing_of_the_budget(desk: Desk) -> None:
    asks = desk.ask(gate(call("g1")), gate(call("g2")), budget=CallBudget(2))
    desk.resume(no(asks[0]), yes(asks[1]))
    assert desk.claims[0].budget == CallBudget(2, 1)


@pytest.mark.parametrize(("limit", "used"), [(-1, 0), (0, -1)])
def test_a_budget_below_nothing_is_refused(limit: int, used: int) -> None:
    with pytest.raises(ValueError):
        CallBudget(limit, used)
    with pytest.raises(ValueError):
        CallBudget(1).spend(-1)


def test_a_spent_budget_does_not_keep_an_approved_call_from_running(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call()), budget=CallBudget(limit=1, used=1))
    desk.resume(yes(ask))
    assert len(desk.ran) == 1


def test_row_53_a_hosted_ask_takes_no_edits_and_stays_open(make_desk: MakeDesk) -> None:
    desk = make_desk(editable={"search": True})
    (ask,) = desk.ask(gate(call("h", "search", {"q": "a"}, hosted=True, server="web")))
    with pytest.raises(EditRefusedError):
        desk.resume(yes(ask, reply={"arguments": {"q": "b"}}))
    assert desk.states() == {"ask-h": "open"}


# What came of it


def test_row_55_row_56_row_57_each_outcome_of_an_approved_call_is_kept_once(desk: Desk) -> None:
    asks = desk.ask(*(gate(call(id)) for id in ("fails", "wrong", "works")))
    run(desk.ledger.answer("th", [yes(ask) for ask in asks], owner="ann"))
    claim = run(desk.ledger.claim("th", "t1", claimed_by="t2"))
    for id, outcome in (("fails", "error"), ("wrong", "error"), ("works", "ok")):
        run(desk.ledger.record(claim, id, outcome))  # type: ignore[arg-type]
    assert run(desk.ledger.close(claim)) == []
    assert [record.outcome for record in run(desk.ledger.records("th"))] == ["error", "error", "ok"]


def test_row_56_arguments_that_do_not_fit_are_one_error_and_the_tool_is_not_entered(desk: Desk) -> None:
    (ask,) = desk.ask(gate(call(arguments={"to": 7})))
    run(desk.ledger.answer("th", [yes(ask)], owner="ann"))
    claim = run(desk.ledger.claim("th", "t1", claimed_by="t2"))
    (request,) = claim.calls
    with pytest.raises(ValueError, match="to: not a string"):
        send_mail(desk, request)
    run(desk.ledger.record(claim, request.call_id, "error"))
    with pytest.raises(LedgerError):
        run(desk.ledger.record(claim, request.call_id, "ok"))
    assert run(desk.ledger.close(claim)) == []
    with pytest.raises(SpentAskError):
        desk.resume(yes(ask))
    assert desk.ran == []
    assert [(record.state, record.outcome) for record in run(desk.ledger.records("th"))] == [("done", "error")]


def send_mail(desk: Desk, request: CallRequest) -> None:
    """A tool that looks at its arguments before anything happens."""
    if not (isinstance(request.arguments, dict) and isinstance(request.arguments["to"], str)):
        raise ValueError("to: not a string")
    desk.ran.append((request.name, request.arguments))


def test_rule_1_an_approved_call_has_one_outcome_or_is_visibly_unknown(desk: Desk) -> None:
    asks = desk.ask(gate(call("a")), gate(call("b")))
    run(desk.ledger.answer("th", [yes(ask) for ask in asks], owner="ann"))
    claim = run(desk.ledger.claim("th", "t1", claimed_by="t2"))
    run(desk.ledger.record(claim, "a", "ok"))
    assert [request.call_id for request in run(desk.ledger.close(claim))] == ["b"]
    assert desk.states() == {"ask-a": "done", "ask-b": "unknown"}


def test_rule_2_calls_run_in_the_order_of_the_model(desk: Desk) -> None:
    late, early = call("z", arguments=2, index=5), call("a", arguments=0, index=1)
    asks = desk.ask(gate(late), gate(early), held=[call("m", "look", 1, index=3)])
    desk.resume(*map(yes, asks))
    assert [arguments for _, arguments in desk.ran] == [0, 1, 2]


def test_rule_3_calls_of_one_id_in_two_turns_are_two_calls(desk: Desk) -> None:
    (one,) = desk.ask(gate(call("c", arguments=1), "t1:c"), turn="t1")
    (two,) = desk.ask(gate(call("c", arguments=2), "t2:c"), turn="t2")
    desk.resume(yes(two))
    assert desk.ran == [("send_mail", 2)]
    desk.resume(yes(one))
    assert desk.ran == [("send_mail", 2), ("send_mail", 1)]


def test_rule_12_no_call_runs_before_its_approval(desk: Desk) -> None:
    asks = desk.ask(gate(call("a")), gate(call("b")), held=[call("s", "look", index=2)])
    assert desk.ran == []
    desk.resume(yes(asks[0]))
    assert desk.ran == []
