"""Real graphs with scripted models, and their native streams: what the tests of the LangGraph adapter run."""

from __future__ import annotations

import json
import operator
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, HumanMessage, ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from pydantic import Field

from agjson.adapters.langgraph.messages import messages_from_native
from agjson.adapters.langgraph.normalizer import LangGraphNormalizer
from agjson.checker import check
from agjson.fold import Reducer
from agjson.jsonable import jsonable
from agjson.normalizer import HostEnd, HostError
from agjson.types import AgReduceResult, AgStreamEvent
from agjson.wire import to_dict
from tests.support.langgraph_messages import unattributed

__all__ = [
    "MODES",
    "Messages",
    "ScriptedModel",
    "agent",
    "call",
    "chunks",
    "config",
    "deserialised",
    "fold",
    "graph_of",
    "kept",
    "normalize",
    "of_type",
    "plain",
    "protocol_events",
    "run",
    "said",
    "sqlite_saver",
]

MODES = ("messages", "updates", "values", "tasks", "custom", "checkpoints", "tools")
"""The stream modes that the adapter asks for."""


class Messages(TypedDict, total=False):
    """The state of most graphs here: the conversation, and two values beside it."""

    messages: Annotated[list[AnyMessage], add_messages]
    note: str
    log: Annotated[list[Any], operator.add]


class ScriptedModel(BaseChatModel):
    """A chat model that says what it was told to, a reply per call.

    A reply is a list of chunks that are streamed, a whole message, or an exception that is raised.
    """

    replies: list[Any]
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        return self

    def _next(self, messages: list[BaseMessage]) -> Any:
        self.asked.append(list(messages))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        reply = self._next(messages)
        if isinstance(reply, list):
            whole = reply[0]
            for chunk in reply[1:]:
                whole = whole + chunk
            reply = AIMessage(**{name: getattr(whole, name) for name in ("content", "tool_calls", "id")})
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._next(messages)
        for message in reply if isinstance(reply, list) else chunks(reply):
            if isinstance(message, Exception):
                raise message
            chunk = ChatGenerationChunk(message=message)
            if run_manager is not None:
                run_manager.on_llm_new_token(message.text, chunk=chunk)
            yield chunk


def call(name: str, id: str, **args: Any) -> dict[str, Any]:
    """A tool call as LangChain writes it."""
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def chunks(message: AIMessage) -> list[AIMessageChunk]:
    """A message as a provider streams it: word by word, then each call with its arguments in two pieces."""
    found: list[AIMessageChunk] = []
    words = str(message.content).split(" ") if message.content else []
    for index, word in enumerate(words):
        found.append(AIMessageChunk(content=word if index == 0 else f" {word}", id=message.id))
    for index, tool_call in enumerate(message.tool_calls):
        text = json.dumps(tool_call["args"])
        first = ToolCallChunk(name=tool_call["name"], args="", id=tool_call["id"], index=index)
        found.append(AIMessageChunk(content="", id=message.id, tool_call_chunks=[first]))
        for piece in (text[:4], text[4:]):
            more = ToolCallChunk(name=None, args=piece, id=None, index=index)
            found.append(AIMessageChunk(content="", id=message.id, tool_call_chunks=[more]))
    last = found[-1] if found else AIMessageChunk(content="", id=message.id)
    last.usage_metadata = message.usage_metadata
    last.response_metadata = message.response_metadata
    return found or [last]


def agent(replies: Sequence[Any], tools: Sequence[Any] = (), *, saver: Any = None, **options: Any) -> Any:
    """An agent of ``create_agent`` with a scripted model and a checkpointer of its own."""
    model = ScriptedModel(replies=list(replies))
    return create_agent(model, list(tools), checkpointer=saver or InMemorySaver(), **options)


