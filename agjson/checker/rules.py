"""The rules by name, and the record of one breach (spec §0.2, §1, §2, §4, §5.0, §7, §9, §12)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

__all__ = ["RULES", "Violation"]

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "INV-TURN": "A turn is opened before anything else of it, and closed by exactly one terminal (§5.0).",
        "INV-MSG": "A message is sealed exactly once; nothing is added to a sealed message or a closed turn (§5.0).",
        "INV-BLOCK": "Ids of blocks and tool calls are unique; a delta or an end names a block that is open (§5.0).",
        "INV-SEQ": "`seq` counts from 0 without a gap or a repeat in each invoke (§5.0).",
        "INV-OWNER": "Every event leads to one turn, message or artifact that exists (§5.0, §1.2, §4).",
        "INV-FLUSH": "A truncated stream ends its messages in order, then aborts its turns, the latest first (§5.0).",
        "MALFORMED": "The item is no JSON, or does not fit the type that it names (§4, §5 trust boundary).",
        "UNKNOWN-TYPE": "A producer writes only event types and block kinds of this revision (§0.2, §0.3).",
        "UNDECLARED-FIELD": "A producer writes only declared fields; others ride in `_meta` or `ext.*` (§0.2).",
        "EXT": "An extension is named `ext.<vendor>.<key>` and leaves the envelope's names alone (§0.3, §0.4, §12).",
        "PROFILE": "Nothing is above the profile that was asked for (§9).",
        "ANNOUNCE": "A tool call, step or source is announced before, a cited source also after, it is named (§1.3).",
        "ASSEMBLED": "`tool.args.assembled` comes before the result of a call, and before its turn ends well (§4).",
        "RESULT": "The flags of a tool result agree: errorText, isError, pendingInput, preliminary (§2, §2.2).",
        "PARTIAL-LEFTOVER": "A final tool result restates every field that its partial results gave (§5 `tool.done`).",
        "OPAQUE": "A signature is not empty, and equals the fragments before it, which it must follow (§5, §8 item 9).",
        "ARTIFACT": "Parts and the end of an artifact come while it is open (§5 `artifact.*`).",
        "PATCH": "A JSON Patch is well formed and has a value to change (§5 `state.delta`, `memory.write`).",
        "HITL": "Asks have ids of their own, and a paused turn names exactly the asks it waits for (§4, §7).",
    }
)
"""Rule name to its meaning in one line, with the section of the specification that it comes from."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One breach of one rule.

    Attributes:
        line: which item of the stream is at fault, counted from 1. A turn or message that is never closed is reported
            at the item that opened it.
        seq: the ordinal that this item carries; None where it has none that can be read.
        rule: a name in `RULES`.
        message: what is wrong, in one sentence.
    """

    line: int
    seq: int | float | None
    rule: str
    message: str
