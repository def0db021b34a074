"""Tool calls and results: ids, order, and the flags that must agree (spec §2, §2.2, §4, §5, §5.0 INV-BLOCK)."""

from __future__ import annotations

from agjson.checker.state import Call, Message, Tracker
from agjson.types import UNSET, ToolArgsAssembled, ToolArgsDelta, ToolDone, ToolResultBlock, ToolStart

__all__ = [
    "add_call",
    "call_is_taken",
    "check_result",
    "given_fields",
    "tool_args_assembled",
    "tool_args_delta",
    "tool_done",
    "tool_start",
]

_OPAQUE = frozenset(("structured_content", "ui_data", "side_data"))

# The optional fields of a result that a final one must restate, by Python and by wire name.
_RESULT_FIELDS = (
    ("outcome", "outcome"),
    ("structured_content", "structuredContent"),
    ("ui_data", "uiData"),
    ("side_data", "sideData"),
    ("error_text", "errorText"),
    ("error_code", "errorCode"),
    ("provider_metadata", "providerMetadata"),
    ("tool_metadata", "toolMetadata"),
    ("dynamic", "dynamic"),
    ("pending_input", "pendingInput"),
    ("is_error", "isError"),
)


def tool_start(tracker: Tracker, event: ToolStart) -> None:
    """Announce a tool call under an id that is free."""
    call_id = event.tool_call_id
    if call_is_taken(tracker, call_id):
        tracker.report("INV-BLOCK", f"tool.start names call `{call_id}`, an id that is taken")
        _assemble(tracker, call_id)
        message = tracker.nowhere
    else:
        message = tracker.target(event, event.candidate_index)
    add_call(tracker, call_id, message, whole=False)


def tool_args_delta(tracker: Tracker, event: ToolArgsDelta) -> None:
    """Add to the arguments of a call."""
    call = tracker.calls.get(event.tool_call_id)
    if call is None:
        _unknown_call(tracker, event)
    elif call.whole:
        tracker.report("INV-BLOCK", f"tool.args.delta for call `{event.tool_call_id}`, which came whole")
        call.message, call.whole = tracker.nowhere, False
    elif not call.message.open:
        tracker.report("INV-MSG", f"tool.args.delta for call `{event.tool_call_id}` of a sealed message or closed turn")
        call.message = tracker.nowhere
    elif event.turn_id is not None:
        _check_turn_of_call(tracker, event, call)


def tool_args_assembled(tracker: Tracker, event: ToolArgsAssembled) -> None:
    """Complete the arguments of a call."""
    if event.signature == "":
        tracker.report("OPAQUE", f"call `{event.tool_call_id}` gets an empty signature")
    call = tracker.calls.get(event.tool_call_id)
    if call is None:
        _unknown_call(tracker, event)
        return
    _check_turn_of_call(tracker, event, call)
    _assemble(tracker, event.tool_call_id)


def _assemble(tracker: Tracker, call_id: str) -> None:
    call = tracker.calls.get(call_id)
    if call is not None and not call.assembled:
        call.assembled = True
        call.home.dangling -= 1
        if call.home.turn is not None:
            call.home.turn.unassembled.pop(call_id, None)


def call_is_taken(tracker: Tracker, call_id: str) -> bool:
    """Tell whether a call of this id is in the fold, or in the thread before it (spec §5.0 INV-BLOCK)."""
    call = tracker.calls.get(call_id)
    return (call is not None and call.message is not tracker.nowhere) or call_id in tracker.known_ids


def add_call(tracker: Tracker, call_id: str, message: Message, *, whole: bool) -> None:
    """Record a call that this item announces."""
    call = tracker.calls[call_id] = Call(message, whole=whole)
    tracker.announced_calls.add(call_id)
    if message is tracker.nowhere:
        return
    message.calls.append(call_id)
    if not whole:
        message.dangling += 1
        if message.turn is not None:
            message.turn.unassembled[call_id] = call


def _unknown_call(tracker: Tracker, event: ToolArgsDelta | ToolArgsAssembled) -> None:
    tracker.report("INV-BLOCK", f"{event.type} names call `{event.tool_call_id}`, which has not been started")
    tracker.announced_calls.add(event.tool_call_id)
    call = tracker.calls[event.tool_call_id] = Call(tracker.nowhere, whole=False)
    call.assembled = True


