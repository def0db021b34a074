"""Whatever goes wrong on the way, and however often: the input runs once, and the caller gets every event once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
from hypothesis import example, given
from hypothesis import strategies as st

from agjson import reduce
from agjson.middleware.client import SyncAgentClient
from agjson.wire import from_dict
from tests.support.clients import TURN, hello
from tests.support.sse_server import Answer, Request, TurnScript, error

EVENTS = [from_dict(event, "event") for event in TURN]
RESULT = reduce(EVENTS).result
LENGTH = len(TurnScript(TURN).stream(0))


@dataclass(frozen=True)
class Fault:
    """What happens to one request.

    Attributes:
        kind: ``unsent``, ``lost`` on the way there, ``late`` (it comes there, but only after some more requests),
            ``deaf`` (it comes there, but no answer comes back), ``busy``, ``proxy``, ``cut`` at a byte of the answer,
            ``again`` (the answer begins with the first event), ``torn`` (comes in pieces, the last event twice).
        at: where an answer is cut; after how many requests one comes late.
    """

    kind: str
    at: int = 0


faults = st.lists(
    st.one_of(
        st.sampled_from(["unsent", "lost", "deaf", "busy", "proxy", "again", "torn"]).map(Fault),
        st.integers(0, LENGTH).map(lambda at: Fault("cut", at)),
        st.integers(0, 5).map(lambda at: Fault("late", at)),
    ),
    max_size=14,
)


class Pieces(httpx.SyncByteStream):
    """Bytes in pieces, and a break."""

    def __init__(self, pieces: list[bytes], breaks: bool) -> None:
        self.pieces = pieces
        self.breaks = breaks

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.breaks:
            raise httpx.ReadError("cut")


@dataclass
class World:
    """A server that takes an input once, and a network that loses things."""

    faults: list[Fault]
    ids: bool
    running: bool
    script: TurnScript = field(init=False)
    late: list[tuple[int, Request]] = field(default_factory=list[tuple[int, Request]])
    runs: int = 0

    def __post_init__(self) -> None:
        self.script = TurnScript(TURN, ids=self.ids, runs=self.running)

    def __call__(self, sent: httpx.Request) -> httpx.Response:
        headers = {name.lower(): value for name, value in sent.headers.items()}
        asked = Request(sent.method, sent.url.raw_path.decode(), headers, sent.content)
        fault = self.faults.pop(0) if self.faults else Fault("none")
        if fault.kind == "unsent":
            raise httpx.ConnectError("nobody there")
        if fault.kind == "lost":
            raise httpx.ReadError("reset")
        if fault.kind == "late":
            self.late.append((fault.at, asked))
            raise httpx.ReadTimeout("silence")
        if fault.kind == "busy":
            return httpx.Response(429, json={"error": {"code": "too_many_runs", "message": "later"}})
        if fault.kind == "proxy":
            return httpx.Response(502, html="<html>bad gateway</html>")
        due = [request for left, request in self.late if left == 0]
        self.late = [(left - 1, request) for left, request in self.late if left]
        for request in due:
            self.serve(request)
        answer = self.serve(asked)
        if fault.kind == "deaf":
            raise httpx.RemoteProtocolError("no answer")
        body = b"".join(part for part in answer.body if isinstance(part, bytes))
        pieces = [body]
        if answer.status == 200 and body.startswith((b"id:", b"data:")):
            if fault.kind == "again":
                pieces = [self.script.stream(0)]
            elif fault.kind == "torn":
                frames = [part + b"\n\n" for part in body.split(b"\n\n")[:-1]]
                pieces = [*frames, frames[-1]]
        if fault.kind == "cut":
            pieces = [body[: fault.at]]
        stream = Pieces(pieces, breaks=fault.kind == "cut")
        return httpx.Response(answer.status, headers=answer.headers, stream=stream)

    def serve(self, request: Request) -> Answer:
        """What the server does with a request that comes there."""
        if request.method == "POST" and self.script.began:
            return error(409, "turn_exists", turnId=json.loads(request.raw)["turnId"])
        if request.method == "POST":
            self.runs += 1
        return self.script(request)


# The input comes after the client was told twice that it has not, and before it comes again.
@example([Fault("late", 2)], True, True)
@given(faults, st.booleans(), st.booleans())
def test_the_input_runs_once_and_every_event_comes_once(faults: list[Fault], ids: bool, running: bool) -> None:
    world = World(list(faults), ids, running)
    with httpx.Client(transport=httpx.MockTransport(world)) as http:
        client = SyncAgentClient("http://agent", http=http, backoff=0, max_retries=40)
        turn: Any = hello(client)
        assert list(turn) == EVENTS
    assert world.runs == 1
    assert turn.result == RESULT
    assert turn.resyncs == ()
    assert not turn.needs_resync
