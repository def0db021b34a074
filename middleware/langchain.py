"""One line around code that runs a graph of LangGraph or an agent of LangChain already (spec §8.0).

The graph, its config and the loop around it stay as they are. Nothing of the stream is kept back from its owner, an
exception becomes `turn.error` (and stays at ``.error``), and every turn ends once. Neither framework is imported before
a graph runs.
"""

from __future__ import annotations

import inspect
import uuid
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, Unpack, overload

from agjson.adapters.langgraph.agent import MODES
from agjson.adapters.langgraph.call import GraphCall
from agjson.adapters.langgraph.facts import write_verdict
from agjson.adapters.langgraph.normalizer import LangGraphNormalizer
from agjson.emitter import EmitterSettings
from agjson.errors import MissingExtraError
from agjson.jsonable import jsonable
from agjson.middleware._closing import close_native, close_native_async
from agjson.normalizer import HostEnd, HostError
from agjson.types import (
    AgGuardrail,
    AgGuardrailAction,
    AgGuardrailTarget,
    AgInput,
    AgPausedAsk,
    AgSafety,
    AgStreamEvent,
    PausedOutcome,
    TurnDone,
)

if TYPE_CHECKING:
    from agjson.middleware.langchain_agent import AgJSONMiddleware, Verdict, denied_result

__all__ = [
    "MODES",
    "AgJSONMiddleware",
    "AsyncEvents",
    "Events",
    "LangGraphSettings",
    "Verdict",
    "agjson_stream",
    "agjson_stream_sync",
    "denied_result",
    "tell_guardrail",
    "wrap",
]


