"""One stream of messages: from ``message_start`` to ``message_stop`` and on to the next (spec §8 items 1, 2, 4).

It knows messages, not turns, so that an adapter whose framework nests turns can hold one reader for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from agjson.adapters.anthropic._blocks import FRAME, Block, HotBlock, implied_block, open_block
from agjson.adapters.anthropic._carry import (
    CONTAINER,
    CONTEXT_MANAGEMENT,
    DIAGNOSTICS,
    INPUT_TRANSFORMATIONS,
    STOP_DETAILS,
    STOP_REASON,
    STOP_SEQUENCE,
    USAGE,
)
from agjson.adapters.anthropic._fields import BLOCKS, DELTAS, EVENTS, MESSAGE, MESSAGE_DELTA, unknown_fields
from agjson.adapters.anthropic._usage import add_usage, merge_usage, read_usage
from agjson.emitter import Emitter
from agjson.types import AgUsage, JsonValue

__all__ = ["MessageReader"]

Native = dict[str, Any]

# What a message says beside its content, by the metadata key that keeps it.
_KEPT = (
    ("stop_reason", STOP_REASON),
    ("stop_sequence", STOP_SEQUENCE),
    ("stop_details", STOP_DETAILS),
    ("container", CONTAINER),
    ("diagnostics", DIAGNOSTICS),
    ("context_management", CONTEXT_MANAGEMENT),
    ("input_transformations", INPUT_TRANSFORMATIONS),
)

_ROLES = ("assistant", "user", "system")

Fault = Literal["unexpected_event", "duplicate_event", "message_truncated"]


class MessageReader:
    """Reads Messages events, plain or beta, as plain data, and whole messages.

    Attributes:
        emitter: what writes the events.
        turn_id: the turn that its messages belong to, or None for the current one.
        message_id: the emitted id of the message read last, or an empty string.
        is_open: whether a message has started and not stopped.
        complete: whether the message read last has stopped; false before the first.
        stop_reason: its native stop reason, if it named one.
        stop_details: its native stop details.
        usage: the usage of every message so far, that of the open one included.
        hot: the open blocks whose deltas come by the thousand, by index.
    """

    def __init__(self, emitter: Emitter, turn_id: str | None = None) -> None:
        self.emitter = emitter
        self.turn_id = turn_id
        self.message_id = ""
        self.is_open = False
        self.complete = False
        self._native_id: object = None
        self._kept: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._earlier_usage: AgUsage | None = None
        self._blocks: dict[int, Block] = {}
        self.hot: dict[int, HotBlock] = {}
        self._told: dict[str, JsonValue] = {}

    @property
    def stop_reason(self) -> object:
        """The native stop reason of the message read last."""
        return self._kept.get("stop_reason")

    @property
    def stop_details(self) -> object:
        """The native stop details of the message read last."""
        return self._kept.get("stop_details")

    @property
    def usage(self) -> AgUsage | None:
        """The usage of every message so far; None where none was reported."""
        return add_usage(self._earlier_usage, read_usage(self._usage))

    def take(self, native: Native) -> bool:
        """Read one event or one whole message.

        Args:
            native: plain data.

        Returns:
            False if its type is none of the vocabulary; then nothing was emitted.
        """
        kind = native.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is None:
            return False
        handler(self, native)
        return True

    def block(self, index: object) -> Block | None:
        """The block at a place of the open message, if it is open.

        Args:
            index: the place; anything that is none leads to None.
        """
        block = self._blocks.get(index) if type(index) is int else None
        return None if block is None or block.closed else block

    def carry(self, native: Native, fault: Fault | None = None, why: str = "") -> None:
        """Carry a native value visibly, whole.

        Args:
            native: the value.
            fault: if something is wrong with it, what; an `error` follows.
            why: the same in words.
        """
        turn = self.turn_id
        self.emitter.ext(FRAME, {"kind": str(native.get("type")), "frame": native}, turn_id=turn)
        if fault is not None:
            self.emitter.error(why, code=fault, turn_id=turn)

    def settle(self) -> None:
        """Say what the open message has told beside its content, before an end that the stream itself did not bring.

        The message and its blocks stay as they are: what closes the turn closes them.
        """
        if self.is_open:
            self._tell()

    # Messages

    def _message_start(self, native: Native) -> None:
        message = native.get("message")
        if not isinstance(message, dict):
            self.carry(native, "unexpected_event", "message_start has no message")
            return
        if self.is_open:
            if message.get("id") == self._native_id and self._native_id is not None:
                self.carry(native, "duplicate_event", f"message {self._native_id} has started already")
                return
            self._cut()
        self._start(message)
        for index, block in enumerate(self._contents(message)):
            self._start_block(index, block)
            self._stop_block(index)
        self._carry_unknown(native, EVENTS["message_start"])

    def _message(self, native: Native) -> None:
        """A whole message: the same events as when it streams."""
        if self.is_open:
            if native.get("id") == self._native_id and self._native_id is not None:
                self.carry(native, "duplicate_event", f"message {self._native_id} comes whole while it streams")
                return
            self._cut()
        elif native.get("id") == self._native_id and self._native_id is not None:
            self.carry(native, "duplicate_event", f"message {self._native_id} comes again")
            return
        self._start(native)
        for index, block in enumerate(self._contents(native)):
            self._start_block(index, block)
            self._stop_block(index)
        self._stop()
        # A helper hands out what it has when its stream breaks off: then there is no reason.
        self.complete = self.stop_reason is not None

    def _contents(self, message: Native) -> list[Any]:
        content = message.get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return content if isinstance(content, list) else []

    def _start(self, message: Native) -> None:
        self._earlier_usage = self.usage
        self._usage, self._kept, self._blocks = {}, {}, {}
        self.hot.clear()
        self._told = {}
        id, model, role = message.get("id"), message.get("model"), message.get("role")
        self._native_id = id if isinstance(id, str) else None
        self.message_id = self.emitter.message_start(
            self._native_id or None,
            role=role if role in _ROLES else "assistant",
            model=model if isinstance(model, str) else None,
            turn_id=self.turn_id,
        )
        self.is_open, self.complete = True, False
        self._keep(message)
        self._merge_usage(message)
        odd = {
            name: message[name]
            for name, kind in (("id", str), ("model", str), ("content", (str, list)))
            if message.get(name) is not None and not isinstance(message[name], kind)
        }
        if role is not None and role not in _ROLES:
            odd["role"] = role
        odd.update(unknown_fields(message, MESSAGE))
        if odd:
            self._carry_fields("message", odd)

    def _message_delta(self, native: Native) -> None:
        if not self.is_open:
            self.carry(native, "unexpected_event", "message_delta outside a message")
            return
        delta = native.get("delta")
        if isinstance(delta, dict):
            self._keep(delta)
            if unknown := unknown_fields(delta, MESSAGE_DELTA):
                self._carry_fields("message_delta.delta", unknown)
        elif delta is not None:
            self.carry(native, "unexpected_event", "the delta of message_delta is no object")
            return
        self._keep(native)
        self._merge_usage(native)
        self._carry_unknown(native, EVENTS["message_delta"])

    def _message_stop(self, native: Native) -> None:
        if not self.is_open:
            self.carry(native, "unexpected_event", "message_stop outside a message")
            return
        self._carry_unknown(native, EVENTS["message_stop"])
        self._stop()

    def _stop(self) -> None:
        for block in self._blocks.values():
            self._close(block)
        self._end()
        self.complete = True

    def _cut(self) -> None:
        """End a message that another one interrupts."""
        self.emitter.error(
            f"message {self.message_id} broke off: another one has started",
            code="message_truncated",
            turn_id=self.turn_id,
        )
        for block in self._blocks.values():
            self._close(block)
        self._end()

    def _end(self) -> None:
        self._tell()
        self.emitter.message_end(self.message_id, usage=read_usage(self._usage), turn_id=self.turn_id)
        self.is_open = False

    def _tell(self) -> None:
        metadata: dict[str, JsonValue] = {
            key: value for name, key in _KEPT if (value := self._kept.get(name)) is not None
        }
        if self._usage:
            metadata[USAGE] = dict(self._usage)
        # A host may end a broken stream twice.
        if metadata != self._told:
            self._told = metadata
            self.emitter.message_metadata(metadata, message_id=self.message_id, turn_id=self.turn_id)

    def _keep(self, native: Native) -> None:
        """Note what an object says beside content and usage; null takes nothing back."""
        for name, _ in _KEPT:
            value = native.get(name)
            if value is not None:
                if name == "input_transformations" and value != self._kept.get(name):
                    self._report_transformations(value)
                self._kept[name] = value

    def _report_transformations(self, transformations: object) -> None:
        """Say what the provider has left out of the request."""
        for each in transformations if isinstance(transformations, list) else ():
            if isinstance(each, dict) and each.get("type") == "thinking_dropped":
                self.emitter.error(
                    f"the provider has dropped {each.get('path')} from the request: {each.get('reason')}",
                    code="thinking_dropped",
                    turn_id=self.turn_id,
                    message_id=self.message_id,
                )

    def _merge_usage(self, native: Native) -> None:
        usage = native.get("usage")
        if isinstance(usage, dict):
            merge_usage(self._usage, usage)
        elif usage is not None:
            self._carry_fields("usage", {"usage": usage})

    # Blocks

    def _content_block_start(self, native: Native) -> None:
        index, block = native.get("index"), native.get("content_block")
        if not self.is_open or type(index) is not int or not isinstance(block, dict):
            self.carry(native, "unexpected_event", "content_block_start is out of place or malformed")
            return
        there = self._blocks.get(index)
        same = there is not None and there.kind == block.get("type") and there.native_id == block.get("id")
        # A block without an id that has ended is another one: some gateways give every block the index 0.
        if there is not None and same and (there.native_id is not None or not there.closed):
            self.carry(native, "duplicate_event", f"block {index} has started already")
            return
        self._start_block(index, block)
        self._carry_unknown(native, EVENTS["content_block_start"])

    def _start_block(self, index: int, native: Any) -> None:
        if (there := self._blocks.get(index)) is not None:
            self._close(there)
        if not isinstance(native, dict) or not isinstance(native.get("type"), str):
            native = {"type": "unknown", "value": native}
        self._put(index, open_block(self, index, native))
        known = BLOCKS.get(native["type"])
        if known is not None and (unknown := unknown_fields(native, known)):
            self._carry_fields(native["type"], unknown)

    def _content_block_delta(self, native: Native) -> None:
        index, delta = native.get("index"), native.get("delta")
        if not self.is_open or type(index) is not int or not isinstance(delta, dict):
            self.carry(native, "unexpected_event", "content_block_delta is out of place or malformed")
            return
        there = self._blocks.get(index)
        if there is None or there.closed or not there.take(delta):
            implied = implied_block(self, index, delta)
            if implied is None:
                self.carry(native, "unexpected_event", f"block {index} takes no such delta")
                return
            if there is not None:
                self._close(there)
            self._put(index, implied)
        known = DELTAS.get(str(delta.get("type")))
        if known is not None and (unknown := unknown_fields(delta, known)):
            self._carry_fields(str(delta.get("type")), unknown)
        self._carry_unknown(native, EVENTS["content_block_delta"])

    def _content_block_stop(self, native: Native) -> None:
        index = native.get("index")
        if self.block(index) is None or not self.is_open:
            self.carry(native, "unexpected_event", "content_block_stop for no open block")
            return
        assert isinstance(index, int)
        self._stop_block(index)
        self._carry_unknown(native, EVENTS["content_block_stop"])

    def _put(self, index: int, block: Block) -> None:
        self._blocks[index] = block
        if isinstance(block, HotBlock):
            self.hot[index] = block
        else:
            self.hot.pop(index, None)

    def _stop_block(self, index: int) -> None:
        self._close(self._blocks[index])

    def _close(self, block: Block) -> None:
        if not block.closed:
            block.closed = True
            block.close()
            for index in [index for index, each in self.hot.items() if each is block]:
                del self.hot[index]

    def _ping(self, native: Native) -> None:
        self._carry_unknown(native, EVENTS["ping"])

    # What is not known

    def _carry_unknown(self, native: Native, known: frozenset[str]) -> None:
        if unknown := unknown_fields(native, known):
            self._carry_fields(str(native.get("type")), unknown)

    def _carry_fields(self, kind: str, fields: dict[str, Any]) -> None:
        self.emitter.ext(FRAME, {"kind": f"{kind}.fields", "frame": fields}, turn_id=self.turn_id)


_HANDLERS: dict[str, Callable[[MessageReader, Native], None]] = {
    "message_start": MessageReader._message_start,
    "content_block_start": MessageReader._content_block_start,
    "content_block_delta": MessageReader._content_block_delta,
    "content_block_stop": MessageReader._content_block_stop,
    "message_delta": MessageReader._message_delta,
    "message_stop": MessageReader._message_stop,
    "message": MessageReader._message,
    "ping": MessageReader._ping,
}
