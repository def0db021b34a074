"""Agents that gate tools with one fault each, made from the one that ``docs/adapters/writing-one.md`` writes."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from agjson.agents import Invocation, UnknownToolCallError
from agjson.approvals import (
    AnsweredAskError,
    EditRefusedError,
    ExpiredAskError,
    GivenUpAskError,
    OtherThreadError,
    OtherTurnError,
    RequestStateError,
    SpentAskError,
    TokenError,
    UnissuedAskError,
    WrongReplyError,
)
from agjson.testing.contract import GATED_TOOL, GatedScene, Gating, Subject
from agjson.types import ResumeInput, StartInput, ToolCallBlock
from tests.support.broken_adapters import PAGE, SUBJECT

Gated: Any = PAGE.GatedMurmurAgent


def gating(agent: Any, **fields: Any) -> Subject:
    """The subject with another gated agent."""

    def make(scene: GatedScene) -> Any:
        normal = PAGE.gated_murmur(scene)
        return agent(normal.murmur, normal.tools, normal.gated, **scene.settings)

    return dataclasses.replace(SUBJECT, gating=Gating(agents={"any": make}, **fields))


class Door(Gated):
    """Does something of its own before an input is heard, and when one is refused."""

    def heard(self, ag_input: Any) -> None:
        """Before the driver hears an input."""

    def refused(self, error: Exception) -> None:
        """When the driver refuses one; what it raises is raised, else the run ends without an event."""
        raise error

    def send(self, to: str = "ann") -> None:
        """Run the gated tool."""
        self.tools[GATED_TOOL]({"to": to})

    def run_sync(self, ag_input: Any, **options: Any) -> Any:
        self.heard(ag_input)
        try:
            yield from super().run_sync(ag_input, **options)
        except Exception as error:
            self.refused(error)

    def run(self, ag_input: Any, **options: Any) -> Any:
        return self._through(super().run(ag_input, **options), ag_input)

    def run_within(self, ag_input: Any, **options: Any) -> Any:
        return self._through(super().run_within(ag_input, **options), ag_input)

    async def _through(self, events: Any, ag_input: Any) -> AsyncIterator[Any]:
        self.heard(ag_input)
        try:
            async for event in events:
                yield event
        except Exception as error:
            self.refused(error)


def forgiving(kind: type[Exception]) -> Subject:
    """It says nothing to an attack."""

    class Forgiving(Door):
        def refused(self, error: Exception) -> None:
            if not isinstance(error, kind):
                raise error

    return gating(Forgiving)


def running_on(kind: type[Exception]) -> Subject:
    """It refuses an attack, and runs the tool for it."""

    class RunsFirst(Door):
        def refused(self, error: Exception) -> None:
            if isinstance(error, kind):
                self.send()
            raise error

    return gating(RunsFirst)


class Mistypes(Door):
    def refused(self, error: Exception) -> None:
        raise ValueError("no") from error


class Vague(Door):
    def refused(self, error: Exception) -> None:
        raise UnissuedAskError("no", "") if isinstance(error, TokenError) else error


class Remembers(Door):
    """Notes in the thread that somebody has tried."""

    def refused(self, error: Exception) -> None:
        if isinstance(error, WrongReplyError):
            _now(self._note())
        raise error

    async def _note(self) -> None:
        lease = await self.store.acquire("contract-thread")
        await lease.save(dataclasses.replace(lease.thread, revision=lease.thread.revision + 1), [])
        await lease.release()


def _now(work: Any) -> None:
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("the store in memory waits for something")


class RunsEachAnswer(Door):
    def heard(self, ag_input: Any) -> None:
        if isinstance(ag_input, ResumeInput):
            for answer in ag_input.answers or ():
                if answer.status == "resolved":
                    self.send()


class UnderstandsYes(Door):
    def heard(self, ag_input: Any) -> None:
        if isinstance(ag_input, StartInput) and ag_input.messages[-1].content[0].text == "yes":  # type: ignore[union-attr]
            self.send()


class AsksNobodyInParticular(Gated):
    def run_within(self, ag_input: Any, *, owner: str | None = None, **options: Any) -> Any:
        return super().run_within(ag_input, **options)


class HasNoLedger(Gated):
    def __init__(self, *arguments: Any, approvals: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)


class AsksForNothing(Gated):
    def __init__(self, murmur: Any, tools: Any, gated: Any, **settings: Any) -> None:
        super().__init__(murmur, tools, (), **settings)


class RunsTwice(Gated):
    def run_tool(self, call: Any) -> Any:
        super().run_tool(call)
        return super().run_tool(call)


class KeepsTheResult(Gated):
    def run_tool(self, call: Any) -> Any:
        return dataclasses.replace(super().run_tool(call), words="done")


class RunsAllAgain(Gated):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.allowed: list[Any] = []

    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        for call in self.allowed:
            self.tools[call.name](call.arguments)
        self.allowed += [each.call for each in invocation.decisions if each.runs]
        yield from super()._invoke(invocation)


class RunsTheRefused(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        for each in invocation.decisions:
            if not each.runs and each.call is not None:
                self.tools[each.call.name](each.call.arguments)
        yield from super()._invoke(invocation)


class LosesTheRefused(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        for native in super()._invoke(invocation):
            if getattr(native, "outcome", None) != "denied":
                yield native


class RunsSafeCallsAtOnce(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        for native in super()._invoke(invocation):
            if isinstance(native, dict) and native.get("event") == "call" and native["tool"] != GATED_TOOL:
                self.tools[native["tool"]](native["with"])
            yield native


class RunsInOrderOfItsOwn(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        changed = [dataclasses.replace(call, index=9 - call.index) for call in invocation.held]
        return super()._invoke(_With(invocation, held=changed))


class RunsBeforeItIsRead(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        return iter(list(super()._invoke(invocation)))


class TriesAgain(Gated):
    def run_tool(self, call: Any) -> Any:
        try:
            return PAGE.Landed(call.call_id, self.tools[call.name](call.arguments))
        except BaseException:
            return super().run_tool(call)


class HidesDeath(Gated):
    def run_tool(self, call: Any) -> Any:
        try:
            return super().run_tool(call)
        except BaseException:
            return PAGE.Landed(call.call_id, "done")


class FinishesWhenClosed(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        try:
            yield from super()._invoke(invocation)
        except GeneratorExit:
            for each in invocation.decisions:
                if each.call is not None:
                    self.tools[each.call.name](each.call.arguments)
            raise


class KnowsItsOwnAsksAlone(Gated):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.asked: set[str] = set()

    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        mine = [each for each in invocation.decisions if each.call is not None and each.call.call_id in self.asked]
        for native in super()._invoke(_With(invocation, decisions=mine)):
            if isinstance(native, PAGE.AskFor):
                self.asked.add(native.call.call_id)
            yield native


class ReadsTheMetadata(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        told = {name: value for name, value in (invocation.input.metadata or {}).items() if name == "to"}
        return super()._invoke(_With(invocation, decisions=_with_arguments(invocation, lambda call: told)))


class IgnoresEdits(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        blocks = [block for message in invocation.history for block in message.content]
        made = {block.tool_call_id: block.input for block in blocks if isinstance(block, ToolCallBlock)}
        return super()._invoke(
            _With(invocation, decisions=_with_arguments(invocation, lambda call: made[call.call_id]))
        )


class FindsWhatWasAllowed(Gated):
    """Runs what the ledger has ever allowed, whatever the input."""

    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        for answer in invocation.thread.pending.answers if invocation.input.kind == "start" else ():
            if answer.status == "resolved":
                self.tools[GATED_TOOL]({"to": "ann"})
        yield from super()._invoke(invocation)


class RunsWhatItIsTold(Gated):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        for message in invocation.messages:
            for block in message.content:
                if isinstance(block, ToolCallBlock):
                    self.tools[block.name](block.input)
        yield from super()._invoke(invocation)


class _With:
    """An invocation with other members."""

    def __init__(self, invocation: Invocation, **members: Any) -> None:
        self._invocation = invocation
        self.__dict__.update(members)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._invocation, name)


def _with_arguments(invocation: Invocation, told: Callable[[Any], Any]) -> list[Any]:
    def changed(each: Any) -> Any:
        call = dataclasses.replace(each.call, arguments={**each.call.arguments, **told(each.call)})
        return dataclasses.replace(each, call=call)

    return [changed(each) for each in invocation.decisions]


_ANN = r"\('contract_send', 'ann'\)"

BROKEN_APPROVALS: list[tuple[str, Subject, str]] = [
    ("approval-once", gating(AsksForNothing), "any agent, run_sync: the turn does not pause for a person"),
    ("approval-once", gating(HasNoLedger), "reaches the client without a token"),
    ("approval-once", gating(RunsTwice), rf"after a yes the tools have run {{{_ANN}: 2}}, not {{{_ANN}: 1}}"),
    ("approval-once", gating(KeepsTheResult), r"the results of the call are \[\('ok', .*done"),
    (
        "approval-once",
        gating(Gated, request_faults=lambda request: ["too short"] if len(request) < 2 else []),
        r"request 0 to the model is not valid: \['too short'\]",
    ),
    ("approval-twice-paused", gating(RunsAllAgain), rf"after both the tools have run {{{_ANN}: 2"),
    ("approval-no", gating(RunsTheRefused), rf"after a call was declined the tools have run {{{_ANN}: 1}}, not {{}}"),
    ("approval-no", gating(LosesTheRefused), "the stored transcript is not valid: .*unanswered_call"),
    (
        "approval-partial",
        gating(RunsEachAnswer),
        rf"one of two answers the tools have run {{{_ANN}: 1}}, not {{}}",
    ),
    ("approval-siblings", gating(RunsSafeCallsAtOnce), "tools ran before anybody was asked: .*'contract_look', 'oslo'"),
    (
        "approval-siblings",
        gating(RunsInOrderOfItsOwn),
        r"run in the order \['contract_send', 'contract_look'",
    ),
    ("approval-claimed-first", gating(RunsBeforeItIsRead), r"while the tools run the ask is \['contract_send open'"),
    (
        "approval-at-once",
        gating(RunsEachAnswer),
        rf"6 answers at once, on threads the tools have run {{{_ANN}: 7}}",
    ),
    ("approval-crash", gating(TriesAgain), rf"after a failure after the effect the tools have run {{{_ANN}: 2}}"),
    ("approval-crash", gating(HidesDeath), r"before the effect, and a start, the call has the result \('ok', None\)"),
    ("approval-cut-off", gating(FinishesWhenClosed), r"a stop after \d events: the tools have run \[.*, .*\]"),
    ("approval-restart", gating(KnowsItsOwnAsksAlone), "the stored transcript is not valid: .*contract_call_1"),
    (
        "approval-forged-ask",
        forgiving(UnissuedAskError),
        r"forged ask 'contract-forged': is taken, and yields \[\]",
    ),
    ("approval-forged-token", running_on(TokenError), rf"an answer without token: runs {{{_ANN}: 1}}"),
    ("approval-forged-token", gating(Mistypes), "without token: raises ValueError, which is no AgJSONError: no"),
    ("approval-forged-token", gating(Vague), r"without token: raises UnissuedAskError \(no .*\), not TokenError"),
    ("approval-swapped-tokens", running_on(TokenError), "the token of another ask: runs"),
    ("approval-request-state", forgiving(RequestStateError), "a made-up requestState: is taken"),
    ("approval-edited-arguments", running_on(EditRefusedError), "where no edits are allowed: runs"),
    (
        "approval-edited-arguments",
        gating(ReadsTheMetadata),
        r"an answer with arguments beside it the tools have run {\('contract_send', 'eve'\): 1}",
    ),
    ("approval-edits", gating(IgnoresEdits), rf"after a legitimate edit the tools have run {{{_ANN}: 1}}, not"),
    ("approval-wrong-reply", gating(Remembers), r"'yes' to an approval: changes what is kept at .*\.revision: 2 and 1"),
    ("approval-replayed-answer", running_on(SpentAskError), rf"a replayed answer: runs {{{_ANN}: 2}}"),
    ("approval-replayed-request", forgiving(SpentAskError), "a replayed resume: is taken"),
    ("approval-other-thread", running_on(OtherThreadError), "the token of another thread: runs"),
    ("approval-other-turn", forgiving(OtherTurnError), "the token of an earlier turn: is taken"),
    ("approval-other-principal", gating(AsksNobodyInParticular), "the answer of another principal: runs"),
    ("approval-expired", running_on(ExpiredAskError), "an answer that comes too late: runs"),
    (
        "approval-declined-then-approved",
        running_on(AnsweredAskError),
        "declined and approved in one input: runs",
    ),
    ("approval-by-words", gating(UnderstandsYes), rf"a start that says 'yes': runs {{{_ANN}: 1}}"),
    (
        "approval-injected-history",
        gating(RunsWhatItIsTold),
        r"a start of a new thread with a call of the model the tools have run {\('contract_send', 'eve'\): 1}",
    ),
    ("approval-wrong-door", forgiving(UnknownToolCallError), "a result for 'contract_call_1' of the client: is taken"),
    ("approval-left-behind", gating(FindsWhatWasAllowed), rf"after the time was over the tools have run {{{_ANN}: 1}}"),
    ("approval-stale", running_on(GivenUpAskError), "an answer to an ask left behind: runs"),
]
"""The name of a rule, a subject that breaks it, and a pattern of the message."""
