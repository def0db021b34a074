"""Streamed text: deltas are collected and joined once, and the two halves of a split character meet again."""

from __future__ import annotations

from agjson._halves import join_halves, whole_characters

__all__ = ["TextBuffer"]

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
            if self._half or not whole_characters(added):
                added, self._half = join_halves(self._half + added)
            self._settled = self._settled + added if self._settled else added
        if final and self._half:
            self._settled += _REPLACEMENT
            self._half = ""
        return self._settled
