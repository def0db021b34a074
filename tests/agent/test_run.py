"""A run: its events, the ids that it gives, and what is kept of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

from agjson.agents import Agent, Invocation, MemoryThreadStore, NormalizerSettings
from agjson.normalizer import HostEnd
from agjson.types import (
    UNSET,
    AgMessage,
    AgPushNotification,
    AgRunConfig,
    AgTrigger,
    AgUsage,
    ErrorOutcome,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    UrlSource,
)
from agjson.wire import to_dict
from tests.support.scripted import (
    ScriptAgent,
    ScriptNormalizer,
    Session,
    calls,
    results,
    said,
    start,
    terminal,
    text,
    types,
)


async def test_what_the_user_says_is_part_of_the_stream_and_of_what_is_stored() -> None:
    session = Session(ScriptAgent(lambda run: text("Hi there")))
    events = await session.run(start(said("hello", "u1")))
    assert types(events) == [
        "turn.start",
        "agent.capabilities",
        "message.start",
        "content.block",
        "message.end",
        "message.start",
        "text.start",
        "text.delta",
        "text.delta",
        "text.end",
        "message.end",
        "turn.done",
    ]
    stored = [(message.id, message.role) for message in session.thread().result.messages]
    assert stored == [("u1", "user"), ("m-x", "assistant")]
    session.verify()


async def test_five_runs_with_the_same_native_ids_fold_strictly() -> None:
    session = Session(ScriptAgent(lambda run: [*text("a"), *calls("c1")]))
    for number in range(5):
        await session.run(start(said("again", f"u{number}")))
    session.verify()
    thread = session.thread()
    assert [turn.turn_id for turn in thread.result.turns] == ["t", "t:2", "t:3", "t:4", "t:5"]
    made = [b for m in thread.result.messages for b in m.content if isinstance(b, ToolCallBlock)]
    assert [block.tool_call_id for block in made] == ["c1", "c1#2", "c1#3", "c1#4", "c1#5"]
    assert {"x", "x#5", "m-x#5"} <= set(thread.ids)
    assert thread.revision == 5


async def test_a_turn_id_never_comes_again_though_a_snapshot_has_taken_its_turn_away() -> None:
    natives: list[list[dict[str, Any]]] = [[], [{"do": "messages_snapshot", "messages": [], "turns": []}], []]
    session = Session(ScriptAgent(lambda run: natives.pop(0)))
    await session.run(start(said("1", "u1")))
    await session.run(start(said("2", "u2"), turn="other"))
    assert [turn.turn_id for turn in session.thread().result.turns] == ["other"]
    events = await session.run(start(said("3", "u3")))
    assert to_dict(events[0])["turnId"] == "t:2"


async def test_a_call_of_an_earlier_run_is_known_by_its_native_id() -> None:
    natives: list[list[dict[str, Any]]] = [
        calls("c1"),
        calls("c1"),
        [{"do": "tool_done", "tool_call_id": "c1", "content": [TextBlock(text="late")]}],
    ]
    session = Session(ScriptAgent(lambda run: natives.pop(0)))
    await session.run(start(said("1", "u1")))
    await session.run(start(said("2", "u2")))
    events = await session.run(start(said("3", "u3")))
    done = next(event for event in events if isinstance(event, ToolDone))
    assert (done.tool_call_id, done.message_id) == ("c1#2", "c1#2:result")
    session.verify()


async def test_the_agent_says_what_it_can_do_once_in_each_thread() -> None:
    agent = ScriptAgent(lambda run: text("a"))
    first, second = Session(agent, "th"), Session(agent, "other")
    counts = [
        types(await session.run(start(said("x", f"u{number}"), thread=session.thread_id))).count("agent.capabilities")
        for number, session in enumerate([first, first, second])
    ]
    assert counts == [1, 0, 1]
    assert types(await Session(ScriptAgent(lambda run: [], capabilities=None)).run(start())) == [
        "turn.start",
        "message.start",
        "content.block",
        "message.end",
        "turn.done",
    ]


async def test_every_member_of_a_message_is_kept() -> None:
    message = AgMessage(
        id="u1",
        role="user",
        content=[
            TextBlock(text="look", meta={"traceparent": "00-1", "app/key": 1}),
            ImageBlock(source=UrlSource(url="https://example.org/a.png")),
        ],
        reference_turn_ids=["t0"],
        message_metadata={"a2uiClientDataModel": {"s": {"x": 1}}},
        extensions=["urn:x"],
        metadata={"flat": True, "app/flat": None},
        agent_id="a",
        agent_name="A",
        agent_role="critic",
        model="m",
        usage=AgUsage(input_tokens=3),
        turn_id="elsewhere",
        thread_id="elsewhere",
    )
    agent = ScriptAgent(lambda run: text("a"))
    session = Session(agent)
    await session.run(start(message))
    stored = session.thread().result.messages[0]
    assert to_dict(stored) == {**to_dict(message), "turnId": "t", "threadId": "th"}
    assert list(agent.seen[0].messages) == [stored]
    session.verify()


async def test_a_history_may_come_with_the_first_start() -> None:
    history = [
        said("add", "h1"),
        AgMessage(id="h2", role="assistant", content=[ToolCallBlock(tool_call_id="c", name="add", input={})]),
        AgMessage(id="h3", role="tool", content=[ToolResultBlock(tool_call_id="c", content=[TextBlock(text="3")])]),
        said("thanks", "h4"),
    ]
    session = Session(ScriptAgent(lambda run: text("welcome")))
    await session.run(start(*history))
    assert [message.role for message in session.thread().result.messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert session.thread().pending.calls == ()
    session.verify()


async def test_messages_that_are_there_already_are_not_said_again() -> None:
    agent = ScriptAgent(lambda run: text("hi"))
    session = Session(agent)
    await session.run(start(said("one", "u1")))
    await session.run(start(*session.thread().result.messages, said("two", "u2")))
    assert [message.id for message in session.thread().result.messages] == ["u1", "m-x", "u2", "m-x#2"]
    assert [message.id for message in agent.seen[1].history] == ["u1", "m-x"]
    assert [message.id for message in agent.seen[1].messages] == ["u2"]
    assert agent.seen[1].input.messages == [said("two", "u2")]  # type: ignore[union-attr]
    session.verify()


async def test_a_start_without_messages_goes_on_where_the_thread_ends() -> None:
    agent = ScriptAgent(lambda run: text("more"))
    session = Session(agent)
    await session.run(start())
    await session.run(start().__class__(thread_id="th", turn_id="t2", messages=[]))
    assert list(agent.seen[1].messages) == []
    session.verify()


async def test_the_trigger_says_what_set_the_turn_off() -> None:
    session = Session(ScriptAgent(lambda run: calls("c") if run.input.kind == "start" else text("a")))
    await session.run(start())
    await session.run(results("c"))
    await session.run(start(said("x", "u9")), trigger=AgTrigger(kind="cron", ref="0 * * * *"))
    triggers = [to_dict(turn.trigger) for turn in session.thread().result.turns]
    assert triggers == [{"kind": "user"}, {"kind": "resume"}, {"kind": "cron", "ref": "0 * * * *"}]


async def test_results_and_answers_go_on_with_the_settings_of_the_start() -> None:
    agent = ScriptAgent(lambda run: calls("c") if run.input.kind == "start" else text("a"))
    session = Session(agent)
    callback = AgPushNotification(url="https://example.org", token="secret")
    config = AgRunConfig(model="big", push_notification=callback)
    await session.run(start(run=config))
    await session.run(results("c"))
    assert agent.seen[0].run == config
    assert agent.seen[1].run == AgRunConfig(model="big")
    assert session.thread().started_by == "t"


async def test_an_input_may_be_plain_data() -> None:
    data = {
        "protocol": "agjson",
        "version": "1.0.0",
        "kind": "start",
        "threadId": "th",
        "turnId": "t",
        "messages": [{"id": "u", "role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    session = Session(ScriptAgent(lambda run: text("a")))
    assert terminal(await session.run(data))["type"] == "turn.done"


async def test_the_adapter_may_end_the_run_itself() -> None:
    end_of_run = HostEnd(finish_reason="other", usage=AgUsage(output_tokens=7))
    session = Session(ScriptAgent(lambda run: [*text("a"), end_of_run]))
    end = terminal(await session.run(start()))
    assert (end["finishReason"], end["usage"]) == ("other", {"outputTokens": 7})


async def test_state_and_memory_of_the_thread_are_what_the_next_run_patches() -> None:
    natives = [
        [
            {"do": "state_snapshot", "snapshot": {"n": 1}},
            {"do": "memory_write", "scope": "thread", "key": "k", "value": {"a": 1}},
        ],
        [
            {"do": "state_delta", "patch": [{"op": "replace", "path": "/n", "value": 2}]},
            {"do": "memory_write", "scope": "thread", "key": "k", "patch": [{"op": "add", "path": "/b", "value": 2}]},
        ],
    ]
    session = Session(ScriptAgent(lambda run: natives.pop(0)))
    await session.run(start(said("1", "u1")))
    assert "error" not in types(await session.run(start(said("2", "u2"))))
    result = session.thread().result
    assert result.state == {"n": 2} and result.state is not UNSET
    assert result.memory[0].value == {"a": 1, "b": 2}
    session.verify()


async def test_nested_turns_are_not_part_of_the_history_that_the_framework_gets() -> None:
    natives = [
        [
            {"do": "message_start", "id": "outer"},
            {"do": "subagent_start", "turn_id": "inner"},
            {"do": "message_start", "id": "within"},
            {"do": "subagent_done"},
        ],
        [],
    ]
    agent = ScriptAgent(lambda run: natives.pop(0))
    session = Session(agent)
    await session.run(start(said("1", "u1")))
    await session.run(start(said("2", "u2")))
    assert [message.id for message in session.thread().result.messages] == ["u1", "outer", "within", "u2"]
    assert [message.id for message in agent.seen[1].history] == ["u1", "outer"]
    session.verify()


async def test_what_cannot_be_honoured_is_named_and_what_was_mended_is_told() -> None:
    class Call:
        unsupported = ("run.temperature", "state")
        repairs = ({"code": "text_dropped", "path": "$[0]"},)

    session = Session(ScriptAgent(lambda run: text("a"), prepare=lambda run: Call()))
    events = await session.run(start())
    errors = [to_dict(event) for event in events if event.type == "error"]
    assert [(error["code"], error["_meta"]["agjson/path"]) for error in errors] == [
        ("unsupported", "run.temperature"),
        ("unsupported", "state"),
    ]
    mended = next(to_dict(event) for event in events if event.type == "ext.agjson.repairs")
    assert mended["repairs"] == [{"code": "text_dropped", "path": "$[0]"}]
    assert terminal(events)["type"] == "turn.done"
    session.verify()


async def test_a_parent_turn_is_named() -> None:
    session = Session(ScriptAgent(lambda run: text("a")))
    events = await session.run(start(parent_turn_id="outer"))
    assert types(events)[:2] == ["turn.start", "subagent.start"]
    assert session.thread().nested == frozenset()
    session.verify()


async def test_a_thread_may_go_on_from_elsewhere() -> None:
    first = Session(ScriptAgent(lambda run: [{"do": "message_start", "id": "m"}]))
    await first.run(start(said("1", "u1")))
    store = MemoryThreadStore()
    store.put(type(first.thread()).of_result("th", first.thread().result))
    agent = ScriptAgent(lambda run: [{"do": "message_start", "id": "m"}], store=store)
    await Session(agent).run(start(said("2", "u2")))
    second = Session(agent).thread()
    assert [message.id for message in second.result.messages] == ["u1", "m", "u2", "m#2"]
    assert [turn.turn_id for turn in second.result.turns] == ["t", "t:2"]


def test_the_package_loads_no_asyncio_before_it_is_needed() -> None:
    code = "import agjson.agents, sys; print([m for m in ('asyncio', 'jsonpatch', 'anthropic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


async def test_an_agent_that_says_nothing_special() -> None:
    class Plain(Agent):
        def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> ScriptNormalizer:
            return ScriptNormalizer(**settings)

        async def _invoke(self, invocation: Invocation) -> AsyncIterator[Any]:
            assert invocation.native is None
            for native in calls("c1"):
                yield native

    session = Session(Plain())
    await session.run(start())
    assert session.thread().pending.open_calls == ["c1"]
    session.verify()


class _Odd(ScriptAgent):
    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> ScriptNormalizer:
        forgetful = settings.copy()
        forgetful["known_ids"] = frozenset()
        return ScriptNormalizer(**forgetful)


async def test_a_stream_that_does_not_fold_fails_visibly_and_leaves_what_the_input_brought() -> None:
    agent = _Odd(lambda run: text("a"))
    session = Session(agent)
    await session.run(start(said("1", "u1")))
    before = session.thread()
    end = terminal(await session.run(start(said("2", "u2"))))
    assert (end["type"], end["code"]) == ("turn.error", "fold_failed")
    after = session.thread()
    assert [message.id for message in after.messages] == [*(message.id for message in before.messages), "u2"]
    outcome = after.result.turns[-1].outcome
    assert isinstance(outcome, ErrorOutcome) and outcome.code == "fold_failed"
    assert after.revision == before.revision + 1
