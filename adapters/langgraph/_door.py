"""Where LangChain's messages and LangGraph's metadata become plain data, fast: a token costs a few microseconds here.

Neither framework is imported: objects are known by their attributes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

from agjson.jsonable import jsonable

__all__ = ["Door", "PlainMessage", "is_message", "native_message_id", "plain_message"]

PlainMessage: TypeAlias = dict[str, Any]
"""A message in the shape of its pydantic dump: ``type``, ``content``, ``id`` and the other members as plain data."""

# More runs than this are never open at once; a run that is older has ended.
_RUNS_KEPT = 4096

_SCALARS = frozenset((str, int, bool, type(None)))
_CONTAINERS = frozenset((dict, list))

_ROLES = {
    "human": "human",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "function",
    "remove": "remove",
}
# Classes by the names under which LangChain serialises them.
_CLASSES = {
    "AIMessage": "ai",
    "AIMessageChunk": "AIMessageChunk",
    "HumanMessage": "human",
    "HumanMessageChunk": "HumanMessageChunk",
    "SystemMessage": "system",
    "SystemMessageChunk": "SystemMessageChunk",
    "ToolMessage": "tool",
    "ToolMessageChunk": "ToolMessageChunk",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
    "RemoveMessage": "remove",
}
# Spelt otherwise by a chunk.
_KINDS = {
    "HumanMessageChunk": "human",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
    "FunctionMessageChunk": "function",
    "ChatMessageChunk": "chat",
}


class Door:
    """Converts what is told again and again once: the metadata that all chunks of a run share."""

    def __init__(self) -> None:
        # By identity. The native object is kept too, or its identity could come back for another one.
        self._metas: dict[int, tuple[Any, dict[str, Any]]] = {}

    def meta(self, native: Any) -> dict[str, Any]:
        """The metadata of a run as plain data; the same object for the same native object.

        Args:
            native: the second half of a ``messages`` part.
        """
        known = self._metas.get(id(native))
        if known is not None and known[0] is native:
            return known[1]
        plain = jsonable(native)
        meta = plain if isinstance(plain, dict) else {}
        if len(self._metas) >= _RUNS_KEPT:
            del self._metas[next(iter(self._metas))]
        self._metas[id(native)] = (native, meta)
        return meta

    def message(self, data: Any) -> tuple[PlainMessage, dict[str, Any], Hashable | None] | None:
        """What a ``messages`` part says.

        Args:
            data: a pair of message and metadata.

        Returns:
            The message and the metadata as plain data, and the identity of the run: None where the part was
            deserialised, so that nothing is shared between its chunks. None if it is no such pair.
        """
        try:
            native, meta = data
        except (TypeError, ValueError):
            return None
        message = plain_message(native)
        if message is None:
            return None
        if type(native) is dict:
            plain = jsonable(meta)
            return message, plain if isinstance(plain, dict) else {}, None
        return message, self.meta(meta), id(meta)


def is_message(value: Any) -> bool:
    """Tell whether a value is a message: an object of LangChain, or the dump of one."""
    if isinstance(value, dict):
        return _kind_of(value) is not None and ("content" in value or "kwargs" in value or value["type"] == "remove")
    return isinstance(getattr(value, "type", None), str) and hasattr(value, "content") and hasattr(value, "id")


def native_message_id(value: Any) -> str | None:
    """The id of a message in any form; None where it has none yet."""
    if isinstance(value, dict):
        inner = value.get("kwargs") if value.get("lc") == 1 else value
        id = inner.get("id") if isinstance(inner, dict) else None
    else:
        id = getattr(value, "id", None)
    return id if isinstance(id, str) and id else None


def plain_message(native: Any) -> PlainMessage | None:
    """A message as plain data, in a dict of its own.

    Args:
        native: an object of LangChain, its dump (``model_dump``), its serialised form (``dumpd``), a dict with a
            ``role``, a pair of role and text, or a text, as a node may return them.

    Returns:
        The message; None for anything else.
    """
    try:
        fields: dict[str, Any] = native.__dict__
        kind = fields["type"]
        fields["content"]
    except (AttributeError, KeyError, TypeError):
        return _of_data(native)
    plain = dict(fields)
    extra = getattr(native, "__pydantic_extra__", None)
    if extra:
        plain = {**extra, **plain}
    if kind in _KINDS:
        plain["type"] = _KINDS[kind]
    for value in fields.values():
        # Most members of a chunk are empty.
        if (cls := type(value)) not in _SCALARS and (cls not in _CONTAINERS or value) and not _is_flat(value):
            checked = jsonable(plain)
            return checked if isinstance(checked, dict) else None
    return plain


def _is_flat(value: Any) -> bool:
    """Tell whether a value is plain data of the depth that the members of a chunk have; False if it nests deeper."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            # A call that has no arguments yet has them as an empty dict.
            if type(key) is not str or ((cls := type(item)) not in _SCALARS and (cls not in _CONTAINERS or item)):
                return False
        return True
    if kind is list:
        for each in value:  # noqa: SIM110
            if type(each) not in _SCALARS and not (type(each) is dict and _is_flat(each)):
                return False
        return True
    return False


def _of_data(native: Any) -> PlainMessage | None:
    if isinstance(native, str):
        return {"type": "human", "content": native}
    if isinstance(native, (tuple, list)):
        if len(native) == 2 and isinstance(native[0], str) and native[0] in _ROLES and isinstance(native[1], str):
            return {"type": _ROLES[native[0]], "content": native[1]}
        return None
    if not isinstance(native, Mapping):
        return None
    plain = jsonable(native)
    if not isinstance(plain, dict):
        return None
    if plain.get("lc") == 1 and isinstance(kwargs := plain.get("kwargs"), dict):
        kind = _kind_of(plain)
        plain = dict(kwargs)
    else:
        kind, plain = _kind_of(plain), dict(plain)
        plain.pop("role", None)
    if kind is None or ("content" not in plain and kind != "remove"):
        return None
    plain["type"] = _KINDS.get(kind, kind)
    return plain


def _kind_of(message: Mapping[str, Any]) -> str | None:
    """The type of a message that came as data."""
    if message.get("lc") == 1:
        path = message.get("id")
        name = path[-1] if isinstance(path, list) and path else None
        return _CLASSES.get(name) if isinstance(name, str) else None
    kind = message.get("type")
    if isinstance(kind, str) and (kind in _ROLES or kind in _CLASSES or kind == "chat"):
        return _ROLES.get(kind, kind)
    role = message.get("role")
    return _ROLES.get(role) if isinstance(role, str) else None
