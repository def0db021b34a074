"""What holds of every history."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agjson.transcript import (
    Composed,
    DropToolCalls,
    DropToolResults,
    Prepared,
    SlidingWindow,
    Strategy,
    TokenBudget,
    Transcript,
    TranscriptError,
    compact,
    controls,
    groups,
    occurrences,
    prepare,
    settle,
    validate,
)
from agjson.types import AgMessage, ToolCallBlock, ToolResultBlock
from agjson.wire import encode
from tests.support.properties import examples
from tests.transcript.drawing import Drawn, Rounds, any_history, sound_rounds
from tests.transcript.writing import ids, result

LENIENT = {"stray": "leave_out", "unanswered": "answer"}

strategies: st.SearchStrategy[Strategy] = st.recursive(
    st.one_of(
        st.builds(SlidingWindow, st.integers(0, 8)),
        st.builds(DropToolResults, st.integers(0, 3)),
        st.builds(DropToolCalls, st.integers(0, 3)),
        st.builds(lambda limit: TokenBudget(limit, len), st.integers(0, 12)),
    ),
    lambda inner: st.one_of(
        st.builds(Composed, st.lists(inner, max_size=2)),
        st.builds(lambda limit, first: TokenBudget(limit, len, first), st.integers(0, 12), st.lists(inner, max_size=2)),
    ),
    max_leaves=3,
)


def prepared(drawn: Drawn, **options: object) -> Prepared | None:
    try:
        return prepare(drawn.messages, turns=drawn.turns, waiting=drawn.waiting, **options)  # type: ignore[arg-type]
    except TranscriptError as error:
        assert error.path == "$" or error.path.startswith("$[")
        assert error.code
        return None


def is_valid(messages: Sequence[AgMessage]) -> bool:
    """Whether each stretch of the assistant is followed at once by the results of its calls, in order, and no other."""
    owed: list[str] = []
    for each in messages:
        for block in each.content:
            if isinstance(block, ToolCallBlock):
                if block.provider_executed:
                    owed.append(f"?{block.tool_call_id}")
                else:
                    owed.append(block.tool_call_id)
            elif isinstance(block, ToolResultBlock):
                id = block.tool_call_id
                if each.role == "assistant":  # embedded, where order is the provider's
                    name = next((name for name in owed if name in (id, f"?{id}")), None)
                    if name is None:
                        return False
                    owed.remove(name)
                    continue
                while owed and owed[0].startswith("?") and owed[0] != f"?{id}":
                    owed.pop(0)
                if not owed or owed.pop(0) not in (id, f"?{id}"):
                    return False
            elif each.role != "assistant" and any(not name.startswith("?") for name in owed):
                return False
        if each.role != "assistant" and not each.content and any(not name.startswith("?") for name in owed):
            return False
    return all(name.startswith("?") for name in owed)


@examples(300)
@given(sound_rounds())
def test_calls_get_the_results_that_are_theirs(made: Rounds) -> None:
    found = occurrences(made.messages)
    assert [(each.call_id, each.result_place and each.result_place.message_id) for each in found] == made.results
    assert len({each.key for each in found}) == len(found)
    assert validate(made.messages) == []


@examples(300)
@given(sound_rounds())
def test_a_sound_history_is_made_valid_without_a_loss(made: Rounds) -> None:
    sent = prepare(made.messages)
    assert is_valid(sent.messages)
    assert len(sent.pairs) == len(made.results)
    assert {each.code for each in sent.changes} <= {"placeholder", "result_moved"}

    def spoken(messages: Sequence[AgMessage]) -> list[object]:
        return [block for each in messages for block in each.content if not isinstance(block, ToolResultBlock)]

    assert spoken(sent.messages) == spoken(made.messages)


@examples(300)
@given(any_history(), st.sampled_from(["refuse", "answer", "leave_out"]), st.sampled_from(["refuse", "leave_out"]))
def test_what_is_prepared_is_valid_or_refused(drawn: Drawn, unanswered: str, stray: str) -> None:
    sent = prepared(drawn, unanswered=unanswered, stray=stray)
    if sent is not None:
        assert is_valid(sent.messages), sent.messages
        assert len(set(ids(sent.messages))) == len(sent.messages)
        made = [each for each in occurrences(sent.messages) if each.completed]
        assert [(each.call, each.result) for each in made] == list(sent.pairs)
        assert not any(
            block.outcome == "input_required" or block.preliminary
            for each in sent.messages
            for block in each.content
            if isinstance(block, ToolResultBlock)
        )


@examples(200)
@given(any_history())
def test_mending_refuses_nothing(drawn: Drawn) -> None:
    assert prepared(drawn, **LENIENT) is not None


@examples(200)
@given(any_history())
def test_what_is_prepared_needs_no_further_change(drawn: Drawn) -> None:
    sent = prepared(drawn, **LENIENT)
    assert sent is not None
    again = prepare(sent.messages)
    assert (again.messages, again.changes, again.pairs) == (sent.messages, (), sent.pairs)


@examples(300)
@given(any_history())
def test_every_block_tells_where_it_stood(drawn: Drawn) -> None:
    sent = prepared(drawn, **LENIENT)
    assert sent is not None
    results = {call.result_place for call in sent.calls}
    calls = {call.place[:2] for call in sent.calls if call.result_place is None}
    for each, origin in zip(sent.messages, sent.origins, strict=True):
        stood = drawn.messages[origin.message].content
        for at, (block, was) in enumerate(zip(each.content, origin.blocks, strict=True)):
            assert origin.path(at) == f"$[{origin.message}].content[{was}]"
            if stood[was] is not block:
                # A result that was added.
                assert isinstance(block, ToolResultBlock)
                assert block.outcome == "error"
                assert (origin.message, was) in calls
            elif isinstance(block, ToolResultBlock):
                assert (origin.message, was, drawn.messages[origin.message].id) in results
    assert [call.call for call in sent.calls] == [call for call, _ in sent.pairs]


@examples(200)
@given(any_history(plain=True), st.data())
def test_both_ways_to_go_on_give_the_same_pairs(drawn: Drawn, data: st.DataObject) -> None:
    inline = prepared(drawn, **LENIENT)
    if not drawn.messages or inline is None:
        return
    cut = data.draw(st.integers(0, len(drawn.messages) - 1))
    delta = prepared(drawn, mode="delta", owned_through=f"m{cut}", **LENIENT)
    if delta is None:
        return
    assert all(each.id not in ids(drawn.messages[: cut + 1]) for each in delta.messages)
    assert delta.pairs == inline.pairs
    # What the service has, and what it gets, together make the same pairs.
    app = {each.call.tool_call_id for each in occurrences(drawn.messages) if each.app_only}
    if not app and not any(each.ambiguous for each in occurrences(drawn.messages)):
        service = [*drawn.messages[: cut + 1], *delta.messages]
        reached = [(each.call, each.result) for each in occurrences(service) if each.completed]
        assert reached == list(delta.pairs)


@examples(200)
@given(any_history(), strategies, st.lists(st.sampled_from(["c1", "c2", "search"]), max_size=3))
def test_nothing_that_is_given_is_ever_changed(drawn: Drawn, strategy: Strategy, given_ids: list[str]) -> None:
    given_now = (drawn.messages, drawn.turns, drawn.answers, drawn.waiting)
    before = copy.deepcopy(given_now)
    written = encode(drawn.messages)
    objects = [id(each) for each in drawn.messages]
    occurrences(drawn.messages)
    groups(drawn.messages)
    validate(drawn.messages, turns=drawn.turns, waiting=drawn.waiting)
    controls(drawn.messages, drawn.turns, drawn.answers)
    settle(drawn.messages, [result(each) for each in given_ids], drawn.answers, turns=drawn.turns)
    for options in (LENIENT, {"unanswered": "leave_out"}, {}):
        prepared(drawn, answers=drawn.answers, **options)
    compact(drawn.messages, strategy)
    assert given_now == before
    assert encode(drawn.messages) == written
    assert [id(each) for each in drawn.messages] == objects


@examples(300)
@given(any_history(), st.lists(st.sampled_from(["c1", "c2", "c3", "search", "c1#2", "x"]), max_size=4))
def test_settling_closes_open_calls_and_nothing_else(drawn: Drawn, given_ids: list[str]) -> None:
    results = [result(id, f"new {at}") for at, id in enumerate(given_ids)]
    before = Transcript(drawn.messages, turns=drawn.turns)
    settled = settle(drawn.messages, results, drawn.answers, turns=drawn.turns)
    after = Transcript(settled.messages, turns=drawn.turns)
    assert settled.messages[: len(drawn.messages)] == drawn.messages
    assert [each.key for each in after.occurrences] == [each.key for each in before.occurrences]
    allowed = {each.call.key for each in settled.allowed}
    closed = 0
    for old, new in zip(before.occurrences, after.occurrences, strict=True):
        if old.completed or old.ambiguous or old.hosted:
            assert new == old
            continue
        if not new.completed:
            continue
        closed += 1
        assert old.key not in allowed
        asks = {each.ask_id for each in before.controls.by_call.get(old.key, ())}
        first: dict[str, str] = {}
        for answer in drawn.answers:
            first.setdefault(answer.ask_id, answer.status)
        said = [first.get(id) for id in asks]
        assert new.result is not None
        if new.result.outcome == "denied":
            assert {"declined", "cancelled"} & set(said)
        else:
            assert all(each == "resolved" for each in said)
    assert closed == len(settled.added)
    late = settle(settled.messages, results, drawn.answers, turns=drawn.turns)
    assert {each.call.key for each in late.allowed} == allowed
    assert not any(each.content[0].outcome == "denied" for each in late.added)  # type: ignore[union-attr]


@examples(300)
@given(any_history(), strategies)
def test_a_group_is_kept_whole_or_left_out_whole(drawn: Drawn, strategy: Strategy) -> None:
    kept = ids(compact(drawn.messages, strategy))
    assert kept == [id for id in ids(drawn.messages) if id in kept]
    for group in groups(drawn.messages):
        assert len({each.id in kept for each in group.messages}) == 1
        if group.kind == "system" or group.waits:
            assert group.messages[0].id in kept


@examples(200)
@given(sound_rounds(), strategies)
def test_a_sound_history_stays_sound_when_it_is_made_shorter(made: Rounds, strategy: Strategy) -> None:
    short = compact(made.messages, strategy)
    assert validate(short) == []
    sent = prepare(short)
    assert is_valid(sent.messages)
    assert len(sent.pairs) == sum(len(group.occurrences) for group in groups(short))
