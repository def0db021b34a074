"""LangGraph and LangChain for the contract suite: the streams of real graphs, and graphs that follow a script."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, TypeAlias

from langchain_core.messages import convert_to_openai_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from agjson.adapters.langgraph import ADAPTER, LangGraphAgent, LangGraphCall, messages_from_native
from agjson.agents import Agent
from agjson.testing.contract import Path, Respond, Subject
from agjson.types import ToolCallBlock
from tests.contract.subjects.langgraph_samples import GIVEN, SAID, recorded, samples, single_modes
from tests.support.langgraph_gated import GATING
from tests.support.langgraph_graphs import Messages

SURFACE: dict[str, Any] = json.loads(files("agjson.adapters.langgraph").joinpath("surface.json").read_text("utf-8"))
# Members whose value goes back byte for byte.
OPAQUE = frozenset(("signature", "encrypted_content"))
SIGNATURES = "__gemini_function_call_thought_signatures__"
UNKNOWN: tuple[Any, ...] = (
    {"type": "contract_mode", "ns": [], "data": {"words": "contract-unknown-mode"}},
    {"event": "contract_event", "data": {"words": "contract-unknown-event"}},
    [["contract:ns"], "contract_mode", "contract-unknown-tuple"],
    {"type": "event", "method": "contract", "params": {"namespace": [], "data": ["contract-unknown-method"]}},
)
# By mode, the members of what it tells that the surface says go nowhere by themselves: they are left out, or only
# decide where something else goes.
PAYLOADS = {
    "checkpoints": (SURFACE["models"]["CheckpointPayload"],),
    "tasks": (SURFACE["models"]["TaskPayload"], SURFACE["models"]["TaskResultPayload"]),
}
# What of a task or checkpoint goes out only where there is an ask for it, or nobody else tells of the failure.
FOR_ASKS = frozenset(("config", "next", "input", "triggers", "metadata", "error"))


def placed(native: Any, path: Path) -> tuple[str, Any, Path] | None:
    """The mode, the data and the path in them of a value that a native event holds; None for one of its envelope."""
    if isinstance(native, list):
        return (native[1], native[2], path[1:]) if path and path[0] == 2 else None
    if native.get("type") == "event":
        inside = path[:2] == ("params", "data")
        return (native["method"], native["params"]["data"], path[2:]) if inside else None
    mode = native["type"] if "type" in native else str(native.get("event")).split("|")[0]
    return (mode, native["data"], path[1:]) if path[:1] == ("data",) else None


def native_ns(native: Any) -> Sequence[str]:
    """The namespace of an event: empty for the root graph."""
    if isinstance(native, list):
        return tuple(native[0])
    return native["ns"] if "ns" in native else str(native["event"]).split("|")[1:]


def holder(data: Any, path: Path) -> Any:
    """What holds the value at a path."""
    for name in path[:-1]:
        data = data[name]
    return data


def excused(native: Any, path: Path) -> bool:
    """What becomes a kind of event or block, what the caller has said itself, what ``surface.json`` says is dropped."""
    if not isinstance(native, (dict, list)) or not path:
        return False
    place = placed(native, path)
    if place is None:
        # Namespaces say where something belongs; interrupts stand in the updates as well.
        return path[-1] != "contractMember" or isinstance(native, list)
    mode, data, inside = place
    if not inside:
        return False
    last = inside[-1]
    if last == "type" or is_outcome(data, inside) or (mode == "messages" and excused_of_message(data, inside)):
        return True
    if mode == "tools":
        return str(SURFACE["tool_events"][data["event"]].get(inside[0], "dropped")).startswith(("dropped", "to "))
    if mode == "debug":
        return inside[0] == "payload" and inside[1:2] in (("values",), ("tasks",), ("config",), ("parent_config",))
    if mode in PAYLOADS:
        if mode == "tasks" and inside[0] in ("id", "name") and native_ns(native):
            return True
        said = [model[inside[0]] for model in PAYLOADS[mode] if inside[0] in model]
        return inside[0] in FOR_ASKS or any(each.startswith("dropped") for each in said)
    return last in ("__remove_all__",) or given(data, inside) or beside_words(data, inside)


def given(data: Any, path: Path) -> bool:
    """Whether a value belongs to the message that the caller has sent, or to one that takes another one away."""
    for length in range(len(path)):
        each = holder(data, (*path[:length], ""))
        if isinstance(each, dict) and (
            each.get("id") == GIVEN or each.get("content") == SAID or each.get("type") == "remove"
        ):
            return True
    return False


def is_outcome(data: Any, path: Path) -> bool:
    """Whether a value is the status of a result, which becomes its outcome."""
    return path[-1] == "status" and "tool_call_id" in holder(data, path)


def beside_words(data: Any, path: Path) -> bool:
    """Whether a value is one that LangChain's own messages repeat or would leave out.

    The raw arguments of a call have come in fragments; Gemini's older form of a call is put together of several.
    """
    if "messages" in path and (path[-1] in ("arguments", "partial_json") or "function_call" in path):
        return True
    return path[-1] == "contractMember" and ("tool_calls" in path or "summary" in path) and "args" not in path


def excused_of_message(data: Any, path: Path) -> bool:
    """The same in a pair of message and metadata."""
    if path[0] == 1:
        said = SURFACE["message_metadata"].get(path[1], SURFACE["message_metadata"]["*"])
        is_place = path[1] in ("langgraph_checkpoint_ns", "run_id") or (
            path[1] == "langgraph_node" and data[0].get("type") == "tool"
        )
        # Where the answer names its model, that is the one.
        return said.startswith("dropped") or is_place or path[1] == "ls_model_name"
    if isinstance(data[0], dict) and "event" in data[0]:
        return excused_of_protocol(data[0], path[1:])
    value = holder(data, path)[path[-1]] if path[-1] != "contractMember" else None
    return (
        path[1] in ("type", "chunk_position", "status")
        or (path[1] == "id" and str(value).startswith("lc_run-"))
        or given(data, path)
        or (path[-1] == "contractMember" and any(name in path for name in CALL_LISTS) and "args" not in path)
        or (path[-1] == "contractMember" and ("summary" in path or SIGNATURES in path))
    )


CALL_LISTS = ("tool_calls", "tool_call_chunks", "invalid_tool_calls")


def excused_of_protocol(event: Any, path: Path) -> bool:
    """The same in a protocol event: its end says a block again."""
    starts = event["event"] == "content-block-start" and path[0] == "content"
    return path[0] in ("event", "role") or path[-1] == "type" or starts or path[-1] == "contractMember"


def overruled(native: Any, path: Path) -> bool:
    """What LangGraph tells twice: fragments of calls also as calls, a message also in updates, values and tasks."""
    place = placed(native, path) if isinstance(native, (dict, list)) and path else None
    if place is None:
        return path[:1] == ("interrupts",)
    mode, data, inside = place
    if mode == "messages":
        return repeated(data, inside)
    if mode == "values":
        return "messages" in inside[:1] or inside[:1] == ("__interrupt__",)
    return mode in ("updates", "tasks") and not (mode == "updates" and inside[:1] == ("__interrupt__",))


def repeated(data: Any, path: Path) -> bool:
    """What every chunk of a message says, so that its first or last counts."""
    if path[0] == 1:
        return path[1] in ("langgraph_node", "lc_agent_name")
    if data[0].get("event") == "content-block-finish":
        return path[-1] == "text"
    is_chunk = data[0].get("type") == "AIMessageChunk"
    return is_chunk and path[1] in ("id", "tool_calls", "invalid_tool_calls", "response_metadata")


def opaque(native: Any) -> Iterator[str]:
    """Every sealed value of a native event."""
    if isinstance(native, dict):
        for name, each in native.items():
            if name == SIGNATURES and isinstance(each, dict):
                yield from each.values()
            elif (name in OPAQUE and isinstance(each, str) and each) or (
                name == "data" and native.get("type") == "redacted_thinking"
            ):
                yield each
            else:
                yield from opaque(each)
    elif isinstance(native, (list, tuple)):
        for each in native:
            yield from opaque(each)


def message_of(native: Any) -> Any:
    """The chunk that an event of a v2 stream holds; None for any other event."""
    if isinstance(native, dict) and native.get("type") == "messages":
        chunk = native["data"][0]
        return chunk if isinstance(chunk, dict) and chunk.get("type") == "AIMessageChunk" else None
    return None


def with_message(native: Any, **members: Any) -> Any:
    """The event with other members of its chunk."""
    message, meta = native["data"]
    return {**native, "data": [{**message, **members}, meta]}


def rechunk(natives: Sequence[Any], size: int) -> list[Any]:
    """The stream with every chunk of text and arguments cut into pieces, or with size 0 joined with the next."""
    found: list[Any] = []
    for native in natives:
        chunk = message_of(native)
        grown = None if chunk is None else growth(chunk)
        if grown is None:
            found.append(native)
        elif size:
            read, write = grown
            pieces = [read[at : at + size] for at in range(0, len(read), size)] or [""]
            found += [with_message(native, **write(piece, number == 0)) for number, piece in enumerate(pieces)]
        else:
            before = message_of(found[-1]) if found else None
            joined = None if before is None or growth(before) is None else joining(before, chunk)
            if joined is None:
                found.append(native)
            else:
                found[-1] = with_message(found[-1], **joined)
    return found


Write: TypeAlias = Callable[[str, bool], dict[str, Any]]


def growth(chunk: Any) -> tuple[str, Write] | None:
    """The text that a chunk adds, and how to write a piece of it; None where it says anything else."""
    content, fragments = chunk["content"], chunk["tool_call_chunks"]
    if chunk["usage_metadata"] or chunk["chunk_position"] or chunk["additional_kwargs"]:
        return None
    if fragments:
        if len(fragments) != 1 or content or fragments[0]["id"] is not None:
            return None
        (fragment,) = fragments
        calls: dict[str, Any] = {"tool_calls": [], "invalid_tool_calls": []}
        return fragment["args"], lambda piece, first: {"tool_call_chunks": [{**fragment, "args": piece}], **calls}
    if isinstance(content, str):
        return (content, lambda piece, first: {"content": piece}) if content else None
    if len(content) == 1 and isinstance(content[0], dict):
        (part,) = content
        name = {"text": "text", "thinking": "thinking"}.get(part["type"], "")
        if part.get(name) and set(part) == {"type", name, "index"}:
            return part[name], lambda piece, first: {"content": [{**part, name: piece}]}
    return None


def joining(before: Any, chunk: Any) -> dict[str, Any] | None:
    """The members of two chunks as one; None where they are not of one block."""
    if before["id"] != chunk["id"]:
        return None
    (one, write), (other, _) = growth(before) or ("", None), growth(chunk) or ("", None)
    if write is None or write("", True) != (growth(chunk) or ("", write))[1]("", True):
        return None
    return write(one + other, True)


def lanes(natives: Sequence[Any]) -> list[Hashable | None]:
    """Answers of different runs interleave; everything else, results too, is passed by none."""
    return [lane(native) if message_of(native) is not None else None for native in natives]


def lane(native: Any) -> Hashable:
    """The run that a chunk belongs to."""
    place: Hashable = native["data"][1].get("langgraph_checkpoint_ns")
    return place


def read_by_models(given: Any) -> Any:
    """The input of a graph with its messages as LangChain's chat models read them: not what is kept beside content."""
    if isinstance(given, Mapping) and "messages" in given:
        return {**given, "messages": convert_to_openai_messages(given["messages"])}
    return given


