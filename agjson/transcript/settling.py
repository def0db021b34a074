"""Results and answers brought to the calls that they are for (loop contract, "Approval request and resume"; spec §7).

Nothing is run here. What comes in is matched by occurrence, not by place in a list, and what matches no open call
changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from agjson.transcript.asks import Controls, SpentCode, controls_of
from agjson.transcript.occurrence import OCCURRENCE, Occurrence, scan
from agjson.types import (
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    AgToolResult,
    AgTurnRecord,
    TextBlock,
    ToolResultBlock,
)

__all__ = [
    "DENIED",
    "DISMISSED",
    "Allowed",
    "Settled",
    "Unmatched",
    "UnmatchedCode",
    "free_id",
    "named_result",
    "refusal",
    "result_block",
    "settle",
]

DENIED = "The call was denied."
"""What a model reads of a call that a person declined, before the reason that was given."""

DISMISSED = "The request was dismissed."
"""What a model reads of a call whose question a person cancelled, before the reason that was given."""

UnmatchedCode: TypeAlias = (
    SpentCode | Literal["unknown_call", "settled_call", "hosted_call", "asked_call", "denied_call", "partial_result"]
)
"""Why a result or an answer was not taken; ``docs/transcript.md`` has a row for each."""

_SHARED = tuple(name for name in ToolResultBlock.__struct_fields__ if name in frozenset(AgToolResult.__struct_fields__))


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A call that people have allowed and that has no result yet: the host is to run it, once.

    Attributes:
        call: the call, as it stands in the history. Changed arguments in a reply count only where the host allows them.
        answers: the answers, one for each ask.
        asks: the asks.
    """

    call: Occurrence
    answers: tuple[AgHitlAnswer, ...]
    asks: tuple[AgPausedAsk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """A result or an answer that was not taken, and changed nothing.

    Attributes:
        code: why.
        index: its position in what was given, from 0.
        id: the id that it names: of a call, or of an ask.
    """

    code: UnmatchedCode
    index: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A history with the results that have come.

    Attributes:
        messages: the history with the new messages behind it.
        added: the new messages, each with one result, in the order of the calls.
        allowed: the calls that people have allowed now and that have no result yet.
        unmatched: what was not taken.
    """

    messages: list[AgMessage]
    added: tuple[AgMessage, ...]
    allowed: tuple[Allowed, ...]
    unmatched: tuple[Unmatched, ...]


def settle(
    messages: Sequence[AgMessage],
    results: Iterable[ToolResultBlock | AgToolResult] = (),
    answers: Iterable[AgHitlAnswer] = (),
    *,
    turns: Sequence[AgTurnRecord] = (),
    recorded: Iterable[AgHitlAnswer] = (),
    turn_id: str | None = None,
) -> Settled:
    """Bring results and answers to the calls that wait for them (loop contract, "Approval request and resume").

    A result goes to the earliest open call of its id, or to the one call whose key it names. A declined or cancelled
    ask gives its call one result of outcome ``denied``, under the id of the call. A call that people are asked about
    takes no result before they have allowed it. A placeholder stays where it is, and counts no more.

    Args:
        messages: the history; it is only read.
        results: results, in any order; several of one id are taken in theirs.
        answers: the answers that have come now.
        turns: the turn records of the thread, with its asks.
        recorded: answers of earlier inputs.
        turn_id: the turn that the new messages belong to.
    """
    calls = scan(messages).occurrences
    known = controls_of(calls, messages, turns, answers, recorded)
    unmatched = [Unmatched(code=each.code, index=each.index, id=each.answer.ask_id) for each in known.spent]
    said = {answer.ask_id: answer for answer in known.answers}
    denied = _denied(known)
    matching = _Matching(calls, known, denied)
    for index, result in enumerate(results):
        block = result_block(result)
        code = matching.take(block)
        if code is not None:
            unmatched.append(Unmatched(code=code, index=index, id=block.tool_call_id))
    used = {message.id for message in messages}
    added: list[AgMessage] = []
    allowed: list[Allowed] = []
    for call in calls:
        landed = matching.taken.get(call.key)
        if landed is None and call.key in denied:
            landed = matching.named(denied[call.key], call)
        if landed is not None:
            role_id = f"{call.key}:{'pending' if landed.outcome == 'input_required' else 'result'}"
            added.append(
                AgMessage(
                    id=free_id(role_id, used),
                    role="tool",
                    content=[landed],
                    turn_id=turn_id,
                    thread_id=messages[call.place.message].thread_id,
                )
            )
        elif call.key in known.answered:
            asks = tuple(known.by_call[call.key])
            allowed.append(Allowed(call=call, asks=asks, answers=tuple(said[ask.ask_id] for ask in asks)))
    return Settled(messages=[*messages, *added], added=tuple(added), allowed=tuple(allowed), unmatched=tuple(unmatched))


def free_id(wanted: str, used: set[str]) -> str:
    """An id that is not used, and is from now on.

    Args:
        wanted: the id to begin with; ``#2`` and so on is added where it is used.
        used: the used ids, to which it is added.
    """
    id, count = wanted, 2
    while id in used:
        id, count = f"{wanted}#{count}", count + 1
    used.add(id)
    return id


def _denied(known: Controls) -> dict[str, ToolResultBlock]:
    """The results of the calls that people did not allow, by key; the first refusal of several asks counts."""
    denied: dict[str, ToolResultBlock] = {}
    for answer in known.answers:
        call = known.calls.get(answer.ask_id)
        if call is None or call.hosted or answer.status == "resolved" or call.key in denied:
            continue
        denied[call.key] = refusal(call.call_id, answer)
    return denied


def refusal(call_id: str, answer: AgHitlAnswer) -> ToolResultBlock:
    """The result of a call that a person did not allow, or did not want to be asked about (spec §2.2).

    Args:
        call_id: the id of the call.
        answer: the answer, declined or cancelled; its reason reaches the model.
    """
    words = DISMISSED if answer.status == "cancelled" else DENIED
    text = f"{words} {answer.reason}" if answer.reason and answer.reason.strip() else words
    return ToolResultBlock(tool_call_id=call_id, outcome="denied", content=[TextBlock(text=text)])


class _Matching:
    """Hands results to calls."""

    def __init__(self, calls: Sequence[Occurrence], known: Controls, denied: Mapping[str, ToolResultBlock]) -> None:
        self._by_key = {call.key: call for call in calls}
        # Why a call takes no result, by key; a call without a reason takes one.
        self._why: dict[str, UnmatchedCode] = {}
        self._takers: dict[str, deque[Occurrence]] = {}
        self._asked: dict[str, deque[Occurrence]] = {}
        self._of_id: dict[str, UnmatchedCode] = {}
        self._open: dict[str, int] = {}
        for call in calls:
            why = self._reason(call, known, denied)
            if not call.completed:
                self._open[call.call_id] = self._open.get(call.call_id, 0) + 1
            if why is None:
                self._takers.setdefault(call.call_id, deque()).append(call)
                continue
            self._why[call.key] = why
            if why == "asked_call":
                self._asked.setdefault(call.call_id, deque()).append(call)
            if why != "settled_call" or call.call_id not in self._of_id:
                self._of_id[call.call_id] = why
        self.taken: dict[str, ToolResultBlock] = {}

    @staticmethod
    def _reason(call: Occurrence, known: Controls, denied: Mapping[str, ToolResultBlock]) -> UnmatchedCode | None:
        if call.hosted:
            return "hosted_call"
        if call.completed or call.ambiguous:
            return "settled_call"
        if call.key in denied:
            return "denied_call"
        if call.key in known.by_call and call.key not in known.answered:
            return "asked_call"
        return None

    def take(self, block: ToolResultBlock) -> UnmatchedCode | None:
        """Hand a result to its call; a code where no call takes it."""
        id = block.tool_call_id
        if block.preliminary:
            return "partial_result"
        if id not in self._open and id not in self._of_id:
            call = self._by_key.get(id)
            if call is None:
                return "unknown_call"
            why = self._why.get(call.key)
            if call.key in self.taken or (why is not None and not (why == "asked_call" and block.outcome == "denied")):
                return why if call.key not in self.taken and why is not None else "settled_call"
        else:
            call = self._next(self._takers.get(id))
            if call is None and block.outcome == "denied":
                call = self._next(self._asked.get(id))
            if call is None:
                return self._of_id.get(id, "settled_call")
        self.taken[call.key] = self.named(block, call)
        return None

    def named(self, block: ToolResultBlock, call: Occurrence) -> ToolResultBlock:
        """The result under the id of its call; where several calls of that id are open, with the name of its own."""
        if self._open[call.call_id] > 1:
            return named_result(block, call)
        return block if block.tool_call_id == call.call_id else replace(block, tool_call_id=call.call_id)

    def _next(self, waiting: deque[Occurrence] | None) -> Occurrence | None:
        while waiting:
            call = waiting.popleft()
            if call.key not in self.taken:  # taken under its key
                return call
        return None


def named_result(block: ToolResultBlock, call: Occurrence) -> ToolResultBlock:
    """A result that says which of several open calls of one id it is of.

    Args:
        block: the result.
        call: its call.
    """
    return replace(block, tool_call_id=call.call_id, meta={**(block.meta or {}), OCCURRENCE: call.name})


def result_block(result: ToolResultBlock | AgToolResult) -> ToolResultBlock:
    """The block of a result that a client has sent (spec §3 ``tool-result``); a block stays what it is.

    Args:
        result: the result.
    """
    if isinstance(result, ToolResultBlock):
        return result
    fields: dict[str, Any] = {name: getattr(result, name) for name in _SHARED}
    return ToolResultBlock(**fields)
