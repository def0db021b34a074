"""Rows of the loop contract, "History and provider serialization", and the one about the provider boundary."""

from __future__ import annotations

import pytest

from agjson.transcript import (
    Prepared,
    SlidingWindow,
    TranscriptError,
    compact,
    controls,
    groups,
    prepare,
    settle,
    validate,
)
from agjson.types import AgOpaque
from agjson.wire import encode
from tests.transcript.writing import (
    ask,
    assistant,
    call,
    ended,
    ids,
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


def hosted(id: str) -> object:
    return call(id, provider_executed=True, server_name="files")


def test_row_53_controls_that_are_used_up_reach_no_provider_and_hosted_ones_keep_their_own_way() -> None:
    history = [assistant("a", call("c"), hosted("h"), turn_id="t1"), tool(result("c"), turn_id="t2")]  # type: ignore[arg-type]
    turns = [paused("t1", ask("k1", "c"), ask("k2", "h"))]
    prepared = prepare(history, turns=turns, answers=[yes("k1"), yes("k2"), no("k1")])
    assert [each.ask_id for each in prepared.answers] == ["k2"]
    assert [(each.code, each.answer.ask_id) for each in prepared.spent] == [("spent_ask", "k1"), ("spent_ask", "k1")]


def test_row_53_an_ask_of_a_reused_id_is_about_its_own_call() -> None:
    history = [
        assistant("a1", call("c"), turn_id="t1"),
        tool(result("c"), turn_id="t2"),
        assistant("a2", call("c"), turn_id="t3"),
    ]
    turns = [paused("t1", ask("k1", "c")), ended("t2"), paused("t3", ask("k2", "c"))]
    found = controls(history, turns, [yes("k1"), yes("k2")])
    assert {id: each.key for id, each in found.calls.items()} == {"k1": "c", "k2": "c#2"}
    assert [each.ask_id for each in found.answers] == ["k2"]


def test_row_65_an_append_only_history_has_one_pair_and_no_controls() -> None:
    history = [
        user("u", turn_id="t1"),
        assistant("a", call("c"), turn_id="t1"),
        tool(waits("c"), turn_id="t1"),
        tool(result("c"), turn_id="t2"),
        assistant("b", "Sent.", turn_id="t2"),
    ]
    turns = [paused("t1", ask("k", "c")), ended("t2")]
    prepared = prepare(history, turns=turns, recorded=[yes("k")])
    assert view(prepared.messages) == ["user: u?", "assistant: c()", "tool: c=done", "assistant: Sent."]
    assert (prepared.asks, prepared.answers, len(prepared.pairs)) == ((), (), 1)


def test_row_66_an_answer_counts_while_the_only_result_is_a_placeholder() -> None:
    history = [assistant("a", call("c"), turn_id="t1"), tool(waits("c"), turn_id="t1")]
    turns = [paused("t1", ask("k", "c"))]
    assert [each.ask_id for each in controls(history, turns, recorded=[yes("k")]).answers] == ["k"]
    assert controls([*history, tool(result("c"))], turns, recorded=[yes("k")]).answers == ()


def test_row_67_a_hosted_ask_shows_until_an_answer_is_recorded() -> None:
    history = [assistant("a", hosted("h"), turn_id="t1"), user("u", turn_id="t2")]  # type: ignore[arg-type]
    turns = [paused("t1", ask("k", "h"))]
    before = prepare(history, turns=turns)
    assert view(before.messages) == ["assistant: h()", "user: u?"]
    assert [each.ask_id for each in before.asks] == ["k"]
    now = prepare(history, turns=turns, answers=[yes("k")])
    assert ([each.ask_id for each in now.answers], now.asks) == (["k"], ())
    later = prepare(history, turns=turns, recorded=[yes("k")])
    assert (later.answers, later.asks) == ((), ())


@pytest.mark.parametrize("answer", [yes("k"), no("k")])
def test_row_70_with_a_service_the_decision_of_now_is_sent_and_the_ask_is_not(answer: object) -> None:
    history = [user("u", turn_id="t1"), assistant("a", hosted("h"), turn_id="t1")]  # type: ignore[arg-type]
    turns = [paused("t1", ask("k", "h"))]
    sent = prepare(history, mode="delta", owned_through="a", turns=turns, answers=[answer])  # type: ignore[list-item]
    assert (sent.messages, list(sent.answers), sent.asks) == ([], [answer], ())


def test_row_70_a_decision_about_a_call_that_ran_here_is_not_sent() -> None:
    history = [
        user("u", turn_id="t1"),
        assistant("a", call("c"), hosted("h"), turn_id="t1"),  # type: ignore[arg-type]
        tool(result("c"), turn_id="t2"),
    ]
    turns = [paused("t1", ask("k1", "c"), ask("k2", "h"))]
    sent = prepare(history, mode="delta", owned_through="a", turns=turns, answers=[yes("k1"), no("k2")])
    assert [(each.ask_id, each.status) for each in sent.answers] == [("k2", "declined")]
    assert [(each.code, each.answer.ask_id) for each in sent.spent] == [("spent_ask", "k1")]
    assert (view(sent.messages), sent.asks) == (["tool: c=done"], ())


@pytest.mark.parametrize("by_provider", [None, True])
def test_gap_1_with_a_service_a_used_up_approval_is_neither_sent_nor_acted_on_again(by_provider: bool | None) -> None:
    history = [
        user("u", turn_id="t1"),
        assistant("a", call("c", provider_executed=by_provider), turn_id="t1"),
        tool(result("c"), turn_id="t2"),
        assistant("b", "Sent.", turn_id="t2"),
        user("v", "Thanks", turn_id="t3"),
    ]
    turns = [paused("t1", ask("k", "c")), ended("t2")]
    for known in ([], [yes("k")]):
        sent = prepare(history, mode="delta", owned_through="b", turns=turns, answers=[yes("k")], recorded=known)
        assert view(sent.messages) == ["user: Thanks"]
        assert (sent.asks, sent.answers) == ((), ())
        assert [each.code for each in sent.spent] == ["spent_ask"]
        again = settle(history, answers=[yes("k")], recorded=known, turns=turns)
        assert (again.allowed, again.added) == ((), ())


def test_row_71_a_decision_that_is_sent_has_its_ask_and_its_call_at_hand() -> None:
    history = [assistant("a", hosted("h"), turn_id="t1")]  # type: ignore[arg-type]
    asked = ask("mcpr_1", "h", metadata={"serverLabel": "files"})
    found = controls(history, [paused("t1", asked)], [no("mcpr_1", "not that")])
    assert [(each.ask_id, each.status, each.reason) for each in found.answers] == [("mcpr_1", "declined", "not that")]
    assert found.calls["mcpr_1"].call is history[0].content[0]
    assert list(found.by_call["h"]) == [asked]


def test_row_73_with_a_service_its_calls_are_left_out_and_new_results_are_sent() -> None:
    history = [
        user("u1"),
        assistant("a1", reasoning(), call("c1"), call("c2")),
        tool(result("c2", "two")),
        tool(result("c1", "one")),
        user("u2"),
    ]
    sent = prepare(history, mode="delta", owned_through="a1")
    assert view(sent.messages) == ["tool: c1=one", "tool: c2=two", "user: u2?"]
    assert sent.pairs == prepare(history).pairs
    assert pairs(sent) == [("{'of': 'c1'}", "c1=one"), ("{'of': 'c2'}", "c2=two")]


def test_row_73_each_result_is_sent_once() -> None:
    history = [
        user("u1"),
        assistant("a1", call("c1")),
        tool(result("c1")),
        assistant("a2", call("c1")),
        tool(result("c1", "2"), "r2"),
    ]
    assert view(prepare(history, mode="delta", owned_through="a2").messages) == ["tool: c1=2"]
    assert prepare(history, mode="delta", owned_through="r2").messages == []
    late = [user("u1"), assistant("a1", call("c1")), user("v"), tool(result("c1"), "r1"), user("w")]
    assert view(prepare(late, mode="delta", owned_through="v").messages) == ["tool: c1=done", "user: w?"]
    assert view(prepare(late, mode="delta", owned_through="r1").messages) == ["user: w?"]


def test_row_73_a_service_takes_nothing_before_the_results_that_it_waits_for() -> None:
    history = [assistant("a", call("c"), turn_id="t1"), user("u", turn_id="t2")]
    with pytest.raises(TranscriptError) as refused:
        prepare(history, mode="delta", owned_through="a", turns=[paused("t1", ask("k", "c"))])
    assert (refused.value.code, refused.value.call_id, refused.value.message_id) == ("owned_call_open", "c", "a")
    with pytest.raises(TranscriptError) as refused:
        prepare(history, mode="delta", owned_through="a", unanswered="leave_out")
    assert refused.value.code == "unanswered_call"
    added = prepare(history, mode="delta", owned_through="a", unanswered="answer")
    assert view(added.messages) == ["tool: c=The call was interrupted: it has no result.", "user: u?"]
    stored_so = [tool(result("gone")), *history[:1], tool(result("c"))]
    assert view(prepare(stored_so, mode="delta", owned_through="a").messages) == ["tool: c=done"]
    with pytest.raises(TranscriptError) as refused:
        prepare(history, mode="delta", owned_through="elsewhere")
    assert (refused.value.code, refused.value.path) == ("unknown_message", "$")


def test_row_74_reasoning_call_and_result_go_back_together_or_not_at_all() -> None:
    encrypted = AgOpaque(kind="ciphertext", value="gAAAA", provider="openai")
    bound = reasoning("why", encrypted, item_id="rs_1")
    history = [assistant("r", bound), assistant("a", call("c", item_id="fc_1")), tool(result("c"))]
    sent = prepare(history, replayable=lambda block: block.opaque is not None)
    assert sent.messages[0].content[0] is bound
    assert view(sent.messages) == ["assistant: ~why", "assistant: c()", "tool: c=done"]

    lost = [assistant("r", reasoning("why", None, item_id="rs_1")), *history[1:]]
    with pytest.raises(TranscriptError) as refused:
        prepare(lost, replayable=lambda block: block.opaque is not None)
    assert (refused.value.code, refused.value.path) == ("reasoning_not_replayable", "$[0].content[0]")
    assert (refused.value.message_id, refused.value.call_id) == ("r", "c")


def test_row_74_reasoning_behind_the_calls_of_its_round_counts_too() -> None:
    history = [assistant("a", reasoning(), call("c"), reasoning("more", None)), tool(result("c"))]
    with pytest.raises(TranscriptError) as refused:
        prepare(history, replayable=lambda block: block.opaque is not None)
    assert (refused.value.code, refused.value.path) == ("reasoning_not_replayable", "$[0].content[2]")


def test_row_74_a_call_whose_reasoning_is_gone_is_refused() -> None:
    history = [assistant("a", "Words", call("c", item_id="fc_1")), tool(result("c"))]
    with pytest.raises(TranscriptError) as refused:
        prepare(history, needs_reasoning=lambda made: made.item_id is not None)
    assert (refused.value.code, refused.value.path) == ("reasoning_missing", "$[0].content[1]")
    assert prepare(history, needs_reasoning=lambda made: made.item_id is None).messages == history


def test_row_74_reasoning_that_no_call_is_bound_to_may_be_of_any_kind() -> None:
    history = [user("u"), assistant("a", reasoning("idle", None), "Words")]
    assert prepare(history, replayable=lambda block: block.opaque is not None).messages == history


def test_row_74_a_service_that_has_the_reasoning_needs_none() -> None:
    history = [assistant("a", reasoning("why", None), call("c")), tool(result("c"))]
    sent = prepare(history, mode="delta", owned_through="a", replayable=lambda block: block.opaque is not None)
    assert view(sent.messages) == ["tool: c=done"]


def test_row_75_a_signature_comes_back_on_its_call_as_it_was() -> None:
    signed = call("c1", signature="AY89a/+=", provider_call_index=0)
    history = [assistant("a", signed, call("c2")), tool(result("c2")), tool(result("c1"))]
    sent = prepare(history)
    assert sent.messages[0].content[0] is signed
    assert view(sent.messages) == ["assistant: c1() c2()", "tool: c1=done", "tool: c2=done"]


def test_row_75_a_signature_is_not_lost_with_a_call_that_is_left_out() -> None:
    history = [assistant("a", call("c1", signature="AY89a/+="), call("c2")), tool(result("c2"))]
    with pytest.raises(TranscriptError) as refused:
        prepare(history, unanswered="leave_out")
    assert (refused.value.code, refused.value.path) == ("reasoning_lost", "$[0].content[0]")


def test_row_76_no_message_ever_holds_an_ask_or_an_answer() -> None:
    open_now = [user("u"), assistant("a", call("c"), turn_id="t1"), tool(waits("c"), turn_id="t1")]
    turns = [paused("t1", ask("ask-of-c", "c", message="question-to-ann", token="token-of-ask"))]
    answer = yes("ask-of-c", reply="words-of-ann", token="token-of-ask")
    stages: list[tuple[Prepared, list[str]]] = [
        (prepare(open_now, turns=turns), []),
        # A framework that takes the decision gets it beside the messages.
        (prepare(open_now, turns=turns, answers=[answer]), ["assistant: c()"]),
        (
            prepare(settle(open_now, [result("c")], [answer], turns=turns).messages, turns=turns, answers=[answer]),
            ["assistant: c()", "tool: c=done"],
        ),
        (
            prepare(settle(open_now, answers=[no("ask-of-c")], turns=turns).messages, turns=turns, answers=[answer]),
            ["assistant: c()", "tool: c=denied"],
        ),
    ]
    for prepared, behind in stages:
        assert view(prepared.messages) == ["user: u?", *behind]
        sent = encode(prepared.messages)
        for control in (b"ask-of-c", b"question-to-ann", b"token-of-ask", b"words-of-ann"):
            assert control not in sent


def test_row_79_a_pause_for_more_input_has_no_made_up_result() -> None:
    history = [assistant("a", call("c1"), call("c2"), turn_id="t1")]
    turns = [paused("t1", ask("k1", "c1"), ask("k2", "c2"))]
    settled = settle(history, [waits("c1"), waits("c2")], [yes("k1"), yes("k2")], turns=turns)
    turns.append(paused("t2", ask("k3", "c1", kind="form"), ask("k4", "c2", kind="form")))
    assert [each.id for each in settled.added] == ["c1:pending", "c2:pending"]
    assert validate(settled.messages, turns=turns) == []
    prepared = prepare(settled.messages, turns=turns)
    assert (prepared.messages, prepared.pairs) == ([], ())
    assert [each.ask_id for each in prepared.asks] == ["k3", "k4"]


def test_row_84_pairs_stay_whole_wherever_they_stand() -> None:
    history = [
        user("u1"),
        assistant("a1", reasoning(), call("c"), call("d")),
        user("u2"),
        tool(result("d")),
        assistant("a2", "Now.", call("c2"), result("c2"), "Then."),
        user("u3"),
        tool(result("c")),
        assistant("a3", call("c")),
        tool(result("c"), "r2"),
        user("u4"),
    ]
    assert [list(group.places) for group in groups(history)] == [[0], [1, 3, 6], [2], [4], [5], [7, 8], [9]]
    for size in range(8):
        assert validate(compact(history, SlidingWindow(size))) == []
    assert ids(compact(history, SlidingWindow(2))) == ["u4"]
    assert ids(compact(history, SlidingWindow(3))) == ["u3", "a3", "r2", "u4"]
    assert ids(compact(history, SlidingWindow(6))) == ["u2", "a2", "u3", "a3", "r2", "u4"]


def test_row_84_a_window_keeps_no_result_whose_embedded_pair_is_gone() -> None:
    history = [
        user("u1"),
        assistant("a1", call("c"), result("c")),
        user("u2"),
        assistant("a2", call("c")),
        tool(result("c")),
    ]
    assert ids(compact(history, SlidingWindow(2))) == ["u2", "a2", "c:result"]


def test_row_84_calls_whose_results_cannot_be_told_apart_are_not_paired_and_not_torn() -> None:
    history = [assistant("a1", call("c")), user("u"), assistant("a2", call("c")), tool(result("c")), user("v")]
    with pytest.raises(TranscriptError) as refused:
        prepare(history)
    assert refused.value.code == "ambiguous_result"
    assert [list(group.places) for group in groups(history)] == [[0, 2, 3], [1], [4]]
    mended = prepare(history, stray="leave_out", unanswered="leave_out")
    assert view(mended.messages) == ["user: u?", "user: v?"]
