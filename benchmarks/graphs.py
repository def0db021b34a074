"""Compiled graphs with a model that says what it is told, and what reads them: nobody, agjson, and a peer."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from agjson.adapters.langgraph import LangGraphAgent
from agjson.adapters.langgraph.agent import MODES
from agjson.types import AgMessage, StartInput, TextBlock
from agjson.wire.sse import encode_sse_event
from benchmarks.streams import ARGUMENTS, THOUGHTS, WORDS

QUESTION = "What is the weather in Reykjavík?"


class ScriptedModel(BaseChatModel):
    """Streams what it is told to, a token or two in each chunk, as the classes for providers do.

    Attributes:
        kind: ``text``, ``reasoning`` (blocks of the content) or ``arguments`` (of one call).
        count: how many deltas.
    """

    kind: str
    count: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError("it only streams")

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for message in chunks(self.kind, self.count):
            yield ChatGenerationChunk(message=message)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for message in chunks(self.kind, self.count):
            yield ChatGenerationChunk(message=message)


def chunks(kind: str, count: int) -> Iterator[AIMessageChunk]:
    """The chunks of one answer.

    Args:
        kind: as for `ScriptedModel`.
        count: how many deltas.
    """
    provider = {"model_provider": "scripted"}
    if kind == "arguments":
        call: Any = {"name": "get_forecast", "args": "", "id": "call-1", "index": 0}
        yield AIMessageChunk(content="", tool_call_chunks=[call], response_metadata=provider)
    for number in range(count):
        if kind == "text":
            yield AIMessageChunk(content=WORDS[number % len(WORDS)], response_metadata=provider)
        elif kind == "reasoning":
            block: Any = {"type": "thinking", "thinking": THOUGHTS[number % len(THOUGHTS)], "index": 0}
            yield AIMessageChunk(content=[block], response_metadata=provider)
        else:
            call = {"name": None, "args": ARGUMENTS[number % len(ARGUMENTS)], "id": None, "index": 0}
            yield AIMessageChunk(content="", tool_call_chunks=[call], response_metadata=provider)
    usage: Any = {"input_tokens": 812, "output_tokens": count, "total_tokens": 812 + count}
    yield AIMessageChunk(content="", usage_metadata=usage, response_metadata={"finish_reason": "stop"})


def graph_of(count: int, kind: str = "text") -> Any:
    """A compiled graph of one node that calls the model, with a checkpointer in memory."""
    model = ScriptedModel(kind=kind, count=count)

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=InMemorySaver())


async def native(graph: Any, thread: str, modes: Sequence[str] = MODES) -> AsyncIterator[Any]:
    """What the graph hands out for one turn, in the stream modes that the agent asks for."""
    config: Any = {"configurable": {"thread_id": thread}}
    given = {"messages": [HumanMessage(QUESTION)]}
    async for part in graph.astream(given, config, stream_mode=list(modes), subgraphs=True, version="v2"):
        yield part


async def ours(agent: LangGraphAgent, thread: str, turn: str = "turn-1") -> AsyncIterator[bytes]:
    """One turn as a client gets it from us, as server-sent events."""
    said = AgMessage(id=f"said-{turn}", role="user", content=[TextBlock(text=QUESTION)])
    async for event in agent.run(StartInput(thread_id=thread, turn_id=turn, messages=[said])):
        yield encode_sse_event(event)


class Peer:
    """``ag_ui_langgraph`` around the same graph, as its own endpoint runs it.

    Args:
        graph: the compiled graph.
        raw: it sends LangGraph's own events too, which is what it does by default.

    Raises:
        ImportError: it is not installed.
    """

    def __init__(self, graph: Any, *, raw: bool) -> None:
        from ag_ui.encoder import EventEncoder
        from ag_ui_langgraph import LangGraphAgent as PeerAgent

        self._agent = PeerAgent(name="peer", graph=graph, emit_raw_events=raw)
        self._encoder = EventEncoder()
        # What the client has, by thread: it sends it along with each turn.
        self._history: dict[str, list[Any]] = {}

    async def run(self, thread: str, turn: str = "turn-1") -> AsyncIterator[bytes]:
        """One turn as a client gets it, as server-sent events.

        Raises:
            RuntimeError: the turn has failed, so that there is nothing to measure.
        """
        from ag_ui.core import MessagesSnapshotEvent, RunAgentInput, RunErrorEvent, UserMessage

        history = self._history.setdefault(thread, [])
        history.append(UserMessage(id=f"said-{turn}", role="user", content=QUESTION))
        given = RunAgentInput(
            thread_id=thread, run_id=turn, state={}, messages=history, tools=[], context=[], forwarded_props={}
        )
        with warnings.catch_warnings():
            # It calls what LangGraph is going to remove.
            warnings.simplefilter("ignore", DeprecationWarning)
            async for event in self._agent.clone().run(given):
                if isinstance(event, MessagesSnapshotEvent):
                    self._history[thread] = list(event.messages)
                elif isinstance(event, RunErrorEvent):
                    raise RuntimeError(event.message)
                yield self._encoder.encode(event).encode()
