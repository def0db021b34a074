"""What one run hands to the adapter (spec §3, §8.0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Required

from agjson.agents.private_loop import PrivateLoop, run_through
from agjson.agents.thread import Thread
from agjson.emitter import EmitterSettings
from agjson.types import (
    AgClientCapabilities,
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgRunConfig,
    AgToolResult,
)

if TYPE_CHECKING:
    from agjson.agents.asking import Asking
    from agjson.agents.intake import OnPaused
    from agjson.approvals.claiming import Decision
    from agjson.approvals.planning import Plan
    from agjson.approvals.records import CallRequest

__all__ = ["Invocation", "NormalizerSettings"]


class NormalizerSettings(EmitterSettings):
    """Every argument with which a driver makes a `Normalizer`, as keywords: turn, thread, and the settings."""

    turn_id: Required[str]
    """The turn of the run."""

    thread_id: Required[str]
    """The conversation."""


class Invocation:
    """One call of the framework: what goes in, and what is to be kept for the next one.

    Attributes:
        input: the input. A start has its new messages alone; a resume has every answer of the batch, those of earlier
            inputs included.
        thread: the thread before this input.
        messages: what the input adds to the conversation, as it is stored: messages, results of client tools.
        turn_id: the turn of this run, which differs from the input's where the thread had that one already.
        run: how to run: the settings of this start, or those of the last one.
        capabilities: what the client can do, as it said last.
        asks: the asks of the batch that this run goes on with.
        answers: their answers.
        results: the results of the batch's client calls, those of earlier inputs included.
        decisions: what was decided about the asks, each with the call as it is to be run: made of what was asked and
            stored, and never of what the client sent along.
        held: the calls of the batch that need no approval and run with its decision.
        on_paused: what a start may do to a paused thread, as it counts for this run.
        request_state: the name under which `keep` keeps; asks may carry it.
        continuation: what the run before has kept; None: nothing. On a start that answers nothing it is to be let go
            of.
        native: what `Agent._prepare` returned.
    """

    __slots__ = (
        "_asking",
        "_decided",
        "_kept",
        "answers",
        "asks",
        "capabilities",
        "continuation",
        "input",
        "messages",
        "native",
        "on_paused",
        "request_state",
        "results",
        "run",
        "thread",
        "turn_id",
    )

    def __init__(
        self,
        *,
        input: AgInput,
        thread: Thread,
        turn_id: str,
        run: AgRunConfig | None,
        capabilities: AgClientCapabilities | None,
        asks: tuple[AgPausedAsk, ...],
        answers: tuple[AgHitlAnswer, ...],
        results: tuple[AgToolResult, ...],
        request_state: str,
        decided: Callable[[], tuple[tuple[Decision, ...], tuple[CallRequest, ...]]],
        asking: Asking | None = None,
        on_paused: OnPaused = "refuse",
    ) -> None:
        self.input = input
        self.thread = thread
        self.messages: Sequence[AgMessage] = ()
        self.turn_id = turn_id
        self.run = run
        self.capabilities = capabilities
        self.asks = asks
        self.answers = answers
        self.results = results
        self.on_paused: OnPaused = on_paused
        self.request_state = request_state
        self.continuation: Any = None
        self.native: Any = None
        self._kept: list[Any] = []
        self._decided = decided
        self._asking = asking

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided about the asks.

        Raises:
            AnswerError: an answer has not the form that its ask wants.
        """
        return self._decided()[0]

    @property
    def held(self) -> tuple[CallRequest, ...]:
        """The calls that need no approval and run with the decision."""
        return self._decided()[1]

    async def plan(self, calls: Sequence[CallRequest], is_gated: Callable[[CallRequest], bool]) -> Plan:
        """Sort the calls of a model's answer: those that run, those that need an ask, those that wait with them.

        Args:
            calls: the calls, in the order in which the model made them.
            is_gated: whether a call needs approval by its nature; a standing rule may give it.
        """
        if self._asking is not None:
            return await self._asking.plan(calls, is_gated)
        from agjson.approvals import plan

        return plan(calls, is_gated)

    def plan_sync(self, calls: Sequence[CallRequest], is_gated: Callable[[CallRequest], bool]) -> Plan:
        """As `plan`, for a framework that is read by a plain iterator.

        Args:
            calls: as for `plan`.
            is_gated: as for `plan`.
        """
        if self._asking is None or not self._asking.suspends:
            return run_through(self.plan(calls, is_gated))
        loop = PrivateLoop()
        try:
            return loop.run(self.plan(calls, is_gated))
        finally:
            loop.close(1.0)

    @property
    def history(self) -> list[AgMessage]:
        """The messages of the thread before this input, in order, without those of nested turns."""
        nested = self.thread.nested
        messages = self.thread.result.messages
        return [message for message in messages if message.turn_id not in nested] if nested else list(messages)

    def keep(self, value: Any) -> str:
        """Keep what the framework needs to continue, if the turn ends by a pause or by calls of client tools.

        Args:
            value: any object that the agent's `Continuations` can hold; a later call replaces it.

        Returns:
            Its name, `request_state`.
        """
        self._kept = [value]
        return self.request_state

    @property
    def kept(self) -> list[Any]:
        """What was kept: nothing, or one value."""
        return self._kept
