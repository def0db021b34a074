"""Which result is of which call, however ids repeat."""

from __future__ import annotations

from agjson.transcript import Transcript, occurrences, validate
from agjson.types import AgMessage
from tests.transcript.writing import assistant, call, result, tool, user, waits


def paired(messages: list[AgMessage]) -> list[tuple[str, str | None]]:
    """The key of each call and the id of the message of its result."""
    return [(each.key, each.result_place and each.result_place.message_id) for each in occurrences(messages)]


def codes(messages: list[AgMessage]) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in validate(messages)]


def test_a_call_and_its_result() -> None:
    (found,) = occurrences([user("u"), assistant("a", "Now", call("c")), tool(result("c", "ok"))])
    assert (found.key, found.call_id, found.call.name) == ("c", "c", "send")
    assert found.place.path == "$[1].content[1]"
    assert found.result_place is not None and found.result_place.path == "$[2].content[0]"
    assert found.completed and not found.hosted and not found.ambiguous


def test_results_that_do_not_stand_behind_their_calls() -> None:
    history = [
        assistant("a1", call("c1")),
        user("u"),
        assistant("a2", call("c2")),
        tool(result("c2")),
        tool(result("c1")),
    ]
    assert paired(history) == [("c1", "c1:result"), ("c2", "c2:result")]
    assert codes(history) == []


def test_an_id_that_comes_again_after_its_result_is_another_call() -> None:
    history = [
        assistant("a1", call("c")),
        tool(result("c"), "r1"),
        assistant("a2", call("c")),
        tool(result("c"), "r2"),
        assistant("a3", call("c")),
    ]
    assert paired(history) == [("c", "r1"), ("c#2", "r2"), ("c#3", None)]
    assert codes(history) == [("unanswered_call", "$[4].content[0]")]


def test_a_key_is_never_one_that_another_call_has() -> None:
    history = [
        assistant("a1", call("c")),
        tool(result("c")),
        assistant("a2", call("c")),
        tool(result("c")),
        assistant("a3", call("c#2")),
        tool(result("c#2"), "last"),
    ]
    assert paired(history)[1:] == [("c#2", "c:result"), ("c#2#2", "last")]


def test_keys_stay_when_the_history_grows() -> None:
    history = [assistant("a1", call("c")), tool(result("c")), assistant("a2", call("c")), tool(result("c"))]
    longer = [*history, assistant("a3", call("c#2")), assistant("a4", call("c"))]
    assert [each.key for each in occurrences(longer)][:2] == [each.key for each in occurrences(history)]


def test_two_calls_of_one_message_with_one_id_get_their_results_in_order() -> None:
    history = [
        assistant("a", call("search"), call("search")),
        tool(result("search"), "r1"),
        tool(result("search"), "r2"),
    ]
    assert paired(history) == [("search", "r1"), ("search#2", "r2")]


def test_a_result_inside_the_message_of_its_call_is_of_that_call() -> None:
    history = [
        assistant("a1", call("c")),
        assistant("a2", call("c"), result("c", "inside")),
        tool(result("c"), "r1"),
    ]
    assert paired(history) == [("c", "r1"), ("c#2", "a2")]


def test_an_embedded_pair_is_closed_before_its_id_comes_again() -> None:
    history = [assistant("a1", call("c"), result("c"), "and"), assistant("a2", call("c")), tool(result("c"), "r2")]
    assert paired(history) == [("c", "a1"), ("c#2", "r2")]


def test_fewer_results_than_open_calls_of_one_id_are_not_guessed_at() -> None:
    history = [assistant("a1", call("c")), user("u"), assistant("a2", call("c")), tool(result("c"), "r")]
    first, second = occurrences(history)
    assert not first.completed and not second.completed
    assert [place.message_id for place in first.candidates] == ["r"] == [p.message_id for p in second.candidates]
    assert codes(history) == [("ambiguous_result", "$[0].content[0]"), ("ambiguous_result", "$[2].content[0]")]


def test_a_result_may_name_its_call_among_several_that_are_open() -> None:
    named = result("c", meta={"agjson/occurrence": "a2"})
    history = [assistant("a1", call("c")), assistant("a2", call("c")), tool(named, "r")]
    assert paired(history) == [("c", None), ("c#2", "r")]


def test_the_second_call_of_one_id_in_a_message_has_a_name_too() -> None:
    named = result("c", meta={"agjson/occurrence": "a#2"})
    history = [assistant("a", call("c"), call("c")), tool(named, "r")]
    assert paired(history) == [("c", None), ("c#2", "r")]
    assert [each.name for each in occurrences(history)] == ["a", "a#2"]


