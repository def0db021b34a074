"""A run over HTTP: an input goes in, the turn comes back as server-sent events, and every refusal says why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agjson.agents import Invocation, ThreadStore, UnknownContinuationError
from agjson.errors import ReplayError
from agjson.middleware.asgi import AgentApp
from agjson.types import AgHitlAnswer, ResumeInput
from agjson.wire import encode, from_dict, ingest_event, to_dict
from agjson.wire.sse import encode_sse_event, read_sse
from tests.support.asgi_client import Exchange, request, run
from tests.support.scripted import ScriptAgent, calls, results, said, start, text, types
from tests.support.served import assert_same_as_stored, waiting

ASK = [{"do": "hitl_ask", "ask_id": "ask-1", "kind": "text", "message": "which?"}, {"do": "turn_paused"}]


async def test_the_turn_comes_as_server_sent_events_that_fold_to_what_is_stored(store: ThreadStore) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("good morning")), store=store)
    async with Exchange(app, "POST", "/", start()) as exchange:
        assert exchange.status == 200
        assert exchange.headers == {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-store",
            "x-accel-buffering": "no",
        }
        messages = [message async for message in exchange.messages()]
        assert exchange.completed
    assert [message.last_event_id for message in messages] == [f"t:{seq}" for seq in range(len(messages))]
    events = await run(app, start(said("again", "u2"), turn="t2"))
    assert types(events)[0] == "turn.start"
    assert types(events)[-1] == "turn.done"
    first = [json.loads(message.data) for message in messages]
    assert [event["type"] for event in first].count("text.delta") == 2
    await assert_same_as_stored(app, store, "th", [from_dict(event, as_="event") for event in first], events)


async def test_frames_are_those_of_the_wire_module(store: ThreadStore) -> None:
    turn = "a b%:é\n"
    app = AgentApp(ScriptAgent(lambda _: text("x")), store=store)
    async with Exchange(app, "POST", "/", start(turn=turn)) as exchange:
        head, _, body = (await exchange.read()).partition(b"\n\n")
    assert head == b"retry: 1000"
    events = [ingest_event(message.data) for message in read_sse([body])]
    assert body == b"".join(encode_sse_event(event, turn_id=turn) for event in events)


async def test_client_tools_and_answers_go_on_over_http(store: ThreadStore) -> None:
    scripts: dict[str, list[Any]] = {"t": calls("c1"), "r": [*text("and then", "y")[:-1], *ASK], "a": text("done", "z")}
    app = AgentApp(ScriptAgent(lambda invocation: scripts[invocation.turn_id]), store=store)
    first = await run(app, start())
    assert to_dict(first[-1])["finishReason"] == "tool_call"
    status, body = await request(app, "GET", "/threads/th")
    assert body["pending"] == {
        "calls": ["c1"],
        "toolCalls": [{"toolCallId": "c1", "name": "look_up", "input": {"of": "c1"}}],
        "asks": [],
    }
    second = await run(app, results("c1"))
    status, body = await request(app, "GET", "/threads/th")
    assert (status, body["pending"]["calls"], body["pending"]["toolCalls"]) == (200, [], [])
    assert body["pending"]["asks"] == [{"askId": "ask-1", "kind": "text", "message": "which?"}]
    answer = AgHitlAnswer(ask_id="ask-1", status="resolved", reply="this")
    third = await run(app, ResumeInput(thread_id="th", turn_id="a", answers=[answer]))
    assert types(third)[-1] == "turn.done"
    await assert_same_as_stored(app, store, "th", first, second, third)


REFUSED: list[tuple[Any, int, dict[str, Any]]] = [
    (b"{", 400, {"code": "invalid_input", "path": "$"}),
    (b"[]", 400, {"code": "invalid_input", "path": "$"}),
    (b"\xff", 400, {"code": "invalid_input", "path": "$"}),
    (b"[" * 100_000, 400, {"code": "invalid_input", "path": "$"}),
    (b'{"a":' * 100_000, 400, {"code": "invalid_input", "path": "$"}),
    ({**to_dict(start()), "version": "2.0.0"}, 400, {"code": "invalid_input", "path": "$.version"}),
    ({**to_dict(start()), "messages": [{"id": 1}]}, 400, {"code": "invalid_input"}),
    (results("c1", thread="other"), 404, {"code": "unknown_thread", "path": "$.threadId"}),
    (results("c9"), 409, {"code": "unknown_tool_call", "path": "$.results[0].toolCallId"}),
    (
        ResumeInput(thread_id="th", turn_id="x", answers=[AgHitlAnswer(ask_id="no", status="resolved")]),
        409,
        {"code": "unknown_ask", "path": "$.answers[0].askId"},
    ),
    (start(said("else"), turn="x"), 409, {"code": "message_conflict", "path": "$.messages[0].id"}),
    (start(said("more", "u2")), 409, {"code": "turn_exists", "path": "$.turnId", "turnId": "t"}),
]


@pytest.mark.parametrize(("body", "status", "error"), REFUSED, ids=lambda value: None if isinstance(value, int) else "")
async def test_a_refused_input_is_answered_with_its_code_and_place(
    store: ThreadStore, body: Any, status: int, error: dict[str, Any]
) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")), store=store)
    await run(app, start())
    before = await store.load("th")
    options = {"headers": {"content-type": "application/json"}}
    answered, told = await request(app, "POST", "/", body, **options)
    assert answered == status
    assert told["error"]["message"]
    assert told["error"] == told["error"] | error
    after = await store.load("th")
    assert before is not None and after is not None
    assert after.revision == before.revision


async def test_a_start_on_a_paused_thread_is_refused_unless_the_host_gives_the_pause_up(store: ThreadStore) -> None:
    agent = ScriptAgent(lambda invocation: ASK if invocation.turn_id == "t" else text("on"), store=store)
    app = AgentApp(agent)
    await run(app, start())
    status, body = await request(app, "POST", "/", start(said("more", "u2"), turn="t2"))
    assert (status, body["error"]["code"], body["error"]["askIds"]) == (409, "thread_paused", ["ask-1"])
    discarding = AgentApp(agent, on_paused="discard")
    events = await run(discarding, start(said("more", "u2"), turn="t2"))
    assert types(events)[-1] == "turn.done"
    assert agent.on_paused == "refuse"  # the agent itself is as it was


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ReplayError("a message is empty", "$[0].content"), 422, "replay_refused"),
        (UnknownContinuationError("it is gone", "$.answers"), 409, "unknown_continuation"),
    ],
)
async def test_what_an_adapter_refuses_is_told_before_the_first_event(
    store: ThreadStore, error: Exception, status: int, code: str
) -> None:
    def refuse(_: Any) -> Any:
        raise error

    app = AgentApp(ScriptAgent(lambda _: text("x"), prepare=refuse), store=store)
    answered, body = await request(app, "POST", "/", start())
    assert (answered, body["error"]["code"]) == (status, code)
    assert await store.load("th") is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": ""}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ({"content-type": 'application/json; charset="UTF-8"'}, 200),
        ({"content-type": "application/vnd.agjson+json"}, 200),
    ],
)
async def test_only_json_is_taken(headers: dict[str, str], status: int) -> None:
    app = AgentApp(ScriptAgent(lambda _: text("x")))
    async with Exchange(app, "POST", "/", encode(start()), headers) as exchange:
        assert exchange.status == status
        body = await exchange.read()
    assert status == 200 or json.loads(body)["error"]["code"] == "unsupported_media_type"


async def test_two_posts_of_one_thread_run_once(store: ThreadStore) -> None:
    gate = asyncio.Event()
    agent = ScriptAgent(waiting("one", "two", gate), store=store)
    app = AgentApp(agent)
    async with Exchange(app, "POST", "/", start()) as exchange:
        first = await exchange.events(5)
        other = await request(app, "POST", "/", start(said("else", "u2"), turn="t2"))
        again = await request(app, "POST", "/", start())
        gate.set()
        first += await exchange.events()
    assert (other[0], other[1]["error"]["code"], other[1]["error"]["turnId"]) == (409, "thread_busy", "t")
    assert (again[0], again[1]["error"]["code"], again[1]["error"]["turnId"]) == (409, "turn_exists", "t")
    assert agent.opened == 1
    await assert_same_as_stored(app, store, "th", first)


async def test_many_posts_of_one_thread_at_once_run_once(store: ThreadStore) -> None:
    gate = asyncio.Event()
    agent = ScriptAgent(waiting("one", "two", gate), store=store)
    app = AgentApp(agent)

    async def post() -> tuple[int, str]:
        async with Exchange(app, "POST", "/", start()) as exchange:
            gate.set()
            body = await exchange.read()
        return exchange.status, "" if exchange.status == 200 else json.loads(body)["error"]["code"]

    answers = await asyncio.gather(*(post() for _ in range(20)))
    assert agent.opened == 1
    assert sorted(status for status, _ in answers) == [200] + [409] * 19
    assert {code for status, code in answers if status == 409} <= {"turn_exists", "thread_busy"}


async def test_a_repeated_start_never_runs_twice_whatever_server_it_meets(store: ThreadStore) -> None:
    agent = ScriptAgent(lambda _: text("x"), store=store)
    await run(AgentApp(agent), start())
    # Another server, which has not seen the first request.
    status, body = await request(AgentApp(agent), "POST", "/", start())
    assert (status, body["error"]["code"], body["error"]["turnId"]) == (409, "turn_exists", "t")
    assert agent.opened == 1


async def test_a_repeated_result_is_told_from_a_wrong_one(store: ThreadStore) -> None:
    agent = ScriptAgent(lambda invocation: calls("c1") if invocation.turn_id == "t" else text("x"), store=store)
    app = AgentApp(agent)
    await run(app, start())
    await run(app, results("c1"))
    status, body = await request(app, "POST", "/", results("c1"))
    assert (status, body["error"]["code"], body["error"]["turnId"]) == (409, "turn_exists", "r")
    status, body = await request(app, "POST", "/", results("c1", turn="r2"))
    assert (status, body["error"]["code"]) == (409, "unknown_tool_call")
    assert agent.opened == 2


async def test_an_agent_that_never_waits_does_not_keep_others_waiting() -> None:
    natives = text(" ".join(["word"] * 20_000))

    class Eager(ScriptAgent):
        async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
            for native in natives:
                yield native

    app = AgentApp(Eager(lambda _: natives))
    async with Exchange(app, "POST", "/", start()) as exchange:
        await exchange.events(1)
        status, body = await request(app, "GET", "/threads/th")
        assert (status, body["turnId"]) == (200, "t")
        assert len(await exchange.events()) > 20_000
