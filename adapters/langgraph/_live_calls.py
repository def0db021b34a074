"""The calls of one message while its chunks come: in its content, beside it, or both (spec §5 tool.*, §8 item 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from agjson.adapters.langgraph._calls import Calls, call_names, read_arguments, read_call, server_call
from agjson.adapters.langgraph._carry import INVALID
from agjson.adapters.langgraph._content import Reading, read_content
from agjson.adapters.langgraph._merge import merge_block
from agjson.emitter import Emitter
from agjson.types import AgBlock, AgProviderMeta, ToolCallBlock

__all__ = ["SERVER_CALLS", "LiveCall", "LiveCalls"]

Native: TypeAlias = dict[str, Any]

SERVER_CALLS = frozenset(("server_tool_use", "mcp_tool_use", "server_tool_call", "server_tool_call_chunk"))
"""Native block types that are calls of tools which the provider runs; nothing beside the content tells them."""

# Members that hold fragments of arguments.
_ARGUMENTS = frozenset(("partial_json", "arguments", "args", "input"))
# Calls whose arguments stream as text.
_BY_PARTS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use", "tool_call_chunk", "server_tool_call_chunk"))


class LiveCall:
    """A tool call that may still get arguments.

    Attributes:
        id: its native id.
        name: its name, as far as it is known.
        native: the block of the content that tells it, but for the arguments; None where none does.
        server: the provider runs it.
        args: the fragments of its arguments.
        started: it is announced, and may get arguments.
        emitted: its id as emitted.
        said: the bag that its start has carried.
    """

    __slots__ = ("args", "emitted", "id", "name", "native", "said", "server", "started")

    def __init__(self, id: str | None, name: str | None, native: Native | None, *, server: bool = False) -> None:
        self.id = id
        self.name = name
        self.native = native
        self.server = server
        self.args: list[str] = []
        self.started = False
        self.emitted = ""
        self.said: AgProviderMeta | None = None


class LiveCalls:
    """Writes the calls of one message of the stream.

    Args:
        out: what writes the events.
        turn_id: the turn.
        message_id: the emitted id of the message.
        reading: what is known of the message.
        tell: tells a whole block.
        told: hears of each call that is complete.

    Attributes:
        signatures: Gemini's signatures by call id, as far as they have come.
    """

    def __init__(
        self,
        out: Emitter,
        turn_id: str,
        message_id: str,
        reading: Reading,
        *,
        tell: Callable[[AgBlock], None],
        told: Callable[[ToolCallBlock], None],
    ) -> None:
        self._out = out
        self._turn_id = turn_id
        self._message_id = message_id
        self._reading = reading
        self._tell = tell
        self._told = told
        self.signatures: object = None
        self._calls: list[LiveCall] = []
        self._by_id: dict[str, LiveCall] = {}
        self._by_index: dict[Any, LiveCall] = {}
        # A call whose name may not be whole yet.
        self._unnamed: LiveCall | None = None

    def settle(self, fragments: list[Any] | None = None) -> None:
        """Announce the call whose name may not have been whole, unless a chunk goes on with the name.

        Args:
            fragments: ``tool_call_chunks`` of the chunk that comes next.
        """
        if self._unnamed is not None and not (fragments and self._names_on(fragments)):
            self.start(self._unnamed)

    def open(self, part: Native) -> LiveCall:
        """Take a call in the content. Its arguments mostly come beside it, in ``tool_call_chunks``.

        Args:
            part: the block, or its first fragment.
        """
        id, name = call_names(part)
        server = part["type"] in SERVER_CALLS
        known = None if id is None else self._by_id.get(id)
        if known is not None and known.native is None:
            known.native = dict(part)
            return known
        call = LiveCall(id, name, dict(part), server=server)
        self._calls.append(call)
        if not server:
            self._enter(call, part.get("index"))
        if name is not None:
            self.start(call)
        if server:
            self._feed_server(call, part)
        return call

    def feed_hot(self, fragments: Any) -> bool:
        """Take an element of ``tool_call_chunks`` that only goes on with the arguments of a call.

        Args:
            fragments: ``tool_call_chunks`` of the chunk.

        Returns:
            False if it is more than that; then nothing has happened.
        """
        if self._unnamed is not None or fragments.__class__ is not list or len(fragments) != 1:
            return False
        fragment = fragments[0]
        try:
            text, index = fragment["args"], fragment["index"]
            if fragment["id"] or fragment["name"] or text.__class__ is not str or index.__class__ is not int:
                return False
            call = self._by_index[index]
        except (KeyError, TypeError):
            return False
        if not call.started:
            return False
        if text:
            call.args.append(text)
            self._out.tool_args_delta(call.emitted, text)
        return True

    def has(self, id: str) -> bool:
        """Tell whether a call is told of.

        Args:
            id: its native id.
        """
        return id in self._by_id

    def end_all(self) -> None:
        """Complete the calls of the host's tools. To be called once, when the message ends."""
        self.settle()
        for call in self._calls:
            if not call.server:
                self.end(call)

    def _enter(self, call: LiveCall, index: Any) -> None:
        if call.id is not None:
            self._by_id[call.id] = call
        if type(index) in (int, str):
            self._by_index[index] = call

    def merge(self, call: LiveCall, part: Native) -> None:
        """Take a further fragment of the block that tells a call.

        Args:
            call: the call.
            part: the fragment.
        """
        rest = {name: value for name, value in part.items() if name not in _ARGUMENTS or not isinstance(value, str)}
        if call.id is None:
            call.id = call_names(part)[0]
            if call.id is not None:
                self._by_id[call.id] = call
        if len(rest) > 2:
            call.native = merge_block(call.native or {}, rest)
        if call.server:
            self._feed_server(call, part)

    def _feed_server(self, call: LiveCall, part: Native) -> None:
        for name in ("partial_json", "args"):
            value = part.get(name)
            if isinstance(value, str):
                self.grow(call, value)

    def grow(self, call: LiveCall, text: str) -> None:
        """Take a fragment of the arguments of a call.

        Args:
            call: the call.
            text: the fragment.
        """
        if not text:
            return
        if not call.started:
            self.start(call)
        call.args.append(text)
        self._out.tool_args_delta(call.emitted, text, turn_id=self._turn_id)

    def _names_on(self, fragments: list[Any]) -> bool:
        """Whether a chunk only goes on with the name of the call that has none yet, or not all of it."""
        waiting = self._unnamed
        if len(fragments) != 1 or not isinstance(fragments[0], dict):
            return False
        fragment = fragments[0]
        id = fragment.get("id")
        if id and (waiting is None or id != waiting.id):
            return False
        index = fragment.get("index")
        return bool(fragment.get("name")) and type(index) in (int, str) and self._by_index.get(index) is waiting

    def feed(self, fragment: Native) -> None:
        """Take an element of ``tool_call_chunks``: a new id is a new call, whatever its index.

        Args:
            fragment: the element.
        """
        id, name, args, index = (fragment.get(key) for key in ("id", "name", "args", "index"))
        id = id if isinstance(id, str) and id else None
        name = name if isinstance(name, str) and name else None
        call = self._call_of(id, name, index)
        if call is None:
            self.settle()
            call = LiveCall(id, name, None)
            self._calls.append(call)
            self._unnamed = call
        elif name is not None and not call.started and name != call.name:
            call.name = (call.name or "") + name
        self._enter(call, index)
        if isinstance(args, str):
            self.grow(call, args)
        elif isinstance(args, dict) and not call.args:
            call.native = {**(call.native or {"type": "tool_call", "id": id, "name": name}), "args": args}

    def _call_of(self, id: str | None, name: str | None, index: Any) -> LiveCall | None:
        """The call that a fragment belongs to; None for a new one."""
        if id is not None:
            call = self._by_id.get(id)
            if call is not None:
                # Whole calls without an index do not go on: the same id again is another one.
                again = index is None and name is not None and bool(call.args) and call.native is None
                return None if again else call
            at = self._by_index.get(index) if type(index) in (int, str) else None
            return at if at is not None and at.id is None and not at.args else None
        if type(index) in (int, str):
            return self._by_index.get(index)
        if name is not None:
            return None
        return next((call for call in reversed(self._calls) if not call.server), None)

    def feed_listed(self, chunk: Mapping[str, Any]) -> None:
        """Take the calls of a chunk that lists them whole: LangChain fills both lists, other serialisations may not.

        Args:
            chunk: a chunk without ``tool_call_chunks``.
        """
        for name in ("tool_calls", "invalid_tool_calls"):
            listed = chunk.get(name)
            for native in listed if isinstance(listed, list) else ():
                if not isinstance(native, dict):
                    continue
                args, id = native.get("args"), native.get("id")
                if isinstance(id, str) and id in self._by_id:
                    known = self._by_id[id]
                    if known.native is not None and not known.args and isinstance(args, dict):
                        known.native["args"] = args
                    continue
                self.feed({**native, "index": None})

    def start(self, call: LiveCall) -> None:
        """Announce a call, once.

        Args:
            call: the call.
        """
        if self._unnamed is call:
            self._unnamed = None
        if call.started:
            return
        call.started = True
        block = self._base(call)
        call.said = block.provider_metadata
        call.emitted = self._out.tool_start(
            call.id,
            block.name,
            server_name=block.server_name,
            provider_executed=block.provider_executed,
            item_id=block.item_id,
            provider_metadata=block.provider_metadata,
            turn_id=self._turn_id,
            message_id=self._message_id,
        )

    def _base(self, call: LiveCall) -> ToolCallBlock:
        """The call as it stands, without the arguments that stream."""
        provider = self._reading.provider
        block: ToolCallBlock | None = None
        if call.native is not None:
            native = {
                key: value
                for key, value in call.native.items()
                if key not in ("partial_json", "arguments")
                and not (key in ("args", "input") and isinstance(value, str) and call.native["type"] in _BY_PARTS)
            }
            if native["type"] in ("server_tool_call", "server_tool_call_chunk"):
                block = server_call(native, provider)
            else:
                block = read_call(native, provider, Calls(signatures=self.signatures))
        if block is None:
            signature = Calls(signatures=self.signatures).signature(call.id or "")
            block = ToolCallBlock(tool_call_id="", name=call.name or "unknown", input={}, signature=signature)
        return replace(block, tool_call_id=call.id or "")

    def end(self, call: LiveCall) -> None:
        """Complete the arguments of a call.

        Args:
            call: the call.
        """
        if not call.started and call.name is None and not call.args and call.native is not None:
            for block in read_content(call.native, self._reading):
                self._tell(block)
            return
        if not call.started:
            self.start(call)
        block = self._base(call)
        raw = "".join(call.args)
        if raw.strip():
            input, sound = read_arguments(raw)
            bag = block.provider_metadata
            if not sound:
                bag = AgProviderMeta({**(bag or {}), INVALID: True})
            block = replace(block, input=input, provider_metadata=bag)
        said = block.provider_metadata
        self._out.tool_args_assembled(
            call.emitted,
            block.input,
            signature=block.signature,
            provider_metadata=None if said == call.said else said,
            turn_id=self._turn_id,
        )
        self._told(block)
