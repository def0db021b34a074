"""The contract of every normalizer: it never raises, drops nothing, ends a turn once (spec §8.0, §5.0 INV-FLUSH)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agjson.checker import check
from agjson.failures import Failure
from agjson.fold import reduce
from agjson.normalizer import HostAbort, HostEnd, HostError, Normalizer
from agjson.types import (
    AbortedOutcome,
    AgMemoryRecord,
    AgPausedAsk,
    AgStreamEvent,
    AgTrigger,
    AgUsage,
    ErrorEvent,
    ErrorOutcome,
    ExtEvent,
    PausedOutcome,
    RejectedOutcome,
    SuccessOutcome,
    TextBlock,
)
from agjson.wire import encode, to_dict


class Echo(Normalizer):
    """A framework whose events are dicts of one method and its arguments."""

    def _on(self, native: Any) -> None:
        if native == {"boom": True}:
            self.out.text("before the failure")
            raise ValueError("no such thing")
        if "deep" in native:
            self._on(native)
        for name, arguments in native.items():
            if hasattr(self.out, name):
                getattr(self.out, name)(**arguments)
            else:
                self.unparsed(native, f"unknown kind {name}")

    def _usage_so_far(self) -> AgUsage | None:
        return AgUsage(output_tokens=7)


class Google(Echo):
    vendor: ClassVar[str] = "google"
    ends_itself: ClassVar[bool] = True


def run(normalizer: Normalizer, *natives: object) -> list[AgStreamEvent]:
    events = [event for native in natives for event in normalizer.push(native)]
    events += normalizer.flush()
    assert [event.seq for event in events] == list(range(len(events)))
    assert list(check(events)) == []
    assert reduce(events).needs_resync is False
    return events


def outcome(events: list[AgStreamEvent]) -> Any:
    return reduce(events).result.turns[0].outcome


def test_push_gives_the_events_of_one_native_event() -> None:
    normalizer = Echo("t", "thread")

    assert [event.type for event in normalizer.push({"text_delta": {"id": "b", "delta": "Hi"}})] == [
        "turn.start",
        "message.start",
        "text.start",
        "text.delta",
    ]
    assert [event.type for event in normalizer.push({"text_delta": {"id": "b", "delta": "!"}})] == ["text.delta"]
    assert normalizer.push({}) == []
    assert (normalizer.turn_id, normalizer.thread_id) == ("t", "thread")


def test_what_the_thread_has_reaches_the_emitter() -> None:
    normalizer = Echo(
        "t",
        "thread",
        known_ids={"b", "c#2", "ask"},
        call_ids={"c": "c#2"},
        open_asks={"ask"},
        parent_turn_id="p",
        trigger=AgTrigger(kind="agent"),
        profile="ADVANCED",
        on_excess="refuse",
        state={"a": 1},
        memory=[AgMemoryRecord(scope="user", value={"a": 1})],
    )
    patch = [{"op": "remove", "path": "/a"}]
    events = [
        *normalizer.push({"text_start": {"id": "b"}}),
        *normalizer.push({"tool_done": {"tool_call_id": "c"}}),
        *normalizer.push({"hitl_ask": {"kind": "text", "ask_id": "ask"}}),
        *normalizer.push({"state_delta": {"patch": patch}}),
        *normalizer.push({"memory_write": {"scope": "user", "patch": patch}}),
    ]

    assert [event.type for event in events] == [
        "turn.start",
        "subagent.start",
        "message.start",
        "text.start",
        "tool.done",
        "hitl.ask",
        "state.delta",
        "memory.write",
    ]
    assert to_dict(events[0])["trigger"] == {"kind": "agent"}
    assert to_dict(events[3])["id"] == "b#2"
    assert to_dict(events[4])["toolCallId"] == "c#2"
    assert to_dict(events[5])["askId"] == "ask"


# Failures


def test_a_failing_hook_keeps_what_it_emitted_and_carries_the_event_whole() -> None:
    events = run(Echo("t", "thread"), {"text_delta": {"id": "b", "delta": "Hi"}}, {"boom": True}, HostEnd())

    dicts = [to_dict(event) for event in events]
    assert [event["delta"] for event in dicts if event["type"] == "text.delta"] == ["Hi", "before the failure"]
    unparsed = next(event for event in dicts if event["type"] == "ext.agjson.unparsed")
    assert unparsed["raw"] == {"boom": True}
    assert unparsed["reason"] == "Echo: ValueError: no such thing"
    error = next(event for event in dicts if event["type"] == "error")
    assert (error["code"], error["message"]) == ("normalizer_error", "Echo: ValueError: no such thing")
    assert outcome(events) == SuccessOutcome()


def test_an_endless_recursion_in_a_hook_is_a_failure_like_any_other() -> None:
    events = run(Echo("t", "thread"), {"deep": 1}, HostEnd())

    assert [event.type for event in events] == ["turn.start", "ext.agjson.unparsed", "error", "turn.done"]


def test_an_event_without_a_mapping_is_carried_in_the_vendors_name() -> None:
    events = run(Google("t", "thread"), {"novelty": {"x": 1}})

    assert to_dict(events[1]) == {
        "type": "ext.google.unparsed",
        "seq": 1,
        "turnId": "t",
        "reason": "unknown kind novelty",
        "raw": {"novelty": {"x": 1}},
    }


class Hostile:
    """An object that raises wherever it can."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("hands off")

    def __repr__(self) -> str:
        raise RuntimeError("hands off")


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: 5,
        lambda: "text",
        lambda: b"\xff",
        lambda: [1],
        object,
        Hostile,
        lambda: float("nan"),
        lambda: {1: 2},
    ],
    ids=["None", "int", "str", "bytes", "list", "object", "Hostile", "NaN", "keys"],
)
def test_no_native_event_makes_push_raise(make: Callable[[], object]) -> None:
    events = run(Echo("t", "thread"), make(), HostEnd())

    assert events[1].type == "ext.agjson.unparsed"
    assert outcome(events) == SuccessOutcome()
    for event in events:
        encode(event)


