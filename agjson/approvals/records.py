"""What the ledger keeps: asks, the batches that they come in, and standing rules (spec §7, §13.1)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias

from agjson.approvals.budget import CallBudget
from agjson.approvals.states import AskState
from agjson.types import UNSET, AgHitlAnswer, AgPausedAsk, AgToolOutcome, JsonValue, UnsetType

__all__ = ["Ask", "AskRecord", "BatchRecord", "BatchState", "CallRequest", "StandingRule"]

BatchState: TypeAlias = Literal["open", "claimed", "done", "unknown", "given_up"]
"""Where a batch stands: it waits or is ready; may be running; its results are known, or not; it was left behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call that the model asked for, as the ledger keeps it: what runs is made of this alone.

    Attributes:
        call_id: its id in the stream.
        name: the tool.
        arguments: the arguments, as the model gave them.
        server: the server that the tool is of, as MCP names it; None: none.
        hosted: the provider runs it; nothing here does.
        index: its place among the calls that the model made, from 0, counted in its reply or in the whole conversation:
            only the order counts, in which calls run.
    """

    call_id: str
    name: str
    arguments: JsonValue
    server: str | None = None
    hosted: bool = False
    index: int = 0

    def copied(self) -> CallRequest:
        """The same call with arguments of its own: whoever runs it may change them, and nothing else changes."""
        return replace(self, arguments=copy.deepcopy(self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An ask that is about to be put to a person.

    Attributes:
        ask: the ask, without a token.
        call: the call that it gates; None: it gates none.
    """

    ask: AgPausedAsk
    call: CallRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRecord:
    """An ask as it is kept. All up to `issued_at` is fixed when it is issued, and bound by its token.

    Attributes:
        thread_id: the thread.
        turn_id: the turn that asked, which also names the batch.
        ask: the ask, without its token.
        call: the call that it gates.
        owner: who may answer, as the host names principals.
        edit_schema: the JSON Schema of edited arguments; unset: the tool allows no edits.
        place: its position in the batch, from 0.
        key_id: the key that made the token; None: it has none.
        issued_at: when it was issued.
        token_hash: SHA-256 of the token; None: it has none.
        expires_at: the moment after which no answer counts; None: there is none.
        state: where it stands.
        answer: the answer, without the token.
        arguments: the edited arguments; unset: they are those of the call.
        met_by: the turn of the start that answered it.
        outcome: how its call ended.
    """

    thread_id: str
    turn_id: str
    ask: AgPausedAsk
    call: CallRequest | None
    owner: str | None
    edit_schema: JsonValue | UnsetType
    place: int
    key_id: str | None
    issued_at: datetime
    token_hash: bytes | None
    expires_at: datetime | None
    state: AskState = "open"
    answer: AgHitlAnswer | None = None
    arguments: JsonValue | UnsetType = UNSET
    met_by: str | None = None
    outcome: AgToolOutcome | None = None

    @property
    def ask_id(self) -> str:
        """The id of the ask."""
        return self.ask.ask_id

    def state_at(self, now: datetime) -> AskState:
        """Its state at a moment: an open ask whose time is over is expired, noted or not.

        Args:
            now: the moment.
        """
        if self.state == "open" and self.expires_at is not None and now >= self.expires_at:
            return "expired"
        return self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """The asks of one turn, and the safe calls that wait for their decision.

    Attributes:
        thread_id: the thread.
        turn_id: the turn, which names the batch.
        held: calls that need no approval, and run with the decision on the others.
        one_at_a_time: only the first open ask is shown.
        budget: what was left to be called when it was issued; None: there is no limit.
        state: where it stands.
        claim_id: names the claim.
        claimed_by: the turn that goes on from it.
        holder: the process that claimed it (`LedgerStore.holder`).
        outcomes: how held calls ended, by call id.
    """

    thread_id: str
    turn_id: str
    held: tuple[CallRequest, ...] = ()
    one_at_a_time: bool = False
    budget: CallBudget | None = None
    state: BatchState = "open"
    claim_id: str | None = None
    claimed_by: str | None = None
    holder: str | None = None
    outcomes: Mapping[str, AgToolOutcome] = field(default_factory=dict[str, AgToolOutcome])


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRule:
    """A decision for later calls: they run without an ask.

    Attributes:
        rule_id: its id.
        tool: the tool.
        server: the server of the tool; None: only tools of no server. Never any server.
        arguments: the exact arguments; unset: any. ``{}`` is a call without arguments, and no other.
        owner: whose calls.
        thread_id: in which thread; None: in all threads of the owner.
        made_at: when it was made; calls before that are not covered.
        expires_at: the moment after which it counts no more; None: there is none.
    """

    rule_id: str
    tool: str
    server: str | None
    arguments: JsonValue | UnsetType
    owner: str | None
    thread_id: str | None
    made_at: datetime
    expires_at: datetime | None
