"""The protocol events of LangGraph v3 tell the same as its v2 stream, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool

from agjson.adapters.langgraph._protocol import ProtocolMessages
from agjson.fold import reduce
from agjson.wire import to_dict
from tests.support.langgraph_graphs import agent, call, config, deserialised, normalize, of_type, protocol_events

META = {"langgraph_node": "model", "run_id": "r1"}


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sun in {city}"


def chunks_of(*events: dict[str, Any]) -> list[dict[str, Any]]:
    messages = ProtocolMessages()
    found = [messages.chunk((event, META)) for event in events]
    assert all(each is not None and each[2] == ("protocol", "r1") for each in found)
    return [{k: v for k, v in each[0].items() if v not in ("", [], {}, None)} for each in found if each is not None]


def said(messages: Sequence[Any]) -> list[Any]:
    return [(message.id, [to_dict(block) for block in message.content]) for message in messages]


@pytest.mark.parametrize("form", ["objects", "data"])
def test_an_agent_with_tools(form: str) -> None:
    wanted = AIMessage(
        "let me see",
        tool_calls=[call("weather", "c1", city="Rome"), call("weather", "c2", city="Oslo")],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    )
    graph = agent([wanted, AIMessage("it is sunny")], [weather], name="root")
    native = protocol_events(graph)
    events = normalize(native if form == "objects" else deserialised(native))

    assert [event["delta"] for event in of_type(events, "text.delta")] == ["let", " me", " see", "it", " is", " sunny"]
    assert [event["input"] for event in of_type(events, "tool.args.assembled")] == [{"city": "Rome"}, {"city": "Oslo"}]
    assert {event["toolCallId"] for event in of_type(events, "tool.done")} == {"c1", "c2"}
    assert of_type(events, "turn.done")[0]["usage"] == {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    assert of_type(events, "ext.langgraph.unparsed", "error", "messages.snapshot") == []
    kept = graph.get_state(config()).values["messages"]
    assert [message.id for message in reduce(events).result.messages] == [message.id for message in kept[1:]]


def test_a_signature_that_comes_at_the_end_is_in_its_block_in_the_end() -> None:
    native: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm ", "index": 0},
        {"type": "thinking", "thinking": "", "signature": "SIG", "index": 0},
        {"type": "text", "text": "hello", "index": 1},
    ]
    made_by = {"model_provider": "anthropic"}
    reply = [AIMessageChunk(content=[block], response_metadata=made_by) for block in native]
    events = normalize(protocol_events(agent([reply])))

    reasoning, text = reduce(events).result.messages[-1].content
    assert to_dict(reasoning)["opaque"] == {"kind": "signature", "value": "SIG", "provider": "anthropic"}
    assert (to_dict(reasoning)["text"], to_dict(text)["text"]) == ("hm ", "hello")


def test_events_are_chunks() -> None:
    start = {"event": "message-start", "role": "ai", "id": "m", "metadata": {"provider": "openai"}}
    call_start = {"type": "tool_call_chunk", "id": "c", "name": "f", "args": "", "index": 0}
    chunks = chunks_of(
        start,
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "a"}},
        {"event": "content-block-delta", "index": 1, "delta": {"type": "reasoning-delta", "reasoning": "b"}},
        {"event": "content-block-start", "index": 2, "content": call_start},
        {"event": "content-block-delta", "index": 2, "delta": {"type": "tool-call-delta", "args": "{}"}},
        {
            "event": "content-block-finish",
            "index": 2,
            "content": {"type": "tool_call", "id": "c", "name": "f", "args": {}},
        },
        {"event": "content-block-finish", "index": 0, "content": {"type": "text", "text": "a", "annotations": [1]}},
        {"event": "content-block-delta", "index": 3, "delta": {"type": "data-delta", "data": "AA=="}},
        {"event": "content-block-finish", "index": 3, "content": {"type": "image", "base64": "AA=="}},
        {
            "event": "content-block-finish",
            "index": 4,
            "content": {"type": "tool_call", "id": "d", "name": "g", "args": {"x": 1}},
        },
        {"event": "message-finish", "usage": {"input_tokens": 1}, "metadata": {"finish_reason": "stop"}},
    )

    of = {"type": "AIMessageChunk", "id": "m"}
    assert chunks == [
        {**of, "response_metadata": {"model_provider": "openai"}},
        {**of, "content": [{"type": "text", "text": "a", "index": 0}]},
        {**of, "content": [{"type": "reasoning", "reasoning": "b", "index": 1}]},
        {**of, "tool_call_chunks": [{**call_start, "index": 2}]},
        {**of, "tool_call_chunks": [{"name": None, "args": "{}", "id": None, "index": 2}]},
        of,
        {**of, "content": [{"type": "text", "text": "", "annotations": [1], "index": 0}]},
        of,
        {**of, "content": [{"type": "image", "base64": "AA==", "index": 3}]},
        {**of, "tool_call_chunks": [{"name": "g", "args": '{"x": 1}', "id": "d", "index": 4}]},
        {
            **of,
            "usage_metadata": {"input_tokens": 1},
            "response_metadata": {"finish_reason": "stop"},
            "chunk_position": "last",
        },
    ]


@pytest.mark.parametrize(
    "data",
    [
        None,
        (),
        ({"event": "message-start"}, None),
        ({"event": "error", "message": "x"}, META),
        ({"event": "content-block-delta", "index": 0, "delta": {"type": "new-delta"}}, META),
        ({"event": "content-block-delta", "index": "0", "delta": {"type": "text-delta", "text": "x"}}, META),
        ({"event": "content-block-delta", "index": 0, "delta": None}, META),
        ({"event": "content-block-finish", "index": 0, "content": None}, META),
        ("text", META),
    ],
)
def test_anything_else_is_none(data: Any) -> None:
    assert ProtocolMessages().chunk(data) is None
