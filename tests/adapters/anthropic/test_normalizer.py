"""What each native event and block becomes (spec §8 items 1, 2, 4, 9, 13)."""

from __future__ import annotations

import json

import pytest

from agjson.types import CharCitation, TextEnd
from agjson.wire import encode
from tests.support.anthropic_wire import START, STOP, Native, block, content, end, message, normalize, plain, text, view
from tests.support.anthropic_wire import sound as folded

THINKING = {"type": "thinking", "thinking": "", "signature": ""}


def test_a_text_stream_becomes_these_events() -> None:
    events = normalize([START, {"type": "ping"}, *text("Hel", "lo"), *end()])

    assert plain(events) == [
        {"type": "turn.start"},
        {"type": "message.start", "id": "msg_1", "role": "assistant", "model": "claude-test"},
        {"type": "text.start", "id": "msg_1:text:0", "index": 0},
        {"type": "text.delta", "id": "msg_1:text:0", "delta": "Hel"},
        {"type": "text.delta", "id": "msg_1:text:0", "delta": "lo"},
        {"type": "text.end", "id": "msg_1:text:0"},
        {
            "type": "message.metadata",
            "metadata": {
                "anthropic/stopReason": "end_turn",
                "anthropic/usage": {"input_tokens": 10, "output_tokens": 5},
            },
        },
        {"type": "message.end", "id": "msg_1", "usage": {"inputTokens": 10, "outputTokens": 5, "cumulative": True}},
        {
            "type": "turn.done",
            "outcome": {"type": "success"},
            "finishReason": "stop",
            "usage": {"inputTokens": 10, "outputTokens": 5, "cumulative": True},
        },
    ]


def test_text_that_the_start_brings_comes_first() -> None:
    events = normalize([START, *block({"type": "text", "text": "A"}, {"type": "text_delta", "text": "B"}), *end()])

    assert content(events) == [{"type": "text", "text": "AB"}]


def test_an_empty_text_block_stays_an_empty_block() -> None:
    events = normalize([START, *text(), *end()])

    assert "text.delta" not in [event.type for event in events]
    assert content(events) == [{"type": "text", "text": ""}]


def test_a_message_ends_the_blocks_that_nothing_has_ended() -> None:
    events = normalize([START, *text("Hello")[:-1], *end()])

    assert [event.type for event in events][-4:] == ["text.end", "message.metadata", "message.end", "turn.done"]
    assert content(events) == [{"type": "text", "text": "Hello"}]


# Thinking


def test_thinking_with_its_signature() -> None:
    deltas: list[Native] = [
        {"type": "thinking_delta", "thinking": "Let me"},
        {"type": "thinking_delta", "thinking": " see."},
        {"type": "signature_delta", "signature": "EqQBCg=="},
    ]
    events = normalize([START, *block(THINKING, *deltas), *end()])

    assert plain(events)[2:7] == [
        {"type": "reasoning.start", "id": "msg_1:reasoning:0"},
        {"type": "reasoning.delta", "id": "msg_1:reasoning:0", "delta": "Let me"},
        {"type": "reasoning.delta", "id": "msg_1:reasoning:0", "delta": " see."},
        {
            "type": "reasoning.opaque",
            "id": "msg_1:reasoning:0",
            "kind": "signature",
            "value": "EqQBCg==",
            "provider": "anthropic",
        },
        {"type": "reasoning.end", "id": "msg_1:reasoning:0", "provider": "anthropic"},
    ]
    assert content(events) == [
        {
            "type": "reasoning",
            "text": "Let me see.",
            "opaque": {"kind": "signature", "value": "EqQBCg==", "provider": "anthropic"},
            "provider": "anthropic",
        }
    ]


