"""What people decided is acted on: claimed once, before anything runs, and seen to its end (spec §7, §13.1)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agjson.approvals.answering import check_integrity
from agjson.approvals.book import Book
from agjson.approvals.budget import CallBudget
from agjson.approvals.errors import AlreadyClaimedError, BatchOpenError, ClaimLostError, LedgerError, UnknownBatchError
from agjson.approvals.issuing import give_up
from agjson.approvals.policy import Policy
from agjson.approvals.records import AskRecord, BatchRecord, CallRequest
from agjson.approvals.replies import RESPONSE
from agjson.approvals.standing import grant
from agjson.approvals.states import TRANSITIONS, AskState
from agjson.types import UNSET, AgHitlAnswer, AgPausedAsk, AgToolOutcome, AgToolResult, TextBlock

__all__ = [
    "OUTCOME_UNKNOWN",
    "Claim",
    "Decision",
    "Lost",
    "Recovered",
    "claim",
    "close",
    "decisions_of",
    "ended_calls",
    "lost_result",
    "record_outcome",
    "recover",
    "refused_result",
    "unknown_calls",
    "unknown_result",
    "untold_results",
]

OUTCOME_UNKNOWN = "outcome_unknown"
"""The `errorCode` of a call that was allowed and may or may not have run."""

_YES: frozenset[AskState] = frozenset(("resolved", "met"))
_ENDED: frozenset[AgToolOutcome] = frozenset(("ok", "error"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about one ask.

    Attributes:
        ask: the ask, as it was issued, without its token.
        verdict: ``resolved``, ``met``, ``declined``, ``cancelled`` or ``expired``.
        answer: the answer as it was checked, without a token; None: there came none.
        call: the call that the ask gates, rebuilt from what is kept, with the edits that count; None: it gates none.
        edited: the person has changed the arguments.
        runs: this decision lets something run: the call, or the framework with a reply. False for a refusal, for the
            consent to open a URL, and where another ask about the same call was refused.
        response: what the person answers in the tool's place; the call itself does not run then. None: nothing.
    """

    ask: AgPausedAsk
    verdict: AskState
    answer: AgHitlAnswer | None
    call: CallRequest | None
    edited: bool
    runs: bool
    response: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The sole right to act on the decisions of a batch.

    Attributes:
        claim_id: names the claim.
        thread_id: the thread.
        turn_id: the turn that asked.
        claimed_by: the turn that goes on.
        decisions: the decisions, in the order of the asks.
        held: the safe calls that run with them.
        withheld: the safe calls that stay as they are, as the batch was only about consent to open a URL.
        budget: what is left to be called after this batch; None: there is no limit.
    """

    claim_id: str
    thread_id: str
    turn_id: str
    claimed_by: str
    decisions: tuple[Decision, ...]
    held: tuple[CallRequest, ...]
    withheld: tuple[CallRequest, ...]
    budget: CallBudget | None

    @property
    def calls(self) -> list[CallRequest]:
        """The calls that are to be run here, each once, in the order in which the model made them."""
        answered = {each.call.call_id for each in self.decisions if each.call is not None and each.response is not None}
        allowed = {
            each.call.call_id: each.call
            for each in self.decisions
            if each.runs and each.call is not None and each.call.call_id not in answered
        }
        edited = {each.call.call_id: each.call for each in self.decisions if each.edited and each.call is not None}
        here = [edited.get(id, call) for id, call in allowed.items() if not call.hosted]
        return sorted([*here, *self.held], key=lambda call: call.index)


def claim(book: Book, policy: Policy, thread_id: str, turn_id: str, *, claimed_by: str, holder: str = "") -> Claim:
    """Claim a batch whose asks are all decided. Commit it before anything runs: nobody can claim it again.

    Args:
        book: the records.
        policy: the policy.
        thread_id: the thread.
        turn_id: the turn that asked.
        claimed_by: the turn that goes on.
        holder: names the process (`LedgerStore.holder`).

    Returns:
        The decisions, and the calls that are to run; all of it comes from the records.

    Raises:
        UnknownBatchError: the turn has asked nothing.
        AlreadyClaimedError: somebody has claimed the batch, or it was given up.
        BatchOpenError: asks of it wait for an answer.
        TamperedAskError: what is kept is not what was asked.
        KeyRetiredError: the key of an ask is in use no more.
    """
    batch = book.batch(thread_id, turn_id)
    if batch is None:
        raise UnknownBatchError(f"turn {turn_id!r} has asked nothing")
    if batch.state != "open":
        raise AlreadyClaimedError(f"the asks of turn {turn_id!r} are {batch.state}")
    moment = policy.clock()
    records = book.asks(thread_id, turn_id)
    still_open = [record.ask_id for record in records if record.state_at(moment) == "open"]
    if still_open:
        raise BatchOpenError(f"the batch waits for answers to {', '.join(map(repr, still_open))}", still_open)
    # What was given up for itself is decided no more; a call that it gates has no yes.
    counting = [record for record in records if record.state != "given_up"]
    for record in counting:
        check_integrity(record, policy)
    decisions = [each for each in decisions_of(records, moment) if each.verdict != "given_up"]
    for record, decision in zip(counting, decisions, strict=True):
        book.change_ask(record, _after_claim(record, decision))
        # Who answered in the place of the tool has not let it run, this once or later.
        allowed = decision.runs and decision.response is None
        if allowed and decision.answer is not None and decision.answer.grant_mode_id is not None:
            grant(book, policy, record, decision.call, decision.answer.grant_mode_id)
    # Consent to open a URL lets nothing run, so it lets go of nothing either.
    released = any(record.ask.kind != "url" for record in counting)
    made = Claim(
        claim_id=secrets.token_hex(16),
        thread_id=thread_id,
        turn_id=turn_id,
        claimed_by=claimed_by,
        decisions=tuple(decisions),
        held=tuple(call.copied() for call in batch.held) if released else (),
        withheld=() if released else batch.held,
        budget=None,
    )
    # A batch counts whole, also where what it runs pauses again.
    budget = None if batch.budget is None else batch.budget.spend(len(made.calls))
    book.put_batch(
        replace(
            batch,
            state="claimed",
            claim_id=made.claim_id,
            claimed_by=claimed_by,
            holder=holder,
            held=batch.held if released else (),
            budget=budget,
        )
    )
    return replace(made, budget=budget)


def decisions_of(records: Sequence[AskRecord], moment: datetime) -> list[Decision]:
    """What is decided about the asks of a batch.

    Args:
        records: the asks; none of them is open.
        moment: now.
    """
    refused = {
        record.call.call_id
        for record in records
        if record.call is not None and (record.state not in _YES or record.ask.kind == "url")
    }
    return [_decision(record, record.state_at(moment), refused) for record in records]


def _decision(record: AskRecord, verdict: AskState, refused: Collection[str]) -> Decision:
    call = record.call
    edited = call is not None and record.arguments is not UNSET
    call = None if call is None else _with_edits(call, record).copied()
    runs = verdict in _YES and record.ask.kind != "url" and (call is None or call.call_id not in refused)
    response: str | None = None
    reply = None if record.answer is None else record.answer.reply
    if runs and record.ask.kind == "approval" and isinstance(reply, Mapping):
        said = reply.get(RESPONSE)
        response = said if isinstance(said, str) else None
    return Decision(
        ask=record.ask,
        verdict=verdict,
        answer=record.answer,
        call=call,
        edited=edited,
        runs=runs,
        response=response,
    )


def _with_edits(call: CallRequest, record: AskRecord) -> CallRequest:
    """The call that an ask gates, with the arguments that count."""
    return call if record.arguments is UNSET else replace(call, arguments=record.arguments)


def _after_claim(record: AskRecord, decision: Decision) -> AskRecord:
    if decision.runs:
        return replace(record, state="claimed")
    if decision.verdict == "expired":
        return record if record.state == "expired" else replace(record, state="expired")
    consented = record.state in _YES and record.ask.kind == "url"
    # Nothing is left to happen, so nothing of it can be lost.
    return replace(record, state="done", outcome=None if consented or record.call is None else "denied")


# Results


def record_outcome(book: Book, claim: Claim, call_id: str, outcome: AgToolOutcome) -> None:
    """Note how a call of a claim ended, as soon as that is known.

    Args:
        book: the records.
        claim: the claim.
        call_id: the call: one that an ask gated, or that was held back.
        outcome: how it ended; ``input_required``: it asks for more, by an ask of its own.

    Raises:
        ClaimLostError: the claim is held no more.
        LedgerError: it is no call of the claim, or its outcome is known already.
    """
    batch = _held(book, claim)
    if any(call.call_id == call_id for call in batch.held):
        if call_id in batch.outcomes:
            raise LedgerError(f"the outcome of call {call_id!r} is known already")
        book.put_batch(replace(batch, outcomes={**batch.outcomes, call_id: outcome}))
        return
    gating = [
        record
        for record in book.asks(claim.thread_id, claim.turn_id)
        if record.call is not None and record.call.call_id == call_id and record.state == "claimed"
    ]
    if not gating:
        raise LedgerError(f"no outcome of call {call_id!r} is wanted")
    for record in gating:
        book.change_ask(record, replace(record, state="done", outcome=outcome))


def close(book: Book, claim: Claim) -> list[CallRequest]:
    """End a claim: the run that went on from it is over. Calls without an outcome are unknown from now on.

    Args:
        book: the records.
        claim: the claim.

    Returns:
        The calls whose outcome is unknown.

    Raises:
        ClaimLostError: the claim is held no more.
    """
    return _end(book, _held(book, claim), lost=False)


def _held(book: Book, claim: Claim) -> BatchRecord:
    batch = book.batch(claim.thread_id, claim.turn_id)
    if batch is None or batch.state != "claimed" or batch.claim_id != claim.claim_id:
        raise ClaimLostError(f"the claim on the asks of turn {claim.turn_id!r} is held no more")
    return batch


def _end(book: Book, batch: BatchRecord, *, lost: bool) -> list[CallRequest]:
    unknown = [call for call in batch.held if call.call_id not in batch.outcomes]
    is_unknown = bool(unknown)
    for record in book.asks(batch.thread_id, batch.turn_id):
        if record.state != "claimed":
            continue
        if record.call is None and not lost:
            # Its reply went to the framework, which came to its end.
            book.change_ask(record, replace(record, state="done"))
            continue
        is_unknown = True
        book.change_ask(record, replace(record, state="unknown"))
        if record.call is not None and record.call not in unknown:
            unknown.append(_with_edits(record.call, record))
    book.put_batch(replace(batch, state="unknown" if is_unknown else "done"))
    return sorted(unknown, key=lambda call: call.index)


# Claims whose process is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A claim that nobody sees to its end any more.

    Attributes:
        thread_id: the thread.
        turn_id: the turn that asked.
        claimed_by: the turn that went on, or was about to.
        calls: the calls that may or may not have run.
        asks: the asks that allowed something of which nobody knows what came of it.
    """

    thread_id: str
    turn_id: str
    claimed_by: str | None
    calls: tuple[CallRequest, ...]
    asks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What `recover` found.

    Attributes:
        lost: the claims whose outcome is unknown.
        given_up: asks that were issued and never shown to stay.
    """

    lost: tuple[Lost, ...] = ()
    given_up: tuple[str, ...] = ()


def recover(
    book: Book,
    has_ended: Callable[[str], bool],
    *,
    thread_id: str | None = None,
    holding: bool = False,
    pending: Collection[str] | None = None,
) -> Recovered:
    """End the claims of processes that are gone: what they allowed is unknown, and never runs a second time.

    Args:
        book: the records.
        has_ended: whether a process has surely ended (`LedgerStore.has_ended`).
        thread_id: only those of this thread.
        holding: the caller has the sole right to run the thread, so every claim of it is lost.
        pending: the asks that the thread waits for, as it is stored; the others were issued by a run that was lost, or
            by a turn that went on without them, and are given up. None: leave them.

    Raises:
        ValueError: `holding` or `pending` without a thread.
    """
    if thread_id is None and (holding or pending is not None):
        raise ValueError("holding and pending are about one thread: thread_id is needed")
    lost: list[Lost] = []
    left: list[str] = []
    for batch in book.batches(thread_id):
        records = book.asks(batch.thread_id, batch.turn_id)
        if batch.state == "claimed" and (holding or has_ended(batch.holder or "")):
            asks = tuple(record.ask_id for record in records if record.state == "claimed")
            calls = _end(book, batch, lost=True)
            if asks or calls:
                lost.append(
                    Lost(
                        thread_id=batch.thread_id,
                        turn_id=batch.turn_id,
                        claimed_by=batch.claimed_by,
                        calls=tuple(calls),
                        asks=asks,
                    )
                )
        elif batch.state == "open" and pending is not None:
            if any(each.ask_id in pending for each in records):
                left += _give_up_strays(book, records, pending)
            else:
                left += [record.ask_id for record in give_up(book, batch.thread_id, batch.turn_id)]
    return Recovered(lost=tuple(lost), given_up=tuple(left))


def _give_up_strays(book: Book, records: Sequence[AskRecord], pending: Collection[str]) -> list[str]:
    """Leave behind the asks of a batch that its turn did not pause for: nobody can answer them, and all would wait."""
    strays = [record for record in records if record.ask_id not in pending and "given_up" in TRANSITIONS[record.state]]
    for record in strays:
        book.change_ask(record, replace(record, state="given_up"))
    return [record.ask_id for record in strays]


def untold_results(book: Book, thread_id: str) -> dict[str, AgToolResult]:
    """What is to be said of each call of a thread that was decided on, where nobody has said it: by call id.

    Args:
        book: the records.
        thread_id: the thread.
    """
    kept = _kept(book, thread_id)
    results = {call.call_id: lost_result(call) for call in _ended_calls(*kept)}
    results |= {call.call_id: unknown_result(call) for call in _unknown_calls(*kept)}
    results |= {call.call_id: refused_result(call) for call in _refused_calls(*kept)}
    return results


def unknown_calls(book: Book, thread_id: str) -> list[CallRequest]:
    """The calls of a thread that were allowed, and of which nobody knows whether they ran.

    Args:
        book: the records.
        thread_id: the thread.
    """
    return _unknown_calls(*_kept(book, thread_id))


def ended_calls(book: Book, thread_id: str) -> list[CallRequest]:
    """The calls of a thread that ran to their end, as the ledger knows, which hears of it first.

    Whoever finds one without a result in the thread knows that its process was lost in between.

    Args:
        book: the records.
        thread_id: the thread.
    """
    return _ended_calls(*_kept(book, thread_id))


def _kept(book: Book, thread_id: str) -> tuple[list[AskRecord], dict[str, BatchRecord]]:
    """The asks of a thread in every state, and their batches by turn."""
    records = book.asks(thread_id)
    batches = {turn_id: book.batch(thread_id, turn_id) for turn_id in dict.fromkeys(each.turn_id for each in records)}
    return records, {turn_id: batch for turn_id, batch in batches.items() if batch is not None}


def _unknown_calls(records: Sequence[AskRecord], batches: Mapping[str, BatchRecord]) -> list[CallRequest]:
    unknown: dict[str, CallRequest] = {}
    for record in records:
        if record.state == "unknown" and record.call is not None:
            unknown[record.call.call_id] = _with_edits(record.call, record)
    for batch in batches.values():
        if batch.state == "unknown":
            unknown.update((call.call_id, call) for call in batch.held if call.call_id not in batch.outcomes)
    return list(unknown.values())


def _ended_calls(records: Sequence[AskRecord], batches: Mapping[str, BatchRecord]) -> list[CallRequest]:
    ended: dict[str, CallRequest] = {}
    for record in records:
        if record.state == "done" and record.call is not None and record.outcome in _ENDED:
            ended[record.call.call_id] = _with_edits(record.call, record)
    for batch in batches.values():
        ended.update((call.call_id, call) for call in batch.held if batch.outcomes.get(call.call_id) in _ENDED)
    return list(ended.values())


def _refused_calls(records: Sequence[AskRecord], batches: Mapping[str, BatchRecord]) -> list[CallRequest]:
    """The calls that were not allowed, and whose refusal was acted on."""
    return [
        record.call
        for record in records
        if record.call is not None
        and (record.outcome == "denied" or record.state == "expired")
        and record.turn_id in batches
        and batches[record.turn_id].claimed_by is not None
    ]


def unknown_result(call: CallRequest) -> AgToolResult:
    """The visible result of a call that may or may not have run (spec §2.2).

    Args:
        call: the call.
    """
    return _no_result(
        call, "It is not known whether this call ran: the process that ran it was lost. It was not run again."
    )


def lost_result(call: CallRequest) -> AgToolResult:
    """The visible result of a call that ran, and whose own result was lost (spec §2.2).

    Args:
        call: the call.
    """
    return _no_result(call, "This call ran, but its result was lost with its process. It was not run again.")


def refused_result(call: CallRequest) -> AgToolResult:
    """The visible result of a call that was not allowed, where the run that was to say so was broken off (spec §2.2).

    Args:
        call: the call.
    """
    text = "This call was not allowed, and did not run."
    return AgToolResult(tool_call_id=call.call_id, content=[TextBlock(text=text)], outcome="denied")


def _no_result(call: CallRequest, text: str) -> AgToolResult:
    return AgToolResult(
        tool_call_id=call.call_id,
        content=[TextBlock(text=text)],
        outcome="error",
        error_code=OUTCOME_UNKNOWN,
        error_text=text,
    )
