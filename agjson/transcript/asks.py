"""Which asks of a thread are open, and which answers still count (loop contract, "Approval control content"; spec §7).

Asks and answers are no transcript: asks stand on the turn records, answers come with inputs, and neither is ever a
block of a message. Hosts may keep all of them for audit. A call that has its terminal result uses up every ask about
it, in whatever order they are stored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agjson.transcript.occurrence import Occurrence, occurrences
from agjson.transcript.problems import Problem
from agjson.types import AgHitlAnswer, AgMessage, AgPausedAsk, AgTurnRecord

__all__ = ["Controls", "Spent", "SpentCode", "controls", "controls_of"]

SpentCode: TypeAlias = Literal["unknown_ask", "spent_ask", "repeated_answer"]
"""Why an answer says nothing: to no known ask; to one that is used up; to one that has its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """An answer that says nothing any more.

    Attributes:
        code: why.
        index: its position among the answers that have come, from 0.
        answer: the answer.
    """

    code: SpentCode
    index: int
    answer: AgHitlAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The asks and answers of a thread that still count.

    Attributes:
        asks: the asks that wait for an answer, each once, in the order of the turns.
        answers: the answers that are not used up, in order: those recorded whose call has no terminal result, then the
            new ones.
        spent: the new answers that say nothing.
        calls: the call that each ask is about, by ask id; asks about no call are not in it.
        by_call: the asks about a call that are not used up, answered or not, by the key of the call.
        answered: the keys of the calls about which there are asks, each with an answer.
        problems: asks about calls that are not there.
    """

    asks: tuple[AgPausedAsk, ...] = ()
    answers: tuple[AgHitlAnswer, ...] = ()
    spent: tuple[Spent, ...] = ()
    calls: Mapping[str, Occurrence] = field(default_factory=dict[str, Occurrence])
    by_call: Mapping[str, Sequence[AgPausedAsk]] = field(default_factory=dict[str, Sequence[AgPausedAsk]])
    answered: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


def controls(
    messages: Sequence[AgMessage],
    turns: Sequence[AgTurnRecord],
    answers: Iterable[AgHitlAnswer] = (),
    *,
    recorded: Iterable[AgHitlAnswer] = (),
) -> Controls:
    """Sort out which asks and answers still count (loop contract, "Approval control content").

    Args:
        messages: the history; it is only read.
        turns: the turn records of the thread in order, with their asks (`AgReduceResult.turns`).
        answers: the answers that have come now.
        recorded: answers of earlier inputs, as far as they were kept.
    """
    return controls_of(occurrences(messages), messages, turns, answers, recorded)


@dataclass(slots=True)
class _Asked:
    ask: AgPausedAsk
    turn: int
    call: Occurrence | None


def controls_of(
    calls: Sequence[Occurrence],
    messages: Sequence[AgMessage],
    turns: Sequence[AgTurnRecord],
    answers: Iterable[AgHitlAnswer] = (),
    recorded: Iterable[AgHitlAnswer] = (),
) -> Controls:
    """Sort out asks and answers for a history whose calls are known.

    Args:
        calls: its calls.
        messages: the history.
        turns: the turn records in order.
        answers: the answers that have come now.
        recorded: answers of earlier inputs.
    """
    asked, problems = _asked(calls, messages, turns)
    live = _live(asked.values(), turns)
    said: dict[str, AgHitlAnswer] = {}
    before: set[str] = set()
    for answer in recorded:
        before.add(answer.ask_id)
        about = live.get(answer.ask_id)
        # What the provider runs has been told its decision with the request of that time.
        if about is not None and not (about.call is not None and about.call.hosted):
            said.setdefault(answer.ask_id, answer)
    spent: list[Spent] = []
    for index, answer in enumerate(answers):
        id = answer.ask_id
        code: SpentCode | None = None
        if id not in asked:
            code = "unknown_ask"
        elif id not in live:
            code = "spent_ask"
        elif id in said or id in before:
            code = "repeated_answer"
        if code is None:
            said[id] = answer
        else:
            spent.append(Spent(code=code, index=index, answer=answer))
    by_call: dict[str, list[AgPausedAsk]] = {}
    for each in live.values():
        if each.call is not None:
            by_call.setdefault(each.call.key, []).append(each.ask)
    return Controls(
        asks=tuple(each.ask for id, each in live.items() if id not in said and id not in before),
        answers=tuple(said.values()),
        spent=tuple(spent),
        calls={id: each.call for id, each in asked.items() if each.call is not None},
        by_call=by_call,
        answered=frozenset(key for key, asks in by_call.items() if all(ask.ask_id in said for ask in asks)),
        problems=tuple(problems),
    )


def _asked(
    calls: Sequence[Occurrence], messages: Sequence[AgMessage], turns: Sequence[AgTurnRecord]
) -> tuple[dict[str, _Asked], list[Problem]]:
    """Every ask once, by its id, with the last turn that shows it and the call that it is about."""
    asked: dict[str, _Asked] = {}
    problems: list[Problem] = []
    if not any(turn.asks for turn in turns):
        return asked, problems
    book = _ById(calls, messages, turns)
    for at, turn in enumerate(turns):
        for ask in turn.asks or ():
            known = asked.get(ask.ask_id)
            if known is not None:
                # Shown again, because others of its batch were answered first.
                known.ask, known.turn = ask, at
                continue
            call = None
            if ask.tool_call_id is not None:
                call = book.about(ask.tool_call_id, at)
                if call is None:
                    problems.append(
                        Problem(
                            code="ask_without_call",
                            message=f"ask {ask.ask_id!r} is about a call that is not there",
                            call_id=ask.tool_call_id,
                        )
                    )
            asked[ask.ask_id] = _Asked(ask, at, call)
    return asked, problems


class _ById:
    """The calls of each id, by the turn that made them."""

    def __init__(
        self, calls: Sequence[Occurrence], messages: Sequence[AgMessage], turns: Sequence[AgTurnRecord]
    ) -> None:
        order = {turn.turn_id: at for at, turn in enumerate(turns)}
        self._calls: dict[tuple[str, int], list[Occurrence]] = {}
        self._turns: dict[str, list[int]] = {}
        self._shown: dict[tuple[str, int], int] = {}
        for call in calls:
            turn_id = messages[call.place.message].turn_id
            made = -1 if turn_id is None else order.get(turn_id, -1)
            self._calls.setdefault((call.call_id, made), []).append(call)
        for id, made in self._calls:
            self._turns.setdefault(id, []).append(made)
        for made_in in self._turns.values():
            made_in.sort()

    def about(self, call_id: str, turn: int) -> Occurrence | None:
        """The call that the next ask of a turn is about.

        It is one of that turn or, for a further question, of the last turn before it that made such a call. Several
        such calls are asked about in their order.
        """
        made_in = self._turns.get(call_id, [])
        at = bisect_right(made_in, turn)
        if not at:
            return None
        near = self._calls[call_id, made_in[at - 1]]
        shown = self._shown.get((call_id, turn), 0)
        self._shown[call_id, turn] = shown + 1
        return near[min(shown, len(near) - 1)]


def _live(asked: Iterable[_Asked], turns: Sequence[AgTurnRecord]) -> dict[str, _Asked]:
    """The asks that are not used up: by a terminal result, or by a later turn that asks anew about the same call."""
    asked = list(asked)
    last: dict[str, int] = {}
    for each in asked:
        if each.call is not None:
            last[each.call.key] = max(each.turn, last.get(each.call.key, -1))
    top = max((at for at, turn in enumerate(turns) if turn.parent_turn_id is None), default=-1)
    live: dict[str, _Asked] = {}
    for each in asked:
        if each.call is None:
            # A question about no call is open while its turn is the last; one whose call is missing never is.
            counts = each.ask.tool_call_id is None and each.turn >= top
        else:
            counts = not (each.call.completed or each.call.ambiguous) and each.turn == last[each.call.key]
        if counts:
            live[each.ask.ask_id] = each
    return live
