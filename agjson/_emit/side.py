"""What stands beside the messages: steps, sources, artifacts, state, memory, extensions (spec §4, §5, §12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from msgspec.structs import replace

from agjson._emit.base import Gate
from agjson._emit.settings import EmitterSettings
from agjson._emit.state import Envelope, OwnId, Turn
from agjson._emit.turns import EmitterTurns
from agjson.fold.patch import PatchError, apply_patch
from agjson.types import (
    UNSET,
    AgArtifact,
    AgBlock,
    AgHandoffKind,
    AgMemoryRecord,
    AgMemoryScope,
    AgProviderMeta,
    AgSourcePayload,
    AgUsage,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    ExtEvent,
    HandoffEvent,
    JsonValue,
    ListOf,
    MemoryWrite,
    Number,
    SourceEvent,
    StateDelta,
    StateSnapshot,
    StepDone,
    StepStart,
    UnsetType,
)

__all__ = ["EmitterSide"]


class EmitterSide(EmitterTurns):
    """Everything beside the messages."""

    def __init__(self, turn_id: str, thread_id: str, settings: EmitterSettings, gate: Gate | None) -> None:
        super().__init__(turn_id, thread_id, settings, gate)
        # Native and emitted ids of steps.
        self._steps: dict[str, str] = {}
        # Native and emitted ids of artifacts; true while parts may come.
        self._artifacts: dict[str, tuple[str, bool]] = {}
        self._known_artifacts = self._known.artifacts
        # What a patch needs to be tried on before it goes out: one that fails parks every fold.
        self._state: JsonValue | UnsetType = settings.get("state", UNSET)
        self._memory: dict[tuple[str, str], JsonValue] = {
            (record.scope, record.key or ""): record.value for record in settings.get("memory", ())
        }

    # Steps

    def step_start(
        self,
        id: str | None = None,
        *,
        step_name: str | None = None,
        turn_id: str | None = None,
        **own: Unpack[OwnId],
    ) -> str:
        """Begin an iteration of the agent's loop; live only (spec §5 step.start).

        Args:
            id: the native id; absent: one is derived.
            step_name: its name.
            turn_id: the turn; absent: the current one.
            **own: ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The step's id as emitted: ``<id>#2`` where a step has it already.
        """
        turn = self._owner_beside(turn_id, own.get("message_id"))
        return self._begin_step(turn, id, step_name, **own)

    def _begin_step(self, turn: Turn, native: str | None, step_name: str | None, **own: Unpack[OwnId]) -> str:
        id = self._renamed(native, self._steps) if native else self._derived(turn, "step")
        self._put(StepStart(seq=self._seq, id=id, step_name=step_name, turn_id=turn.id, **own))
        self._steps[native or id] = self._steps[id] = id
        self._used.add(id)
        turn.steps.append(id)
        return id

    def step_done(
        self,
        id: str | None = None,
        *,
        step_name: str | None = None,
        usage: AgUsage | None = None,
        turn_id: str | None = None,
        **own: Unpack[OwnId],
    ) -> None:
        """End an iteration of the agent's loop; live only (spec §5 step.done).

        Args:
            id: the step, by native or emitted id; absent: the one begun last in the turn. One never begun is begun
                first.
            step_name: its name.
            usage: its tokens, verbatim.
            turn_id: the turn; absent: the current one.
            **own: ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner_beside(turn_id, own.get("message_id"))
        if not id and turn.steps:
            id = turn.steps[-1]
        elif id in self._steps:
            id = self._steps[id]
        else:
            id = self._begin_step(turn, id, step_name)
        if id in turn.steps:
            turn.steps.remove(id)
        self._put(StepDone(seq=self._seq, id=id, step_name=step_name, usage=usage, turn_id=turn.id, **own))

    # Records of the turn

    def source(
        self,
        source: AgSourcePayload,
        *,
        source_id: str | None = None,
        chunk_index: Number | None = None,
        provider_metadata: AgProviderMeta | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> str:
        """Emit a grounding source, in the order of the provider's chunks (spec §5 source).

        Args:
            source: the source.
            source_id: its id, which citations name; absent: one is derived.
            chunk_index: its place among the grounding chunks, from 0.
            provider_metadata: values that go back to the provider.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The source's id.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        source_id = source_id or self._derived(turn, "source")
        self._put(
            SourceEvent(
                seq=self._seq,
                source_id=source_id,
                source=source,
                chunk_index=chunk_index,
                provider_metadata=provider_metadata,
                turn_id=turn.id,
                **envelope,
            )
        )
        self._used.add(source_id)
        return source_id

    def handoff(
        self,
        *,
        kind: AgHandoffKind | None = None,
        from_agent_id: str | None = None,
        to_agent_id: str | None = None,
        to_agent_name: str | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Record that one agent hands over to another (spec §5 handoff).

        Args:
            kind: what kind of handoff.
            from_agent_id: who hands over.
            to_agent_id: who takes over.
            to_agent_name: that agent's name for people.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        self._put(
            HandoffEvent(
                seq=self._seq,
                kind=kind,
                from_agent_id=from_agent_id,
                to_agent_id=to_agent_id,
                to_agent_name=to_agent_name,
                turn_id=turn.id,
                **envelope,
            )
        )

    # Artifacts

    def artifact_start(
        self,
        artifact_id: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        extensions: list[str] | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> str:
        """Open an artifact, or begin one afresh: the same id replaces what it had (spec §5, §8 item 11).

        Args:
            artifact_id: the native id; absent: one is derived.
            name: its name.
            description: what it is.
            extensions: URIs of active A2A extensions.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The artifact's id.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        start = ArtifactStart(
            seq=self._seq,
            artifact_id=artifact_id or self._derived(turn, "artifact"),
            turn_id=turn.id,
            thread_id=self._thread_id,
            name=name,
            description=description,
            extensions=extensions,
            **envelope,
        )
        return self._begin_artifact(start)

    def _begin_artifact(self, start: ArtifactStart) -> str:
        self._put(replace(start, seq=self._seq))
        self._artifacts[start.artifact_id] = start.artifact_id, True
        self._used.add(start.artifact_id)
        return start.artifact_id

    def _artifact(self, artifact_id: str, turn: Turn) -> str:
        """The emitted id of an artifact that takes parts, opened if none does under this id."""
        id, is_open = self._artifacts.get(artifact_id, (artifact_id, None))
        if is_open or (is_open is None and id in self._known_artifacts):
            return id
        # Begun afresh under its own id, one that has ended would lose what it has.
        fresh = id if is_open is None else self._renamed(artifact_id, self._artifacts)
        self._begin_artifact(
            ArtifactStart(seq=self._seq, artifact_id=fresh, turn_id=turn.id, thread_id=self._thread_id)
        )
        self._artifacts[artifact_id] = fresh, True
        return fresh

    def artifact_delta(
        self,
        artifact_id: str,
        part: AgBlock,
        *,
        append: bool = False,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> str:
        """Add to an artifact (spec §5 artifact.delta).

        Args:
            artifact_id: the artifact; one never opened is opened, and one that has ended is continued in ``<id>#2``.
            part: the block to add.
            append: true joins it to the last part, false begins a new part.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Returns:
            The artifact's id as emitted.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        event = ArtifactDelta(
            seq=self._seq,
            artifact_id=artifact_id,
            part=part,
            append=append,
            turn_id=turn.id,
            **envelope,
        )
        id = self._artifact(artifact_id, turn)
        self._put(replace(event, seq=self._seq, artifact_id=id))
        return id

    def artifact_end(
        self,
        artifact_id: str,
        *,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Seal an artifact (spec §5 artifact.end); one that has ended already emits nothing.

        Args:
            artifact_id: the artifact; one never opened is opened first.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        if artifact_id in self._artifacts and not self._artifacts[artifact_id][1]:
            return
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        id = self._artifact(artifact_id, turn)
        self._put(ArtifactEnd(seq=self._seq, artifact_id=id, turn_id=turn.id, **envelope))
        self._artifacts[artifact_id] = self._artifacts[id] = id, False

    # State and memory

    def state_snapshot(
        self,
        snapshot: JsonValue,
        *,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Replace the shared state (spec §5 state.snapshot).

        Args:
            snapshot: the state; not to be changed afterwards.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        self._put(StateSnapshot(seq=self._seq, snapshot=snapshot, turn_id=turn.id, **envelope))
        self._state = snapshot

    def state_delta(
        self,
        patch: JsonValue,
        *,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Change the shared state (spec §5 state.delta).

        A JSON Patch is tried on the state first: one without a state to work on, or one that fails, would park every
        fold, so it is refused visibly (``patch_failed``).

        Args:
            patch: a list is an RFC 6902 JSON Patch, an object LangGraph's ``{node: {key: value}}``.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        if isinstance(patch, tuple):
            patch = list(patch)
        event = StateDelta(seq=self._seq, patch=patch, turn_id=turn.id, **envelope)
        state = self._state
        if isinstance(patch, list):
            try:
                state = _patched(state, patch)
            except PatchError as error:
                self._refuse(event, turn, "patch_failed", f"state.delta: {error}")
                return
        elif isinstance(patch, Mapping):
            state = _merged(state, patch)
        self._put(event)
        self._state = state

    def memory_write(
        self,
        scope: AgMemoryScope,
        *,
        key: str | None = None,
        value: JsonValue | UnsetType = UNSET,
        patch: JsonValue | UnsetType = UNSET,
        reason: str | None = None,
        durable: bool | None = None,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Set or patch a memory record (spec §5 memory.write); a failing patch is refused as by `state_delta`.

        Args:
            scope: whom it belongs to.
            key: which record; absent is the scope's default one.
            value: what to remember; excludes `patch`.
            patch: an RFC 6902 JSON Patch of the record's value; excludes `value`.
            reason: why.
            durable: it outlives the thread.
            turn_id: the turn; absent: the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Raises:
            FieldError: not exactly one of ``value`` and ``patch``.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        event = MemoryWrite(
            seq=self._seq,
            scope=scope,
            key=key,
            value=value,
            patch=list(patch) if isinstance(patch, tuple) else patch,
            reason=reason,
            durable=durable,
            turn_id=turn.id,
            **envelope,
        )
        place = (scope, key or "")
        if event.value is UNSET:
            try:
                value = _patched(self._memory.get(place, UNSET), event.patch)
            except PatchError as error:
                self._refuse(event, turn, "patch_failed", f"memory.write: {error}")
                return
        self._put(event)
        assert value is not UNSET
        self._memory[place] = value

    def _after_snapshot(self, artifacts: ListOf[AgArtifact] | None, memory: ListOf[AgMemoryRecord] | None) -> None:
        if artifacts is not None:
            self._known_artifacts = frozenset[str]()
            self._artifacts = {artifact.artifact_id: (artifact.artifact_id, True) for artifact in artifacts}
        if memory is not None:
            self._memory = {place: value for place, value in self._memory.items() if place[0] != "thread"}
            for record in memory:
                if record.scope == "thread":
                    self._memory.setdefault((record.scope, record.key or ""), record.value)

    # Extensions

    def ext(
        self,
        type: str,
        payload: JsonValue,
        *,
        turn_id: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> None:
        """Emit a vendor extension with any payload (spec §12); live only, allowed in any profile.

        Args:
            type: ``ext.<vendor>.<key>``, the vendor ``agjson`` or a reserved one for its own framework.
            payload: any JSON value. An object is spread into the event, what collides with the envelope rides under
                ``shadowed``; anything else rides under ``value``.
            turn_id: the turn; absent: that of the message, else the current one.
            **envelope: ``id``, ``message_id``, ``parent_id``, ``meta``.

        Raises:
            FieldError: the name breaks the rule of spec §0.3.
        """
        turn = self._owner_beside(turn_id, envelope.get("message_id"))
        self._put(ExtEvent.embed(type, payload, seq=self._seq, turn_id=turn.id, **envelope))


def _patched(value: JsonValue | UnsetType, patch: Any) -> JsonValue:
    if value is UNSET:
        raise PatchError("there is no value to patch")
    patched: JsonValue = apply_patch(value, patch)
    return patched


def _merged(state: JsonValue | UnsetType, update: Mapping[str, JsonValue]) -> JsonValue:
    """The state with each key of each node written over it (LangGraph ``updates``)."""
    merged: dict[str, JsonValue] = dict(state) if isinstance(state, Mapping) else {}
    for node, values in update.items():
        old = merged.get(node)
        merged[node] = {**old, **values} if isinstance(old, Mapping) and isinstance(values, Mapping) else values
    return merged