@pytest.mark.parametrize(
    ("start", "deltas", "value"),
    [
        ("", ["AAA", "BBB"], "BBB"),
        ("", ["AAA", ""], "AAA"),
        ("SSS", [], "SSS"),
        ("SSS", ["AAA"], "AAA"),
        ("", [""], None),
        (None, [], None),
    ],
)
def test_of_several_signatures_the_last_that_is_not_empty_counts(
    start: str | None, deltas: list[str], value: str | None
) -> None:
    native = {"type": "thinking", "thinking": "x"} | ({} if start is None else {"signature": start})
    signatures = [{"type": "signature_delta", "signature": delta} for delta in deltas]
    (found,) = content(normalize([START, *block(native, *signatures), *end()]))

    assert found.get("opaque", {}).get("value") == value


def test_thinking_that_is_not_shown_keeps_its_signature() -> None:
    (found,) = content(normalize([START, *block(THINKING, {"type": "signature_delta", "signature": "Ep0C"}), *end()]))

    assert found["text"] == ""
    assert found["opaque"]["value"] == "Ep0C"


def test_a_guess_of_thinking_tokens_is_shown_and_not_stored() -> None:
    delta = {"type": "thinking_delta", "thinking": "", "estimated_tokens": 128}
    events = normalize([START, *block(THINKING, delta), *end()])

    (shown,) = [event for event in plain(events) if event["type"] == "reasoning.delta"]
    assert shown == {
        "type": "reasoning.delta",
        "id": "msg_1:reasoning:0",
        "delta": "",
        "_meta": {"anthropic/estimatedTokens": 128},
    }
    assert "128" not in json.dumps(content(events))


def test_redacted_thinking() -> None:
    events = normalize([START, *block({"type": "redacted_thinking", "data": "EmwKAh=="}), *end()])

    assert content(events) == [
        {
            "type": "reasoning",
            "text": "",
            "opaque": {"kind": "redacted", "value": "EmwKAh==", "provider": "anthropic"},
            "provider": "anthropic",
        }
    ]


# Citations


def citation(kind: str, **fields: object) -> Native:
    return {"type": kind, "cited_text": "cited", **fields}


CITATIONS = [
    (
        citation(
            "char_location", document_index=1, document_title="T", start_char_index=3, end_char_index=9, file_id="f"
        ),
        {
            "kind": "char",
            "citedText": "cited",
            "source": "f",
            "title": "T",
            "indexFrame": "source",
            "documentIndex": 1,
            "startCharIndex": 3,
            "endCharIndex": 9,
            "unit": "char",
            "bounds": "[start,end)",
        },
    ),
    (
        citation("page_location", document_index=0, document_title=None, start_page_number=1, end_page_number=2),
        {
            "kind": "page",
            "citedText": "cited",
            "indexFrame": "source",
            "documentIndex": 0,
            "startPage": 1,
            "endPage": 2,
        },
    ),
    (
        citation(
            "content_block_location", document_index=0, document_title="D", start_block_index=0, end_block_index=1
        ),
        {
            "kind": "block",
            "citedText": "cited",
            "title": "D",
            "indexFrame": "source",
            "documentIndex": 0,
            "startBlockIndex": 0,
            "endBlockIndex": 1,
        },
    ),
    (
        citation(
            "search_result_location",
            search_result_index=2,
            source="s",
            title="t",
            start_block_index=0,
            end_block_index=1,
        ),
        {
            "kind": "block",
            "citedText": "cited",
            "source": "s",
            "title": "t",
            "indexFrame": "source",
            "documentIndex": 2,
            "startBlockIndex": 0,
            "endBlockIndex": 1,
        },
    ),
    (
        citation("web_search_result_location", url="https://a.example", title="A", encrypted_index="Eo8BCi=="),
        {
            "kind": "url",
            "citedText": "cited",
            "title": "A",
            "encryptedIndex": "Eo8BCi==",
            "url": "https://a.example",
        },
    ),
]


