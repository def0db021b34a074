"""Middleware for LangChain's ``create_agent``: checks of what goes in and out, told in the stream (spec §4, §2.1)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langgraph.types import Command

from agjson.adapters.langgraph.facts import denied, ran_with
from agjson.middleware.langchain import tell_guardrail
from agjson.types import AgGuardrailTarget, AgSafety

__all__ = ["AgJSONMiddleware", "Verdict", "denied_result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a check has found.

    Attributes:
        passed: it may go on.
        reason: why not, in words that the model and the user may read.
        safety: the ratings behind it.
    """

    passed: bool
    reason: str | None = None
    safety: Sequence[AgSafety] = ()


Found: TypeAlias = Verdict | bool | None
"""What a check returns: a verdict, whether it passed, or None: there is nothing to say."""

MessagesCheck: TypeAlias = Callable[[list[BaseMessage]], Found | Awaitable[Found]]
"""A check of messages: those that go to the model, or those that it has answered with."""

CallCheck: TypeAlias = Callable[[ToolCall], Found | Awaitable[Found]]
"""A check of a tool call, as it is about to run."""

_REFUSED = "This was not allowed."


class AgJSONMiddleware(AgentMiddleware[Any, Any, Any]):
    """Tells what an agent's stream alone does not: what guardrails found, what was denied, what was edited.

    * A check that finds something stops: the model is not asked, its answer is replaced, or the call does not run and
      is ``denied``. Each finding is a `guardrail.result`; so is what passed.
    * A call that runs as something else than the model has called, because a person or another middleware has changed
      it, names what ran in the ``toolMetadata`` of its result, under ``langgraph/ranWith``.

    What is said of a call stands in its ``ToolMessage``, so that it is in the stored conversation as in the stream; no
    model reads it.

    Give it as the last of the list: then it sees what the others have changed. It adds no node and no state to the
    agent. Without a reader of AgJSON its checks hold all the same.

    What the model streams can be read before its answer is checked: a replaced answer is taken back afterwards.

    Args:
        check_input: of the messages before each call of the model, results of tools among them.
        check_output: of each answer of the model.
        check_call: of each tool call.
        name: the name of the guardrail, and of this middleware, of which an agent takes one with each name.

    A check is a function or an asynchronous function; the latter needs an agent that is run asynchronously.
    """

    def __init__(
        self,
        *,
        check_input: MessagesCheck | None = None,
        check_output: MessagesCheck | None = None,
        check_call: CallCheck | None = None,
        name: str = "AgJSONMiddleware",
    ) -> None:
        super().__init__()
        self.tools = []
        self._check_input = check_input
        self._check_output = check_output
        self._check_call = check_call
        self._name = name

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    # Around the model

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Check what goes to the model, and what comes back; LangChain calls it.

        Args:
            request: what goes to the model.
            handler: asks it.

        Raises:
            TypeError: a check is asynchronous.
        """
        refused = self._judged("input", _now(self._check_input, request.messages))
        if refused is not None:
            return AIMessage(content=refused)
        response = handler(request)
        return self._answer(response, _now(self._check_output, response.result))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """As `wrap_model_call`, on the event loop.

        Args:
            request: what goes to the model.
            handler: asks it.
        """
        refused = self._judged("input", await _later(self._check_input, request.messages))
        if refused is not None:
            return AIMessage(content=refused)
        response = await handler(request)
        return self._answer(response, await _later(self._check_output, response.result))

    def _answer(self, response: ModelResponse[Any], found: Found) -> ModelResponse[Any] | AIMessage:
        refused = self._judged("output", found)
        if refused is None:
            return response
        # Under its id, so that the answer that has streamed is replaced.
        last = next((each for each in reversed(response.result) if isinstance(each, AIMessage)), None)
        return AIMessage(content=refused, id=None if last is None else last.id)

    # Around a tool

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Check a call that is about to run; LangChain calls it.

        Args:
            request: the call.
            handler: runs it.

        Raises:
            TypeError: the check is asynchronous.
        """
        refused = self._judged("tool", _now(self._check_call, request.tool_call))
        if refused is not None:
            return denied_result(request.tool_call, refused)
        return _with_what_ran(request, handler(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`, on the event loop.

        Args:
            request: the call.
            handler: runs it.
        """
        refused = self._judged("tool", await _later(self._check_call, request.tool_call))
        if refused is not None:
            return denied_result(request.tool_call, refused)
        return _with_what_ran(request, await handler(request))

    def _judged(self, target: AgGuardrailTarget, found: Found) -> str | None:
        """Tell what was found; returns why to stop, None: go on."""
        if found is None:
            return None
        verdict = found if isinstance(found, Verdict) else Verdict(passed=found)
        if not isinstance(verdict.passed, bool):
            # Words that refuse, say, would count as yes.
            raise TypeError(f"a check returns a Verdict, a bool or None, not {type(verdict.passed).__name__}")
        tell_guardrail(
            target,
            verdict.passed,
            action=None if verdict.passed else "block",
            reason=verdict.reason,
            guardrail_name=self._name,
            safety=verdict.safety or None,
        )
        return None if verdict.passed else verdict.reason or _REFUSED


def _now(check: Callable[[Any], Found | Awaitable[Found]] | None, what: Any) -> Found:
    found = None if check is None else check(what)
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        raise TypeError("an asynchronous check needs an agent that is run by ainvoke or astream")
    return found


async def _later(check: Callable[[Any], Found | Awaitable[Found]] | None, what: Any) -> Found:
    found = None if check is None else check(what)
    return await found if inspect.isawaitable(found) else found


def denied_result(call: ToolCall, reason: str = _REFUSED) -> ToolMessage:
    """The result of a call that was not allowed: its outcome is ``denied``, which LangChain has no word for (spec §2).

    For ``wrap_tool_call`` of middleware of your own. The model reads the reason, as that of a failure.

    Args:
        call: the call, ``request.tool_call``.
        reason: why.
    """
    return ToolMessage(
        content=reason,
        tool_call_id=str(call["id"]),
        name=call["name"],
        status="error",
        response_metadata=denied(),
    )


def _with_what_ran(request: ToolCallRequest, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
    """A result that names what has run for its call, where that is not what the model has called."""
    ran = request.tool_call
    called = _called(request.state, ran["id"])
    if called is None or (called["name"], called["args"]) == (ran["name"], ran["args"]):
        return result
    if isinstance(result, ToolMessage):
        return _marked(result, ran)
    update = result.update
    if not isinstance(update, dict) or not isinstance(messages := update.get("messages"), list):
        return result
    marked = [
        _marked(each, ran) if isinstance(each, ToolMessage) and each.tool_call_id == ran["id"] else each
        for each in messages
    ]
    return replace(result, update={**update, "messages": marked})


def _marked(message: ToolMessage, ran: ToolCall) -> ToolMessage:
    told = ran_with(message.response_metadata, ran["name"], ran["args"])
    return message.model_copy(update={"response_metadata": told})


def _called(state: Any, id: str | None) -> ToolCall | None:
    """The call as the model has made it."""
    messages = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    for message in reversed(messages or []):
        if isinstance(message, AIMessage):
            return next((call for call in message.tool_calls if call["id"] == id), None)
    return None
