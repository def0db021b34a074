"""One run of an agent without its input and output: what is to be emitted, folded, kept (spec §5.0, §8.0)."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agjson.agents.intake import take_in
from agjson.agents.invocation import Invocation, NormalizerSettings
from agjson.agents.limits import ClientLimits
from agjson.agents.notes import NOTED, Notes
from agjson.agents.parts import AgentParts
from agjson.agents.recovery import recover
from agjson.agents.thread import Pending, Thread, calls_of
from agjson.errors import AgJSONError
from agjson.failures import Failure, trace_of
from agjson.fold import Reducer
from agjson.jsonable import jsonable
from agjson.normalizer import HOST_SENTINELS, HostAbort, HostEnd, HostError
from agjson.types import (
    UNSET,
    AgentCapabilities,
    AgInput,
    AgMessage,
    AgRunConfig,
    AgStreamEvent,
    AgToolResult,
    AgTrigger,
    StartInput,
    ToolCallBlock,
    TurnDone,
    TurnError,
)
from agjson.wire import to_dict

if TYPE_CHECKING:
    from agjson.agents.asking import Asking, Case
    from agjson.agents.store import ThreadLease
    from agjson.approvals.claiming import Decision
    from agjson.approvals.records import CallRequest

__all__ = ["FoldError", "Run"]

_LOG = logging.getLogger("agjson")


class FoldError(AgJSONError):
    """The stream that an adapter made does not fold: a fault of the adapter."""


class Run:
    """One run: the events in order, and the thread that comes of them.

    `opening` comes first, then `push` for each native event, then one of `end`, `fail` and `abort`. Events from the
    turn's terminal on, and those of its end, stay in `held`: they may be delivered when the thread is saved.

    Args:
        agent: the agent, which makes the normalizer and prepares the call.
        ag_input: the input.
        thread: its thread; None: there is none yet.
        trigger: what set the turn off; None: told by the kind of the input.
        asking: its dealings with the ledger; None: there is none.
        case: what the ledger says of the input.

    Attributes:
        invocation: what the adapter gets; None: the framework is not called.
        thread_id: its thread.
        request_state: the continuation that the thread had; used up by this run, if it calls the framework.
        taken: what was kept under it: nothing, or one value.
        held: the terminal, what was said on the way to it, and what follows it.

    Raises:
        InputError: the thread cannot take the input.
        AgJSONError: the adapter cannot.
    """

    def __init__(
        self,
        agent: AgentParts,
        ag_input: AgInput,
        thread: Thread | None,
        trigger: AgTrigger | None,
        *,
        asking: Asking | None = None,
        case: Case | None = None,
    ) -> None:
        self._agent = agent
        self._given = ag_input
        self._asking = asking
        self._case = case
        if case is not None:
            ag_input, thread = case.input, case.thread
        self._thread = thread or Thread(thread_id=ag_input.thread_id, owner=agent.owner)
        self._intake = take_in(ag_input, thread, agent.on_paused, agent.surfaces)
        self._config = ag_input.run if isinstance(ag_input, StartInput) else self._thread.run
        self._capabilities = ag_input.capabilities or self._thread.capabilities
        self.turn_id = _free_turn(ag_input.turn_id, self._thread)
        self.thread_id = self._thread.thread_id
        self.request_state = self._intake.request_state
        self.taken: list[Any] = []
        invocation = self._invocation()
        if invocation.answers:
            agent.check(invocation)
        self._normalizer = agent.normalizer(invocation, self._settings(ag_input, trigger))
        if agent.on_failure is not None:
            self._normalizer.on_failure = agent.on_failure
        before = self._thread.result
        limits = ClientLimits(self._capabilities, state=before.state, memory=before.memory)
        self._limits = limits if limits.is_needed else None
        self._reducer = Reducer(before)
        # From the terminal on: it may still turn out otherwise.
        self._unfolded: list[AgStreamEvent] = []
        self._notes = Notes(self.turn_id)
        self._sentinel = False
        self._ending = False
        self._finished = False
        self.held: list[AgStreamEvent] = []
        self._opening = self._told()
        self.invocation: Invocation | None = None
        if self._intake.goes_on:
            invocation.messages = self._reducer.result().messages[len(before.messages) :]
            invocation.native = agent.prepare(invocation)
            self.invocation = invocation

    def _invocation(self) -> Invocation:
        pending = self._intake.pending
        return Invocation(
            input=self._intake.input,
            thread=self._thread,
            turn_id=self.turn_id,
            run=self._config,
            capabilities=self._capabilities,
            asks=pending.asks,
            answers=pending.answers,
            results=pending.results,
            request_state=self._agent.continuations.mint(),
            decided=self._decided,
            asking=self._asking,
            on_paused=self._agent.on_paused,
        )

    def _decided(self) -> tuple[tuple[Decision, ...], tuple[CallRequest, ...]]:
        if self._case is not None:
            return self._case.decisions, self._case.held
        from agjson.agents.deciding import decided

        return decided(self._thread, self._intake.pending, self._agent.is_client_tool)

    def _settings(self, ag_input: AgInput, trigger: AgTrigger | None) -> NormalizerSettings:
        thread = self._thread
        return {
            **thread.settings(),
            "turn_id": self.turn_id,
            "thread_id": thread.thread_id,
            "open_asks": frozenset(ask.ask_id for ask in self._intake.pending.open_asks),
            "parent_turn_id": ag_input.parent_turn_id,
            "trigger": trigger or AgTrigger(kind="user" if isinstance(ag_input, StartInput) else "resume"),
        }

    # Events

    def _told(self) -> list[AgStreamEvent]:
        """The events of what the input says; they are folded, so that the model gets what is stored."""
        out = self._normalizer.out
        intake = self._intake
        out.turn_start(self.turn_id)
        capabilities = self._agent.capabilities
        if capabilities is not None and not any(turn.capabilities for turn in self._thread.result.turns):
            out.emit(AgentCapabilities(seq=0, capabilities=capabilities))
        for ask in intake.given_up:
            out.error(f"ask {ask.ask_id} was given up: a new message came instead", code="ask_given_up")
        for result in () if self._case is None else self._case.unknown:
            self._land(result)
        unsaid = [said for message in intake.messages if (said := self._say(message))]
        for result in intake.results:
            self._land(result)
        events = self._fold(out.drain())
        if unsaid:
            messages = _with_unsaid(self._reducer.result().messages, dict(unsaid))
            out.messages_snapshot(messages)
            events += self._fold(out.drain())
        # A call that the input tells of is history: nobody waits for its result.
        self._notes.calls.clear()
        self._notes.outcomes.clear()
        return events

    def opening(self) -> list[AgStreamEvent]:
        """The events of the input itself; of a run that does not call the framework, all of them but the terminal."""
        out = self._normalizer.out
        for path in self._unsupported():
            out.error(
                f"{path} is not supported by this agent and was not used",
                code="unsupported",
                meta={"agjson/path": path},
            )
        repairs = getattr(self.invocation.native, "repairs", None) if self.invocation is not None else None
        if repairs:
            out.ext("ext.agjson.repairs", {"repairs": jsonable(list(repairs))}, turn_id=self.turn_id)
        if self.invocation is None:
            self._wait_on()
        events = self._opening + self._fold(out.drain())
        if self.invocation is None:
            self._finish()
        return events

    def push(self, native: object) -> list[AgStreamEvent]:
        """The events of a native event, as far as they may be delivered now.

        Args:
            native: the event, or a sentinel that the adapter has made itself.
        """
        if type(native) in HOST_SENTINELS:
            self._sentinel = True
        return self._fold(self._normalizer.push(native))

    def end(self) -> None:
        """The native stream has ended by itself."""
        self._ending = True
        if not self._sentinel:
            self.push(HostEnd())
        self._finish()

    def fail(self, error: BaseException, due: list[AgStreamEvent]) -> None:
        """The framework, or something on the way to it, has failed.

        Args:
            error: what was raised.
            due: events that were returned and could not be delivered; they come first.
        """
        if self._agent.on_failure is None:
            _LOG.info("turn %r of thread %r failed: %s", self.turn_id, self._thread.thread_id, trace_of(error))
        self.held[:0] = due
        self._ending = True
        if not self._finished:
            self.push(HostError(error))
            self._finish()

    def abort(self, reason: str, untold: Sequence[AgStreamEvent] = ()) -> None:
        """The run was stopped from outside.

        Args:
            reason: why, for `turn.abort`.
            untold: events that were returned and that the store was not given; they come first.
        """
        self.held[:0] = untold
        if not self._finished:
            self._ending = True
            self.push(HostAbort(reason))
            self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._ending = self._finished = True
            self._fold(self._normalizer.flush())

    def _fold(self, events: list[AgStreamEvent]) -> list[AgStreamEvent]:
        """Fold events and note what they mean for the thread; returns those that may be delivered now."""
        if self._limits is not None:
            events = self._limits.apply(events)
        if self._asking is not None:
            events = self._asking.put(events, self._notes.calls)
        push, notes, handlers = self._reducer.push, self._notes, NOTED
        for event in events:
            handle = handlers.get(event.__class__)
            if handle is not None:
                handle(notes, event)
            if notes.terminal is None:
                push(event)
            else:
                self._unfolded.append(event)
        if self._ending or (self.held and events):
            self.held += events
            return []
        if notes.terminal is None:
            return events
        at = next((index for index, event in enumerate(events) if event is notes.terminal), len(events))
        self.held += events[at:]
        return events[:at]

    # What the ledger learns

    async def begin(self, lease: ThreadLease) -> None:
        """Begin the turn: from now on nothing can refuse the input.

        Args:
            lease: the right to run the thread.

        Raises:
            InputError: the ledger does not take an answer any more.
        """
        if self._asking is None:
            await lease.begin(self.turn_id, self.lost_thread())
            return
        goes_on = self.invocation is not None
        await self._asking.begin(lease, self._given, self.turn_id, self.lost_thread(), goes_on=goes_on)
        lease.show(self._asking.tokens)

    @property
    def has_to_tell(self) -> bool:
        """Whether the ledger has to learn of what has happened, before anybody sees it."""
        return self._asking is not None and self.invocation is not None and self._asking.concerns(self._notes)

    async def tell(self, lease: ThreadLease) -> None:
        """Let the ledger keep new asks, and how approved calls have ended.

        Args:
            lease: learns the tokens of the asks.

        Raises:
            AgJSONError: an ask cannot be kept, so it can never be answered.
        """
        if self._asking is not None:
            await self._asking.keep(self._notes, self._calls)
            lease.show(self._asking.tokens)

    async def hold_calls(self, thread: Thread) -> None:
        """Let the ledger learn what waits for the decision on the asks of this turn.

        Args:
            thread: the thread after this run.
        """
        if self._asking is not None and self.invocation is not None and thread.pending.asks:
            await self._asking.hold(self._notes, thread.pending.calls, self._calls)

    async def close_claims(self) -> None:
        """Let the ledger know that the run is over."""
        if self._asking is not None:
            await self._asking.close(self._notes)

    def shown(self, events: list[AgStreamEvent]) -> list[AgStreamEvent]:
        """Events as the client gets them: asks have their tokens.

        Args:
            events: the events as they are stored.
        """
        return events if self._asking is None else self._asking.shown(events)

    def _calls(self) -> dict[str, ToolCallBlock]:
        return calls_of(self._reducer.result().messages)

    # What the input says

    def _say(self, message: AgMessage) -> tuple[str, dict[str, Any]] | None:
        """Emit a message of the input; returns what of it no event can carry, under its id."""
        out = self._normalizer.out
        id = out.message_start(
            message.id or None,
            role=message.role,
            turn_id=self.turn_id,
            extensions=message.extensions,
            candidate_index=message.candidate_index,
            agent_id=message.agent_id,
            agent_name=message.agent_name,
            agent_role=message.agent_role,
            model=message.model,
            notice_source=message.notice_source,
        )
        for block in message.content:
            out.content_block(
                block, turn_id=self.turn_id, message_id=id, candidate_index=message.candidate_index, as_emitted=True
            )
        if message.metadata:
            out.message_metadata(message.metadata, message_id=id, turn_id=self.turn_id)
        out.message_end(id, usage=message.usage, turn_id=self.turn_id)
        unsaid: dict[str, Any] = {}
        if message.message_metadata is not UNSET:
            unsaid["message_metadata"] = message.message_metadata
        if message.reference_turn_ids is not None:
            unsaid["reference_turn_ids"] = message.reference_turn_ids
        return (id, unsaid) if unsaid else None

    def _land(self, result: AgToolResult) -> None:
        meta = result.meta
        if result.annotations is not None:
            meta = {**(meta or {}), "agjson/annotations": to_dict(result.annotations)}
        self._normalizer.out.tool_done(
            result.tool_call_id,
            result.content,
            outcome=result.outcome,
            structured_content=result.structured_content,
            ui_data=result.ui_data,
            side_data=result.side_data,
            error_text=result.error_text,
            error_code=result.error_code,
            provider_metadata=result.provider_metadata,
            tool_metadata=result.tool_metadata,
            dynamic=result.dynamic,
            pending_input=result.pending_input,
            is_error=result.is_error,
            message_id=f"{result.tool_call_id}:result",
            turn_id=self.turn_id,
            as_emitted=True,
            meta=meta,
        )

    def _unsupported(self) -> list[str]:
        """The members of the input that have no effect, by their JSON paths."""
        paths = list(self._intake.unsupported)
        if self.invocation is not None:
            paths += map(str, getattr(self.invocation.native, "unsupported", None) or ())
        for index, result in enumerate(self._intake.results):
            if result.will_continue:
                paths.append(f"results[{index}].willContinue")
            if result.scheduling is not None:
                paths.append(f"results[{index}].scheduling")
        return list(dict.fromkeys(paths))

    def _wait_on(self) -> None:
        """End the turn without the framework: something is still missing, or the input had nothing for it."""
        out = self._normalizer.out
        open_asks = self._intake.pending.open_asks
        for ask in open_asks:
            fields: dict[str, Any] = {name: getattr(ask, name) for name in ask.__struct_fields__}
            out.hitl_ask(turn_id=self.turn_id, as_emitted=True, **fields)
        if open_asks:
            out.turn_paused(turn_id=self.turn_id)
        else:
            waits = bool(self._intake.pending.open_calls)
            out.turn_done(finish_reason="tool_call" if waits else "stop", turn_id=self.turn_id)

    # What is kept

    def thread(self) -> Thread:
        """The thread after this run.

        Raises:
            FoldError: the stream does not fold.
        """
        for event in self._unfolded:
            self._reducer.push(event)
        self._unfolded.clear()
        if self._reducer.needs_resync:
            raise FoldError(f"the stream of turn {self.turn_id} does not fold: {self._reducer.resync_reason}")
        before = self._thread
        return Thread(
            thread_id=before.thread_id,
            result=self._reducer.result(),
            ids=before.ids | self._notes.ids,
            nested=before.nested | self._notes.nested,
            pending=self._pending(),
            started_by=self._started_by(),
            run=_without_callback(self._config),
            capabilities=self._capabilities,
            revision=before.revision + 1,
            owner=before.owner,
        )

    def _started_by(self) -> str | None:
        return self.turn_id if isinstance(self._intake.input, StartInput) else self._thread.started_by

    def _pending(self) -> Pending:
        if self.invocation is None:
            return self._intake.pending
        terminal = self._notes.terminal
        if not isinstance(terminal, TurnDone):
            return Pending()
        asks = self._notes.asks
        if not asks and terminal.finish_reason != "tool_call":
            return Pending()
        gated = {ask.tool_call_id for ask in asks}
        answerable = self._agent.is_client_tool
        calls = tuple(id for id, name in self._notes.calls.items() if id not in gated and answerable(name))
        if not calls and not asks:
            return Pending()
        state = self.invocation.request_state if self.invocation.kept else None
        return Pending(calls=calls, asks=asks, request_state=state)

    def continuation(self) -> list[Any]:
        """What is to be kept for the next run under `Invocation.request_state`: nothing, or one value."""
        return [] if self.invocation is None or self._pending().request_state is None else self.invocation.kept

    def lost_thread(self) -> Thread:
        """What is left of the thread if the run began and is never saved: without the pause that it goes on from."""
        calls_framework = self.invocation is not None
        return dataclasses.replace(
            self._thread,
            pending=Pending() if calls_framework else self._thread.pending,
            started_by=self._started_by(),
            run=_without_callback(self._config),
            capabilities=self._capabilities,
        )

    def failed_thread(self) -> Thread:
        """The thread after a run whose stream does not fold: what the input brought, and that the turn failed."""
        told = list(self._opening)
        if self._notes.terminal is not None:
            told.append(replace(self._notes.terminal, seq=len(told)))
        return recover(self.lost_thread(), self.turn_id, told).thread

    def replace_terminal(self, error: Exception, code: str) -> None:
        """Put a `turn.error` in the place of the terminal that was held: what it says could not be kept.

        Args:
            error: what went wrong.
            code: the error's code.
        """
        held, terminal = self.held, self._notes.terminal
        at = next((index for index, event in enumerate(held) if event is terminal), len(held))
        seq = held[at].seq if at < len(held) else held[-1].seq + 1
        told = Failure(f"{type(error).__name__}: {error}", code, None)
        if self._agent.on_failure is not None:
            told = self._agent.on_failure(error, told)
        ended = TurnError(seq=seq, message=told.message, code=code, turn_id=self.turn_id)
        held[at:] = [ended]
        if self._unfolded:
            self._unfolded = [ended]
        self._notes.terminal = ended


def _without_callback(run: AgRunConfig | None) -> AgRunConfig | None:
    """The settings that later inputs go on with: where to call back is for one run alone, and holds secrets."""
    return run if run is None or run.push_notification is None else replace(run, push_notification=None)


def _free_turn(turn_id: str, thread: Thread) -> str:
    """A turn id that the thread has never had, also where a snapshot has taken the turn away since."""
    taken = thread.ids.turns | {turn.turn_id for turn in thread.result.turns}
    if turn_id not in taken:
        return turn_id
    count = 2
    while f"{turn_id}:{count}" in taken:
        count += 1
    return f"{turn_id}:{count}"


def _with_unsaid(messages: Sequence[AgMessage], unsaid: Mapping[str, Mapping[str, Any]]) -> list[AgMessage]:
    return [replace(message, **unsaid[message.id]) if message.id in unsaid else message for message in messages]
