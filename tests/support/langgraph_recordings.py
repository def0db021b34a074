"""Recorded answers of providers, played through graphs with the real chat models, and tools by the recorded names."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from agjson.testing.cassettes import Exchange, read_cassette
from tests.support.corpus import cassettes
from tests.support.langgraph_graphs import MODES, config
from tests.support.langgraph_wire import FOLDERS, Native, chat_model
from tests.support.messages_server import Answer, MessagesServer, Request

__all__ = ["BUILDERS", "SAID", "Played", "is_answer", "play", "playable", "recordings"]

SAID = HumanMessage("Ask.", id="u-contract")
"""What the user says first."""

_PATHS = {
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
    "openai-chat": "/v1/chat/completions",
    "google": "enerateContent",
}
_MEMBERS = {"anthropic": "messages", "openai-responses": "input", "openai-chat": "messages", "google": "contents"}

_CLOSING = Answer(status=400, body={"error": {"message": "all is said", "type": "invalid_request_error", "code": 400}})
"""What ends the run after the recorded answer, which is complete without it."""


@dataclass
class Played:
    """A recording that was played through a graph.

    Attributes:
        parts: the native stream, as the graph handed it out.
        state: the messages of the graph's state in the end.
        requests: the bodies that the chat model has sent.
        failed: what the graph raised, if it did.
    """

    parts: list[Any] = field(default_factory=list[Any])
    state: list[BaseMessage] = field(default_factory=list[BaseMessage])
    requests: list[Native] = field(default_factory=list[Native])
    failed: Exception | None = None


def recordings(streamed: bool | None = None) -> list[Any]:
    """The recordings as parameters of a test: the folder and the path of the file.

    Args:
        streamed: only those with answers that stream, or only the others; None: all.
    """
    return [
        pytest.param(folder, *param.values, marks=param.marks, id=f"{folder}-{param.id}")
        for folder in FOLDERS
        for param in cassettes(folder)
        if streamed is None or not isinstance(path := param.values[0], Path) or playable(folder, path, streamed)
    ]


def playable(folder: str, path: Path, streamed: bool) -> list[Exchange]:
    """The answers of a recording that its provider's chat model asks for in that way.

    The stream of Gemini in the form of one array is none of them.
    """
    return [
        each
        for each in _answers(folder, path)
        if _streams(each) is streamed and not each.body.lstrip().startswith(b"[")
    ]


@cache
def _answers(folder: str, path: Path) -> tuple[Exchange, ...]:
    return tuple(each for each in read_cassette(path) if is_answer(folder, each))


def is_answer(folder: str, exchange: Exchange) -> bool:
    """Whether an exchange is a successful one with the API that the chat model of a folder asks."""
    if exchange.method != "POST" or exchange.status != 200 or not exchange.request.startswith(b"{"):
        return False
    if exchange.uri:
        return exchange.uri.partition("?")[0].endswith(_PATHS[folder])
    return _MEMBERS[folder] in json.loads(exchange.request)


def _streams(exchange: Exchange) -> bool:
    return exchange.body.lstrip().startswith((b"event:", b"data:", b":"))


# Graphs


def _agent(model: BaseChatModel, tools: Sequence[StructuredTool]) -> Any:
    return create_agent(model, list(tools), checkpointer=InMemorySaver())


def _graph(model: BaseChatModel, tools: Sequence[StructuredTool]) -> Any:
    bound: Any = model.bind_tools(list(tools)) if tools else model
    builder = StateGraph(MessagesState)

    def node(state: MessagesState) -> Native:
        return {"messages": [bound.invoke(state["messages"])]}

    builder.add_node("model", node)  # pyright: ignore
    builder.add_node("tools", ToolNode(list(tools)))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=InMemorySaver())


BUILDERS: dict[str, Callable[..., Any]] = {"agent": _agent, "graph": _graph}
"""How a graph is made of a model and tools: by LangChain, and by hand."""


def play(
    folder: str, path: Path, *, streamed: bool, build: Callable[..., Any] = _agent, modes: Sequence[str] = MODES
) -> Iterator[Played]:
    """Play each answer of a recording; calls of tools get a result, and then the model is done.

    Args:
        folder: whose recording it is.
        path: the recording.
        streamed: the answers that stream, or the others.
        build: makes the graph.
        modes: the stream modes.
    """
    for exchange in playable(folder, path, streamed):
        yield _play(folder, exchange, streamed=streamed, build=build, modes=modes)


def _play(
    folder: str, exchange: Exchange, *, streamed: bool, build: Callable[..., Any], modes: Sequence[str]
) -> Played:
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        if len(asked) > 1:
            return _CLOSING
        return Answer(raw=exchange.body) if streamed else Answer(body=json.loads(exchange.body))

    played = Played()
    with MessagesServer(answer) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = chat_model(FOLDERS[folder], server.url)
        model.streaming = streamed
        graph = build(model, _tools(exchange))
        try:
            played.parts.extend(
                graph.stream({"messages": [SAID]}, config(), stream_mode=list(modes), subgraphs=True, version="v2")
            )
        except Exception as error:
            played.failed = error
        played.state = graph.get_state(config()).values.get("messages", [])
        played.requests = [each.body for each in asked]
    return played


def _tools(exchange: Exchange) -> list[StructuredTool]:
    """The tools that the recorded request has offered."""
    names: list[str] = []
    for tool in json.loads(exchange.request).get("tools") or ():
        for each in (tool, tool.get("function"), *(tool.get("functionDeclarations") or ())):
            name = each.get("name") if isinstance(each, dict) else None
            is_hosted = str(tool.get("type", "custom")) not in ("custom", "function")
            if isinstance(name, str) and not is_hosted and name not in names:
                names.append(name)
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return [
        StructuredTool(name=name, description="Recorded.", args_schema=schema, func=_returning(name)) for name in names
    ]


def _returning(name: str) -> Callable[..., str]:
    def run(**arguments: Any) -> str:
        return f"The result of {name}."

    return run
