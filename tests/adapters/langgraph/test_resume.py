"""Answers as LangGraph takes them: the spec's shapes (§3.1, §7, §10.11), on the function and on running graphs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agjson.adapters.langgraph._handles import interrupt_of
from agjson.adapters.langgraph._resume import denied_calls, resumption_of
from agjson.adapters.langgraph.inbound import build_resume, to_native
from agjson.errors import ReplayError, ValidationError
from agjson.types import AgChoice, AgHitlAnswer, AgPausedAsk, ResumeInput
from tests.support.langgraph_agents import Desk, approving, asking, calling, saying

ID = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"


def ask(id: str = ID, value: Any = "Which?", **fields: Any) -> AgPausedAsk:
    return AgPausedAsk(ask_id=id, kind=fields.pop("kind", "text"), metadata={"langgraph/value": value}, **fields)


def answer(id: str = ID, reply: Any = "blue", status: Any = "resolved", **fields: Any) -> AgHitlAnswer:
    return AgHitlAnswer(ask_id=id, status=status, reply=reply, **fields)


def review(count: int, *allowed: str, id: str = ID) -> list[AgPausedAsk]:
    """The asks of one batched approval."""
    allowed = allowed or ("approve", "edit", "reject", "respond")
    value = {
        "action_requests": [{"name": f"tool-{index}", "args": {"n": index}} for index in range(count)],
        "review_configs": [
            {"action_name": f"tool-{index}", "allowed_decisions": list(allowed)} for index in range(count)
        ],
    }
    return [
        AgPausedAsk(
            ask_id=f"{id}#{index}",
            kind="approval",
            tool_call_id=f"call-{index}",
            metadata={"langgraph/value": value, "langgraph/interruptId": id},
            resume_binding="positional",
            ordinal=index,
        )
        for index in range(count)
    ]


# The shapes of the spec


def test_a_single_ask_without_a_binding_is_a_scalar() -> None:
    assert build_resume([ask()], [answer(reply={"colour": "blue"})]) == {"colour": "blue"}


def test_the_binding_by_id_is_a_map_also_for_one_answer() -> None:
    one = ask(resume_binding="id")
    two = ask(OTHER, resume_binding="id")
    assert build_resume([one], [answer()]) == {ID: "blue"}
    assert build_resume([one, two], [answer(OTHER, "red"), answer()]) == {ID: "blue", OTHER: "red"}


def test_the_positional_binding_is_a_list_by_ordinal_also_for_one_answer() -> None:
    first, second, third = (ask(f"{ID}#{n}", resume_binding="positional", ordinal=n) for n in range(3))
    assert build_resume([first], [answer(f"{ID}#0", "a")]) == ["a"]
    given = [answer(f"{ID}#2", "c"), answer(f"{ID}#0", "a"), answer(f"{ID}#1", "b")]
    assert build_resume([first, second, third], given) == ["a", "b", "c"]


def test_the_ordinal_of_the_answer_counts_where_the_ask_has_none() -> None:
    asks = [ask(f"{ID}#0", resume_binding="positional"), ask(f"{ID}#1", resume_binding="positional")]
    assert build_resume(asks, [answer(f"{ID}#0", "b", ordinal=1), answer(f"{ID}#1", "a", ordinal=0)]) == ["a", "b"]


def test_a_batched_approval_beside_another_interrupt_is_a_list_in_the_map() -> None:
    asks = [*review(2), ask(OTHER, resume_binding="id")]
    answers = [answer(f"{ID}#1", True), answer(f"{ID}#0", False), answer(OTHER, "red")]
    assert build_resume(asks, answers) == {ID: [{"type": "reject"}, {"type": "approve"}], OTHER: "red"}


def test_null_and_empty_replies_are_replies() -> None:
    assert build_resume([ask()], [answer(reply=None)]) is None
    assert build_resume([ask()], [answer(reply={})]) == {}
    assert resumption_of([ask()], [answer(reply={})]).values == {ID: {}}


@pytest.mark.parametrize("status", ["declined", "cancelled"])
def test_a_question_that_is_not_answered_says_so_to_the_graph(status: Any) -> None:
    given = AgHitlAnswer(ask_id=ID, status=status, reason="not mine to say")
    assert build_resume([ask()], [given]) == {"status": status, "reason": "not mine to say"}
    with_reply = answer(status=status, reply={"partly": 1})
    assert build_resume([ask()], [with_reply]) == {"partly": 1}


# Approvals

DECISIONS: list[tuple[Any, Any, dict[str, Any]]] = [
    ("resolved", True, {"type": "approve"}),
    ("resolved", None, {"type": "approve"}),
    (
        "resolved",
        {"arguments": {"n": 9}},
        {"type": "edit", "edited_action": {"name": "tool-0", "args": {"n": 9}}},
    ),
    ("resolved", {"response": "no need"}, {"type": "respond", "message": "no need"}),
    ("resolved", False, {"type": "reject", "message": "too dear"}),
    ("declined", None, {"type": "reject", "message": "too dear"}),
    ("cancelled", True, {"type": "reject", "message": "too dear"}),
]


@pytest.mark.parametrize(("status", "reply", "decision"), DECISIONS)
def test_an_answer_to_an_approval_is_a_decision(status: Any, reply: Any, decision: dict[str, Any]) -> None:
    given = answer(f"{ID}#0", reply, status, reason="too dear")
    assert resumption_of(review(1), [given]).values == {ID: {"decisions": [decision]}}


def test_an_approval_without_a_reply_is_agreement() -> None:
    given = AgHitlAnswer(ask_id=f"{ID}#0", status="resolved")
    assert resumption_of(review(1), [given]).values == {ID: {"decisions": [{"type": "approve"}]}}


def test_a_review_of_one_call_takes_a_bare_decision() -> None:
    value = {"type": "tool_approval", "tool_call_id": "c1", "name": "send", "args": {"to": "x"}}
    one = ask(value=value, kind="approval", tool_call_id="c1")
    assert resumption_of([one], [answer(reply=True)]).values == {ID: {"type": "approve"}}
    assert resumption_of([one], [answer(reply={"arguments": {"to": "y"}})]).values == {
        ID: {"type": "edit", "edited_action": {"name": "send", "args": {"to": "y"}}}
    }
    assert build_resume([one], [answer(reply=False)]) == {"type": "reject"}


@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        "approve",
        "",
        1,
        0,
        [],
        {},
        {"arguments": []},
        {"arguments": {}, "response": "x"},
        {"response": 3},
        {"type": "approve"},
        {"decisions": [{"type": "approve"}]},
        {"edited_action": {"name": "rm", "args": {}}},
    ],
)
def test_what_is_no_answer_to_an_approval_approves_nothing(reply: Any) -> None:
    with pytest.raises(ReplayError) as refused:
        resumption_of(review(1), [answer(f"{ID}#0", reply)])
    assert refused.value.path == "$.answers[0].reply"


@pytest.mark.parametrize(
    ("reply", "status", "member"),
    [
        ({"arguments": {"n": 1}}, "resolved", "reply"),
        ({"response": "x"}, "resolved", "reply"),
        (None, "declined", "status"),
    ],
)
def test_a_decision_that_the_graph_does_not_offer_is_refused(reply: Any, status: Any, member: str) -> None:
    with pytest.raises(ReplayError) as refused:
        resumption_of(review(1, "approve"), [answer(f"{ID}#0", reply, status)])
    assert refused.value.path == f"$.answers[0].{member}"


def test_the_choices_of_an_ask_are_what_it_offers() -> None:
    (one,) = review(1)
    fields = {name: getattr(one, name) for name in one.__struct_fields__}
    narrow = AgPausedAsk(**{**fields, "choices": [AgChoice(id="approve", label="Yes")]})
    assert resumption_of([narrow], [answer(f"{ID}#0", True)]).values[ID]["decisions"] == [{"type": "approve"}]
    with pytest.raises(ReplayError):
        resumption_of([narrow], [answer(f"{ID}#0", {"arguments": {"n": 1}})])


def test_decisions_are_counted_against_the_actions() -> None:
    asks = review(3)
    for kept in (asks[:2], asks[1:], [asks[0], asks[2]]):
        with pytest.raises(ReplayError, match="3 decisions"):
            resumption_of(kept, [answer(each.ask_id, True) for each in kept])
    whole = resumption_of(asks, [answer(each.ask_id, True) for each in reversed(asks)])
    assert whole.values == {ID: {"decisions": [{"type": "approve"}] * 3}}


def test_the_denied_calls_are_remembered() -> None:
    asks = review(3)
    answers = [
        answer(f"{ID}#0", True),
        answer(f"{ID}#1", None, "declined", reason="too dear"),
        answer(f"{ID}#2", False),
    ]
    assert denied_calls(asks, answers) == {"call-1": "too dear", "call-2": ""}
    assert denied_calls(asks, answers[:1]) == {}
    assert denied_calls([ask(tool_call_id="c")], [answer(status="declined", reply=None)]) == {}


# What is refused


def test_an_answer_to_no_ask_is_refused() -> None:
    with pytest.raises(ReplayError) as refused:
        build_resume([ask()], [answer(), answer(OTHER)])
    assert refused.value.path == "$.answers[1].askId"


def test_an_ask_without_an_answer_or_with_two_is_refused() -> None:
    asks = [ask(resume_binding="id"), ask(OTHER, resume_binding="id")]
    with pytest.raises(ReplayError, match=OTHER):
        build_resume(asks, [answer()])
    with pytest.raises(ReplayError) as refused:
        build_resume(asks, [answer(), answer(OTHER), answer(reply="red")])
    assert refused.value.path == "$.answers[2].askId"


def test_a_moved_or_doubled_ordinal_is_refused() -> None:
    asks = [ask(f"{ID}#{n}", resume_binding="positional", ordinal=n) for n in range(2)]
    with pytest.raises(ReplayError) as refused:
        build_resume(asks, [answer(f"{ID}#0", ordinal=1), answer(f"{ID}#1")])
    assert refused.value.path == "$.answers[0].ordinal"
    loose = [ask(f"{ID}#{n}", resume_binding="positional") for n in range(2)]
    with pytest.raises(ReplayError, match="two answers"):
        build_resume(loose, [answer(f"{ID}#0", ordinal=1), answer(f"{ID}#1", ordinal=1)])


def test_an_answer_that_does_not_echo_the_token_is_refused() -> None:
    with pytest.raises(ValidationError):
        build_resume([ask(token="secret")], [answer(token="guessed")])


@given(st.permutations(range(5)), st.lists(st.booleans(), min_size=5, max_size=5))
def test_each_decision_goes_to_its_action_in_any_order_of_answers(order: list[int], agreed: list[bool]) -> None:
    asks = review(5)
    plan = resumption_of(asks, [answer(f"{ID}#{index}", agreed[index]) for index in order])
    assert [each["type"] == "approve" for each in plan.values[ID]["decisions"]] == agreed


# On running graphs


def paused(graph: Any, config: Any, given: Any) -> list[Any]:
    graph.invoke(given, config)
    return list(graph.get_state(config).interrupts)


CONFIG: Any = {"configurable": {"thread_id": "t"}}


def test_parallel_interrupts_on_a_running_graph() -> None:
    ran: list[Any] = []
    graph = asking(InMemorySaver(), "colour", "size", parallel=True, ran=ran)
    asks = [ask(each.id, each.value, resume_binding="id") for each in paused(graph, CONFIG, {"topic": "x"})]
    replies = {"colour": None, "size": {}}
    answers = [answer(each.ask_id, replies[_value(each)]) for each in reversed(asks)]
    shape = build_resume(asks, answers)
    assert shape == {each.ask_id: replies[_value(each)] for each in asks}
    call = to_native(ResumeInput(thread_id="t", turn_id="r", answers=answers), asks=asks)
    assert call.graph_input().resume == shape
    graph.invoke(call.graph_input(), call.config)
    assert sorted(map(repr, ran)) == ["None", "{}"]
    assert graph.get_state(CONFIG).next == ()


def test_two_interrupts_in_one_node_on_a_running_graph() -> None:
    """The positional list, an answer at a time: each as a map, for a bare value would answer the next question too."""
    ran: list[Any] = []
    graph = asking(InMemorySaver(), "first", "second", ran=ran)
    (native,) = paused(graph, CONFIG, {"topic": "x"})
    asks = [ask(f"{native.id}#{n}", n, resume_binding="positional", ordinal=n) for n in range(2)]
    assert len({each.ask_id for each in asks}) == 2
    answers = [answer(asks[1].ask_id, "B"), answer(asks[0].ask_id, "A")]
    assert build_resume(asks, answers) == ["A", "B"]
    plan = resumption_of(asks, answers)
    assert (plan.values, plan.later) == ({native.id: "A"}, {native.id: ["B"]})
    call = to_native(ResumeInput(thread_id="t", turn_id="r", answers=answers), asks=asks)
    graph.invoke(call.graph_input(), call.config)
    (second,) = graph.get_state(CONFIG).interrupts
    assert second.id != native.id
    assert call.later == plan.later
    graph.invoke(Command(resume={second.id: call.later[native.id][0]}), call.config)
    assert ran == ["A", "B"]


def test_a_batched_approval_on_a_running_graph() -> None:
    desk = Desk()
    first = calling(*((f"c{n}", "send", {"to": f"p{n}"}) for n in range(4)))
    graph = approving(InMemorySaver(), desk, first, saying("done"))
    (native,) = paused(graph, CONFIG, {"messages": ["go"]})
    asks = [
        AgPausedAsk(
            ask_id=f"{native.id}#{index}",
            kind="approval",
            tool_call_id=f"c{index}",
            metadata={"langgraph/value": native.value},
            resume_binding="positional",
            ordinal=index,
        )
        for index in range(4)
    ]
    replies = {0: True, 1: False, 2: {"arguments": {"to": "elsewhere"}}, 3: {"response": "done by hand"}}
    answers = [answer(asks[index].ask_id, replies[index]) for index in (3, 1, 0, 2)]
    assert [each["type"] for each in _list(build_resume(asks, answers))] == ["approve", "reject", "edit", "respond"]
    call = to_native(ResumeInput(thread_id="t", turn_id="r", answers=answers), asks=asks)
    graph.invoke(call.graph_input(), call.config)
    assert sorted(desk.sent) == ["elsewhere", "p0"]
    assert interrupt_of(asks[2]) == native.id


def _value(of: AgPausedAsk) -> Any:
    return (of.metadata or {})["langgraph/value"]


def _list(value: Any) -> list[Any]:
    assert isinstance(value, list)
    return value
