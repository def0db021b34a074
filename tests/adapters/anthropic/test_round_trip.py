"""Out of the agent, through the fold of a client, and in again: what comes back is what went out (spec §2.1, §10)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.fold import Reducer
from agjson.types import (
    AgEmbeddedResource,
    AgMessage,
    AgMeta,
    AgToolResult,
    Base64Source,
    DocumentBlock,
    FileSource,
    ImageBlock,
    ResourceBlock,
    StartInput,
    TextBlock,
    ToolResultInput,
    UrlSource,
)
from agjson.wire import decode_event, decode_input, encode, to_dict
from tests.support.anthropic_agents import HELLO, WEATHER, calls, client
from tests.support.anthropic_wire import START, block, end
from tests.support.messages_server import Answer, MessagesServer, Native
from tests.support.scripted import said, start

# Every character that base64 has, and some that a careless reader would change.
SIGNATURE = "EqoBCkgIARABGAIiQL2UoU0b1OHYi+/ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=="
REDACTED = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP\u2028\u00e9=="
SEALED_HIT = "EqgfCioIARgBIiQ3YTAwMjY1Mi1mZjM5LTQ1NGUtODgxNC1kNjNjNTk1ZWI3Y+/="
SEALED_INDEX = "Eo8BCioIAhgBIiQyYjQ0OWJmZi1lNm+/=="
SEALED_SUMMARY = "0Hy39isgQMp42x6CdKICCfcQ2/37X1dzA6B12Z94DUJd5ykT82FQqzTenIl+zjM="


class Client:
    """A client of an agent: everything that goes either way is bytes, and the thread is what it has folded."""

    def __init__(self, server: MessagesServer, **settings: Any) -> None:
        settings.setdefault("model", "claude-test")
        self.agent = AnthropicAgent(client(server), **settings)
        self.reducer = Reducer()

    def run(self, ag_input: Any) -> list[Native]:
        """Run one turn; returns its events as plain data."""
        lines = [encode(event) for event in self.agent.run_sync(decode_input(encode(ag_input)))]
        for line in lines:
            self.reducer.push(decode_event(line))
        assert not self.reducer.needs_resync, self.reducer.resync_reason
        return [json.loads(line) for line in lines]

    @property
    def messages(self) -> list[AgMessage]:
        """The conversation."""
        return list(self.reducer.result().messages)


def again(messages: list[AgMessage]) -> tuple[list[AgMessage], bytes]:
    """Give a conversation to another agent as the history of a new thread.

    Returns:
        The conversation as a client of that agent has it then, and the body of the request to the provider.
    """
    with MessagesServer([HELLO]) as server:
        other = Client(server)
        other.run(start(*messages, said("and now?", "last"), turn="other", thread="other"))
        return other.messages[: len(messages)], server.requests[0].raw


def without_place(message: AgMessage) -> Native:
    """A message without the turn and the thread that it stands in."""
    return {name: value for name, value in to_dict(message).items() if name not in ("turnId", "threadId")}


# Host metadata (§10 item 13)


HOST_KEYS: AgMeta = {
    "timestamp": "2026-11-30T10:00:00Z",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "baggage": "tenant=a,b=\u00e9",
    "app/origin": {"nested": [1, 2.5, None, True], "": "no name"},
    "a/b/c": 12345678901234567890,
}
FLAT: AgMeta = {"createdAt": 1764496800.5, "totalTokens": 7, "custom": {"deep": [{"er": None}]}, "app/key": "slash"}


def test_keys_of_the_host_survive_and_reach_no_provider() -> None:
    question = AgMessage(
        id="u1",
        role="user",
        content=[TextBlock(text="hi", meta=HOST_KEYS)],
        metadata=FLAT,
        reference_turn_ids=["turn-0", "turn-00"],
        message_metadata={"a2uiClientDataModel": {"s1": {"x": 1}}},
    )
    with MessagesServer([HELLO]) as server:
        first = Client(server)
        first.run(StartInput(thread_id="th", turn_id="t", messages=[question]))
        sent = server.requests[0].body
    kept = first.messages[0]
    assert without_place(kept) == to_dict(question)
    assert (kept.turn_id, kept.thread_id) == ("t", "th")

    stored, body = again(first.messages)

    assert [without_place(each) for each in stored] == [without_place(each) for each in first.messages]
    assert stored[0].reference_turn_ids == ["turn-0", "turn-00"]
    assert stored[0].metadata == FLAT
    block = stored[0].content[0]
    assert isinstance(block, TextBlock) and block.meta == HOST_KEYS
    assert sent["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert json.loads(body)["messages"] == [
        *sent["messages"],
        {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "user", "content": [{"type": "text", "text": "and now?"}]},
    ]


def test_keys_of_the_host_on_a_tool_result_survive() -> None:
    result = AgToolResult(tool_call_id="c1", content=[TextBlock(text="mild")], meta=HOST_KEYS, tool_metadata=FLAT)
    with MessagesServer([calls("c1"), HELLO]) as server:
        first = Client(server, tools=[WEATHER])
        first.run(start())
        first.run(ToolResultInput(thread_id="th", turn_id="t2", results=[result]))

    stored, body = again(first.messages)

    (held,) = [each for each in map(to_dict, stored) if each["role"] == "tool"]
    assert held["content"][0]["_meta"] == HOST_KEYS
    assert held["content"][0]["toolMetadata"] == FLAT
    assert b"traceparent" not in body and b"createdAt" not in body


# Sealed values (§8 item 13, §10 item 13)


def thinking(signature: str, index: int) -> list[Native]:
    return block(
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "I look "},
        {"type": "thinking_delta", "thinking": "it up.\n"},
        {"type": "signature_delta", "signature": signature},
        index=index,
    )


HIT = {
    "type": "web_search_result",
    "title": "Oslo",
    "url": "https://a.example/oslo",
    "encrypted_content": SEALED_HIT,
    "page_age": None,
}
CITATION = {
    "type": "web_search_result_location",
    "cited_text": "Oslo is the capital",
    "url": "https://a.example/oslo",
    "title": "Oslo",
    "encrypted_index": SEALED_INDEX,
}
SEALED = Answer(
    [
        START,
        *block(
            {"type": "compaction", "content": None},
            {"type": "compaction_delta", "content": "We met.", "encrypted_content": SEALED_SUMMARY},
        ),
        *thinking(SIGNATURE, 1),
        *block({"type": "redacted_thinking", "data": REDACTED}, index=2),
        *block(
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"query": "Os'},
            {"type": "input_json_delta", "partial_json": 'lo"}'},
            index=3,
        ),
        *block({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [HIT]}, index=4),
        *block(
            {"type": "text", "text": "", "citations": []},
            {"type": "text_delta", "text": "Oslo it is."},
            {"type": "citations_delta", "citation": CITATION},
            index=5,
        ),
        *block({"type": "text", "text": ""}, {"type": "text_delta", "text": " Absent."}, index=6),
        *block({"type": "text", "text": "", "citations": None}, {"type": "text_delta", "text": " Null."}, index=7),
        *end(),
    ]
)
SEALED_CONTENT = [
    {"type": "compaction", "content": "We met.", "encrypted_content": SEALED_SUMMARY},
    {"type": "thinking", "thinking": "I look it up.\n", "signature": SIGNATURE},
    {"type": "redacted_thinking", "data": REDACTED},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Oslo"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [HIT]},
    {"type": "text", "text": "Oslo it is.", "citations": [CITATION]},
    {"type": "text", "text": " Absent."},
    {"type": "text", "text": " Null."},
]


def test_sealed_values_go_back_byte_for_byte_in_the_same_and_in_another_thread() -> None:
    with MessagesServer([SEALED, HELLO]) as server:
        first = Client(server)
        first.run(start(said("capital?", "u1")))
        answer = first.messages[-1]
        first.run(start(said("sure?", "u2"), turn="t2"))
        same = server.requests[1].raw

    stored, other = again(first.messages)

    reasoning = [each for each in to_dict(answer)["content"] if each["type"] == "reasoning"]
    assert [each["opaque"] for each in reasoning] == [
        {"kind": "signature", "value": SIGNATURE, "provider": "anthropic"},
        {"kind": "redacted", "value": REDACTED, "provider": "anthropic"},
    ]
    assert [without_place(each) for each in stored] == [without_place(each) for each in first.messages]
    for body in (same, other):
        (content,) = [
            each["content"] for each in json.loads(body)["messages"] if each["content"][0]["type"] == "compaction"
        ]
        assert content == SEALED_CONTENT
        for sealed in (SIGNATURE, SEALED_HIT, SEALED_INDEX, SEALED_SUMMARY):
            assert body.count(sealed.encode()) == 1


def test_absent_and_null_citations_make_no_carrier() -> None:
    with MessagesServer([SEALED]) as server:
        first = Client(server)
        events = first.run(start())
    ends = [event for event in events if event["type"] == "text.end"]
    assert ["citations" in event for event in ends] == [True, False, False]
    assert ["providerMetadata" in event for event in ends] == [True, False, False]
    texts = [each for each in to_dict(first.messages[-1])["content"] if each["type"] == "text"]
    assert texts[1:] == [{"type": "text", "text": " Absent."}, {"type": "text", "text": " Null."}]
    assert texts[0]["citations"][0]["encryptedIndex"] == SEALED_INDEX


# The four channels of a tool result (§2.1, §10 item 3)


def test_each_channel_of_a_tool_result_has_its_readers() -> None:
    result = AgToolResult(
        tool_call_id="c1",
        content=[TextBlock(text="for the model")],
        structured_content={"structured": "for the model too"},
        ui_data={"chart": "for the surface"},
        side_data={"row": "for the app"},
    )
    with MessagesServer([calls("c1"), HELLO, HELLO]) as server:
        first = Client(server, tools=[WEATHER])
        first.run(start())
        events = first.run(ToolResultInput(thread_id="th", turn_id="t2", results=[result]))
        first.run(start(said("more", "u2"), turn="t3"))
        bodies = [request.raw for request in server.requests[1:]]
    _, other = again(first.messages)

    shown = {"structuredContent": {"structured": "for the model too"}}
    hidden = {"uiData": {"chart": "for the surface"}, "sideData": {"row": "for the app"}}
    content = [{"type": "text", "text": "for the model"}]
    # The client's surface and app read theirs from the stream, and find them again in the fold.
    (done,) = [event for event in events if event["type"] == "tool.done"]
    (held,) = [each["content"] for each in map(to_dict, first.messages) if each["role"] == "tool"]
    for carrier in (done, held[0]):
        assert carrier["content"] == content
        assert {name: carrier[name] for name in (*shown, *hidden)} == shown | hidden
    # The model reads the other two, now, in later turns and after a re-input.
    for body in (*bodies, other):
        (told,) = [
            part for each in json.loads(body)["messages"] for part in each["content"] if part["type"] == "tool_result"
        ]
        assert told == {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [*content, {"type": "text", "text": '{"structured":"for the model too"}'}],
        }
        assert b"for the surface" not in body and b"for the app" not in body


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_a_channel_that_holds_nothing_much_is_not_an_absent_one(value: Any) -> None:
    result = AgToolResult(tool_call_id="c1", content=[], structured_content=value, ui_data=value, side_data=value)
    with MessagesServer([calls("c1"), HELLO]) as server:
        first = Client(server, tools=[WEATHER])
        first.run(start())
        first.run(ToolResultInput(thread_id="th", turn_id="t2", results=[result]))
        told = server.requests[1].body["messages"][-1]["content"]
    (held,) = [each["content"][0] for each in map(to_dict, first.messages) if each["role"] == "tool"]
    assert [held[name] for name in ("structuredContent", "uiData", "sideData")] == [value] * 3
    assert told == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": json.dumps(value)}]}
    ]


# Sources (§10 item 5)


def test_sources_of_every_kind_survive() -> None:
    png, pdf = (base64.b64encode(data).decode() for data in (b"\x89PNG\xff\xfe" * 9, b"%PDF-1.7\x00"))
    sources = {
        "base64": (Base64Source(media_type="image/png", data=png), {"media_type": "image/png", "data": png}),
        "url": (UrlSource(url="https://a.example/a.png?x=1&y=%20"), {"url": "https://a.example/a.png?x=1&y=%20"}),
        "file": (FileSource(file_id="file_011CNha8iCJcU1wXNR6q4V8w"), {"file_id": "file_011CNha8iCJcU1wXNR6q4V8w"}),
    }
    blocks = [
        *(ImageBlock(source=source) for source, _ in sources.values()),
        DocumentBlock(source=Base64Source(media_type="application/pdf", data=pdf), title="Plan"),
        # As MCP gives a resource: its bytes in base64.
        ResourceBlock(resource=AgEmbeddedResource(uri="file:///a.png", mime_type="image/png", blob=png)),
    ]
    natives = [
        *({"type": "image", "source": {"type": kind, **fields}} for kind, (_, fields) in sources.items()),
        {
            "type": "document",
            "title": "Plan",
            "source": {"type": "base64", "media_type": "application/pdf", "data": pdf},
        },
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}},
    ]
    with MessagesServer([HELLO]) as server:
        first = Client(server)
        first.run(start(AgMessage(id="u1", role="user", content=blocks)))
        sent = server.requests[0].body["messages"][0]["content"]

    stored, body = again(first.messages)

    assert list(first.messages[0].content) == blocks == list(stored[0].content)
    assert sent == natives == json.loads(body)["messages"][0]["content"]
