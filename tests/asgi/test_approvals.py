"""Asks and answers over HTTP: a token for whoever may answer, wherever they read it, and each answer acted on once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agjson.agents import MemoryThreadStore, ThreadStore
from agjson.approvals import EditRefusedError, LedgerStore, MemoryLedgerStore
from agjson.middleware.asgi import AgentApp
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import AgHitlAnswer, AgPausedAsk, HitlAsk, PausedOutcome, ResumeInput, TurnDone
from agjson.wire import answer_to, encode, from_dict, to_dict
from agjson.wire.sse import SSEMessage
from tests.approvals.desk import Clock
from tests.support.asgi_client import Exchange, request, run
from tests.support.gated import EDITS, TOOL, Gated, gated_agent, ledger_on
from tests.support.scripted import results, said, terminal, types
from tests.support.scripted import start as start_of
from tests.support.served import STORES

EVENTS = "/threads/th/events"


class Place:
    """Stores that outlive the servers on them.

    Args:
        kind: ``memory`` or ``sqlite``.
        path: the file of the latter.
    """

    def __init__(self, kind: str, path: Path) -> None:
        self.path = path
        self.is_shared = kind == "sqlite"
        self._threads: ThreadStore = MemoryThreadStore()
        self._asks: LedgerStore = MemoryLedgerStore()
        self._open = AsyncExitStack()
        self.script = Gated()

    def stores(self) -> tuple[ThreadStore, LedgerStore]:
        """Stores for one more server; those on a file know of one another by the file alone."""
        if not self.is_shared:
            return self._threads, self._asks
        threads = SQLiteThreadStore(self.path)
        self._open.push_async_callback(threads.aclose)
        return threads, SQLiteLedgerStore(threads)

    def app(self, policy: dict[str, Any] | None = None, script: Any = None, **settings: Any) -> AgentApp:
        """One more server."""
        threads, asks = self.stores()
        ledger = ledger_on(asks, **(policy or {}))
        return AgentApp(gated_agent(script or self.script), store=threads, approvals=ledger, poll=0.01, **settings)

    async def close(self) -> None:
        await self._open.aclose()


@asynccontextmanager
async def placed(kind: str, folder: Path) -> AsyncIterator[Place]:
    place = Place(kind, folder / "threads.sqlite")
    try:
        yield place
    finally:
        await place.close()


@pytest.fixture(params=STORES)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with placed(request.param, tmp_path) as made:
        yield made


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Place]:
    async with placed("sqlite", tmp_path) as made:
        yield made


def start(words: str, turn: str = "t", thread: str = "th", **fields: Any) -> Any:
    return start_of(said(words, f"u-{turn}"), turn=turn, thread=thread, **fields)


def resume(*answers: AgHitlAnswer, turn: str = "r", thread: str = "th") -> ResumeInput:
    return ResumeInput(thread_id=thread, turn_id=turn, answers=list(answers))


def asked(events: list[Any]) -> list[AgPausedAsk]:
    """The asks of the pause that a stream ends with."""
    end = events[-1]
    assert isinstance(end, TurnDone) and isinstance(end.outcome, PausedOutcome), types(events)
    return list(end.outcome.asks)


async def refusal(app: Any, ag_input: Any, **options: Any) -> tuple[int, Any]:
    status, body = await request(app, "POST", "/", ag_input, **options)
    return status, body["error"]


async def pending(app: Any, **options: Any) -> list[AgPausedAsk]:
    """The asks that `GET /threads/{id}` lists."""
    status, body = await request(app, "GET", "/threads/th", **options)
    assert status == 200, body
    return [from_dict(ask, as_="ask") for ask in body["pending"]["asks"]]


async def messages(app: Any, path: str) -> list[SSEMessage]:
    async with Exchange(app, "GET", path) as exchange:
        assert exchange.status == 200, await exchange.read()
        return [message async for message in exchange.messages()]


# Tokens: with whoever may answer, wherever they read it


async def test_an_ask_has_its_token_wherever_its_client_reads_it(place: Place) -> None:
    app = place.app()
    events = await run(app, start("mail ann"))
    (ask,) = asked(events)
    (told,) = [event for event in events if isinstance(event, HitlAsk)]
    assert ask.token is not None and ask.token.startswith("agt1.k1.") and told.token == ask.token
    live = [encode(event) for event in events]
    restarted = place.app()
    for server in (app, restarted) if place.is_shared else (app,):
        again = [message.data for message in await messages(server, f"{EVENTS}?turnId=t")]
        assert again == live
    for server in (app, restarted):
        assert await pending(server) == [ask]
        _, body = await request(server, "GET", "/threads/th")
        (record,) = body["events"][0]["turns"]
        assert [each["token"] for each in (*record["asks"], *record["outcome"]["asks"])] == [ask.token] * 2


async def test_who_joins_late_gets_the_token_of_an_ask_of_a_running_turn(place: Place) -> None:
    gate = asyncio.Event()
    script = place.script

    def slow(invocation: Any) -> Any:
        natives = list(script(invocation))
        return [*natives[:-1], gate.wait(), natives[-1]]

    app, other = place.app(script=slow), place.app()
    async with Exchange(app, "POST", "/", start("mail ann")) as exchange:
        live = await exchange.events(10)
        ask = live[-1]
        assert isinstance(ask, HitlAsk) and ask.token is not None
        servers = (app, other) if place.is_shared else (app,)
        for server in servers:
            async with Exchange(server, "GET", EVENTS) as late:
                assert await late.events(10) == live
                # It cannot be answered yet: the turn has not paused.
                assert await pending(server) == []
        refused = await refusal(app, resume(answer_to(ask)))
        assert (refused[0], refused[1]["code"]) == (409, "thread_busy")
        gate.set()
        rest = await exchange.events()
    assert asked(rest)[0].token == ask.token
    assert types(await run(other, resume(answer_to(asked(rest)[0]))))[-1] == "turn.done"
    assert script.sent == ["ann"]


async def test_no_token_is_at_rest_or_in_a_log(file: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    app = file.app(coalesce=0.01)
    first, second = asked(await run(app, start("mail ann bob")))
    (again,) = asked(await run(app, resume(answer_to(first))))
    await pending(app)
    assert (await refusal(app, resume(answer_to(first), turn="r2")))[0] == 409
    tokens = [str(ask.token) for ask in (first, second, again)]

    def bytes_at_rest() -> bytes:
        return b"".join(each.read_bytes() for each in file.path.parent.iterdir())

    kept = bytes_at_rest()
    await run(app, resume(answer_to(second), turn="r3"))
    kept += bytes_at_rest()
    await file.close()
    kept += bytes_at_rest()
    assert b"ask-t.1" in kept and len(set(tokens)) == 2
    for token in tokens:
        # Nor the part of it that is hard to guess.
        assert token.encode() not in kept and token.rpartition(".")[2].encode() not in kept
        assert token not in caplog.text


async def test_no_token_is_in_a_thread_in_memory(tmp_path: Path) -> None:
    threads = MemoryThreadStore()
    app = AgentApp(gated_agent(Gated(), store=threads, approvals=ledger_on(MemoryLedgerStore())))
    (ask,) = asked(await run(app, start("mail ann")))
    thread = await threads.load("th")
    assert thread is not None and str(ask.token) not in repr(thread)
    assert await pending(app) == [ask]


async def test_a_token_that_a_host_trips_over_is_not_logged(file: Place, caplog: pytest.LogCaptureFixture) -> None:
    def authorize(request: Any, ag_input: Any) -> str:
        if isinstance(ag_input, ResumeInput) and ag_input.answers:
            raise RuntimeError(f"cannot read {ag_input.answers[0].token}")
        return "ann"

    app = file.app(authorize=authorize)
    (ask,) = asked(await run(app, start("mail ann")))
    status, error = await refusal(app, resume(answer_to(ask)))
    assert (status, error["code"]) == (500, "internal_error")
    assert "cannot read" in caplog.text and str(ask.token).rpartition(".")[2] not in caplog.text


# Answers


async def test_a_batch_is_answered_in_parts(place: Place) -> None:
    app = place.app()
    first, second = asked(await run(app, start("mail ann bob")))
    events = await run(app, resume(answer_to(first)))
    assert types(events) == ["turn.start", "hitl.ask", "turn.done"] and place.script.ran == []
    assert asked(events) == [second] == await pending(app)
    # Also for a server that has seen nothing of it.
    restarted = place.app()
    assert await pending(restarted) == [second]
    await run(restarted, resume(answer_to(second, "declined", reason="not him"), turn="r2"))
    assert place.script.ran == [("sent", "ann"), ("read", "all")]
    assert await pending(restarted) == [] == await pending(app)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"token": None}, "wrong_token", "token"),
    ({"token": "agt1.k1.forged"}, "wrong_token", "token"),
    ({"ask_id": "ask-t.9"}, "unknown_ask", "askId"),
    ({"request_state": "mine"}, "wrong_request_state", "requestState"),
    ({"ordinal": 3}, "wrong_ordinal", "ordinal"),
    ({"reply": {"arguments": {"to": "everybody"}}}, "edit_refused", "reply"),
    ({"reply": "yes"}, "wrong_reply", "reply"),
    ({"grant_mode_id": "always"}, "wrong_grant_mode", "grantModeId"),
]


@pytest.mark.parametrize(("change", "code", "field"), WRONG, ids=[f"{code}-{field}" for _, code, field in WRONG])
async def test_an_answer_that_is_not_as_it_should_be_changes_nothing(
    file: Place, change: dict[str, Any], code: str, field: str
) -> None:
    app = file.app()
    first, second = asked(await run(app, start("mail ann bob")))
    before = await request(app, "GET", "/threads/th")
    status, error = await refusal(app, resume(answer_to(first), replace(answer_to(second), **change)))
    path = f"$.answers[1].{field}"
    assert (status, error["code"], error["path"], error["askId"]) == (
        409,
        code,
        path,
        change.get("ask_id", second.ask_id),
    )
    assert await request(app, "GET", "/threads/th") == before and file.script.ran == []
    await run(app, resume(answer_to(first), answer_to(second)))
    assert file.script.sent == ["ann", "bob"]


async def test_edits_are_for_tools_that_allow_them(place: Place) -> None:
    app = place.app({"editable": {TOOL: EDITS}})
    (ask,) = asked(await run(app, start("mail ann")))
    status, error = await refusal(app, resume(answer_to(ask, reply={"arguments": {"to": 1}})))
    assert (status, error["code"], error["path"]) == (409, EditRefusedError.code, "$.answers[0].reply")
    await run(app, resume(answer_to(ask, reply={"arguments": {"to": "bob"}})))
    assert place.script.sent == ["bob"]


async def test_an_answer_counts_once(place: Place) -> None:
    app = place.app()
    (ask,) = asked(await run(app, start("mail ann")))
    answer = resume(answer_to(ask))
    assert terminal(await run(app, answer))["outcome"]["type"] == "success"
    # Byte for byte the same request, and the same answer in another one; then a server that remembers no request.
    status, error = await refusal(app, answer)
    assert (status, error["code"], error["turnId"]) == (409, "turn_exists", "r")
    for server, ag_input in ((app, resume(answer_to(ask), turn="r2")), (place.app(), answer)):
        status, error = await refusal(server, ag_input)
        assert (status, error["code"], error["path"]) == (409, "spent_ask", "$.answers[0].askId")
    for changed in (answer_to(ask, "declined"), replace(answer_to(ask), token="agt1.k1.other")):
        status, error = await refusal(app, resume(changed, turn="r3"))
        assert status == 409 and error["code"] in ("spent_ask", "wrong_token")
    assert place.script.sent == ["ann"]


async def test_the_first_answer_stands(place: Place) -> None:
    app = place.app()
    first, second = asked(await run(app, start("mail ann bob")))
    declined = resume(answer_to(first, "declined"))
    await run(app, declined)
    for server in (app, place.app()):
        status, error = await refusal(server, resume(answer_to(first), answer_to(second), turn="r2"))
        assert (status, error["code"], error["askId"]) == (409, "answered_ask", first.ask_id)
    status, error = await refusal(app, declined)
    assert (status, error["code"], error["turnId"]) == (409, "turn_exists", "r")
    await run(app, resume(answer_to(second), turn="r3"))
    assert place.script.sent == ["bob"]


async def test_an_ask_expires(place: Place) -> None:
    clock = Clock()
    app = place.app({"clock": clock, "lasts": timedelta(minutes=5)})
    first, second = asked(await run(app, start("mail ann bob")))
    assert first.expires_at == "2026-03-01T12:05:00+00:00"
    await run(app, resume(answer_to(first)))
    clock.forward(minutes=6)
    status, error = await refusal(app, resume(answer_to(second), turn="late"))
    assert (status, error["code"], error["path"]) == (409, "expired_ask", "$.answers[0].askId")
    assert await pending(app) == []
    await run(app, resume(turn="go"))
    assert place.script.sent == ["ann"]


async def test_an_ask_of_another_thread_is_none(place: Place) -> None:
    app = place.app()
    (ask,) = asked(await run(app, start("mail ann", "one", "one")))
    (own,) = asked(await run(app, start("mail bob", "other", "other")))
    # The ask of the one thread, and one that there is not: in the same words.
    told: list[Any] = []
    for answer in (answer_to(ask), replace(answer_to(ask), ask_id="ask-none.1")):
        status, error = await refusal(app, resume(answer, thread="other"))
        assert status == 409
        told.append({**error, "message": error["message"].replace(answer.ask_id, "…"), "askId": "…"})
    assert told[0] == told[1] and told[0]["code"] == "unknown_ask"
    status, error = await refusal(app, resume(replace(answer_to(own), token=ask.token), thread="other"))
    assert (status, error["code"], error["path"]) == (409, "unknown_ask", "$.answers[0].askId")
    assert place.script.ran == []


async def test_an_ask_is_its_owners(place: Place) -> None:
    ann, bob = {"x-user": "ann"}, {"x-user": "bob"}
    app = place.app(authorize=lambda request, _: request.headers.get("x-user"))
    (ask,) = asked(await run(app, start("mail ann"), headers=ann))
    assert await pending(app, headers=ann) == [ask]
    for status, body in (
        await refusal(app, resume(answer_to(ask)), headers=bob),
        await refusal(app, resume(answer_to(ask))),
    ):
        assert (status, body["code"], body["path"]) == (404, "unknown_thread", "$.threadId")
    for path in ("/threads/th", EVENTS, f"{EVENTS}?turnId=t"):
        status, body = await request(app, "GET", path, headers=bob)
        assert (status, body["error"]["code"]) == (404, "unknown_thread")
    assert place.script.ran == []
    await run(app, resume(answer_to(ask)), headers=ann)
    assert place.script.sent == ["ann"]


async def test_a_gated_call_takes_no_result_and_no_words(place: Place) -> None:
    app = place.app()
    (ask,) = asked(await run(app, start("mail ann")))
    status, error = await refusal(app, results("t.1"))
    assert (status, error["code"]) == (409, "unknown_tool_call")
    status, error = await refusal(app, start("yes", "t2", metadata={"agjson/askId": ask.ask_id}))
    assert (status, error["code"], error["askId"]) == (409, "words_refused", ask.ask_id)
    status, error = await refusal(app, start("never mind", "t2"))
    assert (status, error["code"], error["askIds"]) == (409, "thread_paused", [ask.ask_id])
    assert place.script.ran == [] and await pending(app) == [ask]


async def test_what_a_start_leaves_behind_cannot_be_answered(place: Place) -> None:
    app = place.app(on_paused="discard")
    (ask,) = asked(await run(app, start("mail ann")))
    events = await run(app, start("never mind", "t2"))
    assert [to_dict(event)["code"] for event in events if event.type == "error"] == ["ask_given_up"]
    assert await pending(app) == []
    for server in (app, place.app()):
        status, error = await refusal(server, resume(answer_to(ask)))
        assert (status, error["code"], error["path"]) == (409, "given_up_ask", "$.answers[0].askId")
    assert place.script.ran == []


# What goes on


@pytest.mark.parametrize("rounds", range(5))
async def test_two_answers_at_once_run_it_once(file: Place, rounds: int) -> None:
    servers = [file.app(), file.app()]
    (ask,) = asked(await run(servers[0], start("mail ann")))

    async def post(server: AgentApp, turn: str) -> tuple[int, str]:
        async with Exchange(server, "POST", "/", resume(answer_to(ask), turn=turn)) as exchange:
            if exchange.status == 200:
                return 200, terminal(await exchange.events())["type"]
            return exchange.status, (await exchange.json())["error"]["code"]

    told = sorted(await asyncio.gather(*(post(servers[n % 2], f"r{n}") for n in range(6))))
    assert told[0] == (200, "turn.done")
    refused = {code for status, code in told[1:] if status == 409}
    assert len(told[1:]) == 5 and refused <= {"thread_busy", "spent_ask"} and refused, told
    assert file.script.sent == ["ann"]


async def test_a_turn_pauses_twice(place: Place) -> None:
    app = place.app()
    (first,) = asked(await run(app, start("relay ann bob")))
    events = await run(app, resume(answer_to(first)))
    (second,) = asked(events)
    assert place.script.sent == ["ann"] and second.token not in (None, first.token)
    restarted = place.app()
    assert await pending(restarted) == [second]
    assert (await refusal(restarted, resume(answer_to(first), turn="r2")))[1]["code"] == "spent_ask"
    status, error = await refusal(restarted, resume(replace(answer_to(second), token=first.token), turn="r2"))
    assert (status, error["code"], error["path"]) == (409, "other_turn", "$.answers[0].token")
    await run(restarted, resume(answer_to(second), turn="r2"))
    assert place.script.sent == ["ann", "bob"]


async def test_a_grant_makes_a_rule_that_later_turns_find(place: Place) -> None:
    app = place.app()
    (ask,) = asked(await run(app, start("grant ann")))
    assert ask.grant_modes is not None and [mode.id for mode in ask.grant_modes] == ["once", "always"]
    for mode in (None, "forever"):
        answer = replace(answer_to(ask, grant_mode_id="once"), grant_mode_id=mode)
        status, error = await refusal(app, resume(answer))
        assert (status, error["code"], error["path"]) == (409, "wrong_grant_mode", "$.answers[0].grantModeId")
    await run(app, resume(answer_to(ask, grant_mode_id="once")))
    (ask,) = asked(await run(app, start("grant bob", "t2")))
    await run(app, resume(answer_to(ask, grant_mode_id="always"), turn="r2"))
    assert terminal(await run(place.app(), start("grant cid", "t3")))["outcome"]["type"] == "success"
    # The rule is for this thread.
    asked(await run(app, start("grant dan", "t4", "another")))
    assert place.script.sent == ["ann", "bob", "cid"]


async def test_a_run_that_is_stopped_after_the_claim_leaves_an_unknown_outcome(place: Place) -> None:
    app = place.app()
    (ask,) = asked(await run(app, start("stuck before")))
    async with Exchange(app, "POST", "/", resume(answer_to(ask))) as exchange:
        await exchange.events(1)
        status, _ = await request(app, "POST", "/threads/th/turns/r/stop")
        assert status == 202
        assert terminal(await exchange.events())["type"] == "turn.abort"
    assert (await refusal(app, resume(answer_to(ask), turn="r2")))[1]["code"] == "spent_ask"
    events = await run(place.app(), start("and now?", "t2"))
    (result,) = [to_dict(event) for event in events if event.type == "tool.done"]
    assert (result["toolCallId"], result["outcome"], result["errorCode"]) == ("t.1", "error", "outcome_unknown")
    assert place.script.sent == []


async def test_what_was_streamed_is_what_is_stored(place: Place) -> None:
    app = place.app(coalesce=0.02)
    streams = [await run(app, start("mail ann bob"))]
    first, second = asked(streams[0])
    streams.append(await run(app, resume(answer_to(first))))
    streams.append(await run(app, resume(answer_to(second), turn="r2")))
    status, body = await request(app, "GET", "/threads/th")
    assert status == 200
    from agjson.fold import Reducer

    live, healed = Reducer(), Reducer()
    for event in (event for stream in streams for event in stream):
        live.push(event)
    for event in body["events"]:
        healed.push(from_dict(event, as_="event"))
    # A client that was there from the beginning still has the tokens in its records; they are of no use any more.
    assert _without_tokens(live.result()) == to_dict(healed.result()) == _without_tokens(healed.result())


def _without_tokens(result: Any) -> Any:
    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: cleaned(member) for name, member in value.items() if name != "token"}
        return [cleaned(item) for item in value] if isinstance(value, list) else value

    return cleaned(to_dict(result))


# Set up


async def test_the_ledger_is_the_apps_or_else_the_agents(place: Place) -> None:
    threads, asks = place.stores()
    of_agent, of_app = ledger_on(MemoryLedgerStore(), keys=_other_keys()), ledger_on(asks)
    agent = gated_agent(place.script, approvals=of_agent)
    for app, key in ((AgentApp(agent, store=threads, approvals=of_app), "k1"), (AgentApp(agent, store=threads), "k2")):
        (ask,) = asked(await run(app, start("mail ann", f"t-{key}", f"th-{key}")))
        assert str(ask.token).startswith(f"agt1.{key}.")
        await run(app, resume(answer_to(ask), thread=f"th-{key}"))
    assert place.script.sent == ["ann", "ann"]


def _other_keys() -> Any:
    from agjson.approvals import Keys

    return Keys({"k2": b"2" * 32})


async def test_asks_from_before_the_ledger_can_only_be_given_up(place: Place) -> None:
    threads, asks = place.stores()
    before = AgentApp(gated_agent(place.script), store=threads)
    (ask,) = asked(await run(before, start("mail ann")))
    assert ask.token is None
    app = AgentApp(gated_agent(place.script), store=threads, approvals=ledger_on(asks), on_paused="discard")
    assert await pending(app) == []
    status, error = await refusal(app, resume(answer_to(ask)))
    assert (status, error["code"]) == (409, "unknown_ask")
    assert terminal(await run(app, start("hello", "t2")))["outcome"]["type"] == "success"
    assert place.script.ran == []


class _SlowAsks(MemoryLedgerStore):
    suspends = True

    async def transact(self, work: Callable[[Any], Any]) -> Any:
        await asyncio.sleep(0.03)
        return await super().transact(work)


async def test_the_next_input_may_follow_the_end_of_a_turn_at_once() -> None:
    """The end is told as soon as it is stored; the claim is closed after that."""
    script = Gated()
    app = AgentApp(gated_agent(script), approvals=ledger_on(_SlowAsks()))
    (ask,) = asked(await run(app, start("mail ann")))
    async with Exchange(app, "POST", "/", resume(answer_to(ask))) as exchange:
        async for message in exchange.messages():
            if b'"turn.done"' in message.data:
                assert types(await run(app, start("thanks", "t2")))[-1] == "turn.done"
                break
        else:
            raise AssertionError("the turn has no end")
    assert script.sent == ["ann"]
