"""Streams for tests, written down as `(type, fields)` pairs; the ordinals are counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agjson.types import UnknownEvent
from agjson.wire import from_dict

Pair = tuple[str, dict[str, Any]]
"""The wire type of an event, and its other fields; ``seq`` only where it is not the next ordinal."""


def ev(type: str, /, **fields: Any) -> Pair:
    """One event; ``meta`` stands for ``_meta``."""
    if "meta" in fields:
        fields["_meta"] = fields.pop("meta")
    return type, fields


def wire(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """The events as plain objects; one that names its own ``seq`` is counted on from."""
    events: list[dict[str, Any]] = []
    due = 0
    for type_, fields in pairs:
        event = {"type": type_, "seq": due, **fields}
        events.append(event)
        due = int(event["seq"]) + 1
    return events


def typed(pairs: Iterable[Pair]) -> list[Any]:
    """The events as a consumer reads them: unknown types and kinds are carried."""
    return [from_dict(event, "event", lenient=True) for event in wire(pairs)]


def is_unknown(event: object) -> bool:
    """Whether an event is of a type that this revision does not define."""
    return isinstance(event, UnknownEvent)
