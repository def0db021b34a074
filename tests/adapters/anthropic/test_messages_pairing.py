"""Calls paired with their results in the history that goes to the Messages API (loop contract, spec §2.2)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson import ReplayError
from agjson.adapters.anthropic import messages_to_native
from agjson.types import (
    AgOpaque,
    AgPausedAsk,
    AgPendingInput,
    AgTurnRecord,
    ReasoningBlock,
    ToolResultBlock,
)
from tests.support.anthropic_history import INTERRUPTED, answer, call, message, repaired, result, text, use


def native_result(block: ToolResultBlock, **options: Any) -> dict[str, Any]:
    """What a result of a client's tool becomes."""
    history = [message("user", "?"), message("assistant", call()), message("tool", block)]
    return messages_to_native(history, **options)[2]["content"][0]


def test_results_stand_first_in_the_message_behind_their_calls() -> None:
    native = messages_to_native(
        [
            message("user", "?"),
            message("assistant", "let me see", call("toolu_1"), call("toolu_2")),
            message("tool", result("toolu_1", "one")),
            message("tool", result("toolu_2", "two")),
            message("user", "and then?"),
        ]
    )

    assert native[1:] == [
        {"role": "assistant", "content": [text("let me see"), use("toolu_1"), use("toolu_2")]},
        {
            "role": "user",
            "content": [answer("toolu_1", text("one")), answer("toolu_2", text("two")), text("and then?")],
        },
    ]
    assert native.repairs == []


def test_results_go_back_in_the_order_of_the_calls_whichever_came_first() -> None:
    calls = message("assistant", call("toolu_1"), call("toolu_2"))
    one, two = result("toolu_1", "one"), result("toolu_2", "two")
    wanted = [answer("toolu_1", text("one")), answer("toolu_2", text("two"))]

    native = messages_to_native([message("user", "?"), calls, message("tool", two), message("tool", one)])
    assert native[2]["content"] == wanted
    assert repaired(native) == [("result_moved", "$[2].content[0]"), ("result_moved", "$[3].content[0]")]
    native = messages_to_native([message("user", "?"), message("assistant", *calls.content, two, one, "so")])
    assert [each["content"] for each in native[2:]] == [wanted, [text("so")]]


def test_a_late_result_moves_behind_its_call() -> None:
    native = messages_to_native(
        [
            message("user", "?"),
            message("assistant", call()),
            message("user", "are you there?"),
            message("assistant", "a moment"),
            message("tool", result("toolu_1", "done")),
        ]
    )

    assert [each["role"] for each in native] == ["user", "assistant", "user", "assistant"]
    assert native[2]["content"] == [answer("toolu_1", text("done")), text("are you there?")]
    assert repaired(native) == [("result_moved", "$[4].content[0]")]


def test_a_result_that_stands_before_its_call_is_not_the_result_of_it() -> None:
    history = [message("user", "?"), message("tool", result("toolu_1", "one")), message("assistant", call())]
    native = messages_to_native(history)

    assert native[2]["content"] == [answer("toolu_1", *INTERRUPTED, is_error=True)]
    assert repaired(native) == [("result_dropped", "$[1].content[0]"), ("result_added", "$[2].content[0]")]
    with pytest.raises(ReplayError, match="'toolu_1' has no result"):
        messages_to_native(history, missing_results="refuse")


def test_an_id_that_comes_again_after_its_result_is_another_call() -> None:
    native = messages_to_native(
        [
            message("user", "?"),
            message("assistant", call("toolu_1", input={"n": 1})),
            message("tool", result("toolu_1", "one")),
            message("assistant", call("toolu_1", input={"n": 2})),
            message("user", "!"),
            message("tool", result("toolu_1", "two")),
        ]
    )

    assert [block["input"] for each in native[1::2] for block in each["content"]] == [{"n": 1}, {"n": 2}]
    assert native[2]["content"] == [answer("toolu_1", text("one"))]
    assert native[4]["content"] == [answer("toolu_1_2", text("two")), text("!")]
    assert repaired(native) == [("result_moved", "$[5].content[0]"), ("id_changed", "$[3].content[0]")]


def test_results_that_may_be_of_several_calls_are_nobodys() -> None:
    history = [message("user", "?"), message("assistant", call(), call()), message("tool", result("toolu_1", "one"))]
    native = messages_to_native(history)

    assert [block["content"] for block in native[2]["content"]] == [INTERRUPTED, INTERRUPTED]
    assert ("result_dropped", "$[2].content[0]") in repaired(native)


def test_calls_and_results_inside_one_message_become_rounds() -> None:
    native = messages_to_native(
        [
            message("user", "?"),
            message(
                "assistant",
                call("toolu_1"),
                result("toolu_1", "one"),
                "so far",
                call("toolu_2"),
                result("toolu_2", "two"),
                "that is all",
            ),
        ]
    )

    assert native[1:] == [
        {"role": "assistant", "content": [use("toolu_1")]},
        {"role": "user", "content": [answer("toolu_1", text("one"))]},
        {"role": "assistant", "content": [text("so far"), use("toolu_2")]},
        {"role": "user", "content": [answer("toolu_2", text("two"))]},
        {"role": "assistant", "content": [text("that is all")]},
    ]
    assert native.repairs == []


