"""Single values in a few words for human eyes: JSON, URLs, usage, sizes. Everything returned is safe to print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from agjson.cli.terminal import shown_word
from agjson.types import AgUsage
from agjson.urls import WEB_SCHEMES, safe_url
from agjson.wire import encode

__all__ = ["WORDS", "cut", "shown_json", "shown_members", "shown_named", "shown_size", "shown_url", "shown_usage"]

WORDS = 200
"""The usual limit for a value that is told in passing, in characters."""

# Spec §13.1, §13.2: provider-bound values and credentials, under the names that providers give them.
_OPAQUE = frozenset(
    {
        *("ciphertext", "encryptedcontent", "encryptedindex", "encryptedstdout", "opaque", "providerdetails"),
        *("providermetadata", "redactedcontent", "requeststate", "signature", "thoughtsignature", "thinkingsignature"),
        *("bearer", "otp", "pwd"),
    }
)
# However a name of one of these begins, such as with `x`, `client`, `aws` or `refresh`.
_SECRET_ENDS = (
    *("accesskey", "apikey", "authorization", "cookie", "cookies", "credential", "credentials", "jwt", "passphrase"),
    *("passwd", "password", "privatekey", "secret", "secretkey", "secrets", "signingkey", "token"),
)
# The members that name what stands under `value` beside them, as in lists of headers and in patches.
_NAMING = ("name", "key", "path")
_SEGMENTS = re.compile(r"[/.:~\s]+")
_NO_WORD = re.compile(r"[^a-z0-9]+")
_DEEP = 20
_REFUSED_SCHEMES = frozenset(("javascript", "data", "vbscript"))
_URL_CHARACTERS = 400
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
# Browsers drop these from a URL, so that a scheme may hide behind or between them.
_DROPPED = re.compile("[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")


def cut(text: str, limit: int | None) -> str:
    """The text up to a number of characters, and how many more there are; None sets no limit."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


def shown_json(value: object, limit: int | None = WORDS, *, hide: bool = True) -> str:
    """A JSON value on one line.

    Args:
        value: plain data.
        limit: how many characters to show; None shows all.
        hide: replace members whose names are those of opaque values and credentials (spec §13.1, §13.2).
    """
    return cut(shown_word(encode(_hidden(value, 0) if hide else value).decode()), limit)


def shown_named(name: str, value: object, limit: int | None = WORDS) -> str:
    """A JSON value as `shown_json`, which is not shown where its name or path tells that it is a credential."""
    return _mark(value) if _is_secret(name) else shown_json(value, limit)


def shown_members(members: Mapping[str, object], limit: int | None = WORDS) -> str:
    """The members of a bag in a few words: scalars as ``name: value``, of objects and lists the name alone."""
    words = [
        shown_word(name)
        if _is_mapping(value) or _is_sequence(value)
        else f"{shown_word(name)}: {shown_json(value, limit)}"
        for name, value in _hidden(members, 0).items()
    ]
    return cut(", ".join(words), limit)


def shown_url(url: str) -> str:
    """A URL as text; of one that a client must refuse, the scheme alone (spec §13.4).

    One that says it is a web address but is not safe to follow (`safe_url`) is marked. Other schemes name resources,
    such as ``ui:``, and stay text.
    """
    if safe_url(url) is not None:
        return cut(shown_word(url), _URL_CHARACTERS)
    scheme = _SCHEME.match(_DROPPED.sub("", url))
    name = scheme[1].lower() if scheme is not None else ""
    if name in _REFUSED_SCHEMES:
        return f"(refused: a {name}: URL of {len(url)} characters)"
    mark = " (refused as a link)" if name in WEB_SCHEMES or _SCHEME.match(url) is None else ""
    return cut(shown_word(url), _URL_CHARACTERS) + mark


def shown_size(count: int, what: str = "bytes") -> str:
    """A number with its unit: ``12,345 bytes``."""
    return f"{count:,} {what}"


def shown_usage(usage: AgUsage) -> str:
    """Tokens and cost in a few words, without what is zero; empty where nothing was counted."""
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (usage.input_tokens, "in"),
            (usage.output_tokens, "out"),
            (usage.reasoning_tokens, "reasoning"),
            (usage.cache_read_tokens, "cache read"),
            (usage.cache_write_tokens, "cache written"),
            (usage.tool_use_input_tokens, "tool use"),
            (usage.total_tokens, "total"),
            (usage.server_tool_requests, "server tool requests"),
        )
        if count
    ]
    if usage.cost_usd:
        parts.append(f"${usage.cost_usd}")
    if usage.cumulative and parts:
        parts.append("running totals")
    return ", ".join(parts)


def _hidden(value: Any, depth: int) -> Any:
    if depth > _DEEP:
        return "…"
    if _is_mapping(value):
        names_secret = any(isinstance(name := value.get(member), str) and _is_secret(name) for member in _NAMING)
        return {
            key: _mark(item) if _is_secret(key) or (names_secret and key == "value") else _hidden(item, depth + 1)
            for key, item in value.items()
        }
    if _is_sequence(value):
        return [_hidden(item, depth + 1) for item in value]
    return value


def _mark(value: Any) -> str:
    return f"({len(value)} characters, not shown)" if isinstance(value, str) else "(not shown)"


def _is_secret(name: object) -> bool:
    """Whether a name, or one step of a path, is that of an opaque value or a credential."""
    whole = str(name).lower()
    return any(_is_secret_word(_NO_WORD.sub("", word)) for word in (whole, *_SEGMENTS.split(whole)))


def _is_secret_word(word: str) -> bool:
    return word in _OPAQUE or word.endswith(_SECRET_ENDS)


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, (list, tuple))
