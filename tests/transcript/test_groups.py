"""What is kept or dropped whole."""

from __future__ import annotations

from agjson.transcript import groups
from agjson.types import AgMessage, CompactionBlock
from tests.transcript.writing import assistant, call, message, reasoning, result, tool, user, waits


def cut(history: list[AgMessage]) -> list[tuple[str, list[int]]]:
    return [(group.kind, list(group.places)) for group in groups(history)]


def test_words_are_groups_of_their_own() -> None:
    history = [message("system", "s", "Be kind."), user("u"), assistant("a", "Hello"), message("notice", "n", "late")]
    assert cut(history) == [("system", [0]), ("user", [1]), ("assistant", [2]), ("notice", [3])]


def test_reasoning_calls_and_results_are_one_group() -> None:
    history = [
        user("u"),
        assistant("a1", reasoning(), call("c1"), call("c2")),
        tool(result("c1")),
        tool(result("c2")),
        assistant("a2", "Done"),
    ]
    assert cut(history) == [("user", [0]), ("tools", [1, 2, 3]), ("assistant", [4])]


def test_reasoning_in_a_message_of_its_own_belongs_to_what_follows() -> None:
    history = [assistant("r", reasoning()), assistant("a", call("c")), tool(result("c")), assistant("w", reasoning())]
    assert cut(history) == [("tools", [0, 1, 2]), ("assistant", [3])]
    assert cut([assistant("r", reasoning()), assistant("w", "words"), user("u")]) == [
        ("assistant", [0, 1]),
        ("user", [2]),
    ]


def test_reasoning_behind_the_calls_of_its_round_belongs_to_them() -> None:
    history = [assistant("a", call("c")), assistant("r", reasoning()), tool(result("c"))]
    assert cut(history) == [("tools", [0, 1, 2])]


def test_calls_of_several_messages_of_one_round_are_one_batch() -> None:
    history = [
        assistant("a1", "First"),
        assistant("a2", call("c1")),
        message("notice", "n", "slow"),
        assistant("a3", "and"),
        assistant("a4", call("c2")),
        assistant("a5", "So."),
        tool(result("c2")),
        tool(result("c1")),
    ]
    assert cut(history) == [("assistant", [0]), ("tools", [1, 3, 4, 6, 7]), ("notice", [2]), ("assistant", [5])]


def test_another_turn_is_another_round() -> None:
    history = [
        assistant("a1", call("c1"), turn_id="t1"),
        assistant("a2", call("c2"), turn_id="t2"),
        tool(result("c1")),
        tool(result("c2")),
    ]
    assert cut(history) == [("tools", [0, 2]), ("tools", [1, 3])]


def test_a_result_in_another_place_belongs_to_its_call() -> None:
    history = [assistant("a1", call("c1")), user("u"), assistant("a2", "Later"), tool(result("c1")), user("v")]
    assert cut(history) == [("tools", [0, 3]), ("user", [1]), ("assistant", [2]), ("user", [4])]


def test_calls_with_one_id_are_groups_of_their_own() -> None:
    history = [
        assistant("a1", call("c")),
        tool(result("c")),
        user("u"),
        assistant("a2", call("c")),
        tool(result("c")),
    ]
    assert cut(history) == [("tools", [0, 1]), ("user", [2]), ("tools", [3, 4])]


def test_calls_whose_results_cannot_be_told_apart_stay_together() -> None:
    history = [
        assistant("a1", call("c")),
        user("u"),
        assistant("a2", call("c")),
        user("v"),
        tool(result("c")),
    ]
    assert cut(history) == [("tools", [0, 2, 4]), ("user", [1]), ("user", [3])]
    # No result will ever be known to be theirs.
    assert not groups(history)[0].waits


def test_placeholders_and_partial_results_belong_to_their_call() -> None:
    history = [
        assistant("a", call("c")),
        tool(waits("c")),
        user("u"),
        tool(result("c", preliminary=True), "part"),
        tool(result("c")),
    ]
    assert cut(history) == [("tools", [0, 1, 3, 4]), ("user", [2])]


def test_a_call_without_a_result_waits() -> None:
    waiting, done, hosted = groups(
        [
            assistant("a1", call("c1"), turn_id="t1"),
            assistant("a2", call("c2"), result("c2"), turn_id="t2"),
            assistant("a3", call("c3", provider_executed=True), turn_id="t3"),
        ]
    )
    assert [waiting.waits, done.waits, hosted.waits] == [True, False, False]
    assert [each.key for each in waiting.occurrences] == ["c1"]


def test_a_summary_of_a_provider_is_a_group_of_its_kind() -> None:
    history = [user("u"), assistant("a", CompactionBlock(text="so far"), "Go on")]
    assert cut(history) == [("user", [0]), ("summary", [1])]
