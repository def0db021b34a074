"""What LangChain has no words for, as code inside a graph may say it: verdicts, denied calls, what ran (spec §2.1, §4).

A verdict is written for the stream mode `custom`. What is said of a call stands in the ``response_metadata`` of its
``ToolMessage``, which no chat model sends: so it is in the stored conversation as in the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agjson.adapters.langgraph._carry import RESULT
from agjson.errors import AgJSONError
from agjson.jsonable import jsonable
from agjson.types import AgGuardrail, GuardrailResult
from agjson.wire import from_dict, to_dict

__all__ = ["RAN_WITH", "denied", "ran_with", "read_verdict", "write_verdict"]

RAN_WITH: Final = "langgraph/ranWith"
"""Key of a result's ``toolMetadata``: the tool and the arguments that ran, where the model has called others."""

# The member by which a verdict is told from what a graph writes for others; it holds the version of the form.
_FACT, _VERSION = "__agjson__", 1


def write_verdict(verdict: AgGuardrail) -> dict[str, Any]:
    """A verdict as it is given to a stream writer.

    Args:
        verdict: the verdict.
    """
    return {_FACT: _VERSION, "type": GuardrailResult.type, **to_dict(verdict)}


def read_verdict(data: object, turn_id: str) -> GuardrailResult | None:
    """Read what a graph has written.

    Args:
        data: anything.
        turn_id: the turn of the graph that wrote it.

    Returns:
        The verdict; None: it is none, or it is malformed.
    """
    if not isinstance(data, dict) or type(version := data.get(_FACT)) is not int or version != _VERSION:
        return None
    members = {str(name): jsonable(value) for name, value in data.items() if name != _FACT}
    try:
        event = from_dict({**members, "seq": 0, "turnId": turn_id}, as_="event")
    except AgJSONError:
        return None
    return event if isinstance(event, GuardrailResult) else None


def denied() -> dict[str, Any]:
    """The ``response_metadata`` of the result of a call that was not allowed: its outcome is ``denied``."""
    return {RESULT: {"outcome": "denied"}}


def ran_with(response_metadata: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The ``response_metadata`` of a result that names what has run for its call.

    Args:
        response_metadata: that of the result so far.
        name: the tool that ran.
        arguments: what it ran with.
    """
    kept = response_metadata.get(RESULT) or {}
    tool_metadata = {**(kept.get("toolMetadata") or {}), RAN_WITH: {"name": name, "arguments": dict(arguments)}}
    return {**response_metadata, RESULT: {**kept, "toolMetadata": tool_metadata}}
