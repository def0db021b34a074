"""Readers that read late, not at all, or from a connection that is half closed: the run goes on, memory stays flat."""

from __future__ import annotations

import hashlib
import socket
import time

import httpx
import pytest

from agjson.types import TextDelta
from tests.support.http_server import Server
from tests.support.streaming import Connection, folded, post, start, stored, streaming


def test_200_slow_readers_of_one_turn_cost_little_memory() -> None:
    """2 MB of stream for each of 200 readers that do not read while it is made: it is held once."""
    with Server("tests.support.served_apps:plain", send_buffer=32_768) as server:
        post(server, start("big 250 8000", thread="warm"))
        before = server.memory()
        poster = Connection(server.port)
        poster.send("POST", "/", start("wait 1 250 8000"))
        server.wait_for("th", running=True)
        readers = [Connection(server.port, 4096) for _ in range(200)]
        for reader in readers[:100]:
            reader.send("GET", "/threads/th/events?turnId=t")
        # Nobody has read a byte, and the run comes to its end.
        told = server.wait_for("th", running=False)
        # These find all of it.
        for reader in readers[100:]:
            reader.send("GET", "/threads/th/events?turnId=t")
        server.wait_for("th", running=False)
        time.sleep(1)
        grown = server.memory() - before
        assert told["events"][0]["turns"][0]["outcome"] == {"type": "success"}
        digests = set[str]()
        for connection in (poster, *readers):
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            response, digest, size = connection.answer(), hashlib.sha256(), 0
            while piece := response.read(1 << 20):
                piece = piece.removeprefix(b"retry: 1000\n\n") if size == 0 else piece
                digest.update(piece)
                size += len(piece)
            assert size > 2e6
            digests.add(digest.hexdigest())
            connection.close()
        assert len(digests) == 1
        # A copy for each would be 400 MB. What the server writes ahead into a connection is below 200 kB.
        assert grown < 80e6, grown


def test_a_reader_that_never_reads_does_not_hold_the_run(server: Server) -> None:
    connection = Connection(server.port, 4096)
    connection.send("POST", "/", start("big 1500 8000"))
    told = server.wait_for("th", running=False)
    assert told["events"][0]["turns"][0]["outcome"] == {"type": "success"}
    # It has 12 MB to read, and reads them when it likes.
    events = connection.events()
    connection.close()
    assert sum(len(event.delta) for event in events if isinstance(event, TextDelta)) == 12_000_000
    assert folded(events) == stored(server)


def test_a_reader_that_never_reads_is_gone_when_it_leaves() -> None:
    with Server("tests.support.served_apps:plain", on_disconnect="cancel", max_readers=1) as server:
        connection = Connection(server.port, 4096)
        connection.send("POST", "/", start("flood"))
        server.wait_for("th", running=True)
        assert httpx.get(f"{server.url}/threads/th/events", timeout=30).status_code == 429
        connection.close(by_reset=True)
        told = server.wait_for("th", running=False)
        assert told["events"][0]["turns"][0]["outcome"]["type"] == "aborted"
        assert post(server, start("say 1 0", "t2"))[-1].type == "turn.done"


@pytest.mark.parametrize("on_disconnect", ["continue", "cancel"])
def test_a_client_that_closes_its_half_is_heard_or_has_gone(on_disconnect: str) -> None:
    """uvicorn takes the end of what a client sends for its going. A run of which that is true is as any other."""
    with Server("tests.support.served_apps:plain", on_disconnect=on_disconnect) as server:
        connection = Connection(server.port)
        connection.send("POST", "/", start("say 20 0.02"))
        server.wait_for("th", running=True)
        connection.socket.shutdown(socket.SHUT_WR)
        heard = b""
        try:
            while data := connection.socket.recv(65536):
                heard += data
        except ConnectionError:
            pass
        connection.close()
        told = server.wait_for("th", running=False)
        outcome = told["events"][0]["turns"][0]["outcome"]["type"]
        whole = b"turn.done" in heard
        assert outcome == ("success" if whole or on_disconnect == "continue" else "aborted")
        with streaming(server, "GET", "/threads/th/events?turnId=t") as stream:
            assert folded(stream.read()) == stored(server)


@pytest.mark.parametrize("by_reset", [False, True], ids=["closed", "reset"])
def test_a_client_may_vanish_at_every_event_and_the_run_comes_to_its_end(server: Server, by_reset: bool) -> None:
    lengths = set[int]()
    for count in range(1, 12):
        connection = Connection(server.port)
        connection.send("POST", "/", start("say 3 0.005", thread=f"th{count}"))
        heard = b""
        while heard.count(b"\ndata: ") < count:
            data = connection.socket.recv(1)
            assert data
            heard += data
        connection.close(by_reset=by_reset)
        server.wait_for(f"th{count}", running=False)
        with streaming(server, "GET", f"/threads/th{count}/events?turnId=t") as stream:
            events = stream.read()
        assert events[-1].type == "turn.done"
        lengths.add(len(events))
        assert folded(events) == stored(server, f"th{count}")
    assert lengths == {13}
