"""JSON Patches (RFC 6902) that apply to a given document, with the document that they lead to.

`memory.write` and `state.delta` park a fold when their patch fails (spec §5), so a valid stream needs patches that
are known to apply. The new document is computed here and not by the patch code of the fold: the two check each other.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeAlias, TypeGuard

from agjson.testing.source import Source
from agjson.types import JsonValue

__all__ = ["applicable_patch", "is_array", "is_object"]

Operation: TypeAlias = dict[str, Any]
_Path: TypeAlias = tuple[str | int, ...]
_LARGE = 40


def applicable_patch(source: Source, document: JsonValue, max_size: int = 3) -> tuple[list[Operation], JsonValue]:
    """A patch of zero to ``max_size`` operations that applies to ``document``.

    Args:
        source: where the choices come from.
        document: any JSON value; it is not changed.
        max_size: the greatest number of operations.

    Returns:
        The operations in wire shape, and the document after them (sharing nothing with ``document``).
    """
    current: Any = deepcopy(document)
    patch: list[Operation] = []
    for _ in range(source.integer(0, max_size)):
        operation, current = _operation(source, current)
        patch.append(operation)
    return patch, current


def _operation(source: Source, document: Any) -> tuple[Operation, Any]:
    locations = _locations(document)
    inner = locations[1:]
    targets = [path for path, value in locations if is_object(value) or is_array(value)]
    kinds = ["test", "replace"]
    if targets:
        kinds.append("add")
        # Copies of copies would double the document with every patch.
        if len(locations) < _LARGE:
            kinds.append("copy")
    if inner:
        kinds += ["remove", "move"]
    kind = source.choice(kinds)
    path, value = source.choice(inner if kind in ("remove", "move") else locations)
    if kind == "test":
        return {"op": "test", "path": _pointer(path), "value": deepcopy(value)}, document
    if kind == "replace":
        new = source.json()
        return {"op": "replace", "path": _pointer(path), "value": deepcopy(new)}, _replaced(document, path, new)
    if kind == "remove":
        _remove(document, path)
        return {"op": "remove", "path": _pointer(path)}, document
    if kind == "add":
        new = source.json()
        pointer = _add(source, document, source.choice(targets), new)
        return {"op": "add", "path": pointer, "value": deepcopy(new)}, document
    if kind == "move":
        _remove(document, path)
        # RFC 6902 §4.4: the move removes first, and ``from`` must not be a proper prefix of ``path``.
        places = [place for place, child in _locations(document) if is_object(child) or is_array(child)]
        targets = [place for place in places if place[: len(path)] != path]
    else:
        value = deepcopy(value)
    pointer = _add(source, document, source.choice(targets), value)
    return {"op": kind, "from": _pointer(path), "path": pointer}, document


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def _locations(document: Any) -> list[tuple[_Path, Any]]:
    found: list[tuple[_Path, Any]] = [((), document)]
    for path, value in found:
        if is_object(value):
            found.extend(((*path, key), child) for key, child in value.items())
        elif is_array(value):
            found.extend(((*path, index), child) for index, child in enumerate(value))
    return found


def _pointer(path: _Path) -> str:
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def _resolve(document: Any, path: _Path) -> Any:
    for token in path:
        document = document[token]
    return document


def _replaced(document: Any, path: _Path, value: Any) -> Any:
    if not path:
        return value
    _resolve(document, path[:-1])[path[-1]] = value
    return document


def _remove(document: Any, path: _Path) -> None:
    del _resolve(document, path[:-1])[path[-1]]


def _add(source: Source, document: Any, path: _Path, value: Any) -> str:
    container = _resolve(document, path)
    if is_object(container):
        key = source.text(0, 6)
        if container and source.chance(50):
            key = source.choice(list(container))
        container[key] = value
        return _pointer((*path, key))
    index = source.integer(0, len(container))
    container.insert(index, value)
    at_end = index == len(container) - 1 and source.chance(50)
    return _pointer((*path, "-" if at_end else index))
