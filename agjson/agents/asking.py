"""What a run has to do with the ledger: asks are kept before anybody sees them, answers acted on once (spec §13.1)."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec.structs import replace

from agjson.agents.deciding import requests
from agjson.agents.intake import named_asks, words_of
from agjson.agents.thread import Thread, is_final
from agjson.failures import trace_of
from agjson.types import (
    UNSET,
    AgHitlAnswer,
    AgInput,
    AgPausedAsk,
    AgStreamEvent,
    AgToolOutcome,
    AgToolResult,
    HitlAsk,
    PausedOutcome,
    ResumeInput,
    StartInput,
    ToolCallBlock,
    ToolResultBlock,
    TurnDone,
)

if TYPE_CHECKING:
    from agjson.agents.notes import Notes
    from agjson.agents.store import ThreadLease
    from agjson.approvals.book import Book
    from agjson.approvals.claiming import Claim, Decision
    from agjson.approvals.ledger import Ledger
    from agjson.approvals.planning import Plan
    from agjson.approvals.records import AskRecord, CallRequest

__all__ = ["Asking", "Case"]

_LOG = logging.getLogger("agjson")
_Asked = TypeVar("_Asked", HitlAsk, AgPausedAsk)
_Calls: TypeAlias = Callable[[], Mapping[str, ToolCallBlock]]

EDIT = "edit"
"""The id of the choice by which an approval offers that the person edits the arguments."""

EXPIRED = "the ask has expired"
"""The `reason` of the answer that a framework gets for an ask that nobody has answered in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the ledger says of an input, before anything is changed.

    Attributes:
        input: the input as the run takes it: answers without tokens, each as the ledger has understood it.
        thread: the thread, with the answers that the ledger has beside those of the input.
        decisions: what was decided about the asks that the run goes on from, if it goes on.
        held: the safe calls that run with them.
        shown: the asks that a person can answer after this input, by id, with their tokens.
        unknown: results for calls of earlier runs that should have told them: of calls that may or may not have run,
            that have run, and that were refused.
    """

    input: AgInput
    thread: Thread | None
    decisions: tuple[Decision, ...] = ()
    held: tuple[CallRequest, ...] = ()
    shown: Mapping[str, AgPausedAsk] = dataclasses.field(default_factory=dict[str, AgPausedAsk])
    unknown: tuple[AgToolResult, ...] = ()


class _Undo(Exception):
    """Ends a transaction without a trace, and carries what came of it."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


