"""An input is never run twice: what the client does when the connection breaks before the first event."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from agjson.middleware.client import ConnectionLostError, RequestError, StreamError
from tests.support.clients import KINDS, TURN, Kind, follow
from tests.support.sse_server import (
    DROP,
    STREAM,
    Answer,
    Request,
    SSEServer,
    TurnScript,
    error,
    frame,
    html,
    json_answer,
)

pytestmark = pytest.mark.parametrize("kind", KINDS)

POST, THREAD, EVENTS = "POST /", "GET /threads/th", "GET /threads/th/events?turnId=t1"


class Hidden(TurnScript):
    """Runs the turn of the first post although the connection breaks."""

    def __call__(self, request: Request) -> Answer:
        answer = super().__call__(request)
        if request.method == "POST":
            self.began = True
        return answer


async def test_the_whole_stream_takes_one_request(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN)) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST]
    assert followed.turn.reconnects == 0
    [request] = server.requests
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["content-type"] == "application/json"
    assert request.body == {
        "kind": "start",
        "protocol": "agjson",
        "version": "1.0.0-draft.1",
        "threadId": "th",
        "turnId": "t1",
        "messages": [{"id": "u1", "role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    }


async def test_a_run_that_the_server_has_is_attached_to(kind: Kind) -> None:
    with SSEServer(Hidden(TURN, posts=[DROP])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, EVENTS]
    assert server.requests[2].last_event_id is None


async def test_a_run_that_has_ended_is_read_from_its_start(kind: Kind) -> None:
    with SSEServer(Hidden(TURN, posts=[DROP], runs=False)) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, EVENTS]


async def test_a_run_whose_events_are_gone_is_told_by_its_snapshot(kind: Kind) -> None:
    script = Hidden(TURN, posts=[DROP], reads=[Answer([], 204, {})], runs=False)
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.error is None
    assert followed.types == ["messages.snapshot"]
    assert len(followed.turn.resyncs) == 1
    assert followed.turn.outcome is not None
    assert followed.turn.outcome.type == "success"
    assert followed.turn.result.messages[0].id == "m1"
    assert server.log == [POST, THREAD, EVENTS, THREAD]


async def test_a_run_that_the_server_denies_twice_is_sent_again(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[DROP])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, THREAD, POST]
    assert server.requests[0].raw == server.requests[3].raw


async def test_a_run_that_comes_late_is_found_by_the_second_look(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[DROP])
    looks: list[str] = []

    def late(request: Request) -> Answer:
        answer = script(request)
        if str(request) == THREAD:
            looks.append(str(request))
            script.began = True
        return answer

    with SSEServer(late) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, THREAD, EVENTS]


@pytest.mark.parametrize("code", ["thread_busy", "turn_exists"])
async def test_a_run_that_comes_later_still_refuses_the_second_post(kind: Kind, code: str) -> None:
    script = TurnScript(TURN, posts=[DROP, error(409, code, turnId="t1")])
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, THREAD, POST, EVENTS]


async def test_an_ask_that_the_first_post_has_answered_already(kind: Kind) -> None:
    script = Hidden(TURN, posts=[DROP, error(409, "unknown_ask")])
    answers: list[Answer | None] = [error(404, "unknown_thread"), error(404, "unknown_thread")]

    def forgetful(request: Request) -> Answer:
        if str(request) == THREAD and answers:
            return answers.pop() or script(request)
        return script(request)

    with SSEServer(forgetful) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, THREAD, POST, THREAD, EVENTS]


async def test_without_resend_a_run_that_the_server_denies_is_an_error(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[DROP])) as server:
        followed = await follow(kind, server.url, resend=False)
    assert isinstance(followed.error, ConnectionLostError)
    assert followed.code == "fate_unknown"
    assert server.log == [POST, THREAD, THREAD]


async def test_a_source_that_cannot_be_asked_is_not_sent_the_input_again(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[DROP], routes=False)) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, ConnectionLostError)
    assert followed.code == "fate_unknown"
    assert server.log == [POST, THREAD]


async def test_a_server_may_name_the_turn_after_the_one_asked_for(kind: Kind) -> None:
    events = [{**event, "turnId": "t1:2"} if "turnId" in event else event for event in TURN]
    with SSEServer(Hidden(events, posts=[DROP])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == events
    assert followed.turn.turn_id == "t1:2"


async def test_the_run_of_somebody_else_is_not_taken_for_ours(kind: Kind) -> None:
    other = [{**event, "turnId": "t9"} if "turnId" in event else event for event in TURN]
    script = Hidden(other, posts=[DROP, error(409, "thread_busy", turnId="t9")])
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, RequestError)
    assert followed.code == "thread_busy"
    assert followed.error.details == {"turnId": "t9"}
    assert followed.error.retriable
    assert followed.events == []
    assert server.log == [POST, THREAD, THREAD, POST, THREAD]


@pytest.mark.parametrize("status", [502, 504])
async def test_an_error_page_of_a_proxy_leaves_the_fate_open(kind: Kind, status: int) -> None:
    with SSEServer(Hidden(TURN, posts=[html(status)])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, EVENTS]


@pytest.mark.parametrize(
    "refusal",
    [
        error(429, "too_many_runs", headers={"retry-after": "0"}),
        error(503, "unavailable"),
        html(408),
    ],
)
async def test_an_input_that_was_refused_for_now_is_sent_again(kind: Kind, refusal: Answer) -> None:
    with SSEServer(TurnScript(TURN, posts=[refusal, refusal])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, POST, POST]


async def test_refusals_that_do_not_end_are_told(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[error(429, "too_many_runs")] * 9)) as server:
        followed = await follow(kind, server.url, max_retries=2)
    assert isinstance(followed.error, RequestError)
    assert (followed.error.status, followed.code, followed.error.retriable) == (429, "too_many_runs", True)
    assert server.log == [POST] * 3


async def test_a_wait_that_is_too_long_is_told_at_once(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[error(429, "too_many_runs", headers={"retry-after": "3600"})])
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, RequestError)
    assert followed.error.retry_after == 3600.0
    assert server.log == [POST]


@pytest.mark.parametrize(
    ("answer", "status", "code", "path"),
    [
        (error(400, "invalid_input", path="$.messages[0].role"), 400, "invalid_input", "$.messages[0].role"),
        (error(401, "unauthorized"), 401, "unauthorized", None),
        (error(403, "forbidden"), 403, "forbidden", None),
        (error(409, "thread_paused", askIds=["a"]), 409, "thread_paused", None),
        (error(413, "too_large"), 413, "too_large", None),
        (error(422, "not_allowed", path="$.run.system"), 422, "not_allowed", "$.run.system"),
        (error(500, "internal"), 500, "internal", None),
        (html(500), 500, "http_500", None),
    ],
)
async def test_an_input_that_is_refused_is_told_with_its_place(
    kind: Kind, answer: Answer, status: int, code: str, path: str | None
) -> None:
    with SSEServer(TurnScript(TURN, posts=[answer])) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, RequestError)
    assert (followed.error.status, followed.code, followed.error.path) == (status, code, path)
    assert not followed.error.retriable
    assert "secret" not in str(followed.error)
    assert server.log == [POST]


@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"<html>secret</html>"], 200, {"content-type": "text/html"}),
        json_answer({"secret": 1}),
        Answer([], 204, {}),
        Answer([], 202, {}),
    ],
)
async def test_an_answer_that_is_no_stream_is_told(kind: Kind, answer: Answer) -> None:
    with SSEServer(TurnScript(TURN, posts=[answer])) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, StreamError)
    assert followed.code == "not_a_stream"
    assert "secret" not in str(followed.error)
    assert server.log == [POST]


@pytest.mark.parametrize(
    "headers", [{}, {"content-type": "Text/Event-Stream; charset=UTF-8"}, {"content-type": "text/event-stream;x=y"}]
)
async def test_a_stream_need_not_say_that_it_is_one(kind: Kind, headers: dict[str, str]) -> None:
    with SSEServer(TurnScript(TURN, posts=[Answer([TurnScript(TURN).stream(0)], 200, headers)])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN


async def test_nobody_listens(kind: Kind) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        followed = await follow(kind, f"http://127.0.0.1:{unused.getsockname()[1]}", max_retries=2)
    assert isinstance(followed.error, ConnectionLostError)
    assert followed.code == "unreachable"
    assert followed.error.retriable
    assert followed.turn.seq == -1


async def test_redirects_of_the_same_server_keep_the_method(kind: Kind) -> None:
    script = TurnScript(TURN)

    def mounted(request: Request) -> Answer:
        if request.path == "/agent":
            return Answer([], 307, {"location": "/agent/"})
        return script(request)

    with SSEServer(mounted) as server:
        followed = await follow(kind, f"{server.url}/agent?key=1")
    assert followed.events == TURN
    assert server.log == ["POST /agent?key=1", "POST /agent/"]


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (307, "http://localhost:1/"),
        (302, "/elsewhere"),
        (303, "/elsewhere"),
        (308, "ftp://127.0.0.1/"),
        (307, ""),
        (307, "http://[/"),
        (307, "/\xff"),
    ],
)
async def test_other_redirects_are_not_followed(kind: Kind, status: int, location: str) -> None:
    with SSEServer(lambda _: Answer([], status, {"location": location})) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, RequestError)
    assert followed.error.status == status
    assert server.log == [POST]


async def test_a_circle_of_redirects_ends(kind: Kind) -> None:
    with SSEServer(lambda _: Answer([], 307, {"location": "/"})) as server:
        followed = await follow(kind, server.url)
    assert followed.code == "redirected"
    assert server.log == [POST] * 6


def _first(events: Sequence[dict[str, object]]) -> bytes:
    return b"".join(frame(event, "t1") for event in events)


async def test_what_follows_the_terminal_is_not_read(kind: Kind) -> None:
    other = [{**event, "turnId": "t2"} if "turnId" in event else event for event in TURN]
    with SSEServer(lambda _: Answer([_first(TURN) + _first(other)], 200, STREAM)) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
