"""Names and versions: the closed set of final segments, ext names, the semver rule (spec §0.3, §0.4, §12)."""

from __future__ import annotations

import re

from ._base import FieldError

__all__ = [
    "BARE_EVENT_TYPES",
    "ENVELOPE_FIELDS",
    "FINAL_SEGMENTS",
    "RESERVED_VENDORS",
    "SPEC_VERSION",
    "check_ext_type",
    "check_parent",
    "check_version",
    "is_event_type",
    "is_ext_type",
]

SPEC_VERSION = "1.0.0-draft.1"
"""The revision that this library writes into `AgInput` envelopes (spec §12)."""

FINAL_SEGMENTS = frozenset(
    {
        *("start", "delta", "end", "done", "call", "result", "ask", "error", "abort", "blocked", "required"),
        *("snapshot", "metadata", "block", "capabilities", "action-result", "update", "remove", "write"),
        *("assembled", "opaque", "context", "display-mode", "data-model"),
    }
)
"""The closed set of the last dot-segment of an event type, ``ext.*`` aside (spec §0.3)."""

BARE_EVENT_TYPES = frozenset(("error", "source", "handoff"))
"""The three event types without a dot (spec §0.3)."""

RESERVED_VENDORS = frozenset(("anthropic", "google", "openai", "langgraph"))
"""Vendor segments of ``ext.<vendor>.<key>`` that belong to the frameworks of these names (spec §12)."""

ENVELOPE_FIELDS = ("seq", "type", "id", "turnId", "messageId", "parentId", "_meta")
"""The wire names that the envelope of every event owns (spec §4, §12)."""

_SEGMENT = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NUMERIC = r"(?:0|[1-9][0-9]*)"
_PRERELEASE = rf"(?:{_NUMERIC}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    rf"({_NUMERIC})\.{_NUMERIC}\.{_NUMERIC}"
    rf"(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


def is_event_type(type: str) -> bool:
    """Tell whether a wire ``type`` names an event rather than a block, by its form alone (spec §0.3)."""
    return "." in type or type in BARE_EVENT_TYPES


def is_ext_type(type: str, *, lenient: bool = False) -> bool:
    """Tell whether a wire ``type`` is a well-formed vendor extension, ``ext.<vendor>.<key>`` (spec §0.3, §0.4).

    A name has at least a vendor and a key, and no segment is empty. The last segment is the vendor's to choose; those
    before it are lowercase letters and digits with single hyphens inside.

    Args:
        type: the wire type.
        lenient: take any characters in the segments before the last, as a consumer does.
    """
    prefix, *segments = type.split(".")
    if prefix != "ext" or len(segments) < 2 or "" in segments:
        return False
    return lenient or all(_SEGMENT.fullmatch(segment) for segment in segments[:-1])


def check_ext_type(type: str) -> None:
    """Check the name of a vendor extension by the rule of `is_ext_type`.

    Args:
        type: the wire type.

    Raises:
        FieldError: the name breaks the rule.
    """
    if not is_ext_type(type, lenient=True):
        raise FieldError("type", f"expected `ext.<vendor>.<key>` without empty segments, got `{type}`")
    if not is_ext_type(type):
        raise FieldError("type", f"the segments of `{type}` before the last are lowercase letters, digits and hyphens")


def check_parent(turn_id: str, parent_turn_id: str | None) -> None:
    """Check that a turn does not name itself as its parent (spec §0.5).

    Args:
        turn_id: the turn.
        parent_turn_id: the turn that it says it is nested in, if any.

    Raises:
        FieldError: the two are the same.
    """
    if turn_id == parent_turn_id:
        raise FieldError("parentTurnId", "a turn cannot be its own parent")


def check_version(version: str) -> None:
    """Check that a version is a semantic version of major 1, with or without prerelease and build (spec §12).

    Args:
        version: the ``version`` of an input envelope.

    Raises:
        FieldError: the string is no semver 2.0, or another major.
    """
    match = _SEMVER.fullmatch(version)
    if match is None:
        raise FieldError("version", f"`{version}` is not a semantic version")
    if match[1] != "1":
        raise FieldError("version", f"major version {match[1]} is not supported, expected 1")