def test_a_failing_conversion_at_the_door_is_carried_too() -> None:
    class Strict(Echo):
        def _plain(self, native: object) -> Any:
            raise TypeError(f"cannot read {native!r}")

    events = run(Strict("t", "thread"), {"a": 1}, HostEnd())

    assert to_dict(events[1])["raw"] == {"a": 1}


def test_a_bad_vendor_name_still_leaves_an_error() -> None:
    class Misnamed(Echo):
        vendor: ClassVar[str] = "Not A Name"

    events = run(Misnamed("t", "thread"), {"boom": True})

    assert "normalizer_error" in [to_dict(event).get("code") for event in events]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_is_no_failure_passes_through_and_loses_no_event(raised: type[BaseException]) -> None:
    class Interrupted(Echo):
        def _on(self, native: Any) -> None:
            self.out.text("so far")
            raise raised

    normalizer = Interrupted("t", "thread")

    with pytest.raises(raised):
        normalizer.push({})

    assert "text.delta" in [event.type for event in normalizer.flush()]


# Ends


def test_the_hosts_end_closes_the_turn() -> None:
    usage = AgUsage(output_tokens=3)
    plain = run(Echo("t", "thread"), {"text": {"text": "Hi"}}, HostEnd())
    told = run(Echo("t", "thread"), HostEnd(outcome=RejectedOutcome(reason="no"), finish_reason="refusal", usage=usage))

    assert outcome(plain) == SuccessOutcome()
    record = reduce(told).result.turns[0]
    assert (record.outcome, record.finish_reason, record.usage) == (RejectedOutcome(reason="no"), "refusal", usage)


def test_the_hosts_end_pauses_a_turn_that_asks() -> None:
    events = run(Echo("t", "thread"), {"hitl_ask": {"kind": "text", "ask_id": "a"}}, HostEnd())
    told = run(Echo("t", "thread"), {"hitl_ask": {"kind": "text", "ask_id": "a"}}, HostEnd(outcome=SuccessOutcome()))

    assert outcome(events) == PausedOutcome(asks=[AgPausedAsk(ask_id="a", kind="text")])
    assert outcome(told) == SuccessOutcome()


