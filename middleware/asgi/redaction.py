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
# Of an opaque value these say what it is and whose. They are words of every other traceback.
_OPAQUE_LABELS = frozenset(("kind", "provider"))
# A client shortens what it quotes, at either end: what is left is found by pieces of this length.
_PIECE = 12
# Every piece holds one of the blocks that a secret is cut into, of this length.
_BLOCK = _PIECE // 2
_SHORTEST = 6
# An exception may quote a whole request. What is longer loses its middle: the end says what has failed.
_LONGEST_FAILURE = 64 * 1024

# Also as the end of a longer name: AUTH_TOKEN, clientSecret.
_NAMES = (
    r"authorization|api[-_]?key|access[-_]?key(?:[-_]?id)?|private[-_]?key|secret(?:[-_]?key)?|token|password|passwd|"
    r"passphrase|pwd|credentials?|signature|request[-_]?state|encrypted[-_]?(?:content|index|reasoning)|"
    r"redacted[-_]?(?:thinking|data)"
)
# Up to the quote that closes it, one that stands behind a backslash does not; one that is cut off ends with its line.
_QUOTED = r"""[bru]?(?P<quote>\\*["'])(?:[^\r\n]*?(?<!\\)(?P=quote)|[^\r\n]*)"""
_PATTERNS = (
    # "signature": "..." and signature=b'...', also where they are quoted once more; token=...
    re.compile(
        rf"""(?i)(?P<keep>(?:{_NAMES})(?:\\*["'])?\s*[:=]+\s*)(?:{_QUOTED}|"""
        r"""(?!\[redacted\])[^\s"',;)\]}\\]+(?:[ ]+[^\s"',;)\]}\\]{8,})?)"""
    ),
    # Headers as pairs: (b'x-api-key', b'...').
    re.compile(rf"""(?i)(?P<keep>(?:authorization|api[-_]?key|token|secret|cookie)\\*["']\s*,\s*){_QUOTED}"""),
    re.compile(rf"""(?i)(?P<keep>cookie\\*["']\s*:\s*){_QUOTED}"""),
    re.compile(r"""(?i)(?P<keep>\bcookie\s*[:=]\s*)(?!\[redacted\])[^\r\n"']+"""),
    # An opaque value, as an object and as a dict.
    re.compile(rf"""(?i)(?P<keep>opaque\b[^\r\n]{{0,120}}?\bvalue(?:\\*["'])?\s*[:=]\s*){_QUOTED}"""),
    re.compile(r"(?i)(?P<keep>\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{6,}"),
    re.compile(r"""(?i)(?P<keep>[?&](?:key|sig|auth|code)=)(?!\[redacted\])[^\s&"'#)]+"""),
    re.compile(r"(?P<keep>)\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}"),
    # What the ledger makes: tokens of asks, sealed values.
    re.compile(r"(?P<keep>)\bag[ts]1\.[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{8,}"),
    re.compile(
        r"(?P<keep>)\b(?:AIza|ya29\.|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|hf_|gsk_)[A-Za-z0-9_-]{12,}"
    ),
    re.compile(r"(?P<keep>)(?<![\w-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"),
    re.compile(r"(?s)(?P<keep>)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END[A-Z ]*-----|\Z)"),
    re.compile(r"(?P<keep>://[^\s/:@]*:)[^\s/@]+(?=@)"),
)
# What steers a terminal, or makes one line look like two or like another.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


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
    waiting: list[tuple[Any, bool, bool]] = [(value, secret, False)]
    while waiting:
        item, is_secret, is_opaque = waiting.pop()
        if isinstance(item, str):
            if is_secret:
                found.add(item)
        elif isinstance(item, Mapping):
            labels = _OPAQUE_LABELS if is_opaque else frozenset[str]()
            for name, member in item.items():
                waiting.append(
                    (member, (is_secret and name not in labels) or name in _SECRET_MEMBERS, name == "opaque")
                )
        elif isinstance(item, list):
            waiting += [(element, is_secret, False) for element in item]


class Redactor:
    """Takes secrets out of texts.

    Args:
        secrets: what must not be seen, whole or in part; what merely looks like one goes as well.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._short: dict[int, set[str]] = {}
        self._long: list[str] = []
        for secret in secrets:
            if len(secret) >= _PIECE:
                self._long.append(secret)
            elif secret:
                self._short.setdefault(len(secret), set()).add(secret)

    def text(self, text: str) -> str:
        """A text without its secrets.

        Args:
            text: any text.
        """
        pieces = self._pieces_in(text)
        if pieces:
            text = _without_pieces(text, pieces)
        for length in sorted(self._short, reverse=True):
            for secret in self._short[length] & _parts(text, length):
                text = text.replace(secret, REDACTED)
        for pattern in _PATTERNS:
            text = pattern.sub(rf"\g<keep>{REDACTED}", text)
        return text

    def failure(self, error: BaseException) -> str:
        """The traceback of an exception and of what caused it, as Python prints it, without its secrets.

        It is indented, and control characters are escaped: what an exception quotes cannot pass for a line of the log.
        Of a very long one the middle is left out.

        Args:
            error: the exception.
        """
        try:
            told = "".join(traceback.format_exception(error))
        except Exception:  # an exception whose own methods fail
            told = f"{type(error).__name__} (its traceback cannot be printed)"
        left_out = len(told) - _LONGEST_FAILURE
        if left_out > 0:
            half = _LONGEST_FAILURE // 2
            told = f"{told[:half]}\n... {left_out} characters ...\n{told[-half:]}"
        told = _CONTROLS.sub(_escaped, self.text(told)).rstrip("\n")
        return "  " + told.replace("\n", "\n  ")

    def _pieces_in(self, text: str) -> set[str]:
        """The pieces of secrets that a text has. It costs little however much is secret: the text is the short one."""
        found: set[str] = set()
        if not self._long or len(text) < _PIECE:
            return found
        blocks, pieces = _parts(text, _BLOCK), _parts(text, _PIECE)
        for secret in self._long:
            last = len(secret) - _PIECE
            for at in range(0, len(secret) - _BLOCK + 1, _BLOCK):
                if secret[at : at + _BLOCK] not in blocks:
                    continue
                for start in range(max(0, at - _BLOCK), min(at, last) + 1):
                    piece = secret[start : start + _PIECE]
                    if piece in pieces:
                        found.add(piece)
        return found


def _parts(text: str, length: int) -> set[str]:
    return {text[at : at + length] for at in range(len(text) - length + 1)}


def _without_pieces(text: str, pieces: set[str]) -> str:
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


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
