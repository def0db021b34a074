"""INV-MSG and INV-OWNER: messages are sealed once, and every event leads to a turn and a message (spec §5.0, §5)."""

from __future__ import annotations

import pytest

from tests.support.streams import CALL, CLOSE, OPEN, broken, ev, violations

END, DONE = CLOSE
TEXT = (ev("text.start", id="x", turnId="t1"), ev("text.delta", id="x", delta="a"), ev("text.end", id="x"))
SECOND = ev("message.start", id="m2", role="assistant", turnId="t1", threadId="th")
OTHER_TURN = (
    ev("turn.start", turnId="t2", threadId="th"),
    ev("message.start", id="n1", role="assistant", turnId="t2", threadId="th"),
)
OTHER_CLOSE = (
    ev("message.end", id="n1"),
    ev("turn.done", turnId="t2", outcome={"type": "success"}, finishReason="stop"),
)
SNAPSHOT = ev(
    "messages.snapshot",
    messages=[{"id": "m1", "role": "assistant", "turnId": "t1", "threadId": "th", "content": []}],
    turns=[{"turnId": "t1", "threadId": "th"}],
)

CREATING = [
    ev("text.start", id="y", turnId="t1"),
    ev("reasoning.start", id="y", turnId="t1"),
    ev("content.block", block={"type": "text", "text": "a"}, turnId="t1"),
    ev("tool.start", toolCallId="c9", name="n", turnId="t1"),
    ev("tool.done", toolCallId="c1", content=[], turnId="t1"),
]


def kind(event: dict[str, object]) -> str:
    return str(event["type"])


# Seals


def test_a_message_that_is_never_ended_is_reported_at_its_start() -> None:
    [violation] = violations(*OPEN, DONE)
    assert (violation.line, violation.seq, violation.rule) == (2, 1, "INV-MSG")
    assert violation.message == "message `m1` is never ended"


def test_a_message_is_ended_once() -> None:
    assert broken(*OPEN, END, END, DONE) == [(4, "INV-MSG")]


def test_an_end_needs_a_message() -> None:
    assert broken(*OPEN, ev("message.end", id="m2"), *CLOSE) == [(3, "INV-MSG")]


def test_a_message_is_started_once() -> None:
    assert broken(*OPEN, OPEN[1], *CLOSE) == [(3, "INV-MSG")]
    assert broken(*OPEN, END, OPEN[1], *CLOSE) == [(4, "INV-MSG")]


def test_a_message_of_the_thread_is_not_started_again() -> None:
    assert broken(*OPEN, *CLOSE, known_ids={"m1"}) == [(2, "INV-MSG")]


@pytest.mark.parametrize("event", CREATING, ids=kind)
def test_a_sealed_message_takes_no_block(event: dict[str, object]) -> None:
    assert (7, "INV-MSG") in broken(*OPEN, *CALL, END, event, DONE)


@pytest.mark.parametrize("event", CREATING, ids=kind)
def test_a_closed_turn_takes_no_block(event: dict[str, object]) -> None:
    assert broken(*OPEN, *CALL, *CLOSE, event) == [(8, "INV-MSG")]


@pytest.mark.parametrize("event", CREATING, ids=kind)
def test_a_block_needs_an_open_message(event: dict[str, object]) -> None:
    assert (2, "INV-MSG") in broken(OPEN[0], event, DONE)


@pytest.mark.parametrize(
    "delta",
    [
        ev("text.delta", id="x", delta="b"),
        ev("reasoning.delta", id="r", delta="b"),
        ev("reasoning.opaque.delta", id="r", delta="b"),
        ev("tool.args.delta", toolCallId="c1", delta="b"),
    ],
    ids=kind,
)
def test_a_delta_neither_reaches_a_sealed_message_nor_a_closed_turn(delta: dict[str, object]) -> None:
    blocks = (TEXT[0], ev("reasoning.start", id="r", turnId="t1"), *CALL)
    assert broken(*OPEN, *blocks, END, delta, delta, DONE) == [(9, "INV-MSG")]
    closed = broken(*OPEN, *blocks, DONE, delta, delta, END)
    assert closed == [(9, "INV-MSG")]


