"""A recorded stream of a LangGraph server is the native stream of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agjson.adapters.langgraph import ADAPTER
from agjson.fold import reduce
from agjson.jsonable import jsonable
from agjson.normalizer import HostError
from agjson.testing.cassettes import Exchange
from tests.support.langgraph_graphs import agent, normalize, of_type, run

STREAM = "http://127.0.0.1:2024/threads/t1/runs/stream"


def exchange(body: bytes, *, uri: str = STREAM, status: int = 200) -> Exchange:
    return Exchange(
        method="POST", uri=uri, request=b"", status=status, headers={"content-type": "text/event-stream"}, body=body
    )


def served(parts: list[Any]) -> bytes:
    """A native stream as a server sends it."""
    said = [("metadata", {"run_id": "r1"})]
    said += [("|".join([part["type"], *part["ns"]]), jsonable(part["data"])) for part in parts]
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in [*said, ("end", None)]).encode()


@pytest.mark.parametrize(
    "uri",
    [
        STREAM,
        "https://x.example/runs/stream",
        "https://x.example/threads/t1/runs/r1/stream",
        "https://x.example/api/threads/t1/runs/stream?cancel_on_disconnect=1",
    ],
)
def test_a_stream_of_a_run(uri: str) -> None:
    parts = run(agent([AIMessage("hello there")]))
    natives = ADAPTER.recorded(exchange(served(parts), uri=uri))
    assert natives is not None
    events = normalize(list(natives))

    assert [message.content for message in reduce(events).result.messages] == [
        message.content for message in reduce(normalize(parts)).result.messages
    ]
    assert [event["frame"] for event in of_type(events, "ext.langgraph.frame")] == [{"run_id": "r1"}]
    assert of_type(events, "ext.langgraph.unparsed", "error") == []
    assert of_type(events, "turn.done")[0]["outcome"] == {"type": "success"}


@pytest.mark.parametrize("uri", ["", "https://api.openai.com/v1/responses", "https://x.example/threads/t1/state"])
def test_any_other_request_is_none(uri: str) -> None:
    assert ADAPTER.recorded(exchange(b"{}", uri=uri)) is None


@pytest.mark.parametrize(
    ("body", "status", "code", "retriable"),
    [
        (b"{}", 422, "http_422", False),
        (b"", 503, "http_503", True),
        (b"", 200, "empty_response", None),
        (b"event: values\ndata: {broken\n\n", 200, "malformed_response", None),
    ],
)
def test_what_went_wrong_is_an_error(body: bytes, status: int, code: str, retriable: bool | None) -> None:
    natives = ADAPTER.recorded(exchange(body, status=status))
    assert natives is not None
    (error,) = natives

    assert isinstance(error, HostError)
    assert (error.code, error.retriable) == (code, retriable)
