"""Random runs, readers that leave and come back at random, and stops: every reader gets the log, and nothing else."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_server import Server
from tests.support.streaming import folded, refusal, start, stored, streaming

TERMINALS = ("turn.done", "turn.error", "turn.abort")
FACTORY = "tests.support.served_apps:plain"


@contextmanager
def serving(kind: str, folder: Path) -> Iterator[list[Server]]:
    path = str(folder / "threads.sqlite")
    if kind == "two workers":
        with Server(FACTORY, path=path, poll=0.01) as one, Server(FACTORY, path=path, poll=0.01) as other:
            yield [one, other]
    elif kind == "joined":
        with Server(FACTORY, path=path, poll=0.01, coalesce=0.01) as server:
            yield [server]
    else:
        with Server(FACTORY) as server:
            yield [server]


def follow(servers: Sequence[Server], seed: float, thread: str, turn: str, body: Any = None) -> list[Any]:
    """Read a turn to its end, by way of any server, leaving and coming back at random."""
    chance = random.Random(seed)
    seen: list[Any] = []
    last = ""
    path = f"/threads/{thread}/events?turnId={turn}"
    while not seen or seen[-1].type not in TERMINALS:
        posts = body is not None
        method, where, headers = ("POST", "/", {}) if posts else ("GET", path, {"Last-Event-ID": last} if last else {})
        with streaming(chance.choice(servers), method, where, body, headers=headers) as stream:
            seen += stream.read(chance.choice([1, 1, 2, 3, 8, None]))
            last = stream.last_id or last
        body = None
    return seen


def wait_until_known(server: Server, thread: str, turn: str) -> None:
    """Until the input is accepted: from then on readers may come."""
    end = time.monotonic() + 30
    with httpx.Client(base_url=server.url, timeout=30) as client:
        while True:
            told = client.get(f"/threads/{thread}").json()
            if told.get("turnId") == turn or (told.get("lastEventId") or "").startswith(f"{turn}:"):
                return
            assert time.monotonic() < end
            time.sleep(0.005)


def stop_at_some_time(servers: Sequence[Server], seed: float, thread: str, turn: str) -> int:
    chance = random.Random(seed)
    time.sleep(chance.uniform(0, 0.3))
    return refusal(chance.choice(servers), "POST", f"/threads/{thread}/turns/{turn}/stop")[0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["memory", "joined", "two workers"])
def test_every_reader_gets_the_log(kind: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{kind} {seed}")
    with serving(kind, tmp_path) as servers, ThreadPoolExecutor(12) as pool:

        def talk(thread: str, seed: float) -> list[list[Any]]:
            chance = random.Random(seed)
            turns: list[list[Any]] = []
            for number in range(3):
                turn = f"t{number}"
                words = chance.choice(["say 12 0.01", "say 30 0.005", "say 60 0", "big 40 5000", "fail", "hang"])
                stops = words == "hang" or chance.random() < 0.4
                posted = pool.submit(follow, servers, chance.random(), thread, turn, start(words, turn, thread))
                wait_until_known(servers[0], thread, turn)
                asked = pool.submit(stop_at_some_time, servers, chance.random(), thread, turn) if stops else None
                others = [pool.submit(follow, servers, chance.random(), thread, turn) for _ in range(2)]
                whole = posted.result()
                for other in others:
                    assert other.result() == whole
                if asked is not None:
                    assert asked.result() in (202, 409)
                assert follow(servers, 0, thread, turn) == whole
                turns.append(whole)
            return turns

        with ThreadPoolExecutor(2) as threads:
            talks = list(threads.map(talk, ["th0", "th1"], [chance.random(), chance.random()]))
        for number, turns in enumerate(talks):
            for server in servers:
                assert folded(*turns) == stored(server, f"th{number}")
