"""Messages are told once: by run while they stream, whole where nothing streamed, and as nodes commit them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agjson.adapters.langgraph._scope import Scope
from tests.support.langgraph_messages import META, ROOT, Native, Stream, ai, blocks, chunk, folded, last, part, tool


def texts(events: list[Native]) -> list[str]:
    """What text deltas among events say."""
    return [event["delta"] for event in events if event["type"] == "text.delta"]


def said(stream: Stream) -> list[tuple[str, str]]:
    """The messages of a sound stream, as id and text."""
    return [(message["id"], "".join(block.get("text", "") for block in message["content"])) for message in stream.end()]


# Runs


def test_an_id_that_changes_inside_a_run_makes_no_second_message() -> None:
    stream = Stream()
    stream.take(chunk("", "resp_1", response_metadata={"id": "resp_1"}), chunk("Hel"), chunk("lo", "lc_run--1"), last())

    assert said(stream) == [("resp_1", "Hello")]


def test_the_id_that_counts_in_the_end_is_recorded() -> None:
    stream = Stream()
    stream.take(chunk("Hel"), chunk("lo", "msg_1"), last("msg_1"))

    (message,) = stream.end()
    assert message["id"] == "lc_run--1"
    assert message["metadata"]["langgraph/messageId"] == "msg_1"
    assert stream.commit(ai("Hello", "msg_1")) == []


@pytest.mark.parametrize("key", [1, None])
def test_a_run_is_one_message_with_or_without_its_identity(key: int | None) -> None:
    stream = Stream()
    stream.take(chunk("", "resp_1"), chunk("Hel"), chunk("lo"), last("resp_1"), key=key)

    assert said(stream) == [("resp_1", "Hello")]


def test_runs_without_identity_are_told_apart_by_place_and_id() -> None:
    stream = Stream()
    other = {**META, "langgraph_checkpoint_ns": "model:task-2"}
    stream.take(chunk("a", "lc_run--1"), key=None)
    stream.take(chunk("x", "lc_run--2"), key=None, meta=other)
    stream.take(chunk("b", "lc_run--1"), last("lc_run--1"), key=None)
    stream.take(chunk("y", "lc_run--2"), last("lc_run--2"), key=None, meta=other)
    stream.take(chunk("p", "lc_run--3"), chunk("q", "lc_run--4"), chunk("P", "lc_run--3"), key=None)

    assert said(stream) == [("lc_run--1", "ab"), ("lc_run--2", "xy"), ("lc_run--3", "pP"), ("lc_run--4", "q")]


def test_runs_of_one_turn_go_out_one_after_the_other() -> None:
    stream = Stream()
    assert texts(stream.take(chunk("a1", "lc_run--1"), key=1)) == ["a1"]
    assert stream.take(chunk("b1", "lc_run--2"), key=2) == []
    assert texts(stream.take(chunk("a2", "lc_run--1"), key=1)) == ["a2"]
    assert stream.take(chunk("b2", "lc_run--2"), last("lc_run--2"), key=2) == []
    assert texts(stream.take(last("lc_run--1"), key=1)) == ["b1", "b2"]

    assert said(stream) == [("lc_run--1", "a1a2"), ("lc_run--2", "b1b2")]


def test_runs_of_different_turns_do_not_wait_for_each_other() -> None:
    stream = Stream()
    stream.out.subagent_start("t1/a", parent_turn_id="t1")
    stream.out.subagent_start("t1/b", parent_turn_id="t1")
    one, other = Scope(("a:1",), "t1/a", "a"), Scope(("b:1",), "t1/b", "b")

    assert texts(stream.take(chunk("a", "lc_run--1"), key=1, scope=one)) == ["a"]
    events = stream.take(chunk("b", "lc_run--2"), key=2, scope=other)

    assert texts(events) == ["b"]
    assert events[-3] == {
        "type": "message.start",
        "id": "lc_run--2",
        "role": "assistant",
        "agentName": "b",
        "_meta": {"langgraph/node": "model", "langgraph/ns": ["b:1"]},
    }


def test_a_result_waits_for_its_call() -> None:
    stream = Stream()
    stream.take(chunk("thinking aloud", "lc_run--1"), key=1)
    stream.take(chunk("", "lc_run--2", tool_call_chunks=[part("look", "{}", "c1", 0)]), last("lc_run--2"), key=2)

    assert stream.take(tool("42", "c1")) == []
    events = stream.take(last("lc_run--1"), key=1)

    assert [event["type"] for event in events][-2:] == ["message.end", "tool.done"]
    assert [message["id"] for message in stream.end()] == ["lc_run--1", "lc_run--2", "tm1"]


def test_a_result_does_not_wait_for_what_is_not_its_call() -> None:
    stream = Stream()
    stream.take(chunk("", "lc_run--0", tool_call_chunks=[part("look", "{}", "c1", 0)]), last("lc_run--0"), key=0)
    stream.take(chunk("still", "lc_run--1"), key=1)

    assert [event["type"] for event in stream.take(tool("42", "c1"))] == ["tool.done"]
    stream.end()


def test_a_result_ends_the_message_of_its_call() -> None:
    stream = Stream()
    stream.take(chunk("Let me look.", tool_call_chunks=[part("look", "{}", "c1", 0)]))

    assert [event["type"] for event in stream.take(tool("42", "c1"))][-2:] == ["message.end", "tool.done"]
    assert texts(stream.take(chunk("It is 42.", "lc_run--2"), key=2)) == ["It is 42."]
    stream.end()


def test_a_later_step_ends_a_message_whose_end_nobody_told() -> None:
    stream = Stream()
    stream.take(chunk("a"), meta={**META, "langgraph_step": 1})

    assert stream.take(chunk("b", "lc_run--2"), key=2, meta={**META, "langgraph_step": 1}) == []
    events = stream.take(chunk("c", "lc_run--3"), key=3, meta={**META, "langgraph_step": 2})
    assert texts(events) == ["b", "c"]
    assert said(stream) == [("lc_run--1", "a"), ("lc_run--2", "b"), ("lc_run--3", "c")]


def test_an_identity_that_comes_back_for_another_run_is_another_message() -> None:
    stream = Stream()
    stream.take(chunk("a"), last())
    stream.take(chunk("", "lc_run--2", response_metadata={"id": "2"}), chunk("b", "lc_run--2"), last("lc_run--2"))

    first, second = stream.end()
    assert (first["id"], second["id"]) == ("lc_run--1", "lc_run--2")
    assert "metadata" not in first
    assert second["metadata"] == {"langgraph/responseMetadata": {"id": "2"}}


def test_what_speaks_on_after_its_end_is_another_message() -> None:
    stream = Stream()
    stream.take(chunk("one"), last(), chunk("two", "lc_run--1"), last())

    assert said(stream) == [("lc_run--1", "one"), ("lc_run--1#2", "two")]


def test_the_model_and_the_tags_are_attributed() -> None:
    stream = Stream()
    meta = {**META, "ls_model_name": "m-1", "tags": ["draft"], "agjson/turnId": "t1"}

    events = stream.take(chunk("a"), meta=meta, scope=Scope((), "t1", "root"))

    assert events[1] == {
        "type": "message.start",
        "id": "lc_run--1",
        "role": "assistant",
        "agentName": "root",
        "model": "m-1",
        "_meta": {"langgraph/node": "model", "langgraph/tags": ["draft"]},
    }


def test_what_must_not_stream_is_told_when_it_is_committed() -> None:
    stream = Stream()

    assert stream.take(chunk("secret"), last(), meta={**META, "tags": ["nostream"]}) == []
    assert texts(stream.commit(ai("answer", "lc_run--1"))) == ["answer"]
    assert said(stream) == [("lc_run--1", "answer")]


def test_metadata_of_the_answer_is_kept_whole() -> None:
    stream = Stream()
    stream.take(
        chunk("a", response_metadata={"model_provider": "openai"}, additional_kwargs={"audio": {"id": "au"}}),
        last(response_metadata={"finish_reason": "stop", "logprobs": None}, name="writer"),
    )

    (message,) = stream.end()
    assert message["metadata"] == {
        "langgraph/responseMetadata": {"model_provider": "openai", "finish_reason": "stop"},
        "langgraph/additionalKwargs": {"audio": {"id": "au"}},
        "langgraph/name": "writer",
    }


def test_what_a_whole_message_says_beside_its_content_is_kept() -> None:
    stream = Stream()
    kwargs = {"k": "v", "refusal": "No.", "empty": None}
    stream.commit(ai("", additional_kwargs=kwargs, response_metadata={"r": 1}, beyond={"x": 1}))

    (message,) = stream.end()
    assert [block["text"] for block in message["content"]] == ["No."]
    assert message["metadata"] == {
        "langgraph/responseMetadata": {"r": 1},
        "langgraph/additionalKwargs": {"k": "v"},
        "langgraph/fields": {"beyond": {"x": 1}},
    }


# Whole messages


@pytest.mark.parametrize(
    ("kind", "role"),
    [("ai", "assistant"), ("human", "user"), ("system", "system")],
)
def test_a_whole_message_has_its_role(kind: str, role: str) -> None:
    stream = Stream()
    stream.take({"type": kind, "content": "Hello", "id": "m1"})

    (message,) = stream.end()
    assert (message["id"], message["role"], message["content"]) == ("m1", role, [{"type": "text", "text": "Hello"}])


def test_a_chat_message_says_who_speaks() -> None:
    stream = Stream()
    stream.commit({"type": "chat", "role": "user", "content": "Hello", "id": "m1"})

    assert [message["role"] for message in stream.end()] == ["user"]


def test_a_whole_message_is_told_once() -> None:
    stream = Stream()
    assert texts(stream.take(ai("Hello"))) == ["Hello"]
    assert stream.take(ai("Hello")) == []
    assert stream.commit(ai("Hello")) == []
    assert stream.commit(ai("Hello"), node=None, scope=Scope(("outer:1",), "t1")) == []

    assert said(stream) == [("m1", "Hello")]


def test_a_whole_message_waits_until_the_open_one_ends() -> None:
    stream = Stream()
    stream.take(chunk("a", "lc_run--1"), key=1)
    assert stream.take({"type": "human", "content": "note", "id": "h1"}) == []
    stream.take(last("lc_run--1"), key=1)

    assert said(stream) == [("lc_run--1", "a"), ("h1", "note")]


def test_messages_without_an_id_are_each_told() -> None:
    stream = Stream()
    stream.commit(ai("a", None))
    stream.commit(ai("a", None))

    assert [text for _, text in said(stream)] == ["a", "a"]


def test_history_is_not_told_again() -> None:
    stream = Stream()
    stream.runs.known(["m1", "tm1"])

    assert stream.take(ai("old"), tool("42", "c1")) == []
    assert stream.commit(ai("old")) == []
    assert not stream.runs.take_resync()
    assert stream.end() == []


# Commits


def test_a_commit_ends_a_message_whose_end_nobody_told() -> None:
    stream = Stream()
    stream.take(chunk("Hello"))

    assert [event["type"] for event in stream.commit(ai("Hello", "lc_run--1"))] == ["text.end", "message.end"]


def test_a_commit_of_a_run_that_waits_is_all_that_it_says() -> None:
    stream = Stream()
    stream.take(chunk("a", "lc_run--1"), key=1)
    stream.take(chunk("b", "lc_run--2"), key=2)
    assert stream.commit(ai("b", "lc_run--2")) == []
    stream.take(last("lc_run--1"), key=1)

    assert said(stream) == [("lc_run--1", "a"), ("lc_run--2", "b")]


def test_a_name_that_comes_with_the_commit_is_told() -> None:
    stream = Stream()
    stream.take(chunk("a"), last())

    assert stream.commit(ai("a", "lc_run--1", name="writer")) == [
        {"type": "message.metadata", "messageId": "lc_run--1", "metadata": {"langgraph/name": "writer"}}
    ]
    assert stream.commit(ai("a", "lc_run--1", name="writer")) == []


def test_a_changed_message_asks_for_a_snapshot() -> None:
    stream = Stream()
    stream.take(chunk("draft"), last())

    assert stream.commit(ai("final", "lc_run--1")) == []
    assert stream.runs.take_resync()
    assert not stream.runs.take_resync()
    assert stream.commit(ai("final", "lc_run--1")) == []
    assert not stream.runs.take_resync()
    assert said(stream) == [("lc_run--1", "draft")]


def test_a_change_that_nobody_asks_for_is_told_at_the_end() -> None:
    stream = Stream()
    stream.take(chunk("draft"), last())
    stream.commit(ai("final", "lc_run--1"))

    (message,) = stream.end()
    assert message["content"] == [{"type": "text", "text": "final"}]
    assert [event.type for event in stream.events].count("message.remove") == 1


def test_a_change_that_is_taken_back_is_none() -> None:
    stream = Stream()
    stream.take(chunk("draft"), last())
    stream.commit(ai("final", "lc_run--1"))
    stream.commit(ai("draft", "lc_run--1"))

    assert not stream.runs.take_resync()


def test_a_change_of_history_is_seen_where_the_history_is_known() -> None:
    stream = Stream()
    stream.runs.history([ai("old"), tool("42", "c1")], ROOT)

    assert stream.commit(ai("old")) == []
    assert not stream.runs.take_resync()
    assert stream.commit(tool("43", "c1")) == []
    assert stream.runs.take_resync()


def test_a_change_after_a_snapshot_is_seen() -> None:
    stream = Stream()
    stream.take(chunk("draft"), last())
    stream.runs.known(["lc_run--1"])

    assert stream.commit(ai("draft", "lc_run--1")) == []
    assert not stream.runs.take_resync()
    stream.commit(ai("final", "lc_run--1"))
    assert stream.runs.take_resync()


def test_what_a_task_has_not_put_into_the_state_is_marked() -> None:
    stream = Stream()
    stream.take(chunk("route: b", "lc_run--1"), last("lc_run--1"), key=1)
    stream.take(chunk("Hello", "lc_run--2"), last("lc_run--2"), key=2)
    stream.commit(ai("Hello", "lc_run--2"))

    stream.runs.end_task("task-1", "model", scope=ROOT)

    assert stream.drained() == [
        {"type": "message.metadata", "messageId": "lc_run--1", "metadata": {"langgraph/committed": False}}
    ]
    assert stream.commit(ai("route: b", "lc_run--1")) == [
        {"type": "message.metadata", "messageId": "lc_run--1", "metadata": {"langgraph/committed": True}}
    ]


def test_what_a_task_has_not_put_into_the_state_may_be_dropped() -> None:
    stream = Stream(drop_uncommitted=True)
    stream.take(chunk("route: b", "lc_run--1"), last("lc_run--1"), key=1)
    stream.take(chunk("Hello", "lc_run--2"), last("lc_run--2"), key=2)
    stream.commit(ai("Hello", "lc_run--2"))

    stream.runs.end_task("task-1", "model", scope=ROOT)

    assert said(stream) == [("lc_run--2", "Hello")]


def test_the_end_of_a_task_ends_the_partial_message_of_a_retry() -> None:
    stream = Stream()
    stream.take(chunk("Hel", "lc_run--1"), key=1)
    stream.take(chunk("Hello", "lc_run--2"), last("lc_run--2"), key=2)
    stream.commit(ai("Hello", "lc_run--2"))
    stream.runs.end_task("task-1", "model", scope=ROOT)
    events = stream.drained()

    assert texts(events) == ["Hello"]
    assert events[-1]["metadata"] == {"langgraph/committed": False}
    assert said(stream) == [("lc_run--1", "Hel"), ("lc_run--2", "Hello")]


def test_the_end_of_another_task_ends_nothing() -> None:
    stream = Stream()
    stream.take(chunk("Hel"))

    stream.runs.end_task("task-2", "model", scope=ROOT)

    assert stream.drained() == []


def test_release_lets_out_all_that_waits() -> None:
    stream = Stream()
    stream.take(chunk("a", "lc_run--1"), key=1)
    stream.take(chunk("b", "lc_run--2"), key=2)
    stream.take(chunk("c", "lc_run--3", tool_call_chunks=[part("look", "{}", "c1", 0)]), key=3)
    stream.take(tool("42", "c1"))

    assert said(stream) == [("lc_run--1", "a"), ("lc_run--2", "b"), ("lc_run--3", "c"), ("tm1", "")]


# Removals


def test_a_told_message_is_removed() -> None:
    stream = Stream()
    stream.take(chunk("a"), last())
    stream.runs.remove("lc_run--1", scope=ROOT)

    assert stream.drained() == [{"type": "message.remove", "id": "lc_run--1"}]
    assert stream.end() == []


def test_an_open_message_is_removed() -> None:
    stream = Stream()
    stream.take(chunk("a"))
    stream.commit({"type": "remove", "id": "lc_run--1", "content": ""})

    assert stream.end() == []


def test_a_message_that_waits_is_removed_before_anybody_sees_it() -> None:
    stream = Stream()
    stream.take(chunk("a", "lc_run--1"), key=1)
    stream.take(chunk("b", "lc_run--2"), key=2)
    stream.runs.remove("lc_run--2", scope=ROOT)

    assert said(stream) == [("lc_run--1", "a")]


def test_a_message_of_history_is_removed() -> None:
    stream = Stream()
    stream.runs.known(["m1"])
    stream.runs.remove("m1", scope=ROOT)

    assert stream.drained()[-1] == {"type": "message.remove", "id": "m1"}


def test_a_result_is_removed() -> None:
    stream = Stream()
    stream.take(chunk(tool_call_chunks=[part("look", "{}", "c1", 0)]), last(), tool("42", "c1"))
    stream.runs.remove("tm1", scope=ROOT)

    assert [message["id"] for message in stream.end()] == ["lc_run--1"]


def test_a_removal_in_the_stream_of_messages_waits_for_the_update() -> None:
    stream = Stream()
    stream.take(chunk("a"), last())

    assert stream.take({"type": "remove", "id": "lc_run--1", "content": ""}) == []


# Whatever comes


@pytest.mark.parametrize("seed", range(40))
def test_runs_in_any_order_lose_nothing(seed: int) -> None:
    rng = random.Random(seed)
    scripts: dict[int, list[Native]] = {
        number: [
            *(chunk(f"{number}.{step} ", f"lc_run--{number}") for step in range(rng.randint(1, 4))),
            last(f"lc_run--{number}"),
        ]
        for number in range(5)
    }
    expected = {f"lc_run--{number}": "".join(each["content"] for each in script) for number, script in scripts.items()}
    stream = Stream()
    while any(scripts.values()):
        number = rng.choice([number for number, script in scripts.items() if script])
        stream.take(scripts[number].pop(0), key=number)
        if not scripts[number] and rng.random() < 0.5:
            stream.commit(ai(expected[f"lc_run--{number}"], f"lc_run--{number}"))

    assert dict(said(stream)) == expected
    assert len(folded(stream.events)) == 5


ODD: tuple[Any, ...] = (None, 7, True, "x", [], {}, [None], ["x", 7], [{}], [{"type": "text"}], {"type": 7}, -1.5)
MEMBERS = (
    "content",
    "id",
    "additional_kwargs",
    "response_metadata",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_chunks",
    "usage_metadata",
    "chunk_position",
    "name",
    "status",
    "artifact",
)


@pytest.mark.parametrize(
    ("member", "odd"), [(member, odd) for member in MEMBERS for odd in ODD if not (member == "id" and odd == "x")]
)
def test_a_member_of_any_shape_breaks_nothing(member: str, odd: Any) -> None:
    stream = Stream()
    stream.take(chunk("a"), {**chunk("b"), member: odd}, chunk("c"), last())
    stream.take({**ai("whole"), member: odd}, {**tool("42", "c1"), member: odd}, key=None)
    stream.commit({**ai("more", "m2"), member: odd})

    stream.end()
    found = "".join(each.get("text", "") for each in blocks(stream.events))
    assert found.startswith("a") and "c" in found


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("member", ["content", "tool_call_chunks", "additional_kwargs"])
@pytest.mark.parametrize(
    "open",
    [
        {"content": "a"},
        {"content": [{"type": "text", "text": "a", "index": 0}]},
        {"additional_kwargs": {"reasoning_content": "a"}},
        {"tool_call_chunks": [part("look", "{", "c1", 0)]},
    ],
    ids=lambda open: next(iter(open)),
)
def test_what_is_open_goes_on_after_a_chunk_of_any_shape(open: Native, member: str, odd: Any) -> None:
    stream = Stream()
    opening = {**chunk(), **open}
    stream.take(opening, {**opening, member: odd}, {**chunk(), member: odd}, chunk("end"), last())

    stream.end()
    assert "end" in "".join(each.get("text", "") for each in blocks(stream.events))


def test_members_that_a_serialisation_leaves_out_are_not_missed() -> None:
    stream = Stream()
    bare = {"type": "AIMessageChunk", "content": "a", "id": "lc_run--1"}
    stream.take(bare, bare)
    stream.take({"type": "ai", "content": "b"})

    assert [text for _, text in said(stream)] == ["aa", "b"]
