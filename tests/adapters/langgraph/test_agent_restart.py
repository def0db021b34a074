"""Between an ask and its answer the process may end: threads and checkpoints in SQLite, in processes of their own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agjson.types import AgHitlAnswer, ResumeInput
from agjson.wire import to_dict
from tests.support.child_process import ChildProcess
from tests.support.langgraph_agents import resume
from tests.support.scripted import said, start

kinds = pytest.mark.parametrize("kind", ["sync", "async"])


MODULE = "tests.support.langgraph_child"


@pytest.fixture(scope="module")
def processes() -> Iterator[list[ChildProcess]]:
    """Two processes; neither knows what the other has done, but for the files."""
    started = [ChildProcess(MODULE), ChildProcess(MODULE)]
    yield started
    for process in started:
        process.close()


def one(process: ChildProcess, folder: Path, kind: str, ag_input: Any) -> list[dict[str, Any]]:
    """Run one turn in a process, which opens the files for it and closes them after."""
    process.tell("run", str(folder), kind, to_dict(ag_input))
    (events,) = process.heard()
    return events


def sent(folder: Path) -> list[str]:
    path = folder / "sent.txt"
    return path.read_text().split() if path.exists() else []


def answers(events: list[dict[str, Any]], *agreed: bool) -> ResumeInput:
    asks = events[-1]["outcome"]["asks"]
    return resume(
        *(
            AgHitlAnswer(
                ask_id=ask["askId"],
                status="resolved" if yes else "declined",
                ordinal=ask["ordinal"],
                request_state=ask.get("requestState"),
            )
            for ask, yes in zip(asks, agreed, strict=True)
        )
    )


def outcomes(events: list[dict[str, Any]]) -> dict[str, str]:
    return {event["toolCallId"]: event["outcome"] for event in events if event["type"] == "tool.done"}


@kinds
def test_an_answer_in_another_process(tmp_path: Path, kind: str, processes: list[ChildProcess]) -> None:
    before, after = processes
    first = one(before, tmp_path, kind, start(said("send", "u1")))
    assert [ask["toolCallId"] for ask in first[-1]["outcome"]["asks"]] == ["c1", "c2"]
    given = answers(first, True, False)
    second = one(after, tmp_path, kind, given)
    assert (second[-1]["type"], second[-1]["outcome"]["type"]) == ("turn.done", "success")
    assert outcomes(second) == {"c1": "ok", "c2": "denied"}
    assert sent(tmp_path) == ["ann"]
    again = one(before, tmp_path, kind, given)
    assert again == [{"type": "refused", "error": "UnknownAskError"}]
    third = one(before, tmp_path, kind, start(said("thanks", "u2"), turn="t2"))
    assert "done after 6" in "".join(event.get("delta", "") for event in third)
    assert sent(tmp_path) == ["ann"]


@kinds
def test_the_answers_of_a_batch_come_to_different_processes(
    tmp_path: Path, kind: str, processes: list[ChildProcess]
) -> None:
    first = one(processes[0], tmp_path, kind, start(said("send", "u1")))
    one_answer, other = list(answers(first, True, True).answers or ())
    waiting = one(processes[1], tmp_path, kind, resume(other, turn="r1"))
    assert waiting[-1]["outcome"]["type"] == "paused"
    assert sent(tmp_path) == []
    events = one(processes[0], tmp_path, kind, resume(one_answer, turn="r2"))
    assert events[-1]["outcome"]["type"] == "success"
    assert sorted(sent(tmp_path)) == ["ann", "bob"]


@kinds
def test_a_process_that_is_killed_while_an_approved_call_runs(
    tmp_path: Path, kind: str, processes: list[ChildProcess]
) -> None:
    first = one(processes[0], tmp_path, kind, start(said("send", "u1")))
    given = answers(first, True, False)
    victim = ChildProcess(MODULE)
    try:
        victim.tell("stall", str(tmp_path), kind, to_dict(given))
        assert victim.heard() == ["running"]
        victim.send(signal.SIGKILL)
    finally:
        victim.close()
    assert sent(tmp_path) == ["ann"]
    assert one(processes[1], tmp_path, kind, given) == [{"type": "refused", "error": "UnknownAskError"}]
    later = one(processes[1], tmp_path, kind, start(said("and?", "u2"), turn="t2"))
    assert later[-1]["outcome"]["type"] == "success"
    assert sent(tmp_path) == ["ann"]
    assert outcomes(later)["c1"] == "error"
    (text,) = [
        part["text"]
        for event in later
        if event["type"] == "tool.done" and event["toolCallId"] == "c1"
        for part in event["content"]
    ]
    assert text.startswith("This call was cut off")
