"""Legal next steps of a stream beside its messages: records, memory, state, artifacts, asks, surfaces, snapshots."""

from __future__ import annotations

from typing import Any

from agjson.testing.model import Call, Message, Turn
from agjson.testing.patches import applicable_patch, is_object
from agjson.testing.writer import StreamWriter
from agjson.types import (
    UNSET,
    AgArtifact,
    AgBlock,
    AgCapabilities,
    AgentCapabilities,
    AgMemoryRecord,
    AgMessage,
    AgTurnRecord,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    DisplayRequired,
    ErrorEvent,
    GuardrailResult,
    HandoffEvent,
    HitlAsk,
    HostContext,
    MemoryWrite,
    MessagesSnapshot,
    PromptBlocked,
    SourceEvent,
    StateDelta,
    StateSnapshot,
    TextBlock,
    ToolCallBlock,
    UiActionResult,
    UiCall,
    UiDataModel,
    UiDisplayMode,
    UiResult,
    UiSurfaceEnd,
    UiSurfaceStart,
    UiSurfaceUpdate,
    UiWidgetResult,
)

__all__: list[str] = []

_CROSS_THREAD = ("agent", "user", "skill")


def _turn(writer: StreamWriter) -> Turn | None:
    """An open turn, at times a closed one, none before the first."""
    model = writer.model
    if model.open_turns and not writer.source.chance(8):
        return writer.source.choice(model.open_turns)
    return writer.source.choice(list(model.turns.values())) if model.turns else None


def has_turn(writer: StreamWriter) -> bool:
    """Some turn has been announced."""
    return bool(writer.model.turns)


# Records of a turn


def source_event(writer: StreamWriter) -> None:
    """Name a grounding source; from then on citations may name it."""
    source_id = writer.new_id("source")
    writer.emit(SourceEvent, _turn(writer), source_id=source_id)
    writer.model.sources.append(source_id)


def record(writer: StreamWriter) -> None:
    """Add a handoff, a guardrail verdict or a block of the prompt to a turn's record."""
    kinds: list[type[Any]] = [HandoffEvent, GuardrailResult]
    if writer.level == 2:
        kinds += [PromptBlocked, DisplayRequired]
    writer.emit(writer.source.choice(kinds), _turn(writer))


def capabilities_unsent(writer: StreamWriter) -> bool:
    """The agent's capabilities go out once per thread."""
    return has_turn(writer) and not writer.model.capabilities_sent


def capabilities(writer: StreamWriter) -> None:
    """Advertise what the agent can do."""
    capabilities = writer.values.build(AgCapabilities, profile=writer.source.choice([None, writer.options.profile]))
    writer.emit(AgentCapabilities, _turn(writer), capabilities=capabilities)
    writer.model.capabilities_sent = True


# Live-only events


def error(writer: StreamWriter) -> None:
    """Emit an advisory that ends nothing."""
    writer.emit(ErrorEvent, _turn(writer))


def host_context(writer: StreamWriter) -> None:
    """Emit a host hint."""
    writer.emit(HostContext, _turn(writer))


def ext(writer: StreamWriter) -> None:
    """Emit a vendor extension."""
    turn = _turn(writer)
    envelope: dict[str, Any] = {"turn_id": turn.id if turn is not None else None}
    if writer.source.chance(20):
        envelope["meta"] = writer.source.json_object(1)
    writer.append(writer.values.ext(seq=writer.seq, **envelope))


# Artifacts


def start_artifact(writer: StreamWriter) -> None:
    """Open an artifact."""
    turn = writer.source.choice(writer.model.open_turns)
    artifact_id = writer.new_id("artifact")
    writer.emit(ArtifactStart, turn_id=turn.id, thread_id=writer.options.thread_id, artifact_id=artifact_id)
    writer.model.artifacts.append(artifact_id)


def has_artifact(writer: StreamWriter) -> bool:
    """Some artifact is open."""
    return bool(writer.model.artifacts and writer.model.turns)


def advance_artifact(writer: StreamWriter) -> None:
    """Add to an open artifact, or end it."""
    source, model = writer.source, writer.model
    artifact_id = source.choice(model.artifacts)
    if source.chance(25):
        writer.emit(ArtifactEnd, _turn(writer), artifact_id=artifact_id)
        model.artifacts.remove(artifact_id)
        return
    part: AgBlock = writer.values.build(TextBlock) if source.chance(60) else writer.values.block()
    writer.emit(ArtifactDelta, _turn(writer), artifact_id=artifact_id, part=part, append=source.chance(50))


