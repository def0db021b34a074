"""What the middleware of an agent tells: verdicts, denied calls, calls that ran as something else (spec §4, §2.1)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agjson.adapters.langgraph import messages_from_native, messages_to_native
from agjson.checker import check
from agjson.fold import reduce
from agjson.middleware.langchain import (
    AgJSONMiddleware,
    Verdict,
    agjson_stream,
    agjson_stream_sync,
    denied_result,
    tell_guardrail,
)
from agjson.types import AgSafety, AgStreamEvent, ResumeInput
from agjson.wire import answer_to, to_dict
from tests.support.langgraph_agents import Desk, ScriptedModel, calling, saying

CONFIG: Any = {"configurable": {"thread_id": "th"}}
HELLO: Any = {"messages": [("user", "hi")]}
SEND = ("call-1", "send", {"to": "ann"})


def agent(*middleware: Any, answers: Any = (), desk: Desk | None = None, tools: Any = None) -> Any:
    desk = desk or Desk()
    model = ScriptedModel(*(answers or (calling(SEND), saying("done"))))
    return create_agent(
        model, desk.tools() if tools is None else tools, middleware=middleware, checkpointer=InMemorySaver()
    )


def run(graph: Any, given: Any = HELLO, **settings: Any) -> list[AgStreamEvent]:
    """The events of a run, which break no rule."""
    events = list(agjson_stream_sync(graph, given, CONFIG, **settings))
    assert list(check(events)) == []
    return events


async def run_async(graph: Any) -> list[AgStreamEvent]:
    events = [event async for event in agjson_stream(graph, HELLO, CONFIG)]
    assert list(check(events)) == []
    return events


def verdicts(events: list[AgStreamEvent]) -> list[dict[str, Any]]:
    """The verdicts as the wire has them, without what every event has."""
    found = [to_dict(event) for event in events if event.type == "guardrail.result"]
    assert {each.pop("turnId") for each in found} <= {events[0].turn_id}
    return [{name: value for name, value in each.items() if name not in ("type", "seq")} for each in found]


def results(events: list[AgStreamEvent]) -> list[dict[str, Any]]:
    return [to_dict(event) for event in events if event.type == "tool.done"]


def stored(graph: Any) -> list[dict[str, Any]]:
    """The results in the graph's own state, read as a history."""
    messages = messages_from_native([each.model_dump() for each in graph.get_state(CONFIG).values["messages"]])
    return [to_dict(block) for message in messages for block in message.content if block.type == "tool-result"]


def no_secrets(messages: Any) -> Verdict:
    return Verdict(passed=all("secret" not in message.text for message in messages), reason="No secrets, please.")


async def no_secrets_async(messages: Any) -> Verdict:
    return no_secrets(messages)


def not_to_ann(call: Any) -> Verdict:
    return Verdict(passed=call["args"].get("to") != "ann", reason="Not to Ann.")


async def not_to_ann_async(call: Any) -> Verdict:
    return not_to_ann(call)


PASSED = {"passed": True, "guardrailName": "AgJSONMiddleware"}
BLOCKED = {"passed": False, "action": "block", "guardrailName": "AgJSONMiddleware"}


# Checks


def test_a_call_that_is_not_allowed_is_denied_and_does_not_run() -> None:
    desk = Desk()
    graph = agent(AgJSONMiddleware(check_call=not_to_ann), desk=desk)
    events = run(graph)
    assert desk.sent == []
    assert verdicts(events) == [{"target": "tool", **BLOCKED, "reason": "Not to Ann."}]
    [result] = results(events)
    assert (result["outcome"], result["content"]) == ("denied", [{"type": "text", "text": "Not to Ann."}])
    assert "errorText" not in result
    types = [event.type for event in events]
    assert types.index("guardrail.result") < types.index("tool.done")
    kept = reduce(events).result.turns[0].guardrails or ()
    assert [(each.target, each.passed, each.action) for each in kept] == [("tool", False, "block")]
    assert [each["outcome"] for each in stored(graph)] == ["denied"]


async def test_an_asynchronous_agent_takes_checks_of_both_kinds() -> None:
    for check_call in (not_to_ann, not_to_ann_async):
        desk = Desk()
        events = await run_async(agent(AgJSONMiddleware(check_call=check_call), desk=desk))
        assert desk.sent == []
        assert [each["outcome"] for each in results(events)] == ["denied"]
        assert verdicts(events) == [{"target": "tool", **BLOCKED, "reason": "Not to Ann."}]


def test_what_passes_is_told_and_runs() -> None:
    desk = Desk()
    graph = agent(
        AgJSONMiddleware(check_input=lambda _: True, check_output=lambda _: None, check_call=lambda _: True), desk=desk
    )
    events = run(graph)
    assert desk.sent == ["ann"]
    assert verdicts(events) == [{"target": target, **PASSED} for target in ("input", "tool", "input")]
    assert [each["outcome"] for each in results(events)] == ["ok"]