def test_a_sealed_message_takes_no_part_of_a_reasoning_block() -> None:
    part = ev("reasoning.start", id="r", partIndex=1)
    assert broken(*OPEN, ev("reasoning.start", id="r", turnId="t1"), END, part, DONE) == [(5, "INV-MSG")]


def test_a_message_may_not_start_in_a_closed_turn_and_its_blocks_are_not_reported_again() -> None:
    late = ev("message.start", id="m2", role="assistant", turnId="t1", threadId="th")
    assert broken(*OPEN, *CLOSE, late, *TEXT, ev("message.end", id="m2")) == [(5, "INV-MSG")]


def test_a_message_may_end_after_the_natural_end_of_its_turn() -> None:
    assert broken(*OPEN, DONE, END) == []


def test_a_block_goes_to_the_newest_message_even_if_an_older_one_is_open() -> None:
    assert broken(*OPEN, SECOND, *TEXT, ev("message.end", id="m2"), *CLOSE) == []
    sealed = broken(*OPEN, SECOND, ev("message.end", id="m2"), TEXT[0], TEXT[2], *CLOSE)
    assert sealed == [(5, "INV-MSG")]


def test_candidates_have_messages_of_their_own() -> None:
    second = {**SECOND, "candidateIndex": 1}
    text = [{**TEXT[0], "candidateIndex": 1}, *TEXT[1:]]
    assert broken(*OPEN, second, ev("message.end", id="m1"), *text, ev("message.end", id="m2"), DONE) == []
    assert broken(*OPEN, {**TEXT[0], "candidateIndex": 1}, *TEXT[1:], *CLOSE) == [(3, "INV-MSG")]


# Adoption


def test_a_result_lands_in_a_message_of_its_own_without_start_or_end() -> None:
    result = ev("tool.done", toolCallId="c1", content=[], messageId="c1:result", turnId="t1")
    assert broken(*OPEN, *CALL, END, result, DONE) == []
    assert broken(*OPEN, *CALL, END, result, result, ev("message.end", id="c1:result"), DONE) == []


def test_a_closed_turn_takes_no_result_in_a_message_of_its_own() -> None:
    result = ev("tool.done", toolCallId="c1", content=[], messageId="c1:result", turnId="t1")
    assert broken(*OPEN, *CALL, *CLOSE, result) == [(8, "INV-MSG")]


def test_a_result_that_names_no_turn_lands_in_the_only_open_one() -> None:
    result = ev("tool.done", toolCallId="c1", content=[], messageId="c1:result")
    assert broken(*OPEN, *CALL, END, result, DONE) == []
    assert broken(*OPEN, *CALL, END, *OTHER_TURN, result, DONE, *OTHER_CLOSE) == [(9, "INV-OWNER")]


def test_a_carrier_message_takes_results_until_it_is_sealed() -> None:
    carrier = ev("message.start", id="t1:denials", role="tool", turnId="t1", threadId="th")
    result = ev("tool.done", toolCallId="c1", content=[], messageId="t1:denials", turnId="t1", outcome="denied")
    sealed = ev("message.end", id="t1:denials")
    assert broken(*OPEN, *CALL, END, carrier, result, sealed, DONE) == []
    assert broken(*OPEN, *CALL, END, carrier, sealed, result, DONE) == [(9, "INV-MSG")]


def test_a_result_may_not_name_another_turn_than_its_message_has() -> None:
    result = ev("tool.done", toolCallId="c1", content=[], messageId="n1", turnId="t1")
    assert broken(*OPEN, *CALL, *OTHER_TURN, result, *CLOSE, *OTHER_CLOSE) == [(8, "INV-OWNER")]


def test_a_result_of_a_later_turn_may_answer_a_call_of_an_earlier_one() -> None:
    result = ev("tool.done", toolCallId="c1", content=[], messageId="c1:result", turnId="t2")
    assert broken(*OPEN, *CALL, *CLOSE, *OTHER_TURN, result, *OTHER_CLOSE) == []


# Removal


def test_after_a_removal_blocks_go_to_the_newest_open_message() -> None:
    removed = ev("message.remove", id="m2")
    assert broken(*OPEN, SECOND, ev("message.end", id="m2"), removed, *TEXT, *CLOSE) == []


