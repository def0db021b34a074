"""Tool calls of a message: of its content, of its list, and of tools that the provider runs (spec §2, §8 item 2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from msgspec.structs import replace

from agjson.adapters.anthropic._in_blocks import block_from_native
from agjson.adapters.anthropic._server_tools import server_result
from agjson.adapters.langgraph._carry import BLOCK, FIELDS, INVALID
from agjson.adapters.langgraph._media import source_of_url
from agjson.types import (
    AgBlock,
    AgProviderMeta,
    CodeResultBlock,
    DataBlock,
    ImageBlock,
    JsonValue,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = [
    "CALL_TYPES",
    "Calls",
    "call_names",
    "hosted_item",
    "read_arguments",
    "read_call",
    "server_call",
    "server_result_block",
]

Native: TypeAlias = dict[str, Any]

CALL_TYPES = frozenset(
    (
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "function_call",
        "custom_tool_call",
        "tool_call",
        "tool_call_chunk",
        "invalid_tool_call",
        "computer_call",
        "apply_patch_call",
        "shell_call",
        "local_shell_call",
    )
)
"""Native block types that are a call, and nothing but a call."""

# Tools that the provider offers and the host runs: their calls have a type of their own in place of a name.
_NAMED_BY_TYPE = frozenset(("computer_call", "apply_patch_call", "shell_call", "local_shell_call"))

_BY_ANTHROPIC = frozenset(("server_tool_use", "mcp_tool_use", "tool_use"))


def read_arguments(text: str) -> tuple[JsonValue, bool]:
    """The arguments that a text stands for: an object, strictly read. Nothing is repaired.

    Args:
        text: the raw text.

    Returns:
        The arguments, ``{}`` for no text, and true; the text itself and false if it is no JSON object.
    """
    if not text.strip():
        return {}, True
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text, False
    return (value, True) if isinstance(value, dict) else (text, False)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


class Calls:
    """The calls that a message lists beside its content.

    Args:
        calls: ``tool_calls`` of the message.
        invalid: ``invalid_tool_calls`` of the message.
        signatures: Gemini's signatures by call id.
    """

    __slots__ = ("_listed", "_signatures", "_told")

    def __init__(self, calls: object = None, invalid: object = None, signatures: object = None) -> None:
        self._listed: list[tuple[Native, bool]] = []
        for natives, valid in ((calls, True), (invalid, False)):
            if isinstance(natives, list):
                self._listed += [(each, valid) for each in natives if isinstance(each, dict)]
        self._signatures: Native = signatures if isinstance(signatures, dict) else {}
        self._told: set[int] = set()

    def take(self, id: str) -> tuple[Native, bool] | None:
        """The listed call of an id, and whether its arguments could be read; it counts as told from now on.

        Args:
            id: the call's id.
        """
        for place, (call, valid) in enumerate(self._listed):
            if call.get("id") == id and place not in self._told:
                self._told.add(place)
                return call, valid
        return None

    def signature(self, id: str) -> str | None:
        """Gemini's signature of a call.

        Args:
            id: the call's id.
        """
        value = self._signatures.get(id)
        return value if isinstance(value, str) and value else None

    def untold(self) -> list[AgBlock]:
        """The calls that no block of the content has told, in order."""
        blocks: list[AgBlock] = []
        for place, (call, valid) in enumerate(self._listed):
            if place not in self._told:
                self._told.add(place)
                blocks.append(self._block(call, valid))
        return blocks

    def _block(self, call: Native, valid: bool) -> ToolCallBlock:
        id, name = call.get("id"), call.get("name")
        id = id if isinstance(id, str) else ""
        input, fault = listed_arguments(call, valid)
        return ToolCallBlock(
            tool_call_id=id,
            name=name if isinstance(name, str) and name else "unknown",
            input=input,
            signature=self.signature(id),
            provider_metadata=None if fault is None else AgProviderMeta({INVALID: fault}),
        )


def listed_arguments(call: Native, valid: bool) -> tuple[JsonValue, JsonValue]:
    """The arguments of a listed call, and what is wrong with them: None if nothing is.

    Args:
        call: an element of ``tool_calls`` or ``invalid_tool_calls``.
        valid: it is of the former.
    """
    args = call.get("args")
    if valid:
        return ({}, None) if args is None else (args, None)
    error = call.get("error")
    return (args if isinstance(args, str) else "" if args is None else args), error if isinstance(error, str) else True


def call_names(part: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The id and the name of a call that a native block tells, each None where the block does not say it.

    Args:
        part: a block whose type is one of `CALL_TYPES`.
    """
    kind = part.get("type")
    of_item = kind in ("function_call", "custom_tool_call") or kind in _NAMED_BY_TYPE
    id = part.get("call_id" if of_item else "id")
    name = str(kind).removesuffix("_call") if kind in _NAMED_BY_TYPE else part.get("name")
    return (id if isinstance(id, str) and id else None), (name if isinstance(name, str) and name else None)


