"""Violations inside messages and beside them: blocks, calls, results, signatures, artifacts, patches, asks."""

from __future__ import annotations

from typing import Any

import msgspec

from agjson.testing.mutation import GHOST, pick, planted
from agjson.testing.source import Source
from agjson.testing.tracing import Edit, Item, Trace
from agjson.types import (
    UNSET,
    AgPausedAsk,
    AgPendingInput,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    ExtEvent,
    HitlAsk,
    JsonValue,
    MemoryWrite,
    MessagesSnapshot,
    OffsetCitation,
    PausedOutcome,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    StateDelta,
    StateSnapshot,
    StepDone,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolDone,
    ToolStart,
    TurnDone,
    TurnStart,
)

__all__: list[str] = []


def _copied(trace: Trace, index: int | None) -> list[Item] | None:
    """The stream with an event said twice."""
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.insert(index + 1, trace.events[index])
    return edit.items()


def _changed(trace: Trace, index: int | None, **changes: Any) -> list[Item] | None:
    """The stream with some fields of an event changed."""
    if index is None:
        return None
    event = trace.events[index]
    assert not isinstance(event, ExtEvent)
    edit = Edit(trace.events)
    edit.replace(index, msgspec.structs.replace(event, **changes))
    return edit.items()


def _dropped(trace: Trace, index: int | None) -> list[Item] | None:
    """The stream without an event."""
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.remove(index)
    return edit.items()


def _inserted(source: Source, trace: Trace, event: Any) -> list[Item] | None:
    """The stream with an event of one of the open turns put in somewhere."""
    index = pick(source, [place for place, turns in enumerate(trace.open_before) if turns and place > 0])
    if index is None:
        return None
    edit = Edit(trace.events)
    edit.insert(index, msgspec.structs.replace(event, turn_id=trace.open_before[index][0]))
    return edit.items()


# Blocks


@planted("duplicate-block-id", "INV-BLOCK")
def duplicate_block_id(source: Source, trace: Trace) -> list[Item] | None:
    """Two text blocks have one id."""
    return _copied(trace, pick(source, trace.indexes(TextStart)))


@planted("duplicate-tool-call-id", "INV-BLOCK")
def duplicate_tool_call_id(source: Source, trace: Trace) -> list[Item] | None:
    """Two tool calls have one id."""
    return _copied(trace, pick(source, trace.indexes(ToolStart)))


@planted("delta-to-unknown-block", "INV-BLOCK")
def delta_to_unknown_block(source: Source, trace: Trace) -> list[Item] | None:
    """A fragment names a block that nothing has started."""
    return _inserted(source, trace, TextDelta(seq=0, id=GHOST, delta="x"))


@planted("delta-after-block-end", "INV-BLOCK")
def delta_after_block_end(source: Source, trace: Trace) -> list[Item] | None:
    """A fragment names a block that has ended."""
    index = pick(source, trace.indexes(TextEnd))
    if index is None:
        return None
    event = trace.events[index]
    edit = Edit(trace.events)
    edit.insert(index + 1, TextDelta(seq=0, id=event.id or "", delta="x", turn_id=trace.turn_of(event, index)))
    return edit.items()


@planted("duplicate-block-end", "INV-BLOCK")
def duplicate_block_end(source: Source, trace: Trace) -> list[Item] | None:
    """A block is ended twice."""
    return _copied(trace, pick(source, trace.indexes(TextEnd)))


# Announcements


@planted("result-for-unknown-call", "ANNOUNCE")
def result_for_unknown_call(source: Source, trace: Trace) -> list[Item] | None:
    """A result names a call that nothing has announced."""
    return _changed(trace, pick(source, trace.indexes(ToolDone)), tool_call_id=GHOST)


@planted("end-of-unknown-step", "ANNOUNCE")
def end_of_unknown_step(source: Source, trace: Trace) -> list[Item] | None:
    """A step is ended that nothing has started."""
    return _changed(trace, pick(source, trace.indexes(StepDone)), id=GHOST)


@planted("citation-of-unknown-source", "ANNOUNCE")
def citation_of_unknown_source(source: Source, trace: Trace) -> list[Item] | None:
    """A citation names a source that never comes."""
    citation = OffsetCitation(
        cited_text="x", start_index=0, end_index=1, source_ids=[GHOST], unit="byte", bounds="[start,end)"
    )
    return _changed(trace, pick(source, trace.indexes(TextEnd)), citations=[citation])


@planted("ask-for-unknown-call", "ANNOUNCE")
def ask_for_unknown_call(source: Source, trace: Trace) -> list[Item] | None:
    """An ask gates a call that nothing has announced."""
    return _changed(trace, pick(source, trace.indexes(HitlAsk)), tool_call_id=GHOST)


