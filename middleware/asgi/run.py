"""One run: the task that drains an agent, and what the readers, the store and the log learn of it (spec §8.0)."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Literal, TypeAlias

from agjson.agents import Agent, OnPaused, Thread, ThreadStore, UnknownThreadError, recover
from agjson.approvals import Ledger
from agjson.failures import Failure, trace_of
from agjson.middleware.asgi.earlier import Earlier
from agjson.middleware.asgi.errors import TurnExistsError, new_error_id
from agjson.middleware.asgi.publishing import PublishingLease, PublishingStore
from agjson.middleware.asgi.redaction import Redactor, secrets_of
from agjson.middleware.asgi.relay import Framer, Relay
from agjson.types import AgInput, AgStreamEvent, StartInput
from agjson.wire import to_dict

__all__ = ["Run", "StopReason"]

StopReason: TypeAlias = Literal["stopped", "client-closed", "shutdown"]
"""Why a server cuts a run off: somebody asked for it, its last reader has gone, the server ends."""

_LOG = logging.getLogger("agjson")

# A code is a name that programs know, of a provider or a class; anything else stays on the server.
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
# An agent that never waits must not keep the readers waiting.
_LONGEST_TURN_OF_THE_LOOP = 0.005


class Run:
    """One turn of an agent, in a task of its own: it goes on whoever reads it.

    Args:
        ag_input: the input.
        owner: who sent it; None: nobody in particular.
        digest: tells the bytes of the request from others.
        replay_bytes: how much of its stream is kept.
        folds: what is kept no more is folded, as no log has it.
        debug: exceptions are told as they are.
        on_admitted: called when the run has the sole right to its thread.
        on_ended: called when the run is over and its relay is complete.

    Attributes:
        ag_input: as given.
        owner: as given.
        digest: as given.
        begun: done when the turn has begun; fails with what the input was refused for.
        relay: the stream; None until the turn has begun.
        earlier: the fold of what the relay does not have any more; None: it is not folded.
        is_stored: the thread is saved: what is left is to tell the readers.
        readers: how many read it here.
    """

    def __init__(
        self,
        ag_input: AgInput,
        *,
        owner: str | None,
        digest: bytes,
        replay_bytes: int,
        folds: bool,
        debug: bool,
        on_admitted: Callable[[Run], None],
        on_ended: Callable[[Run], None],
    ) -> None:
        self.ag_input = ag_input
        self.owner = owner
        self.digest = digest
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Perhaps nobody is there any more to hear of it.
        self.begun.add_done_callback(lambda begun: begun.cancelled() or begun.exception())
        self.relay: Relay | None = None
        self.earlier: Earlier | None = None
        self.is_stored = False
        self.readers = 0
        self._replay_bytes = replay_bytes
        self._folds = folds
        self._debug = debug
        self._on_admitted = on_admitted
        self._on_ended = on_ended
        self._thread: Thread | None = None
        self._lease: PublishingLease | None = None
        self._task: asyncio.Task[None] | None = None
        # Why it was cut off.
        self._stopped = ""

    @property
    def thread_id(self) -> str:
        """Its thread."""
        return self.ag_input.thread_id

    @property
    def turn_id(self) -> str:
        """Its turn: that of the input until it has begun, and then the one that the driver has chosen."""
        return self.ag_input.turn_id if self.relay is None else self.relay.turn_id

    def start(
        self,
        agent: Agent,
        store: ThreadStore,
        on_paused: OnPaused | None,
        window: float,
        approvals: Ledger | None = None,
    ) -> asyncio.Task[None]:
        """Begin; returns the task.

        Args:
            agent: the agent.
            store: where threads are kept.
            on_paused: what a start may do to a paused thread; None: as the agent says.
            window: over how many seconds deltas are joined.
            approvals: the ledger; None: that of the agent.
        """
        events = agent.run_within(
            self.ag_input,
            store=PublishingStore(store, self, window),
            approvals=approvals,
            owner=self.owner,
            on_paused=on_paused,
            on_failure=self.tell_failure,
            why_cancelled=lambda: self._stopped or "cancelled",
        )
        self._task = asyncio.create_task(self._drain(events))
        return self._task

    def stop(self, reason: StopReason) -> None:
        """Cut the run off: it ends by `turn.abort`, which is stored and reaches every reader.

        Args:
            reason: why, for `turn.abort`.
        """
        # Once: what is saved on the way out is not to be disturbed.
        if self._task is not None and not self._stopped:
            self._stopped = reason
            self._task.cancel()

    # What the lease tells

    def admit(self, thread: Thread | None, lease: PublishingLease) -> None:
        """Refuse a thread of somebody else, and a start that was there already.

        Raises:
            UnknownThreadError: the thread is not the sender's.
            TurnExistsError: the thread has a turn of this id.
        """
        if thread is not None:
            if thread.owner != self.owner:
                raise UnknownThreadError(f"there is no thread {self.thread_id!r}", "$.threadId")
            turn_id = self.ag_input.turn_id
            if isinstance(self.ag_input, StartInput) and any(turn.turn_id == turn_id for turn in thread.result.turns):
                raise TurnExistsError(turn_id)
        self._thread = thread
        self._lease = lease
        self._on_admitted(self)

    def begin(self, turn_id: str, thread: Thread) -> None:
        """The turn begins."""
        self._thread = thread
        self.earlier = Earlier(thread.result) if self._folds else None
        on_drop = None if self.earlier is None else self.earlier.take
        self.relay = Relay(turn_id, max_bytes=self._replay_bytes, on_drop=on_drop)
        if not self.begun.done():
            self.begun.set_result(None)

    def publish(self, frames: Sequence[bytes]) -> None:
        """Events for the readers."""
        if self.relay is not None:
            self.relay.publish(frames)

    def stored(self) -> None:
        """The thread is saved."""
        self.is_stored = True

    # Failures

    def tell_failure(self, error: BaseException, told: Failure) -> Failure:
        """What the stream says of an exception: its code, and under which name the log has the rest.

        The log has it without secrets (spec §13.2).

        Args:
            error: the exception.
            told: what it says about itself.
        """
        error_id = new_error_id()
        redactor = self._redactor()
        said = trace_of(error) if redactor is None else redactor.failure(error)
        _LOG.error("error %s: turn %r of thread %r\n%s", error_id, self.turn_id, self.thread_id, said)
        if self._debug:
            return told._replace(message=f"{told.message} (error {error_id})")
        is_code = redactor is not None and _CODE.fullmatch(told.code) and redactor.text(told.code) == told.code
        code = told.code if is_code else type(error).__name__
        return Failure(f"the agent failed (error {error_id})", code, told.retriable)

    def _redactor(self) -> Redactor | None:
        """What knows the secrets of the run; None where they cannot be collected, so that no word may be logged."""
        try:
            events = [] if self.relay is None else [json.loads(event) for event in self.relay.events()]
            if self._lease is not None:
                events += [to_dict(event) for event in self._lease.waiting()]
            return Redactor(secrets_of(self.ag_input, self._thread, events))
        except Exception:  # a failure must be told whatever the data of the run are
            _LOG.warning("the secrets of turn %r cannot be collected", self.turn_id)
            return None

    # The task

    async def _drain(self, stream: AsyncGenerator[AgStreamEvent, None]) -> None:
        try:
            async with aclosing(stream) as events:
                waited = monotonic()
                lease = None
                async for event in events:
                    lease = lease or self._lease
                    if lease is not None and event.seq >= lease.taken:
                        lease.publish_untaken(event)
                    if monotonic() - waited > _LONGEST_TURN_OF_THE_LOOP:
                        await asyncio.sleep(0)
                        waited = monotonic()
        except asyncio.CancelledError:
            if not self.begun.done():
                self.begun.cancel()
        except (Exception, SystemExit, GeneratorExit) as error:
            # SystemExit out of a task would end the event loop, and with it every other run.
            if self.begun.done():
                _LOG.error(
                    "turn %r of thread %r broke off\n%s", self.turn_id, self.thread_id, Redactor().failure(error)
                )
            else:
                self.begun.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
        finally:
            if not self.begun.done():
                self.begun.cancel()
            if self._lease is not None:
                self._lease.publish_rest()
            self._close()

    def _close(self) -> None:
        relay = self.relay
        if relay is not None:
            if relay.next == 0 and self._thread is not None:
                # It was cut off between its beginning and its first event: the store has recovered it in this way.
                told = recover(self._thread, relay.turn_id, ()).events
                relay.publish(Framer(relay.turn_id).frames(told))
            relay.end()
        self._on_ended(self)
