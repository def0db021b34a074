"""Server-sent events and recognised input, each as a ratio to a floor that does the least possible on the same bytes.

Run alone: ``python -m benchmarks.bench_sse``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from agjson.wire.lines import iter_json
from agjson.wire.sse import encode_sse, event_id, read_sse

EVENTS = 100_000
CHUNK = 16 * 1024
ROUNDS = 5


class Row(NamedTuple):
    name: str
    microseconds: float  # per event; of a 50 MB value: in all
    floor_microseconds: float
    floor: str

    @property
    def ratio(self) -> float:
        return self.microseconds / self.floor_microseconds


def payloads(count: int) -> list[bytes]:
    return [
        b'{"type":"text.delta","seq":%d,"turnId":"turn-1","messageId":"m1","id":"b1","delta":"hello wor "}' % seq
        for seq in range(count)
    ]


def cut(text: bytes) -> Iterator[bytes]:
    return (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))


def drain(items: Iterator[object]) -> None:
    for _ in items:
        pass


def bare_sse(stream: bytes) -> None:
    """Whole text, LF only, one data line each, no ids: what a reader that trusts its peer would do."""
    for block in stream.split(b"\n\n"):
        block[block.find(b"data: ") + 6 :]


def best(work: Callable[[], object]) -> float:
    """The fastest of some rounds, in microseconds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def rows() -> Iterator[Row]:
    """Measure everything."""
    data = payloads(EVENTS)
    stream = b"".join(encode_sse(each, id=event_id("turn-1", seq)) for seq, each in enumerate(data))
    floor = best(lambda: bare_sse(stream)) / EVENTS
    for name, text in (("LF", stream), ("CRLF", stream.replace(b"\n", b"\r\n"))):
        yield Row(
            f"read_sse, {name}", best(lambda text=text: drain(read_sse(cut(text)))) / EVENTS, floor, "bytes.split"
        )

    write = best(lambda: [encode_sse(each, id=event_id("turn-1", seq)) for seq, each in enumerate(data)]) / EVENTS
    bare = best(lambda: [b"id: turn-1:%d\ndata: %b\n\n" % pair for pair in enumerate(data)]) / EVENTS
    yield Row("encode_sse with an id", write, bare, "bytes formatting")

    lines = b"\n".join(data)
    floor = best(lambda: lines.split(b"\n")) / EVENTS
    for name, text in (
        ("JSON Lines", lines),
        ("an array", b"[" + b",\n".join(data) + b"]"),
        ("values over lines", b"\n".join(data).replace(b",", b",\n ")),
        ("server-sent events", stream),
    ):
        spent = best(lambda text=text: drain(iter_json(cut(text)))) / EVENTS
        yield Row(f"iter_json, {name}", spent, floor, "bytes.split")

    # Linear time shows as the same ratio for both sizes.
    for megabytes in (5, 50):
        long = b"x" * (megabytes * 1_000_000)
        floor = best(lambda long=long: b"".join(cut(long)))
        for name, text in (
            ("SSE", b"data: %b\n\n" % long),
            ("array", b'["%b"]' % long),
            ("line", b'{"a":"%b"}' % long),
        ):
            spent = best(lambda text=text: drain(iter_json(cut(text))))
            yield Row(f"one value of {megabytes} MB, {name}", spent, floor, "cut and join")


if __name__ == "__main__":
    for row in rows():
        print(f"{row.name:32} {row.microseconds:12.2f} us {row.ratio:6.1f}x {row.floor}")