@planted("drop-args-assembled", "ASSEMBLED")
def drop_args_assembled(source: Source, trace: Trace) -> list[Item] | None:
    """A call with a result never gets its arguments as a whole."""
    ends = [
        call.end
        for call in trace.calls.values()
        if call.end is not None and call.results and not trace.disturbed(call.end, call.results[0])
    ]
    return _dropped(trace, pick(source, ends))


# Results


def _finals(trace: Trace) -> list[int]:
    """The results that neither are partial nor follow a partial one."""
    calls = {event.tool_call_id for event in trace.events if isinstance(event, ToolDone) and event.more}
    return [
        index
        for index, event in enumerate(trace.events)
        if isinstance(event, ToolDone) and event.tool_call_id not in calls
    ]


@planted("error-text-without-error", "RESULT")
def error_text_without_error(source: Source, trace: Trace) -> list[Item] | None:
    """A result that went well explains an error."""
    return _changed(trace, pick(source, _finals(trace)), outcome="ok", error_text="failed", is_error=None)


@planted("is-error-contradicts-outcome", "RESULT")
def is_error_contradicts_outcome(source: Source, trace: Trace) -> list[Item] | None:
    """A result's ``isError`` and ``outcome`` disagree."""
    return _changed(trace, pick(source, _finals(trace)), outcome="ok", is_error=True, error_text=None)


@planted("pending-input-without-pause", "RESULT")
def pending_input_without_pause(source: Source, trace: Trace) -> list[Item] | None:
    """A finished result waits for input."""
    pending = AgPendingInput(input_keys=["k"])
    index = pick(source, _finals(trace))
    return _changed(trace, index, outcome="ok", pending_input=pending, error_text=None, is_error=None)


@planted("preliminary-final-result", "RESULT")
def preliminary_final_result(source: Source, trace: Trace) -> list[Item] | None:
    """A final result calls itself preliminary."""
    return _changed(trace, pick(source, _finals(trace)), preliminary=True, more=None)


@planted("partial-leftover", "PARTIAL-LEFTOVER")
def partial_leftover(source: Source, trace: Trace) -> list[Item] | None:
    """A final result omits what a partial one gave."""
    pairs = [
        (call.results[-2], call.results[-1])
        for call in trace.calls.values()
        if len(call.results) > 1 and not trace.disturbed(call.results[-2], call.results[-1])
    ]
    pairs = [
        (partial, final)
        for partial, final in pairs
        if getattr(trace.events[partial], "more", None) and not getattr(trace.events[final], "more", None)
    ]
    if not pairs:
        return None
    partial, final = source.choice(pairs)
    edit = Edit(trace.events)
    before, after = trace.events[partial], trace.events[final]
    assert isinstance(before, ToolDone) and isinstance(after, ToolDone)
    edit.replace(partial, msgspec.structs.replace(before, tool_metadata={"k": 1}))
    edit.replace(final, msgspec.structs.replace(after, tool_metadata=None))
    return edit.items()


# Signatures


def _sealed(trace: Trace, *, collected: bool) -> list[int]:
    """The seals of signatures that were, or were not, collected from fragments."""
    fragments = {event.id for event in trace.events if isinstance(event, ReasoningOpaqueDelta)}
    return [index for index in trace.indexes(ReasoningOpaque) if (trace.events[index].id in fragments) is collected]


@planted("empty-signature", "OPAQUE")
def empty_signature(source: Source, trace: Trace) -> list[Item] | None:
    """A reasoning block gets an empty signature."""
    return _changed(trace, pick(source, _sealed(trace, collected=False)), value="")


@planted("signature-differs-from-fragments", "OPAQUE")
def signature_differs_from_fragments(source: Source, trace: Trace) -> list[Item] | None:
    """A signature is not what its fragments add up to."""
    index = pick(source, _sealed(trace, collected=True))
    value = getattr(trace.events[index], "value", "") if index is not None else ""
    return _changed(trace, index, value=f"{value}x")


@planted("empty-call-signature", "OPAQUE")
def empty_call_signature(source: Source, trace: Trace) -> list[Item] | None:
    """A tool call gets an empty signature."""
    return _changed(trace, pick(source, trace.indexes(ToolArgsAssembled)), signature="")


# Artifacts


@planted("undeclared-artifact", "INV-OWNER")
def undeclared_artifact(source: Source, trace: Trace) -> list[Item] | None:
    """A part is added to an artifact that nothing has started."""
    part = TextBlock(text="x")
    return _inserted(source, trace, ArtifactDelta(seq=0, artifact_id=GHOST, part=part, append=False))


@planted("drop-artifact-start", "INV-OWNER")
def drop_artifact_start(source: Source, trace: Trace) -> list[Item] | None:
    """An artifact grows that nothing has started."""
    places: list[int] = []
    for index in trace.indexes(ArtifactStart):
        for event in trace.events[index + 1 :]:
            if isinstance(event, MessagesSnapshot):
                break
            start = trace.events[index]
            assert isinstance(start, ArtifactStart)
            if isinstance(event, ArtifactDelta | ArtifactEnd) and event.artifact_id == start.artifact_id:
                places.append(index)
                break
    return _dropped(trace, pick(source, places))


