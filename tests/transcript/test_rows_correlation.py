"""Rows of the loop contract, "Approval correlation and replay"."""

from __future__ import annotations

from agjson.transcript import Transcript, controls, prepare, settle
from agjson.types import ImageBlock, TextBlock, ToolResultBlock, UrlSource
from tests.transcript.writing import (
    ask,
    assistant,
    call,
    ended,
    ids,
    message,
    no,
    pairs,
    paused,
    reasoning,
    result,
    tool,
    user,
    view,
    waits,
    yes,
)


def test_row_25_results_go_by_id_and_not_by_place() -> None:
    history = [assistant("a", call("c1"), call("c2"), call("c3"))]
    settled = settle(history, [result("c3", "3"), result("c1", "1"), result("c2", "2")])
    assert view(settled.added) == ["tool: c1=1", "tool: c2=2", "tool: c3=3"]


def test_row_26_an_id_may_come_again_after_its_result() -> None:
    history = [assistant("a1", call("c")), tool(result("c", "1"), "r1"), user("u"), assistant("a2", call("c"))]
    settled = settle(history, [result("c", "2")])
    prepared = prepare(settled.messages)
    assert pairs(prepared) == [("{'of': 'c'}", "c=1"), ("{'of': 'c'}", "c=2")]
    assert ids(settled.added) == ["c#2:result"]


def test_row_27_an_ask_that_is_stored_twice_is_one_ask_about_one_call() -> None:
    history = [assistant("a", call("c"), turn_id="t1")]
    turns = [paused("t1", ask("k", "c")), paused("t2", ask("k", "c"))]
    found = controls(history, turns)
    assert [each.ask_id for each in found.asks] == ["k"]
    settled = settle(history, [result("c")], [yes("k"), yes("k")], turns=turns)
    assert view(prepare(settled.messages, turns=turns).messages) == ["assistant: c()", "tool: c=done"]
    assert [(each.code, each.index) for each in settled.unmatched] == [("repeated_answer", 1)]


def test_row_27_an_ask_that_is_shown_again_is_about_the_call_that_it_was_about() -> None:
    history = [assistant("a", call("c"), call("c"), turn_id="t1")]
    turns = [paused("t1", ask("k1", "c"), ask("k2", "c")), paused("t2", ask("k2", "c", message="Still?"))]
    found = controls(history, turns, recorded=[yes("k1")])
    assert {id: each.key for id, each in found.calls.items()} == {"k1": "c", "k2": "c#2"}
    assert [(each.ask_id, each.message) for each in found.asks] == [("k2", "Still?")]
    allowed = settle(history, answers=[yes("k2")], recorded=[yes("k1")], turns=turns).allowed
    assert [(each.call.key, each.answers[0].ask_id) for each in allowed] == [("c", "k1"), ("c#2", "k2")]


def test_row_28_an_old_answer_is_dropped_and_denies_nothing_when_a_new_round_starts() -> None:
    history = [
        assistant("a1", call("c1"), turn_id="t1"),
        tool(result("c1"), turn_id="t2"),
        assistant("a2", call("c2"), turn_id="t3"),
    ]
    turns = [paused("t1", ask("k1", "c1")), ended("t2"), paused("t3", ask("k2", "c2"))]
    settled = settle(history, [result("c2")], [no("k1"), yes("k2")], turns=turns)
    assert view(settled.added) == ["tool: c2=done"]
    assert [(each.code, each.id) for each in settled.unmatched] == [("spent_ask", "k1")]


def test_row_29_rounds_with_one_id_approved_then_rejected_stay_apart() -> None:
    history = [assistant("a1", call("c"), turn_id="t1"), assistant("a2", call("c"), turn_id="t2")]
    turns = [paused("t1", ask("k1", "c")), paused("t2", ask("k2", "c"))]
    for answers, wanted in (
        ([yes("k1"), no("k2")], ["c=ran", "c=denied"]),
        ([no("k1"), yes("k2")], ["c=denied", "c=ran"]),
        ([yes("k2"), no("k1")], ["c=denied", "c=ran"]),
    ):
        settled = settle(history, [result("c", "ran")], answers, turns=turns)
        prepared = prepare(settled.messages, turns=turns)
        assert [got for _, got in pairs(prepared)] == wanted
        assert view(prepared.messages) == [
            "assistant: c()",
            f"tool: {wanted[0]}",
            "assistant: c()",
            f"tool: {wanted[1]}",
        ]


