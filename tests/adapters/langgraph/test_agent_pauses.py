"""Pauses in hard places: subgraphs, tools, answers that somebody else gave, questions that come one after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from agjson.adapters.langgraph.agent import LangGraphAgent
from agjson.agents import MemoryThreadStore, Pending, UnknownAskError
from agjson.errors import ReplayError
from agjson.types import AgHitlAnswer, AgPausedAsk
from agjson.wire import answer_to
from tests.support.langgraph_agents import (
    Desk,
    Notes,
    ScriptedModel,
    Way,
    approve,
    approving,
    asking,
    asks_of,
    both_ways,
    calling,
    reject,
    resume,
    saying,
)
from tests.support.scripted import Session, said, start, terminal

CONFIG: Any = {"configurable": {"thread_id": "th"}}


def value_of(ask: AgPausedAsk) -> Any:
    return (ask.metadata or {})["langgraph/value"]


def native(ask: AgPausedAsk) -> str:
    return str((ask.metadata or {})["langgraph/interruptId"])


@both_ways
@pytest.mark.parametrize("modes", [["messages"], ["custom"], ["values"], ["tasks"], ["updates"]])
@pytest.mark.parametrize("stops", [False, True])
def test_a_pause_is_told_whatever_else_is_asked_for(way: Way, modes: list[str], stops: bool) -> None:
    ran: list[Any] = []
    graph = asking(InMemorySaver(), "colour?", ran=ran, stops=stops)
    session = Session(LangGraphAgent(graph, modes=modes))
    (ask,) = asks_of(way(session, start()))
    assert (ask.metadata or {})["langgraph/checkpointId"] == graph.get_state(CONFIG).config["configurable"][
        "checkpoint_id"
    ]
    end = terminal(way(session, resume(approve(ask) if stops else approve(ask, reply="blue"))))
    assert (end["outcome"]["type"], ran) == ("success", ["passed" if stops else "blue"])
    session.verify()


def test_updates_that_nobody_has_asked_for_are_not_told() -> None:
    session = Session(LangGraphAgent(asking(InMemorySaver(), "colour?"), modes=["messages"]))
    (ask,) = asks_of(session.run_sync(start()))
    events = session.run_sync(resume(approve(ask, reply="blue")))
    assert [event.type for event in events if event.type.startswith(("state.", "step.", "ext."))] == []
    assert terminal(events)["outcome"]["type"] == "success"


@both_ways
def test_questions_in_two_subgraphs_and_beside_them(way: Way) -> None:
    ran: list[Any] = []
    builder = StateGraph(Notes)
    builder.add_node("left", asking(None, "left?", "left again?", ran=ran))
    builder.add_node("right", asking(None, "right?", ran=ran))
    builder.add_node("beside", asking_node("beside?", ran))
    for name in ("left", "right", "beside"):
        builder.add_edge(START, name)
    session = Session(LangGraphAgent(builder.compile(checkpointer=InMemorySaver())))
    asks = asks_of(way(session, start()))
    assert sorted(map(value_of, asks)) == ["beside?", "left?", "right?"]
    answers = [approve(ask, reply=f"to {value_of(ask)}") for ask in asks]
    (left,) = asks_of(way(session, resume(*answers)))
    assert value_of(left) == "left again?"
    assert sorted(ran) == ["to beside?", "to right?"]
    assert terminal(way(session, resume(approve(left, reply="enough"), turn="r2")))["outcome"]["type"] == "success"
    assert sorted(ran) == ["enough", "to beside?", "to left?", "to right?"]
    session.verify()


def asking_node(question: str, ran: list[Any]) -> Any:
    def ask(state: Notes) -> Any:
        ran.append(interrupt(question))
        return {}

    return ask


@both_ways
def test_tools_that_ask(way: Way) -> None:
    booked: list[str] = []

    @tool
    def book(where: str) -> str:
        """Book a table."""
        when = interrupt({"question": f"{where}: when?"})
        booked.append(f"{where} at {when}")
        return f"booked for {when}"

    model = ScriptedModel(calling(("c1", "book", {"where": "a"}), ("c2", "book", {"where": "b"})), saying("done"))
    session = Session(LangGraphAgent(create_agent(model, [book], checkpointer=InMemorySaver())))
    asks = {ask.tool_call_id: ask for ask in asks_of(way(session, start()))}
    assert set(asks) == {"c1", "c2"}
    assert session.thread().pending.open_calls == []
    way(session, resume(approve(asks["c2"], reply="noon"), approve(asks["c1"], reply="six")))
    assert sorted(booked) == ["a at six", "b at noon"]
    assert terminal(session.streams[-1])["finishReason"] == "stop"
    session.verify()


@both_ways
@pytest.mark.parametrize("agreed", [True, False])
def test_an_approval_inside_an_agent_that_a_tool_runs(way: Way, agreed: bool) -> None:
    desk = Desk()
    # The tool begins anew when it goes on, so that its agent is asked for the same a second time.
    inner = approving(None, desk, *[calling(("s1", "send", {"to": "bob"}), id="in-1"), saying("sent it", "in-2")] * 2)

    @tool
    def delegate(what: str) -> str:
        """Let somebody else do it."""
        return str(inner.invoke({"messages": [what]})["messages"][-1].text)

    model = ScriptedModel(calling(("d1", "delegate", {"what": "write"}), id="out-1"), saying("all done", "out-2"))
    session = Session(LangGraphAgent(create_agent(model, [delegate], name="boss", checkpointer=InMemorySaver())))
    (ask,) = asks_of(way(session, start()))
    assert (ask.kind, desk.sent) == ("approval", [])
    events = way(session, resume(approve(ask) if agreed else reject(ask, "no")))
    assert terminal(events)["outcome"]["type"] == "success"
    assert desk.sent == (["bob"] if agreed else [])
    session.verify()


# Several answers for one task


@both_ways
def test_answers_to_questions_that_are_still_to_come(way: Way) -> None:
    """Older graphs give all questions of a node one id: what was asked under it is fed an answer at a time."""
    ran: list[Any] = []
    graph = asking(InMemorySaver(), "first?", "second?", "third?", ran=ran)
    agent = LangGraphAgent(graph)
    session = Session(agent)
    (ask,) = asks_of(way(session, start()))
    repeated = [
        AgPausedAsk(
            ask_id=f"{ask.ask_id}#{ordinal}",
            kind="text",
            metadata=ask.metadata,
            resume_binding="positional",
            ordinal=ordinal,
        )
        for ordinal in range(3)
    ]
    assert isinstance(agent.store, MemoryThreadStore)
    agent.store.put(replace(session.thread(), pending=Pending(asks=tuple(repeated))))
    answers = [approve(repeated[index], reply="ABC"[index]) for index in (2, 0, 1)]
    events = way(session, resume(*answers))
    assert ran == ["A", "B", "C"]
    assert [event.type for event in events if event.type == "hitl.ask"] == []
    assert terminal(events)["outcome"]["type"] == "success"


def test_what_is_asked_beyond_the_answers_is_asked() -> None:
    ran: list[Any] = []
    agent = LangGraphAgent(asking(InMemorySaver(), "first?", "second?", "third?", ran=ran))
    session = Session(agent)
    (ask,) = asks_of(session.run_sync(start()))
    repeated = [
        AgPausedAsk(ask_id=f"x#{n}", kind="text", metadata=ask.metadata, resume_binding="positional", ordinal=n)
        for n in range(2)
    ]
    assert isinstance(agent.store, MemoryThreadStore)
    agent.store.put(replace(session.thread(), pending=Pending(asks=tuple(repeated))))
    (third,) = asks_of(session.run_sync(resume(*(approve(each, reply=each.ask_id) for each in repeated))))
    assert value_of(third) == "third?"
    session.run_sync(resume(approve(third, reply="C"), turn="r2"))
    assert ran == ["x#0", "x#1", "C"]


# Answers that somebody else gave at the same checkpoint


def failing_once(saver: Any, ran: list[Any]) -> Any:
    """A graph that fails over the answer ``bad``, and keeps it."""

    def ask(state: Notes) -> Any:
        answer = interrupt("question?")
        ran.append(answer)
        if answer == "bad":
            raise ValueError("no such answer")
        return {}

    builder = StateGraph(Notes)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


@both_ways
@pytest.mark.parametrize("inside", [False, True], ids=["at the root", "in a subgraph"])
@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "bare"])
def test_a_graph_that_may_have_acted_on_another_answer_is_left_alone(way: Way, inside: bool, by_id: bool) -> None:
    ran: list[Any] = []
    graph = failing_once(None if inside else InMemorySaver(), ran)
    if inside:
        outer = StateGraph(Notes)
        outer.add_node("inner", graph)
        outer.add_edge(START, "inner")
        graph = outer.compile(checkpointer=InMemorySaver())
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(way(session, start()))
    with pytest.raises(ValueError, match="no such answer"):
        graph.invoke(Command(resume={native(ask): "bad"} if by_id else "bad"), CONFIG)
    before = graph.get_state(CONFIG).config
    end = terminal(way(session, resume(approve(ask, reply="good"))))
    assert (end["type"], end["code"]) == ("turn.error", "answer_already_taken")
    assert ran == ["bad"]
    assert graph.get_state(CONFIG).config == before
    session.verify()


@pytest.mark.parametrize("agreed", [True, False])
@pytest.mark.parametrize("mode", ["per_call", "batched"])
def test_an_agreement_of_somebody_else_that_was_cut_off_does_not_count(mode: str, agreed: bool) -> None:
    """The graph keeps an answer that it has taken, also where nothing says that it failed."""
    desk = Desk()
    first = calling(("c1", "send", {"to": "bob"}))
    graph = approving(InMemorySaver(), desk, first, saying("done"), interrupt_mode=mode)
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start()))
    state = graph.get_state(CONFIG)
    (task,) = state.tasks
    agreement: Any = {"type": "approve"} if mode == "per_call" else {"decisions": [{"type": "approve"}]}
    graph.checkpointer.put_writes(state.config, [("__resume__", [agreement])], task.id)
    end = terminal(session.run_sync(resume(approve(ask) if agreed else reject(ask, "no"))))
    if mode == "per_call":
        # The call may have begun by then.
        assert end["code"] == "answer_already_taken"
        assert desk.sent == []
    else:
        assert end["finishReason"] == "stop"
        assert desk.sent == (["bob"] if agreed else [])
    session.verify()


def reviewing(asked: list[int], ran: list[Any]) -> Any:
    """A node that asks for a review, says how often it has asked, and fails over an empty batch."""

    def review(state: Notes) -> Any:
        asked.append(1)
        actions = [{"name": "send", "args": {"attempt": len(asked)}}]
        given = interrupt({"action_requests": actions, "review_configs": [{"action_name": "send"}]})
        if not given["decisions"]:
            raise ValueError("no decisions")
        ran.append(given)
        return {}

    return review


@pytest.mark.parametrize("place", ["beside it", "around it"])
def test_a_review_is_not_asked_again_where_something_else_would_run_again(place: str) -> None:
    desk = Desk()
    ran: list[Any] = []
    builder = StateGraph(Notes)
    if place == "beside it":
        builder.add_node("agent", reviewing([], ran))
        builder.add_node("work", lambda state: {"said": [ran.append("worked")]})
        builder.add_edge(START, "work")
    else:
        ran.append("worked")
        builder.add_node("agent", approving(None, desk, calling(("c1", "send", {"to": "bob"})), saying("done")))
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start()))
    with pytest.raises(ValueError, match="decisions"):
        graph.invoke(Command(resume={native(ask): {"decisions": []}}), CONFIG)
    end = terminal(session.run_sync(resume(approve(ask))))
    assert (end["type"], end["code"]) == ("turn.error", "answer_already_taken")
    assert (ran, desk.sent) == (["worked"], [])


def test_an_answer_is_not_given_to_another_question() -> None:
    asked: list[int] = []
    ran: list[Any] = []
    builder = StateGraph(Notes)
    builder.add_node("review", reviewing(asked, ran))
    builder.add_edge(START, "review")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start()))
    with pytest.raises(ValueError, match="decisions"):
        graph.invoke(Command(resume={native(ask): {"decisions": []}}), CONFIG)
    assert terminal(session.run_sync(resume(approve(ask))))["code"] == "ask_changed"
    assert (len(asked), ran) == (3, [])


def test_a_pause_of_another_thread_of_agjson_is_given_up_where_the_host_lets_it() -> None:
    desk, saver = Desk(), InMemorySaver()
    first = calling(("c1", "send", {"to": "bob"}))
    graph = approving(saver, desk, first, saying("Fine.", "ai-2"))
    Session(LangGraphAgent(graph)).run_sync(start())
    refusing = Session(LangGraphAgent(graph))
    assert terminal(refusing.run_sync(start(turn="t2")))["code"] == "thread_moved"
    discarding = Session(LangGraphAgent(graph, on_paused="discard"))
    assert terminal(discarding.run_sync(start(turn="t3")))["finishReason"] == "stop"
    assert desk.sent == []


@pytest.mark.parametrize("serving", ["refuse", "discard"])
async def test_what_a_server_says_of_pauses_counts_for_those_of_other_threads_too(serving: Any) -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(("c1", "send", {"to": "bob"})), saying("Fine.", "ai-2"))
    await Session(LangGraphAgent(graph)).run(start())
    agent = LangGraphAgent(graph, on_paused="discard" if serving == "refuse" else "refuse")
    events = [event async for event in agent.run_within(start(turn="t2"), on_paused=serving)]
    if serving == "refuse":
        assert terminal(events)["code"] == "thread_moved"
    else:
        assert terminal(events)["finishReason"] == "stop"
    assert desk.sent == []


@both_ways
def test_calls_that_are_given_up_under_one_id_each_get_a_result(way: Way) -> None:
    desk = Desk()
    model = ScriptedModel(
        calling(("c1", "send", {"to": "bob"}), id="ai-1"),
        calling(("c1", "send", {"to": "eve"}), id="ai-2"),
        saying("Fine.", "ai-3"),
    )
    reviews = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    graph = create_agent(model, desk.tools(), middleware=[reviews], checkpointer=InMemorySaver())
    session = Session(LangGraphAgent(graph, on_paused="discard"))
    for turn in ("t1", "t2", "t3"):
        way(session, start(said("go", f"u-{turn}"), turn=turn))
    assert [message.type for message in model.asked[-1]] == ["human", "ai", "tool", "human", "ai", "tool", "human"]
    assert desk.sent == []
    session.verify()


@both_ways
@pytest.mark.parametrize(
    ("allowed", "wrong", "field"),
    [
        (("approve",), {"status": "declined"}, "status"),
        (("approve", "reject"), {"reply": {"arguments": {"to": "eve"}}}, "reply"),
        (("approve", "reject"), {"reply": {"anything": 1}}, "reply"),
    ],
)
def test_an_answer_that_the_review_does_not_allow_is_refused_before_its_batch_is_whole(
    way: Way, allowed: Any, wrong: dict[str, Any], field: str
) -> None:
    """Once it is stored it stands, and the batch could never be acted on."""
    desk = Desk()
    first = calling(("c1", "send", {"to": "ann"}), ("c2", "send", {"to": "bob"}), ("c3", "send", {"to": "cat"}))
    graph = approving(InMemorySaver(), desk, first, saying("Done.", "ai-2"), allowed=allowed)
    session = Session(LangGraphAgent(graph))
    asks = asks_of(way(session, start()))
    for turn, ask in enumerate(asks):
        with pytest.raises(ReplayError) as refused:
            way(session, resume(answer_to(ask, **wrong), turn=f"wrong-{turn}"))
        assert refused.value.path == f"$.answers[0].{field}"
        session.streams.pop()
        way(session, resume(approve(ask), turn=f"right-{turn}"))
    assert sorted(desk.sent) == ["ann", "bob", "cat"]
    session.verify()


# Whatever people decide, in whatever order it comes

DECIDED = st.sampled_from(["approve", "edit", "reject", "respond"])


@settings(max_examples=25)
@given(decided=st.lists(DECIDED, min_size=1, max_size=4), data=st.data(), mode=st.sampled_from(["batched", "per_call"]))
def test_an_approved_call_runs_once_and_a_rejected_one_never(decided: list[str], data: Any, mode: str) -> None:
    desk, saver, store = Desk(), InMemorySaver(), MemoryThreadStore()
    calls: list[Any] = [(f"c{index}", "send", {"to": f"p{index}"}) for index in range(len(decided))]
    graph = approving(saver, desk, calling(*calls), saying("done"), interrupt_mode=mode)

    def session() -> Session:
        """Another agent each time, as after a restart."""
        return Session(LangGraphAgent(graph, store=store))

    asks = asks_of(session().run_sync(start()))
    answers: list[AgHitlAnswer] = []
    for index, ask in enumerate(sorted(asks, key=lambda ask: str(ask.tool_call_id))):
        replies: dict[str, Any] = {
            "approve": True,
            "edit": {"arguments": {"to": f"edited-{index}"}},
            "reject": False,
            "respond": {"response": "by hand"},
        }
        answers.append(approve(ask, reply=replies[decided[index]]))
    order: list[AgHitlAnswer] = data.draw(st.permutations(answers))
    cut = data.draw(st.integers(0, len(order) - 1))
    if cut:
        session().run_sync(resume(*order[:cut], turn="first"))
        assert desk.sent == []
    events = session().run_sync(resume(*order[cut:], turn="second"))
    assert terminal(events)["finishReason"] == "stop"
    with pytest.raises(UnknownAskError):
        session().run_sync(resume(*answers, turn="again"))
    expected = [f"p{index}" for index, each in enumerate(decided) if each == "approve"]
    expected += [f"edited-{index}" for index, each in enumerate(decided) if each == "edit"]
    assert sorted(desk.sent) == sorted(expected)