@planted("artifact-after-its-end", "ARTIFACT")
def artifact_after_its_end(source: Source, trace: Trace) -> list[Item] | None:
    """A part is added to an artifact that has ended."""
    index = pick(source, trace.indexes(ArtifactEnd))
    if index is None:
        return None
    event = trace.events[index]
    assert isinstance(event, ArtifactEnd)
    part = ArtifactDelta(
        seq=0, artifact_id=event.artifact_id, part=TextBlock(text="x"), append=True, turn_id=event.turn_id
    )
    edit = Edit(trace.events)
    edit.insert(index + 1, part)
    return edit.items()


# Patches


@planted("patch-of-absent-state", "PATCH")
def patch_of_absent_state(source: Source, trace: Trace) -> list[Item] | None:
    """A state is patched before any snapshot has set it."""
    first = next((index for index, event in enumerate(trace.events) if isinstance(event, TurnStart)), None)
    if first is None or any(isinstance(event, StateSnapshot | StateDelta) for event in trace.events[:first]):
        return None
    edit = Edit(trace.events)
    patch: JsonValue = [{"op": "add", "path": "/k", "value": 1}]
    edit.insert(first + 1, StateDelta(seq=0, patch=patch, turn_id=trace.events[first].turn_id))
    return edit.items()


@planted("patch-of-absent-memory", "PATCH")
def patch_of_absent_memory(source: Source, trace: Trace) -> list[Item] | None:
    """A memory record is patched that no value has set."""
    patch: JsonValue = [{"op": "add", "path": "/k", "value": 1}]
    return _inserted(source, trace, MemoryWrite(seq=0, scope="thread", key=GHOST, patch=patch))


@planted("malformed-patch", "PATCH")
def malformed_patch(source: Source, trace: Trace) -> list[Item] | None:
    """A JSON Patch holds an operation that RFC 6902 does not define."""
    places = [
        index
        for index, event in enumerate(trace.events)
        if (isinstance(event, StateDelta) and isinstance(event.patch, list))
        or (isinstance(event, MemoryWrite) and event.patch is not UNSET)
    ]
    fault = source.choice([{"op": "merge", "path": ""}, {"op": "add", "path": "k", "value": 1}, {"op": "remove"}])
    return _changed(trace, pick(source, places), patch=[fault])


# Asks


@planted("duplicate-ask", "HITL")
def duplicate_ask(source: Source, trace: Trace) -> list[Item] | None:
    """An ask is opened twice."""
    return _copied(trace, pick(source, trace.indexes(HitlAsk)))


def _pauses(trace: Trace) -> list[int]:
    return [index for index in trace.indexes(TurnDone) if _asks(trace, index)]


def _asks(trace: Trace, index: int) -> list[AgPausedAsk]:
    event = trace.events[index]
    return list(event.outcome.asks) if isinstance(event, TurnDone) and isinstance(event.outcome, PausedOutcome) else []


@planted("pause-on-unknown-ask", "HITL")
def pause_on_unknown_ask(source: Source, trace: Trace) -> list[Item] | None:
    """A turn pauses on an ask that nothing has opened."""
    index = pick(source, _pauses(trace))
    if index is None:
        return None
    asks = [*_asks(trace, index), AgPausedAsk(ask_id=GHOST, kind="approval")]
    return _changed(trace, index, outcome=PausedOutcome(asks=asks))


@planted("pause-leaves-ask-out", "HITL")
def pause_leaves_ask_out(source: Source, trace: Trace) -> list[Item] | None:
    """A turn pauses without naming an ask that it waits for."""
    index = pick(source, _pauses(trace))
    if index is None:
        return None
    asks = _asks(trace, index)
    free = {event.ask_id for event in trace.events if isinstance(event, HitlAsk) and event.continuation == "turn"}
    bound = [ask for ask in asks if ask.ask_id not in free]
    if not bound:
        return None
    asks.remove(source.choice(bound))
    return _changed(trace, index, outcome=PausedOutcome(asks=asks))


@planted("pause-on-changed-ask", "HITL")
def pause_on_changed_ask(source: Source, trace: Trace) -> list[Item] | None:
    """A turn pauses on another ask than the one that was opened under the id."""
    index = pick(source, _pauses(trace))
    if index is None:
        return None
    asks = _asks(trace, index)
    place = source.integer(0, len(asks) - 1)
    kind = "text" if asks[place].kind != "text" else "approval"
    asks[place] = msgspec.structs.replace(asks[place], kind=kind)
    return _changed(trace, index, outcome=PausedOutcome(asks=asks))


@planted("pause-with-another-reason", "HITL")
def pause_with_another_reason(source: Source, trace: Trace) -> list[Item] | None:
    """A paused outcome comes with a finish reason that is no pause."""
    return _changed(trace, pick(source, _pauses(trace)), finish_reason="stop")
