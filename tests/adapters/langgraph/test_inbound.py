"""An input as one run of a graph; nothing is run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from agjson.adapters.langgraph.inbound import to_native
from agjson.errors import MissingExtraError, ReplayError, ValidationError
from agjson.jsonable import jsonable
from agjson.types import (
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    AgRunConfig,
    AgToolResult,
    McpMessage,
    McpMessageParams,
    McpTextContent,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolCallBlock,
    ToolResultInput,
)
from tests.support.corpus import ROOT
from tests.support.scripted import said, start

ID = "0123456789abcdef0123456789abcdef"
HANDLES: Any = {
    "langgraph/threadId": "th",
    "langgraph/checkpointId": "1f1e-1",
    "langgraph/checkpointNs": "",
    "langgraph/interruptId": ID,
}


def ask(**fields: Any) -> AgPausedAsk:
    metadata = {"langgraph/value": "Which?", **HANDLES}
    return AgPausedAsk(ask_id=fields.pop("id", ID), kind="text", metadata=metadata, **fields)


def resume(*answers: AgHitlAnswer, **fields: Any) -> ResumeInput:
    return ResumeInput(thread_id="th", turn_id="r", answers=list(answers), **fields)


def reply(value: Any, id: str = ID) -> AgHitlAnswer:
    return AgHitlAnswer(ask_id=id, status="resolved", reply=value)


def result(id: str = "c1", **fields: Any) -> ToolResultInput:
    given = AgToolResult(tool_call_id=id, content=fields.pop("content", [TextBlock(text="sunny")]), **fields)
    return ToolResultInput(thread_id="th", turn_id="r", results=[given])


# Start


def test_a_start_is_a_plain_input() -> None:
    call = to_native(start(said("hi", "u1"), said("there", "u2")))
    given = call.graph_input()
    assert list(given) == ["messages"]
    assert [(type(each), each.id, each.text) for each in given["messages"]] == [
        (HumanMessage, "u1", "hi"),
        (HumanMessage, "u2", "there"),
    ]
    assert call.config == {"configurable": {"thread_id": "th"}, "metadata": {"agjson/turnId": "t"}}
    assert (call.context, call.unsupported, call.repairs) == (None, [], [])


def test_the_history_comes_first_for_a_graph_without_memory() -> None:
    history = [said("hello", "u0"), AgMessage(id="a0", role="assistant", content=[TextBlock(text="Hi.")])]
    call = to_native(start(said("and?", "u1")), history=history)
    assert [message.id for message in call.graph_input()["messages"]] == ["u0", "a0", "u1"]


def test_messages_under_another_key_and_state_beside_them() -> None:
    call = to_native(
        start(said("hi", "u1"), state={"topic": "weather", "secret": 1, "chat": []}),
        input_key="chat",
        input_keys=("chat", "topic"),
    )
    given = call.graph_input()
    assert list(given) == ["chat", "topic"]
    assert given["topic"] == "weather"
    assert call.unsupported == ["state.secret", "state.chat"]


def test_settings_of_the_run() -> None:
    config = AgRunConfig(model="m1", temperature=0.2, stop_sequences=["."])
    call = to_native(
        start(run=config),
        context={"user": "u"},
        context_fields=("model",),
        configurable=("temperature",),
        config={"recursion_limit": 9},
    )
    assert call.context == {"user": "u", "model": "m1"}
    assert call.config["configurable"] == {"thread_id": "th", "temperature": 0.2}
    assert call.config["recursion_limit"] == 9
    assert call.unsupported == ["run.stopSequences"]


def test_plain_data_is_read_and_checked() -> None:
    message = {"id": "u1", "role": "user", "content": [{"type": "text", "text": "hi"}]}
    plain = {"kind": "start", "protocol": "agjson", "version": "1.0.0", "threadId": "th", "turnId": "t"}
    assert to_native({**plain, "messages": [message]}).graph_input()["messages"][0].text == "hi"
    with pytest.raises(ValidationError):
        to_native({"threadId": "th"})


# Resume


def test_a_resume_is_a_map_also_for_one_answer() -> None:
    command = to_native(resume(reply("blue")), asks=[ask()]).graph_input()
    assert isinstance(command, Command)
    assert (command.resume, command.update) == ({ID: "blue"}, None)


def test_state_goes_with_the_answers() -> None:
    call = to_native(resume(reply("blue"), state={"topic": "b", "old": 1}), asks=[ask()], shared_state={"old": 1})
    command = call.graph_input()
    assert (command.resume, command.update) == ({ID: "blue"}, {"topic": "b"})


def test_answers_to_nothing_are_refused() -> None:
    with pytest.raises(ReplayError) as refused:
        to_native(resume(reply("blue")))
    assert refused.value.path == "$.answers[0].askId"
    with pytest.raises(ReplayError, match="has none"):
        to_native(ResumeInput(thread_id="th", turn_id="r"), asks=[ask()])


def test_a_static_breakpoint_is_passed_without_an_answer() -> None:
    stop = AgPausedAsk(ask_id="static:1f1e-1", kind="approval")
    call = to_native(resume(AgHitlAnswer(ask_id=stop.ask_id, status="resolved")), asks=[stop])
    assert call.graph_input() is None
    with pytest.raises(ReplayError, match="nothing to run"):
        to_native(resume(AgHitlAnswer(ask_id=stop.ask_id, status="declined")), asks=[stop])
    with pytest.raises(ReplayError) as refused:
        to_native(resume(AgHitlAnswer(ask_id=stop.ask_id, status="resolved", reply="maybe")), asks=[stop])
    assert refused.value.path == "$.answers[0].reply"
    changed = to_native(resume(AgHitlAnswer(ask_id=stop.ask_id, status="resolved"), state={"topic": "b"}), asks=[stop])
    assert changed.command == {"update": {"topic": "b"}}


def test_what_a_surface_says_is_a_message_where_nothing_is_answered() -> None:
    action = McpMessage(surface_id="s1", params=McpMessageParams(content=McpTextContent(text="more")))
    call = to_native(ResumeInput(thread_id="th", turn_id="r", ui_actions=[action]))
    assert [message.text for message in call.graph_input()["messages"]] == ["more"]
    with pytest.raises(ReplayError, match="inside a step"):
        to_native(resume(reply("blue"), ui_actions=[action]), asks=[ask()])


# Results of client tools


def test_a_result_is_a_tool_message() -> None:
    call = to_native(result())
    (message,) = call.graph_input()["messages"]
    assert isinstance(message, ToolMessage)
    assert (message.id, message.tool_call_id, message.text) == ("c1:result", "c1", "sunny")
    assert (message.status, message.name) == ("success", None)


def test_a_failed_result_says_so() -> None:
    failed = to_native(result(outcome="error", error_text="no such city", content=[]))
    (message,) = failed.graph_input()["messages"]
    assert message.status == "error"
    assert "no such city" in message.text


def test_a_result_beside_its_history() -> None:
    block = ToolCallBlock(tool_call_id="c1", name="weather", input={"city": "Bonn"})
    history = [said("?", "u0"), AgMessage(id="a0", role="assistant", content=[block])]
    call = to_native(result(), history=history)
    messages = call.graph_input()["messages"]
    assert [type(message) for message in messages] == [HumanMessage, AIMessage, ToolMessage]
    assert messages[1].tool_calls[0]["args"] == {"city": "Bonn"}


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({}, "sunny"),
        ({"structured_content": {"sky": "clear"}}, {"sky": "clear"}),
        ({"content": []}, ""),
        ({"outcome": "error", "error_text": "no"}, {"status": "error", "reason": "no"}),
        ({"outcome": "denied"}, {"status": "denied", "reason": "sunny"}),
    ],
)
def test_a_result_answers_the_interrupt_of_its_call(fields: Any, value: Any) -> None:
    call = to_native(result(**fields), asks=[ask(tool_call_id="c1")])
    assert call.graph_input().resume == {ID: value}
    assert call.command == {"resume": {ID: value}}


def test_a_result_does_not_approve_a_call() -> None:
    value = {"action_requests": [{"name": "send", "args": {}}], "review_configs": []}
    gate = AgPausedAsk(ask_id=f"{ID}#0", kind="approval", tool_call_id="c1", metadata={"langgraph/value": value})
    with pytest.raises(ReplayError) as refused:
        to_native(result(), asks=[gate])
    assert refused.value.path == "$.results[0].toolCallId"


# Native handles


@pytest.mark.parametrize(
    "handle",
    [
        {"langgraph/threadId": "another"},
        {"langgraph/checkpointId": "1f1e-2"},
        {"langgraph/checkpointNs": "tools:1"},
        {"langgraph/threadId": 7},
        {"langgraph/checkpointId": {"$ne": None}},
    ],
)
def test_a_handle_that_was_not_issued_is_refused(handle: dict[str, Any]) -> None:
    for given in (start(metadata=handle), resume(reply("x"), metadata=handle)):
        with pytest.raises(ReplayError) as refused:
            to_native(given, asks=[ask()])
        assert refused.value.path == f"$.metadata['{next(iter(handle))}']"


def test_the_handles_that_were_issued_are_honoured() -> None:
    handles = {key: value for key, value in HANDLES.items() if key != "langgraph/interruptId"}
    call = to_native(start(metadata=handles), asks=[ask()])
    assert call.config["configurable"] == {"thread_id": "th", "checkpoint_ns": "", "checkpoint_id": "1f1e-1"}
    answered = to_native(resume(reply("x"), metadata=handles), asks=[ask()])
    assert answered.config["configurable"] == {"thread_id": "th"}


def test_without_asks_the_own_thread_alone_is_issued() -> None:
    assert to_native(start(metadata={"langgraph/threadId": "th"})).config["configurable"] == {"thread_id": "th"}
    with pytest.raises(ReplayError):
        to_native(start(metadata={"langgraph/checkpointId": "1f1e-1"}))


def test_a_start_input_is_not_changed() -> None:
    given = StartInput(thread_id="th", turn_id="t", messages=[said("hi")], state={"a": 1})
    config: dict[str, Any] = {"configurable": {"user": 1}}
    to_native(given, config=config, context_fields=("model",))
    assert config == {"configurable": {"user": 1}}


# For people, and without the framework


def test_a_call_as_plain_data() -> None:
    hidden = AgMessage(id="n1", role="notice", content=[TextBlock(text="not for models")])
    plain: Any = jsonable(to_native(start(said("hi", "u1"), state={"topic": "a"}), history=[hidden]))
    assert "not for models" not in json.dumps(plain)
    assert plain["input"]["topic"] == "a"
    assert [(message["type"], message["content"]) for message in plain["input"]["messages"]] == [("human", "hi")]
    answered: Any = jsonable(to_native(resume(reply("blue"), state={"topic": "b"}), asks=[ask()]))
    assert answered["command"] == {"resume": {ID: "blue"}, "update": {"topic": "b"}}
    assert answered["input"] is None


def test_without_the_framework_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    call = to_native(resume(reply("blue")), asks=[ask()])
    monkeypatch.setitem(sys.modules, "langgraph.types", None)
    with pytest.raises(MissingExtraError, match=r"agjson\[langgraph\]"):
        call.graph_input()
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)
    with pytest.raises(MissingExtraError, match=r"agjson\[langgraph\]"):
        to_native(start(said("hi")))


def test_neither_framework_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys; import agjson.adapters.langgraph.agent, agjson.adapters.langgraph.inbound; "
        "print([name for name in ('langgraph', 'langchain', 'langchain_core', 'pydantic') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
