"""Joined deltas: the first one at once, nothing but deltas delayed, nothing overtaken, the same fold (spec §4, §5)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.agents import MemoryThreadStore, ThreadLease, ThreadStore
from agjson.fold import reduce
from agjson.middleware.asgi import AgentApp
from agjson.middleware.asgi.coalescing import Coalescer
from agjson.testing.strategies import streams
from agjson.types import (
    AgProviderMeta,
    AgStreamEvent,
    ExtEvent,
    MessageEnd,
    ReasoningDelta,
    ReasoningOpaqueDelta,
    TextDelta,
    ToolArgsDelta,
)
from agjson.wire import to_dict
from tests.support.asgi_client import Exchange, request, run
from tests.support.scripted import ScriptAgent, deltas, start, text, types
from tests.support.served import assert_same_as_stored, waiting

DELTAS = (TextDelta, ReasoningDelta, ReasoningOpaqueDelta, ToolArgsDelta)


def word(seq: int, delta: str, id: str = "b", **members: Any) -> TextDelta:
    return TextDelta(seq=seq, id=id, delta=delta, **members)


def fed(coalescer: Coalescer, *timed: tuple[float, AgStreamEvent]) -> list[tuple[float, AgStreamEvent]]:
    """What comes out, and when: what is held goes out when it is due."""
    out: list[tuple[float, AgStreamEvent]] = []
    for now, event in timed:
        if (due := coalescer.due) is not None and due <= now:
            out += [(due, each) for each in coalescer.flush(due)]
        out += [(now, each) for each in coalescer.push([event], now)]
    return out


def test_the_first_delta_goes_at_once_and_the_others_together() -> None:
    coalescer = Coalescer(1.0)
    out = fed(coalescer, (0, word(0, "a")), (0.1, word(1, "b")), (0.2, word(2, "c")), (1.5, word(3, "d")))
    assert out == [(0, word(0, "a")), (1.0, word(1, "bc"))]
    assert coalescer.due == 2.0
    assert coalescer.flush(2.0) == [word(2, "d")]
    assert coalescer.due is None
    assert fed(coalescer, (9, word(4, "e"))) == [(9, word(3, "e"))]


def test_what_is_not_a_delta_is_not_delayed_and_overtakes_nothing() -> None:
    coalescer = Coalescer(1.0)
    end = MessageEnd(seq=3, id="m")
    out = fed(coalescer, (0, word(0, "a")), (0.1, word(1, "b")), (0.2, word(2, "c")), (0.3, end))
    assert out == [(0, word(0, "a")), (0.3, word(1, "bc")), (0.3, MessageEnd(seq=2, id="m"))]


def test_deltas_of_another_block_begin_anew() -> None:
    coalescer = Coalescer(1.0)
    out = fed(coalescer, (0, word(0, "a")), (0, word(1, "b")), (0, word(2, "x", "other")), (0, word(3, "c")))
    assert out == [(0, word(0, "a")), (0, word(1, "b")), (0, word(2, "x", "other")), (0, word(3, "c"))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (word(0, "a"), word(1, "b", meta={"k": 1})),
        (word(0, "a", provider_metadata=AgProviderMeta({"k": 1})), word(1, "b")),
        (word(0, "a", turn_id="t"), word(1, "b")),
        (word(0, "a", parent_id="p"), word(1, "b")),
        (
            ReasoningDelta(seq=0, id="b", delta="a", part_index=0),
            ReasoningDelta(seq=1, id="b", delta="b", part_index=1),
        ),
        (ToolArgsDelta(seq=0, tool_call_id="c", delta="a"), ToolArgsDelta(seq=1, tool_call_id="d", delta="b")),
        (word(0, "a"), ReasoningDelta(seq=1, id="b", delta="b")),
    ],
)
def test_what_differs_in_more_than_its_text_is_not_joined(one: AgStreamEvent, other: AgStreamEvent) -> None:
    coalescer = Coalescer(1.0)
    assert coalescer.push([one, other], 0) == [one, other]
    assert coalescer.due is None


@pytest.mark.parametrize(
    "pair",
    [
        (ToolArgsDelta(seq=0, tool_call_id="c", delta="a"), ToolArgsDelta(seq=0, tool_call_id="c", delta="b")),
        (ReasoningOpaqueDelta(seq=0, id="b", delta="a"), ReasoningOpaqueDelta(seq=0, id="b", delta="b")),
        (
            ReasoningDelta(seq=0, id="b", delta="a", part_index=1),
            ReasoningDelta(seq=0, id="b", delta="b", part_index=1),
        ),
    ],
)
def test_every_kind_of_delta_is_joined(pair: tuple[Any, Any]) -> None:
    coalescer = Coalescer(1.0)
    assert coalescer.push([pair[0], pair[1], pair[1]], 0) == [pair[0]]
    assert [to_dict(event)["delta"] for event in coalescer.flush(1)] == ["bb"]


def test_an_extension_is_renumbered_whole() -> None:
    coalescer = Coalescer(1.0)
    ext = ExtEvent("ext.acme.x", 3, {"a": 1}, id="i", turn_id="t", message_id="m", parent_id="p", meta={"k": 1})
    out = coalescer.push([word(0, "a"), word(1, "b"), word(2, "c"), ext], 0)
    assert out[-1] == ExtEvent(
        "ext.acme.x", 2, {"a": 1}, id="i", turn_id="t", message_id="m", parent_id="p", meta={"k": 1}
    )


def test_what_could_not_be_delivered_comes_again() -> None:
    coalescer = Coalescer(1.0)
    coalescer.push([word(0, "a"), word(1, "b")], 0)
    before = coalescer.save()
    events: list[AgStreamEvent] = [word(2, "c"), MessageEnd(seq=3, id="m")]
    first = coalescer.push(events, 0.5)
    coalescer.restore(before)
    assert coalescer.push(events, 0.6) == first == [word(1, "bc"), MessageEnd(seq=2, id="m")]


@given(stream=streams(), window=st.sampled_from([0.0, 0.05, 1.0]), data=st.data())
def test_the_fold_is_the_same_and_the_numbers_have_no_gap(
    stream: list[Any], window: float, data: st.DataObject
) -> None:
    """For any stream, cut into batches anywhere, with any time between them."""
    invokes = _by_invoke(stream)
    joined: list[AgStreamEvent] = []
    for events in invokes:
        coalescer, out, now, index = Coalescer(window), list[AgStreamEvent](), 0.0, 0
        while index < len(events):
            size = data.draw(st.integers(1, 5))
            now += data.draw(st.sampled_from([0.0, 0.01, 0.06, 2.0]))
            if (due := coalescer.due) is not None and due <= now:
                out += coalescer.flush(due)
            out += coalescer.push(events[index : index + size], now)
            index += size
        out += coalescer.flush(now)
        assert [event.seq for event in out] == list(range(len(out)))
        assert [event.type for event in out if not isinstance(event, DELTAS)] == [
            event.type for event in events if not isinstance(event, DELTAS)
        ]
        # Where there was text, there is the same text.
        assert _texts(out) == _texts(events)
        joined += out
    assert to_dict(reduce(joined).result) == to_dict(reduce(stream).result)
    assert reduce(joined).needs_resync == reduce(stream).needs_resync


def _by_invoke(stream: list[Any]) -> list[list[Any]]:
    cuts = [0, *(index + 1 for index, (a, b) in enumerate(pairwise(stream)) if b.seq <= a.seq), len(stream)]
    return [stream[begin:end] for begin, end in pairwise(cuts) if begin < end]


def _texts(events: list[Any]) -> list[tuple[str, str]]:
    """Runs of deltas of one block, each as one text."""
    found: list[tuple[str, str]] = []
    last: Any = None
    for event in events:
        key = (type(event), event.id, getattr(event, "tool_call_id", None)) if isinstance(event, DELTAS) else None
        if key is not None and key == last:
            found[-1] = (found[-1][0], found[-1][1] + event.delta)
        elif key is not None:
            found.append((event.type, event.delta))
        else:
            found.append((event.type, ""))
        last = key
    return found


# Served


async def test_a_burst_of_words_goes_out_in_few_events(store: ThreadStore) -> None:
    words = ["word"] * 300
    app = AgentApp(ScriptAgent(lambda _: text(" ".join(words)), store=store), coalesce=0.05)
    events = await run(app, start())
    said = deltas(events)  # type: ignore[arg-type]
    assert "".join(said) == "".join(words)
    assert said[0] == "word"
    assert len(said) < 100
    await assert_same_as_stored(app, store, "th", events)


async def test_what_is_held_comes_when_it_is_due_though_nothing_follows(store: ThreadStore) -> None:
    gate = asyncio.Event()
    app = AgentApp(ScriptAgent(waiting("one two three", "four", gate), store=store), coalesce=0.05)
    async with Exchange(app, "POST", "/", start()) as exchange:
        seen = await exchange.events(9)
        assert deltas(seen) == ["one", "twothree"]  # type: ignore[arg-type]
        gate.set()
        seen += await exchange.events()
    await assert_same_as_stored(app, store, "th", seen)


async def test_a_stop_delivers_what_is_held(store: ThreadStore) -> None:
    app = AgentApp(ScriptAgent(waiting("one two three", "four", asyncio.Event()), store=store), coalesce=30)
    async with Exchange(app, "POST", "/", start()) as exchange:
        seen = await exchange.events(8)
        await asyncio.sleep(0.02)
        assert (await request(app, "POST", "/threads/th/turns/t/stop"))[0] == 202
        seen += await exchange.events()
    assert deltas(seen) == ["one", "twothree"]  # type: ignore[arg-type]
    assert types(seen)[-1] == "turn.abort"  # type: ignore[arg-type]
    await assert_same_as_stored(app, store, "th", seen)


async def test_a_store_that_fails_for_a_while_loses_nothing() -> None:
    class Shaky(MemoryThreadStore):
        """Its log fails now and then; what it takes is in `taken`."""

        taken: list[AgStreamEvent]

        async def acquire(self, thread_id: str) -> ThreadLease:
            lease = await super().acquire(thread_id)
            lease.logs = True  # type: ignore[misc]
            self.taken = []
            calls = 0

            async def append(events: Any) -> None:
                nonlocal calls
                calls += 1
                if calls == 3:
                    raise OSError("not now")
                self.taken += events

            save = lease.save

            async def saving(thread: Any, events: Any) -> None:
                await save(thread, events)
                self.taken += events

            lease.append = append  # type: ignore[method-assign]
            lease.save = saving  # type: ignore[method-assign]
            return lease

    for window in (0, 0.001, 10):
        store = Shaky()
        app = AgentApp(ScriptAgent(lambda _: text("one two three four")), store=store, coalesce=window)
        events = await run(app, start())
        assert [event.seq for event in events] == list(range(len(events)))
        assert store.taken == events
        await assert_same_as_stored(app, store, "th", events)
