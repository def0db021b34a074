"""A server that is told to end, or is killed, while it has many streams: what each reader has and what is stored."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agjson.wire import to_dict
from tests.support.http_server import Server
from tests.support.streaming import Connection, Stream, folded, post, start, stored, streaming

FACTORY = "tests.support.served_apps:plain"


def test_sigterm_ends_every_stream_and_stores_its_end(tmp_path: Path) -> None:
    with Server(FACTORY, path=str(tmp_path / "threads.sqlite"), keep_alive=0.5) as server:
        with ExitStack() as stack, ThreadPoolExecutor(20) as pool:
            posts: list[Stream] = []
            others: list[Stream] = []
            for number in range(10):
                body = start("hang", thread=f"th{number}")
                posts.append(stack.enter_context(streaming(server, "POST", "/", body)))
                posts[-1].read(1)
                path = f"/threads/th{number}/events?turnId=t"
                others.append(stack.enter_context(streaming(server, "GET", path)))
            # One more who does not read.
            stack.enter_context(streaming(server, "GET", "/threads/th0/events?turnId=t"))
            rests = [pool.submit(stream.read) for stream in (*posts, *others)]
            time.sleep(0.3)
            began = time.monotonic()
            assert server.terminate(20) in (0, -15)
            assert time.monotonic() - began < 10
            ends = [rest.result() for rest in rests]
        server.start()
        for number, (rest, whole) in enumerate(zip(ends[:10], ends[10:], strict=True)):
            assert rest == whole[1:]
            assert (whole[-1].type, to_dict(whole[-1])["reason"]) == ("turn.abort", "shutdown")
            assert folded(whole) == stored(server, f"th{number}")
            assert post(server, start("say 1 0", "t2", f"th{number}"))[-1].type == "turn.done"


def test_sigterm_does_not_wait_for_a_reader_that_never_reads_longer_than_the_server_is_told(tmp_path: Path) -> None:
    limit: dict[str, Any] = {"timeout_graceful_shutdown": 2}
    with Server(FACTORY, path=str(tmp_path / "threads.sqlite"), send_buffer=32_768, uvicorn=limit) as server:
        connection = Connection(server.port, 4096)
        connection.send("POST", "/", start("flood"))
        server.wait_for("th", running=True)
        time.sleep(1)
        began = time.monotonic()
        assert server.terminate(20) in (0, -15)
        assert time.monotonic() - began < 10
        connection.close()
        server.start()
        with streaming(server, "GET", "/threads/th/events?turnId=t") as stream:
            whole = stream.read()
        assert (whole[-1].type, to_dict(whole[-1])["reason"]) == ("turn.abort", "shutdown")
        assert folded(whole) == stored(server)


def test_a_server_is_killed_when_its_readers_are_at_every_event(tmp_path: Path) -> None:
    count = 10
    with Server(FACTORY, path=str(tmp_path / "threads.sqlite"), lease_timeout=2.0) as server:
        seen: list[list[Any]] = []
        last: list[str] = []
        with ExitStack() as stack:
            for number in range(count):
                # Some of them with more behind what was read: it is in the log, or it never was.
                words = "hang" if number % 2 else "say 1000 0.002"
                stream = stack.enter_context(streaming(server, "POST", "/", start(words, thread=f"th{number}")))
                seen.append(stream.read(number + 1 if words != "hang" else min(number + 1, 8)))
                last.append(stream.last_id)
            server.kill()
        server.start()
        for number in range(count):
            path = f"/threads/th{number}/events"
            with streaming(server, "GET", path, headers={"Last-Event-ID": last[number]}) as stream:
                whole = seen[number] + stream.read()
            assert (whole[-1].type, to_dict(whole[-1])["reason"]) == ("turn.abort", "interrupted")
            with streaming(server, "GET", f"{path}?turnId=t") as stream:
                assert stream.read() == whole
            after = post(server, start("say 1 0", "t2", f"th{number}"))
            assert after[-1].type == "turn.done"
            assert folded(whole, after) == stored(server, f"th{number}")
