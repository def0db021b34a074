"""The whole normalizer on running graphs: what the stream folds to is what the graph has kept (spec §8.0)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import GraphRecursionError, InvalidUpdateError, NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from agjson.adapters.langgraph.normalizer import LangGraphNormalizer
from agjson.known_ids import KnownIds
from agjson.normalizer import HostAbort, HostEnd
from agjson.types import AgReduceResult, TextDelta
from agjson.wire import to_dict
from tests.support.langgraph_graphs import (
    MODES,
    Messages,
    ScriptedModel,
    agent,
    call,
    config,
    deserialised,
    fold,
    graph_of,
    kept,
    normalize,
    of_type,
    protocol_events,
    run,
    said,
    sqlite_saver,
)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sun in {city}"


@tool(response_format="content_and_artifact")
def lookup(key: str) -> tuple[str, dict[str, Any]]:
    """Looks something up."""
    return f"found {key}", {"rows": [1, 2]}


@tool
def broken(city: str) -> str:
    """Fails."""
    raise ValueError("the tool is broken")


def input_ids(parts: Sequence[Any]) -> list[str]:
    """The ids of the conversation that the graph began with."""
    first = next(part for part in parts if part["type"] == "values")
    return [message.id for message in first["data"]["messages"]]


def a_answers(state: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("one", id="m1"), AIMessage("two", id="m2")]}


def b_edits(state: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("changed", id="m1")]}


def b_edits_the_last(state: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("changed", id="m2")]}


def b_removes(state: Any) -> dict[str, Any]:
    return {"messages": [RemoveMessage("m1"), AIMessage("three", id="m3")]}


def b_empties(state: Any) -> dict[str, Any]:
    return {"messages": [RemoveMessage("__remove_all__"), SystemMessage("summary", id="s"), AIMessage("two", id="m2")]}


def c_dicts(state: Any) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "content": "as a dict"}, ("ai", "as a pair")]}


def c_no_ids(state: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("no id"), HumanMessage("nor this")]}


def c_one(state: Any) -> dict[str, Any]:
    return {"messages": AIMessage("not in a list")}


def c_command(state: Any) -> Command[Any]:
    return Command(update={"messages": [AIMessage("by command")], "note": "n"})


def c_result(state: Any) -> dict[str, Any]:
    wanted = AIMessage("", tool_calls=[call("f", "c1", x=1)], id="w")
    return {"messages": [wanted, ToolMessage("ok", tool_call_id="c1", artifact={"raw": 1}, id="r")]}


NODES: list[tuple[Callable[[Any], Any], ...]] = [
    (a_answers,),
    (a_answers, b_edits),
    (a_answers, b_edits_the_last),
    (a_answers, b_removes),
    (a_answers, b_empties),
    (a_answers, b_empties, c_dicts),
    (c_dicts,),
    (c_no_ids,),
    (c_one, c_command),
    (c_result,),
]


@pytest.mark.parametrize("nodes", NODES, ids=lambda nodes: "-".join(node.__name__ for node in nodes))
@pytest.mark.parametrize("form", ["objects", "data"])
def test_the_stream_folds_to_what_nodes_have_put_into_the_state(nodes: Any, form: str) -> None:
    graph = graph_of(*nodes)
    parts = run(graph)
    stream = parts if form == "objects" else deserialised(parts)
    result = fold(normalize(stream))

    # A snapshot brings what the conversation began with; else the graph tells what is new.
    brought = {message.id for message in result.messages}
    assert said(result.messages) == kept(graph, without=[id for id in input_ids(parts) if id not in brought])


MODE_SETS = [
    MODES,
    ("tasks",),
    ("debug",),
    ("messages", "tasks"),
    ("messages", "updates"),
    ("values",),
    ("messages", "values"),
    ("updates", "values"),
    ("messages", "updates", "values", "tasks"),
]


@pytest.mark.parametrize("modes", MODE_SETS, ids="-".join)
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("subgraphs", [True, False])
def test_an_agent_in_every_shape_and_selection_of_modes(modes: Sequence[str], version: str, subgraphs: bool) -> None:
    wanted = AIMessage("let me see", tool_calls=[call("weather", "c1", city="Rome"), call("lookup", "c2", key="k")])
    graph = agent([wanted, AIMessage("it is sunny")], [weather, lookup], name="root")
    parts = run(graph, version=version, subgraphs=subgraphs, stream_mode=list(modes))
    result = fold(normalize(parts, stream_mode=modes[0] if len(modes) == 1 else None))

    first, *others = kept(graph)
    assert first["role"] == "user"
    assert sorted(said(result.messages), key=lambda each: each["id"]) == sorted(others, key=lambda each: each["id"])
    assert said(result.messages)[0] == others[0]
    assert said(result.messages)[-1] == others[-1]
    results = [block for message in others for block in message["content"] if block["type"] == "tool-result"]
    assert [block.get("sideData") for block in results] == [None, {"rows": [1, 2]}]


def test_tokens_go_out_as_they_come() -> None:
    graph = agent([AIMessage("one two three")])
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    deltas: list[str] = []
    for part in run(graph):
        told = [event.delta for event in normalizer.push(part) if isinstance(event, TextDelta)]
        if part["type"] == "messages" and (chunk := part["data"][0]).content:
            assert told == [chunk.content]
        deltas += told

    assert deltas == ["one", " two", " three"]


def test_a_conversation_is_told_once_over_several_turns() -> None:
    graph = agent([AIMessage("first"), AIMessage("second"), AIMessage("third")])
    result: AgReduceResult | None = None
    for turn in ("turn-1", "turn-2", "turn-3"):
        known: Any = () if result is None else KnownIds.of(result)
        parts = run(graph)
        events = normalize(parts, turn_id=turn, known_ids=known)
        assert len(of_type(events, "message.start")) == 1
        result = fold(events, result)

    assert result is not None
    assert said(result.messages) == [each for each in kept(graph) if each["role"] == "assistant"]
    assert [turn.turn_id for turn in result.turns] == ["turn-1", "turn-2", "turn-3"]


def test_bytes_of_a_turn_do_not_grow_with_the_history() -> None:
    graph = agent([AIMessage("the same answer") for _ in range(30)])
    sizes: list[int] = []
    for turn in range(30):
        parts = run(graph, "the same question")
        sizes.append(len(str([to_dict(event) for event in normalize(parts, turn_id=f"turn-{turn:02}")])))

    assert max(sizes) - min(sizes) < 20


@pytest.mark.parametrize("form", ["objects", "data"])
def test_what_nested_agents_say_is_in_the_state_once_and_in_their_turns(form: str) -> None:
    inner = agent(
        [AIMessage("deep", tool_calls=[call("weather", "i1", city="Rome")]), AIMessage("found")],
        [weather],
        name="inner",
    )

    def before(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("before")]}

    builder = StateGraph(Messages).add_node("before", before).add_node("inner", inner)
    builder.add_edge(START, "before").add_edge("before", "inner").add_edge("inner", END)
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    parts = run(graph)
    result = fold(normalize(parts if form == "objects" else deserialised(parts)))

    assert said(result.messages) == kept(graph)[1:]
    assert [message.turn_id == "turn-1" for message in result.messages] == [True, False, False, False]


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_a_pause_and_its_resume_fold_to_the_state(mode: Any, tmp_path: Path) -> None:
    wanted = AIMessage("may I", tool_calls=[call("weather", "c1", city="Rome"), call("weather", "c2", city="Oslo")])
    replies = [wanted, AIMessage("it is sunny")]

    def make(replies: Sequence[Any]) -> Any:
        gate = HumanInTheLoopMiddleware(interrupt_on={"weather": True}, interrupt_mode=mode)
        return agent(replies, [weather], saver=sqlite_saver(tmp_path / "threads.db"), middleware=[gate], name="root")

    first = normalize(run(make(replies[:1])))
    before = fold(first)
    asks = of_type(first, "hitl.ask")
    assert len(asks) == 2
    approve, reject = {"type": "approve"}, {"type": "reject", "message": "not there"}
    ids = [ask["metadata"]["langgraph/interruptId"] for ask in asks]
    answers = (
        {ids[0]: {"decisions": [approve, reject]}}
        if mode == "batched"
        else dict(zip(ids, [approve, reject], strict=True))
    )

    graph = make(replies[1:])
    known = KnownIds.of(before)
    second = normalize(run(graph, answers), turn_id="turn-2", known_ids=known, denied={"c2": "not there"})
    result = fold(second, before)

    order = {each["id"]: index for index, each in enumerate(kept(graph))}
    assert sorted(said(result.messages), key=lambda each: order[each["id"]]) == kept_with(graph, {"c2": "denied"})
    outcomes = {event["toolCallId"]: event.get("outcome") for event in of_type(second, "tool.done")}
    assert outcomes["c2"] == "denied"
    assert [turn.outcome.type if turn.outcome else None for turn in result.turns] == ["paused", "success"]


def kept_with(graph: Any, outcomes: dict[str, str]) -> list[dict[str, Any]]:
    """The conversation, with outcomes that only the one who answered knows; without what the user said."""
    found = [each for each in kept(graph) if each["role"] != "user"]
    for message in found:
        for block in message["content"]:
            if block["type"] == "tool-result" and block["toolCallId"] in outcomes:
                block["outcome"] = outcomes[block["toolCallId"]]
                block.pop("isError", None)
                block.pop("errorText", None)
    return found


def test_a_branch_that_had_ended_before_the_pause_is_told_once() -> None:
    builder = StateGraph(Messages)
    builder.add_node("says", lambda state: {"messages": [AIMessage("sibling", id="sib")]})
    builder.add_node("asks", lambda state: {"messages": [AIMessage(interrupt("q"), id="ans")]})
    for name in ("says", "asks"):
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    before = fold(normalize(run(graph)))
    (pending,) = graph.get_state(config()).interrupts
    parts = run(graph, {pending.id: "yes"})
    assert any("__metadata__" in part["data"] for part in parts if part["type"] == "updates")
    result = fold(normalize(parts, turn_id="turn-2", known_ids=KnownIds.of(before)), before)

    # In the order in which they were told; the state has them in the order of the branches.
    assert [(message.id, message.turn_id) for message in result.messages] == [("sib", "turn-1"), ("ans", "turn-2")]


def test_a_result_that_had_come_before_the_pause_is_told_once() -> None:
    @tool
    def confirm(city: str) -> str:
        """Asks."""
        return str(interrupt(f"Really {city}?"))

    wanted = AIMessage("", tool_calls=[call("weather", "c1", city="Rome"), call("confirm", "c2", city="Oslo")])
    graph = agent([wanted, AIMessage("done")], [weather, confirm])
    before = fold(normalize(run(graph)))
    (pending,) = graph.get_state(config()).interrupts
    second = normalize(run(graph, {pending.id: "yes"}), turn_id="turn-2", known_ids=KnownIds.of(before))
    result = fold(second, before)

    assert [event["toolCallId"] for event in of_type(second, "tool.done")] == ["c2"]
    assert said(result.messages) == kept(graph)[1:]


class Plain(TypedDict):
    """A state whose conversation is what a node returned last, without ids."""

    messages: list[Any]


@pytest.mark.parametrize("modes", [MODES, ("messages", "values"), ("values",), ("updates", "values")], ids="-".join)
@pytest.mark.parametrize("form", ["objects", "data"])
def test_a_conversation_without_ids_is_told_once(modes: Sequence[str], form: str) -> None:
    def speak(state: Any) -> dict[str, Any]:
        return {"messages": [*state["messages"], AIMessage("new")]}

    def again(state: Any) -> dict[str, Any]:
        return {"messages": [*state["messages"], AIMessage("newer")]}

    given = {"messages": [HumanMessage("old question"), AIMessage("old answer")]}
    native = graph_of(speak, again, state=Plain).stream(given, config(), stream_mode=list(modes), version="v2")
    # Each as it comes: LangGraph gives the messages ids as it tells them.
    stream = [part if form == "objects" else deserialised([part])[0] for part in native]

    assert [to_dict(block)["text"] for message in fold(normalize(stream)).messages for block in message.content] == [
        "new",
        "newer",
    ]


@pytest.mark.parametrize("modes", [MODES, ("messages", "values", "tasks")], ids="-".join)
@pytest.mark.parametrize("drop", [False, True])
def test_what_a_node_says_to_itself_is_kept_and_marked_or_dropped(modes: Sequence[str], drop: bool) -> None:
    model = ScriptedModel(replies=[AIMessage("to the right"), AIMessage("the answer")])

    def route(state: Any) -> dict[str, Any]:
        return {"note": model.invoke("where to?").content}

    def speak(state: Any) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = graph_of(route, speak)
    result = fold(normalize(run(graph, stream_mode=list(modes)), drop_uncommitted=drop))

    texts = {to_dict(message)["content"][0]["text"]: to_dict(message) for message in result.messages}
    assert list(texts) == (["the answer"] if drop else ["to the right", "the answer"])
    assert said(result.messages)[-1] == kept(graph)[-1]
    assert "langgraph/committed" not in str(texts["the answer"])
    if not drop:
        assert "'langgraph/committed': False" in str(texts["to the right"])


def test_a_summary_replaces_the_conversation() -> None:
    model = ScriptedModel(replies=[AIMessage("so far: nothing")])
    middleware: Any = SummarizationMiddleware(model=model, trigger=("messages", 4), keep=("messages", 2))
    graph = agent([AIMessage(f"answer {index}") for index in range(4)], middleware=[middleware])
    result: AgReduceResult | None = None
    for turn in ("turn-1", "turn-2", "turn-3"):
        parts = run(graph)
        known: Any = () if result is None else KnownIds.of(result)
        events = normalize(parts, turn_id=turn, known_ids=known, drop_uncommitted=True)
        result = fold(events, result)

    assert result is not None
    assert len(of_type(events, "messages.snapshot")) == 1
    assert said(result.messages) == kept(graph)


# Ends


def test_a_tool_that_raises_ends_its_call_and_the_turn() -> None:
    wanted = AIMessage("", tool_calls=[call("broken", "c1", city="x")])
    events = normalize(run(agent([wanted], [broken])))

    (done,) = of_type(events, "tool.done")
    assert (done["toolCallId"], done["outcome"], done["errorText"]) == ("c1", "error", "the tool is broken")
    assert done["messageId"] == "c1:result"
    assert [event["message"] for event in of_type(events, "turn.error", "error")] == ["the tool is broken"]


def test_a_tool_whose_failure_is_a_result_is_told_once() -> None:
    wanted = AIMessage("", tool_calls=[call("weather", "c1", town="x")])
    events = normalize(run(agent([wanted, AIMessage("sorry")], [weather])))

    (done,) = of_type(events, "tool.done")
    assert done["outcome"] == "error"
    assert of_type(events, "turn.done")[0]["outcome"] == {"type": "success"}


def test_the_recursion_limit_has_its_code() -> None:
    def loops(state: Any) -> Command[Any]:
        return Command(goto="loops", update={"note": "again"})

    graph = StateGraph(Messages).add_node("loops", loops).add_edge(START, "loops").compile()
    events = normalize(run(graph, recursion_limit=3))

    (error,) = of_type(events, "turn.error")
    assert error["code"] == "GRAPH_RECURSION_LIMIT"


@pytest.mark.parametrize(
    ("error", "code", "retriable"),
    [
        (GraphRecursionError("too deep"), "GRAPH_RECURSION_LIMIT", None),
        (
            InvalidUpdateError(
                "At key x.\nFor troubleshooting, visit: https://x/errors/INVALID_CONCURRENT_GRAPH_UPDATE"
            ),
            "INVALID_CONCURRENT_GRAPH_UPDATE",
            None,
        ),
        (InvalidUpdateError("plain"), "InvalidUpdateError", None),
        (NodeTimeoutError("n", run_timeout=1.0, elapsed=1.5, kind="run"), "NODE_TIMEOUT", True),
        (TimeoutError("slow"), "TimeoutError", True),
    ],
)
def test_the_codes_of_what_is_thrown(error: Exception, code: str, retriable: bool | None) -> None:
    (told,) = of_type(normalize([error]), "turn.error")

    assert (told["code"], told.get("retriable")) == (code, retriable)


def test_a_graph_that_is_drained_for_a_shutdown_is_an_abort() -> None:
    class GraphDrained(Exception):
        """As LangGraph names it."""

    assert of_type(normalize([GraphDrained()]), "turn.abort", "turn.error", "turn.done") == [
        {"type": "turn.abort", "turnId": "turn-1", "reason": "drained"}
    ]


def test_a_cancelled_run_is_an_abort() -> None:
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    events = normalizer.push(HostAbort("client-closed")) + normalizer.flush()

    assert [event["type"] for event in of_type(events, "turn.start", "turn.abort")] == ["turn.start", "turn.abort"]
    (error,) = of_type(normalize([asyncio.CancelledError()][:0]), "turn.done")
    assert error["outcome"] == {"type": "success"}


def test_an_error_that_a_server_tells_is_the_end() -> None:
    events = normalize(
        [{"event": "metadata", "data": {"run_id": "r"}}, {"event": "error", "data": {"error": "E", "message": "m"}}]
    )

    (told,) = of_type(events, "turn.error", "turn.done")
    assert (told["type"], told["code"], told["message"]) == ("turn.error", "E", "m")
    assert of_type(events, "ext.langgraph.frame")[0]["frame"] == {"run_id": "r"}


def test_usage_and_finish_reason_are_those_of_the_model() -> None:
    reply = AIMessage(
        "cut off",
        usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
        response_metadata={"finish_reason": "length", "model_provider": "openai", "model_name": "gpt"},
    )
    (done,) = of_type(normalize(run(agent([reply]))), "turn.done")

    assert done["finishReason"] == "token_limit"
    assert (done["usage"]["inputTokens"], done["usage"]["outputTokens"]) == (7, 3)


def test_what_the_driver_knows_of_the_end_counts() -> None:
    events = normalize(run(graph_of(a_answers)), end=HostEnd(finish_reason="refusal"))

    assert of_type(events, "turn.done")[0]["finishReason"] == "refusal"


# What is told beside


def test_what_nodes_write_is_told_as_it_is() -> None:
    def writes(state: Any) -> dict[str, Any]:
        for value in ({"progress": 1}, "text", 3, None, [1], {"type": "x", "seq": 5}, object):
            get_stream_writer()(value)
        return {}

    told = of_type(normalize(run(graph_of(writes))), "ext.langgraph.custom")
    values = [{k: v for k, v in event.items() if k not in ("type", "turnId")} for event in told]

    assert values[:5] == [{"progress": 1}, {"value": "text"}, {"value": 3}, {"value": None}, {"value": [1]}]
    assert values[5] == {"shadowed": {"type": "x", "seq": 5}}
    assert values[6]["agjson/repr"] == "builtins.type"
    assert of_type(normalize(run(graph_of(writes)), tell=()), "ext.langgraph.custom") == []


def test_checkpoints_and_debug_are_told_when_asked_for() -> None:
    graph = graph_of(a_answers)
    told = of_type(normalize(run(graph), tell=["checkpoints"]), "ext.langgraph.checkpoint")
    last = told[-1]
    state = graph.get_state(config())
    assert last["next"] == []
    assert last["config"]["configurable"]["checkpoint_id"] == state.config["configurable"]["checkpoint_id"]
    assert "values" not in last

    debug = of_type(normalize(run(graph, stream_mode=["debug"])), "ext.langgraph.debug")
    kinds = {event["shadowed"]["type"] for event in debug}
    assert kinds == {"checkpoint", "task", "task_result"}
    assert all("values" not in event["payload"] for event in debug)


def test_a_stream_of_debug_alone_has_steps() -> None:
    steps = of_type(normalize(run(graph_of(a_answers), stream_mode=["debug"])), "step.start", "step.done")

    assert [(step["type"], step["stepName"]) for step in steps] == [
        ("step.start", "a_answers"),
        ("step.done", "a_answers"),
    ]


def test_what_a_tool_puts_out_as_it_runs_is_a_frame() -> None:
    delta = {"event": "tool-output-delta", "tool_call_id": "c1", "delta": {"n": 1}}
    (frame,) = of_type(normalize([{"type": "tools", "ns": (), "data": delta}]), "ext.langgraph.frame")

    assert (frame["kind"], frame["frame"]) == ("tool-output-delta", delta)


def test_protocol_events_of_nodes_that_return_messages() -> None:
    graph = graph_of(a_answers, b_removes)
    events = normalize(protocol_events(graph))

    assert said(fold(events).messages) == kept(graph)[1:]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_how_often_the_graph_saves_changes_nothing(durability: str) -> None:
    graph = graph_of(a_answers, b_removes)
    events = normalize(run(graph, durability=durability))

    assert of_type(events, "turn.done")[0]["outcome"] == {"type": "success"}
    assert said(fold(events).messages) == kept(graph)[1:]


def test_an_asynchronous_stream_is_the_same() -> None:
    graph = agent([AIMessage("", tool_calls=[call("weather", "c1", city="Rome")]), AIMessage("sunny")], [weather])

    async def collect() -> list[Any]:
        given = {"messages": [HumanMessage("hi")]}
        stream = graph.astream(given, config(), stream_mode=list(MODES), subgraphs=True, version="v2")
        return [part async for part in stream]

    result = fold(normalize(asyncio.run(collect())))

    assert said(result.messages) == kept(graph)[1:]


def test_text_and_reasoning_say_which_node_and_tags_they_come_from() -> None:
    model = ScriptedModel(replies=[AIMessage("hello")]).with_config(tags=["draft"])

    def speak(state: Any) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    (message,) = fold(normalize(run(graph_of(speak)))).messages
    (block,) = message.content
    assert block.meta == {"langgraph/node": "speak", "langgraph/tags": ["draft"]}
