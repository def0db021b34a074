"""A history as LangChain messages in plain data: roles, ids, and the order that chat models ask for (§3.2, §8.0)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agjson.adapters.langgraph._carry import FROM, KWARGS, MODEL_PROVIDERS, NAME, RESPONSE, provider_name
from agjson.adapters.langgraph._out_answer import Answer, Writer, tool_name
from agjson.adapters.langgraph._out_anthropic import write_anthropic
from agjson.adapters.langgraph._out_bedrock import write_bedrock
from agjson.adapters.langgraph._out_blocks import Native
from agjson.adapters.langgraph._out_google import write_google
from agjson.adapters.langgraph._out_history import History
from agjson.adapters.langgraph._out_openai import reasoning_item, write_any, write_chat, write_responses
from agjson.adapters.langgraph._out_repairs import Provider, Repairs
from agjson.adapters.langgraph._out_tools import message_content, said, tool_message
from agjson.adapters.langgraph._unique import Unique
from agjson.types import (
    AgBlock,
    AgMessage,
    AgUsage,
    ProviderRawBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["write_messages"]

_WRITERS: dict[str | None, Writer] = {
    None: write_any,
    "anthropic": write_anthropic,
    "openai-responses": write_responses,
    "openai-chat": write_chat,
    "google": write_google,
    "bedrock": write_bedrock,
}
_AGENT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_REASONING = ("thinking", "redacted_thinking", "reasoning")
_SHOWN = "The result is in the next message."
_NEEDS_MORE = ("anthropic", "openai-responses")


def write_messages(history: History, provider: Provider | None, repairs: Repairs, *, hidden: bool) -> list[Native]:
    """The messages of a history as plain data, each with ``type``, ``content`` and ``id``.

    Args:
        history: the history.
        provider: whose chat model reads it; None: not known, each answer in the form of the provider that made it.
        repairs: where they are noted.
        hidden: keep what no model reads, such as artifacts.

    Raises:
        ReplayError: there is no place for a block.
    """
    book = _Book(history, provider, repairs, hidden)
    for index, message in enumerate(history.messages):
        book.write(index, message)
    book.drop_trailing_reasoning()
    return book.in_order()


@dataclass(slots=True)
class _Entry:
    native: Native
    path: str
    dialect: str | None = None


@dataclass(slots=True)
class _Piece:
    """A part of an answer: what was said, then the results of the calls in it."""

    answer: Answer
    open: int = 0
    results: list[int] = field(default_factory=list[int])


class _Book:
    def __init__(self, history: History, provider: Provider | None, repairs: Repairs, hidden: bool) -> None:
        self._history = history
        self._provider: Provider | None = provider
        self._repairs = repairs
        self._hidden = hidden
        self._entries: list[_Entry] = []
        self._ids = Unique(reserved=(message.id for message in history.messages))
        # The results that are written, by position.
        self._told: set[tuple[int, int]] = set()
        # What tools showed and must not say, by the identity of their messages.
        self._shown: dict[int, list[Native]] = {}

    def write(self, index: int, message: AgMessage) -> None:
        """Write one message of the history."""
        if message.role == "assistant":
            self._write_answer(index, message)
        elif message.role == "tool":
            self._write_results(index, message)
        else:
            self._write_said(index, message)

    def in_order(self) -> list[Native]:
        """The messages, with those of the system where the chat model takes them."""
        if self._provider in ("openai-responses", "openai-chat"):
            return self._with_shown()
        system = [entry for entry in self._entries if entry.native["type"] == "system"]
        others = [entry for entry in self._entries if entry.native["type"] != "system"]
        for at, entry in enumerate(system):
            if self._entries[at] is not entry:
                self._repairs.note(
                    "system_moved", entry.path, "chat models take what the system says at the head alone"
                )
        return [entry.native for entry in (*system, *others)]

    def drop_trailing_reasoning(self) -> None:
        """No reasoning may be the last thing that the assistant said before somebody else speaks."""
        following: _Entry | None = None
        for entry in reversed(list(self._entries)):
            native = entry.native
            speaks_on = following is not None and following.native["type"] == "ai"
            if native["type"] == "ai" and entry.dialect in _NEEDS_MORE and not speaks_on:
                content = native["content"]
                calls = native["tool_calls"] or native["invalid_tool_calls"]
                while isinstance(content, list) and content and not calls and content[-1]["type"] in _REASONING:
                    content.pop()
                    self._repairs.note("trailing_reasoning_dropped", entry.path, "nothing follows the reasoning")
                if not content and not calls:
                    self._entries.remove(entry)
                    continue
            following = entry

    # What people and the system say

    def _write_said(self, index: int, message: AgMessage) -> None:
        content: list[Native] = []
        for at, block in enumerate(message.content):
            if isinstance(block, ToolResultBlock):
                self._add_result(index, at)
            else:
                content.extend(said(block, self._provider, self._history.path(message, at), self._repairs))
        system = message.role == "system"
        if system and any(part.get("type") in _MEDIA for part in content):
            self._repairs.unsupported(self._history.path(message), "a system message holds text alone")
            content = [part for part in content if part.get("type") not in _MEDIA]
        if not content:
            if not any(isinstance(block, ToolResultBlock) for block in message.content):
                self._drop(message)
            return
        native: Native = {"type": "system" if system else "human"}
        native.update(content=message_content(content, None), id=self._id(message.id, message))
        name = (message.metadata or {}).get(NAME)
        if isinstance(name, str):
            native["name"] = name
        kwargs = (message.metadata or {}).get(KWARGS)
        if isinstance(kwargs, dict) and kwargs:
            native["additional_kwargs"] = kwargs
        self._add(native, message)

    # Results

    def _write_results(self, index: int, message: AgMessage) -> None:
        for at, block in enumerate(message.content):
            if isinstance(block, ToolResultBlock):
                self._add_result(index, at)
            else:
                path = self._history.path(message, at)
                self._repairs.unsupported(path, f"a block of type {block.type} in a message of a tool is no result")

    def _add_result(self, index: int, at: int) -> None:
        """Write a result, once; one that goes back with no call is left out already."""
        message = self._history.messages[index]
        block, answered = message.content[at], self._history.answered(index, at)
        if answered is None or not isinstance(block, ToolResultBlock) or (index, at) in self._told:
            return
        self._told.add((index, at))
        first = not any(isinstance(each, ToolResultBlock) for each in message.content[:at])
        wanted = message.id if first and message.role == "tool" else f"{block.tool_call_id}:result"
        path = self._history.path(message, at)
        native = tool_message(
            message,
            block,
            answered.call,
            answered.id,
            self._id(wanted, message),
            path,
            self._provider,
            self._repairs,
            hidden=self._hidden,
        )
        self._add(native, message)
        if self._provider == "openai-chat":
            self._lift_media(native, path)

    def _lift_media(self, native: Native, path: str) -> None:
        """The Chat Completions API takes words alone from a tool; the rest is shown by the user, behind the round."""
        content = native["content"]
        shown = [part for part in content if part["type"] != "text"] if isinstance(content, list) else []
        if shown:
            words = [part for part in content if part["type"] == "text"]
            native["content"] = message_content(words or [{"type": "text", "text": _SHOWN}], self._provider)
            self._shown.setdefault(id(native), shown)
            self._repairs.note("media_moved", path, "the API takes words alone from a tool; the user shows the rest")

    def _with_shown(self) -> list[Native]:
        """The messages, with what tools showed as a message of the user behind each round of results."""
        messages: list[Native] = []
        waiting: list[Native] = []
        for entry in (*self._entries, None):
            if waiting and (entry is None or entry.native["type"] != "tool"):
                shown = [part for native in waiting for part in self._shown[id(native)]]
                messages.append({"type": "human", "content": shown, "id": self._ids.take(f"{waiting[0]['id']}:shown")})
                waiting = []
            if entry is not None:
                messages.append(entry.native)
                waiting += [entry.native] if id(entry.native) in self._shown else []
        return messages

    def _move_results(self, index: int, answer: Answer) -> None:
        """Bring the results of an answer right behind it, where the assistant speaks on in a message of its own.

        Chat models want the results of a message with calls to be the next thing that is said.
        """
        following = self._history.messages[index + 1 : index + 2]
        if not following or following[0].role != "assistant":
            return
        for call in (*answer.tool_calls, *answer.invalid_tool_calls):
            place = self._history.place_of_result(call["id"])
            if place is not None and place not in self._told:
                path = self._history.path(self._history.messages[place[0]], place[1])
                self._repairs.note("result_moved", path, "a result stands right behind the message that made the call")
                self._add_result(*place)

    # Answers

    def _write_answer(self, index: int, message: AgMessage) -> None:
        origin = _origin(message)
        dialect = self._provider or _dialect(message, origin)
        own = self._provider is None or origin in (None, _maker(dialect))
        pieces = self._pieces(index, message, _WRITERS[dialect], own)
        if len(pieces) > 1:
            path = self._history.path(message)
            self._repairs.note("message_split", path, "results of calls stand behind the answer that made them")
        for number, piece in enumerate(pieces):
            self._add_answer(message, piece.answer, origin, dialect, last=number == len(pieces) - 1)
            for at in piece.results:
                self._add_result(index, at)
        self._move_results(index, pieces[-1].answer)

    def _pieces(self, index: int, message: AgMessage, write: Writer, own: bool) -> list[_Piece]:
        pieces = [_Piece(Answer(own))]
        for at, block in enumerate(message.content):
            piece = pieces[-1]
            path = self._history.path(message, at)
            answered = self._history.answered(index, at) if isinstance(block, ToolResultBlock) else None
            if isinstance(block, ToolResultBlock) and answered is not None and not answered.call.provider_executed:
                piece.results.append(at)
                piece.open -= 1
                continue
            if piece.results and piece.open <= 0:
                piece = _Piece(Answer(own))
                pieces.append(piece)
            if isinstance(block, ToolCallBlock):
                piece.answer.call_id = self._history.call_id(index, at)
                piece.answer.call_name = tool_name(block, self._provider)
                if piece.answer.call_name != block.name and self._provider != "anthropic":
                    self._repairs.note("name_changed", path, "the provider takes up to 64 letters, digits, _ and -")
                piece.open += not block.provider_executed
            if self._beside(block, piece.answer):
                continue
            write(block, path, piece.answer, self._repairs)
        return pieces

    def _beside(self, block: AgBlock, answer: Answer) -> bool:
        """What stood beside the content goes back there, where the model is not known."""
        if self._provider is not None or not isinstance(block, (ReasoningBlock, TextBlock)):
            return False
        place = block.provider_metadata.get(FROM) if block.provider_metadata else None
        if place != "additional_kwargs":
            return False
        if isinstance(block, TextBlock):
            answer.kwargs["refusal"] = block.text
        elif block.item_id is not None or block.opaque is not None:
            answer.kwargs["reasoning"] = reasoning_item(block)
        else:
            answer.kwargs["reasoning_content"] = block.text or ""
        return True

    def _add_answer(
        self, message: AgMessage, answer: Answer, origin: str | None, dialect: str | None, *, last: bool
    ) -> None:
        calls = bool(answer.tool_calls or answer.invalid_tool_calls)
        if not answer.content and not calls and not answer.kwargs:
            self._drop(message)
            return
        metadata = message.metadata or {}
        content = message_content(answer.content, None) if not calls or dialect in _PLAIN else answer.content
        stored = metadata.get(RESPONSE)
        response: Native = {name: value for name, value in stored.items()} if isinstance(stored, dict) else {}
        response.pop("output_version", None)
        maker = origin or (_maker(dialect) if isinstance(content, list) else None)
        if maker is not None:
            response.setdefault("model_provider", MODEL_PROVIDERS.get(maker, maker))
        if message.model is not None:
            response.setdefault("model_name", message.model)
        kept = metadata.get(KWARGS)
        native: Native = {
            "type": "ai",
            "content": content,
            "id": self._id(message.id, message),
            "tool_calls": answer.tool_calls,
            "invalid_tool_calls": answer.invalid_tool_calls,
            "additional_kwargs": {**(kept if isinstance(kept, dict) and answer.own else {}), **answer.kwargs},
            "response_metadata": response,
        }
        name = message.agent_name
        if name and (not _sends_names(self._provider) or _AGENT_NAME.fullmatch(name)):
            native["name"] = name
        usage = _usage(message.usage) if last else None
        if usage is not None:
            native["usage_metadata"] = usage
        self._add(native, message, dialect)

    # Ids

    def _add(self, native: Native, message: AgMessage, dialect: str | None = None) -> None:
        self._entries.append(_Entry(native, self._history.path(message), dialect))

    def _drop(self, message: AgMessage) -> None:
        self._repairs.note("message_dropped", self._history.path(message), "nothing of the message is left to be sent")

    def _id(self, wanted: str, message: AgMessage) -> str:
        """An id that no other message has: LangGraph takes messages of one id for one message."""
        taken = wanted in self._ids
        id = self._ids.take(wanted or "message", own=wanted == message.id)
        if taken and wanted == message.id:
            self._repairs.note("id_changed", self._history.path(message), "LangGraph keeps one message of each id")
        return id


_PLAIN = (None, "openai-chat", "google")
_MEDIA = ("image", "image_url", "audio", "video", "file", "document", "container_upload")


def _sends_names(provider: Provider | None) -> bool:
    """Whether the chat model sends the names of agents, of which its API takes few characters."""
    return provider in ("openai-responses", "openai-chat")


def _origin(message: AgMessage) -> str | None:
    """The provider that made an answer, as far as it can be told."""
    metadata = message.metadata or {}
    response = metadata.get(RESPONSE)
    named = provider_name(response.get("model_provider")) if isinstance(response, dict) else None
    if named is not None:
        return named
    for block in message.content:
        made: str | None = None
        if isinstance(block, ReasoningBlock):
            made = (block.opaque.provider if block.opaque is not None else None) or block.provider
        elif isinstance(block, ToolCallBlock):
            made = block.provider or ("openai" if block.item_id else "google" if block.signature else None)
        elif isinstance(block, ProviderRawBlock):
            made = block.vendor
        if made is not None:
            return made
    return "anthropic" if any(name.startswith("anthropic/") for name in metadata) else None


def _dialect(message: AgMessage, origin: str | None) -> str | None:
    """How the provider of an answer has it spelled."""
    if origin != "openai":
        return origin if origin in _WRITERS else None
    response = (message.metadata or {}).get(RESPONSE)
    id = response.get("id") if isinstance(response, dict) else None
    if isinstance(id, str) and id.startswith("resp_"):
        return "openai-responses"
    items = any(
        isinstance(block, (ReasoningBlock, ProviderRawBlock)) or getattr(block, "item_id", None) is not None
        for block in message.content
    )
    return "openai-responses" if items else "openai-chat"


def _maker(dialect: str | None) -> str | None:
    return None if dialect is None else dialect.partition("-")[0]


def _usage(usage: AgUsage | None) -> Native | None:
    """The tokens as LangChain counts them."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    whole: Callable[[float], int] = int
    native: Native = {
        "input_tokens": whole(usage.input_tokens),
        "output_tokens": whole(usage.output_tokens),
        "total_tokens": whole(
            usage.total_tokens if usage.total_tokens is not None else usage.input_tokens + usage.output_tokens
        ),
    }
    read: dict[str, Any] = {"cache_read": usage.cache_read_tokens, "cache_creation": usage.cache_write_tokens}
    details = {name: whole(count) for name, count in read.items() if count is not None}
    if details:
        native["input_token_details"] = details
    if usage.reasoning_tokens is not None:
        native["output_token_details"] = {"reasoning": whole(usage.reasoning_tokens)}
    return native
