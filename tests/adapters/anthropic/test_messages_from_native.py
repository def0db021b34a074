"""Native histories as messages: what a reader sees, and that nothing is lost on the way back (spec §3.2)."""

from __future__ import annotations

import base64
from typing import Any

import anthropic.types as native_types
import anthropic.types.beta as beta_types
import pytest

from agjson import AgMessage, ValidationError, encode
from agjson.adapters.anthropic import messages_from_native, messages_to_native
from agjson.types import (
    AgUsage,
    Base64Source,
    CompactionBlock,
    DocumentBlock,
    FileBlock,
    FileSource,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    SearchResultBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from tests.support.anthropic_history import text

PNG = base64.b64encode(b"\x89PNG").decode()
CACHE = {"type": "ephemeral", "ttl": "1h"}


def there_and_back(*native: dict[str, Any], **options: Any) -> list[AgMessage]:
    """The messages of a history, which goes back as it was."""
    messages = messages_from_native(native, **options)
    again = messages_to_native(messages, betas=["server-side-fallback-2026-07-01"])
    assert again == list(native)
    assert again.repairs == []
    for message in messages:
        encode(message)
    return messages


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def test_strings_stay_strings_and_lists_lists() -> None:
    messages = there_and_back(
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes?"},
        user(text("go")),
    )

    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert [block.text for message in messages for block in message.content if isinstance(block, TextBlock)] == [
        "hi",
        "yes?",
        "go",
    ]


def test_a_string_beside_other_content_becomes_a_block() -> None:
    messages = messages_from_native([{"role": "user", "content": "hi"}, {"role": "user", "content": "there"}])

    assert messages_to_native(messages) == [user(text("hi"), text("there"))]


def test_messages_are_named_by_place_turn_and_thread() -> None:
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]

    assert [message.id for message in messages_from_native(history)] == ["native:0", "native:1"]
    messages = messages_from_native(history, turn_id="turn-1", thread_id="thread-1")
    assert [message.id for message in messages] == ["turn-1:0", "turn-1:1"]
    assert {message.turn_id for message in messages} == {"turn-1"}
    assert {message.thread_id for message in messages} == {"thread-1"}


def test_results_become_messages_of_their_own() -> None:
    messages = there_and_back(
        user(text("?")),
        assistant(
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": 1}, "caller": {"type": "direct"}},
            {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}, "toolset_name": "browser"},
        ),
        user(
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny", "is_error": False},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "content": [text("no"), {"type": "tool_reference", "tool_name": "t"}],
                "is_error": True,
                "toolset_name": "browser",
                "cache_control": CACHE,
            },
            text("and now?"),
        ),
    )

    assert [(message.id, message.role) for message in messages[2:]] == [
        ("toolu_1:result", "tool"),
        ("toolu_2:result", "tool"),
        ("native:2", "user"),
    ]
    one, two = messages[2].content[0], messages[3].content[0]
    assert isinstance(one, ToolResultBlock) and isinstance(two, ToolResultBlock)
    assert (one.outcome, two.outcome) == ("ok", "error")
    assert isinstance(one.content[0], TextBlock) and one.content[0].text == "sunny"


@pytest.mark.parametrize("content", [{}, {"content": ""}, {"content": []}, {"content": "  "}])
def test_a_result_that_says_nothing_stays_as_it_is(content: dict[str, Any]) -> None:
    there_and_back(
        user(text("?")),
        assistant({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}),
        user({"type": "tool_result", "tool_use_id": "toolu_1", **content}),
    )


def test_an_id_that_is_used_twice_is_told_apart_and_results_follow() -> None:
    calls = [
        assistant({"type": "tool_use", "id": "call_0", "name": "look", "input": {}}),
        user({"type": "tool_result", "tool_use_id": "call_0", "content": "x"}),
    ]
    messages = messages_from_native([user(text("?")), *calls, *calls])

    blocks = [block for message in messages for block in message.content]
    ids = [block.tool_call_id for block in blocks if isinstance(block, (ToolCallBlock, ToolResultBlock))]
    assert ids == ["call_0", "call_0", "call_0#2", "call_0#2"]
    assert [message.id for message in messages if message.role == "tool"] == ["call_0:result", "call_0#2:result"]


def test_reasoning_keeps_its_seal() -> None:
    messages = there_and_back(
        user(text("?")),
        assistant(
            {"type": "thinking", "thinking": "", "signature": "s=="},
            {"type": "redacted_thinking", "data": "d=="},
            text("so"),
        ),
    )

    signed, redacted = messages[1].content[:2]
    assert isinstance(signed, ReasoningBlock) and signed.opaque is not None
    assert (signed.opaque.kind, signed.opaque.value, signed.provider) == ("signature", "s==", "anthropic")
    assert isinstance(redacted, ReasoningBlock) and redacted.opaque is not None
    assert (redacted.opaque.kind, redacted.opaque.value) == ("redacted", "d==")


