"""A thread as JSON: everything of it comes back, byte for byte; what is no thread is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.agents import Pending, Thread
from agjson.errors import DecodeError, EncodeError
from agjson.known_ids import KnownIds
from agjson.stores import decode_thread, encode_thread
from agjson.testing import answers, asks, results, values_of
from agjson.types import UNSET, AgClientCapabilities, AgReduceResult, AgRunConfig, AgToolResult
from agjson.wire import decode_message, decode_result
from tests.support.properties import examples

ids = st.frozensets(st.text(max_size=4), max_size=3)


def threads() -> st.SearchStrategy[Thread]:
    """Threads with anything in them, half surrogate pairs included."""
    pending = st.builds(
        Pending,
        calls=st.lists(st.text(max_size=4), max_size=2).map(tuple),
        results=st.lists(values_of(AgToolResult, surrogates=True), max_size=1).map(tuple),
        asks=st.lists(asks(surrogates=True), max_size=1).map(tuple),
        answers=st.lists(answers(surrogates=True), max_size=1).map(tuple),
        request_state=st.none() | st.text(max_size=4),
    )
    kinds = ("turns", "messages", "blocks", "calls", "asks", "artifacts", "sources", "steps", "gone")
    return st.builds(
        Thread,
        thread_id=st.text(max_size=4) | st.just("half \ud83d"),
        result=results(surrogates=True),
        ids=st.builds(KnownIds, **dict.fromkeys(kinds, ids)),
        nested=ids,
        pending=pending,
        started_by=st.none() | st.text(max_size=4),
        run=st.none() | values_of(AgRunConfig, surrogates=True),
        capabilities=st.none() | values_of(AgClientCapabilities, surrogates=True),
        revision=st.integers(0, 2**62),
        owner=st.none() | st.text(max_size=4),
    )


@given(threads())
@examples(60)
def test_a_thread_comes_back_as_it_was(thread: Thread) -> None:
    data = encode_thread(thread)
    assert decode_thread(data) == thread
    assert encode_thread(decode_thread(data)) == data


OPAQUE = (
    '{"messages":[{"id":"m","role":"assistant","content":['
    '{"type":"data","name":"d","data":{"f":1.0,"big":123456789012345678901234567890,"e":1e-7,"n":null,"h":"\\ud83d"}},'
    '{"type":"later-kind","x": 1.50 },'
    '{"type":"text","text":"a","later":{"k" : 1.0, "big":18446744073709551617}}],'
    '"messageMetadata":null,"unknownField":[1.10, "\\udc00"]}],'
    '"artifacts":[],"memory":[],"turns":[{"turnId":"t","threadId":"th","finishReason":"invented"}],"state":null}'
)


def test_what_a_lenient_reader_let_pass_comes_back_byte_for_byte() -> None:
    result = decode_result(OPAQUE, lenient=True)
    data = encode_thread(Thread(thread_id="th", result=result))
    text = data.decode()
    for kept in ('{"type":"later-kind","x": 1.50 }', '"later":{"k" : 1.0, "big":18446744073709551617}', '"f":1.0'):
        assert kept in text
    assert '"big":123456789012345678901234567890' in text and '"h":"\\ud83d"' in text and '[1.10, "\\udc00"]' in text
    back = decode_thread(data)
    assert back.result == result and encode_thread(back) == data
    assert (back.result.state, back.messages[0].message_metadata) == (None, None)
    assert decode_thread(encode_thread(Thread(thread_id="th"))).result.state is UNSET


def test_the_text_is_plain_json() -> None:
    thread = Thread(
        thread_id="th",
        ids=KnownIds(turns={"t"}, calls={"b", "a"}),
        pending=Pending(calls=("a",), request_state="s"),
        started_by="t",
        revision=3,
        owner="ann",
    )
    assert json.loads(encode_thread(thread)) == {
        "threadId": "th",
        "pending": {"calls": ["a"], "results": [], "asks": [], "answers": [], "requestState": "s"},
        "revision": 3,
        "startedBy": "t",
        "owner": "ann",
        "result": {"messages": [], "artifacts": [], "memory": [], "turns": []},
        "ids": {
            "turns": ["t"],
            "messages": [],
            "blocks": [],
            "calls": ["a", "b"],
            "asks": [],
            "artifacts": [],
            "sources": [],
            "steps": [],
            "gone": [],
        },
        "nested": [],
    }


GOOD: dict[str, Any] = json.loads(encode_thread(Thread(thread_id="th", revision=1)))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"threadId": 1}, "$.threadId"),
        ({"revision": "1"}, "$.revision"),
        ({"revision": 1.5}, "$.revision"),
        ({"owner": None}, "$.owner"),
        ({"ids": []}, "$.ids"),
        ({"ids": {"calls": [1]}}, "$.ids.calls[0]"),
        ({"nested": "x"}, "$.nested"),
        ({"pending": {**GOOD["pending"], "calls": [None]}}, "$.pending.calls[0]"),
        ({"pending": {**GOOD["pending"], "asks": [{"askId": "a"}]}}, "$.pending.asks[0]"),
        ({"pending": {}}, "$.pending"),
        ({"result": {**GOOD["result"], "messages": [{"id": "m", "role": "x", "content": []}]}},
         "$.result.messages[0].role"),
        ({"run": {"temperature": "hot"}}, "$.run.temperature"),
    ],
)  # fmt: skip
def test_what_is_no_thread_is_refused_with_its_place(change: dict[str, Any], path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_thread(json.dumps({**GOOD, **change}))
    assert caught.value.path == path


@pytest.mark.parametrize("name", ["threadId", "pending", "revision", "result", "ids", "nested"])
def test_a_missing_member_is_refused(name: str) -> None:
    with pytest.raises(DecodeError, match=name):
        decode_thread(json.dumps({key: value for key, value in GOOD.items() if key != name}))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"threadId":', b"\xff"])
def test_what_is_no_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(DecodeError):
        decode_thread(text)


def test_a_value_without_a_json_form_is_refused() -> None:
    message = decode_message('{"id":"m","role":"user","content":[]}')
    result = AgReduceResult(messages=[message], artifacts=[], memory=[], turns=[], state={"x": float("nan")})
    with pytest.raises(EncodeError, match="nan"):
        encode_thread(Thread(thread_id="th", result=result))
