"""What other processes do to a store in the tests of this folder; each says on its standard output what it has done.

A line of the input starts a task: its name and its arguments, as JSON. ``crash`` runs in a child of its own, as it is
to be killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from agjson.agents import Pending, Thread, ThreadBusyError
from agjson.fold import Reducer
from agjson.known_ids import KnownIds
from agjson.stores import SQLiteThreadStore, StoreError
from agjson.types import AgPausedAsk, AgStreamEvent
from tests.support.streams import ev, typed


def say(*what: object) -> None:
    """One line, whole, whatever happens next."""
    os.write(1, (json.dumps(what) + "\n").encode())


def turn(turn_id: str, thread_id: str = "th") -> list[AgStreamEvent]:
    """The events of a turn."""
    message, block = f"m-{turn_id}", f"b-{turn_id}"
    return typed(
        ev("turn.start", turnId=turn_id, threadId=thread_id),
        ev("message.start", id=message, role="assistant", turnId=turn_id, threadId=thread_id),
        ev("text.start", id=block, turnId=turn_id, messageId=message),
        ev("text.delta", id=block, turnId=turn_id, messageId=message, delta=f"said in {turn_id}"),
        ev("text.end", id=block, turnId=turn_id, messageId=message),
        ev("message.end", id=message, turnId=turn_id),
        ev("turn.done", turnId=turn_id, outcome={"type": "success"}, finishReason="stop"),
    )


def after(thread: Thread, turn_id: str) -> Thread:
    """A thread after a turn: it waits for an answer, which the next run goes on from."""
    reducer = Reducer(thread.result)
    for event in turn(turn_id, thread.thread_id):
        reducer.push(event)
    return replace(
        thread,
        result=reducer.result(),
        ids=thread.ids | KnownIds(turns={turn_id}, messages={f"m-{turn_id}"}, blocks={f"b-{turn_id}"}),
        pending=Pending(asks=(AgPausedAsk(ask_id=f"ask-{turn_id}", kind="text"),)),
        revision=thread.revision + 1,
    )


async def run(store: SQLiteThreadStore, turn_id: str, thread_id: str = "th") -> None:
    """One run; every step is said when it is done."""
    lease = await store.acquire(thread_id)
    thread = lease.thread or Thread(thread_id=thread_id)
    say("acquired", turn_id)
    events = turn(turn_id, thread_id)
    await lease.begin(turn_id, replace(thread, pending=Pending()))
    say("begun", turn_id)
    for event in events[:5]:
        await lease.append([event])
        say("appended", turn_id, event.seq)
    await lease.save(after(thread, turn_id), events[5:])
    say("saved", turn_id)
    await lease.release()
    say("released", turn_id)


async def crash(path: str, statement: int) -> None:
    """Run turn after turn, and die before a given statement; a number below 1 waits to be killed."""
    store = SQLiteThreadStore(path)
    await run(store, "t0")
    left = statement

    def count(sql: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    await store.write(lambda connection: connection.set_trace_callback(count))
    number = 0
    while True:
        number += 1
        await run(store, f"t{number}")


async def contend(path: str, name: str, runs: int, threads: int) -> None:
    """Run many turns of a few threads, each as soon as it is free."""
    chance = random.Random(name)
    busy = 0
    async with SQLiteThreadStore(path) as store:
        for number in range(runs):
            thread_id = f"th{chance.randrange(threads)}"
            while True:
                try:
                    lease = await store.acquire(thread_id)
                    break
                except ThreadBusyError:
                    busy += 1
                    await asyncio.sleep(0.001)
            thread = lease.thread or Thread(thread_id=thread_id)
            turn_id = f"{name}-{number}"
            events = turn(turn_id, thread_id)
            await lease.begin(turn_id, thread)
            await lease.append(events[:3])
            await asyncio.sleep(0)
            await lease.save(after(thread, turn_id), events[3:])
            await lease.release()
    say("done", name, busy)


async def hold(path: str, lease_timeout: float) -> None:
    """Begin a run, wait for a line, and go on with the run."""
    store = SQLiteThreadStore(path, lease_timeout=lease_timeout)
    lease = await store.acquire("th")
    thread = lease.thread or Thread(thread_id="th")
    events = turn("held")
    await lease.begin("held", replace(thread, pending=Pending()))
    await lease.append(events[:4])
    say("holding", os.getpid())
    await asyncio.to_thread(sys.stdin.readline)
    say("stops", await store.stop_requests())
    works: list[Callable[[], Coroutine[Any, Any, None]]] = [
        lambda: lease.append(events[4:5]),
        lambda: lease.save(after(thread, "held"), events[5:]),
        lambda: lease.begin("again", thread),
    ]
    for work in works:
        try:
            await work()
            say("written")
        except StoreError as error:
            say("refused", type(error).__name__)
    await lease.release()
    await store.aclose()
    say("end")


TASKS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {"crash": crash, "contend": contend, "hold": hold}


def main() -> None:
    say("ready")
    while line := sys.stdin.readline():
        name, *arguments = json.loads(line)
        if name != "crash":
            asyncio.run(TASKS[name](*arguments))
            continue
        child = os.fork()
        if child == 0:
            say("pid", os.getpid())
            asyncio.run(crash(*arguments))
        os.waitpid(child, 0)
        say("ended")


if __name__ == "__main__":
    main()
