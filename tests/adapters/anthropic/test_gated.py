"""Tools of the loop that run only when a person has agreed, with the provider's real clients."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic import Anthropic

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.agents import UnknownAskError
from agjson.approvals import AnswerError, Grant, Keys, Ledger, MemoryLedgerStore, Policy, SpentAskError, without_tokens
from agjson.types import (
    AgClientCapabilities,
    AgFrontendTool,
    AgGrantMode,
    AgPausedAsk,
    AgRunConfig,
    AgToolDef,
    PausedOutcome,
    ResumeInput,
    ToolDone,
    TurnDone,
)
from agjson.wire import answer_to
from tests.support.anthropic_agents import HELLO, Tools, Way, call, client, ways
from tests.support.anthropic_wire import START, end
from tests.support.messages_server import Answer, MessagesServer, Native
from tests.support.scripted import Session, results, said, start, terminal


def division(id: str, a: int, b: int, index: int = 0) -> list[Native]:
    return call(id, "divide", json.dumps({"a": a, "b": b}), index=index)


TWO = Answer([START, *division("c1", 6, 3), *division("c2", 8, 2, 1), *end("tool_use")])
WEATHER_TOOL = AgToolDef(name="weather", input_schema={"type": "object"})
ONE = Answer([START, *division("c1", 6, 3), *end("tool_use")])


class Client(Session):
    def verify(self) -> None:
        self.streams, given = [[without_tokens(each) for each in stream] for stream in self.streams], self.streams
        super().verify()
        self.streams = given


def session(server: MessagesServer, kind: Any, tools: Tools, **settings: Any) -> Client:
    settings = {"gated": ["divide"], **settings}
    return Client(AnthropicAgent(client(server, kind), model="claude-test", tools=[tools.of(kind)], **settings))


def policy(**fields: Any) -> Ledger:
    return Ledger(MemoryLedgerStore(), Policy(**{"keys": Keys({"k": b"k" * 32}), **fields}))


def asks(events: list[Any]) -> list[AgPausedAsk]:
    ended = events[-1]
    assert isinstance(ended, TurnDone) and isinstance(ended.outcome, PausedOutcome), events[-1]
    return list(ended.outcome.asks)


def resume(*answers: Any, turn: str = "r") -> ResumeInput:
    return ResumeInput(thread_id="th", turn_id=turn, answers=list(answers))


def sent(server: MessagesServer, request: int = -1) -> list[Any]:
    """The last message of a request: the results that the model gets."""
    return server.requests[request].body["messages"][-1]["content"]


@pytest.mark.parametrize("kept", [True, False], ids=["ledger", "no ledger"])
@ways
def test_an_approved_call_runs_once_and_the_loop_goes_on(kind: Any, way: Way, kept: bool) -> None:
    tools = Tools()
    with MessagesServer([ONE, HELLO]) as server:
        client = session(server, kind, tools, approvals=policy() if kept else None)
        (ask,) = asks(way(client, start()))
        assert (ask.kind, ask.tool_call_id, ask.token is not None, tools.ran) == ("approval", "c1", kept, [])
        events = way(client, resume(answer_to(ask)))
        assert (terminal(events)["finishReason"], tools.ran) == ("stop", [(6, 3)])
        assert [(each.tool_call_id, each.outcome) for each in events if isinstance(each, ToolDone)] == [("c1", "ok")]
        with pytest.raises(UnknownAskError):
            way(client, resume(answer_to(ask), turn="again"))
        client.streams.pop()
    assert [(each["tool_use_id"], each["content"]) for each in sent(server)] == [("c1", "2")]
    assert len(tools.ran) == 1
    client.verify()


@ways
def test_a_refusal_reaches_the_model_and_runs_nothing(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([TWO, HELLO]) as server:
        client = session(server, kind, tools, approvals=policy())
        first, second = asks(way(client, start()))
        assert asks(way(client, resume(answer_to(second, "declined", reason="too big"))))[0].token == first.token
        assert (tools.ran, len(server.requests)) == ([], 1)
        events = way(client, resume(answer_to(first), turn="r2"))
    assert tools.ran == [(6, 3)]
    done = [(each.tool_call_id, each.outcome) for each in events if isinstance(each, ToolDone)]
    assert done == [("c1", "ok"), ("c2", "denied")]
    by_call = {each["tool_use_id"]: each for each in sent(server)}
    assert by_call["c2"]["is_error"] is True and "too big" in by_call["c2"]["content"][0]["text"]
    client.verify()


@ways
def test_safe_siblings_wait_for_the_decision(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([TWO, HELLO]) as server:
        gated = lambda request: request.arguments["a"] == 6  # noqa: E731
        client = session(server, kind, tools, approvals=policy(), gated=gated)
        (ask,) = asks(way(client, start()))
        assert (ask.tool_call_id, tools.ran) == ("c1", [])
        way(client, resume(answer_to(ask, "cancelled")))
    assert tools.ran == [(8, 2)]
    client.verify()


@ways
def test_a_failing_tool_is_an_error_result(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([Answer([START, *division("c1", 1, 0), *end("tool_use")]), HELLO]) as server:
        client = session(server, kind, tools, approvals=policy())
        (ask,) = asks(way(client, start()))
        events = way(client, resume(answer_to(ask)))
    (done,) = [each for each in events if isinstance(each, ToolDone)]
    assert (done.outcome, sent(server)[0]["is_error"]) == ("error", True)
    assert "b must not be 0" in json.dumps(sent(server))
    client.verify()


@ways
def test_edited_arguments_run_where_the_policy_allows_them(kind: Any, way: Way) -> None:
    tools = Tools()
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    with MessagesServer([ONE, HELLO]) as server:
        client = session(server, kind, tools, approvals=policy(editable={"divide": schema}))
        (ask,) = asks(way(client, start()))
        way(client, resume(answer_to(ask, reply={"arguments": {"a": 9, "b": 3}})))
    assert tools.ran == [(9, 3)]


@ways
def test_a_grant_lets_later_calls_run_without_an_ask(kind: Any, way: Way) -> None:
    tools = Tools()
    ledger = policy(grants={"always": Grant(arguments="any")})
    modes = [AgGrantMode(id="once"), AgGrantMode(id="always")]
    with MessagesServer([ONE, TWO, HELLO]) as server:
        client = session(server, kind, tools, approvals=ledger, grant_modes=modes)
        (ask,) = asks(way(client, start()))
        events = way(client, resume(answer_to(ask, grant_mode_id="always")))
    assert (terminal(events)["finishReason"], tools.ran) == ("stop", [(6, 3), (6, 3), (8, 2)])
    client.verify()


@ways
def test_the_loop_pauses_again_for_the_next_gated_call(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([ONE, ONE, HELLO]) as server:
        client = session(server, kind, tools, approvals=policy())
        (ask,) = asks(way(client, start()))
        (again,) = asks(way(client, resume(answer_to(ask))))
        assert (again.tool_call_id, tools.ran) == ("c1#2", [(6, 3)])
        with pytest.raises(SpentAskError):
            way(client, resume(answer_to(ask), turn="x"))
        client.streams.pop()
        way(client, resume(answer_to(again), turn="r2"))
    assert tools.ran == [(6, 3), (6, 3)]
    client.verify()


@ways
def test_gated_calls_and_calls_of_the_client_wait_for_each_other(kind: Any, way: Way) -> None:
    tools = Tools()
    both = Answer([START, *division("c1", 6, 3), *call("c2", "pick", "{}", index=1), *end("tool_use")])
    can = AgClientCapabilities(frontend_tools=[AgFrontendTool(name="pick", input_schema={"type": "object"})])
    with MessagesServer([both, HELLO]) as server:
        client = session(server, kind, tools, approvals=policy())
        (ask,) = asks(way(client, start(capabilities=can)))
        assert client.thread().pending.open_calls == ["c2"]
        way(client, resume(answer_to(ask)))
        assert (tools.ran, len(server.requests)) == ([], 1)
        assert terminal(way(client, results("c2", turn="r2")))["finishReason"] == "stop"
    assert tools.ran == [(6, 3)]
    assert [each["tool_use_id"] for each in sent(server)] == ["c1", "c2"]
    client.verify()


def test_a_new_message_leaves_the_asks_behind_where_it_may() -> None:
    tools = Tools()
    with MessagesServer([ONE, HELLO]) as server:
        session_ = session(server, Anthropic, tools, approvals=policy(), on_paused="discard")
        (ask,) = asks(session_.run_sync(start()))
        session_.run_sync(start(said("never mind", "u2"), turn="t2"))
        with pytest.raises(UnknownAskError):
            session_.run_sync(resume(answer_to(ask)))
        session_.streams.pop()
    assert tools.ran == []
    session_.verify()


def test_a_gate_for_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="gated names tools that this agent does not run: 'divine'"):
        AnthropicAgent(Anthropic(api_key="k"), model="m", tools=[Tools().of(Anthropic)], gated=["divide", "divine"])


@ways
def test_no_gated_tool_runs_while_its_reply_is_still_streamed(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([ONE]) as server:
        client = session(server, kind, tools, approvals=policy(), defaults={"run_tools_eagerly": True})
        asks(way(client, start()))
    assert tools.ran == []


@ways
@pytest.mark.parametrize("other", ["divide", "weather"])
def test_of_calls_with_one_id_in_one_reply_none_runs(kind: Any, way: Way, other: str) -> None:
    """Which of them an ask is about nobody could say: the other one would run with the decision on it."""
    tools = Tools()
    reply = Answer([START, *division("c1", 6, 3), *call("c1", other, '{"a": 8, "b": 2}', index=1), *end("tool_use")])
    with MessagesServer([reply, HELLO]) as server:
        client = session(server, kind, tools, approvals=policy(), gated=lambda request: request.arguments["a"] == 6)
        client.agent.on_paused = "discard"
        ended = terminal(way(client, start(run=AgRunConfig(tools=[WEATHER_TOOL]))))
        assert (ended["type"], ended["code"]) == ("turn.error", "AskRefusedError")
        way(client, start(said("and now?", "u2"), turn="t2"))
    assert tools.ran == []
    client.verify()


def test_a_gate_beside_a_toolset_is_refused() -> None:
    """The provider's client runs the members of a toolset past the gate."""

    class Screen:
        toolset_name = "computer"

        def to_dict(self) -> Native:
            return {"type": "computer_toolset_20260801"}

    def agent(**settings: Any) -> AnthropicAgent:
        tools = [Tools().of(Anthropic), Screen()]
        return AnthropicAgent(Anthropic(api_key="key"), model="claude-test", tools=tools, **settings)

    agent()
    for gated in (["divide"], lambda request: True):
        with pytest.raises(ValueError, match="computer"):
            agent(gated=gated)


@ways
def test_a_wrong_answer_is_refused_before_its_batch_is_whole(kind: Any, way: Way) -> None:
    """Without a ledger too: once it is stored it stands, and the batch could never be acted on."""
    tools = Tools()
    with MessagesServer([TWO, HELLO]) as server:
        client = session(server, kind, tools)
        for turn, ask in enumerate(asks(way(client, start()))):
            for reply in ({"arguments": {"a": 1, "b": 1}}, "yes"):
                with pytest.raises(AnswerError) as refused:
                    way(client, resume(answer_to(ask, reply=reply), turn=f"wrong-{turn}"))
                assert refused.value.path == "$.answers[0].reply"
                client.streams.pop()
            way(client, resume(answer_to(ask), turn=f"right-{turn}"))
    assert tools.ran == [(6, 3), (8, 2)]
    client.verify()
