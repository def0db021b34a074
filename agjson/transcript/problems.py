"""What is wrong with a history: named, with the place, raised before any request (spec §10.13; loop contract)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from agjson.errors import ReplayError

if TYPE_CHECKING:
    from agjson.transcript.occurrence import Place

__all__ = ["Problem", "ProblemCode", "TranscriptError"]

ProblemCode: TypeAlias = Literal[
    "ambiguous_result",
    "ask_without_call",
    "misplaced_call",
    "owned_call_open",
    "placeholder_without_call",
    "reasoning_lost",
    "reasoning_missing",
    "reasoning_not_replayable",
    "repeated_result",
    "result_before_call",
    "result_without_call",
    "unanswered_call",
    "unknown_message",
]
"""What kind of problem it is; ``docs/transcript.md`` has a row for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that keeps a history from being a valid transcript.

    Attributes:
        code: what kind of thing.
        message: what is wrong, in words; it holds no content and no opaque value.
        path: the JSON path inside the message list (``$[3].content[0]``), ``"$"`` for the whole.
        message_id: the id of the message that it concerns, if it concerns one.
        call_id: the id of the tool call that it concerns, if it concerns one.
    """

    code: ProblemCode
    message: str
    path: str = "$"
    message_id: str | None = None
    call_id: str | None = None

    @classmethod
    def at(cls, place: Place, call_id: str, code: ProblemCode, message: str) -> Problem:
        """A problem with a call or its result.

        Args:
            place: where it stands.
            call_id: the id of the call.
            code: what kind of problem it is.
            message: what is wrong, in words.
        """
        return cls(code=code, message=message, path=place.path, message_id=place.message_id, call_id=call_id)


class TranscriptError(ReplayError):
    """A history that cannot be sent as it is; raised before any request is made.

    Args:
        problem: what is wrong.

    Attributes:
        code: what kind of problem it is.
        message_id: the id of the message that it concerns, if it concerns one.
        call_id: the id of the tool call that it concerns, if it concerns one.
        message: what is wrong, in words.
        path: the JSON path inside the message list, ``"$"`` for the whole.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message, problem.path)
        self.code: ProblemCode = problem.code
        self.message_id = problem.message_id
        self.call_id = problem.call_id
