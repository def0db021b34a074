"""Whatever a framework sends and a client answers, streams are well formed and fold to what is stored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agjson.agents import Pending
from agjson.checker import check
from agjson.fold import Reducer, snapshot
from agjson.types import (
    AgClientCapabilities,
    AgHitlAnswer,
    AgHitlCapabilities,
    AgMessage,
    AgStateCapabilities,
    AgStreamingCapabilities,
    AgToolResult,
    DataBlock,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultInput,
)
from agjson.wire import to_dict
from tests.support.folding import same_json
from tests.support.properties import examples
from tests.support.scripted import ScriptAgent, Session, said

# A kind of entity has few ids, so that they collide, between turns too; some look like renamed or derived ones.
message_ids = st.sampled_from(["m", "n", "m#2", "u0", "t:message:0"])
block_ids = st.sampled_from(["x", "y", "x#2", "t:text:0"])
call_ids = st.sampled_from(["c", "d", "c#2"])
ask_ids = st.none() | st.sampled_from(["a", "b", "a#2"])
data_ids = st.none() | st.just("data")
roles = st.sampled_from(["assistant", "user", "tool"])
outcomes = st.sampled_from([None, "ok", "input_required"])
maybe_true = st.sampled_from([None, True])
turns = st.none() | st.sampled_from(["t", "s"])
blocks = st.one_of(
    st.builds(TextBlock, text=st.just("whole")),
    st.builds(ToolCallBlock, tool_call_id=call_ids, name=st.just("f"), input=st.just({})),
    st.builds(ToolResultBlock, tool_call_id=call_ids, content=st.just([]), outcome=outcomes),
    st.builds(DataBlock, name=st.just("d"), id=data_ids, data=st.just(1), transient=maybe_true),
)


def does(method: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"do": st.just(method), **fields})


natives = st.one_of(
    does("message_start", id=st.none() | message_ids, role=roles, turn_id=turns),
    does("message_end", id=st.none() | message_ids),
    does("text_start", id=block_ids, turn_id=turns),
    does("text_delta", id=block_ids, delta=st.sampled_from(["", "x", "yz", "\ud83d", "\ude00"])),
    does("text_end", id=block_ids),
    does("reasoning_delta", id=block_ids, delta=st.just("hm"), part_index=st.sampled_from([None, 0, 1])),
    does("reasoning_opaque", id=block_ids, value=st.just("sig")),
    does("reasoning_end", id=block_ids),
    does(
        "tool_start",
        tool_call_id=call_ids,
        name=st.just("f"),
        turn_id=turns,
        provider_executed=maybe_true,
    ),
    does("tool_args_delta", tool_call_id=call_ids, delta=st.just('{"a": 1}')),
    does("tool_done", tool_call_id=call_ids, more=st.booleans(), outcome=outcomes),
    does("content_block", block=blocks),
    does("subagent_start", turn_id=st.just("s")),
    does("subagent_done", turn_id=st.just("s")),
    does(
        "hitl_ask",
        kind=st.sampled_from(["approval", "form", "text"]),
        ask_id=ask_ids,
        tool_call_id=st.none() | call_ids,
    ),
    does("state_snapshot", snapshot=st.just({"x": 0})),
    does("state_delta", patch=st.just([{"op": "add", "path": "/x", "value": 1}]) | st.just({"n": {"k": 1}})),
    does("memory_write", scope=st.just("thread"), value=st.just([1])),
    does("memory_write", scope=st.just("thread"), patch=st.just([{"op": "add", "path": "/-", "value": 2}])),
    does("artifact_delta", artifact_id=st.sampled_from(["art", "art 2"]), part=st.just(TextBlock(text="p"))),
    does("ext", type=st.just("ext.agjson.x"), payload=st.just({"seq": 1})),
    does("turn_done", finish_reason=st.sampled_from(["stop", "tool_call", "paused"])),
    does("turn_paused"),
    does("turn_error", message=st.just("bad")),
    does("turn_abort"),
    does("no_such_method"),
    st.just(7),
)
ends = st.sampled_from(
    [None, None, RuntimeError("broken"), {"do": "turn_done", "finish_reason": "tool_call"}, {"do": "turn_paused"}]
)
clients = st.none() | st.builds(
    AgClientCapabilities,
    streaming=st.none() | st.builds(AgStreamingCapabilities, partial_messages=st.booleans()),
    state=st.none() | st.builds(AgStateCapabilities, json_patch=st.booleans()),
    hitl=st.none() | st.builds(AgHitlCapabilities, ask=st.booleans(), form=st.booleans()),
)
said_messages = st.lists(
    st.builds(
        AgMessage,
        id=st.sampled_from(["", "u0", "u1", "m", "n"]),
        role=st.sampled_from(["user", "assistant", "system", "tool"]),
        content=st.lists(blocks, max_size=2),
        metadata=st.none() | st.just({"k": 1}),
        reference_turn_ids=st.none() | st.just(["t"]),
    ),
    max_size=2,
    unique_by=lambda message: message.id,
)
runs = st.tuples(st.lists(natives, max_size=12), ends, clients, said_messages, st.integers(0, 12), st.booleans())


def next_input(pending: Pending, number: int, messages: list[AgMessage], whole: bool, client: Any) -> Any:
    """What a client sends next: what the thread waits for, all of it or the first part, else new words."""
    common: dict[str, Any] = {"thread_id": "th", "turn_id": "t", "capabilities": client}
    if pending.open_calls:
        calls = pending.open_calls if whole else pending.open_calls[:1]
        return ToolResultInput(results=[AgToolResult(tool_call_id=id, content=[]) for id in calls], **common)
    if pending.open_asks:
        asks = pending.open_asks if whole else pending.open_asks[:1]
        answers = [AgHitlAnswer(ask_id=ask.ask_id, status="declined") for ask in asks]
        return ResumeInput(answers=answers, **common)
    return StartInput(messages=[*messages, said("hello", f"said {number}")], **common)


@given(st.lists(runs, min_size=1, max_size=4))
@examples(150)
def test_any_script(script: list[Any]) -> None:
    agent = ScriptAgent(lambda run: [], blocking=True, on_paused="discard")
    session = Session(agent)
    client = Reducer()
    pending = Pending()
    known: Collection[str] = set()
    for number, (sent, end, capabilities, messages, stop_after, stops) in enumerate(script):
        agent.script = lambda run, sent=sent, end=end: [*sent, *([] if end is None else [end])]  # type: ignore[misc]
        fresh = [message for message in messages if message.id not in known]
        before = client.result()
        ag_input = next_input(pending, number, fresh, stop_after % 2 == 0, capabilities)
        stream = []
        events = agent.run_sync(ag_input)
        for event in events:
            stream.append(event)
            if stops and len(stream) > stop_after and event.type not in ("turn.done", "turn.error", "turn.abort"):
                break
        else:
            stops = False
        events.close()
        for event in stream:
            client.push(event)
        assert not client.needs_resync, client.resync_reason
        thread = session.thread()
        if stops:
            # A reader that has left asks for what it has missed.
            for event in snapshot(thread.result):
                client.push(event)
        else:
            found = list(check(stream, initial=before) if number else check(stream))
            assert not found, "\n".join(map(str, found))
        assert same_json(to_dict(client.result()), to_dict(thread.result))
        pending, known = thread.pending, thread.ids
    assert agent.opened == agent.closed
