"""The agent on the Messages API when something goes wrong, with real clients against a server on this machine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.agents import UnknownToolCallError
from agjson.types import (
    AbortedOutcome,
    StartInput,
)
from agjson.wire import to_dict
from tests.support.anthropic_agents import HELLO, WEATHER, Tools, Way, call, calls, client, ways
from tests.support.anthropic_wire import START, text
from tests.support.messages_server import Answer, MessagesServer, Native, failure
from tests.support.scripted import Session, results, said, start, terminal, until


@ways
@pytest.mark.parametrize(
    ("status", "kind_of_error", "retriable"),
    [
        (400, "invalid_request_error", False),
        (401, "authentication_error", False),
        (429, "rate_limit_error", True),
        (529, "overloaded_error", True),
    ],
)
def test_a_request_that_fails(kind: Any, way: Way, status: int, kind_of_error: str, retriable: bool) -> None:
    with MessagesServer([failure(status, kind_of_error, "no luck"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test"))
        ended = terminal(way(session, start()))
        assert (ended["type"], ended["code"], ended["message"]) == ("turn.error", kind_of_error, "no luck")
        assert ended["retriable"] is retriable
        # The message is there: a start without one tries again.
        again = StartInput(thread_id="th", turn_id="t", messages=[])
        assert terminal(way(session, again))["type"] == "turn.done"
    assert server.requests[0].body["messages"] == server.requests[1].body["messages"]
    session.verify()


@ways
def test_a_server_that_is_not_there(kind: Any, way: Way) -> None:
    with MessagesServer([]) as server:
        nowhere = client(server, kind)
    session = Session(AnthropicAgent(nowhere, model="claude-test"))
    ended = terminal(way(session, start()))
    assert (ended["type"], ended["code"], ended["retriable"]) == ("turn.error", "APIConnectionError", True)
    session.verify()


@ways
def test_an_error_inside_the_stream(kind: Any, way: Way) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with MessagesServer([Answer([START, *text("Hel")[:-1], error])]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test"))
        ended = terminal(way(session, start()))
    assert (ended["type"], ended["code"], ended["retriable"]) == ("turn.error", "overloaded_error", True)
    assert ended["usage"]["inputTokens"] == 10
    assert to_dict(session.thread().result.messages[-1].content[0])["text"] == "Hel"
    session.verify()


@ways
@pytest.mark.parametrize("cut", ["eof", "reset"])
def test_a_stream_that_is_cut_off(kind: Any, way: Way, cut: str) -> None:
    with MessagesServer([Answer([START, *text("Hel")[:-1]], cut=cut), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test"))
        ended = terminal(way(session, start(said("1", "u1"))))
        if cut == "eof":
            assert (ended["type"], ended["reason"]) == ("turn.abort", "stream-truncated")
        else:
            assert (ended["type"], ended["code"]) == ("turn.error", "RemoteProtocolError")
        assert terminal(way(session, start(said("2", "u2"))))["type"] == "turn.done"
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user", "assistant", "user"]
    session.verify()


@ways
def test_a_call_that_was_cut_off_is_repaired_in_the_next_request(kind: Any, way: Way) -> None:
    with MessagesServer([Answer([START, *call("c1")[:2]], cut="eof"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[WEATHER]))
        way(session, start(said("1", "u1")))
        with pytest.raises(UnknownToolCallError):
            way(Session(session.agent), results("c1"))
        events = way(session, start(said("2", "u2")))
    mended = next(to_dict(event) for event in events if event.type == "ext.agjson.repairs")
    assert [repair["code"] for repair in mended["repairs"]] == ["result_added"]
    answer = server.requests[1].body["messages"][2]["content"]
    assert [part["type"] for part in answer] == ["tool_result", "text"] and answer[0]["is_error"] is True
    session.verify()


def waiting() -> tuple[threading.Event, Answer]:
    """An answer that stops in its middle, and then trickles on, so that a closed connection is noticed."""
    go = threading.Event()

    def events() -> Iterator[Native | threading.Event]:
        yield from [START, *text("Hel")[:-1], go]
        # The provider's client keeps these to itself.
        for _ in range(10_000):
            time.sleep(0.001)
            yield {"type": "ping"}

    return go, Answer(events())


async def test_a_cancelled_run_closes_the_connection() -> None:
    go, answer = waiting()
    with MessagesServer([answer]) as server:
        agent = AnthropicAgent(client(server, AsyncAnthropic), model="claude-test")
        session = Session(agent)
        task = asyncio.create_task(session.run(start()))
        await until(lambda: session.has("text.delta"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        assert await asyncio.to_thread(server.gone.wait, 10)
    thread = session.thread()
    assert thread.result.turns[0].outcome == AbortedOutcome(reason="cancelled")
    assert to_dict(thread.result.messages[-1].content[0])["text"] == "Hel"


async def test_a_reader_that_leaves_closes_the_connection() -> None:
    go, answer = waiting()
    with MessagesServer([answer]) as server:
        agent = AnthropicAgent(client(server, AsyncAnthropic), model="claude-test")
        async with aclosing(agent.run(start())) as events:
            async for event in events:
                if event.type == "text.delta":
                    break
        go.set()
        assert await asyncio.to_thread(server.gone.wait, 10)
    assert Session(agent).thread().result.turns[0].outcome == AbortedOutcome(reason="client-closed")


def test_a_loop_that_breaks_off_closes_the_connection() -> None:
    go, answer = waiting()
    with MessagesServer([answer]) as server:
        agent = AnthropicAgent(client(server), model="claude-test")
        for event in agent.run_sync(start()):
            if event.type == "text.delta":
                break
        go.set()
        assert server.gone.wait(10)
    assert Session(agent).thread().result.turns[0].outcome == AbortedOutcome(reason="client-closed")


@pytest.mark.parametrize("loops", [False, True])
async def test_a_blocking_client_in_a_loop_is_stopped_though_nothing_comes(loops: bool) -> None:
    go, answer = waiting()
    with MessagesServer([answer]) as server:
        agent = AnthropicAgent(client(server), model="claude-test", tools=[Tools().of(Anthropic)] if loops else [])
        session = Session(agent)
        task = asyncio.create_task(session.run(start()))
        await until(lambda: session.has("text.delta"))
        await asyncio.sleep(0.05)
        before = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - before < agent.close_timeout
        await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "agjson-source"])
        go.set()
        assert await asyncio.to_thread(server.gone.wait, 10)
    assert Session(agent).thread().result.turns[0].outcome == AbortedOutcome(reason="cancelled")


@ways
def test_a_call_that_was_given_up_holds_up_no_later_result(kind: Any, way: Way) -> None:
    cut = Answer([START, *call("toolu_1")[:-1]], cut="reset")
    with MessagesServer([cut, calls("toolu_2"), HELLO]) as server:
        session = Session(AnthropicAgent(client(server, kind), model="claude-test", tools=[WEATHER]))
        assert terminal(way(session, start(said("one", "u1"))))["type"] != "turn.done"
        assert terminal(way(session, start(said("two", "u2"))))["finishReason"] == "tool_call"
        assert terminal(way(session, results("toolu_2")))["finishReason"] == "stop"
    sent = server.requests[2].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert [part["tool_use_id"] for part in (sent[2]["content"][0], sent[4]["content"][0])] == ["toolu_1", "toolu_2"]
    assert "is_error" not in sent[4]["content"][0]
    session.verify()
