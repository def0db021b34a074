"""The states of an ask: only the drawn ways lead from one to another."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest

from agjson.approvals import ANSWERED, FINAL, TRANSITIONS, AskState, Book, LedgerStore, TransitionError
from tests.approvals.desk import Desk, gate, run
from tests.approvals.desk import call as request
from tests.support.corpus import ROOT

STATES: tuple[AskState, ...] = get_args(AskState)
# A way to each state, by states that lead there.
WAYS: dict[AskState, tuple[AskState, ...]] = {
    "open": (),
    "resolved": ("resolved",),
    "declined": ("declined",),
    "cancelled": ("cancelled",),
    "met": ("met",),
    "claimed": ("resolved", "claimed"),
    "done": ("resolved", "claimed", "done"),
    "unknown": ("resolved", "claimed", "unknown"),
    "expired": ("expired",),
    "given_up": ("given_up",),
}


def moved(store: LedgerStore, *states: AskState) -> None:
    def work(book: Book) -> None:
        for state in states:
            record = book.ask("th", "ask-c1")
            assert record is not None
            book.change_ask(record, replace(record, state=state))

    run(store.transact(work))


def test_every_state_has_its_followers() -> None:
    assert set(TRANSITIONS) == set(STATES) == set(WAYS)
    assert {"done", "unknown", "expired", "given_up"} == FINAL
    assert {"resolved", "declined", "cancelled", "met"} == ANSWERED


@pytest.mark.parametrize("before", STATES)
def test_only_the_drawn_ways_lead_from_a_state(store: LedgerStore, before: AskState) -> None:
    desk = Desk(store)
    desk.ask(gate(request()))
    moved(store, *WAYS[before])
    for after in STATES:
        if after not in TRANSITIONS[before]:
            with pytest.raises(TransitionError):
                moved(store, after)
            assert desk.states() == {"ask-c1": before}


def test_nothing_that_was_decided_is_ever_open_again() -> None:
    assert all("open" not in following for following in TRANSITIONS.values())
    reach: dict[str, set[str]] = {state: set(following) for state, following in TRANSITIONS.items()}
    for _ in STATES:
        for state in reach:
            reach[state] |= {far for near in reach[state] for far in reach[near]}
    assert all(state not in reach[state] for state in STATES)
    # What was claimed, or can never be, cannot be claimed any more.
    assert [state for state in STATES if "claimed" in reach[state]] == ["open", "resolved", "met"]


def test_the_page_draws_exactly_these() -> None:
    page = (ROOT / "docs" / "approvals.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", page, flags=re.MULTILINE)
    drawn = {state: set(re.findall(r"`(\w+)`", following)) for state, following in rows if state in TRANSITIONS}
    assert drawn == {state: set(following) for state, following in TRANSITIONS.items()}
