"""What a host decides about its asks once and for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from agjson._arguments import check_kind
from agjson.approvals.keys import Keys
from agjson.types import AgPausedAsk, JsonValue

__all__ = ["Grant", "Policy", "needs_token", "now"]


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The standing rule that a grant mode stands for (draft.2).

    Attributes:
        arguments: ``any`` of the tool, or exactly those that were approved.
        threads: only in this thread, or in all threads of its ``owner``.
        lasts: how long; None: until it is revoked.
    """

    arguments: Literal["any", "exact"]
    threads: Literal["this", "owner"] = "this"
    lasts: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How asks are issued and answers are taken.

    Attributes:
        keys: make and check the tokens.
        lasts: how long an ask that names no moment of its own may be answered; None: for ever.
        tokens: ``gated``: the asks that `needs_token` names have a token; the others can be met by words. ``all``:
            every ask has one.
        editable: the JSON Schema of edited arguments of each tool that allows edits.
        grants: what a grant mode stands for, by its id; one that is not here grants this once.
        clock: gives the present moment, with its offset from UTC.

    Raises:
        TypeError: keys that are none, or `editable` or `grants` without what each name stands for.
    """

    keys: Keys
    lasts: timedelta | None = None
    tokens: Literal["gated", "all"] = "gated"
    editable: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    grants: Mapping[str, Grant] = field(default_factory=dict[str, Grant])
    clock: Callable[[], datetime] = now

    def __post_init__(self) -> None:
        check_kind("keys", self.keys, Keys, hint='Keys({"2026-01": secret})')
        check_kind("editable", self.editable, Mapping, hint="{tool: the JSON Schema of its arguments}")
        check_kind("grants", self.grants, Mapping, hint="{mode: Grant(...)}")

    def wants_token(self, ask: AgPausedAsk) -> bool:
        """Whether an ask has a token.

        Args:
            ask: the ask.
        """
        return self.tokens == "all" or needs_token(ask)


def needs_token(ask: AgPausedAsk) -> bool:
    """Whether an ask has a token under every policy: an approval, an authorization, a consent, one with grant modes.

    So has one that gates a call.

    Args:
        ask: the ask.
    """
    return ask.kind in ("approval", "auth", "url") or ask.tool_call_id is not None or bool(ask.grant_modes)
