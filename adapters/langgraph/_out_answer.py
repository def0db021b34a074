"""One answer of the assistant on its way into an ``AIMessage``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agjson.adapters.langgraph._carry import INVALID
from agjson.adapters.langgraph._out_repairs import Repairs
from agjson.adapters.langgraph._unique import Unique
from agjson.emitter import NATIVE_CALL_ID
from agjson.types import AgBlock, ToolCallBlock

__all__ = ["Answer", "CallIds", "Writer", "tool_name"]


class CallIds:
    """Gives each call of a history the id that it has in LangChain: the provider's own, and each once.

    LangChain finds results, signatures and arguments by the id alone, over the whole history.
    """

    def __init__(self) -> None:
        self._unique = Unique("_")

    def name(self, block: ToolCallBlock, path: str, repairs: Repairs) -> str:
        """The id of a call; to be asked for once, in the order of the calls.

        Args:
            block: the call.
            path: its JSON path.
            repairs: where they are noted.
        """
        native = block.provider_metadata.get(NATIVE_CALL_ID) if block.provider_metadata else None
        wanted = native if isinstance(native, str) and native else block.tool_call_id
        free = wanted not in self._unique or block.tool_call_id in self._unique
        id = self._unique.take((wanted if free else block.tool_call_id) or "call")
        if id != wanted:
            repairs.note("id_changed", path, "LangChain knows a call by its id alone, so each id is used once")
        return id


def tool_name(block: ToolCallBlock, provider: str | None) -> str:
    """The name of a tool as a provider takes it.

    Args:
        block: a call of it.
        provider: whose chat model reads it; None: not known, so that the name stays as it is.
    """
    if provider is None:
        return block.name or "unknown"
    return re.sub(r"[^A-Za-z0-9_-]", "_", block.name)[: 64 if provider != "anthropic" else 128] or "unknown"


@dataclass(slots=True)
class Answer:
    """One answer, or the part of one that stands before the results of its calls.

    Attributes:
        own: the provider that reads it has written it, as far as is known.
        call_id: the id of the call that is written next.
        call_name: the name of its tool, as the provider takes it.
        content: the native blocks.
        tool_calls: its calls.
        invalid_tool_calls: its calls whose arguments are no object.
        kwargs: its ``additional_kwargs``.
        hosted: the calls that the provider ran, with their ids in LangChain, by their ids in AgJSON.
    """

    own: bool
    call_id: str = ""
    call_name: str = ""
    content: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    invalid_tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    hosted: dict[str, tuple[ToolCallBlock, str]] = field(default_factory=dict[str, tuple[ToolCallBlock, str]])

    def add_call(self, block: ToolCallBlock, id: str, name: str) -> dict[str, Any] | None:
        """Add a call of a tool that the graph runs.

        Args:
            block: the call.
            id: its id in LangChain.
            name: the name of the tool, as the provider takes it.

        Returns:
            Its arguments; None where they are no object, and were kept as the model wrote them.
        """
        invalid = block.provider_metadata.get(INVALID) if block.provider_metadata else None
        if isinstance(block.input, dict) and invalid is None:
            self.tool_calls.append({"type": "tool_call", "id": id, "name": name, "args": block.input})
            return block.input
        if isinstance(block.input, str):
            self.invalid_tool_calls.append(
                {
                    "type": "invalid_tool_call",
                    "id": id,
                    "name": name,
                    "args": block.input,
                    "error": invalid if isinstance(invalid, str) else None,
                }
            )
            return None
        args: dict[str, Any] = {} if block.input is None else {"value": block.input}
        self.tool_calls.append({"type": "tool_call", "id": id, "name": name, "args": args})
        return args


Writer: TypeAlias = Callable[[AgBlock, str, Answer, Repairs], None]
"""Adds a block that the assistant said to an answer."""
