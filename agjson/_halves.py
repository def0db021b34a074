"""Halves of characters: a producer may cut a text between the two UTF-16 halves of an emoji (spec §5 text.delta).

JSON may write a character outside the Basic Multilingual Plane as two escapes. Each half alone (a lone surrogate) is no
character, so a first half at the end of a piece waits for the next piece.
"""

from __future__ import annotations

__all__ = ["join_halves", "pair_halves", "replace_halves", "whole_characters"]


def whole_characters(text: str) -> bool:
    """Tell whether a text holds no half of a character."""
    if text.isascii():
        return True
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
        The joined text, and the half to hold or an empty string. A half that nothing can complete any more becomes
        U+FFFD.
    """
    half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
    if half:
        text = text[:-1]
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), half


def pair_halves(text: str) -> str:
    """Join the halves of split characters and leave a lone half as it is.

    For values that are sent back or go on growing, where a replacement character would be a change.
    """
    if whole_characters(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def replace_halves(text: str) -> str:
    """Join the halves of split characters; a lone half becomes U+FFFD. For texts that are complete."""
    if whole_characters(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