def __getattr__(name: str) -> Any:
    # A subclass of LangChain's can only be made where LangChain is.
    if name not in ("AgJSONMiddleware", "Verdict", "denied_result"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from agjson.middleware import langchain_agent
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
            raise
        raise MissingExtraError("langchain", "langchain") from error
    return getattr(langchain_agent, name)


class LangGraphSettings(EmitterSettings, total=False):
    """The keyword arguments of `LangGraphNormalizer` that are handed on; each is explained there."""

    stream_mode: str | None
    tell: Collection[str]
    messages_key: str
    include_messages_in_state: bool
    state_keys: Collection[str] | None
    drop_uncommitted: bool
    nested_turns: bool
    denied: Mapping[str, str] | None
    resumable: bool


# Streams of events


class _Run(ABC):
    """How the native stream of a run is opened.

    Attributes:
        turn_id: the turn.
        thread_id: the conversation.
    """

    turn_id: str
    thread_id: str

    @abstractmethod
    def new_normalizer(self) -> LangGraphNormalizer:
        """What reads the stream as long as nothing is known of the thread."""

    @abstractmethod
    def open(self, reading: _Reading) -> Iterator[Any]:
        """Begin the run on the calling thread; what this raises is no failure of the graph, and reaches the caller."""

    @abstractmethod
    async def open_async(self, reading: _Reading) -> AsyncIterator[Any]:
        """The same on the event loop."""


class _Reading:
    """What is known of a stream while it is read. It knows nothing of its reader, who may be dropped at any event.

    Attributes:
        run: how the native stream is opened.
        started: somebody has asked for an event.
        normalizer: what makes the events.
        stream: the native stream; None: there is none yet.
        error: the exception that ended the stream.
        asks: what the turn waits for.
    """

    __slots__ = ("asks", "error", "normalizer", "run", "started", "stream")

    def __init__(self, run: _Run, stream: Any) -> None:
        self.run = run
        self.started = False
        self.normalizer = run.new_normalizer()
        self.stream = stream
        self.error: Exception | None = None
        self.asks: tuple[AgPausedAsk, ...] = ()

    def failed(self, error: Exception) -> list[AgStreamEvent]:
        """The stream has raised."""
        self.error = error
        return self.seen(self.normalizer.push(HostError(error)))

    def ended(self) -> list[AgStreamEvent]:
        """The stream has ended."""
        ended = [] if self.error is not None else self.normalizer.push(HostEnd())
        return self.seen([*ended, *self.normalizer.flush()])

    def seen(self, events: list[AgStreamEvent]) -> list[AgStreamEvent]:
        """Note what the reader is to know of the events."""
        for event in events:
            if isinstance(event, TurnDone) and event.turn_id == self.run.turn_id:
                self.asks = tuple(event.outcome.asks) if isinstance(event.outcome, PausedOutcome) else ()
        return events


class _Told:
    """What both kinds of event streams tell."""

    def __init__(self, run: _Run, stream: Any) -> None:
        self._reading = _Reading(run, stream)

    @property
    def normalizer(self) -> LangGraphNormalizer:
        """What makes the events. Around a call, `agjson_stream`, another one once the thread has been read."""
        return self._reading.normalizer

    @property
    def stream(self) -> Any:
        """The native stream; around a call, None until the first event."""
        return self._reading.stream

    @property
    def error(self) -> Exception | None:
        """The exception that ended the stream; None if none did."""
        return self._reading.error

    @property
    def asks(self) -> tuple[AgPausedAsk, ...]:
        """What the turn waits for; empty unless it has ended paused."""
        return self._reading.asks

    @property
    def turn_id(self) -> str:
        """The turn of the events."""
        return self._reading.run.turn_id

    @property
    def thread_id(self) -> str:
        """The conversation of the events."""
        return self._reading.run.thread_id


class Events(_Told, Iterator[AgStreamEvent]):
    """The events of a native stream, once. Closing it early, or leaving a loop over it, closes the native stream."""

    def __init__(self, run: _Run, stream: Any = None) -> None:
        super().__init__(run, stream)
        # No method: a reader that is dropped ends it at once, which a circle would delay.
        self._events: Generator[AgStreamEvent] = _read(self._reading)

    def __iter__(self) -> Iterator[AgStreamEvent]:
        return self._events

    def __next__(self) -> AgStreamEvent:
        return next(self._events)

    def close(self) -> None:
        """Stop early: close the native stream. The turn gets no further events."""
        if not self._reading.started:
            close_native(self.stream)
        self._events.close()


def _read(reading: _Reading) -> Generator[AgStreamEvent]:
    reading.started = True
    natives = reading.run.open(reading)
    reading.stream = natives
    try:
        yield from reading.normalizer.out.drain()
        while True:
            try:
                native = next(natives)
            except StopIteration:
                break
            except Exception as error:
                yield from reading.failed(error)
                break
            yield from reading.seen(reading.normalizer.push(native))
        yield from reading.ended()
    finally:
        close_native(natives)


class AsyncEvents(_Told, AsyncIterator[AgStreamEvent]):
    """The events of an asynchronous native stream, once. Closing it early, or cancelling it, closes that stream."""

    def __init__(self, run: _Run, stream: Any = None) -> None:
        super().__init__(run, stream)
        self._events: AsyncGenerator[AgStreamEvent] = _read_async(self._reading)

    def __aiter__(self) -> AsyncIterator[AgStreamEvent]:
        return self._events

    async def __anext__(self) -> AgStreamEvent:
        return await anext(self._events)

    async def aclose(self) -> None:
        """Stop early: close the native stream. The turn gets no further events."""
        if not self._reading.started:
            await close_native_async(self.stream)
        await self._events.aclose()


async def _read_async(reading: _Reading) -> AsyncGenerator[AgStreamEvent]:
    reading.started = True
    natives = await reading.run.open_async(reading)
    reading.stream = natives
    try:
        for event in reading.normalizer.out.drain():
            yield event
        while True:
            try:
                native = await anext(natives)
            except StopAsyncIteration:
                break
            except Exception as error:
                for event in reading.failed(error):
                    yield event
                break
            for event in reading.seen(reading.normalizer.push(native)):
                yield event
        for event in reading.ended():
            yield event
    finally:
        await close_native_async(natives)


# Around a stream


class _OfStream(_Run):
    def __init__(self, turn_id: str | None, thread_id: str | None, settings: LangGraphSettings) -> None:
        self.turn_id = turn_id or f"turn_{uuid.uuid4().hex}"
        self.thread_id = thread_id or f"thread_{uuid.uuid4().hex}"
        self._settings = settings

    def new_normalizer(self) -> LangGraphNormalizer:
        return LangGraphNormalizer(self.turn_id, self.thread_id, **self._settings)

    def open(self, reading: _Reading) -> Iterator[Any]:
        return iter(reading.stream)

    async def open_async(self, reading: _Reading) -> AsyncIterator[Any]:
        stream = reading.stream
        if inspect.isawaitable(stream):
            try:
                stream = await stream
            except Exception as error:
                return _failing(error)
        if not isinstance(stream, AsyncIterable):
            raise _no_stream(stream)
        return aiter(stream)


async def _failing(error: Exception) -> AsyncGenerator[Any]:
    """The stream of a run that has failed before it began: a failure of the graph like any other."""
    raise error
    yield


@overload
def wrap(
    stream: AsyncIterable[object] | Awaitable[AsyncIterable[object]],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    **settings: Unpack[LangGraphSettings],
) -> AsyncEvents: ...
@overload
def wrap(
    stream: Iterable[object],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    **settings: Unpack[LangGraphSettings],
) -> Events: ...
def wrap(
    stream: Any,
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    **settings: Unpack[LangGraphSettings],
) -> Events | AsyncEvents:
    """Read the stream of ``graph.stream(...)`` or ``graph.astream(...)`` as AgJSON events.

    It takes every shape that `LangGraphNormalizer` takes. The more modes the graph was asked for, the more is told:
    best ``stream_mode=MODES, subgraphs=True, version="v2"``, with the ``MODES`` of this module. A graph that may wait
    needs ``updates`` among them: in a stream without it a pause may look like the end.

    Args:
        stream: the stream, of a graph here or at a server, or the awaitable of one.
        turn_id: the turn, another one for each run in a thread; absent: a random one.
        thread_id: the conversation; absent: a random one.
        **settings: further arguments of `LangGraphNormalizer`, such as ``stream_mode`` for a stream of a single mode
            that does not name it.

    Raises:
        TypeError: it is no stream.
    """
    is_async = isinstance(stream, AsyncIterable) or inspect.isawaitable(stream)
    # What a graph returns that does not stream is a dict, which can be iterated too.
    if not is_async and (not isinstance(stream, Iterable) or isinstance(stream, (Mapping, str, bytes))):
        raise _no_stream(stream)
    run = _OfStream(turn_id, thread_id, settings)
    return AsyncEvents(run, stream) if is_async else Events(run, stream)


def _no_stream(given: object) -> TypeError:
    name = type(given).__name__
    return TypeError(f"{name} is no stream of a graph: wrap what graph.stream(...) or graph.astream(...) returns")


# Around a call


class _OfCall(_Run):
    def __init__(
        self,
        graph: Any,
        given: Any,
        config: Mapping[str, Any] | None,
        context: Any,
        modes: Sequence[str],
        turn_id: str | None,
        settings: LangGraphSettings,
    ) -> None:
        key = settings.get("messages_key", "messages")
        self._call = GraphCall(
            graph, given, config=config, context=context, modes=modes, messages_key=key, turn_id=turn_id
        )
        self._settings = settings
        self.turn_id, self.thread_id = self._call.turn_id, self._call.thread_id

    def new_normalizer(self) -> LangGraphNormalizer:
        return LangGraphNormalizer(self.turn_id, self.thread_id, **self._settings)

    def open(self, reading: _Reading) -> Iterator[Any]:
        state = self._call.read_state()
        natives = self._call.run(state)
        reading.normalizer = self._of_thread(state)
        return natives

    async def open_async(self, reading: _Reading) -> AsyncIterator[Any]:
        state = await self._call.read_state_async()
        natives = self._call.run_async(state)
        reading.normalizer = self._of_thread(state)
        return natives

    def _of_thread(self, state: Any) -> LangGraphNormalizer:
        known: dict[str, Any] = {**self._call.known(state), **self._settings}
        normalizer = LangGraphNormalizer(self.turn_id, self.thread_id, **known)
        for path in self._call.unsupported:
            words = f"{path} is not supported by this graph and was not used"
            normalizer.out.error(words, code="unsupported", meta={"agjson/path": path})
        if self._call.repairs:
            normalizer.out.ext("ext.agjson.repairs", {"repairs": jsonable(list(self._call.repairs))})
        return normalizer


def agjson_stream(
    graph: Any,
    given: AgInput | Mapping[str, Any] | Any,
    config: Mapping[str, Any] | None = None,
    *,
    context: Any = None,
    modes: Sequence[str] = MODES,
    turn_id: str | None = None,
    **settings: Unpack[LangGraphSettings],
) -> AsyncEvents:
    """Run a graph, and read what it streams as AgJSON events; in the place of ``graph.astream(given, config)``.

    A graph with a checkpointer needs no thread store beside it: which calls and asks a thread has is read from its
    state, before the graph runs. An answer to something that the graph does not wait for, a wrong number of decisions,
    and a start while the graph waits are refused.

    The stream holds what the graph says and does; what the user has said is not in it.

    Args:
        graph: the compiled graph, of ``StateGraph.compile`` or ``create_agent``.
        given: an `AgInput`, also as plain data, or the graph's own input: a dict of its state, a ``Command``, None.
        config: the ``RunnableConfig``. The conversation is its ``configurable.thread_id``, else that of the input.
        context: the context of the run.
        modes: the stream modes to ask for; with fewer, less is told, but a pause always is.
        turn_id: the turn; absent: that of the input, else a random one.
        **settings: further arguments of `LangGraphNormalizer`.

    Returns:
        The events; ``.asks`` are what a paused turn waits for, to be answered by a ``resume``.

    Raises:
        TypeError: no compiled graph.
        DecodeError: plain data that calls itself an input of AgJSON, and is none.
        ReplayError: reading the first event: an answer to no open ask, an ask without one, a decision not allowed.
        ThreadPausedError: reading the first event: an `AgInput` starts something new while the graph waits.
        MissingExtraError: reading the first event: LangGraph or LangChain is not installed.
    """
    return AsyncEvents(_OfCall(graph, given, config, context, modes, turn_id, settings))


def agjson_stream_sync(
    graph: Any,
    given: AgInput | Mapping[str, Any] | Any,
    config: Mapping[str, Any] | None = None,
    *,
    context: Any = None,
    modes: Sequence[str] = MODES,
    turn_id: str | None = None,
    **settings: Unpack[LangGraphSettings],
) -> Events:
    """Run a graph on the calling thread, in the place of ``graph.stream(given, config)``; else as `agjson_stream`.

    Args:
        graph: as for `agjson_stream`, like the others.
        given: the input.
        config: the config.
        context: the context.
        modes: the stream modes.
        turn_id: the turn.
        **settings: settings of the normalizer.

    Returns:
        The events.

    Raises:
        TypeError: as `agjson_stream`, like the others.
        DecodeError: no input.
        ReplayError: answers that do not fit.
        ThreadPausedError: the graph waits.
        MissingExtraError: not installed.
    """
    return Events(_OfCall(graph, given, config, context, modes, turn_id, settings))


# From inside a graph


def tell_guardrail(
    target: AgGuardrailTarget,
    passed: bool,
    *,
    action: AgGuardrailAction | None = None,
    reason: str | None = None,
    guardrail_name: str | None = None,
    safety: Sequence[AgSafety] | None = None,
) -> None:
    """Say from inside a graph what a guardrail has found: a `guardrail.result` in the stream (spec §4).

    Call it in a node, a tool, or a hook of any middleware. Where nobody reads the stream it does nothing.

    Args:
        target: what it looked at.
        passed: whether it let it pass.
        action: what it did otherwise.
        reason: why, in words that the user may read.
        guardrail_name: which guardrail.
        safety: the ratings behind it.

    Raises:
        MissingExtraError: LangGraph is not installed.
    """
    verdict = AgGuardrail(
        target=target,
        passed=passed,
        action=action,
        reason=reason,
        guardrail_name=guardrail_name,
        safety=None if safety is None else list(safety),
    )
    try:
        from langgraph.config import get_stream_writer
    except ImportError as error:
        raise MissingExtraError("langgraph", "langgraph") from error
    try:
        write: Callable[[Any], None] = get_stream_writer()
    except (RuntimeError, KeyError):  # no graph runs here
        return
    write(write_verdict(verdict))