def graph_of(*nodes: Callable[..., Any], saver: Any = None, state: Any = Messages, **options: Any) -> Any:
    """A graph that runs its nodes one after the other; they are named as the functions are."""
    builder = StateGraph(state)
    names = [START, *(node.__name__ for node in nodes), END]
    for node in nodes:
        builder.add_node(node.__name__, node)
    for before, after in pairwise(names):
        builder.add_edge(before, after)
    return builder.compile(checkpointer=saver or InMemorySaver(), **options)


def sqlite_saver(path: Path) -> SqliteSaver:
    """A checkpointer that keeps its threads in a file."""
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False))


def config(thread: str = "t1", **more: Any) -> Any:
    """The configuration that names a thread."""
    return {"configurable": {"thread_id": thread}, **more}


def run(graph: Any, given: Any = "hi", *, thread: str = "t1", **options: Any) -> list[Any]:
    """The native stream of one invoke as a driver sees it, with what the graph raised as the last element.

    A text is a message of the user; a dict without messages whose keys are interrupt ids is an answer.
    """
    if isinstance(given, str):
        given = {"messages": [{"role": "user", "content": given}]}
    elif isinstance(given, dict) and given and all(len(key) == 32 for key in given):
        given = Command(resume=given)
    limit = options.pop("recursion_limit", None)
    settings = config(thread) if limit is None else config(thread, recursion_limit=limit)
    options = {"stream_mode": list(MODES), "subgraphs": True, "version": "v2", **options}
    parts: list[Any] = []
    try:
        parts.extend(graph.stream(given, settings, **options))
    except Exception as error:
        parts.append(error)
    return parts


def protocol_events(graph: Any, given: str = "hi", thread: str = "t1") -> list[Any]:
    """The native stream of one invoke as protocol events (v3, which is in beta and says so)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with graph.stream_events({"messages": [HumanMessage(given)]}, config(thread), version="v3") as stream:
            return list(stream)


def deserialised(parts: Sequence[Any]) -> list[Any]:
    """A native stream as it comes over a wire: nothing but what JSON can hold."""
    return [part if isinstance(part, Exception) else json.loads(json.dumps(jsonable(part))) for part in parts]


def normalize(parts: Sequence[Any], *, end: HostEnd | None = None, **settings: Any) -> list[AgStreamEvent]:
    """The events of a native stream that ended by itself or by the exception that is its last element.

    The stream is checked: a rule of the spec that it breaks fails the test.
    """
    normalizer = LangGraphNormalizer(settings.pop("turn_id", "turn-1"), "thread-1", **settings)
    events: list[AgStreamEvent] = []
    for part in parts:
        events += normalizer.push(HostError(part) if isinstance(part, Exception) else part)
    events += normalizer.push(end or HostEnd())
    events += normalizer.flush()
    assert list(check(events, known_ids=settings.get("known_ids"))) == []
    return events


def plain(events: Sequence[AgStreamEvent]) -> list[dict[str, Any]]:
    """Events as the wire has them."""
    return [to_dict(event) for event in events]


def of_type(events: Sequence[AgStreamEvent], *types: str) -> list[dict[str, Any]]:
    """The events of some types as the wire has them, without their ordinals."""
    return [{k: v for k, v in event.items() if k != "seq"} for event in plain(events) if event["type"] in types]


# What is compared: who says what, under which id. The rest is where and when it was said.
_SAID = ("id", "role", "content")


def said(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """What messages say, as plain data."""
    return [
        unattributed({name: value for name, value in to_dict(message).items() if name in _SAID}) for message in messages
    ]


def fold(events: Sequence[AgStreamEvent], initial: AgReduceResult | None = None) -> AgReduceResult:
    """What a stream folds to, on top of what came before; it must not park."""
    reducer = Reducer(initial)
    for event in events:
        reducer.push(event)
    assert not reducer.needs_resync
    return reducer.result()


def kept(graph: Any, *, without: Sequence[str] = (), thread: str = "t1") -> list[dict[str, Any]]:
    """The conversation in the state of a graph, without what is not said by the graph."""
    messages = graph.get_state(config(thread)).values["messages"]
    return said(messages_from_native([each.model_dump() for each in messages if each.id not in without]))
