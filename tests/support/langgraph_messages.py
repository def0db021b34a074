"""Messages of LangChain for tests: short ways to write them, and what the real chat models make of recorded answers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agjson.adapters.langgraph._runs import MessageRuns
from agjson.adapters.langgraph._scope import Scope
from agjson.checker import check
from agjson.emitter import Emitter
from agjson.fold import Reducer
from agjson.testing.cassettes import Exchange, read_cassette
from agjson.types import AgStreamEvent
from agjson.wire import encode, to_dict
from tests.support.corpus import corpus_path, missing_reason
from tests.support.messages_server import Answer, MessagesServer

Native = dict[str, Any]

ROOT = Scope(ns=(), turn_id="t1")
ATTRIBUTION = frozenset(("langgraph/node", "langgraph/ns", "langgraph/tags"))
META: Native = {"langgraph_node": "model", "langgraph_checkpoint_ns": "model:task-1"}

# Recordings that are no answer of the API that the chat model of their folder calls.
_ANSWERS = {
    "anthropic": "/messages",
    "openai-chat": "/chat/completions",
    "azure": "/chat/completions",
    "deepseek": "/chat/completions",
    "openrouter": "/chat/completions",
    "openai-responses": "/responses",
    "google": "enerateContent",
}
# Their streams are none that the chat model can read: of another form, of an error, of an answer that it fails on.
_UNREADABLE = frozenset(
    (
        "anthropic/pydantic-ai--compaction-usage-with-cache-streaming.yaml",
        "google/llm--tools-with-gemini-3-thought-signatures.yaml",
        "google/llm--tools.yaml",
        "google/mirascope--model-not-found-stream-gemini25.yaml",
    )
)

# In some recordings the address is not kept, and all of their answers are of one API.
_UNNAMED = ("", "**REDACTED**", "https://**REDACTED**")


@dataclass(frozen=True)
class Recorded:
    """What a chat model has made of one recorded answer.

    Attributes:
        name: folder, file and number.
        chunks: the chunks as plain data, in order; empty where the answer did not stream.
        whole: the finished message as plain data.
    """

    name: str
    chunks: list[Native]
    whole: Native


def chunk(content: Any = "", id: str | None = "lc_run--1", **members: Any) -> Native:
    """A chunk as plain data, as pydantic dumps it."""
    return {
        "type": "AIMessageChunk",
        "content": content,
        "id": id,
        "additional_kwargs": {},
        "response_metadata": {},
        "tool_calls": [],
        "invalid_tool_calls": [],
        "tool_call_chunks": [],
        "usage_metadata": None,
        "chunk_position": None,
        "name": None,
        **members,
    }


def last(id: str | None = "lc_run--1", **members: Any) -> Native:
    """The chunk that ends a message."""
    return chunk(id=id, chunk_position="last", **members)


def part(name: str | None, args: str | None, id: str | None, index: Any) -> Native:
    """A fragment of a call."""
    return {"type": "tool_call_chunk", "name": name, "args": args, "id": id, "index": index}


def ai(content: Any = "", id: str | None = "m1", **members: Any) -> Native:
    """A whole answer as plain data."""
    whole = chunk(content, id, **members)
    del whole["tool_call_chunks"], whole["chunk_position"]
    return {**whole, "type": "ai"}


def tool(content: Any, call: Any, id: str | None = "tm1", **members: Any) -> Native:
    """A tool message as plain data."""
    return {
        "type": "tool",
        "content": content,
        "tool_call_id": call,
        "id": id,
        "name": None,
        "artifact": None,
        "status": "success",
        "additional_kwargs": {},
        "response_metadata": {},
        **members,
    }


class Stream:
    """`MessageRuns` with what it has emitted.

    Args:
        **settings: of `MessageRuns`.
    """

    def __init__(self, **settings: Any) -> None:
        self.out = Emitter("t1", "th")
        self.runs = MessageRuns(self.out, **settings)
        self.events: list[AgStreamEvent] = []

    def take(
        self,
        *messages: Mapping[str, Any],
        key: Hashable | None = 1,
        meta: Mapping[str, Any] | None = None,
        scope: Scope = ROOT,
    ) -> list[Native]:
        """Take messages of ``messages`` mode; returns what they emitted."""
        for message in messages:
            self.runs.take(message, META if meta is None else meta, key=key, scope=scope)
        return self.drained()

    def commit(self, message: Mapping[str, Any], *, node: str | None = "model", scope: Scope = ROOT) -> list[Native]:
        """Take a message of an update; returns what it emitted."""
        self.runs.commit(message, scope=scope, node=node)
        return self.drained()

    def drained(self) -> list[Native]:
        """What was emitted since the last call, as JSON without its envelope."""
        events = self.out.drain()
        self.events += events
        found = []
        for event in events:
            members = json.loads(encode(event))
            for name in ("seq", "turnId", "threadId"):
                members.pop(name, None)
            found.append(members)
        return found

    def end(self) -> list[Native]:
        """End the stream, prove that it is sound, and return the messages of its fold."""
        self.runs.release()
        self.drained()
        self.out.turn_done(usage=self.runs.usage("t1"), finish_reason=self.runs.finish_reason("t1") or "stop")
        self.drained()
        return folded(self.events)


def unattributed(message: Native) -> Native:
    """A message without what its blocks say of where they come from, which the state of a graph does not know."""
    content = []
    for block in message.get("content", ()):
        meta = {name: value for name, value in block.get("_meta", {}).items() if name not in ATTRIBUTION}
        content.append(
            {name: value for name, value in block.items() if name != "_meta"} | ({"_meta": meta} if meta else {})
        )
    return {**message, "content": content} if "content" in message else message


def folded(events: Iterable[AgStreamEvent]) -> list[Native]:
    """The messages that a sound stream folds to."""
    events = list(events)
    violations = list(check(events))
    assert not violations, violations[:3]
    reducer = Reducer()
    for event in events:
        reducer.push(event)
        assert not reducer.needs_resync, f"parked at {event!r}: {reducer.resync_reason}"
    found = [unattributed(each) for each in json.loads(json.dumps(to_dict(reducer.result())))["messages"]]
    assert isinstance(found, list)
    return found


def blocks(events: Iterable[AgStreamEvent]) -> list[Native]:
    """The blocks of the answers that a sound stream folds to."""
    return [block for message in folded(events) if message["role"] == "assistant" for block in message["content"]]


def streamed(chunks: Iterable[Mapping[str, Any]], *, key: Hashable | None = 1) -> list[Native]:
    """The blocks that chunks fold to."""
    stream = Stream()
    stream.take(*chunks, key=key)
    stream.end()
    return blocks(stream.events)


def committed(message: Mapping[str, Any]) -> list[Native]:
    """The blocks that a whole message folds to in a stream of its own."""
    stream = Stream()
    stream.commit(message)
    stream.end()
    return blocks(stream.events)


# Recorded answers


def _model(folder: str, url: str, output_version: str | None) -> Any:
    more: Native = {} if output_version is None else {"output_version": output_version}
    tool = {"name": "noop", "description": "does nothing", "parameters": {"type": "object", "properties": {}}}
    if folder == "anthropic":
        from langchain_anthropic import ChatAnthropic

        bare: Any = ChatAnthropic(model="claude-sonnet-4-5", api_key="k", base_url=url, max_retries=0, **more)  # type: ignore[call-arg]
        tool = {"name": "noop", "description": "does nothing", "input_schema": tool["parameters"]}
    elif folder == "google":
        from langchain_google_genai import ChatGoogleGenerativeAI

        bare = ChatGoogleGenerativeAI(model="gemini-3-pro", google_api_key="k", base_url=url, max_retries=1, **more)  # type: ignore[call-arg]
    else:
        from langchain_openai import ChatOpenAI

        bare = ChatOpenAI(
            model="gpt-5",
            api_key="k",  # type: ignore[arg-type]
            base_url=f"{url}/v1",
            max_retries=0,
            use_responses_api=folder == "openai-responses",
            stream_usage=True,
            **more,
        )
    return bare.bind_tools([tool])


def _api(folder: str, exchange: Exchange) -> str:
    """The folder of recordings of the same API: Azure offers two."""
    return "openai-responses" if folder == "azure" and "/responses" in exchange.uri else folder


def _is_answer(folder: str, exchange: Exchange) -> bool:
    named = exchange.uri in _UNNAMED or _ANSWERS[_api(folder, exchange)] in exchange.uri
    # Gemini's stream in the form of a JSON array is not what the chat model asks for.
    array = "streamGenerateContent" in exchange.uri and not _streams(exchange)
    return exchange.status == 200 and named and not array


def _streams(exchange: Exchange) -> bool:
    return exchange.body.lstrip().startswith((b"event:", b"data:", b":"))


def _plain(message: Any) -> Native:
    plain = json.loads(json.dumps(message.model_dump(), default=str))
    assert isinstance(plain, dict)
    return plain


@cache
def replay(file: Path, output_version: str | None = None) -> tuple[Recorded, ...]:
    """What the chat model of a recording's provider makes of its answers.

    Args:
        file: the recording.
        output_version: the model's setting of that name.
    """
    from langchain_core.messages import message_chunk_to_message

    folder = file.parent.name
    found: list[Recorded] = []
    for number, exchange in enumerate(read_cassette(file)):
        if not _is_answer(folder, exchange):
            continue
        streams = _streams(exchange)
        answer = Answer(raw=exchange.body) if streams else Answer(body=json.loads(exchange.body))
        with MessagesServer([answer] * 3) as server, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = _model(_api(folder, exchange), server.url, output_version)
            try:
                chunks = list(model.stream("hi")) if streams else []
                whole = model.invoke("hi") if not streams else None
            except Exception:
                # The chat model itself cannot read the answer: it is of a model that it does not know.
                continue
            for each in chunks:
                whole = each if whole is None else whole + each
            assert whole is not None
            if streams:
                whole = message_chunk_to_message(whole)
        found.append(Recorded(f"{folder}--{file.stem}-{number}", [_plain(each) for each in chunks], _plain(whole)))
    return tuple(found)


class _Bedrock:
    """A client of Bedrock that knows one answer."""

    def __init__(self, events: list[Native]) -> None:
        self._events = events

    def converse_stream(self, **request: Any) -> Native:
        """The answer to any request."""
        return {"stream": iter(self._events)}


def bedrock(*events: Native) -> Recorded:
    """What the chat model of Bedrock's Converse API makes of the events of an answer."""
    from langchain_aws import ChatBedrockConverse
    from langchain_core.messages import message_chunk_to_message

    client: Any = _Bedrock(list(events))
    model = ChatBedrockConverse(
        client=client,
        bedrock_client=client,
        model="anthropic.claude-3-7-sonnet-20250219-v1:0",  # type: ignore[call-arg]
        region_name="us-east-1",
    )
    chunks: list[Any] = list(model.stream("hi"))
    total = chunks[0]
    for each in chunks[1:]:
        total = total + each
    return Recorded("bedrock", [_plain(each) for each in chunks], _plain(message_chunk_to_message(total)))


def recording_files(*folders: str, streaming: bool = False) -> list[Any]:
    """The recordings of chat models as parameters of a test, each the path of a file.

    Args:
        *folders: those of some providers; absent: of all.
        streaming: only those with answers that stream.
    """
    root = corpus_path()
    if root is None:
        return [pytest.param(None, marks=[pytest.mark.corpus, pytest.mark.skip(reason=missing_reason())])]
    index = json.loads((root / "cassettes" / "INDEX.json").read_bytes())["cassettes"]
    streams = {each["file"] for each in index if each["streaming"]} - _UNREADABLE
    return [
        pytest.param(file, id=f"{folder}--{file.stem}", marks=pytest.mark.corpus)
        for folder in folders or sorted(_ANSWERS)
        for file in sorted((root / "cassettes" / folder).iterdir())
        if not streaming or f"{folder}/{file.name}" in streams
    ]
