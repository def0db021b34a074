"""Results of tools as tool messages (spec §2.1, §10 item 3): the model reads the content, LangChain keeps the rest."""

from __future__ import annotations

from typing import Any

from agjson.adapters.langgraph._carry import NAME, RESPONSE, RESULT
from agjson.adapters.langgraph._out_answer import tool_name
from agjson.adapters.langgraph._out_anthropic import anthropic_user_block
from agjson.adapters.langgraph._out_blocks import Native, json_text, user_block
from agjson.adapters.langgraph._out_carried import carried_fields
from agjson.adapters.langgraph._out_repairs import Provider, Repairs
from agjson.types import UNSET, AgMessage, TextBlock, ToolCallBlock, ToolResultBlock
from agjson.wire import to_dict

__all__ = ["message_content", "said", "tool_message"]

# What a model reads of a call that gave nothing, where nothing else is said.
_DENIED = "The call was denied."
_FAILED = "The call failed."
_KEPT = ("uiData", "structuredContent", "errorText", "errorCode", "toolMetadata", "dynamic", "isError")


def tool_message(
    message: AgMessage,
    block: ToolResultBlock,
    call: ToolCallBlock,
    call_id: str,
    id: str,
    path: str,
    provider: Provider | None,
    repairs: Repairs,
    *,
    hidden: bool,
) -> Native:
    """A tool message as plain data.

    ``content`` and ``structuredContent`` are its content, ``sideData`` its ``artifact``. What LangChain has no place
    for is kept in its ``response_metadata``, which no chat model sends.

    Args:
        message: the message that holds the result.
        block: the result.
        call: its call.
        call_id: the id of the call in the history that is made.
        id: the id of the tool message.
        path: the JSON path of the result.
        provider: whose chat model reads it; None: not known.
        repairs: where they are noted.
        hidden: keep what no model reads, the artifact among it.

    Raises:
        ReplayError: the content has a block that the chat model takes in no result.
    """
    failed = block.outcome in ("error", "denied") or (block.outcome is None and block.is_error is True)
    content: list[Native] = []
    for index, part in enumerate(block.content):
        content.extend(said(part, provider, f"{path}.content[{index}]", repairs))
    before = len(content)
    if block.structured_content is not UNSET and not _says(content, block.structured_content):
        content.append({"type": "text", "text": json_text(block.structured_content)})
    words = block.error_text or (block.error_code if not content else None)
    if failed and words and words.strip() and words not in _words(content):
        content.append({"type": "text", "text": words})
    if failed and not content:
        content.append({"type": "text", "text": _DENIED if block.outcome == "denied" else _FAILED})
    name = (message.metadata or {}).get(NAME)
    if name == call.name or not isinstance(name, str):
        name = tool_name(call, provider)
    native: Native = {
        "type": "tool",
        "content": message_content(content, provider),
        "tool_call_id": call_id,
        "id": id,
        "name": name,
        "status": "error" if failed else "success",
    }
    kwargs, response = carried_fields(block.provider_metadata), (message.metadata or {}).get(RESPONSE)
    if kwargs:
        native["additional_kwargs"] = kwargs
    if isinstance(response, dict) and response:
        native["response_metadata"] = dict(response)
    if hidden:
        if block.side_data is not UNSET and block.side_data is not None:
            native["artifact"] = block.side_data
        kept = _kept(block, len(content) - before)
        if kept:
            native["response_metadata"] = {**native.get("response_metadata", {}), RESULT: kept}
    return native


def said(block: Any, provider: Provider | None, path: str, repairs: Repairs) -> list[Native]:
    """A block of what a user or a tool says; nothing where it was left out.

    Args:
        block: the block.
        provider: whose chat model reads it; None: not known.
        path: its JSON path.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    if provider == "anthropic":
        native = anthropic_user_block(block, path, repairs)
    else:
        native = user_block(block, provider, path, repairs)
    return [] if native is None else [native]


def message_content(content: list[Native], provider: Provider | None) -> str | list[Any]:
    """The content of a message: a plain text as a string.

    Args:
        content: its blocks.
        provider: whose chat model reads it; None: not known.
    """
    if not content:
        return ""
    if len(content) == 1 and content[0].keys() == {"type", "text"} and content[0]["type"] == "text":
        text: str = content[0]["text"]
        return text
    if provider == "google":
        # In a result the chat model sends blocks of text as they stand, with LangChain's own members.
        return [part["text"] if part.keys() == {"type", "text"} else part for part in content]
    return content


def _says(content: list[Native], value: Any) -> bool:
    text = json_text(value)
    return any(part.get("text") == text for part in content)


def _words(content: list[Native]) -> str:
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))


def _kept(block: ToolResultBlock, added: int) -> Native:
    """The fields of a result that a tool message has no place for."""
    wire = to_dict(block)
    kept = {name: wire[name] for name in _KEPT if name in wire}
    if kept.get("errorText") == "\n".join(part.text for part in block.content if isinstance(part, TextBlock)):
        del kept["errorText"]
    if block.outcome not in ("ok", "error", None):
        kept["outcome"] = block.outcome
    if block.side_data is None:
        kept["sideData"] = None
    if kept and added:
        kept["added"] = added
    return kept
