"""Native histories, of requests and responses, as messages (spec §3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from agjson.adapters.anthropic import _carry
from agjson.adapters.anthropic._credit import without_credit
from agjson.adapters.anthropic._in_blocks import block_from_native, string_block
from agjson.adapters.anthropic._usage import read_usage
from agjson.emitter import NATIVE_CALL_ID
from agjson.errors import ValidationError
from agjson.jsonable import jsonable
from agjson.transcript.settling import free_id
from agjson.types import AgBlock, AgMessage, AgProviderMeta, AgRole, ToolCallBlock, ToolResultBlock

__all__ = ["read_history"]

_RESPONSE_METADATA = {
    "stop_reason": _carry.STOP_REASON,
    "stop_sequence": _carry.STOP_SEQUENCE,
    "stop_details": _carry.STOP_DETAILS,
    "usage": _carry.USAGE,
    "container": _carry.CONTAINER,
    "diagnostics": _carry.DIAGNOSTICS,
    "context_management": _carry.CONTEXT_MANAGEMENT,
    "input_transformations": _carry.INPUT_TRANSFORMATIONS,
}


def read_history(
    native: Iterable[Mapping[str, Any] | object],
    *,
    system: str | Sequence[Any] | None,
    turn_id: str | None,
    thread_id: str | None,
) -> list[AgMessage]:
    """The messages of a native history; the arguments are those of `messages_from_native`.

    Raises:
        ValidationError: something in it is no native message.
    """
    reader = _Reader(turn_id, thread_id)
    if system:
        blocks = reader.content(_plain(system), "$.system")
        reader.add("system", blocks, f"{reader.prefix}:system")
    for index, message in enumerate(native):
        reader.read(_plain(message), index)
    return reader.messages


def _plain(value: object) -> Any:
    """A value as plain JSON data; objects of the SDK under the names of the wire."""
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_dict(mode="json", warnings=False)
    if isinstance(value, Mapping):
        return {str(name): _plain(held) for name, held in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [_plain(held) for held in value]
    return jsonable(value)


class _Reader:
    def __init__(self, turn_id: str | None, thread_id: str | None) -> None:
        self.messages: list[AgMessage] = []
        self.prefix = turn_id or thread_id or "native"
        self._turn_id = turn_id
        self._thread_id = thread_id
        self._ids: set[str] = set()
        self._calls: dict[str, str] = {}
        self._call_ids: set[str] = set()

    def read(self, native: Any, index: int) -> None:
        """Read one native message."""
        path = f"$[{index}]"
        if not isinstance(native, dict):
            raise ValidationError(f"expected a message, got {type(native).__name__}", path)
        role = native.get("role")
        if role not in ("user", "assistant", "system"):
            raise ValidationError("expected role user, assistant or system", f"{path}.role")
        blocks = self.content(native.get("content", [] if role == "system" else None), f"{path}.content")
        if role == "assistant":
            self._read_answer(native, blocks, index)
        elif role == "system":
            fields = {name: value for name, value in native.items() if name not in ("role", "content")}
            self.add("system", blocks, f"{self.prefix}:{index}", metadata={_carry.MESSAGE: fields})
        else:
            self._read_user(blocks, index)

    def content(self, native: Any, path: str) -> list[AgBlock]:
        """The blocks of a message."""
        if isinstance(native, str):
            return [string_block(native)]
        if not isinstance(native, list):
            raise ValidationError(f"expected text or a list of blocks, got {type(native).__name__}", path)
        for index, block in enumerate(native):
            if not isinstance(block, dict) or not isinstance(block.get("type"), str) or not block["type"]:
                raise ValidationError("expected a block with a type", f"{path}[{index}]")
        return [block_from_native(block) for block in native]

    def add(self, role: AgRole, blocks: list[AgBlock], id: str, **fields: Any) -> None:
        """Add a message under an id that no other has."""
        free = free_id(id, self._ids)
        self.messages.append(
            AgMessage(id=free, role=role, content=blocks, turn_id=self._turn_id, thread_id=self._thread_id, **fields)
        )

    def _read_answer(self, native: dict[str, Any], blocks: list[AgBlock], index: int) -> None:
        id, model, usage = native.get("id"), native.get("model"), native.get("usage")
        metadata = {key: native[name] for name, key in _RESPONSE_METADATA.items() if native.get(name) is not None}
        if _carry.STOP_DETAILS in metadata:
            metadata[_carry.STOP_DETAILS] = without_credit(metadata[_carry.STOP_DETAILS])
        self.add(
            "assistant",
            [self._renamed(block) for block in blocks],
            id if isinstance(id, str) and id else f"{self.prefix}:{index}",
            model=model if isinstance(model, str) else None,
            usage=read_usage(usage) if isinstance(usage, dict) else None,
            metadata=metadata or None,
        )

    def _read_user(self, blocks: list[AgBlock], index: int) -> None:
        """What the user says; each result of a tool in a message of its own."""
        said: list[AgBlock] = []
        for block in [self._renamed(block) for block in blocks]:
            if isinstance(block, ToolResultBlock):
                if said:
                    self.add("user", said, f"{self.prefix}:{index}")
                    said = []
                self.add("tool", [block], f"{block.tool_call_id}:result")
            else:
                said.append(block)
        if said or not blocks:
            self.add("user", said, f"{self.prefix}:{index}")

    def _renamed(self, block: AgBlock) -> AgBlock:
        """A call that repeats an id gets one of its own, and the results after it follow."""
        if isinstance(block, ToolCallBlock):
            native = block.tool_call_id
            id = free_id(native, self._call_ids)
            self._calls[native] = id
            if id != native:
                bag = cast(AgProviderMeta, {**(block.provider_metadata or {}), NATIVE_CALL_ID: native})
                return replace(block, tool_call_id=id, provider_metadata=bag)
        elif isinstance(block, ToolResultBlock):
            id = self._calls.get(block.tool_call_id, block.tool_call_id)
            if id != block.tool_call_id:
                return replace(block, tool_call_id=id)
        return block
