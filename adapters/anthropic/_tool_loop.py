"""The tool loop of the provider's client, stopped where a client has to run a tool (spec §3 `tool-result`, §8.0)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from typing import Any

from agjson.adapters.anthropic._api import REASONING_TYPES
from agjson.adapters.anthropic._blocking import BlockingStream
from agjson.adapters.anthropic._gating import Gate
from agjson.adapters.anthropic._stop import goes_on
from agjson.normalizer import HostEnd
from agjson.types import ErrorOutcome

__all__ = ["ToolLoop", "is_runnable"]


def is_runnable(tool: object) -> bool:
    """Whether a tool is one that the provider's client runs, rather than a declaration.

    Args:
        tool: an element of ``tools``.
    """
    return not isinstance(tool, Mapping) and callable(getattr(tool, "to_dict", None))


class ToolLoop:
    """One turn of ``client.beta.messages.tool_runner``: native events, and the results of tools as user messages.

    Tools of the client stand in the loop as tools whose result is thrown away: so the others of the same answer run as
    ever, and the loop ends there.

    Args:
        client: the client.
        params: the arguments of the request; their tools are the declarations of `tools`, then those of the input.
        tools: the tools of the host.
        max_iterations: how many requests it may make.
        gate: says which calls need a person; the loop ends at a reply with one of them, and runs no tool of that
            reply. None: none does.
    """

    def __init__(
        self,
        client: Any,
        params: Mapping[str, Any],
        tools: Sequence[Any],
        max_iterations: int,
        gate: Gate | None = None,
    ) -> None:
        self._gate = gate
        self._client = client
        self._params = dict(params)
        self._max = max_iterations
        declared = list(self._params.pop("tools", ()))
        self._tools: list[Any] = [*tools, *declared[len(tools) :]]
        self._of_client = frozenset(
            tool["name"] for tool in self._tools if not is_runnable(tool) and "input_schema" in tool
        )
        choice = self._params.get("tool_choice") or {}
        self._forced = choice.get("type") in ("any", "tool")
        self._count = 0
        self._reason: Any = None
        self._capped = False

    def run(self, blocking: BlockingStream) -> Generator[Any]:
        """The natives of a blocking client.

        Args:
            blocking: learns which response is being read.
        """
        runner = self._runner(is_async=False)
        try:
            for stream in runner:
                self._begin()
                blocking.response = stream.response
                for event in stream:
                    self._note(event)
                    yield event
                if self._reason == "tool_use":
                    message = stream.get_final_message()
                    asked = None if self._gate is None else self._gate.ask_for(message)
                    if asked is not None:
                        yield asked
                        break
                    self._let_answer(runner)
                    own_results = _replace_reply(runner, message)
                    results = runner.generate_tool_call_response()
                    waiting = self._waiting(message)
                    yield from self._told(results, waiting)
                    if self._is_over(waiting):
                        break
                    own_results += [] if results is None else results["content"]
                elif goes_on(self._reason):
                    _replace_reply(runner, stream.get_final_message())
                else:
                    break
            yield from self._end()
        finally:
            runner.close()

    async def run_async(self) -> AsyncGenerator[Any]:
        """The natives of an asynchronous client."""
        runner = self._runner(is_async=True)
        try:
            async for stream in runner:
                self._begin()
                async for event in stream:
                    self._note(event)
                    yield event
                if self._reason == "tool_use":
                    message = await stream.get_final_message()
                    asked = None if self._gate is None else await self._gate.ask_for_async(message)
                    if asked is not None:
                        yield asked
                        break
                    self._let_answer(runner)
                    own_results = _replace_reply(runner, message)
                    results = await runner.generate_tool_call_response()
                    waiting = self._waiting(message)
                    for native in self._told(results, waiting):
                        yield native
                    if self._is_over(waiting):
                        break
                    own_results += [] if results is None else results["content"]
                elif goes_on(self._reason):
                    _replace_reply(runner, await stream.get_final_message())
                else:
                    break
            for native in self._end():
                yield native
        finally:
            await runner.close()

    def _runner(self, *, is_async: bool) -> Any:
        tools = [_stand_in(tool, is_async=is_async) if self._is_of_client(tool) else tool for tool in self._tools]
        # What the provider keeps of a conversation is not ours: every request brings the whole of it.
        params = {"thread": False, **self._params}
        if self._gate is not None:
            # Before the reply is whole nobody knows whether one of its calls needs a person.
            params["run_tools_eagerly"] = False
        return self._client.beta.messages.tool_runner(**params, tools=tools, stream=True, max_iterations=self._max)

    def _is_of_client(self, tool: Any) -> bool:
        return not is_runnable(tool) and tool.get("name") in self._of_client

    def _begin(self) -> None:
        self._count += 1
        self._reason = None
        self._capped = False

    def _note(self, event: Any) -> None:
        if event.type == "message_delta" and event.delta.stop_reason is not None:
            self._reason = event.delta.stop_reason

    def _let_answer(self, runner: Any) -> None:
        """Force no tool a second time. It comes before the tools run, as it makes the runner forget their results."""
        if self._forced:
            self._forced = False
            runner.set_messages_params(lambda params: {k: v for k, v in params.items() if k != "tool_choice"})

    def _waiting(self, message: Any) -> set[str]:
        """The calls that the client has to run."""
        return {
            block.id
            for block in message.content
            if block.type == "tool_use"
            and block.name in self._of_client
            and getattr(block, "toolset_name", None) is None
        }

    def _told(self, results: Any, waiting: set[str]) -> Iterator[Any]:
        content = [] if results is None else [each for each in results["content"] if each["tool_use_id"] not in waiting]
        if content:
            yield {"role": "user", "content": content}

    def _is_over(self, waiting: set[str]) -> bool:
        self._capped = not waiting and self._count >= self._max
        return bool(waiting) or self._capped

    def _end(self) -> Iterator[Any]:
        if self._capped:
            message = f"the loop has made {self._count} requests, and the model still calls tools"
            yield HostEnd(outcome=ErrorOutcome(message=message, code="max_iterations"), finish_reason="other")


def _replace_reply(runner: Any, message: Any) -> list[Any]:
    """Put a reply without what the API takes back from nobody into the runner's history, before its tools run.

    The runner sends a reply back as it came, and the API refuses a history with an empty text, with reasoning that is
    not signed, or with reasoning at the end of a reply. The runner runs the tools of a reply again if its history
    changes later, so that the place of their results is made here.

    Returns:
        Where the results of the tools go once they are there. It counts only where the reply was replaced: else the
        runner sees to them.
    """
    results: list[Any] = []
    kept = [block for block in message.content if _goes_back(block)]
    while kept and kept[-1].type in REASONING_TYPES:
        kept.pop()
    if len(kept) < len(message.content):
        reply = [{**message.to_param(), "content": kept}] if kept else []
        calls = any(block.type == "tool_use" for block in kept)
        runner.append_messages(*reply, *([{"role": "user", "content": results}] if calls else ()))
    return results


def _goes_back(block: Any) -> bool:
    if block.type == "text":
        return bool(block.text.strip())
    return block.type != "thinking" or bool(block.signature)


def _stand_in(definition: Mapping[str, Any], *, is_async: bool) -> Any:
    """A tool that the runner takes for one of its own, under the very same declaration."""
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool

    if is_async:

        class AsyncStandIn(BetaAsyncBuiltinFunctionTool):
            def to_dict(self) -> Any:
                return definition

            async def call(self, input: object) -> str:
                return ""

        return AsyncStandIn()

    class StandIn(BetaBuiltinFunctionTool):
        def to_dict(self) -> Any:
            return definition

        def call(self, input: object) -> str:
            return ""

    return StandIn()
