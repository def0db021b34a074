"""Tool results and answers of people as one request to the Messages API (spec §2.2, §3.1, §7)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agjson import AgMessage, ReplayError, ResumeInput, StartInput, ToolResultInput, ValidationError
from agjson.adapters.anthropic import AnthropicCall, approved_calls, to_native
from agjson.types import (
    AgChoice,
    AgHitlAnswer,
    AgPausedAsk,
    AgRunConfig,
    AgToolDef,
    AgToolResult,
    McpMessage,
    McpMessageParams,
    McpTextContent,
    OpenAiSendFollowUpMessage,
    OpenAiSetWidgetState,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from tests.support.anthropic_history import message, text


def call(id: str, name: str = "delete", **fields: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=id, name=name, input={"path": "/a"}, **fields)


HISTORY = [
    message("user", "clean up"),
    message("assistant", call("toolu_1"), call("toolu_2", "look")),
]


def returned(id: str = "toolu_1", words: str = "done", **fields: Any) -> AgToolResult:
    return AgToolResult(tool_call_id=id, content=[TextBlock(text=words)], **fields)


def native(id: str = "toolu_1", words: str = "done", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": [text(words)], **fields}


def with_results(*results: AgToolResult, history: list[AgMessage] = HISTORY, **options: Any) -> AnthropicCall:
    return to_native(ToolResultInput(thread_id="thread", turn_id="turn-2", results=results), history=history, **options)


def resumed(*answers: AgHitlAnswer, ui_actions: Any = None, **options: Any) -> AnthropicCall:
    options.setdefault("history", HISTORY)
    ag_input = ResumeInput(thread_id="thread", turn_id="turn-2", answers=answers, ui_actions=ui_actions)
    return to_native(ag_input, **options)


def results_of(found: AnthropicCall) -> list[dict[str, Any]]:
    last = found.params["messages"][-1]
    assert last["role"] == "user"
    return last["content"]


# Results of client tools


def test_results_answer_the_calls_that_wait() -> None:
    found = with_results(
        returned("toolu_2", "seen", ui_data={"x": 1}, side_data={"y": 2}),
        returned("toolu_1", outcome="error", error_text="boom"),
    )

    # In the order of the calls.
    assert results_of(found) == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("done"), text("boom")], "is_error": True},
        native("toolu_2", "seen"),
    ]
    assert found.repairs == []
    assert found.unsupported == []


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([returned("toolu_9")], "no call 'toolu_9'"),
        ([returned("toolu_1"), returned("toolu_1")], "has a result already"),
        ([returned("toolu_1", outcome="input_required")], "still waits"),
        ([returned("srvtoolu_1")], "the provider runs"),
        ([returned("toolu_0")], "has a result already"),
    ],
)
def test_a_result_that_no_call_waits_for_is_refused(results: list[AgToolResult], words: str) -> None:
    history = [
        message("user", "?"),
        message("assistant", call("toolu_0")),
        message("tool", ToolResultBlock(tool_call_id="toolu_0", content=[])),
        message("assistant", call("srvtoolu_1", "web_search", provider_executed=True), call("toolu_1")),
    ]
    with pytest.raises(ReplayError, match=words) as error:
        with_results(*results, history=history)
    assert error.value.path == f"$.results[{len(results) - 1}].toolCallId"


def test_a_batch_goes_whole_or_not_at_all() -> None:
    with pytest.raises(ReplayError, match="'toolu_2' has no result"):
        with_results(returned("toolu_1"))

    found = with_results(returned("toolu_1"), missing_results="add")
    assert [block["tool_use_id"] for block in results_of(found)] == ["toolu_1", "toolu_2"]
    assert results_of(found)[1]["is_error"] is True


def test_a_call_that_the_conversation_went_on_without_holds_up_no_result() -> None:
    history = [
        message("user", "?"),
        message("assistant", call("toolu_1")),
        message("user", "never mind"),
        message("assistant", call("toolu_2"), call("toolu_3")),
    ]
    found = with_results(returned("toolu_2"), returned("toolu_3"), history=history)
    assert found.params["messages"][2]["content"][0]["is_error"] is True
    assert results_of(found) == [native("toolu_2"), native("toolu_3")]
    with pytest.raises(ReplayError, match="'toolu_3' has no result"):
        with_results(returned("toolu_2"), history=history)
    with pytest.raises(ReplayError, match="'toolu_1' has no result"):
        with_results(returned("toolu_2"), returned("toolu_3"), history=history, missing_results="refuse")


def test_a_placeholder_of_the_pause_does_not_count_as_a_result() -> None:
    waits = ToolResultBlock(tool_call_id="toolu_1", content=[], outcome="input_required")
    found = with_results(returned("toolu_1"), returned("toolu_2"), history=[*HISTORY, message("tool", waits)])

    assert results_of(found) == [native("toolu_1"), native("toolu_2")]


def test_a_batch_that_still_waits_takes_no_result_alone() -> None:
    waits = [ToolResultBlock(tool_call_id=id, content=[], outcome="input_required") for id in ("toolu_1", "toolu_2")]
    history = [*HISTORY, *(message("tool", each) for each in waits)]
    for missing in ("add", "refuse_last"):
        with pytest.raises(ReplayError, match="'toolu_2' still waits") as error:
            with_results(returned("toolu_1"), history=history, missing_results=missing)
        assert error.value.path == "$[1].content[1]"
    # One that was left behind stays hidden, and holds up nobody.
    found = with_results(
        returned("toolu_3"), history=[*history, message("user", "!"), message("assistant", call("toolu_3"))]
    )
    assert [each["role"] for each in found.params["messages"]] == ["user", "assistant", "user"]
    assert results_of(found) == [native("toolu_3")]


def test_a_result_goes_to_the_call_of_its_id_that_is_open() -> None:
    history = [
        message("user", "?"),
        message("assistant", call("toolu_1")),
        message("tool", ToolResultBlock(tool_call_id="toolu_1", content=[TextBlock(text="before")])),
        message("assistant", call("toolu_1")),
    ]
    found = with_results(returned("toolu_1"), history=history)

    assert found.params["messages"][2]["content"] == [native("toolu_1", "before")]
    assert results_of(found) == [native("toolu_1_2")]


def test_a_start_leaves_out_what_people_are_still_asked_about() -> None:
    start = StartInput(thread_id="thread", turn_id="turn-2", messages=[message("user", "What time is it?")])
    found = to_native(start, history=HISTORY, asks=[approval()])

    assert found.params["messages"] == [{"role": "user", "content": [text("clean up"), text("What time is it?")]}]
    assert [block["is_error"] for block in to_native(start, history=HISTORY).params["messages"][2]["content"][:2]] == [
        True,
        True,
    ]


def test_members_that_one_result_at_once_cannot_honour_are_named() -> None:
    found = with_results(returned("toolu_1", will_continue=True, scheduling="silent"), returned("toolu_2"))

    assert found.unsupported == ["results[0].willContinue", "results[0].scheduling"]


# Approvals


def approval(id: str = "toolu_1", **fields: Any) -> AgPausedAsk:
    return AgPausedAsk(ask_id=f"turn-1:{id}", kind="approval", tool_call_id=id, **fields)


def answered(id: str = "toolu_1", status: Any = "resolved", **fields: Any) -> AgHitlAnswer:
    return AgHitlAnswer(ask_id=f"turn-1:{id}", status=status, **fields)


@pytest.mark.parametrize("asks", [[approval()], []])
@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        ("declined", "Not today.", "The call was denied. Not today."),
        ("declined", None, "The call was denied."),
        ("cancelled", "Later.", "The request was dismissed. Later."),
    ],
)
def test_a_denial_is_the_result_of_its_call(
    asks: list[AgPausedAsk], status: str, reason: str | None, words: str
) -> None:
    found = resumed(answered("toolu_1", status, reason=reason), asks=asks, results=[returned("toolu_2", "seen")])

    assert results_of(found) == [native("toolu_1", words, is_error=True), native("toolu_2", "seen")]


def test_an_allowed_call_must_have_been_run() -> None:
    with pytest.raises(ReplayError, match="'toolu_1' was allowed: run it"):
        resumed(answered("toolu_1"), asks=[approval()], results=[returned("toolu_2")])

    found = resumed(answered("toolu_1"), asks=[approval()], results=[returned("toolu_1"), returned("toolu_2")])
    assert results_of(found) == [native("toolu_1"), native("toolu_2")]
    # What the model asked for stays as it was, whatever ran.
    assert found.params["messages"][1]["content"][0]["input"] == {"path": "/a"}


def test_the_calls_that_may_run() -> None:
    ag_input = ResumeInput(
        thread_id="thread", turn_id="turn-2", answers=[answered("toolu_1"), answered("toolu_2", "declined")]
    )

    assert approved_calls(ag_input, history=HISTORY, asks=[approval(), approval("toolu_2")]) == [call("toolu_1")]


def test_changed_arguments_count_for_tools_that_allow_it_alone() -> None:
    ag_input = ResumeInput(thread_id="thread", turn_id="turn-2", answers=[answered(reply={"path": "/b"})])

    with pytest.raises(ReplayError, match="'delete' may not be changed") as error:
        approved_calls(ag_input, history=HISTORY, asks=[approval()])
    assert error.value.path == "$.answers[0].reply"
    (edited,) = approved_calls(ag_input, history=HISTORY, asks=[approval()], edits=["delete"])
    assert (edited.tool_call_id, edited.input) == ("toolu_1", {"path": "/b"})

    for same in ({"path": "/a"}, True, None):
        ag_input = ResumeInput(thread_id="thread", turn_id="turn-2", answers=[answered(reply=same)])
        assert approved_calls(ag_input, history=HISTORY, asks=[approval()]) == [call("toolu_1")]


@pytest.mark.parametrize("asks", [[approval()], []])
def test_an_answer_to_no_open_ask_is_refused(asks: list[AgPausedAsk]) -> None:
    for stranger in (answered("toolu_9"), answered("toolu_9", "declined")):
        with pytest.raises(ReplayError, match="no ask") as error:
            resumed(stranger, asks=asks)
        assert error.value.path == "$.answers[0].askId"


@pytest.mark.parametrize("status", ["resolved", "declined"])
def test_an_ask_is_answered_once(status: str) -> None:
    history = [*HISTORY, message("tool", ToolResultBlock(tool_call_id="toolu_1", content=[]))]
    with pytest.raises(ReplayError, match="has a result already"):
        resumed(answered("toolu_1", status), history=history, asks=[approval()])


def test_an_answer_must_fit_its_ask() -> None:
    ask = approval(token="t-1")
    with pytest.raises(ValidationError, match="token"):
        resumed(answered("toolu_1", token="forged"), asks=[ask])

    found = resumed(answered("toolu_1", token="t-1"), asks=[ask], results=[returned("toolu_1"), returned("toolu_2")])
    assert "t-1" not in str(found.params)


# Other asks


def asked(kind: Any, **fields: Any) -> AgPausedAsk:
    return AgPausedAsk(ask_id="turn-1:toolu_1", kind=kind, tool_call_id="toolu_1", **fields)


@pytest.mark.parametrize(
    ("ask", "reply", "words"),
    [
        (asked("text"), "Zürich", "Zürich"),
        (asked("choice", choices=[AgChoice(id="a", label="The first")]), "a", "The first"),
        (asked("choice", choices=[AgChoice(id="a", label="The first")]), "b", "b"),
        (asked("form"), {"city": "Zürich"}, '{"city":"Zürich"}'),
        (asked("form"), None, "null"),
    ],
)
def test_a_reply_is_the_result_of_the_call_that_asked(ask: AgPausedAsk, reply: Any, words: str) -> None:
    found = resumed(answered(reply=reply), asks=[ask], results=[returned("toolu_2")])

    assert results_of(found) == [native("toolu_1", words), native("toolu_2")]


def test_a_reply_to_an_ask_without_call_is_what_the_user_says() -> None:
    history = [message("user", "book"), message("assistant", "Where to?")]
    ask = AgPausedAsk(ask_id="turn-1:where", kind="text")

    found = resumed(AgHitlAnswer(ask_id="turn-1:where", status="resolved", reply="Bern"), history=history, asks=[ask])
    assert results_of(found) == [text("Bern")]
    found = resumed(
        AgHitlAnswer(ask_id="turn-1:where", status="declined", reason="No idea."), history=history, asks=[ask]
    )
    assert results_of(found) == [text("I decline. No idea.")]


# Surfaces


def test_what_a_surface_says_for_the_user_is_said_and_the_rest_is_named() -> None:
    history = [message("user", "chart"), message("assistant", "here")]
    actions = [
        OpenAiSetWidgetState(surface_id="s", widget_state={}),
        McpMessage(surface_id="s", params=McpMessageParams(content=McpTextContent(text="zoom in"))),
        OpenAiSendFollowUpMessage(surface_id="s", prompt="and again"),
    ]
    found = resumed(history=history, ui_actions=actions)

    assert results_of(found) == [text("zoom in"), text("and again")]
    assert found.unsupported == ["uiActions[0]"]


# The settings of the start that a turn goes on from


RUN = AgRunConfig(
    system="Be short.",
    max_tokens=99,
    temperature=0.5,
    tools=[AgToolDef(name="look", input_schema={"type": "object"})],
    tool_choice="required",
    context=[TextBlock(text="Today is Monday.")],
)


def test_results_and_answers_go_on_with_the_settings_of_their_start() -> None:
    both = (returned("toolu_1"), returned("toolu_2"))
    declined = [AgHitlAnswer(ask_id=f"t:{id}", status="declined") for id in ("toolu_1", "toolu_2")]
    for found in (with_results(*both, run=RUN), resumed(*declined, run=RUN)):
        assert (found.params["max_tokens"], found.params["system"]) == (99, [text("Be short.")])
        assert [tool["name"] for tool in found.params["tools"]] == ["look"]
        # Forced once more, the model could never answer.
        assert "tool_choice" not in found.params
        assert found.params["messages"][0]["content"] == [text("Today is Monday."), text("clean up")]
        assert [each["role"] for each in found.params["messages"]] == ["user", "assistant", "user"]


def test_a_start_runs_as_it_says_itself() -> None:
    own = AgRunConfig(max_tokens=7)
    start = StartInput(thread_id="thread", turn_id="t", messages=[message("user", "hi")], run=own)
    bare = StartInput(thread_id="thread", turn_id="t", messages=[message("user", "hi")])

    assert to_native(start, run=RUN).params["max_tokens"] == 7
    found = to_native(bare, run=RUN).params
    assert (found["max_tokens"], found["tool_choice"]["type"]) == (99, "any")
    assert found["messages"][0]["content"] == [text("Today is Monday."), text("hi")]


def test_the_context_stays_before_the_whole_turn_of_the_last_words() -> None:
    history = [
        message("user", "before", turn_id="t1"),
        message("assistant", "yes", turn_id="t1"),
        message("user", "clean", turn_id="t2"),
        message("user", "up", turn_id="t2"),
        message("assistant", call("toolu_1"), turn_id="t2"),
    ]
    places = []
    for turns in (True, False):
        stored = history if turns else [replace(each, turn_id=None) for each in history]
        found = with_results(returned("toolu_1"), history=stored, run=RUN).params["messages"]
        places.append([part.get("text") for part in found[2]["content"]])

    assert places == [["Today is Monday.", "clean", "up"]] * 2


def test_without_words_of_the_user_the_context_comes_after_what_there_is() -> None:
    found = with_results(returned("toolu_1"), history=[message("assistant", call("toolu_1"))], run=RUN)

    assert [each["role"] for each in found.params["messages"]][-2:] == ["assistant", "user"]
    assert results_of(found) == [native("toolu_1"), text("Today is Monday.")]