def test_row_29_an_answer_in_a_round_does_not_settle_the_other_one() -> None:
    history = [assistant("a1", call("c"), turn_id="t1"), assistant("a2", call("c"), turn_id="t2")]
    turns = [paused("t1", ask("k1", "c")), paused("t2", ask("k2", "c"))]
    settled = settle(history, [result("c", "ran")], [yes("k2")], turns=turns)
    found = Transcript(settled.messages, turns=turns)
    assert [(each.key, each.completed) for each in found.occurrences] == [("c", False), ("c#2", True)]
    assert [each.ask_id for each in found.controls.asks] == ["k1"]
    assert view(prepare(settled.messages, turns=turns).messages) == ["assistant: c()", "tool: c=ran"]


def test_row_30_everything_that_one_run_returned_stays_with_its_call() -> None:
    image = ImageBlock(source=UrlSource(url="https://example.org/a.png"))
    first = ToolResultBlock(tool_call_id="c", content=[TextBlock(text="see"), image, TextBlock(text="above")])
    history = [assistant("a1", call("c")), assistant("a2", call("c"), turn_id="t2")]
    settled = settle(history, [first, result("c", "second")])
    (_, one), (_, two) = prepare(settled.messages).pairs
    assert one.content == first.content
    assert two.content == [TextBlock(text="second")]


def test_row_31_a_further_question_uses_up_the_answer_before_it_and_no_later_one() -> None:
    history = [
        assistant("a1", call("c"), turn_id="t1"),
        tool(waits("c"), turn_id="t2"),
        assistant("a2", call("c"), turn_id="t3"),
    ]
    turns = [paused("t1", ask("k1", "c")), paused("t2", ask("more", "c", kind="text")), paused("t3", ask("k3", "c"))]
    found = controls(history, turns, recorded=[yes("k1")])
    assert [each.ask_id for each in found.asks] == ["more", "k3"]
    assert found.answers == ()
    assert {id: each.key for id, each in found.calls.items()} == {"k1": "c", "more": "c", "k3": "c#2"}
    late = settle(history, [result("c")], [yes("k1")], turns=turns)
    assert late.added == ()
    assert [each.code for each in late.unmatched] == ["spent_ask", "asked_call"]
    settled = settle(history, [result("c", "second")], [yes("k3")], turns=turns)
    assert [each.key for each in Transcript(settled.messages, turns=turns).pending] == ["c"]


def test_row_32_placeholders_of_one_id_give_way_call_by_call() -> None:
    history = [
        assistant("a1", call("c"), turn_id="t1"),
        tool(waits("c"), "p1", turn_id="t1"),
        assistant("a2", call("c"), turn_id="t2"),
        tool(waits("c"), "p2", turn_id="t2"),
    ]
    turns = [paused("t1", ask("k1", "c")), paused("t2", ask("k2", "c"))]
    settled = settle(history, [result("c", "1"), result("c", "2")], [yes("k1"), yes("k2")], turns=turns)
    prepared = prepare(settled.messages, turns=turns)
    assert view(prepared.messages) == ["assistant: c()", "tool: c=1", "assistant: c()", "tool: c=2"]
    assert [(each.code, each.message_id) for each in prepared.changes if each.code == "placeholder"] == [
        ("placeholder", "p1"),
        ("placeholder", "p2"),
    ]


def test_row_33_a_denial_takes_the_place_of_the_placeholder() -> None:
    history = [assistant("a", call("c"), turn_id="t1"), tool(waits("c"), turn_id="t1")]
    turns = [paused("t1", ask("k", "c"))]
    settled = settle(history, answers=[no("k")], turns=turns)
    assert view(prepare(settled.messages, turns=turns).messages) == ["assistant: c()", "tool: c=denied"]
    assert len(prepare(settled.messages, turns=turns).pairs) == 1


def test_row_34_placeholders_give_way_by_id_however_results_are_ordered() -> None:
    history = [assistant("a", call("c1"), call("c2")), tool(waits("c1")), tool(waits("c2"))]
    settled = settle(history, [result("c2", "2"), result("c1", "1")])
    assert view(prepare(settled.messages).messages) == ["assistant: c1() c2()", "tool: c1=1", "tool: c2=2"]


