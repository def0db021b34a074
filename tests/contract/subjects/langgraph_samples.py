"""What real graphs of LangGraph and LangChain hand out, as samples for the contract suite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import interrupt

from agjson.normalizer import HostError
from agjson.testing.contract import Sample
from tests.support.langgraph_graphs import (
    MODES,
    Messages,
    ScriptedModel,
    agent,
    call,
    deserialised,
    graph_of,
    protocol_events,
)
from tests.support.langgraph_graphs import run as run_graph
from tests.support.langgraph_recordings import play, recordings

Native = dict[str, Any]

GIVEN = "u-contract"
"""The id of what the user says first."""

SAID = "hi"
"""What the user says first."""

USAGE: Any = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}


def run(graph: Any, **options: Any) -> list[Any]:
    """The native stream of one invoke, in which the user says hi."""
    return run_graph(graph, {"messages": [HumanMessage(SAID, id=GIVEN)]}, **options)


def _node(*replies: Any, name: str = "model") -> Callable[..., Any]:
    """A node that asks a model once."""
    model = ScriptedModel(replies=list(replies))

    def node(state: Any) -> Native:
        return {"messages": [model.invoke(state["messages"])]}

    node.__name__ = name
    return node


def _chunk(content: Any, id: str | None, **more: Any) -> AIMessageChunk:
    return AIMessageChunk(content=content, id=id, **more)


def _fragment(id: str, index: int, args: str, *, call_id: str | None = None, name: str | None = None) -> AIMessageChunk:
    return _chunk("", id, tool_call_chunks=[{"name": name, "args": args, "id": call_id, "index": index}])


@tool
def look(at: str) -> str:
    """Look something up."""
    return f"found {at}"


@tool(response_format="content_and_artifact")
def draw(what: str) -> tuple[str, Native]:
    """Draw something."""
    return f"drew {what}", {"picture": f"pixels of {what}"}


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(f"failed for {why}")


@tool
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def _spoken() -> list[Any]:
    reply = AIMessage(
        "It is blue today.", id="ai-1", usage_metadata=USAGE, response_metadata={"stop_reason": "end_turn"}
    )
    return run(graph_of(_node(reply)))


def _thought(modes: Sequence[str] = MODES) -> list[Any]:
    """As Claude thinks: words, then their signature, what is sealed, then text."""
    named = {"model_provider": "anthropic"}
    reply = [
        _chunk([{"type": "thinking", "thinking": "Let me", "index": 0}], "ai-1", response_metadata=named),
        _chunk([{"type": "thinking", "thinking": " see.", "index": 0}], "ai-1", response_metadata=named),
        _chunk(
            [{"type": "thinking", "signature": "c2lnbmF0dXJlLW9uZQ==", "index": 0}], "ai-1", response_metadata=named
        ),
        _chunk(
            [{"type": "redacted_thinking", "data": "c2VhbGVkLXR3bw==", "index": 1}], "ai-1", response_metadata=named
        ),
        _chunk([{"type": "text", "text": "It is", "index": 2}], "ai-1", response_metadata=named),
        _chunk([{"type": "text", "text": " blue.", "index": 2}], "ai-1", response_metadata=named),
        _chunk("", "ai-1", usage_metadata=USAGE, response_metadata={**named, "stop_reason": "end_turn"}),
    ]
    return run(graph_of(_node(reply)), stream_mode=list(modes))


def _sealed() -> list[Any]:
    """As the Responses API of OpenAI thinks: parts of a summary, and what only it can read."""
    named = {"model_provider": "openai"}

    def part(text: str, index: int) -> Native:
        summary = [{"index": index, "type": "summary_text", "text": text}]
        return {"type": "reasoning", "summary": summary, "index": 0}

    reply = [
        _chunk([{"type": "reasoning", "id": "rs_contract1", "summary": [], "index": 0}], None),
        _chunk([part("First.", 0)], None),
        _chunk([part("Then.", 1)], None),
        _chunk([{"type": "reasoning", "encrypted_content": "ZW5jcnlwdGVkLXRocmVl", "index": 0}], None),
        _chunk([{"type": "text", "text": "Blue", "index": 1, "id": "msg_contract1"}], None),
        _chunk([{"type": "text", "text": " it is.", "index": 1}], None),
        _chunk([], None, usage_metadata=USAGE, response_metadata={**named, "status": "completed"}),
    ]
    return run(graph_of(_node(reply)))


def _called() -> list[Any]:
    """Two calls at once, in fragments that alternate, then their results and the answer."""
    reply = [
        _chunk("I look", "ai-1"),
        _fragment("ai-1", 0, "", call_id="call_1", name="look"),
        _fragment("ai-1", 1, "", call_id="call_2", name="draw"),
        _fragment("ai-1", 0, '{"at": "th'),
        _fragment("ai-1", 1, '{"what": '),
        _fragment("ai-1", 0, 'e sky"}'),
        _fragment("ai-1", 1, '"a fish"}'),
    ]
    return run(agent([reply, AIMessage("Blue, and a fish.", id="ai-2")], [look, draw]))


def _called_whole() -> list[Any]:
    """As Gemini calls: each call in one chunk, signed, beside the words."""
    args = json.dumps({"at": "the sea"})
    signed = {"__gemini_function_call_thought_signatures__": {"call_1": "c2lnbmVkLWNhbGw="}}
    reply = [
        _chunk("Let me see.", "ai-1", response_metadata={"model_provider": "google_genai"}),
        _chunk(
            "",
            "ai-1",
            tool_call_chunks=[{"name": "look", "args": args, "id": "call_1", "index": 0}],
            additional_kwargs=signed,
            response_metadata={"model_provider": "google_genai", "finish_reason": "STOP"},
        ),
    ]
    return run(agent([reply, AIMessage("It is grey.", id="ai-2")], [look]))


def _called_client() -> list[Any]:
    """A call of a tool that the client runs, after which the graph ends."""
    return run(graph_of(_node(AIMessage("Which one?", id="ai-1", tool_calls=[call("pick", "call_1", of="a list")]))))


def _called_badly() -> list[Any]:
    """Arguments that break off: the call is not run."""
    reply = [
        _fragment("ai-1", 0, '{"why": "no reason"}', call_id="call_1", name="fail"),
        _fragment("ai-1", 1, '{"at": "the', call_id="call_2", name="look"),
    ]
    guarded = agent([reply, AIMessage("It failed.", id="ai-2")], [fail, look])
    return run(guarded)


def _branched(modes: Sequence[str] = MODES) -> list[Any]:
    """Two nodes at once, each with its own model; here their tokens take turns."""
    builder = StateGraph(Messages)
    for name in ("left", "right"):
        reply = AIMessage(f"From the {name} side.", id=f"ai-{name}")
        builder.add_node(name, _node(reply, name=name))
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    return _taking_turns(run(builder.compile(), stream_mode=list(modes)))


def _taking_turns(parts: list[Any]) -> list[Any]:
    """The same with the tokens of parallel runs in alternation, which threads leave to chance."""
    runs: dict[str, list[Any]] = {}
    for part in parts:
        if part["type"] == "messages":
            runs.setdefault(part["data"][1]["langgraph_node"], []).append(part)
    queues = [runs[name] for name in sorted(runs)]
    mixed = [queue[turn] for turn in range(max(map(len, queues))) for queue in queues if turn < len(queue)]
    # Right behind the news that the tasks run.
    running = [index for index, part in enumerate(parts) if part["type"] == "tasks" and "input" in part["data"]]
    place = max(running, default=-1) + 1
    before, after = parts[:place], parts[place:]
    return (
        [each for each in before if each["type"] != "messages"]
        + mixed
        + [each for each in after if each["type"] != "messages"]
    )


def _nested() -> list[Any]:
    """A graph inside a graph, and a named agent that a tool asks."""
    inner = graph_of(_node(AIMessage("From inside.", id="ai-inner"), name="speak"), saver=True)
    builder = StateGraph(Messages)
    builder.add_node("before", lambda state: {"note": "begun"})
    builder.add_node("inner", inner)
    builder.add_edge(START, "before")
    builder.add_edge("before", "inner")
    builder.add_edge("inner", END)
    return run(builder.compile())


def _delegated() -> list[Any]:
    """A named agent that another one asks by a tool."""
    expert = agent([AIMessage("The expert says blue.", id="ai-expert")], name="expert", saver=False)

    @tool
    def ask_expert(question: str) -> str:
        """Ask an expert."""
        told = expert.invoke({"messages": [HumanMessage(question, id=GIVEN)]})
        return str(told["messages"][-1].content)

    wanted = AIMessage("", id="ai-1", tool_calls=[call("ask_expert", "call_1", question="which colour")])
    return run(agent([wanted, AIMessage("Blue, says the expert.", id="ai-2")], [ask_expert], name="host"))


def _pauses(modes: Sequence[str] = MODES) -> list[Any]:
    def ask(state: Any) -> Native:
        answer = interrupt({"question": "Go on?", "options": ["yes", "no"]})
        return {"note": answer}

    return run(graph_of(_node(AIMessage("One moment.", id="ai-1")), ask), stream_mode=list(modes))


def _reviews(modes: Sequence[str] = MODES) -> list[Any]:
    """The review of LangChain: two calls that need a person, asked about at once."""
    calls = [call("send", "call_1", to="ann"), call("send", "call_2", to="bob")]
    wanted = AIMessage("I write to both.", id="ai-1", tool_calls=calls)
    reviews = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    return run(agent([wanted], [send], middleware=[reviews]), stream_mode=list(modes))


def _rewritten() -> list[Any]:
    """A message goes, then all go and others come."""

    def drop(state: Any) -> Native:
        return {"messages": [RemoveMessage(id="ai-1")]}

    def replace(state: Any) -> Native:
        kept = [HumanMessage("What we said.", id="summary-1"), AIMessage("It was blue.", id="ai-9")]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept], "note": "rewritten"}

    first, second = AIMessage("First.", id="ai-1"), AIMessage("Second.", id="ai-2")
    return run(graph_of(_node(first), drop, _node(second, name="again"), replace))


def _written() -> list[Any]:
    """What nodes write to the stream, and the mode that tells everything again."""

    def work(state: Any) -> Native:
        write = get_stream_writer()
        write({"progress": "half way"})
        write("nearly there")
        return {"note": "done", "log": [{"step": "worked"}]}

    return run(graph_of(work, _node(AIMessage("Worked.", id="ai-1"))), stream_mode=[*MODES, "debug"])


def _returned() -> list[Any]:
    """Nodes that return whole messages: several, a result with an artifact, one without words."""

    def speak(state: Any) -> Native:
        calls = [call("look", "call_1", at="home")]
        return {
            "messages": [
                AIMessage("I look.", id="ai-1", tool_calls=calls, additional_kwargs={"seen": "by nobody"}),
                ToolMessage("Nobody.", id="tool-1", tool_call_id="call_1", artifact={"rooms": "four"}, name="look"),
                AIMessage([{"type": "text", "text": "Nobody is home."}], id="ai-2", name="walker"),
            ]
        }

    return run(graph_of(speak))


def _failed() -> list[Any]:
    def loop(state: Any) -> Native:
        return {"log": ["again"]}

    builder = StateGraph(Messages)
    builder.add_node("loop", loop)
    builder.add_edge(START, "loop")
    builder.add_edge("loop", "loop")
    parts = run(builder.compile(), recursion_limit=3)
    return [HostError(part) if isinstance(part, Exception) else part for part in parts]


def served(parts: Sequence[Any]) -> list[Any]:
    """Parts as the server of LangGraph sends them: the namespace in the name of the event."""
    found: list[Any] = [{"event": "metadata", "data": {"run_id": "run-contract", "attempt": 1}}]
    for part in parts:
        name = "|".join([part["type"], *part["ns"]])
        found.append({"event": name, "data": part["data"]})
    return found


def _tuples(parts: Sequence[Any]) -> list[Any]:
    return [[part["ns"], part["type"], part["data"]] for part in parts]


def _without_stream(parts: Sequence[Any]) -> list[Any]:
    """The same where models are asked without streaming: one whole message in place of its chunks."""
    whole: dict[str, Any] = {}
    for part in parts:
        if part["type"] == "updates":
            for update in part["data"].values():
                for message in (update or {}).get("messages", ()) if isinstance(update, dict) else ():
                    whole[message["id"]] = message
    found: list[Any] = []
    for part in parts:
        if part["type"] == "messages" and part["data"][0]["type"] == "AIMessageChunk":
            message = whole.pop(part["data"][0]["id"], None)
            if message is None:
                continue
            part = {**part, "data": [message, part["data"][1]]}
        found.append(part)
    return found


def _plain(parts: Sequence[Any]) -> list[Any]:
    return deserialised(parts)


@cache
def samples() -> tuple[Sample, ...]:
    """Every kind of native event that the adapter maps; built once, by running the graphs."""
    return tuple(_samples())


def _samples() -> Iterator[Sample]:
    for name, make in {
        "spoken": _spoken,
        "thought": _thought,
        "sealed": _sealed,
        "called": _called,
        "called-whole": _called_whole,
        "branched": _branched,
        "nested": _nested,
    }.items():
        parts = _plain(make())
        yield Sample(name=name, natives=parts, whole=_without_stream(parts))
    for name, make in {
        "delegated": _delegated,
        "interrupted": _pauses,
        "reviewed": _reviews,
        "called-badly": _called_badly,
        "called-client": _called_client,
        "rewritten": _rewritten,
        "written": _written,
        "returned": _returned,
    }.items():
        yield Sample(name=name, natives=_plain(make()))
    yield Sample(name="objects", natives=_called())
    yield Sample(name="tuples", natives=_tuples(_plain(_spoken())))
    yield Sample(name="served", natives=served(_plain(_called())))
    failure = {"event": "error", "data": {"error": "GraphRecursionError", "message": "the limit of steps is reached"}}
    yield Sample(
        name="served-failure",
        natives=[*served(_plain(_spoken())), failure],
        terminal="turn.error",
        code="GraphRecursionError",
    )
    yield Sample(name="failed", natives=_failed(), terminal="turn.error", code="GRAPH_RECURSION_LIMIT")


@cache
def single_modes() -> tuple[Sample, ...]:
    """Streams of one mode each, as hosts that ask for no more get them."""
    found: list[Sample] = []
    for mode in ("updates", "values", "messages"):
        for name, make in {"call": _calls_once, "thought": _thought, "review": _reviews, "pause": _pauses}.items():
            parts = _plain(make([mode]))
            found.append(Sample(name=f"{mode}-{name}", natives=parts, repeats=mode == "messages"))
    branches = _plain(_branched(["messages"]))
    found.append(Sample(name="messages-branched", natives=branches))
    spoken = graph_of(_node(AIMessage("It is.", id="ai-1")))
    return (*found, Sample(name="protocol", natives=_plain(protocol_events(spoken))))


def _calls_once(modes: list[str]) -> list[Any]:
    wanted = AIMessage("I look.", id="ai-1", tool_calls=[call("look", "call_1", at="the sky")])
    return run(agent([wanted, AIMessage("It is blue.", id="ai-2")], [look]), stream_mode=modes)


# Longer streams say no more, and cost their square; test_recordings.py has them all.
_LONGEST = 130


@cache
def recorded() -> tuple[Sample, ...]:
    """What an agent hands out as it gets the recorded streams of providers; without the model's next turn."""
    found: list[Sample] = []
    for param in recordings(streamed=True):
        folder, path = param.values
        if not isinstance(path, Path):
            continue
        for number, played in enumerate(play(folder, path, streamed=True)):
            if (played.failed is None or played.requests[1:]) and len(played.parts) <= _LONGEST:
                # What goes on with a call of the answer before it cannot be sent alone.
                alone = number == 0 or path.stem != "pydantic-ai--pause-turn-web-search-streaming-vcr"
                name = f"{folder}-{path.stem}-{number}"
                found.append(Sample(name=name, natives=_plain(played.parts), replays=alone))
    return tuple(found)
