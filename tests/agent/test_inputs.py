"""Inputs that a thread cannot take: a typed error before the first event, and nothing has changed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agjson.agents import (
    InputError,
    MessageConflictError,
    ThreadBusyError,
    ThreadPausedError,
    UnknownAskError,
    UnknownThreadError,
    UnknownToolCallError,
)
from agjson.errors import AgJSONError, DecodeError, ReplayError, ValidationError
from agjson.types import AgChoice, AgGrantMode, AgHitlAnswer, AgMessage, ResumeInput, ToolResultInput
from agjson.wire import decode_message, from_dict
from tests.support.scripted import ScriptAgent, Session, calls, results, said, start, terminal, text

APPROVAL = {"do": "hitl_ask", "kind": "approval", "tool_call_id": "gated", "token": "s3cret"}
PAUSE = {"do": "turn_paused"}


def pausing(*asks: dict[str, Any]) -> ScriptAgent:
    """An agent whose first run makes two calls, of which one is gated, and pauses on asks."""

    def script(run: Any) -> Any:
        if run.thread.revision:
            return text("on")
        return [*calls("gated", "free")[:-1], {"do": "message_end"}, *(asks or (APPROVAL,)), PAUSE]

    return ScriptAgent(script)


def resume(*answers: AgHitlAnswer, **fields: Any) -> ResumeInput:
    return ResumeInput(thread_id="th", turn_id="r", answers=list(answers), **fields)


def answer(ask_id: str, **fields: Any) -> AgHitlAnswer:
    return AgHitlAnswer(ask_id=ask_id, **{"status": "resolved", **fields})


async def refused(session: Session, ag_input: Any) -> AgJSONError:
    """The error that an input meets; the thread stays as it was, and can be run."""
    store = session.agent.store
    before = await store.load("th")
    seen = len(session.agent.seen)  # type: ignore[attr-defined]
    stream = session.agent.run(ag_input)
    with pytest.raises(AgJSONError) as raised:
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    with pytest.raises(type(raised.value)):
        next(session.agent.run_sync(ag_input))
    assert await store.load("th") is before
    assert len(session.agent.seen) == seen  # type: ignore[attr-defined]
    await (await store.acquire("th")).release()
    return raised.value


async def test_an_unknown_thread() -> None:
    session = Session(ScriptAgent(lambda run: text("a")))
    for ag_input in (results("c"), resume(answer("a"))):
        error = await refused(session, ag_input)
        assert isinstance(error, UnknownThreadError)
        assert (error.path, isinstance(error, InputError)) == ("$.threadId", True)


async def test_data_that_is_no_input() -> None:
    session = Session(ScriptAgent(lambda run: text("a")))
    error = await refused(session, {"kind": "start", "threadId": "th"})
    assert isinstance(error, DecodeError)


NONE: Any = None
TEXT: Any = "hi"


@pytest.mark.parametrize(
    ("ag_input", "path", "words"),
    [
        (start(said(NONE)), "$.messages[0].content[0].text", "Expected `str`, got `null`"),
        (start(AgMessage(id="u", role="user", content=TEXT)), "$.messages[0].content", "Expected `array`, got `str`"),
        (start(AgMessage(id="u", role=cast("Any", "human"), content=[])), "$.messages[0].role", "Invalid enum value"),
        (
            start(AgMessage(id="u", role="user", content=[cast("Any", {"type": "text", "text": "hi"})])),
            "$.messages[0].content[0]",
            "Expected `TextBlock`, got `dict`",
        ),
        (start(cast("Any", {"id": "u", "role": "user", "content": []})), "$.messages[0]", "Expected `AgMessage`"),
        (start(said("hi"), thread=NONE), "$.threadId", "Expected `str`, got `null`"),
        (resume(answer(NONE)), "$.answers[0].askId", "Expected `str`, got `null`"),
    ],
)
async def test_an_object_with_a_member_of_the_wrong_type(ag_input: Any, path: str, words: str) -> None:
    error = await refused(Session(ScriptAgent(lambda run: text("a"))), ag_input)
    assert isinstance(error, ValidationError)
    assert (error.path, words in error.message) == (path, True), error.message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("hello", "Expected an input, got `str`"),
        (None, "Expected an input, got `NoneType`"),
        (said("hello"), "Expected an input, got `AgMessage`"),
        ([{"role": "user", "content": "hi"}], "Expected an input, got `list`"),
        ({"role": "user", "content": "hi"}, "Object missing required field `kind`"),
    ],
)
async def test_what_is_no_input_at_all_is_told_what_one_is(given: Any, words: str) -> None:
    error = await refused(Session(ScriptAgent(lambda run: text("a"))), given)
    assert isinstance(error, ValidationError)
    assert str(error).startswith(f"{words}: a new message goes in as StartInput(thread_id=")


async def test_a_stored_message_with_a_block_of_a_later_revision_goes_in() -> None:
    later = decode_message(
        b'{"id":"u","role":"user","content":[{"type":"hologram","depth":3},{"type":"text","text":"hi"}]}', lenient=True
    )
    session = Session(ScriptAgent(lambda run: text("a")))
    events = await session.run(start(later))
    assert events[-1].type == "turn.done"
    stored = await session.agent.store.load("th")
    assert stored is not None
    assert stored.result.messages[0].content == later.content


async def test_an_input_object_is_handed_on_as_it_is() -> None:
    agent = ScriptAgent(lambda run: text("a"))
    ag_input = start(said("hi"))
    await Session(agent).run(ag_input)
    assert agent.seen[0].input is ag_input


async def test_a_result_for_a_call_that_waits_for_none() -> None:
    session = Session(ScriptAgent(lambda run: calls("c1", "c2") if run.input.kind == "start" else text("a")))
    await session.run(start())
    error = await refused(session, results("nope"))
    assert isinstance(error, UnknownToolCallError)
    assert (error.path, error.message) == ("$.results[0].toolCallId", "no call 'nope' waits for a result")
    error = await refused(session, results("c1", "c1"))
    assert isinstance(error, UnknownToolCallError) and error.path == "$.results[1].toolCallId"
    error = await refused(session, ToolResultInput(thread_id="th", turn_id="r", results=[]))
    assert isinstance(error, UnknownToolCallError) and error.path == "$.results"
    await session.run(results("c1"))
    error = await refused(session, results("c1"))
    assert str(error) == "call 'c1' has its result already - at `$.results[0].toolCallId`"
    await session.run(results("c2"))
    assert isinstance(await refused(session, results("c2")), UnknownToolCallError)
    session.verify()


async def test_a_call_that_a_person_has_to_allow_takes_no_result() -> None:
    session = Session(pausing())
    await session.run(start())
    error = await refused(session, results("gated"))
    assert isinstance(error, UnknownToolCallError)
    assert error.message == "call 'gated' waits for an answer, not for a result"


async def test_a_call_that_the_agent_runs_itself_takes_no_result() -> None:
    session = Session(ScriptAgent(lambda run: calls("c1"), client_tools=set()))
    await session.run(start())
    assert isinstance(await refused(session, results("c1")), UnknownToolCallError)


async def test_a_call_that_the_provider_runs_takes_no_result() -> None:
    call = {"do": "tool_call", "tool_call_id": "c", "name": "search", "input": {}, "provider_executed": True}
    session = Session(ScriptAgent(lambda run: [call, {"do": "turn_done", "finish_reason": "tool_call"}]))
    await session.run(start())
    assert isinstance(await refused(session, results("c")), UnknownToolCallError)


@pytest.mark.parametrize("end", [[], [{"do": "turn_done"}], [{"do": "turn_abort"}], [RuntimeError("x")]])
async def test_a_call_of_a_turn_that_did_not_end_with_it_takes_no_result(end: list[Any]) -> None:
    session = Session(ScriptAgent(lambda run: [*calls("c1")[:-1], *end]))
    await session.run(start())
    assert isinstance(await refused(session, results("c1")), UnknownToolCallError)


async def test_a_result_comes_too_late_when_the_user_has_gone_on() -> None:
    session = Session(ScriptAgent(lambda run: text("fine") if run.thread.revision else calls("c1")))
    await session.run(start())
    await session.run(start(said("never mind", "u2")))
    assert isinstance(await refused(session, results("c1")), UnknownToolCallError)


async def test_an_answer_to_an_ask_that_waits_for_none() -> None:
    session = Session(pausing())
    await session.run(start())
    error = await refused(session, resume(answer("t:other")))
    assert isinstance(error, UnknownAskError) and error.path == "$.answers[0].askId"
    good = answer("t:gated", token="s3cret")
    error = await refused(session, resume(good, good))
    assert isinstance(error, UnknownAskError) and error.path == "$.answers[1].askId"
    error = await refused(session, resume())
    assert isinstance(error, UnknownAskError) and error.path == "$.answers"
    await session.run(resume(good))
    assert isinstance(await refused(session, resume(good)), UnknownAskError)
    session.verify()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"token": "guess"}, "token"),
        ({}, "token"),
        ({"token": "s3cret", "request_state": "x"}, "requestState"),
        ({"token": "s3cret", "grant_mode_id": "always"}, "grantModeId"),
    ],
)
async def test_an_answer_that_does_not_fit_its_ask(given: dict[str, Any], path: str) -> None:
    session = Session(pausing())
    await session.run(start())
    error = await refused(session, resume(answer("t:gated", **given)))
    assert isinstance(error, ValidationError) and error.path == f"$.answers[0].{path}"


async def test_a_start_that_answers_nothing_does_not_leave_a_pause_behind() -> None:
    session = Session(pausing())
    await session.run(start())
    error = await refused(session, start(said("hello?", "u2")))
    assert isinstance(error, ThreadPausedError)
    assert (error.path, error.ask_ids) == ("$.kind", ("t:gated",))


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (APPROVAL, "takes no text"),
        ({"do": "hitl_ask", "kind": "url", "ask_id": "a", "url": "https://example.org"}, "takes no text"),
        ({"do": "hitl_ask", "kind": "text", "ask_id": "a", "token": "t"}, "takes no text"),
        ({"do": "hitl_ask", "kind": "text", "ask_id": "a", "grant_modes": [AgGrantMode(id="g")]}, "takes no text"),
        ({"do": "hitl_ask", "kind": "text", "ask_id": "b"}, "waits for no answer"),
    ],
)
async def test_words_do_not_answer_every_ask(ask: dict[str, Any], why: str) -> None:
    session = Session(pausing(ask))
    await session.run(start())
    named = "t:gated" if ask is APPROVAL else "a"
    error = await refused(session, start(said("yes", "u2"), metadata={"agjson/askId": named}))
    assert isinstance(error, UnknownAskError)
    assert why in error.message and error.path == "$.metadata['agjson/askId']"
    assert isinstance(await refused(session, start(said("y", "u2"), metadata={"agjson/askId": [1]})), UnknownAskError)


async def test_a_message_that_takes_the_id_of_another() -> None:
    session = Session(ScriptAgent(lambda run: text("a")))
    await session.run(start(said("one", "u1")))
    error = await refused(session, start(said("zero", "u0"), said("another", "u1")))
    assert isinstance(error, MessageConflictError) and error.path == "$.messages[1].id"
    error = await refused(session, start(said("a", "n"), said("b", "n")))
    assert isinstance(error, MessageConflictError) and error.path == "$.messages[1].id"
    other_role = AgMessage(id="u1", role="system", content=said("one").content)
    assert isinstance(await refused(session, start(other_role)), MessageConflictError)


async def test_what_the_framework_cannot_be_given() -> None:
    def prepare(run: Any) -> Any:
        raise ReplayError("no", "$[0]")

    assert isinstance(await refused(Session(ScriptAgent(lambda run: [], prepare=prepare)), start()), ReplayError)


async def test_two_runs_of_one_thread_at_once() -> None:
    agent = ScriptAgent(lambda run: text("a b"))
    first = agent.run(start())
    await anext(first)
    with pytest.raises(ThreadBusyError) as raised:
        await anext(agent.run(start(said("x", "u2"))))
    assert raised.value.path == "$.threadId"
    with pytest.raises(ThreadBusyError):
        next(agent.run_sync(start(said("x", "u2"))))
    assert (await anext(agent.run(start(thread="another")))).type == "turn.start"
    await first.aclose()
    assert terminal([event async for event in agent.run(start(said("x", "u2")))])["type"] == "turn.done"


async def test_a_surface_cannot_speak_before_the_answers() -> None:

    session = Session(
        pausing({"do": "hitl_ask", "kind": "choice", "ask_id": "a", "choices": [AgChoice(id="1", label="1")]})
    )
    await session.run(start())
    action = {
        "surface": "mcp-app",
        "surfaceId": "s",
        "method": "ui/message",
        "params": {"role": "user", "content": {"type": "text", "text": "hi"}},
    }
    data = {
        "protocol": "agjson",
        "version": "1.0.0",
        "kind": "resume",
        "threadId": "th",
        "turnId": "r",
        "uiActions": [action],
    }
    error = await refused(session, from_dict(data, as_="input"))
    assert isinstance(error, ThreadPausedError) and error.path == "$.uiActions"
