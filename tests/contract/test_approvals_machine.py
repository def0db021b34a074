"""Random rounds of calls, asks, answers, attacks, crashes and restarts with real agents, against a small model.

An approved call has run once at most, any other never, a legitimate answer is never refused, and after each step the
stored transcript and every request to the model are valid.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from agjson.agents import MemoryThreadStore, Thread, ThreadPausedError, ThreadStore
from agjson.approvals import Keys, Ledger, LedgerStore, MemoryLedgerStore, Policy, SpentAskError, TokenError
from agjson.errors import AgJSONError
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.testing.contract import GATED_TOOL, SAFE_TOOL, GatedScene, Gating, Subject
from agjson.transcript import validate
from agjson.types import (
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgStreamEvent,
    PausedOutcome,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolCallBlock,
    TurnDone,
)
from agjson.wire import answer_to, to_dict
from tests.contract.subjects import anthropic_gated, murmur
from tests.support.broken_approvals import (
    LosesTheRefused,
    RunsSafeCallsAtOnce,
    RunsTheRefused,
    RunsTwice,
    forgiving,
    gating,
    running_on,
)

THREADS = ("one", "two")
LASTS = timedelta(minutes=10)
BEGIN = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
FORGERIES: dict[str, dict[str, Any]] = {
    "no token": {"token": None},
    "a made-up token": {"token": "agt1.k.AAAA"},
    "a made-up ask": {"ask_id": "made-up"},
    "a wrong reply": {"reply": "yes"},
    "edited arguments": {"reply": {"arguments": {"to": "eve"}}},
    "a made-up state": {"request_state": "made up"},
}


class Died(BaseException):
    """The end of a process."""


@dataclass
class AskModel:
    """What is to be true of an ask."""

    ask: AgPausedAsk
    thread: str
    to: str
    until: datetime
    state: str = "open"


@dataclass
class BatchModel:
    """The asks on which a thread waits, and the safe calls beside them."""

    turn: str
    asks: dict[str, AskModel]
    held: set[str]

    def open(self, moment: datetime) -> list[AskModel]:
        return [ask for ask in self.asks.values() if ask.state == "open" and moment < ask.until]


@dataclass(frozen=True)
class Break:
    """How a run is ended from outside.

    Attributes:
        tool: in how many tools from now the process dies; None: in none.
        after: after its effect, not before.
        events: after how many events the reader stops; None: it reads all.
    """

    tool: int | None = None
    after: bool = False
    events: int | None = None


WHOLE = Break()
breaks = st.integers(0, 5).flatmap(
    lambda kind: (
        st.builds(Break, tool=st.integers(1, 3), after=st.booleans())
        if kind == 4
        else st.builds(Break, events=st.integers(1, 12))
        if kind == 5
        else st.just(WHOLE)
    )
)
shapes = st.lists(st.sampled_from([GATED_TOOL, GATED_TOOL, SAFE_TOOL]), max_size=3)


@dataclass
class Told:
    """What a client has seen of a run, and whether it was broken off."""

    events: list[AgStreamEvent] = field(default_factory=list[AgStreamEvent])
    broken: bool = False


class Rounds(RuleBasedStateMachine):
    """A client, some attackers, and a server whose process may end anywhere."""

    gating: Gating
    disk = False

    @initialize(kind=st.integers(0, 7), on_paused=st.sampled_from(["refuse", "discard"]))
    def begin(self, kind: int, on_paused: str) -> None:
        self.folder = tempfile.TemporaryDirectory() if self.disk else None
        self.file: SQLiteThreadStore | None = None
        self.now = BEGIN
        self.make = list(self.gating.agents.values())[kind % len(self.gating.agents)]
        self.scene = GatedScene([], {"on_paused": on_paused})
        self.stores: tuple[ThreadStore, LedgerStore] = (MemoryThreadStore(), MemoryLedgerStore())
        self.restart()
        self.count = 0
        self.waiting: dict[str, BatchModel] = {}
        self.asks: dict[tuple[str, str], AskModel] = {}
        self.allowed: set[str] = set()
        self.sent: list[ResumeInput] = []
        self.started: set[str] = set()
        # Turns that were left or broken off: what is missing there is added to requests alone.
        self.loose: dict[str, set[str]] = {id: set() for id in THREADS}
        # Turns whose calls were allowed to a run that was broken off: the next run tells what is not known of them.
        self.lost: dict[str, set[str]] = {}
        self.checked = 0

    def restart(self) -> None:
        if self.folder is not None:
            if self.file is not None:
                asyncio.run(self.file.aclose())
            self.file = SQLiteThreadStore(Path(self.folder.name) / "threads.db")
            self.stores = (self.file, SQLiteLedgerStore(self.file))
        policy = Policy(keys=Keys({"k": b"k" * 32}), clock=lambda: self.now, lasts=LASTS)
        self.scene.settings |= {"store": self.stores[0], "approvals": Ledger(self.stores[1], policy)}
        self.agent = self.make(self.scene)

    def teardown(self) -> None:
        if getattr(self, "file", None) is not None:
            asyncio.run(self.file.aclose())  # type: ignore[union-attr]
        if getattr(self, "folder", None) is not None:
            self.folder.cleanup()  # type: ignore[union-attr]

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    # Runs

    def run(self, ag_input: AgInput, broken_by: Break, waits: bool) -> Told:
        """Run an input that has to be taken."""
        told = Told()
        left = broken_by.tool

        def die(tool: str) -> None:
            nonlocal left
            if left is not None:
                left -= 1
                if left == 0:
                    raise Died

        self.scene.before, self.scene.after = (None, die) if broken_by.after else (die, None)
        try:
            if waits:
                asyncio.run(self.in_loop(ag_input, broken_by.events, told))
            else:
                self.here(ag_input, broken_by.events, told)
        except Died:
            told.broken = True
        self.scene.before = self.scene.after = None
        if broken_by.tool is not None and not (told.events and isinstance(told.events[-1], TurnDone)):
            # A loop of its own may end by a cancellation where its task has died.
            told.broken = True
        self.started.add(ag_input.thread_id)
        self.lost.pop(ag_input.thread_id, None)
        if told.broken:
            self.loose[ag_input.thread_id].add(ag_input.turn_id)
        return told

    def here(self, ag_input: AgInput, most: int | None, told: Told) -> None:
        stream = self.agent.run_sync(ag_input)
        for event in stream:
            told.events.append(event)
            if len(told.events) == most:
                told.broken = not isinstance(event, TurnDone)
                break
        stream.close()

    async def in_loop(self, ag_input: AgInput, most: int | None, told: Told) -> None:
        async with aclosing(self.agent.run(ag_input)) as stream:
            async for event in stream:
                told.events.append(event)
                if len(told.events) == most:
                    told.broken = not isinstance(event, TurnDone)
                    break

    def refused(self, ag_input: AgInput, waits: bool, *kinds: type[Exception]) -> None:
        """Run an input that must have no effect."""
        before = self.everything()
        with pytest.raises(kinds or (AgJSONError,)) as caught:
            if waits:
                asyncio.run(self.in_loop(ag_input, None, Told()))
            else:
                self.here(ag_input, None, Told())
        assert isinstance(caught.value, AgJSONError)
        assert self.everything() == before

    def everything(self) -> Any:
        threads = [self.stored(id) for id in sorted(self.started)]
        return (
            [(to_dict(each.result), each.pending, each.revision) for each in threads],
            dict(self.scene.ran),
            len(self.scene.requests),
        )

    def stored(self, thread_id: str) -> Thread:
        thread = asyncio.run(self.agent.store.load(thread_id))
        assert thread is not None
        return thread

    def see(self, thread_id: str, told: Told) -> None:
        """The client learns of a pause."""
        self.waiting.pop(thread_id, None)
        end = told.events[-1] if told.events else None
        asks: list[AgPausedAsk] = []
        if isinstance(end, TurnDone) and isinstance(end.outcome, PausedOutcome):
            asks = list(end.outcome.asks)
        elif told.broken and self.stored(thread_id).pending.asks:
            # It had paused before the reader stopped, who comes back for the asks.
            asks = list(asyncio.run(self.scene.approvals.progress(thread_id)).waiting)
        if not asks:
            return
        calls = {
            block.tool_call_id: (message.turn_id, block)
            for message in self.stored(thread_id).result.messages
            for block in message.content
            if isinstance(block, ToolCallBlock)
        }
        batch = BatchModel("", {}, set())
        for ask in asks:
            assert ask.token and ask.tool_call_id and ask.expires_at
            turn, block = calls[ask.tool_call_id]
            batch.turn = turn or ""
            to = to_dict(block)["input"]["to"]
            model = AskModel(ask, thread_id, to, datetime.fromisoformat(ask.expires_at))
            batch.asks[ask.ask_id] = self.asks[thread_id, ask.ask_id] = model
        mine = [to_dict(block) for turn, block in calls.values() if turn == batch.turn]
        ended = set(self.scene.ran) | {(GATED_TOOL, each.to) for each in batch.asks.values()}
        batch.held = {
            block["input"]["to"]
            for block in mine
            if block["name"] == SAFE_TOOL and (SAFE_TOOL, block["input"]["to"]) not in ended
        }
        self.waiting[thread_id] = batch

    def reply(self, shape: Iterable[str]) -> None:
        """What the model will say next."""
        calls = [(tool, self.fresh("gated" if tool == GATED_TOOL else "safe")) for tool in shape]
        if calls:
            self.scene.add_reply(*calls)
            if all(tool == SAFE_TOOL for tool, _ in calls):
                self.allowed |= {to for _, to in calls}

    # Rounds

    def start(self, thread_id: str) -> StartInput:
        id = self.fresh("turn")
        said = AgMessage(id=f"{id}-said", role="user", content=[TextBlock(text="Please.")])
        return StartInput(thread_id=thread_id, turn_id=id, messages=[said])

    @rule(thread=st.sampled_from(THREADS), shape=shapes, end=breaks, waits=st.booleans())
    def the_user_says_something(self, thread: str, shape: list[str], end: Break, waits: bool) -> None:
        batch = self.waiting.get(thread)
        if batch is not None and batch.open(self.now) and self.scene.on_paused == "refuse":
            self.refused(self.start(thread), waits, ThreadPausedError)
            return
        if batch is not None:
            self.loose[thread].add(batch.turn)
            for ask in batch.asks.values():
                ask.state = "given up"
        self.reply(shape)
        self.see(thread, self.run(self.start(thread), end, waits))

    @precondition(lambda self: self.waiting)
    @rule(
        data=st.data(),
        statuses=st.lists(st.sampled_from(["resolved", "resolved", "declined", "cancelled"]), min_size=3, max_size=3),
        many=st.booleans(),
        shape=shapes,
        end=breaks,
        waits=st.booleans(),
    )
    def answers_come(
        self, data: st.DataObject, statuses: list[Any], many: bool, shape: list[str], end: Break, waits: bool
    ) -> None:
        thread = data.draw(st.sampled_from(sorted(self.waiting)))
        batch = self.waiting[thread]
        asks = batch.open(self.now)
        if not asks:
            return
        chosen = asks if many else [data.draw(st.sampled_from(asks))]
        answers = [answer_to(ask.ask, status) for ask, status in zip(chosen, statuses, strict=False)]
        for ask, status in zip(chosen, statuses, strict=False):
            ask.state = status
        ag_input = ResumeInput(thread_id=thread, turn_id=self.fresh("turn"), answers=answers)
        self.sent.append(ag_input)
        self.go_on(thread, batch, ag_input, shape, end, waits)

    def go_on(
        self, thread: str, batch: BatchModel, ag_input: ResumeInput, shape: list[str], end: Break, waits: bool
    ) -> None:
        still = [ask.ask.ask_id for ask in batch.open(self.now)]
        ran, requests = dict(self.scene.ran), len(self.scene.requests)
        if still:
            told = self.run(ag_input, WHOLE, waits)
            assert isinstance(told.events[-1], TurnDone) and isinstance(told.events[-1].outcome, PausedOutcome)
            again = {ask.ask_id: ask.token for ask in told.events[-1].outcome.asks}
            assert again == {id: batch.asks[id].ask.token for id in still}
            assert (dict(self.scene.ran), len(self.scene.requests)) == (ran, requests)
            return
        approved = {ask.to for ask in batch.asks.values() if ask.state == "resolved"}
        self.allowed |= approved | batch.held
        self.reply(shape)
        told = self.run(ag_input, end, waits)
        for ask in batch.asks.values():
            ask.state = "spent"
        if not told.broken:
            assert isinstance(told.events[-1], TurnDone)
            assert {to: self.scene.ran[GATED_TOOL, to] for to in approved} == dict.fromkeys(approved, 1)
            assert {to: self.scene.ran[SAFE_TOOL, to] for to in batch.held} == dict.fromkeys(batch.held, 1)
        else:
            self.lost[thread] = {batch.turn}
        self.see(thread, told)

    @rule(minutes=st.integers(1, 6))
    def time_goes_by(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @precondition(lambda self: any(not batch.open(self.now) for batch in self.waiting.values()))
    @rule(shape=shapes, end=breaks, waits=st.booleans())
    def what_has_expired_is_left(self, shape: list[str], end: Break, waits: bool) -> None:
        thread = next(id for id, batch in self.waiting.items() if not batch.open(self.now))
        ag_input = ResumeInput(thread_id=thread, turn_id=self.fresh("turn"), answers=[])
        self.go_on(thread, self.waiting[thread], ag_input, shape, end, waits)

    @rule()
    def the_server_is_started_anew(self) -> None:
        self.restart()

    # Attacks

    @precondition(lambda self: self.asks)
    @rule(data=st.data(), how=st.sampled_from(sorted(FORGERIES)), waits=st.booleans())
    def an_answer_is_forged(self, data: st.DataObject, how: str, waits: bool) -> None:
        thread, id = data.draw(st.sampled_from(sorted(self.asks)))
        forged = replace(answer_to(self.asks[thread, id].ask), **FORGERIES[how])
        self.refused(ResumeInput(thread_id=thread, turn_id=self.fresh("turn"), answers=[forged]), waits)

    @precondition(lambda self: len(self.asks) > 1)
    @rule(data=st.data(), waits=st.booleans(), in_its_place=st.booleans())
    def an_answer_goes_astray(self, data: st.DataObject, waits: bool, in_its_place: bool) -> None:
        here, there = data.draw(st.lists(st.sampled_from(sorted(self.asks)), min_size=2, max_size=2, unique=True))
        answer = answer_to(self.asks[there].ask)
        if in_its_place:
            answer = replace(answer, ask_id=here[1])
        if here[0] not in self.started or (here[0] == there[0] and not in_its_place):
            return
        self.refused(ResumeInput(thread_id=here[0], turn_id=self.fresh("turn"), answers=[answer]), waits)

    @precondition(lambda self: any(ask.state != "open" for ask in self.asks.values()))
    @rule(data=st.data(), waits=st.booleans())
    def an_answer_comes_too_late(self, data: st.DataObject, waits: bool) -> None:
        old = sorted(key for key, ask in self.asks.items() if ask.state != "open")
        thread, id = data.draw(st.sampled_from(old))
        answer = answer_to(self.asks[thread, id].ask)
        self.refused(ResumeInput(thread_id=thread, turn_id=self.fresh("turn"), answers=[answer]), waits)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), waits=st.booleans())
    def a_request_comes_again(self, data: st.DataObject, waits: bool) -> None:
        self.refused(data.draw(st.sampled_from(self.sent)), waits)

    # What is always true

    @invariant()
    def nothing_runs_twice_and_nothing_without_a_yes(self) -> None:
        if hasattr(self, "scene"):
            assert all(count == 1 for count in self.scene.ran.values()), self.scene.ran
            assert {to for _, to in self.scene.ran} <= self.allowed

    @invariant()
    def the_model_gets_what_its_provider_takes(self) -> None:
        if hasattr(self, "checked"):
            for request in self.scene.requests[self.checked :]:
                assert list(self.gating.request_faults(request)) == []
            self.checked = len(self.scene.requests)

    @invariant()
    def each_call_has_its_result_or_none_is_due(self) -> None:
        for thread_id in getattr(self, "started", ()):
            thread = self.stored(thread_id)
            loose = self.loose[thread_id] | self.lost.get(thread_id, set())
            if thread_id in self.waiting:
                loose = loose | {self.waiting[thread_id].turn}
            waiting = {
                block.tool_call_id
                for message in thread.result.messages
                if message.turn_id in loose
                for block in message.content
                if isinstance(block, ToolCallBlock)
            }
            assert validate(thread.result.messages, waiting=waiting) == []


def machine(of: Gating, on_disk: bool) -> type[Rounds]:
    class Machine(Rounds):
        gating = of
        disk = on_disk

    return Machine


def play(gating: Gating, on_disk: bool, examples: int, **more: Any) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine(gating, on_disk),
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            **more,
        ),
    )


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "disk"])
@pytest.mark.parametrize("name", ["anthropic", "murmur"])
def test_at_most_once_whatever_happens(name: str, on_disk: bool) -> None:
    gating = {"anthropic": anthropic_gated.GATING, "murmur": murmur.subject().gating}[name]
    assert gating is not None
    play(gating, on_disk, 10 if on_disk else 40)


@pytest.mark.parametrize(
    "broken",
    [
        gating(RunsTwice),
        gating(RunsTheRefused),
        gating(RunsSafeCallsAtOnce),
        gating(LosesTheRefused),
        running_on(SpentAskError),
        forgiving(TokenError),
    ],
    ids=["twice", "refused", "safe at once", "no result", "on a replay", "forgives"],
)
def test_the_machine_finds_what_is_broken(broken: Subject) -> None:
    assert broken.gating is not None
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        play(broken.gating, False, 200, phases=[Phase.generate], database=None, report_multiple_bugs=False)
