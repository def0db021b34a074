"""The state of a graph: what of it becomes messages, what becomes state events, and what is not told again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite
from pydantic import BaseModel

from agjson.adapters.langgraph._scope import Scope
from agjson.adapters.langgraph._state import REMOVE_ALL, State
from agjson.emitter import Emitter
from agjson.fold import reduce
from agjson.types import UNSET, JsonValue, UnsetType
from agjson.wire import encode
from tests.support.langgraph_graphs import (
    Messages,
    ScriptedModel,
    config,
    deserialised,
    graph_of,
    normalize,
    of_type,
    run,
)

ROOT = Scope((), "turn-1")
INNER = Scope(("sub:1",), "turn-1")
HI = HumanMessage("hi", id="h")
A = AIMessage("a", id="a")
B = AIMessage("b", id="b")


class Heard:
    """Keeps what it is told of messages."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.resync = False

    def history(self, messages: Sequence[dict[str, Any]], *, scope: Scope) -> None:
        self.log.append(("history", [message["id"] for message in messages]))

    def known(self, ids: Iterable[str]) -> None:
        self.log.append(("known", list(ids)))

    def commit(self, message: dict[str, Any], *, scope: Scope, node: str | None) -> None:
        self.log.append(("commit", message["id"], node))

    def remove(self, id: str, *, scope: Scope) -> None:
        self.log.append(("remove", id))

    def release(self) -> None:
        self.log.append("release")

    def take_resync(self) -> bool:
        return self.resync


def made(**settings: Any) -> tuple[State, Heard, Emitter]:
    heard, out = Heard(), Emitter("turn-1", "thread-1")
    return State(out, heard, **settings), heard, out


def test_the_first_state_is_history_and_later_ones_tell_what_is_new() -> None:
    state, heard, _ = made()
    state.values({"messages": [HI]}, ROOT)
    state.values({"messages": [HI, A]}, ROOT)
    state.values({"messages": [HI, A]}, ROOT)
    state.values({"messages": [HI, A, B]}, ROOT)

    assert heard.log == [("history", ["h"]), ("commit", "a", None), ("commit", "b", None)]


def test_the_same_from_data() -> None:
    state, heard, _ = made()
    for messages in ([HI], [HI, A], [HI, A], [HI, A, B], [HI, A.model_copy(update={"content": "x"}), B]):
        state.values({"messages": json.loads(json.dumps([each.model_dump() for each in messages]))}, ROOT)

    assert heard.log == [("history", ["h"]), ("commit", "a", None), ("commit", "b", None), ("commit", "a", None)]


def test_a_state_that_comes_after_an_output_is_no_history() -> None:
    state, heard, _ = made()
    state.output()
    state.values({"messages": [A]}, ROOT)

    assert heard.log == [("commit", "a", None)]


def test_an_update_is_told_with_its_node_and_the_state_does_not_tell_it_again() -> None:
    state, heard, _ = made()
    state.values({"messages": [HI]}, ROOT)
    state.updates({"model": {"messages": [A]}}, ROOT)
    state.values({"messages": [HI, A]}, ROOT)

    assert heard.log == [("history", ["h"]), ("commit", "a", "model")]


@pytest.mark.parametrize(
    "update",
    [
        {"n": None},
        {"n": {}},
        {"n": {"messages": []}},
        {"n": {"messages": None}},
        {"__interrupt__": ()},
    ],
)
def test_an_update_that_says_nothing(update: Any) -> None:
    state, heard, out = made()
    state.updates(update, ROOT)

    assert (heard.log, out.drain()) == ([], [])


@pytest.mark.parametrize(
    "update",
    [
        {"n": {"messages": A}},
        {"n": {"messages": [A]}},
        {"n": {"messages": (A,)}},
        {"n": [{"messages": [A]}]},
        {"n": A},
        {"n": [A]},
        {"n": {"messages": [A.model_dump()]}},
    ],
)
def test_the_forms_of_an_update(update: Any) -> None:
    state, heard, _ = made()
    state.updates(update, ROOT)

    assert heard.log == [("commit", "a", "n")]


def test_what_leaves_the_conversation_is_removed_where_the_state_shows_it() -> None:
    state, heard, _ = made()
    state.values({"messages": [HI, A]}, ROOT)
    state.updates({"n": {"messages": [RemoveMessage("a"), B]}}, ROOT)
    state.values({"messages": [HI, B]}, ROOT)

    assert heard.log == [("history", ["h", "a"]), ("commit", "b", "n"), ("remove", "a")]


