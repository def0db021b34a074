"""Short ways to write messages and to see what goes back to the Messages API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agjson.adapters.anthropic import NativeMessages, Repair, messages_to_native
from agjson.types import AgBlock, AgMessage, AgRole, TextBlock, ToolCallBlock, ToolResultBlock


def message(role: AgRole, *content: AgBlock | str, **fields: Any) -> AgMessage:
    """A message; texts may be plain strings."""
    blocks = [TextBlock(text=block) if isinstance(block, str) else block for block in content]
    return AgMessage(id=f"{role}-1", role=role, content=blocks, **fields)


def text(value: str) -> dict[str, Any]:
    """A native text block."""
    return {"type": "text", "text": value}


def repaired(native: NativeMessages) -> list[tuple[str, str]]:
    """The code and the place of each repair of a history."""
    return repaired_of(native.repairs)


def repaired_of(repairs: Iterable[Repair]) -> list[tuple[str, str]]:
    """The code and the place of each repair."""
    return [(repair.code, repair.path) for repair in repairs]


def said(*content: AgBlock | str, **options: Any) -> list[dict[str, Any]]:
    """What becomes of the blocks of an assistant that the user asked and answers."""
    native = messages_to_native([message("user", "?"), message("assistant", *content), message("user", "!")], **options)
    return next((each["content"] for each in native if each["role"] == "assistant"), [])


def asked(*content: AgBlock | str, **options: Any) -> list[dict[str, Any]]:
    """What becomes of the blocks of a user."""
    native = messages_to_native([message("user", *content)], **options)
    return native[0]["content"] if native else []


INTERRUPTED = [text("The call was interrupted: it has no result.")]
"""The result of a call that has none."""


def call(id: str = "toolu_1", name: str = "look", **fields: Any) -> ToolCallBlock:
    """A call of a client tool."""
    return ToolCallBlock(tool_call_id=id, name=name, input=fields.pop("input", {}), **fields)


def result(id: str = "toolu_1", *content: Any, **fields: Any) -> ToolResultBlock:
    """The result of a call."""
    blocks = [TextBlock(text=block) if isinstance(block, str) else block for block in content]
    return ToolResultBlock(tool_call_id=id, content=blocks, **fields)


def use(id: str = "toolu_1", name: str = "look", **fields: Any) -> dict[str, Any]:
    """A call as the API has it."""
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **fields}


def answer(id: str = "toolu_1", *content: Any, **fields: Any) -> dict[str, Any]:
    """A result as the API has it."""
    held = {"content": list(content)} if content else {}
    return {"type": "tool_result", "tool_use_id": id, **held, **fields}
