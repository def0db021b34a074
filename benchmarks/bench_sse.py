"""Server-sent events and recognised input, against the least that can be done with the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agjson.wire.lines import iter_json
from agjson.wire.sse import encode_sse, event_id, read_sse
from benchmarks.measure import Effort, Row, drain, each, fastest

CHUNK = 16 * 1024
GROUP = "streams"


def rows(effort: Effort) -> Iterator[Row]:
    data = [
        b'{"type":"text.delta","seq":%d,"turnId":"turn-1","messageId":"m1","id":"b1","delta":"hello wor "}' % seq
        for seq in range(effort.events)
    ]
    stream = b"".join(encode_sse(text, id=event_id("turn-1", seq)) for seq, text in enumerate(data))
    lines = b"\n".join(data)
    crlf, array = stream.replace(b"\n", b"\r\n"), b"[" + b",\n".join(data) + b"]"
    values = lines.replace(b",", b",\n ")
    works: dict[str, tuple[Callable[[], object], str]] = {
        "read_sse, lines end in LF": (lambda: drain(read_sse(_cut(stream))), "bytes.split into events"),
        "read_sse, lines end in CRLF": (lambda: drain(read_sse(_cut(crlf))), "bytes.split into events"),
        "encode_sse with an id": (
            lambda: [encode_sse(text, id=event_id("turn-1", seq)) for seq, text in enumerate(data)],
            "bytes formatting",
        ),
        "iter_json, JSON Lines": (lambda: drain(iter_json(_cut(lines))), "bytes.split into lines"),
        "iter_json, an array": (lambda: drain(iter_json(_cut(array))), "bytes.split into lines"),
        "iter_json, values over lines": (lambda: drain(iter_json(_cut(values))), "bytes.split into lines"),
        "iter_json, server-sent events": (lambda: drain(iter_json(_cut(stream))), "bytes.split into events"),
    }
    floors: dict[str, Callable[[], object]] = {
        "bytes.split into events": lambda: _bare_events(stream),
        "bytes formatting": lambda: [b"id: turn-1:%d\ndata: %b\n\n" % pair for pair in enumerate(data)],
        "bytes.split into lines": lambda: lines.split(b"\n"),
    }
    times = fastest({**floors, **{name: work for name, (work, _) in works.items()}}, min(effort.rounds, 10))
    for name, (_, floor) in works.items():
        words = f"{floor} ({each(times[floor], effort.events)})"
        yield Row(GROUP, name, times[name] / times[floor], None, each(times[name], effort.events), words)
    yield from _large(effort)


def _cut(text: bytes) -> Iterator[bytes]:
    return (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))


def _bare_events(stream: bytes) -> None:
    """Whole text, LF only, one data line each, no ids: what a reader that trusts its peer would do."""
    for block in stream.split(b"\n\n"):
        block[block.find(b"data: ") + 6 :]


def _large(effort: Effort) -> Iterator[Row]:
    """One large value in many chunks: linear time shows as the same ratio for both sizes."""
    for megabytes in (effort.megabytes / 10, effort.megabytes):
        long = b"x" * int(megabytes * 1_000_000)
        texts = {"SSE": b"data: %b\n\n" % long, "array": b'["%b"]' % long, "line": b'{"a":"%b"}' % long}
        works: dict[str, Callable[[], object]] = {"": lambda long=long: b"".join(_cut(long))}
        works.update({name: lambda text=text: drain(iter_json(_cut(text))) for name, text in texts.items()})
        times = fastest(works, min(effort.rounds, 5))
        for name in texts:
            yield Row(
                GROUP,
                f"one value of {megabytes:g} MB, {name}",
                times[name] / times[""],
                None,
                f"{times[name] * 1e3:.1f} ms",
                f"cut and join ({times[''] * 1e3:.1f} ms)",
            )