def test_without_values_updates_tell_what_leaves() -> None:
    state, heard, _ = made()
    state.updates({"n": {"messages": [RemoveMessage("a"), B]}}, ROOT)

    assert heard.log == [("remove", "a"), ("commit", "b", "n")]


@pytest.mark.parametrize(
    ("before", "after", "snapshot"),
    [
        (["a", "b"], ["a", "b", "c"], False),
        (["a", "b", "c"], ["b", "d"], False),
        (["a", "b"], ["c"], False),
        (["a"], [], False),
        ([], ["a"], False),
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], ["s", "b"], True),
        (["a", "b"], ["a", "s", "b"], True),
    ],
)
def test_what_cannot_be_told_by_removing_and_adding_is_a_snapshot(
    before: list[str], after: list[str], snapshot: bool
) -> None:
    state, heard, out = made()
    state.values({"messages": [AIMessage(id, id=id) for id in before]}, ROOT)
    state.values({"messages": [AIMessage(id, id=id) for id in after]}, ROOT)
    events = of_type(out.drain(), "messages.snapshot")

    if not snapshot:
        assert events == []
        assert [each for each in heard.log if each[0] == "remove"] == [
            ("remove", id) for id in before if id not in after
        ]
    else:
        (event,) = events
        assert [message["id"] for message in event["messages"]] == after
        assert heard.log[1:] == ["release", ("known", after)]


def test_a_change_that_only_a_snapshot_can_tell() -> None:
    state, heard, out = made()
    state.values({"messages": [A, B]}, ROOT)
    heard.resync = True
    state.values({"messages": [A.model_copy(update={"content": "x"}), B]}, ROOT)

    (event,) = of_type(out.drain(), "messages.snapshot")
    assert event["messages"][0]["content"] == [{"type": "text", "text": "x"}]


@pytest.mark.parametrize("wrapped", [Overwrite([A]), {"__overwrite__": [A]}])
def test_an_overwrite_without_values_is_a_snapshot(wrapped: Any) -> None:
    state, _, out = made()
    state.updates({"n": {"messages": wrapped}}, ROOT)

    (event,) = of_type(out.drain(), "messages.snapshot")
    assert [message["id"] for message in event["messages"]] == ["a"]


@pytest.mark.parametrize("modes", [["updates", "values"], ["values", "tasks"], ["values"]])
def test_what_is_put_in_the_place_of_the_whole_conversation_is_told(modes: list[str]) -> None:
    def first(state: Any) -> Any:
        return {"messages": [A, B]}

    def second(state: Any) -> Any:
        return {"messages": [RemoveMessage(id=REMOVE_ALL), B, AIMessage("c", id="c")]}

    parts = run(graph_of(first, second), stream_mode=modes)
    for stream in (parts, deserialised(parts)):
        assert [message.id for message in reduce(normalize(stream)).result.messages] == ["b", "c"]


def test_a_message_told_again_as_the_same_object_is_known() -> None:
    state, _, _ = made()
    state.values({"messages": [HI]}, ROOT)

    assert state.is_history(HI, HI.model_dump())
    assert not state.is_history(HumanMessage("hi", id="h"), HI.model_dump())


def test_a_message_without_id_that_comes_again_under_one_is_known() -> None:
    old, new = HumanMessage("old"), HumanMessage("old", id="x")
    for form in (new, new.model_dump()):
        state, heard, _ = made()
        state.values({"messages": [old.model_dump()]}, ROOT)

        assert state.is_history(form, new.model_dump())
        assert not state.is_history(form, new.model_dump())
        assert heard.log[-1] == ("history", ["x"])


def test_messages_that_never_get_ids_are_told_by_their_number() -> None:
    state, heard, _ = made()
    ok = {"type": "ai", "content": "ok", "id": None}
    state.values({"messages": [ok]}, ROOT)
    state.values({"messages": [ok]}, ROOT)
    assert heard.log == [("history", [None])]
    state.values({"messages": [ok, ok]}, ROOT)
    state.values({"messages": [ok, ok]}, ROOT)
    assert heard.log[1:] == [("commit", None, None)]


def test_what_an_earlier_turn_has_told_of_a_branch_is_not_told_again() -> None:
    state, heard, _ = made(told={"a", "h"})
    state.values({"messages": [HI]}, ROOT)
    state.updates({"n": {"messages": [A]}, "__metadata__": {"cached": True}}, ROOT)
    state.values({"messages": [HI, A]}, ROOT)
    state.values({"messages": [HI, A, B]}, ROOT)

    assert heard.log == [("history", ["h"]), ("history", ["a"]), ("commit", "b", None)]


