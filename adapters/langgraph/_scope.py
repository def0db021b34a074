"""Where a native event of LangGraph comes from, in terms of AgJSON (spec §8.0 INV-OWNER)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Namespace", "Scope"]

Namespace = tuple[str, ...]
"""LangGraph's place of a graph inside its parents: ``("node:<task id>", ...)``; ``()`` is the root graph."""


@dataclass(slots=True)
class Scope:
    """Where a native event comes from.

    Attributes:
        ns: the namespace of the graph that told the event.
        turn_id: the turn that its events belong to, by the id it was opened under: the turn of the invoke, or the
            nested turn of a named agent.
        agent_name: the agent whose graph it is, as ``create_agent(name=...)`` says; None where nothing names one.
    """

    ns: Namespace
    turn_id: str
    agent_name: str | None = None
