"""A history taken apart: one item for each native block, with the role that says it and the call that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agjson.adapters.anthropic._carry import CALLER, MESSAGE, STOP_REASON, TOOLSET, USAGE
from agjson.adapters.anthropic._out_blocks import assistant_block, is_string, system_block, user_block
from agjson.adapters.anthropic._out_tools import (
    CallIds,
    client_call,
    client_result,
    is_server_call,
    server_call,
    server_result,
)
from agjson.adapters.anthropic._repair import Repairs
from agjson.transcript import Origin, Prepared
from agjson.types import AgBlock, AgMessage, ToolCallBlock, ToolResultBlock

__all__ = ["Call", "Group", "Item", "Role", "take_apart"]

Role = Literal["user", "assistant", "system"]


@dataclass(slots=True, eq=False)
class Call:
    """A tool call of the history.

    Attributes:
        block: the call.
        path: its JSON path.
        id: its id in the request.
        server: the provider ran it.
        cut_off: its message broke off, so that it may be half of a call.
        item: its own item.
        result: the item of its result; a call that the provider did not run has one always.
        added: nobody gave that result: it says that the call has none.
        group: where it stands.
    """

    block: ToolCallBlock
    path: str
    id: str
    server: bool
    cut_off: bool
    item: Item = field(init=False)
    result: Item | None = None
    added: bool = False
    group: Group | None = None

    @property
    def answered(self) -> bool:
        """Whether it has a result that goes back."""
        return self.result is not None and self.result.live

    @property
    def toolset(self) -> object:
        """The toolset that it names, if it names one."""
        return self.block.provider_metadata.get(TOOLSET) if self.block.provider_metadata else None

    @property
    def program(self) -> object:
        """The id of the call whose code made this one, if code made it."""
        caller = self.item.block.get(CALLER)
        return caller.get("tool_id") if isinstance(caller, dict) else None


@dataclass(slots=True, eq=False)
class Item:
    """One native block on its way into a message.

    Attributes:
        role: who says it.
        block: the native block; empty for a system message, whose blocks are in `blocks`.
        path: the JSON path of what it was made of.
        call: for calls and results, the call.
        result: whether it is the result of `call`, not the call itself.
        apart: a result that the provider gave, but that stands in no message of the assistant.
        string: it stands for a plain string if it stands alone.
        live: it is still to be sent.
        kept: a system message that stays in its place; any other is lifted to the head.
        blocks: the blocks of a system message.
        fields: further native fields of a system message, if it has any.
    """

    role: Role
    block: dict[str, Any]
    path: str
    call: Call | None = None
    result: bool = False
    apart: bool = False
    string: bool = False
    live: bool = True
    kept: bool = False
    blocks: Sequence[dict[str, Any]] = ()
    fields: Mapping[str, Any] | None = None

    @property
    def type(self) -> object:
        """The type of the native block."""
        return self.block.get("type")


@dataclass(slots=True, eq=False)
class Group:
    """What becomes one native message.

    Attributes:
        role: who says it.
        place: its position among the groups of items.
        items: its blocks in order, without the results of the assistant's client calls before it.
        calls: the client calls in it, in order; None: there are none.
        answers: the client calls of the message before it, whose results come first; None: there are none.
    """

    role: Role
    place: int = -1
    items: list[Item] = field(default_factory=list[Item])
    calls: list[Call] | None = None
    answers: list[Call] | None = None


def take_apart(prepared: Prepared, repairs: Repairs) -> list[Item]:
    """The items of a history, in order, calls and results matched.

    Args:
        prepared: the history, with a result right behind each call that the provider did not run.
        repairs: where they are noted.

    Raises:
        ReplayError: something in it has no place in the Messages API.
    """
    writer = _Writer(prepared, repairs)
    for message, origin in zip(prepared.messages, prepared.origins, strict=True):
        writer.write(message, origin)
    return writer.items


class _Writer:
    """Writes block after block, and knows the calls by where they stood in the history."""

    def __init__(self, prepared: Prepared, repairs: Repairs) -> None:
        self.items: list[Item] = []
        self._repairs = repairs
        self._ids = CallIds()
        self._calls: dict[tuple[int, int], Call] = {}
        self._call_of = {
            call.result_place[:2]: call.place[:2] for call in prepared.calls if call.result_place is not None
        }

    def write(self, message: AgMessage, origin: Origin) -> None:
        """Write a message."""
        if message.role == "system":
            self._system(message, origin)
            return
        for index, block in enumerate(message.content):
            path = origin.path(index)
            if isinstance(block, ToolResultBlock):
                item = self._result(message, block, (origin.message, origin.blocks[index]), path)
            elif isinstance(block, ToolCallBlock):
                item = self._call(message, block, (origin.message, origin.blocks[index]), path)
            else:
                item = self._words(message, block, path)
            if item is not None:
                self.items.append(item)

    def _words(self, message: AgMessage, block: AgBlock, path: str) -> Item | None:
        role: Role = "assistant" if message.role == "assistant" else "user"
        native = (assistant_block if role == "assistant" else user_block)(block, path, self._repairs)
        return None if native is None else Item(role, native, path, string=is_string(block))

    def _call(self, message: AgMessage, block: ToolCallBlock, place: tuple[int, int], path: str) -> Item | None:
        server = is_server_call(block)
        if block.provider_executed and not server:
            self._repairs.note("server_call_dropped", path, "another provider ran this call, with tools of its own")
            return None
        call = Call(block, path, self._ids.name(block, path, self._repairs), server, server and _is_cut_off(message))
        self._calls[place] = call
        write = server_call if server else client_call
        call.item = Item("assistant", write(block, call.id, path, self._repairs), path, call)
        return call.item

    def _result(self, message: AgMessage, block: ToolResultBlock, place: tuple[int, int], path: str) -> Item | None:
        call = self._calls.get(self._call_of.get(place, place))
        if call is None:
            self._repairs.note("result_dropped", path, "its call was left out")
            return None
        if call.server:
            native = server_result(block, call.block, call.id)
            if native is None:
                call.item.live = False
                reason = "the provider's form of the result is gone and cannot be made again"
                self._repairs.note("result_dropped", path, reason)
                self._repairs.note("server_call_dropped", call.path, "its result cannot go back")
                return None
            call.result = Item("assistant", native, path, call, result=True, apart=message.role != "assistant")
        else:
            native = client_result(block, call.id, call.toolset, path, self._repairs)
            call.result = Item("user", native, path, call, result=True)
            call.added = place not in self._call_of
        return call.result

    def _system(self, message: AgMessage, origin: Origin) -> None:
        natives: list[dict[str, Any]] = []
        strings: list[bool] = []
        for index, block in enumerate(message.content):
            native = system_block(block, origin.path(index), self._repairs)
            if native is not None:
                natives.append(native)
                strings.append(is_string(block))
        fields = message.metadata.get(MESSAGE) if message.metadata else None
        if natives or (isinstance(fields, dict) and fields):
            item = Item("system", {}, f"$[{origin.message}]", string=strings == [True], blocks=natives)
            if isinstance(fields, dict):
                item.kept, item.fields = True, fields
            self.items.append(item)


def _is_cut_off(message: AgMessage) -> bool:
    """Whether an answer broke off: it told its usage, and no reason why it stopped."""
    metadata = message.metadata or {}
    return USAGE in metadata and STOP_REASON not in metadata
