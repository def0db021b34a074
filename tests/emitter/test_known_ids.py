"""Ids that the thread has already, by what bears them (spec §5.0 INV-BLOCK, INV-OWNER)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agjson.checker import check
from agjson.emitter import Emitter
from agjson.fold import Reducer, reduce
from agjson.known_ids import KnownIds
from agjson.types import (
    AgReduceResult,
    AgStreamEvent,
    AgUsage,
    BareUrlSource,
    DataBlock,
    TextBlock,
    ToolResultBlock,
    UiSurfaceStart,
)
from tests.emitter.stream import types, wire

SOURCE = BareUrlSource(url="https://example.com")

IDS = {
    "turns": "turn",
    "messages": "message",
    "blocks": "text",
    "calls": "call",
    "asks": "ask",
    "artifacts": "artifact",
    "sources": "source",
    "steps": "step",
}
"""What bears an id, by kind, in the thread of the tests."""


def thread() -> AgReduceResult:
    """A thread in which every kind has been used."""
    emitter = Emitter("turn", "thread")
    emitter.step_start("step")
    emitter.message_start("message")
    emitter.text("said", id="text")
    emitter.tool_call("call", "f", {})
    emitter.source(SOURCE, source_id="source")
    emitter.artifact_delta("artifact", TextBlock(text="a"))
    emitter.hitl_ask("text", ask_id="ask", message="?")
    emitter.turn_paused()
    emitter.flush()
    return reduce(emitter.drain()).result


RESULT = thread()
KNOWN = KnownIds.of(RESULT) | KnownIds(blocks={"text"}, steps={"step"})

Use = Callable[[Emitter, str], object]

USES: dict[str, Use] = {
    "message_start": lambda out, id: out.message_start(id),
    "message_end": lambda out, id: out.message_end(id, usage=AgUsage(input_tokens=1)),
    "message_remove": lambda out, id: out.message_remove(id),
    "message_remove all": lambda out, id: out.message_remove("*", turn_id=id),
    "message_metadata": lambda out, id: out.message_metadata({"a": 1}, message_id=id),
    "text_start": lambda out, id: out.text_start(id),
    "text in a message": lambda out, id: out.text("x", message_id=id),
    "text in a turn": lambda out, id: out.text("x", turn_id=id),
    "text_delta": lambda out, id: out.text_delta(id, "x"),
    "text_end": lambda out, id: out.text_end(id, citations=[]),
    "reasoning_start": lambda out, id: out.reasoning_start(id),
    "reasoning_delta": lambda out, id: out.reasoning_delta(id, "x"),
    "tool_start": lambda out, id: out.tool_start(id, "g"),
    "tool_args_delta": lambda out, id: out.tool_args_delta(id, "{}"),
    "tool_args_assembled": lambda out, id: out.tool_args_assembled(id, {}),
    "tool_done": lambda out, id: out.tool_done(id, outcome="ok"),
    "tool_done in a message": lambda out, id: out.tool_done("own", message_id=id),
    "result block": lambda out, id: out.content_block(ToolResultBlock(tool_call_id=id, content=[])),
    "data block": lambda out, id: out.content_block(DataBlock(name="n", id=id, data=1)),
    "artifact_start": lambda out, id: out.artifact_start(id),
    "artifact_delta": lambda out, id: out.artifact_delta(id, TextBlock(text="b"), append=True),
    "artifact_end": lambda out, id: out.artifact_end(id),
    "source": lambda out, id: out.source(SOURCE, source_id=id),
    "step_start": lambda out, id: out.step_start(id),
    "step_done": lambda out, id: out.step_done(id),
    "hitl_ask": lambda out, id: out.hitl_ask("text", ask_id=id, message="?"),
    "hitl_ask for a call": lambda out, id: out.hitl_ask("approval", tool_call_id=id),
    "subagent_start": lambda out, id: out.subagent_start(id),
    "subagent_start in a turn": lambda out, id: out.subagent_start(parent_turn_id=id),
    "subagent_done": lambda out, id: out.subagent_done(id),
    "turn_start": lambda out, id: out.turn_start(id),
    "turn_abort": lambda out, id: out.turn_abort("cancelled", turn_id=id),
    "error": lambda out, id: out.error("x", message_id=id),
    "ext": lambda out, id: out.ext("ext.agjson.x", 1, message_id=id),
    "ui.surface.start": lambda out, id: out.emit(
        UiSurfaceStart(seq=0, surface_id="u", catalog_id="c", tool_call_id=id)
    ),
}
"""Every way to name something, by what is done."""


def assert_folds(events: list[AgStreamEvent]) -> None:
    """A second invoke of the thread is taken by its fold."""
    reducer = Reducer(RESULT)
    for event in events:
        reducer.push(event)
    assert reducer.resync_reason is None


def used(use: Use, id: str) -> list[AgStreamEvent]:
    """The events of a second invoke of the thread that names one id; they fold."""
    emitter = Emitter("next", "thread", known_ids=KNOWN)
    use(emitter, id)
    emitter.flush()
    events = emitter.drain()
    assert_folds(events)
    assert [str(violation) for violation in check(events, known_ids=KNOWN)] == []
    return events


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("use", USES)
def test_no_id_passes_for_what_it_is_not(use: str, kind: str) -> None:
    events = used(USES[use], IDS[kind])

    # What was is told in full here, kinds included. Whoever names an old message takes it out of its turn.
    if kind != "messages":
        assert [str(violation) for violation in check(events, initial=RESULT)] == []


@pytest.mark.parametrize("kind", [kind for kind in IDS if kind != "calls"])
def test_a_result_for_what_is_no_call_announces_one(kind: str) -> None:
    start, done = [event for event in wire(used(USES["tool_done"], IDS[kind])) if "toolCallId" in event][::2]

    assert (start["type"], start["name"]) == ("tool.start", "unknown")
    assert start["toolCallId"] == done["toolCallId"] == f"{IDS[kind]}#2"
    assert start["providerMetadata"] == {"agjson/nativeToolCallId": IDS[kind]}


def test_a_known_id_is_referred_to_as_what_it_is() -> None:
    def use(emitter: Emitter, id: str) -> None:
        emitter.tool_done("call", outcome="ok")
        emitter.message_metadata({"a": 1}, message_id="message")
        emitter.artifact_delta("artifact", TextBlock(text="b"), append=True)
        emitter.hitl_ask("approval", ask_id="new", tool_call_id="call")

    done, metadata, delta, ask = wire(used(use, ""))[1:5]

    assert (done["type"], done["toolCallId"]) == ("tool.done", "call")
    assert (metadata["type"], metadata["messageId"]) == ("message.metadata", "message")
    assert (delta["type"], delta["artifactId"], delta["append"]) == ("artifact.delta", "artifact", True)
    assert (ask["type"], ask["toolCallId"]) == ("hitl.ask", "call")


def test_a_plain_set_of_ids_lets_each_be_of_any_kind() -> None:
    emitter = Emitter("next", "thread", known_ids=frozenset({"x"}))
    emitter.tool_done("x", outcome="ok")
    emitter.artifact_delta("x", TextBlock(text="b"))

    assert types(emitter.drain()) == ["turn.start", "tool.done", "artifact.delta"]


def test_what_a_snapshot_has_taken_away_is_not_referred_to() -> None:
    emitter = Emitter("next", "thread", known_ids=KNOWN)
    emitter.messages_snapshot([], turns=[], artifacts=[])
    emitter.message_metadata({"a": 1}, message_id="message")
    emitter.artifact_delta("artifact", TextBlock(text="b"), append=True)
    emitter.flush()
    events = emitter.drain()

    assert_folds(events)
    assert types(events)[1:5] == ["messages.snapshot", "error", "artifact.start", "artifact.delta"]


def test_a_message_of_the_thread_that_was_removed_takes_no_metadata() -> None:
    for gone in (("message", None), ("*", "turn")):
        emitter = Emitter("next", "thread", known_ids=KNOWN)
        emitter.message_remove(gone[0], turn_id=gone[1])
        emitter.message_metadata({"a": 1}, message_id="message")
        emitter.flush()
        events = emitter.drain()

        assert_folds(events)
        assert sorted(types(events)[:3]) == ["error", "message.remove", "turn.start"]


# KnownIds


def test_the_ids_of_a_fold_are_known_by_kind() -> None:
    assert KnownIds.of(RESULT) == KnownIds(
        turns={"turn"}, messages={"message"}, calls={"call"}, asks={"ask"}, artifacts={"artifact"}, sources={"source"}
    )


def test_two_are_joined_kind_by_kind_and_stay_as_they_were() -> None:
    first = KnownIds(turns=frozenset({"a"}), calls={"b"})
    second = KnownIds(calls={"c", "a"})

    both = first | second

    assert both == KnownIds(turns={"a"}, calls={"a", "b", "c"})
    assert (first.calls, second.calls) == ({"b"}, {"c", "a"})
    assert both.turns is first.turns
    assert (sorted(both), len(both)) == (["a", "b", "c"], 3)
    assert "a" in both
    assert "d" not in both


def test_what_is_gone_is_avoided_and_not_referred_to() -> None:
    known = KNOWN.narrowed(messages=set(), artifacts={"artifact"})
    emitter = Emitter("next", "thread", known_ids=known)

    assert emitter.message_start("message") == "message#2"
    emitter.message_end()
    emitter.message_metadata({"a": 1}, message_id="message#3")
    assert emitter.artifact_delta("artifact", TextBlock(text="b")) == "artifact"

    assert types(emitter.drain())[-2:] == ["error", "artifact.delta"]
    assert (known.gone, known.messages, known.calls) == ({"message"}, set(), {"call"})
    assert "message" in known


def test_ids_that_are_known_by_kind_are_not_asked_for_it_again() -> None:
    assert KnownIds.of_any_kind(KNOWN) is KNOWN
    assert KnownIds.of_any_kind(["x"]).calls == {"x"}


# Settings


def test_a_keyword_that_is_no_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'known', 'thread'"):
        Emitter("t", "thread", known={"a"}, thread="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
