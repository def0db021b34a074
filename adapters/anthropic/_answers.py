"""What comes back for calls that wait: results of client tools, and answers of people (spec §2.2, §3.1, §7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from agjson.adapters.anthropic._out_blocks import json_text
from agjson.agents.intake import words_of_surfaces
from agjson.errors import ReplayError
from agjson.transcript import Occurrence, UnmatchedCode, groups, occurrences, refusal, settle
from agjson.types import (
    UNSET,
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    AgSurfaceInteraction,
    AgToolResult,
    ResumeInput,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from agjson.wire import match_answer

__all__ = ["PendingCalls", "answered_asks", "injected_messages"]

# The kinds whose answer is what the tool returns; the others allow the tool to run.
_ANSWER_IS_RESULT = frozenset(("form", "text", "choice"))

_WHY: dict[UnmatchedCode, str] = {
    "hosted_call": "the provider runs call {!r} itself",
    "partial_result": "call {!r} still waits: send its result when it is whole",
    "settled_call": "call {!r} has a result already",
    "unknown_call": "the thread has no call {!r}",
}


class PendingCalls:
    """The calls of a history that wait for a result from outside, and what has come for them.

    Args:
        history: the history.

    Attributes:
        spoken: answers to asks that gate no call, as words of the user.
    """

    def __init__(self, history: Sequence[AgMessage]) -> None:
        self._history = history
        self._results: list[ToolResultBlock | AgToolResult] = []
        self._paths: list[str] = []
        self.spoken: list[AgMessage] = []
        self._has_placeholders = False
        # Of each id the first call that waits, else the last.
        self._calls: dict[str, Occurrence] = {}
        for call in occurrences(history):
            known = self._calls.get(call.call_id)
            if known is None or known.completed:
                self._calls[call.call_id] = call
            self._has_placeholders |= bool(call.placeholders) and not call.completed

    def call(self, tool_call_id: str, path: str) -> ToolCallBlock:
        """The call that waits under an id.

        Args:
            tool_call_id: the id.
            path: the JSON path of the member that names it.

        Raises:
            ReplayError: no call waits under this id.
        """
        call = self._calls.get(tool_call_id)
        if call is None:
            raise _refused("unknown_call", tool_call_id, path)
        if call.hosted or call.completed or call.ambiguous:
            raise _refused("hosted_call" if call.hosted else "settled_call", tool_call_id, path)
        return call.call

    def call_of(self, ask_id: str, asks: Sequence[AgPausedAsk]) -> tuple[AgPausedAsk | None, ToolCallBlock | None]:
        """The ask of an id and the call that it gates; without the ask, the call that the id names.

        Args:
            ask_id: the id of the ask.
            asks: the asks of the thread, as far as the caller knows them.
        """
        ask = next((ask for ask in asks if ask.ask_id == ask_id), None)
        if ask is not None:
            call = self._calls.get(ask.tool_call_id or "")
        else:
            call = next((self._calls[id] for id in reversed(self._calls) if f":{ask_id}".endswith(f":{id}")), None)
        return ask, None if call is None else call.call

    def land(self, result: ToolResultBlock | AgToolResult, path: str) -> None:
        """Take the result of a call that waits.

        Args:
            result: the result.
            path: the JSON path of what it came from.

        Raises:
            ReplayError: it only says that the call goes on waiting.
        """
        if result.outcome == "input_required":
            raise _refused("partial_result", result.tool_call_id, path)
        self._results.append(result)
        self._paths.append(path)

    def land_all(self, results: Iterable[AgToolResult], path: str) -> list[str]:
        """Take results that a client or the host has sent.

        Args:
            results: the results.
            path: the JSON path of their list.

        Returns:
            The members that cannot be honoured: the Messages API knows one result for a call, taken up at once.

        Raises:
            ReplayError: one of them only says that its call goes on waiting.
        """
        unsupported: list[str] = []
        for index, result in enumerate(results):
            self.land(result, f"{path}[{index}].toolCallId")
            if result.will_continue:
                unsupported.append(f"{path[2:]}[{index}].willContinue")
            if result.scheduling is not None:
                unsupported.append(f"{path[2:]}[{index}].scheduling")
        return unsupported

    def settled(self, allowed: Iterable[ToolCallBlock] = ()) -> list[AgMessage]:
        """The history with everything that has come for it.

        Args:
            allowed: calls that people have allowed, which must have been run.

        Raises:
            ReplayError: a result that no call waits for, an allowed call without result, or a batch that still waits.
        """
        settled = settle(self._history, self._results)
        for each in settled.unmatched:
            raise _refused(each.code, each.id, self._paths[each.index])
        returned = {result.tool_call_id for result in self._results}
        for block in allowed:
            if block.tool_call_id not in returned:
                raise ReplayError(f"call {block.tool_call_id!r} was allowed: run it, and hand its result to to_native")
        for group in groups(settled.messages) if self._has_placeholders else ():
            waits = [call for call in group.occurrences if call.placeholders and not call.completed]
            if waits and group.places[-1] >= len(self._history):
                words = f"call {waits[0].call_id!r} still waits: its batch goes back whole"
                raise ReplayError(words, waits[0].place.path)
        return [*settled.messages, *self.spoken]


def _refused(code: UnmatchedCode, id: str, path: str) -> ReplayError:
    return ReplayError(_WHY[code].format(id), path)


def answered_asks(
    ag_input: ResumeInput, pending: PendingCalls, asks: Sequence[AgPausedAsk], edits: Collection[str]
) -> list[ToolCallBlock]:
    """Land the answers of people; the calls that they allow are returned, to be run by the host.

    Args:
        ag_input: the input.
        pending: the calls that wait.
        asks: the asks of the thread, as far as the caller knows them.
        edits: names of the tools whose arguments an answer may change.

    Raises:
        ReplayError: an answer to no ask that is open, or changed arguments where they may not be changed.
        ValidationError: an answer that does not fit its ask.
    """
    allowed: list[ToolCallBlock] = []
    for index, answer in enumerate(ag_input.answers or ()):
        path = f"$.answers[{index}]"
        ask, call = pending.call_of(answer.ask_id, asks)
        if ask is not None:
            match_answer(answer, ask)
        if call is None:
            if ask is None or ask.tool_call_id is not None:
                raise ReplayError(f"the thread has no ask {answer.ask_id!r}", f"{path}.askId")
            pending.spoken.append(_spoken(answer, ask))
            continue
        if answer.status == "resolved" and (ask is None or ask.kind not in _ANSWER_IS_RESULT):
            allowed.append(_edited(pending.call(call.tool_call_id, f"{path}.askId"), answer, edits, path))
            continue
        if answer.status == "resolved":
            content = [TextBlock(text=_words(answer, ask))]
            result = ToolResultBlock(tool_call_id=call.tool_call_id, outcome="ok", content=content)
        else:
            result = refusal(call.tool_call_id, answer)
        pending.land(result, f"{path}.askId")
    return allowed


def _edited(call: ToolCallBlock, answer: AgHitlAnswer, edits: Collection[str], path: str) -> ToolCallBlock:
    """The call as it may run: with the arguments of the reply, if it has any."""
    if not isinstance(answer.reply, dict) or answer.reply == call.input:
        return call
    if call.name not in edits:
        raise ReplayError(f"the arguments of {call.name!r} may not be changed by an answer", f"{path}.reply")
    return replace(call, input=answer.reply)


def _words(answer: AgHitlAnswer, ask: AgPausedAsk | None) -> str:
    """What the answer says, as text: the label of a choice, the text itself, else JSON."""
    reply = answer.reply
    for choice in (ask.choices if ask is not None else None) or ():
        if reply == choice.id:
            return choice.label
    if isinstance(reply, str):
        return reply
    return answer.reason or "ok" if reply is UNSET else json_text(reply)


def _spoken(answer: AgHitlAnswer, ask: AgPausedAsk) -> AgMessage:
    """An answer to an ask that gates no call, as words of the user."""
    if answer.status == "resolved":
        text = _words(answer, ask)
    else:
        text = " ".join(filter(None, ("I decline." if answer.status == "declined" else "I cancel.", answer.reason)))
    return AgMessage(id=f"{answer.ask_id}:answer", role="user", content=[TextBlock(text=text)])


def injected_messages(actions: Iterable[AgSurfaceInteraction]) -> tuple[list[AgMessage], list[str]]:
    """What surfaces say in the user's name, and the other interactions, which no model reads (spec §6).

    Args:
        actions: the interactions of an input.
    """
    said, others = words_of_surfaces(actions)
    messages = [
        AgMessage(id=f"{words.surface_id}:{words.place}", role="user", content=[TextBlock(text=words.text)])
        for words in said
    ]
    return messages, others
