"""An agent on the Messages API: one request, or the tool loop of the provider's client (spec §3, §8.0)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace as replaced
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agjson.adapters.anthropic._blocking import BlockingStream
from agjson.adapters.anthropic._gating import (
    Gate,
    GatedNormalizer,
    IsGated,
    Landed,
    is_gated_by,
    landed_message,
)
from agjson.adapters.anthropic._repair import UnsupportedBlocks
from agjson.adapters.anthropic._stop import goes_on
from agjson.adapters.anthropic._tool_loop import ToolLoop, is_runnable
from agjson.adapters.anthropic.inbound import AnthropicCall, going_on, to_native, with_context
from agjson.adapters.anthropic.normalizer import AnthropicNormalizer
from agjson.agents import Agent, Continuations, Invocation, NormalizerSettings, OnPaused, ThreadStore
from agjson.fold import Reducer
from agjson.types import UNSET, AgCapabilities, AgGrantMode, AgInput, AgMessage, AgRunConfig, StartInput, UnsetType

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

    from agjson.approvals import Ledger

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
        gated: names of the runnable tools that need a person's approval, or a function that says it of a call. A turn
            whose model calls one of them pauses before any tool of that reply runs; what is decided runs once.
        grant_modes: the scopes that an approval offers (draft.2), such as this once or always; what each stands for is
            in the policy of the ledger.
        max_iterations: how many requests the tool loop may make in one turn. Then the turn ends with an outcome of type
            ``error``, code ``max_iterations``.
        max_continuations: how many times a turn that the provider paused is continued. Then it ends with
            ``pause_turn``, and a start without messages goes on.
        unsupported: for content that the API has no place for: ``"refuse"`` the input, or ``"drop"`` it.
        on_fallback_credit: gets the run and the ``fallback_credit_token`` of a refusal, which the host may put on a
            further request (``defaults``). It works like a bearer token, so it is in no event and in no thread.
        store: as for `Agent`, like the five that follow.
        approvals: the ledger. Without one asks have no tokens, edits and standing rules.
        continuations: this adapter needs none: what it goes on with is the history.
        on_paused: what a start may do to a paused thread.
        capabilities: what the agent says of itself.
        close_timeout: how many seconds the close of a stream may take.

    Raises:
        TypeError: a client without the Messages API; a tool that is neither a declaration nor runnable.
        ValueError: `gated` names a tool that the loop does not run, or there is a runnable toolset beside it.
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
        gated: Collection[str] | IsGated = (),
        grant_modes: Sequence[AgGrantMode] = (),
        max_iterations: int = 40,
        max_continuations: int = 8,
        unsupported: UnsupportedBlocks = "refuse",
        on_fallback_credit: Callable[[Invocation, str], object] | None = None,
        store: ThreadStore | None = None,
        approvals: Ledger | None = None,
        continuations: Continuations | None = None,
        on_paused: OnPaused = "refuse",
        capabilities: AgCapabilities | UnsetType | None = UNSET,
        close_timeout: float = 5.0,
    ) -> None:
        super().__init__(
            store=store,
            approvals=approvals,
            continuations=continuations,
            on_paused=on_paused,
            capabilities=capabilities,
            close_timeout=close_timeout,
        )
        if isinstance(client, type) or not hasattr(client, "messages"):
            raise TypeError(f"client must be an anthropic.Anthropic or AsyncAnthropic, not {_name_of(client)}")
        self.client = client
        self.model = model
        self.tools = tuple(tools)
        for tool in self.tools:
            if not isinstance(tool, Mapping) and not is_runnable(tool):
                words = "declarations as dicts, and functions that anthropic.beta_tool or beta_async_tool has wrapped"
                raise TypeError(f"tools takes {words}, not {_name_of(tool)}")
        self.max_tokens = max_tokens
        self.max_iterations = max_iterations
        self.max_continuations = max_continuations
        self.unsupported: UnsupportedBlocks = unsupported
        self.on_fallback_credit = on_fallback_credit
        self._beta = bool(beta)
        self._defaults = dict(defaults or {})
        if not isinstance(beta, bool):
            self._defaults["betas"] = list(beta)
        if self.tools:
            # As declarations, so that no tool of a client can take the name of one of these.
            self._defaults["tools"] = [tool.to_dict() if is_runnable(tool) else tool for tool in self.tools]
        self._runnable = {tool.name: tool for tool in self.tools if is_runnable(tool) and hasattr(tool, "name")}
        self._is_gated = is_gated_by(gated, self._runnable)
        toolsets = [
            str(tool.toolset_name) for tool in self.tools if is_runnable(tool) and hasattr(tool, "toolset_name")
        ]
        if self._is_gated is not None and toolsets:
            # The runner finds their tools by itself, and a pause would take their calls for those of the client.
            raise ValueError(f"calls of a toolset cannot be held back, so none can be gated beside {toolsets[0]!r}")
        self._grant_modes = tuple(grant_modes)
        self._loops = any(is_runnable(tool) for tool in self.tools)
        self._is_async = hasattr(client, "__aenter__")

    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> AnthropicNormalizer:
        told = self.on_fallback_credit
        on_credit = None if told is None else partial(told, invocation)
        return GatedNormalizer(grant_modes=self._grant_modes, **settings, multi=True, on_fallback_credit=on_credit)

    def _is_client_tool(self, name: str) -> bool:
        return name not in self._runnable

    def _check(self, invocation: Invocation) -> None:
        if self._is_gated is not None:
            _ = invocation.decisions

    def _prepare(self, invocation: Invocation) -> AnthropicCall:
        source = invocation.input
        if isinstance(source, StartInput):
            # The messages as they are stored, so that later requests say the same again.
            source = replace(source, messages=list(invocation.messages), capabilities=invocation.capabilities)
            return self._call(source, invocation.history, None, invocation)
        gate = self._gate_of(invocation)
        if gate is not None and gate.has_decisions:
            return self._go_on(invocation, [], gate.expected())
        source = replace(source, capabilities=invocation.capabilities)
        return self._call(source, *self._beside_start(invocation, invocation.history), invocation)

    def _gate_of(self, invocation: Invocation) -> Gate | None:
        return None if self._is_gated is None else Gate(invocation, self._is_gated, self._runnable)

    def _go_on(
        self, invocation: Invocation, answers: Sequence[AgMessage], results: Sequence[AgMessage] = ()
    ) -> AnthropicCall:
        """The request that goes on from what this turn has brought so far: a start without messages.

        Args:
            invocation: the run.
            answers: answers of the model which the provider has paused.
            results: results of calls of an earlier turn.
        """
        source = invocation.input
        before = [*invocation.history, *results, *invocation.messages, *answers]
        history, run = self._beside_start(invocation, before)
        start = StartInput(
            thread_id=source.thread_id,
            turn_id=invocation.turn_id,
            messages=[],
            run=None if run is None else going_on(run),
            capabilities=invocation.capabilities,
            metadata=source.metadata,
        )
        return self._call(start, history, None, invocation)

    def _beside_start(
        self, invocation: Invocation, history: Sequence[AgMessage]
    ) -> tuple[list[AgMessage], AgRunConfig | None]:
        """A history with the context of its start where that had it, and the settings without the context."""
        run = invocation.run
        turn = invocation.turn_id if isinstance(invocation.input, StartInput) else invocation.thread.started_by
        at = next((index for index, message in enumerate(history) if message.turn_id == turn), len(invocation.history))
        return with_context(history, run, at), None if run is None else replace(run, context=None)

    def _call(
        self, source: AgInput, history: Sequence[AgMessage], run: AgRunConfig | None, invocation: Invocation
    ) -> AnthropicCall:
        """The request for an input.

        Raises:
            ReplayError: as `to_native`.
        """
        call = to_native(
            source,
            history=history,
            run=run,
            model=self.model,
            max_tokens=self.max_tokens,
            defaults=self._defaults,
            # A start that goes on leaves no ask open: it has answered or given up every one.
            asks=() if isinstance(source, StartInput) else invocation.asks,
            # The driver lets no result be missing that is waited for: any other call was given up.
            missing_results="add",
            unsupported=self.unsupported,
        )
        return replaced(call, beta=True) if self._beta or self._loops else call

    def _invoke(self, invocation: Invocation) -> AsyncIterator[Any] | Iterator[Any]:
        call: AnthropicCall = invocation.native
        if self._loops:
            return self._loop_async(invocation) if self._is_async else BlockingStream(partial(self._loop, invocation))
        if self._is_async:
            return self._requests_async(invocation, call)
        return BlockingStream(lambda blocking: self._requests(invocation, call, blocking))

    def _loop(self, invocation: Invocation, blocking: BlockingStream) -> Generator[Any]:
        gate, call = self._gate_of(invocation), invocation.native
        if gate is not None and gate.has_decisions:
            results: list[AgMessage] = []
            for result in gate.run():
                yield Landed(result)
                results.append(landed_message(result))
            call = self._go_on(invocation, [], results)
        yield from ToolLoop(self.client, call.params, self.tools, self.max_iterations, gate).run(blocking)

    async def _loop_async(self, invocation: Invocation) -> AsyncIterator[Any]:
        gate, call = self._gate_of(invocation), invocation.native
        if gate is not None and gate.has_decisions:
            results: list[AgMessage] = []
            async for result in gate.run_async():
                yield Landed(result)
                results.append(landed_message(result))
            call = self._go_on(invocation, [], results)
        loop = ToolLoop(self.client, call.params, self.tools, self.max_iterations, gate).run_async()
        async with aclosing(loop) as natives:
            async for native in natives:
                yield native

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
            call = self._go_on(invocation, answers)

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
            call = self._go_on(invocation, answers)


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


def _name_of(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"the {type(value).__name__} {getattr(value, '__name__', '')}".rstrip()


def _may_pause(call: AnthropicCall) -> bool:
    tools = call.params.get("tools") or ()
    return bool(call.params.keys() & _PAUSING) or any("input_schema" not in tool for tool in tools)
