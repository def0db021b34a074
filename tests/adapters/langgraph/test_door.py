"""Messages in every form become the same plain data, and metadata are converted once for each run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from agjson.adapters.langgraph._door import Door, is_message, native_message_id, plain_message

CHUNK = AIMessageChunk(
    content=[{"type": "text", "text": "hi", "index": 0}],
    id="m1",
    additional_kwargs={"k": {"deep": [1]}},
    response_metadata={"model_provider": "anthropic"},
    tool_call_chunks=[{"name": "f", "args": "{", "id": "c1", "index": 1, "type": "tool_call_chunk"}],
    usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
)
MESSAGES: list[BaseMessage] = [
    CHUNK,
    AIMessage("a", id="m2", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}], name="bot"),
    HumanMessage([{"type": "text", "text": "q"}], id="m3"),
    SystemMessage("s", id="m4"),
    ToolMessage("r", id="m5", tool_call_id="c", artifact={"raw": [1, 2]}, status="error", name="f"),
    RemoveMessage("m6"),
    AIMessageChunk(
        content="",
        id="m7",
        tool_call_chunks=[{"name": "f", "args": "{", "id": "c", "index": 0, "type": "tool_call_chunk"}],
    ),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_its_dump_in_every_form(message: BaseMessage) -> None:
    dump = message.model_dump()

    assert plain_message(message) == dump
    assert plain_message(json.loads(json.dumps(dump))) == dump
    assert plain_message(message) is not message.__dict__


@pytest.mark.parametrize("message", MESSAGES[:5], ids=lambda message: type(message).__name__)
def test_a_message_that_langchain_has_serialised(message: BaseMessage) -> None:
    read = plain_message(json.loads(json.dumps(dumpd(message))))

    assert read is not None
    dump = message.model_dump()
    assert read == {name: dump[name] for name in read}
    assert (read["type"], read["content"], read["id"]) == (message.type, message.content, message.id)


@pytest.mark.parametrize(
    ("native", "plain"),
    [
        ({"role": "user", "content": "q"}, {"type": "human", "content": "q"}),
        ({"role": "assistant", "content": "a", "id": "m"}, {"type": "ai", "content": "a", "id": "m"}),
        ({"role": "developer", "content": "s"}, {"type": "system", "content": "s"}),
        (("ai", "hello"), {"type": "ai", "content": "hello"}),
        ("hello", {"type": "human", "content": "hello"}),
    ],
)
def test_the_short_forms_that_a_node_may_return(native: Any, plain: dict[str, Any]) -> None:
    assert plain_message(native) == plain


def test_a_chunk_of_another_role_is_a_message_of_that_role() -> None:
    read = plain_message(HumanMessageChunk(content="q", id="m"))

    assert read is not None
    assert read["type"] == "human"


@pytest.mark.parametrize(
    "native", [None, 5, object(), {}, {"type": "ai"}, {"type": "text", "text": "x"}, ("no", "role")]
)
def test_anything_else_is_no_message(native: Any) -> None:
    assert plain_message(native) is None


def test_what_json_cannot_hold_becomes_a_marker() -> None:
    read = plain_message(ToolMessage("r", id="m", tool_call_id="c", artifact={"raw": b"\x00\x01"}))

    assert read is not None
    assert read["artifact"] == {"raw": {"agjson/bytes": "AAE="}}


class _Undecided:
    def __bool__(self) -> bool:
        raise ValueError("neither true nor false, as an array of numpy")

    def __repr__(self) -> str:
        return "undecided"


@pytest.mark.parametrize(
    ("value", "plain"), [((), []), ({}, {}), ([], []), (set[int](), []), (b"", {"agjson/bytes": ""})]
)
def test_what_is_empty_becomes_plain_too(value: object, plain: object) -> None:
    read = plain_message(AIMessageChunk(content="a", id="m", additional_kwargs={"k": value}))

    assert read is not None
    assert type(read["additional_kwargs"]["k"]) is type(plain)
    assert read["additional_kwargs"] == {"k": plain}


def test_nothing_is_asked_whether_it_is_true() -> None:
    read = plain_message(AIMessageChunk(content="a", id="m", additional_kwargs={"k": _Undecided()}))

    assert read is not None
    assert "undecided" in json.dumps(read["additional_kwargs"])


def test_what_is_a_message_and_its_id() -> None:
    assert [is_message(each) for each in (CHUNK, CHUNK.model_dump(), dumpd(CHUNK), {"type": "text"}, "x", None)] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    assert [
        native_message_id(each) for each in (CHUNK, CHUNK.model_dump(), dumpd(CHUNK), AIMessage("x"), {}, None)
    ] == [
        "m1",
        "m1",
        "m1",
        None,
        None,
        None,
    ]


def test_the_chunks_of_a_run_share_metadata_and_key() -> None:
    door, meta = Door(), {"langgraph_node": "model", "langgraph_path": ("a", 1)}
    first, second = door.message((CHUNK, meta)), door.message((CHUNK, meta))
    other = door.message((CHUNK, dict(meta)))

    assert first is not None and second is not None and other is not None
    assert first[1] is second[1]
    assert first[1] == {"langgraph_node": "model", "langgraph_path": ["a", 1]}
    assert first[2] == second[2]
    assert first[2] is not None
    assert other[2] != first[2]


def test_the_identity_of_metadata_is_not_given_away_while_it_is_known() -> None:
    door = Door()
    keys = [read[2] for i in range(500) if (read := door.message((CHUNK, {"run": i}))) is not None]

    assert len(set(keys)) == 500


def test_a_deserialised_chunk_has_no_key() -> None:
    read = Door().message([CHUNK.model_dump(), {"langgraph_node": "model"}])

    assert read is not None
    assert read[1:] == ({"langgraph_node": "model"}, None)


@pytest.mark.parametrize("data", [None, [], [CHUNK], (CHUNK, {}, {}), ("a", "b", "c"), ({}, {})])
def test_no_pair_of_message_and_metadata(data: Any) -> None:
    assert Door().message(data) is None
