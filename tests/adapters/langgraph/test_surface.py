"""``surface.json`` lists what the installed frameworks hand out, all of it and nothing else, and where it goes."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import langchain.agents.middleware.human_in_the_loop as review
import langchain_core.messages as messages
import langgraph.errors
import langgraph.types
import pytest
from langchain_core.messages import content
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import tool
from langchain_protocol import protocol
from langgraph.errors import ErrorCode
from langgraph.graph import END, START
from langgraph.pregel import _tools
from langgraph.stream import transformers

from agjson.adapters.langgraph._parts import KNOWN_MODES, METHODS, Part, read_part
from agjson.adapters.langgraph._protocol import EVENTS
from agjson.adapters.langgraph.normalizer import LangGraphNormalizer
from agjson.normalizer import HostEnd, HostError
from tests.support.langgraph_graphs import agent, call, config, deserialised, graph_of, normalize, of_type, run

SURFACE: dict[str, Any] = json.loads(files("agjson.adapters.langgraph").joinpath("surface.json").read_text("utf-8"))

MODELS = {
    **{name: vars(langgraph.types)[name] for name in vars(langgraph.types) if name.endswith(("StreamPart", "Payload"))},
    "CheckpointTask": langgraph.types.CheckpointTask,
    "HITLRequest": review.HITLRequest,
    "ActionRequest": review.ActionRequest,
    "ReviewConfig": review.ReviewConfig,
    "ToolApprovalRequest": review.ToolApprovalRequest,
}
# The unions of the others.
UNIONS = {"StreamPart", "DebugPayload"}
MESSAGES = [
    messages.AIMessage,
    messages.AIMessageChunk,
    messages.HumanMessage,
    messages.SystemMessage,
    messages.ToolMessage,
    messages.FunctionMessage,
    messages.ChatMessage,
    messages.RemoveMessage,
]
INNER = {
    "ToolCall": messages.ToolCall,
    "ToolCallChunk": messages.ToolCallChunk,
    "InvalidToolCall": messages.InvalidToolCall,
    "UsageMetadata": UsageMetadata,
}


def dispositions(found: Any, path: str = "") -> Iterator[tuple[str, str]]:
    for name, said in found.items():
        if name in ("sdk", "dispositions"):
            continue
        if isinstance(said, dict):
            yield from dispositions(said, f"{path}{name}.")
        else:
            yield f"{path}{name}", said


def test_every_entry_says_what_becomes_of_it() -> None:
    kinds = tuple(f"{kind}: " if kind in ("dropped", "unsupported") else f"{kind} " for kind in SURFACE["dispositions"])

    assert not [where for where, said in dispositions(SURFACE) if not said.startswith(kinds)]
    assert not [where for where, said in dispositions(SURFACE) if len(said.split()) < 2]


def test_the_versions_are_the_installed_ones() -> None:
    assert SURFACE["sdk"] == {name: version(name) for name in ("langgraph", "langchain", "langchain-core")}


def test_every_mode_is_listed() -> None:
    named = set(typing.get_args(langgraph.types.StreamMode))

    assert set(SURFACE["modes"]) == named | {"tools"} == KNOWN_MODES


def test_every_part_and_payload_is_listed_with_its_fields() -> None:
    found = {name: list(model.__annotations__) for name, model in MODELS.items() if name not in UNIONS}
    found["Interrupt"] = list(langgraph.types.Interrupt.__slots__)

    assert {name: list(fields) for name, fields in SURFACE["models"].items()}.keys() == found.keys()
    for name, fields in found.items():
        assert set(SURFACE["models"][name]) == set(fields), name


def test_every_message_is_listed_with_its_fields() -> None:
    assert set(SURFACE["messages"]) == {model.__name__ for model in MESSAGES}
    for model in MESSAGES:
        assert set(SURFACE["messages"][model.__name__]) == set(model.model_fields), model.__name__
    for name, inner in INNER.items():
        assert set(SURFACE["message_models"][name]) == set(inner.__annotations__), name


def test_no_kind_of_message_is_missing() -> None:
    union = typing.get_args(typing.get_args(messages.AnyMessage)[0])
    kinds = {typing.get_args(each)[0].__name__ for each in union}

    assert {name for name in kinds if not name.endswith("Chunk")} <= set(SURFACE["messages"])


def test_every_standard_content_block_is_listed() -> None:
    assert set(SURFACE["content_blocks"]) == content.KNOWN_BLOCK_TYPES


def test_every_exception_and_code_is_listed() -> None:
    raised = {
        name
        for name, each in vars(langgraph.errors).items()
        if inspect.isclass(each) and issubclass(each, Exception) and not issubclass(each, Warning)
    }

    assert set(SURFACE["exceptions"]) == raised
    assert SURFACE["error_codes"] == {code.value: f"to turn.error.code {code.value}" for code in ErrorCode}


@pytest.mark.parametrize("name", ["GraphRecursionError", "EmptyInputError", "TaskNotFound", "GraphBubbleUp"])
def test_an_exception_has_the_code_that_is_listed(name: str) -> None:
    (told,) = of_type(normalize([vars(langgraph.errors)[name]("x")]), "turn.error")

    assert SURFACE["exceptions"][name] == f"to turn.error.code {told['code']}"


@tool
def streams(city: str, runtime: Any = None) -> str:
    """The weather of a city."""
    return city


def test_every_event_of_tools_is_listed_with_its_fields() -> None:
    source = inspect.getsource(_tools)
    for kind, fields in SURFACE["tool_events"].items():
        assert f'"{kind}"' in source
        for field in fields:
            assert f'"{field}"' in source, field
    assert source.count('"event": "tool-') == len(SURFACE["tool_events"])

    wanted = messages.AIMessage("", tool_calls=[call("streams", "c1", city="x"), call("streams", "c2", town="x")])
    seen = [
        part["data"] for part in run(agent([wanted, messages.AIMessage("so")], [streams])) if part["type"] == "tools"
    ]
    assert seen
    for event in seen:
        assert set(event) <= set(SURFACE["tool_events"][event["event"]])


def test_the_metadata_of_messages_are_listed() -> None:
    wanted = messages.AIMessage("", tool_calls=[call("streams", "c1", city="x")])
    graph = agent([wanted, messages.AIMessage("so")], [streams], name="root")
    keys = {name for part in run(graph) if part["type"] == "messages" for name in part["data"][1]}

    assert {"langgraph_node", "lc_agent_name", "langgraph_checkpoint_ns"} <= keys
    assert keys <= set(SURFACE["message_metadata"])


def test_the_methods_of_protocol_events_are_listed() -> None:
    source = inspect.getsource(transformers)
    unsupported = {name for name, said in SURFACE["protocol_methods"].items() if said.startswith("unsupported")}

    assert set(SURFACE["protocol_methods"]) - unsupported == set(METHODS)
    assert unsupported == {"lifecycle", "input"}
    for method in SURFACE["protocol_methods"]:
        event = {"type": "event", "method": method, "seq": 0, "params": {"namespace": [], "timestamp": 0, "data": {}}}
        assert (read_part(event) is None) == (method in unsupported), method
    assert '"messages"' in source


def test_the_protocol_events_of_messages_are_listed_with_their_fields() -> None:
    unions = {
        typing.get_args(typing.get_type_hints(each)["event"])[0]: set(each.__annotations__)
        for each in typing.get_args(protocol.MessagesData)
    }

    # The installed framework adds metadata to the last one.
    unions["message-finish"].add("metadata")
    assert {name: set(fields) for name, fields in SURFACE["protocol_messages"].items()} == unions
    assert set(SURFACE["protocol_messages"]) - {"error"} == EVENTS


def test_what_is_unsupported_goes_out_whole() -> None:
    event = {"type": "event", "method": "lifecycle", "seq": 0, "params": {"namespace": [], "data": {"x": ["y"]}}}
    (told,) = of_type(normalize([event]), "ext.langgraph.unparsed")

    assert told["raw"] == event


def test_the_events_of_a_server_are_listed() -> None:
    known = {"metadata", "error", "end"}
    for name, said in SURFACE["server_events"].items():
        part = read_part({"event": name, "data": {}})
        assert (part is None) == said.startswith("unsupported"), name
        assert part is None or part == Part("server", (), {"event": name, "data": {}})
    assert known < set(SURFACE["server_events"])


# What an entry says is true: nothing but what it says is dropped is lost.


def test_every_value_of_a_message_is_found() -> None:
    def speaks(state: Any) -> dict[str, Any]:
        return {
            "messages": [
                messages.AIMessage(
                    [{"type": "text", "text": "mark-text", "extras": {"e": "mark-extras"}}],
                    id="mark-id",
                    name="mark-name",
                    additional_kwargs={"k": "mark-kwargs"},
                    response_metadata={"r": "mark-response"},
                    tool_calls=[call("mark-tool", "mark-call", a="mark-args")],
                    invalid_tool_calls=[
                        {
                            "name": "f",
                            "args": "mark-broken",
                            "id": "mark-bad",
                            "error": "mark-error",
                            "type": "invalid_tool_call",
                        }
                    ],
                    usage_metadata={"input_tokens": 70701, "output_tokens": 70702, "total_tokens": 141403},
                ),
                messages.ToolMessage(
                    "mark-result",
                    id="mark-result-id",
                    tool_call_id="mark-call",
                    artifact={"a": "mark-artifact"},
                    additional_kwargs={"k": "mark-result-kwargs"},
                    status="error",
                ),
            ],
            "note": "mark-state",
        }

    for stream in ((parts := run(graph_of(speaks))), deserialised(parts)):
        said = json.dumps(of_type(normalize(stream), *{event.type for event in normalize(stream)}))
        for mark in ("text", "extras", "id", "name", "kwargs", "response", "tool", "call", "args"):
            assert f"mark-{mark}" in said, mark
        for mark in ("broken", "bad", "error", "result", "result-id", "artifact", "result-kwargs", "state"):
            assert f"mark-{mark}" in said, mark
        assert "70701" in said and "70702" in said


def test_the_driver_s_own_metadata_never_reach_the_stream() -> None:
    graph = graph_of(lambda_node := speaks_little)
    assert lambda_node is speaks_little
    settings = {**config(), "metadata": {"agjson/turnId": "mark-secret"}}
    parts = list(
        graph.stream({"messages": []}, settings, stream_mode=[*sorted(KNOWN_MODES)], subgraphs=True, version="v2")
    )
    assert "mark-secret" in str(parts)

    normalizer = LangGraphNormalizer("t", "th", tell=["checkpoints", "custom", "debug", "frames", "tasks"])
    events = [event for part in parts for event in normalizer.push(part)]
    events += [*normalizer.push(HostEnd()), *normalizer.flush(), *normalizer.push(HostError("x"))]
    assert "mark-secret" not in str(of_type(events, *{event.type for event in events}))


def speaks_little(state: Any) -> dict[str, Any]:
    return {"messages": [messages.AIMessage("x")]}


def test_the_names_of_the_edges_of_a_graph_are_no_tasks() -> None:
    steps = of_type(normalize(run(graph_of(speaks_little))), "step.start")

    assert {START, END} & {step["stepName"] for step in steps} == set()
