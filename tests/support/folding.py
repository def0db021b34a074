"""Short ways to write a stream and to look at what it folds to."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from agjson.fold import Reducer
from agjson.types import AgReduceResult, AgStreamEvent, UnknownEvent
from agjson.wire import ingest_event, to_dict

Event = AgStreamEvent | UnknownEvent

TURN = {"type": "turn.start", "turnId": "t", "threadId": "th"}
MESSAGE = {"type": "message.start", "id": "m", "role": "assistant", "turnId": "t", "threadId": "th"}
TEXT = {"type": "text.start", "id": "x", "turnId": "t"}
REASONING = {"type": "reasoning.start", "id": "r", "turnId": "t"}
CALL = {"type": "tool.start", "toolCallId": "c", "name": "n", "turnId": "t"}
DONE = {"type": "turn.done", "turnId": "t", "outcome": {"type": "success"}, "finishReason": "stop"}


def events(*members: dict[str, Any], start: int = 0) -> list[Event]:
    """Events read from JSON, with ordinals from ``start`` where a member names none."""
    return [ingest_event(json.dumps({"seq": start + index, **member})) for index, member in enumerate(members)]


def push(reducer: Reducer, *members: dict[str, Any]) -> None:
    """Push further events; each goes on from ordinal 0, as a new invoke does, so that no gap is seen."""
    for member in members:
        for event in events({"seq": 0, **member}):
            reducer.push(event)


def folded(*members: dict[str, Any], **options: Any) -> Reducer:
    """A reducer that has taken a stream."""
    reducer = Reducer(**options)
    for event in events(*members):
        reducer.push(event)
    return reducer


def view(result: AgReduceResult) -> dict[str, Any]:
    """The result as plain JSON, with nothing shared."""
    plain = json.loads(json.dumps(to_dict(result)))
    assert isinstance(plain, dict)
    return plain


def messages(reducer: Reducer) -> list[Any]:
    """The folded messages as plain JSON."""
    found = view(reducer.result())["messages"]
    assert isinstance(found, list)
    return found


def blocks(reducer: Reducer, message: int = 0) -> list[Any]:
    """The blocks of one folded message as plain JSON."""
    found = messages(reducer)[message]["content"]
    assert isinstance(found, list)
    return found


def turn(reducer: Reducer, index: int = 0) -> dict[str, Any]:
    """One folded turn record as plain JSON."""
    found = view(reducer.result())["turns"][index]
    assert isinstance(found, dict)
    return found


def same_json(a: Any, b: Any) -> bool:
    """INV-FOLD equality: arrays in order, keys in any order, numbers by value, ``true`` apart from ``1``."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return bool(a == b)


def calls_made(run: Callable[[], object]) -> Counter[str]:
    """How often each function was called while ``run`` ran, those written in C included."""
    counted: Counter[str] = Counter()

    def note(frame: Any, kind: str, argument: Any) -> None:
        if kind == "call":
            counted[frame.f_code.co_name] += 1
        elif kind == "c_call":
            counted[argument.__name__] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counted
