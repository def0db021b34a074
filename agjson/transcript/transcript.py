"""A history looked at once: its calls, its groups, what it waits for, and what is wrong with it (loop contract)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from agjson.transcript.asks import Controls, controls_of
from agjson.transcript.grouping import Group, Rounds, groups_of, rounds_of
from agjson.transcript.occurrence import Occurrence, Place, Scan, Stray, scan
from agjson.transcript.problems import Problem, ProblemCode
from agjson.types import AgHitlAnswer, AgMessage, AgTurnRecord, ToolCallBlock

__all__ = ["Transcript", "misplaced_problem", "stray_problem", "unanswered_problem", "validate"]


class Transcript:
    """A history and what can be said of it. The history is only read, and must not change while this is used.

    Args:
        messages: the history of one thread, in order.
        turns: the turn records of the thread, which say what was asked (`AgReduceResult.turns`).
        waiting: ids or keys of calls whose results come from outside: tools that the client runs.
        answers: the answers that have come now.
        recorded: answers of earlier inputs, as far as they were kept.

    Attributes:
        messages: the history.
        turns: the turn records.
    """

    def __init__(
        self,
        messages: Sequence[AgMessage],
        *,
        turns: Sequence[AgTurnRecord] = (),
        waiting: Collection[str] = (),
        answers: Iterable[AgHitlAnswer] = (),
        recorded: Iterable[AgHitlAnswer] = (),
    ) -> None:
        self.messages = messages
        self.turns = turns
        self._answers = tuple(answers)
        self._recorded = tuple(recorded)
        self._waiting = frozenset(waiting)

    @property
    def occurrences(self) -> Sequence[Occurrence]:
        """The calls in order, each with its own result (loop contract, "Function calls and results")."""
        return self.found.occurrences

    @cached_property
    def groups(self) -> Sequence[Group]:
        """What is kept or dropped whole, in order (row "Compaction pair integrity")."""
        return groups_of(self.messages, self.found, self.rounds)

    @cached_property
    def controls(self) -> Controls:
        """The asks and answers that still count (loop contract, "Approval control content")."""
        return controls_of(self.occurrences, self.messages, self.turns, self._answers, self._recorded)

    @cached_property
    def pending(self) -> Sequence[Occurrence]:
        """The calls that wait for a person or for the client (row "Pending history turn")."""
        return [call for call in self.occurrences if self.is_pending(call)]

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """What keeps the history from being a valid transcript, in order of place; nothing: it is one.

        A call that waits for a person or for the client is no problem: it is hidden until it has its result.
        """
        found: list[tuple[int, int, Problem]] = []
        for stray in self.found.strays:
            problem = stray_problem(stray, self._later)
            found.append((stray.place.message, stray.place.block, problem))
        for block, place in self.found.misplaced:
            found.append((place.message, place.block, misplaced_problem(block, place)))
        for call in self.occurrences:
            if not (call.completed or call.hosted or call.app_only or self.is_pending(call)):
                found.append((call.place.message, call.place.block, unanswered_problem(call)))
        found.sort(key=lambda each: each[:2])
        return [*(problem for _, _, problem in found), *self.controls.problems]

    @cached_property
    def found(self) -> Scan:
        """What one walk over the history finds."""
        return scan(self.messages)

    @cached_property
    def rounds(self) -> Rounds:
        """How the messages hang together."""
        return rounds_of(self.messages, self.found)

    def is_pending(self, call: Occurrence) -> bool:
        """Whether a call waits for a person or for the client.

        Args:
            call: a call of this history.
        """
        if call.completed or call.ambiguous:
            return False
        return (
            bool(call.placeholders)
            or call.key in self.controls.by_call
            or call.key in self._waiting
            or call.call_id in self._waiting
        )

    @cached_property
    def _later(self) -> dict[str, int]:
        """Where each id is called last."""
        return {call.call_id: call.place.message for call in self.occurrences}


def validate(
    messages: Sequence[AgMessage],
    *,
    turns: Sequence[AgTurnRecord] = (),
    waiting: Collection[str] = (),
) -> list[Problem]:
    """What keeps a history from being a valid transcript (loop contract, "Function calls and results").

    Every call has exactly one terminal result behind it, unless the provider runs it, or it waits for a person or for
    the client.

    Args:
        messages: the history; it is only read.
        turns: the turn records of the thread, which say what was asked.
        waiting: ids or keys of calls whose results come from outside.

    Returns:
        The problems in order of place; nothing: it is valid.
    """
    return list(Transcript(messages, turns=turns, waiting=waiting).problems)


def stray_problem(stray: Stray, later: dict[str, int]) -> Problem:
    """What is wrong with a result that no open call waits for.

    Args:
        stray: the result.
        later: where each id is called last.
    """
    id, place = stray.block.tool_call_id, stray.place
    code: ProblemCode
    if stray.block.outcome == "input_required" and not stray.closed:
        code, words = "placeholder_without_call", "says that a call waits which is not there"
    elif stray.closed:
        code, words = "repeated_result", "comes behind the terminal result of its call"
    elif later.get(id, -1) >= place.message:
        code, words = "result_before_call", "stands before its call"
    else:
        code, words = "result_without_call", "is of a call that is not there"
    return Problem.at(place, id, code, f"the result of call {id!r} {words}")


def misplaced_problem(block: ToolCallBlock, place: Place) -> Problem:
    """What is wrong with a call that no model made.

    Args:
        block: the call.
        place: where it stands.
    """
    id = block.tool_call_id
    return Problem.at(place, id, "misplaced_call", f"call {id!r} stands in a message that is not the assistant's")


def unanswered_problem(call: Occurrence) -> Problem:
    """What is wrong with a call that has no result and waits for nobody.

    Args:
        call: the call.
    """
    code: ProblemCode
    if call.ambiguous:
        code = "ambiguous_result"
        message = f"there are results of call {call.call_id!r}, and several open calls that they may be of"
    else:
        code = "unanswered_call"
        message = f"call {call.call_id!r} has no result, and nobody is asked for one"
    return Problem.at(call.place, call.call_id, code, message)
