"""The server over real sockets: connections that are reused, broken, slow, and a server that is ended or killed."""

from __future__ import annotations

import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from agjson.wire import encode, ingest_event, to_dict
from agjson.wire.sse import SSEReader
from tests.support.http_server import Server
from tests.support.streaming import HEADERS, folded, start, stored, streaming


def test_a_connection_is_used_again_after_a_finished_a_stopped_and_a_failed_stream(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.connect()
    port = connection.sock.getsockname()[1]
    streams: list[list[Any]] = []
    for turn, words, last in [
        ("t1", "say 3 0", "turn.done"),
        ("t2", "hang", "turn.abort"),
        ("t3", "fail", "turn.error"),
        ("t4", "say 2 0", "turn.done"),
    ]:
        connection.request("POST", "/", encode(start(words, turn)), HEADERS)
        response = connection.getresponse()
        assert response.status == 200
        assert response.headers["transfer-encoding"] == "chunked"
        assert "content-length" not in response.headers
        if words == "hang":
            server.wait_for("th", running=True)
            assert httpx.post(f"{server.url}/threads/th/turns/t2/stop", timeout=30).status_code == 202
        body = response.read()
        events = [ingest_event(message.data) for message in SSEReader().feed(body)]
        assert events[-1].type == last
        streams.append(events)
        assert connection.sock is not None
        assert connection.sock.getsockname()[1] == port
    connection.close()
    assert folded(*streams) == stored(server)


def test_a_client_may_leave_and_come_back_at_every_event(server: Server) -> None:
    with streaming(server, "POST", "/", start("say 8 0.02")) as stream:
        seen = stream.read(1)
        last = stream.last_id
    while seen[-1].type != "turn.done":
        with streaming(server, "GET", "/threads/th/events", headers={"Last-Event-ID": last}) as stream:
            seen += stream.read(1)
            last = stream.last_id
    assert folded(seen) == stored(server)
    answer = httpx.get(f"{server.url}/threads/th/events", headers={"Last-Event-ID": last}, timeout=30)
    assert answer.status_code == 204


@pytest.mark.parametrize("turns", [1, 2])
def test_a_killed_server_leaves_an_ended_turn_and_nothing_that_was_read_is_lost(tmp_path: Path, turns: int) -> None:
    path = str(tmp_path / "threads.sqlite")
    with Server("tests.support.served_apps:plain", path=path, poll=0.02, lease_timeout=2.0) as server:
        before: list[list[Any]] = []
        if turns == 2:
            with streaming(server, "POST", "/", start("say 2 0", "t0")) as stream:
                before.append(stream.read())
        with streaming(server, "POST", "/", start("hang")) as stream:
            seen = stream.read(7 if turns == 1 else 6)
            last = stream.last_id
            server.kill()
        server.start()
        told = server.wait_for("th", running=False)
        with streaming(server, "GET", "/threads/th/events", headers={"Last-Event-ID": last}) as stream:
            seen += stream.read()
        assert seen[-1].type == "turn.abort"
        assert to_dict(seen[-1])["reason"] == "interrupted"
        assert told["lastEventId"] == f"t:{seen[-1].seq}"
        assert folded(*before, seen) == stored(server)
        with streaming(server, "POST", "/", start("say 2 0", "t9")) as stream:
            after = stream.read()
        assert folded(*before, seen, after) == stored(server)


def test_a_server_that_is_told_to_end_tells_its_readers_and_ends_at_once(server: Server) -> None:
    with streaming(server, "POST", "/", start("hang")) as first:
        seen = first.read(8)
        with streaming(server, "GET", "/threads/th/events") as second:
            second.read(8)
            ended: list[int] = []
            ending = threading.Thread(target=lambda: ended.append(server.terminate(20)))
            began = time.monotonic()
            ending.start()
            seen += first.read()
            rest = second.read()
    ending.join()
    assert time.monotonic() - began < 10
    # uvicorn ends by the signal that it was sent, once everything is done.
    assert ended in ([0], [-15])
    assert seen[-1].type == rest[-1].type == "turn.abort"


def test_two_workers_on_one_file_run_a_thread_once(tmp_path: Path) -> None:
    path = str(tmp_path / "threads.sqlite")
    with (
        Server("tests.support.served_apps:plain", path=path, poll=0.02) as one,
        Server("tests.support.served_apps:plain", path=path, poll=0.02) as other,
        ThreadPoolExecutor(16) as pool,
    ):

        def post(index: int) -> tuple[int, bytes]:
            server = (one, other)[index % 2]
            answer = httpx.post(server.url, content=encode(start("say 5 0.02")), headers=HEADERS, timeout=60)
            return answer.status_code, answer.content

        answers = list(pool.map(post, range(16)))
        assert sorted(status for status, _ in answers) == [200] + [409] * 15
        codes = {json.loads(body)["error"]["code"] for status, body in answers if status == 409}
        assert codes <= {"thread_busy", "turn_exists"}
        [body] = [body for status, body in answers if status == 200]
        events = [ingest_event(message.data) for message in SSEReader().feed(body)]
        assert folded(events) == stored(one) == stored(other)


def test_a_reader_follows_a_turn_through_the_other_worker(tmp_path: Path) -> None:
    path = str(tmp_path / "threads.sqlite")
    with (
        Server("tests.support.served_apps:plain", path=path, poll=0.02) as one,
        Server("tests.support.served_apps:plain", path=path, poll=0.02) as other,
        streaming(one, "POST", "/", start("say 20 0.02")) as stream,
    ):
        seen = stream.read(6)
        with streaming(other, "GET", "/threads/th/events", headers={"Last-Event-ID": stream.last_id}) as second:
            rest = second.read()
        whole = seen + stream.read()
        assert seen + rest == whole
        assert folded(whole) == stored(other)


def test_in_fastapi_with_gzip_each_event_comes_as_it_is_made() -> None:
    with (
        Server("tests.support.served_apps:in_fastapi") as server,
        streaming(server, "POST", "/", start("hang"), headers={"accept-encoding": "gzip"}) as stream,
    ):
        assert "content-encoding" not in stream.response.headers
        assert len(stream.read(8)) == 8
        assert httpx.post(f"{server.url}/threads/th/turns/t/stop", timeout=30).status_code == 202
        assert stream.read()[-1].type == "turn.abort"


def test_an_idle_stream_is_kept_alive() -> None:
    with (
        Server("tests.support.served_apps:plain", keep_alive=0.1) as server,
        streaming(server, "POST", "/", start("hang")) as stream,
    ):
        chunks = stream.response.iter_raw()
        heard = b""
        while heard.count(b":\n\n") < 3:
            heard += next(chunks)
        assert b"turn.start" in heard


@pytest.mark.parametrize(("on_disconnect", "stops"), [("cancel", True), ("continue", False)])
def test_a_connection_that_is_closed_stops_the_run_only_where_the_host_says_so(on_disconnect: str, stops: bool) -> None:
    with Server("tests.support.served_apps:plain", on_disconnect=on_disconnect) as server:
        with streaming(server, "POST", "/", start("say 30 0.02")) as stream:
            stream.read(8)
        told = server.wait_for("th", running=False)
        [turn] = told["events"][0]["turns"]
        assert turn["outcome"]["type"] == ("aborted" if stops else "success")
