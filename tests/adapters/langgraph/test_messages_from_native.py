"""`messages_from_native`: LangChain messages, objects and plain forms, as messages of AgJSON (spec §3.2)."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from agjson.adapters.langgraph.messages import messages_from_native, messages_to_native
from agjson.emitter import NATIVE_CALL_ID
from agjson.errors import ValidationError
from agjson.types import (
    UNSET,
    AgMessage,
    AgOpaque,
    AgUsage,
    Base64Source,
    CodeBlock,
    CodeResultBlock,
    FileBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)

HISTORY: list[BaseMessage] = [
    SystemMessage("Be brief.", id="s1"),
    HumanMessage(
        [{"type": "text", "text": "Look."}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}],
        id="u1",
        name="ann",
    ),
    AIMessage(
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
        ],
        id="a1",
        name="scout",
        tool_calls=[{"type": "tool_call", "id": "toolu_1", "name": "look", "args": {"at": "sky"}}],
        response_metadata={"model_provider": "anthropic", "model_name": "claude", "stop_reason": "tool_use"},
        usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
    ),
    ToolMessage("Blue.", id="t1", tool_call_id="toolu_1", name="look", artifact={"rgb": [0, 0, 9]}),
    ToolMessage("Broken.", id="t2", tool_call_id="toolu_9", status="error"),
    AIMessage("It is blue.", id="a2"),
]

EXPECTED = [
    AgMessage(id="s1", role="system", content=[TextBlock(text="Be brief.")]),
    AgMessage(
        id="u1",
        role="user",
        content=[TextBlock(text="Look."), ImageBlock(source=Base64Source(media_type="image/png", data="aGk="))],
        metadata={"langgraph/name": "ann"},
    ),
    AgMessage(
        id="a1",
        role="assistant",
        content=[
            ReasoningBlock(
                text="Hm.",
                opaque=AgOpaque(kind="signature", value="c2ln", provider="anthropic"),
                provider="anthropic",
            ),
            TextBlock(text="I look."),
            ToolCallBlock(tool_call_id="toolu_1", name="look", input={"at": "sky"}),
        ],
        agent_name="scout",
        model="claude",
        usage=AgUsage(input_tokens=7, output_tokens=3, total_tokens=10),
        metadata={
            "langgraph/responseMetadata": {
                "model_provider": "anthropic",
                "model_name": "claude",
                "stop_reason": "tool_use",
            }
        },
    ),
    AgMessage(
        id="t1",
        role="tool",
        content=[
            ToolResultBlock(
                tool_call_id="toolu_1", content=[TextBlock(text="Blue.")], outcome="ok", side_data={"rgb": [0, 0, 9]}
            )
        ],
        metadata={"langgraph/name": "look"},
    ),
    AgMessage(
        id="t2",
        role="tool",
        content=[
            ToolResultBlock(
                tool_call_id="toolu_9", content=[TextBlock(text="Broken.")], outcome="error", error_text="Broken."
            )
        ],
    ),
    AgMessage(id="a2", role="assistant", content=[TextBlock(text="It is blue.")]),
]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda messages: messages, id="objects"),
        pytest.param(lambda messages: [message.model_dump() for message in messages], id="dumps"),
        pytest.param(messages_to_dict, id="messages_to_dict"),
        pytest.param(lambda messages: [dumpd(message) for message in messages], id="serialised"),
    ],
)
def test_every_form_of_a_message_says_the_same(form: Any) -> None:
    assert messages_from_native(form(HISTORY)) == EXPECTED


def test_what_came_goes_back_as_it_came() -> None:
    history = [message for message in HISTORY if message.id != "t2"]
    assert messages_to_native(messages_from_native(history)) == history


def test_whatever_a_graph_takes_for_a_message() -> None:
    native: list[object] = [
        "Hi.",
        ("system", "Be brief."),
        {"role": "user", "content": "Look."},
        {"role": "developer", "content": "Be kind."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"sky"}'}},
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"at":'}},
            ],
        },
        {"role": "tool", "content": "Blue.", "tool_call_id": "c1"},
    ]
    messages = messages_from_native(native, turn_id="t")
    assert [(each.id, each.role) for each in messages] == [
        ("t:0", "user"),
        ("t:1", "system"),
        ("t:2", "user"),
        ("t:3", "system"),
        ("t:4", "assistant"),
        ("c1:result", "tool"),
    ]
    calls = [block for block in messages[4].content if isinstance(block, ToolCallBlock)]
    assert [(each.tool_call_id, each.input) for each in calls] == [("c1", {"at": "sky"}), ("c2", '{"at":')]
    assert messages[3].metadata == {"langgraph/additionalKwargs": {"__openai_role__": "developer"}}
    assert {each.turn_id for each in messages} == {"t"}
    back = messages_to_native(messages)
    assert back[:3] == [
        SystemMessage("Be brief.", id="t:1"),
        SystemMessage("Be kind.", id="t:3", additional_kwargs={"__openai_role__": "developer"}),
        HumanMessage("Hi.", id="t:0"),
    ]


@pytest.mark.parametrize(
    ("native", "path"),
    [
        (7, "$[0]"),
        ({"content": "Hi."}, "$[0].type"),
        ({"type": "planet", "content": "Hi."}, "$[0].type"),
        ({"type": "remove", "content": "", "id": "a1"}, "$[0].type"),
        (FunctionMessage(content="Hi.", name="look"), "$[0].type"),
        ({"type": "human", "content": {"text": "Hi."}}, "$[0].content"),
        ({"type": "tool", "content": "Hi."}, "$[0].tool_call_id"),
    ],
)
def test_what_is_no_message_is_refused_by_its_place(native: object, path: str) -> None:
    with pytest.raises(ValidationError) as refused:
        messages_from_native([native])
    assert refused.value.path == path


def test_the_objects_are_not_changed() -> None:
    before = [message.model_dump_json() for message in HISTORY]
    messages_from_native(HISTORY)
    assert [message.model_dump_json() for message in HISTORY] == before


def test_messages_and_calls_of_one_id_are_told_apart() -> None:
    calls = [
        AIMessage("", id="a", tool_calls=[{"id": "x", "name": "look", "args": {}}]),
        ToolMessage("One.", tool_call_id="x"),
        AIMessage("", id="a", tool_calls=[{"id": "x", "name": "look", "args": {}}]),
        ToolMessage("Two.", tool_call_id="x"),
    ]
    messages = messages_from_native(calls)
    assert [each.id for each in messages] == ["a", "x:result", "a#2", "x#2:result"]
    again, answer = messages[2].content[0], messages[3].content[0]
    assert isinstance(again, ToolCallBlock) and isinstance(answer, ToolResultBlock)
    assert (again.tool_call_id, again.provider_metadata) == ("x#2", {NATIVE_CALL_ID: "x"})
    assert answer.tool_call_id == "x#2"


def test_a_call_without_an_id_gets_one() -> None:
    message = AIMessage("", tool_calls=[{"id": None, "name": "look", "args": {"n": 1}}])
    block = messages_from_native([message])[0].content[0]
    assert isinstance(block, ToolCallBlock)
    assert (block.tool_call_id, block.input, block.provider_metadata) == ("call", {"n": 1}, None)


def test_an_answer_of_the_responses_api_and_back() -> None:
    message = AIMessage(
        [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
                "encrypted_content": "ZW5j",
            },
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            },
            {"type": "text", "text": "I look.", "id": "msg_1", "annotations": [], "phase": "commentary"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "look",
                "arguments": '{"at":"sky"}',
                "status": "completed",
            },
        ],
        id="resp_1",
        tool_calls=[{"type": "tool_call", "id": "call_1", "name": "look", "args": {"at": "sky"}}],
        response_metadata={"model_provider": "openai", "id": "resp_1"},
    )
    read = messages_from_native([message, ToolMessage("Blue.", tool_call_id="call_1", id="t1", name="look")])
    reasoning, search, text, call = read[0].content
    assert isinstance(reasoning, ReasoningBlock) and isinstance(call, ToolCallBlock)
    assert (reasoning.text, reasoning.item_id) == ("One.Two.", "rs_1")
    assert reasoning.opaque == AgOpaque(kind="encrypted", value="ZW5j", provider="openai")
    assert isinstance(search, ToolCallBlock)
    assert (search.name, search.provider_executed, search.input) == (
        "web_search",
        True,
        {"type": "search", "query": "q"},
    )
    assert isinstance(text, TextBlock) and text.text == "I look."
    assert (call.tool_call_id, call.item_id, call.input) == ("call_1", "fc_1", {"at": "sky"})
    back = messages_to_native(read)[0]
    # An empty list says no more than none.
    assert back.content == [{key: value for key, value in part.items() if value != []} for part in message.content]  # type: ignore[union-attr]
    assert back.tool_calls == message.tool_calls
    assert back.response_metadata == message.response_metadata


def test_an_answer_of_gemini_and_back() -> None:
    message = AIMessage(
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2lnMQ=="},
            {"type": "executable_code", "executable_code": "print(1)", "language": "PYTHON", "id": "e1"},
            {"type": "code_execution_result", "code_execution_result": "1\n", "outcome": 1, "tool_call_id": ""},
            {"type": "text", "text": "It is 1.", "extras": {"signature": "c2lnMg=="}},
        ],
        id="a1",
        tool_calls=[{"type": "tool_call", "id": "k1", "name": "look", "args": {"at": "sky"}}],
        additional_kwargs={
            "function_call": {"name": "look", "arguments": '{"at": "sky"}'},
            "__gemini_function_call_thought_signatures__": {"k1": "c2lnMw=="},
        },
        response_metadata={"model_provider": "google_genai", "finish_reason": "STOP"},
    )
    read = messages_from_native([message, ToolMessage("Blue.", tool_call_id="k1", id="t1", name="look")])
    thought, code, output, text, call = read[0].content
    assert isinstance(thought, ReasoningBlock)
    assert thought.opaque == AgOpaque(kind="signature", value="c2lnMQ==", provider="google")
    assert isinstance(code, CodeBlock) and code.code == "print(1)"
    assert isinstance(output, CodeResultBlock) and (output.outcome, output.output) == ("ok", "1\n")
    assert isinstance(text, TextBlock) and text.text == "It is 1."
    assert isinstance(call, ToolCallBlock) and call.signature == "c2lnMw=="
    back = messages_to_native(read)[0]
    assert back.content == message.content
    assert back.tool_calls == message.tool_calls
    assert back.additional_kwargs == {"__gemini_function_call_thought_signatures__": {"k1": "c2lnMw=="}}


def test_standard_content_blocks_become_native_ones() -> None:
    message = AIMessage(
        [
            {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "c2ln"}},
            {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "cmVk"}},
            {"type": "text", "text": "I look."},
            {"type": "tool_call", "id": "toolu_1", "name": "look", "args": {"at": "sky"}},
        ],
        id="a1",
        tool_calls=[{"type": "tool_call", "id": "toolu_1", "name": "look", "args": {"at": "sky"}}],
        response_metadata={"output_version": "v1", "model_provider": "anthropic"},
    )
    back = messages_to_native(messages_from_native([message, ToolMessage("Blue.", tool_call_id="toolu_1")]))[0]
    assert back.content == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "cmVk"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
    ]
    assert back.response_metadata == {"model_provider": "anthropic"}


def test_a_whole_chunk_is_a_message() -> None:
    chunk = AIMessageChunk(
        content=[{"type": "text", "text": "I look.", "index": 0}],
        id="lc_run--1",
        tool_call_chunks=[{"id": "c1", "name": "look", "args": '{"at":"sky"}', "index": 1}],
    )
    message = messages_from_native([chunk])[0]
    assert message.id == "lc_run--1"
    assert message.content == [
        TextBlock(text="I look."),
        ToolCallBlock(tool_call_id="c1", name="look", input={"at": "sky"}),
    ]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ImageBlock(source=Base64Source(media_type="image/png", data="aGk=")),
        ),
        (
            {"type": "image", "source_type": "url", "url": "https://example.org/a.png"},
            ImageBlock(source=UrlSource(url="https://example.org/a.png")),
        ),
        (
            {"type": "file", "base64": "aGk=", "mime_type": "application/pdf", "filename": "a.pdf"},
            FileBlock(source=Base64Source(media_type="application/pdf", data="aGk="), filename="a.pdf"),
        ),
    ],
)
def test_media_of_people(part: dict[str, Any], block: ImageBlock | FileBlock) -> None:
    found = messages_from_native([HumanMessage([part])])[0].content[0]
    assert isinstance(found, (ImageBlock, FileBlock))
    assert found.source == block.source
    if isinstance(block, FileBlock) and isinstance(found, FileBlock):
        assert found.filename == block.filename
    back = messages_to_native(messages_from_native([HumanMessage([part])]))
    again = messages_from_native(back)[0].content[0]
    assert isinstance(again, (ImageBlock, FileBlock)) and again.source == block.source


def test_native_media_of_anthropic_go_back_to_it() -> None:
    part = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    read = messages_from_native([HumanMessage([part], id="u1")])
    for provider in (None, "anthropic"):
        native = messages_to_native(read, provider=provider)
        again = messages_from_native(native)[0].content[0]
        assert isinstance(again, ImageBlock)
        assert again.source == Base64Source(media_type="image/png", data="aGk=")
    assert messages_to_native(read, provider="anthropic")[0].content == [part]


def test_a_result_that_is_absent_says_nothing() -> None:
    block = messages_from_native([ToolMessage("", tool_call_id="c1")])[0].content[0]
    assert isinstance(block, ToolResultBlock)
    assert (block.content, block.outcome, block.side_data) == ([], "ok", UNSET)
