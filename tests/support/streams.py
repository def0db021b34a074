"""Streams for tests of the checker, written as wire objects; the ordinals are counted."""

from __future__ import annotations

import json
from typing import Any

from agjson.checker import Violation, check
from agjson.wire import from_dict

Wire = dict[str, Any]
"""An event as a plain object; ``seq`` only where it is not the next ordinal."""


def ev(type: str, /, **fields: Any) -> Wire:
    """One event."""
    return {"type": type, **fields}


OPEN = (
    ev("turn.start", turnId="t1", threadId="th"),
    ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th"),
)
"""A turn ``t1`` of thread ``th`` with an open message ``m1``: lines 1 and 2."""

CLOSE = (
    ev("message.end", id="m1"),
    ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="stop"),
)
"""Their ends."""

CALL = (
    ev("tool.start", toolCallId="c1", name="look", turnId="t1"),
    ev("tool.args.delta", toolCallId="c1", delta="{}"),
    ev("tool.args.assembled", toolCallId="c1", input={}),
)
"""A whole call ``c1`` for an open message."""


def numbered(*events: Wire) -> list[Wire]:
    """The events with their ordinals; an event that names its own is counted on from."""
    found: list[Wire] = []
    due = 0
    for event in events:
        found.append({"type": event["type"], "seq": due, **event})
        due = int(found[-1]["seq"]) + 1
    return found


def typed(*events: Wire) -> list[Any]:
    """The events as a consumer reads them: unknown types and kinds are carried."""
    return [from_dict(event, "event", lenient=True) for event in numbered(*events)]


def raw(*events: Wire) -> list[bytes]:
    """The events as JSON texts."""
    return [json.dumps(event).encode() for event in numbered(*events)]


def violations(*events: Wire, **options: Any) -> list[Violation]:
    """What `check` finds; the same must be found in the events typed and as texts."""
    found = list(check(typed(*events), **options))
    assert list(check(raw(*events), **options)) == found
    return found


def broken(*events: Wire, **options: Any) -> list[tuple[int, str]]:
    """The line and the rule of everything that `check` finds."""
    return [(violation.line, violation.rule) for violation in violations(*events, **options)]
