"""The driver: it reads the framework's events, and sees to the end of a run whatever happens (spec §8.0, §5.0)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator, Iterable, Iterator, Mapping
from typing import Any, cast

from agjson.agents.closing import (
    cancellation_counter,
    close_stream,
    close_stream_sync,
    pending_cancellations,
    running_loop,
    settled,
)
from agjson.agents.errors import UnknownContinuationError
from agjson.agents.intake import read_input
from agjson.agents.invocation import Invocation
from agjson.agents.parts import AgentParts
from agjson.agents.private_loop import PrivateLoop, run_through
from agjson.agents.run import FoldError, Run
from agjson.agents.source import CallbackSource
from agjson.agents.store import ThreadLease, ThreadStore
from agjson.failures import is_cancellation, trace_of
from agjson.types import AgInput, AgStreamEvent, AgTrigger

__all__ = ["drive", "drive_sync"]

_LOG = logging.getLogger("agjson")


# Asynchronous


async def drive(
    agent: AgentParts, ag_input: AgInput | Mapping[str, Any], trigger: AgTrigger | None
) -> AsyncGenerator[AgStreamEvent, None]:
    """Run one turn; `Agent.run` says what it promises."""
    ag_input = read_input(ag_input)
    settle = settled if agent.suspends else _directly
    lease = await _acquired(agent.store, ag_input.thread_id)
    try:
        run = await _heard(agent, lease, ag_input, trigger)
        await settle(_begin(agent, lease, run))
    except BaseException:
        await settle(_release(lease))
        raise
    logs, has_ledger = lease.logs, agent.approvals is not None
    count_cancellations = cancellation_counter()
    cancellations = count_cancellations()
    stream: AsyncIterator[Any] | None = None
    # Folded, but not delivered yet; and those of them that the store was not given either.
    due: list[AgStreamEvent] = []
    untold: list[AgStreamEvent] = []
    try:
        try:
            events = due = run.opening()
            if logs:
                await lease.append(events)
            due = []
            for event in run.shown(events):
                yield event
            if run.invocation is not None:
                stream = _as_async(_native_stream(agent, run.invocation))
                async for native in stream:
                    events = run.push(native)
                    if has_ledger and run.has_to_tell:
                        due = untold = events
                        await settle(run.tell(lease))
                        due = untold = []
                    if logs and events:
                        due = events
                        await lease.append(events)
                        due = []
                    for event in run.shown(events) if has_ledger else events:
                        yield event
                    if count_cancellations() > cancellations:
                        # The framework has swallowed the cancellation and goes on as if nothing had happened.
                        raise _cancelled()
                if count_cancellations() > cancellations:
                    # The framework has swallowed the cancellation and ended as if nothing had happened.
                    raise _cancelled()
                run.end()
        except BaseException as error:
            if not _is_failure(error, cancellations):
                run.abort("client-closed" if isinstance(error, GeneratorExit) else agent.why_cancelled(), untold)
                if isinstance(error, Exception):
                    raise _cancelled() from error
                raise
            run.fail(error, due)
    finally:
        try:
            await settle(_save(agent, lease, run))
        finally:
            try:
                if stream is not None:
                    await close_stream(stream, agent.close_timeout)
            finally:
                await settle(_release(lease))
    for event in run.shown(run.held):
        yield event


def _native_stream(agent: AgentParts, invocation: Invocation) -> Any:
    """What the adapter reads the framework through.

    Raises:
        TypeError: it is nothing that yields native events.
    """
    stream: Any = agent.invoke(invocation)
    is_data = issubclass(type(stream), (str, bytes, bytearray, dict))
    if hasattr(stream, "__aiter__") or (hasattr(stream, "__iter__") and not is_data):
        return stream
    got, why = type(stream).__name__, ""
    if hasattr(stream, "__await__"):
        why = " (an `async def` without `yield`)"
        close = getattr(stream, "close", None)
        if close is not None:
            close()
    name = getattr(agent.invoke, "__qualname__", "_invoke")
    raise TypeError(f"{name} must return an iterator of native events, asynchronous or plain; it returned {got}{why}")


def _is_failure(error: BaseException, cancellations: int) -> bool:
    """Whether the framework has failed; false where the run itself is to end: it was cancelled, closed, interrupted."""
    if pending_cancellations() > cancellations:
        return False
    if isinstance(error, Exception):
        return True
    # Cancelled, but not by the one who reads: a framework whose own task was cancelled.
    return not isinstance(error, GeneratorExit) and is_cancellation(error) and running_loop() is not None


def _cancelled() -> BaseException:
    import asyncio

    return asyncio.CancelledError()


def _as_async(stream: Any) -> AsyncIterator[Any]:
    if hasattr(stream, "__aiter__"):
        return cast("AsyncIterator[Any]", stream.__aiter__())
    interrupt = getattr(stream, "interrupt", None)
    return CallbackSource(lambda source: _pump(stream, source), in_thread=True, interrupt=interrupt)


def _pump(stream: Iterable[Any], source: CallbackSource[Any]) -> None:
    """Read a stream that blocks, in a thread."""
    iterator = iter(stream)
    try:
        for native in iterator:
            source.put(native)
    finally:
        close_stream_sync(iterator)


async def _acquired(store: ThreadStore, thread_id: str) -> ThreadLease:
    """A lease that nobody is left to release when the run is cancelled meanwhile is released here."""
    if not store.suspends:
        return await store.acquire(thread_id)
    leases: list[ThreadLease] = []

    async def acquire() -> None:
        leases.append(await store.acquire(thread_id))

    try:
        await settled(acquire())
    except BaseException:
        for lease in leases:
            await settled(_release(lease))
        raise
    return leases[0]


async def _directly(waiting: Coroutine[Any, Any, None]) -> None:
    await waiting


async def _heard(agent: AgentParts, lease: ThreadLease, ag_input: AgInput, trigger: AgTrigger | None) -> Run:
    """The run of an input, which the ledger hears first.

    Raises:
        InputError: the thread or the ledger cannot take the input.
    """
    if agent.approvals is None:
        return Run(agent, ag_input, lease.thread, trigger)
    from agjson.agents.asking import Asking

    # Whoever runs the thread, if the host says it: its asks are put to them, and only they can answer.
    owner = agent.owner if lease.thread is None or agent.owner is not None else lease.thread.owner
    asking = Asking(agent.approvals, ag_input.thread_id, owner)
    case = await asking.hear(ag_input, lease.thread)
    return Run(agent, ag_input, lease.thread, trigger, asking=asking, case=case)


async def _begin(agent: AgentParts, lease: ThreadLease, run: Run) -> None:
    await _take(agent, run)
    try:
        await run.begin(lease)
    except BaseException:
        await _put_back(agent, run)
        raise


async def _take(agent: AgentParts, run: Run) -> None:
    """Take what the framework needs to continue.

    Raises:
        UnknownContinuationError: it is not there. On a start that goes on with nothing it is only let go of.
    """
    invocation = run.invocation
    if invocation is None or run.request_state is None:
        return
    try:
        run.taken.append(await agent.continuations.take(run.thread_id, run.request_state))
        invocation.continuation = run.taken[0]
    except UnknownContinuationError:
        if invocation.answers or invocation.results:
            raise


async def _put_back(agent: AgentParts, run: Run) -> None:
    """Undo `_take`: nothing has begun, so the continuation is as good as before."""
    for value in run.taken:
        await agent.continuations.put(run.thread_id, run.request_state or "", value)


async def _save(agent: AgentParts, lease: ThreadLease, run: Run) -> None:
    """Store the thread, and what the framework needs to continue.

    Where that fails the turn fails: it must not say that it can be continued. The store then recovers the thread from
    what it was told before (`ThreadLease`).
    """
    if run.has_to_tell:
        try:
            await run.tell(lease)
        except Exception as error:
            if agent.on_failure is None:
                _LOG.error("an ask of turn %r cannot be kept: %s", run.turn_id, trace_of(error))
            run.replace_terminal(error, "ask_failed")
    try:
        thread = run.thread()
    except FoldError as error:
        if agent.on_failure is None:
            _LOG.error("turn %r does not fold: %s", run.turn_id, trace_of(error))
        run.replace_terminal(error, "fold_failed")
        thread = run.failed_thread()
    kept = thread.pending.request_state if run.continuation() else None
    try:
        if kept is not None:
            # Before the thread that names it: nobody else knows the name of one that is never used.
            await agent.continuations.put(thread.thread_id, kept, run.continuation()[0])
        await run.hold_calls(thread)
        # Before the end goes out: who has it may send the next input at once.
        await run.close_claims()
        await lease.save(thread, run.held)
    except Exception as error:
        if agent.on_failure is None:
            _LOG.error("turn %r could not be stored: %s", run.turn_id, trace_of(error))
        run.replace_terminal(error, "store_failed")
        await _told_anyway(agent, lease, run, kept)


async def _told_anyway(agent: AgentParts, lease: ThreadLease, run: Run, kept: str | None) -> None:
    """After a failed save: let go of what will not be continued, and log the end, as far as the stores still work."""
    try:
        if kept is not None:
            await agent.continuations.take(run.thread_id, kept)
    except Exception as error:
        _LOG.debug("a continuation of turn %r is left behind: %s", run.turn_id, type(error).__name__)
    try:
        if lease.logs:
            await lease.append(run.held)
    except Exception as error:
        _LOG.warning("the end of turn %r is not logged: %s", run.turn_id, type(error).__name__)


async def _release(lease: ThreadLease) -> None:
    """Give up the right to run the thread; a store that cannot does not take the end of the turn from its reader."""
    try:
        await lease.release()
    except Exception as error:
        _LOG.warning("the right to run a thread is not released: %s", type(error).__name__)


# Synchronous


def drive_sync(
    agent: AgentParts, ag_input: AgInput | Mapping[str, Any], trigger: AgTrigger | None
) -> Generator[AgStreamEvent, None, None]:
    """Run one turn on the calling thread; `Agent.run_sync` says what it promises."""
    loop = PrivateLoop()
    try:
        yield from _drive_sync(agent, read_input(ag_input), trigger, loop)
    finally:
        loop.close(agent.close_timeout)


def _drive_sync(
    agent: AgentParts, ag_input: AgInput, trigger: AgTrigger | None, loop: PrivateLoop
) -> Generator[AgStreamEvent, None, None]:
    on_store = loop.run if agent.store.suspends else run_through
    on_all = loop.run if agent.suspends else run_through
    lease = on_store(agent.store.acquire(ag_input.thread_id))
    try:
        run = on_all(_heard(agent, lease, ag_input, trigger))
        on_all(_take(agent, run))
        stream: Iterator[Any] | None = None
        try:
            stream, failure = _opened(agent, run.invocation, loop)
            on_all(run.begin(lease))
        except BaseException:
            close_stream_sync(stream)
            on_all(_put_back(agent, run))
            raise
    except BaseException:
        on_store(_release(lease))
        raise
    logs, has_ledger = lease.logs, agent.approvals is not None
    due: list[AgStreamEvent] = []
    untold: list[AgStreamEvent] = []
    try:
        try:
            events = due = run.opening()
            if logs:
                on_store(lease.append(events))
            due = []
            yield from run.shown(events)
            if failure is not None:
                raise failure
            if stream is not None:
                for native in stream:
                    events = run.push(native)
                    if has_ledger and run.has_to_tell:
                        due = untold = events
                        on_all(run.tell(lease))
                        due = untold = []
                    if logs and events:
                        due = events
                        on_store(lease.append(events))
                        due = []
                    yield from run.shown(events) if has_ledger else events
                run.end()
        except BaseException as error:
            if isinstance(error, Exception) or (is_cancellation(error) and not isinstance(error, GeneratorExit)):
                run.fail(error, due)
            else:
                run.abort("client-closed" if isinstance(error, GeneratorExit) else agent.why_cancelled(), untold)
                raise
    finally:
        try:
            on_all(_save(agent, lease, run))
        finally:
            try:
                close_stream_sync(stream)
            finally:
                on_store(_release(lease))
    yield from run.shown(run.held)


def _opened(
    agent: AgentParts, invocation: Invocation | None, loop: PrivateLoop
) -> tuple[Iterator[Any] | None, Exception | None]:
    """The native stream as a plain iterator, or why there is none."""
    if invocation is None:
        return None, None
    try:
        stream = _native_stream(agent, invocation)
    except Exception as error:
        return None, error
    if hasattr(stream, "__iter__"):
        return iter(stream), None
    return loop.iterate(stream.__aiter__(), close_timeout=agent.close_timeout), None
