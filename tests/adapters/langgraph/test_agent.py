"""The agent on real graphs: what the graph gets, what it goes on from, and what never runs (spec §3, §3.1, §7)."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from agjson.adapters.langgraph.agent import LangGraphAgent
from agjson.agents import ThreadPausedError, UnknownAskError, UnknownContinuationError
from agjson.errors import ReplayError
from agjson.types import AgRunConfig, AgStreamEvent, ToolResultInput
from agjson.wire import to_dict
from tests.support.langgraph_agents import (
    Desk,
    ScriptedModel,
    Way,
    approve,
    approving,
    asking,
    asks_of,
    both_ways,
    calling,
    echoing,
    reject,
    resume,
    saying,
)
from tests.support.scripted import Session, results, said, start, terminal

CONFIG: Any = {"configurable": {"thread_id": "th"}}


def texts(session: Session) -> list[tuple[str, str]]:
    """The conversation as it is stored: of each message the role and what it says."""
    shown: list[tuple[str, str]] = []
    for message in session.thread().result.messages:
        plain = [to_dict(block) for block in message.content]
        said = [block.get("text") or block.get("name") or _result(block) for block in plain]
        shown.append((message.role, " ".join(said)))
    return shown


def _result(block: dict[str, Any]) -> str:
    return f"{block['outcome']}: " + "".join(part.get("text", "") for part in block["content"])


def outcomes(session: Session) -> dict[str, str]:
    """How each call has ended, by its id."""
    found: dict[str, str] = {}
    for message in session.thread().result.messages:
        for block in map(to_dict, message.content):
            if block["type"] == "tool-result":
                found[block["toolCallId"]] = block["outcome"]
    return found


def errors(events: list[AgStreamEvent]) -> list[Any]:
    return [to_dict(event)["code"] for event in events if event.type == "error"]


def history_of(graph: Any) -> list[tuple[str, str]]:
    """The conversation as the graph has it."""
    return [(message.type, message.text) for message in graph.get_state(CONFIG).values["messages"]]


# What the graph gets


@both_ways
def test_a_graph_without_memory_gets_the_whole_conversation(way: Way) -> None:
    graph, model = echoing(None, saying("Hi.", "a1"), saying("Again.", "a2"))
    session = Session(LangGraphAgent(graph))
    assert terminal(way(session, start(said("hello", "u1"))))["finishReason"] == "stop"
    way(session, start(said("and now?", "u2"), turn="t2"))
    assert [[message.text for message in asked] for asked in model.asked] == [
        ["hello"],
        ["hello", "Hi.", "and now?"],
    ]
    assert texts(session) == [("user", "hello"), ("assistant", "Hi."), ("user", "and now?"), ("assistant", "Again.")]
    session.verify()


@both_ways
def test_what_a_node_keeps_to_itself_does_not_come_back_as_history(way: Way) -> None:
    router = ScriptedModel(saying("BILLING", "r1"), saying("SALES", "r2"))
    model = ScriptedModel(saying("Hi.", "a1"), saying("Again.", "a2"))

    def answer(state: Any) -> Any:
        router.invoke("Which desk?")
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    session = Session(LangGraphAgent(builder.compile()))
    way(session, start(said("hello", "u1")))
    way(session, start(said("and now?", "u2"), turn="t2"))
    assert [message.text for message in model.asked[1]] == ["hello", "Hi.", "and now?"]
    assert [message.id for message in session.thread().result.messages] == ["u1", "r1", "a1", "u2", "r2", "a2"]
    session.verify()


@both_ways
def test_a_graph_with_memory_gets_what_it_does_not_have(way: Way) -> None:
    graph, model = echoing(InMemorySaver(), saying("Hi.", "a1"), saying("Again.", "a2"))
    session = Session(LangGraphAgent(graph))
    way(session, start(said("hello", "u1")))
    way(session, start(said("hello", "u1"), said("and now?", "u2"), turn="t2"))
    assert history_of(graph) == [("human", "hello"), ("ai", "Hi."), ("human", "and now?"), ("ai", "Again.")]
    assert len(model.asked[1]) == 3
    session.verify()


@both_ways
def test_what_a_failed_turn_kept_from_the_graph_reaches_it_later(way: Way) -> None:
    graph, model = echoing(InMemorySaver(), saying("Hi.", "a1"), saying("Again.", "a2"))
    refusing = LangGraphAgent(graph, config={"recursion_limit": 0})
    agent = LangGraphAgent(graph, store=refusing.store)
    way(Session(agent), start(said("hello", "u1")))
    assert terminal(way(Session(refusing), start(said("lost?", "u2"), turn="t2")))["type"] == "turn.error"
    way(Session(agent), start(said("and now?", "u3"), turn="t3"))
    assert [message.text for message in model.asked[-1]] == ["hello", "Hi.", "lost?", "and now?"]


def test_a_message_that_the_graph_took_away_does_not_come_back() -> None:
    graph, model = echoing(InMemorySaver(), saying("Hi.", "a1"), saying("Two.", "a2"), saying("Three.", "a3"))
    session = Session(LangGraphAgent(graph))
    session.run_sync(start(said("one", "u1")))
    session.run_sync(start(said("two", "u2"), turn="t2"))
    from langchain_core.messages import RemoveMessage

    graph.update_state(CONFIG, {"messages": [RemoveMessage(id="u1"), RemoveMessage(id="a1")]})
    session.run_sync(start(said("three", "u3"), turn="t3"))
    assert [message.text for message in model.asked[-1]] == ["two", "Two.", "three"]


def test_a_thread_that_the_checkpointer_lost_is_given_whole() -> None:
    saver = InMemorySaver()
    graph, model = echoing(saver, saying("Hi.", "a1"), saying("Two.", "a2"))
    session = Session(LangGraphAgent(graph))
    session.run_sync(start(said("one", "u1")))
    saver.delete_thread("th")
    session.run_sync(start(said("two", "u2"), turn="t2"))
    assert [message.text for message in model.asked[-1]] == ["one", "Hi.", "two"]


def test_settings_and_the_context_of_the_host() -> None:
    graph, model = echoing(None, saying("Hi.", "a1"), context=True)
    agent = LangGraphAgent(graph, context=lambda invocation: {"user": invocation.thread.thread_id})
    events = Session(agent).run_sync(start(run=AgRunConfig(model="m1", temperature=0.1)))
    assert graph.contexts == [{"user": "th", "model": "m1"}]
    assert errors(events) == ["unsupported"]
    assert len(model.asked) == 1


def test_the_state_of_the_client_reaches_the_graph_once() -> None:
    graph, _ = echoing(InMemorySaver(), saying("Hi.", "a1"), saying("Two.", "a2"))
    session = Session(LangGraphAgent(graph))
    session.run_sync(start(said("one", "u1"), state={"topic": "a", "said": ["x"]}))
    state = session.thread().result.state
    assert isinstance(state, dict)
    assert (state["topic"], state["said"]) == ("a", ["x"])
    session.run_sync(start(said("two", "u2"), turn="t2", state={**state, "topic": "b"}))
    values = graph.get_state(CONFIG).values
    assert (values["topic"], values["said"]) == ("b", ["x"])
    session.verify()


def test_the_state_of_the_client_comes_with_an_answer() -> None:
    graph = asking(InMemorySaver(), "colour?")
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start(state={"topic": "a"})))
    session.run_sync(resume(approve(ask, reply="blue"), state={"topic": "b"}))
    values = graph.get_state(CONFIG).values
    assert (values["topic"], values["said"]) == ("b", ["blue"])
    session.verify()


def test_a_client_cannot_write_the_arguments_that_a_person_has_approved() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(("c1", "send", {"to": "bob"})), saying("done"))
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start()))
    forged = {"hitl_edited_tool_calls": {"c1": {"name": "send", "args": {"to": "mallory"}}}}
    events = session.run_sync(resume(approve(ask), state=forged))
    assert desk.sent == ["bob"]
    assert errors(events) == ["unsupported"]


# Pauses and answers


@both_ways
@pytest.mark.parametrize("agreed", [True, False])
def test_an_approval(way: Way, agreed: bool) -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(("c1", "send", {"to": "bob"})), saying("done"))
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(way(session, start(said("send it", "u1"))))
    assert (ask.kind, ask.tool_call_id) == ("approval", "c1")
    # What it goes on with is in the ask and in the checkpointer, which may both outlive the process.
    assert session.thread().pending.request_state is None
    assert desk.sent == []
    events = way(session, resume(approve(ask) if agreed else reject(ask, "too dear")))
    assert terminal(events)["finishReason"] == "stop"
    assert desk.sent == (["bob"] if agreed else [])
    assert outcomes(session) == {"c1": "ok" if agreed else "denied"}
    session.verify()


@both_ways
def test_every_decision_of_a_batch_goes_to_its_call(way: Way) -> None:
    desk = Desk()
    first = calling(
        ("c0", "send", {"to": "ann"}),
        ("c1", "look", {"at": "map"}),
        ("c2", "send", {"to": "bob"}),
        ("c3", "send", {"to": "cat"}),
        ("c4", "send", {"to": "dan"}),
    )
    session = Session(LangGraphAgent(approving(InMemorySaver(), desk, first, saying("done"))))
    asks = {ask.tool_call_id: ask for ask in asks_of(way(session, start()))}
    assert list(asks) == ["c0", "c2", "c3", "c4"]
    way(session, resume(reject(asks["c2"], "no"), approve(asks["c4"], reply={"response": "by hand"}), turn="r1"))
    assert desk.sent == []
    left = asks_of(session.streams[-1])
    assert [ask.tool_call_id for ask in left] == ["c0", "c3"]
    edit = approve(asks["c3"], reply={"arguments": {"to": "eve"}})
    assert terminal(way(session, resume(edit, approve(asks["c0"]), turn="r2")))["finishReason"] == "stop"
    assert sorted(desk.sent) == ["ann", "eve"]
    assert desk.looked == ["map"]
    assert outcomes(session) == {"c0": "ok", "c1": "ok", "c2": "denied", "c3": "ok", "c4": "ok"}
    session.verify()


@both_ways
def test_a_review_per_call(way: Way) -> None:
    desk = Desk()
    first = calling(("c1", "send", {"to": "ann"}), ("c2", "send", {"to": "bob"}))
    graph = approving(InMemorySaver(), desk, first, saying("done"), interrupt_mode="per_call")
    session = Session(LangGraphAgent(graph))
    asks = {ask.tool_call_id: ask for ask in asks_of(way(session, start()))}
    assert set(asks) == {"c1", "c2"}
    way(session, resume(approve(asks["c1"]), reject(asks["c2"])))
    assert desk.sent == ["ann"]
    assert outcomes(session) == {"c1": "ok", "c2": "denied"}
    session.verify()


@both_ways
def test_questions_of_one_node_are_asked_one_after_another(way: Way) -> None:
    ran: list[Any] = []
    session = Session(LangGraphAgent(asking(InMemorySaver(), "first?", {"question": "second?"}, "third?", ran=ran)))
    asked: list[Any] = []
    events = way(session, start())
    for turn, given in enumerate(["A", {"b": None}, None]):
        (ask,) = asks_of(events)
        asked.append((ask.ask_id, (ask.metadata or {})["langgraph/value"], ask.ordinal))
        events = way(session, resume(approve(ask, reply=given), turn=f"r{turn}"))
    assert ran == ["A", {"b": None}, None]
    assert [value for _, value, _ in asked] == ["first?", {"question": "second?"}, "third?"]
    assert len({id for id, _, _ in asked}) == 3
    assert terminal(events)["outcome"]["type"] == "success"
    session.verify()


@both_ways
def test_parallel_questions_are_answered_together(way: Way) -> None:
    ran: list[Any] = []
    session = Session(LangGraphAgent(asking(InMemorySaver(), "colour?", "size?", parallel=True, ran=ran)))
    asks = asks_of(way(session, start()))
    assert [ask.resume_binding for ask in asks] == ["id", "id"]
    replies: dict[Any, Any] = {"colour?": "blue", "size?": {}}
    answers = [approve(ask, reply=replies[(ask.metadata or {})["langgraph/value"]]) for ask in asks]
    way(session, resume(answers[0], turn="r1"))
    assert ran == []
    assert terminal(way(session, resume(answers[1], turn="r2")))["outcome"]["type"] == "success"
    assert sorted(map(repr, ran)) == ["'blue'", "{}"]
    session.verify()


def test_a_question_that_is_declined_tells_the_graph_so() -> None:
    ran: list[Any] = []
    session = Session(LangGraphAgent(asking(InMemorySaver(), "colour?", ran=ran)))
    (ask,) = asks_of(session.run_sync(start()))
    session.run_sync(resume(reject(ask, "none of your business")))
    assert ran == [{"status": "declined", "reason": "none of your business"}]


def test_words_answer_a_question() -> None:
    ran: list[Any] = []
    session = Session(LangGraphAgent(asking(InMemorySaver(), "colour?", ran=ran)))
    (ask,) = asks_of(session.run_sync(start()))
    session.run_sync(start(said("blue, please", "u2"), turn="t2", metadata={"agjson/askId": ask.ask_id}))
    assert ran == ["blue, please"]
    session.verify()


@both_ways
@pytest.mark.parametrize("agreed", [True, False])
def test_a_static_breakpoint(way: Way, agreed: bool) -> None:
    ran: list[Any] = []
    graph = asking(InMemorySaver(), ran=ran, stops=True)
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(way(session, start()))
    assert ask.ask_id.startswith("static:")
    end = terminal(way(session, resume(approve(ask) if agreed else reject(ask))))
    assert ran == (["passed"] if agreed else [])
    assert end["outcome"]["type"] == ("success" if agreed else "aborted")
    session.verify()


def test_a_graph_without_memory_cannot_be_answered() -> None:
    ran: list[Any] = []
    session = Session(LangGraphAgent(asking(None, "colour?", ran=ran)))
    (ask,) = asks_of(session.run_sync(start()))
    assert (ask.metadata or {})["langgraph/resumable"] is False
    with pytest.raises(UnknownContinuationError):
        session.run_sync(resume(approve(ask, reply="blue")))
    assert ran == []


@both_ways
def test_calls_that_have_the_id_of_an_earlier_one(way: Way) -> None:
    desk = Desk()
    graph = approving(
        InMemorySaver(),
        desk,
        calling(("c1", "send", {"to": "ann"}), id="a1"),
        saying("done", "a2"),
        calling(("c1", "send", {"to": "bob"}), id="a3"),
        saying("done", "a4"),
        calling(("c1", "send", {"to": "cat"}), id="a5"),
        saying("well", "a6"),
    )
    agent = LangGraphAgent(graph, on_paused="discard")
    session = Session(agent)
    (first,) = asks_of(way(session, start(said("one", "u1"))))
    way(session, resume(approve(first)))
    (second,) = asks_of(way(session, start(said("two", "u2"), turn="t2")))
    assert second.tool_call_id == "c1#2"
    way(session, resume(reject(second), turn="r2"))
    asks_of(way(session, start(said("three", "u3"), turn="t3")))
    way(session, start(said("four", "u4"), turn="t4"))
    assert desk.sent == ["ann"]
    assert outcomes(session) == {"c1": "ok", "c1#2": "denied", "c1#3": "error"}
    session.verify()


# What is refused before the graph runs


def test_an_answer_twice_or_to_another_ask() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(("c1", "send", {"to": "bob"})), saying("done"))
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start()))
    session.run_sync(resume(approve(ask)))
    with pytest.raises(UnknownAskError):
        session.run_sync(resume(approve(ask), turn="r2"))
    assert desk.sent == ["bob"]


def test_a_decision_that_is_none_and_handles_of_another_thread() -> None:
    desk = Desk()
    first = calling(("c1", "send", {"to": "bob"}))
    session = Session(LangGraphAgent(approving(InMemorySaver(), desk, first, saying("done"), allowed=["approve"])))
    (ask,) = asks_of(session.run_sync(start()))
    for answer in (approve(ask, reply={"arguments": {"to": "eve"}}), approve(ask, reply="sure"), reject(ask)):
        with pytest.raises(ReplayError):
            session.run_sync(resume(answer))
    for handle in ({"langgraph/threadId": "other"}, {"langgraph/checkpointId": "1f1e"}):
        with pytest.raises(ReplayError):
            session.run_sync(resume(approve(ask), metadata=handle))
    assert desk.sent == []
    handles = {key: (ask.metadata or {})[key] for key in ("langgraph/threadId", "langgraph/checkpointId")}
    session.run_sync(resume(approve(ask), metadata=handles))
    assert desk.sent == ["bob"]


def paused() -> tuple[Desk, Any, InMemorySaver, Session, Any]:
    desk, saver = Desk(), InMemorySaver()
    graph = approving(saver, desk, calling(("c1", "send", {"to": "bob"})), saying("done"), saying("later", "ai-3"))
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start()))
    return desk, graph, saver, session, ask


def test_a_thread_that_the_checkpointer_does_not_have() -> None:
    desk, _, saver, session, ask = paused()
    saver.delete_thread("th")
    end = terminal(session.run_sync(resume(approve(ask))))
    assert (end["type"], end["code"]) == ("turn.error", "unknown_thread")
    assert desk.sent == []


def test_a_pause_that_somebody_else_has_answered() -> None:
    desk, graph, _, session, ask = paused()
    graph.invoke(Command(resume={native(ask): {"decisions": [{"type": "reject"}]}}), CONFIG)
    end = terminal(session.run_sync(resume(approve(ask))))
    assert end["code"] == "stale_checkpoint"
    assert desk.sent == []
    session.verify()


def test_a_pause_whose_state_somebody_else_has_moved() -> None:
    desk, graph, _, session, ask = paused()
    graph.update_state(CONFIG, {"messages": [HumanMessage("wait", id="x")]})
    before = graph.get_state(CONFIG).config
    assert terminal(session.run_sync(resume(approve(ask))))["code"] == "stale_checkpoint"
    assert graph.get_state(CONFIG).config == before
    assert desk.sent == []


def test_a_start_does_not_discard_the_pause_of_somebody_else() -> None:
    desk, saver = Desk(), InMemorySaver()
    graph = approving(saver, desk, calling(("c1", "send", {"to": "bob"})), saying("done"))
    graph.invoke({"messages": ["go"]}, CONFIG)
    before = graph.get_state(CONFIG).config
    session = Session(LangGraphAgent(graph))
    assert terminal(session.run_sync(start()))["code"] == "thread_moved"
    assert graph.get_state(CONFIG).config == before


def native(ask: Any) -> str:
    return (ask.metadata or {})["langgraph/interruptId"]


# An answer of somebody else that failed and stays


def bricked(*calls: tuple[str, str, dict[str, Any]], **more: Any) -> tuple[Desk, Any, Session, list[Any]]:
    """A paused thread to which somebody has given too few decisions: the graph keeps them, and fails for ever."""
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(*calls), saying("done"), **more)
    session = Session(LangGraphAgent(graph))
    asks = asks_of(session.run_sync(start()))
    with pytest.raises(ValueError, match="decisions"):
        graph.invoke(Command(resume={native(asks[0]): {"decisions": []}}), CONFIG)
    with pytest.raises(ValueError, match="decisions"):
        graph.invoke(Command(resume={native(asks[0]): {"decisions": [{"type": "approve"}] * 2}}), CONFIG)
    return desk, graph, session, asks


@both_ways
def test_a_batch_with_a_wrong_answer_of_somebody_else_is_asked_again(way: Way) -> None:
    desk, graph, session, asks = bricked(("c1", "send", {"to": "ann"}), ("c2", "send", {"to": "bob"}))
    events = way(session, resume(reject(asks[0], "no"), approve(asks[1])))
    assert terminal(events)["finishReason"] == "stop"
    assert desk.sent == ["bob"]
    assert outcomes(session) == {"c1": "denied", "c2": "ok"}
    assert history_of(graph)[-1] == ("ai", "done")
    session.verify()


# Client tools


@both_ways
@pytest.mark.parametrize("memory", [True, False])
def test_a_tool_of_the_client(way: Way, memory: bool) -> None:
    graph, model = echoing(
        InMemorySaver() if memory else None,
        calling(("c1", "pick", {"of": "colours"}), ("c2", "pick", {"of": "sizes"})),
        saying("Nice."),
    )
    session = Session(LangGraphAgent(graph, client_tools=["pick"]))
    assert terminal(way(session, start(said("choose", "u1"))))["finishReason"] == "tool_call"
    assert session.thread().pending.open_calls == ["c1", "c2"]
    assert terminal(way(session, results("c2", turn="r1")))["finishReason"] == "tool_call"
    assert len(model.asked) == 1
    assert terminal(way(session, results("c1", turn="r2")))["finishReason"] == "stop"
    last = model.asked[-1]
    assert [(type(each), getattr(each, "tool_call_id", None)) for each in last[2:]] == [
        (ToolMessage, "c1"),
        (ToolMessage, "c2"),
    ]
    assert [each.text for each in last[2:]] == ["found c1", "found c2"]
    session.verify()


def test_a_tool_of_the_client_that_is_never_answered_is_closed() -> None:
    graph, model = echoing(InMemorySaver(), calling(("c1", "pick", {})), saying("Well."))
    session = Session(LangGraphAgent(graph, client_tools=["pick"]))
    session.run_sync(start(said("choose", "u1")))
    session.run_sync(start(said("never mind", "u2"), turn="t2"))
    assert [type(each) for each in model.asked[-1]] == [HumanMessage, AIMessage, ToolMessage, HumanMessage]
    assert model.asked[-1][2].text.startswith("This call was not run")
    assert outcomes(session) == {"c1": "error"}
    session.verify()


def test_a_result_needs_a_call_that_waits() -> None:
    from agjson.agents import UnknownToolCallError

    graph, _ = echoing(InMemorySaver(), saying("Hi."))
    session = Session(LangGraphAgent(graph))
    session.run_sync(start())
    given: ToolResultInput = results("c9")
    with pytest.raises(UnknownToolCallError):
        session.run_sync(given)


# Pauses that are given up


@both_ways
def test_a_start_on_a_paused_thread(way: Way) -> None:
    desk = Desk()
    first = calling(("c1", "send", {"to": "ann"}), ("c2", "look", {"at": "map"}))
    graph = approving(InMemorySaver(), desk, first, saying("Fine.", "ai-2"))
    agent = LangGraphAgent(graph)
    session = Session(agent)
    way(session, start(said("send", "u1")))
    with pytest.raises(ThreadPausedError):
        way(session, start(said("forget it", "u2"), turn="t2"))
    agent.on_paused = "discard"
    events = way(session, start(said("forget it", "u2"), turn="t2"))
    assert terminal(events)["finishReason"] == "stop"
    assert (desk.sent, desk.looked) == ([], [])
    assert [kind for kind, _ in history_of(graph)] == ["human", "ai", "tool", "tool", "human", "ai"]
    assert outcomes(session) == {"c1": "error", "c2": "error"}
    session.verify()


def test_a_call_that_failed_with_its_turn_does_not_run_again() -> None:
    desk = Desk()
    first = calling(("c1", "send", {"to": "nowhere"}), ("c2", "look", {"at": "map"}))
    graph = approving(InMemorySaver(), desk, first, saying("Sorry.", "ai-2"))
    session = Session(LangGraphAgent(graph))
    (ask,) = asks_of(session.run_sync(start(said("send", "u1"))))
    assert terminal(session.run_sync(resume(approve(ask))))["type"] == "turn.error"
    assert desk.sent == ["nowhere"]
    assert terminal(session.run_sync(start(said("and?", "u2"), turn="t2")))["finishReason"] == "stop"
    assert (desk.sent, desk.looked) == (["nowhere"], ["map"])
    told = {
        message.tool_call_id: message.text
        for message in graph.get_state(CONFIG).values["messages"]
        if isinstance(message, ToolMessage)
    }
    assert told["c1"].startswith("This call was cut off")
    assert told["c2"] == "found map"


def test_a_start_may_name_the_checkpoint_of_the_pause_that_it_gives_up() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(("c1", "send", {"to": "ann"})), saying("Fine.", "ai-2"))
    session = Session(LangGraphAgent(graph, on_paused="discard"))
    (ask,) = asks_of(session.run_sync(start(said("send", "u1"))))
    handles = {key: (ask.metadata or {})[key] for key in ("langgraph/threadId", "langgraph/checkpointId")}
    session.run_sync(start(said("forget it", "u2"), turn="t2", metadata=handles))
    assert terminal(session.streams[-1])["finishReason"] == "stop"
    assert [kind for kind, _ in history_of(graph)] == ["human", "ai", "tool", "human", "ai"]
    assert desk.sent == []
    session.verify()


# What cannot be an agent


def test_a_graph_that_is_not_compiled() -> None:
    from langgraph.graph import StateGraph

    from tests.support.langgraph_agents import Notes

    with pytest.raises(TypeError, match="compile it first"):
        LangGraphAgent(StateGraph(Notes))
    with pytest.raises(TypeError):
        LangGraphAgent(object())
