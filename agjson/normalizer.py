"""The normalizer: native events of one framework in, AgJSON events out, never an exception (spec §8.0)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, Unpack, get_args

from agjson.emitter import Emitter, EmitterSettings
from agjson.failures import Failure, OnFailure, describe_failure, is_cancellation
from agjson.jsonable import jsonable
from agjson.types import AgFinishReason, AgOutcome, AgStreamEvent, AgUsage, JsonValue

__all__ = ["HOST_SENTINELS", "HostAbort", "HostEnd", "HostError", "HostSentinel", "Normalizer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnd:
    """The framework's stream ended by itself; the driver pushes this in place of a native event (spec §8.0).

    Attributes:
        outcome: how the turn ended, if the driver knows; None: the normalizer decides.
        finish_reason: why the model stopped, if the driver knows.
        usage: the tokens of the run, if the framework tells them outside its stream.
        detail: whatever the adapter's driver wants its normalizer to know, such as the framework's run result.
    """

    outcome: AgOutcome | None = None
    finish_reason: AgFinishReason | None = None
    usage: AgUsage | None = None
    detail: object = None


@dataclass(frozen=True, slots=True)
class HostError:
    """The framework raised; the driver pushes this in place of a native event (spec §8.0 thrown terminals).

    Attributes:
        error: the exception, or the error in words.
        code: the error's code; None: as the exception says.
        retriable: whether trying again may help; None: as the exception says.
        usage: what the turn had cost by then; None: as the normalizer knows.
        detail: whatever the adapter's driver wants its normalizer to know.
    """

    error: BaseException | str
    code: str | None = None
    retriable: bool | None = None
    usage: AgUsage | None = None
    detail: object = None


@dataclass(frozen=True, slots=True)
class HostAbort:
    """The run was stopped from outside; the driver pushes this in place of a native event (spec §8 item 17).

    Attributes:
        reason: why: ``cancelled``, ``client-closed`` and the like.
    """

    reason: str = "cancelled"


HostSentinel: TypeAlias = HostEnd | HostError | HostAbort
"""What a driver pushes beside native events."""

HOST_SENTINELS: frozenset[type] = frozenset(get_args(HostSentinel))
"""Their classes."""

_NOTHING = object()


class Normalizer(ABC):
    """Turns the native events of one invoke into AgJSON events (spec §8.0). One instance serves one invoke.

    A subclass implements `_on` and calls `out`, the `Emitter`. The base class guarantees the contract:

    * `push` never raises an `Exception`: what was emitted before it stays, the native event goes out whole as
      ``ext.<vendor>.unparsed``, and a non-terminal `error` (``normalizer_error``) says what happened;
    * `flush` closes what is open, once; what is pushed later becomes a visible `error` (``stream_ended``);
    * a turn ends once: by what the native stream says, else by the sentinel that the driver pushes, else at `flush` as
      ``turn.abort`` with reason ``stream-truncated``.

    ``KeyboardInterrupt``, ``SystemExit``, ``GeneratorExit`` and cancellation pass through `push`; events emitted before
    them come with the next call.

    Class attributes:
        vendor: the vendor segment of the adapter's extensions: ``anthropic``, ``google``, ``openai`` or ``langgraph``
            for these, ``agjson`` for any other.
        ends_itself: the native stream has a terminal of its own, so a `HostEnd` without one means that it was cut off.

    Args:
        turn_id: the turn of this invoke.
        thread_id: the conversation.
        **settings: those of the `Emitter`, such as ``known_ids``; `EmitterSettings` explains each. A subclass with
            settings of its own takes these in the same form and hands them on.

    Attributes:
        on_failure: decides what the stream says of an exception; of the exception itself the subclass then sees
            nothing but that. None: the exception is told as it is.
    """

    on_failure: OnFailure | None = None

    vendor: ClassVar[str] = "agjson"
    ends_itself: ClassVar[bool] = False

    def __init__(self, turn_id: str, thread_id: str, **settings: Unpack[EmitterSettings]) -> None:
        self.out = Emitter(turn_id, thread_id, **settings)
        self._flushed = False

    @property
    def turn_id(self) -> str:
        """The turn of this invoke."""
        return self.out.turn_id

    @property
    def thread_id(self) -> str:
        """The conversation."""
        return self.out.thread_id

    # The contract

    def push(self, native: object) -> list[AgStreamEvent]:
        """Take one native event, or a sentinel of the driver.

        Args:
            native: the event in any form that the adapter reads, plain data included, or a `HostEnd`, `HostError` or
                `HostAbort`.

        Returns:
            The events that it makes, perhaps none.
        """
        try:
            if self._flushed:
                self._late(native)
            elif type(native) in HOST_SENTINELS:
                self._on_sentinel(native)
            else:
                self._on(self._plain(native))
        except Exception as error:
            self._failed(native, error)
        return self.out.drain()

    def flush(self) -> list[AgStreamEvent]:
        """End the stream (spec §5.0 INV-FLUSH). To be called once; a second call returns an empty list.

        Returns:
            The last events.
        """
        if not self._flushed:
            try:
                self._on_flush()
            except Exception as error:
                self._failed(_NOTHING, error)
            self._flushed = True
            self.out.flush()
        return self.out.drain()

    # What an adapter implements

    @abstractmethod
    def _on(self, native: Any) -> None:
        """Handle one native event by calls on `out`.

        Args:
            native: what `_plain` made of the event.
        """

    def _plain(self, native: object) -> Any:
        """Convert a native event at the door; the default is `jsonable`. May raise."""
        return jsonable(native)

    def _on_end(self, end: HostEnd) -> None:
        """Close the turn at the normal end of the framework's stream.

        The default does nothing for a turn that is closed, and for a native stream that `ends_itself`. Else it pauses a
        turn with asks for which the driver names no outcome, and otherwise closes it as the driver says, success and
        ``stop`` by default.
        """
        if self.ends_itself or not self.out.is_open():
            return
        if end.outcome is None and end.finish_reason is None and self.out.pending_asks():
            self.out.turn_paused(usage=end.usage, turn_id=self.turn_id)
        else:
            self.out.turn_done(
                outcome=end.outcome, finish_reason=end.finish_reason or "stop", usage=end.usage, turn_id=self.turn_id
            )

    def _on_error(self, error: HostError) -> None:
        """Close the turn for an exception: `turn.error`, or `turn.abort` for a cancellation.

        On a turn that is closed already the exception becomes a non-terminal `error`.
        """
        raised = error.error
        if isinstance(raised, BaseException) and is_cancellation(raised):
            self._on_abort(HostAbort())
            return
        told = self._describe(raised) if isinstance(raised, BaseException) else Failure(raised, "host_error", None)
        code = error.code or told.code
        retriable = told.retriable if error.retriable is None else error.retriable
        if self.out.is_open():
            usage = error.usage or self._usage_so_far()
            self.out.turn_error(told.message, code=code, retriable=retriable, usage=usage, turn_id=self.turn_id)
        else:
            self.out.error(told.message, code=code, retriable=retriable, turn_id=self.turn_id)

    def _on_abort(self, abort: HostAbort) -> None:
        """Close the turn for a stop from outside; does nothing for a turn that is closed."""
        if self.out.is_open():
            self.out.turn_abort(abort.reason, turn_id=self.turn_id)

    def _on_flush(self) -> None:  # noqa: B027  # most adapters hold nothing back
        """Release what was held back, just before everything open is closed (spec §8 item 14). May raise."""

    def _describe(self, error: BaseException) -> Failure:
        """What an exception says about itself; an adapter that knows the framework's exceptions overrides it."""
        return describe_failure(error)

    def _usage_so_far(self) -> AgUsage | None:
        """The tokens that the turn has cost so far, for `turn.error`; an adapter that knows them overrides it."""
        return None

    # What an adapter calls

    def unparsed(self, native: object, reason: str) -> None:
        """Carry a native event that has no mapping, whole, as ``ext.<vendor>.unparsed`` (spec §8.0 degradation).

        Args:
            native: the event, in any form.
            reason: why it could not be mapped, for people.
        """
        self.out.ext(f"ext.{self.vendor}.unparsed", {"reason": reason, "raw": jsonable(native)})

    # Sentinels and failures

    def _on_sentinel(self, sentinel: object) -> None:
        if isinstance(sentinel, HostEnd):
            self._on_end(sentinel)
        elif isinstance(sentinel, HostError):
            self._on_error(self._told(sentinel))
        elif isinstance(sentinel, HostAbort):
            self._on_abort(sentinel)
        if self.out.is_open():
            # Even a run without a single event has a turn, which `flush` then aborts.
            self.out.turn_start()

    def _told(self, error: HostError) -> HostError:
        """An exception in the words of `on_failure`; what an adapter would read from the exception is not there."""
        raised = error.error
        if self.on_failure is None or not isinstance(raised, BaseException) or is_cancellation(raised):
            return error
        told = self.on_failure(raised, self._describe(raised))
        retriable = told.retriable if error.retriable is None else error.retriable
        return replace(error, error=told.message, code=error.code or told.code, retriable=retriable)

    def _late(self, native: object) -> None:
        if isinstance(native, HostError):
            native = self._told(native)
        if not isinstance(native, (HostEnd, HostAbort)):
            meta: dict[str, JsonValue] = {"agjson/refused": jsonable(native)}
            self.out.error("a native event after the end of the stream", code="stream_ended", meta=meta)

    def _failed(self, native: object, error: Exception) -> None:
        """Make a failure visible; even where that fails, do not raise."""
        told = describe_failure(error)
        message = f"{type(self).__name__}: {type(error).__name__}: {told.message}"
        if self.on_failure is not None:
            message = self.on_failure(error, told).message
        try:
            if isinstance(native, HostError):
                native = self._told(native)
            if native is not _NOTHING:
                self.unparsed(native, message)
            self.out.error(message, code="normalizer_error", turn_id=self.turn_id)
            # A terminal is not lost with the hook that should have told it.
            if isinstance(native, HostError):
                Normalizer._on_error(self, native)
        except Exception:
            self.out.error(message[:500], code="normalizer_error", turn_id=self.turn_id)
