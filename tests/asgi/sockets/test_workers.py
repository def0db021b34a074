"""Two server processes on one SQLite file: what is asked of one is done by the other, and whose it is both know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agjson.types import AgHitlAnswer, AgToolResult, ResumeInput, TextBlock, ToolResultInput
from tests.support.http_server import Server
from tests.support.scripted import deltas
from tests.support.streaming import folded, post, refusal, start, stored, streaming

FOUND = ToolResultInput(
    thread_id="th", turn_id="t2", results=[AgToolResult(tool_call_id="c1", content=[TextBlock(text="rain")])]
)
ANSWERED = ResumeInput(thread_id="th", turn_id="t2", answers=[AgHitlAnswer(ask_id="a1", status="resolved", reply="me")])


@contextmanager
def workers(folder: Path, factory: str = "plain", **settings: Any) -> Iterator[tuple[Server, Server]]:
    path = str(folder / "threads.sqlite")
    made = [Server(f"tests.support.served_apps:{factory}", path=path, poll=0.02, **settings) for _ in range(2)]
    with made[0] as one, made[1] as other:
        yield one, other


@pytest.mark.parametrize(
    ("words", "ag_input", "pending", "said"),
    [("tool", FOUND, ["c1"], "rain"), ("ask", ANSWERED, None, "me")],
    ids=["tool_result", "resume"],
)
def test_a_turn_that_one_worker_ran_goes_on_at_the_other(
    tmp_path: Path, words: str, ag_input: Any, pending: Any, said: str
) -> None:
    with workers(tmp_path) as (one, other):
        first = post(one, start(words))
        told = httpx.get(f"{other.url}/threads/th", timeout=30).json()
        if pending is None:
            assert [ask["askId"] for ask in told["pending"]["asks"]] == ["a1"]
        else:
            assert told["pending"]["calls"] == pending == [each["toolCallId"] for each in told["pending"]["toolCalls"]]
        second = post(other, ag_input)
        assert second[-1].type == "turn.done"
        assert deltas(second) == [said]
        assert folded(first, second) == stored(one) == stored(other)
        # What is answered is answered, whoever is asked.
        assert refusal(one, "POST", "/", ag_input)[0] == 409


def test_a_turn_of_one_worker_is_read_and_stopped_at_the_other(tmp_path: Path) -> None:
    with workers(tmp_path) as (one, other), streaming(one, "POST", "/", start("hang")) as stream:
        seen = stream.read(8)
        with streaming(other, "GET", "/threads/th/events") as second:
            assert second.read(8) == seen
            assert refusal(other, "POST", "/", start("say 1 0", "t2")) == (409, "thread_busy")
            assert refusal(other, "POST", "/threads/th/turns/t/stop")[0] == 202
            end, rest = stream.read(), second.read()
        assert end == rest
        assert end[-1].type == "turn.abort"
        assert folded(seen + end) == stored(one) == stored(other)
        assert refusal(one, "POST", "/threads/th/turns/t/stop") == (409, "turn_ended")


def test_a_first_turn_is_its_owners_at_both_workers(tmp_path: Path) -> None:
    ann, bob = {"x-user": "ann"}, {"x-user": "bob"}
    with (
        workers(tmp_path, "owned") as (one, other),
        streaming(one, "POST", "/", start("hang"), headers=ann) as stream,
    ):
        seen = stream.read(8)
        for method, path, body in (
            ("GET", "/threads/th", None),
            ("GET", "/threads/th/events", None),
            ("GET", "/threads/th/events?lastEventId=t:3", None),
            ("POST", "/threads/th/turns/t/stop", None),
            ("POST", "/", start("say 1 0", "t2")),
            ("POST", "/", FOUND),
        ):
            for worker in (one, other):
                assert refusal(worker, method, path, body, **bob) == (404, "unknown_thread")
        with streaming(other, "GET", "/threads/th/events", headers=ann) as second:
            assert second.read(8) == seen
            assert refusal(other, "POST", "/threads/th/turns/t/stop", **ann)[0] == 202
            end = stream.read()
            assert second.read() == end
        assert end[-1].type == "turn.abort"


def test_a_first_turn_that_a_killed_worker_ran_is_its_owners_at_the_other(tmp_path: Path) -> None:
    ann, bob = {"x-user": "ann"}, {"x-user": "bob"}
    with workers(tmp_path, "owned", lease_timeout=2.0) as (one, other):
        with streaming(one, "POST", "/", start("hang"), headers=ann) as stream:
            seen = stream.read(8)
            with streaming(other, "GET", "/threads/th/events", headers=ann) as second:
                assert second.read(8) == seen
                one.kill()
                end = second.read()
        assert [event.type for event in end[-1:]] == ["turn.abort"]
        assert refusal(other, "GET", "/threads/th", **bob) == (404, "unknown_thread")
        assert refusal(other, "POST", "/", start("say 1 0", "t2"), **bob) == (404, "unknown_thread")
        after = post(other, start("say 1 0", "t2"), **ann)
        assert after[-1].type == "turn.done"
        assert folded(seen + end, after)["turns"][0]["outcome"] == {"type": "aborted", "reason": "interrupted"}


def test_a_worker_that_ends_leaves_its_threads_to_the_other(tmp_path: Path) -> None:
    with workers(tmp_path) as (one, other), streaming(one, "POST", "/", start("hang")) as stream:
        seen = stream.read(8)
        with streaming(other, "GET", "/threads/th/events") as second:
            second.read(8)
            assert one.terminate(20) in (0, -15)
            end = stream.read()
            assert second.read() == end
        assert end[-1].type == "turn.abort"
        assert folded(seen + end) == stored(other)
        assert post(other, start("say 1 0", "t2"))[-1].type == "turn.done"
