"""The agent on the Messages API, with the provider's real clients against a server on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.errors import ReplayError
from agjson.testing.cassettes import read_cassette
from agjson.types import (
    AgClientCapabilities,
    AgFrontendTool,
    AgMessage,
    AgReasoningConfig,
    AgRunConfig,
    AgToolDef,
    AgToolResult,
    StartInput,
    TextBlock,
    ToolResultInput,
)
from agjson.wire import to_dict
from tests.support.anthropic_agents import HELLO, SEARCH, WEATHER, Tools, Way, call, calls, client, ways
from tests.support.anthropic_wire import START, STOP, block, end, text
from tests.support.corpus import corpus_path, require_corpus
from tests.support.messages_server import Answer, MessagesServer, Native, Request
from tests.support.scripted import Session, deltas, results, said, start, terminal


@ways
def test_an_answer_in_text(kind: Any, way: Way) -> None:
    with MessagesServer([HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test"))
        events = way(session, start(said("hi")))
    assert deltas(events) == ["Hel", "lo"]
    assert (terminal(events)["finishReason"], terminal(events)["usage"]["outputTokens"]) == ("stop", 5)
    assert server.requests[0].body == {
        "model": "claude-test",
        "max_tokens": 4096,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    session.verify()


@ways
def test_a_client_tool_with_thinking_before_it(kind: Any, way: Way) -> None:
    signature = "Eo" + "Qx/9+" * 40 + "=="
    thinking = block(
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "which city? "},
        {"type": "thinking_delta", "thinking": "Bonn"},
        {"type": "signature_delta", "signature": signature},
    )
    first = Answer([START, *thinking, *call("toolu_1", index=1), *end("tool_use")])
    with MessagesServer([first, HELLO]) as server:
        agent = AnthropicAgent(client(server, kind), model="claude-test", tools=[WEATHER])
        session = Session(agent)
        config = AgRunConfig(
            system="Be short.",
            max_tokens=3000,
            reasoning=AgReasoningConfig(mode="enabled", budget_tokens=1024),
        )
        end_of_first = terminal(way(session, start(said("weather?"), run=config)))
        assert end_of_first["finishReason"] == "tool_call"
        assert session.thread().pending.open_calls == ["toolu_1"]
        end_of_second = terminal(way(session, results("toolu_1")))
        assert end_of_second["finishReason"] == "stop"
    bodies = [request.body for request in server.requests]
    told = {key: value for key, value in bodies[0].items() if key != "messages"}
    assert told["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert {key: value for key, value in bodies[1].items() if key != "messages"} == told
    assert bodies[1]["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "which city? Bonn", "signature": signature},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "found toolu_1"}],
                }
            ],
        },
    ]
    assert f'"signature":"{signature}"'.encode() in server.requests[1].raw.replace(b'": "', b'":"')
    session.verify()


@ways
def test_parallel_calls_go_back_in_one_message_when_all_results_are_there(kind: Any, way: Way) -> None:
    with MessagesServer([calls("c1", "c2", "c3"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[WEATHER]))
        way(session, start())
        assert terminal(way(session, results("c3")))["finishReason"] == "tool_call"
        assert len(server.requests) == 1
        failed = AgToolResult(tool_call_id="c1", content=[], outcome="error", error_text="no such city")
        denied = AgToolResult(tool_call_id="c2", content=[TextBlock(text="not now")], outcome="denied")
        way(session, ToolResultInput(thread_id="th", turn_id="r", results=[failed, denied]))
    last = server.requests[1].body["messages"][-1]
    given = {each["tool_use_id"]: each.get("is_error") for each in last["content"]}
    assert given == {"c1": True, "c2": True, "c3": None}
    session.verify()


@ways
def test_five_runs_of_a_provider_that_repeats_its_ids(kind: Any, way: Way) -> None:
    with MessagesServer([calls("toolu_1"), *([HELLO, calls("toolu_1")] * 5)]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[WEATHER]))
        for number in range(5):
            way(session, start(said("again", f"u{number}")))
            way(session, results("toolu_1" if not number else f"toolu_1#{number + 1}"))
    session.verify()
    sent = server.requests[-1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant"] * 4 + [
        "user",
        "assistant",
        "user",
    ]
    uses = [part["id"] for message in sent for part in message["content"] if part["type"] == "tool_use"]
    answers = [part["tool_use_id"] for message in sent for part in message["content"] if part["type"] == "tool_result"]
    assert uses == answers and len(set(uses)) == 5 and uses[0] == "toolu_1"


# What the input says


def test_the_context_of_a_start_stays_where_it_was() -> None:
    with MessagesServer([HELLO, calls("c1"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server), model="claude-test", tools=[WEATHER]))
        session.run_sync(start(said("one", "u1")))
        session.run_sync(start(said("two", "u2"), run=AgRunConfig(context=[TextBlock(text="beside")])))
        session.run_sync(results("c1"))
    first, second = server.requests[1].body["messages"], server.requests[2].body["messages"]
    assert first == second[: len(first)]
    assert [part["text"] for part in first[-1]["content"]] == ["beside", "two"]
    session.verify()


def test_members_that_the_provider_cannot_honour_are_named() -> None:
    config = AgRunConfig(
        temperature=0.2,
        reasoning=AgReasoningConfig(mode="enabled", budget_tokens=1024),
        tools=[AgToolDef(name="hidden", input_schema={}, ui_visibility=["app"])],
    )
    with MessagesServer([HELLO]) as server:
        session = Session(AnthropicAgent(client(server), model="claude-test"))
        events = session.run_sync(start(run=config, state={"n": 1}))
    named = [to_dict(event)["_meta"]["agjson/path"] for event in events if event.type == "error"]
    assert sorted(named) == ["run.temperature", "state"]
    assert "tools" not in server.requests[0].body
    session.verify()


@pytest.mark.parametrize("name", ["weather", "divide"])
def test_a_client_cannot_take_the_name_of_a_tool_of_the_host(name: str) -> None:
    with MessagesServer([]) as server:
        agent = AnthropicAgent(client(server), model="claude-test", tools=[WEATHER, Tools().of(Anthropic)])
        can = AgClientCapabilities(frontend_tools=[AgFrontendTool(name=name, input_schema={"type": "object"})])
        with pytest.raises(ReplayError, match="there is a tool"):
            next(agent.run_sync(start(capabilities=can)))
    assert server.requests == []


def test_a_history_that_cannot_be_sent_is_refused_before_any_request() -> None:
    with MessagesServer([]) as server:
        agent = AnthropicAgent(client(server), model="claude-test")
        with pytest.raises(ReplayError):
            next(agent.run_sync(StartInput(thread_id="th", turn_id="t", messages=[])))
        with pytest.raises(ReplayError):
            next(agent.run_sync(start(AgMessage(id="u", role="user", content=[]))))
    assert server.requests == []


def test_betas_and_defaults_are_sent() -> None:
    with MessagesServer([HELLO]) as server:
        agent = AnthropicAgent(
            client(server),
            model="claude-test",
            beta=["context-1m-2025-08-07"],
            defaults={"metadata": {"user_id": "u"}, "system": "Be kind."},
        )
        Session(agent).run_sync(start())
    request = server.requests[0]
    assert request.headers["anthropic-beta"] == "context-1m-2025-08-07"
    assert (request.body["metadata"], request.body["system"]) == ({"user_id": "u"}, "Be kind.")


# Many at once


def _echo(request: Request) -> Answer:
    asked = request.body["messages"][-1]["content"][0]["text"]
    return Answer([START, *text("for ", asked), *end()])


def test_a_hundred_threads_share_one_agent() -> None:
    with MessagesServer(_echo) as server:
        agent = AnthropicAgent(client(server), model="claude-test")

        def talk(number: int) -> Session:
            session = Session(agent, f"th{number}")
            for turn in range(2):
                session.run_sync(start(said(f"{number}.{turn}", f"u{turn}"), thread=session.thread_id))
            return session

        with ThreadPoolExecutor(100) as pool:
            sessions = list(pool.map(talk, range(100)))
    for number, session in enumerate(sessions):
        session.verify()
        for turn, stream in enumerate(session.streams):
            assert deltas(stream) == ["for ", f"{number}.{turn}"]


async def test_a_hundred_tasks_share_one_agent() -> None:
    with MessagesServer(_echo) as server:
        agent = AnthropicAgent(client(server, AsyncAnthropic), model="claude-test")
        sessions = [Session(agent, f"th{number}") for number in range(100)]
        await asyncio.gather(
            *(session.run(start(said(session.thread_id), thread=session.thread_id)) for session in sessions)
        )
    for session in sessions:
        session.verify()
        assert deltas(session.streams[0]) == ["for ", session.thread_id]


# Recordings


def recorded(name: str) -> tuple[list[Native], list[Answer]]:
    """The requests and answers of a recording."""
    require_corpus()
    path = corpus_path()
    assert path is not None
    exchanges = read_cassette(path / "cassettes" / "anthropic" / f"{name}.yaml")
    return [json.loads(each.request) for each in exchanges], [Answer(raw=each.body) for each in exchanges]


def asked(request: Native) -> AgMessage:
    content = request["messages"][0]["content"]
    words = content if isinstance(content, str) else content[0]["text"]
    return said(words)


def parts(message: Native) -> list[Native]:
    """The content of a native message, without members that a client wrote as null."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{key: value for key, value in part.items() if value is not None} for part in blocks]


