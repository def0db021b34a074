"""What is kept of a thread between its runs (spec §1, §5; the input kinds of §3 that carry no history)."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from agjson.emitter import NATIVE_CALL_ID, EmitterSettings
from agjson.known_ids import KnownIds
from agjson.types import (
    AgClientCapabilities,
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgRunConfig,
    AgToolResult,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["Pending", "Thread", "calls_of", "is_final"]


def _nothing() -> AgReduceResult:
    return AgReduceResult(messages=[], artifacts=[], memory=[], turns=[])


def calls_of(messages: Iterable[AgMessage]) -> dict[str, ToolCallBlock]:
    """The calls in a conversation by their ids, in order.

    Args:
        messages: the conversation.
    """
    return {
        block.tool_call_id: block
        for message in messages
        for block in message.content
        if isinstance(block, ToolCallBlock)
    }


def is_final(result: ToolResultBlock) -> bool:
    """Whether a result is the last that its call has: neither a part of one, nor a question that it waits with.

    Args:
        result: the result.
    """
    return not result.preliminary and result.outcome != "input_required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a thread waits for, and what of it has come: a framework gets its answers and results all at once.

    Attributes:
        calls: the tool calls that the client has to run, by the ids of the stream.
        results: the results that have come, one for each call at most.
        asks: the asks that people have to answer.
        answers: the answers that have come, one for each ask at most.
        request_state: names what the framework needs to continue (`Continuations`); None: nothing.
    """

    calls: tuple[str, ...] = ()
    results: tuple[AgToolResult, ...] = ()
    asks: tuple[AgPausedAsk, ...] = ()
    answers: tuple[AgHitlAnswer, ...] = ()
    request_state: str | None = None

    @property
    def open_calls(self) -> list[str]:
        """The calls without a result, in order."""
        have = {result.tool_call_id for result in self.results}
        return [call for call in self.calls if call not in have]

    @property
    def open_asks(self) -> list[AgPausedAsk]:
        """The asks without an answer, in order."""
        have = {answer.ask_id for answer in self.answers}
        return [ask for ask in self.asks if ask.ask_id not in have]

    @property
    def is_complete(self) -> bool:
        """Whether the run may go on: nothing is missing."""
        return not self.open_calls and not self.open_asks


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A conversation between two runs. Treat it as read-only: its parts are shared with earlier and later ones.

    Attributes:
        thread_id: its id.
        result: what all its streams together fold to.
        ids: every id that a stream of it has used, also of blocks that the fold keeps without their ids. New ones are
            chosen apart from these (spec §5.0 INV-BLOCK).
        nested: the turns that subagents ran inside other turns; their messages are not part of the main conversation.
        pending: what it waits for.
        started_by: the turn of the last start, which answers and results go on with.
        run: the run settings of the last start, which resumes and tool results go on with; without its push
            notification.
        capabilities: what the client can do, as it said last.
        revision: how many runs it has had.
        owner: who it belongs to, as the host's authorization names them; None: nobody in particular. The driver hands
            it on unread.
    """

    thread_id: str
    result: AgReduceResult = field(default_factory=_nothing)
    ids: KnownIds = field(default_factory=KnownIds)
    nested: Set[str] = frozenset()
    pending: Pending = field(default_factory=Pending)
    started_by: str | None = None
    run: AgRunConfig | None = None
    capabilities: AgClientCapabilities | None = None
    revision: int = 0
    owner: str | None = None

    @property
    def messages(self) -> list[AgMessage]:
        """The conversation so far; not to be changed."""
        return list(self.result.messages)

    def settings(self) -> EmitterSettings:
        """What the emitter of the next run has to know of the thread."""
        result = self.result
        messages, calls = set[str](), set[str]()
        # The calls that the thread knows by another id than their framework, by the native one; the latest counts.
        renamed: dict[str, str] = {}
        for message in result.messages:
            messages.add(message.id)
            for block in message.content:
                if isinstance(block, ToolCallBlock):
                    calls.add(block.tool_call_id)
                    native = block.provider_metadata and block.provider_metadata.get(NATIVE_CALL_ID)
                    if isinstance(native, str):
                        renamed[native] = block.tool_call_id
        artifacts = {artifact.artifact_id for artifact in result.artifacts}
        return {
            "known_ids": self.ids.narrowed(messages=messages, calls=calls, artifacts=artifacts),
            "call_ids": renamed,
            "open_asks": frozenset(ask.ask_id for ask in self.pending.open_asks),
            "state": result.state,
            "memory": result.memory,
        }

    @classmethod
    def of_result(cls, thread_id: str, result: AgReduceResult) -> Thread:
        """A thread that goes on from a conversation of another source.

        Ids of its text and reasoning blocks are not in a fold. Where the same framework wrote them and would use them
        again, keep the `Thread` rather than the fold.

        Args:
            thread_id: the id of the thread.
            result: the fold.
        """
        nested = frozenset(turn.turn_id for turn in result.turns if turn.parent_turn_id is not None)
        return cls(thread_id=thread_id, result=result, ids=KnownIds.of(result), nested=nested)
