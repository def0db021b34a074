"""What the driver needs of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agjson.agents.continuations import Continuations
from agjson.agents.intake import OnPaused
from agjson.agents.invocation import Invocation, NormalizerSettings
from agjson.agents.store import ThreadStore
from agjson.failures import OnFailure
from agjson.normalizer import Normalizer
from agjson.types import AgCapabilities

if TYPE_CHECKING:
    from agjson.approvals.ledger import Ledger

__all__ = ["AgentParts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """The settings of an `Agent`, and what its subclass implements.

    Attributes:
        store: as for `Agent`, like the four that follow.
        continuations: where frameworks keep what they need to continue.
        on_paused: what a start may do to a paused thread.
        capabilities: what the agent says of itself.
        surfaces: `Agent.SURFACES`.
        close_timeout: how many seconds the close of a native stream may take.
        normalizer: `Agent._normalizer`.
        check: `Agent._check`.
        prepare: `Agent._prepare`.
        invoke: `Agent._invoke`.
        is_client_tool: `Agent._is_client_tool`.
        on_failure: decides what the stream says of an exception; None: what the exception says.
        why_cancelled: tells why the run was cancelled, for `turn.abort`; asked when it was.
        approvals: keeps asks and what is decided about them; None: the thread alone does.
        owner: who a thread belongs to that begins with the run.
    """

    store: ThreadStore
    continuations: Continuations
    on_paused: OnPaused
    capabilities: AgCapabilities | None
    surfaces: bool
    close_timeout: float
    normalizer: Callable[[Invocation, NormalizerSettings], Normalizer]
    check: Callable[[Invocation], object]
    prepare: Callable[[Invocation], Any]
    invoke: Callable[[Invocation], AsyncIterable[Any] | Iterable[Any]]
    is_client_tool: Callable[[str], bool]
    on_failure: OnFailure | None = None
    why_cancelled: Callable[[], str] = lambda: "cancelled"
    approvals: Ledger | None = None
    owner: str | None = None

    @property
    def suspends(self) -> bool:
        """Whether a store, the continuations or the ledger wait for something."""
        ledger = self.approvals
        return self.store.suspends or self.continuations.suspends or (ledger is not None and ledger.store.suspends)