def test_the_hosts_end_closes_the_invokes_turn_even_inside_a_nested_one() -> None:
    events = run(Echo("t", "thread"), {"subagent_start": {"turn_id": "s"}}, HostEnd())

    assert {turn.turn_id: turn.outcome for turn in reduce(events).result.turns} == {
        "t": SuccessOutcome(),
        "s": AbortedOutcome(reason="parent-closed"),
    }


def test_a_stream_that_ends_itself_is_truncated_without_its_terminal() -> None:
    cut = run(Google("t", "thread"), {"text": {"text": "Hi"}}, HostEnd())
    whole = run(Google("t", "thread"), {"text": {"text": "Hi"}}, {"turn_done": {}}, HostEnd())

    assert outcome(cut) == AbortedOutcome(reason="stream-truncated")
    assert outcome(whole) == SuccessOutcome()


@pytest.mark.parametrize(
    ("sentinel", "ends"),
    [
        (HostEnd(), ["turn.start", "turn.abort"]),
        (HostError("broken"), ["turn.start", "turn.error"]),
        (HostAbort(), ["turn.start", "turn.abort"]),
    ],
)
def test_a_run_that_ends_without_a_single_event_has_a_turn(sentinel: object, ends: list[str]) -> None:
    assert [event.type for event in run(Google("t", "th"), sentinel)] == ends


@pytest.mark.parametrize(
    ("method", "arguments", "why"),
    [
        ("tool_start", ("c", None), "tool.start: Expected `str`, got `null` - at `$.name`"),
        ("text_delta", ("x", 5), "text.delta: Expected `str`, got `int` - at `$.delta`"),
        ("tool_done", ("c", [TextBlock(text=cast("Any", None))]), "tool.done: Expected `str`, got `null`"),
    ],
)
def test_a_member_of_the_wrong_type_stays_inside(method: str, arguments: tuple[Any, ...], why: str) -> None:
    class Careless(Echo):
        def _on(self, native: Any) -> None:
            getattr(self.out, method)(*arguments)

    events = run(Careless("t", "th"), {"native": 1}, HostEnd())

    (unparsed,) = [event for event in events if isinstance(event, ExtEvent)]
    assert unparsed.type == "ext.agjson.unparsed"
    assert unparsed.payload["raw"] == {"native": 1}
    (told,) = [event for event in events if isinstance(event, ErrorEvent)]
    assert (told.code, why in told.message) == ("normalizer_error", True), told.message
    assert events[-1].type == "turn.done"


def test_no_terminal_at_all_is_a_truncation() -> None:
    assert outcome(run(Echo("t", "thread"), {"text": {"text": "Hi"}})) == AbortedOutcome(reason="stream-truncated")


class Overloaded(Exception):
    type = "overloaded_error"
    status_code = 200


def test_a_thrown_error_closes_the_turn_with_what_it_has_cost() -> None:
    events = run(Echo("t", "thread"), {"text": {"text": "Hi"}}, HostError(Overloaded("busy")))

    assert to_dict(events[-1]) == {
        "type": "turn.error",
        "seq": len(events) - 1,
        "turnId": "t",
        "message": "busy",
        "code": "overloaded_error",
        "retriable": True,
        "usage": {"outputTokens": 7},
    }


def test_what_the_driver_says_of_an_error_counts_more() -> None:
    usage = AgUsage(input_tokens=1)
    events = run(Echo("t", "thread"), HostError(Overloaded("busy"), code="max_turns", retriable=False, usage=usage))
    words = run(Echo("t", "thread"), HostError("the host gave up"))

    assert outcome(events) == ErrorOutcome(message="busy", code="max_turns")
    assert to_dict(events[-1])["retriable"] is False
    assert reduce(events).result.turns[0].usage == usage
    assert outcome(words) == ErrorOutcome(message="the host gave up", code="host_error")


