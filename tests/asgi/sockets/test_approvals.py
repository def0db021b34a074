"""Approvals with servers in processes of their own, on one file: restarted, killed, two at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agjson.middleware.client import SyncAgentClient
from agjson.types import AgPausedAsk, ResumeInput
from agjson.wire import answer_to, encode, from_dict, to_dict
from tests.support.http_server import Server
from tests.support.streaming import HEADERS, post, refusal, start, streaming


@contextmanager
def workers(folder: Path, count: int = 2, **settings: Any) -> Iterator[list[Server]]:
    paths = {"path": str(folder / "threads.sqlite"), "log": str(folder / "log")}
    made = [Server("tests.support.gated:make_app", **paths, poll=0.02, **settings) for _ in range(count)]
    try:
        for server in made:
            server.start()
        yield made
    finally:
        for server in made:
            server.__exit__()


def effects(folder: Path) -> list[str]:
    """What the tools have done, whatever became of the processes."""
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def asks_of(server: Server, thread: str = "th") -> list[AgPausedAsk]:
    told = httpx.get(f"{server.url}/threads/{thread}", timeout=30).json()
    return [from_dict(ask, as_="ask") for ask in told["pending"]["asks"]]


def yes(*asks: AgPausedAsk, turn: str = "r", thread: str = "th") -> ResumeInput:
    return ResumeInput(thread_id=thread, turn_id=turn, answers=[answer_to(ask) for ask in asks])


def unknown_results(events: list[Any]) -> list[tuple[str, str]]:
    results = [to_dict(event) for event in events if event.type == "tool.done"]
    return [(result["toolCallId"], result["errorCode"]) for result in results if "errorCode" in result]


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_a_server_is_stopped_while_it_waits_and_the_next_one_goes_on(tmp_path: Path, end: str) -> None:
    with workers(tmp_path, 1) as (server,):
        events = post(server, start("mail ann bob"))
        asks = events[-1].outcome.asks
        assert post(server, yes(asks[0]))[-1].outcome.asks == asks[1:]
        getattr(server, end)()
        server.start()
        # Who stayed has the same token as who comes now, by the thread and by the log.
        assert asks_of(server) == asks[1:]
        with SyncAgentClient(server.url) as client:
            turn = client.attach("th")
            assert list(turn) and turn.open_asks == asks[1:]
            turn = client.resume("th", [answer_to(ask) for ask in turn.open_asks])
            assert list(turn)[-1].type == "turn.done" and turn.outcome is not None and turn.outcome.type == "success"
        assert refusal(server, "POST", "/", yes(asks[0])) == (409, "spent_ask")
        assert [line for line in effects(tmp_path) if not line.startswith("begun")] == [
            "sent ann",
            "sent bob",
            "read all",
        ]


def test_an_ask_of_one_worker_is_read_and_answered_at_the_other(tmp_path: Path) -> None:
    with workers(tmp_path) as (one, other):
        with streaming(one, "POST", "/", start("mail ann")) as stream:
            seen = stream.read(1)
            with streaming(other, "GET", "/threads/th/events?turnId=t") as second:
                seen += stream.read()
                assert [encode(event) for event in second.read()] == [encode(event) for event in seen]
        (ask,) = seen[-1].outcome.asks
        assert ask.token is not None and asks_of(one) == asks_of(other) == [ask]
        answer = yes(ask)
        assert post(other, answer)[-1].outcome.type == "success"
        # Byte for byte the same: the one remembers it, the other finds it used.
        assert refusal(other, "POST", "/", answer) == (409, "turn_exists")
        assert refusal(one, "POST", "/", answer) == (409, "spent_ask")
        assert asks_of(one) == asks_of(other) == []
        assert effects(tmp_path) == ["begun ann", "sent ann"]


def test_two_answers_at_once_at_two_workers_run_it_once(tmp_path: Path) -> None:
    with workers(tmp_path) as both, ThreadPoolExecutor(8) as pool:
        for round in range(8):
            thread = f"th{round}"
            (ask,) = post(both[0], start(f"mail n{round}", thread=thread))[-1].outcome.asks

            def resume(number: int, ask: AgPausedAsk = ask, thread: str = thread) -> tuple[int, str]:
                # The same turn twice, and others.
                body = encode(yes(ask, turn=f"r{number // 2}", thread=thread))
                answer = httpx.post(both[number % 2].url, content=body, headers=HEADERS, timeout=60)
                return answer.status_code, "" if answer.status_code == 200 else answer.json()["error"]["code"]

            told = list(pool.map(resume, range(8)))
            assert [status for status, _ in told].count(200) == 1
            refused = {code for status, code in told if status == 409}
            assert len(told) == 8 and refused <= {"thread_busy", "spent_ask", "turn_exists"}, told
        assert sorted(line for line in effects(tmp_path) if line.startswith("sent")) == sorted(
            f"sent n{round}" for round in range(8)
        )


@pytest.mark.parametrize(("where", "ran"), [("before", []), ("after", ["sent ann"])])
@pytest.mark.parametrize("at", ["the same address", "the other worker"])
def test_a_server_is_killed_between_the_claim_and_the_result(
    tmp_path: Path, where: str, ran: list[str], at: str
) -> None:
    with workers(tmp_path, 2 if at == "the other worker" else 1) as servers:
        one = servers[0]
        (ask,) = post(one, start(f"stuck {where}"))[-1].outcome.asks
        answer = yes(ask)
        with streaming(one, "POST", "/", answer) as stream:
            assert stream.read(1)[0].type == "turn.start"
            deadline = time.monotonic() + 30
            while effects(tmp_path) != ["begun ann", *ran]:
                assert time.monotonic() < deadline
                time.sleep(0.005)
            one.kill()
        if at == "the same address":
            one.start()
        server = servers[-1]
        # It is not asked again, and the answer counts no second time, in whatever form it comes.
        assert asks_of(server) == []
        assert refusal(server, "POST", "/", answer) == (409, "spent_ask")
        assert refusal(server, "POST", "/", yes(ask, turn="r2")) == (409, "spent_ask")
        events = post(server, start("and?", "t2"))
        assert unknown_results(events) == [("t.1", "outcome_unknown")]
        assert events[-1].outcome.type == "success"
        # It is told once.
        assert unknown_results(post(server, start("and now?", "t3"))) == []
        assert effects(tmp_path) == ["begun ann", *ran]


def test_an_ask_is_its_owners_at_every_worker(tmp_path: Path) -> None:
    with workers(tmp_path, 2, owned=True) as (one, other):
        ann = {"x-user": "ann"}
        with streaming(one, "POST", "/", start("mail ann"), headers=ann) as stream:
            events = stream.read()
        (ask,) = events[-1].outcome.asks
        one.kill()
        assert refusal(other, "POST", "/", yes(ask), **{"x-user": "bob"}) == (404, "unknown_thread")
        assert refusal(other, "POST", "/", yes(ask)) == (404, "unknown_thread")
        assert post(other, yes(ask), **ann)[-1].outcome.type == "success"
        assert effects(tmp_path) == ["begun ann", "sent ann"]
