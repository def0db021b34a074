"""What the rules on approvals make an agent of: a model that answers from a script, and tools that count."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from agjson.agents import Agent
from agjson.testing.contract._values import as_json

if TYPE_CHECKING:
    from agjson.agents import OnPaused, ThreadStore
    from agjson.approvals import Ledger

__all__ = [
    "GATED_TOOL",
    "SAFE_TOOL",
    "GatedCall",
    "GatedReply",
    "GatedScene",
    "Gating",
    "MakeGatedAgent",
]

GATED_TOOL = "contract_send"
"""The tool that needs a person. Like the other one it takes an object with one member, the text ``to``."""

SAFE_TOOL = "contract_look"
"""The tool that needs nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedCall:
    """A call that the model makes.

    Attributes:
        call_id: its native id, which no other call of the scene has.
        name: the tool.
        arguments: the arguments.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedReply:
    """One reply of the model.

    Attributes:
        words: its text; with calls it may be left out.
        calls: the calls, in order; none: the model is done.
    """

    words: str
    calls: tuple[GatedCall, ...] = ()


class GatedScene:
    """What a maker of a gated agent is given. It outlives the agent: another one may be made of it, after a restart.

    Args:
        replies: for each reply with calls the tool and the ``to`` of each call; then the model only speaks.
        settings: the settings of the agent.

    Attributes:
        settings: keywords for the agent: ``store``, ``approvals`` and ``on_paused``.
        tools: the names of the tools that the agent has to run.
        gated: those of them that need a person.
        kept: where a framework with a memory of its own puts it (a checkpointer, a session store), so that the next
            agent of this scene finds it.
        requests: what the model was asked, in order, as plain data.
        ran: the side effects: how often each tool has run with each ``to``, counted by the tool.
        before: called by a tool before its effect, with its name; it may raise.
        after: called by a tool after its effect, with its name; it may raise.
    """

    tools: tuple[str, ...] = (GATED_TOOL, SAFE_TOOL)
    gated: tuple[str, ...] = (GATED_TOOL,)

    def __init__(self, replies: Iterable[Sequence[tuple[str, str]]], settings: Mapping[str, Any]) -> None:
        self.settings: dict[str, Any] = dict(settings)
        self.kept: dict[str, Any] = {}
        self.requests: list[Any] = []
        self.ran: Counter[tuple[str, str]] = Counter()
        self.before: Callable[[str], object] | None = None
        self.after: Callable[[str], object] | None = None
        self._lock = threading.Lock()
        self._replies = [list(reply) for reply in replies]
        self._count = 0

    @property
    def store(self) -> ThreadStore:
        """Where threads are kept."""
        store: ThreadStore = self.settings["store"]
        return store

    @property
    def approvals(self) -> Ledger:
        """The ledger."""
        ledger: Ledger = self.settings["approvals"]
        return ledger

    @property
    def on_paused(self) -> OnPaused:
        """What a start may do to a paused thread."""
        given: OnPaused = self.settings["on_paused"]
        return given

    def add_reply(self, *calls: tuple[str, str]) -> None:
        """Let the next reply of the model be one with these calls, after those that are still to come.

        Args:
            calls: the tool and the ``to`` of each.
        """
        self._replies.append(list(calls))

    def reply(self, request: Any) -> GatedReply:
        """What the model says next.

        Args:
            request: what the framework sends to the model: the whole conversation, in its native form.
        """
        with self._lock:
            self.requests.append(json.loads(as_json(request)))
            if not self._replies:
                return GatedReply(words="The contract is kept.")
            calls: list[GatedCall] = []
            for name, to in self._replies.pop(0):
                self._count += 1
                calls.append(GatedCall(call_id=f"contract_call_{self._count}", name=name, arguments={"to": to}))
            return GatedReply(words="Let me do that.", calls=tuple(calls))

    def run_tool(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The tool itself: its side effect is that it counts. To be called once for each time that it runs.

        Args:
            name: the tool.
            arguments: what it is run with.

        Returns:
            Its result for the model.
        """
        if self.before is not None:
            self.before(name)
        to = arguments["to"]
        with self._lock:
            self.ran[name, to] += 1
        if self.after is not None:
            self.after(name)
        return f"{name} has run for {to}"


MakeGatedAgent: TypeAlias = Callable[[GatedScene], Agent]
"""Makes the adapter's agent on a framework whose model is ``scene.reply`` and whose tools are ``scene.run_tool``."""


def _no_faults(request: Any) -> Iterable[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Gating:
    """How an adapter lets people approve tools.

    Attributes:
        agents: makers of the agent, by name: one for each kind of client, such as blocking and asynchronous.
        request_faults: what the provider would refuse in a request, as ``scene.reply`` gets it; nothing: it is valid.
        edits: a person may change the arguments, where the policy of the ledger allows it.
        batches: the model may make several calls in one reply, and safe ones beside gated ones.
        deaths: what a tool raises that is no `Exception` passes through the framework, so that a tool can stand for the
            death of its process. False where the framework tells it as a failure; then a test of the adapter's own has
            to kill one.
    """

    agents: Mapping[str, MakeGatedAgent]
    request_faults: Callable[[Any], Iterable[str]] = field(default=_no_faults)
    edits: bool = True
    batches: bool = True
    deaths: bool = True

    def __post_init__(self) -> None:
        if not self.agents:
            raise ValueError("a gating has at least one agent: without any, every rule would hold")
