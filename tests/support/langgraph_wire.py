"""The real chat models of LangChain on a server of this machine: recorded answers in, the next request out."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import message_chunk_to_message
from langgraph.graph import MessagesState, StateGraph

from agjson.adapters.langgraph import LangGraphNormalizer
from agjson.adapters.langgraph.messages import Provider
from agjson.fold import Reducer
from agjson.normalizer import HostEnd
from agjson.testing.cassettes import Exchange, read_cassette
from agjson.types import AgMessage
from tests.support.messages_server import Answer, MessagesServer

Native = dict[str, Any]

FOLDERS: dict[str, Provider] = {
    "anthropic": "anthropic",
    "openai-responses": "openai-responses",
    "openai-chat": "openai-chat",
    "google": "google",
}
"""Which chat model a folder of recordings is played to."""

# What the server says to a request that is only looked at.
_SEEN = Answer(status=400, body={"error": {"message": "seen", "type": "invalid_request_error", "code": 400}})
_TOOL = {"name": "look", "input_schema": {"type": "object"}}
_PATHS = {
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
    "openai-chat": "/v1/chat/completions",
    "google": "enerateContent",
}


@dataclass(frozen=True)
class Recorded:
    """One answer of a provider as its chat model keeps it.

    Attributes:
        message: the message.
        echoed: ids and sealed values of the answer that its own client sent back in the next recorded request.
    """

    message: AIMessage
    echoed: frozenset[str]


def chat_model(provider: Provider, url: str) -> BaseChatModel:
    """A real chat model that speaks to a server of this machine.

    Args:
        provider: whose.
        url: the address of the server.
    """
    if provider == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model="claude-sonnet-4-5", base_url=url, api_key="k", max_retries=0)  # pyright: ignore
    if provider == "google":
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(model="gemini-3-pro-preview", google_api_key="k", base_url=url, max_retries=1)  # pyright: ignore
    from langchain_openai import ChatOpenAI

    responses = provider == "openai-responses"
    return ChatOpenAI(
        model="gpt-5",
        base_url=f"{url}/v1",
        api_key="k",  # pyright: ignore
        max_retries=0,
        use_responses_api=responses,
        output_version="responses/v1" if responses else None,
    )


@contextmanager
def seen(provider: Provider, *, settings: Native | None = None) -> Iterator[Any]:
    """A function that gives the request body which a chat model makes of messages.

    Args:
        provider: whose chat model.
        settings: further arguments of the call.
    """
    with MessagesServer(lambda request: _SEEN) as server:
        model = chat_model(provider, server.url)

        def body(messages: Sequence[BaseMessage]) -> Native:
            server.requests.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    model.invoke(list(messages), **(settings or {}))
                except Exception as error:
                    if not server.requests:
                        raise AssertionError(f"no request was made: {error}") from error
            return server.requests[0].body

        yield body


def recorded(path: Path, provider: Provider) -> Iterator[Recorded]:
    """The answers of a recording, read by the real chat model.

    Args:
        path: the recording.
        provider: whose it is.
    """
    exchanges = [each for each in read_cassette(path) if _is_answer(each, provider)]
    for at, exchange in enumerate(exchanges):
        message = play(exchange, provider)
        if message is not None:
            yield Recorded(message, _echoed(exchange, exchanges[at + 1]) if at + 1 < len(exchanges) else frozenset())


def strings(value: Any) -> Iterator[str]:
    """Every string in plain data, names of members aside.

    Args:
        value: the data.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for held in value.values():
            yield from strings(held)
    elif isinstance(value, list):
        for held in value:
            yield from strings(held)


def turns_of(body: Native) -> Any:
    """The conversation in the body of a request.

    Args:
        body: the body.
    """
    return next(body[name] for name in ("messages", "input", "contents") if name in body)


def _echoed(exchange: Exchange, following: Exchange) -> frozenset[str]:
    body = exchange.body.decode()
    new = set(strings(turns_of(json.loads(following.request)))) - set(strings(json.loads(exchange.request)))
    return frozenset(value for value in new if re.fullmatch(r"[\w+/=-]{16,}", value) and f'"{value}"' in body)