def test_an_adapter_knows_the_exceptions_of_its_framework() -> None:
    class Knowing(Echo):
        def _describe(self, error: BaseException) -> Failure:
            return Failure("too many turns", "max_turns", False)

    assert outcome(run(Knowing("t", "thread"), HostError(RuntimeError("?")))) == ErrorOutcome(
        message="too many turns", code="max_turns"
    )


def test_an_error_after_the_end_is_no_second_terminal() -> None:
    events = run(Echo("t", "thread"), HostEnd(), HostError(ValueError("late")), HostEnd(), HostAbort())

    assert [event.type for event in events] == ["turn.start", "turn.done", "error"]
    assert to_dict(events[-1])["message"] == "late"


@pytest.mark.parametrize(
    "sentinel, reason",
    [
        (HostAbort(), "cancelled"),
        (HostAbort("client-closed"), "client-closed"),
        (HostError(asyncio.CancelledError()), "cancelled"),
        (HostError(GeneratorExit()), "cancelled"),
    ],
)
def test_a_stop_from_outside_is_an_abort(sentinel: object, reason: str) -> None:
    events = run(Echo("t", "thread"), {"text": {"text": "Hi"}}, sentinel, sentinel)

    assert outcome(events) == AbortedOutcome(reason=reason)
    assert [event.type for event in events].count("error") == 0


def test_a_terminal_is_not_lost_with_the_hook_that_should_tell_it() -> None:
    class Broken(Echo):
        def _on_error(self, error: HostError) -> None:
            raise LookupError("in the hook")

    events = run(Broken("t", "thread"), HostError(ValueError("the real one")))

    assert outcome(events) == ErrorOutcome(message="the real one", code="ValueError")
    assert "normalizer_error" in [to_dict(event).get("code") for event in events]


# The flush


def test_a_flush_releases_what_was_held_back_and_happens_once() -> None:
    class Holding(Echo):
        def _on_flush(self) -> None:
            self.out.turn_done()

    normalizer = Holding("t", "thread")
    normalizer.push({"text": {"text": "Hi"}})

    assert [event.type for event in normalizer.flush()] == ["message.end", "turn.done"]
    assert normalizer.flush() == []


def test_a_failing_release_is_visible_and_the_stream_still_ends() -> None:
    class Broken(Echo):
        def _on_flush(self) -> None:
            raise LookupError("nothing held")

    events = run(Broken("t", "thread"), {"text": {"text": "Hi"}})

    assert [event.type for event in events[-3:]] == ["error", "message.end", "turn.abort"]


def test_what_is_pushed_after_the_flush_shows_and_does_not_raise() -> None:
    normalizer = Echo("t", "thread")
    events = run(normalizer, {"text": {"text": "Hi"}}, HostEnd())
    late = [*normalizer.push({"text": {"text": "late"}}), *normalizer.push(HostError(ValueError("late")))]

    assert normalizer.push(HostEnd()) == normalizer.push(HostAbort()) == []
    assert [to_dict(event)["code"] for event in late] == ["stream_ended", "stream_ended"]
    assert to_dict(late[0])["_meta"] == {"agjson/refused": {"text": {"text": "late"}}}
    assert list(check([*events, *late])) == []


natives = st.one_of(
    st.sampled_from(
        [
            {"text_delta": {"id": "b", "delta": "x"}},
            {"message_end": {}},
            {"tool_start": {"tool_call_id": "c", "name": "f"}},
            {"tool_done": {"tool_call_id": "c"}},
            {"subagent_start": {"turn_id": "s"}},
            {"turn_done": {"turn_id": "s"}},
            {"turn_done": {}},
            {"turn_done": {"nonsense": 1}},
            {"boom": True},
            HostEnd(),
            HostError(ValueError("x")),
            HostAbort(),
        ]
    ),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(natives, max_size=12))
def test_any_natives_in_any_order_make_a_sound_stream(pushed: list[object]) -> None:
    for event in run(Echo("t", "thread"), *pushed):
        encode(event)
