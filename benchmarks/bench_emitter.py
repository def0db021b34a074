"""The emitter: what a text delta costs an adapter, against making the bare event."""

from __future__ import annotations

from collections.abc import Iterator

from agjson import Emitter, TextDelta
from benchmarks.measure import Effort, Row, each, fastest
from benchmarks.streams import WORDS


def rows(effort: Effort) -> Iterator[Row]:
    words = [WORDS[index % len(WORDS)] for index in range(effort.events)]

    def emit() -> None:
        emitter = Emitter("turn-1", "thread-1")
        emitter.turn_start()
        block = emitter.text_start()
        text_delta, drain = emitter.text_delta, emitter.drain
        for word in words:
            text_delta(block, word)
            drain()

    def bare() -> None:
        made: list[TextDelta] = []
        put = made.append
        for seq, word in enumerate(words):
            put(TextDelta(seq=seq, id="turn-1:text:0", delta=word, turn_id="turn-1", message_id="turn-1:message:0"))

    times = fastest({"emit": emit, "bare": bare}, effort.rounds)
    count = len(words)
    yield Row(
        "emitter",
        "text_delta and drain",
        times["emit"] / times["bare"],
        None,
        each(times["emit"], count),
        f"making the event, put into a list ({each(times['bare'], count)})",
    )
