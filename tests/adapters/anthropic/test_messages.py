"""What goes back to the Messages API, what is mended and what is refused: roles, texts, reasoning, citations."""

from __future__ import annotations

import base64
import re
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from agjson import ReplayError
from agjson.adapters.anthropic import RepairCode, messages_to_native
from agjson.types import (
    AgOpaque,
    AgProviderMeta,
    BlockCitation,
    CharCitation,
    FileSource,
    ImageBlock,
    OffsetCitation,
    PageCitation,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlCitation,
)
from tests.support.anthropic_history import message, repaired, said, text
from tests.support.corpus import ROOT

PNG = base64.b64encode(b"\x89PNG").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()


# Roles


def test_roles_take_turns() -> None:
    native = messages_to_native(
        [
            message("user", "one"),
            message("user", "two"),
            message("assistant", "three"),
            message("assistant", "four"),
            message("user", "five"),
        ]
    )

    assert native == [
        {"role": "user", "content": [text("one"), text("two")]},
        {"role": "assistant", "content": [text("three"), text("four")]},
        {"role": "user", "content": [text("five")]},
    ]
    assert isinstance(native, list)
    assert native.repairs == []
    assert native.beta is False


def test_an_empty_history_is_an_empty_list() -> None:
    assert messages_to_native([]) == []


def test_a_notice_reaches_no_model() -> None:
    native = messages_to_native([message("notice", "shown"), message("user", "hi"), message("notice", "shown too")])

    assert native == [{"role": "user", "content": [text("hi")]}]
    assert native.repairs == []


def test_system_messages_at_the_head_are_lifted() -> None:
    native = messages_to_native([message("system", "be kind", "be short"), message("user", "hi")])

    assert native.system == [text("be kind"), text("be short")]
    assert native == [{"role": "user", "content": [text("hi")]}]
    assert native.repairs == []


def test_a_system_message_inside_the_conversation_is_lifted_and_told() -> None:
    native = messages_to_native([message("user", "hi"), message("system", "now in French"), message("user", "go on")])

    assert native.system == [text("now in French")]
    assert native == [{"role": "user", "content": [text("hi"), text("go on")]}]
    assert repaired(native) == [("system_moved", "$[1]")]


def test_a_system_message_holds_text_alone() -> None:
    with pytest.raises(ReplayError, match="image has no place in a system message") as error:
        messages_to_native([message("system", ImageBlock(source=FileSource(file_id="f")))])
    assert error.value.path == "$[0].content[0]"
    assert messages_to_native([message("system", ImageBlock(source=FileSource(file_id="f")))], unsupported="drop") == []


def test_the_user_speaks_first() -> None:
    native = messages_to_native([message("assistant", "Welcome!"), message("user", "hi")])

    assert [each["role"] for each in native] == ["user", "assistant", "user"]
    assert repaired(native) == [("user_added", "$[0].content[0]")]


def test_other_candidates_stay_behind() -> None:
    native = messages_to_native(
        [message("user", "hi"), message("assistant", "a"), message("assistant", "b", candidate_index=1)]
    )

    assert native[1] == {"role": "assistant", "content": [text("a")]}
    assert repaired(native) == [("candidate_dropped", "$[2]")]


def test_host_metadata_reaches_no_model() -> None:
    block = TextBlock(
        text="hi",
        meta={"timestamp": 1},
        provider_metadata=AgProviderMeta({"agjson/nativeToolCallId": "x", "openai/itemId": "msg_1"}),
    )
    native = messages_to_native([message("user", block, metadata={"flat": True}, reference_turn_ids=["t-1"])])

    assert native == [{"role": "user", "content": [text("hi")]}]


# Text


@pytest.mark.parametrize("blank", ["", " ", "\n\t\n"])
def test_a_text_of_white_space_is_left_out(blank: str) -> None:
    native = messages_to_native([message("user", "hi"), message("assistant", blank, "yes"), message("user", blank)])

    assert native == [
        {"role": "user", "content": [text("hi")]},
        {"role": "assistant", "content": [text("yes")]},
    ]
    assert repaired(native) == [("text_dropped", "$[1].content[0]"), ("text_dropped", "$[2].content[0]")]