def test_row_35_a_result_of_no_call_takes_the_place_of_no_other() -> None:
    history = [assistant("a", call("c1"), call("c2"))]
    settled = settle(history, [result("", "stray"), result("c2", "2"), result("nobody", "stray")])
    assert view(settled.added) == ["tool: c2=2"]
    assert [(each.code, each.index, each.id) for each in settled.unmatched] == [
        ("unknown_call", 0, ""),
        ("unknown_call", 2, "nobody"),
    ]
    assert [each.key for each in Transcript(settled.messages).occurrences if not each.completed] == ["c1"]


def test_row_36_messages_that_nothing_is_left_of_are_gone() -> None:
    history = [
        user("u"),
        assistant("a", call("c"), turn_id="t1"),
        tool(waits("c")),
        message("user", "empty"),
        tool(result("c"), "r"),
        tool(result("c", "again"), "twice"),
        tool(result("c", "half", preliminary=True), "part"),
        assistant("b", "Done.", call("d")),
        assistant("lone", call("e")),
        tool(result("nobody"), "stray"),
    ]
    prepared = prepare(history, stray="leave_out", unanswered="leave_out")
    # What was empty before is not ours to judge.
    assert ids(prepared.messages) == ["u", "a", "r", "empty", "b"]
    assert view(prepared.messages)[-1] == "assistant: Done."


def test_row_37_an_answer_is_dead_on_every_later_turn() -> None:
    history = [
        assistant("a", call("c"), turn_id="t1"),
        tool(result("c"), turn_id="t2"),
        user("u", "Thanks", turn_id="t3"),
    ]
    turns = [paused("t1", ask("k", "c")), ended("t2")]
    again = settle(history, [result("c", "again")], [yes("k")], turns=turns)
    assert (again.added, again.allowed) == ((), ())
    assert [each.code for each in again.unmatched] == ["spent_ask", "settled_call"]
    prepared = prepare(history, turns=turns, answers=[yes("k")], recorded=[yes("k")])
    assert (prepared.asks, prepared.answers) == ((), ())
    assert [each.code for each in prepared.spent] == ["spent_ask"]


def test_row_38_an_unanswered_batch_is_hidden_whole_and_can_be_answered_later() -> None:
    history = [
        user("u1", turn_id="t1"),
        assistant("r", reasoning(), turn_id="t1"),
        assistant("a", "I need a word.", call("c1"), call("c2"), turn_id="t1"),
        tool(result("c2"), turn_id="t1"),
        tool(waits("c1"), turn_id="t1"),
        user("u2", turn_id="t2"),
    ]
    turns = [paused("t1", ask("k", "c1"))]
    prepared = prepare(history, turns=turns)
    assert view(prepared.messages) == ["user: u1?", "user: u2?"]
    assert prepared.pairs == ()
    assert [each.ask_id for each in prepared.asks] == ["k"]
    settled = settle(history, [result("c1", "at last")], [yes("k")], turns=turns)
    assert view(prepare(settled.messages, turns=turns).messages) == [
        "user: u1?",
        "assistant: ~thinking",
        "assistant: I need a word. c1() c2()",
        "tool: c1=at last",
        "tool: c2=done",
        "user: u2?",
    ]
    assert settle(settled.messages, answers=[yes("k")], turns=turns).allowed == ()


def test_row_39_one_round_has_one_call() -> None:
    announced = call("c", tool_metadata={"agjson/synthesized": True})
    history = [
        assistant("a", call("c"), turn_id="t1"),
        tool(waits("c"), turn_id="t1"),
        assistant("b", announced, turn_id="t2"),
        tool(result("c"), turn_id="t2"),
    ]
    assert view(prepare(history, turns=[paused("t1", ask("k", "c"))]).messages) == ["assistant: c()", "tool: c=done"]


def test_row_40_a_denial_names_the_call_and_not_the_ask() -> None:
    history = [assistant("a", call("c"), turn_id="t1")]
    settled = settle(history, answers=[no("approval-9")], turns=[paused("t1", ask("approval-9", "c"))])
    ((_, got),) = prepare(settled.messages).pairs
    assert got.tool_call_id == "c"
