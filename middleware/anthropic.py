"""One line around code that calls the Messages API already: its streams, read as AgJSON events (spec §8.0).

Nothing of the stream is kept back from its owner: events come as the provider sends them, an exception of the client
becomes `turn.error` (and stays at ``.error``), and every turn ends once. The provider's client is not imported.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from typing import TYPE_CHECKING, Any, Unpack, overload

from agjson.adapters.anthropic.normalizer import AnthropicNormalizer, AnthropicSettings
from agjson.middleware._closing import close_native, close_native_async
from agjson.normalizer import HostEnd, HostError
from agjson.types import AgStreamEvent

if TYPE_CHECKING:
    from anthropic.lib.streaming import (
        AsyncMessageStream,
        AsyncMessageStreamManager,
        BetaAsyncMessageStream,
        BetaAsyncMessageStreamManager,
        BetaMessageStream,
        BetaMessageStreamManager,
        MessageStream,
        MessageStreamManager,
    )
    from anthropic.lib.tools import (
        BetaAsyncStreamingToolRunner,
        BetaAsyncToolRunner,
        BetaStreamingToolRunner,
        BetaToolRunner,
    )

__all__ = ["AsyncEvents", "Events", "wrap", "wrap_message_stream", "wrap_tool_runner"]


class _Wrapped:
    """What both kinds of event streams know.

    Attributes:
        normalizer: what makes the events.
        stream: the provider's own stream or tool runner; until the first event what was handed in.
        error: the exception that ended the stream; None if none did.
    """

    def __init__(self, native: Any, turn_id: str | None, thread_id: str | None, settings: dict[str, Any]) -> None:
        self.normalizer = AnthropicNormalizer(
            turn_id or f"turn_{uuid.uuid4().hex}", thread_id or f"thread_{uuid.uuid4().hex}", **settings
        )
        self._started = False
        self.stream = native
        self.error: Exception | None = None

    @property
    def turn_id(self) -> str:
        """The turn of the events."""
        return self.normalizer.turn_id

    @property
    def thread_id(self) -> str:
        """The conversation of the events."""
        return self.normalizer.thread_id

    def _failed(self, error: Exception) -> list[AgStreamEvent]:
        self.error = error
        return self.normalizer.push(HostError(error))

    def _ended(self) -> list[AgStreamEvent]:
        return [] if self.error is not None else self.normalizer.push(HostEnd())


class Events(_Wrapped, Iterator[AgStreamEvent]):
    """The events of a native stream, once. Closing it early closes the native stream."""

    def __init__(self, native: Any, pump: Any, **settings: Any) -> None:
        super().__init__(native, settings.pop("turn_id"), settings.pop("thread_id"), settings)
        self._events: Generator[AgStreamEvent] = self._run(pump)

    def __iter__(self) -> Iterator[AgStreamEvent]:
        return self._events

    def __next__(self) -> AgStreamEvent:
        return next(self._events)

    def close(self) -> None:
        """Stop early: close the native stream. The turn gets no further events."""
        if not self._started:
            close_native(self.stream)
        self._events.close()

    def _run(self, pump: Any) -> Generator[AgStreamEvent]:
        self._started = True
        # What comes from the consumer (a closed generator) must not be taken for a failure of the stream.
        natives = pump(self)
        try:
            while True:
                try:
                    native = next(natives)
                except StopIteration:
                    break
                except Exception as error:
                    yield from self._failed(error)
                    break
                yield from self.normalizer.push(native)
            yield from self._ended()
            yield from self.normalizer.flush()
        finally:
            natives.close()


class AsyncEvents(_Wrapped, AsyncIterator[AgStreamEvent]):
    """The events of an asynchronous native stream, once. Closing it early, or cancelling it, closes that stream."""

    def __init__(self, native: Any, pump: Any, **settings: Any) -> None:
        super().__init__(native, settings.pop("turn_id"), settings.pop("thread_id"), settings)
        self._events: AsyncGenerator[AgStreamEvent] = self._run(pump)

    def __aiter__(self) -> AsyncIterator[AgStreamEvent]:
        return self._events

    async def __anext__(self) -> AgStreamEvent:
        return await anext(self._events)

    async def aclose(self) -> None:
        """Stop early: close the native stream. The turn gets no further events."""
        if not self._started:
            await close_native_async(self.stream)
        await self._events.aclose()

    async def _run(self, pump: Any) -> AsyncGenerator[AgStreamEvent]:
        self._started = True
        natives = pump(self)
        try:
            while True:
                try:
                    native = await anext(natives)
                except StopAsyncIteration:
                    break
                except Exception as error:
                    for event in self._failed(error):
                        yield event
                    break
                for event in self.normalizer.push(native):
                    yield event
            for event in [*self._ended(), *self.normalizer.flush()]:
                yield event
        finally:
            await natives.aclose()


@overload
def wrap(
    stream: AsyncIterable[object] | Awaitable[AsyncIterable[object]],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    multi: bool = False,
    **settings: Unpack[AnthropicSettings],
) -> AsyncEvents: ...
@overload
def wrap(
    stream: Iterable[object],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    multi: bool = False,
    **settings: Unpack[AnthropicSettings],
) -> Events: ...
def wrap(
    stream: Any,
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    multi: bool = False,
    **settings: Unpack[AnthropicSettings],
) -> Events | AsyncEvents:
    """Read the stream of ``messages.create(stream=True)``, plain or beta, as AgJSON events.

    Args:
        stream: the stream (or any other iterable of its events), or the awaitable that the asynchronous client returns:
            then a request that fails is a `turn.error` as well. The whole message of a request without ``stream=True``
            gives the same events as its stream.
        turn_id: the turn, another one for each call in a thread; absent: a random one.
        thread_id: the conversation; absent: a random one.
        multi: it holds several messages, all of one turn.
        **settings: further arguments of `AnthropicNormalizer`.

    Raises:
        TypeError: it is no stream.
    """
    if _is_message(stream):
        stream = [stream]
    else:
        _check_stream(stream, "client.messages.create(..., stream=True)")
    kind = AsyncEvents if inspect.isawaitable(stream) or hasattr(stream, "__aiter__") else Events
    pump = _read_async if kind is AsyncEvents else _read
    return kind(stream, pump, turn_id=turn_id, thread_id=thread_id, multi=multi, **settings)


@overload
def wrap_message_stream(
    stream: (
        AsyncMessageStream[Any]
        | BetaAsyncMessageStream[Any]
        | AsyncMessageStreamManager[Any]
        | BetaAsyncMessageStreamManager[Any]
    ),
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    **settings: Unpack[AnthropicSettings],
) -> AsyncEvents: ...
@overload
def wrap_message_stream(
    stream: MessageStream[Any] | BetaMessageStream[Any] | MessageStreamManager[Any] | BetaMessageStreamManager[Any],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    **settings: Unpack[AnthropicSettings],
) -> Events: ...
def wrap_message_stream(
    stream: Any, *, turn_id: str | None = None, thread_id: str | None = None, **settings: Unpack[AnthropicSettings]
) -> Events | AsyncEvents:
    """Read a helper stream of ``messages.stream(...)``, plain or beta, as AgJSON events.

    Its second form of each delta is left out. The helper goes on collecting: ``get_final_message()`` works afterwards,
    on the stream or on ``.stream`` of what is returned.

    Args:
        stream: the stream, or the context manager that ``messages.stream`` returns; that is entered and left here.
        turn_id: the turn; absent: a random one.
        thread_id: the conversation; absent: a random one.
        **settings: further arguments of `AnthropicNormalizer`.

    Raises:
        TypeError: it is no stream.
    """
    _check_stream(stream, "client.messages.stream(...)")
    is_async = hasattr(stream, "__aiter__") or hasattr(stream, "__aenter__")
    kind = AsyncEvents if is_async else Events
    return kind(stream, _read_async if is_async else _read, turn_id=turn_id, thread_id=thread_id, **settings)


@overload
def wrap_tool_runner(
    runner: BetaAsyncStreamingToolRunner[Any] | BetaAsyncToolRunner[Any],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    **settings: Unpack[AnthropicSettings],
) -> AsyncEvents: ...
@overload
def wrap_tool_runner(
    runner: BetaStreamingToolRunner[Any] | BetaToolRunner[Any],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    **settings: Unpack[AnthropicSettings],
) -> Events: ...
def wrap_tool_runner(
    runner: Any, *, turn_id: str | None = None, thread_id: str | None = None, **settings: Unpack[AnthropicSettings]
) -> Events | AsyncEvents:
    """Run a loop of ``beta.messages.tool_runner(...)``, streamed or not, as one turn of AgJSON events.

    The tools run between the messages, as the runner does it: only after an answer that stopped in order to call them.
    Each result is a `tool.done` in a message of its own, ``<toolCallId>:result``.

    Args:
        runner: the runner. Closing the events early closes it, and no further tool runs.
        turn_id: the turn; absent: a random one.
        thread_id: the conversation; absent: a random one.
        **settings: further arguments of `AnthropicNormalizer`.

    Raises:
        TypeError: it is no tool runner.
    """
    if not hasattr(runner, "generate_tool_call_response"):
        if inspect.iscoroutine(runner):
            runner.close()  # a request that is not made, and then nobody should be told that it was forgotten
        given = type(runner).__name__
        raise TypeError(f"{given} is no tool runner: wrap what client.beta.messages.tool_runner(...) returns")
    is_async = hasattr(runner, "__aiter__")
    kind = AsyncEvents if is_async else Events
    pump = _run_async if is_async else _run
    return kind(runner, pump, turn_id=turn_id, thread_id=thread_id, multi=True, **settings)


_ENTRANCES = ("__iter__", "__aiter__", "__enter__", "__aenter__")


def _check_stream(stream: Any, maker: str) -> None:
    # A client can be entered and left like a helper stream, and would be closed by that.
    readable = inspect.isawaitable(stream) or any(hasattr(stream, name) for name in _ENTRANCES)
    if not readable or (hasattr(stream, "messages") and not isinstance(stream, (Iterable, AsyncIterable))):
        raise TypeError(f"{type(stream).__name__} is no stream of the Messages API: wrap what {maker} returns")


def _is_message(native: Any) -> bool:
    kind = native.get("type") if isinstance(native, Mapping) else getattr(native, "type", None)
    return kind == "message"


def _read(events: Events) -> Generator[Any]:
    manager = None if hasattr(events.stream, "__iter__") else events.stream
    if manager is not None:
        events.stream = manager.__enter__()
    try:
        yield from events.stream
    finally:
        close_native(events.stream) if manager is None else manager.__exit__(None, None, None)


async def _read_async(events: AsyncEvents) -> AsyncGenerator[Any]:
    if inspect.isawaitable(events.stream):
        events.stream = await events.stream
        if _is_message(events.stream):
            yield events.stream
            return
    manager = None if hasattr(events.stream, "__aiter__") else events.stream
    if manager is not None:
        events.stream = await manager.__aenter__()
    try:
        async for native in events.stream:
            yield native
    finally:
        if manager is None:
            await close_native_async(events.stream)
        else:
            await manager.__aexit__(None, None, None)


def _run(events: Events) -> Generator[Any]:
    runner = events.stream
    try:
        for item in runner:
            if getattr(item, "type", None) == "message":
                yield item
            else:
                yield from item
            # For any other reason the runner runs no tools, though it would if it were asked for their results.
            if events.normalizer.stop_reason == "tool_use":
                results = runner.generate_tool_call_response()
                if results is not None:
                    yield results
    finally:
        close_native(runner)


async def _run_async(events: AsyncEvents) -> AsyncGenerator[Any]:
    runner = events.stream
    try:
        async for item in runner:
            if getattr(item, "type", None) == "message":
                yield item
            else:
                async for native in item:
                    yield native
            if events.normalizer.stop_reason == "tool_use":
                results = await runner.generate_tool_call_response()
                if results is not None:
                    yield results
    finally:
        await close_native_async(runner)
