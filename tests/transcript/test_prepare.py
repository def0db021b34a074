"""What a model reads of a history, beyond the rows of the contract."""

from __future__ import annotations

import pickle

import pytest

from agjson.errors import ReplayError
from agjson.transcript import Transcript, TranscriptError, controls, prepare, settle
from agjson.types import AgHitlAnswer, AgTurnRecord
from tests.transcript.writing import (
    ask,
    assistant,
    call,
    ids,
    message,
    paused,
    reasoning,
    result,
    tool,
    user,
    view,
    waits,
    yes,
)


def test_what_needs_no_change_is_the_same_object() -> None:
    history = [user("u"), assistant("a", reasoning(), call("c")), tool(result("c")), assistant("b", "Done")]
    prepared = prepare(history)
    assert all(ours is theirs for ours, theirs in zip(prepared.messages, history, strict=True))
    assert prepared.messages is not history
    assert prepared.changes == ()


def test_a_message_tells_where_it_stood_in_the_history() -> None:
    history = [
        user("u"),
        assistant("a", "First.", call("c1"), call("c2"), call("c3")),
        message("user", "late", "And?", result("c2", "two")),
        tool(result("c1", "half", preliminary=True)),
        tool(result("c1", "one")),
    ]
    prepared = prepare(history, unanswered="answer")
    assert view(prepared.messages)[2:] == [
        "tool: c1=one",
        "tool: c2=two",
        "tool: c3=The call was interrupted: it has no result.",
        "user: And?",
    ]
    paths = [
        [origin.path(at) for at in range(len(each.content))]
        for each, origin in zip(prepared.messages, prepared.origins, strict=True)
    ]
    assert paths == [
        ["$[0].content[0]"],
        [f"$[1].content[{at}]" for at in range(4)],
        ["$[4].content[0]"],
        ["$[2].content[1]"],
        ["$[1].content[3]"],  # it was added for this call
        ["$[2].content[0]"],
    ]
    places = [(each.key, each.result_place and each.result_place.path) for each in prepared.calls]
    assert places == [("c1", "$[4].content[0]"), ("c2", "$[2].content[1]"), ("c3", None)]


def test_what_no_model_reads() -> None:
    app = call("app", ui_visibility=["app"])
    shared = call("both", ui_visibility=["model", "app"])
    history = [
        message("notice", "n", "The tool is slow."),
        user("u"),
        assistant("sub", "inner words", call("in"), turn_id="nested"),
        tool(result("in"), turn_id="nested"),
        assistant("one", "first", call("c0"), candidate_index=0),
        assistant("two", "second", call("c1"), candidate_index=1),
        tool(result("c1")),
        tool(result("c0")),
        assistant("a", app, shared, "Shown."),
        tool(result("app")),
        tool(result("both")),
    ]
    turns = [AgTurnRecord(turn_id="nested", parent_turn_id="top", thread_id="thread")]
    prepared = prepare(history, turns=turns)
    assert view(prepared.messages) == [
        "user: u?",
        "assistant: first c0()",
        "tool: c0=done",
        "assistant: both() Shown.",
        "tool: both=done",
    ]
    assert [(each.code, each.path) for each in prepared.changes] == [
        ("notice", "$[0]"),
        ("nested", "$[2]"),
        ("nested", "$[3]"),
        ("candidate", "$[5]"),
        ("candidate", "$[6].content[0]"),
        ("app_only", "$[8].content[0]"),
        ("app_only", "$[9].content[0]"),
    ]
    assert [made.tool_call_id for made, _ in prepared.pairs] == ["c0", "both"]


def test_results_whose_calls_no_model_reads_go_with_them() -> None:
    history = [
        user("u"),
        assistant("a1", call("c"), candidate_index=1),
        assistant("a2", call("c"), candidate_index=2),
        tool(result("c")),
    ]
    assert view(prepare(history).messages) == ["user: u?"]


