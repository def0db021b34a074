"""Stored messages as a native history of the Messages API, and back (spec §3.2, §8.0 item 7, §10 items 3, 5, 13).

`messages_to_native` keeps to the rules that the API enforces: what it can mend it mends and reports in ``.repairs``,
what it cannot it refuses before any request. ``docs/adapters/anthropic-replay.md`` lists both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agjson._halves import replace_halves
from agjson.adapters.anthropic._api import is_beta
from agjson.adapters.anthropic._arrange import arrange, lifted_system
from agjson.adapters.anthropic._carry import VENDOR
from agjson.adapters.anthropic._history import read_history
from agjson.adapters.anthropic._in_blocks import block_from_native
from agjson.adapters.anthropic._items import take_apart
from agjson.adapters.anthropic._repair import (
    MissingResults,
    NativeMessages,
    Repair,
    RepairCode,
    Repairs,
    ReplayOptions,
    UnsupportedBlocks,
)
from agjson.errors import EncodeError, ReplayError
from agjson.transcript import ChangeCode, Prepared, prepare
from agjson.types import AgBlock, AgMessage, AgTurnRecord, ProviderRawBlock
from agjson.wire import encode

__all__ = ["NativeMessages", "Repair", "RepairCode", "messages_from_native", "messages_to_native"]

_FALLBACK_BETA = "server-side-fallback-"


def messages_to_native(
    messages: Sequence[AgMessage],
    *,
    betas: Collection[str] = (),
    missing_results: MissingResults = "add",
    unsupported: UnsupportedBlocks = "refuse",
    document_citations: bool = True,
    turns: Sequence[AgTurnRecord] = (),
    waiting: Collection[str] = (),
) -> NativeMessages:
    """A history as ``client.messages.create(messages=...)`` takes it; nothing of it is sent.

    What a model may read of it `agjson.transcript.prepare` decides: calls with their own results, nothing that waits,
    no notices. Messages of role ``system`` are lifted to ``.system``, but for those that `messages_from_native` found
    among the others. Reasoning goes back byte for byte in its place, or not at all.

    Args:
        messages: the history of one thread in order; without `turns`, without those of nested turns.
        betas: the betas that the request will ask for; one of server-side fallbacks keeps their seams in place.
        missing_results: for a call without a result: ``"add"`` an error result that says so, ``"refuse"`` the history,
            or ``"refuse_last"``: refuse it only where the call is one of the last, which are still waited for.
        unsupported: for content that the API has no place for, such as sound: ``"refuse"`` it, or ``"drop"`` it.
        document_citations: whether citations that point into documents go back; False after the history was edited, for
            they count documents and characters from its beginning.
        turns: the turn records of the thread: which turns are nested, and which calls people are asked about; these are
            hidden with their whole batch until they have results.
        waiting: ids of further calls that are hidden so.

    Returns:
        The native messages, a list with ``.system``, ``.repairs`` and ``.beta``.

    Raises:
        ReplayError: the history cannot be sent as it is; ``path`` tells where in `messages`.
    """
    options = ReplayOptions(
        missing_results=missing_results,
        unsupported=unsupported,
        document_citations=document_citations,
        fallbacks=any(beta.startswith(_FALLBACK_BETA) for beta in betas),
    )
    repairs = Repairs(options)
    native = NativeMessages()
    try:
        neutral = [_neutral(message) for message in messages]
        prepared = prepare(neutral, turns=turns, waiting=waiting, unanswered="answer", stray="leave_out")
        _note_changes(prepared, repairs)
        items = take_apart(prepared, repairs)
        native.extend(arrange(items, repairs))
        native.system = lifted_system(items, repairs)
        _replace_halves(native, repairs)
    except EncodeError as error:
        raise ReplayError(f"the history holds what JSON cannot say: {error.message}") from None
    native.beta = any(is_beta(message) for message in native)
    native.repairs = repairs.made
    return native


def messages_from_native(
    native: Iterable[Mapping[str, Any] | object],
    *,
    system: str | Sequence[Any] | None = None,
    turn_id: str | None = None,
    thread_id: str | None = None,
) -> list[AgMessage]:
    """A native history, or the answer of one request, as messages; the inverse of `messages_to_native`.

    Strings stay strings and native fields without a neutral form are carried, so that `messages_to_native` gives the
    same history back. Results of client tools become messages of role ``tool``, one for each.

    Args:
        native: native messages in order: dicts, or objects of the SDK, of requests and of responses.
        system: the ``system`` argument of the request, which becomes a message of role ``system`` at the head.
        turn_id: the turn that the messages belong to, if they belong to one.
        thread_id: the thread that they belong to.

    Returns:
        The messages. A message without an id of its own is named by its place.

    Raises:
        ValidationError: something in it is no native message; ``path`` tells where in `native`.
    """
    return read_history(native, system=system, turn_id=turn_id, thread_id=thread_id)


def _neutral(message: AgMessage) -> AgMessage:
    """A message without native blocks that were carried whole although they have a neutral form: calls are paired."""
    for block in message.content:
        if isinstance(block, ProviderRawBlock):
            return replace(message, content=[_neutral_block(block) for block in message.content])
    return message


def _neutral_block(block: AgBlock) -> AgBlock:
    raw = block.raw if isinstance(block, ProviderRawBlock) and block.vendor == VENDOR else None
    return block_from_native(raw) if isinstance(raw, dict) and isinstance(raw.get("type"), str) else block


# What is left out of a history for every provider alike; what is not here needs no word.
_CHANGES: dict[ChangeCode, tuple[RepairCode, str]] = {
    "app_only": ("app_only_dropped", "a call that an app made, and its result, are for no model"),
    "candidate": ("candidate_dropped", "one candidate of several goes back: the first"),
    "partial": ("result_dropped", "a partial result is not the result"),
    "pending": ("pending_dropped", "calls that still wait are hidden, with all that was said with them"),
    "repeated_result": ("result_dropped", "the call has its result already"),
    "result_moved": ("result_moved", "results follow their calls at once, in the order of the calls"),
    "stray_result": ("result_dropped", "no call of the history is known to have waited for it"),
}


def _note_changes(prepared: Prepared, repairs: Repairs) -> None:
    for change in prepared.changes:
        if change.code == "misplaced_call":
            repairs.unsupported(change.path, "a call has no place in what a user or a tool says")
        elif change.code in _CHANGES:
            code, words = _CHANGES[change.code]
            repairs.note(code, change.path, words)


def _replace_halves(native: NativeMessages, repairs: Repairs) -> None:
    """No text with half of a surrogate pair can be sent; what JSON cannot say at all is found here too."""
    if b"\\ud" in encode([native, native.system]):
        whole = [_without_halves(message) for message in native]
        system = _without_halves(native.system)
        if whole != native or system != native.system:
            native[:], native.system = whole, system
            repairs.note("surrogate_replaced", "$", "half of a surrogate pair is no text; U+FFFD took its place")


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return replace_halves(value)
    if isinstance(value, dict):
        return {_without_halves(name): _without_halves(held) for name, held in value.items()}
    if isinstance(value, list):
        return [_without_halves(held) for held in value]
    return value
