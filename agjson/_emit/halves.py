"""Halves of characters: a producer may cut a text between the two UTF-16 halves of an emoji (spec §5 text.delta)."""

from __future__ import annotations

__all__ = ["join_halves", "whole_characters"]


def whole_characters(text: str) -> bool:
    """Tell whether a text can go out as it is: no half of a character (a lone UTF-16 surrogate) is in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def join_halves(text: str) -> tuple[str, str]:
    """Join the halves of split characters; a first half at the end is set apart, as its other half may follow.

    Args:
        text: the text, with what was set apart before in front.

    Returns:
        The text that may go out, and the half to hold or an empty string. A half that nothing can complete any more
        becomes U+FFFD.
    """
    half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
    if half:
        text = text[:-1]
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), half
