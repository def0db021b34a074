"""What the Messages API of Anthropic demands of a history, written down apart from the code that obeys it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

Native = dict[str, Any]

REASONING = {"thinking", "redacted_thinking"}
SERVER_CALLS = {"server_tool_use": r"srvtoolu_[A-Za-z0-9_-]+", "mcp_tool_use": r"mcptoolu_[A-Za-z0-9_-]+"}
USER_ONLY = {"tool_result", "image", "document", "search_result"}
ASSISTANT_ONLY = {*REASONING, *SERVER_CALLS, "tool_use", "compaction", "fallback"}
IN_RESULTS = {"text", "image", "document", "search_result"}


def broken_rules(messages: list[Native], *, raw_types: Collection[str] = ()) -> list[str]:
    """The rules that a history breaks, in words.

    Args:
        messages: native messages.
        raw_types: block types that are carried verbatim and that no rule speaks of.
    """
    return list(_broken(messages, set(raw_types)))


def _broken(messages: list[Native], raw_types: set[str]) -> Iterator[str]:
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()
    for at, message in enumerate(messages):
        if message["role"] == "system":
            before = messages[at - 1]["role"] if at else None
            after = messages[at + 1]["role"] if at + 1 < len(messages) else "assistant"
            if before != "user" or after != "assistant":
                yield f"{at}: a system message between {before} and {after}"
            continue
        if message.keys() != {"role", "content"}:
            yield f"{at}: members {sorted(message)}"
        if at and messages[at - 1]["role"] == message["role"]:
            yield f"{at}: two messages of {message['role']} in a row"
        for index, block in enumerate(_blocks(message)):
            for fault in _faults(message["role"], block, raw_types):
                yield f"{at}.{index}: {fault}"
        if not _blocks(message):
            yield f"{at}: no content"
        elif message["role"] == "assistant" and _blocks(message)[-1]["type"] in REASONING:
            yield f"{at}: ends in reasoning"
    if messages:
        first = messages[0]
        if first["role"] != "user" and _blocks(first)[0]["type"] != "compaction":
            yield "0: the user does not speak first"
        last = _blocks(messages[-1])[-1]
        if messages[-1]["role"] == "assistant" and last["type"] == "text" and last["text"] != last["text"].rstrip():
            yield "the words to go on with end in white space"
    yield from _unpaired(messages)
    yield from _unpaired_server_calls(messages)


def _blocks(message: Native) -> list[Native]:
    content = message.get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _faults(role: str, block: Native, raw_types: set[str]) -> Iterator[str]:
    kind = block["type"]
    if any(key.startswith("agjson/") for key in block):
        yield "a key of agjson leaves"
    if kind in raw_types:
        return
    if role == "user" and (kind in ASSISTANT_ONLY or kind.endswith("_tool_result")):
        yield f"{kind} said by the user"
    if role == "assistant" and kind in USER_ONLY:
        yield f"{kind} said by the assistant"
    if kind == "text" and not block["text"].strip():
        yield "an empty text"
    if kind == "thinking" and not (isinstance(block["thinking"], str) and block["signature"]):
        yield "reasoning without signature"
    if kind == "redacted_thinking" and not block["data"]:
        yield "redacted reasoning without data"
    if kind == "tool_use" and not re.fullmatch(r"[A-Za-z0-9_-]+", block["id"]):
        yield f"id {block['id']!r}"
    if kind in SERVER_CALLS and not re.fullmatch(SERVER_CALLS[kind], block["id"]):
        yield f"id {block['id']!r}"
    if kind == "tool_use" and not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", block["name"]):
        yield f"name {block['name']!r}"
    if (kind == "tool_use" or kind in SERVER_CALLS) and not isinstance(block["input"], dict):
        yield "input that is no object"
    if kind == "tool_result":
        yield from _result_faults(block, raw_types)
    if kind == "compaction":
        if block["content"] is not None and not block["content"]:
            yield "an empty compaction"
        if any(value is None for name, value in block.items() if name != "content"):
            yield "a compaction with null"
    if kind in ("image", "document"):
        yield from _source_faults(kind, block["source"])


def _result_faults(block: Native, raw_types: set[str]) -> Iterator[str]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield "an error without content"
    for part in content if isinstance(content, list) else ():
        if part["type"] not in IN_RESULTS | raw_types:
            yield f"{part['type']} in a result"
        yield from _faults("user", part, raw_types)


def _source_faults(kind: str, source: Native) -> Iterator[str]:
    match source["type"]:
        case "base64":
            if not base64.b64decode(source["data"], validate=True):
                yield "no bytes"
            images = {"image/jpeg", "image/png", "image/gif", "image/webp"}
            if source["media_type"] not in (images if kind == "image" else {"application/pdf"}):
                yield f"{kind} of {source['media_type']}"
        case "url":
            if not source["url"].startswith(("http://", "https://")):
                yield f"address {source['url']!r}"
        case "file":
            if not source["file_id"]:
                yield "no file id"
        case "text":
            if kind != "document" or source["media_type"] != "text/plain" or not source["data"].strip():
                yield "no text document"
        case "content":
            if kind != "document" or not source["content"]:
                yield "no chunks"
        case other:
            yield f"source {other}"


def _unpaired(messages: list[Native]) -> Iterator[str]:
    """Calls of client tools and their results."""
    seen: set[str] = set()
    asked: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "system":
            continue
        blocks = _blocks(message)
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if message["role"] == "user":
            if sorted(answers) != sorted(asked):
                yield f"{at}: asked {asked}, answered {answers}"
            if any(block["type"] != "tool_result" for block in blocks[: len(answers)]):
                yield f"{at}: results are not first"
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for id in [block["id"] for block in blocks if block["type"] in {"tool_use", *SERVER_CALLS}]:
            if id in seen:
                yield f"{at}: id {id!r} twice"
            seen.add(id)
    if asked:
        yield f"unanswered {asked}"


def _unpaired_server_calls(messages: list[Native]) -> Iterator[str]:
    """Calls that the provider ran and their results."""
    open_calls: dict[str, int] = {}
    programs: set[str] = set()
    for at, message in enumerate(messages):
        blocks = _blocks(message)
        if message["role"] != "assistant":
            if any(block["type"] != "tool_result" for block in blocks):
                for id in open_calls:
                    yield f"{at}: {id!r} has no result before the user speaks"
                open_calls.clear()
            continue
        for index, block in enumerate(blocks):
            kind = block["type"]
            if kind in SERVER_CALLS:
                open_calls[block["id"]] = index
            elif kind.endswith("_tool_result") and open_calls.pop(block["tool_use_id"], None) is None:
                yield f"{at}.{index}: a result without call"
            caller = block.get("caller") or {}
            if kind == "tool_use" and "tool_id" in caller:
                programs.add(caller["tool_id"])
                if caller["tool_id"] not in open_calls:
                    yield f"{at}.{index}: made by no open call"
    if messages and open_calls:
        blocks = _blocks(messages[-1]) if messages[-1]["role"] == "assistant" else []
        while blocks and blocks[-1]["type"] in SERVER_CALLS:
            open_calls.pop(blocks[-1]["id"], None)
            blocks = blocks[:-1]
        for id in open_calls.keys() - programs:
            yield f"{id!r} never got its result"
