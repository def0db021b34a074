"""What comes back for calls that wait: results of client tools, and answers of people (spec §2.2, §3.1, §7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from agjson.adapters.anthropic._out_blocks import json_text
from agjson.adapters.anthropic._out_tools import DENIED
from agjson.errors import ReplayError
from agjson.types import (
    UNSET,
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    AgSurfaceInteraction,
    AgToolResult,
    McpMessage,
    OpenAiSendFollowUpMessage,
    ResumeInput,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from agjson.wire import match_answer

__all__ = ["PendingCalls", "answered_asks", "injected_messages"]

# The kinds whose answer is what the tool returns; the others allow the tool to run.
_ANSWER_IS_RESULT = frozenset(("form", "text", "choice"))

_SHARED = tuple(name for name in ToolResultBlock.__struct_fields__ if name in frozenset(AgToolResult.__struct_fields__))


class PendingCalls:
    """The calls of a history that wait for a result from outside, and the results that have come for them.

    Args:
        history: the history.
    """

    def __init__(self, history: Sequence[AgMessage]) -> None:
        blocks = [block for message in history for block in message.content]
        self._calls = {block.tool_call_id: block for block in blocks if isinstance(block, ToolCallBlock)}
        self._answered = {
            block.tool_call_id
            for block in blocks
            if isinstance(block, ToolResultBlock) and block.outcome != "input_required"
        }
        self.messages: list[AgMessage] = []

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
            raise ReplayError(f"the thread has no call {tool_call_id!r}", path)
        if call.provider_executed:
            raise ReplayError(f"the provider runs call {tool_call_id!r} itself", path)
        if tool_call_id in self._answered:
            raise ReplayError(f"call {tool_call_id!r} has a result already", path)
        return call

    def call_of(self, ask_id: str, asks: Sequence[AgPausedAsk]) -> tuple[AgPausedAsk | None, ToolCallBlock | None]:
        """The ask of an id and the call that it gates; without the ask, the call that the id names.

        Args:
            ask_id: the id of the ask.
            asks: the asks of the thread, as far as the caller knows them.
        """
        for ask in asks:
            if ask.ask_id == ask_id:
                return ask, self._calls.get(ask.tool_call_id or "")
        named = [call for id, call in self._calls.items() if ask_id == id or ask_id.endswith(f":{id}")]
        return None, named[-1] if named else None

    def land(self, result: ToolResultBlock, path: str) -> None:
        """Take the result of a call that waits.

        Args:
            result: the result.
            path: the JSON path of what it came from.

        Raises:
            ReplayError: no call waits for it, or it only says that the call goes on waiting.
        """
        self.call(result.tool_call_id, path)
        if result.outcome == "input_required":
            raise ReplayError(f"call {result.tool_call_id!r} still waits: send its result when it is there", path)
        self._answered.add(result.tool_call_id)
        self.messages.append(AgMessage(id=f"{result.tool_call_id}:result", role="tool", content=[result]))

    def land_all(self, results: Iterable[AgToolResult], path: str) -> list[str]:
        """Take results that a client or the host has sent.

        Args:
            results: the results.
            path: the JSON path of their list.

        Returns:
            The members that cannot be honoured: the Messages API knows one result for a call, taken up at once.

        Raises:
            ReplayError: no call waits for one of them.
        """
        unsupported: list[str] = []
        for index, result in enumerate(results):
            self.land(_block(result), f"{path}[{index}].toolCallId")
            if result.will_continue:
                unsupported.append(f"{path[2:]}[{index}].willContinue")
            if result.scheduling is not None:
                unsupported.append(f"{path[2:]}[{index}].scheduling")
        return unsupported

    def is_answered(self, tool_call_id: str) -> bool:
        """Whether a call has a result.

        Args:
            tool_call_id: the call.
        """
        return tool_call_id in self._answered


def _block(result: AgToolResult) -> ToolResultBlock:
    fields: dict[str, Any] = {name: getattr(result, name) for name in _SHARED}
    return ToolResultBlock(**fields)


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
            pending.messages.append(_spoken(answer, ask))
            continue
        if answer.status == "resolved" and (ask is None or ask.kind not in _ANSWER_IS_RESULT):
            allowed.append(_edited(pending.call(call.tool_call_id, f"{path}.askId"), answer, edits, path))
            continue
        if answer.status == "resolved":
            content = [TextBlock(text=_words(answer, ask))]
            result = ToolResultBlock(tool_call_id=call.tool_call_id, outcome="ok", content=content)
        else:
            cancelled = answer.status == "cancelled"
            result = _refusal(call.tool_call_id, answer.reason, cancelled=cancelled)
        pending.land(result, f"{path}.askId")
    return allowed


def _refusal(tool_call_id: str, reason: str | None, *, cancelled: bool) -> ToolResultBlock:
    """The result of a call that a person did not allow, or did not want to be asked about."""
    words = "The request was dismissed." if cancelled else DENIED
    text = f"{words} {reason}" if reason and reason.strip() else words
    return ToolResultBlock(tool_call_id=tool_call_id, outcome="denied", content=[TextBlock(text=text)])


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
    messages: list[AgMessage] = []
    unsupported: list[str] = []
    for index, action in enumerate(actions):
        if isinstance(action, McpMessage):
            text = action.params.content.text
        elif isinstance(action, OpenAiSendFollowUpMessage):
            text = action.prompt
        else:
            unsupported.append(f"uiActions[{index}]")
            continue
        messages.append(AgMessage(id=f"{action.surface_id}:{index}", role="user", content=[TextBlock(text=text)]))
    return messages, unsupported
