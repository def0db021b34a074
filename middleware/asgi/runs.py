"""The runs of one server: started within limits, read here or through the store, stopped, ended with the server."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeAlias

from agjson.agents import Agent, OnPaused, SharedThreadStore, Thread, ThreadBusyError, ThreadStore
from agjson.approvals import Ledger, tokens_of
from agjson.middleware.asgi.errors import Refusal, unknown_thread
from agjson.middleware.asgi.readers import Reader
from agjson.middleware.asgi.relay import Relay
from agjson.middleware.asgi.run import Run
from agjson.middleware.asgi.tailing import Tail, Tokens, TurnLog
from agjson.types import AgInput, AgPausedAsk
from agjson.wire.sse import event_id

__all__ = ["OnDisconnect", "Runs", "Standing"]

_LOG = logging.getLogger("agjson")

OnDisconnect: TypeAlias = Literal["continue", "cancel"]
"""What becomes of a run when its last reader has gone: it goes on, or it is stopped."""

# Threads whose latest turn is remembered after it has ended, beside the limit in bytes.
_MAX_ENDED = 4096


class Standing(NamedTuple):
    """A thread as it stands.

    Attributes:
        thread: as it is stored, or with a part of the running turn; None: its first turn is still running.
        turn_id: the turn that runs; None: none does.
        last_event_id: the last event in it, where it is known.
    """

    thread: Thread | None
    turn_id: str | None
    last_event_id: str | None


class _Latest(NamedTuple):
    """The latest turn of a thread, wherever it runs.

    Attributes:
        turn_id: the turn.
        last_seq: the ordinal of its last event; -1 while it runs.
        ended: the thread is saved.
        owner: who the thread belongs to.
    """

    turn_id: str
    last_seq: int
    ended: bool
    owner: str | None


class _Ended(NamedTuple):
    """What is kept of a run that has ended."""

    relay: Relay
    owner: str | None
    digest: bytes


class Runs:
    """Every run of one server.

    Args:
        agent: the agent.
        store: where threads are kept.
        approvals: the ledger; None: that of the agent.
        on_paused: what a start may do to a paused thread; None: as the agent says.
        on_disconnect: what becomes of a run without readers.
        max_runs: how many may be open at once.
        max_runs_per_owner: how many of them for one owner; None: as many as in all.
        max_readers: how many streams may be open at once.
        replay_bytes: how many bytes of a running turn are kept for readers that are late, and how many of all ended
            turns together.
        window: over how many seconds deltas are joined.
        poll: how many seconds apart a shared store is asked what other processes have done.
        debug: exceptions are told as they are.
    """

    def __init__(
        self,
        agent: Agent,
        store: ThreadStore,
        *,
        approvals: Ledger | None,
        on_paused: OnPaused | None,
        on_disconnect: OnDisconnect,
        max_runs: int,
        max_runs_per_owner: int | None,
        max_readers: int,
        replay_bytes: int,
        window: float,
        poll: float,
        debug: bool,
    ) -> None:
        self._agent = agent
        self._store = store
        self._shared = store if isinstance(store, SharedThreadStore) else None
        self._approvals = agent.approvals if approvals is None else approvals
        self._on_paused: OnPaused | None = on_paused
        self._cancels = on_disconnect == "cancel"
        self._max_runs = max_runs
        self._max_runs_per_owner = max_runs_per_owner
        self._max_readers = max_readers
        self._replay_bytes = replay_bytes
        self._window = window
        self._poll = poll
        self._debug = debug
        self._open: dict[Run, asyncio.Task[None]] = {}
        # The run that has the right to its thread, by thread.
        self._active: dict[str, Run] = {}
        # The latest run of other threads, the one that ended longest ago first.
        self._ended: dict[str, _Ended] = {}
        self._ended_bytes = 0
        self._tails: dict[tuple[str, str], Tail] = {}
        self._readers = 0
        self._opening = 0
        self._stops: asyncio.Task[None] | None = None
        self.closing = False

    # Threads

    async def thread(self, thread_id: str, owner: str | None) -> Thread | None:
        """A thread of somebody; None: there is none as yet, or its first turn is running.

        Args:
            thread_id: which thread.
            owner: who asks.

        Raises:
            Refusal: it is somebody else's; in the same words as if there were none.
        """
        thread = await self._store.load(thread_id)
        if (owner if thread is None else thread.owner) != owner or (
            thread is None and await self._first_turn_owner(thread_id, owner) != owner
        ):
            raise unknown_thread(thread_id)
        return thread

    async def _first_turn_owner(self, thread_id: str, owner: str | None) -> str | None:
        """Whose a thread is that is not saved yet; `owner` where there is none."""
        active = self._active.get(thread_id)
        if active is not None:
            return active.owner
        latest = await self._latest(thread_id)
        return owner if latest is None or latest.ended else latest.owner

    async def existing(self, thread_id: str, owner: str | None) -> Standing:
        """A thread of somebody, that is there.

        Args:
            thread_id: which thread.
            owner: who asks.

        Raises:
            Refusal: there is none, or it is somebody else's.
        """
        while True:
            before = await self._latest(thread_id)
            thread = await self.thread(thread_id, owner)
            latest = await self._latest(thread_id)
            if before == latest:
                break
        if thread is None and (latest is None or latest.ended or latest.owner != owner):
            # Without a thread there is at most its first turn; what is kept of a forgotten one does not count.
            raise unknown_thread(thread_id)
        if latest is None:
            return Standing(thread, None, None)
        if not latest.ended:
            return Standing(thread, latest.turn_id, None)
        last = event_id(latest.turn_id, latest.last_seq) if latest.last_seq >= 0 else None
        return Standing(thread, None, last)

    async def standing(self, thread_id: str, owner: str | None) -> Standing:
        """As `existing`; where the running turn is not served from its first event any more, with what it has come to.

        Args:
            thread_id: which thread.
            owner: who asks.

        Raises:
            Refusal: there is none, or it is somebody else's.
        """
        standing = await self.existing(thread_id, owner)
        run = self._begun(thread_id)
        if (
            standing.turn_id is None
            or run is None
            or run.relay is None
            or run.earlier is None
            or not run.earlier.has_begun
        ):
            return standing
        result, last_seq = run.earlier.snapshot(run.relay)
        thread = standing.thread or Thread(thread_id=thread_id)
        return Standing(
            dataclasses.replace(thread, result=result), standing.turn_id, event_id(standing.turn_id, last_seq)
        )

    async def _latest(self, thread_id: str) -> _Latest | None:
        run = self._begun(thread_id)
        if run is not None and run.relay is not None:
            ended = run.is_stored
            return _Latest(run.relay.turn_id, run.relay.next - 1 if ended else -1, ended, run.owner)
        if self._shared is not None:
            logged = await self._shared.latest_turn(thread_id)
            if logged is None:
                return None
            return _Latest(logged.turn_id, logged.last_seq if logged.ended else -1, logged.ended, logged.owner)
        kept = self._ended.get(thread_id)
        return None if kept is None else _Latest(kept.relay.turn_id, kept.relay.next - 1, True, kept.owner)

    # Runs

    async def start(self, ag_input: AgInput, owner: str | None, digest: bytes) -> Run:
        """Begin a run; returns when nothing can refuse it any more.

        Args:
            ag_input: the input.
            owner: who sent it.
            digest: tells the bytes of the request from others.

        Raises:
            Refusal: a limit is reached, or the thread is busy.
            AgJSONError: the thread or the agent cannot take the input.
        """
        await self._until_closed(ag_input.thread_id, owner)
        if self.closing:
            raise _shutting_down()
        if len(self._open) >= self._max_runs or (
            self._max_runs_per_owner is not None
            and sum(run.owner == owner for run in self._open) >= self._max_runs_per_owner
        ):
            raise Refusal(429, "too_many_runs", "too many runs are open", headers={"Retry-After": "1"})
        run = Run(
            ag_input,
            owner=owner,
            digest=digest,
            replay_bytes=self._replay_bytes,
            folds=self._shared is None,
            debug=self._debug,
            on_admitted=self._admitted,
            on_ended=self._over,
        )
        self._open[run] = run.start(self._agent, self._store, self._on_paused, self._window, self._approvals)
        if self._shared is not None and (self._stops is None or self._stops.done()):
            self._stops = asyncio.create_task(self._heed_stops(self._shared))
        try:
            # Whoever waits here may leave; the run has begun all the same.
            await asyncio.shield(run.begun)
        except ThreadBusyError as error:
            raise await self._busy(error, run) from None
        except asyncio.CancelledError:
            if run.begun.cancelled():
                if self.closing:
                    raise _shutting_down() from None
                raise Refusal(409, "turn_stopped", "the run was stopped before it began") from None
            raise
        return run

    async def _until_closed(self, thread_id: str, owner: str | None) -> None:
        """Wait while a run is being closed whose end its readers have: they may send the next input at once."""
        before = self._active.get(thread_id)
        closing = None if before is None or not before.is_stored else self._open.get(before)
        if before is not None and closing is not None and before.owner == owner:
            await asyncio.wait((closing,), timeout=self._agent.close_timeout + 1)

    async def _busy(self, error: ThreadBusyError, refused: Run) -> Exception:
        """Why a thread is busy, for who may know."""
        thread_id = refused.thread_id
        await self.thread(thread_id, refused.owner)
        active = self._active.get(thread_id)
        if active is not None and active.owner == refused.owner:
            if active.digest == refused.digest:
                return Refusal(
                    409,
                    "turn_exists",
                    "this input is running already: attach to its turn",
                    path="$.turnId",
                    turnId=active.turn_id,
                )
            running: str | None = active.turn_id
        else:
            latest = await self._latest(thread_id)
            theirs = latest is not None and not latest.ended and latest.owner == refused.owner
            running = latest.turn_id if latest is not None and theirs else None
        if running is None:
            return Refusal(409, "thread_busy", error.message, path="$.threadId")
        return Refusal(409, "thread_busy", error.message, path="$.threadId", turnId=running)

    def repetition(self, ag_input: AgInput, owner: str | None, digest: bytes) -> Refusal | None:
        """Whether a request was served already, byte for byte; then it must not run again.

        Args:
            ag_input: the input.
            owner: who sent it.
            digest: tells the bytes of the request from others.
        """
        run = self._begun(ag_input.thread_id) or self._ended.get(ag_input.thread_id)
        if run is None or run.relay is None or run.owner != owner or run.digest != digest:
            return None
        return Refusal(
            409,
            "turn_exists",
            "this input has its turn already: attach to it",
            path="$.turnId",
            turnId=run.relay.turn_id,
        )

    async def stop(self, thread_id: str, turn_id: str, owner: str | None) -> None:
        """Cut a turn off, in whatever process it runs.

        Args:
            thread_id: its thread.
            turn_id: the turn.
            owner: who asks.

        Raises:
            Refusal: there is no such thread or turn, or the turn has ended.
        """
        standing = await self.existing(thread_id, owner)
        run = self._active.get(thread_id)
        if run is not None and run.relay is not None and run.turn_id == turn_id and not run.is_stored:
            run.stop("stopped")
            return
        if run is None and self._shared is not None and await self._shared.request_stop(thread_id, turn_id):
            return
        turns = standing.thread.result.turns if standing.thread is not None else ()
        if (run is not None and run.turn_id == turn_id) or any(turn.turn_id == turn_id for turn in turns):
            raise Refusal(409, "turn_ended", f"turn {turn_id!r} has ended")
        raise Refusal(404, "unknown_turn", f"the thread has no turn {turn_id!r}")

    def _admitted(self, run: Run) -> None:
        self._active[run.thread_id] = run

    def _begun(self, thread_id: str) -> Run | None:
        """The run of a thread whose turn has begun; one that may still be refused changes nothing."""
        run = self._active.get(thread_id)
        return run if run is not None and run.relay is not None else None

    def _over(self, run: Run) -> None:
        self._open.pop(run, None)
        if self._active.get(run.thread_id) is not run:
            return
        del self._active[run.thread_id]
        if run.relay is None:
            return
        before = self._ended.pop(run.thread_id, None)
        if before is not None:
            self._ended_bytes -= before.relay.size
        self._ended[run.thread_id] = _Ended(run.relay, run.owner, run.digest)
        self._ended_bytes += run.relay.size
        while self._ended_bytes > self._replay_bytes or len(self._ended) > _MAX_ENDED:
            self._ended_bytes -= self._ended.pop(next(iter(self._ended))).relay.size

    async def _heed_stops(self, store: SharedThreadStore) -> None:
        """Stop what other processes were asked to stop, while anything runs."""
        while self._open:
            await asyncio.sleep(self._poll)
            try:
                for thread_id, turn_id in await store.stop_requests():
                    run = self._active.get(thread_id)
                    if run is not None and run.turn_id == turn_id:
                        run.stop("stopped")
            except Exception as error:
                _LOG.warning("the store cannot say what is to be stopped: %s", type(error).__name__)

    # Readers

    @contextmanager
    def slot(self) -> Generator[None]:
        """Hold a place for one more stream while it is being opened.

        Raises:
            Refusal: there are too many.
        """
        if self._readers + self._opening >= self._max_readers:
            raise Refusal(429, "too_many_readers", "too many streams are open", headers={"Retry-After": "1"})
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    def read_run(self, run: Run, at: int = 0) -> Reader:
        """Read a run of this process.

        Args:
            run: the run.
            at: the ordinal of the first event wanted.
        """
        assert run.relay is not None
        run.readers += 1
        log = self._log(run.thread_id, run.turn_id, run.owner)
        return self._reader(run.relay, at, log, lambda: self._left_run(run))

    async def read(
        self, thread_id: str, owner: str | None, turn_id: str | None = None, after: int = -1
    ) -> Reader | None:
        """Read what is left of a turn.

        Args:
            thread_id: its thread.
            owner: who asks.
            turn_id: the turn; None: the one that runs.
            after: the ordinal of the last event that the reader has.

        Returns:
            None: there is nothing left, and nothing will come.

        Raises:
            Refusal: there is no such thread, or what is wanted is not kept: the reader must resync.
        """
        standing = await self.existing(thread_id, owner)
        wanted = standing.turn_id if turn_id is None else turn_id
        if wanted is None:
            return None
        latest = await self._latest(thread_id)
        if latest is None or latest.turn_id != wanted:
            # Perhaps it is kept here, but a later turn has begun, perhaps elsewhere.
            raise _resync(after)
        run = self._begun(thread_id)
        kept = run or self._ended.get(thread_id)
        # A thread may have been deleted, and begun anew by somebody else elsewhere, with a turn of the same id.
        if kept is not None and kept.owner == owner and kept.relay is not None and kept.relay.turn_id == wanted:
            relay = kept.relay
            if after >= relay.next:
                raise _resync(after)
            if relay.ended and after + 1 == relay.next:
                return None
            if after + 1 < relay.base and self._shared is None:
                raise _resync(after)
            if run is not None:
                return self.read_run(run, after + 1)
            return self._reader(relay, after + 1, self._log(thread_id, wanted, owner), None)
        if self._shared is None:
            raise _resync(after)
        log = TurnLog(self._shared, thread_id, wanted, self._tokens_for(thread_id, owner))
        return await self._read_log(log, (thread_id, wanted), after)

    async def _read_log(self, log: TurnLog, key: tuple[str, str], after: int) -> Reader | None:
        latest = await log.latest()
        if latest is None or after > latest.last_seq:
            raise _resync(after)
        if latest.ended:
            if after == latest.last_seq:
                return None
            relay = Relay(latest.turn_id, max_bytes=self._replay_bytes, first=latest.last_seq + 1)
            relay.end()
            return self._reader(relay, after + 1, log, None)
        tail = self._tails.get(key)
        if tail is None or tail.relay.ended:
            relay = Relay(latest.turn_id, max_bytes=self._replay_bytes, first=latest.last_seq + 1)
            tail = self._tails[key] = Tail(log, relay, self._poll)
            tail.start()
        tail.readers += 1
        return self._reader(tail.relay, after + 1, log, lambda: self._left_tail(key, tail))

    def _log(self, thread_id: str, turn_id: str, owner: str | None) -> TurnLog | None:
        if self._shared is None:
            return None
        return TurnLog(self._shared, thread_id, turn_id, self._tokens_for(thread_id, owner))

    def _tokens_for(self, thread_id: str, owner: str | None) -> Tokens | None:
        """What gives the tokens of asks that are read from a log, which has none."""
        ledger = self._approvals
        if ledger is None:
            return None

        async def tokens() -> dict[str, str]:
            return tokens_of((await ledger.progress(thread_id, owner=owner)).waiting)

        return tokens

    async def open_asks(self, thread: Thread) -> list[AgPausedAsk]:
        """The asks of a thread that can be answered now, with their tokens.

        Args:
            thread: the thread.
        """
        asks = thread.pending.open_asks
        if self._approvals is None or not asks:
            return asks
        waiting = (await self._approvals.progress(thread.thread_id, owner=thread.owner)).waiting
        ids = {ask.ask_id for ask in asks}
        return [ask for ask in waiting if ask.ask_id in ids]

    def _reader(self, relay: Relay, at: int, log: TurnLog | None, on_close: Callable[[], None] | None) -> Reader:
        self._readers += 1

        def close() -> None:
            self._readers -= 1
            if on_close is not None:
                on_close()

        return Reader(relay, at, log, close)

    def _left_run(self, run: Run) -> None:
        run.readers -= 1
        if self._cancels and run.readers == 0 and not run.is_stored:
            run.stop("client-closed")

    def _left_tail(self, key: tuple[str, str], tail: Tail) -> None:
        tail.readers -= 1
        if tail.readers == 0:
            tail.stop()
            if self._tails.get(key) is tail:
                del self._tails[key]

    # The end

    async def aclose(self, timeout: float) -> None:
        """Stop every run and let its end be stored; readers get it and come to their end.

        Args:
            timeout: how many seconds that may take.
        """
        self.closing = True
        for run in list(self._open):
            run.stop("shutdown")
        if self._open:
            _, late = await asyncio.wait(self._open.values(), timeout=timeout)
            if late:
                _LOG.warning("%d runs did not end within %s s", len(late), timeout)
        for tail in self._tails.values():
            tail.stop()
        self._tails.clear()
        if self._stops is not None:
            self._stops.cancel()


def _shutting_down() -> Refusal:
    return Refusal(503, "shutting_down", "the server is shutting down", headers={"Retry-After": "5"})


def _resync(after: int) -> Refusal:
    return Refusal(
        410,
        "resync_required",
        f"event {after + 1} of this turn is not served: begin again with the snapshot of the thread",
    )
