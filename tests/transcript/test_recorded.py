"""Recorded conversations: what a client really sent is a transcript that needs no change, and its folds become it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agjson import AgMessage, reduce
from agjson.adapters.anthropic import ADAPTER, AnthropicNormalizer, messages_from_native, messages_to_native
from agjson.known_ids import KnownIds
from agjson.testing.cassettes import Exchange, read_cassette
from agjson.transcript import SlidingWindow, TranscriptError, compact, prepare, validate
from agjson.types import AgReduceResult, ToolCallBlock, ToolResultBlock
from tests.support.anthropic_rules import broken_rules
from tests.support.corpus import ROOT, cassettes, require_corpus

Native = dict[str, Any]

FILES = cassettes("anthropic")
AUTHORED = sorted((ROOT / "cassettes" / "anthropic").glob("*.yaml"))


def requests(path: Path) -> list[tuple[Exchange, Native]]:
    """The exchanges of a recording that ask for a message, with what they ask."""
    return [
        (exchange, json.loads(exchange.request))
        for exchange in read_cassette(path)
        if ADAPTER.recorded(exchange) is not None and b'"max_tokens"' in exchange.request
    ]


def answer(exchange: Exchange, history: list[AgMessage]) -> list[AgMessage]:
    thread = AgReduceResult(messages=history, artifacts=[], memory=[], turns=[])
    normalizer = AnthropicNormalizer("turn", "thread", known_ids=KnownIds.of(thread))
    events = [event for native in ADAPTER.recorded(exchange) or () for event in normalizer.push(native)]
    folded = reduce([*events, *normalizer.flush()])
    assert not folded.needs_resync
    return list(folded.result.messages)


def open_calls(messages: list[AgMessage]) -> list[str]:
    """The client calls of an answer that its host has yet to run."""
    return [
        block.tool_call_id
        for each in messages
        for block in each.content
        if isinstance(block, ToolCallBlock) and not block.provider_executed
    ]


@pytest.mark.parametrize("path", FILES)
def test_what_a_client_sent_is_a_valid_transcript_as_it_stands(path: Path) -> None:
    require_corpus()
    for _, request in requests(path):
        messages = messages_from_native(request["messages"], system=request.get("system"))
        assert validate(messages) == []
        prepared = prepare(messages)
        assert prepared.messages == messages
        assert prepared.changes == ()


@pytest.mark.parametrize("path", FILES)
def test_the_adapter_writes_the_same_request_from_the_prepared_history(path: Path) -> None:
    require_corpus()
    for _, request in requests(path):
        messages = messages_from_native(request["messages"], system=request.get("system"))
        ours, theirs = messages_to_native(prepare(messages).messages), messages_to_native(messages)
        assert (list(ours), ours.system, ours.repairs) == (list(theirs), theirs.system, theirs.repairs)


@pytest.mark.parametrize("path", [*FILES, *AUTHORED])
def test_the_fold_of_an_answer_is_ready_for_the_next_request_once_its_calls_have_results(path: Path) -> None:
    if path is None or path not in AUTHORED:
        require_corpus()
    for exchange, request in requests(path):
        history = messages_from_native(request["messages"], system=request.get("system"))
        folded = answer(exchange, history)
        called = open_calls(folded)
        waiting = [*history, *folded]
        assert {problem.code for problem in validate(waiting)} <= {"unanswered_call"}
        # While the host runs the tools, an unrelated request sees nothing of them.
        unrelated = prepare(waiting, waiting=called).messages
        assert broken_rules(messages_to_native(unrelated), raw_types={"tool_reference"}) == []
        if called:
            assert unrelated == history
        else:
            assert unrelated == waiting
        results = [
            AgMessage(id=f"{id}:result", role="tool", content=[ToolResultBlock(tool_call_id=id, content=[])])
            for id in reversed(called)
        ]
        prepared = prepare([*waiting, *results])
        local = [block.tool_call_id for block, _ in prepared.pairs if not block.provider_executed]
        assert local[len(local) - len(called) :] == called
        assert [each.id for each in prepared.messages[len(waiting) :]] == [f"{id}:result" for id in called]
        assert prepared.messages[: len(waiting)] == waiting


@pytest.mark.parametrize("path", FILES)
def test_what_is_left_of_a_recording_in_a_window_is_valid_for_the_provider(path: Path) -> None:
    require_corpus()
    for _, request in requests(path):
        messages = messages_from_native(request["messages"], system=request.get("system"))
        for size in range(1, len(messages) + 1):
            short = compact(messages, SlidingWindow(size))
            assert validate(short) == []
            native = messages_to_native(prepare(short).messages, document_citations=False)
            assert broken_rules(native, raw_types={"tool_reference"}) == []
            assert {repair.code for repair in native.repairs} <= {"text_dropped", "caller_dropped", "citation_dropped"}


@pytest.mark.corpus
def test_recordings_have_calls_of_every_kind() -> None:
    corpus = require_corpus()
    pairs = hosted = reasoned = 0
    for path in sorted((corpus / "cassettes" / "anthropic").glob("*.yaml")):
        for _, request in requests(path):
            prepared = prepare(messages_from_native(request["messages"]))
            pairs += sum(not block.provider_executed for block, _ in prepared.pairs)
            hosted += sum(bool(block.provider_executed) for block, _ in prepared.pairs)
            reasoned += any(
                [block.type for block in each.content][:2] == ["reasoning", "tool-call"] for each in prepared.messages
            )
    assert (pairs, hosted, reasoned) == (13, 21, 1)


@pytest.mark.corpus
def test_a_recorded_request_without_its_results_is_refused() -> None:
    path = require_corpus() / "cassettes" / "anthropic" / "langchain--agent-loop-streaming.yaml"
    messages = messages_from_native(requests(path)[1][1]["messages"])
    cut = [each for each in messages if each.role != "tool"]
    with pytest.raises(TranscriptError) as refused:
        prepare(cut)
    assert refused.value.code == "unanswered_call"
