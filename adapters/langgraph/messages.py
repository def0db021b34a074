"""Stored messages as LangChain messages, and back (spec §3.2, §8.0 item 7, §10 items 3, 4, 5, 13).

LangChain stores what a provider said as that provider spells it, and its chat models send it as it is stored. So a
history is written for one provider: what another one has sealed is left out and named in ``.repairs``.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

from agjson._halves import replace_halves
from agjson.adapters.langgraph._in_history import read_history
from agjson.adapters.langgraph._out_blocks import Native
from agjson.adapters.langgraph._out_history import take_history
from agjson.adapters.langgraph._out_messages import write_messages
from agjson.adapters.langgraph._out_repairs import (
    NativeMessages,
    Provider,
    Repair,
    RepairCode,
    Repairs,
    UnsupportedBlocks,
)
from agjson.errors import EncodeError, MissingExtraError, ReplayError
from agjson.transcript import StrayPolicy, UnansweredPolicy
from agjson.types import AgMessage, AgTurnRecord
from agjson.wire import encode

__all__ = ["NativeMessages", "Provider", "Repair", "RepairCode", "messages_from_native", "messages_to_native"]

_PROVIDERS = ("anthropic", "openai-responses", "openai-chat", "google", "bedrock")


def messages_to_native(
    messages: Sequence[AgMessage],
    *,
    provider: Provider | None = None,
    turns: Sequence[AgTurnRecord] = (),
    waiting: Collection[str] = (),
    unanswered: UnansweredPolicy = "answer",
    stray: StrayPolicy = "leave_out",
    unsupported: UnsupportedBlocks = "refuse",
    plain: bool = False,
    hidden: bool = True,
) -> NativeMessages:
    """A history as LangChain messages, ready for a graph's ``messages`` or a chat model; nothing of it is sent.

    The rules are those of spec §3.2, §8.0 item 7 and §10 item 13.

    The ids are those of the messages, and of the calls those of their provider, so that ``add_messages`` takes a
    message that the thread has already for the same one. Notices, messages of nested turns, calls that an app made and
    batches that wait for people do not go back (`agjson.transcript.prepare`). Reasoning goes back byte for byte to the
    provider that made it, or not at all.

    Args:
        messages: the history of one thread in order; it is only read.
        provider: whose chat model reads it. None: not known; each answer is written for the provider that made it, as a
            graph's own state has it.
        turns: the turn records of the thread (`AgReduceResult.turns`), which say what waits for people.
        waiting: ids or keys of calls whose results come from outside.
        unanswered: for a call without a result: ``"answer"`` it with an error result that says so, ``"refuse"`` the
            history, or ``"leave_out"`` the call.
        stray: for a result without a call: ``"leave_out"`` it, or ``"refuse"`` the history.
        unsupported: for content that the chat model has no place for: ``"refuse"`` the history, or ``"drop"`` it.
        plain: the messages as dicts of plain data, as ``model_dump`` has them, and not as objects of LangChain.
        hidden: keep what no model reads: ``sideData`` as the artifact of a tool message, and with it what LangChain has
            no place for. False: only what reaches the model.

    Returns:
        The native messages, a list with ``.repairs``.

    Raises:
        ReplayError: the history cannot be sent as it is; ``path`` tells where in `messages`.
        ValueError: the provider is none of those.
        MissingExtraError: LangChain is not installed, and `plain` is not set.
    """
    if provider is not None and provider not in _PROVIDERS:
        raise ValueError(f"provider must be one of {', '.join(_PROVIDERS)}, or None: {provider!r}")
    build = None if plain else _builder()
    repairs = Repairs(unsupported)
    try:
        history = take_history(messages, repairs, turns=turns, waiting=waiting, unanswered=unanswered, stray=stray)
        native = _whole(write_messages(history, provider, repairs, hidden=hidden), repairs)
    except EncodeError as error:
        raise ReplayError(f"the history holds what JSON cannot say: {error.message}") from None
    return NativeMessages(native if build is None else [build(message) for message in native], repairs.made)


def messages_from_native(
    native: Iterable[object],
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
) -> list[AgMessage]:
    """LangChain messages as messages of AgJSON (spec §3.2); the inverse of `messages_to_native`.

    Native fields without a neutral form are carried, so that `messages_to_native` gives the same history back.

    Args:
        native: the messages in order: objects of LangChain, or whatever a graph takes for one: dicts as ``model_dump``
            or a remote graph has them, serialised objects (``lc``), dicts with a role, pairs of role and text, strings.
        turn_id: the turn that the messages belong to, if they belong to one.
        thread_id: the thread that they belong to.

    Returns:
        The messages. A message without an id of its own is named by its place.

    Raises:
        ValidationError: something in it is no message; ``path`` tells where in `native`.
    """
    return read_history(native, turn_id=turn_id, thread_id=thread_id)


def _builder() -> Any:
    """What makes an object of LangChain of plain data."""
    try:
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
    except ImportError:
        raise MissingExtraError("langgraph", "langchain-core") from None
    kinds: dict[str, Any] = {"ai": AIMessage, "human": HumanMessage, "system": SystemMessage, "tool": ToolMessage}

    def build(message: Native) -> Any:
        return kinds[message["type"]](**{name: value for name, value in message.items() if name != "type"})

    return build


def _whole(native: list[Native], repairs: Repairs) -> list[Native]:
    """The messages apart from the history they were made of, and without half of a surrogate pair."""
    if b"\\ud" in encode(native):
        whole = cast("list[Native]", _without_halves(native))
        if whole != native:
            repairs.note("surrogate_replaced", "$", "half of a surrogate pair is no text; U+FFFD took its place")
        return whole
    return copy.deepcopy(native)


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return replace_halves(value)
    if isinstance(value, dict):
        return {_without_halves(name): _without_halves(held) for name, held in value.items()}
    if isinstance(value, list):
        return [_without_halves(held) for held in value]
    return value
