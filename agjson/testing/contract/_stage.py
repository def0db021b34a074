"""A conversation with a gated agent, and what has to be true of it whatever a client sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from agjson.agents import Agent, MemoryThreadStore, OnPaused, Thread, ThreadStore
from agjson.approvals import AskRecord, Keys, Ledger, LedgerStore, MemoryLedgerStore, Policy, without_tokens
from agjson.checker import check
from agjson.errors import AgJSONError
from agjson.fold import reduce
from agjson.testing.contract._running import THREAD
from agjson.testing.contract._values import difference, plain_result, same, shorten
from agjson.testing.contract.scene import GATED_TOOL, SAFE_TOOL, GatedScene, Gating, MakeGatedAgent
from agjson.testing.contract.subject import NotApplicable, Subject
from agjson.transcript import validate
from agjson.types import (
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgStreamEvent,
    AgToolResult,
    PausedOutcome,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultInput,
    TurnDone,
)
from agjson.wire import to_dict

__all__ = ["THREAD", "Call", "Stage", "a_result", "gating_of", "look", "send", "stages"]

Call: TypeAlias = tuple[str, str]
"""A tool, and what it is called with."""

Way: TypeAlias = Literal["run", "run_sync"]
"""How the agent is run."""

_WAYS: tuple[Way, ...] = ("run_sync", "run")
_KEYS = Keys({"contract": b"the contract suite's own secret."})
_START = datetime(2026, 1, 1, tzinfo=UTC)


def send(to: str) -> Call:
    """A call that needs a person."""
    return (GATED_TOOL, to)


def look(to: str) -> Call:
    """A call that needs nobody."""
    return (SAFE_TOOL, to)


def gating_of(subject: Subject) -> Gating:
    """How the adapter gates tools.

    Raises:
        NotApplicable: the subject says nothing of it.
    """
    if subject.gating is None:
        raise NotApplicable("the subject has no `gating`")
    return subject.gating


def stages(subject: Subject, *replies: Sequence[Call], ways: Sequence[Way] = _WAYS, **fields: Any) -> Iterator[Stage]:
    """A fresh stage for each kind of agent and each way to run it; each is held to the rules of every run at its end.

    Args:
        subject: the adapter.
        replies: the calls of each reply of the model.
        ways: how the agent is run.
        fields: further settings of `Stage`.

    Raises:
        NotApplicable: the adapter gates nothing, or the model cannot make these calls.
    """
    gating = gating_of(subject)
    if not gating.batches and any(len(reply) > 1 for reply in replies):
        raise NotApplicable("the subject's `gating` has no `batches`")
    for kind, make in gating.agents.items():
        for way in ways:
            stage = Stage(gating, make, f"{kind} agent, {way}", way, replies, **fields)
            yield stage
            stage.check()


class Stage:
    """An agent with a ledger, and a client that keeps all it gets.

    Args:
        gating: how the adapter gates tools.
        make: makes the agent.
        where: what a failure calls this.
        way: how the agent is run.
        replies: the calls of each reply of the model.
        stores: makes the stores; absent: in memory.
        on_paused: what a start may do to a paused thread.
        policy: further settings of the ledger's policy.

    Attributes:
        scene: the model and the tools.
        agent: the agent.
        now: the present moment, for the ledger.
        cut: a run was ended from outside, so that the client has not seen all that is stored.
    """

    def __init__(
        self,
        gating: Gating,
        make: MakeGatedAgent,
        where: str,
        way: Way,
        replies: Sequence[Sequence[Call]],
        *,
        stores: Callable[[], tuple[ThreadStore, LedgerStore]] | None = None,
        on_paused: OnPaused = "refuse",
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        self._gating = gating
        self._make = make
        self._way: Way = way
        self._stores = stores or (lambda: (MemoryThreadStore(), MemoryLedgerStore()))
        self._policy = dict(policy or {})
        self._streams: dict[str, list[AgStreamEvent]] = {}
        self._turns = 0
        self.where = where
        self.now = _START
        self.cut = False
        self.scene = GatedScene(replies, {"on_paused": on_paused})
        self.agent: Agent
        self.restart()

    def restart(self) -> None:
        """Make stores, ledger and agent anew, as a new process would."""
        store, ledger_store = self._stores()
        policy = Policy(keys=_KEYS, clock=lambda: self.now, **self._policy)
        self.scene.settings |= {"store": store, "approvals": Ledger(ledger_store, policy)}
        self.agent = self.new_agent()

    def new_agent(self) -> Agent:
        """Another agent on the same stores."""
        return self._make(self.scene)

    def later(self, by: timedelta) -> None:
        """Let time go by."""
        self.now += by

    # Inputs

    def turn(self) -> str:
        """A turn id that was never used."""
        self._turns += 1
        return f"contract-turn-{self._turns}"

    def a_start(
        self, words: str = "Please do it.", *before: AgMessage, thread: str = THREAD, **fields: Any
    ) -> StartInput:
        """A start, perhaps with messages before its words."""
        turn = self.turn()
        said = AgMessage(id=f"{turn}-said", role="user", content=[TextBlock(text=words)])
        return StartInput(thread_id=thread, turn_id=turn, messages=[*before, said], **fields)

    def a_resume(self, *answers: AgHitlAnswer, thread: str = THREAD, **fields: Any) -> ResumeInput:
        """A resume with answers."""
        return ResumeInput(thread_id=thread, turn_id=self.turn(), answers=list(answers), **fields)

    # Runs

    def send(self, ag_input: AgInput, *, owner: str | None = None) -> list[AgStreamEvent]:
        """Run an input, which has to be taken."""
        try:
            events = self._read(ag_input, owner)
        except Exception as error:
            raise AssertionError(
                f"{self.where}: a legitimate {ag_input.kind} raised {type(error).__name__}: {error}"
            ) from error
        self._streams.setdefault(ag_input.thread_id, []).extend(without_tokens(event) for event in events)
        self.check_transcript(ag_input.thread_id)
        return events

    def _read(self, ag_input: AgInput, owner: str | None) -> list[AgStreamEvent]:
        if owner is not None or self._way == "run":
            return asyncio.run(self._waited(ag_input, owner))
        return list(self.agent.run_sync(ag_input))

    async def _waited(self, ag_input: AgInput, owner: str | None) -> list[AgStreamEvent]:
        stream = self.agent.run(ag_input) if owner is None else self.agent.run_within(ag_input, owner=owner)
        return [event async for event in stream]

    def start(self, words: str = "Please do it.", *before: AgMessage, **fields: Any) -> list[AgStreamEvent]:
        """Run a start, which has to be taken."""
        return self.send(self.a_start(words, *before, **fields))

    def resume(self, *answers: AgHitlAnswer, **fields: Any) -> list[AgStreamEvent]:
        """Run a resume, which has to be taken."""
        return self.send(self.a_resume(*answers, **fields))

    def ask(self, *, thread: str = THREAD, owner: str | None = None) -> list[AgPausedAsk]:
        """Run a start whose gated calls nobody has allowed, and give the asks, in the order of the calls."""
        before = dict(self.scene.ran)
        asks = self.asks(self.send(self.a_start(thread=thread), owner=owner))
        self.expect(dict(self.scene.ran) == before, f"tools ran before anybody was asked: {self._more(before)}")
        return asks

    def asks(self, events: Sequence[AgStreamEvent]) -> list[AgPausedAsk]:
        """The asks on which a turn has paused."""
        end = events[-1] if events else None
        if not isinstance(end, TurnDone) or not isinstance(end.outcome, PausedOutcome):
            raise AssertionError(f"{self.where}: the turn does not pause for a person: it ends as {shorten(end)}")
        asks = list(end.outcome.asks)
        for ask in asks:
            self.expect(ask.token, f"ask {ask.ask_id!r} reaches the client without a token")
        return asks

    def refuse(
        self, attack: str, ag_input: AgInput, *errors: type[AgJSONError], owner: str | None = None
    ) -> AgJSONError:
        """Run an input that has to raise one of these errors before its first event, and to change nothing.

        Args:
            attack: what it is, for a failure.
            ag_input: the input.
            errors: the classes; a subclass is not one of them.
            owner: who sends it, where that matters.
        """
        before = self.kept()
        ran = dict(self.scene.ran)
        raised: AgJSONError | None = None
        events: list[AgStreamEvent] = []
        try:
            events = self._read(ag_input, owner)
        except AgJSONError as error:
            raised = error
        except Exception as error:
            raise AssertionError(
                f"{self.where}: {attack}: raises {type(error).__name__}, which is no AgJSONError: {error}"
            ) from error
        self.expect(dict(self.scene.ran) == ran, f"{attack}: runs {self._more(ran)}")
        if raised is None:
            raise AssertionError(f"{self.where}: {attack}: is taken, and yields {[event.type for event in events]}")
        wanted = " or ".join(error.__name__ for error in errors)
        self.expect(type(raised) in errors, f"{attack}: raises {type(raised).__name__} ({raised}), not {wanted}")
        after = self.kept()
        if not same(after, before):
            raise AssertionError(f"{self.where}: {attack}: changes what is kept at {difference(after, before, '$')}")
        return raised

    def cut_short(self, ag_input: AgInput, after: int) -> int:
        """Run an input and stop to read after some events; returns how many there were."""
        self.cut = True
        seen = 0
        if self._way == "run_sync":
            stream = self.agent.run_sync(ag_input)
            for _ in stream:
                seen += 1
                if seen == after:
                    break
            stream.close()
            return seen

        async def read() -> int:
            count = 0
            async with aclosing(self.agent.run(ag_input)) as events:
                async for _ in events:
                    count += 1
                    if count == after:
                        break
            return count

        return asyncio.run(read())

    def crash(self, ag_input: AgInput, error: type[BaseException]) -> list[AgStreamEvent]:
        """Run an input whose tool raises; what of that comes out of the run is as the driver has it."""
        self.cut = True
        try:
            return self._read(ag_input, None)
        except error:
            return []

    # What is kept

    def thread(self, thread_id: str = THREAD) -> Thread:
        """A thread as it is stored."""
        thread = asyncio.run(self.agent.store.load(thread_id))
        if thread is None:
            raise AssertionError(f"{self.where}: thread {thread_id!r} is not stored")
        return thread

    def records(self, thread_id: str = THREAD) -> list[AskRecord]:
        """What the ledger has of a thread."""
        return asyncio.run(self.scene.approvals.records(thread_id))

    def kept(self) -> dict[str, Any]:
        """All that is kept of all threads, and what the model was asked, as plain data to be compared."""
        found: dict[str, Any] = {"requests": len(self.scene.requests)}
        for thread_id in self._streams:
            thread = self.thread(thread_id)
            found[thread_id] = {
                "fold": plain_result(thread.result),
                "waits": repr(thread.pending),
                "revision": thread.revision,
                "asks": [repr(record) for record in self.records(thread_id)],
            }
        return found

    def calls(self, thread_id: str = THREAD) -> dict[str, ToolCallBlock]:
        """The calls of a thread by what they are called with."""
        return {
            str(to_dict(block)["input"].get("to")): block
            for message in self.thread(thread_id).result.messages
            for block in message.content
            if isinstance(block, ToolCallBlock)
        }

    def results(self, call_id: str, thread_id: str = THREAD) -> list[ToolResultBlock]:
        """The results of a call, as they are stored."""
        return [
            block
            for message in self.thread(thread_id).result.messages
            for block in message.content
            if isinstance(block, ToolResultBlock) and block.tool_call_id == call_id
        ]

    # What has to be true

    def expect(self, condition: object, message: str) -> None:
        """Raise an AssertionError with the place unless the condition holds."""
        if not condition:
            raise AssertionError(f"{self.where}: {message}")

    def expect_ran(self, *calls: Call, after: str) -> None:
        """The side effects so far are those of these calls, each once."""
        wanted = {call: 1 for call in calls}
        self.expect(dict(self.scene.ran) == wanted, f"after {after} the tools have run {self._more({})}, not {wanted}")

    def expect_end(self, events: Sequence[AgStreamEvent], after: str) -> None:
        """The turn has ended as turn.done, and waits for nobody."""
        end = events[-1] if events else None
        good = isinstance(end, TurnDone) and not isinstance(end.outcome, PausedOutcome)
        self.expect(good, f"after {after} the turn does not come to its end: {shorten(end)}")

    def expect_refused(self, to: str, after: str) -> None:
        """A call has one result, which says that it did not run."""
        outcomes = [result.outcome for result in self.results(self.calls()[to].tool_call_id)]
        self.expect(len(outcomes) == 1 and outcomes != ["ok"], f"after {after} the results of the call are {outcomes}")

    def check_transcript(self, thread_id: str = THREAD) -> None:
        """Every call of a thread has its one result or is waited for, and no request would be refused."""
        thread = self.thread(thread_id)
        # Without the turns: what was asked about once would count as waiting for ever.
        problems = validate(thread.result.messages, waiting=self._waiting(thread))
        self.expect(not problems, f"the stored transcript is not valid: {shorten(problems)}")
        for number, request in enumerate(self.scene.requests):
            faults = list(self._gating.request_faults(request))
            self.expect(not faults, f"request {number} to the model is not valid: {shorten(faults)}")

    def _waiting(self, thread: Thread) -> set[str]:
        """The calls that need no result: the client's, and those of turns whose asks wait or were left behind."""
        here = {ask.ask_id for ask in thread.pending.asks}
        turns = {
            record.turn_id
            for record in self.records(thread.thread_id)
            if record.ask_id in here or record.state == "given_up"
        }
        waiting = {*thread.pending.calls, *(ask.tool_call_id for ask in thread.pending.asks if ask.tool_call_id)}
        waiting |= {
            block.tool_call_id
            for message in thread.result.messages
            if message.turn_id in turns
            for block in message.content
            if isinstance(block, ToolCallBlock)
        }
        return waiting

    def check(self) -> None:
        """What has to be true at the end: the streams are sound, and fold to what is stored."""
        if self.cut:
            return
        for thread_id, events in self._streams.items():
            found = list(check(events))
            self.expect(not found, f"check finds {shorten(found)} in thread {thread_id!r}")
            folded = reduce(events)
            self.expect(not folded.needs_resync, f"the streams of thread {thread_id!r} do not fold")
            wanted, stored = plain_result(folded.result), plain_result(self.thread(thread_id).result)
            if not same(stored, wanted):
                told = difference(stored, wanted, "$")
                raise AssertionError(f"{self.where}: what is stored is not what the streams fold to: {told}")

    def _more(self, before: Mapping[Call, int]) -> dict[Call, int]:
        return {call: count for call, count in self.scene.ran.items() if count != before.get(call)}


def a_result(call_id: str, thread: str, turn: str) -> ToolResultInput:
    """A result that a client sends for a call."""
    result = AgToolResult(tool_call_id=call_id, content=[TextBlock(text="contract-made-up")])
    return ToolResultInput(thread_id=thread, turn_id=turn, results=[result])
