"""Readers of a relay, however they are mixed with its writer: each frame once, in order, or an honest end."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from agjson.middleware.asgi.readers import Reader
from agjson.middleware.asgi.relay import Framer, Relay
from agjson.types import TextDelta
from agjson.wire.sse import encode_sse_event, read_sse


def frame(seq: int, size: int) -> bytes:
    return b"%d:%b;" % (seq, b"x" * size)


async def read(reader: Reader, pauses: list[int], out: list[bytes]) -> None:
    chunks = reader.chunks(60)
    async for chunk in chunks:
        if not chunk.startswith(b":"):
            out.append(chunk)
        for _ in range(pauses.pop() if pauses else 0):
            await asyncio.sleep(0)


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    max_bytes=st.integers(20, 2000),
    batch=st.integers(1, 7),
    starts=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    pauses=st.lists(st.integers(0, 9), max_size=30),
)
def test_a_reader_gets_each_frame_once_or_breaks_off(
    sizes: list[int], max_bytes: int, batch: int, starts: list[int], pauses: list[int]
) -> None:
    frames = [frame(seq, size) for seq, size in enumerate(sizes)]

    async def scene() -> tuple[Relay, list[tuple[int, bytes]]]:
        relay = Relay("t", max_bytes=max_bytes)
        readers: list[tuple[int, list[bytes], asyncio.Task[None]]] = []
        for index in range(0, len(frames), batch):
            if starts and relay.base <= starts[-1] % (index + 1):
                at, out = starts.pop() % (index + 1), list[bytes]()
                readers.append((at, out, asyncio.create_task(read(Reader(relay, at), list(pauses), out))))
            relay.publish(frames[index : index + batch])
            for _ in range(pauses[index % len(pauses)] if pauses else 0):
                await asyncio.sleep(0)
        relay.end()
        async with asyncio.timeout(10):
            for _, _, task in readers:
                await task
        return relay, [(at, b"".join(out)) for at, out, _ in readers]

    relay, results = asyncio.run(scene())
    assert relay.next == len(frames)
    assert relay.size == sum(map(len, frames[relay.base :]))
    assert relay.size <= max_bytes or relay.base == len(frames) - 1
    for at, got in results:
        count = got.count(b";")
        assert got == b"".join(frames[at : at + count])
        # It has all, or what comes next is not kept any more.
        assert at + count == len(frames) or at + count < relay.base


async def test_a_reader_that_leaves_is_not_waited_for() -> None:
    relay = Relay("t", max_bytes=1000)
    left: list[str] = []
    reader = Reader(relay, 0, on_close=lambda: left.append("left"))
    task = asyncio.create_task(read(reader, [], []))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    reader.close()
    reader.close()
    assert left == ["left"]
    relay.publish([b"x"])
    relay.end()


async def test_silence_is_told_from_news() -> None:
    relay = Relay("t", max_bytes=1000)
    chunks = Reader(relay, 0).chunks(0.05)
    assert await anext(chunks) == b":\n\n"
    loop = asyncio.get_running_loop()
    for _ in range(3):
        loop.call_later(0.03, relay.publish, [b"news"])
        began = loop.time()
        assert await anext(chunks) == b"news"
        assert loop.time() - began < 0.05
    assert await anext(chunks) == b":\n\n"
    relay.end()
    assert await anext(chunks, None) is None


@given(turn=st.text(max_size=20), seq=st.integers(0, 10**15), delta=st.text(max_size=20))
def test_a_frame_is_what_the_wire_module_writes(turn: str, seq: int, delta: str) -> None:
    event = TextDelta(seq=seq, id="b", delta=delta)
    [written] = Framer(turn).frames([event])
    assert written == encode_sse_event(event, turn_id=turn)
    [message] = read_sse([written])
    assert Framer(turn).frame(seq, message.data) == written


def test_one_frame_that_is_longer_than_all_that_is_kept_drops_nothing() -> None:
    dropped: list[tuple[list[bytes], int]] = []
    relay = Relay("t", max_bytes=10, on_drop=lambda frames, first: dropped.append((list(frames), first)))
    relay.publish([frame(0, 50)])
    assert (dropped, relay.base) == ([], 0)
    relay.publish([frame(1, 50)])
    assert (dropped, relay.base) == ([([frame(0, 50)], 0)], 1)
