"""What one run hands to the adapter (spec §3, §8.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Required

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
        request_state: the name under which `keep` keeps; asks may carry it.
        continuation: what the run before has kept; None: nothing. On a start that answers nothing it is to be let go
            of.
        native: what `Agent._prepare` returned.
    """

    __slots__ = (
        "_kept",
        "answers",
        "asks",
        "capabilities",
        "continuation",
        "input",
        "messages",
        "native",
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
        self.request_state = request_state
        self.continuation: Any = None
        self.native: Any = None
        self._kept: list[Any] = []

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