def read_call(part: Mapping[str, Any], provider: str | None, calls: Calls) -> ToolCallBlock | None:
    """The call that a native block tells, with the arguments that the message lists for it.

    Where the raw text of the arguments is at hand and is no JSON object, the text is the input: what LangChain lists is
    then a repair, and a call that was cut off must not look like one that was made.

    Args:
        part: a block whose type is one of `CALL_TYPES`.
        provider: the provider's name.
        calls: the calls that the message lists; that of the block counts as told.

    Returns:
        The call; None if the block does not say which tool is meant.
    """
    id, name = call_names(part)
    if name is None:
        return None
    listed = None if id is None else calls.take(id)
    kind = part["type"]
    raw = _raw_arguments(part)
    fault: JsonValue = None
    input: JsonValue
    if raw is not None and not read_arguments(raw)[1]:
        input, fault = raw, True
        if listed is not None and not listed[1]:
            input, fault = listed_arguments(*listed)
    elif listed is not None:
        input, fault = listed_arguments(*listed)
    elif raw is not None:
        input = read_arguments(raw)[0]
    else:
        input = _own_arguments(part)
    block = _call_block(part, kind, id or "", name, provider)
    signature = None if id is None else calls.signature(id)
    return replace(
        block,
        input=input,
        signature=block.signature or signature,
        provider_metadata=_with(block.provider_metadata, INVALID, fault),
    )


def _with(bag: AgProviderMeta | None, key: str, value: JsonValue) -> AgProviderMeta | None:
    return bag if value is None else AgProviderMeta({**(bag or {}), key: value})


def _raw_arguments(part: Mapping[str, Any]) -> str | None:
    """The text of the arguments as it came, where the block has kept it."""
    name = {"function_call": "arguments", "tool_call_chunk": "args"}.get(part["type"], "partial_json")
    raw = part.get(name)
    if raw is None and part["type"] == "tool_use":
        raw = part.get("input")  # Bedrock's, as a text
    return raw if isinstance(raw, str) and raw.strip() else None


def _own_arguments(part: Mapping[str, Any]) -> JsonValue:
    if part["type"] == "custom_tool_call":
        return {"__arg1": part.get("input")}
    if part["type"] in _NAMED_BY_TYPE:
        said = ("type", "index", "id", "call_id", "status")
        return {name: value for name, value in part.items() if name not in said and value is not None}
    input: JsonValue = part.get("input", part.get("args"))
    return {} if input is None or input == "" else input


def _call_block(part: Mapping[str, Any], kind: str, id: str, name: str, provider: str | None) -> ToolCallBlock:
    native = {key: value for key, value in part.items() if key not in ("index", "partial_json") and value is not None}
    if kind in _BY_ANTHROPIC:
        block = block_from_native({**native, "id": id, "name": name, "input": {}})
        return block if isinstance(block, ToolCallBlock) else _with_fields(native, id, name, ("id", "name", "input"))
    if kind == "function_call":
        block = _with_fields(native, id, name, ("id", "call_id", "name", "arguments"))
        return replace(block, item_id=_item_id(native.get("id")))
    if kind == "custom_tool_call" or kind in _NAMED_BY_TYPE:
        bag = AgProviderMeta({BLOCK: native})
        item_id = _item_id(native.get("id"))
        return ToolCallBlock(tool_call_id=id, name=name, input={}, item_id=item_id, provider_metadata=bag)
    extras = native.get("extras")
    extras = {key: value for key, value in extras.items() if value is not None} if isinstance(extras, dict) else {}
    item_id = _item_id(extras.pop("item_id", None))
    signature = extras.pop("signature", None) if isinstance(extras.get("signature"), str) else None
    beside: Native = {}
    if provider == "anthropic":
        beside = {key: extras.pop(key) for key in ("caller", "toolset_name") if key in extras}
    rest = {key: value for key, value in native.items() if key not in ("type", "id", "name", "args", "error", "extras")}
    if extras:
        rest["extras"] = extras
    if rest:
        beside[FIELDS] = rest
    return ToolCallBlock(
        tool_call_id=id,
        name=name,
        input={},
        item_id=item_id,
        signature=signature,
        provider_metadata=AgProviderMeta(beside) if beside else None,
    )


def _with_fields(native: Native, id: str, name: str, said: tuple[str, ...]) -> ToolCallBlock:
    rest = {key: value for key, value in native.items() if key != "type" and key not in said}
    bag = AgProviderMeta({FIELDS: rest}) if rest else None
    return ToolCallBlock(tool_call_id=id, name=name, input={}, provider_metadata=bag)