def test_a_result_that_names_a_closed_call_is_not_of_another() -> None:
    named = result("c", meta={"agjson/occurrence": "a1"})
    history = [assistant("a1", call("c")), tool(named, "r1"), assistant("a2", call("c")), tool(named, "r2")]
    assert paired(history) == [("c", "r1"), ("c#2", None)]
    assert codes(history) == [("unanswered_call", "$[2].content[0]"), ("repeated_result", "$[3].content[0]")]


def test_a_name_of_no_open_call_counts_for_nothing() -> None:
    named = result("c", meta={"agjson/occurrence": "r"})
    history = [assistant("a", call("c"), call("d")), tool(named, "r")]
    assert paired(history) == [("c", "r"), ("d", None)]


def test_a_result_before_its_call_is_not_its_result() -> None:
    history = [tool(result("c")), assistant("a", call("c"))]
    assert paired(history) == [("c", None)]
    assert codes(history) == [("result_before_call", "$[0].content[0]"), ("unanswered_call", "$[1].content[0]")]


def test_what_belongs_to_no_call() -> None:
    history = [
        tool(result("gone")),
        tool(waits("gone")),
        assistant("a", call("c")),
        tool(result("c"), "r1"),
        tool(result("c"), "r2"),
    ]
    assert codes(history) == [
        ("result_without_call", "$[0].content[0]"),
        ("placeholder_without_call", "$[1].content[0]"),
        ("repeated_result", "$[4].content[0]"),
    ]


def test_a_problem_says_where_and_what() -> None:
    (problem,) = validate([user("u"), assistant("a", call("c7"))])
    assert (problem.message_id, problem.call_id, problem.path) == ("a", "c7", "$[1].content[0]")
    assert problem.message == "call 'c7' has no result, and nobody is asked for one"


def test_placeholders_go_to_the_calls_in_their_order() -> None:
    history = [
        assistant("a1", call("c")),
        tool(waits("c"), "p1"),
        assistant("a2", call("c")),
        tool(waits("c"), "p2"),
    ]
    assert [[place.message_id for place in each.placeholders] for each in occurrences(history)] == [["p1"], ["p2"]]
    assert [each.key for each in Transcript(history).pending] == ["c", "c#2"]


def test_a_placeholder_goes_to_a_call_that_is_still_open() -> None:
    named = result("c", meta={"agjson/occurrence": "a1"})
    history = [assistant("a1", call("c")), assistant("a2", call("c")), tool(named, "r"), tool(waits("c"), "p")]
    assert [[place.message_id for place in each.placeholders] for each in occurrences(history)] == [[], ["p"]]


def test_a_call_of_an_app_needs_no_result() -> None:
    assert codes([assistant("a", call("c", ui_visibility=["app"]))]) == []
    assert codes([assistant("a", call("c", ui_visibility=["app", "model"]))]) == [
        ("unanswered_call", "$[0].content[0]")
    ]


def test_only_the_assistant_makes_calls() -> None:
    history = [user("u", "Run this:", call("c")), tool(result("c"))]
    assert occurrences(history) == []
    assert codes(history) == [("misplaced_call", "$[0].content[1]"), ("result_without_call", "$[1].content[0]")]


def test_a_partial_result_is_no_result() -> None:
    history = [assistant("a", call("c")), tool(result("c", "half", preliminary=True), "p")]
    (found,) = occurrences(history)
    assert not found.completed
    assert [place.message_id for place in found.partials] == ["p"]
    assert codes(history) == [("unanswered_call", "$[0].content[0]")]


def test_a_call_that_only_announces_a_result_is_no_call() -> None:
    announced = call("c", tool_metadata={"agjson/synthesized": True})
    history = [assistant("a1", call("c")), assistant("a2", announced), tool(result("c"), "r")]
    assert paired(history) == [("c", "r")]


def test_a_call_that_the_provider_runs_needs_no_result() -> None:
    history = [assistant("a", call("s", provider_executed=True))]
    assert codes(history) == []
    assert occurrences(history)[0].hosted


def test_a_call_that_the_client_runs_waits_under_its_id_or_its_key() -> None:
    history = [assistant("a1", call("c")), tool(result("c")), assistant("a2", call("c"))]
    assert [problem.code for problem in validate(history)] == ["unanswered_call"]
    assert validate(history, waiting=["c"]) == []
    assert validate(history, waiting=["c#2"]) == []
    assert [problem.code for problem in validate(history, waiting=["c#3"])] == ["unanswered_call"]
