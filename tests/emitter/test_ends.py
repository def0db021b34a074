"""How turns end: one terminal each, pauses and asks, nested turns, the flush (spec §5.0 INV-TURN, INV-FLUSH, §7)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.emitter import Emitter
from agjson.types import (
    AbortedOutcome,
    AgPausedAsk,
    AgUsage,
    ErrorOutcome,
    PausedOutcome,
    RejectedOutcome,
    SuccessOutcome,
)
from tests.emitter.stream import errors, finished, folded, sound, types, wire


def outcomes(events: list[Any]) -> dict[str, Any]:
    return {turn.turn_id: turn.outcome for turn in folded(events).turns}


def test_a_turn_ends_after_its_messages() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("a")
    emitter.message_start("b")
    emitter.turn_done(usage=AgUsage(output_tokens=3, cumulative=True))
    events = finished(emitter)

    assert wire(events)[3:] == [
        {"type": "message.end", "id": "a", "turnId": "t"},
        {"type": "message.end", "id": "b", "turnId": "t"},
        {
            "type": "turn.done",
            "turnId": "t",
            "outcome": {"type": "success"},
            "finishReason": "stop",
            "usage": {"outputTokens": 3, "cumulative": True},
        },
    ]


def test_a_terminal_opens_a_turn_that_nothing_has_opened() -> None:
    emitter = Emitter("t", "thread")
    emitter.turn_error("no key", code="auth", retriable=False, usage=AgUsage(input_tokens=1))

    assert wire(finished(emitter)) == [
        {"type": "turn.start", "turnId": "t", "threadId": "thread"},
        {
            "type": "turn.error",
            "turnId": "t",
            "message": "no key",
            "code": "auth",
            "retriable": False,
            "usage": {"inputTokens": 1},
        },
    ]


@pytest.mark.parametrize(
    "first, outcome",
    [
        (lambda e: e.turn_done(outcome=RejectedOutcome(reason="no")), RejectedOutcome(reason="no")),
        (lambda e: e.turn_error("broken"), ErrorOutcome(message="broken")),
        (lambda e: e.turn_abort("cancelled"), AbortedOutcome(reason="cancelled")),
    ],
)
def test_later_terminals_become_visible_errors(first: Any, outcome: Any) -> None:
    emitter = Emitter("t", "thread")
    emitter.text("Hi")
    first(emitter)
    emitter.turn_done()
    emitter.turn_error("late", code="late_code")
    emitter.turn_abort("late")
    events = finished(emitter)

    assert outcomes(events) == {"t": outcome}
    assert [error["code"] for error in errors(events)] == ["turn_closed"] * 3
    assert [error["_meta"]["agjson/refused"]["type"] for error in errors(events)] == [
        "turn.done",
        "turn.error",
        "turn.abort",
    ]


def test_what_needs_no_open_turn_may_follow_its_end() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("Hi", id="b")
    emitter.turn_done()
    emitter.state_snapshot({"final": True})
    emitter.handoff(to_agent_id="b")
    emitter.ext("ext.agjson.note", {"a": 1})
    emitter.message_metadata({"k": 1})
    events = finished(emitter)

    assert errors(events) == []
    assert folded(events).state == {"final": True}


def test_message_metadata_of_a_turn_names_its_message() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("Hi")
    emitter.message_end()
    emitter.turn_done(message_metadata={"totalTokens": 9})
    without = Emitter("t", "thread")
    without.turn_done(message_metadata={"totalTokens": 9})

    assert folded(finished(emitter)).messages[0].message_metadata == {"totalTokens": 9}
    refused = finished(without)
    assert outcomes(refused) == {"t": SuccessOutcome()}
    assert errors(refused)[0]["_meta"]["agjson/refused"]["messageMetadata"] == {"totalTokens": 9}


# Nested turns


def test_a_nested_turn_ends_with_its_own_terminal_and_then_subagent_done() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    emitter.text("inner")
    emitter.turn_done(outcome=SuccessOutcome(result=1), turn_id="s")
    emitter.subagent_done("s")
    emitter.turn_done()

    assert types(finished(emitter))[-4:] == ["message.end", "turn.done", "subagent.done", "turn.done"]


def test_turns_still_nested_in_one_that_ends_are_aborted_first() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s1")
    emitter.subagent_start("s2")
    emitter.text("innermost")
    emitter.turn_done(turn_id="t")
    events = finished(emitter)

    assert [(event.type, event.turn_id) for event in events[-6:]] == [
        ("message.end", "s2"),
        ("turn.abort", "s2"),
        ("subagent.done", "s2"),
        ("turn.abort", "s1"),
        ("subagent.done", "s1"),
        ("turn.done", "t"),
    ]
    assert outcomes(events)["s1"] == AbortedOutcome(reason="parent-closed")


def test_the_end_of_a_turn_that_is_not_nested_is_no_subagent_done() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("Hi")
    emitter.subagent_done("t")
    emitter.subagent_done("never")
    events = finished(emitter)

    assert [error["code"] for error in errors(events)] == ["unknown_turn", "unknown_turn"]
    assert outcomes(events) == {"t": AbortedOutcome(reason="stream-truncated")}


def test_a_subagent_after_the_end_is_refused() -> None:
    emitter = Emitter("t", "thread")
    emitter.turn_done()
    emitter.subagent_start("s", agent_name="Ann")
    events = finished(emitter)

    assert errors(events)[0]["_meta"]["agjson/refused"]["agentName"] == "Ann"


def test_an_explicit_truncation_does_not_pass_for_a_flush() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    emitter.turn_abort("stream-truncated", turn_id="s")
    emitter.turn_done()

    assert outcomes(finished(emitter)) == {"t": SuccessOutcome(), "s": AbortedOutcome(reason="truncated")}


# The flush


def test_a_flush_ends_messages_in_order_and_aborts_turns_inside_out() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m")
    emitter.subagent_start("s")
    emitter.message_start("sm")
    emitter.text_start("x")
    emitter.text_delta("x", "ha")
    emitter.tool_start("c", "f", turn_id="t")
    emitter.tool_args_delta("c", "{")
    emitter.drain()

    emitter.flush()

    assert wire(emitter.drain()) == [
        {"type": "message.end", "id": "m", "turnId": "t"},
        {"type": "message.end", "id": "sm", "turnId": "s"},
        {"type": "turn.abort", "turnId": "s", "reason": "stream-truncated"},
        {"type": "turn.abort", "turnId": "t", "reason": "stream-truncated"},
    ]


def test_a_second_flush_adds_nothing() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("Hi")
    emitter.flush()
    emitter.drain()
    emitter.flush()

    assert emitter.drain() == []


def test_what_comes_after_the_flush_is_refused_and_the_stream_stays_sound() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("Hi", id="b")
    emitter.reasoning("hm", id="r")
    events = finished(emitter)
    emitter.text_delta("b", "late")
    emitter.text_end("b", provider_metadata={"k": 1})  # type: ignore[arg-type]
    emitter.reasoning_opaque("r", "late")
    emitter.tool_call("c", "f", {})
    emitter.message_start("m")
    emitter.subagent_start("s")
    emitter.turn_start("u")
    late = sound([*events, *emitter.drain()])[len(events) :]

    assert set(types(late)) == {"error"}


def test_what_comes_after_the_flush_of_an_empty_stream_still_shows() -> None:
    emitter = Emitter("t", "thread")
    emitter.flush()
    emitter.text_delta("b", "late")

    assert types(sound(emitter.drain())) == ["turn.start", "turn.abort", "error"]


def test_is_open_tells_whether_content_may_come() -> None:
    emitter = Emitter("t", "thread")
    assert emitter.is_open()
    emitter.subagent_start("s")
    emitter.turn_done(turn_id="s")
    assert (emitter.is_open(), emitter.is_open("s"), emitter.is_open("never")) == (True, False, True)
    emitter.turn_done()
    assert not emitter.is_open()


# Asks and pauses


def test_an_ask_is_named_by_its_call_and_the_pause_names_it() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("c", "rm", {"path": "/x"})

    assert emitter.hitl_ask("approval", tool_call_id="c", message="Delete?", token="tok", metadata={"k": 1}) == "t:c"
    emitter.turn_paused(result={"so": "far"}, usage=AgUsage(output_tokens=1))

    ask = AgPausedAsk(
        ask_id="t:c", kind="approval", message="Delete?", tool_call_id="c", token="tok", metadata={"k": 1}
    )
    events = finished(emitter)
    record = folded(events).turns[0]
    assert record.outcome == PausedOutcome(asks=[ask], result={"so": "far"})
    assert (record.finish_reason, record.asks) == ("paused", [ask])


def test_native_ask_ids_are_kept_and_never_opened_twice() -> None:
    emitter = Emitter("t", "thread", known_ids={"used", "open"}, open_asks={"open"})

    assert emitter.hitl_ask("text", ask_id="n1", reason="why") == "n1"
    assert emitter.hitl_ask("text", ask_id="n1") == "n1#2"
    assert emitter.hitl_ask("text", ask_id="used") == "used#2"
    assert emitter.hitl_ask("text", ask_id="open") == "open"
    assert emitter.hitl_ask("form", schema={"type": "object"}) == "t:ask:0"
    assert (emitter.has_ask("n1"), emitter.has_ask("n2")) == (True, False)
    emitter.turn_paused()

    events = finished(emitter, known_ids={"used", "open"})
    assert [ask.ask_id for ask in folded(events).turns[0].asks or ()] == ["n1", "n1#2", "used#2", "open", "t:ask:0"]


def test_an_ask_about_a_call_never_heard_of_is_still_asked() -> None:
    emitter = Emitter("t", "thread")
    emitter.hitl_ask("approval", tool_call_id="ghost")
    emitter.turn_paused()
    events = finished(emitter)

    (ask,) = list(folded(events).turns[0].asks or [])
    assert (ask.tool_call_id, ask.metadata) == (None, {"agjson/toolCallId": "ghost"})
    assert [error["code"] for error in errors(events)] == ["unknown_tool_call"]


def test_an_ask_about_an_earlier_invokes_call_goes_by_the_threads_id() -> None:
    emitter = Emitter("t2", "thread", known_ids={"c#2"}, call_ids={"c": "c#2"})

    assert emitter.hitl_ask("approval", tool_call_id="c") == "t2:c#2"


def test_a_pause_opens_the_asks_that_nothing_has_opened() -> None:
    emitter = Emitter("t", "thread", known_ids={"old"}, open_asks={"old"})
    emitter.tool_call("c", "f", {})
    emitter.turn_paused(
        [
            AgPausedAsk(ask_id="old", kind="text"),
            AgPausedAsk(ask_id="new", kind="approval", tool_call_id="c"),
            AgPausedAsk(ask_id="odd", kind="approval", tool_call_id="ghost"),
        ]
    )
    events = finished(emitter, known_ids={"old"})

    assert [event["askId"] for event in wire(events) if event["type"] == "hitl.ask"] == ["new", "odd"]
    assert [ask.ask_id for ask in folded(events).turns[0].asks or ()] == ["old", "new", "odd"]


def test_a_pause_without_an_ask_is_none() -> None:
    emitter = Emitter("t", "thread")
    emitter.turn_paused(result=1)
    by_reason = Emitter("t", "thread")
    by_reason.turn_done(finish_reason="paused", outcome=SuccessOutcome(result=1))

    for events in (finished(emitter), finished(by_reason)):
        assert outcomes(events) == {"t": SuccessOutcome(result=1)}
        assert folded(events).turns[0].finish_reason == "other"
        assert [error["code"] for error in errors(events)] == ["paused_without_ask"]


def test_a_finish_reason_of_paused_pauses_on_the_asks() -> None:
    emitter = Emitter("t", "thread")
    emitter.hitl_ask("text", ask_id="a")
    emitter.turn_done(finish_reason="paused", outcome=SuccessOutcome(result=1))
    events = finished(emitter)

    assert outcomes(events) == {"t": PausedOutcome(asks=[AgPausedAsk(ask_id="a", kind="text")], result=1)}


def test_nested_turns_pause_with_the_outer_one_if_they_ask() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("asks")
    emitter.tool_call("c", "f", {})
    emitter.hitl_ask("approval", tool_call_id="c")
    emitter.subagent_start("idle", parent_turn_id="t")
    assert [ask.ask_id for ask in emitter.pending_asks()] == ["asks:c"]
    emitter.turn_paused(turn_id="t")
    events = finished(emitter)

    ask = AgPausedAsk(ask_id="asks:c", kind="approval", tool_call_id="c")
    assert outcomes(events) == {
        "t": PausedOutcome(asks=[ask]),
        "asks": PausedOutcome(asks=[ask]),
        "idle": AbortedOutcome(reason="parent-closed"),
    }


def test_a_subagent_that_asks_ends_paused() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    emitter.hitl_ask("text", ask_id="a")
    emitter.subagent_done("s")
    emitter.turn_done()
    events = finished(emitter)

    assert outcomes(events) == {
        "s": PausedOutcome(asks=[AgPausedAsk(ask_id="a", kind="text")]),
        "t": SuccessOutcome(),
    }


def test_asks_of_a_nested_turn_that_went_on_are_settled() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    emitter.hitl_ask("text", ask_id="a")
    emitter.turn_done(turn_id="s")
    emitter.hitl_ask("text", ask_id="b")
    emitter.turn_paused()
    events = finished(emitter)

    assert outcomes(events)["t"] == PausedOutcome(asks=[AgPausedAsk(ask_id="b", kind="text")])


def test_an_ask_after_the_end_is_refused() -> None:
    emitter = Emitter("t", "thread")
    emitter.turn_done()
    assert emitter.hitl_ask("text", ask_id="a") == "a"

    assert errors(finished(emitter))[0]["_meta"]["agjson/refused"]["askId"] == "a"
