"""Recorded conversations: what a client really sent comes back from the fold of what it had received (spec §10.13)."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agjson import AgMessage, reduce
from agjson.adapters.anthropic import ADAPTER, AnthropicNormalizer, messages_from_native, messages_to_native
from agjson.testing.cassettes import Exchange, read_cassette
from agjson.types import ToolCallBlock
from tests.support.anthropic_rules import broken_rules
from tests.support.corpus import cassettes, require_corpus

Native = dict[str, Any]

FILES = cassettes("anthropic")


def requests(path: Path) -> list[tuple[Exchange, Native]]:
    """The exchanges of a recording that ask for a message, with what they ask."""
    found: list[tuple[Exchange, Native]] = []
    for exchange in read_cassette(path):
        if ADAPTER.recorded(exchange) is not None and b'"max_tokens"' in exchange.request:
            found.append((exchange, json.loads(exchange.request)))
    return found


def folded(exchange: Exchange, turn: str) -> list[AgMessage]:
    """What the normalizer and the fold make of an answer."""
    normalizer = AnthropicNormalizer(turn, "thread")
    natives: Iterable[Any] = ADAPTER.recorded(exchange) or ()
    events = [event for native in natives for event in normalizer.push(native)]
    result = reduce([*events, *normalizer.flush()])
    assert not result.needs_resync
    return list(result.result.messages)


# Requests


@pytest.mark.parametrize("path", FILES)
def test_every_recorded_request_goes_through_the_messages_and_back(path: Path) -> None:
    require_corpus()
    asked = requests(path)
    assert asked
    for _, request in asked:
        messages = messages_from_native(request["messages"], system=request.get("system"))
        native = messages_to_native(messages)
        wanted = [without_blanks(message) for message in request["messages"]]
        assert native == wanted
        assert {repair.code for repair in native.repairs} <= ({"text_dropped"} if path.stem in BLANKS else set())
        assert broken_rules(native, raw_types={"tool_reference"}) == []
        assert native.system == system_of(request)


# The recording client put a blank before two calls; the API took it this once, and refuses it elsewhere.
BLANKS = {"llm--tools"}


def without_blanks(message: Native) -> Native:
    if isinstance(message["content"], str):
        return message
    kept = [block for block in message["content"] if block["type"] != "text" or block["text"].strip()]
    return {**message, "content": kept}


def system_of(request: Native) -> list[Native]:
    system = request.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else system


# Answers


@pytest.mark.parametrize("path", FILES)
def test_a_whole_answer_reads_as_it_folds(path: Path) -> None:
    require_corpus()
    for index, (exchange, request) in enumerate(requests(path)):
        if exchange.streamed or (path.stem, index) == ("langchain--programmatic-tool-use", 1):
            # The second answer of that file begins with the result of a call of the first.
            continue
        read = messages_from_native([json.loads(exchange.body)], turn_id="turn", thread_id="thread")
        assert read == folded(exchange, "turn"), request["model"]


@pytest.mark.parametrize("path", [*FILES, *cassettes("response-chunks/anthropic")])
def test_a_whole_answer_goes_back_block_for_block(path: Path) -> None:
    require_corpus()
    for body in map(json.loads, whole_answers(path)):
        if body["content"] and body["content"][0]["type"] == "code_execution_tool_result":
            continue  # its call stands in an earlier answer
        normalizer = AnthropicNormalizer("turn", "thread")
        answer = reduce([*normalizer.push(body), *normalizer.flush()]).result.messages
        # Without it, the words of the assistant would be a beginning for it to go on with.
        further = [] if body["stop_reason"] == "tool_use" else [{"role": "user", "content": "Go on."}]
        native = messages_to_native([*answer, *messages_from_native(further)])
        (ours,) = [message["content"] for message in native if message["role"] == "assistant"]
        assert ours == without_blanks(body)["content"]


def whole_answers(path: Path) -> list[bytes]:
    if path.suffix == ".json":
        return [path.read_bytes()]
    if path.suffix == ".txt":
        return []
    return [exchange.body for exchange, _ in requests(path) if not exchange.streamed]


# Each recorded answer that a later request of the same file sends back: (file, answer, request). Both count the
# requests for messages from 0; the echo stands behind the messages of the request that was answered, unless a place is
# given.
ECHOES: list[tuple[str, int, int]] = [
    ("langchain--agent-loop-streaming", 0, 1),
    ("langchain--citations", 0, 2),
    ("langchain--compaction", 1, 2),
    ("langchain--programmatic-tool-use", 0, 1),
    ("langchain--skills", 0, 1),
    ("langchain--thinking", 1, 2),
    ("langchain--web-fetch-v1", 1, 2),
    ("langchain--web-search", 1, 2),
    ("llm--tools", 0, 1),
    ("mirascope--call-with-thinking-anthropic-beta-async-stream", 0, 1),
    ("pydantic-ai--advisor-tool-message-replay", 0, 1),
    ("pydantic-ai--anthropic-to-google-deferred-capability-history-replay", 0, 1),
    ("pydantic-ai--anthropic-to-google-deferred-capability-history-replay", 0, 2),
    ("pydantic-ai--anthropic-to-google-deferred-capability-history-replay", 1, 2),
    ("pydantic-ai--anthropic-tool-with-thinking", 0, 1),
    ("pydantic-ai--code-execution-files-cache-prefix-stable-automatic-sonnet-5", 0, 1),
    ("pydantic-ai--live-tool-search-handoff-anthropic-to-openai", 0, 1),
    ("pydantic-ai--pause-turn-web-search-streaming-vcr", 0, 1),
    ("pydantic-ai--thinking-part", 0, 1),
    ("pydantic-ai--thinking-part-redacted", 0, 1),
    ("pydantic-ai--tool-return-direct-url-image-anthropic", 0, 1),
]

# What the recording client itself changed in its echo, by file: a name of `CHANGES`.
CHANGED: dict[str, list[str]] = {
    "langchain--programmatic-tool-use": ["server callers dropped"],
    "langchain--web-fetch-v1": ["server callers dropped"],
    "langchain--web-search": ["server callers dropped"],
    "llm--tools": ["callers dropped", "blank added"],
    "pydantic-ai--anthropic-to-google-deferred-capability-history-replay": ["callers dropped"],
    "pydantic-ai--live-tool-search-handoff-anthropic-to-openai": ["callers dropped"],
    "pydantic-ai--pause-turn-web-search-streaming-vcr": ["server callers dropped", "text normalised"],
}


def server_callers_dropped(ours: Native, _: Native) -> Native:
    """The client leaves ``caller`` out of calls that the provider ran, and of their results."""
    return {name: value for name, value in ours.items() if name != "caller" or ours["type"] == "tool_use"}


def callers_dropped(ours: Native, _: Native) -> Native:
    """The client leaves ``caller`` out of every call."""
    return {name: value for name, value in ours.items() if name != "caller"}


def text_normalised(ours: Any, theirs: Any) -> Any:
    """The recorder wrote JSON bodies with dashes and apostrophes made plain, so titles of pages differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {name: text_normalised(value, theirs.get(name)) for name, value in ours.items()}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [text_normalised(mine, other) for mine, other in zip(ours, theirs, strict=True)]
    if isinstance(ours, str) and isinstance(theirs, str) and ours != theirs:
        return theirs if plain(ours) == plain(theirs) else ours
    return ours


def plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate({0x2013: "-", 0x2019: "'"})


CHANGES = {
    "server callers dropped": server_callers_dropped,
    "callers dropped": callers_dropped,
    "text normalised": text_normalised,
    "blank added": lambda ours, theirs: ours,
}


@pytest.mark.corpus
@pytest.mark.parametrize(("file", "answer", "request_index"), ECHOES)
def test_the_fold_of_an_answer_goes_back_as_the_client_sent_it(file: str, answer: int, request_index: int) -> None:
    asked = requests(require_corpus() / "cassettes" / "anthropic" / f"{file}.yaml")
    exchange, request = asked[answer]
    later = asked[request_index][1]["messages"]
    place = len(request["messages"])
    if file == "pydantic-ai--anthropic-to-google-deferred-capability-history-replay" and answer == 1:
        # Between the two, the client wrote a call of its own into the history, and its result.
        place = len(later) - 2
    echo = later[place]
    assert echo["role"] == "assistant"

    messages = [*messages_from_native(request["messages"]), *folded(exchange, "turn")]
    native = messages_to_native(messages)

    assert broken_rules(native, raw_types={"tool_reference"}) == []
    (ours,) = [message["content"] for message in native[len(request["messages"]) :] if message["role"] == "assistant"]
    theirs = without_blanks(echo)["content"]
    assert len(ours) == len(theirs)
    changed: list[Native] = []
    for mine, other in zip(ours, theirs, strict=True):
        for name in CHANGED.get(file, []):
            mine = CHANGES[name](mine, other)
        changed.append(mine)
    assert changed == theirs
    assert sealed(ours) == sealed(theirs)


