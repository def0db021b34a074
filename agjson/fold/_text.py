"""Streamed text: deltas are collected and joined once, and the two halves of a split character meet again.

JSON may write a character outside the Basic Multilingual Plane as two escapes, and a producer may cut between them.
Each half alone is no character, so a trailing first half waits for the next delta of its block (spec §5 text.delta).
"""

from __future__ import annotations

__all__ = ["TextBuffer", "pair_halves"]

_REPLACEMENT = "\ufffd"


class TextBuffer:
    """The text of one streamed block, or of one summary part of it.

    Attributes:
        pending: deltas since `text` was last called. A caller may append to it; the list stays the same object.
    """

    __slots__ = ("_half", "_settled", "pending")

    def __init__(self) -> None:
        self.pending: list[str] = []
        self._settled = ""
        self._half = ""

    def text(self, *, final: bool = False) -> str:
        """The text so far, without a trailing first half; at the end of the block that half becomes U+FFFD.

        Args:
            final: no delta will follow.
        """
        if self.pending:
            added = "".join(self.pending)
            self.pending.clear()
            if self._half or _has_halves(added):
                added, self._half = _mended(self._half + added)
            self._settled = self._settled + added if self._settled else added
        if final and self._half:
            self._settled += _REPLACEMENT
            self._half = ""
        return self._settled


def pair_halves(text: str) -> str:
    """Put the halves of split characters together and leave a lone half as it is.

    For values that are sent back or go on growing, where a replacement character would be a change.
    """
    if not _has_halves(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _has_halves(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _mended(text: str) -> tuple[str, str]:
    """The text with pairs joined and lone halves replaced, and the first half at its end that may yet be completed."""
    half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
    if half:
        text = text[:-1]
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), half