@pytest.mark.parametrize(("native", "neutral"), CITATIONS, ids=[native["type"] for native, _ in CITATIONS])
def test_citations_end_the_text_and_are_kept_whole(native: Native, neutral: Native) -> None:
    deltas: list[Native] = [{"type": "citations_delta", "citation": native}, {"type": "text_delta", "text": "so"}]
    (found,) = content(normalize([START, *block({"type": "text", "text": "", "citations": []}, *deltas), *end()]))

    assert found == {
        "type": "text",
        "text": "so",
        "citations": [neutral],
        "providerMetadata": {"anthropic/citations": [native]},
    }


def test_citations_of_the_start_come_before_those_of_the_deltas() -> None:
    first, second = CITATIONS[0][0], CITATIONS[4][0]
    native = {"type": "text", "text": "", "citations": [first]}
    (found,) = content(normalize([START, *block(native, {"type": "citations_delta", "citation": second}), *end()]))

    assert [each["kind"] for each in found["citations"]] == ["char", "url"]


@pytest.mark.parametrize("citations", [None, []])
def test_no_citations_make_no_carrier(citations: list[Native] | None) -> None:
    events = normalize([START, *block({"type": "text", "text": "a", "citations": citations}), *end()])

    assert content(events) == [{"type": "text", "text": "a"}]


def test_a_citation_of_an_unknown_kind_is_kept_whole() -> None:
    odd = citation("line_location", line=4)
    (found,) = content(
        normalize([START, *block({"type": "text", "text": "a"}, {"type": "citations_delta", "citation": odd}), *end()])
    )

    assert "citations" not in found
    assert found["providerMetadata"] == {"anthropic/citations": [odd]}


def test_a_citation_reads_as_its_class() -> None:
    deltas: list[Native] = [{"type": "citations_delta", "citation": CITATIONS[0][0]}]
    events = normalize([START, *block({"type": "text", "text": ""}, *deltas), *end()])

    (ended,) = [event for event in events if isinstance(event, TextEnd)]
    assert ended.citations is not None
    assert isinstance(ended.citations[0], CharCitation)


# Other blocks


def test_a_compaction_is_stored_with_its_native_form() -> None:
    native = {
        "type": "compaction",
        "content": None,
        "encrypted_content": None,
        "tool_changes": [{"type": "tool_removal"}],
    }
    deltas: list[Native] = [
        {"type": "compaction_delta", "content": "The user ", "encrypted_content": "Aa=="},
        {"type": "compaction_delta", "content": "asks.", "encrypted_content": None},
        {"type": "signature_delta", "signature": "Sg=="},
    ]
    events = normalize([START, *block(native, *deltas), *end("compaction")])

    assert content(events) == [
        {
            "type": "compaction",
            "text": "The user asks.",
            "opaque": {"kind": "ciphertext", "value": "Aa==", "provider": "anthropic"},
            "provider": "anthropic",
            "_meta": {
                "anthropic/compaction": {
                    "type": "compaction",
                    "content": "The user asks.",
                    "encrypted_content": "Aa==",
                    "signature": "Sg==",
                    "tool_changes": [{"type": "tool_removal"}],
                }
            },
        }
    ]
    assert view(folded(events))["turns"][0]["finishReason"] == "pause_turn"


def test_a_signature_is_the_opaque_value_of_a_compaction_without_ciphertext() -> None:
    native = {"type": "compaction", "content": "C", "signature": "Sg=="}
    (found,) = content(normalize([START, *block(native), *end()]))

    assert found["opaque"] == {"kind": "signature", "value": "Sg==", "provider": "anthropic"}


def test_an_upload_is_a_file() -> None:
    events = normalize([START, *block({"type": "container_upload", "file_id": "file_1"}), *end()])

    assert content(events) == [{"type": "file", "source": {"type": "file", "fileId": "file_1"}}]


def test_a_listing_of_mcp_tools_is_kept_raw() -> None:
    native = {"type": "mcp_tool_listing", "mcp_server_name": "wiki", "tools": [{"name": "ask", "input_schema": {}}]}
    events = normalize([START, *block(native), *end()])

    assert content(events) == [{"type": "provider-raw", "vendor": "anthropic", "raw": native}]