# Memory and state


def write_memory(writer: StreamWriter) -> None:
    """Set a memory record."""
    source, model = writer.source, writer.model
    scope = source.choice(("thread", "thread", "thread", *_CROSS_THREAD))
    key = source.choice([None, "k", "notes", "a/b~c"])
    value = source.json()
    writer.emit(MemoryWrite, _turn(writer), scope=scope, key=key, value=value, patch=UNSET)
    model.memory[scope, key] = value


def has_memory(writer: StreamWriter) -> bool:
    """Some memory record can be patched."""
    return bool(writer.model.memory and writer.model.turns)


def patch_memory(writer: StreamWriter) -> None:
    """Patch a memory record."""
    model = writer.model
    scope, key = writer.source.choice(list(model.memory))
    patch, value = applicable_patch(writer.source, model.memory[scope, key])
    writer.emit(MemoryWrite, _turn(writer), scope=scope, key=key, patch=patch, value=UNSET)
    model.memory[scope, key] = value


def set_state(writer: StreamWriter) -> None:
    """Replace the shared state."""
    value = writer.source.json_object() if writer.source.chance(70) else writer.source.json()
    writer.emit(StateSnapshot, _turn(writer), snapshot=value)
    writer.model.state = value


def has_state(writer: StreamWriter) -> bool:
    """There is a shared state."""
    return writer.model.state is not UNSET and has_turn(writer)


def patch_state(writer: StreamWriter) -> None:
    """Change the shared state by a JSON Patch."""
    patch, writer.model.state = applicable_patch(writer.source, writer.model.state)
    writer.emit(StateDelta, _turn(writer), patch=patch)


def merge_state(writer: StreamWriter) -> None:
    """Change the shared state by a node update (spec §5 `state.delta`): per node its keys are replaced."""
    source, model = writer.source, writer.model
    state = model.state if is_object(model.state) else None
    update: dict[str, Any] = {}
    # An empty update of what is no object would leave open whether an object takes its place.
    for _ in range(source.integer(1 if state is None else 0, 2)):
        node = source.choice([*(state or ()), "node"]) if source.chance(60) else source.text(0, 6)
        update[node] = source.json_object() if source.chance(80) else source.json()
    writer.emit(StateDelta, _turn(writer), patch=update)
    merged = dict(state or {})
    for node, value in update.items():
        old = merged.get(node)
        merged[node] = {**old, **value} if is_object(old) and is_object(value) else value
    model.state = merged


# Asks


def ask(writer: StreamWriter) -> None:
    """Ask a person; the turn then ends paused, or not well."""
    source, model = writer.source, writer.model
    turn = source.choice(model.open_turns)
    kind = source.choice(["approval", "form", "text", "choice", "auth", "url"])
    given: dict[str, Any] = {}
    calls = [call.id for call in model.calls if call.message is not None and call.message.turn is turn]
    if calls and source.chance(50):
        given["tool_call_id"] = source.choice(calls)
    paused = writer.paused_ask(kind=kind, **given)
    shared = {name: getattr(paused, name) for name in paused.__struct_fields__}
    writer.emit(HitlAsk, turn, **shared)
    turn.asks.append(paused)


# Surfaces


def start_surface(writer: StreamWriter) -> None:
    """Create an A2UI surface."""
    surface_id = writer.new_id("surface")
    writer.emit(UiSurfaceStart, _turn(writer), surface_id=surface_id)
    writer.model.surfaces.append(surface_id)


def has_surface(writer: StreamWriter) -> bool:
    """Some surface exists."""
    return bool(writer.model.surfaces and writer.model.turns)


