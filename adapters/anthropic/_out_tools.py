"""Tool calls and their results as native blocks (spec §2.1, §2.2, §10 items 3 and 13)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from agjson.adapters.anthropic._api import CALL_ID, TOOL_NAME, is_server_call_id
from agjson.adapters.anthropic._carry import CALLER, NATIVE_BLOCK, TOOLSET
from agjson.adapters.anthropic._out_blocks import is_foreign, is_string, json_text, plain_text, user_block
from agjson.adapters.anthropic._out_media import carried_fields
from agjson.adapters.anthropic._repair import Repairs
from agjson.emitter import NATIVE_CALL_ID
from agjson.transcript import DENIED
from agjson.types import (
    UNSET,
    AgBlock,
    JsonValue,
    SearchResultBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = [
    "CallIds",
    "client_call",
    "client_result",
    "is_server_call",
    "native_id",
    "server_call",
    "server_result",
]

Native: TypeAlias = dict[str, Any]

_FAILED = "The call failed."


def native_id(block: ToolCallBlock) -> str:
    """The id that the provider gave to a call, where the thread knows it by another one.

    Args:
        block: the call.
    """
    native = block.provider_metadata.get(NATIVE_CALL_ID) if block.provider_metadata else None
    return native if isinstance(native, str) and native else block.tool_call_id


def is_server_call(block: ToolCallBlock) -> bool:
    """Whether this provider ran the call itself.

    Args:
        block: the call.
    """
    if not block.provider_executed or is_foreign(block.provider):
        return False
    return is_server_call_id(native_id(block), mcp=block.server_name is not None)


class CallIds:
    """Gives each call of a history the id that it has in the request: its own where the API takes it, and each once."""

    def __init__(self) -> None:
        # How often each id was wanted, or given.
        self._taken: dict[str, int] = {}

    def name(self, block: ToolCallBlock, path: str, repairs: Repairs) -> str:
        """The id of a call.

        Args:
            block: the call.
            path: its JSON path.
            repairs: where they are noted.
        """
        wanted = native_id(block)
        id = wanted if CALL_ID.fullmatch(wanted) else _cleaned(wanted)
        base = id
        while id in self._taken:
            self._taken[base] += 1
            id = f"{base}_{self._taken[base]}"
        if id != wanted:
            repairs.note("id_changed", path, "the API takes letters, digits, _ and - as an id, and each id once")
        self._taken[id] = 1
        return id


def _cleaned(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", text) or "call"


def client_call(block: ToolCallBlock, id: str, path: str, repairs: Repairs) -> Native:
    """A call of a tool that the provider does not run.

    Args:
        block: the call.
        id: its id in the request.
        path: its JSON path.
        repairs: where they are noted.
    """
    name = block.name
    if not TOOL_NAME.fullmatch(name):
        name = _cleaned(name)[:128]
        repairs.note("name_changed", path, "the API takes up to 128 letters, digits, _ and - as the name of a tool")
    if block.signature is not None:
        repairs.note("opaque_dropped", path, "another provider's signature of the call means nothing to this one")
    native: Native = {"type": "tool_use", "id": id, "name": name, "input": _input(block.input, path, repairs)}
    if is_foreign(block.provider):
        return native
    return {**carried_fields(block.provider_metadata), **_links(block, (CALLER, TOOLSET)), **native}


def server_call(block: ToolCallBlock, id: str, path: str, repairs: Repairs) -> Native:
    """A call that the provider ran.

    Args:
        block: a call that `is_server_call` accepts.
        id: its id in the request.
        path: its JSON path.
        repairs: where they are noted.
    """
    native: Native = {"id": id, "name": block.name, "input": _input(block.input, path, repairs)}
    fields = carried_fields(block.provider_metadata)
    if block.server_name is not None:
        return {**fields, **native, "type": "mcp_tool_use", "server_name": block.server_name}
    return {**fields, **_links(block, (CALLER,)), **native, "type": "server_tool_use"}


def _links(block: ToolCallBlock, names: Sequence[str]) -> Native:
    found: Native = {}
    for name in names:
        value = block.provider_metadata.get(name) if block.provider_metadata else None
        if isinstance(value, dict if name == CALLER else str):
            found[name] = value
    return found


def _input(value: JsonValue, path: str, repairs: Repairs) -> Native:
    if isinstance(value, dict):
        return value
    repairs.note("input_wrapped", path, "the input of a call must be an object")
    return {} if value is None else {"value": value}


def client_result(block: ToolResultBlock, id: str, toolset: object, path: str, repairs: Repairs) -> Native:
    """The result of a call that the provider did not run: what reaches the model, and nothing else (spec §2.1).

    ``content`` and ``structuredContent`` go, ``uiData`` and ``sideData`` do not. What a failure or a denial says in its
    other fields is added where the content does not say it.

    Args:
        block: the result.
        id: the id of its call in the request.
        toolset: the toolset that the call names, if it names one.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: the content has a block that the API takes in no result.
    """
    failed = block.outcome in ("error", "denied") or (block.outcome is None and block.is_error is True)
    content = list(_result_content(block, path, repairs))
    if block.structured_content is not UNSET and not _says(content, block.structured_content):
        content.append(plain_text(json_text(block.structured_content)))
    words = block.error_text or (block.error_code if not content else None)
    if failed and words and words.strip() and not any(words in part.get("text", "") for part in content):
        content.append(plain_text(words))
    if failed and not content:
        content.append(plain_text(DENIED if block.outcome == "denied" else _FAILED))
    native: Native = {**carried_fields(block.provider_metadata), "type": "tool_result", "tool_use_id": id}
    if isinstance(toolset, str):
        native.setdefault(TOOLSET, toolset)
    if len(content) == 1 and len(block.content) == 1 and is_string(block.content[0]):
        native["content"] = content[0]["text"]
    elif content:
        native["content"] = content
    if failed:
        native["is_error"] = True
    elif block.is_error is False:
        native["is_error"] = False
    return native


def _result_content(block: ToolResultBlock, path: str, repairs: Repairs) -> Iterator[Native]:
    for index, part in enumerate(block.content):
        place = f"{path}.content[{index}]"
        native = user_block(part, place, repairs)
        if native is None:
            continue
        if native["type"] == "container_upload":
            repairs.unsupported(place, "a result cannot hold a file of unknown kind: name its media type")
            continue
        yield native


def _says(content: Sequence[Native], value: JsonValue) -> bool:
    """Whether a text of the result is the JSON of the structured form, which MCP servers put there."""
    for part in content:
        text = part.get("text")
        if isinstance(text, str):
            try:
                if msgspec.json.decode(text) == value:
                    return True
            except (msgspec.DecodeError, ValueError, RecursionError):
                continue
    return False


def server_result(block: ToolResultBlock, call: ToolCallBlock, id: str) -> Native | None:
    """The result of a call that the provider ran, as it came; None where too little is left of it.

    A result that did not bring its native form along can be made again for a web search alone, from its sealed hits or
    its error code.

    Args:
        block: the result.
        call: the call.
        id: the id of the call in the request.
    """
    carried = block.provider_metadata.get(NATIVE_BLOCK) if block.provider_metadata else None
    if isinstance(carried, dict) and str(carried.get("type", "")).endswith("_tool_result"):
        return {**carried, "tool_use_id": id}
    if call.name != "web_search" or call.server_name is not None:
        return None
    content: Any = None
    if block.error_code is not None:
        content = {"type": "web_search_tool_result_error", "error_code": block.error_code}
    elif block.outcome in (None, "ok"):
        hits = [_hit(hit) for hit in block.content]
        content = None if None in hits else hits
    return None if content is None else {"type": "web_search_tool_result", "tool_use_id": id, "content": content}


def _hit(block: AgBlock) -> Native | None:
    if not isinstance(block, SearchResultBlock) or block.opaque is None or is_foreign(block.opaque.provider):
        return None
    if not block.opaque.value or block.url is None:
        return None
    return {
        "type": "web_search_result",
        "url": block.url,
        "title": block.title or "",
        "encrypted_content": block.opaque.value,
        "page_age": block.page_age,
    }
