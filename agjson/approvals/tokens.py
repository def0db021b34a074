"""Tokens: what an answer must echo to prove that it is for this ask and no other (spec §7, §13.1).

A token is an HMAC-SHA256 over everything that was asked. It is kept as a hash alone, and made again from the kept ask
where a client needs it anew.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from agjson.approvals.canonical import canonical
from agjson.approvals.keys import Keys
from agjson.approvals.records import AskRecord, CallRequest
from agjson.types import UNSET
from agjson.wire import to_dict

__all__ = ["make_token", "same_token", "token_hash"]

_PREFIX = "agt1"
_USE = "approval token"


def make_token(record: AskRecord, keys: Keys) -> str:
    """The token of an ask, the same each time: ``agt1.<key>.<HMAC>``.

    It binds thread, turn, ask with all its members, call with its arguments, owner, edits that are allowed, and the
    moment of issue.

    Args:
        record: the ask; its state does not matter.
        keys: the keys.

    Raises:
        KeyError: its key is not among them.
        ValueError: it has no key.
    """
    if record.key_id is None:
        raise ValueError(f"ask {record.ask_id!r} has no token")
    mac = hmac.digest(keys.derived(record.key_id, _USE), canonical(_bound(record)), hashlib.sha256)
    return f"{_PREFIX}.{record.key_id}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def token_hash(token: str) -> bytes:
    """SHA-256 of a token, as it is kept.

    Args:
        token: the token; may be anything that a client sent.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def same_token(given: str, expected: str) -> bool:
    """Whether two tokens are the same, in a time that tells nothing about where they differ.

    Args:
        given: what a client sent.
        expected: the token.
    """
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def _bound(record: AskRecord) -> dict[str, Any]:
    return {
        "thread": record.thread_id,
        "turn": record.turn_id,
        "ask": to_dict(record.ask),
        "call": None if record.call is None else _call(record.call),
        "owner": record.owner,
        "edits": [] if record.edit_schema is UNSET else [record.edit_schema],
        "place": record.place,
        "issued": record.issued_at.isoformat(),
    }


def _call(call: CallRequest) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
        "server": call.server,
        "hosted": call.hosted,
        "index": call.index,
    }
