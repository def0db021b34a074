"""Native events of the Messages API for tests: from recordings, from authored files, and short ways to write them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agjson.adapter import native_events
from agjson.adapters.anthropic import ADAPTER, AnthropicNormalizer
from agjson.checker import check
from agjson.fold import Reducer
from agjson.normalizer import HostEnd
from agjson.testing.cassettes import read_cassette
from agjson.types import AgReduceResult, AgStreamEvent
from agjson.wire import encode
from tests.support.corpus import ROOT, corpus_path

Native = dict[str, Any]

AUTHORED = ROOT / "cassettes" / "anthropic"
"""The folder of the project's own files."""

TERMINALS = ("turn.done", "turn.error", "turn.abort")

START: Native = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    },
}
STOP: Native = {"type": "message_stop"}

SAID_AGAIN = frozenset(
    (
        ("message_start", "stop_reason"),
        ("message_start", "output_tokens"),
        ("tool_use", "input"),
        ("server_tool_use", "input"),
        ("mcp_tool_use", "input"),
        ("thinking", "signature"),
        ("compaction", "encrypted_content"),
        ("compaction", "signature"),
    )
)
"""Members that a later event of the same message or block says again, which then counts: type and name."""


def block(native: Native, *deltas: Native, index: int = 0) -> list[Native]:
    """The events of one content block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": native},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(*parts: str, index: int = 0) -> list[Native]:
    """The events of a text block."""
    deltas = ({"type": "text_delta", "text": part} for part in parts)
    return block({"type": "text", "text": ""}, *deltas, index=index)


def end(stop_reason: str | None = "end_turn", **more: Any) -> list[Native]:
    """The two events that end a message; `more` goes into the delta."""
    delta = {"stop_reason": stop_reason, "stop_sequence": None, **more}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}, STOP]


def message(*content: Native, stop_reason: str | None = "end_turn", **more: Any) -> Native:
    """A whole message."""
    return {
        **START["message"],
        "content": list(content),
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **more,
    }


def normalize(
    natives: Iterable[Any], *, host_end: bool = True, multi: bool = False, **settings: Any
) -> list[AgStreamEvent]:
    """The events of one invoke, ``t1`` of thread ``th``."""
    normalizer = AnthropicNormalizer("t1", "th", multi=multi, **settings)
    events = [event for native in natives for event in normalizer.push(native)]
    if host_end:
        events += normalizer.push(HostEnd())
    return events + normalizer.flush()


def plain(events: Iterable[AgStreamEvent]) -> list[dict[str, Any]]:
    """The events as JSON, without the envelope that every event has."""
    out = []
    for event in events:
        members = json.loads(encode(event))
        for name in ("seq", "turnId", "threadId", "messageId"):
            if members["type"] != "tool.done" or name != "messageId":
                members.pop(name, None)
        out.append(members)
    return out


def sound(events: list[AgStreamEvent], known_ids: Collection[str] = frozenset()) -> AgReduceResult:
    """Check a stream, fold it, and hand out the fold: no violation, no parking, one terminal."""
    violations = list(check(events, known_ids=known_ids)) if known_ids else list(check(events))
    assert not violations, violations[:3]
    reducer = Reducer()
    for event in events:
        reducer.push(event)
        assert not reducer.needs_resync, f"parked at {event!r}: {reducer.resync_reason}"
    assert [event.type for event in events].count("turn.start") == 1
    assert sum(event.type in TERMINALS for event in events) == 1
    return reducer.result()


def view(result: AgReduceResult) -> dict[str, Any]:
    """The fold as plain JSON."""
    found = json.loads(encode(result))
    assert isinstance(found, dict)
    return found


def content(events: list[AgStreamEvent]) -> list[dict[str, Any]]:
    """The blocks of the only message of a sound stream."""
    (only,) = view(sound(events))["messages"]
    blocks = only["content"]
    assert isinstance(blocks, list)
    return blocks


@dataclass(frozen=True)
class Recording:
    """One recorded answer of the Messages API.

    Attributes:
        name: file and number of the request in it.
        natives: the events, or one whole message.
        streamed: whether it is a stream.
        earlier: what the file holds before it: the natives of each answer, in order.
    """

    name: str
    natives: tuple[Any, ...]
    streamed: bool
    earlier: tuple[tuple[Any, ...], ...] = ()


@cache
def read_recordings(path: Path) -> tuple[Recording, ...]:
    """The answers of one file: a recording of HTTP traffic, lines of events, or one message."""
    if path.suffix == ".yaml":
        found = [
            (exchange, tuple(natives))
            for exchange in read_cassette(path)
            if (natives := ADAPTER.recorded(exchange)) is not None
        ]
        answers = [natives for _, natives in found]
        return tuple(
            Recording(f"{path.stem}-{number}", natives, exchange.streamed, tuple(answers[:number]))
            for number, (exchange, natives) in enumerate(found)
        )
    natives = tuple(native_events(path.read_bytes()))
    return (Recording(path.stem, natives, path.suffix == ".txt"),)


def recording_files() -> list[Path]:
    """Every file with answers of the Messages API: the corpus, where it is there, and the project's own."""
    corpus = corpus_path()
    found: list[Path] = []
    if corpus is not None:
        found += sorted((corpus / "cassettes" / "anthropic").glob("*.yaml"))
        found += sorted((corpus / "cassettes" / "response-chunks" / "anthropic").glob("*.*"))
    return found + sorted(AUTHORED.glob("*.yaml"))


