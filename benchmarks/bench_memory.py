"""Memory: one large text through the reader, and a very long stream through reader, fold and checker."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice

from agjson import Checker, Reducer, decode_event, encode
from benchmarks.measure import Effort, Row, most_used
from benchmarks.streams import endless

GROUP = "memory"


def rows(effort: Effort) -> Iterator[Row]:
    size = effort.megabytes * 1_000_000
    for name, text in (
        ("one text of {} MB", lambda: b'{"type":"text.delta","seq":0,"id":"b","delta":"%b"}' % (b"x" * size)),
        (
            "the same beside an unknown field",
            lambda: b'{"type":"text.delta","seq":0,"id":"b","later":1,"delta":"%b"}' % (b"x" * size),
        ),
        (
            "the same as an unknown field",
            lambda: b'{"type":"text.delta","seq":0,"id":"b","delta":"","later":"%b"}' % (b"x" * size),
        ),
    ):
        peak = _peak(text)
        yield Row(
            GROUP,
            f"{name.format(effort.megabytes)}, peak",
            peak / size,
            3.0,
            f"{peak / 1e6:.0f} MB",
            f"the input ({size / 1e6:.0f} MB), which is part of it",
        )
    yield from _endless(effort)


def _peak(make: Callable[[], bytes]) -> int:
    """The most bytes in use at once while a text is read, the text and the event included."""
    tracemalloc.start()
    try:
        text = make()
        tracemalloc.reset_peak()
        event = decode_event(text)
        peak = tracemalloc.get_traced_memory()[1]
        assert event.seq == 0
        return peak
    finally:
        tracemalloc.stop()


def _endless(effort: Effort) -> Iterator[Row]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_memory", str(effort.stream)],
        check=True,
        capture_output=True,
        text=True,
    )
    early, late = json.loads(done.stdout)
    yield Row(
        GROUP,
        f"the process after {effort.stream:,} events read, folded and checked",
        late / early,
        1.1,
        f"{late / 1e6:.0f} MB",
        f"the process after {effort.stream // 2:,} ({early / 1e6:.0f} MB)",
    )


def stream(count: int) -> tuple[int, int]:
    """The most memory that the process has used in bytes, after half of an endless stream and after all of it."""
    reducer, checker = Reducer(), Checker()
    early = 0
    for index, event in enumerate(islice(endless(), count)):
        line = encode(event)
        reducer.push(decode_event(line))
        for violation in checker.push(line):
            raise AssertionError(violation)
        if index == count // 2:
            early = most_used()
    assert not reducer.needs_resync, reducer.resync_reason
    return early, most_used()


if __name__ == "__main__":
    print(json.dumps(stream(int(sys.argv[1]))))
