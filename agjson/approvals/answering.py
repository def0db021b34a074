"""Answers: checked against the asks that are kept, and stored all or none (spec §7, §13.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as replaced

from agjson.approvals.book import Book
from agjson.approvals.errors import (
    AnsweredAskError,
    AnswerError,
    EditRefusedError,
    ExpiredAskError,
    GivenUpAskError,
    GrantModeError,
    KeyRetiredError,
    OrdinalError,
    OtherOwnerError,
    OtherThreadError,
    OtherTurnError,
    QueuedAskError,
    RequestStateError,
    SpentAskError,
    TamperedAskError,
    TokenError,
    UnissuedAskError,
    WordsRefusedError,
    WrongReplyError,
)
from agjson.approvals.issuing import shown, waiting
from agjson.approvals.policy import Policy, needs_token
from agjson.approvals.records import AskRecord
from agjson.approvals.replies import EDITS, Said, edits_arguments, read_reply
from agjson.approvals.states import ANSWERED
from agjson.approvals.tokens import make_token, same_token, token_hash
from agjson.errors import ValidationError
from agjson.types import UNSET, AgHitlAnswer, AgPausedAsk
from agjson.wire import match_answer

__all__ = ["Progress", "answer", "check_integrity", "meet", "progress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the asks of a thread are.

    Attributes:
        waiting: the asks that a person can answer now, with their tokens.
        ready: the turns whose batch waits for no answer, and that nobody has claimed.
    """

    waiting: tuple[AgPausedAsk, ...]
    ready: tuple[str, ...]


def progress(book: Book, policy: Policy, thread_id: str, owner: str | None = None) -> Progress:
    """How far the asks of a thread are.

    Args:
        book: the records.
        policy: the policy.
        thread_id: the thread.
        owner: who wants to know; the asks of others are not there.
    """
    moment = policy.clock()
    ready: list[str] = []
    for batch in book.batches(thread_id):
        records = book.asks(thread_id, batch.turn_id)
        if batch.state == "open" and all(each.owner == owner and each.state_at(moment) != "open" for each in records):
            ready.append(batch.turn_id)
    return Progress(waiting=tuple(waiting(book, policy, thread_id, owner)), ready=tuple(ready))


def answer(
    book: Book,
    policy: Policy,
    thread_id: str,
    answers: Sequence[AgHitlAnswer],
    *,
    owner: str | None = None,
    path: str = "$.answers",
) -> Progress:
    """Check answers and store them, all of them or none.

    Args:
        book: the records.
        policy: the policy.
        thread_id: the thread that they were sent to.
        answers: the answers.
        owner: who sent them, as the host has authenticated it.
        path: where they are in the input.

    Returns:
        What is still to be answered, and the batches that are ready to be claimed.

    Raises:
        AnswerError: one of them is not taken; its class says why.
        MissingExtraError: a schema has to be checked, and `jsonschema` is not installed.
    """
    # As it was shown: an answer to an ask that only becomes visible by another one of this input is a guess.
    visible = _visible(book, policy, thread_id)
    for index, given in enumerate(answers):
        place = f"{path}[{index}]"
        record = _found(book, thread_id, given, owner, place)
        _check_token(book, policy, record, given, place)
        _check_state(record, policy, visible, place)
        _match(record, given, place)
        said = read_reply(record, given, place)
        if said.arguments is not UNSET and _is_gated_twice(book, record):
            raise EditRefusedError("several asks gate the call, so its arguments stay as they are", given.ask_id, place)
        after = replace(
            record,
            state=said.status,
            answer=_as_understood(given if given.token is None else replaced(given, token=None), record, said),
            arguments=said.arguments,
        )
        book.change_ask(record, after)
    return progress(book, policy, thread_id, owner)


def meet(
    book: Book,
    policy: Policy,
    thread_id: str,
    ask_ids: Sequence[str],
    text: str,
    *,
    turn_id: str,
    owner: str | None = None,
    path: str = "$.metadata['agjson/askId']",
) -> Progress:
    """Store the words of a start as the reply to the asks that it names.

    Args:
        book: the records.
        policy: the policy.
        thread_id: the thread.
        ask_ids: the asks.
        text: the words.
        turn_id: the turn of the start.
        owner: who sent it.
        path: where the asks are named.

    Returns:
        As `answer`.

    Raises:
        WordsRefusedError: an ask with a token (`Policy.wants_token`).
        WrongReplyError: no words, or words that do not fit the ask.
        AnswerError: as `answer`.
    """
    visible = _visible(book, policy, thread_id)
    for ask_id in ask_ids:
        given = AgHitlAnswer(ask_id=ask_id, status="resolved", reply=text)
        record = _found(book, thread_id, given, owner, path)
        # Agreement to what has a token is more than words: a text that says "no" must not count as a yes.
        if check_integrity(record, policy, path) is not None:
            raise WordsRefusedError(f"ask {ask_id!r} of kind {record.ask.kind} takes no words", ask_id, path)
        _check_state(record, policy, visible, path)
        if not text:
            raise WrongReplyError(f"ask {ask_id!r} is answered in words, and there are none", ask_id, path)
        read_reply(record, given, path)
        # The server's own continuation, which the client need not have kept.
        given = replaced(given, request_state=record.ask.request_state)
        book.change_ask(record, replace(record, state="met", answer=given, met_by=turn_id))
    return progress(book, policy, thread_id, owner)