# The models of the recordings are old, and the provider's client says so.
old_model = pytest.mark.filterwarnings("ignore:.*deprecated")


@pytest.mark.corpus
@old_model
@ways
def test_a_recorded_pause_goes_on_as_it_was_recorded(kind: Any, way: Way) -> None:
    requests, answers = recorded("pydantic-ai--pause-turn-web-search-streaming-vcr")
    with MessagesServer(answers) as server:
        agent = AnthropicAgent(client(server, kind), model="claude-sonnet-4-5", tools=[SEARCH], max_tokens=15000)
        session = Session(agent)
        config = AgRunConfig(reasoning=AgReasoningConfig(mode="enabled", budget_tokens=4096))
        events = way(session, start(asked(requests[0]), run=config))
    assert terminal(events)["finishReason"] == "stop"
    ours, theirs = server.requests[1].body["messages"][1], requests[1]["messages"][1]
    assert [part["type"] for part in parts(ours)] == [part["type"] for part in parts(theirs)]
    for mine, other in zip(parts(ours), parts(theirs), strict=True):
        for key in ("id", "signature", "input", "tool_use_id", "text", "thinking"):
            assert mine.get(key) == other.get(key)
    sealed = [hit["encrypted_content"] for part in parts(theirs) for hit in _hits(part)]
    assert [hit["encrypted_content"] for part in parts(ours) for hit in _hits(part)] == sealed and len(sealed) > 50
    session.verify()