def test_an_edit_of_what_an_earlier_turn_has_told_is_handed_on() -> None:
    state, heard, _ = made(told={"h", "a"})
    state.values({"messages": [HI, A]}, ROOT)
    state.updates({"n": {"messages": [A.model_copy(update={"content": "x"})]}}, ROOT)

    assert heard.log == [("history", ["h", "a"]), ("commit", "a", "n")]


def test_the_calls_of_the_last_answer() -> None:
    calls = [{"name": "f", "args": {}, "id": "c1", "type": "tool_call"}]
    asked = AIMessage("", id="w", tool_calls=calls)
    result = ToolMessage("r", id="r", tool_call_id="c1")
    state, _, _ = made()
    state.values({"messages": [HI, asked, result]}, ROOT)

    assert state.last_calls == state.calls_in({"messages": [asked.model_dump()]}) == calls
    assert state.calls_in({"messages": [asked, B]}) == state.calls_in({"x": 1}) == state.calls_in(None) == []


def snapshots(*states: Any, **settings: Any) -> list[JsonValue]:
    state, _, out = made(**settings)
    for each in states:
        state.values(each, ROOT)
    return [event["snapshot"] for event in of_type(out.drain(), "state.snapshot")]


class Model(BaseModel):
    """A state that is a model."""

    messages: list[Any] = []
    note: str = ""


@dataclasses.dataclass
class Data:
    """A state that is a dataclass."""

    messages: list[Any]
    note: str


@pytest.mark.parametrize("state", [{"messages": [A], "note": "n"}, Model(messages=[A], note="n"), Data([A], "n")])
def test_the_forms_of_a_state(state: Any) -> None:
    assert snapshots(state) == [{"note": "n"}]


def test_a_state_goes_out_when_it_has_changed() -> None:
    states = [{"messages": [HI], "n": 1}, {"messages": [HI, A], "n": 1}, {"messages": [HI, A], "n": 2}]

    assert snapshots(*states) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(("known", "told"), [(UNSET, [{}]), ({}, []), ({"n": 1}, [{}])])
def test_the_state_that_the_thread_has_already_is_not_told(known: JsonValue | UnsetType, told: list[JsonValue]) -> None:
    assert snapshots({"messages": [HI]}, state=known) == told


def test_only_the_keys_that_were_asked_for() -> None:
    assert snapshots({"a": 1, "b": 2, "__interrupt__": []}, keys=["a"]) == [{"a": 1}]


def test_the_conversation_in_the_state_when_asked_for() -> None:
    (told,) = snapshots({"messages": [A], "n": 1}, include_messages=True)

    assert told == {"n": 1, "messages": [A.model_dump()]}


def test_something_else_under_the_name_is_state() -> None:
    assert snapshots({"messages": 5}, {"messages": {"unread": 3}}) == [{"messages": 5}, {"messages": {"unread": 3}}]


def test_what_json_cannot_hold_is_marked() -> None:
    assert snapshots({"x": float("nan"), "b": b"\x01"}) == [
        {"x": {"agjson/number": "NaN"}, "b": {"agjson/bytes": "AQ=="}}
    ]


def test_another_key_for_the_conversation() -> None:
    state, heard, out = made(messages_key="chat")
    state.values({"chat": [A], "messages": "x"}, ROOT)

    assert heard.log == [("history", ["a"])]
    assert of_type(out.drain(), "state.snapshot")[0]["snapshot"] == {"messages": "x"}


def test_updates_are_deltas_only_where_no_values_come() -> None:
    state, _, out = made()
    state.updates({"n": {"messages": [A], "x": 1}, "m": [{"x": 2}, {"y": 3}]}, ROOT)
    assert [event["patch"] for event in of_type(out.drain(), "state.delta")] == [
        {"n": {"x": 1}},
        {"m": {"x": 2}},
        {"m": {"y": 3}},
    ]

    state.values({"x": 2}, ROOT)
    out.drain()
    state.updates({"n": {"x": 5}}, ROOT)
    assert out.drain() == []


def test_an_update_that_is_no_object_is_a_frame() -> None:
    state, _, out = made()
    state.updates({"n": "text"}, ROOT)

    (frame,) = of_type(out.drain(), "ext.langgraph.frame")
    assert (frame["kind"], frame["frame"]) == ("updates", {"n": "text"})