def test_server_tools_stay_in_the_message_that_called_them() -> None:
    messages = there_and_back(
        user(text("?")),
        assistant(
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}, "caller": None},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "title": "A",
                        "url": "u",
                        "encrypted_content": "E==",
                        "page_age": None,
                    }
                ],
                "caller": {"type": "direct"},
            },
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "input": {}, "server_name": "wiki"},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": True, "content": [text("no")]},
            {"type": "server_tool_use", "id": "srvtoolu_2", "name": "advisor", "input": {}, "cache_control": CACHE},
            {
                "type": "advisor_tool_result",
                "tool_use_id": "srvtoolu_2",
                "content": {"type": "advisor_redacted_result", "encrypted_content": "E==", "stop_reason": None},
            },
            {"type": "server_tool_use", "id": "srvtoolu_3", "name": "new_tool", "input": {}},
            {"type": "new_tool_result", "tool_use_id": "srvtoolu_3", "content": None, "seal": "x"},
            text("so"),
        ),
    )

    blocks = messages[1].content
    assert [block.type for block in blocks] == ["tool-call", "tool-result"] * 4 + ["text"]
    hit = blocks[1].content[0] if isinstance(blocks[1], ToolResultBlock) else None
    assert isinstance(hit, SearchResultBlock) and hit.opaque is not None and hit.opaque.value == "E=="
    assert isinstance(blocks[2], ToolCallBlock) and blocks[2].server_name == "wiki"
    assert isinstance(blocks[3], ToolResultBlock) and blocks[3].outcome == "error"


@pytest.mark.parametrize(
    ("native", "block"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ImageBlock(source=Base64Source(media_type="image/png", data=PNG)),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}},
            ImageBlock(source=UrlSource(url="https://a.example/a.png")),
        ),
        (
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            ImageBlock(source=FileSource(file_id="file_1")),
        ),
        (
            {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
            DocumentBlock(source=Base64Source(media_type="text/plain", data="aGk="), title="T"),
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://a.example/a.pdf"}},
            DocumentBlock(source=UrlSource(url="https://a.example/a.pdf")),
        ),
        ({"type": "container_upload", "file_id": "file_1"}, FileBlock(source=FileSource(file_id="file_1"))),
    ],
)
def test_media_have_a_neutral_form(native: dict[str, Any], block: Any) -> None:
    (message,) = there_and_back(user(native))
    assert message.content == [block]


@pytest.mark.parametrize(
    "native",
    [
        {"type": "text", "text": "hi", "cache_control": CACHE},
        {"type": "text", "text": "hi", "citations": None},
        {"type": "text", "text": "hi", "citations": []},
        {
            "type": "image",
            "source": {"type": "url", "url": "https://a.example/a.png"},
            "cache_control": CACHE,
            "transformations": {},
        },
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": None,
            "context": "of the year",
            "citations": {"enabled": True},
            "cache_control": CACHE,
        },
        {"type": "document", "source": {"type": "content", "content": [text("one"), text("two")]}, "title": "T"},
        {"type": "document", "source": {"type": "content", "content": "one"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {}}]}},
        {"type": "document", "source": {"type": "from_the_future"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AA=="}},
        {
            "type": "search_result",
            "source": "https://a.example",
            "title": "A",
            "content": [text("so")],
            "citations": {"enabled": True},
        },
        {"type": "container_upload", "file_id": "file_1", "cache_control": CACHE},
        {"type": "from_the_future", "seal": "x"},
    ],
)
def test_what_has_no_neutral_form_is_carried(native: dict[str, Any]) -> None:
    there_and_back(user(native))


def test_chunks_of_a_document_can_be_read() -> None:
    chunks = {"type": "content", "content": [text("one"), text("two")]}
    (message,) = messages_from_native([user({"type": "document", "source": chunks})])

    assert isinstance(message.content[0], DocumentBlock)
    source = message.content[0].source
    assert isinstance(source, Base64Source) and base64.b64decode(source.data) == b"one\ntwo"


@pytest.mark.parametrize(
    "native",
    [
        {"type": "compaction", "content": "so far", "cache_control": CACHE},
        {"type": "compaction", "content": None},
        {"type": "compaction", "content": "so far", "encrypted_content": "E==", "tool_changes": []},
        {"type": "mcp_tool_listing", "mcp_server_name": "wiki", "tools": []},
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": None},
    ],
)
def test_blocks_of_the_beta_go_back(native: dict[str, Any]) -> None:
    messages = there_and_back(user(text("?")), assistant(native, text("so")))
    assert isinstance(messages[1].content[0], (CompactionBlock, ProviderRawBlock))


def test_citations_are_read_and_carried() -> None:
    citation = {
        "type": "web_search_result_location",
        "url": "https://a.example",
        "title": None,
        "cited_text": "so",
        "encrypted_index": "E==",
    }
    unknown = {"type": "from_the_future", "cited_text": "so"}
    messages = there_and_back(user(text("?")), assistant({**text("so"), "citations": [citation, unknown]}))

    block = messages[1].content[0]
    assert isinstance(block, TextBlock) and block.citations is not None
    assert [(cited.kind, cited.cited_text, cited.encrypted_index) for cited in block.citations] == [
        ("url", "so", "E==")
    ]


