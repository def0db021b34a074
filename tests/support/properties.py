"""How the property tests search, and how they compare folds.

By default a run draws the same examples every time, so that a change alone can make a test fail.
``AGJSON_HYPOTHESIS_EXAMPLES=N`` draws N times as many, other ones in every run: the way to look for new faults.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from hypothesis import HealthCheck, settings
from msgspec.structs import replace

from agjson.fold import Reducer
from agjson.types import AgReduceResult, AgStreamEvent, UnknownEvent

_FACTOR = float(os.environ.get("AGJSON_HYPOTHESIS_EXAMPLES") or 1)


def examples(count: int) -> settings:
    """The settings of a property test that draws ``count`` examples by default.

    No deadline, for a busy machine would miss it; no example database, for it would make runs differ.
    """
    return settings(
        max_examples=max(1, int(count * _FACTOR)),
        derandomize=_FACTOR == 1,
        deadline=None,
        database=None,
        print_blob=_FACTOR != 1,
        suppress_health_check=[HealthCheck.too_slow],
    )


def folded(events: Iterable[AgStreamEvent | UnknownEvent], initial: AgReduceResult | None = None) -> AgReduceResult:
    """The fold of a stream that must not park."""
    reducer = Reducer(initial=initial)
    for event in events:
        reducer.push(event)
        assert not reducer.needs_resync, f"parked at {event!r}: {reducer.resync_reason}"
    return reducer.result()


def by_axis(result: AgReduceResult) -> AgReduceResult:
    """The result with its cross-thread memory first, as a snapshot leaves it (spec §5 `messages.snapshot`)."""
    memory = sorted(result.memory, key=lambda record: record.scope == "thread")
    return replace(result, memory=memory)
