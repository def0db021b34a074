"""Messages in the protocol events of LangGraph v3, read as the chunks of which v2 makes its stream."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from agjson.adapters.langgraph._door import PlainMessage
from agjson.jsonable import jsonable

__all__ = ["EVENTS", "ProtocolMessages"]

EVENTS = frozenset(
    ("message-start", "content-block-start", "content-block-delta", "content-block-finish", "message-finish")
)
"""The events of a message that are read."""

_CALLS = frozenset(("tool_call", "invalid_tool_call", "tool_call_chunk"))

# Deltas of blocks that stream: the type of the block, and the member of both that grows.
_DELTAS = {"text-delta": ("text", "text"), "reasoning-delta": ("reasoning", "reasoning")}


class ProtocolMessages:
    """Turns the protocol events of messages into chunks; blocks that do not stream come whole, with their end."""

    def __init__(self) -> None:
        # By run: the message's id, and the blocks that have streamed.
        self._runs: dict[Hashable, tuple[str | None, set[int]]] = {}

    def chunk(self, data: Any) -> tuple[PlainMessage, Any, Hashable] | None:
        """Read a protocol event.

        Args:
            data: the event, and the metadata of its run.

        Returns:
            The chunk that says the same, the metadata as they came, and the identity of the run; None for anything
            else.
        """
        if not isinstance(data, (tuple, list)) or len(data) != 2 or not isinstance(data[1], dict):
            return None
        event, meta = jsonable(data[0]), data[1]
        if not isinstance(event, dict) or event.get("event") not in EVENTS:
            return None
        run_id = meta.get("run_id")
        key = ("protocol", run_id if isinstance(run_id, str) else id(meta))
        id_, streamed = self._runs.get(key, (None, set[int]()))
        if event["event"] == "message-start":
            named = event.get("id")
            id_, streamed = named if isinstance(named, str) else None, set()
            self._runs[key] = id_, streamed
        said = _said(event, streamed)
        if said is None:
            return None
        if event["event"] == "message-finish":
            self._runs.pop(key, None)
        return {"type": "AIMessageChunk", "content": "", "id": id_, **said}, meta, key


def _said(event: dict[str, Any], streamed: set[int]) -> PlainMessage | None:
    """The members of the chunk that says what an event says; None for one that is not as it should be."""
    kind, index = event["event"], event.get("index")
    if kind == "message-start":
        named = event.get("metadata")
        provider = named.get("provider") if isinstance(named, dict) else None
        return {"response_metadata": {"model_provider": provider}} if isinstance(provider, str) else {}
    if kind == "message-finish":
        usage, named = event.get("usage"), event.get("metadata")
        return {
            "usage_metadata": usage if isinstance(usage, dict) else None,
            "response_metadata": named if isinstance(named, dict) else {},
            "chunk_position": "last",
        }
    if type(index) is not int:
        return None
    if kind == "content-block-delta":
        return _of_delta(event.get("delta"), index, streamed)
    block = event.get("content")
    if not isinstance(block, dict):
        return None
    if kind == "content-block-start":
        return _of_start(block, index, streamed)
    return _of_finish(block, index, streamed)


def _of_start(block: dict[str, Any], index: int, streamed: set[int]) -> PlainMessage:
    if block.get("type") == "tool_call_chunk":
        streamed.add(index)
        return {"tool_call_chunks": [{**block, "index": index}]}
    return {}


def _of_delta(delta: Any, index: int, streamed: set[int]) -> PlainMessage | None:
    kind = delta.get("type") if isinstance(delta, dict) else None
    if kind in _DELTAS:
        streamed.add(index)
        block, member = _DELTAS[kind]
        return {"content": [{"type": block, member: delta.get(member), "index": index}]}
    if kind == "tool-call-delta":
        streamed.add(index)
        return {"tool_call_chunks": [{"name": None, "args": delta.get("args"), "id": None, "index": index}]}
    # What grows otherwise comes whole with the end of its block.
    return {} if kind in ("block-delta", "data-delta") else None


def _of_finish(block: dict[str, Any], index: int, streamed: set[int]) -> PlainMessage:
    kind = block.get("type")
    if kind in _CALLS:
        if index in streamed:
            return {}
        args = block.get("args")
        text = args if isinstance(args, str) else json.dumps(args)
        call = {"name": block.get("name"), "args": text, "id": block.get("id"), "index": index}
        return {"tool_call_chunks": [call]}
    if index in streamed and kind in ("text", "reasoning"):
        # A signature and citations come with the end alone.
        return {"content": [{**block, kind: "", "index": index}]}
    return {"content": [{**block, "index": index}]}
