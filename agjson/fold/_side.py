"""What lies beside the messages: artifacts, memory, the shared state (spec §5 artifact.*, memory.write, state.*)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agjson.fold._entities import Artifact
from agjson.fold._json import is_array, is_object
from agjson.fold._state import Fold, Handlers, Park, quoted
from agjson.fold.patch import PatchError, apply_patch
from agjson.types import (
    UNSET,
    AgArtifact,
    AgMemoryRecord,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    JsonValue,
    MemoryWrite,
    StateDelta,
    TextBlock,
)

__all__ = ["SIDE_HANDLERS"]


def _artifact_start(fold: Fold, event: ArtifactStart) -> None:
    base = AgArtifact(
        artifact_id=event.artifact_id,
        turn_id=event.turn_id,
        thread_id=event.thread_id,
        name=event.name,
        description=event.description,
        parts=[],
        extensions=event.extensions,
    )
    fold.artifacts.put(event.artifact_id, Artifact(base))


def _artifact_delta(fold: Fold, event: ArtifactDelta) -> None:
    artifact = _artifact(fold, event.artifact_id)
    last = artifact.parts[-1] if artifact.parts else None
    if event.append and isinstance(event.part, TextBlock) and isinstance(last, TextBlock):
        artifact.tail.append(event.part.text)
    else:
        artifact.settle()
        artifact.parts.append(event.part)
    artifact.outdate()
    fold.artifacts.touch(artifact)


def _artifact_end(fold: Fold, event: ArtifactEnd) -> None:
    _artifact(fold, event.artifact_id)


def _artifact(fold: Fold, artifact_id: str) -> Artifact:
    artifact = fold.artifacts.items.get(artifact_id)
    if artifact is None:
        raise Park("INV-OWNER", f"no event has opened artifact {quoted(artifact_id)}")
    return artifact


def _memory_write(fold: Fold, event: MemoryWrite) -> None:
    place = (event.scope, event.key or "")
    if event.value is not UNSET:
        record = AgMemoryRecord(
            scope=event.scope,
            key=event.key,
            value=event.value,
            reason=event.reason,
            durable=event.durable,
            turn_id=event.turn_id,
        )
        fold.put_memory(record)
        return
    memory = fold.memory.items.get(place)
    if memory is None:
        raise Park(
            "spec §5 memory.write", f"the patch has no record of scope {event.scope!r} with key {quoted(place[1])}"
        )
    changes: dict[str, Any] = {"value": _patched(memory.record.value, event.patch)}
    if event.reason is not None:
        changes["reason"] = event.reason
    if event.durable is not None:
        changes["durable"] = event.durable
    if event.turn_id is not None:
        changes["turn_id"] = event.turn_id
    memory.record = replace(memory.record, **changes)
    fold.memory.touch(memory)


def _state_delta(fold: Fold, event: StateDelta) -> None:
    """A list is a JSON Patch, an object an update by node, anything else changes nothing."""
    patch = event.patch
    if is_array(patch):
        if fold.state is UNSET:
            raise Park("spec §5 state.delta", "there is no state to patch")
        fold.state = _patched(fold.state, patch)
    elif is_object(patch):
        fold.state = _merge_nodes(fold.state, patch)


def _patched(document: JsonValue, patch: Any) -> JsonValue:
    try:
        patched: JsonValue = apply_patch(document, patch)
    except PatchError as error:
        raise Park("RFC 6902", str(error)) from None
    return patched


def _merge_nodes(state: Any, update: Mapping[str, Any]) -> dict[str, Any]:
    """The state with each key of each node written over it (LangGraph ``updates``); neither argument is changed."""
    merged = dict(state) if is_object(state) else {}
    for node, values in update.items():
        old = merged.get(node)
        merged[node] = {**old, **values} if is_object(old) and is_object(values) else values
    return merged


SIDE_HANDLERS: Handlers = {
    ArtifactStart: _artifact_start,
    ArtifactDelta: _artifact_delta,
    ArtifactEnd: _artifact_end,
    MemoryWrite: _memory_write,
    StateDelta: _state_delta,
}
"""What the events beside the messages do to the fold; `state.snapshot` is one of those that un-park."""