def advance_surface(writer: StreamWriter) -> None:
    """Do something with a surface: draw on it, call it, answer it, end it."""
    source, model = writer.source, writer.model
    surface_id = source.choice(model.surfaces)
    turn = _turn(writer)
    way = source.integer(0, 9)
    if way == 0:
        writer.emit(UiSurfaceUpdate, turn, surface_id=surface_id)
    elif way == 1:
        writer.emit(UiDataModel, turn, surface_id=surface_id)
    elif way == 2:
        writer.emit(UiActionResult, turn, surface_id=surface_id)
    elif way == 3:
        writer.emit(UiWidgetResult, turn, surface_id=surface_id)
    elif way == 4:
        writer.emit(UiDisplayMode, turn, surface_id=surface_id)
    elif way == 5:
        writer.emit(UiSurfaceEnd, turn, surface_id=surface_id)
        model.surfaces.remove(surface_id)
        model.ui_calls = [call for call in model.ui_calls if call[0] != surface_id]
    elif model.ui_calls:
        surface_id, call_id, method = model.ui_calls.pop()
        writer.emit(UiResult, turn, surface_id=surface_id, call_id=call_id, method=method)
    else:
        call_id, method = writer.new_id("ui"), source.text(1, 6)
        writer.emit(UiCall, turn, surface_id=surface_id, call_id=call_id, method=method)
        model.ui_calls.append((surface_id, call_id, method))


# Snapshots


def can_snapshot(writer: StreamWriter) -> bool:
    """No message is open, for a snapshot would cut it off from its end; a stream has two snapshots at most."""
    return not writer.model.open_messages and writer.model.snapshots < 2


def snapshot(writer: StreamWriter) -> None:
    """Replace the messages, and the containers that the snapshot carries (spec §5 `messages.snapshot`)."""
    source, model = writer.source, writer.model
    model.snapshots += 1
    for turn in model.turns.values():
        turn.messages = []
        turn.pointers = {}
    model.messages = {}
    model.blocks = []
    # Calls that were not answered yet live on only if their message does, and none does.
    model.calls = []
    given: dict[str, Any] = {"turns": None, "artifacts": None, "memory": None}
    given["messages"] = [_message(writer) for _ in range(source.integer(0, 2))]
    if source.chance(60):
        given["turns"] = [_turn_record(writer, turn) for turn in model.turns.values()]
    if writer.level == 2 and source.chance(40):
        given["artifacts"] = _artifacts(writer)
    if writer.level >= 1 and source.chance(40):
        given["memory"] = _memory(writer)
    writer.emit(MessagesSnapshot, **given)


def _message(writer: StreamWriter) -> AgMessage:
    source, model = writer.source, writer.model
    message_id = writer.new_id("message")
    blocks: list[AgBlock] = writer.values.blocks()
    role = source.choice(["user", "assistant", "system", "tool"])
    if not model.turns:
        return writer.values.build(AgMessage, id=message_id, role=role, content=blocks)
    turn = source.choice(list(model.turns.values()))
    message = Message(message_id, turn, role, sealed=True)
    model.messages[message_id] = message
    if source.chance(40):
        call = Call(writer.new_id("call"), message)
        blocks.append(writer.values.build(ToolCallBlock, tool_call_id=call.id))
        model.calls.append(call)
    thread_id = writer.options.thread_id
    return writer.values.build(
        AgMessage, id=message_id, role=role, content=blocks, turn_id=turn.id, thread_id=thread_id
    )


def _turn_record(writer: StreamWriter, turn: Turn) -> AgTurnRecord:
    thread_id = writer.options.thread_id
    # Without an outcome the turn is open (spec §5.0 INV-TURN); a closed one always has an outcome.
    given: dict[str, Any] = {"outcome": turn.outcome}
    if turn.open:
        given["finish_reason"] = None
    return writer.values.build(
        AgTurnRecord, turn_id=turn.id, parent_turn_id=turn.parent_id, thread_id=thread_id, **given
    )


def _artifacts(writer: StreamWriter) -> list[AgArtifact]:
    source, model = writer.source, writer.model
    model.artifacts = []
    if not model.turns:
        return []
    artifacts: list[AgArtifact] = []
    for _ in range(source.integer(0, 2)):
        artifact_id = writer.new_id("artifact")
        turn = source.choice(list(model.turns.values()))
        artifacts.append(
            writer.values.build(
                AgArtifact, artifact_id=artifact_id, turn_id=turn.id, thread_id=writer.options.thread_id
            )
        )
        model.artifacts.append(artifact_id)
    return artifacts


def _memory(writer: StreamWriter) -> list[AgMemoryRecord]:
    source, model = writer.source, writer.model
    for scope, key in [identity for identity in model.memory if identity[0] == "thread"]:
        del model.memory[scope, key]
    records: list[AgMemoryRecord] = []
    for key in [None, "k", "notes"][: source.integer(0, 3)]:
        record = writer.values.build(AgMemoryRecord, scope="thread", key=key)
        model.memory["thread", key] = record.value
        records.append(record)
    return records
