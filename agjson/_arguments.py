"""What a thing is made of, checked when it is made: a slip is told at once, and not to the first client."""

from __future__ import annotations

from typing import Any, get_args

__all__ = ["check_kind", "check_word"]


def check_kind(name: str, value: object, kind: type, *like: str, optional: bool = False, hint: str = "") -> None:
    """Go on only with an instance.

    Args:
        name: the argument.
        value: what was given.
        kind: of which class it is to be.
        *like: an object of another class will do if it has all of these attributes; none: it will not.
        optional: None will do.
        hint: how it is made.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(value, kind) or (optional and value is None):
        return
    if like and not isinstance(value, type) and all(hasattr(value, each) for each in like):
        return
    given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    raise TypeError(f"{name} must be {article} {kind.__name__}, not {given}{hint and f': {hint}'}")


def check_word(name: str, value: object, words: Any, *, optional: bool = False) -> None:
    """Go on only with a word that a setting knows.

    Args:
        name: the setting.
        value: what was given.
        words: the `Literal` of the words.
        optional: None will do.

    Raises:
        ValueError: it is another one.
    """
    known = get_args(words)
    if value not in known and not (optional and value is None):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")
