"""What is left of a run that was lost: whatever of it had been noted, the thread goes on and says that it broke off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.agents import Invocation, Pending, Recovered, Thread, recover
from agjson.checker import Violation, check
from agjson.fold import Reducer
from agjson.known_ids import KnownIds
from agjson.testing import events as anything
from agjson.testing import renumber, streams
from agjson.types import (
    AbortedOutcome,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    AgTurnRecord,
    TextBlock,
    TurnAbort,
    TurnStart,
)
from agjson.wire import decode_event, encode, to_dict
from tests.support.anthropic_wire import Recording, fold_recording, recording_params
from tests.support.every_event import every_event
from tests.support.folding import same_json
from tests.support.properties import examples
from tests.support.scripted import ScriptAgent, Session, results, start, text, types
from tests.support.streams import ev, typed

TERMINALS = ("turn.done", "turn.error", "turn.abort")


Forgive = Callable[[Violation], bool]


def nothing(violation: Violation) -> bool:
    """The stream is to be beyond reproach."""
    return False


def verified(thread: Thread, turn_id: str, noted: Sequence[AgStreamEvent], forgive: Forgive = nothing) -> Recovered:
    """A recovery, held against what a client makes of the noted events and those that close the turn."""
    recovered = folded(thread, turn_id, noted)
    stream = [*noted[: recovered.noted], *recovered.events]
    before = thread.result
    found = check(stream, initial=before) if before.turns else check(stream, known_ids=frozenset(thread.ids))
    assert not [violation for violation in found if not forgive(violation)]
    return recovered


def folded(thread: Thread, turn_id: str, noted: Sequence[AgStreamEvent]) -> Recovered:
    """A recovery whose thread is what the events fold to that it says count, as they go over the wire."""
    recovered = recover(thread, turn_id, iter(noted))
    reducer = Reducer(thread.result)
    for event in [*noted[: recovered.noted], *recovered.events]:
        reducer.push(decode_event(encode(event)))
    assert not reducer.needs_resync, reducer.resync_reason
    assert same_json(to_dict(reducer.result()), to_dict(recovered.thread.result))
    assert recovered.thread.revision == thread.revision + 1
    return recovered


def outcome(thread: Thread, turn_id: str) -> Any:
    """How a turn ended."""
    (turn,) = (turn for turn in thread.result.turns if turn.turn_id == turn_id)
    return turn.outcome


def every_prefix(
    thread: Thread, turn_id: str, events: Sequence[AgStreamEvent], *, forgive: Forgive = nothing, step: int = 1
) -> None:
    """Recover from the prefixes of a whole stream."""
    end = next(i for i, event in enumerate(events) if event.type in TERMINALS and event.turn_id == turn_id)
    for length in sorted({*range(0, len(events), step), end, end + 1, len(events)}):
        recovered = verified(thread, turn_id, events[:length], forgive)
        assert recovered.noted == length
        if length > end:
            assert recovered.events == []
        else:
            last = recovered.events[-1]
            assert last == TurnAbort(seq=last.seq, turn_id=turn_id, reason="interrupted")
            assert outcome(recovered.thread, turn_id) == AbortedOutcome(reason="interrupted")


def test_every_prefix_of_a_stream_with_every_event_is_closed() -> None:
    wire = [event for event in every_event() if not event["type"].startswith("later.")]
    # The blocks of the stream are those of the first candidate.
    wire = [{name: value for name, value in event.items() if name != "candidateIndex"} for event in wire]
    events = [decode_event(encode({**event, "seq": seq})) for seq, event in enumerate(wire)]
    events = events[: [event.type for event in events].index("turn.done") + 1]
    broken = set(check(events))

    def forgive(violation: Violation) -> bool:
        # What the stream breaks itself, and citations of sources that were still to come.
        return violation in broken or "which never comes" in violation.message

    every_prefix(Thread(thread_id="th1"), "t1", events, forgive=forgive)


@pytest.mark.parametrize("recording", recording_params(streamed=True))
def test_prefixes_of_a_recorded_answer_are_closed(recording: Recording) -> None:
    events, ids = fold_recording(recording)
    thread = Thread(thread_id="th", ids=KnownIds.of_any_kind(ids))
    every_prefix(thread, "t1", events, step=max(1, len(events) // 40))


def test_every_prefix_of_later_turns_of_a_thread_is_closed() -> None:
    """The same native ids in every run; a paused turn, a nested turn, state and memory that are patched."""

    def script(invocation: Invocation) -> list[Any]:
        if len(invocation.thread.result.turns) == 0:
            return [
                {"do": "state_snapshot", "snapshot": {"a": 1}},
                *text("one two"),
                {"do": "tool_call", "tool_call_id": "c", "name": "f", "input": {}},
                {"do": "turn_done", "finish_reason": "tool_call"},
            ]
        return [
            {"do": "message_start", "id": "m-x"},
            {"do": "reasoning_start", "id": "r"},
            {"do": "reasoning_delta", "id": "r", "delta": "hm"},
            {"do": "text_start", "id": "x"},
            {"do": "text_delta", "id": "x", "delta": "three"},
            {"do": "tool_start", "tool_call_id": "c", "name": "f"},
            {"do": "tool_args_delta", "tool_call_id": "c", "delta": '{"a'},
            {"do": "hitl_ask", "ask_id": "a", "kind": "approval", "tool_call_id": "c"},
            {"do": "state_delta", "patch": [{"op": "replace", "path": "/a", "value": 2}]},
            {"do": "turn_paused"},
        ]

    agent = ScriptAgent(script, client_tools={"f"})
    session = Session(agent)
    session.run_sync(start())
    before = session.thread()
    events = session.run_sync(results("c"))
    assert {"reasoning.delta", "state.delta", "hitl.ask", "tool.args.delta"} <= set(types(events)), types(events)
    every_prefix(replace(before, pending=Pending()), "r", events)


@given(streams(), st.data())
@examples(60)
def test_any_prefix_of_any_stream_folds_to_what_is_recovered(events: list[AgStreamEvent], data: st.DataObject) -> None:
    noted = events[: data.draw(st.integers(0, len(events)))]
    turn_id = next((event.turn_id for event in events if isinstance(event, TurnStart)), "t")
    folded(Thread(thread_id="thread"), turn_id, noted)


@given(st.lists(anything(), max_size=12))
@examples(60)
def test_events_without_rhyme_or_reason_lose_no_thread(events: list[AgStreamEvent]) -> None:
    before = verified(Thread(thread_id="th"), "t0", [TurnStart(seq=0, thread_id="th", turn_id="t0")]).thread
    recovered = folded(before, "t1", renumber(events))
    assert outcome(recovered.thread, "t0") == AbortedOutcome(reason="interrupted")
    assert {"t0", "t1"} <= recovered.thread.ids.turns


def test_nothing_noted_is_a_turn_that_broke_off() -> None:
    recovered = verified(Thread(thread_id="th"), "t", [])
    assert recovered.events == [
        TurnStart(seq=0, turn_id="t", thread_id="th"),
        TurnAbort(seq=1, turn_id="t", reason="interrupted"),
    ]
    assert recovered.thread == Thread(
        thread_id="th", result=recovered.thread.result, ids=KnownIds(turns={"t"}), revision=1
    )


OPENED = typed(
    ev("turn.start", turnId="t", threadId="th"),
    ev("message.start", id="m", role="assistant", turnId="t", threadId="th"),
    ev("text.start", id="x", turnId="t", messageId="m"),
    ev("text.delta", id="x", turnId="t", messageId="m", delta="Hello"),
)


def test_what_is_open_is_closed_with_the_reason_of_the_caller() -> None:
    recovered = recover(Thread(thread_id="th"), "t", OPENED, reason="restarted")
    assert recovered.events == typed(
        ev("message.end", seq=4, id="m", turnId="t"),
        ev("turn.abort", turnId="t", reason="restarted"),
    )
    assert [block.text for block in recovered.thread.messages[0].content if isinstance(block, TextBlock)] == ["Hello"]
    assert recovered.thread.ids == KnownIds(turns={"t"}, messages={"m"}, blocks={"x"})


def test_what_follows_a_gap_does_not_count() -> None:
    whole = verified(Thread(thread_id="th"), "t", OPENED[:3])
    gap = verified(Thread(thread_id="th"), "t", [*OPENED[:3], *typed(ev("text.end", seq=4, id="x", turnId="t"))])
    assert (gap.noted, gap.events, gap.thread) == (3, whole.events, whole.thread)
    later = recover(Thread(thread_id="th"), "t", OPENED[1:])
    assert (later.noted, [event.type for event in later.events]) == (0, ["turn.start", "turn.abort"])


def test_of_a_stream_that_does_not_fold_only_the_turn_is_kept() -> None:
    noted = [*OPENED, *typed(ev("state.delta", seq=4, turnId="t", patch=[{"op": "remove", "path": "/a"}]))]
    before = verified(Thread(thread_id="th"), "t0", typed(ev("turn.start", turnId="t0", threadId="th"))).thread
    recovered = verified(before, "t", noted)
    assert (recovered.noted, [event.type for event in recovered.events]) == (0, ["turn.start", "turn.abort"])
    assert recovered.thread.messages == []
    # No later run may use the ids again: readers of the lost one have seen them.
    assert {"m", "x"} <= set(recovered.thread.ids)


def test_a_turn_that_the_thread_has_already_changes_nothing_in_it() -> None:
    thread = verified(Thread(thread_id="th"), "t", OPENED).thread
    again = recover(thread, "t", [])
    assert again.thread == replace(thread, revision=2)


def test_the_rest_of_the_thread_stays() -> None:
    ask = AgPausedAsk(ask_id="a", kind="text")
    thread = Thread(
        thread_id="th",
        result=AgReduceResult(
            messages=[AgMessage(id="u", role="user", content=[TextBlock(text="hi")], turn_id="t0")],
            artifacts=[],
            memory=[],
            turns=[AgTurnRecord(turn_id="t0", thread_id="th")],
            state={"a": 1},
        ),
        ids=KnownIds(messages={"u"}, turns={"t0"}),
        nested={"n"},
        pending=Pending(asks=(ask,)),
        started_by="t0",
        revision=7,
        owner="ann",
    )
    after = verified(thread, "t", OPENED).thread
    assert (after.pending, after.started_by, after.owner, after.nested) == (Pending(asks=(ask,)), "t0", "ann", {"n"})
    assert (after.result.state, [message.id for message in after.messages]) == ({"a": 1}, ["u", "m"])
    assert after.ids == KnownIds(messages={"u", "m"}, turns={"t0", "t"}, blocks={"x"})
    assert thread.revision == 7 and len(thread.messages) == 1
