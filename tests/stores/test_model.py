"""Any sequence of calls, by two store objects on one file, against a model in memory."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from agjson.agents import LoggedTurn, Thread, ThreadBusyError, ThreadLease, recover
from agjson.stores import SQLiteThreadStore
from agjson.types import AgStreamEvent
from agjson.wire import encode
from tests.stores.child import after, turn
from tests.support.properties import examples

THREADS = ("a", "b", "ü \ud83d")


@dataclass
class Turn:
    """A turn that runs."""

    id: str
    begun: Thread
    noted: list[AgStreamEvent] = field(default_factory=list)
    stop: bool = False


@dataclass(eq=False)
class Right:
    """The right to run a thread, and the lease that stands for it."""

    store: int
    thread_id: str
    lease: ThreadLease
    turn: Turn | None = None
    held: bool = True


class Stores(RuleBasedStateMachine):
    rights: Bundle[Right] = Bundle("rights")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "threads.db"
        self.loop = asyncio.new_event_loop()
        self.stores = [SQLiteThreadStore(self.path), SQLiteThreadStore(self.path)]
        self.numbers = itertools.count()
        # The model.
        self.threads: dict[str, Thread] = {}
        self.order: list[str] = []
        self.held: dict[str, Right] = {}
        self.logs: dict[str, tuple[str, list[AgStreamEvent]]] = {}

    def teardown(self) -> None:
        for store in self.stores:
            self.wait(store.aclose())
        self.loop.close()
        self.folder.cleanup()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    # The model

    def keep(self, thread: Thread) -> None:
        self.threads[thread.thread_id] = thread
        if thread.thread_id in self.order:
            self.order.remove(thread.thread_id)
        self.order.append(thread.thread_id)

    def give_back(self, right: Right) -> None:
        if not right.held:
            return
        right.held = False
        del self.held[right.thread_id]
        if right.turn is not None:
            recovered = recover(right.turn.begun, right.turn.id, right.turn.noted)
            self.keep(recovered.thread)
            self.logs[right.thread_id] = (right.turn.id, [*right.turn.noted[: recovered.noted], *recovered.events])
            right.turn = None

    # What is done

    @rule(target=rights, store=st.integers(0, 1), thread_id=st.sampled_from(THREADS))
    def acquire(self, store: int, thread_id: str) -> Any:
        if thread_id in self.held:
            with pytest.raises(ThreadBusyError):
                self.wait(self.stores[store].acquire(thread_id))
            return multiple()
        lease = self.wait(self.stores[store].acquire(thread_id))
        assert lease.thread == self.threads.get(thread_id)
        right = self.held[thread_id] = Right(store, thread_id, lease)
        return right

    @rule(right=rights, owner=st.sampled_from(["ann", "bob", None]))
    def begin(self, right: Right, owner: str | None) -> None:
        if not right.held or right.turn is not None:
            return
        before = self.threads.get(right.thread_id) or Thread(thread_id=right.thread_id)
        begun = Turn(f"turn {next(self.numbers)}", replace(before, started_by="model", owner=owner))
        self.wait(right.lease.begin(begun.id, begun.begun))
        right.turn = begun
        self.logs[right.thread_id] = (begun.id, begun.noted)

    @rule(right=rights, count=st.integers(0, 3))
    def append(self, right: Right, count: int) -> None:
        if right.turn is None:
            return
        begun = right.turn
        events = turn(begun.id, right.thread_id)[:6][len(begun.noted) :][:count]
        self.wait(right.lease.append(events))
        begun.noted += events

    @rule(right=rights, owner=st.sampled_from(["ann", None]))
    def save(self, right: Right, owner: str | None) -> None:
        if right.turn is None:
            return
        begun, right.turn = right.turn, None
        thread = replace(after(begun.begun, begun.id), owner=owner)
        events = turn(begun.id, right.thread_id)[len(begun.noted) :]
        self.wait(right.lease.save(thread, events))
        begun.noted += events
        self.keep(thread)

    @rule(right=consumes(rights))
    def release(self, right: Right) -> None:
        self.wait(right.lease.release())
        self.give_back(right)

    @rule(store=st.integers(0, 1))
    def reopen(self, store: int) -> None:
        self.wait(self.stores[store].aclose())
        self.stores[store] = SQLiteThreadStore(self.path)
        for right in [right for right in self.held.values() if right.store == store]:
            # Whoever comes first ends the run, which is then saved last.
            self.wait(self.stores[1 - store].load(right.thread_id))
            self.give_back(right)

    @rule(store=st.integers(0, 1), thread_id=st.sampled_from(THREADS), revision=st.integers(0, 5))
    def put(self, store: int, thread_id: str, revision: int) -> None:
        thread = Thread(thread_id=thread_id, revision=revision)
        if thread_id in self.held:
            with pytest.raises(ThreadBusyError):
                self.wait(self.stores[store].put(thread))
            return
        self.wait(self.stores[store].put(thread))
        self.keep(thread)
        self.logs.pop(thread_id, None)

    @rule(store=st.integers(0, 1), thread_id=st.sampled_from(THREADS))
    def delete(self, store: int, thread_id: str) -> None:
        if thread_id in self.held:
            with pytest.raises(ThreadBusyError):
                self.wait(self.stores[store].delete(thread_id))
            return
        assert self.wait(self.stores[store].delete(thread_id)) is (thread_id in self.threads)
        self.logs.pop(thread_id, None)
        if self.threads.pop(thread_id, None) is not None:
            self.order.remove(thread_id)

    @rule(store=st.integers(0, 1), thread_id=st.sampled_from(THREADS), right_turn=st.booleans())
    def stop(self, store: int, thread_id: str, right_turn: bool) -> None:
        right = self.held.get(thread_id)
        running = right.turn if right is not None else None
        turn_id = running.id if running is not None and right_turn else "another"
        asked = running is not None and right_turn
        assert self.wait(self.stores[store].request_stop(thread_id, turn_id)) is asked
        if running is not None and asked:
            running.stop = True

    # What is to hold

    @invariant()
    def all_is_as_in_the_model(self) -> None:
        for store in self.stores:
            listed = self.wait(store.threads())
            assert [entry.thread_id for entry in listed] == self.order[::-1]
            assert [entry.is_running for entry in listed] == [id in self.held for id in self.order[::-1]]
            assert [entry.owner for entry in listed] == [self.threads[id].owner for id in self.order[::-1]]
            for thread_id in THREADS:
                assert self.wait(store.load(thread_id)) == self.threads.get(thread_id)
                latest = self.wait(store.latest_turn(thread_id))
                if thread_id not in self.logs:
                    assert latest is None
                    continue
                turn_id, noted = self.logs[thread_id]
                right = self.held.get(thread_id)
                running = None if right is None else right.turn
                owner = self.threads[thread_id].owner if running is None else running.begun.owner
                assert latest == LoggedTurn(
                    turn_id=turn_id, last_seq=len(noted) - 1, ended=running is None, owner=owner
                )
                assert self.wait(store.read_log(thread_id, turn_id)) == [encode(event) for event in noted]

    @invariant()
    def stops_are_heard_by_whoever_runs_the_turn(self) -> None:
        for number, store in enumerate(self.stores):
            asked = {
                (right.thread_id, right.turn.id)
                for right in self.held.values()
                if right.store == number and right.turn is not None and right.turn.stop
            }
            assert set(self.wait(store.stop_requests())) == asked


Stores.TestCase.settings = examples(12)
test_any_sequence_of_calls = Stores.TestCase