# System


def test_a_system_message_among_the_others_stays_in_its_place() -> None:
    there_and_back(
        user(text("?")),
        {"role": "system", "content": "now in French"},
        assistant(text("oui")),
        user(text("!")),
        {
            "role": "system",
            "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "t"}}],
            "clear_at": "next_user_message",
        },
    )


def test_where_it_may_not_stand_it_is_lifted() -> None:
    messages = messages_from_native([user(text("?")), {"role": "system", "content": "x"}, user(text("!"))])
    native = messages_to_native(messages)

    assert native == [user(text("?"), text("!"))]
    assert native.system == [text("x")]


@pytest.mark.parametrize("system", ["be kind", [{**text("be kind"), "cache_control": CACHE}]])
def test_the_system_prompt_becomes_a_message_and_comes_back(system: Any) -> None:
    messages = messages_from_native([user(text("?"))], system=system)
    native = messages_to_native(messages)

    assert messages[0].role == "system"
    assert native.system == ([text("be kind")] if isinstance(system, str) else system)
    assert native == [user(text("?"))]


# Objects of the SDK, and whole answers


def test_an_answer_of_the_sdk_is_a_message() -> None:
    answer = native_types.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s=="},
                {"type": "text", "text": "so", "citations": None},
            ],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 2},
            "container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
        }
    )
    messages = messages_from_native([{"role": "user", "content": "?"}, answer], turn_id="turn-1")

    assert (messages[1].id, messages[1].model) == ("msg_1", "claude-test")
    assert messages[1].usage == AgUsage(input_tokens=3, output_tokens=2, cumulative=True)
    metadata = messages[1].metadata or {}
    assert metadata["anthropic/stopReason"] == "end_turn"
    assert metadata["anthropic/container"] == {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}
    assert messages_to_native(messages)[1] == assistant(
        {"type": "thinking", "thinking": "hm", "signature": "s=="}, {**text("so"), "citations": None}
    )


def test_blocks_may_be_objects_of_the_sdk() -> None:
    seam = beta_types.BetaFallbackBlock.model_validate(
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}}
    )
    said = native_types.TextBlock(type="text", text="so")
    messages = messages_from_native([user(text("?")), {"role": "assistant", "content": (seam, said)}])

    assert messages_to_native(messages, betas=["server-side-fallback-2026-06-01"])[1]["content"][0]["from"] == {
        "model": "a"
    }


# Malformed histories


def test_results_behind_other_content_are_put_first() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    messages = messages_from_native([user(text("?")), assistant(use), user(text("here"), result, text("it is"))])

    assert [message.id for message in messages[2:]] == ["native:2", "toolu_1:result", "native:2#2"]
    assert messages_to_native(messages)[2] == user(result, text("here"), text("it is"))


@pytest.mark.parametrize(
    "native",
    [
        {"type": "text"},
        {"type": "thinking", "signature": "s"},
        {"type": "redacted_thinking", "data": ""},
        {"type": "tool_use", "id": "toolu_1", "name": "look"},
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "input": {}},
        {"type": "container_upload"},
        {"type": "web_search_tool_result", "content": []},
    ],
)
def test_a_malformed_block_is_carried_and_stays_behind(native: dict[str, Any]) -> None:
    messages = messages_from_native([user(text("?")), assistant(native, text("so"))])
    again = messages_to_native(messages)

    assert messages[1].content[0] == ProviderRawBlock(vendor="anthropic", raw=native)
    assert again[1] == assistant(text("so"))
    assert [repair.code for repair in again.repairs] == ["block_dropped"]


@pytest.mark.parametrize("native", [{}, {"tool_use_id": "toolu_1", "content": 1}])
def test_a_malformed_result_is_carried_and_stays_behind(native: dict[str, Any]) -> None:
    messages = messages_from_native([user({"type": "tool_result", **native}, text("so"))])

    assert messages_to_native(messages) == [user(text("so"))]


@pytest.mark.parametrize(
    ("native", "path"),
    [
        ("hi", "$[0]"),
        ({"content": "hi"}, "$[0].role"),
        ({"role": "tool", "content": "hi"}, "$[0].role"),
        ({"role": "user"}, "$[0].content"),
        ({"role": "user", "content": 1}, "$[0].content"),
        ({"role": "user", "content": ["hi"]}, "$[0].content[0]"),
        ({"role": "user", "content": [{"text": "hi"}]}, "$[0].content[0]"),
        ({"role": "user", "content": [{"type": ""}]}, "$[0].content[0]"),
    ],
)
def test_what_is_no_history_is_refused(native: Any, path: str) -> None:
    with pytest.raises(ValidationError) as error:
        messages_from_native([native])
    assert error.value.path == path
