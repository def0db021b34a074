"""What goes back to the Messages API: media, blocks that it does not have, native blocks, compaction (spec §10.5)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from agjson import ReplayError
from agjson.adapters.anthropic import messages_to_native
from agjson.types import (
    AgBlock,
    AgEmbeddedResource,
    AgOpaque,
    AgProviderMeta,
    AudioBlock,
    Base64Source,
    CodeBlock,
    CodeResultBlock,
    CompactionBlock,
    DataBlock,
    DocumentBlock,
    FileBlock,
    FileSource,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    ResourceBlock,
    ResourceLinkBlock,
    SearchResultBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from tests.support.anthropic_history import asked, message, repaired, said, text

PNG = base64.b64encode(b"\x89PNG").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()


# Images, documents, files (spec §10 item 5)


@pytest.mark.parametrize(
    ("block", "native"),
    [
        (
            ImageBlock(source=Base64Source(media_type="image/png", data=PNG)),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ),
        (
            ImageBlock(source=UrlSource(url="https://a.example/a.svg")),
            {"type": "image", "source": {"type": "url", "url": "https://a.example/a.svg"}},
        ),
        (
            ImageBlock(source=FileSource(file_id="file_1")),
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        ),
        (
            ImageBlock(source=UrlSource(url=f"data:image/png;base64,{PNG}")),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ),
        (
            DocumentBlock(source=Base64Source(media_type="application/pdf", data=PDF), title="Plan"),
            {
                "type": "document",
                "title": "Plan",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            },
        ),
        (
            DocumentBlock(source=Base64Source(media_type="text/csv", data=base64.b64encode("ä,b".encode()).decode())),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ä,b"}},
        ),
        (
            DocumentBlock(source=UrlSource(url="https://a.example/a.pdf")),
            {"type": "document", "source": {"type": "url", "url": "https://a.example/a.pdf"}},
        ),
        (
            DocumentBlock(source=FileSource(file_id="file_1")),
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        ),
        (
            FileBlock(source=FileSource(file_id="file_1")),
            {"type": "container_upload", "file_id": "file_1"},
        ),
        (
            FileBlock(source=FileSource(file_id="file_1", media_type="image/png")),
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        ),
        (
            FileBlock(source=Base64Source(media_type="application/pdf", data=PDF), filename="plan.pdf"),
            {
                "type": "document",
                "title": "plan.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            },
        ),
        (
            FileBlock(source=UrlSource(url="https://a.example/a.png?size=2")),
            {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png?size=2"}},
        ),
        (
            ResourceBlock(resource=AgEmbeddedResource(uri="file:///a.md", mime_type="text/markdown", text="# A")),
            {
                "type": "document",
                "title": "file:///a.md",
                "source": {"type": "text", "media_type": "text/plain", "data": "# A"},
            },
        ),
        (
            ResourceBlock(resource=AgEmbeddedResource(uri="file:///a.png", blob=PNG)),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ),
    ],
)
def test_media_go_back(block: AgBlock, native: dict[str, Any]) -> None:
    assert asked(block) == [native]


REFUSED = [
    AudioBlock(source=Base64Source(media_type="audio/wav", data=PNG)),
    ImageBlock(source=Base64Source(media_type="image/svg+xml", data=PNG)),
    ImageBlock(source=Base64Source(media_type="image/png", data="no base64!")),
    ImageBlock(source=Base64Source(media_type="image/png", data="")),
    ImageBlock(source=UrlSource(url="gs://bucket/a.png")),
    ImageBlock(source=FileSource(file_id="")),
    DocumentBlock(source=Base64Source(media_type="application/zip", data=PDF)),
    DocumentBlock(source=Base64Source(media_type="text/plain", data=base64.b64encode(b"\xff").decode())),
    DocumentBlock(source=UrlSource(url="https://a.example/a.docx", media_type="application/msword")),
    FileBlock(source=Base64Source(media_type="video/mp4", data=PNG)),
    FileBlock(source=UrlSource(url="https://a.example/a")),
    ResourceBlock(resource=AgEmbeddedResource(uri="file:///a.bin", blob=PNG)),
    ResourceBlock(resource=AgEmbeddedResource(uri="file:///a.png")),
    ReasoningBlock(text="of a user"),
    CompactionBlock(text="of a user"),
]


@pytest.mark.parametrize("block", REFUSED)
def test_what_the_api_has_no_place_for_is_refused_or_dropped_on_request(block: AgBlock) -> None:
    history = [message("user", "hi"), message("user", block)]
    with pytest.raises(ReplayError) as error:
        messages_to_native(history)
    assert error.value.path == "$[1].content[0]"

    native = messages_to_native(history, unsupported="drop")
    assert native == [{"role": "user", "content": [text("hi")]}]
    assert repaired(native) == [("block_dropped", "$[1].content[0]")]


@pytest.mark.parametrize(
    "block",
    [
        ImageBlock(source=FileSource(file_id="f")),
        DocumentBlock(source=FileSource(file_id="f")),
        FileBlock(source=Base64Source(media_type="image/png", data=PNG)),
        ResourceLinkBlock(uri="https://a.example"),
        ResourceBlock(resource=AgEmbeddedResource(uri="file:///a", text="a")),
        AudioBlock(source=FileSource(file_id="f")),
    ],
)
def test_an_assistant_message_holds_no_media(block: AgBlock) -> None:
    with pytest.raises(ReplayError, match="has no place in what the assistant says"):
        said(block)
    assert said("so", block, unsupported="drop") == [text("so")]


def test_a_file_of_the_container_goes_back_to_it() -> None:
    native = {"type": "container_upload", "file_id": "file_1"}
    block = FileBlock(
        source=FileSource(file_id="file_1"), provider_metadata=AgProviderMeta({"anthropic/block": native})
    )

    assert said(block) == [native]


def test_a_surface_reaches_no_model() -> None:
    surface = ResourceBlock(resource=AgEmbeddedResource(uri="ui://chart", mime_type="text/html;profile=mcp-app"))
    native = messages_to_native([message("user", "?", surface), message("assistant", surface, "here")])

    assert native == [
        {"role": "user", "content": [text("?")]},
        {"role": "assistant", "content": [text("here")]},
    ]
    assert repaired(native) == [("block_dropped", "$[0].content[1]"), ("block_dropped", "$[1].content[0]")]


# Blocks that the provider does not have


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (ResourceLinkBlock(uri="https://a.example/a"), "https://a.example/a"),
        (CodeBlock(language="PYTHON", code="print(1)"), "```python\nprint(1)\n```"),
        (CodeResultBlock(outcome="ok", output="1\n"), "1\n"),
        (CodeResultBlock(outcome="failed", output=""), "failed"),
        (SearchResultBlock(url="https://a.example", title="A"), "A\nhttps://a.example"),
        (DataBlock(name="form", data={"city": "Zürich"}), '{"city":"Zürich"}'),
    ],
)
def test_they_go_as_text(block: AgBlock, words: str) -> None:
    native = messages_to_native([message("user", block)])

    assert native == [{"role": "user", "content": [text(words)]}]
    assert repaired(native) == [("as_text", "$[0].content[0]")]


@pytest.mark.parametrize(
    "block", [ResourceLinkBlock(uri=""), DocumentBlock(source=Base64Source(media_type="text/plain", data="IA=="))]
)
def test_what_says_nothing_is_left_out(block: AgBlock) -> None:
    native = messages_to_native([message("user", "hi", block)])

    assert native == [{"role": "user", "content": [text("hi")]}]
    assert repaired(native) == [("text_dropped", "$[0].content[1]")]


def test_what_was_shown_beside_the_words_is_not_put_into_the_assistants_mouth() -> None:
    native = messages_to_native(
        [
            message("user", "?"),
            message("assistant", SearchResultBlock(title="A"), DataBlock(name="status", data=1), "so"),
            message("user", DataBlock(name="note", data=1, transient=True), "!"),
        ]
    )

    assert native[1]["content"] == [text("so")]
    assert native[2]["content"] == [text("!")]
    assert [code for code, _ in repaired(native)] == ["block_dropped"] * 3


def test_another_providers_sealed_search_result_is_told() -> None:
    block = SearchResultBlock(title="A", opaque=AgOpaque(kind="ciphertext", value="x", provider="openai"))
    native = messages_to_native([message("user", block)])

    assert [code for code, _ in repaired(native)] == ["opaque_dropped", "as_text"]


# Native blocks carried whole


def test_our_native_blocks_go_back_verbatim_and_others_stay_behind() -> None:
    listing = {"type": "mcp_tool_listing", "mcp_server_name": "a", "tools": [{"name": "t"}]}
    native = messages_to_native(
        [
            message("user", "?"),
            message(
                "assistant",
                ProviderRawBlock(vendor="anthropic", raw=listing),
                ProviderRawBlock(vendor="anthropic", raw={"type": "from_the_future", "seal": "x"}),
                ProviderRawBlock(vendor="google", raw={"type": "text", "text": "x"}),
                ProviderRawBlock(vendor="anthropic", raw={"type": "text"}),
                ProviderRawBlock(vendor="anthropic", raw="text"),
                "so",
            ),
        ]
    )

    assert native[1]["content"] == [listing, {"type": "from_the_future", "seal": "x"}, text("so")]
    assert repaired(native) == [("block_dropped", f"$[1].content[{index}]") for index in (2, 3, 4)]
    assert native.beta is True


# Compaction


def test_a_compaction_goes_back_without_null() -> None:
    carried = {"type": "compaction", "content": "so far", "encrypted_content": None, "tool_changes": []}
    block = CompactionBlock(text="so far", provider="anthropic", meta={"anthropic/compaction": carried})

    assert said(block, "well") == [{"type": "compaction", "content": "so far", "tool_changes": []}, text("well")]


def test_a_compaction_that_failed_goes_back_as_one() -> None:
    block = CompactionBlock(provider="anthropic", meta={"anthropic/compaction": {"type": "compaction", "content": ""}})

    assert said(block, "well")[0] == {"type": "compaction", "content": None}


def test_a_compaction_without_its_native_form_is_written_again() -> None:
    block = CompactionBlock(text="so far", opaque=AgOpaque(kind="ciphertext", value="Aa=="), provider="anthropic")

    assert said(block, "well")[0] == {"type": "compaction", "content": "so far", "encrypted_content": "Aa=="}


def test_a_signed_compaction_stands_first_in_place_of_what_it_sums_up() -> None:
    block = CompactionBlock(text="so far", opaque=AgOpaque(kind="signature", value="s"), provider="anthropic")
    native = messages_to_native(
        [message("system", "be kind"), message("user", "long"), message("assistant", block), message("user", "go on")]
    )

    assert native == [
        {"role": "assistant", "content": [{"type": "compaction", "content": "so far", "signature": "s"}]},
        {"role": "user", "content": [text("go on")]},
    ]
    assert native.system == [text("be kind")]
    assert repaired(native) == [("compacted_dropped", "$[2].content[0]")]
    assert native.beta is True


def test_a_signed_compaction_takes_calls_and_their_results_along() -> None:
    block = CompactionBlock(text="so far", opaque=AgOpaque(kind="signature", value="s"), provider="anthropic")
    native = messages_to_native(
        [
            message("user", "long"),
            message("assistant", ToolCallBlock(tool_call_id="toolu_1", name="look", input={}), block, "well"),
            message("tool", ToolResultBlock(tool_call_id="toolu_1", content=[])),
        ]
    )

    assert [[part["type"] for part in each["content"]] for each in native] == [["compaction", "text"]]


def test_another_providers_compaction_stays_behind() -> None:
    native = messages_to_native([message("user", "?"), message("assistant", CompactionBlock(provider="openai"), "so")])

    assert native[1]["content"] == [text("so")]
    assert repaired(native) == [("block_dropped", "$[1].content[0]")]