class Asking:
    """The dealings of one run with the ledger.

    In this order: `hear` what an input comes to, without a change; `begin` the turn, which stores the answers and takes
    the right to act on them, together with the turn where the stores can; `keep` what the events say, before anybody
    sees them; `close` at its end.

    Args:
        ledger: the ledger.
        thread_id: the thread.
        owner: who it belongs to, and who may answer.

    Attributes:
        tokens: of the asks that a person can answer, by ask id.
    """

    def __init__(self, ledger: Ledger, thread_id: str, owner: str | None) -> None:
        self._ledger = ledger
        self._thread_id = thread_id
        self._owner = owner
        # What the framework is given: what `hear` has found.
        self._waits_for: frozenset[str] = frozenset()
        self._decided: tuple[tuple[Decision, ...], tuple[CallRequest, ...]] = (), ()
        self._claims: list[Claim] = []
        # The calls of the claims whose outcome is not known yet.
        self._outstanding: dict[str, Claim] = {}
        self._moments: dict[str, str | None] = {}
        self._issued: set[str] = set()
        self.tokens: dict[str, str] = {}

    @property
    def suspends(self) -> bool:
        """Whether the store of the ledger waits for something."""
        return self._ledger.store.suspends

    async def plan(self, calls: Sequence[CallRequest], is_gated: Callable[[CallRequest], bool]) -> Plan:
        """As `Ledger.plan`.

        Args:
            calls: as there.
            is_gated: as there.
        """
        return await self._ledger.plan(calls, is_gated, thread_id=self._thread_id, owner=self._owner)

    # Before the run

    async def hear(self, ag_input: AgInput, thread: Thread | None) -> Case:
        """Check what an input says to asks, and end the claims of earlier runs: whoever calls has the right to run.

        Args:
            ag_input: the input.
            thread: its thread.

        Raises:
            InputError: an answer is not taken; its class says why.
        """
        if thread is None:
            return Case(input=ag_input, thread=None)
        pending = frozenset(_ids(thread.pending.asks))
        await self._ledger.recover(self._thread_id, holding=True, pending=pending)
        case: Case = await self._tried(lambda book: self._case(book, ag_input, thread))
        self._decided = case.decisions, case.held
        self._waits_for = frozenset() if case.thread is None else frozenset(_ids(case.thread.pending.asks))
        self.tokens = {id: ask.token for id, ask in case.shown.items() if ask.token is not None}
        return case

    def _case(self, book: Book, ag_input: AgInput, thread: Thread) -> Case:
        from agjson.approvals import claiming, issuing

        policy = self._ledger.policy
        self._apply(book, ag_input, ag_input.turn_id)
        moment = policy.clock()
        batches = [batch for batch in book.batches(self._thread_id) if batch.state == "open"]
        records = {each.ask_id: each for batch in batches for each in book.asks(self._thread_id, batch.turn_id)}
        thread = self._without_settled_asks(book, thread, records)
        answers = {id: said for id, record in records.items() if (said := _said(record, record.state_at(moment)))}
        shown = {ask.ask_id: ask for ask in issuing.waiting(book, policy, self._thread_id, self._owner)}
        decisions: list[Decision] = []
        held: list[CallRequest] = []
        # A start that answers nothing leaves behind whatever was decided: no run goes on from it.
        for turn_id in () if _leaves_behind(ag_input) else self._ready(book):
            claim = claiming.claim(book, policy, self._thread_id, turn_id, claimed_by=ag_input.turn_id)
            decisions += claim.decisions
            held += claim.held
        return Case(
            input=_with_answers(ag_input, answers),
            thread=_with_earlier_answers(thread, ag_input, answers),
            decisions=tuple(decisions),
            held=tuple(held),
            shown=shown,
            unknown=self._unknown(book, thread),
        )

    def _without_settled_asks(self, book: Book, thread: Thread, waiting: Collection[str]) -> Thread:
        """A thread without asks that nobody can answer any more: somebody acted on them or gave them up by the ledger.

        So does a claim whose turn could not begin, where thread and ledger are in two stores.
        """
        asks = thread.pending.asks
        left = tuple(ask for ask in asks if ask.ask_id in waiting or book.ask(self._thread_id, ask.ask_id) is None)
        if len(left) == len(asks):
            return thread
        return dataclasses.replace(thread, pending=dataclasses.replace(thread.pending, asks=left))

    def _apply(self, book: Book, ag_input: AgInput, turn_id: str) -> None:
        """Store what an input says to asks."""
        from agjson.approvals import answering

        policy, thread_id = self._ledger.policy, self._thread_id
        if isinstance(ag_input, ResumeInput) and ag_input.answers:
            answering.answer(book, policy, thread_id, ag_input.answers, owner=self._owner)
        elif isinstance(ag_input, StartInput) and (named := named_asks(ag_input)):
            words = words_of(ag_input)
            answering.meet(book, policy, thread_id, named, words, turn_id=turn_id, owner=self._owner)

    def _ready(self, book: Book) -> tuple[str, ...]:
        from agjson.approvals import answering

        return answering.progress(book, self._ledger.policy, self._thread_id, self._owner).ready

    def _unknown(self, book: Book, thread: Thread) -> tuple[AgToolResult, ...]:
        """Results for calls that were decided on and have none, where nobody waits for one any more."""
        from agjson.approvals import claiming

        open_calls = _calls_without_result(thread)
        if not open_calls:
            return ()
        untold = claiming.untold_results(book, self._thread_id)
        return tuple(result for id, result in untold.items() if id in open_calls)

    async def begin(
        self, lease: ThreadLease, ag_input: AgInput, turn_id: str, lost_thread: Thread, *, goes_on: bool
    ) -> None:
        """Begin the turn, store the answers, and claim what is decided: before anything runs.

        Args:
            lease: the right to run the thread.
            ag_input: the input, as it came.
            turn_id: the turn.
            lost_thread: as for `ThreadLease.begin`.
            goes_on: the framework is called.

        Raises:
            InputError: what was taken before is not taken any more.
            LedgerError: somebody else has acted on the asks meanwhile.
        """
        from agjson.approvals import claiming, issuing

        policy, thread_id = self._ledger.policy, self._thread_id
        holder = self._ledger.store.holder()

        def work(book: Book) -> list[Claim]:
            self._apply(book, ag_input, turn_id)
            if not goes_on:
                return []
            if _leaves_behind(ag_input):
                issuing.give_up(book, thread_id)
                return []
            ready = self._ready(book)
            made = [claiming.claim(book, policy, thread_id, each, claimed_by=turn_id, holder=holder) for each in ready]
            self._check_as_heard(made)
            return made

        self._claims = await self._ledger.store.begin(lease, turn_id, lost_thread, work)
        if goes_on:
            self.tokens.clear()
        for claim in self._claims:
            runs = [each.call.call_id for each in claim.decisions if each.runs and each.call is not None]
            self._outstanding.update(dict.fromkeys((*runs, *(call.call_id for call in claim.held)), claim))

    def _check_as_heard(self, claims: Sequence[Claim]) -> None:
        """Go on only where what the framework was given is what is claimed: without a claim nothing may run.

        Raises:
            LedgerError: it is not.
        """
        from agjson.approvals.errors import LedgerError

        decisions = tuple(each for claim in claims for each in claim.decisions)
        held = tuple(each for claim in claims for each in claim.held)
        if (decisions, held) != self._decided or not self._waits_for <= set(_ids(each.ask for each in decisions)):
            raise LedgerError("the asks of the thread were acted on meanwhile")

    # While it runs

    def put(self, events: list[AgStreamEvent], tools: Mapping[str, str]) -> list[AgStreamEvent]:
        """Events whose asks say until when they can be answered, and offer what the policy allows.

        Args:
            events: what the normalizer has made.
            tools: the names of the tools of the calls that have no result, by call.
        """
        if not any(isinstance(event, (HitlAsk, TurnDone)) for event in events):
            return events
        return [self._put(event, tools) for event in events]

    def _put(self, event: AgStreamEvent, tools: Mapping[str, str]) -> AgStreamEvent:
        if isinstance(event, HitlAsk):
            return self._until(self._offered(event, tools))
        if isinstance(event, TurnDone) and isinstance(event.outcome, PausedOutcome):
            asks = [self._until(self._offered(ask, tools)) for ask in event.outcome.asks]
            return replace(event, outcome=replace(event.outcome, asks=asks))
        return event

    def _offered(self, ask: _Asked, tools: Mapping[str, str]) -> _Asked:
        """An approval without the choice of edits that would be refused."""
        if (
            ask.kind != "approval"
            or not ask.choices
            or tools.get(ask.tool_call_id or "") in self._ledger.policy.editable
        ):
            return ask
        choices = [choice for choice in ask.choices if choice.id != EDIT]
        return ask if len(choices) == len(ask.choices) else replace(ask, choices=choices or None)

    def _until(self, ask: _Asked) -> _Asked:
        policy = self._ledger.policy
        if ask.ask_id not in self._moments:
            lasts = policy.lasts if ask.expires_at is None else None
            self._moments[ask.ask_id] = ask.expires_at if lasts is None else (policy.clock() + lasts).isoformat()
        moment = self._moments[ask.ask_id]
        return ask if moment == ask.expires_at else replace(ask, expires_at=moment)

    def concerns(self, notes: Notes) -> bool:
        """Whether there is anything to keep.

        Args:
            notes: what the run has noted.
        """
        return len(notes.asked) > len(self._issued) or not self._outstanding.keys().isdisjoint(notes.outcomes)

    async def keep(self, notes: Notes, calls: _Calls) -> None:
        """Keep new asks, and how approved calls have ended.

        Args:
            notes: what the run has noted.
            calls: gives the calls of the thread, in order.

        Raises:
            AgJSONError: an ask cannot be kept; nobody may see it.
        """
        from agjson.approvals import claiming, issuing
        from agjson.approvals.records import Ask

        new = [ask for id, ask in notes.asked.items() if id not in self._issued]
        ended: dict[str, AgToolOutcome] = {
            id: outcome for id, outcome in notes.outcomes.items() if id in self._outstanding
        }
        requests = _requests([ask.tool_call_id for ask in new], calls)
        asks = [Ask(ask=_plain_ask(ask), call=requests.get(ask.tool_call_id or "")) for ask in new]

        def work(book: Book) -> list[AgPausedAsk]:
            for id, outcome in ended.items():
                claiming.record_outcome(book, self._outstanding[id], id, outcome)
            if not asks:
                return []
            return issuing.issue(
                book,
                self._ledger.policy,
                thread_id=self._thread_id,
                turn_id=notes.turn_id,
                asks=asks,
                owner=self._owner,
            )

        shown = await self._ledger.store.transact(work)
        self._issued.update(ask.ask_id for ask in new)
        for id in ended:
            del self._outstanding[id]
        self.tokens.update((ask.ask_id, ask.token) for ask in shown if ask.token is not None)

    def shown(self, events: list[AgStreamEvent]) -> list[AgStreamEvent]:
        """Events as the client gets them: asks that can be answered have their tokens.

        Args:
            events: the events as they are stored.
        """
        if not self.tokens:
            return events
        from agjson.approvals.carrying import with_tokens

        return [with_tokens(event, self.tokens) for event in events]

    # After it

    async def hold(self, notes: Notes, waiting: Collection[str], calls: _Calls) -> None:
        """Keep the safe calls of a batch that wait for its decision.

        Args:
            notes: what the run has noted; the turn has paused.
            waiting: the calls that the client has to run.
            calls: gives the calls of the thread, in order.
        """
        from agjson.approvals import issuing

        gated = {ask.tool_call_id for ask in notes.asked.values()}
        ids = [id for id in notes.calls if id not in gated and id not in waiting]
        if notes.asked and ids:
            held = list(_requests(ids, calls).values())
            await self._ledger.store.transact(lambda book: issuing.hold(book, self._thread_id, notes.turn_id, held))

    async def close(self, notes: Notes) -> None:
        """End the claims: the run is over. A call that asks for more ends with that.

        Args:
            notes: what the run has noted.
        """
        if not self._claims:
            return
        from agjson.approvals import claiming

        again = {ask.tool_call_id for ask in notes.asked.values()} & self._outstanding.keys()

        def work(book: Book) -> None:
            for id in again:
                if id is not None:
                    claiming.record_outcome(book, self._outstanding[id], id, "input_required")
            for claim in self._claims:
                claiming.close(book, claim)

        try:
            await self._ledger.store.transact(work)
        except Exception as error:
            # Whoever runs the thread next ends them: their calls are then unknown, and run no second time.
            _LOG.warning("claims of turn %r are left open: %s", notes.turn_id, trace_of(error))

    async def _tried(self, work: Callable[[Book], Any]) -> Any:
        def undone(book: Book) -> None:
            raise _Undo(work(book))

        try:
            await self._ledger.store.transact(undone)
        except _Undo as done:
            return done.result


