"""A history as a model may read it (loop contract, "History and continuation", "Reasoning-bound calls").

One call and one result for each completed occurrence, in the order of the calls; nothing that is only for people, hosts
or approvals; nothing that waits. What cannot be made valid is refused before any request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agjson.transcript.arrangement import Arrangement, Insertion, Origin
from agjson.transcript.asks import Spent
from agjson.transcript.occurrence import Occurrence, Place
from agjson.transcript.problems import Problem, ProblemCode, TranscriptError
from agjson.transcript.settling import named_result
from agjson.transcript.transcript import Transcript, misplaced_problem, stray_problem, unanswered_problem
from agjson.types import (
    AgBlock,
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    AgTurnRecord,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["INTERRUPTED", "Change", "ChangeCode", "Mode", "Prepared", "StrayPolicy", "UnansweredPolicy", "prepare"]

INTERRUPTED = "The call was interrupted: it has no result."
"""What a model reads in place of a result that never came."""

Mode: TypeAlias = Literal["inline", "delta"]
"""Who keeps the history: the request brings all of it, or the service has it and the request brings what is new."""

UnansweredPolicy: TypeAlias = Literal["refuse", "answer", "leave_out"]
"""What to do with a call without a result that waits for nobody."""

StrayPolicy: TypeAlias = Literal["refuse", "leave_out"]
"""What to do with a result whose call is not there or cannot be told, and with a call that no model made."""

ChangeCode: TypeAlias = Literal[
    "announcement",
    "app_only",
    "candidate",
    "misplaced_call",
    "nested",
    "notice",
    "partial",
    "pending",
    "placeholder",
    "repeated_result",
    "result_added",
    "result_moved",
    "stray_result",
    "unanswered",
]
"""What was changed; ``docs/transcript.md`` has a row for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between the history and what the model reads.

    Attributes:
        code: what was changed.
        path: the JSON path inside the message list of what was left out, moved, or has a result added.
        message_id: the id of its message.
        call_id: the id of the tool call that it concerns, if it concerns one.
    """

    code: ChangeCode
    path: str
    message_id: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What goes into the next request.

    Attributes:
        messages: the messages that the request brings, in order. Those that needed no change are the same objects.
        origins: for each of these messages, where its blocks stood in the history.
        calls: the completed calls that the model knows after this request, in order, with their places in the history.
        pairs: these calls with their results; the same in both modes.
        asks: the asks that still wait for an answer.
        answers: the answers that the framework is to get with this request, where it takes any; none of a batch that
            still waits for others.
        spent: the answers that say nothing any more; none of them reaches the framework.
        changes: what was changed, in order of place; with a service that keeps the history, of the new messages alone.
    """

    messages: list[AgMessage]
    origins: list[Origin]
    calls: tuple[Occurrence, ...]
    pairs: tuple[tuple[ToolCallBlock, ToolResultBlock], ...]
    asks: tuple[AgPausedAsk, ...]
    answers: tuple[AgHitlAnswer, ...]
    spent: tuple[Spent, ...]
    changes: tuple[Change, ...]


def prepare(
    messages: Sequence[AgMessage],
    *,
    mode: Mode = "inline",
    owned_through: str | None = None,
    turns: Sequence[AgTurnRecord] = (),
    waiting: Collection[str] = (),
    answers: Iterable[AgHitlAnswer] = (),
    recorded: Iterable[AgHitlAnswer] = (),
    unanswered: UnansweredPolicy = "refuse",
    stray: StrayPolicy = "refuse",
    replayable: Callable[[ReasoningBlock], bool] | None = None,
    needs_reasoning: Callable[[ToolCallBlock], bool] | None = None,
) -> Prepared:
    """Make a history into what a model may read (loop contract, "History and continuation").

    What waits for a person or for the client is hidden with its whole group, until its results are there (`settle`) or,
    for a framework that takes decisions itself, its answers. Reasoning and calls are never changed.

    Args:
        messages: the history of one thread in order; it is only read.
        mode: ``"inline"``, or ``"delta"`` for a service that keeps the history.
        owned_through: in delta mode, the id of the last message that the service has.
        turns: the turn records of the thread: what was asked, and which turns are nested.
        waiting: ids or keys of calls whose results come from outside.
        answers: decisions that have come now, for a framework that takes them itself.
        recorded: answers of earlier inputs, as far as they were kept.
        unanswered: a call without a result that waits for nobody: ``"refuse"`` the history, ``"answer"`` it with an
            error result that says so, or ``"leave_out"`` the call and the reasoning right before it.
        stray: a result whose call is not there or cannot be told, a call that no model made: ``"refuse"`` the history,
            or ``"leave_out"`` it.
        replayable: whether a block of reasoning can be sent back; it is asked for reasoning that is bound to a call.
            Absent: all can.
        needs_reasoning: whether the service refuses a call without the reasoning before it; absent: none does.

    Raises:
        TranscriptError: the history cannot be sent as it is; ``code`` says why, ``path`` where.
        ValueError: the mode and `owned_through` do not go together.
    """
    if (mode == "delta") != (owned_through is not None):
        raise ValueError("mode 'delta' needs owned_through, and only it")
    transcript = Transcript(messages, turns=turns, waiting=waiting, answers=answers, recorded=recorded)
    owned = _owned(messages, owned_through) if owned_through is not None else -1
    builder = _Builder(transcript, owned, unanswered, stray)
    builder.leave_out_unseen()
    builder.leave_out_strays()
    builder.settle_calls()
    if replayable is not None or needs_reasoning is not None:
        builder.check_reasoning(replayable, needs_reasoning)
    return builder.build()


