"""What has no JSON form is refused with its place; what msgspec has a form for is written in that form."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pickle
import sys
import types
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from agjson import (
    AgMessage,
    AgProviderMeta,
    AgUsage,
    ContentBlock,
    DataBlock,
    EncodeError,
    ExtEvent,
    MessageEnd,
    ReasoningDelta,
    StartInput,
    StateSnapshot,
    TextBlock,
    TextDelta,
    TextStart,
    ToolArgsDelta,
    ToolResultBlock,
    encode,
    from_dict,
    to_dict,
)

NAN, INF = math.nan, math.inf


def refused(value: Any) -> EncodeError:
    """The error of writing a value; making plain data of it must fail alike."""
    with pytest.raises(EncodeError) as caught:
        encode(value)
    with pytest.raises(EncodeError) as again:
        to_dict(value)
    assert str(again.value) == str(caught.value)
    return caught.value


# Every way to put a value somewhere deep, and the path that leads there.
PLACES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x, "$"),
    (lambda x: [1, x], "$[1]"),
    (lambda x: (x,), "$[0]"),
    (lambda x: {"a": [{"b c": x}]}, "$.a[0].b c"),
    (lambda x: types.MappingProxyType({"a": x}), "$.a"),
    (lambda x: [None, "\ud83d", 2**70, {"a": x}], "$[3].a"),
    (lambda x: TextDelta(seq=0, id="b", delta="x", meta={"m": x}), "$._meta.m"),
    (lambda x: TextDelta(seq=0, id="b", delta="", provider_metadata=AgProviderMeta({"m": x})), "$.providerMetadata.m"),
    (lambda x: ToolArgsDelta(seq=0, tool_call_id="c", delta="x", meta={"m": x}), "$._meta.m"),
    (lambda x: ReasoningDelta(seq=0, id="b", delta="x", meta={"m": x}), "$._meta.m"),
    (lambda x: StateSnapshot(seq=0, snapshot=x), "$.snapshot"),
    (lambda x: ContentBlock(seq=0, block=DataBlock(name="n", data={"d": x})), "$.block.data.d"),
    (lambda x: AgMessage(id="m", role="user", content=[TextBlock(text="null", meta={"k": x})]), "$.content[0]._meta.k"),
    (lambda x: ExtEvent.embed("ext.acme.tick", {"a": [x]}, seq=0), "$.a[0]"),
    (lambda x: ExtEvent.embed("ext.acme.tick", x if isinstance(x, float) else [x], seq=0), "$.value"),
    (lambda x: ExtEvent("ext.acme.tick", 0, meta={"k": x}), "$._meta.k"),
    (lambda x: [ExtEvent("ext.acme.tick", 0), {"e": ExtEvent("ext.acme.tick", 1, {"a": x})}], "$[1].e.a"),
]  # fmt: skip


@pytest.mark.parametrize(("put", "path"), PLACES, ids=[f"{index}{path}" for index, (_, path) in enumerate(PLACES)])
@pytest.mark.parametrize("number", [NAN, INF, -INF])
def test_a_number_that_is_none_is_refused_at_its_place(put: Callable[[Any], Any], path: str, number: float) -> None:
    error = refused(put(number))
    assert (error.message, error.path) == (f"{number} has no JSON form", path)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (TextStart(seq=0, id="b", index=NAN), "$.index"),
        (ReasoningDelta(seq=0, id="b", delta="x", part_index=INF), "$.partIndex"),
        (MessageEnd(seq=0, id="m", usage=AgUsage(by_model={"a": AgUsage(cost_usd=NAN)})), "$.usage.byModel.a.costUsd"),
        (ExtEvent("ext.acme.tick", NAN), "$.seq"),  # type: ignore[arg-type]
    ],
)
def test_a_typed_number_that_is_none_is_refused_at_its_place(value: Any, path: str) -> None:
    assert refused(value).path == path


def test_nulls_are_no_such_numbers() -> None:
    for value in (
        {"a": None, "b": [None, 1.5, "null"]},
        StateSnapshot(seq=0, snapshot=None),
        [2**70, None],
        ["\ud83d", None],
    ):
        assert json.loads(encode(value)) == to_dict(value)
    assert encode(StateSnapshot(seq=0, snapshot={"n": None, "f": 1e308})) == (
        b'{"type":"state.snapshot","seq":0,"snapshot":{"n":null,"f":1e308}}'
    )


@dataclasses.dataclass
class Point:
    x: Any


class Word(enum.Enum):
    NO_NUMBER = NAN
    NUMBER = 1.5
    TEXT = "t"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (b"ab", '"YWI="'),
        (bytearray(b"ab"), '"YWI="'),
        (memoryview(b"ab"), '"YWI="'),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), '"2026-01-02T03:04:05Z"'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        (datetime.timedelta(seconds=90), '"PT90S"'),
        ({1}, "[1]"),
        (frozenset({"a"}), '["a"]'),
        ((1, 2), "[1,2]"),
        (decimal.Decimal("1.50"), '"1.50"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Point(1), '{"x":1}'),
        (Word.NUMBER, "1.5"),
        (Word.TEXT, '"t"'),
        (collections.OrderedDict(a=1), '{"a":1}'),
        (types.MappingProxyType({"a": None}), '{"a":null}'),
        ({1: "a"}, '{"1":"a"}'),
    ],
)
def test_values_beside_json_that_have_a_form(value: Any, written: str) -> None:
    for beside in ("", "\ud83d"):
        event = TextDelta(seq=0, id="b", delta=beside, meta={"m": value})
        assert encode(event) == (
            b'{"type":"text.delta","seq":0,"_meta":{"m":%b},"id":"b","delta":%b}'
            % (written.encode(), json.dumps(beside).encode())
        )


@pytest.mark.parametrize(
    "value",
    [
        object(),
        len,
        int,
        range(3),
        (i for i in "ab"),
        1j,
        ValueError("x"),
        collections.deque([1]),
        10**5000,
        Point(object()),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(("put", "path"), [place for place in PLACES if place[1] != "$.value"])
def test_an_object_without_a_form_is_refused_at_its_place(put: Callable[[Any], Any], path: str, value: Any) -> None:
    assert refused(put(value)).path == path


@pytest.mark.parametrize("value", [Point(NAN), Point([INF]), Word.NO_NUMBER])
def test_no_number_hides_in_an_object(value: Any) -> None:
    assert refused({"a": [value]}).path.startswith("$.a[0]")


@pytest.mark.parametrize("key", [None, True, (1, 2), 1j])
def test_a_key_that_is_no_text_is_refused(key: Any) -> None:
    assert refused({"a": {key: 1}})


def circles() -> list[Any]:
    own: dict[str, Any] = {}
    own["own"] = own
    items: list[Any] = [None, NAN]
    items.append({"a": items})
    twice: list[Any] = []
    twice += [twice, object(), twice]
    return [own, items, twice, ["\ud83d", own], Point(own)]


@pytest.mark.parametrize("value", circles(), ids=["object", "array", "twice", "half", "dataclass"])
def test_data_that_holds_itself_is_refused(value: Any) -> None:
    for whole in (
        value,
        TextDelta(seq=0, id="b", delta="x", meta={"m": value}),
        ExtEvent("ext.acme.tick", 0, {"m": value}),
        StateSnapshot(seq=0, snapshot=value),
    ):
        assert refused(whole)
    with pytest.raises(EncodeError):
        from_dict({"type": "state.snapshot", "seq": 0, "snapshot": value})


# The interpreter's own limit: the recursion limit of 1,000 up to Python 3.11, then one of the C stack.
ALWAYS_TOO_DEEP = 1_000 if sys.version_info < (3, 12) else 100_000


def deep(make: Callable[[Any], Any], inner: Any, depth: int) -> Any:
    for _ in range(depth):
        inner = make(inner)
    return inner


@pytest.mark.parametrize(
    "make",
    [
        lambda inner: [inner],
        lambda inner: {"a": inner},
        lambda inner: (None, inner),
        lambda inner: ["\ud83d", inner],
        lambda inner: ToolResultBlock(tool_call_id="c", content=[inner]),
    ],
    ids=["arrays", "objects", "tuples", "halves", "blocks"],
)
@pytest.mark.parametrize("depth", [*range(150, 1_000, 17), 1_000, 100_000])
def test_too_deep_data_is_a_typed_error(make: Callable[[Any], Any], depth: int) -> None:
    value = deep(make, TextBlock(text="x"), depth)
    for whole in (value, StateSnapshot(seq=0, snapshot=value)):
        try:
            text = encode(whole)
        except EncodeError as error:
            assert "nested too deep" in error.message
        else:
            assert depth < ALWAYS_TOO_DEEP
            assert text.count(b'"type":"text"') == 1


def test_halves_of_characters_are_escaped_in_keys_and_texts() -> None:
    value = {"\ud83d": ["\ude00é", {"k\udc00": "\ud83d\ude00"}], "plain": "é\u2028\0"}
    text = encode(value)
    assert text.isascii() is False
    assert json.loads(text) == {"\ud83d": ["\ude00é", {"k\udc00": "\U0001f600"}], "plain": "é\u2028\0"}


def test_copies_are_equal_and_written_alike() -> None:
    start = StartInput(thread_id="th", turn_id="t", messages=[AgMessage(id="m", role="user", content=[])])
    ext = ExtEvent.embed("ext.acme.tick", {"seq": 7, "a": [None]}, seq=0, meta={"k": 1})
    for value in (start, ext, ReasoningDelta(seq=0, id="b", delta="\ud83d")):
        for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert again == value
            assert encode(again) == encode(value)
