"""What a running turn has come to, once the first of its events are kept no more (spec §5 `messages.snapshot`).

A snapshot ends every open block, and deltas that follow it would have nothing to go on with. So it is taken at the last
moment at which no message was open: the snapshot and the events after it fold to what the whole stream folds to. Where
one message is longer than what is kept there is no such moment. Then the snapshot has what came so far, and a reader's
fold parks at the next delta, until it asks again after the end of the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agjson.fold import Reducer
from agjson.middleware.asgi.relay import Relay, event_of
from agjson.types import AgReduceResult, MessageEnd, MessageRemove, MessageStart, TurnAbort, TurnDone, TurnError
from agjson.wire import ingest_event

__all__ = ["Earlier"]

# All else neither opens nor closes a message. The type is what an event begins with.
_TELLING = tuple(
    b'{"type":"%b"' % name.encode()
    for name in ("message.start", "message.end", "message.remove", "turn.done", "turn.error", "turn.abort")
)


class Earlier:
    """The fold of a turn whose relay drops its oldest events. It costs something from the first of them on.

    Args:
        before: the fold of the thread before the turn.
    """

    def __init__(self, before: AgReduceResult) -> None:
        self._before = before
        self._reducer: Reducer | None = None
        # The ordinal of the next event to be folded, and the messages that are open before it, with their turns.
        self._next = 0
        self._open: dict[str, str | None] = {}

    @property
    def has_begun(self) -> bool:
        """The relay has dropped events."""
        return self._reducer is not None

    def take(self, frames: Sequence[bytes], first: int) -> None:
        """Take events that are being dropped.

        Args:
            frames: their frames, in order.
            first: the ordinal of the first one.
        """
        if self._reducer is None:
            self._reducer = Reducer(self._before)
        self._fold(frames[max(0, self._next - first) :])

    def snapshot(self, relay: Relay) -> tuple[AgReduceResult, int]:
        """The fold of the thread, the turn included as far as it goes.

        Args:
            relay: that of the turn; it has begun to drop events.

        Returns:
            The fold, and the ordinal of the last event in it.
        """
        assert self._reducer is not None
        frames = relay.frames(self._next)
        opened = dict(self._open)
        best = 0 if not opened else None
        for count, frame in enumerate(frames, 1):
            _note(opened, event_of(frame))
            if not opened:
                best = count
        self._fold(frames[:best])
        return self._reducer.result(), self._next - 1

    def _fold(self, frames: Iterable[bytes]) -> None:
        assert self._reducer is not None
        for frame in frames:
            event = event_of(frame)
            _note(self._open, event)
            self._reducer.push(ingest_event(event))
            self._next += 1


def _note(opened: dict[str, str | None], data: bytes) -> None:
    """Follow which messages are open."""
    if not data.startswith(_TELLING):
        return
    event = ingest_event(data)
    if isinstance(event, MessageStart):
        opened[event.id] = event.turn_id
    elif isinstance(event, MessageEnd) or (isinstance(event, MessageRemove) and event.id != "*"):
        opened.pop(event.id, None)
    elif isinstance(event, (MessageRemove, TurnDone, TurnError, TurnAbort)) and event.turn_id is not None:
        for id in [id for id, turn_id in opened.items() if turn_id == event.turn_id]:
            del opened[id]
