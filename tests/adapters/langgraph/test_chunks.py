"""What real chat models stream of recorded answers folds to what they store, however it is cut."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk

from agjson.adapters.langgraph._content import read_blocks
from agjson.wire import to_dict
from tests.support.langgraph_messages import (
    Native,
    Recorded,
    Stream,
    bedrock,
    blocks,
    chunk,
    committed,
    folded,
    last,
    part,
    recording_files,
    replay,
    streamed,
)

# Members that must go back byte for byte.
OPAQUE = frozenset(("signature", "data", "encrypted_content", "encrypted_index", "thought_signature"))

STREAMS = recording_files(streaming=True)
STANDARD = recording_files("anthropic", "openai-responses", "google", "openai-chat", streaming=True)
ALL = recording_files()


def answers(file: Path, version: str | None = None) -> list[Recorded]:
    """The answers of a recording that streamed."""
    found = [each for each in replay(file, version) if each.chunks]
    assert found
    return found


def opaque_values(value: Any) -> Iterator[str]:
    """Every opaque text at any depth."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in OPAQUE and isinstance(each, str) and each:
                yield each
            else:
                yield from opaque_values(each)
    elif isinstance(value, list):
        for each in value:
            yield from opaque_values(each)


def cut_otherwise(chunks: list[Native], seed: int) -> list[Native]:
    """The same answer in fewer chunks, added up by LangChain itself."""
    rng = random.Random(seed)
    left = [AIMessageChunk.model_validate(each) for each in chunks]
    found: list[Native] = []
    while left:
        taken = rng.choice((1, 1, 2, 3, 5, 9))
        some, left = left[:taken], left[taken:]
        total = some[0]
        for each in some[1:]:
            total = total + each
        found.append(json.loads(json.dumps(total.model_dump(), default=str)))
    return found


@pytest.mark.parametrize("file", STREAMS)
def test_a_stream_folds_to_the_stored_message(file: Path) -> None:
    for answer in answers(file):
        assert streamed(answer.chunks) == committed(answer.whole), answer.name


@pytest.mark.parametrize("file", STANDARD)
def test_a_stream_of_standard_blocks_folds_to_the_stored_message(file: Path) -> None:
    for answer in answers(file, "v1"):
        assert streamed(answer.chunks) == committed(answer.whole), answer.name


@pytest.mark.parametrize("file", STREAMS)
def test_how_a_stream_is_cut_does_not_count(file: Path) -> None:
    for answer in answers(file):
        expected = streamed(answer.chunks)
        for seed in range(2):
            assert streamed(cut_otherwise(answer.chunks, seed)) == expected, (answer.name, seed)


@pytest.mark.parametrize("file", STREAMS)
def test_what_a_node_commits_of_a_stream_says_nothing_new(file: Path) -> None:
    for answer in answers(file):
        stream = Stream()
        stream.take(*answer.chunks)

        assert stream.commit(answer.whole) == [], answer.name
        assert not stream.runs.take_resync(), answer.name
        (message,) = stream.end()
        assert message["metadata"].get("langgraph/messageId", message["id"]) == answer.whole["id"]


@pytest.mark.parametrize("file", STREAMS)
def test_chunks_without_a_shared_run_are_one_message(file: Path) -> None:
    for answer in answers(file):
        stream = Stream()
        stream.take(*answer.chunks, key=None)
        stream.end()

        assert len(folded(stream.events)) == 1, answer.name
        assert blocks(stream.events) == streamed(answer.chunks), answer.name


@pytest.mark.parametrize("file", ALL)
def test_opaque_values_are_kept_byte_for_byte(file: Path) -> None:
    for answer in replay(file):
        kept = json.dumps(committed(answer.whole))
        for value in opaque_values(answer.whole["content"]):
            assert json.dumps(value) in kept, answer.name


@pytest.mark.parametrize("file", ALL)
def test_a_stored_message_reads_as_its_fold(file: Path) -> None:
    for answer in replay(file):
        found = [each for each in committed(answer.whole) if "toolMetadata" not in each]  # of calls of earlier turns
        assert json.loads(json.dumps([to_dict(each) for each in read_blocks(answer.whole)])) == found, answer.name


def test_the_recordings_cover_what_the_adapter_is_for() -> None:
    if STREAMS[0].values[0] is None:
        pytest.skip("no corpus")
    told = {
        (each["type"], each.get("opaque", {}).get("kind"))
        for param in STREAMS
        for answer in answers(param.values[0])
        for each in streamed(answer.chunks)
    }

    assert told >= {
        ("text", None),
        ("reasoning", "signature"),
        ("reasoning", "encrypted"),
        ("tool-call", None),
        ("tool-result", None),
        ("compaction", "encrypted"),
        ("image", None),
    }


