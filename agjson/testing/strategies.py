"""Hypothesis strategies: single wire values, whole streams, streams with a gap, broken streams (spec §2-§5).

Single values are valid by construction, rules between fields included, with optional fields present or absent, ``null``
in opaque fields, integers of any size and texts of all planes.

Raises:
    MissingExtraError: on import, when Hypothesis is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from agjson.errors import MissingExtraError
from agjson.testing.gap import Gap, draw_gap
from agjson.testing.generator import generate_stream
from agjson.testing.mutation import Mutation
from agjson.testing.mutators import mutations
from agjson.testing.source import HypothesisSource
from agjson.testing.tracing import Item
from agjson.testing.values import ValueBuilder
from agjson.testing.writer import StreamOptions
from agjson.types import (
    BLOCK_TYPES,
    EVENT_TYPES,
    AgBlock,
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    JsonValue,
    ResumeInput,
    StartInput,
    ToolResultInput,
    UnknownEvent,
)

try:
    from hypothesis import reject
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError("testing", "hypothesis") from error

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "answers",
    "asks",
    "blocks",
    "broken_streams",
    "events",
    "gaps",
    "inputs",
    "json_values",
    "messages",
    "results",
    "streams",
    "unknown_events",
    "values_of",
]

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

_UNKNOWN_TYPES = ("turn.resumed.start", "message.pin.done", "audio.delta", "hint", "state.merge.update")


def _built(make: Callable[[ValueBuilder], T], surrogates: bool) -> SearchStrategy[T]:
    def draw_value(draw: Callable[[SearchStrategy[Any]], Any]) -> T:
        return make(ValueBuilder(HypothesisSource(draw, surrogates=surrogates)))

    return st.composite(draw_value)()


def json_values(*, max_depth: int = 3, surrogates: bool = False) -> SearchStrategy[JsonValue]:
    """Any JSON value (spec §0.1): what opaque fields hold.

    Args:
        max_depth: how many arrays and objects may be nested in each other.
        surrogates: whether texts may hold lone surrogates, which JSON can only write escaped.
    """
    return _built(lambda builder: builder.source.json(max_depth), surrogates)


def values_of(cls: type[S], *, surrogates: bool = False) -> SearchStrategy[S]:
    """Instances of one wire class of `agjson.types`, with the fields that its rules demand.

    Args:
        cls: a Struct of `agjson.types`, such as `AgUsage` or `TextDelta`.
        surrogates: whether texts may hold lone surrogates.
    """
    return _built(lambda builder: builder.build(cls), surrogates)


def blocks(*, kinds: Collection[str] | None = None, surrogates: bool = False) -> SearchStrategy[AgBlock]:
    """Content blocks (spec §2), nested ones in tool results included.

    Args:
        kinds: wire types to choose from; None for all sixteen.
        surrogates: whether texts may hold lone surrogates.
    """
    chosen = [kind for kind in BLOCK_TYPES if kinds is None or kind in kinds]
    return _built(lambda builder: builder.build(BLOCK_TYPES[builder.source.choice(chosen)]), surrogates)


def events(*, types: Collection[str] | None = None, surrogates: bool = False) -> SearchStrategy[AgStreamEvent]:
    """Single events (spec §4): each valid by itself, without regard to a stream.

    Args:
        types: wire types to choose from, ``"ext"`` among them for vendor extensions; None for all.
        surrogates: whether texts may hold lone surrogates.
    """
    chosen = [name for name in (*EVENT_TYPES, "ext") if types is None or name in types]

    def make(builder: ValueBuilder) -> AgStreamEvent:
        name = builder.source.choice(chosen)
        if name == "ext":
            meta = builder.source.json_object() if builder.source.chance(20) else None
            turn_id = builder.source.text() if builder.source.chance(50) else None
            return builder.ext(seq=builder.source.integer(0, 1000), turn_id=turn_id, meta=meta)
        return builder.build(EVENT_TYPES[name])

    return _built(make, surrogates)


def unknown_events() -> SearchStrategy[UnknownEvent]:
    """Events of types that this revision does not define, as `ingest_event` returns them (spec §0.2)."""

    def make(builder: ValueBuilder) -> UnknownEvent:
        source = builder.source
        name, seq = source.choice(_UNKNOWN_TYPES), source.integer(0, 1000)
        members = {f"x{key}": value for key, value in source.json_object().items()}
        return UnknownEvent(name, seq, msgspec.json.encode({"type": name, "seq": seq, **members}))

    return _built(make, False)


def messages(*, surrogates: bool = False) -> SearchStrategy[AgMessage]:
    """Stored messages (spec §3.2)."""
    return values_of(AgMessage, surrogates=surrogates)


def asks(*, surrogates: bool = False) -> SearchStrategy[AgPausedAsk]:
    """Asks as a paused outcome lists them (spec §4, §7)."""
    return values_of(AgPausedAsk, surrogates=surrogates)


def answers(*, surrogates: bool = False) -> SearchStrategy[AgHitlAnswer]:
    """Answers to asks (spec §7), each valid by itself."""
    return values_of(AgHitlAnswer, surrogates=surrogates)


def inputs(*, surrogates: bool = False) -> SearchStrategy[AgInput]:
    """Input envelopes (spec §3): start, resume and tool results, of versions whose major is 1 (§12)."""

    def make(builder: ValueBuilder) -> AgInput:
        kind = builder.source.integer(0, 2)
        if kind == 0:
            return builder.build(StartInput)
        return builder.build(ResumeInput) if kind == 1 else builder.build(ToolResultInput)

    return _built(make, surrogates)


def results(*, surrogates: bool = False) -> SearchStrategy[AgReduceResult]:
    """Folded conversations (spec §2): ids are unique, and what the fold derives agrees with what it derives it from."""
    return values_of(AgReduceResult, surrogates=surrogates)


def streams(options: StreamOptions | None = None) -> SearchStrategy[list[AgStreamEvent]]:
    """Valid streams: what a conformant producer may emit (spec §4, §5.0, §9).

    Turns interleave and nest, candidates too; messages, blocks and calls are begun, continued, ended, removed and
    replaced by snapshots; results are partial, adopted and late; state and memory are patched by patches that apply;
    invokes follow each other, and some break off and are flushed. Every stream passes `agjson.checker.check`, and no
    fold parks on it.

    Args:
        options: what kind of stream is wanted; None for the default.
    """
    wanted = options if options is not None else StreamOptions()

    def draw_stream(draw: Callable[[SearchStrategy[Any]], Any]) -> list[AgStreamEvent]:
        return generate_stream(HypothesisSource(draw, surrogates=wanted.surrogates), wanted)

    return st.composite(draw_stream)()


def gaps(options: StreamOptions | None = None) -> SearchStrategy[Gap]:
    """Valid streams with a gap that the snapshots of a fold heal without a trace (spec §10 item 2).

    Args:
        options: what kind of stream is wanted; None for short turns one after the other.
    """
    wanted = options if options is not None else StreamOptions(resyncable=True)

    def draw_gapped(draw: Callable[[SearchStrategy[Any]], Any]) -> Gap:
        source = HypothesisSource(draw, surrogates=wanted.surrogates)
        return draw_gap(source, generate_stream(source, wanted))

    return st.composite(draw_gapped)()


def broken_streams(
    names: Collection[str] | None = None, options: StreamOptions | None = None
) -> SearchStrategy[tuple[Mutation, list[Item]]]:
    """Streams with one planted violation, and the mutation that planted it.

    Args:
        names: the mutations to choose from, by name; None for all that need no profile of their own.
        options: what kind of stream is mutated; None for the default, within the mutation's profile if it has one.
    """
    known = mutations()
    chosen = [known[name] for name in names] if names is not None else [m for m in known.values() if m.profile is None]

    def draw_broken(draw: Callable[[SearchStrategy[Any]], Any]) -> tuple[Mutation, list[Item]]:
        source = HypothesisSource(draw)
        first = source.integer(0, len(chosen) - 1)
        wanted = options if options is not None else StreamOptions(profile=chosen[first].profile or "ADVANCED")
        events = generate_stream(source, wanted)
        # The first one that finds its place in this stream: discarding the stream would waste most of them.
        for mutation in (*chosen[first:], *chosen[:first]):
            if options is None and (mutation.profile or "ADVANCED") != wanted.profile:
                continue
            items = mutation.plant(source, events)
            if items is not None:
                return mutation, items
        raise reject()

    return st.composite(draw_broken)()
