from __future__ import annotations

import io
import json
import os
import re
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agjson.errors import DecodeError
from agjson.wire.lines import Item, iter_json
from agjson.wire.sse import encode_sse, sse_comment

BOM = b"\xef\xbb\xbf"


def cut(text: bytes, cuts: Iterable[int] = ()) -> Iterator[bytes]:
    edges = [0, *sorted(each % (len(text) + 1) for each in cuts), len(text)]
    return (text[start:end] for start, end in pairwise(edges))


def outcome(source: Iterable[bytes], max_bytes: int | None = None) -> tuple[list[tuple[int, bytes]], str | None]:
    """The items, and the error that ended them."""
    items: list[tuple[int, bytes]] = []
    try:
        for item in iter_json(source, max_bytes=max_bytes):
            items.append((item.line, item.data))
    except DecodeError as error:
        return items, str(error)
    return items, None


def read(text: bytes) -> list[tuple[int, bytes]]:
    """The items of a whole input, which must be the same however it is cut."""
    whole = outcome([text])
    assert outcome(cut(text, range(len(text)))) == whole
    items, error = whole
    assert error is None
    return items


def refused(text: bytes) -> tuple[list[bytes], str]:
    whole = outcome([text])
    assert outcome(cut(text, range(len(text)))) == whole
    items, error = whole
    assert error is not None
    return [data for _, data in items], error


# Strings full of what a scanner could trip over.
tricky = st.text(st.sampled_from('{}[]",:\\/ \n\r\t\u2028é😀ab'), max_size=8) | st.text(max_size=4)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | tricky
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(tricky, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(tricky, values, max_size=4)
cut_points = st.lists(st.integers(0, 5000), max_size=10)
dumps: list[Callable[[Any], str]] = [
    lambda value: json.dumps(value),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=False, indent=1),
    lambda value: json.dumps(value, indent="\t").replace("\n", "\r\n"),
]
one_line = st.sampled_from(dumps[:2])
any_style = st.sampled_from(dumps)
spaces = st.sampled_from([b"", b"\n", b" ", b"\r\n", b"\n\n\t "])


def parsed(items: Iterable[tuple[int, bytes]]) -> list[Any]:
    return [json.loads(data) for _, data in items]


@given(st.lists(values, max_size=6), any_style, spaces, spaces, cut_points)
def test_an_array_gives_its_elements(
    expected: list[Any], dump: Callable[[Any], str], before: bytes, between: bytes, cuts: list[int]
) -> None:
    body = (between + b"," + between).join(dump(value).encode() for value in expected)
    items, error = outcome(cut(before + b"[" + between + body + between + b"]" + before, cuts))
    assert error is None
    assert parsed(items) == expected


@given(
    st.lists(objects, max_size=6), one_line, st.sampled_from([b"\n", b"\r\n", b"\n \r\n\n"]), st.booleans(), cut_points
)
def test_lines_give_their_values(
    expected: list[Any], dump: Callable[[Any], str], end: bytes, ended: bool, cuts: list[int]
) -> None:
    text = end.join(dump(value).encode() for value in expected) + (end if ended else b"")
    items, error = outcome(cut(text, cuts))
    assert error is None
    assert parsed(items) == expected


@given(st.lists(objects, max_size=6), any_style, st.sampled_from([b"\n", b"\n\n", b"", b"  "]), cut_points)
def test_values_one_after_another_give_themselves(
    expected: list[Any], dump: Callable[[Any], str], between: bytes, cuts: list[int]
) -> None:
    texts = [dump(value).encode() for value in expected]
    if between.isspace() and b"\n" in between and texts and b"\n" not in texts[0]:
        texts.insert(0, b'{\n"first": "over two lines"}')
        expected = [{"first": "over two lines"}, *expected]
    items, error = outcome(cut(between.join(texts), cuts))
    assert error is None
    assert parsed(items) == expected


@given(st.lists(values, max_size=6), any_style, st.booleans(), st.booleans(), cut_points)
def test_server_sent_events_give_their_data(
    expected: list[Any], dump: Callable[[Any], str], ids: bool, crlf: bool, cuts: list[int]
) -> None:
    text = b"".join(
        sse_comment() + encode_sse(dump(value).encode(), id=f"t:{n}" if ids else None)
        for n, value in enumerate(expected)
    )
    items, error = outcome(cut(text.replace(b"\n", b"\r\n") if crlf else text, cuts))
    assert error is None
    assert parsed(items) == expected


