"""A stream that breaks is taken up again; what is missing is read again or told."""

from __future__ import annotations

import gzip
import threading
import time
from typing import Any

import pytest

from agjson import Reducer, reduce
from agjson.middleware.client import ConnectionLostError, RequestError, StreamError
from agjson.wire import from_dict, to_dict
from tests.support.clients import KINDS, TURN, Kind, attach, follow
from tests.support.sse_server import STREAM, Answer, Request, SSEServer, TurnScript, error, frame, html, json_answer

pytestmark = pytest.mark.parametrize("kind", KINDS)

POST, THREAD, EVENTS = "POST /", "GET /threads/th", "GET /threads/th/events"
RESULT = reduce([from_dict(event, "event") for event in TURN]).result


def upto(seq: int) -> int:
    """The length of the stream up to and with an event."""
    return len(b"".join(frame(event, "t1") for event in TURN if event["seq"] <= seq))


async def test_the_place_is_sent_along(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[upto(3)])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, EVENTS]
    assert server.requests[1].headers["last-event-id"] == "t1:3"
    assert server.requests[1].headers["accept"] == "text/event-stream"
    assert (followed.turn.last_event_id, followed.turn.reconnects, followed.turn.over) == ("t1:7", 1, True)


async def test_a_place_that_no_header_can_hold_goes_into_the_query(kind: Kind) -> None:
    place = "t1 \x01ü "
    first = f"id: {place}\ndata: ".encode() + frame(TURN[0], None)[6:]
    answers = {"POST": Answer([first], end="cut"), "GET": Answer([TurnScript(TURN).stream(1)])}
    with SSEServer(lambda request: answers[request.method]) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.requests[1].query == {"lastEventId": place}
    assert "last-event-id" not in server.requests[1].headers


async def test_events_that_come_twice_are_delivered_once(kind: Kind) -> None:
    again = Answer([TurnScript(TURN).stream(0)])
    with SSEServer(TurnScript(TURN, posts=[upto(4)], reads=[again])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert followed.turn.result == RESULT
    assert not followed.turn.needs_resync


@pytest.mark.parametrize(
    "passing", [html(502), html(503), error(500, "internal"), error(429, "x"), Answer(unread=True)]
)
async def test_passing_failures_are_waited_out(kind: Kind, passing: Answer) -> None:
    with SSEServer(TurnScript(TURN, posts=[upto(2)], reads=[passing] * 3)) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, *[EVENTS] * 4]


async def test_when_the_attempts_are_used_up_what_came_stays(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[upto(4)], reads=[0] * 9)) as server:
        followed = await follow(kind, server.url, max_retries=3)
    assert isinstance(followed.error, ConnectionLostError)
    assert followed.code == "retries_used_up"
    assert followed.error.retriable
    assert followed.events == TURN[:5]
    assert server.log == [POST, *[EVENTS] * 3]
    turn = followed.turn
    assert (turn.last_event_id, turn.seq, turn.over, turn.terminal, turn.outcome) == ("t1:4", 4, False, None, None)
    assert to_dict(turn.result.messages[0])["content"] == [{"type": "text", "text": "Grüße, world"}]


async def test_attempts_are_counted_from_the_last_event(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[upto(0)], reads=[0, 0, upto(3) - upto(0), 0, 0])
    with SSEServer(script) as server:
        followed = await follow(kind, server.url, max_retries=3)
    assert followed.events == TURN


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_source_without_threads_cannot_be_taken_up(kind: Kind, status: int) -> None:
    script = TurnScript(TURN, posts=[upto(5)], reads=[html(status)])
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, ConnectionLostError)
    assert followed.code == "not_resumable"
    assert followed.events == TURN[:6]
    assert server.log == [POST, EVENTS]


@pytest.mark.parametrize("end", ["whole", "eof"])
async def test_a_stream_that_ends_without_its_terminal_is_never_a_silent_end(kind: Kind, end: Any) -> None:
    script = TurnScript(TURN, posts=[Answer([TurnScript(TURN).stream(0)[: upto(6)]], end=end)], routes=False)
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.code == "not_resumable"
    assert followed.events == TURN[:7]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_client_that_is_shut_out_meanwhile_is_told(kind: Kind, status: int) -> None:
    with SSEServer(TurnScript(TURN, posts=[upto(5)], reads=[error(status, "forbidden")])) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, RequestError)
    assert followed.error.status == status
    assert followed.events == TURN[:6]


async def test_a_sign_in_page_is_not_read_as_a_stream(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[upto(5)], reads=[html(200)])) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, StreamError)
    assert followed.code == "not_a_stream"


