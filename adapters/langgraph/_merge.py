"""LangChain's rules for adding up the chunks of a message, without LangChain, and without its exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["continues", "merge_block", "merge_into"]

Native: TypeAlias = dict[str, Any]

_SAME = ("id", "output_version", "model_provider")
_LAST_COUNTS = ("index", "created", "timestamp")


def continues(block: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Tell whether a fragment goes on with a block: it has the same index, and its id says nothing else.

    Args:
        block: what came before, added up.
        part: the fragment.
    """
    index = part.get("index")
    if not (type(index) is int or (isinstance(index, str) and index.startswith("lc_"))):
        return False
    if "index" not in block or block["index"] != index:
        return False
    left, right = block.get("id"), part.get("id")
    return not left or not right or left == right


def merge_block(block: Mapping[str, Any], part: Mapping[str, Any]) -> Native:
    """Add a fragment to a block of the content; the type of the block stays.

    Args:
        block: what came before, added up; not changed.
        part: the fragment.
    """
    kind, value = block.get("type"), part.get("value")
    if kind and part.get("type") == "non_standard" and isinstance(value, dict):
        inner = {name: each for name, each in value.items() if name != "type"}
        return merge_into(block, {"extras": inner} if kind != "non_standard" else {"value": inner})
    return merge_into(block, part if not kind else {name: each for name, each in part.items() if name != "type"})


def merge_into(left: Mapping[str, Any], right: Mapping[str, Any]) -> Native:
    """Add up two objects: texts and numbers add, objects and lists merge. Where the two do not fit the later one holds.

    Args:
        left: the earlier one; not changed.
        right: the later one.
    """
    merged: Native = dict(left)
    for name, value in right.items():
        there = merged.get(name)
        if there is None or value is None:
            if value is not None or name not in merged:
                merged[name] = value
        elif type(there) is not type(value) or isinstance(value, bool):
            merged[name] = value
        elif isinstance(value, str):
            if name == "index" or (name in _SAME and there == value):
                continue
            merged[name] = there + value
        elif isinstance(value, dict):
            merged[name] = merge_into(there, value)
        elif isinstance(value, list):
            merged[name] = _merge_lists(there, value)
        elif there != value:
            merged[name] = value if name in _LAST_COUNTS or not isinstance(value, (int, float)) else there + value
    return merged


def _merge_lists(left: list[Any], right: list[Any]) -> list[Any]:
    merged = list(left)
    for part in right:
        place = None
        if isinstance(part, dict) and "index" in part:
            place = next(
                (at for at, block in enumerate(merged) if isinstance(block, dict) and continues(block, part)), None
            )
        if place is None:
            merged.append(part)
        else:
            merged[place] = merge_block(merged[place], part)
    return merged
