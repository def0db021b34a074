"""What a client says that it cannot take is kept from it, and what is left folds to what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.types import (
    AgClientCapabilities,
    AgFrontendTool,
    AgHitlCapabilities,
    AgMemoryRecord,
    AgSafety,
    AgStateCapabilities,
    AgStreamingCapabilities,
    AgUsage,
    MemoryWrite,
    StateSnapshot,
)
from agjson.wire import to_dict
from tests.support.scripted import ScriptAgent, Session, calls, deltas, results, said, start, terminal, text, types

WHOLE = AgClientCapabilities(streaming=AgStreamingCapabilities(partial_messages=False))
NO_PATCH = AgClientCapabilities(state=AgStateCapabilities(json_patch=False))


async def both(natives: list[Any], capabilities: AgClientCapabilities) -> tuple[Session, list[Any]]:
    """The events for a client with limits; without them the same natives fold to the same messages."""
    plain = Session(ScriptAgent(lambda run: natives))
    await plain.run(start())
    plain.verify()
    session = Session(ScriptAgent(lambda run: natives))
    events = await session.run(start(capabilities=capabilities))
    session.verify()
    assert to_dict(session.thread().result) == to_dict(plain.thread().result)
    return session, events


async def test_a_client_without_partial_messages_gets_each_block_in_one_piece() -> None:
    natives = [
        {"do": "message_start", "id": "m"},
        {"do": "reasoning_start", "id": "r"},
        {"do": "reasoning_delta", "id": "r", "delta": "hm"},
        {"do": "reasoning_opaque_delta", "id": "r", "delta": "sig"},
        {"do": "reasoning_delta", "id": "r", "delta": "m"},
        {"do": "text_start", "id": "x"},
        {"do": "text_delta", "id": "x", "delta": "Hel"},
        {"do": "ext", "type": "ext.agjson.note", "payload": {"n": 1}},
        {"do": "text_delta", "id": "x", "delta": "lo"},
        {"do": "reasoning_end", "id": "r"},
        {"do": "text_end", "id": "x"},
        {"do": "tool_start", "tool_call_id": "c", "name": "f"},
        {"do": "tool_args_delta", "tool_call_id": "c", "delta": '{"a":'},
        {"do": "tool_args_delta", "tool_call_id": "c", "delta": "1}"},
        {"do": "message_end"},
    ]
    _, events = await both(natives, WHOLE)
    assert types(events)[5:] == [
        "message.start",
        "reasoning.start",
        "text.start",
        "ext.agjson.note",
        "reasoning.opaque",
        "reasoning.delta",
        "reasoning.end",
        "text.delta",
        "text.end",
        "tool.start",
        "tool.args.assembled",
        "message.end",
        "turn.done",
    ]
    assert [event.delta for event in events if event.type in ("text.delta", "reasoning.delta")] == ["hmm", "Hello"]
    assert [event.seq for event in events] == list(range(len(events)))


async def test_deltas_that_say_more_than_text_stay_apart() -> None:
    natives = [
        {"do": "text_start", "id": "x"},
        {"do": "text_delta", "id": "x", "delta": "a"},
        {"do": "text_delta", "id": "x", "delta": "b", "provider_metadata": {"k": 1}},
        {"do": "text_delta", "id": "x", "delta": "c"},
        {"do": "text_delta", "id": "x", "delta": "d"},
        {"do": "reasoning_start", "id": "r", "part_index": 0},
        {"do": "reasoning_delta", "id": "r", "delta": "p", "part_index": 0},
        {"do": "reasoning_delta", "id": "r", "delta": "q", "part_index": 1},
    ]
    _, events = await both(natives, WHOLE)
    assert deltas(events) == ["a", "b", "cd"]
    assert [event.delta for event in events if event.type == "reasoning.delta"] == ["p", "q"]


@pytest.mark.parametrize(
    "end", [[RuntimeError("x")], [{"do": "turn_abort"}], [{"do": "message_remove", "id": "*"}], []]
)
async def test_what_was_said_before_an_early_end_is_not_lost(end: list[Any]) -> None:
    natives = [
        *text("one two three")[:-2],
        {"do": "text_start", "id": "y"},
        {"do": "text_delta", "id": "y", "delta": "z"},
    ]
    _, events = await both([*natives, *end], WHOLE)
    assert deltas(events) == ["onetwothree", "z"]


def test_a_long_text_is_joined_in_linear_time() -> None:
    natives = [
        {"do": "text_start", "id": "x"},
        *({"do": "text_delta", "id": "x", "delta": "ab"} for _ in range(20_000)),
    ]
    session = Session(ScriptAgent(lambda run: natives, blocking=True))
    events = session.run_sync(start(capabilities=WHOLE))
    assert [len(delta) for delta in deltas(events)] == [40_000]


async def test_a_client_without_json_patch_gets_values() -> None:
    natives = [
        {"do": "state_delta", "patch": {"node": {"k": 1}}},
        {"do": "state_delta", "patch": [{"op": "add", "path": "/node/l", "value": [1]}]},
        {"do": "memory_write", "scope": "user", "key": "k", "value": {"a": 1}},
        {"do": "memory_write", "scope": "user", "key": "k", "patch": [{"op": "replace", "path": "/a", "value": 2}]},
    ]
    session, events = await both(natives, NO_PATCH)
    states = [event.snapshot for event in events if isinstance(event, StateSnapshot)]
    assert states == [{"node": {"k": 1}}, {"node": {"k": 1, "l": [1]}}]
    assert [event.value for event in events if isinstance(event, MemoryWrite)] == [{"a": 1}, {"a": 2}]
    assert "state.delta" not in types(events)
    session.agent.script = lambda run: [  # type: ignore[attr-defined]
        {"do": "messages_snapshot", "messages": [], "memory": [AgMemoryRecord(scope="thread", value=[1])]},
        {"do": "memory_write", "scope": "thread", "patch": [{"op": "add", "path": "/-", "value": 2}]},
        {"do": "state_snapshot", "snapshot": {"node": {"k": 1, "l": [1]}}},
    ]
    events = await session.run(start(said("2", "u2")))
    assert [event.value for event in events if isinstance(event, MemoryWrite)] == [[1, 2]]
    session.agent.script = lambda run: [{"do": "state_delta", "patch": [{"op": "remove", "path": "/node/k"}]}]  # type: ignore[attr-defined]
    events = await session.run(start(said("3", "u3")))
    assert [event.snapshot for event in events if isinstance(event, StateSnapshot)] == [{"node": {"l": [1]}}]
    session.verify()


@pytest.mark.parametrize(
    ("hitl", "refused"),
    [
        (AgHitlCapabilities(ask=False), {"approval", "form", "text", "choice", "auth", "url"}),
        (AgHitlCapabilities(form=False), {"form"}),
        (AgHitlCapabilities(ask=True, auth=False), {"auth"}),
        (AgHitlCapabilities(), set()),
        (None, set()),
    ],
)
async def test_an_ask_that_the_client_cannot_answer_ends_in_an_error(
    hitl: AgHitlCapabilities | None, refused: set[str]
) -> None:
    for kind in ("approval", "form", "text", "choice", "auth", "url"):
        natives = [{"do": "hitl_ask", "kind": kind, "ask_id": "a"}, {"do": "turn_paused"}]
        session = Session(ScriptAgent(lambda run, natives=natives: natives))  # type: ignore[misc]
        events = await session.run(start(capabilities=AgClientCapabilities(hitl=hitl)))
        end = terminal(events)
        if kind in refused:
            assert (end["type"], end["code"]) == ("turn.error", "unsupported_ask")
            error = next(to_dict(event) for event in events if event.type == "error")
            assert (error["code"], f"kind {kind}" in error["message"]) == ("unsupported_ask", True)
            assert session.thread().pending.asks == ()
        else:
            assert end["outcome"]["type"] == "paused"
        session.verify()


async def test_what_a_refused_pause_says_beside_its_asks_is_kept() -> None:
    pause = {
        "do": "turn_paused",
        "result": {"partial": 1},
        "usage": AgUsage(output_tokens=3),
        "safety": [AgSafety(category="none")],
        "task_state": "input-required",
        "message_metadata": {"totalTokens": 3},
        "meta": {"host": 1},
    }
    natives = [
        {"do": "message_start", "id": "m"},
        {"do": "text", "text": "Which?"},
        {"do": "hitl_ask", "kind": "form", "ask_id": "a"},
        pause,
    ]
    session = Session(ScriptAgent(lambda run: natives))
    events = await session.run(start(capabilities=AgClientCapabilities(hitl=AgHitlCapabilities(form=False))))

    end = terminal(events)
    assert (end["type"], end["usage"]) == ("turn.error", {"outputTokens": 3})
    refused = {"safety": [{"category": "none"}], "taskState": "input-required", "result": {"partial": 1}}
    assert end["_meta"] == {"host": 1, "agjson/refused": refused}
    stored = next(message for message in session.thread().messages if message.id == "m")
    assert stored.metadata == {"agjson/messageMetadata": {"totalTokens": 3}}
    session.verify()


async def test_a_batch_with_one_ask_that_cannot_be_answered_ends_in_an_error() -> None:
    natives = [
        {"do": "hitl_ask", "kind": "text", "ask_id": "a"},
        {"do": "subagent_start", "turn_id": "n"},
        {"do": "hitl_ask", "kind": "form", "ask_id": "b"},
        {"do": "turn_paused", "turn_id": "t"},
    ]
    session = Session(ScriptAgent(lambda run: natives))
    events = await session.run(start(capabilities=AgClientCapabilities(hitl=AgHitlCapabilities(form=False))))
    assert types(events)[-3:] == ["turn.error", "subagent.done", "turn.error"]
    assert "hitl.ask" in types(events)
    session.verify()


async def test_what_the_client_can_do_is_remembered() -> None:
    tools = AgClientCapabilities(
        streaming=AgStreamingCapabilities(partial_messages=False),
        frontend_tools=[AgFrontendTool(name="pick", input_schema={})],
    )
    agent = ScriptAgent(lambda run: calls("c") if run.input.kind == "start" else text("a b"))
    session = Session(agent)
    await session.run(start(capabilities=tools))
    events = await session.run(results("c"))
    assert deltas(events) == ["ab"]
    assert agent.seen[1].capabilities == tools
    await session.run(start(said("x", "u2"), capabilities=NO_PATCH))
    assert agent.seen[2].capabilities == NO_PATCH
    session.verify()
