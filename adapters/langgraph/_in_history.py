"""LangChain messages, as objects or in any of their plain forms, as messages of AgJSON (spec §3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from agjson.adapters.langgraph._calls import read_arguments
from agjson.adapters.langgraph._carry import KWARGS, NAME, RESPONSE, RESULT
from agjson.adapters.langgraph._content import read_blocks, rest_of_kwargs
from agjson.adapters.langgraph._results import result_fields
from agjson.adapters.langgraph._unique import Unique
from agjson.adapters.langgraph._usage import read_usage
from agjson.emitter import NATIVE_CALL_ID
from agjson.errors import ValidationError
from agjson.jsonable import jsonable
from agjson.types import (
    AgBlock,
    AgMessage,
    AgProviderMeta,
    AgRole,
    JsonValue,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["read_history"]

Native: TypeAlias = dict[str, Any]

_ROLES: Mapping[str, AgRole] = {
    "human": "user",
    "user": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "developer": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
}
_DEVELOPER = "__openai_role__"


def read_history(native: Iterable[object], *, turn_id: str | None, thread_id: str | None) -> list[AgMessage]:
    """A native history as messages.

    Args:
        native: the messages in order.
        turn_id: the turn that they belong to.
        thread_id: the thread that they belong to.

    Raises:
        ValidationError: something in it is no message.
    """
    reader = _Reader(turn_id, thread_id)
    for index, message in enumerate(native):
        reader.read(_plain(message, f"$[{index}]"), index)
    return reader.messages


def _plain(message: object, path: str) -> Native:
    """One message in the shape of its pydantic dump, whatever form it has.

    Raises:
        ValidationError: it is no message.
    """
    if isinstance(message, str):
        return {"type": "human", "content": message}
    plain = jsonable(message)
    if isinstance(plain, list) and len(plain) == 2 and isinstance(plain[0], str):
        return {"type": plain[0], "content": plain[1]}
    if not isinstance(plain, dict):
        raise ValidationError(f"expected a message, got {type(message).__name__}", path)
    return _dumped(plain)


def _dumped(plain: Native) -> Native:
    """The dump of a message that was serialised in another way."""
    kwargs, data, id = plain.get("kwargs"), plain.get("data"), plain.get("id")
    if plain.get("type") == "constructor" and isinstance(kwargs, dict):
        named = str(id[-1]) if isinstance(id, list) and id else ""
        kind = named.removesuffix("Chunk").removesuffix("Message").lower()
        return {"type": kind, **kwargs}
    if isinstance(data, dict) and isinstance(plain.get("type"), str) and "content" in data:
        return {"type": plain["type"], **data}
    if isinstance(plain.get("role"), str) and plain.get("type") in (None, "message", "chat"):
        return {**plain, "type": plain["role"]}
    return plain


class _Reader:
    def __init__(self, turn_id: str | None, thread_id: str | None) -> None:
        self.messages: list[AgMessage] = []
        self._prefix = turn_id or thread_id or "native"
        self._turn_id = turn_id
        self._thread_id = thread_id
        self._ids = Unique()
        self._call_ids = Unique()
        # Which id a native id of a call stands for now.
        self._calls: dict[str, str] = {}

    def read(self, native: Native, index: int) -> None:
        """Read one message."""
        path = f"$[{index}]"
        role = _ROLES.get(str(native.get("type")))
        if role is None:
            raise ValidationError("expected a human, ai, system or tool message", f"{path}.type")
        content = native.get("content")
        if not (content is None or isinstance(content, (str, list))):
            raise ValidationError(f"expected text or a list of blocks, got {type(content).__name__}", f"{path}.content")
        native = _listed(native)
        if role == "tool":
            self._read_result(native, index)
        elif role == "assistant":
            self._read_answer(native, index)
        else:
            kept = native.get("additional_kwargs")
            kwargs = dict(kept) if isinstance(kept, dict) else {}
            if native.get("type") == "developer":
                kwargs[_DEVELOPER] = "developer"
            blocks = read_blocks({**native, "additional_kwargs": {}, "tool_calls": [], "invalid_tool_calls": []})
            self._add(role, blocks, native, index, kwargs)

    def _read_answer(self, native: Native, index: int) -> None:
        response, name, usage = native.get("response_metadata"), native.get("name"), native.get("usage_metadata")
        response = response if isinstance(response, dict) else {}
        model = response.get("model_name") or response.get("model")
        blocks = [self._renamed(block) for block in read_blocks(native)]
        self._add(
            "assistant",
            blocks,
            {**native, "name": None},
            index,
            rest_of_kwargs(native.get("additional_kwargs")),
            response=response,
            agent_name=name if isinstance(name, str) and name else None,
            model=model if isinstance(model, str) else None,
            usage=read_usage(usage) if isinstance(usage, dict) else None,
        )

    def _read_result(self, native: Native, index: int) -> None:
        native_id = native.get("tool_call_id")
        if not isinstance(native_id, str):
            raise ValidationError("a tool message must name its call", f"$[{index}].tool_call_id")
        id = self._calls.get(native_id, native_id)
        response = native.get("response_metadata")
        response = dict(response) if isinstance(response, dict) else {}
        response.pop(RESULT, None)
        block = ToolResultBlock(tool_call_id=id, **result_fields(native))
        named = {**native, "id": native.get("id") or f"{id}:result"}
        self._add("tool", [block], named, index, {}, response=response)

    def _add(
        self,
        role: AgRole,
        blocks: list[AgBlock],
        native: Native,
        index: int,
        kwargs: Native,
        *,
        response: Native | None = None,
        **fields: Any,
    ) -> None:
        metadata: dict[str, JsonValue] = {}
        if response:
            metadata[RESPONSE] = response
        if kwargs:
            metadata[KWARGS] = kwargs
        if isinstance(native.get("name"), str) and native["name"]:
            metadata[NAME] = native["name"]
        id = native.get("id")
        wanted = id if isinstance(id, str) and id else f"{self._prefix}:{index}"
        self.messages.append(
            AgMessage(
                id=self._ids.take(wanted),
                role=role,
                content=blocks,
                turn_id=self._turn_id,
                thread_id=self._thread_id,
                metadata=metadata or None,
                **fields,
            )
        )

    def _renamed(self, block: AgBlock) -> AgBlock:
        """A call that repeats an id, or has none, gets one of its own, and the results after it follow."""
        if isinstance(block, ToolCallBlock):
            native = block.tool_call_id
            id = self._call_ids.take(native or "call")
            self._calls[native] = id
            if id != native:
                bag = AgProviderMeta({**(block.provider_metadata or {}), NATIVE_CALL_ID: native})
                return replace(block, tool_call_id=id, provider_metadata=bag if native else block.provider_metadata)
        elif isinstance(block, ToolResultBlock):
            id = self._calls.get(block.tool_call_id, block.tool_call_id)
            if id != block.tool_call_id:
                return replace(block, tool_call_id=id)
        return block


def _listed(native: Native) -> Native:
    """A message whose calls are in the form of OpenAI, as dicts with a role may have them, in LangChain's form."""
    calls = native.get("tool_calls")
    if not isinstance(calls, list) or not any(isinstance(call, dict) and "function" in call for call in calls):
        return native
    listed: list[Native] = []
    invalid: list[Any] = list(native.get("invalid_tool_calls") or [])
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            listed.append(call)
            continue
        raw = function.get("arguments")
        args, sound = read_arguments(raw) if isinstance(raw, str) else (raw, isinstance(raw, dict))
        each = {"id": call.get("id"), "name": function.get("name"), "args": args}
        (listed if sound else invalid).append(each)
    return {**native, "tool_calls": listed, "invalid_tool_calls": invalid}
