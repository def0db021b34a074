"""The LangGraph adapter: a token against what the graph spends on it, beside what ``ag_ui_langgraph`` adds to the same.

The floor is the graph's own stream, in the stream modes that the agent asks for, read and thrown away.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from agjson import encode
from agjson.adapters.langgraph import LangGraphAgent, LangGraphNormalizer
from benchmarks.measure import Effort, Row, drain, each, fastest

if TYPE_CHECKING:
    from benchmarks.graphs import Peer

GROUP = "langgraph"
KINDS = ("text", "reasoning", "arguments")
ROUNDS = 10
# How long the turns of the growing thread are, in tokens.
SHORT = 20

OURS, PEER, LEAN = "LangGraphAgent", "ag_ui_langgraph", "ag_ui_langgraph (no raw)"

# The most of what the peer adds to a token that we may add.
AIMS = {PEER: 0.1, LEAN: 0.125}

Turn: TypeAlias = Callable[[str, str], AsyncIterator[Any]]
"""Runs one turn, by the ids of its thread and of itself."""


def has_peer() -> bool:
    """Whether there is something to measure beside."""
    return find_spec("ag_ui_langgraph") is not None


def rows(effort: Effort) -> Iterator[Row]:
    peers = [PEER, LEAN] if has_peer() else []
    if not peers:
        print("langgraph: ag_ui_langgraph is not installed, so its rows are left out", file=sys.stderr)
    yield from _normalizing(effort)
    yield from _tokens(effort, peers)
    yield from _turns(effort, peers)


# A token


def _normalizing(effort: Effort) -> Iterator[Row]:
    for kind in KINDS:
        stream = ways(effort.events, kind)["native"]
        parts = read(stream("recorded", "turn-1"))
        threads = map(str, count())
        times = fastest(
            {
                "native": lambda stream=stream, threads=threads: read(stream(next(threads), "turn-1"), keep=False),
                "ours": lambda parts=parts: normalize(parts),
            },
            min(effort.rounds, ROUNDS),
        )
        yield Row(
            GROUP,
            f"push and encode, {kind}, from the graph's parts",
            times["ours"] / times["native"],
            None,
            each(times["ours"], effort.events),
            f"the graph's own stream ({each(times['native'], effort.events)})",
        )


def normalize(parts: list[Any]) -> None:
    """What the adapter adds to each part of the stream: `push`, and `encode` of what comes of it."""
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    push = normalizer.push
    for part in parts:
        for event in push(part):
            encode(event)
    drain(map(encode, normalizer.flush()))


def _tokens(effort: Effort, peers: list[str]) -> Iterator[Row]:
    tokens = effort.events
    turns, threads = ways(tokens), map(str, count())
    names = [OURS, *peers]
    sizes = {name: sum(map(len, read(turns[name](f"size-{name}", "turn-1")))) for name in names}
    works = {
        name: lambda turn=turns[name]: read(turn(next(threads), "turn-1"), keep=False) for name in ("native", *names)
    }
    # A difference of two times needs more than one of each.
    times = fastest(works, max(2, min(effort.rounds, ROUNDS)))
    native = times["native"]
    for name in names:
        yield Row(
            GROUP,
            f"a token through {name}, as a server-sent event",
            times[name] / native,
            None,
            each(times[name], tokens),
            f"the graph's own stream ({each(native, tokens)})",
        )
    added = {name: times[name] - native for name in names}
    for peer in peers:
        yield Row(
            GROUP,
            f"what {OURS} adds to a token, beside {peer}",
            added[OURS] / added[peer],
            AIMS[peer],
            each(added[OURS], tokens),
            f"what {peer} adds ({each(added[peer], tokens)})",
        )
    for peer in peers:
        yield Row(
            GROUP,
            f"bytes of a token, beside {peer}",
            sizes[OURS] / sizes[peer],
            None,
            f"{sizes[OURS] / tokens:.0f} B",
            f"those of {peer} ({sizes[peer] / tokens:.0f} B)",
        )


# A thread that grows


def _turns(effort: Effort, peers: list[str]) -> Iterator[Row]:
    last = min(100, effort.events // 50)
    for name in [OURS, *peers[1:]]:
        sizes = turn_sizes(ways(SHORT)[name], last)
        yield Row(
            GROUP,
            f"bytes of a turn after {last - 1} turns, {name}",
            sizes[-1] / sizes[1],
            1.01 if name == OURS else None,
            f"{sizes[-1] / 1e3:.1f} kB",
            f"the second turn of the thread ({sizes[1] / 1e3:.1f} kB)",
        )


def turn_sizes(turn: Turn, turns: int) -> list[int]:
    """The bytes of each turn of one thread, of the same question and answer each.

    Args:
        turn: runs a turn.
        turns: how many.
    """

    async def run() -> list[int]:
        # Ids of one length.
        ids = (f"turn-{number:04}" for number in range(turns))
        return [sum([len(line) async for line in turn("thread-1", id)]) for id in ids]

    return asyncio.run(run())


# The ways of a turn


def ways(tokens: int, kind: str = "text") -> dict[str, Turn]:
    """What runs turns on one graph: nobody but who reads it, the agent, and the peer where it is installed.

    Args:
        tokens: how many deltas an answer has.
        kind: of which kind they are, one of `KINDS`.
    """
    from benchmarks import graphs

    graph = graphs.graph_of(tokens, kind)
    agent = LangGraphAgent(graph)
    turns: dict[str, Turn] = {
        "native": lambda thread, turn: graphs.native(graph, thread),
        OURS: lambda thread, turn: graphs.ours(agent, thread, turn),
    }
    if has_peer():
        peers: dict[str, Peer] = {PEER: graphs.Peer(graph, raw=True), LEAN: graphs.Peer(graph, raw=False)}
        turns |= {name: peer.run for name, peer in peers.items()}
    return turns


def read(stream: AsyncIterator[Any], *, keep: bool = True) -> list[Any]:
    """Read a stream to its end on a loop of its own.

    Args:
        stream: the stream.
        keep: return what came; otherwise it is thrown away.
    """

    async def run() -> list[Any]:
        if keep:
            return [item async for item in stream]
        async for _ in stream:
            pass
        return []

    return asyncio.run(run())
