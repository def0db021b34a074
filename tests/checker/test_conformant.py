"""Streams that the specification allows pass without a finding, and what parks a fold never does."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agjson.checker import check
from agjson.fold import Reducer, reduce, snapshot
from agjson.types import EVENT_TYPES
from agjson.wire import from_dict, to_dict
from tests.support.streams import broken, ev, numbered, typed

BASE64 = {"type": "base64", "mediaType": "image/png", "data": "AA=="}
BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "a"},
    {"type": "image", "source": BASE64},
    {"type": "audio", "source": BASE64},
    {"type": "file", "source": BASE64},
    {"type": "document", "source": BASE64},
    {"type": "resource", "resource": {"uri": "ui://a"}},
    {"type": "resource-link", "uri": "https://a.example"},
    {"type": "code", "language": "python", "code": "1"},
    {"type": "code-result", "outcome": "ok", "output": "1"},
    {"type": "reasoning", "text": "a"},
    {"type": "compaction", "text": "a"},
    {"type": "search-result", "url": "https://a.example"},
    {"type": "tool-call", "toolCallId": "c9", "name": "n", "input": {}},
    {"type": "tool-result", "toolCallId": "c9", "content": []},
    {"type": "data", "name": "n", "data": 1},
    {"type": "provider-raw", "vendor": "v", "raw": 1},
]

EVERY_TYPE: list[dict[str, Any]] = [
    ev("turn.start", turnId="t1", threadId="th", trigger={"kind": "user"}),
    ev("agent.capabilities", turnId="t1", capabilities={"streaming": {"partialMessages": True}}),
    ev("host.context", theme="dark"),
    ev("guardrail.result", turnId="t1", target="input", passed=True),
    ev("step.start", id="st1", turnId="t1"),
    ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th", stepId="st1"),
    ev("reasoning.start", id="r1", turnId="t1"),
    ev("reasoning.delta", id="r1", delta="hm"),
    ev("reasoning.opaque.delta", id="r1", delta="si"),
    ev("reasoning.opaque.delta", id="r1", delta="g"),
    ev("reasoning.opaque", id="r1", kind="signature", value="sig"),
    ev("reasoning.end", id="r1"),
    ev("text.start", id="x1", turnId="t1"),
    ev("text.delta", id="x1", delta="a", turnId="t1"),
    ev("source", sourceId="s1", source={"url": "https://a.example"}, turnId="t1"),
    ev("text.end", id="x1"),
    *(ev("content.block", block=block, turnId="t1") for block in BLOCKS),
    ev("tool.start", toolCallId="c1", name="n", turnId="t1"),
    ev("tool.args.delta", toolCallId="c1", delta="{}"),
    ev("tool.args.assembled", toolCallId="c1", input={}),
    ev("message.metadata", metadata={"k": 1}, turnId="t1"),
    ev("message.end", id="m1", usage={"totalTokens": 1}),
    ev("subagent.start", turnId="s1", parentTurnId="t1"),
    ev("message.start", id="m2", role="assistant", turnId="s1", threadId="th"),
    ev("text.start", id="x2", turnId="s1"),
    ev("tool.done", toolCallId="c1", content=[], messageId="c1:result", turnId="t1", more=True),
    ev("text.end", id="x2"),
    ev("message.end", id="m2"),
    ev("turn.error", turnId="s1", message="x"),
    ev("subagent.done", turnId="s1", parentTurnId="t1"),
    ev("tool.done", toolCallId="c1", content=[], messageId="c1:result", turnId="t1", outcome="ok"),
    ev("subagent.start", turnId="s2", parentTurnId="turn_c1"),
    ev("turn.abort", turnId="s2", reason="interrupted"),
    ev("step.done", id="st1"),
    ev("artifact.start", artifactId="a1", turnId="t1", threadId="th"),
    ev("artifact.delta", artifactId="a1", part={"type": "text", "text": "x"}, append=False),
    ev("artifact.end", artifactId="a1", lastChunk=True),
    ev("display.required", provider="p", html="<p>", turnId="t1"),
    ev("handoff", toAgentId="b", turnId="t1"),
    ev("prompt.blocked", reason="other", turnId="t1"),
    ev("ui.surface.start", surfaceId="u", catalogId="c", toolCallId="c1"),
    ev("ui.surface.update", surfaceId="u", components=[]),
    ev("ui.data-model", surfaceId="u", value=1),
    ev("ui.call", surfaceId="u", callId="k", method="m"),
    ev("ui.result", surfaceId="u", callId="k", value=1),
    ev("ui.action-result", surfaceId="u", actionId="a"),
    ev("ui.widget.result", surfaceId="u", callId="k", result="r"),
    ev("ui.display-mode", mode="inline"),
    ev("ui.surface.end", surfaceId="u"),
    ev("state.snapshot", snapshot={}),
    ev("state.delta", patch=[{"op": "add", "path": "/a", "value": 1}]),
    ev("memory.write", scope="thread", value={}),
    ev("memory.write", scope="thread", patch=[{"op": "add", "path": "/a", "value": 1}]),
    ev("error", message="advisory"),
    ev("ext.acme.note", value=1),
    ev("message.start", id="m3", role="assistant", turnId="t1", threadId="th"),
    ev("message.remove", id="m3"),
    ev("messages.snapshot", messages=[{"id": "m1", "role": "assistant", "turnId": "t1", "content": []}]),
    ev("hitl.ask", askId="q1", kind="approval", toolCallId="c1", turnId="t1"),
    ev(
        "turn.done",
        turnId="t1",
        outcome={"type": "paused", "asks": [{"askId": "q1", "kind": "approval", "toolCallId": "c1"}]},
        finishReason="paused",
    ),
]


def test_a_stream_of_every_event_type_and_block_kind_passes() -> None:
    types = {event["type"] for event in EVERY_TYPE}
    assert types >= set(EVENT_TYPES)
    assert broken(*EVERY_TYPE) == []


def test_the_same_stream_does_not_park_a_fold() -> None:
    reducer = Reducer()
    for event in typed(*EVERY_TYPE):
        reducer.push(event)
    assert reducer.resync_reason is None


@pytest.mark.parametrize("at", range(1, len(EVERY_TYPE)))
def test_a_gap_anywhere_is_one_finding_about_the_ordinals(at: int) -> None:
    events = numbered(*EVERY_TYPE)
    for event in events[at:]:
        event["seq"] += 1
    assert broken(*events) == [(at + 1, "INV-SEQ")]


def test_an_empty_stream_passes() -> None:
    assert broken() == []


def test_a_resumed_thread_passes() -> None:
    results = (
        ev("turn.start", seq=0, turnId="t2", threadId="th", trigger={"kind": "resume"}),
        ev("tool.done", toolCallId="c1", content=[], messageId="c1:answer", turnId="t2", outcome="denied"),
        ev("turn.done", turnId="t2", outcome={"type": "success"}, finishReason="stop"),
    )
    assert broken(*EVERY_TYPE, *results) == []
    assert broken(*results, known_ids={"c1", "t1", "q1"}) == []


# What parks a fold is found


def _any_event(choose: random.Random, stream: list[Any]) -> dict[str, Any]:
    """An event of a random type about a few ids, most of them out of place; half of the snapshots are true ones."""
    turn = choose.choice(["t1", "t2", "s1"])
    owner = choose.choice([None, None, turn])
    message = choose.choice(["m1", "m2", "r1"])
    named = choose.choice([None, None, None, message])
    block, call = choose.choice("xy"), choose.choice("cd")
    candidate, part = choose.choice([None, None, 0, 1]), choose.choice([None, 0, 1])
    patch = [{"op": "add", "path": "/a", "value": 1}]
    whole = choose.choice(
        [
            {"type": "text", "text": "a"},
            {"type": "tool-call", "toolCallId": call, "name": "n", "input": {}},
            {"type": "data", "name": "d", "id": "x", "data": 1},
        ]
    )
    done = ev("turn.done", turnId=turn, outcome={"type": "success"}, finishReason="stop", messageId=named)
    start = ev("message.start", id=message, role="assistant", turnId=turn, threadId="th", candidateIndex=candidate)
    stored = {"id": "m1", "role": "assistant", "turnId": "t1", "content": [whole]}
    event = choose.choice(
        [
            ev("turn.start", turnId=turn, threadId="th"),
            ev("subagent.start", turnId=turn, parentTurnId="t1" if turn != "t1" else "t2"),
            ev("subagent.done", turnId=turn, parentTurnId="t1" if turn != "t1" else "t2"),
            done,
            {**done, "messageMetadata": {"k": 1}},
            ev("turn.error", turnId=owner, message="x"),
            ev("turn.abort", turnId=owner),
            start,
            start,
            ev("message.end", id=message),
            ev("message.remove", id=choose.choice([message, "*"]), turnId=turn),
            ev("message.metadata", messageId=named, metadata={}, turnId=owner),
            ev("text.start", id=block, turnId=owner, candidateIndex=candidate, messageId=named),
            ev("text.delta", id=block, delta="a"),
            ev("text.end", id=block),
            ev("reasoning.start", id=block, turnId=owner, partIndex=part),
            ev("reasoning.delta", id=block, delta="a", partIndex=part),
            ev("reasoning.end", id=block),
            ev("reasoning.opaque", id=block, kind="signature", value="s"),
            ev("reasoning.opaque.delta", id=block, delta="s"),
            ev("tool.start", toolCallId=call, name="n", turnId=owner, candidateIndex=candidate),
            ev("tool.args.delta", toolCallId=call, delta="{"),
            ev("tool.args.assembled", toolCallId=call, input={}),
            ev("tool.done", toolCallId=call, content=[], messageId=named, turnId=owner, candidateIndex=candidate),
            ev("tool.done", toolCallId=call, content=[], messageId=named, turnId=owner, more=True),
            ev("content.block", block=whole, turnId=owner),
            ev("source", sourceId="s", source={"url": "u"}, turnId=owner, messageId=named),
            ev("handoff", turnId=owner),
            ev("artifact.start", artifactId="a", turnId=turn, threadId="th"),
            ev("artifact.delta", artifactId="a", part={"type": "text", "text": "a"}, append=True),
            ev("artifact.end", artifactId="a", lastChunk=True),
            ev("memory.write", scope="thread", value={}),
            ev("memory.write", scope="thread", patch=patch),
            ev("state.delta", patch=patch),
            ev("messages.snapshot", messages=[stored]),
            to_dict(snapshot(reduce(stream).result)[0]),
        ]
    )
    return {name: value for name, value in event.items() if value is not None} | {"seq": len(stream)}


@pytest.mark.parametrize("seed", range(40))
def test_what_parks_a_fold_is_found(seed: int) -> None:
    choose = random.Random(seed)
    parked = 0
    for _ in range(60):
        stream = typed(
            ev("turn.start", turnId="t1", threadId="th"),
            ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th"),
        )
        reducer = Reducer()
        for event in stream:
            reducer.push(event)
        while len(stream) < 14 and not reducer.needs_resync:
            stream.append(from_dict(_any_event(choose, stream), "event"))
            reducer.push(stream[-1])
        if reducer.needs_resync:
            parked += 1
            unfinished = (" is never ended", " is never closed")
            found = [v for v in check(stream) if not v.message.endswith(unfinished)]
            assert found, (reducer.resync_reason, stream)
    assert parked > 30
