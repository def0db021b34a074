"""Text of models and frameworks made harmless for a terminal (spec §13.6)."""

from __future__ import annotations

import re

__all__ = ["harmless_json", "shown_text", "shown_word"]

# What moves the cursor, rewrites what stands above, reorders a line or hides in it: C0 and C1 controls, DEL, controls
# of direction, line and paragraph separators, halves of surrogate pairs, and all that Unicode draws as nothing
# (Default_Ignorable_Code_Point, such as fillers and tag characters; interlinear annotation marks). U+200C, U+200D and
# U+FE00 to U+FE0F stay: Persian, Hindi and emoji need them.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff"
)
_IN_TEXT = re.compile(f"[{_UNSAFE}]")
_IN_WORD = re.compile(f"[{_UNSAFE}\t\n]")
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def shown_text(text: str) -> str:
    """A text of several lines with every unsafe character as a visible escape; newline and tab stay."""
    return _IN_TEXT.sub(_escaped, text)


def shown_word(text: str) -> str:
    """A name, id, title or message for one line: as `shown_text`, and newline and tab are escaped too."""
    return _IN_WORD.sub(_escaped, text)


def harmless_json(data: bytes) -> bytes:
    """JSON with every character of a string that a terminal may not draw as a JSON escape: the same value."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return _IN_TEXT.sub(_json_escape, data.decode()).encode()


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
