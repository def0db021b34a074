"""What a server may log of a failure: all of it but the secrets that an exception may have picked up (spec §13.2).

Exceptions quote what they choke on: validators the value, clients the request or the answer. So a text is held against
the secrets of the run themselves, as far as they are known, and against the forms in which secrets are written.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

from agjson.agents import Thread
from agjson.types import AgInput
from agjson.wire import to_dict

__all__ = ["REDACTED", "Redactor", "secrets_of"]

REDACTED = "[redacted]"
"""What stands in the place of a secret."""

# Members whose every text is secret: opaque values, what goes back to a provider, tokens, credentials (spec §13).
_SECRET_MEMBERS = frozenset(
    (
        "opaque",
        "signature",
        "encryptedIndex",
        "providerMetadata",
        "providerDetails",
        "requestState",
        "token",
        "credentials",
        "pushNotification",
        "encrypted_content",
        "encrypted_index",
        "thought_signature",
        "thoughtSignature",
    )
)
# A client shortens what it quotes, at either end: what is left is found by pieces of this length.
_PIECE = 12
_SHORTEST = 6

_NAMES = (
    r"authorization|proxy-authorization|x-api-key|api[-_]?key|cookie|set-cookie|token|access[-_]?token|"
    r"refresh[-_]?token|secret|client[-_]?secret|password|credentials|signature|thought[-_]?signature|"
    r"request[-_]?state|encrypted[-_]?(?:content|index|reasoning)|redacted[-_]?(?:thinking|data)"
)
_NAMED = rf"""(?P<keep>\b(?:{_NAMES})\\?["']?\s*[:=]\s*)"""
_PATTERNS = (
    # "signature": "..." and signature='...', also where they are quoted once more; Authorization: Bearer ..., token=...
    re.compile(
        rf"""(?is){_NAMED}(?:(?P<quote>\\?["']).*?(?P=quote)|"""
        r"""(?!\[redacted\])[^\s"',;)\]}\\]+(?:[ ]+[^\s"',;)\]}\\]{8,})?)"""
    ),
    re.compile(r"(?i)(?P<keep>\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{6,}"),
    re.compile(r"(?P<keep>)\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?P<keep>://[^\s/:@]*:)[^\s/@]+(?=@)"),
)


def secrets_of(ag_input: AgInput, thread: Thread | None = None, events: Iterable[Mapping[str, Any]] = ()) -> set[str]:
    """The secrets that a run has to do with.

    Args:
        ag_input: its input.
        thread: its thread.
        events: its events so far, as plain data.
    """
    found: set[str] = set()
    _collect(to_dict(ag_input), False, found)
    if thread is not None:
        pending = thread.pending
        for value in (thread.result, pending.asks, pending.answers, pending.results, thread.run):
            _collect(to_dict(value), False, found)
        if pending.request_state is not None:
            found.add(pending.request_state)
    deltas: dict[str, str] = {}
    for event in events:
        _collect(event, False, found)
        if event["type"] == "reasoning.opaque":
            found.add(event["value"])
        elif event["type"] == "reasoning.opaque.delta":
            deltas[event["id"]] = deltas.get(event["id"], "") + event["delta"]
    found.update(deltas.values())
    return {text for text in found if len(text) >= _SHORTEST}


def _collect(value: Any, secret: bool, found: set[str]) -> None:
    waiting: list[tuple[Any, bool]] = [(value, secret)]
    while waiting:
        item, is_secret = waiting.pop()
        if isinstance(item, str):
            if is_secret:
                found.add(item)
        elif isinstance(item, Mapping):
            for name, member in item.items():
                waiting.append((member, is_secret or name in _SECRET_MEMBERS))
        elif isinstance(item, list):
            waiting += [(element, is_secret) for element in item]


class Redactor:
    """Takes secrets out of texts.

    Args:
        secrets: what must not be seen, whole or in part; what merely looks like one goes as well.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._short: list[str] = []
        self._pieces: set[str] = set()
        for secret in secrets:
            if len(secret) < _PIECE:
                self._short.append(secret)
            else:
                self._pieces |= {secret[at : at + _PIECE] for at in range(len(secret) - _PIECE + 1)}
        self._short.sort(key=len, reverse=True)

    def text(self, text: str) -> str:
        """A text without its secrets.

        Args:
            text: any text.
        """
        if self._pieces:
            text = self._without_pieces(text)
        for secret in self._short:
            text = text.replace(secret, REDACTED)
        for pattern in _PATTERNS:
            text = pattern.sub(rf"\g<keep>{REDACTED}", text)
        return text

    def failure(self, error: BaseException) -> str:
        """The traceback of an exception and of what caused it, as Python prints it, without its secrets.

        Args:
            error: the exception.
        """
        try:
            told = "".join(traceback.format_exception(error))
        except Exception:  # an exception whose own methods fail
            told = f"{type(error).__name__} (its traceback cannot be printed)"
        return self.text(told)

    def _without_pieces(self, text: str) -> str:
        pieces = self._pieces
        kept: list[str] = []
        end = start = 0
        at = 0
        while at <= len(text) - _PIECE:
            if text[at : at + _PIECE] in pieces:
                start = at
                while at <= len(text) - _PIECE and text[at : at + _PIECE] in pieces:
                    at += 1
                kept += (text[end:start], REDACTED)
                end = at = at + _PIECE - 1
            else:
                at += 1
        kept.append(text[end:])
        return "".join(kept)
