"""What `messages_to_native` returns, and what it had to mend on the way (spec §8 item 7, §10 item 13)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agjson.errors import ReplayError

__all__ = ["MissingResults", "NativeMessages", "Repair", "RepairCode", "Repairs", "ReplayOptions", "UnsupportedBlocks"]

RepairCode: TypeAlias = Literal[
    "app_only_dropped",
    "as_text",
    "block_dropped",
    "caller_dropped",
    "candidate_dropped",
    "citation_dropped",
    "compacted_dropped",
    "declined_dropped",
    "fallback_dropped",
    "id_changed",
    "input_wrapped",
    "name_changed",
    "opaque_dropped",
    "pending_dropped",
    "prefill_trimmed",
    "reasoning_dropped",
    "result_added",
    "result_dropped",
    "result_moved",
    "server_call_dropped",
    "surrogate_replaced",
    "system_moved",
    "text_dropped",
    "trailing_reasoning_dropped",
    "user_added",
]
"""What kind of repair it is; ``docs/adapters/anthropic-replay.md`` has a row for each."""

MissingResults: TypeAlias = Literal["add", "refuse", "refuse_last"]
"""What to do with a call without a result: add an error result that says so, or refuse the history; ``"refuse_last"``
adds it for a call that the conversation has gone on without, and refuses for one that is still waited for."""

UnsupportedBlocks: TypeAlias = Literal["refuse", "drop"]
"""What to do with content that the Messages API has no place for: refuse the history, or leave the content out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change that a history needed before the Messages API takes it.

    Attributes:
        code: what kind of change.
        path: the JSON path, inside the message list, of what was changed (``$[3].content[0]``).
        message: what was changed and why, in words; it holds no content and no opaque value.
    """

    code: RepairCode
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} ({self.code})"


class NativeMessages(list[dict[str, Any]]):
    """A native history: a list of message dicts, ready for ``client.messages.create(messages=...)``.

    Attributes:
        system: text blocks for the ``system`` argument, lifted from messages of role ``system``.
        repairs: what had to be mended, in order.
        beta: something in the messages is known to ``client.beta.messages`` alone.
    """

    __slots__ = ("beta", "repairs", "system")

    def __init__(self) -> None:
        super().__init__()
        self.system: list[dict[str, Any]] = []
        self.repairs: list[Repair] = []
        self.beta = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """How a history is to be replayed; the fields are the keyword arguments of `messages_to_native`."""

    missing_results: MissingResults = "add"
    unsupported: UnsupportedBlocks = "refuse"
    fallbacks: bool = False
    document_citations: bool = True


@dataclass(slots=True)
class Repairs:
    """Notes what is mended while a history is written, and decides what is refused.

    Attributes:
        options: how the history is to be replayed.
        made: what was mended so far.
    """

    options: ReplayOptions
    made: list[Repair] = field(default_factory=list[Repair])

    def note(self, code: RepairCode, path: str, message: str) -> None:
        """Note a repair."""
        self.made.append(Repair(code=code, path=path, message=message))

    def unsupported(self, path: str, message: str) -> None:
        """Refuse content that the API has no place for, or note that it is left out.

        Raises:
            ReplayError: the options do not allow to leave it out.
        """
        if self.options.unsupported == "refuse":
            raise ReplayError(message, path)
        self.note("block_dropped", path, message)
