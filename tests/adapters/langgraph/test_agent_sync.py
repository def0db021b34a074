"""Blocking and asynchronous graphs and checkpointers, with and without an event loop; runs that are stopped."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, nullcontext
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from agjson.adapters.langgraph.agent import LangGraphAgent
from agjson.types import AgStreamEvent, ToolDone
from tests.support.langgraph_agents import (
    Desk,
    Notes,
    Way,
    approve,
    approving,
    asks_of,
    both_ways,
    calling,
    echoing,
    reject,
    resume,
    saying,
)
from tests.support.scripted import Session, deltas, said, start, terminal, until


@pytest.fixture
def sqlite_saver() -> Iterator[SqliteSaver]:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()


def letters(saver: Any) -> tuple[Desk, Session]:
    desk = Desk()
    first = calling(("c1", "send", {"to": "ann"}), ("c2", "send", {"to": "bob"}))
    return desk, Session(LangGraphAgent(approving(saver, desk, first, saying("done"))))


@both_ways
def test_a_checkpointer_for_blocking_use_alone(way: Way, sqlite_saver: SqliteSaver) -> None:
    desk, session = letters(sqlite_saver)
    asks = asks_of(way(session, start()))
    way(session, resume(approve(asks[0]), reject(asks[1])))
    assert terminal(session.streams[-1])["finishReason"] == "stop"
    assert desk.sent == ["ann"]
    session.verify()


@both_ways
def test_a_review_that_somebody_else_has_spoilt_is_asked_again(way: Way, sqlite_saver: SqliteSaver) -> None:
    desk, session = letters(sqlite_saver)
    asks = asks_of(way(session, start()))
    agent = session.agent
    assert isinstance(agent, LangGraphAgent)
    answer: Any = {str((asks[0].metadata or {})["langgraph/interruptId"]): {"decisions": []}}
    with pytest.raises(ValueError, match="decisions"):
        agent.graph.invoke(Command(resume=answer), {"configurable": {"thread_id": "th"}})
    assert terminal(way(session, resume(reject(asks[0]), approve(asks[1]))))["finishReason"] == "stop"
    assert desk.sent == ["bob"]
    session.verify()


def test_a_blocking_graph_runs_where_a_loop_is_running_already(sqlite_saver: SqliteSaver) -> None:
    desk, session = letters(sqlite_saver)

    async def in_a_notebook() -> None:
        asks = asks_of(session.run_sync(start()))
        session.run_sync(resume(approve(asks[0]), approve(asks[1])))

    asyncio.run(in_a_notebook())
    assert sorted(desk.sent) == ["ann", "bob"]


def test_a_blocking_graph_does_not_stop_the_loop(sqlite_saver: SqliteSaver) -> None:
    began, go = threading.Event(), threading.Event()

    def wait(state: Notes) -> Any:
        began.set()
        assert go.wait(20)
        return {"topic": "through"}

    builder = StateGraph(Notes)
    builder.add_node("wait", wait)
    builder.add_edge(START, "wait")
    session = Session(LangGraphAgent(builder.compile(checkpointer=sqlite_saver)))

    async def main() -> None:
        running = asyncio.create_task(session.run(start()))
        await until(began.is_set)
        go.set()
        await running

    asyncio.run(main())
    assert terminal(session.streams[-1])["outcome"]["type"] == "success"


def test_an_asynchronous_checkpointer() -> None:
    async def main() -> tuple[Desk, Session]:
        async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
            desk, session = letters(saver)
            asks = asks_of(await session.run(start()))
            await session.run(resume(reject(asks[0]), approve(asks[1])))
            return desk, session

    desk, session = asyncio.run(main())
    assert terminal(session.streams[-1])["finishReason"] == "stop"
    assert desk.sent == ["bob"]
    session.verify()


def test_an_asynchronous_checkpointer_without_a_loop_on_the_calling_thread() -> None:
    async def main() -> Desk:
        async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
            desk, session = letters(saver)
            asks = asks_of(await asyncio.to_thread(session.run_sync, start()))
            await asyncio.to_thread(session.run_sync, resume(approve(asks[0]), reject(asks[1])))
            return desk

    assert asyncio.run(main()).sent == ["ann"]


@both_ways
def test_nodes_that_are_coroutines(way: Way) -> None:
    model = echoing(None, saying("Hi there.", "a1"))[1]

    async def ask(state: Notes) -> Any:
        await asyncio.sleep(0)
        return {"messages": [await model.ainvoke(state.get("messages", []))]}

    builder = StateGraph(Notes)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    session = Session(LangGraphAgent(builder.compile(checkpointer=InMemorySaver())))
    assert deltas(way(session, start())) == ["Hi ", "there."]
    session.verify()


def test_the_host_says_how_the_graph_is_run() -> None:
    graph, _ = echoing(InMemorySaver(), saying("Hi.", "a1"))
    modes: list[str] = []
    stream = graph.stream

    def noted(*args: Any, **settings: Any) -> Any:
        modes.append(settings["durability"])
        return stream(*args, **settings)

    graph.stream = noted
    session = Session(LangGraphAgent(graph, blocking=True, durability="sync"))
    assert terminal(session.run_sync(start()))["finishReason"] == "stop"
    assert modes == ["sync"]


# Many at once


def test_one_agent_for_many_threads_at_once() -> None:
    count = 8
    desk = Desk()

    @tool
    def send(to: str) -> str:
        """Send a letter."""
        desk.sent.append(to)
        return f"sent to {to}"

    def model(state: Notes) -> Any:
        last = state.get("messages", [])[-1]
        if isinstance(last, ToolMessage):
            return {"messages": [AIMessage("done", id=f"done-{last.tool_call_id}")]}
        who = last.text
        return {"messages": [calling((f"c-{who}", "send", {"to": who}), id=f"ai-{who}")]}

    from langgraph.prebuilt import ToolNode
    from langgraph.types import interrupt

    def gate(state: Notes) -> Any:
        call = state.get("messages", [])[-1].tool_calls[0]
        assert interrupt({"question": call["id"]}) == call["id"]
        return {}

    builder = StateGraph(Notes)
    builder.add_node("model", model)
    builder.add_node("gate", gate)
    builder.add_node("tools", ToolNode([send]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges(
        "model", lambda state: "gate" if state["messages"][-1].tool_calls else "__end__", ["gate", "__end__"]
    )
    builder.add_edge("gate", "tools")
    builder.add_edge("tools", "model")
    agent = LangGraphAgent(builder.compile(checkpointer=InMemorySaver()))

    async def one(index: int) -> list[AgStreamEvent]:
        thread = f"th-{index}"
        session = Session(agent, thread)
        (ask,) = asks_of(await session.run(start(said(f"p{index}", f"u{index}"), thread=thread)))
        return await session.run(resume(approve(ask, reply=f"c-p{index}"), thread=thread))

    async def main() -> list[list[AgStreamEvent]]:
        return await asyncio.gather(*(one(index) for index in range(count)))

    ends = [terminal(events)["outcome"]["type"] for events in asyncio.run(main())]
    assert ends == ["success"] * count
    assert sorted(desk.sent) == sorted(f"p{index}" for index in range(count))


# Runs that are stopped


@asynccontextmanager
async def slow_agent(saver: Any) -> AsyncIterator[tuple[LangGraphAgent, list[str]]]:
    """An agent whose first tool waits for ever, and what has happened to it."""
    happened: list[str] = []

    @tool
    async def wait(what: str) -> str:
        """Wait."""
        happened.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            happened.append("ended")
        return "never"

    from langchain.agents import create_agent

    from tests.support.langgraph_agents import ScriptedModel

    model = ScriptedModel(calling(("c1", "wait", {"what": "x"})), saying("Hello.", "ai-2"))
    yield LangGraphAgent(create_agent(model, [wait], checkpointer=saver)), happened


@pytest.mark.parametrize("stop", ["close", "cancel"])
def test_a_run_that_is_stopped(stop: str) -> None:
    async def main() -> tuple[Session, list[str]]:
        async with slow_agent(InMemorySaver()) as (agent, happened):
            session = Session(agent)
            stream: list[AgStreamEvent] = []
            session.streams.append(stream)

            async def read() -> None:
                async with aclosing(agent.run(start(said("go", "u1")))) as events:
                    async for event in events:
                        stream.append(event)
                        if stop == "close" and event.type == "tool.args.assembled":
                            return

            running = asyncio.create_task(read())
            if stop == "cancel":
                await until(lambda: happened == ["began"])
                running.cancel()
            with pytest.raises(asyncio.CancelledError) if stop == "cancel" else nullcontext():
                await running
            turn = session.thread().result.turns[-1]
            assert turn.outcome is not None
            assert turn.outcome.type == "aborted"
            session.streams.clear()
            await session.run(start(said("again", "u2"), turn="t2"))
            return session, happened

    session, happened = asyncio.run(main())
    assert happened in ([], ["began", "ended"])
    assert happened == ["began", "ended"] or stop == "close"
    events = session.streams[-1]
    assert terminal(events)["finishReason"] == "stop"
    if stop == "cancel":
        (done,) = [event for event in events if isinstance(event, ToolDone)]
        assert done.outcome == "error"


def test_a_reader_that_stops_closes_the_blocking_graph(sqlite_saver: SqliteSaver) -> None:
    graph, model = echoing(sqlite_saver, saying("one two three four five", "a1"), saying("Again.", "a2"))
    agent = LangGraphAgent(graph)
    for event in agent.run_sync(start(said("go", "u1"))):
        if event.type == "text.delta":
            break
    session = Session(agent)
    events = session.run_sync(start(said("again", "u2"), turn="t2"))
    assert terminal(events)["finishReason"] == "stop"
    assert [message.text for message in model.asked[-1]] == ["go", "again"]
