"""The tolerant fold: what it mends, and that it reports every case; outside the specification."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.fold import FoldViolation, Reducer
from tests.support.folding import (
    CALL,
    DONE,
    MESSAGE,
    REASONING,
    TEXT,
    TURN,
    blocks,
    events,
    folded,
    messages,
    push,
    turn,
    view,
)


def tolerant(*members: dict[str, Any]) -> Reducer:
    return folded(*members, tolerant=True)


def delta(text: str, kind: str = "text", id: str = "x") -> dict[str, Any]:
    return {"type": f"{kind}.delta", "id": id, "delta": text}


def test_a_repeated_text_id_opens_a_new_block_that_later_events_mean() -> None:
    reducer = tolerant(TURN, MESSAGE, TEXT, delta("a"), TEXT, delta("b"), {"type": "text.end", "id": "x"})
    assert [block["text"] for block in blocks(reducer)] == ["a", "b"]
    assert reducer.violations == (
        FoldViolation(4, "text.start", "INV-BLOCK", "block 'x' was there already; opened another one"),
    )
    push(reducer, delta("late"))
    assert reducer.needs_resync


@pytest.mark.parametrize("look", [False, True])
def test_a_repeated_id_across_kinds_and_messages(look: bool) -> None:
    reducer = Reducer(tolerant=True)
    for event in events(
        TURN,
        MESSAGE,
        TEXT,
        delta("a"),
        {"type": "message.end", "id": "m"},
        {**MESSAGE, "id": "m2"},
        {**REASONING, "id": "x"},
        delta("b", "reasoning"),
        TEXT,
        delta("c"),
    ):
        reducer.push(event)
        if look:
            reducer.result()
    assert [(b["type"], b["text"]) for b in blocks(reducer)] == [("text", "a")]
    assert [(b["type"], b["text"]) for b in blocks(reducer, 1)] == [("reasoning", "b"), ("text", "c")]
    assert [violation.seq for violation in reducer.violations] == [6, 8]


def test_a_new_part_of_a_reasoning_block_is_no_repetition() -> None:
    reducer = tolerant(TURN, MESSAGE, REASONING, {**REASONING, "partIndex": 1}, REASONING)
    assert len(blocks(reducer)) == 2
    assert [violation.seq for violation in reducer.violations] == [4]


def test_a_repeated_call_id_is_numbered_and_later_events_mean_the_newest() -> None:
    done = {"type": "tool.done", "toolCallId": "c", "turnId": "t", "content": []}
    assembled = {"type": "tool.args.assembled", "toolCallId": "c", "input": 1}
    reducer = tolerant(TURN, MESSAGE, CALL, done, CALL, assembled, {**done, "more": True}, done, CALL)
    assert [(block["type"], block["toolCallId"]) for block in blocks(reducer)] == [
        ("tool-call", "c"),
        ("tool-result", "c"),
        ("tool-call", "c#2"),
        ("tool-result", "c#2"),
        ("tool-call", "c#3"),
    ]
    assert [block["input"] for block in blocks(reducer) if block["type"] == "tool-call"] == [{}, 1, {}]
    assert [(violation.seq, violation.rule) for violation in reducer.violations] == [(4, "INV-BLOCK"), (8, "INV-BLOCK")]
    assert "named 'c#2'" in reducer.violations[0].message


def test_numbering_passes_over_ids_of_the_history() -> None:
    stored = folded(TURN, MESSAGE, CALL, {**CALL, "toolCallId": "c#2"}, {"type": "message.end", "id": "m"}).result()
    reducer = Reducer(stored, tolerant=True)
    push(reducer, {**MESSAGE, "id": "m2"}, CALL)
    assert blocks(reducer, 1)[0]["toolCallId"] == "c#3"


SECOND = {**MESSAGE, "id": "m2"}
GONE = {"type": "message.remove", "id": "m2"}
ASSEMBLED = {"type": "tool.args.assembled", "toolCallId": "c", "input": 1}


def test_a_call_has_its_id_again_when_the_repetition_is_removed() -> None:
    reducer = tolerant(TURN, MESSAGE, CALL, SECOND, CALL, GONE, ASSEMBLED, CALL)
    assert not reducer.needs_resync  # the call that the removal left has been answered
    assert [(block["toolCallId"], block["input"]) for block in blocks(reducer)] == [("c", 1), ("c#3", {})]
    assert [violation.seq for violation in reducer.violations] == [4, 7]


def test_a_repetition_keeps_the_id_when_the_first_call_is_removed() -> None:
    reducer = tolerant(TURN, MESSAGE, CALL, SECOND, CALL, {**GONE, "id": "m"}, ASSEMBLED)
    assert [(block["toolCallId"], block["input"]) for block in blocks(reducer)] == [("c#2", 1)]
    push(reducer, {**ASSEMBLED, "toolCallId": "c#2", "input": 2})
    assert blocks(reducer)[0]["input"] == 2
    push(reducer, GONE, {**MESSAGE, "id": "m3"}, CALL)
    assert [block["toolCallId"] for block in blocks(reducer)] == ["c"]
    assert len(reducer.violations) == 1


def test_each_removal_of_many_repetitions_leads_back_to_the_newest_that_is_there() -> None:
    starts = [part for number in range(2, 6) for part in ({**MESSAGE, "id": f"m{number}"}, CALL)]
    reducer = tolerant(TURN, MESSAGE, CALL, *starts)
    for number in (3, 5, 4, 2):
        push(reducer, {**GONE, "id": f"m{number}"}, {**ASSEMBLED, "input": number})
    assert not reducer.needs_resync
    assert [(block["toolCallId"], block["input"]) for block in blocks(reducer)] == [("c", 2)]


def test_a_text_has_its_id_again_when_the_repetition_is_removed() -> None:
    end = {"type": "text.end", "id": "x", "providerMetadata": {"p": 1}}
    reducer = tolerant(
        TURN, MESSAGE, TEXT, delta("a"), SECOND, TEXT, delta("b"), GONE, end, {**MESSAGE, "id": "m3"}, TEXT
    )
    assert blocks(reducer) == [{"type": "text", "text": "a", "providerMetadata": {"p": 1}}]
    assert [violation.seq for violation in reducer.violations] == [5, 10]


def test_an_event_of_a_turn_that_nothing_opened_opens_it() -> None:
    reducer = tolerant(
        {**MESSAGE, "turnId": "a"}, {"type": "source", "turnId": "b", "sourceId": "s", "source": {"url": "u"}}
    )
    assert view(reducer.result())["turns"] == [
        {"turnId": "a", "threadId": "th"},
        {"turnId": "b", "threadId": "th", "sourceIds": ["s"], "sources": [{"sourceId": "s", "source": {"url": "u"}}]},
    ]
    assert [violation.rule for violation in reducer.violations] == ["INV-TURN", "INV-TURN"]


def test_a_terminal_opens_and_closes_its_turn() -> None:
    reducer = tolerant(DONE, MESSAGE, TEXT)
    assert turn(reducer) == {"turnId": "t", "threadId": "t", "outcome": {"type": "success"}, "finishReason": "stop"}
    assert reducer.needs_resync


def test_an_adopted_result_opens_its_turn() -> None:
    done = {"type": "tool.done", "toolCallId": "c", "turnId": "u", "content": [], "messageId": "R"}
    reducer = tolerant(TURN, done)
    assert messages(reducer)[0] | {"content": []} == {
        "id": "R",
        "role": "tool",
        "content": [],
        "turnId": "u",
        "threadId": "th",
    }
    assert [record["turnId"] for record in view(reducer.result())["turns"]] == ["t", "u"]


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([TEXT], id="block without message"),
        pytest.param([TURN, MESSAGE, delta("a")], id="delta without block"),
        pytest.param([TURN, MESSAGE, {"type": "message.end", "id": "m"}, TEXT], id="sealed message"),
        pytest.param([{"type": "turn.error", "message": "m"}], id="no turn to name"),
        pytest.param([TURN, {**MESSAGE, "seq": 5}], id="gap"),
    ],
)
def test_it_parks_where_nothing_can_be_mended(members: list[dict[str, Any]]) -> None:
    reducer = tolerant(*members)
    assert reducer.needs_resync
    assert reducer.violations == ()


def test_a_strict_fold_reports_nothing() -> None:
    assert folded(TURN, MESSAGE, TEXT, TEXT).violations == ()
