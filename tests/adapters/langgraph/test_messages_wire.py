"""What the chat models of LangChain put on the wire of a history that went through AgJSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from msgspec.structs import replace

from agjson.adapters.langgraph.messages import Provider, messages_from_native, messages_to_native
from agjson.types import (
    AgMessage,
    AgOpaque,
    Base64Source,
    CodeBlock,
    DataBlock,
    DocumentBlock,
    FileBlock,
    ImageBlock,
    ReasoningBlock,
    ResourceBlock,
    SearchResultBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from agjson.types.media import AgEmbeddedResource
from tests.support.corpus import cassettes
from tests.support.langgraph_messages import recording_files
from tests.support.langgraph_wire import FOLDERS, Native, conversation, recorded, seen, streamed, strings

PROVIDERS: tuple[Provider, ...] = ("anthropic", "openai-responses", "openai-chat", "google")

RECORDINGS = [
    pytest.param(folder, *param.values, marks=param.marks, id=f"{folder}-{param.id}")
    for folder in FOLDERS
    for param in cassettes(folder)
    # The chat model itself cannot read this answer; this one is of a model that was not found.
    if not str(param.id).startswith(
        ("pydantic-ai--compaction-usage-with-cache-streaming", "mirascope--model-not-found-stream-gemini25")
    )
]

STREAMING = {param.values[0] for param in recording_files(streaming=True)}
STREAMS = [param for param in RECORDINGS if param.values[1] in STREAMING]


@pytest.mark.parametrize(("folder", "path"), RECORDINGS)
def test_the_next_request_is_the_one_that_langchain_makes_of_its_own_message(folder: str, path: Path) -> None:
    provider = FOLDERS[folder]
    with seen(provider) as body:
        for answer in recorded(path, provider):
            native = conversation(answer.message)
            expected = _canonical(body(native))
            messages = messages_from_native(native)
            named = messages_to_native(messages, provider=provider)
            if any(repair.code == "stray_result" for repair in named.repairs):
                # The recorded answer starts with the result of a call of the answer before it.
                continue
            sent = body(named)
            assert _canonical(sent) == expected
            assert _canonical(body(messages_to_native(messages))) == expected
            values = {_decoded(value) for value in strings(sent)}
            assert {_decoded(value) for value in _sealed(answer.message, provider)} <= values
            assert {_decoded(value) for value in answer.echoed} <= values


@pytest.mark.parametrize(("folder", "path"), STREAMS)
def test_what_was_streamed_goes_back_as_what_was_stored(folder: str, path: Path) -> None:
    provider = FOLDERS[folder]
    answers = list(streamed(path, provider))
    assert answers
    for live, state in answers:
        answer = [message for message in live if message.role == "assistant"]
        stored = [message for message in messages_from_native(state) if message.role == "assistant"]
        for named in (provider, None):
            assert _contents(answer, named) == _contents(stored, named)


def _contents(messages: list[AgMessage], provider: Provider | None) -> list[Any]:
    native = messages_to_native(messages, provider=provider, plain=True)
    return [(each["id"], each["content"], each.get("tool_calls"), each.get("additional_kwargs")) for each in native]


def _decoded(value: str) -> str:
    """Base64 in one alphabet: Gemini writes two."""
    return value.replace("+", "-").replace("/", "_")


def _sealed(message: AIMessage, provider: Provider) -> Iterator[str]:
    """Signatures, ciphertexts and ids that the provider wants to see again."""
    for call in message.tool_calls:
        if provider != "google" and call["id"] is not None:
            yield call["id"]
    for value in message.additional_kwargs.get("__gemini_function_call_thought_signatures__", {}).values():
        yield value
    for block in message.content:
        if not isinstance(block, dict):
            continue
        if provider == "google":
            if block["type"] in ("server_tool_call", "server_tool_result"):
                # The chat model sends none of these back.
                continue
            extras = block.get("extras") or {}
            for value in (block.get("signature"), extras.get("signature")):
                if isinstance(value, str):
                    yield value
            continue
        yield from (block[name] for name in ("signature", "data", "encrypted_content") if block.get(name))
        if provider == "openai-responses" and block["type"] in ("reasoning", "function_call", "text"):
            yield from [block["id"]] if block.get("id") else []


def _canonical(body: Native) -> Native:
    """A request without what LangChain sends of its own accord, and providers refuse or do not look at."""
    name = next(name for name in ("messages", "input", "contents") if name in body)
    turns: list[Native] = []
    for turn in body[name]:
        parts = turn.get("content", turn.get("parts"))
        if isinstance(parts, str):
            parts = [{"type": "text", "text": parts}] if parts.strip() else []
        if isinstance(parts, list):
            parts = [part for part in map(_canonical_part, parts) if part is not None]
        said = {key: value for key, value in turn.items() if key not in ("content", "parts")}
        if turn.get("type") == "reasoning":
            # An empty `content` says no more than none.
            turns.append({**said, "content": parts or None})
        elif parts or said.keys() - {"role", "type"}:
            if turns and turns[-1].get("role") == "user" == said.get("role") and said.keys() == {"role"}:
                turns[-1]["parts"] = turns[-1]["parts"] + parts
            else:
                turns.append({**said, "parts": parts})
    return {**body, name: turns}


def _canonical_part(part: Native) -> Native | None:
    kept = {key: value for key, value in part.items() if value is not None}
    if kept.get("thought") and "thoughtSignature" not in kept:
        return None
    text = kept.get("text")
    if isinstance(text, str) and not text.strip() and kept.keys() <= {"type", "text"}:
        return None
    return kept


CALL = ToolCallBlock(tool_call_id="call_1", name="look", input={"at": "sky"}, provider_metadata=None)
SIGNED = ReasoningBlock(text="Hm.", opaque=AgOpaque(kind="signature", value="c2ln", provider="anthropic"))


def _mixed_history() -> list[AgMessage]:
    """A history that several models made, with everything that a model must not read."""
    hidden: Any = {"agjson/hidden": "HIDDEN"}
    return [
        AgMessage(id="s1", role="system", content=[TextBlock(text="Be brief.")]),
        AgMessage(id="u1", role="user", content=[TextBlock(text="Look.", meta=hidden)], message_metadata=hidden),
        AgMessage(
            id="a1",
            role="assistant",
            content=[
                SIGNED,
                ReasoningBlock(text="UNSIGNED", provider="anthropic"),
                ReasoningBlock(
                    text="Well.", opaque=AgOpaque(kind="encrypted", value="ZW5j", provider="openai"), item_id="rs_1"
                ),
                ReasoningBlock(text="So.", opaque=AgOpaque(kind="signature", value="Z29v", provider="google")),
                ReasoningBlock(opaque=AgOpaque(kind="redacted", value="cmVk", provider="anthropic")),
                TextBlock(text=""),
                TextBlock(text="I look."),
                CALL,
                ToolCallBlock(
                    tool_call_id="call_app", name="refresh", input={"HIDDEN": 1}, ui_visibility=["app"], meta=hidden
                ),
            ],
        ),
        AgMessage(
            id="r1",
            role="tool",
            content=[
                ToolResultBlock(
                    tool_call_id="call_1",
                    content=[TextBlock(text="Blue.")],
                    structured_content={"colour": "blue"},
                    ui_data={"HIDDEN": 1},
                    side_data="HIDDEN",
                    meta=hidden,
                    outcome="ok",
                )
            ],
        ),
        AgMessage(id="n1", role="notice", content=[TextBlock(text="HIDDEN")]),
        AgMessage(id="s2", role="system", content=[TextBlock(text="Be kind.")]),
        AgMessage(
            id="a2", role="assistant", content=[TextBlock(text="It is blue."), DataBlock(name="d", data="HIDDEN")]
        ),
        AgMessage(id="a3", role="assistant", content=[TextBlock(text="HIDDEN")], candidate_index=1),
        AgMessage(id="u2", role="user", content=[TextBlock(text="Thanks.")]),
    ]


def test_anthropic_gets_its_own_reasoning_alone_and_one_system_prompt() -> None:
    with seen("anthropic") as body:
        sent = body(messages_to_native(_mixed_history(), provider="anthropic"))
    assert sent["system"] == [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    assert sent["messages"] == [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "cmVk"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "sky"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "is_error": False,
                    "content": [{"type": "text", "text": "Blue."}, {"type": "text", "text": '{"colour":"blue"}'}],
                }
            ],
        },
        {"role": "assistant", "content": "It is blue."},
        {"role": "user", "content": "Thanks."},
    ]


def test_openai_gets_its_own_items() -> None:
    history = [
        AgMessage(id="u1", role="user", content=[TextBlock(text="Look.")]),
        AgMessage(
            id="resp_1",
            role="assistant",
            content=[
                ReasoningBlock(
                    text="One.Two.",
                    item_id="rs_1",
                    opaque=AgOpaque(kind="encrypted", value="ZW5j", provider="openai"),
                    provider_metadata={"langgraph/parts": [4, 4]},  # pyright: ignore[reportArgumentType]
                ),
                SIGNED,
                TextBlock(text="I look.", provider_metadata={"langgraph/fields": {"id": "msg_1", "annotations": []}}),  # pyright: ignore[reportArgumentType]
                ToolCallBlock(tool_call_id="call_1", item_id="fc_1", name="look", input={"at": "Zürich"}),
            ],
        ),
        AgMessage(
            id="r1",
            role="tool",
            content=[ToolResultBlock(tool_call_id="call_1", content=[TextBlock(text="No.")], outcome="error")],
        ),
    ]
    with seen("openai-responses") as body:
        sent = body(messages_to_native(history, provider="openai-responses"))
    assert sent["input"] == [
        {"type": "message", "role": "user", "content": "Look."},
        {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "ZW5j",
            "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
        },
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "look",
            "arguments": '{"at":"Zürich"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "No."},
    ]


def test_the_chat_api_gets_words_and_calls() -> None:
    with seen("openai-chat") as body:
        sent = body(messages_to_native(_mixed_history(), provider="openai-chat"))
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"type": "function", "id": "call_1", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": [{"type": "text", "text": "Blue."}, {"type": "text", "text": '{"colour":"blue"}'}],
        },
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": "It is blue."},
        {"role": "user", "content": "Thanks."},
    ]


def test_gemini_gets_its_signatures_where_they_belong() -> None:
    history = [
        AgMessage(id="u1", role="user", content=[TextBlock(text="Look.")]),
        AgMessage(
            id="a1",
            role="assistant",
            content=[
                ReasoningBlock(text="So.", opaque=AgOpaque(kind="signature", value="Z29v", provider="google")),
                SIGNED,
                ToolCallBlock(tool_call_id="k1", name="look", input={"at": "sky"}, signature="c2lnMQ=="),
                ToolCallBlock(tool_call_id="k2", name="look", input={"at": "sea"}),
            ],
        ),
        AgMessage(
            id="r1", role="tool", content=[ToolResultBlock(tool_call_id="k1", content=[TextBlock(text="Blue.")])]
        ),
        AgMessage(
            id="r2",
            role="tool",
            content=[
                ToolResultBlock(
                    tool_call_id="k2", content=[TextBlock(text="Grey."), TextBlock(text="Cold.")], side_data="HIDDEN"
                )
            ],
        ),
    ]
    with seen("google") as body:
        sent = body(messages_to_native(history, provider="google"))
    assert sent["contents"] == [
        {"role": "user", "parts": [{"text": "Look."}]},
        {
            "role": "model",
            "parts": [
                {"text": "So.", "thought": True, "thoughtSignature": "Z29v"},
                {"functionCall": {"name": "look", "args": {"at": "sky"}}, "thoughtSignature": "c2lnMQ=="},
                {"functionCall": {"name": "look", "args": {"at": "sea"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "look", "response": {"output": "Blue."}}},
                {"functionResponse": {"name": "look", "response": {"output": ["Grey.", "Cold."]}}},
            ],
        },
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_model_reads_what_is_not_for_it(provider: Provider) -> None:
    with seen(provider) as body:
        for history in (
            messages_to_native(_mixed_history(), provider=provider),
            messages_to_native(_mixed_history(), provider=provider, hidden=False),
        ):
            sent = "\n".join(strings(body(history)))
            assert "HIDDEN" not in sent
            assert "UNSIGNED" not in sent
            assert "agjson/" not in sent and "langgraph/" not in sent


FOREIGN = {
    "anthropic": ("ZW5j", "Z29v"),
    "openai-responses": ("c2ln", "cmVk", "Z29v"),
    "google": ("c2ln", "cmVk", "ZW5j"),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_one_provider_sealed_goes_to_no_other(provider: Provider) -> None:
    with seen(provider) as body:
        native = messages_to_native(_mixed_history(), provider=provider)
        sent = set(strings(body(native)))
    foreign = FOREIGN.get(provider, ("c2ln", "cmVk", "ZW5j", "Z29v"))
    assert not sent.intersection(foreign)
    dropped = [repair.path for repair in native.repairs if repair.code == "reasoning_dropped"]
    assert len(dropped) == len(foreign) + 1
    assert "$[2].content[1]" in dropped


PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQK"


def test_media_as_each_provider_takes_them() -> None:
    history = [
        AgMessage(
            id="u1",
            role="user",
            content=[
                ImageBlock(source=Base64Source(media_type="image/png", data=PNG)),
                DocumentBlock(source=Base64Source(media_type="application/pdf", data=PDF), title="report.pdf"),
            ],
        )
    ]
    with seen("anthropic") as body:
        assert body(messages_to_native(history, provider="anthropic"))["messages"][0]["content"] == [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                "title": "report.pdf",
            },
        ]
    with seen("openai-chat") as body:
        assert body(messages_to_native(history, provider="openai-chat"))["messages"][0]["content"] == [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {
                "type": "file",
                "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": "report.pdf"},
            },
        ]
    with seen("openai-responses") as body:
        assert body(messages_to_native(history, provider="openai-responses"))["input"][0]["content"] == [
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
            {
                "type": "input_file",
                "file_data": f"data:application/pdf;base64,{PDF}",
                "filename": "report.pdf",
            },
        ]
    with seen("google") as body:
        assert body(messages_to_native(history, provider="google"))["contents"][0]["parts"] == [
            {"inlineData": {"mime_type": "image/png", "data": PNG}},
            {"inlineData": {"mime_type": "application/pdf", "data": PDF}},
        ]


@pytest.mark.parametrize("provider", [*PROVIDERS, None])
def test_media_without_a_provider_named_go_to_any(provider: Provider | None) -> None:
    history = [
        AgMessage(id="u1", role="user", content=[ImageBlock(source=Base64Source(media_type="image/png", data=PNG))])
    ]
    native = messages_to_native(history)
    assert native[0].content == [{"type": "image", "base64": PNG, "mime_type": "image/png"}]
    if provider is not None:
        with seen(provider) as body:
            assert PNG in "".join(strings(body(native)))


def test_a_result_with_an_image() -> None:
    history = [
        AgMessage(id="u1", role="user", content=[TextBlock(text="Look.")]),
        AgMessage(id="a1", role="assistant", content=[CALL]),
        AgMessage(
            id="r1",
            role="tool",
            content=[
                ToolResultBlock(
                    tool_call_id="call_1",
                    content=[
                        TextBlock(text="Here."),
                        ImageBlock(source=Base64Source(media_type="image/png", data=PNG)),
                        ResourceBlock(resource=AgEmbeddedResource(uri="ui://card", text="<b>HIDDEN</b>")),
                    ],
                )
            ],
        ),
    ]
    with seen("anthropic") as body:
        sent = body(messages_to_native(history, provider="anthropic"))
        assert sent["messages"][2]["content"][0]["content"] == [
            {"type": "text", "text": "Here."},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ]
    with seen("openai-responses") as body:
        sent = body(messages_to_native(history, provider="openai-responses"))
        assert sent["input"][2] == {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [
                {"type": "input_text", "text": "Here."},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
            ],
        }
    with seen("google") as body:
        sent = body(messages_to_native(history, provider="google"))
        assert sent["contents"][2]["parts"] == [
            {"inlineData": {"mime_type": "image/png", "data": PNG}},
            {"functionResponse": {"name": "look", "response": {"output": ["Here."]}}},
        ]


def test_the_chat_api_is_shown_by_the_user_what_a_tool_cannot_say() -> None:
    shown = ImageBlock(source=Base64Source(media_type="image/png", data=PNG))
    history = [
        AgMessage(id="u1", role="user", content=[TextBlock(text="Look.")]),
        AgMessage(id="a1", role="assistant", content=[CALL, replace(CALL, tool_call_id="call_2")]),
        AgMessage(id="r1", role="tool", content=[ToolResultBlock(tool_call_id="call_1", content=[shown])]),
        AgMessage(
            id="r2", role="tool", content=[ToolResultBlock(tool_call_id="call_2", content=[TextBlock(text="No.")])]
        ),
        AgMessage(id="a2", role="assistant", content=[TextBlock(text="A picture.")]),
    ]
    native = messages_to_native(history, provider="openai-chat")
    with seen("openai-chat") as body:
        assert body(native)["messages"][2:] == [
            {"role": "tool", "tool_call_id": "call_1", "content": "The result is in the next message."},
            {"role": "tool", "tool_call_id": "call_2", "content": "No."},
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
            },
            {"role": "assistant", "content": "A picture."},
        ]
    assert [(repair.code, repair.path) for repair in native.repairs] == [("media_moved", "$[2].content[0]")]
    assert [message.id for message in native] == ["u1", "a1", "r1", "r2", "r1:shown", "a2"]


def test_content_of_other_frameworks_goes_as_words() -> None:
    history = [
        AgMessage(
            id="u1",
            role="user",
            content=[
                CodeBlock(language="PYTHON", code="print(1)"),
                SearchResultBlock(url="https://example.org/", title="Example"),
                FileBlock(source=Base64Source(media_type="text/plain", data="aGVsbG8=")),
            ],
        )
    ]
    with seen("openai-chat") as body:
        assert body(messages_to_native(history, provider="openai-chat"))["messages"][0]["content"] == [
            {"type": "text", "text": "```python\nprint(1)\n```"},
            {"type": "text", "text": "Example\nhttps://example.org/"},
            {"type": "text", "text": "hello"},
        ]


def test_calls_of_one_id_in_two_turns_keep_their_own_results_with_gemini() -> None:
    native = [
        HumanMessage("One.", id="u1"),
        AIMessage("", tool_calls=[{"id": "x", "name": "look", "args": {"n": 1}}], id="a1"),
        ToolMessage("first", tool_call_id="x", id="r1"),
        AIMessage("", tool_calls=[{"id": "x", "name": "look", "args": {"n": 2}}], id="a2"),
        ToolMessage("second", tool_call_id="x", id="r2"),
    ]
    with seen("google") as body:
        sent = body(messages_to_native(messages_from_native(native), provider="google"))
    responses = [
        part["functionResponse"]["response"]["output"]
        for turn in sent["contents"]
        for part in turn["parts"]
        if "functionResponse" in part
    ]
    assert responses == ["first", "second"]


def test_system_messages_that_stand_apart_make_no_error_with_anthropic() -> None:
    native = [SystemMessage("One."), HumanMessage("Hi."), SystemMessage("Two."), HumanMessage("Go on.")]
    with seen("anthropic") as body:
        sent = body(messages_to_native(messages_from_native(native)))
    assert sent["system"] == [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
