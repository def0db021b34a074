"""Records as JSON text, for stores that keep them outside of the process."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from agjson.approvals.budget import CallBudget
from agjson.approvals.records import AskRecord, BatchRecord, CallRequest, StandingRule
from agjson.approvals.states import AskState
from agjson.types import UNSET
from agjson.wire import decode_answer, decode_ask, encode
from agjson.wire._json import members, plain

__all__ = [
    "decode_batch",
    "decode_record",
    "decode_rule",
    "encode_batch",
    "encode_course",
    "encode_issued",
    "encode_rule",
]

_Members = Mapping[str, msgspec.Raw]


def encode_issued(record: AskRecord) -> bytes:
    """What is fixed of an ask when it is issued, but for its thread, its turn, its place and the hash of its token.

    Args:
        record: the ask.

    Raises:
        EncodeError: a value in it has no JSON form.
    """
    written: dict[str, Any] = {"ask": record.ask, "issuedAt": record.issued_at.isoformat()}
    if record.call is not None:
        written["call"] = _call(record.call)
    if record.owner is not None:
        written["owner"] = record.owner
    if record.edit_schema is not UNSET:
        written["editSchema"] = record.edit_schema
    if record.key_id is not None:
        written["keyId"] = record.key_id
    if record.expires_at is not None:
        written["expiresAt"] = record.expires_at.isoformat()
    return encode(written)


def encode_course(record: AskRecord) -> bytes | None:
    """What came of an ask after it was issued, but for its state; None: nothing.

    Args:
        record: the ask.

    Raises:
        EncodeError: a value in it has no JSON form.
    """
    written: dict[str, Any] = {}
    if record.answer is not None:
        written["answer"] = record.answer
    if record.arguments is not UNSET:
        written["arguments"] = record.arguments
    if record.met_by is not None:
        written["metBy"] = record.met_by
    if record.outcome is not None:
        written["outcome"] = record.outcome
    return encode(written) if written else None


def decode_record(
    issued: bytes,
    course: bytes | None,
    *,
    thread_id: str,
    turn_id: str,
    place: int,
    state: AskState,
    token_hash: bytes | None,
) -> AskRecord:
    """Read an ask.

    Args:
        issued: of `encode_issued`.
        course: of `encode_course`.
        thread_id: its thread.
        turn_id: its turn.
        place: its position in the batch.
        state: its state.
        token_hash: the hash of its token.

    Raises:
        DecodeError: it is not that.
        KeyError: a member is missing.
    """
    fixed = members(issued, "$")
    came: _Members = {} if course is None else members(course, "$")
    expires = _optional(fixed, "expiresAt")
    return AskRecord(
        thread_id=thread_id,
        turn_id=turn_id,
        ask=decode_ask(bytes(fixed["ask"])),
        call=_read_call(plain(fixed["call"], "$.call")) if "call" in fixed else None,
        owner=_optional(fixed, "owner"),
        edit_schema=plain(fixed["editSchema"], "$.editSchema") if "editSchema" in fixed else UNSET,
        place=place,
        key_id=_optional(fixed, "keyId"),
        issued_at=datetime.fromisoformat(plain(fixed["issuedAt"], "$.issuedAt")),
        token_hash=token_hash,
        expires_at=None if expires is None else datetime.fromisoformat(expires),
        state=state,
        answer=decode_answer(bytes(came["answer"])) if "answer" in came else None,
        arguments=plain(came["arguments"], "$.arguments") if "arguments" in came else UNSET,
        met_by=_optional(came, "metBy"),
        outcome=_optional(came, "outcome"),
    )


def encode_batch(batch: BatchRecord) -> bytes:
    """A batch, but for its thread, its turn and its state.

    Args:
        batch: the batch.

    Raises:
        EncodeError: a value in it has no JSON form.
    """
    written: dict[str, Any] = {}
    if batch.held:
        written["held"] = [_call(call) for call in batch.held]
    if batch.one_at_a_time:
        written["oneAtATime"] = True
    if batch.budget is not None:
        written["budget"] = [batch.budget.limit, batch.budget.used]
    if batch.claim_id is not None:
        written |= {"claimId": batch.claim_id, "claimedBy": batch.claimed_by, "holder": batch.holder}
    if batch.outcomes:
        written["outcomes"] = batch.outcomes
    return encode(written)


def decode_batch(data: bytes, *, thread_id: str, turn_id: str, state: Any) -> BatchRecord:
    """Read what `encode_batch` has written.

    Args:
        data: the text.
        thread_id: its thread.
        turn_id: its turn.
        state: its state.

    Raises:
        DecodeError: it is not that.
        KeyError: a member is missing.
    """
    read: dict[str, Any] = plain(data, "$")
    return BatchRecord(
        thread_id=thread_id,
        turn_id=turn_id,
        held=tuple(map(_read_call, read.get("held", ()))),
        one_at_a_time=read.get("oneAtATime", False),
        budget=CallBudget(*read["budget"]) if "budget" in read else None,
        state=state,
        claim_id=read.get("claimId"),
        claimed_by=read.get("claimedBy"),
        holder=read.get("holder"),
        outcomes=read.get("outcomes", {}),
    )


def encode_rule(rule: StandingRule) -> bytes:
    """A standing rule, but for its id, its owner and its thread.

    Args:
        rule: the rule.
    """
    written: dict[str, Any] = {"tool": rule.tool, "server": rule.server, "madeAt": rule.made_at.isoformat()}
    if rule.arguments is not UNSET:
        written["arguments"] = rule.arguments
    if rule.expires_at is not None:
        written["expiresAt"] = rule.expires_at.isoformat()
    return encode(written)


def decode_rule(data: bytes, *, rule_id: str, owner: str | None, thread_id: str | None) -> StandingRule:
    """Read what `encode_rule` has written.

    Args:
        data: the text.
        rule_id: its id.
        owner: whose it is.
        thread_id: the thread in which it counts.

    Raises:
        DecodeError: it is not that.
        KeyError: a member is missing.
    """
    read: dict[str, Any] = plain(data, "$")
    expires = read.get("expiresAt")
    return StandingRule(
        rule_id=rule_id,
        tool=read["tool"],
        server=read["server"],
        arguments=read.get("arguments", UNSET),
        owner=owner,
        thread_id=thread_id,
        made_at=datetime.fromisoformat(read["madeAt"]),
        expires_at=None if expires is None else datetime.fromisoformat(expires),
    )


def _call(call: CallRequest) -> dict[str, Any]:
    written: dict[str, Any] = {"id": call.call_id, "name": call.name, "arguments": call.arguments, "index": call.index}
    if call.server is not None:
        written["server"] = call.server
    if call.hosted:
        written["hosted"] = True
    return written


def _read_call(read: dict[str, Any]) -> CallRequest:
    return CallRequest(
        call_id=read["id"],
        name=read["name"],
        arguments=read["arguments"],
        server=read.get("server"),
        hosted=read.get("hosted", False),
        index=read["index"],
    )


def _optional(found: _Members, name: str) -> Any:
    return plain(found[name], f"$.{name}") if name in found else None