def check_integrity(record: AskRecord, policy: Policy, path: str = "$") -> str | None:
    """Go on only with an ask that is as it was issued; returns its token.

    Args:
        record: the ask as it is kept.
        policy: the policy.
        path: where the answer is, for the message.

    Raises:
        KeyRetiredError: its key is in use no more.
        TamperedAskError: it was changed where it is kept.
    """
    if record.key_id is None or record.token_hash is None:
        if record.token_hash is not None or needs_token(record.ask):
            raise TamperedAskError(f"ask {record.ask_id!r} is not as it was issued", record.ask_id, path)
        return None
    if record.key_id not in policy.keys:
        raise KeyRetiredError(f"the key of ask {record.ask_id!r} is in use no more: ask anew", record.ask_id, path)
    token = make_token(record, policy.keys)
    if token_hash(token) != record.token_hash:
        raise TamperedAskError(f"ask {record.ask_id!r} is not as it was issued", record.ask_id, path)
    return token


def _visible(book: Book, policy: Policy, thread_id: str) -> set[str]:
    moment = policy.clock()
    return {
        record.ask_id
        for batch in book.batches(thread_id)
        for record in shown(book.asks(thread_id, batch.turn_id), batch, moment)
    }


def _found(book: Book, thread_id: str, given: AgHitlAnswer, owner: str | None, path: str) -> AskRecord:
    record = book.ask(thread_id, given.ask_id)
    if record is None:
        other = None if given.token is None else book.ask_of_token(token_hash(given.token))
        if other is not None and other.thread_id != thread_id and other.owner == owner:
            raise OtherThreadError("the token is that of an ask of another thread", given.ask_id, path)
        raise UnissuedAskError(f"the thread has no ask {given.ask_id!r}", given.ask_id, path)
    if record.owner != owner:
        raise OtherOwnerError(f"ask {given.ask_id!r} was put to somebody else", given.ask_id, path)
    return record


def _check_token(book: Book, policy: Policy, record: AskRecord, given: AgHitlAnswer, path: str) -> None:
    expected = check_integrity(record, policy, path)
    id = record.ask_id
    if expected is None:
        if given.token is not None:
            raise TokenError(f"ask {id!r} has no token", id, path)
        return
    if given.token is None:
        raise TokenError(f"the answer to ask {id!r} must echo its token", id, path)
    if same_token(given.token, expected):
        return
    other = book.ask_of_token(token_hash(given.token))
    if other is not None and other.owner == record.owner:
        if other.thread_id != record.thread_id:
            raise OtherThreadError("the token is that of an ask of another thread", id, path)
        if other.turn_id != record.turn_id:
            raise OtherTurnError("the token is that of an ask of another turn", id, path)
    raise TokenError(f"the token is not that of ask {id!r}", id, path)


def _check_state(record: AskRecord, policy: Policy, visible: set[str], path: str) -> None:
    state, id = record.state_at(policy.clock()), record.ask_id
    if state == "open" and id in visible:
        return
    if state in ANSWERED:
        raise AnsweredAskError(f"ask {id!r} has its answer already: {state}", id, path)
    refusals: dict[str, tuple[type[AnswerError], str]] = {
        "open": (QueuedAskError, "waits behind another one, and was not shown yet"),
        "expired": (ExpiredAskError, "has expired"),
        "given_up": (GivenUpAskError, "was given up: the conversation went on without it"),
    }
    kind, words = refusals.get(state, (SpentAskError, "was answered, and the answer was acted on"))
    raise kind(f"ask {id!r} {words}", id, path)


_BY_FIELD: dict[str, type[AnswerError]] = {
    "$.requestState": RequestStateError,
    "$.grantModeId": GrantModeError,
    "$.token": TokenError,
}


def _match(record: AskRecord, given: AgHitlAnswer, path: str) -> None:
    try:
        match_answer(given, record.ask)
    except ValidationError as error:
        raise _BY_FIELD.get(error.path, AnswerError)(error.message, record.ask_id, path) from None
    if given.ordinal is not None and given.ordinal != record.ask.ordinal:
        raise OrdinalError("the ordinal is not that of the ask", record.ask_id, path)


def _as_understood(given: AgHitlAnswer, record: AskRecord, said: Said) -> AgHitlAnswer:
    """The answer as it counts: arguments that are not edited are those of the call, also where 1.0 was sent for 1."""
    if record.call is None or said.arguments is not UNSET or not edits_arguments(record, given):
        return given
    return replaced(given, reply={EDITS: record.call.copied().arguments})


def _is_gated_twice(book: Book, record: AskRecord) -> bool:
    others = [other for other in book.asks(record.thread_id, record.turn_id) if other.ask_id != record.ask_id]
    return record.call is not None and any(
        other.call is not None and other.call.call_id == record.call.call_id for other in others
    )
