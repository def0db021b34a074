"""What a client offers beside the stream: snapshots, stops, capabilities, what it remembers, and how it is closed."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agjson import AgHitlAnswer, AgMessage, AgToolResult, TextBlock, encode, reduce
from agjson.errors import AgJSONError
from agjson.middleware.client import (
    AgentClient,
    ClientError,
    ConnectionLostError,
    RequestError,
    StreamError,
    SyncAgentClient,
    SyncTurn,
    Turn,
)
from agjson.wire import from_dict
from tests.support.clients import KINDS, TURN, Kind, follow, hello
from tests.support.corpus import ROOT
from tests.support.sse_server import Answer, Request, SSEServer, TurnScript, error, frame, html, json_answer

RESULT = reduce([from_dict(event, "event") for event in TURN]).result


async def ask(kind: Kind, url: str, call: Callable[[Any], Any], **settings: Any) -> Any:
    """The result of one call to a client of either kind."""
    settings = {"backoff": 0.001, **settings}
    if kind == "async":
        async with httpx.AsyncClient(verify=False) as http, AgentClient(url, http=http, **settings) as client:
            return await call(client)

    def run() -> Any:
        with httpx.Client(verify=False) as http, SyncAgentClient(url, http=http, **settings) as client:
            return call(client)

    return await asyncio.to_thread(run)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_snapshot_is_the_thread_as_the_server_has_it(kind: Kind) -> None:
    script = TurnScript(TURN)
    script.began = True
    with SSEServer(script) as server:
        snapshot = await ask(kind, server.url, lambda client: client.snapshot("th"))
    assert (snapshot.thread_id, snapshot.turn_id, snapshot.last_event_id) == ("th", "t1", "t1:7")
    assert snapshot.result == RESULT
    assert snapshot.calls == []
    assert snapshot.record("t1") == RESULT.turns[0]
    assert snapshot.record("t2") is None


@pytest.mark.parametrize("kind", KINDS)
async def test_a_snapshot_lists_what_the_thread_waits_for(kind: Kind) -> None:
    body = {
        "events": [{"type": "messages.snapshot", "seq": 0, "messages": [], "future": 1.50}],
        "pending": {"calls": ["c1"], "asks": [{"askId": "a1", "kind": "approval"}]},
    }
    with SSEServer(lambda _: json_answer(body)) as server:
        snapshot = await ask(kind, server.url, lambda client: client.snapshot("th"))
    assert snapshot.calls == ["c1"]
    assert [ask.ask_id for ask in snapshot.asks] == ["a1"]
    assert b'"future": 1.5' in encode(snapshot.events[0]) or b'"future":1.5' in encode(snapshot.events[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(404, "unknown_thread"), "unknown_thread"),
        (html(404), "http_404"),
        (json_answer({"detail": "Not Found"}, 404), "http_404"),
        (html(200), "malformed_answer"),
        (json_answer([]), "malformed_answer"),
        (json_answer({"events": []}), "malformed_answer"),
        (json_answer({"events": [{"type": "messages.snapshot", "seq": 0}]}), "malformed_answer"),
        (
            json_answer({"events": [{"type": "messages.snapshot", "seq": 0, "messages": []}], "turnId": 1}),
            "malformed_answer",
        ),
        (Answer([b"[" * 100000], 200, {"content-type": "application/json"}), "malformed_answer"),
        (Answer([b"\xff\xfe"], 200, {"content-type": "application/json"}), "malformed_answer"),
    ],
)
async def test_a_snapshot_that_cannot_be_had_is_a_typed_error(kind: Kind, answer: Answer, code: str) -> None:
    with SSEServer(lambda _: answer) as server, pytest.raises(ClientError) as raised:
        await ask(kind, server.url, lambda client: client.snapshot("th"))
    assert raised.value.code == code
    assert "script" not in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_that_is_too_long_is_not_read_to_its_end(kind: Kind) -> None:
    pieces = [b"[" + b"1," * 500] * 1000
    answer = Answer(pieces, 200, {"content-type": "application/json"})
    with SSEServer(lambda _: answer) as server, pytest.raises(StreamError) as raised:
        await ask(kind, server.url, lambda client: client.snapshot("th"), max_bytes=10_000)
    assert raised.value.code == "too_large"


@pytest.mark.parametrize("kind", KINDS)
async def test_calls_are_tried_again(kind: Kind) -> None:
    script = TurnScript(TURN)
    script.began = True
    answers = [html(502), Answer(unread=True), error(429, "too_many", headers={"retry-after": "0"})]
    with SSEServer(lambda request: answers.pop() if answers else script(request)) as server:
        assert await ask(kind, server.url, lambda client: client.stop("th", "t1")) is True
    assert server.log == ["POST /threads/th/turns/t1/stop"] * 4


@pytest.mark.parametrize("kind", KINDS)
async def test_stopping_says_whether_the_turn_was_running(kind: Kind) -> None:
    with SSEServer(lambda _: error(409, "turn_ended")) as server:
        assert await ask(kind, server.url, lambda client: client.stop("th", "t/1")) is False
        assert server.log == ["POST /threads/th/turns/t%2F1/stop"]
    with SSEServer(lambda _: error(404, "unknown_turn")) as server, pytest.raises(RequestError) as raised:
        await ask(kind, server.url, lambda client: client.stop("th", "t1"))
    assert raised.value.code == "unknown_turn"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "body",
    [
        {"profile": "CORE", "future": 1},
        {"capabilities": {"profile": "CORE", "streaming": {"partialMessages": True, "future": 1}}},
    ],
)
async def test_capabilities(kind: Kind, body: object) -> None:
    with SSEServer(lambda _: json_answer(body)) as server:
        capabilities = await ask(kind, server.url, lambda client: client.capabilities())
    assert capabilities.profile == "CORE"
    assert server.log == ["GET /capabilities"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [{"profile": 5}, [], "x"])
async def test_capabilities_that_are_none(kind: Kind, body: object) -> None:
    with SSEServer(lambda _: json_answer(body)) as server, pytest.raises(StreamError):
        await ask(kind, server.url, lambda client: client.capabilities())


PAUSED: dict[str, Any] = {
    **TURN[-1],
    "finishReason": "paused",
    "outcome": {"type": "paused", "asks": [{"askId": "a1", "kind": "approval"}]},
}
CALLED = [
    *TURN[:2],
    {"type": "tool.start", "seq": 2, "toolCallId": "c1", "name": "look", "turnId": "t1"},
    {"type": "tool.args.assembled", "seq": 3, "toolCallId": "c1", "input": {"a": 1}},
    {"type": "message.end", "seq": 4, "id": "m1"},
    {**TURN[-1], "seq": 5, "finishReason": "tool_call"},
]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_turn_waits_for_is_answered_by_the_next_input(kind: Kind) -> None:
    with SSEServer(TurnScript([*TURN[:-1], PAUSED])) as server:
        followed = await follow(kind, server.url)
        [ask] = followed.turn.open_asks
        assert ask.ask_id == "a1"
        assert followed.turn.open_calls == []
        answer = AgHitlAnswer(ask_id=ask.ask_id, status="resolved", reply=True)
        await follow(kind, server.url, lambda client: client.resume("th", [answer], turn_id="t2"))
    with SSEServer(TurnScript(CALLED)) as other:
        followed = await follow(kind, other.url)
        [call] = followed.turn.open_calls
        assert (call.tool_call_id, call.name, call.input) == ("c1", "look", {"a": 1})
        assert followed.turn.open_asks == []
        result = AgToolResult(tool_call_id=call.tool_call_id, content=[TextBlock(text="seen")])
        await follow(kind, other.url, lambda client: client.tool_result("th", [result], turn_id="t2"))
    envelope = {"protocol": "agjson", "version": "1.0.0-draft.1", "threadId": "th", "turnId": "t2"}
    answers = [{"askId": "a1", "status": "resolved", "reply": True}]
    assert server.requests[1].body == {"kind": "resume", **envelope, "answers": answers}
    results = [{"toolCallId": "c1", "content": [{"type": "text", "text": "seen"}]}]
    assert other.requests[1].body == {"kind": "tool-result", **envelope, "results": results}


async def test_ids_that_are_not_given_are_new() -> None:
    async with AgentClient("http://127.0.0.1:1") as client:
        turns = [client.start("a"), client.start("b"), client.resume("th"), client.tool_result("th", [])]
    assert len({turn.turn_id for turn in turns}) == 4
    assert len({turn.thread_id for turn in turns}) == 3


async def test_nothing_is_sent_before_the_first_event_is_asked_for() -> None:
    with SSEServer(TurnScript(TURN)) as server:
        async with AgentClient(server.url) as client:
            turn = hello(client)
            await turn.aclose()
            assert [event async for event in turn] == []
        assert server.log == []


async def test_the_fold_stands_where_the_events_stand() -> None:
    with SSEServer(TurnScript(TURN)) as server:
        async with AgentClient(server.url) as client:
            turn = hello(client)
            texts: list[Any] = []
            async for event in turn:
                assert turn.seq == event.seq
                assert turn.last_event_id == f"t1:{event.seq}"
                if event.type == "text.delta":
                    texts.append(turn.result.messages[0].content[0].text)
                assert turn.over == (event.type == "turn.done")
    assert texts == ["Grüße, ", "Grüße, world"]


async def test_a_thread_is_remembered_from_turn_to_turn() -> None:
    later = [{**event, "turnId": "t2"} if "turnId" in event else dict(event) for event in TURN]
    for event in later:
        if event.get("id") in ("m1", "b"):
            event["id"] += "2"
    scripts = [TurnScript(TURN), TurnScript(later)]
    with SSEServer(lambda _: scripts.pop(0)(_)) as server:
        async with AgentClient(server.url, max_threads=1) as client:
            assert client.known("th") is None
            first = [event async for event in hello(client)]
            turn = client.start("Again", thread_id="th", turn_id="t2")
            second = [event async for event in turn]
            assert client.known("th") == reduce([*first, *second]).result
            assert [message.id for message in turn.result.messages] == ["m1", "m12"]
            client.start("Elsewhere", thread_id="other")
            assert client.known("th") is None
            assert client.known("other") is not None
            client.forget("other")
            client.forget("never known")
            assert client.known("other") is None


async def test_a_snapshot_is_what_the_fold_goes_on_from() -> None:
    script = TurnScript(TURN, runs=False)
    script.began = True
    later = [{**event, "turnId": "t2"} if "turnId" in event else dict(event) for event in TURN[:1]]
    stream = Answer([b"".join(frame(event, "t2") for event in later)], end="cut")
    with SSEServer(lambda request: stream if request.method == "POST" else script(request)) as server:
        async with AgentClient(server.url) as client:
            await client.snapshot("th")
            turn = client.start("Again", thread_id="th", turn_id="t2")
            await anext(turn)
            assert [each.turn_id for each in turn.result.turns] == ["t1", "t2"]
            assert turn.result.messages == RESULT.messages
            await turn.aclose()


@pytest.mark.parametrize("how", ["break", "aclose", "cancel", "client"])
async def test_leaving_early_closes_the_connection_and_stops_nothing(how: str) -> None:
    script = TurnScript(TURN, posts=[Answer([TurnScript(TURN).stream(0)[:200], threading.Event()])])
    with SSEServer(script) as server:
        async with httpx.AsyncClient(verify=False) as http:
            client = AgentClient(server.url, http=http)
            turn = hello(client)
            if how == "break":
                async for _ in turn:
                    break
                del turn
                gc.collect()
            elif how == "aclose":
                await anext(turn)
                await turn.aclose()
            elif how == "cancel":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        async for _ in turn:
                            pass
            else:
                await anext(turn)
                await client.aclose()
            assert await asyncio.to_thread(server.gone.wait, 5)
            assert not http.is_closed
    assert server.log == ["POST /"]


async def test_leaving_early_in_a_thread_closes_the_connection() -> None:
    script = TurnScript(TURN, posts=[Answer([TurnScript(TURN).stream(0)[:200], threading.Event()])])

    def run(url: str) -> None:
        with SyncAgentClient(url) as client:
            with hello(client) as turn:
                next(turn)
            assert list(turn) == []

    with SSEServer(script) as server:
        await asyncio.to_thread(run, server.url)
        assert await asyncio.to_thread(server.gone.wait, 5)


async def test_a_turn_that_was_broken_off_does_not_look_as_if_it_had_ended() -> None:
    script = TurnScript(TURN, posts=[Answer([TurnScript(TURN).stream(0)[:200], threading.Event()])])
    with SSEServer(script) as server:
        async with AgentClient(server.url) as client:
            turn = hello(client)
            await anext(turn)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await anext(turn)
                    await anext(turn)
            with pytest.raises(ConnectionLostError) as raised:
                await anext(turn)
            assert raised.value.code == "interrupted"
            await turn.aclose()
            assert [event async for event in turn] == []


def test_a_turn_that_failed_does_not_either() -> None:
    with SSEServer(lambda _: error(403, "forbidden")) as server, SyncAgentClient(server.url) as client:
        turn = hello(client)
        with pytest.raises(RequestError):
            next(turn)
        with pytest.raises(ConnectionLostError) as raised:
            next(turn)
        assert raised.value.code == "interrupted"


async def test_a_turn_that_was_given_up_is_taken_up_by_the_same_client_without_loss() -> None:
    script = TurnScript(TURN, posts=[320], reads=[0, 0])
    with SSEServer(script) as server:
        async with AgentClient(server.url, backoff=0, max_retries=2) as client:
            turn = hello(client)
            events: list[Any] = []
            with pytest.raises(ConnectionLostError):
                async for event in turn:
                    events.append(event)
            later = client.attach("th", turn.last_event_id)
            events += [event async for event in later]
    assert events == [from_dict(event, "event") for event in TURN]
    assert later.result == RESULT
    assert later.resyncs == ()
    assert server.log == ["POST /", *["GET /threads/th/events"] * 3]


def test_a_turn_id_that_the_thread_had_before_says_nothing_about_a_second_run() -> None:
    script = TurnScript(TURN, posts=[None, Answer(unread=True)])
    with SSEServer(script) as server, SyncAgentClient(server.url) as client:
        assert len(list(hello(client))) == len(TURN)
        with pytest.raises(ConnectionLostError) as raised:
            list(hello(client))
    assert raised.value.code == "fate_unknown"
    assert server.log == ["POST /", "POST /"]


async def test_a_turn_is_stopped_from_elsewhere_while_its_events_are_read() -> None:
    stopped = threading.Event()
    abort = {"type": "turn.abort", "seq": 1, "turnId": "t1", "reason": "cancelled"}

    def script(request: Request) -> Answer:
        if request.path.endswith("/stop"):
            stopped.set()
            return Answer([], 202, {})
        return Answer([frame(TURN[0], "t1"), stopped, frame(abort, "t1")])

    for kind in KINDS:
        stopped.clear()
        with SSEServer(script) as server:
            if kind == "async":
                async with AgentClient(server.url) as client, hello(client) as turn:
                    assert (await anext(turn)).type == "turn.start"
                    assert await turn.stop() is True
                    assert [event.type async for event in turn] == ["turn.abort"]
            else:

                def run(url: str) -> None:
                    with SyncAgentClient(url) as client, hello(client) as turn:
                        assert next(turn).type == "turn.start"
                        stopper = threading.Thread(target=turn.stop)
                        stopper.start()
                        assert [event.type for event in turn] == ["turn.abort"]
                        stopper.join()

                await asyncio.to_thread(run, server.url)
            assert server.log == ["POST /", "POST /threads/th/turns/t1/stop"]


async def test_a_turn_without_a_name_cannot_be_stopped() -> None:
    async with AgentClient("http://127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="not known"):
            await client.attach("th").stop()


async def test_many_turns_at_once_keep_apart() -> None:
    def script(request: Request) -> Answer:
        thread = request.body["threadId"]
        turn_id = request.body["turnId"]
        events = [{**event} for event in TURN]
        for event in events:
            for member, value in (("turnId", turn_id), ("threadId", thread)):
                if member in event:
                    event[member] = value
            if event["type"] == "text.delta":
                event["delta"] = f"{thread} "
        return Answer([frame(event, turn_id) for event in events])

    async def one(client: AgentClient, number: int) -> str:
        turn: Any = client.start("Hello", thread_id=f"th{number}")
        async for _ in turn:
            await asyncio.sleep(0)
        return turn.result.messages[0].content[0].text

    with SSEServer(script) as server:
        async with AgentClient(server.url) as client:
            texts = await asyncio.gather(*(one(client, number) for number in range(40)))
        assert texts == [f"th{number} th{number} " for number in range(40)]
        with SyncAgentClient(server.url) as shared:
            found: dict[int, str] = {}

            def run(number: int) -> None:
                turn: Any = shared.start("Hello", thread_id=f"th{number}")
                for _ in turn:
                    pass
                found[number] = turn.result.messages[0].content[0].text

            threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)
        assert found == {number: f"th{number} th{number} " for number in range(20)}


@pytest.mark.parametrize("kind", KINDS)
async def test_headers_and_credentials_go_with_every_request(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[200])) as server:
        followed = await follow(kind, server.url, headers={"x-tenant": "a", "accept": "never"}, auth=("user", "secret"))
    assert followed.events == TURN
    assert [request.headers["x-tenant"] for request in server.requests] == ["a"] * len(server.log)
    assert {request.headers["authorization"] for request in server.requests} == {"Basic dXNlcjpzZWNyZXQ="}
    assert server.requests[0].headers["accept"] == "text/event-stream"


async def test_an_http_client_of_the_caller_may_have_the_address() -> None:
    with SSEServer(TurnScript(TURN, posts=[250])) as server:
        async with httpx.AsyncClient(base_url=server.url, headers={"x-a": "b"}) as http:
            async with AgentClient("/agent", http=http, backoff=0) as client:
                assert len([event async for event in hello(client)]) == len(TURN)
            assert not http.is_closed
    assert server.log == ["POST /agent", "GET /agent/threads/th/events"]
    assert server.requests[0].headers["x-a"] == "b"


@pytest.mark.parametrize(
    "settings",
    [
        {"max_retries": -1},
        {"backoff": -0.1},
        {"max_bytes": 0},
        {"on_malformed": "ignore"},
        {"max_threads": -1},
    ],
)
def test_a_setting_that_is_none_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        SyncAgentClient("http://a.example", **settings)


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"Authorization": "Bearer secret\n"}, "Authorization"),
        ({"Authorization": " Bearer secret"}, "Authorization"),
        ({"X-A": "a\r\nX-B: secret"}, "X-A"),
        ({"X-A": "secret\u00e9"}, "X-A"),
        ({"X-A": "secret\x00"}, "X-A"),
        ({"two words": "secret"}, "'two words'"),
        ({"": "secret"}, "''"),
    ],
)
def test_a_header_that_is_none_is_refused_without_its_value(headers: dict[str, str], named: str) -> None:
    for kind in (AgentClient, SyncAgentClient):
        with pytest.raises(ValueError, match=named) as raised:
            kind("http://a.example", headers=headers)
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_header_that_http_does_not_allow_is_not_tried_again(kind: Kind) -> None:
    class Wrong(httpx.Auth):
        def auth_flow(self, request: httpx.Request) -> Any:
            asked.append(request.url.path)
            request.headers["authorization"] = "Bearer secret\n"
            yield request

    asked: list[str] = []
    with SSEServer(TurnScript(TURN)) as server:
        followed = await follow(kind, server.url, auth=Wrong())
        with pytest.raises(RequestError) as raised:
            await ask(kind, server.url, lambda client: client.snapshot("th"), auth=Wrong())
    assert isinstance(followed.error, RequestError)
    assert followed.code == raised.value.code == "invalid_header"
    assert "secret" not in "".join(traceback.format_exception(followed.error))
    assert asked == ["/", "/threads/th"]
    assert server.log == []


@pytest.mark.parametrize(
    "said",
    [
        [AgMessage(id="u", role="user", content=[TextBlock(text="Hi")])],
        AgMessage(id="u", role="user", content=[TextBlock(text="Hi")]),
        [{"type": "text", "text": "Hi"}],
        {"type": "text", "text": "Hi"},
        TextBlock(text="Hi"),
        ["Hi"],
        b"Hi",
        None,
    ],
)
def test_what_is_neither_text_nor_blocks_is_not_said(said: Any) -> None:
    client = SyncAgentClient("http://a.example")
    with client, pytest.raises(TypeError, match=r"text or blocks, not messages or plain data: use run\(\)"):
        client.start(said)


async def test_the_http_client_is_of_the_same_kind() -> None:
    untyped: Any
    with httpx.Client() as plain:
        untyped = plain
        with pytest.raises(TypeError, match=r"http is an httpx\.AsyncClient here, not an httpx\.Client"):
            AgentClient("http://a.example", http=untyped)
        assert not plain.is_closed
    async with httpx.AsyncClient() as other:
        untyped = other
        with pytest.raises(TypeError, match=r"http is an httpx\.Client here, not an httpx\.AsyncClient"):
            SyncAgentClient("http://a.example", http=untyped)


@pytest.mark.parametrize("address", ["", "a.example", "/agent", "ftp://a.example"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        SyncAgentClient(address)


@pytest.mark.parametrize(("one", "other"), [(AgentClient, SyncAgentClient), (Turn, SyncTurn)])
def test_the_twins_have_the_same_names_and_arguments(one: type, other: type) -> None:
    names = {name.replace("aclose", "close") for name in dir(one) if not name.startswith("_")}
    assert names == {name for name in dir(other) if not name.startswith("_")}
    for name in names - {"close"}:
        mine, theirs = getattr(one, name), getattr(other, name)
        if callable(mine):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(theirs).parameters), name
    assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)


def test_without_httpx_the_extra_is_named() -> None:
    program = "import sys; sys.modules['httpx'] = None; import agjson.middleware.client"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("MissingExtraError: httpx is not installed: pip install 'agjson[client]'\n")


def test_every_error_is_one_of_the_library() -> None:
    assert issubclass(ClientError, AgJSONError)
    raised = RequestError("no", code="forbidden", status=403, path="$.run", details={"turnId": "t"})
    assert str(raised) == "no - at `$.run` (forbidden, status 403)"
    assert str(RequestError("no", code="forbidden", status=403)) == "no (forbidden, status 403)"
    assert (raised.message, raised.path, raised.retriable, raised.retry_after) == ("no", "$.run", False, None)


async def test_what_is_unknown_is_encoded_as_it_came() -> None:
    unknown = b'{"type":"future.thing","seq":1,"x":1.50,"y":[ 1 ]}'
    stream = frame(TURN[0], "t1") + b"data: " + unknown + b"\n\n"
    with SSEServer(TurnScript(TURN, posts=[Answer([stream], end="cut")])) as server:
        async with AgentClient(server.url) as client, hello(client) as turn:
            await anext(turn)
            assert encode(await anext(turn)) == unknown
