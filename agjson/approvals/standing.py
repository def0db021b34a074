"""Standing rules: decisions for later calls, within their tool, server, arguments, thread and time (loop contract)."""

from __future__ import annotations

import copy
import secrets
from datetime import datetime

from agjson.approvals.book import Book
from agjson.approvals.canonical import canonical
from agjson.approvals.errors import LedgerError
from agjson.approvals.policy import Policy
from agjson.approvals.records import AskRecord, CallRequest, StandingRule
from agjson.types import UNSET, JsonValue, UnsetType

__all__ = ["allow", "grant", "revoke", "rules", "standing_rule"]


def allow(
    book: Book,
    policy: Policy,
    *,
    tool: str,
    server: str | None = None,
    arguments: JsonValue | UnsetType = UNSET,
    owner: str | None = None,
    thread_id: str | None = None,
    expires_at: datetime | None = None,
) -> StandingRule:
    """Let later calls of a tool run without an ask.

    Args:
        book: the records.
        policy: the policy.
        tool: the tool.
        server: the server of the tool; None: a tool of no server.
        arguments: these arguments exactly; not given: any. ``{}`` is a call without arguments, and no other.
        owner: whose calls.
        thread_id: in which thread; None: in all threads of the owner.
        expires_at: the moment after which it counts no more, with its offset from UTC; None: there is none.

    Raises:
        ValueError: neither an owner nor a thread, or a moment without its offset.
        EncodeError: arguments without a JSON form.
    """
    if owner is None and thread_id is None:
        raise ValueError("a rule of nobody for every thread would be one for everybody: give owner or thread_id")
    if expires_at is not None and expires_at.tzinfo is None:
        raise ValueError("expires_at needs its offset from UTC")
    if arguments is not UNSET:
        canonical(arguments)
    rule = StandingRule(
        rule_id=secrets.token_urlsafe(12),
        tool=tool,
        server=server,
        arguments=copy.deepcopy(arguments),
        owner=owner,
        thread_id=thread_id,
        made_at=policy.clock(),
        expires_at=expires_at,
    )
    book.add_rule(rule)
    return rule


def revoke(book: Book, rule_id: str, *, owner: str | None = None) -> None:
    """Let a standing rule count no more; calls that it has let run have run.

    Args:
        book: the records.
        rule_id: which one.
        owner: whose it is.

    Raises:
        LedgerError: the owner has no such rule.
    """
    if not any(rule.rule_id == rule_id for rule in book.rules(owner)):
        raise LedgerError(f"there is no standing rule {rule_id!r}")
    book.drop_rule(rule_id)


def rules(book: Book, policy: Policy, *, owner: str | None = None, thread_id: str | None = None) -> list[StandingRule]:
    """The standing rules that count now.

    Args:
        book: the records.
        policy: the policy.
        owner: whose.
        thread_id: only those that count in this thread; None: all.
    """
    moment = policy.clock()
    return [
        rule
        for rule in book.rules(owner)
        if (rule.expires_at is None or moment < rule.expires_at)
        and (thread_id is None or rule.thread_id in (None, thread_id))
    ]


def standing_rule(
    book: Book, policy: Policy, call: CallRequest, *, thread_id: str, owner: str | None = None
) -> StandingRule | None:
    """The rule that lets a call run without an ask; None: there is none.

    Args:
        book: the records.
        policy: the policy.
        call: a call that was made just now: an ask that is open stays one.
        thread_id: its thread.
        owner: whose call it is.
    """
    for rule in rules(book, policy, owner=owner, thread_id=thread_id):
        if rule.tool != call.name or rule.server != call.server:
            continue
        if rule.arguments is UNSET or canonical(rule.arguments) == canonical(call.arguments):
            return rule
    return None


def grant(book: Book, policy: Policy, record: AskRecord, call: CallRequest | None, mode: str) -> StandingRule | None:
    """Make the rule that the grant mode of an answer stands for; None: it grants this once.

    Args:
        book: the records.
        policy: the policy, which says what modes stand for.
        record: the ask.
        call: its call, as it was approved.
        mode: the grant mode.
    """
    meant = policy.grants.get(mode)
    if meant is None or call is None:
        return None
    # A principal that has no name has no other threads.
    everywhere = meant.threads == "owner" and record.owner is not None
    return allow(
        book,
        policy,
        tool=call.name,
        server=call.server,
        arguments=UNSET if meant.arguments == "any" else call.arguments,
        owner=record.owner,
        thread_id=None if everywhere else record.thread_id,
        expires_at=None if meant.lasts is None else policy.clock() + meant.lasts,
    )
