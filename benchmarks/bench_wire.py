"""Reading and writing, against msgspec alone on the same types and the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from agjson import AgEvent, decode_event, encode, ingest_event
from benchmarks.measure import Effort, Row, drain, each, fastest
from benchmarks.streams import agent

GROUP = "wire"
DECODE = "msgspec decoding the union"
ENCODE = "msgspec encoding the Struct"


def rows(effort: Effort) -> Iterator[Row]:
    bare_decode, bare_encode = msgspec.json.Decoder(AgEvent).decode, msgspec.json.Encoder().encode
    events = agent(effort.events)
    lines = [encode(event) for event in events]
    times = fastest(
        {
            "bare decode": lambda: drain(map(bare_decode, lines)),
            "decode_event": lambda: drain(map(decode_event, lines)),
            "ingest_event": lambda: drain(map(ingest_event, lines)),
            "bare encode": lambda: drain(map(bare_encode, events)),
            "encode": lambda: drain(map(encode, events)),
        },
        effort.rounds,
    )
    count = len(events)
    for name, floor, aim in (
        ("decode_event", "decode", 1.5),
        ("ingest_event", "decode", 2.0),
        ("encode", "encode", 1.5),
    ):
        bare = times[f"bare {floor}"]
        words = DECODE if floor == "decode" else ENCODE
        yield Row(GROUP, name, times[name] / bare, aim, each(times[name], count), f"{words} ({each(bare, count)})")
    yield from _careful(lines[: max(effort.events // 20, 200)], effort)


def _careful(lines: Sequence[bytes], effort: Effort) -> Iterator[Row]:
    """The reading of what the fast decoder refuses, against the same events without the reason for it."""
    deltas = [line for line in lines if b'"text.delta"' in line]
    unknown = [line[:-1] + b',"later":{"a":[1, 2.50]}}' for line in deltas]
    halves = [line.replace(b'"delta":"', b'"delta":"\\ud83d') for line in deltas]
    read = [ingest_event(line) for line in unknown]
    times = fastest(
        {
            "plain": lambda: drain(map(ingest_event, deltas)),
            "a text delta with an unknown field": lambda: drain(map(ingest_event, unknown)),
            "a text delta with half a character": lambda: drain(map(ingest_event, halves)),
            "written": lambda: drain(map(encode, map(ingest_event, deltas))),
            "the unknown field written": lambda: drain(map(encode, read)),
        },
        effort.rounds,
    )
    count = len(deltas)
    for name in ("a text delta with an unknown field", "a text delta with half a character"):
        floor = f"the same delta without it ({each(times['plain'], count)})"
        yield Row(GROUP, name, times[name] / times["plain"], None, each(times[name], count), floor)
    yield from _wide(effort)


def _wide(effort: Effort) -> Iterator[Row]:
    """An object with many unknown fields is read in linear time."""
    few, many = effort.events // 20, effort.events

    def line(count: int) -> bytes:
        extra = b",".join(b'"later%d":1' % index for index in range(count))
        return b'{"type":"text.delta","seq":0,"id":"b","delta":"x",%b}' % extra

    small, large = line(few), line(many)
    times = fastest({"few": lambda: ingest_event(small), "many": lambda: ingest_event(large)}, min(effort.rounds, 10))
    per_field = times["many"] / many, times["few"] / few
    yield Row(
        GROUP,
        f"an event with {many:,} unknown fields, per field",
        per_field[0] / per_field[1],
        3.0,
        f"{per_field[0] * 1e6:.2f} us",
        f"the same with {few:,} ({per_field[1] * 1e6:.2f} us)",
    )