def test_after_the_removal_of_the_only_message_none_is_open() -> None:
    assert broken(*OPEN, ev("message.remove", id="m1"), *TEXT, DONE) == [(4, "INV-MSG")]


def test_a_removed_message_owes_no_end_and_takes_none() -> None:
    assert broken(*OPEN, ev("message.remove", id="m1"), DONE) == []
    assert broken(*OPEN, ev("message.remove", id="m1"), END, DONE) == [(4, "INV-MSG")]


def test_removing_all_leaves_other_turns_alone() -> None:
    remove = ev("message.remove", id="*", turnId="t1")
    text = [{**TEXT[0], "turnId": "t2"}, *TEXT[1:]]
    assert broken(*OPEN, *OTHER_TURN, remove, *text, *OTHER_CLOSE, DONE) == []
    assert broken(*OPEN, *OTHER_TURN, remove, TEXT[0], *OTHER_CLOSE, DONE) == [(6, "INV-MSG")]


@pytest.mark.parametrize("remove", [ev("message.remove", id="no"), ev("message.remove", id="*", turnId="no")])
def test_removing_what_is_not_there_is_no_fault(remove: dict[str, object]) -> None:
    assert broken(*OPEN, remove, *CLOSE) == []


# Snapshots


def test_after_a_snapshot_blocks_need_a_new_message() -> None:
    assert broken(OPEN[0], SNAPSHOT, TEXT[0], DONE) == [(3, "INV-MSG")]
    assert broken(OPEN[0], SNAPSHOT, SECOND, *TEXT, ev("message.end", id="m2"), DONE) == []


def test_a_message_owes_its_end_also_when_a_snapshot_holds_it() -> None:
    assert broken(*OPEN, SNAPSHOT, DONE) == [(2, "INV-MSG")]
    assert broken(*OPEN, SNAPSHOT, *CLOSE) == []


def test_a_message_that_a_snapshot_drops_is_gone() -> None:
    empty = ev("messages.snapshot", messages=[])
    assert broken(*OPEN, empty, DONE) == []
    assert broken(*OPEN, empty, *CLOSE) == [(4, "INV-MSG")]


def test_a_snapshot_keeps_open_turns_open_and_closed_ones_closed() -> None:
    closed = {**SNAPSHOT, "turns": [{"turnId": "t1", "threadId": "th", "outcome": {"type": "success"}}]}
    assert broken(closed, SECOND) == [(2, "INV-MSG")]
    assert broken(closed, DONE) == [(2, "INV-TURN")]
    assert broken(SNAPSHOT, DONE) == []
    assert broken(OPEN[0], SNAPSHOT) == [(1, "INV-TURN")]


def test_a_turn_that_only_a_snapshot_knows_owes_no_close() -> None:
    assert broken(SNAPSHOT, ev("message.end", id="m1")) == []


def test_a_snapshot_of_messages_alone_opens_no_turn() -> None:
    messages_only = {key: value for key, value in SNAPSHOT.items() if key != "turns"}
    assert broken(messages_only, SECOND, ev("message.end", id="m2")) == [(2, "INV-TURN")]


def test_a_result_may_land_in_a_turn_that_a_snapshot_brought() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "name": "n", "input": {}}
    snapshot = {**SNAPSHOT, "messages": [{**SNAPSHOT["messages"][0], "content": [call]}]}
    result = ev("tool.done", toolCallId="c1", content=[], messageId="c1:result", turnId="t1")
    assert broken(snapshot, result) == []


@pytest.mark.parametrize(
    ("snapshot", "rule"),
    [
        (ev("messages.snapshot", messages=SNAPSHOT["messages"] * 2), "INV-MSG"),
        (ev("messages.snapshot", messages=[], turns=SNAPSHOT["turns"] * 2), "INV-TURN"),
    ],
)
def test_a_snapshot_holds_nothing_twice(snapshot: dict[str, object], rule: str) -> None:
    assert broken(snapshot) == [(1, rule)]


# Owners


def test_with_several_turns_open_an_event_names_its_own() -> None:
    assert broken(*OPEN, *OTHER_TURN, ev("text.start", id="x"), *CLOSE, *OTHER_CLOSE) == [(5, "INV-OWNER")]
    named = ev("text.start", id="x", messageId="m1")
    assert broken(*OPEN, *OTHER_TURN, named, TEXT[2], *CLOSE, *OTHER_CLOSE) == []