def test_a_fallback_stays_in_its_place_and_names_the_model_that_goes_on() -> None:
    seam = {
        "type": "fallback",
        "from": {"model": "one"},
        "to": {"model": "two"},
        "trigger": {"type": "refusal", "category": "bio"},
    }
    events = normalize([START, *text("A"), *block(seam, index=1), *text("B", index=2), *end()])

    assert {"type": "ext.anthropic.frame", "kind": "fallback", "frame": seam} in plain(events)
    (only,) = view(folded(events))["messages"]
    assert only["content"] == [
        {"type": "text", "text": "A"},
        {"type": "provider-raw", "vendor": "anthropic", "raw": seam},
        {"type": "text", "text": "B"},
    ]
    assert only["metadata"]["anthropic/servedBy"] == "two"


# Stops


@pytest.mark.parametrize(
    ("native", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "token_limit"),
        ("tool_use", "tool_call"),
        ("pause_turn", "pause_turn"),
        ("compaction", "pause_turn"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context_window_exceeded"),
        ("moon_phase", "unknown"),
        (None, "unknown"),
    ],
)
def test_every_stop_reason_ends_the_turn_with_success(native: str | None, finish: str) -> None:
    (turn,) = view(folded(normalize([START, *text("x"), *end(native)])))["turns"]

    assert turn["outcome"] == {"type": "success"}
    assert turn["finishReason"] == finish
    assert "asks" not in turn


def test_the_stop_sequence_is_kept() -> None:
    (only,) = view(folded(normalize([START, *end("stop_sequence", stop_sequence="###")])))["messages"]

    assert only["metadata"]["anthropic/stopSequence"] == "###"


@pytest.mark.parametrize(
    ("details", "category"), [({"type": "refusal", "category": "cyber"}, "cyber"), (None, "refusal")]
)
def test_a_refusal_is_a_safety_rating(details: Native | None, category: str) -> None:
    result = view(folded(normalize([START, *end("refusal", stop_details=details)])))

    assert result["turns"][0]["safety"] == [{"category": category, "blocked": True}]
    assert result["messages"][0]["metadata"].get("anthropic/stopDetails") == details


def test_what_the_message_tells_of_itself_is_kept_whole() -> None:
    container = {"id": "container_1", "expires_at": "2026-11-30T12:00:00Z", "skills": None}
    diagnostics = {"cache_miss_reason": {"type": "model_changed", "cache_missed_input_tokens": 5}}
    edits = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2}]}
    changes = [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"},
        {"type": "thinking_mismatch_allowed", "path": "messages.3.content.0", "reason": "model_binding_mismatch"},
    ]
    start = {"type": "message_start", "message": {**START["message"], "diagnostics": diagnostics}}
    delta, stop = end("end_turn", container=container)
    natives = [start, {**delta, "context_management": edits, "input_transformations": changes}, stop]
    events = normalize(natives)

    metadata = view(folded(events))["messages"][0]["metadata"]
    assert metadata["anthropic/container"] == container
    assert metadata["anthropic/diagnostics"] == diagnostics
    assert metadata["anthropic/contextManagement"] == edits
    assert metadata["anthropic/inputTransformations"] == changes
    errors = [event for event in plain(events) if event["type"] == "error"]
    assert [error["code"] for error in errors] == ["thinking_dropped"]
    assert "messages.1.content.0" in errors[0]["message"]


# Usage


def usage_of(start: Native, *deltas: Native) -> Native:
    natives: list[Native] = [{"type": "message_start", "message": {**START["message"], "usage": start}}]
    natives += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": delta} for delta in deltas]
    result = view(folded(normalize([*natives, STOP])))
    usage = result["turns"][0]["usage"]
    assert usage == result["messages"][0]["usage"]
    assert isinstance(usage, dict)
    return usage


