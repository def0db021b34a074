"""Any object as plain JSON data, without raising and without a silent loss."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import pathlib
import types
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agjson.jsonable import MAX_DEPTH, jsonable
from agjson.types import TextBlock, TextDelta
from agjson.wire import encode


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    pass


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any = None


class Record(msgspec.Struct, rename="camel", tag="rec"):
    some_name: Any
    absent: Any = msgspec.UNSET


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, extra="allow")
    snake_name: Any = pydantic.Field(alias="camelName")


class SdkModel(Model):
    def to_dict(self, *, mode: str = "python", warnings: bool = True) -> dict[str, object]:
        return {"mode": mode, "warnings": warnings}


class View(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return {"a": 1}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class Array:
    def tolist(self) -> list[int]:
        return [1, 2]


class Native:
    def to_dict(self) -> dict[str, object]:
        return {"kind": "native", "raw": b"\x00"}


class Secretive:
    def __init__(self) -> None:
        self.api_key = "not to be shown"

    def __repr__(self) -> str:
        return "<Secretive>"


HERE = __name__


@pytest.mark.parametrize(
    "value, expected",
    [
        (b"\x00\xff", {"agjson/bytes": "AP8="}),
        (bytearray(b"a"), {"agjson/bytes": "YQ=="}),
        (memoryview(b"a"), {"agjson/bytes": "YQ=="}),
        (float("nan"), {"agjson/number": "NaN"}),
        (float("inf"), {"agjson/number": "Infinity"}),
        (-float("inf"), {"agjson/number": "-Infinity"}),
        (ValueError("bad"), {"agjson/error": "builtins.ValueError", "message": "bad"}),
        (Secretive(), {"agjson/repr": f"{HERE}.Secretive", "text": "<Secretive>"}),
        (Colour, {"agjson/repr": "enum.EnumType", "text": "<enum 'Colour'>"}),
        (range(10**12), {"agjson/repr": "builtins.range", "text": "range(0, 1000000000000)"}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Text("t"), "t"),
        (True, True),
        (2**80, 2**80),
        ("\ud83d", "\ud83d"),
        (Point(1, 2), {"x": 1, "y": 2}),
        ((1, (2,)), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"a", 1}), [1, "a"]),
        (collections.deque([1]), [1]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (View(), {"a": 1}),
        (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
        (types.SimpleNamespace(a=b""), {"a": {"agjson/bytes": ""}}),
        (Pair(1, Pair(b"", None)), {"left": 1, "right": {"left": {"agjson/bytes": ""}, "right": None}}),
        (Record(some_name=(1, float("nan"))), {"type": "rec", "someName": [1, {"agjson/number": "NaN"}]}),
        (
            Record(some_name=Secretive()),
            {"type": "rec", "someName": {"agjson/repr": f"{HERE}.Secretive", "text": "<Secretive>"}},
        ),
        (TextBlock(text="t"), {"type": "text", "text": "t"}),
        (TextDelta(seq=1, id="b", delta="d"), {"type": "text.delta", "seq": 1, "id": "b", "delta": "d"}),
        (
            Model.model_validate({"camelName": datetime.date(2026, 1, 2), "extra": [1]}),
            {"camelName": "2026-01-02", "extra": [1]},
        ),
        (Model(camelName=float("nan")), {"camelName": {"agjson/number": "NaN"}}),
        (Model(camelName=Secretive()), {"camelName": {"agjson/repr": f"{HERE}.Secretive", "text": "<Secretive>"}}),
        (SdkModel(camelName=1), {"mode": "json", "warnings": False}),
        (Native(), {"kind": "native", "raw": {"agjson/bytes": "AA=="}}),
        (Array(), [1, 2]),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), "2026-01-02T03:04:05Z"),
        (datetime.timedelta(seconds=90), "PT90S"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (
            {1: "a", "1": "b", None: "c", False: "d", 2.5: "e", Colour.RED: "f"},
            {"1": "a", "1#2": "b", "null": "c", "false": "d", "2.5": "e", "red": "f"},
        ),
    ],
)
def test_each_kind_of_object_has_one_plain_form(value: Any, expected: Any) -> None:
    assert jsonable(value) == expected
    assert jsonable([value]) == [expected]
    encode(jsonable({"deep": [value]}))


def test_plain_data_is_returned_as_it_is() -> None:
    value = {"a": [1, 2.5, "x", None, True, {"b": {}}], "c": {"d": []}}

    assert jsonable(value) is value


def test_plain_parts_are_shared_and_nothing_is_changed() -> None:
    plain = {"b": [1]}
    value = {"a": plain, "t": (1,)}
    result = jsonable(value)

    assert result == {"a": {"b": [1]}, "t": [1]}
    assert isinstance(result, dict) and result["a"] is plain
    assert value == {"a": {"b": [1]}, "t": (1,)}


def test_an_object_inside_itself_ends() -> None:
    looped: dict[str, Any] = {"a": 1}
    looped["self"] = [looped]
    pair = Pair(1)
    pair.right = pair
    tangle: list[Any] = []
    tangle += [tangle, tangle, {"t": tangle}]

    assert jsonable(looped) == {"a": 1, "self": [{"agjson/cycle": "builtins.dict"}]}
    assert jsonable(pair) == {"left": 1, "right": {"agjson/cycle": f"{HERE}.Pair"}}
    assert jsonable(tangle) == [{"agjson/cycle": "builtins.list"}] * 2 + [{"t": {"agjson/cycle": "builtins.list"}}]


def test_shared_objects_are_no_cycle_and_are_walked_once() -> None:
    shared = ({"k": b"v"},)
    value: Any = [shared, shared]
    for _ in range(60):
        value = [value, value]

    result = jsonable(value)

    for _ in range(60):
        result = result[1]  # type: ignore[index,call-overload]
    assert result == [[{"k": {"agjson/bytes": "dg=="}}]] * 2


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, 1_000, 100_000])
def test_deep_nesting_ends_in_a_marker(depth: int) -> None:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]

    result: Any = jsonable(value)

    levels = 0
    while isinstance(result, list):
        (result,) = result
        levels += 1
    assert (levels, result) == (
        (depth, "bottom") if depth <= MAX_DEPTH else (MAX_DEPTH, {"agjson/depth": "builtins.list"})
    )


def test_the_depth_can_be_less() -> None:
    assert jsonable({"a": {"b": {"c": 1}}}, max_depth=2) == {"a": {"b": {"agjson/depth": "builtins.dict"}}}
    assert jsonable({"a": 1}, max_depth=0) == {"agjson/depth": "builtins.dict"}


def test_a_long_repr_is_cut() -> None:
    class Long:
        def __repr__(self) -> str:
            return "x" * 5_000

    result: Any = jsonable(Long())

    assert len(result["text"]) == 2_001
    assert result["text"].endswith("…")


class Hostile:
    """Raises wherever it can, and lies about its class."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("hands off")

    def __repr__(self) -> str:
        raise RuntimeError("hands off")

    def __str__(self) -> str:
        raise RuntimeError("hands off")

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("hands off")

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("hands off")


class BadDump:
    def model_dump(self, **settings: Any) -> Any:
        raise RuntimeError("broken")


class EndlessRepr:
    def __repr__(self) -> str:
        return repr(self)


@pytest.mark.parametrize(
    "make",
    [
        Hostile,
        BadDump,
        EndlessRepr,
        lambda: {Hostile(): Hostile()},
        lambda: {Hostile()},
        lambda: iter([1]),
        lambda: print,
    ],
)
def test_a_hostile_object_becomes_a_marker(make: Any) -> None:
    result = jsonable([make()])

    assert isinstance(result, list)
    encode(result)


@settings(max_examples=200)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.binary()
        | st.datetimes()
        | st.decimals()
        | st.uuids()
        | st.complex_numbers(),
        lambda inner: (
            st.lists(inner)
            | st.tuples(inner, inner)
            | st.dictionaries(st.none() | st.integers() | st.text() | st.binary(), inner)
            | st.builds(Pair, inner, inner)
            | st.builds(Record, some_name=inner)
        ),
        max_leaves=20,
    )
)
def test_the_result_can_always_be_written_and_is_stable(value: Any) -> None:
    result = jsonable(value)

    encode(result)
    assert jsonable(result) is result