def test_a_result_in_a_later_round_comes_to_its_call() -> None:
    history = [assistant("a1", call("c")), user("u"), assistant("a2", result("c"), "So.")]
    assert view(prepare(history).messages) == ["assistant: c()", "tool: c=done", "user: u?", "assistant: So."]


def test_a_result_in_the_round_of_its_call_stays_and_so_does_one_of_the_provider() -> None:
    own = [assistant("a1", call("c")), assistant("a2", result("c"), "So."), user("u")]
    assert prepare(own).messages == own
    hosted = [assistant("a1", call("s", provider_executed=True)), user("u"), assistant("a2", result("s"), "So.")]
    assert prepare(hosted).messages == hosted


def test_a_result_in_a_message_that_no_model_reads_comes_out_of_it() -> None:
    turns = [AgTurnRecord(turn_id="n", parent_turn_id="t", thread_id="thread")]
    for hosted in (None, True):
        history = [
            assistant("a", call("c", provider_executed=hosted), turn_id="t"),
            assistant("inner", result("c"), turn_id="n"),
            message("notice", "told", result("d")),
            user("u", turn_id="t"),
        ]
        sent = prepare(history, turns=turns)
        assert view(sent.messages) == ["assistant: c()", "tool: c=done", "user: u?"]
        assert ids(sent.messages) == ["a", "c:result", "u"]


def test_a_call_that_no_model_made_is_refused_or_left_out() -> None:
    history = [user("u", "Run this:", call("c")), assistant("a", "No.")]
    with pytest.raises(TranscriptError) as refused:
        prepare(history)
    assert (refused.value.code, refused.value.path, refused.value.call_id) == (
        "misplaced_call",
        "$[0].content[1]",
        "c",
    )
    assert view(prepare(history, stray="leave_out").messages) == ["user: Run this:", "assistant: No."]
    assert prepare(history, mode="delta", owned_through="a").messages == []


def test_a_result_beside_words_leaves_them_where_they_are() -> None:
    history = [assistant("a", call("c")), user("u"), message("user", "mixed", "And this:", result("c"))]
    prepared = prepare(history)
    assert view(prepared.messages) == ["assistant: c()", "tool: c=done", "user: u?", "user: And this:"]
    assert ids(prepared.messages) == ["a", "c:result", "u", "mixed"]
    assert view(history)[2] == "user: And this: c=done"


def test_results_before_the_words_of_their_message_stay_in_it() -> None:
    history = [assistant("a", call("c"), call("d")), message("user", "mixed", result("c"), result("d"), "Go on.")]
    assert prepare(history).messages == history


def test_results_of_one_message_in_the_wrong_order_get_messages_of_their_own() -> None:
    history = [assistant("a", call("c"), call("d"), turn_id="t"), message("tool", "r", result("d"), result("c"))]
    prepared = prepare(history)
    assert view(prepared.messages) == ["assistant: c() d()", "tool: c=done", "tool: d=done"]
    assert [(each.id, each.turn_id) for each in prepared.messages[1:]] == [("c:result", "t"), ("d:result", "t")]


def test_a_message_that_is_made_takes_no_id_of_another() -> None:
    history = [assistant("a", call("c")), user("c:result"), message("tool", "r", result("c"), result("c"))]
    assert ids(prepare(history).messages) == ["a", "c:result#2", "c:result"]


def test_the_first_terminal_result_counts() -> None:
    history = [assistant("a", call("c")), tool(result("c", "first"), "r1"), tool(result("c", "second"), "r2")]
    prepared = prepare(history)
    assert view(prepared.messages) == ["assistant: c()", "tool: c=first"]
    assert [(each.code, each.message_id, each.call_id) for each in prepared.changes] == [("repeated_result", "r2", "c")]


def test_a_partial_result_is_told_of_when_nothing_else_came() -> None:
    history = [assistant("a", call("c")), tool(result("c", "half", preliminary=True))]
    ((_, got),) = prepare(history, unanswered="answer").pairs
    assert (got.outcome, got.preliminary) == ("error", None)
    assert view(prepare(history, unanswered="answer").messages) == [
        "assistant: c()",
        "tool: c=halfThe call was interrupted: it has no result.",
    ]
    finished = [*history, tool(result("c", "whole"), "r")]
    assert view(prepare(finished).messages) == ["assistant: c()", "tool: c=whole"]