@pytest.mark.parametrize(
    "event",
    [
        ev("turn.error", message="x"),
        ev("turn.abort"),
        ev("source", sourceId="s", source={"url": "https://a.example"}),
        ev("handoff", toAgentId="b"),
        ev("hitl.ask", askId="a", kind="text"),
        ev("message.metadata", metadata={}),
    ],
    ids=kind,
)
def test_without_an_open_turn_an_event_leads_nowhere(event: dict[str, object]) -> None:
    assert broken(event) == [(1, "INV-OWNER")]
    assert broken(OPEN[0], DONE, event) == [(3, "INV-OWNER")]


@pytest.mark.parametrize(
    "event",
    [
        ev("error", message="x"),
        ev("host.context", theme="dark"),
        ev("ext.acme.note", value=1),
        ev("state.snapshot", snapshot=1),
        ev("memory.write", scope="user", value=1),
        ev("ui.call", surfaceId="s", callId="c", method="m"),
        ev("step.start", id="s"),
    ],
    ids=kind,
)
def test_some_events_need_no_turn(event: dict[str, object]) -> None:
    assert broken(event) == []


def test_records_may_follow_the_close_of_their_turn() -> None:
    late = ev("source", sourceId="s", source={"url": "https://a.example"}, turnId="t1")
    assert broken(OPEN[0], DONE, late, ev("handoff", toAgentId="b", turnId="t1")) == []


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (ev("text.start", id="x", messageId="m9"), "INV-OWNER"),
        (ev("text.start", id="x", turnId="t1", messageId="m9"), "INV-OWNER"),
        (ev("text.start", id="x", turnId="t1", messageId="n1"), "INV-OWNER"),
        (ev("message.metadata", messageId="m9", metadata={}), "INV-OWNER"),
        (ev("handoff", toAgentId="b", messageId="m9"), "INV-OWNER"),
    ],
)
def test_a_message_that_is_named_exists_and_is_of_the_turn(event: dict[str, object], rule: str) -> None:
    assert broken(*OPEN, *OTHER_TURN, event, *CLOSE, *OTHER_CLOSE) == [(5, rule)]


@pytest.mark.parametrize(
    "delta",
    [
        ev("text.delta", id="x", delta="b", turnId="t2"),
        ev("reasoning.delta", id="r", delta="b", turnId="t2"),
        ev("tool.args.delta", toolCallId="c1", delta="b", turnId="t2"),
        ev("tool.args.assembled", toolCallId="c1", input={}, turnId="t2"),
    ],
    ids=kind,
)
def test_a_delta_does_not_name_another_turn_than_its_block(delta: dict[str, object]) -> None:
    blocks = (TEXT[0], ev("reasoning.start", id="r", turnId="t1"), *CALL)
    assert broken(*OPEN, *OTHER_TURN, *blocks, delta, *CLOSE, *OTHER_CLOSE) == [(10, "INV-OWNER")]


def test_metadata_goes_to_the_open_message_or_to_one_by_name() -> None:
    unnamed = ev("message.metadata", metadata={"k": 1})
    assert broken(*OPEN, unnamed, END, {**unnamed, "messageId": "m1"}, DONE) == []
    assert broken(*OPEN, END, unnamed, DONE) == [(4, "INV-OWNER")]


def test_message_metadata_of_a_close_needs_a_message() -> None:
    close = {**DONE, "messageMetadata": {"k": 1}}
    assert broken(*OPEN, close, END) == []
    assert broken(*OPEN, END, {**close, "messageId": "m1"}) == []
    assert broken(*OPEN, END, close) == [(4, "INV-OWNER")]
    assert broken(*OPEN, END, {**close, "messageId": "m9"}) == [(4, "INV-OWNER")]


def test_a_message_is_in_the_thread_of_its_turn() -> None:
    assert broken(OPEN[0], {**OPEN[1], "threadId": "other"}, *CLOSE) == [(2, "INV-OWNER")]
    artifact = ev("artifact.start", artifactId="a", turnId="t1", threadId="other")
    assert broken(OPEN[0], artifact, DONE) == [(2, "INV-OWNER")]
