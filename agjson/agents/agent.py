"""What every agent has in common: one input in, the events of one turn out (spec §3, §8.0)."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from agjson._arguments import check_kind, check_word
from agjson.agents.continuations import Continuations, MemoryContinuations
from agjson.agents.drive import drive, drive_sync
from agjson.agents.intake import OnPaused
from agjson.agents.invocation import Invocation, NormalizerSettings
from agjson.agents.parts import AgentParts
from agjson.agents.store import MemoryThreadStore, ThreadStore
from agjson.failures import OnFailure
from agjson.normalizer import Normalizer
from agjson.types import UNSET, AgCapabilities, AgInput, AgStreamEvent, AgStreamingCapabilities, AgTrigger, UnsetType

if TYPE_CHECKING:
    from agjson.approvals.ledger import Ledger

__all__ = ["Agent"]


class Agent(ABC):
    """An agent of any framework behind one method: an `AgInput` goes in, the events of one turn come out.

    A subclass implements `_normalizer` and `_invoke`, perhaps `_prepare`; it holds nothing that belongs to one run, so
    that one agent serves any number of threads and tasks at once. The driver does the rest, for every framework alike:

    * An input that its thread cannot take raises before the first event, and nothing is stored. Everything later is
      told in the stream: a turn ends exactly once, by `turn.done`, `turn.error` or `turn.abort`.
    * The thread is kept in `store` between runs, so that tool results and answers need no history. What is stored is
      what the events fold to: the messages and results of the input are part of the stream.
    * The terminal is delivered last and after the thread is saved, so that the next input may follow at once.
    * A cancelled run, and one whose reader stops (``break``, ``aclose``), closes the framework's stream, stores
      `turn.abort`, and passes the cancellation on.
    * The batch that a turn waits for goes to the framework whole. Until then each input is stored, and a turn of its
      own ends as the one before.
    * What the client says that it cannot take is kept from it; see `ClientLimits`.

    Class attributes:
        SURFACES: the framework takes surface interactions of every kind. Else those that speak in the user's name
            become messages of the user, and the others are named as unsupported.
        CAPABILITIES: what an agent says of itself unless it is told otherwise.

    Args:
        store: where threads are kept; absent: in memory, for this agent alone.
        continuations: where frameworks keep what they need to continue; absent: in memory.
        approvals: the ledger that keeps every ask from its emission to what came of it: asks get tokens, answers are
            checked against what was asked, and what is decided is acted on once (`agjson.approvals`). Its store should
            last as long as `store`. None: a thread keeps its open asks by itself.
        on_paused: what a start that answers nothing may do to a thread that waits for answers.
        capabilities: what the agent says of itself, once in each thread; None: nothing; absent: `CAPABILITIES`.
        close_timeout: how many seconds the close of a native stream may take before it is given up.

    Raises:
        TypeError: a store, continuations or a ledger that are none, or whose methods are not asynchronous.
        ValueError: another word for `on_paused`.
    """

    SURFACES: ClassVar[bool] = False
    CAPABILITIES: ClassVar[AgCapabilities] = AgCapabilities(streaming=AgStreamingCapabilities(partial_messages=True))

    def __init__(
        self,
        *,
        store: ThreadStore | None = None,
        continuations: Continuations | None = None,
        approvals: Ledger | None = None,
        on_paused: OnPaused = "refuse",
        capabilities: AgCapabilities | UnsetType | None = UNSET,
        close_timeout: float = 5.0,
    ) -> None:
        _check_store("store", store, ThreadStore, "load", "acquire")
        _check_store("continuations", continuations, Continuations, "put", "take")
        self.store = MemoryThreadStore() if store is None else store
        self.continuations = MemoryContinuations() if continuations is None else continuations
        self.approvals = _checked_ledger(approvals)
        check_word("on_paused", on_paused, OnPaused)
        self.on_paused: OnPaused = on_paused
        self.capabilities = self.CAPABILITIES if isinstance(capabilities, UnsetType) else capabilities
        self.close_timeout = close_timeout

    # What an adapter implements

    @abstractmethod
    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> Normalizer:
        """Make the normalizer of one run. It is also made for a run that does not call the framework.

        Args:
            invocation: the run; its ``native`` is None where the framework is not called.
            settings: the arguments of the normalizer; to be passed on whole.
        """

    @abstractmethod
    def _invoke(self, invocation: Invocation) -> AsyncIterable[Any] | Iterable[Any]:
        """Call the framework and yield its native events: by an asynchronous iterator or a plain one.

        No tool runs before the first event is asked for: only then is the right to run what was approved taken.

        It is read to its end, on one task or thread, and closed in any case (``aclose`` or ``close``). What it raises
        becomes `turn.error`. It need not yield a terminal: where it ends, the driver pushes a `HostEnd`, unless the
        last event was one of its own. A plain iterator may block; `run` then reads it in a thread, and calls its
        ``interrupt``, if it has one, to end a read that nobody waits for any more. A framework that hands out its
        events by calls is read through a `CallbackSource`.

        Args:
            invocation: what goes in.
        """

    def _check(self, invocation: Invocation) -> None:  # noqa: B027  # most frameworks take whatever was asked for
        """Refuse answers that the framework would not take, also where others of the batch are still missing.

        An answer that is stored stands: one that is found to be wrong only with the last of its batch would leave the
        thread waiting for ever. What it raises, `run` raises before the first event, and nothing is stored.

        Args:
            invocation: what would go in, with the answers so far; those of this input come last.
        """

    def _prepare(self, invocation: Invocation) -> Any:
        """Convert the input to the framework's own form, before anything happens: no waiting, no requests.

        What it raises, `run` raises before the first event. Each JSON path in ``unsupported`` of what it returns
        becomes an `error` event; what it has in ``repairs`` is told in an ``ext.agjson.repairs``.

        Args:
            invocation: what goes in.

        Returns:
            What becomes ``invocation.native``.
        """
        return None

    def _is_client_tool(self, name: str) -> bool:
        """Whether the client has to run a tool whose call the turn ended with; false for tools that the agent runs.

        Args:
            name: the tool's name.
        """
        return True

    # What a caller calls

    def run(
        self, ag_input: AgInput | Mapping[str, Any], *, trigger: AgTrigger | None = None
    ) -> AsyncGenerator[AgStreamEvent, None]:
        """Run one turn.

        Read it to its end, or close it: ``async with aclosing(agent.run(...)) as events``. A reader that only breaks
        off closes it when the interpreter gets to it, under asyncio at once.

        Args:
            ag_input: the input, also as plain data.
            trigger: what set the turn off; absent: ``user`` for a start, else ``resume``.

        Returns:
            The events of the turn. Reading the first one raises what is listed below.

        Raises:
            DecodeError: the plain data is no input.
            InputError: the thread cannot take the input; the subclass says why.
            AgJSONError: the framework cannot be given this input or history, such as `ReplayError`.
        """
        return drive(self._parts(), ag_input, trigger)

    def run_sync(
        self, ag_input: AgInput | Mapping[str, Any], *, trigger: AgTrigger | None = None
    ) -> Generator[AgStreamEvent, None, None]:
        """Run one turn on the calling thread.

        An event loop is made for it only where the framework or a store needs one.

        Args:
            ag_input: as for `run`.
            trigger: as for `run`.

        Returns:
            As for `run`. Close it to stop early; a ``for`` loop that breaks off does so at once.

        Raises:
            RuntimeError: an event loop is needed, and the calling thread is running one.
            DecodeError: as for `run`.
            InputError: as for `run`.
            AgJSONError: as for `run`.
        """
        return drive_sync(self._parts(), ag_input, trigger)

    def run_within(
        self,
        ag_input: AgInput | Mapping[str, Any],
        *,
        store: ThreadStore | None = None,
        approvals: Ledger | None = None,
        owner: str | None = None,
        on_paused: OnPaused | None = None,
        on_failure: OnFailure | None = None,
        why_cancelled: Callable[[], str] | None = None,
        trigger: AgTrigger | None = None,
    ) -> AsyncGenerator[AgStreamEvent, None]:
        """Run one turn as `run` does, in the surroundings of a server.

        Args:
            ag_input: as for `run`.
            store: where the thread is kept; None: where the agent keeps it.
            approvals: the ledger; None: that of the agent.
            owner: who runs it: the thread belongs to them if it begins with this run, its asks are put to them, and
                answers count only for asks that were. None: the one to whom the thread belongs.
            on_paused: what a start may do to a thread that waits for answers; None: as the agent says.
            on_failure: decides what the stream says of an exception, and sees to its log; None: what the exception
                says.
            why_cancelled: tells why the run was cancelled, for `turn.abort`; asked when it was. None: ``cancelled``.
            trigger: as for `run`.

        Returns:
            As for `run`, like what it raises.
        """
        parts = self._parts()
        parts = replace(
            parts,
            store=parts.store if store is None else store,
            approvals=_checked_ledger(parts.approvals if approvals is None else approvals),
            owner=owner,
            on_paused=parts.on_paused if on_paused is None else on_paused,
            on_failure=on_failure,
            why_cancelled=parts.why_cancelled if why_cancelled is None else why_cancelled,
        )
        return drive(parts, ag_input, trigger)

    def _parts(self) -> AgentParts:
        return AgentParts(
            store=self.store,
            continuations=self.continuations,
            approvals=self.approvals,
            on_paused=self.on_paused,
            capabilities=self.capabilities,
            surfaces=self.SURFACES,
            close_timeout=self.close_timeout,
            normalizer=self._normalizer,
            check=self._check,
            prepare=self._prepare,
            invoke=self._invoke,
            is_client_tool=self._is_client_tool,
        )


def _checked_ledger(approvals: Ledger | None) -> Ledger | None:
    if approvals is None:
        return None
    from agjson.approvals import Ledger

    check_kind("approvals", approvals, Ledger, hint="Ledger(MemoryLedgerStore(), Policy(keys=Keys(...)))")
    return approvals


def _check_store(name: str, value: object, expected: type, *methods: str) -> None:
    if value is None:
        return
    kind = f"{name} must be a {expected.__name__}"
    if isinstance(value, type):
        raise TypeError(f"{kind}, not the class {value.__name__}")
    for method in methods:
        found = getattr(value, method, None)
        if found is None:
            raise TypeError(f"{kind}, not {type(value).__name__}")
        # A decorator may hide that the method behind it is asynchronous.
        if not inspect.iscoroutinefunction(inspect.unwrap(found)):
            raise TypeError(f"{kind}: {type(value).__name__}.{method} must be an async method")