def recording_params(*, streamed: bool = False, without: Collection[str] = ()) -> list[Any]:
    """Every recorded answer as a parameter; those of the corpus are marked.

    Args:
        streamed: only streams.
        without: names of recordings to leave out.
    """
    params: list[Any] = []
    for path in recording_files():
        marks = () if path.parent == AUTHORED else (pytest.mark.corpus,)
        params += [
            pytest.param(recording, id=recording.name, marks=marks)
            for recording in read_recordings(path)
            if (recording.streamed or not streamed) and recording.name not in without
        ]
    if corpus_path() is None:
        params.append(pytest.param(None, id="no-corpus", marks=pytest.mark.corpus))
    return params


def fold_recording(recording: Recording) -> tuple[list[AgStreamEvent], frozenset[str]]:
    """The events of a recorded answer in the thread of the answers before it, and the ids that those have used."""
    known: set[str] = set()
    for number, natives in enumerate(recording.earlier):
        known |= ids_of(normalize(natives, multi=True), f"t0-{number}")
    ids = frozenset(known)
    return normalize(recording.natives, multi=True, known_ids=ids), ids


def ids_of(events: Iterable[AgStreamEvent], turn_id: str) -> set[str]:
    """The ids that an invoke has used, with another turn id in place of its own."""
    names = ("id", "toolCallId")
    found = {turn_id}
    for event in events:
        if event.type.endswith(".start"):
            members = json.loads(encode(event))
            found.update(members[name] for name in names if name in members)
    return found


def accumulate(natives: Iterable[Any]) -> Native | None:
    """The message that a stream of events makes, as the API would answer without streaming; None if it is not whole."""
    whole: Native | None = None
    arguments: dict[int, str] = {}
    for event in json.loads(json.dumps(list(natives))):
        kind = event["type"]
        if kind == "message_start":
            whole = event["message"]
        elif kind == "content_block_start":
            assert whole is not None
            whole["content"].append(event["content_block"])
        elif kind == "content_block_delta":
            assert whole is not None
            _add(whole["content"][event["index"]], event["delta"], event["index"], arguments)
        elif kind == "message_delta":
            assert whole is not None
            for place, update in ((whole, event["delta"]), (whole["usage"], event["usage"])):
                place.update({name: value for name, value in update.items() if value is not None})
            for name in ("context_management", "input_transformations"):
                if name in event:
                    whole[name] = event[name]
        elif kind == "message_stop":
            assert whole is not None
            for index, parts in arguments.items():
                if parts:
                    whole["content"][index]["input"] = json.loads(parts)
            return whole
    return None


def whole_messages(recording: Recording) -> list[Native]:
    """A recorded answer as the messages that the API would give without streaming."""
    if not recording.streamed:
        return [recording.natives[0]]
    found: list[Native] = []
    events: list[Any] = []
    for native in recording.natives:
        events.append(native)
        if native["type"] == "message_stop":
            whole = accumulate(events)
            assert whole is not None
            found.append(whole)
            events = []
    return found


def _add(native: Native, delta: Native, index: int, arguments: dict[int, str]) -> None:
    match delta["type"]:
        case "text_delta":
            native["text"] += delta["text"]
        case "thinking_delta":
            native["thinking"] += delta["thinking"]
        case "signature_delta":
            native["signature"] = delta["signature"]
        case "citations_delta":
            native["citations"] = [*(native.get("citations") or ()), delta["citation"]]
        case "input_json_delta":
            arguments[index] = arguments.get(index, "") + delta["partial_json"]
        case "compaction_delta":
            native.update({name: value for name, value in delta.items() if name != "type" and value is not None})


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, but for the names of members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
