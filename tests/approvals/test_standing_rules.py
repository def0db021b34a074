"""Standing rules, and how far each of them reaches (rows 49 to 51 of the matrix)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from agjson import EncodeError
from agjson.approvals import CallRequest, Grant, LedgerError, Plan
from agjson.types import AgGrantMode
from tests.approvals.desk import EDITS, START, Desk, call, gate, no, run, yes

MakeDesk = Callable[..., Desk]
MODES = [AgGrantMode(id="once"), AgGrantMode(id="tool"), AgGrantMode(id="exact"), AgGrantMode(id="mine")]
GRANTS = {
    "tool": Grant(arguments="any"),
    "exact": Grant(arguments="exact", lasts=timedelta(hours=1)),
    "mine": Grant(arguments="any", threads="owner"),
}


def planned(desk: Desk, *calls: CallRequest, thread: str = "th", owner: str | None = "ann") -> Plan:
    return run(desk.ledger.plan(calls, lambda request: True, thread_id=thread, owner=owner))


def needs_ask(desk: Desk, request: CallRequest, **where: Any) -> bool:
    found = planned(desk, request, **where)
    assert bool(found.ask) != bool(found.run)
    assert (request.call_id in found.rules) == bool(found.run)
    return bool(found.ask)


def allow(desk: Desk, **fields: Any) -> str:
    return run(desk.ledger.allow(**{"tool": "send_mail", "owner": "ann", **fields})).rule_id


def test_row_49_a_rule_for_a_tool_covers_later_calls_of_it_and_no_other(desk: Desk) -> None:
    (open_ask,) = desk.ask(gate(call("before")))
    allow(desk)
    assert not needs_ask(desk, call("c1"))
    assert not needs_ask(desk, call("c2", arguments={"any": ["thing"]}))
    assert needs_ask(desk, call("c3", "send_post"))
    assert needs_ask(desk, call("c4", "send_mail2"))
    # What was asked before is still for a person to decide.
    assert desk.states() == {"ask-before": "open"}
    assert run(desk.ledger.progress("th", owner="ann")).waiting == (open_ask,)
    assert desk.ran == []


@pytest.mark.parametrize(
    ("ruled", "called", "covered"),
    [
        (None, None, True),
        ("mail", "mail", True),
        (None, "mail", False),
        ("mail", None, False),
        ("mail", "Mail", False),
        ("mail", "mail2", False),
        ("", None, False),
    ],
)
def test_row_50_a_rule_never_crosses_its_server(
    desk: Desk, ruled: str | None, called: str | None, covered: bool
) -> None:
    allow(desk, server=ruled)
    assert needs_ask(desk, call(server=called)) is not covered


@pytest.mark.parametrize(
    ("ruled", "called", "covered"),
    [
        ({"to": "ann", "n": 1}, {"n": 1.0, "to": "ann"}, True),
        ({"to": "ann"}, {"to": "bob"}, False),
        ({"to": "ann"}, {"to": "ann", "cc": "eve"}, False),
        ({"to": "ann"}, {}, False),
        ({"to": "ann"}, {"to": ["ann"]}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"x": None}, {}, False),
        ({"n": 2**53}, {"n": 2**53 + 1}, False),
        ({}, {}, True),
        ({}, {"to": "ann"}, False),
        ({}, None, False),
        (None, None, True),
        (None, {}, False),
        ([], {}, False),
    ],
)
def test_row_51_a_rule_for_arguments_is_for_exactly_these(desk: Desk, ruled: Any, called: Any, covered: bool) -> None:
    allow(desk, arguments=ruled)
    request = CallRequest(call_id="c1", name="send_mail", arguments=called)
    assert needs_ask(desk, request) is not covered


def test_row_51_an_empty_rule_is_not_tool_wide(desk: Desk) -> None:
    allow(desk, arguments={})
    assert not needs_ask(desk, call(arguments={}))
    assert needs_ask(desk, call(arguments={"to": "eve"}))


def test_a_rule_is_for_its_owner_and_its_thread(desk: Desk) -> None:
    allow(desk, thread_id="th")
    assert not needs_ask(desk, call())
    assert needs_ask(desk, call(), thread="other")
    assert needs_ask(desk, call(), owner="bob")
    assert needs_ask(desk, call(), owner=None)
    allow(desk)
    assert not needs_ask(desk, call(), thread="other")
    assert needs_ask(desk, call(), thread="other", owner="bob")


def test_a_rule_of_nobody_needs_a_thread(desk: Desk) -> None:
    with pytest.raises(ValueError):
        allow(desk, owner=None)
    allow(desk, owner=None, thread_id="th")
    assert not needs_ask(desk, call(), owner=None)
    assert needs_ask(desk, call(), owner=None, thread="other")
    assert needs_ask(desk, call(), owner="ann")


def test_a_rule_expires(desk: Desk) -> None:
    allow(desk, expires_at=START + timedelta(minutes=1))
    assert not needs_ask(desk, call())
    desk.clock.forward(minutes=1)
    assert needs_ask(desk, call())
    assert run(desk.ledger.rules(owner="ann")) == []
    with pytest.raises(ValueError):
        allow(desk, expires_at=datetime(2027, 1, 1))


def test_a_rule_is_revoked_by_its_owner_alone(desk: Desk) -> None:
    rule = allow(desk)
    for owner in ("bob", None):
        with pytest.raises(LedgerError):
            run(desk.ledger.revoke(rule, owner=owner))
    assert not needs_ask(desk, call())
    run(desk.ledger.revoke(rule, owner="ann"))
    assert needs_ask(desk, call())
    with pytest.raises(LedgerError):
        run(desk.ledger.revoke(rule, owner="ann"))


def test_rules_are_listed_as_they_were_made(desk: Desk) -> None:
    ids = [allow(desk, thread_id="th"), allow(desk, thread_id="other"), allow(desk, server="mail", arguments={"x": 1})]
    rules = run(desk.ledger.rules(owner="ann"))
    assert [rule.rule_id for rule in rules] == ids
    assert (rules[2].server, rules[2].arguments, rules[2].made_at) == ("mail", {"x": 1}, START)
    assert [rule.rule_id for rule in run(desk.ledger.rules(owner="ann", thread_id="th"))] == [ids[0], ids[2]]


def test_arguments_without_a_json_form_make_no_rule(desk: Desk) -> None:
    with pytest.raises(EncodeError):
        allow(desk, arguments={"x": float("nan")})
    assert run(desk.ledger.rules(owner="ann")) == []


def test_a_hosted_call_that_a_rule_covers_is_left_to_the_provider(desk: Desk) -> None:
    allow(desk, server="mail")
    found = planned(desk, call(server="mail", hosted=True))
    assert (found.run, found.ask, len(found.hosted), list(found.rules)) == ((), (), 1, ["c1"])


def test_a_covered_call_waits_where_another_one_of_its_batch_needs_an_ask(desk: Desk) -> None:
    allow(desk)
    covered, other = call("c1"), call("c2", "send_post")
    found = planned(desk, covered, other)
    assert (found.run, found.held, found.ask) == ((), (covered,), (other,))


# Grant modes that stand for rules


def granted(make_desk: MakeDesk, mode: str, **fields: Any) -> Desk:
    desk = make_desk(grants=GRANTS, **fields)
    (ask,) = desk.ask(gate(call(server="mail"), grant_modes=MODES))
    desk.resume(yes(ask, grant_mode_id=mode))
    assert len(desk.ran) == 1
    return desk


def test_once_grants_once(make_desk: MakeDesk) -> None:
    assert needs_ask(granted(make_desk, "once"), call(server="mail"))


def test_a_grant_for_the_tool_is_for_its_server_and_this_thread(make_desk: MakeDesk) -> None:
    desk = granted(make_desk, "tool")
    assert not needs_ask(desk, call(server="mail", arguments={"to": "bob"}))
    assert needs_ask(desk, call())
    assert needs_ask(desk, call(server="mail"), thread="other")


def test_a_grant_for_the_arguments_lasts_as_long_as_it_says(make_desk: MakeDesk) -> None:
    desk = granted(make_desk, "exact")
    assert not needs_ask(desk, call(server="mail"))
    assert needs_ask(desk, call(server="mail", arguments={"to": "bob"}))
    desk.clock.forward(hours=1)
    assert needs_ask(desk, call(server="mail"))


def test_a_grant_for_edited_arguments_is_for_those_that_were_approved(make_desk: MakeDesk) -> None:
    desk = make_desk(grants=GRANTS, editable={"send_mail": EDITS})
    (ask,) = desk.ask(gate(call(), grant_modes=MODES))
    desk.resume(yes(ask, grant_mode_id="exact", reply={"arguments": {"to": "bob"}}))
    assert not needs_ask(desk, call(arguments={"to": "bob"}))
    assert needs_ask(desk, call(arguments={"to": "ann"}))


def test_a_grant_for_all_threads_stays_in_this_one_where_the_owner_has_no_name(make_desk: MakeDesk) -> None:
    desk = granted(make_desk, "mine")
    assert not needs_ask(desk, call(server="mail"), thread="other")
    (ask,) = desk.ask(gate(call("c9"), grant_modes=MODES), owner=None, turn="t2")
    desk.resume(yes(ask, grant_mode_id="mine"), owner=None)
    assert not needs_ask(desk, call(), owner=None)
    assert needs_ask(desk, call(), owner=None, thread="other")


def test_a_refusal_makes_no_rule(make_desk: MakeDesk) -> None:
    desk = make_desk(grants=GRANTS)
    asks = desk.ask(gate(call("c1"), grant_modes=MODES), gate(call("c2"), grant_modes=MODES))
    desk.resume(no(asks[0]), yes(asks[1], reply=False, grant_mode_id="tool"))
    assert run(desk.ledger.rules(owner="ann")) == []
    assert needs_ask(desk, call())


def test_a_grant_counts_when_its_batch_is_claimed(make_desk: MakeDesk) -> None:
    desk = make_desk(grants=GRANTS)
    first, second = desk.ask(gate(call("c1"), grant_modes=MODES), gate(call("c2")))
    desk.resume(yes(first, grant_mode_id="tool"))
    assert needs_ask(desk, call())
    desk.resume(yes(second))
    assert not needs_ask(desk, call())
