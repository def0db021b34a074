"""Typed values made from the types themselves: every field of every class, optional ones present or absent.

A new field of a class is generated without a change here; what this module adds by hand are the rules between fields
(spec §2-§7) and the few texts that have a form of their own.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from agjson.testing.source import Source
from agjson.types import (
    BLOCK_TYPES,
    SOURCE_PAYLOAD_ARMS,
    SPEC_VERSION,
    SURFACE_ARMS,
    UNSET,
    AgA2uiError,
    AgA2uiSurfaceAction,
    AgAnnotations,
    AgBlock,
    AgHitlAnswer,
    AgMemoryRecord,
    AgMessage,
    AgOpaque,
    AgPausedAsk,
    AgReduceResult,
    AgToolResult,
    AgTurnRecord,
    AgUiError,
    AgUsage,
    BareUrlSource,
    DataBlock,
    ExtEvent,
    HitlAsk,
    MemoryWrite,
    MessageRemove,
    MessagesSnapshot,
    MessageStart,
    OffsetCitation,
    PausedOutcome,
    ReasoningOpaque,
    ResumeInput,
    SourcePayload,
    StartInput,
    SubagentDone,
    SubagentStart,
    SurfaceInteraction,
    ToolArgsAssembled,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    ToolResultInput,
    UnsetType,
)

__all__ = ["ValueBuilder"]

T = TypeVar("T", bound=msgspec.Struct)
Fields: TypeAlias = dict[str, Any]
Maker: TypeAlias = Callable[["ValueBuilder"], Any]

_VERSIONS = (SPEC_VERSION, "1.0.0", "1.4.2", "1.0.0-draft.2+build.5")
_VENDORS = ("agjson", "acme", "anthropic", "google", "openai", "langgraph", "a-1")


class ValueBuilder:
    """Makes instances of the wire types that are valid by construction.

    Args:
        source: where the choices come from.
        richness: how many optional fields are set, in percent.
        keep: which optional fields may be set at all, asked with the class and the Python field name.
        block_kinds: the wire types of the blocks that may occur.
        source_ids: what citations may name as their sources; None for any text.
    """

    def __init__(
        self,
        source: Source,
        *,
        richness: int = 35,
        keep: Callable[[type, str], bool] | None = None,
        block_kinds: Sequence[str] | None = None,
        source_ids: list[str] | None = None,
    ) -> None:
        self.source = source
        self.richness = richness
        self.keep = keep
        self.block_kinds = tuple(block_kinds) if block_kinds is not None else tuple(BLOCK_TYPES)
        self.source_ids = source_ids
        self.depth = 0

    def build(self, cls: type[T], **given: Any) -> T:
        """An instance of ``cls``.

        Args:
            cls: a wire class.
            **given: fields that are fixed, by Python name; `UNSET` or None leaves an optional field out.

        Raises:
            FieldError: the given fields break a rule of the class.
        """
        values = dict(given)
        required, optional = _plan(cls)
        for name, maker in required:
            if name not in values:
                values[name] = maker(self)
        if optional and self.richness and self.source.chance(self.richness + 20):
            for name, maker in optional:
                allowed = name not in values and (self.keep is None or self.keep(cls, name))
                if allowed and self.source.chance(self.richness):
                    values[name] = maker(self)
        fix = _FIXES.get(cls)
        if fix is not None:
            fix(self, values)
        return cls(**values)

    def block(self) -> AgBlock:
        """A content block of one of the allowed kinds."""
        kind = self.source.choice(self.block_kinds)
        self.depth += 1
        try:
            return self.build(BLOCK_TYPES[kind])
        finally:
            self.depth -= 1

    def blocks(self, max_size: int = 2) -> list[AgBlock]:
        """A list of blocks; deep inside other blocks it is empty."""
        if self.depth >= 2:
            return []
        return [self.block() for _ in range(self.source.integer(0, max_size))]

    def ext(self, **envelope: Any) -> ExtEvent:
        """A vendor extension event; ``seq`` and the other envelope fields are given by Python name."""
        key = self.source.choice(["frame", "custom", "unparsed", "a.b", "Key_1"])
        payload: Any = self.source.json() if self.source.chance(30) else self.source.json_object()
        envelope.setdefault("seq", 0)
        return ExtEvent.embed(f"ext.{self.source.choice(_VENDORS)}.{key}", payload, **envelope)


def _text(builder: ValueBuilder) -> str:
    return builder.source.text()


def _number(builder: ValueBuilder) -> int | float:
    return builder.source.integer(0, 9) if builder.source.chance(70) else builder.source.number()


def _json(builder: ValueBuilder) -> Any:
    return builder.source.json()


def _flag(builder: ValueBuilder) -> bool:
    return builder.source.integer(0, 1) == 1


def _object(builder: ValueBuilder) -> Any:
    return builder.source.json_object(1)


def _small(builder: ValueBuilder) -> int:
    return builder.source.integer(0, 2**53 - 1) if builder.source.chance(20) else builder.source.integer(0, 9)


def _source_payload(builder: ValueBuilder) -> Any:
    return builder.build(builder.source.choice([BareUrlSource, *SOURCE_PAYLOAD_ARMS.values()]))


def _surface(builder: ValueBuilder) -> Any:
    return builder.build(builder.source.choice(list(SURFACE_ARMS.values())))


@cache
def _plan(cls: type[msgspec.Struct]) -> tuple[list[tuple[str, Maker]], list[tuple[str, Maker]]]:
    hints = get_type_hints(cls, include_extras=False)
    filled: Mapping[str, object] = getattr(cls, "__wire_defaults__", {})
    required: list[tuple[str, Maker]] = []
    optional: list[tuple[str, Maker]] = []
    for field in msgspec.structs.fields(cls):
        if field.name in filled:
            continue
        maker = _SPECIAL.get((cls, field.name)) or _maker(hints[field.name])
        (required if field.required else optional).append((field.name, maker))
    return required, optional


def _maker(hint: Any) -> Maker:
    """The function that makes a value of a type hint."""
    if hint in _BY_HINT:
        return _BY_HINT[hint]
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin is Literal:
        return lambda builder: builder.source.choice(arguments)
    if origin is list:
        item = _maker(arguments[0])
        return lambda builder: [item(builder) for _ in range(builder.source.integer(0, 2))]
    if origin is dict:
        if isinstance(arguments[1], type) and issubclass(arguments[1], AgUsage):
            return _usage_by_model
        return _object
    if origin in (Union, types.UnionType):
        return _union([argument for argument in arguments if argument is not UnsetType])
    supertype = getattr(hint, "__supertype__", None)
    if supertype is not None:
        return _maker(supertype)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return lambda builder: builder.build(hint)
    raise TypeError(f"No generator for {hint!r}")


def _union(arms: list[Any]) -> Maker:
    if set(arms) == {int, float}:
        return _number
    if set(arms) == set(BLOCK_TYPES.values()):
        return ValueBuilder.block
    if len(arms) == 1:
        return _maker(arms[0])
    makers = [_maker(arm) for arm in arms if arm is not int] if float in arms else [_maker(arm) for arm in arms]
    return lambda builder: builder.source.choice(makers)(builder)


def _usage_by_model(builder: ValueBuilder) -> dict[str, AgUsage]:
    return {builder.source.text(): builder.build(AgUsage, by_model=None) for _ in range(builder.source.integer(0, 2))}


_BY_HINT: dict[Any, Maker] = {
    str: _text,
    bool: _flag,
    int: _small,
    float: _number,
    Any: _json,
    list[AgBlock]: ValueBuilder.blocks,
    SourcePayload: _source_payload,
    SurfaceInteraction: _surface,
}


def _timestamp(builder: ValueBuilder) -> str:
    return f"2026-0{builder.source.integer(1, 9)}-1{builder.source.integer(0, 9)}T12:00:00Z"


def _opaque_value(builder: ValueBuilder) -> str:
    # An empty signature is never emitted and never replayed.
    return builder.source.text(1, 8)


def _version(builder: ValueBuilder) -> str:
    return builder.source.choice(_VERSIONS)


def _cited_sources(builder: ValueBuilder) -> list[str]:
    if builder.source_ids is None:
        return [builder.source.text() for _ in range(builder.source.integer(0, 2))]
    if not builder.source_ids:
        return []
    return [builder.source.choice(builder.source_ids) for _ in range(builder.source.integer(0, 2))]


_SPECIAL: dict[tuple[type, str], Maker] = {
    (AgAnnotations, "last_modified"): _timestamp,
    (AgOpaque, "value"): _opaque_value,
    (ReasoningOpaque, "value"): _opaque_value,
    (ToolArgsAssembled, "signature"): _opaque_value,
    (ToolCallBlock, "signature"): _opaque_value,
    (AgA2uiSurfaceAction, "timestamp"): _timestamp,
    (AgPausedAsk, "expires_at"): _timestamp,
    (HitlAsk, "expires_at"): _timestamp,
    (OffsetCitation, "source_ids"): _cited_sources,
    (StartInput, "version"): _version,
    (ResumeInput, "version"): _version,
    (ToolResultInput, "version"): _version,
}


def _fix_result(builder: ValueBuilder, values: Fields) -> None:
    """The flags of a tool result say the same thing (spec §2 `tool-result`, §2.2)."""
    outcome = values.get("outcome")
    if outcome != "error":
        values.pop("error_text", None)
    if outcome != "input_required":
        values.pop("pending_input", None)
    if values.get("is_error") is not None:
        values["is_error"] = outcome == "error"
    if not values.get("more"):
        values.pop("preliminary", None)


def _fix_result_block(builder: ValueBuilder, values: Fields) -> None:
    preliminary = values.get("preliminary")
    _fix_result(builder, values)
    if preliminary is not None:
        values["preliminary"] = preliminary


def _fix_memory(builder: ValueBuilder, values: Fields) -> None:
    has_value = values.get("value", UNSET) is not UNSET
    has_patch = values.get("patch", UNSET) is not UNSET
    if has_value and has_patch:
        del values["patch"]
    elif not has_value and not has_patch:
        values["value"] = builder.source.json()


def _fix_remove(builder: ValueBuilder, values: Fields) -> None:
    if values["id"] == "*" and values.get("turn_id") is None:
        values["turn_id"] = builder.source.text()


def _fix_nested(builder: ValueBuilder, values: Fields) -> None:
    if values.get("parent_turn_id") == values["turn_id"]:
        values["parent_turn_id"] = values["turn_id"] + "'"


def _fix_action(builder: ValueBuilder, values: Fields) -> None:
    if values.get("want_response") and values.get("action_id") is None:
        values["action_id"] = builder.source.text()


def _fix_a2ui_error(builder: ValueBuilder, values: Fields) -> None:
    if builder.source.chance(50):
        values["code"] = "VALIDATION_FAILED"
    _fix_ui_error(builder, values)
    if builder.source.chance(50):
        values["function_call_id"] = None
        if values.get("surface_id") is None:
            values["surface_id"] = builder.source.text()
    else:
        values["surface_id"] = None
        if values.get("function_call_id") is None:
            values["function_call_id"] = builder.source.text()


def _fix_ui_error(builder: ValueBuilder, values: Fields) -> None:
    if values["code"] == "VALIDATION_FAILED" and values.get("path") is None:
        values["path"] = "/" + builder.source.text()


def _fix_answer(builder: ValueBuilder, values: Fields) -> None:
    if values["status"] != "resolved":
        values.pop("grant_mode_id", None)


def _fix_role(builder: ValueBuilder, values: Fields) -> None:
    if values["role"] != "notice":
        values.pop("notice_source", None)


def _fix_data(builder: ValueBuilder, values: Fields) -> None:
    # In a stream the id is an identity, which only the stream itself may mint.
    if builder.source_ids is not None and "id" not in values:
        values["id"] = None


def _fix_turn_record(builder: ValueBuilder, values: Fields) -> None:
    """The fold derives ``sourceIds`` from ``sources`` and ``asks`` from a paused outcome (spec §2, §5)."""
    sources = values.get("sources")
    values["source_ids"] = None if sources is None else [record.source_id for record in sources]
    outcome = values.get("outcome")
    values["asks"] = outcome.asks if isinstance(outcome, PausedOutcome) else None
    if values.get("parent_turn_id") == values["turn_id"]:
        values["parent_turn_id"] = None


def _fix_folded(builder: ValueBuilder, values: Fields) -> None:
    """Own ids are unique: messages, artifacts, turns, and memory records by scope and key (spec §1.3, §2)."""
    for name, identity in _IDENTITIES.items():
        if values.get(name) is not None:
            values[name] = list({identity(item): item for item in values[name]}.values())


def _memory_identity(record: AgMemoryRecord) -> tuple[str, str]:
    return (record.scope, record.key or "")


_IDENTITIES: dict[str, Callable[[Any], object]] = {
    "messages": operator.attrgetter("id"),
    "artifacts": operator.attrgetter("artifact_id"),
    "turns": operator.attrgetter("turn_id"),
    "memory": _memory_identity,
}


_FIXES: dict[type, Callable[[ValueBuilder, Fields], None]] = {
    ToolDone: _fix_result,
    AgToolResult: _fix_result,
    ToolResultBlock: _fix_result_block,
    MemoryWrite: _fix_memory,
    MessageRemove: _fix_remove,
    SubagentStart: _fix_nested,
    SubagentDone: _fix_nested,
    StartInput: _fix_nested,
    ResumeInput: _fix_nested,
    ToolResultInput: _fix_nested,
    AgA2uiSurfaceAction: _fix_action,
    AgA2uiError: _fix_a2ui_error,
    AgUiError: _fix_ui_error,
    AgHitlAnswer: _fix_answer,
    AgMessage: _fix_role,
    MessageStart: _fix_role,
    DataBlock: _fix_data,
    AgTurnRecord: _fix_turn_record,
    AgReduceResult: _fix_folded,
    MessagesSnapshot: _fix_folded,
}
