"""Rules of the loop contract, "Normative contract", numbered in the order in which it states them."""

from __future__ import annotations

import pytest

from agjson import reduce
from agjson.emitter import Emitter
from agjson.transcript import TranscriptError, controls, prepare, settle
from agjson.types import AgMessage, TextBlock, ToolResultBlock
from tests.transcript.writing import (
    ask,
    assistant,
    call,
    ended,
    no,
    paused,
    result,
    tool,
    user,
    view,
    yes,
)


def test_rule_1_a_call_has_one_terminal_result_or_waits() -> None:
    history = [user("u"), assistant("a", call("c"), turn_id="t1")]
    with pytest.raises(TranscriptError, match="no result"):
        prepare(history)
    assert prepare(history, turns=[paused("t1", ask("k", "c"))]).pairs == ()
    twice = [*history, tool(result("c"), "r1"), tool(result("c"), "r2")]
    assert view(prepare(twice).messages) == ["user: u?", "assistant: c()", "tool: c=done"]


@pytest.mark.parametrize("late", [yes("k"), no("k"), yes("k", reply={"to": "Bob"})])
def test_rule_4_a_completed_pair_is_inert_later(late: object) -> None:
    history = [
        assistant("a", call("c"), turn_id="t1"),
        tool(result("c"), turn_id="t2"),
        user("u", "Thanks", turn_id="t3"),
    ]
    turns = [paused("t1", ask("k", "c")), ended("t2")]
    settled = settle(history, [result("c", "again"), result("c#2")], [late], turns=turns)  # type: ignore[list-item]
    assert settled.messages == history
    assert [each.code for each in settled.unmatched] == ["spent_ask", "settled_call", "unknown_call"]


def test_rule_15_results_stand_before_the_last_words() -> None:
    history = [assistant("a", call("c1"), call("c2"), turn_id="t1"), assistant("w", "Both done.", turn_id="t2")]
    turns = [paused("t1", ask("k1", "c1"), ask("k2", "c2"))]
    settled = settle(history, [result("c1")], [yes("k1"), no("k2")], turns=turns, turn_id="t2")
    assert view(prepare(settled.messages, turns=turns).messages) == [
        "assistant: c1() c2()",
        "tool: c1=done",
        "tool: c2=denied",
        "assistant: Both done.",
    ]


def streamed(out: Emitter) -> None:
    out.message_start("a", role="assistant")
    out.reasoning("why", id="r")
    out.tool_start("c1", "send")
    out.tool_args_delta("c1", '{"of": ')
    out.tool_start("c2", "send")
    out.tool_args_delta("c2", '{"of": "c2"}')
    out.tool_args_delta("c1", '"c1"}')


def whole(out: Emitter) -> None:
    out.message_start("a", role="assistant")
    out.reasoning("why", id="r")
    out.tool_call("c1", "send", {"of": "c1"})
    out.tool_call("c2", "send", {"of": "c2"})


def test_rule_16_a_stream_and_a_whole_answer_are_the_same_transcript() -> None:
    seen: list[list[AgMessage]] = []
    for way in (streamed, whole):
        out = Emitter("t1", "thread")
        way(out)
        out.message_end("a")
        out.tool_done("c2", [TextBlock(text="2")])
        out.tool_done("c1", [TextBlock(text="1")])
        out.message_start("w", role="assistant")
        out.text("Done.", id="words")
        out.turn_done()
        out.flush()
        folded = reduce(out.drain())
        assert not folded.needs_resync
        seen.append(prepare(folded.result.messages, turns=folded.result.turns).messages)
    assert seen[0] == seen[1]
    assert view(seen[0]) == ["assistant: ~why c1() c2()", "tool: c1=1", "tool: c2=2", "assistant: Done."]


def test_rule_20_a_decision_for_the_provider_is_sent_once() -> None:
    history = [assistant("a", call("h", provider_executed=True), turn_id="t1")]
    turns = [paused("t1", ask("k", "h"))]
    now = prepare(history, turns=turns, answers=[no("k"), yes("k")])
    assert [(each.ask_id, each.status) for each in now.answers] == [("k", "declined")]
    assert [each.code for each in now.spent] == ["repeated_answer"]
    later = prepare(history, turns=turns, recorded=[no("k")], answers=[yes("k")])
    assert later.answers == ()
    done: list[AgMessage] = [*history, tool(result("h"), turn_id="t2")]
    assert prepare(done, turns=turns, answers=[yes("k")]).answers == ()


def test_rule_23_a_caller_that_keeps_the_history_itself_gets_the_same_filter() -> None:
    history = [assistant("a", call("c"), turn_id="t1"), tool(result("c"), turn_id="t2")]
    turns = [paused("t1", ask("k", "c"))]
    mine = controls(history, turns, [yes("k")])
    ours = prepare(history, turns=turns, answers=[yes("k")])
    assert (mine.asks, mine.answers, mine.spent) == (ours.asks, ours.answers, ours.spent) == ((), (), ours.spent)
    assert [each.code for each in mine.spent] == ["spent_ask"]


@pytest.mark.parametrize("recorded_late", [True, False])
def test_rule_27_a_terminal_result_uses_up_the_answer_whichever_was_stored_first(recorded_late: bool) -> None:
    call_message, result_message = assistant("a", call("c"), turn_id="t1"), tool(result("c"), turn_id="t2")
    # The ask may be shown again by a turn that was stored after the result.
    turns = [paused("t1", ask("k", "c")), ended("t2"), *([paused("t3", ask("k", "c"))] if recorded_late else [])]
    found = controls([call_message, result_message], turns, recorded=[yes("k")])
    assert (found.asks, found.answers) == ((), ())
    again = settle([call_message, result_message], answers=[yes("k")], turns=turns)
    assert (again.allowed, again.added) == ((), ())


def test_rule_27_a_placeholder_uses_up_nothing() -> None:
    waiting = ToolResultBlock(tool_call_id="c", content=[], outcome="input_required")
    history = [assistant("a", call("c"), turn_id="t1"), tool(waiting, turn_id="t1")]
    (allowed,) = settle(history, answers=[yes("k")], turns=[paused("t1", ask("k", "c"))]).allowed
    assert allowed.call.key == "c"
