"""The ledger: every ask from its emission to what came of it (spec §7, §11.4, §13.1, §13.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar

from agjson._arguments import check_kind
from agjson.approvals import answering, claiming, issuing, standing
from agjson.approvals.answering import Progress
from agjson.approvals.book import Book, LedgerStore
from agjson.approvals.budget import CallBudget
from agjson.approvals.claiming import Claim, Recovered
from agjson.approvals.planning import Plan, plan
from agjson.approvals.policy import Policy
from agjson.approvals.records import Ask, AskRecord, BatchRecord, CallRequest, StandingRule
from agjson.types import UNSET, AgHitlAnswer, AgPausedAsk, AgToolOutcome, JsonValue, UnsetType

__all__ = ["Ledger"]

T = TypeVar("T")


class Ledger:
    """Asks, answers and what they allow, above every framework.

    Every method is one transaction of the store. Functions of the same name in `issuing`, `answering`, `claiming` and
    `standing` take the records of a transaction (`Book`) that is open already, and do the same inside it.

    Args:
        store: where it is kept.
        policy: how asks are issued and answers are taken.

    Attributes:
        store: the store.
        policy: the policy.

    Raises:
        TypeError: a store or a policy that is none.
    """

    def __init__(self, store: LedgerStore, policy: Policy) -> None:
        check_kind("store", store, LedgerStore, hint="MemoryLedgerStore(), or SQLiteLedgerStore(threads)")
        check_kind("policy", policy, Policy, hint="Policy(keys=Keys({...}))")
        self.store = store
        self.policy = policy

    # Asks

    async def plan(
        self,
        calls: Sequence[CallRequest],
        is_gated: Callable[[CallRequest], bool],
        *,
        thread_id: str,
        owner: str | None = None,
    ) -> Plan:
        """Sort the calls of a model's answer: those that run, those that need an ask, those that wait with them.

        Args:
            calls: the calls, in the order in which the model made them.
            is_gated: whether a call needs approval by its nature.
            thread_id: the thread, whose standing rules count.
            owner: whose calls they are.
        """

        def rule_of(book: Book, call: CallRequest) -> StandingRule | None:
            return standing.standing_rule(book, self.policy, call, thread_id=thread_id, owner=owner)

        return await self.store.read(lambda book: plan(calls, is_gated, lambda call: rule_of(book, call)))

    async def issue(
        self,
        *,
        thread_id: str,
        turn_id: str,
        asks: Sequence[Ask],
        owner: str | None = None,
        held: Sequence[CallRequest] = (),
        one_at_a_time: bool = False,
        budget: CallBudget | None = None,
    ) -> list[AgPausedAsk]:
        """Keep asks before they are emitted (`issuing.issue`, which says what is raised).

        Args:
            thread_id: the thread.
            turn_id: the turn that asks; its asks are one batch.
            asks: the asks.
            owner: who may answer.
            held: calls of the batch that need no approval; they run with the decision.
            one_at_a_time: show only the first open ask.
            budget: what is left to be called.

        Returns:
            The asks that are to be emitted now, with their tokens.
        """
        return await self._do(
            lambda book: issuing.issue(
                book,
                self.policy,
                thread_id=thread_id,
                turn_id=turn_id,
                asks=asks,
                owner=owner,
                held=held,
                one_at_a_time=one_at_a_time,
                budget=budget,
            )
        )

    async def progress(self, thread_id: str, *, owner: str | None = None) -> Progress:
        """What can be answered now, with tokens, and what is ready to be claimed; also after a restart.

        Args:
            thread_id: the thread.
            owner: who wants to know; the asks of others are not there.
        """
        return await self.store.read(lambda book: answering.progress(book, self.policy, thread_id, owner))

    async def give_up(self, thread_id: str, turn_id: str | None = None) -> list[AskRecord]:
        """Leave the asks of a thread behind; no answer to them counts any more.

        Args:
            thread_id: the thread.
            turn_id: only the batch of this turn.
        """
        return await self._do(lambda book: issuing.give_up(book, thread_id, turn_id))

    async def expire(self, thread_id: str) -> list[AskRecord]:
        """Note which asks of a thread have expired.

        Args:
            thread_id: the thread.
        """
        return await self._do(lambda book: issuing.expire(book, self.policy, thread_id))

    async def records(self, thread_id: str, turn_id: str | None = None) -> list[AskRecord]:
        """The asks of a thread in every state, in order.

        Args:
            thread_id: the thread.
            turn_id: only those of this turn.
        """
        return await self.store.read(lambda book: book.asks(thread_id, turn_id))

    async def batch(self, thread_id: str, turn_id: str) -> BatchRecord | None:
        """The batch of a turn; None: it has asked nothing.

        Args:
            thread_id: the thread.
            turn_id: the turn.
        """
        return await self.store.read(lambda book: book.batch(thread_id, turn_id))

    # Answers

    async def answer(
        self,
        thread_id: str,
        answers: Sequence[AgHitlAnswer],
        *,
        owner: str | None = None,
        path: str = "$.answers",
    ) -> Progress:
        """Check answers and store them, all or none (`answering.answer`).

        Args:
            thread_id: the thread that they were sent to.
            answers: the answers.
            owner: who sent them, as the host has authenticated it.
            path: where they are in the input.

        Raises:
            AnswerError: one of them is not taken; its class says why.
        """
        return await self._do(
            lambda book: answering.answer(book, self.policy, thread_id, answers, owner=owner, path=path)
        )

    async def meet(
        self, thread_id: str, ask_ids: Sequence[str], text: str, *, turn_id: str, owner: str | None = None
    ) -> Progress:
        """Store the words of a start as the reply to the asks that it names (`answering.meet`).

        Args:
            thread_id: the thread.
            ask_ids: the asks.
            text: the words.
            turn_id: the turn of the start.
            owner: who sent it.

        Raises:
            AnswerError: an ask takes no words, or not these.
        """
        return await self._do(
            lambda book: answering.meet(book, self.policy, thread_id, ask_ids, text, turn_id=turn_id, owner=owner)
        )

    # Decisions

    async def claim(self, thread_id: str, turn_id: str, *, claimed_by: str) -> Claim:
        """Claim a batch whose asks are all decided (`claiming.claim`); it is committed when this returns.

        Args:
            thread_id: the thread.
            turn_id: the turn that asked.
            claimed_by: the turn that goes on.

        Raises:
            LedgerError: nothing is to be claimed; whoever asks must run nothing.
            AnswerError: what is kept cannot be proven to be what was asked.
        """
        holder = self.store.holder()
        return await self._do(
            lambda book: claiming.claim(book, self.policy, thread_id, turn_id, claimed_by=claimed_by, holder=holder)
        )

    async def record(self, claim: Claim, call_id: str, outcome: AgToolOutcome) -> None:
        """Note how a call of a claim ended (`claiming.record_outcome`).

        Args:
            claim: the claim.
            call_id: the call.
            outcome: how it ended.

        Raises:
            ClaimLostError: the claim is held no more.
            LedgerError: it is no call of the claim, or its outcome is known already.
        """
        await self._do(lambda book: claiming.record_outcome(book, claim, call_id, outcome))

    async def close(self, claim: Claim) -> list[CallRequest]:
        """End a claim; returns the calls whose outcome is unknown (`claiming.close`).

        Args:
            claim: the claim.

        Raises:
            ClaimLostError: the claim is held no more.
        """
        return await self._do(lambda book: claiming.close(book, claim))

    async def recover(
        self, thread_id: str | None = None, *, holding: bool = False, pending: Collection[str] | None = None
    ) -> Recovered:
        """End the claims of processes that are gone (`claiming.recover`).

        Args:
            thread_id: only those of this thread.
            holding: the caller has the sole right to run the thread, so every claim of it is lost.
            pending: the asks that the thread waits for, as it is stored.

        Raises:
            ValueError: `holding` or `pending` without a thread.
        """
        return await self._do(
            lambda book: claiming.recover(
                book, self.store.has_ended, thread_id=thread_id, holding=holding, pending=pending
            )
        )

    # Standing rules

    async def allow(
        self,
        *,
        tool: str,
        server: str | None = None,
        arguments: JsonValue | UnsetType = UNSET,
        owner: str | None = None,
        thread_id: str | None = None,
        expires_at: datetime | None = None,
    ) -> StandingRule:
        """Let later calls of a tool run without an ask (`standing.allow`).

        Args:
            tool: the tool.
            server: the server of the tool; None: a tool of no server.
            arguments: these arguments exactly; not given: any.
            owner: whose calls.
            thread_id: in which thread; None: in all threads of the owner.
            expires_at: the moment after which it counts no more.

        Raises:
            ValueError: neither an owner nor a thread, or a moment without its offset.
        """
        return await self._do(
            lambda book: standing.allow(
                book,
                self.policy,
                tool=tool,
                server=server,
                arguments=arguments,
                owner=owner,
                thread_id=thread_id,
                expires_at=expires_at,
            )
        )

    async def revoke(self, rule_id: str, *, owner: str | None = None) -> None:
        """Let a standing rule count no more.

        Args:
            rule_id: which one.
            owner: whose it is.

        Raises:
            LedgerError: the owner has no such rule.
        """
        await self._do(lambda book: standing.revoke(book, rule_id, owner=owner))

    async def rules(self, *, owner: str | None = None, thread_id: str | None = None) -> list[StandingRule]:
        """The standing rules that count now.

        Args:
            owner: whose.
            thread_id: only those that count in this thread.
        """
        return await self.store.read(lambda book: standing.rules(book, self.policy, owner=owner, thread_id=thread_id))

    async def _do(self, work: Callable[[Book], T]) -> T:
        return await self.store.transact(work)
