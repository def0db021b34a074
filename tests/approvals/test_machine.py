"""Random rounds of calls, asks, answers, attacks, crashes and restarts against a small model.

An approved call runs once at most, and any other never; what is kept is what the model says.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from agjson.approvals import (
    AlreadyClaimedError,
    AnswerError,
    BatchOpenError,
    CallRequest,
    Claim,
    ClaimLostError,
    LedgerStore,
    MemoryLedgerStore,
    UnknownBatchError,
)
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import AgHitlAnswer, AgPausedAsk
from tests.approvals.desk import Clock, Desk, call, dismiss, gate, no, run, yes

THREADS = ("th", "other")
OWNERS = {"th": "ann", "other": "bob"}
SAYS = {"resolved": yes, "declined": no, "cancelled": dismiss}


@dataclass
class AskModel:
    """What is to be true of an ask."""

    batch: BatchModel
    call_id: str
    deadline: datetime | None
    state: str = "open"
    issued: AgPausedAsk | None = None

    def now(self, moment: datetime) -> str:
        over = self.state == "open" and self.deadline is not None and moment >= self.deadline
        return "expired" if over else self.state


@dataclass
class BatchModel:
    thread: str
    turn: str
    one_at_a_time: bool
    held: list[str]
    asks: dict[str, AskModel] = field(default_factory=dict[str, AskModel])
    state: str = "open"

    def shown(self, moment: datetime) -> list[str]:
        waits = [id for id, ask in self.asks.items() if ask.now(moment) == "open"] if self.state == "open" else []
        return waits[:1] if self.one_at_a_time else waits


class Approvals(RuleBasedStateMachine):
    """A host whose process may end anywhere."""

    def new_store(self) -> LedgerStore:
        return MemoryLedgerStore()

    @initialize()
    def start(self) -> None:
        self.clock = Clock()
        self.store = self.new_store()
        self.desk = Desk(self.store, self.clock)
        self.batches: list[BatchModel] = []
        self.asks: dict[tuple[str, str], AskModel] = {}
        self.runs: Counter[str] = Counter()
        self.allowed: set[str] = set()
        self.sent: list[tuple[str, AgHitlAnswer]] = []
        self.open_claims: list[tuple[Claim, BatchModel]] = []
        self.count = 0

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    # Rounds

    @rule(
        thread=st.sampled_from(THREADS),
        gated=st.integers(1, 3),
        held=st.integers(0, 2),
        one_at_a_time=st.booleans(),
        lasts=st.lists(st.none() | st.integers(1, 5), min_size=3, max_size=3),
    )
    def asks_are_issued(self, thread: str, gated: int, held: int, one_at_a_time: bool, lasts: list[int | None]) -> None:
        batch = BatchModel(thread, self.fresh("t"), one_at_a_time, [self.fresh("safe") for _ in range(held)])
        asks: list[Any] = []
        for at in range(gated):
            request = call(self.fresh("call"), arguments={"n": at}, index=at)
            minutes = lasts[at]
            deadline = None if minutes is None else self.clock.now + timedelta(minutes=minutes)
            fields = {} if deadline is None else {"expires_at": deadline.isoformat()}
            asks.append(gate(request, **fields))
            batch.asks[asks[-1].ask.ask_id] = AskModel(batch, request.call_id, deadline)
        safe = [call(id, "look", index=10) for id in batch.held]
        issued = self.desk.ask(
            *asks, thread=thread, turn=batch.turn, owner=OWNERS[thread], held=safe, one_at_a_time=one_at_a_time
        )
        self.batches.append(batch)
        self.asks |= {(thread, id): ask for id, ask in batch.asks.items()}
        self.see(thread, issued)

    def see(self, thread: str, issued: list[AgPausedAsk]) -> None:
        """A client gets asks with their tokens."""
        for ask in issued:
            assert ask.token
            self.asks[thread, ask.ask_id].issued = ask

    @precondition(lambda self: self.asks)
    @rule(data=st.data(), status=st.sampled_from(["resolved", "declined", "cancelled"]))
    def an_answer_comes(self, data: st.DataObject, status: str) -> None:
        thread, id = data.draw(st.sampled_from(sorted(self.asks)))
        model = self.asks[thread, id]
        if model.issued is None:
            return
        answer = SAYS[status](model.issued)
        right = id in model.batch.shown(self.clock.now)
        self.send(thread, [answer], right=right)
        if right:
            model.state = status

    @precondition(lambda self: any(batch.shown(self.clock.now) for batch in self.batches))
    @rule(data=st.data(), stop=st.none() | st.integers(0, 8))
    def a_batch_is_answered_and_claimed(self, data: st.DataObject, stop: int | None) -> None:
        batch = data.draw(st.sampled_from([each for each in self.batches if each.shown(self.clock.now)]))
        while shown := batch.shown(self.clock.now):
            # One that waited behind an ask that has expired is seen now.
            progress = run(self.desk.ledger.progress(batch.thread, owner=OWNERS[batch.thread]))
            self.see(batch.thread, list(progress.waiting))
            for id in shown:
                status = data.draw(st.sampled_from(["resolved", "resolved", "declined", "cancelled"]))
                issued = batch.asks[id].issued
                assert issued is not None
                self.send(batch.thread, [SAYS[status](issued)], right=True)
                batch.asks[id].state = status
        self.claims(batch, stop)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def an_answer_comes_again(self, data: st.DataObject) -> None:
        thread, answer = data.draw(st.sampled_from(self.sent))
        self.send(thread, [answer], right=False)

    @precondition(lambda self: any(ask.issued for ask in self.asks.values()))
    @rule(
        data=st.data(),
        how=st.sampled_from(["token", "no token", "ask", "thread", "owner", "state", "reply", "edit", "swap", "mode"]),
    )
    def an_answer_is_forged(self, data: st.DataObject, how: str) -> None:
        issued = [(thread, ask.issued) for (thread, _), ask in sorted(self.asks.items()) if ask.issued]
        thread, ask = data.draw(st.sampled_from(issued))
        answer, owner = yes(ask), OWNERS[thread]
        if how == "token":
            answer = replace(answer, token=f"{(ask.token or '')[:-2]}!!")
        elif how == "no token":
            answer = replace(answer, token=None)
        elif how == "ask":
            answer = replace(answer, ask_id="made-up")
        elif how == "thread":
            thread = "other" if thread == "th" else "th"
            owner = OWNERS[thread]
        elif how == "owner":
            owner = "eve"
        elif how == "state":
            answer = replace(answer, request_state="made up")
        elif how == "reply":
            answer = replace(answer, reply="yes")
        elif how == "edit":
            answer = replace(answer, reply={"arguments": {"to": "eve"}})
        elif how == "mode":
            answer = replace(answer, grant_mode_id="always")
        else:
            other = data.draw(st.sampled_from(issued))[1]
            if other.ask_id == ask.ask_id:
                return
            answer = replace(answer, token=other.token)
        self.send(thread, [answer], right=False, owner=owner)

    def send(self, thread: str, answers: list[AgHitlAnswer], *, right: bool, owner: str | None = None) -> None:
        try:
            progress = run(self.desk.ledger.answer(thread, answers, owner=owner or OWNERS[thread]))
        except AnswerError:
            assert not right
        else:
            assert right
            self.sent += [(thread, answer) for answer in answers]
            self.see(thread, list(progress.waiting))

    # Claims, and crashes in them

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), stop=st.none() | st.integers(0, 8))
    def a_batch_is_claimed(self, data: st.DataObject, stop: int | None) -> None:
        self.claims(data.draw(st.sampled_from(self.batches)), stop)

    def claims(self, batch: BatchModel, stop: int | None) -> None:
        """Claim a batch and run it; the process ends after some steps, or goes on to the end."""
        moment = self.clock.now
        waits = any(ask.now(moment) == "open" for ask in batch.asks.values())
        try:
            claim = run(self.desk.ledger.claim(batch.thread, batch.turn, claimed_by=self.fresh("run")))
        except BatchOpenError:
            assert batch.state == "open" and waits
            return
        except AlreadyClaimedError:
            assert batch.state != "open"
            return
        except UnknownBatchError:
            raise AssertionError("it was issued") from None
        assert batch.state == "open" and not waits
        batch.state = "claimed"
        approved = [ask.call_id for ask in batch.asks.values() if ask.state == "resolved"]
        self.allowed |= {*approved, *batch.held}
        for ask in batch.asks.values():
            after = {"resolved": "claimed", "declined": "done", "cancelled": "done"}
            ask.state = after.get(ask.state, ask.now(moment))
        assert [request.call_id for request in claim.calls] == [*approved, *batch.held]
        self.open_claims.append((claim, batch))
        self.go_on(claim, batch, stop)

    def go_on(self, claim: Claim, batch: BatchModel, stop: int | None) -> None:
        steps = 0

        def ends() -> bool:
            nonlocal steps
            steps += 1
            return stop is not None and steps > stop

        for request in claim.calls:
            if ends():
                return
            self.runs[request.call_id] += 1
            if ends():
                return
            run(self.desk.ledger.record(claim, request.call_id, "ok"))
            for ask in batch.asks.values():
                if ask.call_id == request.call_id:
                    ask.state = "done"
        if ends():
            return
        assert run(self.desk.ledger.close(claim)) == []
        self.open_claims.remove((claim, batch))
        batch.state = "done"

    @rule(thread=st.sampled_from(THREADS))
    def what_was_lost_is_recovered(self, thread: str) -> None:
        lost = run(self.desk.ledger.recover(thread, holding=True)).lost
        of_thread = [each for each in self.open_claims if each[0].thread_id == thread]
        told: dict[str, tuple[CallRequest, ...]] = {each.turn_id: each.calls for each in lost}
        for claim, batch in of_thread:
            for ask in batch.asks.values():
                if ask.state == "claimed":
                    ask.state = "unknown"
            batch.state = "lost"
            self.open_claims.remove((claim, batch))
            for request in claim.calls:
                # What has run and was not noted is told as unknown; nothing else is hidden.
                if self.runs[request.call_id] == 0:
                    assert request in told[batch.turn]
            with contextlib.suppress(ClaimLostError):
                run(self.desk.ledger.close(claim))
                raise AssertionError("a lost claim was closed")

    @rule(thread=st.sampled_from(THREADS))
    def the_conversation_goes_on_without(self, thread: str) -> None:
        run(self.desk.ledger.give_up(thread))
        for batch in self.batches:
            if batch.thread == thread and batch.state == "open":
                batch.state = "given_up"
                for ask in batch.asks.values():
                    ask.state = "expired" if ask.state == "expired" else "given_up"

    @rule(minutes=st.integers(1, 3))
    def time_goes_by(self, minutes: int) -> None:
        self.clock.forward(minutes=minutes)

    @rule(thread=st.sampled_from(THREADS))
    def what_has_expired_is_noted(self, thread: str) -> None:
        run(self.desk.ledger.expire(thread))
        for (where, _), ask in self.asks.items():
            if where == thread:
                ask.state = ask.now(self.clock.now)

    @rule()
    def the_process_is_started_anew(self) -> None:
        self.restart()
        self.desk = Desk(self.store, self.clock)
        for thread in THREADS:
            waiting = run(self.desk.ledger.progress(thread, owner=OWNERS[thread])).waiting
            self.see(thread, list(waiting))

    def restart(self) -> None:
        """Memory is not lost here, so that the machine goes on."""

    # What is always true

    @invariant()
    def nothing_runs_twice_and_nothing_without_a_yes(self) -> None:
        if hasattr(self, "runs"):
            assert all(count == 1 for count in self.runs.values())
            assert set(self.runs) <= self.allowed

    @invariant()
    def what_is_kept_is_what_the_model_says(self) -> None:
        if not hasattr(self, "desk"):
            return
        for thread in THREADS:
            kept = self.desk.states(thread)
            assert kept == {id: ask.state for (where, id), ask in self.asks.items() if where == thread}
            shown = [id for each in self.batches if each.thread == thread for id in each.shown(self.clock.now)]
            progress = run(self.desk.ledger.progress(thread, owner=OWNERS[thread]))
            assert [ask.ask_id for ask in progress.waiting] == shown
            ready = [
                each.turn
                for each in self.batches
                if each.thread == thread
                and each.state == "open"
                and all(ask.now(self.clock.now) != "open" for ask in each.asks.values())
            ]
            assert list(progress.ready) == ready


class ApprovalsOnDisk(Approvals):
    """The same, with a file that is opened anew."""

    def new_store(self) -> LedgerStore:
        self.folder = tempfile.TemporaryDirectory()
        return self.opened()

    def opened(self) -> LedgerStore:
        self.threads = SQLiteThreadStore(Path(self.folder.name) / "threads.db")
        return SQLiteLedgerStore(self.threads)

    def restart(self) -> None:
        run(self.threads.aclose())
        self.store = self.opened()

    def teardown(self) -> None:
        if hasattr(self, "threads"):
            run(self.threads.aclose())
            self.folder.cleanup()


@pytest.mark.parametrize(("machine", "examples"), [(Approvals, 60), (ApprovalsOnDisk, 12)], ids=["memory", "disk"])
def test_at_most_once_whatever_happens(machine: type[RuleBasedStateMachine], examples: int) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
