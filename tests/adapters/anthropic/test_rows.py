"""Rows of the function-calling contract that the agent on the Messages API keeps, with the provider's real clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.agents import UnknownAskError
from agjson.approvals import Keys, Ledger, MemoryLedgerStore, Policy
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import (
    AgPausedAsk,
    AgStreamEvent,
    PausedOutcome,
    ResumeInput,
    TextBlock,
    ToolDone,
    ToolResultBlock,
    TurnDone,
)
from agjson.wire import answer_to
from tests.support.anthropic_agents import HELLO, Tools, Way, call, client, ways
from tests.support.anthropic_wire import START, block, end
from tests.support.messages_server import Answer, MessagesServer, Native
from tests.support.scripted import Session, said, start

KEYS = Keys({"k": b"k" * 32})
SIGNATURE = "Eo" + "Qx/9+" * 40 + "=="
SILENT = Answer([START, *end()])


def division(id: str, a: int, b: int, index: int = 0) -> list[Native]:
    return call(id, "divide", json.dumps({"a": a, "b": b}), index=index)


ONE = Answer([START, *division("c1", 6, 3), *end("tool_use")])
TWO = Answer([START, *division("c1", 6, 3), *division("c2", 8, 2, 1), *end("tool_use")])


def gated(server: MessagesServer, kind: Any, tools: Tools, **settings: Any) -> Session:
    """A client of an agent whose one tool needs approval."""
    settings = {"approvals": Ledger(MemoryLedgerStore(), Policy(keys=KEYS)), **settings}
    agent = AnthropicAgent(
        client(server, kind), model="claude-test", tools=[tools.of(kind)], gated=["divide"], **settings
    )
    return Session(agent)


def asks(events: list[AgStreamEvent]) -> list[AgPausedAsk]:
    ended = events[-1]
    assert isinstance(ended, TurnDone) and isinstance(ended.outcome, PausedOutcome), ended
    return list(ended.outcome.asks)


def resume(*answers: Any, turn: str = "r") -> ResumeInput:
    return ResumeInput(thread_id="th", turn_id=turn, answers=list(answers))


def done(events: list[AgStreamEvent]) -> list[tuple[str, str | None]]:
    return [(event.tool_call_id, event.outcome) for event in events if isinstance(event, ToolDone)]


def parts(server: MessagesServer, request: int = -1) -> list[list[str]]:
    """What kinds of parts the messages of a request have."""
    return [[part["type"] for part in message["content"]] for message in server.requests[request].body["messages"]]


@pytest.mark.parametrize("last", [HELLO, SILENT], ids=["words", "silence"])
@pytest.mark.parametrize(("status", "outcome"), [("resolved", "ok"), ("declined", "denied"), ("cancelled", "denied")])
@ways
def test_row_15_row_16_row_77_rule_15_the_result_comes_before_the_words_and_is_kept(
    kind: Any, way: Way, status: Any, outcome: str, last: Answer
) -> None:
    tools = Tools()
    with MessagesServer([ONE, last]) as server:
        session = gated(server, kind, tools)
        (ask,) = asks(way(session, start()))
        events = way(session, resume(answer_to(ask, status)))
    assert done(events) == [("c1", outcome)]
    assert tools.ran == ([(6, 3)] if outcome == "ok" else [])
    types = [event.type for event in events]
    assert types[0] == "turn.start" and types[-1] == "turn.done"
    if last is HELLO:
        assert types.index("tool.done") < types.index("text.start")
    blocks = [part for message in session.thread().result.messages for part in message.content]
    (landed,) = [part for part in blocks if isinstance(part, ToolResultBlock)]
    (words,) = [part.text for part in landed.content if isinstance(part, TextBlock)]
    assert landed.outcome == outcome
    assert words == "2" if outcome == "ok" else len(words) > 5


@ways
def test_row_17_row_78_each_call_of_a_mixed_batch_has_one_result(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([TWO, HELLO]) as server:
        session = gated(server, kind, tools)
        first, second = asks(way(session, start()))
        events = way(session, resume(answer_to(second, "declined"), answer_to(first)))
    assert sorted(done(events)) == [("c1", "ok"), ("c2", "denied")]
    assert tools.ran == [(6, 3)]
    assert parts(server) == [["text"], ["tool_use", "tool_use"], ["tool_result", "tool_result"]]
    sent = server.requests[-1].body["messages"][-1]["content"]
    assert [(part["tool_use_id"], part.get("is_error")) for part in sent] == [("c1", None), ("c2", True)]


async def test_row_18_a_pause_that_was_stored_goes_on_in_another_process(tmp_path: Path) -> None:
    tools = Tools()

    async def run(server: MessagesServer, ag_input: Any) -> list[AgStreamEvent]:
        """One run of an agent that knows nothing but the file."""
        async with SQLiteThreadStore(tmp_path / "threads.db") as threads:
            approvals = Ledger(SQLiteLedgerStore(threads), Policy(keys=KEYS))
            session = gated(server, Anthropic, tools, store=threads, approvals=approvals)
            return await session.run(ag_input)

    with MessagesServer([ONE, HELLO]) as server:
        (ask,) = asks(await run(server, start()))
        assert tools.ran == []
        events = await run(server, resume(answer_to(ask)))
        assert (done(events), tools.ran) == ([("c1", "ok")], [(6, 3)])
        with pytest.raises(UnknownAskError):
            await run(server, resume(answer_to(ask), turn="again"))
    assert parts(server) == [["text"], ["tool_use"], ["tool_result"]]
    assert tools.ran == [(6, 3)]


@pytest.mark.parametrize("status", ["resolved", "declined"])
@ways
def test_row_24_on_a_resume_the_model_reads_reasoning_call_and_result(kind: Any, way: Way, status: Any) -> None:
    thinking = block(
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "six by three"},
        {"type": "signature_delta", "signature": SIGNATURE},
    )
    first = Answer([START, *thinking, *division("c1", 6, 3, 1), *end("tool_use")])
    with MessagesServer([first, HELLO]) as server:
        session = gated(server, kind, Tools())
        (ask,) = asks(way(session, start()))
        way(session, resume(answer_to(ask, status)))
    assert parts(server) == [["text"], ["thinking", "tool_use"], ["tool_result"]]
    reasoning, made = server.requests[-1].body["messages"][1]["content"]
    assert (reasoning["thinking"], reasoning["signature"]) == ("six by three", SIGNATURE)
    assert (made["id"], made["input"]) == ("c1", {"a": 6, "b": 3})


@ways
def test_row_29_rounds_with_one_id_approved_then_rejected_stay_apart(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([ONE, ONE, HELLO]) as server:
        session = gated(server, kind, tools)
        (ask,) = asks(way(session, start()))
        (again,) = asks(way(session, resume(answer_to(ask))))
        events = way(session, resume(answer_to(again, "declined"), turn="r2"))
    assert tools.ran == [(6, 3)]
    assert done([event for stream in session.streams for event in stream]) == [("c1", "ok"), ("c1#2", "denied")]
    assert done(events) == [("c1#2", "denied")]
    messages = server.requests[-1].body["messages"]
    assert parts(server) == [["text"], ["tool_use"], ["tool_result"], ["tool_use"], ["tool_result"]]
    assert [messages[at]["content"][0].get("is_error") for at in (2, 4)] == [None, True]
    for call_at, result_at in ((1, 2), (3, 4)):
        assert messages[call_at]["content"][0]["id"] == messages[result_at]["content"][0]["tool_use_id"]


@pytest.mark.filterwarnings("ignore:Tool 'fly' not found:UserWarning")
@ways
def test_row_59_a_call_of_no_tool_is_an_error_that_the_model_reads(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([Answer([START, *call("c1", "fly", "{}"), *end("tool_use")]), HELLO]) as server:
        events = way(gated(server, kind, tools), start())
    assert (done(events), tools.ran) == ([("c1", "error")], [])
    (told,) = server.requests[-1].body["messages"][-1]["content"]
    assert (told["tool_use_id"], told["is_error"]) == ("c1", True)


@ways
def test_row_37_row_65_rule_22_rule_25_later_turns_read_one_pair_and_no_controls(kind: Any, way: Way) -> None:
    tools = Tools()
    with MessagesServer([ONE, HELLO, HELLO]) as server:
        session = gated(server, kind, tools)
        (ask,) = asks(way(session, start()))
        answer = answer_to(ask)
        way(session, resume(answer))
        way(session, start(said("Thanks", "u2"), turn="t2"))
        with pytest.raises(UnknownAskError):
            way(session, resume(answer, turn="late"))
    assert tools.ran == [(6, 3)]
    assert parts(server) == [["text"], ["tool_use"], ["tool_result"], ["text"], ["text"]]
    sent = json.dumps(server.requests[-1].body)
    for control in (ask.ask_id, ask.token, ask.message):
        assert control is not None and control not in sent
