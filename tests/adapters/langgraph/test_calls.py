"""Calls of tools: in fragments and whole, told apart by run, index and id, and never repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agjson.adapters.langgraph._calls import read_arguments
from agjson.adapters.langgraph._content import read_blocks
from agjson.types import ToolCallBlock
from agjson.wire import to_dict
from tests.support.langgraph_messages import Stream, ai, blocks, chunk, committed, last, part, streamed


def fragments(*parts: dict[str, Any], **members: Any) -> list[dict[str, Any]]:
    """One chunk for each fragment."""
    return [chunk(tool_call_chunks=[each], **members) for each in parts]


def calls(*parts: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """The calls that fragments fold to, as id, name and arguments."""
    found = streamed([*fragments(*parts), last()])
    return [(each["toolCallId"], each["name"], each["input"]) for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ({}, True)),
        (" \n", ({}, True)),
        ('{"x": 1}', ({"x": 1}, True)),
        ('{"x":1', ('{"x":1', False)),
        ("[1]", ("[1]", False)),
        ('"x"', ('"x"', False)),
        ("null", ("null", False)),
        ('{"x": NaN}', ('{"x": NaN}', False)),
        ('{"x": 1} {}', ('{"x": 1} {}', False)),
        ("[" * 100_000, ("[" * 100_000, False)),
    ],
)
def test_arguments_are_read_strictly(text: str, expected: Any) -> None:
    assert read_arguments(text) == expected


def test_a_call_in_fragments() -> None:
    stream = Stream()

    events = stream.take(
        *fragments(part("look", "", "c1", 0), part(None, '{"q":', None, 0), part(None, " 1}", None, 0)), last()
    )

    assert [event for event in events if event["type"].startswith("tool.")] == [
        {"type": "tool.start", "toolCallId": "c1", "name": "look", "messageId": "lc_run--1"},
        {"type": "tool.args.delta", "toolCallId": "c1", "delta": '{"q":', "messageId": "lc_run--1"},
        {"type": "tool.args.delta", "toolCallId": "c1", "delta": " 1}", "messageId": "lc_run--1"},
        {"type": "tool.args.assembled", "toolCallId": "c1", "input": {"q": 1}, "messageId": "lc_run--1"},
    ]


def test_a_call_in_one_piece_loses_nothing() -> None:
    assert calls(part("look", '{"q": 1}', "c1", 0)) == [("c1", "look", {"q": 1})]
    assert calls(part("look", '{"q": 1}', "c1", None)) == [("c1", "look", {"q": 1})]


def test_a_call_without_arguments_has_none() -> None:
    assert calls(part("look", "", "c1", 0)) == [("c1", "look", {})]
    assert calls(part("look", None, "c1", 0)) == [("c1", "look", {})]


def test_parallel_calls_do_not_mix() -> None:
    assert calls(
        part("a", "", "c1", 0),
        part("b", "", "c2", 1),
        part(None, '{"x": ', None, 1),
        part(None, '{"y": ', None, 0),
        part(None, "1}", None, 1),
        part(None, "2}", None, 0),
    ) == [("c1", "a", {"y": 2}), ("c2", "b", {"x": 1})]


def test_a_new_id_is_a_new_call_under_the_same_index() -> None:
    assert calls(
        part("a", '{"x": 1', "c1", 0), part(None, "}", None, 0), part("b", '{"y"', "c2", 0), part(None, ": 2}", None, 0)
    ) == [("c1", "a", {"x": 1}), ("c2", "b", {"y": 2})]


def test_whole_calls_without_an_index_are_several() -> None:
    assert calls(part("a", '{"x": 1}', "c1", None), part("a", '{"x": 2}', "c2", None)) == [
        ("c1", "a", {"x": 1}),
        ("c2", "a", {"x": 2}),
    ]


def test_a_whole_call_again_under_the_same_id_is_another_one() -> None:
    assert calls(part("a", '{"x": 1}', "c1", None), part("a", '{"x": 2}', "c1", None)) == [
        ("c1", "a", {"x": 1}),
        ("c1#2", "a", {"x": 2}),
    ]


def test_calls_of_one_chunk_keep_their_order() -> None:
    found = streamed([chunk(tool_call_chunks=[part("a", "", "c1", 0), part("b", "", "c2", 1)]), last()])

    assert [each["toolCallId"] for each in found] == ["c1", "c2"]


def test_a_fragment_with_neither_index_nor_id_goes_to_the_last_call() -> None:
    assert calls(part("a", '{"x"', "c1", None), part(None, ": 1}", None, None)) == [("c1", "a", {"x": 1})]


def test_an_id_and_a_name_that_each_chunk_repeats_are_said_once() -> None:
    assert calls(part("look", '{"x"', "c1", 0), part("look", ": 1}", "c1", 0)) == [("c1", "look", {"x": 1})]


def test_a_name_in_fragments() -> None:
    assert calls(part("get_", None, "c1", 0), part("weather", None, None, 0), part(None, "{}", None, 0)) == [
        ("c1", "get_weather", {})
    ]


def test_arguments_before_any_name_are_not_lost() -> None:
    ((id, name, input),) = calls(part(None, '{"x": 1}', None, 0))

    assert (id, name, input) == ("t1:tool:0", "unknown", {"x": 1})


@pytest.mark.parametrize("raw", ['{"x": 1', '{"x": [1, 2', "[1]", "7", "nonsense"])
def test_arguments_that_are_no_object_stay_as_they_came(raw: str) -> None:
    stream = Stream()

    events = stream.take(
        *fragments(part("look", raw, "c1", 0)), last(response_metadata={"finish_reason": "tool_calls"})
    )

    (assembled,) = [event for event in events if event["type"] == "tool.args.assembled"]
    assert assembled["input"] == raw
    assert assembled["providerMetadata"] == {"langgraph/invalid": True}
    assert [event["code"] for event in events if event["type"] == "error"] == ["malformed_tool_call"]
    assert stream.runs.finish_reason("t1") == "malformed_tool_call"


def test_a_call_that_the_token_limit_cuts_off_says_so() -> None:
    stream = Stream()
    stream.take(*fragments(part("look", '{"x": 1', "c1", 0)), last(response_metadata={"finish_reason": "length"}))

    assert stream.runs.finish_reason("t1") == "token_limit"


def test_the_repair_that_langchain_commits_does_not_undo_the_raw_text() -> None:
    stream = Stream()
    stream.take(*fragments(part("look", '{"x": 1', "c1", 0)), last())

    assert stream.commit(ai(id="lc_run--1", tool_calls=[{"name": "look", "args": {"x": 1}, "id": "c1"}])) == []
    assert not stream.runs.take_resync()
    stream.end()
    assert blocks(stream.events)[0]["input"] == '{"x": 1'


def test_raw_text_in_the_content_unmasks_a_repair_in_a_whole_message() -> None:
    native = {"type": "tool_use", "id": "c1", "name": "look", "input": {}, "partial_json": '{"x": 1', "index": 0}
    message = ai(
        [native],
        response_metadata={"model_provider": "anthropic", "stop_reason": "max_tokens"},
        tool_calls=[{"name": "look", "args": {"x": 1}, "id": "c1"}],
    )

    (block,) = read_blocks(message)

    assert to_dict(block) == {
        "type": "tool-call",
        "toolCallId": "c1",
        "name": "look",
        "input": '{"x": 1',
        "providerMetadata": {"langgraph/invalid": True},
    }


def test_the_list_of_calls_counts_where_the_content_is_older() -> None:
    native = {"type": "tool_use", "id": "c1", "name": "look", "input": {"x": 1}}

    (block,) = read_blocks(ai([native], tool_calls=[{"name": "look", "args": {"x": 2}, "id": "c1"}]))

    assert isinstance(block, ToolCallBlock)
    assert block.input == {"x": 2}


def test_invalid_calls_are_told() -> None:
    invalid = [{"name": "look", "args": '{"x', "id": "c1", "error": "unterminated", "type": "invalid_tool_call"}]

    assert committed(ai(invalid_tool_calls=invalid)) == [
        {
            "type": "tool-call",
            "toolCallId": "c1",
            "name": "look",
            "input": '{"x',
            "providerMetadata": {"langgraph/invalid": "unterminated"},
        }
    ]


def test_a_call_keeps_what_its_provider_says_beside_it() -> None:
    anthropic = {"model_provider": "anthropic"}
    opening = {
        "type": "tool_use",
        "id": "c1",
        "name": "look",
        "input": {},
        "caller": {"type": "direct"},
        "toolset_name": None,
        "index": 0,
    }
    delta = {"type": "input_json_delta", "partial_json": '{"x": 1}', "index": 0}

    assert streamed(
        [
            chunk([opening], tool_call_chunks=[part("look", "", "c1", 0)], response_metadata=anthropic),
            chunk([delta], tool_call_chunks=[part(None, '{"x": 1}', None, 0)], response_metadata=anthropic),
            last(),
        ]
    ) == [
        {
            "type": "tool-call",
            "toolCallId": "c1",
            "name": "look",
            "input": {"x": 1},
            "providerMetadata": {"caller": {"type": "direct"}},
        }
    ]


def test_an_item_of_the_responses_api_keeps_its_own_id() -> None:
    openai = {"model_provider": "openai"}
    opening = {"type": "function_call", "name": "look", "arguments": "", "call_id": "c1", "id": "fc_1", "index": 0}
    more = {"type": "function_call", "arguments": "{}", "index": 0}

    assert streamed(
        [
            chunk([opening], tool_call_chunks=[part("look", "", "c1", 0)], response_metadata=openai),
            chunk([more], tool_call_chunks=[part(None, "{}", None, 0)], response_metadata=openai),
            last(),
        ]
    ) == [{"type": "tool-call", "toolCallId": "c1", "name": "look", "input": {}, "itemId": "fc_1"}]


def test_gemini_signs_a_call_beside_the_content() -> None:
    kwargs = {"__gemini_function_call_thought_signatures__": {"c1": "c2lnbmVk"}, "function_call": {"name": "look"}}
    google = {"model_provider": "google_genai"}
    expected = [
        {"type": "tool-call", "toolCallId": "c1", "name": "look", "input": {}, "signature": "c2lnbmVk"},
        {"type": "tool-call", "toolCallId": "c2", "name": "look", "input": {}},
    ]

    assert (
        streamed(
            [
                chunk(
                    tool_call_chunks=[part("look", "{}", "c1", 0)], additional_kwargs=kwargs, response_metadata=google
                ),
                chunk(tool_call_chunks=[part("look", "{}", "c2", 1)], response_metadata=google),
                last(),
            ]
        )
        == expected
    )
    listed = [{"name": "look", "args": {}, "id": id} for id in ("c1", "c2")]
    assert committed(ai(tool_calls=listed, additional_kwargs=kwargs, response_metadata=google)) == expected


def test_bedrock_streams_arguments_in_the_content_and_beside_it() -> None:
    opening = {"type": "tool_use", "id": "c1", "name": "look", "input": None, "index": 1}
    more = {"type": "tool_use", "id": None, "name": None, "input": '{"x": 1}', "index": 1}

    assert streamed(
        [
            chunk([{"type": "text", "text": "Well.", "index": 0}]),
            chunk([opening], tool_call_chunks=[part("look", None, "c1", 1)]),
            chunk([more], tool_call_chunks=[part(None, '{"x": 1}', None, 1)]),
            last(),
        ]
    ) == [
        {"type": "text", "text": "Well."},
        {"type": "tool-call", "toolCallId": "c1", "name": "look", "input": {"x": 1}},
    ]


def test_a_tool_of_the_providers_is_run_by_the_provider() -> None:
    anthropic = {"model_provider": "anthropic"}
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [{"type": "web_search_result", "url": "https://a.test", "title": "A", "encrypted_content": "eA=="}],
        "index": 1,
    }
    stream = Stream()

    stream.take(
        chunk([{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}, "index": 0}]),
        chunk([{"type": "input_json_delta", "partial_json": '{"query": "a"}', "index": 0}]),
        chunk([result]),
        last(response_metadata={**anthropic, "stop_reason": "end_turn"}),
    )

    assert stream.runs.finish_reason("t1") == "stop"
    stream.end()
    call, done = blocks(stream.events)
    assert (call["name"], call["input"], call["providerExecuted"]) == ("web_search", {"query": "a"}, True)
    assert done["toolCallId"] == "s1"
    assert done["content"][0]["opaque"] == {"kind": "ciphertext", "value": "eA==", "provider": "anthropic"}
    native = {name: value for name, value in result.items() if name != "index"}
    assert done["providerMetadata"] == {"anthropic/block": native}


@pytest.mark.parametrize(
    ("item", "name", "input", "content"),
    [
        (
            {"type": "web_search_call", "action": {"type": "search", "query": "a"}, "status": "completed"},
            "web_search",
            {"type": "search", "query": "a"},
            None,
        ),
        (
            {"type": "code_interpreter_call", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
            "code_interpreter",
            {"code": "1+1"},
            [{"type": "code-result", "outcome": "ok", "output": "2"}],
        ),
        (
            {"type": "mcp_call", "name": "ask", "server_label": "wiki", "arguments": '{"q": 1}', "output": "yes"},
            "ask",
            {"q": 1},
            [{"type": "text", "text": "yes"}],
        ),
        (
            {"type": "file_search_call", "queries": ["q"], "results": [{"file_id": "f", "text": "t"}]},
            "file_search",
            {"queries": ["q"]},
            [{"type": "data", "name": "file_search_result", "data": {"file_id": "f", "text": "t"}}],
        ),
    ],
)
def test_hosted_items_are_a_call_and_what_came_of_it(item: Any, name: str, input: Any, content: Any) -> None:
    native = {"id": "ws_1", **item}
    found = streamed([chunk([{**native, "index": 0}], response_metadata={"model_provider": "openai"}), last()])

    assert found == committed(ai([native], response_metadata={"model_provider": "openai"}))
    assert (found[0]["name"], found[0]["input"], found[0]["providerExecuted"]) == (name, input, True)
    assert (found[0]["toolCallId"], found[0]["itemId"]) == ("ws_1", "ws_1")
    assert found[0]["providerMetadata"] == {"langgraph/block": native}
    assert [each["content"] for each in found[1:]] == ([] if content is None else [content])


def test_a_tool_that_the_host_runs_for_the_provider_is_a_call_of_its_own_kind() -> None:
    native = {"type": "apply_patch_call", "id": "apc_1", "call_id": "c1", "operation": {"type": "create_file"}}

    assert committed(ai([native])) == [
        {
            "type": "tool-call",
            "toolCallId": "c1",
            "name": "apply_patch",
            "input": {"operation": {"type": "create_file"}},
            "itemId": "apc_1",
            "providerMetadata": {"langgraph/block": native},
        }
    ]


def test_calls_of_a_chunk_that_lists_them_whole() -> None:
    listed = [{"name": "look", "args": {"x": 1}, "id": "c1", "type": "tool_call"}]
    deserialised = {"type": "AIMessageChunk", "content": "", "id": "lc_run--1", "tool_calls": listed}

    assert streamed([deserialised, last()]) == [
        {"type": "tool-call", "toolCallId": "c1", "name": "look", "input": {"x": 1}}
    ]


def test_rest_of_arguments_is_written_out_at_the_end_of_a_stream() -> None:
    stream = Stream()
    stream.take(*fragments(part("look", '{"x": 1', "c1", 0)))

    stream.end()

    assert json.dumps(blocks(stream.events)[0]["input"]) == json.dumps('{"x": 1')