@pytest.mark.parametrize("modes", [["messages", "values"], ["messages", "updates"], ["messages", "values", "tasks"]])
def test_what_never_becomes_state_is_told_apart_whatever_tells_the_state(modes: list[str]) -> None:
    model = ScriptedModel(replies=[AIMessage("BILLING", id="r"), A, AIMessage("BILLING", id="r"), A])

    def answer(state: Any) -> Any:
        model.invoke("Which desk?")
        return {"messages": [model.invoke(state["messages"])]}

    graph = graph_of(answer)
    for stream in (run(graph, stream_mode=modes), deserialised(run(graph, stream_mode=modes, thread="t2"))):
        kept = reduce(normalize(stream)).result.messages
        assert [(message.id, (message.metadata or {}).get("langgraph/committed")) for message in kept] == [
            ("r", False),
            ("a", None),
        ]
        assert [message.id for message in reduce(normalize(stream, drop_uncommitted=True)).result.messages] == ["a"]


@pytest.mark.parametrize("modes", [["messages", "updates", "values"], ["updates", "values"], ["updates"]])
def test_what_a_graph_inside_takes_out_of_its_state_stays_where_the_root_keeps_it(modes: list[str]) -> None:
    def first(state: Any) -> Any:
        return {"messages": [A]}

    def inside(state: Any) -> Any:
        return {"messages": [B, AIMessage("c", id="c")]}

    def trim(state: Any) -> Any:
        return {"messages": [RemoveMessage(id="a"), RemoveMessage(id="c")]}

    builder = StateGraph(Messages)
    builder.add_node("first", first)
    builder.add_node("sub", graph_of(inside, trim, saver=False))
    builder.add_edge(START, "first")
    builder.add_edge("first", "sub")
    graph = builder.compile(checkpointer=InMemorySaver())
    parts = run(graph, stream_mode=modes)
    assert [message.id for message in graph.get_state(config()).values["messages"]][1:] == ["a", "b"]
    for stream in (parts, deserialised(parts)):
        told = reduce(normalize(stream)).result.messages
        assert [message.id for message in told if message.role == "assistant"] == ["a", "b"]


def test_a_graph_inside_is_told_beside_the_state() -> None:
    state, heard, out = made()
    state.values({"messages": [A], "x": 1}, INNER)
    state.values({"messages": [A], "x": 1}, INNER)
    state.values({"messages": [A]}, INNER)
    state.updates({"n": {"messages": [A], "x": 2}}, INNER)

    events = of_type(out.drain(), "ext.langgraph.frame", "state.snapshot", "state.delta")
    assert [(event["kind"], event["ns"], event["frame"]) for event in events] == [
        ("values", ["sub:1"], {"x": 1}),
        ("updates", ["sub:1"], {"n": {"x": 2}}),
    ]
    assert heard.log == [("commit", "a", "n")]


# Running graphs


def last_two(old: Any, new: Any) -> Any:
    kept: Any = add_messages(old, new)
    return kept[-2:]


class Window(TypedDict):
    """A state that keeps the last two messages."""

    messages: Annotated[list[AnyMessage], last_two]


def says(text: str) -> Any:
    return lambda state: {"messages": [AIMessage(text, id=text)]}


def test_a_state_with_another_way_to_keep_messages_is_followed() -> None:
    graph = StateGraph(Window)
    names = ["one", "two", "three"]
    for name in names:
        graph.add_node(name, says(name))
    for before, after in pairwise([START, *names, END]):
        graph.add_edge(before, after)
    parts = run(graph.compile(checkpointer=InMemorySaver()))

    for stream in (parts, deserialised(parts)):
        assert [message.id for message in reduce(normalize(stream)).result.messages] == ["two", "three"]


def test_a_functional_graph() -> None:
    @task
    def think(topic: str) -> AIMessage:
        return AIMessage(f"about {topic}", id="m1")

    @entrypoint(checkpointer=InMemorySaver())
    def flow(topic: str) -> dict[str, Any]:
        return {"answer": think(topic).result().content}

    modes: Any = ["messages", "updates", "values", "tasks"]
    events = normalize(list(flow.stream("x", config(), stream_mode=modes, version="v2")))

    assert [message.id for message in reduce(events).result.messages] == ["m1"]
    assert of_type(events, "state.snapshot")[-1]["snapshot"] == {"answer": "about x"}


def test_the_state_of_a_turn_costs_no_more_than_its_changes() -> None:
    def note(state: Any) -> dict[str, Any]:
        return {"note": "n" * 1000}

    def speak(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("x")]}

    def again(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("y")]}

    events = normalize(run(graph_of(note, speak, again)))
    told = [event for event in events if event.type in ("state.snapshot", "state.delta")]

    assert sum(len(encode(event)) for event in told) < 1400
