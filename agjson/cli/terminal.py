"""Text of models and frameworks made harmless for a terminal (spec §13.6)."""

from __future__ import annotations

import re

__all__ = ["shown_text", "shown_word"]

# What moves the cursor, rewrites what stands above, reorders a line or hides in it: C0 and C1 controls, DEL, controls
# of direction, line and paragraph separators, invisible format characters, tag characters, halves of surrogate pairs.
# U+200C and U+200D stay: Persian, Hindi and emoji need them.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f\ud800-\udfff"
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


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