@pytest.mark.corpus
def test_the_table_of_changes_holds_nothing_that_is_not_needed() -> None:
    require_corpus()
    assert set(CHANGED) <= {file for file, _, _ in ECHOES}
    for file, names in CHANGED.items():
        for name in names:
            if name == "blank added":
                assert file in BLANKS
                continue
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(CHANGED, file, [other for other in names if other != name])
                with pytest.raises(AssertionError):
                    for case in ECHOES:
                        if case[0] == file:
                            test_the_fold_of_an_answer_goes_back_as_the_client_sent_it(*case)


@pytest.mark.corpus
def test_every_recording_with_an_echo_is_in_the_table() -> None:
    corpus = require_corpus()
    index = json.loads((corpus / "cassettes" / "INDEX.json").read_bytes())["cassettes"]
    echoed = {
        Path(entry["file"]).stem
        for entry in index
        if entry["file"].startswith("anthropic/") and any(name.startswith("echo") for name in entry["features"])
    }
    assert echoed <= {file for file, _, _ in ECHOES}


def sealed(value: Any) -> list[str]:
    """Ids and opaque values, in order."""
    names = ("id", "tool_use_id", "signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout")
    if isinstance(value, list):
        return [found for each in value for found in sealed(each)]
    if isinstance(value, dict):
        own = [value[name] for name in names if isinstance(value.get(name), str)]
        return own + [found for name in sorted(value) for found in sealed(value[name])]
    return []


# A conversation whose parts were recorded: the next request is what the client really sent


@pytest.mark.corpus
def test_a_paused_turn_is_sent_again_as_it_stands() -> None:
    path = require_corpus() / "cassettes" / "anthropic" / "pydantic-ai--pause-turn-web-search-streaming-vcr.yaml"
    (first, request), (second, _) = requests(path)
    history = [*messages_from_native(request["messages"]), *folded(first, "turn-1")]

    native = messages_to_native(history)

    assert [message["role"] for message in native] == ["user", "assistant"]
    assert native[-1]["content"][-1]["type"] == "server_tool_use"
    assert native.repairs == []

    # The rest of the turn begins with the result of the call that stood last.
    whole = messages_to_native([*history, *folded(second, "turn-2")])
    assert [message["role"] for message in whole] == ["user", "assistant"]
    assert whole[-1]["content"][: len(native[-1]["content"])] == native[-1]["content"]
    assert whole[-1]["content"][len(native[-1]["content"])]["type"] == "web_search_tool_result"
    assert broken_rules(whole) == []


@pytest.mark.corpus
def test_code_that_calls_a_client_waits_for_it_and_goes_on() -> None:
    path = require_corpus() / "cassettes" / "anthropic" / "langchain--programmatic-tool-use.yaml"
    (first, request), (second, later) = requests(path)
    answer = folded(first, "turn-1")
    result = messages_from_native(later["messages"][2:])
    calls = [block.tool_call_id for block in answer[0].content if isinstance(block, ToolCallBlock)]
    ids = {answer[0].id, *calls}
    normalizer = AnthropicNormalizer("turn-2", "thread", known_ids=ids)
    events = [event for native in ADAPTER.recorded(second) or () for event in normalizer.push(native)]
    rest = list(reduce([*events, *normalizer.flush()]).result.messages)

    native = messages_to_native([*messages_from_native(request["messages"]), *answer, *result, *rest])

    assert native.repairs == []
    assert [message["role"] for message in native] == ["user", "assistant", "user", "assistant"]
    assert [block["type"] for block in native[1]["content"]] == ["text", "server_tool_use", "tool_use"]
    assert [block["type"] for block in native[3]["content"]] == ["code_execution_tool_result", "text"]
    assert broken_rules(native) == []