def _hits(part: Native) -> Iterator[Native]:
    if part["type"] == "web_search_tool_result":
        yield from part["content"]


@pytest.mark.corpus
@old_model
@ways
@pytest.mark.parametrize("name", ["llm--tools", "langchain--agent-loop-streaming"])
def test_recorded_tool_calls_go_back_as_they_were_recorded(kind: Any, way: Way, name: str) -> None:
    requests, answers = recorded(name)
    with MessagesServer(answers) as server:
        tools: Sequence[Any] = requests[0]["tools"]
        session = Session(AnthropicAgent(client(server, kind), model=requests[0]["model"], tools=tools))
        way(session, start(asked(requests[0])))
        given = [part for part in requests[1]["messages"][-1]["content"] if part["type"] == "tool_result"]
        back = [
            AgToolResult(tool_call_id=part["tool_use_id"], content=[TextBlock(text=part["content"])]) for part in given
        ]
        events = way(session, ToolResultInput(thread_id="th", turn_id="r", results=back))
    assert terminal(events)["finishReason"] == "stop"
    ours, theirs = server.requests[1].body["messages"], requests[1]["messages"]
    # One client has put a blank text before the calls.
    said_then = [part for part in parts(theirs[1]) if part.get("text") != " "]
    for mine, other in zip(parts(ours[1]), said_then, strict=True):
        for key in ("type", "text", "id", "name", "input"):
            assert mine.get(key) == other.get(key)
    assert [part["tool_use_id"] for part in ours[2]["content"]] == [part["tool_use_id"] for part in given]
    session.verify()


