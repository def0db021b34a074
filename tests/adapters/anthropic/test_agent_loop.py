"""The tool loop and paused turns of the agent on the Messages API, with the provider's real clients."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic import Anthropic

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.types import (
    AgClientCapabilities,
    AgFrontendTool,
    AgRunConfig,
    StartInput,
    ToolDone,
)
from tests.support.anthropic_agents import HELLO, SEARCH, WEATHER, Tools, Way, call, calls, client, ways
from tests.support.anthropic_wire import START, block, end, text
from tests.support.messages_server import Answer, MessagesServer, Native, Request, failure
from tests.support.scripted import Session, results, said, start, terminal


def division(id: str, a: int, b: int, index: int = 0) -> list[Native]:
    return call(id, "divide", json.dumps({"a": a, "b": b}), index=index)


@ways
def test_the_loop_runs_tools_until_the_model_calls_none(kind: Any, way: Way) -> None:
    tools = Tools()
    answers = [
        Answer([START, *division("c1", 6, 3), *division("c2", 1, 0, 1), *end("tool_use")]),
        Answer([START, *division("c1", 9, 3), *end("tool_use")]),
        HELLO,
    ]
    with MessagesServer(answers) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind)]))
        events = way(session, start())
    assert tools.ran == [(6, 3), (1, 0), (9, 3)]
    assert (terminal(events)["finishReason"], terminal(events)["usage"]["outputTokens"]) == ("stop", 15)
    done = [(event.tool_call_id, event.outcome) for event in events if isinstance(event, ToolDone)]
    assert done == [("c1", "ok"), ("c2", "error"), ("c1#2", "ok")]
    assert [message.id for message in session.thread().result.messages] == [
        "u",
        "msg_1",
        "c1:result",
        "c2:result",
        "msg_1#2",
        "c1#2:result",
        "msg_1#3",
    ]
    assert session.thread().pending.calls == ()
    assert len(server.requests) == 3
    session.verify()
    with MessagesServer([HELLO]) as later:
        session.agent.client = client(later, kind)  # type: ignore[attr-defined]
        way(session, start(said("and now?", "u2")))
    replayed, sent = later.requests[0].body["messages"], server.requests[2].body["messages"]
    assert [[part["type"] for part in message["content"]] for message in replayed[: len(sent)]] == [
        [part["type"] for part in message["content"]] for message in sent
    ]
    session.verify()


@ways
def test_the_loop_stops_for_a_tool_of_the_client(kind: Any, way: Way) -> None:
    tools = Tools()
    first = Answer([START, *division("c1", 6, 3), *call("c2", "pick", "{}", index=1), *end("tool_use")])
    with MessagesServer([first, HELLO]) as server:
        agent = AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind), WEATHER, SEARCH])
        session = Session(agent)
        can = AgClientCapabilities(frontend_tools=[AgFrontendTool(name="pick", input_schema={"type": "object"})])
        ended = terminal(way(session, start(capabilities=can)))
        assert (ended["finishReason"], tools.ran) == ("tool_call", [(6, 3)])
        assert session.thread().pending.open_calls == ["c2"]
        assert terminal(way(session, results("c2")))["finishReason"] == "stop"
    assert tools.ran == [(6, 3)]
    names = [tool["name"] for tool in server.requests[0].body["tools"]]
    assert names == ["divide", "weather", "web_search", "pick"]
    assert server.requests[0].body["tools"] == server.requests[1].body["tools"]
    last = server.requests[1].body["messages"][-1]["content"]
    assert [(part["tool_use_id"], part.get("is_error")) for part in last] == [("c1", None), ("c2", None)]
    session.verify()


@ways
def test_the_loop_has_a_limit(kind: Any, way: Way) -> None:
    tools = Tools()
    answer = Answer([START, *division("c1", 6, 3), *end("tool_use")])
    with MessagesServer([answer, answer, answer]) as server:
        agent = AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind)], max_iterations=2)
        session = Session(agent)
        ended = terminal(way(session, start()))
    assert (ended["outcome"]["type"], ended["outcome"]["code"], ended["finishReason"]) == (
        "error",
        "max_iterations",
        "other",
    )
    assert (len(server.requests), len(tools.ran)) == (2, 2)
    assert session.thread().pending.calls == ()
    session.verify()


@ways
def test_a_tool_is_forced_once(kind: Any, way: Way) -> None:
    tools = Tools()
    answers = [Answer([START, *division("c1", 6, 3), *end("tool_use")]), HELLO]
    with MessagesServer(answers) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind)]))
        way(session, start(run=AgRunConfig(tool_choice="required")))
    assert [request.body.get("tool_choice") for request in server.requests] == [{"type": "any"}, None]
    assert tools.ran == [(6, 3)]
    with MessagesServer([calls("c1"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[WEATHER]))
        way(session, start(run=AgRunConfig(tool_choice="required")))
        way(session, results("c1"))
    assert [request.body.get("tool_choice") for request in server.requests] == [{"type": "any"}, None]
    session.verify()


@ways
@pytest.mark.parametrize("cut", ["eof", "reset"])
def test_a_loop_that_is_cut_off_runs_no_tool(kind: Any, way: Way, cut: str) -> None:
    tools = Tools()
    with MessagesServer([Answer([START, *division("c1", 6, 3)], cut=cut)]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind)]))
        ended = terminal(way(session, start()))
    assert ended["type"] == ("turn.abort" if cut == "eof" else "turn.error")
    assert (tools.ran, len(server.requests)) == ([], 1)
    session.verify()


def test_a_loop_that_is_left_runs_no_further_tool() -> None:
    tools = Tools()
    with MessagesServer([Answer([START, *division("c1", 6, 3), *end("tool_use")])]) as server:
        agent = AnthropicAgent(client(server), model="claude-test", tools=[tools.of(Anthropic)])
        for event in agent.run_sync(start()):
            if event.type == "tool.args.assembled":
                break
    assert (tools.ran, len(server.requests)) == ([], 1)


@ways
def test_a_loop_whose_later_request_fails(kind: Any, way: Way) -> None:
    tools = Tools()
    answers = [
        Answer([START, *division("c1", 6, 3), *end("tool_use")]),
        failure(529, "overloaded_error", "busy"),
        HELLO,
    ]
    with MessagesServer(answers) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind)]))
        assert terminal(way(session, start()))["code"] == "overloaded_error"
        assert terminal(way(session, StartInput(thread_id="th", turn_id="t", messages=[])))["type"] == "turn.done"
    assert tools.ran == [(6, 3)]
    assert [part["type"] for part in server.requests[2].body["messages"][-1]["content"]] == ["tool_result"]
    session.verify()


# Pauses of the provider


def searching(id: str, *, paused: bool) -> Answer:
    use = {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}
    events = block(use, {"type": "input_json_delta", "partial_json": '{"query": "x"}'})
    return Answer([START, *events, *end("pause_turn" if paused else "end_turn")])


def found(id: str) -> Answer:
    hits = [
        {
            "type": "web_search_result",
            "url": "https://example.org",
            "title": "t",
            "encrypted_content": "c2VhbGVk",
            "page_age": None,
        }
    ]
    result = block({"type": "web_search_tool_result", "tool_use_id": id, "content": hits})
    return Answer([START, *result, *text("found", index=1), *end()])


@ways
def test_a_paused_turn_is_continued(kind: Any, way: Way) -> None:
    with MessagesServer([searching("srvtoolu_1", paused=True), found("srvtoolu_1"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[SEARCH]))
        events = way(session, start(said("search", "u1")))
        assert terminal(events)["finishReason"] == "stop"
        way(session, start(said("more", "u2")))
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user", "assistant"]
    tail = server.requests[1].body["messages"][1]["content"]
    assert tail == [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}]
    assert {**server.requests[0].body, "messages": []} == {**server.requests[1].body, "messages": []}
    replayed = server.requests[2].body["messages"][1]["content"]
    assert [part["type"] for part in replayed] == ["server_tool_use", "web_search_tool_result", "text"]
    assert replayed[1]["content"][0]["encrypted_content"] == "c2VhbGVk"
    session.verify()


@ways
def test_a_turn_that_pauses_for_ever_is_given_up(kind: Any, way: Way) -> None:
    def answer(request: Request) -> Answer:
        return searching(f"srvtoolu_{len(server.requests)}", paused=True)

    with MessagesServer(answer) as server:
        agent = AnthropicAgent(client(server, kind), model="claude-test", tools=[SEARCH], max_continuations=2)
        session = Session(agent)
        assert terminal(way(session, start()))["finishReason"] == "pause_turn"
    assert len(server.requests) == 3
    session.verify()


@ways
def test_what_the_api_takes_back_from_nobody_is_left_out_of_the_loop(kind: Any, way: Way) -> None:
    tools = Tools()
    thought = {"type": "redacted_thinking", "data": "c2VhbGVk"}
    unsigned = block({"type": "thinking", "thinking": "", "signature": ""}, index=2)
    first = [*block({"type": "text", "text": ""}), *division("toolu_1", 6, 3, index=1), *unsigned]
    first += [*block({"type": "text", "text": "so"}, index=3), *block(thought, index=4)]
    with MessagesServer([Answer([START, *first, *end("tool_use")]), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind)]))
        assert terminal(way(session, start()))["finishReason"] == "stop"
    assert tools.ran == [(6, 3)]
    _, said_before, answered = server.requests[1].body["messages"]
    assert [part["type"] for part in said_before["content"]] == ["tool_use", "text"]
    assert [(part["tool_use_id"], part["content"]) for part in answered["content"]] == [("toolu_1", "2")]
    session.verify()


@ways
def test_an_empty_text_before_a_pause_is_left_out_of_the_loop(kind: Any, way: Way) -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    paused = [*block({"type": "text", "text": ""}), *block(use, index=1)]
    with MessagesServer([Answer([START, *paused, *end("pause_turn")]), found("srvtoolu_1")]) as server:
        tools = [SEARCH, Tools().of(kind)]
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=tools))
        assert terminal(way(session, start()))["finishReason"] == "stop"
    assert [part["type"] for part in server.requests[1].body["messages"][-1]["content"]] == ["server_tool_use"]
    session.verify()


@ways
def test_a_search_that_was_cut_off_is_not_gone_on_with(kind: Any, way: Way) -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    half = block(use, {"type": "input_json_delta", "partial_json": '{"que'})[:-1]
    with MessagesServer([Answer([START, *half], cut="reset"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[SEARCH]))
        assert terminal(way(session, start()))["type"] != "turn.done"
        again = StartInput(thread_id="th", turn_id="t2", messages=[])
        assert terminal(way(session, again))["finishReason"] == "stop"
    assert server.requests[1].body["messages"] == server.requests[0].body["messages"]
    session.verify()
