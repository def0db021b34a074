"""Asks that are put to people: kept before anybody sees them, and shown again with their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from msgspec.structs import replace as replaced

from agjson.approvals.book import Book
from agjson.approvals.budget import CallBudget
from agjson.approvals.canonical import canonical
from agjson.approvals.errors import AskConflictError, AskRefusedError
from agjson.approvals.policy import Policy
from agjson.approvals.records import Ask, AskRecord, BatchRecord, CallRequest
from agjson.approvals.schemas import schema_fault
from agjson.approvals.states import ANSWERED
from agjson.approvals.tokens import make_token, token_hash
from agjson.types import UNSET, AgPausedAsk

__all__ = ["expire", "give_up", "hold", "issue", "shown", "waiting", "with_token"]


def issue(
    book: Book,
    policy: Policy,
    *,
    thread_id: str,
    turn_id: str,
    asks: Sequence[Ask],
    owner: str | None = None,
    held: Sequence[CallRequest] = (),
    one_at_a_time: bool = False,
    budget: CallBudget | None = None,
) -> list[AgPausedAsk]:
    """Keep asks, before they are emitted; a second call for the same turn adds to its batch.

    Args:
        book: the records.
        policy: the policy.
        thread_id: the thread.
        turn_id: the turn that asks; its asks are one batch.
        asks: the asks.
        owner: who may answer.
        held: calls of the batch that need no approval; they run with the decision.
        one_at_a_time: show only the first open ask.
        budget: what is left to be called.

    Returns:
        The asks of the batch that are to be emitted now, with their tokens.

    Raises:
        AskConflictError: the thread has had one of the ids, or the batch takes no more.
        AskRefusedError: an ask that could never be answered or checked.
        MissingExtraError: a schema has to be checked, and `jsonschema` is not installed.
    """
    if not asks:
        raise AskRefusedError("there is nothing to ask, so nothing would ever be decided")
    batch = book.batch(thread_id, turn_id)
    moment = policy.clock()
    there = book.asks(thread_id, turn_id) if batch is not None else []
    if batch is None:
        batch = BatchRecord(thread_id=thread_id, turn_id=turn_id, budget=budget)
    elif batch.state != "open" or any(record.owner != owner for record in there):
        raise AskConflictError(f"the asks of turn {turn_id!r} take no more: they are claimed, or somebody else's")
    _refuse_repeated_calls([*batch.held, *held], there, asks)
    batch = replace(
        batch,
        held=(*batch.held, *(call.copied() for call in held)),
        one_at_a_time=batch.one_at_a_time or one_at_a_time,
        budget=budget or batch.budget,
    )
    book.put_batch(batch)
    for place, new in enumerate(asks, start=len(there)):
        if book.ask(thread_id, new.ask.ask_id) is not None:
            raise AskConflictError(f"the thread has had an ask {new.ask.ask_id!r}: no ask is opened anew")
        record = _record(new, policy, moment, place=place, thread_id=thread_id, turn_id=turn_id, owner=owner)
        book.add_ask(record)
    return [with_token(record, policy) for record in shown(book.asks(thread_id, turn_id), batch, moment)]


def hold(book: Book, thread_id: str, turn_id: str, calls: Sequence[CallRequest]) -> None:
    """Add calls to a batch that need no approval and wait for its decision; those that it holds already stay.

    Args:
        book: the records.
        thread_id: the thread.
        turn_id: the turn that has asked.
        calls: the calls.

    Raises:
        AskConflictError: the turn has asked nothing, or its batch takes no more.
        AskRefusedError: an ask gates one of them.
    """
    batch = book.batch(thread_id, turn_id)
    if batch is None or batch.state != "open":
        raise AskConflictError(f"the asks of turn {turn_id!r} take no more calls")
    there = {call.call_id for call in batch.held}
    new = [call.copied() for call in calls if call.call_id not in there]
    _refuse_repeated_calls([*batch.held, *new], book.asks(thread_id, turn_id), ())
    book.put_batch(replace(batch, held=(*batch.held, *new)))


def _record(
    new: Ask, policy: Policy, moment: datetime, *, place: int, thread_id: str, turn_id: str, owner: str | None
) -> AskRecord:
    ask, call = new.ask, new.call
    _refuse_unanswerable(ask, call)
    if ask.expires_at is None and policy.lasts is not None:
        ask = replaced(ask, expires_at=(moment + policy.lasts).isoformat())
    expires_at = None if ask.expires_at is None else _moment(ask)
    edits = UNSET if call is None or call.hosted else policy.editable.get(call.name, UNSET)
    if edits is not UNSET and (wrong := schema_fault(edits)) is not None:
        raise AskRefusedError(f"the schema of edited arguments of {call and call.name} is none: {wrong}")
    if call is not None:
        # What has no canonical form could not be bound; it comes out now rather than with the answer.
        canonical(call.arguments)
        call = call.copied()
    record = AskRecord(
        thread_id=thread_id,
        turn_id=turn_id,
        ask=ask,
        call=call,
        owner=owner,
        edit_schema=edits,
        place=place,
        key_id=policy.keys.current if policy.wants_token(ask) else None,
        issued_at=moment,
        token_hash=None,
        expires_at=expires_at,
    )
    if record.key_id is None:
        return record
    return replace(record, token_hash=token_hash(make_token(record, policy.keys)))


def _refuse_unanswerable(ask: AgPausedAsk, call: CallRequest | None) -> None:
    named = f"ask {ask.ask_id!r}"
    if ask.token is not None:
        raise AskRefusedError(f"{named} has a token already: tokens are the ledger's to make")
    if ask.tool_call_id != (None if call is None else call.call_id):
        raise AskRefusedError(f"{named} gates a call, and needs that call: {ask.tool_call_id!r}")
    choices = [choice.id for choice in ask.choices or ()]
    if ask.kind == "choice" and (not choices or len(choices) != len(set(choices))):
        raise AskRefusedError(f"{named} of kind choice needs options, each with an id of its own")
    if ask.kind == "url" and not ask.url:
        raise AskRefusedError(f"{named} of kind url needs a url")
    if ask.kind == "form" and ask.schema is not UNSET and (wrong := schema_fault(ask.schema)) is not None:
        raise AskRefusedError(f"{named} has no JSON Schema: {wrong}")
    modes = [mode.id for mode in ask.grant_modes or ()]
    if len(modes) != len(set(modes)):
        raise AskRefusedError(f"{named} has two grant modes of one id")


def _moment(ask: AgPausedAsk) -> datetime:
    try:
        moment = datetime.fromisoformat(ask.expires_at or "")
    except ValueError:
        raise AskRefusedError(f"ask {ask.ask_id!r}: expiresAt is no ISO 8601 moment") from None
    if moment.tzinfo is None:
        raise AskRefusedError(f"ask {ask.ask_id!r}: expiresAt needs its offset from UTC")
    return moment


def _refuse_repeated_calls(held: Sequence[CallRequest], there: Sequence[AskRecord], asks: Iterable[Ask]) -> None:
    ids = [call.call_id for call in held]
    gated = {record.call.call_id for record in there if record.call} | {new.call.call_id for new in asks if new.call}
    if len(ids) != len(set(ids)) or gated & set(ids):
        raise AskRefusedError("a call is held back once, and not if an ask gates it")


# Shown to clients


def shown(records: Iterable[AskRecord], batch: BatchRecord, moment: datetime) -> list[AskRecord]:
    """The asks of a batch that a person can answer now.

    Args:
        records: the asks of the batch, in order.
        batch: the batch.
        moment: now.
    """
    if batch.state != "open":
        return []
    still_open = [record for record in records if record.state_at(moment) == "open"]
    return still_open[:1] if batch.one_at_a_time else still_open


def waiting(book: Book, policy: Policy, thread_id: str, owner: str | None = None) -> list[AgPausedAsk]:
    """The asks that a person can answer now, with their tokens: for a client that joins, also after a restart.

    Args:
        book: the records.
        policy: the policy.
        thread_id: the thread.
        owner: who wants to know; the asks of others are not there.
    """
    moment = policy.clock()
    return [
        with_token(record, policy)
        for batch in book.batches(thread_id)
        for record in shown(book.asks(thread_id, batch.turn_id), batch, moment)
        if record.owner == owner
    ]


def with_token(record: AskRecord, policy: Policy) -> AgPausedAsk:
    """An ask as its client gets it. It stays without a token where the key is in use no more; no answer counts then.

    Args:
        record: the ask.
        policy: the policy.
    """
    if record.key_id is None or record.key_id not in policy.keys:
        return record.ask
    return replaced(record.ask, token=make_token(record, policy.keys))


# Left behind


def give_up(book: Book, thread_id: str, turn_id: str | None = None) -> list[AskRecord]:
    """Leave asks behind: no answer to them counts any more, and those that are stored have no effect.

    Args:
        book: the records.
        thread_id: the thread.
        turn_id: only the batch of this turn.

    Returns:
        The asks that were left behind. What is claimed stays as it is.
    """
    left: list[AskRecord] = []
    for batch in book.batches(thread_id):
        if batch.state != "open" or turn_id not in (None, batch.turn_id):
            continue
        book.put_batch(replace(batch, state="given_up"))
        for record in book.asks(thread_id, batch.turn_id):
            if record.state == "open" or record.state in ANSWERED:
                after = replace(record, state="given_up")
                book.change_ask(record, after)
                left.append(after)
    return left


def expire(book: Book, policy: Policy, thread_id: str) -> list[AskRecord]:
    """Note which asks have expired. They have no effect before that either; it is for those who read the records.

    Args:
        book: the records.
        policy: the policy.
        thread_id: the thread.
    """
    moment = policy.clock()
    expired: list[AskRecord] = []
    for batch in book.batches(thread_id):
        for record in book.asks(thread_id, batch.turn_id):
            if record.state == "open" and record.state_at(moment) == "expired":
                after = replace(record, state="expired")
                book.change_ask(record, after)
                expired.append(after)
    return expired
