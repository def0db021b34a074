"""What `messages_to_native` returns, and what it had to mend on the way (spec §8 item 7, §10 item 13)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agjson.adapters.anthropic._repair import RepairCode as AnthropicCode
from agjson.adapters.anthropic._repair import Repairs as AnthropicRepairs
from agjson.adapters.anthropic._repair import ReplayOptions as AnthropicOptions
from agjson.errors import ReplayError
from agjson.transcript.preparing import ChangeCode

__all__ = ["NativeMessages", "Provider", "Repair", "RepairCode", "Repairs", "UnsupportedBlocks"]

Provider: TypeAlias = Literal["anthropic", "openai-responses", "openai-chat", "google", "bedrock"]
"""Whose chat model reads the history: ChatAnthropic, ChatOpenAI with one API or the other, ChatGoogleGenerativeAI, or
ChatBedrockConverse."""

RepairCode: TypeAlias = (
    AnthropicCode
    | ChangeCode
    | Literal["fields_dropped", "media_moved", "message_dropped", "message_split", "signature_dropped", "uncommitted"]
)
"""What kind of repair it is: one of the Anthropic adapter, of `agjson.transcript.prepare`, or of this one."""

UnsupportedBlocks: TypeAlias = Literal["refuse", "drop"]
"""What to do with content that the chat model has no place for: refuse the history, or leave the content out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change that a history needed before a chat model takes it.

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


class NativeMessages(list[Any]):
    """A native history: LangChain messages, or the same as plain data.

    Attributes:
        repairs: what had to be mended, in order.
    """

    __slots__ = ("repairs",)

    def __init__(self, messages: list[Any], repairs: list[Repair]) -> None:
        super().__init__(messages)
        self.repairs = repairs


@dataclass(slots=True)
class Repairs:
    """Notes what is mended while a history is written, and decides what is refused.

    Attributes:
        unsupported_blocks: what becomes of content that the chat model has no place for.
        made: what was mended so far.
    """

    unsupported_blocks: UnsupportedBlocks = "refuse"
    made: list[Repair] = field(default_factory=list[Repair])

    def note(self, code: RepairCode, path: str, message: str) -> None:
        """Note a repair.

        Args:
            code: what kind of change.
            path: the JSON path of what was changed.
            message: what was changed and why.
        """
        self.made.append(Repair(code=code, path=path, message=message))

    def unsupported(self, path: str, message: str) -> None:
        """Refuse content that the chat model has no place for, or note that it is left out.

        Args:
            path: the JSON path of the content.
            message: why there is no place for it.

        Raises:
            ReplayError: it may not be left out.
        """
        if self.unsupported_blocks == "refuse":
            raise ReplayError(message, path)
        self.note("block_dropped", path, message)

    def anthropic(self) -> AnthropicRepairs:
        """Repairs for the tables of the Anthropic adapter to note; give them back to `take`."""
        return AnthropicRepairs(AnthropicOptions(unsupported=self.unsupported_blocks))

    def take(self, others: AnthropicRepairs) -> None:
        """Take over what the Anthropic adapter has mended.

        Args:
            others: those that `anthropic` has made.
        """
        for repair in others.made:
            self.note(repair.code, repair.path, repair.message)
