"""Events that come by calls: in order, with back-pressure, and a clean stop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agjson.agents import CallbackSource, Invocation, SourceClosed
from agjson.normalizer import HostEnd
from tests.support.scripted import ScriptAgent, Session, start, terminal, text


async def test_events_of_a_coroutine_come_in_order_and_its_result_after_them() -> None:
    async def framework(source: CallbackSource[int]) -> str:
        for number in range(1_000):
            await source.send(number)
        return "result"

    source = CallbackSource(framework, limit=3)
    assert source.result is None
    assert [number async for number in source] == list(range(1_000))
    assert source.result == "result"
    with pytest.raises(StopAsyncIteration):
        await anext(source)


def test_events_of_a_thread_can_be_read_from_a_thread() -> None:
    def framework(source: CallbackSource[int]) -> None:
        for number in range(1_000):
            source.put(number)

    assert list(CallbackSource(framework, in_thread=True, limit=1)) == list(range(1_000))


async def test_events_of_many_threads_and_loops_come_whole() -> None:
    def framework(source: CallbackSource[tuple[int, int]]) -> None:
        def put(me: int) -> None:
            for number in range(200):
                source.put((me, number))

        async def send(me: int) -> None:
            for number in range(200):
                await source.send((me, number))

        threads = [threading.Thread(target=put, args=(me,)) for me in range(4)]
        threads += [threading.Thread(target=lambda me=me: asyncio.run(send(me))) for me in range(4, 8)]  # type: ignore[misc]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    got = [each async for each in CallbackSource(framework, in_thread=True, limit=5)]
    assert sorted(got) == [(me, number) for me in range(8) for number in range(200)]
    for me in range(8):
        assert [number for who, number in got if who == me] == list(range(200))


async def test_a_framework_waits_until_there_is_room() -> None:
    sent: list[int] = []

    async def framework(source: CallbackSource[int]) -> None:
        for number in range(10):
            await source.send(number)
            sent.append(number)

    source = CallbackSource(framework, limit=4)
    assert await anext(source) == 0
    for _ in range(50):
        await asyncio.sleep(0)
    assert sent == [0, 1, 2, 3, 4]
    assert [number async for number in source] == list(range(1, 10))


def test_a_thread_waits_until_there_is_room() -> None:
    sent: list[int] = []

    def framework(source: CallbackSource[int]) -> None:
        for number in range(10):
            source.put(number)
            sent.append(number)

    source = CallbackSource(framework, in_thread=True, limit=4)
    assert next(source) == 0
    for _ in range(500):
        if len(sent) >= 5:
            break
        time.sleep(0.01)
    time.sleep(0.02)
    assert sent == [0, 1, 2, 3, 4]
    assert list(source) == list(range(1, 10))


async def test_a_call_on_the_loop_itself_never_waits() -> None:
    async def framework(source: CallbackSource[int]) -> None:
        for number in range(10):
            source.put(number)

    assert [number async for number in CallbackSource(framework, limit=1)] == list(range(10))


@pytest.mark.parametrize("let_in", [False, True])
async def test_one_that_gives_up_waiting_lets_the_next_one_in(let_in: bool) -> None:
    waiting: list[asyncio.Task[None]] = []
    full = asyncio.Event()

    async def framework(source: CallbackSource[str]) -> None:
        await source.send("1")
        await source.send("2")
        waiting.extend(asyncio.create_task(source.send(word)) for word in ("given up", "3"))
        await asyncio.sleep(0.01)
        full.set()
        await waiting[1]

    source = CallbackSource(framework, limit=1)
    got = [await anext(source)]
    await full.wait()
    if let_in:
        # It was told that there is room, and is cancelled before it takes it.
        got.append(await anext(source))
    waiting[0].cancel()
    async with asyncio.timeout(5):
        got += [each async for each in source]
    assert got == ["1", "2", "3"]


def test_a_thread_that_gives_up_waiting_lets_the_next_one_in(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if threading.current_thread().name == "interrupted":
                super().wait(0.05)
                raise KeyboardInterrupt
            return super().wait(timeout)

    def framework(source: CallbackSource[str]) -> None:
        source.put("1")
        source.put("2")

        def interrupted() -> None:
            with pytest.raises(KeyboardInterrupt):
                source.put("given up")

        threads = [
            threading.Thread(target=interrupted, name="interrupted"),
            threading.Thread(target=lambda: source.put("3")),
        ]
        for thread in threads:
            thread.start()
            time.sleep(0.01)
        for thread in threads:
            thread.join()

    monkeypatch.setattr("agjson.agents.source.threading.Event", Interrupted)
    source = CallbackSource(framework, in_thread=True, limit=1)
    got = [next(source)]
    time.sleep(0.2)
    assert [*got, *source] == ["1", "2", "3"]


async def test_a_thread_that_fails_tells_so_after_its_events() -> None:
    def framework(source: CallbackSource[int]) -> None:
        source.put(1)
        raise ValueError("broken")

    source = CallbackSource(framework, in_thread=True)
    assert await anext(source) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(source)


async def test_a_thread_that_waits_for_something_else_is_interrupted() -> None:
    stop = threading.Event()

    def framework(source: CallbackSource[int]) -> None:
        source.put(1)
        assert stop.wait(30)

    source = CallbackSource(framework, in_thread=True, interrupt=stop.set)
    assert await anext(source) == 1
    async with asyncio.timeout(5):
        await source.aclose()


async def test_what_the_framework_raises_comes_after_its_events() -> None:
    async def framework(source: CallbackSource[int]) -> None:
        await source.send(1)
        raise ValueError("broken")

    source = CallbackSource(framework)
    assert await anext(source) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(source)
    with pytest.raises(StopAsyncIteration):
        await anext(source)


async def test_a_closed_source_stops_a_coroutine() -> None:
    stopped: list[str] = []

    async def framework(source: CallbackSource[int]) -> None:
        try:
            await source.send(1)
            await asyncio.sleep(60)
        finally:
            stopped.append("yes")

    source = CallbackSource(framework)
    await anext(source)
    await source.aclose()
    assert stopped == ["yes"]
    with pytest.raises(SourceClosed):
        await source.send(2)
    await source.aclose()


def test_a_closed_source_stops_a_thread_at_its_next_call() -> None:
    stopped = threading.Event()

    def framework(source: CallbackSource[int]) -> None:
        try:
            while True:
                source.put(1)
        except SourceClosed:
            stopped.set()
            raise

    source = CallbackSource(framework, in_thread=True, limit=2)
    assert next(source) == 1
    source.close()
    assert stopped.wait(5)
    assert list(source) == []


async def test_a_source_that_was_never_read_starts_nothing() -> None:
    source = CallbackSource(lambda source: pytest.fail("was started"), in_thread=True)
    await source.aclose()
    assert [each async for each in source] == []


async def test_a_function_that_blocks_needs_a_thread() -> None:
    with pytest.raises(TypeError, match="in_thread=True"):
        await anext(CallbackSource(lambda source: None))
    with pytest.raises(TypeError, match="async for"):
        iter(CallbackSource(asyncio.sleep))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit"):
        CallbackSource(asyncio.sleep, limit=0)  # type: ignore[arg-type]


class _Calling(ScriptAgent):
    """A framework that hands out its events by calls, and returns how it ended."""

    async def _async(self, invocation: Invocation) -> AsyncIterator[Any]:
        async def framework(source: CallbackSource[Any]) -> Any:
            for native in self.script(invocation):
                if isinstance(native, BaseException):
                    raise native
                await source.send(native)
            return "other"

        source = CallbackSource(framework, limit=2)
        try:
            async for native in source:
                yield native
            yield HostEnd(finish_reason=source.result)
        finally:
            self.closed += 1
            await source.aclose()


async def test_an_agent_on_a_framework_that_calls() -> None:
    agent = _Calling(lambda run: text("one two"))
    session = Session(agent)
    assert terminal(await session.run(start()))["finishReason"] == "other"
    session.verify()
    failing = Session(_Calling(lambda run: [*text("one"), RuntimeError("x")]))
    assert terminal(await failing.run(start()))["type"] == "turn.error"
    failing.verify()
    async for event in (events := agent.run(start(thread="another"))):
        if event.type == "text.delta":
            break
    await events.aclose()
    assert agent.closed == 2
    third = Session(agent, "third")
    await asyncio.to_thread(third.run_sync, start(thread="third"))
    third.verify()