async def test_events_that_are_not_kept_are_told_by_a_snapshot(kind: Kind) -> None:
    """410: the fold is mended, what the snapshot stands for is not delivered, and the rest of the turn is."""
    script = TurnScript(TURN, posts=[upto(1)], kept_from=6, upto=5)
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.error is None
    assert server.log == [POST, EVENTS, THREAD, EVENTS]
    assert server.requests[3].last_event_id == "t1:5"
    assert followed.types == ["turn.start", "message.start", "messages.snapshot", "message.end", "turn.done"]
    assert followed.seqs == [0, 1, 5, 6, 7]
    [resync] = followed.turn.resyncs
    assert resync.seq == 1
    assert followed.turn.outcome is not None
    assert followed.turn.result.messages == RESULT.messages


async def test_a_turn_that_ended_meanwhile_is_told_by_its_snapshot(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[upto(1)], kept_from=99, runs=False)
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.error is None
    assert followed.types == ["turn.start", "message.start", "messages.snapshot"]
    assert followed.turn.result == RESULT
    assert followed.turn.over
    assert followed.turn.terminal is None
    assert followed.turn.outcome == RESULT.turns[0].outcome


async def test_a_turn_that_is_followed_by_another_is_told_by_its_snapshot(kind: Kind) -> None:
    """A source without ids serves the running turn, which is another one by now."""
    other = b"".join(frame({**event, "turnId": "t2"} if "turnId" in event else event, None) for event in TURN)
    script = TurnScript(TURN, posts=[upto(1)], reads=[Answer([other])], ids=False, runs=False)
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.error is None
    assert followed.types[-1] == "messages.snapshot"
    assert followed.turn.result == RESULT


async def test_a_snapshot_from_before_the_turn_lets_it_be_folded_from_its_start(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[upto(4)], reads=[error(410, "resync_required")], upto=-1)
    script.before = [{**event, "turnId": "t0", "id": "m0"} if "turnId" in event else event for event in TURN[:2]]
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, EVENTS, THREAD, f"{EVENTS}?turnId=t1"]
    assert server.requests[3].last_event_id is None
    assert [message.id for message in followed.turn.result.messages] == ["m0", "m1"]
    assert followed.turn.result.messages[1] == RESULT.messages[0]


@pytest.mark.parametrize(
    "thread",
    [error(404, "unknown_thread"), json_answer({"events": [{"type": "messages.snapshot", "seq": 0, "messages": []}]})],
)
async def test_a_server_that_forgot_the_turn_is_an_error(kind: Kind, thread: Answer) -> None:
    script = TurnScript(TURN, posts=[upto(4)], kept_from=9)
    with SSEServer(lambda request: thread if str(request) == THREAD else script(request)) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, ConnectionLostError)
    assert followed.code == "turn_lost"
    assert followed.events == TURN[:5]


async def test_a_server_that_says_gone_for_ever_is_not_asked_for_ever(kind: Kind) -> None:
    with SSEServer(TurnScript(TURN, posts=[upto(1)], kept_from=99, upto=5)) as server:
        followed = await follow(kind, server.url, max_retries=3)
    assert isinstance(followed.error, RequestError)
    assert followed.error.status == 410
    assert len(server.log) < 12


def without(*seqs: int) -> bytes:
    """The stream with events lost on the way."""
    return b"".join(frame(event, "t1") for event in TURN if event["seq"] not in seqs)


async def test_events_lost_on_the_way_are_read_again(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[Answer([without(3, 4)])])
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert followed.turn.result == RESULT
    assert followed.turn.resyncs == ()
    assert server.log == [POST, THREAD, EVENTS]


async def test_events_that_stay_lost_are_told_by_a_snapshot(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[Answer([without(3, 4)])], reads=[Answer([without(0, 1, 2, 3, 4)])], upto=6)
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.seqs == [0, 1, 2, 6, 7]
    assert followed.types[3] == "messages.snapshot"
    assert followed.turn.result == RESULT
    assert [resync.seq for resync in followed.turn.resyncs] == [2]
    assert "2 was followed by 5" in followed.turn.resyncs[0].reason
    # A fold of the caller's own is mended by the same events.
    reducer = Reducer()
    for event in followed.events:
        reducer.push(from_dict(event, "event"))
    assert not reducer.needs_resync


async def test_events_lost_from_a_source_without_threads_park_the_fold(kind: Kind) -> None:
    script = TurnScript(TURN, posts=[Answer([without(3)])], routes=False)
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.error is None
    assert followed.events == [event for event in TURN if event["seq"] != 3]
    assert followed.turn.needs_resync
    assert server.log == [POST, THREAD]