@pytest.mark.parametrize(
    ("history", "code", "path"),
    [
        ([assistant("a", call("c"))], "unanswered_call", "$[0].content[0]"),
        ([user("u"), tool(result("c"))], "result_without_call", "$[1].content[0]"),
        ([tool(result("c")), assistant("a", call("c")), tool(result("c"))], "result_before_call", "$[0].content[0]"),
    ],
)
def test_what_is_refused_is_refused_with_its_place(history: list[object], code: str, path: str) -> None:
    with pytest.raises(TranscriptError) as refused:
        prepare(history)  # type: ignore[arg-type]
    assert isinstance(refused.value, ReplayError)
    assert (refused.value.code, refused.value.path, refused.value.call_id) == (code, path, "c")
    assert str(refused.value).endswith(f"- at `{path}`")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.code, again.path, again.message) == (code, path, refused.value.message)


def test_results_of_calls_that_are_not_there_may_be_left_out() -> None:
    prepared = prepare([user("u"), tool(result("c")), tool(waits("d"))], stray="leave_out")
    assert view(prepared.messages) == ["user: u?"]
    assert [each.code for each in prepared.changes] == ["stray_result", "placeholder"]


def test_calls_that_are_left_out_take_reasoning_that_nothing_is_behind() -> None:
    history = [
        user("u"),
        assistant("r1", reasoning("one")),
        assistant("a1", call("c1")),
        assistant("r2", reasoning("two")),
        assistant("a2", call("c2")),
        user("v"),
    ]
    assert view(prepare(history, unanswered="leave_out").messages) == ["user: u?", "user: v?"]
    half = [*history[:5], tool(result("c1")), user("v")]
    assert view(prepare(half, unanswered="leave_out").messages) == [
        "user: u?",
        "assistant: ~one",
        "assistant: c1()",
        "tool: c1=done",
        "user: v?",
    ]


def test_words_behind_the_reasoning_keep_it() -> None:
    history = [assistant("a", reasoning("one"), "Words", reasoning("two"), call("c"))]
    assert view(prepare(history, unanswered="leave_out").messages) == ["assistant: ~one Words"]


def test_a_mode_and_what_the_service_has_go_together() -> None:
    with pytest.raises(ValueError, match="owned_through"):
        prepare([], mode="delta")
    with pytest.raises(ValueError, match="owned_through"):
        prepare([], owned_through="a")


def test_an_ask_about_no_call_is_open_while_its_turn_is_the_last() -> None:
    turns = [paused("t1", ask("k", kind="text"))]
    assert [each.ask_id for each in controls([], turns).asks] == ["k"]
    assert controls([], turns, [yes("k", reply="blue")]).asks == ()
    assert controls([], [*turns, paused("t2")]).asks == ()
    nested = AgTurnRecord(turn_id="n", parent_turn_id="t1", thread_id="thread")
    assert [each.ask_id for each in controls([], [*turns, nested]).asks] == ["k"]


def test_an_ask_about_a_call_that_is_not_there_is_a_problem_and_never_open() -> None:
    turns = [paused("t1", ask("k", "gone"))]
    found = controls([user("u")], turns, [yes("k")])
    assert (found.asks, [each.code for each in found.spent]) == ((), ["spent_ask"])
    assert [(each.code, each.call_id) for each in Transcript([user("u")], turns=turns).problems] == [
        ("ask_without_call", "gone")
    ]


def test_asks_of_one_turn_about_one_id_are_about_its_calls_in_their_order() -> None:
    history = [assistant("a", call("c"), call("c"), call("c"), turn_id="t1")]
    turns = [paused("t1", ask("k1", "c"), ask("k2", "c"), ask("k3", "c"), ask("k4", "c"))]
    found = controls(history, turns)
    assert [found.calls[f"k{n}"].key for n in (1, 2, 3, 4)] == ["c", "c#2", "c#3", "c#3"]


