"""A small host for the tests of this folder: it asks, takes answers, and runs tools that count how often they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from agjson.approvals import (
    Ask,
    CallBudget,
    CallRequest,
    Claim,
    Keys,
    Ledger,
    LedgerStore,
    Policy,
    Progress,
)
from agjson.types import AgHitlAnswer, AgPausedAsk

T = TypeVar("T")

OLD, NEW = b"o" * 32, b"n" * 32
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
EDITS = {
    "type": "object",
    "properties": {"to": {"type": "string", "maxLength": 20}},
    "required": ["to"],
    "additionalProperties": False,
}


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def policy(clock: Clock | None = None, **fields: Any) -> Policy:
    return Policy(**{"keys": Keys({"k1": OLD}), "clock": clock or Clock(), **fields})


def call(id: str = "c1", name: str = "send_mail", arguments: Any = None, **fields: Any) -> CallRequest:
    return CallRequest(call_id=id, name=name, arguments={"to": "ann"} if arguments is None else arguments, **fields)


def gate(request: CallRequest, ask_id: str | None = None, **fields: Any) -> Ask:
    """An approval of a call."""
    ask = AgPausedAsk(
        **{"ask_id": ask_id or f"ask-{request.call_id}", "kind": "approval", "tool_call_id": request.call_id, **fields}
    )
    return Ask(ask=ask, call=request)


def question(ask_id: str, kind: Any = "text", **fields: Any) -> Ask:
    return Ask(ask=AgPausedAsk(ask_id=ask_id, kind=kind, **fields))


def yes(ask: AgPausedAsk, **fields: Any) -> AgHitlAnswer:
    """What a proper client says to an ask: yes."""
    return AgHitlAnswer(
        **{
            "ask_id": ask.ask_id,
            "status": "resolved",
            "token": ask.token,
            "request_state": ask.request_state,
            **fields,
        }
    )


def no(ask: AgPausedAsk, **fields: Any) -> AgHitlAnswer:
    return yes(ask, status="declined", **fields)


def dismiss(ask: AgPausedAsk, **fields: Any) -> AgHitlAnswer:
    return yes(ask, status="cancelled", **fields)


class Desk:
    """A host. What its tools are given stands in `ran`."""

    def __init__(self, store: LedgerStore, clock: Clock | None = None, **fields: Any) -> None:
        self.clock = clock or Clock()
        self.ledger = Ledger(store, policy(self.clock, **fields))
        self.ran: list[tuple[str, Any]] = []
        self.claims: list[Claim] = []

    def ask(
        self,
        *asks: Ask,
        thread: str = "th",
        turn: str = "t1",
        owner: str | None = "ann",
        held: Sequence[CallRequest] = (),
        one_at_a_time: bool = False,
        budget: CallBudget | None = None,
    ) -> list[AgPausedAsk]:
        return run(
            self.ledger.issue(
                thread_id=thread,
                turn_id=turn,
                asks=asks,
                owner=owner,
                held=held,
                one_at_a_time=one_at_a_time,
                budget=budget,
            )
        )

    def resume(self, *answers: AgHitlAnswer, thread: str = "th", owner: str | None = "ann") -> Progress:
        """Take answers, and run what they allow as soon as a batch is complete."""
        progress = run(self.ledger.answer(thread, answers, owner=owner))
        for turn in progress.ready:
            self.go_on(thread, turn)
        return progress

    def go_on(
        self, thread: str, turn: str, by: str = "next", tool: Callable[[CallRequest], object] | None = None
    ) -> Claim:
        """Claim a batch, and run its calls."""
        claim = run(self.ledger.claim(thread, turn, claimed_by=by))
        self.claims.append(claim)
        for request in claim.calls:
            self.ran.append((request.name, request.arguments))
            if tool is not None:
                tool(request)
            run(self.ledger.record(claim, request.call_id, "ok"))
        run(self.ledger.close(claim))
        return claim

    def states(self, thread: str = "th") -> dict[str, str]:
        return {record.ask_id: record.state for record in run(self.ledger.records(thread))}

    def everything(self, *threads: str) -> Any:
        """All that the ledger knows of threads."""
        return [(run(self.ledger.records(thread)), run(self.ledger.progress(thread))) for thread in threads or ("th",)]
