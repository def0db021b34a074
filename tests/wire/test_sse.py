from __future__ import annotations

import asyncio
import re
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agjson.errors import DecodeError, EncodeError
from agjson.types import TextDelta, UnknownEvent
from agjson.wire import decode_event
from agjson.wire.sse import (
    DEFAULT_MAX_BYTES,
    SSEMessage,
    SSEReader,
    aread_sse,
    encode_sse,
    encode_sse_event,
    event_id,
    parse_event_id,
    read_sse,
    sse_comment,
)

BOM = b"\xef\xbb\xbf"


def messages(stream: bytes, cuts: tuple[int, ...] = (), **options: int | None) -> list[SSEMessage]:
    return feed_all(SSEReader(**options), stream, cuts)  # type: ignore[arg-type]


def feed_all(reader: SSEReader, stream: bytes, cuts: tuple[int, ...] = ()) -> list[SSEMessage]:
    out: list[SSEMessage] = []
    for chunk in pieces(stream, cuts):
        out += reader.feed(chunk)
    reader.close()
    return out


def pieces(stream: bytes, cuts: tuple[int, ...]) -> Iterator[bytes]:
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return (stream[start:end] for start, end in pairwise(edges))


def reference(stream: bytes) -> list[tuple[str, str, str]]:
    """The standard's algorithm on the whole text, step by step: (data, event, last event id)."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = re.split("\r\n|\n|\r", text)[:-1]
    out: list[tuple[str, str, str]] = []
    data = event = last_id = ""
    for line in lines:
        if line == "":
            if data != "":
                out.append((data.removesuffix("\n"), event or "message", last_id))
            data = event = ""
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                event = value
            elif field == "data":
                data += value + "\n"
            elif field == "id" and "\0" not in value:
                last_id = value
    return out


# Weighted so that most streams hold events, line ends of all kinds, and things that only look like line ends.
fragments = st.sampled_from(
    [
        *(b"data", b"data:", b"data: ", b"data: x", b"event: e", b"event", b"id: 7", b"id", b"id: a\0b", b"retry: 10"),
        *(b":", b": c", b"Data: x", b" data: x", b"dat", b"foo: bar", b"\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\r"),
        *(b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85", b"\x0b", b"\x0c", b"\x1c", b"\x1e", b"\xff", b"\xf0\x9f\x98"),
        *(b"\xf0\x9f\x98\x80", b"\0", b" ", b"x: y", BOM),
    ]
)
streams = st.lists(fragments, max_size=40).map(b"".join) | st.binary(max_size=60)
cut_points = st.lists(st.integers(0, 500), max_size=8).map(tuple)


@given(streams, cut_points)
@example(b"\r\n" * 3, (1, 2, 3))
@example(BOM + b"data: x\n\n", (1, 2))
@example(BOM + BOM + b"data: x\n\n", ())
@example(b"data: x\n" + BOM + b"data: y\n\n", (8,))
def test_any_cutting_reads_as_the_standard_says(stream: bytes, cuts: tuple[int, ...]) -> None:
    read = messages(stream, cuts)
    assert [(m.data.decode("utf-8", "replace"), m.event, m.last_event_id) for m in read] == reference(stream)
    assert read == messages(stream, tuple(range(len(stream))))


@given(streams, cut_points)
def test_state_after_the_stream_does_not_depend_on_the_cutting(stream: bytes, cuts: tuple[int, ...]) -> None:
    whole, cut = SSEReader(), SSEReader()
    feed_all(whole, stream)
    feed_all(cut, stream, cuts)
    assert (cut.incomplete, cut.last_event_id, cut.retry, cut.line) == (
        whole.incomplete,
        whole.last_event_id,
        whole.retry,
        whole.line,
    )


def test_the_examples_of_the_standard() -> None:
    stock = b"data: YHOO\ndata: +2\ndata: 10\n\n"
    assert [m.data for m in messages(stock)] == [b"YHOO\n+2\n10"]
    four = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
    assert messages(four) == [
        SSEMessage(b"first event", last_event_id="1", line=3),
        SSEMessage(b"second event", line=6),
        SSEMessage(b" third event", line=9),
    ]
    two_and_a_half = SSEReader()
    assert [m.data for m in feed_all(two_and_a_half, b"data\n\ndata\ndata\n\ndata:")] == [b"", b"\n"]
    assert two_and_a_half.incomplete
    assert [m.data for m in messages(b"data:test\n\ndata: test\n\n")] == [b"test", b"test"]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_kind_of_line_end_dispatches_at_once(end: bytes) -> None:
    reader = SSEReader()
    assert reader.feed(b"event: e" + end + b"data: 1" + end) == []
    # A CR is enough: whether an LF follows need not be known.
    assert reader.feed(end[:1]) == [SSEMessage(b"1", "e", "", 2)]
    assert reader.feed(end[1:] + b"data: 2" + end + end) == [SSEMessage(b"2", "message", "", 4)]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"])
def test_other_separators_are_text(separator: str) -> None:
    data = f'"a{separator}b"'.encode()
    assert [m.data for m in messages(b"data: " + data + b"\n\n")] == [data]


def test_an_event_without_data_is_not_dispatched_but_its_id_counts() -> None:
    reader = SSEReader()
    assert feed_all(reader, b"event: e\nid: 5\n\n: nothing\n\n\n") == []
    assert reader.last_event_id == "5"
    assert not reader.incomplete


def test_the_event_type_does_not_carry_over_and_the_id_does() -> None:
    assert messages(b"event: e\nid: 1\ndata: a\n\ndata: b\n\nid:\ndata: c\n\n") == [
        SSEMessage(b"a", "e", "1", 3),
        SSEMessage(b"b", "message", "1", 5),
        SSEMessage(b"c", "message", "", 8),
    ]


def test_an_id_counts_only_once_its_event_is_whole() -> None:
    reader = SSEReader(last_event_id="turn:3")
    reader.feed(b"id: turn:4\ndata: x\n")
    assert (reader.last_event_id, reader.incomplete) == ("turn:3", True)
    reader.feed(b"\n")
    assert (reader.last_event_id, reader.incomplete) == ("turn:4", False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"3000", 3000),
        (b"0", 0),
        (b"000", 0),
        (b"0007", 7),
        (b"", None),
        (b"-1", None),
        (b"1.5", None),
        (b" 1", None),
        (b"1 ", None),
        ("٣".encode(), None),
        (b"9" * 16, 9999999999999999),
        (b"9" * 5000, None),
    ],
)
def test_retry_takes_digits_alone(value: bytes, expected: int | None) -> None:
    reader = SSEReader()
    reader.feed(b"retry: " + value + b"\n")
    assert reader.retry == expected


@pytest.mark.parametrize(
    ("stream", "incomplete"),
    [
        (b"", False),
        (BOM, False),
        (b"data: x\n\n", False),
        (b"data: x\r\n\r", False),
        (b": comment\n", False),
        (b": comm", False),
        (BOM + b": comm", False),
        (b"data: x\n", True),
        (b"data: x", True),
        (b"d", True),
        (b"data: x\n\nid: 1\n", True),
        (b"data: x\n: comment", True),
        (b"data: x\n: comment\n", True),
        (BOM[:2], True),
        (b"\n" + BOM, True),
    ],
)
def test_a_stream_that_ends_inside_an_event_says_so(stream: bytes, incomplete: bool) -> None:
    reader = SSEReader()
    feed_all(reader, stream)
    assert reader.incomplete is incomplete


@given(st.integers(0, 30))
def test_read_sse_of_a_cut_stream_gives_the_whole_messages_and_then_fails(cut: int) -> None:
    stream = b"data: one\n\nid: 2\ndata: two\n\n\n"
    read: list[bytes] = []

    def drain() -> None:
        read.extend(message.data for message in read_sse([stream[:cut]]))

    if cut in (0, 11, 28, 29, 30):
        drain()
    else:
        with pytest.raises(DecodeError, match=r"^line \d: the stream ends inside an event"):
            drain()
    assert read == [b"one", b"two"][: (cut >= 11) + (cut >= 28)]


def test_invalid_utf8_stays_in_data_and_is_replaced_in_names() -> None:
    assert messages(b"event: \xff\nid: \xff\ndata: \xff\xfe\n\n") == [SSEMessage(b"\xff\xfe", "\ufffd", "\ufffd", 3)]


def test_lines_are_numbered_from_the_given_one() -> None:
    reader = SSEReader(first_line=10)
    assert [m.line for m in reader.feed(b"\n: c\r\ndata: 1\r\rid: 1\n\ndata: 2\n\n")] == [12, 16]
    assert reader.line == 18


class TestLimit:
    @pytest.mark.parametrize("cuts", [(), tuple(range(60))])
    def test_a_long_line_is_refused_ended_or_not(self, cuts: tuple[int, ...]) -> None:
        assert messages(b"data: 6789\n\n", cuts, max_bytes=10) == [SSEMessage(b"6789")]
        for end in (b"", b"\n", b"\n\n"):
            with pytest.raises(DecodeError, match=r"^line 2: the line is longer than 10 bytes$"):
                messages(b":\ndata: 67890" + end, cuts, max_bytes=10)

    def test_many_short_lines_of_data_are_refused(self) -> None:
        assert messages(b"data: 12345\ndata: 6789\n\n", max_bytes=12) == [SSEMessage(b"12345\n6789")]
        assert messages(b"data: 12345\ndata: 6789\ndata\ndata\n\n", max_bytes=12) == [SSEMessage(b"12345\n6789\n\n")]
        with pytest.raises(DecodeError, match=r"^line 5: the event's data is longer than 12 bytes$"):
            messages(b"data: 12345\ndata: 6789\ndata\ndata\ndata\n\n", max_bytes=12)

    def test_messages_before_it_in_the_chunk_are_not_lost(self) -> None:
        reader = SSEReader(max_bytes=10)
        assert [m.data for m in reader.feed(b"data: 1\n\ndata: 2\n\ndata: 34567890\n\ndata: 3\n\n")] == [b"1", b"2"]
        for _ in range(2):
            with pytest.raises(DecodeError, match=r"^line 5: "):
                reader.feed(b"data: 4\n\n")
        with pytest.raises(DecodeError, match=r"^line 5: "):
            reader.close()
        assert reader.incomplete

    def test_read_sse_fails_before_it_asks_for_another_chunk(self) -> None:
        def chunks() -> Iterator[bytes]:
            yield b"data: 1\n\ndata: 34567890\n\n"
            raise AssertionError("asked for more")

        stream = read_sse(chunks(), reader=SSEReader(max_bytes=10))
        assert next(stream).data == b"1"
        with pytest.raises(DecodeError, match="longer than 10 bytes"):
            next(stream)

    def test_there_is_one_unless_it_is_lifted(self) -> None:
        mebibyte = b"x" * 1024 * 1024
        chunks = [b"data: ", *[mebibyte] * (DEFAULT_MAX_BYTES // len(mebibyte))]
        reader = SSEReader()
        with pytest.raises(DecodeError, match=f"longer than {DEFAULT_MAX_BYTES} bytes"):
            for chunk in chunks:
                reader.feed(chunk)
        assert len(next(read_sse([*chunks, b"\n\n"], reader=SSEReader(max_bytes=None))).data) == DEFAULT_MAX_BYTES

    def test_refused_bytes_are_not_kept(self) -> None:
        reader = SSEReader(max_bytes=1_000_000)
        tracemalloc.start()
        try:
            with pytest.raises(DecodeError):
                for _ in range(600):
                    reader.feed(b"data: 12\n" * 1000)
            assert tracemalloc.get_traced_memory()[0] < 100_000
            assert tracemalloc.get_traced_memory()[1] < 5_000_000
        finally:
            tracemalloc.stop()


def test_a_closed_reader_takes_no_more() -> None:
    reader = SSEReader()
    reader.close()
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        reader.feed(b"")


def test_any_buffer_of_bytes_is_taken_and_nothing_else() -> None:
    reader = SSEReader()
    assert [m.data for m in reader.feed(memoryview(b"data: 1\n\n"))] == [b"1"]  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        list(read_sse(b"data: 1\n\n"))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [b"x", b"data:\n", b":\n", b"\r"])
def test_time_is_linear_in_a_long_line_or_event(text: bytes) -> None:
    def seconds(size: int) -> float:
        stream = b"data: " + text * (size // len(text)) + b"\n\n"
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            for _ in read_sse(stream[i : i + 4096] for i in range(0, len(stream), 4096)):
                pass
            best = min(best, time.process_time() - start)
        return best

    # Quadratic time would make it 64 times.
    assert seconds(4_000_000) < 24 * seconds(500_000) + 0.05


def test_the_asynchronous_twin_reads_the_same() -> None:
    async def chunks(stream: bytes) -> AsyncIterator[bytes]:
        for byte in stream:
            yield bytes([byte])

    async def read(stream: bytes, reader: SSEReader) -> list[SSEMessage]:
        return [message async for message in aread_sse(chunks(stream), reader=reader)]

    reader = SSEReader()
    assert asyncio.run(read(b"id: 1\ndata: a\n\nretry: 5\n\n", reader)) == [SSEMessage(b"a", "message", "1", 2)]
    assert (reader.last_event_id, reader.retry, reader.incomplete) == ("1", 5, False)
    with pytest.raises(DecodeError, match=r"^line 2: the stream ends inside an event"):
        asyncio.run(read(b"data: a\n", SSEReader()))
    with pytest.raises(DecodeError, match="longer than 3 bytes"):
        asyncio.run(read(b"data: a\n\n", SSEReader(max_bytes=3)))

    async def fail_late() -> None:
        async def one_chunk() -> AsyncIterator[bytes]:
            yield b"data: 1\n\ndata: 34567890\n\n"
            raise AssertionError("asked for more")

        stream = aread_sse(one_chunk(), reader=SSEReader(max_bytes=10))
        assert (await anext(stream)).data == b"1"
        with pytest.raises(DecodeError, match="longer than 10 bytes"):
            await anext(stream)

    asyncio.run(fail_late())


def normal(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


one_line = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=12)
events = st.tuples(
    st.binary(max_size=20) | st.sampled_from([b"a\r\nb", b"\r", b"\n\r\n", b""]),
    st.none() | one_line,
    st.none() | one_line,
    st.none() | st.integers(0, 10**16 - 1),
    st.none() | st.text(max_size=10),
)


@given(st.lists(events, max_size=6), cut_points)
def test_what_is_written_reads_back(
    written: list[tuple[bytes, str | None, str | None, int | None, str | None]], cuts: tuple[int, ...]
) -> None:
    stream = b""
    expected: list[tuple[bytes, str, str]] = []
    last_id, last_retry = "", None
    for data, id, event, retry, comment in written:
        if comment is not None:
            stream += sse_comment(comment)
        stream += encode_sse(data, id=id, event=event, retry=retry)
        last_id = last_id if id is None else id
        last_retry = last_retry if retry is None else retry
        expected.append((normal(data), event or "message", last_id))
    reader = SSEReader()
    assert [(m.data, m.event, m.last_event_id) for m in feed_all(reader, stream, cuts)] == expected
    assert (reader.retry, reader.last_event_id, reader.incomplete) == (last_retry, last_id, False)


def test_the_bytes_that_are_written() -> None:
    assert encode_sse(b"{}") == b"data: {}\n\n"
    assert encode_sse(b"{}", id="t:1", event="e", retry=5) == b"id: t:1\nevent: e\nretry: 5\ndata: {}\n\n"
    assert encode_sse(b"a\r\nb\rc\nd") == b"data: a\ndata: b\ndata: c\ndata: d\n\n"
    assert encode_sse(b"", id="", event="") == b"id: \ndata: \n\n"
    assert encode_sse(None, retry=3000) == b"retry: 3000\n\n"
    assert sse_comment() == b":\n\n"
    assert sse_comment("keep\r\nalive\n") == b": keep\n: alive\n:\n\n"
    assert sse_comment("\ud83d") == b": ?\n\n"


@pytest.mark.parametrize(
    "options",
    [
        *({"event": text} for text in ("a\nb", "a\rb", "\r\n", "\ud800")),
        *({"id": text} for text in ("a\nb", "a\rb", "a\0b", "\udfff")),
        *({"retry": number} for number in (-1, 10**16)),
    ],
)
def test_what_cannot_be_written_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(EncodeError):
        encode_sse(b"{}", **options)  # type: ignore[arg-type]


class TestEventId:
    @pytest.mark.parametrize(
        ("turn_id", "encoded"),
        [
            ("turn-1", "turn-1"),
            ("", ""),
            ("a:b::", "a:b::"),
            ("a b ", "a b "),
            ("100%", "100%25"),
            ("a\r\n\0b", "a%0D%0A%00b"),
            ("é", "%C3%A9"),
            ("😀:1", "%F0%9F%98%80:1"),
            ("\u2028", "%E2%80%A8"),
            # Half a character: the three bytes that UTF-8 would give it.
            ("\ud83d", "%ED%A0%BD"),
            # What an HTTP header would lose or refuse.
            (" a", "%20a"),
            ("\ta\x7f", "%09a%7F"),
        ],
    )
    def test_is_the_turn_then_the_ordinal(self, turn_id: str, encoded: str) -> None:
        assert event_id(turn_id, 7) == f"{encoded}:7"
        assert parse_event_id(f"{encoded}:7") == (turn_id, 7)

    @given(st.text(st.characters() | st.sampled_from(":% \r\n\0\ud83d\ude00")), st.integers(0, 10**16 - 1))
    def test_reads_back_whatever_the_turn(self, turn_id: str, seq: int) -> None:
        written = event_id(turn_id, seq)
        assert parse_event_id(written) == (turn_id, seq)
        assert re.fullmatch(r"[!-~]([ -~]*[!-~])?", written)
        assert next(read_sse([encode_sse(b"", id=written)])).last_event_id == written

    @given(st.text(max_size=5), st.text(max_size=5), st.integers(0, 20), st.integers(0, 20))
    def test_is_different_for_different_events(self, one: str, other: str, seq: int, other_seq: int) -> None:
        assert (event_id(one, seq) == event_id(other, other_seq)) == ((one, seq) == (other, other_seq))

    @pytest.mark.parametrize(
        "text",
        [
            *("", "7", "turn-1", "turn-1:", "turn-1:x", "turn-1:-1", "turn-1:+1", "turn-1:1.5", "t: 1", "t:1 "),
            *("turn-1:07", "turn-1:1_0", "turn-1:٣", "turn-1:7\n", "turn-1:" + "9" * 17, "turn-1:" + "9" * 5000),
            *("%:1", "%4:1", "%zz:1", "a%", "%25%:1", "%FF:1", "%ED:1", "%C3:1", "é:1", "a\nb:1", "a\rb:1", "a\0b:1"),
            *("\ud83d:1", "%+1:1", "% 1:1"),
        ],
    )
    def test_ill_formed_is_refused(self, text: str) -> None:
        with pytest.raises(DecodeError, match=r"^ill-formed event id"):
            parse_event_id(text)

    @given(st.text(st.sampled_from("a:%0F9 é\r\ud800"), max_size=10))
    def test_any_text_reads_or_is_refused(self, text: str) -> None:
        try:
            turn_id, seq = parse_event_id(text)
        except DecodeError:
            return
        assert parse_event_id(event_id(turn_id, seq)) == (turn_id, seq)

    def test_lower_case_and_needless_escapes_are_read(self) -> None:
        assert parse_event_id("%c3%a9%61:0") == ("éa", 0)

    @pytest.mark.parametrize("seq", [-1, 10**16])
    def test_of_no_ordinal_is_refused(self, seq: int) -> None:
        with pytest.raises(EncodeError):
            event_id("t", seq)


class TestEncodeEvent:
    def test_has_the_json_and_the_place_in_the_turn(self) -> None:
        event = TextDelta(seq=3, turn_id="t:é", id="b", delta="a\nb\u2028")
        (message,) = read_sse([encode_sse_event(event)])
        assert message.last_event_id == "t:%C3%A9:3"
        assert message.event == "message"
        assert decode_event(message.data) == event

    def test_names_the_turn_that_the_server_gives(self) -> None:
        event = TextDelta(seq=3, turn_id="nested", id="b", delta="x")
        assert encode_sse_event(event, turn_id="run").startswith(b"id: run:3\n")
        assert encode_sse_event(event, turn_id="").startswith(b"id: :3\n")

    def test_has_no_id_without_a_turn(self) -> None:
        event = TextDelta(seq=3, id="b", delta="x")
        assert encode_sse_event(event).startswith(b"data: {")
        assert encode_sse_event(event, turn_id="run").startswith(b"id: run:3\n")

    @pytest.mark.parametrize("seq", [-1, 1.5, 10**16])
    def test_has_no_id_where_seq_is_no_ordinal(self, seq: float) -> None:
        event = TextDelta(seq=seq, turn_id="t", id="b", delta="x")  # type: ignore[arg-type]
        assert encode_sse_event(event).startswith(b"data: {")

    def test_carries_an_unknown_event_over_several_lines(self) -> None:
        event = UnknownEvent("x.start", 4, b'{"type":"x.start",\r\n"seq":4}')
        assert encode_sse_event(event, turn_id="t") == b'id: t:4\ndata: {"type":"x.start",\ndata: "seq":4}\n\n'