def test_an_ask_that_a_later_turn_does_not_show_again_was_answered() -> None:
    history = [assistant("a", call("c"), turn_id="t1")]
    turns = [
        paused("t1", ask("k1", "c", input_key="x"), ask("k2", "c", input_key="y")),
        paused("t2", ask("k2", "c", input_key="y", message="Still?")),
    ]
    found = controls(history, turns, [yes("k1")])
    assert [(each.ask_id, each.message) for each in found.asks] == [("k2", "Still?")]
    assert [(each.code, each.index) for each in found.spent] == [("spent_ask", 0)]


def test_a_call_with_several_asks_is_allowed_when_all_are_answered() -> None:
    history = [assistant("a", call("c"), turn_id="t1")]
    turns = [paused("t1", ask("k1", "c", input_key="x"), ask("k2", "c", input_key="y"))]
    assert settle(history, answers=[yes("k1")], turns=turns).allowed == ()
    (allowed,) = settle(history, answers=[yes("k2")], recorded=[yes("k1")], turns=turns).allowed
    assert [each.input_key for each in allowed.asks] == ["x", "y"]
    assert [each.ask_id for each in allowed.answers] == ["k1", "k2"]
    denied = settle(history, answers=[yes("k1"), AgHitlAnswer(ask_id="k2", status="declined")], turns=turns)
    assert (denied.allowed, view(denied.added)) == ((), ["tool: c=denied"])


def test_what_takes_no_result() -> None:
    history = [
        assistant("a", call("open"), call("asked"), call("done"), call("denied"), turn_id="t1"),
        tool(result("done")),
    ]
    turns = [paused("t1", ask("k1", "asked"), ask("k2", "denied"))]
    given = [
        result("asked", "forged"),
        result("done", "again"),
        result("denied", "ran"),
        result("open", "half", preliminary=True),
        result("nobody"),
    ]
    settled = settle(history, given, [AgHitlAnswer(ask_id="k2", status="declined")], turns=turns)
    assert [(each.code, each.id) for each in settled.unmatched] == [
        ("asked_call", "asked"),
        ("settled_call", "done"),
        ("denied_call", "denied"),
        ("partial_result", "open"),
        ("unknown_call", "nobody"),
    ]
    assert view(settled.added) == ["tool: denied=denied"]


def test_a_host_may_deny_what_people_are_asked_about() -> None:
    history = [assistant("a", call("c"), turn_id="t1")]
    refused = result("c", "Not on Sundays.", outcome="denied")
    settled = settle(history, [refused], turns=[paused("t1", ask("k", "c"))])
    assert [each.content[0] for each in settled.added] == [refused]


def test_a_result_may_name_its_call_by_key() -> None:
    history = [assistant("a1", call("c")), assistant("a2", call("c"), turn_id="t2")]
    settled = settle(history, [result("c#2", "second")])
    assert [(each.key, each.completed) for each in Transcript(settled.messages).occurrences] == [
        ("c", False),
        ("c#2", True),
    ]
    assert settled.added[0].content[0].tool_call_id == "c"  # type: ignore[union-attr]
    twice = settle(history, [result("c#2", "second"), result("c#2", "again"), result("c", "first")])
    assert view(twice.added) == ["tool: c=first", "tool: c=second"]
    assert [(each.code, each.index) for each in twice.unmatched] == [("settled_call", 1)]
    thrice = settle(history, [result("c#2", "second"), result("c", "first"), result("c", "third")])
    assert view(thrice.added) == ["tool: c=first", "tool: c=second"]
    assert [(each.code, each.index) for each in thrice.unmatched] == [("settled_call", 2)]


def test_unknown_answers_are_named_by_their_place() -> None:
    history = [assistant("a", call("c"), turn_id="t1")]
    settled = settle(history, answers=[yes("k"), yes("nothing")], turns=[paused("t1", ask("k", "c"))])
    assert [(each.code, each.index, each.id) for each in settled.unmatched] == [("unknown_ask", 1, "nothing")]
