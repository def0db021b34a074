"""The streams that are measured: of the shape of real agents' streams, made by rule, so that every run has the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agjson import (
    AgEvent,
    AgMessage,
    AgOpaque,
    AgUsage,
    MessageEnd,
    MessagesSnapshot,
    MessageStart,
    ReasoningBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningStart,
    StateSnapshot,
    SuccessOutcome,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolCallBlock,
    ToolDone,
    ToolStart,
    TurnDone,
    TurnStart,
)

# Pieces as providers send them: a token or two, some beyond ASCII.
WORDS = ("The ", "weather in ", "Reykjavík ", "is mild: ", "about 7 °C, ", "with wind from ", "the south-west", ".\n\n")
THOUGHTS = ("I should ", "look up ", "the forecast ", "first, ", "then compare ", "both days.")
ARGUMENTS = ('{"city": ', '"Reykjav', 'ík", "days"', ": [1, 2], ", '"unit": "metric"}')
ARGUMENT = {"city": "Reykjavík", "days": [1, 2], "unit": "metric"}
LONG_TURN = 5_000
SIGNATURE = "EqoBCkgIARABGAIiQL2UoU0b1OHYi+" * 6


def agent(events: int) -> list[AgEvent]:
    """A conversation of about so many events: nine in ten are deltas, of 110 to 150 bytes on the wire.

    Every turn thinks, calls a tool, and answers; every fourth sets the shared state; at the end comes a snapshot of
    some messages.
    """
    made: list[AgEvent] = []
    turn = 0
    while len(made) < events - 1:
        made.extend(_turn(turn, len(made)))
        turn += 1
    made.append(MessagesSnapshot(seq=len(made), messages=[_stored(index) for index in range(min(40, turn))]))
    return made


def _turn(number: int, seq: int) -> Iterator[AgEvent]:
    turn = f"turn-{number}"
    message, call = f"msg_01XF{number:04}", f"toolu_01A09q90{number:04}"
    for kind, fields in _parts(turn, message, call, number):
        yield kind(seq=seq, **fields)
        seq += 1


def _parts(turn: str, message: str, call: str, number: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    of = {"turn_id": turn}
    block = {**of, "message_id": message}
    yield TurnStart, {**of, "thread_id": "thread-1"}
    yield MessageStart, {**of, "id": message, "role": "assistant", "thread_id": "thread-1", "model": "model-1"}
    thought, text = f"{turn}:reasoning:0", f"{turn}:text:0"
    yield ReasoningStart, {**block, "id": thought}
    for index in range(30):
        yield ReasoningDelta, {**block, "id": thought, "delta": THOUGHTS[index % len(THOUGHTS)]}
    yield ReasoningOpaque, {**of, "id": thought, "kind": "signature", "value": SIGNATURE, "provider": "provider-1"}
    yield ReasoningEnd, {**of, "id": thought}
    yield ToolStart, {**block, "tool_call_id": call, "name": "get_forecast", "index": 1}
    for piece in ARGUMENTS:
        yield ToolArgsDelta, {**block, "tool_call_id": call, "delta": piece}
    yield ToolArgsAssembled, {**of, "tool_call_id": call, "input": ARGUMENT}
    yield MessageEnd, {**of, "id": message, "usage": AgUsage(input_tokens=812, output_tokens=64)}
    answer = [TextBlock(text='{"celsius": [7, 6.5], "wind": "SW"}')]
    yield ToolDone, {**of, "tool_call_id": call, "message_id": f"{call}:result", "content": answer, "outcome": "ok"}
    second = f"{message}b"
    yield MessageStart, {**of, "id": second, "role": "assistant", "thread_id": "thread-1", "model": "model-1"}
    yield TextStart, {**of, "message_id": second, "id": text}
    for index in range(90):
        yield TextDelta, {**of, "message_id": second, "id": text, "delta": WORDS[index % len(WORDS)]}
    yield TextEnd, {**of, "id": text}
    yield MessageEnd, {**of, "id": second, "usage": AgUsage(input_tokens=960, output_tokens=180)}
    if number % 4 == 3:
        yield StateSnapshot, {**of, "snapshot": {"steps": [{"n": n, "done": None} for n in range(20)]}}
    yield TurnDone, {**of, "outcome": SuccessOutcome(), "finish_reason": "stop", "usage": AgUsage(total_tokens=2016)}


def _stored(number: int) -> AgMessage:
    thought = ReasoningBlock(text="".join(THOUGHTS) * 5, opaque=AgOpaque(kind="signature", value=SIGNATURE))
    call = ToolCallBlock(tool_call_id=f"call-{number}", name="get_forecast", input=ARGUMENT)
    return AgMessage(
        id=f"stored-{number}", role="assistant", content=[thought, call, TextBlock(text="".join(WORDS) * 10)]
    )


def long_message(deltas: int) -> list[AgEvent]:
    """One message of one text, streamed in so many deltas of 14 characters."""
    head: list[AgEvent] = [
        TurnStart(seq=0, turn_id="t", thread_id="thread-1"),
        MessageStart(seq=1, id="m", role="assistant", turn_id="t", thread_id="thread-1"),
        TextStart(seq=2, id="b", turn_id="t", message_id="m"),
    ]
    return [*head, *(TextDelta(seq=seq, id="b", delta="hello, world! ") for seq in range(3, deltas + 3))]


def endless() -> Iterator[AgEvent]:
    """A stream that never ends, of a conversation that never grows: after each long turn a snapshot empties it."""
    seq = number = 0
    while True:
        turn, message, block = f"turn-{number}", f"message-{number}", f"block-{number}"
        yield TurnStart(seq=seq, turn_id=turn, thread_id="thread-1")
        yield MessageStart(seq=seq + 1, id=message, role="assistant", turn_id=turn, thread_id="thread-1")
        yield TextStart(seq=seq + 2, id=block, turn_id=turn, message_id=message)
        for index in range(LONG_TURN):
            yield TextDelta(seq=seq + 3 + index, id=block, delta=WORDS[index % len(WORDS)], turn_id=turn)
        seq += 3 + LONG_TURN
        yield TextEnd(seq=seq, id=block, turn_id=turn)
        yield MessageEnd(seq=seq + 1, id=message, turn_id=turn)
        yield TurnDone(seq=seq + 2, turn_id=turn, outcome=SuccessOutcome(), finish_reason="stop")
        yield MessagesSnapshot(seq=seq + 3, messages=[], turns=[])
        seq += 4
        number += 1