def test_usage_is_the_running_total_and_null_takes_nothing_back() -> None:
    usage = usage_of(
        {"input_tokens": 10, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 1},
        {"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 4},
        {"input_tokens": 12, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 6}},
    )

    assert usage == {
        "inputTokens": 12,
        "outputTokens": 9,
        "cacheReadTokens": 7,
        "cacheWriteTokens": 3,
        "reasoningTokens": 6,
        "cumulative": True,
    }


def test_usage_of_a_gateway_that_reports_it_at_the_end_alone() -> None:
    assert usage_of({}, {"input_tokens": 8, "output_tokens": 2}) == {
        "inputTokens": 8,
        "outputTokens": 2,
        "cumulative": True,
    }


def test_server_tool_requests_are_summed() -> None:
    usage = usage_of({"input_tokens": 1}, {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 1}})

    assert usage["serverToolRequests"] == 3


def test_iterations_that_name_a_model_are_told_apart() -> None:
    def iteration(kind: str, count: int, **model: str) -> Native:
        return {"type": kind, "input_tokens": count, "output_tokens": 1, "cache_read_input_tokens": 0, **model}

    usage = usage_of(
        {"input_tokens": 1},
        {
            "iterations": [
                iteration("message", 5, model="one"),
                iteration("compaction", 100),
                iteration("advisor_message", 7, model="two"),
                iteration("message", 6, model="one"),
            ]
        },
    )

    assert usage["inputTokens"] == 1
    assert usage["byModel"] == {
        "one": {"inputTokens": 11, "outputTokens": 2, "cacheReadTokens": 0},
        "two": {"inputTokens": 7, "outputTokens": 1, "cacheReadTokens": 0, "cumulative": True},
    }


def test_the_native_usage_is_kept_whole() -> None:
    usage = {"input_tokens": 1, "service_tier": "priority", "inference_geo": "us", "speed": "fast"}
    credit = {"output_tokens": 2, "fallback_credit": {"status": {"type": "redeemed"}}}
    natives: list[Native] = [
        {"type": "message_start", "message": {**START["message"], "usage": usage}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": credit},
        STOP,
    ]

    (only,) = view(folded(normalize(natives)))["messages"]
    assert only["metadata"]["anthropic/usage"] == {**usage, **credit}


# Whole messages


def test_a_whole_message_makes_the_events_of_the_stream() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "Ep0C"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": 1}, "caller": {"type": "direct"}}
    streamed = normalize(
        [
            START,
            *block(
                THINKING,
                {"type": "thinking_delta", "thinking": "Hm."},
                {"type": "signature_delta", "signature": "Ep0C"},
            ),
            *text("Let me look.", index=1),
            *block({**call, "input": {}}, {"type": "input_json_delta", "partial_json": '{"q": 1}'}, index=2),
            *end("tool_use"),
        ]
    )
    whole = normalize([message(thinking, {"type": "text", "text": "Let me look."}, call, stop_reason="tool_use")])

    assert view(folded(whole)) == view(folded(streamed))
    assert [event.type for event in whole].count("text.delta") == 1


def test_a_message_parameter_is_read_as_a_message() -> None:
    events = normalize([{"role": "assistant", "content": "Hello."}, *[START, *text("x"), *end()]], multi=True)

    first, second = view(folded(events))["messages"]
    assert first["content"] == [{"type": "text", "text": "Hello."}]
    assert first["id"] == "t1:message:0"
    assert second["id"] == "msg_1"


def test_the_second_report_of_a_message_is_not_a_second_message() -> None:
    natives = [START, *text("Hello."), *end()]
    events = normalize([*natives, message({"type": "text", "text": "Hello."})], multi=True)

    assert len(view(folded(events))["messages"]) == 1
    assert [event["code"] for event in plain(events) if event["type"] == "error"] == ["duplicate_event"]


def test_events_encode() -> None:
    for event in normalize([START, *text("a\ud83d", "\ude00b"), *end()]):
        json.loads(encode(event))
    assert content(normalize([START, *text("a\ud83d", "\ude00b"), *end()])) == [{"type": "text", "text": "a😀b"}]
