"""What this revision does not define: fields, events and blocks pass or are carried (spec §0.2, §12)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agjson.fold import Reducer
from agjson.types import AgBlock, ContentBlock, TextBlock, TextDelta, UnknownBlock
from agjson.wire import decode_result, encode, ingest_event, to_dict
from tests.support.folding import CALL, DONE, MESSAGE, REASONING, TEXT, TURN, blocks, events, folded, push, view

STREAM: list[dict[str, Any]] = [
    TURN,
    {"type": "agent.capabilities", "turnId": "t", "capabilities": {}},
    MESSAGE,
    TEXT,
    {"type": "text.delta", "id": "x", "delta": "a"},
    {"type": "text.end", "id": "x"},
    REASONING,
    {"type": "reasoning.delta", "id": "r", "delta": "b"},
    {"type": "reasoning.opaque", "id": "r", "kind": "signature", "value": "v"},
    {"type": "reasoning.end", "id": "r"},
    CALL,
    {"type": "tool.args.delta", "toolCallId": "c", "delta": "{}"},
    {"type": "tool.args.assembled", "toolCallId": "c", "input": {}},
    {"type": "message.end", "id": "m"},
    {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "messageId": "R"},
    {"type": "artifact.start", "artifactId": "A", "turnId": "t", "threadId": "th"},
    {"type": "artifact.delta", "artifactId": "A", "part": {"type": "text", "text": "p"}, "append": True},
    {"type": "memory.write", "scope": "user", "value": 1},
    {"type": "state.delta", "patch": {"n": {"k": 1}}},
    {"type": "source", "turnId": "t", "sourceId": "s", "source": {"url": "u"}},
    {"type": "handoff", "turnId": "t"},
    DONE,
    {"type": "messages.snapshot", "messages": [{"id": "n", "role": "user", "content": []}]},
    {"type": "state.snapshot", "snapshot": 1},
]


@pytest.mark.parametrize("length", range(1, len(STREAM) + 1))
def test_unknown_fields_of_an_event_do_not_change_what_it_does(length: int) -> None:
    plain = folded(*STREAM[:length])
    shiny = folded(*({**member, "shiny": {"new": [1]}} for member in STREAM[:length]))
    assert not shiny.needs_resync
    assert view(shiny.result()) == view(plain.result())


def test_a_delta_with_unknown_fields_goes_to_the_same_block() -> None:
    reducer = folded(TURN, MESSAGE, TEXT)
    for text in (
        '{"type":"text.delta","seq":0,"id":"x","delta":"a"}',
        '{"type":"text.delta","seq":0,"id":"x","delta":"b","lang":"en"}',
    ) * 2:
        event = ingest_event(text)
        assert isinstance(event, TextDelta)
        reducer.push(event)
    assert blocks(reducer) == [{"type": "text", "text": "abab"}]


def test_unknown_fields_inside_a_block_are_carried_and_survive_later_changes() -> None:
    stored = {
        "messages": [
            {
                "id": "m",
                "role": "assistant",
                "turnId": "t",
                "mood": "good",
                "content": [
                    {"type": "text", "text": "a", "lang": "en"},
                    {"type": "tool-result", "toolCallId": "c", "content": [], "preliminary": True, "cost": 1},
                ],
            }
        ],
        "artifacts": [
            {
                "artifactId": "A",
                "turnId": "t",
                "threadId": "th",
                "size": 3,
                "parts": [{"type": "text", "text": "p", "k": 1}],
            }
        ],
        "memory": [{"scope": "user", "value": [1], "weight": 2}],
        "turns": [{"turnId": "t", "threadId": "th", "color": "red"}],
        "cursor": 5,
    }
    reducer = Reducer(decode_result(json.dumps(stored)))
    assert view(reducer.result()) == stored
    push(
        reducer,
        {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": [], "outcome": "ok"},
        {"type": "message.metadata", "messageId": "m", "metadata": {"k": 1}},
        {"type": "artifact.delta", "artifactId": "A", "part": {"type": "text", "text": "q"}, "append": True},
        {"type": "memory.write", "scope": "user", "patch": [{"op": "add", "path": "/-", "value": 2}]},
        {"type": "handoff", "turnId": "t"},
    )
    assert not reducer.needs_resync
    result = view(reducer.result())
    message = result["messages"][0]
    assert (message["mood"], message["metadata"]) == ("good", {"k": 1})
    assert message["content"][0] == {"type": "text", "text": "a", "lang": "en"}
    assert message["content"][1] == {
        "type": "tool-result",
        "toolCallId": "c",
        "content": [],
        "outcome": "ok",
        "cost": 1,
    }
    assert result["artifacts"][0]["parts"] == [{"type": "text", "text": "pq", "k": 1}]
    assert (result["artifacts"][0]["size"], result["turns"][0]["color"], result["cursor"]) == (3, "red", 5)
    assert result["memory"] == [{"scope": "user", "value": [1, 2], "weight": 2}]


def test_a_block_of_an_unknown_kind_is_carried_in_its_place() -> None:
    reducer = folded(TURN, MESSAGE, {"type": "content.block", "block": {"type": "hologram", "depth": 1.50}}, TEXT)
    assert blocks(reducer) == [{"type": "hologram", "depth": 1.5}, {"type": "text", "text": ""}]
    carried: Any = reducer.result().messages[0].content[0]
    assert isinstance(carried, UnknownBlock)
    assert b'"depth": 1.5' in carried.raw


def test_unknown_blocks_ride_in_results_and_artifacts() -> None:
    unknown = {"type": "hologram", "depth": 1}
    reducer = folded(
        TURN,
        MESSAGE,
        {"type": "tool.done", "toolCallId": "c", "content": [unknown]},
        {"type": "artifact.start", "artifactId": "A", "turnId": "t", "threadId": "th"},
        {"type": "artifact.delta", "artifactId": "A", "part": unknown, "append": False},
        {"type": "artifact.delta", "artifactId": "A", "part": {"type": "text", "text": "a"}, "append": True},
    )
    assert blocks(reducer)[0]["content"] == [unknown]
    assert view(reducer.result())["artifacts"][0]["parts"] == [unknown, {"type": "text", "text": "a"}]


def test_the_block_of_an_event_is_carried_as_the_object_it_is() -> None:
    block: AgBlock = TextBlock(text="a", annotations=None)
    reducer = folded(TURN, MESSAGE)
    reducer.push(ContentBlock(seq=2, block=block))
    assert reducer.result().messages[0].content[0] is block


def test_an_unknown_finish_reason_is_recorded_as_unknown() -> None:
    reducer = folded(TURN, {**DONE, "finishReason": "sunspots"})
    assert to_dict(reducer.result())["turns"][0]["finishReason"] == "unknown"


def test_a_vendor_profile_that_folds_nothing() -> None:
    reducer = folded(TURN, {"type": "ext.acme.note", "value": 1, "turnId": "ghost"}, MESSAGE)
    assert not reducer.needs_resync
    assert encode(reducer.result()) == encode(folded(TURN, MESSAGE).result())
    assert events({"type": "ext.acme.note"})[0].type == "ext.acme.note"