noise = st.lists(
    st.sampled_from(
        [
            *(
                b"{",
                b"}",
                b"[",
                b"]",
                b",",
                b":",
                b'"',
                b"\\",
                b"\n",
                b"\r\n",
                b"\r",
                b" ",
                b"1",
                b"-",
                b"true",
                b'"a"',
            ),
            *(b'{"a":1}', b'"b":', b"data:", b"data: ", b"id: 1", b"event:", b"retry", BOM, b"\xff", b"\xe2\x80\xa8"),
        ]
    ),
    max_size=14,
).map(b"".join)


@given(noise | st.binary(max_size=30), cut_points)
@example(b'{"a":\n{"b":1}\n', [6, 7])
@example(b'{"a":1}  \r\n', [7, 8])
@example(BOM + b"data:1\n\n", [1, 2])
@example(b'["a\\\n"]', [2])
def test_any_bytes_give_the_same_however_cut(text: bytes, cuts: list[int]) -> None:
    whole = outcome([text])
    assert outcome(cut(text, cuts)) == whole
    assert outcome(cut(text, range(len(text)))) == whole
    # Nothing that is yielded is made up, and lines only go up.
    items = whole[0]
    assert all(data and text.count(b"\n", 0) + text.count(b"\r") + 1 >= line >= 1 for line, data in items)
    assert [line for line, _ in items] == sorted(line for line, _ in items)


class TestLineNumbers:
    def test_of_an_array(self) -> None:
        text = b'\n [ {"a":1},\n{"b"\n:2} , "x\\"]",\r\n\r\n[3] ,4\n,null\n]\n'
        assert read(text) == [
            (2, b'{"a":1}'),
            (3, b'{"b"\n:2}'),
            (4, b'"x\\"]"'),
            (6, b"[3]"),
            (6, b"4"),
            (7, b"null"),
        ]

    def test_of_lines(self) -> None:
        assert read(BOM + b'\r\n{"a":1} \r\n\n \t\n  {"b":2}\n\n3') == [(2, b'{"a":1}'), (5, b'{"b":2}'), (7, b"3")]

    def test_of_values_over_several_lines(self) -> None:
        text = b'\n{\n "a": 1\n}\n\n{"b":2}{"c":\n3} [\n]\n'
        assert read(text) == [(2, b'{\n "a": 1\n}'), (6, b'{"b":2}'), (6, b'{"c":\n3}'), (7, b"[\n]")]

    def test_of_server_sent_events(self) -> None:
        text = b'\n\n: hi\nid: t:1\ndata: {"a":\ndata: 1}\n\ndata:\n\n: x\r\ndata: 2\r\n\r\n'
        assert read(text) == [(5, b'{"a":\n1}'), (11, b"2")]

    @given(st.lists(st.tuples(objects, st.integers(0, 3)), max_size=5), any_style, cut_points)
    def test_point_at_the_value(self, rows: list[tuple[Any, int]], dump: Callable[[Any], str], cuts: list[int]) -> None:
        text = b"[" + b",".join(b"\n" * blank + dump(value).encode() for value, blank in rows) + b"\n]"
        items, _ = outcome(cut(text, cuts))
        assert len(items) == len(rows)
        for line, data in items:
            rest = text.split(b"\n", line - 1)[-1]
            assert data in rest
            assert data.split(b"\n")[0] in rest.split(b"\n")[0]


