"""What an ask carries of the native interrupt that it stands for: keys of its metadata, and what they say (spec §7).

`Asks` and the normalizer write them, the way back reads them. A client may send back only what was issued to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agjson.types import AgPausedAsk

__all__ = [
    "CHECKPOINT_ID",
    "CHECKPOINT_NS",
    "INTERRUPT_ID",
    "STATIC",
    "THREAD_ID",
    "VALUE",
    "actions_of",
    "interrupt_of",
    "is_static",
]

VALUE = "langgraph/value"
"""The ask's metadata key that holds what the graph gave to ``interrupt``."""

INTERRUPT_ID = "langgraph/interruptId"
"""The metadata key that holds the id of the native interrupt."""

THREAD_ID = "langgraph/threadId"
"""The metadata key that holds the graph's thread id."""

CHECKPOINT_ID = "langgraph/checkpointId"
"""The metadata key that holds the checkpoint which the graph paused at."""

CHECKPOINT_NS = "langgraph/checkpointNs"
"""The metadata key that holds the namespace of that checkpoint, ``""`` for the root graph."""

STATIC = "static:"
"""How the id of an ask begins that stands for a static breakpoint; the rest is the checkpoint."""

_NUMBERED = re.compile(r"#\d+$")


def interrupt_of(ask: AgPausedAsk) -> str:
    """The id of the native interrupt that an ask belongs to; several asks may share one.

    Args:
        ask: the ask.
    """
    named = (ask.metadata or {}).get(INTERRUPT_ID)
    return named if isinstance(named, str) and named else _NUMBERED.sub("", ask.ask_id)


def is_static(ask: AgPausedAsk) -> bool:
    """Whether an ask stands for a static breakpoint, at which the graph asks nothing and waits to go on.

    Args:
        ask: the ask.
    """
    return ask.ask_id.startswith(STATIC)


def actions_of(ask: AgPausedAsk) -> list[Mapping[str, Any]] | None:
    """The actions of a batched approval; None where the ask is none of it.

    Args:
        ask: the ask, with the native value in its metadata.
    """
    value = (ask.metadata or {}).get(VALUE)
    actions = value.get("action_requests") if isinstance(value, Mapping) else None
    if not isinstance(actions, list):
        return None
    return [action if isinstance(action, Mapping) else {} for action in actions]
