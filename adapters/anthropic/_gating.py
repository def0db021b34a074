"""Tools that run only when a person has agreed: asked for in the loop, run once when the answer is there (spec §7)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agjson.adapters.anthropic._in_blocks import block_from_native
from agjson.adapters.anthropic.normalizer import AnthropicNormalizer
from agjson.agents import Invocation
from agjson.approvals import AskRefusedError, CallRequest, Decision, Plan
from agjson.failures import describe_failure
from agjson.types import AgGrantMode, AgMessage, TextBlock, ToolResultBlock

__all__ = ["AskFor", "Gate", "GatedNormalizer", "IsGated", "Landed", "is_gated_by", "landed_message"]

IsGated: TypeAlias = Callable[[CallRequest], bool]
"""Says whether a call needs a person."""


@dataclass(frozen=True, slots=True)
class AskFor:
    """In place of a native event: calls that a person has to allow."""

    calls: tuple[CallRequest, ...]


@dataclass(frozen=True, slots=True)
class Landed:
    """In place of a native event: the result of a call of an earlier turn."""

    result: ToolResultBlock


class GatedNormalizer(AnthropicNormalizer):
    """A normalizer that also takes `AskFor` and `Landed`.

    Args:
        grant_modes: the scopes that an ask offers.
        **settings: those of `AnthropicNormalizer`.
    """

    def __init__(self, *, grant_modes: Sequence[AgGrantMode] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self._grant_modes = list(grant_modes) or None

    def _plain(self, native: object) -> Any:
        return native if isinstance(native, (AskFor, Landed)) else super()._plain(native)

    def _on(self, native: Any) -> None:
        if isinstance(native, AskFor):
            for call in native.calls:
                self.out.hitl_ask(
                    kind="approval",
                    ask_id=f"{self.turn_id}:{call.call_id}",
                    tool_call_id=call.call_id,
                    message=f"Run {call.name}?",
                    grant_modes=self._grant_modes,
                    turn_id=self.turn_id,
                )
        elif isinstance(native, Landed):
            self._on_tool_result(native.result)
        else:
            super()._on(native)


def is_gated_by(gated: Collection[str] | IsGated, tools: Collection[str]) -> IsGated | None:
    """What says whether a call needs a person; None: none ever does.

    Args:
        gated: names of tools, or what says it.
        tools: the names of the tools that the loop runs.

    Raises:
        ValueError: a name is that of no such tool.
    """
    if callable(gated):
        return gated
    names = frozenset([gated] if isinstance(gated, str) else gated)
    unknown = sorted(names - frozenset(tools))
    if unknown:
        have = ", ".join(sorted(tools)) or "none"
        raise ValueError(
            f"gated names tools that this agent does not run: {', '.join(map(repr, unknown))}; it runs by name: {have}"
        )
    return (lambda call: call.name in names) if names else None


class Gate:
    """The decisions on gated calls of one run: what is still to be asked, and what is to be run now.

    Args:
        invocation: the run.
        is_gated: whether a call needs a person.
        tools: the tools that the loop runs, by name.
    """

    def __init__(self, invocation: Invocation, is_gated: IsGated, tools: Mapping[str, Any]) -> None:
        self._invocation = invocation
        self._is_gated = is_gated
        self._tools = tools

    # Asked for

    def ask_for(self, message: Any) -> AskFor | None:
        """What of a reply needs a person; None: nothing does, and its tools may run.

        Args:
            message: the reply, as an object of the provider's client.

        Raises:
            AskRefusedError: two of its calls have one id, so that nobody could say which of them is allowed.
        """
        return _asked(self._invocation.plan_sync(self._calls(message), self._is_gated), message)

    async def ask_for_async(self, message: Any) -> AskFor | None:
        """As `ask_for`.

        Args:
            message: as for `ask_for`.

        Raises:
            AskRefusedError: as `ask_for`.
        """
        return _asked(await self._invocation.plan(self._calls(message), self._is_gated), message)

    def _calls(self, message: Any) -> list[CallRequest]:
        return [
            CallRequest(call_id=block.id, name=block.name, arguments=block.input, index=index)
            for index, block in enumerate(message.content)
            if block.type == "tool_use" and getattr(block, "toolset_name", None) is None and block.name in self._tools
        ]

    # Decided

    @property
    def has_decisions(self) -> bool:
        """Whether the run goes on from decisions on gated calls."""
        return any(each.call is not None for each in self._invocation.decisions)

    def expected(self) -> list[AgMessage]:
        """Results in the place of those that there will be, to see whether the request can be made."""
        ids = [call.call_id for call, _ in self._decided()]
        return [landed_message(ToolResultBlock(tool_call_id=id, content=[], outcome="ok")) for id in ids]

    def run(self) -> Iterator[ToolResultBlock]:
        """Run what is allowed, one after the other; the results come in the order of the calls."""
        for call, result in self._decided():
            yield self._result(call, self._started(call)) if result is None else result

    async def run_async(self) -> AsyncIterator[ToolResultBlock]:
        """As `run`, for asynchronous tools."""
        for call, result in self._decided():
            if result is None:
                returned = self._started(call)
                if inspect.isawaitable(returned):
                    try:
                        returned = await returned
                    except Exception as error:
                        returned = error
                result = self._result(call, returned)
            yield result

    def _decided(self) -> list[tuple[CallRequest, ToolResultBlock | None]]:
        """The calls in their order, each with its result where it does not run."""
        decided: dict[str, tuple[CallRequest, ToolResultBlock | None]] = {}
        for each in self._invocation.decisions:
            call = each.call
            if call is None:
                continue
            if not each.runs:
                decided[call.call_id] = (call, _block_of_refusal(each, call))
            elif each.response is not None:
                decided[call.call_id] = (call, _block(call.call_id, each.response, is_error=False))
            else:
                # A call that another ask refuses stays refused.
                decided.setdefault(call.call_id, (call, None))
        decided.update((call.call_id, (call, None)) for call in self._invocation.held)
        return sorted(decided.values(), key=lambda each: each[0].index)

    def _started(self, call: CallRequest) -> Any:
        """What the tool returns, or the exception that it raises."""
        tool = self._tools.get(call.name)
        if tool is None:
            return LookupError(f"there is no tool {call.name!r} any more")
        try:
            return tool.call(call.arguments)
        except Exception as error:
            return error

    def _result(self, call: CallRequest, returned: Any) -> ToolResultBlock:
        if isinstance(returned, Exception):
            content = getattr(returned, "content", None)
            if not isinstance(content, (str, list)):
                content = describe_failure(returned).message or type(returned).__name__
            return _block(call.call_id, content, is_error=True)
        return _block(call.call_id, returned, is_error=False)


def landed_message(result: ToolResultBlock) -> AgMessage:
    """The result of a call as the message that it is stored in.

    Args:
        result: the result.
    """
    return AgMessage(id=f"{result.tool_call_id}:result", role="tool", content=[result])


def _block(call_id: str, content: Any, *, is_error: bool) -> ToolResultBlock:
    native: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error:
        native["is_error"] = True
    block = block_from_native(native)
    if isinstance(block, ToolResultBlock):
        return block
    return ToolResultBlock(tool_call_id=call_id, content=[TextBlock(text=str(content))], outcome="error")


def _asked(plan: Plan, message: Any) -> AskFor | None:
    if not plan.ask:
        return None
    ids = [block.id for block in message.content if block.type == "tool_use"]
    repeated = sorted({id for id in ids if ids.count(id) > 1})
    if repeated:
        raise AskRefusedError(f"several calls of one reply have the id {repeated[0]!r}: none of them was run")
    return AskFor(plan.ask)


_WHY = {"declined": "The user declined this call.", "cancelled": "The user cancelled this call."}


def _block_of_refusal(decision: Decision, call: CallRequest) -> ToolResultBlock:
    words = _WHY.get(decision.verdict, "Nobody allowed this call in time.")
    if decision.verdict in ("resolved", "met"):
        words = "Another question about this call was not answered with a yes."
    reason = None if decision.answer is None else decision.answer.reason
    text = f"{words} Reason: {reason}" if reason else words
    return ToolResultBlock(tool_call_id=call.call_id, content=[TextBlock(text=text)], outcome="denied")
