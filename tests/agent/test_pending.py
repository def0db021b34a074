"""What a turn waits for: given to the framework whole, kept until then."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.agents import Invocation, MemoryContinuations, UnknownContinuationError
from agjson.types import (
    AgAnnotations,
    AgHitlAnswer,
    AgMessage,
    AgPausedAsk,
    AgToolResult,
    ResumeInput,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultInput,
)
from agjson.wire import from_dict, to_dict
from tests.support.scripted import ScriptAgent, Session, calls, results, said, start, terminal, text, types


def ask(id: str, kind: str = "text", **fields: Any) -> dict[str, Any]:
    return {"do": "hitl_ask", "kind": kind, "ask_id": id, **fields}


def mixed(*asks: dict[str, Any], call_ids: tuple[str, ...] = ()) -> Any:
    """A first run that waits for asks and for client calls, and a later one that speaks."""

    def script(run: Invocation) -> Any:
        if run.thread.revision:
            return text("on")
        return [*calls(*call_ids)[:-1], {"do": "message_end"}, *asks, {"do": "turn_paused"}]

    return script


def resume(*answers: tuple[str, str], turn: str = "r", **fields: Any) -> ResumeInput:
    given = [AgHitlAnswer(ask_id=id, status="resolved", reply=reply) for id, reply in answers]
    return ResumeInput(thread_id="th", turn_id=turn, answers=given, **fields)


async def test_results_of_a_batch_reach_the_framework_when_all_are_there() -> None:
    agent = ScriptAgent(lambda run: calls("c1", "c2", "c3") if run.input.kind == "start" else text("done"))
    session = Session(agent)
    await session.run(start())
    assert session.thread().pending.open_calls == ["c1", "c2", "c3"]
    events = await session.run(results("c2"))
    assert types(events) == ["turn.start", "tool.done", "turn.done"]
    assert terminal(events)["finishReason"] == "tool_call"
    assert (len(agent.seen), session.thread().pending.open_calls) == (1, ["c1", "c3"])
    await session.run(results("c3", "c1"))
    assert [result.tool_call_id for result in agent.seen[1].results] == ["c2", "c3", "c1"]
    assert [message.id for message in agent.seen[1].history][-1] == "c2:result"
    assert [message.id for message in agent.seen[1].messages] == ["c3:result", "c1:result"]
    assert session.thread().pending.calls == ()
    session.verify()


async def test_a_result_keeps_every_member() -> None:
    result = AgToolResult(
        tool_call_id="c1",
        content=[TextBlock(text="no")],
        outcome="error",
        structured_content={"s": 1},
        ui_data=None,
        side_data=[1],
        error_text="bad",
        error_code="E1",
        provider_metadata={"p": 1},  # type: ignore[arg-type]
        tool_metadata={"t": 1},
        dynamic=True,
        is_error=True,
        annotations=AgAnnotations(audience=["user"]),
        meta={"traceparent": "00"},
        scheduling="silent",
        will_continue=True,
    )
    session = Session(ScriptAgent(lambda run: calls("c1") if run.input.kind == "start" else text("done")))
    await session.run(start())
    events = await session.run(ToolResultInput(thread_id="th", turn_id="r", results=[result]))
    stored = to_dict(session.thread().result.messages[-2].content[0])
    assert stored == {
        "type": "tool-result",
        "toolCallId": "c1",
        "content": [{"type": "text", "text": "no"}],
        "outcome": "error",
        "structuredContent": {"s": 1},
        "uiData": None,
        "sideData": [1],
        "errorText": "bad",
        "errorCode": "E1",
        "providerMetadata": {"p": 1},
        "toolMetadata": {"t": 1},
        "dynamic": True,
        "isError": True,
        "_meta": {"traceparent": "00", "agjson/annotations": {"audience": ["user"]}},
    }
    refused = [to_dict(event)["_meta"]["agjson/path"] for event in events if event.type == "error"]
    assert refused == ["results[0].willContinue", "results[0].scheduling"]
    session.verify()


async def test_answers_of_a_batch_reach_the_framework_when_all_are_there() -> None:
    agent = ScriptAgent(mixed(ask("a"), ask("b", "choice")))
    session = Session(agent)
    assert terminal(await session.run(start()))["finishReason"] == "paused"
    events = await session.run(resume(("b", "1")))
    assert types(events) == ["turn.start", "hitl.ask", "turn.done"]
    end = terminal(events)
    assert (end["outcome"]["type"], [each["askId"] for each in end["outcome"]["asks"]]) == ("paused", ["a"])
    assert len(agent.seen) == 1
    await session.run(resume(("a", "yes"), turn="r2"))
    run = agent.seen[1]
    assert [(each.ask_id, each.reply) for each in run.answers] == [("b", "1"), ("a", "yes")]
    assert [each.ask_id for each in run.asks] == ["a", "b"]
    assert isinstance(run.input, ResumeInput) and list(run.input.answers or ()) == list(run.answers)
    session.verify()


async def test_answers_and_results_of_one_batch_come_in_any_order() -> None:
    for first, second in (
        (results("c1"), resume(("a", "x"), turn="r2")),
        (resume(("a", "x")), results("c1", turn="r2")),
    ):
        agent = ScriptAgent(mixed(ask("a"), call_ids=("c1",)))
        session = Session(agent)
        await session.run(start())
        end = terminal(await session.run(first))
        assert end["finishReason"] == ("paused" if isinstance(first, ToolResultInput) else "tool_call")
        assert len(agent.seen) == 1
        assert terminal(await session.run(second))["finishReason"] == "stop"
        run = agent.seen[1]
        assert ([each.reply for each in run.answers], [each.tool_call_id for each in run.results]) == (["x"], ["c1"])
        session.verify()


async def test_the_next_turn_may_answer_an_ask_in_words() -> None:
    agent = ScriptAgent(mixed(ask("a", request_state="opaque"), ask("b")))
    session = Session(agent)
    await session.run(start())
    await session.run(start(said("first line", "u2"), said("second", "u3"), metadata={"agjson/askId": "a"}))
    assert (len(agent.seen), [each.ask_id for each in session.thread().pending.open_asks]) == (1, ["b"])
    await session.run(start(said("ok", "u4"), metadata={"agjson/askId": ["b"]}))
    assert [(each.ask_id, each.reply) for each in agent.seen[1].answers] == [("a", "first line\nsecond"), ("b", "ok")]
    assert [message.id for message in agent.seen[1].messages] == ["u4"]
    session.verify()


async def test_a_host_may_let_a_new_message_give_the_asks_up() -> None:
    agent = ScriptAgent(mixed(ask("a")), on_paused="discard")
    session = Session(agent)
    await session.run(start())
    events = await session.run(start(said("something else", "u2")))
    error = next(to_dict(event) for event in events if event.type == "error")
    assert (error["code"], "ask a" in error["message"]) == ("ask_given_up", True)
    assert (agent.seen[1].answers, agent.seen[1].asks) == ((), ())
    assert session.thread().pending.asks == ()
    session.verify()


async def test_an_ask_that_was_answered_is_never_opened_again() -> None:
    natives = [[ask("a"), {"do": "turn_paused"}], [ask("a"), {"do": "turn_paused"}], text("done")]
    session = Session(ScriptAgent(lambda run: natives.pop(0)))
    await session.run(start())
    end = terminal(await session.run(resume(("a", "x"))))
    assert [each["askId"] for each in end["outcome"]["asks"]] == ["a#2"]
    await session.run(resume(("a#2", "y"), turn="r2"))
    session.verify()


async def test_the_framework_gets_back_what_it_has_kept_once() -> None:
    kept = object()

    def script(run: Invocation) -> Any:
        if not run.thread.revision:
            yield ask("a", request_state=run.keep(kept))
            yield {"do": "turn_paused"}
        elif run.thread.revision == 1:
            yield from text("on")

    continuations = MemoryContinuations()
    agent = ScriptAgent(script, continuations=continuations)
    session = Session(agent)
    await session.run(start())
    state = session.thread().pending.request_state
    assert state == session.thread().pending.asks[0].request_state and state is not None and len(state) >= 32
    answer = AgHitlAnswer(ask_id="a", status="resolved", request_state=state)
    await session.run(ResumeInput(thread_id="th", turn_id="r", answers=[answer]))
    assert agent.seen[1].continuation is kept
    assert len(continuations) == 0
    session.verify()


async def test_a_run_that_cannot_begin_leaves_the_continuation_where_it_was() -> None:
    def script(run: Invocation) -> Any:
        if run.thread.revision:
            return text("on")
        run.keep("session")
        return calls("c1")

    agent = ScriptAgent(script)
    session = Session(agent)
    await session.run(start())
    with pytest.raises(RuntimeError, match="running event loop"):
        next(agent.run_sync(results("c1")))
    await session.run(results("c1"))
    assert agent.seen[-1].continuation == "session"
    session.verify()


async def test_a_continuation_that_is_gone_is_told_before_anything_happens() -> None:
    def script(run: Invocation) -> Any:
        run.keep("session")
        return [ask("a"), {"do": "turn_paused"}]

    continuations = MemoryContinuations(max_items=1)
    agent = ScriptAgent(script, continuations=continuations)
    session = Session(agent)
    await session.run(start())
    await Session(agent, "other").run(start(thread="other"))
    before = session.thread()
    with pytest.raises(UnknownContinuationError):
        await session.run(resume(("a", "x")))
    assert session.thread() is before
    assert len(agent.seen) == 2


async def test_a_start_that_gives_up_lets_the_continuation_go() -> None:
    def script(run: Invocation) -> Any:
        if run.thread.revision:
            return text("new")
        run.keep("session")
        return calls("c1")

    agent = ScriptAgent(script)
    session = Session(agent)
    await session.run(start())
    await session.run(start(said("leave it", "u2")))
    assert agent.seen[1].continuation == "session"
    assert len(agent.continuations) == 0  # type: ignore[arg-type]


async def test_a_turn_that_ends_by_itself_keeps_nothing() -> None:
    def script(run: Invocation) -> Any:
        run.keep("session")
        return text("done")

    agent = ScriptAgent(script)
    await Session(agent).run(start())
    assert len(agent.continuations) == 0  # type: ignore[arg-type]


async def test_a_placeholder_is_no_result() -> None:
    pending = {"do": "tool_done", "tool_call_id": "c1", "outcome": "input_required", "message_id": "c1:pending"}
    session = Session(
        ScriptAgent(lambda run: text("on") if run.thread.revision else [*calls("c1")[:-1], pending, calls()[-1]])
    )
    await session.run(start())
    assert session.thread().pending.open_calls == ["c1"]
    await session.run(results("c1"))
    assert [message.id for message in session.thread().result.messages][-3:] == ["c1:pending", "c1:result", "m-x"]
    session.verify()


async def test_a_surface_speaks_in_the_name_of_the_user() -> None:
    actions = [
        {
            "surface": "mcp-app",
            "surfaceId": "s",
            "method": "ui/message",
            "params": {"role": "user", "content": {"type": "text", "text": "order it"}},
        },
        {"surface": "openai-app", "surfaceId": "w", "method": "sendFollowUpMessage", "prompt": "and pay"},
        {"surface": "mcp-app", "surfaceId": "s", "method": "ui/open-link", "params": {"url": "https://example.org"}},
    ]
    data = {
        "protocol": "agjson",
        "version": "1.0.0",
        "kind": "resume",
        "threadId": "th",
        "turnId": "r",
        "uiActions": actions,
    }
    agent = ScriptAgent(lambda run: text("ok"))
    session = Session(agent)
    await session.run(start())
    events = await session.run(from_dict(data, as_="input"))
    spoken = [(message.role, to_dict(message.content[0])["text"]) for message in agent.seen[1].messages]
    assert spoken == [("user", "order it"), ("user", "and pay")]
    assert [to_dict(event)["_meta"]["agjson/path"] for event in events if event.type == "error"] == ["uiActions[2]"]
    session.verify()


async def test_a_surface_that_says_nothing_calls_no_model() -> None:
    agent = ScriptAgent(lambda run: text("ok"))
    session = Session(agent)
    await session.run(start())
    data = {
        "protocol": "agjson",
        "version": "1.0.0",
        "kind": "resume",
        "threadId": "th",
        "turnId": "r",
        "uiActions": [
            {"surface": "mcp-app", "surfaceId": "s", "method": "ui/open-link", "params": {"url": "https://example.org"}}
        ],
    }
    events = await session.run(from_dict(data, as_="input"))
    assert (types(events), len(agent.seen)) == (["turn.start", "error", "turn.done"], 1)
    assert terminal(events)["finishReason"] == "stop"
    session.verify()


async def test_a_framework_that_takes_surface_interactions_gets_them() -> None:
    class Surfaces(ScriptAgent):
        SURFACES = True

    data = {
        "protocol": "agjson",
        "version": "1.0.0",
        "kind": "resume",
        "threadId": "th",
        "turnId": "r",
        "uiActions": [{"surface": "openai-app", "surfaceId": "w", "method": "setWidgetState", "widgetState": {"n": 1}}],
    }
    agent = Surfaces(lambda run: text("ok"))
    session = Session(agent)
    await session.run(start())
    events = await session.run(from_dict(data, as_="input"))
    assert "error" not in types(events)
    assert to_dict(agent.seen[1].input)["uiActions"] == data["uiActions"]
    session.verify()


def test_a_paused_thread_says_what_it_waits_for() -> None:
    session = Session(ScriptAgent(mixed(ask("a", "form", schema={"type": "object"}), call_ids=("c1",))))
    session.run_sync(start())
    pending = session.thread().pending
    assert (pending.is_complete, pending.open_calls) == (False, ["c1"])
    assert pending.open_asks == [AgPausedAsk(ask_id="a", kind="form", schema={"type": "object"})]


async def test_a_result_lands_on_the_call_that_the_client_means_and_not_on_one_of_the_same_native_id() -> None:
    def script(run: Invocation) -> Any:
        if run.input.kind != "start":
            return text("done")
        call = {"do": "tool_call", "tool_call_id": "c1", "name": "look_up", "input": {}}
        return [call, call, {"do": "turn_done", "finish_reason": "tool_call"}]

    agent = ScriptAgent(script)
    session = Session(agent)
    await session.run(start())
    assert session.thread().pending.open_calls == ["c1", "c1#2"]
    events = await session.run(results("c1"))
    assert to_dict(events[1])["toolCallId"] == "c1"
    assert session.thread().pending.open_calls == ["c1#2"]
    await session.run(results("c1#2"))
    found = {
        block.tool_call_id: to_dict(block.content[0])["text"]
        for message in session.thread().result.messages
        for block in message.content
        if isinstance(block, ToolResultBlock)
    }
    assert found == {"c1": "found c1", "c1#2": "found c1#2"}
    session.verify()


async def test_a_result_in_a_message_of_the_client_names_its_call_as_the_client_knows_it() -> None:
    call = {"do": "tool_call", "tool_call_id": "c1", "name": "look_up", "input": {}}
    session = Session(ScriptAgent(lambda run: text("on") if run.thread.revision else [call, call]))
    await session.run(start())
    history = [
        AgMessage(id="m1", role="tool", content=[ToolResultBlock(tool_call_id="c1", content=[])]),
        AgMessage(id="m2", role="assistant", content=[ToolCallBlock(tool_call_id="c1", name="f", input={})]),
        AgMessage(id="m3", role="tool", content=[ToolResultBlock(tool_call_id="c1", content=[])]),
    ]
    events = await session.run(start(*history, turn="t2"))
    named = [to_dict(event)["block"]["toolCallId"] for event in events if event.type == "content.block"]
    # The first result is for the call of the thread; the second follows the call that had to be renamed.
    assert named == ["c1", "c1#3", "c1#3"]
    session.verify()


async def test_an_ask_that_is_still_open_stays_with_its_call() -> None:
    call = {"do": "tool_call", "tool_call_id": "c1", "name": "look_up", "input": {}}
    gate = ask("a1", "approval", tool_call_id="c1")
    session = Session(
        ScriptAgent(lambda run: [call, gate, call, ask("a2"), {"do": "turn_paused"}], on_paused="discard")
    )
    await session.run(start())
    events = await session.run(resume(("a2", "yes")))
    asked = next(to_dict(event) for event in events if event.type == "hitl.ask")
    assert (asked["askId"], asked["toolCallId"]) == ("a1", "c1")
    assert [(each.ask_id, each.tool_call_id) for each in session.thread().pending.open_asks] == [("a1", "c1")]
