"""What tools that the provider runs have returned, in a readable form beside the native block (spec §2, §10 item 13).

The native block goes back verbatim (`NATIVE_BLOCK`): it holds ciphertext that nothing else may be made from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agjson.adapters.anthropic._carry import CITATIONS, NATIVE_BLOCK, VENDOR
from agjson.adapters.anthropic._citations import read_citations
from agjson.types import (
    AgBlock,
    AgOpaque,
    AgProviderMeta,
    Base64Source,
    CodeResultBlock,
    DataBlock,
    DocumentBlock,
    FileBlock,
    FileSource,
    ProviderRawBlock,
    ResourceLinkBlock,
    SearchResultBlock,
    TextBlock,
)

__all__ = ["RESULT_CONTENT_TYPES", "is_server_result", "server_result"]

_SUFFIX = "_tool_result"


def is_server_result(native: dict[str, Any]) -> bool:
    """Whether a native block is the result of a tool that the provider ran, of a kind that is known or not.

    Args:
        native: a content block of an assistant message.
    """
    kind, call = native.get("type"), native.get("tool_use_id")
    return isinstance(kind, str) and kind.endswith(_SUFFIX) and isinstance(call, str) and bool(call)


def server_result(native: dict[str, Any]) -> dict[str, Any]:
    """The fields of the neutral result: keyword arguments for `Emitter.tool_done` and `ToolResultBlock`.

    Args:
        native: a block that `is_server_result` accepts.
    """
    content = native.get("content")
    fields: dict[str, Any] = {"outcome": "ok", "provider_metadata": {NATIVE_BLOCK: native}}
    code = content.get("error_code") if isinstance(content, dict) else None
    if isinstance(content, dict) and (code is not None or str(content.get("type")).endswith("_error")):
        text = content.get("error_message")
        fields["outcome"] = "error"
        fields["error_code"] = code if isinstance(code, str) else None
        fields["error_text"] = text if isinstance(text, str) and text else fields["error_code"]
        return {**fields, "content": []}
    if native.get("is_error") is True:
        fields["outcome"] = "error"
    if isinstance(native.get("is_error"), bool):
        fields["is_error"] = native["is_error"]
    parts = content if isinstance(content, list) else [] if content is None or content == "" else [content]
    return {**fields, "content": [block for part in parts for block in _read(part)]}


def _read(part: Any) -> list[AgBlock]:
    if isinstance(part, str):
        return [TextBlock(text=part)]
    kind = part.get("type") if isinstance(part, dict) else None
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    found = None if reader is None else reader(part)
    return [_raw(part)] if found is None else found


def _raw(native: Any) -> ProviderRawBlock:
    return ProviderRawBlock(vendor=VENDOR, raw=native)


def _said(native: dict[str, Any]) -> list[AgBlock] | None:
    """A text of an MCP server."""
    text, citations = _text(native, "text"), native.get("citations")
    if text is None:
        return None
    if not isinstance(citations, list) or not citations:
        return [TextBlock(text=text)]
    metadata = AgProviderMeta({CITATIONS: citations})
    return [TextBlock(text=text, citations=read_citations(citations) or None, provider_metadata=metadata)]


def _search_hit(native: dict[str, Any]) -> list[AgBlock] | None:
    sealed = native.get("encrypted_content")
    opaque = AgOpaque(kind="ciphertext", value=sealed, provider=VENDOR) if isinstance(sealed, str) and sealed else None
    return [
        SearchResultBlock(
            url=_text(native, "url"),
            title=_text(native, "title"),
            page_age=_text(native, "page_age"),
            opaque=opaque,
        )
    ]


def _fetched(native: dict[str, Any]) -> list[AgBlock] | None:
    url, document = _text(native, "url"), native.get("content")
    source = document.get("source") if isinstance(document, dict) else None
    if url is None or not isinstance(document, dict) or not isinstance(source, dict):
        return None
    kind, data, media_type = source.get("type"), _text(source, "data"), _text(source, "media_type")
    link = ResourceLinkBlock(uri=url, mime_type=media_type)
    if kind == "text" and data is not None:
        return [link, TextBlock(text=data)]
    if kind == "base64" and data is not None and media_type is not None:
        return [
            link,
            DocumentBlock(source=Base64Source(media_type=media_type, data=data), title=_text(document, "title")),
        ]
    return None


def _ran(native: dict[str, Any]) -> list[AgBlock] | None:
    """Executed code: what it printed and the files that it left; sealed output stays in the native block alone."""
    output = "".join(text for name in ("stdout", "stderr") if (text := _text(native, name)))
    code = native.get("return_code")
    blocks: list[AgBlock] = [CodeResultBlock(outcome="ok" if code == 0 else "failed", output=output)]
    files = native.get("content")
    for file in files if isinstance(files, list) else ():
        id = _text(file, "file_id") if isinstance(file, dict) else None
        blocks.append(_raw(file) if id is None else FileBlock(source=FileSource(file_id=id)))
    return blocks


def _viewed(native: dict[str, Any]) -> list[AgBlock] | None:
    text = _text(native, "content")
    return None if text is None else [TextBlock(text=text)]


def _advised(native: dict[str, Any]) -> list[AgBlock] | None:
    text = _text(native, "text")
    return None if text is None else [TextBlock(text=text)]


def _listed(native: dict[str, Any]) -> list[AgBlock] | None:
    """A structured outcome that is no text: what was found, which file was changed and how."""
    return [DataBlock(name=str(native["type"]), data={key: value for key, value in native.items() if key != "type"})]


def _text(native: dict[str, Any], name: str) -> str | None:
    value = native.get(name)
    return value if isinstance(value, str) else None


_READERS: dict[str, Callable[[dict[str, Any]], list[AgBlock] | None]] = {
    "text": _said,
    "web_search_result": _search_hit,
    "web_fetch_result": _fetched,
    "code_execution_result": _ran,
    "encrypted_code_execution_result": _ran,
    "bash_code_execution_result": _ran,
    "text_editor_code_execution_view_result": _viewed,
    "text_editor_code_execution_create_result": _listed,
    "text_editor_code_execution_str_replace_result": _listed,
    "tool_search_tool_search_result": _listed,
    "advisor_result": _advised,
}

RESULT_CONTENT_TYPES = frozenset(_READERS)
"""The native content types of results that have a readable form; others stay raw."""
