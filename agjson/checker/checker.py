"""The checker: one item at a time in, what it breaks out (spec §5.0, §0.2, §9)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec

from agjson._members import check_members
from agjson.checker import asks, content, lifecycle, records, snapshot, tools
from agjson.checker.fields import beyond_declared, holds_structs
from agjson.checker.rules import Violation
from agjson.checker.state import Tracker
from agjson.errors import DecodeError, EncodeError, UnknownTypeError, ValidationError
from agjson.types import (
    AgentCapabilities,
    AgProfile,
    AgReduceResult,
    AgStreamEvent,
    AgStruct,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    ContentBlock,
    DisplayRequired,
    ErrorEvent,
    ExtEvent,
    GuardrailResult,
    HandoffEvent,
    HitlAsk,
    HostContext,
    MemoryWrite,
    MessageEnd,
    MessageMetadata,
    MessageRemove,
    MessagesSnapshot,
    MessageStart,
    PromptBlocked,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    SourceEvent,
    StateDelta,
    StateSnapshot,
    StepDone,
    StepStart,
    SubagentDone,
    SubagentStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolDone,
    ToolStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
    UiActionResult,
    UiCall,
    UiDataModel,
    UiDisplayMode,
    UiResult,
    UiSurfaceEnd,
    UiSurfaceStart,
    UiSurfaceUpdate,
    UiWidgetResult,
    UnknownEvent,
    profile_needs,
    profiles_above,
)
from agjson.wire import decode_event, ingest_event

__all__ = ["Checker", "Item", "check"]

Item: TypeAlias = AgStreamEvent | UnknownEvent | str | bytes
"""One item of a stream: a typed event, or the JSON text of one."""

_Rule: TypeAlias = Callable[[Tracker, Any], None]


def _live_only(tracker: Tracker, event: object) -> None:
    """An event that concerns no other (spec §5: live-only, non-folding)."""


_RULES: dict[type, _Rule] = {
    TurnStart: lifecycle.turn_start,
    TurnDone: lifecycle.turn_done,
    TurnError: lifecycle.turn_error,
    TurnAbort: lifecycle.turn_abort,
    ErrorEvent: _live_only,
    MessageStart: lifecycle.message_start,
    MessageEnd: lifecycle.message_end,
    MessageRemove: lifecycle.message_remove,
    StepStart: records.step_start,
    StepDone: records.step_done,
    PromptBlocked: records.turn_record,
    AgentCapabilities: records.turn_record,
    MessagesSnapshot: snapshot.messages_snapshot,
    HostContext: _live_only,
    TextStart: content.text_start,
    TextDelta: content.text_delta,
    TextEnd: content.text_end,
    ReasoningStart: content.reasoning_start,
    ReasoningDelta: content.reasoning_delta,
    ReasoningEnd: content.reasoning_end,
    ReasoningOpaque: content.reasoning_opaque,
    ReasoningOpaqueDelta: content.reasoning_opaque_delta,
    ToolStart: tools.tool_start,
    ToolArgsDelta: tools.tool_args_delta,
    ToolArgsAssembled: tools.tool_args_assembled,
    ToolDone: tools.tool_done,
    ContentBlock: content.content_block,
    MessageMetadata: lifecycle.message_metadata,
    SourceEvent: records.source,
    ArtifactStart: records.artifact_start,
    ArtifactDelta: records.artifact_delta,
    ArtifactEnd: records.artifact_end,
    DisplayRequired: records.turn_record,
    SubagentStart: lifecycle.subagent_start,
    SubagentDone: lifecycle.subagent_done,
    HandoffEvent: records.turn_record,
    HitlAsk: asks.hitl_ask,
    UiCall: _live_only,
    UiResult: _live_only,
    UiActionResult: _live_only,
    UiWidgetResult: _live_only,
    UiDisplayMode: _live_only,
    UiSurfaceStart: records.ui_surface_start,
    UiSurfaceUpdate: _live_only,
    UiSurfaceEnd: _live_only,
    UiDataModel: _live_only,
    StateSnapshot: records.state_snapshot,
    StateDelta: records.state_delta,
    MemoryWrite: records.memory_write,
    GuardrailResult: records.turn_record,
    ExtEvent: records.ext_event,
    UnknownEvent: records.unknown_event,
}


@cache
def _table() -> dict[type, _Rule]:
    """The rules by event class; for a class with wire objects inside, those are looked at first."""
    table = {cls: _with_owner(cls, rule) for cls, rule in _RULES.items()}
    for cls, rule in table.items():
        if issubclass(cls, AgStruct) and holds_structs(cls):
            table[cls] = _with_fields(rule)
    return table


# Deltas are compared with their block, with no step to spare; a removal of all may name a turn that does not exist;
# what an unknown event names cannot be read.
_WITHOUT_OWNER = frozenset((TextDelta, ReasoningDelta, ToolArgsDelta, MessageRemove, UnknownEvent))


def _with_owner(cls: type, rule: _Rule) -> _Rule:
    """The rule, and after it, since it may bring the turn, the check of the turn and the message that are named."""
    if cls in _WITHOUT_OWNER:
        return rule

    def check_both(tracker: Tracker, event: Any) -> None:
        before = len(tracker.found)
        rule(tracker, event)
        if event.turn_id is not None or event.message_id is not None:
            tracker.check_named(event, quiet=len(tracker.found) > before)

    return check_both


def _with_fields(rule: _Rule) -> _Rule:
    def check_both(tracker: Tracker, event: Any) -> None:
        for name, path in beyond_declared(event):
            what = "no field" if name == "UNDECLARED-FIELD" else "no block kind"
            tracker.report(name, f"{path} is {what} of this revision")
        rule(tracker, event)

    return check_both


class Checker:
    """Finds what a stream of events breaks of the rules in `RULES`, one item at a time.

    It holds to the producer's posture (spec §0.2): what a consumer must put up with is a violation here. Memory grows
    with the number of distinct ids, not with deltas or text.

    Args:
        profile: the profile that the stream must keep to; None allows all (spec §9).
        known_ids: ids of turns, messages, tool calls, asks and artifacts that the thread had before this stream. They
            may be referred to, and messages, blocks and calls may not use them anew. Given at all, it marks the stream
            as a continuation, so that a patch may change a value that the stream itself has not set.
        initial: the fold of what came before the stream, as a fuller form of the same knowledge.

    Raises:
        ValueError: `profile` is none of `PROFILES`.
    """

    def __init__(
        self,
        profile: AgProfile | None = None,
        *,
        known_ids: Collection[str] | None = None,
        initial: AgReduceResult | None = None,
    ) -> None:
        self._profile = profile
        self._above = frozenset[str]() if profile is None else profiles_above(profile)
        self._rules = _table()
        self._tracker = Tracker(known_ids)
        if initial is not None:
            snapshot.restore(self._tracker, initial)
            # What is wrong with the past is no fault of the stream.
            self._tracker.found.clear()

    def push(self, item: Item) -> list[Violation]:
        """Check the next item.

        Args:
            item: a typed event, as `decode_event`, `ingest_event` or a producer gives it, or the JSON text of one.

        Returns:
            What it breaks; an empty list if nothing.

        Raises:
            TypeError: the item is neither an event nor a text.
        """
        event: Any = item
        cls: type[object] = item.__class__
        if cls is bytes or cls is str:
            try:
                event = decode_event(event)
            except DecodeError as error:
                return self._push_faulty(event, error)
            cls = event.__class__
        rule = self._rules.get(cls) or self._find(event)
        tracker = self._tracker
        tracker.line += 1
        try:
            if event is item:
                self._check_members(event)
            seq = tracker.seq = event.seq
            tracker.last = seq if seq == tracker.last + 1 else _check_seq(tracker, seq)
            rule(tracker, event)
            if self._profile is not None:
                self._check_profile(event)
        except Exception as error:
            # A rule may stumble over a member of the wrong type, which only an object made in Python can have.
            self._report_unreadable(event, f"{type(error).__name__}: {error}")
        if not tracker.found:
            return []
        found, tracker.found = tracker.found, []
        return found

    def finish(self) -> list[Violation]:
        """Check the end of the stream: what is still open, and what was named and never came.

        Returns:
            The violations, in the order of the items that they concern.
        """
        tracker = self._tracker
        lifecycle.end_of_invoke(tracker, tracker.line + 1)
        for source_id, (line, seq) in tracker.cited.items():
            if source_id not in tracker.known_ids:
                tracker.report_at(line, seq, "ANNOUNCE", f"a citation names source `{source_id}`, which never comes")
        tracker.cited.clear()
        found, tracker.found = tracker.found, []
        return sorted(found, key=lambda violation: violation.line)

    def _check_members(self, event: Any) -> None:
        """Report what no text could be read as: Python constructs an event of anything."""
        if isinstance(event, UnknownEvent):
            return
        try:
            check_members(event)
        except (ValidationError, EncodeError) as error:
            # What a lenient reader takes has rules of its own.
            if error.path != "$.seq" and not (isinstance(event, ExtEvent) and error.path == "$.type"):
                self._report_unreadable(event, str(error))

    def _report_unreadable(self, event: Any, why: str) -> None:
        tracker = self._tracker
        if not any(each.rule == "MALFORMED" and each.line == tracker.line for each in tracker.found):
            ordinal = event.seq if isinstance(event.seq, int) else None
            tracker.report_at(
                tracker.line, ordinal, "MALFORMED", f"{event.type}: {why.removeprefix(f'{event.type}: ')}"
            )

    def _find(self, item: object) -> _Rule:
        """The rule for an event with undeclared fields: its class is one made for them, too many to remember."""
        for cls in type(item).__mro__:
            rule = _RULES.get(cls)
            if rule is not None:
                return _with_fields(_with_owner(cls, rule))
        raise TypeError(f"expected an event or its JSON text, got {type(item).__name__}")

    def _push_faulty(self, text: str | bytes, fault: DecodeError) -> list[Violation]:
        """Take a text that no producer may write as a consumer would, where it can be, to go on from there."""
        tracker = self._tracker
        try:
            event = ingest_event(text)
        except DecodeError as error:
            tracker.line += 1
            self._count(text)
            rule = "UNKNOWN-TYPE" if isinstance(error, UnknownTypeError) else "MALFORMED"
            tracker.report(rule, str(error))
            found, tracker.found = tracker.found, []
            return found
        found = self.push(event)
        if not any(violation.rule in ("UNKNOWN-TYPE", "EXT") for violation in found):
            tracker.report("MALFORMED", str(fault))
            found = tracker.found + found
            tracker.found = []
        return found

    def _count(self, text: str | bytes) -> None:
        """Take the ordinal of a malformed event, so that its fault is not reported as a gap as well.

        Without one that can be read it is taken to have had the one that was due.
        """
        tracker = self._tracker
        try:
            ordinal = _Ordinal.decode(text).seq
        except (msgspec.MsgspecError, ValueError, RecursionError):
            ordinal = None
        tracker.seq = ordinal
        if ordinal is None:
            tracker.last += 1
            return
        tracker.last = ordinal if ordinal == tracker.last + 1 else _check_seq(tracker, ordinal)

    def _check_profile(self, item: Any) -> None:
        if isinstance(item, UnknownEvent):
            return
        for profile, path in profile_needs(item):
            if profile in self._above:
                self._tracker.report("PROFILE", f"{path} needs the profile {profile}, not {self._profile}")
                return


class _Seq(msgspec.Struct):
    seq: int | None = None


_Ordinal = msgspec.json.Decoder(_Seq)


def _check_seq(tracker: Tracker, seq: int | float) -> int:
    """Tell why an ordinal does not follow the one before it (spec §5.0 INV-SEQ); returns the one to go on from."""
    last = tracker.last
    if seq < 0 or (not isinstance(seq, int) and not seq.is_integer()):
        tracker.report("INV-SEQ", f"seq {seq} is no ordinal")
        return last + 1
    if seq == 0 and (last > 0 or (last == 0 and not tracker.open_turns)):
        # A new invoke.
        lifecycle.end_of_invoke(tracker, tracker.line)
    elif seq > last + 1:
        missing = f"{last + 1}" if seq == last + 2 else f"{last + 1} to {int(seq) - 1}"
        tracker.report(
            "INV-SEQ", f"seq {seq} comes after {last}: {missing} missing" if last >= 0 else f"seq starts at {seq}"
        )
    elif seq == last:
        tracker.report("INV-SEQ", f"seq {seq} is repeated")
    else:
        tracker.report("INV-SEQ", f"seq goes back from {last} to {seq}; only a new invoke does, to 0")
    return int(seq)


def check(
    events: Iterable[Item],
    *,
    profile: AgProfile | None = None,
    known_ids: Collection[str] | None = None,
    initial: AgReduceResult | None = None,
) -> Iterator[Violation]:
    """Find what a stream breaks of the rules in `RULES`, as it is read.

    Args:
        events: the stream, of any length: typed events, or the JSON text of each.
        profile: the profile that it must keep to; None allows all (spec §9).
        known_ids: ids that its thread had before; see `Checker`.
        initial: the fold of what came before; see `Checker`.

    Yields:
        The violations in the order of the items that show them; what is still open at the end comes last.

    Raises:
        TypeError: an item is neither an event nor a text.
        ValueError: `profile` is none of `PROFILES`.
    """
    checker = Checker(profile, known_ids=known_ids, initial=initial)
    for event in events:
        yield from checker.push(event)
    yield from checker.finish()
