"""An agent whose framework is a script: lists of plain dicts in place of native events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from agjson.agents import Agent, Invocation, MemoryThreadStore, NormalizerSettings, Thread
from agjson.checker import check
from agjson.fold import Reducer
from agjson.normalizer import Normalizer
from agjson.types import AgMessage, AgStreamEvent, AgToolResult, StartInput, TextBlock, TextDelta, ToolResultInput
from agjson.wire import to_dict
from tests.support.folding import same_json

Native = dict[str, Any]
Script = Callable[[Invocation], Iterable[Any]]


class ScriptNormalizer(Normalizer):
    """Each native says which method of the emitter to call: ``{"do": "text_delta", "id": "x", "delta": "Hi"}``."""

    def _plain(self, native: object) -> Any:
        return native

    def _on(self, native: Native) -> None:
        arguments = {name: value for name, value in native.items() if name != "do"}
        getattr(self.out, native["do"])(**arguments)


def text(words: str, id: str = "x") -> list[Native]:
    """A message of the assistant, in deltas of a word each; its ids are native and come again in every invoke."""
    return [
        {"do": "message_start", "id": f"m-{id}"},
        {"do": "text_start", "id": id},
        *({"do": "text_delta", "id": id, "delta": word} for word in words.split(" ")),
        {"do": "text_end", "id": id},
        {"do": "message_end"},
    ]


def calls(*ids: str, name: str = "look_up") -> list[Native]:
    """A message with tool calls, and the end of the turn that waits for their results."""
    return [
        {"do": "message_start", "id": "m-calls"},
        *({"do": "tool_call", "tool_call_id": id, "name": name, "input": {"of": id}} for id in ids),
        {"do": "turn_done", "finish_reason": "tool_call"},
    ]


class ScriptAgent(Agent):
    """Runs a script.

    Args:
        script: makes the natives of a run; an exception in the list is raised at its place, an awaitable awaited.
        blocking: the framework is a plain iterator.
        client_tools: names of the tools that the client runs; None: all.
        prepare: what `_prepare` does.
        **settings: those of `Agent`.
    """

    def __init__(
        self,
        script: Script,
        *,
        blocking: bool = False,
        client_tools: set[str] | None = None,
        prepare: Callable[[Invocation], Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.script = script
        self.blocking = blocking
        self.client_tools = client_tools
        self.prepare = prepare
        self.seen: list[Invocation] = []
        self.opened = 0
        self.closed = 0

    def _prepare(self, invocation: Invocation) -> Any:
        return None if self.prepare is None else self.prepare(invocation)

    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> Normalizer:
        return ScriptNormalizer(**settings)

    def _is_client_tool(self, name: str) -> bool:
        return self.client_tools is None or name in self.client_tools

    def _invoke(self, invocation: Invocation) -> AsyncIterator[Any] | Iterator[Any]:
        self.seen.append(invocation)
        return self._blocking(invocation) if self.blocking else self._async(invocation)

    def _blocking(self, invocation: Invocation) -> Iterator[Any]:
        self.opened += 1
        try:
            for native in self.script(invocation):
                if isinstance(native, BaseException):
                    raise native
                yield native
        finally:
            self.closed += 1

    async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
        self.opened += 1
        try:
            for native in self.script(invocation):
                if isinstance(native, BaseException):
                    raise native
                if asyncio.iscoroutine(native):
                    await native
                else:
                    await asyncio.sleep(0)
                    yield native
        finally:
            self.closed += 1


def said(text: str, id: str = "u") -> AgMessage:
    """A message of the user."""
    return AgMessage(id=id, role="user", content=[TextBlock(text=text)])


def start(*messages: AgMessage, turn: str = "t", thread: str = "th", **fields: Any) -> StartInput:
    """A start; without a message the user says hello."""
    return StartInput(thread_id=thread, turn_id=turn, messages=list(messages or [said("hello")]), **fields)


def results(*call_ids: str, turn: str = "r", thread: str = "th", **fields: Any) -> ToolResultInput:
    """Results of client tools."""
    return ToolResultInput(
        thread_id=thread,
        turn_id=turn,
        results=[AgToolResult(tool_call_id=id, content=[TextBlock(text=f"found {id}")]) for id in call_ids],
        **fields,
    )


class Session:
    """A client of an agent: it keeps every event that it gets, and `verify` holds them against the store."""

    def __init__(self, agent: Agent, thread_id: str = "th") -> None:
        self.agent = agent
        self.thread_id = thread_id
        self.streams: list[list[AgStreamEvent]] = []

    async def run(self, ag_input: Any, **options: Any) -> list[AgStreamEvent]:
        """One run, read to its end."""
        stream: list[AgStreamEvent] = []
        self.streams.append(stream)
        async for event in self.agent.run(ag_input, **options):
            stream.append(event)
        return stream

    def run_sync(self, ag_input: Any, **options: Any) -> list[AgStreamEvent]:
        """The same on this thread."""
        stream: list[AgStreamEvent] = []
        self.streams.append(stream)
        stream.extend(self.agent.run_sync(ag_input, **options))
        return stream

    def has(self, type: str) -> bool:
        """Whether an event of a type has come in the latest run."""
        return bool(self.streams) and type in types(self.streams[-1])

    def thread(self) -> Thread:
        """The thread as it is stored."""
        store = self.agent.store
        assert isinstance(store, MemoryThreadStore)
        thread = _now(store.load(self.thread_id))
        assert thread is not None
        return thread

    def verify(self) -> None:
        """Every stream keeps every rule, and what a client has folded is what is stored (INV-FOLD)."""
        reducer = Reducer()
        for stream in self.streams:
            before = reducer.result()
            found = list(check(stream, initial=before) if before.turns else check(stream))
            assert not found, "\n".join(map(str, found))
            for event in stream:
                reducer.push(event)
            assert not reducer.needs_resync, reducer.resync_reason
        found = list(check([event for stream in self.streams for event in stream]))
        assert not found, "\n".join(map(str, found))
        assert same_json(to_dict(reducer.result()), to_dict(self.thread().result))


def _now(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the store has suspended")


def types(events: Iterable[AgStreamEvent]) -> list[str]:
    """The types of events."""
    return [event.type for event in events]


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something has come about, for half a minute at most."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.002)


def deltas(events: Iterable[AgStreamEvent]) -> list[str]:
    """The increments of text, each as it came."""
    return [event.delta for event in events if isinstance(event, TextDelta)]


def terminal(events: list[AgStreamEvent]) -> Native:
    """The last event as plain data, which is to be the only terminal."""
    ends = [event for event in events if event.type in ("turn.done", "turn.error", "turn.abort")]
    assert ends == events[-1:], types(events)
    return to_dict(events[-1])