def test_an_input_that_does_not_pass_reaches_no_model() -> None:
    model = ScriptedModel(saying("never"))
    graph = create_agent(model, [], middleware=[AgJSONMiddleware(check_input=no_secrets, name="secrets")])
    events = list(agjson_stream_sync(graph, {"messages": [("user", "the secret")]}))
    assert model.asked == []
    assert verdicts(events) == [
        {"target": "input", **BLOCKED, "guardrailName": "secrets", "reason": "No secrets, please."}
    ]
    [message] = reduce(events).result.messages
    assert [block.text for block in message.content if block.type == "text"] == ["No secrets, please."]


@pytest.mark.parametrize("output", [no_secrets, no_secrets_async])
async def test_an_answer_that_does_not_pass_is_taken_back(output: Any) -> None:
    desk = Desk()
    graph = agent(AgJSONMiddleware(check_output=output), answers=[calling(SEND, text="the secret", id="a1")], desk=desk)
    events = await run_async(graph)
    assert desk.sent == []
    assert verdicts(events) == [{"target": "output", **BLOCKED, "reason": "No secrets, please."}]
    folded = [message for message in reduce(events).result.messages if message.role == "assistant"]
    assert [[to_dict(block) for block in message.content] for message in folded] == [
        [{"type": "text", "text": "No secrets, please."}]
    ]
    assert [message.text for message in graph.get_state(CONFIG).values["messages"]] == ["hi", "No secrets, please."]


def test_a_verdict_may_bring_ratings() -> None:
    found = Verdict(passed=False, safety=[AgSafety(category="violence", probability="HIGH", blocked=True)])
    events = run(agent(AgJSONMiddleware(check_call=lambda _: found)))
    [told] = verdicts(events)
    assert told["safety"] == [to_dict(found.safety[0])]
    assert results(events)[0]["content"] == [{"type": "text", "text": "This was not allowed."}]


def test_an_asynchronous_check_needs_an_asynchronous_run() -> None:
    events = run(agent(AgJSONMiddleware(check_input=no_secrets_async)))
    assert events[-1].type == "turn.error"
    assert "asynchronous check" in to_dict(events[-1])["message"]


@pytest.mark.parametrize("found", ["Not to Ann.", {"passed": False}, 1, Verdict(passed="no")])  # type: ignore[arg-type]
def test_a_check_that_returns_something_else_lets_nothing_pass(found: Any) -> None:
    desk = Desk()
    events = run(agent(AgJSONMiddleware(check_call=lambda _: found), desk=desk))
    assert desk.sent == []
    assert events[-1].type == "turn.error"
    assert "a check returns a Verdict, a bool or None" in to_dict(events[-1])["message"]


def test_checks_hold_where_nobody_reads_the_stream() -> None:
    desk = Desk()
    graph = agent(AgJSONMiddleware(check_call=not_to_ann), desk=desk)
    last = graph.invoke(HELLO, CONFIG)["messages"][-1]
    assert (desk.sent, last.text) == ([], "done")


def test_it_adds_no_node_and_no_state_to_the_agent() -> None:
    with_it, without = agent(AgJSONMiddleware(check_call=not_to_ann)), agent()
    assert with_it.nodes.keys() == without.nodes.keys()
    assert with_it.channels.keys() == without.channels.keys()


# Calls that ran as something else


def reviewed(desk: Desk, **more: Any) -> Any:
    gate: Any = {"send": {"allowed_decisions": ["approve", "edit", "reject", "respond"]}}
    return agent(HumanInTheLoopMiddleware(interrupt_on=gate, **more), AgJSONMiddleware(), desk=desk)


def answered(graph: Any, status: Any = "resolved", **fields: Any) -> list[AgStreamEvent]:
    asked = agjson_stream_sync(graph, HELLO, CONFIG)
    list(asked)
    (ask,) = asked.asks
    answer = ResumeInput(thread_id="th", turn_id="t2", answers=[answer_to(ask, status, **fields)])
    return list(agjson_stream_sync(graph, answer, CONFIG))


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_a_call_that_a_person_edited_names_what_ran(mode: str) -> None:
    desk = Desk()
    graph = reviewed(desk, interrupt_mode=mode)
    events = answered(graph, reply={"arguments": {"to": "bob"}})
    assert desk.sent == ["bob"]
    [result] = results(events)
    assert result["toolMetadata"] == {"langgraph/ranWith": {"name": "send", "arguments": {"to": "bob"}}}
    [kept] = stored(graph)
    assert kept["toolMetadata"] == result["toolMetadata"]
    assert kept["outcome"] == "ok"


@pytest.mark.parametrize(
    ("status", "fields", "outcome"),
    [
        ("resolved", {}, "ok"),
        ("declined", {"reason": "no"}, "denied"),
        ("resolved", {"reply": {"response": "x"}}, "ok"),
    ],
)
def test_other_decisions_name_nothing(status: Any, fields: Any, outcome: str) -> None:
    graph = reviewed(Desk())
    [result] = results(answered(graph, status, **fields))
    assert (result["outcome"], "toolMetadata" in result) == (outcome, False)
    assert [each["outcome"] for each in stored(graph)] == [outcome]


