"""A history taken apart: one item for each native block, with the role that says it and the call that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agjson.adapters.anthropic._carry import CALLER, MESSAGE, STOP_REASON, TOOLSET, USAGE, VENDOR
from agjson.adapters.anthropic._in_blocks import block_from_native
from agjson.adapters.anthropic._out_blocks import assistant_block, is_string, system_block, user_block
from agjson.adapters.anthropic._out_tools import (
    CallIds,
    client_call,
    client_result,
    is_server_call,
    server_call,
    server_result,
)
from agjson.adapters.anthropic._repair import Ledger
from agjson.emitter import SYNTHESIZED
from agjson.types import AgBlock, AgMessage, ProviderRawBlock, ToolCallBlock, ToolResultBlock

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
        result: the item of its result, if it has one.
        item: its own item.
        group: where it stands.
        cut_off: its message broke off, so that it may be half of a call.
    """

    block: ToolCallBlock
    path: str
    id: str
    server: bool
    item: Item | None = None
    result: Item | None = None
    group: Group | None = None
    cut_off: bool = False

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
        caller = self.item.block.get(CALLER) if self.item is not None else None
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
        string: it stands for a plain string if it stands alone.
        live: it is still to be sent.
        kept: a system message that stays in its place; any other is lifted to the head.
        blocks: the blocks of a system message.
        fields: further native fields of a system message.
    """

    role: Role
    block: dict[str, Any]
    path: str
    call: Call | None = None
    result: bool = False
    string: bool = False
    live: bool = True
    kept: bool = False
    blocks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    fields: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True, eq=False)
class Group:
    """What becomes one native message.

    Attributes:
        role: who says it.
        items: its blocks in order, without the results of the assistant's client calls before it.
        results: the results of the client calls of the message before it, which come first.
    """

    role: Role
    items: list[Item] = field(default_factory=list[Item])
    results: list[Item] = field(default_factory=list[Item])


def take_apart(messages: Sequence[AgMessage], ledger: Ledger) -> list[Item]:
    """The items of a history, in order, calls and results matched.

    Args:
        messages: the history.
        ledger: where repairs are noted.

    Raises:
        ReplayError: something in it has no place in the Messages API.
    """
    sent = [
        (f"$[{index}]", message, [_neutral(block) for block in message.content])
        for index, message in enumerate(messages)
        if message.role != "notice" and _is_sent(message, f"$[{index}]", ledger)
    ]
    book = _Calls(sent, ledger)
    items: list[Item] = []
    for path, message, blocks in sent:
        if message.role == "system":
            items.extend(_system_item(path, message, blocks, ledger))
            continue
        for index, block in enumerate(blocks):
            item = _item(message, block, f"{path}.content[{index}]", book, ledger)
            if item is not None:
                items.append(item)
    return items


def _is_sent(message: AgMessage, path: str, ledger: Ledger) -> bool:
    if message.candidate_index:
        ledger.note("candidate_dropped", path, "one candidate of several goes back: the first")
        return False
    return True


def _neutral(block: AgBlock) -> AgBlock:
    """A native block that was carried whole although it has a neutral form, in that form: calls must be paired."""
    raw = block.raw if isinstance(block, ProviderRawBlock) and block.vendor == VENDOR else None
    return block_from_native(raw) if isinstance(raw, dict) and isinstance(raw.get("type"), str) else block


class _Calls:
    """The calls of a history, found by place and by the id that results name."""

    def __init__(self, sent: Sequence[tuple[str, AgMessage, list[AgBlock]]], ledger: Ledger) -> None:
        self._at: dict[str, Call] = {}
        self._first: dict[str, Call] = {}
        self._last: dict[str, Call] = {}
        self._refused: set[str] = set()
        ids = CallIds()
        for path, message, blocks in sent:
            if message.role != "assistant":
                continue
            for index, block in enumerate(blocks):
                if isinstance(block, ToolCallBlock):
                    self._enter(block, f"{path}.content[{index}]", ids, ledger)

    def _enter(self, block: ToolCallBlock, path: str, ids: CallIds, ledger: Ledger) -> None:
        if block.tool_metadata and block.tool_metadata.get(SYNTHESIZED):
            # Nobody made this call: it only announces a result whose own call was out of sight.
            return
        server = is_server_call(block)
        if block.provider_executed and not server:
            ledger.note("server_call_dropped", path, "another provider ran this call, with tools of its own")
            self._refused.add(block.tool_call_id)
            return
        call = Call(block, path, ids.name(block, path, ledger), server)
        self._at[path] = call
        self._first.setdefault(block.tool_call_id, call)

    def at(self, path: str) -> Call | None:
        """The call at a place; None where it does not go back."""
        return self._at.get(path)

    def meet(self, call: Call, item: Item) -> Item:
        """Note that a call has been met on the way through the history, with its item."""
        call.item = item
        self._last[call.block.tool_call_id] = call
        return item

    def answered_by(self, block: ToolResultBlock) -> Call | None:
        """The call that a result answers: of several with one id the last that has been met, else the first."""
        return self._last.get(block.tool_call_id) or self._first.get(block.tool_call_id)

    def is_refused(self, block: ToolResultBlock) -> bool:
        """Whether a result belongs to a call that was left out."""
        return block.tool_call_id in self._refused


def _item(message: AgMessage, block: AgBlock, path: str, book: _Calls, ledger: Ledger) -> Item | None:
    if isinstance(block, ToolResultBlock):
        return _result_item(block, path, book, ledger)
    if message.role != "assistant":
        native = user_block(block, path, ledger)
        return None if native is None else Item("user", native, path, string=is_string(block))
    if isinstance(block, ToolCallBlock):
        call = book.at(path)
        if call is None:
            return None
        call.cut_off = _is_cut_off(message)
        write = server_call if call.server else client_call
        return book.meet(call, Item("assistant", write(block, call.id, path, ledger), path, call))
    native = assistant_block(block, path, ledger)
    return None if native is None else Item("assistant", native, path, string=is_string(block))


def _is_cut_off(message: AgMessage) -> bool:
    """Whether an answer broke off: it told its usage, and no reason why it stopped."""
    metadata = message.metadata or {}
    return USAGE in metadata and STOP_REASON not in metadata


def _result_item(block: ToolResultBlock, path: str, book: _Calls, ledger: Ledger) -> Item | None:
    if block.outcome == "input_required":
        # It only says that the call still waits; pairing does not see it.
        return None
    call = book.answered_by(block)
    if call is None:
        reason = "its call was left out" if book.is_refused(block) else "the history has no such call"
        ledger.note("result_dropped", path, reason)
        return None
    if call.server and (call.item is None or not call.item.live):
        ledger.note("result_dropped", path, "its call does not stand before it")
        return None
    earlier = call.result
    if earlier is not None and block.preliminary:
        ledger.note("result_dropped", path, "the call has a result already, and this one is partial")
        return None
    if call.server:
        native = server_result(block, call.block, call.id)
        if native is None:
            ledger.note("result_dropped", path, "the provider's form of the result is gone and cannot be made again")
            if not call.answered:
                _drop_call(call, "its result cannot go back", ledger)
            return None
        item = Item("assistant", native, path, call, result=True)
    else:
        native = client_result(block, call.id, call.toolset, path, ledger)
        item = Item("user", native, path, call, result=True)
    if earlier is not None:
        earlier.live = False
        ledger.note("result_dropped", earlier.path, "a later result of the same call takes its place")
    call.result = item
    return item


def _drop_call(call: Call, reason: str, ledger: Ledger) -> None:
    if call.item is not None and call.item.live:
        call.item.live = False
        ledger.note("server_call_dropped", call.path, reason)


def _system_item(path: str, message: AgMessage, blocks: Sequence[AgBlock], ledger: Ledger) -> Iterator[Item]:
    natives: list[dict[str, Any]] = []
    strings: list[bool] = []
    for index, block in enumerate(blocks):
        native = system_block(block, f"{path}.content[{index}]", ledger)
        if native is not None:
            natives.append(native)
            strings.append(is_string(block))
    fields = message.metadata.get(MESSAGE) if message.metadata else None
    if natives or (isinstance(fields, dict) and fields):
        item = Item("system", {}, path, string=strings == [True], blocks=natives)
        if isinstance(fields, dict):
            item.kept, item.fields = True, dict(fields)
        yield item