def to_native(ag_input: Any, **settings: Any) -> LangGraphCall:
    """What an input becomes, with its messages as the models of the graph read them."""
    call: LangGraphCall = ADAPTER.to_native(ag_input, **settings)  # type: ignore[misc]
    return replace(call, input=read_by_models(call.input))


class ScriptedGraph:
    """A compiled graph that puts out what a script says, on a real checkpointer that never gets to see any of it."""

    def __init__(self, respond: Respond, saver: Any) -> None:
        builder = StateGraph(Messages)
        builder.add_node("model", lambda state: {})
        builder.add_edge(START, "model")
        builder.add_edge("model", END)
        graph: Any = builder.compile(checkpointer=saver)
        self._respond = respond
        self.checkpointer = saver
        self.get_state = graph.get_state
        self.aget_state = graph.aget_state

    def stream(self, input: Any, **_: Any) -> Iterator[Any]:
        """The script, on the calling thread."""
        yield from self._respond(read_by_models(input))

    async def astream(self, input: Any, **_: Any) -> AsyncIterator[Any]:
        """The script, on the event loop."""
        natives = iter(self._respond(read_by_models(input)))
        try:
            for native in natives:
                yield native
        finally:
            close = getattr(natives, "close", None)
            if close is not None:
                close()


def _blocking(respond: Respond) -> Agent:
    saver = SqliteSaver(sqlite3.connect(":memory:", check_same_thread=False))
    return LangGraphAgent(ScriptedGraph(respond, saver), client_tools={"pick"})


