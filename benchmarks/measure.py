"""Measuring: pieces of work in turns, each timed many times, the fastest time of each kept.

What counts is the time that the thread itself has used, so that waiting for a busy machine does not. A busy machine
makes a piece slower and never faster, so the fastest of many short runs is what the work costs. The pieces take turns,
so that a slow minute hits all of them alike, and the floor of a ratio is one of them.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], object]


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes:
        events: how many events the streams have.
        rounds: how often each piece is timed.
        long: how many deltas the long message of the linearity rows has.
        stream: how many events the endless stream has.
        deltas: how many deltas the long answer of a provider has.
        megabytes: how large the one large text is.
    """

    events: int
    rounds: int
    long: int
    stream: int
    deltas: int
    megabytes: int


FULL = Effort(events=10_000, rounds=100, long=150_000, stream=1_000_000, deltas=100_000, megabytes=50)
QUICK = Effort(events=4_000, rounds=12, long=20_000, stream=100_000, deltas=100_000, megabytes=5)
TINY = Effort(events=300, rounds=1, long=500, stream=2_000, deltas=1_000, megabytes=1)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        group: what it is about.
        name: what was measured.
        ratio: how many times the floor it takes.
        aim: the highest ratio that is wanted; None where there is no such wish.
        cost: the measured cost itself, in words.
        floor: what the floor is, in words.
    """

    group: str
    name: str
    ratio: float
    aim: float | None
    cost: str
    floor: str

    @property
    def verdict(self) -> str:
        if self.aim is None:
            return ""
        return "ok" if self.ratio <= self.aim else "over"


def fastest(works: Mapping[str, Work], rounds: int) -> dict[str, float]:
    """The fastest time of each piece of work in seconds, over rounds in which all of them take turns.

    The garbage collector runs in all pieces alike; what was there before does not count.
    """
    times = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            gc.freeze()
            start = time.thread_time()
            work()
            times[name] = min(times[name], time.thread_time() - start)
            gc.unfreeze()
    return times


def drain(items: Iterable[object]) -> None:
    """Take every item and drop it, at the least cost that Python has."""
    deque(items, maxlen=0)


def each(seconds: float, count: int) -> str:
    """A time per event in words."""
    return f"{seconds / count * 1e6:.2f} us"


def most_used() -> int:
    """The most memory that this process has used so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    import resource  # which counts what the parent had before it made this process

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
