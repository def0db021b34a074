"""Whatever a store does, and a reader to a run: the thread stays one, its end is told once, its right is free."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from agjson.agents import Invocation, MemoryContinuations, Thread, ThreadBusyError, ThreadLease, ThreadStore
from agjson.agents.recovery import recover
from agjson.fold import Reducer
from agjson.types import AbortedOutcome, AgHitlAnswer, AgInput, AgReduceResult, AgStreamEvent, ResumeInput
from agjson.wire import to_dict
from tests.support.folding import same_json
from tests.support.properties import examples
from tests.support.scripted import ScriptAgent, calls, results, said, start, text

Native = dict[str, Any]
TERMINALS = ("turn.done", "turn.error", "turn.abort")
ASK: list[Native] = [{"do": "hitl_ask", "kind": "text", "ask_id": "a"}, {"do": "turn_paused"}]
SCRIPTS: list[list[Any]] = [
    text("one two three"),
    [*text("one two"), *calls("c1", "c2")],
    [*text("one"), ValueError("boom")],
    [*text("one"), *ASK],
    [],
]


class Store(ThreadStore):
    """Keeps its word to the driver, and otherwise does as it is told: each call waits, and some fail.

    Args:
        waits: how many turns of the loop each call takes, one after the other and again from the first.
        failing: the numbers of the calls that fail.
    """

    def __init__(self, waits: Sequence[int], failing: frozenset[int]) -> None:
        self.waits = waits
        self.failing = failing
        self.count = 0
        self.threads: dict[str, Thread] = {}
        self.running: set[str] = set()
        self.log: list[AgStreamEvent] = []

    async def wait(self) -> None:
        self.count += 1
        number = self.count
        for _ in range(self.waits[number % len(self.waits)]):
            await asyncio.sleep(0)
        if number in self.failing:
            raise OSError(f"call {number} fails")

    async def load(self, thread_id: str) -> Thread | None:
        return self.threads.get(thread_id)

    async def acquire(self, thread_id: str) -> ThreadLease:
        await self.wait()
        if thread_id in self.running:
            raise ThreadBusyError("running", "$.threadId")
        self.running.add(thread_id)
        return Lease(self, thread_id)


class Lease(ThreadLease):
    def __init__(self, store: Store, thread_id: str) -> None:
        self.store = store
        self.thread_id = thread_id
        self.thread = store.threads.get(thread_id)
        self.begun: tuple[str, Thread] | None = None

    async def begin(self, turn_id: str, thread: Thread, *, also: Any = None) -> None:
        await self.store.wait()
        self.begun = (turn_id, thread)
        self.store.log = []

    async def append(self, events: Sequence[AgStreamEvent]) -> None:
        try:
            await self.store.wait()
        except asyncio.CancelledError:
            self.store.log += events
            raise
        self.store.log += events

    async def save(self, thread: Thread, events: Sequence[AgStreamEvent]) -> None:
        await self.store.wait()
        self.begun = None
        self.store.log += events
        self.store.threads[self.thread_id] = thread

    async def release(self) -> None:
        begun, self.begun = self.begun, None
        try:
            await self.store.wait()
        finally:
            if begun is not None:
                found = recover(begun[1], begun[0], self.store.log)
                self.store.log = [*self.store.log[: found.noted], *found.events]
                self.store.threads[self.thread_id] = found.thread
            self.store.running.discard(self.thread_id)


class Keeping(ScriptAgent):
    def _invoke(self, invocation: Invocation) -> Any:
        invocation.keep("state")
        return super()._invoke(invocation)


def folded(before: AgReduceResult | None, events: Sequence[AgStreamEvent]) -> AgReduceResult:
    reducer = Reducer(before)
    for event in events:
        reducer.push(event)
    assert not reducer.needs_resync, reducer.resync_reason
    return reducer.result()


def next_input(thread: Thread | None, number: int) -> AgInput:
    """What the thread waits for, one by one; else a start."""
    pending = None if thread is None else thread.pending
    if pending is not None and pending.open_calls:
        return results(pending.open_calls[0], turn=f"r{number}")
    if pending is not None and pending.open_asks:
        answer = AgHitlAnswer(ask_id=pending.open_asks[0].ask_id, status="resolved", reply="yes")
        return ResumeInput(thread_id="th", turn_id=f"r{number}", answers=[answer])
    return start(said("hello", f"u{number}"), turn=f"t{number}")


Way = tuple[Literal["whole", "close", "cancel"], int]


async def read(agent: ScriptAgent, ag_input: AgInput, way: Way) -> tuple[list[AgStreamEvent], BaseException | None]:
    """The events that a reader gets, who may leave after some, or be cancelled after some turns of the loop."""
    how, after = way
    got: list[AgStreamEvent] = []

    async def reading() -> None:
        async with aclosing(agent.run(ag_input)) as events:
            async for event in events:
                got.append(event)
                if how == "close" and len(got) > after:
                    return

    task = asyncio.ensure_future(reading())
    if how == "cancel":
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
    done = await asyncio.gather(task, return_exceptions=True)
    return got, done[0]


ways = st.tuples(st.sampled_from(["whole", "whole", "close", "cancel"]), st.integers(0, 24))


@examples(250)
@given(
    runs=st.lists(st.tuples(st.sampled_from(SCRIPTS), ways), min_size=1, max_size=4),
    waits=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    failing=st.frozensets(st.integers(1, 30), max_size=3),
    blocking=st.booleans(),
)
def test_any_store_and_any_reader(
    runs: list[tuple[list[Any], Way]], waits: list[int], failing: frozenset[int], blocking: bool
) -> None:
    async def all_of_them() -> None:
        store = Store(waits, failing)
        for number, (script, way) in enumerate(runs):
            agent = Keeping(lambda run, s=script: s, blocking=blocking, store=store, continuations=kept)
            before = store.threads.get("th")
            got, raised = await read(agent, next_input(before, number), way)
            assert not store.running
            assert [event.seq for event in got] == list(range(len(got)))
            ends = [event for event in got if event.type in TERMINALS]
            if raised is None and way[0] != "close":
                assert len(ends) == 1
            assert len(ends) <= 1
            assert not (got and isinstance(raised, Exception))
            if not got:
                continue
            result = None if before is None else before.result
            seen = folded(result, got)
            after = store.threads["th"]
            if ends and getattr(ends[0], "code", None) != "store_failed":
                assert same_json(to_dict(seen), to_dict(after.result))
                # An end that waits for something is one that can be gone on from.
                waits_for = getattr(ends[0], "finish_reason", None) in ("paused", "tool_call")
                assert waits_for == (not after.pending.is_complete)
            if not failing:
                assert after.result.turns[-1].outcome != AbortedOutcome(reason="interrupted")
                assert store.log[: len(got)] == got
                assert same_json(to_dict(folded(result, store.log)), to_dict(after.result))

    kept = MemoryContinuations()
    asyncio.run(all_of_them())