def test_a_refusal_and_a_limit_keep_their_reasons() -> None:
    refused = end("refusal", stop_details={"type": "refusal", "category": "bio", "explanation": "no"})
    for ending, reason in ((refused, "refusal"), (end("max_tokens"), "token_limit"), ([STOP], "unknown")):
        with MessagesServer([Answer([START, *text("x"), *ending])]) as server:
            session = Session(AnthropicAgent(client(server), model="claude-test"))
            assert terminal(session.run_sync(start()))["finishReason"] == reason
        session.verify()


def test_results_go_on_with_the_settings_of_their_start_and_name_what_has_no_effect_once() -> None:
    config = AgRunConfig(system="Be short.", tool_choice="required", temperature=0.5)
    with MessagesServer([calls("toolu_1"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server), model="claude-test", tools=[WEATHER]))
        session.run_sync(start(said("weather?"), run=config))
        given = AgToolResult(tool_call_id="toolu_1", content=[TextBlock(text="sun")], will_continue=True)
        events = session.run_sync(ToolResultInput(thread_id="th", turn_id="r", results=[given]))
    first, second = (request.body for request in server.requests)
    assert first["tool_choice"] == {"type": "any"}
    assert "tool_choice" not in second
    for name in ("system", "tools", "temperature", "max_tokens"):
        assert second[name] == first[name]
    assert second["messages"][-1]["content"][0]["tool_use_id"] == "toolu_1"
    unsupported = [to_dict(event) for event in events if event.type == "error"]
    assert [event["_meta"]["agjson/path"] for event in unsupported] == ["results[0].willContinue"]
    session.verify()


def get_rate(pair: str) -> str:
    """The rate of a pair of currencies."""
    return pair


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (get_rate, "the function get_rate"),
        (Tools, "the class Tools"),
        ("get_rate", "the str"),
        (None, "the NoneType"),
    ],
)
def test_a_tool_that_is_neither_declared_nor_wrapped_is_refused_at_once(tool: Any, words: str) -> None:
    with pytest.raises(TypeError) as raised:
        AnthropicAgent(Anthropic(api_key="dummy"), model="m", tools=[WEATHER, tool])
    assert str(raised.value) == (
        "tools takes declarations as dicts, and functions that anthropic.beta_tool or beta_async_tool has wrapped, "
        f"not {words}"
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(object(), "the object"), ("sk-1", "the str"), (dict, "the class dict"), (None, "the NoneType")],
)
def test_a_client_without_the_api_is_refused_at_once(wrong: Any, words: str) -> None:
    with pytest.raises(TypeError) as raised:
        AnthropicAgent(wrong, model="m")
    assert str(raised.value) == f"client must be an anthropic.Anthropic or AsyncAnthropic, not {words}"


def test_a_class_of_a_client_is_no_client() -> None:
    with pytest.raises(TypeError, match="not the class AsyncAnthropic"):
        AnthropicAgent(AsyncAnthropic, model="m")
