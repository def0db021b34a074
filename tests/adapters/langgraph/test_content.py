"""What each provider's content says, as blocks: the same for a stream and for the whole message."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.adapters.langgraph._content import read_blocks
from agjson.wire import to_dict
from tests.support.langgraph_messages import ai, chunk, committed, last, streamed

# Name, native block, provider, neutral blocks.
BLOCKS: list[tuple[str, dict[str, Any], str | None, list[dict[str, Any]]]] = [
    (
        "anthropic thinking",
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln=="},
        "anthropic",
        [
            {
                "type": "reasoning",
                "text": "Hm.",
                "opaque": {"kind": "signature", "value": "c2ln==", "provider": "anthropic"},
                "provider": "anthropic",
            }
        ],
    ),
    (
        "a signature without a thought",
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        "anthropic",
        [
            {
                "type": "reasoning",
                "text": "",
                "opaque": {"kind": "signature", "value": "c2ln", "provider": "anthropic"},
                "provider": "anthropic",
            }
        ],
    ),
    (
        "an empty signature is none",
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        None,
        [{"type": "reasoning", "text": "Hm.", "provider": "anthropic"}],
    ),
    (
        "anthropic redacted thinking, without the provider's name",
        {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
        None,
        [
            {
                "type": "reasoning",
                "text": "",
                "opaque": {"kind": "redacted", "value": "cmVkYWN0ZWQ=", "provider": "anthropic"},
                "provider": "anthropic",
            }
        ],
    ),
    (
        "redacted thinking in LangChain's form",
        {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="}},
        "anthropic",
        [
            {
                "type": "reasoning",
                "text": "",
                "opaque": {"kind": "redacted", "value": "cmVkYWN0ZWQ=", "provider": "anthropic"},
                "provider": "anthropic",
            }
        ],
    ),
    (
        "reasoning in LangChain's form",
        {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "c2ln"}},
        "anthropic",
        [
            {
                "type": "reasoning",
                "text": "Hm.",
                "opaque": {"kind": "signature", "value": "c2ln", "provider": "anthropic"},
                "provider": "anthropic",
            }
        ],
    ),
    (
        "a reasoning item with two parts and its ciphertext",
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [
                {"index": 0, "type": "summary_text", "text": "First. "},
                {"index": 1, "type": "summary_text", "text": "Then."},
            ],
            "encrypted_content": "gAAAA==",
        },
        "openai",
        [
            {
                "type": "reasoning",
                "text": "First. Then.",
                "opaque": {"kind": "encrypted", "value": "gAAAA==", "provider": "openai"},
                "provider": "openai",
                "providerMetadata": {"langgraph/parts": [7, 5]},
                "itemId": "rs_1",
            }
        ],
    ),
    (
        "a reasoning item that says nothing",
        {"type": "reasoning", "id": "rs_1", "summary": []},
        "openai",
        [{"type": "reasoning", "text": "", "provider": "openai", "itemId": "rs_1"}],
    ),
    (
        "bedrock reasoning",
        {"type": "reasoning_content", "reasoning_content": {"text": "Hm.", "signature": "c2ln"}},
        "bedrock_converse",
        [
            {
                "type": "reasoning",
                "text": "Hm.",
                "opaque": {"kind": "signature", "value": "c2ln", "provider": "bedrock"},
                "provider": "bedrock",
            }
        ],
    ),
    (
        "bedrock redacted reasoning",
        {"type": "reasoning_content", "reasoning_content": {"redacted_content": "cmVk"}},
        "bedrock_converse",
        [
            {
                "type": "reasoning",
                "text": "",
                "opaque": {"kind": "redacted", "value": "cmVk", "provider": "bedrock"},
                "provider": "bedrock",
            }
        ],
    ),
    (
        "gemini thinking",
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        "google_genai",
        [
            {
                "type": "reasoning",
                "text": "Hm.",
                "opaque": {"kind": "signature", "value": "c2ln", "provider": "google"},
                "provider": "google",
            }
        ],
    ),
    (
        "a signature on an empty text",
        {"type": "text", "text": "", "extras": {"signature": "c2ln"}},
        "google_genai",
        [{"type": "text", "text": "", "providerMetadata": {"langgraph/fields": {"extras": {"signature": "c2ln"}}}}],
    ),
    (
        "a text of the responses api",
        {
            "type": "text",
            "text": "See A.",
            "id": "msg_1",
            "phase": "final_answer",
            "annotations": [
                {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 4, "end_index": 5}
            ],
        },
        "openai",
        [
            {
                "type": "text",
                "text": "See A.",
                "citations": [
                    {
                        "kind": "url",
                        "citedText": "A",
                        "title": "A",
                        "indexFrame": "response",
                        "url": "https://a.test",
                        "startIndex": 4,
                        "endIndex": 5,
                        "unit": "char",
                        "bounds": "[start,end)",
                    }
                ],
                "providerMetadata": {
                    "langgraph/fields": {
                        "id": "msg_1",
                        "phase": "final_answer",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": "https://a.test",
                                "title": "A",
                                "start_index": 4,
                                "end_index": 5,
                            }
                        ],
                    }
                },
            }
        ],
    ),
    (
        "a citation of the Messages API in LangChain's form",
        {
            "type": "text",
            "text": "Green.",
            "annotations": [
                {
                    "type": "citation",
                    "cited_text": "grass",
                    "title": None,
                    "extras": {"document_index": 0, "start_block_index": 0, "end_block_index": 1},
                }
            ],
        },
        "anthropic",
        [
            {
                "type": "text",
                "text": "Green.",
                "citations": [
                    {
                        "kind": "block",
                        "citedText": "grass",
                        "indexFrame": "source",
                        "documentIndex": 0,
                        "startBlockIndex": 0,
                        "endBlockIndex": 1,
                    }
                ],
                "providerMetadata": {
                    "langgraph/fields": {
                        "annotations": [
                            {
                                "type": "citation",
                                "cited_text": "grass",
                                "title": None,
                                "extras": {"document_index": 0, "start_block_index": 0, "end_block_index": 1},
                            }
                        ]
                    }
                },
            }
        ],
    ),
    (
        "a refusal",
        {"type": "refusal", "refusal": "I will not."},
        "openai",
        [
            {
                "type": "text",
                "text": "I will not.",
                "providerMetadata": {"langgraph/block": {"type": "refusal", "refusal": "I will not."}},
            }
        ],
    ),
    (
        "what the responses api has compacted",
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"},
        "openai",
        [
            {
                "type": "compaction",
                "opaque": {"kind": "encrypted", "value": "gAAAA", "provider": "openai"},
                "provider": "openai",
                "_meta": {"langgraph/block": {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}},
            }
        ],
    ),
    (
        "gemini code",
        {"type": "executable_code", "executable_code": "1+1", "language": "PYTHON", "id": "x"},
        "google_genai",
        [
            {
                "type": "code",
                "language": "python",
                "code": "1+1",
                "_meta": {
                    "langgraph/block": {
                        "type": "executable_code",
                        "executable_code": "1+1",
                        "language": "PYTHON",
                        "id": "x",
                    }
                },
            }
        ],
    ),
    (
        "what gemini code has printed",
        {"type": "code_execution_result", "code_execution_result": "2", "outcome": 2},
        "google_genai",
        [
            {
                "type": "code-result",
                "outcome": "failed",
                "output": "2",
                "_meta": {
                    "langgraph/block": {
                        "type": "code_execution_result",
                        "code_execution_result": "2",
                        "outcome": 2,
                    }
                },
            }
        ],
    ),
    (
        "an image by data address",
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lG", "detail": "low"}},
        "google_genai",
        [
            {
                "type": "image",
                "source": {"type": "base64", "mediaType": "image/gif", "data": "R0lG"},
                "providerMetadata": {"langgraph/fields": {"image_url": {"detail": "low"}}},
            }
        ],
    ),
    (
        "a generated image",
        {"type": "image_generation_call", "id": "ig_1", "result": "/9j/4AA", "status": "completed"},
        "openai",
        [
            {
                "type": "image",
                "source": {"type": "base64", "mediaType": "image/jpeg", "data": "/9j/4AA"},
                "providerMetadata": {
                    "langgraph/block": {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
                },
            }
        ],
    ),
    (
        "a file by its id",
        {"type": "file", "file_id": "file_1"},
        "openai",
        [{"type": "file", "source": {"type": "file", "fileId": "file_1"}}],
    ),
    (
        "a document of the Messages API",
        {"type": "document", "source": {"type": "url", "url": "https://a.test/a.pdf"}},
        None,
        [{"type": "document", "source": {"type": "url", "url": "https://a.test/a.pdf"}}],
    ),
    (
        "a block that nobody knows",
        {"type": "hologram", "beam": 7},
        "openai",
        [{"type": "provider-raw", "vendor": "openai", "raw": {"type": "hologram", "beam": 7}}],
    ),
    (
        "a block that nobody knows, in LangChain's form",
        {"type": "non_standard", "value": {"type": "hologram"}},
        None,
        [
            {
                "type": "provider-raw",
                "vendor": "langgraph",
                "raw": {"type": "non_standard", "value": {"type": "hologram"}},
            }
        ],
    ),
    (
        "a call in LangChain's form of a tool that the provider runs, and its result",
        {"type": "server_tool_call", "id": "s1", "name": "search", "args": {"q": 1}, "extras": {"signature": "c2ln"}},
        "google_genai",
        [
            {
                "type": "tool-call",
                "toolCallId": "s1",
                "name": "search",
                "input": {"q": 1},
                "providerExecuted": True,
                "signature": "c2ln",
            }
        ],
    ),
]


@pytest.mark.parametrize(("native", "provider", "expected"), [case[1:] for case in BLOCKS], ids=[c[0] for c in BLOCKS])
def test_a_block(native: dict[str, Any], provider: str | None, expected: Any) -> None:
    metadata = {} if provider is None else {"model_provider": provider}
    whole = ai([native], response_metadata=metadata)

    assert [to_dict(block) for block in read_blocks(whole)] == expected
    assert committed(whole) == expected
    assert streamed([chunk([{**native, "index": 0}], response_metadata=metadata), last()]) == expected


def test_a_text_is_one_block_whether_it_is_a_string_or_a_list() -> None:
    expected = [{"type": "text", "text": "Hello."}]

    assert committed(ai("Hello.")) == committed(ai(["Hello."])) == committed(ai([{"type": "text", "text": "Hello."}]))
    assert streamed([chunk("Hel"), chunk("lo."), last()]) == expected
    assert streamed([chunk(["Hel"]), chunk(""), chunk("lo."), chunk([]), last()]) == expected


def test_an_empty_message_has_no_blocks() -> None:
    assert committed(ai("")) == committed(ai([])) == committed(ai([""])) == []
    assert streamed([chunk(""), chunk([]), last()]) == []


def test_reasoning_beside_the_content_comes_first() -> None:
    deepseek = {"model_provider": "deepseek"}
    expected = [
        {
            "type": "reasoning",
            "text": "Let me see.",
            "provider": "deepseek",
            "providerMetadata": {"langgraph/from": "additional_kwargs"},
        },
        {"type": "text", "text": "42"},
    ]

    assert (
        streamed(
            [
                chunk(additional_kwargs={"reasoning_content": "Let me "}, response_metadata=deepseek),
                chunk(additional_kwargs={"reasoning_content": "see."}, response_metadata=deepseek),
                chunk("42", response_metadata=deepseek),
                last(),
            ]
        )
        == expected
    )
    kwargs = {"reasoning_content": "Let me see."}
    assert committed(ai("42", additional_kwargs=kwargs, response_metadata=deepseek)) == expected


def test_a_reasoning_item_beside_the_content() -> None:
    openai = {"model_provider": "openai"}
    parts = [
        {"id": "rs_1", "type": "reasoning", "summary": []},
        {"summary": [{"index": 0, "type": "summary_text", "text": "Hm"}]},
        {"summary": [{"index": 0, "type": "summary_text", "text": "."}]},
        {"encrypted_content": "gAA="},
    ]
    whole = {**parts[0], "summary": [{"index": 0, "type": "summary_text", "text": "Hm."}], "encrypted_content": "gAA="}

    found = committed(ai("42", additional_kwargs={"reasoning": whole}, response_metadata=openai))

    assert found == [
        {
            "type": "reasoning",
            "text": "Hm.",
            "opaque": {"kind": "encrypted", "value": "gAA=", "provider": "openai"},
            "provider": "openai",
            "providerMetadata": {"langgraph/from": "additional_kwargs"},
            "itemId": "rs_1",
        },
        {"type": "text", "text": "42"},
    ]
    chunks = [chunk(additional_kwargs={"reasoning": each}, response_metadata=openai) for each in parts]
    assert streamed([*chunks, chunk("42"), last()]) == found


def test_a_refusal_beside_the_content_is_text() -> None:
    assert committed(ai("", additional_kwargs={"refusal": "No."})) == [
        {"type": "text", "text": "No.", "providerMetadata": {"langgraph/from": "additional_kwargs"}}
    ]
    assert committed(ai("Yes.", additional_kwargs={"refusal": None})) == [{"type": "text", "text": "Yes."}]


@pytest.mark.parametrize(
    "content",
    [
        7,
        {"type": "text"},
        [7],
        [None],
        [["text"]],
        [{"no": "type"}],
        [{"type": 7}],
        [{"type": "text", "text": 7}],
        [{"type": "thinking", "thinking": ["x"]}],
        [{"type": "reasoning", "summary": "x"}],
        [{"type": "reasoning", "summary": [7]}],
        [{"type": "reasoning", "reasoning": {}}],
        [{"type": "reasoning_content", "reasoning_content": 7}],
        [{"type": "tool_use"}],
        [{"type": "tool_use", "id": 7, "name": 7}],
        [{"type": "function_call", "name": "x", "arguments": {}}],
        [{"type": "image_url", "image_url": 7}],
        [{"type": "image_url"}],
        [{"type": "image", "base64": 7}],
        [{"type": "web_search_call", "id": 7}],
        [{"type": "web_search_tool_result", "tool_use_id": 7}],
        [{"type": "server_tool_result"}],
        [{"type": "server_tool_call"}],
        [{"type": "non_standard", "value": {"type": "non_standard", "value": {}}}],
        [{"type": "code_execution_result", "outcome": []}],
        [{"type": "executable_code", "executable_code": 1}],
        [{"type": "image_generation_call", "result": 7}],
        [{"type": "text", "text": "x", "annotations": [7, {"type": "citation", "extras": 7}], "index": "0"}],
        [{"type": "input_json_delta", "index": 0}],
        [{"type": "input_json_delta", "partial_json": "{}", "index": 0}],
    ],
)
def test_content_of_any_other_shape_is_neither_lost_nor_fatal(content: Any) -> None:
    message = ai(content)

    read_blocks(message)
    whole = committed(message)
    live = streamed([chunk(content), last()])

    assert live == whole
    assert bool(whole) == (content not in ([None], {"type": "text"}))