def play(exchange: Exchange, provider: Provider) -> AIMessage | None:
    """The message that a chat model makes of a recorded answer; None where it makes none.

    Args:
        exchange: the recorded exchange.
        provider: whose it is.
    """
    parsed = None if exchange.streamed else json.loads(exchange.body)
    streamed = exchange.streamed or isinstance(parsed, list)
    # A stream of Gemini without `alt=sse` is one array.
    raw = b"".join(b"data: %s\r\n\r\n" % json.dumps(each).encode() for each in parsed) if parsed and streamed else b""
    answer = Answer(raw=raw or exchange.body) if parsed is None or isinstance(parsed, list) else Answer(body=parsed)
    with MessagesServer(lambda request: answer) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = chat_model(provider, server.url)
        # Without tools in sight ChatAnthropic would put its blocks together as one string.
        settings: Native = {"tools": [_TOOL]} if provider == "anthropic" else {}
        if not streamed:
            message = model.invoke("Ask.", **settings)
        else:
            chunks = list(model.stream("Ask.", **settings))
            if not chunks:
                return None
            whole = chunks[0]
            for chunk in chunks[1:]:
                whole = whole + chunk  # type: ignore[assignment]
            assert isinstance(whole, AIMessageChunk)
            message = message_chunk_to_message(whole)
    assert isinstance(message, AIMessage)
    return message


def streamed(path: Path, provider: Provider) -> Iterator[tuple[list[AgMessage], list[BaseMessage]]]:
    """Each streamed answer of a recording through a graph: as the fold of its events has it, and as its state has it.

    Args:
        path: the recording.
        provider: whose it is.
    """
    settings: Native = {"tools": [_TOOL]} if provider == "anthropic" else {}
    for exchange in read_cassette(path):
        if not exchange.streamed or not _is_answer(exchange, provider):
            continue
        answer = Answer(raw=exchange.body)
        with MessagesServer(lambda request, answer=answer: answer) as server, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = chat_model(provider, server.url)

            def node(state: MessagesState, model: BaseChatModel = model) -> Native:
                return {"messages": [model.invoke(state["messages"], **settings)]}

            builder = StateGraph(MessagesState)
            builder.add_node("model", node)  # pyright: ignore
            builder.add_edge("__start__", "model")
            normalizer, reducer = LangGraphNormalizer(turn_id="t1", thread_id="th"), Reducer()
            state: list[BaseMessage] = []
            parts: Any = builder.compile().stream(
                {"messages": [HumanMessage("Ask.", id="u1")]},
                stream_mode=["messages", "updates", "values"],
                subgraphs=True,
                version="v2",
            )
            for part in (*parts, HostEnd()):
                if isinstance(part, dict) and part["type"] == "values":
                    state = part["data"]["messages"]
                for event in normalizer.push(part):
                    reducer.push(event)
            for event in normalizer.flush():
                reducer.push(event)
        yield list(reducer.result().messages), state


def conversation(message: AIMessage) -> list[BaseMessage]:
    """A conversation in which a message is the answer, its calls get results, and the user goes on.

    Args:
        message: the answer.
    """
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    results = [
        ToolMessage(f"Result of {call['name']}.", tool_call_id=call["id"] or "", name=call["name"], id=f"r{at}")
        for at, call in enumerate(calls)
    ]
    return [HumanMessage("Ask.", id="u1"), message, *results, HumanMessage("Go on.", id="u2")]


def _is_answer(exchange: Exchange, provider: Provider) -> bool:
    if exchange.method != "POST" or exchange.status != 200 or not exchange.request.startswith(b"{"):
        return False
    if exchange.uri:
        return exchange.uri.partition("?")[0].endswith(_PATHS[provider])
    body = json.loads(exchange.request)
    return {"anthropic": "messages", "openai-chat": "messages", "openai-responses": "input", "google": "contents"}[
        provider
    ] in body