class TestRecognition:
    @pytest.mark.parametrize("text", [b"", b"\n", b" \r\n\t", BOM, BOM + b"\n\n", b"[]", b"[\n]", b":\n\n", b": x\n"])
    def test_nothing_to_read(self, text: bytes) -> None:
        assert read(text) == []

    @pytest.mark.parametrize("start", [b":\n", b"data: 1\n\n", b"event: e\n", b"id: 1\n", b"id:\n", b"retry: 1\n"])
    @pytest.mark.parametrize("before", [b"", BOM, b"\n\n", b"\r", BOM + b"\r\n"])
    def test_a_field_or_comment_makes_it_server_sent_events(self, start: bytes, before: bytes) -> None:
        assert [data for _, data in read(before + start + b'data: {"a":1}\n\n')][-1:] == [b'{"a":1}']

    @pytest.mark.parametrize(
        "line", [b"dat", b"data", b" data: 1", b"Data: 1", b"foo: 1", b"datum:", b"x", b"1", b'"a"']
    )
    def test_other_text_is_a_broken_or_scalar_line(self, line: bytes) -> None:
        assert read(line + b'\n{"a":1}\n') == [(1, line.strip()), (2, b'{"a":1}')]

    def test_a_broken_line_stands_for_itself(self) -> None:
        assert read(b'{"a":1}\n{"b":\n{"c":3}}}\nnope\n{"d":4}') == [
            (1, b'{"a":1}'),
            (2, b'{"b":'),
            (3, b'{"c":3}}}'),
            (4, b"nope"),
            (5, b'{"d":4}'),
        ]

    @pytest.mark.parametrize(
        "first",
        [
            *(b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a":"x', b'{"a":{"b":1}', b'{"a":[1', b'{"a":tru'),
            *(b"{nope", b"{nope}", b"{]", b'{"a":1}}', b'{"a":1} x', b'{"a":1},', b'{"a":1]', b'{"a":"\\', b"{'a':1}"),
        ],
    )
    @pytest.mark.parametrize("others", [0, 1, 2, 5, 2000])
    def test_a_broken_first_line_does_not_spoil_the_others(self, first: bytes, others: int) -> None:
        line = b'{"type":"text.delta","seq":1,"delta":"}{"}'
        expected = [(1, first), *((number, line) for number in range(2, others + 2))]
        assert outcome([first + b"\n" + (line + b"\n") * others]) == (expected, None)
        if others < 10:
            assert read(first + b"\n" + (line + b"\n") * others) == expected

    @pytest.mark.parametrize("first", ['{"type":', '{"a":[1,', '{"a":"b', '{"a":{"b":1},', "{"])
    @pytest.mark.parametrize("third", ['{"n":2}', "x", '{"a":', ""])
    def test_a_broken_first_line_is_judged_the_same_however_it_arrives(self, first: str, third: str) -> None:
        text = "\n".join([first, '{"n":1}', third, '{"n":3}', '{"n":4}', ""]).encode()
        whole = outcome([text])
        assert outcome(text[at : at + 1] for at in range(len(text))) == whole
        assert outcome(text.splitlines(keepends=True)) == whole

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_a_long_value_over_lines_is_recognised(self, size: int) -> None:
        value = json.dumps({"a": ["{", size * "x", {"b": None}], "c": list(range(size // 10))}, indent=2).encode()
        assert outcome(cut(value * 2, range(0, 300_000, 4096))) == (
            [(1, value), (1 + value.count(b"\n"), value)],
            None,
        )

    @pytest.mark.parametrize("size", [1, 70_000])
    def test_two_values_on_the_first_line(self, size: int) -> None:
        value = b'{"a":"' + size * b"x" + b'"}'
        for between in (b"", b" ", b"\t \r"):
            assert outcome(cut(value + between + value, range(0, 200_000, 4096))) == ([(1, value), (1, value)], None)

    def test_a_deep_first_value_over_lines(self) -> None:
        value = b'{"a":\n' + b"[\n" * 20_000 + b"]\n" * 20_000 + b"}"
        assert outcome([value]) == ([(1, value)], None)

    def test_a_number_of_any_length(self) -> None:
        value = b'{"a":\n' + b"9" * 10_000 + b"}"
        assert outcome([value]) == ([(1, value)], None)


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "items", "message"),
        [
            (b"[", [], "line 1: the input ends inside the array"),
            (b"[\n\n", [], "line 3: the input ends inside the array"),
            (b'[{"a":1}', [b'{"a":1}'], "line 1: the input ends inside the array"),
            (b'[{"a":1},\n', [b'{"a":1}'], "line 2: the input ends inside the array"),
            (b'["a"', [b'"a"'], "line 1: the input ends inside the array"),
            (b'[{},\n{"a":\n[', [b"{}"], "line 2: the input ends inside the value that starts here"),
            (b'["a', [], "line 1: the input ends inside the value that starts here"),
            (b"[12", [], "line 1: the input ends inside the value that starts here"),
            (b"[1 2]", [b"1"], "line 1: expected a comma or the end of the array after a value"),
            (b'["a"\n"b"]', [b'"a"'], "line 2: expected a comma or the end of the array after a value"),
            (b"[{}{}]", [b"{}"], "line 1: expected a comma or the end of the array after a value"),
            (b"[1}", [b"1"], "line 1: expected a comma or the end of the array after a value"),
            (b"[1,]", [b"1"], "line 1: expected a value"),
            (b"[,1]", [], "line 1: expected a value"),
            (b"[}", [], "line 1: expected a value"),
            (b"[1]\n]", [b"1"], "line 2: text after the end of the array"),
            (b'[1]\n{"a":1}', [b"1"], "line 2: text after the end of the array"),
            (b'{\n}\n{"a":', [b"{\n}"], "line 3: the input ends inside the value that starts here"),
            (b"{\n}\nx", [b"{\n}"], "line 3: expected an object or an array"),
            (b"{\n},{}", [b"{\n}"], "line 2: expected an object or an array"),
            (b'{\n"a":1,\n', [], "line 1: the input ends inside the value that starts here"),
            (b"data: 1\n\ndata: 2\n", [b"1"], "line 4: the stream ends inside an event"),
            (b"\ndata: 1\n\ndata: 2", [b"1"], "line 4: the stream ends inside an event"),
        ],
    )
    def test_name_the_line_after_the_whole_values(self, text: bytes, items: list[bytes], message: str) -> None:
        assert refused(text) == (items, message)

    @given(st.lists(objects, min_size=1, max_size=4), any_style, st.sampled_from(["array", "lines", "values", "sse"]))
    def test_a_cut_at_any_byte_keeps_what_was_whole(
        self, rows: list[Any], dump: Callable[[Any], str], form: str
    ) -> None:
        texts = [dump(row).encode() for row in rows]
        if form == "array":
            parts = [b"[" + texts[0], *(b" ,\n" + text for text in texts[1:])]
            end = b"]"
        elif form == "lines":
            texts = [json.dumps(row).encode() for row in rows]
            parts = [texts[0], *(b"\n" + text for text in texts[1:])]
            end = b"\n"
        elif form == "values":
            texts = [b'{"a":\n1}', *texts]
            parts = [texts[0], *(b"\n" + text for text in texts[1:])]
            end = b"\n"
        else:
            parts = [encode_sse(text) for text in texts]
            texts = [text.replace(b"\r", b"") for text in texts]
            end = b""
        whole = b"".join(parts) + end
        ends = [sum(map(len, parts[: n + 1])) for n in range(len(parts))]
        for length in range(len(whole)):
            items, error = outcome([whole[:length]])
            complete = [text for text, at in zip(texts, ends, strict=True) if at <= length]
            data = [each for _, each in items]
            assert data[: len(complete)] == complete
            # What is left over is a broken line or an error, never a value that nobody wrote.
            rest = data[len(complete) :]
            if form == "array" or (form == "sse" and rest == []):
                assert rest == []
                assert (error is None) == (length == 0 or (form == "sse" and length in ends))
            for each in rest:
                with pytest.raises(ValueError, match=r"."):
                    json.loads(each)


class TestLimit:
    @pytest.mark.parametrize(
        ("text", "items", "line"),
        [
            (b'{"a":678}\n\n{"b":6789}\n', [b'{"a":678}'], 3),
            (b'{"a":678}\n\n{"b":67890', [b'{"a":678}'], 3),
            (b'{"a":6789}', [], 1),
            (b'[{"a":678},\n"2345678",\n{"b":6789}]', [b'{"a":678}', b'"2345678"'], 3),
            (b"[\n1234567890", [], 2),
            (b'{\n"a":6}\n{\n"b":6789}', [b'{\n"a":6}'], 3),
            (b"data: 789\n\ndata: 7890\n\n", [b"789"], 3),
        ],
    )
    def test_names_the_line_of_the_value(self, text: bytes, items: list[bytes], line: int) -> None:
        for source in ([text], cut(text, range(len(text)))):
            read, error = outcome(source, 9)
            assert [data for _, data in read] == items
            assert error is not None
            assert re.fullmatch(rf"line {line}: the (value|line) is longer than 9 bytes", error)

    @pytest.mark.parametrize("start", [b"", b"[", b"{", b"{\n", b'{"a":"', b'["', b"[1", b"[{}", b"data: ", b"\n"])
    @pytest.mark.parametrize("filler", [b" ", b"\n", b"x", b"[", b'\\"'])
    def test_keeps_the_memory_flat_whatever_comes(self, start: bytes, filler: bytes) -> None:
        def chunks() -> Iterator[bytes]:
            yield start
            for _ in range(80):
                yield filler * (20_000 // len(filler))

        tracemalloc.start()
        try:
            for _ in zip(range(1000), iter_json(chunks(), max_bytes=100_000), strict=False):
                pass
        except DecodeError:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 800_000


@pytest.mark.parametrize("form", ["array", "lines", "values", "sse"])
def test_memory_is_flat_over_a_long_input(form: str) -> None:
    event = b'{"type":"text.delta","seq":1,"id":"b","delta":"hello [world] \\"}{"}'

    def chunks() -> Iterator[bytes]:
        block = {
            "array": (event + b",\n") * 500,
            "lines": (event + b"\n") * 500,
            "values": (event.replace(b",", b",\n") + b"\n") * 500,
            "sse": encode_sse(event) * 500,
        }[form]
        if form == "array":
            yield b"["
        for _ in range(40):
            yield from cut(block, [4096, 8192, 16384])
        if form == "array":
            yield event + b"]"

    tracemalloc.start()
    try:
        count = sum(1 for _ in iter_json(chunks()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 20_000 + (form == "array")
    assert peak < 1_000_000


@pytest.mark.parametrize("form", [b'["%s"]', b'{"a":"%s"}\n', b'{"a":\n"%s"}', b"data: %s\n\n", b"[%s]", b"%s"])
@pytest.mark.parametrize("filler", [b"x", b'\\"', b"\\"])
def test_time_is_linear_in_a_long_value(form: bytes, filler: bytes) -> None:
    def seconds(size: int) -> float:
        text = form % (filler * (size // len(filler)))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            outcome(cut(text, range(0, size, 4096)))
            best = min(best, time.process_time() - start)
        return best

    # Quadratic time would make it 64 times.
    assert seconds(1_600_000) < 24 * seconds(200_000) + 0.02


class TestSources:
    text = b'[{"a":1},\n{"b":2}]'
    items = (Item(1, b'{"a":1}'), Item(2, b'{"b":2}'))

    def test_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "events.json"
        path.write_bytes(self.text)
        with path.open("rb") as file:
            assert tuple(iter_json(file)) == self.items
        with path.open("rb", buffering=0) as raw:
            assert tuple(iter_json(raw)) == self.items  # type: ignore[arg-type]

    def test_bytes_in_memory(self) -> None:
        assert tuple(iter_json(self.text)) == self.items
        assert tuple(iter_json(io.BytesIO(self.text))) == self.items
        assert [len(item.data) for item in iter_json(b"[" + b'"x",' * 100_000 + b"1]")] == [3] * 100_000 + [1]

    def test_chunks_with_empty_ones(self) -> None:
        assert tuple(iter_json([b"", self.text[:5], b"", b"", self.text[5:], b""])) == self.items

    def test_text_is_refused(self) -> None:
        with pytest.raises(TypeError):
            list(iter_json(["[1]"]))  # type: ignore[list-item]

    def test_nothing_is_read_before_it_is_asked_for(self) -> None:
        def chunks() -> Iterator[bytes]:
            raise AssertionError("read too early")
            yield b""

        iter_json(chunks())

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (b'[{"a":1}', b',{"b":2}'),
            (b'{"a":1}\n', b'{"b":2}\n'),
            (b'{"a":\n1}', b'{"b":\n2}'),
            (b"data: 1\n\n", b"data: 2\r\r"),
        ],
    )
    def test_a_value_comes_out_of_a_pipe_as_soon_as_it_is_complete(self, first: bytes, second: bytes) -> None:
        reading, writing = os.pipe()
        with open(reading, "rb") as pipe, open(writing, "wb", buffering=0) as end:
            items = iter_json(pipe)
            for text in (first, second):
                end.write(text)
                assert re.sub(rb"\s", b"", next(items).data) in re.sub(rb"\s", b"", text)
