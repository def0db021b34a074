"""Following a turn to its end: posted or attached to, taken up again after a break, mended where events are missing.

The one place that decides what a client does; `AgentClient` and `SyncAgentClient` carry it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from agjson.errors import DecodeError
from agjson.fold import Reducer
from agjson.middleware.client._effects import LinkError, Plan, Read, Request, Shut
from agjson.middleware.client._following import Following, Skipped, ThreadSnapshot
from agjson.middleware.client._requests import PASSING, REFUSED_FOR_NOW, Requests, check_stream, is_missing_route
from agjson.middleware.client._settings import Routes, Settings
from agjson.middleware.client.errors import ClientError, ConnectionLostError, RequestError, StreamError
from agjson.types import (
    AgMessage,
    AgStreamEvent,
    MessageEnd,
    MessageStart,
    ReasoningDelta,
    TextBlock,
    TextDelta,
    ToolArgsDelta,
    TurnStart,
    UnknownEvent,
)
from agjson.wire import ingest_event
from agjson.wire.sse import SSEMessage, SSEReader

__all__ = ["TurnPlan"]

_STREAM: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
_PLAIN: Final = frozenset((TextDelta, ReasoningDelta, ToolArgsDelta))
_NOT_AN_EVENT: Final = (b"", b"[DONE]")
# How often the server must deny that it has a run before the input is sent a second time.
_LOOKS: Final = 2
# They are kept for the caller, and a source may have nothing else.
_MOST_SKIPPED: Final = 1000


class Step(Enum):
    """What to do next in order to have a stream."""

    POST = auto()
    """Send the input."""
    FIND = auto()
    """Find out whether the server has the input that was sent."""
    EVENTS = auto()
    """Take up the stream after the last event."""
    SNAPSHOT = auto()
    """The server cannot go on from there: ask what became of the turn."""
    READ = auto()
    """A stream is open."""
    OVER = auto()
    """The turn has ended."""


class TurnPlan(Requests):
    """The plan of one turn.

    Args:
        settings: how the client behaves.
        routes: where the requests go.
        following: how far the turn has come; the plan keeps it up to date.
        body: the input as JSON; None: the turn is attached to.
        said: the messages of a start; None: another input, or none.
    """

    def __init__(
        self,
        settings: Settings,
        routes: Routes,
        following: Following,
        body: bytes | None = None,
        said: Sequence[AgMessage] | None = None,
    ) -> None:
        super().__init__(settings, routes)
        self.following = following
        self._body = body
        self._cause: Exception = ConnectionLostError("not connected", code="unreachable")
        self._uncertain = False  # the input was sent, and nobody knows whether it came
        self._looks = 0
        # A turn id that the thread had before says nothing about this run.
        known = _known(following)
        self._ambiguous = body is not None and following.find(known) is not None
        self._ended = frozenset(turn.turn_id for turn in known.result.turns if turn.outcome is not None)
        self._said = None if said is None else {message.id: message for message in said}
        self._unproved = False  # the turn is attached to by its id, and may be the one of another input
        self._expects_start = False  # the open stream must begin with the start of this turn
        self._can_mend = True
        self._mended = False  # by a snapshot, and no message has begun since
        self._skipped_bytes = 0
        self._gap_at: float | None = None  # after which event the stream was taken up again for a gap

    def run(self) -> Plan[None]:
        """Send the input and deliver the events of its turn."""
        self.following.view.seq = -1
        yield from self._follow(Step.POST)

    def attach(self) -> Plan[None]:
        """Deliver the events of a turn from a place, or of the running one with the thread as it is."""
        if self.following.last_event_id is not None:
            yield from self._follow(Step.EVENTS)
            return
        try:
            snapshot = yield from self.snapshot(self._thread_id)
        except RequestError as error:
            if not is_missing_route(error):
                raise
            yield from self._follow(Step.EVENTS)
            return
        if snapshot is None:
            raise RequestError("the server has no such thread", code="unknown_thread", status=404)
        following = self.following
        following.view.seed(snapshot)
        latest = following.find(snapshot)  # no turn is asked for, so it is the last one
        if snapshot.turn_id is None:
            following.turn_id = None if latest is None else latest.turn_id
        else:
            following.turn_id = snapshot.turn_id
            if snapshot.seq >= 0:
                following.seq, following.last_event_id = snapshot.seq, snapshot.last_event_id
        yield from snapshot.events
        if snapshot.turn_id is None:
            following.over = True
        else:
            yield from self._follow(Step.EVENTS)

    @property
    def _thread_id(self) -> str:
        return self.following.view.thread_id

    def _follow(self, step: Step) -> Plan[None]:
        while True:
            if step is Step.POST:
                step = yield from self._post()
            elif step is Step.FIND:
                step = yield from self._find()
            elif step is Step.EVENTS:
                step = yield from self._take_up()
            elif step is Step.SNAPSHOT:
                step = yield from self._ask_for_the_end()
            elif step is Step.READ:
                step = yield from self._read()
            else:
                break
        self.following.over = True
        yield Shut()

    # Getting a stream.

    def _post(self) -> Plan[Step]:
        headers = {**_STREAM, "content-type": "application/json"}
        try:
            head = yield from self.open(Request("POST", self.routes.run, headers, self._body))
        except LinkError as error:
            self._cause = error
            if error.unsent:
                yield from self.wait(error)
                return Step.POST
            return Step.FIND
        if head.status == 200:
            check_stream(head)
            return Step.READ
        if 200 <= head.status < 300:
            raise StreamError("the answer has no events", code="not_a_stream", status=head.status)
        refusal = yield from self.refusal(head)
        self._cause = refusal
        if refusal.status == 409 and (yield from self._came_after_all(refusal)):
            self._unproved = True
            return Step.EVENTS
        # An error in the form of the protocol comes from the agent's own server, so it has not begun a run.
        if refusal.status in REFUSED_FOR_NOW or (refusal.status == 503 and not refusal.code.startswith("http_")):
            yield from self.wait(refusal)
            return Step.POST
        if refusal.status in PASSING:
            return Step.FIND
        raise refusal

    def _find(self) -> Plan[Step]:
        """After a break before the first event: look for the run; send the input again only when it is not there."""
        self._uncertain = True
        if self._ambiguous:
            raise self._fate_unknown("the thread had a turn of this id before")
        yield from self.wait(self._cause)
        try:
            snapshot = yield from self.snapshot(self._thread_id)
        except RequestError as error:
            if is_missing_route(error):
                raise self._fate_unknown("the source cannot be asked about it") from self._cause
            raise
        if snapshot is not None and self._finds_turn(snapshot):
            self._unproved = True
            return Step.EVENTS
        # A request may still be under way when its connection is gone, so one look is not enough.
        self._looks += 1
        if self._looks < _LOOKS:
            return Step.FIND
        self._looks = 0
        if not self.settings.resend:
            raise self._fate_unknown("the server has no such run, and resend is off")
        return Step.POST

    def _came_after_all(self, refusal: RequestError) -> Plan[bool]:
        """Whether an input is refused because it came before."""
        turn_id = _turn_of(refusal)
        if refusal.code == "turn_exists" and turn_id is not None:
            if turn_id in self._ended:
                raise _turn_id_used(turn_id)
            self.following.turn_id = turn_id
            return True
        if not self._uncertain:
            return False
        if refusal.code == "thread_busy" and self.following.is_ours(turn_id):
            self.following.turn_id = turn_id
            return True
        snapshot = yield from self._snapshot_if_any()
        return snapshot is not None and self._finds_turn(snapshot)

    def _finds_turn(self, snapshot: ThreadSnapshot) -> bool:
        """Whether the turn is in a snapshot; what it is called is known from then on."""
        following = self.following
        record = following.find(snapshot)
        if following.is_ours(snapshot.turn_id):
            following.turn_id = snapshot.turn_id
        elif record is not None:
            following.turn_id = record.turn_id
        else:
            return False
        return True

    def _fate_unknown(self, why: str) -> ConnectionLostError:
        message = f"the connection broke before the first event ({self._cause}), and {why}"
        return ConnectionLostError(message, code="fate_unknown")

    def _take_up(self) -> Plan[Step]:
        place = self.following.last_event_id
        headers: dict[str, str] = dict(_STREAM)
        query: dict[str, str] = {}
        if place is None:
            if self.following.turn_id is not None:
                query["turnId"] = self.following.turn_id
        elif place.isascii() and place.isprintable() and place == place.strip():
            headers["last-event-id"] = place
        else:
            query["lastEventId"] = place
        url = self.routes.events(self._thread_id, **query)
        try:
            head = yield from self.open(Request("GET", url, headers))
        except LinkError as error:
            yield from self._pause(error)
            return Step.EVENTS
        if head.status == 200:
            check_stream(head)
            self._expects_start = place is None and (self._body is not None or self.following.turn_id is not None)
            self.following.reconnects += 1
            return Step.READ
        if head.status == 204:
            return Step.SNAPSHOT
        refusal = yield from self.refusal(head)
        if refusal.status == 410:
            self._cause = refusal
            return Step.SNAPSHOT
        if refusal.status in PASSING or refusal.status == 500:
            yield from self._pause(refusal)
            return Step.EVENTS
        if is_missing_route(refusal) and self.reconnecting:
            message = f"the stream broke before its end ({self._cause}), and the source cannot take it up"
            raise ConnectionLostError(message, code="not_resumable", status=refusal.status) from self._cause
        raise refusal

    @property
    def reconnecting(self) -> bool:
        """Whether a stream of this turn was open before."""
        return self._body is not None or self.following.reconnects > 0

    def _pause(self, cause: Exception) -> Plan[None]:
        self._cause = cause
        yield from self.wait(cause)

    def _ask_for_the_end(self) -> Plan[Step]:
        """The turn's stream is not served any more from the place of this client."""
        yield from self.wait(self._cause)
        try:
            snapshot = yield from self.snapshot(self._thread_id)
        except RequestError as error:
            if is_missing_route(error):
                raise ConnectionLostError(
                    "the stream cannot be taken up, and the source has no snapshot", code="not_resumable"
                ) from self._cause
            raise
        following = self.following
        if snapshot is None:
            raise ConnectionLostError("the server does not know the thread any more", code="turn_lost")
        if self._unproved:
            for message in snapshot.result.messages:
                if message.turn_id == following.turn_id and message.role == "user":
                    self._prove(message)
        events = following.adopt(snapshot, "the server does not serve the turn from that place any more", covers=True)
        if following.is_ours(snapshot.turn_id):
            if events is None:
                # The snapshot is from before the turn, so the turn is folded again from its first event.
                following.view.reducer = Reducer(snapshot.result)
                following.view.seq = -1
                following.last_event_id = None
            else:
                yield from events
                following.last_event_id = snapshot.last_event_id
            return Step.EVENTS
        if events is None or following.outcome is None:
            raise ConnectionLostError("the server does not say how the turn ended", code="turn_lost")
        yield from events
        return Step.OVER

    # Reading a stream.

    def _read(self) -> Plan[Step]:
        following = self.following
        reader = SSEReader(max_bytes=self.settings.max_bytes, last_event_id=following.last_event_id or "")
        try:
            while True:
                chunk: bytes = yield Read()
                if not chunk:
                    reader.close()
                    raise LinkError("the stream ended before its turn", unsent=False)
                for message in reader.feed(chunk):
                    # Nearly all events of a stream are deltas that come in order, so these are delivered right here.
                    event = None if self._expects_start else _plain(message)
                    if event is not None and following.goes_on_with(event):
                        following.seq = event.seq
                        following.last_event_id = message.last_event_id or None
                        self.attempts = 0
                        yield event
                        continue
                    step = yield from self._take(message)
                    if step is not None:
                        return step
                # In milliseconds; nobody waits for what a stream asks for without end.
                self.asked = (reader.retry or 0) / 1000
        except LinkError as error:
            self._cause = error
        except DecodeError as error:
            raise StreamError(error.message, code="too_large") from None
        yield Shut()  # not only after the wait
        if self._body is not None and following.seq < 0 and following.last_event_id is None:
            return Step.FIND
        yield from self.wait(self._cause)
        return Step.EVENTS

    def _take(self, message: SSEMessage) -> Plan[Step | None]:
        """Deliver what a message holds; a step other than reading on, or None."""
        following = self.following
        if message.data.strip() in _NOT_AN_EVENT:
            return None
        try:
            event = ingest_event(message.data)
        except DecodeError as error:
            if self.settings.on_malformed == "raise":
                raise StreamError(error.message, code="malformed_event", path=error.path) from error
            self._skipped_bytes += len(message.data)
            if len(following.skipped) >= _MOST_SKIPPED or self._skipped_bytes > self.settings.max_bytes:
                raise StreamError("too many events are malformed", code="malformed_event") from error
            following.skipped.append(Skipped(error.message, error.path, message.data))
            self._gap_at = following.seq  # to read it again would not help
            return None
        if self._expects_start or (isinstance(event, TurnStart) and event.seq <= following.seq):
            self._expects_start = False
            if not isinstance(event, TurnStart) or not following.is_ours(event.turn_id):
                # Another turn of the thread runs by now, or the server has dropped the beginning of this one.
                return Step.SNAPSHOT
        if following.lacks(event):
            step = yield from self._bridge(event)
            if step is not None:
                return step
        if following.has(event):
            following.fold(event)  # a fold that began again from a snapshot needs it; any other has it
            return None
        yield from self._deliver(event, message.last_event_id)
        return Step.OVER if following.terminal is not None else None

    def _deliver(self, event: AgStreamEvent | UnknownEvent, last_event_id: str) -> Plan[None]:
        following = self.following
        if isinstance(event, MessageStart):
            self._mended = False
        ends = following.ends_with(event)
        following.fold(event)
        following.note(event, last_event_id)
        if self._unproved:
            self._prove_by(event)
        self.attempts = 0
        reason = following.view.reducer.resync_reason
        if ends and reason is not None:
            # Before the end is told, so that the result is whole by then.
            yield from self._mend(reason)
            following.fold(event)  # a snapshot from just before it lacks it
        yield event
        if not ends and reason is not None and not self._mended:
            yield from self._mend(reason)

    def _prove_by(self, event: AgStreamEvent | UnknownEvent) -> None:
        """Compare what the user says in the turn with what was sent; it stands at the beginning."""
        if isinstance(event, MessageStart):
            # Messages that the thread had already are not said again, so the agent may be the first to speak.
            self._unproved = event.role == "user" or event.id in (self._said or ())
        if isinstance(event, (MessageStart, MessageEnd)) and self._unproved:
            messages = self.following.view.reducer.result().messages
            message = next((message for message in reversed(messages) if message.id == event.id), None)
            if message is not None:
                self._prove(message, whole=isinstance(event, MessageEnd))

    def _prove(self, message: AgMessage, *, whole: bool = True) -> None:
        sent = None if self._said is None else self._said.get(message.id)
        if self._said is not None and (sent is None or (whole and _words_of(sent) != _words_of(message))):
            raise _turn_id_used(self.following.turn_id)

    def _bridge(self, event: AgStreamEvent | UnknownEvent) -> Plan[Step | None]:
        """Events are missing before this one: read them again if they are kept, or have a snapshot in their place."""
        following = self.following
        if not self._can_mend:
            return None
        if following.last_event_id is not None and self._gap_at != following.seq:
            # Only a source that has threads can be left: the others have no way back.
            if (yield from self._snapshot_if_any()) is None:
                return None
            self._gap_at = following.seq
            self._cause = LinkError(f"events are missing after seq {following.seq}", unsent=False)
            yield from self.wait(self._cause)
            return Step.EVENTS
        yield from self._mend(f"events are missing: {following.seq} was followed by {event.seq}", covers=True)
        return None

    def _mend(self, reason: str, *, covers: bool = False) -> Plan[None]:
        if not self._can_mend:
            return
        self._mended = True
        snapshot = yield from self._snapshot_if_any()
        if snapshot is not None:
            yield from self.following.adopt(snapshot, reason, covers=covers) or ()

    def _snapshot_if_any(self) -> Plan[ThreadSnapshot | None]:
        """The thread's snapshot; None: there is none to be had, and the stream goes on without."""
        try:
            snapshot = yield from self.snapshot(self._thread_id)
        except ClientError as error:
            self._can_mend = not (isinstance(error, RequestError) and is_missing_route(error))
            return None
        return snapshot


def _plain(message: SSEMessage) -> AgStreamEvent | UnknownEvent | None:
    """The message's event if it is one of those that only add to what is open; None: it takes a closer look."""
    try:
        event = ingest_event(message.data)
    except DecodeError:
        return None
    return event if type(event) in _PLAIN else None


def _known(following: Following) -> ThreadSnapshot:
    result = following.view.reducer.result()
    return ThreadSnapshot(
        thread_id=following.view.thread_id, turn_id=None, last_event_id=None, events=(), result=result
    )


def _words_of(message: AgMessage) -> list[str]:
    return [block.text for block in message.content if isinstance(block, TextBlock)]


def _turn_id_used(turn_id: str | None) -> RequestError:
    message = f"the turn id {turn_id!r} is used already, by another input of the thread; choose a new one"
    return RequestError(message, code="turn_id_used", details={"turnId": turn_id})


def _turn_of(refusal: RequestError) -> str | None:
    turn_id = refusal.details.get("turnId")
    return turn_id if isinstance(turn_id, str) else None