def _ids(asks: Iterable[AgPausedAsk]) -> Iterator[str]:
    return (ask.ask_id for ask in asks)


def _leaves_behind(ag_input: AgInput) -> bool:
    """Whether an input gives up the asks of its thread."""
    return isinstance(ag_input, StartInput) and not named_asks(ag_input)


def _said(record: AskRecord, state: str) -> AgHitlAnswer | None:
    """What the framework is told of an ask that is decided; None: it is open."""
    if state == "expired":
        return AgHitlAnswer(
            ask_id=record.ask_id, status="cancelled", reason=EXPIRED, request_state=record.ask.request_state
        )
    answer = record.answer
    if answer is None:
        return None
    if state == "declined":
        return replace(answer, status="declined", reply=UNSET if answer.reply is False else answer.reply)
    return answer


def _with_answers(ag_input: AgInput, answers: Mapping[str, AgHitlAnswer]) -> AgInput:
    if not isinstance(ag_input, ResumeInput) or not ag_input.answers:
        return ag_input
    return replace(ag_input, answers=[answers[answer.ask_id] for answer in ag_input.answers])


def _with_earlier_answers(thread: Thread, ag_input: AgInput, answers: Mapping[str, AgHitlAnswer]) -> Thread:
    """The thread as it waits before the input, by what the ledger has."""
    now: set[str] = set()
    if isinstance(ag_input, ResumeInput):
        now = {answer.ask_id for answer in ag_input.answers or ()}
    elif isinstance(ag_input, StartInput):
        now = set(named_asks(ag_input))
    there = set(_ids(thread.pending.asks))
    earlier = tuple(said for id, said in answers.items() if id in there and id not in now)
    return dataclasses.replace(thread, pending=dataclasses.replace(thread.pending, answers=earlier))


def _calls_without_result(thread: Thread) -> set[str]:
    """The calls that nobody waits for and that have no result, or one that was not to be their last."""
    waiting = {*thread.pending.calls, *(ask.tool_call_id for ask in thread.pending.asks)}
    calls: set[str] = set()
    for message in thread.result.messages:
        for block in message.content:
            if isinstance(block, ToolCallBlock):
                calls.add(block.tool_call_id)
            elif isinstance(block, ToolResultBlock) and is_final(block):
                calls.discard(block.tool_call_id)
    return calls - waiting


def _requests(ids: Collection[str | None], calls: _Calls) -> dict[str, CallRequest]:
    """The calls of some ids, as the ledger keeps them."""
    wanted = frozenset(ids) - {None}
    return {id: call for id, call in requests(calls()).items() if id in wanted} if wanted else {}


def _plain_ask(ask: HitlAsk) -> AgPausedAsk:
    fields: dict[str, Any] = {name: getattr(ask, name) for name in AgPausedAsk.__struct_fields__}
    return AgPausedAsk(**fields)
