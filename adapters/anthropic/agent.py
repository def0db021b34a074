"""An agent on the Messages API: one request, or the tool loop of the provider's client (spec §3, §8.0)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agjson.adapters.anthropic._blocking import BlockingStream
from agjson.adapters.anthropic._loop import ToolLoop, is_runnable
from agjson.adapters.anthropic._repair import UnsupportedBlocks
from agjson.adapters.anthropic._stop import goes_on
from agjson.adapters.anthropic.inbound import AnthropicCall, to_native
from agjson.adapters.anthropic.normalizer import AnthropicNormalizer
from agjson.agents import Agent, Continuations, Invocation, NormalizerSettings, OnPaused, ThreadStore
from agjson.fold import Reducer
from agjson.types import UNSET, AgCapabilities, AgMessage, AgRunConfig, NamedToolChoice, StartInput, UnsetType

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicAgent"]

# What lets the provider stop in the middle of its own work and wait to be asked to go on.
_PAUSING = frozenset(("compaction", "container", "context_management", "mcp_servers"))


class AnthropicAgent(Agent):
    """Runs a model of the Messages API.

    Without runnable tools a turn is one request; a turn that the provider pauses is continued by further ones. A call
    of a declared tool ends the turn (``finishReason: "tool_call"``), and its result comes back as a ``tool-result``
    input. With runnable tools (``@beta_tool`` and the like) the loop of ``client.beta.messages.tool_runner`` runs them,
    and goes on until the model calls none, or one that the client has to run.

    Args:
        client: ``Anthropic`` or ``AsyncAnthropic``, or a client of the same shape (Bedrock, Vertex). With `run` a
            blocking client is read in a thread; with `run_sync` an asynchronous one on an event loop of its own, so
            that it must not have been used on another.
        model: the model where the input names none.
        tools: tools of every request: declarations as dicts, provider tools among them, and runnable tools of the
            provider's client, of the client's own kind (asynchronous for ``AsyncAnthropic``).
        max_tokens: the limit of the answer in tokens where the input names none.
        beta: true for ``client.beta.messages``, or the names of the betas to ask for. It is used anyway where the
            request needs it.
        defaults: further arguments of every request, as ``client.messages.create`` takes them: ``system``,
            ``thinking``, ``mcp_servers``, ``metadata``. What an input says wins.
        max_iterations: how many requests the tool loop may make in one turn. Then the turn ends with an outcome of type
            ``error``, code ``max_iterations``.
        max_continuations: how many times a turn that the provider paused is continued. Then it ends with
            ``pause_turn``, and a start without messages goes on.
        unsupported: for content that the API has no place for: ``"refuse"`` the input, or ``"drop"`` it.
        store: as for `Agent`, like the four that follow.
        continuations: this adapter needs none: what it goes on with is the history.
        on_paused: what a start may do to a paused thread.
        capabilities: what the agent says of itself.
        close_timeout: how many seconds the close of a stream may take.
    """

    def __init__(
        self,
        client: Anthropic | AsyncAnthropic | Any,
        *,
        model: str,
        tools: Iterable[Any] = (),
        max_tokens: int = 4096,
        beta: bool | Sequence[str] = False,
        defaults: Mapping[str, Any] | None = None,
        max_iterations: int = 40,
        max_continuations: int = 8,
        unsupported: UnsupportedBlocks = "refuse",
        store: ThreadStore | None = None,
        continuations: Continuations | None = None,
        on_paused: OnPaused = "refuse",
        capabilities: AgCapabilities | UnsetType | None = UNSET,
        close_timeout: float = 5.0,
    ) -> None:
        super().__init__(
            store=store,
            continuations=continuations,
            on_paused=on_paused,
            capabilities=capabilities,
            close_timeout=close_timeout,
        )
        self.client = client
        self.model = model
        self.tools = tuple(tools)
        self.max_tokens = max_tokens
        self.max_iterations = max_iterations
        self.max_continuations = max_continuations
        self.unsupported: UnsupportedBlocks = unsupported
        self._beta = bool(beta)
        self._defaults = dict(defaults or {})
        if not isinstance(beta, bool):
            self._defaults["betas"] = list(beta)
        if self.tools:
            # As declarations, so that no tool of a client can take the name of one of these.
            self._defaults["tools"] = [tool.to_dict() if is_runnable(tool) else tool for tool in self.tools]
        self._runnable = frozenset(tool.name for tool in self.tools if is_runnable(tool) and hasattr(tool, "name"))
        self._loops = any(is_runnable(tool) for tool in self.tools)
        self._is_async = hasattr(client, "__aenter__")

    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> AnthropicNormalizer:
        return AnthropicNormalizer(**settings, multi=True)

    def _is_client_tool(self, name: str) -> bool:
        return name not in self._runnable

    def _prepare(self, invocation: Invocation) -> AnthropicCall:
        return self._call(invocation)

    def _call(self, invocation: Invocation, answers: Sequence[AgMessage] = ()) -> AnthropicCall:
        """The request for the conversation as it is stored, and for answers that this turn has had since.

        Raises:
            ReplayError: as `to_native`.
        """
        source, run = invocation.input, invocation.run
        messages = [*invocation.history, *invocation.messages, *answers]
        if run is not None:
            if run.context:
                messages = _with_context(messages, run, invocation)
            if answers or not isinstance(source, StartInput):
                # Forced once more, the model could never answer.
                run = replace(run, tool_choice=None) if _is_forced(run) else run
            run = replace(run, context=None)
        call = to_native(
            StartInput(
                thread_id=source.thread_id,
                turn_id=invocation.turn_id,
                messages=[],
                run=run,
                capabilities=invocation.capabilities,
                state=source.state,
                metadata=source.metadata,
            ),
            history=messages,
            model=self.model,
            max_tokens=self.max_tokens,
            defaults=self._defaults,
            missing_results="add" if isinstance(source, StartInput) else "refuse",
            unsupported=self.unsupported,
        )
        return replaced(call, beta=True) if self._beta or self._loops else call

    def _invoke(self, invocation: Invocation) -> AsyncIterator[Any] | Iterator[Any]:
        call: AnthropicCall = invocation.native
        if self._loops:
            loop = ToolLoop(self.client, call.params, self.tools, self.max_iterations)
            return loop.run_async() if self._is_async else BlockingStream(loop.run)
        if self._is_async:
            return self._requests_async(invocation, call)
        return BlockingStream(lambda blocking: self._requests(invocation, call, blocking))

    def _requests(self, invocation: Invocation, call: AnthropicCall, blocking: BlockingStream) -> Generator[Any]:
        answers: list[AgMessage] = []
        for left in range(self.max_continuations, -1, -1):
            answer = _Answer() if left and _may_pause(call) else None
            stream = call.endpoint(self.client).create(**call.params, stream=True)
            blocking.response = stream.response
            try:
                for event in stream:
                    if answer is not None:
                        answer.take(event)
                    yield event
            finally:
                stream.close()
            if answer is None or not answer.is_paused:
                return
            answers += answer.messages()
            call = self._call(invocation, answers)

    async def _requests_async(self, invocation: Invocation, call: AnthropicCall) -> AsyncIterator[Any]:
        answers: list[AgMessage] = []
        for left in range(self.max_continuations, -1, -1):
            answer = _Answer() if left and _may_pause(call) else None
            stream = await call.endpoint(self.client).create(**call.params, stream=True)
            try:
                async for event in stream:
                    if answer is not None:
                        answer.take(event)
                    yield event
            finally:
                await stream.close()
            if answer is None or not answer.is_paused:
                return
            answers += answer.messages()
            call = self._call(invocation, answers)


class _Answer:
    """An answer that the provider may pause: what of it goes back, as a later request would replay it."""

    def __init__(self) -> None:
        self._normalizer = AnthropicNormalizer("answer", "answer", multi=True)
        self._reducer = Reducer()

    def take(self, native: Any) -> None:
        """Take an event of the stream."""
        for event in self._normalizer.push(native):
            self._reducer.push(event)

    @property
    def is_paused(self) -> bool:
        """Whether the provider waits to be asked to go on."""
        return goes_on(self._normalizer.stop_reason)

    def messages(self) -> list[AgMessage]:
        """The answer, as it will be stored."""
        return list(self._reducer.result().messages)


def _may_pause(call: AnthropicCall) -> bool:
    tools = call.params.get("tools") or ()
    return bool(call.params.keys() & _PAUSING) or any("input_schema" not in tool for tool in tools)


def _is_forced(run: AgRunConfig) -> bool:
    return run.tool_choice == "required" or isinstance(run.tool_choice, NamedToolChoice)


def _with_context(messages: list[AgMessage], run: AgRunConfig, invocation: Invocation) -> list[AgMessage]:
    """The messages with the blocks that go beside a start, which stay where they were while its turn goes on."""
    turn = invocation.turn_id if isinstance(invocation.input, StartInput) else invocation.thread.started_by
    at = next((index for index, message in enumerate(messages) if message.turn_id == turn), len(invocation.history))
    context = AgMessage(id=f"{turn}:context", role="user", content=list(run.context or ()))
    return [*messages[:at], context, *messages[at:]]