async def test_a_fold_that_parks_for_another_reason_is_whole_at_the_end(kind: Kind) -> None:
    """A delta of a block that nothing opened: the producer's fault, so reading again would not help."""
    events = [{**event, "id": "lost"} if event["seq"] == 3 else event for event in TURN]
    script = TurnScript(events)
    saved = TurnScript(TURN)
    saved.began, saved.runs = True, False
    with SSEServer(lambda request: saved(request) if str(request) == THREAD else script(request)) as server:
        followed = await follow(kind, server.url)
    assert followed.error is None
    assert followed.types[:5] == ["turn.start", "message.start", "text.start", "text.delta", "messages.snapshot"]
    assert [event for event in followed.events if event["type"] != "messages.snapshot"] == events
    assert followed.turn.result == RESULT
    assert len(followed.turn.resyncs) == 1
    assert not followed.turn.needs_resync


BROKEN = b'id: t1:3\ndata: {"type":"text.delta","seq":3,"id":"b"}\n\n'


async def test_a_malformed_event_is_an_error_with_its_place(kind: Kind) -> None:
    stream = without(3, 4, 5, 6, 7) + BROKEN + without(0, 1, 2, 3)
    with SSEServer(TurnScript(TURN, posts=[Answer([stream])])) as server:
        followed = await follow(kind, server.url)
    assert isinstance(followed.error, StreamError)
    assert (followed.code, followed.error.path) == ("malformed_event", "$")
    assert followed.events == TURN[:3]
    assert server.log == [POST]


async def test_a_malformed_event_may_be_left_out_and_is_told(kind: Kind) -> None:
    stream = without(3, 4, 5, 6, 7) + BROKEN + without(0, 1, 2, 3)
    script = TurnScript(TURN, posts=[Answer([stream])], upto=6)
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url, on_malformed="skip")
    assert followed.error is None
    assert followed.seqs == [0, 1, 2, 6, 7]
    assert followed.types[3] == "messages.snapshot"
    assert len(followed.turn.resyncs) == 1
    [skipped] = followed.turn.skipped
    assert b'"seq":3' in skipped.data
    assert [message.id for message in followed.turn.result.messages] == ["m1"]
    assert followed.turn.result.messages == RESULT.messages


async def test_what_is_unknown_is_delivered_as_it_came(kind: Kind) -> None:
    unknown = b'{"type":"future.thing","seq":3,"x":1.50}'
    stream = without(3, 4, 5, 6, 7) + b"data: " + unknown + b"\n\ndata: [DONE]\n\ndata:\n\nevent: ping\n\n"
    stream += b'event: custom\ndata: {"type":"ext.acme.x","seq":4,"value":1}\n\n' + without(0, 1, 2, 3, 4)
    with SSEServer(TurnScript(TURN, posts=[Answer([stream])])) as server:
        followed = await follow(kind, server.url)
    assert followed.seqs == list(range(8))
    assert followed.types[3:5] == ["future.thing", "ext.acme.x"]
    assert followed.events[3] == {"type": "future.thing", "seq": 3, "x": 1.5}
    assert not followed.turn.needs_resync


async def test_an_event_that_is_too_long_is_an_error(kind: Kind) -> None:
    stream = frame(TURN[0], "t1") + b'data: {"type":"text.delta","delta":"' + b"x" * 5000
    with SSEServer(TurnScript(TURN, posts=[Answer([stream])])) as server:
        followed = await follow(kind, server.url, max_bytes=4096)
    assert isinstance(followed.error, StreamError)
    assert followed.code == "too_large"
    assert followed.events == TURN[:1]


async def test_silence_breaks_a_connection_and_comments_keep_it(kind: Kind) -> None:
    silent = threading.Event()
    quiet: list[Any] = [TurnScript(TURN).stream(0)[: upto(2)], silent]
    kept: list[Any] = [part for _ in range(8) for part in (b": keep-alive\n\n", 0.05)]
    script = TurnScript(TURN, posts=[Answer(quiet)], reads=[Answer([*kept, TurnScript(TURN).stream(3)])])
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url, idle_timeout=0.2)
    silent.set()
    assert followed.events == TURN
    assert server.log == [POST, EVENTS]


async def test_what_the_stream_asks_to_wait_is_waited(kind: Kind) -> None:
    stream = b"retry: 300\n\n" + TurnScript(TURN).stream(0)[: upto(2)]
    with SSEServer(TurnScript(TURN, posts=[Answer([stream], end="cut")])) as server:
        began = time.monotonic()
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert 0.3 <= time.monotonic() - began < 5


