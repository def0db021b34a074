"""What a client knows: of a thread its fold, of a turn how far it has come. Nothing here waits or opens anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from agjson.errors import DecodeError
from agjson.fold import Reducer
from agjson.types import (
    AgOutcome,
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    AgTurnRecord,
    JsonValue,
    MessagesSnapshot,
    PausedOutcome,
    StateSnapshot,
    SubagentDone,
    SubagentStart,
    ToolCallBlock,
    ToolResultBlock,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
    UnknownEvent,
)
from agjson.wire.sse import parse_event_id

__all__ = ["Following", "Resync", "Skipped", "ThreadSnapshot", "ThreadView"]

_TERMINALS = (TurnDone, TurnError, TurnAbort)
_NUMBER = re.compile(r":[0-9]+")
_END = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSnapshot:
    """A thread as its server has it.

    Attributes:
        thread_id: its id.
        turn_id: the turn that runs; None: none does.
        last_event_id: the place in that turn up to which the snapshot goes.
        events: the `messages.snapshot`, and the `state.snapshot` where a state was set.
        result: what the events fold to.
        calls: what the client has to run, as the server lists it.
        asks: the asks that wait for answers.
    """

    thread_id: str
    turn_id: str | None
    last_event_id: str | None
    events: Sequence[MessagesSnapshot | StateSnapshot]
    result: AgReduceResult
    calls: Sequence[JsonValue] = ()
    asks: Sequence[AgPausedAsk] = ()

    def record(self, turn_id: str) -> AgTurnRecord | None:
        """The record of a turn; None: the snapshot has none.

        Args:
            turn_id: the turn.
        """
        return next((turn for turn in self.result.turns if turn.turn_id == turn_id), None)

    @property
    def seq(self) -> float:
        """The ordinal up to which the running turn is in the snapshot; -1: none of it is."""
        if self.turn_id is None:
            return _END
        if self.record(self.turn_id) is None or self.last_event_id is None:
            return -1
        try:
            return parse_event_id(self.last_event_id)[1]
        except DecodeError:
            return -1


@dataclass(frozen=True, slots=True)
class Resync:
    """The fold was mended by a snapshot of the thread, because events were missing or did not fit.

    Attributes:
        reason: why, in words; names ids and ordinals, never values.
        seq: the ordinal of the last event that was delivered before.
    """

    reason: str
    seq: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """A malformed event that was left out (``on_malformed="skip"``).

    Attributes:
        message: what is wrong with it.
        path: the JSON path of it.
        data: the event's bytes.
    """

    message: str
    path: str
    data: bytes


class ThreadView:
    """The fold of a thread, as far as a client has followed it.

    Attributes:
        thread_id: the thread.
        reducer: the fold.
        turn_id: the turn that was followed last.
        seq: the ordinal up to which that turn is folded.
    """

    __slots__ = ("reducer", "seq", "thread_id", "turn_id")

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.reducer = Reducer()
        self.turn_id: str | None = None
        self.seq: float = -1

    def seed(self, snapshot: ThreadSnapshot) -> None:
        """Begin again from a snapshot."""
        self.reducer = Reducer(snapshot.result)
        self.turn_id = snapshot.turn_id
        self.seq = snapshot.seq


@dataclass(slots=True, kw_only=True)
class Following:
    """How far the turn has come that a client follows.

    Attributes:
        view: the thread that it belongs to.
        requested: the turn id that the input named; None: a turn that was attached to.
        turn_id: the turn's real id; None: not known yet.
        seq: the ordinal of the last event that was delivered; -1: none yet.
        covered: the ordinal up to which a snapshot stands for the events.
        last_event_id: the server's name of that place; None: the source has none.
        terminal: the event that ended the turn.
        over: the turn has ended, or there was none.
        resyncs: when the fold was mended by a snapshot.
        skipped: malformed events that were left out.
        reconnects: how often the stream was taken up again.
    """

    view: ThreadView
    requested: str | None = None
    turn_id: str | None = None
    seq: float = -1
    covered: float = -1
    last_event_id: str | None = None
    terminal: TurnDone | TurnError | TurnAbort | None = None
    over: bool = False
    resyncs: list[Resync] = field(default_factory=list[Resync])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    reconnects: int = 0
    _open: list[str] = field(default_factory=list[str])

    def is_ours(self, turn_id: str | None) -> bool:
        """Whether a turn is the one that is followed; a server may have derived its id from the one that was named."""
        if turn_id is None:
            return False
        if self.turn_id is not None:
            return turn_id == self.turn_id
        if self.requested is None:
            return True
        return turn_id == self.requested or (
            turn_id.startswith(self.requested) and _NUMBER.fullmatch(turn_id, len(self.requested)) is not None
        )

    def find(self, snapshot: ThreadSnapshot) -> AgTurnRecord | None:
        """The turn's record in a snapshot, the latest of those that it may be."""
        turns = (turn for turn in reversed(snapshot.result.turns) if turn.parent_turn_id is None)
        return next((turn for turn in turns if self.is_ours(turn.turn_id)), None)

    def has(self, event: AgStreamEvent | UnknownEvent) -> bool:
        """Whether an event was delivered, or a snapshot in its place. Nothing stands for the terminal."""
        return event.seq <= self.seq or (event.seq <= self.covered and not self.ends_with(event))

    def goes_on_with(self, event: AgStreamEvent | UnknownEvent) -> bool:
        """Fold the event that is next in every respect, and say so; False: it is not, or the fold does not take it."""
        view = self.view
        if event.seq != self.seq + 1 or view.seq != self.seq or self.covered >= event.seq:
            return False
        reducer = view.reducer
        if reducer.needs_resync:
            return False
        reducer.push(event)
        view.seq = event.seq
        return not reducer.needs_resync

    def lacks(self, event: AgStreamEvent | UnknownEvent) -> bool:
        """Whether events are missing before this one."""
        upto = max(self.seq, self.covered)
        return upto >= 0 and event.seq > upto + 1

    def ends_with(self, event: AgStreamEvent | UnknownEvent) -> bool:
        """Whether an event is the turn's terminal."""
        if not isinstance(event, _TERMINALS):
            return False
        owner = event.turn_id or (self._open[-1] if self._open else self.turn_id)
        return owner == self.turn_id or self.turn_id is None

    def fold(self, event: AgStreamEvent | UnknownEvent) -> None:
        """Fold an event, unless the fold has it already."""
        if event.seq > self.view.seq:
            self.view.seq = event.seq
            self.view.reducer.push(event)

    def note(self, event: AgStreamEvent | UnknownEvent, last_event_id: str) -> None:
        """Take an event as delivered."""
        if isinstance(event, TurnStart):
            if self.turn_id is None:
                self.turn_id = self.view.turn_id = event.turn_id
            self._open.append(event.turn_id)
        elif isinstance(event, SubagentStart):
            self._open.append(event.turn_id)
        elif isinstance(event, (*_TERMINALS, SubagentDone)):
            owner = event.turn_id or (self._open[-1] if self._open else None)
            if self.ends_with(event) and not isinstance(event, SubagentDone):
                self.terminal = event
                self.over = True
            if owner in self._open:
                self._open.remove(owner)
        self.seq = event.seq
        self.last_event_id = last_event_id or None

    def adopt(
        self, snapshot: ThreadSnapshot, reason: str, *, covers: bool
    ) -> list[MessagesSnapshot | StateSnapshot] | None:
        """Mend the fold by a snapshot.

        Args:
            snapshot: the thread as it is.
            reason: why the fold needs it.
            covers: events that the snapshot stands for are not delivered any more, so that after those that are lost
                the caller gets each thing once.

        Returns:
            The events to deliver, numbered so that a fold of the caller's own goes on after them too; None where the
            snapshot does not have what is needed: it is from before the turn.
        """
        running = self.is_ours(snapshot.turn_id)
        if (snapshot.seq if running else self.find(snapshot)) in (-1, None):
            return None
        if not running:
            self.turn_id = self.turn_id or getattr(self.find(snapshot), "turn_id", None)
        upto = snapshot.seq if running else _END
        base = int(upto) if upto != _END else max(int(self.seq), 0)
        first = max(base - len(snapshot.events) + 1, 0)
        events = [replace(event, seq=first + at) for at, event in enumerate(snapshot.events)]
        # The snapshot ends what the fold knew of the turn, so it is pushed whatever the fold has seen.
        for event in events:
            self.view.reducer.push(event)
        self.view.turn_id = self.turn_id
        self.view.seq = upto
        if covers:
            self.covered = upto
        self.resyncs.append(Resync(reason, self.seq))
        return events

    @property
    def record(self) -> AgTurnRecord | None:
        """The turn's record in the fold; None: the fold has none."""
        turns = reversed(self.view.reducer.result().turns)
        return next((turn for turn in turns if turn.turn_id == self.turn_id and turn.parent_turn_id is None), None)

    @property
    def outcome(self) -> AgOutcome | None:
        """How the turn ended, from its record in the fold."""
        record = self.record
        return None if record is None else record.outcome

    @property
    def open_asks(self) -> list[AgPausedAsk]:
        """The asks that the turn waits for."""
        outcome = self.outcome
        return list(outcome.asks) if isinstance(outcome, PausedOutcome) else []

    @property
    def open_calls(self) -> list[ToolCallBlock]:
        """The calls that the turn leaves to the client: without a result, and not run by the provider.

        A turn that brought only some of the results waits for the others, which an earlier turn called for.
        """
        record = self.record
        if record is None or record.finish_reason != "tool_call":
            return []
        result = self.view.reducer.result()
        turns = [turn for turn in result.turns if turn.parent_turn_id is None]
        at = next(at for at, turn in enumerate(turns) if turn.turn_id == record.turn_id)
        owners = {record.turn_id}
        while at > 0 and (trigger := turns[at].trigger) is not None and trigger.kind == "resume":
            at -= 1
            owners.add(turns[at].turn_id)
        calls: dict[str, ToolCallBlock] = {}
        done: set[str] = set()
        for message in (message for message in result.messages if message.turn_id in owners):
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    done.add(block.tool_call_id)
                elif isinstance(block, ToolCallBlock) and not block.provider_executed:
                    calls[block.tool_call_id] = block
        return [call for id, call in calls.items() if id not in done]
