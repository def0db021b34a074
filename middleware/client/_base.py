"""What both kinds of clients and both kinds of turns have in common: everything but input and output."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, get_args
from weakref import WeakSet

import httpx

from agjson.errors import DecodeError
from agjson.middleware.client._effects import Head, LinkError, Plan
from agjson.middleware.client._following import Following, Resync, Skipped, ThreadSnapshot, ThreadView
from agjson.middleware.client._plans import TurnPlan
from agjson.middleware.client._requests import Requests
from agjson.middleware.client._settings import Routes, Settings
from agjson.middleware.client.errors import ConnectionLostError, RequestError
from agjson.types import (
    UNSET,
    AgBlock,
    AgCapabilities,
    AgClientCapabilities,
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgMeta,
    AgOutcome,
    AgPausedAsk,
    AgReduceResult,
    AgRunConfig,
    AgSurfaceInteraction,
    AgToolResult,
    JsonValue,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolCallBlock,
    ToolResultInput,
    TurnAbort,
    TurnDone,
    TurnError,
    UnknownBlock,
    UnsetType,
)
from agjson.wire import encode
from agjson.wire.sse import parse_event_id

__all__ = ["OWN_LIMITS", "ClientBase", "TurnBase", "check_http", "head_of", "link_error", "timeouts"]

_TurnT = TypeVar("_TurnT", bound="TurnBase")

OWN_LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=4.0)
"""Each stream holds a connection, so their number is not limited. Idle ones are given up before common servers do, so
that no input is sent into a connection that is being closed."""

_BLOCKS: Final = (*get_args(AgBlock), UnknownBlock)
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def link_error(error: httpx.RequestError, settings: Settings) -> LinkError:
    """What a plan is told of a failure of the HTTP client; the failure stays its cause.

    Raises:
        RequestError: no other attempt can succeed, as the request itself is at fault.
    """
    if isinstance(error, httpx.LocalProtocolError) and str(error).startswith("Illegal header"):
        # Without its words, which quote the header, and that may be a credential.
        raise RequestError("a header of the request is none that HTTP allows", code="invalid_header") from None
    words = str(error) or type(error).__name__
    if isinstance(error, httpx.ReadTimeout):
        words = f"nothing came for {settings.idle_timeout} seconds"
    failure = LinkError(words, unsent=isinstance(error, _UNSENT))
    failure.__cause__ = error
    return failure


def timeouts(settings: Settings) -> httpx.Timeout:
    """The time limits of every request."""
    return httpx.Timeout(settings.idle_timeout, connect=settings.connect_timeout, pool=settings.connect_timeout)


def head_of(response: httpx.Response) -> Head:
    """The beginning of an answer, as plans read it."""
    # The names of `httpx.Headers` are in lower case, and repeated ones are joined.
    return Head(response.status_code, dict(response.headers), str(response.url))


class TurnBase:
    """A turn that a client follows: its events are iterated once, and these tell where it stands, at any time."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._closed = False

    def _check_end(self) -> None:
        """See to it that an end of the events is the end of the turn, or one that the caller has asked for."""
        if not self.over and not self._closed:
            raise ConnectionLostError("reading the turn was broken off before; attach takes it up", code="interrupted")

    def __repr__(self) -> str:
        state = "over" if self.over else "open"
        return f"<{type(self).__name__} {self.turn_id!r} of thread {self.thread_id!r}, {state}>"

    @property
    def thread_id(self) -> str:
        """The thread of the turn."""
        return self._following.view.thread_id

    @property
    def turn_id(self) -> str | None:
        """The turn's id: that of its `turn.start`, or until then the one that was asked for; None: not known yet."""
        return self._following.turn_id or self._following.requested

    @property
    def last_event_id(self) -> str | None:
        """The place of the last event that was delivered, for `attach`; None: the source names no places."""
        return self._following.last_event_id

    @property
    def seq(self) -> float:
        """The ordinal of the last event that was delivered; -1: none was."""
        return self._following.seq

    @property
    def result(self) -> AgReduceResult:
        """The fold of the thread up to the last event that was delivered (spec §5).

        Of the thread before the turn it holds what this client has followed or has read by `snapshot`.
        """
        return self._following.view.reducer.result()

    @property
    def needs_resync(self) -> bool:
        """Whether the fold is parked: events are missing or do not fit, and no snapshot could be had (INV-SEQ)."""
        return self._following.view.reducer.needs_resync

    @property
    def over(self) -> bool:
        """Whether the turn has ended, as far as the client knows."""
        return self._following.over

    @property
    def terminal(self) -> TurnDone | TurnError | TurnAbort | None:
        """The event that ended the turn; None: none was delivered, and `outcome` may come from a snapshot."""
        return self._following.terminal

    @property
    def outcome(self) -> AgOutcome | None:
        """How the turn ended, by its record in the fold; None: it goes on, or is not known."""
        return self._following.outcome

    @property
    def open_asks(self) -> list[AgPausedAsk]:
        """The asks that the turn has paused for; answered by `resume`."""
        return self._following.open_asks

    @property
    def open_calls(self) -> list[ToolCallBlock]:
        """The tool calls that the turn left to the client; answered by `tool_result`."""
        return self._following.open_calls

    @property
    def resyncs(self) -> tuple[Resync, ...]:
        """When the fold was mended by a snapshot: events before it were not delivered, or did not fit."""
        return tuple(self._following.resyncs)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The malformed events that were left out (``on_malformed="skip"``)."""
        return tuple(self._following.skipped)

    @property
    def reconnects(self) -> int:
        """How often the stream was opened by place: 0 where the first connection held, or 1 for an `attach`."""
        return self._following.reconnects


class ClientBase(ABC, Generic[_TurnT]):
    """What `AgentClient` and `SyncAgentClient` share: inputs, threads that are known, and the plans of every call."""

    def __init__(self, base_url: str, *, relative: bool, settings: Settings) -> None:
        if not relative and not base_url.lower().startswith(("http://", "https://")):
            raise ValueError(f"expected an http:// or https:// address, got {base_url!r}")
        self._settings = settings
        self._routes = Routes(base_url)
        self._turns: WeakSet[_TurnT] = WeakSet()
        # Of the threads followed, the one used longest ago comes first.
        self._views: OrderedDict[str, ThreadView] = OrderedDict()

    def run(self, ag_input: AgInput) -> _TurnT:
        """Send an input; the events of its turn are what is iterated (spec §3, §4).

        Nothing is sent before the first event is asked for. A connection that breaks is taken up again, and every event
        is delivered once and in order, up to the turn's terminal. Where the connection breaks before any event, the
        client looks whether the server has the turn, and sends the input again only when it has not. That it recognises
        by ``turnId``, so an input needs one that its thread has not had; `start`, `resume` and `tool_result` see to it.
        One that another input has had is an error (``turn_id_used``).

        Iterating raises `RequestError` for an input that is refused, `ConnectionLostError` where the stream cannot be
        had to its end, `StreamError` where it is none.

        Args:
            ag_input: the input.

        Raises:
            EncodeError: the input cannot be written as JSON.
        """
        view = self._view(ag_input.thread_id)
        following = Following(view=view, requested=ag_input.turn_id)
        said = ag_input.messages if isinstance(ag_input, StartInput) else None
        plan = TurnPlan(self._settings, self._routes, following, encode(ag_input), said)
        return self._turn(following, plan.run())

    def start(
        self,
        text: str | Sequence[AgBlock],
        *,
        thread_id: str | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        run: AgRunConfig | None = None,
        capabilities: AgClientCapabilities | None = None,
        state: JsonValue | UnsetType = UNSET,
        metadata: AgMeta | None = None,
    ) -> _TurnT:
        """Say something to the agent: `run` with a start of one user message.

        Args:
            text: what the user says, as text or as blocks.
            thread_id: the conversation; None: a new one.
            turn_id: the turn to open; None: a new id, which is what keeps the input from being run twice.
            message_id: the message's id; None: a new one.
            run: how to run the turn; what of it counts is the server's choice.
            capabilities: what the client can do.
            state: shared state, opaque.
            metadata: host metadata.

        Raises:
            TypeError: neither text nor blocks.
        """
        content: list[AgBlock] = [TextBlock(text=text)] if isinstance(text, str) else _blocks(text)
        message = AgMessage(id=message_id or _new("msg"), role="user", content=content)
        return self.run(
            StartInput(
                thread_id=thread_id or _new("thread"),
                turn_id=turn_id or _new("turn"),
                messages=[message],
                run=run,
                capabilities=capabilities,
                state=state,
                metadata=metadata,
            )
        )

    def resume(
        self,
        thread_id: str,
        answers: Sequence[AgHitlAnswer] | None = None,
        *,
        ui_actions: Sequence[AgSurfaceInteraction] | None = None,
        turn_id: str | None = None,
        capabilities: AgClientCapabilities | None = None,
        state: JsonValue | UnsetType = UNSET,
        metadata: AgMeta | None = None,
    ) -> _TurnT:
        """Answer what a turn has paused for: `run` with a resume (spec §3.1, §7).

        Args:
            thread_id: the conversation.
            answers: answers to asks, such as `open_asks` lists.
            ui_actions: messages from surfaces.
            turn_id: the turn to open; None: a new id.
            capabilities: what the client can do.
            state: shared state, opaque.
            metadata: host metadata.
        """
        return self.run(
            ResumeInput(
                thread_id=thread_id,
                turn_id=turn_id or _new("turn"),
                answers=None if answers is None else list(answers),
                ui_actions=None if ui_actions is None else list(ui_actions),
                capabilities=capabilities,
                state=state,
                metadata=metadata,
            )
        )

    def tool_result(
        self,
        thread_id: str,
        results: Sequence[AgToolResult],
        *,
        turn_id: str | None = None,
        capabilities: AgClientCapabilities | None = None,
        state: JsonValue | UnsetType = UNSET,
        metadata: AgMeta | None = None,
    ) -> _TurnT:
        """Bring results of tools that the client ran: `run` with tool results (spec §3).

        Args:
            thread_id: the conversation.
            results: the results, of calls such as `open_calls` lists.
            turn_id: the turn to open; None: a new id.
            capabilities: what the client can do.
            state: shared state, opaque.
            metadata: host metadata.
        """
        return self.run(
            ToolResultInput(
                thread_id=thread_id,
                turn_id=turn_id or _new("turn"),
                results=list(results),
                capabilities=capabilities,
                state=state,
                metadata=metadata,
            )
        )

    def attach(self, thread_id: str, last_event_id: str | None = None) -> _TurnT:
        """Follow a turn that was begun elsewhere, or before.

        Without a place, the snapshot of the thread comes first and then, if a turn runs, its events: from the first
        one, or from where the snapshot ends if that holds the turn's beginning. With a place, the events after it come;
        if the server does not serve them any more, the snapshot comes in their place (`TurnBase.resyncs`).

        Iterating raises what that of `run` does.

        Args:
            thread_id: the conversation.
            last_event_id: the place, as `TurnBase.last_event_id` has it.
        """
        following = Following(view=self._view(thread_id), last_event_id=last_event_id or None)
        if last_event_id:
            # A source may name places as it likes; its own events then tell the turn and the ordinal.
            with suppress(DecodeError):
                following.turn_id, following.seq = parse_event_id(last_event_id)
                view = following.view
                if view.turn_id != following.turn_id:
                    view.turn_id, view.seq = following.turn_id, following.seq
        return self._turn(following, TurnPlan(self._settings, self._routes, following).attach())

    def known(self, thread_id: str) -> AgReduceResult | None:
        """The fold of a thread as far as this client has followed it; None: it has not, or has forgotten.

        Args:
            thread_id: which thread.
        """
        view = self._views.get(thread_id)
        return None if view is None else view.reducer.result()

    def forget(self, thread_id: str) -> None:
        """Drop what is known of a thread; one that is not known is no error.

        Args:
            thread_id: which thread.
        """
        self._views.pop(thread_id, None)

    @abstractmethod
    def _new_turn(self, following: Following, plan: Plan[None]) -> _TurnT: ...

    def _turn(self, following: Following, plan: Plan[None]) -> _TurnT:
        turn = self._new_turn(following, plan)
        self._turns.add(turn)
        return turn

    def _view(self, thread_id: str) -> ThreadView:
        view = self._views.pop(thread_id, None) or ThreadView(thread_id)
        if self._settings.max_threads:
            self._views[thread_id] = view
            while len(self._views) > self._settings.max_threads:
                self._views.popitem(last=False)
        return view

    def _snapshot_plan(self, thread_id: str) -> Plan[ThreadSnapshot]:
        snapshot = yield from self._requests().snapshot(thread_id)
        if snapshot is None:
            raise RequestError("the server has no such thread", code="unknown_thread", status=404)
        self._view(thread_id).seed(snapshot)
        return snapshot

    def _stop_plan(self, thread_id: str, turn_id: str) -> Plan[bool]:
        return self._requests().stop(thread_id, turn_id)

    def _capabilities_plan(self) -> Plan[AgCapabilities]:
        return self._requests().capabilities()

    def _requests(self) -> Requests:
        return Requests(self._settings, self._routes)


def check_http(http: object, needed: type, other: type) -> None:
    """Refuse the HTTP client of the other kind of code; whatever else behaves like one is let through.

    Raises:
        TypeError: it is `other`.
    """
    if isinstance(http, other):
        raise TypeError(f"http is an httpx.{needed.__name__} here, not an httpx.{other.__name__}")


def _blocks(content: Any) -> list[AgBlock]:
    blocks: list[Any] = list(content) if hasattr(content, "__iter__") else [None]
    if not all(isinstance(block, _BLOCKS) for block in blocks):
        raise TypeError("text or blocks, not messages or plain data: use run()")
    return blocks


def _new(kind: str) -> str:
    # Never used before, so that a turn can be told by its id from every other one of the thread.
    return f"{kind}_{uuid.uuid4().hex}"
