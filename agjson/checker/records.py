"""What lands beside the messages: turn records, artifacts, memory, state, steps, extensions (spec §4, §5, §12)."""

from __future__ import annotations

from collections.abc import Mapping

from agjson.checker.content import check_block
from agjson.checker.state import Entry, Tracker
from agjson.types import (
    UNSET,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    ExtEvent,
    FieldError,
    JsonValue,
    MemoryWrite,
    SourceEvent,
    StateDelta,
    StateSnapshot,
    StepDone,
    StepStart,
    UiSurfaceStart,
    UnknownEvent,
    check_ext_type,
)

__all__ = [
    "artifact_delta",
    "artifact_end",
    "artifact_start",
    "ext_event",
    "memory_write",
    "source",
    "state_delta",
    "state_snapshot",
    "step_done",
    "step_start",
    "turn_record",
    "ui_surface_start",
    "unknown_event",
]

_OPERATIONS = {
    "add": "value",
    "replace": "value",
    "test": "value",
    "move": "from",
    "copy": "from",
    "remove": None,
}


def turn_record(tracker: Tracker, event: Entry) -> None:
    """An event that lands on the record of its turn, which may be closed (spec §5)."""
    tracker.turn_of(event)


def source(tracker: Tracker, event: SourceEvent) -> None:
    """A grounding source; citations name it before or after (spec §5 `source`)."""
    tracker.turn_of(event)
    tracker.sources.add(event.source_id)
    tracker.cited.pop(event.source_id, None)


def step_start(tracker: Tracker, event: StepStart) -> None:
    """Announce a step."""
    tracker.steps.add(event.id)


def step_done(tracker: Tracker, event: StepDone) -> None:
    """End a step that has been announced."""
    if event.id not in tracker.steps and event.id not in tracker.known_ids:
        tracker.report("ANNOUNCE", f"step.done names step `{event.id}`, which has not been started")
        tracker.steps.add(event.id)


def artifact_start(tracker: Tracker, event: ArtifactStart) -> None:
    """Open an artifact, or begin one afresh (spec §5 `artifact.start`, §8 item 11)."""
    turn = tracker.known_turn(event.turn_id)
    if turn.thread_id is not None and turn.thread_id != event.thread_id:
        tracker.report(
            "INV-OWNER",
            f"artifact `{event.artifact_id}` is in thread `{event.thread_id}`, its turn in `{turn.thread_id}`",
        )
    tracker.artifacts[event.artifact_id] = True


def artifact_delta(tracker: Tracker, event: ArtifactDelta) -> None:
    """Add a part to an artifact that is open."""
    _need_open_artifact(tracker, event)
    check_block(tracker, event.part)


def artifact_end(tracker: Tracker, event: ArtifactEnd) -> None:
    """Seal an artifact."""
    _need_open_artifact(tracker, event)
    tracker.artifacts[event.artifact_id] = False


def _need_open_artifact(tracker: Tracker, event: ArtifactDelta | ArtifactEnd) -> None:
    artifact_id = event.artifact_id
    is_open = tracker.artifacts.get(artifact_id)
    if is_open is None:
        if artifact_id not in tracker.known_ids:
            tracker.report("INV-OWNER", f"{event.type} names artifact `{artifact_id}`, which does not exist")
        tracker.artifacts[artifact_id] = True
    elif not is_open:
        tracker.report("ARTIFACT", f"{event.type} for artifact `{artifact_id}`, which has ended")
        tracker.artifacts[artifact_id] = True


def state_snapshot(tracker: Tracker, event: StateSnapshot) -> None:
    """Set the shared state."""
    tracker.has_state = True


def state_delta(tracker: Tracker, event: StateDelta) -> None:
    """Change the shared state: an array is a JSON Patch, an object a node update (spec §5 `state.delta`).

    Whether each operation finds its target is not looked at: that would take the state itself.
    """
    patch = event.patch
    if isinstance(patch, list):
        _check_patch(tracker, patch, "state.delta")
        if not tracker.has_state and not tracker.continued:
            tracker.report("PATCH", "state.delta patches a state that no state.snapshot has set")
            tracker.has_state = True
    elif isinstance(patch, Mapping):
        tracker.has_state = True


def memory_write(tracker: Tracker, event: MemoryWrite) -> None:
    """Write or patch a memory record; a patch needs a value that the thread has set before (spec §5)."""
    key = event.key or ""
    keys = tracker.memory.setdefault(event.scope, set())
    if event.patch is UNSET:
        keys.add(key)
        return
    _check_patch(tracker, event.patch, "memory.write")
    if key not in keys:
        if not tracker.continued:
            name = "the default record" if not event.key else f"record `{event.key}`"
            tracker.report("PATCH", f"memory.write patches {name} of scope {event.scope}, which no value has set")
        keys.add(key)


def _check_patch(tracker: Tracker, patch: JsonValue, what: str) -> None:
    if not isinstance(patch, list):
        tracker.report("PATCH", f"the patch of {what} is no array of operations")
        return
    for index, operation in enumerate(patch):
        fault = _fault_of(operation)
        if fault is not None:
            tracker.report("PATCH", f"operation {index} of {what} {fault}")


def _fault_of(operation: JsonValue) -> str | None:
    """What is wrong with the form of one operation (RFC 6902 §4, RFC 6901 §3)."""
    if not isinstance(operation, Mapping):
        return "is no object"
    name = operation.get("op")
    if not isinstance(name, str) or name not in _OPERATIONS:
        return f"has the unknown op {name!r}"
    member = _OPERATIONS[name]
    if member is not None and member not in operation:
        return f"lacks `{member}`"
    for pointer in ("path", "from") if member == "from" else ("path",):
        value = operation.get(pointer)
        if not isinstance(value, str) or (value and not value.startswith("/")):
            return f"has a `{pointer}` that is no JSON Pointer"
    path = operation["path"]
    if name == "remove" and path == "":
        return "removes the whole document"
    if name == "move" and str(path).startswith(f"{operation['from']}/"):
        return "moves a value into itself"
    return None


def ui_surface_start(tracker: Tracker, event: UiSurfaceStart) -> None:
    """A surface may name the call that made it."""
    if event.tool_call_id is not None:
        tracker.need_call(event.tool_call_id, f"surface `{event.surface_id}`")


def ext_event(tracker: Tracker, event: ExtEvent) -> None:
    """A vendor extension has a well-formed name."""
    try:
        check_ext_type(event.type)
    except FieldError as error:
        tracker.report("EXT", error.message)


def unknown_event(tracker: Tracker, event: UnknownEvent) -> None:
    """An event that this revision does not define."""
    tracker.report("UNKNOWN-TYPE", f"event type `{event.type}` is none of this revision")