def test_a_missing_result_is_added() -> None:
    native = messages_to_native([message("user", "?"), message("assistant", call()), message("user", "never mind")])

    assert native[2]["content"] == [answer("toolu_1", *INTERRUPTED, is_error=True), text("never mind")]
    assert repaired(native) == [("result_added", "$[1].content[0]")]


def test_a_missing_result_may_be_refused() -> None:
    with pytest.raises(ReplayError, match="'toolu_1' has no result") as error:
        messages_to_native([message("user", "?"), message("assistant", call())], missing_results="refuse")
    assert error.value.path == "$[1].content[0]"


def test_a_result_without_call_stays_behind() -> None:
    native = messages_to_native([message("user", "?"), message("tool", result("toolu_9", "x")), message("user", "!")])

    assert native == [{"role": "user", "content": [text("?"), text("!")]}]
    assert repaired(native) == [("result_dropped", "$[1].content[0]")]


def test_what_waits_is_hidden_with_its_whole_batch() -> None:
    waits = result("toolu_1", "waiting", outcome="input_required", pending_input=AgPendingInput(request_state="secret"))
    thought = ReasoningBlock(text="both", opaque=AgOpaque(kind="signature", value="s"))
    paused = [
        message("user", "?"),
        message("assistant", thought, "wait", call("toolu_1"), call("toolu_2")),
        message("tool", waits),
        message("tool", result("toolu_2", "done")),
    ]

    for missing in ("add", "refuse", "refuse_last"):
        native = messages_to_native([*paused, message("user", "and?")], missing_results=missing)
        assert native == [{"role": "user", "content": [text("?"), text("and?")]}]
        assert repaired(native) == [("pending_dropped", "$[1]"), ("pending_dropped", "$[3].content[0]")]
    native = messages_to_native([*paused, message("tool", result("toolu_1", "at last"))])
    assert [block["type"] for block in native[1]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert native[2]["content"] == [answer("toolu_1", text("at last")), answer("toolu_2", text("done"))]
    assert "secret" not in str(native)


def test_what_people_are_asked_about_is_hidden_and_so_is_what_the_caller_waits_for() -> None:
    history = [message("user", "?"), message("assistant", call(), turn_id="t1"), message("user", "and?")]
    ask = AgPausedAsk(ask_id="k", kind="approval", tool_call_id="toolu_1")
    asked = [AgTurnRecord(turn_id="t1", thread_id="thread", asks=[ask])]

    hidden = [{"role": "user", "content": [text("?"), text("and?")]}]
    assert messages_to_native(history, turns=asked) == hidden
    assert messages_to_native(history, waiting=["toolu_1"]) == hidden
    assert len(messages_to_native(history)) == 3


def test_messages_of_nested_turns_are_of_another_conversation() -> None:
    turns = [AgTurnRecord(turn_id="t2", thread_id="thread", parent_turn_id="t1")]
    nested = [message("user", "inside", turn_id="t2"), message("assistant", call(), turn_id="t2")]

    assert messages_to_native([message("user", "?", turn_id="t1"), *nested], turns=turns) == [
        {"role": "user", "content": [text("?")]}
    ]


def test_a_call_that_an_app_made_is_for_no_model() -> None:
    shown = message("assistant", "see", call(ui_visibility=["app"]))
    native = messages_to_native([message("user", "?"), shown, message("tool", result("toolu_1", "private"))])

    assert native[1:] == [{"role": "assistant", "content": [text("see")]}]
    assert repaired(native) == [("app_only_dropped", "$[1].content[1]"), ("app_only_dropped", "$[2].content[0]")]


def test_the_first_terminal_result_counts() -> None:
    native = messages_to_native(
        [
            message("user", "?"),
            message("assistant", call()),
            message("tool", result("toolu_1", "half", preliminary=True)),
            message("tool", result("toolu_1", "whole")),
            message("tool", result("toolu_1", "late half", preliminary=True)),
            message("tool", result("toolu_1", "again")),
        ]
    )

    assert native[2]["content"] == [answer("toolu_1", text("whole"))]
    assert repaired(native) == [("result_dropped", f"$[{index}].content[0]") for index in (2, 4, 5)]


def test_half_of_a_result_is_none() -> None:
    history = [message("user", "?"), message("assistant", call())]
    history += [message("tool", result("toolu_1", words, preliminary=True)) for words in ("a", "a and b")]
    native = messages_to_native(history)

    assert native[2]["content"] == [answer("toolu_1", text("a and b"), *INTERRUPTED, is_error=True)]
    with pytest.raises(ReplayError, match="'toolu_1' has no result"):
        messages_to_native(history, missing_results="refuse_last")


def test_a_call_that_only_announces_a_result_out_of_sight_is_none() -> None:
    announced = call("toolu_1", "unknown", tool_metadata={"agjson/synthesized": True})
    native = messages_to_native([message("user", "?"), message("assistant", announced), message("tool", result())])

    assert native == [{"role": "user", "content": [text("?")]}]
