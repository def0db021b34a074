"""Content blocks while they stream: what each native kind becomes (spec §2, §8 items 1, 2, 9, 13).

A block that comes whole is opened and closed at once, so that both ways lead to the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from agjson.adapters.anthropic._carry import (
    CALLER,
    CITATIONS,
    COMPACTION,
    DELTAS,
    ESTIMATED_TOKENS,
    SERVED_BY,
    TOOLSET,
    VENDOR,
)
from agjson.adapters.anthropic._citations import read_citations
from agjson.adapters.anthropic._server_tools import is_server_result, server_result
from agjson.emitter import Emitter
from agjson.types import (
    UNSET,
    AgOpaque,
    AgProviderMeta,
    CompactionBlock,
    FileBlock,
    FileSource,
    JsonValue,
    ProviderRawBlock,
    UnsetType,
)

__all__ = ["FRAME", "Block", "Home", "HotBlock", "implied_block", "open_block"]

FRAME = "ext.anthropic.frame"
"""The event that carries a native value for which there is no other (spec §8 item 22)."""

Native = dict[str, Any]


class Home(Protocol):
    """The message that blocks go to.

    Attributes:
        emitter: what writes the events.
        message_id: the message's id as emitted.
        turn_id: the turn, or None for the current one.
    """

    emitter: Emitter
    message_id: str
    turn_id: str | None


class Block:
    """An open block.

    Attributes:
        kind: its native type.
        native_id: its native id, for kinds that have one.
        closed: nothing more goes to it.
    """

    __slots__ = ("closed", "emitter", "kind", "native_id")

    def __init__(self, home: Home, native: Native) -> None:
        self.emitter = home.emitter
        self.kind: str = native["type"]
        self.native_id: object = native.get("id")
        self.closed = False

    def take(self, delta: Native) -> bool:
        """Take a delta; False if it is of no kind that this block takes."""
        return False

    def close(self) -> None:
        """Emit what comes at the end of the block."""


class HotBlock(Block):
    """A block of a kind whose deltas come by the thousand.

    Class attributes:
        HOT: the native type of these deltas.
        FIELD: the one field of such a delta that says something.
    """

    __slots__ = ()

    HOT: ClassVar[str]
    FIELD: ClassVar[str]

    def feed(self, value: str) -> bool:
        """Take the field of a delta of that type. Always true."""
        raise NotImplementedError


class _Text(HotBlock):
    __slots__ = ("citations", "id")

    HOT = "text_delta"
    FIELD = "text"

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        self.id = self.emitter.text_start(
            f"{home.message_id}:text:{index}", index=index, turn_id=home.turn_id, message_id=home.message_id
        )
        self.citations: list[JsonValue] = list(native.get("citations") or ())
        self.emitter.text_delta(self.id, native.get("text") or "")

    def feed(self, value: str) -> bool:
        self.emitter.text_delta(self.id, value)
        return True

    def take(self, delta: Native) -> bool:
        kind = delta.get("type")
        if kind == "text_delta" and isinstance(text := delta.get("text"), str):
            self.emitter.text_delta(self.id, text)
        elif kind == "citations_delta" and isinstance(citation := delta.get("citation"), dict):
            self.citations.append(citation)
        else:
            return False
        return True

    def close(self) -> None:
        natives = self.citations
        self.emitter.text_end(
            self.id,
            citations=(read_citations(natives) or None) if natives else None,
            provider_metadata=AgProviderMeta({CITATIONS: natives}) if natives else None,
        )


class _Thinking(HotBlock):
    __slots__ = ("id", "signature")

    HOT = "thinking_delta"
    FIELD = "thinking"

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        self.id = self.emitter.reasoning_start(
            f"{home.message_id}:reasoning:{index}", turn_id=home.turn_id, message_id=home.message_id
        )
        self.signature: str = native.get("signature") or ""
        self.emitter.reasoning_delta(self.id, native.get("thinking") or "")

    def feed(self, value: str) -> bool:
        self.emitter.reasoning_delta(self.id, value)
        return True

    def take(self, delta: Native) -> bool:
        kind = delta.get("type")
        if kind == "thinking_delta" and isinstance(text := delta.get("thinking"), str):
            tokens = delta.get("estimated_tokens")
            self.emitter.reasoning_delta(self.id, text, meta=None if tokens is None else {ESTIMATED_TOKENS: tokens})
        elif kind == "signature_delta" and isinstance(signature := delta.get("signature"), str):
            # Each replaces the one before, as in the provider's own client; an empty one says nothing.
            self.signature = signature or self.signature
        else:
            return False
        return True

    def close(self) -> None:
        self.emitter.reasoning_opaque(self.id, self.signature, provider=VENDOR)
        self.emitter.reasoning_end(self.id, provider=VENDOR)


class _Redacted(Block):
    __slots__ = ("id",)

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        self.id = self.emitter.reasoning_start(
            f"{home.message_id}:reasoning:{index}", turn_id=home.turn_id, message_id=home.message_id
        )
        self.emitter.reasoning_opaque(self.id, native["data"], kind="redacted", provider=VENDOR)

    def close(self) -> None:
        self.emitter.reasoning_end(self.id, provider=VENDOR)


class _Call(HotBlock):
    __slots__ = ("call", "fed", "input")

    HOT = "input_json_delta"
    FIELD = "partial_json"

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        metadata = AgProviderMeta({key: value for key in (CALLER, TOOLSET) if (value := native.get(key)) is not None})
        self.call = self.emitter.tool_start(
            native.get("id") or None,
            native["name"],
            index=index,
            server_name=native.get("server_name"),
            provider_executed=None if self.kind == "tool_use" else True,
            provider_metadata=metadata or None,
            turn_id=home.turn_id,
            message_id=home.message_id,
        )
        # What the start says holds if no delta says more: a call may come without any.
        self.input: JsonValue | UnsetType = native.get("input", {})
        self.fed = False

    def feed(self, value: str) -> bool:
        if not self.fed:
            self.fed = not (not value or value.isspace())
        self.emitter.tool_args_delta(self.call, value)
        return True

    def take(self, delta: Native) -> bool:
        part = delta.get("partial_json")
        return delta.get("type") == "input_json_delta" and isinstance(part, str) and self.feed(part)

    def close(self) -> None:
        self.emitter.tool_args_assembled(self.call, UNSET if self.fed else self.input)


class _Result(Block):
    """The result of a server tool. Its place is here, also where the call is in a message before a pause."""

    __slots__ = ()

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        self.emitter.tool_done(
            native["tool_use_id"],
            turn_id=home.turn_id,
            message_id=home.message_id,
            in_place=True,
            **server_result(native),
        )


class _Compaction(Block):
    __slots__ = ("home", "native")

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        self.home = home
        self.native = {name: value for name, value in native.items() if value is not None}

    def take(self, delta: Native) -> bool:
        kind = delta.get("type")
        if kind == "compaction_delta" and _all_text(delta, "content", "encrypted_content"):
            if delta.get("content") is not None:
                self.native["content"] = self.native.get("content", "") + delta["content"]
            if delta.get("encrypted_content") is not None:
                self.native["encrypted_content"] = delta["encrypted_content"]
        elif kind == "signature_delta" and isinstance(signature := delta.get("signature"), str):
            self.native["signature"] = signature or self.native.get("signature")
        else:
            return False
        return True

    def close(self) -> None:
        sealed, signature = self.native.get("encrypted_content"), self.native.get("signature")
        opaque = None
        if sealed:
            opaque = AgOpaque(kind="ciphertext", value=sealed, provider=VENDOR)
        elif signature:
            opaque = AgOpaque(kind="signature", value=signature, provider=VENDOR)
        block = CompactionBlock(
            text=self.native.get("content"), opaque=opaque, provider=VENDOR, meta={COMPACTION: self.native}
        )
        self.emitter.content_block(block, turn_id=self.home.turn_id, message_id=self.home.message_id)


class _Upload(Block):
    __slots__ = ()

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        block = FileBlock(source=FileSource(file_id=native["file_id"]))
        self.emitter.content_block(block, turn_id=home.turn_id, message_id=home.message_id)


class _Listing(Block):
    __slots__ = ()

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        block = ProviderRawBlock(vendor=VENDOR, raw=native)
        self.emitter.content_block(block, turn_id=home.turn_id, message_id=home.message_id)


class _Fallback(_Listing):
    """The seam where another model took over: it must stay in place, and what came before it stays shown."""

    __slots__ = ()

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, index, native)
        self.emitter.ext(FRAME, {"kind": self.kind, "frame": native}, turn_id=home.turn_id, message_id=home.message_id)
        to = native.get("to")
        model = to.get("model") if isinstance(to, dict) else None
        if model is not None:
            self.emitter.message_metadata({SERVED_BY: model}, message_id=home.message_id, turn_id=home.turn_id)


class _Unknown(Block):
    """A block of a kind that is not known, or not as it is known: shown at once, stored whole at its end."""

    __slots__ = ("deltas", "home", "native")

    def __init__(self, home: Home, index: int, native: Native) -> None:
        super().__init__(home, native)
        self.home = home
        self.native = native
        self.deltas: list[JsonValue] = []
        self.emitter.ext(FRAME, {"kind": self.kind, "frame": native}, turn_id=home.turn_id, message_id=home.message_id)

    def take(self, delta: Native) -> bool:
        frame: JsonValue = {"kind": str(delta.get("type")), "frame": delta}
        self.emitter.ext(FRAME, frame, turn_id=self.home.turn_id, message_id=self.home.message_id)
        self.deltas.append(delta)
        return True

    def close(self) -> None:
        block = ProviderRawBlock(vendor=VENDOR, raw=self.native, meta={DELTAS: self.deltas} if self.deltas else None)
        self.emitter.content_block(block, turn_id=self.home.turn_id, message_id=self.home.message_id)


def _all_text(native: Native, *names: str) -> bool:
    """Whether each of these members is a string, null or absent."""
    return all(isinstance(native.get(name), (str, type(None))) for name in names)


def _is_text(native: Native) -> bool:
    citations = native.get("citations")
    return _all_text(native, "text") and (citations is None or isinstance(citations, list))


def _is_call(native: Native) -> bool:
    return isinstance(native.get("name"), str) and _all_text(native, "id", "server_name")


# Each native kind: what makes a block of it well-formed, and what takes it.
_KINDS: dict[str, tuple[Callable[[Native], bool], Callable[[Home, int, Native], Block]]] = {
    "text": (_is_text, _Text),
    "thinking": (lambda native: _all_text(native, "thinking", "signature"), _Thinking),
    "redacted_thinking": (lambda native: isinstance(native.get("data"), str), _Redacted),
    "tool_use": (_is_call, _Call),
    "server_tool_use": (_is_call, _Call),
    "mcp_tool_use": (_is_call, _Call),
    "compaction": (lambda native: _all_text(native, "content", "encrypted_content", "signature"), _Compaction),
    "container_upload": (lambda native: isinstance(native.get("file_id"), str), _Upload),
    "mcp_tool_listing": (lambda native: True, _Listing),
    "fallback": (lambda native: True, _Fallback),
}

_IMPLIED = {"text_delta": "text", "thinking_delta": "thinking"}


def open_block(home: Home, index: int, native: Native) -> Block:
    """Open a block: emit its start, or all of it where nothing can follow.

    Args:
        home: the message that it goes to.
        index: its place in the native message.
        native: the block as it starts, with a string ``type``.
    """
    known = _KINDS.get(native["type"])
    if known is not None and known[0](native):
        return known[1](home, index, native)
    return _Result(home, index, native) if is_server_result(native) else _Unknown(home, index, native)


def implied_block(home: Home, index: int, delta: Native) -> Block | None:
    """The block that a delta belongs to where none was started: some gateways leave the starts out.

    Args:
        home: the message that it goes to.
        index: its place in the native message.
        delta: the delta, which the block has taken.

    Returns:
        The block; None if the delta tells too little, and then nothing was emitted.
    """
    kind = _IMPLIED.get(str(delta.get("type")))
    if kind is None or not isinstance(delta.get(kind), str):
        return None
    block = open_block(home, index, {"type": kind})
    block.take(delta)
    return block
