"""Which turn an event belongs to: a named agent inside the graph has a nested turn, a plain subgraph none (spec §5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agjson.adapters.langgraph._scope import Namespace, Scope
from agjson.emitter import Emitter
from agjson.types import AgFinishReason, AgUsage

__all__ = ["AGENT_NAME", "Turns", "task_id_of"]

AGENT_NAME = "lc_agent_name"
"""The metadata key under which ``create_agent(name=...)`` names the agent of a task and of a message."""


def task_id_of(ns: Namespace) -> str:
    """The id of the task in the graph around it that runs the graph of a namespace; empty for the root."""
    return _place_of(ns)[-1].rpartition(":")[2] if ns else ""


def _place_of(ns: Namespace) -> Namespace:
    """The namespace up to the task that runs its graph; further graphs of one task bear their number behind it."""
    return ns[:-1] if len(ns) > 1 and ":" not in ns[-1] else ns


class Turns:
    """The scopes of one invoke, and the nested turns that named agents have opened.

    Args:
        out: the emitter.
        nested: whether named agents get turns of their own; otherwise all is told in the turn of the invoke.
        spawned_by: finds the tool call that a task of a graph runs, given the namespace of the graph and the task.
        has_call: whether the thread knows a tool call.
        usage: finds the tokens of a turn.
        finish_reason: finds why the last message of a turn ended.
    """

    def __init__(
        self,
        out: Emitter,
        *,
        nested: bool = True,
        spawned_by: Callable[[Namespace, str], str | None] = lambda ns, task_id: None,
        has_call: Callable[[str], bool] = lambda call_id: False,
        usage: Callable[[str], AgUsage | None] = lambda turn_id: None,
        finish_reason: Callable[[str], AgFinishReason | None] = lambda turn_id: None,
    ) -> None:
        self._out = out
        self._nested = nested
        self._spawned_by = spawned_by
        self._has_call = has_call
        self._usage = usage
        self._finish_reason = finish_reason
        self.root = Scope((), out.turn_id)
        self._scopes: dict[Namespace, Scope] = {(): self.root}
        # Namespaces of the agents whose turns are open, the innermost last.
        self._open: dict[Namespace, str] = {}

    def scope(self, ns: Namespace, metadata: dict[str, Any] | None = None) -> Scope:
        """The scope of a namespace.

        Args:
            ns: the namespace.
            metadata: what LangGraph says of the task or message; the first that comes from a graph tells whether its
                agent is another than the parent's, and so opens the nested turn. Without it nothing is decided yet.
        """
        known = self._scopes.get(ns)
        name = None if metadata is None else metadata.get(AGENT_NAME)
        name = name if isinstance(name, str) and name else None
        if known is not None:
            if known.agent_name is None and not ns:
                known.agent_name = name
            return known
        parent = self.scope(_place_of(ns)[:-1])
        if metadata is None:
            return Scope(ns, parent.turn_id, parent.agent_name)
        if name is None or name == parent.agent_name or not self._nested:
            scope = Scope(ns, parent.turn_id, name or parent.agent_name)
        else:
            scope = self._enter(ns, parent, name)
        self._scopes[ns] = scope
        return scope

    def _enter(self, ns: Namespace, parent: Scope, name: str) -> Scope:
        meta: dict[str, Any] = {"langgraph/ns": list(ns)}
        call_id = self._spawned_by(parent.ns, task_id_of(ns))
        if call_id is not None and self._has_call(call_id):
            meta["langgraph/toolCallId"] = self._out.call_id(call_id)
        wanted = f"{self.root.turn_id}/{'/'.join(ns)}"
        turn_id = self._out.subagent_start(wanted, parent_turn_id=parent.turn_id, agent_name=name, meta=meta)
        self._open[ns] = turn_id
        return Scope(ns, turn_id, name)

    def owns(self, ns: Namespace) -> bool:
        """Tell whether a graph is that of a turn: the root, or a named agent."""
        return not ns or ns in self._open

    def end_task(self, ns: Namespace, name: str, task_id: str, *, error: str | None, waits: bool) -> None:
        """A task of a graph ended, and with it the agents that ran inside it.

        Args:
            ns: the namespace of the graph.
            name: the task's node.
            task_id: the task.
            error: what it failed with, in words.
            waits: it is interrupted: the agents inside pause when the turn of the invoke does.
        """
        inside = (*ns, f"{name}:{task_id}")
        for each in reversed([each for each in self._open if each[: len(inside)] == inside]):
            if waits:
                continue
            if error is None:
                self._close(each)
            else:
                turn_id = self._open.pop(each)
                self._out.turn_error(error, usage=self._usage(turn_id), turn_id=turn_id)

    def close(self) -> None:
        """End the nested turns whose end nothing has told, the innermost first; one that waits for an answer pauses."""
        for ns in reversed(list(self._open)):
            self._close(ns)

    def _close(self, ns: Namespace) -> None:
        turn_id = self._open.pop(ns)
        reason = self._finish_reason(turn_id) or "stop"
        self._out.subagent_done(turn_id, finish_reason=reason, usage=self._usage(turn_id))
