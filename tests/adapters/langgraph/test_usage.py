"""Tokens add up over the chunks of a message, and each provider's word for the end of one is understood."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.adapters.langgraph._usage import finish_reason, merge_usage, read_usage, sum_usage
from agjson.types import AgUsage
from tests.support.langgraph_messages import ROOT, Stream, chunk, last


def test_reports_of_chunks_add_up_details_too() -> None:
    first = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11, "input_token_details": {"cache_read": 4}}
    second = {"input_tokens": 0, "output_tokens": 5, "total_tokens": 5, "output_token_details": {"reasoning": 3}}

    assert merge_usage(merge_usage(None, first), second) == {
        "input_tokens": 10,
        "output_tokens": 6,
        "total_tokens": 16,
        "input_token_details": {"cache_read": 4},
        "output_token_details": {"reasoning": 3},
    }
    assert first["output_tokens"] == 1


def test_every_count_has_its_place() -> None:
    native = {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_token_details": {"cache_read": 30, "cache_creation": 40, "audio": 2},
        "output_token_details": {"reasoning": 12},
    }

    assert read_usage(native) == AgUsage(
        input_tokens=100,
        output_tokens=20,
        total_tokens=120,
        cache_read_tokens=30,
        cache_write_tokens=40,
        reasoning_tokens=12,
    )


def test_what_was_written_to_the_cache_by_how_long_it_stays() -> None:
    details = {"cache_creation": 0, "ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 2}

    assert read_usage({"input_tokens": 9, "input_token_details": details}) == AgUsage(
        input_tokens=9, cache_write_tokens=9
    )


@pytest.mark.parametrize(
    "native", [None, {}, {"input_tokens": None}, {"input_tokens": "3"}, {"input_tokens": True}, []]
)
def test_no_count_is_no_usage(native: Any) -> None:
    assert read_usage(native) is None


def test_messages_of_a_turn_add_up() -> None:
    one, other = AgUsage(input_tokens=1, output_tokens=2), AgUsage(input_tokens=3, reasoning_tokens=4)

    assert sum_usage(one, other) == AgUsage(input_tokens=4, output_tokens=2, reasoning_tokens=4)
    assert sum_usage(None, other) == other
    assert sum_usage(None, None) is None


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stop_reason": "max_tokens"}, "token_limit"),
        ({"stop_reason": "tool_use"}, "tool_call"),
        ({"stop_reason": "pause_turn"}, "pause_turn"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"finish_reason": "length"}, "token_limit"),
        ({"finish_reason": "tool_calls"}, "tool_call"),
        ({"finish_reason": "content_filter"}, "safety_blocked"),
        ({"finish_reason": "STOP"}, "stop"),
        ({"finish_reason": "MAX_TOKENS"}, "token_limit"),
        ({"finish_reason": "MALFORMED_FUNCTION_CALL"}, "malformed_tool_call"),
        ({"finish_reason": "FinishReason.SAFETY"}, "safety_blocked"),
        ({"finish_reason": "not seen before"}, "unknown"),
        ({"stopReason": "guardrail_intervened"}, "safety_blocked"),
        ({"status": "completed"}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "token_limit"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "safety_blocked"),
        ({"status": "incomplete", "incomplete_details": None}, "unknown"),
        ({}, None),
        (None, None),
        ({"finish_reason": 7}, None),
    ],
)
def test_finish_reasons(metadata: Any, expected: str | None) -> None:
    assert finish_reason(metadata) == expected


def test_a_model_that_calls_tools_has_not_just_stopped() -> None:
    assert finish_reason({"finish_reason": "STOP"}, calls=True) == "tool_call"
    assert finish_reason({}, calls=True) == "tool_call"
    assert finish_reason({"finish_reason": "length"}, calls=True) == "token_limit"


def test_arguments_that_are_cut_off_end_as_the_provider_says_or_as_malformed() -> None:
    assert finish_reason({"finish_reason": "tool_calls"}, calls=True, malformed=True) == "malformed_tool_call"
    assert finish_reason({"stop_reason": "max_tokens"}, calls=True, malformed=True) == "token_limit"


def test_the_usage_of_a_message_is_that_of_all_its_chunks() -> None:
    stream = Stream()
    stream.take(
        chunk("Hi", usage_metadata={"input_tokens": 8, "output_tokens": 0, "total_tokens": 8}),
        chunk("", usage_metadata={"input_tokens": 0, "output_tokens": 2, "total_tokens": 2}),
    )
    assert stream.runs.usage("t1") == AgUsage(input_tokens=8, output_tokens=2, total_tokens=10)

    (*_, metadata, end) = stream.take(last(response_metadata={"finish_reason": "stop"}))

    assert metadata["metadata"]["langgraph/usageMetadata"] == {
        "input_tokens": 8,
        "output_tokens": 2,
        "total_tokens": 10,
    }
    assert end == {
        "type": "message.end",
        "id": "lc_run--1",
        "usage": {"inputTokens": 8, "outputTokens": 2, "totalTokens": 10},
    }
    assert stream.runs.usage("t1") == AgUsage(input_tokens=8, output_tokens=2, total_tokens=10)
    assert stream.runs.finish_reason("t1") == "stop"


def test_usage_that_comes_after_the_end_counts_once_more_and_opens_nothing() -> None:
    stream = Stream()
    stream.take(chunk("Hi"), last(usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}))

    (late,) = stream.take(chunk("", usage_metadata={"input_tokens": 4, "output_tokens": 0, "total_tokens": 4}))

    assert late["type"] == "message.metadata"
    assert late["metadata"] == {"langgraph/usageMetadata": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}}
    assert stream.runs.usage("t1") == AgUsage(input_tokens=5, output_tokens=2, total_tokens=7)


def test_a_turn_sums_up_what_was_not_committed_too() -> None:
    stream = Stream()
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    stream.take(chunk("a"), last(usage_metadata=usage))
    stream.take(chunk("b", "lc_run--2"), last("lc_run--2", usage_metadata=usage), key=2)
    stream.runs.end_task("task-1", "model", scope=ROOT)

    assert stream.runs.usage("t1") == AgUsage(input_tokens=2, output_tokens=2, total_tokens=4)
    assert stream.runs.usage("another turn") is None
