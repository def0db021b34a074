"""What stands around the app: a host that mounts it, middleware that compresses, proxies that lose patience."""

from __future__ import annotations

import gzip
import itertools
import json
from concurrent.futures import ThreadPoolExecutor, as_completed

import httpx
import pytest

from agjson.middleware.client import SyncAgentClient
from agjson.wire import encode, to_dict
from tests.support.http_server import Server
from tests.support.idle_proxy import IdleProxy
from tests.support.streaming import HEADERS, folded, refusal, start, stored


@pytest.mark.parametrize("slash", ["", "/"], ids=["without slash", "with slash"])
def test_in_fastapi_below_a_path_with_and_without_its_slash(slash: str) -> None:
    with (
        Server("tests.support.served_apps:in_fastapi", at="/some/agent", ready="/some/agent/capabilities") as server,
        httpx.Client(base_url=server.url, timeout=30, follow_redirects=True) as client,
    ):
        answer = client.post(f"/some/agent{slash}", content=encode(start("say 2 0")), headers=HEADERS)
        assert (answer.status_code, len(answer.history)) == (200, 0 if slash else 1)
        assert "turn.done" in answer.text
        told = client.get("/some/agent/threads/th")
        assert told.json()["turnId"] is None
        last = told.json()["lastEventId"]
        assert client.get("/some/agent/threads/th/events", headers={"Last-Event-ID": last}).status_code == 204
        # The client, too, may be given either.
        with SyncAgentClient(f"{server.url}/some/agent{slash}") as agent:
            turn = agent.start("say 1 0", thread_id="th")
            assert list(turn)[-1].type == "turn.done"
        assert client.get("/threads/th").status_code == 404


def test_gzip_compresses_what_is_no_stream() -> None:
    with (
        Server("tests.support.served_apps:in_fastapi") as server,
        httpx.Client(base_url=server.url, timeout=30, headers={"accept-encoding": "gzip"}) as client,
    ):
        with client.stream("POST", "/", content=encode(start("say 200 0")), headers=HEADERS) as answer:
            assert "content-encoding" not in answer.headers
            assert b"turn.done" in b"".join(answer.iter_raw())
        with client.stream("GET", "/threads/th") as answer:
            assert answer.headers["content-encoding"] == "gzip"
            told = json.loads(gzip.decompress(b"".join(answer.iter_raw())))
        assert told["threadId"] == "th"
        with client.stream("GET", "/threads/th/events?turnId=t") as answer:
            assert "content-encoding" not in answer.headers


def test_comments_keep_a_stream_open_behind_a_proxy_without_patience() -> None:
    with (
        Server("tests.support.served_apps:plain", keep_alive=0.1) as server,
        IdleProxy(server.port, 0.7) as proxy,
        SyncAgentClient(proxy.url) as client,
    ):
        turn = client.start("say 2 1.5", thread_id="th")
        events = list(turn)
        assert events[-1].type == "turn.done"
        assert (turn.reconnects, proxy.cut) == (0, 0)
        assert folded(events) == stored(server)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_without_comments_the_client_attaches_again_and_loses_nothing(
    store: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = None if store == "memory" else str(tmp_path_factory.mktemp("store") / "threads.sqlite")
    with (
        Server("tests.support.served_apps:plain", keep_alive=60, retry=0, path=path) as server,
        IdleProxy(server.port, 0.4) as proxy,
        SyncAgentClient(proxy.url, backoff=0.01, max_backoff=0.05) as client,
    ):
        turn = client.start("say 3 1.0", thread_id="th")
        events = list(turn)
        assert [event.seq for event in events] == list(range(len(events)))
        assert events[-1].type == "turn.done"
        assert turn.reconnects >= 3
        assert proxy.cut >= 3
        assert folded(events) == stored(server) == to_dict(turn.result)


def test_of_many_posts_to_one_thread_one_runs(server: Server) -> None:
    def post(number: int) -> tuple[int, str]:
        body = encode(start("hang", f"t{number}"))
        answer = httpx.post(server.url, content=body, headers=HEADERS, timeout=60)
        return answer.status_code, answer.text

    with ThreadPoolExecutor(20) as pool:
        waiting = {pool.submit(post, number) for number in range(20)}
        refused = list(itertools.islice(as_completed(waiting, timeout=60), 19))
        for each in refused:
            status, body = each.result()
            assert (status, json.loads(body)["error"]["code"]) == (409, "thread_busy")
        running = server.wait_for("th", running=True)["turnId"]
        assert refusal(server, "POST", f"/threads/th/turns/{running}/stop")[0] == 202
        [winner] = waiting.difference(refused)
        status, body = winner.result()
        assert status == 200
        assert "turn.abort" in body
    assert [turn["turnId"] for turn in server.wait_for("th", running=False)["events"][0]["turns"]] == [running]
