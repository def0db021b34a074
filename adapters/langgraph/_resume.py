"""What people's answers are for LangGraph: the spec's shapes, and the map that drives a graph (spec §3.1, §7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from agjson.adapters.langgraph._handles import VALUE, actions_of, interrupt_of, is_static
from agjson.errors import ReplayError
from agjson.types import UNSET, AgHitlAnswer, AgPausedAsk, JsonValue
from agjson.wire import match_answer

__all__ = ["Resumption", "build_resume", "check_answers", "denied_calls", "resumption_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """The answers of a batch, as a graph takes them.

    Attributes:
        values: for each native interrupt by its id, what ``interrupt`` returns. Always a map, also for one: a bare
            value is replayed into later questions of the same task.
        later: answers to questions that a task asks only after the first is answered, in order, by the interrupt that
            comes first.
        goes_past: a static breakpoint is to be passed; None: there is none, false: it is not to be passed.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    later: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    goes_past: bool | None = None


@dataclass(frozen=True, slots=True)
class _Given:
    """One answer, read.

    Attributes:
        ask: what was asked.
        value: the answer as the graph takes it.
        ordinal: its place among the answers to one interrupt.
        path: the JSON path of the answer.
    """

    ask: AgPausedAsk
    value: Any
    ordinal: float
    path: str


# What a host calls


def build_resume(asks: Sequence[AgPausedAsk], answers: Sequence[AgHitlAnswer]) -> JsonValue:
    """The payload of ``Command(resume=...)`` in the shape that the spec names (spec §3.1, §7, §10.11).

    The shape follows ``resumeBinding``, not the number of answers: without it the one reply itself, with ``"id"`` a map
    from native interrupt ids to replies, with ``"positional"`` the replies in the order of ``ordinal``. Where several
    interrupts are answered at once, it is the map, with the list in the place of an interrupt that has several asks.

    A graph is driven by the map of `to_native` in every case, with the same effect: LangGraph reads a list as one
    answer, and keeps a bare value for later questions of the same task.

    Args:
        asks: the asks of the batch.
        answers: one answer for each of them, in any order.

    Returns:
        The payload: replies as the graph takes them, so that an approval is a decision.

    Raises:
        ReplayError: an ask without an answer or with two, an answer to none of the asks, or one that the ask does not
            allow; ``path`` is ``$.answers[n]``.
        ValidationError: an answer that does not echo what its ask wants echoed.
    """
    given = [each for each in _read(asks, answers) if not is_static(each.ask)]
    if not given:
        return None
    groups = _grouped(given)
    is_map = len(groups) > 1 or any(each.ask.resume_binding == "id" for each in given)
    shapes: dict[str, Any] = {}
    for id, group in groups.items():
        listed = len(group) > 1 or group[0].ask.resume_binding == "positional"
        shapes[id] = [each.value for each in group] if listed else group[0].value
    return shapes if is_map else next(iter(shapes.values()))


def resumption_of(asks: Sequence[AgPausedAsk], answers: Sequence[AgHitlAnswer]) -> Resumption:
    """The answers as a graph is driven with them.

    Args:
        asks: as for `build_resume`.
        answers: as for `build_resume`.

    Raises:
        ReplayError: as `build_resume`; also a number of decisions that is not the number of the actions.
        ValidationError: as `build_resume`.
    """
    given = _read(asks, answers)
    breakpoints = [each for each in given if is_static(each.ask)]
    values: dict[str, Any] = {}
    later: dict[str, list[Any]] = {}
    for id, group in _grouped([each for each in given if not is_static(each.ask)]).items():
        actions = actions_of(group[0].ask)
        if actions is not None:
            _check_decisions(group, actions)
            values[id] = {"decisions": [each.value for each in group]}
            continue
        values[id] = group[0].value
        if len(group) > 1:
            later[id] = [each.value for each in group[1:]]
    return Resumption(
        values=values,
        later=later,
        goes_past=all(each.value is True for each in breakpoints) if breakpoints else None,
    )


def check_answers(asks: Sequence[AgPausedAsk], answers: Sequence[AgHitlAnswer], *, after: int = 0) -> None:
    """Check each answer for itself: whether its ask allows it. Others of the batch may still be missing.

    Args:
        asks: the asks.
        answers: answers to some of them.
        after: how many of them came with earlier inputs, and are not looked at.

    Raises:
        ReplayError: as `build_resume`; the paths count from the first answer that is looked at.
    """
    known = {ask.ask_id: ask for ask in asks}
    for index, answer in enumerate(answers[after:]):
        ask = known.get(answer.ask_id)
        if ask is not None:
            _one(ask, answer, f"$.answers[{index}]")


def denied_calls(asks: Sequence[AgPausedAsk], answers: Sequence[AgHitlAnswer]) -> dict[str, str]:
    """The calls that answers reject, by their ids, each with the reason. Reads what it can, and refuses nothing.

    Args:
        asks: the asks.
        answers: answers to some of them.
    """
    known = {ask.ask_id: ask for ask in asks}
    denied: dict[str, str] = {}
    for answer in answers:
        ask = known.get(answer.ask_id)
        if ask is not None and ask.tool_call_id and _action_of(ask, int(ask.ordinal or 0)) is not None:
            try:
                decision = _decision(answer, {}, "$")
            except ReplayError:
                continue
            if decision["type"] == "reject":
                denied[ask.tool_call_id] = answer.reason or ""
    return denied


