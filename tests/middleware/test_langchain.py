"""One line around code that runs a graph: its stream, or its call, read as AgJSON (spec §3.1, §8.0)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from agjson.adapters.langgraph import LangGraphNormalizer
from agjson.adapters.langgraph.call import asks_in
from agjson.agents import ThreadPausedError
from agjson.checker import check
from agjson.emitter import EmitterSettings
from agjson.errors import ReplayError
from agjson.fold import Reducer, reduce
from agjson.middleware.langchain import (
    MODES,
    AsyncEvents,
    Events,
    LangGraphSettings,
    agjson_stream,
    agjson_stream_sync,
    wrap,
)
from agjson.types import (
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    AgToolResult,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolDone,
    ToolResultInput,
)
from agjson.wire import answer_to, to_dict
from tests.support.langgraph_agents import Desk, Notes, ScriptedModel, approving, asking, calling, echoing, saying
from tests.support.langgraph_graphs import sqlite_saver

CONFIG: Any = {"configurable": {"thread_id": "th"}}
HELLO: Any = {"messages": [("user", "hi")]}
STREAMED: Any = {"stream_mode": list(MODES), "subgraphs": True, "version": "v2"}
SEND = ("call-1", "send", {"to": "ann"})
LOOK = ("call-2", "look", {"at": "maps"})


class Source:
    """A native stream that notes whether it was closed, and may fail on the way."""

    def __init__(self, *parts: Any, error: Exception | None = None) -> None:
        self.parts = parts
        self.error = error
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.parts
            if self.error is not None:
                raise self.error
        finally:
            self.closed += 1


class AsyncSource:
    """The same for asynchronous streams; it may also never go on."""

    def __init__(self, *parts: Any, error: Exception | None = None, hangs: bool = False) -> None:
        self.parts = parts
        self.error = error
        self.hangs = hangs
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for part in self.parts:
                yield part
            if self.hangs:
                await asyncio.Event().wait()
            if self.error is not None:
                raise self.error
        finally:
            self.closed += 1


VALUES: Any = {"type": "values", "ns": (), "data": {"topic": "maps"}, "interrupts": ()}


def start(text: str = "hi", turn: str = "t1") -> StartInput:
    message = AgMessage(id=f"user-{turn}", role="user", content=[TextBlock(text=text)])
    return StartInput(thread_id="th", turn_id=turn, messages=[message])


def sound(events: list[AgStreamEvent], known: AgReduceResult | None = None) -> list[str]:
    """The types of events that break no rule."""
    assert list(check(events)) == []
    return [event.type for event in events]


def texts(messages: Any) -> list[tuple[str, str]]:
    return [
        (message.role, "".join(block.text for block in message.content if block.type == "text")) for message in messages
    ]


# Around a stream


def test_a_stream_of_a_graph_is_one_turn() -> None:
    graph, _ = echoing(None, saying("Good day"))
    events = wrap(graph.stream(HELLO, **STREAMED), turn_id="t1", thread_id="th")
    assert isinstance(events, Events)
    told = list(events)
    types = sound(told)
    assert (types[0], types[-1]) == ("turn.start", "turn.done")
    assert (told[0].turn_id, told[0].thread_id) == ("t1", "th")  # type: ignore[union-attr]
    assert texts(reduce(told).result.messages) == [("assistant", "Good day")]
    assert events.error is None
    assert list(events) == []


async def test_an_asynchronous_stream_gives_the_same() -> None:
    graph, _ = echoing(None, saying("Good day"))
    events = wrap(graph.astream(HELLO, **STREAMED), turn_id="t1", thread_id="th")
    assert isinstance(events, AsyncEvents)
    told = [event async for event in events]
    sound(told)
    assert texts(reduce(told).result.messages) == [("assistant", "Good day")]


def test_a_v1_stream_of_one_mode_is_read_when_its_mode_is_named() -> None:
    graph, _ = echoing(None, saying("Good day"))
    told = list(wrap(graph.stream(HELLO, stream_mode="messages"), stream_mode="messages"))
    sound(told)
    assert texts(reduce(told).result.messages) == [("assistant", "Good day")]


def test_without_ids_they_are_random_and_those_of_the_events() -> None:
    first, second = wrap([VALUES]), wrap([VALUES])
    assert first.turn_id != second.turn_id
    assert (first.turn_id, first.thread_id) == (first.normalizer.turn_id, first.normalizer.thread_id)
    assert next(first).turn_id == first.turn_id


def test_what_the_graph_raises_ends_the_turn_and_is_kept() -> None:
    graph, _ = echoing(None, ValueError("no model"))
    events = wrap(graph.stream(HELLO, **STREAMED))
    told = list(events)
    assert sound(told)[-1] == "turn.error"
    assert to_dict(told[-1])["message"] == "no model"
    assert isinstance(events.error, ValueError)


async def test_what_an_asynchronous_graph_raises_too() -> None:
    events = wrap(AsyncSource(VALUES, error=OSError("gone")))
    told = [event async for event in events]
    assert sound(told)[-1] == "turn.error"
    assert isinstance(events.error, OSError)


def test_closing_the_events_closes_the_stream() -> None:
    source = Source(VALUES)
    events = wrap(source)
    next(events)
    events.close()
    assert source.closed == 1
    assert list(events) == []


def test_a_call_tells_a_pause_whatever_else_is_asked_for() -> None:
    graph = asking(InMemorySaver(), "colour?")
    events = agjson_stream_sync(graph, HELLO, CONFIG, modes=["messages"])
    assert sound(list(events))[-1] == "turn.done"
    assert [ask.message for ask in events.asks] == ["colour?"]


def test_leaving_the_loop_closes_the_stream() -> None:
    source = Source(VALUES)
    for event in wrap(source):
        assert event.type == "turn.start"
        break
    assert source.closed == 1

    called = Source(VALUES, VALUES)
    next(wrap(called))
    assert called.closed == 1


async def test_leaving_the_loop_closes_the_asynchronous_stream() -> None:
    source = AsyncSource(VALUES, hangs=True)
    async for event in wrap(source):
        assert event.type == "turn.start"
        break
    for _ in range(9):
        await asyncio.sleep(0)
    assert source.closed == 1


def test_closing_them_before_the_first_one_closes_it_too() -> None:
    class Unread:
        closed = 0

        def __iter__(self) -> Iterator[Any]:
            raise AssertionError("it was read")

        def close(self) -> None:
            self.closed += 1

    stream = Unread()
    wrap(stream).close()
    assert stream.closed == 1


async def test_closing_and_cancelling_reach_the_asynchronous_stream() -> None:
    source = AsyncSource(VALUES)
    events = wrap(source)
    await anext(events)
    await events.aclose()
    assert source.closed == 1
    hanging = AsyncSource(VALUES, hangs=True)
    told: list[AgStreamEvent] = []

    async def read() -> None:
        async for event in wrap(hanging):
            told.append(event)

    task = asyncio.create_task(read())
    while not told:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hanging.closed == 1


@pytest.mark.parametrize("given", [{"messages": []}, "text", 5, None])
def test_what_is_no_stream_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"is no stream of a graph: wrap what graph\.stream"):
        wrap(given)


async def test_a_result_that_is_awaited_is_no_stream_either() -> None:
    graph, _ = echoing(None, saying("Good day"))
    with pytest.raises(TypeError, match="is no stream of a graph"):
        await anext(wrap(graph.ainvoke(HELLO)))


async def test_a_stream_that_is_awaited_first() -> None:
    async def opening(error: Exception | None = None) -> Any:
        if error is not None:
            raise error
        return AsyncSource(VALUES)

    assert sound([event async for event in wrap(opening())])[-1] == "turn.done"
    failed = wrap(opening(OSError("no server")))
    assert sound([event async for event in failed])[-1] == "turn.error"
    assert isinstance(failed.error, OSError)


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
async def test_protocol_events_are_read_as_well() -> None:
    graph, _ = echoing(InMemorySaver(), saying("Good day"), saying("And you", id="a2"))
    blocking = list(wrap(graph.stream_events(HELLO, CONFIG, version="v3")))
    sound(blocking)
    assert texts(reduce(blocking).result.messages) == [("assistant", "Good day")]
    told = [event async for event in wrap(graph.astream_events(HELLO, CONFIG, version="v3"))]
    sound(told)
    assert texts(reduce(told).result.messages)[-1] == ("assistant", "And you")


def test_the_settings_are_those_of_the_normalizer() -> None:
    own = inspect.signature(LangGraphNormalizer.__init__).parameters
    named = {name for name, each in own.items() if each.kind is each.KEYWORD_ONLY}
    assert get_type_hints(LangGraphSettings).keys() == named | get_type_hints(EmitterSettings).keys()


# Around a call


def test_a_call_with_the_graph_s_own_input() -> None:
    graph, model = echoing(InMemorySaver(), saying("Good day", id="a1"), saying("And again", id="a2"))
    first = agjson_stream_sync(graph, HELLO, CONFIG)
    told = list(first)
    sound(told)
    assert first.thread_id == "th"
    assert texts(reduce(told).result.messages) == [("assistant", "Good day")]
    again = list(agjson_stream_sync(graph, {"messages": [("user", "more")]}, CONFIG))
    sound(again)
    assert texts(reduce(again).result.messages) == [("assistant", "And again")]
    assert [message.text for message in model.asked[1]] == ["hi", "Good day", "more"]


async def test_a_start_reaches_the_graph_and_keeps_its_ids() -> None:
    graph, model = echoing(InMemorySaver(), saying("Good day"))
    events = agjson_stream(graph, to_dict(start("hello")))
    told = [event async for event in events]
    sound(told)
    assert (events.turn_id, events.thread_id) == ("t1", "th")
    assert to_dict(told[0])["trigger"] == {"kind": "user"}
    [asked] = model.asked
    assert [(message.id, message.text) for message in asked] == [("user-t1", "hello")]
    assert graph.get_state(CONFIG).values["messages"][-1].text == "Good day"


def test_an_approval_is_answered_without_any_store() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(SEND), saying("done"))
    asked = agjson_stream_sync(graph, start())
    told = list(asked)
    assert sound(told)[-1] == "turn.done"
    (ask,) = asked.asks
    assert (ask.kind, ask.tool_call_id) == ("approval", "call-1")
    assert desk.sent == []
    answer = ResumeInput(thread_id="th", turn_id="t2", answers=[answer_to(ask)])
    resumed = agjson_stream_sync(graph, answer)
    more = list(resumed)
    assert resumed.asks == ()
    assert desk.sent == ["ann"]
    # The result finds its call in the turn before: nothing is announced twice.
    assert "tool.start" not in [event.type for event in more]
    reducer = Reducer()
    for event in [*told, *more]:
        reducer.push(event)
    assert not reducer.needs_resync
    assert texts(reducer.result().messages) == [("assistant", "One moment"), ("tool", ""), ("assistant", "done")]


async def test_the_four_decisions_on_an_event_loop() -> None:
    desk = Desk()
    calls = [(f"c{n}", "send", {"to": to}) for n, to in enumerate(("ann", "bob", "eve", "joe"))]
    graph = approving(InMemorySaver(), desk, calling(*calls), saying("done"))
    asked = agjson_stream(graph, start())
    assert sound([event async for event in asked])[-1] == "turn.done"
    yes, edit, no, words = asked.asks
    answers = [
        answer_to(no, "declined", reason="not her"),
        answer_to(words, reply={"response": "he knows"}),
        answer_to(yes),
        answer_to(edit, reply={"arguments": {"to": "bo"}}),
    ]
    more = [event async for event in agjson_stream(graph, ResumeInput(thread_id="th", turn_id="t2", answers=answers))]
    assert sorted(desk.sent) == ["ann", "bo"]
    done = {event.tool_call_id: event.outcome for event in more if isinstance(event, ToolDone)}
    assert done == {"c0": "ok", "c1": "ok", "c2": "denied", "c3": "ok"}


def test_an_ask_is_found_again_in_the_graph_as_it_was_told() -> None:
    desk = Desk()
    two = calling(SEND, ("call-3", "send", {"to": "bob"}), LOOK)
    graphs = [
        approving(InMemorySaver(), desk, two, saying("done")),
        approving(InMemorySaver(), desk, two, saying("done"), interrupt_mode="per_call"),
        asking(InMemorySaver(), "What colour?"),
        asking(InMemorySaver(), "What colour?", {"question": "Which?", "options": ["a", "b"]}, parallel=True),
        asking(InMemorySaver(), stops=True),
    ]
    found: list[tuple[AgPausedAsk, ...]] = []
    for graph in graphs:
        events = agjson_stream_sync(graph, HELLO, CONFIG)
        list(events)
        with pytest.raises(ThreadPausedError) as refused:
            list(agjson_stream_sync(graph, start(turn="t2")))
        assert list(refused.value.ask_ids) == [ask.ask_id for ask in events.asks]
        found.append(events.asks)
        given = [answer_to(ask, reply=None if ask.kind in ("approval", "text") else "a") for ask in events.asks]
        last = list(agjson_stream_sync(graph, ResumeInput(thread_id="th", turn_id="t3", answers=given)))[-1]
        assert to_dict(last)["outcome"] == {"type": "success"}
    assert [len(asks) for asks in found] == [2, 2, 1, 2, 1]


def test_asks_are_read_from_the_state_member_for_member() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(SEND, ("call-3", "send", {"to": "bob"})), saying("done"))
    events = agjson_stream_sync(graph, HELLO, CONFIG)
    list(events)
    assert asks_in(graph.get_state(CONFIG, subgraphs=True), "th") == events.asks
    plain = asking(InMemorySaver(), "What colour?", "What size?")
    first = agjson_stream_sync(plain, HELLO, CONFIG)
    list(first)
    assert asks_in(plain.get_state(CONFIG, subgraphs=True), "th") == first.asks
    second = agjson_stream_sync(
        plain, ResumeInput(thread_id="th", turn_id="t2", answers=[answer_to(first.asks[0], reply="red")])
    )
    list(second)
    assert second.asks[0].ordinal == 1
    assert asks_in(plain.get_state(CONFIG, subgraphs=True), "th") == second.asks


def test_asks_of_graphs_inside_are_read_as_well() -> None:
    builder = StateGraph(Notes)
    builder.add_node("inner", asking(None, "What colour?"))
    builder.add_edge(START, "inner")
    desk = Desk()
    inner = create_agent(
        ScriptedModel(calling(SEND), saying("sent")),
        desk.tools(),
        name="inner",
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send": True})],
    )

    @tool
    def ask_inner(what: str) -> str:
        """Ask another agent."""
        asked: Any = {"messages": [("user", what)]}
        return inner.invoke(asked)["messages"][-1].text

    asks_the_other = calling(("outer-1", "ask_inner", {"what": "x"}), id="outer")
    outer = create_agent(
        ScriptedModel(asks_the_other, saying("done", id="outer-2")), [ask_inner], checkpointer=InMemorySaver()
    )
    for graph, reply in ((builder.compile(checkpointer=InMemorySaver()), "red"), (outer, True)):
        events = agjson_stream_sync(graph, HELLO, CONFIG)
        list(events)
        found = asks_in(graph.get_state(CONFIG, subgraphs=True), "th")
        if graph is outer:  # LangGraph does not tell the state of what a tool runs
            told = events.asks[0]
            assert (told.tool_call_id, told.metadata and told.metadata["langgraph/ns"]) != (None, None)
            assert [(ask.ask_id, ask.choices, ask.ordinal) for ask in found] == [
                (told.ask_id, told.choices, told.ordinal)
            ]
        else:
            assert found == events.asks
        answers = [answer_to(ask, reply=reply) for ask in events.asks]
        last = list(agjson_stream_sync(graph, ResumeInput(thread_id="th", turn_id="t2", answers=answers)))[-1]
        assert to_dict(last)["outcome"] == {"type": "success"}
    assert desk.sent == ["ann"]


def test_another_process_answers_by_the_checkpointer_s_file(tmp_path: Path) -> None:
    desk = Desk()
    events = agjson_stream_sync(approving(sqlite_saver(tmp_path / "g.db"), desk, calling(SEND)), start())
    list(events)
    again = approving(sqlite_saver(tmp_path / "g.db"), desk, saying("done"))
    given = ResumeInput(thread_id="th", turn_id="t2", answers=[answer_to(events.asks[0])])
    told = list(agjson_stream_sync(again, given))
    assert [event.type for event in told if event.type.startswith("tool.")] == ["tool.done"]
    assert desk.sent == ["ann"]


def test_an_answer_that_the_graph_does_not_wait_for_runs_nothing() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(SEND), saying("done"))
    events = agjson_stream_sync(graph, start())
    list(events)
    (ask,) = events.asks
    wrong = [
        [answer_to(AgPausedAsk(ask_id="other", kind="approval"))],
        [answer_to(ask), answer_to(ask)],
        [answer_to(ask, reply={"response": 5})],
    ]
    for answers in wrong:
        with pytest.raises(ReplayError):
            list(agjson_stream_sync(graph, ResumeInput(thread_id="th", turn_id="t2", answers=answers)))
    with pytest.raises(ReplayError, match="waits for no answer"):
        list(agjson_stream_sync(graph, ResumeInput(thread_id="nobody", turn_id="t2", answers=[answer_to(ask)])))
    assert desk.sent == []
    list(agjson_stream_sync(graph, ResumeInput(thread_id="th", turn_id="t2", answers=[answer_to(ask)])))
    with pytest.raises(ReplayError, match="waits for no answer"):
        list(agjson_stream_sync(graph, ResumeInput(thread_id="th", turn_id="t3", answers=[answer_to(ask)])))
    assert desk.sent == ["ann"]


def test_a_graph_without_a_checkpointer_cannot_go_on() -> None:
    graph = asking(None, "What colour?")
    events = agjson_stream_sync(graph, HELLO)
    list(events)
    (ask,) = events.asks
    assert (ask.metadata or {})["langgraph/resumable"] is False
    with pytest.raises(ReplayError, match="no checkpointer"):
        list(agjson_stream_sync(graph, ResumeInput(thread_id="th", turn_id="t2", answers=[answer_to(ask, reply="x")])))


def test_a_native_command_goes_on_as_well() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(SEND), saying("done"))
    list(agjson_stream_sync(graph, HELLO, CONFIG))
    told = list(agjson_stream_sync(graph, Command(resume={"decisions": [{"type": "approve"}]}), CONFIG))
    assert [event.type for event in told if event.type.startswith("tool.")] == ["tool.done"]
    assert desk.sent == ["ann"]


def test_a_result_of_a_client_tool_enters_the_graph_again() -> None:
    graph, model = echoing(InMemorySaver(), calling(SEND), saying("done"))
    list(agjson_stream_sync(graph, start()))
    result = AgToolResult(tool_call_id="call-1", content=[TextBlock(text="sent")])
    told = list(agjson_stream_sync(graph, ToolResultInput(thread_id="th", turn_id="t2", results=[result])))
    assert texts(reduce(told).result.messages)[-1] == ("assistant", "done")
    assert [(message.type, message.text) for message in model.asked[1]][-1] == ("tool", "sent")


def test_what_the_graph_has_no_place_for_is_named() -> None:
    graph, _ = echoing(InMemorySaver(), saying("hi"), context=True)
    given = {**to_dict(start()), "run": {"model": "large", "temperature": 0}, "state": {"topic": "maps", "secret": 1}}
    told = list(agjson_stream_sync(graph, given, context={}))
    sound(told)
    named = [to_dict(event)["_meta"]["agjson/path"] for event in told if event.type == "error"]
    assert named == ["run.temperature", "state.secret"]
    assert graph.contexts == [{"model": "large"}]
    assert graph.get_state(CONFIG).values["topic"] == "maps"


def test_state_that_comes_back_as_it_was_told_is_no_change() -> None:
    graph = asking(InMemorySaver(), "What colour?")
    first = agjson_stream_sync(graph, {**HELLO, "said": ["x"]}, CONFIG)
    list(first)
    answer = answer_to(first.asks[0], reply="red")
    given = ResumeInput(thread_id="th", turn_id="t2", answers=[answer], state={"said": ["x"], "topic": "maps"})
    list(agjson_stream_sync(graph, given))
    values = graph.get_state(CONFIG).values
    assert (values["said"], values["topic"]) == (["x", "red"], "maps")


def test_words_of_a_surface_have_no_place_in_a_resume() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(SEND), saying("done"))
    first = agjson_stream_sync(graph, start())
    list(first)
    said = {"role": "user", "content": {"type": "text", "text": "And be quick."}}
    words = {"surface": "mcp-app", "surfaceId": "s1", "method": "ui/message", "params": said}
    given = ResumeInput(thread_id="th", turn_id="t2", answers=[answer_to(first.asks[0])])
    with pytest.raises(ReplayError, match="say it later"):
        list(agjson_stream_sync(graph, {**to_dict(given), "uiActions": [words]}))
    assert desk.sent == []


def test_a_batch_that_was_answered_wrongly_by_others_is_asked_again() -> None:
    desk = Desk()
    graph = approving(InMemorySaver(), desk, calling(SEND), saying("done"))
    first = agjson_stream_sync(graph, start())
    list(first)
    (ask,) = first.asks
    wrong = list(agjson_stream_sync(graph, Command(resume={"decisions": []}), CONFIG))
    assert wrong[-1].type == "turn.error"
    told = list(agjson_stream_sync(graph, ResumeInput(thread_id="th", turn_id="t3", answers=[answer_to(ask)])))
    assert told[-1].type == "turn.done"
    assert desk.sent == ["ann"]


async def test_a_call_that_is_left_early_closes_the_graph() -> None:
    graph, _ = echoing(InMemorySaver(), saying("one two three"))
    events = agjson_stream(graph, HELLO, CONFIG)
    async for event in events:
        if event.type == "text.delta":
            break
    await events.aclose()
    assert [event async for event in events] == []


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(TypeError, match="compiled graph"):
        agjson_stream_sync(object(), HELLO)


def test_context_and_config_reach_the_graph() -> None:
    graph, _ = echoing(InMemorySaver(), saying("hi"), context=True)
    list(agjson_stream_sync(graph, start(), {"configurable": {"thread_id": "mine"}}, context={"user": "ann"}))
    assert graph.contexts == [{"user": "ann"}]
    assert graph.get_state({"configurable": {"thread_id": "mine"}}).values["messages"][0].id == "user-t1"