def test_words_to_go_on_with_do_not_end_in_white_space() -> None:
    native = messages_to_native([message("user", "capital?"), message("assistant", "It is \n")])

    assert native[-1] == {"role": "assistant", "content": [text("It is")]}
    assert repaired(native) == [("prefill_trimmed", "$[1].content[0]")]
    # Elsewhere the white space belongs to the text.
    assert said("It is \n") == [text("It is \n")]


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    native = messages_to_native([message("user", "a\ud83d b \U0001f600")])

    assert native == [{"role": "user", "content": [text("a\ufffd b \U0001f600")]}]
    assert repaired(native) == [("surrogate_replaced", "$")]


@pytest.mark.parametrize("value", [float("nan"), object(), {"a": float("inf")}])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    call = ToolCallBlock(tool_call_id="toolu_1", name="look", input={"value": value})
    with pytest.raises(ReplayError, match="JSON cannot say"):
        messages_to_native([message("user", "?"), message("assistant", call)])


def test_nesting_without_end_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    call = ToolCallBlock(tool_call_id="toolu_1", name="look", input={"value": value})
    result = ToolResultBlock(tool_call_id="toolu_1", content=[], structured_content=value)
    for blocks in ([call], [replace(call, input={}), result]):
        with pytest.raises(ReplayError, match="nested too deep"):
            messages_to_native([message("user", "?"), message("assistant", *blocks)])


# Reasoning


def signed(value: str, *, provider: str | None = "anthropic", words: str | None = "hm") -> ReasoningBlock:
    return ReasoningBlock(
        text=words, opaque=AgOpaque(kind="signature", value=value, provider=provider), provider=provider
    )


def test_reasoning_goes_back_in_its_place() -> None:
    redacted = ReasoningBlock(text="", opaque=AgOpaque(kind="redacted", value="ZGF0YQ==", provider="anthropic"))

    assert said("first", signed("c2ln+/="), redacted, "then") == [
        text("first"),
        {"type": "thinking", "thinking": "hm", "signature": "c2ln+/="},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        text("then"),
    ]


@pytest.mark.parametrize("words", ["", None])
def test_reasoning_without_words_goes_back_for_its_signature(words: str | None) -> None:
    assert said(signed("s", words=words), "yes")[0] == {"type": "thinking", "thinking": "", "signature": "s"}


def test_a_signature_that_names_no_provider_counts_as_ours() -> None:
    assert said(signed("s", provider=None), "yes")[0]["signature"] == "s"


@pytest.mark.parametrize(
    "block",
    [
        ReasoningBlock(text="unsigned", provider="anthropic"),
        signed(""),
        signed("gAAAA", provider="openai"),
        ReasoningBlock(text="x", opaque=AgOpaque(kind="signature", value="s"), provider="google"),
        ReasoningBlock(text="x", opaque=AgOpaque(kind="ciphertext", value="s"), provider="anthropic"),
        ReasoningBlock(text="x", opaque=AgOpaque(kind="redacted", value=""), provider="anthropic"),
    ],
)
def test_reasoning_that_would_be_refused_is_left_out_and_never_turned_into_text(block: ReasoningBlock) -> None:
    native = messages_to_native([message("user", "?"), message("assistant", block, "yes")])

    assert native[1] == {"role": "assistant", "content": [text("yes")]}
    assert repaired(native) == [("reasoning_dropped", "$[1].content[0]")]


def test_no_repair_tells_what_is_sealed() -> None:
    native = messages_to_native([message("user", "?"), message("assistant", signed("s3cret", provider="openai"))])

    assert "s3cret" not in str(native.repairs)
    assert str(native.repairs[0]).startswith("$[1].content[0]: ")


def test_a_message_of_the_assistant_does_not_end_in_reasoning() -> None:
    native = messages_to_native(
        [message("user", "?"), message("assistant", "well", signed("a"), signed("b")), message("user", "go on")]
    )

    assert native[1] == {"role": "assistant", "content": [text("well")]}
    assert sorted(repaired(native)) == [
        ("trailing_reasoning_dropped", "$[1].content[1]"),
        ("trailing_reasoning_dropped", "$[1].content[2]"),
    ]