def _item_id(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


# Tools that the provider runs


def server_call(part: Mapping[str, Any], provider: str | None) -> ToolCallBlock | None:
    """A call in LangChain's own form of a tool that the provider runs.

    Args:
        part: a block of type ``server_tool_call`` or ``server_tool_call_chunk``.
        provider: the provider's name.
    """
    id, name = part.get("id"), part.get("name")
    if not isinstance(name, str) or not name:
        return None
    block = _call_block(part, "tool_call", id if isinstance(id, str) else "", name, provider)
    args, fault = part.get("args"), None
    if isinstance(args, str):
        args, sound = read_arguments(args)
        fault = None if sound else True
    return replace(
        block,
        input={} if args is None else args,
        provider_executed=True,
        provider_metadata=_with(block.provider_metadata, INVALID, fault),
    )


def server_result_block(part: Mapping[str, Any], provider: str | None) -> ToolResultBlock | None:
    """The result, in LangChain's own form, of a tool that the provider ran. The native block is kept beside it.

    Args:
        part: a block of type ``server_tool_result``.
        provider: the provider's name.
    """
    id, output, extras = part.get("tool_call_id"), part.get("output"), part.get("extras")
    if not isinstance(id, str) or not id:
        return None
    bag = AgProviderMeta({BLOCK: {key: value for key, value in part.items() if key != "index" and value is not None}})
    kind = extras.get("block_type") if isinstance(extras, dict) else None
    if provider == "anthropic" and isinstance(kind, str):
        fields = server_result({"type": kind, "tool_use_id": id, "content": output})
        return ToolResultBlock(tool_call_id=id, **{**fields, "provider_metadata": bag})
    content: list[AgBlock] = []
    if isinstance(output, str):
        content = [TextBlock(text=output)] if output else []
    elif output is not None and output != {} and output != []:
        content = [DataBlock(name=kind if isinstance(kind, str) and kind else "output", data=output)]
    failed = part.get("status") == "error"
    return ToolResultBlock(tool_call_id=id, content=content, outcome="error" if failed else "ok", provider_metadata=bag)


def hosted_item(native: Native) -> list[AgBlock] | None:
    """An item of the Responses API that is a call of a tool of the provider's together with what came of it.

    Args:
        native: the item without LangChain's additions.

    Returns:
        The call, and its result if the item has one; None if it is no such item.
    """
    read = _HOSTED.get(native["type"])
    id = native.get("id")
    if read is None or not isinstance(id, str) or not id:
        return None
    name, server, input, content, error = read(native)
    call = ToolCallBlock(
        tool_call_id=id,
        name=name,
        input=input,
        server_name=server,
        provider_executed=True,
        item_id=id,
        provider_metadata=AgProviderMeta({BLOCK: native}),
    )
    failed = error is not None or native.get("status") in ("failed", "incomplete")
    if content is None and not failed:
        return [call]
    return [
        call,
        ToolResultBlock(tool_call_id=id, content=content or [], outcome="error" if failed else "ok", error_text=error),
    ]


_Hosted: TypeAlias = tuple[str, str | None, JsonValue, list[AgBlock] | None, str | None]


def _searched(native: Native) -> _Hosted:
    action = native.get("action")
    return "web_search", None, action if isinstance(action, dict) else {}, None, None


def _files_searched(native: Native) -> _Hosted:
    results = native.get("results")
    found: list[AgBlock] | None = None
    if isinstance(results, list):
        found = [DataBlock(name="file_search_result", data=each) for each in results]
    queries = native.get("queries")
    return "file_search", None, {"queries": queries if isinstance(queries, list) else []}, found, None


def _interpreted(native: Native) -> _Hosted:
    blocks: list[AgBlock] = []
    outputs, code = native.get("outputs"), native.get("code")
    for each in outputs if isinstance(outputs, list) else ():
        logs = each.get("logs") if isinstance(each, dict) else None
        url = each.get("url") if isinstance(each, dict) else None
        if isinstance(logs, str):
            blocks.append(CodeResultBlock(outcome="ok", output=logs))
        elif isinstance(url, str) and url:
            blocks.append(ImageBlock(source=source_of_url(url)))
        else:
            blocks.append(DataBlock(name="output", data=each))
    input: JsonValue = {"code": code if isinstance(code, str) else ""}
    return "code_interpreter", None, input, blocks if isinstance(outputs, list) else None, None


def _mcp(native: Native) -> _Hosted:
    name, server, raw = native.get("name"), native.get("server_label"), native.get("arguments")
    input = read_arguments(raw)[0] if isinstance(raw, str) else {}
    output, error = native.get("output"), native.get("error")
    content: list[AgBlock] | None = [TextBlock(text=output)] if isinstance(output, str) else None
    told = error if isinstance(error, str) else None if error is None else json.dumps(error)
    return (
        name if isinstance(name, str) and name else "mcp",
        server if isinstance(server, str) else None,
        input,
        content,
        told,
    )


def _tools_searched(native: Native) -> _Hosted:
    arguments: JsonValue = native.get("arguments")
    return "tool_search", None, {} if arguments is None else arguments, None, None


_HOSTED: dict[str, Callable[[Native], _Hosted]] = {
    "web_search_call": _searched,
    "file_search_call": _files_searched,
    "code_interpreter_call": _interpreted,
    "mcp_call": _mcp,
    "tool_search_call": _tools_searched,
}
