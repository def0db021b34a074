"""Recorded answers through whole graphs: real chat models of providers, in ``create_agent`` and in graphs by hand."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from agjson.adapters.langgraph import messages_from_native, messages_to_native
from agjson.testing.cassettes import read_cassette
from agjson.types import ToolCallBlock
from tests.support.corpus import require_corpus
from tests.support.langgraph_graphs import fold, normalize, said
from tests.support.langgraph_recordings import BUILDERS, SAID, Played, is_answer, play, playable, recordings
from tests.support.langgraph_wire import FOLDERS, seen, strings, turns_of

pytestmark = pytest.mark.corpus

RECORDINGS = recordings()
STREAMS = recordings(streamed=True)
# The chat model itself fails on this answer.
UNREADABLE = "pydantic-ai--compaction-usage-with-cache-streaming"
# The second answers of these go on with a call of the first, without which they mean nothing.
GOES_ON = ("langchain--programmatic-tool-use", "pydantic-ai--pause-turn-web-search-streaming-vcr")
GO_ON = HumanMessage("Go on.", id="u-more")
# What a provider has sealed or named, as it stands in a request.
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SEALED = re.compile(r"[\w+/=.-]{16,}")


def played(folder: str, path: Path, *, build: str = "agent") -> list[Played]:
    """The answers of a recording, each played through a graph; those that the chat model fails on are left out."""
    if path.stem.startswith(UNREADABLE):
        return []
    found = [each for way in (True, False) for each in play(folder, path, streamed=way, build=BUILDERS[build])]
    if path.stem in GOES_ON:
        found = found[:1]
    for each in found:
        assert each.failed is None or "all is said" in str(each.failed), each.failed
    return found


def told(each: Played) -> list[dict[str, Any]]:
    """What a stream says, once it is found sound."""
    parts = each.parts if each.failed is None else [*each.parts, each.failed]
    return said([message for message in fold(normalize(parts)).messages if message.id != SAID.id])


def in_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with results of calls that ran at once in one order: a stream has that in which they came."""
    found: list[dict[str, Any]] = []
    for role, run in itertools.groupby(messages, lambda message: message["role"]):
        several = list(run)
        if role == "tool":
            several.sort(key=lambda each: str(each["content"][0]["toolCallId"]))
        found += several
    return found


def kept(each: Played) -> list[dict[str, Any]]:
    """What the state of the graph says."""
    return in_order(
        said(messages_from_native([message.model_dump() for message in each.state if message.id != SAID.id]))
    )


@pytest.mark.parametrize(("folder", "path"), RECORDINGS)
def test_the_stream_of_an_agent_folds_to_its_state(folder: str, path: Path) -> None:
    for each in played(folder, path):
        assert each.state
        assert in_order(told(each)) == in_order(kept(each))


@pytest.mark.parametrize(("folder", "path"), STREAMS)
def test_the_stream_of_a_graph_by_hand_folds_to_its_state(folder: str, path: Path) -> None:
    for each in played(folder, path, build="graph"):
        assert each.state
        assert in_order(told(each)) == in_order(kept(each))


@pytest.mark.parametrize(("folder", "path"), STREAMS)
def test_a_stream_of_tokens_says_what_the_state_alone_says(folder: str, path: Path) -> None:
    if path.stem.startswith(UNREADABLE):
        return
    streamed = play(folder, path, streamed=True)
    alone = play(folder, path, streamed=True, modes=["values"])
    for one, other in zip(streamed, alone, strict=True):
        assert _content(told(one)) == _content(told(other))


def _content(messages: list[dict[str, Any]]) -> list[Any]:
    """Without the ids that LangChain makes up in each run: of messages, and of Gemini's calls."""
    made_up: dict[str, str] = {}
    text = json.dumps([{"role": message["role"], "content": message["content"]} for message in messages])
    return in_order(json.loads(_UUID.sub(lambda found: made_up.setdefault(found[0], f"id {len(made_up)}"), text)))


@pytest.mark.parametrize("name", GOES_ON)
def test_an_answer_that_goes_on_with_a_call_of_the_one_before_lands_its_result_there(name: str) -> None:
    path = require_corpus() / "cassettes" / "anthropic" / f"{name}.yaml"
    ways = [way for way in (True, False) if len(playable("anthropic", path, way)) > 1]
    assert ways
    for way in ways:
        first, second = itertools.islice(play("anthropic", path, streamed=way), 2)
        before = fold(normalize(first.parts, turn_id="turn-0"))
        ids = {message.id for message in before.messages} | {
            block.tool_call_id
            for message in before.messages
            for block in message.content
            if isinstance(block, ToolCallBlock)
        }
        result = fold(normalize(second.parts, known_ids=ids), before)
        both = messages_from_native([*first.state[1:], *second.state[1:]])
        assert said([message for message in result.messages if message.id != SAID.id]) == said(both)


@pytest.mark.parametrize(("folder", "path"), STREAMS)
def test_what_a_provider_sealed_and_named_goes_back_to_it_as_it_came(folder: str, path: Path) -> None:
    provider = FOLDERS[folder]
    with seen(provider) as body:
        for each in played(folder, path):
            parts = each.parts if each.failed is None else [*each.parts, each.failed]
            history = [message for message in fold(normalize(parts)).messages if message.id != SAID.id]
            ours = [SAID, *messages_to_native(history, provider=provider), GO_ON]
            sent = set(strings(turns_of(body(ours))))
            wanted = {text for text in strings(turns_of(body([*each.state, GO_ON]))) if SEALED.fullmatch(text)}
            assert wanted <= sent


def test_nothing_is_skipped_but_what_is_listed() -> None:
    folders = require_corpus() / "cassettes"
    counts: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for folder in FOLDERS:
        for path in sorted((folders / folder).iterdir()):
            for way in (True, False):
                count = len(playable(folder, path, way))
                if path.stem.startswith(UNREADABLE):
                    skipped["the chat model fails on it"] += count
                else:
                    counts[f"{folder}, {'streamed' if way else 'whole'}"] += count
            for exchange in read_cassette(path):
                if not is_answer(folder, exchange):
                    skipped["a request to another API, or a failed one"] += 1
                elif exchange.body.lstrip().startswith(b"["):
                    skipped["a stream as one array"] += 1
    assert counts == {
        "anthropic, streamed": 21,
        "anthropic, whole": 36,
        "openai-responses, streamed": 25,
        "openai-responses, whole": 30,
        "openai-chat, streamed": 3,
        "openai-chat, whole": 6,
        "google, streamed": 11,
        "google, whole": 20,
    }
    assert skipped == {
        "the chat model fails on it": 1,
        "a stream as one array": 5,
        "a request to another API, or a failed one": 29,
    }


def test_the_recorded_request_of_an_agent_of_langgraph() -> None:
    path = require_corpus() / "cassettes" / "openai-chat" / "openllmetry--langgraph-ainvoke.yaml"
    (only,) = play("openai-chat", path, streamed=False)
    (answer,) = told(only)
    assert (answer["role"], answer["content"]) == ("assistant", [{"type": "text", "text": "\\(5 + 5 = 10\\)."}])
