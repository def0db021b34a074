"""For tests of agents, adapters and clients: generated values and streams, and planted violations.

The strategies need Hypothesis (``pip install 'agjson[testing]'``); `random_stream`, `generate_stream` and `mutations`
work without it, over a `RandomSource`. Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agjson.testing.cassettes import Exchange, is_cassette, read_cassette, replay
    from agjson.testing.gap import Gap, draw_gap
    from agjson.testing.generator import generate_stream, random_stream
    from agjson.testing.mutation import Mutation
    from agjson.testing.mutators import mutations
    from agjson.testing.patches import applicable_patch
    from agjson.testing.source import HypothesisSource, RandomSource, Source
    from agjson.testing.strategies import (
        answers,
        asks,
        blocks,
        broken_streams,
        events,
        gaps,
        inputs,
        json_values,
        messages,
        results,
        streams,
        unknown_events,
        values_of,
    )
    from agjson.testing.tracing import quiet_points, renumber, with_seq
    from agjson.testing.writer import StreamOptions

__all__ = [
    "Exchange",
    "Gap",
    "HypothesisSource",
    "Mutation",
    "RandomSource",
    "Source",
    "StreamOptions",
    "answers",
    "applicable_patch",
    "asks",
    "blocks",
    "broken_streams",
    "draw_gap",
    "events",
    "gaps",
    "generate_stream",
    "inputs",
    "is_cassette",
    "json_values",
    "messages",
    "mutations",
    "quiet_points",
    "random_stream",
    "read_cassette",
    "renumber",
    "replay",
    "results",
    "streams",
    "unknown_events",
    "values_of",
    "with_seq",
]

_MODULES = {
    "Exchange": "cassettes",
    "is_cassette": "cassettes",
    "read_cassette": "cassettes",
    "replay": "cassettes",
    "Gap": "gap",
    "draw_gap": "gap",
    "generate_stream": "generator",
    "random_stream": "generator",
    "Mutation": "mutation",
    "mutations": "mutators",
    "applicable_patch": "patches",
    "HypothesisSource": "source",
    "RandomSource": "source",
    "Source": "source",
    "quiet_points": "tracing",
    "renumber": "tracing",
    "with_seq": "tracing",
    "StreamOptions": "writer",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES.get(name, 'strategies')}")
    return getattr(module, name)