def _asynchronous(respond: Respond) -> Agent:
    return LangGraphAgent(ScriptedGraph(respond, InMemorySaver()), client_tools={"pick"})


def subject() -> Subject:
    """LangGraph on the streams of real graphs, in all modes at once as the agent asks for them."""
    return Subject(
        adapter=replace(ADAPTER, to_native=to_native),
        samples=samples(),
        has_ended=lambda natives: False,
        unknown=UNKNOWN,
        excused=excused,
        overruled=overruled,
        opaque=opaque,
        rechunk=rechunk,
        lanes=lanes,
        messages_from_native=messages_from_native,
        call=ToolCallBlock(tool_call_id="call_contract", name="look", input={"at": "Bern"}),
        agents={"blocking": _blocking, "asynchronous": _asynchronous},
        gating=GATING,
        budget=3_000,
    )


def modes() -> Subject:
    """LangGraph in one mode at a time, where nothing is told twice."""
    return replace(subject(), samples=single_modes(), overruled=overruled_alone, agents={}, gating=None)


def overruled_alone(native: Any, path: Path) -> bool:
    """What the chunks of a message say again and again, the ends of blocks, and states that come one after another."""
    place = placed(native, path) if isinstance(native, (dict, list)) and path else None
    if place is None:
        return False
    mode, data, inside = place
    if mode == "values":
        is_event = isinstance(native, dict) and native.get("type") == "event"
        return is_event or inside[-1] in ("name", "tool_call_id")
    return mode == "messages" and repeated(data, inside)


def of_recordings() -> Subject:
    """LangGraph on the streams of an agent that gets the recorded answers of providers."""
    return replace(subject(), samples=recorded(), agents={}, gating=None, budget=300)
