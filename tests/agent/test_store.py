"""Where threads and continuations are kept."""

from __future__ import annotations

import pytest

from agjson.agents import (
    Continuations,
    MemoryContinuations,
    MemoryThreadStore,
    Thread,
    ThreadBusyError,
    UnknownContinuationError,
)
from agjson.known_ids import KnownIds
from agjson.types import (
    AgArtifact,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgTurnRecord,
    DataBlock,
    ToolCallBlock,
)


async def test_a_thread_is_kept_until_it_is_forgotten() -> None:
    store = MemoryThreadStore()
    assert await store.load("a") is None
    lease = await store.acquire("a")
    assert lease.thread is None
    thread = Thread(thread_id="a", revision=1)
    await lease.save(thread, [])
    assert await store.load("a") is thread
    await lease.release()
    assert (await store.acquire("a")).thread is thread
    store.forget("a")
    store.forget("a")
    assert (await store.load("a"), len(store)) == (None, 0)


async def test_a_thread_has_one_lease_at_a_time() -> None:
    store = MemoryThreadStore()
    lease = await store.acquire("a")
    with pytest.raises(ThreadBusyError):
        await store.acquire("a")
    await store.acquire("b")
    await lease.release()
    second = await store.acquire("a")
    # A lease that was given up long ago frees nothing.
    await lease.release()
    with pytest.raises(ThreadBusyError):
        await store.acquire("a")
    await second.release()


async def test_a_bounded_store_forgets_what_was_saved_longest_ago_and_does_not_run() -> None:
    store = MemoryThreadStore(max_threads=2)
    running = await store.acquire("a")
    for thread_id in ("a", "b", "c"):
        store.put(Thread(thread_id=thread_id))
    assert [await store.load(id) is not None for id in ("a", "b", "c")] == [True, False, True]
    await running.release()
    store.put(Thread(thread_id="c", revision=2))
    store.put(Thread(thread_id="d"))
    assert [await store.load(id) is not None for id in ("a", "c", "d")] == [False, True, True]
    with pytest.raises(ValueError, match="max_threads"):
        MemoryThreadStore(max_threads=0)


async def test_a_continuation_is_used_once_by_its_own_thread() -> None:
    kept = MemoryContinuations()
    first, second = kept.mint(), kept.mint()
    assert first != second and isinstance(kept, Continuations)
    await kept.put("a", first, {"x": 1})
    with pytest.raises(UnknownContinuationError):
        await kept.take("b", first)
    assert await kept.take("a", first) == {"x": 1}
    with pytest.raises(UnknownContinuationError):
        await kept.take("a", first)


async def test_bounded_continuations_forget_the_oldest() -> None:
    kept = MemoryContinuations(max_items=2)
    for name in ("1", "2", "3"):
        await kept.put("a", name, name)
    assert (await kept.take("a", "2"), await kept.take("a", "3"), len(kept)) == ("2", "3", 0)
    with pytest.raises(UnknownContinuationError):
        await kept.take("a", "1")
    with pytest.raises(ValueError, match="max_items"):
        MemoryContinuations(max_items=0)


def test_every_id_of_a_fold_is_taken() -> None:
    result = AgReduceResult(
        messages=[
            AgMessage(
                id="m",
                role="assistant",
                content=[
                    ToolCallBlock(tool_call_id="c", name="f", input={}),
                    DataBlock(name="status", id="d", data=1),
                    DataBlock(name="status", data=1),
                ],
            )
        ],
        artifacts=[AgArtifact(artifact_id="art", turn_id="t", thread_id="th", parts=[])],
        memory=[],
        turns=[
            AgTurnRecord(turn_id="t", thread_id="th", asks=[AgPausedAsk(ask_id="a", kind="text")], source_ids=["s"]),
            AgTurnRecord(turn_id="n", thread_id="th", parent_turn_id="t"),
        ],
    )
    thread = Thread.of_result("th", result)
    assert thread.ids == KnownIds(
        turns={"t", "n"}, messages={"m"}, blocks={"d"}, calls={"c"}, asks={"a"}, artifacts={"art"}, sources={"s"}
    )
    assert thread.nested == {"n"}
    assert [message.id for message in thread.messages] == ["m"]