class Redirects(AgentMiddleware[Any, Any, Any]):
    """Sends to Joe whatever comes."""

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request.override(tool_call={**request.tool_call, "args": {"to": "joe"}}))


def test_a_call_that_other_middleware_changed_names_it_too() -> None:
    desk = Desk()
    [result] = results(run(agent(Redirects(), AgJSONMiddleware(), desk=desk)))
    assert desk.sent == ["joe"]
    assert result["toolMetadata"]["langgraph/ranWith"]["arguments"] == {"to": "joe"}


def test_a_tool_that_answers_with_a_command_names_it_as_well() -> None:
    @tool
    def send(to: str) -> Any:
        """Send."""
        return Command(update={"messages": [ToolMessage(content=f"to {to}", tool_call_id="call-1", id="r1")]})

    [result] = results(run(agent(Redirects(), AgJSONMiddleware(), tools=[send])))
    assert result["content"] == [{"type": "text", "text": "to joe"}]
    assert result["toolMetadata"]["langgraph/ranWith"] == {"name": "send", "arguments": {"to": "joe"}}


def test_no_provider_reads_what_is_said_of_a_call() -> None:
    graph = reviewed(Desk())
    answered(graph, reply={"arguments": {"to": "bob"}})
    history = messages_from_native([each.model_dump() for each in graph.get_state(CONFIG).values["messages"]])
    [result] = [message for message in messages_to_native(history) if message.type == "tool"]
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="claude-test", api_key="dummy")  # type: ignore[call-arg]
    sent = model._get_request_payload(
        [AIMessage("", tool_calls=[{"id": "call-1", "name": "send", "args": {}}]), result]
    )
    assert "ranWith" not in json.dumps(sent["messages"], default=str)


# Facts of people's own


class Guard(AgentMiddleware[Any, Any, Any]):
    """Middleware of somebody else's, which tells by the functions of the module."""

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        tell_guardrail("tool", False, action="rewrite", reason="too long", guardrail_name="length")
        return denied_result(request.tool_call, "Too long.")


def test_middleware_of_your_own_tells_by_two_functions() -> None:
    events = run(agent(Guard()))
    assert verdicts(events) == [
        {"target": "tool", "passed": False, "action": "rewrite", "reason": "too long", "guardrailName": "length"}
    ]
    assert [each["outcome"] for each in results(events)] == ["denied"]
    assert "ext.langgraph.custom" not in [event.type for event in events]


def test_a_verdict_of_a_nested_agent_belongs_to_its_turn() -> None:
    inner = create_agent(
        ScriptedModel(saying("fine")), [], name="inner", middleware=[AgJSONMiddleware(check_input=lambda _: True)]
    )

    @tool
    def send(to: str) -> str:
        """Ask another agent."""
        asked: Any = {"messages": [("user", to)]}
        return inner.invoke(asked)["messages"][-1].text

    events = run(agent(tools=[send]))
    [nested] = [event.turn_id for event in events if event.type == "subagent.start"]
    assert [event.turn_id for event in events if event.type == "guardrail.result"] == [nested]


@pytest.mark.parametrize(
    "written",
    [
        {"__agjson__": 1, "type": "guardrail.result", "target": "soul", "passed": True},
        {"__agjson__": 1, "type": "guardrail.result", "target": "input"},
        {"__agjson__": 2, "type": "guardrail.result", "target": "input", "passed": True},
        {"__agjson__": True, "type": "guardrail.result", "target": "input", "passed": True},
        {"__agjson__": 1, "type": "turn.done", "outcome": {"type": "success"}},
        {"__agjson__": 1},
    ],
)
def test_what_only_looks_like_a_verdict_is_carried_as_it_is(written: Any) -> None:
    class Writes(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            runtime.stream_writer(written)

    events = run(agent(Writes(), answers=[saying("hi")]))
    [carried] = [to_dict(event) for event in events if event.type == "ext.langgraph.custom"]
    whole = {**carried, **carried.get("shadowed", {})}
    assert {name: whole[name] for name in written} == written
    assert verdicts(events) == []


def test_outside_of_a_graph_nothing_is_told() -> None:
    tell_guardrail("input", True)


def test_without_langchain_the_error_names_the_command() -> None:
    code = (
        "import sys; sys.modules['langchain'] = None\n"
        "from agjson.middleware import langchain\n"
        "from agjson.errors import MissingExtraError\n"
        "assert 'langgraph' not in sys.modules\n"
        "try:\n    langchain.AgJSONMiddleware\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("langchain is not installed: pip install 'agjson[langchain]'\n", "")


def test_a_name_that_the_module_lacks_is_told_as_usual() -> None:
    from agjson.middleware import langchain

    assert not hasattr(langchain, "nothing")
