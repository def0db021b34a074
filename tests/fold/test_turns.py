"""Turn rows of the folding table that the vectors leave open (spec §5 turn.*, subagent.*, records, INV-TURN)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.folding import CALL, DONE, MESSAGE, TEXT, TURN, blocks, folded, messages, push, turn, view

CHILD = {"type": "subagent.start", "turnId": "s", "parentTurnId": "t"}


def test_a_repeated_start_merges_thread_and_trigger() -> None:
    again = {**TURN, "threadId": "other", "trigger": {"kind": "resume", "ref": "1"}}
    reducer = folded({**TURN, "trigger": {"kind": "user"}}, again)
    assert view(reducer.result())["turns"] == [
        {"turnId": "t", "threadId": "other", "trigger": {"kind": "resume", "ref": "1"}}
    ]


def test_a_repeated_start_does_not_reopen_a_closed_turn() -> None:
    reducer = folded(TURN, DONE, TURN, MESSAGE, TEXT)
    assert reducer.needs_resync
    assert turn(reducer)["outcome"] == {"type": "success"}


def test_a_start_gives_a_record_to_a_turn_that_messages_already_name() -> None:
    reducer = folded(MESSAGE, TURN, TEXT, {"type": "text.delta", "id": "x", "delta": "a"})
    assert blocks(reducer) == [{"type": "text", "text": "a"}]
    assert view(reducer.result())["turns"] == [{"turnId": "t", "threadId": "th"}]


def test_done_records_every_field() -> None:
    asks = [{"askId": "q", "kind": "approval", "token": "secret"}]
    reducer = folded(
        TURN,
        {
            "type": "turn.done",
            "turnId": "t",
            "outcome": {"type": "paused", "asks": asks},
            "finishReason": "paused",
            "usage": {"inputTokens": 3},
            "safety": [{"category": "c", "score": 0.5}],
            "taskState": "input-required",
        },
    )
    assert turn(reducer) == {
        "turnId": "t",
        "threadId": "th",
        "outcome": {"type": "paused", "asks": asks},
        "finishReason": "paused",
        "usage": {"inputTokens": 3},
        "safety": [{"category": "c", "score": 0.5}],
        "taskState": "input-required",
        "asks": asks,
    }


def test_a_checkpoint_is_recorded_without_asks() -> None:
    reducer = folded(TURN, {**DONE, "finishReason": "pause_turn"})
    assert turn(reducer)["finishReason"] == "pause_turn"
    assert "asks" not in turn(reducer)


def test_message_metadata_goes_to_the_message_that_done_names_sealed_or_not() -> None:
    other = {**MESSAGE, "id": "m2"}
    end = {"type": "message.end", "id": "m"}
    reducer = folded(TURN, MESSAGE, end, other, {**DONE, "messageId": "m", "messageMetadata": {"k": 1}})
    assert [message.get("messageMetadata") for message in messages(reducer)] == [{"k": 1}, None]


def test_message_metadata_may_be_null() -> None:
    reducer = folded(TURN, MESSAGE, {**DONE, "messageMetadata": None})
    assert messages(reducer)[0]["messageMetadata"] is None


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({"messageId": "ghost"}, id="unknown message"),
        pytest.param({}, id="no open message"),
    ],
)
def test_message_metadata_without_its_message_parks_and_records_nothing(target: dict[str, Any]) -> None:
    reducer = folded(TURN, MESSAGE, {"type": "message.end", "id": "m"}, {**DONE, **target, "messageMetadata": {"k": 1}})
    assert reducer.needs_resync
    assert "outcome" not in turn(reducer)


def test_message_metadata_without_a_name_means_candidate_zero() -> None:
    second = {**MESSAGE, "id": "m1", "candidateIndex": 1}
    reducer = folded(TURN, MESSAGE, second, {**DONE, "messageMetadata": 1})
    assert [message.get("messageMetadata") for message in messages(reducer)] == [1, None]


def test_an_error_records_its_message_code_and_usage() -> None:
    error = {"type": "turn.error", "turnId": "t", "message": "m", "code": "c", "retriable": True}
    reducer = folded(TURN, {**error, "usage": {"totalTokens": 9}})
    assert turn(reducer) == {
        "turnId": "t",
        "threadId": "th",
        "outcome": {"type": "error", "message": "m", "code": "c"},
        "usage": {"totalTokens": 9},
    }


@pytest.mark.parametrize(
    "terminal",
    [DONE, {"type": "turn.error", "turnId": "t", "message": "m"}, {"type": "turn.abort", "turnId": "t"}],
)
def test_a_terminal_of_an_unopened_turn_parks(terminal: dict[str, Any]) -> None:
    reducer = folded({**TURN, "turnId": "u"}, terminal)
    assert reducer.needs_resync
    assert [record["turnId"] for record in view(reducer.result())["turns"]] == ["u"]


def test_a_nested_start_over_a_known_turn_sets_its_parent() -> None:
    reducer = folded(TURN, {**TURN, "turnId": "s"}, CHILD)
    assert view(reducer.result())["turns"][1] == {"turnId": "s", "threadId": "th", "parentTurnId": "t"}


def test_a_nested_turn_without_parent_and_root_takes_the_label_for_its_thread() -> None:
    reducer = folded({**CHILD, "parentTurnId": "turn_call"})
    assert turn(reducer) == {"turnId": "s", "parentTurnId": "turn_call", "threadId": "turn_call"}


def test_the_root_thread_is_that_of_the_first_top_level_turn() -> None:
    first = {**CHILD, "turnId": "s0", "parentTurnId": "label0"}
    reducer = folded(first, TURN, {**CHILD, "parentTurnId": "label1"})
    assert [record["threadId"] for record in view(reducer.result())["turns"]] == ["label0", "th", "th"]


def test_subagent_done_closes_the_nested_turn_and_gives_the_parent_back() -> None:
    done = {"type": "subagent.done", "turnId": "s", "parentTurnId": "t"}
    inner = {**MESSAGE, "id": "sm", "turnId": "s"}
    reducer = folded(TURN, MESSAGE, CHILD, inner, done, {"type": "text.start", "id": "x"})
    # With the child closed, the parent is the sole open turn again.
    assert [len(message["content"]) for message in messages(reducer)] == [1, 0]
    push(reducer, {"type": "text.start", "id": "y", "turnId": "s"})
    assert reducer.needs_resync


def test_subagent_done_of_an_unopened_turn_parks() -> None:
    assert folded(TURN, {"type": "subagent.done", "turnId": "s", "parentTurnId": "t"}).needs_resync


RECORD_EVENTS: dict[str, dict[str, Any]] = {
    "prompt.blocked": {"reason": "other"},
    "agent.capabilities": {"capabilities": {}},
    "guardrail.result": {"target": "input", "passed": True},
    "source": {"sourceId": "s", "source": {"url": "u"}},
    "handoff": {},
    "display.required": {"provider": "p", "html": "h"},
}


@pytest.mark.parametrize("kind", RECORD_EVENTS)
def test_a_record_event_of_an_unopened_turn_parks(kind: str) -> None:
    reducer = folded(TURN, {"type": kind, "turnId": "ghost", **RECORD_EVENTS[kind]})
    assert reducer.needs_resync
    assert view(reducer.result())["turns"] == [{"turnId": "t", "threadId": "th"}]


@pytest.mark.parametrize("kind", RECORD_EVENTS)
def test_a_record_event_of_a_turn_that_messages_alone_name_parks(kind: str) -> None:
    assert folded(MESSAGE, {"type": kind, "turnId": "t", **RECORD_EVENTS[kind]}).needs_resync


@pytest.mark.parametrize("kind", RECORD_EVENTS)
def test_a_record_event_may_leave_out_the_sole_open_turn(kind: str) -> None:
    reducer = folded(TURN, DONE, {**TURN, "turnId": "u"}, {"type": kind, **RECORD_EVENTS[kind]})
    assert not reducer.needs_resync
    assert len(turn(reducer, 1)) > 2
    assert len(turn(reducer, 0)) == 4


def test_a_second_block_of_the_prompt_adds_its_ratings() -> None:
    first = {"type": "prompt.blocked", "turnId": "t", "reason": "safety", "safety": [{"category": "a"}]}
    second = {"type": "prompt.blocked", "turnId": "t", "reason": "other", "safety": [{"category": "b"}]}
    record = turn(folded(TURN, first, second))
    assert record["safety"] == [{"category": "a"}, {"category": "b"}]
    assert record["promptBlocked"] == {"reason": "other", "safety": [{"category": "b"}]}


def test_capabilities_replace_earlier_ones() -> None:
    first = {"type": "agent.capabilities", "turnId": "t", "capabilities": {"profile": "CORE"}}
    second = {"type": "agent.capabilities", "turnId": "t", "capabilities": {"extensions": ["u"]}}
    assert turn(folded(TURN, first, second))["capabilities"] == {"extensions": ["u"]}


def test_a_source_named_twice_is_recorded_twice() -> None:
    first = {"type": "source", "turnId": "t", "sourceId": "s", "source": {"url": "u"}, "chunkIndex": 0}
    record = turn(folded(TURN, first, {**first, "chunkIndex": 1}))
    assert record["sourceIds"] == ["s", "s"]
    assert [source["chunkIndex"] for source in record["sources"]] == [0, 1]


def test_an_ask_is_recorded_by_the_paused_close_alone() -> None:
    ask = {"type": "hitl.ask", "turnId": "t", "askId": "q", "kind": "approval"}
    assert turn(folded(TURN, MESSAGE, CALL, ask)) == {"turnId": "t", "threadId": "th"}