def _owned(messages: Sequence[AgMessage], id: str) -> int:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].id == id:
            return index
    raise TranscriptError(Problem(code="unknown_message", message=f"the history has no message {id!r}", message_id=id))


class _Builder:
    """Decides block by block what goes into the request."""

    def __init__(
        self,
        transcript: Transcript,
        owned: int,
        unanswered: UnansweredPolicy,
        stray: StrayPolicy,
    ) -> None:
        self.messages = transcript.messages
        self.transcript = transcript
        self.owned = owned
        self.gone: dict[int, ChangeCode] = {}
        self._known = transcript.controls
        self._unanswered = unanswered
        self._stray = stray
        # Blocks that are left out, by message.
        self.dropped: dict[int, set[int]] = {}
        self._changes: list[tuple[int, int, Change]] = []
        self._added: dict[str, ToolResultBlock] = {}
        self._visible: list[Occurrence] = []
        self._open = Counter(call.call_id for call in transcript.occurrences if not call.completed)
        # The calls of batches that wait: their answers go to the framework together, or not yet.
        self._held: set[str] = set()
        # Calls that are left out because nothing came of them, by the end of their round.
        self._unmade: dict[int, list[Occurrence]] = {}

    # What no model reads

    def leave_out_unseen(self) -> None:
        """Leave out notices, messages of nested turns, and all candidates but the first."""
        nested = {turn.turn_id for turn in self.transcript.turns if turn.parent_turn_id is not None}
        for index, message in enumerate(self.messages):
            if message.role == "notice":
                self._leave_out_message(index, "notice")
            elif message.turn_id in nested:
                self._leave_out_message(index, "nested")
            elif message.candidate_index:
                self._leave_out_message(index, "candidate")
        for place in self.transcript.found.announced:
            self._leave_out(place, "announcement")

    def leave_out_strays(self) -> None:
        """Leave out results that no open call waits for, and calls that no model made.

        Raises:
            TranscriptError: there is a call of that kind, or a result of a call that is not there, and it may not be
                left out.
        """
        for block, place in self.transcript.found.misplaced:
            if place.message not in self.gone and place.message > self.owned:
                if self._stray == "refuse":
                    raise TranscriptError(misplaced_problem(block, place))
                self._leave_out(place, "misplaced_call", block.tool_call_id)
        later = {call.call_id: call.place.message for call in self.transcript.occurrences}
        for stray in self.transcript.found.strays:
            if stray.place.message in self.gone or stray.place.message <= self.owned:
                continue
            id = stray.block.tool_call_id
            if stray.block.outcome == "input_required":
                self._leave_out(stray.place, "placeholder", id)
            elif stray.closed:
                self._leave_out(stray.place, "repeated_result", id)
            elif self._stray == "leave_out":
                self._leave_out(stray.place, "stray_result", id)
            else:
                raise TranscriptError(stray_problem(stray, later))

    # What becomes of the calls

    def settle_calls(self) -> None:
        """Hide what waits, see to what has no result, and leave out what only said that a call goes on.

        Raises:
            TranscriptError: a call has no result and must have one.
        """
        group = self.transcript.rounds.group
        hidden = self._hidden()
        resumed = {group[call.place.message] for call in self.transcript.occurrences if self._answered(call)}
        self._held = {call.key for call in self.transcript.occurrences if group[call.place.message] in hidden}
        for index, first in enumerate(group) if hidden else ():
            if first in hidden and self.messages[index].role == "assistant":
                self._leave_out_message(index, "pending")
        for call in self.transcript.occurrences:
            index = call.place.message
            for place in call.placeholders:
                self._leave_out(place, "placeholder", call.call_id)
            for place in call.partials:
                self._leave_out(place, "partial", call.call_id)
            reason = self.gone.get(index)
            if reason is None and call.app_only:
                reason = "app_only"
            if reason is not None:
                self._leave_out_call(call, reason)
            elif call.completed:
                self._visible.append(call)
            elif not call.hosted and group[index] not in resumed:
                # The framework that gets the decisions of a batch runs the rest of it too.
                self._settle_unanswered(call)
        self._leave_out_reasoning()

    def _hidden(self) -> set[int]:
        """The groups with a call that waits, by their first messages; a provider keeps its own calls that wait."""
        group = self.transcript.rounds.group
        hidden: set[int] = set()
        for call in self.transcript.occurrences:
            if call.place.message in self.gone or call.app_only or call.hosted or self._answered(call):
                continue
            if not self.transcript.is_pending(call):
                continue
            if call.place.message > self.owned:
                hidden.add(group[call.place.message])
            else:
                words = f"the service has call {call.call_id!r} and takes nothing before its result"
                raise TranscriptError(Problem.at(call.place, call.call_id, "owned_call_open", words))
        return hidden

    def _answered(self, call: Occurrence) -> bool:
        return call.key in self._known.answered

    def _settle_unanswered(self, call: Occurrence) -> None:
        problem = unanswered_problem(call)
        if call.ambiguous:
            if self._stray == "refuse":
                raise TranscriptError(problem)
            for place in call.candidates:
                self._leave_out(place, "stray_result", call.call_id)
        if self._unanswered == "answer":
            self._added[call.key] = self._interrupted(call)
            self._note("result_added", call.place, call.call_id)
            self._visible.append(call)
        elif self._unanswered == "refuse" or call.place.message <= self.owned:
            raise TranscriptError(problem)
        else:
            self._leave_out_call(call, "unanswered")
            self._unmade.setdefault(self.transcript.rounds.end[call.place.message], []).append(call)

    def _interrupted(self, call: Occurrence) -> ToolResultBlock:
        """The result of a call that never got one, with what it said of itself before."""
        said: list[AgBlock] = []
        if call.partials:
            place = call.partials[-1]
            last = self.messages[place.message].content[place.block]
            said = list(last.content) if isinstance(last, ToolResultBlock) else []
        content = [*said, TextBlock(text=INTERRUPTED)]
        block = ToolResultBlock(tool_call_id=call.call_id, outcome="error", content=content)
        return named_result(block, call) if self._open[call.call_id] > 1 else block

    def _leave_out_call(self, call: Occurrence, code: ChangeCode) -> None:
        self._leave_out(call.place, code, call.call_id)
        for place in (call.result_place, *call.candidates):
            if place is not None:
                self._leave_out(place, code, call.call_id)

    def _leave_out_reasoning(self) -> None:
        """With calls that are left out goes the reasoning behind which nothing is left of its round."""
        for end, calls in self._unmade.items():
            left = {index: self._calls_left(index) for index in {call.place.message for call in calls}}
            for call in calls:
                if call.call.signature is not None and left[call.place.message]:
                    words = f"call {call.call_id!r} carries the signature of calls that would stay"
                    raise TranscriptError(Problem.at(call.place, call.call_id, "reasoning_lost", words))
            first = min(self.transcript.rounds.segment[call.place.message] for call in calls)
            for place in self._trailing_reasoning(first, end):
                self._leave_out(place, "unanswered")

    def _trailing_reasoning(self, first: int, end: int) -> Iterator[Place]:
        for index in range(end, first - 1, -1):
            message = self.messages[index]
            if index in self.gone or message.role != "assistant":
                continue
            dropped = self.dropped.get(index, ())
            for at in range(len(message.content) - 1, -1, -1):
                if at not in dropped:
                    if not isinstance(message.content[at], ReasoningBlock):
                        return
                    yield Place(index, at, message.id)

    def _calls_left(self, index: int) -> bool:
        dropped = self.dropped.get(index, ())
        content = self.messages[index].content
        return any(isinstance(block, ToolCallBlock) and at not in dropped for at, block in enumerate(content))

    # Notes

    def _leave_out_message(self, index: int, code: ChangeCode) -> None:
        if index not in self.gone:
            self.gone[index] = code
            if index > self.owned:
                message = self.messages[index]
                self._changes.append((index, -1, Change(code=code, path=f"$[{index}]", message_id=message.id)))

    def _leave_out(self, place: Place, code: ChangeCode, call_id: str | None = None) -> None:
        dropped = self.dropped.setdefault(place.message, set())
        if place.block not in dropped:
            dropped.add(place.block)
            if place.message not in self.gone:
                self._note(code, place, call_id)

    def _note(self, code: ChangeCode, place: Place, call_id: str | None) -> None:
        if place.message > self.owned or code == "result_added":
            change = Change(code=code, path=place.path, message_id=place.message_id, call_id=call_id)
            self._changes.append((place.message, place.block, change))

    # The request

    def build(self) -> Prepared:
        """The messages of the request, results behind their calls."""
        arrangement = Arrangement(self.messages, self.gone, self.dropped)
        end = self.transcript.rounds.end
        for call in self._visible:
            added = self._added.get(call.key)
            if added is not None:
                arrangement.put(end[call.place.message], Insertion(call, added, None))
            elif (
                call.result is not None
                and call.result_place is not None
                and not self._embedded(call, call.result_place)
            ):
                arrangement.put(end[call.place.message], Insertion(call, call.result, call.result_place))
        sent, origins = arrangement.messages(self.owned)
        for place in arrangement.moved:
            block = self.messages[place.message].content[place.block]
            self._note("result_moved", place, block.tool_call_id if isinstance(block, ToolResultBlock) else None)
        self._changes.sort(key=lambda each: each[:2])
        return Prepared(
            messages=sent,
            origins=origins,
            calls=tuple(self._visible),
            pairs=tuple((call.call, self._added.get(call.key) or _result(call)) for call in self._visible),
            asks=self._known.asks,
            answers=tuple(answer for answer in self._known.answers if not self._is_held(answer)),
            spent=self._known.spent,
            changes=tuple(change for _, _, change in self._changes),
        )

    def _is_held(self, answer: AgHitlAnswer) -> bool:
        call = self._known.calls.get(answer.ask_id)
        return call is not None and call.key in self._held

    def _embedded(self, call: Occurrence, place: Place) -> bool:
        """Whether a result is part of what the assistant says, where it stays: in the round, or by the provider."""
        if self.messages[place.message].role != "assistant" or place.message in self.gone:
            return False
        end = self.transcript.rounds.end
        return call.hosted or end[place.message] == end[call.place.message]

    def check_reasoning(
        self,
        replayable: Callable[[ReasoningBlock], bool] | None,
        needs_reasoning: Callable[[ToolCallBlock], bool] | None,
    ) -> None:
        """See to it that the calls that the request brings have their reasoning.

        Args:
            replayable: whether a block of reasoning can be sent back.
            needs_reasoning: whether a call must have reasoning before it.

        Raises:
            TranscriptError: reasoning cannot be sent back, or is not there.
        """
        segment = self.transcript.rounds.segment
        reasoning: dict[int, list[tuple[Place, ReasoningBlock]]] = {}
        calls: dict[int, ToolCallBlock] = {}
        for place, block in self._said():
            first = segment[place.message]
            if isinstance(block, ReasoningBlock):
                reasoning.setdefault(first, []).append((place, block))
            elif isinstance(block, ToolCallBlock):
                calls.setdefault(first, block)
                if first not in reasoning and needs_reasoning is not None and needs_reasoning(block):
                    raise _lacking("reasoning_missing", "is not there", place, block)
        for first, call in calls.items():
            for place, block in reasoning.get(first, ()):
                if replayable is not None and not replayable(block):
                    raise _lacking("reasoning_not_replayable", "cannot be sent back", place, call)

    def _said(self) -> Iterator[tuple[Place, AgBlock]]:
        """What the request brings of the assistant."""
        for index in range(self.owned + 1, len(self.messages)):
            message = self.messages[index]
            if index not in self.gone and message.role == "assistant":
                dropped = self.dropped.get(index, ())
                for at, block in enumerate(message.content):
                    if at not in dropped:
                        yield Place(index, at, message.id), block


def _lacking(code: ProblemCode, words: str, place: Place, call: ToolCallBlock) -> TranscriptError:
    message = f"the reasoning that led to call {call.tool_call_id!r} {words}"
    return TranscriptError(Problem.at(place, call.tool_call_id, code, message))


def _result(call: Occurrence) -> ToolResultBlock:
    assert call.result is not None
    return call.result