def _check_decisions(group: Sequence[_Given], actions: Sequence[Any]) -> None:
    ordinals = [each.ordinal for each in group]
    if ordinals != list(range(len(actions))):
        raise ReplayError(
            f"the graph waits for {len(actions)} decisions, of actions 0 to {len(actions) - 1}; "
            f"there are answers to {', '.join(f'{ordinal:g}' for ordinal in ordinals)}",
            group[0].path,
        )


def _grouped(given: Sequence[_Given]) -> dict[str, list[_Given]]:
    """The answers by native interrupt, each group in the order of the ordinals."""
    groups: defaultdict[str, list[_Given]] = defaultdict(list)
    for each in given:
        groups[interrupt_of(each.ask)].append(each)
    for group in groups.values():
        group.sort(key=lambda each: each.ordinal)
        for before, after in pairwise(group):
            if before.ordinal == after.ordinal:
                raise ReplayError(f"two answers have ordinal {after.ordinal:g}", f"{after.path}.ordinal")
    return dict(groups)


# One answer


def _read(asks: Sequence[AgPausedAsk], answers: Sequence[AgHitlAnswer]) -> list[_Given]:
    """Every answer with its ask, in the order of the asks."""
    known = {ask.ask_id: ask for ask in asks}
    given: dict[str, _Given] = {}
    for index, answer in enumerate(answers):
        path = f"$.answers[{index}]"
        ask = known.get(answer.ask_id)
        if ask is None:
            raise ReplayError(f"the thread waits for no answer to ask {answer.ask_id!r}", f"{path}.askId")
        if answer.ask_id in given:
            raise ReplayError(f"ask {answer.ask_id!r} has two answers", f"{path}.askId")
        match_answer(answer, ask)
        given[answer.ask_id] = _one(ask, answer, path)
    missing = [id for id in known if id not in given]
    if missing:
        raise ReplayError(f"the graph takes the answers whole: {', '.join(map(repr, missing))} has none", "$.answers")
    return [given[id] for id in known]


def _one(ask: AgPausedAsk, answer: AgHitlAnswer, path: str) -> _Given:
    ordinal = ask.ordinal if ask.ordinal is not None else answer.ordinal
    if ask.ordinal is not None and answer.ordinal is not None and ask.ordinal != answer.ordinal:
        raise ReplayError(f"ask {ask.ask_id!r} has ordinal {ask.ordinal}", f"{path}.ordinal")
    place = float(ordinal or 0)
    if is_static(ask):
        return _Given(ask, _agrees(answer, path), place, path)
    action = _action_of(ask, int(place))
    if action is None:
        return _Given(ask, _plain_reply(ask, answer), place, path)
    decision = _decision(answer, action, path)
    allowed = _allowed(ask, int(place))
    if allowed is not None and decision["type"] not in allowed:
        words = f"ask {ask.ask_id!r} allows {', '.join(allowed)}, not {decision['type']}"
        raise ReplayError(words, f"{path}.{'reply' if answer.status == 'resolved' else 'status'}")
    return _Given(ask, decision, place, path)


def _action_of(ask: AgPausedAsk, ordinal: int) -> Mapping[str, Any] | None:
    """The action that an approval of LangChain's middleware is about; None for any other ask."""
    actions = actions_of(ask)
    if actions is not None:
        return actions[ordinal] if 0 <= ordinal < len(actions) else {}
    value = (ask.metadata or {}).get(VALUE)
    return value if isinstance(value, Mapping) and value.get("type") == "tool_approval" else None


def _allowed(ask: AgPausedAsk, ordinal: int) -> list[str] | None:
    """The decisions that an approval takes; None: not said."""
    if ask.choices:
        return [choice.id for choice in ask.choices]
    value = (ask.metadata or {}).get(VALUE)
    configs = value.get("review_configs") if isinstance(value, Mapping) else None
    config = configs[ordinal] if isinstance(configs, list) and ordinal < len(configs) else None
    allowed = config.get("allowed_decisions") if isinstance(config, Mapping) else None
    return [str(each) for each in allowed] if isinstance(allowed, list) else None


def _decision(answer: AgHitlAnswer, action: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A neutral answer as a decision of LangChain's middleware."""
    reply = answer.reply
    if answer.status != "resolved" or reply is False:
        return {"type": "reject", **({"message": answer.reason} if answer.reason else {})}
    if reply is UNSET or reply is None or reply is True:
        return {"type": "approve"}
    if isinstance(reply, Mapping) and len(reply) == 1:
        arguments, response = reply.get("arguments"), reply.get("response")
        if isinstance(arguments, Mapping):
            edited = {"name": action.get("name"), "args": dict(cast("Mapping[str, Any]", arguments))}
            return {"type": "edit", "edited_action": edited}
        if isinstance(response, str):
            return {"type": "respond", "message": response}
    raise ReplayError(
        'an approval takes true, false, {"arguments": {...}} for changed arguments or {"response": "..."} in the '
        "place of the result",
        f"{path}.reply",
    )


def _plain_reply(ask: AgPausedAsk, answer: AgHitlAnswer) -> Any:
    """The answer to a plain interrupt: the reply as it is, and what happened where there is none."""
    if answer.reply is not UNSET:
        return answer.reply
    if answer.status == "resolved":
        return True if ask.kind == "approval" else None
    return {"status": answer.status, "reason": answer.reason}


def _agrees(answer: AgHitlAnswer, path: str) -> bool:
    if answer.status != "resolved" or answer.reply is False:
        return False
    if answer.reply is UNSET or answer.reply is None or answer.reply is True:
        return True
    raise ReplayError("whether to go on is answered with true or false", f"{path}.reply")