def test_a_message_of_reasoning_alone_is_left_out() -> None:
    native = messages_to_native([message("user", "?"), message("assistant", signed("a")), message("user", "well?")])

    assert native == [{"role": "user", "content": [text("?"), text("well?")]}]
    assert repaired(native) == [("trailing_reasoning_dropped", "$[1].content[0]")]


# Citations


WEB = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "A",
    "cited_text": "so",
    "encrypted_index": "EpABCi==",
}
CHAR = {
    "type": "char_location",
    "cited_text": "so",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 3,
    "end_char_index": 5,
}


def test_citations_go_back_as_they_came() -> None:
    carried = AgProviderMeta({"anthropic/citations": [WEB, {**CHAR, "file_id": None}]})
    block = TextBlock(text="so", provider_metadata=carried)

    assert said(block) == [{**text("so"), "citations": [WEB, CHAR]}]


def test_citations_of_documents_stay_behind_where_the_history_was_edited() -> None:
    block = TextBlock(text="so", provider_metadata=AgProviderMeta({"anthropic/citations": [CHAR, WEB]}))
    native = messages_to_native([message("user", "?"), message("assistant", block)], document_citations=False)

    assert native[1]["content"] == [{**text("so"), "citations": [WEB]}]
    assert repaired(native) == [("citation_dropped", "$[1].content[0].citations[0]")]


@pytest.mark.parametrize(
    ("citation", "native"),
    [
        (UrlCitation(url="https://a.example", title="A", cited_text="so", encrypted_index="EpABCi=="), WEB),
        (CharCitation(cited_text="so", document_index=0, start_char_index=3, end_char_index=5, unit="char"), CHAR),
        (
            PageCitation(cited_text="so", document_index=1, title="T", start_page=2, end_page=3),
            {
                "type": "page_location",
                "cited_text": "so",
                "document_title": "T",
                "document_index": 1,
                "start_page_number": 2,
                "end_page_number": 3,
            },
        ),
        (
            BlockCitation(cited_text="so", document_index=1, start_block_index=0, end_block_index=1),
            {
                "type": "content_block_location",
                "cited_text": "so",
                "document_title": None,
                "document_index": 1,
                "start_block_index": 0,
                "end_block_index": 1,
            },
        ),
        (
            BlockCitation(
                cited_text="so", document_index=2, source="HR", title="T", start_block_index=0, end_block_index=1
            ),
            {
                "type": "search_result_location",
                "cited_text": "so",
                "source": "HR",
                "title": "T",
                "search_result_index": 2,
                "start_block_index": 0,
                "end_block_index": 1,
            },
        ),
    ],
)
def test_citations_without_their_native_form_are_written_again(citation: Any, native: dict[str, Any]) -> None:
    assert said(TextBlock(text="so", citations=[citation])) == [{**text("so"), "citations": [native]}]


@pytest.mark.parametrize(
    "citation",
    [
        UrlCitation(url="https://a.example", cited_text="so"),
        OffsetCitation(
            cited_text="so", start_index=0, end_index=2, source_ids=["s"], unit="byte", bounds="[start,end)"
        ),
        CharCitation(cited_text="so", document_index=0, start_char_index=3, end_char_index=5, unit="byte"),
        CharCitation(cited_text="so", document_index=0.5, start_char_index=3, end_char_index=5),
        CharCitation(cited_text="so", document_index=float("inf"), start_char_index=3, end_char_index=5),
    ],
)
def test_citations_without_any_native_form_stay_behind(citation: Any) -> None:
    native = messages_to_native(
        [message("user", "?"), message("assistant", TextBlock(text="so", citations=[citation]))]
    )

    assert native[1]["content"] == [text("so")]
    assert repaired(native) == [("citation_dropped", "$[1].content[0].citations[0]")]


# The page


def test_the_page_has_a_row_for_each_code() -> None:
    page = (ROOT / "docs" / "adapters" / "anthropic-replay.md").read_text(encoding="utf-8")
    mended = page.partition("## What is mended")[2].partition("## What is refused")[0]
    rows = re.findall(r"^\| `([a-z_]+)` \|", mended, re.MULTILINE)

    assert sorted(rows) == sorted(get_args(RepairCode))