def of_bedrock(arguments: str, stop_reason: str) -> Recorded:
    """An answer of the Converse API with signed reasoning, a text and a call."""

    def delta(index: int, **said: Any) -> Native:
        return {"contentBlockDelta": {"contentBlockIndex": index, "delta": said}}

    return bedrock(
        {"messageStart": {"role": "assistant"}},
        delta(0, reasoningContent={"text": "Hm"}),
        delta(0, reasoningContent={"text": "."}),
        delta(0, reasoningContent={"signature": "c2ln=="}),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        delta(1, text="Let me "),
        delta(1, text="look."),
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"contentBlockStart": {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "c1", "name": "look"}}}},
        *(delta(2, toolUse={"input": each}) for each in arguments),
        {"contentBlockStop": {"contentBlockIndex": 2}},
        {"messageStop": {"stopReason": stop_reason}},
        {"metadata": {"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, "metrics": {}}},
    )


def test_a_stream_of_bedrock_folds_to_the_stored_message() -> None:
    answer = of_bedrock('{"q": 1}', "tool_use")

    found = streamed(answer.chunks)

    assert found == committed(answer.whole)
    assert found == [
        {
            "type": "reasoning",
            "text": "Hm.",
            "opaque": {"kind": "signature", "value": "c2ln==", "provider": "bedrock"},
            "provider": "bedrock",
        },
        {"type": "text", "text": "Let me look."},
        {"type": "tool-call", "toolCallId": "c1", "name": "look", "input": {"q": 1}},
    ]


def test_a_call_of_bedrock_that_is_cut_off_is_not_repaired() -> None:
    answer = of_bedrock('{"q": 1', "max_tokens")
    stream = Stream()
    stream.take(*answer.chunks)

    assert answer.whole["tool_calls"][0]["args"] == {"q": 1}  # what LangChain makes of it
    assert stream.runs.finish_reason("t1") == "token_limit"
    stream.end()
    assert blocks(stream.events)[-1]["input"] == '{"q": 1'
    assert blocks(stream.events) == committed(answer.whole)


def test_text_goes_out_as_it_comes() -> None:
    stream = Stream()

    assert stream.take(chunk("Hel")) == [
        {"type": "turn.start"},
        {
            "type": "message.start",
            "id": "lc_run--1",
            "role": "assistant",
            "_meta": {"langgraph/node": "model"},
        },
        {
            "type": "text.start",
            "id": "lc_run--1:text:0",
            "messageId": "lc_run--1",
            "_meta": {"langgraph/node": "model"},
        },
        {"type": "text.delta", "id": "lc_run--1:text:0", "delta": "Hel", "messageId": "lc_run--1"},
    ]
    assert stream.take(chunk("lo")) == [
        {"type": "text.delta", "id": "lc_run--1:text:0", "delta": "lo", "messageId": "lc_run--1"}
    ]
    assert [event["type"] for event in stream.take(last())] == ["text.end", "message.end"]


def test_reasoning_shows_before_it_says_anything() -> None:
    stream = Stream()
    opening = {"type": "reasoning", "id": "rs_1", "summary": [], "index": 0}

    events = stream.take(chunk([opening], response_metadata={"model_provider": "openai"}))

    assert events[-1] == {
        "type": "reasoning.start",
        "id": "lc_run--1:reasoning:0",
        "itemId": "rs_1",
        "messageId": "lc_run--1",
        "_meta": {"langgraph/node": "model"},
    }


def test_a_signature_in_a_chunk_of_its_own_ends_no_thought() -> None:
    anthropic = {"model_provider": "anthropic"}
    parts = [
        {"type": "thinking", "thinking": "Hm", "index": 0},
        {"type": "thinking", "thinking": "", "signature": "c2ln", "index": 0},
        {"type": "thinking", "thinking": ".", "index": 0},
        {"type": "text", "text": "42", "index": 1},
    ]

    assert streamed([*(chunk([each], response_metadata=anthropic) for each in parts), last()]) == [
        {
            "type": "reasoning",
            "text": "Hm.",
            "opaque": {"kind": "signature", "value": "c2ln", "provider": "anthropic"},
            "provider": "anthropic",
        },
        {"type": "text", "text": "42"},
    ]


def test_summary_parts_keep_their_places() -> None:
    openai = {"model_provider": "openai"}

    def piece(index: int, text: str, **more: Any) -> Native:
        native = {"type": "reasoning", "summary": [{"index": index, "type": "summary_text", "text": text}], "index": 0}
        return chunk([{**native, **more}], response_metadata=openai)

    (block,) = streamed(
        [piece(0, "One", id="rs_1"), piece(0, ". "), piece(1, ""), piece(1, "Two"), piece(1, "."), last()]
    )

    assert block["text"] == "One. Two."
    assert block["providerMetadata"] == {"langgraph/parts": [5, 4]}
    assert block["itemId"] == "rs_1"


def test_another_id_under_the_same_index_is_another_block() -> None:
    parts = [
        {"type": "text", "text": "One", "id": "msg_1", "index": 0},
        {"type": "text", "text": "Two", "id": "msg_2", "index": 0},
    ]

    found = streamed([*(chunk([each]) for each in parts), last()])

    assert [(each["text"], each["providerMetadata"]) for each in found] == [
        ("One", {"langgraph/fields": {"id": "msg_1"}}),
        ("Two", {"langgraph/fields": {"id": "msg_2"}}),
    ]


def test_what_comes_for_a_block_that_has_ended_is_not_lost() -> None:
    parts = [(0, "One"), (1, "Two"), (0, ".")]

    found = streamed([*(chunk([{"type": "text", "text": text, "index": index}]) for index, text in parts), last()])

    assert [each["text"] for each in found] == ["One", "Two", "."]


def test_reasoning_between_two_texts_parts_them() -> None:
    chunks = [chunk("One."), chunk(additional_kwargs={"reasoning_content": "Hm."}), chunk("Two."), last()]

    assert [(each["type"], each["text"]) for each in streamed(chunks)] == [
        ("text", "One."),
        ("reasoning", "Hm."),
        ("text", "Two."),
    ]


def test_an_emoji_that_is_cut_in_two_is_whole_in_the_end() -> None:
    assert streamed([chunk("a\ud83d"), chunk("\ude00b"), last()]) == [{"type": "text", "text": "a\U0001f600b"}]


def test_a_text_stays_one_while_calls_stream_beside_it() -> None:
    assert streamed(
        [
            chunk("Let me "),
            chunk(tool_call_chunks=[part("look", "{", "c1", 0)]),
            chunk("look."),
            chunk(tool_call_chunks=[part(None, "}", None, 0)]),
            last(),
        ]
    ) == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool-call", "toolCallId": "c1", "name": "look", "input": {}},
    ]