async def test_what_an_answer_asks_to_wait_is_waited(kind: Kind) -> None:
    busy = error(503, "unavailable", headers={"retry-after": "1"})
    with SSEServer(TurnScript(TURN, posts=[upto(2)], reads=[busy])) as server:
        began = time.monotonic()
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert 1 <= time.monotonic() - began < 6


async def test_a_compressed_stream_is_read_and_taken_up(kind: Kind) -> None:
    packed = gzip.compress(TurnScript(TURN).stream(0))
    cut = Answer([packed[: len(packed) - 20]], 200, {**STREAM, "content-encoding": "gzip"}, end="cut")
    script = TurnScript(TURN, posts=[cut])
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert len(server.log) >= 2


async def test_bytes_that_are_not_what_their_encoding_says_break_the_connection(kind: Kind) -> None:
    wrong = Answer([TurnScript(TURN).stream(0)], 200, {**STREAM, "content-encoding": "gzip"})
    script = TurnScript(TURN, posts=[wrong])
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN
    assert server.log == [POST, THREAD, f"{EVENTS}?turnId=t1"]


async def test_a_stream_in_single_bytes(kind: Kind) -> None:
    stream = TurnScript(TURN).stream(0)
    with SSEServer(TurnScript(TURN, posts=[Answer([bytes([byte]) for byte in stream])])) as server:
        followed = await follow(kind, server.url)
    assert followed.events == TURN


async def test_attaching_to_a_running_turn_gives_the_thread_and_then_the_turn(kind: Kind) -> None:
    script = TurnScript(TURN, upto=-1)
    script.began = True
    script.before = [{**event, "turnId": "t0", "id": "m0"} if "turnId" in event else event for event in TURN[:2]]
    with SSEServer(script) as server:
        followed = await follow(kind, server.url, attach())
    assert followed.types == ["messages.snapshot", *(event["type"] for event in TURN)]
    assert [message.id for message in followed.turn.result.messages] == ["m0", "m1"]
    assert followed.turn.turn_id == "t1"
    assert server.log == [THREAD, f"{EVENTS}?turnId=t1"]


async def test_attaching_to_a_turn_whose_beginning_is_in_the_snapshot(kind: Kind) -> None:
    script = TurnScript(TURN, upto=4)
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url, attach())
    assert server.log[:2] == [THREAD, EVENTS]
    assert server.requests[1].last_event_id == "t1:4"
    assert followed.types[0] == "messages.snapshot"
    assert [event for event in followed.events if event["type"] != "messages.snapshot"] == TURN[5:]


async def test_attaching_to_a_thread_that_rests_gives_the_thread(kind: Kind) -> None:
    script = TurnScript(TURN, runs=False)
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url, attach())
    assert followed.types == ["messages.snapshot"]
    assert followed.turn.result == RESULT
    assert followed.turn.over
    assert server.log == [THREAD]


async def test_attaching_at_a_place(kind: Kind) -> None:
    script = TurnScript(TURN)
    script.began = True
    with SSEServer(script) as server:
        followed = await follow(kind, server.url, attach("t1:4"))
    assert [event for event in followed.events if event["type"] != "messages.snapshot"] == TURN[5:]
    assert followed.turn.turn_id == "t1"
    # The client had not seen what came before, so it has asked for it.
    assert followed.turn.result.messages == RESULT.messages


@pytest.mark.parametrize("place", [None, "t1:4"])
async def test_attaching_to_what_is_not_there(kind: Kind, place: str | None) -> None:
    with SSEServer(lambda _: error(404, "unknown_thread")) as server:
        followed = await follow(kind, server.url, attach(place))
    assert isinstance(followed.error, RequestError)
    assert (followed.code, followed.error.status) == ("unknown_thread", 404)


async def test_a_thread_may_have_any_name(kind: Kind) -> None:
    asked: list[str] = []

    def script(request: Request) -> Answer:
        asked.append(request.path)
        return error(404, "unknown_thread")

    with SSEServer(script) as server:
        for name in ("a/b?c#d", "..", "ü %2F", "\ud800", "a\r\nHost: x"):
            followed = await follow(kind, f"{server.url}/x/", lambda client, name=name: client.attach(name))
            assert followed.code == "unknown_thread"
    assert asked == [
        "/x/threads/a%2Fb%3Fc%23d",
        "/x/threads/%2E%2E",
        "/x/threads/%C3%BC%20%252F",
        "/x/threads/%ED%A0%80",
        "/x/threads/a%0D%0AHost%3A%20x",
    ]
