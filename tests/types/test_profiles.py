"""Profiles: what needs more than CORE (spec §9)."""

from __future__ import annotations

from typing import Any

import pytest

import agjson.types as t

TEXT = t.TextBlock(text="x")
CITED = t.TextBlock(text="x", citations=[t.UrlCitation(cited_text="x", url="u")])
SAFETY = [t.AgSafety(category="c")]
ASK = t.AgPausedAsk(ask_id="a", kind="approval")


def done(**fields: Any) -> t.TurnDone:
    return t.TurnDone(**{"seq": 0, "turn_id": "t", "outcome": t.SuccessOutcome(), "finish_reason": "stop", **fields})


def result(**fields: Any) -> t.ToolDone:
    return t.ToolDone(**{"seq": 0, "tool_call_id": "c", "content": [], **fields})


def block(value: t.AgBlock) -> t.ContentBlock:
    return t.ContentBlock(seq=0, block=value)


def snapshot(message: dict[str, Any] | None = None, turn: dict[str, Any] | None = None, **fields: Any) -> Any:
    messages = [t.AgMessage(**{"id": "m", "role": "user", "content": [TEXT], **(message or {})})]
    turns = [t.AgTurnRecord(**{"turn_id": "t", "thread_id": "th", **(turn or {})})]
    return t.MessagesSnapshot(seq=0, messages=messages, turns=turns, **fields)


def nested(value: t.AgBlock) -> t.AgBlock:
    return t.ToolResultBlock(tool_call_id="c", content=[t.ToolResultBlock(tool_call_id="d", content=[value])])


CASES: list[tuple[Any, list[tuple[str, str]]]] = [
    (t.TextDelta(seq=0, id="b", delta="x"), []),
    (t.ExtEvent.embed("ext.acme.tick", {"usage": 1}, seq=0), []),
    (t.ReasoningStart(seq=0, id="b"), [("EXTENDED", "$.type")]),
    (t.StateSnapshot(seq=0, snapshot=None), [("ADVANCED", "$.type")]),
    (done(), []),
    (done(usage=t.AgUsage()), [("EXTENDED", "$.usage")]),
    (t.TurnError(seq=0, message="m", usage=t.AgUsage()), [("EXTENDED", "$.usage")]),
    (t.MessageEnd(seq=0, id="m", usage=t.AgUsage()), [("EXTENDED", "$.usage")]),
    (done(safety=SAFETY), [("EXTENDED", "$.safety")]),
    (done(safety=[]), []),
    (done(finish_reason="tool_call"), []),
    (done(finish_reason="refusal"), [("EXTENDED", "$.finishReason")]),
    (
        done(finish_reason="paused", outcome=t.PausedOutcome(asks=[ASK])),
        [("EXTENDED", "$.outcome"), ("EXTENDED", "$.finishReason")],
    ),
    (t.PromptBlocked(seq=0, reason="other", safety=SAFETY), [("ADVANCED", "$.type"), ("EXTENDED", "$.safety")]),
    (t.TextEnd(seq=0, id="b"), []),
    (t.TextEnd(seq=0, id="b", citations=CITED.citations), [("EXTENDED", "$.citations")]),
    (block(TEXT), []),
    (block(CITED), [("EXTENDED", "$.block.citations")]),
    (block(t.DataBlock(name="n", data=1)), [("EXTENDED", "$.block.type")]),
    (block(nested(TEXT)), []),
    (block(nested(t.CodeBlock(language="py", code=""))), [("EXTENDED", "$.block.content[0].content[0].type")]),
    (result(content=[TEXT], outcome="error", error_text="no", error_code="E"), []),
    (result(structured_content=None), [("ADVANCED", "$.structuredContent")]),
    (result(ui_data=1, side_data=2), [("ADVANCED", "$.uiData"), ("ADVANCED", "$.sideData")]),
    (result(content=[TEXT, CITED]), [("EXTENDED", "$.content[1].citations")]),
    (
        block(t.ToolResultBlock(tool_call_id="c", content=[], ui_data=None)),
        [("ADVANCED", "$.block.uiData")],
    ),
    (snapshot(artifacts=[], memory=[]), []),
    (snapshot({"usage": t.AgUsage()}), [("EXTENDED", "$.messages[0].usage")]),
    (snapshot({"content": [TEXT, CITED]}), [("EXTENDED", "$.messages[0].content[1].citations")]),
    (snapshot(turn={"outcome": t.SuccessOutcome(), "finish_reason": "stop", "safety": []}), []),
    (snapshot(turn={"parent_turn_id": "p"}), [("EXTENDED", "$.turns[0].parentTurnId")]),
    (snapshot(turn={"finish_reason": "pause_turn"}), [("EXTENDED", "$.turns[0].finishReason")]),
    (snapshot(turn={"asks": [ASK]}), [("EXTENDED", "$.turns[0].asks")]),
    (
        snapshot(turn={"prompt_blocked": t.AgPromptBlocked(reason="other")}),
        [("ADVANCED", "$.turns[0].promptBlocked")],
    ),
    (snapshot(turn={"capabilities": t.AgCapabilities()}), [("ADVANCED", "$.turns[0].capabilities")]),
    (
        snapshot(artifacts=[t.AgArtifact(artifact_id="a", turn_id="t", thread_id="th", parts=[])]),
        [("ADVANCED", "$.artifacts")],
    ),
    (snapshot(memory=[t.AgMemoryRecord(scope="thread", value=1)]), [("EXTENDED", "$.memory")]),
]


@pytest.mark.parametrize(("event", "needs"), CASES, ids=[f"{event.type}-{i}" for i, (event, _) in enumerate(CASES)])
def test_needs(event: Any, needs: list[tuple[str, str]]) -> None:
    assert list(t.profile_needs(event)) == needs
    profiles = {profile for profile, _ in needs}
    expected = next((profile for profile in reversed(t.PROFILES) if profile in profiles), "CORE")
    assert t.required_profile(event) == expected


def test_every_type_is_in_exactly_one_profile() -> None:
    for table, types in ((t.PROFILE_EVENTS, t.EVENT_TYPES), (t.PROFILE_BLOCKS, t.BLOCK_TYPES)):
        listed = [type_ for profile in t.PROFILES for type_ in table[profile]]
        assert sorted(listed) == sorted(types)


def test_how_many_each_profile_adds() -> None:
    assert [len(t.PROFILE_EVENTS[profile]) for profile in t.PROFILES] == [17, 14, 19]
    assert [len(t.PROFILE_BLOCKS[profile]) for profile in t.PROFILES] == [4, 12, 0]
