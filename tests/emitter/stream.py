"""Reading what an emitter wrote, after making sure that it is a stream which check passes and which folds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agjson.checker import check
from agjson.emitter import Emitter
from agjson.fold import reduce
from agjson.types import AgMessage, AgReduceResult, AgStreamEvent
from agjson.wire import to_dict


def finished(emitter: Emitter, *, known_ids: Collection[str] | None = None) -> list[AgStreamEvent]:
    """The events so far and those of the flush, well formed and foldable."""
    emitter.flush()
    return sound(emitter.drain(), known_ids=known_ids)


def sound(events: list[AgStreamEvent], *, known_ids: Collection[str] | None = None) -> list[AgStreamEvent]:
    """The events, once it is sure that check finds nothing and that no fold of the whole stream parks."""
    assert [event.seq for event in events] == list(range(len(events)))
    assert list(check(events, known_ids=known_ids)) == []
    if known_ids is None:
        assert reduce(events).needs_resync is False
    return events


def wire(events: list[AgStreamEvent]) -> list[dict[str, Any]]:
    """The events as plain data without their ordinals."""
    return [{name: value for name, value in to_dict(event).items() if name != "seq"} for event in events]


def types(events: list[AgStreamEvent]) -> list[str]:
    return [event.type for event in events]


def folded(events: list[AgStreamEvent]) -> AgReduceResult:
    return reduce(events).result


def message(events: list[AgStreamEvent], id: str) -> AgMessage:
    """The folded message of this id."""
    (found,) = [message for message in folded(events).messages if message.id == id]
    return found


def errors(events: list[AgStreamEvent]) -> list[dict[str, Any]]:
    return [event for event in wire(events) if event["type"] == "error"]