def _check_turn_of_call(tracker: Tracker, event: ToolArgsDelta | ToolArgsAssembled, call: Call) -> None:
    turn = call.message.turn
    if event.turn_id is not None and turn is not None and turn.id != event.turn_id:
        tracker.report("INV-OWNER", f"{event.type} names turn `{event.turn_id}`, its call is in `{turn.id}`")
        call.message = tracker.nowhere


def tool_done(tracker: Tracker, event: ToolDone) -> None:
    """Land a result: in the message it adopts, else in the open one; a final one closes what partial ones left open."""
    call_id = event.tool_call_id
    call = tracker.calls.get(call_id)
    if call is None:
        tracker.need_call(call_id, "tool.done")
    elif not call.assembled:
        tracker.report("ASSEMBLED", f"tool.done for call `{call_id}` without tool.args.assembled before it")
        _assemble(tracker, call_id)
    check_result(tracker, event)
    given = given_fields(event)
    partial = _partial(tracker, event)
    if partial is not None:
        message, before = partial
        if message.shut:
            tracker.report("INV-MSG", f"a change to the result of call `{call_id}` in a sealed message or closed turn")
        elif not tracker.is_of(event, message.turn_id, f"the result of call `{call_id}`"):
            pass
        elif not event.more and before - given:
            fields = ", ".join(sorted(before - given))
            tracker.report("PARTIAL-LEFTOVER", f"the final result of call `{call_id}` omits {fields}")
    else:
        message = _landing(tracker, event)
        before = frozenset[str]()
    if event.more:
        tracker.keep_partial(call_id, message, before | given)
    elif partial is not None:
        tracker.drop_partial(call_id)


def given_fields(result: ToolDone | ToolResultBlock) -> frozenset[str]:
    """The optional fields that a result gives, by wire name; null counts in the opaque ones."""
    return frozenset(
        wire_name
        for name, wire_name in _RESULT_FIELDS
        if (value := getattr(result, name)) is not UNSET and (value is not None or name in _OPAQUE)
    )


def _partial(tracker: Tracker, event: ToolDone) -> tuple[Message, frozenset[str]] | None:
    """The partial result that an event continues; one that a closed turn left is not continued in another turn."""
    partial = tracker.partials.get(event.tool_call_id)
    if partial is not None and event.turn_id is not None:
        turn = partial[0].turn
        if turn is not None and turn.closed is not None and turn.id != event.turn_id:
            return None
    return partial


def _landing(tracker: Tracker, event: ToolDone) -> Message:
    """The message that a result lands in (spec §5 `tool.done`, §8 item 15 adoption)."""
    name = event.message_id
    if name is None:
        return tracker.target(event, event.candidate_index)
    message = tracker.messages.get(name)
    if message is None:
        turn = tracker.known_turn(event.turn_id) if event.turn_id is not None else tracker.sole_turn()
        if turn is None:
            return tracker.nowhere
        if turn.closed is not None:
            tracker.report("INV-MSG", f"a result for turn `{turn.id}`, which {turn.closed} has closed")
            return tracker.nowhere
        message = Message(name, turn, event.candidate_index or 0, tracker.line)
        tracker.enter_message(message)
    elif message.shut:
        tracker.report("INV-MSG", f"a result for message `{name}`, which is sealed or in a closed turn")
        return tracker.nowhere
    elif event.turn_id is not None and message.turn_id is not None and message.turn_id != event.turn_id:
        tracker.report("INV-OWNER", f"a result names turn `{event.turn_id}`, its message is in `{message.turn_id}`")
    message.filled = True
    return message


def check_result(tracker: Tracker, result: ToolDone | ToolResultBlock) -> None:
    """Flags that say the same thing say the same (spec §2 `tool-result`, §2.2)."""
    name = f"the result of call `{result.tool_call_id}`"
    outcome = result.outcome
    if result.error_text is not None and outcome != "error":
        tracker.report("RESULT", f"{name} has errorText with outcome {_word(outcome)}")
    if result.is_error is not None and outcome is not None and result.is_error != (outcome == "error"):
        tracker.report("RESULT", f"{name} has isError {str(result.is_error).lower()} with outcome {_word(outcome)}")
    if result.pending_input is not None and outcome != "input_required":
        tracker.report("RESULT", f"{name} has pendingInput with outcome {_word(outcome)}")
    if isinstance(result, ToolDone) and result.preliminary is not None and result.preliminary != bool(result.more):
        tracker.report("RESULT", f"{name} has preliminary {str(result.preliminary).lower()}, which `more` contradicts")


def _word(outcome: str | None) -> str:
    return "absent" if outcome is None else f"`{outcome}`"
